/* Element types of PyTorch: their names, storages and what becomes of them. */
#ifndef SFTI_TORCH_DTYPE_H
#define SFTI_TORCH_DTYPE_H

#include "safetensors.h"

typedef enum sfti_torch_kind {
    SFTI_TORCH_PLAIN = 0,
    SFTI_TORCH_PAIRS,     /* two elements a byte, which PyTorch counts as one */
    SFTI_TORCH_QUANTISED, /* integers with a scale; dtype is that of the integers */
    SFTI_TORCH_UNTYPED,   /* a storage of bytes, of any dtype */
    SFTI_TORCH_NONE       /* no dtype of safetensors */
} sfti_torch_kind;

typedef struct sfti_torch_dtype {
    const char *name;    /* "float32" */
    const char *storage; /* "FloatStorage"; NULL: it has none of its own */
    uint8_t kind;        /* sfti_torch_kind */
    uint8_t size;        /* bytes of an element */
    uint8_t swap;        /* bytes that a big-endian file has in reverse; 0: none */
    sft_dtype dtype;
} sfti_torch_dtype;

/* By "float32" or "FloatStorage"; NULL: none. */
const sfti_torch_dtype *sfti_torch_dtype_named(sft_span name);
const sfti_torch_dtype *sfti_torch_dtype_of_storage(sft_span name);

#endif
