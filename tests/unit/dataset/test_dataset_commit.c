/* Commits: new, append, overwrite, concurrent ones; duplicates; aborts. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"

#include "dataset/commit/commit.h"
#include "unit/storage_table.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/wait.h>

static sft_error err;

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)

/* ── What was published ── */

static void text_has(const char *part, bool there) {
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, text, (1 << 20) - 1) > 0);
    if ((strstr(text, part) != NULL) != there)
        fail_msg("%s %s\nin %s", there ? "expected" : "unexpected", part, text);
    free(text);
}

/* The tensor "name" is in the dataset, in the shard that wins, with these bytes. */
static void key_is(const sft_dataset *d, const char *key, char fill) {
    const sft_tensor *found = NULL;
    sft_file *file = NULL;
    char bytes[8] = { 0 };
    for (size_t i = sft_dataset_shard_count(d); i-- > 0 && !found;) {
        assert_int_equal(sft_dataset_shard_open(d, i, NULL, &file, &err), SFT_OK);
        found = sft_file_find_cstr(file, key);
        if (!found) sft_close(file);
    }
    if (!found) fail_msg("%s is not there", key);
    sft_source source = sft_file_source(file);
    size_t got = 0;
    assert_int_equal(sft_source_read(&source, found->offset, bytes, 8, &got, &err), SFT_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(bytes[i], fill);
    sft_close(file);
}

static void dataset_is(uint64_t version, size_t shards, uint64_t samples) {
    char version_text[64];
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_shard_count(d), shards);
    assert_int_equal(sft_dataset_samples(d), samples);
    (void)snprintf(version_text, sizeof version_text, "\"version\":%" PRIu64 ",", version);
    text_has(version_text, true);
    for (size_t i = 0; i < shards; i++) {
        sft_file *file;
        if (sft_dataset_shard_open(d, i, NULL, &file, &err)) fail_msg("%s", err.message);
        sft_close(file);
    }
    sft_dataset_close(d);
    assert_int_equal(ds_count("part-"), shards);
    assert_int_equal(ds_count("_job-"), 0);
}

static sft_code prepare(sft_commit *c) { return sft_commit_prepare(c, NULL, &err); }

static sft_code publish(sft_commit *c, const char *index) {
    return sft_commit_publish(c, index, ds_warn, NULL, NULL, &err);
}

/* A KV dataset of these names, one shard each part; '|' separates parts. */
static void make_kv(const sft_dataset_options *o, sft_commit_mode how, const char *parts,
                    char fill) {
    sft_commit *c = ds_begin(o, how);
    char one[400];
    uint64_t partition = 0;
    for (const char *at = parts; at && *at;) {
        const char *bar = strchr(at, '|');
        (void)snprintf(one, sizeof one, "%.*s", (int)(bar ? bar - at : (long)strlen(at)), at);
        ds_kv_on(c, &ds_storage, partition++, 0, one, fill);
        at = bar ? bar + 1 : NULL;
    }
    ds_end(c);
}

/* ── New ── */

static void a_new_one(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", "tail_strategy=pad", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    (void)state;
    /* Tasks end in any order. */
    ds_batch(c, 1, 0, 4, 3);
    ds_batch(c, 0, 1, 2, 2);
    ds_batch(c, 0, 0, 4, 4);
    assert_int_equal(ds_count("part-"), 0);
    assert_int_equal(ds_count("_job-"), 1);
    assert_int_equal(prepare(c), SFT_OK);
    assert_false(sft_commit_indexed(c));
    assert_int_equal(ds_count("part-"), 0);
    assert_false(ds_exists(SFTI_DATASET_MANIFEST));
    assert_true(sft_commit_manifest(c).len > 0);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    dataset_is(1, 3, 10);
    assert_int_equal(ds_warn_count, 0);
    sft_dataset *d = ds_open();
    static const uint64_t firsts[] = { 0, 4, 6 }, samples[] = { 4, 2, 4 }, valid[] = { 4, 2, 3 };
    for (size_t i = 0; i < 3; i++) {
        const sft_dataset_shard *s = sft_dataset_shard_at(d, i);
        assert_int_equal(s->first_sample, firsts[i]);
        assert_int_equal(s->samples, samples[i]);
        assert_int_equal(s->valid_samples, valid[i]);
        assert_int_equal(s->tensors, 1);
        assert_int_equal(strlen(s->sha256), 64);
    }
    assert_int_equal(strncmp(sft_dataset_shard_at(d, 1)->name, "part-00000-0001-", 16), 0);
    assert_null(sft_dataset_shard_at(d, 3));
    assert_int_equal(sft_dataset_get_mode(d), SFT_DATASET_BATCH);
    sft_dataset_close(d);
    text_has("\"mode\":\"batch\"", true);
    text_has("\"batch_size\":4", true);
    text_has("\"tail_strategy\":\"pad\"", true);
    text_has("\"index\":null", true);
    text_has("\"total_samples\":10,\"total_valid_samples\":9,", true);
    text_has("\"columns\":{\"x\":{\"dtype\":\"F32\",\"shape\":[3]}}", true);
    text_has("\"schema\":{\"x\":{\"dtype\":\"F32\",\"shape\":[4,3]}}", true);
    text_has("\"generator\":\"libsafetensors " SFT_VERSION_STRING "\"", true);
    sft_dataset_options_free(o);
}

static void an_empty_one(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    ds_end(ds_begin(o, SFT_COMMIT_NEW));
    dataset_is(1, 0, 0);
    text_has("\"shards\":[]", true);
    text_has("\"schema\":{}", true);
    ds_end(ds_begin(o, SFT_COMMIT_APPEND));
    dataset_is(2, 0, 0);
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    dataset_is(3, 1, 4);
    sft_dataset_options_free(o);
}

static void there_already(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c;
    (void)state;
    ds_end(ds_begin(o, SFT_COMMIT_NEW));
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_EXISTS);
    assert_string_equal(err.message,
                        "expected a folder without a dataset, found dataset_manifest.json");
    assert_null(c);
    /* Shards without a manifest are not overwritten silently. */
    assert_int_equal(unlink(temp_path(SFTI_DATASET_MANIFEST)), 0);
    temp_write("part-00000-0000-01234567-89ab-4def-8123-456789abcdef.safetensors", "x", 1);
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_EXISTS);
    how.mode = SFT_COMMIT_APPEND;
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err),
                     SFT_MANIFEST_MISSING);
    how.mode = SFT_COMMIT_OVERWRITE;
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_OK);
    sft_commit_close(c);
    how.size--;
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_BAD_ARGUMENT);
    sft_dataset_options_free(o);
}

/* Two begin; the second finds a dataset when it prepares. */
static void two_new_ones(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    sft_commit *a = ds_begin(o, SFT_COMMIT_NEW), *b = ds_begin(o, SFT_COMMIT_NEW);
    ds_batch(a, 0, 0, 4, 4);
    ds_batch(b, 0, 0, 2, 2);
    ds_end(a);
    assert_int_equal(prepare(b), SFT_EXISTS);
    assert_int_equal(sft_commit_abort(b, &err), SFT_OK);
    sft_commit_close(b);
    dataset_is(1, 1, 4);
    sft_dataset_options_free(o);
}

/* ── Append ── */

static void append(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_dataset_options *other = ds_options("batch_size=9", "tail_strategy=drop", NULL);
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 4, 4);
    ds_batch(c, 7, 0, 4, 4);
    ds_end(c);
    dataset_is(1, 2, 8);
    c = ds_begin(other, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 9, 9);
    ds_end(c);
    dataset_is(2, 3, 17);
    sft_dataset *d = ds_open();
    const sft_dataset_shard *last = sft_dataset_shard_at(d, 2);
    assert_int_equal(strncmp(last->name, "part-00008-0000-", 16), 0);
    assert_int_equal(last->first_sample, 8);
    sft_dataset_close(d);
    text_has("\"batch_size\":9", true);
    text_has("\"shape\":[9,3]", true);
    sft_dataset_options_free(other);
    sft_dataset_options_free(o);
}

static void begin_disagrees(const sft_dataset_options *o, const char *message) {
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c;
    how.mode = SFT_COMMIT_APPEND;
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err),
                     SFT_DATASET_DISAGREES);
    assert_string_equal(err.message, message);
}

