/* Storage: a local folder, or a Python object with the methods of one.
 * Tests: test_dataset_requests.py. */
#include "dataset.h"
#include "safetensors_io.h"

#include <errno.h>
#include <string.h>

#define RAISED_MOST 16

typedef struct storage_object {
    PyObject_HEAD
    sft_storage storage;
    sft_storage_vtable vtable; /* for an object: its methods */
    PyObject *target; /* NULL for a local folder */
    PyObject *raised; /* dict: message -> exception that a method of the target raised */
    pysft_path path;  /* for messages */
} storage_object;

/* ── Callbacks into Python ── */

/* Fills err with the exception's text, by which pysft_storage_raise finds the exception again. */
static sft_code note_exception(storage_object *self, PyObject *exception, sft_code code,
                               sft_error *err) {
    PyObject *text = PyUnicode_FromFormat("%S", exception), *key = NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    (void)sft_error_set(err, code, 0, utf8 ? utf8 : "the storage raised an exception");
    if (code != SFT_NOT_FOUND && self->raised) {
        if (PyDict_Size(self->raised) >= RAISED_MOST) PyDict_Clear(self->raised);
        key = pysft_text(sft_span_cstr(err->message));
        if (key) (void)PyDict_SetItem(self->raised, key, exception);
        Py_XDECREF(key);
        PyErr_Clear();
    }
    Py_XDECREF(text);
    return code;
}

