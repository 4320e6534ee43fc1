/* Datasets on the platform in memory: commits as a program makes them, every step of which may
 * fail, and the states allowed afterwards. */
#ifndef DATASET_WORLD_H
#define DATASET_WORLD_H

#include "faults.h"

#include "dataset/dataset.h"
#include "safetensors_hash.h"
#include "unit/parquet_footer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DS "/ds"

/* ── One task ── */

static const char *world_at = DS, *world_key = "v"; /* where a commit writes, and its column */
static const uint64_t world_two[1] = { 2 };

static inline sft_code world_fill(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                                  sft_error *err) {
    (void)offset, (void)err, (void)ctx;
    memset(into, 1, len);
    *got = len;
    return SFT_OK;
}

/* Rows of two floats, the bytes of which are the row's letter. */
static inline sft_code world_rows(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                                  sft_error *err) {
    (void)err;
    for (size_t i = 0; i < len; i++) ((char *)into)[i] = ((const char *)ctx)[(offset + i) / 8];
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable world_rows_source_vtable = {
    sizeof(sft_source_vtable), world_rows, NULL, NULL, NULL
};
static const sft_source_vtable world_fill_source_vtable = {
    sizeof(sft_source_vtable), world_fill, NULL, NULL, NULL
};

static bool world_batch; /* mode of the commit */

/* A shard with a tensor "<letter>__v" for each letter; in batch mode a tensor with a row for
 * each. */
static inline sft_code world_file(const sft_storage *s, const char *stored, const char *letters,
                                  sft_error *err) {
    char keys[8][8], samples[4], rows[8] = { 0 };
    const uint64_t shape[2] = { strlen(letters), 2 };
    sft_part parts[8];
    sft_sink sink;
    sft_source source = { NULL, &world_fill_source_vtable, UINT64_MAX / 2, NULL, false };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    size_t count = strlen(letters);
    sft_pair metadata[] = { { sft_span_cstr(SFTI_DATASET_MARK), sft_span_cstr("1") },
                            { sft_span_cstr("mode"),
                              sft_span_cstr(world_batch ? "batch" : "kv") },
                            { sft_span_cstr("samples"), { samples, 1 } } };
    options.alloc = &fault_alloc;
    samples[0] = (char)('0' + count);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(keys[i], sizeof keys[0], "%c__v", letters[i]);
        parts[i] = (sft_part){ .spec = { .name = sft_span_cstr(keys[i]), .dtype = SFT_F32,
                                         .rank = 1, .shape = world_two }, .source = &source };
    }
    if (world_batch) {
        memcpy(rows, letters, count);
        source = (sft_source){ rows, &world_rows_source_vtable, 8 * count, NULL, false };
        parts[0].spec = (sft_spec){ .name = sft_span_cstr(world_key), .dtype = SFT_F32, .rank = 2,
                                    .shape = shape };
        count = 1;
    }
    sft_code code = s->vtable->create(s->ctx, stored, false, &sink, err);
    return code ? code : sft_save_parts(parts, count, metadata, 3, &options, sink, NULL, err);
}

static inline sft_code world_facts(const sft_storage *s, const char *stored, sfti_ds_receipt *r,
                                   sft_error *err) {
    static char bytes[1 << 14];
    size_t got = 0;
    sft_source source;
    sft_hasher *hasher = NULL;
    sft_hashes hashes;
    sft_code code = s->vtable->open(s->ctx, stored, &source, err);
    if (code) return code;
    r->bytes = source.size;
    code = sfti_ds_header_bytes(&source, &r->header_bytes, err);
    if (!code) code = sft_source_read(&source, 0, bytes, (size_t)source.size, &got, err);
    if (!code) code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), &fault_alloc, &hasher, err);
    if (!code) {
        sft_hasher_update(hasher, bytes, got);
        sft_hasher_result(hasher, &hashes);
        memcpy(r->sha256, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    }
    sft_hasher_free(hasher);
    sft_source_close(&source);
    return code;
}

static inline sft_code world_receipt(sft_commit *c, const sfti_ds_receipt *r, sft_error *err) {
    sft_buffer text = { .alloc = fault_alloc };
    sft_code code = sfti_buffer_put(&text, "[", 1) ? SFT_OK
                                                    : sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "[");
    if (!code) code = sfti_ds_receipt_write(r, sft_commit_job(c), &text, err);
    if (!code && !sfti_buffer_put(&text, "]", 1))
        code = sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "]");
    if (!code) code = sft_commit_add(c, (sft_span){ text.data, text.len }, err);
    sft_buffer_free(&text);
    return code;
}

