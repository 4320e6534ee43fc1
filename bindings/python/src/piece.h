/* Of the reading files: memory of tensors, and how it becomes objects of others. */
#ifndef PYSFT_PIECE_H
#define PYSFT_PIECE_H

#include "core.h"

/* ── Stores ──────────────────────────────────────────────────────────────── */

/* A block of `bytes` writable bytes, aligned to 64; NULL without an exception. No GIL. */
pysft_store *pysft_store_block(uint64_t bytes);
/* Address of a block's bytes. */
char *pysft_store_bytes(pysft_store *block);
/* Start of a shard's data region in memory, or NULL where tensors must be read; whether it
 * may be written to. */
char *pysft_store_base(const pysft_store *store, size_t shard, bool *writable);
/* Every shard of which memory can be lent. */
bool pysft_store_mapped(const pysft_store *store);
/* For tp_traverse of what holds a store: the Python object that the store alone holds. */
int pysft_store_visit(const pysft_store *store, visitproc visit, void *arg);

/* New object that exports len bytes at data and holds the store. */
PyObject *pysft_memory_new(pysft_state *state, pysft_store *store, char *data, uint64_t len,
                           bool writable);

/* ── Pieces ──────────────────────────────────────────────────────────────── */

/* Elements in memory that are to become an array or a tensor. Nothing is owned. */
typedef struct pysft_piece {
    pysft_store *store; /* what holds data */
    char *data;
    bool writable;
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
    const Py_ssize_t *strides; /* in bytes; NULL: packed */
    uint64_t bytes;            /* packed */
} pysft_piece;

/* Bytes an element lies at a multiple of; 1 for those under a byte. */
size_t pysft_alignment(sft_dtype dtype);
bool pysft_is_aligned(sft_dtype dtype, const char *data);

/* numpy array over the piece's memory; of F4 and F6 over a copy with a byte an element. With
 * `memory` (a Memory object over the same store from `start` on), no other is made. */
PyObject *pysft_numpy_of(pysft_state *state, const pysft_piece *piece, PyObject *memory,
                         const char *start);
/* torch tensor over the piece's memory, which must be writable, with strides above 0. */
PyObject *pysft_torch_of(pysft_state *state, const pysft_piece *piece);
/* Load numpy or torch and what we need of them, once. */
pysft_numpy *pysft_numpy_get(pysft_state *state);
pysft_torch *pysft_torch_get(pysft_state *state);

/* How DLPack spells a dtype. */
typedef struct pysft_dlpack_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} pysft_dlpack_dtype;
pysft_dlpack_dtype pysft_dlpack_dtype_of(sft_dtype dtype);
/* Capsule "dltensor", or "dltensor_versioned" for which read_only and copied are said. */
PyObject *pysft_dlpack_of(const pysft_piece *piece, pysft_dlpack_dtype type);
PyObject *pysft_dlpack_versioned(const pysft_piece *piece, pysft_dlpack_dtype type,
                                 bool copied);

/* ── Slices ──────────────────────────────────────────────────────────────── */

/* The selection of `index` (an integer, slice, ellipsis or a tuple of them) in a tensor of
 * which `whole` is selected already (NULL: all). */
int pysft_slice_of(pysft_state *state, PyObject *index, const sft_tensor *tensor,
                   const sft_slice *whole, sft_slice *out);

/* sft_slice_read with a job, whose tick is called between pieces (slice_read.c). No GIL. */
sft_code pysft_slice_read(const sft_file *file, const sft_tensor *facts, const sft_slice *slice,
                          void *into, size_t len, const sft_job *job, sft_error *err);

/* ── Files ───────────────────────────────────────────────────────────────── */

/* New File, which takes the store over. */
PyObject *pysft_file_new(pysft_state *state, pysft_store *store);

/* ── Tensors ─────────────────────────────────────────────────────────────── */

/* New Tensor: all of one of the store's, or the slice of it. */
PyObject *pysft_tensor_new(pysft_state *state, pysft_store *store, const sft_tensor *facts,
                           size_t shard, const sft_slice *slice);
PyObject *pysft_shape_tuple(const uint64_t *shape, uint32_t rank);

/* Read all of a tensor, or a slice of it, into exactly len bytes; signals are answered. */
int pysft_read(pysft_state *state, const pysft_store *store, const sft_tensor *facts,
               size_t shard, const sft_slice *slice, void *into, uint64_t len);

/* dict of arrays: names is an iterable of str, or NULL for all; progress a callable or None. */
PyObject *pysft_batch_numpy(pysft_state *state, pysft_store *store, PyObject *names,
                            PyObject *progress);
PyObject *pysft_batch_torch(pysft_state *state, pysft_store *store, PyObject *names,
                            PyObject *progress);

#endif
