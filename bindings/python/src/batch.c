/* Many tensors at once: a dict of arrays, without a Tensor object for each. */
#include "piece.h"

#include <stdlib.h>
#include <string.h>

/* One tensor to be converted. */
typedef struct {
    const sft_tensor *facts;
    size_t shard;
    PyObject *name;
    pysft_store *block; /* copy of its own, or NULL: lies in the store */
} pick;

typedef struct {
    pysft_state *state;
    pysft_store *store;
    pick *picks;
    size_t count;
} batch;

static void batch_free(batch *all) {
    for (size_t i = 0; i < all->count; i++) {
        Py_XDECREF(all->picks[i].name);
        pysft_store_drop(all->picks[i].block);
    }
    PyMem_Free(all->picks);
    *all = (batch){ NULL, NULL, NULL, 0 };
}

static int batch_room(batch *all, size_t count) {
    all->picks = PyMem_Calloc(count ? count : 1, sizeof *all->picks);
    if (all->picks) return 0;
    PyErr_NoMemory();
    return -1;
}

static int pick_all(batch *all) {
    sft_set *set = pysft_store_set(all->store);
    size_t count = sft_set_tensor_count(set);
    if (batch_room(all, count) < 0) return -1;
    for (size_t i = 0; i < count; i++) {
        pick *one = &all->picks[i];
        one->facts = sft_set_tensor_at(set, i);
        one->shard = sft_set_tensor_shard(set, i);
        one->name = pysft_text(one->facts->name);
        all->count++;
        if (!one->name) return -1;
    }
    return 0;
}

static int pick_one(batch *all, PyObject *name) {
    pick *one = &all->picks[all->count];
    sft_span span;
    if (pysft_span_of(name, "name", &span) < 0) return -1;
    one->facts = sft_set_find(pysft_store_set(all->store), span, &one->shard);
    if (!one->facts) {
        (void)pysft_not_found(all->state, name, pysft_store_path(all->store));
        return -1;
    }
    one->name = Py_NewRef(name);
    all->count++;
    return 0;
}

static int pick_named(batch *all, PyObject *names) {
    if (PyUnicode_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "names: expected several names, found one str");
        return -1;
    }
    PyObject *list = PySequence_List(names);
    if (!list) return -1;
    Py_ssize_t count = PyList_Size(list);
    int rc = batch_room(all, (size_t)count);
    for (Py_ssize_t i = 0; rc == 0 && i < count; i++)
        rc = pick_one(all, PyList_GetItem(list, i));
    Py_DECREF(list);
    return rc;
}

/* ── Copies, where the memory cannot be lent ─────────────────────────────── */

static bool lendable(const batch *all, const pick *one, bool want_writable) {
    bool writable;
    const char *base = pysft_store_base(all->store, one->shard, &writable);
    if (!base || (want_writable && !writable)) return false;
    return pysft_is_aligned(one->facts->dtype, base + one->facts->begin);
}

static int add_read(pick *one, sft_read *reads, size_t *count) {
    uint64_t len = one->facts->end - one->facts->begin;
    one->block = pysft_store_block(len);
    if (!one->block) {
        PyErr_NoMemory();
        return -1;
    }
    reads[*count] = (sft_read){ one->facts, pysft_store_bytes(one->block), (size_t)len };
    ++*count;
    return 0;
}

#define STAGE ((size_t)256 << 10)
#define STAGE_SMALL ((size_t)32 << 10)

/* Progress over the shards together. */
typedef struct {
    const sft_job *job;
    uint64_t before, total;
} shared_job;

static bool shared_tick(void *ctx, uint64_t done, uint64_t total) {
    const shared_job *shared = ctx;
    (void)total;
    return shared->job->tick(shared->job->ctx, shared->before + done, shared->total);
}

static sft_code read_each(const sft_file *file, const sft_read *reads, size_t count,
                          shared_job *shared, sft_error *err) {
    sft_job job = { sizeof job, shared_tick, shared, 1 };
    sft_code code = count ? sft_read_many(file, reads, count, &job, err) : SFT_OK;
    for (size_t i = 0; i < count; i++) shared->before += reads[i].len;
    return code;
}

