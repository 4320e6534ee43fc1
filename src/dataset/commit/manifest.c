/* The manifest of a commit: totals, schema, segments. Tests: test_dataset_manifest.c. */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/commit/commit.h"
#include "os/os.h"

#include <string.h>

/* ── Duplicates, keys, totals ── */

typedef struct commit_counter {
    sft_commit *c;
    sfti_ds_merge *merge;
    size_t base_count; /* shards of the existing dataset, which come first */
    size_t keys, cap;
    sft_error *err;
} commit_counter;

static sft_code count_duplicate(commit_counter *n, const sfti_ds_row *first) {
    const sfti_ds_row *row = first;
    while (row && row->shadowed) {
        sft_code code = sfti_ds_merge_next(n->merge, &row, n->err);
        if (code) return code;
    }
    const char *where = row ? n->c->sources[row->source].name : "another shard";
    return sfti_fail_tensor(n->err, SFT_DATASET_DUPLICATE, SFT_NO_OFFSET, first->key,
                            "expected every key once, found %.*s in %s and in %s",
                            SFTI_CLIP(first->key, 100),
                            n->c->sources[first->source].name, where);
}

/* A key of the schema. With segments, what is rewritten is kept short. */
static sft_code count_key(commit_counter *n, const sfti_ds_row *row) {
    sfti_arena *arena = &n->c->work;
    sfti_ds_manifest *next = &n->c->next;
    if (next->segmented || n->keys++ >= SFTI_SCHEMA_MOST) return SFT_OK;
    sfti_ds_entry *all =
        sfti_arena_grow(arena, next->entries, next->entry_count, 1, &n->cap, sizeof *all);
    if (!all) return sfti_fail_memory(n->err, sizeof *all);
    next->entries = all;
    char *key = sfti_arena_copy(arena, row->key.data, row->key.len);
    uint64_t *shape = sfti_arena_array(arena, row->rank, sizeof *shape);
    if (!key || !shape) return sfti_fail_memory(n->err, row->key.len);
    if (row->rank) memcpy(shape, row->shape, row->rank * sizeof *shape);
    all[next->entry_count++] =
        (sfti_ds_entry){ .key = { key, row->key.len },
                         .dtype = sft_span_cstr(sft_dtype_describe(row->dtype)->name),
                         .rank = row->rank, .shape = shape };
    return SFT_OK;
}

sft_code sfti_commit_count(sft_commit *c, const sft_job *job, sft_error *err) {
    commit_counter n = { c, NULL, 0, 0, 0, err };
    while (n.base_count < c->shard_count && !c->shards[n.base_count].receipt) n.base_count++;
    sft_code code = sfti_ds_merge_open(c->storage, c->sources, c->shard_count, NULL, &c->alloc,
                                       job, &n.merge, err);
    const sfti_ds_row *row = NULL;
    if (!code) code = sfti_ds_merge_next(n.merge, &row, err);
    while (!code && row) {
        bool keyed = c->options->mode == SFT_DATASET_KV;
        for (uint32_t i = 0; i < row->rank; i++)
            if (row->shape[i] > INT32_MAX) c->wide = true;
        if (keyed && row->deleted) {
            c->shadowing = true; /* the index marks it, too */
        } else if (keyed && row->shadowed) {
            /* Duplicates that an earlier commit accepted are not this one's, and the name of a
             * deleted row may come again. */
            if (!c->options->last_win && row->winner >= n.base_count &&
                sfti_ds_merge_after(n.merge, row) >= n.base_count)
                code = count_duplicate(&n, row);
            else c->shards[row->source].shard.facts.shadowed++;
            c->shadowing = true;
        } else if (keyed) {
            code = count_key(&n, row);
        }
        if (!code) code = sfti_ds_merge_next(n.merge, &row, err);
    }
    c->indexed = c->indexed || c->shadowing;
    if (!code && c->indexed) c->merge = n.merge;
    else sfti_ds_merge_close(n.merge);
    c->next.has_schema = n.keys <= SFTI_SCHEMA_MOST && !c->next.segmented;
    if (!c->next.has_schema) c->next.entry_count = 0;
    return code;
}

