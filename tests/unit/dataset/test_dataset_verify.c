/* verify: damage, wrong numbers, what no manifest names. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

/* ── Results ── */

static void verify_finds(bool deep, const char *message) {
    verify(deep);
    assert_false(whole);
    has(message);
    has("\"finding_count\":1,");
}

/* ── verify ── */

static void a_whole_one(void **state) {
    (void)state;
    make_batch();
    verify_whole(false);
    has("\"path\":\"d\",\"ok\":true,\"deep\":false,"
        "\"digests\":0,\"shards\":2,");
    has("\"samples\":8,");
    has("\"index\":null,\"versions\":1,\"finding_count\":0,\"findings\":[],"
        "\"orphan_count\":0,\"orphans\":[]}");
    verify_whole(true);
    has("\"deep\":true,\"digests\":2,");
    make_kv();
    verify_whole(true);
    has("\"samples\":6,");
}

static void no_manifest(void **state) {
    (void)state;
    verify_finds(false,
                 "{\"code\":\"manifest_missing\",\"shard\":\"dataset_manifest.json\","
                 "\"message\":\"expected dataset_manifest.json in the folder, found none\"}");
    temp_write(SFTI_DATASET_MANIFEST, "{\"format_version\":", 18);
    verify_finds(false, "\"code\":\"manifest_type\"");
}

static void shards_gone(void **state) {
    (void)state;
    make_batch();
    assert_int_equal(unlink(temp_path(shard[0])), 0);
    verify_finds(false, "expected the shard that the manifest names, found none");
    temp_write(shard[0], "short", 5);
    verify_finds(false, "bytes by the manifest, found 5");
    has("\"code\":\"dataset_shard\"");
    make_batch();
    assert_int_equal(unlink(temp_path(shard[0])), 0);
    assert_int_equal(unlink(temp_path(shard[1])), 0);
    verify(true);
    has("\"finding_count\":2,");
}

