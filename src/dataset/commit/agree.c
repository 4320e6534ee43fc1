#include "base/error.h"
#include "dataset/commit/commit.h"

#include <string.h>

/* ── Whether rows fit the existing dataset ── */

static sft_code agree_fail(sft_error *err, const char *what, sft_span name, const char *want,
                           const char *have) {
    return sfti_fail(err, SFT_DATASET_DISAGREES, SFT_NO_OFFSET,
                     "%s%s%.*s: expected %s as in the dataset, found %s", what,
                     name.len ? " " : "", (int)name.len, name.data, want, have);
}

static const char *agree_text(sft_span text) { return text.data ? text.data : "none"; }

static sft_code agree_shape(sft_error *err, const sfti_ds_column *is, uint32_t rank,
                            const uint64_t *shape) {
    char want[SFTI_SHAPE_TEXT], have[SFTI_SHAPE_TEXT];
    sfti_ds_shape_text(shape, rank, want);
    sfti_ds_shape_text(is->shape, is->rank, have);
    return sfti_fail(err, SFT_DATASET_DISAGREES, SFT_NO_OFFSET,
                     "column %.*s: expected samples of shape %s as in the dataset, found %s",
                     (int)is->name.len, is->name.data, want, have);
}

static sft_code agree_name(sft_error *err, sft_span name, bool there) {
    return sfti_fail(err, SFT_DATASET_DISAGREES, SFT_NO_OFFSET,
                     there ? "expected the column %.*s as in the dataset, found none"
                           : "expected only columns of the dataset, found %.*s",
                     (int)name.len, name.data);
}

static const char *agree_dtype(const sfti_ds_column *c) {
    return sft_dtype_describe(c->dtype)->name;
}

static sft_code agree_column(const sfti_ds_column *is, const sfti_ds_column *was,
                             sft_error *err) {
    if (is->has_dtype && was->has_dtype && is->dtype != was->dtype)
        return agree_fail(err, "column", is->name, agree_dtype(was), agree_dtype(is));
    if (!is->has_shape || !was->has_shape) return SFT_OK;
    if (sfti_ds_shape_same(is->shape, is->rank, was->shape, was->rank)) return SFT_OK;
    return agree_shape(err, is, was->rank, was->shape);
}

static sft_code agree_columns(const sfti_ds_manifest *base, const sfti_ds_column *columns,
                              size_t count, sft_error *err) {
    for (size_t i = 0; i < count; i++) {
        const sfti_ds_column *was =
            sfti_ds_column_find(base->columns, base->column_count, columns[i].name);
        sft_code code = was ? agree_column(&columns[i], was, err)
                            : agree_name(err, columns[i].name, false);
        if (code) return code;
    }
    for (size_t i = 0; i < base->column_count; i++)
        if (!sfti_ds_column_find(columns, count, base->columns[i].name))
            return agree_name(err, base->columns[i].name, true);
    return SFT_OK;
}

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
    sfti_ds_column *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (key_of_column(c, key, columns[i].name) &&
            (!found || columns[i].name.len > found->name.len))
            found = &columns[i];
    return found;
}

/* In batch mode the keys are the columns, with the samples as first dimension. */
static sft_code agree_entry(const sfti_ds_entry *was, const sfti_ds_column *is,
                            sft_error *err) {
    if (is->has_dtype && !sft_span_equal(was->dtype, sft_span_cstr(agree_dtype(is))))
        return agree_fail(err, "column", is->name, was->dtype.data, agree_dtype(is));
    if (!is->has_shape) return SFT_OK;
    if (was->rank == 0)
        return agree_fail(err, "column", is->name, "a tensor without samples", "samples");
    if (sfti_ds_shape_same(was->shape + 1, was->rank - 1, is->shape, is->rank)) return SFT_OK;
    return agree_shape(err, is, was->rank - 1, was->shape + 1);
}

static sft_code agree_keys(const sft_commit *c, const sfti_ds_manifest *base,
                           const sfti_ds_column *columns, size_t count, sft_error *err) {
    const bool batch = c->options->mode == SFT_DATASET_BATCH;
    for (size_t i = 0; i < base->entry_count; i++) {
        const sfti_ds_column *is = NULL;
        for (size_t k = 0; k < count && !is; k++)
            if (key_of_column(c, base->entries[i].key, columns[k].name)) is = &columns[k];
        if (!is) return agree_name(err, base->entries[i].key, true);
        sft_code code = batch ? agree_entry(&base->entries[i], is, err) : SFT_OK;
        if (code) return code;
    }
    for (size_t k = 0; batch && base->entry_count && k < count; k++) {
        bool was = false;
        for (size_t i = 0; i < base->entry_count && !was; i++)
            was = sft_span_equal(base->entries[i].key, columns[k].name);
        if (!was) return agree_name(err, columns[k].name, false);
    }
    return SFT_OK;
}

sft_code sfti_commit_agree(const sft_commit *c, const sfti_ds_manifest *base,
                           const sfti_ds_column *columns, size_t count, sft_error *err) {
    const sft_dataset_options *o = c->options;
    sft_span none = { "", 0 };
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
    if (base->ours) return base->column_count ? agree_columns(base, columns, count, err) : SFT_OK;
    return agree_keys(c, base, columns, count, err);
}

/* ── Columns of the next manifest ── */

sft_code sfti_commit_columns(sft_commit *c, sft_error *err) {
    const sfti_ds_column *from = c->columns.column;
    size_t count = c->columns.count;
    if (c->how.mode == SFT_COMMIT_APPEND && c->base.ours && c->base.column_count)
        from = c->base.columns, count = c->base.column_count;
    else if (c->receipt_count)
        from = c->receipts[0].columns, count = c->receipts[0].column_count;
    sfti_ds_column *columns = sfti_arena_array(&c->work, count, sizeof *columns);
    if (!columns) return sfti_fail_memory(err, count * sizeof *columns);
    if (count) memcpy(columns, from, count * sizeof *columns);
    for (size_t i = 0; i < c->receipt_count; i++)
        for (size_t k = 0; k < count; k++) {
            const sfti_ds_column *other = sfti_ds_column_find(
                c->receipts[i].columns, c->receipts[i].column_count, columns[k].name);
            if (other) sfti_ds_column_join(&columns[k], other);
        }
    c->next.columns = columns;
    c->next.column_count = count;
    return SFT_OK;
}
