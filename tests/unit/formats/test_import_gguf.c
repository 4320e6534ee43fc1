/* GGUF: what is read of a header, and each fault that it can have. */
#define _GNU_SOURCE
#include "safetensors_import.h"
#include "unit/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* ── Files in memory ── */

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 };

typedef struct gguf {
    uint8_t bytes[8192];
    size_t len;
    bool big_endian;
} gguf;

static void put(gguf *g, uint64_t value, size_t bytes) {
    assert_true(g->len + bytes <= sizeof g->bytes);
    for (size_t i = 0; i < bytes; i++)
        g->bytes[g->len++] = (uint8_t)(value >> (8 * (g->big_endian ? bytes - 1 - i : i)));
}

static void put_bytes(gguf *g, const void *bytes, size_t len) {
    assert_true(g->len + len <= sizeof g->bytes);
    memcpy(g->bytes + g->len, bytes, len);
    g->len += len;
}

static void put_text(gguf *g, const char *text) {
    put(g, strlen(text), 8);
    put_bytes(g, text, strlen(text));
}

static void begin(gguf *g, uint32_t version, uint64_t tensors, uint64_t pairs) {
    *g = (gguf){ .big_endian = g->big_endian };
    put_bytes(g, "GGUF", 4);
    put(g, version, 4);
    put(g, tensors, 8);
    put(g, pairs, 8);
}

static void put_pair(gguf *g, const char *key, uint32_t type, uint64_t value, size_t bytes) {
    put_text(g, key);
    put(g, type, 4);
    put(g, value, bytes);
}

static void put_string(gguf *g, const char *key, const char *value) {
    put_text(g, key);
    put(g, STRING, 4);
    put_text(g, value);
}

static void put_tensor(gguf *g, const char *name, uint32_t rank, const uint64_t *fastest_first,
                       uint32_t type, uint64_t offset) {
    put_text(g, name);
    put(g, rank, 4);
    for (uint32_t d = 0; d < rank; d++) put(g, fastest_first[d], 8);
    put(g, type, 4);
    put(g, offset, 8);
}

static void pad(gguf *g, size_t to) {
    while (g->len % to) put(g, 0, 1);
}

/* Numbers counting up. */
static void put_data(gguf *g, size_t len) {
    for (size_t i = 0; i < len; i++) put(g, i, 1);
}

static sft_code open_with(const void *bytes, size_t len, const sft_import_options *options,
                          sft_import **out, sft_error *err) {
    return sft_import_open_source(sft_source_memory(bytes, len), options, out, err);
}

static sft_import *open_good(const gguf *g) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *import;
    if (open_with(g->bytes, g->len, NULL, &import, &err)) fail_msg("%s", err.message);
    assert_int_equal(sft_import_format_of(import), SFT_IMPORT_GGUF);
    return import;
}

static void open_bad(const gguf *g, sft_code code, uint64_t offset, const char *says) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *import;
    sft_code found = open_with(g->bytes, g->len, NULL, &import, &err);
    if (found != code || err.offset != offset || !strstr(err.message, says))
        fail_msg("%d at %llu: %s", (int)found, (unsigned long long)err.offset, err.message);
    assert_null(import);
}

static void read_part(const sft_import *import, size_t i, void *into, size_t len) {
    sft_part part = sft_import_part(import, i);
    sft_error err = SFT_ERROR_INIT;
    size_t got;
    assert_non_null(part.source);
    sft_code code = sft_source_read(part.source, part.begin, into, len, &got, &err);
    if (code) fail_msg("%s", err.message);
    assert_int_equal(got, len);
}

static const char *metadata(const sft_import *import, const char *key) {
    static char copy[64];
    const sft_pair *pairs = sft_import_metadata(import);
    for (size_t i = 0; i < sft_import_metadata_count(import); i++) {
        if (!sft_span_equal(pairs[i].key, sft_span_cstr(key))) continue;
        snprintf(copy, sizeof copy, "%.*s", (int)pairs[i].value.len, pairs[i].value.data);
        return copy;
    }
    return NULL;
}

static const uint64_t six[] = { 3, 2 }, blocks[] = { 64, 2 }, one[] = { 1 };

