/* The columns of a commit's manifest, and where they are null. Tests: test_dataset_add.c,
 * test_dataset_add.py. */
#include "base/checked.h"
#include "base/error.h"
#include "dataset/commit/commit.h"

#include <string.h>

static bool column_is_new(const sft_commit *c, const sfti_ds_column *column) {
    return !sfti_ds_column_find(c->base.columns, c->base.column_count, column->name);
}

bool sfti_commit_widens(const sft_commit *c) {
    bool widens = false;
    for (size_t k = 0; c->extends && c->receipt_count && k < c->receipts[0].column_count; k++)
        widens = widens || column_is_new(c, &c->receipts[0].columns[k]);
    return widens;
}

/* Rows of a dataset that has such columns already are told apart until one replaces another's
 * tensors. */
sft_code sfti_commit_keys(const sft_commit *c, const sfti_ds_manifest *base,
                          const sfti_ds_column *columns, size_t count, sft_error *err) {
    const sft_dataset_options *o = c->options;
    const bool has = c->how.mode == SFT_COMMIT_APPEND && base->ours && base->column_count;
    if (o->mode != SFT_DATASET_KV || (has && !o->last_win)) return SFT_OK;
    return sfti_ds_keys_apart(columns, count, o->separator, err);
}

/* Lists of a dataset without rows become those of its first ones. */
static void column_fill(sfti_ds_column *to, const sfti_ds_column *first) {
    const bool optional = to->optional, nullable = to->nullable;
    *to = *first;
    to->optional = optional;
    to->nullable = to->nullable || nullable;
}

/* Those of the base, then new ones; each as all receipts have it. */
sft_code sfti_commit_columns(sft_commit *c, sft_error *err) {
    const sfti_ds_column *from = c->columns.column;
    const sfti_ds_receipt *first = c->receipt_count ? c->receipts : NULL;
    size_t count = c->columns.count, fresh = 0;
    if (c->extends) from = c->base.columns, count = c->base.column_count;
    else if (first) from = first->columns, count = first->column_count;
    if (c->extends && first) fresh = first->column_count;
    sfti_ds_column *columns = sfti_arena_array(&c->work, (uint64_t)count + fresh, sizeof *columns);
    if (!columns) return sfti_fail_memory(err, count * sizeof *columns);
    if (count) memcpy(columns, from, count * sizeof *columns);
    for (size_t k = 0; fresh && !c->base.sums.shards && k < count; k++) {
        const sfti_ds_column *is =
            sfti_ds_column_find(first->columns, first->column_count, columns[k].name);
        if (is && sfti_ds_column_open(&columns[k])) column_fill(&columns[k], is);
    }
    size_t all = count;
    for (size_t k = 0; k < fresh; k++) {
        if (!column_is_new(c, &first->columns[k])) continue;
        columns[all] = first->columns[k];
        columns[all++].optional = true;
    }
    /* Where the columns are the first receipt's own, it is not joined with itself. */
    const size_t own = first && from == first->columns;
    for (size_t i = own; i < c->receipt_count; i++)
        for (size_t k = 0; k < all; k++) {
            const sfti_ds_column *other = sfti_ds_column_find(
                c->receipts[i].columns, c->receipts[i].column_count, columns[k].name);
            if (other) sfti_ds_column_join(&columns[k], other, c->options->mode);
        }
    c->next.columns = columns;
    c->next.column_count = all;
    sft_code code = all > count ? sfti_ds_columns_apart(columns, all, count, err) : SFT_OK;
    return code ? code : sfti_commit_keys(c, &c->base, columns, all, err);
}

/* An index of tensors would lack those of other files. */
static sft_code places_unindexed(const sft_commit *c, const sfti_ds_place *all, size_t count,
                                 sft_error *err) {
    for (size_t i = 0; c->indexed && i < count; i++)
        if (all[i].file)
            return sfti_fail(err, SFT_OPTION_VALUE, "option generate_index: expected false for a "
                             "dataset with added columns, which a compaction puts into its shards");
    return SFT_OK;
}

/* A column in these shards, those with receipts or the others, is nowhere. */
static sft_code places_nowhere(sft_commit *c, sfti_ds_column *column, bool fresh,
                               sfti_ds_place *all, size_t *count, sft_error *err) {
    const char *name = sfti_arena_copy(&c->work, column->name.data, column->name.len);
    if (!name) return sfti_fail_memory(err, column->name.len);
    const size_t before = *count;
    for (size_t i = 0; i < c->shard_count; i++)
        if ((c->shards[i].receipt != NULL) == fresh)
            all[(*count)++] = (sfti_ds_place){ c->shards[i].shard.facts.name, name, NULL, 0, NULL };
    if (*count == before) return SFT_OK;
    column->nullable = true;
    return sfti_ds_column_absent(column, err);
}

sft_code sfti_commit_places(sft_commit *c, sft_error *err) {
    sfti_ds_manifest *m = &c->next;
    m->places = c->base.places;
    const sfti_ds_place *known = m->places.place;
    size_t count = known ? (size_t)m->places.count : 0;
    if (!c->extends || !c->receipt_count || c->options->mode != SFT_DATASET_BATCH)
        return places_unindexed(c, known, count, err);
    const sfti_ds_receipt *first = c->receipts;
    const size_t old = c->base.column_count;
    uint64_t most = 0, shards = c->shard_count;
    bool lacks = m->column_count > old;
    for (size_t k = 0; k < old; k++)
        lacks = lacks || !sfti_ds_column_find(first->columns, first->column_count,
                                              m->columns[k].name);
    if (!lacks) return places_unindexed(c, known, count, err);
    sft_code code = c->apart ? sfti_ds_places_read(c->storage, &c->work, &c->base.places, err)
                             : SFT_OK;
    if (code) return code;
    known = c->base.places.place;
    count = known ? (size_t)c->base.places.count : 0;
    if (!sfti_mul(m->column_count, shards, &most) || !sfti_add(most, count, &most))
        return sfti_fail_memory(err, SIZE_MAX);
    sfti_ds_place *all = sfti_arena_array(&c->work, most, sizeof *all);
    if (!all) return sfti_fail_memory(err, SIZE_MAX);
    if (count) memcpy(all, known, count * sizeof *all);
    for (size_t k = 0; !code && k < m->column_count; k++) {
        sfti_ds_column *column = &m->columns[k];
        const bool has =
            sfti_ds_column_find(first->columns, first->column_count, column->name) != NULL;
        if (k < old && has) continue;
        code = places_nowhere(c, column, k < old, all, &count, err);
    }
    if (!code) code = sfti_ds_uuid(c->attempt, err);
    if (!code)
        code = sfti_ds_places_make(all, count, c->attempt, &c->alloc, &c->places, &m->places, err);
    return code ? code : places_unindexed(c, all, count, err);
}
