/* The writer: every order, every refusal, two endings. */
#define _GNU_SOURCE
#include "safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

/* a: 4 bytes of F32, b: 2 x 3 bytes of U8, e: nothing, in file order. */
static const uint64_t two_by_three[] = { 2, 3 }, none_at_all[] = { 0 };
static const char whole[] = "\xa8\0\0\0\0\0\0\0"
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
    "\"b\":{\"dtype\":\"U8\",\"shape\":[2,3],\"data_offsets\":[4,10]},"
    "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[10,10]}}"
    "      " "AAAABBBBBB";

static sft_plan *make_plan(void) {
    const sft_spec specs[] = {
        { { "b", 1 }, SFT_U8, 2, two_by_three },
        { { "e", 1 }, SFT_U8, 1, none_at_all },
        { { "a", 1 }, SFT_F32, 0, NULL },
    };
    sft_plan *plan = NULL;
    assert_int_equal(sft_plan_new(specs, 3, NULL, 0, NULL, &plan, NULL), SFT_OK);
    return plan;
}

static sft_writer *make_writer(const sft_plan *plan, sft_sink sink) {
    sft_writer *writer = NULL;
    assert_int_equal(sft_writer_begin(plan, sink, &writer, NULL), SFT_OK);
    assert_non_null(writer);
    return writer;
}

static void expect_whole(const sft_buffer *buffer) {
    assert_int_equal(buffer->len, sizeof whole - 1);
    assert_memory_equal(buffer->data, whole, sizeof whole - 1);
}

static void test_in_order(void **state) {
    sft_buffer buffer = { 0 };
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = make_plan();
    (void)state;
    assert_int_equal(sft_plan_total(plan), sizeof whole - 1);
    sft_writer *writer = make_writer(plan, sft_sink_memory(&buffer));
    assert_int_equal(buffer.len, sft_plan_head(plan).len);
    assert_int_equal(sft_writer_put(writer, 0, "AAAA", 4, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 1, "BB", 2, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 1, "BBBB", 4, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 2, NULL, 0, &err), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_OK);
    expect_whole(&buffer);
    sft_buffer_free(&buffer);
    sft_plan_free(plan);
}

static void test_any_order(void **state) {
    sft_buffer buffer = { 0 };
    sft_plan *plan = make_plan();
    (void)state;
    sft_writer *writer = make_writer(plan, sft_sink_memory(&buffer));
    assert_int_equal(sft_writer_put(writer, 1, "B", 1, NULL), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 0, "AAA", 3, NULL), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 1, "BBBBB", 5, NULL), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 0, "A", 1, NULL), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, NULL), SFT_OK);
    expect_whole(&buffer);
    sft_buffer_free(&buffer);
    sft_plan_free(plan);
}

typedef struct stream {
    char text[512];
    size_t len, fail_after;
} stream;

static sft_code take(void *ctx, const void *bytes, size_t len, sft_error *err) {
    stream *s = ctx;
    if (s->len + len > s->fail_after) return SFT_IO_WRITE; /* and no text */
    (void)err;
    memcpy(s->text + s->len, bytes, len);
    s->len += len;
    return SFT_OK;
}

static sft_sink stream_sink(stream *s) {
    sft_sink sink;
    assert_int_equal(sft_sink_callback(take, s, NULL, &sink, NULL), SFT_OK);
    return sink;
}

static void test_forward(void **state) {
    stream s = { { 0 }, 0, sizeof s.text };
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = make_plan();
    (void)state;
    sft_writer *writer = make_writer(plan, stream_sink(&s));
    assert_int_equal(sft_writer_put(writer, 2, NULL, 0, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 0, "AA", 2, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 0, "AA", 2, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 1, "BBBBBB", 6, &err), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_OK);
    assert_int_equal(s.len, sizeof whole - 1);
    assert_memory_equal(s.text, whole, sizeof whole - 1);

    s.len = 0;
    writer = make_writer(plan, stream_sink(&s));
    assert_int_equal(sft_writer_put(writer, 0, "AA", 2, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 1, "BBBBBB", 6, &err), SFT_OUT_OF_ORDER);
    assert_int_equal(err.tensor_len, 1);
    assert_int_equal(err.tensor[0], 'b');
    memset(&err, 0, sizeof err);
    assert_int_equal(sft_writer_put(writer, 0, "AA", 2, &err), SFT_OUT_OF_ORDER);
    assert_int_equal(err.code, SFT_OUT_OF_ORDER);
    memset(&err, 0, sizeof err);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_OUT_OF_ORDER);
    assert_int_equal(err.tensor[0], 'b');
    sft_plan_free(plan);
}

