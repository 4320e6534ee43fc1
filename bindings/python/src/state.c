/* The module's state, types made for it and objects of them; attributes of other modules, and
 * exceptions of Python's own kinds. */
#include "core.h"

static PyTypeObject *make_type(pysft_state *state, const pysft_type_row *row) {
    PyObject *type = PyType_FromModuleAndSpec(state->module, row->spec, NULL);
    if (type && row->register_type && row->register_type(type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

/* Two threads may make one at once: the first stays, and no lock is held while Python's code
 * runs. */
PyTypeObject *pysft_type_of(pysft_state *state, pysft_type which) {
    PyTypeObject *type = atomic_load(&state->types[which]), *none = NULL;
    if (type) return type;
    type = make_type(state, &state->rows[which]);
    if (!type) return NULL;
    if (!atomic_compare_exchange_strong(&state->types[which], &none, type)) {
        Py_DECREF(type);
        return none;
    }
    return PyModule_AddType(state->module, type) < 0 ? NULL : type;
}

PyObject *pysft_once(_Atomic(PyObject *) *slot, PyObject *made) {
    PyObject *none = NULL;
    if (!made || atomic_compare_exchange_strong(slot, &none, made)) return made;
    Py_DECREF(made);
    return none;
}

bool pysft_is_a(pysft_state *state, PyObject *object, pysft_type which) {
    return Py_TYPE(object) == atomic_load(&state->types[which]);
}

int pysft_refuse(PyObject *kind, const char *format, ...) {
    va_list values;
    va_start(values, format);
    (void)PyErr_FormatV(kind, format, values);
    va_end(values);
    return -1;
}

PyObject *pysft_import(const char *module, const char *name) {
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *value = imported ? PyObject_GetAttrString(imported, name) : NULL;
    Py_XDECREF(imported);
    return value;
}

PyObject *pysft_import_call(const char *module, const char *name, PyObject *argument) {
    return pysft_import_apply(module, name, argument ? PyTuple_Pack(1, argument) : NULL);
}

PyObject *pysft_import_apply(const char *module, const char *name, PyObject *args) {
    PyObject *function = args ? pysft_import(module, name) : NULL;
    PyObject *answer = function ? PyObject_CallObject(function, args) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(args);
    return answer;
}

PyObject *pysft_object_new(PyTypeObject *type) {
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0);
}

PyObject *pysft_object_made(void *object, int status) {
    if (status == 0) return object;
    Py_XDECREF((PyObject *)object);
    return NULL;
}

void pysft_object_free(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

bool pysft_path_is(const char *path, const char *what) {
    PyObject *text = PyUnicode_DecodeFSDefault(path);
    PyObject *answer = text ? pysft_import_call("os.path", what, text) : NULL;
    int yes = answer ? PyObject_IsTrue(answer) : 0;
    Py_XDECREF(text);
    Py_XDECREF(answer);
    if (PyErr_Occurred()) PyErr_Clear();
    return yes > 0;
}
