/* Elements as doubles against their definitions, and two models compared: values, tolerances,
 * NaN, dtypes, sets, metadata, JSON. */
#define _GNU_SOURCE
#include "base/number.h"
#include "safetensors_diff.h"
#include "safetensors_set.h"
#include "safetensors_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "unit/temp_model.h"

static temp_folder folder;

/* ── Numbers ── */

static double value_of(sft_dtype dtype, const void *bytes) {
    double out[2];
    sfti_to_doubles(dtype, bytes, 0, 1, out);
    return out[0];
}

static double of_u16(sft_dtype dtype, unsigned bits) {
    uint8_t at[2] = { (uint8_t)bits, (uint8_t)(bits >> 8) };
    return value_of(dtype, at);
}

static double of_u8(sft_dtype dtype, unsigned bits) {
    uint8_t at[3] = { (uint8_t)bits, 0, 0 };
    return value_of(dtype, at);
}

static void test_floats(void **state) {
    (void)state;
    assert_true(of_u16(SFT_F16, 0x3C00) == 1 && of_u16(SFT_F16, 0x7BFF) == 65504);
    assert_true(of_u16(SFT_F16, 1) == 0x1p-24 && of_u16(SFT_F16, 0x8001) == -0x1p-24);
    assert_true(isinf(of_u16(SFT_F16, 0xFC00)) && of_u16(SFT_F16, 0xFC00) < 0);
    assert_true(isnan(of_u16(SFT_F16, 0x7C01)) && signbit(of_u16(SFT_F16, 0x8000)));
    assert_true(of_u16(SFT_BF16, 0x3F80) == 1 && of_u16(SFT_BF16, 1) == 0x1p-133);
    assert_true(of_u8(SFT_F8_E4M3, 0x7E) == 448 && isnan(of_u8(SFT_F8_E4M3, 0x7F)));
    assert_true(of_u8(SFT_F8_E4M3, 1) == 0x1p-9 && of_u8(SFT_F8_E4M3, 0xFE) == -448);
    assert_true(of_u8(SFT_F8_E5M2, 0x7B) == 57344 && isinf(of_u8(SFT_F8_E5M2, 0x7C)));
    assert_true(of_u8(SFT_F8_E4M3FNUZ, 0x7F) == 240 && isnan(of_u8(SFT_F8_E4M3FNUZ, 0x80)));
    assert_true(of_u8(SFT_F8_E5M2FNUZ, 0x7F) == 57344 && of_u8(SFT_F8_E5M2FNUZ, 1) == 0x1p-17);
    assert_true(of_u8(SFT_F8_E8M0, 0) == 0x1p-127 && of_u8(SFT_F8_E8M0, 127) == 1);
    assert_true(isnan(of_u8(SFT_F8_E8M0, 255)));
    assert_true(of_u8(SFT_F4, 7) == 6 && of_u8(SFT_F4, 9) == -0.5 && of_u8(SFT_F4, 1) == 0.5);
    assert_true(of_u8(SFT_F6_E2M3, 0x1F) == 7.5 && of_u8(SFT_F6_E3M2, 0x1F) == 28);
    assert_true(of_u8(SFT_I8, 0x80) == -128 && of_u8(SFT_U8, 0x80) == 128);
    assert_true(of_u8(SFT_BOOL, 7) == 1 && of_u16(SFT_I16, 0xFFFF) == -1);
    assert_true(value_of(SFT_I64, "\0\0\0\0\0\0\0\x80") == -0x1p63);
    assert_true(value_of(SFT_U64, "\0\0\0\0\0\0\0\x80") == 0x1p63);
    assert_true(value_of(SFT_F64, "\0\0\0\0\0\0\xF0\x3F") == 1);
}

