/* What a commit checks: receipts against each other, the schema and the files; numbers that exceed
 * their room; a connector's files that are none of its dataset. */
#define _GNU_SOURCE
#include "unit/commit_case.h"
#include "unit/arrow_make.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"

static void says(sft_code code, sft_code wanted, const char *why) {
    if (code != wanted || !strstr(err.message, why))
        fail_msg("expected %d %s, found %d %s", (int)wanted, why, (int)code, err.message);
}

static sft_code add_text(sft_commit *c, const char *fields) {
    char text[2000];
    const sft_span job = sft_commit_job(c);
    const char *columns = strstr(job.data, ":["); /* of an append */
    (void)snprintf(text, sizeof text, "[{\"job\":\"%.*s\",%s}]",
                   columns ? (int)(columns - job.data) : (int)job.len, job.data, fields);
    return sft_commit_add(c, sft_span_cstr(text), &err);
}

static void done(sft_commit *c) {
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
}

/* ── Receipts ── */

#define PART(file, shard) "part-" file "-" shard "-" UUID ".safetensors"
#define NAMED(name) "\"name\":\"" name "\",\"stored\":\"" name "\""

static void numbers_of_files(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    ds_batches();
    sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND); /* from file 2 on */
    says(add_text(c, NAMED(PART("00002", "0000")) ",\"partition\":1"), SFT_DATASET_RECEIPT,
         "expected file 3, shard 0, found " PART("00002", "0000"));
    says(add_text(c, NAMED(PART("00002", "0001"))), SFT_DATASET_RECEIPT,
         "expected file 2, shard 0, found " PART("00002", "0001"));
    says(add_text(c, NAMED(PART("00001", "0000")) ",\"partition\":18446744073709551615"),
         SFT_SIZE_OVERFLOW, "expected numbers of files within 64 bits, found more");
    /* Others have come meanwhile; the greatest number of all has none behind it. */
    ds_batch(c, 1, 0, 4, 4);
    temp_write(PART("18446744073709551615", "0000"), "x", 1);
    assert_int_equal(mkdir(temp_path(PART("18446744073709551613", "0000")), 0777), 0);
    temp_write(PART("18446744073709551614", "0000"), "x", 1);
    says(prepare(c), SFT_SIZE_OVERFLOW, "expected numbers of files within 64 bits, found more");
    done(c);
    sft_dataset_options_free(o);
}

static void dropped_rows(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    assert_int_equal(add_text(c, "\"dropped\":2"), SFT_OK);
    assert_int_equal(add_text(c, "\"dropped\":3,\"partition\":1"), SFT_OK);
    assert_int_equal(add_text(c, "\"dropped\":2"), SFT_OK); /* the same task again */
    ds_end(c);
    text_has("\"dropped_samples\":5", true);
    c = ds_begin(o, SFT_COMMIT_APPEND);
    assert_int_equal(add_text(c, "\"dropped\":18446744073709551611"), SFT_OK);
    says(prepare(c), SFT_SIZE_OVERFLOW,
         "expected samples below 2^63 and totals within 64 bits, found more");
    done(c);
    sft_dataset_options_free(o);
}

/* Receipts of one tensor x each, with these columns. */
static void task(sft_commit *c, uint64_t partition, uint64_t samples,
                 const sfti_ds_column *columns, size_t count) {
    static const ds_tensor tensor = { "x", SFT_F32, 2, { 4, 3 }, 7 };
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    ds_task(c, &ds_storage, partition, 0, &tensor, 1, samples, samples, false, columns, count,
            &receipts);
    if (sft_commit_add(c, (sft_span){ receipts.data, receipts.len }, &err))
        fail_msg("%s", err.message);
    sft_buffer_free(&receipts);
}

static const uint64_t three[1] = { 3 };
#define FIXED(text) { .name = { text, 1 }, .has_dtype = true, .dtype = SFT_F32, .has_shape = true, \
                      .rank = 1, .shape = three }
