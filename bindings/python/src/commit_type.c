/* Commit: collects the receipts of tasks and publishes the manifest.
 * Tests: test_dataset_commit.py. */
#include "dataset.h"

#include <stdlib.h>

static const char type_name[] = "Commit";

typedef struct commit_object {
    pysft_task task;
    sft_commit *commit; /* NULL: closed */
    atomic_int streams; /* open streams of the index */
} commit_object;

static bool commit_enter(commit_object *self) {
    return pysft_enter(&self->task.busy, type_name)
           && pysft_stay(&self->task.busy, self->commit != NULL,
                         "expected an open Commit, found one that is closed");
}

/* Ends the call: returns None, or raises err. */
static PyObject *commit_leave(commit_object *self, sft_code code, const sft_error *err) {
    PyObject *done = code ? pysft_task_raise(&self->task, err) : Py_NewRef(Py_None);
    pysft_leave(&self->task.busy);
    return done;
}

/* ── Construction ── */

static int commit_begin(commit_object *self, const struct ArrowSchema *schema,
                        const sft_commit_options *how) {
    const sft_dataset_options *options;
    const sft_storage *storage;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (pysft_task_take(&self->task, &options, &storage) < 0) return -1;
    PYSFT_NO_GIL(code = sft_commit_open(options, storage, schema, how, &self->commit, &err));
    if (code) (void)pysft_task_raise(&self->task, &err);
    return code ? -1 : 0;
}

static PyObject *commit_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "options",       "storage", "schema", "how",
                             "adopt_listing", "job",     "lock_wait", NULL };
    static const char *const modes[] = { "error", "append", "overwrite", NULL };
    PyObject *options, *storage, *given = NULL, *mode = NULL, *job = NULL, *keep = NULL;
    const struct ArrowSchema *schema = NULL;
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    int chosen = 0, adopt = 0;
    double wait = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$OpOd:Commit", words, &options, &storage,
                                     &given, &mode, &adopt, &job, &wait)
        || (mode && pysft_choice_of(mode, "how", modes, &chosen) < 0)
        || (job && job != Py_None && pysft_span_of(job, "job", &how.job) < 0))
        return NULL;
    if (!(wait >= 0 && wait < 1e9))
        return PyErr_Format(PyExc_ValueError, "lock_wait: expected seconds from 0 on");
    how.mode = (sft_commit_mode)chosen;
    how.adopt_listing = adopt != 0;
    how.lock_wait_ms = (uint64_t)(wait * 1000);
    bool with_schema = given && given != Py_None;
    if (with_schema) schema = pysft_schema_of(given, &keep);
    commit_object *self = NULL;
    if (schema || !with_schema) self = (commit_object *)pysft_task_new(type, options, storage);
    int status = self ? commit_begin(self, schema, &how) : -1;
    Py_XDECREF(keep);
    return pysft_object_made(self, status);
}

/* ── Steps ── */

static PyObject *commit_add(PyObject *object, PyObject *text) {
    commit_object *self = (commit_object *)object;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    sft_span receipts;
    if (pysft_span_of(text, "receipts", &receipts) < 0 || !commit_enter(self)) return NULL;
    PYSFT_NO_GIL(code = sft_commit_add(self->commit, receipts, &err));
    return commit_leave(self, code, &err);
}

static PyObject *commit_prepare(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "progress", NULL };
    commit_object *self = (commit_object *)object;
    PyObject *progress = NULL;
    pysft_job job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:prepare", words, &progress) ||
        pysft_job_begin(&job, progress) < 0 || !commit_enter(self))
        return NULL;
    PYSFT_NO_GIL(job.code = sft_commit_prepare(self->commit, &job.job, &job.err));
    if (pysft_job_end(&job) < 0 && !job.code) job.code = SFT_CANCELLED;
    return commit_leave(self, job.code, &job.err);
}

/* The list of warnings, or NULL with an exception. What progress raises after the manifest is
 * published is reported as unraisable: the commit has succeeded. */
static PyObject *published(commit_object *self, PyObject *warnings, const char *index,
                           PyObject *progress) {
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    PYSFT_NO_GIL(job.code = sft_commit_publish(self->commit, index, pysft_warn_note, warnings,
                                               &job.job, &job.err));
    if (job.code) return pysft_task_raise(&self->task, &job.err);
    if (PyErr_Occurred()) PyErr_WriteUnraisable((PyObject *)self);
    return Py_NewRef(warnings);
}

static PyObject *commit_publish(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "index", "progress", NULL };
    commit_object *self = (commit_object *)object;
    PyObject *progress = NULL, *done = NULL;
    const char *index = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zO:publish", words, &index, &progress) ||
        !commit_enter(self))
        return NULL;
    PyObject *warnings = PyList_New(0);
    if (warnings) done = published(self, warnings, index, progress);
    Py_XDECREF(warnings);
    pysft_leave(&self->task.busy);
    return done;
}

static PyObject *commit_abort(PyObject *object, PyObject *Py_UNUSED(unused)) {
    commit_object *self = (commit_object *)object;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (!commit_enter(self)) return NULL;
    PYSFT_NO_GIL(code = sft_commit_abort(self->commit, &err));
    return commit_leave(self, code, &err);
}

/* ── The index stream, which holds a reference to the commit ── */

typedef struct index_stream {
    commit_object *commit;
    struct ArrowArrayStream inner;
} index_stream;

