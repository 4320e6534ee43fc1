/* What is wrong in the JSON of manifests, receipts and columns, each with its message; names of
 * files; sums. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"
#include "dataset/read/manifest.h"

static sft_error err;
static sfti_arena arena;
static sfti_ds_manifest m;

static int make_arena(void **state) {
    (void)state;
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    return 0;
}

static int free_arena(void **state) {
    (void)state;
    sfti_arena_free(&arena);
    return 0;
}

static void says(sft_code code, sft_code wanted, const char *why, const char *text) {
    if (code != wanted) fail_msg("%d of %s", (int)code, text);
    if (!strstr(err.message, why)) fail_msg("expected %s\nfound %s\nof %s", why, err.message, text);
}

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UPPER "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"
#define REST ",\"safetensors_version\":\"1.0\",\"total_samples\":0,\"total_bytes\":0"
#define ONE(fields) "{\"format_version\":\"1.0\"" REST ",\"shards\":[]," fields "}"
#define TWO(fields) "{\"format_version\":\"2.0\"" REST ",\"commit\":\"" UUID "\"," fields "}"
#define THREE(fields) "{\"format_version\":\"3.0\"" REST ",\"commit\":\"" UUID "\"," fields "}"
#define SEGMENT(digest, shards) \
    "{\"sha256\":\"" digest "\",\"bytes\":1,\"shards\":" shards "}"
#define MASKS(digest) "\"features\":[\"deleted\"],\"shards\":[],\"deleted\":{\"sha256\":\"" digest \
    "\",\"bytes\":1,\"shards\":1,\"count\":1}"
#define SHARD(name, more) "{\"shard_path\":\"" name "\",\"bytes\":1," more "}"
#define EIGHT "1,1,1,1,1,1,1,1,"
#define SIXTEEN EIGHT EIGHT

/* ── Manifests ── */

