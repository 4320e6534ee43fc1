/* The tensors of a new shard, out of runs of rows of old ones. Tests: test_dataset_compact.c,
 * test_dataset_delete.py. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "dataset/maintain/compact_nodes.h"
#include "dataset/read/masks.h"

#include <string.h>

/* Values of a node's runs as a source. */
typedef struct runs_values {
    sfti_compact_rows *rows;
    const compact_node *node;
    const node_runs *runs;
    uint64_t row_bytes;
    node_window window;
} runs_values;

/* ── Runs ── */

/* The run that has a row, of which there are more than that. */
static size_t runs_find(const node_runs *runs, uint64_t row) {
    size_t low = 0, high = runs->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (runs->all[middle].before <= row) low = middle;
        else high = middle;
    }
    return low;
}

/* Rows first to first + count of others, behind those that out has. */
static sft_code runs_slice(const sfti_compact_rows *r, const node_runs *from, uint64_t first,
                           uint64_t count, sfti_arena *arena, node_runs *out) {
    sft_code code = SFT_OK;
    const uint64_t end = out->rows + count;
    for (size_t i = count ? runs_find(from, first) : 0; !code && out->rows < end; i++) {
        const node_run *run = &from->all[i];
        const uint64_t skip = first > run->before ? first - run->before : 0;
        const uint64_t left = end - out->rows, have = run->count - skip;
        code = sfti_runs_put(r, out, arena, run->shard, run->begin + skip,
                             have < left ? have : left);
    }
    return code;
}

/* ── Values ── */

static sft_code values_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    runs_values *v = ctx;
    const node_runs *runs = v->runs;
    const uint64_t end = runs->rows * v->row_bytes;
    size_t done = 0, i = 0;
    if (offset < end && len) i = runs_find(runs, offset / v->row_bytes);
    while (done < len && offset + done < end) {
        const node_run *run = &runs->all[i];
        const uint64_t in_run = offset + done - run->before * v->row_bytes;
        const uint64_t left = run->count * v->row_bytes - in_run;
        const size_t want = left < len - done ? (size_t)left : len - done;
        const node_part *p = &v->node->part[run->shard];
        sft_code code = SFT_OK;
        if (p->absent) memset((char *)into + done, 0, want);
        else
            code = sfti_node_read(v->rows, &v->window, run->shard, p->place,
                                  p->data + run->begin * v->row_bytes + in_run,
                                  (char *)into + done, want, err);
        if (code) return code;
        done += want;
        i++;
    }
    if (done < len) memset((char *)into + done, 0, len - done); /* padding */
    *got = len;
    return SFT_OK;
}

static uint32_t values_mode(void *ctx) { return ((const runs_values *)ctx)->rows->mode; }

static const sft_source_vtable values_vtable = { sizeof(sft_source_vtable), values_read, NULL,
                                                 NULL, values_mode };

/* ── A new shard ── */

/* The new shard's rows of each node; of a list and bytes where they end. */
typedef struct fresh_shard {
    sfti_compact_rows *r;
    sfti_arena *work;
    node_runs *runs;
    uint64_t padding;
    sft_part *parts;
    size_t count;
} fresh_shard;

static sft_code take_put(fresh_shard *o, sft_span name, sfti_ds_part part, sft_dtype dtype,
                        uint32_t rank, const uint64_t *shape, sft_source source) {
    sft_source *kept = sfti_arena_take(o->work, sizeof *kept);
    const sft_span suffix = sft_span_cstr(sfti_ds_part_suffix(part));
    const char *text = sfti_arena_join(o->work, name, suffix);
    if (!kept || !text) return sfti_fail_memory(o->r->c->err, sizeof *kept);
    *kept = source;
    o->parts[o->count++] =
        (sft_part){ { { text, name.len + suffix.len }, dtype, rank, shape }, kept, 0 };
    return SFT_OK;
}

/* Bytes in memory as a tensor of one dimension. */
static sft_code take_memory(fresh_shard *o, const compact_node *node, sfti_ds_part part,
                            sft_dtype dtype, const void *bytes, uint64_t count, size_t each) {
    uint64_t *shape = sfti_arena_take(o->work, sizeof *shape);
    if (!shape) return sfti_fail_memory(o->r->c->err, sizeof *shape);
    *shape = count;
    return take_put(o, node->name, part, dtype, 1, shape,
                   sft_source_memory(bytes, (size_t)count * each));
}