static sft_code failed(storage_object *self, sft_code usual, sft_error *err) {
    sft_error none = SFT_ERROR_INIT;
    sft_code code = usual;
    PyObject *type, *exception, *trace;
    PyErr_Fetch(&type, &exception, &trace);
    PyErr_NormalizeException(&type, &exception, &trace);
    if (exception && trace) (void)PyException_SetTraceback(exception, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (!exception) return sft_error_set(err, usual, 0, "the storage failed");
    if (PyErr_GivenExceptionMatches(exception, PyExc_FileNotFoundError)) code = SFT_NOT_FOUND;
    else if (PyErr_GivenExceptionMatches(exception, PyExc_FileExistsError)) code = SFT_EXISTS;
    else if (PyErr_GivenExceptionMatches(exception, PyExc_NotImplementedError))
        code = SFT_DATASET_UNGUARDED;
    code = note_exception(self, exception, code, err ? err : &none);
    Py_DECREF(exception);
    return code;
}

PyObject *pysft_storage_raise(pysft_state *state, PyObject *storage, const sft_error *err) {
    storage_object *self = (storage_object *)storage;
    if (PyErr_Occurred()) return NULL;
    PyObject *key = self->raised ? pysft_text(sft_span_cstr(err->message)) : NULL;
    PyObject *exception = key ? PyDict_GetItemWithError(self->raised, key) : NULL;
    Py_XINCREF(exception);
    if (exception) {
        PyDict_Clear(self->raised);
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
    Py_XDECREF(exception);
    Py_XDECREF(key);
    return pysft_raise(state, err, self->path.text);
}

PyObject *pysft_storage_text(pysft_job *job, pysft_state *state, PyObject *storage) {
    if (pysft_job_end(job) < 0) (void)pysft_storage_raise(state, storage, &job->err);
    return pysft_job_text(job, state, NULL);
}

const sft_storage *pysft_storage_of(pysft_state *state, PyObject *object) {
    if (pysft_is_a(state, object, PYSFT_TYPE_STORAGE))
        return &((storage_object *)object)->storage;
    return (void *)PyErr_Format(PyExc_TypeError, "expected a Storage, found %R", Py_TYPE(object));
}

void pysft_warn_note(void *ctx, const sft_error *what) {
    pysft_callback v = pysft_callback_begin();
    PyObject *text = pysft_text(sft_span_cstr(what->message));
    if (text) (void)PyList_Append(ctx, text);
    Py_XDECREF(text);
    PyErr_Clear();
    pysft_callback_end(&v);
}

/* ── Writing ── */

typedef struct object_piece {
    storage_object *storage; /* both references are held */
    PyObject *object;
    sft_source source; /* when reading */
} object_piece;

static object_piece *piece_new(storage_object *storage, PyObject *object) {
    object_piece *piece = PyMem_Calloc(1, sizeof *piece);
    if (!piece) return (void *)PyErr_NoMemory();
    piece->storage = (storage_object *)Py_NewRef((PyObject *)storage);
    piece->object = Py_NewRef(object);
    return piece;
}

static void piece_free(object_piece *piece) {
    pysft_callback v = pysft_callback_begin();
    Py_DECREF((PyObject *)piece->storage);
    Py_DECREF(piece->object);
    PyMem_Free(piece);
    pysft_callback_end(&v);
}

/* Calls a method of the target. NULL with an exception; the target may be NULL after the garbage
 * collector cleared it. */
static PyObject *ask_by(PyObject *target, const char *method, const char *format,
                        va_list values) {
    PyObject *function = NULL, *arguments = NULL, *answer = NULL;
    if (!target)
        return PyErr_Format(PyExc_ValueError, "expected a storage, found one that is gone");
    arguments = Py_VaBuildValue(format, values);
    if (arguments) function = PyObject_GetAttrString(target, method);
    if (function) answer = PyObject_CallObject(function, arguments);
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    return answer;
}

static PyObject *ask_target(storage_object *self, const char *method, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyObject *answer = ask_by(self->target, method, format, values);
    va_end(values);
    return answer;
}

/* Calls a method whose result does not matter, of the target or a piece, from the library; an
 * exception is `usual` if it is none of those that have a code of their own. */
static sft_code told(storage_object *self, PyObject *target, sft_code usual, sft_error *err,
                     const char *method, const char *format, ...) {
    va_list values;
    pysft_callback v = pysft_callback_begin();
    va_start(values, format);
    PyObject *answer = ask_by(target, method, format, values);
    va_end(values);
    sft_code code = answer ? SFT_OK : failed(self, usual, err);
    Py_XDECREF(answer);
    pysft_callback_end(&v);
    return code;
}

static sft_code sink_write(void *ctx, uint64_t offset, const void *bytes, size_t len,
                           sft_error *err) {
    const object_piece *piece = ctx;
    (void)offset;
    return told(piece->storage, piece->object, SFT_IO_WRITE, err, "write", "(y#)",
                len > 0 ? bytes : "", (Py_ssize_t)len);
}

static sft_code sink_finish(void *ctx, sft_error *err) {
    object_piece *piece = ctx;
    sft_code code = told(piece->storage, piece->object, SFT_IO_PUBLISH, err, "close", "()");
    piece_free(piece);
    return code;
}

static void sink_abandon(void *ctx) {
    object_piece *piece = ctx;
    (void)told(piece->storage, piece->object, SFT_IO_WRITE, NULL, "abort", "()");
    piece_free(piece);
}

static const sft_sink_vtable piece_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, sink_write, sink_finish, sink_abandon, NULL, NULL
};

static sft_code object_create(void *ctx, const char *name, bool replace, sft_sink *out,
                              sft_error *err) {
    storage_object *self = ctx;
    sft_code code = SFT_OK;
    pysft_callback v = pysft_callback_begin();
    PyObject *object = ask_target(self, "create", "(sO)", name, replace ? Py_True : Py_False);
    object_piece *piece = object ? piece_new(self, object) : NULL;
    if (piece)
        *out = (sft_sink){ piece, &piece_sink_vtable, false };
    else code = failed(self, SFT_IO_WRITE, err);
    Py_XDECREF(object);
    pysft_callback_end(&v);
    return code;
}

/* ── Reading ── */

static sft_code piece_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    object_piece *piece = ctx;
    pysft_callback v = pysft_callback_begin();
    sft_code code = sft_source_read(&piece->source, offset, into, len, got, err);
    if (PyErr_Occurred()) code = failed(piece->storage, SFT_IO_READ, err);
    pysft_callback_end(&v);
    return code;
}

static void piece_close(void *ctx) {
    object_piece *piece = ctx;
    pysft_callback v = pysft_callback_begin();
    sft_source_close(&piece->source);
    pysft_callback_end(&v);
    piece_free(piece);
}

static uint32_t piece_mode(void *ctx) {
    return sft_source_mode(&((const object_piece *)ctx)->source);
}

static const sft_source_vtable piece_source_vtable = {
    sizeof(sft_source_vtable), piece_read, piece_close, NULL, piece_mode
};

static sft_code object_open(void *ctx, const char *name, sft_source *out, sft_error *err) {
    storage_object *self = ctx;
    sft_code code = SFT_OK;
    pysft_callback v = pysft_callback_begin();
    PyObject *object = ask_target(self, "open", "(s)", name);
    object_piece *piece = object ? piece_new(self, object) : NULL;
    if (piece && pysft_source_of(object, &piece->source) == 0) {
        *out = (sft_source){ piece, &piece_source_vtable, piece->source.size, NULL, false };
    } else {
        code = failed(self, SFT_IO_OPEN, err);
        if (piece) piece_free(piece);
    }
    Py_XDECREF(object);
    pysft_callback_end(&v);
    return code;
}

