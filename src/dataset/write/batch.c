/* Rows gathered into batches, each a file. Tests: test_dataset_shards.c. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "dataset/write/writer.h"

#include <string.h>

/* ── Rows into the file to come ── */

static sft_code batch_differs(const shard_column *c, const shard_value *v, uint64_t row,
                              sft_error *err) {
    char want[SFTI_SHAPE_TEXT], have[SFTI_SHAPE_TEXT];
    sft_error inner;
    sfti_ds_shape_text(c->shape + 1, c->rank, want);
    sfti_ds_shape_text(v->shape, v->rank, have);
    (void)sfti_fail(&inner, SFT_ROW_SHAPE, "expected %s %s as in the rows before it, found %s %s",
                    sft_dtype_describe(c->from)->name, want, sft_dtype_describe(v->from)->name,
                    have);
    return sfti_shard_row_fail(err, SFT_ROW_SHAPE, c->asked->name, row, &inner);
}

/* The first rows of a file set what all of them have. */
static sft_code batch_first(shard_column *c, const shard_value *v, sft_error *err) {
    c->begun = true;
    c->from = v->from;
    c->dtype = c->asked->has_dtype ? c->asked->dtype : v->from;
    c->rank = v->rank;
    if (v->rank) memcpy(c->shape + 1, v->shape, v->rank * sizeof *c->shape);
    c->row_elements = v->elements;
    c->row_bytes = v->len / v->rows;
    if (c->varying || c->asked->form == SFTI_FORM_BYTES) return SFT_OK;
    return sfti_shard_agrees(c, c->dtype, c->rank, c->shape + 1, err);
}

static uint64_t batch_end_of(const shard_column *c, uint64_t row) {
    return row ? sfti_get_u64(c->ends.data + 8 * row) : 0;
}

/* Counts rows with so many elements each, or null ones. */
static sft_code batch_count(shard_column *c, uint64_t rows, uint64_t elements, bool null,
                            sft_error *err) {
    char end[8] = { 0 };
    const char valid = !null;
    bool memory = true;
    if (c->listed && c->rows == 0) memory = sfti_buffer_put(&c->ends, end, 8);
    for (uint64_t i = 0; memory && c->listed && i < rows; i++) {
        uint64_t at = batch_end_of(c, c->rows + i);
        if (!sfti_add(at, elements, &at)) return sfti_ds_overflow("a batch", err);
        sfti_put_u64(end, at);
        memory = sfti_buffer_put(&c->ends, end, 8);
    }
    if (null || c->valid.len) { /* the first null finds the rows before it without a mark */
        for (uint64_t i = c->valid.len; memory && i < c->rows; i++)
            memory = sfti_buffer_put(&c->valid, "\1", 1);
        for (uint64_t i = 0; memory && i < rows; i++)
            memory = sfti_buffer_put(&c->valid, &valid, 1);
    }
    c->rows += rows;
    return memory ? SFT_OK : sfti_fail_memory(err, 8 * rows);
}

/* Null rows have no elements, or zeros where the type says how many. */
static sft_code batch_null(sft_shard_writer *w, shard_column *c, sft_error *err) {
    static const uint64_t nothing = 0;
    shard_value v = { .from = c->asked->from, .rows = 1, .elements = c->elements,
                      .rank = c->asked->rank, .shape = c->asked->shape };
    if (c->listed) {
        v.elements = 0;
        v.rank = 1;
        v.shape = &nothing;
        c->varying = true;
    }
    if (!sfti_mul(v.elements, c->listed ? 1 : c->type.bytes, &v.len))
        return sfti_ds_overflow("a row", err);
    v.piece.len = v.len;
    sft_code code = c->begun ? SFT_OK : batch_first(c, &v, err);
    if (!code && !sfti_pieces_put(&c->pieces, v.piece, &w->alloc))
        code = sfti_fail_memory(err, sizeof v.piece);
    return code ? code : batch_count(c, 1, v.elements, true, err);
}