static void append_otherwise(void **state) {
    sft_dataset_options *batch = ds_options("batch_size=4", NULL);
    sft_dataset_options *kv = ds_options("name_col=id", NULL);
    sft_dataset_options *name = ds_options("name_col=key", NULL);
    sft_dataset_options *separator = ds_options("name_col=id", "kv_separator=/", NULL);
    (void)state;
    make_kv(kv, SFT_COMMIT_NEW, "a", 1);
    begin_disagrees(batch, "the mode: expected kv as in the dataset, found batch");
    begin_disagrees(name, "name_col: expected id as in the dataset, found key");
    begin_disagrees(separator, "kv_separator: expected __ as in the dataset, found /");
    sft_dataset_options_free(batch);
    sft_dataset_options_free(kv);
    sft_dataset_options_free(name);
    sft_dataset_options_free(separator);
}

/* Columns of the receipts are compared, too. */
static void disagreeing_receipts(void **state) {
    static const uint64_t three[] = { 3 }, four[] = { 4 };
    static const struct {
        sfti_ds_column column;
        const char *message;
    } rows[] = {
        { { .name = { "x", 1 }, .has_dtype = true, .dtype = SFT_F16, .has_shape = true, .rank = 1,
            .shape = three }, "column x: expected F32 as in the dataset, found F16" },
        { { .name = { "x", 1 }, .has_dtype = true, .dtype = SFT_F32, .has_shape = true, .rank = 1,
            .shape = four },
          "column x: expected samples of shape [3] as in the dataset, found [4]" },
        { { .name = { "x", 1 }, .has_dtype = true, .dtype = SFT_F32, .has_shape = true },
          "column x: expected samples of shape [3] as in the dataset, found []" },
        { { .name = { "y", 1 }, .has_dtype = true, .dtype = SFT_F32 },
          "expected only columns of the dataset, found y" },
    };
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    (void)state;
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
        ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 1 };
        c = ds_begin(o, SFT_COMMIT_APPEND);
        ds_task(c, &ds_storage, 0, 0, &tensor, 1, 4, 4, false, &rows[i].column, 1, &receipts);
        assert_int_equal(sft_commit_add(c, (sft_span){ receipts.data, receipts.len }, &err),
                         SFT_OK);
        assert_int_equal(prepare(c), SFT_DATASET_DISAGREES);
        assert_string_equal(err.message, rows[i].message);
        assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        sft_commit_close(c);
        sft_buffer_free(&receipts);
    }
    dataset_is(1, 1, 4);
    sft_dataset_options_free(o);
}

/* The columns omit what varies from shard to shard. */
static void varying(void **state) {
    static const uint64_t three[] = { 3 }, four[] = { 4 };
    sfti_ds_column column = { .name = { "x", 1 }, .has_dtype = true, .dtype = SFT_F32,
                              .has_shape = true, .rank = 1, .shape = three };
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        ds_tensor tensor = { "x", i ? SFT_F16 : SFT_F32, 2, { 4, 3 + i }, 1 };
        if (i) column.dtype = SFT_F16, column.shape = four;
        ds_task(c, &ds_storage, i, 0, &tensor, 1, 4, 4, false, &column, 1, &receipts);
        assert_int_equal(sft_commit_add(c, (sft_span){ receipts.data, receipts.len }, &err),
                         SFT_OK);
    }
    sft_buffer_free(&receipts);
    ds_end(c);
    text_has("\"columns\":{\"x\":{\"dtype\":null,\"shape\":null}}", true);
    text_has("\"schema\":{}", true);
    sft_dataset_options_free(o);
}

/* Both began before either was published: the second is added to the first. */
static void rebase(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a,b", 1);
    sft_commit *x = ds_begin(o, SFT_COMMIT_APPEND), *y = ds_begin(o, SFT_COMMIT_APPEND),
               *z = ds_begin(o, SFT_COMMIT_APPEND);
    ds_kv(x, 0, 0, "c");
    ds_kv(x, 1, 0, "d");
    ds_kv(y, 0, 0, "e");
    ds_kv(z, 0, 0, "d");
    ds_end(x);
    ds_end(y);
    sft_dataset *d = ds_open();
    for (size_t i = 0; i < 4; i++) {
        char prefix[32];
        (void)snprintf(prefix, sizeof prefix, "part-%05zu-0000-", i);
        assert_int_equal(strncmp(sft_dataset_shard_at(d, i)->name, prefix, 16), 0);
    }
    key_is(d, "e__v", 1);
    sft_dataset_close(d);
    /* And duplicates are looked for again. */
    assert_int_equal(prepare(z), SFT_DATASET_DUPLICATE);
    assert_int_equal(sft_commit_abort(z, &err), SFT_OK);
    sft_commit_close(z);
    dataset_is(3, 4, 5);
    sft_dataset_options_free(o);
}

/* ── Overwrite ── */

static void overwrite(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_dataset_options *kv = ds_options("name_col=id", NULL);
    (void)state;
    temp_write("mine.safetensors", "mine", 4);
    temp_write("part-00000.safetensors", "mine too", 8);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_batch(c, 1, 0, 4, 4);
    ds_end(c);
    temp_write(SFTI_DATASET_INDEX, "old", 3);
    c = ds_begin(kv, SFT_COMMIT_OVERWRITE);
    ds_kv(c, 0, 0, "a");
    assert_int_equal(prepare(c), SFT_OK);
    assert_true(ds_exists(SFTI_DATASET_INDEX));
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    assert_false(ds_exists(SFTI_DATASET_INDEX));
    assert_true(ds_exists("mine.safetensors"));
    assert_int_equal(unlink(temp_path("part-00000.safetensors")), 0);
    dataset_is(2, 1, 1);
    assert_int_equal(ds_warn_count, 0);
    sft_dataset_options_free(o);
    sft_dataset_options_free(kv);
}

static void overwrite_broken(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    temp_write(SFTI_DATASET_MANIFEST, "{", 1);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE), *d = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    dataset_is(1, 1, 4);
    assert_int_equal(prepare(d), SFT_DATASET_CHANGED);
    sft_commit_close(d);
    sft_dataset_options_free(o);
}

static void overwrite_changed(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE), *late = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_batch(late, 0, 0, 2, 2);
    ds_end(c);
    assert_int_equal(prepare(late), SFT_DATASET_CHANGED);
    assert_string_equal(err.message,
                        "expected the dataset as it was at the start (version 0), found version "
                        "1: another job has committed since");
    assert_int_equal(sft_commit_abort(late, &err), SFT_OK);
    sft_commit_close(late);
    dataset_is(1, 1, 4);
    /* A connector's has no version: its text is compared. */
    static const char text[] = "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
                               "\"total_samples\":%d,\"total_bytes\":0,\"shards\":[]}";
    char buffer[200];
    (void)snprintf(buffer, sizeof buffer, text, 0);
    temp_write(SFTI_DATASET_MANIFEST, buffer, strlen(buffer));
    c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    (void)snprintf(buffer, sizeof buffer, text, 1);
    temp_write(SFTI_DATASET_MANIFEST, buffer, strlen(buffer));
    assert_int_equal(prepare(c), SFT_DATASET_CHANGED);
    sft_commit_close(c);
    sft_dataset_options_free(o);
}

static void keep_old(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", "keep_old=1000", NULL);
    sft_dataset_options *plain = ds_options("batch_size=4", NULL);
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_ds_manifest m;
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    text_has("keep_until", false);
    sft_dataset *reader = ds_open();
    c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 2, 2);
    ds_end(c);
    assert_int_equal(ds_count("part-"), 2);
    sft_file *file;
    assert_int_equal(sft_dataset_shard_open(reader, 0, NULL, &file, &err), SFT_OK);
    sft_close(file);
    sft_dataset_close(reader);
    /* An append keeps keep_until. */
    c = ds_begin(plain, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 2, 2);
    ds_end(c);
    assert_int_equal(sfti_ds_manifest_read(&ds_storage, &arena, &m, &err), SFT_OK);
    uint64_t now = (uint64_t)time(NULL);
    assert_true(m.keep_until > now + 900 && m.keep_until <= now + 1000);
    assert_int_equal(m.shard_count, 2);
    sfti_arena_free(&arena);
    sft_dataset_options_free(o);
    sft_dataset_options_free(plain);
}

