/* Writer: a file written piece by piece. Tests: test_writer.py. */
#include "specs.h"
#include "safetensors_io.h"

#include <stdatomic.h>
#include <string.h>

#define LONG_WRITE ((size_t)1 << 20)   /* from this size on signals are checked */

static const char type_name[] = "Writer";

typedef struct writer_object {
    PyObject_HEAD
    sft_writer *writer; /* NULL: finished or abandoned */
    sft_plan *plan;     /* NULL: tensors are added */
    pysft_path path;
    PyObject *target;   /* has write(); or NULL */
    uint64_t base;      /* for a seekable target: the file's first byte in it */
    uint64_t at, end;   /* relative to base: position, and furthest byte written */
    PyObject *numbers;  /* dict: name -> (number in the library, dtype) */
    PyObject *names;    /* list, in file order */
    PyObject *weakrefs;
    atomic_flag busy;   /* a call is running, in this thread or another */
} writer_object;

/* ── One call at a time ── */

static bool enter_open(writer_object *self) {
    return pysft_enter(&self->busy, type_name)
           && pysft_stay(&self->busy, self->writer != NULL,
                         "expected an open Writer, found one that is finished or abandoned");
}

static PyObject *raise_failure(writer_object *self, const sft_error *err) {
    return pysft_raise(pysft_state_from((PyObject *)self), err, self->path.text);
}

/* ── An object as a sink ── */

/* A seekable object, as a sink that writes at any offset. */
static int seek_to(writer_object *self, uint64_t offset) {
    if (self->at == offset) return 0;
    PyObject *done = PyObject_CallMethod(self->target, "seek", "K",
                                         (unsigned long long)(self->base + offset));
    Py_XDECREF(done);
    if (done) self->at = offset;
    return done ? 0 : -1;
}

/* Called without the GIL, like all functions of a sink. */
static sft_code write_at_object(void *ctx, uint64_t offset, const void *bytes, size_t len,
                                sft_error *err) {
    writer_object *self = ctx;
    PyGILState_STATE gil = PyGILState_Ensure();
    int status = seek_to(self, offset);
    PyGILState_Release(gil);
    if (status < 0) return sft_error_set(err, SFT_IO_WRITE, 0, "seek() of the target failed");
    sft_code code = pysft_target_write(self->target, bytes, len, err);
    if (!code) self->at += len;
    if (self->at > self->end) self->end = self->at;
    return code;
}

/* Leaves the object's position at the end of the file. */
static sft_code finish_object(void *ctx, sft_error *err) {
    writer_object *self = ctx;
    PyGILState_STATE gil = PyGILState_Ensure();
    int status = seek_to(self, self->end);
    PyGILState_Release(gil);
    if (status == 0) return SFT_OK;
    return sft_error_set(err, SFT_IO_WRITE, 0, "seek() of the target failed");
}

static void abandon_object(void *Py_UNUSED(ctx)) {
}

/* 1 and the target's position if it can seek; 0 if not, -1 with an exception. A file opened for
 * appending reports that it can seek but writes at its end. */
static int find_base(writer_object *self) {
    PyObject *mode = PyObject_GetAttrString(self->target, "mode"), *answer = NULL;
    sft_span text = { NULL, 0 };
    PyErr_Clear();
    if (mode && PyUnicode_Check(mode) && pysft_span_of(mode, "mode", &text) < 0) PyErr_Clear();
    bool appends = text.len > 0 && memchr(text.data, 'a', text.len) != NULL;
    Py_XDECREF(mode);
    if (appends || !PyObject_HasAttrString(self->target, "seekable")) return 0;
    answer = PyObject_CallMethod(self->target, "seekable", NULL);
    int seeks = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (seeks <= 0) return seeks;
    answer = PyObject_CallMethod(self->target, "tell", NULL);
    int status = answer ? pysft_uint_of(answer, &self->base) : -1;
    Py_XDECREF(answer);
    return status < 0 ? -1 : 1;
}

/* ── Construction ── */

typedef struct writer_call {
    pysft_state *state;
    pysft_specs specs;
    pysft_pairs metadata;
    sft_plan_options plan;
    sft_path_options path;
    uint64_t header_room;
    uint32_t limit_mode; /* 0: none */
    bool seeks; /* the target object can seek */
} writer_call;

