/* Initialises the module: its state, and what each file adds to it. */
#include "core.h"

static const char *kind_name(sft_kind kind) {
    switch (kind) {
    case SFT_KIND_BOOL: return "bool";
    case SFT_KIND_UINT: return "uint";
    case SFT_KIND_INT: return "int";
    case SFT_KIND_FLOAT: return "float";
    case SFT_KIND_COMPLEX: return "complex";
    }
    return "";
}

static PyObject *dtype_table(pysft_state *state) {
    PyObject *table = PyDict_New();
    for (int i = 0; table && i < SFT_DTYPE_COUNT; i++) {
        const sft_dtype_info *row = sft_dtype_describe((sft_dtype)i);
        PyObject *facts = Py_BuildValue("(Is)", (unsigned)row->bits, kind_name(row->kind));
        state->dtype_names[i] = PyUnicode_InternFromString(row->name);
        if (!state->dtype_names[i] || pysft_dict_put(table, row->name, facts) < 0) Py_CLEAR(table);
    }
    return table;
}

static PyObject *code_table(void) {
    PyObject *table = PyDict_New();
    const sft_code_info *row;
    for (size_t i = 0; table && (row = sft_code_at(i)) != NULL; i++) {
        PyObject *facts =
            Py_BuildValue("(iss)", (int)row->code, row->sentence, pysft_exception(row->code));
        if (pysft_dict_put(table, row->name, facts) < 0) Py_CLEAR(table);
    }
    return table;
}

/* Steals value. */
static int add(PyObject *module, const char *name, PyObject *value) {
    int rc = PyModule_AddObjectRef(module, name, value);
    Py_XDECREF(value);
    return rc;
}

/* Our state would be separate per interpreter, but numpy and torch do not support it, nor does
 * releasing tensors from threads unknown to Python. */
static int refuse_subinterpreters(void) {
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    if (interpreter && PyInterpreterState_GetID(interpreter) == 0) return 0;
    PyErr_SetString(PyExc_ImportError, "libsafetensors does not support sub-interpreters");
    return -1;
}

static int core_exec(PyObject *module) {
    static int (*const parts[])(PyObject *) = {
        pysft_error_add,   pysft_hints_add,   pysft_wait_add,    pysft_memory_add,
        pysft_tensor_add,  pysft_file_add,    pysft_open_add,    pysft_save_add,
        pysft_writer_add,  pysft_tools_add,   pysft_convert_add, pysft_edit_add,
        pysft_arrow_add,   pysft_options_add, pysft_storage_add, pysft_shard_add,
        pysft_commit_add,  pysft_dataset_add, pysft_import_add,  pysft_remote_add,
        pysft_reader_add,
    };
    if (refuse_subinterpreters() < 0) return -1;
    if (add(module, "__version__", PyUnicode_FromString(sft_version())) < 0) return -1;
    if (add(module, "DTYPES", dtype_table(pysft_state_of(module))) < 0) return -1;
    if (add(module, "CODES", code_table()) < 0) return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module) < 0) return -1;
    return 0;
}

static int core_traverse(PyObject *module, visitproc visit, void *arg) {
    pysft_state *state = pysft_state_of(module);
    if (!state) return 0;
    Py_VISIT(state->error);
    Py_VISIT(state->missing);
    Py_VISIT(state->remote);
    for (int i = 0; i < PYSFT_TYPE_COUNT; i++) Py_VISIT(state->types[i]);
    return 0;
}

static int core_clear(PyObject *module) {
    pysft_state *state = pysft_state_of(module);
    if (!state) return 0;
    Py_CLEAR(state->error);
    Py_CLEAR(state->missing);
    Py_CLEAR(state->remote);
    for (int i = 0; i < PYSFT_TYPE_COUNT; i++) Py_CLEAR(state->types[i]);
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) Py_CLEAR(state->dtype_names[i]);
    pysft_numpy_clear(state);
    pysft_torch_clear(state);
    return 0;
}

static void core_free(void *module) {
    (void)core_clear(module);
}

static PyObject *build_info(PyObject *module, PyObject *none) {
    (void)module;
    (void)none;
    return PyUnicode_FromString(sft_build_info());
}

static PyMethodDef core_methods[] = {
    { "build_info", build_info, METH_NOARGS,
      "build_info($module, /)\n--\n\nHow the library was built, one fact per line." },
    { NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot core_slots[] = {
    { Py_mod_exec, (void *)core_exec },
#ifdef Py_GIL_DISABLED
    { Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
    { 0, NULL },
};

static struct PyModuleDef core_module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "libsafetensors._core",
    .m_doc = "The C library, as Python sees it. Private: use libsafetensors.",
    .m_size = sizeof(pysft_state),
    .m_methods = core_methods,
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&core_module);
}
