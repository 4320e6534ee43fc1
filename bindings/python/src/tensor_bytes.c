/* The bytes of a Tensor: shared memory or a copy; and the buffer protocol.
 * Tests: test_tensor.py. */
#include "safetensors_io.h"
#include "safetensors_read.h"
#include "tensor.h"

bool pysft_is_aligned(sft_dtype dtype, const char *data) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    uint32_t bits = info->kind == SFT_KIND_COMPLEX ? info->bits / 2 : info->bits;
    return bits <= 8 || (uintptr_t)data % (bits / 8) == 0;
}

static bool is_small(sft_dtype dtype) {
    return sft_dtype_describe(dtype)->bits < 8;
}

/* ── Reading ─────────────────────────────────────────────────────────────── */

#define SHORT_BYTES (UINT64_C(1) << 20) /* read before anybody could wish to stop it */

int pysft_read(pysft_state *state, const pysft_store *store, const sft_tensor *facts,
               size_t shard, const sft_slice *slice, void *into, uint64_t len) {
    const sft_file *file = sft_set_shard_at(pysft_store_set(store), shard);
    sft_read all = { facts, into, (size_t)len };
    pysft_slice_fn read = pysft_store_copies(store) ? sft_slice_read_mapped : sft_slice_read;
    pysft_job job;
    if (facts->end - facts->begin <= SHORT_BYTES) {
        sft_error err = SFT_ERROR_INIT;
        sft_code code;
        PYSFT_NO_GIL(code = slice ? read(file, facts, slice, into, (size_t)len, &err)
                                  : sft_read_into(file, facts, into, (size_t)len, &err));
        if (!code && !PyErr_Occurred()) return 0;
        return pysft_fail(state, &err, pysft_store_path(store));
    }
    if (pysft_job_begin(&job, NULL) < 0) return -1;
    Py_BEGIN_ALLOW_THREADS
    job.code = slice ? pysft_slice_read(read, file, facts, slice, into, (size_t)len, &job.job,
                                        &job.err)
                     : sft_read_many(file, &all, 1, &job.job, &job.err);
    Py_END_ALLOW_THREADS
    return pysft_job_done(&job, state, pysft_store_path(store));
}

#define THREADS_BYTES (UINT64_C(32) << 20) /* below, starting threads costs more than they save */
#define FRESH_BYTES (UINT64_C(2) << 20)    /* below, there are no huge pages to be asked for */

sft_code pysft_fill_blocks(const pysft_store *store, const pysft_fill *fill, sft_job *job,
                           sft_error *err) {
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    sft_read_plan *plan = NULL;
    bool one_thread = fill->total < THREADS_BYTES || !pysft_store_local(store);
    job->threads = one_thread ? 1 : 0;
    options.fresh = fill->fresh;
    options.wait = &pysft_wait;
    sft_code code = sft_read_plan_new(fill->parts, fill->part_count, fill->blocks,
                                      fill->block_count, &options, &plan, err);
    if (!code) code = sft_read_plan_run(plan, job, err);
    sft_read_plan_free(plan);
    return code;
}

/* A whole tensor. */
static int fill_block(pysft_state *state, const pysft_store *store, const sft_tensor *facts,
                      size_t shard, sft_read_block block, bool fresh) {
    const sft_file *file = sft_set_shard_at(pysft_store_set(store), shard);
    sft_read_part part = { file, facts, NULL, 0, 0 };
    pysft_fill fill = { &part, &block, 1, 1, facts->end - facts->begin, fresh };
    pysft_job job;
    if (pysft_job_begin(&job, NULL) < 0) return -1;
    PYSFT_NO_GIL(job.code = pysft_fill_blocks(store, &fill, &job.job, &job.err));
    return pysft_job_done(&job, state, pysft_store_path(store));
}

pysft_store *pysft_read_block(pysft_state *state, const pysft_store *store,
                              const sft_tensor *facts, size_t shard, const sft_slice *slice,
                              uint64_t bytes) {
    bool planned = !slice && bytes >= FRESH_BYTES && pysft_store_local(store), fresh = false;
    uint64_t room = bytes;
    pysft_store *block = planned ? pysft_store_fresh_block(bytes, &room, &fresh)
                                 : pysft_store_block(bytes);
    if (!block) return (void *)PyErr_NoMemory();
    char *into = pysft_store_bytes(block);
    sft_read_block all = { into, room };
    int rc = planned ? fill_block(state, store, facts, shard, all, fresh)
                     : pysft_read(state, store, facts, shard, slice, into, bytes);
    if (rc == 0) return block;
    pysft_store_drop(block);
    return NULL;
}

