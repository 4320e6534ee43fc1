/* The manifest: ours and the connector's are read, ours is written, bad ones are refused. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"
#include "unit/storage_table.h"
#include "dataset/read/manifest.h"

static sft_error err;
static sfti_arena arena;
static sfti_ds_manifest m;

static sft_code parse(const char *text) {
    return sfti_ds_manifest_parse(sft_span_cstr(text), &arena, &m, &err);
}

static int make_arena(void **state) {
    (void)state;
    memset(&arena, 0, sizeof arena);
    arena.alloc = sfti_allocator(NULL);
    return 0;
}

static int free_arena(void **state) {
    (void)state;
    sfti_arena_free(&arena);
    return 0;
}

static bool span_is(sft_span span, const char *text) {
    return sft_span_equal(span, sft_span_cstr(text));
}

/* ── The connector's ── */

/* As Jackson prints it: spaces, its order of fields, shards not in our order. */
static const char connectors[] =
    "{\n  \"format_version\" : \"1.0\",\n  \"safetensors_version\" : \"1.0\",\n"
    "  \"total_samples\" : 25,\n  \"total_bytes\" : 3000,\n  \"shards\" : [ {\n"
    "    \"shard_path\" : \"part-00001-0000-11111111-2222-4333-8444-555555555555.safetensors\",\n"
    "    \"samples_count\" : 5,\n    \"bytes\" : 1000\n  }, {\n"
    "    \"shard_path\" : \"part-00000-0000-11111111-2222-4333-8444-555555555555.safetensors\",\n"
    "    \"samples_count\" : 20,\n    \"bytes\" : 2000\n  } ],\n"
    "  \"schema\" : {\n    \"x\" : {\n      \"dtype\" : \"F32\",\n      \"shape\" : [ 20, 3 ]\n"
    "    },\n    \"y\" : {\n      \"dtype\" : \"QX9\",\n      \"shape\" : [ ]\n    }\n  }\n}\n";

static void connector(void **state) {
    (void)state;
    assert_int_equal(parse(connectors), SFT_OK);
    assert_false(m.ours);
    assert_null(m.generator.data);
    assert_string_equal(m.commit, "");
    assert_int_equal(m.version, 0);
    assert_int_equal(m.mode, 0);
    assert_int_equal(m.total_samples, 25);
    assert_int_equal(m.total_valid, 25);
    assert_int_equal(m.total_bytes, 3000);
    assert_int_equal(m.keep_until, 0);
    assert_null(m.index.data);
    assert_int_equal(m.shard_count, 2);
    /* By name, and so are the samples. */
    assert_int_equal(m.shards[0].facts.samples, 20);
    assert_int_equal(m.shards[0].facts.first_sample, 0);
    assert_int_equal(m.shards[1].facts.first_sample, 20);
    assert_int_equal(m.shards[1].facts.valid_samples, 5);
    assert_int_equal(m.shards[1].facts.bytes, 1000);
    assert_null(m.shards[0].facts.sha256);
    assert_false(m.shards[0].known);
    assert_true(m.has_schema);
    assert_int_equal(m.entry_count, 2);
    assert_true(span_is(m.entries[0].key, "x") && span_is(m.entries[0].dtype, "F32"));
    assert_int_equal(m.entries[0].rank, 2);
    assert_int_equal(m.entries[0].shape[1], 3);
    assert_true(span_is(m.entries[1].dtype, "QX9"));
    assert_int_equal(m.entries[1].rank, 0);
}

#define HEAD "\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","

static void empty(void **state) {
    (void)state;
    assert_int_equal(parse("{" HEAD "\"total_samples\":0,\"total_bytes\":0,\"shards\":[]}"),
                     SFT_OK);
    assert_int_equal(m.shard_count, 0);
    assert_false(m.has_schema);
    assert_int_equal(parse("{" HEAD "\"total_samples\":0,\"total_bytes\":0,\"shards\":[ ],"
                           "\"schema\":{},\"more\":{\"of\":[1,{\"it\":null}]}}"), SFT_OK);
    assert_true(m.has_schema);
    assert_int_equal(m.entry_count, 0);
}

/* ── Ours ── */

