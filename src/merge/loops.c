/* What merging does with every value. Tests: test_merge_loops.c. */
#include "merge/loops.h"

#include "base/cpu.h"

#include <string.h>

#if defined(__GNUC__)
#define LOOP_BODY static inline __attribute__((always_inline))
#else
#define LOOP_BODY static inline
#endif

LOOP_BODY uint64_t greatest_bits(const double *values, size_t count) {
    int64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits &= INT64_MAX;
        most = bits > most ? bits : most;
    }
    return (uint64_t)most;
}

LOOP_BODY void odd_floats(const double *restrict values, size_t count, float *restrict out) {
    for (size_t i = 0; i < count; i++) {
        float single = (float)values[i];
        double back = (double)single, size = values[i] < 0 ? -values[i] : values[i];
        double again = back < 0 ? -back : back;
        uint32_t word;
        memcpy(&word, &single, sizeof word);
        word = word - (again > size);
        word |= (uint32_t)(again > size) | (uint32_t)(again < size);
        memcpy(&out[i], &word, sizeof word);
    }
}

LOOP_BODY void key_bits_of(const double *restrict values, const double *restrict base, size_t count,
                      uint32_t *restrict out) {
    for (size_t i = 0; i < count; i++) {
        float single = (float)(values[i] - base[i]);
        uint32_t word;
        memcpy(&word, &single, sizeof word);
        out[i] = word & 0x7fffffffu;
    }
}

LOOP_BODY void mark_keys(const uint32_t *restrict keys, size_t count, uint32_t least,
                    uint8_t *restrict out) {
    for (size_t i = 0; i < count; i++) out[i] = keys[i] >= least;
}

/* The value where the mask is all ones, 0 where it is 0. */
LOOP_BODY double masked(double value, int64_t mask) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= mask;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

LOOP_BODY void kept_differences(double *restrict values, const double *restrict base,
                           const uint8_t *restrict kept, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = masked(values[i] - base[i], -(int64_t)kept[i]);
}

LOOP_BODY void add_values(const double *restrict values, double factor, size_t count,
                     double *restrict out) {
    for (size_t i = 0; i < count; i++) out[i] += factor * values[i];
}

LOOP_BODY void add_agreeing(const double *restrict values, const double *restrict signs,
                            double factor, double by, double share, size_t count,
                            double *restrict sums, double *restrict divisors) {
    for (size_t i = 0; i < count; i++) {
        double one = factor * values[i];
        int64_t up, sign;
        memcpy(&up, &one, sizeof up);
        memcpy(&sign, &signs[i], sizeof sign);
        up = ((sign < 0) & (sign > INT64_MIN)) ? up ^ INT64_MIN : up;
        int64_t mask = -(int64_t)(up > 0);
        sums[i] += masked(by * one, mask);
        divisors[i] += masked(share, mask);
    }
}

LOOP_BODY double sum_products(const double *a, const double *b, size_t count) {
    double lanes[8] = { 0 };
    size_t whole = count & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8)
        for (size_t k = 0; k < 8; k++) lanes[k] += a[i + k] * b[i + k];
    for (size_t i = whole; i < count; i++) lanes[i & 7] += a[i] * b[i];
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))
         + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

#define MERGE_LOOPS(NAME, TARGET)                                                               \
    TARGET static uint64_t NAME##_greatest(const double *values, size_t count) {                \
        return greatest_bits(values, count);                                                    \
    }                                                                                           \
    TARGET static void NAME##_to_odd(const double *values, size_t count, float *out) {          \
        odd_floats(values, count, out);                                                         \
    }                                                                                           \
    TARGET static void NAME##_keys(const double *values, const double *base, size_t count,      \
                                   uint32_t *out) {                                             \
        key_bits_of(values, base, count, out);                                                  \
    }                                                                                           \
    TARGET static void NAME##_mark(const uint32_t *keys, size_t count, uint32_t least,          \
                                   uint8_t *out) {                                              \
        mark_keys(keys, count, least, out);                                                     \
    }                                                                                           \
    TARGET static void NAME##_differences(double *values, const double *base,                   \
                                          const uint8_t *kept, size_t count) {                  \
        kept_differences(values, base, kept, count);                                            \
    }                                                                                           \
    TARGET static void NAME##_add(const double *values, double factor, size_t count,            \
                                  double *out) {                                                \
        add_values(values, factor, count, out);                                                 \
    }                                                                                           \
    TARGET static void NAME##_agree(const double *values, const double *signs, double factor,   \
                                    double by, double share, size_t count, double *sums,        \
                                    double *divisors) {                                         \
        add_agreeing(values, signs, factor, by, share, count, sums, divisors);                  \
    }                                                                                           \
    TARGET static double NAME##_product(const double *a, const double *b, size_t count) {       \
        return sum_products(a, b, count);                                                       \
    }

#define MERGE_TABLE(NAME)                                                                       \
    { NAME##_greatest, NAME##_to_odd, NAME##_keys, NAME##_mark, NAME##_differences, NAME##_add, \
      NAME##_agree, NAME##_product }

MERGE_LOOPS(merge_plain, )
const sfti_merge_loops sfti_merge_portable = MERGE_TABLE(merge_plain);

#if defined(__x86_64__) && defined(__GNUC__)
MERGE_LOOPS(merge_avx2, __attribute__((target("avx2"))))

const sfti_merge_loops *sfti_merge_loops_best(void) {
    static const sfti_merge_loops with_avx2 = MERGE_TABLE(merge_avx2);
    return sfti_cpu_has(SFTI_CPU_AVX2) ? &with_avx2 : &sfti_merge_portable;
}
#else
const sfti_merge_loops *sfti_merge_loops_best(void) { return &sfti_merge_portable; }
#endif
