#include "dataset/care.h"

#include <string.h>

/* ── Pieces ── */

static void put_head(sfti_json_writer *w, const char *path, sft_sink *sink, sft_error *err) {
    sfti_json_write(w, sink, 0, err);
    sfti_json_open(w, '{');
    sfti_json_path(w, path);
}

void sfti_ds_put_begin(sfti_json_writer *w, const char *path, bool ok, sft_sink *sink,
                       sft_error *err) {
    put_head(w, path, sink, err);
    sfti_json_key(w, "ok");
    sfti_json_bool(w, ok);
}

sft_code sfti_ds_put_end(sfti_json_writer *w) {
    sfti_json_close(w, '}');
    return sfti_json_done(w);
}

void sfti_ds_put_uint(sfti_json_writer *w, const char *key, uint64_t value) {
    sfti_json_key(w, key);
    sfti_json_uint(w, value);
}

void sfti_ds_put_text(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_json_key(w, key);
    if (text.data) sfti_json_span(w, text);
    else sfti_json_null(w);
}

void sfti_ds_put_shape(sfti_json_writer *w, uint32_t rank, const uint64_t *shape) {
    sfti_json_key(w, "shape");
    sfti_json_open(w, '[');
    for (uint32_t i = 0; i < rank; i++) sfti_json_uint(w, shape[i]);
    sfti_json_close(w, ']');
}

void sfti_ds_put_columns(sfti_json_writer *w, const char *key, const sfti_ds_column *columns,
                         size_t count) {
    sft_span none = { NULL, 0 };
    sfti_json_key(w, key);
    sfti_json_open(w, '{');
    for (size_t i = 0; i < count; i++) {
        const sfti_ds_column *c = &columns[i];
        sfti_json_key_span(w, c->name);
        sfti_json_open(w, '{');
        sfti_ds_put_text(w, "dtype", c->has_dtype
                                         ? sft_span_cstr(sft_dtype_describe(c->dtype)->name)
                                         : none);
        if (c->has_shape) sfti_ds_put_shape(w, c->rank, c->shape);
        else sfti_ds_put_text(w, "shape", none);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, '}');
}

/* ── info ── */

static void info_sums(sfti_json_writer *w, const sfti_ds_manifest *m) {
    uint64_t tensors = 0, shadowed = 0, padded = 0;
    bool known = true;
    for (size_t i = 0; i < m->shard_count; i++) {
        tensors += m->shards[i].facts.tensors;
        shadowed += m->shards[i].facts.shadowed;
        padded += m->shards[i].facts.samples - m->shards[i].facts.valid_samples;
        known = known && m->shards[i].known;
    }
    sfti_ds_put_uint(w, "samples", m->total_samples);
    sfti_ds_put_uint(w, "valid_samples", m->total_valid);
    sfti_ds_put_uint(w, "padded_samples", padded);
    sfti_ds_put_uint(w, "dropped_samples", m->dropped);
    sfti_ds_put_uint(w, "bytes", m->total_bytes);
    sfti_ds_put_uint(w, "shards", m->shard_count);
    if (known) sfti_ds_put_uint(w, "tensors", tensors);
    else sfti_ds_put_text(w, "tensors", (sft_span){ NULL, 0 });
    sfti_ds_put_uint(w, "shadowed", shadowed);
}

static sft_span info_mode(const sfti_ds_manifest *m) {
    if (!m->mode) return (sft_span){ NULL, 0 };
    return sft_span_cstr(m->mode == SFT_DATASET_KV ? "kv" : "batch");
}

static void info_how(sfti_json_writer *w, const sfti_ds_manifest *m) {
    sft_span none = { NULL, 0 };
    sfti_ds_put_text(w, "mode", info_mode(m));
    sfti_ds_put_text(w, "generator", m->generator);
    sfti_ds_put_text(w, "commit", *m->commit ? sft_span_cstr(m->commit) : none);
    sfti_ds_put_uint(w, "version", m->version);
    if (m->batch_size) sfti_ds_put_uint(w, "batch_size", m->batch_size);
    else sfti_ds_put_text(w, "batch_size", none);
    sfti_ds_put_text(w, "name_col", m->name_col);
    sfti_ds_put_text(w, "kv_separator", m->separator);
    sfti_ds_put_text(w, "tail_strategy", m->tail);
    sfti_ds_put_text(w, "index", m->index);
}

