/* Plans: order, offsets and header text, byte for byte as the official writer has them. */
#include "safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sft_spec spec_of(const char *name, sft_dtype dtype, uint32_t rank,
                        const uint64_t *shape) {
    sft_spec spec = { sft_span_cstr(name), dtype, rank, shape };
    return spec;
}

static sft_pair pair_of(const char *key, const char *value) {
    sft_pair pair = { sft_span_cstr(key), sft_span_cstr(value) };
    return pair;
}

static sft_plan *plan_of(const sft_spec *specs, size_t count, const sft_pair *pairs,
                         size_t pair_count, const sft_plan_options *options) {
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = NULL;
    sft_code code = sft_plan_new(specs, count, pairs, pair_count, options, &plan, &err);
    if (code != SFT_OK) print_error("%s\n", err.message);
    assert_int_equal(code, SFT_OK);
    assert_non_null(plan);
    return plan;
}

/* The header is `text`, padded with spaces so that the data begins at `start`. */
static void expect_head(const sft_plan *plan, const char *text, size_t start) {
    sft_span head = sft_plan_head(plan);
    size_t len = strlen(text);
    assert_int_equal(head.len, start);
    assert_true(8 + len <= start);
    for (int i = 0; i < 8; i++) {
        assert_int_equal((unsigned char)head.data[i], (start - 8) >> (8 * i) & 255);
    }
    assert_memory_equal(head.data + 8, text, len);
    for (size_t i = 8 + len; i < start; i++) assert_int_equal(head.data[i], ' ');
}

static const uint64_t two_by_two[] = { 2, 2 };

static void test_empty(void **state) {
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    (void)state;
    sft_plan *plan = plan_of(NULL, 0, NULL, 0, NULL);
    expect_head(plan, "{}", 16);
    assert_int_equal(sft_plan_total(plan), 16);
    assert_int_equal(sft_plan_tensor_count(plan), 0);
    assert_null(sft_plan_tensor_at(plan, 0));
    assert_true(sft_plan_position(plan, 0) == SIZE_MAX);
    sft_plan_free(plan);
    options.has_metadata = true;
    plan = plan_of(NULL, 0, NULL, 0, &options);
    expect_head(plan, "{\"__metadata__\":{}}", 32);
    sft_plan_free(plan);
    sft_plan_free(NULL);
}

static void test_golden(void **state) {
    sft_spec test = spec_of("test", SFT_I32, 2, two_by_two);
    sft_pair pair = pair_of("framework", "pt");
    (void)state;
    sft_plan *plan = plan_of(&test, 1, NULL, 0, NULL);
    expect_head(plan, "{\"test\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}",
                8 + 64);
    assert_int_equal(sft_plan_total(plan), 8 + 64 + 16);
    const sft_tensor *tensor = sft_plan_tensor_at(plan, 0);
    assert_int_equal(tensor->name.len, 4);
    assert_memory_equal(tensor->name.data, "test", 4);
    assert_int_equal(tensor->dtype, SFT_I32);
    assert_int_equal(tensor->rank, 2);
    assert_memory_equal(tensor->shape, two_by_two, sizeof two_by_two);
    assert_int_equal(tensor->begin, 0);
    assert_int_equal(tensor->end, 16);
    assert_int_equal(tensor->offset, 72);
    sft_plan_free(plan);
    plan = plan_of(&test, 1, &pair, 1, NULL);
    expect_head(plan, "{\"__metadata__\":{\"framework\":\"pt\"},\"test\":{\"dtype\":\"I32\","
                      "\"shape\":[2,2],\"data_offsets\":[0,16]}}", 8 + 96);
    sft_plan_free(plan);
}

