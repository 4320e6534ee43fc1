/* Integers with a scale and a zero point as numbers, computed when they are read. */
#ifndef SFTI_DEQUANTISE_H
#define SFTI_DEQUANTISE_H

#include "formats/parts/state.h"

typedef struct sfti_dequantise {
    const sft_source *from;
    uint64_t begin, elements;
    sft_dtype dtype; /* one that sfti_dequantise_takes */
    uint8_t swap;
    /* Of element i, those of channel i / inner % channels. */
    double *scales, *zeros;
    uint64_t channels, inner;
} sfti_dequantise;

/* Whether the dtype is one of quantised integers: U8, I8, I32. */
bool sfti_dequantise_takes(sft_dtype dtype);
/* A source of elements * 4 bytes, F32: (integer - zero) * scale. What *how points to lives as
 * long as the import. */
sft_code sfti_dequantise_source(sfti_import *im, const sfti_dequantise *how,
                                const sft_source **out);

#endif
