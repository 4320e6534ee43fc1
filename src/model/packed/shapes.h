/* Shapes of tensors as the model has them, however they are packed. Tests: test_shapes.c. */
#ifndef SFTI_SHAPES_H
#define SFTI_SHAPES_H

#include "safetensors_set.h"

/* The tensor called begin + end, or NULL. */
const sft_tensor *sfti_set_sibling(const sft_set *set, sft_span begin, const char *end);

/* The shape of a tensor as the model has it. */
#define SFTI_SHAPE_RANK 4
#define SFTI_SHAPE_HIDDEN UINT32_MAX
typedef struct sfti_shape {
    uint32_t rank;     /* SFTI_SHAPE_HIDDEN: not to be seen */
    uint64_t elements; /* then: their number, 0 where that is not to be seen either */
    bool padded;       /* sizes are most, or less by what it was rounded up */
    bool twofold;      /* sizes are least times a power of two; where they are not to be seen, a
                        * byte holds one value or two */
    uint64_t least[SFTI_SHAPE_RANK], most[SFTI_SHAPE_RANK];
} sfti_shape;
static inline bool sfti_may_be_packed(const sft_tensor *tensor) {
    const uint32_t dtypes = 1u << SFT_U8 | 1u << SFT_I8 | 1u << SFT_I16 | 1u << SFT_U16
                          | 1u << SFT_I32 | 1u << SFT_U32 | 1u << SFT_I64 | 1u << SFT_U64
                          | 1u << SFT_F8_E4M3 | 1u << SFT_F8_E5M2;
    bool column = tensor->rank == 2 && tensor->shape[1] == 1;
    return tensor->rank > 0 && (column || dtypes >> tensor->dtype & 1);
}
/* False: the tensor is not packed, and *out holds nothing. */
bool sfti_shape_of(const sft_set *set, const sft_tensor *tensor, sfti_shape *out);
/* One of its sizes, 0 where that is not to be seen, or the tensor has not as many. */
uint64_t sfti_size_of(const sft_set *set, const sft_tensor *tensor, uint32_t axis);

#endif
