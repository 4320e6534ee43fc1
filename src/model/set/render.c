/* Result objects of info, ls and check. Tests: test_render.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/result.h"
#include "base/tree.h"
#include "base/utf8.h"
#include "set/deep.h"
#include "set/set.h"
#include "safetensors_report.h"
#include "safetensors_scan.h"

#include <string.h>

/* ── info ── */

/* Totals of one set or several. */
typedef struct set_sums {
    uint64_t bytes, header_bytes, data_bytes, tensors, parameters, unaligned;
    uint32_t alignment;
    bool incomplete;
    sft_dtype_sum dtypes[SFT_DTYPE_COUNT]; /* by place in the order */
} set_sums;

static void sums_add(set_sums *sums, const sft_set *set) {
    sft_dtype_sum dtypes[SFT_DTYPE_COUNT];
    size_t count = sft_set_dtypes(set, dtypes, SFT_DTYPE_COUNT);
    for (size_t i = 0; i < set->shard_count; i++) {
        const sft_file *file = set->files[i];
        uint32_t alignment = sft_file_alignment(file);
        sfti_total_add(&sums->header_bytes, sft_file_header_bytes(file));
        sfti_total_add(&sums->data_bytes, sft_file_data_bytes(file));
        if (alignment < sums->alignment) sums->alignment = alignment;
        sums->incomplete = sums->incomplete || !sft_file_complete(file);
    }
    sfti_total_add(&sums->bytes, sft_set_file_bytes(set));
    sfti_total_add(&sums->tensors, set->count);
    sfti_total_add(&sums->unaligned, sft_set_unaligned_count(set));
    for (size_t i = 0; i < count; i++) {
        sft_dtype_sum *sum = &sums->dtypes[sft_dtype_describe(dtypes[i].dtype)->order];
        sum->dtype = dtypes[i].dtype;
        sfti_total_add(&sum->tensors, dtypes[i].tensors);
        sfti_total_add(&sum->parameters, dtypes[i].parameters);
        sfti_total_add(&sum->bytes, dtypes[i].bytes);
        sfti_total_add(&sums->parameters, dtypes[i].parameters);
    }
}

static void put_file(sfti_json_writer *w, const set_sums *sums, uint64_t data_offset) {
    sfti_json_put_bool(w, "complete", !sums->incomplete);
    sfti_json_put_open(w, "file", '{');
    sfti_json_put_known(w, "bytes", sums->bytes);
    sfti_json_put_uint(w, "header_bytes", sums->header_bytes);
    sfti_json_put_known(w, "data_offset", data_offset);
    sfti_json_put_uint(w, "data_bytes", sums->data_bytes);
    sfti_json_put_uint(w, "tensors", sums->tensors);
    sfti_json_put_uint(w, "parameters", sums->parameters);
    sfti_json_put_uint(w, "alignment", sums->alignment);
    sfti_json_put_uint(w, "unaligned", sums->unaligned);
    sfti_json_put_open(w, "dtypes", '{');
    for (size_t i = 0; i < SFT_DTYPE_COUNT; i++) {
        if (sums->dtypes[i].tensors == 0) continue;
        sfti_json_put_open(w, sft_dtype_describe(sums->dtypes[i].dtype)->name, '{');
        sfti_json_put_uint(w, "tensors", sums->dtypes[i].tensors);
        sfti_json_put_uint(w, "parameters", sums->dtypes[i].parameters);
        sfti_json_put_uint(w, "bytes", sums->dtypes[i].bytes);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, '}');
    sfti_json_close(w, '}');
}

/* ── Metadata: what is shown of long values and pictures ── */

