/* compact: rows of shards by hand, put together, or refused where they are not as the manifest
 * says. */
#define _GNU_SOURCE
#include "unit/maintain_case.h"

/* ── Shards and manifests by hand ── */

typedef struct hand {
    const char *header; /* of tensors */
    const char *data;
    size_t len;
} hand;

#define T(name, dtype, shape, from, to) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape \
    "],\"data_offsets\":[" from "," to "]}"
#define E "\0\0\0\0\0\0\0"
#define DATA(text) text, sizeof(text) - 1
#define PART(n) "part-0000" n "-0000-" UUID ".safetensors"

static size_t put_hand(const char *name, const hand *h) {
    static char bytes[1 << 13];
    const size_t len = strlen(h->header), padded = (len + 7) / 8 * 8;
    assert_true(8 + padded + h->len <= sizeof bytes);
    memset(bytes, 0, 8);
    bytes[0] = (char)(padded & 255);
    bytes[1] = (char)(padded >> 8);
    memset(bytes + 8, ' ', padded);
    memcpy(bytes + 8, h->header, len);
    if (h->len) memcpy(bytes + 8 + padded, h->data, h->len);
    temp_write(name, bytes, 8 + padded + h->len);
    return 8 + padded + h->len;
}

/* Shards of two rows each. */
static void put_shards(const char *columns, const char *batch_size, const hand *const *shards,
                       size_t count) {
    static const char *const names[] = { PART("0"), PART("1"), PART("2") };
    static char text[1 << 13];
    size_t total = 0;
    int at = snprintf(text, sizeof text,
                      "{\"format_version\":\"1.0\",\"safetensors_version\":\"1.0\","
                      "\"mode\":\"batch\",\"generator\":\"libsafetensors 0\",\"batch_size\":%s,"
                      "\"total_samples\":%zu,"
                      "\"commit\":\"" UUID "\",\"version\":1,\"columns\":{%s},"
                      "\"shards\":[", batch_size, 2 * count, columns);
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = put_hand(names[i], shards[i]);
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"shard_path\":\"%s\",\"samples_count\":2,\"first_sample\":%zu,"
                       "\"tensors\":1,\"bytes\":%zu}", i ? "," : "", names[i], 2 * i, bytes);
        total += bytes;
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"total_bytes\":%zu}", total);
    temp_write(SFTI_DATASET_MANIFEST, text, (size_t)at);
}

static sft_code compact(uint64_t batch_size) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    how.drop_old = true;
    how.target_bytes = UINT64_MAX;
    how.batch_size = batch_size;
    sft_sink sink = sft_sink_memory(&out);
    sft_code code = sft_dataset_compact_json(&ds_storage, &how, "d", &sink, NULL, &err);
    if (code) sft_sink_abandon(&sink);
    else assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    return code;
}

/* ── Tensors that are not as the manifest says ── */

#define X "\"x\":{\"dtype\":\"F32\",\"shape\":[1]}"
#define NULLABLE "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"nullable\":true}"
#define TEXT "\"x\":{\"dtype\":\"U8\",\"shape\":null,\"encoding\":\"utf8\"}"
#define LIST "\"x\":{\"dtype\":\"U8\",\"shape\":null,\"encoding\":\"list\"}"
#define NESTED(type) "\"x\":{\"dtype\":null,\"shape\":null,\"encoding\":\"nested\",\"type\":\"" \
    type "\"}"
#define VALUES T("x", "F32", "2,1", "0", "8")
#define EIGHT "\0\0\0\0\0\0\0\0"
#define ENDS(a, b, c) a E b E c E