static int note_name(writer_object *self, PyObject *name, size_t number, sft_dtype dtype) {
    PyObject *value = Py_BuildValue("(ni)", (Py_ssize_t)number, (int)dtype);
    int status = value ? PyDict_SetItem(self->numbers, name, value) : -1;
    Py_XDECREF(value);
    return status < 0 ? -1 : PyList_Append(self->names, name);
}

static int note_plan(writer_object *self) {
    for (size_t i = 0; i < sft_plan_tensor_count(self->plan); i++) {
        const sft_tensor *tensor = sft_plan_tensor_at(self->plan, i);
        PyObject *name = pysft_text(tensor->name);
        int status = name ? note_name(self, name, i, tensor->dtype) : -1;
        Py_XDECREF(name);
        if (status < 0) return -1;
    }
    return 0;
}

static const sft_sink_vtable object_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, write_at_object, finish_object, abandon_object, NULL, NULL
};

static sft_code open_sink(writer_object *self, const writer_call *call, sft_sink *out,
                          sft_error *err) {
    if (self->target && call->seeks) {
        *out = (sft_sink){ self, &object_sink_vtable, true };
        return SFT_OK;
    }
    if (self->target) return sft_sink_callback(pysft_target_write, self->target, NULL, out, err);
    sft_code code = sft_sink_path(self->path.text, &call->path, out, err);
    if (!code) code = sft_sink_limit_mode(out, call->limit_mode, err);
    return code;
}

static int open_writer(writer_object *self, const writer_call *call, bool planned) {
    sft_writer_options options = SFT_WRITER_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    sft_sink sink;
    options.header_bytes = call->header_room;
    options.align = call->plan.align;
    options.metadata = call->metadata.at;
    options.metadata_count = call->metadata.count;
    Py_BEGIN_ALLOW_THREADS
    if (planned)
        code = sft_plan_new(call->specs.items, call->specs.count, call->metadata.at,
                            call->metadata.count, &call->plan, &self->plan, &err);
    if (!code) code = open_sink(self, call, &sink, &err);
    if (!code)
        code = planned ? sft_writer_begin(self->plan, sink, &self->writer, &err)
                       : sft_writer_begin_unplanned(&options, sink, &self->writer, &err);
    Py_END_ALLOW_THREADS
    if (code) return pysft_fail(call->state, &err, self->path.text);
    return planned ? note_plan(self) : 0;
}

static int begin_writer(writer_object *self, writer_call *call, PyObject *target,
                        PyObject *tensors, PyObject *metadata) {
    bool planned = tensors && tensors != Py_None;
    self->numbers = PyDict_New();
    self->names = PyList_New(0);
    if (!self->numbers || !self->names) return -1;
    if (pysft_is_target(target)) self->target = Py_NewRef(target);
    else if (pysft_output_of(target, &self->path) < 0) return -1;
    int seeks = self->target && !planned ? find_base(self) : 1;
    if (seeks < 0) return -1;
    if (seeks == 0) {
        (void)pysft_raise_code(call->state, SFT_OUT_OF_ORDER,
                               "expected tensors=, for this target cannot seek, and the header, "
                               "which stands first, would be written last",
                               NULL);
        return -1;
    }
    call->seeks = !planned;
    call->plan.has_metadata = metadata && metadata != Py_None;
    if (pysft_pairs_of(metadata, "metadata", &call->metadata) < 0) return -1;
    if (planned) {
        /* Tuples of name, dtype and shape, or a mapping of names to tensors or to the others. */
        bool is_mapping = PyDict_Check(tensors) || PyObject_HasAttrString(tensors, "items");
        PyObject *rows = is_mapping ? pysft_import_call(PYSFT_WRITER, "plan", tensors)
                                    : Py_NewRef(tensors);
        bool taken = rows && pysft_specs_take(call->state, rows, 3, &call->specs);
        Py_XDECREF(rows);
        if (!taken) return -1;
    }
    return open_writer(self, call, planned);
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "target", "tensors", "metadata", "sync", "align", "keep_order",
                             "header_room", "overwrite", "link", "limit_mode", "in_place_unsafe",
                             NULL };
    PyObject *target, *tensors = NULL, *metadata = NULL, *link = NULL;
    int sync = 1, align = 8, keep_order = 0, overwrite = 1, unsafe = 0;
    unsigned limit = 0;
    long long reserved = 0;
    writer_call call = { .plan = SFT_PLAN_OPTIONS_INIT, .path = SFT_PATH_OPTIONS_INIT };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO$pipLpOIp:Writer", words, &target, &tensors,
                                     &metadata, &sync, &align, &keep_order, &reserved, &overwrite,
                                     &link, &limit, &unsafe)
        || pysft_link_of(link, &call.path.link) < 0)
        return NULL;
    if (reserved < 0) return PyErr_Format(PyExc_ValueError, "expected header_room to be 0 or more");
    writer_object *self = (writer_object *)pysft_object_new(type);
    if (!self) return NULL;
    atomic_flag_clear(&self->busy);
    call.state = pysft_state_from((PyObject *)self);
    call.plan.align = (uint32_t)align;
    call.plan.keep_order = keep_order != 0;
    pysft_path_flags(&call.path, sync, overwrite, unsafe);
    call.header_room = (uint64_t)reserved;
    call.limit_mode = limit;
    int status = begin_writer(self, &call, target, tensors, metadata);
    pysft_specs_drop(&call.specs);
    pysft_pairs_free(&call.metadata);
    return pysft_object_made(self, status);
}

