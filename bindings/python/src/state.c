/* The module's state, and types made for it. */
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