/* Borrowed from the tensor. */
static pysft_store *packed_copy(pysft_state *state, TensorObject *self) {
    pysft_store *made = atomic_load(&self->packed), *none = NULL;
    if (made) return made;
    made = pysft_read_block(state, self->store, self->facts, self->shard, self->slice,
                            self->bytes);
    if (!made) return NULL;
    if (atomic_compare_exchange_strong(&self->packed, &none, made)) return made;
    pysft_store_drop(made);
    return none;
}

/* ── Pieces ──────────────────────────────────────────────────────────────── */

/* Sets the strides of a slice in memory, and returns where its first element is in the tensor. */
static Py_ssize_t place_slice(const TensorObject *self, Py_ssize_t *strides) {
    const sft_slice *slice = self->slice;
    Py_ssize_t step = (Py_ssize_t)sft_dtype_describe(self->facts->dtype)->bits / 8, at = 0;
    uint32_t next = self->rank;
    for (uint32_t d = slice->rank; d-- > 0;) {
        at += (Py_ssize_t)slice->range[d].start * step;
        if (!(slice->dropped >> d & 1)) strides[--next] = (Py_ssize_t)slice->range[d].step * step;
        step *= (Py_ssize_t)self->facts->shape[d];
    }
    return at;
}

/* Whether the strides are those of packed elements; dimensions of size 1 do not count. */
static bool strides_packed(const pysft_piece *piece) {
    Py_ssize_t want = (Py_ssize_t)sft_dtype_describe(piece->dtype)->bits / 8;
    for (uint32_t d = piece->rank; piece->strides && d-- > 0;) {
        if (piece->shape[d] != 1 && piece->strides[d] != want) return false;
        want *= (Py_ssize_t)piece->shape[d];
    }
    return true;
}

static bool strides_forward(const pysft_piece *piece) {
    for (uint32_t d = 0; piece->strides && d < piece->rank; d++)
        if (piece->strides[d] < 0) return false;
    return true;
}

/* Uses the memory of the map or buffer, if it meets `want`. */
static bool piece_in_place(const TensorObject *self, unsigned want, pysft_piece *out,
                           Py_ssize_t *strides) {
    char *base = pysft_store_base(self->store, self->shard, &out->writable);
    if (!base) return false;
    out->store = self->store;
    out->data = base + self->facts->begin;
    if (self->slice && is_small(out->dtype)) return false;
    if (self->slice && self->elements) {
        out->data += place_slice(self, strides);
        out->strides = strides;
    }
    if (!pysft_is_aligned(out->dtype, out->data)) return false;
    if (strides_packed(out)) out->strides = NULL;
    if (want & want_packed && out->strides) return false;
    if (want & want_forward && !strides_forward(out)) return false;
    return !(want & want_writable) || out->writable;
}

int pysft_tensor_piece(pysft_state *state, TensorObject *self, unsigned want, pysft_piece *out,
                       Py_ssize_t strides[SFT_MAX_RANK]) {
    *out = (pysft_piece){ NULL,        NULL,       false, self->facts->dtype,
                          self->rank, self->shape, NULL,  self->bytes };
    if (piece_in_place(self, want, out, strides)) return 0;
    out->strides = NULL;
    out->writable = true;
    out->store = packed_copy(state, self);
    if (!out->store) return -1;
    out->data = pysft_store_bytes(out->store);
    return 0;
}

/* ── The buffer protocol ─────────────────────────────────────────────────── */

/* NULL: the format has no letter for the elements. Native order needs no sign. */
static const char *format_of(sft_dtype dtype) {
    static const char *const table[SFT_DTYPE_COUNT] = {
        [SFT_BOOL] = "<?", [SFT_U8] = "<B",  [SFT_I8] = "<b",  [SFT_I16] = "<h", [SFT_U16] = "<H",
        [SFT_F16] = "<e",  [SFT_I32] = "<i", [SFT_U32] = "<I", [SFT_F32] = "<f", [SFT_C64] = "<Zf",
        [SFT_F64] = "<d",  [SFT_I64] = "<q", [SFT_U64] = "<Q",
    };
    return table[dtype] ? table[dtype] + pysft_little_endian : NULL;
}

static bool asks(int flags, int what) {
    return (flags & what) == what;
}

