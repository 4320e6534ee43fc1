/* The header of NumPy's .npy files, as numpy.save writes it today. */
#ifndef SFTI_NPY_H
#define SFTI_NPY_H

#include "safetensors.h"

/* A type of NumPy's: its byte order, kind and width, such as "<f4". */
typedef struct sfti_npy_type {
    const char *code;
    sft_dtype dtype;
    uint8_t swap; /* bytes of what has an order; 0: nothing */
    bool opaque;  /* of ml_dtypes, whose types numpy saves as bytes without a name */
} sfti_npy_type;

/* NULL: none. code: without the byte order. */
const sfti_npy_type *sfti_npy_type_named(sft_span code);
/* NumPy's code of a dtype; NULL: NumPy does not have it. */
const char *sfti_npy_code(sft_dtype dtype);

/* All bytes before the data, of a shape of at most SFT_MAX_RANK dimensions. Returns their number, a
 * multiple of 64. */
#define SFTI_NPY_SIZE 1664
size_t sfti_npy_head(const char *code, const uint64_t *shape, uint32_t rank,
                     char out[SFTI_NPY_SIZE]);

#endif
