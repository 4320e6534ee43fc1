/* What merging does with every value. Tests: test_merge_loops.c. */
#include "merge/loops.h"

#include "base/cpu.h"

#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#define PICK_BLOCK 64
#define VARIANCE_BLOCK 512

#if defined(__GNUC__)
#define LOOP_BODY static inline __attribute__((always_inline))
#else
#define LOOP_BODY static inline
#endif

LOOP_BODY bool widen_floats(const float *restrict values, size_t count, double *restrict out) {
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, &values[i], sizeof word);
        bad |= (word & 0x7f800000u) + 0x00800000u;
        out[i] = (double)values[i];
    }
    return bad < 0x80000000u;
}

LOOP_BODY void count_vanishing(const double *values, size_t count, double tiny,
                               uint64_t counts[2]) {
    int64_t most, some = 0, small = 0;
    memcpy(&most, &tiny, sizeof most);
    for (size_t i = 0; i < count; i++) {
        int64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits &= INT64_MAX;
        some += bits > 0;
        small += bits <= most;
    }
    counts[0] += (uint64_t)some;
    counts[1] += (uint64_t)(small + some) - count; /* all that are 0 are small */
}

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

LOOP_BODY void variance_keys(double *const *x, size_t models, const double *base, size_t count,
                             uint32_t *restrict out) {
    double sums[VARIANCE_BLOCK], squares[VARIANCE_BLOCK], many = (double)models;
    for (size_t at = 0, n; at < count; at += n) {
        n = count - at < VARIANCE_BLOCK ? count - at : VARIANCE_BLOCK;
        for (size_t i = 0; i < n; i++) sums[i] = squares[i] = 0;
        for (size_t e = 0; e < models; e++)
            for (size_t i = 0; i < n; i++) sums[i] += x[e][at + i] - base[at + i];
        for (size_t e = 0; e < models; e++)
            for (size_t i = 0; i < n; i++) {
                double off = x[e][at + i] - base[at + i] - sums[i] / many;
                squares[i] += off * off;
            }
        for (size_t i = 0; i < n; i++) {
            float single = (float)(squares[i] / many);
            memcpy(&out[at + i], &single, sizeof single);
        }
    }
}

LOOP_BODY void mark_keys(const uint32_t *restrict keys, size_t count, uint32_t least,
                    uint8_t *restrict out) {
    for (size_t i = 0; i < count; i++) out[i] = keys[i] >= least;
}

LOOP_BODY uint64_t keys_within(const uint32_t *keys, size_t count, uint32_t least, uint32_t span) {
    uint64_t within = 0;
    for (size_t at = 0, n; at < count; at += n) {
        uint32_t here = 0;
        n = count - at < PICK_BLOCK ? count - at : PICK_BLOCK;
        for (size_t i = at; i < at + n; i++) here += keys[i] - least < span;
        within += here;
    }
    return within;
}

/* Only one block is both before and behind the last that is left. */
LOOP_BODY void mark_first(const uint32_t *restrict keys, size_t count, uint32_t key, uint64_t seen,
                          uint64_t ties, uint8_t *restrict out) {
    for (size_t at = 0, n; at < count; at += n) {
        n = count - at < PICK_BLOCK ? count - at : PICK_BLOCK;
        uint64_t here = keys_within(keys + at, n, key, 1), before = seen;
        seen += here;
        if (seen <= ties) continue;
        if (before >= ties)
            for (size_t i = at; i < at + n; i++) out[i] &= keys[i] != key;
        else
            for (size_t i = at; i < at + n; i++)
                if (keys[i] == key) out[i] = before++ < ties;
    }
}

LOOP_BODY size_t pick_keys(const uint32_t *restrict keys, size_t count, uint32_t least,
                           uint32_t span, uint32_t *restrict out) {
    size_t picked = 0;
    for (size_t at = 0, n; at < count; at += n) {
        uint32_t any = 0;
        n = count - at < PICK_BLOCK ? count - at : PICK_BLOCK;
        for (size_t i = at; i < at + n; i++) any |= keys[i] - least < span;
        for (size_t i = at; any && i < at + n; i++) {
            out[picked] = keys[i] - least;
            picked += keys[i] - least < span;
        }
    }
    return picked;
}

LOOP_BODY void draw_numbers(uint64_t seed, uint64_t first, uint64_t chance, size_t count,
                            uint8_t *restrict out) {
    for (size_t i = 0; i < count; i++) out[i] = sfti_merge_random(seed, first + i) >> 11 < chance;
}

