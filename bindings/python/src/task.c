/* The base of ShardWriter and Commit. Tests: test_dataset_writers.py. */
#include "dataset.h"

pysft_task *pysft_task_new(PyTypeObject *type, PyObject *options, PyObject *storage) {
    pysft_task *self = (pysft_task *)pysft_object_new(type);
    if (!self) return NULL;
    atomic_flag_clear(&self->busy);
    self->options = Py_NewRef(options);
    self->storage = Py_NewRef(storage);
    return self;
}

int pysft_task_take(pysft_task *self, const sft_dataset_options **options,
                    const sft_storage **storage) {
    pysft_state *state = pysft_state_from((PyObject *)self);
    *options = pysft_options_of(state, self->options);
    *storage = *options ? pysft_storage_of(state, self->storage) : NULL;
    return *storage ? 0 : -1;
}

PyObject *pysft_task_raise(pysft_task *self, const sft_error *err) {
    return pysft_storage_raise(pysft_state_from((PyObject *)self), self->storage, err);
}

int pysft_task_traverse(PyObject *object, visitproc visit, void *arg) {
    pysft_task *self = (pysft_task *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->options);
    Py_VISIT(self->storage);
    return 0;
}

void pysft_task_clear(pysft_task *self) {
    Py_CLEAR(self->options);
    Py_CLEAR(self->storage);
}

void pysft_task_dealloc(PyObject *object) {
    inquiry clear = (inquiry)PyType_GetSlot(Py_TYPE(object), Py_tp_clear);
    PyObject_GC_UnTrack(object);
    (void)clear(object);
    pysft_object_free(object);
}
