/* Maintaining datasets: verify, gc, compact, info and ls. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"
#include "unit/storage_table.h"

#include <inttypes.h>
#include <sys/time.h>
#include <time.h>

static sft_error err;
static sft_buffer out; /* the last result, with NUL */
static bool whole;

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)

/* ── Results ── */

static void finish(sft_sink *sink, sft_code code) {
    if (code) {
        sft_sink_abandon(sink);
        fail_msg("%s", err.message);
    }
    assert_int_equal(sft_sink_finish(sink, &err), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
}

static void verify(bool deep) {
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_verify_json(&ds_storage, deep, NULL, "d", &sink, &whole, NULL, &err));
    assert_int_equal(whole, strstr(out.data, "\"ok\":true") != NULL);
}

static void has(const char *part) {
    if (!strstr(out.data, part)) fail_msg("expected %s\nin %s", part, out.data);
}

static void has_not(const char *part) {
    if (strstr(out.data, part)) fail_msg("unexpected %s\nin %s", part, out.data);
}

static void verify_finds(bool deep, const char *message) {
    verify(deep);
    assert_false(whole);
    has(message);
    has("\"finding_count\":1,");
}

static void verify_whole(bool deep) {
    verify(deep);
    if (!whole) fail_msg("%s", out.data);
    has("\"findings\":[]");
}

static void gc(uint64_t grace, bool remove) {
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_gc_json(&ds_storage, grace, remove, "d", &sink, &err));
}

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

/* ── Damage ── */

static char manifest[1 << 16];

static void read_manifest(void) {
    memset(manifest, 0, sizeof manifest);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, manifest, sizeof manifest - 1) > 0);
}

/* Replaces the first occurrence in the manifest. */
static void edit(const char *from, const char *to) {
    static char text[1 << 16];
    read_manifest();
    char *at = strstr(manifest, from);
    if (!at) fail_msg("no %s in %s", from, manifest);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - manifest), manifest, to,
                   at + strlen(from));
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
}

static char shard[4][200]; /* names, in the order of samples */

static void keep_names(void) {
    sft_dataset *d = ds_open();
    for (size_t i = 0; i < 4 && i < sft_dataset_shard_count(d); i++)
        (void)snprintf(shard[i], sizeof shard[0], "%s", sft_dataset_shard_at(d, i)->name);
    sft_dataset_close(d);
}

static void age(const char *name, time_t seconds) {
    time_t then = time(NULL) - seconds;
    struct timeval times[2] = { { then, 0 }, { then, 0 } };
    assert_int_equal(utimes(temp_path(name), times), 0);
}

static void make_batch(void) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_batch(c, 1, 0, 4, 3);
    ds_end(c);
    sft_dataset_options_free(o);
    keep_names();
}

