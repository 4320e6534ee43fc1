/* Adapters and models in memory, spelt as text, and what comes of them as text of the same kind:
 *   "a.weight F32 2,2 1 2 3 4; a.alpha F16 - 8; =kept yes"
 * a name, a dtype, a shape ("-" has no dimensions), values, which are repeated to the end and 0
 * where there are none; "=" makes a pair of metadata. */
#ifndef ADAPTER_SPELL_H
#define ADAPTER_SPELL_H

#include "safetensors_cast.h"
#include "unit/adapter_case.h"

#include <stdio.h>

/* The elements of one tensor, as bytes. */
static inline size_t spell_values(const char *text, sft_dtype dtype, uint64_t count, uint8_t *out) {
    float values[512] = { 0 }, wide[4096];
    uint64_t given = 0;
    assert_true(count <= 4096);
    for (char *end; given < 512 && (values[given] = strtof(text, &end), end > text); text = end)
        given++;
    for (uint64_t i = 0; i < count; i++) wide[i] = given ? values[i % given] : 0;
    if (sft_dtype_describe(dtype)->kind != SFT_KIND_FLOAT) {
        for (uint64_t i = 0; i < count; i++) out[i] = (uint8_t)(int)wide[i];
        return (size_t)(count * sft_dtype_describe(dtype)->bits / 8);
    }
    assert_int_equal(sft_cast(SFT_F32, wide, dtype, out, count, NULL, NULL, NULL), SFT_OK);
    return (size_t)(count * sft_dtype_describe(dtype)->bits / 8);
}

static inline test_file spell_file(const char *text) {
    char *header = calloc(1, 2 * strlen(text) + 65536), pairs[4096] = "";
    uint8_t *data = calloc(1, 1 << 18);
    size_t at = 0, len = 1, pairs_len = 0;
    assert_non_null(header);
    assert_non_null(data);
    header[0] = '{';
    while (*text) {
        const char *next = strchr(text, ';');
        size_t size = next ? (size_t)(next - text) : strlen(text);
        char *one = calloc(1, size + 1), name[1024], dtype[16], shape[64];
        int used = 0;
        assert_non_null(one);
        memcpy(one, text, size);
        text += size + (next != NULL);
        if (sscanf(one, " =%1023s %n", name, &used) == 1) {
            pairs_len += (size_t)sprintf(pairs + pairs_len, "%s\"%s\":\"", pairs_len ? "," : "",
                                         name);
            for (const char *c = one + used; *c; c++) {
                if (*c == '"') pairs[pairs_len++] = '\\';
                pairs[pairs_len++] = *c;
            }
            pairs[pairs_len++] = '"';
        } else if (sscanf(one, " %1023s %15s %63s%n", name, dtype, shape, &used) == 3) {
            sft_dtype type = SFT_F32;
            uint64_t count = 1;
            size_t begin = at;
            assert_true(sft_dtype_parse(sft_span_cstr(dtype), &type));
            for (char *c = shape, *end; *c && *c != '-'; c = *end ? end + 1 : end)
                count *= strtoull(c, &end, 10);
            at += spell_values(one + used, type, count, data + at);
            len += (size_t)sprintf(header + len, "\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
                                   "\"data_offsets\":[%zu,%zu]},", name, dtype,
                                   *shape == '-' ? "" : shape, begin, at);
        }
        free(one);
    }
    sprintf(header + len, "\"__metadata__\":{%s}}", pairs);
    test_file made = make_file(header, data, at);
    free(header);
    free(data);
    return made;
}

/* Tensors in the order of the file, without metadata. */
static inline void spell_set(const sft_set *set, char *out, size_t cap) {
    size_t len = 0;
    *out = '\0';
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        const sft_dtype_info *dtype = sft_dtype_describe(tensor->dtype);
        uint8_t bytes[8192];
        float values[2048];
        uint64_t size = tensor->end - tensor->begin, count = size * 8 / dtype->bits;
        assert_true(size <= sizeof bytes && count <= 2048);
        assert_int_equal(sft_read_bytes(sft_set_shard_at(set, sft_set_tensor_shard(set, i)),
                                        tensor->offset, bytes, (size_t)size, NULL), SFT_OK);
        len += (size_t)snprintf(out + len, cap - len, "%s%.*s %s ", len ? "; " : "",
                                (int)tensor->name.len, tensor->name.data, dtype->name);
        for (uint32_t k = 0; k < tensor->rank; k++)
            len += (size_t)snprintf(out + len, cap - len, "%s%llu", k ? "," : "",
                                    (unsigned long long)tensor->shape[k]);
        if (tensor->rank == 0) len += (size_t)snprintf(out + len, cap - len, "-");
        if (dtype->kind == SFT_KIND_FLOAT)
            assert_int_equal(sft_cast(tensor->dtype, bytes, SFT_F32, values, count, NULL, NULL,
                                      NULL), SFT_OK);
        for (uint64_t n = 0; n < count; n++) {
            double one = dtype->kind == SFT_KIND_FLOAT ? (double)values[n] : (double)bytes[n];
            bool none = one < 1e-12 && one > -1e-12; /* what a factorisation leaves of 0 */
            len += (size_t)snprintf(out + len, cap - len, " %.5g", none ? 0 : one);
        }
        assert_true(len < cap);
    }
}

static inline void spell_buffer(const sft_buffer *file, char *out, size_t cap) {
    test_file f = { .bytes = (uint8_t *)file->data, .len = file->len };
    sft_set *set = adapter_set(&f, NULL);
    assert_non_null(set);
    spell_set(set, out, cap);
    sft_set_close(set);
}

/* Runs case i, which ends with that code and those tensors, or words of its message; and again
 * while its n-th allocation fails, and all that follow: then it is out of memory and leaves none
 * taken. */
typedef sft_code spell_run(const void *one, const sft_allocator *alloc, char *out, size_t cap,
                           sft_error *err);

#define SPELL_STEP 5 /* of n, and more where there are many: cases begin at different ones */

static inline bool spell_case(size_t i, spell_run *run, const void *one, const char *what,
                              sft_code want, const char *text) {
    static char out[1 << 16];
    sft_error err = { .code = SFT_OK };
    sft_code code = run(one, NULL, out, sizeof out, &err);
    if (code != want || (code ? !strstr(err.message, text) : strcmp(out, text) != 0)) {
        if (code) print_error("%s: %d: %s\n", what, (int)code, err.message);
        else print_error("%s: %s\n", what, out);
        return false;
    }
    code = SFT_OUT_OF_MEMORY;
    for (size_t n = i % SPELL_STEP; code == SFT_OUT_OF_MEMORY; n += SPELL_STEP + n / 32) {
        short_memory memory = { .left = n };
        sft_allocator alloc = { short_resize, &memory };
        code = run(one, &alloc, out, sizeof out, &err);
        if (memory.taken == 0 && (code == SFT_OUT_OF_MEMORY || code == want)) continue;
        print_error("%s: %zu allocations: %d, %zu bytes taken\n", what, n, (int)code,
                    memory.taken);
        return false;
    }
    return true;
}

#endif
