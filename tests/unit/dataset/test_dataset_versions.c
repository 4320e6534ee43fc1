/* Versions: each commit keeps the one that it replaces, readers open them, gc removes them. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

#include "dataset/commit/commit.h"

#include <sys/stat.h>
#include <unistd.h>

/* ── Datasets ── */

static sft_dataset_options *kept;

static int make(void **state) {
    int failed = ds_make(state);
    kept = ds_options("batch_size=4", "keep_old=all", NULL);
    return failed;
}

static int drop(void **state) {
    sft_dataset_options_free(kept);
    sft_buffer_free(&out);
    return ds_remove(state);
}

#define VERSION_TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

static void commit_rows(sft_commit_mode how, uint64_t rows) {
    sft_commit *c = ds_begin(kept, how);
    ds_batch(c, 0, 0, rows, rows);
    ds_end(c);
}

/* Version 1: 1 row; 2: 3 rows; 3 overwrites: 4 rows; 4: 9 rows. */
static void four_versions(void) {
    commit_rows(SFT_COMMIT_NEW, 1);
    commit_rows(SFT_COMMIT_APPEND, 2);
    commit_rows(SFT_COMMIT_OVERWRITE, 4);
    commit_rows(SFT_COMMIT_APPEND, 5);
}

static const uint64_t four_rows[] = { 0, 1, 3, 4, 9 };

/* Its rows, all shards readable; UINT64_MAX: it is not kept. */
static uint64_t rows_at(uint64_t version, uint64_t asof_s) {
    sft_dataset *d = NULL;
    sft_code code = sft_dataset_open_version(&ds_storage, version, asof_s, NULL, NULL, NULL, &d,
                                             &err);
    if (code == SFT_MANIFEST_MISSING) return UINT64_MAX;
    if (code) fail_msg("%s", err.message);
    uint64_t rows = sft_dataset_samples(d);
    for (size_t i = 0; i < sft_dataset_shard_count(d); i++) {
        sft_file *file = NULL;
        if (sft_dataset_shard_open(d, i, NULL, &file, &err)) fail_msg("%s", err.message);
        sft_close(file);
    }
    sft_dataset_close(d);
    return rows;
}

static void collect(uint64_t keep, uint64_t older_s, bool remove) {
    sft_gc_options how = SFT_GC_OPTIONS_INIT;
    sft_sink sink = sft_sink_memory(&out);
    out.len = 0;
    how.grace_s = 0;
    how.keep = keep;
    how.older_s = older_s;
    how.remove = remove;
    finish(&sink, sft_dataset_gc_json(&ds_storage, &how, "d", &sink, &err));
}

static void only_from(uint64_t first) {
    for (uint64_t v = 1; v <= 4; v++)
        assert_int_equal(rows_at(v, 0), v < first ? UINT64_MAX : four_rows[v]);
    out.len = 0;
    verify_whole(true);
    has("\"orphan_count\":0");
}

/* ── Reading ── */

static void each_is_read(void **state) {
    (void)state;
    four_versions();
    only_from(1);
    assert_int_equal(rows_at(0, 0), 9);
    assert_int_equal(rows_at(5, 0), UINT64_MAX);
    assert_non_null(strstr(err.message, "expected version 5, which is not kept"));
    sft_dataset *d;
    assert_int_equal(sft_dataset_open_version(&ds_storage, 1, 1, NULL, NULL, NULL, &d, &err),
                     SFT_BAD_ARGUMENT);
    out.len = 0;
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_versions_json(&ds_storage, "d", &sink, &err));
    has("\"versions\":[{\"version\":1,\"committed\":");
    has("\"samples\":3,\"bytes\":");
    has("\"samples\":9,");
    sft_tree *tree;
    uint64_t rows = 0;
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    assert_int_equal(sft_dataset_versions_tree(&ds_storage, "d", tree, &err), SFT_OK);
    const sft_node *last = sft_node_get(sft_tree_root(tree), "versions")->first;
    while (last->next) last = last->next;
    assert_true(sft_node_uint(last, "samples", &rows));
    assert_int_equal(rows, 9);
    sft_tree_free(tree);
}

