/* Counting NaN and infinities: every value of the small dtypes against their definition,
 * windows and blocks, sets, jobs. */
#define _GNU_SOURCE
#include "safetensors_report.h"
#include "safetensors_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "unit/temp_model.h"

static sft_set *set_of(const char *header, const void *data, size_t len, uint8_t **bytes) {
    size_t n = strlen(header);
    sft_file *file;
    sft_set *set;
    *bytes = malloc(8 + n + len);
    for (size_t i = 0; i < 8; i++) (*bytes)[i] = (uint8_t)((uint64_t)n >> (8 * i));
    memcpy(*bytes + 8, header, n);
    if (len) memcpy(*bytes + 8 + n, data, len);
    assert_int_equal(sft_open_memory(*bytes, 8 + n + len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    return set;
}

static sft_deep_counts deep_of(const char *header, const void *data, size_t len) {
    uint8_t *bytes;
    sft_deep_counts deep;
    sft_set *set = set_of(header, data, len, &bytes);
    assert_int_equal(sft_set_check_deep(set, &deep, NULL, NULL), SFT_OK);
    sft_set_close(set);
    free(bytes);
    return deep;
}

static sft_deep_counts deep_one(const char *dtype, size_t elements, const void *data, size_t len) {
    char header[128];
    snprintf(header, sizeof header,
             "{\"t\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", dtype,
             elements, len);
    return deep_of(header, data, len);
}

/* ── Definitions ── */

/* A float of e exponent and m mantissa bits whose topmost exponent means NaN or Inf. */
static void ieee(uint64_t bits, int e, int m, bool *nan, bool *inf) {
    uint64_t exponent = bits >> m & ((UINT64_C(1) << e) - 1);
    uint64_t mantissa = bits & ((UINT64_C(1) << m) - 1);
    bool top = exponent == (UINT64_C(1) << e) - 1;
    *nan = top && mantissa;
    *inf = top && !mantissa;
}

static void define(sft_dtype dtype, uint64_t bits, bool *nan, bool *inf) {
    *nan = *inf = false;
    switch (dtype) {
    case SFT_F8_E5M2: ieee(bits, 5, 2, nan, inf); break;
    case SFT_F8_E4M3: *nan = bits == 0x7f || bits == 0xff; break;
    case SFT_F8_E8M0: *nan = bits == 0xff; break;
    case SFT_F8_E4M3FNUZ:
    case SFT_F8_E5M2FNUZ: *nan = bits == 0x80; break;
    case SFT_F16: ieee(bits, 5, 10, nan, inf); break;
    case SFT_BF16: ieee(bits, 8, 7, nan, inf); break;
    case SFT_F32: ieee(bits, 8, 23, nan, inf); break;
    case SFT_F64: ieee(bits, 11, 52, nan, inf); break;
    default: break;
    }
}

/* ── Each value ── */

static void put_value(uint8_t *at, uint64_t bits, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) at[i] = (uint8_t)(bits >> (8 * i));
}

/* Each pattern in a block of its own among zeros, so that the fast path must see it. */
static void check_value(sft_dtype dtype, uint64_t bits) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    size_t width = info->bits / 8;
    uint8_t data[64 * 3] = { 0 };
    bool nan, inf;
    put_value(data + 64 + (bits % (64 / width)) * width, bits, width);
    define(dtype, bits, &nan, &inf);
    sft_deep_counts deep = deep_one(info->name, sizeof data / width, data, sizeof data);
    if (deep.nan != nan || deep.inf != inf)
        fail_msg("%s %llx: nan %d inf %d", info->name, (unsigned long long)bits, (int)deep.nan,
                 (int)deep.inf);
    assert_int_equal(deep.tensors, 1);
    assert_int_equal(deep.values, sizeof data / width);
    assert_int_equal(deep.tensors_with_nan, nan);
    assert_int_equal(deep.tensors_with_inf, inf);
    assert_true(deep.first_nan_tensor == (nan ? 0 : UINT64_MAX));
    assert_true(deep.first_inf_tensor == (inf ? 0 : UINT64_MAX));
}

static void every_byte(void **state) {
    static const sft_dtype dtypes[] = { SFT_F8_E5M2, SFT_F8_E4M3, SFT_F8_E8M0, SFT_F8_E4M3FNUZ,
                                        SFT_F8_E5M2FNUZ };
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (uint64_t bits = 0; bits < 256; bits++) check_value(dtypes[d], bits);
}

