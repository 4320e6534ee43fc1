/* Initialises the module. Its types, functions and tables are made when they are first asked for,
 * so that importing it takes no longer than it must. Tests: test_lazy.py. */
#include "core.h"
#include "host.h"

#include <string.h>

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

static PyObject *dtype_table(pysft_state *Py_UNUSED(state)) {
    PyObject *table = PyDict_New();
    for (int i = 0; table && i < SFT_DTYPE_COUNT; i++) {
        const sft_dtype_info *row = sft_dtype_describe((sft_dtype)i);
        PyObject *facts = Py_BuildValue("(Is)", (unsigned)row->bits, kind_name(row->kind));
        if (pysft_dict_put(table, row->name, facts) < 0) Py_CLEAR(table);
    }
    return table;
}

static PyObject *code_table(pysft_state *Py_UNUSED(state)) {
    PyObject *table = PyDict_New();
    const sft_code_info *row;
    for (size_t i = 0; table && (row = sft_code_at(i)) != NULL; i++) {
        PyObject *facts =
            Py_BuildValue("(iss)", (int)row->code, row->sentence, pysft_exception(row->code));
        if (pysft_dict_put(table, row->name, facts) < 0) Py_CLEAR(table);
    }
    return table;
}

/* ── Names that are made when they are first asked for ── */

static const pysft_type_row type_rows[PYSFT_TYPE_COUNT] = {
    [PYSFT_TYPE_FILE] = { &pysft_file_spec, pysft_file_register },
    [PYSFT_TYPE_TENSOR] = { &pysft_tensor_spec, NULL },
    [PYSFT_TYPE_MEMORY] = { &pysft_memory_spec, NULL },
    [PYSFT_TYPE_WRITER] = { &pysft_writer_spec, NULL },
    [PYSFT_TYPE_STREAM] = { &pysft_stream_spec, NULL },
    [PYSFT_TYPE_OPTIONS] = { &pysft_options_spec, NULL },
    [PYSFT_TYPE_STORAGE] = { &pysft_storage_spec, NULL },
    [PYSFT_TYPE_SHARD] = { &pysft_shard_spec, NULL },
    [PYSFT_TYPE_COMMIT] = { &pysft_commit_spec, NULL },
    [PYSFT_TYPE_DATASET] = { &pysft_dataset_spec, NULL },
    [PYSFT_TYPE_REMOTE] = { &pysft_remote_spec, NULL },
    [PYSFT_TYPE_PLAN] = { &pysft_plan_spec, NULL },
    [PYSFT_TYPE_READER] = { &pysft_reader_spec, NULL },
};

static PyMethodDef *const function_rows[] = {
    pysft_open_functions,   pysft_save_functions,   pysft_tools_functions,
    pysft_convert_functions, pysft_edit_functions,  pysft_dataset_functions,
    pysft_import_functions, pysft_remote_functions, pysft_transport_functions,
    pysft_reader_functions, pysft_lora_functions, pysft_merge_functions,
    pysft_layout_functions,
};

static const struct {
    const char *name;
    PyObject *(*make)(pysft_state *state);
} table_rows[] = {
    { "DTYPES", dtype_table },
    { "CODES", code_table },
    { "DATASET_OPTIONS", pysft_options_table },
};

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

static const char *type_name(size_t type) {
    return strrchr(type_rows[type].spec->name, '.') + 1;
}

/* NULL without an exception: there is no such name. */
static PyObject *make_named(PyObject *module, const char *name) {
    for (size_t i = 0; i < ROWS(table_rows); i++)
        if (strcmp(table_rows[i].name, name) == 0) {
            PyObject *table = table_rows[i].make(pysft_state_of(module));
            if (table && PyModule_AddObjectRef(module, name, table) < 0) Py_CLEAR(table);
            return table;
        }
    for (size_t i = 0; i < PYSFT_TYPE_COUNT; i++)
        if (strcmp(type_name(i), name) == 0)
            return Py_XNewRef((PyObject *)pysft_type_of(pysft_state_of(module), (pysft_type)i));
    for (size_t i = 0; i < ROWS(function_rows); i++) {
        const PyMethodDef *row = function_rows[i];
        while (row->ml_name && strcmp(row->ml_name, name) != 0) row++;
        if (!row->ml_name) continue;
        if (PyModule_AddFunctions(module, function_rows[i]) < 0) return NULL;
        return PyObject_GetAttrString(module, name);
    }
    return NULL;
}