/* A reader with the old manifest gets an error that says so. */
static void overwritten_while_reading(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    sft_dataset *reader = ds_open();
    c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    sft_file *file;
    assert_int_equal(sft_dataset_shard_open(reader, 0, NULL, &file, &err), SFT_DATASET_CHANGED);
    assert_non_null(strstr(err.message, "replaced (version 1 to 2) while reading"));
    assert_int_equal(sft_dataset_shard_open(reader, 1, NULL, &file, &err), SFT_BAD_ARGUMENT);
    sft_dataset_close(reader);
    reader = ds_open();
    assert_int_equal(unlink(temp_path(sft_dataset_shard_at(reader, 0)->name)), 0);
    assert_int_equal(sft_dataset_shard_open(reader, 0, NULL, &file, &err), SFT_DATASET_SHARD);
    assert_non_null(strstr(err.message, "expected the shard that the manifest names, found none"));
    temp_write(sft_dataset_shard_at(reader, 0)->name, "x", 1);
    assert_int_equal(sft_dataset_shard_open(reader, 0, NULL, &file, &err), SFT_DATASET_SHARD);
    assert_non_null(strstr(err.message, "bytes by the manifest, found 1"));
    sft_dataset_close(reader);
    sft_dataset_options_free(o);
}

/* ── Duplicates ── */

static void duplicates_fail(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv(c, 0, 0, "a,b");
    ds_kv(c, 0, 1, "c");
    ds_kv(c, 3, 0, "d,b");
    assert_int_equal(prepare(c), SFT_DATASET_DUPLICATE);
    assert_non_null(strstr(err.message, "expected every key once, found b__v in part-00000-0000-"));
    assert_non_null(strstr(err.message, " and in part-00003-0000-"));
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    assert_int_equal(ds_count("part-"), 0);
    assert_int_equal(ds_count("_job-"), 0);
    /* Across commits. */
    make_kv(o, SFT_COMMIT_NEW, "a|b", 1);
    c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_kv(c, 0, 0, "b");
    assert_int_equal(prepare(c), SFT_DATASET_DUPLICATE);
    sft_commit_close(c);
    sft_dataset_options_free(o);
}

static void last_wins(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "duplicatesStrategy=lastWin", NULL);
    sft_dataset_options *fails = ds_options("name_col=id", NULL);
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv_on(c, &ds_storage, 2, 0, "a,x", 2); /* the highest partition wins */
    ds_kv_on(c, &ds_storage, 0, 0, "a,b", 1);
    assert_int_equal(prepare(c), SFT_OK);
    assert_true(sft_commit_indexed(c));
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    dataset_is(1, 2, 3);
    c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_kv_on(c, &ds_storage, 0, 0, "b,c", 3); /* the latest version, too */
    ds_end(c);
    dataset_is(2, 3, 4);
    sft_dataset *d = ds_open();
    static const uint64_t shadowed[] = { 2, 0, 0 };
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(sft_dataset_shard_at(d, i)->shadowed, shadowed[i]);
    key_is(d, "a__v", 2);
    key_is(d, "b__v", 3);
    key_is(d, "x__v", 2);
    sft_dataset_close(d);
    text_has("\"schema\":{\"a__v\":{\"dtype\":\"F32\",\"shape\":[2]},\"b__v\"", true);
    /* Duplicates accepted by an earlier commit do not fail a strict one. */
    make_kv(fails, SFT_COMMIT_APPEND, "d", 4);
    dataset_is(3, 4, 5);
    c = ds_begin(fails, SFT_COMMIT_APPEND);
    ds_kv(c, 0, 0, "a");
    assert_int_equal(prepare(c), SFT_DATASET_DUPLICATE);
    sft_commit_close(c);
    sft_dataset_options_free(o);
    sft_dataset_options_free(fails);
}

/* ── Receipts ── */

static void twice_and_two_attempts(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sfti_ds_column column = { .name = { "v", 1 } };
    ds_tensor tensor = { "a__v", SFT_F32, 1, { 2 }, 1 };
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_task(c, &ds_storage, 0, 0, &tensor, 1, 1, 1, true, &column, 1, &receipts);
    sft_span text = { receipts.data, receipts.len };
    assert_int_equal(sft_commit_add(c, text, &err), SFT_OK);
    assert_int_equal(sft_commit_add(c, text, &err), SFT_OK);
    ds_end(c);
    dataset_is(1, 1, 1);
    c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    assert_int_equal(sft_commit_add(c, text, &err), SFT_DATASET_RECEIPT); /* another job's */
    ds_kv(c, 0, 0, "a");
    ds_kv(c, 0, 0, "b");
    assert_int_equal(prepare(c), SFT_DATASET_RECEIPT);
    assert_non_null(strstr(err.message, "expected one attempt of partition 0, found part-00000"));
    sft_commit_close(c);
    sft_buffer_free(&receipts);
    sft_dataset_options_free(o);
}

static void missing_shards(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    char path[200], message[400];
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    for (uint64_t i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%d", (int)i);
        ds_kv(c, i, 0, name);
    }
    (void)snprintf(path, sizeof path, "%s", c->receipts[1].stored.data);
    assert_int_equal(unlink(temp_path(path)), 0);
    assert_int_equal(truncate(temp_path(c->receipts[3].stored.data), 20), 0);
    assert_int_equal(prepare(c), SFT_DATASET_SHARD);
    (void)snprintf(message, sizeof message,
                   "2 of 4 shards are missing or not as they were written, first %s: is the folder "
                   "shared between hosts?", path);
    assert_string_equal(err.message, message);
    /* They may become visible later. */
    sft_commit_close(c);
    c = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv(c, 0, 0, "a");
    char renamed[600], whole[600];
    (void)snprintf(whole, sizeof whole, "%s", temp_path(c->receipts[0].stored.data));
    (void)snprintf(renamed, sizeof renamed, "%s", temp_path("renamed"));
    assert_int_equal(rename(whole, renamed), 0);
    assert_int_equal(prepare(c), SFT_DATASET_SHARD);
    assert_int_equal(rename(renamed, whole), 0);
    ds_end(c);
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_samples(d), 1);
    sft_dataset_close(d);
    sft_dataset_options_free(o);
}

static void out_of_order(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    struct ArrowArrayStream stream;
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    assert_int_equal(publish(c, NULL), SFT_OUT_OF_ORDER);
    assert_int_equal(sft_commit_index(c, &stream, &err), SFT_OUT_OF_ORDER);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(prepare(c), SFT_OUT_OF_ORDER);
    assert_int_equal(sft_commit_add(c, sft_span_cstr("[]"), &err), SFT_OUT_OF_ORDER);
    assert_int_equal(publish(c, NULL), SFT_OK);
    assert_int_equal(publish(c, NULL), SFT_OUT_OF_ORDER);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    assert_true(ds_exists(SFTI_DATASET_MANIFEST));
    sft_commit_close(c);
    sft_commit_close(NULL);
    sft_dataset_options_free(o);
}

/* A job that another process continues. */
static void carried(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    char job[80];
    sft_commit *c;
    (void)state;
    sft_commit *first = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv(first, 0, 0, "a");
    (void)snprintf(job, sizeof job, "%s", sft_commit_job(first).data);
    how.job = sft_span_cstr(job);
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_OK);
    assert_string_equal(sft_commit_job(c).data, job);
    assert_string_equal(sft_commit_job_folder(c), sft_commit_job_folder(first));
    ds_kv(c, 1, 0, "b");
    ds_end(c);
    sft_commit_close(first);
    dataset_is(1, 1, 1);
    text_has("\"commit\":\"", true);
    how.job = sft_span_cstr("none");
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_BAD_ARGUMENT);
    sft_dataset_options_free(o);
}

/* ── Giving up ── */

static void aborted(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a", 1);
    for (int prepared = 0; prepared < 2; prepared++) {
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        ds_kv(c, 0, 0, "b");
        if (prepared) assert_int_equal(prepare(c), SFT_OK);
        assert_int_equal(ds_count("_job-"), 1);
        assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        sft_commit_close(c);
        dataset_is(1, 1, 1);
    }
    sft_dataset_options_free(o);
}

static size_t ticks_left;

static bool tick_down(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return ticks_left-- > 0;
}