/* Values of these runs, and of padding, under a node's name. */
static sft_code take_values(fresh_shard *o, const compact_node *named, const compact_node *node,
                           const node_part *like, const node_runs *runs, uint64_t padding) {
    sft_error *err = o->r->c->err;
    uint64_t each = 0, end = 0;
    runs_values *v = sfti_arena_take(o->work, sizeof *v);
    uint64_t *shape = sfti_arena_array(o->work, (uint64_t)like->rank + 1, sizeof *shape);
    if (!v || !shape) return sfti_fail_memory(err, sizeof *v);
    sft_code code = sft_shape_size(node->dtype, like->shape, like->rank, NULL, &each, err);
    if (code) return code;
    shape[0] = runs->rows + padding;
    if (like->rank) memcpy(shape + 1, like->shape, like->rank * sizeof *shape);
    *v = (runs_values){ .rows = o->r, .node = node, .runs = runs, .row_bytes = each,
                        .window = { .arena = o->work } };
    if (!sfti_mul(shape[0], each, &end)) return sfti_ds_overflow("a batch", err);
    return take_put(o, named->name, SFTI_PART_VALUES, node->dtype, like->rank + 1, shape,
                   (sft_source){ v, &values_vtable, end, NULL, false });
}

static sft_code take_valid(fresh_shard *o, size_t i) {
    sfti_compact_rows *r = o->r;
    const compact_node *node = &r->nodes[i];
    const node_runs *runs = &o->runs[i];
    const uint64_t all = runs->rows + (node->padded ? o->padding : 0);
    node_window window = { .arena = o->work };
    bool marked = false;
    for (size_t n = 0; n < r->shards && !marked; n++)
        marked = node->part[n].marked || node->part[n].null;
    if (!marked) return SFT_OK;
    char *bytes = sfti_arena_array(o->work, all, 1);
    if (!bytes) return sfti_fail_memory(r->c->err, (size_t)all);
    memset(bytes, 1, (size_t)all);
    for (size_t k = 0; k < runs->count; k++) {
        const node_run *run = &runs->all[k];
        const node_part *p = &node->part[run->shard];
        sft_code code = SFT_OK;
        if (p->null) memset(bytes + run->before, 0, (size_t)run->count);
        if (p->marked)
            code = sfti_node_read(r, &window, run->shard, p->place, p->valid + run->begin,
                                  bytes + run->before, (size_t)run->count, r->c->err);
        if (code) return code;
    }
    if (!memchr(bytes, 0, (size_t)all)) return SFT_OK;
    return take_memory(o, node, SFTI_PART_VALID, SFT_BOOL, bytes, all, 1);
}

/* The end of the next row, of so many elements. */
static void ends_put(char *ends, uint64_t *at, uint64_t elements) {
    sfti_put_u64(ends + 8 * (*at + 1), sfti_get_u64(ends + 8 * *at) + elements);
    ++*at;
}

/* Where rows end, and the runs that are in them. */
static sft_code take_ends(fresh_shard *o, size_t i, node_runs *inner) {
    sfti_compact_rows *r = o->r;
    const compact_node *node = &r->nodes[i];
    const node_runs *runs = &o->runs[i];
    const uint64_t padding = node->padded ? o->padding : 0;
    uint64_t count = 0, at = 0;
    char read[4096];
    node_window window = { .arena = o->work };
    char *ends = sfti_add(runs->rows + 1, padding, &count)
                     ? sfti_arena_array(o->work, count, 8) : NULL;
    if (!ends) return sfti_fail_memory(r->c->err, (size_t)count * 8);
    sfti_put_u64(ends, 0);
    for (size_t k = 0; k < runs->count; k++) {
        const node_run *run = &runs->all[k];
        const node_part *p = &node->part[run->shard];
        sft_code code = SFT_OK;
        if (p->absent) {
            for (uint64_t row = 0; row < run->count; row++) ends_put(ends, &at, 0);
            continue;
        }
        if (p->form == ROWS_STACKED && node->form == SFTI_FORM_LIST) {
            for (uint64_t row = 0; row < run->count; row++) ends_put(ends, &at, p->shape[0]);
            code = sfti_runs_put(r, inner, o->work, run->shard, run->begin * p->shape[0],
                            run->count * p->shape[0]);
            if (code) return code;
            continue;
        }
        uint64_t begin = 0, last = 0;
        for (uint64_t row = 0; row <= run->count; row += sizeof read / 8) {
            const uint64_t left = run->count + 1 - row;
            const size_t some = left < sizeof read / 8 ? (size_t)left : sizeof read / 8;
            code = sfti_node_read(r, &window, run->shard, p->place,
                                  p->ends + 8 * (run->begin + row), read, 8 * some, r->c->err);
            for (size_t n = 0; !code && n < some; n++) {
                const uint64_t end = sfti_get_u64(read + 8 * n);
                const bool first = row == 0 && n == 0;
                if (end > p->elements || (!first && end < last))
                    return sfti_node_wrong(r, run->shard, node->name);
                if (first) begin = end;
                else ends_put(ends, &at, end - last);
                last = end;
            }
            if (code) return code;
        }
        code = sfti_runs_put(r, inner, o->work, run->shard, begin, last - begin);
        if (code) return code;
    }
    while (at + 1 < count) ends_put(ends, &at, 0);
    return take_memory(o, node, SFTI_PART_OFFSETS, SFT_I64, ends, count, 8);
}

