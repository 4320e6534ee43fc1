/* Tensor: facts of a tensor or slice, whose bytes are read on demand. Tests: test_tensor.py. */
#include "specs.h"
#include "tensor.h"

#include <string.h>

/* ── Construction ──────────────────────────────────────────────────────────── */

static int fill_sizes(pysft_state *state, TensorObject *self) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    const sft_tensor *facts = self->facts;
    if (self->slice)
        code = sft_slice_size(self->slice, facts->dtype, &self->elements, &self->bytes, &err);
    else
        code = sft_shape_size(facts->dtype, facts->shape, facts->rank, &self->elements,
                              &self->bytes, &err);
    if (!code) return 0;
    return pysft_fail(state, &err, pysft_store_path(self->store));
}

static int fill_shape(TensorObject *self, const sft_slice *slice) {
    uint64_t shape[SFT_MAX_RANK];
    self->rank = self->facts->rank;
    self->shape = self->facts->shape;
    if (!slice) return 0;
    self->rank = sft_slice_shape(slice, shape);
    self->slice = PyMem_Malloc(sizeof *self->slice);
    self->own_shape = PyMem_Malloc((self->rank + 1) * sizeof *self->own_shape);
    if (!self->slice || !self->own_shape) return pysft_no_memory();
    *self->slice = *slice;
    if (self->rank) memcpy(self->own_shape, shape, self->rank * sizeof *shape);
    self->shape = self->own_shape;
    return 0;
}

PyObject *pysft_tensor_new(pysft_state *state, pysft_store *store, const sft_tensor *facts,
                           size_t shard, const sft_slice *slice) {
    PyTypeObject *type = pysft_type_of(state, PYSFT_TYPE_TENSOR);
    TensorObject *self = type ? PyObject_GC_New(TensorObject, type) : NULL;
    if (!self) return NULL;
    self->store = pysft_store_hold(store);
    self->facts = facts;
    self->shard = shard;
    self->slice = NULL;
    self->own_shape = NULL;
    self->elements = self->bytes = 0;
    self->weakrefs = NULL;
    atomic_init(&self->packed, NULL);
    atomic_init(&self->dims, NULL);
    int status = fill_shape(self, slice) == 0 ? fill_sizes(state, self) : -1;
    if (status == 0) PyObject_GC_Track(self);
    return pysft_object_made(self, status);
}

static int tensor_traverse(PyObject *object, visitproc visit, void *arg) {
    TensorObject *self = (TensorObject *)object;
    Py_VISIT(Py_TYPE(object));
    return pysft_store_visit(self->store, visit, arg);
}

