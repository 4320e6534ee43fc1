/* The stream of cast bytes, which threads cast ahead. Tests: test_convert.c. */
#include "convert/conversion.h"

#include "base/announce.h"

#include <string.h>

#define STREAM_IN ((size_t)256 << 10)  /* bytes read at once: they stay in a core's cache */
#define STREAM_OUT ((size_t)1 << 20)   /* bytes of a slot, at most */
#define STREAM_WORKERS 32

static uint32_t stream_bits(sft_dtype dtype) {
    return sft_dtype_describe(dtype)->bits;
}

/* ── Casting a stretch of a tensor ── */

/* Casts count elements from `first`, a multiple of 8, on; `in` holds as many. */
static sft_code cast_piece(sft_conversion *c, uint64_t first, size_t count, uint8_t *in,
                           uint8_t *out, sfti_losses *lost, sft_error *err) {
    const sft_tensor *tensor = c->now.tensor;
    bool computes = c->now.quant != NULL;
    uint32_t bits = stream_bits(tensor->dtype);
    uint64_t at = tensor->offset + first / 8 * bits;
    sft_code code = computes ? sfti_dequant_read(&c->dequant, first, count, in, err)
                             : sft_read_bytes(c->now.file, at, in,
                                              (size_t)((uint64_t)count * bits / 8), err);
    if (!code) {
        uint64_t good = sfti_cast_run(&c->cast, in, out, count, lost);
        if (good == count) return SFT_OK;
        code = sfti_cast_refuse(&c->cast, in, good, first + good, err);
        if (err) err->offset = computes ? tensor->offset : at + good * bits / 8;
    } else if (computes) {
        return code;
    }
    if (err) sfti_error_tensor(err, tensor->name);
    return code;
}

static sft_code cast_stretch(sft_conversion *c, uint64_t first, uint64_t count, uint8_t *in,
                             uint8_t *out, sfti_losses *lost, sft_error *err) {
    sft_dtype before = c->now.quant ? SFT_F32 : c->now.tensor->dtype; /* the cast */
    size_t most = STREAM_IN / stream_bits(before) * 8;
    for (uint64_t done = 0; done < count;) {
        size_t piece = count - done < most ? (size_t)(count - done) : most;
        sft_code code = cast_piece(c, first + done, piece, in,
                                   out + (size_t)(done / 8 * stream_bits(c->to)), lost, err);
        if (code) return code;
        done += piece;
    }
    return SFT_OK;
}

/* Losses of elements from `first` on, each of which counts once, however often it is read: in the
 * order of the tensor. */
static void take_losses(sft_conversion *c, uint64_t first, uint64_t count,
                        const sfti_losses *lost) {
    sfti_converted *row = c->now.row;
    if (first != row->counted) return;
    sfti_losses_add(&row->lost, lost);
    row->counted += count;
}

/* A stretch on the calling thread. */
static sft_code cast_here(sft_conversion *c, uint64_t first, uint64_t count, uint8_t *out,
                          sft_error *err) {
    sfti_losses lost = { 0, 0, 0, 0 };
    sft_code code = cast_stretch(c, first, count, c->in, out, &lost, err);
    if (!code) take_losses(c, first, count, &lost);
    return code;
}

static sft_code read_alone(sft_conversion *c, uint64_t offset, uint8_t *into, size_t len,
                           sft_error *err) {
    uint32_t bits = stream_bits(c->to);
    for (size_t done = 0; done < len;) {
        uint64_t at = offset + done;
        size_t left = len - done, part = left - left % bits;
        sft_code code;
        if (at % bits == 0 && at + left == c->now.bytes) part = left;
        if (at % bits != 0 || part == 0) {
            /* It begins or ends within a group of eight elements: the whole group is cast. */
            uint8_t eight[64];
            uint64_t first = at / bits * 8, rest = c->now.elements - first;
            size_t skip = (size_t)(at % bits), have = bits - skip;
            code = cast_here(c, first, rest < 8 ? rest : 8, eight, err);
            part = have < left ? have : left;
            if (!code) memcpy(into + done, eight + skip, part);
        } else {
            uint64_t first = at / bits * 8, count = (uint64_t)part / bits * 8;
            if (at + part == c->now.bytes) count = c->now.elements - first;
            code = cast_here(c, first, count, into + done, err);
        }
        if (code) return code;
        done += part;
    }
    return SFT_OK;
}

/* ── Threads that cast ahead ── */

static void run_slot(void *ctx) {
    sfti_convert_slot *slot = ctx;
    (void)cast_stretch(slot->of, slot->first, slot->count, slot->in, slot->out, &slot->lost,
                       &slot->err);
}

