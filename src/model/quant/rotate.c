/* The rotation of layouts that have one, in F64, rounded once. Tests: test_encode.c. */
#include "quant/quant.h"

#include "base/cpu.h"

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
__attribute__((target("avx2"))) static void groups_avx2(float *values, size_t count, uint32_t n) {
    rotate_groups(values, count, n);
}
#endif

void sfti_quant_rotate_portable(float *values, size_t count, uint32_t n) {
    rotate_groups(values, count, n);
}

void sfti_quant_rotate(float *values, size_t count, uint32_t n) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (sfti_cpu_has(SFTI_CPU_AVX2)) {
        groups_avx2(values, count, n);
        return;
    }
#endif
    sfti_quant_rotate_portable(values, count, n);
}