static void test_order(void **state) {
    static const uint64_t one[] = { 1 };
    const sft_spec specs[] = {
        spec_of("b", SFT_F16, 1, one), spec_of("a", SFT_I32, 1, one),
        spec_of("a2", SFT_F16, 1, one), spec_of("z", SFT_U64, 1, one),
        spec_of("\xc3\xa9", SFT_F16, 1, one), spec_of("B", SFT_F16, 1, one),
        spec_of("", SFT_F16, 0, NULL), spec_of("bool", SFT_BOOL, 1, one),
        spec_of("c64", SFT_C64, 1, one),
    };
    static const char *const sorted[] = { "z", "c64", "a", "", "B", "a2", "b", "\xc3\xa9",
                                          "bool" };
    static const size_t position[] = { 6, 2, 5, 0, 7, 4, 3, 8, 1 };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    (void)state;
    sft_plan *plan = plan_of(specs, 9, NULL, 0, NULL);
    uint64_t at = 0;
    for (size_t i = 0; i < 9; i++) {
        const sft_tensor *tensor = sft_plan_tensor_at(plan, i);
        assert_true(sft_span_equal(tensor->name, sft_span_cstr(sorted[i])));
        assert_int_equal(tensor->begin, at);
        at = tensor->end;
        assert_int_equal(sft_plan_position(plan, i), position[i]);
    }
    sft_plan_free(plan);
    options.keep_order = true;
    plan = plan_of(specs, 9, NULL, 0, &options);
    for (size_t i = 0; i < 9; i++) {
        assert_true(sft_span_equal(sft_plan_tensor_at(plan, i)->name, specs[i].name));
        assert_int_equal(sft_plan_position(plan, i), i);
    }
    sft_plan_free(plan);
}

/* A file of a level can be read at that level. */
static void test_levels(void **state) {
    static const struct row {
        const char *name;
        uint32_t rank;
        sft_code codes[3]; /* compat, default, strict */
    } rows[] = {
        { "a", SFT_MAX_RANK, { SFT_OK, SFT_OK, SFT_OK } },
        { "a", SFT_MAX_RANK + 1, { SFT_OK, SFT_RANK_TOO_LARGE, SFT_RANK_TOO_LARGE } },
        { "a\x1f", 0, { SFT_OK, SFT_OK, SFT_STRICT_NAME } },
        { "a\x7f", 0, { SFT_OK, SFT_OK, SFT_STRICT_NAME } },
        { "a\xc2\x80", 0, { SFT_OK, SFT_OK, SFT_STRICT_NAME } },
        { "a\xc2\xa0\xc3\x80", 0, { SFT_OK, SFT_OK, SFT_OK } },
    };
    uint64_t shape[SFT_MAX_RANK + 1];
    (void)state;
    for (uint32_t d = 0; d <= SFT_MAX_RANK; d++) shape[d] = 1;
    for (size_t i = 0; i < 3 * sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i / 3];
        sft_spec spec = spec_of(row->name, SFT_U8, row->rank, shape);
        sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
        sft_open_options open = SFT_OPEN_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_plan *plan;
        sft_file *file;
        char bytes[1024];
        if (i % 3 == 1) assert_int_equal(options.level, SFT_LEVEL_DEFAULT);
        options.level = open.level = (sft_level)(i % 3);
        sft_code code = sft_plan_new(&spec, 1, NULL, 0, &options, &plan, &err);
        assert_int_equal(code, row->codes[i % 3]);
        assert_int_equal(err.code, code);
        options.level = SFT_LEVEL_COMPAT; /* what the reader says of it */
        if (code) plan = plan_of(&spec, 1, NULL, 0, &options);
        sft_span head = sft_plan_head(plan);
        memcpy(bytes, head.data, head.len);
        bytes[head.len] = 0;
        assert_int_equal(sft_open_memory(bytes, head.len + 1, &open, &file, NULL), code);
        sft_close(file);
        sft_plan_free(plan);
    }
}

static void test_escapes(void **state) {
    static const char raw[] = "\"\\\b\f\n\r\t/\x01\x1f\x7f\xc3\xa9\xe2\x80\xa8 \xf0\x9f\x98\x80";
    static const char text[] = "\\\"\\\\\\b\\f\\n\\r\\t/\\u0001\\u001f\x7f\xc3\xa9\xe2\x80\xa8 "
                               "\xf0\x9f\x98\x80";
    char head[512];
    sft_spec spec = spec_of(raw, SFT_U8, 0, NULL);
    sft_pair pairs[2] = { { { "k\0", 2 }, sft_span_cstr(raw) }, pair_of("k", "") };
    (void)state;
    sft_plan *plan = plan_of(&spec, 1, pairs, 2, NULL);
    int len = snprintf(head, sizeof head,
                       "{\"__metadata__\":{\"k\":\"\",\"k\\u0000\":\"%s\"},\"%s\":{\"dtype\":"
                       "\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", text, text);
    expect_head(plan, head, 8 + (((size_t)len + 7) & ~(size_t)7));
    sft_plan_free(plan);
}

