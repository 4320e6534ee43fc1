/* Hashing many models by several threads. Tests: test_hash_many.c. */
#include "base/error.h"
#include "base/files.h"
#include "base/options.h"
#include "hash/batch.h"

#include <string.h>

static void batch_recall(void *ctx, const sfti_hash_key *key, sft_hashes *hashes) {
    batch *b = ctx;
    batch_lock(b, &b->state);
    sfti_hash_cache_get(b->options.cache, key, hashes);
    batch_unlock(b, &b->state);
}

/* ── Claiming ── */

static bool batch_claim(batch *b, batch_worker *worker, batch_slot *slot) {
    static const sft_error none = SFT_ERROR_INIT;
    batch_lock(b, &b->claim);
    bool wants = sfti_batch_wants_more(b, worker->busy);
    slot->unit = wants ? sfti_batch_take_unit(b, &slot->model) : NULL;
    batch_unlock(b, &b->claim);
    if (!slot->unit) {
        slot->model = NULL;
        return false;
    }
    const sfti_hash_unit *unit = slot->unit;
    slot->ended = false;
    slot->error = none;
    sft_run run;
    slot->ended = sfti_pass_begin(&slot->pass, &b->impl, unit->algos, unit->size,
                                     unit->file, unit->digests, &b->work,
                                     &slot->error) != SFT_OK;
    if (!slot->ended && unit->segments)
        sfti_pass_share(&slot->pass, unit->segments, unit->begin, unit->end);
    run.len = sfti_pass_next(&slot->pass, SIZE_MAX, &run.offset);
    if (run.len > 0) sft_source_expect(&unit->source, &run, 1);
    worker->busy++;
    return true;
}

/* ── Reading ── */

/* Reads the next piece into a buffer of `piece` bytes; sets `ended` if there is none or the read
 * failed. */
static void slot_step(batch_slot *slot, sfti_sha_queue *queue, uint8_t *buffer, size_t piece) {
    bool is_stream = slot->unit->size == SFT_SIZE_UNKNOWN;
    const uint8_t *data = buffer;
    uint64_t at;
    size_t len = sfti_pass_next(&slot->pass, piece, &at), got = len;
    slot->got = 0;
    if (is_stream) {
        at = slot->pass.at;
        len = piece;
    }
    if (len == 0 || slot->ended) {
        slot->ended = true;
        return;
    }
    if (slot->unit->source.base) {
        data = (const uint8_t *)slot->unit->source.base + at;
    } else {
        size_t more = 1; /* fewer than len at the end of the source */
        for (got = 0; !slot->ended && got < len && more > 0; got += more) {
            more = 0;
            slot->ended = sft_source_read(&slot->unit->source, at + got, buffer + got, len - got,
                                          &more, &slot->error) != SFT_OK;
        }
        if (!slot->ended && got < len && !is_stream) {
            slot->ended = true;
            sfti_fail_byte(&slot->error, SFT_IO_SHRUNK, at + got,
                           "expected %llu bytes, found %llu: the file was cut while it was read",
                           (unsigned long long)slot->unit->size, (unsigned long long)(at + got));
        }
        if (slot->ended) return;
    }
    slot->ended = got == 0;
    slot->got = slot->unit->is_uncounted ? 0 : at + got - slot->pass.at;
    if (got > 0) sfti_pass_feed(&slot->pass, queue, at, data, got);
}

/* Ends a unit that was read or failed. */
static void slot_finish(batch *b, batch_worker *worker, batch_slot *slot) {
    sfti_hash_model *model = slot->model;
    sft_hashes found = { .asked = slot->unit->algos };
    if (!slot->error.code) sfti_pass_result(&slot->pass, &found);
    batch_lock(b, &b->state);
    if (slot->error.code && !model->error.code) model->error = slot->error;
    sfti_hashes_merge(slot->unit->into, &found);
    uint64_t read = slot->pass.at > slot->unit->begin ? slot->pass.at - slot->unit->begin : 0;
    if (read < batch_unit_cost(slot->unit)) /* bytes that no algorithm needed */
        b->done += batch_unit_cost(slot->unit) - read;
    bool last = ++model->finished == model->unit_count;
    b->active--;
    batch_unlock(b, &b->state);
    slot->model = NULL;
    worker->busy--;
    if (last && !model->is_borrowed) sfti_batch_close(b, model);
}

