/* Columns are added: what it writes, commits that come first, what is refused. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

#include "dataset/maintain/results.h"
#include "dataset/read/places.h"

static sft_code add_with(const sft_storage *storage, const sft_storage *values,
                         const sft_add_options *how) {
    sft_sink sink = sft_sink_memory(&out);
    out.len = 0;
    sft_code code = sft_dataset_add_json(storage, values, how, "d", &sink, NULL, &err);
    if (code) sft_sink_abandon(&sink);
    else assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    return code;
}

static sft_code add_rows(const sft_storage *storage, uint64_t count, uint64_t rows,
                         const sft_add_options *how) {
    sft_storage values;
    ds_values(count, rows, &values);
    sft_code code = add_with(storage, &values, how);
    sft_storage_close(&values);
    return code;
}

static void adds(uint64_t count, uint64_t rows) {
    if (add_rows(&ds_storage, count, rows, NULL)) fail_msg("%s", err.message);
}

static void deletes(uint64_t first, uint64_t end) {
    const sft_row_range range = { first, end };
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    sft_sink sink = sft_sink_memory(&out);
    how.rows = &range;
    how.row_count = 1;
    finish(&sink, sft_dataset_delete_json(&ds_storage, &how, "d", &sink, NULL, &err));
}

static void compacts(void) {
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_compact_json(&ds_storage, NULL, "d", &sink, NULL, &err));
}

static void appends(void) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 2, 2);
    ds_end(c);
    sft_dataset_options_free(o);
}

/* Whether a shard's column is in a file beside it, or nowhere. */
static void place_is(size_t i, bool file, uint64_t rows) {
    sft_dataset *d = ds_open();
    size_t count;
    const sft_dataset_place *of = sft_dataset_shard_places(d, i, &count);
    assert_int_equal(count, 1);
    assert_string_equal(of->column, "y");
    assert_int_equal(of->file != NULL, file);
    sft_file *opened = NULL;
    sft_code code = sft_dataset_place_open(d, of, NULL, &opened, &err);
    assert_int_equal(code, file ? SFT_OK : SFT_BAD_ARGUMENT);
    if (file) assert_int_equal(sft_file_find_cstr(opened, "y")->shape[0], rows);
    sft_close(opened);
    sft_dataset_close(d);
}

static void beside_shards(void **state) {
    (void)state;
    make_batch(); /* rows 0 to 3, 4 to 6 and one of padding */
    deletes(1, 2);
    adds(6, 5);
    has("\"version\":3,\"rows\":6,\"columns\":[\"y\"],\"files\":2,");
    verify_whole(true);
    place_is(0, true, 4);
    place_is(1, true, 4);
    appends();
    place_is(2, false, 0);
    verify_whole(true);
    read_manifest();
    assert_non_null(strstr(manifest, "\"features\":[\"deleted\",\"columns\"]"));
    assert_int_equal(add_rows(&ds_storage, 8, 4, NULL), SFT_DATASET_DISAGREES);
    assert_non_null(strstr(err.message, "one that the dataset lacks"));
    compacts();
    has("\"rewritten\":3,\"tensors_dropped\":0,\"deleted_dropped\":1,\"columns_merged\":3,");
    verify_whole(true);
    read_manifest();
    assert_null(strstr(manifest, "features"));
    gc(0, true);
    verify_whole(true);
    has("\"orphan_count\":0");
    sft_dataset *d = ds_open();
    size_t count = 1;
    assert_null(sft_dataset_shard_places(d, 0, &count));
    assert_int_equal(count, 0);
    assert_null(sft_dataset_shard_places(d, 9, &count));
    sft_dataset_close(d);
}

static void refusals(void **state) {
    sft_add_options how = SFT_ADD_OPTIONS_INIT;
    const sft_span names[] = { sft_span_cstr("z") };
    (void)state;
    make_batch();
    assert_int_equal(add_rows(&ds_storage, 6, 4, NULL), SFT_DATASET_DISAGREES);
    assert_non_null(strstr(err.message, "expected values of 7 rows"));
    how.columns = names;
    how.column_count = 1;
    assert_int_equal(add_rows(&ds_storage, 7, 4, &how), SFT_COLUMN_UNKNOWN);
    how = (sft_add_options)SFT_ADD_OPTIONS_INIT;
    how.dry_run = true;
    assert_int_equal(add_rows(&ds_storage, 7, 4, &how), SFT_OK);
    has("\"bytes\":null");
    assert_int_equal(ds_count(".part-"), 0);
    assert_int_equal(ds_count("_job-"), 0);
    assert_int_equal(add_with(&ds_storage, &ds_storage, NULL), SFT_DATASET_DISAGREES);
    assert_int_equal(add_with(&ds_storage, NULL, NULL), SFT_BAD_ARGUMENT);
    make_kv();
    assert_int_equal(add_rows(&ds_storage, 6, 4, NULL), SFT_BAD_ARGUMENT);
    verify_whole(true);
}

/* ── Commits that come first ── */

static void (*first)(void); /* before the next call of lock */

static sft_code late_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    void (*call)(void) = first;
    first = NULL;
    if (call) call();
    return ds_storage.vtable->lock(ctx, wait_ms, e);
}

static void delete_one(void) { deletes(0, 1); }
static void compact_all(void) { deletes(0, 1), compacts(); }

static void joined(void **state) {
    sft_storage late = ds_storage;
    (void)state;
    storage_own(&late)->lock = late_lock;
    make_batch();
    first = appends;
    assert_int_equal(add_rows(&late, 7, 4, NULL), SFT_OK);
    place_is(1, true, 4);
    place_is(2, false, 0);
    verify_whole(true);
    make_batch();
    first = delete_one;
    assert_int_equal(add_rows(&late, 7, 4, NULL), SFT_OK);
    verify_whole(true);
    make_batch();
    gc(0, true);
    first = compact_all;
    assert_int_equal(add_rows(&late, 7, 4, NULL), SFT_DATASET_CHANGED);
    assert_non_null(strstr(err.message, "which replaced some"));
    assert_int_equal(ds_count(".part-"), 0);
    assert_int_equal(ds_count("_job-"), 0);
    verify_whole(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(beside_shards),
        FOLDER_TEST(refusals),
        FOLDER_TEST(joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
