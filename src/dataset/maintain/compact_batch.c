/* Batches of a group of shards are divided anew. Tests: test_dataset_compact.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/files.h"
#include "bytes/source.h"
#include "dataset/maintain/compact.h"

#include <stdio.h>
#include <string.h>

#define BATCH_OPEN 64 /* shards open at the same time */
#define WHY_LEN 200

/* ── What is to be done ── */

static sft_code rebatch_why(compaction *c, const char *what, sft_span column, const char *rest) {
    char *text = sfti_arena_take(&c->arena, WHY_LEN);
    if (!text) return sfti_fail_memory(c->err, WHY_LEN);
    (void)snprintf(text, WHY_LEN, "%s%.*s%s", what, SFTI_CLIP(column, 80), rest);
    c->why = text;
    return SFT_OK;
}

/* Whether rows of different shards can be in one tensor; c->why if not. */
static sft_code rebatch_layout(compaction *c) {
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    const sft_span none = { "", 0 };
    if (!c->options.target_bytes && !c->options.batch_size)
        return rebatch_why(c, "no target size was given", none, "");
    if (m->mode != SFT_DATASET_BATCH || !c->batch || !m->column_count)
        return rebatch_why(c, "the manifest has no batch_size or columns", none, "");
    for (size_t i = 0; i < m->column_count; i++) {
        const sfti_ds_column *column = &m->columns[i];
        if (column->encoding)
            return rebatch_why(c, "rows of the column ", column->name, " vary in length");
        if (column->nullable)
            return rebatch_why(c, "the column ", column->name, " has nulls");
        if (!column->has_dtype || !column->has_shape)
            return rebatch_why(c, "dtype or shape of the column ", column->name,
                               " varies from batch to batch");
        uint64_t batch[SFT_MAX_RANK] = { c->batch };
        bool fits = column->rank < SFT_MAX_RANK;
        if (fits) memcpy(batch + 1, column->shape, column->rank * sizeof *batch);
        if (sft_shape_size(column->dtype, column->shape, column->rank, NULL, NULL, NULL))
            return rebatch_why(c, "a row of the column ", column->name,
                               " is not a whole number of bytes");
        if (!fits || sft_shape_size(column->dtype, batch, column->rank + 1, NULL, NULL, NULL))
            return rebatch_why(c, "a batch of the column ", column->name, " has too many elements");
    }
    return SFT_OK;
}

static void rebatch_group(compaction *c, compact_group g) {
    for (size_t k = g.first; k < g.end; k++) {
        g.rows += sft_dataset_shard_at(c->dataset, k)->valid_samples;
        g.held += sft_dataset_shard_at(c->dataset, k)->samples;
    }
    g.into = g.rows / c->batch + (g.rows % c->batch != 0);
    c->groups[c->group_count++] = g;
}

/* Small shards [i, end): each full batch of rows that they are short of saves a shard. The group is
 * the shortest that saves the most. */
static void rebatch_run(compaction *c, size_t i, size_t end) {
    uint64_t size = c->batch, lack = 0, fewer = 0;
    while (i < end && sft_dataset_shard_at(c->dataset, i)->valid_samples == size) i++;
    compact_group g = { .first = i, .end = i };
    for (; i < end; i++) {
        uint64_t missing = size - sft_dataset_shard_at(c->dataset, i)->valid_samples;
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
        if (s->samples != c->batch || s->valid_samples != c->batch) break;
    }
    if (first == n || (first + 1 == n && s->samples <= c->batch)) return;
    rebatch_group(c, (compact_group){ .first = first, .end = n });
}

sft_code sfti_compact_batch_plan(compaction *c) {
    size_t n = sft_dataset_shard_count(c->dataset);
    c->groups = sfti_arena_array(&c->arena, n, sizeof *c->groups);
    if (!c->groups) return sfti_fail_memory(c->err, n * sizeof *c->groups);
    c->batch = c->options.batch_size ? c->options.batch_size
                                     : sfti_ds_manifest_of(c->dataset)->batch_size;
    sft_code code = rebatch_layout(c);
    if (code || c->why) return code;
    if (c->options.batch_size) {
        rebatch_all(c);
        return c->group_count ? SFT_OK : rebatch_why(c, "all batches have that size",
                                                     (sft_span){ "", 0 }, "");
    }
    bool small = false;
    for (size_t i = 0, end; i < n; i = end + (end == i)) {
        for (end = i; end < n; end++, small = true) {
            const sft_dataset_shard *s = sft_dataset_shard_at(c->dataset, end);
            if (s->bytes >= c->options.target_bytes || s->samples > c->batch) break;
        }
        if (end > i) rebatch_run(c, i, end);
    }
    if (c->group_count) return SFT_OK;
    return rebatch_why(c, small ? "neighbouring shards are full, or merging them saves none"
                              : "no shard is smaller than the target",
                     (sft_span){ "", 0 }, "");
}

