/* compact: shards of names and of batches put together. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

/* ── Results ── */

/* From the plan in "shards_before" on, without "bytes_after", which only writing tells. */
static void plan_of(char plan[1 << 16]) {
    const char *from = strstr(out.data, "\"shards_before\"");
    const char *bytes = strstr(out.data, "\"bytes_after\"");
    assert_true(from && bytes && strlen(from) < 1 << 16);
    int head = (int)(bytes - from);
    (void)snprintf(plan, 1 << 16, "%.*s%s", head, from, strchr(bytes, ','));
}

/* What a dry run says is what is done then, and it does nothing itself. */
static void compact(uint64_t target) {
    static char plan[1 << 16], before[1 << 16], after[1 << 16];
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    how.drop_old = true;
    how.target_bytes = target;
    how.warn = ds_warn;
    how.dry_run = true;
    sft_sink sink = sft_sink_memory(&out);
    long len = temp_read(SFTI_DATASET_MANIFEST, before, sizeof before);
    size_t parts = ds_count("part-"), jobs = ds_count("_job-");
    finish(&sink, sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err));
    assert_int_equal(temp_read(SFTI_DATASET_MANIFEST, after, sizeof after), len);
    assert_memory_equal(before, after, (size_t)len);
    assert_int_equal(ds_count("part-"), parts);
    assert_int_equal(ds_count("_job-"), jobs);
    has("\"dry_run\":true");
    plan_of(plan);
    how.dry_run = false;
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err));
    has("\"dry_run\":false");
    plan_of(after);
    assert_string_equal(plan, after);
}

/* ── compact ── */

static void key_is(const sft_dataset *d, const char *key, char fill, size_t in) {
    size_t found = 0;
    for (size_t i = 0; i < sft_dataset_shard_count(d); i++) {
        sft_file *file;
        char bytes[8] = { 0 };
        size_t got = 0;
        assert_int_equal(sft_dataset_shard_open(d, i, NULL, &file, &err), SFT_OK);
        const sft_tensor *t = sft_file_find_cstr(file, key);
        if (t) {
            sft_source source = sft_file_source(file);
            assert_int_equal(sft_source_read(&source, t->offset, bytes, 8, &got, &err), SFT_OK);
            for (int k = 0; k < 8; k++) assert_int_equal(bytes[k], fill);
            assert_int_equal(i, in);
            found++;
        }
        sft_close(file);
    }
    assert_int_equal(found, 1);
}

static void compacted(void **state) {
    (void)state;
    make_kv();
    foreign();
    temp_write(SFTI_DATASET_INDEX, "x", 1);
    edit("\"index\":null", "\"index\":\"_tensor_index.parquet\"");
    compact(0); /* only shards with losers */
    has("\"shards_before\":3,\"shards_after\":3,\"rewritten\":1,\"tensors_dropped\":1,");
    has("\"index_removed\":true");
    foreign_there();
    assert_false(ds_exists(SFTI_DATASET_INDEX));
    assert_false(ds_exists(shard[0]));
    assert_true(ds_exists(shard[1]) && ds_exists(shard[2]));
    assert_int_equal(ds_count("_job-"), 1); /* the foreign one */
    verify_whole(true);
    read_manifest();
    assert_non_null(strstr(manifest, "\"version\":2,"));
    assert_non_null(strstr(manifest, "\"total_samples\":6,"));
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_shard_at(d, 0)->samples, 2);
    assert_int_equal(sft_dataset_shard_at(d, 1)->first_sample, 2);
    assert_int_equal(sft_dataset_shard_at(d, 2)->first_sample, 4);
    key_is(d, "a__v", 1, 0);
    key_is(d, "b__v", 2, 1);
    key_is(d, "f__v", 3, 2);
    sft_dataset_close(d);
    compact(0);
    has("\"rewritten\":0,");
    read_manifest();
    assert_non_null(strstr(manifest, "\"version\":2,"));
}

static void put_together(void **state) {
    (void)state;
    make_kv();
    uint64_t bytes = 0;
    sft_dataset *d = ds_open();
    for (size_t i = 0; i < 2; i++) bytes += sft_dataset_shard_at(d, i)->bytes;
    sft_dataset_close(d);
    compact(bytes); /* two fit */
    has("\"shards_before\":3,\"shards_after\":2,\"rewritten\":2,\"tensors_dropped\":1,");
    verify_whole(true);
    d = ds_open();
    assert_int_equal(sft_dataset_shard_at(d, 0)->samples, 4);
    assert_int_equal(sft_dataset_shard_at(d, 0)->tensors, 4);
    key_is(d, "b__v", 2, 0);
    key_is(d, "e__v", 3, 1);
    sft_dataset_close(d);
    compact(UINT64_MAX);
    has("\"shards_after\":1,");
    verify_whole(true);
    assert_int_equal(ds_count("part-"), 1);
    compact(UINT64_MAX);
    has("\"rewritten\":0,");
    assert_int_equal(ds_warn_count, 0);
}

