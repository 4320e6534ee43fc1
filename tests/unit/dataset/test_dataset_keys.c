/* Rows become files in KV mode: names, sizes, rows that replace rows. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/shards_case.h"

/* ── Keys ── */

static struct ArrowSchema *key_type(void) {
    return am_of(am_of(am_of(am_type("+s", ""), am_type("l", "n")), am_type("u", "id")),
                 am_list("+w:2", "v", am_type("s", "item")));
}

static const int32_t key_at[] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static struct ArrowArray *key_rows(int64_t length, const char *letters) {
    struct ArrowArray *top = am_make(length, 0, NULL);
    am_with(top, am_make(7, 1, NULL, longs));
    am_with(top, am_make(7, 0, NULL, key_at, letters));
    return am_with(top, am_with(am_make(7, 0, NULL), am_make(14, 2, NULL, shorts)));
}

static void test_keys(void **unused) {
    (void)unused;
    OPEN(key_type(), "name_col=id", "dtype={\"v\":\"I8\"}", "shapes={\"v\":[1,2]}");
    append(key_rows(3, "cab"));
    append(key_rows(2, "xy"));
    assert_int_equal(am_released, 0);
    close_writer(NULL);
    assert_int_equal(receipt_count, 1);
    open_shard(0);
    assert_int_equal(receipts[0].tensors, 10);
    assert_int_equal(receipts[0].samples, 5);
    metadata_is("mode", "kv");
    metadata_is("samples", "5");
    TENSOR("b__n", SFT_I64, "[]", int64_t, INT64_MAX);
    TENSOR("y__n", SFT_I64, "[]", int64_t, INT64_MIN);
    TENSOR("c__v", SFT_I8, "[1, 2]", int8_t, 2, 3);
    TENSOR("b__v", SFT_I8, "[1, 2]", int8_t, 6, 7);
    assert_true(receipts[0].columns[0].has_shape && receipts[0].columns[1].has_shape);
    assert_int_equal(receipts[0].columns[1].rank, 2);
}

static void test_key_refused(void **unused) {
    static const uint8_t mask[] = { 0xfb };
    static const char long_key[] = "__metadata";
    static const int32_t one[] = { 0, 10 };
    (void)unused;
    OPEN(key_type(), "name_col=id");
    refuse(key_rows(4, "abca"), SFT_DATASET_DUPLICATE,
           "expected each tensor's name once, found \"a__n\" in row 0 and row 3");
    sft_dataset_options_free(options);
    OPEN(key_type(), "name_col=id");
    append(key_rows(2, "xy"));
    refuse(key_rows(2, "a\xff"), SFT_ROW_KEY,
           "column \"id\", row 3: expected a key in UTF-8, found other bytes");
    sft_dataset_options_free(options);
    OPEN(key_type(), "name_col=id");
    struct ArrowArray *rows = key_rows(4, "abcd");
    rows->children[1]->buffers[0] = mask;
    rows->children[1]->null_count = 1;
    refuse(rows, SFT_ROW_KEY, "column \"id\", row 2: expected a key, found null");
    sft_dataset_options_free(options);
    OPEN(am_of(am_of(am_type("+s", ""), am_type("u", "id")), am_type("l", "_")), "name_col=id",
         "kv_separator=_");
    rows = am_with(am_make(1, 0, NULL), am_make(1, 0, NULL, one, long_key));
    refuse(am_with(rows, am_make(1, 0, NULL, longs)), SFT_ROW_KEY,
           "column \"id\", row 0: expected a key that makes a tensor's name, found the reserved "
           "__metadata__");
}

/* The loser goes before the header is written; an empty key is a key. */
static void test_last_wins(void **unused) {
    static const int32_t offsets[] = { 0, 0, 1, 1 };
    (void)unused;
    OPEN(key_type(), "name_col=id", "duplicatesStrategy=lastWin");
    append(key_rows(2, "ab"));
    append(key_rows(3, "baa"));
    append(key_rows(4, "abcb"));
    assert_int_equal(am_released, 2); /* none of their rows won */
    struct ArrowArray *rows = key_rows(3, "z");
    rows->children[1]->buffers[1] = offsets;
    append(rows);
    close_writer(NULL);
    open_shard(0);
    assert_int_equal(receipts[0].samples, 5);
    assert_int_equal(receipts[0].tensors, 10);
    TENSOR("a__n", SFT_I64, "[]", int64_t, (INT64_C(1) << 53) + 1);
    TENSOR("b__v", SFT_I16, "[2]", int16_t, 8, 9);
    TENSOR("__v", SFT_I16, "[2]", int16_t, 6, 7);
    TENSOR("z__n", SFT_I64, "[]", int64_t, INT64_MIN);
}

