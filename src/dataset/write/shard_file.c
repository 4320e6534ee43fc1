/* One file of a shard writer, from its plan to its receipt. Tests: test_dataset_shards.c. */
#include "base/error.h"
#include "base/job.h"
#include "dataset/write/writer.h"

#include <stdio.h>
#include <string.h>

#define FILE_PIECE (UINT64_C(8) << 20) /* between two ticks */

/* What pads. */
static const char file_zeros[1 << 16];

/* ── Begin ── */

/* compat=upstream: what only the values tell. */
static sft_code file_upstream(const shard_file *f, const sft_spec *specs, size_t count,
                              sft_error *err) {
    for (size_t i = 0; i < count; i++)
        if (!sfti_ds_upstream_knows(specs[i].dtype))
            return sfti_fail(err, SFT_ROW_SHAPE, "tensor \"%.*s\": option compat: expected "
                             SFTI_UPSTREAM_DTYPES ", found %s", SFTI_CLIP(specs[i].name, 100),
                             sft_dtype_describe(specs[i].dtype)->name);
    if (f->receipt.bytes <= INT32_MAX) return SFT_OK;
    return sfti_fail(err, SFT_ROW_SHAPE, "option compat: expected files of at most %d bytes, "
                     "found one of %llu", INT32_MAX, (unsigned long long)f->receipt.bytes);
}

static sft_code file_plan(shard_file *f, const sft_spec *specs, size_t count, sft_error *err) {
    char samples[24], valid[24];
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    bool padded = f->receipt.valid_samples != f->receipt.samples;
    options.alloc = &f->w->alloc;
    (void)snprintf(samples, sizeof samples, "%llu", (unsigned long long)f->receipt.samples);
    (void)snprintf(valid, sizeof valid, "%llu", (unsigned long long)f->receipt.valid_samples);
    sft_pair pairs[] = {
        { sft_span_cstr(SFTI_DATASET_MARK), sft_span_cstr("1") },
        { sft_span_cstr("mode"),
          sft_span_cstr(sfti_ds_mode_name(f->w->columns.mode)) },
        { sft_span_cstr("samples"), sft_span_cstr(samples) },
        { sft_span_cstr("valid_samples"), sft_span_cstr(valid) },
    };
    sft_code code =
        sft_plan_new(specs, count, pairs, padded ? 4 : 3, &options, &f->plan, err);
    if (code) return code;
    f->receipt.tensors = count;
    f->receipt.bytes = sft_plan_total(f->plan);
    f->receipt.header_bytes = sft_plan_head(f->plan).len - 8;
    return f->w->options->upstream ? file_upstream(f, specs, count, err) : SFT_OK;
}

sft_code sfti_shard_file_begin(sft_shard_writer *w, const sft_spec *specs, size_t count,
                               uint64_t samples, uint64_t valid, const sft_job *job,
                               shard_file *file, sft_error *err) {
    sft_sink sink;
    memset(file, 0, sizeof *file);
    file->w = w;
    file->job = *job;
    char *name = sfti_arena_take(&w->arena, SFTI_DATASET_NAME + SFTI_STORED_NAME);
    if (!name) return sfti_fail_memory(err, SFTI_DATASET_NAME + SFTI_STORED_NAME);
    char *stored = name + SFTI_DATASET_NAME;
    const char *folder = sfti_can(w->storage, move) ? w->job.folder : "";
    sfti_ds_shard_name(w->file, w->receipt_count, w->uuid, name);
    sfti_ds_stored_name(folder, name, stored);
    file->receipt = (sfti_ds_receipt){ .name = sft_span_cstr(name),
                                       .stored = sft_span_cstr(stored),
                                       .partition = w->partition, .shard = w->receipt_count,
                                       .samples = samples, .valid_samples = valid };
    sft_code code = file_plan(file, specs, count, err);
    if (!code) {
        w->pending = file->receipt.stored.data;
        code = sfti_call(w->storage, create, w->pending, false, &sink, err);
    }
    if (!code)
        code = sfti_sum_sink(sink, &file->sum, &w->unfinished, job->threads, &w->alloc, &sink, err);
    if (!code) code = sft_writer_begin(file->plan, sink, &file->out, err);
    if (code) sfti_shard_file_abandon(file);
    return code;
}

void sfti_shard_file_abandon(shard_file *file) {
    sft_writer_abandon(file->out);
    sft_plan_free(file->plan);
    file->out = NULL;
    file->plan = NULL;
}

/* ── Bytes ── */

static sft_code file_tick(shard_file *f, sft_error *err) {
    sft_shard_writer *w = f->w;
    w->ticked = w->done;
    return sfti_job_tick(&f->job, w->done, SFT_SIZE_UNKNOWN, err);
}