static inline sft_code world_task(sft_commit *c, const sft_storage *s, uint64_t partition,
                                  const char *letters, sft_error *err) {
    char name[SFTI_DATASET_NAME], stored[160], uuid[37];
    sfti_ds_job job;
    size_t count = strlen(letters);
    const sfti_ds_column column = { .name = sft_span_cstr(world_key), .has_dtype = true,
                                    .dtype = SFT_F32, .has_shape = true, .rank = 1,
                                    .shape = world_two };
    sfti_ds_receipt r = { .partition = partition, .samples = count, .valid_samples = count,
                          .tensors = world_batch ? 1 : count, .columns = &column,
                          .column_count = 1 };
    sft_code code = sfti_ds_job_parse(sft_commit_job(c), &job, err);
    if (!code) code = sfti_ds_uuid(uuid, err);
    if (code) return code;
    sfti_ds_shard_name(job.first + partition, 0, uuid, name);
    (void)snprintf(stored, sizeof stored, "%s/%s", sft_commit_job_folder(c), name);
    r.name = sft_span_cstr(name);
    r.stored = sft_span_cstr(stored);
    code = world_file(s, stored, letters, err);
    if (!code) code = world_facts(s, stored, &r, err);
    return code ? code : world_receipt(c, &r, err);
}

/* ── One commit ── */

typedef struct world_commit {
    const char *mode; /* of duplicates: "fail", "lastWin"; then words: batch, segments, whole */
    sft_commit_mode how;
    const char *letters; /* of the shards, '|' between */
    bool index, adopt;
} world_commit;

static size_t world_warned;
static sft_code world_aborted; /* result of the abort */

static inline void world_warn(void *ctx, const sft_error *what) {
    (void)ctx;
    world_warned += what->message[0] != '\0';
}

static inline sft_code world_index(sft_commit *c, const sft_storage *s, sft_error *err) {
    struct ArrowArrayStream stream;
    struct ArrowSchema schema = { .release = NULL };
    struct ArrowArray batch;
    char name[80], commit[37] = { 0 };
    uint8_t rows = 0;
    sft_code code = sft_commit_index(c, &stream, err);
    if (code) return code;
    int failed = stream.get_schema(&stream, &schema);
    if (schema.release) schema.release(&schema);
    for (bool more = failed == 0; more;) {
        failed = stream.get_next(&stream, &batch);
        more = failed == 0 && batch.release;
        if (more) rows = (uint8_t)(rows + batch.length);
        if (more) batch.release(&batch);
    }
    /* The stream has an errno and a text, but no sft_code. */
    if (failed) code = sft_error_set(err, failed == 12 ? SFT_OUT_OF_MEMORY : SFT_IO_READ, failed,
                                     "the index");
    stream.release(&stream);
    (void)snprintf(name, sizeof name, "%s/" SFTI_DATASET_INDEX, sft_commit_job_folder(c));
    memcpy(commit, sft_commit_job(c).data, 36);
    pf_file file = pf_index(rows, NULL, NULL, commit, "dtype");
    return code ? code : sfti_ds_put(s, name, (sft_span){ (char *)file.bytes, file.len }, err);
}

static inline sft_code world_tasks(sft_commit *c, const sft_storage *s, const char *letters,
                                   sft_error *err) {
    sft_code code = SFT_OK;
    uint64_t partition = 0;
    for (const char *at = letters; !code && at && *at; partition++) {
        char one[8];
        const char *bar = strchr(at, '|');
        (void)snprintf(one, sizeof one, "%.*s", (int)(bar ? bar - at : (long)strlen(at)), at);
        code = world_task(c, s, partition, one, err);
        at = bar ? bar + 1 : NULL;
    }
    return code;
}

