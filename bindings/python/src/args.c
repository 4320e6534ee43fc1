/* From Python's arguments to the library's, and texts back. */
#include "core.h"

#include <string.h>

int pysft_path_of(PyObject *object, pysft_path *out) {
    PyObject *bytes = NULL;
    *out = (pysft_path){ NULL, NULL };
    if (!PyUnicode_FSConverter(object, &bytes)) return -1;
    out->bytes = bytes;
    out->text = PyBytes_AsString(bytes);
    return out->text ? 0 : -1;
}

void pysft_path_free(pysft_path *path) {
    Py_CLEAR(path->bytes);
    path->text = NULL;
}

int pysft_span_of(PyObject *text, const char *what, sft_span *out) {
    Py_ssize_t len;
    *out = (sft_span){ NULL, 0 };
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "%s: expected str, found %R", what, Py_TYPE(text));
        return -1;
    }
    out->data = PyUnicode_AsUTF8AndSize(text, &len);
    if (!out->data) return -1;
    out->len = (size_t)len;
    return 0;
}

int pysft_uint_of(PyObject *object, uint64_t *out) {
    PyObject *number = PyNumber_Index(object);
    if (!number) return -1;
    *out = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return *out == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

int pysft_dtype_of(PyObject *text, sft_dtype *out) {
    sft_span name;
    if (pysft_span_of(text, "dtype", &name) < 0) return -1;
    if (sft_dtype_parse(name, out)) return 0;
    PyErr_Format(PyExc_ValueError, "dtype: expected a name such as 'F32', found %R", text);
    return -1;
}

static PyObject *names_joined(const char *const *names) {
    PyObject *all = PyUnicode_FromString("");
    for (size_t i = 0; all && names[i]; i++) {
        PyObject *more = PyUnicode_FromFormat(i ? "%U, '%s'" : "%U'%s'", all, names[i]);
        pysft_replace(&all, more);
    }
    return all;
}

int pysft_choice_of(PyObject *text, const char *what, const char *const *names, int *out) {
    sft_span given;
    if (pysft_span_of(text, what, &given) < 0) return -1;
    for (int i = 0; names[i]; i++) {
        if (!sft_span_equal(given, sft_span_cstr(names[i]))) continue;
        *out = i;
        return 0;
    }
    PyObject *all = names_joined(names);
    if (all) PyErr_Format(PyExc_ValueError, "%s: expected one of %U, found %R", what, all, text);
    Py_XDECREF(all);
    return -1;
}

PyObject *pysft_text(sft_span span) {
    return PyUnicode_DecodeUTF8(span.len ? span.data : "", (Py_ssize_t)span.len, "replace");
}

PyObject *pysft_text_take(sft_buffer *buffer) {
    PyObject *text = pysft_text((sft_span){ buffer->data, buffer->len });
    sft_buffer_free(buffer);
    return text;
}

PyObject *pysft_bytes_take(sft_buffer *buffer) {
    PyObject *bytes = PyBytes_FromStringAndSize(buffer->data, (Py_ssize_t)buffer->len);
    sft_buffer_free(buffer);
    return bytes;
}

/* items: list of tuples (key, value), which keeps the strings. */
static int fill_pairs(PyObject *items, const char *what, pysft_pairs *out) {
    for (size_t i = 0; i < out->count; i++) {
        PyObject *pair = PyList_GetItem(items, (Py_ssize_t)i);
        PyObject *key = pair ? PyTuple_GetItem(pair, 0) : NULL;
        PyObject *value = key ? PyTuple_GetItem(pair, 1) : NULL;
        if (!value) return -1;
        if (pysft_span_of(key, what, &out->at[i].key) < 0) return -1;
        if (pysft_span_of(value, what, &out->at[i].value) < 0) return -1;
    }
    return 0;
}

int pysft_pairs_of(PyObject *mapping, const char *what, pysft_pairs *out) {
    *out = (pysft_pairs){ NULL, 0, NULL };
    if (!mapping || mapping == Py_None) return 0;
    PyObject *items = PyMapping_Items(mapping);
    if (!items) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: expected a mapping of str to str, found %R", what,
                     Py_TYPE(mapping));
        return -1;
    }
    out->keep = items;
    out->count = (size_t)PyList_Size(items);
    out->at = PyMem_Malloc((out->count ? out->count : 1) * sizeof *out->at);
    if (!out->at) PyErr_NoMemory();
    if (out->at && fill_pairs(items, what, out) == 0) return 0;
    pysft_pairs_free(out);
    return -1;
}

void pysft_pairs_free(pysft_pairs *pairs) {
    PyMem_Free(pairs->at);
    Py_CLEAR(pairs->keep);
    *pairs = (pysft_pairs){ NULL, 0, NULL };
}
