/* The rotation of layouts that have one, in F64, rounded once. Tests: test_encode.c. */
#include "quant/quant.h"

#include "base/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#if defined(__GNUC__)
#define ROTATE static inline __attribute__((always_inline))
#else
#define ROTATE static inline
#endif

/* One stage: the same column of four parts of a group, which lie `step` apart, for all columns. */
ROTATE void rotate_parts(double *group, uint32_t step) {
    double *restrict a = group, *restrict b = group + step;
    double *restrict c = group + 2 * step, *restrict d = group + 3 * step;
    for (uint32_t i = 0; i < step; i++) {
        double sum = a[i] + b[i], less = a[i] - b[i], more = c[i] + d[i], rest = c[i] - d[i];
        a[i] = sum + rest;
        b[i] = sum - rest;
        c[i] = less + more;
        d[i] = more - less;
    }
}

ROTATE void rotate_groups(float *values, size_t count, uint32_t n) {
    double group[SFTI_ROTATE_MOST], root = 1;
    while (root * root < n) root *= 2;
    for (size_t g = 0; g + n <= count; g += n) {
        for (uint32_t i = 0; i < n; i += 4) {
            double a = (double)values[g + i], b = (double)values[g + i + 1];
            double c = (double)values[g + i + 2], d = (double)values[g + i + 3];
            double sum = a + b, less = a - b, more = c + d, rest = c - d;
            group[i] = sum + rest;
            group[i + 1] = sum - rest;
            group[i + 2] = less + more;
            group[i + 3] = more - less;
        }
        for (uint32_t step = 4; step < n; step *= 4)
            for (uint32_t i = 0; i < n; i += 4 * step) rotate_parts(group + i, step);
        for (uint32_t i = 0; i < n; i++) values[g + i] = (float)(group[i] * (1 / root));
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#define AVX2 static inline __attribute__((target("avx2"), always_inline))

/* One stage of four columns. */
AVX2 void four_parts(__m256d *a, __m256d *b, __m256d *c, __m256d *d) {
    __m256d sum = _mm256_add_pd(*a, *b), less = _mm256_sub_pd(*a, *b);
    __m256d more = _mm256_add_pd(*c, *d), rest = _mm256_sub_pd(*c, *d);
    *a = _mm256_add_pd(sum, rest);
    *b = _mm256_sub_pd(sum, rest);
    *c = _mm256_add_pd(less, more);
    *d = _mm256_sub_pd(more, less);
}

AVX2 void four_transposed(__m256d v[4]) {
    __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
    __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
    v[0] = _mm256_permute2f128_pd(a, c, 0x20);
    v[1] = _mm256_permute2f128_pd(b, d, 0x20);
    v[2] = _mm256_permute2f128_pd(a, c, 0x31);
    v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

/* The stages of 1 and 4 of sixteen values. */
AVX2 void first_stages(const float *values, double *group) {
    __m256d v[4];
    for (int k = 0; k < 4; k++) v[k] = _mm256_cvtps_pd(_mm_loadu_ps(values + 4 * k));
    four_transposed(v);
    four_parts(&v[0], &v[1], &v[2], &v[3]);
    four_transposed(v);
    four_parts(&v[0], &v[1], &v[2], &v[3]);
    for (int k = 0; k < 4; k++) _mm256_storeu_pd(group + 4 * k, v[k]);
}

/* The stages of `step` and 4 * step of four columns of sixteen parts. */
AVX2 void two_stages(double *group, size_t step) {
    __m256d v[16];
    for (size_t k = 0; k < 16; k++) v[k] = _mm256_loadu_pd(group + k * step);
    for (size_t k = 0; k < 16; k += 4) four_parts(&v[k], &v[k + 1], &v[k + 2], &v[k + 3]);
    for (size_t k = 0; k < 4; k++) four_parts(&v[k], &v[k + 4], &v[k + 8], &v[k + 12]);
    for (size_t k = 0; k < 16; k++) _mm256_storeu_pd(group + k * step, v[k]);
}

AVX2 void one_stage(double *group, size_t step) {
    __m256d v[4];
    for (size_t k = 0; k < 4; k++) v[k] = _mm256_loadu_pd(group + k * step);
    four_parts(&v[0], &v[1], &v[2], &v[3]);
    for (size_t k = 0; k < 4; k++) _mm256_storeu_pd(group + k * step, v[k]);
}

/* Stages in the order of the portable loop, two in registers at a time; n is 16 or more. */
__attribute__((target("avx2"))) static void groups_avx2(float *values, size_t count, uint32_t n) {
    double group[SFTI_ROTATE_MOST], root = 1;
    while (root * root < n) root *= 2;
    const __m256d by = _mm256_set1_pd(1 / root);
    for (size_t g = 0; g + n <= count; g += n) {
        size_t step = 16;
        for (size_t i = 0; i < n; i += 16) first_stages(values + g + i, group + i);
        for (; step * 16 <= n; step *= 16)
            for (size_t part = 0; part < n; part += 16 * step)
                for (size_t i = 0; i < step; i += 4) two_stages(group + part + i, step);
        for (; step < n; step *= 4)
            for (size_t part = 0; part < n; part += 4 * step)
                for (size_t i = 0; i < step; i += 4) one_stage(group + part + i, step);
        for (size_t i = 0; i < n; i += 4) {
            __m256d four = _mm256_mul_pd(_mm256_loadu_pd(group + i), by);
            _mm_storeu_ps(values + g + i, _mm256_cvtpd_ps(four));
        }
    }
}
#endif

void sfti_quant_rotate_portable(float *values, size_t count, uint32_t n) {
    rotate_groups(values, count, n);
}

void sfti_quant_rotate(float *values, size_t count, uint32_t n) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (n >= 16 && sfti_cpu_has(SFTI_CPU_AVX2)) {
        groups_avx2(values, count, n);
        return;
    }
#endif
    sfti_quant_rotate_portable(values, count, n);
}
