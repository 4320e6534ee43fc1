/* Structs, and lists of anything but numbers, in batch mode; the texts of their types; and what
 * verify finds in damaged ones. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "dataset/maintain/results.h"
#include "unit/shards_case.h"

static const int32_t at[] = { 0, 2, 2, 5, 5 };
static const int32_t lists_at[] = { 0, 1, 1, 3, 4 };
static const uint8_t third_null[] = { 0xfb }, second_null[] = { 0xfd };

static struct ArrowSchema *column_of(struct ArrowSchema *column) {
    return am_of(am_type("+s", ""), column);
}

static struct ArrowArray *rows_of(struct ArrowArray *column, int64_t from, int64_t length) {
    return am_with(am_make(length, from, NULL), column);
}

static void type_is(size_t receipt, const char *text) {
    const sfti_ds_column *c = &receipts[receipt].columns[0];
    assert_int_equal(c->encoding, SFTI_ENCODING_NESTED);
    assert_true(sft_span_equal(c->type, sft_span_cstr(text)));
}

/* A null struct is null in its fields. */
static void test_structs(void **unused) {
    struct ArrowSchema *type = am_type("+s", "x");
    am_of(am_of(type, am_type("s", "a")), am_type("u", "b c"));
    (void)unused;
    OPEN(column_of(type), "batch_size=4", "tail_strategy=pad");
    struct ArrowArray *values = am_with(am_make(3, 1, second_null), am_make(4, 0, NULL, shorts));
    append(rows_of(am_with(values, am_make(4, 0, third_null, at, "abcde")), 0, 3));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x.valid", SFT_BOOL, "[4]", uint8_t, 0, 1, 1, 1);
    TENSOR("x.a", SFT_I16, "[4]", int16_t, 0, 2, 3, 0);
    TENSOR("x.a.valid", SFT_BOOL, "[4]", uint8_t, 0, 1, 1, 1);
    TENSOR("x.b c.offsets", SFT_I64, "[5]", int64_t, 0, 0, 0, 0, 0);
    TENSOR("x.b c.valid", SFT_BOOL, "[4]", uint8_t, 0, 0, 1, 1);
    assert_int_equal(receipts[0].tensors, 6);
    type_is(0, "struct<a: int16, \"b c\": string>");
    assert_true(receipts[0].columns[0].nullable && !receipts[0].columns[0].has_dtype);
}

static void test_lists_of_text(void **unused) {
    (void)unused;
    OPEN(column_of(am_list("+l", "x", am_type("u", "item"))), "batch_size=4");
    append(rows_of(am_with(am_make(4, 0, third_null, lists_at),
                           am_make(4, 0, NULL, at, "ab\xc3\xa9!")), 0, 4));
    append(rows_of(am_with(am_make(4, 0, NULL, lists_at), am_make(4, 0, NULL, at, "abcde")), 1, 1));
    close_writer(NULL);
    open_shard(0); /* a null list leaves out what is in it */
    TENSOR("x.offsets", SFT_I64, "[5]", int64_t, 0, 1, 1, 1, 2);
    TENSOR("x.valid", SFT_BOOL, "[4]", uint8_t, 1, 1, 0, 1);
    TENSOR("x.item", SFT_U8, "[2]", uint8_t, 'a', 'b');
    TENSOR("x.item.offsets", SFT_I64, "[3]", int64_t, 0, 2, 2);
    type_is(0, "list<string>");
    open_shard(1); /* no element at all */
    TENSOR("x.offsets", SFT_I64, "[2]", int64_t, 0, 0);
    TENSOR("x.item.offsets", SFT_I64, "[1]", int64_t, 0);
}

/* The row of a message is that of the table. */
static void test_row_of_message(void **unused) {
    (void)unused;
    OPEN(column_of(am_list("+l", "x", am_type("u", "item"))), "batch_size=9");
    append(rows_of(am_with(am_make(4, 0, NULL, lists_at), am_make(4, 0, NULL, at, "abcde")), 0, 4));
    refuse(rows_of(am_with(am_make(4, 0, NULL, lists_at), am_make(4, 0, NULL, at, "ab\xc3z!")),
                   0, 4), SFT_ROW_VALUE,
           "column \"x.item\", row 6: expected text in UTF-8, found other bytes");
}

