/* Batches of gathered rows, each a file. Tests: test_dataset_shards.c. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "dataset/write/writer.h"

#include <string.h>

/* ── A file ── */

/* A tensor of the file. */
typedef struct batch_tensor {
    size_t k; /* its column */
    sfti_ds_part part;
    uint64_t length; /* of parts, and of values of varying length */
} batch_tensor;

/* The row of a node that has an element, which becomes that of the row. */
static uint64_t batch_row_of(const shard_column *c, uint64_t *element) {
    uint64_t low = 0, high = c->rows;
    if (!c->varying) {
        uint64_t row = *element / c->row_elements;
        *element %= c->row_elements;
        return row;
    }
    while (low < high) { /* the first row that ends behind it */
        uint64_t middle = low + (high - low) / 2;
        if (sfti_gather_end_of(c, middle + 1) > *element) high = middle;
        else low = middle + 1;
    }
    *element -= sfti_gather_end_of(c, low);
    return low;
}

/* A message that names an element of the cast's block gets that of the row. */
static sft_code batch_tensors(shard_file *file, const batch_tensor *tensors, size_t count,
                              const uint32_t *at, sft_error *err) {
    sft_shard_writer *w = file->w;
    for (size_t i = 0; i < count; i++) {
        const batch_tensor *t = &tensors[at[i]];
        const shard_column *c = &w->column[t->k];
        const sft_buffer *whole = t->part == SFTI_PART_VALID ? &c->valid : &c->ends;
        const shard_piece one = { NULL, whole->data, 0, whole->len };
        const bool values = t->part == SFTI_PART_VALUES;
        sft_dtype from = values ? c->from : t->part == SFTI_PART_VALID ? SFT_BOOL : SFT_I64;
        sft_error inner;
        uint64_t element = 0;
        sft_code code = sfti_shard_file_put(file, i, values ? c->pieces.items : &one,
                                            values ? c->pieces.count : 1, from, &element, &inner);
        if (code == SFT_CAST_VALUE) {
            uint64_t row = sfti_gather_row_of(w, t->k, batch_row_of(c, &element));
            sfti_shard_element(&inner, element);
            return sfti_shard_row_fail(err, SFT_ROW_VALUE, c->asked->name, w->file_row + row,
                                       &inner);
        }
        if (code) return sfti_fail_as(err, code, &inner);
    }
    return SFT_OK;
}

/* Whether a node's values are those of the nodes in it. */
static bool batch_is_outer(const shard_column *c) {
    return c->chained || c->asked->form == SFTI_FORM_LIST || c->asked->form == SFTI_FORM_STRUCT;
}

/* The tensors of a node: its values, where rows end if they vary, and which are not null. */
static sft_code batch_specs(sft_shard_writer *w, sfti_arena *work, size_t k, sft_spec *specs,
                            batch_tensor *tensors, size_t *count, sft_error *err) {
    shard_column *c = &w->column[k];
    const sft_span name = c->asked->name;
    sft_error inner;
    for (int part = SFTI_PART_VALUES; part <= SFTI_PART_VALID; part++) {
        const char *suffix = sfti_ds_part_suffix((sfti_ds_part)part);
        batch_tensor *t = &tensors[*count];
        if (part == SFTI_PART_VALUES    ? batch_is_outer(c)
            : part == SFTI_PART_OFFSETS ? !c->varying
                                        : !c->valid.len)
            continue;
        if (part != SFTI_PART_VALUES && w->options->upstream)
            return sfti_fail(err, SFT_ROW_SHAPE, "column \"%.*s\": option compat: expected rows "
                             "of one shape without nulls, found %s", SFTI_CLIP(name, 100),
                             part == SFTI_PART_VALID ? "null" : "lists of different lengths");
        char *text = sfti_arena_take(work, name.len + strlen(suffix));
        if (!text) return sfti_fail_memory(err, name.len);
        if (name.len) memcpy(text, name.data, name.len);
        memcpy(text + name.len, suffix, strlen(suffix));
        *t = (batch_tensor){ k, (sfti_ds_part)part, c->rows + (part == SFTI_PART_OFFSETS) };
        sft_dtype dtype = part == SFTI_PART_VALID ? SFT_BOOL : SFT_I64;
        specs[*count] = (sft_spec){ { text, name.len + strlen(suffix) }, dtype, 1, &t->length };
        if (part == SFTI_PART_VALUES) {
            specs[*count].dtype = c->dtype;
            if (c->varying) t->length = sfti_gather_end_of(c, c->rows);
            else specs[*count].rank = c->rank + 1, specs[*count].shape = c->shape;
        }
        const sft_spec *s = &specs[(*count)++];
        if (sft_shape_size(s->dtype, s->shape, s->rank, NULL, NULL, &inner))
            return sfti_shard_row_fail(err, SFT_ROW_SHAPE, name, w->file_row, &inner);
    }
    return SFT_OK;
}

