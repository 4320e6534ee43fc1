/* Maintenance while others change the dataset, at the ends of its numbers, and asked for what is
 * not there. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

#include "dataset/maintain/results.h"
#include "os/os.h"

typedef enum verb { DELETES, ADDS, COMPACTS } verb;

static sft_code run_on(const sft_storage *s, verb what, bool dry_run) {
    static const sft_row_range first = { 0, 1 };
    sft_delete_options delete = SFT_DELETE_OPTIONS_INIT;
    sft_compact_options compact = SFT_COMPACT_OPTIONS_INIT;
    sft_add_options add = SFT_ADD_OPTIONS_INIT;
    sft_storage values = { NULL, NULL, false };
    sft_sink sink = sft_sink_memory(&out);
    sft_code code = SFT_OK;
    out.len = 0;
    delete.rows = &first;
    delete.row_count = 1;
    delete.dry_run = compact.dry_run = add.dry_run = dry_run;
    compact.target_bytes = UINT64_MAX;
    compact.batch_size = 8;
    delete.warn = compact.warn = add.warn = ds_warn;
    if (what == ADDS) ds_values(7, 4, &values);
    if (what == DELETES) code = sft_dataset_delete_json(s, &delete, "d", &sink, NULL, &err);
    if (what == ADDS) code = sft_dataset_add_json(s, &values, &add, "d", &sink, NULL, &err);
    if (what == COMPACTS) code = sft_dataset_compact_json(s, &compact, "d", &sink, NULL, &err);
    sft_storage_close(&values);
    if (code) sft_sink_abandon(&sink);
    else assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    return code;
}

/* A dataset of batches, in version 1. */
static void make_first(void) {
    (void)unlink(temp_path(SFTI_DATASET_MANIFEST));
    make_batch();
}

static void says(sft_code code, sft_code wanted, const char *why) {
    if (code != wanted || (code && !strstr(err.message, why)))
        fail_msg("expected %d %s, found %d %s", (int)wanted, why, (int)code, err.message);
}

/* ── Numbers ── */

static void last_version(void **state) {
    (void)state;
    for (int what = DELETES; what <= COMPACTS; what++) {
        make_first();
        edit("\"version\":1,", "\"version\":18446744073709551615,");
        for (int dry = 0; dry < (what == COMPACTS ? 1 : 2); dry++) /* whose plan needs no version */
            says(run_on(&ds_storage, (verb)what, dry), SFT_SIZE_OVERFLOW,
                 "expected a version within 64 bits, found more");
        assert_int_equal(ds_count("_job-"), 0);
        assert_int_equal(ds_count(".dataset_masks-") + ds_count(".dataset_columns-"), 0);
        assert_int_equal(ds_count(".part-"), 0);
    }
}

static void ranges(void **state) {
    static const sft_row_range bad[] = { { 3, 2 }, { 0, 8 }, { 8, 9 } };
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    (void)state;
    make_first();
    for (int i = 0; i < 3; i++) {
        sft_sink sink = sft_sink_memory(&out);
        how.rows = &bad[i];
        how.row_count = 1;
        says(sft_dataset_delete_json(&ds_storage, &how, "d", &sink, NULL, &err), SFT_BAD_ARGUMENT,
             "expected rows from 0 to 7, found ");
        sft_sink_abandon(&sink);
    }
    how.row_count = 0; /* nothing to delete */
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_delete_json(&ds_storage, &how, "d", &sink, NULL, &err));
    has("\"version\":1,\"rows_before\":7,\"deleted\":0,\"rows_after\":7,");
}

/* ── Commits in between ── */

static const char *late_from, *late_to; /* in the manifest, before the lock is taken */

static sft_code late_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    if (late_from) edit(late_from, late_to);
    late_from = NULL;
    return ds_storage.vtable->lock(ctx, wait_ms, e);
}

