/* The writer without a plan: tensors one by one, the header last. Room that a plan keeps, and
 * bytes past the page cache. */
#define _GNU_SOURCE
#include "safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

static const uint64_t four[] = { 4 }, two_by_three[] = { 2, 3 };

static sft_spec spec_of(const char *name, sft_dtype dtype, const uint64_t *shape, uint32_t rank) {
    return (sft_spec){ sft_span_cstr(name), dtype, rank, shape };
}

static sft_writer *open_writer(const sft_writer_options *options, sft_sink sink) {
    sft_writer *writer = NULL;
    assert_int_equal(sft_writer_begin_unplanned(options, sink, &writer, NULL), SFT_OK);
    return writer;
}

static size_t add(sft_writer *writer, const char *name, sft_dtype dtype, const uint64_t *shape,
                  uint32_t rank) {
    sft_spec spec = spec_of(name, dtype, shape, rank);
    size_t i = SIZE_MAX;
    assert_int_equal(sft_writer_add(writer, &spec, &i, NULL), SFT_OK);
    return i;
}

static void test_small(void **state) {
    static const char wanted[] = "\xc0\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"a\":\"1\",\"k\":\"v\"},"
        "\"z\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
        "\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[4,16]}}";
    sft_pair pairs[] = { { { "k", 1 }, { "v", 1 } }, { { "a", 1 }, { "1", 1 } } };
    sft_writer_options options = SFT_WRITER_OPTIONS_INIT;
    sft_buffer buffer = { 0 };
    (void)state;
    options.header_bytes = 190;
    options.metadata = pairs;
    options.metadata_count = 2;
    sft_writer *writer = open_writer(&options, sft_sink_memory(&buffer));
    pairs[0].value.data = "x"; /* it has copies */
    assert_int_equal(add(writer, "z", SFT_U8, four, 1), 0);
    assert_int_equal(sft_writer_put(writer, 0, "zz", 2, NULL), SFT_OK);
    assert_int_equal(add(writer, "b", SFT_F16, two_by_three, 2), 1);
    assert_int_equal(sft_writer_put(writer, 1, "bbbbbbbbbbbb", 12, NULL), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 0, "zz", 2, NULL), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, NULL), SFT_OK);
    assert_int_equal(buffer.len, 200 + 16);
    assert_memory_equal(buffer.data, wanted, sizeof wanted - 1);
    for (size_t i = sizeof wanted - 1; i < 200; i++) assert_int_equal(buffer.data[i], ' ');
    assert_memory_equal(buffer.data + 200, "zzzzbbbbbbbbbbbb", 16);
    sft_buffer_free(&buffer);
}

static void test_many(void **state) {
    enum { COUNT = 1000 };
    sft_writer_options options = SFT_WRITER_OPTIONS_INIT;
    sft_buffer buffer = { 0 };
    sft_file *file = NULL;
    char name[40];
    (void)state;
    options.header_bytes = 100000;
    options.align = 4096;
    sft_writer *writer = open_writer(&options, sft_sink_memory(&buffer));
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof name, "layer.%d", i);
        size_t at = add(writer, name, SFT_I32, four, i % 2);
        assert_int_equal(at, i);
        for (int n = 0; n < (i % 2 ? 4 : 1); n++)
            assert_int_equal(sft_writer_put(writer, at, &i, 4, NULL), SFT_OK);
    }
    assert_int_equal(sft_writer_finish(writer, NULL), SFT_OK);
    assert_int_equal(sft_open_memory(buffer.data, buffer.len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_tensor_count(file), COUNT);
    assert_int_equal(sft_file_data_offset(file) % 4096, 0);
    for (int i = 0; i < COUNT; i++) {
        int value = -1;
        (void)snprintf(name, sizeof name, "layer.%d", i);
        const sft_tensor *t = sft_file_find_cstr(file, name);
        assert_int_equal(sft_read_bytes(file, t->offset, &value, 4, NULL), SFT_OK);
        assert_int_equal(value, i);
    }
    sft_close(file);
    sft_buffer_free(&buffer);
}

