/* Tensors that Python passes to be written, as the library takes them. */
#ifndef PYSFT_SPECS_H
#define PYSFT_SPECS_H

#include "tools.h"

/* Names, dtypes and shapes, with the objects they point into. */
typedef struct pysft_specs {
    sft_spec *items;
    size_t count;
    uint64_t *dims;
    size_t dim_count, dim_capacity;
    PyObject *held; /* tuple of the rows */
} pysft_specs;

/* From an iterable of tuples of `width` items that start with name, dtype and shape. False with
 * an exception; drop it all the same. */
bool pysft_specs_take(pysft_state *state, PyObject *rows, Py_ssize_t width, pysft_specs *out);
/* Accepts a zeroed one. */
void pysft_specs_drop(pysft_specs *specs);

/* The same with data, as save_file and save_bytes take it. */
typedef struct pysft_parts {
    pysft_specs specs;
    sft_part *items;
    sft_source *sources;
    Py_buffer *views; /* obj NULL: the part has no buffer */
    uint32_t mode;    /* permission bits common to the files of Tensors; 0: there are none */
    const pysft_store *limited; /* the last one that is in mode */
} pysft_parts;

/* SafetensorError for data of the wrong length or beyond their buffer. False with an exception;
 * drop it all the same. files: parts may begin anywhere in their sources, which are files then. */
bool pysft_parts_take(pysft_state *state, PyObject *rows, bool files, pysft_parts *out);
void pysft_parts_drop(pysft_parts *parts);

/* Locks a buffer of plain bytes or of little-endian elements of this dtype (flags as for
 * PyObject_GetBuffer, at least PyBUF_ND). The buffer's format decides or, where numpy has none,
 * the name of its dtype; 16-bit integers match BF16. Otherwise ValueError, about the tensor
 * `name` if it has data: false, and nothing is locked. */
bool pysft_elements_take(pysft_state *state, PyObject *object, int flags, sft_dtype dtype,
                         sft_span name, Py_buffer *view);

#define PYSFT_STEM 256
/* Whether a model of several files stays one, as in the command: unless the output names a file.
 * Its shards keep the name of its index up to ".safetensors.index": that is in the options then,
 * as long as stem (convert.c). */
bool pysft_stays_set(const sft_set *set, const char *output, char stem[PYSFT_STEM],
                     sft_save_set_options *options);

/* Whether an object is written to by its write(), and is no path. */
bool pysft_is_target(PyObject *object);
/* Writes to such an object: for sft_sink_callback. What the object raises stays set in this
 * thread. No GIL. */
sft_code pysft_target_write(void *object, const void *bytes, size_t len, sft_error *err);

/* A sink that gathers small writes into large ones for `to`, which it owns; `to` itself if there
 * is no memory for that. No GIL. */
sft_sink pysft_sink_gather(sft_sink to);

#endif