/* From begin to publish; aborts after a failure, ignoring errors. */
static inline sft_code world_run(const world_commit *w, sft_error *err) {
    const char *form = strstr(w->mode, "segments") ? "segments" : "whole";
    const bool formed = strstr(w->mode, form) != NULL;
    world_batch = strstr(w->mode, "batch") != NULL;
    sft_pair pairs[] = { { sft_span_cstr(world_batch ? "batch_size" : "name_col"),
                           sft_span_cstr("8") },
                         { sft_span_cstr("duplicatesStrategy"),
                           { w->mode, strcspn(w->mode, " ") } },
                         { sft_span_cstr("generate_index"),
                           sft_span_cstr(w->index ? "true" : "false") },
                         { sft_span_cstr("keep_old"),
                           sft_span_cstr(strstr(w->mode, "drop") ? "0" : "all") },
                         { sft_span_cstr("manifest"), sft_span_cstr(form) } };
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_dataset_options *options = NULL;
    sft_storage s = { .ctx = NULL };
    sft_commit *c = NULL;
    how.mode = w->how;
    how.adopt_listing = w->adopt;
    how.lock_wait_ms = 1;
    how.open = &open;
    open.alloc = &fault_alloc;
    sft_code code =
        sft_dataset_options_new(pairs, formed ? 5 : 4, &fault_alloc, &options, err);
    if (!code) code = sft_storage_local(world_at, false, &fault_alloc, &s, err);
    if (!code) code = sft_commit_open(options, &s, NULL, &how, &c, err);
    if (!code) code = world_tasks(c, &s, w->letters, err);
    if (!code) code = sft_commit_prepare(c, NULL, err);
    bool index = !code && sft_commit_indexed(c);
    if (index) code = world_index(c, &s, err);
    const char *file = index ? SFTI_DATASET_INDEX : NULL;
    if (!code) code = sft_commit_publish(c, file, world_warn, NULL, NULL, err);
    if (code && c) {
        sft_error ignored = SFT_ERROR_INIT;
        world_aborted = sft_commit_abort(c, &ignored);
    }
    sft_commit_close(c);
    sft_storage_close(&s);
    sft_dataset_options_free(options);
    return code;
}

/* Deletes the row of a letter of a KV dataset. */
static inline sft_code world_delete(const char *letter, sft_error *err) {
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_storage s = { .ctx = NULL };
    sft_buffer text = { .alloc = { NULL, NULL } };
    sft_sink sink = sft_sink_memory(&text);
    const sft_span key = sft_span_cstr(letter);
    how.keys = &key;
    how.key_count = 1;
    how.warn = world_warn;
    open.alloc = &fault_alloc;
    how.open = &open;
    sft_code code = sft_storage_local(DS, false, &fault_alloc, &s, err);
    if (!code) code = sft_dataset_delete_json(&s, &how, DS, &sink, NULL, err);
    sft_sink_abandon(&sink);
    sft_buffer_free(&text);
    sft_storage_close(&s);
    return code;
}

/* The values of a column to add, one for each row: a dataset of its own, with its name. */
static inline sft_code world_values(const char *letters, sft_error *err) {
    const char name[] = { letters[0], '\0' }, folder[] = { '/', letters[0], '\0' };
    const world_commit values = { "fail batch", SFT_COMMIT_NEW, letters, false, false };
    world_at = folder;
    world_key = name;
    sft_code code = world_run(&values, err);
    world_at = DS;
    world_key = "v";
    return code;
}

static inline sft_code world_add(const char *letters, sft_error *err) {
    const char folder[] = { '/', letters[0], '\0' };
    sft_add_options how = SFT_ADD_OPTIONS_INIT;
    sft_storage s = { .ctx = NULL }, values = { .ctx = NULL };
    sft_buffer text = { .alloc = { NULL, NULL } };
    sft_sink sink = sft_sink_memory(&text);
    how.warn = world_warn;
    sft_code code = sft_storage_local(DS, false, NULL, &s, err);
    if (!code) code = sft_storage_local(folder, true, NULL, &values, err);
    if (!code) code = sft_dataset_add_json(&s, &values, &how, DS, &sink, NULL, err);
    sft_sink_abandon(&sink);
    sft_buffer_free(&text);
    sft_storage_close(&values);
    sft_storage_close(&s);
    return code;
}

/* ── The dataset afterwards ── */

static inline sft_code world_letter(char *letters, size_t *used, char letter) {
    char *before = memchr(letters, letter, *used);
    if (before) memmove(before, before + 1, (*used)-- - (size_t)(before - letters) - 1);
    letters[(*used)++] = letter;
    return SFT_OK;
}

static inline bool world_deleted(sft_span mask, size_t bit) {
    return bit / 8 < mask.len && ((uint8_t)mask.data[bit / 8] >> bit % 8 & 1);
}