/* How many of the reads are small and lie one behind the other, so that one reading of STAGE
 * bytes gets them all; *bytes: of these. */
static size_t count_neighbours(const sft_read *reads, size_t count, size_t *bytes) {
    size_t n = 0;
    *bytes = 0;
    while (n < count && reads[n].len <= STAGE_SMALL && reads[n].len <= STAGE - *bytes) {
        if (n > 0 && reads[n].tensor->offset != reads[n - 1].tensor->offset + reads[n - 1].len)
            break;
        *bytes += reads[n++].len;
    }
    return n;
}

/* What cannot be read at once is read by itself, for the error to name the tensor. */
static sft_code read_neighbours(const sft_file *file, const sft_read *reads, size_t count,
                                size_t bytes, char *stage, shared_job *shared, sft_error *err) {
    if (sft_read_bytes(file, reads[0].tensor->offset, stage, bytes, err))
        return read_each(file, reads, count, shared, err);
    for (size_t i = 0; i < count; i++) {
        if (reads[i].len) memcpy(reads[i].dst, stage, reads[i].len);
        stage += reads[i].len;
    }
    bool goes_on = shared_tick(shared, bytes, bytes);
    shared->before += bytes;
    return goes_on ? SFT_OK : sft_error_set(err, SFT_CANCELLED, 0, "the reading was ended");
}

/* Without memory for the stage each is read by itself. */
static sft_code read_shard(const batch *all, size_t shard, const sft_read *reads, size_t count,
                           shared_job *shared, sft_error *err) {
    const sft_file *file = sft_set_shard_at(pysft_store_set(all->store), shard);
    char *stage = count > 1 && !sft_file_source(file).base ? malloc(STAGE) : NULL;
    sft_code code = SFT_OK;
    size_t from = 0, bytes;
    for (size_t i = 0; stage && code == SFT_OK && i < count;) {
        size_t n = count_neighbours(reads + i, count - i, &bytes);
        i += n ? n : 1;
        if (n < 2) continue;
        code = read_each(file, reads + from, i - n - from, shared, err);
        if (code == SFT_OK)
            code = read_neighbours(file, reads + i - n, n, bytes, stage, shared, err);
        from = i;
    }
    if (code == SFT_OK) code = read_each(file, reads + from, count - from, shared, err);
    free(stage);
    return code;
}

/* reads: one for every pick that needs a copy, in their order. */
static sft_code read_shards(const batch *all, const sft_read *reads, shared_job *shared,
                            sft_error *err) {
    size_t from = 0, count = 0;
    for (size_t i = 0; i <= all->count; i++) {
        bool ends = i == all->count || all->picks[i].shard != all->picks[from].shard;
        if (ends && count) {
            sft_code code = read_shard(all, all->picks[from].shard, reads, count, shared, err);
            if (code != SFT_OK) return code;
            reads += count;
            count = 0;
        }
        if (ends) from = i;
        if (i < all->count && all->picks[i].block) count++;
    }
    return SFT_OK;
}

static int read_blocks(batch *all, const sft_read *reads, uint64_t total, PyObject *progress) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code;
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return -1;
    shared_job shared = { &job.job, 0, total };
    Py_BEGIN_ALLOW_THREADS
    code = read_shards(all, reads, &shared, &err);
    Py_END_ALLOW_THREADS
    if (pysft_job_end(&job, code) == 0) return 0;
    (void)pysft_raise(all->state, &err, pysft_store_path(all->store));
    return -1;
}

/* Nothing is to be read: that is the end. */
static int tell_all(const batch *all, PyObject *progress) {
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return -1;
    for (size_t i = 0; i < all->count; i++)
        job.total += all->picks[i].facts->end - all->picks[i].facts->begin;
    job.told = false;
    return pysft_job_end(&job, SFT_OK);
}

static int copy_what_cannot_be_lent(batch *all, bool want_writable, PyObject *progress) {
    uint64_t total = 0;
    size_t count = 0;
    sft_read *reads = NULL;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < all->count; i++) {
        pick *one = &all->picks[i];
        if (lendable(all, one, want_writable)) continue;
        if (!reads) reads = PyMem_Malloc(all->count * sizeof *reads);
        if (!reads) PyErr_NoMemory();
        rc = reads ? add_read(one, reads, &count) : -1;
        total += one->facts->end - one->facts->begin;
    }
    if (rc == 0 && count) rc = read_blocks(all, reads, total, progress);
    else if (rc == 0 && progress && progress != Py_None) rc = tell_all(all, progress);
    PyMem_Free(reads);
    return rc;
}

