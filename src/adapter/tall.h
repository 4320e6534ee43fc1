/* Matrices with many rows and few columns, which lowrank.c and range.c share. Tests:
 * test_lowrank.c. */
#ifndef SFTI_TALL_H
#define SFTI_TALL_H

#include "adapter/lowrank.h"

#define SFTI_TALL_MOST ((uint64_t)4096) /* wide at most: matrices of 128 MiB */

/* length x width, row by row; across: stored as width x length. */
typedef struct sfti_tall {
    const float *at;
    uint64_t length, width;
    bool across;
} sfti_tall;

/* g[width, width] = x^T x. block: 64 rows. */
void sfti_tall_gram(const sfti_tall *x, double *block, double *g);
/* into = x by, with `cols` columns, stored across or not; block: 64 rows of x, result: 64 of
 * `into`. In place where both are stored alike. */
void sfti_tall_times(const sfti_tall *x, const double *by, size_t cols, double *block,
                     double *result, bool across, float *into);
/* NULL when out of memory. */
double *sfti_tall_numbers(sfti_arena *work, uint64_t rows, uint64_t cols, sft_error *err);
/* The optimum of p q^T. exact: the product is all; otherwise the matrix has this norm and more
 * singular values than are seen. Without *decided there are no factors: the rule needs more. */
sft_code sfti_tall_product(const sfti_tall *p, const sfti_tall *q, double norm, bool exact,
                           const sfti_rank_rule *rule, sfti_arena *arena, bool *decided,
                           sfti_lowrank *out, sft_error *err);

#endif
