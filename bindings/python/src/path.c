/* Paths and URLs from Python objects. */
#include "remote.h"

/* An fsspec.OpenFile has open() but no read() before that call. */
static void explain_path(PyObject *object) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    bool other = PyUnicode_Check(object) || !PyErr_GivenExceptionMatches(type, PyExc_TypeError);
    if (other || !PyObject_HasAttrString(object, "open")
        || !PyObject_HasAttrString(object, "fs")) {
        PyErr_Restore(type, value, trace);
        return;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Format(PyExc_TypeError,
                 "expected str, bytes or os.PathLike object, not %R; call its open(), which "
                 "gives a file object",
                 Py_TYPE(object));
}

int pysft_path_of(PyObject *object, pysft_path *out) {
    PyObject *bytes = NULL;
    *out = (pysft_path){ NULL, NULL, NULL };
    if (!PyUnicode_FSConverter(object, &bytes)) {
        explain_path(object);
        return -1;
    }
    out->bytes = bytes;
    out->text = PyBytes_AsString(bytes);
    return out->text ? 0 : -1;
}

int pysft_output_of(PyObject *object, pysft_path *out) {
    *out = (pysft_path){ NULL, NULL, NULL };
    if (!pysft_is_url(object)) return pysft_path_of(object, out);
    PyErr_SetString(PyExc_ValueError, "expected a path to write to, found a URL: files of URLs "
                                      "are only read");
    return -1;
}

void pysft_path_free(pysft_path *path) {
    Py_CLEAR(path->bytes);
    pysft_remote_drop(path->remote);
    *path = (pysft_path){ NULL, NULL, NULL };
}

static int name_of(pysft_state *state, PyObject *object, pysft_path *out) {
    sft_error err = SFT_ERROR_INIT;
    const char *name = NULL;
    sft_code code;
    if (!PyUnicode_FSConverter(object, &out->bytes)) return -1;
    const char *url = PyBytes_AsString(out->bytes);
    Py_BEGIN_ALLOW_THREADS
    code = sft_remote_name(pysft_remote_of(out->remote), url, &name, &err);
    Py_END_ALLOW_THREADS
    if (code) {
        (void)pysft_raise(state, &err, NULL);
        return -1;
    }
    pysft_replace(&out->bytes, PyBytes_FromString(name));
    if (out->bytes) out->text = PyBytes_AsString(out->bytes);
    return out->bytes ? 0 : -1;
}

int pysft_input_of(pysft_state *state, PyObject *object, pysft_path *out) {
    if (!pysft_is_url(object)) return pysft_path_of(object, out);
    *out = (pysft_path){ NULL, NULL, pysft_remote_default(state) };
    if (!out->remote) return -1;
    if (name_of(state, object, out) == 0) return 0;
    pysft_path_free(out);
    return -1;
}
