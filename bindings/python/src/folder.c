/* A folder as a model: the index in it, or its one file. */
#include "tools.h"

static const char suffix[] = ".safetensors";

/* Whether a name of the folder is an index (or, with `files`, a model's file). */
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

/* How many of the names are wanted; *out: the last of them, borrowed of names. */
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
        PyObject *module = PyImport_ImportModule("os.path");
        PyObject *joined = module ? PyObject_CallMethod(module, "join", "OO", folder, name) : NULL;
        Py_XDECREF(module);
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
    PyObject *module = PyImport_ImportModule("os");
    PyObject *names = module ? PyObject_CallMethod(module, "listdir", "O", folder) : NULL;
    PyObject *chosen = names ? chosen_in(state, folder, names, whole.text) : NULL;
    int rc = chosen ? pysft_path_of(chosen, out) : -1;
    Py_XDECREF(chosen);
    Py_XDECREF(names);
    Py_XDECREF(module);
    pysft_path_free(&whole);
    return rc;
}

int pysft_model_path_of(pysft_state *state, PyObject *object, pysft_path *out) {
    if (pysft_path_of(object, out) < 0) return -1;
    PyObject *module = PyImport_ImportModule("os.path");
    PyObject *answer = module ? PyObject_CallMethod(module, "isdir", "O", object) : NULL;
    int folder = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(module);
    if (folder == 0) return 0;
    pysft_path_free(out);
    return folder < 0 ? -1 : pysft_path_in(state, object, out);
}
