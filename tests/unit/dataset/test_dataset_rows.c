/* Text, bytes, lists of different lengths and nulls in batch mode: the files, and what verify finds
 * in damaged ones. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataset/maintain/results.h"
#include "unit/shards_case.h"

static const int32_t at[] = { 0, 2, 2, 5, 5 };
static const uint8_t third_null[] = { 0xfb };

static struct ArrowArray *rows_of(struct ArrowArray *column, int64_t from, int64_t length) {
    return am_with(am_make(length, from, NULL), column);
}

static void test_text(void **unused) {
    (void)unused;
    OPEN(one_type("u"), "batch_size=3");
    append(rows_of(am_make(4, 0, NULL, at, "ab\xc3\xa9!"), 0, 4));
    append(rows_of(am_make(4, 0, third_null, at, "abcde"), 1, 2));
    close_writer(NULL);
    assert_int_equal(receipt_count, 2);
    assert_int_equal(receipts[0].columns[0].encoding, SFTI_ENCODING_UTF8);
    assert_false(receipts[0].columns[0].has_shape || receipts[0].columns[0].nullable);
    open_shard(0);
    TENSOR("x", SFT_U8, "[5]", uint8_t, 'a', 'b', 0xc3, 0xa9, '!');
    TENSOR("x.offsets", SFT_I64, "[4]", int64_t, 0, 2, 2, 5);
    assert_int_equal(receipts[0].tensors, 2);
    open_shard(1); /* an empty text, one more, and a null */
    TENSOR("x.offsets", SFT_I64, "[4]", int64_t, 0, 0, 0, 0);
    TENSOR("x.valid", SFT_BOOL, "[3]", uint8_t, 1, 1, 0);
    assert_true(receipts[1].columns[0].nullable);
}

static void test_not_text(void **unused) {
    (void)unused;
    OPEN(one_type("u"), "batch_size=3");
    refuse(rows_of(am_make(4, 0, NULL, at, "ab\xc3z!"), 0, 4), SFT_ROW_VALUE,
           "column \"x\", row 2: expected text in UTF-8, found other bytes");
    sft_dataset_options_free(options);
    OPEN(one_type("u"), "batch_size=4"); /* a character in two rows */
    static const int32_t within[] = { 0, 1, 3, 4, 5 }, falling[] = { 0, 2, 5, 4, 5 };
    refuse(rows_of(am_make(4, 0, NULL, within, "ab\xc3\xa9!"), 0, 4), SFT_ROW_VALUE,
           "column \"x\", row 1: expected text in UTF-8, found other bytes");
    sft_dataset_options_free(options);
    OPEN(one_type("u"), "batch_size=4");
    refuse(rows_of(am_make(4, 0, NULL, falling, "abcde"), 0, 4), SFT_BAD_ARGUMENT,
           "column \"x\", row 2: expected an array that keeps Arrow's rules, found bytes beyond "
           "their buffer");
    sft_dataset_options_free(options);
    OPEN(one_type("z"), "batch_size=4");
    append(rows_of(am_make(4, 0, NULL, at, "ab\xc3z!"), 0, 4));
    close_writer(NULL);
    assert_int_equal(receipts[0].columns[0].encoding, SFTI_ENCODING_BINARY);
    open_shard(0);
    TENSOR("x", SFT_U8, "[5]", uint8_t, 'a', 'b', 0xc3, 'z', '!');
}

static struct ArrowArray *lists(const uint8_t *valid, const int32_t *offsets) {
    return am_with(am_make(4, 0, valid, offsets), am_make(8, 0, NULL, shorts));
}

static void test_lists(void **unused) {
    static const int32_t even[] = { 0, 2, 4, 6, 8 };
    struct ArrowSchema *schema =
        am_of(am_type("+s", ""), am_list("+l", "x", am_type("s", "item")));
    (void)unused;
    OPEN(schema, "batch_size=4", "dtype=I32");
    append(rows_of(lists(NULL, at), 0, 4));
    append(rows_of(lists(NULL, even), 0, 4));
    append(rows_of(lists(third_null, even), 0, 4));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x", SFT_I32, "[5]", int32_t, 0, 1, 2, 3, 4);
    TENSOR("x.offsets", SFT_I64, "[5]", int64_t, 0, 2, 2, 5, 5);
    assert_int_equal(receipts[0].columns[0].encoding, SFTI_ENCODING_LIST);
    open_shard(1); /* of one length: stacked as ever */
    TENSOR("x", SFT_I32, "[4, 2]", int32_t, 0, 1, 2, 3, 4, 5, 6, 7);
    assert_int_equal(receipts[1].tensors, 1);
    assert_int_equal(receipts[1].columns[0].encoding, SFTI_ENCODING_FIXED);
    open_shard(2);
    TENSOR("x", SFT_I32, "[6]", int32_t, 0, 1, 2, 3, 6, 7);
    TENSOR("x.offsets", SFT_I64, "[5]", int64_t, 0, 2, 4, 4, 6);
    TENSOR("x.valid", SFT_BOOL, "[4]", uint8_t, 1, 1, 0, 1);
}

