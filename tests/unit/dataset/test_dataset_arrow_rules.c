/* Schemas and arrays that break Arrow's rules, or keep them to the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/endian.h"
#include "dataset/arrow/arrow.h"
#include "unit/arrow_make.h"

static sfti_arena arena;
static sft_buffer buffer;
static sft_error err;
static sfti_arrow_type type;

static int set_up(void **unused) {
    (void)unused;
    am_reset();
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    buffer = (sft_buffer){ NULL, 0, 0, { NULL, NULL } };
    return 0;
}

static int tear_down(void **unused) {
    (void)unused;
    sfti_arena_free(&arena);
    sft_buffer_free(&buffer);
    return 0;
}

static void read_type(const struct ArrowSchema *schema) {
    if (sfti_arrow_type_read(schema, &arena, &type, &err)) fail_msg("%s", err.message);
}

static void refuse_type(const struct ArrowSchema *schema, const char *why) {
    assert_int_equal(sfti_arrow_type_read(schema, &arena, &type, &err), SFT_COLUMN_TYPE);
    if (!strstr(err.message, why)) fail_msg("expected %s in %s", why, err.message);
}

static void text_is(const struct ArrowSchema *schema, const char *expected) {
    char text[SFTI_ARROW_TEXT];
    sfti_arrow_type_text(schema, text);
    assert_string_equal(text, expected);
}

static const int16_t shorts[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

/* ── Types ── */

static void test_formats_missing(void **unused) {
    static const char *const texts[3] = { "u", "U", "vu" };
    struct ArrowSchema *none = am_type(NULL, "x");
    (void)unused;
    refuse_type(none, "values of this type have no dtype (Arrow format \"\")");
    text_is(none, "unknown");
    assert_false(sfti_arrow_has_format(none, texts));
    assert_false(sfti_arrow_has_format(am_dictionary("i", am_type(NULL, "x")), texts));
    refuse_type(am_dictionary("i", am_type(NULL, "x")), "have no dtype (Arrow format \"\")");
    refuse_type(am_dictionary(NULL, am_type("u", "x")), "this kind of dictionary");
    text_is(am_dictionary("i", am_type(NULL, "x")), "dictionary of unknown");
    refuse_type(am_list("+l", "x", am_type(NULL, "x")), "have no dtype (Arrow format \"\")");
}

static void test_dictionary_keys(void **unused) {
    static const char *const bad[] = { "q", "u", "b", "tdD", "e", "f", "g", "+s" };
    static const char *const good[] = { "c", "C", "s", "S", "i", "I", "l", "L" };
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_type(am_dictionary(bad[i], am_type("s", "x")), "this kind of dictionary");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        read_type(am_dictionary(good[i], am_type("s", "x")));
        assert_int_equal(type.key_bytes, 1u << i / 2);
        assert_int_equal(type.dtype, SFT_I16);
    }
}

static void test_children_missing(void **unused) {
    struct ArrowSchema *list = am_type("+l", "x"), *fields = am_type("+s", "x");
    (void)unused;
    list->n_children = 1;
    refuse_type(list, "expected a list with one child");
    list->children = NULL;
    refuse_type(list, "expected a list with one child");
    text_is(list, "unknown");
    list->n_children = 0;
    text_is(list, "unknown");
    am_of(am_of(fields, NULL), am_type("s", NULL));
    text_is(fields, "struct<\"\": …, \"\": int16>");
    fields->n_children = -1; /* not read as a count */
    text_is(fields, "struct");
    fields->n_children = 2;
    fields->children = NULL;
    text_is(fields, "struct");
    text_is(am_dictionary("i", am_type("+s", "x")), "dictionary of struct");
    read_type(am_type("+s", "x"));
    assert_int_equal(type.leaf, SFTI_LEAF_STRUCT);
}