static void other_shards(void **state) {
    static const struct {
        const char *from, *to;
        bool deletes; /* notices, too */
    } all[] = {
        { "\"samples_count\":4", "\"samples_count\":5", true },
        { "\"sha256\":\"", "\"sha256\":\"0000000000000000000000000000000000000000000000000000000000"
          "000000\",\"sha255\":\"", true },
        { "\"bytes\":1", "\"bytes\":2", false },
        { "\"valid_samples\":4", "\"valid_samples\":3", false },
        { "\"shard_path\":\"part-00000", "\"shard_path\":\"part-00007", true },
        { "\"shard_path\":\"part-00001", "\"shard_path\":\"part-00007", false },
    };
    sft_storage late = ds_storage;
    (void)state;
    storage_own(&late)->lock = late_lock;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int what = DELETES; what <= ADDS; what++) {
            if (what == DELETES && !all[i].deletes) continue;
            make_first();
            late_from = all[i].from;
            late_to = all[i].to;
            says(run_on(&late, (verb)what, false), SFT_DATASET_CHANGED,
                 what == ADDS ? "expected the shards of version 1, to which columns are to be added"
                              : "expected the shards of version 1, whose rows are to be deleted");
            assert_int_equal(ds_count("_job-"), 0);
            assert_int_equal(ds_count(".part-"), 0);
        }
}

static void names_of_a_version(void **state) {
    const sft_span name = sft_span_cstr("a");
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    sft_dataset_options *o = ds_options("name_col=id", "keep_old=all", NULL);
    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
        ds_kv(c, i, 0, i ? "b" : "a");
        ds_end(c);
    }
    sft_dataset_options_free(o);
    how.keys = &name;
    how.key_count = 1;
    for (how.version = 1; how.version < 3; how.version++) {
        sft_sink sink = sft_sink_memory(&out);
        sft_code code = sft_dataset_delete_json(&ds_storage, &how, "d", &sink, NULL, &err);
        says(code, how.version == 1 ? SFT_DATASET_CHANGED : SFT_OK,
             "names: expected the shards of version 1, whose rows are to be deleted, found version "
             "2");
        sft_sink_abandon(&sink);
    }
}

/* ── What cannot be maintained ── */

static void others_names(void **state) {
    static const char why[] = "expected names of shards as docs/dataset.md defines them, found "
                              "a.safetensors";
    char from[260];
    (void)state;
    for (int what = ADDS; what <= COMPACTS; what++) {
        make_first();
        (void)snprintf(from, sizeof from, "%s", temp_path(shard[0]));
        assert_int_equal(rename(from, temp_path("a.safetensors")), 0);
        edit(shard[0], "a.safetensors");
        says(run_on(&ds_storage, (verb)what, false), SFT_MANIFEST_TYPE, why);
        assert_int_equal(ds_count("_job-"), 0);
        assert_int_equal(ds_count(".part-"), 0);
    }
}

static void not_ours(void **state) {
    (void)state;
    for (int what = DELETES; what <= COMPACTS; what++) {
        make_first();
        edit("libsafetensors", "notsafetensors");
        says(run_on(&ds_storage, (verb)what, false), SFT_MANIFEST_TYPE,
             "expected a dataset that libsafetensors wrote, found another program's");
    }
    /* Values of another program, and values without a column. */
    sft_storage values;
    make_first();
    ds_values(7, 4, &values);
    const sft_storage kept = ds_storage;
    for (int way = 0; way < 2; way++) {
        sft_sink sink = sft_sink_memory(&out);
        ds_storage = values;
        char path[300], text[1 << 13] = { 0 };
        (void)snprintf(path, sizeof path, "values/%s", SFTI_DATASET_MANIFEST);
        assert_true(temp_read(path, text, sizeof text - 1) > 0);
        char *at = strstr(text, way ? "\"columns\"" : "libsafetensors");
        assert_non_null(at);
        memcpy(at, way ? "\"colonnes\"" : "notsafetensors", way ? 9 : 14);
        if (way) at[8] = '"', memcpy(strstr(text, "notsafetensors"), "libsafetensors", 14);
        temp_write(path, text, strlen(text));
        ds_storage = kept;
        says(sft_dataset_add_json(&ds_storage, &values, NULL, "d", &sink, NULL, &err),
             way ? SFT_COLUMN_UNKNOWN : SFT_MANIFEST_TYPE,
             way ? "expected a column to add, found none" : "another program's");
        sft_sink_abandon(&sink);
    }
    sft_storage_close(&values);
}