/* The message of a cast has the row and the element of the row. */
static void test_list_values(void **unused) {
    struct ArrowSchema *schema =
        am_of(am_type("+s", ""), am_list("+l", "x", am_type("s", "item")));
    (void)unused;
    OPEN(schema, "batch_size=4", "dtype=BOOL");
    refuse(rows_of(lists(NULL, at), 0, 4), SFT_ROW_VALUE,
           "column \"x\", row 2: expected 0 or 1 to convert to BOOL, found 2 in element 0");
}

static void test_null_numbers(void **unused) {
    (void)unused;
    OPEN(one_type("s"), "batch_size=4", "tail_strategy=pad", "dtype=F32");
    append(rows_of(am_make(4, 0, third_null, shorts), 0, 4));
    append(rows_of(am_make(4, 0, third_null, shorts), 2, 2));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x", SFT_F32, "[4]", float, 0, 1, 0, 3);
    TENSOR("x.valid", SFT_BOOL, "[4]", uint8_t, 1, 1, 0, 1);
    open_shard(1);
    TENSOR("x", SFT_F32, "[4]", float, 0, 3, 0, 0);
    assert_int_equal(receipts[1].columns[0].encoding, SFTI_ENCODING_FIXED);
    assert_true(receipts[1].columns[0].nullable && receipts[1].columns[0].has_shape);
}

/* ── Which columns can be one ── */

static sfti_ds_column made(sfti_ds_encoding encoding, sft_dtype dtype, uint32_t rank) {
    static const uint64_t shape[] = { 2, 2 };
    return (sfti_ds_column){ .name = { "x", 1 }, .encoding = encoding, .has_dtype = true,
                             .dtype = dtype, .has_shape = !encoding, .rank = rank,
                             .shape = shape };
}

static void test_kin(void **unused) {
    const sfti_ds_column text = made(SFTI_ENCODING_UTF8, SFT_U8, 0);
    const sfti_ds_column bytes = made(SFTI_ENCODING_BINARY, SFT_U8, 0);
    const sfti_ds_column list = made(SFTI_ENCODING_LIST, SFT_U8, 0);
    const sfti_ds_column row = made(SFTI_ENCODING_FIXED, SFT_U8, 1);
    const sfti_ds_column wide = made(SFTI_ENCODING_FIXED, SFT_U8, 2);
    const sfti_ds_column other = made(SFTI_ENCODING_FIXED, SFT_I8, 1);
    (void)unused;
    const struct {
        const sfti_ds_column *a, *b;
        bool kin;
    } cases[] = { { &text, &text, true },  { &text, &bytes, false }, { &text, &list, false },
                  { &text, &row, false },  { &list, &row, true },    { &list, &wide, false },
                  { &list, &other, false }, { &list, &list, true },  { &row, &wide, true },
                  { &row, &other, true } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(sfti_ds_column_kin(cases[i].a, cases[i].b), cases[i].kin);
        assert_int_equal(sfti_ds_column_kin(cases[i].b, cases[i].a), cases[i].kin);
    }
    assert_int_equal(sfti_ds_column_agrees(&row, &list, &err), SFT_OK);
    assert_int_equal(sfti_ds_column_agrees(&list, &row, &err), SFT_DATASET_DISAGREES);
    assert_int_equal(sfti_ds_column_agrees(&row, &text, &err), SFT_DATASET_DISAGREES);
    assert_int_equal(sfti_ds_column_agrees(&wide, &list, &err), SFT_DATASET_DISAGREES);
    sfti_ds_column joined = row;
    sfti_ds_column_join(&joined, &list, SFT_DATASET_BATCH);
    assert_true(joined.encoding == SFTI_ENCODING_LIST && !joined.has_shape && joined.has_dtype);
}

/* ── Damaged files ── */