/* No tp_clear: a tensor needs its store. A cycle is broken at the File or the source object. */
static void tensor_dealloc(PyObject *object) {
    TensorObject *self = (TensorObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    pysft_weakrefs_clear(object, self->weakrefs);
    pysft_store_drop(atomic_load(&self->packed));
    pysft_store_drop(self->store);
    PyMem_Free(atomic_load(&self->dims));
    PyMem_Free(self->slice);
    PyMem_Free(self->own_shape);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* ── Facts ───────────────────────────────────────────────────────────────── */

static PyObject *get_name(PyObject *self, void *Py_UNUSED(closure)) {
    return pysft_text(((TensorObject *)self)->facts->name);
}

static PyObject *get_dtype(PyObject *self, void *Py_UNUSED(closure)) {
    return Py_NewRef(pysft_state_from(self)->dtype_names[((TensorObject *)self)->facts->dtype]);
}

static PyObject *get_shape(PyObject *self, void *Py_UNUSED(closure)) {
    return pysft_shape_tuple(((TensorObject *)self)->shape, ((TensorObject *)self)->rank);
}

static PyObject *get_offset(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(((TensorObject *)self)->facts->offset);
}

static PyObject *get_data_offsets(PyObject *self, void *Py_UNUSED(closure)) {
    const sft_tensor *facts = ((TensorObject *)self)->facts;
    return Py_BuildValue("(KK)", (unsigned long long)facts->begin,
                         (unsigned long long)facts->end);
}

static PyObject *get_aligned(PyObject *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(sft_tensor_aligned(((TensorObject *)self)->facts));
}

static Py_ssize_t tensor_len(PyObject *object) {
    TensorObject *self = (TensorObject *)object;
    if (self->rank > 0 && self->shape[0] <= PY_SSIZE_T_MAX) return (Py_ssize_t)self->shape[0];
    if (self->rank > 0)
        return pysft_refuse(PyExc_OverflowError, "the first dimension is too large");
    return pysft_refuse(PyExc_TypeError, "a tensor without dimensions has no len()");
}

static PyObject *tensor_repr(PyObject *object) {
    TensorObject *self = (TensorObject *)object;
    PyObject *name = get_name(object, NULL), *shape = get_shape(object, NULL), *text = NULL;
    if (name && shape)
        text = PyUnicode_FromFormat("<Tensor %R %s %S>", name,
                                    sft_dtype_describe(self->facts->dtype)->name, shape);
    Py_XDECREF(name);
    Py_XDECREF(shape);
    return text;
}

/* Always true, whatever the tensor holds. */
static int tensor_bool(PyObject *Py_UNUSED(object)) {
    return 1;
}

static bool same_slice(const TensorObject *a, const TensorObject *b) {
    if (!a->slice || !b->slice) return a->slice == b->slice;
    if (a->slice->rank != b->slice->rank || a->slice->dropped != b->slice->dropped) return false;
    for (uint32_t d = 0; d < a->slice->rank; d++) {
        const sft_range *one = &a->slice->range[d], *other = &b->slice->range[d];
        if (one->start != other->start || one->count != other->count || one->step != other->step)
            return false;
    }
    return true;
}

/* Equal if both are the same selection of the same open file; values are not compared. */
static PyObject *tensor_compare(PyObject *object, PyObject *other, int op) {
    TensorObject *a = (TensorObject *)object, *b = (TensorObject *)other;
    if (Py_TYPE(object) != Py_TYPE(other) || (op != Py_EQ && op != Py_NE))
        return Py_NewRef(Py_NotImplemented);
    bool same = a->store == b->store && a->facts == b->facts && same_slice(a, b);
    return PyBool_FromLong(same == (op == Py_EQ));
}

static Py_hash_t tensor_hash(PyObject *object) {
    const TensorObject *self = (const TensorObject *)object;
    uintptr_t at = (uintptr_t)self->facts / sizeof(void *);
    if (self->slice) at = at * 31 + (uintptr_t)self->elements;
    return (Py_hash_t)at == -1 ? -2 : (Py_hash_t)at;
}

/* ── Slices and bytes ────────────────────────────────────────────────────── */

/* Whether part of an index is a list or an array, of positions or of booleans. */
static bool is_choice(PyObject *part) {
    if (PyLong_Check(part) || PySlice_Check(part) || part == Py_Ellipsis) return false;
    if (PyList_Check(part)) return true;
    PyObject *rank = PyObject_HasAttrString(part, "__array__")
                         ? PyObject_GetAttrString(part, "ndim") : NULL;
    bool is = rank && PyLong_Check(rank) && PyLong_AsLong(rank) > 0;
    PyErr_Clear();
    Py_XDECREF(rank);
    return is;
}

static bool has_choice(PyObject *index) {
    if (!PyTuple_Check(index)) return is_choice(index);
    for (Py_ssize_t i = 0; i < PyTuple_Size(index); i++)
        if (is_choice(PyTuple_GetItem(index, i))) return true;
    return false;
}

static PyObject *tensor_subscript(PyObject *object, PyObject *index) {
    TensorObject *self = (TensorObject *)object;
    pysft_state *state = pysft_state_from(object);
    sft_slice slice;
    if (has_choice(index))
        return pysft_import_apply("libsafetensors._choice", "chosen",
                                  Py_BuildValue("(OO)", object, index));
    if (pysft_slice_of(state, index, self->facts, self->slice, &slice) < 0) return NULL;
    return pysft_tensor_new(state, self->store, self->facts, self->shard, &slice);
}

/* Appends (begin, end), or extends the last range if they are adjacent. */
static int add_range(PyObject *list, uint64_t *begin, uint64_t *end, uint64_t at, uint64_t len) {
    if (len == 0) return 0;
    bool joins = *begin < *end && at == *end;
    if (joins) *end += len;
    else {
        *begin = at;
        *end = at + len;
    }
    PyObject *range = Py_BuildValue("(KK)", (unsigned long long)*begin,
                                    (unsigned long long)*end);
    if (!range) return -1;
    if (joins) return PyList_SetItem(list, PyList_Size(list) - 1, range);
    int rc = PyList_Append(list, range);
    Py_DECREF(range);
    return rc;
}

static int add_runs(TensorObject *self, sft_runs *runs, PyObject *list) {
    uint64_t begin = 0, end = 0, count = 0;
    sft_run run;
    while (sft_runs_next(runs, &run)) {
        if (add_range(list, &begin, &end, self->facts->offset + run.offset, run.len) < 0)
            return -1;
        if (++count % 65536 == 0 && PyErr_CheckSignals() < 0) return -1;
    }
    return 0;
}

static PyObject *tensor_byte_ranges(PyObject *object, PyObject *Py_UNUSED(none)) {
    TensorObject *self = (TensorObject *)object;
    uint64_t begin = 0, end = 0;
    sft_error err = SFT_ERROR_INIT;
    sft_runs runs;
    int rc;
    PyObject *list = PyList_New(0);
    if (!list) return NULL;
    if (!self->slice) rc = add_range(list, &begin, &end, self->facts->offset, self->bytes);
    else if (!sft_runs_begin(self->facts, self->slice, &runs, &err))
        rc = add_runs(self, &runs, list);
    else {
        (void)pysft_raise(pysft_state_from(object), &err, pysft_store_path(self->store));
        rc = -1;
    }
    if (rc < 0) Py_CLEAR(list);
    return list;
}

static int read_now(PyObject *object, void *into, uint64_t len) {
    TensorObject *self = (TensorObject *)object;
    return pysft_read(pysft_state_from(object), self->store, self->facts, self->shard,
                      self->slice, into, len);
}

static PyObject *tensor_tobytes(PyObject *object, PyObject *Py_UNUSED(none)) {
    uint64_t len = ((TensorObject *)object)->bytes;
    if (len > PY_SSIZE_T_MAX) return PyErr_NoMemory();
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len);
    if (bytes && read_now(object, PyBytes_AsString(bytes), len) < 0) Py_CLEAR(bytes);
    return bytes;
}

static PyObject *tensor_read_into(PyObject *object, PyObject *target) {
    Py_buffer view;
    uint64_t len = ((TensorObject *)object)->bytes;
    sft_span none = { NULL, 0 };
    if (!pysft_elements_take(pysft_state_from(object), target, PyBUF_CONTIG,
                             pysft_tensor_dtype(object), none, &view))
        return NULL;
    int rc = -1;
    if ((uint64_t)view.len == len) rc = read_now(object, view.buf, len);
    else
        PyErr_Format(PyExc_ValueError, "expected a buffer of %llu bytes, found %zd",
                     (unsigned long long)len, view.len);
    PyBuffer_Release(&view);
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

/* ── Arrays ──────────────────────────────────────────────────────────────── */

static PyObject *numpy_of(PyObject *object) {
    TensorObject *self = (TensorObject *)object;
    pysft_state *state = pysft_state_from(object);
    Py_ssize_t strides[SFT_MAX_RANK];
    pysft_piece piece;
    if (pysft_tensor_piece(state, self, 0, &piece, strides) < 0) return NULL;
    return pysft_numpy_of(state, &piece, NULL, NULL);
}

static PyObject *tensor_numpy(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "dtype", NULL };
    PyObject *dtype = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O:numpy", names, &dtype)) return NULL;
    PyObject *array = numpy_of(object);
    if (array && dtype != Py_None)
        pysft_replace(&array, pysft_import_apply(PYSFT_ARRAYS, "numpy_as",
                                                 Py_BuildValue("(OO)", array, dtype)));
    return array;
}

/* A private copy. */
static pysft_store *own_copy(PyObject *object, pysft_piece *piece) {
    TensorObject *self = (TensorObject *)object;
    pysft_store *block = pysft_read_block(pysft_state_from(object), self->store, self->facts,
                                          self->shard, self->slice, piece->bytes);
    if (!block) return NULL;
    piece->store = block;
    piece->data = pysft_store_bytes(block);
    piece->strides = NULL;
    piece->writable = true;
    return block;
}

/* own: over a copy of the elements that is never shared. */
static PyObject *torch_of(PyObject *object, bool own) {
    TensorObject *self = (TensorObject *)object;
    pysft_state *state = pysft_state_from(object);
    Py_ssize_t strides[SFT_MAX_RANK];
    unsigned want = want_writable | want_forward;
    pysft_store *block = NULL;
    pysft_piece piece;
    if (own) {
        piece = (pysft_piece){ NULL,       NULL,        true, self->facts->dtype,
                               self->rank, self->shape, NULL, self->bytes };
        block = own_copy(object, &piece);
        if (!block) return NULL;
    } else if (pysft_tensor_piece(state, self, want, &piece, strides) < 0) {
        return NULL;
    }
    PyObject *tensor = pysft_torch_of(state, &piece);
    pysft_store_drop(block);
    return tensor;
}

static PyObject *tensor_torch(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "device", "dtype", "copy", NULL };
    PyObject *device = Py_None, *dtype = Py_None;
    int copy = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOp:torch", names, &device, &dtype, &copy))
        return NULL;
    if (device == Py_None && dtype == Py_None) return torch_of(object, copy != 0);
    return pysft_import_apply(PYSFT_ARRAYS, "torch_as",
                              Py_BuildValue("(OOOO)", object, device, dtype,
                                            copy ? Py_True : Py_False));
}

