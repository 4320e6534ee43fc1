/* Facts and tensors of a dataset as JSON. Tests: test_dataset_maintain.c. */
#include "base/error.h"
#include "base/options.h"
#include "dataset/maintain/results.h"
#include "dataset/read/places.h"

/* ── As a tree, and as JSON ── */

void sfti_ds_result_begin(sfti_json_writer *w, sft_tree *tree, const char *path, bool ok,
                          sft_error *err) {
    sfti_json_write_tree(w, tree, err);
    sfti_result_begin(w, path, ok);
}

sft_code sfti_ds_result_render(sft_tree *tree, sft_code code, sft_sink *sink, sft_error *err) {
    if (!code) code = sft_node_json(sft_tree_root(tree), NULL, NULL, sink, 0, NULL, err);
    sft_tree_free(tree);
    return code;
}

/* ── info ── */

sft_code sft_dataset_info_tree(const sft_dataset *dataset, const char *path, sft_tree *tree,
                               sft_error *err) {
    const sfti_ds_manifest *m = sfti_ds_manifest_of(dataset);
    sfti_json_writer w;
    sfti_ds_result_begin(&w, tree, path, true, err);

    sfti_json_put_cstr(&w, "mode", sfti_ds_mode_name(m->mode));
    sfti_json_put_text(&w, "generator", m->generator);
    sfti_json_put_cstr(&w, "commit", *m->commit ? m->commit : NULL);
    sfti_json_put_uint(&w, "version", m->version);
    sfti_json_put_known(&w, "batch_size", m->batch_size ? m->batch_size : UINT64_MAX);
    sfti_json_put_text(&w, "name_col", m->name_col);
    sfti_json_put_text(&w, "kv_separator", m->separator);
    sfti_json_put_text(&w, "tail_strategy", m->tail);
    sfti_json_put_text(&w, "index", m->index);
    sfti_json_put_known(&w, "segments", m->segmented ? m->segment_count : UINT64_MAX);

    const bool kv = m->mode == SFT_DATASET_KV;
    const uint64_t columns = kv && m->column_count ? m->column_count : 1;
    uint64_t tensors = 0, shadowed = 0, padded = 0;
    bool known = true;
    for (size_t i = 0; i < m->shard_count; i++) {
        tensors += m->shards[i].facts.tensors;
        shadowed += m->shards[i].facts.shadowed;
        padded += m->shards[i].facts.samples - m->shards[i].facts.valid_samples;
        known = known && m->shards[i].known;
    }
    sfti_json_put_uint(&w, "samples", m->total_samples);
    sfti_json_put_uint(&w, "valid_samples", m->total_valid);
    sfti_json_put_uint(&w, "padded_samples", padded);
    sfti_json_put_uint(&w, "dropped_samples", m->dropped);
    sfti_json_put_uint(&w, "deleted_samples", m->masks.deleted / columns);
    sfti_json_put_uint(&w, "places", m->places.count);
    sfti_json_put_uint(&w, "bytes", m->total_bytes);
    sfti_json_put_uint(&w, "shards", m->shard_count);
    sfti_json_put_known(&w, "tensors", known ? tensors : UINT64_MAX);
    sfti_json_put_uint(&w, "shadowed", shadowed);

    sfti_ds_put_columns(&w, m->columns, m->column_count);
    return sfti_result_end(&w);
}

/* ── versions ── */

static void put_version(sfti_json_writer *w, const sfti_ds_manifest *m) {
    sfti_json_open(w, '{');
    sfti_json_put_uint(w, "version", m->version);
    sfti_json_put_known(w, "committed", m->committed ? m->committed : UINT64_MAX);
    sfti_json_put_cstr(w, "commit", *m->commit ? m->commit : NULL);
    sfti_json_put_uint(w, "samples", m->total_samples);
    sfti_json_put_uint(w, "bytes", m->total_bytes);
    sfti_json_put_uint(w, "shards", m->sums.shards);
    sfti_json_close(w, '}');
}

sft_code sft_dataset_versions_tree(const sft_storage *storage, const char *path, sft_tree *tree,
                                   sft_error *err) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_ds_manifest now, one;
    sfti_ds_version *all;
    sfti_json_writer w;
    size_t count = 0;
    sft_code code = sfti_ds_storage_check(storage, err);
    if (!code) code = sfti_ds_manifest_read(storage, &arena, &now, err);
    if (!code) code = sfti_ds_versions_list(storage, &now, &arena, &all, &count, err);
    if (!code) {
        sfti_ds_result_begin(&w, tree, path, true, err);
        sfti_json_put_open(&w, "versions", '[');
    }
    for (size_t i = 0; !code && i < count; i++) {
        code = sfti_ds_version_read(storage, &all[i], &arena, &one, err);
        if (!code) put_version(&w, &one);
        else if (code == SFT_NOT_FOUND) code = SFT_OK; /* gc removed it meanwhile */
    }
    if (!code) {
        put_version(&w, &now);
        sfti_json_close(&w, ']');
        code = sfti_result_end(&w);
    }
    sfti_arena_free(&arena);
    return code;
}

