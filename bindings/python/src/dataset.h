/* What the files of datasets share; conventions as in core.h. */
#ifndef PYSFT_DATASET_H
#define PYSFT_DATASET_H

#include "core.h"
#include "safetensors_dataset.h"

/* ── Arrow by PyCapsules (arrow.c) ── */

/* Schema of a capsule "arrow_schema", or of an object with __arrow_c_schema__. *keep holds it:
 * Py_XDECREF it. NULL with an exception. */
const struct ArrowSchema *pysft_schema_of(PyObject *object, PyObject **keep);
/* Move an array out of a capsule "arrow_array" or of an object with __arrow_c_array__, which
 * then tells its schema: that must be like `expected` (pysft_schema_like). */
int pysft_array_of(PyObject *object, PyObject *expected, struct ArrowArray *out);
/* bytes: formats of all levels, and names of the columns; the same for what may be read alike. */
PyObject *pysft_schema_like(const struct ArrowSchema *schema);
/* A new capsule "arrow_array_stream", which has taken over the stream, also on failure. */
PyObject *pysft_stream_capsule(struct ArrowArrayStream *stream);

/* ── Options and storage: NULL with a TypeError for other objects ── */

const sft_dataset_options *pysft_options_of(pysft_state *state, PyObject *object);
const sft_storage *pysft_storage_of(pysft_state *state, PyObject *object);
/* As pysft_raise; when the failure began in a method of the storage's object, what that raised
 * comes out as it was. Always NULL. */
PyObject *pysft_storage_raise(pysft_state *state, PyObject *storage, const sft_error *err);
/* Path for texts, or NULL. */
const char *pysft_storage_path(PyObject *storage);

/* ── Tasks (task.c) ── */

/* What objects begin with that work on a storage, by options, one call at a time. The handle of
 * the library is behind it, NULL once it is closed; the object's tp_clear closes it first, for
 * the storage must outlive it. */
typedef struct pysft_task {
    PyObject_HEAD
    PyObject *options, *storage;
    atomic_flag busy;
} pysft_task;

pysft_task *pysft_task_new(PyTypeObject *type, PyObject *options, PyObject *storage);
/* What the library takes for the two. TypeError for other objects. */
int pysft_task_take(pysft_task *self, const sft_dataset_options **options,
                    const sft_storage **storage);
/* Within a call (pysft_enter): ends it with a ValueError unless the handle is there. */
bool pysft_task_open(pysft_task *self, const char *what, bool is_open);
/* As pysft_storage_raise. */
PyObject *pysft_task_raise(pysft_task *self, const sft_error *err);
int pysft_task_traverse(PyObject *object, visitproc visit, void *arg);
void pysft_task_clear(pysft_task *self);
/* tp_dealloc, by way of tp_clear. */
void pysft_task_dealloc(PyObject *object);

/* ── Warnings ── */

/* sft_warn_fn over a list of str (ctx); no GIL. What cannot be noted is lost. */
void pysft_warn_note(void *ctx, const sft_error *what);

#endif