static void join_batch(sfti_cast_workers *pool, size_t batch) {
    for (size_t i = 0; i < pool->count[batch]; i++) {
        sfti_convert_slot *slot = &pool->slots[batch * pool->workers + i];
        if (slot->running) sfti_os_thread_join(&slot->thread);
        slot->running = false;
    }
}

/* Starts threads on the next stretches; the calling thread casts where one does not start. */
static void start_batch(sft_conversion *c, size_t batch) {
    static const sft_error none = SFT_ERROR_INIT;
    sfti_cast_workers *pool = &c->pool;
    uint64_t most = STREAM_OUT / stream_bits(c->to) * 8;
    pool->count[batch] = 0;
    while (pool->count[batch] < pool->workers && pool->next < c->now.elements) {
        sfti_convert_slot *slot = &pool->slots[batch * pool->workers + pool->count[batch]++];
        uint64_t left = c->now.elements - pool->next;
        slot->first = pool->next;
        slot->count = left < most ? left : most;
        slot->bytes = (size_t)(slot->count * stream_bits(c->to) / 8);
        slot->err = none;
        slot->lost = (sfti_losses){ 0, 0, 0, 0 };
        pool->next += slot->count;
        slot->running = sfti_os_thread_start(&slot->thread, run_slot, slot) == 0;
        if (!slot->running) run_slot(slot);
    }
}

static void pool_wait(sfti_cast_workers *pool) {
    join_batch(pool, 0);
    join_batch(pool, 1);
    pool->count[0] = pool->count[1] = 0;
    pool->open = false;
}

static void pool_turn(sft_conversion *c, size_t batch) {
    sfti_cast_workers *pool = &c->pool;
    pool->batch = batch;
    pool->slot = pool->used = 0;
    join_batch(pool, batch);
    start_batch(c, batch ^ 1);
}

static sft_code read_ahead(sft_conversion *c, uint8_t *into, size_t len, sft_error *err) {
    sfti_cast_workers *pool = &c->pool;
    while (len > 0) {
        if (pool->slot == pool->count[pool->batch]) pool_turn(c, pool->batch ^ 1);
        const sfti_convert_slot *slot = &pool->slots[pool->batch * pool->workers + pool->slot];
        if (slot->err.code) {
            if (err) *err = slot->err;
            return slot->err.code;
        }
        size_t part = slot->bytes - pool->used < len ? slot->bytes - pool->used : len;
        memcpy(into, slot->out + pool->used, part);
        into += part;
        len -= part;
        pool->at += part;
        pool->used += part;
        if (pool->used < slot->bytes) continue;
        take_losses(c, slot->first, slot->count, &slot->lost);
        pool->slot++;
        pool->used = 0;
    }
    return SFT_OK;
}

/* ── The source ── */

/* The row that holds this byte: the last that begins at or before it, since rows without bytes
 * begin where the next row does. */
static size_t row_at(const sft_conversion *c, uint64_t offset) {
    size_t low = 0, high = c->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (c->rows[middle].begin <= offset) low = middle;
        else high = middle;
    }
    return low;
}

static void choose_tensor(sft_conversion *c, uint64_t offset) {
    sfti_convert_now *now = &c->now;
    if (now->tensor && offset >= now->begin && offset - now->begin < now->bytes) return;
    size_t i = row_at(c, offset);
    pool_wait(&c->pool);
    now->tensor = sft_set_tensor_at(c->set, i);
    now->file = sft_set_shard_at(c->set, sft_set_tensor_shard(c->set, i));
    now->row = &c->rows[i];
    now->begin = now->row->begin;
    now->quant = c->quants ? c->quants[i] : NULL;
    sft_spec spec = sft_part_of(now->tensor, NULL).spec;
    if (now->quant) spec = now->quant->spec;
    now->bytes = now->row[1].begin - now->begin;
    if (now->row->action == SFT_CONVERT_REFUSED) return;
    if (sft_shape_size(c->to, spec.shape, spec.rank, &now->elements, &now->bytes, NULL))
        now->bytes = 0; /* never: fill_row computed the same size */
    if (now->quant) sfti_dequant_begin(&c->dequant, now->quant);
    sfti_cast_begin(&c->cast, &c->kernels, now->quant ? SFT_F32 : now->tensor->dtype, c->to,
                    c->options.saturate);
    sfti_losses_begin(&c->cast, &c->kernels);
}

/* Whether threads that cast ahead save time: the caller writes what it reads here, and that alone
 * takes longer than reading and casting where memory limits the cast; handing over blocks then
 * costs more than it saves. */