static void tensors(void **state) {
    static const struct {
        const char *columns;
        hand h;
        bool good;
    } all[] = {
        { X, { "{" VALUES "}", DATA(EIGHT) }, true },
        { X, { "{" T("y", "F32", "2,1", "0", "8") "}", DATA(EIGHT) }, false },
        { X, { "{" T("x", "I32", "2,1", "0", "8") "}", DATA(EIGHT) }, false },
        { X, { "{" T("x", "F32", "", "0", "4") "}", DATA("\0\0\0\0") }, false },
        { X, { "{" T("x", "F32", "1,2", "0", "8") "}", DATA(EIGHT) }, false },
        { X, { "{" VALUES "," T("y", "U8", "1", "8", "9") "}", DATA(EIGHT "a") }, false },
        { X, { "{" VALUES "," T("x.offsets", "U8", "1", "8", "9") "}", DATA(EIGHT "a") }, false },
        { NULLABLE, { "{" VALUES "," T("x.valid", "BOOL", "2", "8", "10") "}",
                      DATA(EIGHT "\1\0") }, true },
        { NULLABLE, { "{" VALUES "," T("x.valid", "U8", "2", "8", "10") "}",
                      DATA(EIGHT "\1\0") }, false },
        { NULLABLE, { "{" VALUES "," T("x.valid", "BOOL", "2,1", "8", "10") "}",
                      DATA(EIGHT "\1\0") }, false },
        { NULLABLE, { "{" VALUES "," T("x.valid", "BOOL", "1", "8", "9") "}",
                      DATA(EIGHT "\1") }, false },
        { TEXT, { "{" T("x.offsets", "I64", "3", "0", "24") "," T("x", "U8", "3", "24", "27") "}",
                  DATA(ENDS("\0", "\1", "\3") "abc") }, true },
        { TEXT, { "{" T("x", "U8", "3", "0", "3") "}", DATA("abc") }, false },
        { TEXT, { "{" T("x.offsets", "I64", "3", "0", "24") "}", DATA(ENDS("\0", "\1", "\3")) },
          false },
        { TEXT, { "{" T("x.offsets", "U64", "3", "0", "24") "," T("x", "U8", "3", "24", "27") "}",
                  DATA(ENDS("\0", "\1", "\3") "abc") }, false },
        { TEXT, { "{" T("x.offsets", "I64", "3,1", "0", "24") "," T("x", "U8", "3", "24", "27") "}",
                  DATA(ENDS("\0", "\1", "\3") "abc") }, false },
        { TEXT, { "{" T("x.offsets", "I64", "0", "0", "0") "," T("x", "U8", "3", "0", "3") "}",
                  DATA("abc") }, false },
        { TEXT, { "{" T("x.offsets", "I64", "2", "0", "16") "," T("x", "U8", "3", "16", "19") "}",
                  DATA("\0" E "\3" E "abc") }, false },
        { TEXT, { "{" T("x.offsets", "I64", "3", "0", "24") "," T("x", "U8", "3,1", "24", "27") "}",
                  DATA(ENDS("\0", "\1", "\3") "abc") }, false },
        { TEXT, { "{" T("x.offsets", "I64", "3", "0", "24") "," T("x", "U8", "3", "24", "27") "}",
                  DATA(ENDS("\0", "\2", "\1") "abc") }, false },
        { TEXT, { "{" T("x.offsets", "I64", "3", "0", "24") "," T("x", "U8", "3", "24", "27") "}",
                  DATA(ENDS("\0", "\1", "\4") "abc") }, false },
        { LIST, { "{" T("x", "U8", "2,2", "0", "4") "}", DATA("abcd") }, true },
        { LIST, { "{" T("x.offsets", "I64", "3", "0", "24") "," T("x", "U8", "3", "24", "27") "}",
                  DATA(ENDS("\0", "\1", "\3") "abc") }, true },
        { LIST, { "{" T("x.offsets", "I64", "3", "0", "24") "," T("x", "U8", "3,1", "24", "27") "}",
                  DATA(ENDS("\0", "\1", "\3") "abc") }, false },
        { LIST, { "{" T("x.offsets", "I64", "3", "0", "24") "," T("x", "I8", "3", "24", "27") "}",
                  DATA(ENDS("\0", "\1", "\3") "abc") }, false },
        { LIST, { "{" T("x.offsets", "I64", "4", "0", "32") "," T("x", "U8", "3", "32", "35") "}",
                  DATA(ENDS("\0", "\1", "\3") "\3" E "abc") }, false },
        { LIST, { "{" T("x.offsets", "I64", "3", "0", "24") "," T("x", "U8", "", "24", "25") "}",
                  DATA(ENDS("\0", "\1", "\1") "a") }, false },
        { LIST, { "{" T("x", "U8", "2", "0", "2") "}", DATA("ab") }, false },
        { LIST, { "{" T("x", "U8", "3,1", "0", "3") "}", DATA("abc") }, false },
        { LIST, { "{" T("y", "U8", "3", "0", "3") "}", DATA("abc") }, false },
        { NESTED("struct<a: int8>"), { "{" T("x.a", "I8", "2", "0", "2") "}", DATA("ab") }, true },
        { NESTED("struct<a: int8>"), { "{" T("x.a", "I8", "2", "0", "2") ","
          T("x.valid", "BOOL", "1", "2", "3") "}", DATA("ab\1") }, false },
        { NESTED("list<list<int8>>"), { "{" T("x", "I8", "2,1,2", "0", "4") "}", DATA("abcd") },
          true },
        { NESTED("list<list<int8>>"), { "{" T("x", "I8", "2,2", "0", "4") "}", DATA("abcd") },
          false },
        { NESTED("list<list<int8>>"), { "{" T("x.offsets", "I64", "3", "0", "24") ","
          T("x", "I8", "3", "24", "27") "}", DATA(ENDS("\0", "\1", "\3") "abc") }, false },
        { NESTED("list<string>"), { "{" T("x", "U8", "2,2", "0", "4") "}", DATA("abcd") }, false },
        { NESTED("list<string>"), { "{" T("x.offsets", "I64", "3", "0", "24") ","
          T("x.item.offsets", "I64", "3", "24", "48") "," T("x.item", "U8", "2", "48", "50") "}",
          DATA(ENDS("\0", "\1", "\2") ENDS("\0", "\1", "\2") "ab") }, true },
        { NESTED("list<string>"), { "{" T("x.offsets", "I64", "3", "0", "24") ","
          T("x.item.offsets", "I64", "3", "24", "48") "," T("x.item", "U8", "2", "48", "50") "}",
          DATA("\0" E "\1" E E "\377" ENDS("\0", "\1", "\2") "ab") }, false },
        { NESTED("list<string>"), { "{" T("x.offsets", "I64", "3", "0", "24") ","
          T("x.item.offsets", "I64", "3", "24", "48") "," T("x.item", "U8", "2", "48", "50") "}",
          DATA(ENDS("\0", "\3", "\2") ENDS("\0", "\1", "\2") "ab") }, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const hand *const two[] = { &all[i].h, &all[i].h };
        put_shards(all[i].columns, "4", two, 2);
        sft_code code = compact(0);
        if (all[i].good) {
            if (code) fail_msg("%zu: %s", i, err.message);
            has("\"shards_before\":2,\"shards_after\":1,\"rewritten\":2,");
            continue;
        }
        assert_int_equal(code, SFT_DATASET_SHARD);
        if (strcmp(err.message,
                   PART("0") ": expected the column x as in the manifest, found another"))
            fail_msg("%zu: %s", i, err.message);
    }
}

/* Rows of two shapes in a column that has one. */
static void two_shapes(void **state) {
    static const hand one = { "{" T("x", "F32", "2,1", "0", "8") "}", DATA(EIGHT) },
                      other = { "{" T("x", "F32", "2,1,1", "0", "8") "}", DATA(EIGHT) };
    const hand *const two[] = { &one, &other };
    (void)state;
    put_shards(X, "4", two, 2);
    assert_int_equal(compact(0), SFT_DATASET_SHARD);
    assert_string_equal(err.message, PART("1") ": expected the column x as in the manifest, found "
                                               "another");
}

/* ── What is left, and why ── */

#define ONES "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"

static void left(void **state) {
    static const hand one = { "{" VALUES "}", DATA(EIGHT) };
    static const hand *const two[] = { &one, &one };
    static const struct {
        const char *columns, *size, *says;
        uint64_t batch;
    } all[] = {
        { X, "null", "the manifest has no batch_size or columns", 0 },
        { "", "4", "the manifest has no batch_size or columns", 0 },
        { "\"x\":{\"dtype\":\"F4\",\"shape\":null,\"encoding\":\"list\"}", "4",
          "elements of lists of the column x are not whole bytes", 0 },
        { NESTED("list<F4>"), "4", "elements of lists of the column x are not whole bytes", 0 },
        { "\"x\":{\"dtype\":null,\"shape\":[1]}", "4",
          "dtype or shape of the column x varies from batch to batch", 0 },
        { "\"x\":{\"dtype\":\"F32\",\"shape\":null}", "4",
          "dtype or shape of the column x varies from batch to batch", 0 },
        { "\"x\":{\"dtype\":\"F4\",\"shape\":[1]}", "4",
          "a row of the column x is not a whole number of bytes", 0 },
        { "\"x\":{\"dtype\":\"U8\",\"shape\":[1099511627776,1099511627776]}", "4",
          "a batch of the column x has too many elements or dimensions", 0 },
        { "\"x\":{\"dtype\":\"U8\",\"shape\":[1099511627776,1048576]}", "16",
          "a batch of the column x has too many elements or dimensions", 0 },
        { "\"x\":{\"dtype\":\"F32\",\"shape\":[" ONES "," ONES "," ONES "," ONES "]}", "4",
          "a batch of the column x has too many elements or dimensions", 0 },
        { X, "4", "all batches have that size", 2 },
        { X, "2", "neighbouring shards are full, or merging them saves none", 0 },
        { X, "3", "neighbouring shards are full, or merging them saves none", 0 },
        { X, "1", "no shard is smaller than the target", 0 }, /* both have more rows than that */
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char says[200];
        put_shards(all[i].columns, all[i].size, two, 2);
        if (compact(all[i].batch)) fail_msg("%zu: %s", i, err.message);
        (void)snprintf(says, sizeof says, "\"left\":\"%s\"", all[i].says);
        has("\"shards_before\":2,\"shards_after\":2,\"rewritten\":0,");
        has(says);
    }
    put_shards(NESTED("list<what>"), "4", two, 2);
    assert_int_equal(compact(0), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "column x: expected a type, found list<what>");
}

/* Batches so large that what they lack exceeds 64 bits; rows without elements. */
static void huge_batches(void **state) {
    static const hand one = { "{" T("x", "F32", "2,0", "0", "0") "}", DATA("") };
    static const hand *const three[] = { &one, &one, &one };
    (void)state;
    put_shards("\"x\":{\"dtype\":\"F32\",\"shape\":[0]}", "9223372036854775808", three, 3);
    if (compact(0)) fail_msg("%s", err.message);
    has("\"shards_before\":3,\"shards_after\":2,\"rewritten\":2,");
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_shard_count(d), 2);
    assert_int_equal(sft_dataset_shard_at(d, 0)->samples, 4);
    assert_int_equal(sft_dataset_samples(d), 6);
    sft_dataset_close(d);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(tensors), FOLDER_TEST(two_shapes), FOLDER_TEST(left),
        FOLDER_TEST(huge_batches),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