/* ── Arrays ──────────────────────────────────────────────────────────────── */

static pysft_piece piece_of_pick(const batch *all, const pick *one) {
    const sft_tensor *facts = one->facts;
    pysft_piece piece = { one->block, NULL,         true, facts->dtype,
                          facts->rank, facts->shape, NULL, facts->end - facts->begin };
    if (one->block) {
        piece.data = pysft_store_bytes(one->block);
        return piece;
    }
    piece.store = all->store;
    piece.data = pysft_store_base(all->store, one->shard, &piece.writable) + facts->begin;
    return piece;
}

/* The object that arrays over a shard have as their base: made once a shard. */
typedef struct {
    PyObject *memory;
    char *start;
    size_t shard;
} shard_base;

static int base_for(const batch *all, const pick *one, shard_base *base) {
    bool writable;
    if (base->memory && base->shard == one->shard) return 0;
    const sft_file *file = sft_set_shard_at(pysft_store_set(all->store), one->shard);
    Py_CLEAR(base->memory);
    base->shard = one->shard;
    base->start = pysft_store_base(all->store, one->shard, &writable);
    base->memory = pysft_memory_new(all->state, all->store, base->start,
                                    sft_file_data_bytes(file), writable);
    return base->memory ? 0 : -1;
}

static PyObject *numpy_of_pick(const batch *all, const pick *one, shard_base *base) {
    pysft_piece piece = piece_of_pick(all, one);
    if (one->block) return pysft_numpy_of(all->state, &piece, NULL, NULL);
    if (base_for(all, one, base) < 0) return NULL;
    return pysft_numpy_of(all->state, &piece, base->memory, base->start);
}

static PyObject *torch_of_pick(const batch *all, const pick *one) {
    pysft_piece piece = piece_of_pick(all, one);
    return pysft_torch_of(all->state, &piece);
}

static PyObject *convert_each(const batch *all, bool torch) {
    shard_base base = { NULL, NULL, 0 };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < all->count; i++) {
        const pick *one = &all->picks[i];
        PyObject *array = torch ? torch_of_pick(all, one) : numpy_of_pick(all, one, &base);
        if (!array || PyDict_SetItem(dict, one->name, array) < 0) Py_CLEAR(dict);
        Py_XDECREF(array);
        if (i % 4096 == 4095 && PyErr_CheckSignals() < 0) Py_CLEAR(dict);
    }
    Py_XDECREF(base.memory);
    return dict;
}

#ifdef Py_GIL_DISABLED
static PyObject *convert_all(const batch *all, bool torch) {
    return convert_each(all, torch);
}
#else
/* Nothing made here can be garbage yet; looking for some would take a third of the time. */
static PyObject *convert_all(const batch *all, bool torch) {
    int collects = PyGC_Disable();
    PyObject *dict = convert_each(all, torch);
    if (collects) PyGC_Enable();
    return dict;
}
#endif

static PyObject *batch_run(pysft_state *state, pysft_store *store, PyObject *names, bool torch,
                           PyObject *progress) {
    batch all = { state, store, NULL, 0 };
    PyObject *dict = NULL;
    int rc = names ? pick_named(&all, names) : pick_all(&all);
    if (rc == 0) rc = copy_what_cannot_be_lent(&all, torch, progress);
    if (rc == 0) dict = convert_all(&all, torch);
    batch_free(&all);
    return dict;
}

PyObject *pysft_batch_numpy(pysft_state *state, pysft_store *store, PyObject *names,
                            PyObject *progress) {
    if (!pysft_numpy_get(state)) return NULL;
    return batch_run(state, store, names, false, progress);
}

PyObject *pysft_batch_torch(pysft_state *state, pysft_store *store, PyObject *names,
                            PyObject *progress) {
    if (!pysft_torch_get(state)) return NULL;
    return batch_run(state, store, names, true, progress);
}