/* ── Writing ── */

static PyObject *writer_add(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "name", "dtype", "shape", NULL };
    writer_object *self = (writer_object *)object;
    PyObject *name, *dtype, *shape, *done = NULL;
    pysft_specs spec = { .items = NULL };
    sft_error err = SFT_ERROR_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:add", words, &name, &dtype, &shape))
        return NULL;
    PyObject *rows = Py_BuildValue("((OOO))", name, dtype, shape);
    bool taken = rows && pysft_specs_take(pysft_state_from(object), rows, 3, &spec);
    Py_XDECREF(rows);
    if (taken && enter_open(self)) {
        size_t number = 0;
        if (sft_writer_add(self->writer, spec.items, &number, &err)) raise_failure(self, &err);
        else if (note_name(self, name, number, spec.items->dtype) == 0) done = Py_NewRef(Py_None);
        pysft_leave(&self->busy);
    }
    pysft_specs_drop(&spec);
    return done;
}

static int find_number(writer_object *self, PyObject *name, sft_span span, size_t *number,
                       sft_dtype *dtype) {
    sft_error err = SFT_ERROR_INIT;
    PyObject *noted = PyDict_GetItemWithError(self->numbers, name);
    if (noted) {
        *number = PyLong_AsSize_t(PyTuple_GetItem(noted, 0));
        *dtype = (sft_dtype)PyLong_AsLong(PyTuple_GetItem(noted, 1));
        return 0;
    }
    if (!PyErr_Occurred()) {
        pysft_error_tensor(&err, SFT_TENSOR_NOT_FOUND, span,
                           self->plan ? "expected a tensor of the plan, found another name"
                                      : "expected a tensor that was added, found another name: "
                                        "call add(name, dtype, shape) first");
        raise_failure(self, &err);
    }
    return -1;
}

/* New reference to a packed buffer of the data: the data themselves, or a copy of strided
 * memory, or the memory of a tensor of torch or another without a buffer. */
static PyObject *packed_of(PyObject *data, sft_dtype dtype, sft_span name) {
    Py_buffer view;
    if (PyObject_CheckBuffer(data)) {
        int packed = 1; /* what cannot be locked is refused later */
        if (PyObject_GetBuffer(data, &view, PyBUF_STRIDED_RO) == 0) {
            packed = PyBuffer_IsContiguous(&view, 'C');
            PyBuffer_Release(&view);
        }
        PyErr_Clear();
        if (packed && !PyObject_HasAttrString(data, "mask")) return Py_NewRef(data);
    }
    return pysft_import_apply(PYSFT_WRITER, "packed",
                              Py_BuildValue("(Oss#)", data, sft_dtype_describe(dtype)->name,
                                            name.data, (Py_ssize_t)name.len));
}