/* What the receipt says of a column, which must still fit the dataset that is appended to. */
static sft_code batch_column_facts(const shard_column *c, sfti_ds_column *out, sft_error *err) {
    *out = *c->asked;
    out->has_dtype = out->has_shape = true;
    out->dtype = c->dtype;
    out->rank = c->rank;
    out->shape = c->shape + 1;
    out->nullable = c->valid.len > 0;
    if (batch_is_outer(c)) {
        out->encoding = SFTI_ENCODING_NESTED;
        out->has_dtype = out->has_shape = false;
        return c->was ? sfti_ds_column_agrees(out, c->was, err) : SFT_OK;
    }
    if (c->varying) out->has_shape = false;
    if (c->varying && !out->encoding) out->encoding = SFTI_ENCODING_LIST;
    if (c->varying && sft_dtype_describe(c->dtype)->bits % 8)
        return sfti_fail(err, SFT_ROW_SHAPE, "column \"%.*s\": expected lists of one length, or a "
                         "dtype of whole bytes, found %s", SFTI_CLIP(c->asked->name, 100),
                         sft_dtype_describe(c->dtype)->name);
    return c->varying && c->was ? sfti_ds_column_agrees(out, c->was, err) : SFT_OK;
}

static sft_code batch_file(sft_shard_writer *w, sfti_arena *work, uint64_t samples,
                           const sft_job *job, sft_error *err) {
    size_t n = w->columns.count, count = 0, top = 0;
    shard_file file;
    uint64_t most = 0;
    if (!sfti_mul(w->columns.node_count, 3, &most)) return sfti_ds_overflow("columns", err);
    sft_spec *specs = sfti_arena_array(work, most, sizeof *specs);
    batch_tensor *tensors = sfti_arena_array(work, most, sizeof *tensors);
    sfti_ds_column *columns = sfti_arena_array(work, n, sizeof *columns);
    uint32_t *at = sfti_arena_array(work, most, sizeof *at);
    if (!specs || !tensors || !columns || !at) return sfti_fail_memory(err, n * sizeof *columns);
    sft_code code = sfti_gather_end(w, err);
    for (size_t k = 0; !code && k < w->columns.node_count; k++) {
        shard_column *c = &w->column[k];
        if (!sfti_gather_used(w, k)) continue;
        c->shape[0] = c->rows;
        code = batch_specs(w, work, k, specs, tensors, &count, err);
        if (!code && c->node->parent == SFTI_NO_NODE)
            code = batch_column_facts(c, &columns[top++], err);
    }
    if (code) return code;
    code = sfti_shard_file_begin(w, specs, count, samples, w->gathered, job, &file, err);
    if (code) return code;
    for (size_t i = 0; i < count; i++) at[sft_plan_position(file.plan, i)] = (uint32_t)i;
    code = batch_tensors(&file, tensors, count, at, err);
    if (code) {
        sfti_shard_file_abandon(&file);
        return code;
    }
    return sfti_shard_file_end(&file, columns, err);
}

static sft_code batch_write(sft_shard_writer *w, uint64_t samples, const sft_job *job,
                            sft_error *err) {
    sfti_arena work = { .alloc = w->alloc };
    sft_code code = batch_file(w, &work, samples, job, err);
    sfti_arena_free(&work);
    for (size_t k = 0; k < w->columns.node_count; k++) {
        shard_column *c = &w->column[k];
        c->begun = c->varying = c->chained = false;
        c->pieces.count = 0;
        c->rows = c->ends.len = c->valid.len = 0;
    }
    w->gathered = 0;
    return code;
}

/* ── All rows of a batch ── */

sft_code sfti_batch_append(sft_shard_writer *w, shard_held *held, const sft_job *job,
                           sft_error *err) {
    uint64_t length = (uint64_t)held->array.length, size = w->options->batch_size;
    for (uint64_t row = 0; row < length;) {
        uint64_t left = size - w->gathered;
        uint64_t count = length - row < left ? length - row : left;
        sft_code code = SFT_OK;
        if (w->gathered == 0) w->file_row = w->rows + row;
        code = sfti_gather_rows(w, held, row, count, err);
        if (!code) w->gathered += count;
        row += count;
        if (!code && w->gathered == size) {
            code = batch_write(w, size, job, err);
            sfti_shard_release(w, row < length ? held : NULL);
            if (row < length) held->loose.len = 0;
        }
        if (code) return code;
    }
    return SFT_OK;
}

sft_code sfti_batch_end(sft_shard_writer *w, const sft_job *job, sft_error *err) {
    uint64_t size = w->options->batch_size;
    sft_code code = SFT_OK;
    if (w->gathered == 0) return SFT_OK;
    if (w->options->tail == SFTI_TAIL_DROP) {
        w->dropped = w->gathered;
        return SFT_OK;
    }
    if (w->options->tail == SFTI_TAIL_WRITE) return batch_write(w, w->gathered, job, err);
    code = sfti_gather_padding(w, size - w->gathered, err);
    return code ? code : batch_write(w, size, job, err);
}
