/* Matrices as products of lower rank: the optimum of a product of factors, which is never formed
 * (lowrank.c), and of a matrix that is seen in blocks of rows (range.c); how many singular values
 * are kept (rank.c); the kernels in F64 (dense.c).
 *
 * Everything here is the same bit for bit on every processor and for every number of threads. */
#ifndef SFTI_LOWRANK_H
#define SFTI_LOWRANK_H

#include "adapter/adapter.h"

/* ── How many are kept (rank.c) ── */

typedef enum sfti_rank_by {
    SFTI_RANK_ALL = 0,    /* as many as `most` allows and differ from 0 */
    SFTI_RANK_RATIO,      /* S > S0 / value */
    SFTI_RANK_FRO,        /* least k: the first k have value of the Frobenius norm */
    SFTI_RANK_CUMULATIVE, /* least k: the first k have value of the sum */
    SFTI_RANK_ERROR       /* least k: what is left has at most value of the Frobenius norm */
} sfti_rank_by;

typedef struct sfti_rank_rule {
    sfti_rank_by by;
    double value;
    uint64_t most;      /* 0: no limit */
    uint64_t most_conv; /* the same of convolutions with a kernel; 0: as `most` */
    bool kohya;         /* one more than the rule says, as kohya's scripts count */
    bool narrow;        /* factors become 16 bits wide: their last product is one of F32 */
} sfti_rank_rule;

/* Singular values of a matrix, falling; the greatest `count` of `all` that there are. */
typedef struct sfti_spectrum {
    double *at;
    size_t count;
    uint64_t all;
    double norm; /* Frobenius, of the whole matrix */
} sfti_spectrum;

/* How many are kept, at least 1. False: the values that are not known decide. */
bool sfti_rank_choose(const sfti_rank_rule *rule, const sfti_spectrum *spectrum, uint64_t *out);

/* ── The optimum at a rank ── */

typedef struct sfti_lowrank {
    sfti_matrix up, down; /* rows x rank, rank x cols; both have the roots of the singular values */
    sfti_spectrum spectrum;
    double lost; /* Frobenius norm of the difference, before any rounding of the factors */
} sfti_lowrank;

/* up * down, by the rule; rule NULL: the spectrum alone. The singular values are exact to 1e-7 of
 * the greatest. kohya: all of them go into up. Memory: the results, and 8 rank^2 numbers of F64.
 * Time: 4 (rows + cols) rank^2 and 40 rank^3 multiplications. Results are in the arena. */
sft_code sfti_lowrank_of_product(const sfti_matrix *up, const sfti_matrix *down,
                                 const sfti_rank_rule *rule, sfti_arena *arena, sfti_lowrank *out,
                                 sft_error *err);

/* A matrix that is computed, or read, in blocks of rows; each may be asked for again. */
typedef struct sfti_row_matrix {
    uint64_t rows, cols;
    sft_code (*read)(void *ctx, uint64_t first, uint64_t count, float *into, sft_error *err);
    void *ctx;
} sfti_row_matrix;

/* The same of such a matrix, by a randomised range finder: 8 vectors or more beyond the rank, two
 * power iterations, a fixed seed. `lost` is that of the factors that were found. Memory: (rows +
 * cols) (rank + 24) numbers of F32, and the matrix where it has at most SFTI_ROWS_KEPT elements;
 * larger ones are read six times. SFT_CAST_VALUE names no tensor: the rule asks for more singular
 * values than SFTI_RANK_MOST. */
#define SFTI_ROWS_KEPT ((uint64_t)14 << 20)
#define SFTI_RANK_MOST 1024
sft_code sfti_lowrank_of_rows(const sfti_row_matrix *rows, const sfti_rank_rule *rule,
                              sfti_arena *arena, sfti_lowrank *out, sft_error *err);

/* ── Modules ── */

/* The factors of a LoRA module (Tucker's core put in) without its scale. Other methods:
 * SFT_CAST_DTYPE, which names them. */
sft_code sfti_lora_factors(const sfti_lora *lora, const sfti_lora_module *module,
                           sfti_arena *arena, sfti_matrix *up, sfti_matrix *down, sft_error *err);

/* Singular values of what a LoRA module adds at strength 1, rank of them at most, in the arena; of
 * other methods none. */
sft_code sfti_lora_spectrum(const sfti_lora *lora, const sfti_lora_module *m, sfti_arena *arena,
                            sfti_spectrum *out, sft_error *err);

/* ── Kernels in F64 (dense.c): sums in order, a multiplication and an addition apart ── */

/* into[rows, cols] += a b. Element (i, k) of a is at i * row + k * step. */
typedef struct sfti_dense {
    const double *a;
    size_t row, step;
    const double *b;
    size_t b_row;
    size_t rows, inner, cols;
    double *into;
    size_t into_row;
} sfti_dense;
void sfti_dense_add(const sfti_dense *product);
double sfti_dense_dot(const double *a, const double *b, size_t count);

/* A Gram matrix g of n x n = x^T x, taken apart: x = q r, q = x t, with r [rank, n] and t
 * [n, rank]. Directions below `tolerance` of the greatest are left out. work: 2 n. */
size_t sfti_dense_cholesky(const double *g, size_t n, double tolerance, double *r, double *t,
                           double *work);
/* Rows of m become orthogonal, by rotations (one-sided Jacobi), and are put in order of their norm,
 * falling: m = rotation * rows, where singular values are the norms. */
void sfti_dense_jacobi(double *m, size_t rows, size_t cols, double *norms);

#endif
