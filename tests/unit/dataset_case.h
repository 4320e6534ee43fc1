/* Datasets in a folder of their own, of shards made by hand. */
#ifndef DATASET_CASE_H
#define DATASET_CASE_H

#include "dataset/dataset.h"
#include "safetensors_hash.h"
#include "temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>

static sft_storage ds_storage;
static char ds_warned[4096]; /* messages, a line each */
static size_t ds_warn_count;
static const char *ds_form; /* of manifests, unless options say it */

/* ── The folder ── */

static inline int ds_remove_one(const char *path, const struct stat *st, int flag,
                                struct FTW *at) {
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static inline int ds_make(void **state) {
    ds_warned[0] = '\0';
    ds_warn_count = 0;
    if (temp_dir_make(state)) return -1;
    return sft_storage_local(temp_dir, true, NULL, &ds_storage, NULL) ? -1 : 0;
}

static inline int ds_remove(void **state) {
    (void)state;
    sft_storage_close(&ds_storage);
    return nftw(temp_dir, ds_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline bool ds_exists(const char *name) {
    struct stat st;
    return stat(temp_path(name), &st) == 0;
}

/* Entries of the folder whose names begin like this. */
static inline int ds_count(const char *prefix) {
    int count = 0;
    const struct dirent *entry;
    DIR *folder = opendir(temp_dir);
    if (!folder) return -1;
    while ((entry = readdir(folder)) != NULL)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(folder);
    return count;
}

static inline void ds_warn(void *ctx, const sft_error *what) {
    (void)ctx;
    size_t used = strlen(ds_warned);
    (void)snprintf(ds_warned + used, sizeof ds_warned - used, "%s\n", what->message);
    ds_warn_count++;
}

/* ── Options: "name=value" each, NULL behind the last ── */

/* How gc is to work. */
static inline const sft_gc_options *gc_how(uint64_t grace_s, bool remove) {
    static sft_gc_options how = SFT_GC_OPTIONS_INIT;
    how.grace_s = grace_s;
    how.remove = remove;
    return &how;
}

/* keep_old is 0, unless it is among them. */
static inline sft_dataset_options *ds_options(const char *first, ...) {
    sft_pair pairs[16];
    size_t count = 0;
    sft_dataset_options *options = NULL;
    sft_error err = SFT_ERROR_INIT;
    va_list args;
    bool kept = false;
    va_start(args, first);
    for (const char *one = first; one; one = va_arg(args, const char *)) {
        const char *equals = strchr(one, '=');
        pairs[count].key = (sft_span){ one, (size_t)(equals - one) };
        pairs[count++].value = sft_span_cstr(equals + 1);
        kept = kept || strncmp(one, "keep_old=", 9) == 0;
    }
    va_end(args);
    if (!kept) pairs[count++] = (sft_pair){ sft_span_cstr("keep_old"), sft_span_cstr("0") };
    if (ds_form)
        pairs[count++] = (sft_pair){ sft_span_cstr("manifest"), sft_span_cstr(ds_form) };
    if (sft_dataset_options_new(pairs, count, NULL, &options, &err))
        fail_msg("%s", err.message);
    return options;
}

/* ── Shards ── */

typedef struct ds_tensor {
    const char *key;
    sft_dtype dtype;
    uint32_t rank;
    uint64_t shape[4];
    char fill; /* of its bytes */
} ds_tensor;

static inline sft_code ds_fill(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                               sft_error *err) {
    (void)offset, (void)err;
    memset(into, *(const char *)ctx, len);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable ds_fill_source_vtable = {
    sizeof(sft_source_vtable), ds_fill, NULL, NULL, NULL
};

/* A file in the storage; samples NULL: without our mark. */
static inline void ds_put(const sft_storage *storage, const char *name, const ds_tensor *tensors,
                          size_t count, const char *mode, const char *samples,
                          sfti_ds_receipt *facts) {
    sft_part *parts = calloc(count + 1, sizeof *parts);
    sft_source *sources = calloc(count + 1, sizeof *sources);
    const bool padded = facts && facts->valid_samples != facts->samples;
    const size_t pairs = samples ? 3 + padded : 0;
    char valid[32] = "";
    if (padded)
        (void)snprintf(valid, sizeof valid, "%llu", (unsigned long long)facts->valid_samples);
    sft_pair metadata[] = { { sft_span_cstr(SFTI_DATASET_MARK), sft_span_cstr("1") },
                            { sft_span_cstr("mode"), sft_span_cstr(mode ? mode : "") },
                            { sft_span_cstr("samples"), sft_span_cstr(samples ? samples : "") },
                            { sft_span_cstr("valid_samples"), sft_span_cstr(valid) } };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    assert_non_null(parts);
    assert_non_null(sources);
    for (size_t i = 0; i < count; i++) {
        const ds_tensor *t = &tensors[i];
        parts[i].spec = (sft_spec){ .name = sft_span_cstr(t->key), .dtype = t->dtype,
                                    .rank = t->rank, .shape = t->shape };
        sources[i] = (sft_source){ (void *)(uintptr_t)&t->fill, &ds_fill_source_vtable,
                                   UINT64_MAX / 2, NULL, false };
        parts[i].source = &sources[i];
    }
    if (storage->vtable->create(storage->ctx, name, true, &sink, &err)) fail_msg("%s", err.message);
    if (sft_save_parts(parts, count, metadata, pairs, &options, sink, NULL, &err))
        fail_msg("%s: %s", name, err.message);
    free(parts);
    free(sources);
    if (!facts) return;
    sft_source file;
    assert_int_equal(storage->vtable->open(storage->ctx, name, &file, &err), SFT_OK);
    char *bytes = malloc((size_t)file.size);
    size_t got = 0;
    assert_int_equal(sft_source_read(&file, 0, bytes, (size_t)file.size, &got, &err), SFT_OK);
    assert_int_equal(got, file.size);
    facts->bytes = file.size;
    assert_int_equal(sfti_ds_header_bytes(&file, &facts->header_bytes, &err), SFT_OK);
    sft_hasher *hasher;
    sft_hashes hashes;
    assert_int_equal(sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), NULL, &hasher, &err), SFT_OK);
    sft_hasher_update(hasher, bytes, got);
    sft_hasher_result(hasher, &hashes);
    sft_hasher_free(hasher);
    memcpy(facts->sha256, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    free(bytes);
    sft_source_close(&file);
}

/* What a task does: a shard of the commit's job and its receipt, into *receipts. */
static inline void ds_task(const sft_commit *commit, const sft_storage *storage,
                           uint64_t partition, uint64_t shard, const ds_tensor *tensors,
                           size_t count, uint64_t samples, uint64_t valid, bool kv,
                           const sfti_ds_column *columns, size_t column_count,
                           sft_buffer *receipts) {
    char name[SFTI_DATASET_NAME], stored[160], number[32], uuid[37];
    sfti_ds_job job;
    sft_error err = SFT_ERROR_INIT;
    sfti_ds_receipt r = { .partition = partition, .shard = shard, .samples = samples,
                          .valid_samples = valid, .tensors = count, .columns = columns,
                          .column_count = column_count };
    assert_int_equal(sfti_ds_job_parse(sft_commit_job(commit), &job, &err), SFT_OK);
    assert_int_equal(sfti_ds_uuid(uuid, &err), SFT_OK);
    sfti_ds_shard_name(job.first + partition, shard, uuid, name);
    const char *folder = sft_commit_job_folder(commit);
    (void)snprintf(stored, sizeof stored, "%s%s%s", folder, *folder ? "/" : "", name);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)samples);
    ds_put(storage, stored, tensors, count, kv ? "kv" : "batch", number, &r);
    r.name = sft_span_cstr(name);
    r.stored = sft_span_cstr(stored);
    receipts->len = 0;
    assert_true(sfti_buffer_put(receipts, "[", 1));
    assert_int_equal(sfti_ds_receipt_write(&r, sft_commit_job(commit), receipts, &err), SFT_OK);
    assert_true(sfti_buffer_put(receipts, "]", 1));
}

static const uint64_t ds_two[1] = { 2 };

/* A KV shard of one column "v" (F32 [2]) with the given names, separated by commas; adds its
 * receipt. */
static inline void ds_kv_on(sft_commit *commit, const sft_storage *storage, uint64_t partition,
                            uint64_t shard, const char *names, char fill) {
    static const sfti_ds_column column = { .name = { "v", 1 }, .has_dtype = true,
                                           .dtype = SFT_F32, .has_shape = true, .rank = 1,
                                           .shape = ds_two };
    ds_tensor tensors[64];
    char keys[64][64];
    size_t count = 0;
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    sft_error err = SFT_ERROR_INIT;
    for (const char *at = names; at && *at;) {
        const char *comma = strchr(at, ',');
        int len = (int)(comma ? comma - at : (long)strlen(at));
        (void)snprintf(keys[count], sizeof keys[0], "%.*s__v", len, at);
        tensors[count] = (ds_tensor){ keys[count], SFT_F32, 1, { 2 }, fill };
        count++;
        at = comma ? comma + 1 : NULL;
    }
    ds_task(commit, storage, partition, shard, tensors, count, count, count, true, &column, 1,
            &receipts);
    if (sft_commit_add(commit, (sft_span){ receipts.data, receipts.len }, &err))
        fail_msg("%s", err.message);
    sft_buffer_free(&receipts);
}

static inline void ds_kv(sft_commit *commit, uint64_t partition, uint64_t shard,
                         const char *names) {
    ds_kv_on(commit, &ds_storage, partition, shard, names, 1);
}

/* A batch shard of one column "x" (F32 [3] a sample). */
static inline void ds_batch(sft_commit *commit, uint64_t partition, uint64_t shard,
                            uint64_t rows, uint64_t valid) {
    static const uint64_t three[1] = { 3 };
    static const sfti_ds_column column = { .name = { "x", 1 }, .has_dtype = true,
                                           .dtype = SFT_F32, .has_shape = true, .rank = 1,
                                           .shape = three };
    ds_tensor tensor = { "x", SFT_F32, 2, { rows, 3 }, 7 };
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    sft_error err = SFT_ERROR_INIT;
    ds_task(commit, &ds_storage, partition, shard, &tensor, 1, rows, valid, false, &column, 1,
            &receipts);
    if (sft_commit_add(commit, (sft_span){ receipts.data, receipts.len }, &err))
        fail_msg("%s", err.message);
    sft_buffer_free(&receipts);
}

/* ── Commits ── */

static inline sft_commit *ds_begin(const sft_dataset_options *options, sft_commit_mode how) {
    sft_commit_options o = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *commit = NULL;
    sft_error err = SFT_ERROR_INIT;
    o.mode = how;
    if (sft_commit_open(options, &ds_storage, NULL, &o, &commit, &err))
        fail_msg("%s", err.message);
    return commit;
}

/* Prepare, publish without an index, close. */
static inline void ds_end(sft_commit *commit) {
    sft_error err = SFT_ERROR_INIT;
    if (sft_commit_prepare(commit, NULL, &err)) fail_msg("%s", err.message);
    if (sft_commit_publish(commit, NULL, ds_warn, NULL, NULL, &err)) fail_msg("%s", err.message);
    sft_commit_close(commit);
}

/* A dataset of batches of 4 and 3 rows, and one of padding. */
static inline void ds_batches(void) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_batch(c, 1, 0, 4, 3);
    ds_end(c);
    sft_dataset_options_free(o);
}

