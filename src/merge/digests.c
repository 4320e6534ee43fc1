/* Digests of merged models, which the header of the result has: known before the first byte is
 * written, or, where their number of digits is, computed meanwhile. Tests: tests/merge,
 * test_merge_public.c. */
#include "merge/work.h"

#include "base/error.h"

#include <string.h>

#define ALGOS \
    (SFT_HASH_BIT(SFT_HASH_SHA256) | SFT_HASH_BIT(SFT_HASH_CONTENT) | SFT_HASH_BIT(SFT_HASH_AUTOV1))
#define COMPARED ((size_t)64 << 10)
#define DIGITS 64

/* ── Models side by side, one a thread: their digests take longer than reading them ── */

static bool goes_on(void *ctx, uint64_t done, uint64_t total) {
    sfti_merge_hashing *h = ctx;
    (void)done, (void)total;
    return !atomic_load(&h->stop) && sfti_os_stop_signal() == 0;
}

static bool tick_caller(void *ctx, uint64_t done, uint64_t total) {
    sfti_merge_hashing *h = ctx;
    if (!h->job.tick || h->job.tick(h->job.ctx, done, total)) return true;
    atomic_store(&h->stop, true);
    return false;
}

static bool hash_next(sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err) {
    sfti_merge_hashing *h = workers->ctx;
    sft_job job = SFT_JOB_INIT;
    job.threads = h->threads > 1 ? 1 : h->job.threads; /* else the shards of a model have them */
    job.tick = thread == 0 && !h->apart ? tick_caller : goes_on;
    job.ctx = h;
    sfti_workers_lock(workers);
    while (h->next < h->count && h->origins[h->next].content) h->next++;
    size_t i = h->next;
    bool more = i < h->count && !workers->error.code;
    h->next += more;
    sfti_workers_unlock(workers);
    if (!more) return false;
    *done = 1;
    err->code = sft_hash_set(h->origins[i].stored, ALGOS, &h->hashes[i], &job, err);
    if (!err->code) return true;
    atomic_store(&h->stop, true);
    sfti_workers_lock(workers);
    if (!workers->error.code) h->blames = i;
    sfti_workers_unlock(workers);
    return true;
}

static void hash_all(void *ctx) {
    sfti_merge_hashing *h = ctx;
    h->workers.step = hash_next;
    h->workers.ctx = h;
    h->code = sfti_workers_run(&h->workers, h->threads, &h->err);
}

static sft_code hash_begin(sfti_merge_hashing *h, sfti_merge_origin *origins, size_t count,
                           sfti_arena *arena, const sft_job *job, sft_error *err) {
    memset(h, 0, sizeof *h);
    h->origins = origins;
    h->count = count;
    h->blames = SIZE_MAX;
    h->job = *job;
    h->threads = sfti_workers_count(job, SFTI_WORKERS_MOST, count);
    h->err = (sft_error)SFT_ERROR_INIT;
    h->hashes = sfti_arena_array(arena, count, sizeof *h->hashes);
    if (!h->hashes) return sfti_fail_memory(err, count * sizeof *h->hashes);
    for (size_t i = 0; i < count; i++) h->hashes[i] = (sft_hashes)SFT_HASHES_INIT(0);
    return SFT_OK;
}

sft_code sfti_merge_hash_end(sfti_merge_hashing *h, sfti_merge_recipe *recipe, size_t *blame,
                             sft_error *err) {
    if (h->started) sfti_os_thread_join(&h->thread);
    h->started = false;
    if (h->code) *blame = h->blames;
    if (h->code) return sfti_fail_as(err, h->code, &h->err);
    for (size_t i = 0; i < h->count; i++) {
        sfti_merge_origin *o = &h->origins[i];
        const sft_hashes *found = &h->hashes[i];
        if (!o->content) {
            o->content = sft_hashes_get(found, SFT_HASH_CONTENT);
            o->sha256 = sft_hashes_get(found, SFT_HASH_SHA256);
            o->autov1 = sft_hashes_get(found, SFT_HASH_AUTOV1);
        }
        recipe->content[i] = sft_span_cstr(o->content);
        recipe->sha256[i] = sft_span_cstr(o->sha256 ? o->sha256 : "");
    }
    return SFT_OK;
}

