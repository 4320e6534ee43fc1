/* The columns of a group of shards, as trees, and its rows, as runs. Tests: test_dataset_compact.c,
 * test_dataset_delete.py. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/files.h"
#include "bytes/source.h"
#include "dataset/maintain/compact_nodes.h"
#include "dataset/read/masks.h"

#include <string.h>

#define NODES_WINDOW ((size_t)1 << 16) /* bytes read at once where less is wanted */

sft_code sfti_node_wrong(const sfti_compact_rows *r, size_t shard, sft_span name) {
    return sfti_fail(r->c->err, SFT_DATASET_SHARD,
                     "%s: expected the column %.*s as in the manifest, found another",
                     sft_dataset_shard_at(r->c->dataset, r->g->first + shard)->name,
                     SFTI_CLIP(name, 100));
}

/* ── Runs ── */

sft_code sfti_runs_put(const sfti_compact_rows *r, node_runs *to, sfti_arena *arena, size_t shard,
                         uint64_t begin, uint64_t count) {
    node_run *last = to->count ? &to->all[to->count - 1] : NULL;
    if (!count) return SFT_OK;
    if (last && last->shard == shard && last->begin + last->count == begin) {
        last->count += count;
        to->rows += count;
        return SFT_OK;
    }
    node_run *all = sfti_arena_grow(arena, to->all, to->count, 1, &to->cap, sizeof *all);
    if (!all) return sfti_fail_memory(r->c->err, sizeof *all);
    to->all = all;
    all[to->count++] = (node_run){ to->rows, begin, count, shard };
    to->rows += count;
    return SFT_OK;
}

/* Rows that are neither deleted nor padding. */
static sft_code nodes_live(sfti_compact_rows *r, size_t shard) {
    const sft_dataset_shard *s = sft_dataset_shard_at(r->c->dataset, r->g->first + shard);
    const sfti_ds_mask *mask =
        sfti_ds_mask_find(&sfti_ds_manifest_of(r->c->dataset)->masks, s->name);
    sft_code code = SFT_OK;
    for (uint64_t row = 0, begin; !code && row < s->valid_samples;) {
        row = sfti_ds_mask_run(mask, row, s->valid_samples, &begin);
        code = sfti_runs_put(r, &r->live, r->arena, shard, begin, row - begin);
    }
    return code;
}

/* ── Files ── */

/* Each node reads the shards once, in order: one slot a shard suffices. */
static sft_code node_file(sfti_compact_rows *r, size_t shard, const sfti_ds_place *place,
                          sft_source **out, sft_error *err) {
    struct node_file *f = &r->files[shard % NODES_OPEN];
    *out = &f->source;
    if (f->open && f->shard == shard && f->place == place) return SFT_OK;
    if (f->open) sft_source_close(&f->source);
    const char *name = place ? place->file
                             : sft_dataset_shard_at(r->c->dataset, r->g->first + shard)->name;
    sft_code code = sfti_call(r->c->storage, open, name, &f->source, err);
    f->open = !code;
    f->shard = shard;
    f->place = place;
    return code;
}

sft_code sfti_node_read(sfti_compact_rows *r, node_window *w, size_t shard,
                        const sfti_ds_place *place, uint64_t offset, void *into, size_t len,
                        sft_error *err) {
    sft_source *source;
    if (!len) return SFT_OK;
    if (w->len && w->shard == shard && offset >= w->begin && offset - w->begin <= w->len &&
        len <= w->len - (size_t)(offset - w->begin)) {
        memcpy(into, w->bytes + (offset - w->begin), len);
        return SFT_OK;
    }
    sft_code code = node_file(r, shard, place, &source, err);
    if (code) return code;
    const uint64_t size =
        place ? place->bytes : sft_dataset_shard_at(r->c->dataset, r->g->first + shard)->bytes;
    if (!w->arena || len >= NODES_WINDOW || offset > size || len > size - offset)
        return sfti_source_all(source, offset, into, len, err);
    if (!w->bytes) w->bytes = sfti_arena_take(w->arena, NODES_WINDOW);
    if (!w->bytes) return sfti_fail_memory(err, NODES_WINDOW);
    w->shard = shard;
    w->begin = offset;
    w->len = size - offset < NODES_WINDOW ? (size_t)(size - offset) : NODES_WINDOW;
    code = sfti_source_all(source, offset, w->bytes, w->len, err);
    if (code) w->len = 0;
    else memcpy(into, w->bytes, len);
    return code;
}

