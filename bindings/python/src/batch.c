/* Reads many tensors at once into a dict of arrays, without a Tensor object for each.
 * Tests: test_shared_blocks.py. */
#include "piece.h"

#include "safetensors_read.h"

/* One tensor to be converted. */
typedef struct {
    const sft_tensor *facts;
    size_t shard;
    PyObject *name;
    bool copied;
    pysft_store *block; /* that its copy is in, or NULL: its bytes are in the store's memory */
    char *bytes;        /* of the copy */
} pick;

typedef struct {
    pysft_state *state;
    pysft_store *store;
    pick *picks;
    size_t count;
} batch;

static int batch_reserve(batch *all, size_t count) {
    all->picks = PyMem_Calloc(count ? count : 1, sizeof *all->picks);
    if (all->picks) return 0;
    return pysft_no_memory();
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
        (void)pysft_not_found(all->state, name, pysft_store_set(all->store),
                              pysft_store_path(all->store));
        return -1;
    }
    one->name = Py_NewRef(name);
    all->count++;
    return 0;
}

/* ── Copies of tensors whose memory cannot be shared ─────────────────────── */

/* A new block of that many bytes. */
static pysft_store *add_block(pysft_fill *rows, uint64_t bytes) {
    uint64_t room;
    bool fresh;
    pysft_store *block = pysft_store_fresh_block(bytes, &room, &fresh);
    if (!block) return NULL;
    rows->fresh |= fresh;
    rows->blocks[rows->block_count++] = (sft_read_block){ pysft_store_bytes(block), room };
    return block;
}

/* To byte `at` of that block. */
static void add_read(const batch *all, pick *one, pysft_fill *rows, size_t block, uint64_t at) {
    const sft_file *file = sft_set_shard_at(pysft_store_set(all->store), one->shard);
    one->bytes = (char *)rows->blocks[block].base + at;
    rows->parts[rows->part_count++] = (sft_read_part){ file, one->facts, NULL, block, at };
    rows->total += one->facts->end - one->facts->begin;
}

/* ── Where the copies go ──────────────────────────────────────────────────
 *
 * A large tensor has a block of its own. Smaller ones share blocks, because page faults of memory
 * that is not in huge pages take several times as long as reading the bytes. A shared block is
 * freed with the last of its tensors, which is why it is not larger, and why the smallest tensors
 * are in none: what one of them keeps alive is at most 256 times its size. */

#define SHARED_BYTES ((uint64_t)4 << 20)
#define SHARED_LEAST ((uint64_t)16 << 10)  /* of a tensor in a shared block */
#define SHARED_MOST ((uint64_t)7 << 18)    /* from here on it has huge pages of its own */
#define SHARED_STEP ((uint64_t)64)

typedef struct {
    pysft_store *block; /* NULL: there are too few small tensors */
    size_t number;      /* of the block */
    size_t end;         /* the first pick that is not in it */
    uint64_t used;
} shared_block;

static uint64_t size_in_block(const pick *one) {
    return (one->facts->end - one->facts->begin + SHARED_STEP - 1) / SHARED_STEP * SHARED_STEP;
}

static bool is_small(const pick *one) {
    uint64_t len = one->facts->end - one->facts->begin;
    return one->copied && len >= SHARED_LEAST && len < SHARED_MOST;
}

/* The block of small picks from `first` on. */
static int share_begin(const batch *all, size_t first, pysft_fill *rows, shared_block *shared) {
    uint64_t bytes = 0;
    size_t end = first;
    for (; end < all->count; end++) {
        if (!is_small(&all->picks[end])) continue;
        if (bytes + size_in_block(&all->picks[end]) > SHARED_BYTES) break;
        bytes += size_in_block(&all->picks[end]);
    }
    pysft_store_drop(shared->block);
    *shared = (shared_block){ NULL, rows->block_count, end, 0 };
    if (bytes < SHARED_MOST) return 0;
    shared->block = add_block(rows, bytes);
    return shared->block ? 0 : -1;
}

static int place_pick(const batch *all, size_t i, pysft_fill *rows, shared_block *shared) {
    pick *one = &all->picks[i];
    bool small = is_small(one);
    if (small && i >= shared->end && share_begin(all, i, rows, shared) < 0) return -1;
    if (small && shared->block) {
        one->block = pysft_store_hold(shared->block);
        add_read(all, one, rows, shared->number, shared->used);
        shared->used += size_in_block(one);
        return 0;
    }
    one->block = add_block(rows, one->facts->end - one->facts->begin);
    if (!one->block) return -1;
    add_read(all, one, rows, rows->block_count - 1, 0);
    return 0;
}

