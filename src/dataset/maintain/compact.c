/* Compaction as a commit. Tests: test_dataset_compact.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "base/order.h"
#include "dataset/commit/addressed.h"
#include "dataset/maintain/compact.h"
#include "dataset/maintain/results.h"

#include <string.h>

#define COMPACT_WAIT_MS 60000

/* A compaction is a commit, with the state that a crash leaves:
 *
 * 1. Plan which groups of neighbouring shards become one. Nothing is written.
 * 2. Write the new shards into the folder "_job-<uuid>" (where names cannot be moved, under their
 *    final names). From here on a crash leaves files that no manifest names: gc removes them.
 * 3. Take the guard, move the new shards next to the old ones, and new segments of the
 *    manifest, too.
 * 4. Replace the manifest, if it is still the one that was read (commit/swap.c): the commit point.
 *    Readers see the old shards before it, the new ones after it.
 * 5. Remove the old shards and segments, unless they are kept as a version, the old index and the
 *    folder. A crash leaves some of them
 *    to gc; what cannot be removed is only a warning. */

/* ── The new manifest ── */

static sft_code compact_shards(compaction *c) {
    size_t n = sft_dataset_shard_count(c->dataset), group = 0;
    bool batch = sft_dataset_get_mode(c->dataset) == SFT_DATASET_BATCH;
    sft_code code;
    c->shards = sfti_arena_array(&c->arena, c->after, sizeof *c->shards);
    if (!c->shards) return sfti_fail_memory(c->err, (size_t)c->after * sizeof *c->shards);
    for (size_t i = 0; i < n;) {
        if (group < c->group_count && c->groups[group].first == i) {
            const compact_group *g = &c->groups[group];
            code = batch ? sfti_compact_batch_write(c, g) : sfti_compact_kv_write(c, g);
            if (code) return code;
            i = c->groups[group++].end;
            continue;
        }
        c->shards[c->count].known = true;
        c->shards[c->count++].facts = *sft_dataset_shard_at(c->dataset, i++);
    }
    return SFT_OK;
}

/* Whether the next manifest has segments. */
static bool compact_segmented(const compaction *c) {
    if (c->options.form == SFT_FORM_SAME) return sfti_ds_manifest_of(c->dataset)->segmented;
    return c->options.form == SFT_FORM_SEGMENTS;
}

/* The masks of shards that are not rewritten. */
static sft_code compact_masks(compaction *c) {
    const sfti_ds_masks *old = &sfti_ds_manifest_of(c->dataset)->masks;
    sfti_ds_mask *all = sfti_arena_array(&c->arena, old->shards, sizeof *all);
    size_t count = 0;
    if (!all) return sfti_fail_memory(c->err, (size_t)old->shards * sizeof *all);
    for (size_t i = 0; i < c->count; i++) {
        const sfti_ds_mask *mask = sfti_ds_mask_find(old, c->shards[i].facts.name);
        if (mask) all[count++] = *mask;
    }
    if (count == old->shards) return SFT_OK; /* the same file */
    c->masks.alloc = c->alloc;
    return sfti_ds_masks_make(all, count, c->uuid, &c->alloc, &c->masks, &c->next.masks, c->err);
}

/* The places of columns of shards that are not rewritten. */
static sft_code compact_places(compaction *c) {
    const sfti_ds_places *old = &sfti_ds_manifest_of(c->dataset)->places;
    sfti_ds_place *all = sfti_arena_array(&c->arena, old->count, sizeof *all);
    size_t count = 0;
    if (!all) return sfti_fail_memory(c->err, (size_t)old->count * sizeof *all);
    for (size_t i = 0; i < c->count; i++) {
        size_t some;
        const sfti_ds_place *of = sfti_ds_places_of(old, c->shards[i].facts.name, &some);
        if (some) memcpy(&all[count], of, some * sizeof *of);
        count += some;
    }
    if (count == old->count) return SFT_OK; /* the same file */
    c->places.alloc = c->alloc;
    return sfti_ds_places_make(all, count, c->uuid, &c->alloc, &c->places, &c->next.places,
                               c->err);
}

