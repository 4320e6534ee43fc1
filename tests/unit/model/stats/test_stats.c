/* Statistics: what they count, their edges, sources, jobs and threads. Values of all dtypes are
 * compared with numpy by tests/compat/stats.py. */
#define _GNU_SOURCE
#include "safetensors_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static sft_source source_of(const void *bytes, size_t len) {
    return sft_source_memory(bytes, len);
}

static sft_part part_at(sft_dtype dtype, const uint64_t *shape, const sft_source *source,
                        uint64_t begin) {
    return (sft_part){ { { "t", 1 }, dtype, 1, shape }, source, begin };
}

static sft_statistics *stats_of(const sft_part *parts, size_t count, uint32_t threads) {
    sft_statistics_options options = SFT_STATISTICS_OPTIONS_INIT;
    sft_job job = SFT_JOB_INIT;
    sft_statistics *out;
    options.histogram = true;
    job.threads = threads;
    assert_int_equal(sft_statistics_new(parts, count, &options, &job, &out, NULL), SFT_OK);
    return out;
}

static sft_statistics *stats_one(sft_dtype dtype, uint64_t elements, const void *bytes,
                                 size_t len) {
    sft_source source = source_of(bytes, len);
    sft_part part = part_at(dtype, &elements, &source, 0);
    return stats_of(&part, 1, 1);
}

/* ── Values ── */

static void test_floats(void **state) {
    const float values[] = { 1, -2, 0, -0.0f, (float)INFINITY, (float)NAN, 4 };
    sft_statistics *s = stats_one(SFT_F32, 7, values, sizeof values);
    const sft_stats *t = sft_statistics_at(s, 0);
    assert_int_equal(t->values, 7);
    assert_int_equal(t->zeros, 2);
    assert_int_equal(t->nan, 1);
    assert_int_equal(t->inf, 1);
    assert_true(t->min == -2 && t->max == 4);
    assert_true(t->mean == 0.6 && t->abs_mean == 1.4); /* 3/5 and 7/5, rounded once */
    assert_true(fabs(t->std - sqrt(4.2 - 0.36)) < 1e-15);
    assert_int_equal(t->histogram->positive[64], 1);
    assert_int_equal(t->histogram->positive[66], 1);
    assert_int_equal(t->histogram->negative[65], 1);
    assert_null(sft_statistics_at(s, 1));
    sft_statistics_free(s);
    (void)state;
}

static void test_integers(void **state) {
    const int64_t values[] = { INT64_MIN, INT64_MAX, 0, -1 };
    sft_statistics *s = stats_one(SFT_I64, 4, values, sizeof values);
    const sft_stats *t = sft_statistics_at(s, 0);
    assert_true((int64_t)t->min_bits == INT64_MIN && (int64_t)t->max_bits == INT64_MAX);
    assert_true(t->mean == -0.5);
    assert_int_equal(t->zeros, 1);
    sft_statistics_free(s);
    const uint64_t wide[] = { UINT64_MAX, UINT64_MAX };
    s = stats_one(SFT_U64, 2, wide, sizeof wide);
    assert_int_equal(sft_statistics_at(s, 0)->min_bits, UINT64_MAX);
    assert_true(sft_statistics_at(s, 0)->mean == 18446744073709551616.0);
    assert_true(sft_statistics_at(s, 0)->std == 0);
    sft_statistics_free(s);
    (void)state;
}

/* Sums that any sum of doubles would lose. */
static void test_exact(void **state) {
    const double values[] = { 1e300, 1, -1e300, 5e-324 };
    sft_statistics *s = stats_one(SFT_F64, 4, values, sizeof values);
    assert_true(sft_statistics_at(s, 0)->mean == 0.25);
    sft_statistics_free(s);
    const double least[] = { 5e-324, 5e-324, 5e-324 };
    s = stats_one(SFT_F64, 3, least, sizeof least);
    assert_true(sft_statistics_at(s, 0)->mean == 5e-324);
    assert_true(sft_statistics_at(s, 0)->std == 0);
    sft_statistics_free(s);
    const double greatest[] = { 1.7976931348623157e308, -1.7976931348623157e308 };
    s = stats_one(SFT_F64, 2, greatest, sizeof greatest);
    assert_true(sft_statistics_at(s, 0)->std == 1.7976931348623157e308);
    assert_true(sft_statistics_at(s, 0)->mean == 0);
    sft_statistics_free(s);
    (void)state;
}

