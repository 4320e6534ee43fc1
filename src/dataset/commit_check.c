#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/order.h"
#include "dataset/commit.h"

#include <string.h>

/* ── Whether rows fit the dataset that is there ── */

static sft_code agree_fail(sft_error *err, const char *what, sft_span name, const char *have,
                           const char *want) {
    return sfti_fail(err, SFT_DATASET_DISAGREES, SFT_NO_OFFSET,
                     "%s %.*s: expected %s as in the dataset, found %s", what, (int)name.len,
                     name.data, want, have);
}

static const char *agree_dtype(const sfti_ds_column *c) {
    return sft_dtype_describe(c->dtype)->name;
}

static sft_code agree_column(const sfti_ds_column *is, const sfti_ds_column *was,
                             sft_error *err) {
    if (is->has_dtype && was->has_dtype && is->dtype != was->dtype)
        return agree_fail(err, "column", is->name, agree_dtype(is), agree_dtype(was));
    if (!is->has_shape || !was->has_shape) return SFT_OK;
    if (is->rank != was->rank || memcmp(is->shape, was->shape, is->rank * sizeof *is->shape))
        return agree_fail(err, "column", is->name, "another shape per sample", "the shape");
    return SFT_OK;
}

static const sfti_ds_column *column_named(const sfti_ds_column *all, size_t count,
                                          sft_span name) {
    for (size_t i = 0; i < count; i++)
        if (sft_span_equal(all[i].name, name)) return &all[i];
    return NULL;
}

static sft_code agree_columns(const sfti_ds_manifest *base, const sfti_ds_column *columns,
                              size_t count, sft_error *err) {
    for (size_t i = 0; i < count; i++) {
        const sfti_ds_column *was =
            column_named(base->columns, base->column_count, columns[i].name);
        if (!was) return agree_fail(err, "column", columns[i].name, "it", "none of this name");
        sft_code code = agree_column(&columns[i], was, err);
        if (code) return code;
    }
    for (size_t i = 0; i < base->column_count; i++)
        if (!column_named(columns, count, base->columns[i].name))
            return agree_fail(err, "column", base->columns[i].name, "none", "it");
    return SFT_OK;
}

/* A connector's manifest tells keys only; in batch mode they are the columns. */
static sft_code agree_keys(const sft_commit *c, const sfti_ds_manifest *base, sft_error *err) {
    if (base->ours || !base->has_schema || c->options->mode != SFT_DATASET_BATCH) return SFT_OK;
    for (size_t i = 0; i < c->columns.count; i++) {
        const sfti_ds_column *column = &c->columns.column[i];
        const sfti_ds_entry *was = NULL;
        for (size_t k = 0; k < base->entry_count && !was; k++)
            if (sft_span_equal(base->entries[k].key, column->name)) was = &base->entries[k];
        if (!was) return agree_fail(err, "column", column->name, "it", "none of this name");
        if (column->has_dtype &&
            !sft_span_equal(was->dtype, sft_span_cstr(agree_dtype(column))))
            return agree_fail(err, "column", column->name, agree_dtype(column), was->dtype.data);
    }
    return SFT_OK;
}

sft_code sfti_commit_agree(sft_commit *c, const sfti_ds_manifest *base, sft_error *err) {
    const sft_dataset_options *o = c->options;
    sft_span option = sft_span_cstr("");
    if (base->mode && base->mode != o->mode)
        return agree_fail(err, "the mode", option, o->mode == SFT_DATASET_KV ? "kv" : "batch",
                          o->mode == SFT_DATASET_KV ? "batch" : "kv");
    if (o->mode == SFT_DATASET_KV && base->ours) {
        if (!sft_span_equal(o->name_col, base->name_col))
            return agree_fail(err, "name_col", option, o->name_col.data, base->name_col.data);
        if (!sft_span_equal(o->separator, base->separator))
            return agree_fail(err, "kv_separator", option, o->separator.data,
                              base->separator.data);
    }
    if (c->columns.count && base->ours && base->column_count)
        return agree_columns(base, c->columns.column, c->columns.count, err);
    return agree_keys(c, base, err);
}

/* ── Receipts in order ── */