static const char ours[] =
    "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
    "\"generator\":\"libsafetensors 9.9.9\",\"commit\":\"01234567-89ab-4def-8123-456789abcdef\","
    "\"row_order\":\"76543210-89ab-4def-8123-456789abcdef\","
    "\"version\":3,\"mode\":\"kv\",\"batch_size\":null,\"name_col\":\"id\","
    "\"kv_separator\":\"__\",\"tail_strategy\":null,\"index\":\"_tensor_index.parquet\","
    "\"keep_until\":1790000000,"
    "\"total_samples\":18446744073709551,\"total_valid_samples\":18446744073709550,"
    "\"total_bytes\":9007199254740993,"
    "\"columns\":{\"v\":{\"dtype\":\"BF16\",\"shape\":[2,3]},\"\xc3\xa9\\\"\":{\"dtype\":null,"
    "\"shape\":null},\"s\":{\"dtype\":\"BOOL\",\"shape\":[]}},"
    "\"schema\":{\"a__v\":{\"dtype\":\"BF16\",\"shape\":[2,3]}},"
    "\"shards\":[{\"shard_path\":\"a.safetensors\",\"samples_count\":7,\"bytes\":800,"
    "\"sha256\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
    "\"tensors\":14,\"first_sample\":5,\"valid_samples\":6,\"shadowed\":2},"
    "{\"shard_path\":\"b.safetensors\",\"samples_count\":5,\"bytes\":900,\"sha256\":null,"
    "\"tensors\":10,\"first_sample\":0,\"valid_samples\":5,\"shadowed\":0}]}";

static void own(void **state) {
    (void)state;
    assert_int_equal(parse(ours), SFT_OK);
    assert_true(m.ours);
    assert_string_equal(m.commit, "01234567-89ab-4def-8123-456789abcdef");
    assert_string_equal(m.row_order, "76543210-89ab-4def-8123-456789abcdef");
    assert_int_equal(m.version, 3);
    assert_int_equal(m.mode, SFT_DATASET_KV);
    assert_int_equal(m.batch_size, 0);
    assert_true(span_is(m.name_col, "id") && span_is(m.separator, "__"));
    assert_null(m.tail.data);
    assert_true(span_is(m.index, "_tensor_index.parquet"));
    assert_int_equal(m.keep_until, 1790000000);
    assert_int_equal(m.total_samples, 18446744073709551);
    assert_int_equal(m.total_valid, 18446744073709550);
    assert_int_equal(m.total_bytes, 9007199254740993);
    assert_int_equal(m.column_count, 3);
    assert_true(m.columns[0].has_dtype && m.columns[0].dtype == SFT_BF16);
    assert_int_equal(m.columns[0].rank, 2);
    assert_false(m.columns[1].has_dtype || m.columns[1].has_shape);
    assert_true(span_is(m.columns[1].name, "\xc3\xa9\""));
    assert_true(m.columns[2].has_shape);
    assert_int_equal(m.columns[2].rank, 0);
    assert_int_equal(m.shards[0].facts.first_sample, 5);
    assert_int_equal(m.shards[0].facts.valid_samples, 6);
    assert_int_equal(m.shards[0].facts.shadowed, 2);
    assert_int_equal(m.shards[0].facts.tensors, 14);
    assert_int_equal(strlen(m.shards[0].facts.sha256), 64);
    assert_true(m.shards[0].known && m.shards[1].known);
    assert_null(m.shards[1].facts.sha256);
}

/* What is written is read, and written again identically. */
static void written(void **state) {
    sft_buffer text = { .alloc = sfti_allocator(NULL) };
    (void)state;
    assert_int_equal(parse(ours), SFT_OK);
    assert_int_equal(sfti_ds_manifest_write(&m, &text, &err), SFT_OK);
    assert_int_equal(text.len, sizeof ours - 1);
    assert_memory_equal(text.data, ours, text.len);
    sft_buffer_free(&text);
}

/* ── Bad ones ── */

#define REST "\"total_samples\":0,\"total_bytes\":0"
#define WITH(fields) "{" HEAD REST "," fields "}"
#define SHARD(fields) WITH("\"shards\":[{" fields "}]")
#define PATH(path) SHARD("\"shard_path\":" path ",\"samples_count\":1,\"bytes\":2")