static void make_kv(void) {
    sft_dataset_options *o = ds_options("name_col=id", "duplicatesStrategy=lastWin", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_kv_on(c, &ds_storage, 0, 0, "a,b,c", 1);
    ds_kv_on(c, &ds_storage, 1, 0, "d,b", 2);
    ds_kv_on(c, &ds_storage, 2, 0, "e,f", 3);
    ds_end(c);
    sft_dataset_options_free(o);
    keep_names();
}

/* ── verify ── */

static void a_whole_one(void **state) {
    (void)state;
    make_batch();
    verify_whole(false);
    has("\"path\":\"d\",\"ok\":true,\"deep\":false,"
        "\"digests\":0,\"shards\":2,");
    has("\"samples\":8,");
    has("\"index\":null,\"finding_count\":0,\"findings\":[],\"orphan_count\":0,\"orphans\":[]}");
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

static void duplicates(void **state) {
    (void)state;
    make_kv();
    edit("\"shadowed\":1", "\"shadowed\":0");
    verify(false);
    assert_false(whole);
    has("tensors that a later shard has again: expected 0 by the manifest, found 1");
    has(shard[0]);
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

/* ── gc ── */

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define ORPHAN "part-00009-0000-" UUID ".safetensors"

static void orphan(const char *name, bool marked) {
    ds_tensor tensor = { "x", SFT_F32, 1, { 3 }, 1 };
    ds_put(&ds_storage, name, &tensor, 1, "kv", marked ? "1" : NULL, NULL);
}

static void dead_job(time_t seconds) {
    orphan("_job-" UUID "/" ORPHAN, true);
    age("_job-" UUID "/" ORPHAN, seconds);
    age("_job-" UUID, seconds);
}

static void foreign(void) {
    orphan("mine.safetensors", false);
    orphan("model-00001-of-00002.safetensors", true); /* with the mark, but not our name */
    orphan("part-00008-0000-" UUID ".safetensors", false); /* with our name, but without the mark */
    temp_write("part-00007-0000-" UUID ".safetensors", "not one", 7);
    temp_write("README", "x", 1);
    assert_int_equal(mkdir(temp_path("_job-mine"), 0777), 0);
    assert_int_equal(mkdir(temp_path("sub"), 0777), 0);
    temp_write("sub/" ORPHAN, "x", 1);
    static const char *const all[] = { "mine.safetensors", "model-00001-of-00002.safetensors",
                                       "part-00008-0000-" UUID ".safetensors",
                                       "part-00007-0000-" UUID ".safetensors", "README",
                                       "_job-mine", "sub" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) age(all[i], 1000000);
}

static void foreign_there(void) {
    assert_true(ds_exists("mine.safetensors") && ds_exists("README") && ds_exists("_job-mine"));
    assert_true(ds_exists("model-00001-of-00002.safetensors") && ds_exists("sub/" ORPHAN));
    assert_true(ds_exists("part-00008-0000-" UUID ".safetensors"));
    assert_true(ds_exists("part-00007-0000-" UUID ".safetensors"));
    assert_true(ds_exists(SFTI_DATASET_MANIFEST));
}

static void collected(void **state) {
    (void)state;
    make_batch();
    foreign();
    orphan(ORPHAN, true);
    dead_job(100000);
    age(ORPHAN, 100000);
    gc(86400, false);
    has("\"name\":\"" ORPHAN "\"");
    has("\"name\":\"_job-" UUID "\"");
    has_not("mine");
    has_not("\"removed\":true");
    has("\"young\":false,\"removed\":false}");
    assert_true(ds_exists(ORPHAN) && ds_exists("_job-" UUID));
    gc(86400, true);
    has("\"removed\":true");
    has_not("\"removed\":false");
    assert_false(ds_exists(ORPHAN) || ds_exists("_job-" UUID));
    foreign_there();
    verify_whole(true);
    gc(0, true);
    has("\"garbage\":[],\"bytes\":0}");
    foreign_there();
}

static void the_young(void **state) {
    (void)state;
    make_batch();
    orphan(ORPHAN, true);
    dead_job(100000);
    age("_job-" UUID "/" ORPHAN, 0); /* still at work */
    gc(86400, true);
    has_not("\"young\":false");
    has("\"bytes\":0}");
    assert_true(ds_exists(ORPHAN) && ds_exists("_job-" UUID "/" ORPHAN));
    gc(0, true);
    assert_false(ds_exists(ORPHAN) || ds_exists("_job-" UUID));
}

static void kept_for_readers(void **state) {
    char keep[80];
    (void)state;
    make_batch();
    orphan(ORPHAN, true);
    age(ORPHAN, 1000000);
    (void)snprintf(keep, sizeof keep, "\"index\":null,\"keep_until\":%ld", (long)time(NULL) + 100);
    edit("\"index\":null", keep);
    gc(0, true);
    has("\"young\":true");
    assert_true(ds_exists(ORPHAN));
    (void)snprintf(manifest, sizeof manifest, "\"keep_until\":%ld", (long)time(NULL) - 1);
    edit(keep + strlen("\"index\":null,"), "\"keep_until\":1");
    gc(0, true);
    assert_false(ds_exists(ORPHAN));
}

static void a_lost_manifest(void **state) {
    (void)state;
    make_batch();
    foreign();
    dead_job(100000);
    age(shard[0], 1000000);
    age(shard[1], 1000000);
    assert_int_equal(rename(temp_path(SFTI_DATASET_MANIFEST), temp_path("kept")), 0);
    gc(0, true);
    assert_true(ds_exists(shard[0]) && ds_exists(shard[1]));
    assert_false(ds_exists("_job-" UUID));
    /* With one that cannot be parsed: nothing at all. */
    dead_job(100000);
    temp_write(SFTI_DATASET_MANIFEST, "{", 1);
    sft_sink sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_gc_json(&ds_storage, 0, true, "d", &sink, &err),
                     SFT_MANIFEST_TYPE);
    sft_sink_abandon(&sink);
    assert_true(ds_exists(shard[0]) && ds_exists(shard[1]) && ds_exists("_job-" UUID));
    assert_int_equal(rename(temp_path("kept"), temp_path(SFTI_DATASET_MANIFEST)), 0);
    verify_whole(true);
    foreign_there();
}

#define MANIFEST_PART ".dataset_manifest.json.sft-abcdef"

/* A storage without times: what may have been written just now stays. */
typedef struct timeless_each {
    sft_stored_fn each;
    void *ctx;
} timeless_each;

static bool timeless_one(void *ctx, const sft_stored *object) {
    timeless_each *t = ctx;
    sft_stored copy = *object;
    copy.mtime_s = copy.changed_s = 0;
    return t->each(t->ctx, &copy);
}

static sft_code timeless_list(void *ctx, const char *folder, sft_stored_fn each, void *each_ctx,
                              sft_error *e) {
    timeless_each t = { each, each_ctx };
    return ds_storage.vtable->list(ctx, folder, timeless_one, &t, e);
}

static void gc_on(const sft_storage *s, uint64_t grace) {
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_gc_json(s, grace, true, "d", &sink, &err));
}

static void unknown_times(void **state) {
    sft_storage s = ds_storage;
    (void)state;
    storage_own(&s)->list = timeless_list;
    make_batch();
    orphan(ORPHAN, true);
    dead_job(100000);
    assert_int_equal(mkdir(temp_path("_job-" UUID "-index"), 0777), 0);
    temp_write(MANIFEST_PART, "{", 1);
    gc_on(&s, 86400);
    has_not("\"young\":false");
    assert_true(ds_exists(ORPHAN) && ds_exists("_job-" UUID "/" ORPHAN));
    assert_true(ds_exists("_job-" UUID "-index") && ds_exists(MANIFEST_PART));
    gc_on(&s, 0); /* no grace: nothing is young */
    assert_false(ds_exists(ORPHAN) || ds_exists("_job-" UUID) || ds_exists("_job-" UUID "-index"));
    assert_false(ds_exists(MANIFEST_PART));
}

/* Temporary files of a manifest that a killed writer leaves, and others' files with similar
 * names. */
static void parts_of_manifests(void **state) {
    static const char *const kept[] = { ".dataset_manifest.json.sft", ".dataset_manifest.json",
                                        ".model.safetensors.sft-abcdef",
                                        "dataset_manifest.json.sft-abcdef" };
    (void)state;
    make_batch();
    temp_write(MANIFEST_PART, "{", 1);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) temp_write(kept[i], "precious", 8);
    gc(86400, true);
    has("\"name\":\"" MANIFEST_PART "\",\"bytes\":1,\"young\":true,\"removed\":false}");
    gc(0, true);
    has("\"removed\":true}],\"bytes\":1");
    assert_false(ds_exists(MANIFEST_PART));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) assert_true(ds_exists(kept[i]));
    verify_whole(true);
}