typedef struct damaged {
    sfti_ds_encoding encoding;
    const char *header; /* of tensors x, x.offsets and x.valid */
    const char *data;
    size_t len;
    const char *why; /* NULL: whole */
} damaged;

static sft_code check(const damaged *d, bool nullable) {
    const sfti_ds_column column = { .name = { "x", 1 }, .encoding = d->encoding,
                                    .nullable = nullable, .has_dtype = true, .dtype = SFT_U8 };
    const sft_allocator alloc = sfti_allocator(NULL);
    char bytes[600] = { 0 };
    size_t len = strlen(d->header), padded = (len + 7) / 8 * 8;
    bytes[0] = (char)padded;
    bytes[1] = (char)(padded >> 8);
    memset(bytes + 8, ' ', padded);
    memcpy(bytes + 8, d->header, len);
    memcpy(bytes + 8 + padded, d->data, d->len);
    temp_write("damaged.safetensors", bytes, 8 + padded + d->len);
    sft_close(file);
    file = NULL;
    if (sft_open(temp_path("damaged.safetensors"), NULL, &file, &err)) fail_msg("%s", err.message);
    return sfti_verify_rows(file, &column, 1, 2, true, &alloc, &err);
}

#define HEAD(x, n) "{\"x\":{\"dtype\":\"U8\",\"shape\":[" x "],\"data_offsets\":[24,28]}," \
    "\"x.offsets\":{\"dtype\":\"I64\",\"shape\":[" n "],\"data_offsets\":[0,24]}," \
    "\"x.valid\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[28,30]}}"
#define VALID(dtype, shape, end) "{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}," \
    "\"x.valid\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[2," end "]}}"
#define ENDED(dtype, shape, end, all) "{\"x.offsets\":{\"dtype\":\"" dtype "\",\"shape\":[" \
    shape "],\"data_offsets\":[0," end "]},\"x\":{\"dtype\":\"U8\",\"shape\":[4]," \
    "\"data_offsets\":[" end "," all "]}}"
#define ENDS(a, b, c) a "\0\0\0\0\0\0\0" b "\0\0\0\0\0\0\0" c "\0\0\0\0\0\0\0"
#define DATA(text) text, sizeof(text) - 1

