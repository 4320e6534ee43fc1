/* Receipts and the shards of the base as one list, checked against the files. Tests:
 * test_dataset_commit.c, test_dataset_hostile.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"
#include "base/order.h"
#include "dataset/commit/commit.h"

#include <string.h>

/* ── Shards that are there ── */

static bool numbers_each(void *ctx, const sft_stored *object) {
    commit_numbers *l = ctx;
    uint64_t file, shard;
    if (object->folder || !sfti_ds_shard_parse(sft_span_cstr(object->name), &file, &shard))
        return true;
    l->any = true;
    if (file >= l->first && file < UINT64_MAX) l->first = file + 1;
    return true;
}

sft_code sfti_commit_numbers(const sft_commit *c, commit_numbers *out, sft_error *err) {
    *out = (commit_numbers){ 0, false };
    return sfti_call(c->storage, list, "", numbers_each, out, err);
}

sft_code sfti_commit_first(const sft_commit *c, const sfti_ds_manifest *base, uint64_t *first,
                           sft_error *err) {
    commit_numbers l = { 0, false };
    /* A list of segments says it: the folder need not be listed. */
    bool listed = !base || !base->segmented;
    sft_code code = listed ? sfti_commit_numbers(c, &l, err) : SFT_OK;
    *first = l.first;
    if (base && base->sums.next_file > *first) *first = base->sums.next_file;
    return code;
}

/* ── Receipts in order ── */

static int receipt_order(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_ds_receipt *all = ctx, *x = &all[a], *y = &all[b];
    if (x->partition != y->partition) return x->partition < y->partition ? -1 : 1;
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    return strcmp(x->stored.data, y->stored.data);
}

/* The same receipt twice counts once; two attempts of one partition are an error, and so are shards
 * that do not lie there as they were written. */
static sft_code gather_receipts(sft_commit *c, const sfti_ds_receipt ***out, size_t *count,
                                sft_error *err) {
    size_t n = c->receipt_count, missing = 0;
    const sfti_ds_receipt *first = NULL;
    const sfti_ds_receipt **sorted = sfti_arena_array(&c->work, n, sizeof(void *));
    const uint32_t *order = sfti_arena_sorted(&c->work, n, receipt_order, c->receipts);
    if (!sorted || !order) return sfti_fail_memory(err, n * sizeof *order);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        const sfti_ds_receipt *one = &c->receipts[order[i]];
        const sfti_ds_receipt *last = *count ? sorted[*count - 1] : NULL;
        if (last && last->partition == one->partition && last->shard == one->shard) {
            if (sft_span_equal(last->stored, one->stored)) continue;
            return sfti_fail(err, SFT_DATASET_RECEIPT,
                             "expected one attempt of partition %llu, found %s and %s",
                             (unsigned long long)one->partition, last->name.data, one->name.data);
        }
        sorted[(*count)++] = one;
    }
    *out = sorted;

    for (size_t i = 0; i < *count; i++) {
        const sfti_ds_receipt *r = sorted[i];
        sft_source source;
        uint64_t header = 0;
        sft_code code = sfti_call(c->storage, open, r->stored.data, &source, err);
        bool there = !code, same = there && source.size == r->bytes;
        if (same) code = sfti_ds_header_bytes(&source, &header, err);
        if (there) sft_source_close(&source);
        if (code && (there || code != SFT_NOT_FOUND)) return code;
        if (!(same && header == r->header_bytes) && missing++ == 0) first = r;
    }
    if (!first) return SFT_OK;
    return sfti_fail(err, SFT_DATASET_SHARD, "%zu of %zu shards are missing or not as they were "
                     "written, first %s: is the folder shared between hosts?", missing, *count,
                     first->stored.data);
}

static sft_code gather_unlike(const sfti_ds_column *column, const sfti_ds_receipt *one,
                              const sfti_ds_receipt *other, sft_error *err) {
    return sfti_fail(err, SFT_DATASET_DISAGREES,
                     "column %.*s: expected one type in all shards, found others in %s and %s",
                     (int)column->name.len, column->name.data, one->name.data,
                     other ? other->name.data : "the schema");
}

/* ── A connector's shards ── */

