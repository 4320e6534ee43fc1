/* Commits to a connector's dataset, which name what its appends forgot. */
#define _GNU_SOURCE
#include "unit/commit_case.h"

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

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(adopt_batch), FOLDER_TEST(adopt_forgotten), FOLDER_TEST(adopt_damaged),
        FOLDER_TEST(adopt_kv), FOLDER_TEST(adopt_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