/* Others' files in a folder with a job's name. */
static void foreign_in_jobs(void **state) {
    static const char *const kept[] = { "thesis.txt", "model.safetensors", "index.parquet",
                                        "part-1.safetensors", ".hidden", ".x.sft-abcdef" };
    static const char *const ours[] = { ORPHAN, "_tensor_index.parquet", "dataset_manifest.json",
                                        "." ORPHAN ".sft-abcdef" };
    char name[200];
    (void)state;
    make_batch();
    assert_int_equal(mkdir(temp_path("_job-" UUID), 0777), 0);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        (void)snprintf(name, sizeof name, "_job-" UUID "/%s", kept[i]);
        temp_write(name, "precious", 8);
    }
    assert_int_equal(mkdir(temp_path("_job-" UUID "/sub"), 0777), 0);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        (void)snprintf(name, sizeof name, "_job-" UUID "/%s", ours[i]);
        temp_write(name, "garbage", 7);
    }
    gc(0, true);
    has("\"bytes\":28,\"young\":false,\"removed\":true,\"foreign\":7}");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        (void)snprintf(name, sizeof name, "_job-" UUID "/%s", kept[i]);
        assert_true(ds_exists(name));
    }
    assert_true(ds_exists("_job-" UUID "/sub"));
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        (void)snprintf(name, sizeof name, "_job-" UUID "/%s", ours[i]);
        assert_false(ds_exists(name));
    }
    /* An index that Spark wrote and a commit renamed is ours to remove. */
    assert_int_equal(mkdir(temp_path("_job-" UUID "-index"), 0777), 0);
    temp_write("_job-" UUID "-index/part-00000-x.snappy.parquet", "x", 1);
    temp_write("_job-" UUID "-index/_SUCCESS", "x", 1);
    temp_write("_job-" UUID "-index/._SUCCESS.crc", "x", 1);
    gc(0, true);
    assert_false(ds_exists("_job-" UUID "-index"));
    verify_whole(true);
}