/* Shape, strides of packed elements and strides in place, `rank` each, in one block that the
 * tensor keeps: a view of it needs no release, so that numpy.frombuffer asks for plain bytes and
 * not, through a memoryview, for a format. NULL: MemoryError. */
static Py_ssize_t *dims_of(TensorObject *self, const pysft_piece *piece, uint32_t rank) {
    Py_ssize_t *made = atomic_load(&self->dims), *none = NULL;
    bool small = is_small(piece->dtype);
    Py_ssize_t step = small ? 1 : (Py_ssize_t)sft_dtype_describe(piece->dtype)->bits / 8;
    if (made) return made;
    made = PyMem_Malloc((3 * (size_t)rank + 1) * sizeof *made);
    if (!made) return (void *)PyErr_NoMemory();
    for (uint32_t d = rank; d-- > 0;) {
        made[d] = small ? (Py_ssize_t)piece->bytes : (Py_ssize_t)piece->shape[d];
        made[rank + d] = made[2 * rank + d] = step;
        step = (Py_ssize_t)((size_t)step * (size_t)made[d]);
    }
    if (self->slice && self->elements && !small) (void)place_slice(self, made + 2 * (size_t)rank);
    if (atomic_compare_exchange_strong(&self->dims, &none, made)) return made;
    PyMem_Free(made);
    return none;
}

static bool fortran_too(const pysft_piece *piece) {
    uint32_t wide = 0;
    for (uint32_t d = 0; d < piece->rank; d++) wide += piece->shape[d] > 1;
    return wide <= 1 || is_small(piece->dtype);
}

static int fill_view(TensorObject *self, Py_buffer *view, int flags, const pysft_piece *piece) {
    const sft_dtype_info *info = sft_dtype_describe(piece->dtype);
    uint32_t rank = is_small(piece->dtype) ? 1 : piece->rank;
    if (piece->rank > SFT_MAX_RANK)
        return pysft_refuse(PyExc_BufferError, "a buffer has at most 64 dimensions");
    Py_ssize_t *dims = dims_of(self, piece, rank);
    if (!dims) return -1;
    *view = (Py_buffer){ .buf = piece->data, .len = (Py_ssize_t)piece->bytes };
    view->readonly = !piece->writable;
    view->itemsize = is_small(piece->dtype) ? 1 : (Py_ssize_t)info->bits / 8;
    view->ndim = asks(flags, PyBUF_ND) ? (int)rank : 1;
    if (asks(flags, PyBUF_ND)) view->shape = dims;
    if (asks(flags, PyBUF_STRIDES)) view->strides = dims + (piece->strides ? 2 : 1) * (size_t)rank;
    if (asks(flags, PyBUF_FORMAT)) view->format = (char *)(uintptr_t)format_of(piece->dtype);
    view->obj = Py_NewRef((PyObject *)self);
    return 0;
}

int pysft_tensor_buffer(PyObject *object, Py_buffer *view, int flags) {
    TensorObject *self = (TensorObject *)object;
    pysft_state *state = pysft_state_from(object);
    Py_ssize_t strides[SFT_MAX_RANK];
    pysft_piece piece;
    bool packed = !asks(flags, PyBUF_STRIDES) || asks(flags, PyBUF_C_CONTIGUOUS) ||
                  asks(flags, PyBUF_F_CONTIGUOUS) || asks(flags, PyBUF_ANY_CONTIGUOUS);
    view->obj = NULL;
    /* Consumers that ask for a format would take other numbers for the values; numpy, refused,
     * calls __array__. */
    if (asks(flags, PyBUF_FORMAT) && !format_of(self->facts->dtype)) {
        const char *name = sft_dtype_describe(self->facts->dtype)->name;
        return pysft_refuse(PyExc_BufferError,
                            "a buffer has no format for %s: numpy() and torch() give its values, "
                            "tobytes() and numpy.frombuffer(tensor, 'u1') its bytes",
                            name);
    }
    if (pysft_tensor_piece(state, self, packed ? want_packed : 0, &piece, strides) < 0) return -1;
    bool copied = piece.store != self->store;
    if (copied && packed && self->slice && pysft_store_mapped(self->store)) piece.writable = false;
    if (asks(flags, PyBUF_F_CONTIGUOUS) && !fortran_too(&piece))
        return pysft_refuse(PyExc_BufferError, "the elements are in C order");
    if (asks(flags, PyBUF_WRITABLE) && !piece.writable)
        return pysft_refuse(PyExc_BufferError, "the memory must not be written to");
    return fill_view(self, view, flags, &piece);
}