sft_code sft_dataset_info_json(const sft_dataset *dataset, const char *path, sft_sink *sink,
                               sft_error *err) {
    const sfti_ds_manifest *m = sfti_ds_manifest_of(dataset);
    sfti_json_writer w;
    sfti_ds_put_begin(&w, path, true, sink, err);
    info_how(&w, m);
    info_sums(&w, m);
    sfti_ds_put_columns(&w, "columns", m->columns, m->column_count);
    return sfti_ds_put_end(&w);
}

/* ── ls ── */

typedef struct ls_filter {
    sft_match_fn match;
    void *ctx;
} ls_filter;

static void ls_tensor(sfti_json_writer *w, const sft_tensor *t, const char *shard) {
    sfti_json_open(w, '{');
    sfti_ds_put_text(w, "name", t->name);
    sfti_ds_put_text(w, "shard", sft_span_cstr(shard));
    sfti_ds_put_text(w, "dtype", sft_span_cstr(sft_dtype_describe(t->dtype)->name));
    sfti_ds_put_shape(w, t->rank, t->shape);
    sfti_ds_put_uint(w, "bytes", t->end - t->begin);
    sfti_ds_put_uint(w, "begin", t->offset);
    sfti_ds_put_uint(w, "end", t->offset + (t->end - t->begin));
    sfti_json_close(w, '}');
}

static sft_code ls_shard(sfti_json_writer *w, const sft_dataset *dataset, size_t i,
                         const ls_filter *filter, sft_error *err) {
    sft_file *file = NULL;
    const sft_dataset_shard *shard = sft_dataset_shard_at(dataset, i);
    sft_code code = sft_dataset_shard_open(dataset, i, NULL, &file, err);
    if (code) return code;
    for (size_t k = 0; k < sft_file_count(file) && w->code == SFT_OK; k++) {
        const sft_tensor *t = sft_file_tensor(file, k);
        if (!filter->match || filter->match(filter->ctx, t)) ls_tensor(w, t, shard->name);
    }
    sft_close(file);
    return SFT_OK;
}

/* What was told of shards before it cannot be taken back. */
static void ls_error(sfti_json_writer *w, const sft_error *what) {
    sft_span none = { NULL, 0 };
    sfti_json_key(w, "error");
    sfti_json_open(w, '{');
    sfti_ds_put_text(w, "code", sft_span_cstr(sft_code_describe(what->code)->name));
    sfti_ds_put_text(w, "offset", none);
    sfti_ds_put_text(w, "tensor", none);
    sfti_ds_put_text(w, "message", sft_span_cstr(what->message));
    sfti_ds_put_text(w, "hint", what->hint ? sft_span_cstr(what->hint) : none);
    sfti_json_close(w, '}');
}

sft_code sft_dataset_ls_json(const sft_dataset *dataset, const char *path, sft_match_fn match,
                             void *ctx, sft_sink *sink, sft_error *err) {
    ls_filter filter = { match, ctx };
    sfti_json_writer w;
    sft_error what = SFT_ERROR_INIT;
    sft_code code = SFT_OK;
    put_head(&w, path, sink, err);
    sfti_json_key(&w, "tensors");
    sfti_json_open(&w, '[');
    for (size_t i = 0; i < sft_dataset_shard_count(dataset) && !code && w.code == SFT_OK; i++)
        code = ls_shard(&w, dataset, i, &filter, &what);
    sfti_json_close(&w, ']');
    sfti_json_key(&w, "ok");
    sfti_json_bool(&w, code == SFT_OK);
    if (code) ls_error(&w, &what);
    sft_code lost = sfti_ds_put_end(&w);
    if (lost) return lost;
    if (code && err) *err = what;
    return code;
}