static sft_code compact_manifest(compaction *c) {
    sfti_ds_manifest *m = &c->next;
    sft_code code = SFT_OK;
    *m = *sfti_ds_manifest_of(c->dataset);
    m->sums = (sfti_ds_sums){ .next_file = m->sums.next_file };
    for (size_t i = 0; i < c->count; i++) {
        sft_dataset_shard *s = &c->shards[i].facts;
        s->first_sample = m->sums.rows;
        s->shadowed = 0;
        if (!sfti_ds_sums_add(&m->sums, s))
            return sfti_fail(c->err, SFT_SIZE_OVERFLOW,
                             "expected samples below 2^63 and totals within 64 bits, found more");
    }
    code = compact_masks(c);
    if (!code) code = compact_places(c);
    if (code) return code;
    sfti_ds_manifest_total(m);
    if (m->mode == SFT_DATASET_BATCH) code = sfti_compact_batch_schema(c);
    m->segmented = compact_segmented(c);
    if (!code && m->segmented) { /* as few segments as hold all shards */
        c->segments =
            (sfti_ds_segments){ .alloc = c->alloc, .commit = c->uuid, .attempt = c->uuid };
        code = sfti_ds_segments_make(&c->segments, c->shards, c->count, &c->arena, c->err);
        m->segments = c->segments.segment;
        m->segment_count = c->segments.count;
        if (m->mode == SFT_DATASET_KV) m->has_schema = false;
    } else if (!code) {
        code = sfti_ds_manifest_sort(m, c->shards, c->count, &c->arena, c->err);
    }
    if (code) return code;
    m->index = (sft_span){ NULL, 0 };
    *m->index_commit = '\0';
    if (c->options.batch_size) m->batch_size = c->options.batch_size;
    if (!*m->row_order) memcpy(m->row_order, m->commit, sizeof m->row_order);
    if (!sfti_add(m->version, 1, &m->version))
        return sfti_ds_overflow("a version", c->err);
    sfti_ds_swap_begin(&c->swap, sfti_ds_manifest_of(c->dataset), !c->options.drop_old, c->uuid, m);
    return SFT_OK;
}

/* ── Publishing ── */

/* Name of shard i if it is one of the new ones, else NULL. */
static const char *compact_new_name(const compaction *c, size_t i) {
    const char *name = c->shards[i].facts.name;
    return strstr(name, c->uuid) ? name : NULL;
}

static sft_code compact_move(compaction *c) {
    const sft_storage *s = c->storage;
    for (size_t i = 0; *c->folder && i < c->count; i++) {
        const char *name = compact_new_name(c, i);
        char from[SFTI_STORED_NAME];
        if (!name) continue;
        sfti_ds_stored_name(c->folder, name, from);
        sft_code code = sfti_call(s, move, from, name, c->err);
        if (code) return code;
    }
    sft_code code = sfti_ds_segments_put(&c->segments, s, c->folder, c->err);
    if (!code)
        code = sfti_ds_addressed_put(s, SFTI_MASKS_FILE, c->next.masks.sha256, &c->masks, c->err);
    if (!code)
        code = sfti_ds_addressed_put(s, SFTI_PLACES_FILE, c->next.places.sha256, &c->places,
                                     c->err);
    return code ? code : sfti_ds_settle(s, c->err);
}

/* After the commit point: nothing fails. */
static void compact_clean(void *ctx) {
    const compaction *c = ctx;
    sfti_ds_removal r = { .storage = c->storage, .warn = c->options.warn,
                          .warn_ctx = c->options.warn_ctx };
    const sfti_ds_manifest *old = sfti_ds_manifest_of(c->dataset);
    const bool own = !*c->next.history; /* else an older version may name them: gc's */
    for (size_t g = 0; own && g < c->group_count; g++)
        for (size_t i = c->groups[g].first; i < c->groups[g].end; i++) {
            const char *name = sft_dataset_shard_at(c->dataset, i)->name;
            sfti_ds_removal_columns(&r, old, name);
            sfti_ds_removal_of(&r, name);
        }
    for (size_t i = 0; own && i < old->segment_count; i++) {
        char name[SFTI_SEGMENT_FILE_NAME];
        sfti_ds_addressed_name(SFTI_SEGMENT_FILE, old->segments[i].sha256, name);
        sfti_ds_removal_of(&r, name);
    }
    if (own) sfti_ds_removal_addressed(&r, old, &c->next);
    if (sfti_ds_swap_is_last(&c->swap)) sfti_ds_removal_index(&r, SFTI_DATASET_INDEX);
    sfti_ds_removal_end(&r, c->folder);
}

