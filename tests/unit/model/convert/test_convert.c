/* Casts: every variant gives the same bits, what is refused, packed elements; conversions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "convert/convert.h"
#include "unit/make_file.h"

#include <stdio.h>

#define MANY 3077 /* elements: blocks, and a rest that fills no vector */

/* ── Inputs ── */

static uint64_t state;

static uint64_t next_random(void) {
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* An F32 at, beside or half-way between what small formats hold, or special. */
static uint32_t edge_f32(uint64_t random) {
    static const uint32_t kept[] = { 0xff000000, 0xff800000, 0xffc00000, 0xffe00000, 0xfff00000,
                                     0xfff80000, 0xffff0000, 0xffff8000, 0xffffe000, 0xfffff000 };
    static const uint32_t special[] = { 0, 1, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fa12345,
                                        0x7f7fffff, 0x7f7f8000, 0x477fefff, 0x477ff000 };
    uint32_t bits = (uint32_t)random, way = (uint32_t)(random >> 32);
    if (way % 16 == 0) return special[way / 16 % 10] | (bits & UINT32_C(0x80000000));
    if (way % 16 < 10) /* near 1, where most of them are */
        bits = (bits & UINT32_C(0x807fffff)) | (way / 16 % 60 + 97) << 23;
    bits &= kept[way / 4096 % 10];
    if (way % 16 >= 12) bits += way % 3 - 1;
    return bits;
}

/* Every NaN becomes an infinity. */
static void no_nan(uint8_t *f32, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint8_t *at = f32 + 4 * i;
        uint32_t high = (uint32_t)at[2] | (uint32_t)(at[3] & 0x7f) << 8;
        bool is_nan = high > 0x7f80 || (high == 0x7f80 && (at[0] || at[1]));
        if (!is_nan) continue;
        at[0] = at[1] = 0;
        at[2] = 0x80;
    }
}

static void fill_inputs(sft_dtype from, uint8_t *in, size_t n) {
    size_t bytes = n * sft_dtype_describe(from)->bits / 8;
    state = from + 1;
    for (size_t i = 0; i < bytes + 8; i++) in[i] = (uint8_t)next_random();
    if (from == SFT_F32) {
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = edge_f32(next_random());
            for (int b = 0; b < 4; b++) in[4 * i + (size_t)b] = (uint8_t)(bits >> (8 * b));
        }
    }
}

/* ── Variants ── */

static const unsigned variants[] = {
    SFTI_CAST_NO_AVX512, SFTI_CAST_NO_VBMI, SFTI_CAST_NO_AVX2, SFTI_CAST_NO_NEON, 0,
};
#define PLAIN SFTI_CAST_PORTABLE

static uint64_t cast_as(unsigned forbid, sft_dtype from, sft_dtype to, bool saturate,
                        const uint8_t *in, uint8_t *out, uint64_t n) {
    sfti_cast_kernels kernels;
    sfti_cast cast;
    sfti_cast_kernels_fill(&kernels, forbid);
    sfti_cast_begin(&cast, &kernels, from, to, saturate);
    return sfti_cast_run(&cast, in, out, n, NULL);
}

static void compare_variants(sft_dtype from, sft_dtype to, bool saturate, size_t n) {
    static uint8_t in[8 * MANY + 64], want[8 * MANY + 64], got[8 * MANY + 64];
    size_t bytes = n * sft_dtype_describe(to)->bits / 8;
    fill_inputs(from, in + 3, n);
    if (from == SFT_F32 && n != 1032 && sft_dtype_describe(to)->bits < 8) no_nan(in + 3, n);
    memset(want, 0x55, sizeof want);
    uint64_t good = cast_as(PLAIN, from, to, saturate, in + 3, want + 1, n);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        memset(got, 0x55, sizeof got);
        assert_int_equal(cast_as(variants[v], from, to, saturate, in + 3, got + 1, n), good);
        if (good < n) continue;
        if (memcmp(got, want, sizeof got) != 0)
            fail_msg("%s to %s, variant %u", sft_dtype_describe(from)->name,
                     sft_dtype_describe(to)->name, variants[v]);
        assert_int_equal(got[0], 0x55);
        assert_int_equal(got[1 + bytes], 0x55);
    }
}

static void variants_agree(void **unused) {
    static const size_t lengths[] = { 0, 8, 16, 24, 64, 120, 1024, 1032, MANY - MANY % 8 };
    (void)unused;
    for (int from = 0; from < SFT_DTYPE_COUNT; from++) {
        for (int to = 0; to < SFT_DTYPE_COUNT; to++) {
            if (!sft_cast_exists((sft_dtype)from, (sft_dtype)to)) continue;
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                compare_variants((sft_dtype)from, (sft_dtype)to, false, lengths[i]);
                compare_variants((sft_dtype)from, (sft_dtype)to, true, lengths[i]);
            }
        }
    }
}