/* Bytes before the base64 of an image's value; SIZE_MAX if the value is not an image. */
static size_t before_picture(sft_pair pair) {
    static const char *const keys[] = { "thumbnail", "preview_image", "cover_images" };
    size_t most = pair.value.len < 64 ? pair.value.len : 64;
    if (most > 5 && memcmp(pair.value.data, "data:", 5) == 0)
        for (size_t i = 5; i + 8 <= most; i++)
            if (memcmp(pair.value.data + i, ";base64,", 8) == 0) return i + 8;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t len = strlen(keys[i]);
        if (pair.value.len > 64 && pair.key.len >= len
            && memcmp(pair.key.data + pair.key.len - len, keys[i], len) == 0)
            return 0;
    }
    return SIZE_MAX;
}

/* Bytes of the value to show, whole characters only. */
static size_t shown_bytes(sft_pair pair, uint64_t cut) {
    size_t shown = cut ? before_picture(pair) : SIZE_MAX;
    if (shown > pair.value.len) shown = pair.value.len;
    if (cut == 0 || shown <= cut) return shown;
    return sfti_utf8_cut(pair.value, (size_t)cut);
}

/* The pairs of all shards; for a key that several have, the first shard's. */
typedef struct metadata_union {
    sfti_names names;
    sft_pair *pairs;
    uint32_t count;
} metadata_union;

static sft_span union_key_at(const void *ctx, uint32_t entry) {
    return ((const metadata_union *)ctx)->pairs[entry].key;
}

static sft_code union_begin(metadata_union *all, const sft_set *set, sfti_arena *arena,
                            sft_error *err) {
    uint64_t count = 0;
    for (size_t s = 0; s < set->shard_count; s++) count += sft_file_metadata_count(set->files[s]);
    uint64_t bytes = (count + 1) * sizeof *all->pairs;
    all->count = 0;
    if (count >= SFTI_NO_NAME)
        return sfti_fail(err, SFT_TOO_MANY_METADATA,
                         "expected fewer than 4294967295 pairs, found %llu",
                         (unsigned long long)count);
    all->pairs = sfti_arena_take(arena, (size_t)bytes);
    if (!all->pairs) return sfti_fail_memory(err, bytes);
    sft_code code = sfti_set_names(&all->names, (size_t)count, union_key_at, all, arena, err);
    for (size_t s = 0; !code && s < set->shard_count; s++)
        for (size_t i = 0; i < sft_file_metadata_count(set->files[s]); i++) {
            sft_pair pair = sft_file_metadata_at(set->files[s], i);
            uint32_t entry = all->count;
            all->pairs[entry] = pair;
            all->count += sfti_names_add(&all->names, pair.key, entry) == entry;
        }
    return code;
}

static size_t pair_count(const sft_set *set, const metadata_union *all) {
    return set->shard_count == 1 ? sft_file_metadata_count(set->files[0]) : all->count;
}

static sft_pair pair_at(const sft_set *set, const metadata_union *all, size_t i) {
    return set->shard_count == 1 ? sft_file_metadata_at(set->files[0], i) : all->pairs[i];
}

static void put_metadata(sfti_json_writer *w, const sft_set *set, const metadata_union *all,
                         uint64_t cut) {
    sfti_json_put_open(w, "metadata", '{');
    for (size_t i = 0; i < pair_count(set, all); i++) {
        sft_pair pair = pair_at(set, all, i);
        sfti_json_key_span(w, pair.key);
        sfti_json_span(w, (sft_span){ pair.value.data, shown_bytes(pair, cut) });
    }
    sfti_json_close(w, '}');
    if (cut == 0) return;
    sfti_json_put_open(w, "metadata_cut", '{');
    for (size_t i = 0; i < pair_count(set, all); i++) {
        sft_pair pair = pair_at(set, all, i);
        if (shown_bytes(pair, cut) == pair.value.len) continue;
        sfti_json_key_span(w, pair.key);
        sfti_json_uint(w, pair.value.len);
    }
    sfti_json_close(w, '}');
}

