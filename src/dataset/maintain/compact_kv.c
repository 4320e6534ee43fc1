/* Keyed tensors of a group of shards become one shard. Tests: test_dataset_compact.c. */
#include "base/error.h"
#include "base/order.h"
#include "dataset/maintain/compact.h"
#include "dataset/read/merge.h"

#include <string.h>

/* Bytes of a group's headers: a file's may have 100 MB, and the order of rows takes some. */
#define COMPACT_HEADER (UINT64_C(88) << 20)

/* ── Which shards are rewritten ── */

static sft_code kv_find_shadowed(compaction *c) {
    size_t n = sft_dataset_shard_count(c->dataset);
    sfti_ds_merge *merge = NULL;
    sfti_ds_source *sources = sfti_arena_array(&c->arena, n, sizeof *sources);
    c->shadowed = sfti_arena_array(&c->arena, n, sizeof *c->shadowed);
    c->groups = sfti_arena_array(&c->arena, n, sizeof *c->groups);
    if (!sources || !c->shadowed || !c->groups)
        return sfti_fail_memory(c->err, n * sizeof *sources);
    memset(c->shadowed, 0, n * sizeof *c->shadowed);
    for (size_t i = 0; i < n; i++) {
        const char *name = sft_dataset_shard_at(c->dataset, i)->name;
        sources[i] = (sfti_ds_source){
            name, name, sfti_ds_mask_find(&sfti_ds_manifest_of(c->dataset)->masks, name)
        };
    }
    sft_code code =
        sfti_ds_merge_open(c->storage, sources, n, &c->open, &c->alloc, NULL, &merge, c->err);
    const sfti_ds_row *row = NULL;
    if (!code) code = sfti_ds_merge_next(merge, &row, c->err);
    while (!code && row) {
        if (row->shadowed || row->deleted) {
            compact_keys *keys = &c->shadowed[row->source];
            sft_span *all =
                sfti_arena_grow(&c->arena, keys->key, keys->count, 1, &keys->cap, sizeof *all);
            char *copy = sfti_arena_copy(&c->arena, row->key.data, row->key.len);
            if (all && copy) all[keys->count++] = (sft_span){ copy, row->key.len };
            else code = sfti_fail_memory(c->err, row->key.len + 1);
            if (all) keys->key = all;
        }
        if (!code) code = sfti_ds_merge_next(merge, &row, c->err);
    }
    sfti_ds_merge_close(merge);
    /* What is left of rows that cannot be told apart might be taken for a row. */
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    for (size_t i = 0; !code && i < n; i++)
        if (c->shadowed[i].count)
            return sfti_ds_keys_apart(m->columns, m->column_count, m->separator, c->err);
    return code;
}

static sft_code compact_header(compaction *c, size_t i, uint64_t *bytes) {
    sft_source source;
    const char *name = sft_dataset_shard_at(c->dataset, i)->name;
    sft_code code = sfti_call(c->storage, open, name, &source, c->err);
    if (code) return code;
    code = sfti_ds_header_bytes(&source, bytes, c->err);
    sft_source_close(&source);
    return code;
}

/* End of the group that begins with shard i: small neighbours are merged while they stay within the
 * target. Only neighbours, so that rows keep their order. */
static sft_code plan_group(compaction *c, size_t i, size_t *end) {
    uint64_t target = c->options.target_bytes;
    uint64_t bytes = sft_dataset_shard_at(c->dataset, i)->bytes, header = 0, more = 0;
    *end = i + 1;
    if (bytes >= target) return SFT_OK;
    sft_code code = compact_header(c, i, &header);
    for (; !code && *end < sft_dataset_shard_count(c->dataset); ++*end) {
        uint64_t next = sft_dataset_shard_at(c->dataset, *end)->bytes;
        if (next >= target || next > target - bytes) break;
        code = compact_header(c, *end, &more);
        if (code || more + header > COMPACT_HEADER) break;
        bytes += next;
        header += more;
    }
    return code;
}

