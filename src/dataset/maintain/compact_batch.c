/* Batches of a group of shards are divided anew. Tests: test_dataset_compact.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/order.h"
#include "dataset/maintain/compact.h"
#include "dataset/read/places.h"

#include <stdio.h>
#include <string.h>

#define WHY_LEN 200

/* ── What is to be done ── */

static sft_code rebatch_why(compaction *c, const char *what, sft_span column, const char *rest) {
    char *text = sfti_arena_take(&c->arena, WHY_LEN);
    if (!text) return sfti_fail_memory(c->err, WHY_LEN);
    (void)snprintf(text, WHY_LEN, "%s%.*s%s", what, SFTI_CLIP(column, 80), rest);
    c->why = text;
    return SFT_OK;
}

/* *whole: what is in lists can be divided anywhere. */
static sft_code rebatch_elements(compaction *c, const sfti_ds_column *column, bool *whole) {
    sfti_arena work = { .alloc = c->alloc };
    sfti_ds_inner *all = NULL;
    size_t count = 0;
    *whole = column->encoding != SFTI_ENCODING_LIST || !column->has_dtype ||
             sft_dtype_describe(column->dtype)->bits % 8 == 0;
    sft_code code = column->encoding != SFTI_ENCODING_NESTED ? SFT_OK
                    : sfti_ds_type_parse(column->name, column->type, &work, &all, &count, c->err);
    for (size_t i = 0; !code && i < count; i++)
        if (all[i].form == SFTI_FORM_PLAIN && sft_dtype_describe(all[i].dtype)->bits % 8)
            *whole = false;
    sfti_arena_free(&work);
    return code;
}

/* Whether rows of different shards can be in one tensor; c->why if not. */
static sft_code rebatch_layout(compaction *c) {
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    const sft_span none = { "", 0 };
    if (m->mode != SFT_DATASET_BATCH || !c->batch || !m->column_count)
        return rebatch_why(c, "the manifest has no batch_size or columns", none, "");
    for (size_t i = 0; i < m->column_count; i++) {
        const sfti_ds_column *column = &m->columns[i];
        bool whole = true;
        sft_code code = rebatch_elements(c, column, &whole);
        if (code) return code;
        if (!whole)
            return rebatch_why(c, "elements of lists of the column ", column->name,
                               " are not whole bytes");
        if (column->encoding > SFTI_ENCODING_LIST) continue;
        if (!column->has_dtype || (!column->has_shape && !column->encoding))
            return rebatch_why(c, "dtype or shape of the column ", column->name,
                               " varies from batch to batch");
        if (column->encoding) continue;
        uint64_t batch[SFT_MAX_RANK] = { c->batch };
        bool fits = column->rank < SFT_MAX_RANK;
        if (fits) memcpy(batch + 1, column->shape, column->rank * sizeof *batch);
        if (sft_shape_size(column->dtype, column->shape, column->rank, NULL, NULL, NULL) ==
            SFT_SIZE_PARTIAL_BYTE)
            return rebatch_why(c, "a row of the column ", column->name,
                               " is not a whole number of bytes");
        if (!fits || sft_shape_size(column->dtype, batch, column->rank + 1, NULL, NULL, NULL))
            return rebatch_why(c, "a batch of the column ", column->name,
                               " has too many elements or dimensions");
    }
    return SFT_OK;
}

/* Rows of a shard that can be seen. */
static uint64_t rebatch_live(const compaction *c, size_t i) {
    const sft_dataset_shard *s = sft_dataset_shard_at(c->dataset, i);
    return s->valid_samples - s->deleted;
}

static void rebatch_group(compaction *c, compact_group g) {
    for (size_t k = g.first; k < g.end; k++) {
        g.rows += rebatch_live(c, k);
        g.held += sft_dataset_shard_at(c->dataset, k)->samples;
    }
    g.into = g.rows / c->batch + (g.rows % c->batch != 0);
    c->groups[c->group_count++] = g;
}