/* Joins its tensors' dtypes and shapes into the columns of the next manifest. */
static sft_code adopt_columns(sft_commit *c, const sft_file *file, const char *name,
                              sft_error *err) {
    bool batch = c->options->mode == SFT_DATASET_BATCH;
    for (size_t i = 0; c->next.column_count && i < sft_file_tensor_count(file); i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        sfti_ds_column *column =
            sfti_commit_column(c, c->next.columns, c->next.column_count, t->name);
        if (!column || (batch && t->rank == 0))
            return sfti_fail_tensor(err, SFT_DATASET_DISAGREES, SFT_NO_OFFSET, t->name,
                                    "%s: expected tensors of the columns that are written, "
                                    "found %.*s",
                                    name, (int)t->name.len, t->name.data);
        sfti_ds_column is = { .has_dtype = true, .has_shape = true, .dtype = t->dtype,
                              .rank = t->rank - batch, .shape = t->shape + batch };
        sfti_ds_column_join(column, &is, c->options->mode);
    }
    return SFT_OK;
}

static bool adopted_number(const sft_file *file, const char *key, uint64_t *out) {
    sft_span text;
    return sft_file_metadata_get_cstr(file, key, &text) && sfti_text_uint(text, out);
}

/* The facts of a shard that no manifest names. One that we wrote may belong to a commit in
 * progress, but not where every commit keeps its shards in its job's folder until it holds the
 * lock. */
static sft_code adopt_facts(const sft_commit *c, const sft_file *file, sft_dataset_shard *facts,
                            sft_error *err) {
    const sft_tensor *t = sft_file_tensor_at(file, 0);
    sft_span mark;
    size_t columns = c->columns.count;
    if (!columns && c->receipt_count) columns = c->receipts[0].column_count;
    facts->bytes = sft_file_size(file);
    if (!t) facts->samples = 0;
    else if (c->options->mode == SFT_DATASET_BATCH) facts->samples = t->rank ? t->shape[0] : 0;
    else facts->samples = sft_file_tensor_count(file) / (columns ? columns : 1);
    facts->valid_samples = facts->samples;
    if (!sft_file_metadata_get_cstr(file, SFTI_DATASET_MARK, &mark)) return SFT_OK;

    if (adopted_number(file, "samples", &facts->samples)) facts->valid_samples = facts->samples;
    (void)adopted_number(file, "valid_samples", &facts->valid_samples);
    if (facts->valid_samples > facts->samples)
        return sfti_fail(err, SFT_DATASET_SHARD,
                         "%s: expected at most %llu valid samples, found %llu", facts->name,
                         (unsigned long long)facts->samples,
                         (unsigned long long)facts->valid_samples);
    bool locks = c->swap.guard == SFTI_GUARD_LOCK && sfti_can(c->storage, move);
    if (c->swap.single || locks) return SFT_OK;
    return sfti_fail(err, SFT_DATASET_UNGUARDED, "%s: expected a shard that an append did not "
                     "name, found one that may belong to a commit in progress", facts->name);
}

static sft_code adopt_shard(sft_commit *c, sfti_ds_shard *s, bool forgotten, sft_error *err) {
    sft_file *file = NULL;
    sft_code code =
        sfti_ds_open_shard(c->storage, s->facts.name, &c->open, &file, err);
    if (code) return code;
    uint64_t size = sft_file_size(file);
    if (!forgotten && size != s->facts.bytes)
        code = sfti_fail(err, SFT_DATASET_SHARD,
                         "%s: expected %llu bytes by the manifest, found %llu", s->facts.name,
                         (unsigned long long)s->facts.bytes, (unsigned long long)size);
    if (!code) code = adopt_columns(c, file, s->facts.name, err);
    if (!code && forgotten) code = adopt_facts(c, file, &s->facts, err);
    s->facts.tensors = sft_file_tensor_count(file);
    s->known = true;
    sft_close(file);
    return code;
}

typedef struct forgotten_list {
    sft_commit *c;
    sfti_ds_shard *shards;
    size_t count, cap;
    bool failed;
} forgotten_list;

