/* Names, dtypes, shapes and data of tensors that are written, from tuples. Tests: test_save.py. */
#include "specs.h"

#include "tensor.h"

#include "safetensors_report.h"
#include "safetensors_io.h"

#include <string.h>

static bool refuse_tensor(pysft_state *state, sft_code code, sft_span name, const char *text) {
    sft_error err = SFT_ERROR_INIT;
    pysft_error_tensor(&err, code, name, text);
    pysft_raise(state, &err, NULL);
    return false;
}

/* ── Names, dtypes, shapes ── */

static bool dims_reserve(pysft_specs *specs, size_t more) {
    if (specs->dim_capacity - specs->dim_count >= more) return true;
    size_t cap = 2 * specs->dim_capacity + more + 16;
    uint64_t *dims = PyMem_Realloc(specs->dims, cap * sizeof *dims);
    if (!dims) return pysft_no_memory() == 0;
    specs->dims = dims;
    specs->dim_capacity = cap;
    return true;
}

/* A name in the header, or a dtype of numpy or torch, or its name. */
static bool dtype_take(pysft_state *state, PyObject *dtype, sft_spec *spec) {
    sft_span name;
    if (PyUnicode_Check(dtype) && pysft_span_of(dtype, "dtype", &name) == 0
        && sft_dtype_parse(name, &spec->dtype))
        return true;
    if (PyErr_Occurred()) return false;
    PyObject *known = pysft_import_call(PYSFT_DTYPES, "dtype_name", dtype);
    bool taken = known && pysft_span_of(known, "dtype", &name) == 0;
    bool is_dtype = taken && sft_dtype_parse(name, &spec->dtype);
    if (taken && !is_dtype) {
        char text[160];
        (void)PyOS_snprintf(text, sizeof text, "expected a dtype of the format, found \"%.*s\"",
                            (int)pysft_text_cut(name.data, name.len, 64), name.data);
        (void)refuse_tensor(state, SFT_DTYPE_UNKNOWN, spec->name, text);
    }
    Py_XDECREF(known);
    return is_dtype;
}

/* dims is reallocated as shapes are added: pointers to it are set at the end. */
static bool shape_take(PyObject *shape, pysft_specs *specs, sft_spec *spec) {
    PyObject *tuple = PySequence_Tuple(shape);
    if (!tuple) return false;
    size_t rank = (size_t)PyTuple_Size(tuple);
    bool ok = rank <= UINT32_MAX && dims_reserve(specs, rank);
    for (size_t d = 0; ok && d < rank; d++)
        ok = pysft_uint_of(PyTuple_GetItem(tuple, (Py_ssize_t)d),
                           &specs->dims[specs->dim_count + d]) == 0;
    Py_DECREF(tuple);
    if (!ok) return false;
    spec->rank = (uint32_t)rank;
    specs->dim_count += rank;
    return true;
}

static void point_at_dims(pysft_specs *specs) {
    const uint64_t *at = specs->dims;
    for (size_t i = 0; i < specs->count; i++) {
        specs->items[i].shape = at;
        at += specs->items[i].rank;
    }
}

static bool row_take(pysft_state *state, PyObject *row, Py_ssize_t width, pysft_specs *specs,
                     sft_spec *spec) {
    if (PyTuple_Check(row) && PyTuple_Size(row) == width)
        return pysft_span_of(PyTuple_GetItem(row, 0), "name", &spec->name) == 0
               && dtype_take(state, PyTuple_GetItem(row, 1), spec)
               && shape_take(PyTuple_GetItem(row, 2), specs, spec);
    PyErr_Format(PyExc_TypeError,
                 width == 3 ? "expected a tuple of name, dtype and shape, found %R"
                            : "expected a tuple of name, dtype, shape, data and strides, "
                              "found %R",
                 (PyObject *)Py_TYPE(row));
    return false;
}

bool pysft_specs_take(pysft_state *state, PyObject *rows, Py_ssize_t width, pysft_specs *out) {
    memset(out, 0, sizeof *out);
    out->held = PySequence_Tuple(rows);
    if (!out->held) return false;
    out->count = (size_t)PyTuple_Size(out->held);
    out->items = PyMem_Calloc(out->count + 1, sizeof *out->items);
    bool ok = out->items || pysft_no_memory() == 0;
    for (size_t i = 0; ok && i < out->count; i++)
        ok = row_take(state, PyTuple_GetItem(out->held, (Py_ssize_t)i), width, out,
                      &out->items[i]);
    if (ok) point_at_dims(out);
    return ok;
}

void pysft_specs_drop(pysft_specs *specs) {
    PyMem_Free(specs->items);
    PyMem_Free(specs->dims);
    Py_XDECREF(specs->held);
    memset(specs, 0, sizeof *specs);
}