#define UTF8 { .name = { "x", 1 }, .has_dtype = true, .dtype = SFT_U8, \
               .encoding = SFTI_ENCODING_UTF8 }

static void other_columns(void **state) {
    static const sfti_ds_column one[] = { FIXED("x"), FIXED("z") }, other[] = { FIXED("y") },
                                text[] = { UTF8 };
    static const struct {
        const sfti_ds_column *a, *b;
        size_t a_count, b_count;
        const char *says;
    } all[] = {
        { one, one, 1, 2, "expected the same columns in all shards, found others in part-00000-" },
        { one, other, 1, 1, "expected the same columns in all shards, found others in " },
        { one, text, 1, 1,
          "column x: expected one type in all shards, found others in part-00001-" },
    };
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        task(c, 0, 4, all[i].a, all[i].a_count);
        task(c, 1, 4, all[i].b, all[i].b_count);
        says(prepare(c), SFT_DATASET_DISAGREES, all[i].says);
        done(c);
    }
    /* And those of the schema that the job began with. */
    const sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c = NULL;
    am_reset();
    const struct ArrowSchema *schema = am_of(am_type("+s", ""), am_type("u", "x"));
    assert_int_equal(sft_commit_open(o, &ds_storage, schema, &how, &c, &err), SFT_OK);
    task(c, 0, 4, one, 1);
    says(prepare(c), SFT_DATASET_DISAGREES, "column x: expected one type in all shards, found "
                                            "others in part-00000-");
    assert_non_null(strstr(err.message, " and the schema"));
    done(c);
    sft_dataset_options_free(o);
}

static void too_many_samples(void **state) {
    static const sfti_ds_column one[] = { FIXED("x") };
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    task(c, 0, UINT64_MAX, one, 1);
    says(prepare(c), SFT_SIZE_OVERFLOW, "expected samples below 2^63");
    done(c);
    c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    task(c, 0, UINT64_MAX, one, 1);
    task(c, 1, UINT64_MAX, one, 1);
    says(prepare(c), SFT_SIZE_OVERFLOW, "expected samples within 64 bits, found more");
    done(c);
    sft_dataset_options_free(o);
    /* Times beyond the clock: readers keep what was replaced for good. */
    o = ds_options("batch_size=4", "keep_old=18446744073709551615", NULL);
    ds_batches();
    ds_end(ds_begin(o, SFT_COMMIT_OVERWRITE));
    text_has("\"keep_until\":18446744073709551615", true);
    sft_dataset_options_free(o);
}

/* ── Manifests in the way ── */

static void broken_manifest(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    const sft_commit_options how = { sizeof how, .mode = SFT_COMMIT_APPEND };
    sft_commit *c = NULL;
    (void)state;
    temp_write(SFTI_DATASET_MANIFEST, "{", 1);
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_MANIFEST_TYPE);
    assert_null(c);
    c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    assert_int_equal(unlink(temp_path(SFTI_DATASET_MANIFEST)), 0);
    says(prepare(c), SFT_DATASET_CHANGED, "another job has committed since");
    temp_write(SFTI_DATASET_MANIFEST, "{", 1);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    dataset_is(1, 1, 4);
    /* Broken after the job began. */
    c = ds_begin(o, SFT_COMMIT_APPEND);
    ds_batch(c, 0, 0, 4, 4);
    temp_write(SFTI_DATASET_MANIFEST, "{", 1);
    assert_int_equal(prepare(c), SFT_MANIFEST_TYPE);
    done(c);
    sft_dataset_options_free(o);
}

static sft_code no_open(void *ctx, const char *name, sft_source *source, sft_error *e) {
    (void)ctx, (void)name, (void)source;
    return sft_error_set(e, SFT_IO_READ, 5, "it failed");
}

static sft_code no_remove(void *ctx, const char *name, bool folder, sft_error *e) {
    (void)ctx, (void)name, (void)folder;
    return sft_error_set(e, SFT_IO_WRITE, 5, "cannot remove");
}