static void compact_undo(const compaction *c) {
    sft_error ignored;
    for (size_t i = 0; i < c->count; i++) {
        const char *name = compact_new_name(c, i);
        if (name) (void)sfti_call(c->storage, remove, name, false, &ignored);
    }
    sfti_ds_segments_remove(&c->segments, c->storage);
    sfti_ds_addressed_remove(c->storage, SFTI_MASKS_FILE, c->next.masks.sha256, &c->masks);
    sfti_ds_addressed_remove(c->storage, SFTI_PLACES_FILE, c->next.places.sha256, &c->places);
    if (*c->folder) (void)sfti_call(c->storage, remove, c->folder, true, &ignored);
}

static sft_code compact_publish(compaction *c) {
    const sfti_ds_steps steps = { c, NULL, compact_clean, c->options.warn,
                                  c->options.warn_ctx };
    sfti_ds_outcome outcome = SFTI_SWAP_FAILED;
    sft_buffer text = { .alloc = c->alloc };
    sft_code code = sfti_ds_guard_take(&c->swap, COMPACT_WAIT_MS, c->err);
    if (!code)
        code = sfti_ds_guard_settle(&c->swap, sfti_ds_manifest_of(c->dataset), c->err);
    c->next.numbered = c->next.numbered || c->swap.guard == SFTI_GUARD_NUMBER;
    if (!code) code = sfti_ds_manifest_write(&c->next, &text, c->err);
    sfti_ds_swap *w = &c->swap;
    w->text = (sft_span){ text.data, text.len };
    w->folder = c->folder;
    for (size_t i = 0; i < c->count && !w->shard; i++) w->shard = compact_new_name(c, i);
    if (!code) code = compact_move(c);
    if (!code) code = sfti_ds_swap_run(&c->swap, &steps, &outcome, c->err);
    if (outcome == SFTI_SWAP_FAILED) compact_undo(c);
    sfti_ds_guard_drop(&c->swap);
    sft_buffer_free(&text);
    return code;
}

/* ── All of it ── */

static sft_code compact_begin(compaction *c) {
    sft_code code = sfti_ds_guard_check(c->storage, false, c->err);
    if (!code)
        code = sft_dataset_open(c->storage, &c->alloc, NULL, NULL, &c->dataset, c->err);
    if (code) return code;
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    code = sfti_ds_manifest_ours(m, c->err);
    if (code) return code;
    if (c->options.batch_size && m->mode != SFT_DATASET_BATCH)
        return sfti_misuse(c->err, "expected no batch_size for a dataset in KV mode, found %llu",
                           (unsigned long long)c->options.batch_size);
    return SFT_OK;
}

/* Segments of so many shards. */
static uint64_t compact_least(uint64_t shards) {
    return shards / SFTI_SEGMENT_SHARDS + (shards % SFTI_SEGMENT_SHARDS != 0);
}

static sft_code compact_plan(compaction *c) {
    sft_code code = sft_dataset_get_mode(c->dataset) == SFT_DATASET_KV
                        ? sfti_compact_kv_plan(c)
                        : sfti_compact_batch_plan(c);
    c->after = sft_dataset_shard_count(c->dataset);
    for (size_t i = 0; !code && i < c->group_count; i++) {
        const compact_group *g = &c->groups[i];
        c->rewritten += g->end - g->first;
        c->after += g->into - (g->end - g->first);
    }
    /* Segments alone are not merged at the expense of an index, which a new commit invalidates. */
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    bool merges = m->segmented && !m->index.data &&
                  m->segment_count > compact_least(m->shard_count);
    c->reform = !code && (compact_segmented(c) != m->segmented || merges);
    return code;
}

static sft_code compact_run(compaction *c) {
    sft_code code = compact_begin(c);
    if (!code) code = compact_plan(c);
    if (code || (c->group_count == 0 && !c->reform) || c->options.dry_run) return code;
    code = sfti_ds_uuid(c->uuid, c->err);
    if (sfti_can(c->storage, move)) sfti_ds_job_folder(c->uuid, c->folder);
    if (code) return code;
    code = compact_shards(c);
    if (!code) code = compact_manifest(c);
    if (!code) return compact_publish(c);
    compact_undo(c);
    return code;
}