/* Columns are added to a dataset with an index, which is no longer whole, and without a schema. */
static void index_and_schema(void **state) {
    (void)state;
    make_first();
    temp_write(SFTI_DATASET_INDEX, "x", 1);
    edit("\"index\":null", "\"index\":\"" SFTI_DATASET_INDEX "\"");
    edit("\"schema\":", "\"scheme\":");
    says(run_on(&ds_storage, ADDS, false), SFT_OK, "");
    assert_false(ds_exists(SFTI_DATASET_INDEX));
    read_manifest();
    assert_non_null(strstr(manifest, "\"index\":null"));
    assert_null(strstr(manifest, "\"schema\":"));
    verify_whole(true);
}

/* ── Results ── */

static sft_code gone_open(void *ctx, const char *name, sft_source *source, sft_error *e) {
    if (strncmp(name, ".dataset_version-", 17) == 0)
        return sft_error_set(e, SFT_NOT_FOUND, 0, "gone");
    return ds_storage.vtable->open(ctx, name, source, e);
}

/* A version that goes while it is looked at. */
static void version_gone(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", "keep_old=all", NULL);
    sft_storage s = ds_storage;
    (void)state;
    for (int i = 0; i < 2; i++) {
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        ds_batch(c, 0, 0, 4, 4);
        ds_end(c);
    }
    sft_dataset_options_free(o);
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_versions_json(&ds_storage, "d", &sink, &err));
    has("{\"version\":1,");
    storage_own(&s)->open = gone_open;
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_versions_json(&s, "d", &sink, &err));
    has_not("{\"version\":1,");
    has("{\"version\":2,");
    sink = sft_sink_memory(&out);
    says(sft_dataset_gc_json(&s, gc_how(0, true), "d", &sink, &err), SFT_DATASET_CHANGED,
         ": removed by another program");
    sft_sink_abandon(&sink);
    assert_int_equal(ds_count(".dataset_version-"), 1);
    /* Its file says another number than its name. */
    char from[300], name[SFTI_VERSION_FILE_NAME];
    read_manifest();
    char *history = strstr(manifest, "\"history\":\"");
    assert_non_null(history);
    sfti_ds_version_name(1, history + 11, name);
    (void)snprintf(from, sizeof from, "%s", temp_path(name));
    edit("\"version\":2,", "\"version\":9,");
    sfti_ds_version_name(5, strstr(manifest, "\"history\":\"") + 11, name);
    assert_int_equal(rename(from, temp_path(name)), 0);
    sft_dataset *d = NULL;
    says(sft_dataset_open_version(&ds_storage, 5, 0, NULL, NULL, NULL, &d, &err),
         SFT_MANIFEST_TYPE, ": expected version 5, found 1");
    assert_null(d);
}

