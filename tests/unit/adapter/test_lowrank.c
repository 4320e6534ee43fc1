/* Factors of lower rank: kernels bit for bit as sums in order, the Cholesky factors of a Gram
 * matrix, singular values, the optimum of products and of rows, rules. */
#include "adapter/lowrank.h"
#include "base/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 60
#define COLS 44

static uint64_t state;

static double draw(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) / 9007199254740992.0 - 0.5;
}

static void fill(double *into, size_t count, uint64_t seed) {
    state = seed;
    for (size_t i = 0; i < count; i++) into[i] = draw();
}

static void test_products(void **ctx) {
    static double a[ROWS * COLS], b[COLS * ROWS], into[ROWS * ROWS], want[ROWS * ROWS];
    (void)ctx;
    fill(a, ROWS * COLS, 1);
    fill(b, COLS * ROWS, 2);
    for (size_t rows = 1; rows < 10; rows++)
        for (size_t cols = 1; cols < 20; cols += 3)
            for (int across = 0; across < 2; across++) {
                fill(into, ROWS * ROWS, 3);
                memcpy(want, into, sizeof want);
                sfti_dense p = { .a = a, .row = across ? 1 : COLS, .step = across ? COLS : 1,
                                 .b = b, .b_row = ROWS, .rows = rows, .inner = 17, .cols = cols,
                                 .into = into, .into_row = ROWS };
                sfti_dense_add(&p);
                for (size_t i = 0; i < rows; i++)
                    for (size_t j = 0; j < cols; j++) {
                        double sum = 0;
                        for (size_t k = 0; k < 17; k++) {
                            volatile double one = a[i * p.row + k * p.step] * b[k * ROWS + j];
                            sum += one;
                        }
                        want[i * ROWS + j] += sum;
                    }
                assert_memory_equal(into, want, sizeof want);
            }
    for (size_t n = 0; n < 20; n++) {
        double sums[4] = { 0 };
        for (size_t i = 0; i < n; i++) {
            volatile double one = a[i] * b[i];
            sums[i & 3] += one;
        }
        assert_true(sfti_dense_dot(a, b, n) == (sums[0] + sums[1]) + (sums[2] + sums[3]));
    }
}

/* x of 12 columns, of which the last is the sum of the first two: rank 11. */
static void test_cholesky(void **ctx) {
    enum { N = 12 };
    static double x[ROWS * N], g[N * N], r[N * N], t[N * N], work[2 * N];
    (void)ctx;
    fill(x, ROWS * N, 4);
    for (size_t i = 0; i < ROWS; i++) x[i * N + 11] = x[i * N] + x[i * N + 1];
    memset(g, 0, sizeof g);
    sfti_dense_add(&(sfti_dense){ x, 1, N, x, N, N, ROWS, N, g, N });
    size_t rank = sfti_dense_cholesky(g, N, 1e-7, r, t, work);
    assert_int_equal(rank, 11);
    double q[ROWS * N] = { 0 };
    sfti_dense_add(&(sfti_dense){ x, N, 1, t, rank, ROWS, N, rank, q, N });
    for (size_t i = 0; i < rank; i++)
        for (size_t j = 0; j < rank; j++) {
            double sum = 0;
            for (size_t k = 0; k < ROWS; k++) sum += q[k * N + i] * q[k * N + j];
            double off = sum - (i == j);
            assert_true(off < 1e-12 && off > -1e-12);
        }
    for (size_t k = 0; k < ROWS; k++)
        for (size_t j = 0; j < N; j++) {
            double sum = 0;
            for (size_t i = 0; i < rank; i++) sum += q[k * N + i] * r[i * N + j];
            assert_true(sum - x[k * N + j] < 1e-12 && sum - x[k * N + j] > -1e-12);
        }
}

/* Squared singular values sum up to the squared Frobenius norm, and rows become orthogonal. */
static void test_jacobi(void **ctx) {
    static double m[20 * COLS], norms[20];
    double before = 0, after = 0;
    (void)ctx;
    fill(m, 20 * COLS, 5);
    memcpy(m + 7 * COLS, m + 3 * COLS, COLS * sizeof *m); /* rank 19 */
    for (size_t i = 0; i < 20 * COLS; i++) before += m[i] * m[i];
    sfti_dense_jacobi(m, 20, COLS, norms);
    for (size_t i = 0; i < 20; i++) {
        after += norms[i] * norms[i];
        if (i > 0) assert_true(norms[i] <= norms[i - 1]);
        for (size_t j = 0; j < i; j++) {
            double dot = sfti_dense_dot(m + i * COLS, m + j * COLS, COLS);
            assert_true(dot < 1e-12 && dot > -1e-12);
        }
    }
    assert_true(norms[19] < 1e-12);
    assert_true(after / before < 1 + 1e-12 && after / before > 1 - 1e-12);
}

static double distance(const float *a, const sfti_lowrank *found) {
    double sum = 0;
    for (uint64_t i = 0; i < ROWS; i++)
        for (uint64_t j = 0; j < COLS; j++) {
            double one = (double)a[i * COLS + j];
            for (uint64_t k = 0; k < found->up.cols; k++)
                one -= (double)found->up.at[i * found->up.cols + k]
                     * (double)found->down.at[k * COLS + j];
            sum += one * one;
        }
    return sfti_root(sum);
}

static sft_code read_all(void *ctx, uint64_t first, uint64_t count, float *into, sft_error *err) {
    (void)err;
    memcpy(into, (const float *)ctx + first * COLS, (size_t)(count * COLS) * sizeof *into);
    return SFT_OK;
}

/* Eckart and Young: the error of rank k is the tail of the singular values; that of rows is that of
 * the product whose rows they are, the whole matrix is found where its rank is reached. */