static void paths(void **state) {
    static const char *const refused[] = {
        PATH("\"../x.safetensors\""), PATH("\"..\""), PATH("\".\""), PATH("\"\""),
        PATH("\"/etc/passwd\""), PATH("\"a/b.safetensors\""), PATH("\"a\\\\b.safetensors\""),
        PATH("\"a\\u0000.safetensors\""), PATH("\"a\\u002fb\""), PATH("3"), PATH("null"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (parse(refused[i]) != SFT_MANIFEST_TYPE) fail_msg("taken: %s", refused[i]);
    assert_int_equal(parse(PATH("\"../x.safetensors\"")), SFT_MANIFEST_TYPE);
    assert_string_equal(err.message,
                        "expected the name of a file in this folder, found \"../x.safetensors\"");
    assert_int_equal(parse(PATH("\"a..b.safetensors\"")), SFT_OK);
}

static void bad(void **state) {
    static const char *const texts[] = {
        "[]", "\"x\"", "{\"shards\":[]}", "{" HEAD REST "}",
        "{" HEAD "\"total_bytes\":0,\"shards\":[]}", "{" HEAD "\"total_samples\":0,\"shards\":[]}",
        "{\"safetensors_version\":\"1.0\"," REST ",\"shards\":[]}",
        "{\"format_version\":\"2.0\",\"safetensors_version\":\"1.0\"," REST ",\"shards\":[]}",
        WITH("\"shards\":{}"), WITH("\"shards\":[1]"), WITH("\"shards\":[[]]"),
        WITH("\"shards\":[],\"shards\":[]"), WITH("\"shards\":[],\"mode\":\"rows\""),
        WITH("\"shards\":[],\"commit\":\"1\""), WITH("\"shards\":[],\"index\":\"other.parquet\""),
        WITH("\"shards\":[],\"version\":-1"), WITH("\"shards\":[],\"version\":1.0"),
        WITH("\"shards\":[],\"version\":18446744073709551616"),
        WITH("\"shards\":[],\"columns\":[]"),
        WITH("\"shards\":[],\"columns\":{\"a\":{\"dtype\":\"F33\",\"shape\":null}}"),
        WITH("\"shards\":[],\"columns\":{\"a\":{\"dtype\":\"F32\"}}"),
        WITH("\"shards\":[],\"columns\":{\"a\":{\"shape\":null}}"),
        WITH("\"shards\":[],\"schema\":{\"a\":{\"dtype\":\"F32\"}}"),
        WITH("\"shards\":[],\"schema\":{\"a\":{\"shape\":[]}}"),
        WITH("\"shards\":[],\"schema\":{\"a\":{\"dtype\":\"F32\",\"shape\":[-1]}}"),
        WITH("\"shards\":[],\"schema\":{\"a\":{\"dtype\":\"F32\",\"shape\":3}}"),
        SHARD("\"shard_path\":\"a\",\"samples_count\":1"),
        SHARD("\"shard_path\":\"a\",\"bytes\":1"), SHARD("\"samples_count\":1,\"bytes\":1"),
        SHARD("\"shard_path\":\"a\",\"samples_count\":1,\"bytes\":1,\"sha256\":\"12\""),
        SHARD("\"shard_path\":\"a\",\"samples_count\":1,\"bytes\":1,\"valid_samples\":2"),
        SHARD("\"shard_path\":\"a\",\"samples_count\":\"1\",\"bytes\":1"),
        SHARD("\"shard_path\":\"a\",\"samples_count\":1,\"bytes\":1,\"bytes\":2"),
        WITH("\"shards\":[{\"shard_path\":\"a\",\"samples_count\":1,\"bytes\":1},"
             "{\"shard_path\":\"a\",\"samples_count\":2,\"bytes\":1}]"),
        WITH("\"shards\":[{\"shard_path\":\"a\",\"samples_count\":18446744073709551615,"
             "\"bytes\":1},{\"shard_path\":\"b\",\"samples_count\":1,\"bytes\":1}]"),
        "{" HEAD REST ",\"shards\":[]}{", "{\"a\xff\":1}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (parse(texts[i]) != SFT_MANIFEST_TYPE) fail_msg("taken: %s", texts[i]);
        if (!err.message[0]) fail_msg("no message: %s", texts[i]);
    }
}

/* Truncated anywhere it is refused, and nothing is read beyond its end. */
static void cut(void **state) {
    (void)state;
    for (size_t len = 0; len + 1 < sizeof ours; len++) {
        char *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, ours, len);
        sft_code code = sfti_ds_manifest_parse((sft_span){ copy, len }, &arena, &m, &err);
        free(copy);
        if (code != SFT_MANIFEST_TYPE) fail_msg("taken at %zu", len);
    }
}

static size_t texts_wanted; /* opens that would have had to make the text of an error */

static sft_code counting_open(void *ctx, const char *name, sft_source *out, sft_error *e) {
    texts_wanted += e != NULL;
    return ds_storage.vtable->open(ctx, name, out, e);
}

/* It is told to whoever reads a manifest. For who looks whether there is one it is an answer, of
 * which no text is made; what fails otherwise says why. */
static void missing(void **state) {
    sft_storage s = ds_storage;
    sft_error untouched = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sfti_ds_manifest_read(&ds_storage, &arena, &m, &err), SFT_MANIFEST_MISSING);
    assert_string_equal(err.message,
                        "expected " SFTI_DATASET_MANIFEST " in the folder, found none");
    storage_own(&s)->open = counting_open;
    texts_wanted = 0;
    assert_int_equal(sfti_ds_manifest_seek(&s, &arena, NULL, &m, NULL, &untouched),
                     SFT_MANIFEST_MISSING);
    assert_int_equal(untouched.code, SFT_OK);
    assert_int_equal(texts_wanted, 0);
    assert_int_equal(mkdir(temp_path(SFTI_DATASET_MANIFEST), 0777), 0);
    assert_int_equal(sfti_ds_manifest_seek(&s, &arena, NULL, &m, NULL, &err), SFT_IO_NOT_FILE);
    assert_string_equal(err.message, "expected a file, found a folder");
    assert_int_equal(texts_wanted, 1);
    assert_int_equal(rmdir(temp_path(SFTI_DATASET_MANIFEST)), 0);
    temp_write(SFTI_DATASET_MANIFEST, connectors, sizeof connectors - 1);
    assert_int_equal(sfti_ds_manifest_read(&ds_storage, &arena, &m, &err), SFT_OK);
    assert_int_equal(m.total_samples, 25);
}

