/* Shared by the files that read: memory of tensors, and its conversion to arrays. */
#ifndef PYSFT_PIECE_H
#define PYSFT_PIECE_H

#include "core.h"

/* ── Stores ──────────────────────────────────────────────────────────────── */

/* A block of `bytes` writable bytes, aligned to 64; NULL without an exception. No GIL. */
pysft_store *pysft_store_block(uint64_t bytes);
/* The same, to be filled by a plan that asks for huge pages by itself (sft_read_plan_options,
 * fresh); *room: all bytes there are from the block's address on, for that; *fresh: whether it is
 * to ask. */
pysft_store *pysft_store_fresh_block(uint64_t bytes, uint64_t *room, bool *fresh);
/* Address of a block's bytes. */
char *pysft_store_bytes(pysft_store *block);
/* Start of a shard's data region in memory and whether it is writable; NULL if tensors must be
 * read. */
char *pysft_store_base(const pysft_store *store, size_t shard, bool *writable);
/* Whether its files are read by their paths on this machine, so that any thread may read. */
bool pysft_store_local(const pysft_store *store);
/* Whether slices are copied from a map of the file (mode "copy"). */
bool pysft_store_copies(const pysft_store *store);
/* Whether the memory of every shard can be shared. */
bool pysft_store_mapped(const pysft_store *store);
/* For tp_traverse of a store's holder: visits the Python object only this store holds. */
int pysft_store_visit(const pysft_store *store, visitproc visit, void *arg);

/* New object that exports len bytes at data and holds the store. */
PyObject *pysft_memory_new(pysft_state *state, pysft_store *store, char *data, uint64_t len,
                           bool writable);

/* The same of bytes [begin, end) of a shard, in its data: of a mapped file its memory, else a copy.
 * NULL with an exception. */
PyObject *pysft_memory_of(pysft_state *state, pysft_store *store, Py_ssize_t shard,
                          uint64_t begin, uint64_t end);
/* File.layouts. */
PyObject *pysft_layouts_of(const pysft_store *store);

/* ── Pieces ──────────────────────────────────────────────────────────────── */

/* Elements in memory that become an array or tensor. Owns nothing. */
typedef struct pysft_piece {
    pysft_store *store; /* owns data */
    char *data;
    bool writable;
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
    const Py_ssize_t *strides; /* in bytes; NULL: packed */
    uint64_t bytes;            /* packed */
} pysft_piece;

/* Whether elements at data have the alignment of their dtype; complex numbers have that of one
 * part, dtypes of up to a byte none. */
bool pysft_is_aligned(sft_dtype dtype, const char *data);

/* numpy array over the piece's memory; of F4 and F6 over a copy with one element per byte.
 * memory: a Memory object over the same store that starts at `start`, to be the base, or NULL
 * for a new one. */
PyObject *pysft_numpy_of(pysft_state *state, const pysft_piece *piece, PyObject *memory,
                         const char *start);
/* torch tensor over the piece's memory, which must be writable and have positive strides. */
PyObject *pysft_torch_of(pysft_state *state, const pysft_piece *piece);
/* Loads what is needed of numpy or torch, once; borrowed. */
PyObject *pysft_ndarray(pysft_state *state);
PyObject *pysft_from_dlpack(pysft_state *state);

/* Name in ml_dtypes of a dtype that numpy itself lacks; NULL for the others. */
const char *pysft_ml_name(sft_dtype dtype);

/* A dtype in DLPack. */
typedef struct pysft_dlpack_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} pysft_dlpack_dtype;
pysft_dlpack_dtype pysft_dlpack_dtype_of(sft_dtype dtype);
/* New capsule "dltensor", or "dltensor_versioned" with the flags read-only and copied. */
PyObject *pysft_dlpack_of(const pysft_piece *piece, pysft_dlpack_dtype type, bool versioned,
                          bool copied);

/* ── Slices ──────────────────────────────────────────────────────────────── */

/* Resolves `index` (an integer, slice, ellipsis or tuple of them) in a tensor, or in the
 * selection `whole` of it (NULL: all). */
int pysft_slice_of(pysft_state *state, PyObject *index, const sft_tensor *tensor,
                   const sft_slice *whole, sft_slice *out);

/* sft_slice_read, or sft_slice_read_mapped. */
typedef sft_code (*pysft_slice_fn)(const sft_file *file, const sft_tensor *tensor,
                                   const sft_slice *slice, void *dst, size_t len, sft_error *err);
/* It, with a job, whose tick is called between parts (slice_read.c). No GIL. */
sft_code pysft_slice_read(pysft_slice_fn read, const sft_file *file, const sft_tensor *facts,
                          const sft_slice *slice, void *into, size_t len, const sft_job *job,
                          sft_error *err);

/* ── Files ───────────────────────────────────────────────────────────────── */

/* New File; consumes the store. how: what open() was called with, as a tuple of the path and a
 * dict of the options, by which the File is pickled; NULL for anything but a path. */
PyObject *pysft_file_new(pysft_state *state, pysft_store *store, PyObject *how);

/* ── Tensors ─────────────────────────────────────────────────────────────── */

/* New Tensor: a whole tensor of the store, or a slice of it. */
PyObject *pysft_tensor_new(pysft_state *state, pysft_store *store, const sft_tensor *facts,
                           size_t shard, const sft_slice *slice);
PyObject *pysft_shape_tuple(const uint64_t *shape, uint32_t rank);

/* Reads a whole tensor, or a slice of it, into exactly len bytes; checks signals. */
int pysft_read(pysft_state *state, const pysft_store *store, const sft_tensor *facts,
               size_t shard, const sft_slice *slice, void *into, uint64_t len);

/* The same into a new block; NULL with an exception. */
pysft_store *pysft_read_block(pysft_state *state, const pysft_store *store,
                              const sft_tensor *facts, size_t shard, const sft_slice *slice,
                              uint64_t bytes);

/* Parts of the store's files, and the blocks they are read into. */
typedef struct pysft_fill {
    struct sft_read_part *parts;
    struct sft_read_block *blocks;
    size_t part_count, block_count;
    uint64_t total; /* bytes of the parts */
    bool fresh;     /* some blocks are; asking for huge pages in the others changes nothing */
} pysft_fill;
/* Reads them, by several threads if they are worth it. No GIL. */
sft_code pysft_fill_blocks(const pysft_store *store, const pysft_fill *fill, sft_job *job,
                           sft_error *err);

/* What pysft_batch makes; with a copy, none shares the memory of the file. */
typedef enum pysft_batch_kind { PYSFT_NUMPY, PYSFT_TORCH, PYSFT_TORCH_COPY } pysft_batch_kind;
/* New dict of name -> numpy array or torch tensor. names: an iterable of str, or None for all;
 * progress: a callable or None. */
PyObject *pysft_batch(pysft_state *state, pysft_store *store, PyObject *names,
                      pysft_batch_kind kind, PyObject *progress);

#endif