/* All 2^16 upper halves, with lower halves around every place where rounding turns. */
static void f32_variants_agree(void **unused) {
    static const uint32_t low[] = { 0,      1,      0x0fff, 0x1000, 0x1001, 0x3000,
                                    0x7fff, 0x8000, 0x8001, 0xe000, 0xffff };
    static const sft_dtype targets[] = { SFT_BF16, SFT_F16, SFT_F8_E5M2, SFT_F8_E4M3,
                                         SFT_F8_E4M3FNUZ, SFT_F8_E5M2FNUZ, SFT_F6_E2M3,
                                         SFT_F6_E3M2, SFT_F4 };
    static uint8_t in[4 << 16], want[2 << 16], got[2 << 16];
    (void)unused;
    for (size_t k = 0; k < sizeof low / sizeof *low; k++) {
        for (uint32_t i = 0; i < 1u << 16; i++) {
            uint32_t bits = i << 16 | low[k];
            for (int b = 0; b < 4; b++) in[4 * i + (uint32_t)b] = (uint8_t)(bits >> (8 * b));
        }
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
            if (sft_dtype_describe(targets[t])->bits < 8) no_nan(in, 1 << 16); /* from here on */
            for (int saturate = 0; saturate < 2; saturate++) {
                uint64_t good = cast_as(PLAIN, SFT_F32, targets[t], saturate, in, want, 1 << 16);
                for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
                    assert_int_equal(cast_as(variants[v], SFT_F32, targets[t], saturate, in, got,
                                             1 << 16), good);
                    size_t bytes = ((size_t)sft_dtype_describe(targets[t])->bits << 16) / 8;
                    assert_int_equal(good, 1 << 16);
                    assert_memory_equal(got, want, bytes);
                }
            }
        }
    }
}

/* ── Values ── */

#define CAST(from, in, to, out)                                                              \
    sft_cast(from, in, to, out, sizeof(in) * 8 / sft_dtype_describe(from)->bits, NULL, NULL, NULL)

static void rounds_to_even(void **unused) {
    static const uint8_t f32[] = { /* 1 + 2^-8, 1 + 3 * 2^-8, -65520, 2^-134, NaN with a sign */
                                   0, 0x80, 0x80, 0x3f, 0, 0x80, 0x81, 0x3f, 0, 0xf0, 0x7f, 0xc7,
                                   0, 0x80, 0, 0, 1, 0, 0x80, 0xff };
    static const uint8_t bf16[] = { 0x80, 0x3f, 0x82, 0x3f, 0x80, 0xc7, 0, 0, 0xc0, 0xff };
    static const uint8_t f16[] = { 0x04, 0x3c, 0x0c, 0x3c, 0, 0xfc, 0, 0, 0, 0xfe };
    static const uint8_t e4m3[] = { 0x38, 0x38, 0xff, 0, 0xff };
    static const uint8_t fnuz[] = { 0x40, 0x40, 0x80, 0, 0x80 };
    uint8_t out[20];
    (void)unused;
    assert_int_equal(CAST(SFT_F32, f32, SFT_BF16, out), SFT_OK);
    assert_memory_equal(out, bf16, sizeof bf16);
    assert_int_equal(CAST(SFT_F32, f32, SFT_F16, out), SFT_OK);
    assert_memory_equal(out, f16, sizeof f16);
    assert_int_equal(CAST(SFT_F32, f32, SFT_F8_E4M3, out), SFT_OK);
    assert_memory_equal(out, e4m3, sizeof e4m3);
    assert_int_equal(CAST(SFT_F32, f32, SFT_F8_E4M3FNUZ, out), SFT_OK);
    assert_memory_equal(out, fnuz, sizeof fnuz);
}

/* 1 + 2^-8 + 2^-40 is above the middle, which a step over F32 would forget. */
static void rounds_once(void **unused) {
    static const uint8_t f64[] = { 0, 0x10, 0, 0, 0, 0x10, 0xf0, 0x3f };
    static const uint8_t i64[] = { 1, 0, 0, 0, 0, 0x80, 0x80, 0 };
    static const uint8_t exact[] = { 1, 0, 0, 0, 0, 0, 0x20, 0 }; /* 2^53 + 1 */
    uint8_t out[8];
    (void)unused;
    assert_int_equal(CAST(SFT_F64, f64, SFT_BF16, out), SFT_OK);
    assert_memory_equal(out, "\x81\x3f", 2);
    assert_int_equal(CAST(SFT_I64, i64, SFT_BF16, out), SFT_OK);
    assert_memory_equal(out, "\x01\x5b", 2);
    assert_int_equal(CAST(SFT_I64, exact, SFT_U64, out), SFT_OK);
    assert_memory_equal(out, exact, 8);
}