static PyObject *tensor_item(PyObject *object, PyObject *Py_UNUSED(none)) {
    return pysft_import_call(PYSFT_VIEWS, "item", object);
}

/* copy=: True, False or None. */
static int check_copy(PyObject *copy) {
    if (copy == Py_None || PyBool_Check(copy)) return 0;
    return pysft_refuse(PyExc_TypeError, "copy: expected True, False or None, found %R", copy);
}

/* numpy's copy=: True always, False never, None if necessary. */
static PyObject *array_as(PyObject *array, PyObject *dtype, PyObject *copy) {
    PyObject *make = pysft_import("numpy", copy == Py_True ? "array" : "asarray");
    PyObject *made = NULL, *given = NULL;
    if (make) given = Py_BuildValue("(OO)", array, dtype);
    if (given) made = PyObject_Call(make, given, NULL);
    if (made && copy == Py_False && made != array) {
        Py_CLEAR(made);
        PyErr_SetString(PyExc_ValueError, "another dtype needs a copy");
    }
    Py_XDECREF(given);
    Py_XDECREF(make);
    return made;
}

static PyObject *tensor_array(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "dtype", "copy", NULL };
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy)
        || check_copy(copy) < 0)
        return NULL;
    PyObject *array = numpy_of(object);
    if (array && (dtype != Py_None || copy == Py_True))
        pysft_replace(&array, array_as(array, dtype, copy));
    return array;
}