/* Q8_0 and F32, pairs of every kind. Returns where the data begin. */
static size_t make_good(gguf *g, uint32_t version) {
    begin(g, version, 3, 5);
    put_string(g, "general.architecture", "llama");
    put_pair(g, "general.alignment", U32, 64, 4);
    put_pair(g, "llama.block_count", U32, 2, 4);
    put_text(g, "tokens"), put(g, ARRAY, 4), put(g, STRING, 4), put(g, 2, 8);
    put_text(g, "a"), put_text(g, "bc");
    put_pair(g, "scale", F32, 0x3fc00000, 4);
    put_tensor(g, "blk.0.q", 2, blocks, 8, 0);
    put_tensor(g, "f", 2, six, 0, 192);
    put_tensor(g, "scalar", 0, NULL, 24, 256);
    pad(g, 64);
    size_t data = g->len;
    for (int i = 0; i < 4; i++) put(g, 0x3c00, 2), put_data(g, 32);
    pad(g, 64);
    put_data(g, 24), pad(g, 64), put_data(g, 1);
    return data;
}

/* ── What is read ── */

static void test_good(void **state) {
    uint8_t f[24], half[256];
    gguf g = { .len = 0 };
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        make_good(&g, version);
        sft_import *import = open_good(&g);
        assert_int_equal(sft_import_tensor_count(import), 3);
        sft_part part = sft_import_part(import, 0);
        assert_int_equal(part.spec.dtype, SFT_F16);
        assert_int_equal(part.spec.shape[0], 2);
        assert_int_equal(part.spec.shape[1], 64);
        assert_string_equal(sft_import_note(import, 0), "Q8_0");
        read_part(import, 0, half, sizeof half);
        assert_int_equal(half[2] | half[3] << 8, 0x3c00);
        assert_int_equal(half[66] | half[67] << 8, 0x3c00);
        part = sft_import_part(import, 1);
        assert_int_equal(part.spec.dtype, SFT_F32);
        assert_int_equal(part.spec.shape[0], 2);
        assert_int_equal(part.spec.shape[1], 3);
        assert_null(sft_import_note(import, 1));
        read_part(import, 1, f, sizeof f);
        for (size_t i = 0; i < sizeof f; i++) assert_int_equal(f[i], i);
        assert_int_equal(sft_import_part(import, 2).spec.rank, 0);
        assert_string_equal(metadata(import, "gguf.general.architecture"), "llama");
        assert_string_equal(metadata(import, "gguf.llama.block_count"), "2");
        assert_string_equal(metadata(import, "gguf.scale"), "1.5");
        assert_null(metadata(import, "gguf.tokens"));
        assert_int_equal(sft_import_left_count(import), 2);
        const sft_import_left *left = sft_import_left_at(import, 0);
        assert_int_equal(left->reason, SFT_IMPORT_LEFT_VALUE);
        assert_int_equal(left->count, 2);
        assert_int_equal(left->bytes, 31);
        assert_string_equal(left->text, "an array of string");
        assert_int_equal(sft_import_left_at(import, 1)->reason, SFT_IMPORT_LEFT_NOTE);
        sft_import_close(import);
    }
}

static void test_scalars(void **state) {
    static const struct {
        uint32_t type;
        uint64_t value;
        size_t bytes;
        const char *text;
    } rows[] = {
        { U8, 255, 1, "255" }, { I8, 0x80, 1, "-128" }, { U16, 65535, 2, "65535" },
        { I16, 0xffff, 2, "-1" }, { U32, 0xffffffff, 4, "4294967295" },
        { I32, 0x80000000, 4, "-2147483648" }, { F32, 0xc0000000, 4, "-2" },
        { BOOL, 0, 1, "false" }, { BOOL, 1, 1, "true" },
        { U64, UINT64_MAX, 8, "18446744073709551615" },
        { I64, UINT64_C(1) << 63, 8, "-9223372036854775808" }, { I64, 7, 8, "7" },
        { F64, UINT64_C(0x3fb999999999999a), 8, "0.10000000000000001" },
    };
    gguf g = { .len = 0 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int big = 0; big < 2; big++) {
            g.big_endian = big;
            begin(&g, 3, 0, 1);
            put_pair(&g, "k", rows[i].type, rows[i].value, rows[i].bytes);
            sft_import *import = open_good(&g);
            assert_string_equal(metadata(import, "gguf.k"), rows[i].text);
            assert_int_equal(sft_import_metadata_count(import), 1);
            sft_import_close(import);
        }
}