static PyObject *put_bytes(writer_object *self, size_t number, const Py_buffer *view) {
    size_t len = (size_t)view->len;
    sft_source source = sft_source_memory(view->buf, len);
    pysft_job job;
    if (pysft_job_begin(&job, NULL) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    if (len < LONG_WRITE)
        job.code = sft_writer_put(self->writer, number, view->buf, len, &job.err);
    else job.code = sft_writer_copy(self->writer, number, &source, 0, len, &job.job, &job.err);
    Py_END_ALLOW_THREADS
    if (pysft_job_end(&job) < 0) return raise_failure(self, &job.err);
    Py_RETURN_NONE;
}

static PyObject *put_data(writer_object *self, PyObject *data, size_t number, sft_dtype dtype,
                          sft_span name) {
    PyObject *packed = packed_of(data, dtype, name), *done = NULL;
    pysft_state *state = pysft_state_from((PyObject *)self);
    Py_buffer view;
    if (packed && pysft_elements_take(state, packed, PyBUF_CONTIG_RO, dtype, name, &view)) {
        done = put_bytes(self, number, &view);
        PyBuffer_Release(&view);
    }
    Py_XDECREF(packed);
    return done;
}

static PyObject *writer_write(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *words[] = { "name", "data", NULL };
    writer_object *self = (writer_object *)object;
    PyObject *name, *data, *done = NULL;
    size_t number;
    sft_dtype dtype;
    sft_span span;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:write", words, &name, &data)
        || pysft_span_of(name, "name", &span) < 0 || !enter_open(self))
        return NULL;
    if (find_number(self, name, span, &number, &dtype) == 0)
        done = put_data(self, data, number, dtype, span);
    pysft_leave(&self->busy);
    return done;
}

static PyObject *writer_keys(PyObject *object, PyObject *Py_UNUSED(unused)) {
    writer_object *self = (writer_object *)object;
    return PyList_GetSlice(self->names, 0, PyList_Size(self->names));
}

/* ── Finish and abandon ── */

/* Leaves the call: the writer is gone either way. */
static PyObject *end_writer(writer_object *self, bool publish) {
    sft_writer *writer = self->writer;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    self->writer = NULL;
    Py_BEGIN_ALLOW_THREADS
    if (publish) code = sft_writer_finish(writer, &err);
    else sft_writer_abandon(writer);
    sft_plan_free(self->plan);
    Py_END_ALLOW_THREADS
    self->plan = NULL;
    pysft_leave(&self->busy);
    if (code) return raise_failure(self, &err);
    Py_RETURN_NONE;
}

static PyObject *writer_finish(PyObject *object, PyObject *Py_UNUSED(unused)) {
    writer_object *self = (writer_object *)object;
    return enter_open(self) ? end_writer(self, true) : NULL;
}

static PyObject *writer_abandon(PyObject *object, PyObject *Py_UNUSED(unused)) {
    writer_object *self = (writer_object *)object;
    return pysft_enter(&self->busy, type_name) ? end_writer(self, false) : NULL;
}

static PyObject *writer_enter(PyObject *object, PyObject *Py_UNUSED(unused)) {
    writer_object *self = (writer_object *)object;
    if (!enter_open(self)) return NULL;
    pysft_leave(&self->busy);
    return Py_NewRef(object);
}

/* A writer already finished or abandoned inside the block is left alone. */
static PyObject *writer_exit(PyObject *object, PyObject *args) {
    writer_object *self = (writer_object *)object;
    PyObject *kind = Py_None;
    if (PyTuple_Size(args) > 0) kind = PyTuple_GetItem(args, 0);
    if (!pysft_enter(&self->busy, type_name)) return NULL;
    return end_writer(self, kind == Py_None && self->writer);
}

/* ── The type ── */

static int writer_traverse(PyObject *object, visitproc visit, void *arg) {
    writer_object *self = (writer_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->target);
    Py_VISIT(self->numbers);
    Py_VISIT(self->names);
    return 0;
}