static void every_half(void **state) {
    (void)state;
    for (uint64_t bits = 0; bits < 65536; bits += 3) {
        check_value(SFT_F16, bits);
        check_value(SFT_BF16, bits);
    }
    for (uint64_t sign = 0; sign <= 0x8000; sign += 0x8000) {
        for (uint64_t at = 0x7bfe; at <= 0x7c02; at++) check_value(SFT_F16, sign | at);
        for (uint64_t at = 0x7f7e; at <= 0x7f82; at++) check_value(SFT_BF16, sign | at);
    }
}

static void edges_of_words(void **state) {
    static const uint64_t f32[] = { 0, 1, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
                                    0x7fffffff };
    static const uint64_t f64[] = { 0, 1, 0x7fefffffffffffff, 0x7ff0000000000000,
                                    0x7ff0000000000001, 0x7ff8000000000000,
                                    0x7fffffffffffffff };
    (void)state;
    for (size_t i = 0; i < sizeof f32 / sizeof *f32; i++) {
        check_value(SFT_F32, f32[i]);
        check_value(SFT_F32, f32[i] | 0x80000000);
        check_value(SFT_F64, f64[i]);
        check_value(SFT_F64, f64[i] | UINT64_C(0x8000000000000000));
    }
}

/* All 256 or 65,536 patterns at once: neighbours may not disturb one another. */
static void check_all_patterns(sft_dtype dtype) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    size_t width = info->bits / 8, count = (size_t)1 << info->bits;
    uint8_t *data = malloc(count * width);
    uint64_t nans = 0, infs = 0;
    for (uint64_t bits = 0; bits < count; bits++) {
        bool nan, inf;
        put_value(data + bits * width, bits, width);
        define(dtype, bits, &nan, &inf);
        nans += nan;
        infs += inf;
    }
    sft_deep_counts deep = deep_one(info->name, count, data, count * width);
    assert_int_equal(deep.nan, nans);
    assert_int_equal(deep.inf, infs);
    free(data);
}

static void all_patterns_at_once(void **state) {
    (void)state;
    check_all_patterns(SFT_F8_E5M2);
    check_all_patterns(SFT_F8_E4M3);
    check_all_patterns(SFT_F8_E8M0);
    check_all_patterns(SFT_F8_E4M3FNUZ);
    check_all_patterns(SFT_F8_E5M2FNUZ);
    check_all_patterns(SFT_F16);
    check_all_patterns(SFT_BF16);
}

static void complex_by_halves(void **state) {
    const float data[] = { 1, 2, NAN, 0, 0, NAN, INFINITY, 0, 0, -INFINITY, NAN, INFINITY,
                           NAN, NAN, INFINITY, INFINITY };
    (void)state;
    sft_deep_counts deep = deep_one("C64", 8, data, sizeof data);
    assert_int_equal(deep.values, 8);
    assert_int_equal(deep.nan, 4);
    assert_int_equal(deep.inf, 4);
}

static void dtypes_without(void **state) {
    static const struct { const char *dtype; size_t elements; bool is_float; } rows[] = {
        { "BOOL", 64, false }, { "U8", 64, false }, { "I8", 64, false }, { "I16", 32, false },
        { "U16", 32, false }, { "I32", 16, false }, { "U32", 16, false }, { "I64", 8, false },
        { "U64", 8, false }, { "F4", 128, true }, { "F6_E2M3", 84, true },
        { "F6_E3M2", 84, true },
    };
    uint8_t data[64];
    (void)state;
    memset(data, 0xff, sizeof data);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = rows[i].elements == 84 ? 63 : 64;
        sft_deep_counts deep = deep_one(rows[i].dtype, rows[i].elements, data, len);
        assert_int_equal(deep.nan + deep.inf, 0);
        assert_int_equal(deep.tensors, rows[i].is_float);
        assert_int_equal(deep.values, rows[i].is_float ? rows[i].elements : 0);
    }
}

/* ── Windows ── */