static void test_refused(void **state) {
    sft_buffer buffer = { 0 };
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = make_plan();
    (void)state;
    sft_writer *writer = make_writer(plan, sft_sink_memory(&buffer));
    assert_int_equal(sft_writer_put(writer, 0, "AAAAA", 5, &err), SFT_BUFFER_SIZE);
    assert_string_equal(err.message,
                        "expected at most 4 more bytes of the tensor, found 5");
    assert_int_equal(sft_writer_finish(writer, NULL), SFT_BUFFER_SIZE);
    assert_null(buffer.data);

    writer = make_writer(plan, sft_sink_memory(&buffer));
    assert_int_equal(sft_writer_put(writer, 2, "x", 1, &err), SFT_BUFFER_SIZE);
    sft_writer_abandon(writer);
    writer = make_writer(plan, sft_sink_memory(&buffer));
    assert_int_equal(sft_writer_put(writer, 3, NULL, 0, &err), SFT_BAD_ARGUMENT);
    sft_writer_abandon(writer);
    writer = make_writer(plan, sft_sink_memory(&buffer));
    assert_int_equal(sft_writer_put(writer, 0, NULL, 4, &err), SFT_BAD_ARGUMENT);
    sft_writer_abandon(writer);
    sft_writer_abandon(NULL);

    writer = make_writer(plan, sft_sink_memory(&buffer));
    assert_int_equal(sft_writer_put(writer, 0, "AAAA", 4, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 1, "BBBBB", 5, &err), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_INCOMPLETE);
    assert_int_equal(err.tensor[0], 'b');
    assert_string_equal(err.message, "expected 6 bytes of the tensor, found 5");
    assert_null(buffer.data);

    assert_int_equal(sft_writer_begin(NULL, sft_sink_memory(&buffer), &writer, &err),
                     SFT_BAD_ARGUMENT);
    assert_null(writer);
    assert_int_equal(sft_writer_begin(plan, sft_sink_memory(&buffer), NULL, &err),
                     SFT_BAD_ARGUMENT);
    sft_plan_free(plan);
}

static void test_sink_fails(void **state) {
    stream s = { { 0 }, 0, 100 };
    sft_error err = SFT_ERROR_INIT;
    sft_plan *plan = make_plan();
    sft_writer *writer = NULL;
    (void)state;
    assert_int_equal(sft_writer_begin(plan, stream_sink(&s), &writer, &err), SFT_IO_WRITE);
    assert_null(writer);
    s.fail_after = sft_plan_head(plan).len + 4;
    writer = make_writer(plan, stream_sink(&s));
    assert_int_equal(sft_writer_put(writer, 0, "AAAA", 4, &err), SFT_OK);
    assert_int_equal(sft_writer_put(writer, 1, "BBBBBB", 6, &err), SFT_IO_WRITE);
    assert_int_equal(err.code, SFT_IO_WRITE);
    assert_true(strlen(err.message) > 0);
    assert_int_equal(sft_writer_put(writer, 1, "BBBBBB", 6, NULL), SFT_IO_WRITE);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_IO_WRITE);
    sft_plan_free(plan);
}

static void test_path(void **state) {
    sft_error err = SFT_ERROR_INIT;
    char buffer[512];
    sft_sink sink;
    sft_plan *plan = make_plan();
    (void)state;
    assert_int_equal(sft_sink_path(temp_path("out"), NULL, &sink, &err), SFT_OK);
    sft_writer *writer = make_writer(plan, sink);
    assert_int_equal(sft_writer_put(writer, 1, "BBBBBB", 6, &err), SFT_OK);
    assert_int_equal(temp_read("out", buffer, sizeof buffer), -1);
    assert_int_equal(sft_writer_put(writer, 0, "AAAA", 4, &err), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_OK);
    assert_int_equal(temp_read("out", buffer, sizeof buffer), sizeof whole - 1);
    assert_memory_equal(buffer, whole, sizeof whole - 1);
    assert_int_equal(unlink(temp_path("out")), 0);

    assert_int_equal(sft_sink_path(temp_path("out"), NULL, &sink, &err), SFT_OK);
    writer = make_writer(plan, sink);
    assert_int_equal(sft_writer_put(writer, 1, "BBBBBB", 6, &err), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, &err), SFT_INCOMPLETE);
    assert_int_equal(err.tensor[0], 'a');
    assert_int_equal(sft_sink_path(temp_path("out"), NULL, &sink, &err), SFT_OK);
    sft_writer_abandon(make_writer(plan, sink));
    assert_int_equal(temp_dir_count(), 0);
    sft_plan_free(plan);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order), cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_forward), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sink_fails), IN_DIR(test_path),
    };
    return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
