/* What encoding does with every value of a row, in portable C and, of the same text, with AVX2:
 * results are equal bit for bit. */
#ifndef SFTI_ENCODE_LOOPS_H
#define SFTI_ENCODE_LOOPS_H

#include "safetensors.h"

/* In each, every `block` of the values has a number of its own, the last one perhaps fewer. */
typedef struct sfti_encode_loops {
    /* The bits of the greatest magnitude, NaN being above all. */
    uint32_t (*greatest)(const float *values, size_t count);
    /* Raises numbers to the greatest magnitudes of their blocks, which are finite. */
    void (*magnitudes)(const float *values, size_t count, size_t block, float *numbers);
    /* Values over the factors of their blocks, or times 1 / factor; 0 where that is 0. */
    void (*scale)(const float *values, size_t count, size_t block, const float *factors,
                  bool reciprocal, float *out);
    /* Values to integers of 8 bits, saturated. */
    void (*to_int8)(const float *values, size_t count, uint8_t *out);
    /* Values, an even number of them, to F4, saturated; two lie in a byte, the first one lowest. */
    void (*to_f4)(const float *values, size_t count, uint8_t *out);
    /* Values of codes of I8, floats of 8 bits or F4; those of 4 bits lie two in a byte, the first
     * one lowest. */
    void (*decode)(sft_dtype dtype, const uint8_t *codes, size_t count, float *out);
    /* The greatest magnitudes of blocks, over limit and over (or times) the factor that all share,
     * as codes of F8_E4M3, and their values times (or over) that factor. */
    void (*pairs)(const float *numbers, size_t count, float limit, float whole, bool divides,
                  uint8_t *codes, float *factors);
    /* Adds to sums[0] the squares of decoded less scaled, to sums[1] of scaled, both times the
     * squares of the factors. */
    void (*squares)(const float *scaled, const float *decoded, size_t count, size_t block,
                    const float *factors, double sums[2]);
} sfti_encode_loops;

extern const sfti_encode_loops sfti_encode_portable;
/* The fastest that this processor has. */
const sfti_encode_loops *sfti_encode_loops_best(void);

#endif
