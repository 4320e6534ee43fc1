/* From rows to a dataset: shard writers and the commit together. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"

#include "unit/arrow_make.h"

static sft_error err;
static const int64_t numbers[] = { INT64_MAX, -1, (INT64_C(1) << 53) + 1, 0, INT64_MIN, 5, 6, 7 };
static const float floats[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const int32_t ends[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

/* Columns "id" (strings of a letter), "n" (int64), "v" (two floats). */
static struct ArrowSchema *row_type(const char *v) {
    return am_of(am_of(am_of(am_type("+s", ""), am_type("u", "id")), am_type("l", "n")),
                 am_list("+w:2", v, am_type("f", "item")));
}

static struct ArrowArray *rows_of(const char *letters) {
    int64_t count = (int64_t)strlen(letters);
    struct ArrowArray *top = am_make(count, 0, NULL);
    am_with(top, am_make(count, 0, NULL, ends, letters));
    am_with(top, am_make(count, 0, NULL, numbers));
    return am_with(top, am_with(am_make(count, 0, NULL), am_make(2 * count, 0, NULL, floats)));
}

static int make(void **state) {
    am_reset();
    return ds_make(state);
}

static int leave(void **state) { return ds_remove(state) || am_given != am_released; }

/* ── A task and a commit ── */

static void task(sft_commit *commit, const sft_dataset_options *o, uint64_t partition,
                 const char *letters) {
    sft_shard_writer *writer;
    sft_buffer receipts;
    if (sft_shard_writer_begin(o, &ds_storage, sft_commit_job(commit), partition, row_type("v"),
                               NULL, &writer, &err))
        fail_msg("%s", err.message);
    struct ArrowArray batch = am_give(rows_of(letters));
    if (sft_shard_writer_append(writer, &batch, NULL, &err)) fail_msg("%s", err.message);
    if (sft_shard_writer_finish(writer, &receipts, NULL, &err)) fail_msg("%s", err.message);
    if (sft_commit_add(commit, (sft_span){ receipts.data, receipts.len }, &err))
        fail_msg("%s", err.message);
    sft_buffer_free(&receipts);
}

static sft_code begin(const sft_dataset_options *o, sft_commit_mode how, const char *v,
                      sft_commit **out) {
    sft_commit_options options = SFT_COMMIT_OPTIONS_INIT;
    options.mode = how;
    return sft_commit_open(o, &ds_storage, row_type(v), &options, out, &err);
}

static void is_whole(uint64_t samples, size_t shards, const char *part) {
    sft_buffer text = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&text);
    bool whole = false;
    sft_code code =
        sft_dataset_verify_json(&ds_storage, true, NULL, "d", &sink, &whole, NULL, &err);
    if (!code) code = sft_sink_finish(&sink, &err);
    if (code || !whole) fail_msg("%s %.*s", err.message, (int)text.len, text.data);
    sft_buffer_free(&text);
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_samples(d), samples);
    assert_int_equal(sft_dataset_shard_count(d), shards);
    sft_span manifest = sft_dataset_manifest(d);
    if (!memmem(manifest.data, manifest.len, part, strlen(part)))
        fail_msg("no %s in %.*s", part, (int)manifest.len, manifest.data);
    sft_dataset_close(d);
    assert_int_equal(ds_count("_job-"), 0);
}

static void keyed(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_commit *c;
    (void)state;
    assert_int_equal(begin(o, SFT_COMMIT_NEW, "v", &c), SFT_OK);
    task(c, o, 0, "cab");
    task(c, o, 2, "xy");
    ds_end(c);
    is_whole(5, 2, "\"columns\":{\"n\":{\"dtype\":\"I64\",\"shape\":[]},"
                   "\"v\":{\"dtype\":\"F32\",\"shape\":[2],"
                   "\"type\":\"fixed_size_list<float>[2]\"}}");
    assert_int_equal(begin(o, SFT_COMMIT_APPEND, "v", &c), SFT_OK);
    task(c, o, 0, "de");
    ds_end(c);
    is_whole(7, 3, "part-00003-0000-");
    assert_int_equal(begin(o, SFT_COMMIT_APPEND, "v", &c), SFT_OK);
    task(c, o, 0, "fa");
    assert_int_equal(sft_commit_prepare(c, NULL, &err), SFT_DATASET_DUPLICATE);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    is_whole(7, 3, "\"version\":2,");
    sft_dataset *d = ds_open();
    sft_file *file;
    int64_t found = 0;
    assert_int_equal(sft_dataset_shard_open(d, 0, NULL, &file, &err), SFT_OK);
    const sft_tensor *t = sft_file_find_cstr(file, "b__n");
    assert_non_null(t);
    assert_int_equal(sft_read_bytes(file, t->offset, &found, 8, &err), SFT_OK);
    assert_int_equal(found, (INT64_C(1) << 53) + 1);
    sft_close(file);
    sft_dataset_close(d);
    sft_dataset_options_free(o);
}

/* Disagreements are reported before a task begins. */
static void other_columns(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_dataset_options *cast = ds_options("name_col=id", "dtype={\"v\":\"F16\"}", NULL);
    sft_commit *c;
    (void)state;
    assert_int_equal(begin(o, SFT_COMMIT_NEW, "v", &c), SFT_OK);
    task(c, o, 0, "a");
    ds_end(c);
    assert_int_equal(begin(o, SFT_COMMIT_APPEND, "w", &c), SFT_DATASET_DISAGREES);
    assert_string_equal(err.message, "expected only columns of the dataset, found w");
    assert_int_equal(begin(cast, SFT_COMMIT_APPEND, "v", &c), SFT_DATASET_DISAGREES);
    assert_string_equal(err.message, "column v: expected F32 as in the dataset, found F16");
    sft_dataset_options_free(cast);
    cast = ds_options("name_col=none", NULL);
    assert_int_equal(begin(cast, SFT_COMMIT_OVERWRITE, "v", &c), SFT_COLUMN_UNKNOWN);
    is_whole(1, 1, "\"version\":1,");
    sft_dataset_options_free(cast);
    sft_dataset_options_free(o);
}

static void batches(void **state) {
    sft_dataset_options *o = ds_options("batch_size=3", "columns=n,v", "tail_strategy=pad", NULL);
    sft_commit *c;
    (void)state;
    assert_int_equal(begin(o, SFT_COMMIT_NEW, "v", &c), SFT_OK);
    task(c, o, 0, "abcd");
    task(c, o, 1, "abc");
    ds_end(c);
    is_whole(9, 3, "\"total_samples\":9,\"total_valid_samples\":7,");
    assert_int_equal(begin(o, SFT_COMMIT_OVERWRITE, "v", &c), SFT_OK);
    ds_end(c); /* no rows at all: the columns are the schema's */
    is_whole(0, 0, "\"columns\":{\"n\":{\"dtype\":\"I64\",\"shape\":[]},\"v\":{");
    sft_dataset_options_free(o);
}

#define WHOLE_TEST(name) cmocka_unit_test_setup_teardown(name, make, leave)

int main(void) {
    static const struct CMUnitTest tests[] = { WHOLE_TEST(keyed), WHOLE_TEST(other_columns),
                                               WHOLE_TEST(batches) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