static void manifests(void **state) {
    static const struct {
        const char *text, *why;
    } all[] = {
        { ONE("\"commit\":\"" UUID "\",\"numbered_commits\":1"), "expected true or false" },
        { ONE("\"index_commit\":null"), "expected a string" },
        { ONE("\"history\":\"0123456789abcdef0123456789abcdef0123\""), "expected a uuid" },
        { ONE("\"index\":5"), "expected a string or null" },
        { ONE("\"mode\":5"), "expected a string" },
        { ONE("\"batch_size\":\"5\""), "expected a whole number or null" },
        { ONE("\"batches\":[]"), "expected an object" },
        { ONE("\"batches\":{\"a\":\"1\"}"), "expected the number of a batch" },
        { ONE("\"batches\":{\"a\":1 2}"), "expected ',' or '}'" },
        { ONE("\"batches\":{\"a\":1,\"a\":2}"), "expected each stream once" },
        { ONE("\"schema\":[]"), "expected an object" },
        { ONE("\"schema\":{\"a\":1}"), "expected an object" },
        { ONE("\"schema\":{\"a\":{\"dtype\":null,\"shape\":[1]}}"), "dtype and shape before" },
        { ONE("\"schema\":{\"a\":{\"dtype\":\"F32\",\"shape\":null}}"), "dtype and shape before" },
        { ONE("\"schema\":{\"a\":{\"dtype\":\"F32\",\"shape\":[" SIXTEEN SIXTEEN SIXTEEN SIXTEEN
              "1]}}"), "expected an array of at most 64 whole numbers" },
        { ONE("\"columns\":{\"a\":{\"dtype\":\"F32\",\"shape\":null,\"nullable\":1}}"),
          "expected true or false" },
        { ONE("\"columns\":{\"a\":{\"dtype\":\"F32\",\"shape\":null,\"encoding\":\"x\"}}"),
          "expected a known encoding" },
        { ONE("\"columns\":{\"a\":{\"dtype\":null,\"shape\":null,\"encoding\":\"nested\"}}"),
          "expected a nested column with a type" },
        { ONE("\"columns\":{\"a\":{\"dtype\":\"F32\",\"shape\":null,\"encoding\":\"nested\","
              "\"type\":\"list<float>\"}}"), "expected a nested column with a type" },
        { ONE("\"columns\":{\"a\":{\"dtype\":null,\"shape\":[1],\"encoding\":\"nested\","
              "\"type\":\"list<float>\"}}"), "expected a nested column with a type" },
        { ONE("\"columns\":{\"a\":{\"dtype\":null,\"shape\":null,\"encoding\":\"list\"}}"),
          "expected a column of varying length" },
        { ONE("\"columns\":{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"encoding\":\"list\"}}"),
          "expected a column of varying length" },
        { ONE("\"columns\":{\"a\":{\"dtype\":\"F32\",\"shape\":null,\"encoding\":\"utf8\"}}"),
          "expected a column of varying length" },
        { "{\"format_version\":1}", "expected a string" },
        { "{\"format_version\":\"1\"}", "expected format_version 1.0, 2.0 or 3.0" },
        { "{\"format_version\":\"4.0\"}", "expected format_version 1.0, 2.0 or 3.0" },
        { "{\"format_version\":\"10\"}", "expected format_version 1.0, 2.0 or 3.0" },
        { "{\"safetensors_version\":1}", "expected a string" },
        { "{\"safetensors_version\":\"1\"}", "expected safetensors_version 1.0" },
        { "{\"safetensors_version\":\"2.0\"}", "expected safetensors_version 1.0" },
        { TWO("\"segments\":{}"), "expected an array" },
        { TWO("\"segments\":[1]"), "expected an object" },
        { TWO("\"segments\":[{\"sha256\":5}]"), "expected a string" },
        { TWO("\"segments\":[{\"sha256\":\"5\"}]"), "expected 64 hexadecimal digits" },
        { TWO("\"segments\":[" SEGMENT(UPPER, "0") "]"), "expected 64 hexadecimal digits" },
        { TWO("\"segments\":[" SEGMENT(DIGEST, "0") "," SEGMENT(DIGEST, "0") "]"),
          "expected each segment once, found " DIGEST " again" },
        { TWO("\"total_shards\":3,\"segments\":[" SEGMENT(DIGEST, "1") "," SEGMENT(OTHER, "1") "]"),
          "expected 3 shards in the segments, found 2" },
        { TWO("\"total_rows\":3,\"total_padding\":4,\"segments\":[]"),
          "expected at most 3 rows of padding, found 4" },
        { TWO("\"total_rows\":9223372036854775808,\"segments\":[]"),
          "total_rows: expected a number below 2^63, found 9223372036854775808" },
        { TWO("\"shards\":[]"), "expected the field \"segments\", found none" },
        { TWO("\"shards\":[],\"segments\":[]"),
          "expected no field \"shards\" in format_version 2.0" },
        { TWO("\"features\":[],\"segments\":[]"), "expected \"features\" in format_version 3.0" },
        { THREE("\"shards\":[]"), "expected \"features\" in format_version 3.0" },
        { THREE("\"features\":{},\"shards\":[]"), "expected an array" },
        { THREE("\"features\":[1],\"shards\":[]"), "expected text" },
        { THREE("\"features\":[\"rows\"],\"shards\":[]"),
          "expected \"deleted\" or \"columns\" of features, and of others a newer version of "
          "libsafetensors, found \"rows\"" },
        { THREE("\"features\":[\"d\\u0065leted\"],\"shards\":[]"), "expected \"deleted\" or" },
        { THREE("\"features\":[\"deleted\"],\"shards\":[],\"deleted\":[]"), "expected an object" },
        { THREE("\"features\":[\"columns\"],\"shards\":[],\"places\":[]"), "expected an object" },
        { THREE(MASKS(UPPER)), "expected 64 hexadecimal digits" },
        { THREE("\"features\":[\"columns\"],\"shards\":[],\"places\":{\"sha256\":\"" UPPER "\"}"),
          "expected 64 hexadecimal digits" },
        { ONE("\"deleted\":{\"sha256\":\"" DIGEST "\",\"bytes\":1,\"shards\":1,\"count\":1}"),
          "and \"deleted\" and \"places\" there" },
        { THREE("\"features\":[],\"segments\":[],\"shards\":[]"),
          "expected no field \"segments\" in format_version 3.0" },
        { "{\"format_version\":\"2.0\"" REST ",\"segments\":[]}",
          "expected the field \"commit\", found none" },
        { ONE("\"total_valid_samples\":9223372036854775808"),
          "total_valid_samples: expected a number below 2^63" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        says(sfti_ds_manifest_parse(sft_span_cstr(all[i].text), &arena, &m, &err),
             SFT_MANIFEST_TYPE, all[i].why, all[i].text);
    assert_int_equal(sfti_ds_manifest_parse(sft_span_cstr(THREE(MASKS(DIGEST))), &arena, &m, &err),
                     SFT_OK);
    assert_int_equal(m.masks.deleted, 1);
    assert_int_equal(sfti_ds_manifest_parse(
        sft_span_cstr(ONE("\"numbered_commits\":false,\"generator\":\"lib\"")), &arena, &m, &err),
        SFT_OK);
    assert_false(m.numbered || m.ours);
    assert_int_equal(sfti_ds_manifest_parse(
        sft_span_cstr(ONE("\"columns\":{\"a\":{\"dtype\":null,\"shape\":null,\"nullable\":false,"
                          "\"optional\":true}}")), &arena, &m, &err), SFT_OK);
    assert_true(!m.columns[0].nullable && m.columns[0].optional);
}

/* Names and sums of shards. */
static void shards(void **state) {
    static const char first[] = ONE("\"x\":0");
    static const char last[] =
        "{\"format_version\":\"1.0\"" REST ",\"generator\":\"libsafetensors 1\",\"shards\":["
        SHARD("part-18446744073709551615-0000-" UUID ".safetensors", "\"samples_count\":3") ","
        SHARD("part-00007-0000-" UUID ".safetensors", "\"samples_count\":5,\"first_sample\":3")
        "]}";
    (void)state;
    assert_int_equal(sfti_ds_manifest_parse(sft_span_cstr(first), &arena, &m, &err), SFT_OK);
    assert_int_equal(m.sums.next_file, 0);
    assert_int_equal(sfti_ds_manifest_parse(sft_span_cstr(last), &arena, &m, &err), SFT_OK);
    assert_int_equal(m.sums.next_file, 8); /* there is no number behind the greatest */
    assert_int_equal(m.sums.largest, 5);
    assert_int_equal(m.sums.rows, 8);
}

static void sums(void **state) {
    const sft_dataset_shard one = { .name = "a", .bytes = 1, .samples = 3, .valid_samples = 2,
                                    .tensors = 1, .shadowed = 1 };
    const sfti_ds_sums told = { .shards = 1, .bytes = 1, .rows = 3, .padding = 1, .tensors = 1,
                                .shadowed = 1, .largest = 3 };
    sfti_ds_sums full[6], unlike[5], s = { .shards = 0 };
    (void)state;
    assert_true(sfti_ds_sums_add(&s, &one));
    assert_memory_equal(&s, &told, sizeof s);
    assert_int_equal(sfti_ds_sums_check(&s, &told, &err), SFT_OK);
    for (int i = 0; i < 6; i++) full[i] = told;
    full[0].shards = full[1].bytes = full[2].rows = full[3].padding = full[4].tensors =
        full[5].shadowed = UINT64_MAX;
    for (int i = 0; i < 6; i++) assert_false(sfti_ds_sums_add(&full[i], &one));
    s = told;
    s.rows = INT64_MAX - 2;
    assert_false(sfti_ds_sums_add(&s, &one)); /* rows are numbered below 2^63 */
    for (int i = 0; i < 5; i++) unlike[i] = told;
    unlike[0].shards++, unlike[1].rows++, unlike[2].padding++, unlike[3].tensors++;
    unlike[4].shadowed++;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sfti_ds_sums_check(&unlike[i], &told, &err), SFT_MANIFEST_TYPE);
        assert_string_equal(err.message, "expected totals of the segments' shards, found others");
    }
}