/* ── Data ── */

/* The memory of a tensor's elements. */
typedef struct memory {
    const void *base; /* of the first element */
    uint64_t bytes;   /* of all elements, packed */
    uint64_t below, above; /* bytes of the buffer before base, and from it on */
    bool bounded;
} memory;

static bool address_take(PyObject *pair, memory *out) {
    uint64_t address;
    if (PyTuple_Size(pair) != 2)
        return pysft_refuse(PyExc_TypeError,
                            "expected data with a buffer or (address, bytes)") == 0;
    if (pysft_uint_of(PyTuple_GetItem(pair, 0), &address) < 0) return false;
    out->base = (const void *)(uintptr_t)address;
    return pysft_uint_of(PyTuple_GetItem(pair, 1), &out->bytes) == 0;
}

/* How far a buffer reaches on both sides of its first element. */
static void measure_view(const Py_buffer *view, memory *out) {
    out->bounded = true;
    out->above = (uint64_t)view->itemsize;
    for (int d = 0; d < view->ndim; d++) {
        int64_t far = (int64_t)(view->shape[d] - 1) * (int64_t)view->strides[d];
        if (view->shape[d] == 0) out->above = 0;
        if (view->shape[d] == 0) return;
        if (far < 0) out->below += (uint64_t)-far;
        else out->above += (uint64_t)far;
    }
}

static bool strides_take(PyObject *strides, uint32_t rank, int64_t *out) {
    PyObject *tuple = PySequence_Tuple(strides);
    if (!tuple) return false;
    bool ok = PyTuple_Size(tuple) == (Py_ssize_t)rank && rank <= SFT_MAX_RANK;
    if (!ok)
        PyErr_Format(PyExc_ValueError, "expected %u strides, %d at most, found %zd",
                     (unsigned)rank, SFT_MAX_RANK, PyTuple_Size(tuple));
    for (uint32_t d = 0; ok && d < rank; d++) {
        out[d] = PyLong_AsLongLong(PyTuple_GetItem(tuple, (Py_ssize_t)d));
        ok = out[d] != -1 || !PyErr_Occurred();
    }
    Py_DECREF(tuple);
    return ok;
}

/* Bytes from the first element to the end of the farthest on each side; false on overflow. */
static bool strides_reach(const sft_spec *spec, const int64_t *strides, uint64_t *below,
                          uint64_t *above) {
    *below = 0;
    *above = sft_dtype_describe(spec->dtype)->bits / 8;
    for (uint32_t d = 0; d < spec->rank; d++) {
        bool down = strides[d] < 0;
        uint64_t step = down ? 0 - (uint64_t)strides[d] : (uint64_t)strides[d];
        uint64_t times = spec->shape[d] - 1, *side = down ? below : above;
        if (step > 0 && times > UINT64_MAX / 2 / step) return false;
        if (*side > UINT64_MAX / 2) return false;
        *side += times * step;
    }
    return true;
}

/* What is written of a store's tensors is no more readable than its files. */
static void limit_mode(const pysft_store *store, pysft_parts *out) {
    uint32_t mode = store == out->limited ? 0 : sft_set_output_mode(pysft_store_set(store), NULL);
    out->limited = store;
    if (mode) out->mode = out->mode ? out->mode & mode : mode;
}

/* The bytes of a whole Tensor where they lie: in the memory that its file is mapped to or, with
 * files, in the file, so that they are read as they are written. False for anything else, and for a
 * Tensor whose elements were copied, and perhaps changed since. */
static bool tensor_take(pysft_state *state, PyObject *data, bool files, pysft_parts *out,
                        size_t i) {
    if (!pysft_is_a(state, data, PYSFT_TYPE_TENSOR)) return false;
    TensorObject *tensor = (TensorObject *)data;
    const sft_spec *spec = &out->specs.items[i];
    uint64_t bytes;
    bool writable;
    limit_mode(tensor->store, out);
    if (tensor->slice || tensor->facts->dtype != spec->dtype || atomic_load(&tensor->packed)
        || sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, NULL)
        || bytes != tensor->bytes)
        return false;
    const char *base = pysft_store_base(tensor->store, tensor->shard, &writable);
    if (base) {
        out->sources[i] = sft_source_memory(base + tensor->facts->begin, (size_t)bytes);
    } else if (files) {
        const sft_set *set = pysft_store_set(tensor->store);
        out->sources[i] = sft_file_source(sft_set_shard_at(set, tensor->shard));
        out->items[i].begin = tensor->facts->offset;
    }
    return base || files;
}

/* An object with size and read_at, which is asked for bytes as they are written. 1: taken, 0: it is
 * none, -1: exception. */