static sft_code compact_result(const compaction *c, const char *path, sft_tree *tree,
                               sft_error *err) {
    sfti_json_writer w;
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    bool changed = c->group_count != 0 || c->reform, dry_run = c->options.dry_run;
    uint64_t segments = changed ? compact_least(c->after) : m->segment_count;
    uint64_t bytes = !changed ? m->total_bytes : dry_run ? UINT64_MAX : c->next.total_bytes;
    const uint64_t columns = m->mode == SFT_DATASET_KV && m->column_count ? m->column_count : 1;
    uint64_t deleted = 0, merged = 0;
    for (size_t i = 0; i < c->group_count; i++)
        for (size_t k = c->groups[i].first; k < c->groups[i].end; k++) {
            const sft_dataset_shard *s = sft_dataset_shard_at(c->dataset, k);
            size_t places;
            (void)sfti_ds_places_of(&m->places, s->name, &places);
            deleted += s->deleted;
            merged += places;
        }
    sfti_ds_result_begin(&w, tree, path, true, err);
    sfti_json_put_bool(&w, "dry_run", dry_run);
    sfti_json_put_uint(&w, "shards_before", m->shard_count);
    sfti_json_put_uint(&w, "shards_after", c->after);
    sfti_json_put_uint(&w, "rewritten", c->rewritten);
    sfti_json_put_uint(&w, "tensors_dropped", c->dropped);
    sfti_json_put_uint(&w, "deleted_dropped", deleted / columns);
    sfti_json_put_uint(&w, "columns_merged", merged);
    sfti_json_put_uint(&w, "bytes_before", m->total_bytes);
    sfti_json_put_known(&w, "bytes_after", bytes);
    sfti_json_put_bool(&w, "index_removed", changed && m->index.data);
    sfti_json_put_known(&w, "segments_before", m->segmented ? m->segment_count : UINT64_MAX);
    sfti_json_put_known(&w, "segments_after", compact_segmented(c) ? segments : UINT64_MAX);
    sfti_json_put_cstr(&w, "left", c->why);

    sfti_json_put_open(&w, "groups", '[');
    for (size_t i = 0; i < c->group_count; i++) {
        const compact_group *g = &c->groups[i];
        sfti_json_open(&w, '{');
        sfti_json_put_open(&w, "shards", '[');
        for (size_t k = g->first; k < g->end; k++)
            sfti_json_cstr(&w, sft_dataset_shard_at(c->dataset, k)->name);
        sfti_json_close(&w, ']');
        sfti_json_put_uint(&w, "into", g->into);
        sfti_json_close(&w, '}');
    }
    sfti_json_close(&w, ']');

    return sfti_result_end(&w);
}

static SFTI_OPTIONS_TAKE(compact_options_take, sft_compact_options, SFT_COMPACT_OPTIONS_INIT, open)

sft_code sft_dataset_compact_tree(const sft_storage *storage, const sft_compact_options *options,
                                  const char *path, sft_tree *tree, const sft_job *job,
                                  sft_error *err) {
    sft_job own;
    compaction c = { .storage = storage, .job = &own, .alloc = sfti_allocator(NULL), .err = err };
    c.arena.alloc = c.alloc;
    c.swap = (sfti_ds_swap){ .storage = storage, .alloc = c.alloc };
    sft_code code = sfti_ds_storage_check(storage, err);
    if (!code) code = sfti_take_job(job, &own, err);
    if (!code) code = compact_options_take(options, &c.options, err);
    if (!code) code = sfti_take_open(c.options.open, &c.open, err);
    if (!code) code = compact_run(&c);
    if (!code) code = compact_result(&c, path, tree, err);
    sft_dataset_close(c.dataset);
    sfti_ds_segments_free(&c.segments);
    sft_buffer_free(&c.masks);
    sft_buffer_free(&c.places);
    sfti_arena_free(&c.arena);
    return code;
}

sft_code sft_dataset_compact_json(const sft_storage *storage, const sft_compact_options *options,
                                  const char *path, sft_sink *sink, const sft_job *job,
                                  sft_error *err) {
    sft_tree *tree = NULL;
    sft_code code = sft_tree_new(NULL, &tree, err);
    if (!code) code = sft_dataset_compact_tree(storage, options, path, tree, job, err);
    return sfti_ds_result_render(tree, code, sink, err);
}
