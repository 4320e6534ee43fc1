/* DLPack capsules over the memory of tensors. Tests: test_tensor.py. */
#include "piece.h"

#include <stdlib.h>

/* The protocol's own structs, as it lays them out. */
typedef struct {
    int32_t device_type, device_id;
} dl_device;

typedef struct {
    void *data;
    dl_device device;
    int32_t ndim;
    pysft_dlpack_dtype dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *manager;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

enum { dl_cpu = 1, dl_read_only = 1, dl_copied = 2, dl_major = 1, dl_minor = 1 };

/* Type code, bits and lanes as numbered by the protocol. */
pysft_dlpack_dtype pysft_dlpack_dtype_of(sft_dtype dtype) {
    static const pysft_dlpack_dtype table[SFT_DTYPE_COUNT] = {
        [SFT_BOOL] = { 6, 8, 1 },         [SFT_F4] = { 17, 4, 2 },
        [SFT_F6_E2M3] = { 15, 6, 1 },     [SFT_F6_E3M2] = { 16, 6, 1 },
        [SFT_U8] = { 1, 8, 1 },           [SFT_I8] = { 0, 8, 1 },
        [SFT_F8_E5M2] = { 12, 8, 1 },     [SFT_F8_E4M3] = { 10, 8, 1 },
        [SFT_F8_E8M0] = { 14, 8, 1 },     [SFT_F8_E4M3FNUZ] = { 11, 8, 1 },
        [SFT_F8_E5M2FNUZ] = { 13, 8, 1 }, [SFT_I16] = { 0, 16, 1 },
        [SFT_U16] = { 1, 16, 1 },         [SFT_F16] = { 2, 16, 1 },
        [SFT_BF16] = { 4, 16, 1 },        [SFT_I32] = { 0, 32, 1 },
        [SFT_U32] = { 1, 32, 1 },         [SFT_F32] = { 2, 32, 1 },
        [SFT_C64] = { 5, 64, 1 },         [SFT_F64] = { 2, 64, 1 },
        [SFT_I64] = { 0, 64, 1 },         [SFT_U64] = { 1, 64, 1 },
    };
    return table[dtype];
}

/* Either struct starts a block that ends with shape and strides. */
typedef union dl_block {
    dl_managed plain;
    dl_versioned versioned;
} dl_block;

static void plain_delete(dl_managed *self) {
    pysft_store_drop(self->manager);
    free(self);
}

static void versioned_delete(dl_versioned *self) {
    pysft_store_drop(self->manager);
    free(self);
}

/* A capsule that nobody consumed still has its original name. */
static void drop_unused(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor"))
        plain_delete(PyCapsule_GetPointer(capsule, "dltensor"));
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        versioned_delete(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

/* Shape and strides, in elements; the last dimension of F4 counts pairs. */
static int fill_tensor(dl_tensor *out, const pysft_piece *piece, pysft_dlpack_dtype type,
                       int64_t *buffer) {
    uint32_t rank = piece->rank;
    bool pairs = piece->dtype == SFT_F4;
    uint64_t step = 1;
    Py_ssize_t size = type.bits >= 8 ? type.bits / 8 : 1;
    *out = (dl_tensor){ piece->data, { dl_cpu, 0 }, (int32_t)rank, type, buffer, buffer + rank, 0 };
    for (uint32_t i = rank; i-- > 0;) {
        uint64_t dim = piece->shape[i];
        if (pairs && i == rank - 1) {
            if (dim % 2) return -1;
            dim /= 2;
        }
        if (dim > INT64_MAX) return -1;
        buffer[i] = (int64_t)dim;
        buffer[rank + i] = piece->strides ? piece->strides[i] / size : (int64_t)step;
        step *= dim ? dim : 1;
    }
    return pysft_little_endian || type.bits <= 8 ? 0 : -1;
}

PyObject *pysft_dlpack_of(const pysft_piece *piece, pysft_dlpack_dtype type, bool versioned,
                          bool copied) {
    dl_block *block = malloc(sizeof *block + 2 * piece->rank * sizeof(int64_t));
    if (!block) return PyErr_NoMemory();
    dl_tensor *tensor = versioned ? &block->versioned.tensor : &block->plain.tensor;
    if (fill_tensor(tensor, piece, type, (int64_t *)(block + 1)) < 0) {
        free(block);
        return PyErr_Format(PyExc_BufferError,
                            piece->dtype == SFT_F4
                                ? "F4 is handed over in pairs: the last dimension is odd"
                                : "DLPack has no place for a tensor of this kind");
    }
    if (versioned) {
        block->versioned.major = dl_major;
        block->versioned.minor = dl_minor;
        block->versioned.manager = pysft_store_hold(piece->store);
        block->versioned.deleter = versioned_delete;
        block->versioned.flags = (piece->writable ? 0 : dl_read_only) | (copied ? dl_copied : 0);
    } else {
        block->plain.manager = pysft_store_hold(piece->store);
        block->plain.deleter = plain_delete;
    }
    PyObject *capsule = PyCapsule_New(block, versioned ? "dltensor_versioned" : "dltensor",
                                      drop_unused);
    if (capsule) return capsule;
    pysft_store_drop(piece->store);
    free(block);
    return NULL;
}