/* ── Receipts, and the columns of a job ── */

#define JOB UUID ":0"
#define NAME "part-00003-0001-" UUID ".safetensors"
#define ZEROS "000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
#define LONG "part-" ZEROS "3-0001-" UUID ".safetensors"
#define RECEIPT(fields) "[{\"job\":\"" JOB "\"," fields "}]"

static void receipts(void **state) {
    static const struct {
        const char *text, *why; /* NULL: is one */
    } all[] = {
        { "[{\"job\":5}]", "expected a string" },
        { "[{\"job\":\"" UUID ":1\"}]", "expected a receipt of this job" },
        { RECEIPT("\"columns\":5"), "expected an array" },
        { RECEIPT("\"columns\":[5]"), "expected ']'" },
        { RECEIPT("\"columns\":[],\"name\":\"" NAME "\""), "expected a shard of this job" },
        { RECEIPT("\"stored\":\"" NAME "\""), "expected a shard of this job" },
        { RECEIPT("\"name\":\"x\",\"stored\":\"x\""), "expected a shard of this job" },
        { RECEIPT("\"name\":\"" NAME "\",\"stored\":\"_job-" UUID "/" LONG "\""),
          "expected a shard of this job" },
        { RECEIPT("\"name\":\"" LONG "\",\"stored\":\"_job-" UUID "/" LONG "\""),
          "expected a shard of this job" },
        { RECEIPT("\"name\":\"" LONG "\",\"stored\":\"" LONG "\""),
          "expected a shard of this job" },
        { RECEIPT("\"name\":\"" NAME "\",\"stored\":\"_job-" UUID "/" NAME "\""), NULL },
        { RECEIPT("\"name\":\"" NAME "\",\"stored\":\"" NAME "\""), NULL },
        { RECEIPT("\"dropped\":0"), "expected a shard of this job" },
        { RECEIPT("\"dropped\":2,\"bytes\":1"), "expected a shard of this job" },
        { RECEIPT("\"dropped\":2,\"tensors\":1"), "expected a shard of this job" },
        { RECEIPT("\"dropped\":2"), NULL },
        { "[1]", "expected the end of the receipts" },
        { "[] []", "expected nothing but white space after the value, found an array" },
        { "[\"\xff\"]", "expected UTF-8, found byte 0xff" },
    };
    sfti_ds_receipt *found = NULL;
    sfti_ds_job job;
    (void)state;
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr(JOB), &job, &err), SFT_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t count = 0, cap = 0;
        sft_code code = sfti_ds_receipts_read(sft_span_cstr(all[i].text), &job, &arena, &found,
                                              &count, &cap, &err);
        if (all[i].why) says(code, SFT_DATASET_RECEIPT, all[i].why, all[i].text);
        else if (code || count != 1) fail_msg("%s of %s", err.message, all[i].text);
    }
}