/* Giving up: the first failure is told, and where it is not known what is in force nothing goes. */
static void giving_up(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_storage s = ds_storage;
    sft_storage_vtable *own = storage_own(&s);
    const sft_storage_vtable good = *own;
    (void)state;
    own->move = NULL;
    s.single_writer = true;
    for (int way = 0; way < 3; way++) {
        sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
        ds_batch(c, 0, 0, 4, 4);
        ds_batch(c, 1, 0, 4, 4);
        assert_int_equal(prepare(c), SFT_OK);
        if (way < 2) own->remove = no_remove;
        else own->open = no_open;
        if (way == 0) says(sft_commit_abort(c, &err), SFT_IO_WRITE, "cannot remove");
        else assert_int_equal(sft_commit_abort(c, NULL), way == 1 ? SFT_IO_WRITE : SFT_OK);
        assert_int_equal(ds_count("part-"), 2);
        own->remove = good.remove;
        own->open = good.open;
        done(c);
        assert_int_equal(ds_count("part-"), 0);
    }
    sft_dataset_options_free(o);
}

/* ── Datasets of a connector ── */

#define THEIRS(n) "part-0000" n "-0000-11111111-2222-4333-8444-555555555555.safetensors"

static uint64_t their_shard(const char *name, const ds_tensor *tensors, size_t count,
                            const char *samples) {
    sfti_ds_receipt facts;
    memset(&facts, 0, sizeof facts);
    ds_put(&ds_storage, name, tensors, count, "batch", samples, &facts);
    return facts.bytes;
}

static void their_manifest(uint64_t bytes, const char *more, const char *schema) {
    char text[2000];
    (void)snprintf(text, sizeof text,
                   "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
                   "\"total_samples\":4,\"total_bytes\":%" PRIu64 ",\"shards\":[{\"shard_path\":"
                   "\"" THEIRS("0") "\",\"samples_count\":4,\"bytes\":%" PRIu64 "%s}],"
                   "\"schema\":{%s}}", bytes, bytes, more, schema);
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
}

static const ds_tensor x = { "x", SFT_F32, 2, { 4, 3 }, 1 };

static void append_says(const sft_dataset_options *o, sft_code wanted, const char *why) {
    const sft_commit_options how = { sizeof how, .mode = SFT_COMMIT_APPEND,
                                     .adopt_listing = true };
    sft_commit *c = NULL;
    if (sft_commit_open(o, &ds_storage, NULL, &how, &c, &err)) fail_msg("%s", err.message);
    if (sft_dataset_options_mode(o) == SFT_DATASET_BATCH) ds_batch(c, 0, 0, 4, 4);
    else ds_kv(c, 0, 0, "new");
    sft_code code = prepare(c);
    if (code != wanted || (code && !strstr(err.message, why)))
        fail_msg("expected %d %s, found %d %s", (int)wanted, why, (int)code, err.message);
    done(c);
}

static void their_columns(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    static const ds_tensor scalar = { "x", SFT_F32, 0, { 0 }, 1 };
    (void)state;
    uint64_t bytes = their_shard(THEIRS("0"), &x, 1, NULL);
    their_manifest(bytes, "", "\"x\":{\"dtype\":\"QX9\",\"shape\":[4,3]}");
    append_says(o, SFT_DATASET_DISAGREES, "column x: expected QX9 as in the dataset, found F32");
    their_manifest(bytes, "", "\"x\":{\"dtype\":\"F32\",\"shape\":[]}");
    append_says(o, SFT_DATASET_DISAGREES,
                "column x: expected a tensor without samples as in the dataset, found samples");
    /* Rows of another kind, and more columns. */
    static const sfti_ds_column list[] = { { .name = { "x", 1 }, .has_dtype = true,
                                             .dtype = SFT_F32, .encoding = SFTI_ENCODING_LIST } },
                                more[] = { FIXED("x"), FIXED("z") };
    for (int i = 0; i < 2; i++) {
        their_manifest(bytes, "", i ? "\"x\":{\"dtype\":\"F32\",\"shape\":[4,3]}"
                                    : "\"x\":{\"dtype\":\"F32\",\"shape\":[]}");
        sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
        task(c, 0, 4, i ? more : list, i ? 2 : 1);
        says(prepare(c), SFT_DATASET_DISAGREES,
             i ? "expected only columns of the dataset, found z"
               : "column x: expected rows of one shape as in the dataset, found lists of different "
                 "lengths");
        done(c);
    }
    their_manifest(bytes, ",\"tensors\":1", "\"x\":{\"dtype\":\"F32\",\"shape\":[4,3]}");
    append_says(o, SFT_OK, "");
    their_manifest(their_shard(THEIRS("0"), &scalar, 1, NULL), "", "");
    append_says(o, SFT_DATASET_DISAGREES, "expected tensors of the columns that are written");
    sft_dataset_options_free(o);
}