/* A version that cannot be read, and a dataset without commits. */
static void version_broken(void **state) {
    static const char theirs[] = "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
                                 "\"mode\":\"kv\",\"total_samples\":0,\"total_bytes\":0,"
                                 "\"shards\":[]}";
    sft_dataset_options *o = ds_options("batch_size=4", "keep_old=all", NULL);
    char name[SFTI_VERSION_FILE_NAME];
    (void)state;
    for (int i = 0; i < 2; i++) ds_end(ds_begin(o, SFT_COMMIT_OVERWRITE));
    sft_dataset_options_free(o);
    read_manifest();
    sfti_ds_version_name(1, strstr(manifest, "\"history\":\"") + 11, name);
    temp_write(name, "{", 1);
    sft_sink sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_versions_json(&ds_storage, "d", &sink, &err), SFT_MANIFEST_TYPE);
    sft_sink_abandon(&sink);
    temp_write(SFTI_DATASET_MANIFEST, theirs, sizeof theirs - 1);
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_versions_json(&ds_storage, "d", &sink, &err));
    has("\"commit\":null");
    sft_dataset *d = ds_open();
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_info_json(d, "d", &sink, &err));
    has("\"mode\":\"kv\"");
    has("\"columns\":");
    sft_dataset_close(d);
}

static void appends(void) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 2, 2);
    ds_end(c);
    sft_dataset_options_free(o);
}

/* Tensors of files with columns are listed with their shard; a column that is nowhere is not. */
static void listed(void **state) {
    (void)state;
    make_first();
    says(run_on(&ds_storage, ADDS, false), SFT_OK, "");
    appends();
    sft_dataset *d = ds_open();
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_ls_json(d, NULL, "d", NULL, NULL, &sink, &err));
    int x = 0, y = 0;
    for (const char *at = out.data; (at = strstr(at, "\"name\":\"")) != NULL; at++) {
        x += at[8] == 'x';
        y += at[8] == 'y';
    }
    if (x != 3 || y != 2) fail_msg("%s", out.data);
    sft_dataset_close(d);
}

