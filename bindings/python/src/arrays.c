/* numpy: its functions and dtypes, and arrays over existing memory. Tests: test_tensor.py. */
#include "piece.h"

#include <stdlib.h>
#include <string.h>

/* Names of numpy's own dtypes, and of those in ml_dtypes. */
static const char *const numpy_names[SFT_DTYPE_COUNT] = {
    [SFT_BOOL] = "?",  [SFT_U8] = "u1",   [SFT_I8] = "i1",   [SFT_I16] = "<i2",
    [SFT_U16] = "<u2", [SFT_F16] = "<f2", [SFT_I32] = "<i4", [SFT_U32] = "<u4",
    [SFT_F32] = "<f4", [SFT_C64] = "<c8", [SFT_F64] = "<f8", [SFT_I64] = "<i8",
    [SFT_U64] = "<u8",
};

static const char *const ml_names[SFT_DTYPE_COUNT] = {
    [SFT_F4] = "float4_e2m1fn",
    [SFT_F6_E2M3] = "float6_e2m3fn",
    [SFT_F6_E3M2] = "float6_e3m2fn",
    [SFT_F8_E5M2] = "float8_e5m2",
    [SFT_F8_E4M3] = "float8_e4m3fn",
    [SFT_F8_E8M0] = "float8_e8m0fnu",
    [SFT_F8_E4M3FNUZ] = "float8_e4m3fnuz",
    [SFT_F8_E5M2FNUZ] = "float8_e5m2fnuz",
    [SFT_BF16] = "bfloat16",
};

const char *pysft_ml_name(sft_dtype dtype) {
    return ml_names[dtype];
}

PyObject *pysft_ndarray(pysft_state *state) {
    PyObject *known = atomic_load(&state->ndarray);
    return known ? known : pysft_once(&state->ndarray, pysft_import("numpy", "ndarray"));
}

/* Borrowed from the state. */
static PyObject *numpy_dtype(pysft_state *state, sft_dtype dtype) {
    PyObject *found = atomic_load(&state->numpy_dtypes[dtype]);
    if (found) return found;
    PyObject *of = numpy_names[dtype] ? PyUnicode_FromString(numpy_names[dtype])
                                      : pysft_import("ml_dtypes", ml_names[dtype]);
    if (!of && (PyErr_ExceptionMatches(PyExc_ImportError)
                || PyErr_ExceptionMatches(PyExc_AttributeError))) {
        PyErr_Clear();
        return PyErr_Format(PyExc_TypeError, "numpy has no %U; with the package ml_dtypes (0.5 or "
                                             "newer) installed it has",
                            state->dtype_names[dtype]);
    }
    found = pysft_import_call("numpy", "dtype", of);
    Py_XDECREF(of);
    return pysft_once(&state->numpy_dtypes[dtype], found);
}

