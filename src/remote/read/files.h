/* Files of a remote: as sources, those that were opened or will be next, and the folder of
 * options.cache. */
#ifndef SFTI_REMOTE_FILES_H
#define SFTI_REMOTE_FILES_H

#include "remote/remote.h"

/* ── header_cache.c: beginnings of files, by the URL without what signs it ── */

/* The beginning of a file, and what it is known by. */
typedef struct sfti_cached {
    sfti_answer answer; /* etag, modified, total; no more */
    char sha256[65], commit[65];
    char *data;
    size_t len;
} sfti_cached;

/* Make the folder if it is missing. SFT_IO_OPEN if it is not one in which only this user writes. */
sft_code sfti_header_cache_open(const char *folder, sft_error *err);
/* What is kept of a URL; false: nothing, or nothing that can be trusted. Free with
 * sfti_header_cache_free. */
bool sfti_header_cache_get(sft_remote *remote, const char *url, sfti_cached *out);
/* Keep it. Failures change nothing. */
void sfti_header_cache_put(sft_remote *remote, const char *url, const sfti_cached *cached);
void sfti_header_cache_free(sft_remote *remote, sfti_cached *cached);

/* ── source.c ── */

/* Ask for the beginning of the file of a name; or open it on this machine, if it is there. go_on:
 * see sfti_fetch. */
sft_code sfti_remote_source(sft_remote *remote, const char *name, bool (*go_on)(void *ctx),
                            void *go_on_ctx, sft_source *out, sft_remote_claim *claim,
                            sft_error *err);

/* Who may keep a source of it when it is closed, once, if no more than its beginning was read and
 * nothing failed: true, and the source is his. */
void sfti_source_on_close(const sft_source *source, bool (*keep)(void *ctx, sft_source source),
                          void *ctx);

/* ── opened.c ── */

sft_code sfti_opened_new(sft_remote *remote, sft_error *err);
/* Ends what is under way; no other call is. NULL is ignored. */
void sfti_opened_free(struct sfti_opened *opened);
/* As in sft_files_vtable. */
sft_code sfti_opened_open(sft_remote *remote, const char *name, const char *beneath,
                          sft_source *out, sft_error *err);
void sfti_opened_expect(sft_remote *remote, const char *const *names, size_t count,
                        const char *beneath);

#endif