/* A shard without live tensors. */
static void all_lost(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "duplicatesStrategy=lastWin", NULL);
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv_on(c, &ds_storage, 0, 0, "a,b", 1);
    ds_kv_on(c, &ds_storage, 1, 0, "b,a", 2);
    ds_end(c);
    compact(0);
    has("\"shards_before\":2,\"shards_after\":1,\"rewritten\":1,\"tensors_dropped\":2,");
    verify_whole(true);
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_samples(d), 2);
    key_is(d, "a__v", 2, 0);
    sft_dataset_close(d);
    sft_dataset_options_free(o);
}

/* ── Batches ── */

/* Shards of one column "x" (F32 [3]) of so many rows each; their rows are numbered. */
static void make_rows(const char *first, const char *tail, const uint64_t *rows,
                      const uint64_t *valid, size_t count) {
    sft_dataset_options *o = ds_options(first, tail, NULL);
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++) {
        sft_commit *c = ds_begin(o, i ? SFT_COMMIT_APPEND : SFT_COMMIT_NEW);
        ds_batch(c, 0, 0, rows[i], valid[i]);
        ds_end(c);
        sft_dataset *d = ds_open();
        sft_file *file;
        sft_dataset_shard *s = (sft_dataset_shard *)(uintptr_t)sft_dataset_shard_at(d, i);
        assert_int_equal(sft_dataset_shard_open(d, i, NULL, &file, &err), SFT_OK);
        uint64_t at = sft_file_find_cstr(file, "x")->offset;
        sft_close(file);
        FILE *raw = fopen(temp_path(s->name), "r+b");
        assert_non_null(raw);
        assert_int_equal(fseek(raw, (long)at, SEEK_SET), 0);
        for (uint64_t row = 0; row < rows[i]; row++) {
            float is[3] = { 0, 0, 0 };
            if (row < valid[i]) is[0] = is[1] = is[2] = (float)++number;
            assert_int_equal(fwrite(is, sizeof is, 1, raw), 1);
        }
        assert_int_equal(fclose(raw), 0);
        sft_dataset_close(d);
    }
    sft_dataset_options_free(o);
    read_manifest(); /* the digests are of other rows */
    for (char *at = strstr(manifest, "\"sha256\":\""); at; at = strstr(at, "\"sha256\":\""))
        memcpy(at + 9, "null                                                              ", 66);
    temp_write(SFTI_DATASET_MANIFEST, manifest, strlen(manifest));
}

/* Samples of each shard, and rows 1, 2, … in their order; zeros pad. */
static void rows_are(const uint64_t *samples, const uint64_t *valid, size_t count) {
    sft_dataset *d = ds_open();
    uint64_t number = 0, first = 0;
    assert_int_equal(sft_dataset_shard_count(d), count);
    for (size_t i = 0; i < count; i++) {
        const sft_dataset_shard *s = sft_dataset_shard_at(d, i);
        float bytes[300];
        size_t got = 0;
        sft_file *file;
        assert_int_equal(s->samples, samples[i]);
        assert_int_equal(s->valid_samples, valid[i]);
        assert_int_equal(s->first_sample, first);
        first += s->samples;
        assert_int_equal(sft_dataset_shard_open(d, i, NULL, &file, &err), SFT_OK);
        const sft_tensor *t = sft_file_find_cstr(file, "x");
        assert_int_equal(t->shape[0], samples[i]);
        sft_source source = sft_file_source(file);
        assert_int_equal(sft_source_read(&source, t->offset, bytes, (size_t)samples[i] * 12,
                                         &got, &err), SFT_OK);
        for (size_t k = 0; k < samples[i] * 3; k++) {
            float expected = k / 3 < valid[i] ? (float)(number + k / 3 + 1) : 0;
            assert_true(bytes[k] == expected);
        }
        number += valid[i];
        sft_close(file);
    }
    sft_dataset_close(d);
}

#define N(list) (sizeof list / sizeof *list)