static void flip(const char *name, long at) {
    FILE *file = fopen(temp_path(name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void damaged_bytes(void **state) {
    (void)state;
    make_kv();
    flip(shard[1], -1);
    verify_whole(false);
    verify_finds(true, "sha256: expected ");
    has(shard[1]);
    flip(shard[1], -1);
    verify_whole(true);
    flip(shard[2], 8);
    verify(false);
    assert_false(whole);
    has(shard[2]);
}

static void wrong_numbers(void **state) {
    static const struct {
        const char *from, *to, *message;
    } rows[] = {
        { "\"tensors\":1,", "\"tensors\":2,", "tensors: expected 2 by the manifest, found 1" },
        { "\"total_bytes\":", "\"total_bytes\":1", "total_bytes: expected 1" },
        { "\"total_samples\":8", "\"total_samples\":9",
          "total_samples: expected 9 by the manifest, found 8" },
        { "\"total_valid_samples\":7", "\"total_valid_samples\":6",
          "total_valid_samples: expected 6 by the manifest, found 7" },
        { "\"x\":{\"dtype\":\"F32\",\"shape\":[3]}}", "\"x\":{\"dtype\":\"F16\",\"shape\":null}}",
          "tensor x: expected dtype and shape of a column of the manifest" },
        { "\"x\":{\"dtype\":\"F32\",\"shape\":[3]}}", "\"x\":{\"dtype\":null,\"shape\":[4]}}",
          "tensor x: expected dtype and shape of a column of the manifest" },
        { "\"columns\":{\"x\"", "\"columns\":{\"y\"",
          "tensor x: expected dtype and shape of a column of the manifest" },
        { "\"columns\":{", "\"columns\":{\"z\":{\"dtype\":null,\"shape\":null},",
          "columns: expected 2 by the manifest, found 1" },
        { "\"samples_count\":4", "\"samples_count\":5",
          "samples in its metadata: expected 5 by the manifest" },
        { "\"valid_samples\":3", "\"valid_samples\":2",
          "valid_samples in its metadata: expected 2 by the manifest" },
        { "\"valid_samples\":4", "\"valid_samples\":2",
          "valid_samples in its metadata: expected 2 by the manifest" },
        { "\"dtype\":\"F32\",\"shape\":[4,3]", "\"dtype\":\"I32\",\"shape\":[4,3]",
          "schema, x: expected dtype and shape of a tensor of the dataset, found others" },
        { "\"dtype\":\"F32\",\"shape\":[4,3]", "\"dtype\":\"F32\",\"shape\":[4,4]",
          "schema, x: expected dtype and shape of a tensor of the dataset, found others" },
        { "\"first_sample\":4", "\"first_sample\":5",
          "first_sample: expected 5 by the manifest, found 4" },
        { "\"first_sample\":0", "\"first_sample\":9", /* another order of rows */
          "first_sample: expected 9 by the manifest, found 4" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make_batch();
        edit(rows[i].from, rows[i].to);
        verify(false);
        assert_false(whole);
        has(rows[i].message);
    }
    make_batch();
    edit("\"index\":null", "\"index\":\"_tensor_index.parquet\"");
    verify_finds(false, "expected the index that the manifest names, found none");
    temp_write(SFTI_DATASET_INDEX, "x", 1);
    verify_finds(false, "expected a Parquet file, found too few bytes");
    edit("\"index\":\"_tensor_index.parquet\"", "\"index\":null");
    verify_whole(false);
    has("\"message\":\"the manifest names no index\"");
}

/* A shard with other tensors than its columns have. */
static void other_tensors(void **state) {
    static const struct {
        ds_tensor tensor[2];
        size_t count;
        const char *columns, *says; /* NULL: as the manifest wants it */
    } all[] = {
        { { { "x", SFT_F32, 2, { 4, 3 }, 1 }, { "x.valid", SFT_BOOL, 1, { 4 }, 1 } }, 2,
          "\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"nullable\":true}", NULL },
        { { { "x", SFT_F32, 2, { 4, 3 }, 1 }, { "x.valid", SFT_BOOL, 1, { 4 }, 1 } }, 2,
          "\"x\":{\"dtype\":\"F32\",\"shape\":[3]}",
          "tensor x.valid: expected dtype and shape of a column of the manifest" },
        { { { "x", SFT_F32, 2, { 4, 3 }, 1 }, { "x.offsets", SFT_I64, 1, { 5 }, 0 } }, 2,
          "\"x\":{\"dtype\":\"F32\",\"shape\":[3]}",
          "tensor x.offsets: expected 4 samples" },
        { { { "x", SFT_F32, 1, { 0 }, 1 }, { "x.offsets", SFT_I64, 1, { 5 }, 0 } }, 2,
          "\"x\":{\"dtype\":\"F32\",\"shape\":null,\"encoding\":\"list\"}", NULL },
        { { { "x", SFT_F16, 1, { 0 }, 1 }, { "x.offsets", SFT_I64, 1, { 5 }, 0 } }, 2,
          "\"x\":{\"dtype\":\"F32\",\"shape\":null,\"encoding\":\"list\"}",
          "tensor x: expected 4 samples" },
        { { { "x", SFT_F32, 0, { 0 }, 1 } }, 1, "\"x\":{\"dtype\":\"F32\",\"shape\":[3]}",
          "tensor x: expected 4 samples" },
        { { { "z", SFT_F32, 1, { 9 }, 1 } }, 1, "", "tensor z: expected 4 samples" },
        { { { "z", SFT_F32, 1, { 4 }, 1 } }, 1, "", NULL }, /* nothing is known of columns */
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_ds_receipt facts;
        char text[1000];
        memset(&facts, 0, sizeof facts);
        ds_put(&ds_storage, "a.safetensors", all[i].tensor, all[i].count, "batch", "4", &facts);
        (void)snprintf(text, sizeof text,
                       "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
                       "\"mode\":\"batch\",\"generator\":\"libsafetensors 0\","
                       "\"total_samples\":4,\"total_bytes\":%" PRIu64 ",\"columns\":{%s},"
                       "\"shards\":[{\"shard_path\":\"a.safetensors\","
                       "\"samples_count\":4,\"tensors\":%zu,\"bytes\":%" PRIu64 "}]}",
                       facts.bytes, all[i].columns, all[i].count, facts.bytes);
        temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
        if (!all[i].says) {
            verify_whole(true);
            continue;
        }
        verify(true);
        assert_false(whole);
        has(all[i].says);
    }
}

/* What a version that is kept names must be there, as it was. */
static void kept_versions(void **state) {
    static const char *const says[] = { "bytes, found 5", "expected the shard ", "folder" };
    (void)state;
    for (int way = 0; way < 3; way++) {
        sft_dataset_options *o = ds_options("batch_size=4", "keep_old=all", NULL);
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        ds_batch(c, 0, 0, 4, 4);
        ds_end(c);
        keep_names();
        c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        ds_batch(c, 0, 0, 4, 4);
        ds_end(c);
        sft_dataset_options_free(o);
        verify_whole(true);
        if (way == 0) temp_write(shard[0], "short", 5);
        else assert_int_equal(unlink(temp_path(shard[0])), 0);
        if (way == 2) assert_int_equal(mkdir(temp_path(shard[0]), 0777), 0);
        verify(false);
        assert_false(whole);
        has(says[way]);
        has("\"shard\":\".dataset_version-");
        if (way == 2) assert_int_equal(rmdir(temp_path(shard[0])), 0);
        temp_write(SFTI_DATASET_MANIFEST, "{", 1); /* the next one is another dataset */
    }
}

/* A shard with our mark that does not say how many rows it has. */
static void without_samples(void **state) {
    static const char header[] = "{\"__metadata__\":{\"" SFTI_DATASET_MARK "\":\"1\"},\"x\":"
        "{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
    char bytes[8 + sizeof header + 4] = { (char)(sizeof header - 1) }, text[500];
    (void)state;
    memcpy(bytes + 8, header, sizeof header - 1);
    temp_write("a", bytes, 8 + sizeof header - 1 + 4);
    (void)snprintf(text, sizeof text,
                   "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\",\"shards\":[{"
                   "\"shard_path\":\"a\",\"samples_count\":4,\"bytes\":%zu}],\"total_samples\":4,"
                   "\"total_bytes\":%zu}", 8 + sizeof header - 1 + 4, 8 + sizeof header - 1 + 4);
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
    verify_finds(false, "samples in its metadata: expected 4 by the manifest");
}

/* More findings than are listed. */
static void many_findings(void **state) {
    static char text[1 << 17];
    int at = snprintf(text, sizeof text,
                      "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\",\"shards\":[");
    (void)state;
    for (int i = 0; i < 1001; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"shard_path\":\"s%d\",\"samples_count\":0,\"bytes\":0}", i ? "," : "",
                       i);
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"total_samples\":0,\"total_bytes\":0}");
    temp_write(SFTI_DATASET_MANIFEST, text, (size_t)at);
    verify(false);
    assert_false(whole);
    has("\"finding_count\":1001,");
    size_t listed = 0;
    for (const char *one = out.data; (one = strstr(one, "\"shard\":\"s")) != NULL; one++) listed++;
    assert_int_equal(listed, 1000);
}

/* A segment goes because another commit replaces the manifest while this one is read. */
static char replacing[1 << 14];

static sft_code replaced_open(void *ctx, const char *name, sft_source *source, sft_error *e) {
    if (strncmp(name, SFTI_SEGMENT_FILE, sizeof SFTI_SEGMENT_FILE - 1) == 0) {
        temp_write(SFTI_DATASET_MANIFEST, replacing, strlen(replacing));
        return sft_error_set(e, SFT_NOT_FOUND, 0, "gone");
    }
    return ds_storage.vtable->open(ctx, name, source, e);
}

static sft_code broken_open(void *ctx, const char *name, sft_source *source, sft_error *e) {
    (void)ctx, (void)name, (void)source;
    return sft_error_set(e, SFT_IO_READ, 5, "it failed");
}

static void replaced_meanwhile(void **state) {
    sft_storage s = ds_storage;
    (void)state;
    make_batch();
    assert_true(temp_read(SFTI_DATASET_MANIFEST, replacing, sizeof replacing - 1) > 0);
    sft_dataset_options *o = ds_options("batch_size=4", "manifest=segments", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    sft_dataset_options_free(o);
    storage_own(&s)->open = replaced_open;
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_verify_json(&s, false, NULL, "d", &sink, &whole, NULL, &err));
    assert_false(whole);
    has("\"code\":\"dataset_changed\"");
    has("replaced by another commit while reading");
    storage_own(&s)->open = broken_open;
    sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_verify_json(&s, false, NULL, "d", &sink, &whole, NULL, &err),
                     SFT_IO_READ);
    sft_sink_abandon(&sink);
    assert_string_equal(err.message, "it failed");
}

static void duplicates(void **state) {
    (void)state;
    make_kv();
    edit("\"shadowed\":1", "\"shadowed\":0");
    verify(false);
    assert_false(whole);
    has("tensors that a later shard has again: expected 0 by the manifest, found 1");
    has(shard[0]);
    make_kv();
    edit("\"shadowed\":1", "\"shadowed\":900"); /* more than there are: none is seen */
    verify(false);
    assert_false(whole);
    has("total_samples: expected 6 by the manifest, found 0");
}

static void a_connectors(void **state) {
    ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 1 };
    sfti_ds_receipt facts;
    char text[600];
    (void)state;
    memset(&facts, 0, sizeof facts);
    ds_put(&ds_storage, "part-0.safetensors", &tensor, 1, NULL, NULL, &facts);
    (void)snprintf(text, sizeof text,
                   "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
                   "\"total_samples\":4,\"total_bytes\":%" PRIu64 ",\"shards\":["
                   "{\"shard_path\":\"part-0.safetensors\","
                   "\"samples_count\":4,\"bytes\":%" PRIu64 "}]}", facts.bytes, facts.bytes);
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
    temp_write(SFTI_DATASET_INDEX, "whatever", 8);
    verify_whole(true);
    has("\"commit\":null");
    has("\"orphan_count\":1");
    has("expected a Parquet file, found too few bytes");
}

static void orphans(void **state) {
    (void)state;
    make_batch();
    temp_write("part-00009-0000-01234567-89ab-4def-8123-456789abcdef.safetensors", "x", 1);
    temp_write("mine.safetensors", "x", 1);
    assert_int_equal(mkdir(temp_path("_job-01234567-89ab-4def-8123-456789abcdef"), 0777), 0);
    assert_int_equal(mkdir(temp_path("_job-mine"), 0777), 0);
    verify_whole(false);
    has("\"orphan_count\":2,");
    has("\"message\":\"the manifest does not name this shard\"");
    has("\"message\":\"a job's folder\"");
    has_not("mine");
}

static bool stop(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)total;
    return done == 0;
}

static void stopped(void **state) {
    sft_sink sink = sft_sink_memory(&out);
    sft_job job = SFT_JOB_INIT;
    (void)state;
    make_batch();
    job.tick = stop;
    for (int deep = 0; deep < 2; deep++)
        assert_int_equal(sft_dataset_verify_json(&ds_storage, deep, NULL, "d", &sink, &whole, &job,
                                                 &err), SFT_CANCELLED);
    sft_sink_abandon(&sink);
    assert_false(whole);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_whole_one), FOLDER_TEST(no_manifest), FOLDER_TEST(shards_gone),
        FOLDER_TEST(damaged_bytes), FOLDER_TEST(wrong_numbers), FOLDER_TEST(duplicates),
        FOLDER_TEST(other_tensors), FOLDER_TEST(kept_versions), FOLDER_TEST(many_findings),
        FOLDER_TEST(without_samples),
        FOLDER_TEST(replaced_meanwhile),
        FOLDER_TEST(a_connectors), FOLDER_TEST(orphans), FOLDER_TEST(stopped),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