/* ── Nodes ── */

static sft_code nodes_put(sfti_compact_rows *r, const compact_node *node) {
    compact_node *all = sfti_arena_grow(r->arena, r->nodes, r->count, 1, &r->cap, sizeof *all);
    if (!all) return sfti_fail_memory(r->c->err, sizeof *all);
    r->nodes = all;
    compact_node *to = &all[r->count++];
    *to = *node;
    to->part = sfti_arena_array(r->arena, r->shards + 1, sizeof *to->part);
    if (!to->part) return sfti_fail_memory(r->c->err, r->shards * sizeof *to->part);
    memset(to->part, 0, (r->shards + 1) * sizeof *to->part);
    to->part[NODES_FILLER(r)] =
        (node_part){ .absent = true, .rank = node->rank, .shape = node->shape };
    to->padded = to->parent == SIZE_MAX || (r->nodes[to->parent].padded &&
                                            r->nodes[to->parent].form == SFTI_FORM_STRUCT);
    return SFT_OK;
}

static sft_code nodes_column(sfti_compact_rows *r, const sfti_ds_column *c) {
    compact_node one = { .name = c->name, .parent = SIZE_MAX, .form = SFTI_FORM_PLAIN,
                      .dtype = c->dtype, .typed = c->has_dtype, .rank = c->rank,
                      .shape = c->shape };
    const size_t first = r->count;
    if (c->encoding == SFTI_ENCODING_NESTED) {
        sfti_ds_inner *all = NULL;
        size_t count = 0;
        sft_code code = sfti_ds_type_parse(c->name, c->type, r->arena, &all, &count, r->c->err);
        for (size_t i = 0; !code && i < count; i++) {
            one = (compact_node){ .form = all[i].form, .name = all[i].name, .dtype = all[i].dtype,
                               .typed = true, .rank = all[i].width > 0, .shape = &all[i].width,
                               .parent = i ? first + all[i].parent : SIZE_MAX };
            code = nodes_put(r, &one);
        }
        return code;
    }
    if (c->encoding == SFTI_ENCODING_LIST) one.form = SFTI_FORM_LIST;
    if (c->encoding == SFTI_ENCODING_BINARY || c->encoding == SFTI_ENCODING_UTF8) {
        one.form = SFTI_FORM_BYTES;
        one.dtype = SFT_U8;
        one.typed = true;
    }
    sft_code code = nodes_put(r, &one);
    if (code || one.form != SFTI_FORM_LIST) return code;
    one.form = SFTI_FORM_PLAIN;
    one.parent = first;
    return nodes_put(r, &one);
}

/* ── A shard's tensors ── */

typedef struct node_shard {
    sfti_compact_rows *r;
    const sft_file *file;
    const sfti_ds_place *place; /* whose file it is */
    size_t shard, used;
    bool starved; /* memory ran out: what was not found may be there */
} node_shard;

/* NULL when there is none of that name, or no memory. */
static const sft_tensor *shard_find(node_shard *s, sft_span name, sfti_ds_part part) {
    sfti_arena work = { .alloc = s->r->c->alloc };
    const sft_span suffix = sft_span_cstr(sfti_ds_part_suffix(part));
    const char *text = sfti_arena_join(&work, name, suffix);
    const sft_tensor *t =
        text ? sft_file_find(s->file, (sft_span){ text, name.len + suffix.len }) : NULL;
    sfti_arena_free(&work);
    s->used += t != NULL;
    s->starved = s->starved || !text;
    return t;
}

static bool shard_dtype(compact_node *node, const sft_tensor *t) {
    if (!node->typed) node->dtype = t->dtype;
    node->typed = true;
    return node->dtype == t->dtype;
}

static bool shard_ends(node_part *p, const sft_tensor *t) {
    p->ends = t->offset;
    return t->dtype == SFT_I64 && t->rank == 1 && t->shape[0] && t->shape[0] - 1 == p->rows;
}

/* The shape of a row, kept longer than the file. */
static bool shard_shape(node_shard *s, node_part *p, const uint64_t *shape, uint32_t rank) {
    uint64_t *copy = sfti_arena_array(s->r->arena, rank, sizeof *copy);
    if (copy && rank) memcpy(copy, shape, rank * sizeof *copy);
    p->rank = rank;
    p->shape = copy;
    s->starved = s->starved || !copy;
    return copy != NULL;
}