static void test_nested_arrays(void **state) {
    gguf g = { .len = 0 };
    (void)state;
    begin(&g, 3, 0, 2);
    put_text(&g, "a"), put(&g, ARRAY, 4), put(&g, ARRAY, 4), put(&g, 3, 8);
    put(&g, U16, 4), put(&g, 2, 8), put(&g, 0, 4);
    put(&g, ARRAY, 4), put(&g, 1, 8), put(&g, STRING, 4), put(&g, 1, 8), put_text(&g, "x");
    put(&g, F64, 4), put(&g, 0, 8);
    put_pair(&g, "b", U8, 9, 1);
    sft_import *import = open_good(&g);
    assert_string_equal(metadata(import, "gguf.b"), "9");
    assert_string_equal(sft_import_left_at(import, 0)->text, "an array of array");
    assert_int_equal(sft_import_left_at(import, 0)->count, 3);
    sft_import_close(import);
    begin(&g, 3, 0, 1);
    put_text(&g, "a"), put(&g, ARRAY, 4);
    for (int i = 0; i < 100; i++) put(&g, ARRAY, 4), put(&g, 1, 8);
    open_bad(&g, SFT_FOREIGN_NESTING, 24 + 9 + 4 + 63 * 12, "64 deep");
}

/* Texts that cannot be metadata are listed, not carried. */
static void test_texts(void **state) {
    gguf g = { .len = 0 };
    (void)state;
    begin(&g, 3, 0, 2);
    put_string(&g, "bad", "\xff");
    put_string(&g, "empty", "");
    sft_import *import = open_good(&g);
    assert_null(metadata(import, "gguf.bad"));
    assert_string_equal(metadata(import, "gguf.empty"), "");
    assert_string_equal(sft_import_left_at(import, 0)->text, "a string that is not UTF-8");
    sft_import_close(import);

    size_t text = (1 << 20) + 1, len = 24 + 9 + 4 + 8 + text;
    begin(&g, 3, 0, 1);
    put_text(&g, "k"), put(&g, STRING, 4), put(&g, text, 8);
    uint8_t *whole = calloc(1, len);
    assert_non_null(whole);
    memcpy(whole, g.bytes, g.len);
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(open_with(whole, len, NULL, &import, &err), SFT_OK);
    assert_int_equal(sft_import_metadata_count(import), 0);
    assert_int_equal(sft_import_left_at(import, 0)->bytes, text);
    sft_import_close(import);
    free(whole);
}

static void test_big_endian(void **state) {
    uint8_t f[24];
    gguf g = { .big_endian = true };
    (void)state;
    begin(&g, 3, 2, 1);
    put_pair(&g, "general.alignment", U32, 8, 4);
    put_tensor(&g, "f", 2, six, 0, 0);
    put_tensor(&g, "i", 1, one, 24, 24);
    pad(&g, 8);
    put_data(&g, 25);
    sft_import *import = open_good(&g);
    assert_int_equal(sft_import_part(import, 0).spec.shape[1], 3);
    assert_string_equal(sft_import_note(import, 0), "big-endian");
    assert_null(sft_import_note(import, 1));
    read_part(import, 0, f, sizeof f);
    for (size_t i = 0; i < sizeof f; i++) assert_int_equal(f[i], i / 4 * 4 + 3 - i % 4);
    sft_import_close(import);

    begin(&g, 3, 1, 0);
    put_tensor(&g, "q", 2, blocks, 8, 0);
    pad(&g, 32);
    put_data(&g, 136);
    open_bad(&g, SFT_FOREIGN_KIND, 24, "big-endian");
}

static void test_notes(void **state) {
    const uint64_t five[] = { 1, 1, 1, 1, 2 };
    gguf g = { .len = 0 };
    (void)state;
    begin(&g, 3, 1, 0);
    put_tensor(&g, "t", 5, five, 24, 0);
    pad(&g, 32);
    put_data(&g, 40);
    sft_import *import = open_good(&g);
    assert_int_equal(sft_import_part(import, 0).spec.rank, 5);
    assert_int_equal(sft_import_part(import, 0).spec.shape[0], 2);
    assert_int_equal(sft_import_left_count(import), 2);
    assert_int_equal(sft_import_left_at(import, 0)->reason, SFT_IMPORT_LEFT_RECORD);
    assert_int_equal(sft_import_left_at(import, 0)->bytes, 8);
    assert_int_equal(sft_import_left_at(import, 1)->reason, SFT_IMPORT_LEFT_NOTE);
    sft_import_close(import);
}

