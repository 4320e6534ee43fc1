/* What Python hands over to be written, as the library takes it. */
#ifndef PYSFT_SPECS_H
#define PYSFT_SPECS_H

#include "tools.h"

/* Names, dtypes and shapes; what they point to is held. */
typedef struct pysft_specs {
    sft_spec *items;
    size_t count;
    uint64_t *dims;
    size_t dim_count, dim_room;
    PyObject *held; /* tuple of the rows */
} pysft_specs;

/* Take an iterable of tuples that begin with name, dtype and shape and have `width` parts.
 * False: an exception is set; to be dropped all the same. */
bool pysft_specs_take(pysft_state *state, PyObject *rows, Py_ssize_t width, pysft_specs *out);
/* One tensor, whose name the caller holds as long as the spec is used. */
bool pysft_spec_take(pysft_state *state, PyObject *name, PyObject *dtype, PyObject *shape,
                     pysft_specs *out);
/* Zeroed ones are none. */
void pysft_specs_drop(pysft_specs *specs);

/* The same with data: what save_file and save_bytes take. */
typedef struct pysft_parts {
    pysft_specs specs;
    sft_part *items;
    sft_source *sources;
    Py_buffer *views; /* obj NULL: the part has no buffer */
} pysft_parts;

/* Data of the wrong length, or that reach beyond their buffer, are a SafetensorError. False: an
 * exception is set; to be dropped all the same. */
bool pysft_parts_take(pysft_state *state, PyObject *rows, pysft_parts *out);
void pysft_parts_drop(pysft_parts *parts);

/* Lock a buffer (flags as of PyObject_GetBuffer, PyBUF_ND at least) of plain bytes, or of
 * elements of this dtype, little-endian: by the buffer's format, or, where numpy has none for
 * it, by the name of its dtype. BF16 is its bits, too, as integers of 16. ValueError, about the
 * tensor of that name if it has data. False: an exception is set, and nothing is locked. */
bool pysft_elements_take(pysft_state *state, PyObject *object, int flags, sft_dtype dtype,
                         sft_span name, Py_buffer *view);

/* A sink that gathers small writes into large ones for `to`, which belongs to it; without
 * memory for that, `to` itself. No GIL. */
sft_sink pysft_sink_gather(sft_sink to);

#endif