/* ── Names ── */

#define UUID "01234567-89ab-4def-8123-456789abcdef"

static void names(void **state) {
    char name[SFTI_DATASET_NAME], uuid[37], other[37];
    uint64_t file = 9, shard = 9;
    sfti_ds_job job;
    (void)state;
    sfti_ds_shard_name(3, 1, UUID, name);
    assert_string_equal(name, "part-00003-0001-" UUID ".safetensors");
    assert_true(sfti_ds_shard_parse(sft_span_cstr(name), &file, &shard));
    assert_int_equal(file, 3);
    assert_int_equal(shard, 1);
    sfti_ds_shard_name(UINT64_MAX, UINT64_MAX, UUID, name);
    assert_true(sfti_ds_shard_parse(sft_span_cstr(name), &file, &shard));
    assert_true(file == UINT64_MAX && shard == UINT64_MAX);
    static const char *const others[] = {
        "part-0003-0001-" UUID ".safetensors", "part-00003-001-" UUID ".safetensors",
        "part-00003-0001-" UUID ".safetensor", "part-00003-0001-" UUID, "part-", "",
        "Part-00003-0001-" UUID ".safetensors", "part-00003-0001-" UUID ".safetensors.1",
        "part-00003-0001-0123456789abcdef0123456789abcdef0123.safetensors",
        "part-00003-0001-01234567-89AB-4def-8123-456789abcdef.safetensors",
        "part-99999999999999999999999-0001-" UUID ".safetensors",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (sfti_ds_shard_parse(sft_span_cstr(others[i]), &file, &shard))
            fail_msg("taken: %s", others[i]);
    assert_true(sfti_ds_is_job(sft_span_cstr("_job-" UUID)));
    assert_true(sfti_ds_is_job(sft_span_cstr("_job-" UUID "-index")));
    assert_false(sfti_ds_is_job(sft_span_cstr("_job-" UUID "-")));
    assert_false(sfti_ds_is_job(sft_span_cstr("_job-mine")));
    assert_int_equal(sfti_ds_uuid(uuid, &err), SFT_OK);
    assert_int_equal(sfti_ds_uuid(other, &err), SFT_OK);
    assert_string_not_equal(uuid, other);
    assert_int_equal(uuid[14], '4');
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr(UUID ":12"), &job, &err), SFT_OK);
    assert_string_equal(job.uuid, UUID);
    assert_int_equal(job.first, 12);
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr(UUID ":"), &job, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr(UUID ":1x"), &job, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr("x"), &job, &err), SFT_BAD_ARGUMENT);
}