/* A scale that is infinite: F16 has no such value that is not an error, F32 takes it. */
static void test_range(void **state) {
    gguf g = { .len = 0 };
    uint8_t bytes[256];
    sft_error err = SFT_ERROR_INIT;
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    sft_import *import;
    size_t got;
    (void)state;
    begin(&g, 3, 1, 0);
    put_tensor(&g, "q", 2, blocks, 8, 0);
    pad(&g, 32);
    for (int i = 0; i < 4; i++) put(&g, i == 2 ? 0x7c00 : 0x3c00, 2), put_data(&g, 32);
    import = open_good(&g);
    sft_part part = sft_import_part(import, 0);
    assert_int_equal(sft_source_read(part.source, 0, bytes, sizeof bytes, &got, &err),
                     SFT_CAST_VALUE);
    assert_int_equal(err.tensor_len, 1);
    assert_int_equal(err.tensor[0], 'q');
    sft_import_close(import);
    options.dequantised = SFT_F32;
    assert_int_equal(open_with(g.bytes, g.len, &options, &import, &err), SFT_OK);
    assert_int_equal(sft_import_part(import, 0).spec.dtype, SFT_F32);
    read_part(import, 0, bytes, sizeof bytes);
    assert_int_equal(bytes[7], 0x3f);
    sft_import_close(import);
}

/* ── Faults ── */

static void test_versions(void **state) {
    gguf g = { .len = 0 };
    (void)state;
    begin(&g, 1, 0, 0), open_bad(&g, SFT_FOREIGN_KIND, 4, "version 1, which ggml has dropped");
    begin(&g, 0, 0, 0), open_bad(&g, SFT_FOREIGN_KIND, 4, "version 0");
    begin(&g, 4, 0, 0), open_bad(&g, SFT_FOREIGN_KIND, 4, "version 4");
    g.big_endian = true;
    begin(&g, 4, 0, 0), open_bad(&g, SFT_FOREIGN_KIND, 4, "version 4");
    begin(&g, 256, 0, 0), open_bad(&g, SFT_FOREIGN_KIND, 4, "version 256");
}

static void test_pair_faults(void **state) {
    gguf g = { .len = 0 };
    (void)state;
    begin(&g, 3, 0, 65537), open_bad(&g, SFT_FOREIGN_TABLE, 16, "65536");
    begin(&g, 3, 0, 1), put_pair(&g, "", U8, 1, 1), open_bad(&g, SFT_FOREIGN_SYNTAX, 24, "empty");
    begin(&g, 3, 0, 1), put_pair(&g, "\xc3", U8, 1, 1);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 24, "UTF-8");
    begin(&g, 3, 0, 1), put_pair(&g, "k", 13, 1, 1);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 33, "0 to 12, found 13");
    begin(&g, 3, 0, 1), put_pair(&g, "k", BOOL, 2, 1);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 37, "found 2");
    begin(&g, 3, 0, 3), put_pair(&g, "k", U8, 1, 1), put_pair(&g, "l", U8, 1, 1);
    put_pair(&g, "k", U16, 1, 2);
    open_bad(&g, SFT_FOREIGN_AMBIGUOUS, 24 + 2 * 14, "\"k\" twice");
    begin(&g, 3, 0, 1), put_pair(&g, "general.alignment", U64, 32, 8);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 24 + 25 + 4, "found u64");
    begin(&g, 3, 0, 1), put_pair(&g, "general.alignment", U32, 0, 4);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 24 + 25 + 4, "found 0");
    begin(&g, 3, 0, 1), put_pair(&g, "general.alignment", U32, 48, 4);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 24 + 25 + 4, "found 48");
    begin(&g, 3, 0, 1), put_text(&g, "k"), put(&g, ARRAY, 4), put(&g, 77, 4), put(&g, 1, 8);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 37, "found 77");
}