/* One by one and many at once give the same, for every dtype and every beginning. */
static void test_many(void **state) {
    static uint8_t bytes[8192];
    static double all[8192];
    (void)state;
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 56);
    }
    for (int d = 0; d < SFT_DTYPE_COUNT; d++) {
        sft_dtype dtype = (sft_dtype)d;
        size_t count = sizeof bytes * 8 / sft_dtype_describe(dtype)->bits / 2;
        size_t each = dtype == SFT_C64 ? 2 : 1;
        sfti_to_doubles(dtype, bytes, 5, count - 5, all);
        for (size_t i = 0; i < count - 5; i++) {
            double one[2];
            sfti_to_doubles(dtype, bytes, 5 + i, 1, one);
            assert_true(memcmp(one, all + each * i, each * sizeof *one) == 0 ||
                        (isnan(one[0]) && isnan(all[each * i])));
            if (dtype == SFT_C64 || !sfti_float_form_of(dtype)->exponent) continue;
            double plain = sfti_float_value(sfti_float_form_of(dtype),
                                            sfti_element_bits(dtype, bytes, 5 + i));
            assert_true(plain == one[0] || (isnan(plain) && isnan(one[0])));
        }
    }
}

/* A dtype without its row would be read as an integer. */
static void test_float_rows(void **state) {
    (void)state;
    for (int d = 0; d < SFT_DTYPE_COUNT; d++) {
        const sft_dtype_info *info = sft_dtype_describe((sft_dtype)d);
        const sfti_float_form *form = sfti_float_form_of((sft_dtype)d);
        bool is_float = info->kind == SFT_KIND_FLOAT || info->kind == SFT_KIND_COMPLEX;
        unsigned halves = info->kind == SFT_KIND_COMPLEX ? 2 : 1;
        assert_int_equal(halves * sfti_float_bits(form), is_float ? info->bits : 0);
    }
}

static void expect_text(double value, const char *text) {
    char buffer[SFTI_DOUBLE_SIZE];
    assert_int_equal(sfti_double_text(value, buffer), strlen(text));
    assert_string_equal(buffer, text);
}

static void test_text(void **state) {
    (void)state;
    expect_text(0, "0");
    expect_text(0.5, "0.5");
    expect_text(1e300, "1.0000000000000001e+300");
    expect_text((double)NAN, "\"NaN\"");
    expect_text(-(double)INFINITY, "\"-Infinity\"");
    expect_text((double)INFINITY, "\"Infinity\"");
}

/* ── Two models of one tensor ── */

typedef struct pair_of {
    sft_set *sets[2];
    sft_diff *diff;
} pair_of;

static sft_set *open_model(const char *header, const void *data, size_t len) {
    static int number;
    char name[32];
    sft_set *set;
    snprintf(name, sizeof name, "d%d", number++);
    assert_int_equal(sft_set_open(temp_model(&folder, name, header, data, len), NULL, &set, NULL),
                     SFT_OK);
    return set;
}

static pair_of compare(const char *header_a, const void *a, size_t len_a, const char *header_b,
                       const void *b, size_t len_b, const sft_diff_options *options) {
    pair_of p = { { open_model(header_a, a, len_a), open_model(header_b, b, len_b) }, NULL };
    assert_int_equal(sft_diff_new(p.sets[0], p.sets[1], options, NULL, &p.diff, NULL), SFT_OK);
    return p;
}

static void end(pair_of *p) {
    sft_diff_free(p->diff);
    sft_set_close(p->sets[0]);
    sft_set_close(p->sets[1]);
}

static pair_of floats(const float *a, const float *b, size_t count,
                      const sft_diff_options *options) {
    char header[128];
    snprintf(header, sizeof header,
             "{\"x\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", count,
             4 * count);
    return compare(header, a, 4 * count, header, b, 4 * count, options);
}

static void test_values(void **state) {
    static const float a[] = { 1, 2, 0, NAN, INFINITY, -0.0f, NAN, 4 };
    static const float b[] = { 1, 2.5f, 0.25f, NAN, INFINITY, 0, 1, 4 };
    (void)state;
    pair_of p = floats(a, b, 8, NULL);
    assert_false(sft_diff_same(p.diff));
    assert_int_equal(sft_diff_tensor_count(p.diff), 1);
    const sft_diff_tensor *t = sft_diff_tensor_at(p.diff, 0);
    assert_int_equal(t->what, SFT_DIFF_DATA);
    assert_true(t->compared);
    assert_int_equal(t->values, 8);
    assert_int_equal(t->differing, 3);
    assert_int_equal(t->nan, 1);
    assert_int_equal(t->first, 1);
    assert_true(t->max_abs == 0.5);
    assert_true(t->max_rel == 1); /* 0 against 0.25 */
    assert_null(sft_diff_tensor_at(p.diff, 1));
    end(&p);
}