/* The value where the mask is all ones, 0 where it is 0. */
LOOP_BODY double masked(double value, int64_t mask) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= mask;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

LOOP_BODY void add_norms(const double *restrict values, const double *restrict base,
                         const uint8_t *restrict kept, size_t count, double *restrict sums) {
    double all = sums[0], left = sums[1];
    for (size_t i = 0; i < count; i++) {
        double change = values[i] - base[i];
        change = masked(change, INT64_MAX);
        all += change;
        left += masked(change, -(int64_t)kept[i]);
    }
    sums[0] = all;
    sums[1] = left;
}

LOOP_BODY void subtract_base(double *restrict values, const double *restrict base, size_t count) {
    for (size_t i = 0; i < count; i++) values[i] -= base[i];
}

LOOP_BODY void kept_differences(double *restrict values, const double *restrict base,
                           const uint8_t *restrict kept, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = masked(values[i] - base[i], -(int64_t)kept[i]);
}

LOOP_BODY void multiply_values(const double *restrict values, double factor, size_t count,
                               double *restrict out) {
    for (size_t i = 0; i < count; i++) out[i] = factor * values[i];
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

LOOP_BODY void finish_sums(const double *restrict base, const double *restrict sums,
                           const double *restrict divisors, double least, double factor,
                           size_t count, double *restrict out) {
    for (size_t i = 0; i < count; i++) {
        double divisor = divisors[i] > least ? divisors[i] : least;
        divisor = divisor < 0 || divisor > 0 ? divisor : 1;
        out[i] = base[i] + factor * (sums[i] / divisor);
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
    TARGET static bool NAME##_widen(const float *values, size_t count, double *out) {           \
        return widen_floats(values, count, out);                                                \
    }                                                                                           \
    TARGET static uint64_t NAME##_greatest(const double *values, size_t count) {                \
        return greatest_bits(values, count);                                                    \
    }                                                                                           \
    TARGET static void NAME##_vanish(const double *values, size_t count, double tiny,           \
                                     uint64_t counts[2]) {                                      \
        count_vanishing(values, count, tiny, counts);                                           \
    }                                                                                           \
    TARGET static void NAME##_to_odd(const double *values, size_t count, float *out) {          \
        odd_floats(values, count, out);                                                         \
    }                                                                                           \
    TARGET static void NAME##_keys(const double *values, const double *base, size_t count,      \
                                   uint32_t *out) {                                             \
        key_bits_of(values, base, count, out);                                                  \
    }                                                                                           \
    TARGET static void NAME##_variances(double *const *x, size_t models, const double *base,    \
                                        size_t count, uint32_t *out) {                          \
        variance_keys(x, models, base, count, out);                                             \
    }                                                                                           \
    TARGET static void NAME##_mark(const uint32_t *keys, size_t count, uint32_t least,          \
                                   uint8_t *out) {                                              \
        mark_keys(keys, count, least, out);                                                     \
    }                                                                                           \
    TARGET static uint64_t NAME##_within(const uint32_t *keys, size_t count, uint32_t least,    \
                                         uint32_t span) {                                       \
        return keys_within(keys, count, least, span);                                           \
    }                                                                                           \
    TARGET static void NAME##_mark_ties(const uint32_t *keys, size_t count, uint32_t key,       \
                                        uint64_t seen, uint64_t ties, uint8_t *out) {           \
        mark_first(keys, count, key, seen, ties, out);                                          \
    }                                                                                           \
    TARGET static size_t NAME##_pick(const uint32_t *keys, size_t count, uint32_t least,        \
                                     uint32_t span, uint32_t *out) {                            \
        return pick_keys(keys, count, least, span, out);                                        \
    }                                                                                           \
    TARGET static void NAME##_draw(uint64_t seed, uint64_t first, uint64_t chance,              \
                                   size_t count, uint8_t *out) {                                \
        draw_numbers(seed, first, chance, count, out);                                          \
    }                                                                                           \
    TARGET static void NAME##_norms(const double *values, const double *base,                   \
                                    const uint8_t *kept, size_t count, double *sums) {          \
        add_norms(values, base, kept, count, sums);                                             \
    }                                                                                           \
    TARGET static void NAME##_subtract(double *values, const double *base, size_t count) {      \
        subtract_base(values, base, count);                                                     \
    }                                                                                           \
    TARGET static void NAME##_differences(double *values, const double *base,                   \
                                          const uint8_t *kept, size_t count) {                  \
        kept_differences(values, base, kept, count);                                            \
    }                                                                                           \
    TARGET static void NAME##_multiply(const double *values, double factor, size_t count,       \
                                       double *out) {                                           \
        multiply_values(values, factor, count, out);                                            \
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
    TARGET static void NAME##_finish(const double *base, const double *sums,                    \
                                     const double *divisors, double least, double factor,       \
                                     size_t count, double *out) {                               \
        finish_sums(base, sums, divisors, least, factor, count, out);                           \
    }                                                                                           \
    TARGET static double NAME##_product(const double *a, const double *b, size_t count) {       \
        return sum_products(a, b, count);                                                       \
    }