static void test_tensor_faults(void **state) {
    const uint64_t negative[] = { UINT64_C(1) << 63 }, huge[] = { UINT64_C(1) << 40, 1 << 24 };
    const uint64_t wide[] = { UINT64_C(1) << 62 }, far[] = { UINT64_C(1) << 60 };
    const uint64_t odd[] = { 33, 32 };
    gguf g = { .len = 0 };
    (void)state;
    begin(&g, 3, 1, 0), put_tensor(&g, "t", 1, negative, 24, 0);
    open_bad(&g, SFT_SIZE_OVERFLOW, 24 + 9 + 4, "2^63");
    begin(&g, 3, 1, 0), put_tensor(&g, "t", 2, huge, 24, 0);
    open_bad(&g, SFT_SIZE_OVERFLOW, 24 + 9 + 4 + 8, "2^63");
    begin(&g, 3, 1, 0), put_tensor(&g, "t", 1, wide, 28, 0);
    open_bad(&g, SFT_SIZE_OVERFLOW, 24 + 9 + 4 + 8, "2^64");
    begin(&g, 3, 1, 0), put_tensor(&g, "t", 1, far, 24, 0);
    open_bad(&g, SFT_FOREIGN_TRUNCATED, 64, "found the end");
    begin(&g, 3, 1, 0), put_tensor(&g, "t", 2, odd, 2, 0);
    open_bad(&g, SFT_FOREIGN_SIZE, 24 + 9 + 4 + 16, "blocks of 32 elements of Q4_0");
    begin(&g, 3, 1, 0), put_tensor(&g, "t", 0, NULL, 2, 0);
    open_bad(&g, SFT_FOREIGN_SIZE, 24 + 9 + 4, "found 1");
    begin(&g, 3, 1, 0), put_tensor(&g, "t", 1, one, 0, 32);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 24 + 9 + 4 + 8 + 4, "offset 0");
    begin(&g, 3, 2, 0), put_tensor(&g, "t", 1, one, 0, 0), put_tensor(&g, "u", 1, one, 0, 4);
    open_bad(&g, SFT_FOREIGN_SYNTAX, 24 + 33 + 9 + 4 + 8 + 4, "offset 32");
    begin(&g, 3, 2, 0), put_tensor(&g, "t", 1, one, 0, 0), put_tensor(&g, "t", 1, one, 0, 32);
    pad(&g, 32), put_data(&g, 64);
    open_bad(&g, SFT_FOREIGN_NAME, 24 + 33, "another tensor");
    begin(&g, 3, 1, 0), put_tensor(&g, "", 1, one, 0, 0), pad(&g, 32), put_data(&g, 32);
    open_bad(&g, SFT_FOREIGN_NAME, 24, "empty");
    begin(&g, 3, 1, 0), put_tensor(&g, "\xff", 1, one, 0, 0), pad(&g, 32), put_data(&g, 32);
    open_bad(&g, SFT_FOREIGN_NAME, 24, "UTF-8");
    begin(&g, 3, 1, 0), put_text(&g, "t"), put(&g, 65, 4);
    open_bad(&g, SFT_RANK_TOO_LARGE, 24 + 9, "found 65");
}

static void test_types_refused(void **state) {
    static const struct { uint32_t type; const char *says; } rows[] = {
        { 4, "Q4_2 (4), which ggml has removed" }, { 5, "Q4_3" }, { 31, "Q4_0_4_4" },
        { 33, "Q4_0_8_8" }, { 36, "IQ4_NL_4_4" }, { 38, "IQ4_NL_8_8" },
        { 9, "Q8_1 (9), which ggml computes with, and never stores" }, { 15, "Q8_K" },
        { 43, "(43), which is newer than this program" }, { UINT32_MAX, "newer" },
    };
    const uint64_t row[] = { 256 };
    gguf g = { .len = 0 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin(&g, 3, 1, 0);
        put_tensor(&g, "t", 1, row, rows[i].type, 0);
        pad(&g, 32);
        put_data(&g, 1024);
        open_bad(&g, SFT_FOREIGN_DTYPE, 24, rows[i].says);
    }
}

