/* Converts Python arguments to the library's, and its text to str. Tests: test_signatures.py. */
#include "core.h"

int pysft_span_of(PyObject *text, const char *what, sft_span *out) {
    Py_ssize_t len;
    *out = (sft_span){ NULL, 0 };
    if (!PyUnicode_Check(text))
        return pysft_refuse(PyExc_TypeError, "%s: expected str, found %R", what, Py_TYPE(text));
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

int pysft_uint_arg(PyObject *object, void *out) {
    return pysft_uint_of(object, out) == 0;
}

static int int_of(PyObject *number, int *out) {
    long value = PyLong_AsLong(number);
    *out = (int)value;
    if (value == -1 && PyErr_Occurred()) return -1;
    if (value == *out) return 0;
    return pysft_refuse(PyExc_OverflowError, "Python int too large to convert to C int");
}

int pysft_two_of(PyObject *pair, const char *what, int out[2]) {
    bool two = PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
    bool integers = two && PyLong_Check(PyTuple_GetItem(pair, 0))
                    && PyLong_Check(PyTuple_GetItem(pair, 1));
    if (!integers)
        return pysft_refuse(PyExc_TypeError, "%s: expected a tuple of two integers, found %R", what,
                            pair);
    if (int_of(PyTuple_GetItem(pair, 0), &out[0]) < 0) return -1;
    return int_of(PyTuple_GetItem(pair, 1), &out[1]);
}

int pysft_dtype_of(PyObject *text, sft_dtype *out) {
    sft_span name;
    if (pysft_span_of(text, "dtype", &name) < 0) return -1;
    if (sft_dtype_parse(name, out)) return 0;
    return pysft_refuse(PyExc_ValueError, "dtype: expected a name such as 'F32', found %R", text);
}

int pysft_choice_of(PyObject *text, const char *what, const char *const *names, int *out) {
    sft_span given;
    if (pysft_span_of(text, what, &given) < 0) return -1;
    for (int i = 0; names[i]; i++) {
        if (!sft_span_equal(given, sft_span_cstr(names[i]))) continue;
        *out = i;
        return 0;
    }
    PyObject *all = PyUnicode_FromString("");
    for (size_t i = 0; all && names[i]; i++)
        pysft_replace(&all, PyUnicode_FromFormat(i ? "%U, '%s'" : "%U'%s'", all, names[i]));
    if (all) PyErr_Format(PyExc_ValueError, "%s: expected one of %U, found %R", what, all, text);
    Py_XDECREF(all);
    return -1;
}

int pysft_level_of(PyObject *text, sft_level *out) {
    static const char *const levels[] = { "compat", "default", "strict", NULL };
    int level = SFT_LEVEL_DEFAULT;
    if (text && pysft_choice_of(text, "level", levels, &level) < 0) return -1;
    *out = (sft_level)level;
    return 0;
}

int pysft_threads_of(int threads, uint32_t *out) {
    *out = (uint32_t)threads;
    if (threads >= 0) return 0;
    return pysft_refuse(PyExc_ValueError,
                        "expected threads to be 0 (one per processor) or more");
}

PyObject *pysft_text(sft_span span) {
    return PyUnicode_DecodeUTF8(span.len ? span.data : "", (Py_ssize_t)span.len, "replace");
}

int pysft_dict_put(PyObject *dict, const char *key, PyObject *value) {
    int status = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return status;
}

void pysft_list_put(PyObject **list, size_t at, PyObject *item) {
    if (!item || PyList_SetItem(*list, (Py_ssize_t)at, item) < 0) Py_CLEAR(*list);
}

bool pysft_append(PyObject *list, PyObject *item) {
    bool fine = list && item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return fine;
}

void pysft_list_add(PyObject **list, PyObject *item) {
    if (!pysft_append(*list, item)) Py_CLEAR(*list);
}

/* Adds the key whose value could not be encoded to the UnicodeEncodeError that is set. */
static void add_key(PyObject *key) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *reason = value ? PyObject_GetAttrString(value, "reason") : NULL;
    PyObject *more = reason ? PyUnicode_FromFormat("%S, in the value of %R", reason, key) : NULL;
    if (more) (void)PyObject_SetAttrString(value, "reason", more);
    Py_XDECREF(reason);
    Py_XDECREF(more);
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

/* Fills one pair; the list's item is replaced by a tuple, which keeps the strings alive. */
static int fill_pair(PyObject *items, Py_ssize_t at, const char *what, sft_pair *out) {
    PyObject *item = PyList_GetItem(items, at);
    PyObject *pair = item ? PySequence_Tuple(item) : NULL;
    if (!pair || PyList_SetItem(items, at, pair) < 0) return -1;
    if (PyTuple_Size(pair) != 2)
        return pysft_refuse(PyExc_TypeError,
                            "%s: expected items of a key and a value, found %zd parts", what,
                            PyTuple_Size(pair));
    PyObject *key = PyTuple_GetItem(pair, 0), *value = PyTuple_GetItem(pair, 1);
    if (pysft_span_of(key, what, &out->key) < 0) return -1;
    if (!PyUnicode_Check(value))
        return pysft_refuse(PyExc_TypeError, "%s: of the key %R expected str, found %R", what, key,
                            Py_TYPE(value));
    if (pysft_span_of(value, what, &out->value) == 0) return 0;
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) add_key(key);
    return -1;
}

int pysft_pairs_of(PyObject *mapping, const char *what, pysft_pairs *out) {
    *out = (pysft_pairs){ NULL, 0, NULL };
    if (!mapping || mapping == Py_None) return 0;
    out->keep = PyMapping_Items(mapping);
    if (!out->keep && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: expected a mapping of str to str, found %R", what,
                     Py_TYPE(mapping));
    }
    if (!out->keep) return -1;
    out->count = (size_t)PyList_Size(out->keep);
    out->at = PyMem_Malloc((out->count ? out->count : 1) * sizeof *out->at);
    int rc = out->at ? 0 : pysft_no_memory();
    for (size_t i = 0; rc == 0 && i < out->count; i++)
        rc = fill_pair(out->keep, (Py_ssize_t)i, what, &out->at[i]);
    if (rc < 0) pysft_pairs_free(out);
    return rc;
}

void pysft_pairs_free(pysft_pairs *pairs) {
    PyMem_Free(pairs->at);
    Py_CLEAR(pairs->keep);
    *pairs = (pysft_pairs){ NULL, 0, NULL };
}

int pysft_names_of(PyObject *names, const char *what, pysft_names *out) {
    *out = (pysft_names){ NULL, NULL, 0 };
    if (PyUnicode_Check(names))
        return pysft_refuse(PyExc_TypeError, "%s: expected several names, found one str", what);
    out->held = PySequence_Tuple(names);
    if (!out->held) return -1;
    out->count = (size_t)PyTuple_Size(out->held);
    out->items = PyMem_Calloc(out->count + 1, sizeof *out->items);
    int rc = out->items ? 0 : pysft_no_memory();
    for (size_t i = 0; rc == 0 && i < out->count; i++)
        rc = pysft_span_of(PyTuple_GetItem(out->held, (Py_ssize_t)i), what, &out->items[i]);
    if (rc < 0) pysft_names_free(out);
    return rc;
}

void pysft_names_free(pysft_names *names) {
    PyMem_Free(names->items);
    Py_CLEAR(names->held);
    *names = (pysft_names){ NULL, NULL, 0 };
}
