/* A file read from front to back, a window at a time: its numbers and strings. */
#ifndef SFTI_IMPORT_GGUF_CURSOR_H
#define SFTI_IMPORT_GGUF_CURSOR_H

#include "formats/parts/state.h"

#define SFTI_GGUF_WINDOW ((size_t)1 << 16)

typedef struct sfti_gguf_cursor {
    sfti_import *im;
    const sft_source *source;
    uint64_t at;     /* the next byte */
    uint64_t begin;  /* window holds [begin, begin + filled) */
    size_t filled;
    uint8_t *window; /* SFTI_GGUF_WINDOW bytes */
    bool big_endian;
} sfti_gguf_cursor;

sft_code sfti_gguf_begin(sfti_gguf_cursor *c, sfti_import *im, const sft_source *source);
/* The next len bytes, at most a window, valid until the next call. SFT_FOREIGN_TRUNCATED. */
sft_code sfti_gguf_take(sfti_gguf_cursor *c, size_t len, const uint8_t **out);
sft_code sfti_gguf_skip(sfti_gguf_cursor *c, uint64_t len);
/* A number of 1, 2, 4 or 8 bytes in the file's byte order. */
sft_code sfti_gguf_number(sfti_gguf_cursor *c, size_t bytes, uint64_t *out);
sft_code sfti_gguf_u32(sfti_gguf_cursor *c, uint32_t *out);
/* A string of at most `most` bytes in the arena; a longer one is skipped: *out has no data. */
sft_code sfti_gguf_string(sfti_gguf_cursor *c, uint64_t most, sft_span *out);

#endif
