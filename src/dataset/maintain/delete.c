/* Rows are deleted: a commit that changes masks alone. Tests: test_dataset_delete.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "base/order.h"
#include "dataset/commit/addressed.h"
#include "dataset/commit/swap.h"
#include "dataset/maintain/results.h"
#include "dataset/read/merge.h"

#include <string.h>

#define DELETE_WAIT_MS 60000

/* A deletion is a commit, with the state that a crash leaves:
 *
 * 1. Rows that are given by numbers: find their shards, in the version whose numbers they are.
 *    Nothing is written.
 * 2. Take the guard, read the manifest in force. Those shards must still be there: an append or
 *    another deletion leaves them, and the masks are joined; a compaction or an overwrite does not,
 *    and is SFT_DATASET_CHANGED. Rows that are given by names are looked up now.
 * 3. Write the file of all masks under its final name, synced. A crash leaves a file that no
 *    manifest names: gc removes it.
 * 4. Replace the manifest, if it is still the one that was read (swap.c): the commit point. A
 *    deletion that lost removes its masks and begins again with 2.
 * 5. Remove the old masks, unless a version that is kept may name them. Shards are not touched, and
 *    neither is the index, which stays that of the commit that wrote it. */

/* Rows to be deleted of one shard. */
typedef struct delete_shard {
    const char *name;
    const char *sha256; /* of the shard that was read, or NULL */
    uint64_t bits, set; /* set: how many */
    uint8_t *at;        /* NULL: none */
} delete_shard;

enum { DELETE_WANTED = 1, DELETE_SEEN = 2, DELETE_THERE = 4 }; /* of a row given, visible, any */

typedef struct deletion {
    const sft_storage *storage;
    const sft_job *job;
    sft_delete_options how;
    sft_open_options open;
    sft_allocator alloc;
    sfti_arena plan; /* of the version that rows are numbered by */
    sft_dataset *dataset;
    delete_shard *shards; /* by name */
    size_t count;
    /* of each try */
    sfti_arena work;
    sfti_ds_swap swap;
    sfti_ds_manifest now, next;
    sft_buffer masks, text;
    sft_span *names; /* KV: of rows, those given and then their rivals */
    size_t name_count;
    sft_span *keys; /* of their tensors, ascending */
    size_t key_count;
    uint8_t *found; /* of each key: DELETE_… */
    size_t *which;  /* for each column, for each row: the number of its key */
    char uuid[37], folder[SFTI_JOB_FOLDER];
    uint64_t deleted; /* rows, or tensors, that were not deleted before */
    sft_error *err;
} deletion;

/* ── Which rows ── */

static sft_code delete_mark(deletion *d, sfti_arena *arena, delete_shard *s, uint64_t bit) {
    if (!s->at) {
        const size_t bytes = (size_t)sfti_ds_mask_bytes(s->bits);
        s->at = sfti_arena_take(arena, bytes);
        if (!s->at) return sfti_fail_memory(d->err, bytes);
        memset(s->at, 0, bytes);
    }
    const uint8_t mark = (uint8_t)(1u << bit % 8);
    s->set += !(s->at[bit / 8] & mark);
    s->at[bit / 8] |= mark;
    return SFT_OK;
}

static sft_code delete_list(deletion *d, sfti_arena *arena, const sfti_ds_manifest *m) {
    const bool kv = m->mode == SFT_DATASET_KV;
    d->count = m->shard_count;
    d->shards = sfti_arena_array(arena, d->count, sizeof *d->shards);
    if (!d->shards) return sfti_fail_memory(d->err, d->count * sizeof *d->shards);
    for (size_t i = 0; i < d->count; i++) {
        const sft_dataset_shard *s = &m->shards[i].facts;
        d->shards[i] = (delete_shard){ s->name, s->sha256, kv ? s->tensors : s->samples, 0, NULL };
    }
    return SFT_OK;
}

static int range_order(const void *ranges, uint32_t a, uint32_t b) {
    const sft_row_range *all = ranges;
    return all[a].first < all[b].first ? -1 : all[a].first > all[b].first;
}

/* Step 1. Rows are numbered without those that are deleted already. Ranges are taken in ascending
 * order, so each shard is passed once. */