static void test_align(void **state) {
    static const uint32_t aligns[] = { 0, 8, 16, 64, 256, 4096, 1u << 20 };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_spec spec = spec_of("t", SFT_F32, 2, two_by_two);
    sft_plan *plan = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        options.align = aligns[i];
        plan = plan_of(&spec, 1, NULL, 0, &options);
        size_t align = aligns[i] ? aligns[i] : 8;
        const char *text = "{\"t\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}";
        expect_head(plan, text, (8 + strlen(text) + align - 1) / align * align);
        assert_int_equal(sft_plan_tensor_at(plan, 0)->offset % align, 0);
        sft_plan_free(plan);
    }
    static const uint32_t wrong[] = { 1, 2, 4, 7, 9, 24, 3u << 20, UINT32_MAX };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.align = wrong[i];
        assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, NULL),
                         SFT_BAD_ARGUMENT);
        assert_null(plan);
    }
}

static void test_header_limit(void **state) {
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_spec spec = spec_of("test", SFT_I32, 2, two_by_two);
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = NULL;
    (void)state;
    options.max_header_bytes = 64;
    plan = plan_of(&spec, 1, NULL, 0, &options);
    sft_plan_free(plan);
    options.max_header_bytes = 63;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, &err),
                     SFT_HEADER_TOO_LARGE);
    assert_string_equal(err.message, "expected a header of at most 63 bytes, found 64");
    options.max_header_bytes = 10;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, &err),
                     SFT_HEADER_TOO_LARGE);
    /* Counting stops when it is over the limit. */
    const sft_spec three[] = { spec, spec_of("u", SFT_I32, 0, NULL),
                               spec_of("v", SFT_I32, 0, NULL) };
    assert_int_equal(sft_plan_new(three, 3, NULL, 0, &options, &plan, &err),
                     SFT_HEADER_TOO_LARGE);
    assert_non_null(strstr(err.message, "at most 10 bytes, found at least "));
    /* So it does within metadata, whose strings are counted one by one. */
    const sft_pair two[] = { pair_of("framework", "pt"), pair_of("k", "v") };
    assert_int_equal(sft_plan_new(NULL, 0, two, 2, &options, &plan, &err), SFT_HEADER_TOO_LARGE);
    assert_string_equal(err.message, "expected a header of at most 10 bytes, found at least 16");
    options.max_header_bytes = UINT64_MAX;
    plan = plan_of(&spec, 1, NULL, 0, &options);
    sft_plan_free(plan);
    /* What options ask for has the limit of every header. */
    static const uint64_t beyond[] = { UINT64_MAX, UINT64_C(1) << 31, UINT64_C(0x7fffffff) };
    for (int i = 0; i < 6; i++) {
        options.spare = i % 2 ? 0 : beyond[i / 2];
        options.min_header_bytes = i % 2 ? beyond[i / 2] : 0;
        assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, &err),
                         SFT_HEADER_TOO_LARGE);
        assert_non_null(strstr(err.message, "at most 2147483647 bytes, found "));
        assert_string_equal(err.message + strlen(err.message) - 10, "2147483648");
    }
    options.spare = options.min_header_bytes = 0;
    options.size = 0;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, &err), SFT_BAD_ARGUMENT);
    /* The official cap: 100,000,000 passes, the next multiple of 8 does not. */
    size_t most = 100000000 - strlen("{\"__metadata__\":{\"\":\"\"}}");
    char *text = malloc(most + 1);
    memset(text, 'x', most + 1);
    sft_pair pair = { { NULL, 0 }, { text, most } };
    plan = plan_of(NULL, 0, &pair, 1, NULL);
    assert_int_equal(sft_plan_total(plan), 100000008);
    sft_plan_free(plan);
    pair.value.len++;
    assert_int_equal(sft_plan_new(NULL, 0, &pair, 1, NULL, &plan, &err), SFT_HEADER_TOO_LARGE);
    free(text);
}