static void test_tolerance(void **state) {
    static const float a[] = { 1, 100, 0 }, b[] = { 1.25f, 101, 0 };
    sft_diff_options options = SFT_DIFF_OPTIONS_INIT;
    (void)state;
    options.has_tolerance = true;
    options.atol = 0.25;
    options.rtol = 0.01;
    pair_of p = floats(a, b, 3, &options);
    assert_true(sft_diff_same(p.diff));
    assert_int_equal(sft_diff_within_tolerance_count(p.diff), 1);
    assert_int_equal(sft_diff_equal_count(p.diff), 0);
    assert_true(sft_diff_max_abs(p.diff) == 1 && sft_diff_max_rel(p.diff) == 0.2);
    end(&p);
    options.rtol = 0;
    p = floats(a, b, 3, &options);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->beyond, 1);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->differing, 2);
    end(&p);
    /* Bytes that differ, and no value does. */
    static const float zero[] = { 0 }, minus[] = { -0.0f };
    p = floats(zero, minus, 1, &options);
    assert_true(sft_diff_same(p.diff));
    end(&p);
    p = floats(zero, minus, 1, NULL);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->what, SFT_DIFF_DATA);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->differing, 0);
    end(&p);
    options.atol = -1;
    sft_set *set = open_model("{}", "", 0);
    sft_diff *diff;
    assert_int_equal(sft_diff_new(set, set, &options, NULL, &diff, NULL), SFT_BAD_ARGUMENT);
    options.atol = (double)NAN;
    assert_int_equal(sft_diff_new(set, set, &options, NULL, &diff, NULL), SFT_BAD_ARGUMENT);
    sft_set_close(set);
}

static void test_infinite(void **state) {
    static const float a[] = { INFINITY, 1 }, b[] = { -INFINITY, 1 };
    (void)state;
    pair_of p = floats(a, b, 2, NULL);
    assert_true(isinf(sft_diff_tensor_at(p.diff, 0)->max_abs));
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->nan, 0);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->beyond, 1);
    end(&p);
}

#define ONE(dtype, shape, end) \
    "{\"x\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[0," end "]}}"

/* An infinite quotient is told; so is one of numbers whose distance F64 does not have. What needs
 * squares that it does not have is not known. */
static void test_extremes(void **state) {
    static const float over[] = { INFINITY, 1 }, held[] = { 70000, 1 };
    static const struct { double a[2], b[2], rel; bool rms, cosine; } cases[] = {
        { { 1e308, 1 }, { -1e308, 1 }, 2, false, false },
        { { 1e300, 1 }, { 1e-300, 1 }, (double)INFINITY, false, false },
        { { 1e-200, 0 }, { 2e-200, 0 }, 0.5, false, false },
        { { 1, 2e-200 }, { 1, 1e-200 }, 1, false, true },
        { { 0, 0 }, { 0, 3 }, 1, true, false },
        { { 2, 0 }, { 0, 2 }, 1, true, true },
    };
    (void)state;
    pair_of p = floats(over, held, 2, NULL);
    assert_true(isinf(sft_diff_tensor_at(p.diff, 0)->max_rel));
    assert_true(sft_diff_tensor_at(p.diff, 0)->rms == 0);
    end(&p);
    p = floats(held, over, 2, NULL);
    assert_true(isinf(sft_diff_max_abs(p.diff)) && sft_diff_max_rel(p.diff) == 0);
    end(&p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p = compare(ONE("F64", "[2]", "16"), cases[i].a, 16, ONE("F64", "[2]", "16"), cases[i].b,
                    16, NULL);
        const sft_diff_tensor *t = sft_diff_tensor_at(p.diff, 0);
        assert_true(t->max_rel == cases[i].rel);
        assert_int_equal(!isnan(t->rms), cases[i].rms);
        assert_int_equal(!isnan(t->cosine), cases[i].cosine);
        end(&p);
    }
}