static void test_nothing(void **state) {
    const float nan[] = { (float)NAN, (float)-INFINITY };
    sft_statistics *s = stats_one(SFT_F32, 0, "", 0);
    assert_int_equal(sft_statistics_at(s, 0)->values, 0);
    assert_true(isnan(sft_statistics_at(s, 0)->min) && isnan(sft_statistics_at(s, 0)->std));
    assert_true(isnan(sft_statistics_all(s)->mean));
    sft_statistics_free(s);
    s = stats_one(SFT_F32, 2, nan, sizeof nan);
    assert_int_equal(sft_statistics_at(s, 0)->nan, 1);
    assert_true(isnan(sft_statistics_at(s, 0)->max));
    sft_statistics_free(s);
    s = stats_of(NULL, 0, 0);
    assert_int_equal(sft_statistics_all(s)->values, 0);
    sft_statistics_free(s);
    sft_statistics_free(NULL);
    (void)state;
}

/* An empty tensor of a shape that overflows nothing, and one that does. */
static void test_shapes(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_statistics *s;
    sft_source source = source_of("", 0);
    const uint64_t empty[] = { 0, UINT64_MAX }, huge[] = { UINT64_MAX, UINT64_MAX };
    sft_part parts[] = { { { { "e", 1 }, SFT_F64, 2, empty }, &source, 0 },
                         { { { "h", 1 }, SFT_F64, 2, huge }, &source, 0 } };
    assert_int_equal(sft_statistics_new(parts, 1, NULL, NULL, &s, &err), SFT_OK);
    sft_statistics_free(s);
    assert_int_equal(sft_statistics_new(parts, 2, NULL, NULL, &s, &err), SFT_SIZE_OVERFLOW);
    assert_null(s);
    (void)state;
}

/* ── Sources ── */

static sft_code forward_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    (void)ctx, (void)offset, (void)into, (void)len, (void)err;
    *got = 0;
    return SFT_OK;
}

static const sft_source_vtable forward_vtable = { .size = sizeof(sft_source_vtable),
    .read = forward_read };

