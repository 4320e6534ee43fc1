/* A manifest as JSON. Tests: test_dataset_manifest.c. */
#include "base/sink.h"
#include "dataset/read/manifest.h"

/* What a commit needs to know of shards that it does not read. */
static void write_segments(sfti_json_writer *w, const sfti_ds_manifest *m) {
    if (m->numbered) sfti_json_put_bool(w, "numbered_commits", true);
    sfti_json_put_uint(w, "total_shards", m->sums.shards);
    sfti_json_put_uint(w, "total_rows", m->sums.rows);
    sfti_json_put_uint(w, "total_padding", m->sums.padding);
    sfti_json_put_uint(w, "total_tensors", m->sums.tensors);
    sfti_json_put_uint(w, "total_shadowed", m->sums.shadowed);
    sfti_json_put_uint(w, "largest_shard", m->sums.largest);
    sfti_json_put_uint(w, "next_file", m->sums.next_file);
    sfti_json_put_open(w, "segments", '[');
    for (size_t i = 0; i < m->segment_count; i++) {
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "sha256", m->segments[i].sha256);
        sfti_json_put_uint(w, "bytes", m->segments[i].bytes);
        sfti_json_put_uint(w, "shards", m->segments[i].shards);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void write_features(sfti_json_writer *w, const sfti_ds_manifest *m) {
    const bool deletes = *m->masks.sha256, places = *m->places.sha256;
    sfti_json_put_open(w, "features", '[');
    if (deletes) sfti_json_cstr(w, "deleted");
    if (places) sfti_json_cstr(w, "columns");
    sfti_json_close(w, ']');
    if (deletes) {
        sfti_json_put_open(w, "deleted", '{');
        sfti_json_put_cstr(w, "sha256", m->masks.sha256);
        sfti_json_put_uint(w, "bytes", m->masks.bytes);
        sfti_json_put_uint(w, "shards", m->masks.shards);
        sfti_json_put_uint(w, "count", m->masks.deleted);
        sfti_json_close(w, '}');
    }
    if (!places) return;
    sfti_json_put_open(w, "places", '{');
    sfti_json_put_cstr(w, "sha256", m->places.sha256);
    sfti_json_put_uint(w, "bytes", m->places.bytes);
    sfti_json_put_uint(w, "count", m->places.count);
    sfti_json_close(w, '}');
}

sft_code sfti_ds_manifest_write(const sfti_ds_manifest *m, sft_buffer *text, sft_error *err) {
    sft_sink sink = sft_sink_memory(text);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    const bool newer = *m->masks.sha256 || *m->places.sha256;
    sfti_json_put_cstr(&w, "format_version", newer ? "3.0" : m->segmented ? "2.0" : "1.0");
    sfti_json_put_cstr(&w, "safetensors_version", "1.0");
    if (newer) write_features(&w, m);

    sfti_json_put_text(&w, "generator", m->generator);
    sfti_json_put_cstr(&w, "commit", m->commit);
    if (*m->row_order) sfti_json_put_cstr(&w, "row_order", m->row_order);
    sfti_json_put_uint(&w, "version", m->version);
    if (m->committed) sfti_json_put_uint(&w, "committed", m->committed);
    if (*m->history) sfti_json_put_cstr(&w, "history", m->history);
    if (m->mode) sfti_json_put_cstr(&w, "mode", sfti_ds_mode_name(m->mode));
    if (m->batch_size) sfti_json_put_uint(&w, "batch_size", m->batch_size);
    else sfti_json_put_null(&w, "batch_size");
    sfti_json_put_text(&w, "name_col", m->name_col);
    sfti_json_put_text(&w, "kv_separator", m->separator);
    sfti_json_put_text(&w, "tail_strategy", m->tail);
    sfti_json_put_text(&w, "index", m->index);
    if (m->index.data && *m->index_commit) sfti_json_put_cstr(&w, "index_commit", m->index_commit);
    if (m->index.data && *m->index_sha256) sfti_json_put_cstr(&w, "index_sha256", m->index_sha256);
    if (m->keep_until) sfti_json_put_uint(&w, "keep_until", m->keep_until);
    if (m->dropped) sfti_json_put_uint(&w, "dropped_samples", m->dropped);

    if (m->batch_count) sfti_json_put_open(&w, "batches", '{');
    for (size_t i = 0; i < m->batch_count; i++) {
        sfti_json_key_span(&w, m->batches[i].stream);
        sfti_json_uint(&w, m->batches[i].number);
    }
    if (m->batch_count) sfti_json_close(&w, '}');
    sfti_json_put_uint(&w, "total_samples", m->total_samples);
    sfti_json_put_uint(&w, "total_valid_samples", m->total_valid);
    sfti_json_put_uint(&w, "total_bytes", m->total_bytes);
    sfti_ds_put_columns(&w, m->columns, m->column_count);
    if (m->has_schema) {
        sfti_json_put_open(&w, "schema", '{');
        for (size_t i = 0; i < m->entry_count; i++) {
            const sfti_ds_entry *e = &m->entries[i];
            sfti_json_key_span(&w, e->key);
            sfti_json_open(&w, '{');
            sfti_json_put_text(&w, "dtype", e->dtype);
            sfti_json_put_shape(&w, "shape", e->shape, e->rank);
            sfti_json_close(&w, '}');
        }
        sfti_json_close(&w, '}');
    }
    if (m->segmented) write_segments(&w, m);
    else sfti_json_put_open(&w, "shards", '[');
    for (size_t i = 0; !m->segmented && i < m->shard_count; i++) {
        const sft_dataset_shard *s = &m->shards[i].facts;
        sfti_json_open(&w, '{');
        sfti_json_put_cstr(&w, "shard_path", s->name);
        sfti_json_put_uint(&w, "samples_count", s->samples);
        sfti_json_put_uint(&w, "bytes", s->bytes);
        sfti_json_put_cstr(&w, "sha256", s->sha256);
        sfti_json_put_uint(&w, "tensors", s->tensors);
        sfti_json_put_uint(&w, "first_sample", s->first_sample);
        sfti_json_put_uint(&w, "valid_samples", s->valid_samples);
        sfti_json_put_uint(&w, "shadowed", s->shadowed);
        sfti_json_close(&w, '}');
    }
    if (!m->segmented) sfti_json_close(&w, ']');
    sfti_json_close(&w, '}');
    return sfti_sink_end(&sink, sfti_json_done(&w), err);
}