static void packs_small(void **unused) {
    static const uint8_t f32[] = { 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40,          /* 1, 2 */
                                   0, 0, 0x40, 0xc0, 0, 0, 0, 0x3f };        /* -3, 0.5 */
    static const uint8_t f4[] = { 0x42, 0x1d };
    static const uint8_t f6[] = { 0x08, 0x10 >> 2 | (0x34 & 15) << 4, 0x34 >> 4 | 0x04 << 2 };
    uint8_t out[16], back[16];
    (void)unused;
    assert_int_equal(CAST(SFT_F32, f32, SFT_F4, out), SFT_OK);
    assert_memory_equal(out, f4, sizeof f4);
    assert_int_equal(CAST(SFT_F4, f4, SFT_F32, back), SFT_OK);
    assert_memory_equal(back, f32, sizeof f32);
    assert_int_equal(CAST(SFT_F32, f32, SFT_F6_E2M3, out), SFT_OK);
    assert_memory_equal(out, f6, sizeof f6);
    assert_int_equal(CAST(SFT_F6_E2M3, f6, SFT_F32, back), SFT_OK);
    assert_memory_equal(back, f32, sizeof f32);
    assert_int_equal(sft_cast(SFT_F32, f32, SFT_F4, out, 3, NULL, NULL, NULL),
                     SFT_SIZE_PARTIAL_BYTE);
    assert_int_equal(sft_cast(SFT_F6_E2M3, f6, SFT_F32, out, 2, NULL, NULL, NULL),
                     SFT_SIZE_PARTIAL_BYTE);
}

/* ── What is refused ── */

static void expect_refusal(sft_dtype from, const void *in, sft_dtype to, uint64_t n,
                           uint64_t where, const char *says) {
    uint8_t out[64];
    uint64_t element = 99;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_cast(from, in, to, out, n, NULL, &element, &err), SFT_CAST_VALUE);
    assert_int_equal(element, where);
    assert_string_equal(err.message, says);
    sft_cast_options options = SFT_CAST_OPTIONS_INIT;
    options.saturate = true;
    sft_code code = sft_cast(from, in, to, out, n, &options, NULL, NULL);
    bool no_nan = sft_dtype_describe(to)->kind == SFT_KIND_FLOAT;
    assert_int_equal(code, no_nan ? SFT_CAST_VALUE : SFT_OK);
}

static void refuses_by_name(void **unused) {
    (void)unused;
    expect_refusal(SFT_I16, "\x01\x00\x2c\x01", SFT_I8, 2, 1,
                   "expected values of I8 (-128 to 127), found 300 in element 1");
    expect_refusal(SFT_I8, "\x01\x02\x80", SFT_U64, 3, 2,
                   "expected values of U64 (0 to 18446744073709551615), found -128 in element 2");
    expect_refusal(SFT_U64, "\xff\xff\xff\xff\xff\xff\xff\xff", SFT_I64, 1, 0,
                   "expected values of I64 (-9223372036854775808 to 9223372036854775807), found "
                   "18446744073709551615 in element 0");
    expect_refusal(SFT_F32, "\0\0\x80\x3f\0\0\xc0\x7f", SFT_I32, 2, 1,
                   "expected values of I32 (-2147483648 to 2147483647), found NaN in element 1");
    expect_refusal(SFT_F32, "\0\0\x80\x3f\0\0\x80\xff", SFT_U8, 2, 1,
                   "expected values of U8 (0 to 255), found -inf in element 1");
    expect_refusal(SFT_BF16, "\x80\x3f\xc0\xff\x80\x3f\x80\x3f", SFT_F4, 4, 1,
                   "expected numbers, for F4 has no NaN, found NaN in element 1");
    expect_refusal(SFT_F4, "\x10\xc2", SFT_U8, 4, 3,
                   "expected values of U8 (0 to 255), found -2 in element 3");
    expect_refusal(SFT_F6_E3M2, "\x10\x06\xf1", SFT_U16, 4, 3,
                   "expected values of U16 (0 to 65535), found -16 in element 3");
}