/* Shards that its manifest does not name: their headers say how many rows they have. */
static void their_forgotten(void **state) {
    static const ds_tensor scalar = { "x", SFT_F32, 0, { 0 }, 1 };
    static const struct {
        const ds_tensor *tensor;
        size_t count;
        const char *samples;
        sft_code code;
        const char *says; /* or what the manifest has of it */
    } all[] = {
        { NULL, 0, NULL, SFT_OK, "\"samples_count\":0," },
        { &x, 1, NULL, SFT_OK, "\"samples_count\":4," },
        { &x, 1, "4", SFT_OK, "\"samples_count\":4," },
        { &x, 1, "four", SFT_OK, "\"samples_count\":4," }, /* by its tensors */
        { &x, 1, "18446744073709551615", SFT_SIZE_OVERFLOW, "expected samples within 64 bits" },
        { &scalar, 1, NULL, SFT_DATASET_DISAGREES, "expected tensors of the columns" },
    };
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint64_t bytes = their_shard(THEIRS("0"), &x, 1, NULL);
        their_manifest(bytes, "", "\"x\":{\"dtype\":\"F32\",\"shape\":[4,3]}");
        (void)their_shard(THEIRS("7"), all[i].tensor, all[i].count, all[i].samples);
        if (all[i].code) {
            append_says(o, all[i].code, all[i].says);
            continue;
        }
        const sft_commit_options how = { sizeof how, .mode = SFT_COMMIT_APPEND,
                                         .adopt_listing = true };
        sft_commit *c = NULL;
        assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_OK);
        ds_end(c);
        char text[200];
        (void)snprintf(text, sizeof text, "{\"shard_path\":\"" THEIRS("7") "\",%s", all[i].says);
        text_has(text, true);
    }
    /* Two of them together are too many. */
    their_manifest(their_shard(THEIRS("0"), &x, 1, NULL), "",
                   "\"x\":{\"dtype\":\"F32\",\"shape\":[4,3]}");
    (void)their_shard(THEIRS("7"), &x, 1, "18446744073709551615");
    (void)their_shard(THEIRS("8"), &x, 1, "1");
    append_says(o, SFT_SIZE_OVERFLOW, "expected samples within 64 bits, found more");
    sft_dataset_options_free(o);
}

