/* What merging does with every value, in portable C and, of the same text, with AVX2 and AVX-512:
 * results are equal bit for bit. */
#ifndef SFTI_MERGE_LOOPS_H
#define SFTI_MERGE_LOOPS_H

#include "safetensors.h"

typedef struct sfti_merge_loops {
    /* F32 as F64; whether all of them are finite. */
    bool (*widen)(const float *values, size_t count, double *out);
    /* The bits of the greatest magnitude: those of NaN and infinities are above all others. */
    uint64_t (*greatest)(const double *values, size_t count);
    /* Adds how many are not 0, and how many of these are no greater than `tiny`: finite. */
    void (*vanish)(const double *values, size_t count, double tiny, uint64_t counts[2]);
    /* F32 from which rounding on to a shorter float gives what rounding the F64 once would: cut
     * off towards zero, and odd if anything was cut off. */
    void (*to_odd)(const double *values, size_t count, float *out);
    /* Bits of |values - base| as F32. */
    void (*keys)(const double *values, const double *base, size_t count, uint32_t *out);
    /* Bits of the variance of x[...] - base as F32. */
    void (*variances)(double *const *x, size_t models, const double *base, size_t count,
                      uint32_t *out);
    /* Whether a key is at least `least`. */
    void (*mark)(const uint32_t *keys, size_t count, uint32_t least, uint8_t *out);
    /* How many keys are in [least, least + span). */
    uint64_t (*within)(const uint32_t *keys, size_t count, uint32_t least, uint32_t span);
    /* Leaves of the keys that are `key` the first ones marked, so that with `seen` that came before
     * there are `ties`. */
    void (*mark_ties)(const uint32_t *keys, size_t count, uint32_t key, uint64_t seen,
                      uint64_t ties, uint8_t *out);
    /* Picks those in [least, least + span), less `least`, and counts them. out has room for
     * all. */
    size_t (*pick)(const uint32_t *keys, size_t count, uint32_t least, uint32_t span,
                   uint32_t *out);
    /* Whether the numbers of this seed from index `first` on, 53 bits of each, are below
     * `chance`. */
    void (*draw)(uint64_t seed, uint64_t first, uint64_t chance, size_t count, uint8_t *out);
    /* Adds magnitudes of values - base to sums[0], of those kept to sums[1], one by one. */
    void (*norms)(const double *values, const double *base, const uint8_t *kept, size_t count,
                  double *sums);
    /* values -= base */
    void (*subtract)(double *values, const double *base, size_t count);
    /* values - base where kept, else 0. */
    void (*differences)(double *values, const double *base, const uint8_t *kept, size_t count);
    /* out = factor * values */
    void (*multiply)(const double *values, double factor, size_t count, double *out);
    /* out += factor * values */
    void (*add)(const double *values, double factor, size_t count, double *out);
    /* Where factor * values has the sign of `signs` (0 is +): its share is added to sums, and the
     * share to divisors. */
    void (*agree)(const double *values, const double *signs, double factor, double by,
                  double share, size_t count, double *sums, double *divisors);
    /* out = base + factor * sums / divisors, of which those below `least` are that, and 0 is 1 */
    void (*finish)(const double *base, const double *sums, const double *divisors, double least,
                   double factor, size_t count, double *out);
    /* The sum of products, in an order of its own. */
    double (*product)(const double *a, const double *b, size_t count);
} sfti_merge_loops;

extern const sfti_merge_loops sfti_merge_portable;
/* The fastest that this processor has. */
const sfti_merge_loops *sfti_merge_loops_best(void);
/* Number i of those that it has: 0 is the portable one. NULL: there are fewer. */
const sfti_merge_loops *sfti_merge_loops_at(size_t i);

/* A number for each index, the same whoever asks. */
static inline uint64_t sfti_merge_random(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

#endif
