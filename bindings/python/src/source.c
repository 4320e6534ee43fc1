/* A source over a Python object: read_at and size, or read and seek. Files of other libraries are
 * adapted first, by _sources.py. Tests: test_open.py. */
#include "core.h"

#include <string.h>

/* Holds one reference, to the object, as pysft_store_visit expects. Does not use readinto: the
 * object could keep the buffer. */
typedef struct {
    PyObject *object;
    bool reads_at;           /* has read_at(offset, length); else seek and read */
    bool expects;            /* has expect(runs) */
    PyThread_type_lock lock; /* guards the object's position */
} object_source;

static const size_t piece_bytes = (size_t)16 << 20; /* largest argument of read() */

static void source_free(object_source *source) {
    Py_XDECREF(source->object);
    if (source->lock) PyThread_free_lock(source->lock);
    PyMem_Free(source);
}

/* Copies an answer's bytes into `into`; steals answer, which may be NULL. -1 with an exception. */
static Py_ssize_t take_answer(PyObject *answer, void *into, size_t cap) {
    Py_buffer view;
    Py_ssize_t got = -1;
    if (!answer) return -1;
    if (PyObject_GetBuffer(answer, &view, PyBUF_SIMPLE) == 0) {
        if ((size_t)view.len <= cap) {
            if (view.len > 0) memcpy(into, view.buf, (size_t)view.len);
            got = view.len;
        } else {
            PyErr_Format(PyExc_ValueError, "source: asked for %zu bytes, got %zd", cap,
                         view.len);
        }
        PyBuffer_Release(&view);
    }
    Py_DECREF(answer);
    return got;
}

static int read_all(object_source *source, uint64_t offset, char *into, size_t len,
                    size_t *got) {
    if (!source->reads_at) {
        PyObject *at = PyObject_CallMethod(source->object, "seek", "K", (unsigned long long)offset);
        Py_XDECREF(at);
        if (!at) return -1;
    }
    while (*got < len) {
        size_t cap = len - *got;
        if (!source->reads_at && cap > piece_bytes) cap = piece_bytes;
        PyObject *answer =
            source->reads_at
                ? PyObject_CallMethod(source->object, "read_at", "Kn",
                                      (unsigned long long)(offset + *got), (Py_ssize_t)cap)
                : PyObject_CallMethod(source->object, "read", "n", (Py_ssize_t)cap);
        Py_ssize_t n = take_answer(answer, into + *got, cap);
        if (n < 0) return -1;
        if (n == 0) break;
        *got += (size_t)n;
    }
    return 0;
}

/* Leaves the exception set, which the caller's thread raises; one of another thread ends with it,
 * and err alone tells. */
static void note_exception(sft_error *err) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = PyUnicode_FromFormat("the source raised %R", value);
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    (void)sft_error_set(err, SFT_IO_READ, 0, utf8 ? utf8 : "the source raised an exception");
    PyErr_Clear();
    Py_XDECREF(text);
    PyErr_Restore(type, value, trace);
}

static sft_code object_read_at(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                               sft_error *err) {
    object_source *source = ctx;
    *got = 0;
    if (source->lock) PyThread_acquire_lock(source->lock, WAIT_LOCK);
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = PyErr_Occurred() ? -1 : read_all(source, offset, into, len, got);
    if (rc < 0) note_exception(err);
    PyGILState_Release(gil);
    if (source->lock) PyThread_release_lock(source->lock);
    return rc == 0 ? SFT_OK : SFT_IO_READ;
}

static void object_close(void *ctx) {
    PyGILState_STATE gil = PyGILState_Ensure();
    source_free(ctx);
    PyGILState_Release(gil);
}

static bool has(PyObject *object, const char *name) {
    return PyObject_HasAttrString(object, name);
}

static int fill_source(PyObject *given, object_source *source, uint64_t *size) {
    bool other = PyTuple_Check(given) || (has(given, "fs") && has(given, "path"));
    if (!other && has(given, "read_at")) { /* pyarrow's size is a method */
        PyObject *method = PyObject_GetAttrString(given, "size");
        other = method && PyCallable_Check(method);
        if (!method) PyErr_Clear();
        Py_XDECREF(method);
    }
    PyObject *object = other ? pysft_import_call("libsafetensors._sources", "adapt", given)
                             : Py_NewRef(given);
    source->object = object;
    if (!object) return -1;
    source->reads_at = has(object, "read_at");
    source->expects = has(object, "expect");
    PyObject *end = NULL;
    if (source->reads_at) {
        end = PyObject_GetAttrString(object, "size");
    } else {
        source->lock = PyThread_allocate_lock();
        if (!source->lock) return pysft_no_memory();
        end = PyObject_CallMethod(object, "seek", "ii", 0, 2);
        if (end == Py_None) pysft_replace(&end, PyObject_CallMethod(object, "tell", NULL));
    }
    *size = SFT_SIZE_UNKNOWN;
    int rc = !end ? -1 : end == Py_None ? 0 : pysft_uint_of(end, size);
    Py_XDECREF(end);
    return rc;
}

/* A hint: the exception of a failure stays set, and ends the next read. */
static void object_expect(void *ctx, const sft_run *runs, size_t count) {
    object_source *source = ctx;
    if (!source->expects) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *list = PyErr_Occurred() ? NULL : PyList_New((Py_ssize_t)count), *done = NULL;
    for (size_t i = 0; list && i < count; i++)
        pysft_list_put(&list, i, Py_BuildValue("(KK)", (unsigned long long)runs[i].offset,
                                               (unsigned long long)runs[i].len));
    if (list) done = PyObject_CallMethod(source->object, "expect", "O", list);
    Py_XDECREF(list);
    Py_XDECREF(done);
    PyGILState_Release(gil);
}

static const sft_source_vtable object_source_vtable = {
    sizeof(sft_source_vtable), object_read_at, object_close, object_expect, NULL
};

PyObject *pysft_source_object(const sft_source *source) {
    return ((object_source *)source->ctx)->object;
}

int pysft_source_of(PyObject *object, sft_source *out) {
    object_source *source = PyMem_Calloc(1, sizeof *source);
    *out = (sft_source){ NULL, NULL, 0, NULL, false };
    if (!source) return pysft_no_memory();
    if (fill_source(object, source, &out->size) < 0) {
        source_free(source);
        return -1;
    }
    out->ctx = source;
    out->vtable = &object_source_vtable;
    return 0;
}

bool pysft_is_source(PyObject *object) {
    if (PyUnicode_Check(object) || PyObject_CheckBuffer(object)) return false;
    if (PyObject_HasAttrString(object, "__fspath__")) return false;
    if (PyTuple_Check(object)) return true;
    if (has(object, "fs") && has(object, "path") && has(object, "open")) return true;
    return has(object, "read_at") || has(object, "read");
}
