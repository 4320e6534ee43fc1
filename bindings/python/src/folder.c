/* Finds the model in a folder: its index, or its one file. Tests: test_open.py. */
#include "tools.h"

#include "safetensors_io.h"
#include "safetensors_remote.h"

#include <string.h>

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

/* The one name in the folder that is opened; NULL with an exception. Borrowed from names. */
static PyObject *chosen_in(pysft_state *state, PyObject *names, const char *path) {
    PyObject *name = NULL;
    char text[128];
    Py_ssize_t indexes = count_wanted(names, false, &name), files = 0;
    if (indexes == 0) files = count_wanted(names, true, &name);
    if (indexes < 0 || files < 0) return NULL;
    if (indexes + files == 1) return name;
    PyOS_snprintf(text, sizeof text,
                  "expected a folder with one index.json or one file, found %ld indexes and %ld "
                  "files",
                  (long)indexes, (long)files);
    return pysft_raise_code(state, SFT_IO_NOT_FILE, text, path);
}

/* ── Folders of servers ── */

typedef struct listing {
    PyObject *names;
    bool failed;
} listing;

/* Called without the GIL. */
static bool take_name(void *ctx, const sft_listed *entry) {
    listing *list = ctx;
    if (entry->folder) return true;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *name = pysft_text(sft_span_cstr(entry->name));
    list->failed = !name || PyList_Append(list->names, name) < 0;
    Py_XDECREF(name);
    PyGILState_Release(gil);
    return !list->failed;
}

static PyObject *names_of_url(pysft_state *state, const pysft_path *folder) {
    const sft_files *files = pysft_remote_files(folder->remote);
    listing list = { PyList_New(0), false };
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (!list.names) return NULL;
    PYSFT_NO_GIL(code = files->vtable->list(files->ctx, folder->text, take_name, &list, &err));
    if (!code && !list.failed) return list.names;
    Py_DECREF(list.names);
    return list.failed ? NULL : pysft_raise(state, &err, folder->text);
}

/* ── Folders ── */

/* New bytes: the path of the file of that name in the folder. */
static PyObject *joined(const pysft_path *folder, PyObject *name) {
    PyObject *path = NULL;
    pysft_path last;
    if (pysft_path_of(name, &last) < 0) return NULL;
    if (folder->remote) {
        size_t len = strlen(folder->text);
        bool slash = len > 0 && folder->text[len - 1] == '/';
        path = PyBytes_FromFormat("%s%s%s", folder->text, slash ? "" : "/", last.text);
    } else {
        PyObject *both = Py_BuildValue("(OO)", folder->bytes, last.bytes);
        path = pysft_import_apply("os.path", "join", both);
    }
    pysft_path_free(&last);
    return path;
}

int pysft_path_in(pysft_state *state, pysft_path *path) {
    PyObject *names = NULL;
    if (path->remote) {
        names = names_of_url(state, path);
    } else {
        PyObject *text = PyUnicode_DecodeFSDefault(path->text);
        names = pysft_import_call("os", "listdir", text);
        Py_XDECREF(text);
    }
    PyObject *name = names ? chosen_in(state, names, path->text) : NULL;
    PyObject *bytes = name ? joined(path, name) : NULL;
    Py_XDECREF(names);
    if (bytes) {
        pysft_replace(&path->bytes, bytes);
        path->text = PyBytes_AsString(bytes);
        return 0;
    }
    pysft_path_free(path);
    return -1;
}

/* Whether a path is a folder's: 1, 0, or -1 with an exception. */
static int is_folder(const pysft_path *path, PyObject *object) {
    if (path->remote) return sft_remote_is_folder(path->text);
    PyObject *answer = pysft_import_call("os.path", "isdir", object);
    int folder = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return folder;
}

int pysft_model_path_of(pysft_state *state, PyObject *object, pysft_path *out) {
    if (pysft_input_of(state, object, out) < 0) return -1;
    int folder = is_folder(out, object);
    if (folder == 0) return 0;
    if (folder > 0) return pysft_path_in(state, out);
    pysft_path_free(out);
    return -1;
}

int pysft_readable_of(pysft_state *state, PyObject *object, pysft_readable *out) {
    *out = (pysft_readable){ .is_object = pysft_is_source(object) };
    if (!out->is_object) return pysft_model_path_of(state, object, &out->path);
    if (pysft_name_of(object, &out->path) < 0) return -1;
    if (!out->path.text) out->path.text = "-";
    if (pysft_source_of(object, &out->first) < 0) return -1;
    if (pysft_source_of(object, &out->again) == 0) return 0;
    sft_source_close(&out->first);
    return -1;
}