/* Cancelled at every tick, with some shards moved and some not: the old dataset stays. */
static void stopped(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    sft_job job = SFT_JOB_INIT;
    bool done = false;
    (void)state;
    job.tick = tick_down;
    make_kv(o, SFT_COMMIT_NEW, "a", 1);
    for (size_t most = 0; !done; most++) {
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        for (uint64_t i = 0; i < 3; i++) ds_kv(c, i, 0, i == 0 ? "b" : i == 1 ? "c" : "d");
        ticks_left = most;
        sft_code code = sft_commit_prepare(c, &job, &err);
        if (code == SFT_OK) code = sft_commit_publish(c, NULL, ds_warn, NULL, &job, &err);
        done = code == SFT_OK;
        if (!done) {
            assert_int_equal(code, SFT_CANCELLED);
            assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
            dataset_is(1, 1, 1);
        }
        sft_commit_close(c);
        assert_true(most < 20);
    }
    dataset_is(2, 3, 3);
    sft_dataset_options_free(o);
}

/* ── A storage that fails at one function ── */

static struct {
    const char *call;
    size_t nth;
    bool after; /* it is done nevertheless */
    bool broken; /* and nothing can be read afterwards */
    bool killed; /* the process is */
} failing;

static bool fails_now(const char *call) {
    if (!failing.call || strcmp(failing.call, call) != 0) return false;
    if (failing.nth == 0 || --failing.nth) return false;
    if (failing.killed) _exit(0);
    return true;
}

static sft_code it_failed(sft_error *e) {
    if (failing.after && failing.broken) failing.call = "open", failing.nth = 0;
    if (e) *e = (sft_error)SFT_ERROR_INIT;
    return sft_error_set(e, SFT_IO_WRITE, 0, "it failed");
}

static sft_code put_finish(void *ctx, sft_error *e) {
    sft_sink *inner = ctx;
    sft_sink sink = *inner;
    free(inner);
    if (!fails_now("put")) return sft_sink_finish(&sink, e);
    if (failing.after) (void)!sft_sink_finish(&sink, e);
    else sft_sink_abandon(&sink);
    return it_failed(e);
}

static sft_code put_write(void *ctx, uint64_t at, const void *bytes, size_t len, sft_error *e) {
    sft_sink *inner = ctx;
    return sft_sink_write(inner, at, bytes, len, e);
}

static void put_abandon(void *ctx) {
    sft_sink *inner = ctx;
    sft_sink_abandon(inner);
    free(inner);
}

static const sft_sink_vtable write_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, put_write, put_finish, put_abandon, NULL
};

static sft_code failing_create(void *ctx, const char *name, bool replace, sft_sink *out,
                               sft_error *e) {
    sft_code code = ds_storage.vtable->create(ctx, name, replace, out, e);
    if (code || strcmp(name, SFTI_DATASET_MANIFEST) != 0) return code;
    sft_sink *inner = malloc(sizeof *inner);
    assert_non_null(inner);
    *inner = *out;
    *out = (sft_sink){ inner, &write_sink_vtable, out->seekable };
    return SFT_OK;
}

static sft_code failing_open(void *ctx, const char *name, sft_source *out, sft_error *e) {
    if (failing.broken && failing.call && strcmp(failing.call, "open") == 0) {
        if (e) *e = (sft_error)SFT_ERROR_INIT;
        return sft_error_set(e, SFT_IO_READ, 0, "it failed");
    }
    return ds_storage.vtable->open(ctx, name, out, e);
}

static sft_code failing_move(void *ctx, const char *from, const char *to, sft_error *e) {
    return fails_now("move") ? it_failed(e) : ds_storage.vtable->move(ctx, from, to, e);
}

static sft_code failing_settle(void *ctx, const char *folder, sft_error *e) {
    return fails_now("settle") ? it_failed(e) : ds_storage.vtable->sync_folder(ctx, folder, e);
}

static sft_code failing_remove(void *ctx, const char *name, bool folder, sft_error *e) {
    return fails_now("remove") ? it_failed(e) : ds_storage.vtable->remove(ctx, name, folder, e);
}

static sft_storage failing_storage(void) {
    sft_storage s = ds_storage;
    memset(&failing, 0, sizeof failing);
    storage_own(&s)->create = failing_create;
    storage_own(&s)->open = failing_open;
    storage_own(&s)->move = failing_move;
    storage_own(&s)->sync_folder = failing_settle;
    storage_own(&s)->remove = failing_remove;
    return s;
}

static sft_commit *begin_on(const sft_dataset_options *o, const sft_storage *storage,
                            sft_commit_mode how) {
    sft_commit_options options = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c;
    options.mode = how;
    if (sft_commit_open(o, storage, NULL, &options, &c, &err)) fail_msg("%s", err.message);
    return c;
}

/* Before the manifest each failure leaves the old dataset, index and all. */
static void fails_before(void **state) {
    static const struct {
        const char *call;
        size_t nth;
    } rows[] = { { "move", 1 }, { "move", 2 }, { "settle", 1 }, { "put", 1 }, { "move", 3 },
                 { "move", 4 } }; /* the last two: a folder and the index in its place */
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    sft_storage s = failing_storage();
    (void)state;
    for (int folder = 0; folder < 2; folder++)
        for (size_t i = 0; i < (folder ? sizeof rows / sizeof *rows : 4); i++) {
            char index[200], text[16] = { 0 };
            make_kv(o, SFT_COMMIT_OVERWRITE, "a", 1);
            if (folder) {
                assert_int_equal(mkdir(temp_path(SFTI_DATASET_INDEX), 0777), 0);
                temp_write(SFTI_DATASET_INDEX "/part-0.parquet", "old", 3);
            } else {
                temp_write(SFTI_DATASET_INDEX, "old", 3);
            }
            sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
            ds_kv(c, 0, 0, "b");
            ds_kv(c, 1, 0, "c");
            assert_int_equal(prepare(c), SFT_OK);
            (void)snprintf(index, sizeof index, "%s/index", sft_commit_job_folder(c));
            temp_write(index, "new", 3);
            failing.call = rows[i].call;
            failing.nth = rows[i].nth;
            failing.after = false;
            assert_int_equal(publish(c, "index"), SFT_IO_WRITE);
            assert_string_equal(err.message, "it failed");
            failing.call = NULL;
            assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
            sft_commit_close(c);
            assert_true(temp_read(folder ? SFTI_DATASET_INDEX "/part-0.parquet"
                                         : SFTI_DATASET_INDEX,
                                  text, 15) == 3);
            assert_string_equal(text, "old");
            sft_dataset *d = ds_open();
            key_is(d, "a__v", 1);
            sft_dataset_close(d);
            assert_int_equal(ds_count("part-"), 1);
            assert_int_equal(ds_count("_job-"), 0);
        }
    sft_dataset_options_free(o);
}

/* A kill before the commit point leaves the old index; after it the index of another commit, which
 * readers ignore, is replaced, or stays with a warning. */
static void index_behind(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    sft_storage s = failing_storage();
    char index[200], text[16] = { 0 };
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a", 1);
    temp_write(SFTI_DATASET_INDEX, "old", 3);
    for (int way = 0; way < 3; way++) {
        sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
        ds_kv(c, 0, 0, "b");
        assert_int_equal(prepare(c), SFT_OK);
        (void)snprintf(index, sizeof index, "%s/index", sft_commit_job_folder(c));
        temp_write(index, "new", 3);
        failing.call = way == 0 ? "put" : way == 1 ? "move" : NULL;
        failing.nth = way == 0 ? 1 : 2;
        failing.killed = way == 0;
        ds_warn_count = 0;
        pid_t child = way == 0 ? fork() : -1;
        if (child == 0) _exit(publish(c, "index") == SFT_OK ? 2 : 1);
        int status = -1;
        if (way == 0) assert_int_equal(waitpid(child, &status, 0), child);
        else assert_int_equal(publish(c, "index"), SFT_OK);
        assert_true(way != 0 || status == 0);
        failing.call = NULL;
        assert_int_equal(ds_warn_count, way == 1);
        if (way == 0) assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        sft_commit_close(c);
        assert_int_equal(temp_read(SFTI_DATASET_INDEX, text, 15), 3);
        assert_string_equal(text, way == 2 ? "new" : "old");
        sft_dataset *d = ds_open();
        key_is(d, way == 0 ? "a__v" : "b__v", 1);
        sft_dataset_close(d);
    }
    sft_dataset_options_free(o);
}

