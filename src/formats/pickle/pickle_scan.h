/* The bytes of a pickle, read forward: from memory, or through a window over a source. */
#ifndef SFTI_PICKLE_SCAN_H
#define SFTI_PICKLE_SCAN_H

#include "formats/pickle/pickle.h"

#define SFTI_SCAN_WINDOW ((size_t)1 << 16)
/* Longer texts are not kept in memory where they are not there already. */
#define SFTI_SCAN_TEXT ((size_t)1 << 12)

typedef struct sfti_scan {
    sfti_pickle_input input;
    sfti_arena *arena;
    sft_error *err;
    uint8_t *window; /* owned; NULL: bytes are the input's */
    const uint8_t *bytes;
    size_t at, len;
    uint64_t base; /* of bytes[0] in the source */
} sfti_scan;

sft_code sfti_scan_begin(sfti_scan *scan, const sfti_pickle_input *input, sfti_arena *arena,
                         sft_error *err);
void sfti_scan_end(sfti_scan *scan);

/* n bytes, at most a window, valid until the next call; NULL and err set if they are not there. */
const uint8_t *sfti_scan_more(sfti_scan *scan, size_t n);
static inline const uint8_t *sfti_scan_take(sfti_scan *scan, size_t n) {
    if (n > scan->len - scan->at) return sfti_scan_more(scan, n);
    scan->at += n;
    return scan->bytes + scan->at - n;
}

static inline uint64_t sfti_scan_offset(const sfti_scan *scan) {
    return scan->base + scan->at;
}

/* Step over n bytes; of a text *kept is where they stay in memory, or NULL. */
sft_code sfti_scan_skip(sfti_scan *scan, uint64_t n, const char **kept);
/* A line without its end, kept in memory. */
sft_code sfti_scan_line(sfti_scan *scan, sft_span *out);

#endif
