/* What merging does with every value, in portable C and, of the same text, with AVX2: results are
 * equal bit for bit. */
#ifndef SFTI_MERGE_LOOPS_H
#define SFTI_MERGE_LOOPS_H

#include "safetensors.h"

typedef struct sfti_merge_loops {
    /* The bits of the greatest magnitude: those of NaN and infinities are above all others. */
    uint64_t (*greatest)(const double *values, size_t count);
    /* F32 from which rounding on to a shorter float gives what rounding the F64 once would: cut
     * off towards zero, and odd if anything was cut off. */
    void (*to_odd)(const double *values, size_t count, float *out);
    /* Bits of |values - base| as F32. */
    void (*keys)(const double *values, const double *base, size_t count, uint32_t *out);
    /* Whether a key is at least `least`. */
    void (*mark)(const uint32_t *keys, size_t count, uint32_t least, uint8_t *out);
    /* values - base where kept, else 0. */
    void (*differences)(double *values, const double *base, const uint8_t *kept, size_t count);
    /* out += factor * values */
    void (*add)(const double *values, double factor, size_t count, double *out);
    /* Where factor * values has the sign of `signs` (0 is +): its share is added to sums, and the
     * share to divisors. */
    void (*agree)(const double *values, const double *signs, double factor, double by,
                  double share, size_t count, double *sums, double *divisors);
    /* The sum of products, in an order of its own. */
    double (*product)(const double *a, const double *b, size_t count);
} sfti_merge_loops;

extern const sfti_merge_loops sfti_merge_portable;
/* The fastest that this processor has. */
const sfti_merge_loops *sfti_merge_loops_best(void);

#endif