/* Where there was no index a failed commit leaves none. */
static void no_orphan_index(void **state) {
    static const char *const calls[] = { "settle", "put" };
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    sft_storage s = failing_storage();
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char index[200];
        sft_commit *c = begin_on(o, &s, SFT_COMMIT_NEW);
        ds_kv(c, 0, 0, "a");
        assert_int_equal(prepare(c), SFT_OK);
        (void)snprintf(index, sizeof index, "%s/" SFTI_DATASET_INDEX, sft_commit_job_folder(c));
        temp_write(index, "new", 3);
        failing.call = calls[i];
        failing.nth = 1;
        assert_int_equal(publish(c, SFTI_DATASET_INDEX), SFT_IO_WRITE);
        failing.call = NULL;
        assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        sft_commit_close(c);
        assert_int_equal(ds_count("_"), 0);
        assert_int_equal(ds_count("part-"), 0);
    }
    sft_dataset_options_free(o);
}

/* After the commit point nothing fails: what could not be removed is a warning, and the data is
 * new. */
static void fails_after(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = failing_storage();
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a|b", 1);
    for (size_t nth = 1; nth <= 4; nth++) {
        sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
        ds_kv(c, 0, 0, "c");
        if (nth % 2) ds_kv(c, 1, 0, "d"); /* the next commit replaces two again, or one */
        assert_int_equal(prepare(c), SFT_OK);
        ds_warn_count = 0;
        if (nth == 1) temp_write(SFTI_DATASET_INDEX, "x", 1);
        failing.call = "remove";
        failing.nth = nth == 4 ? 3 : nth; /* index, shards, the job's folder */
        assert_int_equal(publish(c, NULL), SFT_OK);
        failing.call = NULL;
        assert_int_equal(ds_warn_count, 1);
        assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        sft_commit_close(c);
        sft_dataset *d = ds_open();
        key_is(d, "c__v", 1);
        assert_int_equal(sft_dataset_shard_count(d), nth % 2 ? 2 : 1);
        sft_dataset_close(d);
    }
    sft_dataset_options_free(o);
}

/* The put reports a failure after it succeeded. */
static void unsure(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = failing_storage();
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a", 1);
    sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
    ds_kv_on(c, &ds_storage, 0, 0, "b", 2);
    assert_int_equal(prepare(c), SFT_OK);
    failing.call = "put";
    failing.nth = 1;
    failing.after = true;
    assert_int_equal(publish(c, NULL), SFT_OK);
    assert_int_equal(ds_warn_count, 1);
    sft_commit_close(c);
    sft_dataset *d = ds_open();
    key_is(d, "b__v", 2);
    sft_dataset_close(d);
    /* What it replaced stays for gc: the manifest may not be durable yet. */
    assert_int_equal(ds_count("part-"), 2);
    /* And when the state is unknown nothing is removed. */
    failing_storage();
    c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
    ds_kv_on(c, &ds_storage, 0, 0, "c", 3);
    assert_int_equal(prepare(c), SFT_OK);
    failing.call = "put";
    failing.nth = 1;
    failing.after = failing.broken = true;
    assert_int_equal(publish(c, NULL), SFT_IO_WRITE);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    failing_storage();
    d = ds_open();
    key_is(d, "c__v", 3);
    sft_dataset_close(d);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    d = ds_open();
    key_is(d, "c__v", 3);
    sft_dataset_close(d);
    sft_dataset_options_free(o);
}

/* ── Where nothing can be moved or locked ── */

static sft_storage bare_storage(void) {
    sft_storage s = ds_storage;
    storage_own(&s)->move = NULL;
    storage_own(&s)->sync_folder = NULL;
    storage_own(&s)->lock = NULL;
    storage_own(&s)->unlock = NULL;
    storage_own(&s)->move_new = NULL;
    return s;
}

/* Fails before anything is written, unless the caller guarantees a single writer. */
static void unguarded(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_dataset_options *single = ds_options("name_col=id", "single_writer=true", NULL);
    sft_storage s = bare_storage();
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c = NULL;
    (void)state;
    assert_int_equal(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_DATASET_UNGUARDED);
    assert_non_null(strstr(err.message, "expected a storage with locks or conditional writes"));
    assert_int_equal(err.hint, SFT_HINT_SINGLE_WRITER);
    assert_null(c);
    assert_int_equal(ds_count("part-"), 0);
    c = begin_on(single, &s, SFT_COMMIT_NEW);
    assert_string_equal(sft_commit_job_folder(c), "");
    ds_kv_on(c, &s, 0, 0, "a", 1);
    assert_int_equal(ds_count("part-"), 1);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    dataset_is(1, 1, 1);
    sft_buffer text = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&text);
    assert_int_equal(sft_dataset_compact_json(&s, NULL, "d", &sink, NULL, &err),
                     SFT_DATASET_UNGUARDED);
    s.single_writer = true;
    assert_int_equal(sft_dataset_compact_json(&s, NULL, "d", &sink, NULL, &err), SFT_OK);
    sft_sink_abandon(&sink);
    c = begin_on(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(c, &s, 0, 0, "b", 1);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    dataset_is(2, 2, 2);
    sft_dataset_options_free(single);
    sft_dataset_options_free(o);
}

/* ── Conditional puts ── */

static size_t put_count;
static sft_code put_fails;  /* and was done nevertheless */

static sft_code fetch_tagged(void *ctx, const char *name, uint64_t most, sft_buffer *bytes,
                             char tag[SFT_STORED_TAG], sft_error *e) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sft_span text;
    sft_storage *s = &ds_storage;
    (void)ctx;
    sft_code code = sfti_ds_read_all(s, name, most, &arena, &text, e);
    if (code == SFT_OK) {
        assert_true(sfti_buffer_put(bytes, text.data, text.len));
        const char *commit = strstr(text.data, "\"commit\":\"");
        assert_non_null(commit);
        (void)snprintf(tag, SFT_STORED_TAG, "%.36s", commit + 10);
    }
    sfti_arena_free(&arena);
    return code;
}

static sft_code put_tagged(void *ctx, const char *name, const char *tag, sft_span bytes,
                           sft_error *e) {
    sft_buffer now = { .alloc = sfti_allocator(NULL) };
    char is[SFT_STORED_TAG] = { 0 };
    sft_code code = fetch_tagged(ctx, name, UINT64_MAX, &now, is, e);
    sft_buffer_free(&now);
    assert_true(code == SFT_OK || code == SFT_NOT_FOUND);
    if (strcmp(is, tag) != 0) return sft_error_set(e, SFT_DATASET_CHANGED, 0, "another");
    put_count++;
    code = sfti_ds_put(&ds_storage, name, bytes, e);
    sft_code fails = put_fails;
    put_fails = SFT_OK;
    return code || !fails ? code : sft_error_set(e, fails, 0, "it failed");
}