typedef struct refusal {
    sft_code code;
    sft_spec spec;
    const char *tensor; /* named by the error, or NULL */
} refusal;

static void test_refused(void **state) {
    static const uint64_t huge[] = { UINT64_MAX, 2 }, odd[] = { 3 }, zero[] = { 0 };
    static const uint64_t half[] = { UINT64_C(1) << 60 };
    const refusal rows[] = {
        { SFT_NAME_RESERVED, spec_of("__metadata__", SFT_U8, 0, NULL), "__metadata__" },
        { SFT_HEADER_UTF8, spec_of("\xff", SFT_U8, 0, NULL), "\xff" },
        { SFT_HEADER_UTF8, spec_of("a\xed\xa0\x80", SFT_U8, 0, NULL), "a\xed\xa0\x80" },
        { SFT_SIZE_OVERFLOW, spec_of("big", SFT_U8, 2, huge), "big" },
        { SFT_SIZE_OVERFLOW, spec_of("big", SFT_F64, 1, half), "big" },
        { SFT_SIZE_PARTIAL_BYTE, spec_of("f4", SFT_F4, 1, odd), "f4" },
        { SFT_BAD_ARGUMENT, spec_of("d", (sft_dtype)SFT_DTYPE_COUNT, 0, NULL), "d" },
        { SFT_BAD_ARGUMENT, spec_of("s", SFT_U8, 1, NULL), "s" },
        { SFT_BAD_ARGUMENT, { { NULL, 3 }, SFT_U8, 0, NULL }, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_spec specs[2] = { spec_of("first", SFT_F32, 1, zero), rows[i].spec };
        sft_error err = SFT_ERROR_INIT;
        sft_plan *plan = NULL;
        assert_int_equal(sft_plan_new(specs, 2, NULL, 0, NULL, &plan, &err), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        assert_null(plan);
        specs[0] = rows[i].spec; /* the first is the one that is told */
        specs[1].name = sft_span_cstr("__metadata__");
        assert_int_equal(sft_plan_new(specs, 2, NULL, 0, NULL, &plan, &err), rows[i].code);
        if (!rows[i].tensor) continue;
        assert_int_equal(err.tensor_len, strlen(rows[i].tensor));
        assert_memory_equal(err.tensor, rows[i].tensor, err.tensor_len);
    }
    assert_int_equal(sft_plan_new(NULL, 0, NULL, 0, NULL, NULL, NULL), SFT_BAD_ARGUMENT);
    sft_plan *plan = NULL;
    assert_int_equal(sft_plan_new(&rows[3].spec, 1, NULL, 0, NULL, &plan, NULL),
                     SFT_SIZE_OVERFLOW);
    assert_int_equal(sft_plan_new(&rows[0].spec, UINT32_MAX, NULL, 0, NULL, &plan, NULL),
                     SFT_TOO_MANY_TENSORS);
    const sft_pair pair = pair_of("k", "v");
    assert_int_equal(sft_plan_new(NULL, 0, &pair, UINT32_MAX, NULL, &plan, NULL),
                     SFT_TOO_MANY_TENSORS);
    assert_null(plan);
}

/* What a message shows of a name or key ends after 128 bytes. */
static void test_refused_long(void **state) {
    char text[202];
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = NULL;
    (void)state;
    memset(text, 'n', 200);
    memcpy(text + 200, "\xff", 2);
    const sft_spec spec = spec_of(text, SFT_U8, 0, NULL);
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, NULL, &plan, &err), SFT_HEADER_UTF8);
    assert_int_equal(err.tensor_len, 201);
    sft_pair pairs[2] = { pair_of(text, ""), pair_of(text, "") };
    assert_int_equal(sft_plan_new(NULL, 0, pairs, 1, NULL, &plan, &err), SFT_HEADER_UTF8);
    assert_int_equal(strlen(strchr(err.message, '"')), 130);
    text[200] = 'n';
    assert_int_equal(sft_plan_new(NULL, 0, pairs, 2, NULL, &plan, &err),
                     SFT_METADATA_KEY_DUPLICATE);
    assert_int_equal(strlen(strchr(err.message, '"')), 130 + strlen(" twice"));
    memset(pairs, 0, sizeof pairs);
    assert_int_equal(sft_plan_new(NULL, 0, pairs, 2, NULL, &plan, &err),
                     SFT_METADATA_KEY_DUPLICATE);
    assert_string_equal(err.message, "expected each metadata key once, found \"\" twice");
    pairs[0].value = sft_span_cstr("\xff");
    assert_int_equal(sft_plan_new(NULL, 0, pairs, 1, NULL, &plan, &err), SFT_HEADER_UTF8);
    pairs[0].key.len = 1;
    assert_int_equal(sft_plan_new(NULL, 0, pairs, 1, NULL, &plan, &err), SFT_BAD_ARGUMENT);
    assert_null(plan);
}