static void test_null_numbers(void **unused) {
    (void)unused;
    OPEN(column_of(am_list("+w:2", "x", am_type("s", "item"))), "batch_size=3", "dtype=I32");
    append(rows_of(am_with(am_make(3, 0, second_null), am_make(6, 0, NULL, shorts)), 0, 3));
    append(rows_of(am_with(am_make(3, 0, second_null), am_make(6, 0, second_null, shorts)), 0, 3));
    close_writer(NULL);
    open_shard(0);
    TENSOR("x", SFT_I32, "[3, 2]", int32_t, 0, 1, 0, 0, 4, 5);
    assert_int_equal(receipts[0].columns[0].encoding, SFTI_ENCODING_FIXED);
    open_shard(1);
    TENSOR("x.offsets", SFT_I64, "[4]", int64_t, 0, 2, 4, 6);
    TENSOR("x.item", SFT_I32, "[6]", int32_t, 0, 0, 0, 0, 4, 5);
    TENSOR("x.item.valid", SFT_BOOL, "[6]", uint8_t, 1, 0, 0, 0, 1, 1);
    type_is(1, "fixed_size_list<int32>[2]");
}

static void test_broken_arrays(void **unused) {
    static const int32_t beyond[] = { 0, 1, 9 };
    (void)unused;
    struct ArrowSchema *type = am_type("+s", "item");
    OPEN(column_of(am_list("+l", "x", am_of(type, am_type("s", "a")))), "batch_size=9");
    refuse(rows_of(am_with(am_make(2, 0, NULL, beyond),
                           am_with(am_make(4, 0, NULL), am_make(4, 0, NULL, shorts))), 0, 2),
           SFT_BAD_ARGUMENT, "column \"x\", row 1: expected an array that keeps Arrow's rules, "
                             "found offsets beyond the elements");
    sft_dataset_options_free(options);
    OPEN(column_of(am_of(am_type("+s", "x"), am_type("s", "a"))), "batch_size=9");
    refuse(rows_of(am_make(2, 0, NULL), 0, 2), SFT_BAD_ARGUMENT,
           "expected an array that keeps Arrow's rules, found a struct without its children");
}

/* ── Names ── */

static void named(struct ArrowSchema *a, struct ArrowSchema *b, const char *why) {
    struct ArrowSchema *schema = am_of(am_of(am_type("+s", ""), a), b);
    const sft_pair pair = { { "batch_size", 10 }, { "2", 1 } };
    sft_dataset_options *own = NULL;
    assert_int_equal(sft_dataset_options_new(&pair, 1, NULL, &own, &err), SFT_OK);
    sft_code code = sft_dataset_check_schema(own, schema, NULL, &err);
    sft_dataset_options_free(own);
    assert_int_equal(code, why ? SFT_COLUMN_TYPE : SFT_OK);
    if (why && !strstr(err.message, why)) fail_msg("%s", err.message);
}

static struct ArrowSchema *struct_of(const char *name, const char *field) {
    return am_of(am_type("+s", name), am_type("l", field));
}

static void test_names(void **unused) {
    (void)unused;
    named(struct_of("a", "b"), am_type("l", "a.b"), "column \"a.b\": expected another name");
    named(struct_of("a", "b"), am_type("l", "a.valid"), "that of a tensor of the column \"a\"");
    named(struct_of("a", "b"), am_type("l", "a.offsets"), NULL);
    named(struct_of("a", "valid"), am_type("l", "c"), "that of a tensor of the column \"a\"");
    named(struct_of("a", "b.c"), am_of(am_type("+s", "a.b"), am_type("l", "c")), "\"a.b.c\"");
    named(am_list("+l", "x", am_type("u", "item")), am_type("l", "x.item"), "\"x.item\"");
    named(am_list("+l", "x", am_type("u", "item")), am_type("l", "x.items"), NULL);
    named(am_of(struct_of("a", "b"), am_type("l", "b")), am_type("l", "c"), "\"a.b\"");
    named(am_of(am_type("+s", "a"), am_type("+m", "b")), am_type("l", "c"),
          "column \"a\" (struct<b: map>): in a.b: values of this type have no dtype");
    struct ArrowSchema *deep = am_type("u", "x");
    for (int i = 0; i < SFT_MAX_RANK; i++) deep = am_list("+l", "x", deep);
    named(deep, am_type("l", "c"), "nested too deep");
}

/* ── Types ── */

static void parsed(const char *text, size_t count, const char *last) {
    sfti_ds_inner *all = NULL;
    size_t found = 0;
    sft_code code = sfti_ds_type_parse(sft_span_cstr("x"), sft_span_cstr(text), &arena, &all,
                                       &found, &err);
    assert_int_equal(code, count ? SFT_OK : SFT_BAD_ARGUMENT);
    if (!count) return;
    assert_int_equal(found, count);
    if (!sft_span_equal(all[count - 1].name, sft_span_cstr(last)))
        fail_msg("%.*s", SFTI_CLIP(all[count - 1].name, 100));
}