/* Those of a shard's tensor, or of its rows; without deleted ones. */
static inline sft_code world_tensor(const sft_file *file, size_t i, sft_span mask, char *letters,
                                    size_t *used, sft_error *err) {
    const sft_tensor *t = sft_file_tensor_at(file, i);
    char bytes[64] = { 0 };
    size_t got = 0;
    if (t->rank < 2) { /* tensors are in the order of names */
        (void)world_letter(letters, used, t->name.data[0]);
        *used -= world_deleted(mask, i);
        return SFT_OK;
    }
    sft_source source = sft_file_source(file);
    sft_code code =
        sft_source_read(&source, t->offset, bytes, (size_t)(t->end - t->begin), &got, err);
    for (size_t k = 0; !code && k < t->shape[0]; k++)
        if (!world_deleted(mask, k)) code = world_letter(letters, used, bytes[8 * k]);
    return code;
}

/* Those of a file, less those of a mask. */
static inline sft_code world_tensors(sft_file *file, sft_span mask, char *letters, size_t *used,
                                     sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < sft_file_tensor_count(file); k++)
        code = world_tensor(file, k, mask, letters, used, err);
    sft_close(file);
    return code;
}

/* Letters of the tensors that win, in the order of shards, those of added columns behind each; "-"
 * without a dataset or this version. NULL: damaged, see *why. */
static inline const char *world_letters_at(uint64_t version, const char **why) {
    static char letters[64], message[600];
    sft_error err = SFT_ERROR_INIT;
    sft_storage s;
    sft_dataset *d = NULL;
    size_t used = 0;
    *why = message;
    if (sft_storage_local(DS, true, NULL, &s, &err)) abort();
    sft_code code = sft_dataset_open_version(&s, version, 0, NULL, NULL, NULL, &d, &err);
    for (size_t i = 0; !code && i < sft_dataset_shard_count(d); i++) {
        const sft_span mask = sft_dataset_shard_mask(d, i);
        sft_file *file = NULL;
        size_t places = 0;
        const sft_dataset_place *place = sft_dataset_shard_places(d, i, &places);
        code = sft_dataset_shard_open(d, i, NULL, &file, &err);
        if (!code) code = world_tensors(file, mask, letters, &used, &err);
        for (; !code && places; places--, place++) {
            if (!place->file) continue;
            code = sft_dataset_place_open(d, place, NULL, &file, &err);
            if (!code) code = world_tensors(file, mask, letters, &used, &err);
        }
    }
    letters[used] = '\0';
    sft_dataset_close(d);
    sft_storage_close(&s);
    if (code == SFT_MANIFEST_MISSING) return "-";
    (void)snprintf(message, sizeof message, "%s", err.message);
    return code ? NULL : letters;
}

static inline const char *world_letters(const char **why) { return world_letters_at(0, why); }

/* NULL, or what is wrong; after gc nothing else may be left. */
static inline const char *world_verify(bool gc) {
    static char result[1 << 14];
    sft_error err = SFT_ERROR_INIT;
    sft_buffer text = { .alloc = { NULL, NULL } };
    sft_storage s;
    bool whole = false;
    if (sft_storage_local(DS, true, NULL, &s, &err)) abort();
    sft_sink sink = sft_sink_memory(&text);
    sft_code code = SFT_OK;
    sft_gc_options how = SFT_GC_OPTIONS_INIT;
    how.grace_s = 0;
    how.remove = true;
    if (gc) code = sft_dataset_gc_json(&s, &how, DS, &sink, &err);
    if (!code) code = sft_sink_finish(&sink, &err);
    sink = sft_sink_memory(&text);
    if (!code) code = sft_dataset_verify_json(&s, true, NULL, DS, &sink, &whole, NULL, &err);
    if (!code) code = sft_sink_finish(&sink, &err);
    (void)snprintf(result, sizeof result, "%s %.*s", err.message, (int)text.len,
                   text.data ? text.data : "");
    sft_buffer_free(&text);
    sft_storage_close(&s);
    /* An index that no manifest names does no harm, and gc leaves it. */
    bool index = strstr(result, "\"orphan_count\":1,\"orphans\":[{\"code\":\"dataset_shard\","
                                "\"shard\":\"_tensor_index.parquet\"") != NULL;
    bool leftovers = gc && !index && !strstr(result, "\"orphan_count\":0");
    return code || !whole || leftovers ? result : NULL;
}

#endif
