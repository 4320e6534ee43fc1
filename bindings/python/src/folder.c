/* Finds the model in a folder: its index, or its one file. */
#include "tools.h"

static const char suffix[] = ".safetensors";

/* Whether a name is an index's (or, with `files`, a model file's). */
static int is_wanted(PyObject *name, bool files) {
    pysft_path path;
    if (pysft_path_of(name, &path) < 0) return -1;
    sft_span text = sft_span_cstr(path.text), end = sft_span_cstr(suffix);
    bool wanted = !files && sft_path_is_index(path.text);
    if (files && text.len > end.len && text.data[0] != '.')
        wanted = sft_span_equal((sft_span){ text.data + text.len - end.len, end.len }, end);
    pysft_path_free(&path);
    return wanted;
}

/* How many of the names match; *out is the last match, borrowed from names. */
static Py_ssize_t count_wanted(PyObject *names, bool files, PyObject **out) {
    Py_ssize_t found = 0;
    for (Py_ssize_t i = 0; i < PyList_Size(names); i++) {
        PyObject *name = PyList_GetItem(names, i);
        int wanted = is_wanted(name, files);
        if (wanted < 0) return -1;
        if (wanted) *out = name;
        found += wanted;
    }
    return found;
}

static PyObject *chosen_in(pysft_state *state, PyObject *folder, PyObject *names,
                           const char *path) {
    PyObject *name = NULL;
    char text[128];
    Py_ssize_t indexes = count_wanted(names, false, &name), files = 0;
    if (indexes == 0) files = count_wanted(names, true, &name);
    if (indexes < 0 || files < 0) return NULL;
    if (indexes + files == 1) {
        PyObject *join = pysft_import("os.path", "join");
        PyObject *joined = join ? PyObject_CallFunctionObjArgs(join, folder, name, NULL) : NULL;
        Py_XDECREF(join);
        return joined;
    }
    PyOS_snprintf(text, sizeof text,
                  "expected a folder with one index.json or one file, found %zd indexes and %zd "
                  "files",
                  indexes, files);
    return pysft_raise_code(state, SFT_IO_NOT_FILE, text, path);
}

int pysft_path_in(pysft_state *state, PyObject *folder, pysft_path *out) {
    pysft_path whole;
    *out = (pysft_path){ NULL, NULL };
    if (pysft_path_of(folder, &whole) < 0) return -1;
    PyObject *names = pysft_import_call("os", "listdir", folder);
    PyObject *chosen = names ? chosen_in(state, folder, names, whole.text) : NULL;
    int rc = chosen ? pysft_path_of(chosen, out) : -1;
    Py_XDECREF(chosen);
    Py_XDECREF(names);
    pysft_path_free(&whole);
    return rc;
}

int pysft_model_path_of(pysft_state *state, PyObject *object, pysft_path *out) {
    if (pysft_path_of(object, out) < 0) return -1;
    PyObject *answer = pysft_import_call("os.path", "isdir", object);
    int folder = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (folder == 0) return 0;
    pysft_path_free(out);
    return folder < 0 ? -1 : pysft_path_in(state, object, out);
}
