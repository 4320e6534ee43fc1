/* ReadPlan and Reader: safetensors_read.h for _device.py. Private to this package.
 * Tests: test_device.py. */
#include "tensor.h"

#include "safetensors_read.h"

typedef struct {
    PyObject_HEAD
    sft_read_plan *plan;
    PyObject *parts;     /* tuple, whose Tensors keep the files open */
    uint64_t wanted, total, slot_bytes;
    const char *path;    /* of the first one, for messages; or NULL */
} PlanObject;

typedef struct {
    PyObject_HEAD
    sft_reader *reader; /* NULL: closed */
    PyObject *plan;
    atomic_flag busy;   /* held by every call but close() in tp_dealloc */
    Py_ssize_t added;   /* slots */
    bool *is_held;      /* of each: next() returned it, and it was not given back */
} ReaderObject;

/* ── Plans ───────────────────────────────────────────────────────────────── */

static int address_of(PyObject *object, void **out) {
    uint64_t address;
    if (pysft_uint_of(object, &address) < 0) return -1;
    *out = (void *)(uintptr_t)address;
    return 0;
}

static int part_of(pysft_state *state, PyObject *row, sft_read_part *out) {
    bool triple = PyTuple_Check(row) && PyTuple_Size(row) == 3;
    if (!triple || !pysft_is_a(state, PyTuple_GetItem(row, 0), PYSFT_TYPE_TENSOR))
        return pysft_refuse(PyExc_TypeError,
                            "expected a tuple of a Tensor, a block and a byte of it, found %R",
                            row);
    const TensorObject *tensor = (TensorObject *)PyTuple_GetItem(row, 0);
    out->file = sft_set_shard_at(pysft_store_set(tensor->store), tensor->shard);
    out->tensor = tensor->facts;
    out->slice = tensor->slice;
    uint64_t block;
    if (pysft_uint_of(PyTuple_GetItem(row, 1), &block) < 0) return -1;
    out->block = (size_t)block;
    return pysft_uint_of(PyTuple_GetItem(row, 2), &out->at);
}

static int block_of(PyObject *row, sft_read_block *out) {
    if (!PyTuple_Check(row) || PyTuple_Size(row) != 2)
        return pysft_refuse(PyExc_TypeError,
                            "expected a tuple of an address and a number of bytes, found %R", row);
    if (address_of(PyTuple_GetItem(row, 0), &out->base) < 0) return -1;
    return pysft_uint_of(PyTuple_GetItem(row, 1), &out->bytes);
}

static int plan_fill(PlanObject *self, PyObject *sizes, const sft_read_plan_options *options) {
    pysft_state *state = pysft_state_from((PyObject *)self);
    const size_t count = (size_t)PyTuple_Size(self->parts);
    const size_t block_count = (size_t)PyTuple_Size(sizes);
    sft_read_part *parts = PyMem_Calloc(count + 1, sizeof *parts);
    sft_read_block *blocks = PyMem_Calloc(block_count + 1, sizeof *blocks);
    int rc = parts && blocks ? 0 : pysft_no_memory();
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = part_of(state, PyTuple_GetItem(self->parts, (Py_ssize_t)i), &parts[i]);
    for (size_t i = 0; rc == 0 && i < block_count; i++)
        rc = block_of(PyTuple_GetItem(sizes, (Py_ssize_t)i), &blocks[i]);
    if (rc == 0 && count) {
        PyObject *first = PyTuple_GetItem(PyTuple_GetItem(self->parts, 0), 0);
        self->path = pysft_store_path(((TensorObject *)first)->store);
    }
    if (rc == 0) {
        PYSFT_NO_GIL(code = sft_read_plan_new(parts, count, blocks, block_count, options,
                                              &self->plan, &err));
        if (code) rc = pysft_fail(state, &err, self->path);
    }
    PyMem_Free(parts);
    PyMem_Free(blocks);
    if (rc < 0) return -1;
    self->wanted = sft_read_plan_wanted(self->plan);
    self->total = sft_read_plan_total(self->plan);
    self->slot_bytes = sft_read_plan_slot_bytes(self->plan);
    return 0;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "parts", "blocks", "slot_bytes", "direct", NULL };
    static const char *const choices[] = { "auto", "never", "always", NULL };
    PyObject *parts, *blocks, *slot_bytes = NULL, *direct = NULL;
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    int choice = SFT_READ_DIRECT_AUTO;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OO:ReadPlan", names, &parts, &blocks,
                                     &slot_bytes, &direct))
        return NULL;
    if (slot_bytes && pysft_uint_of(slot_bytes, &options.slot_bytes) < 0) return NULL;
    if (direct && pysft_choice_of(direct, "direct", choices, &choice) < 0) return NULL;
    options.direct = (sft_read_direct)choice;
    options.wait = &pysft_wait;
    PyObject *sizes = PySequence_Tuple(blocks);
    PlanObject *self = sizes ? (PlanObject *)pysft_object_new(type) : NULL;
    if (self) self->parts = PySequence_Tuple(parts);
    int status = self && self->parts ? plan_fill(self, sizes, &options) : -1;
    Py_XDECREF(sizes);
    return pysft_object_made(self, status);
}

