/* Manifests that somebody else wrote: what a commit removes, and numbers that no file bears out. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"

#include "unit/storage_table.h"

#include <sys/resource.h>

/* Sanitizers reserve the address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)
#define PART(number) "part-0000" number "-0000-550e8400-e29b-41d4-a716-446655440000.safetensors"

static sft_error err;

/* What the manifest names as shards; only the first two are shards of this library. */
static const struct named {
    const char *name;
    bool tensors, mark; /* a file of tensors; with our mark */
} named[] = {
    { PART("0"), true, true },
    { PART("1"), true, true },
    { PART("2"), true, false }, /* as a connector names its own */
    { PART("3"), false, false },
    { "marked.safetensors", true, true }, /* of another name */
    { "model.safetensors", true, false },
    { "part-00004.safetensors", true, true },
    { "thesis.docx", false, false },
    { ".bashrc", false, false },
    { ".dataset.lock.safetensors", false, false },
};
#define NAMED (sizeof named / sizeof *named)

static const char text_of_others[] = "not a shard";

static void put_named(size_t i, uint64_t *bytes) {
    static const ds_tensor tensor = { "x", SFT_F32, 2, { 1, 3 }, 7 };
    sfti_ds_receipt facts = { .bytes = sizeof text_of_others };
    if (named[i].tensors)
        ds_put(&ds_storage, named[i].name, &tensor, 1, "batch", named[i].mark ? "1" : NULL, &facts);
    else
        temp_write(named[i].name, text_of_others, sizeof text_of_others);
    *bytes = facts.bytes;
}

/* A manifest of these files, each with one row; tensors: only files of tensors. */
static size_t write_named(bool tensors, const char *tail, const char *batch_size, bool itself) {
    char text[1 << 13], *at = text, *end = text + sizeof text;
    uint64_t bytes, total = 0, rows = 0;
    at += snprintf(at, (size_t)(end - at),
                   "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
                   "\"generator\":\"libsafetensors 0.2.0\","
                   "\"commit\":\"550e8400-e29b-41d4-a716-446655440001\",\"version\":1,"
                   "\"mode\":\"batch\",\"batch_size\":%s,\"tail_strategy\":\"%s\","
                   "\"columns\":{\"x\":{\"dtype\":\"F32\",\"shape\":[3]}},\"shards\":[",
                   batch_size, tail);
    for (size_t i = 0; i < NAMED; i++) {
        if (tensors && !named[i].tensors) continue;
        put_named(i, &bytes);
        at += snprintf(at, (size_t)(end - at),
                       "%s{\"shard_path\":\"%s\",\"samples_count\":1,\"valid_samples\":1,"
                       "\"bytes\":%d,\"tensors\":1,\"first_sample\":%d}",
                       rows ? "," : "", named[i].name, (int)bytes, (int)rows);
        total += bytes;
        rows++;
    }
    if (itself)
        at += snprintf(at, (size_t)(end - at),
                       ",{\"shard_path\":\"" SFTI_DATASET_MANIFEST "\",\"samples_count\":1,"
                       "\"bytes\":1,\"tensors\":1,\"first_sample\":%d}", (int)rows++);
    at += snprintf(at, (size_t)(end - at), "],\"total_samples\":%d,\"total_bytes\":%d}", (int)rows,
                   (int)total + itself);
    temp_write(SFTI_DATASET_MANIFEST, text, (size_t)(at - text));
    return (size_t)rows;
}

/* Ours have gone, the others are as they were, and one warning counts them. */
static void named_are(bool tensors, size_t kept) {
    char bytes[sizeof text_of_others], expected[40];
    for (size_t i = 0; i < NAMED; i++) {
        bool ours = i < 2, there = ds_exists(named[i].name);
        if (there != (!ours && (!tensors || named[i].tensors))) fail_msg("%s", named[i].name);
        if (!there || named[i].tensors) continue;
        assert_int_equal(temp_read(named[i].name, bytes, sizeof bytes), sizeof bytes);
        assert_string_equal(bytes, text_of_others);
    }
    (void)snprintf(expected, sizeof expected, "%zu files that the replaced", kept);
    if (ds_warn_count != 1 || !strstr(ds_warned, expected)) fail_msg("%s", ds_warned);
    assert_true(ds_exists(SFTI_DATASET_MANIFEST));
    sft_dataset_close(ds_open());
}

/* An object store: nothing is moved or locked. */
static void use_object_store(sft_storage *s) {
    *s = ds_storage;
    s->single_writer = true;
    storage_own(s)->move = NULL;
    storage_own(s)->move_new = NULL;
    storage_own(s)->lock = NULL;
}