/* Two appends: the one that loses is prepared again. An overwrite that loses is lost. */
static void conditional(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = bare_storage();
    (void)state;
    storage_own(&s)->fetch = fetch_tagged;
    storage_own(&s)->put_if = put_tagged;
    put_count = 0;
    sft_commit *x = begin_on(o, &s, SFT_COMMIT_APPEND), *y = begin_on(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(x, &s, 0, 0, "a", 1);
    ds_kv_on(y, &s, 0, 0, "b", 1);
    assert_int_equal(prepare(x), SFT_OK);
    assert_int_equal(prepare(y), SFT_OK);
    assert_int_equal(publish(x, NULL), SFT_OK);
    assert_int_equal(publish(y, NULL), SFT_DATASET_CHANGED);
    assert_int_equal(prepare(y), SFT_OK);
    assert_int_equal(publish(y, NULL), SFT_OK);
    sft_commit_close(x);
    sft_commit_close(y);
    assert_int_equal(put_count, 2);
    dataset_is(2, 2, 2);
    x = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
    y = begin_on(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(x, &s, 0, 0, "c", 1);
    ds_kv_on(y, &s, 0, 0, "d", 1);
    assert_int_equal(prepare(x), SFT_OK);
    assert_int_equal(prepare(y), SFT_OK);
    assert_int_equal(publish(y, NULL), SFT_OK);
    assert_int_equal(publish(x, NULL), SFT_DATASET_CHANGED);
    assert_int_equal(sft_commit_abort(x, &err), SFT_OK);
    assert_int_equal(prepare(x), SFT_OUT_OF_ORDER);
    sft_commit_close(x);
    sft_commit_close(y);
    dataset_is(3, 3, 3);
    assert_int_equal(ds_count("part-"), 3);
    /* The response to a put is lost, and the put was done. */
    x = begin_on(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(x, &s, 0, 0, "e", 1);
    assert_int_equal(prepare(x), SFT_OK);
    put_fails = SFT_IO_PUBLISH;
    assert_int_equal(publish(x, NULL), SFT_OK);
    sft_commit_close(x);
    dataset_is(4, 4, 4);
    sft_dataset_options_free(o);
}

/* A manifest with the size of one version and the bytes of the next. */
static size_t torn_reads;

static sft_code torn_open(void *ctx, const char *name, sft_source *out, sft_error *e) {
    sft_code code = ds_storage.vtable->open(ctx, name, out, e);
    if (code == SFT_OK && strcmp(name, SFTI_DATASET_MANIFEST) == 0 && torn_reads)
        out->size = --torn_reads % 2 ? out->size - 7 : out->size + 7;
    return code;
}

static void torn(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = bare_storage();
    sft_dataset *d = NULL;
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a", 1);
    storage_own(&s)->open = torn_open;
    for (torn_reads = 1; torn_reads <= 4; torn_reads++) {
        size_t times = torn_reads;
        assert_int_equal(sft_dataset_open(&s, NULL, NULL, NULL, &d, &err), SFT_OK);
        assert_int_equal(torn_reads, 0);
        assert_int_equal(sft_dataset_samples(d), 1);
        sft_dataset_close(d);
        torn_reads = times;
    }
    torn_reads = 1000; /* bounded */
    assert_int_not_equal(sft_dataset_open(&s, NULL, NULL, NULL, &d, &err), SFT_OK);
    assert_true(torn_reads > 900);
    torn_reads = 0; /* damage is reported without many retries */
    temp_write(SFTI_DATASET_MANIFEST, "{", 1);
    assert_int_equal(sft_dataset_open(&s, NULL, NULL, NULL, &d, &err), SFT_MANIFEST_TYPE);
    sft_dataset_options_free(o);
}

/* ── Concurrent commits ── */

static void busy(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_storage other;
    sft_commit *a = ds_begin(o, SFT_COMMIT_APPEND), *b;
    (void)state;
    assert_int_equal(prepare(a), SFT_OK);
    how.mode = SFT_COMMIT_APPEND;
    how.lock_wait_ms = 50;
    assert_int_equal(sft_storage_local(temp_dir, true, NULL, &other, &err), SFT_OK);
    assert_int_equal(sft_commit_open(o, &other, NULL, &how, &b, &err), SFT_OK);
    assert_int_equal(prepare(b), SFT_DATASET_BUSY);
    sft_commit_close(a); /* lets go */
    assert_int_equal(prepare(b), SFT_OK);
    assert_int_equal(publish(b, NULL), SFT_OK);
    sft_commit_close(b);
    sft_storage_close(&other);
    sft_dataset_options_free(o);
}

#define APPENDERS 4
#define APPENDS 5

static void append_some(int who) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage own;
    sft_error e = SFT_ERROR_INIT;
    if (sft_storage_local(temp_dir, true, NULL, &own, &e)) abort();
    for (int i = 0; i < APPENDS; i++) {
        sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
        sft_commit *c;
        char name[32];
        how.mode = SFT_COMMIT_APPEND;
        (void)snprintf(name, sizeof name, "k%d_%d", who, i);
        if (sft_commit_open(o, &own, NULL, &how, &c, &e)) fail_msg("%s", e.message);
        ds_kv_on(c, &own, 0, 0, name, 1);
        if (sft_commit_prepare(c, NULL, &e) || sft_commit_publish(c, NULL, NULL, NULL, NULL, &e))
            fail_msg("%s", e.message);
        sft_commit_close(c);
    }
    sft_storage_close(&own);
    sft_dataset_options_free(o);
}

static void all_appended(void) {
    dataset_is(APPENDERS * APPENDS, APPENDERS * APPENDS, APPENDERS * APPENDS);
    sft_dataset *d = ds_open();
    for (int who = 0; who < APPENDERS; who++)
        for (int i = 0; i < APPENDS; i++) {
            char key[32];
            (void)snprintf(key, sizeof key, "k%d_%d__v", who, i);
            key_is(d, key, 1);
        }
    for (size_t i = 0; i < APPENDERS * APPENDS; i++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof prefix, "part-%05zu-", i);
        assert_int_equal(strncmp(sft_dataset_shard_at(d, i)->name, prefix, 11), 0);
    }
    sft_dataset_close(d);
}

static void *append_thread(void *ctx) {
    append_some(*(int *)ctx);
    return NULL;
}

static void in_threads(void **state) {
    pthread_t threads[APPENDERS];
    int who[APPENDERS];
    (void)state;
    for (int i = 0; i < APPENDERS; i++) {
        who[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, append_thread, &who[i]), 0);
    }
    for (int i = 0; i < APPENDERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    all_appended();
}

static void in_processes(void **state) {
    pid_t children[APPENDERS];
    (void)state;
    for (int i = 0; i < APPENDERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            append_some(i);
            _exit(0);
        }
    }
    for (int i = 0; i < APPENDERS; i++) {
        int status = 1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    all_appended();
}

/* ── A connector's dataset ── */

#define THEIRS(n) "part-0000" #n "-0000-11111111-2222-4333-8444-555555555555.safetensors"

static uint64_t their_shard(const char *name, const ds_tensor *tensors, size_t count) {
    sfti_ds_receipt facts;
    memset(&facts, 0, sizeof facts);
    ds_put(&ds_storage, name, tensors, count, NULL, NULL, &facts);
    return facts.bytes;
}

static void their_manifest(uint64_t a, uint64_t b, uint64_t rows, const char *schema) {
    char text[2000];
    (void)snprintf(text, sizeof text,
                   "{ \"format_version\" : \"1.0\", \"safetensors_version\" : \"1.0\", "
                   "\"total_samples\" : %" PRIu64 ", \"total_bytes\" : %" PRIu64 ", "
                   "\"shards\" : [ { \"shard_path\" : \"" THEIRS(1) "\", "
                   "\"samples_count\" : %" PRIu64 ", \"bytes\" : %" PRIu64 " }, "
                   "{ \"shard_path\" : \"" THEIRS(0) "\", "
                   "\"samples_count\" : %" PRIu64 ", \"bytes\" : %" PRIu64 " } ], "
                   "\"schema\" : { %s } }",
                   2 * rows, a + b, rows, b, rows, a, schema);
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
}

#define X_SCHEMA "\"x\" : { \"dtype\" : \"F32\", \"shape\" : [ 4, 3 ] }"

static void adopt_batch(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 1 };
    (void)state;
    uint64_t bytes = their_shard(THEIRS(0), &tensor, 1);
    assert_int_equal(their_shard(THEIRS(1), &tensor, 1), bytes);
    their_manifest(bytes, bytes, 4, X_SCHEMA);
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    dataset_is(1, 3, 12);
    text_has("\"shard_path\":\"" THEIRS(0) "\",\"samples_count\":4", true);
    text_has("\"sha256\":null,\"tensors\":1,\"first_sample\":0", true);
    text_has("\"sha256\":null,\"tensors\":1,\"first_sample\":4", true);
    text_has("\"first_sample\":8", true);
    text_has("\"columns\":{\"x\":{\"dtype\":\"F32\",\"shape\":[3]}}", true);
    sft_dataset *d = ds_open();
    assert_int_equal(strncmp(sft_dataset_shard_at(d, 2)->name, "part-00002-", 11), 0);
    sft_dataset_close(d);
    sft_dataset_options_free(o);
}

static void append_is(const sft_dataset_options *o, bool batch, bool listing, sft_code expected,
                      const char *message) {
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c;
    how.mode = SFT_COMMIT_APPEND;
    how.adopt_listing = listing;
    if (sft_commit_open(o, &ds_storage, NULL, &how, &c, &err)) fail_msg("%s", err.message);
    if (batch) ds_batch(c, 0, 0, 4, 4);
    else ds_kv(c, 0, 0, "new");
    sft_code code = prepare(c);
    if (code != expected || (code && !strstr(err.message, message)))
        fail_msg("expected %d %s, found %d %s", expected, message, code, code ? err.message : "");
    if (code == SFT_OK) assert_int_equal(publish(c, NULL), SFT_OK);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
}