/* Keys of a connector in KV mode: a column is what a key ends with. */
static void their_keys(void **state) {
    static const ds_tensor good[] = { { "b__v", SFT_F32, 1, { 2 }, 1 } },
                           bad[] = { { "v", SFT_F32, 1, { 2 }, 1 } },
                           ugly[] = { { "a-_v", SFT_F32, 1, { 2 }, 1 } },
                           more[] = { { "c__v", SFT_F32, 1, { 2 }, 1 },
                                      { "d__v", SFT_F32, 1, { 2 }, 1 } };
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    (void)state;
    their_manifest(their_shard(THEIRS("0"), good, 1, NULL), "",
                   "\"b__v\":{\"dtype\":\"F32\",\"shape\":[2]}");
    append_says(o, SFT_OK, "");
    their_manifest(their_shard(THEIRS("0"), bad, 1, NULL), "",
                   "\"b__v\":{\"dtype\":\"F32\",\"shape\":[2]}");
    append_says(o, SFT_DATASET_DISAGREES, "expected tensors of the columns that are written");
    their_manifest(their_shard(THEIRS("0"), ugly, 1, NULL), "",
                   "\"b__v\":{\"dtype\":\"F32\",\"shape\":[2]}");
    append_says(o, SFT_DATASET_DISAGREES, "expected tensors of the columns that are written");
    /* A shard that was forgotten has a row for each tensor of a column. */
    their_manifest(their_shard(THEIRS("0"), good, 1, NULL), "",
                   "\"b__v\":{\"dtype\":\"F32\",\"shape\":[2]}");
    (void)their_shard(THEIRS("7"), more, 2, NULL);
    const sft_commit_options how = { sizeof how, .mode = SFT_COMMIT_APPEND,
                                     .adopt_listing = true };
    sft_commit *c = NULL;
    assert_int_equal(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_OK);
    ds_kv(c, 0, 0, "new");
    ds_end(c);
    text_has("{\"shard_path\":\"" THEIRS("7") "\",\"samples_count\":2,", true);
    text_has("\"total_samples\":7,", true); /* four by the manifest, and one */
    sft_dataset_options_free(o);
}

/* Two columns whose names both end a key: their rows cannot be told apart. */
static void their_longest(void **state) {
    static const ds_tensor theirs = { "n__a__v", SFT_F32, 1, { 2 }, 1 },
                           mine[] = { { "k__v", SFT_F32, 1, { 2 }, 1 },
                                      { "k__a__v", SFT_F32, 1, { 2 }, 1 } };
    static const uint64_t two[] = { 2 };
    static const sfti_ds_column columns[] = {
        { .name = { "v", 1 }, .has_dtype = true, .dtype = SFT_F32, .has_shape = true, .rank = 1,
          .shape = two },
        { .name = { "a__v", 4 }, .has_dtype = true, .dtype = SFT_F32, .has_shape = true, .rank = 1,
          .shape = two },
    };
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        const sfti_ds_column both[] = { columns[turned], columns[!turned] };
        sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
        their_manifest(their_shard(THEIRS("0"), &theirs, 1, NULL), "",
                       "\"n__a__v\":{\"dtype\":\"F32\",\"shape\":[2]}");
        sft_commit *c = ds_begin(o, SFT_COMMIT_APPEND);
        ds_task(c, &ds_storage, 0, 0, mine, 2, 1, 1, true, both, 2, &receipts);
        assert_int_equal(sft_commit_add(c, (sft_span){ receipts.data, receipts.len }, &err),
                         SFT_OK);
        sft_buffer_free(&receipts);
        assert_int_equal(sft_commit_prepare(c, NULL, &err), SFT_OPTION_VALUE);
        assert_non_null(strstr(err.message, "columns v and a__v: expected names of tensors that"));
        sft_commit_close(c);
    }
    sft_dataset_options_free(o);
}

/* A forgotten shard that says of itself that it has more valid rows than rows. */
static void their_valid_rows(void **state) {
    static const char header[] = "{\"__metadata__\":{\"" SFTI_DATASET_MARK "\":\"1\",\"samples\":"
        "\"4\",\"valid_samples\":\"5\"},\"x\":{\"dtype\":\"F32\",\"shape\":[4,3],"
        "\"data_offsets\":[0,48]}}";
    char bytes[8 + sizeof header + 48] = { (char)(sizeof header - 1) };
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    memcpy(bytes + 8, header, sizeof header - 1);
    their_manifest(their_shard(THEIRS("0"), &x, 1, NULL), "",
                   "\"x\":{\"dtype\":\"F32\",\"shape\":[4,3]}");
    temp_write(THEIRS("7"), bytes, 8 + sizeof header - 1 + 48);
    append_says(o, SFT_DATASET_SHARD, THEIRS("7") ": expected at most 4 valid samples, found 5");
    sft_dataset_options_free(o);
}

