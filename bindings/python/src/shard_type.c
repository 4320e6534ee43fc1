/* ShardWriter: writes the rows of one task as shards. Tests: test_dataset_write.py. */
#include "dataset.h"

static const char type_name[] = "ShardWriter";

typedef struct shard_object {
    pysft_task task;
    sft_shard_writer *writer; /* NULL: closed or abandoned */
    PyObject *like; /* of the rows' schema: pysft_schema_like */
    uint32_t threads; /* of its jobs */
} shard_object;

static bool shard_enter(shard_object *self) {
    return pysft_enter(&self->task.busy, type_name)
           && pysft_stay(&self->task.busy, self->writer != NULL,
                         "expected an open ShardWriter, found one that is closed");
}

/* ── Construction ── */

static int shard_open(shard_object *self, sft_span job, uint64_t partition,
                      const struct ArrowSchema *schema) {
    const sft_dataset_options *options;
    const sft_storage *storage;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (pysft_task_take(&self->task, &options, &storage) < 0) return -1;
    self->like = pysft_schema_like(schema);
    if (!self->like) return -1;
    PYSFT_NO_GIL(code = sft_shard_writer_begin(options, storage, job, partition, schema, NULL,
                                               &self->writer, &err));
    if (code) (void)pysft_task_raise(&self->task, &err);
    return code ? -1 : 0;
}

static PyObject *shard_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "options", "storage", "job", "partition", "schema", "threads", NULL };
    PyObject *options, *storage, *text, *given, *keep = NULL;
    unsigned long long partition;
    uint32_t threads;
    int asked = 1;
    sft_span job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOKO|$i:ShardWriter", words, &options,
                                     &storage, &text, &partition, &given, &asked) ||
        pysft_span_of(text, "job", &job) < 0 || pysft_threads_of(asked, &threads) < 0)
        return NULL;
    const struct ArrowSchema *schema = pysft_schema_of(given, &keep);
    shard_object *self = schema ? (shard_object *)pysft_task_new(type, options, storage) : NULL;
    if (self) self->threads = threads;
    int status = self ? shard_open(self, job, partition, schema) : -1;
    Py_XDECREF(keep);
    return pysft_object_made(self, status);
}

/* ── Rows ── */

static PyObject *shard_put(shard_object *self, struct ArrowArray *array, PyObject *progress) {
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) {
        array->release(array);
        return NULL;
    }
    job.job.threads = self->threads;
    PYSFT_NO_GIL(job.code = sft_shard_writer_append(self->writer, array, &job.job, &job.err));
    if (pysft_job_end(&job) < 0) return pysft_task_raise(&self->task, &job.err);
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
    pysft_leave(&self->task.busy);
    return done;
}

/* ── Closing ── */

static PyObject *shard_end(shard_object *self, PyObject *progress) {
    sft_shard_writer *writer = self->writer;
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return NULL;
    job.job.threads = self->threads;
    self->writer = NULL;
    PYSFT_NO_GIL(job.code = sft_shard_writer_finish(writer, &job.text, &job.job, &job.err));
    return pysft_storage_text(&job, pysft_state_from((PyObject *)self), self->task.storage);
}

static PyObject *shard_close(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "progress", NULL };
    shard_object *self = (shard_object *)object;
    PyObject *progress = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:close", words, &progress) ||
        !shard_enter(self))
        return NULL;
    PyObject *done = shard_end(self, progress);
    pysft_leave(&self->task.busy);
    return done;
}

static PyObject *shard_abandon(PyObject *object, PyObject *Py_UNUSED(unused)) {
    shard_object *self = (shard_object *)object;
    if (!pysft_enter(&self->task.busy, type_name)) return NULL;
    sft_shard_writer *writer = self->writer;
    self->writer = NULL;
    PYSFT_NO_GIL(sft_shard_writer_abandon(writer));
    pysft_leave(&self->task.busy);
    Py_RETURN_NONE;
}

/* ── The type ── */

static int shard_clear(PyObject *object) {
    shard_object *self = (shard_object *)object;
    sft_shard_writer_abandon(self->writer);
    self->writer = NULL;
    Py_CLEAR(self->like);
    pysft_task_clear(&self->task);
    return 0;
}

static PyMethodDef shard_methods[] = {
    { "append", PYSFT_KEYWORDS(shard_append), "append($self, /, batch, progress=None)\n--\n\n" },
    { "close", PYSFT_KEYWORDS(shard_close), "close($self, /, progress=None)\n--\n\n" },
    { "abandon", shard_abandon, METH_NOARGS,
      "abandon($self, /)\n--\n\n"
      "Remove the shards written so far." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot shard_slots[] = {
    { Py_tp_doc, "ShardWriter(options, storage, job, partition, schema, *, threads=1)\n--\n\n"
      "Writes the rows of one task as shards." },
    { Py_tp_new, shard_new },
    { Py_tp_dealloc, pysft_task_dealloc },
    { Py_tp_traverse, pysft_task_traverse },
    { Py_tp_clear, shard_clear },
    { Py_tp_methods, shard_methods },
    { 0, NULL },
};

PyType_Spec pysft_shard_spec = {
    "libsafetensors._core.ShardWriter", sizeof(shard_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, shard_slots,
};