/* Nothing is made where there is nothing. */
static void no_folder(void **state) {
    sft_storage none;
    char path[600];
    (void)state;
    (void)snprintf(path, sizeof path, "%s", temp_path("none"));
    assert_int_equal(sft_storage_local(path, true, NULL, &none, &err), SFT_OK);
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_gc_json(&none, 0, true, "d", &sink, &err));
    has("\"garbage\":[]");
    sft_storage_close(&none);
    assert_false(ds_exists("none"));
}

/* A job's folder may be a link: the link is removed, its target stays. */
static void links(void **state) {
    char target[600];
    (void)state;
    make_batch();
    assert_int_equal(mkdir(temp_path("precious"), 0777), 0);
    temp_write("precious/file", "x", 1);
    (void)snprintf(target, sizeof target, "%s", temp_path("precious"));
    assert_int_equal(symlink(target, temp_path("_job-" UUID)), 0);
    gc(0, true);
    assert_true(ds_exists("precious/file"));
    sft_error e = SFT_ERROR_INIT;
    assert_int_equal(ds_storage.vtable->remove(ds_storage.ctx, "_job-" UUID, true, &e), SFT_OK);
    assert_true(ds_exists("precious/file"));
    static const char *const out_of_it[] = { "../x", "/x", "a/../b", "", "a//b", "." };
    for (size_t i = 0; i < sizeof out_of_it / sizeof *out_of_it; i++) {
        if (!*out_of_it[i]) continue;
        assert_int_equal(ds_storage.vtable->remove(ds_storage.ctx, out_of_it[i], true, &e),
                         SFT_BAD_ARGUMENT);
    }
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

/* ── info and ls ── */

static bool named_b(void *ctx, const sft_tensor *t) {
    (void)ctx;
    return t->name.len == 4 && t->name.data[0] == 'b';
}

static void shown(void **state) {
    (void)state;
    make_kv();
    sft_dataset *d = ds_open();
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_info_json(d, "d", &sink, &err));
    has("{\"path\":\"d\",\"ok\":true,\"mode\":\"kv\",");
    has("\"name_col\":\"id\",\"kv_separator\":\"__\",\"tail_strategy\":null,\"index\":null,"
        "\"segments\":null,"
        "\"samples\":6,\"valid_samples\":6,\"padded_samples\":0,");
    has("\"shards\":3,\"tensors\":7,\"shadowed\":1,"
        "\"columns\":{\"v\":{\"dtype\":\"F32\",\"shape\":[2]}}}");
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_ls_json(d, NULL, "d", named_b, NULL, &sink, &err));
    has("\"name\":\"b__v\"");
    has("\"replaced\":true");
    has("\"replaced\":false");
    has(shard[1]);
    has("\"dtype\":\"F32\",\"shape\":[2],\"bytes\":8,\"begin\":");
    has_not("a__v");
    sft_dataset_close(d);
    make_batch();
    d = ds_open();
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_info_json(d, "d", &sink, &err));
    has("\"mode\":\"batch\"");
    has("\"batch_size\":4,");
    has("\"samples\":8,\"valid_samples\":7,\"padded_samples\":1,");
    sft_dataset_close(d);
}

/* ── As trees ── */

static sft_tree *tree_new(void) {
    sft_tree *tree;
    assert_int_equal(sft_tree_new(NULL, &tree, &err), SFT_OK);
    return tree;
}