/* ── Rows of a group as one ── */

typedef struct rebatch_rows {
    compaction *c;
    const compact_group *g;
    const sfti_ds_column *columns;
    size_t column_count;
    uint64_t *starts;  /* rows before each shard; last: all rows */
    uint64_t *offsets; /* of the tensor of each shard and column */
    uint32_t mode;     /* common to the files of all shards; 0: not known */
    struct rebatch_file {
        bool open;
        size_t shard;
        sft_source source;
    } files[BATCH_OPEN];
} rebatch_rows;

typedef struct rebatch_column {
    rebatch_rows *rows;
    size_t k;
    uint64_t row_bytes;
} rebatch_column;

static void rebatch_close(rebatch_rows *b, size_t slot) {
    struct rebatch_file *f = &b->files[slot];
    if (f->open) sft_source_close(&f->source);
    f->open = false;
}

static sft_code rebatch_shard_wrong(const rebatch_rows *b, size_t i, sft_span column,
                                  sft_error *err) {
    return sfti_fail(err, SFT_DATASET_SHARD,
                     "%s: expected the column %.*s as in the manifest, found another",
                     sft_dataset_shard_at(b->c->dataset, i)->name, (int)column.len,
                     column.data ? column.data : "");
}

static sft_code rebatch_check(rebatch_rows *b, size_t n) {
    compaction *c = b->c;
    size_t i = b->g->first + n;
    sft_file *file = NULL;
    const sft_dataset_shard *s = sft_dataset_shard_at(c->dataset, i);
    sft_code code = sft_dataset_shard_open(c->dataset, i, &c->open, &file, c->err);
    if (code) return code;
    if (sft_file_tensor_count(file) != b->column_count)
        code = rebatch_shard_wrong(b, i, b->columns[0].name, c->err);
    for (size_t k = 0; k < b->column_count && !code; k++) {
        const sft_tensor *t = sft_file_find(file, b->columns[k].name);
        if (t && sfti_ds_column_holds(&b->columns[k], t) && t->shape[0] == s->samples)
            b->offsets[n * b->column_count + k] = t->offset;
        else
            code = rebatch_shard_wrong(b, i, b->columns[k].name, c->err);
    }
    b->starts[n + 1] = b->starts[n] + s->valid_samples;
    sft_source source = sft_file_source(file);
    sfti_mode_common(&b->mode, sft_source_mode(&source));
    sft_close(file);
    return code;
}

static sft_code rebatch_open(rebatch_rows *b, sfti_arena *arena) {
    uint64_t n = b->g->end - b->g->first, all = 0;
    const sfti_ds_manifest *m = sfti_ds_manifest_of(b->c->dataset);
    b->columns = m->columns;
    b->column_count = m->column_count;
    b->starts = sfti_arena_array(arena, n + 1, sizeof *b->starts);
    b->offsets = sfti_mul(n, m->column_count, &all)
                     ? sfti_arena_array(arena, all, sizeof *b->offsets)
                     : NULL;
    if (!b->starts || !b->offsets) return sfti_fail_memory(b->c->err, n * sizeof *b->starts);
    b->starts[0] = 0;
    for (size_t i = 0; i < n; i++) {
        sft_code code = rebatch_check(b, i);
        if (code) return code;
    }
    return SFT_OK;
}

/* Each column reads the shards once, in order: one slot a shard suffices. */
static sft_code rebatch_file(rebatch_rows *b, size_t n, sft_source **out, sft_error *err) {
    size_t slot = n % BATCH_OPEN;
    struct rebatch_file *f = &b->files[slot];
    *out = &f->source;
    if (f->open && f->shard == n) return SFT_OK;
    rebatch_close(b, slot);
    const char *name = sft_dataset_shard_at(b->c->dataset, b->g->first + n)->name;
    sft_code code = sfti_call(b->c->storage, open, name, &f->source, err);
    f->open = !code;
    f->shard = n;
    return code;
}

/* As many bytes as one shard has; zeros past the last row. */
static sft_code rebatch_piece(const rebatch_column *col, uint64_t offset, char *into, size_t len,
                            size_t *got, sft_error *err) {
    rebatch_rows *b = col->rows;
    size_t shards = b->g->end - b->g->first;
    uint64_t row = offset / col->row_bytes;
    *got = len;
    if (row >= b->starts[shards]) {
        memset(into, 0, len);
        return SFT_OK;
    }
    /* The shard that holds the row: the last non-empty one that starts at or before it. */
    size_t n = 0;
    for (size_t high = shards; n + 1 < high;) {
        size_t middle = n + (high - n) / 2;
        if (b->starts[middle] <= row) n = middle;
        else high = middle;
    }
    uint64_t in_shard = offset - b->starts[n] * col->row_bytes;
    uint64_t left = (b->starts[n + 1] - b->starts[n]) * col->row_bytes - in_shard;
    sft_source *source;
    sft_code code = rebatch_file(b, n, &source, err);
    if (code) return code;
    *got = left < len ? (size_t)left : len;
    return sfti_source_all(source, b->offsets[n * b->column_count + col->k] + in_shard, into, *got,
                           err);
}