static void test_refused_together(void **state) {
    static const uint64_t large[] = { UINT64_C(0x1fffffffffffffff) };
    const sft_spec twice[] = { spec_of("a", SFT_U8, 0, NULL), spec_of("b", SFT_U8, 0, NULL),
                               spec_of("a", SFT_F32, 0, NULL) };
    sft_spec many[9];
    sft_pair pairs[2] = { pair_of("k", "1"), pair_of("k", "2") };
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = NULL;
    (void)state;
    assert_int_equal(sft_plan_new(twice, 3, NULL, 0, NULL, &plan, &err), SFT_TENSOR_DUPLICATE);
    assert_int_equal(err.tensor_len, 1);
    assert_int_equal(err.tensor[0], 'a');
    assert_int_equal(sft_plan_new(twice, 2, pairs, 2, NULL, &plan, &err),
                     SFT_METADATA_KEY_DUPLICATE);
    pairs[1] = pair_of("\xff", "2");
    assert_int_equal(sft_plan_new(twice, 2, pairs, 2, NULL, &plan, &err), SFT_HEADER_UTF8);
    pairs[1] = pair_of("l", "\xc0\x80");
    assert_int_equal(sft_plan_new(twice, 2, pairs, 2, NULL, &plan, &err), SFT_HEADER_UTF8);
    assert_string_equal(err.message,
                        "expected metadata in UTF-8, found other bytes in the value of \"l\"");
    pairs[1].value.data = NULL;
    assert_int_equal(sft_plan_new(twice, 2, pairs, 2, NULL, &plan, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_plan_new(NULL, 1, NULL, 0, NULL, &plan, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_plan_new(twice, 1, NULL, 1, NULL, &plan, &err), SFT_BAD_ARGUMENT);
    static const char *const names[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8" };
    for (int i = 0; i < 9; i++) many[i] = spec_of(names[i], SFT_U8, 1, large);
    /* 2^61 - 1 bytes each: eight fit into 2^64, with the header; nine do not. */
    plan = plan_of(many, 7, NULL, 0, NULL);
    sft_plan_free(plan);
    assert_int_equal(sft_plan_new(many, 9, NULL, 0, NULL, &plan, &err), SFT_SIZE_OVERFLOW);
    assert_int_equal(sft_plan_new(many, 8, NULL, 0, NULL, &plan, &err), SFT_SIZE_OVERFLOW);
    assert_null(plan);
}

/* The plan lives on when what it was made from is gone. */
static void test_copies(void **state) {
    char name[] = "name";
    uint64_t shape[] = { 3 };
    sft_spec spec = spec_of(name, SFT_U8, 1, shape);
    (void)state;
    sft_plan *plan = plan_of(&spec, 1, NULL, 0, NULL);
    memset(name, 'x', 4);
    shape[0] = 9;
    memset(&spec, 0, sizeof spec);
    assert_memory_equal(sft_plan_tensor_at(plan, 0)->name.data, "name", 4);
    assert_int_equal(sft_plan_tensor_at(plan, 0)->shape[0], 3);
    sft_plan_free(plan);
}

typedef struct counting {
    size_t calls, fail_at, held;
} counting;

static void *count_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    counting *c = ctx;
    if (new_size > 0 && ++c->calls == c->fail_at) return NULL;
    c->held += new_size - old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void test_no_memory(void **state) {
    const sft_spec specs[] = { spec_of("a", SFT_U8, 2, two_by_two),
                               spec_of("b", SFT_F32, 2, two_by_two) };
    sft_pair pair = pair_of("k", "v");
    counting c = { 0, 0, 0 };
    sft_allocator alloc = { count_resize, &c };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = NULL;
    (void)state;
    options.alloc = &alloc;
    plan = plan_of(specs, 2, &pair, 1, &options);
    sft_plan_free(plan);
    assert_int_equal(c.held, 0);
    size_t calls = c.calls;
    assert_true(calls >= 2);
    for (size_t n = 1; n <= calls; n++) {
        c.calls = 0;
        c.fail_at = n;
        assert_int_equal(sft_plan_new(specs, 2, &pair, 1, &options, &plan, &err),
                         SFT_OUT_OF_MEMORY);
        assert_null(plan);
        assert_int_equal(c.held, 0);
    }
}

/* So large that each part of the plan is memory of its own: every one of them can fail. */
static void test_no_memory_for_large(void **state) {
    enum { COUNT = 3000, RANK = 50000, NAME = 300000 };
    counting c = { 0, 0, 0 };
    sft_allocator alloc = { count_resize, &c };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_spec *specs = calloc(COUNT, sizeof *specs);
    sft_pair *pairs = calloc(COUNT, sizeof *pairs);
    uint64_t *shape = calloc(RANK, sizeof *shape);
    char *text = malloc(NAME + COUNT * 8);
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = NULL;
    (void)state;
    memset(text, 'x', NAME);
    for (size_t i = 0; i < COUNT; i++) {
        char *name = text + NAME + i * 8;
        (void)snprintf(name, 8, "%zu", i);
        specs[i] = spec_of(name, SFT_U8, 0, NULL);
        pairs[i] = pair_of(name, "");
    }
    specs[0] = (sft_spec){ { text, NAME }, SFT_U8, RANK, shape };
    options.level = SFT_LEVEL_COMPAT;
    options.alloc = &alloc;
    plan = plan_of(specs, COUNT, pairs, COUNT, &options);
    sft_plan_free(plan);
    assert_int_equal(c.held, 0);
    size_t calls = c.calls;
    assert_true(calls >= 9); /* the plan, three arrays of work, two of its own, name, shape, head */
    for (size_t n = 1; n <= calls; n++) {
        c.calls = 0;
        c.fail_at = n;
        assert_int_equal(sft_plan_new(specs, COUNT, pairs, COUNT, &options, &plan, &err),
                         SFT_OUT_OF_MEMORY);
        assert_null(plan);
        assert_int_equal(c.held, 0);
    }
    free(text);
    free(shape);
    free(pairs);
    free(specs);
}

/* Many tensors in falling order: sorted, and not in quadratic time. */
static void test_many(void **state) {
    size_t count = 100000;
    sft_spec *specs = calloc(count, sizeof *specs);
    char *names = malloc(count * 16);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names + i * 16, 16, "t%08zu", count - i);
        specs[i] = spec_of(names + i * 16, SFT_F16, 2, two_by_two);
    }
    sft_plan *plan = plan_of(specs, count, NULL, 0, NULL);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sft_plan_position(plan, i), count - 1 - i);
        assert_int_equal(sft_plan_tensor_at(plan, i)->begin, i * 8);
    }
    sft_plan_free(plan);
    free(names);
    free(specs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty), cmocka_unit_test(test_golden),
        cmocka_unit_test(test_order), cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_align), cmocka_unit_test(test_header_limit),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_refused_together),
        cmocka_unit_test(test_copies), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_refused_long), cmocka_unit_test(test_no_memory_for_large),
        cmocka_unit_test(test_many), cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
