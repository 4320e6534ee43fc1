/* Reads many tensors at once into a dict of arrays, without a Tensor object for each. */
#include "piece.h"

#include <stdlib.h>
#include <string.h>

/* One tensor to be converted. */
typedef struct {
    const sft_tensor *facts;
    size_t shard;
    PyObject *name;
    pysft_store *block; /* its own copy, or NULL: its bytes are in the store's memory */
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

static int batch_reserve(batch *all, size_t count) {
    all->picks = PyMem_Calloc(count ? count : 1, sizeof *all->picks);
    if (all->picks) return 0;
    PyErr_NoMemory();
    return -1;
}

static int pick_all(batch *all) {
    sft_set *set = pysft_store_set(all->store);
    size_t count = sft_set_tensor_count(set);
    if (batch_reserve(all, count) < 0) return -1;
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

static int pick_one(batch *all, PyObject *name, sft_span span) {
    pick *one = &all->picks[all->count];
    one->facts = sft_set_find(pysft_store_set(all->store), span, &one->shard);
    if (!one->facts) {
        (void)pysft_not_found(all->state, name, pysft_store_path(all->store));
        return -1;
    }
    one->name = Py_NewRef(name);
    all->count++;
    return 0;
}

static int pick_named(batch *all, PyObject *given) {
    pysft_names names;
    if (pysft_names_of(given, "names", &names) < 0) return -1;
    int rc = batch_reserve(all, names.count);
    for (size_t i = 0; rc == 0 && i < names.count; i++)
        rc = pick_one(all, PyTuple_GetItem(names.held, (Py_ssize_t)i), names.items[i]);
    pysft_names_free(&names);
    return rc;
}

/* ── Copies of tensors whose memory cannot be shared ─────────────────────── */

static bool is_shareable(const batch *all, const pick *one, pysft_batch_kind kind) {
    bool writable;
    const char *base = pysft_store_base(all->store, one->shard, &writable);
    if (!base || kind == PYSFT_TORCH_COPY || (kind == PYSFT_TORCH && !writable)) return false;
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

/* Progress over all shards together. */
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

/* Counts the small reads that are adjacent in the file and fit one read of STAGE bytes; *bytes
 * is their sum. */
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

/* If the joint read fails, each is read by itself, so that the error names the tensor. */
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

/* Without memory for the stage, each tensor is read by itself. */
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

/* reads: one for each pick that needs a copy, in the order of the picks. */
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

/* Reports the end to progress when nothing has to be read. */
static int report_end(const batch *all, PyObject *progress) {
    pysft_job job;
    if (pysft_job_begin(&job, progress) < 0) return -1;
    for (size_t i = 0; i < all->count; i++)
        job.total += all->picks[i].facts->end - all->picks[i].facts->begin;
    job.reported = false;
    return pysft_job_end(&job, SFT_OK);
}

static int copy_unshared(batch *all, pysft_batch_kind kind, PyObject *progress) {
    uint64_t total = 0;
    size_t count = 0;
    sft_read *reads = NULL;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < all->count; i++) {
        pick *one = &all->picks[i];
        if (is_shareable(all, one, kind)) continue;
        if (!reads) reads = PyMem_Malloc(all->count * sizeof *reads);
        if (!reads) PyErr_NoMemory();
        rc = reads ? add_read(one, reads, &count) : -1;
        total += one->facts->end - one->facts->begin;
    }
    if (rc == 0 && count) rc = read_blocks(all, reads, total, progress);
    else if (rc == 0 && progress && progress != Py_None) rc = report_end(all, progress);
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

/* The base object of all arrays over one shard. */
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
/* The garbage collector is off meanwhile: nothing made here can be garbage yet, and its runs
 * would take a third of the time. */
static PyObject *convert_all(const batch *all, bool torch) {
    int collects = PyGC_Disable();
    PyObject *dict = convert_each(all, torch);
    if (collects) PyGC_Enable();
    return dict;
}
#endif

PyObject *pysft_batch(pysft_state *state, pysft_store *store, PyObject *names,
                      pysft_batch_kind kind, PyObject *progress) {
    batch all = { state, store, NULL, 0 };
    PyObject *dict = NULL;
    bool torch = kind != PYSFT_NUMPY;
    bool loaded = torch ? pysft_torch_get(state) != NULL : pysft_numpy_get(state) != NULL;
    if (!loaded) return NULL;
    int rc = names == Py_None ? pick_all(&all) : pick_named(&all, names);
    if (rc == 0) rc = copy_unshared(&all, kind, progress);
    if (rc == 0) dict = convert_all(&all, torch);
    batch_free(&all);
    return dict;
}
