/* Commits: new, append, overwrite; duplicates, receipts, aborts. */
#define _GNU_SOURCE
#include "unit/commit_case.h"

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

static void append_batch(const char *id, uint64_t rows, uint64_t all, const char *recorded) {
    sft_dataset_options *o = ds_options("batch_size=4", id, NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, rows, rows);
    assert_int_equal(prepare(c), SFT_OK);
    assert_false(sft_commit_indexed(c));
    assert_int_equal(publish(c, NULL), SFT_OK);
    assert_true(sft_commit_manifest(c).len > 0);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_samples(d), all);
    assert_int_equal(ds_count("part-"), sft_dataset_shard_count(d));
    assert_int_equal(ds_count("_job-"), 0);
    sft_dataset_close(d);
    text_has(recorded, true);
    sft_dataset_options_free(o);
}

/* A batch that comes again adds nothing, whatever was committed meanwhile. */
static void batches_once(void **state) {
    (void)state;
    append_batch("batch_id=a:0", 1, 1, "\"batches\":{\"a\":0}");
    append_batch("batch_id=a:0", 1, 1, "\"version\":1,");
    append_batch("batch_id=a:7", 2, 3, "\"batches\":{\"a\":7}");
    append_batch("batch_id=b:x:3", 3, 6, "\"batches\":{\"a\":7,\"b:x\":3}");
    append_batch("batch_id=a:7", 2, 6, "\"version\":3,");
    append_batch("batch_id=a:6", 2, 6, "\"version\":3,");
    append_batch("batch_id=b:x:4", 1, 7, "\"batches\":{\"a\":7,\"b:x\":4}");
    /* Commits without one pass it on. */
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    for (int how = SFT_COMMIT_APPEND; how <= SFT_COMMIT_OVERWRITE; how++) {
        sft_commit *c = ds_begin(o, (sft_commit_mode)how);
        ds_batch(c, 0, 0, 1, 1);
        ds_end(c);
        text_has("\"batches\":{\"a\":7,\"b:x\":4}", true);
    }
    append_batch("batch_id=a:7", 2, 1, "\"version\":6,");
    /* Of two attempts that both began before either was committed one is published. */
    sft_dataset_options *same = ds_options("batch_size=4", "batch_id=a:8", NULL);
    sft_commit *one = ds_begin(same, SFT_COMMIT_APPEND), *two = ds_begin(same, SFT_COMMIT_APPEND);
    ds_batch(one, 0, 0, 1, 1);
    ds_batch(two, 0, 0, 1, 1);
    ds_end(one);
    ds_end(two);
    dataset_is(7, 2, 2);
    sft_dataset_options_free(o);
    sft_dataset_options_free(same);
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

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_new_one), FOLDER_TEST(an_empty_one), FOLDER_TEST(there_already),
        FOLDER_TEST(two_new_ones), FOLDER_TEST(append), FOLDER_TEST(append_otherwise),
        FOLDER_TEST(disagreeing_receipts), FOLDER_TEST(varying), FOLDER_TEST(rebase),
        FOLDER_TEST(overwrite), FOLDER_TEST(overwrite_broken), FOLDER_TEST(overwrite_changed),
        FOLDER_TEST(keep_old), FOLDER_TEST(batches_once), FOLDER_TEST(overwritten_while_reading),
        FOLDER_TEST(duplicates_fail), FOLDER_TEST(last_wins),
        FOLDER_TEST(twice_and_two_attempts), FOLDER_TEST(missing_shards),
        FOLDER_TEST(out_of_order), FOLDER_TEST(carried), FOLDER_TEST(aborted),
        FOLDER_TEST(stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