static void test_damaged(void **unused) {
    static const damaged cases[] = {
        { SFTI_ENCODING_UTF8, HEAD("4", "3"), DATA(ENDS("\0", "\2", "\4") "a\xc3\xa9z\1\1"),
          "tensor x.offsets: expected rows of whole characters" },
        { SFTI_ENCODING_UTF8, HEAD("4", "3"), DATA(ENDS("\0", "\3", "\4") "a\xc3\xa9z\1\1"), NULL },
        { SFTI_ENCODING_BINARY, HEAD("4", "3"), DATA(ENDS("\0", "\2", "\4") "a\xc3\xa9z\1\1"),
          NULL },
        { SFTI_ENCODING_UTF8, HEAD("4", "3"), DATA(ENDS("\0", "\3", "\4") "a\xc3zz\1\1"),
          "tensor x: expected UTF-8" },
        { SFTI_ENCODING_UTF8, HEAD("4", "3"), DATA(ENDS("\0", "\3", "\4") "abc\xc3\1\1"),
          "tensor x: expected UTF-8" },
        { SFTI_ENCODING_LIST, HEAD("4", "3"), DATA(ENDS("\1", "\2", "\4") "abcd\1\1"),
          "tensor x.offsets: expected 0 as the first offset" },
        { SFTI_ENCODING_LIST, HEAD("4", "3"), DATA(ENDS("\0", "\3", "\2") "abcd\1\1"),
          "tensor x.offsets: expected offsets that ascend to the end of the values" },
        { SFTI_ENCODING_LIST, HEAD("4", "3"), DATA(ENDS("\0", "\5", "\4") "abcd\1\1"),
          "tensor x.offsets: expected offsets that ascend to the end of the values" },
        { SFTI_ENCODING_LIST, HEAD("4", "3"),
          DATA("\0\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377\4\0\0\0\0\0\0\0" "abcd\1\1"),
          "tensor x.offsets: expected offsets that ascend to the end of the values" },
        { SFTI_ENCODING_LIST, HEAD("4", "3"), DATA(ENDS("\0", "\2", "\3") "abcd\1\1"),
          "tensor x.offsets: expected the number of values as the last offset" },
        { SFTI_ENCODING_LIST, HEAD("4", "3"), DATA(ENDS("\0", "\2", "\4") "abcd\1\2"),
          "tensor x.valid: expected only 0 and 1" },
        { SFTI_ENCODING_LIST, HEAD("4", "3,1"), DATA(ENDS("\0", "\2", "\4") "abcd\1\1"),
          "tensor x.offsets: expected I64 with one more element than rows" },
        { SFTI_ENCODING_LIST, HEAD("2,2", "3"), DATA(ENDS("\0", "\2", "\4") "abcd\1\1"),
          "tensor x: expected values end to end, with offsets" },
        { SFTI_ENCODING_LIST, "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
          DATA("abcd"), "tensor x: expected values end to end, with offsets" },
        { SFTI_ENCODING_LIST, "{\"x\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]}}",
          DATA("abcd"), NULL },
        { SFTI_ENCODING_UTF8, "{\"x\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]}}",
          DATA("abcd"), "tensor x: expected values end to end, with offsets" },
        { SFTI_ENCODING_LIST, "{\"x\":{\"dtype\":\"U8\",\"shape\":[4,1],\"data_offsets\":[0,4]}}",
          DATA("abcd"), "tensor x: expected values end to end, with offsets" },
        { SFTI_ENCODING_LIST, "{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}",
          DATA("a"), "tensor x: expected values end to end, with offsets" },
        { SFTI_ENCODING_LIST, "{\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
          DATA("abcd"), NULL }, /* the number of columns tells */
        { SFTI_ENCODING_FIXED, VALID("BOOL", "[2]", "4"), DATA("ab\1\0"), NULL },
        { SFTI_ENCODING_FIXED, VALID("BOOL", "[2]", "4"), DATA("ab\1\2"),
          "tensor x.valid: expected only 0 and 1" },
        { SFTI_ENCODING_FIXED, VALID("U8", "[2]", "4"), DATA("ab\1\0"),
          "tensor x.valid: expected BOOL with an element a row" },
        { SFTI_ENCODING_FIXED, VALID("BOOL", "[2,1]", "4"), DATA("ab\1\0"),
          "tensor x.valid: expected BOOL with an element a row" },
        { SFTI_ENCODING_FIXED, VALID("BOOL", "[3]", "5"), DATA("ab\1\0\1"),
          "tensor x.valid: expected BOOL with an element a row" },
        { SFTI_ENCODING_LIST, ENDED("I32", "3", "12", "16"),
          DATA("\0\0\0\0\1\0\0\0\4\0\0\0" "abcd"),
          "tensor x.offsets: expected I64 with one more element than rows" },
        { SFTI_ENCODING_LIST, ENDED("I64", "0", "0", "4"), DATA("abcd"),
          "tensor x.offsets: expected I64 with one more element than rows" },
        { SFTI_ENCODING_LIST, ENDED("I64", "2", "16", "20"),
          DATA("\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0" "abcd"),
          "tensor x.offsets: expected I64 with one more element than rows" },
        { SFTI_ENCODING_UTF8, "{\"x\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[24,28]},"
          "\"x.offsets\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]}}",
          DATA(ENDS("\0", "\2", "\4") "a\xff\xffz"), NULL }, /* its dtype is told elsewhere */
        { SFTI_ENCODING_UTF8, HEAD("4", "3"), DATA(ENDS("\0", "\4", "\4") "\xf0\x9f\x98\x80\1\1"),
          NULL },
        { SFTI_ENCODING_UTF8, HEAD("4", "3"), DATA(ENDS("\0", "\0", "\4") "\x80" "abc\1\1"),
          "tensor x: expected UTF-8" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_code code = check(&cases[i], true);
        if (!cases[i].why) {
            if (code) fail_msg("case %zu: %s", i, err.message);
            continue;
        }
        assert_int_equal(code, SFT_DATASET_SHARD);
        assert_string_equal(err.message, cases[i].why);
    }
    /* Of columns without nulls nobody asks what such a tensor holds. */
    static const damaged unasked[] = {
        { SFTI_ENCODING_LIST, HEAD("4", "3"), DATA(ENDS("\0", "\2", "\4") "abcd\1\2"), NULL },
        { SFTI_ENCODING_FIXED, VALID("BOOL", "[2]", "4"), DATA("ab\1\2"), NULL },
    };
    for (size_t i = 0; i < 2; i++) assert_int_equal(check(&unasked[i], false), SFT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_text), TEST(test_not_text), TEST(test_lists), TEST(test_list_values),
        TEST(test_null_numbers), TEST(test_kin), TEST(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