static sft_code file_put(shard_file *f, size_t i, const char *bytes, uint64_t len,
                         sft_error *err) {
    for (uint64_t at = 0; at < len;) {
        uint64_t piece = len - at < FILE_PIECE ? len - at : FILE_PIECE;
        sft_code code = sft_writer_put(f->out, i, bytes + at, (size_t)piece, err);
        at += piece;
        f->w->done += piece;
        if (!code && f->w->done - f->w->ticked >= FILE_PIECE) code = file_tick(f, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* ── Casting ── */

typedef struct file_cast {
    shard_file *file;
    size_t i;
    sft_dtype from, to;
    uint64_t done;      /* elements */
    size_t used, chunk; /* bytes of `in`, of a whole chunk */
    char *in, *out;
    uint64_t *element;
} file_cast;

static sft_code cast_block(file_cast *c, const char *bytes, size_t len, sft_error *err) {
    uint64_t count = (uint64_t)len * 8 / sft_dtype_describe(c->from)->bits, at = 0;
    bool truncate = c->file->w->options->truncate;
    sft_code code = sfti_ds_cast(c->from, bytes, c->to, c->out, count, truncate, &at, err);
    *c->element = c->done + at;
    if (code) return code;
    c->done += count;
    return file_put(c->file, c->i, c->out, count * sft_dtype_describe(c->to)->bits / 8, err);
}

/* ── Pieces ── */

static sft_code file_some(file_cast *c, const char *bytes, uint64_t len, sft_error *err) {
    if (c->from == c->to) return file_put(c->file, c->i, bytes, len, err);

    sft_code code = SFT_OK;
    while (!code && len) {
        size_t take = c->chunk - c->used < len ? c->chunk - c->used : (size_t)len;
        if (take == c->chunk) {
            code = cast_block(c, bytes, take, err);
        } else {
            memcpy(c->in + c->used, bytes, take);
            c->used += take;
            if (c->used == c->chunk) code = cast_block(c, c->in, c->chunk, err), c->used = 0;
        }
        bytes += take;
        len -= take;
    }
    return code;
}

/* Rows of padding and nulls of a dtype without zero: zero bytes, as everywhere. */
static sft_code file_least(file_cast *c, uint64_t len, sft_error *err) {
    const uint64_t count = len * 8 / sft_dtype_describe(c->from)->bits;
    sft_code code = c->used ? cast_block(c, c->in, c->used, err) : SFT_OK;
    c->used = 0;
    c->done += count;
    for (uint64_t at = 0, some; !code && at < count; at += some) {
        some = count - at < sizeof file_zeros ? count - at : sizeof file_zeros;
        code = file_put(c->file, c->i, file_zeros, some, err);
    }
    return code;
}

static sft_code file_piece(file_cast *c, const shard_piece *piece, sft_error *err) {
    const char *bytes = sfti_piece_bytes(piece);
    sft_code code = SFT_OK;
    if (bytes) return file_some(c, bytes, piece->len, err);
    if (c->to == SFT_F8_E8M0 && c->from != c->to) return file_least(c, piece->len, err);
    for (uint64_t left = piece->len; !code && left;) {
        uint64_t some = left < sizeof file_zeros ? left : sizeof file_zeros;
        code = file_some(c, file_zeros, some, err);
        left -= some;
    }
    return code;
}

sft_code sfti_shard_file_put(shard_file *file, size_t i, const shard_piece *pieces, size_t count,
                             sft_dtype from, uint64_t *element, sft_error *err) {
    file_cast c = { .file = file, .i = i, .from = from, .element = element };
    c.to = sft_plan_tensor_at(file->plan, i)->dtype;
    sft_shard_writer *w = file->w;
    sft_code code = SFT_OK;
    if (c.from != c.to) {
        if (!w->cast_buffer) w->cast_buffer = sfti_take(&w->alloc, SHARD_CAST_BYTES);
        if (!w->cast_buffer) return sfti_fail_memory(err, SHARD_CAST_BYTES);
        c.in = w->cast_buffer;
        c.out = w->cast_buffer + SHARD_CAST_BYTES / 2;
        c.chunk = (size_t)SHARD_CAST_CHUNK * sft_dtype_describe(c.from)->bits / 8;
    }
    for (size_t k = 0; !code && k < count; k++) code = file_piece(&c, &pieces[k], err);
    if (!code && c.used) code = cast_block(&c, c.in, c.used, err);
    return code;
}

/* ── End ── */

static bool receipt_copy_columns(sft_shard_writer *w, const sfti_ds_column *columns,
                                 sfti_ds_receipt *r) {
    size_t count = w->columns.count;
    sfti_ds_column *copy = sfti_arena_array(&w->arena, count, sizeof *copy);
    if (!copy) return false;
    memcpy(copy, columns, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        if (!copy[i].has_shape) continue;
        uint64_t *shape = sfti_arena_array(&w->arena, copy[i].rank, sizeof *shape);
        if (!shape) return false;
        if (copy[i].rank) memcpy(shape, columns[i].shape, copy[i].rank * sizeof *shape);
        copy[i].shape = shape;
    }
    r->columns = copy;
    return true;
}

/* Reserves the receipt before the file is published. */
static sft_code receipt_keep(sft_shard_writer *w, const sfti_ds_column *columns,
                             sfti_ds_receipt *r, sft_error *err) {
    sfti_ds_receipt *all = sfti_grow(&w->alloc, w->receipts, w->receipt_count, 1,
                                     &w->receipt_cap, sizeof *all);
    if (!all) return sfti_fail_memory(err, sizeof *all);
    w->receipts = all;
    const sfti_ds_receipt *last = w->receipt_count ? &w->receipts[w->receipt_count - 1] : NULL;
    r->column_count = w->columns.count;
    if (last && sfti_ds_columns_same(last->columns, columns, r->column_count))
        r->columns = last->columns;
    else if (!receipt_copy_columns(w, columns, r))
        return sfti_fail_memory(err, w->columns.count * sizeof *columns);
    return SFT_OK;
}

sft_code sfti_shard_file_end(shard_file *file, const sfti_ds_column *columns, sft_error *err) {
    sft_shard_writer *w = file->w;
    sft_code code = receipt_keep(w, columns, &file->receipt, err);
    if (!code) {
        code = sft_writer_finish(file->out, err);
        file->out = NULL;
    }
    if (!code) {
        memcpy(file->receipt.sha256, file->sum.sha256, sizeof file->sum.sha256);
        w->receipts[w->receipt_count++] = file->receipt;
        w->pending = NULL;
        code = file_tick(file, err);
    }
    sfti_shard_file_abandon(file);
    return code;
}
