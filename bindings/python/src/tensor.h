/* The Tensor object: its Python interface is in tensor_type.c, its bytes in tensor_bytes.c. */
#ifndef PYSFT_TENSOR_H
#define PYSFT_TENSOR_H

#include "piece.h"

typedef struct {
    PyObject_HEAD
    pysft_store *store;
    const sft_tensor *facts; /* of the store's set */
    size_t shard;
    sft_slice *slice; /* NULL: all of it */
    uint32_t rank;
    const uint64_t *shape; /* of facts, or own_shape */
    uint64_t *own_shape;
    uint64_t elements, bytes;
    _Atomic(pysft_store *) packed; /* copy, made on first use */
    _Atomic(Py_ssize_t *) dims;    /* of its buffers, made on first use */
    PyObject *weakrefs;
} TensorObject;

static inline sft_dtype pysft_tensor_dtype(PyObject *tensor) {
    return ((TensorObject *)tensor)->facts->dtype;
}

/* Requirements on a piece: packed, writable, without negative strides. If the memory in place
 * does not meet them, a packed copy is used, made once per Tensor. */
enum { want_packed = 1, want_writable = 2, want_forward = 4 };

/* strides: storage for out->strides, used while out is. */
int pysft_tensor_piece(pysft_state *state, TensorObject *self, unsigned want, pysft_piece *out,
                       Py_ssize_t strides[SFT_MAX_RANK]);

/* Tensor.stats(). */
PyObject *pysft_tensor_stats(PyObject *object, PyObject *args, PyObject *kwargs);

/* The slot of the buffer protocol. BufferError if a format is asked for and the dtype has none. */
int pysft_tensor_buffer(PyObject *object, Py_buffer *view, int flags);

#endif
