/* The header of NumPy's .npy files, as numpy.save writes it today. */
#ifndef SFTI_NPY_H
#define SFTI_NPY_H

#include "safetensors.h"

/* NumPy's code of a dtype, such as "<f4"; NULL: NumPy does not have it. */
const char *sfti_npy_code(sft_dtype dtype);

/* All bytes before the data, of a shape of at most SFT_MAX_RANK dimensions. Returns their number, a
 * multiple of 64. */
#define SFTI_NPY_SIZE 1664
size_t sfti_npy_head(const char *code, const uint64_t *shape, uint32_t rank,
                     char out[SFTI_NPY_SIZE]);

#endif