static void columns(void **state) {
    static const struct {
        const char *text, *why;
    } all[] = {
        { "{}", "expected an array" }, { "[1]", "expected ']'" },
        { "[{\"name\":\"a\"}] 1", "expected nothing but white space after the value, found 1" },
        { "[{\"what\":1}]", "expected a known field" }, { "\xff", "expected UTF-8" },
    };
    const sfti_ds_column *found;
    size_t count;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        says(sfti_ds_columns_read(sft_span_cstr(all[i].text), &arena, &found, &count, &err),
             SFT_BAD_ARGUMENT, all[i].why, all[i].text);
    assert_int_equal(sfti_ds_columns_read(sft_span_cstr("[]"), &arena, &found, &count, &err),
                     SFT_OK);
    assert_int_equal(count, 0);
}

/* ── Names of files ── */

static void names(void **state) {
    static const struct {
        const char *name;
        bool shard, job, addressed, segment, version, commit;
    } all[] = {
        { .name = "part-00003-0001-" UUID ".safetensors", .shard = true },
        { .name = "part-00003x0001-" UUID ".safetensors" },
        { .name = "part-00003-0001x" UUID ".safetensors" },
        { .name = "part-00003-0001-" UUID ".Safetensors" },
        { .name = "_job-" UUID, .job = true },
        { .name = "_job-0123456789abcdef" },
        { .name = "_job-0123456789abcdef0123456789abcdef0123" },
        { .name = ".dataset_segment-" DIGEST, .addressed = true, .segment = true },
        { .name = ".dataset_segment-" UPPER },
        { .name = ".dataset_segment-" DIGEST "0" },
        { .name = ".dataset_masks-" DIGEST, .addressed = true },
        { .name = ".dataset_masks-" UPPER },
        { .name = ".dataset_masks-0123" },
        { .name = ".dataset_columns-" DIGEST, .addressed = true },
        { .name = ".dataset_version-7-" UUID, .version = true },
        { .name = ".dataset_version-07-" UUID },
        { .name = ".dataset_version-" UUID },
        { .name = ".dataset_version-x-" UUID },
        { .name = ".dataset_version-7" UUID },
        { .name = ".dataset_version-7-" UUID "0" },
        { .name = ".dataset_version-7-0123456789abcdef0123456789abcdef0123" },
        { .name = ".dataset_manifest.commit-4-none", .commit = true },
        { .name = ".dataset_manifest.commit-4-0123456789abcdef", .commit = true },
        { .name = ".dataset_manifest.commit-4-0123456789ABCDEF" },
        { .name = ".dataset_manifest.commit-4-0123" },
        { .name = ".dataset_manifest.commit-4none" },
        { .name = ".dataset_manifest.commit-x-none" },
    };
    uint64_t a, b;
    sft_span history;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const sft_span name = sft_span_cstr(all[i].name);
        if (sfti_ds_shard_parse(name, &a, &b) != all[i].shard ||
            sfti_ds_is_job(name) != all[i].job ||
            sfti_ds_is_addressed(name) != all[i].addressed ||
            sfti_ds_is_segment(name) != all[i].segment ||
            sfti_ds_is_version(name, &a, &history) != all[i].version ||
            sfti_ds_is_commit_file(name, &a) != all[i].commit)
            fail_msg("%s", all[i].name);
    }
}