sft_code sfti_merge_hash(const sfti_merge_model *models, sfti_merge_origin *origins,
                         sfti_merge_recipe *recipe, bool again, sfti_arena *arena,
                         const sft_job *job, size_t *blame, sft_error *err) {
    sfti_merge_hashing h;
    sft_span content[SFTI_MERGE_MODELS], sha256[SFTI_MERGE_MODELS];
    memcpy(content, recipe->content, sizeof content);
    memcpy(sha256, recipe->sha256, sizeof sha256);
    sft_code code = hash_begin(&h, origins, recipe->count, arena, job, err);
    if (!code) hash_all(&h);
    if (!code) code = sfti_merge_hash_end(&h, recipe, blame, err);
    for (size_t i = 0; !code && i < recipe->count; i++) {
        *blame = i;
        if (!again) recipe->values[i] = (sft_span){ "", 0 };
        code = sfti_merge_values_hash(&models[i], arena, job, &recipe->values[i], err);
        if (!again || code) continue;
        if (!sft_span_equal(content[i], recipe->content[i]))
            return sfti_fail(err, SFT_IO_READ, "expected models that stay as they are while they "
                             "are merged, found another one in place of this one: nothing was "
                             "written");
        recipe->sha256[i] = sha256[i]; /* as they were recorded */
    }
    if (!code) *blame = SIZE_MAX;
    return code;
}

/* ── Meanwhile ── */

static bool is_one_file(const sft_set *set) {
    return sft_set_shard_count(set) == 1 && !sft_set_index_path(set);
}

/* Whether the bytes of two files differ, so that their digests do; false after a failure. */
static bool files_differ(const sft_set *a, const sft_set *b, uint8_t *room) {
    sft_source one = sft_file_source(sft_set_shard_at(a, 0));
    sft_source two = sft_file_source(sft_set_shard_at(b, 0));
    if (one.size != two.size) return true;
    for (uint64_t at = 0; at < one.size; at += COMPARED) {
        size_t n = one.size - at < COMPARED ? (size_t)(one.size - at) : COMPARED;
        if (sft_read_bytes(sft_set_shard_at(a, 0), at, room, n, NULL)
            || sft_read_bytes(sft_set_shard_at(b, 0), at, room + COMPARED, n, NULL))
            return false;
        if (memcmp(room, room + COMPARED, n) != 0) return true;
    }
    return false;
}

/* Records leave out a model that another one is, or that one was made of. */
static bool lengths_are_known(const sfti_merge_model *models, const sfti_merge_origin *origins,
                              size_t count, uint8_t *room) {
    sft_span value;
    for (size_t i = 0; i < count; i++) {
        const sft_set *set = origins[i].stored;
        if (models[i].computed || origins[i].content || !sfti_merge_is_local(&models[i])
            || sft_file_metadata_get(sft_set_shard_at(set, 0),
                                     sft_span_cstr(SFTI_MERGE_MODELS_KEY), &value))
            return false;
        for (size_t k = 0; is_one_file(set) && k < i; k++)
            if (is_one_file(origins[k].stored) && !files_differ(set, origins[k].stored, room))
                return false;
    }
    return true;
}

bool sfti_merge_hash_meanwhile(sfti_merge_hashing *h, const sfti_merge_model *models,
                               sfti_merge_origin *origins, sfti_merge_recipe *recipe,
                               sfti_arena *arena, const sft_job *job) {
    uint8_t *room = sfti_arena_array(arena, 2, COMPARED);
    char *digits = sfti_arena_array(arena, recipe->count, DIGITS);
    memset(h, 0, sizeof *h);
    if (!room || !digits || sfti_workers_count(job, 2, 2) < 2
        || !lengths_are_known(models, origins, recipe->count, room)
        || hash_begin(h, origins, recipe->count, arena, job, NULL))
        return false;
    for (size_t i = 0; i < recipe->count; i++) {
        bool one = is_one_file(origins[i].stored);
        char *text = memset(digits + i * DIGITS, '0', DIGITS);
        text[0] = (char)('0' + i / 10);
        text[1] = (char)('0' + i % 10);
        recipe->content[i] = (sft_span){ text, DIGITS };
        recipe->sha256[i] = (sft_span){ text, one ? DIGITS : 0 };
        recipe->values[i] = (sft_span){ "", 0 };
        origins[i].autov1 = one ? "00000000" : NULL;
    }
    h->apart = true;
    h->started = sfti_os_thread_start(&h->thread, hash_all, h) == 0;
    return h->started;
}

void sfti_merge_hash_stop(sfti_merge_hashing *h) {
    if (!h->started) return;
    atomic_store(&h->stop, true);
    sfti_os_thread_join(&h->thread);
    h->started = false;
}