static void test_types(void **unused) {
    static const char *const bad[] = { "", "int", "list<", "list<int8", "struct<>", "struct<a>",
                                       "struct<a: int8,b: int8>", "list<int8, int8>", "int8>",
                                       "struct<\"a: int8>", "struct<\"a\\", "struct<\"\\u00",
                                       "fixed_size_list<int8>[x]", "timestamp[us",
                                       "fixed_size_binary[]", "list<int8> " };
    (void)unused;
    parsed("list<list<string>>", 3, "x.item.item");
    parsed("struct<a: list<timestamp[us, tz=UTC]>, \"b \\\"\\\\\\u001f\": decimal128(10, 2)>", 4,
           "x.b \"\\\x1f");
    parsed("struct<a: struct<b: fixed_size_list<BF16>[3], c: bool>, d: fixed_size_binary[7]>", 6,
           "x.d");
    parsed("large_list_view<struct<\"\": date32[day]>>", 3, "x.item.");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) parsed(bad[i], 0, NULL);
}

/* ── Verify ── */

static sft_code verified(const char *type, const char *header, const char *data, size_t len) {
    const sfti_ds_column c = { .name = { "x", 1 }, .encoding = SFTI_ENCODING_NESTED,
                               .type = sft_span_cstr(type) };
    uint64_t n = strlen(header);
    char *bytes = malloc(8 + n + len);
    for (int i = 0; i < 8; i++) bytes[i] = (char)(n >> 8 * i);
    memcpy(bytes + 8, header, n);
    memcpy(bytes + 8 + n, data, len);
    sft_file *own = NULL;
    sft_allocator libc = sfti_allocator(NULL);
    sft_code code = sft_open_memory(bytes, 8 + n + len, NULL, &own, &err);
    if (code) fail_msg("%s", err.message);
    code = sfti_verify_rows(own, &c, 1, 2, true, &libc, &err);
    sft_close(own);
    free(bytes);
    return code;
}

#define T(name, dtype, shape, from, to) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape \
    "],\"data_offsets\":[" from "," to "]}"
#define E "\0\0\0\0\0\0\0"