static void jobs(void **state) {
    static const char *const bad[] = { "", UUID, UUID ":", UUID "1:1", UUID ":1x", UUID ":x",
                                       "0123456789abcdef0123456789abcdef0123:1", UUID ";12" };
    sfti_ds_job job;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        says(sfti_ds_job_parse(sft_span_cstr(bad[i]), &job, &err), SFT_BAD_ARGUMENT,
             "expected the text of sft_commit_job, found \"", bad[i]);
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr(UUID ":7:[]"), &job, &err), SFT_OK);
    assert_int_equal(job.first, 7);
    assert_true(sft_span_equal(job.id, sft_span_cstr(UUID ":7")));
    assert_true(sft_span_equal(job.columns, sft_span_cstr("[]")));
}

/* ── Types of nested columns ── */

static void types(void **state) {
    static const struct {
        const char *text;
        size_t nodes; /* 0: is none */
    } all[] = {
        { "struct<a: int32>", 2 }, { "struct<a: int32, \"b \\\"\\u001f\": list<string>>", 4 },
        { "fixed_size_list<float>[3]", 2 }, { "list<fixed_size_binary[4]>", 2 },
        { "list<timestamp[us, tz=Z_9:a]>", 2 }, { "struct<A_9z: bool>", 2 }, { "list<BF16>", 2 },
        { "", 0 }, { "struct<", 0 }, { "struct<>", 0 }, { "struct<a int32>", 0 },
        { "struct<a: int32", 0 }, { "struct<a: int32>>", 0 }, { "struct<a: int32; b: bool>", 0 },
        { "struct<: int32>", 0 }, { "struct<\"a: int32>", 0 }, { "struct<\"a\\u00\": int32>", 0 },
        { "struct<\"a\\", 0 }, { "list<int32, int32>", 0 }, { "list<int33>", 0 },
        { "list<timestamp[us>", 0 }, { "list<fixed_size_binary[]>", 0 },
        { "list<fixed_size_binary[4>", 0 }, { "list<fixed_size_binary[x]>", 0 },
        { "fixed_size_list<float>[x]", 0 }, { "fixed_size_list<float>[3", 0 },
        { "list<@>", 0 }, { "list<[>", 0 }, { "list<{>", 0 }, { "list<`>", 0 }, { "list</>", 0 },
        { "list<fixed_size_binary[4:]>", 0 }, { "list<fixed_size_binary[", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_ds_inner *found;
        size_t count;
        sft_code code = sfti_ds_type_parse(sft_span_cstr("x"), sft_span_cstr(all[i].text), &arena,
                                           &found, &count, &err);
        if (!all[i].nodes) says(code, SFT_BAD_ARGUMENT, "column x: expected a type", all[i].text);
        else if (code || count != all[i].nodes) fail_msg("%zu of %s", count, all[i].text);
    }
}

/* ── Columns compared ── */

static sfti_ds_column column(const char *type, sfti_ds_encoding encoding) {
    sfti_ds_column c = { .name = { "x", 1 }, .has_dtype = true, .dtype = SFT_F32,
                         .has_shape = encoding == SFTI_ENCODING_FIXED, .encoding = encoding };
    if (type) c.type = sft_span_cstr(type);
    return c;
}

static void compared(void **state) {
    static const uint64_t two[] = { 2, 2 };
    const sfti_ds_column list = column("list<float>", SFTI_ENCODING_LIST),
                         text = column("string", SFTI_ENCODING_UTF8),
                         other = column("binary", SFTI_ENCODING_BINARY),
                         nested = column("list<list<float>>", SFTI_ENCODING_NESTED),
                         date = column("date32[day]", SFTI_ENCODING_FIXED),
                         one = column(NULL, SFTI_ENCODING_FIXED);
    sfti_ds_column a = one, b = one;
    (void)state;
    assert_true(sfti_ds_columns_same(&a, &b, 1));
    b.nullable = true;
    assert_false(sfti_ds_columns_same(&a, &b, 1));
    b = a, b.encoding = SFTI_ENCODING_LIST;
    assert_false(sfti_ds_columns_same(&a, &b, 1));
    b = a, b.type = sft_span_cstr("float");
    assert_false(sfti_ds_columns_same(&a, &b, 1));
    b = a, b.dtype = SFT_F64;
    assert_false(sfti_ds_columns_same(&a, &b, 1));
    b = a, b.has_dtype = false;
    assert_false(sfti_ds_columns_same(&a, &b, 1));
    b = a, b.has_shape = false;
    assert_false(sfti_ds_columns_same(&a, &b, 1));
    b = a, b.rank = 2, b.shape = two;
    assert_false(sfti_ds_columns_same(&a, &b, 1));

    /* A list that has one length in one shard is of one dimension there. */
    assert_true(sfti_ds_column_kin(&list, &list));
    assert_false(sfti_ds_column_kin(&text, &other));
    assert_false(sfti_ds_column_kin(&text, &list));
    b = list, b.dtype = SFT_F64;
    assert_false(sfti_ds_column_kin(&list, &b));
    b = list, b.has_dtype = false;
    assert_false(sfti_ds_column_kin(&b, &list));
    assert_true(sfti_ds_column_kin(&b, &b));
    b = one, b.rank = 2, b.shape = two;
    assert_false(sfti_ds_column_kin(&list, &b));
    assert_false(sfti_ds_column_kin(&b, &list));
    b.rank = 1;
    assert_true(sfti_ds_column_kin(&list, &b));
    b.has_shape = false;
    assert_true(sfti_ds_column_kin(&b, &list));
    assert_true(sfti_ds_column_kin(&nested, &nested));
    assert_false(sfti_ds_column_kin(&nested, &list)); /* of another type */
    assert_false(sfti_ds_column_kin(&date, &one));

    assert_true(sfti_ds_column_asked(&one, &one));
    assert_false(sfti_ds_column_asked(&text, &one));
    assert_false(sfti_ds_column_asked(&one, &text));
    assert_true(sfti_ds_column_asked(&date, &one)); /* one shard does not say its type */
    assert_true(sfti_ds_column_asked(&one, &date));
    assert_false(sfti_ds_column_asked(&date, &nested));

    says(sfti_ds_column_agrees(&one, &date, &err), SFT_DATASET_DISAGREES,
         "column x: expected date32[day] as in the dataset, found F32", "agrees");
    b = one, b.has_dtype = false;
    says(sfti_ds_column_agrees(&date, &b, &err), SFT_DATASET_DISAGREES,
         "column x: expected another type as in the dataset, found date32[day]", "agrees");
    says(sfti_ds_column_agrees(&list, &one, &err), SFT_DATASET_DISAGREES,
         "column x: expected rows of one shape as in the dataset, found lists of different lengths",
         "agrees");
    b = one, b.rank = 2, b.shape = two;
    says(sfti_ds_column_agrees(&b, &list, &err), SFT_DATASET_DISAGREES,
         "expected lists as in the dataset, found rows of one shape", "agrees");
    says(sfti_ds_column_agrees(&text, &nested, &err), SFT_DATASET_DISAGREES,
         "expected nested rows as in the dataset, found text", "agrees");
}

/* Lists of one length in each of two shards are lists of any in both. */
static void joined(void **state) {
    static const uint64_t two[] = { 2, 2 }, other[] = { 3, 2 };
    static const char list[] = "list<float>";
    const sft_tensor scalar = { .dtype = SFT_F32 };
    struct {
        sfti_ds_column a, b;
        sfti_ds_encoding encoding;
    } all[7];
    (void)state;
    for (int i = 0; i < 7; i++) {
        all[i].a = all[i].b = column(list, SFTI_ENCODING_FIXED);
        all[i].a.rank = all[i].b.rank = 1;
        all[i].a.shape = two;
        all[i].b.shape = other;
        all[i].encoding = SFTI_ENCODING_FIXED;
    }
    all[0].encoding = SFTI_ENCODING_LIST;
    all[1].b.shape = two; /* of one length in all */
    all[2].b.has_shape = false;
    all[3].a.has_shape = false;
    all[4].b.type = sft_span_cstr("float");
    all[5].a.type = all[5].b.type = sft_span_cstr("float");
    all[6].a.rank = all[6].b.rank = 2;
    all[6].encoding = SFTI_ENCODING_NESTED;
    for (int i = 0; i < 7; i++) {
        sfti_ds_column_join(&all[i].a, &all[i].b, SFT_DATASET_BATCH);
        if (all[i].a.encoding != all[i].encoding) fail_msg("case %d", i);
        assert_int_equal(all[i].a.has_shape, i == 1);
    }
    sfti_ds_column fixed = column(list, SFTI_ENCODING_FIXED), nested = fixed;
    nested.encoding = SFTI_ENCODING_NESTED;
    assert_true(sfti_ds_column_kin(&fixed, &nested) && sfti_ds_column_kin(&nested, &fixed));
    assert_int_equal(sfti_ds_column_agrees(&fixed, &nested, &err), SFT_OK);
    nested.encoding = SFTI_ENCODING_BINARY;
    assert_false(sfti_ds_column_kin(&fixed, &nested) || sfti_ds_column_kin(&nested, &fixed));
    assert_false(sfti_ds_column_holds(&fixed, &scalar)); /* no samples */
    fixed.has_shape = false;
    assert_true(sfti_ds_column_holds(&fixed, &scalar));
}

static void absent(void **state) {
    const sfti_ds_column good[] = {
        column(NULL, SFTI_ENCODING_FIXED), column(NULL, SFTI_ENCODING_LIST),
        column("list<list<float>>", SFTI_ENCODING_NESTED),
        { .name = { NULL, 0 }, .has_dtype = true, .has_shape = true },
    };
    const sfti_ds_column bad[] = {
        { .name = { "x", 1 }, .has_dtype = true }, { .name = { "x", 1 }, .has_shape = true },
        { .name = { "x\0y", 3 }, .has_dtype = true, .has_shape = true },
        column("fixed_size_list<list<float>>[2]", SFTI_ENCODING_NESTED),
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(sfti_ds_column_absent(&good[i], &err), SFT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        says(sfti_ds_column_absent(&bad[i], &err), SFT_DATASET_DISAGREES,
             "expected one dtype and shape, or lists of any length, of a column that shards may "
             "lack", "absent");
}

static void apart(void **state) {
    static const struct {
        const char *a, *b;
        sfti_ds_encoding encoding;
        bool apart;
    } all[] = {
        { "x", "y", SFTI_ENCODING_FIXED, true },        { "x", "x", SFTI_ENCODING_FIXED, false },
        { "x", "x.valid", SFTI_ENCODING_FIXED, false },
        { "x.offsets", "x", SFTI_ENCODING_LIST, false },
        { "x", "x.a", SFTI_ENCODING_LIST, true },       { "x", "x.a", SFTI_ENCODING_NESTED, false },
        { "x", "xa", SFTI_ENCODING_NESTED, true },      { "ab", "x.a", SFTI_ENCODING_NESTED, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_ds_column two[2] = { column(NULL, all[i].encoding), column(NULL, all[i].encoding) };
        two[0].name = sft_span_cstr(all[i].a);
        two[1].name = sft_span_cstr(all[i].b);
        sft_code code = sfti_ds_columns_apart(two, 2, 1, &err);
        if (all[i].apart) assert_int_equal(code, SFT_OK);
        else says(code, SFT_DATASET_DISAGREES, "expected a name that is not one of tensors of the "
                  "column", all[i].b);
    }
}

static void shapes(void **state) {
    static const uint64_t ones[12] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    static const uint64_t wide[3] = { UINT64_MAX, UINT64_MAX, 1 };
    char text[SFTI_SHAPE_TEXT];
    (void)state;
    sfti_ds_shape_text(ones, 12, text);
    assert_string_equal(text, "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]");
    sfti_ds_shape_text(wide, 3, text);
    assert_string_equal(text, "[18446744073709551615, 18446744073709551615, 1]");
    sfti_ds_shape_text((const uint64_t[]){ UINT64_MAX, UINT64_MAX, UINT64_MAX, 1 }, 4, text);
    assert_string_equal(text, "[18446744073709551615, 18446744073709551615, 18446744073709551615, "
                              "…]");
}

#define ARENA_TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, free_arena)

int main(void) {
    static const struct CMUnitTest tests[] = {
        ARENA_TEST(manifests), ARENA_TEST(shards), ARENA_TEST(sums), ARENA_TEST(receipts),
        ARENA_TEST(columns),   ARENA_TEST(names),  ARENA_TEST(jobs), ARENA_TEST(types),
        ARENA_TEST(joined),
        ARENA_TEST(compared),  ARENA_TEST(absent), ARENA_TEST(apart), ARENA_TEST(shapes),
    };
    return cmocka_run_group_tests_name("dataset_fields", tests, NULL, NULL);
}
