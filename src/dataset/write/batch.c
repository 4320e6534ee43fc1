/* Rows gathered into batches, each a file. Tests: test_dataset_shards.c. */
#include "base/checked.h"
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

static sft_code batch_column(sft_shard_writer *w, size_t k, shard_held *held, uint64_t row,
                             uint64_t count, sft_error *err) {
    shard_column *c = &w->column[k];
    shard_value v;
    for (uint64_t done = 0; done < count; done += v.rows) {
        uint64_t most = count - done < c->ask ? count - done : c->ask;
        sft_code code = sfti_shard_values(w, k, held, row + done, most, &v, err);
        if (code) return code;
        if (v.rows < most) c->ask = 2 * v.rows;
        else c->ask = most > UINT64_MAX / 2 ? UINT64_MAX : 2 * most;
        if (!c->begun) {
            c->begun = true;
            c->from = v.from;
            c->dtype = c->asked->has_dtype ? c->asked->dtype : v.from;
            c->rank = v.rank;
            if (v.rank) memcpy(c->shape + 1, v.shape, v.rank * sizeof *c->shape);
            c->row_elements = v.elements;
            c->row_bytes = v.len / v.rows;
            code = sfti_shard_agrees(c, c->dtype, c->rank, c->shape + 1, err);
            if (code) return code;
        }
        if (v.from != c->from ||
            !sfti_ds_shape_same(v.shape, v.rank, c->shape + 1, c->rank))
            return batch_differs(c, &v, w->rows + row + done, err);
        if (!sfti_pieces_put(&c->pieces, v.piece, &w->alloc))
            return sfti_fail_memory(err, sizeof v.piece);
    }
    return SFT_OK;
}

/* ── A file ── */

static sft_code batch_pad(sft_shard_writer *w, uint64_t rows, sft_error *err) {
    for (size_t k = 0; k < w->columns.count; k++) {
        shard_piece zeros = { NULL, NULL, 0, 0 };
        if (!sfti_mul(rows, w->column[k].row_bytes, &zeros.len))
            return sfti_ds_overflow("a batch", err);
        if (!sfti_pieces_put(&w->column[k].pieces, zeros, &w->alloc))
            return sfti_fail_memory(err, sizeof zeros);
    }
    return SFT_OK;
}

/* A message that names an element of the cast's block gets that of the row. */
static sft_code batch_tensors(shard_file *file, const uint32_t *at, sft_error *err) {
    sft_shard_writer *w = file->w;
    for (size_t i = 0; i < w->columns.count; i++) {
        const shard_column *c = &w->column[at[i]];
        sft_error inner;
        uint64_t element = 0;
        sft_code code = sfti_shard_file_put(file, i, c->pieces.items, c->pieces.count, c->from,
                                            &element, &inner);
        if (code == SFT_CAST_VALUE) {
            uint64_t row = w->file_row + element / c->row_elements;
            sfti_shard_element(&inner, element % c->row_elements);
            return sfti_shard_row_fail(err, SFT_ROW_VALUE, c->asked->name, row, &inner);
        }
        if (code) return sfti_fail_as(err, code, &inner);
    }
    return SFT_OK;
}

static sft_code batch_file(sft_shard_writer *w, sfti_arena *work, uint64_t samples,
                           const sft_job *job, sft_error *err) {
    size_t n = w->columns.count;
    shard_file file;
    sft_spec *specs = sfti_arena_array(work, n, sizeof *specs);
    sfti_ds_column *columns = sfti_arena_array(work, n, sizeof *columns);
    uint32_t *at = sfti_arena_array(work, n, sizeof *at);
    if (!specs || !columns || !at) return sfti_fail_memory(err, n * sizeof *columns);
    for (size_t k = 0; k < n; k++) {
        shard_column *c = &w->column[k];
        sft_error inner;
        c->shape[0] = samples;
        specs[k] = (sft_spec){ c->asked->name, c->dtype, c->rank + 1, c->shape };
        if (sft_shape_size(c->dtype, c->shape, c->rank + 1, NULL, NULL, &inner))
            return sfti_shard_row_fail(err, SFT_ROW_SHAPE, c->asked->name, w->file_row, &inner);
    }
    sft_code code =
        sfti_shard_file_begin(w, specs, n, samples, w->gathered, job, &file, err);
    if (code) return code;
    for (size_t k = 0; k < n; k++) at[sft_plan_position(file.plan, k)] = (uint32_t)k;
    code = batch_tensors(&file, at, err);
    if (code) {
        sfti_shard_file_abandon(&file);
        return code;
    }
    for (size_t k = 0; k < n; k++) { /* for the receipt */
        const shard_column *c = &w->column[k];
        columns[k] = *c->asked;
        columns[k].has_dtype = columns[k].has_shape = true;
        columns[k].dtype = c->dtype;
        columns[k].rank = c->rank;
        columns[k].shape = c->shape + 1;
    }
    return sfti_shard_file_end(&file, columns, err);
}

static sft_code batch_write(sft_shard_writer *w, uint64_t samples, const sft_job *job,
                            sft_error *err) {
    sfti_arena work = { .alloc = w->alloc };
    sft_code code = batch_file(w, &work, samples, job, err);
    sfti_arena_free(&work);
    for (size_t k = 0; k < w->columns.count; k++) {
        w->column[k].begun = false;
        w->column[k].pieces.count = 0;
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