/* Once many streams have been hashed for a while, by the kernels that a trial prefers. */
static void worker_try_kernels(batch *b, batch_worker *worker) {
    if (worker->is_tried || worker->busy < BATCH_SLOTS_LEAST) return;
    batch_lock(b, &b->state);
    worker->is_tried = b->done >= BATCH_TRIAL_BYTES;
    batch_unlock(b, &b->state);
    if (!worker->is_tried) return;
    batch_lock(b, &b->claim); /* one thread at a time measures */
    sfti_sha_trial(&worker->impl);
    batch_unlock(b, &b->claim);
}

/* Reads one piece of each of the worker's files; false if there is nothing left to do. */
static bool worker_round(batch *b, batch_worker *worker) {
    uint64_t got = 0;
    worker_try_kernels(b, worker);
    /* As many files as streams are hashed at once; slots past that end with the files they have. */
    size_t most = worker->impl.sha_streams, first = 0;
    if (most < BATCH_SLOTS_LEAST) most = BATCH_SLOTS_LEAST;
    while (first < most
           && (worker->slots[first].model || batch_claim(b, worker, &worker->slots[first])))
        first++;
    if (worker->busy == 0) { /* those that were opened needed no reading, of the rest one may */
        batch_lock(b, &b->claim);
        /* If no other may be opened now, the threads that have some go on. */
        bool more = sfti_batch_has_more(b) && sfti_batch_may_open(b);
        batch_unlock(b, &b->claim);
        return more;
    }
    size_t piece = BATCH_BUFFER / worker->busy / BATCH_UNIT * BATCH_UNIT, at = 0;
    if (piece > BATCH_BLOCK) piece = BATCH_BLOCK;
    for (size_t i = 0; i < BATCH_SLOTS; i++) {
        if (!worker->slots[i].model) continue;
        slot_step(&worker->slots[i], &worker->queue, worker->buffer + at, piece);
        got += worker->slots[i].got;
        at += piece;
    }
    sfti_queue_run(&worker->queue);
    for (size_t i = 0; i < BATCH_SLOTS; i++)
        if (worker->slots[i].model && worker->slots[i].ended)
            slot_finish(b, worker, &worker->slots[i]);
    batch_lock(b, &b->state);
    b->done += got;
    batch_unlock(b, &b->state);
    return true;
}

/* ── Threads ── */

static void worker_run(void *ctx) {
    batch_worker *worker = ctx;
    batch *b = worker->batch;
    bool more = true;
    while (more) {
        more = !sfti_batch_is_over(b) && worker_round(b, worker);
        sfti_os_mutex_lock(&b->state);
        b->rounds++;
        if (!more) b->running--;
        sfti_os_cond_wake(&b->round);
        sfti_os_mutex_unlock(&b->state);
    }
}

static void deliver_one(batch *b, sfti_hash_model *model, size_t index) {
    sft_hash_result result;
    sfti_hash_model_result(model, &result);
    result.index = index;
    batch_lock(b, &b->state);
    for (size_t i = 0; i < model->memo_count && !model->error.code; i++)
        if (model->memos[i].valid)
            sfti_hash_cache_put(b->options.cache, &model->memos[i].key, model->memos[i].hashes);
    b->models[index] = NULL;
    batch_unlock(b, &b->state);
    bool go_on = b->each(b->ctx, &result);
    sfti_hash_model_free(model);
    if (go_on) return;
    batch_lock(b, &b->state);
    b->stop = true;
    batch_unlock(b, &b->state);
}

/* On the calling thread only: delivers results in order, reports progress; false: stop. */
static bool batch_pulse(batch *b) {
    for (;;) {
        batch_lock(b, &b->state);
        bool over = b->stop || b->code || b->delivered == b->count;
        sfti_hash_model *model = over ? NULL : b->models[b->delivered];
        if (model && !model->done) model = NULL;
        uint64_t done = b->done, total = b->total;
        batch_unlock(b, &b->state);
        if (model) {
            deliver_one(b, model, b->delivered++);
            continue;
        }
        if (!b->stop && b->job.tick && !b->job.tick(b->job.ctx, done, total)) {
            batch_lock(b, &b->state);
            b->stop = true;
            batch_unlock(b, &b->state);
        }
        return !sfti_batch_is_over(b);
    }
}