/* Small shards [i, end): each full batch of rows that they are short of saves a shard. The group is
 * the shortest that saves the most. */
static void rebatch_run(compaction *c, size_t i, size_t end) {
    uint64_t size = c->batch, lack = 0, fewer = 0;
    while (i < end && rebatch_live(c, i) == size) i++;
    compact_group g = { .first = i, .end = i };
    for (; i < end; i++) {
        uint64_t missing = size - rebatch_live(c, i);
        if (!sfti_add(lack, missing, &missing)) break;
        lack = missing;
        if (lack / size == fewer) continue;
        fewer = lack / size;
        g.end = i + 1;
    }
    if (fewer) rebatch_group(c, g);
}

/* All shards from the first one that is no batch of this size on, unless that is the last one. */
static void rebatch_all(compaction *c) {
    size_t n = sft_dataset_shard_count(c->dataset), first = 0;
    const sft_dataset_shard *s = NULL;
    for (; first < n; first++) {
        s = sft_dataset_shard_at(c->dataset, first);
        if (s->samples != c->batch || rebatch_live(c, first) != c->batch) break;
    }
    if (first == n || (first + 1 == n && s->samples <= c->batch)) return;
    rebatch_group(c, (compact_group){ .first = first, .end = n });
}

static int rebatch_order(const void *groups, uint32_t a, uint32_t b) {
    const compact_group *all = groups;
    return all[a].first < all[b].first ? -1 : all[a].first > all[b].first;
}

/* Shards with deleted rows, or columns elsewhere, that are in no group become groups of their
 * own. */
static sft_code rebatch_folded(compaction *c) {
    const sfti_ds_places *places = &sfti_ds_manifest_of(c->dataset)->places;
    size_t n = sft_dataset_shard_count(c->dataset), planned = c->group_count, group = 0;
    for (size_t i = 0; i < n; i++) {
        while (group < planned && c->groups[group].end <= i) group++;
        if (group < planned && c->groups[group].first <= i) continue;
        const sft_dataset_shard *s = sft_dataset_shard_at(c->dataset, i);
        size_t elsewhere;
        (void)sfti_ds_places_of(places, s->name, &elsewhere);
        if (!s->deleted && !elsewhere) continue;
        rebatch_group(c, (compact_group){ .first = i, .end = i + 1 });
        compact_group *g = &c->groups[c->group_count - 1];
        g->into = g->rows > 0; /* not divided: that is what batch_size is for */
    }
    if (c->group_count == planned) return SFT_OK;
    compact_group *sorted = sfti_arena_array(&c->arena, n, sizeof *sorted);
    const uint32_t *order =
        sfti_arena_sorted(&c->arena, c->group_count, rebatch_order, c->groups);
    if (!sorted || !order) return sfti_fail_memory(c->err, n * sizeof *sorted);
    for (size_t i = 0; i < c->group_count; i++) sorted[i] = c->groups[order[i]];
    c->groups = sorted;
    return SFT_OK;
}

sft_code sfti_compact_batch_plan(compaction *c) {
    size_t n = sft_dataset_shard_count(c->dataset);
    c->groups = sfti_arena_array(&c->arena, n, sizeof *c->groups);
    if (!c->groups) return sfti_fail_memory(c->err, n * sizeof *c->groups);
    c->batch = c->options.batch_size ? c->options.batch_size
                                     : sfti_ds_manifest_of(c->dataset)->batch_size;
    const sft_span none = { "", 0 };
    sft_code code = rebatch_layout(c);
    if (code || c->why) return code;
    if (c->options.batch_size) {
        rebatch_all(c);
        code = rebatch_folded(c);
        return code || c->group_count ? code
                                      : rebatch_why(c, "all batches have that size", none, "");
    }
    bool small = false;
    for (size_t i = 0, end; i < n; i = end + (end == i)) {
        for (end = i; end < n; end++, small = true) {
            const sft_dataset_shard *s = sft_dataset_shard_at(c->dataset, end);
            if (s->bytes >= c->options.target_bytes || s->samples > c->batch) break;
        }
        if (end > i) rebatch_run(c, i, end);
    }
    code = rebatch_folded(c);
    if (code || c->group_count) return code;
    if (!c->options.target_bytes) return rebatch_why(c, "no target size was given", none, "");
    return rebatch_why(c, small ? "neighbouring shards are full, or merging them saves none"
                              : "no shard is smaller than the target",
                       none, "");
}

