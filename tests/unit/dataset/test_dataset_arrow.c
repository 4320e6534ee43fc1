/* Reading the Arrow C Data Interface: every format, offsets at every level, masks, slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataset/arrow/arrow.h"
#include "unit/arrow_make.h"

static sfti_arena arena;
static sft_buffer buffer;
static sft_error err;
static sfti_arrow_type type;
static sfti_arrow_rows rows;

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
    assert_int_equal(sfti_arrow_type_read(schema, &arena, &type, &err), SFT_OK);
}

static void refuse_type(const struct ArrowSchema *schema, const char *why) {
    assert_int_equal(sfti_arrow_type_read(schema, &arena, &type, &err), SFT_COLUMN_TYPE);
    assert_non_null(strstr(err.message, why));
}

/* Rows [first, first + most) must yield these. */
static void take(const struct ArrowArray *array, uint64_t first, uint64_t most, uint64_t got,
                 const void *bytes, size_t len) {
    assert_int_equal(sfti_arrow_check(&type, array, &err), SFT_OK);
    assert_int_equal(sfti_arrow_elements(&type, array, first, most, &buffer, &rows, &err), SFT_OK);
    assert_int_equal(rows.rows, got);
    assert_int_equal(rows.elements * type.bytes, len);
    const char *at = rows.bytes ? rows.bytes : buffer.data + rows.at;
    if (len) assert_memory_equal(at, bytes, len);
}

static void take_fails(const struct ArrowArray *array, uint64_t first, uint64_t most,
                       sft_code code, const char *why) {
    size_t mark = buffer.len;
    assert_int_equal(sfti_arrow_check(&type, array, &err), SFT_OK);
    assert_int_equal(sfti_arrow_elements(&type, array, first, most, &buffer, &rows, &err), code);
    assert_non_null(strstr(err.message, why));
    assert_int_equal(buffer.len, mark);
}

#define TAKE(array, first, most, got, ...)                                      \
    take(array, first, most, got, (const int16_t[]){ __VA_ARGS__ },             \
         sizeof((const int16_t[]){ __VA_ARGS__ }))

static void shape_is(uint32_t rank, uint64_t a, uint64_t b) {
    assert_int_equal(rows.rank, rank);
    if (rank > 0) assert_int_equal(rows.shape[0], a);
    if (rank > 1) assert_int_equal(rows.shape[1], b);
}

static const int16_t shorts[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 };

/* ── Types ── */

static void test_formats(void **unused) {
    static const struct {
        const char *format;
        sft_dtype dtype;
        uint32_t bytes;
        const char *text;
    } all[] = {
        { "c", SFT_I8, 1, "int8" },      { "C", SFT_U8, 1, "uint8" },
        { "s", SFT_I16, 2, "int16" },    { "S", SFT_U16, 2, "uint16" },
        { "i", SFT_I32, 4, "int32" },    { "I", SFT_U32, 4, "uint32" },
        { "l", SFT_I64, 8, "int64" },    { "L", SFT_U64, 8, "uint64" },
        { "e", SFT_F16, 2, "halffloat" }, { "f", SFT_F32, 4, "float" },
        { "g", SFT_F64, 8, "double" },   { "b", SFT_BOOL, 1, "bool" },
    };
    char text[SFTI_ARROW_TEXT];
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct ArrowSchema *schema = am_type(all[i].format, "x");
        read_type(schema);
        assert_int_equal(type.dtype, all[i].dtype);
        assert_int_equal(type.bytes, all[i].bytes);
        assert_int_equal(type.depth, 0);
        sfti_arrow_type_text(schema, text);
        assert_string_equal(text, all[i].text);
        read_type(am_list("+l", "x", am_list("+w:7", "x", am_type(all[i].format, "x"))));
        assert_int_equal(type.depth, 2);
        assert_int_equal(type.list[1].length, 7);
        assert_true(type.list[1].fixed);
    }
}