/* ── Receipts ── */

#define JOB UUID ":0"
#define NAME "part-00003-0001-" UUID ".safetensors"

static sft_code read_receipts(const char *text, sfti_ds_receipt **all, size_t *count) {
    size_t cap = *count = 0;
    sfti_ds_job job;
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr(JOB), &job, &err), SFT_OK);
    return sfti_ds_receipts_read(sft_span_cstr(text), &job, &arena, all, count, &cap, &err);
}

static void receipts(void **state) {
    static const uint64_t shape[] = { 4, 5 };
    static const sfti_ds_column columns[] = {
        { .name = { "a", 1 }, .has_dtype = true, .dtype = SFT_I64, .has_shape = true, .rank = 2,
          .shape = shape },
        { .name = { "b\"", 2 } },
    };
    sfti_ds_receipt r = { .name = sft_span_cstr(NAME),
                          .stored = sft_span_cstr("_job-" UUID "/" NAME), .partition = 3,
                          .shard = 1, .bytes = 1000, .header_bytes = 104,
                          .samples = 9, .valid_samples = 8, .tensors = 2, .dropped = 5,
                          .column_count = 2, .columns = columns };
    sft_buffer text = { .alloc = sfti_allocator(NULL) };
    sfti_ds_receipt *all;
    sfti_ds_job other;
    size_t count, cap;
    (void)state;
    memset(r.sha256, 'a', 64);
    assert_true(sfti_buffer_put(&text, "[", 1));
    assert_int_equal(sfti_ds_receipt_write(&r, sft_span_cstr(JOB), &text, &err), SFT_OK);
    assert_true(sfti_buffer_put(&text, ",", 1));
    r.name = r.stored = sft_span_cstr("part-00004-0000-" UUID ".safetensors");
    assert_int_equal(sfti_ds_receipt_write(&r, sft_span_cstr(JOB), &text, &err), SFT_OK);
    assert_true(sfti_buffer_put(&text, "]\0", 2));
    assert_int_equal(read_receipts(text.data, &all, &count), SFT_OK);
    assert_int_equal(count, 2);
    assert_true(span_is(all[0].name, NAME));
    assert_true(span_is(all[0].stored, "_job-" UUID "/" NAME));
    assert_int_equal(all[0].partition, 3);
    assert_int_equal(all[0].shard, 1);
    assert_int_equal(all[0].bytes, 1000);
    assert_int_equal(all[0].header_bytes, 104);
    assert_int_equal(all[0].samples, 9);
    assert_int_equal(all[0].valid_samples, 8);
    assert_int_equal(all[0].tensors, 2);
    assert_int_equal(all[0].dropped, 5);
    assert_int_equal(all[0].column_count, 2);
    assert_true(all[0].columns[0].has_dtype && all[0].columns[0].dtype == SFT_I64);
    assert_int_equal(all[0].columns[0].shape[1], 5);
    assert_true(span_is(all[0].columns[1].name, "b\""));
    assert_false(all[0].columns[1].has_dtype || all[0].columns[1].has_shape);
    assert_true(span_is(all[1].stored, all[1].name.data));
    /* Of another job; and of a folder that is another's. */
    count = cap = 0;
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr(UUID ":1"), &other, &err), SFT_OK);
    assert_int_equal(sfti_ds_receipts_read((sft_span){ text.data, text.len - 1 }, &other, &arena,
                                           &all, &count, &cap, &err),
                     SFT_DATASET_RECEIPT);
    text.data[strlen("[{\"job\":\"" JOB "\",\"name\":\"" NAME "\",\"stored\":\"_job-")] = '9';
    assert_int_equal(read_receipts(text.data, &all, &count), SFT_DATASET_RECEIPT);
    sft_buffer_free(&text);
}