/* Sets when a version was committed. */
static void retime(const char *file, uint64_t committed_s) {
    static char text[1 << 16];
    char made[40];
    memset(text, 0, sizeof text);
    assert_true(temp_read(file, text, sizeof text - 1) > 0);
    char *at = strstr(text, "\"committed\":");
    assert_non_null(at);
    (void)snprintf(made, sizeof made, "%010" PRIu64, committed_s);
    memcpy(at + strlen("\"committed\":"), made, 10);
    temp_write(file, text, strlen(text));
}

static void name_of(uint64_t version, char name[SFTI_VERSION_FILE_NAME]) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_ds_manifest m;
    assert_int_equal(sfti_ds_manifest_read(&ds_storage, &arena, &m, &err), SFT_OK);
    sfti_ds_version_name(version, m.history, name);
    sfti_arena_free(&arena);
}

static void in_the_past(void) {
    char name[SFTI_VERSION_FILE_NAME];
    for (uint64_t v = 1; v <= 3; v++) {
        name_of(v, name);
        retime(name, 1000000000 + 100 * v);
    }
    retime(SFTI_DATASET_MANIFEST, 1000000400);
}

static void by_time(void **state) {
    (void)state;
    four_versions();
    in_the_past();
    assert_int_equal(rows_at(0, 1000000099), UINT64_MAX);
    for (uint64_t v = 1; v <= 4; v++) {
        assert_int_equal(rows_at(0, 1000000000 + 100 * v), four_rows[v]);
        assert_int_equal(rows_at(0, 1000000099 + 100 * v), four_rows[v]);
    }
    /* A clock that goes back does not put a commit before another. */
    retime(SFTI_DATASET_MANIFEST, 4000000000);
    commit_rows(SFT_COMMIT_APPEND, 1);
    assert_int_equal(rows_at(0, 4000000000), 10);
    assert_int_equal(rows_at(0, 3999999999), 4);
}

/* One that is not kept may have been in force then. */
static void a_gap(void **state) {
    (void)state;
    char name[SFTI_VERSION_FILE_NAME];
    four_versions();
    in_the_past();
    name_of(2, name);
    assert_int_equal(ds_storage.vtable->remove(ds_storage.ctx, name, false, &err), SFT_OK);
    assert_int_equal(rows_at(0, 1000000100), UINT64_MAX);
    assert_int_equal(rows_at(0, 1000000299), UINT64_MAX);
    assert_non_null(strstr(err.message, "found versions 1 and 3, between which none is kept"));
    assert_int_equal(rows_at(0, 1000000300), 4);
    assert_int_equal(rows_at(1, 0), 1);
}

/* ── What is kept ── */

static void none_are_kept(void **state) {
    (void)state;
    sft_dataset_options *plain = ds_options("batch_size=4", NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        sft_commit *c = ds_begin(plain, SFT_COMMIT_OVERWRITE);
        ds_batch(c, 0, 0, i, i);
        ds_end(c);
        assert_int_equal(ds_count("part-"), 1);
        assert_int_equal(ds_count(SFTI_VERSION_FILE), 0);
    }
    assert_int_equal(rows_at(2, 0), UINT64_MAX);
    /* What an earlier version needs is not removed by one that keeps none. */
    commit_rows(SFT_COMMIT_APPEND, 1);
    assert_int_equal(rows_at(3, 0), 3);
    sft_commit *c = ds_begin(plain, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 2, 2);
    ds_end(c);
    assert_int_equal(rows_at(3, 0), 3);
    assert_int_equal(rows_at(4, 0), UINT64_MAX);
    assert_int_equal(rows_at(5, 0), 2);
    collect(0, 0, true);
    assert_int_equal(ds_count("part-"), 2);
    assert_int_equal(rows_at(3, 0), 3);
    sft_dataset_options_free(plain);
}

static void collected_by_number(void **state) {
    (void)state;
    four_versions();
    collect(0, 0, true);
    has("\"garbage\":[]");
    only_from(1);
    collect(9, 0, true);
    has("\"garbage\":[]");
    collect(3, 0, false);
    has("\"name\":\".dataset_version-1-");
    has_not("part-"); /* version 2 has it, too */
    only_from(1);
    collect(3, 0, true);
    only_from(2);
    assert_int_equal(ds_count("part-"), 4);
    collect(2, 0, true);
    only_from(3);
    assert_int_equal(ds_count("part-"), 2);
    collect(1, 0, true);
    only_from(4);
    assert_int_equal(ds_count(SFTI_VERSION_FILE), 0);
    collect(1, 0, true);
    has("\"garbage\":[]");
}