static const char *text_at(const sft_node *node, const char *path) {
    static char buffer[300];
    sft_span text = sft_node_text(node, path);
    (void)snprintf(buffer, sizeof buffer, "%.*s", (int)text.len, text.data);
    return buffer;
}

/* The tree has the contents of the last JSON; it is freed. */
static void as_before(sft_tree *tree) {
    sft_buffer text = { 0 };
    sft_sink sink = sft_sink_memory(&text);
    assert_int_equal(sft_node_json(sft_tree_root(tree), NULL, NULL, &sink, 0, NULL, &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(text.len, strlen(out.data));
    assert_memory_equal(text.data, out.data, text.len);
    sft_buffer_free(&text);
    sft_tree_free(tree);
}

static void trees(void **state) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    how.target_bytes = UINT64_MAX;
    uint64_t number;
    (void)state;
    make_kv();
    sft_dataset *d = ds_open();
    sft_tree *tree = tree_new();
    assert_int_equal(sft_dataset_info_tree(d, "d", tree, &err), SFT_OK);
    assert_string_equal(text_at(sft_tree_root(tree), "columns.v.dtype"), "F32");
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_info_json(d, "d", &sink, &err));
    as_before(tree);
    sft_dataset_close(d);

    assert_int_equal(unlink(temp_path(shard[1])), 0);
    orphan(ORPHAN, true);
    verify(false);
    tree = tree_new();
    assert_int_equal(sft_dataset_verify_tree(&ds_storage, false, NULL, "d", tree, &whole, NULL,
                                             &err),
                     SFT_OK);
    assert_false(whole);
    const sft_node *root = sft_tree_root(tree);
    const sft_node *finding = sft_node_get(root, "findings")->first;
    assert_string_equal(text_at(finding, "shard"), shard[1]);
    assert_string_equal(text_at(finding, "code"), "dataset_shard");
    assert_string_equal(text_at(sft_node_get(root, "orphans")->first, "shard"), ORPHAN);
    as_before(tree);

    gc(0, false);
    tree = tree_new();
    assert_int_equal(sft_dataset_gc_tree(&ds_storage, 0, false, "d", tree, &err),
                     SFT_OK);
    const sft_node *item = sft_node_get(sft_tree_root(tree), "garbage")->first;
    assert_string_equal(text_at(item, "name"), ORPHAN);
    assert_false(sft_node_true(item, "removed"));
    as_before(tree);
    tree = tree_new();
    assert_int_equal(sft_dataset_gc_tree(&ds_storage, 0, true, "d", tree, &err), SFT_OK);
    assert_true(sft_node_true(sft_node_get(sft_tree_root(tree), "garbage")->first, "removed"));
    assert_false(ds_exists(ORPHAN));
    sft_tree_free(tree);

    make_kv();
    tree = tree_new();
    assert_int_equal(sft_dataset_compact_tree(&ds_storage, &how, "d", tree, NULL, &err),
                     SFT_OK);
    assert_true(sft_node_uint(sft_tree_root(tree), "shards_after", &number));
    assert_int_equal(number, 1);
    sft_tree_free(tree);
    verify_whole(true);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_whole_one),  FOLDER_TEST(no_manifest),      FOLDER_TEST(shards_gone),
        FOLDER_TEST(damaged_bytes), FOLDER_TEST(wrong_numbers),   FOLDER_TEST(duplicates),
        FOLDER_TEST(a_connectors), FOLDER_TEST(orphans),          FOLDER_TEST(stopped),
        FOLDER_TEST(collected),    FOLDER_TEST(the_young),        FOLDER_TEST(kept_for_readers),
        FOLDER_TEST(a_lost_manifest), FOLDER_TEST(no_folder),     FOLDER_TEST(links),
        FOLDER_TEST(compacted),    FOLDER_TEST(put_together),     FOLDER_TEST(all_lost),
        FOLDER_TEST(unknown_times), FOLDER_TEST(parts_of_manifests), FOLDER_TEST(foreign_in_jobs),
        FOLDER_TEST(batches_together), FOLDER_TEST(many_batches),
        FOLDER_TEST(padded_batches), FOLDER_TEST(batches_left),
        FOLDER_TEST(not_compacted), FOLDER_TEST(changed_meanwhile), FOLDER_TEST(compact_stopped),
        FOLDER_TEST(shown), FOLDER_TEST(trees),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