static bool forgotten_one(void *ctx, const sft_stored *object) {
    forgotten_list *l = ctx;
    uint64_t file, shard;
    sft_span name = sft_span_cstr(object->name);
    if (object->folder || !sfti_ds_shard_parse(name, &file, &shard) ||
        sfti_ds_manifest_names(&l->c->base, object->name))
        return true;
    sfti_ds_shard *all =
        sfti_arena_grow(&l->c->work, l->shards, l->count, 1, &l->cap, sizeof *all);
    if (all) l->shards = all;
    char *copy = sfti_arena_copy(&l->c->work, name.data, name.len);
    l->failed = !all || !copy;
    if (!l->failed) l->shards[l->count++] = (sfti_ds_shard){ .facts = { .name = copy } };
    return !l->failed;
}

/* A connector's shards: those that its manifest names, and those that its append did not add. */
static sft_code adopt_all(sft_commit *c, forgotten_list *l, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < c->base.shard_count; i++)
        if (!c->base.shards[i].known) code = adopt_shard(c, &c->base.shards[i], false, err);
    if (code) return code;
    code = sfti_call(c->storage, list, "", forgotten_one, l, err);
    if (l->failed) return sfti_fail_memory(err, l->cap * sizeof *l->shards);
    if (!code && l->count && !c->how.adopt_listing) {
        code = sfti_fail(err, SFT_DATASET_SHARD,
                         "the manifest does not name %zu of the shards in the folder, first %s",
                         l->count, l->shards[0].facts.name);
        sfti_hint(err, SFT_HINT_ADOPT);
    }
    for (size_t i = 0; !code && i < l->count; i++)
        code = adopt_shard(c, &l->shards[i], true, err);
    return code;
}

/* ── The list ── */

static commit_shard *shard_put(sft_commit *c, const sfti_ds_shard *shard) {
    commit_shard *to = &c->shards[c->shard_count++];
    *to = (commit_shard){ shard->facts.name, *shard, NULL, shard->facts.shadowed };
    to->shard.facts.shadowed = 0; /* until it is counted */
    return to;
}

static sft_code list_base(sft_commit *c, uint64_t *samples, sft_error *err) {
    size_t n = c->base.shard_count;
    uint64_t before = *samples;
    const uint32_t *order = sfti_arena_sorted(&c->work, n, sfti_ds_by_sample, c->base.shards);
    if (!order) return sfti_fail_memory(err, n * sizeof *order);
    for (size_t i = 0; i < n; i++) {
        sft_dataset_shard *facts = &shard_put(c, &c->base.shards[order[i]])->shard.facts;
        uint64_t end = 0;
        if (!sfti_add(facts->first_sample, before, &facts->first_sample) ||
            !sfti_add(facts->first_sample, facts->samples, &end))
            return sfti_ds_overflow("samples", err);
        if (end > *samples) *samples = end;
    }
    return SFT_OK;
}

/* Shards that an append did not name are older than those it named. */
static sft_code list_forgotten(sft_commit *c, const forgotten_list *l, uint64_t *samples,
                               sft_error *err) {
    const uint32_t *order = sfti_arena_sorted(&c->work, l->count, sfti_ds_by_name, l->shards);
    if (!order) return sfti_fail_memory(err, l->count * sizeof *order);
    for (size_t i = 0; i < l->count; i++) {
        sft_dataset_shard *facts = &shard_put(c, &l->shards[order[i]])->shard.facts;
        facts->first_sample = *samples;
        if (!sfti_add(*samples, facts->samples, samples))
            return sfti_ds_overflow("samples", err);
    }
    return SFT_OK;
}