/* Integers that a double would take for one another. */
static void test_wide_integers(void **state) {
    static const int64_t a[] = { INT64_MAX, -5, INT64_MIN }, b[] = { INT64_MAX - 1, -6, INT64_MAX };
    (void)state;
    pair_of p = compare(ONE("I64", "[3]", "24"), a, 24, ONE("I64", "[3]", "24"), b, 24, NULL);
    const sft_diff_tensor *t = sft_diff_tensor_at(p.diff, 0);
    assert_int_equal(t->differing, 3);
    assert_true(t->max_abs == 0x1p64 && t->max_rel > 1.9 && t->max_rel < 2.1);
    end(&p);
    p = compare(ONE("U64", "[2]", "16"), a, 16, ONE("U64", "[2]", "16"), b, 16, NULL);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->differing, 2);
    assert_true(sft_diff_tensor_at(p.diff, 0)->max_abs == 1);
    end(&p);
}

static void test_forms(void **state) {
    static const float f32[] = { 1, -2 };
    static const uint16_t bf16[] = { 0x3F80, 0xC000 }, other[] = { 0x3F80, 0xC080 };
    (void)state;
    pair_of p = compare(ONE("F32", "[2]", "8"), f32, 8, ONE("BF16", "[2]", "4"), bf16, 4, NULL);
    const sft_diff_tensor *t = sft_diff_tensor_at(p.diff, 0);
    assert_int_equal(t->what, SFT_DIFF_DTYPE);
    assert_true(t->compared && t->differing == 0);
    end(&p);
    p = compare(ONE("F32", "[2]", "8"), f32, 8, ONE("BF16", "[2]", "4"), other, 4, NULL);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->what, SFT_DIFF_DTYPE | SFT_DIFF_DATA);
    assert_true(sft_diff_tensor_at(p.diff, 0)->max_abs == 2);
    end(&p);
    p = compare(ONE("F32", "[2]", "8"), f32, 8, ONE("F32", "[1,2]", "8"), f32, 8, NULL);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->what, SFT_DIFF_SHAPE);
    assert_false(sft_diff_tensor_at(p.diff, 0)->compared);
    end(&p);
    p = compare(ONE("C64", "[1]", "8"), f32, 8, ONE("F64", "[1]", "8"), f32, 8, NULL);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->what, SFT_DIFF_DTYPE | SFT_DIFF_DATA);
    assert_false(sft_diff_tensor_at(p.diff, 0)->compared);
    end(&p);
    static const float turned[] = { 1, 2 };
    p = compare(ONE("C64", "[1]", "8"), f32, 8, ONE("C64", "[1]", "8"), turned, 8, NULL);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->values, 2);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->first, 1);
    end(&p);
    sft_diff_options options = SFT_DIFF_OPTIONS_INIT;
    options.header_only = true;
    p = compare(ONE("F32", "[2]", "8"), f32, 8, ONE("F32", "[2]", "8"), "12345678", 8, &options);
    assert_true(sft_diff_same(p.diff));
    assert_int_equal(sft_diff_equal_count(p.diff), 1);
    end(&p);
}

/* Over many windows, one value near the end differs. */
static void test_long(void **state) {
    static const char *const names[] = { "U8", "F4", "F6_E2M3", "F16", "F64" };
    static const size_t bits[] = { 8, 4, 6, 16, 64 };
    size_t elements = 3000008;
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        char header[128];
        size_t len = elements * bits[i] / 8;
        uint8_t *a = calloc(1, len), *b = calloc(1, len);
        snprintf(header, sizeof header,
                 "{\"x\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", names[i],
                 elements, len);
        b[len - 1] = 0x40;
        pair_of p = compare(header, a, len, header, b, len, NULL);
        assert_int_equal(sft_diff_tensor_at(p.diff, 0)->differing, 1);
        assert_int_equal(sft_diff_tensor_at(p.diff, 0)->first, elements - 1);
        end(&p);
        free(a);
        free(b);
    }
}

/* ── Names, sets, metadata ── */

#define T(name, at) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":" at "}"

static void test_names(void **state) {
    (void)state;
    static const char a[] = "{" T("l.10", "[0,1]") "," T("l.2", "[1,2]") "," T("same", "[2,3]") "}";
    static const char b[] = "{" T("l.2", "[0,1]") "," T("same", "[1,2]") "," T("z", "[2,3]") "}";
    pair_of p = compare(a, "123", 3, b, "931", 3, NULL);
    assert_int_equal(sft_diff_tensor_count(p.diff), 3);
    assert_int_equal(sft_diff_tensor_at(p.diff, 0)->what, SFT_DIFF_DATA);
    assert_true(sft_span_equal(sft_diff_tensor_at(p.diff, 0)->name, sft_span_cstr("l.2")));
    assert_int_equal(sft_diff_tensor_at(p.diff, 1)->what, SFT_DIFF_REMOVED);
    assert_true(sft_span_equal(sft_diff_tensor_at(p.diff, 1)->name, sft_span_cstr("l.10")));
    assert_null(sft_diff_tensor_at(p.diff, 1)->b);
    assert_int_equal(sft_diff_tensor_at(p.diff, 2)->what, SFT_DIFF_ADDED);
    assert_int_equal(sft_diff_equal_count(p.diff), 1);
    end(&p);
}

