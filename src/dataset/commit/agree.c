/* Whether options and columns fit the existing dataset. Tests: test_dataset_commit.c. */
#include "base/error.h"
#include "dataset/commit/commit.h"

#include <string.h>

/* ── Whether rows fit the existing dataset ── */

static sft_code agree_fail(sft_error *err, const char *what, sft_span name, const char *want,
                           const char *have) {
    return sfti_fail(err, SFT_DATASET_DISAGREES,
                     "%s%s%.*s: expected %s as in the dataset, found %s", what, name.len ? " " : "",
                     (int)name.len, name.data, want, have);
}

static const char *agree_text(sft_span text) { return text.data ? text.data : "none"; }

/* ── A connector's manifest has only keys ── */

static bool key_of_column(const sft_commit *c, sft_span key, sft_span column) {
    const sft_span sep = c->options->separator;
    if (c->options->mode == SFT_DATASET_BATCH) return sft_span_equal(key, column);
    if (key.len < sep.len + column.len) return false;
    const char *at = key.data + key.len - column.len - sep.len;
    return memcmp(at, sep.data, sep.len) == 0 &&
           memcmp(at + sep.len, column.data, column.len) == 0;
}

sfti_ds_column *sfti_commit_column(const sft_commit *c, sfti_ds_column *columns, size_t count,
                                   sft_span key) {
    for (size_t i = 0; i < count; i++)
        if (key_of_column(c, key, columns[i].name)) return &columns[i];
    return NULL;
}

/* In batch mode the keys are the columns, with the samples as first dimension. False: the dtype is
 * none that we know. */
static bool agree_as_column(const sfti_ds_entry *was, sfti_ds_column *out) {
    *out = (sfti_ds_column){ .name = was->key, .has_shape = was->rank > 0 };
    if (was->rank) out->rank = was->rank - 1, out->shape = was->shape + 1;
    out->has_dtype = sft_dtype_parse(was->dtype, &out->dtype);
    return out->has_dtype;
}

static sft_code agree_entry(const sfti_ds_entry *was, const sfti_ds_column *is,
                            sft_error *err) {
    sfti_ds_column column;
    bool known = agree_as_column(was, &column);
    if (is->has_shape && was->rank == 0)
        return agree_fail(err, "column", is->name, "a tensor without samples", "samples");
    if (is->has_dtype && !known)
        return agree_fail(err, "column", is->name, was->dtype.data,
                          sft_dtype_describe(is->dtype)->name);
    return sfti_ds_column_agrees(is, &column, err);
}

sft_code sfti_commit_known(sft_commit *c, const sfti_ds_manifest *base,
                           const sfti_ds_column **out, size_t *count, sft_error *err) {
    *out = base->columns;
    *count = base->column_count;
    if (base->ours || c->options->mode != SFT_DATASET_BATCH) return SFT_OK;
    sfti_ds_column *all = sfti_arena_array(&c->arena, base->entry_count, sizeof *all);
    if (!all) return sfti_fail_memory(err, base->entry_count * sizeof *all);
    for (size_t i = 0; i < base->entry_count; i++)
        (void)agree_as_column(&base->entries[i], &all[i]);
    *out = all;
    *count = base->entry_count;
    return SFT_OK;
}

sft_code sfti_commit_agree(const sft_commit *c, const sfti_ds_manifest *base,
                           const sfti_ds_column *columns, size_t count, sft_error *err) {
    const sft_dataset_options *o = c->options;
    sft_span none = { "", 0 };
    sft_code code = sfti_ds_manifest_totalled(base, err);
    if (code) return code;
    if (base->mode && base->mode != o->mode)
        return agree_fail(err, "the mode", none, sfti_ds_mode_name(base->mode),
                          sfti_ds_mode_name(o->mode));
    if (o->mode == SFT_DATASET_KV && base->ours) {
        if (!sft_span_equal(o->name_col, base->name_col))
            return agree_fail(err, "name_col", none, agree_text(base->name_col),
                              o->name_col.data);
        if (!sft_span_equal(o->separator, base->separator))
            return agree_fail(err, "kv_separator", none, agree_text(base->separator),
                              o->separator.data);
    }
    if (count == 0) return SFT_OK;
    if (base->ours && base->column_count == 0) return SFT_OK;
    if (base->ours)
        return sfti_ds_columns_agree(base->columns, base->column_count, columns, count, o->merges,
                                     err);

    const bool batch = c->options->mode == SFT_DATASET_BATCH;
    for (size_t i = 0; i < base->entry_count; i++) {
        const sfti_ds_column *is = NULL;
        for (size_t k = 0; k < count && !is; k++)
            if (key_of_column(c, base->entries[i].key, columns[k].name)) is = &columns[k];
        if (!is) return sfti_ds_column_alone(err, base->entries[i].key, true);
        code = batch ? agree_entry(&base->entries[i], is, err) : SFT_OK;
        if (code) return code;
    }
    for (size_t k = 0; batch && base->entry_count && k < count; k++) {
        bool was = false;
        for (size_t i = 0; i < base->entry_count && !was; i++)
            was = sft_span_equal(base->entries[i].key, columns[k].name);
        if (!was) return sfti_ds_column_alone(err, columns[k].name, false);
    }
    return SFT_OK;
}