static void bad_receipts(void **state) {
    static const char *const texts[] = {
        "", "{}", "[", "[1]", "[{}]", "[]x", "[{\"job\":\"" JOB "\"}]",
        "[{\"job\":\"" JOB "\",\"name\":\"x\",\"stored\":\"x\"}]",
        "[{\"job\":\"" JOB "\",\"name\":\"" NAME "\",\"stored\":\"../" NAME "\"}]",
        "[{\"job\":\"" JOB "\",\"name\":\"" NAME "\",\"stored\":\"_job-" UUID "/x\"}]",
        "[{\"name\":\"" NAME "\",\"stored\":\"" NAME "\"}]",
        "[{\"job\":\"" JOB "\",\"name\":\"" NAME "\",\"stored\":\"" NAME "\",\"bytes\":-1}]",
        "[{\"job\":\"" JOB "\",\"name\":\"" NAME "\",\"stored\":\"" NAME "\",\"new\":1}]",
        "[{\"job\":\"" JOB "\",\"name\":\"" NAME "\",\"stored\":\"" NAME "\",\"sha256\":\"1\"}]",
        "[{\"job\":\"" JOB "\",\"name\":\"" NAME "\",\"stored\":\"" NAME
        "\",\"columns\":[{\"x\":1}]}]",
        "[{\"job\":\"" JOB "\",\"name\":\"" NAME "\",\"stored\":\"" NAME
        "\",\"columns\":[{\"dtype\":\"F33\"}]}]",
    };
    sfti_ds_receipt *all;
    size_t count;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (read_receipts(texts[i], &all, &count) != SFT_DATASET_RECEIPT)
            fail_msg("taken: %s", texts[i]);
    assert_int_equal(read_receipts("[]", &all, &count), SFT_OK);
    assert_int_equal(count, 0);
}

#define ARENA_TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, free_arena)

static int make_both(void **state) { return make_arena(state) || ds_make(state); }
static int free_both(void **state) { return free_arena(state) || ds_remove(state); }

/* Sums of shards that exceed 64 bits are refused when the manifest is read. */
static void sums(void **state) {
    static const char *const rows[] = {
        "\"samples_count\":18446744073709551615,\"bytes\":1",
        "\"samples_count\":1,\"bytes\":18446744073709551615",
        "\"samples_count\":1,\"bytes\":1,\"tensors\":18446744073709551615",
        "\"samples_count\":1,\"bytes\":1,\"shadowed\":18446744073709551615",
        "\"samples_count\":1,\"bytes\":1,\"first_sample\":18446744073709551615",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1000];
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_ds_manifest m;
        sft_error e = SFT_ERROR_INIT;
        int len = snprintf(text, sizeof text,
                           "{\"generator\":\"libsafetensors 0.1\",\"format_version\":\"1.0\","
                           "\"safetensors_version\":\"1.0\",\"total_samples\":1,"
                           "\"total_bytes\":1,\"shards\":["
                           "{\"shard_path\":\"a.safetensors\",%s},"
                           "{\"shard_path\":\"b.safetensors\",\"samples_count\":1,\"bytes\":1,"
                           "\"tensors\":1,\"shadowed\":1}]}", rows[i]);
        sft_span span = { text, (size_t)len };
        assert_int_equal(sfti_ds_manifest_parse(span, &arena, &m, &e), SFT_MANIFEST_TYPE);
        if (!strstr(e.message, "within 64 bits") && !strstr(e.message, "samples_count"))
            fail_msg("%s", e.message);
        sfti_arena_free(&arena);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        ARENA_TEST(connector), ARENA_TEST(empty),   ARENA_TEST(own),
        ARENA_TEST(written),   ARENA_TEST(paths),   ARENA_TEST(bad),
        ARENA_TEST(cut),       ARENA_TEST(names),   ARENA_TEST(receipts),
        ARENA_TEST(bad_receipts),
        cmocka_unit_test_setup_teardown(missing, make_both, free_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
