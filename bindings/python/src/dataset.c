/* Dataset: a manifest that was read; and maintenance of datasets, reported as JSON.
 * Tests: test_dataset_commit.py. */
#include "dataset.h"

typedef struct dataset_object {
    PyObject_HEAD
    sft_dataset *dataset;
    PyObject *storage, *warnings;
} dataset_object;

static PyObject *dataset_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "storage", "version", "asof", NULL };
    PyObject *given;
    uint64_t version = 0, asof = 0;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O&O&:Dataset", words, &given,
                                     pysft_uint_arg, &version, pysft_uint_arg, &asof))
        return NULL;
    dataset_object *self = (dataset_object *)pysft_object_new(type);
    if (!self) return NULL;
    pysft_state *state = pysft_state_from((PyObject *)self);
    self->storage = Py_NewRef(given);
    self->warnings = PyList_New(0);
    const sft_storage *storage = self->warnings ? pysft_storage_of(state, given) : NULL;
    if (storage) {
        PYSFT_NO_GIL(code = sft_dataset_open_version(storage, version, asof, NULL, pysft_warn_note,
                                                     self->warnings, &self->dataset, &err));
        if (code) (void)pysft_storage_raise(state, given, &err);
    }
    return pysft_object_made(self, self->dataset ? 0 : -1);
}

/* For "O&": the name of a dataset for its report, a str, or bytes where that is none. Lives as long
 * as the argument. */
static int path_text(PyObject *given, void *out) {
    const char *text = PyBytes_Check(given) ? PyBytes_AsString(given)
                                            : PyUnicode_AsUTF8AndSize(given, NULL);
    *(const char **)out = text;
    return text != NULL;
}

/* ── Facts ── */

static PyObject *dataset_manifest(PyObject *object, void *Py_UNUSED(unused)) {
    return pysft_text(sft_dataset_manifest(((dataset_object *)object)->dataset));
}

static PyObject *dataset_mode(PyObject *object, void *Py_UNUSED(unused)) {
    sft_dataset_mode mode = sft_dataset_get_mode(((dataset_object *)object)->dataset);
    if (mode == SFT_DATASET_BATCH) return PyUnicode_FromString("batch");
    if (mode == SFT_DATASET_KV) return PyUnicode_FromString("kv");
    Py_RETURN_NONE;
}

static PyObject *dataset_warnings(PyObject *object, void *Py_UNUSED(unused)) {
    return Py_NewRef(((dataset_object *)object)->warnings);
}

static PyObject *dataset_shards(PyObject *object, PyObject *Py_UNUSED(unused)) {
    const sft_dataset *dataset = ((dataset_object *)object)->dataset;
    PyObject *all = PyList_New(0);
    for (size_t i = 0; all && i < sft_dataset_shard_count(dataset); i++) {
        const sft_dataset_shard *s = sft_dataset_shard_at(dataset, i);
        pysft_list_add(&all, Py_BuildValue(
            "{sssKsKsKsKsKsKszsK}", "name", s->name, "bytes", (unsigned long long)s->bytes,
            "samples", (unsigned long long)s->samples, "valid_samples",
            (unsigned long long)s->valid_samples, "first_sample",
            (unsigned long long)s->first_sample, "tensors", (unsigned long long)s->tensors,
            "shadowed", (unsigned long long)s->shadowed, "sha256", s->sha256, "deleted",
            (unsigned long long)s->deleted));
    }
    return all;
}

static PyObject *dataset_masks(PyObject *object, PyObject *Py_UNUSED(unused)) {
    const sft_dataset *dataset = ((dataset_object *)object)->dataset;
    PyObject *all = PyDict_New();
    for (size_t i = 0; all && i < sft_dataset_shard_count(dataset); i++) {
        const sft_span mask = sft_dataset_shard_mask(dataset, i);
        if (!mask.len) continue;
        PyObject *number = PyLong_FromSize_t(i);
        PyObject *bytes = PyBytes_FromStringAndSize(mask.data, (Py_ssize_t)mask.len);
        if (!number || !bytes || PyDict_SetItem(all, number, bytes) < 0) Py_CLEAR(all);
        Py_XDECREF(number);
        Py_XDECREF(bytes);
    }
    return all;
}