/* ── Segments ── */

/* Segments of the base from c->keep on are written again: read their shards, unless c->shards has
 * them. */
static sft_code segments_read(sft_commit *c, sfti_ds_shard *list, size_t *count, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = c->keep; c->apart && !code && i < c->base.segment_count; i++) {
        const sfti_ds_segment *segment = &c->base.segments[i];
        sfti_arena array = { .alloc = c->alloc };
        sfti_ds_shard *shards = NULL;
        code = sfti_ds_segment_read(c->storage, segment, &c->work, &array, &shards, err);
        for (size_t k = 0; !code && k < segment->shards; k++) list[(*count)++] = shards[k];
        sfti_arena_free(&array);
    }
    return code;
}

/* The segments of the base that stay, and new ones for all other shards. */
static sft_code next_segments(sft_commit *c, sft_error *err) {
    uint64_t most = 0;
    size_t count = 0, stays = c->how.mode == SFT_COMMIT_APPEND ? c->base.segment_count : 0;
    for (size_t i = 0; i < c->shard_count; i++) most += c->shards[i].receipt != NULL;
    c->keep = stays;
    for (size_t i = 0; i < c->shard_count && !c->shards[i].receipt; i++) {
        const commit_shard *s = &c->shards[i];
        if (s->shard.facts.shadowed != s->shadowed_before && s->shard.segment < c->keep)
            c->keep = s->shard.segment; /* what the segment says of it is no longer so */
    }
    for (size_t i = c->keep; i < stays; i++) sfti_total_add(&most, c->base.segments[i].shards);
    c->keep = sfti_ds_segments_keep(c->base.segments, c->keep, most);
    for (size_t i = 0; i < c->keep; i++) count += (size_t)c->base.segments[i].shards;
    most = c->next.sums.shards - count;
    sfti_ds_shard *list = sfti_arena_array(&c->work, most, sizeof *list);
    if (!list) return sfti_fail_memory(err, most * sizeof *list);
    count = 0;
    sft_code code = segments_read(c, list, &count, err);
    for (size_t i = 0; !code && i < c->shard_count; i++) {
        const commit_shard *s = &c->shards[i];
        if (s->receipt || !c->base.segmented || s->shard.segment >= c->keep)
            list[count++] = s->shard;
    }
    if (!code) code = sfti_ds_uuid(c->attempt, err);
    if (!code) code = sfti_ds_segments_make(&c->segments, list, count, &c->work, err);
    size_t all = c->keep + c->segments.count;
    sfti_ds_segment *next = code ? NULL : sfti_arena_array(&c->work, all, sizeof *next);
    if (!next) return code ? code : sfti_fail_memory(err, all * sizeof *next);
    for (size_t i = 0; i < all; i++)
        next[i] = i < c->keep ? c->base.segments[i] : c->segments.segment[i - c->keep];
    c->next.segments = next;
    c->next.segment_count = all;
    c->next.numbered = c->base.numbered || c->swap.guard == SFTI_GUARD_NUMBER;
    return SFT_OK;
}

/* ── The manifest ── */

/* The base's batches, with this commit's. */
static sft_code next_batches(sft_commit *c, sft_error *err) {
    const sfti_ds_manifest *base = &c->base;
    size_t n = base->batch_count;
    sfti_ds_batch *all = sfti_arena_array(&c->work, n + 1, sizeof *all);
    if (!all) return sfti_fail_memory(err, (n + 1) * sizeof *all);
    if (n) memcpy(all, base->batches, n * sizeof *all);
    size_t at = 0;
    while (at < n && !sft_span_equal(all[at].stream, c->options->stream)) at++;
    all[at] = (sfti_ds_batch){ c->options->stream, c->options->batch };
    c->next.batches = all;
    c->next.batch_count = at == n ? n + 1 : n;
    return SFT_OK;
}