static bool pool_gains(const sft_conversion *c) {
    return c->pool.workers > 0 && c->now.bytes > STREAM_OUT && !c->now.quant
           && !sfti_cast_is_light(&c->cast, &c->kernels);
}

static sft_code stream_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    sft_conversion *c = ctx;
    if (!c->in) { /* the conversion is not saved, but read from */
        c->in = sfti_take(&c->alloc, STREAM_IN);
        if (!c->in) return sfti_fail_memory(err, STREAM_IN);
    }
    choose_tensor(c, offset);
    uint64_t at = offset - c->now.begin, left = c->now.bytes - at;
    if (len > left) len = (size_t)left;
    *got = 0;
    if (c->now.row->action == SFT_CONVERT_REFUSED)
        return sft_conversion_refusal(c, (size_t)(c->now.row - c->rows), NULL, err);
    if (at == 0 && pool_gains(c)) {
        pool_wait(&c->pool);
        c->pool.open = true;
        c->pool.at = c->pool.next = 0;
        start_batch(c, 0);
        pool_turn(c, 0);
    }
    bool ahead = c->pool.open && c->pool.at == at;
    sft_code code = ahead ? read_ahead(c, into, len, err) : read_alone(c, at, into, len, err);
    if (!code) *got = len;
    return code;
}

static void stream_expect(void *ctx, const sft_run *runs, size_t count) {
    const sft_conversion *c = ctx;
    sfti_announcement all = { .count = 0 };
    for (size_t n = 0; n < count; n++) {
        uint64_t end = runs[n].offset + runs[n].len;
        for (size_t i = row_at(c, runs[n].offset); i < c->count && c->rows[i].begin < end; i++) {
            const sfti_quant *quant = c->quants ? c->quants[i] : NULL;
            if (c->rows[i].begin == c->rows[i + 1].begin) continue;
            if (c->rows[i].action == SFT_CONVERT_REFUSED) continue;
            if (!quant) {
                size_t shard = sft_set_tensor_shard(c->set, i);
                sfti_announce_tensor(&all, sft_set_shard_at(c->set, shard),
                                     sft_set_tensor_at(c->set, i));
                continue;
            }
            /* Tensors are read whole, small parts of one that is quantised before it. */
            for (size_t k = quant->count; k > 0; k--)
                sfti_announce_tensor(&all, quant->parts[k - 1].file, quant->parts[k - 1].tensor);
        }
    }
    sfti_announce_end(&all);
}

static uint32_t stream_mode(void *ctx) {
    return ((const sft_conversion *)ctx)->mode;
}

const sft_source_vtable sfti_convert_source = {
    sizeof(sft_source_vtable), stream_read, NULL, stream_expect, stream_mode
};

/* ── Beginning and end ── */

sft_code sfti_convert_begin(sft_conversion *c, const sft_job *job, sft_error *err) {
    size_t threads = job->threads ? job->threads : sfti_os_cpu_count();
    sfti_convert_end(c); /* what reading from its parts has left */
    if (threads > STREAM_WORKERS) threads = STREAM_WORKERS;
    if (threads == 0) threads = 1;
    c->now.tensor = NULL;
    c->in = sfti_take(&c->alloc, STREAM_IN);
    if (!c->in) return sfti_fail_memory(err, STREAM_IN);
    sfti_cast_workers *pool = &c->pool;
    memset(pool, 0, sizeof *pool);
    if (threads == 1) return SFT_OK;
    size_t slots = 2 * threads;
    pool->buffers_size = threads * (STREAM_IN + 2 * STREAM_OUT);
    pool->slots = sfti_take(&c->alloc, slots * sizeof *pool->slots);
    pool->buffers = sfti_take(&c->alloc, pool->buffers_size);
    pool->workers = threads;
    if (!pool->slots || !pool->buffers) return sfti_fail_memory(err, pool->buffers_size);
    memset(pool->slots, 0, slots * sizeof *pool->slots);
    for (size_t i = 0; i < slots; i++) {
        pool->slots[i].of = c;
        pool->slots[i].out = pool->buffers + i * STREAM_OUT;
        pool->slots[i].in = pool->buffers + slots * STREAM_OUT + i % threads * STREAM_IN;
    }
    return SFT_OK;
}

void sfti_convert_end(sft_conversion *c) {
    sfti_cast_workers *pool = &c->pool;
    if (pool->slots) pool_wait(pool);
    sfti_dequant_end(&c->dequant);
    sfti_release(&c->alloc, pool->slots, 2 * pool->workers * sizeof *pool->slots);
    sfti_release(&c->alloc, pool->buffers, pool->buffers_size);
    sfti_release(&c->alloc, c->in, STREAM_IN);
    memset(pool, 0, sizeof *pool);
    c->in = NULL;
}
