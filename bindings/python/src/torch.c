/* torch tensors over memory, by DLPack: each has a storage of its own. Tests: test_torch.py. */
#include "piece.h"

#include <stdlib.h>

/* How a dtype is passed. */
enum { route_unknown = 0, route_direct = 1, route_bytes = 2 };

#define TORCH_MAJOR 2 /* since when dtypes of less than 16 bits may be passed directly */
#define TORCH_MINOR 9

/* Dtypes that a version of torch may have without supporting them in DLPack. */
static const char *const torch_names[SFT_DTYPE_COUNT] = {
    [SFT_F4] = "float4_e2m1fn_x2",
    [SFT_F8_E5M2] = "float8_e5m2",
    [SFT_F8_E4M3] = "float8_e4m3fn",
    [SFT_F8_E8M0] = "float8_e8m0fnu",
    [SFT_F8_E4M3FNUZ] = "float8_e4m3fnuz",
    [SFT_F8_E5M2FNUZ] = "float8_e5m2fnuz",
};

/* Whether torch may know the dtypes of torch_names in DLPack. Older ones refuse them, which some
 * builds do not survive (2.4.1 for Windows, seen under wine), so they are not asked. */
static int may_know(void) {
    PyObject *version = pysft_import("torch", "__version__");
    const char *text = version ? PyUnicode_AsUTF8AndSize(version, NULL) : NULL;
    long major = 0, minor = 0;
    if (text) {
        char *end;
        major = strtol(text, &end, 10);
        if (*end == '.') minor = strtol(end + 1, NULL, 10);
    }
    Py_XDECREF(version);
    if (PyErr_Occurred()) return -1;
    return major > TORCH_MAJOR || (major == TORCH_MAJOR && minor >= TORCH_MINOR);
}

PyObject *pysft_from_dlpack(pysft_state *state) {
    PyObject *found = atomic_load(&state->from_dlpack);
    if (found) return found;
    int knows = may_know();
    if (knows < 0) return NULL;
    for (int i = 0; i < SFT_DTYPE_COUNT && !knows; i++)
        if (torch_names[i]) atomic_store(&state->torch_routes[i], route_bytes);
    /* What torch.utils.dlpack.from_dlpack calls for a capsule, or that itself in older ones. */
    found = pysft_import("torch._C", "_from_dlpack");
    if (!found && (PyErr_ExceptionMatches(PyExc_AttributeError) ||
                   PyErr_ExceptionMatches(PyExc_ImportError))) {
        PyErr_Clear();
        found = pysft_import("torch.utils.dlpack", "from_dlpack");
    }
    return pysft_once(&state->from_dlpack, found);
}

static PyObject *take_over(pysft_state *state, const pysft_piece *piece,
                           pysft_dlpack_dtype type) {
    PyObject *capsule = pysft_dlpack_of(piece, type, false, false);
    if (!capsule) return NULL;
    PyObject *tensor = PyObject_CallFunctionObjArgs(pysft_from_dlpack(state), capsule, NULL);
    Py_DECREF(capsule);
    return tensor;
}

/* Passes bytes and views them as the dtype. */
static PyObject *through_bytes(pysft_state *state, const pysft_piece *piece) {
    pysft_dlpack_dtype type = pysft_dlpack_dtype_of(SFT_U8);
    PyObject *dtype = pysft_import("torch", torch_names[piece->dtype]);
    if (!dtype && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "this torch has no dtype for %U",
                     state->dtype_names[piece->dtype]);
    }
    PyObject *bytes = dtype ? take_over(state, piece, type) : NULL;
    PyObject *tensor = bytes ? PyObject_CallMethod(bytes, "view", "O", dtype) : NULL;
    Py_XDECREF(bytes);
    Py_XDECREF(dtype);
    return tensor;
}

static PyObject *first_of_dtype(pysft_state *state, const pysft_piece *piece) {
    PyObject *tensor = take_over(state, piece, pysft_dlpack_dtype_of(piece->dtype));
    int how = route_direct;
    if (!tensor && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
        tensor = through_bytes(state, piece);
        how = route_bytes;
    }
    if (tensor) atomic_store(&state->torch_routes[piece->dtype], how);
    return tensor;
}

PyObject *pysft_torch_of(pysft_state *state, const pysft_piece *piece) {
    if (!pysft_from_dlpack(state)) return NULL;
    if (piece->dtype == SFT_F6_E2M3 || piece->dtype == SFT_F6_E3M2)
        return PyErr_Format(PyExc_TypeError, "torch has no dtype for %U",
                            state->dtype_names[piece->dtype]);
    for (uint32_t d = 0; d < piece->rank; d++)
        if (piece->shape[d] > INT64_MAX)
            return PyErr_Format(PyExc_TypeError,
                                "torch has no tensor with a dimension of %llu elements",
                                (unsigned long long)piece->shape[d]);
    if (torch_names[piece->dtype]) {
        int how = atomic_load(&state->torch_routes[piece->dtype]);
        if (how == route_unknown) return first_of_dtype(state, piece);
        if (how == route_bytes) return through_bytes(state, piece);
    }
    return take_over(state, piece, pysft_dlpack_dtype_of(piece->dtype));
}