/* What stands behind a tensor of unknown size is still found. */
static void test_skip(void **state) {
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_import *import;
    gguf g = { .len = 0 };
    uint8_t byte;
    (void)state;
    options.skip = true;
    begin(&g, 3, 2, 0);
    put_tensor(&g, "new", 1, one, 99, 0), put_tensor(&g, "t", 1, one, 24, 64);
    pad(&g, 32);
    put_data(&g, 65);
    assert_int_equal(open_with(g.bytes, g.len, &options, &import, &err), SFT_OK);
    assert_int_equal(sft_import_tensor_count(import), 1);
    read_part(import, 0, &byte, 1);
    assert_int_equal(byte, 64);
    assert_int_equal(sft_import_left_at(import, 0)->reason, SFT_IMPORT_LEFT_SKIPPED);
    sft_import_close(import);
    begin(&g, 3, 2, 0); /* a gap must keep the alignment */
    put_tensor(&g, "new", 1, one, 99, 0), put_tensor(&g, "t", 1, one, 24, 63);
    pad(&g, 32), put_data(&g, 65);
    assert_int_equal(open_with(g.bytes, g.len, &options, &import, &err), SFT_FOREIGN_SYNTAX);
}

/* ── Cut files, and numbers that promise more than there is ── */

static uint64_t allocated, most_allocated, allocations, most_allocations;

static void *count_resize(void *ctx, void *ptr, size_t old, size_t size) {
    (void)ctx;
    if (size > 0 && allocations++ >= most_allocations) return NULL;
    allocated += size - old;
    if (allocated > most_allocated) most_allocated = allocated;
    if (size > 0) return realloc(ptr, size);
    free(ptr);
    return NULL;
}

static sft_code open_counted(const void *bytes, size_t len, sft_error *err) {
    const sft_allocator alloc = { .resize = count_resize };
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    sft_import *import;
    options.alloc = &alloc;
    allocated = most_allocated = allocations = 0;
    sft_code code = open_with(bytes, len, &options, &import, err);
    sft_import_close(import);
    assert_int_equal(allocated, 0);
    assert_true(most_allocated < (1 << 20));
    return code;
}

static void test_cut(void **state) {
    gguf g = { .len = 0 };
    (void)state;
    most_allocations = UINT64_MAX;
    make_good(&g, 3);
    for (size_t len = 0; len <= g.len; len++) {
        sft_error err = SFT_ERROR_INIT;
        uint8_t *part = malloc(len + !len); /* exact, for the sanitizers */
        assert_non_null(part);
        memcpy(part, g.bytes, len);
        sft_code code = open_counted(part, len, &err);
        assert_int_equal(code, len < 4       ? SFT_FOREIGN_KIND
                               : len < g.len ? SFT_FOREIGN_TRUNCATED
                                             : SFT_OK);
        assert_true(code == SFT_OK || err.offset <= len + 64);
        free(part);
    }
}

static void test_promises(void **state) {
    const uint64_t most = UINT64_C(1) << 60;
    sft_error err = SFT_ERROR_INIT;
    gguf g = { .len = 0 };
    (void)state;
    most_allocations = UINT64_MAX;
    begin(&g, 3, most, 0), put_tensor(&g, "t", 1, one, 24, 0);
    assert_int_equal(open_counted(g.bytes, g.len, &err), SFT_FOREIGN_TRUNCATED);
    begin(&g, 3, 0, 65536);
    assert_int_equal(open_counted(g.bytes, g.len, &err), SFT_FOREIGN_TRUNCATED);
    begin(&g, 3, 0, 1), put(&g, most, 8);
    assert_int_equal(open_counted(g.bytes, g.len, &err), SFT_FOREIGN_TRUNCATED);
    assert_int_equal(err.offset, 32);
    begin(&g, 3, 0, 1), put_text(&g, "k"), put(&g, STRING, 4), put(&g, UINT64_MAX, 8);
    assert_int_equal(open_counted(g.bytes, g.len, &err), SFT_FOREIGN_TRUNCATED);
    for (uint32_t type = U8; type <= F64; type++) {
        begin(&g, 3, 0, 1);
        put_text(&g, "k"), put(&g, ARRAY, 4), put(&g, type, 4), put(&g, UINT64_MAX / 2, 8);
        assert_int_equal(open_counted(g.bytes, g.len, &err), SFT_FOREIGN_TRUNCATED);
    }
    begin(&g, 3, 1, 0), put(&g, most, 8);
    assert_int_equal(open_counted(g.bytes, g.len, &err), SFT_FOREIGN_TRUNCATED);
    begin(&g, 3, 1, 0), put_text(&g, "t"), put(&g, 64, 4);
    assert_int_equal(open_counted(g.bytes, g.len, &err), SFT_FOREIGN_TRUNCATED);
}