static void overwrites(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    (void)state;
    how.mode = SFT_COMMIT_OVERWRITE;
    for (int flat = 0; flat < 2; flat++) {
        sft_storage s = ds_storage;
        sft_commit *c = NULL;
        ds_warn_count = 0;
        ds_warned[0] = '\0';
        if (flat) use_object_store(&s);
        write_named(false, "write", "4", true);
        assert_int_equal(mkdir(temp_path(SFTI_DATASET_INDEX), 0777), 0);
        temp_write(SFTI_DATASET_INDEX "/thesis.docx", "x", 1);
        temp_write(SFTI_DATASET_INDEX "/part-0.parquet", "x", 1);
        assert_int_equal(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_OK);
        ds_end(c);
        named_are(false, NAMED - 2 + 1);
        assert_true(ds_exists(SFTI_DATASET_INDEX "/thesis.docx"));
        assert_false(ds_exists(SFTI_DATASET_INDEX "/part-0.parquet"));
        assert_int_equal(unlink(temp_path(SFTI_DATASET_INDEX "/thesis.docx")), 0);
        assert_int_equal(rmdir(temp_path(SFTI_DATASET_INDEX)), 0);
    }
    sft_dataset_options_free(o);
}

/* A segment's name is its digest, which anybody can compute. */
static void segments(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    char digest[65], name[SFTI_SEGMENT_FILE_NAME], text[1024];
    (void)state;
    sft_span bytes = { text_of_others, sizeof text_of_others };
    const sft_allocator alloc = sfti_allocator(NULL);
    assert_int_equal(sfti_ds_digest(bytes, &alloc, digest, &err), SFT_OK);
    sfti_ds_addressed_name(SFTI_SEGMENT_FILE, digest, name);
    temp_write(name, text_of_others, sizeof text_of_others);
    int len = snprintf(text, sizeof text,
                       "{\"format_version\":\"2.0\",\"safetensors_version\":\"1.0\","
                       "\"generator\":\"libsafetensors 0.2.0\","
                       "\"commit\":\"550e8400-e29b-41d4-a716-446655440001\",\"version\":1,"
                       "\"total_samples\":1,\"total_bytes\":12,\"total_shards\":1,\"total_rows\":1,"
                       "\"total_padding\":0,\"total_tensors\":1,\"total_shadowed\":0,"
                       "\"largest_shard\":1,\"next_file\":1,\"segments\":[{\"sha256\":\"%s\","
                       "\"bytes\":12,\"shards\":1}]}",
                       digest);
    temp_write(SFTI_DATASET_MANIFEST, text, (size_t)len);
    ds_end(ds_begin(o, SFT_COMMIT_OVERWRITE));
    assert_true(ds_exists(name));
    assert_int_equal(ds_warn_count, 1);
    sft_dataset_options_free(o);
}

static void compact_on(const sft_storage *s) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    how.drop_old = true;
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&out);
    how.target_bytes = UINT64_MAX;
    how.warn = ds_warn;
    if (sft_dataset_compact_json(s, &how, "d", &sink, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    sft_buffer_free(&out);
}

static void compactions(void **state) {
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        sft_storage s = ds_storage;
        if (flat) use_object_store(&s);
        ds_warn_count = 0;
        ds_warned[0] = '\0';
        size_t rows = write_named(true, "write", "4", false);
        compact_on(&s);
        named_are(true, rows - 2);
        sft_dataset *d = ds_open();
        assert_int_equal(sft_dataset_samples(d), rows);
        sft_dataset_close(d);
    }
}

/* A batch is padded only up to rows that its files have. */
static void padding(void **state) {
    (void)state;
    write_named(true, "pad", "268435456", false);
    compact_on(&ds_storage);
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_shard_count(d), 1);
    const sft_dataset_shard *shard = sft_dataset_shard_at(d, 0);
    assert_int_equal(shard->samples, shard->valid_samples);
    assert_true(shard->bytes < 4096);
    sft_dataset_close(d);
}

/* A manifest's count of tensors sizes no memory before the file has as many. */
static void tensor_counts(void **state) {
    sft_dataset_replaced *found = NULL;
    char text[1 << 13] = { 0 };
    struct rlimit before, less = { 0 };
    (void)state;
    write_named(true, "write", "4", false);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, text, sizeof text - 1) > 0);
    static const char told[] = "\"tensors\":1,\"first_sample\":0}";
    static const char more[] = "\"tensors\":900000000,\"shadowed\":1}";
    char *at = strstr(text, told);
    assert_non_null(at);
    memmove(at + sizeof more - 1, at + sizeof told - 1, strlen(at + sizeof told - 1) + 1);
    memcpy(at, more, sizeof more - 1);
    at = strstr(text, "\"total_samples\":");
    assert_non_null(at);
    at[sizeof "\"total_samples\":" - 1]--;
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
    sft_dataset *d = NULL;
    assert_int_equal(sft_dataset_open(&ds_storage, NULL, NULL, NULL, &d, &err), SFT_OK);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    less.rlim_cur = 1 << 30;
    less.rlim_max = before.rlim_max;
#ifndef SANITIZED
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
#endif
    sft_code code = sft_dataset_find_replaced(d, NULL, &found, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(code, SFT_DATASET_SHARD);
    assert_non_null(strstr(err.message, "expected 900000000 by the manifest, found 1"));
    sft_dataset_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(overwrites), FOLDER_TEST(segments), FOLDER_TEST(compactions),
        FOLDER_TEST(padding),    FOLDER_TEST(tensor_counts),
    };
    return cmocka_run_group_tests_name("hostile manifests", tests, NULL, NULL);
}
