/* Values of rows, read from a batch. Tests: test_dataset_shards.c. */
#include "base/endian.h"
#include "base/error.h"
#include "base/utf8.h"
#include "dataset/write/writer.h"
#include "safetensors_convert.h"

#include <stdio.h>
#include <string.h>

/* ── Messages ── */

sft_code sfti_shard_row_fail(sft_error *err, sft_code code, sft_span column, uint64_t row,
                             const sft_error *inner) {
    if (code == SFT_OUT_OF_MEMORY) return sfti_fail_as(err, code, inner);
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

static sft_code check_array(const shard_column *c, sft_error *err) {
    const size_t fields = (size_t)c->node->fields;
    switch (c->asked->form) {
    case SFTI_FORM_TENSOR: return sfti_arrow_tensor_check(&c->tensor, c->array, err);
    case SFTI_FORM_STRUCT: return sfti_arrow_check_struct(c->array, fields, err);
    case SFTI_FORM_LIST: return sfti_arrow_check_list(&c->node->list, c->array, err);
    default: return sfti_arrow_check(&c->type, c->array, err);
    }
}

sft_code sfti_shard_check(sft_shard_writer *w, const struct ArrowArray *batch, sft_error *err) {
    bool good = batch->n_children >= 0 && (size_t)batch->n_children == w->children &&
                batch->length >= 0 && batch->offset >= 0 && batch->children &&
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
    for (size_t k = 0; !code && k < w->columns.node_count; k++) {
        shard_column *c = &w->column[k];
        const size_t around = c->node->parent;
        const struct ArrowArray *of = around == SFTI_NO_NODE ? batch : w->column[around].array;
        c->array = of->children[c->asked->child];
        code = check_array(c, err);
    }
    if (!code && w->columns.mode == SFT_DATASET_KV)
        code = sfti_arrow_check(&w->kv.key, batch->children[w->columns.name_child], err);
    return code;
}

/* ── Values ── */

sft_code sfti_shard_agrees(const shard_column *c, sft_dtype dtype, uint32_t rank,
                           const uint64_t *shape, sft_error *err) {
    sfti_ds_column is = { .name = c->asked->name, .has_dtype = true, .has_shape = true,
                          .dtype = dtype, .rank = rank, .shape = shape, .type = c->asked->type };
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
    if (c->asked->opaque) v->elements *= c->type.bytes;
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

sft_code sfti_shard_values(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i,
                           uint64_t most, shard_value *out, sft_error *err) {
    const shard_column *c = &w->column[k];
    sft_code code;
    if (c->asked->form == SFTI_FORM_TENSOR)
        code = value_tensor(c, c->array, i, &w->scratch, out, err);
    else code = value_array(c, c->array, i, most, &held->loose, out, err);
    if (!code) out->piece = (shard_piece){ held, out->buffer.bytes, out->buffer.at, out->len };
    return code;
}

/* How many rows of text, from the first on, are UTF-8: all of them together are, and none of them
 * begins within a character. */
static uint64_t text_rows(sft_span text, const char *ends, uint64_t from, uint64_t rows) {
    size_t good = sfti_utf8_check(text.data, text.len);
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t end = sfti_get_u64(ends + 8 * i) - from;
        if (end > good || (end < text.len && ((uint8_t)text.data[end] & 0xC0) == 0x80)) return i;
    }
    return rows;
}

sft_code sfti_shard_run(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i, uint64_t most,
                        uint64_t from, sft_buffer *ends, shard_piece *out, uint64_t *rows,
                        sft_error *err) {
    const shard_column *c = &w->column[k];
    const size_t mark = ends->len;
    uint64_t found;
    sft_span run;
    if (!sfti_arrow_run(&c->type, c->array, i, most, from, ends, &found, &run))
        return sfti_fail_memory(err, most);
    *rows = found;
    if (c->asked->encoding == SFTI_ENCODING_UTF8 && found)
        *rows = text_rows(run, ends->data + mark, from, found);
    if (*rows < found) {
        ends->len = mark + (size_t)*rows * 8;
        run.len = *rows ? (size_t)(sfti_get_u64(ends->data + ends->len - 8) - from) : 0;
    }
    *out = (shard_piece){ held, run.data, 0, run.len };
    return SFT_OK;
}

sft_code sfti_shard_bytes(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i,
                          shard_piece *out, sft_error *err) {
    const shard_column *c = &w->column[k];
    sft_span bytes;
    if (!sfti_arrow_bytes(&c->type, c->array, i, &bytes))
        return sfti_misuse(err, "expected an array that keeps Arrow's rules, found bytes beyond "
                                "their buffer");
    if (c->asked->encoding == SFTI_ENCODING_UTF8 &&
        sfti_utf8_check(bytes.data, bytes.len) != bytes.len)
        return sfti_fail(err, SFT_ROW_VALUE, "expected text in UTF-8, found other bytes");
    *out = (shard_piece){ held, bytes.data, 0, bytes.len };
    return SFT_OK;
}