static void batch_go(batch *b) {
    size_t started = 1;
    while (started < b->worker_count) {
        batch_worker *worker = &b->workers[started];
        sfti_os_mutex_lock(&b->state);
        b->running++;
        sfti_os_mutex_unlock(&b->state);
        if (sfti_os_thread_start(&worker->thread, worker_run, worker) != 0) {
            sfti_os_mutex_lock(&b->state);
            b->running--;
            sfti_os_mutex_unlock(&b->state);
            break;
        }
        started++;
    }
    while (batch_pulse(b) && worker_round(b, &b->workers[0]))
        continue;
    /* Results and progress are delivered after every round until the last thread has finished. */
    uint64_t seen = 0;
    for (bool more = started > 1; more;) {
        sfti_os_mutex_lock(&b->state);
        while (b->running > 0 && b->rounds == seen) sfti_os_cond_wait(&b->round, &b->state);
        seen = b->rounds;
        more = b->running > 0;
        sfti_os_mutex_unlock(&b->state);
        (void)batch_pulse(b);
    }
    for (size_t i = 1; i < started; i++) sfti_os_thread_join(&b->workers[i].thread);
    (void)batch_pulse(b);
    if (b->stop && !b->code)
        b->code = sfti_fail_cancelled(b->err);
}

/* ── Beginning and end ── */

static SFTI_OPTIONS_TAKE(hash_take, sft_hash_options, SFT_HASH_OPTIONS_INIT, cache)

/* What a request's path is, if it is a single file of the system's. */
static bool batch_look(const batch *b, size_t i, os_info *info) {
    const char *path = b->requests[i].path;
    return !sft_path_is_index(path) && !sfti_files_claim(b->open.files, path, NULL)
           && sfti_os_info_path(path, true, info) == 0;
}

/* files: how many can be read at once. */
static sft_code batch_begin(batch *b, const sft_hash_options *options, const sft_job *job,
                            size_t files, sft_error *err) {
    sft_code code = hash_take(options, &b->options, err);
    if (!code) code = sfti_take_open(b->options.open, &b->open, err);
    if (!code) code = sfti_take_job(job, &b->job, err);
    if (code) return code;
    b->threads = b->job.threads ? b->job.threads : sfti_os_cpu_count();
    if (b->threads > BATCH_THREADS) b->threads = BATCH_THREADS;
    if (files < BATCH_THREADS && b->threads > BATCH_SHARES * files)
        b->threads = BATCH_SHARES * files;
    if (b->threads == 0) b->threads = 1;
    /* A read may block for long, as of a pipe: only the calling thread reads then, so that a signal
     * interrupts it. */
    os_info info;
    for (size_t i = 0; b->threads > 1 && i < b->count; i++)
        if (batch_look(b, i, &info) && info.kind != OS_FILE) b->threads = 1;
    b->how.split = files > 0 && files < b->threads ? b->threads / files : 1;
    b->alloc = sfti_allocator(b->open.alloc);
    b->work = b->threads > 1 ? sfti_allocator(NULL) : b->alloc;
    b->err = err;
    b->how.alloc = &b->work;
    b->how.open = &b->open;
    b->how.only_cached = b->options.only_cached;
    b->how.open_other = b->options.open_other;
    b->how.impl = &b->impl;
    b->how.recall = b->options.cache ? batch_recall : NULL;
    b->how.ctx = b;
    sfti_hash_impl_fill(&b->impl, 0);
    return SFT_OK;
}

static size_t batch_buffers_size(const batch *b) {
    return b->threads * BATCH_BUFFER;
}

static void batch_release(batch *b) {
    for (size_t i = 0; b->models && i < b->count; i++)
        if (b->models[i]) sfti_hash_model_free(b->models[i]);
    sfti_release(&b->alloc, b->models, (b->count + 1) * sizeof(sfti_hash_model *));
    sfti_release(&b->alloc, b->workers, b->threads * sizeof *b->workers);
    sfti_release(&b->alloc, b->buffers, batch_buffers_size(b));
}