static void collected_by_age(void **state) {
    (void)state;
    uint64_t now = (uint64_t)time(NULL);
    four_versions();
    in_the_past();
    /* Version 1 was replaced when 2 was committed, and so on. */
    collect(0, now - 1000000400 + 60, true);
    only_from(3);
    collect(3, now - 1000000400 - 60, true); /* old, but of the last three */
    only_from(3);
    collect(1, now, true); /* beyond the last, but young */
    only_from(3);
    collect(0, now - 1000000400 - 60, true);
    only_from(4);
}

static void of_another_dataset(void **state) {
    (void)state;
    char name[SFTI_VERSION_FILE_NAME];
    four_versions();
    name_of(2, name);
    /* The folder is emptied, but for files with a dot, and another dataset written. */
    assert_int_equal(ds_storage.vtable->remove(ds_storage.ctx, SFTI_DATASET_MANIFEST, false, &err),
                     SFT_OK);
    collect(1, 0, true);
    assert_true(ds_exists(name));
    sft_dataset_options *o = ds_options("batch_size=4", "keep_old=all", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    for (uint64_t v = 2; v <= 4; v++) commit_rows(SFT_COMMIT_APPEND, 1);
    assert_int_equal(rows_at(2, 0), 5);
    collect(0, 0, true);
    assert_false(ds_exists(name));
    assert_int_equal(rows_at(2, 0), 5);
    sft_dataset_options_free(o);
}

/* ── Damage ── */

/* Zeros before the number make no version, and no name that is too long for one. */
static void named_otherwise(void **state) {
    (void)state;
    char name[SFTI_VERSION_FILE_NAME], other[2 * SFTI_VERSION_FILE_NAME];
    four_versions();
    name_of(1, name);
    for (int digits = 2; digits <= 120; digits += 59) {
        (void)snprintf(other, sizeof other, SFTI_VERSION_FILE "%0*d%s", digits, 1,
                       strchr(name + sizeof SFTI_VERSION_FILE - 1, '-'));
        temp_write(other, "no manifest", 11);
    }
    only_from(1);
    collect(2, 0, true);
    only_from(3);
    assert_int_equal(ds_count(SFTI_VERSION_FILE), 4);
}

static void no_history(void **state) {
    (void)state;
    static char text[1 << 16];
    four_versions();
    assert_true(temp_read(SFTI_DATASET_MANIFEST, text, sizeof text - 1) > 0);
    char *at = strstr(text, "\"history\":\"");
    assert_non_null(at);
    memcpy(at + strlen("\"history\":\""), "/../../x", 8);
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
    sft_dataset *d;
    assert_int_equal(sft_dataset_open(&ds_storage, NULL, NULL, NULL, &d, &err), SFT_MANIFEST_TYPE);
    assert_non_null(strstr(err.message, "expected a uuid"));
}

static void damaged(void **state) {
    (void)state;
    char name[SFTI_VERSION_FILE_NAME];
    four_versions();
    name_of(2, name);
    static char text[1 << 16];
    int64_t len = (int64_t)temp_read(name, text, sizeof text);
    temp_write(name, text, (size_t)len / 2);
    sft_dataset *d;
    assert_int_equal(sft_dataset_open_version(&ds_storage, 2, 0, NULL, NULL, NULL, &d, &err),
                     SFT_MANIFEST_TYPE);
    assert_non_null(strstr(err.message, name));
    verify(false);
    assert_false(whole);
    has(name);
    /* What it named is not known: nothing is removed until it goes itself. */
    sft_gc_options how = SFT_GC_OPTIONS_INIT;
    how.grace_s = 0;
    how.remove = true;
    out.len = 0;
    sft_sink sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_gc_json(&ds_storage, &how, "d", &sink, &err), SFT_MANIFEST_TYPE);
    sft_sink_abandon(&sink);
    collect(2, 0, true);
    only_from(3);
}

