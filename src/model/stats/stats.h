/* The sums that statistics are made of, and how elements are added to them. */
#ifndef SFTI_STATS_H
#define SFTI_STATS_H

#include "safetensors_stats.h"

#include <string.h>

/* ── Exact sums: integers wide enough for any number of doubles and of their squares ── */

/* Units of a sum are 2^-SFTI_WIDE_POINT, the least double; those of a sum of squares its square.
 * 2^64 squares of the greatest double, times 2^64, fit. */
#define SFTI_WIDE_POINT 1074
#define SFTI_WIDE_LIMBS 140

/* Not negative; the least limb first. All zero is 0. */
typedef struct sfti_wide {
    uint32_t limb[SFTI_WIDE_LIMBS];
} sfti_wide;

/* to += value * 2^bit, in units. */
void sfti_wide_add(sfti_wide *to, unsigned bit, uint64_t value);
void sfti_wide_sum(sfti_wide *to, const sfti_wide *more);

/* a / n as a number (not in units), rounded to nearest. n is not 0. */
double sfti_wide_mean(const sfti_wide *a, uint64_t n);
/* a - b; *negative if b is greater, and then b - a. */
sfti_wide sfti_wide_difference(const sfti_wide *a, const sfti_wide *b, bool *negative);
/* sqrt(n * squares - sum^2) / n: squares in units of squares. */
double sfti_wide_deviation(const sfti_wide *squares, const sfti_wide *sum, uint64_t n);

/* ── Statistics ── */

/* Sums over elements of one dtype, or of several. Adding two gives what all elements together
 * would have given, in whatever order. */
typedef struct sfti_sums {
    uint64_t values, zeros, nan, inf;
    /* Extremes of the finite values, of which there are any if least <= greatest. Floats are
     * represented by the bits of their double, integers by their 64 bits, each mapped to an
     * unsigned number of the same order. */
    uint64_t least, greatest;
    sfti_wide plus, minus, squares; /* sums of positive values, of negative ones, of squares */
    sft_histogram *histogram;       /* NULL: none */
} sfti_sums;

/* What stands for a finite double: unsigned, of the same order. */
#define SFTI_SUMS_SIGN (UINT64_C(1) << 63)
static inline uint64_t sfti_double_key(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & SFTI_SUMS_SIGN ? ~bits : bits ^ SFTI_SUMS_SIGN;
}

/* Scratch memory of one thread, all 0 between calls. */
#define SFTI_BIN_SIGNS_AND_EXPONENTS 4096 /* of an F64 */
#define SFTI_WORDS 65536
typedef struct sfti_bins {
    uint64_t bin[4 * SFTI_BIN_SIGNS_AND_EXPONENTS];
    uint32_t count[4][256], words[SFTI_WORDS];
    bool counted; /* there are words to take */
} sfti_bins;

/* Becomes the sums of no elements. */
void sfti_sums_clear(sfti_sums *sums, sft_histogram *histogram);
/* Adds count packed elements; count is a multiple of 8 unless they are the last. Only after the
 * end are they all in the sums, and none in the bins. At most 2^24 elements between clear and
 * end. */
void sfti_sums_elements(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype, const uint8_t *in,
                        size_t count);
void sfti_sums_end(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype);
/* Both of the same dtype. */
void sfti_sums_merge(sfti_sums *to, const sfti_sums *more);
/* What was summed over elements of that dtype. */
void sfti_sums_result(const sfti_sums *sums, sft_dtype dtype, sft_stats *out);
/* Adds sums of one dtype to sums of floats. */
void sfti_sums_total(sfti_sums *total, const sfti_sums *more, sft_dtype dtype);

#endif
