/* Sums joined, and the statistics that they give. Tests: test_stats.c. */
#include "base/checked.h"
#include "stats/stats.h"

#include <string.h>

#define SUMS_NAN (UINT64_C(0x7FF8) << 48)

void sfti_sums_clear(sfti_sums *sums, sft_histogram *histogram) {
    memset(sums, 0, sizeof *sums);
    sums->least = UINT64_MAX;
    sums->histogram = histogram;
    if (histogram) memset(histogram, 0, sizeof *histogram);
}

/* All but the extremes. */
static void sums_merge_counts(sfti_sums *to, const sfti_sums *more) {
    sfti_total_add(&to->values, more->values);
    sfti_total_add(&to->zeros, more->zeros);
    sfti_total_add(&to->nan, more->nan);
    sfti_total_add(&to->inf, more->inf);
    sfti_wide_sum(&to->plus, &more->plus);
    sfti_wide_sum(&to->minus, &more->minus);
    sfti_wide_sum(&to->squares, &more->squares);
    if (!to->histogram || !more->histogram) return;
    for (size_t i = 0; i < SFT_HISTOGRAM_BINS; i++) {
        sfti_total_add(&to->histogram->negative[i], more->histogram->negative[i]);
        sfti_total_add(&to->histogram->positive[i], more->histogram->positive[i]);
    }
}

void sfti_sums_merge(sfti_sums *to, const sfti_sums *more) {
    sums_merge_counts(to, more);
    if (more->least < to->least) to->least = more->least;
    if (more->greatest > to->greatest) to->greatest = more->greatest;
}

/* ── Extremes ── */

static bool sums_is_float(sft_dtype dtype) {
    sft_kind kind = sft_dtype_describe(dtype)->kind;
    return kind == SFT_KIND_FLOAT || kind == SFT_KIND_COMPLEX;
}

/* The 64 bits of an integer. */
static uint64_t sums_bits(uint64_t key, sft_dtype dtype) {
    return sft_dtype_describe(dtype)->kind == SFT_KIND_INT ? key ^ SFTI_SUMS_SIGN : key;
}

static double sums_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A zero has no sign. */
static double extreme_value(uint64_t key, sft_dtype dtype) {
    uint64_t bits = sums_bits(key, dtype);
    if (sums_is_float(dtype))
        return sums_double(key & SFTI_SUMS_SIGN ? key ^ SFTI_SUMS_SIGN : ~key) + 0.0;
    if (sft_dtype_describe(dtype)->kind == SFT_KIND_INT && bits & SFTI_SUMS_SIGN)
        return -(double)(~bits + 1);
    return (double)bits;
}

void sfti_sums_total(sfti_sums *total, const sfti_sums *more, sft_dtype dtype) {
    sums_merge_counts(total, more);
    if (more->least > more->greatest) return;
    uint64_t least = sfti_double_key(extreme_value(more->least, dtype));
    uint64_t greatest = sfti_double_key(extreme_value(more->greatest, dtype));
    if (least < total->least) total->least = least;
    if (greatest > total->greatest) total->greatest = greatest;
}

/* ── Results ── */

void sfti_sums_result(const sfti_sums *sums, sft_dtype dtype, sft_stats *out) {
    uint64_t finite = sums->values - sums->nan - sums->inf;
    memset(out, 0, sizeof *out);
    out->values = sums->values;
    out->zeros = sums->zeros;
    out->nan = sums->nan;
    out->inf = sums->inf;
    out->histogram = sums->histogram;
    out->min = out->max = out->mean = out->std = out->abs_mean = sums_double(SUMS_NAN);
    if (finite == 0 || sums->least > sums->greatest) return;
    bool negative;
    sfti_wide sum = sfti_wide_difference(&sums->plus, &sums->minus, &negative);
    sfti_wide both = sums->plus;
    sfti_wide_sum(&both, &sums->minus);
    out->min = extreme_value(sums->least, dtype);
    out->max = extreme_value(sums->greatest, dtype);
    out->mean = sfti_wide_mean(&sum, finite);
    if (negative) out->mean = -out->mean;
    out->abs_mean = sfti_wide_mean(&both, finite);
    out->std = sfti_wide_deviation(&sums->squares, &sum, finite);
    if (sums_is_float(dtype)) return;
    out->min_bits = sums_bits(sums->least, dtype);
    out->max_bits = sums_bits(sums->greatest, dtype);
}