/* False: it is not as the manifest says. */
static bool shard_list(node_shard *s, size_t i, sft_code *code) {
    sfti_compact_rows *r = s->r;
    compact_node *node = &r->nodes[i], *leaf = node;
    node_part *p = &node->part[s->shard], *inner = &node[1].part[s->shard];
    const sft_tensor *values = shard_find(s, node->name, SFTI_PART_VALUES);
    const sft_tensor *ends = shard_find(s, node->name, SFTI_PART_OFFSETS);
    while (leaf->form == SFTI_FORM_LIST) leaf++;
    if (ends && !shard_ends(p, ends)) return false;
    if (values && (leaf->form != SFTI_FORM_PLAIN || !shard_dtype(leaf, values))) return false;
    if (values && ends) { /* end to end */
        p->form = ROWS_FLAT;
        p->data = inner->data = values->offset;
        p->elements = inner->rows = values->rank ? values->shape[0] : 0;
        return values->rank == 1 && leaf == node + 1;
    }
    if (values) {
        p->form = ROWS_STACKED;
        p->data = values->offset;
        return values->rank == 1 + (uint32_t)(leaf - node) && values->shape[0] == p->rows &&
               shard_shape(s, p, values->shape + 1, values->rank - 1);
    }
    char last[8];
    node_window window = { 0 };
    if (!ends) return false;
    p->form = ROWS_ITEMS;
    *code = sfti_node_read(r, &window, s->shard, s->place, p->ends + 8 * p->rows, last, 8,
                           r->c->err);
    p->elements = inner->rows = *code ? 0 : sfti_get_u64(last);
    return inner->rows <= INT64_MAX;
}

static bool shard_node(node_shard *s, size_t i, sft_code *code) {
    sfti_compact_rows *r = s->r;
    compact_node *node = &r->nodes[i];
    node_part *p = &node->part[s->shard];
    const compact_node *around = node->parent == SIZE_MAX ? NULL : &r->nodes[node->parent];
    const node_part *outer = around ? &around->part[s->shard] : NULL;
    const bool in_list = around && around->form == SFTI_FORM_LIST;
    p->place = s->place;
    if (!s->file) {
        p->absent = p->null = true;
        p->rank = node->rank;
        p->shape = node->shape;
        return true;
    }
    if (in_list && outer->form == ROWS_FLAT) return true;
    if (in_list && outer->form == ROWS_STACKED) { /* a part of the same tensor */
        p->data = outer->data;
        p->form = ROWS_STACKED;
        p->rank = outer->rank - 1;
        p->shape = outer->shape + 1;
        return sfti_mul(outer->rows, outer->shape[0], &p->rows);
    }
    if (around && !in_list) p->rows = outer->rows;
    const sft_tensor *valid = shard_find(s, node->name, SFTI_PART_VALID);
    p->marked = valid != NULL;
    if (valid) p->valid = valid->offset;
    if (valid && (valid->dtype != SFT_BOOL || valid->rank != 1 || valid->shape[0] != p->rows))
        return false;
    if (node->form == SFTI_FORM_STRUCT) return true;
    if (node->form == SFTI_FORM_LIST) return shard_list(s, i, code);
    const sft_tensor *values = shard_find(s, node->name, SFTI_PART_VALUES);
    if (!values || !values->rank || !shard_dtype(node, values)) return false;
    p->data = values->offset;
    p->elements = values->shape[0];
    if (node->form == SFTI_FORM_BYTES) {
        const sft_tensor *ends = shard_find(s, node->name, SFTI_PART_OFFSETS);
        return ends && shard_ends(p, ends) && values->rank == 1;
    }
    return values->shape[0] == p->rows && shard_shape(s, p, values->shape + 1, values->rank - 1);
}

static void shard_mode(sfti_compact_rows *r, const sft_file *file) {
    sft_source source = sft_file_source(file);
    sfti_mode_common(&r->mode, sft_source_mode(&source));
}