static int receipt_order(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_ds_receipt *all = ctx, *x = &all[a], *y = &all[b];
    if (x->partition != y->partition) return x->partition < y->partition ? -1 : 1;
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    return strcmp(x->stored.data, y->stored.data);
}

static bool receipt_same_place(const sfti_ds_receipt *a, const sfti_ds_receipt *b) {
    return a->partition == b->partition && a->shard == b->shard;
}

/* The same receipt twice counts once; two attempts of one partition cannot both be right. */
static sft_code gather_receipts(sft_commit *c, const sfti_ds_receipt ***out, size_t *count,
                                sft_error *err) {
    size_t n = c->receipt_count;
    const sfti_ds_receipt **sorted = sfti_arena_array(&c->work, n, sizeof(void *));
    uint32_t *order = sfti_arena_array(&c->work, 2 * (uint64_t)n, sizeof *order);
    if (!sorted || !order) return sfti_fail_memory(err, n * sizeof *order);
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + n, n, receipt_order, c->receipts);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        const sfti_ds_receipt *one = &c->receipts[order[i]];
        const sfti_ds_receipt *last = *count ? sorted[*count - 1] : NULL;
        if (last && receipt_same_place(last, one)) {
            if (sft_span_equal(last->stored, one->stored)) continue;
            return sfti_fail(err, SFT_DATASET_RECEIPT, SFT_NO_OFFSET,
                             "expected one attempt of partition %llu, found %s and %s",
                             (unsigned long long)one->partition, last->name.data,
                             one->name.data);
        }
        sorted[(*count)++] = one;
    }
    *out = sorted;
    return SFT_OK;
}

/* ── Shards as they lie there ── */

static bool source_header(const sft_source *source, uint64_t *header_bytes) {
    char bytes[8];
    sft_error ignored;
    for (size_t at = 0; at < sizeof bytes;) {
        size_t got = 0;
        if (source->read_at(source->ctx, at, bytes + at, sizeof bytes - at, &got, &ignored) ||
            got == 0)
            return false;
        at += got;
    }
    *header_bytes = sfti_get_u64(bytes);
    return true;
}

/* What is there but cannot be read counts as missing: which failure it was does not help. */
static bool receipt_true(const sft_commit *c, const sfti_ds_receipt *r) {
    sft_source source;
    uint64_t header = 0;
    sft_error ignored;
    if (c->storage->open(c->storage->ctx, r->stored.data, &source, &ignored)) return false;
    bool same = source.size == r->bytes && source_header(&source, &header) &&
                header == r->header_bytes;
    if (source.close) source.close(source.ctx);
    return same;
}

static sft_code gather_visible(const sft_commit *c, const sfti_ds_receipt **receipts,
                               size_t count, sft_error *err) {
    size_t missing = 0;
    const sfti_ds_receipt *first = NULL;
    for (size_t i = 0; i < count; i++)
        if (!receipt_true(c, receipts[i])) {
            if (!first) first = receipts[i];
            missing++;
        }
    if (!first) return SFT_OK;
    return sfti_fail(err, SFT_DATASET_SHARD, SFT_NO_OFFSET,
                     "%zu of %zu shards are not visible from here as they were written, the "
                     "first is %s: is the folder shared between hosts?",
                     missing, count, first->stored.data);
}

/* ── A connector's shards ── */

static uint64_t adopted_samples(const sft_commit *c, const sft_file *file) {
    const sft_tensor *t = sft_file_tensor(file, 0);
    if (!t) return 0;
    if (c->options->mode == SFT_DATASET_BATCH) return t->rank ? t->shape[0] : 0;
    size_t columns = c->columns.count;
    if (!columns && c->receipt_count) columns = c->receipts[0].column_count;
    return sft_file_count(file) / (columns ? columns : 1);
}

static sft_code adopt_shard(sft_commit *c, sfti_ds_shard *s, bool forgotten, sft_error *err) {
    sft_file *file = NULL;
    sft_code code =
        sfti_ds_open_shard(c->storage, s->facts.name, &c->how.open, &file, err);
    if (code) return code;
    uint64_t size = sft_file_size(file);
    if (!forgotten && size != s->facts.bytes)
        code = sfti_fail(err, SFT_DATASET_SHARD, SFT_NO_OFFSET,
                         "%s: expected %llu bytes by the manifest, found %llu", s->facts.name,
                         (unsigned long long)s->facts.bytes, (unsigned long long)size);
    s->facts.tensors = sft_file_count(file);
    if (forgotten) {
        s->facts.bytes = size;
        s->facts.samples = s->facts.valid_samples = adopted_samples(c, file);
    }
    s->known = true;
    sft_close(file);
    return code;
}