sft_code sfti_commit_gather(sft_commit *c, sft_error *err) {
    const sfti_ds_receipt **receipts = NULL;
    size_t count = 0;
    forgotten_list l = { c, NULL, 0, 0, false };
    sft_code code = gather_receipts(c, &receipts, &count, err);
    const bool append = c->how.mode == SFT_COMMIT_APPEND && c->has_base;
    /* All tasks must have the columns of the first, of one kind, and those of the existing
     * dataset. All are compared with one that varies most. */
    for (size_t i = 0; !code && i < count; i++) {
        const sfti_ds_receipt *r = receipts[i];
        bool same = r->column_count == receipts[0]->column_count;
        for (size_t k = 0; same && k < r->column_count; k++)
            same = sft_span_equal(r->columns[k].name, receipts[0]->columns[k].name);
        if (!same)
            return sfti_fail(err, SFT_DATASET_DISAGREES,
                             "expected the same columns in all shards, found others in %s and %s",
                             receipts[0]->name.data, r->name.data);
        if (append) code = sfti_commit_agree(c, &c->base, r->columns, r->column_count, err);
    }
    for (size_t k = 0; !code && count && k < receipts[0]->column_count; k++) {
        const sfti_ds_receipt *like = receipts[0];
        const sfti_ds_column *asked =
            sfti_ds_column_find(c->columns.column, c->columns.count, like->columns[k].name);
        for (size_t i = 0; i < count; i++)
            if (receipts[i]->columns[k].encoding > like->columns[k].encoding) like = receipts[i];
        for (size_t i = 0; i < count; i++)
            if (receipts[i] != like &&
                !sfti_ds_column_kin(&like->columns[k], &receipts[i]->columns[k]))
                return gather_unlike(&like->columns[k], like, receipts[i], err);
        if (asked && !sfti_ds_column_asked(asked, &like->columns[k]))
            return gather_unlike(&like->columns[k], like, NULL, err);
    }
    if (!code && append && !c->base.ours) code = adopt_all(c, &l, err);
    if (code) return code;

    uint64_t samples = 0, first = c->job.first;
    size_t most = count + (append ? c->base.shard_count + l.count : 0);
    if (c->apart) samples = c->base.sums.rows;
    c->shards = sfti_arena_array(&c->work, most, sizeof *c->shards);
    if (!c->shards) return sfti_fail_memory(err, most * sizeof *c->shards);
    if (append) code = list_forgotten(c, &l, &samples, err);
    if (append && !code) code = list_base(c, &samples, err);
    if (append && !code && sfti_can(c->storage, move))
        code = sfti_commit_first(c, &c->base, &first, err);
    if (first < c->job.first) first = c->job.first;
    if (code) return code;
    /* The final name of a shard is that of its receipt, with file numbers from `first` on, because
     * another append may have been committed since the job began. Listed twice, it makes the
     * manifest invalid; an overwrite would remove it as an old one. */
    for (size_t i = 0; i < count; i++) {
        const sfti_ds_receipt *r = receipts[i];
        const char *name = r->name.data;
        uint64_t file;
        if (!sfti_add(first, r->partition, &file))
            return sfti_ds_overflow("numbers of files", err);
        if (first != c->job.first) {
            char *renamed = sfti_arena_take(&c->work, SFTI_DATASET_NAME);
            if (!renamed) return sfti_fail_memory(err, SFTI_DATASET_NAME);
            sfti_ds_shard_name(file, r->shard, name + r->name.len - strlen(".safetensors") - 36,
                               renamed);
            name = renamed;
        }
        if (c->has_base && (strcmp(c->base.commit, c->job.uuid) == 0 ||
                            sfti_ds_manifest_names(&c->base, name)))
            return sfti_fail(err, SFT_EXISTS, "%s: expected a shard that the dataset lacks: this "
                             "job was committed before", name);
        const sft_dataset_shard facts = { name,    r->bytes,   r->samples, r->valid_samples,
                                          samples, r->tensors, 0,          r->sha256, 0 };
        c->shards[c->shard_count++] = (commit_shard){ r->stored.data, { facts, true, 0 }, r, 0 };
        if (!sfti_add(samples, r->samples, &samples)) return sfti_ds_overflow("samples", err);
    }
    c->sources = sfti_arena_array(&c->work, c->shard_count, sizeof *c->sources);
    if (!c->sources) return sfti_fail_memory(err, c->shard_count * sizeof *c->sources);
    for (size_t i = 0; i < c->shard_count; i++)
        c->sources[i] = (sfti_ds_source){
            c->shards[i].stored, c->shards[i].shard.facts.name,
            c->shards[i].receipt ? NULL : sfti_ds_mask_find(&c->base.masks, c->shards[i].stored)
        };
    return SFT_OK;
}
