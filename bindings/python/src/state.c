/* The module's state, types made for it, and objects of them. */
#include "core.h"

pysft_state *pysft_state_of(PyObject *module) {
    return PyModule_GetState(module);
}

pysft_state *pysft_state_from(PyObject *self) {
    return PyType_GetModuleState(Py_TYPE(self));
}

int pysft_type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **slot) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!type) return -1;
    *slot = (PyTypeObject *)type;
    return PyModule_AddType(module, *slot);
}

PyObject *pysft_object_new(PyTypeObject *type) {
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0);
}

void pysft_object_free(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}