static void arguments(void **state) {
    sft_dataset_replaced *found = NULL;
    sft_file *file = NULL;
    (void)state;
    make_kv();
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_find_replaced(NULL, NULL, &found, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_dataset_find_replaced(d, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message,
                        "expected a dataset and a place for the result, found NULL");
    assert_int_equal(sft_dataset_find_replaced(d, NULL, &found, &err), SFT_OK);
    assert_true(sft_dataset_is_replaced(found, 0, 1)); /* b */
    assert_false(sft_dataset_is_replaced(found, 0, 3) || sft_dataset_is_replaced(found, 3, 0));
    assert_false(sft_dataset_is_deleted(found, 0, 3) || sft_dataset_is_deleted(found, 3, 0));
    assert_false(sft_dataset_is_replaced(NULL, 0, 1) || sft_dataset_is_deleted(NULL, 0, 1));
    sft_dataset_replaced_free(found);
    sft_dataset_replaced_free(NULL);
    assert_int_equal(sft_dataset_shard_open(d, 3, NULL, &file, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_dataset_shard_open(d, 0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    const sft_dataset_place nowhere = { .shard = "a", .column = "x" },
                            somewhere = { .shard = "a", .column = "x", .file = "b" };
    assert_int_equal(sft_dataset_place_open(d, NULL, NULL, &file, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_dataset_place_open(d, &nowhere, NULL, &file, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_dataset_place_open(d, &somewhere, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    sft_dataset_close(d);
}

/* ── gc ── */

/* Files of the future are young; without a grace period nothing is. */
static void the_future(void **state) {
    (void)state;
    make_first();
    orphan(ORPHAN, true);
    age(ORPHAN, -10000);
    gc(10, true);
    has("\"name\":\"" ORPHAN "\"");
    has("\"young\":true");
    assert_true(ds_exists(ORPHAN));
    gc(0, true);
    assert_false(ds_exists(ORPHAN));
}

/* Where names cannot be moved a young folder of a job says that shards may be its own. */
static void living_jobs(void **state) {
    sft_storage s = ds_storage;
    const sft_gc_options how = *gc_how(1000, true);
    (void)state;
    storage_own(&s)->move = NULL;
    for (int young = 1; young >= 0; young--) {
        make_first();
        orphan(ORPHAN, true);
        age(ORPHAN, 5000);
        (void)mkdir(temp_path("_job-" UUID), 0777);
        temp_write("_job-" UUID "/" ORPHAN, "x", 1);
        if (!young) age("_job-" UUID "/" ORPHAN, 5000), age("_job-" UUID, 5000);
        sft_sink sink = sft_sink_memory(&out);
        finish(&sink, sft_dataset_gc_json(&s, &how, "d", &sink, &err));
        has("\"name\":\"" ORPHAN "\"");
        assert_int_equal(ds_exists(ORPHAN), young);
        assert_int_equal(ds_exists("_job-" UUID), young);
    }
}

/* Without a lock a shard may have been moved here just now, whatever its own time. */
static void moved_now(void **state) {
    sft_storage s = ds_storage;
    const sft_gc_options how = *gc_how(1000, true);
    (void)state;
    make_first();
    orphan(ORPHAN, true);
    age(ORPHAN, 5000);
    storage_own(&s)->lock = NULL;
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_gc_json(&s, &how, "d", &sink, &err));
    has("\"young\":true");
    assert_true(ds_exists(ORPHAN));
    sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_gc_json(&ds_storage, &how, "d", &sink, &err));
    assert_false(ds_exists(ORPHAN));
}

/* Files of commits go an hour after the manifest has overtaken them, by times that are known. */
static void commit_files(void **state) {
    static const char name[] = ".dataset_manifest.commit-1-none";
    (void)state;
    make_first();
    edit("\"version\":1,", "\"version\":5,");
    temp_write(name, "x", 1);
    age(name, -1000);
    gc(0, true);
    assert_true(ds_exists(name));
    age(name, time(NULL)); /* 1970 */
    gc(0, true);
    assert_true(ds_exists(name));
    age(name, 1000);
    gc(0, true);
    assert_true(ds_exists(name));
    age(name, 7200);
    gc(0, true);
    assert_false(ds_exists(name));
}

/* Versions go if they are beyond those to keep and old, where both are asked for. */
static void kept_and_old(void **state) {
    static const struct {
        uint64_t keep, older_s;
        int left;
    } all[] = { { 0, 0, 3 }, { 3, 0, 2 }, { 2, 1000, 3 }, { 1, 0, 0 } };
    sft_dataset_options *o = ds_options("batch_size=4", "keep_old=all", NULL);
    sft_gc_options how = SFT_GC_OPTIONS_INIT;
    (void)state;
    for (int i = 0; i < 4; i++) {
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        ds_batch(c, 0, 0, 4, 4);
        ds_end(c);
    }
    sft_dataset_options_free(o);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        how.keep = all[i].keep;
        how.older_s = all[i].older_s;
        how.remove = all[i].keep != 3; /* of that one it is told */
        sft_sink sink = sft_sink_memory(&out);
        finish(&sink, sft_dataset_gc_json(&ds_storage, &how, "d", &sink, &err));
        if (!how.remove) has("\"name\":\".dataset_version-1-");
        else assert_int_equal(ds_count(".dataset_version-"), all[i].left);
    }
}

/* ── Which neighbours compact merges ── */

static void targets(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    uint64_t size[3];
    (void)state;
    for (int way = 0; way < 5; way++) {
        (void)unlink(temp_path(SFTI_DATASET_MANIFEST));
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        ds_kv(c, 0, 0, "a");
        ds_kv(c, 1, 0, "b,c,d,e");
        ds_kv(c, 2, 0, "f");
        ds_end(c);
        keep_names();
        sft_dataset *d = ds_open();
        for (size_t i = 0; i < 3; i++) size[i] = sft_dataset_shard_at(d, i)->bytes;
        sft_dataset_close(d);
        const uint64_t target[] = { 1, size[1], size[0] + size[1] - 1, size[0] + size[1],
                                    UINT64_MAX };
        static const int after[] = { 3, 3, 3, 2, 1 };
        sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
        how.target_bytes = target[way];
        sft_sink sink = sft_sink_memory(&out);
        finish(&sink, sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err));
        char says[40];
        (void)snprintf(says, sizeof says, "\"shards_after\":%d,", after[way]);
        has(says);
        verify_whole(true);
    }
    sft_dataset_options_free(o);
}

/* ── A local folder ── */

static void local_names(void **state) {
    static const char *const bad[] = { ".", "..", "a/..", "../a", "a//b", "/a", "a/", "a/./b" };
    static const char *const good[] = { ".a", "..a", "a/..b" };
    const bool windows = SFTI_OS_PATHS == SFTI_PATHS_WINDOWS; /* where no name ends in a dot */
    sft_source source;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        says(ds_storage.vtable->open(ds_storage.ctx, bad[i], &source, &err), SFT_BAD_ARGUMENT,
             "expected a name inside the dataset's folder, found \"");
        says(ds_storage.vtable->remove(ds_storage.ctx, bad[i], true, &err), SFT_BAD_ARGUMENT,
             "expected a name inside the dataset's folder, found \"");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(ds_storage.vtable->open(ds_storage.ctx, good[i], &source, &err),
                         SFT_NOT_FOUND);
    assert_int_equal(ds_storage.vtable->open(ds_storage.ctx, "...", &source, &err),
                     windows ? SFT_BAD_ARGUMENT : SFT_NOT_FOUND);
    /* A folder with another in it is none of ours. */
    assert_int_equal(mkdir(temp_path("f"), 0777), 0);
    temp_write("f/a", "x", 1);
    assert_int_equal(mkdir(temp_path("f/g"), 0777), 0);
    assert_int_not_equal(ds_storage.vtable->remove(ds_storage.ctx, "f", true, &err), SFT_OK);
    assert_true(ds_exists("f/a"));
    assert_int_equal(rmdir(temp_path("f/g")), 0);
    assert_int_equal(ds_storage.vtable->remove(ds_storage.ctx, "f", true, &err), SFT_OK);
    assert_false(ds_exists("f"));
    assert_int_equal(ds_storage.vtable->remove(ds_storage.ctx, "f", true, &err), SFT_OK);
}

/* Sizes that exceed 64 bits. */
static sft_code huge_list(void *ctx, const char *folder, sft_stored_fn each, void *each_ctx,
                          sft_error *e) {
    (void)ctx, (void)e;
    const sft_stored in_folder[] = { { .name = ORPHAN, .bytes = UINT64_MAX },
                                     { .name = ORPHAN, .bytes = 2 } };
    if (strcmp(folder, "_job-" UUID) != 0)
        return ds_storage.vtable->list(ctx, folder, each, each_ctx, e);
    for (int i = 0; i < 2; i++)
        if (!each(each_ctx, &in_folder[i])) break;
    return SFT_OK;
}

static void huge_folders(void **state) {
    sft_storage s = ds_storage;
    (void)state;
    make_first();
    assert_int_equal(mkdir(temp_path("_job-" UUID), 0777), 0);
    storage_own(&s)->list = huge_list;
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_gc_json(&s, gc_how(0, false), "d", &sink, &err));
    has("{\"name\":\"_job-" UUID "\",\"bytes\":18446744073709551615,");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(last_version), FOLDER_TEST(ranges), FOLDER_TEST(other_shards),
        FOLDER_TEST(names_of_a_version), FOLDER_TEST(others_names), FOLDER_TEST(not_ours),
        FOLDER_TEST(version_broken),
        FOLDER_TEST(index_and_schema), FOLDER_TEST(version_gone), FOLDER_TEST(listed),
        FOLDER_TEST(arguments), FOLDER_TEST(the_future), FOLDER_TEST(living_jobs),
        FOLDER_TEST(huge_folders), FOLDER_TEST(moved_now), FOLDER_TEST(commit_files),
        FOLDER_TEST(kept_and_old), FOLDER_TEST(targets), FOLDER_TEST(local_names),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