static int reader_take(pysft_state *state, PyObject *data, const sft_spec *spec,
                       sft_source *source) {
    uint64_t bytes;
    if (PyTuple_Check(data) || PyObject_CheckBuffer(data)
        || !PyObject_HasAttrString(data, "read_at"))
        return 0;
    if (pysft_source_of(data, source) < 0) return -1;
    if (sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, NULL)
        || bytes == source->size)
        return 1;
    (void)refuse_tensor(state, SFT_SIZE_MISMATCH, spec->name,
                        "expected an object of as many bytes as dtype and shape have, found "
                        "another size");
    return -1;
}

static bool part_take(pysft_state *state, PyObject *row, bool files, pysft_parts *out, size_t i) {
    const sft_spec *spec = &out->specs.items[i];
    Py_buffer *view = &out->views[i];
    sft_source *source = &out->sources[i];
    PyObject *data = PyTuple_GetItem(row, 3), *strides = PyTuple_GetItem(row, 4);
    bool strided = strides != Py_None;
    int64_t steps[SFT_MAX_RANK];
    sft_error err = SFT_ERROR_INIT;
    memory m = { .base = NULL };
    uint64_t bytes;
    if (!strided && tensor_take(state, data, files, out, i)) return true;
    int taken = strided ? 0 : reader_take(state, data, spec, source);
    if (taken) return taken > 0;
    if (strided && !strides_take(strides, spec->rank, steps)) return false;
    if (PyTuple_Check(data)) {
        if (!address_take(data, &m)) return false;
    } else {
        int flags = strided ? PyBUF_STRIDED_RO : PyBUF_CONTIG_RO;
        if (!pysft_elements_take(state, data, flags, spec->dtype, spec->name, view)) return false;
        m.base = view->buf;
        m.bytes = (uint64_t)view->len;
        if (strided) measure_view(view, &m);
    }
    *source = sft_source_memory(m.base, (size_t)m.bytes);
    /* Sizes that no tensor can have are refused by the plan. */
    if (sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, NULL)) return true;
    if (bytes != m.bytes) {
        char text[128];
        (void)PyOS_snprintf(text, sizeof text,
                            "expected %llu bytes for dtype and shape, found %llu",
                            (unsigned long long)bytes, (unsigned long long)m.bytes);
        return refuse_tensor(state, SFT_SIZE_MISMATCH, spec->name, text);
    }
    if (bytes > 0 && !m.base)
        return refuse_tensor(state, SFT_BAD_ARGUMENT, spec->name, "expected memory, found NULL");
    if (!strided) return true;
    uint64_t below, above;
    if (m.bounded && m.bytes > 0 && (!strides_reach(spec, steps, &below, &above)
                                     || below > m.below || above > m.above))
        return refuse_tensor(state, SFT_SIZE_MISMATCH, spec->name,
                             "expected strides that stay inside the buffer, found larger ones");
    if (!sft_source_strided(spec->dtype, spec->shape, spec->rank, m.base, steps, NULL, source,
                            &err))
        return true;
    *source = sft_source_memory(NULL, 0);
    pysft_error_tensor(&err, err.code, spec->name, err.message);
    pysft_raise(state, &err, NULL);
    return false;
}

bool pysft_parts_take(pysft_state *state, PyObject *rows, bool files, pysft_parts *out) {
    memset(out, 0, sizeof *out);
    if (!pysft_specs_take(state, rows, 5, &out->specs)) return false;
    const size_t count = out->specs.count;
    out->items = PyMem_Calloc(count + 1, sizeof *out->items);
    out->sources = PyMem_Calloc(count + 1, sizeof *out->sources);
    out->views = PyMem_Calloc(count + 1, sizeof *out->views);
    if (!out->items || !out->sources || !out->views) return pysft_no_memory() == 0;
    for (size_t i = 0; i < out->specs.count; i++) {
        PyObject *row = PyTuple_GetItem(out->specs.held, (Py_ssize_t)i);
        out->items[i] = (sft_part){ out->specs.items[i], &out->sources[i], 0 };
        if (!part_take(state, row, files, out, i)) return false;
    }
    return true;
}

void pysft_parts_drop(pysft_parts *parts) {
    for (size_t i = 0; parts->sources && i < parts->specs.count; i++)
        sft_source_close(&parts->sources[i]);
    for (size_t i = 0; parts->views && i < parts->specs.count; i++)
        if (parts->views[i].obj) PyBuffer_Release(&parts->views[i]);
    PyMem_Free(parts->items);
    PyMem_Free(parts->sources);
    PyMem_Free(parts->views);
    pysft_specs_drop(&parts->specs);
    memset(parts, 0, sizeof *parts);
}
