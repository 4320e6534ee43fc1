/* The cache of huggingface_hub on this machine, which is only read:
 *
 *     CACHE/models--OWNER--NAME/refs/REVISION                  a file that holds a commit
 *                              /snapshots/COMMIT/PATH          a link to a blob, or a copy
 *                              /blobs/ETAG                     a file, or a link to a shared one
 *                              /.no_exist/COMMIT/PATH          the repository has no such file
 *     CACHE/blobs/HH/HASH                                      a file that repositories share
 */
#ifndef SFTI_REMOTE_HUB_CACHE_H
#define SFTI_REMOTE_HUB_CACHE_H

#include "remote/hub/hub_state.h"

typedef struct sfti_hub_cached {
    const char *path; /* of the bytes themselves: no part of it is a link */
    uint64_t bytes;
    char sha256[65]; /* what the blob is named after; or empty */
    char commit[65];
} sfti_hub_cached;

/* The file of a name at a commit. False: it is not there, or is nothing that may be read. */
bool sfti_hub_cached_at(const sfti_hub *hub, const sfti_hub_name *name, const char *commit,
                        sfti_arena *arena, sfti_hub_cached *out);
/* The same at the commit that the cache has for the name's revision. SFT_REMOTE_OFFLINE says what
 * is missing; SFT_NOT_FOUND: the repository has no such file. */
sft_code sfti_hub_cached_file(const sfti_hub *hub, const sfti_hub_name *name, sfti_arena *arena,
                              sfti_hub_cached *out, sft_error *err);
/* What is cached of a folder. */
sft_code sfti_hub_cached_list(const sfti_hub *hub, const sfti_hub_name *name, sfti_arena *arena,
                              sft_listed_fn each, void *each_ctx, sft_error *err);

#endif