/* In a sticky folder, where everyone may make files. */
static void planted(void **state) {
    (void)state;
    char name[SFTI_VERSION_FILE_NAME];
    if (geteuid() != 0) skip(); /* needs files of another user */
    four_versions();
    name_of(2, name);
    assert_int_equal(chown(temp_path(name), 65534, 65534), 0);
    assert_int_equal(rows_at(2, 0), 3);
    assert_int_equal(chmod(temp_path("."), 01777), 0);
    assert_int_equal(rows_at(2, 0), UINT64_MAX);
    assert_int_equal(rows_at(1, 0), 1);
    assert_int_equal(chown(temp_path("."), 65534, 65534), 0);
    assert_int_equal(rows_at(2, 0), 3);
    assert_int_equal(chown(temp_path("."), 0, 0), 0);
}

static void a_missing_shard(void **state) {
    (void)state;
    four_versions();
    sft_dataset *d = NULL;
    assert_int_equal(sft_dataset_open_version(&ds_storage, 1, 0, NULL, NULL, NULL, &d, &err),
                     SFT_OK);
    assert_int_equal(ds_storage.vtable->remove(ds_storage.ctx, sft_dataset_shard_at(d, 0)->name,
                                               false, &err), SFT_OK);
    sft_file *file;
    assert_int_equal(sft_dataset_shard_open(d, 0, NULL, &file, &err), SFT_DATASET_CHANGED);
    sft_dataset_close(d);
    verify(false);
    assert_false(whole);
    has("\"finding_count\":2");
    has("expected the shard part-");
}

/* ── Commits that fail, and compactions ── */

static void a_failed_commit(void **state) {
    (void)state;
    storage_own(&ds_storage)->lock = NULL;
    commit_rows(SFT_COMMIT_NEW, 1);
    sft_commit *c = ds_begin(kept, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 1, 1);
    assert_int_equal(sft_commit_prepare(c, NULL, &err), SFT_OK);
    commit_rows(SFT_COMMIT_OVERWRITE, 2); /* comes first, there are no locks */
    assert_int_equal(rows_at(1, 0), 1);
    assert_int_equal(sft_commit_publish(c, NULL, NULL, NULL, NULL, &err), SFT_DATASET_CHANGED);
    assert_int_equal(ds_count(SFTI_VERSION_FILE), 1);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    assert_int_equal(rows_at(1, 0), 1);
    assert_int_equal(rows_at(2, 0), 2);
}

static void compacted(void **state) {
    (void)state;
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    four_versions();
    commit_rows(SFT_COMMIT_APPEND, 1);
    commit_rows(SFT_COMMIT_APPEND, 2);
    how.target_bytes = UINT64_MAX;
    out.len = 0;
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err));
    assert_int_equal(rows_at(7, 0), 12);
    only_from(1);
    collect(2, 0, true);
    assert_int_equal(rows_at(6, 0), 12);
    assert_int_equal(ds_count("part-"), 5);
    collect(1, 0, true);
    assert_int_equal(rows_at(7, 0), 12);
    assert_int_equal(rows_at(6, 0), UINT64_MAX);
    assert_int_equal(ds_count("part-"), 3);
}

static void in_segments(void **state) {
    (void)state;
    ds_form = "segments";
    sft_dataset_options_free(kept);
    kept = ds_options("batch_size=4", "keep_old=all", NULL);
    four_versions();
    for (uint64_t v = 5; v < 40; v++) commit_rows(SFT_COMMIT_APPEND, 1);
    only_from(1);
    for (uint64_t v = 5; v < 40; v++) assert_int_equal(rows_at(v, 0), 5 + v);
    collect(0, 0, true);
    has("\"garbage\":[]");
    collect(20, 0, true);
    for (uint64_t v = 1; v < 40; v++)
        assert_int_equal(rows_at(v, 0), v < 20 ? UINT64_MAX : 5 + v);
    out.len = 0;
    verify_whole(true);
    has("\"orphan_count\":0");
    collect(1, 0, true);
    assert_true(ds_count(SFTI_SEGMENT_FILE) < 6);
    ds_form = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        VERSION_TEST(each_is_read), VERSION_TEST(by_time),
        VERSION_TEST(a_gap), VERSION_TEST(none_are_kept),
        VERSION_TEST(collected_by_number), VERSION_TEST(collected_by_age),
        VERSION_TEST(of_another_dataset), VERSION_TEST(named_otherwise),
        VERSION_TEST(no_history),
        VERSION_TEST(damaged), VERSION_TEST(planted),
        VERSION_TEST(a_missing_shard),
        VERSION_TEST(a_failed_commit), VERSION_TEST(compacted), VERSION_TEST(in_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
