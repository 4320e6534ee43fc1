/* Small matrices in F64: products, Gram matrices taken apart, singular values. Tests:
 * test_lowrank.c. */
#include "adapter/lowrank.h"

#include "base/cpu.h"
#include "base/number.h"

#include <string.h>

/* ── Products ── */

/* A multiplication and an addition apart, in every variant: contracted, the sums would depend on
 * the processor. */
static void add_portable(const sfti_dense *p, size_t i_from, size_t i_to, size_t j_from,
                         size_t j_to) {
    for (size_t i = i_from; i < i_to; i++)
        for (size_t j = j_from; j < j_to; j += 8) {
            size_t n = j_to - j < 8 ? j_to - j : 8;
            double sums[8] = { 0 };
            for (size_t k = 0; k < p->inner; k++) {
                double one = p->a[i * p->row + k * p->step];
                const double *from = p->b + k * p->b_row + j;
                for (size_t l = 0; l < n; l++) {
                    double product = one * from[l];
                    sums[l] += product;
                }
            }
            for (size_t l = 0; l < n; l++) p->into[i * p->into_row + j + l] += sums[l];
        }
}

/* Four partial sums. */
static double dot_portable(const double *a, const double *b, size_t count) {
    double sums[4] = { 0 };
    for (size_t i = 0; i < count; i++) {
        double product = a[i] * b[i];
        sums[i & 3] += product;
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static void rotate_portable(double *a, double *b, size_t count, double c, double s) {
    for (size_t i = 0; i < count; i++) {
        double ca = c * a[i], sb = s * b[i], sa = s * a[i], cb = c * b[i];
        a[i] = ca - sb;
        b[i] = sa + cb;
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define DENSE_AVX2 __attribute__((target("avx2")))

DENSE_AVX2 static inline __m256d a256_step(__m256d sum, __m256d a, __m256d b) {
    return _mm256_add_pd(sum, _mm256_mul_pd(a, b));
}

DENSE_AVX2 static inline void a256_store(double *into, __m256d sum) {
    _mm256_storeu_pd(into, _mm256_add_pd(_mm256_loadu_pd(into), sum));
}

/* Four rows by eight columns in registers. */
DENSE_AVX2 static void add_avx2(const sfti_dense *p) {
    size_t whole = p->rows & ~(size_t)3, wide = p->cols & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 4)
        for (size_t j = 0; j < wide; j += 8) {
            const double *from = p->b + j, *at = p->a + i * p->row;
            double *to = p->into + i * p->into_row + j;
            __m256d s[8];
            for (int l = 0; l < 8; l++) s[l] = _mm256_setzero_pd();
            for (size_t k = 0; k < p->inner; k++, from += p->b_row, at += p->step) {
                __m256d low = _mm256_loadu_pd(from), high = _mm256_loadu_pd(from + 4);
                for (size_t l = 0; l < 4; l++) {
                    __m256d one = _mm256_broadcast_sd(at + l * p->row);
                    s[2 * l] = a256_step(s[2 * l], one, low);
                    s[2 * l + 1] = a256_step(s[2 * l + 1], one, high);
                }
            }
            for (size_t l = 0; l < 4; l++) {
                a256_store(to + l * p->into_row, s[2 * l]);
                a256_store(to + l * p->into_row + 4, s[2 * l + 1]);
            }
        }
    if (wide < p->cols) add_portable(p, 0, whole, wide, p->cols);
    if (whole < p->rows) add_portable(p, whole, p->rows, 0, p->cols);
}

DENSE_AVX2 static double dot_avx2(const double *a, const double *b, size_t count) {
    __m256d sum = _mm256_setzero_pd();
    double sums[4];
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        sum = a256_step(sum, _mm256_loadu_pd(a + i), _mm256_loadu_pd(b + i));
    _mm256_storeu_pd(sums, sum);
    for (; i < count; i++) {
        double product = a[i] * b[i];
        sums[i & 3] += product;
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

DENSE_AVX2 static void rotate_avx2(double *a, double *b, size_t count, double c, double s) {
    const __m256d cc = _mm256_set1_pd(c), ss = _mm256_set1_pd(s);
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        __m256d x = _mm256_loadu_pd(a + i), y = _mm256_loadu_pd(b + i);
        _mm256_storeu_pd(a + i, _mm256_sub_pd(_mm256_mul_pd(cc, x), _mm256_mul_pd(ss, y)));
        _mm256_storeu_pd(b + i, _mm256_add_pd(_mm256_mul_pd(ss, x), _mm256_mul_pd(cc, y)));
    }
    rotate_portable(a + i, b + i, count - i, c, s);
}
#else
static void add_avx2(const sfti_dense *p) {
    add_portable(p, 0, p->rows, 0, p->cols);
}
#define dot_avx2 dot_portable
#define rotate_avx2 rotate_portable
#endif

void sfti_dense_add(const sfti_dense *product) {
    if (sfti_cpu_has(SFTI_CPU_AVX2)) add_avx2(product);
    else add_portable(product, 0, product->rows, 0, product->cols);
}

double sfti_dense_dot(const double *a, const double *b, size_t count) {
    return sfti_cpu_has(SFTI_CPU_AVX2) ? dot_avx2(a, b, count) : dot_portable(a, b, count);
}

/* ── Gram matrices ── */

/* By rows, the greatest that is left first. r[0..rank, n] is triangular but for the order of its
 * columns; t has its inverse in the rows of those that were chosen. */
size_t sfti_dense_cholesky(const double *g, size_t n, double tolerance, double *r, double *t,
                           double *work) {
    double *left = work, *chosen = work + n, greatest = 0;
    size_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        left[i] = g[i * n + i];
        if (left[i] > greatest) greatest = left[i];
    }
    for (; rank < n; rank++) {
        double *row = r + rank * n, most = 0;
        size_t at = 0;
        for (size_t i = 0; i < n; i++)
            if (left[i] > most) most = left[i], at = i;
        if (!(most > tolerance * tolerance * greatest)) break;
        double root = sfti_root(most);
        memcpy(row, g + at * n, n * sizeof *row);
        sfti_dense before = { .a = r + at, .row = 1, .step = n, .b = r, .b_row = n, .rows = 1,
                              .inner = rank, .cols = n, .into = t, .into_row = n };
        memset(t, 0, n * sizeof *t); /* not yet in use */
        sfti_dense_add(&before);
        for (size_t j = 0; j < n; j++) {
            row[j] = (row[j] - t[j]) / root;
            left[j] -= row[j] * row[j];
        }
        for (size_t k = 0; k < rank; k++) row[(size_t)chosen[k]] = 0;
        row[at] = root;
        left[at] = 0;
        chosen[rank] = (double)at;
    }
    memset(t, 0, n * rank * sizeof *t);
    for (size_t j = 0; j < rank; j++) { /* column j of the inverse, from below */
        t[(size_t)chosen[j] * rank + j] = 1 / r[j * n + (size_t)chosen[j]];
        for (size_t i = j; i-- > 0;) {
            double sum = 0;
            for (size_t k = i + 1; k <= j; k++)
                sum += r[i * n + (size_t)chosen[k]] * t[(size_t)chosen[k] * rank + j];
            t[(size_t)chosen[i] * rank + j] = -sum / r[i * n + (size_t)chosen[i]];
        }
    }
    return rank;
}

/* ── Singular values ── */

#define SWEEPS_MOST 60

static void swap_rows(double *a, double *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double keep = a[i];
        a[i] = b[i];
        b[i] = keep;
    }
}

void sfti_dense_jacobi(double *m, size_t rows, size_t cols, double *norms) {
    bool wide = sfti_cpu_has(SFTI_CPU_AVX2), turned = true;
    double near = 1e-14 + 4e-16 * (double)cols; /* what the sums of a product of rows lose */
    for (int sweep = 0; turned && sweep < SWEEPS_MOST; sweep++) {
        turned = false;
        for (size_t i = 0; i < rows; i++)
            norms[i] = sfti_dense_dot(m + i * cols, m + i * cols, cols);
        for (size_t i = 0; i < rows; i++)
            for (size_t j = i + 1; j < rows; j++) {
                double *a = m + i * cols, *b = m + j * cols;
                double dot = sfti_dense_dot(a, b, cols);
                double limit = near * sfti_root(norms[i] > 0 ? norms[i] : 0)
                             * sfti_root(norms[j] > 0 ? norms[j] : 0);
                if (!(dot > limit || dot < -limit)) continue;
                /* the smaller angle that makes them orthogonal; the longer row stays first */
                double tau = (norms[j] - norms[i]) / (2 * dot), size = tau < 0 ? -tau : tau;
                double tangent = 1 / (size + sfti_root(1 + tau * tau));
                if (size > 1e150) tangent = 0.5 / size;
                if (tau < 0) tangent = -tangent;
                double c = 1 / sfti_root(1 + tangent * tangent), s = c * tangent;
                (wide ? rotate_avx2 : rotate_portable)(a, b, cols, c, s);
                norms[i] -= tangent * dot;
                norms[j] += tangent * dot;
                turned = true;
            }
        for (size_t i = 0; i < rows; i++) { /* sorted, later sweeps turn less */
            size_t most = i;
            for (size_t j = i + 1; j < rows; j++)
                if (norms[j] > norms[most]) most = j;
            if (most == i) continue;
            double keep = norms[i];
            norms[i] = norms[most];
            norms[most] = keep;
            swap_rows(m + i * cols, m + most * cols, cols);
        }
    }
    for (size_t i = 0; i < rows; i++)
        norms[i] = sfti_root(sfti_dense_dot(m + i * cols, m + i * cols, cols));
    for (size_t i = 1; i < rows; i++)
        for (size_t j = i; j > 0 && norms[j] > norms[j - 1]; j--) {
            double keep = norms[j];
            norms[j] = norms[j - 1];
            norms[j - 1] = keep;
            swap_rows(m + j * cols, m + (j - 1) * cols, cols);
        }
}