static PyObject *dataset_places(PyObject *object, PyObject *Py_UNUSED(unused)) {
    const sft_dataset *dataset = ((dataset_object *)object)->dataset;
    PyObject *all = PyList_New(0);
    for (size_t i = 0; all && i < sft_dataset_shard_count(dataset); i++) {
        size_t count;
        const sft_dataset_place *of = sft_dataset_shard_places(dataset, i, &count);
        for (size_t k = 0; all && k < count; k++)
            pysft_list_add(&all, Py_BuildValue("(nszKz)", (Py_ssize_t)i, of[k].column, of[k].file,
                                               (unsigned long long)of[k].bytes, of[k].sha256));
    }
    return all;
}

/* The files beside a shard. */
static sft_code check_places(const sft_dataset *dataset, size_t i, sft_error *err) {
    size_t count;
    const sft_dataset_place *of = sft_dataset_shard_places(dataset, i, &count);
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < count; k++) {
        sft_file *file = NULL;
        if (of[k].file) code = sft_dataset_place_open(dataset, &of[k], NULL, &file, err);
        sft_close(file);
    }
    return code;
}

static PyObject *dataset_check_shard(PyObject *object, PyObject *number) {
    dataset_object *self = (dataset_object *)object;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    sft_file *file = NULL;
    size_t i = PyLong_AsSize_t(number);
    if (PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = sft_dataset_shard_open(self->dataset, i, NULL, &file, &err);
    sft_close(file);
    if (!code) code = check_places(self->dataset, i, &err);
    Py_END_ALLOW_THREADS
    if (code) return pysft_storage_raise(pysft_state_from(object), self->storage, &err);
    Py_RETURN_NONE;
}

/* ── JSON ── */

static PyObject *dataset_info(PyObject *object, PyObject *args) {
    dataset_object *self = (dataset_object *)object;
    const char *path;
    pysft_job job;
    (void)pysft_job_begin(&job, NULL);
    if (!PyArg_ParseTuple(args, "O&:info_json", path_text, &path)) return NULL;
    PYSFT_NO_GIL(job.code = sft_dataset_info_json(self->dataset, path, &job.out, &job.err));
    return pysft_storage_text(&job, pysft_state_from(object), self->storage);
}

/* No GIL. An exception of the lookup stays set and is raised by the call. */
static bool key_wanted(void *keys, const sft_tensor *tensor) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int held = 0;
    PyObject *name = PyErr_Occurred() ? NULL : pysft_text(tensor->name);
    if (name) held = PySet_Contains(keys, name);
    Py_XDECREF(name);
    PyGILState_Release(gil);
    return held == 1;
}

static PyObject *dataset_ls(PyObject *object, PyObject *args) {
    dataset_object *self = (dataset_object *)object;
    const char *path;
    PyObject *given = Py_None, *keys = NULL;
    pysft_job job;
    (void)pysft_job_begin(&job, NULL);
    if (!PyArg_ParseTuple(args, "O&|O:ls_json", path_text, &path, &given)) return NULL;
    if (given != Py_None && !(keys = PyFrozenSet_New(given))) return NULL;
    PYSFT_NO_GIL(job.code = sft_dataset_ls_json(self->dataset, NULL, path, keys ? key_wanted : NULL,
                                                keys, &job.out, &job.err));
    Py_XDECREF(keys);
    return pysft_storage_text(&job, pysft_state_from(object), self->storage);
}

/* ── The type ── */

static int dataset_traverse(PyObject *object, visitproc visit, void *arg) {
    dataset_object *self = (dataset_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->storage);
    Py_VISIT(self->warnings);
    return 0;
}

/* The dataset stays open until tp_dealloc: other threads may read it while the collector runs. */
static int dataset_clear(PyObject *object) {
    Py_CLEAR(((dataset_object *)object)->warnings);
    return 0;
}