static void test_optimum(void **ctx) {
    enum { RANK = 9 };
    static float up[ROWS * RANK], down[RANK * COLS], whole[ROWS * COLS];
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    (void)ctx;
    state = 6;
    for (size_t i = 0; i < ROWS * RANK; i++)
        up[i] = (float)draw() / (float)(1 + i % RANK);
    for (size_t i = 0; i < RANK * COLS; i++) down[i] = (float)draw();
    sfti_matrix_add_product(up, RANK, down, ROWS, RANK, COLS, 1, whole);
    sfti_matrix p = { ROWS, RANK, up }, q = { RANK, COLS, down };
    sfti_row_matrix rows = { ROWS, COLS, read_all, whole };
    for (uint64_t k = 1; k <= RANK; k++) {
        sfti_rank_rule rule = { .most = k };
        sfti_lowrank a, b, c;
        assert_int_equal(sfti_lowrank_of_product(&p, &q, &rule, &arena, &a, NULL), SFT_OK);
        rule.narrow = true;
        assert_int_equal(sfti_lowrank_of_product(&p, &q, &rule, &arena, &c, NULL), SFT_OK);
        rule.narrow = false;
        assert_int_equal(sfti_lowrank_of_rows(&rows, &rule, &arena, &b, NULL), SFT_OK);
        double tail = 0;
        for (size_t i = (size_t)k; i < a.spectrum.count; i++)
            tail += a.spectrum.at[i] * a.spectrum.at[i];
        tail = sfti_root(tail);
        assert_true(a.lost - tail < 1e-12 && tail - a.lost < 1e-12);
        assert_int_equal(a.up.cols, k);
        double off = distance(whole, &a), other = distance(whole, &b);
        assert_true(off - tail < 2e-6 && tail - off < 2e-6);
        off = distance(whole, &c); /* 2^-11 of F16 is 2000 times as much */
        assert_true(c.lost - a.lost == 0 && off - tail < 1e-5 && tail - off < 1e-5);
        assert_true(other - tail < 2e-6 && tail - other < 2e-6);
        assert_true(b.lost - tail < 2e-6 && tail - b.lost < 2e-6);
    }
    sfti_arena_free(&arena);
}

static void test_rules(void **ctx) {
    double s[] = { 10, 5, 2, 1, .5, .1 };
    double norm = sfti_root(100 + 25 + 4 + 1 + .25 + .01);
    const struct { sfti_rank_by by; double value; uint64_t plain, kohya; } cases[] = {
        { SFTI_RANK_ALL, 0, 6, 6 },
        { SFTI_RANK_RATIO, 4, 2, 3 },
        { SFTI_RANK_FRO, .9, 2, 3 },
        { SFTI_RANK_CUMULATIVE, .9, 3, 4 },
        { SFTI_RANK_ERROR, .25, 2, 3 },
    };
    uint64_t rank;
    (void)ctx;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sfti_rank_rule rule = { .by = cases[i].by, .value = cases[i].value };
        sfti_spectrum spectrum = { s, 6, 6, norm };
        assert_true(sfti_rank_choose(&rule, &spectrum, &rank));
        assert_int_equal(rank, cases[i].plain);
        rule.kohya = true;
        assert_true(sfti_rank_choose(&rule, &spectrum, &rank));
        assert_int_equal(rank, cases[i].kohya);
        rule.most = 1;
        assert_true(sfti_rank_choose(&rule, &spectrum, &rank));
        assert_int_equal(rank, 1);
    }
    /* of a hundred the first two are known */
    sfti_spectrum few = { s, 2, 100, norm };
    sfti_rank_rule rule = { .by = SFTI_RANK_RATIO, .value = 4 };
    assert_false(sfti_rank_choose(&rule, &few, &rank)); /* both are above: more may be */
    rule.value = 1.5;
    assert_true(sfti_rank_choose(&rule, &few, &rank));
    assert_int_equal(rank, 1);
    rule = (sfti_rank_rule){ .by = SFTI_RANK_ERROR, .value = .25 };
    assert_true(sfti_rank_choose(&rule, &few, &rank)); /* the norm is known */
    assert_int_equal(rank, 2);
    rule = (sfti_rank_rule){ .by = SFTI_RANK_CUMULATIVE, .value = .9 };
    assert_false(sfti_rank_choose(&rule, &few, &rank));
    rule.most = 1;
    assert_true(sfti_rank_choose(&rule, &few, &rank)); /* more than one in any case */
    assert_int_equal(rank, 1);
}

/* Rounded to nearest with the processor's instruction or without, as libm's is. */
static void test_roots(void **unused) {
    (void)unused;
    static const double given[] = { 0, -0.0, -1, 1, 2, 3, 4, 0x1p-1074, 0x1.fffffffffffffp-1022,
                                    0x1.fffffffffffffp1023, 0x1.fffffffffffffp0, 0x1p-1000,
                                    0x1.fffffffffffffp1, 0x1.0000000000001p0, INFINITY };
    uint64_t seed = 1;
    for (size_t i = 0; i < 100000; i++) {
        double value;
        if (i < sizeof given / sizeof *given) {
            value = given[i];
        } else {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint64_t bits = (seed ^ seed >> 29) & ~(UINT64_C(1) << 63);
            memcpy(&value, &bits, sizeof value);
            if (value - value != 0) continue;
        }
        double want = value > 0 ? sqrt(value) : value;
        assert_true(sfti_root(value) == want && sfti_root_portable(value) == want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_products), cmocka_unit_test(test_cholesky),
        cmocka_unit_test(test_jacobi),   cmocka_unit_test(test_optimum),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