static void test_names(void **unused) {
    static const struct {
        const char *name, *text;
    } all[] = {
        { "aZ_09", "struct<aZ_09: int8>" },     { "a/", "struct<\"a/\": int8>" },
        { "a:", "struct<\"a:\": int8>" },       { "a@", "struct<\"a@\": int8>" },
        { "a[", "struct<\"a[\": int8>" },       { "a`", "struct<\"a`\": int8>" },
        { "a{b", "struct<\"a{b\": int8>" },     { "\"\\", "struct<\"\\\"\\\\\": int8>" },
        { "\x1f", "struct<\"\\u001f\": int8>" }, { "\xc3\xa9", "struct<\"\xc3\xa9\": int8>" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        text_is(am_of(am_type("+s", "x"), am_type("c", all[i].name)), all[i].text);
}

static void test_parameters(void **unused) {
    static const struct {
        const char *format, *text; /* NULL: no dtype */
    } all[] = {
        { "tss:Europe/Berlin", "timestamp[s, tz=Europe/Berlin]" },
        { "tsm:+05:30", "timestamp[ms, tz=+05:30]" },
        { "tsu:Etc/GMT-0", "timestamp[us, tz=Etc/GMT-0]" },
        { "tsu:Z_z", "timestamp[us, tz=Z_z]" },
        { "tsu:a~", NULL }, { "tsu:a@", NULL }, { "tsu:a`", NULL }, { "tsu:a[", NULL },
        { "tsu:a;", NULL }, { "tsu:a!", NULL },
        { "d:9,2,64", "decimal64(9, 2)" }, { "d:9,2,256", "decimal256(9, 2)" },
        { "d:x,2", NULL }, { "d:9,x", NULL }, { "d:-9,2", NULL }, { "d:9,2,x", NULL },
        { "d:9,--2", NULL }, { "d:9,2,0", NULL }, { "d:", NULL },
        { "+lx", NULL }, { "+vLx", NULL }, { "+v", NULL }, { "+", NULL }, { "l1", NULL },
        { "+w:2147483648", NULL },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct ArrowSchema *schema = am_type(all[i].format, "x");
        if (!all[i].text) {
            refuse_type(schema, "values of this type have no dtype");
            continue;
        }
        read_type(schema);
        assert_true(type.bytes >= 8);
        text_is(schema, all[i].text);
    }
    read_type(am_type("w:2147483647", "x"));
    assert_int_equal(type.bytes, INT32_MAX);
    refuse_type(am_type("w:2147483648", "x"), "expected the width of fixed-size bytes");
    assert_string_equal(sfti_ds_type_name(SFT_F64), "double");
    assert_string_equal(sfti_ds_type_name(SFT_BF16), "BF16");
}

/* ── Extension types ── */

static void test_metadata(void **unused) {
    static const int32_t one = 1, wrong = -1;
    char text[512], cut[512];
    (void)unused;
    struct ArrowSchema *schema = am_extension(am_type("s", "x"), "arrow.bool8", "", text);
    read_type(schema); /* bool8 is of int8 */
    assert_int_equal(type.dtype, SFT_I16);
    schema = am_extension(am_type("c", "x"), "arrow.bool8", "", text);
    memcpy(text + 4, &wrong, 4); /* a length below 0: no metadata */
    read_type(schema);
    assert_int_equal(type.dtype, SFT_I8);
    schema = am_extension(am_list("+w:6", "x", am_type("s", "x")), "arrow.fixed_shape_tensor",
                          "{\"shape\":[2,3]}", cut);
    read_type(schema);
    assert_true(type.has_shape);
    memcpy(cut, &one, 4); /* the name alone */
    refuse_type(schema, "a fixed_shape_tensor without a shape");
}

static void test_fixed_shape(void **unused) {
    static const struct {
        const char *text, *why;
    } all[] = {
        { "{\"shape\":6}", "without a shape" },
        { "{\"shape\":{\"shape\":[2,3]}}", "without a shape" },
        { "{\"x\":{\"shape\":[2,3]}}", "without a shape" },
        { "{\"shape\":[2,3]", "without a shape" },
        { "{\"shape\":[2,3],\"permutation\":6}", "or permuted" },
        { "{\"shape\":[2,3],\"permutation\":[0,-1]}", "or permuted" },
        { "{\"shape\":[2,3,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
          "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}", "without a shape" },
        { "{\"shape\":[3,3]}", "does not match its length" },
    };
    char text[512];
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        refuse_type(am_extension(am_list("+w:6", "x", am_type("s", "x")),
                                 "arrow.fixed_shape_tensor", all[i].text, text), all[i].why);
    refuse_type(am_extension(am_type("s", "x"), "arrow.fixed_shape_tensor", "{\"shape\":[6]}",
                             text), "does not match its length");
    assert_int_equal(sfti_arrow_type_read(
        am_extension(am_list("+w:6", "x", am_type("s", "x")), "arrow.fixed_shape_tensor",
                     "{\"shape\":[4294967296,4294967296]}", text), &arena, &type, &err),
        SFT_SIZE_OVERFLOW);
}

/* ── Arrays without what their type needs ── */

static void broken(const struct ArrowArray *array, const char *what) {
    assert_int_equal(sfti_arrow_check(&type, array, &err), SFT_BAD_ARGUMENT);
    if (!strstr(err.message, what)) fail_msg("expected %s in %s", what, err.message);
}

static void test_check(void **unused) {
    static const int32_t at[] = { 0, 1, 2 };
    struct ArrowArray *array, *values = am_make(2, 0, NULL, shorts);
    (void)unused;
    read_type(am_list("+vl", "x", am_type("s", "x")));
    broken(am_with(am_make(2, 0, NULL, at), values), "a list without its buffers");
    broken(am_with(am_make(2, 0, NULL, at, NULL), values), "a list without its buffers");
    assert_int_equal(sfti_arrow_check(&type, am_with(am_make(0, 0, NULL, NULL, NULL), values),
                                      &err), SFT_OK);
    array = am_with(am_make(2, 0, NULL, at, at), values);
    array->children = NULL;
    broken(array, "a list without its buffers");
    read_type(am_type("s", "x"));
    broken(NULL, "an array without its buffers");
    array = am_make(2, 0, NULL, shorts);
    array->buffers = NULL;
    broken(array, "an array without its buffers");
    read_type(am_type("u", "x"));
    broken(am_make(2, 0, NULL, at), "an array without its buffers");
    read_type(am_type("+s", "x"));
    assert_int_equal(sfti_arrow_check(&type, am_make(2, 0, NULL), &err), SFT_OK);
    broken(am_make(-1, 0, NULL), "an array without its buffers");
    read_type(am_dictionary("C", am_type("s", "x")));
    broken(am_make(2, 0, NULL), "a dictionary's array without its buffers");
    broken(am_make(2, 0, NULL, "\0\1"), "a dictionary's array without its buffers");
    broken(am_look_up(am_make(2, 0, NULL, "\0\1"), am_make(2, 0, NULL)),
           "an array without its buffers");
}

static void test_check_struct(void **unused) {
    struct ArrowArray *child = am_make(4, 0, NULL, shorts), *bad[8];
    (void)unused;
    for (int i = 0; i < 8; i++) bad[i] = am_with(am_make(3, 1, NULL), child);
    assert_int_equal(sfti_arrow_check_struct(bad[0], 1, &err), SFT_OK);
    assert_int_equal(sfti_arrow_check_struct(am_make(3, 1, NULL), 0, &err), SFT_OK);
    am_with(bad[0], child);
    bad[1]->n_children = 0;
    bad[2]->children = NULL;
    bad[3]->children[0] = NULL;
    bad[4]->children[0] = am_make(-1, 0, NULL, shorts);
    bad[5]->offset = 5; /* beyond its child */
    bad[6]->length = 4;
    bad[7]->length = -1;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(sfti_arrow_check_struct(bad[i], 1, &err), SFT_BAD_ARGUMENT);
        assert_string_equal(err.message, "expected an array that keeps Arrow's rules, found a "
                                         "struct without its children");
    }
}

/* ── Rows ── */

static void row_fails(const struct ArrowArray *array, uint64_t i, sft_code code, const char *why) {
    sfti_arrow_rows rows;
    assert_int_equal(sfti_arrow_check(&type, array, &err), SFT_OK);
    assert_int_equal(sfti_arrow_elements(&type, array, i, 1, &buffer, &rows, &err), code);
    if (!strstr(err.message, why)) fail_msg("expected %s in %s", why, err.message);
}

static void test_nulls(void **unused) {
    static const uint8_t all[16] = { 255, 255, 255, 255, 255, 255, 255, 255 };
    static const int16_t many[128];
    static const uint8_t keys[] = { 0, 1, 7 }, second[] = { 0xfd };
    sfti_arrow_rows rows;
    (void)unused;
    read_type(am_type("s", "x"));
    struct ArrowArray *array = am_make(64, 0, all, many); /* one word of the mask, none beyond */
    assert_int_equal(sfti_arrow_elements(&type, array, 0, 64, &buffer, &rows, &err), SFT_OK);
    assert_int_equal(rows.rows, 64);
    array->length = 65;
    assert_int_equal(sfti_arrow_elements(&type, array, 64, 1, &buffer, &rows, &err), SFT_ROW_NULL);
    assert_true(sfti_arrow_row_null(&type, array, 64));
    assert_false(sfti_arrow_row_null(&type, array, 63));
    assert_false(sfti_arrow_row_null(&type, array, 65)); /* there is none */
    array->n_buffers = 0; /* of which the mask would be the first */
    assert_false(sfti_arrow_null(array, 64));
    read_type(am_dictionary("C", am_type("s", "x")));
    array = am_look_up(am_make(3, 0, NULL, keys), am_make(2, 0, second, shorts));
    assert_false(sfti_arrow_row_null(&type, array, 0));
    assert_true(sfti_arrow_row_null(&type, array, 1));
    assert_false(sfti_arrow_row_null(&type, array, 2)); /* beyond its dictionary */
    read_type(am_list("+l", "x", am_dictionary("C", am_type("s", "x"))));
    static const int32_t at[] = { 0, 1, 2 };
    assert_false(sfti_arrow_row_null(&type, am_with(am_make(2, 0, NULL, at), array), 1));
}

static void bytes_are(const struct ArrowArray *array, uint64_t i, const char *text) {
    sft_span found = { NULL, 0 };
    assert_int_equal(sfti_arrow_bytes(&type, array, i, &found), text != NULL);
    if (text) assert_true(sft_span_equal(found, sft_span_cstr(text)));
}

static void test_text(void **unused) {
    static const int32_t at[] = { -1, 1, 2, 3 };
    static const uint8_t keys[] = { 0, 1, 2 }, second[] = { 0xfd };
    (void)unused;
    read_type(am_type("u", "x"));
    bytes_are(am_make(3, 0, NULL, at, "abc"), 0, NULL);
    bytes_are(am_make(3, 0, NULL, at, "abc"), 1, "b");
    bytes_are(am_make(3, 0, NULL, at, NULL), 1, NULL); /* bytes of nothing */
    read_type(am_dictionary("C", am_type("u", "x")));
    struct ArrowArray *array =
        am_look_up(am_make(3, 0, NULL, keys), am_make(3, 0, second, at, "abc"));
    bytes_are(array, 0, NULL);
    bytes_are(array, 1, NULL);
    bytes_are(array, 2, "c");
}

static void test_text_views(void **unused) {
    static const char far_away[] = "0123456789abcdefghij";
    static const int64_t sizes[] = { 20, 0 };
    static const int32_t views[][4] = { { -1 }, { 13, 0, -1, 0 }, { 13, 0, 0, -1 }, { 13, 0, 0, 8 },
                                        { 13, 0, 0, 21 }, { 13, 0, 0, 7 } };
    (void)unused;
    read_type(am_type("vz", "x"));
    struct ArrowArray *array = am_make(6, 0, NULL, views, far_away, sizes);
    for (uint64_t i = 0; i < 5; i++) bytes_are(array, i, NULL);
    bytes_are(array, 5, "789abcdefghij");
    bytes_are(am_make(6, 0, NULL, views, far_away, NULL), 5, NULL); /* without the sizes */
    bytes_are(am_make(6, 0, NULL, views, NULL, sizes), 5, NULL);
}

static void test_list_ranges(void **unused) {
    static const int32_t negative[] = { -1, 2, 3 }, lengths[] = { -2, 1, 1 };
    struct ArrowArray *values = am_make(12, 0, NULL, shorts), *array;
    uint64_t begin, end;
    (void)unused;
    read_type(am_list("+l", "x", am_type("s", "x")));
    array = am_with(am_make(2, 0, NULL, negative), values);
    row_fails(array, 0, SFT_BAD_ARGUMENT, "offsets that do not ascend");
    assert_int_equal(sfti_arrow_list_range(&type.list[0], array, 2, &begin, &end, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "a list beyond its array"));
    read_type(am_list("+vl", "x", am_type("s", "x")));
    row_fails(am_with(am_make(2, 0, NULL, negative, negative), values), 0, SFT_BAD_ARGUMENT,
              "offsets that do not ascend");
    row_fails(am_with(am_make(2, 0, NULL, lengths + 1, lengths), values), 0, SFT_BAD_ARGUMENT,
              "offsets that do not ascend");
    read_type(am_list("+w:3", "x", am_type("s", "x")));
    array = am_with(am_make(1, INT64_MAX - 1, NULL), values); /* 3 times that */
    row_fails(array, 0, SFT_BAD_ARGUMENT, "lists beyond 64 bits");
    array->offset = (int64_t)(UINT64_MAX / 3); /* the end alone */
    row_fails(array, 0, SFT_BAD_ARGUMENT, "lists beyond 64 bits");
}

/* Two lists of two views each; the lists of the first are apart in memory. */
static void test_apart(void **unused) {
    static const int32_t outer[] = { 0, 2, 4 }, at[] = { 4, 0, 2, 4 }, len[] = { 2, 2, 2, 2 };
    static const int32_t beyond[] = { 0, 2, 4, 99, 99, 99, 99 }, odd[] = { 0, 1, 3, 5, 7, 9, 11 };
    static const uint8_t lost[] = { 0xfe };
    sfti_arrow_rows rows;
    (void)unused;
    read_type(am_list("+l", "x", am_list("+vl", "x", am_list("+w:2", "x", am_type("s", "x")))));
    struct ArrowArray *inner = am_with(am_make(6, 0, NULL), am_make(12, 0, NULL, shorts));
    struct ArrowArray *top = am_with(am_make(1, 0, NULL, outer),
                                     am_with(am_make(2, 0, NULL, at, len), inner));
    assert_int_equal(sfti_arrow_check(&type, top, &err), SFT_OK);
    assert_int_equal(sfti_arrow_elements(&type, top, 0, 1, &buffer, &rows, &err), SFT_OK);
    assert_int_equal(rows.rank, 3);
    assert_int_equal(rows.elements, 8);
    assert_memory_equal(buffer.data + rows.at, ((const int16_t[]){ 8, 9, 10, 11, 0, 1, 2, 3 }), 16);
    /* What is in lists that are apart is checked as elsewhere. */
    inner = am_with(am_make(6, 0, lost), am_make(12, 0, NULL, shorts));
    top = am_with(am_make(1, 0, NULL, outer), am_with(am_make(2, 0, NULL, at, len), inner));
    row_fails(top, 0, SFT_ROW_NULL, "found null");
    read_type(am_list("+l", "x", am_list("+vl", "x", am_list("+l", "x", am_type("s", "x")))));
    inner = am_with(am_make(6, 0, NULL, odd), am_make(12, 0, NULL, shorts));
    top = am_with(am_make(1, 0, NULL, outer), am_with(am_make(2, 0, NULL, at, len), inner));
    row_fails(top, 0, SFT_ROW_SHAPE, "expected lists of one length (2), found 1");
    inner = am_with(am_make(6, 0, NULL, beyond), am_make(12, 0, NULL, shorts));
    top = am_with(am_make(1, 0, NULL, outer), am_with(am_make(2, 0, NULL, at, len), inner));
    row_fails(top, 0, SFT_BAD_ARGUMENT, "offsets beyond the elements");
    static const uint8_t first[] = { 0xef }, second[] = { 0xfd }; /* of the first view, and not */
    static const int32_t pairs[] = { 0, 2, 4, 6, 8, 10, 12 };
    for (int i = 0; i < 2; i++) {
        inner = am_with(am_make(6, 0, i ? second : first, pairs), am_make(12, 0, NULL, shorts));
        top = am_with(am_make(1, 0, NULL, outer), am_with(am_make(2, 0, NULL, at, len), inner));
        row_fails(top, 0, SFT_ROW_NULL, "found null");
    }
}

/* Four levels, the third of which is empty: the fourth has the length that its type says, if it
 * does. */
static void test_apart_empty(void **unused) {
    static const int32_t outer[] = { 0, 2 }, at[] = { 2, 0 }, len[] = { 2, 2 };
    static const int32_t none[] = { 0, 0, 0, 0, 0 };
    sfti_arrow_rows rows;
    (void)unused;
    for (uint64_t fixed = 0; fixed < 2; fixed++) {
        read_type(am_list("+l", "x", am_list("+vl", "x", am_list("+l", "x",
                  am_list(fixed ? "+w:3" : "+l", "x", am_type("s", "x"))))));
        struct ArrowArray *last =
            fixed ? am_make(0, 0, NULL) : am_make(0, 0, NULL, none);
        struct ArrowArray *third = am_with(am_make(4, 0, NULL, none),
                                           am_with(last, am_make(0, 0, NULL, NULL)));
        struct ArrowArray *top = am_with(am_make(1, 0, NULL, outer),
                                         am_with(am_make(2, 0, NULL, at, len), third));
        assert_int_equal(sfti_arrow_check(&type, top, &err), SFT_OK);
        assert_int_equal(sfti_arrow_elements(&type, top, 0, 1, &buffer, &rows, &err), SFT_OK);
        assert_int_equal(rows.elements, 0);
        assert_int_equal(rows.rank, 4);
        const uint64_t shape[] = { 2, 2, 0, 3 * fixed };
        assert_memory_equal(rows.shape, shape, sizeof shape);
    }
}

/* ── Runs of rows ── */

static void run_is(const struct ArrowArray *array, uint64_t first, uint64_t most, uint64_t from,
                   uint64_t expected) {
    uint64_t rows = 99;
    sft_span out = { NULL, 0 };
    buffer.len = 0;
    assert_true(sfti_arrow_run(&type, array, first, most, from, &buffer, &rows, &out));
    assert_int_equal(rows, expected);
    assert_int_equal(buffer.len, 8 * expected);
}

static void test_runs(void **unused) {
    static const int32_t at[] = { 0, 1, 3, 2, 12 }, negative[] = { -1, 1 };
    static const uint8_t all[] = { 255, 255 };
    static const struct {
        const char *format;
        bool runs;
    } leaves[] = { { "u", true }, { "Z", true }, { "vu", false }, { "s", false } };
    static const struct {
        const char *list, *format;
        bool runs;
    } lists[] = { { "+l", "s", true }, { "+L", "g", true }, { "+vl", "s", false },
                  { "+w:2", "s", false }, { "+l", "b", false } };
    (void)unused;
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        read_type(am_type(leaves[i].format, "x"));
        assert_int_equal(sfti_arrow_has_runs(&type), leaves[i].runs);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        read_type(am_list(lists[i].list, "x", am_type(lists[i].format, "x")));
        assert_int_equal(sfti_arrow_has_runs(&type), lists[i].runs);
    }
    read_type(am_list("+l", "x", am_list("+l", "x", am_type("s", "x"))));
    assert_false(sfti_arrow_has_runs(&type));
    read_type(am_list("+l", "x", am_dictionary("C", am_type("s", "x"))));
    assert_false(sfti_arrow_has_runs(&type));

    read_type(am_list("+l", "x", am_type("s", "x")));
    struct ArrowArray *array = am_with(am_make(4, 0, NULL, at), am_make(9, 0, NULL, shorts));
    run_is(array, 0, 2, 10, 2);
    assert_int_equal(sfti_get_u64(buffer.data), 11);
    assert_int_equal(sfti_get_u64(buffer.data + 8), 13);
    run_is(array, 0, 4, 0, 2);            /* the third ends before it begins */
    run_is(array, 3, 1, 0, 0);            /* the fourth beyond the elements */
    run_is(array, 4, 1, 0, 0);            /* no row */
    run_is(array, 1, 4, 0, 0);            /* more than there are */
    run_is(array, 0, 2, INT64_MAX, 0);    /* ends beyond 63 bits */
    run_is(array, 0, 2, INT64_MAX - 2, 1);
    run_is(am_with(am_make(1, 0, NULL, negative), am_make(9, 0, NULL, shorts)), 0, 1, 0, 0);
    run_is(am_with(am_make(1, 2, NULL, at), am_make(2, 0, NULL, shorts)), 0, 1, 0, 0);
    run_is(am_with(am_make(2, 0, NULL, at), am_make(9, 0, all, shorts)), 0, 2, 0, 0);
    read_type(am_type("z", "x"));
    run_is(am_make(2, 0, NULL, at, "abc"), 0, 2, 0, 2);
    run_is(am_make(2, 0, NULL, at, NULL), 0, 2, 0, 0); /* no bytes */
}