/* Finds out which picks are copied, and gives each of them its memory. */
static int place_copies(batch *all, pysft_batch_kind kind, pysft_fill *rows) {
    shared_block shared = { NULL, 0, 0, 0 };
    size_t count = 0;
    int rc = 0;
    for (size_t i = 0; i < all->count; i++) {
        pick *one = &all->picks[i];
        bool writable;
        const char *base = pysft_store_base(all->store, one->shard, &writable);
        one->copied = !base || kind == PYSFT_TORCH_COPY || (kind == PYSFT_TORCH && !writable)
                   || !pysft_is_aligned(one->facts->dtype, base + one->facts->begin);
        count += one->copied;
    }
    if (count == 0) return 0;
    rows->parts = PyMem_Malloc((count + 1) * sizeof *rows->parts);
    rows->blocks = PyMem_Malloc((count + 1) * sizeof *rows->blocks);
    if (!rows->parts || !rows->blocks) return pysft_no_memory();
    for (size_t i = 0; rc == 0 && i < all->count; i++)
        if (all->picks[i].copied) rc = place_pick(all, i, rows, &shared);
    pysft_store_drop(shared.block);
    if (rc < 0) PyErr_NoMemory();
    return rc;
}

static int copy_unshared(batch *all, pysft_batch_kind kind, PyObject *progress) {
    pysft_fill rows = { NULL, NULL, 0, 0, 0, false };
    pysft_job job;
    int rc = place_copies(all, kind, &rows);
    if (rc == 0) rc = pysft_job_begin(&job, progress);
    if (rc == 0 && rows.part_count) {
        PYSFT_NO_GIL(job.code = pysft_fill_blocks(all->store, &rows, &job.job, &job.err));
    } else if (rc == 0) {
        /* Nothing has to be read: the end is reported. */
        for (size_t i = 0; i < all->count; i++)
            job.total += all->picks[i].facts->end - all->picks[i].facts->begin;
        job.reported = false;
    }
    if (rc == 0) rc = pysft_job_done(&job, all->state, pysft_store_path(all->store));
    PyMem_Free(rows.parts);
    PyMem_Free(rows.blocks);
    return rc;
}

/* ── Arrays ──────────────────────────────────────────────────────────────── */

static pysft_piece piece_of_pick(const batch *all, const pick *one) {
    const sft_tensor *facts = one->facts;
    pysft_piece piece = { one->block, NULL,         true, facts->dtype,
                          facts->rank, facts->shape, NULL, facts->end - facts->begin };
    if (one->block) {
        piece.data = one->bytes;
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

static PyObject *convert_each(const batch *all, bool torch) {
    shard_base base = { NULL, NULL, 0 };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < all->count; i++) {
        const pick *one = &all->picks[i];
        pysft_piece piece = piece_of_pick(all, one);
        bool over = !torch && !one->block; /* an array over the shard's memory */
        PyObject *array = NULL;
        if (torch) array = pysft_torch_of(all->state, &piece);
        else if (!over || base_for(all, one, &base) == 0)
            array = pysft_numpy_of(all->state, &piece, over ? base.memory : NULL,
                                   over ? base.start : NULL);
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
    pysft_names chosen;
    PyObject *dict = NULL;
    bool torch = kind != PYSFT_NUMPY;
    if (!(torch ? pysft_from_dlpack(state) : pysft_ndarray(state))) return NULL;
    int rc = names == Py_None ? pick_all(&all) : pysft_names_of(names, "names", &chosen);
    if (rc == 0 && names != Py_None) {
        rc = batch_reserve(&all, chosen.count);
        for (size_t i = 0; rc == 0 && i < chosen.count; i++)
            rc = pick_one(&all, PyTuple_GetItem(chosen.held, (Py_ssize_t)i), chosen.items[i]);
        pysft_names_free(&chosen);
    }
    if (rc == 0) rc = copy_unshared(&all, kind, progress);
    if (rc == 0) dict = convert_all(&all, torch);
    for (size_t i = 0; i < all.count; i++) {
        Py_XDECREF(all.picks[i].name);
        pysft_store_drop(all.picks[i].block);
    }
    PyMem_Free(all.picks);
    return dict;
}