static sft_code put_model(sfti_json_writer *w, const sft_set *set, const char *path,
                          uint64_t cut, sft_error *err) {
    metadata_union all;
    set_sums sums = { .alignment = UINT32_MAX };
    sfti_arena arena = { .alloc = set->arena.alloc };
    sft_code code = set->shard_count > 1 ? union_begin(&all, set, &arena, err) : SFT_OK;
    if (!code) {
        sums_add(&sums, set);
        sfti_result_begin(w, path, true);
        put_file(w, &sums,
                 set->shard_count == 1 ? sft_file_data_offset(set->files[0]) : UINT64_MAX);
        if (cut != SFT_NO_METADATA) put_metadata(w, set, &all, cut);
        bool lists = set->shard_count > 1 || set->index_path;
        if (lists) sfti_json_put_open(w, "shards", '[');
        for (size_t i = 0; lists && i < set->shard_count; i++) {
            sfti_json_open(w, '{');
            sfti_json_path(w, set->paths[i]);
            sfti_json_put_known(w, "bytes", sft_file_size(set->files[i]));
            sfti_json_put_uint(w, "tensors", sft_file_tensor_count(set->files[i]));
            sfti_json_close(w, '}');
        }
        if (lists) sfti_json_close(w, ']');
        code = sfti_result_end(w);
    }
    sfti_arena_free(&arena);
    return code;
}

sft_code sft_set_json(const sft_set *set, const char *path, uint64_t cut, sft_sink *sink,
                       sft_error *err) {
    sfti_json_writer w;
    sfti_json_write(&w, sink, 0, err);
    return put_model(&w, set, path, cut, err);
}

static sft_code put_model_sums(sfti_json_writer *w, const sft_set *const *sets, size_t count,
                               const char *path) {
    set_sums sums = { .alignment = UINT32_MAX };
    for (size_t i = 0; i < count; i++) sums_add(&sums, sets[i]);
    sfti_result_begin(w, path, true);
    put_file(w, &sums, UINT64_MAX);
    sfti_json_put_open(w, "metadata", '{');
    sfti_json_close(w, '}');
    sfti_json_put_open(w, "metadata_cut", '{');
    sfti_json_close(w, '}');
    return sfti_result_end(w);
}

sft_code sft_sets_json(const sft_set *const *sets, size_t count, const char *path,
                            sft_sink *sink, sft_error *err) {
    sfti_json_writer w;
    sfti_json_write(&w, sink, 0, err);
    return put_model_sums(&w, sets, count, path);
}

sft_code sft_sets_tree(const sft_set *const *sets, size_t count, const char *path, uint64_t cut,
                       sft_tree *tree, sft_error *err) {
    sfti_json_writer w;
    sfti_json_write_tree(&w, tree, err);
    return count == 1 ? put_model(&w, sets[0], path, cut, err)
                      : put_model_sums(&w, sets, count, path);
}

/* ── ls ── */

sft_code sft_set_ls_json(const sft_set *set, const char *path, sft_order order, sft_match_fn match,
                     void *ctx, sft_sink *sink, sft_error *err) {
    sfti_json_writer w;
    uint32_t *places = NULL;
    bool complete = true;
    sft_code code = SFT_OK;
    if (order != SFT_ORDER_OFFSET && set->count > 0) {
        places = sfti_take(&set->arena.alloc, set->count * sizeof *places);
        code = places ? sft_set_order(set, order, places, err)
                      : sfti_fail_memory(err, set->count * sizeof *places);
    }
    if (!code) {
        sfti_json_write(&w, sink, 0, err);
        sfti_result_begin(&w, path, true);
        for (size_t i = 0; i < set->shard_count; i++)
            complete = complete && sft_file_complete(set->files[i]);
        sfti_json_put_bool(&w, "complete", complete);
        sfti_json_put_open(&w, "tensors", '[');
        for (size_t i = 0; i < set->count && !w.code; i++) {
            size_t at = places ? places[i] : i, shard = sft_set_tensor_shard(set, at);
            const sft_tensor *tensor = sft_set_tensor_at(set, at);
            if (match && !match(ctx, tensor)) continue;
            sfti_json_open(&w, '{');
            sfti_result_listed(&w, tensor, set->shard_count > 1 ? set->paths[shard] : NULL);
            sfti_json_close(&w, '}');
        }
        sfti_json_close(&w, ']');
        code = sfti_result_end(&w);
    }
    sfti_release(&set->arena.alloc, places, set->count * sizeof *places);
    return code;
}

