/* Names of Python that have a meaning here: what their calls make, as a table. */
#ifndef SFTI_GLOBALS_H
#define SFTI_GLOBALS_H

#include "formats/parts/value.h"
#include "safetensors.h"

typedef enum sfti_meaning {
    SFTI_FOREIGN = 0, /* none: the report names it */
    /* plain values */
    SFTI_MEANS_VALUE, /* known, and of no use: a device, a layout */
    SFTI_MEANS_MAP,
    SFTI_MEANS_COUNTER, /* a map, but of a list it would count the items */
    SFTI_MEANS_DEFAULT_MAP, /* (factory, items) */
    SFTI_MEANS_USER_MAP, /* a map that is "data" in its state */
    SFTI_MEANS_LIST,  /* of its argument */
    SFTI_MEANS_TUPLE, /* the same; Paddle: (name, array) */
    SFTI_MEANS_SET,
    SFTI_MEANS_TAGGED, /* TorchScript's: the list or dict that is its first argument */
    SFTI_MEANS_CLASS, /* copyreg's: an object of the class that is its first argument */
    SFTI_MEANS_ENCODE, /* _codecs.encode(text, "latin1"): bytes */
    SFTI_MEANS_BYTES,  /* bytes(): none */
    SFTI_MEANS_EVAL,   /* Paddle's eval("data", {"data": array}), and nothing else */
    /* NumPy */
    SFTI_MEANS_ARRAY, /* _reconstruct, with a state */
    SFTI_MEANS_BUFFER, /* _frombuffer(bytes, dtype, shape, order) */
    SFTI_MEANS_SCALAR,
    SFTI_MEANS_NUMPY_DTYPE,
    /* PyTorch */
    SFTI_MEANS_TENSOR, /* _rebuild_tensor, and its successors */
    SFTI_MEANS_TENSOR_V2,
    SFTI_MEANS_TENSOR_V3,
    SFTI_MEANS_PARAMETER, /* the tensor that is its first argument, of at most three */
    SFTI_MEANS_PARAMETER_STATE, /* the same, of four: the last is a state */
    SFTI_MEANS_FROM_TYPE,
    SFTI_MEANS_DEVICE,    /* a tensor or array, then a dtype */
    SFTI_MEANS_QUANTISED,
    SFTI_MEANS_SPARSE,
    SFTI_MEANS_NO_BYTES,  /* a tensor that has none in the file */
    SFTI_MEANS_TENSOR_CLASS, /* torch.FloatTensor, a masked array: a call is not read */
    SFTI_MEANS_STORAGE,   /* with a dtype */
    SFTI_MEANS_TORCH_DTYPE,
    SFTI_MEANS_LAYOUT     /* of a sparse tensor */
} sfti_meaning;

/* The name of a module today, of one of Python 2 that the report does not tell; else itself. */
sft_span sfti_global_module(sft_span module);
/* Give a global its meaning, if it has one. */
void sfti_global_settle(sfti_global *global);

/* Meaning of a global, or of what an object would call. */
static inline uint8_t sfti_value_meaning(const sfti_value *value) {
    if (value->kind == SFTI_VALUE_OBJECT) value = value->u.object->callee;
    return value->kind == SFTI_VALUE_GLOBAL ? value->u.global->meaning : SFTI_FOREIGN;
}

/* ── torch_dtype.c: element types of PyTorch ── */

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
/* Whose elements are those of a dtype of safetensors; NULL: none. */
const sfti_torch_dtype *sfti_torch_dtype_of(sft_dtype dtype);

#endif