static void dataset_dealloc(PyObject *object) {
    dataset_object *self = (dataset_object *)object;
    PyObject_GC_UnTrack(object);
    sft_dataset_close(self->dataset);
    (void)dataset_clear(object);
    Py_CLEAR(self->storage);
    pysft_object_free(object);
}

static PyMethodDef dataset_methods[] = {
    { "shards", dataset_shards, METH_NOARGS, "shards($self, /)\n--\n\n" },
    { "masks", dataset_masks, METH_NOARGS,
      "masks($self, /)\n--\n\n"
      "Of each shard with deleted rows, by number: a bit a row, the lowest first." },
    { "places", dataset_places, METH_NOARGS,
      "places($self, /)\n--\n\n"
      "Columns that shards lack: (number of the shard, column, file or None, bytes, sha256)." },
    { "check_shard", dataset_check_shard, METH_O, "check_shard($self, number, /)\n--\n\n" },
    { "info_json", dataset_info, METH_VARARGS,
      "info_json($self, path, /)\n--\n\n"
      "What `dataset info --json` prints." },
    { "ls_json", dataset_ls, METH_VARARGS,
      "ls_json($self, path, keys=None, /)\n--\n\n"
      "What `dataset ls --json` prints." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef dataset_fields[] = {
    { "manifest", dataset_manifest, NULL, "The manifest as JSON.", NULL },
    { "mode", dataset_mode, NULL, "\"batch\", \"kv\", or None if unknown.", NULL },
    { "warnings", dataset_warnings, NULL, "Warnings about the manifest.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot dataset_slots[] = {
    { Py_tp_doc, "Dataset(storage, version=0, asof=0)\n--\n\n"
                 "A dataset's manifest, read once; immutable." },
    { Py_tp_new, dataset_new },
    { Py_tp_dealloc, dataset_dealloc },
    { Py_tp_traverse, dataset_traverse },
    { Py_tp_clear, dataset_clear },
    { Py_tp_methods, dataset_methods },
    { Py_tp_getset, dataset_fields },
    { 0, NULL },
};

/* ── Maintenance ── */

/* One call over a storage. */
typedef struct report_call {
    pysft_state *state;
    PyObject *object, *progress;
    const sft_storage *storage;
    const char *path;
    pysft_job job;
} report_call;

static int report_begin(report_call *call, PyObject *module) {
    call->state = pysft_state_of(module);
    call->storage = pysft_storage_of(call->state, call->object);
    return call->storage ? pysft_job_begin(&call->job, call->progress) : -1;
}

static PyObject *report_end(report_call *call) {
    return pysft_storage_text(&call->job, call->state, call->object);
}

static PyObject *dataset_verify(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "storage", "path", "deep", "progress", NULL };
    report_call call = { .progress = NULL };
    bool whole = false;
    int deep = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&|pO:dataset_verify", words, &call.object,
                                     path_text, &call.path, &deep, &call.progress) ||
        report_begin(&call, module) < 0)
        return NULL;
    PYSFT_NO_GIL(call.job.code = sft_dataset_verify_json(call.storage, deep != 0, NULL, call.path,
                                                         &call.job.out, &whole, &call.job.job,
                                                         &call.job.err));
    return report_end(&call);
}

static PyObject *dataset_gc(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "storage", "path", "grace", "delete", "keep", "older", NULL };
    report_call call = { .progress = NULL };
    sft_gc_options how = SFT_GC_OPTIONS_INIT;
    int remove = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&|O&pO&O&:dataset_gc", words, &call.object,
                                     path_text, &call.path, pysft_uint_arg, &how.grace_s, &remove,
                                     pysft_uint_arg, &how.keep, pysft_uint_arg, &how.older_s) ||
        report_begin(&call, module) < 0)
        return NULL;
    how.remove = remove != 0;
    PYSFT_NO_GIL(call.job.code = sft_dataset_gc_json(call.storage, &how, call.path, &call.job.out,
                                                     &call.job.err));
    return report_end(&call);
}