/* ── Tensors ── */

static void test_tensor_types(void **unused) {
    sfti_arrow_tensor t;
    struct ArrowSchema *bad[6];
    (void)unused;
    for (int i = 0; i < 6; i++) bad[i] = am_tensor_type("t");
    bad[0]->children[0] = NULL;
    bad[1]->children[1]->name = NULL;
    bad[2]->children = NULL;
    bad[3]->children[1] = am_list("+l", "shape", am_type("b", "item")); /* bits, not numbers */
    bad[3]->children[1]->name = "shape";
    bad[4]->children[1]->children[0]->format = "s";
    bad[5]->children[2] = am_type("n", "dtype"); /* of no type that is known */
    for (int i = 0; i < 6; i++) {
        assert_int_equal(sfti_arrow_tensor_read(bad[i], &arena, &t, &err), SFT_COLUMN_TYPE);
        assert_non_null(strstr(err.message, i < 5 ? "expected struct<data: binary" : "no dtype"));
    }
}

static struct ArrowArray *tensor_of(const void *shape_at, const void *shape, int64_t dims) {
    static const int32_t data_at[] = { 0, 4 }, name_at[] = { 0, 3 };
    struct ArrowArray *top = am_make(1, 0, NULL);
    am_with(top, am_make(1, 0, NULL, data_at, "abcd"));
    am_with(top, am_with(am_make(1, 0, NULL, shape_at), am_make(dims, 0, NULL, shape)));
    return am_with(top, am_make(1, 0, NULL, name_at, "F32"));
}