typedef struct forgotten_list {
    sft_commit *c;
    sfti_ds_shard *shards;
    size_t count, room;
    bool failed;
} forgotten_list;

static bool base_names(const sfti_ds_manifest *base, const char *name) {
    size_t low = 0, high = base->shard_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(base->shards[middle].facts.name, name);
        if (order == 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

static bool forgotten_one(void *ctx, const sft_stored *object) {
    forgotten_list *l = ctx;
    uint64_t file, shard;
    sft_span name = sft_span_cstr(object->name);
    if (object->folder || !sfti_ds_shard_parse(name, &file, &shard) ||
        base_names(&l->c->base, object->name))
        return true;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 16;
        sfti_ds_shard *all = sfti_arena_array(&l->c->work, room, sizeof *all);
        l->failed = !all;
        if (!all) return false;
        if (l->count) memcpy(all, l->shards, l->count * sizeof *all);
        l->shards = all;
        l->room = room;
    }
    char *copy = sfti_arena_take(&l->c->work, name.len + 1);
    l->failed = !copy;
    if (!copy) return false;
    memcpy(copy, object->name, name.len + 1);
    memset(&l->shards[l->count], 0, sizeof *l->shards);
    l->shards[l->count++].facts.name = copy;
    return true;
}

/* Shards that a connector's append left out of its manifest. */
static sft_code adopt_forgotten(sft_commit *c, forgotten_list *l, sft_error *err) {
    sft_code code = c->storage->list(c->storage->ctx, "", forgotten_one, l, err);
    if (l->failed) return sfti_fail_memory(err, l->room * sizeof *l->shards);
    if (code == SFT_OK && l->count && !c->how.adopt_listing)
        return sfti_fail(err, SFT_DATASET_SHARD, SFT_NO_OFFSET,
                         "the manifest does not name %zu shards that are there, the first is %s; "
                         "adopt=listing takes them in",
                         l->count, l->shards[0].facts.name);
    for (size_t i = 0; code == SFT_OK && i < l->count; i++)
        code = adopt_shard(c, &l->shards[i], true, err);
    return code;
}

static sft_code adopt_base(sft_commit *c, forgotten_list *l, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; code == SFT_OK && i < c->base.shard_count; i++)
        if (!c->base.shards[i].known) code = adopt_shard(c, &c->base.shards[i], false, err);
    return code ? code : adopt_forgotten(c, l, err);
}

/* ── The list ── */

static int base_order(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_ds_shard *all = ctx;
    uint64_t x = all[a].facts.first_sample, y = all[b].facts.first_sample;
    return x < y ? -1 : x > y;
}

static sft_code list_base(sft_commit *c, uint64_t *samples, sft_error *err) {
    size_t n = c->base.shard_count;
    uint32_t *order = sfti_arena_array(&c->work, 2 * (uint64_t)n, sizeof *order);
    if (!order) return sfti_fail_memory(err, n * sizeof *order);
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + n, n, base_order, c->base.shards);
    for (size_t i = 0; i < n; i++) {
        commit_shard *to = &c->shards[c->shard_count++];
        to->shard = c->base.shards[order[i]];
        to->stored = to->shard.facts.name;
        to->receipt = NULL;
        uint64_t end = to->shard.facts.first_sample + to->shard.facts.samples;
        if (end > *samples) *samples = end;
    }
    return SFT_OK;
}

static sft_code list_forgotten(sft_commit *c, const forgotten_list *l, uint64_t *samples) {
    for (size_t i = 0; i < l->count; i++) {
        commit_shard *to = &c->shards[c->shard_count++];
        to->shard = l->shards[i];
        to->stored = to->shard.facts.name;
        to->receipt = NULL;
        to->shard.facts.first_sample = *samples;
        *samples += to->shard.facts.samples;
    }
    return SFT_OK;
}