/* ── The new shards ── */

/* A batch is padded only if the files that it replaces have as many rows, which
 * sfti_compact_rows_open has compared with their headers: a manifest alone cannot make a compaction
 * write more than twice what it reads. */
static sft_code rebatch_shards(compaction *c, const compact_group *g, sfti_compact_rows *rows) {
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    const sft_span none = { NULL, 0 };
    bool pad = sft_span_equal(m->tail, sft_span_cstr("pad")) && c->batch <= g->held;
    size_t next = g->first;
    sft_code code = SFT_OK;
    for (uint64_t first = 0, valid; !code && first < g->rows; first += valid) {
        sfti_arena work = { .alloc = c->alloc };
        uint64_t left = g->rows - first;
        /* A shard of its own may have more rows than a batch. */
        valid = left < c->batch || g->into == 1 ? left : c->batch;
        uint64_t samples = pad && valid < c->batch ? c->batch : valid;
        sfti_shard_sum sum;
        sft_part *parts = NULL;
        size_t count = 0;
        char *name = NULL, stored[SFTI_STORED_NAME], more[SFTI_DATASET_NAME];
        sft_dataset_shard fresh = { .name = more };
        /* If there are more than were: files of the next number. */
        sfti_ds_shard_name(m->sums.next_file, next, c->uuid, more);
        const sft_dataset_shard *like =
            next < g->end ? sft_dataset_shard_at(c->dataset, next) : &fresh;
        next++;
        code = sfti_compact_name(c, like, &name, stored);
        if (!code)
            code = sfti_compact_rows_take(rows, first, valid, samples, &work, &parts, &count);
        if (!code)
            code = sfti_compact_save(c, parts, count, "batch", samples, valid, none, stored, &sum);
        if (!code) code = sfti_compact_facts(c, name, count, samples, valid, &sum);
        sfti_arena_free(&work);
    }
    return code;
}

sft_code sfti_compact_batch_write(compaction *c, const compact_group *g) {
    sfti_arena arena = { .alloc = c->alloc };
    sfti_compact_rows *rows = NULL;
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    sft_code code = g->into ? sfti_compact_rows_open(c, g, m->columns, m->column_count, &arena,
                                                     &rows)
                            : SFT_OK;
    if (!code && g->into) code = rebatch_shards(c, g, rows);
    sfti_compact_rows_close(rows);
    sfti_arena_free(&arena);
    return code;
}

/* ── The schema ── */

sft_code sfti_compact_batch_schema(compaction *c) {
    sfti_ds_manifest *m = &c->next;
    uint64_t rows = 0;
    sfti_ds_entry *all = sfti_arena_array(&c->arena, m->entry_count, sizeof *all);
    if (!all) return sfti_fail_memory(c->err, m->entry_count * sizeof *all);
    for (size_t i = 0; i < c->count; i++)
        if (c->shards[i].facts.samples > rows) rows = c->shards[i].facts.samples;
    for (size_t i = 0; i < m->entry_count; i++) {
        all[i] = m->entries[i];
        if (!all[i].rank) continue;
        uint64_t *shape = sfti_arena_array(&c->arena, all[i].rank, sizeof *shape);
        if (!shape) return sfti_fail_memory(c->err, all[i].rank * sizeof *shape);
        memcpy(shape, all[i].shape, all[i].rank * sizeof *shape);
        shape[0] = rows;
        all[i].shape = shape;
    }
    m->entries = all;
    return SFT_OK;
}
