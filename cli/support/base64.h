/* Bytes as base64. */
#ifndef CLI_BASE64_H
#define CLI_BASE64_H

#include "base/mem.h"

/* Bytes that it takes. */
static inline size_t cli_base64_size(size_t bytes) { return (bytes + 2) / 3 * 4; }
/* With `=` at the end; to out, which holds cli_base64_size bytes. */
size_t cli_base64(sft_span bytes, char *out);
/* "data:image/png;base64,…" in the arena; data NULL when out of memory. */
sft_span cli_data_url(const char *media_type, sft_span bytes, sfti_arena *arena);

#endif
