/* ShardWriter: rows of one task on their way into shards. */
#include "dataset.h"

#include <string.h>

static const char type_name[] = "ShardWriter";

typedef struct shard_object {
    PyObject_HEAD
    sft_shard_writer *writer; /* NULL: closed or abandoned */
    PyObject *options, *storage, *like;
    atomic_flag busy;
} shard_object;

static PyObject *shard_raise(shard_object *self, const sft_error *err) {
    return pysft_storage_raise(pysft_state_from((PyObject *)self), self->storage, err);
}

static bool shard_enter(shard_object *self) {
    if (!pysft_enter(&self->busy, type_name)) return false;
    if (self->writer) return true;
    pysft_leave(&self->busy);
    PyErr_SetString(PyExc_ValueError, "expected an open ShardWriter, found one that is closed");
    return false;
}

/* ── Beginning ── */

static int shard_open(shard_object *self, sft_span job, uint64_t partition,
                      const struct ArrowSchema *schema) {
    pysft_state *state = pysft_state_from((PyObject *)self);
    const sft_dataset_options *options = pysft_options_of(state, self->options);
    const sft_storage *storage = options ? pysft_storage_of(state, self->storage) : NULL;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (!storage) return -1;
    self->like = pysft_schema_like(schema);
    if (!self->like) return -1;
    Py_BEGIN_ALLOW_THREADS
    code = sft_shard_writer_open(options, storage, job, partition, schema, NULL, &self->writer,
                                 &err);
    Py_END_ALLOW_THREADS
    if (code == SFT_OK) return 0;
    (void)shard_raise(self, &err);
    return -1;
}

static PyObject *shard_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "options", "storage", "job", "partition", "schema", NULL };
    PyObject *options, *storage, *text, *given, *keep = NULL;
    unsigned long long partition;
    sft_span job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOKO:ShardWriter", words, &options,
                                     &storage, &text, &partition, &given) ||
        pysft_span_of(text, "job", &job) < 0)
        return NULL;
    const struct ArrowSchema *schema = pysft_schema_of(given, &keep);
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    shard_object *self = schema ? (shard_object *)alloc(type, 0) : NULL;
    int status = -1;
    if (self) {
        atomic_flag_clear(&self->busy);
        self->options = Py_NewRef(options);
        self->storage = Py_NewRef(storage);
        status = shard_open(self, job, partition, schema);
    }
    Py_XDECREF(keep);
    if (status == 0) return (PyObject *)self;
    Py_XDECREF((PyObject *)self);
    return NULL;
}

/* ── Rows ── */

static PyObject *shard_put(shard_object *self, struct ArrowArray *array, PyObject *progress) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) {
        array->release(array);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    code = sft_shard_writer_append(self->writer, array, &job.job, &err);
    Py_END_ALLOW_THREADS
    if (pysft_job_end(&job, code) < 0) return shard_raise(self, &err);
    Py_RETURN_NONE;
}

static PyObject *shard_append(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "batch", "progress", NULL };
    shard_object *self = (shard_object *)object;
    PyObject *batch, *progress = NULL, *done = NULL;
    struct ArrowArray array;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:append", words, &batch, &progress) ||
        !shard_enter(self))
        return NULL;
    if (pysft_array_of(batch, self->like, &array) == 0)
        done = shard_put(self, &array, progress);
    pysft_leave(&self->busy);
    return done;
}

/* ── The two endings ── */

static PyObject *shard_end(shard_object *self, PyObject *progress) {
    sft_shard_writer *writer = self->writer;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    sft_buffer receipts;
    pysft_job job;
    memset(&receipts, 0, sizeof receipts);
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    self->writer = NULL;
    Py_BEGIN_ALLOW_THREADS
    code = sft_shard_writer_close(writer, &receipts, &job.job, &err);
    Py_END_ALLOW_THREADS
    if (pysft_job_end(&job, code) == 0) return pysft_text_take(&receipts);
    sft_buffer_free(&receipts);
    return shard_raise(self, &err);
}

static PyObject *shard_close(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "progress", NULL };
    shard_object *self = (shard_object *)object;
    PyObject *progress = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:close", words, &progress) ||
        !shard_enter(self))
        return NULL;
    PyObject *done = shard_end(self, progress);
    pysft_leave(&self->busy);
    return done;
}

static PyObject *shard_abandon(PyObject *object, PyObject *unused) {
    shard_object *self = (shard_object *)object;
    (void)unused;
    if (!pysft_enter(&self->busy, type_name)) return NULL;
    sft_shard_writer *writer = self->writer;
    self->writer = NULL;
    Py_BEGIN_ALLOW_THREADS
    sft_shard_writer_abandon(writer);
    Py_END_ALLOW_THREADS
    pysft_leave(&self->busy);
    Py_RETURN_NONE;
}

/* ── The type ── */

static int shard_traverse(PyObject *object, visitproc visit, void *arg) {
    shard_object *self = (shard_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->options);
    Py_VISIT(self->storage);
    return 0;
}

/* The storage must outlive the writer. */
static int shard_clear(PyObject *object) {
    shard_object *self = (shard_object *)object;
    sft_shard_writer_abandon(self->writer);
    self->writer = NULL;
    Py_CLEAR(self->options);
    Py_CLEAR(self->storage);
    Py_CLEAR(self->like);
    return 0;
}

static void shard_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    (void)shard_clear(object);
    release(object);
    Py_DECREF(type);
}

static PyMethodDef shard_methods[] = {
    { "append", (PyCFunction)(void (*)(void))shard_append, METH_VARARGS | METH_KEYWORDS,
      "append($self, /, batch, progress=None)\n--\n\n"
      "A batch of rows." },
    { "close", (PyCFunction)(void (*)(void))shard_close, METH_VARARGS | METH_KEYWORDS,
      "close($self, /, progress=None)\n--\n\n"
      "Write the rest; receipts as JSON." },
    { "abandon", shard_abandon, METH_NOARGS,
      "abandon($self, /)\n--\n\n"
      "Remove what was written." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot shard_slots[] = {
    { Py_tp_doc, "ShardWriter(options, storage, job, partition, schema)\n--\n\n"
      "Rows of one task on their way into shards." },
    { Py_tp_new, shard_new },
    { Py_tp_dealloc, shard_dealloc },
    { Py_tp_traverse, shard_traverse },
    { Py_tp_clear, shard_clear },
    { Py_tp_methods, shard_methods },
    { 0, NULL },
};

int pysft_shard_add(PyObject *module) {
    static PyType_Spec spec = {
        "libsafetensors._core.ShardWriter", sizeof(shard_object), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, shard_slots,
    };
    return pysft_type_add(module, &spec, &pysft_state_of(module)->shard_type);
}