/* ── DLPack ──────────────────────────────────────────────────────────────── */

static int check_device(PyObject *stream, PyObject *device) {
    int found[2] = { 1, 0 };
    if (stream != Py_None) {
        long value = PyLong_AsLong(stream);
        if (value == -1 && PyErr_Occurred()) return -1;
        if (value != -1) return pysft_refuse(PyExc_BufferError, "memory of the CPU has no streams");
    }
    if (device != Py_None && pysft_two_of(device, "dl_device", found) < 0) return -1;
    if (found[0] == 1 && found[1] == 0) return 0;
    return pysft_refuse(PyExc_BufferError, "only the CPU, device (1, 0), can be asked for");
}

static PyObject *dlpack_of(PyObject *object, bool versioned, PyObject *copy) {
    TensorObject *self = (TensorObject *)object;
    pysft_dlpack_dtype type = pysft_dlpack_dtype_of(self->facts->dtype);
    Py_ssize_t strides[SFT_MAX_RANK];
    pysft_store *block = NULL;
    PyObject *capsule = NULL;
    pysft_piece piece;
    /* Consumers that ignore the read-only flag would crash writing to the memory. */
    bool takes_read_only = versioned && copy == Py_False;
    unsigned want = want_forward | (takes_read_only ? 0 : want_writable);
    if (copy == Py_False && !pysft_store_mapped(self->store))
        return PyErr_Format(PyExc_BufferError, "the tensor is not in memory: it must be copied");
    if (pysft_tensor_piece(pysft_state_from(object), self, want, &piece, strides) < 0)
        return NULL;
    if (copy == Py_False && piece.store != self->store)
        PyErr_SetString(PyExc_BufferError, "the elements cannot be shared as they are "
                                           "stored: they must be copied");
    else if (copy != Py_True || (block = own_copy(object, &piece)) != NULL)
        capsule = pysft_dlpack_of(&piece, type, versioned, piece.store != self->store);
    pysft_store_drop(block);
    return capsule;
}