static void test_texts(void **unused) {
    static const struct {
        const char *format, *text;
    } all[] = {
        { "u", "string" },        { "U", "large_string" }, { "vu", "string_view" },
        { "z", "binary" },        { "vz", "binary_view" }, { "tdD", "date32[day]" },
        { "tsu:UTC", "timestamp[us, tz=UTC]" }, { "tsn:", "timestamp[ns]" },
        { "tsu:a]b", "timestamp" }, { "d:10,2", "decimal128(10, 2)" },
        { "d:9,-2,32", "decimal32(9, -2)" }, { "d:9", "decimal" },
        { "w:16", "fixed_size_binary[16]" }, { "ttu", "time64[us]" }, { "tDm", "duration[ms]" },
        { "+m", "map" },          { "n", "null" },         { "q", "unknown" },
    };
    char text[SFTI_ARROW_TEXT];
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_arrow_type_text(am_type(all[i].format, "x"), text);
        assert_string_equal(text, all[i].text);
    }
    sfti_arrow_type_text(
        am_list("+L", "x", am_list("+w:4", "x", am_list("+vl", "x", am_type("f", "x")))), text);
    assert_string_equal(text, "large_list<fixed_size_list<list_view<float>>[4]>");
    sfti_arrow_type_text(am_dictionary("i", am_type("u", "x")), text);
    assert_string_equal(text, "dictionary of string");
    sfti_arrow_type_text(am_tensor_type("t"), text);
    assert_string_equal(text, "struct<data: binary, shape: list<int32>, dtype: string>");
    struct ArrowSchema *deep = am_type("f", "x");
    for (int i = 0; i < 100; i++) deep = am_list("+vL", "x", deep);
    sfti_arrow_type_text(deep, text);
    assert_int_equal(strlen(text), SFTI_ARROW_TEXT - 1);
}

static void test_refused(void **unused) {
    static const char *const formats[] = { "n", "q", "", "tsu", "tsu:x y", "d:10", "d:10,2,12",
                                           "d:10,2,128,1", "tiD", "tin", "+m", "+r", "+us:0,1",
                                           "+w:", "+w:1x", "+w:4294967296", "+vx" };
    (void)unused;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        refuse_type(am_type(formats[i], "x"), "have no dtype");
    refuse_type(am_list("+l", "x", am_type("u", "x")), "lists of text");
    refuse_type(am_list("+l", "x", am_type("w:16", "x")), "lists of decimals");
    refuse_type(am_type("w:x", "x"), "expected the width");
    refuse_type(am_list("+l", "x", am_type("+s", "x")), "have no dtype");
    refuse_type(am_type("+l", "x"), "expected a list with one child");
    refuse_type(am_dictionary("f", am_type("i", "x")), "this kind of dictionary");
    refuse_type(am_dictionary("i", am_type("+s", "x")), "this kind of dictionary");
    struct ArrowSchema *deep = am_type("f", "x");
    for (int i = 0; i < SFT_MAX_RANK - 1; i++) deep = am_list("+l", "x", deep);
    read_type(deep);
    refuse_type(am_list("+l", "x", deep), "too deep");
}

/* ── Numbers, bits ── */

static void test_numbers(void **unused) {
    static const uint8_t mask[] = { 0xff, 0xdf }; /* 13 is null */
    (void)unused;
    read_type(am_type("s", "x"));
    struct ArrowArray *plain = am_make(10, 3, NULL, shorts);
    TAKE(plain, 0, 3, 3, 3, 4, 5);
    assert_ptr_equal(rows.bytes, shorts + 3);
    shape_is(0, 0, 0);
    TAKE(plain, 9, 1, 1, 12);
    take_fails(plain, 10, 1, SFT_BAD_ARGUMENT, "a row beyond");
    take_fails(plain, 8, 3, SFT_BAD_ARGUMENT, "a row beyond");
    /* Halved again until there is no null. */
    struct ArrowArray *masked = am_make(14, 2, mask, shorts);
    TAKE(masked, 0, 14, 7, 2, 3, 4, 5, 6, 7, 8);
    TAKE(masked, 10, 1, 1, 12);
    take_fails(masked, 11, 3, SFT_ROW_NULL, "found null");
    TAKE(masked, 12, 1, 1, 14);
    masked->null_count = 0; /* null_count says that there is none */
    TAKE(masked, 11, 1, 1, 13);
}