static void test_tensor_rows(void **unused) {
    static const int32_t many_at[] = { 0, SFT_MAX_RANK }, two_at[] = { 0, 2 }, back[] = { 2, 0 };
    static const int32_t ones[SFT_MAX_RANK] = { 1, 1 };
    static const int64_t huge[] = { INT64_MAX, INT64_MAX };
    sfti_arrow_tensor t;
    sft_dtype dtype;
    sfti_arrow_rows rows;
    struct ArrowArray *bad[6];
    (void)unused;
    assert_int_equal(sfti_arrow_tensor_read(am_tensor_type("t"), &arena, &t, &err), SFT_OK);
    for (int i = 0; i < 6; i++) bad[i] = tensor_of(two_at, ones, 2);
    assert_int_equal(sfti_arrow_tensor_check(&t, bad[0], &err), SFT_OK);
    assert_int_equal(sfti_arrow_tensor_row(&t, bad[0], 0, &buffer, &dtype, &rows, &err), SFT_OK);
    assert_int_equal(rows.elements, 1);
    bad[0]->n_children = 2;
    bad[1]->children = NULL;
    bad[2]->n_buffers = 0;
    bad[3]->buffers = NULL;
    bad[4]->offset = -1;
    bad[5]->length = -1;
    for (int i = 0; i < 6; i++)
        assert_int_equal(sfti_arrow_tensor_check(&t, bad[i], &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sfti_arrow_tensor_row(&t, tensor_of(many_at, ones, SFT_MAX_RANK), 0, &buffer,
                                           &dtype, &rows, &err), SFT_ROW_SHAPE);
    assert_non_null(strstr(err.message, "dimensions, found"));
    assert_int_equal(sfti_arrow_tensor_row(&t, tensor_of(back, ones, 2), 0, &buffer, &dtype, &rows,
                                           &err), SFT_BAD_ARGUMENT);
    struct ArrowSchema *wide = am_tensor_type("t");
    wide->children[1]->children[0]->format = "l";
    assert_int_equal(sfti_arrow_tensor_read(wide, &arena, &t, &err), SFT_OK);
    assert_int_equal(sfti_arrow_tensor_row(&t, tensor_of(two_at, huge, 2), 0, &buffer, &dtype,
                                           &rows, &err), SFT_ROW_SHAPE);
    /* A dictionary of dimensions is looked up. */
    struct ArrowSchema *keyed = am_tensor_type("t");
    keyed->children[1] = am_list("+l", "shape", am_dictionary("C", am_type("i", "item")));
    assert_int_equal(sfti_arrow_tensor_read(keyed, &arena, &t, &err), SFT_OK);
    struct ArrowArray *array = tensor_of(two_at, "\0\0", 2);
    am_look_up(array->children[1]->children[0], am_make(1, 0, NULL, ones));
    assert_int_equal(sfti_arrow_tensor_check(&t, array, &err), SFT_OK);
    assert_int_equal(sfti_arrow_tensor_row(&t, array, 0, &buffer, &dtype, &rows, &err), SFT_OK);
    assert_int_equal(rows.rank, 2);
    assert_int_equal(rows.shape[1], 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_formats_missing), TEST(test_dictionary_keys), TEST(test_children_missing),
        TEST(test_names), TEST(test_parameters), TEST(test_metadata), TEST(test_fixed_shape),
        TEST(test_check), TEST(test_check_struct), TEST(test_nulls), TEST(test_text),
        TEST(test_text_views), TEST(test_list_ranges), TEST(test_apart), TEST(test_apart_empty),
        TEST(test_runs),
        TEST(test_tensor_types), TEST(test_tensor_rows),
    };
    return cmocka_run_group_tests_name("dataset_arrow_rules", tests, NULL, NULL);
}
