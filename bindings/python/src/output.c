/* Output paths: link policy, and permissions and time inherited from the input. */
#include "tools.h"

static const char *const link_words[] = { "replace", "follow", "refuse", NULL };

int pysft_link_of(PyObject *word, sft_link_policy *out) {
    int at = 0;
    *out = SFT_LINK_REPLACE;
    if (!word) return 0;
    if (pysft_choice_of(word, "link", link_words, &at) < 0) return -1;
    *out = (sft_link_policy)at;
    return 0;
}

int pysft_name_of(PyObject *object, pysft_path *out) {
    PyObject *name = PyObject_GetAttrString(object, "name");
    *out = (pysft_path){ NULL, NULL, NULL };
    if (!name && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    bool known = name && PyUnicode_Check(name) && pysft_path_of(name, out) == 0;
    PyErr_Clear();
    Py_XDECREF(name);
    if (!known) out->text = "-";
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