static void test_many_nulls(void **unused) {
    static uint8_t mask[64];
    static int16_t values[512];
    (void)unused;
    memset(mask, 0xff, sizeof mask);
    read_type(am_type("s", "x"));
    for (uint64_t bad = 0; bad < 500; bad += 7) {
        struct ArrowArray *array = am_make(500, 5, mask, values);
        mask[(bad + 5) / 8] ^= (uint8_t)(1 << (bad + 5) % 8);
        uint64_t at = 0;
        for (; at < bad; at += rows.rows)
            assert_int_equal(
                sfti_arrow_elements(&type, array, at, 500 - at, &buffer, &rows, &err), SFT_OK);
        assert_int_equal(at, bad);
        take_fails(array, bad, 500 - bad, SFT_ROW_NULL, "null");
        mask[(bad + 5) / 8] = 0xff;
    }
}

static void test_bits(void **unused) {
    static const uint8_t bits[] = { 0xb5, 0x62, 0x01 }; /* 1010 1101 0100 0110 1 */
    static const uint8_t bool8[] = { 9, 0, 1, 0xff, 2 };
    char schema[512];
    (void)unused;
    read_type(am_type("b", "x"));
    struct ArrowArray *array = am_make(14, 3, NULL, bits);
    take(array, 0, 6, 6, (const char[]){ 0, 1, 1, 0, 1, 0 }, 6);
    take(array, 5, 9, 9, (const char[]){ 0, 1, 0, 0, 0, 1, 1, 0, 1 }, 9);
    assert_int_equal(buffer.len, 15); /* after what the buffer held */
    read_type(am_extension(am_type("c", "x"), "arrow.bool8", "", schema));
    assert_int_equal(type.dtype, SFT_BOOL);
    take(am_make(4, 1, NULL, bool8), 0, 4, 4, (const char[]){ 0, 1, 1, 1 }, 4);
}

static void test_dictionary(void **unused) {
    static const uint8_t keys[] = { 9, 2, 0, 1, 1, 5 }, mask[] = { 0xef }, lost[] = { 0xfb };
    static const int64_t wide[] = { 2, 0 };
    (void)unused;
    read_type(am_dictionary("C", am_type("s", "x")));
    struct ArrowArray *values = am_make(3, 4, NULL, shorts);
    struct ArrowArray *array = am_look_up(am_make(4, 1, NULL, keys), values);
    TAKE(array, 0, 4, 4, 6, 4, 5, 5);
    array = am_look_up(am_make(5, 1, NULL, keys), values);
    TAKE(array, 2, 2, 2, 5, 5);
    take_fails(array, 4, 1, SFT_BAD_ARGUMENT, "beyond its dictionary");
    array = am_look_up(am_make(4, 1, mask, keys), values);
    take_fails(array, 3, 1, SFT_ROW_NULL, "null");
    values = am_make(3, 0, lost, shorts); /* value 2 is null */
    array = am_look_up(am_make(4, 1, NULL, keys), values);
    take_fails(array, 0, 4, SFT_ROW_NULL, "null");
    TAKE(array, 1, 3, 3, 0, 1, 1);
    read_type(am_dictionary("l", am_type("s", "x")));
    TAKE(am_look_up(am_make(2, 0, NULL, wide), am_make(3, 4, NULL, shorts)), 0, 2, 2, 6, 4);
    array = am_make(1, 0, NULL, wide);
    assert_int_equal(sfti_arrow_check(&type, array, &err), SFT_BAD_ARGUMENT);
}

/* ── Lists ── */