static sft_code batch_bytes(sft_shard_writer *w, size_t k, shard_held *held, uint64_t row,
                            sft_error *err) {
    static const uint64_t nothing = 0;
    shard_column *c = &w->column[k];
    shard_value v = { .from = SFT_U8, .rows = 1, .rank = 1, .shape = &nothing };
    sft_code code = c->begun ? SFT_OK : batch_first(c, &v, err);
    if (!code) code = sfti_shard_bytes(w, k, held, row, &v.piece, err);
    if (!code && !sfti_pieces_put(&c->pieces, v.piece, &w->alloc))
        code = sfti_fail_memory(err, sizeof v.piece);
    c->varying = true;
    return code ? code : batch_count(c, 1, v.piece.len, false, err);
}

static sft_code batch_values(sft_shard_writer *w, size_t k, shard_held *held, uint64_t row,
                             uint64_t most, uint64_t *rows, sft_error *err) {
    shard_column *c = &w->column[k];
    shard_value v;
    sft_code code = sfti_shard_values(w, k, held, row, most, &v, err);
    if (!code && !c->begun) code = batch_first(c, &v, err);
    if (code) return code;
    if (v.from != c->from || !sfti_ds_shape_same(v.shape, v.rank, c->shape + 1, c->rank)) {
        if (!c->listed) return batch_differs(c, &v, w->rows + row, err);
        c->varying = true;
    }
    if (!sfti_pieces_put(&c->pieces, v.piece, &w->alloc))
        return sfti_fail_memory(err, sizeof v.piece);
    *rows = v.rows;
    return batch_count(c, v.rows, v.elements, false, err);
}

static sft_code batch_column(sft_shard_writer *w, size_t k, shard_held *held, uint64_t row,
                             uint64_t count, sft_error *err) {
    shard_column *c = &w->column[k];
    const struct ArrowArray *array = held->array.children[c->asked->child];
    const uint64_t first = (uint64_t)held->array.offset + row;
    /* A null of any other column is an error, which reading it raises. */
    bool nulls = c->listed || (c->asked->form != SFTI_FORM_TENSOR && c->asked->has_shape);
    nulls = nulls && (c->type.dictionary || array->null_count != 0);
    for (uint64_t done = 0, rows = 1; done < count; done += rows) {
        uint64_t most = count - done < c->ask ? count - done : c->ask, until = 1;
        sft_code code = SFT_OK;
        rows = 1;
        if (nulls && sfti_arrow_row_null(&c->type, array, first + done)) {
            code = batch_null(w, c, err);
        } else if (c->asked->form == SFTI_FORM_BYTES) {
            code = batch_bytes(w, k, held, row + done, err);
        } else {
            while (nulls && until < most &&
                   !sfti_arrow_row_null(&c->type, array, first + done + until))
                until++;
            if (nulls) most = until;
            code = batch_values(w, k, held, row + done, most, &rows, err);
            if (rows < most) c->ask = 2 * rows;
            else c->ask = most > UINT64_MAX / 2 ? UINT64_MAX : 2 * most;
        }
        if (code) return code;
    }
    return SFT_OK;
}

/* ── A file ── */