static void adopt_forgotten(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 1 };
    (void)state;
    uint64_t bytes = their_shard(THEIRS(0), &tensor, 1);
    (void)their_shard(THEIRS(1), &tensor, 1);
    (void)their_shard(THEIRS(5), &tensor, 1);
    temp_write("mine.safetensors", "mine", 4);
    their_manifest(bytes, bytes, 4, X_SCHEMA);
    append_is(o, true, false, SFT_DATASET_SHARD,
              "the manifest does not name 1 of the shards in the folder, first " THEIRS(5));
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_samples(d), 8);
    assert_int_equal(ds_warn_count, 1);
    assert_string_equal(ds_warned, "the manifest does not name 1 of the shards in the folder, "
                                   "first " THEIRS(5) "; they are ignored\n");
    sft_dataset_close(d);
    append_is(o, true, true, SFT_OK, "");
    dataset_is(1, 4, 16);
    d = ds_open();
    assert_string_equal(sft_dataset_shard_at(d, 0)->name, THEIRS(5));
    assert_int_equal(sft_dataset_shard_at(d, 0)->samples, 4);
    assert_string_equal(sft_dataset_shard_at(d, 1)->name, THEIRS(0));
    assert_int_equal(sft_dataset_shard_at(d, 1)->first_sample, 4);
    assert_int_equal(strncmp(sft_dataset_shard_at(d, 3)->name, "part-00006-", 11), 0);
    sft_dataset_close(d);
    sft_dataset_options_free(o);
}

static sft_code no_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    (void)ctx, (void)wait_ms;
    return sft_error_set(e, SFT_DATASET_UNGUARDED, 0, "no locks here");
}

/* The connector's append did not name ours: they are adopted where they cannot belong to a commit
 * in progress. */
static void adopt_ours(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_dataset_options *single = ds_options("batch_size=4", "single_writer=true", NULL);
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_storage before = ds_storage;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    (void)state;
    ds_batch(c, 0, 0, 4, 4);
    ds_end(c);
    ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 1 };
    uint64_t bytes = their_shard(THEIRS(0), &tensor, 1);
    (void)their_shard(THEIRS(1), &tensor, 1);
    their_manifest(bytes, bytes, 4, X_SCHEMA);
    storage_own(&ds_storage)->lock = no_lock;
    append_is(o, true, true, SFT_DATASET_UNGUARDED, "may belong to a commit in progress");
    ds_storage = before;
    storage_own(&ds_storage)->move = NULL;
    append_is(o, true, true, SFT_DATASET_UNGUARDED, "may belong to a commit in progress");
    assert_int_equal(err.hint, SFT_HINT_SINGLE_WRITER);
    how.mode = SFT_COMMIT_APPEND;
    how.adopt_listing = true;
    assert_int_equal(sft_commit_open(single, &ds_storage, NULL, &how, &c, &err), SFT_OK);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    ds_storage = before;
    append_is(o, true, true, SFT_OK, "");
    dataset_is(1, 4, 16);
    sft_dataset_options_free(single);
    sft_dataset_options_free(o);
}

static void adopt_damaged(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 1 }, other = { "y", SFT_F32, 2, { 4, 3 }, 1 },
              half = { "x", SFT_F16, 2, { 4, 3 }, 1 }, ragged = { "x", SFT_F32, 2, { 4, 5 }, 1 };
    (void)state;
    uint64_t bytes = their_shard(THEIRS(0), &tensor, 1);
    (void)their_shard(THEIRS(1), &tensor, 1);
    their_manifest(bytes, bytes + 1, 4, X_SCHEMA);
    append_is(o, true, false, SFT_DATASET_SHARD, "by the manifest, found");
    their_manifest(bytes, bytes, 4, "\"z\" : { \"dtype\" : \"F32\", \"shape\" : [ 4, 3 ] }");
    append_is(o, true, false, SFT_DATASET_DISAGREES, "expected the column z as in the dataset");
    their_manifest(bytes, bytes, 4, X_SCHEMA ", \"z\" : { \"dtype\" : \"I8\", \"shape\" : [ 4 ] }");
    append_is(o, true, false, SFT_DATASET_DISAGREES, "expected the column z as in the dataset");
    their_manifest(bytes, bytes, 4, "\"x\" : { \"dtype\" : \"F16\", \"shape\" : [ 4, 3 ] }");
    append_is(o, true, false, SFT_DATASET_DISAGREES, "column x: expected F16 as in the dataset");
    their_manifest(bytes, bytes, 4, "\"x\" : { \"dtype\" : \"F32\", \"shape\" : [ 4, 7 ] }");
    append_is(o, true, false, SFT_DATASET_DISAGREES,
              "column x: expected samples of shape [7] as in the dataset, found [3]");
    /* What its schema lacks comes from its headers. */
    their_manifest(bytes, their_shard(THEIRS(1), &other, 1), 4, X_SCHEMA);
    append_is(o, true, false, SFT_DATASET_DISAGREES, "expected tensors of the columns");
    their_manifest(bytes, their_shard(THEIRS(1), &half, 1), 4, X_SCHEMA);
    append_is(o, true, false, SFT_OK, "");
    text_has("\"columns\":{\"x\":{\"dtype\":null,\"shape\":[3]}}", true);
    their_manifest(bytes, their_shard(THEIRS(1), &ragged, 1), 4, X_SCHEMA);
    append_is(o, true, true, SFT_OK, "");
    text_has("\"columns\":{\"x\":{\"dtype\":\"F32\",\"shape\":null}}", true);
    sft_dataset_options_free(o);
}

static void adopt_kv(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    ds_tensor first[] = { { "b__v", SFT_F32, 1, { 2 }, 1 }, { "a__v", SFT_F32, 1, { 2 }, 1 } },
              second[] = { { "a__v", SFT_F32, 1, { 2 }, 2 }, { "c__v", SFT_F16, 1, { 4 }, 2 } };
    (void)state;
    uint64_t a = their_shard(THEIRS(0), first, 2), b = their_shard(THEIRS(1), second, 2);
    their_manifest(a, b, 2, "\"a__w\" : { \"dtype\" : \"F32\", \"shape\" : [ 2 ] }");
    append_is(o, false, false, SFT_DATASET_DISAGREES, "expected the column a__w as in");
    their_manifest(a, b, 2, "\"a__v\" : { \"dtype\" : \"F32\", \"shape\" : [ 2 ] }");
    /* The connector accepts a name twice; our commit counts it as shadowed. */
    append_is(o, false, false, SFT_OK, "");
    dataset_is(1, 3, 4);
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_shard_at(d, 0)->shadowed, 1);
    key_is(d, "a__v", 2);
    sft_dataset_close(d);
    text_has("\"columns\":{\"v\":{\"dtype\":null,\"shape\":null}}", true);
    sft_dataset_options_free(o);
}

/* ── The index ── */

static void stay_indexed(void **state) {
    sft_dataset_options *with = ds_options("name_col=id", "generate_index=true", NULL);
    sft_dataset_options *without = ds_options("name_col=id", NULL);
    char index[200];
    (void)state;
    for (int i = 0; i < 3; i++) {
        sft_commit *c = ds_begin(i ? without : with, i < 2 ? SFT_COMMIT_APPEND
                                                           : SFT_COMMIT_OVERWRITE);
        ds_kv(c, 0, 0, i ? "b" : "a");
        assert_int_equal(prepare(c), SFT_OK);
        assert_int_equal(sft_commit_indexed(c), i < 2);
        if (i < 2) {
            (void)snprintf(index, sizeof index, "%s/x", sft_commit_job_folder(c));
            temp_write(index, i ? "two" : "one", 3);
        }
        assert_int_equal(publish(c, i < 2 ? "x" : NULL), SFT_OK);
        sft_commit_close(c);
        char text[8] = { 0 };
        assert_int_equal(temp_read(SFTI_DATASET_INDEX, text, 7), i < 2 ? 3 : -1);
        if (i < 2) assert_string_equal(text, i ? "two" : "one");
        text_has("\"index\":\"_tensor_index.parquet\"", i < 2);
        assert_int_equal(ds_count("_job-"), 0);
    }
    /* The caller writes none: the manifest says so. */
    sft_commit *c = ds_begin(with, SFT_COMMIT_OVERWRITE);
    ds_end(c);
    text_has("\"index\":null", true);
    /* It announced an index and did not write it. */
    c = ds_begin(with, SFT_COMMIT_OVERWRITE);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(publish(c, "none"), SFT_NOT_FOUND);
    sft_commit_close(c);
    sft_dataset_options_free(with);
    sft_dataset_options_free(without);
}