static PyObject *dataset_versions(PyObject *module, PyObject *args) {
    report_call call = { .progress = NULL };
    if (!PyArg_ParseTuple(args, "OO&:dataset_versions", &call.object, path_text, &call.path) ||
        report_begin(&call, module) < 0)
        return NULL;
    PYSFT_NO_GIL(call.job.code = sft_dataset_versions_json(call.storage, call.path, &call.job.out,
                                                           &call.job.err));
    return report_end(&call);
}

static PyObject *dataset_renew(PyObject *module, PyObject *args) {
    report_call call = { .progress = NULL };
    sft_span job;
    Py_ssize_t len = 0;
    if (!PyArg_ParseTuple(args, "Os#:dataset_renew", &call.object, &job.data, &len) ||
        report_begin(&call, module) < 0)
        return NULL;
    job.len = (size_t)len;
    PYSFT_NO_GIL(call.job.code = sft_commit_renew(call.storage, job, &call.job.err));
    return report_end(&call);
}

static PyObject *dataset_compact(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "storage", "path", "warnings", "target_bytes", "progress",
                             "dry_run", "manifest", "drop_old", "batch_size", NULL };
    report_call call = { .progress = NULL };
    sft_compact_options options = SFT_COMPACT_OPTIONS_INIT;
    static const char *const forms[] = { "whole", "segments", NULL };
    PyObject *warnings, *form = Py_None;
    int dry_run = 0, chosen = 0, drop_old = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&O|O&OpOpO&:dataset_compact", words,
                                     &call.object, path_text, &call.path, &warnings,
                                     pysft_uint_arg, &options.target_bytes, &call.progress,
                                     &dry_run, &form, &drop_old, pysft_uint_arg,
                                     &options.batch_size))
        return NULL;
    if (form != Py_None && pysft_choice_of(form, "manifest", forms, &chosen) < 0) return NULL;
    if (!PyList_Check(warnings))
        return PyErr_Format(PyExc_TypeError, "warnings: expected a list");
    if (report_begin(&call, module) < 0) return NULL;
    options.dry_run = dry_run != 0;
    options.drop_old = drop_old != 0;
    if (form != Py_None) options.form = chosen ? SFT_FORM_SEGMENTS : SFT_FORM_WHOLE;
    options.warn = pysft_warn_note;
    options.warn_ctx = warnings;
    PYSFT_NO_GIL(call.job.code = sft_dataset_compact_json(call.storage, &options, call.path,
                                                          &call.job.out, &call.job.job,
                                                          &call.job.err));
    return report_end(&call);
}

/* Ranges out of a buffer of pairs of 64-bit numbers, borrowed. */
static int delete_ranges(Py_buffer *rows, sft_delete_options *how) {
    if (rows->len % (Py_ssize_t)sizeof(sft_row_range)) {
        PyErr_SetString(PyExc_ValueError, "rows: expected pairs of numbers of 64 bits");
        return -1;
    }
    how->rows = rows->buf;
    how->row_count = (size_t)rows->len / sizeof(sft_row_range);
    return 0;
}

/* Spans of the items of a tuple of texts, which lives as long as they do. NULL: an exception. */
static sft_span *dataset_names(PyObject *keys) {
    const Py_ssize_t count = PyTuple_Size(keys);
    sft_span *all = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *all);
    if (!all && count >= 0) PyErr_NoMemory();
    for (Py_ssize_t i = 0; all && i < count; i++) {
        Py_ssize_t len = 0;
        const char *text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(keys, i), &len);
        if (text) {
            all[i] = (sft_span){ text, (size_t)len };
            continue;
        }
        PyMem_Free(all);
        return NULL;
    }
    return all;
}