static PyObject *tensor_dlpack(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    int most[2] = { 0, 0 };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy))
        return NULL;
    if (check_device(stream, device) < 0
        || (version != Py_None && pysft_two_of(version, "max_version", most) < 0)
        || check_copy(copy) < 0)
        return NULL;
    return dlpack_of(object, most[0] >= 1, copy);
}

static PyObject *tensor_dlpack_device(PyObject *Py_UNUSED(object), PyObject *Py_UNUSED(none)) {
    return Py_BuildValue("(ii)", 1, 0);
}

/* ── The type ────────────────────────────────────────────────────────────── */

static PyGetSetDef tensor_getset[] = {
    { "name", get_name, NULL, "Name in the file.", NULL },
    { "dtype", get_dtype, NULL, "Name of the dtype in the header, such as \"BF16\".", NULL },
    { "shape", get_shape, NULL, "Tuple of dimensions; of a slice, those of the result.", NULL },
    { "offset", get_offset, NULL, "First byte in the file, of the whole tensor.", NULL },
    { "data_offsets", get_data_offsets, NULL,
      "First byte and end in the data of the file, of the whole tensor.", NULL },
    { "aligned", get_aligned, NULL, "Whether the elements are aligned in the file.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef tensor_methods[] = {
    { "byte_ranges", tensor_byte_ranges, METH_NOARGS,
      "byte_ranges($self, /)\n--\n\n"
      "List of (begin, end) of the bytes in the file, in the order of the elements; adjacent\n"
      "ranges are joined." },
    { "tobytes", tensor_tobytes, METH_NOARGS,
      "tobytes($self, /)\n--\n\nCopy of the elements as bytes, packed, in C order." },
    { "read_into", tensor_read_into, METH_O,
      "read_into($self, buffer, /)\n--\n\n"
      "Read the elements into a writable buffer of exactly nbytes: plain bytes, or elements of\n"
      "this dtype. ValueError for another size or dtype." },
    { "item", tensor_item, METH_NOARGS,
      "item($self, /)\n--\n\n"
      "The one element as a bool, int, float or complex. ValueError for more or fewer." },
    { "numpy", PYSFT_KEYWORDS(tensor_numpy),
      "numpy($self, /, *, dtype=None)\n--\n\n"
      "A numpy.ndarray; shares the file's memory if it is mapped and aligned, else a copy\n"
      "made once. dtype: of numpy or torch, or a name, to which it is converted.\n"
      "TypeError for a dtype that needs ml_dtypes, if that is not installed." },
    { "torch", PYSFT_KEYWORDS(tensor_torch),
      "torch($self, /, *, device=None, dtype=None, copy=False)\n--\n\n"
      "A torch.Tensor; on the CPU it shares the file's memory if that is possible, else a copy\n"
      "made once; copy=True: in memory of its own. device: any that torch knows; dtype as for\n"
      "numpy.\n"
      "TypeError for a dtype that torch lacks." },
    { "stats", PYSFT_KEYWORDS(pysft_tensor_stats),
      "stats($self, /, *, threads=0, progress=None, histogram=False)\n--\n\n"
      "Statistics of the elements: counts of values, zeros, nan and inf; min, max, mean, std and\n"
      "abs_mean of the finite ones, None if there are none. Sums are exact. histogram: also\n"
      "(exponent, negative, positive): values of a magnitude from 2**exponent to twice that." },
    { "__bytes__", tensor_tobytes, METH_NOARGS, "__bytes__($self, /)\n--\n\nAs tobytes." },
    { "__array__", PYSFT_KEYWORDS(tensor_array),
      "__array__($self, /, dtype=None, copy=None)\n--\n\nFor numpy." },
    { "__dlpack__", PYSFT_KEYWORDS(tensor_dlpack),
      "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n"
      "--\n\nCapsule of the elements, on the CPU." },
    { "__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
      "__dlpack_device__($self, /)\n--\n\n(1, 0): the CPU." },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef tensor_members[] = {
    { "ndim", T_UINT, offsetof(TensorObject, rank), READONLY, "Number of dimensions." },
    { "size", T_ULONGLONG, offsetof(TensorObject, elements), READONLY, "Number of elements." },
    { "nbytes", T_ULONGLONG, offsetof(TensorObject, bytes), READONLY, "Number of bytes, packed." },
    { "shard", T_PYSSIZET, offsetof(TensorObject, shard), READONLY,
      "Index of its file in File.paths." },
    PYSFT_WEAKREF_ROW(TensorObject, weakrefs),
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot tensor_slots[] = {
    { Py_tp_doc, "One tensor of a file, or a slice of one; made by a File.\n\n"
      "Facts cost nothing; bytes are read on demand. Exports the buffer protocol and DLPack:\n"
      "the memory of a mapped file, writable and private to this process, or a copy made\n"
      "once. BufferError for a buffer with a format, as memoryview asks for, of BF16 and floats\n"
      "of 8 bits and less, which have none. Indexing gives another Tensor and reads nothing.\n"
      "Threads may share it." },
    { Py_tp_dealloc, tensor_dealloc },
    { Py_tp_traverse, tensor_traverse },
    { Py_tp_repr, tensor_repr },
    { Py_tp_richcompare, tensor_compare },
    { Py_tp_hash, tensor_hash },
    { Py_nb_bool, tensor_bool },
    { Py_tp_members, tensor_members },
    { Py_tp_getset, tensor_getset },
    { Py_tp_methods, tensor_methods },
    { Py_mp_length, tensor_len },
    { Py_mp_subscript, tensor_subscript },
    { Py_bf_getbuffer, pysft_tensor_buffer },
    { 0, NULL },
};

PyType_Spec pysft_tensor_spec = {
    .name = "libsafetensors._core.Tensor",
    .basicsize = sizeof(TensorObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = tensor_slots,
};