static sft_code delete_rows(deletion *d) {
    const sfti_ds_manifest *m = sfti_ds_manifest_of(d->dataset);
    sft_code code = delete_list(d, &d->plan, m);
    const uint32_t *order = d->how.row_count > UINT32_MAX / 2
                                ? NULL : sfti_arena_sorted(&d->plan, d->how.row_count, range_order,
                                                           d->how.rows);
    if (!code && !order) code = sfti_fail_memory(d->err, d->how.row_count * sizeof *order);
    uint64_t row = 0, at = 0; /* the number of the row at this bit of the shard */
    size_t shard = 0, named = SIZE_MAX; /* the shard by name that is this one */
    size_t low = 0;
    for (size_t k = 0; !code && k < d->how.row_count; k++) {
        const sft_row_range r = d->how.rows[order[k]];
        if (r.first > r.end || r.end > m->total_valid)
            return sfti_misuse(d->err, "expected rows from 0 to %llu, found %llu to %llu",
                               (unsigned long long)m->total_valid, (unsigned long long)r.first,
                               (unsigned long long)r.end);
        while (!code && row < r.end && shard < d->count) {
            const sft_dataset_shard *s = sft_dataset_shard_at(d->dataset, shard);
            const sfti_ds_mask *mask = sfti_ds_mask_find(&m->masks, s->name);
            const uint64_t left = r.first > row ? r.first - row : 0;
            /* A whole shard before the range. */
            if (at == 0 && left >= s->valid_samples - s->deleted) {
                row += s->valid_samples - s->deleted;
                shard++;
                continue;
            }
            at = sfti_ds_mask_next(mask, at, s->valid_samples);
            if (at == s->valid_samples) {
                shard++;
                at = 0;
                continue;
            }
            if (row >= r.first) {
                size_t high = d->count;
                for (low = named == shard ? low : 0; named != shard && high - low > 1;) {
                    size_t middle = low + (high - low) / 2;
                    if (strcmp(d->shards[middle].name, s->name) <= 0) low = middle;
                    else high = middle;
                }
                named = shard;
                code = delete_mark(d, &d->plan, &d->shards[low], at);
            }
            row++;
            at++;
        }
    }
    return code;
}

/* ── Names of rows ── */

static int key_order(const void *keys, uint32_t a, uint32_t b) {
    const sft_span *all = keys;
    return sfti_bytes_compare(all[a], all[b]);
}

/* The rows given. Of columns whose tensors may have the same names, also the rivals: rows that
 * would have a tensor in common with one of these. */
static sft_code delete_rivals(deletion *d) {
    const sfti_ds_manifest *m = &d->now;
    const size_t n = d->how.key_count;
    size_t cap = 0;
    d->names = sfti_arena_grow(&d->work, NULL, 0, n, &cap, sizeof *d->names);
    if (!d->names) return sfti_fail_memory(d->err, n * sizeof *d->names);
    memcpy(d->names, d->how.keys, n * sizeof *d->names);
    d->name_count = n;
    for (size_t i = 0; i < m->column_count; i++)
        for (size_t k = 0; k < m->column_count; k++) {
            const sft_span longer = m->columns[i].name, shorter = m->columns[k].name;
            if (!sfti_ds_keys_meet(m->separator, longer, shorter)) continue;
            const char *more = sfti_arena_join(&d->work, m->separator, longer);
            sft_span *all = sfti_arena_grow(&d->work, d->names, d->name_count, 2 * n, &cap,
                                            sizeof *all);
            if (!more || !all) return sfti_fail_memory(d->err, 2 * n * sizeof *all);
            const sft_span between = { more, longer.len - shorter.len };
            d->names = all;
            for (size_t at = 0; at < n; at++) {
                const sft_span name = all[at];
                const size_t rest = name.len - between.len;
                const char *behind = sfti_arena_join(&d->work, name, between);
                if (!behind) return sfti_fail_memory(d->err, name.len + between.len);
                all[d->name_count++] = (sft_span){ behind, name.len + between.len };
                if (name.len >= between.len && !memcmp(name.data + rest, between.data, between.len))
                    all[d->name_count++] = (sft_span){ name.data, rest };
            }
        }
    return SFT_OK;
}

