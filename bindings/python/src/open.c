/* open(). */
#include "piece.h"

static PyObject *core_open(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "source",      "mode",             "level", "legacy",
                             "header_only", "max_header_bytes", "beneath", NULL };
    static const char *const modes[] = { "auto", "map", "cow", "read", NULL };
    static const char *const levels[] = { "compat", "default", "strict", NULL };
    PyObject *source, *mode_text = NULL, *level_text = NULL, *limit = Py_None;
    int mode = PYSFT_AUTO, level = SFT_LEVEL_DEFAULT, legacy = 0, header_only = 0;
    pysft_open_options options = PYSFT_OPEN_OPTIONS_INIT;
    PyObject *beneath = Py_None;
    pysft_path folder = { NULL, NULL };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOppOO:open", names, &source, &mode_text,
                                     &level_text, &legacy, &header_only, &limit, &beneath))
        return NULL;
    if (mode_text && pysft_choice_of(mode_text, "mode", modes, &mode) < 0) return NULL;
    if (level_text && pysft_choice_of(level_text, "level", levels, &level) < 0) return NULL;
    if (limit != Py_None && pysft_uint_of(limit, &options.max_header_bytes) < 0) return NULL;
    options.mode = (pysft_mode)mode;
    options.level = (sft_level)level;
    options.legacy = legacy;
    options.header_only = header_only;
    if (beneath != Py_None && pysft_path_of(beneath, &folder) < 0) return NULL;
    options.beneath = folder.text;
    pysft_state *state = pysft_state_of(module);
    pysft_store *store = pysft_store_open(state, source, &options);
    pysft_path_free(&folder);
    return store ? pysft_file_new(state, store) : NULL;
}

static PyMethodDef open_methods[] = {
    { "open", PYSFT_KEYWORDS(core_open),
      "open($module, /, source, *, mode='auto', level='default', legacy=False,\n"
      "     header_only=False, max_header_bytes=None, beneath=None)\n--\n\n"
      "source: a path (of a file, an index.json or a folder with one); bytes in memory; or an\n"
      "object with read and seek, or with size and read_at(offset, length).\n"
      "mode: 'auto' maps privately (copy-on-write), or reads where nothing can be mapped; 'map'\n"
      "shares a read-only map, and of bytes in memory lends them; 'cow'; 'read'.\n"
      "beneath: the folder that the path begins with, where the rest was named by a file: no link\n"
      "leads out of it, and only a regular file is opened." },
    { NULL, NULL, 0, NULL },
};

int pysft_open_add(PyObject *module) {
    return PyModule_AddFunctions(module, open_methods);
}
