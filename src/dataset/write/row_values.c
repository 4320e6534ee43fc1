/* Values of rows, read from a batch. Tests: test_dataset_shards.c. */
#include "base/error.h"
#include "base/utf8.h"
#include "dataset/write/writer.h"
#include "safetensors_convert.h"

#include <stdio.h>
#include <string.h>

/* ── Messages ── */

sft_code sfti_shard_row_fail(sft_error *err, sft_code code, sft_span column, uint64_t row,
                             const sft_error *inner) {
    return sfti_fail(err, code, "column \"%.*s\", row %llu: %s", SFTI_CLIP(column, 100),
                     (unsigned long long)row, inner->message);
}

void sfti_shard_element(sft_error *inner, uint64_t element) {
    static const char mark[] = " in element ";
    char *at = strstr(inner->message, mark);
    if (!at) return;
    size_t cap = sizeof inner->message - (size_t)(at - inner->message);
    (void)snprintf(at, cap, "%s%llu", mark, (unsigned long long)element);
}

/* ── Whether a batch is of the schema ── */

sft_code sfti_shard_check(sft_shard_writer *w, const struct ArrowArray *batch, sft_error *err) {
    bool good = batch->n_children >= 0 && (size_t)batch->n_children == w->children &&
                batch->length >= 0 && batch->offset >= 0 && (!w->children || batch->children) &&
                (batch->n_buffers <= 0 || batch->buffers);
    for (size_t i = 0; good && i < w->children; i++) good = sfti_arrow_has_child(batch, i);
    if (!good)
        return sfti_misuse(err, "expected a struct array of the schema's %llu columns, found "
                           "another", (unsigned long long)w->children);
    for (uint64_t i = 0; batch->null_count && i < (uint64_t)batch->length; i++)
        if (sfti_arrow_null(batch, i))
            return sfti_fail(err, SFT_ROW_NULL, "row %llu: expected a row, found null",
                             (unsigned long long)(w->rows + i));
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < w->columns.count; k++) {
        const shard_column *c = &w->column[k];
        const struct ArrowArray *child = batch->children[c->asked->child];
        if (c->asked->form == SFTI_FORM_TENSOR)
            code = sfti_arrow_tensor_check(&c->tensor, child, err);
        else code = sfti_arrow_check(&c->type, child, err);
    }
    if (!code && w->columns.mode == SFT_DATASET_KV)
        code = sfti_arrow_check(&w->kv.key, batch->children[w->columns.name_child], err);
    return code;
}

/* ── Values ── */

sft_code sfti_shard_agrees(const shard_column *c, sft_dtype dtype, uint32_t rank,
                           const uint64_t *shape, sft_error *err) {
    sfti_ds_column is = { .name = c->asked->name, .has_dtype = true, .has_shape = true,
                          .dtype = dtype, .rank = rank, .shape = shape };
    return c->was ? sfti_ds_column_agrees(&is, c->was, err) : SFT_OK;
}

static sft_code value_shape_fail(const shard_value *v, const sfti_ds_column *asked,
                                 sft_error *err) {
    char want[SFTI_SHAPE_TEXT], have[SFTI_SHAPE_TEXT];
    sfti_ds_shape_text(asked->shape, asked->rank, want);
    sfti_ds_shape_text(v->shape, v->rank, have);
    return sfti_fail(err, SFT_ROW_SHAPE, "expected shape %s, found %s", want, have);
}

static sft_code value_array(const shard_column *c, const struct ArrowArray *array, uint64_t i,
                            uint64_t most, sft_buffer *loose, shard_value *v, sft_error *err) {
    sft_code code = sfti_arrow_elements(&c->type, array, i, most, loose, &v->buffer, err);
    if (code) return code;
    v->from = c->asked->from;
    v->rows = v->buffer.rows;
    v->elements = v->buffer.elements / v->rows;
    v->len = v->buffer.elements * c->type.bytes; /* they are in memory: no overflow */
    v->rank = v->buffer.rank;
    v->shape = v->buffer.shape;
    /* Lists get the requested shape, or that of their type. */
    if (!c->asked->has_shape) return SFT_OK;
    if (v->elements != c->elements) return value_shape_fail(v, c->asked, err);
    v->rank = c->asked->rank;
    v->shape = c->asked->shape;
    return SFT_OK;
}

static sft_code value_tensor(const shard_column *c, const struct ArrowArray *array, uint64_t i,
                             sft_buffer *scratch, shard_value *v, sft_error *err) {
    sft_code code =
        sfti_arrow_tensor_row(&c->tensor, array, i, scratch, &v->from, &v->buffer, err);
    if (code) return code;
    v->rows = 1;
    v->elements = v->buffer.elements;
    v->rank = v->buffer.rank;
    v->shape = v->buffer.shape;
    v->len = v->elements * sft_dtype_describe(v->from)->bits / 8; /* as measured there */
    if (c->asked->has_shape &&
        !sfti_ds_shape_same(v->shape, v->rank, c->asked->shape, c->asked->rank))
        return value_shape_fail(v, c->asked, err);
    if (!c->asked->has_dtype || sft_cast_exists(v->from, c->asked->dtype)) return SFT_OK;
    return sfti_fail(err, SFT_COLUMN_TYPE, "there is no cast from %s to %s",
                     sft_dtype_describe(v->from)->name, sft_dtype_describe(c->asked->dtype)->name);
}

sft_code sfti_shard_values(sft_shard_writer *w, size_t k, shard_held *held, uint64_t row,
                           uint64_t most, shard_value *out, sft_error *err) {
    const shard_column *c = &w->column[k];
    const struct ArrowArray *array = held->array.children[c->asked->child];
    uint64_t i = (uint64_t)held->array.offset + row;
    sft_error inner;
    sft_code code;
    if (c->asked->form == SFTI_FORM_TENSOR)
        code = value_tensor(c, array, i, &w->scratch, out, &inner);
    else code = value_array(c, array, i, most, &held->loose, out, &inner);
    if (code == SFT_OUT_OF_MEMORY && err) *err = inner;
    if (code == SFT_OUT_OF_MEMORY) return code;
    if (code) return sfti_shard_row_fail(err, code, c->asked->name, w->rows + row, &inner);
    out->piece = (shard_piece){ held, out->buffer.bytes, out->buffer.at, out->len };
    return SFT_OK;
}

sft_code sfti_shard_bytes(sft_shard_writer *w, size_t k, shard_held *held, uint64_t row,
                          shard_piece *out, sft_error *err) {
    const shard_column *c = &w->column[k];
    const struct ArrowArray *array = held->array.children[c->asked->child];
    sft_error inner;
    sft_span bytes;
    sft_code code = SFT_OK;
    if (!sfti_arrow_bytes(&c->type, array, (uint64_t)held->array.offset + row, &bytes))
        code = sfti_misuse(&inner, "expected an array that keeps Arrow's rules, found bytes "
                                   "beyond their buffer");
    else if (c->asked->encoding == SFTI_ENCODING_UTF8 &&
             sfti_utf8_check(bytes.data, bytes.len) != bytes.len)
        code = sfti_fail(&inner, SFT_ROW_VALUE, "expected text in UTF-8, found other bytes");
    if (code) return sfti_shard_row_fail(err, code, c->asked->name, w->rows + row, &inner);
    *out = (shard_piece){ held, bytes.data, 0, bytes.len };
    return SFT_OK;
}