/* The names of the tensors of the rows, ascending and each once. */
static sft_code delete_names(deletion *d) {
    const sfti_ds_manifest *m = &d->now;
    uint64_t count = 0;
    sft_code code = delete_rivals(d);
    if (code) return code;
    if (!sfti_mul(d->name_count, m->column_count, &count) || count > UINT32_MAX / 2)
        return sfti_fail_memory(d->err, SIZE_MAX);
    sft_span *keys = sfti_arena_array(&d->work, count, sizeof *keys);
    d->keys = sfti_arena_array(&d->work, count, sizeof *keys);
    d->found = sfti_arena_array(&d->work, count, sizeof *d->found);
    d->which = sfti_arena_array(&d->work, count, sizeof *d->which);
    if (!keys || !d->keys || !d->found || !d->which)
        return sfti_fail_memory(d->err, count * sizeof *keys);
    for (size_t k = 0; k < m->column_count; k++) {
        const sft_span column = m->columns[k].name, sep = m->separator;
        const char *suffix = sfti_arena_join(&d->work, sep, column);
        if (!suffix) return sfti_fail_memory(d->err, sep.len + column.len);
        /* A column without a name: the tensor has the row's. */
        const sft_span end = { suffix, column.len ? sep.len + column.len : 0 };
        for (size_t i = 0; i < d->name_count; i++) {
            const char *key = sfti_arena_join(&d->work, d->names[i], end);
            if (!key) return sfti_fail_memory(d->err, d->names[i].len + end.len);
            keys[k * d->name_count + i] = (sft_span){ key, d->names[i].len + end.len };
        }
    }
    const uint32_t *order = sfti_arena_sorted(&d->work, (size_t)count, key_order, keys);
    if (!order) return sfti_fail_memory(d->err, count * sizeof *order);
    d->key_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!i || !sft_span_equal(keys[order[i]], keys[order[i - 1]])) {
            d->found[d->key_count] = 0;
            d->keys[d->key_count++] = keys[order[i]];
        }
        d->which[order[i]] = d->key_count - 1;
        if (order[i] % d->name_count < d->how.key_count)
            d->found[d->key_count - 1] = DELETE_WANTED;
    }
    return SFT_OK;
}