static void test_lists(void **unused) {
    static const int32_t offsets[] = { 7, 1, 3, 5, 7, 10 };
    static const int64_t large[] = { 7, 1, 3, 5, 7, 10 };
    static const uint8_t mask[] = { 0xf7 }, element[] = { 0xbf }; /* 3; 6 */
    (void)unused;
    for (int wide = 0; wide < 2; wide++) {
        const void *o = wide ? (const void *)large : (const void *)offsets;
        read_type(am_list(wide ? "+L" : "+l", "x", am_type("s", "x")));
        struct ArrowArray *array = am_with(am_make(4, 1, NULL, o), am_make(12, 4, NULL, shorts));
        TAKE(array, 0, 4, 3, 5, 6, 7, 8, 9, 10); /* the fourth has three */
        assert_ptr_equal(rows.bytes, shorts + 5);
        shape_is(1, 2, 0);
        TAKE(array, 3, 1, 1, 11, 12, 13);
        array = am_with(am_make(4, 1, mask, o), am_make(12, 4, NULL, shorts));
        TAKE(array, 0, 4, 2, 5, 6, 7, 8);
        take_fails(array, 2, 2, SFT_ROW_NULL, "null");
        array = am_with(am_make(4, 1, NULL, o), am_make(12, 1, element, shorts));
        TAKE(array, 0, 3, 1, 2, 3);
        TAKE(array, 1, 1, 1, 4, 5);
        take_fails(array, 2, 1, SFT_ROW_NULL, "null");
        array = am_with(am_make(4, 1, NULL, o), am_make(9, 0, NULL, shorts));
        take_fails(array, 3, 1, SFT_BAD_ARGUMENT, "beyond the elements");
        array = am_with(am_make(4, 0, NULL, o), am_make(12, 0, NULL, shorts));
        take_fails(array, 0, 1, SFT_BAD_ARGUMENT, "ascend");
    }
}