static void test_out_of_memory(void **state) {
    sft_error err = SFT_ERROR_INIT;
    gguf g = { .len = 0 };
    (void)state;
    make_good(&g, 3);
    for (most_allocations = 0; open_counted(g.bytes, g.len, &err); most_allocations++) {
        assert_int_equal(err.code, SFT_OUT_OF_MEMORY);
        assert_true(most_allocations < 1000);
    }
    assert_true(most_allocations >= 2);
}

/* ── Several files ── */

static const char *part_names[] = { "m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                    "m-00003-of-00003.gguf" };

static void write_split(const char *name, uint64_t number, uint64_t count, uint64_t tensors,
                        const char *tensor, const char *other) {
    gguf g = { .len = 0 };
    begin(&g, 3, 1, 4);
    put_pair(&g, "split.no", U16, number, 2);
    put_pair(&g, "split.count", U16, count, 2);
    put_pair(&g, "split.tensors.count", I32, tensors, 4);
    put_string(&g, "general.name", other);
    put_tensor(&g, tensor, 1, one, 24, 0);
    pad(&g, 32);
    put(&g, number, 1);
    FILE *file = fopen(temp_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(g.bytes, 1, g.len, file), g.len);
    fclose(file);
}

static void open_split(const char *name, sft_code code, const char *says) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *import;
    sft_code found = sft_import_open(temp_path(name), NULL, &import, &err);
    if (found != code || !strstr(err.message, says)) fail_msg("%d: %s", (int)found, err.message);
    sft_import_close(import);
}

static void write_all(void) {
    write_split(part_names[0], 0, 3, 3, "a", "first");
    write_split(part_names[1], 1, 3, 3, "b", "second");
    write_split(part_names[2], 2, 3, 3, "c", "third");
}

static void test_split(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *import;
    uint8_t byte;
    (void)state;
    write_all();
    assert_int_equal(sft_import_open(temp_path(part_names[0]), NULL, &import, &err), SFT_OK);
    assert_int_equal(sft_import_tensor_count(import), 3);
    assert_int_equal(sft_import_shard_count(import), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sft_import_part(import, i).spec.name.data[0], "abc"[i]);
        assert_int_equal(sft_import_shard(import, i), i);
        read_part(import, i, &byte, 1);
        assert_int_equal(byte, i);
    }
    assert_string_equal(metadata(import, "gguf.general.name"), "first");
    assert_null(metadata(import, "gguf.split.no")); /* of all parts none of these is true */
    assert_null(metadata(import, "gguf.split.count"));
    assert_null(metadata(import, "gguf.split.tensors.count"));
    sft_import_close(import);
    open_split(part_names[1], SFT_FOREIGN_KIND, "found part 2 of 3");
    write_split(part_names[1], 2, 3, 3, "b", "");
    open_split(part_names[0], SFT_FOREIGN_AMBIGUOUS, "found part 3 of 3");
    write_split(part_names[1], 1, 4, 3, "b", "");
    open_split(part_names[0], SFT_FOREIGN_AMBIGUOUS, "found part 2 of 4");
    write_all();
    write_split(part_names[0], 0, 3, 4, "a", "");
    open_split(part_names[0], SFT_FOREIGN_SYNTAX, "expected 4 tensors in all parts");
    write_split(part_names[0], 0, 3, 3, "b", "");
    open_split(part_names[0], SFT_FOREIGN_NAME, "another tensor");
    write_all();
    assert_int_equal(truncate(temp_path(part_names[1]), 150), 0);
    open_split(part_names[0], SFT_FOREIGN_TRUNCATED, "in m-00002-of-00003.gguf");
    write_all();
    assert_int_equal(unlink(temp_path(part_names[2])), 0);
    open_split(part_names[0], SFT_NOT_FOUND, part_names[2]);
    write_split("other.gguf", 0, 3, 3, "a", "");
    open_split("other.gguf", SFT_FOREIGN_KIND, "-00001-of-00003.gguf");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),          cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_nested_arrays), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_big_endian),    cmocka_unit_test(test_notes),
        cmocka_unit_test(test_range),         cmocka_unit_test(test_versions),
        cmocka_unit_test(test_pair_faults),   cmocka_unit_test(test_tensor_faults),
        cmocka_unit_test(test_types_refused), cmocka_unit_test(test_skip),
        cmocka_unit_test(test_cut),           cmocka_unit_test(test_promises),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test_setup_teardown(test_split, temp_dir_make, temp_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