static void test_metadata(void **state) {
    (void)state;
    pair_of p = compare("{\"__metadata__\":{\"a\":\"1\",\"b\":\"\",\"c\":\"3\"}}", "", 0,
                        "{\"__metadata__\":{\"d\":\"4\",\"c\":\"3\",\"b\":\"2\"}}", "", 0, NULL);
    assert_int_equal(sft_diff_pair_count(p.diff), 3);
    sft_diff_pair a = sft_diff_pair_at(p.diff, 0), b = sft_diff_pair_at(p.diff, 1),
                  d = sft_diff_pair_at(p.diff, 2);
    assert_true(a.a.len == 1 && !a.b.data);
    assert_true(b.a.data && b.a.len == 0 && b.b.len == 1);
    assert_true(!d.a.data && d.b.data[0] == '4');
    assert_null(sft_diff_pair_at(p.diff, 3).key.data);
    end(&p);
    sft_diff_options options = SFT_DIFF_OPTIONS_INIT;
    options.no_metadata = true;
    p = compare("{\"__metadata__\":{\"a\":\"1\"}}", "", 0, "{}", "", 0, &options);
    assert_true(sft_diff_same(p.diff));
    end(&p);
    p = compare("{\"__metadata__\":{\"k\":\"1\",\"b.w\":\"a.w\"}," T("a.w", "[0,1]") "}", "1", 1,
                "{" T("a.w", "[0,1]") "}", "1", 1, &options);
    assert_false(sft_diff_same(p.diff)); /* the other name of a tensor */
    assert_int_equal(sft_diff_pair_count(p.diff), 1);
    assert_true(sft_span_equal(sft_diff_pair_at(p.diff, 0).key, sft_span_cstr("b.w")));
    end(&p);
}