static int index_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    index_stream *index = stream->private_data;
    return index->inner.get_schema(&index->inner, out);
}

static int index_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    index_stream *index = stream->private_data;
    return index->inner.get_next(&index->inner, out);
}

static const char *index_get_last_error(struct ArrowArrayStream *stream) {
    index_stream *index = stream->private_data;
    return index->inner.get_last_error(&index->inner);
}

/* Called by any thread, with or without the GIL. */
static void index_release(struct ArrowArrayStream *stream) {
    index_stream *index = stream->private_data;
    index->inner.release(&index->inner);
    atomic_fetch_sub(&index->commit->streams, 1);
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)index->commit);
    PyGILState_Release(gil);
    free(index);
    stream->release = NULL;
}

static PyObject *commit_stream(commit_object *self) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    index_stream *index = calloc(1, sizeof *index);
    if (!index) return PyErr_NoMemory();
    PYSFT_NO_GIL(code = sft_commit_index(self->commit, &index->inner, &err));
    if (code) {
        free(index);
        return pysft_task_raise(&self->task, &err);
    }
    index->commit = (commit_object *)Py_NewRef((PyObject *)self);
    atomic_fetch_add(&self->streams, 1);
    struct ArrowArrayStream stream = { index_get_schema, index_get_next, index_get_last_error,
                                       index_release, index };
    return pysft_stream_capsule(&stream);
}

static PyObject *commit_index(PyObject *object, PyObject *Py_UNUSED(unused)) {
    commit_object *self = (commit_object *)object;
    if (!commit_enter(self)) return NULL;
    PyObject *capsule = commit_stream(self);
    pysft_leave(&self->task.busy);
    return capsule;
}

/* ── Facts ── */

static PyObject *commit_fact(PyObject *object, void *which) {
    commit_object *self = (commit_object *)object;
    PyObject *value = NULL;
    if (!commit_enter(self)) return NULL;
    switch (*(const char *)which) {
    case 'j': value = pysft_text(sft_commit_job(self->commit)); break;
    case 'f': value = PyUnicode_FromString(sft_commit_job_folder(self->commit)); break;
    case 'i': value = PyBool_FromLong(sft_commit_indexed(self->commit)); break;
    default: value = pysft_text(sft_commit_manifest(self->commit)); break;
    }
    pysft_leave(&self->task.busy);
    return value;
}

/* ── Closing ── */

static PyObject *commit_close(PyObject *object, PyObject *Py_UNUSED(unused)) {
    commit_object *self = (commit_object *)object;
    if (!pysft_enter(&self->task.busy, type_name)) return NULL;
    sft_commit *commit = self->commit;
    if (atomic_load(&self->streams)) {
        PyErr_SetString(PyExc_RuntimeError, "expected the index's stream to be released");
        pysft_leave(&self->task.busy);
        return NULL;
    }
    self->commit = NULL;
    PYSFT_NO_GIL(sft_commit_close(commit));
    pysft_leave(&self->task.busy);
    Py_RETURN_NONE;
}

/* No stream is open by now, because each holds a reference to this object. */
static int commit_clear(PyObject *object) {
    commit_object *self = (commit_object *)object;
    sft_commit_close(self->commit);
    self->commit = NULL;
    pysft_task_clear(&self->task);
    return 0;
}

static PyMethodDef commit_methods[] = {
    { "add", commit_add, METH_O, "add($self, receipts, /)\n--\n\n" },
    { "prepare", PYSFT_KEYWORDS(commit_prepare),
      "prepare($self, /, progress=None)\n--\n\n"
      "Lock the dataset, check all shards and find duplicates; readers see no change." },
    { "index", commit_index, METH_NOARGS, "index($self, /)\n--\n\n" },
    { "publish", PYSFT_KEYWORDS(commit_publish),
      "publish($self, /, index=None, progress=None)\n--\n\n" },
    { "abort", commit_abort, METH_NOARGS,
      "abort($self, /)\n--\n\n"
      "Remove the files of an unpublished job." },
    { "close", commit_close, METH_NOARGS,
      "close($self, /)\n--\n\n"
      "Release the lock and keep all files." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef commit_fields[] = {
    { "job", commit_fact, NULL, "The job as text, for ShardWriter.", (void *)"j" },
    { "job_folder", commit_fact, NULL, "\"_job-…\", or \"\" if shards are not moved.",
      (void *)"f" },
    { "indexed", commit_fact, NULL, "After prepare: whether an index will be written.",
      (void *)"i" },
    { "manifest", commit_fact, NULL, "After prepare: the manifest as JSON.", (void *)"m" },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot commit_slots[] = {
    { Py_tp_doc, "Commit(options, storage, schema=None, *, how='error', adopt_listing=False,\n"
      " job=None, lock_wait=0)\n--\n\n"
      "Collects the receipts of tasks and publishes the manifest." },
    { Py_tp_new, commit_new },
    { Py_tp_dealloc, pysft_task_dealloc },
    { Py_tp_traverse, pysft_task_traverse },
    { Py_tp_clear, commit_clear },
    { Py_tp_methods, commit_methods },
    { Py_tp_getset, commit_fields },
    { 0, NULL },
};

PyType_Spec pysft_commit_spec = {
    "libsafetensors._core.Commit", sizeof(commit_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, commit_slots,
};
