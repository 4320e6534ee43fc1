/* Files of many tensors for tests of plans, an oracle of what their parts hold, and a slow device
 * that copies from slots late. */
#ifndef READ_CASE_H
#define READ_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "safetensors_read.h"
#include "unit/temp_model.h"

#define READ_MOST 8192 /* tensors of a file */

static uint64_t read_random_state = 1;

static inline uint64_t read_random(void) {
    read_random_state ^= read_random_state << 13;
    read_random_state ^= read_random_state >> 7;
    read_random_state ^= read_random_state << 17;
    return read_random_state;
}

static inline size_t read_below(size_t most) {
    return (size_t)(read_random() % most);
}

static inline unsigned char read_byte(uint64_t i) {
    uint64_t x = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return (unsigned char)(x >> 56);
}

/* A file of `count` tensors of these shapes (rank 2, dtype U8), dense, with other bytes at each
 * place. */
typedef struct read_shape {
    uint64_t rows, columns;
} read_shape;

static inline const char *read_file_new(temp_folder *t, const char *name,
                                        const read_shape *shapes, size_t count) {
    size_t cap = 64 + count * 96, len = 0, total = 0;
    char *header = malloc(cap);
    temp_must(header != NULL, "header");
    header[len++] = '{';
    for (size_t i = 0; i < count; i++) {
        size_t bytes = (size_t)(shapes[i].rows * shapes[i].columns);
        len += (size_t)snprintf(header + len, cap - len,
                                "%s\"t%zu\":{\"dtype\":\"U8\",\"shape\":[%llu,%llu],"
                                "\"data_offsets\":[%zu,%zu]}",
                                i ? "," : "", i, (unsigned long long)shapes[i].rows,
                                (unsigned long long)shapes[i].columns, total, total + bytes);
        total += bytes;
    }
    header[len++] = '}';
    header[len] = '\0';
    unsigned char *data = malloc(total + 1);
    temp_must(data != NULL, "data");
    for (size_t i = 0; i < total; i++) data[i] = read_byte(i);
    const char *path = temp_model(t, name, header, data, total);
    free(data);
    free(header);
    return path;
}

static inline sft_file *read_file_open(const char *path, sft_mode mode) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    options.mode = mode;
    assert_int_equal(sft_open(path, &options, &file, NULL), SFT_OK);
    return file;
}

/* ── Parts, and what they should become ── */

typedef struct read_model {
    sft_read_part parts[READ_MOST];
    sft_slice slices[256];
    size_t count, slice_count;
    sft_read_block blocks[READ_MOST];
    size_t block_count;
    char *expected[READ_MOST]; /* of each block */
    char *found[READ_MOST];    /* device memory */
} read_model;

static inline uint64_t read_part_bytes(const sft_read_part *part) {
    uint64_t bytes = part->tensor->end - part->tensor->begin;
    if (part->slice)
        assert_int_equal(sft_slice_size(part->slice, part->tensor->dtype, NULL, &bytes, NULL),
                         SFT_OK);
    return bytes;
}

static inline sft_read_part *read_add(read_model *m, const sft_file *file, size_t tensor,
                                      const char *slice, size_t block, uint64_t at) {
    sft_read_part *part = &m->parts[m->count++];
    assert_true(m->count <= READ_MOST);
    *part = (sft_read_part){ file, sft_file_tensor_at(file, tensor), NULL, block, at };
    if (!slice) return part;
    assert_true(m->slice_count < 256);
    sft_slice *own = &m->slices[m->slice_count++];
    assert_int_equal(sft_slice_parse(part->tensor->shape, part->tensor->rank,
                                     sft_span_cstr(slice), own, NULL), SFT_OK);
    part->slice = own;
    return part;
}

/* Blocks as large as the parts need, memory of a device and what it should hold in the end:
 * bytes of parts, and 0xEE where there is none. */
static inline void read_finish(read_model *m) {
    for (size_t i = 0; i < m->count; i++) {
        const sft_read_part *part = &m->parts[i];
        uint64_t end = part->at + read_part_bytes(part);
        if (part->block >= m->block_count) m->block_count = part->block + 1;
        if (end > m->blocks[part->block].bytes) m->blocks[part->block].bytes = end;
    }
    for (size_t b = 0; b < m->block_count; b++) {
        size_t bytes = (size_t)m->blocks[b].bytes;
        m->expected[b] = malloc(bytes + 1);
        m->found[b] = malloc(bytes + 1);
        temp_must(m->expected[b] && m->found[b], "blocks");
        memset(m->expected[b], 0xEE, bytes + 1);
        memset(m->found[b], 0xEE, bytes + 1);
    }
    for (size_t i = 0; i < m->count; i++) {
        const sft_read_part *part = &m->parts[i];
        char *into = m->expected[part->block] + part->at;
        size_t len = (size_t)read_part_bytes(part);
        sft_code code = part->slice ? sft_slice_read(part->file, part->tensor, part->slice, into,
                                                     len, NULL)
                                    : sft_read_into(part->file, part->tensor, into, len, NULL);
        assert_int_equal(code, SFT_OK);
    }
}

/* Which bytes of blocks parts want: others a copy may overwrite. */
static inline void read_compare(const read_model *m) {
    for (size_t i = 0; i < m->count; i++) {
        const sft_read_part *part = &m->parts[i];
        size_t len = (size_t)read_part_bytes(part);
        if (memcmp(m->found[part->block] + part->at, m->expected[part->block] + part->at, len))
            fail_msg("part %zu differs", i);
    }
}

static inline void read_wipe(read_model *m) {
    for (size_t b = 0; b < m->block_count; b++)
        memset(m->found[b], 0xEE, (size_t)m->blocks[b].bytes);
}

static inline void read_model_free(read_model *m) {
    for (size_t b = 0; b < m->block_count; b++) {
        free(m->expected[b]);
        free(m->found[b]);
    }
    free(m);
}

static inline read_model *read_model_new(void) {
    read_model *m = calloc(1, sizeof *m);
    temp_must(m != NULL, "model");
    return m;
}

#endif