/* Whether a key is among those, and its number. */
static bool delete_has(const deletion *d, sft_span key, size_t *at) {
    size_t low = 0, high = d->key_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = sfti_bytes_compare(d->keys[middle], key);
        *at = middle;
        if (order == 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

/* Whether all columns of a row have been found. */
static bool delete_whole(const deletion *d, size_t name, uint8_t how) {
    bool whole = d->now.column_count > 0;
    for (size_t k = 0; whole && k < d->now.column_count; k++)
        whole = d->found[d->which[k * d->name_count + name]] & how;
    return whole;
}

/* Each name must be that of a row that can be seen, whose tensors are those of no other row. */
static sft_code delete_all_found(const deletion *d) {
    const sfti_ds_manifest *m = &d->now;
    for (size_t i = 0; i < d->how.key_count; i++) {
        if (delete_whole(d, i, DELETE_SEEN)) continue;
        sfti_fail(d->err, SFT_TENSOR_NOT_FOUND, "expected names of rows, found \"%.*s\", which "
                  "none has", SFTI_CLIP(d->how.keys[i], 100));
        sfti_hint(d->err, SFT_HINT_NONE); /* ls lists names of tensors */
        return SFT_TENSOR_NOT_FOUND;
    }
    for (size_t i = d->how.key_count; i < d->name_count; i++)
        if (delete_whole(d, i, DELETE_THERE))
            return sfti_ds_keys_apart(m->columns, m->column_count, m->separator, d->err);
    return SFT_OK;
}

/* Step 2 for names, which are looked up in the headers of all shards. */
static sft_code delete_keys(deletion *d) {
    const sfti_ds_manifest *m = &d->now;
    const size_t n = m->shard_count;
    sfti_ds_merge *merge = NULL;
    const sfti_ds_row *row = NULL;
    sft_code code = delete_list(d, &d->work, m);
    if (!code) code = delete_names(d);
    if (code) return code;
    const uint32_t *order = sfti_arena_sorted(&d->work, n, sfti_ds_by_sample, m->shards);
    sfti_ds_source *sources = sfti_arena_array(&d->work, n, sizeof *sources);
    if (!order || !sources) return sfti_fail_memory(d->err, n * sizeof *sources);
    for (size_t i = 0; i < n; i++) {
        const char *name = m->shards[order[i]].facts.name;
        sources[i] = (sfti_ds_source){ name, name, sfti_ds_mask_find(&m->masks, name) };
    }
    code = sfti_ds_merge_open(d->storage, sources, n, &d->open, &d->alloc, d->job, &merge, d->err);
    if (!code) code = sfti_ds_merge_next(merge, &row, d->err);
    while (!code && row) {
        size_t at;
        if (delete_has(d, row->key, &at)) {
            const bool seen = !row->shadowed && !row->deleted && row->winner == row->source;
            d->found[at] |= seen ? DELETE_SEEN | DELETE_THERE : DELETE_THERE;
            if (seen && d->found[at] & DELETE_WANTED)
                code = delete_mark(d, &d->work, &d->shards[order[row->source]], row->number);
        }
        if (!code) code = sfti_ds_merge_next(merge, &row, d->err);
    }
    sfti_ds_merge_close(merge);
    return code ? code : delete_all_found(d);
}

/* ── The next manifest ── */

static sft_code delete_changed(const deletion *d, const char *name) {
    return sfti_fail(d->err, SFT_DATASET_CHANGED,
                     "%s: expected the shards of version %llu, whose rows are to be deleted, found "
                     "version %llu, which replaced some", name,
                     (unsigned long long)sfti_ds_manifest_of(d->dataset)->version,
                     (unsigned long long)d->now.version);
}

/* The masks in force, with those rows. */
static sft_code delete_join(deletion *d) {
    const sfti_ds_manifest *m = &d->now;
    const size_t n = m->shard_count;
    sfti_ds_mask *all = sfti_arena_array(&d->work, n, sizeof *all);
    size_t count = 0, at = 0;
    if (!all) return sfti_fail_memory(d->err, n * sizeof *all);
    d->deleted = 0;
    for (size_t i = 0; i < n; i++) { /* both by name */
        const sft_dataset_shard *s = &m->shards[i].facts;
        const sfti_ds_mask *mask = sfti_ds_mask_find(&m->masks, s->name);
        for (; at < d->count && strcmp(d->shards[at].name, s->name) < 0; at++)
            if (d->shards[at].set) return delete_changed(d, d->shards[at].name);
        const bool known = at < d->count && strcmp(d->shards[at].name, s->name) == 0;
        const delete_shard *more = known && d->shards[at].set ? &d->shards[at] : NULL;
        at += known;
        if (!more && !mask) continue;
        if (!more) {
            all[count++] = *mask;
            continue;
        }
        const uint64_t bits = m->mode == SFT_DATASET_KV ? s->tensors : s->samples;
        if (bits != more->bits || (s->sha256 && more->sha256 && strcmp(s->sha256, more->sha256)))
            return delete_changed(d, s->name);
        const uint64_t bytes = sfti_ds_mask_bytes(bits);
        uint8_t *joined = sfti_arena_take(&d->work, (size_t)bytes);
        uint64_t set = 0;
        if (!joined) return sfti_fail_memory(d->err, (size_t)bytes);
        for (uint64_t k = 0; k < bytes; k++) {
            joined[k] = (uint8_t)(more->at[k] | (mask ? mask->at[k] : 0));
            for (unsigned byte = joined[k]; byte; byte &= byte - 1) set++;
        }
        d->deleted += set - (mask ? mask->deleted : 0);
        all[count++] = (sfti_ds_mask){ s->name, bits, set, joined };
    }
    for (; at < d->count; at++)
        if (d->shards[at].set) return delete_changed(d, d->shards[at].name);
    return sfti_ds_masks_make(all, count, d->uuid, &d->alloc, &d->masks, &d->next.masks, d->err);
}

static sft_code delete_manifest(deletion *d) {
    sfti_ds_manifest *m = &d->next;
    *m = d->now;
    sft_code code = delete_join(d);
    if (code) return code;
    /* The manifest lists names that can be seen. */
    size_t entries = 0;
    for (size_t i = 0; d->key_count && i < m->entry_count; i++) {
        size_t at;
        if (!delete_has(d, m->entries[i].key, &at) || !(d->found[at] & DELETE_WANTED))
            m->entries[entries++] = m->entries[i];
    }
    if (d->key_count) m->entry_count = entries;
    sfti_ds_manifest_total(m);
    if (m->index.data)
        memmove(m->index_commit, sfti_ds_manifest_index(&d->now), sizeof m->index_commit);
    if (!sfti_add(m->version, 1, &m->version)) return sfti_ds_overflow("a version", d->err);
    *m->row_order = '\0';
    m->numbered = m->numbered || d->swap.guard == SFTI_GUARD_NUMBER;
    sfti_ds_swap_begin(&d->swap, &d->now, true, d->uuid, m);
    d->text.len = 0;
    return sfti_ds_manifest_write(m, &d->text, d->err);
}

/* ── Publishing ── */

/* Step 5. */
static void delete_after(void *ctx) {
    const deletion *d = ctx;
    sfti_ds_removal r = { .storage = d->storage, .warn = d->how.warn,
                          .warn_ctx = d->how.warn_ctx };
    if (!*d->next.history) sfti_ds_removal_addressed(&r, &d->now, &d->next);
    sfti_ds_removal_end(&r, d->folder);
}

static sft_code delete_publish(deletion *d) {
    const sfti_ds_steps steps = { d, NULL, delete_after, d->how.warn, d->how.warn_ctx };
    sfti_ds_outcome outcome = SFTI_SWAP_FAILED;
    sfti_ds_swap *w = &d->swap;
    sft_error ignored;
    w->text = (sft_span){ d->text.data, d->text.len };
    w->folder = d->folder;
    sft_code code = sfti_ds_addressed_put(d->storage, SFTI_MASKS_FILE, d->next.masks.sha256,
                                          &d->masks, d->err);
    if (!code) code = sfti_ds_settle(d->storage, d->err);
    if (!code) code = sfti_ds_swap_run(w, &steps, &outcome, d->err);
    if (outcome == SFTI_SWAP_FAILED)
        sfti_ds_addressed_remove(d->storage, SFTI_MASKS_FILE, d->next.masks.sha256, &d->masks);
    if (outcome == SFTI_SWAP_FAILED && *d->folder)
        (void)sfti_call(d->storage, remove, d->folder, true, &ignored);
    return code;
}

/* ── All of it ── */

static sft_code delete_check(const deletion *d, const sfti_ds_manifest *m) {
    sft_code code = sfti_ds_manifest_ours(m, d->err);
    if (code) return code;
    const bool kv = m->mode == SFT_DATASET_KV;
    if (kv && d->how.row_count)
        return sfti_misuse(d->err, "expected names of rows for a dataset in KV mode, found "
                           "numbers");
    if (!kv && d->how.key_count)
        return sfti_misuse(d->err, "expected numbers of rows for a dataset in batch mode, found "
                           "names");
    return SFT_OK;
}

static sft_code delete_once(deletion *d) {
    const bool writes = !d->how.dry_run;
    sft_code code = writes ? sfti_ds_guard_take(&d->swap, DELETE_WAIT_MS, d->err) : SFT_OK;
    sfti_arena_free(&d->work);
    d->work = (sfti_arena){ .alloc = d->alloc };
    memset(&d->now, 0, sizeof d->now);
    if (!code) code = sfti_ds_manifest_read_all(d->storage, &d->work, &d->now, d->err);
    if (!code) code = delete_check(d, &d->now);
    if (!code && writes) code = sfti_ds_guard_settle(&d->swap, &d->now, d->err);
    if (!code && d->how.key_count && d->how.version && d->how.version != d->now.version)
        code = delete_changed(d, "names");
    if (!code && d->how.key_count) code = delete_keys(d);
    /* masks contain the UUID; where their bytes are only counted, one of the same length does */
    if (!code && writes) code = sfti_ds_uuid(d->uuid, d->err);
    else if (!code) memcpy(d->uuid, "00000000-0000-0000-0000-000000000000", sizeof d->uuid);
    *d->folder = '\0';
    if (!code && sfti_can(d->storage, move)) sfti_ds_job_folder(d->uuid, d->folder);
    if (!code) code = delete_manifest(d);
    if (!code && d->deleted && writes) code = delete_publish(d);
    sfti_ds_guard_drop(&d->swap);
    return code;
}

static sft_code delete_run(deletion *d) {
    sft_code code = sfti_ds_guard_check(d->storage, false, d->err);
    if (!code)
        code = sft_dataset_open_version(d->storage, d->how.version, 0, &d->alloc, NULL, NULL,
                                        &d->dataset, d->err);
    if (!code) code = delete_check(d, sfti_ds_manifest_of(d->dataset));
    if (!code && !d->how.key_count) code = delete_rows(d);
    sft_error *err = d->err;
    for (unsigned i = 0; !code; i++) {
        sft_error what = SFT_ERROR_INIT;
        d->err = &what;
        code = delete_once(d);
        d->err = err;
        if (!code) return SFT_OK;
        if (!sfti_ds_swap_again(&d->swap, code, d->now.text, i))
            return sfti_fail_as(err, code, &what);
        code = SFT_OK;
    }
    return code;
}

static sft_code delete_result(const deletion *d, const char *path, sft_tree *tree,
                              sft_error *err) {
    sfti_json_writer w;
    const bool kv = d->now.mode == SFT_DATASET_KV;
    const uint64_t columns = kv && d->now.column_count ? d->now.column_count : 1;
    const bool publishes = d->deleted != 0;
    sfti_ds_result_begin(&w, tree, path, true, err);
    sfti_json_put_bool(&w, "dry_run", d->how.dry_run);
    sfti_json_put_uint(&w, "version", d->now.version + (publishes && !d->how.dry_run));
    sfti_json_put_uint(&w, "rows_before", d->now.total_valid);
    sfti_json_put_uint(&w, "deleted", d->deleted / columns);
    sfti_json_put_uint(&w, "rows_after", publishes ? d->next.total_valid : d->now.total_valid);
    sfti_json_put_uint(&w, "shards", d->next.masks.shards);
    sfti_json_put_uint(&w, "mask_bytes", d->next.masks.bytes);
    return sfti_result_end(&w);
}

static SFTI_OPTIONS_TAKE(delete_options_take, sft_delete_options, SFT_DELETE_OPTIONS_INIT, open)

sft_code sft_dataset_delete_tree(const sft_storage *storage, const sft_delete_options *options,
                                 const char *path, sft_tree *tree, const sft_job *job,
                                 sft_error *err) {
    sft_job own;
    deletion d = { .storage = storage, .job = &own, .alloc = sfti_allocator(NULL), .err = err };
    d.plan.alloc = d.work.alloc = d.masks.alloc = d.text.alloc = d.alloc;
    d.swap = (sfti_ds_swap){ .storage = storage, .alloc = d.alloc };
    sft_code code = sfti_ds_storage_check(storage, err);
    if (!code) code = sfti_take_job(job, &own, err);
    if (!code) code = delete_options_take(options, &d.how, err);
    if (!code) code = sfti_take_open(d.how.open, &d.open, err);
    if (!code && d.how.key_count && d.how.row_count)
        code = sfti_misuse(err, "expected names of rows or numbers, found both");
    if (!code) code = delete_run(&d);
    if (!code) code = delete_result(&d, path, tree, err);
    sft_dataset_close(d.dataset);
    sft_buffer_free(&d.masks);
    sft_buffer_free(&d.text);
    sfti_arena_free(&d.work);
    sfti_arena_free(&d.plan);
    return code;
}

sft_code sft_dataset_delete_json(const sft_storage *storage, const sft_delete_options *options,
                                 const char *path, sft_sink *sink, const sft_job *job,
                                 sft_error *err) {
    sft_tree *tree = NULL;
    sft_code code = sft_tree_new(NULL, &tree, err);
    if (!code) code = sft_dataset_delete_tree(storage, options, path, tree, job, err);
    return sfti_ds_result_render(tree, code, sink, err);
}
