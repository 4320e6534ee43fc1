/* The folder of options.cache: beginnings of files, by the URL without what signs it. */
#ifndef SFTI_REMOTE_HEADER_CACHE_H
#define SFTI_REMOTE_HEADER_CACHE_H

#include "remote/remote.h"

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

#endif