/* Passes one (name, bytes, seconds, is a folder) to each; 0, or 1 when each wants no more. */
static int pass_entry(PyObject *row, sft_stored_fn each, void *each_ctx) {
    const char *name;
    unsigned long long bytes;
    long long mtime;
    int folder;
    sft_stored one;
    PyObject *tuple = PySequence_Tuple(row);
    if (!tuple) return -1;
    bool right = PyArg_ParseTuple(tuple, "sKLp:list", &name, &bytes, &mtime, &folder);
    int status = right ? 0 : -1;
    if (right) {
        one = (sft_stored){ name, bytes, mtime, folder != 0, 0 };
        if (!each(each_ctx, &one)) status = 1;
    }
    Py_DECREF(tuple);
    return status;
}

static sft_code object_list(void *ctx, const char *folder, sft_stored_fn each, void *each_ctx,
                            sft_error *err) {
    storage_object *self = ctx;
    sft_code code = SFT_OK;
    pysft_callback v = pysft_callback_begin();
    PyObject *rows = ask_target(self, "list", "(s)", folder);
    PyObject *all = rows ? PySequence_List(rows) : NULL;
    int status = all ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_Size(all); i++)
        status = pass_entry(PyList_GetItem(all, i), each, each_ctx);
    Py_XDECREF(all);
    if (status < 0) {
        code = failed(self, SFT_IO_READ, err);
        if (code == SFT_NOT_FOUND) code = SFT_OK;
    }
    Py_XDECREF(rows);
    pysft_callback_end(&v);
    return code;
}

/* ── Methods without a result ── */

static sft_code object_move(void *ctx, const char *from, const char *to, sft_error *err) {
    storage_object *self = ctx;
    return told(self, self->target, SFT_IO_WRITE, err, "move", "(ss)", from, to);
}

static sft_code object_move_new(void *ctx, const char *from, const char *to, sft_error *err) {
    storage_object *self = ctx;
    return told(self, self->target, SFT_IO_WRITE, err, "move_new", "(ss)", from, to);
}

/* Takes (bytes, tag) from the target's fetch. */
static int fetched(PyObject *answer, uint64_t most, sft_buffer *bytes, char *tag) {
    const char *data, *text;
    Py_ssize_t len, tag_len;
    if (!PyArg_ParseTuple(answer, "y#s#:fetch", &data, &len, &text, &tag_len)) return -1;
    if ((uint64_t)len > most || tag_len == 0 || tag_len >= SFT_STORED_TAG)
        return pysft_refuse(PyExc_ValueError, "fetch: expected an object within the limit and a "
                                              "tag of 1 to 255 bytes");
    sft_sink sink = sft_sink_memory(bytes);
    if (sft_sink_write(&sink, 0, data, (size_t)len, NULL)) {
        sft_sink_abandon(&sink);
        return pysft_no_memory();
    }
    memcpy(tag, text, (size_t)tag_len + 1);
    return 0;
}

static sft_code object_fetch(void *ctx, const char *name, uint64_t most, sft_buffer *bytes,
                             char tag[SFT_STORED_TAG], sft_error *err) {
    sft_code code = SFT_OK;
    pysft_callback v = pysft_callback_begin();
    PyObject *answer = ask_target(ctx, "fetch", "(s)", name);
    if (!answer || fetched(answer, most, bytes, tag) < 0) code = failed(ctx, SFT_IO_READ, err);
    Py_XDECREF(answer);
    pysft_callback_end(&v);
    return code;
}

/* The target's put_if returns whether it wrote. */
static sft_code object_put_if(void *ctx, const char *name, const char *tag, sft_span bytes,
                              sft_error *err) {
    sft_code code = SFT_OK;
    pysft_callback v = pysft_callback_begin();
    PyObject *answer = ask_target(ctx, "put_if", "(sy#z)", name, bytes.data,
                                  (Py_ssize_t)bytes.len, *tag ? tag : NULL);
    int put = answer ? PyObject_IsTrue(answer) : -1;
    if (put < 0) code = failed(ctx, SFT_IO_PUBLISH, err);
    else if (!put)
        code = sft_error_set(err, SFT_DATASET_CHANGED, 0,
                             "expected the dataset as it was read, found another commit");
    Py_XDECREF(answer);
    pysft_callback_end(&v);
    return code;
}

static sft_code object_settle(void *ctx, const char *folder, sft_error *err) {
    storage_object *self = ctx;
    return told(self, self->target, SFT_IO_WRITE, err, "settle", "(s)", folder);
}