static sft_code node_shard_open(sfti_compact_rows *r, size_t shard) {
    compaction *c = r->c;
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    const sft_dataset_shard *facts = sft_dataset_shard_at(c->dataset, r->g->first + shard);
    node_shard s = { .r = r, .shard = shard };
    size_t used = 0; /* of the shard itself */
    const char *intact = ""; /* the file whose digest was compared last: columns of one follow
                              * one another */
    sft_file *file = NULL, *other = NULL; /* other: of s.place */
    sft_code code =
        sft_dataset_shard_open(c->dataset, r->g->first + shard, &c->open, &file, c->err);
    if (code) return code;
    shard_mode(r, file);
    for (size_t i = 0; !code && i < r->count; i++) {
        if (r->nodes[i].parent == SIZE_MAX) { /* a column, with what is in it behind it */
            r->nodes[i].part[shard].rows = facts->samples;
            sft_close(other);
            other = NULL;
            s.place = sfti_ds_place_find(&m->places, facts->name, r->nodes[i].name);
            if (s.place && s.place->file)
                code = sfti_ds_place_open(c->storage, m, s.place, &c->open, &other, c->err);
            if (!code && other) shard_mode(r, other);
            s.file = s.place ? other : file;
            const char *name = s.place ? s.place->file : facts->name;
            if (!code && s.file && strcmp(intact, name) != 0) {
                code = sfti_compact_intact(c, name, s.place ? s.place->sha256 : facts->sha256);
                intact = name;
            }
        }
        s.used = 0;
        bool good = code || shard_node(&s, i, &code);
        if (s.file == file) used += s.used;
        if (!code && s.starved) code = sfti_fail_memory(c->err, r->nodes[i].name.len);
        else if (!code && !good) code = sfti_node_wrong(r, shard, r->nodes[i].name);
    }
    if (!code && r->whole && used != sft_file_tensor_count(file))
        code = sfti_node_wrong(r, shard, r->nodes[0].name);
    sft_close(other);
    sft_close(file);
    return code ? code : nodes_live(r, shard);
}

/* ── What a new shard has ── */

static bool part_same(const node_part *a, const node_part *b) {
    return sfti_ds_shape_same(a->shape, a->rank, b->shape, b->rank);
}

static sft_code nodes_out(sfti_compact_rows *r, size_t i) {
    compact_node *node = &r->nodes[i];
    const compact_node *around = node->parent == SIZE_MAX ? NULL : &r->nodes[node->parent];
    node->covered = around && around->form == SFTI_FORM_LIST &&
                    (around->covered || around->out == ROWS_STACKED);
    if (node->covered || node->form == SFTI_FORM_STRUCT || node->form == SFTI_FORM_BYTES)
        return SFT_OK;
    const node_part *like = sfti_node_like(r, node);
    bool same = !like->absent, flat = true;
    if (node->form == SFTI_FORM_LIST && like->absent) { /* no element anywhere */
        node->out = node[1].form == SFTI_FORM_PLAIN && !node[1].rank ? ROWS_FLAT : ROWS_ITEMS;
        return SFT_OK;
    }
    for (size_t n = 0; n < r->shards; n++) {
        const node_part *p = &node->part[n];
        if (p->absent) continue;
        same = same && p->form == ROWS_STACKED && part_same(p, like);
        flat = flat && (p->form == ROWS_FLAT || (p->form == ROWS_STACKED && p->rank == 1));
    }
    if (node->form == SFTI_FORM_LIST) {
        node->out = same ? ROWS_STACKED : flat ? ROWS_FLAT : ROWS_ITEMS;
        return SFT_OK;
    }
    for (size_t n = 0; n < r->shards; n++)
        if (!node->part[n].absent && !part_same(&node->part[n], like))
            return sfti_node_wrong(r, n, node->name);
    return SFT_OK;
}

const node_part *sfti_node_like(const sfti_compact_rows *r, const compact_node *node) {
    size_t n = 0;
    while (n + 1 < r->shards && node->part[n].absent) n++;
    return &node->part[n];
}

sft_code sfti_compact_rows_open(compaction *c, const compact_group *g,
                                const sfti_ds_column *columns, size_t count, sfti_arena *arena,
                                sfti_compact_rows **out) {
    sfti_compact_rows *r = sfti_arena_take(arena, sizeof *r);
    *out = r;
    if (!r) return sfti_fail_memory(c->err, sizeof *r);
    memset(r, 0, sizeof *r);
    r->c = c;
    r->g = g;
    r->arena = arena;
    r->shards = g->end - g->first;
    r->whole = count == sfti_ds_manifest_of(c->dataset)->column_count;
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < count; k++) code = nodes_column(r, &columns[k]);
    for (size_t n = 0; !code && n < r->shards; n++) code = node_shard_open(r, n);
    for (size_t i = 0; !code && i < r->count; i++) code = nodes_out(r, i);
    return code;
}

void sfti_compact_rows_close(sfti_compact_rows *r) {
    for (size_t i = 0; r && i < NODES_OPEN; i++)
        if (r->files[i].open) sft_source_close(&r->files[i].source);
}
