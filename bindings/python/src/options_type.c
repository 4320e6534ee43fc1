/* DatasetOptions: checked options of a write. Tests: test_dataset_write.py. */
#include "dataset.h"

typedef struct options_object {
    PyObject_HEAD
    sft_dataset_options *options;
} options_object;

const sft_dataset_options *pysft_options_of(pysft_state *state, PyObject *object) {
    if (pysft_is_a(state, object, PYSFT_TYPE_OPTIONS))
        return ((options_object *)object)->options;
    return (void *)PyErr_Format(PyExc_TypeError, "expected DatasetOptions, found %R",
                                Py_TYPE(object));
}

static PyObject *options_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "options", NULL };
    PyObject *mapping;
    pysft_pairs pairs;
    sft_error err = SFT_ERROR_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:DatasetOptions", words, &mapping))
        return NULL;
    options_object *self = (options_object *)pysft_object_new(type);
    if (!self) return NULL;
    if (pysft_pairs_of(mapping, "options", &pairs) == 0) {
        sft_code code = sft_dataset_options_new(pairs.at, pairs.count, NULL, &self->options, &err);
        if (code) (void)pysft_raise(pysft_state_from((PyObject *)self), &err, NULL);
        pysft_pairs_free(&pairs);
    }
    return pysft_object_made(self, self->options ? 0 : -1);
}

static void options_dealloc(PyObject *object) {
    sft_dataset_options_free(((options_object *)object)->options);
    pysft_object_free(object);
}

static PyObject *options_check(PyObject *object, PyObject *given) {
    options_object *self = (options_object *)object;
    PyObject *keep = NULL, *done = NULL;
    const struct ArrowSchema *schema = pysft_schema_of(given, &keep);
    pysft_job job;
    (void)pysft_job_begin(&job, NULL);
    if (schema) {
        job.code = sft_dataset_check_schema(self->options, schema, &job.out, &job.err);
        done = pysft_job_text(&job, pysft_state_from(object), NULL);
    }
    Py_XDECREF(keep);
    return done;
}

static PyObject *options_mode(PyObject *object, void *Py_UNUSED(unused)) {
    sft_dataset_mode mode = sft_dataset_options_mode(((options_object *)object)->options);
    return PyUnicode_FromString(mode == SFT_DATASET_BATCH ? "batch" : "kv");
}

static PyObject *options_indexed(PyObject *object, void *Py_UNUSED(unused)) {
    return PyBool_FromLong(sft_dataset_options_indexed(((options_object *)object)->options));
}

static PyMethodDef options_methods[] = {
    { "check", options_check, METH_O, "check($self, schema, /)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef options_fields[] = {
    { "mode", options_mode, NULL, "\"batch\" or \"kv\"", NULL },
    { "indexed", options_indexed, NULL, "Whether generate_index is set.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot options_slots[] = {
    { Py_tp_doc, "DatasetOptions(options)\n--\n\n"
      "The checked options of a write; immutable." },
    { Py_tp_new, options_new },
    { Py_tp_dealloc, options_dealloc },
    { Py_tp_methods, options_methods },
    { Py_tp_getset, options_fields },
    { 0, NULL },
};

PyObject *pysft_options_table(pysft_state *state) {
    (void)state;
    PyObject *table = PyDict_New();
    const sft_dataset_option *row;
    for (size_t i = 0; table && (row = sft_dataset_option_at(i)) != NULL; i++) {
        bool batch = row->modes >> SFT_DATASET_BATCH & 1, kv = row->modes >> SFT_DATASET_KV & 1;
        PyObject *facts = Py_BuildValue("(szss)", row->values, row->by_default,
                                        batch && kv ? "both" : batch ? "batch" : "kv",
                                        row->sentence);
        if (pysft_dict_put(table, row->name, facts) < 0) Py_CLEAR(table);
    }
    return table;
}

PyType_Spec pysft_options_spec = {
    "libsafetensors._core.DatasetOptions", sizeof(options_object), 0, Py_TPFLAGS_DEFAULT,
    options_slots,
};