static PyObject *core_getattr(PyObject *module, PyObject *name) {
    PyObject *bytes = PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name) : NULL, *made = NULL;
    const char *text = bytes ? PyBytes_AsString(bytes) : "";
    if (bytes && strlen(text) == (size_t)PyBytes_Size(bytes)) made = make_named(module, text);
    if (!bytes) PyErr_Clear(); /* no UTF-8: one that is not there, too */
    Py_XDECREF(bytes);
    if (!made && !PyErr_Occurred())
        PyErr_Format(PyExc_AttributeError, "module 'libsafetensors._core' has no attribute %R",
                     name);
    return made;
}

static int list_name(PyObject *names, const char *name) {
    PyObject *text = PyUnicode_FromString(name);
    int rc = text ? PySet_Add(names, text) : -1;
    Py_XDECREF(text);
    return rc;
}

static int list_names(PyObject *names) {
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ROWS(table_rows); i++)
        rc = list_name(names, table_rows[i].name);
    for (size_t i = 0; rc == 0 && i < PYSFT_TYPE_COUNT; i++) rc = list_name(names, type_name(i));
    for (size_t i = 0; i < ROWS(function_rows); i++)
        for (const PyMethodDef *row = function_rows[i]; rc == 0 && row->ml_name; row++)
            rc = list_name(names, row->ml_name);
    return rc;
}

static PyObject *core_dir(PyObject *module, PyObject *Py_UNUSED(none)) {
    PyObject *names = PySet_New(PyModule_GetDict(module)), *list = NULL;
    if (names && list_names(names) == 0) list = PySequence_List(names);
    Py_XDECREF(names);
    return list;
}

/* ── The module ── */

static int core_exec(PyObject *module) {
    pysft_state *state = pysft_state_of(module);
    /* Our state would be separate per interpreter, but numpy and torch do not support it, nor does
     * releasing tensors from threads unknown to Python. */
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    if (!interpreter || PyInterpreterState_GetID(interpreter) != 0)
        return pysft_refuse(PyExc_ImportError, "libsafetensors does not support sub-interpreters");
    state->module = module;
    state->rows = type_rows;
    atomic_flag_clear(&state->remote_busy);
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) {
        state->dtype_names[i] = PyUnicode_InternFromString(sft_dtype_describe((sft_dtype)i)->name);
        if (!state->dtype_names[i]) return -1;
    }
    if (PyModule_AddStringConstant(module, "__version__", sft_version()) < 0) return -1;
    return pysft_error_add(module);
}

static int core_traverse(PyObject *module, visitproc visit, void *arg) {
    pysft_state *state = pysft_state_of(module);
    if (!state) return 0;
    Py_VISIT(state->error);
    Py_VISIT(state->missing);
    Py_VISIT(state->remote);
    for (int i = 0; i < PYSFT_TYPE_COUNT; i++) Py_VISIT(atomic_load(&state->types[i]));
    return 0;
}

static int core_clear(PyObject *module) {
    pysft_state *state = pysft_state_of(module);
    if (!state) return 0;
    Py_CLEAR(state->error);
    Py_CLEAR(state->missing);
    Py_CLEAR(state->remote);
    for (int i = 0; i < PYSFT_TYPE_COUNT; i++)
        Py_XDECREF((PyObject *)atomic_exchange(&state->types[i], NULL));
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) Py_CLEAR(state->dtype_names[i]);
    Py_XDECREF(atomic_exchange(&state->ndarray, NULL));
    for (int i = 0; i < SFT_DTYPE_COUNT; i++)
        Py_XDECREF(atomic_exchange(&state->numpy_dtypes[i], NULL));
    Py_XDECREF(atomic_exchange(&state->from_dlpack, NULL));
    return 0;
}

static void core_free(void *module) {
    (void)core_clear(module);
}

static PyObject *build_info(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return PyUnicode_FromString(sft_build_info());
}

static PyObject *release_memory(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    size_t bytes;
    PYSFT_NO_GIL(bytes = pysft_kept_release());
    return PyLong_FromSize_t(bytes);
}

static PyMethodDef core_methods[] = {
    { "__getattr__", core_getattr, METH_O, NULL },
    { "__dir__", core_dir, METH_NOARGS, "__dir__($module, /)\n--\n\nAll names." },
    { "build_info", build_info, METH_NOARGS,
      "build_info($module, /)\n--\n\nHow the library was built, one fact per line." },
    { "release_memory", release_memory, METH_NOARGS,
      "release_memory($module, /)\n--\n\nFrees memory of tensors that are gone, which is kept "
      "for the next load: at most 128 MiB, which the system may take when it needs memory. Returns "
      "how many bytes that was. Any thread may call it." },
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