/* ── Errors ── */

sft_code sft_error_json(const sft_error *error, const char *path, sft_sink *sink,
                        sft_error *err) {
    sfti_json_writer w;
    sfti_json_write(&w, sink, 0, err);
    sfti_result_begin(&w, path, false);
    sfti_result_error(&w, "error", error);
    return sfti_result_end(&w);
}

/* ── check ── */

static const char *level_name(sft_level level) {
    static const char *const names[] = { "compat", "default", "strict" };
    return names[level];
}

void sfti_put_deep(sfti_json_writer *w, const sft_deep_counts *deep) {
    sfti_json_key(w, "deep");
    if (!deep) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_json_put_uint(w, "tensors", deep->tensors);
    sfti_json_put_uint(w, "values", deep->values);
    sfti_json_put_uint(w, "nan", deep->nan);
    sfti_json_put_uint(w, "inf", deep->inf);
    sfti_json_put_uint(w, "tensors_with_nan", deep->tensors_with_nan);
    sfti_json_put_uint(w, "tensors_with_inf", deep->tensors_with_inf);
    sfti_json_put_known(w, "first_nan_tensor", deep->first_nan_tensor);
    sfti_json_put_known(w, "first_inf_tensor", deep->first_inf_tensor);
    sfti_json_close(w, '}');
}

sft_code sft_scan_json(const sft_scan *scan, const char *path, const sft_deep_counts *deep,
                        sft_sink *sink, sft_error *err) {
    sfti_json_writer w;
    const sft_error *error = sft_scan_error(scan);
    sfti_json_write(&w, sink, 0, err);
    sfti_result_begin(&w, path, !error);
    sfti_json_put_cstr(&w, "level", level_name(sft_scan_level(scan)));
    sfti_result_error(&w, "error", error);
    sfti_json_put_open(&w, "findings", '[');
    for (size_t i = 0; i < sft_scan_finding_count(scan); i++)
        sfti_result_finding(&w, &sft_scan_finding_at(scan, i)->error, true);
    sfti_json_close(&w, ']');
    sfti_json_put_open(&w, "notes", '[');
    for (size_t i = 0; i < sft_scan_note_count(scan); i++) {
        const sft_note *note = sft_scan_note_at(scan, i);
        sfti_json_open(&w, '{');
        sfti_json_put_cstr(&w, "code", note->name);
        sfti_json_put_cstr(&w, "message", note->error.message);
        sfti_json_put_known(&w, "offset", note->error.offset);
        sfti_result_tensor(&w, &note->error);
        sfti_json_close(&w, '}');
    }
    sfti_json_close(&w, ']');
    sfti_put_deep(&w, deep);
    return sfti_result_end(&w);
}

sft_code sft_set_check_json(const sft_error *verdict, sft_level level, sft_span shards,
                            const char *path, const sft_deep_counts *deep, sft_sink *sink,
                            sft_error *err) {
    sfti_json_writer w;
    sfti_json_write(&w, sink, 0, err);
    sfti_result_begin(&w, path, !verdict);
    sfti_json_put_cstr(&w, "level", level_name(level));
    sfti_result_error(&w, "error", verdict);
    /* The verdict on the set is its only finding: each shard has its own. */
    sfti_json_put_open(&w, "findings", '[');
    if (verdict) sfti_result_finding(&w, verdict, true);
    sfti_json_close(&w, ']');
    sfti_json_put_open(&w, "notes", '[');
    sfti_json_close(&w, ']');
    sfti_put_deep(&w, deep);
    sfti_json_put_open(&w, "shards", '[');
    if (shards.len) sfti_json_raw(&w, shards);
    sfti_json_close(&w, ']');
    return sfti_result_end(&w);
}
