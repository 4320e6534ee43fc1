/* The order of rows survives compactions. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"

static sft_error err;
static char manifest[1 << 16];

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)

static void read_manifest(void) {
    memset(manifest, 0, sizeof manifest);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, manifest, sizeof manifest - 1) > 0);
}

static sft_code compact(uint64_t target) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    how.drop_old = true;
    how.target_bytes = target;
    how.warn = ds_warn;
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&out);
    sft_code code = sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err);
    if (code) sft_sink_abandon(&sink);
    else assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    sft_buffer_free(&out);
    return code;
}

static void verify_whole(void) {
    bool whole = false;
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_verify_json(&ds_storage, true, NULL, "d", &sink, &whole, NULL,
                                             &err),
                     SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_true(whole);
    sft_buffer_free(&out);
}

static void order_is(size_t i, const char *text) {
    sft_dataset *d = ds_open();
    sft_file *file;
    sft_span found = { "", 0 };
    assert_int_equal(sft_dataset_shard_open(d, i, NULL, &file, &err), SFT_OK);
    assert_int_equal(sft_file_metadata_get_cstr(file, "libsafetensors.row_order", &found),
                     text != NULL);
    if (text) assert_true(sft_span_equal(found, sft_span_cstr(text)));
    sft_close(file);
    sft_dataset_close(d);
}

static void put_kv(const char *const *names, size_t count, sft_commit_mode how) {
    sft_dataset_options *o = ds_options("name_col=id", "duplicatesStrategy=lastWin", NULL);
    sft_commit *c = ds_begin(o, how);
    for (size_t i = 0; i < count; i++)
        ds_kv_on(c, &ds_storage, (unsigned)i, 0, names[i], (char)(i + 1));
    ds_end(c);
    sft_dataset_options_free(o);
}

/* Readers can number rows across a compaction: the manifest keeps the rows' commit, and a merged
 * shard the original shard of each row. */
static void order_is_kept(void **state) {
    char commit[64];
    (void)state;
    put_kv((const char *const[]){ "b,d,x", "a,x", "c^,c" }, 3, SFT_COMMIT_OVERWRITE);
    read_manifest();
    assert_null(strstr(manifest, "row_order"));
    (void)snprintf(commit, sizeof commit, "\"row_order\":\"%.36s\"",
                   strstr(manifest, "\"commit\":") + strlen("\"commit\":\""));
    assert_int_equal(compact(UINT64_MAX), SFT_OK);
    order_is(0, "102201"); /* a b c c^ d x */
    read_manifest();
    assert_non_null(strstr(manifest, commit));
    verify_whole();
    /* An append adds rows: the order is of that commit. */
    put_kv((const char *const[]){ "A,b" }, 1, SFT_COMMIT_APPEND);
    read_manifest();
    assert_null(strstr(manifest, "row_order"));
    assert_int_equal(compact(0), SFT_OK); /* b is lost in the first */
    order_is(0, "12201");
    order_is(1, NULL);
    assert_int_equal(compact(UINT64_MAX), SFT_OK);
    order_is(0, "3132201"); /* A a b c c^ d x */
}

static void order_of_names(void **state) {
    (void)state;
    put_kv((const char *const[]){ "a,b", "c", "d,e" }, 3, SFT_COMMIT_OVERWRITE);
    assert_int_equal(compact(UINT64_MAX), SFT_OK);
    order_is(0, NULL);
    read_manifest();
    assert_non_null(strstr(manifest, "row_order"));
}

/* Bytes of the first shard that holds `from` become `to`, which is as long. */
static void damage(const char *from, const char *to) {
    static char bytes[1 << 16];
    sft_dataset *d = ds_open();
    char name[200];
    (void)snprintf(name, sizeof name, "%s", sft_dataset_shard_at(d, 0)->name);
    sft_dataset_close(d);
    size_t got = temp_read(name, bytes, sizeof bytes);
    char *at = memmem(bytes, got, from, strlen(from));
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    temp_write(name, bytes, got);
}

static void order_damaged(void **state) {
    (void)state;
    static const char *const texts[] = { "\"10220\" ", "\"1022g1\"", "\"\"      ",
                                         "\"10220 \"", "\"1022-1\"", "\"10220A\"" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_kv((const char *const[]){ "b,d,x", "a,x", "c^,c" }, 3, SFT_COMMIT_OVERWRITE);
        assert_int_equal(compact(UINT64_MAX), SFT_OK);
        damage("\"102201\"", texts[i]);
        put_kv((const char *const[]){ "A,b" }, 1, SFT_COMMIT_APPEND);
        assert_int_equal(compact(UINT64_MAX), SFT_DATASET_SHARD);
        assert_non_null(strstr(err.message, "row_order"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(order_is_kept),
        FOLDER_TEST(order_of_names),
        FOLDER_TEST(order_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
