#include "base/json.h"
#include "dataset/dataset.h"

static void write_text(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_json_key(w, key);
    if (text.data) sfti_json_span(w, text);
    else sfti_json_null(w);
}

static void write_uint(sfti_json_writer *w, const char *key, uint64_t value) {
    sfti_json_key(w, key);
    sfti_json_uint(w, value);
}

static void write_shape(sfti_json_writer *w, uint32_t rank, const uint64_t *shape) {
    sfti_json_open(w, '[');
    for (uint32_t i = 0; i < rank; i++) sfti_json_uint(w, shape[i]);
    sfti_json_close(w, ']');
}

static void write_shard(sfti_json_writer *w, const sft_dataset_shard *s) {
    sfti_json_open(w, '{');
    write_text(w, "shard_path", sft_span_cstr(s->name));
    write_uint(w, "samples_count", s->samples);
    write_uint(w, "bytes", s->bytes);
    write_text(w, "sha256", s->sha256 ? sft_span_cstr(s->sha256) : (sft_span){ NULL, 0 });
    write_uint(w, "tensors", s->tensors);
    write_uint(w, "first_sample", s->first_sample);
    write_uint(w, "valid_samples", s->valid_samples);
    write_uint(w, "shadowed", s->shadowed);
    sfti_json_close(w, '}');
}

static void write_schema(sfti_json_writer *w, const sfti_ds_manifest *m) {
    sfti_json_key(w, "schema");
    sfti_json_open(w, '{');
    for (size_t i = 0; i < m->entry_count; i++) {
        const sfti_ds_entry *e = &m->entries[i];
        sfti_json_key_span(w, e->key);
        sfti_json_open(w, '{');
        write_text(w, "dtype", e->dtype);
        sfti_json_key(w, "shape");
        write_shape(w, e->rank, e->shape);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, '}');
}

static void write_column(sfti_json_writer *w, const sfti_ds_column *c) {
    sft_span none = { NULL, 0 };
    sfti_json_key_span(w, c->name);
    sfti_json_open(w, '{');
    write_text(w, "dtype",
               c->has_dtype ? sft_span_cstr(sft_dtype_describe(c->dtype)->name) : none);
    sfti_json_key(w, "shape");
    if (c->has_shape) write_shape(w, c->rank, c->shape);
    else sfti_json_null(w);
    sfti_json_close(w, '}');
}

static void write_columns(sfti_json_writer *w, const sfti_ds_manifest *m) {
    sfti_json_key(w, "columns");
    sfti_json_open(w, '{');
    for (size_t i = 0; i < m->column_count; i++) write_column(w, &m->columns[i]);
    sfti_json_close(w, '}');
}

static void write_how(sfti_json_writer *w, const sfti_ds_manifest *m) {
    write_text(w, "generator", m->generator);
    write_text(w, "commit", sft_span_cstr(m->commit));
    if (*m->row_order) write_text(w, "row_order", sft_span_cstr(m->row_order));
    write_uint(w, "version", m->version);
    if (m->mode)
        write_text(w, "mode", sft_span_cstr(m->mode == SFT_DATASET_KV ? "kv" : "batch"));
    sfti_json_key(w, "batch_size");
    if (m->batch_size) sfti_json_uint(w, m->batch_size);
    else sfti_json_null(w);
    write_text(w, "name_col", m->name_col);
    write_text(w, "kv_separator", m->separator);
    write_text(w, "tail_strategy", m->tail);
    write_text(w, "index", m->index);
    if (m->keep_until) write_uint(w, "keep_until", m->keep_until);
    if (m->dropped) write_uint(w, "dropped_samples", m->dropped);
}

sft_code sfti_ds_manifest_write(const sfti_ds_manifest *m, sft_sink *sink, sft_error *err) {
    sfti_json_writer w;
    sfti_json_write(&w, sink, 0, err);
    sfti_json_open(&w, '{');
    write_text(&w, "format_version", sft_span_cstr("1.0"));
    write_text(&w, "safetensors_version", sft_span_cstr("1.0"));
    write_how(&w, m);
    write_uint(&w, "total_samples", m->total_samples);
    write_uint(&w, "total_valid_samples", m->total_valid);
    write_uint(&w, "total_bytes", m->total_bytes);
    write_columns(&w, m);
    if (m->has_schema) write_schema(&w, m);
    sfti_json_key(&w, "shards");
    sfti_json_open(&w, '[');
    for (size_t i = 0; i < m->shard_count; i++) write_shard(&w, &m->shards[i].facts);
    sfti_json_close(&w, ']');
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}