#define MERGE_TABLE(NAME, TO_ODD, PICK)                                                         \
    { NAME##_widen, NAME##_greatest, NAME##_vanish, TO_ODD, NAME##_keys, NAME##_variances,      \
      NAME##_mark, NAME##_within, NAME##_mark_ties, PICK, NAME##_draw, NAME##_norms,            \
      NAME##_subtract, NAME##_differences, NAME##_multiply, NAME##_add, NAME##_agree,           \
      NAME##_finish, NAME##_product }

MERGE_LOOPS(merge_plain, )
const sfti_merge_loops sfti_merge_portable = MERGE_TABLE(merge_plain, merge_plain_to_odd,
                                                         merge_plain_pick);

#if defined(__x86_64__) && defined(__GNUC__)
#ifdef __clang__
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"), min_vector_width(512)))
#else
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")))
#endif
MERGE_LOOPS(merge_avx2, __attribute__((target("avx2"))))
MERGE_LOOPS(merge_avx512, AVX512)

/* Rounding towards zero is an instruction's own here. */
AVX512 static void cut_to_odd(const double *values, size_t count, float *out) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m512d value = _mm512_loadu_pd(values + i);
        __m256 cut = _mm512_cvt_roundpd_ps(value, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(cut), value, _CMP_NEQ_OQ);
        __m256i bits = _mm256_castps_si256(cut);
        bits = _mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1));
        _mm256_storeu_ps(out + i, _mm256_castsi256_ps(bits));
    }
    merge_avx512_to_odd(values + i, count - i, out + i);
}

AVX512 static size_t compress(const uint32_t *keys, size_t count, uint32_t least, uint32_t span,
                              uint32_t *out) {
    const __m512i below = _mm512_set1_epi32((int)least), end = _mm512_set1_epi32((int)span);
    size_t picked = 0, i = 0;
    for (; i + 16 <= count; i += 16) {
        __m512i some = _mm512_sub_epi32(_mm512_loadu_si512(keys + i), below);
        __mmask16 fits = _mm512_cmplt_epu32_mask(some, end);
        _mm512_storeu_si512(out + picked, _mm512_maskz_compress_epi32(fits, some));
        picked += (size_t)__builtin_popcount(fits);
    }
    return picked + merge_avx512_pick(keys + i, count - i, least, span, out + picked);
}

const sfti_merge_loops *sfti_merge_loops_at(size_t i) {
    static const sfti_merge_loops with_avx2 = MERGE_TABLE(merge_avx2, merge_avx2_to_odd,
                                                           merge_avx2_pick);
    static const sfti_merge_loops with_avx512 = MERGE_TABLE(merge_avx512, cut_to_odd, compress);
    const unsigned avx512 = SFTI_CPU_AVX512F | SFTI_CPU_AVX512BW | SFTI_CPU_AVX512VL
                          | SFTI_CPU_AVX512DQ;
    if (i == 0) return &sfti_merge_portable;
    if (i == 1 && sfti_cpu_has(SFTI_CPU_AVX2)) return &with_avx2;
    return i == 2 && sfti_cpu_has(SFTI_CPU_AVX2 | avx512) ? &with_avx512 : NULL;
}
#else
const sfti_merge_loops *sfti_merge_loops_at(size_t i) {
    return i == 0 ? &sfti_merge_portable : NULL;
}
#endif

const sfti_merge_loops *sfti_merge_loops_best(void) {
    const sfti_merge_loops *best = &sfti_merge_portable, *next;
    for (size_t i = 1; (next = sfti_merge_loops_at(i)) != NULL; i++) best = next;
    return best;
}