static void batches_together(void **state) {
    static const uint64_t rows[] = { 4, 1, 1, 3, 2, 4, 1 }; /* batches of 4 */
    static const uint64_t after[] = { 4, 4, 4, 4 };
    (void)state;
    make_rows("batch_size=4", "tail_strategy=write", rows, rows, N(rows));
    foreign();
    compact(UINT64_MAX);
    has("\"shards_before\":7,\"shards_after\":4,\"rewritten\":6,\"tensors_dropped\":0,");
    has("\"left\":null");
    rows_are(after, after, N(after));
    foreign_there();
    verify_whole(true);
    read_manifest();
    assert_non_null(strstr(manifest, "\"shape\":[4,3]"));
    compact(UINT64_MAX);
    has("\"rewritten\":0,");
    has("\"left\":\"neighbouring shards are full, or merging them saves none\"");
}

static void many_batches(void **state) {
    uint64_t rows[150], after[] = { 99, 51 };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) rows[i] = 1;
    make_rows("batch_size=99", "tail_strategy=drop", rows, rows, N(rows));
    compact(UINT64_MAX);
    has("\"shards_after\":2,\"rewritten\":150,");
    rows_are(after, after, N(after)); /* no row is dropped */
    verify_whole(true);
}

static void padded_batches(void **state) {
    static const uint64_t rows[] = { 4, 4, 4, 4 }, valid[] = { 1, 4, 2, 3 };
    static const uint64_t after[] = { 4, 4, 4 }, left[] = { 4, 3, 3 };
    (void)state;
    make_rows("batch_size=4", "tail_strategy=pad", rows, valid, N(rows));
    compact(UINT64_MAX);
    has("\"shards_before\":4,\"shards_after\":3,");
    rows_are(after, left, N(after));
    verify_whole(true);
}

/* The result says why nothing was done. */
static void batches_left(void **state) {
    static const uint64_t rows[] = { 4, 1, 1 };
    (void)state;
    make_rows("batch_size=4", "tail_strategy=write", rows, rows, N(rows));
    compact(0);
    has("\"rewritten\":0,");
    has("\"left\":\"no target size was given\"");
    compact(1);
    has("\"left\":\"no shard is smaller than the target\"");
    edit("\"dtype\":\"F32\",\"shape\":[3]", "\"dtype\":null,\"shape\":[3]");
    compact(UINT64_MAX);
    has("\"left\":\"dtype or shape of the column x varies from batch to batch\"");
}

static void not_compacted(void **state) {
    sft_sink sink = sft_sink_memory(&out);
    (void)state;
    make_batch();
    read_manifest();
    compact(UINT64_MAX);
    has("\"shards_before\":2,\"shards_after\":2,\"rewritten\":0,");
    has("\"left\":\"");
    static const char text[] = "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
                               "\"total_samples\":0,\"total_bytes\":0,\"shards\":[]}";
    temp_write(SFTI_DATASET_MANIFEST, text, sizeof text - 1);
    assert_int_equal(sft_dataset_compact_json(&ds_storage, NULL, "d", &sink, NULL, &err),
                     SFT_MANIFEST_TYPE);
    assert_int_equal(unlink(temp_path(SFTI_DATASET_MANIFEST)), 0);
    assert_int_equal(sft_dataset_compact_json(&ds_storage, NULL, "d", &sink, NULL, &err),
                     SFT_MANIFEST_MISSING);
    sft_sink_abandon(&sink);
}

/* Another commit happens while files are written. */
static sft_code late_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    read_manifest();
    edit("\"version\":1", "\"version\":9");
    return ds_storage.vtable->lock(ctx, wait_ms, e);
}

static void changed_meanwhile(void **state) {
    sft_sink sink = sft_sink_memory(&out);
    sft_storage late = ds_storage;
    (void)state;
    make_kv();
    storage_own(&late)->lock = late_lock;
    assert_int_equal(sft_dataset_compact_json(&late, NULL, "d", &sink, NULL, &err),
                     SFT_DATASET_CHANGED);
    sft_sink_abandon(&sink);
    assert_int_equal(ds_count("_job-"), 0);
    assert_int_equal(ds_count("part-"), 3);
    verify_whole(true);
}

static bool never(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return false;
}

static void compact_stopped(void **state) {
    sft_sink sink = sft_sink_memory(&out);
    sft_job job = SFT_JOB_INIT;
    (void)state;
    make_kv();
    job.tick = never;
    assert_int_equal(sft_dataset_compact_json(&ds_storage, NULL, "d", &sink, &job, &err),
                     SFT_CANCELLED);
    sft_sink_abandon(&sink);
    assert_int_equal(ds_count("_job-"), 0);
    verify_whole(true);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(compacted), FOLDER_TEST(put_together), FOLDER_TEST(all_lost),
        FOLDER_TEST(batches_together), FOLDER_TEST(many_batches), FOLDER_TEST(padded_batches),
        FOLDER_TEST(batches_left), FOLDER_TEST(not_compacted), FOLDER_TEST(changed_meanwhile),
        FOLDER_TEST(compact_stopped),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
