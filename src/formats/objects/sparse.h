/* Sparse tensors in coordinates as dense ones. */
#ifndef SFTI_SPARSE_H
#define SFTI_SPARSE_H

#include "formats/parts/state.h"

/* Row i of the values is row places[i] of the tensor, and all else is 0; places ascend. It lives in
 * the import's arena. */
typedef struct sfti_sparse {
    const sft_source *from; /* of the values */
    uint64_t begin, rows, row_bytes;
    const uint64_t *places;
} sfti_sparse;

/* The tensor, of so many bytes, put together where it is read: zeros take no memory. */
sft_code sfti_sparse_source(sfti_import *im, const sfti_sparse *sparse, uint64_t bytes,
                            const sft_source **out);

#endif