sft_code sfti_compact_kv_plan(compaction *c) {
    size_t n = sft_dataset_shard_count(c->dataset), end = 0;
    sft_code code = kv_find_shadowed(c);
    if (code) return code;
    for (size_t i = 0; i < n; i = end) {
        uint64_t tensors = 0, shadowed = 0;
        code = plan_group(c, i, &end);
        if (code) return code;
        for (size_t k = i; k < end; k++) {
            tensors += sft_dataset_shard_at(c->dataset, k)->tensors;
            shadowed += c->shadowed[k].count;
        }
        if (end == i + 1 && !shadowed) continue;
        /* It becomes one shard, or none if all its tensors are shadowed. */
        c->groups[c->group_count++] =
            (compact_group){ .first = i, .end = end, .into = tensors > shadowed };
        c->dropped += shadowed;
    }
    return SFT_OK;
}

/* ── One group ── */

typedef struct compact_open {
    sft_file **files;
    sft_source *sources;
    sft_part *parts;
    size_t files_count, part_count;
    compact_order order;
} compact_open;

static bool shadowed_has(const void *ctx, sft_span key) {
    const compact_keys *keys = ctx;
    size_t low = 0, high = keys->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = sfti_bytes_compare(keys->key[middle], key);
        if (order == 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

static sft_code open_group(compaction *c, const compact_group *g, compact_open *o,
                           sfti_arena *arena) {
    size_t n = g->end - g->first, most = 0;
    o->files = sfti_arena_array(arena, n, sizeof *o->files);
    o->sources = sfti_arena_array(arena, n, sizeof *o->sources);
    if (!o->files || !o->sources) return sfti_fail_memory(c->err, n * sizeof *o->sources);
    for (size_t i = 0; i < n; i++) {
        sft_code code =
            sft_dataset_shard_open(c->dataset, g->first + i, &c->open, &o->files[i], c->err);
        if (code) return code;
        o->sources[i] = sft_file_source(o->files[i]);
        o->files_count++;
        most += sft_file_tensor_count(o->files[i]);
    }
    o->parts = sfti_arena_array(arena, most, sizeof *o->parts);
    if (!o->parts) return sfti_fail_memory(c->err, most * sizeof *o->parts);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sft_file_tensor_count(o->files[i]); k++) {
            const sft_tensor *t = sft_file_tensor_at(o->files[i], k);
            if (!shadowed_has(&c->shadowed[g->first + i], t->name))
                o->parts[o->part_count++] = sft_part_of(t, &o->sources[i]);
        }

    /* Rows stay in the order in which readers number them. */
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    sft_span column = m->column_count ? m->columns[0].name : (sft_span){ NULL, 0 };
    size_t len = m->separator.len + column.len;
    const char *suffix = sfti_arena_join(arena, m->separator, column);
    if (!suffix) return sfti_fail_memory(c->err, len + 1);
    o->order = (compact_order){ .alloc = c->alloc, .suffix = { suffix, len }, .err = c->err };
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < n; i++)
        code = sfti_compact_order_add(&o->order, o->files[i], shadowed_has,
                                      &c->shadowed[g->first + i]);
    for (size_t i = g->first; !code && i < g->end; i++) {
        const sft_dataset_shard *s = sft_dataset_shard_at(c->dataset, i);
        code = sfti_compact_intact(c, s->name, s->sha256);
    }
    return code ? code : sfti_compact_order_end(&o->order);
}

sft_code sfti_compact_kv_write(compaction *c, const compact_group *g) {
    sfti_arena arena = { .alloc = c->alloc };
    compact_open o = { .order = { .alloc = c->alloc } };
    sfti_shard_sum sum;
    char *name = NULL, stored[SFTI_STORED_NAME];
    uint64_t samples = 0, columns = sfti_ds_manifest_of(c->dataset)->column_count;
    for (size_t i = g->first; i < g->end; i++) {
        uint64_t gone = c->shadowed[i].count / (columns ? columns : 1);
        uint64_t had = sft_dataset_shard_at(c->dataset, i)->samples;
        samples += had - (gone < had ? gone : had);
    }
    sft_code code =
        sfti_compact_name(c, sft_dataset_shard_at(c->dataset, g->first), &name, stored);
    if (!code) code = open_group(c, g, &o, &arena);
    sft_span order = { o.order.text.data, o.order.text.len };
    if (!code && o.part_count)
        code = sfti_compact_save(c, o.parts, o.part_count, "kv", samples, samples, order, stored,
                                 &sum);
    if (!code && o.part_count)
        code = sfti_compact_facts(c, name, o.part_count, samples, samples, &sum);
    for (size_t i = 0; i < o.files_count; i++) sft_close(o.files[i]);
    sfti_compact_order_free(&o.order);
    sfti_arena_free(&arena);
    return code;
}