static int plan_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((PlanObject *)object)->parts);
    return 0;
}

/* No tp_clear: the plan needs its files. Tensors make no cycles. */
static void plan_dealloc(PyObject *object) {
    PlanObject *self = (PlanObject *)object;
    PyObject_GC_UnTrack(object);
    sft_read_plan_free(self->plan);
    Py_XDECREF(self->parts);
    pysft_object_free(object);
}

static PyObject *plan_run(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "threads", "progress", NULL };
    PlanObject *self = (PlanObject *)object;
    PyObject *progress = Py_None;
    int threads = 0;
    pysft_job job;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$iO:run", names, &threads, &progress)
        || pysft_job_begin(&job, progress) < 0
        || pysft_threads_of(threads, &job.job.threads) < 0)
        return NULL;
    PYSFT_NO_GIL(job.code = sft_read_plan_run(self->plan, &job.job, &job.err));
    if (pysft_job_done(&job, pysft_state_from(object), self->path) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *plan_reader(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "threads", NULL };
    pysft_state *state = pysft_state_from(object);
    PlanObject *self = (PlanObject *)object;
    int threads = 0;
    uint32_t count;
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$i:reader", names, &threads)
        || pysft_threads_of(threads, &count) < 0)
        return NULL;
    PyTypeObject *kind = pysft_type_of(state, PYSFT_TYPE_READER);
    ReaderObject *reader = kind ? (ReaderObject *)pysft_object_new(kind) : NULL;
    if (!reader) return NULL;
    atomic_flag_clear(&reader->busy);
    reader->plan = Py_NewRef(object);
    PYSFT_NO_GIL(code = sft_reader_start(self->plan, count, &reader->reader, &err));
    if (!code) return (PyObject *)reader;
    Py_DECREF(reader);
    return pysft_raise(state, &err, self->path);
}

static PyMemberDef plan_members[] = {
    { "wanted", T_ULONGLONG, offsetof(PlanObject, wanted), READONLY, "Bytes of all parts." },
    { "total", T_ULONGLONG, offsetof(PlanObject, total), READONLY,
      "Bytes that are read for them at most." },
    { "slot_bytes", T_ULONGLONG, offsetof(PlanObject, slot_bytes), READONLY, "Size of a slot." },
    { NULL, 0, 0, 0, NULL },
};

static PyMethodDef plan_methods[] = {
    { "run", PYSFT_KEYWORDS(plan_run), "run($self, /, *, threads=0, progress=None)\n--\n\n" },
    { "reader", PYSFT_KEYWORDS(plan_reader), "reader($self, /, *, threads=0)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot plan_slots[] = {
    { Py_tp_doc, "ReadPlan(parts, blocks, *, slot_bytes=0, direct='auto')\n--\n\n"
      "What to read, and where to." },
    { Py_tp_new, plan_new },
    { Py_tp_dealloc, plan_dealloc },
    { Py_tp_traverse, plan_traverse },
    { Py_tp_members, plan_members },
    { Py_tp_methods, plan_methods },
    { 0, NULL },
};

/* ── Readers ─────────────────────────────────────────────────────────────── */

static void close_reader(ReaderObject *self) {
    sft_reader *reader = self->reader;
    self->reader = NULL;
    PYSFT_NO_GIL(sft_reader_close(reader));
}

static int reader_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((ReaderObject *)object)->plan);
    return 0;
}

static void reader_dealloc(PyObject *object) {
    ReaderObject *self = (ReaderObject *)object;
    PyObject_GC_UnTrack(object);
    close_reader(self);
    Py_XDECREF(self->plan);
    PyMem_Free(self->is_held);
    pysft_object_free(object);
}

/* Begins a call; end it with pysft_leave. */
static bool enter_open(ReaderObject *self) {
    return pysft_enter(&self->busy, "Reader")
           && pysft_stay(&self->busy, self->reader != NULL, "the Reader is closed");
}

static int add_slot(ReaderObject *self, void *memory) {
    size_t size = (size_t)(self->added + 1) * sizeof *self->is_held;
    bool *is_held = PyMem_Realloc(self->is_held, size);
    sft_error err = SFT_ERROR_INIT;
    if (!is_held) return pysft_no_memory();
    self->is_held = is_held;
    if (sft_reader_add(self->reader, memory, &err))
        return pysft_fail(pysft_state_from((PyObject *)self), &err, NULL);
    is_held[self->added++] = false;
    return 0;
}