static void test_sources(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_statistics *s;
    uint64_t elements = 8;
    sft_source pipe = { NULL, &forward_vtable, SFT_SIZE_UNKNOWN, NULL, false };
    sft_part part = part_at(SFT_F32, &elements, &pipe, 0);
    assert_int_equal(sft_statistics_new(&part, 1, NULL, NULL, &s, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(err.tensor_len, 1);
    pipe.size = 31; /* too short by its own word */
    assert_int_equal(sft_statistics_new(&part, 1, NULL, NULL, &s, &err), SFT_IO_SHRUNK);
    pipe.size = 32; /* ends before its own word */
    assert_int_equal(sft_statistics_new(&part, 1, NULL, NULL, &s, &err), SFT_IO_SHRUNK);
    assert_memory_equal(err.tensor, "t", 1);
    part.source = NULL;
    assert_int_equal(sft_statistics_new(&part, 1, NULL, NULL, &s, NULL), SFT_BAD_ARGUMENT);
    (void)state;
}

/* ── Many parts, threads ── */

enum { MANY = 300, LARGE = 3 << 20 };

/* A large part between many small ones, read from a source that is not in memory. */
static void test_threads(void **state) {
    uint8_t *bytes = malloc(LARGE + MANY * 8);
    uint64_t small = 4, large = LARGE / 2;
    uint32_t seed = 1;
    sft_part parts[MANY + 1];
    for (size_t i = 0; i < LARGE + MANY * 8; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    sft_source source = source_of(bytes, LARGE + MANY * 8);
    source.base = NULL;
    for (size_t i = 0; i <= MANY; i++)
        parts[i] = part_at(SFT_BF16, i == MANY / 2 ? &large : &small, &source,
                           8 * i + (i > MANY / 2 ? LARGE - 8 : 0));
    sft_statistics *one = stats_of(parts, MANY + 1, 1);
    for (uint32_t threads = 0; threads < 8; threads++) {
        sft_statistics *other = stats_of(parts, MANY + 1, threads);
        for (size_t i = 0; i <= MANY; i++)
            assert_memory_equal(sft_statistics_at(one, i), sft_statistics_at(other, i),
                                offsetof(sft_stats, histogram));
        assert_memory_equal(sft_statistics_all(one), sft_statistics_all(other),
                            offsetof(sft_stats, histogram));
        assert_memory_equal(sft_statistics_all(one)->histogram,
                            sft_statistics_all(other)->histogram, sizeof(sft_histogram));
        sft_statistics_free(other);
    }
    sft_statistics_free(one);
    free(bytes);
    (void)state;
}

/* ── Jobs ── */

typedef struct ticks {
    uint64_t done, total, count, stop_at;
} ticks;

static bool on_tick(void *ctx, uint64_t done, uint64_t total) {
    ticks *t = ctx;
    assert_true(done >= t->done && done <= total);
    t->done = done;
    t->total = total;
    return t->count++ != t->stop_at;
}

static void test_job(void **state) {
    static uint8_t bytes[5 << 20];
    uint64_t elements = sizeof bytes;
    sft_error err = SFT_ERROR_INIT;
    sft_statistics *s;
    sft_source source = source_of(bytes, sizeof bytes);
    sft_part part = part_at(SFT_U8, &elements, &source, 0);
    for (uint32_t threads = 1; threads < 4; threads++) {
        ticks t = { 0, 0, 0, UINT64_MAX };
        sft_job job = { sizeof job, on_tick, &t, threads };
        assert_int_equal(sft_statistics_new(&part, 1, NULL, &job, &s, &err), SFT_OK);
        assert_int_equal(t.done, sizeof bytes);
        assert_int_equal(t.total, sizeof bytes);
        assert_int_equal(sft_statistics_at(s, 0)->zeros, sizeof bytes);
        sft_statistics_free(s);
        t = (ticks){ 0, 0, 0, 0 };
        assert_int_equal(sft_statistics_new(&part, 1, NULL, &job, &s, &err), SFT_CANCELLED);
        assert_null(s);
    }
    (void)state;
}

/* ── Memory ── */

typedef struct limited {
    size_t calls, fail_at, bytes;
} limited;

static void *limited_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    limited *l = ctx;
    if (new_size > 0 && l->calls++ == l->fail_at) return NULL;
    l->bytes += new_size - old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static void test_memory(void **state) {
    const float values[] = { 1, 2 };
    uint64_t elements = 2;
    sft_source source = source_of(values, sizeof values);
    sft_part part = part_at(SFT_F32, &elements, &source, 0);
    sft_code code = SFT_OUT_OF_MEMORY;
    size_t fails = 0;
    for (; code == SFT_OUT_OF_MEMORY; fails++) {
        limited l = { 0, fails, 0 };
        sft_allocator alloc = { limited_resize, &l };
        sft_statistics_options options = SFT_STATISTICS_OPTIONS_INIT;
        sft_statistics *s;
        options.alloc = &alloc;
        options.histogram = true;
        code = sft_statistics_new(&part, 1, &options, NULL, &s, NULL);
        sft_statistics_free(s);
        assert_int_equal(l.bytes, 0);
    }
    assert_int_equal(code, SFT_OK);
    assert_true(fails > 3);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats), cmocka_unit_test(test_integers),
        cmocka_unit_test(test_exact), cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_sources),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_job),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
