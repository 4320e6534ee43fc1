#include "safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void rows_are_the_official_ones(void **state) {
    (void)state;
    static const char names[] = "BOOL:8 F4:4 F6_E2M3:6 F6_E3M2:6 U8:8 I8:8 F8_E5M2:8 F8_E4M3:8 "
                                "F8_E8M0:8 F8_E4M3FNUZ:8 F8_E5M2FNUZ:8 I16:16 U16:16 F16:16 "
                                "BF16:16 I32:32 U32:32 F32:32 C64:64 F64:64 I64:64 U64:64 ";
    const char *p = names;
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) {
        const sft_dtype_info *row = sft_dtype_at((size_t)i);
        size_t len = strlen(row->name);
        sft_span name = { p, len };
        sft_dtype back = SFT_BOOL;
        assert_memory_equal(p, row->name, len);
        assert_true(sft_dtype_parse(name, &back) && back == row->dtype);
        assert_int_equal(row->order, i);
        assert_ptr_equal(sft_dtype_describe(row->dtype), row);
        uint32_t bits = 0;
        for (p += len + 1; *p != ' '; p++) bits = bits * 10 + (uint32_t)(*p - '0');
        assert_int_equal(row->bits, bits);
        p++;
    }
    assert_int_equal(*p, 0);
    assert_null(sft_dtype_at(SFT_DTYPE_COUNT));
    assert_null(sft_dtype_describe((sft_dtype)SFT_DTYPE_COUNT));
    assert_null(sft_dtype_describe((sft_dtype)-1));
}

static void other_names_are_unknown(void **state) {
    (void)state;
    static const char *const names[] = { "", "f32", "F3", "F32 ", "F322", "C128", "I4", "BOOLE" };
    sft_dtype out = SFT_U64;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(sft_dtype_parse(sft_span_cstr(names[i]), &out));
    assert_int_equal(out, SFT_U64);
}

static void sizes_are_checked(void **state) {
    (void)state;
    const uint64_t big = UINT64_C(1) << 63;
    static const uint64_t two[] = { 2, 3 };
    const uint64_t zero_first[] = { 0, big, 4 }, zero_last[] = { big, 4, 0 };
    const uint64_t most[] = { (UINT64_C(1) << 61) - 1 }, over[] = { UINT64_C(1) << 61 };
    const uint64_t odd[] = { 3 };
    uint64_t elements, bytes;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_shape_size(SFT_F32, two, 2, &elements, &bytes, &err), SFT_OK);
    assert_int_equal(elements, 6);
    assert_int_equal(bytes, 24);
    assert_int_equal(sft_shape_size(SFT_F64, NULL, 0, &elements, &bytes, &err), SFT_OK);
    assert_int_equal(elements, 1);
    assert_int_equal(sft_shape_size(SFT_I32, zero_first, 3, NULL, &bytes, &err), SFT_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(sft_shape_size(SFT_I32, zero_last, 3, NULL, NULL, &err), SFT_SIZE_OVERFLOW);
    assert_int_equal(sft_shape_size(SFT_U8, most, 1, NULL, &bytes, &err), SFT_OK);
    assert_int_equal(sft_shape_size(SFT_U8, over, 1, NULL, &bytes, &err), SFT_SIZE_OVERFLOW);
    assert_int_equal(bytes, 0);
    assert_int_equal(sft_shape_size(SFT_F4, odd, 1, NULL, NULL, &err), SFT_SIZE_PARTIAL_BYTE);
    assert_string_equal(err.message, "expected whole bytes, found 12 bits of F4");
    assert_int_equal(sft_shape_size((sft_dtype)77, two, 2, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_shape_size(SFT_U8, NULL, 1, NULL, NULL, NULL), SFT_BAD_ARGUMENT);
}

static void shapes_as_text(void **state) {
    (void)state;
    static const uint64_t shape[] = { 2, 0, UINT64_MAX };
    static const char *const texts[] = { "[]", "[2]", "[2, 0]", "[2, 0, 18446744073709551615]" };
    char text[40];
    for (uint32_t rank = 0; rank <= 3; rank++) {
        size_t len = strlen(texts[rank]);
        assert_int_equal(sft_shape_text(rank ? shape : NULL, rank, NULL, 0), len);
        for (size_t cap = 1; cap < sizeof text; cap++) {
            memset(text, 'x', sizeof text);
            assert_int_equal(sft_shape_text(shape, rank, text, cap), len);
            assert_int_equal(strlen(text), len < cap ? len : cap - 1);
            assert_memory_equal(text, texts[rank], strlen(text));
        }
    }
}

static void unknown_numbers(void **state) {
    (void)state;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_shape_size((sft_dtype)99, NULL, 0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "found dtype 99"));
    assert_int_equal(sft_shape_size(SFT_F32, NULL, 1, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "found no shape"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_official_ones),
        cmocka_unit_test(other_names_are_unknown),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(shapes_as_text),
        cmocka_unit_test(unknown_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