/* The name of a shard in the dataset: that of its receipt, with the file's number counted from
 * `first`, for another append may have come between. */
static const char *list_name(sft_commit *c, const sfti_ds_receipt *r, uint64_t first) {
    if (first == c->job.first) return r->name.data;
    char *name = sfti_arena_take(&c->work, SFTI_DATASET_NAME);
    const char *uuid = r->name.data + r->name.len - strlen(".safetensors") - 36;
    if (name) sfti_ds_shard_name(first + r->partition, r->shard, uuid, name);
    return name;
}

static sft_code list_receipt(sft_commit *c, const sfti_ds_receipt *r, uint64_t first,
                             uint64_t *samples, sft_error *err) {
    commit_shard *to = &c->shards[c->shard_count++];
    memset(to, 0, sizeof *to);
    to->receipt = r;
    to->stored = r->stored.data;
    to->shard.known = true;
    to->shard.facts = (sft_dataset_shard){ list_name(c, r, first), r->bytes,   r->samples,
                                           r->valid_samples,       *samples,   r->tensors,
                                           0,                      r->sha256 };
    if (!to->shard.facts.name) return sfti_fail_memory(err, SFTI_DATASET_NAME);
    if (!sfti_add(*samples, r->samples, samples))
        return sfti_fail(err, SFT_SIZE_OVERFLOW, SFT_NO_OFFSET,
                         "expected samples within 64 bits, found more");
    return SFT_OK;
}

static sft_code list_sources(sft_commit *c, sft_error *err) {
    c->sources = sfti_arena_array(&c->work, c->shard_count, sizeof *c->sources);
    if (!c->sources) return sfti_fail_memory(err, c->shard_count * sizeof *c->sources);
    for (size_t i = 0; i < c->shard_count; i++)
        c->sources[i] =
            (sfti_ds_source){ c->shards[i].stored, c->shards[i].shard.facts.name };
    return SFT_OK;
}

static sft_code list_all(sft_commit *c, const sfti_ds_receipt **receipts, size_t count,
                         const forgotten_list *l, sft_error *err) {
    bool append = c->how.how == SFT_COMMIT_APPEND && c->has_base;
    uint64_t samples = 0, first = c->job.first;
    size_t most = count + (append ? c->base.shard_count + l->count : 0);
    sft_code code = SFT_OK;
    c->shards = sfti_arena_array(&c->work, most, sizeof *c->shards);
    if (!c->shards) return sfti_fail_memory(err, most * sizeof *c->shards);
    if (append) code = list_base(c, &samples, err);
    if (append && code == SFT_OK) code = list_forgotten(c, l, &samples);
    if (append && code == SFT_OK && c->storage->move)
        code = sfti_commit_first(c, &c->base, &first, err);
    if (first < c->job.first) first = c->job.first;
    for (size_t i = 0; code == SFT_OK && i < count; i++)
        code = list_receipt(c, receipts[i], first, &samples, err);
    return code ? code : list_sources(c, err);
}

static sft_code gather_columns(sft_commit *c, const sfti_ds_receipt **receipts, size_t count,
                               sft_error *err) {
    bool told = c->how.how == SFT_COMMIT_APPEND && c->base.ours && c->base.column_count;
    for (size_t i = 0; told && i < count; i++) {
        sft_code code =
            agree_columns(&c->base, receipts[i]->columns, receipts[i]->column_count, err);
        if (code) return code;
    }
    return SFT_OK;
}

sft_code sfti_commit_gather(sft_commit *c, const sft_job *job, sft_error *err) {
    const sfti_ds_receipt **receipts = NULL;
    size_t count = 0;
    forgotten_list l = { c, NULL, 0, 0, false };
    sft_code code = gather_receipts(c, &receipts, &count, err);
    (void)job;
    if (code == SFT_OK) code = gather_visible(c, receipts, count, err);
    if (code == SFT_OK) code = gather_columns(c, receipts, count, err);
    if (code == SFT_OK && c->how.how == SFT_COMMIT_APPEND && c->has_base && !c->base.ours)
        code = adopt_base(c, &l, err);
    return code ? code : list_all(c, receipts, count, &l, err);
}
