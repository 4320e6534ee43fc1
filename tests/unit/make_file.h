/* Files in memory for tests: 8 length bytes, a header as text, data. */
#ifndef TEST_MAKE_FILE_H
#define TEST_MAKE_FILE_H

#include "safetensors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_file {
    unsigned char *bytes;
    size_t len;
    size_t data; /* where data begins */
} test_file;

/* data NULL: byte i of the data is i * 7 + 3, cut to 8 bits. */
static inline test_file make_file(const char *header, const void *data, size_t data_len) {
    size_t n = strlen(header);
    test_file f = { malloc(8 + n + data_len + 1), 8 + n + data_len, 8 + n };
    assert(f.bytes);
    for (int i = 0; i < 8; i++) f.bytes[i] = (unsigned char)((uint64_t)n >> (8 * i));
    memcpy(f.bytes + 8, header, n);
    for (size_t i = 0; i < data_len; i++)
        f.bytes[8 + n + i] = data ? ((const unsigned char *)data)[i] : (unsigned char)(i * 7 + 3);
    return f;
}

static inline void free_file(test_file *f) {
    free(f->bytes);
    f->bytes = NULL;
}

/* A source over memory that counts its reads, hides its memory and can misbehave. */
typedef struct test_source {
    const unsigned char *bytes;
    size_t len;
    unsigned reads, closed;
    uint64_t read_bytes;
    uint64_t fail_at;  /* a read that touches this byte fails; UINT64_MAX: none */
    size_t ends_at;    /* the bytes end here, whatever size says */
    bool forward_only; /* like a pipe */
    uint64_t position;
} test_source;

static inline sft_code read_test_source(void *ctx, uint64_t offset, void *into, size_t len,
                                        size_t *got, sft_error *err) {
    test_source *s = ctx;
    __atomic_fetch_add(&s->reads, 1, __ATOMIC_RELAXED);
    *got = 0;
    if (s->fail_at >= offset && s->fail_at - offset < len)
        return sft_error_set(err, SFT_IO_READ, 5, "the test says so");
    if (s->forward_only && offset < s->position)
        return sft_error_set(err, SFT_OUT_OF_ORDER, 0, "read backwards");
    if (offset < s->ends_at)
        *got = len < s->ends_at - offset ? len : (size_t)(s->ends_at - offset);
    if (*got) memcpy(into, s->bytes + offset, *got);
    __atomic_fetch_add(&s->read_bytes, *got, __ATOMIC_RELAXED);
    if (s->forward_only) s->position = offset + *got;
    return SFT_OK;
}

static inline void close_test_source(void *ctx) {
    ((test_source *)ctx)->closed++;
}

static inline test_source make_source(const test_file *f) {
    test_source s = { f->bytes, f->len, 0, 0, 0, UINT64_MAX, f->len, false, 0 };
    return s;
}

static const sft_source_vtable test_source_source_vtable = {
    sizeof(sft_source_vtable), read_test_source, close_test_source, NULL, NULL
};

static inline sft_source source_of(test_source *s, uint64_t size) {
    sft_source out = { s, &test_source_source_vtable, size, NULL, false };
    return out;
}

/* An allocator that counts what is held, its peak, and fails on the n-th call. */
typedef struct test_memory {
    size_t held, peak, calls, fail_on; /* fail_on 0: never */
} test_memory;

static inline void *resize_test_memory(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    test_memory *m = ctx;
    if (new_size == 0) {
        m->held -= old_size;
        free(ptr);
        return NULL;
    }
    if (++m->calls == m->fail_on) return NULL;
    void *now = realloc(ptr, new_size);
    if (!now) return NULL;
    m->held += new_size - old_size;
    if (m->held > m->peak) m->peak = m->held;
    return now;
}

#endif