PyObject *pysft_shape_tuple(const uint64_t *shape, uint32_t rank) {
    PyObject *tuple = PyTuple_New(rank);
    for (uint32_t i = 0; tuple && i < rank; i++) {
        PyObject *dim = PyLong_FromUnsignedLongLong(shape[i]);
        if (!dim || PyTuple_SetItem(tuple, i, dim) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *strides_tuple(const Py_ssize_t *strides, uint32_t rank) {
    PyObject *tuple = PyTuple_New(rank);
    for (uint32_t i = 0; tuple && i < rank; i++) {
        PyObject *step = PyLong_FromSsize_t(strides[i]);
        if (!step || PyTuple_SetItem(tuple, i, step) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* New tuple of the objects, whose references are consumed; NULL if one of them is NULL. */
static PyObject *pack(PyObject **items, Py_ssize_t count) {
    PyObject *tuple = NULL;
    Py_ssize_t there = 0;
    while (there < count && items[there]) there++;
    if (there == count) tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (tuple) (void)PyTuple_SetItem(tuple, i, items[i]);
        else Py_XDECREF(items[i]);
    }
    return tuple;
}

/* numpy.ndarray(shape, dtype, memory, offset[, strides]) */
static PyObject *make_array(PyObject *ndarray, PyObject *dtype, const pysft_piece *piece,
                            PyObject *memory, const char *start) {
    PyObject *items[5] = { pysft_shape_tuple(piece->shape, piece->rank), Py_NewRef(dtype),
                           Py_NewRef(memory), PyLong_FromSsize_t(piece->data - start), NULL };
    Py_ssize_t count = 4;
    if (piece->strides) items[count++] = strides_tuple(piece->strides, piece->rank);
    PyObject *args = pack(items, count);
    PyObject *array = args ? PyObject_Call(ndarray, args, NULL) : NULL;
    Py_XDECREF(args);
    return array;
}

/* The lowest address a strided piece touches, and the bytes from there to its end. */
static void reach_of(const pysft_piece *piece, char **low, uint64_t *len) {
    Py_ssize_t down = 0, up = (Py_ssize_t)sft_dtype_describe(piece->dtype)->bits / 8;
    *low = piece->data;
    *len = piece->bytes;
    if (!piece->strides || piece->bytes == 0) return;
    for (uint32_t i = 0; i < piece->rank; i++) {
        Py_ssize_t far = piece->strides[i] * (Py_ssize_t)(piece->shape[i] - 1);
        if (far < 0) down += far;
        else up += far;
    }
    *low = piece->data + down;
    *len = (uint64_t)(up - down);
}

static PyObject *array_over(pysft_state *state, PyObject *ndarray, PyObject *dtype,
                            const pysft_piece *piece) {
    char *low;
    uint64_t len;
    reach_of(piece, &low, &len);
    PyObject *memory = pysft_memory_new(state, piece->store, low, len, piece->writable);
    PyObject *array = memory ? make_array(ndarray, dtype, piece, memory, low) : NULL;
    Py_XDECREF(memory);
    return array;
}

/* Unpacks to one element per byte; bits are counted from the lowest bit of the first byte. */
static void unpack_bits(const uint8_t *from, uint32_t bits, uint64_t count, uint8_t *into) {
    uint32_t held = 0, have = 0, mask = (1u << bits) - 1;
    for (uint64_t i = 0; i < count; i++) {
        if (have < bits) {
            held |= (uint32_t)*from++ << have;
            have += 8;
        }
        into[i] = (uint8_t)(held & mask);
        held >>= bits;
        have -= bits;
    }
}

/* Works in parts of whole bytes and checks signals between them. */
static int unpack_all(const uint8_t *from, uint32_t bits, uint64_t count, uint8_t *into) {
    const uint64_t part = UINT64_C(8) << 20;
    for (uint64_t done = 0; done < count; done += part) {
        uint64_t now = count - done < part ? count - done : part;
        PYSFT_NO_GIL(unpack_bits(from + done / 8 * bits, bits, now, into + done));
        if (PyErr_CheckSignals() < 0) return -1;
    }
    return 0;
}

static PyObject *unpacked_array(pysft_state *state, PyObject *ndarray, PyObject *dtype,
                                const pysft_piece *piece) {
    uint32_t bits = sft_dtype_describe(piece->dtype)->bits;
    uint64_t count = piece->bytes * 8 / bits;
    pysft_store *block = pysft_store_block(count);
    if (!block) return PyErr_NoMemory();
    pysft_piece bytes = *piece;
    bytes.store = block;
    bytes.data = pysft_store_bytes(block);
    bytes.writable = true;
    bytes.bytes = count;
    int rc = unpack_all((const uint8_t *)piece->data, bits, count, (uint8_t *)bytes.data);
    PyObject *array = rc < 0 ? NULL : array_over(state, ndarray, dtype, &bytes);
    pysft_store_drop(block);
    return array;
}

PyObject *pysft_numpy_of(pysft_state *state, const pysft_piece *piece, PyObject *memory,
                         const char *start) {
    PyObject *ndarray = pysft_ndarray(state);
    PyObject *dtype = ndarray ? numpy_dtype(state, piece->dtype) : NULL;
    if (!dtype) return NULL;
    if (sft_dtype_describe(piece->dtype)->bits < 8)
        return unpacked_array(state, ndarray, dtype, piece);
    if (memory) return make_array(ndarray, dtype, piece, memory, start);
    return array_over(state, ndarray, dtype, piece);
}