/* Names that collide through the separator: "b__n" of one column, then of the other. */
static void test_meeting_names(void **unused) {
    static const int32_t offsets[] = { 0, 1, 5 };
    struct ArrowSchema *schema = am_of(am_of(am_type("+s", ""), am_type("u", "id")),
                                       am_type("s", "b__n"));
    struct ArrowArray *rows = am_make(2, 0, NULL);
    (void)unused;
    OPEN(am_of(schema, am_type("s", "n")), "name_col=id", "duplicatesStrategy=lastWin");
    am_with(rows, am_make(2, 0, NULL, offsets, "aa__b"));
    am_with(rows, am_make(2, 0, NULL, shorts));
    append(am_with(rows, am_make(2, 2, NULL, shorts)));
    close_writer(NULL);
    open_shard(0);
    assert_int_equal(receipts[0].samples, 2);
    assert_int_equal(receipts[0].tensors, 3);
    TENSOR("a__b__n", SFT_I16, "[]", int16_t, 3);
    TENSOR("a__n", SFT_I16, "[]", int16_t, 2);
}

/* Shapes that vary are not in the column's facts. */
static void test_varying(void **unused) {
    static const int32_t offsets[] = { 0, 2, 4, 7 };
    struct ArrowSchema *schema = am_of(am_of(am_type("+s", ""), am_type("u", "id")),
                                       am_list("+l", "v", am_type("s", "item")));
    struct ArrowArray *rows = am_make(3, 0, NULL);
    (void)unused;
    OPEN(am_of(schema, am_tensor_type("t")), "name_col=id");
    am_with(rows, am_make(3, 0, NULL, key_at, "abc"));
    am_with(rows, am_with(am_make(3, 0, NULL, offsets), am_make(7, 0, NULL, shorts)));
    append(am_with(rows, tensor_rows(0, 3)->children[0]));
    close_writer(NULL);
    open_shard(0);
    TENSOR("c__v", SFT_I16, "[3]", int16_t, 4, 5, 6);
    TENSOR("a__t", SFT_I16, "[1, 2]", int16_t, 1, 2);
    TENSOR("c__t", SFT_F32, "[2]", float, 1, 2);
    assert_true(receipts[0].columns[0].has_dtype && !receipts[0].columns[0].has_shape);
    assert_true(!receipts[0].columns[1].has_dtype && !receipts[0].columns[1].has_shape);
}

static void test_rollover(void **unused) {
    size_t total = 0;
    (void)unused;
    OPEN(key_type(), "name_col=id");
    options->shard_bytes = 700;
    append(key_rows(5, "abcde"));
    append(key_rows(4, "fghi"));
    append(key_rows(7, "jklmnop"));
    close_writer(NULL);
    assert_true(receipt_count > 2);
    for (size_t i = 0; i < receipt_count; i++) {
        open_shard(i);
        total += receipts[i].tensors;
        if (i + 1 < receipt_count) assert_in_range(receipts[i].bytes, 400, 900);
    }
    assert_int_equal(total, 32);
    TENSOR("p__v", SFT_I16, "[2]", int16_t, 14, 15);
}

/* Rows that replace rows take no room in the file, but do in memory. */
static void test_replacing_rolls(void **unused) {
    (void)unused;
    OPEN(key_type(), "name_col=id", "duplicatesStrategy=lastWin");
    options->shard_bytes = 1000;
    for (int i = 0; i < 20; i++) append(key_rows(2, "ab"));
    assert_true(am_released >= 19);
    close_writer(NULL);
    assert_in_range(receipt_count, 2, 8);
    open_shard(receipt_count - 1);
    assert_int_equal(receipts[receipt_count - 1].tensors, 4);
    assert_int_equal(receipts[receipt_count - 1].samples, 2);
}

/* Names of 20 MB: a sixth would exceed the header that readers accept. */
static void test_header_cap(void **unused) {
    enum { LONG = 20000000 };
    static char keys[5 * LONG];
    int32_t offsets[6];
    struct ArrowArray *rows = key_rows(5, keys);
    (void)unused;
    memset(keys, 'k', sizeof keys);
    for (int i = 0; i < 6; i++) offsets[i] = i * LONG;
    for (int i = 0; i < 5; i++) keys[i * LONG] = (char)('a' + i);
    OPEN(key_type(), "name_col=id", "columns=n");
    options->shard_bytes = UINT64_C(1000) << 20;
    rows->children[1]->buffers[1] = offsets;
    append(rows);
    assert_int_equal(am_released, 0); /* rows of the batch are still to be written */
    close_writer(NULL);
    assert_int_equal(receipt_count, 2);
    open_shard(0);
    assert_int_equal(receipts[0].samples, 4);
    assert_in_range(receipts[0].header_bytes, 80000000, SFT_MAX_HEADER_BYTES);
    open_shard(1);
    assert_int_equal(receipts[1].samples, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_keys), TEST(test_key_refused), TEST(test_last_wins), TEST(test_meeting_names),
        TEST(test_varying), TEST(test_rollover), TEST(test_replacing_rolls),
        TEST(test_header_cap),
    };
    return cmocka_run_group_tests_name("dataset_keys", tests, NULL, NULL);
}