/* Spark's index is a folder. */
static void index_folder(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    char index[200];
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mkdir(temp_path(SFTI_DATASET_INDEX), 0777), 0);
        temp_write(SFTI_DATASET_INDEX "/part-0.parquet", "old", 3);
        temp_write(SFTI_DATASET_INDEX "/._SUCCESS.crc", "", 0);
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        assert_int_equal(prepare(c), SFT_OK);
        (void)snprintf(index, sizeof index, "%s/i", sft_commit_job_folder(c));
        assert_int_equal(mkdir(temp_path(sft_commit_job_folder(c)), 0777), 0);
        temp_write(index, "new", 3);
        assert_int_equal(publish(c, i ? NULL : "i"), SFT_OK);
        sft_commit_close(c);
        char text[8];
        assert_int_equal(temp_read(SFTI_DATASET_INDEX, text, 7), i ? -1 : 3);
        assert_int_equal(ds_count("_job-"), 0);
        assert_int_equal(ds_warn_count, 0);
        if (!i) assert_int_equal(unlink(temp_path(SFTI_DATASET_INDEX)), 0);
    }
    sft_dataset_options_free(o);
}

/* ── The index's rows ── */

static int32_t offset_at(const struct ArrowArray *a, int64_t i) {
    return ((const int32_t *)a->buffers[1])[i];
}

static bool text_at(const struct ArrowArray *a, int64_t i, const char *text) {
    int32_t from = offset_at(a, i), to = offset_at(a, i + 1);
    return (size_t)(to - from) == strlen(text) &&
           memcmp((const char *)a->buffers[2] + from, text, strlen(text)) == 0;
}

static void schema_is(const struct ArrowSchema *s, int64_t fields, const char *element) {
    static const char *const names[] = { "tensor_key", "file_name", "shape", "dtype", "begin",
                                         "end", "shadowed" };
    static const char *const formats[] = { "u", "u", "+l", "u", "l", "l", "b" };
    assert_string_equal(s->format, "+s");
    assert_int_equal(s->n_children, fields);
    for (int64_t i = 0; i < fields; i++) {
        assert_string_equal(s->children[i]->name, names[i]);
        assert_string_equal(s->children[i]->format, formats[i]);
    }
    assert_int_equal(s->children[2]->n_children, 1);
    assert_string_equal(s->children[2]->children[0]->format, element);
}

static void index_rows(void **state) {
    static const uint64_t two[] = { 2 };
    static const sfti_ds_column column = { .name = { "v", 1 }, .has_dtype = true,
                                           .dtype = SFT_F32, .has_shape = true, .rank = 1,
                                           .shape = two };
    sft_dataset_options *o = ds_options("name_col=id", "duplicatesStrategy=lastWin", NULL);
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    (void)state;
    (void)column;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv(c, 0, 0, "b,a");
    ds_kv(c, 1, 0, "c,b");
    assert_int_equal(prepare(c), SFT_OK);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(sft_commit_index(c, &stream, &err), SFT_OK);
        assert_int_equal(stream.get_schema(&stream, &schema), 0);
        schema_is(&schema, 7, "i");
        assert_int_equal(stream.get_next(&stream, &batch), 0);
        assert_int_equal(batch.length, 4);
        assert_int_equal(batch.n_children, 7);
        assert_int_equal(batch.null_count, 0);
        static const char *const keys[] = { "a__v", "b__v", "b__v", "c__v" };
        static const int files[] = { 0, 0, 1, 1 };
        static const bool shadowed[] = { false, true, false, false };
        for (int64_t i = 0; i < 4; i++) {
            assert_true(text_at(batch.children[0], i, keys[i]));
            assert_true(text_at(batch.children[1], i, c->shards[files[i]].shard.facts.name));
            assert_true(text_at(batch.children[3], i, "F32"));
            assert_int_equal(offset_at(batch.children[2], i), i);
            assert_int_equal(((const int32_t *)batch.children[2]->children[0]->buffers[1])[i], 2);
            int64_t begin = ((const int64_t *)batch.children[4]->buffers[1])[i];
            int64_t end = ((const int64_t *)batch.children[5]->buffers[1])[i];
            assert_int_equal(end - begin, 8);
            assert_int_equal(((const uint8_t *)batch.children[6]->buffers[1])[0] >> i & 1,
                             shadowed[i]);
        }
        assert_int_equal(batch.children[2]->children[0]->length, 4);
        /* A child may be taken out and outlive its parent. */
        struct ArrowArray moved = *batch.children[0];
        batch.children[0]->release = NULL;
        moved.release(&moved);
        batch.release(&batch);
        schema.release(&schema);
        assert_int_equal(stream.get_next(&stream, &batch), 0);
        assert_null(batch.release);
        stream.release(&stream);
    }
    sft_commit_close(c);
    sft_dataset_options_free(o);
}

/* More rows than a batch has, and a dimension that needs 64 bits. */
static void index_large(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    enum { ROWS = 70000 };
    ds_tensor *tensors = calloc(ROWS, sizeof *tensors);
    char(*keys)[24] = calloc(ROWS, sizeof *keys);
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    sfti_ds_column column = { .name = { "v", 1 } };
    (void)state;
    assert_non_null(tensors);
    assert_non_null(keys);
    for (size_t i = 0; i < ROWS; i++) {
        (void)snprintf(keys[i], sizeof keys[0], "%08zu__v", i);
        tensors[i] = (ds_tensor){ keys[i], SFT_F32, 2, { i == 5 ? UINT64_C(1) << 33 : 1, 0 }, 1 };
    }
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_task(c, &ds_storage, 0, 0, tensors, ROWS, ROWS, ROWS, true, &column, 1, &receipts);
    assert_int_equal(sft_commit_add(c, (sft_span){ receipts.data, receipts.len }, &err), SFT_OK);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(sft_commit_index(c, &stream, &err), SFT_OK);
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    schema_is(&schema, 6, "l");
    schema.release(&schema);
    int64_t total = 0;
    while (stream.get_next(&stream, &batch) == 0 && batch.release) {
        assert_true(batch.length <= 65536);
        if (total == 0)
            assert_int_equal(((const int64_t *)batch.children[2]->children[0]->buffers[1])[10],
                             INT64_C(1) << 33);
        total += batch.length;
        batch.release(&batch);
    }
    assert_int_equal(total, ROWS);
    stream.release(&stream);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    text_has("\"schema\":", false); /* more keys than it lists */
    text_has("\"tensors\":70000", true);
    sft_buffer_free(&receipts);
    free(tensors);
    free(keys);
    sft_dataset_options_free(o);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_new_one),         FOLDER_TEST(an_empty_one),
        FOLDER_TEST(there_already),     FOLDER_TEST(two_new_ones),
        FOLDER_TEST(append),            FOLDER_TEST(append_otherwise),
        FOLDER_TEST(disagreeing_receipts), FOLDER_TEST(varying),
        FOLDER_TEST(rebase),            FOLDER_TEST(overwrite),
        FOLDER_TEST(overwrite_broken),  FOLDER_TEST(overwrite_changed),
        FOLDER_TEST(keep_old),          FOLDER_TEST(overwritten_while_reading),
        FOLDER_TEST(duplicates_fail),   FOLDER_TEST(last_wins),
        FOLDER_TEST(twice_and_two_attempts), FOLDER_TEST(missing_shards),
        FOLDER_TEST(out_of_order),      FOLDER_TEST(carried),
        FOLDER_TEST(aborted),           FOLDER_TEST(stopped),
        FOLDER_TEST(fails_before),      FOLDER_TEST(fails_after),
        FOLDER_TEST(no_orphan_index),   FOLDER_TEST(index_behind),
        FOLDER_TEST(unsure),            FOLDER_TEST(unguarded),
        FOLDER_TEST(conditional),       FOLDER_TEST(torn),

        FOLDER_TEST(busy),              FOLDER_TEST(in_threads),
        FOLDER_TEST(in_processes),      FOLDER_TEST(adopt_batch),
        FOLDER_TEST(adopt_forgotten),   FOLDER_TEST(adopt_damaged),
        FOLDER_TEST(adopt_kv), FOLDER_TEST(adopt_ours),         FOLDER_TEST(stay_indexed),
        FOLDER_TEST(index_folder),      FOLDER_TEST(index_rows),
        FOLDER_TEST(index_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