sft_code sfti_commit_render(sft_commit *c, sft_error *err) {
    sfti_ds_manifest *m = &c->next;
    bool fits = sfti_add(c->base.version, 1, &m->version);
    m->dropped = c->how.mode == SFT_COMMIT_APPEND ? c->base.dropped : 0;
    if (c->apart) m->sums = c->base.sums;
    for (size_t i = 0; fits && i < c->shard_count; i++) {
        const sfti_ds_receipt *receipt = c->shards[i].receipt;
        fits = sfti_ds_sums_add(&m->sums, &c->shards[i].shard.facts) &&
               sfti_add(m->dropped, receipt ? receipt->dropped : 0, &m->dropped);
    }
    for (const commit_drop *d = c->drops; fits && d; d = d->next)
        fits = sfti_add(m->dropped, d->rows, &m->dropped);
    if (!fits)
        return sfti_fail(err, SFT_SIZE_OVERFLOW,
                         "expected samples below 2^63 and totals within 64 bits, found more");
    if (c->how.mode == SFT_COMMIT_APPEND) m->masks = c->base.masks;
    m->mode = c->options->mode;
    sfti_ds_manifest_total(m);
    if (c->options->mode == SFT_DATASET_BATCH) { /* the schema: the shape of a full batch */
        m->has_schema = m->column_count <= SFTI_SCHEMA_MOST;
        m->entries = sfti_arena_array(&c->work, m->column_count, sizeof *m->entries);
        if (!m->entries) return sfti_fail_memory(err, m->column_count * sizeof *m->entries);
        for (size_t i = 0; m->has_schema && m->sums.shards && i < m->column_count; i++) {
            const sfti_ds_column *column = &m->columns[i];
            if (!column->has_dtype || !column->has_shape) continue;
            uint64_t *shape =
                sfti_arena_array(&c->work, (uint64_t)column->rank + 1, sizeof *shape);
            if (!shape) return sfti_fail_memory(err, sizeof *shape);
            shape[0] = m->sums.largest;
            if (column->rank) memcpy(shape + 1, column->shape, column->rank * sizeof *shape);
            sft_span dtype = sft_span_cstr(sft_dtype_describe(column->dtype)->name);
            m->entries[m->entry_count++] =
                (sfti_ds_entry){ .key = column->name, .dtype = dtype,
                                 .rank = column->rank + 1, .shape = shape };
        }
    }
    sft_code code = SFT_OK;
    if (c->next.segmented) {
        code = next_segments(c, err);
    } else {
        size_t n = c->shard_count;
        sfti_ds_shard *shards = sfti_arena_array(&c->work, n, sizeof *shards);
        if (!shards) return sfti_fail_memory(err, n * sizeof *shards);
        for (size_t i = 0; i < n; i++) shards[i] = c->shards[i].shard;
        code = sfti_ds_manifest_sort(&c->next, shards, n, &c->work, err);
    }
    if (code) return code;

    static const char *const tails[] = { "write", "drop", "pad" };
    const sft_dataset_options *o = c->options;
    m->ours = true;
    /* The time until which gc keeps what this commit or an earlier one replaced. */
    uint64_t now = sfti_os_time_s(), until = c->base.keep_until > now ? c->base.keep_until : 0;
    uint64_t keep = c->how.mode == SFT_COMMIT_OVERWRITE && c->has_base ? o->keep_old_s : 0;
    if (keep && !sfti_add(now, keep, &keep)) keep = UINT64_MAX;
    sfti_ds_swap_begin(&c->swap, &c->base, o->keep_versions && c->has_base, c->job.uuid, m);
    m->keep_until = keep > until ? keep : until;
    if (o->mode == SFT_DATASET_BATCH) {
        m->batch_size = o->batch_size;
        m->tail = sft_span_cstr(tails[o->tail]);
    } else {
        m->name_col = o->name_col;
        m->separator = o->separator;
    }
    if (c->indexed) m->index = sft_span_cstr(SFTI_DATASET_INDEX);
    m->batches = c->base.batches;
    m->batch_count = c->base.batch_count;
    if (o->stream.data) code = next_batches(c, err);
    if (code) return code;

    return sfti_ds_manifest_write(m, &c->text, err);
}