static PyObject *dataset_delete(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "storage", "path", "warnings", "rows", "version", "keys", "progress",
                             "dry_run", NULL };
    report_call call = { .progress = NULL };
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    Py_buffer rows = { 0 };
    sft_span *keys = NULL;
    PyObject *warnings, *names = NULL, *result = NULL;
    int dry_run = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&O!|y*O&O!Op:dataset_delete", words,
                                     &call.object, path_text, &call.path, &PyList_Type, &warnings,
                                     &rows, pysft_uint_arg, &how.version, &PyTuple_Type, &names,
                                     &call.progress, &dry_run))
        return NULL;
    if (rows.obj && delete_ranges(&rows, &how) < 0) goto done;
    if (names && !(keys = dataset_names(names))) goto done;
    if (report_begin(&call, module) < 0) goto done;
    how.keys = keys;
    how.key_count = names ? (size_t)PyTuple_Size(names) : 0;
    how.dry_run = dry_run != 0;
    how.warn = pysft_warn_note;
    how.warn_ctx = warnings;
    PYSFT_NO_GIL(call.job.code = sft_dataset_delete_json(call.storage, &how, call.path,
                                                         &call.job.out, &call.job.job,
                                                         &call.job.err));
    result = report_end(&call);
done:
    PyMem_Free(keys);
    if (rows.obj) PyBuffer_Release(&rows);
    return result;
}

static PyObject *dataset_add(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "storage", "path", "warnings", "values", "columns", "version",
                             "progress", "dry_run", NULL };
    report_call call = { .progress = NULL };
    sft_add_options how = SFT_ADD_OPTIONS_INIT;
    sft_span *columns = NULL;
    PyObject *warnings, *values, *names = NULL, *result = NULL;
    const sft_storage *from;
    int dry_run = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&O!O|O!O&Op:dataset_add", words, &call.object,
                                     path_text, &call.path, &PyList_Type, &warnings, &values,
                                     &PyTuple_Type, &names, pysft_uint_arg, &how.version,
                                     &call.progress, &dry_run))
        return NULL;
    from = pysft_storage_of(pysft_state_of(module), values);
    if (!from || (names && !(columns = dataset_names(names)))) return NULL;
    if (report_begin(&call, module) < 0) goto done;
    how.columns = columns;
    how.column_count = names ? (size_t)PyTuple_Size(names) : 0;
    how.dry_run = dry_run != 0;
    how.warn = pysft_warn_note;
    how.warn_ctx = warnings;
    PYSFT_NO_GIL(call.job.code = sft_dataset_add_json(call.storage, from, &how, call.path,
                                                      &call.job.out, &call.job.job,
                                                      &call.job.err));
    result = report_end(&call);
done:
    PyMem_Free(columns);
    return result;
}

PyMethodDef pysft_dataset_functions[] = {
    { "dataset_verify", PYSFT_KEYWORDS(dataset_verify),
      "dataset_verify($module, /, storage, path, deep=False, progress=None)\n--\n\n" },
    { "dataset_gc", PYSFT_KEYWORDS(dataset_gc),
      "dataset_gc($module, /, storage, path, grace=86400, delete=False, keep=0,\n"
      " older=0)\n--\n\n" },
    { "dataset_versions", dataset_versions, METH_VARARGS,
      "dataset_versions($module, storage, path, /)\n--\n\n"
      "What `dataset versions --json` prints." },
    { "dataset_renew", dataset_renew, METH_VARARGS,
      "dataset_renew($module, storage, job, /)\n--\n\n"
      "Says that a job is still under way." },
    { "dataset_compact", PYSFT_KEYWORDS(dataset_compact),
      "dataset_compact($module, /, storage, path, warnings, target_bytes=0,\n"
      " progress=None, dry_run=False, manifest=None, drop_old=False, batch_size=0)\n--\n\n" },
    { "dataset_delete", PYSFT_KEYWORDS(dataset_delete),
      "dataset_delete($module, /, storage, path, warnings, rows=b'', version=0, keys=(),\n"
      " progress=None, dry_run=False)\n--\n\n"
      "rows: pairs of 64-bit numbers, the first row and the one behind the last." },
    { "dataset_add", PYSFT_KEYWORDS(dataset_add),
      "dataset_add($module, /, storage, path, warnings, values, columns=(), version=0,\n"
      " progress=None, dry_run=False)\n--\n\n"
      "values: the storage of the dataset that has them." },
    { NULL, NULL, 0, NULL },
};

PyType_Spec pysft_dataset_spec = {
    "libsafetensors._core.Dataset", sizeof(dataset_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, dataset_slots,
};
