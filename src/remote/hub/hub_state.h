/* The Hub as a remote knows it: what the environment says, and what was learnt of repositories. */
#ifndef SFTI_REMOTE_HUB_STATE_H
#define SFTI_REMOTE_HUB_STATE_H

#include "remote/hub/hub.h"
#include "remote/remote.h"
#include "safetensors_io.h"

typedef struct sfti_hub_entry {
    const char *path;
    uint64_t bytes;     /* SFT_SIZE_UNKNOWN if it is not told */
    const char *sha256; /* NULL: not told */
} sfti_hub_entry;

/* All files of a repository, by path; never changed. */
typedef struct sfti_hub_listing {
    sfti_arena arena;
    char commit[65]; /* empty if it is not known */
    sfti_hub_entry *entries;
    size_t count;
} sfti_hub_listing;

/* A repository at the revision that was asked for. All its files are read at one commit: the first
 * that a server told. */
typedef struct sfti_hub_repo {
    struct sfti_hub_repo *next;
    sfti_hub_name name;        /* without its path; revision is never NULL */
    char commit[65];           /* guarded by remote->mutex; empty until it is known */
    sfti_hub_listing *listing; /* guarded by remote->mutex; NULL until it is known */
} sfti_hub_repo;

typedef struct sfti_hub {
    const char *endpoint; /* NULL: HF_ENDPOINT is no URL */
    const char *token;    /* NULL: none */
    const char *token_at; /* where it is from: a variable or a file */
    const char *cache;    /* NULL: none */
    bool offline;
    sfti_hub_repo *repos; /* guarded by remote->mutex */
} sfti_hub;

/* Reads the environment as huggingface_hub does. */
sft_code sfti_hub_open(sft_remote *remote, sft_error *err);
void sfti_hub_close(sft_remote *remote);
static inline sfti_hub *sfti_hub_of(const sft_remote *remote) {
    return remote->state[SFTI_SCHEME_HUB];
}

/* Whether a URL is of an origin that may have the token: the endpoint's, or the Hub's own. */
bool sfti_hub_is_origin(const sfti_hub *hub, const char *url);
/* Whether a text is so many hexadecimal digits in lower case. */
bool sfti_hub_is_hex(const char *text, size_t digits);
/* Whether a revision is a commit. */
bool sfti_hub_is_commit(const char *text);
/* The one of a name, known from here on; NULL when out of memory. */
sfti_hub_repo *sfti_hub_repo_of(sft_remote *remote, const sfti_hub_name *name);
/* The commit that its files are read at; false: not known yet. */
bool sfti_hub_pinned(sft_remote *remote, const sfti_hub_repo *repo, char out[65]);
/* Read its files at a commit from now on, unless there is one already. */
void sfti_hub_pin(sft_remote *remote, sfti_hub_repo *repo, const char *commit);
/* Its files, if they were listed. */
const sfti_hub_listing *sfti_hub_listed(sft_remote *remote, const sfti_hub_repo *repo);
/* Keep a listing, which is moved. Returns it, or the one that there is already; NULL when out of
 * memory. */
const sfti_hub_listing *sfti_hub_keep(sft_remote *remote, sfti_hub_repo *repo,
                                      sfti_hub_listing *listing);

/* Ask for all files of a repository, at the commit that it is read at, which is settled here if it
 * is not known yet. The target proves who asks; its URL is set here. *out stays valid until the
 * remote is closed. (hub_list.c) */
sft_code sfti_hub_list(sfti_target *target, sfti_hub_repo *repo, const sfti_hub_listing **out,
                       sft_error *err);
/* An entry, or NULL. */
const sfti_hub_entry *sfti_hub_find(const sfti_hub_listing *listing, const char *path);
/* Tell what lies directly in a folder ("": the root). SFT_NOT_FOUND, SFT_IO_NOT_FILE. */
sft_code sfti_hub_tell(const sfti_hub_listing *listing, const char *folder, sft_listed_fn each,
                       void *each_ctx, sft_error *err);
/* Whether it has a folder of that name. */
bool sfti_hub_has_folder(const sfti_hub_listing *listing, const char *path);

/* ── hub_cache.c ── */

/* The cache of huggingface_hub on this machine, which is only read:
 *
 *     CACHE/models--OWNER--NAME/refs/REVISION                  a file that holds a commit
 *                              /snapshots/COMMIT/PATH          a link to a blob, or a copy
 *                              /blobs/ETAG                     a file, or a link to a shared one
 *                              /.no_exist/COMMIT/PATH          the repository has no such file
 *     CACHE/blobs/HH/HASH                                      a file that repositories share
 */

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