/* Odd places, several windows: a NaN at either side of every window's edge is found. */
static void windows_meet_without_a_seam(void **state) {
    enum { LEAD = 3, COUNT = 700001 };
    size_t len = LEAD + COUNT * 4 + 8;
    uint8_t *data = calloc(1, len);
    char header[512];
    uint64_t put = 0;
    (void)state;
    snprintf(header, sizeof header,
             "{\"i\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
             "\"f\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%d,%d]},"
             "\"e\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[%d,%d]},"
             "\"d\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[%d,%zu]}}",
             LEAD, LEAD, COUNT, LEAD, LEAD + COUNT * 4, LEAD + COUNT * 4, LEAD + COUNT * 4,
             LEAD + COUNT * 4, len);
    for (size_t edge = 1 << 20; edge < COUNT * 4; edge += 1 << 20)
        for (size_t i = edge / 4 - 4; i < edge / 4 + 4; i++, put++)
            put_value(data + LEAD + i * 4, 0x7fc00000, 4);
    put_value(data + LEAD + (COUNT - 1) * 4, 0xff800000, 4);
    put_value(data + len - 8, UINT64_C(0x7ff0000000000000), 8);
    sft_deep_counts deep = deep_of(header, data, len);
    assert_int_equal(deep.nan, put);
    assert_int_equal(deep.inf, 2);
    assert_int_equal(deep.tensors, 3);
    assert_int_equal(deep.values, COUNT + 1);
    assert_int_equal(deep.tensors_with_inf, 2);
    assert_int_equal(deep.first_nan_tensor, 1);
    free(data);
}

static void nothing_to_count(void **state) {
    (void)state;
    sft_deep_counts deep = deep_of("{}", NULL, 0);
    assert_int_equal(deep.tensors + deep.values + deep.nan + deep.inf, 0);
    assert_true(deep.first_nan_tensor == UINT64_MAX);
}

/* ── Sets, jobs, failures ── */

static void indexes_run_over_the_set(void **state) {
    temp_folder temp;
    const char *paths[3];
    sft_set *set;
    sft_deep_counts deep;
    (void)state;
    temp_begin(&temp);
    for (int i = 0; i < 3; i++) {
        char header[128], name[16];
        snprintf(name, sizeof name, "%d", i);
        snprintf(header, sizeof header,
                 "{\"t%d\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}", i);
        paths[i] = temp_model(&temp, name, header, i == 2 ? "\x01\x7c" : "\x00\x7c", 2);
    }
    assert_int_equal(sft_set_open_list(paths, 3, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_set_check_deep(set, &deep, NULL, NULL), SFT_OK);
    assert_int_equal(deep.tensors_with_inf, 2);
    assert_int_equal(deep.first_inf_tensor, 0);
    assert_int_equal(deep.first_nan_tensor, 2);
    sft_set_close(set);
    temp_end(&temp);
}

static void a_cut_file_is_told(void **state) {
    temp_folder temp;
    sft_error err = SFT_ERROR_INIT;
    sft_set *set;
    sft_deep_counts deep;
    (void)state;
    temp_begin(&temp);
    const char *path = temp_model(
        &temp, "cut", "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "12345678", 8);
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    temp_must(truncate(path, 66) == 0, "truncate");
    assert_int_equal(sft_set_check_deep(set, &deep, NULL, &err), SFT_IO_SHRUNK);
    assert_int_equal(err.code, SFT_IO_SHRUNK);
    assert_int_equal(deep.values, 0);
    sft_set_close(set);
    temp_end(&temp);
}

typedef struct ticks {
    uint64_t calls, last, total, stop_at;
} ticks;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticks *t = ctx;
    assert_true(done >= t->last && done <= total && done - t->last <= 8 << 20);
    t->last = done;
    t->total = total;
    return ++t->calls != t->stop_at;
}

static void jobs_tick_and_stop(void **state) {
    size_t len = 20 << 20;
    uint8_t *data = calloc(1, len), *bytes;
    ticks t = { 0 };
    sft_job job = SFT_JOB_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_deep_counts deep;
    char header[128];
    (void)state;
    snprintf(header, sizeof header,
             "{\"t\":{\"dtype\":\"BF16\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", len / 2,
             len);
    sft_set *set = set_of(header, data, len, &bytes);
    job.tick = tick;
    job.ctx = &t;
    assert_int_equal(sft_set_check_deep(set, &deep, &job, NULL), SFT_OK);
    assert_int_equal(t.last, len);
    assert_int_equal(t.total, len);
    t = (ticks){ .stop_at = 3 };
    assert_int_equal(sft_set_check_deep(set, &deep, &job, &err), SFT_CANCELLED);
    assert_int_equal(t.calls, 3);
    assert_int_equal(deep.tensors, 0);
    sft_set_close(set);
    free(bytes);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte),
        cmocka_unit_test(every_half),
        cmocka_unit_test(edges_of_words),
        cmocka_unit_test(all_patterns_at_once),
        cmocka_unit_test(complex_by_halves),
        cmocka_unit_test(dtypes_without),
        cmocka_unit_test(windows_meet_without_a_seam),
        cmocka_unit_test(nothing_to_count),
        cmocka_unit_test(indexes_run_over_the_set),
        cmocka_unit_test(a_cut_file_is_told),
        cmocka_unit_test(jobs_tick_and_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