sft_code sft_dataset_versions_json(const sft_storage *storage, const char *path, sft_sink *sink,
                                   sft_error *err) {
    sft_tree *tree = NULL;
    sft_code code = sft_tree_new(NULL, &tree, err);
    if (!code) code = sft_dataset_versions_tree(storage, path, tree, err);
    return sfti_ds_result_render(tree, code, sink, err);
}

sft_code sft_dataset_info_json(const sft_dataset *dataset, const char *path, sft_sink *sink,
                               sft_error *err) {
    sft_tree *tree = NULL;
    sft_code code = sft_tree_new(NULL, &tree, err);
    if (!code) code = sft_dataset_info_tree(dataset, path, tree, err);
    return sfti_ds_result_render(tree, code, sink, err);
}

/* ── ls ── */

typedef struct ls_call {
    const sft_dataset *dataset;
    sft_open_options open;
    sft_dataset_replaced *replaced;
    sft_match_fn match;
    void *ctx;
} ls_call;

/* Tensors of a shard, or of a file with columns of it. */
static void ls_file(sfti_json_writer *w, const ls_call *call, size_t i, const char *name,
                    const sft_file *file) {
    const sft_dataset_shard *shard = sft_dataset_shard_at(call->dataset, i);
    const bool kv = sft_dataset_get_mode(call->dataset) == SFT_DATASET_KV;
    for (size_t k = 0; k < sft_file_tensor_count(file) && !w->code; k++) {
        const sft_tensor *t = sft_file_tensor_at(file, k);
        if (call->match && !call->match(call->ctx, t)) continue;
        bool replaced = sft_dataset_is_replaced(call->replaced, i, k);
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", t->name);
        sfti_json_put_cstr(w, "shard", name);
        sfti_json_put_cstr(w, "dtype", sft_dtype_describe(t->dtype)->name);
        sfti_json_put_shape(w, "shape", t->shape, t->rank);
        sfti_json_put_uint(w, "bytes", t->end - t->begin);
        sfti_json_put_uint(w, "begin", t->offset);
        sfti_json_put_uint(w, "end", t->offset + (t->end - t->begin));
        if (call->replaced) sfti_json_put_bool(w, "replaced", replaced);
        else sfti_json_put_null(w, "replaced");
        bool deleted = sft_dataset_is_deleted(call->replaced, i, k);
        sfti_json_put_known(w, "deleted_samples", !kv ? shard->deleted
                            : call->replaced ? deleted : UINT64_MAX);
        sfti_json_close(w, '}');
    }
}

static sft_code ls_shard(sfti_json_writer *w, const ls_call *call, size_t i, sft_error *err) {
    const char *name = sft_dataset_shard_at(call->dataset, i)->name;
    sft_file *file = NULL;
    size_t count;
    const sft_dataset_place *of = sft_dataset_shard_places(call->dataset, i, &count);
    sft_code code = sft_dataset_shard_open(call->dataset, i, &call->open, &file, err);
    if (!code) ls_file(w, call, i, name, file);
    sft_close(file);
    for (size_t k = 0; !code && k < count; k++) {
        if (!sfti_ds_place_first(of, k)) continue;
        file = NULL;
        code = sft_dataset_place_open(call->dataset, &of[k], &call->open, &file, err);
        if (!code) ls_file(w, call, i, of[k].file, file);
        sft_close(file);
    }
    return code;
}

sft_code sft_dataset_ls_json(const sft_dataset *dataset, const sft_open_options *open,
                             const char *path, sft_match_fn match, void *ctx, sft_sink *sink,
                             sft_error *err) {
    ls_call call = { .dataset = dataset, .match = match, .ctx = ctx };
    sfti_json_writer w;
    sft_error what = SFT_ERROR_INIT;
    sft_code code = sfti_take_open(open, &call.open, err);
    if (code) return code;
    /* What cannot be found is told when the shard's turn comes, or at the end. */
    sft_error late = SFT_ERROR_INIT;
    sft_code unknown = sft_dataset_find_replaced(dataset, &call.open, &call.replaced, &late);
    sfti_json_write(&w, sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_path(&w, path);
    sfti_json_put_open(&w, "tensors", '[');
    for (size_t i = 0; i < sft_dataset_shard_count(dataset) && !code && !w.code; i++)
        code = ls_shard(&w, &call, i, &what);
    if (!code && unknown) {
        code = unknown;
        what = late;
    }
    sft_dataset_replaced_free(call.replaced);
    sfti_json_close(&w, ']');
    /* Earlier shards are written already: the error comes last. */
    sfti_json_put_bool(&w, "ok", !code);
    if (code) sfti_result_error(&w, "error", &what);
    sft_code written = sfti_result_end(&w);
    if (written) return written;
    return code ? sfti_fail_as(err, code, &what) : SFT_OK;
}