/* In a folder of its own as many rows of a column y, in files of `rows`. To be closed. */
static inline void ds_values(uint64_t count, uint64_t rows, sft_storage *out) {
    static const sfti_ds_column column = { .name = { "y", 1 }, .has_dtype = true,
                                           .dtype = SFT_I64, .has_shape = true };
    const sft_storage kept = ds_storage;
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    ds_tensor tensor = { "y", SFT_I64, 1, { 0 }, 5 };
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    (void)mkdir(temp_path("values"), 0777);
    assert_int_equal(sft_storage_local(temp_path("values"), true, NULL, out, NULL), SFT_OK);
    ds_storage = *out;
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    for (uint64_t i = 0, done = 0; done < count; i++, done += tensor.shape[0]) {
        tensor.shape[0] = count - done < rows ? count - done : rows;
        ds_task(c, out, i, 0, &tensor, 1, tensor.shape[0], tensor.shape[0], false, &column, 1,
                &receipts);
        assert_int_equal(sft_commit_add(c, (sft_span){ receipts.data, receipts.len }, NULL),
                         SFT_OK);
    }
    sft_buffer_free(&receipts);
    ds_end(c);
    ds_storage = kept;
    sft_dataset_options_free(o);
}

static inline sft_dataset *ds_open(void) {
    sft_dataset *dataset = NULL;
    sft_error err = SFT_ERROR_INIT;
    if (sft_dataset_open(&ds_storage, NULL, ds_warn, NULL, &dataset, &err))
        fail_msg("%s", err.message);
    return dataset;
}

#endif