static void test_sets(void **state) {
    const char *shards[] = {
        temp_model(&folder, "s1", "{\"__metadata__\":{\"k\":\"1\"}," T("b", "[0,1]") "}", "2", 1),
        temp_model(&folder, "s2", "{\"__metadata__\":{\"k\":\"2\"}," T("a", "[0,1]") "}", "1", 1) };
    sft_set *whole = open_model("{\"__metadata__\":{\"k\":\"1\"}," T("a", "[0,1]") ","
                                T("b", "[1,2]") "}", "12", 2), *set;
    sft_diff *diff;
    (void)state;
    assert_int_equal(sft_set_open_list(shards, 2, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_diff_new(whole, set, NULL, NULL, &diff, NULL), SFT_OK);
    assert_true(sft_diff_same(diff));
    assert_int_equal(sft_diff_equal_count(diff), 2);
    sft_diff_free(diff);
    sft_set_close(set);
    sft_set_close(whole);
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total) {
    uint64_t *seen = ctx;
    seen[0] = done;
    seen[1] = total;
    return false;
}

static void test_job(void **state) {
    uint64_t seen[2] = { 0 };
    sft_job job = SFT_JOB_INIT;
    sft_set *set = open_model("{" T("a", "[0,1]") "," T("b", "[1,2]") "}", "12", 2);
    sft_diff *diff;
    (void)state;
    job.tick = stop_at_once;
    job.ctx = seen;
    assert_int_equal(sft_diff_new(set, set, NULL, &job, &diff, NULL), SFT_CANCELLED);
    assert_null(diff);
    assert_int_equal(seen[0], 2);
    assert_int_equal(seen[1], 4);
    sft_set_close(set);
}

static bool is_b(void *ctx, const sft_tensor *tensor) {
    (void)ctx;
    return tensor->name.len == 1 && tensor->name.data[0] == 'b';
}

/* --match of both sides; counts, the share of elements, and how far values are apart. */
static void test_summary(void **state) {
    sft_diff_options options = SFT_DIFF_OPTIONS_INIT;
    sft_set *x = open_model("{" T("a", "[0,1]") "," T("b", "[1,2]") "}", "12", 2);
    sft_set *y = open_model("{" T("b", "[0,1]") "," T("c", "[1,2]") "}", "43", 2);
    sft_diff *diff;
    (void)state;
    assert_int_equal(sft_diff_new(x, y, NULL, NULL, &diff, NULL), SFT_OK);
    assert_int_equal(sft_diff_compared_count(diff), 3);
    assert_int_equal(sft_diff_changed_count(diff), 1);
    assert_int_equal(sft_diff_removed_count(diff), 1);
    assert_int_equal(sft_diff_added_count(diff), 1);
    assert_true(sft_diff_share(diff) == 1);
    sft_diff_free(diff);
    options.match = is_b;
    assert_int_equal(sft_diff_new(x, y, &options, NULL, &diff, NULL), SFT_OK);
    assert_int_equal(sft_diff_compared_count(diff), 1);
    assert_int_equal(sft_diff_tensor_count(diff), 1);
    assert_true(fabs(sft_diff_tensor_at(diff, 0)->rms - 2) < 1e-12);
    assert_true(fabs(sft_diff_tensor_at(diff, 0)->cosine - 1) < 1e-12);
    sft_diff_free(diff);
    assert_int_equal(sft_diff_new(x, x, NULL, NULL, &diff, NULL), SFT_OK);
    assert_true(sft_diff_share(diff) == 0);
    sft_diff_free(diff);
    sft_set_close(x);
    sft_set_close(y);
}

static void test_json(void **state) {
    static const float a[] = { 1, 2 }, b[] = { 1, NAN };
    sft_buffer buffer = { 0 };
    (void)state;
    pair_of p = floats(a, b, 2, NULL);
    sft_sink sink = sft_sink_memory(&buffer);
    assert_int_equal(sft_diff_json(p.diff, "a", "b", &sink, NULL), SFT_OK);
    static const char expected[] =
        "{\"path\":\"a\",\"other\":{\"path\":\"b\"},\"ok\":true,"
        "\"same\":false,\"equal\":0,\"close\":0,\"max_abs\":0,\"max_rel\":0,"
        "\"summary\":{\"tensors\":1,\"changed\":1,\"removed\":0,\"added\":0,\"share\":1},"
        "\"removed\":[],\"added\":[],\"changed\":[{\"name\":\"x\",\"what\":[\"data\"],"
        "\"dtype\":[\"F32\",\"F32\"],"
        "\"shape\":[[2],[2]],\"values\":{\"compared\":2,\"differing\":1,\"beyond\":1,\"nan\":1,"
        "\"first\":1,\"max_abs\":0,\"max_rel\":0,\"rms\":0,\"cosine\":1}}],\"metadata\":[]}";
    assert_int_equal(buffer.len, sizeof expected - 1);
    assert_memory_equal(buffer.data, expected, buffer.len);
    sft_tree *tree;
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    assert_int_equal(sft_diff_tree(p.diff, "a", "b", tree, NULL), SFT_OK);
    assert_true(sft_span_equal(sft_node_text(sft_node_get(sft_tree_root(tree), "changed")->first,
                                             "values.differing"), sft_span_cstr("1")));
    sink = sft_sink_memory(&buffer);
    assert_int_equal(sft_node_json(sft_tree_root(tree), NULL, NULL, &sink, 0, NULL, NULL), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_int_equal(buffer.len, sizeof expected - 1);
    assert_memory_equal(buffer.data, expected, buffer.len);
    sft_tree_free(tree);
    sft_buffer_free(&buffer);
    end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),        cmocka_unit_test(test_many),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_float_rows),     cmocka_unit_test(test_values),
        cmocka_unit_test(test_tolerance),     cmocka_unit_test(test_infinite),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_wide_integers), cmocka_unit_test(test_forms),
        cmocka_unit_test(test_long),          cmocka_unit_test(test_names),
        cmocka_unit_test(test_metadata),      cmocka_unit_test(test_sets),
        cmocka_unit_test(test_job),           cmocka_unit_test(test_summary),
        cmocka_unit_test(test_json),
    };
    temp_begin(&folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_end(&folder);
    return failed;
}