static sft_code batch_pad(sft_shard_writer *w, uint64_t rows, sft_error *err) {
    for (size_t k = 0; k < w->columns.count; k++) {
        shard_piece zeros = { NULL, NULL, 0, 0 };
        shard_column *c = &w->column[k];
        if (!c->varying && !sfti_mul(rows, c->row_bytes, &zeros.len))
            return sfti_ds_overflow("a batch", err);
        if (!sfti_pieces_put(&c->pieces, zeros, &w->alloc))
            return sfti_fail_memory(err, sizeof zeros);
        sft_code code = batch_count(c, rows, c->varying ? 0 : c->row_elements, false, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* A tensor of the file. */
typedef struct batch_tensor {
    size_t k; /* its column */
    sfti_ds_part part;
    uint64_t length; /* of parts, and of values of varying length */
} batch_tensor;

/* The row of a file that has an element, which becomes that of the row. */
static uint64_t batch_row_of(const shard_column *c, uint64_t *element) {
    uint64_t low = 0, high = c->rows;
    if (!c->varying) {
        uint64_t row = *element / c->row_elements;
        *element %= c->row_elements;
        return row;
    }
    while (low < high) { /* the first row that ends behind it */
        uint64_t middle = low + (high - low) / 2;
        if (batch_end_of(c, middle + 1) > *element) high = middle;
        else low = middle + 1;
    }
    *element -= batch_end_of(c, low);
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
            uint64_t row = w->file_row + batch_row_of(c, &element);
            sfti_shard_element(&inner, element);
            return sfti_shard_row_fail(err, SFT_ROW_VALUE, c->asked->name, row, &inner);
        }
        if (code) return sfti_fail_as(err, code, &inner);
    }
    return SFT_OK;
}

/* The tensors of a column: its values, where rows end if they vary, and which are not null. */
static sft_code batch_specs(sft_shard_writer *w, sfti_arena *work, size_t k, sft_spec *specs,
                            batch_tensor *tensors, size_t *count, sft_error *err) {
    shard_column *c = &w->column[k];
    const sft_span name = c->asked->name;
    sft_error inner;
    for (int part = SFTI_PART_VALUES; part <= SFTI_PART_VALID; part++) {
        const char *suffix = sfti_ds_part_suffix((sfti_ds_part)part);
        batch_tensor *t = &tensors[*count];
        if (part == SFTI_PART_OFFSETS ? !c->varying : part == SFTI_PART_VALID && !c->valid.len)
            continue;
        char *text = sfti_arena_take(work, name.len + strlen(suffix));
        if (!text) return sfti_fail_memory(err, name.len);
        if (name.len) memcpy(text, name.data, name.len);
        memcpy(text + name.len, suffix, strlen(suffix));
        *t = (batch_tensor){ k, (sfti_ds_part)part, c->rows + (part == SFTI_PART_OFFSETS) };
        sft_dtype dtype = part == SFTI_PART_VALID ? SFT_BOOL : SFT_I64;
        specs[*count] = (sft_spec){ { text, name.len + strlen(suffix) }, dtype, 1, &t->length };
        if (part == SFTI_PART_VALUES) {
            specs[*count].dtype = c->dtype;
            if (c->varying) t->length = batch_end_of(c, c->rows);
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
    size_t n = w->columns.count, count = 0;
    shard_file file;
    uint64_t most = 0;
    if (!sfti_mul(n, 3, &most)) return sfti_ds_overflow("columns", err);
    sft_spec *specs = sfti_arena_array(work, most, sizeof *specs);
    batch_tensor *tensors = sfti_arena_array(work, most, sizeof *tensors);
    sfti_ds_column *columns = sfti_arena_array(work, n, sizeof *columns);
    uint32_t *at = sfti_arena_array(work, most, sizeof *at);
    if (!specs || !tensors || !columns || !at) return sfti_fail_memory(err, n * sizeof *columns);
    for (size_t k = 0; k < n; k++) {
        w->column[k].shape[0] = samples;
        sft_code code = batch_specs(w, work, k, specs, tensors, &count, err);
        if (!code) code = batch_column_facts(&w->column[k], &columns[k], err);
        if (code) return code;
    }
    sft_code code =
        sfti_shard_file_begin(w, specs, count, samples, w->gathered, job, &file, err);
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
    for (size_t k = 0; k < w->columns.count; k++) {
        shard_column *c = &w->column[k];
        c->begun = c->varying = false;
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
        for (size_t k = 0; !code && k < w->columns.count; k++)
            code = batch_column(w, k, held, row, count, err);
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
    code = batch_pad(w, size - w->gathered, err);
    return code ? code : batch_write(w, size, job, err);
}
