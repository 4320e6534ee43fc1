/* Numbers and strings of a GGUF file. Tests: test_import_gguf.c. */
#include "formats/gguf/gguf.h"

#include <string.h>

sft_code sfti_gguf_begin(sfti_gguf_cursor *c, sfti_import *im, const sft_source *source) {
    uint8_t *window = sfti_arena_take(&im->arena, SFTI_GGUF_WINDOW);
    *c = (sfti_gguf_cursor){ .im = im, .source = source, .window = window };
    return window ? SFT_OK : sfti_fail_memory(im->err, SFTI_GGUF_WINDOW);
}

static sft_code check_left(const sfti_gguf_cursor *c, uint64_t len) {
    uint64_t left = c->source->size - c->at;
    if (len <= left) return SFT_OK;
    return sfti_fail_byte(c->im->err, SFT_FOREIGN_TRUNCATED, c->at,
                          "expected %llu bytes, found the end of the file after %llu",
                          (unsigned long long)len, (unsigned long long)left);
}

/* A window begins with what the last one has of it, or with the few bytes that were skipped: reads
 * that follow one another without a gap let a remote source read ahead. */
static sft_code fill_window(sfti_gguf_cursor *c, size_t len) {
    uint64_t last = c->begin + c->filled, begin = c->at;
    size_t kept = 0;
    if (c->at >= c->begin && c->at < last) {
        kept = (size_t)(last - c->at);
        memmove(c->window, c->window + (c->at - c->begin), kept);
    } else if (c->at > last && c->at - last <= SFTI_GGUF_WINDOW - len) {
        begin = last;
    }
    uint64_t left = c->source->size - begin;
    c->begin = begin;
    c->filled = left < SFTI_GGUF_WINDOW ? (size_t)left : SFTI_GGUF_WINDOW;
    return sfti_import_read(c->im, c->source, begin + kept, c->window + kept, c->filled - kept);
}

/* The next len bytes, at most a window, valid until the next call. SFT_FOREIGN_TRUNCATED. */
static sft_code take(sfti_gguf_cursor *c, size_t len, const uint8_t **out) {
    sft_code code = check_left(c, len);
    bool inside = c->at >= c->begin && c->at - c->begin <= c->filled
                  && len <= c->filled - (size_t)(c->at - c->begin);
    if (!code && !inside) code = fill_window(c, len);
    if (code) return code;
    *out = c->window + (c->at - c->begin);
    c->at += len;
    return SFT_OK;
}

sft_code sfti_gguf_skip(sfti_gguf_cursor *c, uint64_t len) {
    sft_code code = check_left(c, len);
    if (!code) c->at += len;
    return code;
}

sft_code sfti_gguf_number(sfti_gguf_cursor *c, size_t bytes, uint64_t *out) {
    const uint8_t *at;
    uint64_t value = 0;
    sft_code code = take(c, bytes, &at);
    if (code) return code;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * (c->big_endian ? bytes - 1 - i : i));
    *out = value;
    return SFT_OK;
}

sft_code sfti_gguf_u32(sfti_gguf_cursor *c, uint32_t *out) {
    uint64_t value;
    sft_code code = sfti_gguf_number(c, 4, &value);
    if (!code) *out = (uint32_t)value;
    return code;
}

/* Short ones come out of the window. */
static sft_code keep_string(sfti_gguf_cursor *c, size_t len, sft_span *out) {
    const uint8_t *at;
    uint8_t *bytes;
    sft_code code;
    if (len > SFTI_GGUF_WINDOW) {
        code = sfti_import_load(c->im, c->source, c->at, len, &bytes);
        c->at += len;
    } else {
        code = take(c, len, &at);
        if (code) return code;
        bytes = (uint8_t *)sfti_arena_copy(&c->im->arena, at, len);
        if (!bytes) code = sfti_fail_memory(c->im->err, len);
    }
    if (!code) *out = (sft_span){ (const char *)bytes, len };
    return code;
}

sft_code sfti_gguf_string(sfti_gguf_cursor *c, uint64_t most, sft_span *out) {
    uint64_t len;
    *out = (sft_span){ NULL, 0 };
    sft_code code = sfti_gguf_number(c, 8, &len);
    if (!code) code = check_left(c, len);
    if (code) return code;
    return len <= most ? keep_string(c, (size_t)len, out) : sfti_gguf_skip(c, len);
}