static sft_code batch_run(batch *b) {
    size_t workers = b->threads * sizeof *b->workers;
    size_t models = (b->count + 1) * sizeof(sfti_hash_model *);
    b->workers = sfti_take(&b->alloc, workers);
    b->buffers = sfti_take(&b->alloc, batch_buffers_size(b));
    b->models = b->count < SIZE_MAX / 16 ? sfti_take(&b->alloc, models) : NULL;
    if (b->models) memset(b->models, 0, models);
    if (!b->workers || !b->buffers || !b->models)
        return sfti_fail_memory(b->err, batch_buffers_size(b));
    memset(b->workers, 0, workers);
    for (size_t t = 0; t < b->threads; t++) {
        b->workers[t].batch = b;
        b->workers[t].impl = b->impl;
        b->workers[t].queue.impl = &b->workers[t].impl;
        b->workers[t].buffer = b->buffers + t * BATCH_BUFFER;
    }
    bool claim = b->threads > 1 && sfti_os_mutex_init(&b->claim) == 0;
    bool state = claim && sfti_os_mutex_init(&b->state) == 0;
    b->shared = state && sfti_os_cond_init(&b->round) == 0;
    if (state && !b->shared) sfti_os_mutex_free(&b->state);
    if (claim && !b->shared) sfti_os_mutex_free(&b->claim);
    b->worker_count = b->shared ? b->threads : 1;
    /* What progress is reported against; an index's shards are added when it is open. */
    os_info info;
    for (size_t i = 0; b->job.tick && i < b->count; i++)
        if (batch_look(b, i, &info) && info.kind == OS_FILE) b->total += info.size;
    batch_go(b);
    if (b->shared) {
        sfti_os_cond_free(&b->round);
        sfti_os_mutex_free(&b->state);
        sfti_os_mutex_free(&b->claim);
    }
    b->shared = false;
    return b->code;
}

static sft_code batch_bad_call(sft_error *err, const char *found) {
    return sfti_misuse(err, "expected paths, bits of algorithms and a function, found %s", found);
}

sft_code sft_hash_paths(const sft_hash_request *requests, size_t count,
                        const sft_hash_options *options, sft_hash_each_fn each, void *ctx,
                        const sft_job *job, sft_error *err) {
    batch b = {
        .requests = requests, .count = count, .each = each, .ctx = ctx, .most_opened = SIZE_MAX
    };
    if ((!requests && count > 0) || !each) return batch_bad_call(err, "NULL");
    size_t files = 0;
    for (size_t i = 0; i < count; i++) {
        if (!requests[i].path) return batch_bad_call(err, "a path that is NULL");
        if (requests[i].algos & ~SFT_HASH_ALL) return batch_bad_call(err, "other bits");
        files += sft_path_is_index(requests[i].path) ? BATCH_THREADS : 1;
    }
    sft_code code = batch_begin(&b, options, job, files, err);
    if (code || count == 0) return code;
    code = batch_run(&b);
    batch_release(&b);
    return code;
}

/* ── One ── */

typedef struct one_answer {
    sft_hashes *out;
    sft_code code;
    sft_error *err;
} one_answer;

static bool take_one(void *ctx, const sft_hash_result *result) {
    one_answer *one = ctx;
    *one->out = result->hashes;
    if (!result->error) return true;
    one->code = result->error->code;
    if (one->err) *one->err = *result->error;
    return true;
}

sft_code sft_hash_path(const char *path, uint32_t algos, const sft_hash_options *options,
                       sft_hashes *out, const sft_job *job, sft_error *err) {
    sft_hash_request request = { path, algos };
    one_answer one = { out, SFT_OK, err };
    sft_code code = sft_hash_paths(&request, 1, options, take_one, &one, job, err);
    if (!code) code = one.code;
    if (code) memset(out, 0, sizeof *out);
    return code;
}

/* The set and its allocator belong to the caller, so the allocator is used on this thread only. */
static sft_code hash_borrowed(batch *b, const sft_set *set, uint32_t algos, sft_hashes *out) {
    sfti_hash_model *model = sfti_take(&b->work, sizeof *model);
    if (!model) return sfti_fail_memory(b->err, sizeof *model);
    sfti_hash_model_borrow(model, set, algos, &b->how);
    sft_code code = model->error.code;
    if (!code && model->unit_count > 0) {
        sfti_batch_publish(b, model);
        code = batch_run(b);
    }
    if (!code && !model->error.code)
        sfti_hash_model_finish(model, &b->how);
    if (!code) code = model->error.code;
    if (model->error.code && b->err) *b->err = model->error;
    if (!code) {
        *out = model->hashes;
        out->asked = algos;
    }
    sfti_hash_model_free(model);
    return code;
}

sft_code sft_hash_set(const sft_set *set, uint32_t algos, sft_hashes *out, const sft_job *job,
                      sft_error *err) {
    batch b = { .count = 0 };
    memset(out, 0, sizeof *out);
    if (!set || algos & ~SFT_HASH_ALL) return batch_bad_call(err, set ? "other bits" : "NULL");
    sft_code code = batch_begin(&b, NULL, job, sft_set_shard_count(set), err);
    if (code) return code;
    code = hash_borrowed(&b, set, algos, out);
    batch_release(&b);
    return code;
}
