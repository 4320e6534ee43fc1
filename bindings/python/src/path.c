/* Paths and URLs from Python objects; what an output inherits from its input.
 * Tests: test_open.py. */
#include "remote.h"
#include "tools.h"

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
    return pysft_refuse(PyExc_ValueError, "expected a path to write to, found a URL: files of URLs "
                                          "are only read");
}

void pysft_path_free(pysft_path *path) {
    Py_CLEAR(path->bytes);
    pysft_remote_drop(path->remote);
    *path = (pysft_path){ NULL, NULL, NULL };
}

int pysft_name_of(PyObject *object, pysft_path *out) {
    PyObject *name = PyObject_GetAttrString(object, "name");
    *out = (pysft_path){ NULL, NULL, NULL };
    if (!name && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    if (name && PyUnicode_Check(name)) (void)pysft_path_of(name, out);
    PyErr_Clear();
    Py_XDECREF(name);
    return 0;
}

static int name_of(pysft_state *state, PyObject *object, pysft_path *out) {
    sft_error err = SFT_ERROR_INIT;
    const char *name = NULL;
    sft_code code;
    if (!PyUnicode_FSConverter(object, &out->bytes)) return -1;
    const char *url = PyBytes_AsString(out->bytes);
    PYSFT_NO_GIL(code = sft_remote_name(pysft_remote_of(out->remote), url, &name, &err));
    if (code) return pysft_fail(state, &err, NULL);
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

/* ── Output: link policy, and permissions and time inherited from the input ── */

static const char *const link_words[] = { "replace", "follow", "refuse", NULL };

int pysft_link_of(PyObject *word, sft_link_policy *out) {
    int at = 0;
    *out = SFT_LINK_REPLACE;
    if (!word) return 0;
    if (pysft_choice_of(word, "link", link_words, &at) < 0) return -1;
    *out = (sft_link_policy)at;
    return 0;
}

/* New reference to os.stat of a path. */
static PyObject *stat_of(const char *path) {
    PyObject *text = PyUnicode_DecodeFSDefault(path);
    PyObject *facts = pysft_import_call("os", "stat", text);
    Py_XDECREF(text);
    return facts;
}

static int fact_of(PyObject *facts, const char *name, long long *out) {
    PyObject *value = PyObject_GetAttrString(facts, name);
    *out = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    return PyErr_Occurred() ? -1 : 0;
}

/* Permission bits of an existing file; all bits if there is none. */
static int mode_at(const char *path, long long *mode) {
    PyObject *facts = stat_of(path);
    int status = 0;
    *mode = 0777;
    if (facts) status = fact_of(facts, "st_mode", mode);
    else if (!PyErr_ExceptionMatches(PyExc_OSError)) return -1;
    else PyErr_Clear();
    Py_XDECREF(facts);
    return status;
}

void pysft_path_flags(sft_path_options *options, int sync, int overwrite, int in_place_unsafe) {
    options->no_sync = !sync;
    options->no_clobber = !overwrite;
    options->in_place_unsafe = in_place_unsafe != 0;
}

int pysft_inherit(const char *from, const char *to, bool keep_mtime, sft_path_options *options) {
    long long mode, mtime, there;
    if (!from) return 0;
    PyObject *facts = stat_of(from);
    int status = facts ? fact_of(facts, "st_mode", &mode) : -1;
    if (status == 0) status = fact_of(facts, "st_mtime_ns", &mtime);
    Py_XDECREF(facts);
    if (status < 0 || mode_at(to, &there) < 0) return -1;
    options->mode = (uint32_t)(mode & there) & 0777;
    if (options->mode == 0) options->mode = 0600;
    options->has_mtime = keep_mtime;
    options->mtime_ns = keep_mtime ? mtime : 0;
    return 0;
}
