/* open(), and models for functions that compute. Tests: test_open.py, test_sources.py. */
#include "piece.h"

#include <string.h>

/* The URL by which a File is opened again; NULL, without an exception, if its name leaves out what
 * is secret. A name on the web is that of the file; others may be of folders. */
static PyObject *url_again(const pysft_store *store, PyObject *source) {
    const char *name = pysft_store_path(store), *given = PyUnicode_AsUTF8AndSize(source, NULL);
    const char *host = strstr(name, "://");
    const char *number = host && host[3] == '[' ? host + 4 : NULL; /* "https://[1]@host/path" */
    bool secret = number && strncmp(number + strspn(number, "0123456789"), "]@", 2) == 0;
    if (secret || !given) return NULL;
    return strncmp(given, "http", 4) == 0 ? PyUnicode_FromString(name) : Py_NewRef(source);
}

static PyObject *new_file(pysft_state *state, pysft_store *store, PyObject *source,
                          PyObject *kwargs) {
    bool is_path = !PyObject_CheckBuffer(source) && !pysft_is_source(source);
    bool is_url = is_path && pysft_is_url(source);
    PyObject *again = is_url ? url_again(store, source) : Py_NewRef(source);
    if (!again) is_path = false;
    PyObject *how = NULL, *file = NULL; /* the path and the options, to open the File again */
    if (is_path) {
        PyObject *options = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
        if (options && kwargs && PyDict_DelItemString(options, "source") < 0) PyErr_Clear();
        how = options ? PyTuple_Pack(2, again, options) : NULL;
        Py_XDECREF(options);
    }
    Py_XDECREF(again);
    if (how || !is_path) file = pysft_file_new(state, store, how);
    else pysft_store_drop(store);
    Py_XDECREF(how);
    return file;
}

pysft_store *pysft_model_open(pysft_state *state, PyObject *path) {
    pysft_open_options options = PYSFT_OPEN_OPTIONS_INIT;
    pysft_path given;
    options.mode = PYSFT_READ;
    if (pysft_is_a(state, path, PYSFT_TYPE_FILE)) return pysft_file_store(path);
    if (pysft_is_url(path)) return pysft_store_open(state, path, &options);
    if (pysft_path_of(path, &given) < 0) return NULL;
    PyObject *text = PyUnicode_DecodeFSDefault(given.text);
    pysft_store *store = text ? pysft_store_open(state, text, &options) : NULL;
    Py_XDECREF(text);
    pysft_path_free(&given);
    return store;
}

static PyObject *core_open(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "source",      "mode",             "level", "legacy",
                             "header_only", "max_header_bytes", "beneath", "values", NULL };
    static const char *const modes[] = { "auto", "map", "cow", "read", "copy", NULL };
    PyObject *source, *mode_text = NULL, *level_text = NULL, *limit = Py_None;
    int mode = PYSFT_AUTO, legacy = 0, header_only = 0, values = 0;
    pysft_open_options options = PYSFT_OPEN_OPTIONS_INIT;
    PyObject *beneath = Py_None;
    pysft_path folder = { NULL, NULL, NULL };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOppOOp:open", names, &source, &mode_text,
                                     &level_text, &legacy, &header_only, &limit, &beneath,
                                     &values))
        return NULL;
    if (mode_text && pysft_choice_of(mode_text, "mode", modes, &mode) < 0) return NULL;
    if (pysft_level_of(level_text, &options.file.level) < 0) return NULL;
    if (limit != Py_None && pysft_uint_of(limit, &options.file.max_header_bytes) < 0) return NULL;
    options.mode = (pysft_mode)mode;
    options.values = values;
    options.file.legacy = legacy;
    options.file.header_only = header_only;
    if (beneath != Py_None && pysft_path_of(beneath, &folder) < 0) return NULL;
    options.file.beneath = folder.text;
    pysft_state *state = pysft_state_of(module);
    pysft_store *store = pysft_store_open(state, source, &options);
    pysft_path_free(&folder);
    return store ? new_file(state, store, source, kwargs) : NULL;
}

PyMethodDef pysft_open_functions[] = {
    { "open", PYSFT_KEYWORDS(core_open),
      "open($module, /, source, *, mode='auto', level='default', legacy=False,\n"
      "     header_only=False, max_header_bytes=None, beneath=None, values=False)\n--\n\n"
      "Open a model; returns a File. Reads and checks the header, not the data.\n\n"
      "source: a path (of a file, an index.json, or a folder with either) or a URL (https, hf,\n"
      "s3, gs; see libsafetensors.remote), of which only what is needed is fetched; bytes in\n"
      "memory, which are locked while in use; an object with read and seek, or with size (or\n"
      "None) and read_at(offset, length), such as pyarrow's; a file of fsspec, or a pair\n"
      "(filesystem or store of obstore, path).\n"
      "mode: 'auto' maps a path privately (copy-on-write: tensors are writable, the file is not\n"
      "changed) or reads it if it cannot be mapped, and on Windows always, where a private map\n"
      "counts in full as memory in use; 'map' maps read-only, or shares the memory of\n"
      "bytes; 'cow' maps privately; 'read' reads what is asked for; 'copy' does, too, but copies\n"
      "slices of several runs from a map: faster, unless the file is cut short meanwhile, which\n"
      "ends the process.\n"
      "level: how strictly the file is checked, 'compat' (as the official package), 'default' or\n"
      "'strict'. legacy: read the layout of 2022. header_only: do not check the data's size.\n"
      "max_header_bytes: None is 100 MB.\n"
      "beneath: a folder the path starts with, if the rest of the path comes from a file: links\n"
      "must not lead out of it, and only a regular file is opened.\n"
      "values: read quantised tensors as the values that they stand for: float32 by the name\n"
      "and in the shape that the model expects, computed as they are read; what they are\n"
      "computed from is not there. One whose values cannot be computed raises TypeError when it\n"
      "is read, which says why; File.layouts names all of them.\n\n"
      "SafetensorError for an invalid file, OSError from the system, ValueError, TypeError." },
    { NULL, NULL, 0, NULL },
};