static void refuses_calls(void **unused) {
    uint8_t in[8] = { 0 }, out[8];
    (void)unused;
    assert_int_equal(sft_cast(SFT_C64, in, SFT_F32, out, 1, NULL, NULL, NULL), SFT_CAST_DTYPE);
    assert_int_equal(sft_cast(SFT_F32, in, SFT_C64, out, 1, NULL, NULL, NULL), SFT_CAST_DTYPE);
    assert_int_equal(sft_cast(SFT_C64, in, SFT_C64, out, 1, NULL, NULL, NULL), SFT_OK);
    assert_int_equal(sft_cast((sft_dtype)99, in, SFT_F32, out, 1, NULL, NULL, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_cast(SFT_F32, NULL, SFT_F16, out, 1, NULL, NULL, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_cast(SFT_F32, NULL, SFT_F16, NULL, 0, NULL, NULL, NULL), SFT_OK);
    assert_int_equal(sft_cast(SFT_F32, in, SFT_F64, out, UINT64_MAX / 16, NULL, NULL, NULL),
                     SFT_SIZE_OVERFLOW);
    assert_false(sft_cast_exists(SFT_C64, SFT_BF16));
    assert_true(sft_cast_exists(SFT_F4, SFT_U64));
}

/* ── Conversions ── */

static sft_set *set_of(const test_file *f) {
    sft_file *file;
    sft_set *set;
    assert_int_equal(sft_open_memory(f->bytes, f->len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    return set;
}

static void keeps_scaled(void **unused) {
    static const struct {
        const char *name;
        sft_convert_action action;
    } rows[] = {
        { "a.weight", SFT_CONVERT_SCALED },   { "a.weight_scale_inv", SFT_CONVERT_SCALE },
        { "a.input_scale", SFT_CONVERT_SCALE }, { "b.weight", SFT_CONVERT_SCALED },
        { "b.scale_weight", SFT_CONVERT_SCALE }, { "c.weight", SFT_CONVERT_CAST },
        { "c.input_scale", SFT_CONVERT_CAST }, { "d_scale", SFT_CONVERT_CAST },
        { "i", SFT_CONVERT_OTHER },           { "e", SFT_CONVERT_SAME },
    };
    test_file f = make_file(
        "{\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]},"
        "\"a.weight_scale_inv\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
        "\"a.input_scale\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
        "\"b.weight\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[12,16]},"
        "\"b.scale_weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]},"
        "\"c.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[20,24]},"
        "\"c.input_scale\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[24,28]},"
        "\"d_scale\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[28,32]},"
        "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[32,36]},"
        "\"e\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[36,40]}}", NULL, 40);
    sft_set *set = set_of(&f);
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    (void)unused;
    for (int scaled = 0; scaled < 2; scaled++) {
        sft_conversion *conversion;
        options.scaled = scaled;
        assert_int_equal(sft_conversion_new(set, SFT_BF16, &options, &conversion, NULL), SFT_OK);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            bool special = rows[i].action >= SFT_CONVERT_SCALED;
            const sft_tensor *partner;
            assert_true(sft_span_equal(sft_set_tensor_at(set, i)->name,
                                       sft_span_cstr(rows[i].name)));
            sft_convert_action action = sft_conversion_action(conversion, i, &partner);
            assert_int_equal(action, special && scaled ? SFT_CONVERT_CAST : rows[i].action);
            assert_int_equal(partner != NULL, special && !scaled);
            assert_int_equal(sft_conversion_overrules(conversion, i), special && scaled);
        }
        sft_conversion_free(conversion);
    }
    sft_set_close(set);
    free_file(&f);
}

/* Shapes of rank 0 have no place in memory, which UBSan sees where they are copied. */
static void dequantises_scalars(void **unused) {
    test_file f = make_file(
        "{\"s\":{\"dtype\":\"F8_E4M3\",\"shape\":[],\"data_offsets\":[0,1]},"
        "\"s_scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[1,5]}}",
        "\x3c\0\0\x20\x40", 5); /* 1.5 by 2.5 */
    sft_set *set = set_of(&f);
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *conversion;
    sft_buffer out = { 0 };
    (void)unused;
    options.dequantize = true;
    assert_int_equal(sft_conversion_new(set, SFT_F32, &options, &conversion, NULL), SFT_OK);
    assert_int_equal(sft_conversion_save(conversion, sft_sink_memory(&out), NULL, NULL), SFT_OK);
    assert_true(out.len > 4);
    assert_memory_equal(out.data + out.len - 4, "\0\0\x70\x40", 4);
    sft_buffer_free(&out);
    sft_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
}

/* 5,000,004 elements of F32, small numbers: more than two slots of each target. */
#define LONG_COUNT 5000004u

/* ── What is lost ── */

/* From before and after alone: the least magnitudes that are too large for dtypes that clamp. */
static double too_large(sft_dtype to) {
    switch (to) {
    case SFT_F4: return 7;
    case SFT_F6_E2M3: return 7.75;
    case SFT_F6_E3M2: return 30;
    case SFT_F16: return 65520;
    case SFT_BF16: return 0x1.ffp127;
    case SFT_F32: return 0x1.ffffffp127;
    case SFT_F8_E5M2: return 61440;
    case SFT_F8_E4M3: return 464.00000000000006;
    case SFT_F8_E4M3FNUZ: return 248;
    case SFT_F8_E5M2FNUZ: return 61440;
    default: return 1e300;
    }
}

#define BLOCK 1000 /* elements, whole bytes of each dtype */

/* n is a multiple of 4, which fill whole bytes, too. */
static void count_lost(sft_dtype from, const uint8_t *in, sft_dtype to, const uint8_t *out,
                       size_t n, bool saturate, sfti_losses *sum) {
    bool clamps = saturate || to == SFT_F4 || to == SFT_F6_E2M3 || to == SFT_F6_E3M2;
    double before[BLOCK], after[BLOCK];
    for (size_t i = 0; i < n; i++) {
        size_t at = i % BLOCK, some = n - i < BLOCK ? n - i : BLOCK;
        if (at == 0) {
            const uint8_t *old = in + i * sft_dtype_describe(from)->bits / 8;
            const uint8_t *new = out + i * sft_dtype_describe(to)->bits / 8;
            assert_int_equal(sft_cast(from, old, SFT_F64, before, some, NULL, NULL, NULL), SFT_OK);
            assert_int_equal(sft_cast(to, new, SFT_F64, after, some, NULL, NULL, NULL), SFT_OK);
        }
        double x = before[at], y = after[at];
        double size = x < 0 ? -x : x;
        bool finite = size - size == 0, is_finite = y - y == 0;
        bool infinite = finite && !is_finite, zero = finite && size > 0 && is_finite && y == 0;
        bool saturated = size == size && is_finite && clamps
                      && (size >= too_large(to) || size - size != 0);
        sum->zeros += zero;
        sum->infinite += infinite;
        sum->saturated += saturated;
        sum->nonzero += (finite && size > 0) || saturated;
    }
}

#define LOST_COUNT 1000

static void counts_what_is_lost(void **unused) {
    static const sft_dtype sources[] = { SFT_F32, SFT_F64, SFT_BF16, SFT_F16, SFT_F8_E5M2,
                                         SFT_F8_E4M3, SFT_F8_E4M3FNUZ, SFT_F8_E8M0, SFT_F6_E3M2,
                                         SFT_I32, SFT_I64 };
    static const sft_dtype targets[] = { SFT_F32, SFT_BF16, SFT_F16, SFT_F8_E5M2, SFT_F8_E4M3,
                                         SFT_F8_E4M3FNUZ, SFT_F8_E5M2FNUZ, SFT_F6_E2M3,
                                         SFT_F6_E3M2, SFT_F4 };
    static const unsigned kernels_of[] = { 0, PLAIN };
    uint8_t in[LOST_COUNT * 8 + 8], out[LOST_COUNT * 8];
    size_t counted = 0;
    (void)unused;
    for (size_t f = 0; f < sizeof sources / sizeof *sources; f++)
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
            for (unsigned way = 0; way < 4; way++) {
                bool saturate = way & 1;
                sfti_losses want = { 0, 0, 0, 0 }, found = want;
                sfti_cast_kernels kernels;
                sfti_cast cast;
                fill_inputs(sources[f], in, LOST_COUNT);
                if (sources[f] == SFT_F32 && way / 2) no_nan(in, LOST_COUNT);
                sfti_cast_kernels_fill(&kernels, kernels_of[way / 2]);
                sfti_cast_begin(&cast, &kernels, sources[f], targets[t], saturate);
                sfti_losses_begin(&cast, &kernels);
                if (sfti_cast_run(&cast, in, out, LOST_COUNT, &found) < LOST_COUNT) continue;
                count_lost(sources[f], in, targets[t], out, LOST_COUNT, saturate, &want);
                uint64_t all = want.zeros + want.infinite + want.saturated;
                if (found.zeros != want.zeros || found.infinite != want.infinite
                    || found.saturated != want.saturated
                    || (all > 0 && found.nonzero != want.nonzero))
                    fail_msg("%s to %s%s: %llu %llu %llu of %llu, not %llu %llu %llu of %llu",
                             sft_dtype_describe(sources[f])->name,
                             sft_dtype_describe(targets[t])->name, saturate ? " saturated" : "",
                             (unsigned long long)found.zeros, (unsigned long long)found.infinite,
                             (unsigned long long)found.saturated,
                             (unsigned long long)found.nonzero, (unsigned long long)want.zeros,
                             (unsigned long long)want.infinite,
                             (unsigned long long)want.saturated,
                             (unsigned long long)want.nonzero);
                counted += all > 0;
            }
    assert_true(counted > 100);
}

static test_file long_file(void) {
    char header[256];
    snprintf(header, sizeof header,
             "{\"__metadata__\":{\"k\":\"v\"},\"w\":{\"dtype\":\"F32\",\"shape\":[%u],"
             "\"data_offsets\":[0,%u]}}", LONG_COUNT, 4 * LONG_COUNT);
    uint8_t *data = malloc(4 * LONG_COUNT);
    assert_non_null(data);
    state = 7;
    for (size_t i = 0; i < LONG_COUNT; i++) {
        float value = (float)(int32_t)(next_random() % 400) / 16.0f - 12.0f;
        memcpy(data + 4 * i, &value, 4);
    }
    test_file f = make_file(header, data, 4 * (size_t)LONG_COUNT);
    free(data);
    return f;
}

static bool count_ticks(void *ctx, uint64_t done, uint64_t total) {
    assert_true(done <= total);
    ++*(unsigned *)ctx;
    return true;
}

/* One tensor through a file that is only read, with so many threads. */
static sft_buffer convert_long(const test_file *f, sft_dtype to, uint32_t threads,
                               uint64_t *lost) {
    test_source source = make_source(f);
    test_memory memory = { 0 };
    sft_allocator alloc = { resize_test_memory, &memory };
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_job job = SFT_JOB_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_buffer out = { 0 };
    sft_file *file;
    sft_set *set;
    sft_conversion *conversion;
    unsigned ticks = 0;
    job.threads = threads;
    job.tick = count_ticks;
    job.ctx = &ticks;
    options.alloc = &alloc;
    assert_int_equal(sft_open_source(source_of(&source, f->len), NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_conversion_new(set, to, &options, &conversion, NULL), SFT_OK);
    if (sft_conversion_save(conversion, sft_sink_memory(&out), &job, &err))
        fail_msg("%s", err.message);
    for (int what = SFT_LOSS_ZERO; lost && what <= SFT_LOSS_OF; what++)
        lost[what] = sft_conversion_lost(conversion, 0, (sft_convert_loss)what);
    if (lost) {
        assert_int_equal(sft_conversion_lost(conversion, SIZE_MAX, SFT_LOSS_OF), lost[SFT_LOSS_OF]);
        assert_int_equal(sft_conversion_lost(conversion, 1, SFT_LOSS_OF), 0);
    }
    sft_conversion_free(conversion);
    sft_set_close(set);
    assert_int_equal(memory.held, 0);
    assert_in_range(memory.peak, 1, ((size_t)2 << 20) + threads * ((size_t)5 << 19));
    assert_true(ticks >= 2); /* how many depends on who reads faster */
    return out;
}

static void streams_the_same(void **unused) {
    static const sft_dtype targets[] = { SFT_BF16, SFT_F8_E4M3, SFT_F6_E3M2, SFT_F4, SFT_F64 };
    test_file f = long_file();
    uint8_t *want = malloc(8 * (size_t)LONG_COUNT);
    (void)unused;
    assert_non_null(want);
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        size_t bytes = (size_t)LONG_COUNT * sft_dtype_describe(targets[t])->bits / 8;
        assert_int_equal(sft_cast(SFT_F32, f.bytes + f.data, targets[t], want, LONG_COUNT, NULL,
                                  NULL, NULL), SFT_OK);
        sfti_losses sum = { 0, 0, 0, 0 };
        count_lost(SFT_F32, f.bytes + f.data, targets[t], want, LONG_COUNT, false, &sum);
        for (uint32_t threads = 1; threads <= 3; threads++) {
            uint64_t lost[4];
            sft_buffer got = convert_long(&f, targets[t], threads, lost);
            assert_int_equal(lost[SFT_LOSS_ZERO], sum.zeros);
            assert_int_equal(lost[SFT_LOSS_SATURATED], sum.saturated);
            assert_int_equal(lost[SFT_LOSS_INFINITE], sum.infinite);
            assert_int_equal(lost[SFT_LOSS_OF], targets[t] == SFT_F64 ? 0 : sum.nonzero);
            assert_true(got.len > bytes);
            assert_memory_equal(got.data + got.len - bytes, want, bytes);
            sft_buffer_free(&got);
        }
    }
    free(want);
    free_file(&f);
}

static _Thread_local char this_thread; /* its address tells threads apart */

/* A file whose reads by other threads than the first are counted. */
typedef struct watched {
    const test_file *file;
    const char *first;
    _Atomic size_t by_others;
} watched;

static sft_code read_watched(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    watched *w = ctx;
    (void)err;
    if (&this_thread != w->first) w->by_others++;
    *got = len < w->file->len - offset ? len : (size_t)(w->file->len - offset);
    memcpy(into, w->file->bytes + offset, *got);
    return SFT_OK;
}

static const sft_source_vtable watched_vtable = {
    .size = sizeof watched_vtable, .read = read_watched
};

static size_t reads_by_others(const test_file *f, sft_dtype to, uint32_t threads) {
    watched w = { f, &this_thread, 0 };
    sft_source source = { &w, &watched_vtable, f->len, NULL, false };
    sft_buffer out = { 0 };
    sft_job job = SFT_JOB_INIT;
    sft_file *file;
    sft_set *set;
    sft_conversion *conversion;
    job.threads = threads;
    assert_int_equal(sft_open_source(source, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_conversion_new(set, to, NULL, &conversion, NULL), SFT_OK);
    assert_int_equal(sft_conversion_save(conversion, sft_sink_memory(&out), &job, NULL), SFT_OK);
    sft_conversion_free(conversion);
    sft_set_close(set);
    sft_buffer_free(&out);
    return w.by_others;
}

/* Threads cast ahead only where the processor, not memory, limits the cast. */
static void threads_only_where_they_gain(void **unused) {
    test_file f = long_file();
    sfti_cast_kernels kernels;
    sfti_cast cast;
    (void)unused;
    sfti_cast_kernels_fill(&kernels, 0);
    for (int i = 0; i < 3; i++) {
        static const sft_dtype targets[] = { SFT_BF16, SFT_F16, SFT_F8_E4M3 };
        sfti_cast_begin(&cast, &kernels, SFT_F32, targets[i], false);
        bool is_light = sfti_cast_is_light(&cast, &kernels);
        bool is_vector = kernels.f32_to_bf16 != sfti_f32_to_bf16;
        assert_int_equal(is_light, is_vector && targets[i] != SFT_F8_E4M3);
        assert_int_equal(reads_by_others(&f, targets[i], 3) == 0, is_light);
        assert_int_equal(reads_by_others(&f, targets[i], 1), 0);
    }
    sfti_cast_begin(&cast, &kernels, SFT_F32, SFT_F64, false);
    assert_false(sfti_cast_is_light(&cast, &kernels));
    sfti_cast_kernels_fill(&kernels, PLAIN);
    sfti_cast_begin(&cast, &kernels, SFT_BF16, SFT_F16, false);
    assert_false(sfti_cast_is_light(&cast, &kernels));
    free_file(&f);
}

static void names_tensor_and_element(void **unused) {
    test_file f = long_file();
    sft_set *set;
    sft_conversion *conversion;
    const size_t bad = 4200000;
    (void)unused;
    memcpy(f.bytes + f.data + 4 * bad, "\0\0\xc0\x7f", 4);
    memcpy(f.bytes + f.data + 4 * (bad + 300000), "\0\0\xc0\x7f", 4);
    set = set_of(&f);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sft_error err = SFT_ERROR_INIT;
        sft_buffer out = { 0 };
        sft_job job = SFT_JOB_INIT;
        job.threads = threads;
        assert_int_equal(sft_conversion_new(set, SFT_F4, NULL, &conversion, NULL), SFT_OK);
        assert_int_equal(sft_conversion_save(conversion, sft_sink_memory(&out), &job, &err),
                         SFT_CAST_VALUE);
        assert_string_equal(err.message, "expected numbers, for F4 has no NaN, found NaN in "
                                         "element 4200000");
        assert_int_equal(err.tensor_len, 1);
        assert_int_equal(err.tensor[0], 'w');
        assert_int_equal(err.offset, f.data + 4 * bad);
        assert_null(out.data);
        sft_conversion_free(conversion);
    }
    sft_set_close(set);
    free_file(&f);
}

static bool take_c(void *ctx, const sft_tensor *tensor) {
    (void)ctx;
    return tensor->name.len == 1 && tensor->name.data[0] == 'c';
}

static void decides_before_writing(void **unused) {
    test_file f = make_file(
        "{\"c\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[8,20]}}", NULL, 20);
    sft_set *set = set_of(&f);
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *conversion;
    sft_error err = SFT_ERROR_INIT;
    (void)unused;
    assert_int_equal(sft_conversion_new(set, SFT_F4, &options, &conversion, &err),
                     SFT_SIZE_PARTIAL_BYTE);
    assert_null(conversion);
    assert_memory_equal(err.tensor, "w", 1);
    options.match = take_c;
    assert_int_equal(sft_conversion_new(set, SFT_F16, &options, &conversion, &err),
                     SFT_CAST_DTYPE);
    assert_memory_equal(err.tensor, "c", 1);
    assert_int_equal(sft_conversion_new(set, (sft_dtype)77, NULL, &conversion, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_conversion_new(set, SFT_F64, NULL, &conversion, NULL), SFT_OK);
    assert_int_equal(sft_conversion_count(conversion, SFT_CONVERT_CAST), 1);
    assert_int_equal(sft_conversion_count(conversion, SFT_CONVERT_OTHER), 1);
    assert_int_equal(sft_conversion_count(conversion, (sft_convert_action)5), 0);
    assert_int_equal(sft_conversion_count(conversion, (sft_convert_action)-1), 0);
    assert_int_equal(sft_conversion_bytes_before(conversion), 20);
    assert_int_equal(sft_conversion_bytes_after(conversion), 32);
    sft_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
}

/* A shard keeps its own metadata; there is none past the last. */
static void saves_a_shard(void **unused) {
    test_file f = make_file(
        "{\"__metadata__\":{\"k\":\"v\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2],"
        "\"data_offsets\":[0,8]}}", NULL, 8);
    sft_set *set = set_of(&f);
    sft_conversion *conversion;
    sft_buffer out = { 0 };
    sft_file *file;
    sft_span value;
    (void)unused;
    assert_int_equal(sft_conversion_new(set, SFT_F16, NULL, &conversion, NULL), SFT_OK);
    assert_int_equal(sft_conversion_save_shard(conversion, 1, sft_sink_memory(&out), NULL, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_conversion_save_shard(conversion, 0, sft_sink_memory(&out), NULL, NULL),
                     SFT_OK);
    assert_int_equal(sft_open_memory(out.data, out.len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_tensor_at(file, 0)->dtype, SFT_F16);
    assert_true(sft_file_metadata_get(file, sft_span_cstr("k"), &value));
    assert_int_equal(sft_file_metadata_count(file), 1);
    sft_close(file);
    sft_buffer_free(&out);
    sft_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
}

/* A tensor is read as it would be written, without saving. */
static void parts_are_read(void **unused) {
    static const uint8_t f32[] = { 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0 }; /* 1, -2 */
    test_file f = make_file("{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
                            f32, 8);
    sft_set *set = set_of(&f);
    sft_conversion *conversion;
    uint8_t values[4];
    size_t got;
    (void)unused;
    assert_int_equal(sft_conversion_new(set, SFT_F16, NULL, &conversion, NULL), SFT_OK);
    assert_int_equal(sft_conversion_bytes(conversion, 0), 4);
    assert_int_equal(sft_conversion_bytes(conversion, 1), 0);
    sft_part part = sft_conversion_part(conversion, 0);
    assert_int_equal(part.spec.dtype, SFT_F16);
    assert_int_equal(sft_source_read(part.source, part.begin, values, 4, &got, NULL), SFT_OK);
    assert_int_equal(got, 4);
    assert_memory_equal(values, "\0\x3c\0\xc0", 4);
    assert_null(sft_conversion_part(conversion, 1).source);
    sft_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
}

/* ── Dtypes without stages ── */

/* The next number of the enum is the one that a new dtype gets. */
static void new_dtypes_are_refused(void **unused) {
    (void)unused;
    assert_false(sfti_cast_has_stages(SFT_DTYPE_COUNT));
    assert_false(sfti_cast_has_stages(SFT_C64));
    for (int d = 0; d < SFT_DTYPE_COUNT; d++)
        if (!sfti_cast_has_stages((sft_dtype)d))
            assert_false(sft_cast_exists((sft_dtype)d, SFT_F32));
}

static bool has_format(sft_dtype dtype) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    bool small = info->kind == SFT_KIND_FLOAT && info->bits <= 16;
    return !small || dtype == SFT_F8_E8M0 || sfti_float_of(dtype);
}

/* Stages end with elements of the target's size, and small floats have a row of their format. */
static void casts_end_at_their_target(void **unused) {
    sfti_cast_kernels kernels;
    sfti_cast cast;
    (void)unused;
    sfti_cast_kernels_fill(&kernels, 0);
    for (int from = 0; from < SFT_DTYPE_COUNT; from++) {
        for (int to = 0; to < SFT_DTYPE_COUNT; to++) {
            if (from == to || !sft_cast_exists((sft_dtype)from, (sft_dtype)to)) continue;
            assert_true(has_format((sft_dtype)from) && has_format((sft_dtype)to));
            sfti_cast_begin(&cast, &kernels, (sft_dtype)from, (sft_dtype)to, false);
            assert_in_range(cast.count, 1, SFTI_CAST_STAGES);
            assert_int_equal(cast.out_bits[cast.count - 1],
                             sft_dtype_describe((sft_dtype)to)->bits);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_agree),       cmocka_unit_test(f32_variants_agree),
        cmocka_unit_test(rounds_to_even),       cmocka_unit_test(rounds_once),
        cmocka_unit_test(packs_small),          cmocka_unit_test(refuses_by_name),
        cmocka_unit_test(refuses_calls),        cmocka_unit_test(keeps_scaled),
        cmocka_unit_test(dequantises_scalars),
        cmocka_unit_test(threads_only_where_they_gain),
        cmocka_unit_test(streams_the_same),     cmocka_unit_test(names_tensor_and_element),
        cmocka_unit_test(decides_before_writing), cmocka_unit_test(saves_a_shard),
        cmocka_unit_test(parts_are_read),
        cmocka_unit_test(new_dtypes_are_refused),
        cmocka_unit_test(casts_end_at_their_target),
        cmocka_unit_test(counts_what_is_lost),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