static sft_code rebatch_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    for (*got = 0; *got < len;) {
        size_t piece = 0;
        sft_code code =
            rebatch_piece(ctx, offset + *got, (char *)into + *got, len - *got, &piece, err);
        if (code) return code;
        *got += piece;
    }
    return SFT_OK;
}

/* ── One new shard ── */

typedef struct rebatch_out {
    rebatch_rows *rows;
    rebatch_column *columns;
    sft_source *sources;
    sft_part *parts;
    uint64_t *shapes; /* SFT_MAX_RANK + 1 each */
} rebatch_out;

static uint32_t rebatch_mode(void *ctx) {
    return ((const rebatch_column *)ctx)->rows->mode;
}

static const sft_source_vtable rebatch_source_vtable = {
    sizeof(sft_source_vtable), rebatch_read, NULL, NULL, rebatch_mode
};

static sft_code rebatch_parts(rebatch_out *o, uint64_t first, uint64_t samples) {
    rebatch_rows *b = o->rows;
    for (size_t k = 0; k < b->column_count; k++) {
        const sfti_ds_column *column = &b->columns[k];
        uint64_t *shape = o->shapes + k * (SFT_MAX_RANK + 1), each = 0, end = 0;
        sft_code code = sft_shape_size(column->dtype, column->shape, column->rank, NULL, &each,
                                       b->c->err);
        if (code) return code;
        shape[0] = samples;
        if (column->rank) memcpy(shape + 1, column->shape, column->rank * sizeof *shape);
        o->columns[k] = (rebatch_column){ b, k, each };
        if (!sfti_add(first, samples, &end) || !sfti_mul(end, each, &end))
            return sfti_ds_overflow("a batch", b->c->err);
        o->sources[k] = (sft_source){ &o->columns[k], &rebatch_source_vtable, end, NULL, false };
        o->parts[k] = (sft_part){ { column->name, column->dtype, column->rank + 1, shape },
                                  &o->sources[k], first * each };
    }
    return SFT_OK;
}

/* A batch is padded only if the files that it replaces have as many rows, which rebatch_check has
 * compared with their headers: a manifest alone cannot make a compaction write more than twice what
 * it reads. */
static sft_code rebatch_shards(rebatch_rows *b, sfti_arena *arena) {
    compaction *c = b->c;
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    const sft_span none = { NULL, 0 };
    bool pad = sft_span_equal(m->tail, sft_span_cstr("pad")) && c->batch <= b->g->held;
    size_t count = b->column_count, next = b->g->first;
    rebatch_out o = { .rows = b };
    o.columns = sfti_arena_array(arena, count, sizeof *o.columns);
    o.sources = sfti_arena_array(arena, count, sizeof *o.sources);
    o.parts = sfti_arena_array(arena, count, sizeof *o.parts);
    o.shapes = sfti_arena_array(arena, (uint64_t)count * (SFT_MAX_RANK + 1), sizeof *o.shapes);
    if (!o.columns || !o.sources || !o.parts || !o.shapes)
        return sfti_fail_memory(c->err, count * sizeof *o.parts);
    sft_code code = SFT_OK;
    for (uint64_t first = 0, valid; !code && first < b->g->rows; first += valid) {
        uint64_t left = b->g->rows - first;
        valid = left < c->batch ? left : c->batch;
        uint64_t samples = pad ? c->batch : valid;
        sfti_shard_sum sum;
        char *name = NULL, stored[SFTI_STORED_NAME], more[SFTI_DATASET_NAME];
        sft_dataset_shard fresh = { .name = more };
        /* If there are more than were: files of the next number. */
        sfti_ds_shard_name(m->sums.next_file, next, c->uuid, more);
        const sft_dataset_shard *like =
            next < b->g->end ? sft_dataset_shard_at(c->dataset, next) : &fresh;
        next++;
        code = sfti_compact_name(c, like, &name, stored);
        if (!code) code = rebatch_parts(&o, first, samples);
        if (!code)
            code = sfti_compact_save(c, o.parts, count, "batch", samples, valid, none, stored,
                                     &sum);
        if (!code) code = sfti_compact_facts(c, name, count, samples, valid, &sum);
    }
    return code;
}

sft_code sfti_compact_batch_write(compaction *c, const compact_group *g) {
    sfti_arena arena = { .alloc = c->alloc };
    rebatch_rows b = { .c = c, .g = g };
    sft_code code = rebatch_open(&b, &arena);
    if (!code) code = rebatch_shards(&b, &arena);
    for (size_t i = 0; i < BATCH_OPEN; i++) rebatch_close(&b, i);
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