static int writer_clear(PyObject *object) {
    writer_object *self = (writer_object *)object;
    sft_writer_abandon(self->writer);
    self->writer = NULL;
    Py_CLEAR(self->target);
    Py_CLEAR(self->numbers);
    Py_CLEAR(self->names);
    return 0;
}

static void writer_dealloc(PyObject *object) {
    writer_object *self = (writer_object *)object;
    PyObject_GC_UnTrack(object);
    pysft_weakrefs_clear(object, self->weakrefs);
    (void)writer_clear(object);
    sft_plan_free(self->plan);
    pysft_path_free(&self->path);
    pysft_object_free(object);
}

static PyObject *writer_repr(PyObject *object) {
    writer_object *self = (writer_object *)object;
    PyObject *where = self->target ? PyObject_GetAttrString((PyObject *)Py_TYPE(self->target),
                                                            "__name__")
                                   : PyUnicode_DecodeFSDefault(self->path.text);
    PyObject *text = NULL;
    if (where)
        text = PyUnicode_FromFormat("<Writer %R, %zd tensors%s>", where, PyList_Size(self->names),
                                    self->writer ? "" : ", closed");
    Py_XDECREF(where);
    return text;
}

static PyMethodDef writer_methods[] = {
    { "add", PYSFT_KEYWORDS(writer_add),
      "add($self, /, name, dtype, shape)\n--\n\n"
      "Add a tensor after the others; only for a Writer made without tensors. dtype: a name in\n"
      "the header, or a dtype of numpy or torch." },
    { "write", PYSFT_KEYWORDS(writer_write),
      "write($self, /, name, data)\n--\n\n"
      "Write the next elements of a tensor, in C order: plain bytes, or an array or tensor of its\n"
      "dtype, of numpy or torch, with any strides, on any device. May be called repeatedly for a\n"
      "tensor. SafetensorError, ValueError, TypeError." },
    { "keys", writer_keys, METH_NOARGS,
      "keys($self, /)\n--\n\n"
      "List of names, in file order." },
    { "finish", writer_finish, METH_NOARGS,
      "finish($self, /)\n--\n\n"
      "Publish the file. SafetensorError unless every tensor is complete; nothing is\n"
      "published then." },
    { "abandon", writer_abandon, METH_NOARGS,
      "abandon($self, /)\n--\n\n"
      "Discard the file; does nothing after finish." },
    { "__enter__", writer_enter, METH_NOARGS,
      "__enter__($self, /)\n--\n\nThe Writer itself." },
    { "__exit__", writer_exit, METH_VARARGS,
      "__exit__($self, kind, value, trace, /)\n--\n\n"
      "Finish, or abandon if the block raised." },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef writer_members[] = PYSFT_WEAKREFS(writer_object, weakrefs);

static PyType_Slot writer_slots[] = {
    { Py_tp_doc, "Writer(target, tensors=None, metadata=None, *, sync=True, align=8,\n"
      " keep_order=False, header_room=0, overwrite=True, link='replace',\n"
      " limit_mode=0, in_place_unsafe=False)\n--\n\n"
      "Writes a file piece by piece; it appears complete at finish(), or not at all.\n\n"
      "target: a path, or an object with write(bytes). tensors: tuples of name, dtype and shape,\n"
      "or a dict of names to tensors or to (dtype, shape), which make the header; None: space is\n"
      "reserved for it, tensors are added, and an object must be able to seek. metadata: str to\n"
      "str. sync=False does not wait for the disk. header_room: bytes of header to reserve. link:\n"
      "what to do if the path is a symbolic link, 'replace', 'follow' or 'refuse'. One call at a\n"
      "time; RuntimeError otherwise.\n"
      "SafetensorError, OSError, ValueError, TypeError." },
    { Py_tp_new, writer_new },
    { Py_tp_dealloc, writer_dealloc },
    { Py_tp_traverse, writer_traverse },
    { Py_tp_clear, writer_clear },
    { Py_tp_repr, writer_repr },
    { Py_tp_members, writer_members },
    { Py_tp_methods, writer_methods },
    { 0, NULL },
};

PyType_Spec pysft_writer_spec = {
    "libsafetensors._core.Writer", sizeof(writer_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, writer_slots,
};