static void test_empty(void **state) {
    sft_buffer buffer = { 0 };
    sft_file *file = NULL;
    (void)state;
    assert_int_equal(sft_writer_finish(open_writer(NULL, sft_sink_memory(&buffer)), NULL), SFT_OK);
    assert_int_equal(sft_open_memory(buffer.data, buffer.len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_tensor_count(file), 0);
    assert_int_equal(buffer.len, 65544);
    sft_close(file);
    sft_buffer_free(&buffer);
}

static void test_refused(void **state) {
    sft_buffer buffer = { 0 };
    sft_writer_options options = SFT_WRITER_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_spec bad[] = { spec_of("__metadata__", SFT_U8, four, 1), spec_of("\xff", SFT_U8, four, 1),
                       spec_of("f", SFT_F4, two_by_three + 1, 1), spec_of("a", SFT_U8, four, 1) };
    static const sft_code codes[] = { SFT_NAME_RESERVED, SFT_HEADER_UTF8, SFT_SIZE_PARTIAL_BYTE,
                                      SFT_TENSOR_DUPLICATE };
    size_t i;
    (void)state;
    options.header_bytes = 120;
    sft_writer *writer = open_writer(&options, sft_sink_memory(&buffer));
    assert_int_equal(add(writer, "a", SFT_U8, four, 1), 0);
    for (size_t n = 0; n < 4; n++)
        assert_int_equal(sft_writer_add(writer, &bad[n], &i, &err), codes[n]);
    sft_spec second = spec_of("bb", SFT_U8, four, 1), third = spec_of("c", SFT_U8, four, 1);
    assert_int_equal(sft_writer_add(writer, &second, &i, &err), SFT_OK);
    assert_int_equal(sft_writer_add(writer, &third, &i, &err), SFT_HEADER_TOO_LARGE);
    assert_int_equal(sft_writer_put(writer, 0, "aaaa", 4, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 1, "bbbb", 4, &err), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_OK);
    assert_int_equal(buffer.len, 128 + 8);
    writer = open_writer(&options, sft_sink_memory(&buffer));
    (void)add(writer, "a", SFT_U8, four, 1);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_INCOMPLETE);
    assert_int_equal(buffer.len, 0);
    writer = open_writer(&options, sft_sink_memory(&buffer));
    assert_int_equal(sft_writer_put(writer, 0, "a", 1, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_writer_add(writer, &bad[3], &i, &err), SFT_BAD_ARGUMENT); /* for ever */
    sft_writer_abandon(writer);
    sft_buffer_free(&buffer);
}

static sft_code swallow(void *ctx, const void *bytes, size_t len, sft_error *err) {
    (void)ctx, (void)bytes, (void)len, (void)err;
    return SFT_OK;
}

static void test_bad_options(void **state) {
    sft_buffer buffer = { 0 };
    sft_writer_options options = SFT_WRITER_OPTIONS_INIT;
    sft_pair pair = { { "k", 1 }, { "a value longer than the room", 28 } };
    sft_writer *writer;
    sft_sink sink;
    (void)state;
    assert_int_equal(sft_sink_callback(swallow, NULL, NULL, &sink, NULL), SFT_OK);
    assert_int_equal(sft_writer_begin_unplanned(NULL, sink, &writer, NULL), SFT_OUT_OF_ORDER);
    assert_int_equal(sft_writer_begin_unplanned(NULL, sft_sink_memory(&buffer), NULL, NULL),
                     SFT_BAD_ARGUMENT);
    options.align = 12;
    assert_int_equal(sft_writer_begin_unplanned(&options, sft_sink_memory(&buffer), &writer, NULL),
                     SFT_BAD_ARGUMENT);
    options.align = 8;
    options.header_bytes = SFT_MAX_HEADER_BYTES + 1;
    assert_int_equal(sft_writer_begin_unplanned(&options, sft_sink_memory(&buffer), &writer, NULL),
                     SFT_BAD_ARGUMENT);
    options.header_bytes = 40;
    options.metadata = &pair;
    options.metadata_count = 1;
    assert_int_equal(sft_writer_begin_unplanned(&options, sft_sink_memory(&buffer), &writer, NULL),
                     SFT_HEADER_TOO_LARGE);
    assert_null(writer);
    sft_buffer_free(&buffer);
}

/* ── Room in a plan ── */

static void test_plan_header_length(void **state) {
    sft_spec spec = spec_of("a", SFT_U8, four, 1);
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_plan *plan = NULL;
    (void)state;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, NULL), SFT_OK);
    size_t least = sft_plan_head(plan).len;
    sft_plan_free(plan);
    options.spare = 4096;
    options.align = 256;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, NULL), SFT_OK);
    sft_span head = sft_plan_head(plan);
    assert_true(head.len >= least + 4088 && head.len < least + 4096 + 256);
    assert_int_equal(head.len % 256, 0);
    for (size_t i = 0; i < 4096; i++) assert_int_equal(head.data[head.len - 1 - i], ' ');
    assert_int_equal(sft_plan_tensor_at(plan, 0)->offset, head.len);
    sft_plan_free(plan);
    options.spare = 0;
    options.min_header_bytes = 1000;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, NULL), SFT_OK);
    assert_int_equal(sft_plan_head(plan).len, 1024);
    sft_plan_free(plan);
    options.spare = UINT64_MAX;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, NULL), SFT_HEADER_TOO_LARGE);
    options.spare = SFT_MAX_HEADER_BYTES;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, &options, &plan, NULL), SFT_HEADER_TOO_LARGE);
}

/* ── Past the page cache ── */

static void save_direct(size_t bytes, size_t piece) {
    static char data[20 << 20], back[21 << 20];
    const uint64_t shape[] = { bytes };
    sft_spec spec = spec_of("w", SFT_U8, shape, 1);
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_plan *plan = NULL;
    sft_writer *writer;
    sft_sink sink;
    for (size_t i = 0; i < bytes; i++) data[i] = (char)(i * 13 + i / 4096);
    options.direct = true;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_sink_path(temp_path("d"), &options, &sink, NULL), SFT_OK);
    assert_int_equal(sft_writer_begin(plan, sink, &writer, NULL), SFT_OK);
    for (size_t at = 0; at < bytes; at += piece) {
        size_t len = bytes - at < piece ? bytes - at : piece;
        assert_int_equal(sft_writer_put(writer, 0, data + at, len, NULL), SFT_OK);
    }
    assert_int_equal(sft_writer_finish(writer, NULL), SFT_OK);
    size_t head = sft_plan_head(plan).len;
    assert_int_equal(temp_read("d", back, sizeof back), head + bytes);
    assert_memory_equal(back, sft_plan_head(plan).data, head);
    assert_memory_equal(back + head, data, bytes);
    sft_plan_free(plan);
    assert_int_equal(temp_dir_count(), 1);
}

static void test_direct(void **state) {
    (void)state;
    save_direct(0, 1);
    save_direct(1, 1);
    save_direct(4096 * 3 - 80, 4096);
    save_direct(100000, 777);
    save_direct(8 << 20, 1 << 20);
    save_direct((20 << 20) - 5, 3 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_plan_header_length),
        cmocka_unit_test_setup_teardown(test_direct, temp_dir_make, temp_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