static void test_fixed(void **unused) {
    static const uint8_t mask[] = { 0xf7 };
    (void)unused;
    read_type(am_list("+w:3", "x", am_type("s", "x")));
    struct ArrowArray *array = am_with(am_make(3, 1, NULL), am_make(12, 2, NULL, shorts));
    TAKE(array, 0, 3, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13);
    shape_is(1, 3, 0);
    TAKE(array, 2, 1, 1, 11, 12, 13);
    array = am_with(am_make(4, 1, mask), am_make(15, 0, NULL, shorts));
    TAKE(array, 0, 4, 2, 3, 4, 5, 6, 7, 8);
    take_fails(array, 2, 1, SFT_ROW_NULL, "null");
    TAKE(array, 3, 1, 1, 12, 13, 14);
    array = am_with(am_make(4, 1, NULL), am_make(14, 0, NULL, shorts));
    TAKE(array, 0, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    take_fails(array, 3, 1, SFT_BAD_ARGUMENT, "beyond the elements");
    read_type(am_list("+w:0", "x", am_type("s", "x")));
    take(am_with(am_make(4, 1, NULL), am_make(0, 0, NULL, NULL)), 0, 4, 4, "", 0);
}

static void test_views(void **unused) {
    static const int32_t at[] = { 9, 6, 8, 2, 2 }, len[] = { 9, 2, 2, 2, 0 };
    static const int64_t wide_at[] = { 9, 6, 8, 2, 2 }, wide_len[] = { 9, 2, 2, 2, 0 };
    (void)unused;
    for (int wide = 0; wide < 2; wide++) {
        read_type(am_list(wide ? "+vL" : "+vl", "x", am_type("s", "x")));
        struct ArrowArray *array = am_with(
            wide ? am_make(4, 1, NULL, wide_at, wide_len) : am_make(4, 1, NULL, at, len),
            am_make(12, 1, NULL, shorts));
        TAKE(array, 0, 4, 2, 7, 8, 9, 10); /* the third is elsewhere */
        TAKE(array, 2, 2, 1, 3, 4);
        take(array, 3, 1, 1, "", 0);
        shape_is(1, 0, 0);
        array = am_with(
            wide ? am_make(4, 0, NULL, wide_at, wide_len) : am_make(4, 0, NULL, at, len),
            am_make(12, 1, NULL, shorts));
        take_fails(array, 0, 1, SFT_BAD_ARGUMENT, "beyond the elements");
    }
}

static void test_nested(void **unused) {
    static const int32_t outer[] = { 0, 1, 3, 5, 7 }, inner[] = { 0, 1, 3, 5, 7, 9, 11, 14 };
    (void)unused;
    read_type(am_list("+l", "x", am_list("+l", "x", am_type("s", "x"))));
    struct ArrowArray *array =
        am_with(am_make(3, 1, NULL, outer),
                am_with(am_make(7, 0, NULL, inner), am_make(15, 2, NULL, shorts)));
    TAKE(array, 0, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    shape_is(2, 2, 2);
    TAKE(array, 0, 3, 1, 3, 4, 5, 6); /* of 3 that do not fit half are tried, and so on */
    take_fails(array, 2, 1, SFT_ROW_SHAPE, "lists of one length (2), found 3");
    read_type(am_list("+w:2", "x", am_list("+w:3", "x", am_type("s", "x"))));
    array = am_with(am_make(2, 1, NULL),
                    am_with(am_make(6, 0, NULL), am_make(18, 0, NULL, shorts)));
    TAKE(array, 0, 2, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17);
    shape_is(2, 2, 3);
}

/* Inner lists in any order in memory. */
static void test_scattered(void **unused) {
    static const int32_t outer[] = { 0, 2, 4 }, at[] = { 9, 3, 0, 6 }, len[] = { 2, 2, 2, 2 };
    static const int32_t odd[] = { 2, 2, 2, 3 }, none[] = { 0, 0, 0, 0 }, some[] = { 0, 3, 0, 0 };
    static const uint8_t lost[] = { 0xff, 0xf7 }; /* 11 */
    (void)unused;
    read_type(am_list("+l", "x", am_list("+vl", "x", am_type("s", "x"))));
    struct ArrowArray *array =
        am_with(am_make(2, 0, NULL, outer),
                am_with(am_make(4, 0, NULL, at, len), am_make(12, 1, NULL, shorts)));
    TAKE(array, 0, 2, 1, 10, 11, 4, 5);
    shape_is(2, 2, 2);
    TAKE(array, 1, 1, 1, 1, 2, 7, 8);
    assert_int_equal(buffer.len, 16);
    array = am_with(am_make(2, 0, NULL, outer),
                    am_with(am_make(4, 0, NULL, at, odd), am_make(12, 1, NULL, shorts)));
    take_fails(array, 1, 1, SFT_ROW_SHAPE, "lists of one length (2), found 3");
    array = am_with(am_make(2, 0, NULL, outer),
                    am_with(am_make(4, 0, NULL, at, len), am_make(12, 1, lost, shorts)));
    take_fails(array, 0, 1, SFT_ROW_NULL, "null");
    array = am_with(am_make(2, 0, NULL, outer),
                    am_with(am_make(4, 0, NULL, at, none), am_make(12, 1, NULL, shorts)));
    take(array, 0, 2, 2, "", 0);
    shape_is(2, 2, 0);
    array = am_with(am_make(2, 0, NULL, outer),
                    am_with(am_make(4, 0, NULL, at, some), am_make(12, 1, NULL, shorts)));
    take_fails(array, 0, 1, SFT_ROW_SHAPE, "lists of one length (0), found 3");
}

/* Three levels; lengths below the views are compared, too. */
static void test_scattered_deep(void **unused) {
    static const int32_t outer[] = { 0, 2 }, at[] = { 2, 0 }, len[] = { 2, 2 };
    static const int32_t inner[] = { 0, 2, 4, 6, 8 }, odd[] = { 0, 2, 5, 7, 9 };
    static const int32_t hollow[] = { 0, 0, 0, 0, 0 }, half[] = { 0, 2, 2, 2, 2 };
    const int32_t *const last[] = { inner, odd, hollow, half };
    (void)unused;
    read_type(am_list("+l", "x", am_list("+vl", "x", am_list("+l", "x", am_type("s", "x")))));
    for (int way = 0; way < 4; way++) {
        struct ArrowArray *array = am_with(
            am_make(1, 0, NULL, outer),
            am_with(am_make(2, 0, NULL, at, len),
                    am_with(am_make(4, 0, NULL, last[way]), am_make(12, 0, NULL, shorts))));
        if (way == 0) TAKE(array, 0, 1, 1, 4, 5, 6, 7, 0, 1, 2, 3);
        else if (way == 2) take(array, 0, 1, 1, "", 0);
        else take_fails(array, 0, 1, SFT_ROW_SHAPE, "lists of one length");
        if (way % 2 == 0) shape_is(3, 2, 2);
    }
}

static void test_broken(void **unused) {
    static const int32_t offsets[] = { 0, 1, 2 };
    (void)unused;
    read_type(am_list("+l", "x", am_type("s", "x")));
    struct ArrowArray *all[] = {
        am_make(2, 0, NULL, offsets),
        am_with(am_make(2, 0, NULL), am_make(2, 0, NULL, shorts)),
        am_with(am_make(2, 0, NULL, NULL), am_make(2, 0, NULL, shorts)),
        am_with(am_make(2, 0, NULL, offsets), am_make(2, 0, NULL)),
        am_with(am_make(2, 0, NULL, offsets), am_make(2, 0, NULL, NULL)),
        am_with(am_make(2, 0, NULL, offsets), am_make(-2, 0, NULL, shorts)),
        am_with(am_make(2, -1, NULL, offsets), am_make(2, 0, NULL, shorts)),
        am_with(am_make(2, INT64_MAX, NULL, offsets), am_make(2, 0, NULL, shorts)),
        am_with(am_make(2, 0, NULL, offsets), NULL),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(sfti_arrow_check(&type, all[i], &err), SFT_BAD_ARGUMENT);
        assert_non_null(strstr(err.message, "keeps Arrow's rules"));
    }
    take(am_with(am_make(1, 0, NULL, offsets), am_make(1, 0, NULL, shorts)), 0, 1, 1, shorts, 2);
}

/* ── Extension types ── */

static void test_fixed_shape(void **unused) {
    static const struct {
        const char *text, *format;
        bool good;
    } all[] = {
        { "{\"shape\":[2,3]}", "+w:6", true },
        { "{\"dim_names\":[\"a\",\"b\"],\"permutation\":[0,1],\"shape\":[3,2]}", "+w:6", true },
        { "{\"shape\":[2,3],\"permutation\":[1,0]}", "+w:6", false },
        { "{\"shape\":[2,3],\"permutat\\u0069on\":[1,0]}", "+w:6", false },
        { "{\"s\\u0068ape\":[2,3]}", "+w:6", true },
        { "{\"shape\":[2,3]}", "+w:5", false },
        { "{\"shape\":[2,-3]}", "+w:6", false },
        { "{}", "+w:6", false },
        { "[2,3]", "+w:6", false },
        { "", "+w:6", false },
    };
    char buffer[512];
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct ArrowSchema *schema = am_extension(
            am_list(all[i].format, "x", am_type("s", "x")), "arrow.fixed_shape_tensor",
            all[i].text, buffer);
        sft_code code = sfti_arrow_type_read(schema, &arena, &type, &err);
        assert_int_equal(code, all[i].good ? SFT_OK : SFT_COLUMN_TYPE);
        if (!all[i].good) continue;
        assert_true(type.has_shape);
        assert_int_equal(type.rank, 2);
        assert_int_equal(type.shape[0] * type.shape[1], 6);
    }
}

/* ── Text ── */

static void text_is(const struct ArrowArray *array, uint64_t i, const char *text) {
    sft_span found = { NULL, 0 };
    assert_int_equal(sfti_arrow_check(&type, array, &err), SFT_OK);
    bool there = sfti_arrow_bytes(&type, array, i, &found);
    assert_int_equal(there, text != NULL);
    if (!text) return;
    assert_int_equal(found.len, strlen(text));
    assert_memory_equal(found.data, text, found.len);
}

static void test_text(void **unused) {
    static const int32_t offsets[] = { 0, 1, 3, 3, 6, 2 };
    static const int64_t large[] = { 0, 1, 3, 3, 6, 2 };
    static const uint8_t mask[] = { 0xfd }, keys[] = { 2, 0, 7 };
    (void)unused;
    for (int wide = 0; wide < 2; wide++) {
        read_type(am_type(wide ? "U" : "z", "x"));
        const void *o = wide ? (const void *)large : (const void *)offsets;
        struct ArrowArray *array = am_make(4, 1, NULL, o, "abbccc");
        text_is(array, 0, "bb");
        text_is(array, 1, "");
        text_is(array, 2, "ccc");
        text_is(array, 3, NULL); /* descends */
        text_is(array, 4, NULL);
        text_is(am_make(3, 1, mask, o, "abbccc"), 0, NULL);
        text_is(am_make(3, 2, NULL, o, NULL), 0, "");
    }
    read_type(am_dictionary("C", am_type("u", "x")));
    struct ArrowArray *words = am_make(3, 1, NULL, offsets, "abbccc");
    struct ArrowArray *array = am_look_up(am_make(3, 0, NULL, keys), words);
    text_is(array, 0, "ccc");
    text_is(array, 1, "bb");
    text_is(array, 2, NULL);
}

static void test_text_views(void **unused) {
    static const char far_away[] = "0123456789abcdefghij";
    static const int64_t sizes[] = { 20 };
    char views[5][16];
    int32_t numbers[5][4] = { { 3 }, { 12 }, { 13, 0, 0, 7 }, { 14, 0, 0, 7 }, { 13, 0, 1, 0 } };
    (void)unused;
    memcpy(views, numbers, sizeof views);
    memcpy(views[0] + 4, "abc", 3);
    memcpy(views[1] + 4, "abcdefghijkl", 12);
    read_type(am_type("vu", "x"));
    struct ArrowArray *array = am_make(5, 0, NULL, views, far_away, sizes);
    text_is(array, 0, "abc");
    text_is(array, 1, "abcdefghijkl");
    text_is(array, 2, "789abcdefghij");
    text_is(array, 3, NULL); /* past its buffer */
    text_is(array, 4, NULL); /* there is no such buffer */
    text_is(am_make(3, 2, NULL, views, far_away, sizes), 0, "789abcdefghij");
    text_is(am_make(2, 0, NULL, views, NULL), 1, "abcdefghijkl");
}

/* ── Tensors ── */

static const int32_t data_at[] = { 0, 0, 4, 8, 8 }, dims_at[] = { 0, 0, 2, 3, 5 };
static const int32_t name_at[] = { 0, 0, 3, 6, 9 };
static const int32_t dims[] = { 1, 2, 2, 0, 9 };

static struct ArrowArray *tensors(const void *mask, int64_t length, const int32_t *data,
                                  const int32_t *shape, const char *names) {
    struct ArrowArray *top = am_make(length, 1, mask);
    am_with(top, am_make(4, 0, NULL, data, "abcdefgh"));
    am_with(top, am_with(am_make(4, 0, NULL, dims_at), am_make(5, 0, NULL, shape)));
    return am_with(top, am_make(4, 0, NULL, name_at, names));
}

static void tensor_fails(struct ArrowArray *array, uint64_t i, sft_code code, const char *why) {
    sfti_arrow_tensor t;
    sft_dtype dtype;
    assert_int_equal(sfti_arrow_tensor_read(am_tensor_type("t"), &arena, &t, &err), SFT_OK);
    assert_int_equal(sfti_arrow_tensor_check(&t, array, &err), SFT_OK);
    assert_int_equal(sfti_arrow_tensor_row(&t, array, i, &buffer, &dtype, &rows, &err), code);
    assert_non_null(strstr(err.message, why));
}

static void test_tensors(void **unused) {
    static const uint8_t mask[] = { 0xfb };
    static const int32_t less[] = { 0, 0, 3, 8, 8 }, negative[] = { -1, 2, 2, 0, 9 };
    sfti_arrow_tensor t;
    sft_dtype dtype;
    (void)unused;
    assert_int_equal(sfti_arrow_tensor_read(am_tensor_type("t"), &arena, &t, &err), SFT_OK);
    struct ArrowArray *array = tensors(NULL, 3, data_at, dims, "I16U16F32");
    assert_int_equal(sfti_arrow_tensor_check(&t, array, &err), SFT_OK);
    assert_int_equal(sfti_arrow_tensor_row(&t, array, 0, &buffer, &dtype, &rows, &err), SFT_OK);
    assert_int_equal(dtype, SFT_I16);
    assert_memory_equal(rows.bytes, "abcd", 4);
    shape_is(2, 1, 2);
    assert_int_equal(sfti_arrow_tensor_row(&t, array, 1, &buffer, &dtype, &rows, &err), SFT_OK);
    assert_int_equal(dtype, SFT_U16);
    assert_memory_equal(rows.bytes, "efgh", 4);
    shape_is(1, 2, 0);
    assert_int_equal(sfti_arrow_tensor_row(&t, array, 2, &buffer, &dtype, &rows, &err), SFT_OK);
    assert_int_equal(rows.elements, 0);
    shape_is(2, 0, 9);
    tensor_fails(tensors(mask, 3, data_at, dims, "I16U16F32"), 1, SFT_ROW_NULL, "a tensor");
    tensor_fails(tensors(NULL, 3, less, dims, "I16U16F32"), 0, SFT_ROW_SHAPE,
                 "expected 4 bytes of data by its shape and I16, found 3");
    tensor_fails(tensors(NULL, 3, data_at, negative, "I16U16F32"), 0, SFT_ROW_SHAPE, "negative");
    tensor_fails(tensors(NULL, 3, data_at, dims, "I15U16F32"), 0, SFT_ROW_VALUE, "\"I15\"");
    array = tensors(NULL, 3, data_at, dims, "I16U16F32");
    array->children[t.dtype]->buffers[0] = mask;
    array->children[t.dtype]->null_count = 1;
    tensor_fails(array, 1, SFT_ROW_NULL, "a dtype");
    array->children[t.data]->buffers[0] = mask;
    array->children[t.data]->null_count = 1;
    tensor_fails(array, 1, SFT_ROW_NULL, "data");
    array = tensors(NULL, 4, data_at, dims, "I16U16F32");
    assert_int_equal(sfti_arrow_tensor_check(&t, array, &err), SFT_BAD_ARGUMENT);
}

/* Fields in any order, 64-bit ones, a dictionary; and other structs. */
static void test_tensor_types(void **unused) {
    sfti_arrow_tensor t;
    (void)unused;
    struct ArrowSchema *schema = am_type("+s", "t");
    am_of(schema, am_dictionary("s", am_type("U", "dtype")));
    am_of(schema, am_type("vz", "data"));
    am_of(schema, am_list("+vL", "shape", am_type("l", "item")));
    assert_int_equal(sfti_arrow_tensor_read(schema, &arena, &t, &err), SFT_OK);
    assert_int_equal(t.data * 100 + t.shape * 10 + t.dtype, 120);
    struct ArrowSchema *bad[6];
    for (int i = 0; i < 6; i++) bad[i] = am_tensor_type("t");
    bad[0]->children[0]->format = "u";
    bad[1]->children[1]->children[0]->format = "f";
    bad[2]->children[2]->name = "kind";
    bad[3]->n_children = 2;
    bad[4]->children[1]->format = "i", bad[4]->children[1]->n_children = 0;
    bad[5]->children[2]->format = "i";
    for (int i = 0; i < 6; i++)
        assert_int_equal(sfti_arrow_tensor_read(bad[i], &arena, &t, &err), SFT_COLUMN_TYPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_formats, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_texts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_nulls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dictionary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lists, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fixed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_views, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nested, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scattered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scattered_deep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fixed_shape, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_text_views, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tensors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tensor_types, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("dataset_arrow", tests, NULL, NULL);
}
