/* Shared by the files about datasets; conventions as in core.h. */
#ifndef PYSFT_DATASET_H
#define PYSFT_DATASET_H

#include "core.h"
#include "safetensors_dataset.h"

/* ── Arrow by PyCapsules (arrow.c) ── */

/* Schema from a capsule "arrow_schema" or an object with __arrow_c_schema__, valid while *keep
 * is held (Py_XDECREF it). NULL with an exception. */
const struct ArrowSchema *pysft_schema_of(PyObject *object, PyObject **keep);
/* Moves an array out of a capsule "arrow_array", or out of an object with __arrow_c_array__,
 * whose schema must equal `expected` (pysft_schema_like). */
int pysft_array_of(PyObject *object, PyObject *expected, struct ArrowArray *out);
/* New bytes object that identifies a schema: formats of all levels and names of the columns.
 * Equal for schemas whose arrays can be read alike. */
PyObject *pysft_schema_like(const struct ArrowSchema *schema);
/* New capsule "arrow_array_stream", which takes ownership of the stream, also on failure. */
PyObject *pysft_stream_capsule(struct ArrowArrayStream *stream);

/* ── Options and storage: NULL with a TypeError for other objects ── */

const sft_dataset_options *pysft_options_of(pysft_state *state, PyObject *object);
const sft_storage *pysft_storage_of(pysft_state *state, PyObject *object);
/* As pysft_raise, but an exception that a method of the storage's object raised is raised again
 * as it was. Always NULL. */
PyObject *pysft_storage_raise(pysft_state *state, PyObject *storage, const sft_error *err);
/* As pysft_job_text, of a call over that storage. */
PyObject *pysft_storage_text(pysft_job *job, pysft_state *state, PyObject *storage);

/* ── Tasks (task.c) ── */

/* Base of the objects that work on a storage by options, one call at a time. The library's
 * handle follows it and is NULL once closed. tp_clear closes the handle first, because the
 * storage must outlive it. */
typedef struct pysft_task {
    PyObject_HEAD
    PyObject *options, *storage;
    atomic_flag busy;
} pysft_task;

pysft_task *pysft_task_new(PyTypeObject *type, PyObject *options, PyObject *storage);
/* The library's options and storage. TypeError for other objects. */
int pysft_task_take(pysft_task *self, const sft_dataset_options **options,
                    const sft_storage **storage);
/* As pysft_storage_raise. */
PyObject *pysft_task_raise(pysft_task *self, const sft_error *err);
int pysft_task_traverse(PyObject *object, visitproc visit, void *arg);
void pysft_task_clear(pysft_task *self);
/* tp_dealloc, which calls tp_clear. */
void pysft_task_dealloc(PyObject *object);

/* ── Warnings ── */

/* sft_warn_fn that appends to a list of str (ctx). No GIL. A warning that cannot be appended is
 * lost. */
void pysft_warn_note(void *ctx, const sft_error *what);

#endif