static sft_code take_node(fresh_shard *o, size_t i) {
    static const node_part number = { .rank = 0 };
    sfti_compact_rows *r = o->r;
    const compact_node *node = &r->nodes[i];
    const compact_node *around = node->parent == SIZE_MAX ? NULL : &r->nodes[node->parent];
    const uint64_t padding = node->padded ? o->padding : 0;
    if (node->covered) return SFT_OK;
    if (around && around->form == SFTI_FORM_STRUCT) o->runs[i] = o->runs[node->parent];
    sft_code code = take_valid(o, i);
    if (code || node->form == SFTI_FORM_STRUCT) return code;
    if (node->form == SFTI_FORM_BYTES) {
        node_runs *inner = sfti_arena_take(o->work, sizeof *inner);
        if (!inner) return sfti_fail_memory(r->c->err, sizeof *inner);
        *inner = (node_runs){ NULL, 0, 0, 0 };
        code = take_ends(o, i, inner);
        return code ? code : take_values(o, node, node, &number, inner, 0);
    }
    if (node->form == SFTI_FORM_LIST && node->out == ROWS_STACKED) {
        const compact_node *leaf = node;
        while (leaf->form == SFTI_FORM_LIST) leaf++;
        compact_node *stacked = sfti_arena_take(o->work, sizeof *stacked);
        if (!stacked) return sfti_fail_memory(r->c->err, sizeof *stacked);
        *stacked = *node;
        stacked->dtype = leaf->dtype;
        return take_values(o, node, stacked, sfti_node_like(r, node), &o->runs[i], padding);
    }
    if (node->form == SFTI_FORM_LIST) {
        o->runs[i + 1] = (node_runs){ NULL, 0, 0, 0 };
        return take_ends(o, i, &o->runs[i + 1]);
    }
    const bool flat = around && around->form == SFTI_FORM_LIST && around->out == ROWS_FLAT;
    return take_values(o, flat ? around : node, node, sfti_node_like(r, node), &o->runs[i],
                       padding);
}

static sft_code take_rows(sfti_compact_rows *r, const node_runs *rows, uint64_t padding,
                          sfti_arena *work, sft_part **parts, size_t *count) {
    fresh_shard o = { .r = r, .work = work, .padding = padding };
    sft_error *err = r->c->err;
    sft_code code = SFT_OK;
    o.runs = sfti_arena_array(work, r->count, sizeof *o.runs);
    o.parts = sfti_arena_array(work, 3 * (uint64_t)r->count, sizeof *o.parts);
    if (!o.runs || !o.parts) return sfti_fail_memory(err, r->count * sizeof *o.parts);
    for (size_t i = 0; !code && i < r->count; i++) {
        if (r->nodes[i].parent == SIZE_MAX) o.runs[i] = *rows;
        code = take_node(&o, i);
    }
    *parts = o.parts;
    *count = o.count;
    return code;
}

sft_code sfti_compact_rows_take(sfti_compact_rows *r, uint64_t first, uint64_t valid,
                                uint64_t samples, sfti_arena *work, sft_part **parts,
                                size_t *count) {
    node_runs rows = { NULL, 0, 0, 0 };
    sft_code code = runs_slice(r, &r->live, first, valid, work, &rows);
    return code ? code : take_rows(r, &rows, samples - valid, work, parts, count);
}

sft_code sfti_compact_rows_spread(sfti_compact_rows *r, const sft_dataset_shard *shard,
                                  const sfti_ds_mask *mask, uint64_t *next, sfti_arena *work,
                                  sft_part **parts, size_t *count) {
    node_runs rows = { NULL, 0, 0, 0 };
    sft_code code = SFT_OK;
    for (uint64_t at = 0, live; !code && at < shard->valid_samples;) {
        const uint64_t end = sfti_ds_mask_run(mask, at, shard->valid_samples, &live);
        code = sfti_runs_put(r, &rows, work, NODES_FILLER(r), at, live - at);
        if (!code) code = runs_slice(r, &r->live, *next, end - live, work, &rows);
        *next += end - live;
        at = end;
    }
    const uint64_t padding = shard->samples - shard->valid_samples;
    return code ? code : take_rows(r, &rows, padding, work, parts, count);
}