static void test_damaged(void **unused) {
    static const struct {
        const char *type, *header, *data, *why;
        size_t len;
    } cases[] = {
        { "list<string>", "{" T("x.offsets", "I64", "3", "0", "24") ","
          T("x.item.offsets", "I64", "3", "24", "48") "," T("x.item", "U8", "3", "48", "51") "}",
          "\0" E "\1" E "\2" E "\0" E "\1" E "\3" E "abc", NULL, 51 },
        { "list<string>", "{" T("x.offsets", "I64", "3", "0", "24") ","
          T("x.item.offsets", "I64", "3", "24", "48") "," T("x.item", "U8", "3", "48", "51") "}",
          "\0" E "\1" E "\3" E "\0" E "\1" E "\3" E "abc",
          "tensor x.item.offsets: expected I64 with one more element than rows", 51 },
        { "list<string>", "{" T("x.offsets", "I64", "3", "0", "24") "}", "\0" E "\1" E "\2" E,
          "expected a tensor of x.item, found none", 24 },
        { "list<int8>", "{" T("x", "I8", "2,2", "0", "4") "}", "abcd", NULL, 4 },
        { "list<int8>", "{" T("x", "I8", "2,2", "0", "4") "," T("x.item", "I8", "1", "4", "5") "}",
          "abcde", "column x: expected 1 tensors, found 2", 5 },
        { "list<int8>", "{" T("x", "U8", "2,2", "0", "4") "}", "abcd",
          "tensor x: expected numbers as in the type", 4 },
        { "struct<a: int8>", "{" T("x.a", "I8", "2", "0", "2") ","
          T("x.valid", "BOOL", "2", "2", "4") "}", "ab\1\2",
          "tensor x.valid: expected only 0 and 1", 4 },
        { "struct<a: int8>", "{" T("x.a", "I8", "3", "0", "3") "}", "abc",
          "tensor x.a: expected dtype and shape of its type and rows", 3 },
        { "struct<a: fixed_size_binary[3]>", "{" T("x.a", "U8", "2,3", "0", "6") "}", "abcdef",
          NULL, 6 },
        { "struct<a: fixed_size_binary[3]>", "{" T("x.a", "U8", "2,2", "0", "4") "}", "abcd",
          "tensor x.a: expected dtype and shape of its type and rows", 4 },
        { "struct<a: fixed_size_binary[3]>", "{" T("x.a", "U8", "6", "0", "6") "}", "abcdef",
          "tensor x.a: expected dtype and shape of its type and rows", 6 },
        { "struct<a: int8>", "{" T("x.a", "U8", "2", "0", "2") "}", "ab",
          "tensor x.a: expected dtype and shape of its type and rows", 2 },
        { "struct<a: int8>", "{" T("x.b", "I8", "2", "0", "2") "}", "ab",
          "expected a tensor of x.a, found none", 2 },
        { "struct<a: int8>", "{" T("x.a", "I8", "2", "0", "2") ","
          T("x.valid", "BOOL", "3", "2", "5") "}", "ab\1\1\1",
          "tensor x.valid: expected BOOL with an element a row", 5 },
        { "struct<a: string>", "{" T("x.a.offsets", "I64", "3", "0", "24") "}",
          "\0" E "\1" E "\2" E, "expected a tensor of x.a, found none", 24 },
        { "struct<a: string>", "{" T("x.a", "U8", "2", "0", "2") "}", "ab",
          "expected a tensor of x.a, found none", 2 },
        { "struct<a: string>", "{" T("x.a.offsets", "I64", "3", "0", "24") ","
          T("x.a", "I8", "2", "24", "26") "}", "\0" E "\1" E "\2" E "ab",
          "tensor x.a: expected bytes end to end", 26 },
        { "struct<a: string>", "{" T("x.a.offsets", "I64", "3", "0", "24") ","
          T("x.a", "U8", "2,1", "24", "26") "}", "\0" E "\1" E "\2" E "ab",
          "tensor x.a: expected bytes end to end", 26 },
        { "struct<a: string>", "{" T("x.a.offsets", "I64", "3", "0", "24") ","
          T("x.a", "U8", "2", "24", "26") "}", "\0" E "\1" E "\2" E "a\377",
          "tensor x.a: expected UTF-8", 26 },
        { "struct<a: binary>", "{" T("x.a.offsets", "I64", "3", "0", "24") ","
          T("x.a", "U8", "2", "24", "26") "}", "\0" E "\1" E "\2" E "a\377", NULL, 26 },
        { "list<int8>", "{" T("y", "I8", "2", "0", "2") "}", "ab",
          "expected a tensor of x, found none", 2 },
        { "list<int8>", "{" T("x.offsets", "I64", "3", "0", "24") ","
          T("x", "I8", "2", "24", "26") "}", "\0" E "\1" E "\2" E "ab", NULL, 26 },
        { "list<int8>", "{" T("x.offsets", "I64", "3", "0", "24") ","
          T("x", "I8", "2,1", "24", "26") "}", "\0" E "\1" E "\2" E "ab",
          "tensor x: expected rows of lists", 26 },
        { "list<int8>", "{" T("x", "I8", "2", "0", "2") "}", "ab",
          "tensor x: expected rows of lists", 2 },
        { "list<int8>", "{" T("x", "I8", "3,1", "0", "3") "}", "abc",
          "tensor x: expected rows of lists", 3 },
        { "list<list<int8>>", "{" T("x", "I8", "2,1,2", "0", "4") "}", "abcd", NULL, 4 },
        { "list<list<int8>>", "{" T("x", "I8", "2,2", "0", "4") "}", "abcd",
          "tensor x: expected rows of lists", 4 },
        { "list<struct<a: int8>>", "{" T("x", "I8", "2,1", "0", "2") "}", "ab",
          "tensor x: expected numbers as in the type", 2 },
        { "list<fixed_size_binary[1]>", "{" T("x", "U8", "2,1", "0", "2") "}", "ab",
          "tensor x: expected numbers as in the type", 2 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_code code = verified(cases[i].type, cases[i].header, cases[i].data, cases[i].len);
        if (!cases[i].why && code) fail_msg("case %zu: %s", i, err.message);
        if (!cases[i].why) continue;
        assert_int_equal(code, SFT_DATASET_SHARD);
        assert_string_equal(err.message, cases[i].why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_structs), TEST(test_lists_of_text), TEST(test_row_of_message),
        TEST(test_null_numbers), TEST(test_broken_arrays), TEST(test_names), TEST(test_types),
        TEST(test_damaged),
    };
    return cmocka_run_group_tests_name("dataset_nested", tests, NULL, NULL);
}
