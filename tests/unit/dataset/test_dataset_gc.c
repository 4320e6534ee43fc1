/* gc: what it removes, and what it leaves to readers and others. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

/* ── gc ── */

static void dead_job(time_t seconds) {
    orphan("_job-" UUID "/" ORPHAN, true);
    age("_job-" UUID "/" ORPHAN, seconds);
    age("_job-" UUID, seconds);
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
    assert_int_equal(sft_dataset_gc_json(&ds_storage, gc_how(0, true), "d", &sink, &err),
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
    finish(&sink, sft_dataset_gc_json(s, gc_how(grace, true), "d", &sink, &err));
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
    finish(&sink, sft_dataset_gc_json(&none, gc_how(0, true), "d", &sink, &err));
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

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(collected), FOLDER_TEST(the_young), FOLDER_TEST(kept_for_readers),
        FOLDER_TEST(a_lost_manifest), FOLDER_TEST(no_folder), FOLDER_TEST(links),
        FOLDER_TEST(unknown_times), FOLDER_TEST(parts_of_manifests),
        FOLDER_TEST(foreign_in_jobs),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