static sft_code object_remove(void *ctx, const char *name, bool folder, sft_error *err) {
    storage_object *self = ctx;
    sft_code code = told(self, self->target, SFT_IO_WRITE, err, "remove", "(sO)", name,
                         folder ? Py_True : Py_False);
    return code == SFT_NOT_FOUND ? SFT_OK : code;
}

/* TimeoutError means that another process holds the lock. */
static sft_code object_lock(void *ctx, uint64_t wait_ms, sft_error *err) {
    pysft_callback v = pysft_callback_begin();
    PyObject *answer = ask_target(ctx, "lock", "(d)", (double)wait_ms / 1000);
    bool busy = !answer && PyErr_ExceptionMatches(PyExc_TimeoutError);
    sft_code code = SFT_OK;
    Py_XDECREF(answer);
    if (!answer) code = failed(ctx, busy ? SFT_DATASET_BUSY : SFT_IO_OPEN, err);
    pysft_callback_end(&v);
    return code;
}

static void object_unlock(void *ctx) {
    storage_object *self = ctx;
    (void)told(self, self->target, SFT_IO_WRITE, NULL, "unlock", "()");
}

/* ── The type ── */

/* 1 if the target has the method (None counts as absent), -1 with an exception. */
static int has_method(PyObject *target, const char *name) {
    PyObject *value = PyObject_GetAttrString(target, name);
    if (!value) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        return 0;
    }
    int there = value != Py_None;
    Py_DECREF(value);
    return there;
}

static int storage_over(storage_object *self, PyObject *target) {
    int move = has_method(target, "move"), settle = has_method(target, "settle");
    int lock = has_method(target, "lock"), label = has_method(target, "path");
    int move_new = has_method(target, "move_new"), put_if = has_method(target, "put_if");
    if (move < 0 || settle < 0 || lock < 0 || label < 0 || move_new < 0 || put_if < 0) return -1;
    self->target = Py_NewRef(target);
    self->raised = PyDict_New();
    self->vtable = (sft_storage_vtable){
        sizeof self->vtable, object_create, object_open, object_list, move ? object_move : NULL,
        settle ? object_settle : NULL, object_remove, lock ? object_lock : NULL,
        lock ? object_unlock : NULL, NULL, move_new ? object_move_new : NULL,
        put_if ? object_fetch : NULL, put_if ? object_put_if : NULL };
    self->storage = (sft_storage){ self, &self->vtable, false };
    if (!self->raised || !label) return self->raised ? 0 : -1;
    PyObject *path = PyObject_GetAttrString(target, "path");
    int status = path ? pysft_path_of(path, &self->path) : -1;
    Py_XDECREF(path);
    return status;
}

static PyObject *storage_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "target", "sync", "single_writer", NULL };
    PyObject *target;
    int sync = 1, single = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$pp:Storage", words, &target, &sync,
                                     &single))
        return NULL;
    storage_object *self = (storage_object *)pysft_object_new(type);
    if (!self) return NULL;
    bool object = !PyUnicode_Check(target) && !PyBytes_Check(target)
                  && PyObject_HasAttrString(target, "create");
    sft_error err = SFT_ERROR_INIT;
    int status = object ? storage_over(self, target) : pysft_path_of(target, &self->path);
    if (!object && status == 0
        && sft_storage_local(self->path.text, !sync, NULL, &self->storage, &err))
        status = pysft_fail(pysft_state_from((PyObject *)self), &err, self->path.text);
    self->storage.single_writer = single != 0;
    return pysft_object_made(self, status);
}

static int storage_traverse(PyObject *object, visitproc visit, void *arg) {
    storage_object *self = (storage_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->target);
    Py_VISIT(self->raised);
    return 0;
}

static int storage_clear(PyObject *object) {
    storage_object *self = (storage_object *)object;
    Py_CLEAR(self->target);
    Py_CLEAR(self->raised);
    return 0;
}

static void storage_dealloc(PyObject *object) {
    storage_object *self = (storage_object *)object;
    PyObject_GC_UnTrack(object);
    sft_storage_close(&self->storage);
    (void)storage_clear(object);
    pysft_path_free(&self->path);
    pysft_object_free(object);
}

static PyType_Slot storage_slots[] = {
    { Py_tp_doc, "Storage(target, *, sync=True, single_writer=False)\n--\n\n"
      "Where a dataset is stored: a local folder, or an object with the methods of a storage." },
    { Py_tp_new, storage_new },
    { Py_tp_dealloc, storage_dealloc },
    { Py_tp_traverse, storage_traverse },
    { Py_tp_clear, storage_clear },
    { 0, NULL },
};

PyType_Spec pysft_storage_spec = {
    "libsafetensors._core.Storage", sizeof(storage_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, storage_slots,
};