static PyObject *reader_add(PyObject *object, PyObject *address) {
    ReaderObject *self = (ReaderObject *)object;
    void *memory;
    if (address_of(address, &memory) < 0 || !enter_open(self)) return NULL;
    int rc = add_slot(self, memory);
    pysft_leave(&self->busy);
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *reader_starved(PyObject *object, PyObject *Py_UNUSED(none)) {
    ReaderObject *self = (ReaderObject *)object;
    if (!enter_open(self)) return NULL;
    bool starved = sft_reader_starved(self->reader);
    pysft_leave(&self->busy);
    return PyBool_FromLong(starved);
}

static PyObject *copies_of(const sft_filled *filled) {
    PyObject *list = PyList_New((Py_ssize_t)filled->copy_count);
    for (size_t i = 0; list && i < filled->copy_count; i++) {
        const sft_read_copy *copy = &filled->copies[i];
        pysft_list_put(&list, i, Py_BuildValue("(KKKK)", (unsigned long long)copy->block,
                                               (unsigned long long)copy->at,
                                               (unsigned long long)copy->from,
                                               (unsigned long long)copy->len));
    }
    return list;
}

/* (slot, copies); None if none came; (None, []) at the end. */
static PyObject *next_filled(ReaderObject *self, int32_t milliseconds) {
    sft_error err = SFT_ERROR_INIT;
    sft_filled filled;
    sft_code code;
    PYSFT_NO_GIL(code = sft_reader_next(self->reader, milliseconds, &filled, &err));
    if (code)
        return pysft_raise(pysft_state_from((PyObject *)self), &err,
                           ((PlanObject *)self->plan)->path);
    if (PyErr_Occurred() || PyErr_CheckSignals() < 0) return NULL;
    if (filled.slot == SFT_SLOT_NONE) return Py_NewRef(Py_None);
    if (filled.slot == SFT_SLOT_END) return Py_BuildValue("(O[])", Py_None);
    self->is_held[filled.slot] = true;
    PyObject *copies = copies_of(&filled);
    return copies ? Py_BuildValue("(nN)", (Py_ssize_t)filled.slot, copies) : NULL;
}

static PyObject *reader_next(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "milliseconds", NULL };
    ReaderObject *self = (ReaderObject *)object;
    int milliseconds = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i:next", names, &milliseconds)
        || !enter_open(self))
        return NULL;
    PyObject *row = next_filled(self, milliseconds < 0 ? -1 : milliseconds);
    pysft_leave(&self->busy);
    return row;
}

static PyObject *reader_give_back(PyObject *object, PyObject *number) {
    ReaderObject *self = (ReaderObject *)object;
    Py_ssize_t slot = PyLong_AsSsize_t(number);
    if ((slot == -1 && PyErr_Occurred()) || !enter_open(self)) return NULL;
    bool held = slot >= 0 && slot < self->added && self->is_held[slot];
    if (held) {
        self->is_held[slot] = false;
        sft_reader_give_back(self->reader, (size_t)slot);
    } else {
        PyErr_Format(PyExc_ValueError, "expected a slot that next() returned, found %zd", slot);
    }
    pysft_leave(&self->busy);
    return held ? Py_NewRef(Py_None) : NULL;
}

static PyObject *reader_close(PyObject *object, PyObject *Py_UNUSED(none)) {
    ReaderObject *self = (ReaderObject *)object;
    if (!pysft_enter(&self->busy, "Reader")) return NULL;
    close_reader(self);
    pysft_leave(&self->busy);
    return Py_NewRef(Py_None);
}

static PyMethodDef reader_methods[] = {
    { "add", reader_add, METH_O, "add($self, address, /)\n--\n\n" },
    { "starved", reader_starved, METH_NOARGS, "starved($self, /)\n--\n\n" },
    { "next", PYSFT_KEYWORDS(reader_next), "next($self, /, milliseconds=-1)\n--\n\n" },
    { "give_back", reader_give_back, METH_O, "give_back($self, slot, /)\n--\n\n" },
    { "close", reader_close, METH_NOARGS, "close($self, /)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot reader_slots[] = {
    { Py_tp_doc, "Threads that fill slots with what a ReadPlan wants; made by its reader()." },
    { Py_tp_dealloc, reader_dealloc },
    { Py_tp_traverse, reader_traverse },
    { Py_tp_methods, reader_methods },
    { 0, NULL },
};

/* ── The module ──────────────────────────────────────────────────────────── */

static PyObject *is_local(PyObject *module, PyObject *tensor) {
    if (!pysft_is_a(pysft_state_of(module), tensor, PYSFT_TYPE_TENSOR))
        return PyErr_Format(PyExc_TypeError, "expected a Tensor, found %R", Py_TYPE(tensor));
    return PyBool_FromLong(pysft_store_local(((TensorObject *)tensor)->store));
}

PyMethodDef pysft_reader_functions[] = {
    { "is_local", is_local, METH_O, "is_local($module, tensor, /)\n--\n\n" },
    { NULL, NULL, 0, NULL },
};

PyType_Spec pysft_plan_spec = {
    "libsafetensors._core.ReadPlan", sizeof(PlanObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, plan_slots,
};

PyType_Spec pysft_reader_spec = {
    "libsafetensors._core.Reader", sizeof(ReaderObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, reader_slots,
};