/* The name of a forgotten shard, however long it is, is told as far as there is room. */
static void their_long_names(void **state) {
    static const char zeros[] = "part-000000000000000000000000000000000000000000000000000000000000"
                                "0000000000000000000009-0000-" UUID ".safetensors";
    (void)state;
    their_manifest(their_shard(THEIRS("0"), &x, 1, NULL), "",
                   "\"x\":{\"dtype\":\"F32\",\"shape\":[4,3]}");
    temp_write(zeros, "x", 1);
    sft_dataset_close(ds_open());
    char told[200];
    (void)snprintf(told, sizeof told, "does not name 1 of the shards in the folder, first %.95s; ",
                   zeros);
    if (!strstr(ds_warned, told)) fail_msg("%s", ds_warned);
}

/* ── Without a lock a manifest may come a moment later than its shards ── */

static int hidden; /* so many times the manifest is not there yet */

static sft_code late_open(void *ctx, const char *name, sft_source *source, sft_error *e) {
    if (hidden > 0 && strcmp(name, SFTI_DATASET_MANIFEST) == 0) {
        hidden--;
        return sft_error_set(e, SFT_NOT_FOUND, 0, "not yet");
    }
    return ds_storage.vtable->open(ctx, name, source, e);
}

static void late_manifest(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    const sft_commit_options how = { sizeof how, .mode = SFT_COMMIT_APPEND };
    sft_storage s = ds_storage;
    sft_commit *c = NULL;
    (void)state;
    storage_own(&s)->lock = NULL;
    storage_own(&s)->open = late_open;
    ds_batches();
    hidden = 4;
    assert_int_equal(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_OK);
    assert_int_equal(hidden, 0);
    ds_batch(c, 0, 0, 4, 4);
    hidden = 3;
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(hidden, 0);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    dataset_is(2, 3, 12);
    hidden = 1 << 20; /* it was deleted */
    says(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_MANIFEST_MISSING,
         "expected " SFTI_DATASET_MANIFEST " next to the shards, found none");
    hidden = 0;
    assert_int_equal(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_OK);
    hidden = 1 << 20;
    says(prepare(c), SFT_MANIFEST_MISSING, "next to the shards, found none");
    hidden = 0;
    done(c);
    sft_dataset_options_free(o);
}

/* A dataset of ours whose manifest does not say what names are made of. */
static void without_names(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    static char text[1 << 14];
    static const char *const fields[][2] = { { "\"name_col\":\"id\"", "name_col" },
                                             { "\"kv_separator\":\"__\"", "kv_separator" } };
    (void)state;
    for (int i = 0; i < 2; i++) {
        const sft_commit_options how = { sizeof how, .mode = SFT_COMMIT_APPEND };
        sft_commit *c = NULL;
        char why[80];
        make_kv(o, SFT_COMMIT_OVERWRITE, "a", 1);
        memset(text, 0, sizeof text);
        assert_true(temp_read(SFTI_DATASET_MANIFEST, text, sizeof text - 1) > 0);
        char *at = strstr(text, fields[i][0]);
        assert_non_null(at);
        at[1] = '_'; /* another field, which nobody knows */
        temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
        (void)snprintf(why, sizeof why, "%s: expected none as in the dataset, found ",
                       fields[i][1]);
        says(sft_commit_open(o, &ds_storage, NULL, &how, &c, &err), SFT_DATASET_DISAGREES, why);
    }
    sft_dataset_options_free(o);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(numbers_of_files), FOLDER_TEST(dropped_rows), FOLDER_TEST(other_columns),
        FOLDER_TEST(too_many_samples), FOLDER_TEST(broken_manifest), FOLDER_TEST(giving_up),
        FOLDER_TEST(their_columns),    FOLDER_TEST(their_forgotten), FOLDER_TEST(their_keys),
        FOLDER_TEST(without_names),    FOLDER_TEST(their_longest), FOLDER_TEST(their_valid_rows),
        FOLDER_TEST(their_long_names), FOLDER_TEST(late_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
