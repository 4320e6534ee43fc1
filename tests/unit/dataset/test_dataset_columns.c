/* Options applied to an Arrow schema: which columns, their form, dtype and shape, and errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataset/dataset.h"
#include "unit/arrow_make.h"

static sft_error err;

static int set_up(void **unused) {
    (void)unused;
    am_reset();
    return 0;
}

/* Options as "name=value" words that end with NULL. */
static sft_dataset_options *options_of(const char *const *words) {
    sft_pair pairs[8];
    size_t count = 0;
    sft_dataset_options *options = NULL;
    for (; words[count]; count++) {
        const char *mark = strchr(words[count], '=');
        pairs[count].key = (sft_span){ words[count], (size_t)(mark - words[count]) };
        pairs[count].value = sft_span_cstr(mark + 1);
    }
    assert_int_equal(sft_dataset_options_new(pairs, count, NULL, &options, &err), SFT_OK);
    return options;
}

static void told_as(const struct ArrowSchema *schema, const char *text, const char *const *words) {
    sft_dataset_options *options = options_of(words);
    sft_buffer buffer = { NULL, 0, 0, { NULL, NULL } };
    sft_sink sink = sft_sink_memory(&buffer);
    sft_code code = sft_dataset_check_schema(options, schema, &sink, &err);
    if (code) fail_msg("%s", err.message);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(buffer.len, strlen(text));
    assert_memory_equal(buffer.data, text, buffer.len);
    sft_buffer_free(&buffer);
    assert_int_equal(sft_dataset_check_schema(options, schema, NULL, &err), SFT_OK);
    sft_dataset_options_free(options);
}

static void refused_as(const struct ArrowSchema *schema, sft_code code, const char *why,
                       const char *const *words) {
    sft_dataset_options *options = options_of(words);
    sft_buffer buffer = { NULL, 0, 0, { NULL, NULL } };
    sft_sink sink = sft_sink_memory(&buffer);
    assert_int_equal(sft_dataset_check_schema(options, schema, &sink, &err), code);
    if (!strstr(err.message, why)) fail_msg("%s", err.message);
    assert_int_equal(buffer.len, 0);
    sft_sink_abandon(&sink);
    sft_dataset_options_free(options);
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define TOLD(schema, text, ...) told_as(schema, text, WORDS(__VA_ARGS__))
#define REFUSED(schema, code, why, ...) refused_as(schema, code, why, WORDS(__VA_ARGS__))

static struct ArrowSchema *table(void) {
    struct ArrowSchema *schema = am_type("+s", "");
    am_of(schema, am_type("u", "id"));
    am_of(schema, am_type("l", "n"));
    am_of(schema, am_list("+l", "v", am_type("f", "item")));
    am_of(schema, am_list("+w:6", "w", am_type("g", "item")));
    return am_of(schema, am_tensor_type("t"));
}

#define N "{\"name\":\"n\",\"dtype\":\"I64\",\"shape\":[],\"arrow\":\"int64\"}"
#define V "{\"name\":\"v\",\"dtype\":\"F32\",\"shape\":null,\"type\":" \
    "\"list<float>\",\"arrow\":\"list<float>\"}"
#define T(dtype, shape) "{\"name\":\"t\",\"dtype\":" dtype ",\"shape\":" shape \
    ",\"arrow\":\"struct<data: binary, shape: list<int32>, dtype: string>\"}"
#define W(dtype, shape, type) "{\"name\":\"w\",\"dtype\":\"" dtype "\",\"shape\":" shape \
    type ",\"arrow\":\"fixed_size_list<double>[6]\"}"
#define W6(type) ",\"type\":\"fixed_size_list<" type ">[6]\""
#define BATCH(columns) "{\"mode\":\"batch\",\"name_col\":null,\"columns\":[" columns "]}"
#define KEYED(columns) "{\"mode\":\"kv\",\"name_col\":\"id\",\"columns\":[" columns "]}"

static void test_which(void **unused) {
    (void)unused;
    TOLD(table(), BATCH(N), "batch_size=2", "columns=n");
    TOLD(table(), BATCH(N "," V), "batch_size=2", "columns= v , n, v");
    TOLD(table(), KEYED(N "," V "," W("F64", "[6]", W6("double")) "," T("null", "null")),
         "name_col=id");
    TOLD(table(), KEYED(V), "name_col=id", "columns=v");
    TOLD(table(), BATCH("{\"name\":\"id\",\"dtype\":\"U8\",\"shape\":null,\"encoding\":"
                        "\"utf8\",\"arrow\":\"string\"}"), "batch_size=2", "columns=id");
    REFUSED(table(), SFT_COLUMN_TYPE, "column \"id\": text, bytes, decimals, structs",
            "batch_size=2", "dtype={\"id\":\"U8\"}");
    REFUSED(table(), SFT_COLUMN_TYPE, "column \"id\" (string): with name_col, text and bytes",
            "name_col=id", "columns=id,n");
    static const char *const parts[] = { "n.offsets", "n.valid" };
    for (int i = 0; i < 2; i++) {
        REFUSED(am_of(table(), am_type("l", parts[i])), SFT_COLUMN_TYPE,
                "expected another name, found that of a tensor of the column \"n\"",
                "batch_size=2");
        TOLD(am_of(table(), am_type("l", parts[i])), BATCH(N), "batch_size=2", "columns=n");
    }
    REFUSED(table(), SFT_COLUMN_UNKNOWN,
            "option columns: expected one of the columns (id, n, v, w, t), found \"x\"",
            "batch_size=2", "columns=n,x");
    REFUSED(table(), SFT_COLUMN_UNKNOWN, "option name_col", "name_col=ID");
    REFUSED(table(), SFT_COLUMN_TYPE, "expected strings for name_col, found int64",
            "name_col=n");
    REFUSED(table(), SFT_COLUMN_TYPE, "column \"id\"", "name_col=id", "columns=id,n");
}

static void test_keys(void **unused) {
    static const char *const texts[] = { "U", "vu" };
    (void)unused;
    for (int i = 0; i < 3; i++) {
        struct ArrowSchema *schema = am_type("+s", "");
        am_of(schema, i < 2 ? am_type(texts[i], "id") : am_dictionary("c", am_type("u", "id")));
        TOLD(am_of(schema, am_type("l", "n")), KEYED(N), "name_col=id");
    }
    struct ArrowSchema *alone = am_of(am_type("+s", ""), am_type("u", "id"));
    REFUSED(alone, SFT_COLUMN_UNKNOWN, "expected a column to write, found none", "name_col=id");
    REFUSED(am_type("+s", ""), SFT_COLUMN_UNKNOWN, "found none", "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), am_type("z", "id")), SFT_COLUMN_TYPE, "found binary",
            "name_col=id");
}

static void test_options_of_columns(void **unused) {
    (void)unused;
    TOLD(table(), BATCH(W("F16", "[2,3]", "")), "batch_size=2", "columns=w", "dtype=f16",
         "shapes={\"w\":[2,3]}");
    TOLD(table(), BATCH(W("U64", "[6]", W6("uint64"))), "batch_size=2", "columns=w",
         "dtype={\"w\":\"U64\",\"n\":\"BOOL\"}");
    TOLD(table(), BATCH(T("\"BF16\"", "[2,2]")), "batch_size=2", "columns=t", "dtype=BF16",
         "shapes={\"t\":[2,2]}");
    TOLD(table(), BATCH(T("\"C64\"", "null")), "batch_size=2", "columns=t", "dtype=C64");
    REFUSED(table(), SFT_COLUMN_TYPE, "column \"n\": there is no cast from int64 to C64",
            "batch_size=2", "columns=n", "dtype=C64");
    REFUSED(table(), SFT_COLUMN_TYPE,
            "column \"w\": expected a shape of 6 elements, found one of 4",
            "batch_size=2", "columns=w", "shapes={\"w\":[2,2]}");
    REFUSED(table(), SFT_COLUMN_TYPE,
            "column \"n\": expected a shape of 1 elements, found one of 2",
            "batch_size=2", "columns=n", "shapes={\"n\":[2]}");
    REFUSED(table(), SFT_COLUMN_TYPE, "a shape within 64 bits", "batch_size=2", "columns=v",
            "shapes={\"v\":[4294967296,4294967296]}");
    REFUSED(table(), SFT_COLUMN_UNKNOWN, "option shapes", "batch_size=2", "columns=v",
            "shapes={\"x\":[2]}");
    REFUSED(table(), SFT_COLUMN_UNKNOWN, "option dtype", "batch_size=2", "columns=v",
            "dtype={\"x\":\"F32\"}");
}

static void test_fixed_shape(void **unused) {
    char buffer[512];
    struct ArrowSchema *column = am_extension(am_list("+w:6", "w", am_type("g", "item")),
                                              "arrow.fixed_shape_tensor", "{\"shape\":[3,2]}",
                                              buffer);
    (void)unused;
    struct ArrowSchema *schema = am_of(am_type("+s", ""), column);
    TOLD(schema, BATCH(W("F64", "[3,2]", ",\"type\":\"fixed_shape_tensor\"")), "batch_size=2");
    TOLD(schema, BATCH(W("F64", "[1,6]", "")), "batch_size=2", "shapes={\"w\":[1,6]}");
}

static void test_bad_schemas(void **unused) {
    (void)unused;
    REFUSED(am_type("l", "n"), SFT_COLUMN_TYPE, "expected a struct of columns", "batch_size=1");
    struct ArrowSchema *twice = am_of(am_of(am_type("+s", ""), am_type("l", "n")),
                                      am_type("f", "n"));
    REFUSED(twice, SFT_COLUMN_TYPE, "column \"n\": expected each name once", "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), am_type("l", NULL)), SFT_BAD_ARGUMENT, "found one without",
            "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), am_type("l", "\xff")), SFT_COLUMN_TYPE, "UTF-8",
            "batch_size=1");
    struct ArrowSchema *reserved = am_of(am_type("+s", ""), am_type("l", "__metadata__"));
    REFUSED(reserved, SFT_COLUMN_TYPE, "no tensor can have this name", "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), am_type("tiM", "at")), SFT_COLUMN_TYPE,
            "column \"at\" (interval): values of this type have no dtype (Arrow format "
            "\"tiM\")", "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), am_type("+s", "s")), SFT_COLUMN_TYPE,
            "column \"s\" (struct<>): a struct without fields", "batch_size=1");
    REFUSED(am_of(table(), am_of(am_type("+s", "s"), am_type("l", "a"))), SFT_COLUMN_TYPE,
            "column \"s\" (struct<a: int64>): expected struct<data", "name_col=id");
    struct ArrowSchema *gone = table();
    gone->release = NULL;
    REFUSED(gone, SFT_BAD_ARGUMENT, "expected a schema", "batch_size=1");
    assert_int_equal(sft_dataset_check_schema(NULL, table(), NULL, NULL), SFT_BAD_ARGUMENT);
}

/* Schemas that break Arrow's rules, in a column and in one in it. */
static void test_broken_schemas(void **unused) {
    char text[512];
    (void)unused;
    struct ArrowSchema *top[3];
    for (int i = 0; i < 3; i++) top[i] = am_of(am_type("+s", ""), am_type("l", "n"));
    top[0]->format = NULL;
    top[1]->n_children = -1;
    top[2]->n_children = INT64_MAX;
    for (int i = 0; i < 3; i++)
        REFUSED(top[i], SFT_COLUMN_TYPE, i ? "expected a struct of columns, found Arrow format "
                "\"+s\"" : "found Arrow format \"\"", "batch_size=1");
    static const char without[] = "expected columns with names and types, found one without";
    struct ArrowSchema *bad = am_of(am_type("+s", ""), NULL);
    REFUSED(bad, SFT_BAD_ARGUMENT, without, "batch_size=1");
    bad->children = NULL;
    REFUSED(bad, SFT_BAD_ARGUMENT, without, "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), am_type(NULL, "n")), SFT_BAD_ARGUMENT, without,
            "batch_size=1");
    sft_dataset_options *options = options_of(WORDS("batch_size=1"));
    assert_int_equal(sft_dataset_check_schema(options, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected a schema, found none");
    sft_dataset_options_free(options);

    struct ArrowSchema *lists[3], *structs[5];
    for (int i = 0; i < 3; i++) lists[i] = am_list("+l", "x", am_type("u", "item"));
    lists[0]->n_children = 0;
    lists[1]->children = NULL;
    lists[2]->children[0] = NULL;
    for (int i = 0; i < 3; i++)
        REFUSED(am_of(am_type("+s", ""), lists[i]), SFT_COLUMN_TYPE,
                "expected a list with one child", "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), am_dictionary("+l", am_type("u", "x"))), SFT_COLUMN_TYPE,
            "this kind of dictionary is not supported", "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), am_dictionary("+s", am_type("u", "x"))), SFT_COLUMN_TYPE,
            "this kind of dictionary is not supported", "batch_size=1");
    for (int i = 0; i < 5; i++) structs[i] = am_of(am_type("+s", "x"), am_type("l", "a"));
    structs[0]->children = NULL;
    structs[1]->children[0] = NULL;
    structs[2]->children[0]->format = NULL;
    structs[3]->children[0]->name = "\xff";
    structs[4]->n_children = -1;
    REFUSED(am_of(am_type("+s", ""), structs[0]), SFT_COLUMN_TYPE,
            "column \"x\" (struct): a struct without fields has no tensors", "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), structs[1]), SFT_COLUMN_TYPE,
            "expected a type with its children, found none", "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), structs[2]), SFT_COLUMN_TYPE, without, "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), structs[3]), SFT_COLUMN_TYPE, "expected names in UTF-8",
            "batch_size=1");
    REFUSED(am_of(am_type("+s", ""), structs[4]), SFT_COLUMN_TYPE,
            "column \"x\" (struct): a struct without fields has no tensors", "batch_size=1");
    /* More elements than 64 bits count, in a field. */
    struct ArrowSchema *wide = am_extension(am_list("+w:6", "w", am_type("g", "item")),
                                            "arrow.fixed_shape_tensor",
                                            "{\"shape\":[4294967296,4294967296]}", text);
    REFUSED(am_of(am_type("+s", ""), am_of(am_type("+s", "x"), wide)), SFT_COLUMN_TYPE,
            "column \"x\" (struct<w: fixed_size_list<double>[6]>): ", "batch_size=1");
    TOLD(am_of(am_type("+s", ""), am_of(am_type("+s", "x"), am_type("l", NULL))),
         BATCH("{\"name\":\"x\",\"dtype\":null,\"shape\":null,\"encoding\":\"nested\",\"type\":"
               "\"struct<\\\"\\\": int64>\",\"arrow\":\"struct<\\\"\\\": int64>\"}"),
         "batch_size=1");
}

/* What options may ask of columns whose type says otherwise. */
static void test_asked(void **unused) {
    (void)unused;
    /* A column without a name is one, not all. */
    TOLD(am_of(am_of(am_type("+s", ""), am_type("f", "")), am_type("l", "b")),
         BATCH("{\"name\":\"\",\"dtype\":\"BF16\",\"shape\":[1],\"arrow\":\"float\"},"
               "{\"name\":\"b\",\"dtype\":\"F64\",\"shape\":[],\"arrow\":\"int64\"}"),
         "batch_size=1", "shapes={\"\":[1]}", "dtype={\"\":\"BF16\",\"b\":\"F64\"}");
    TOLD(am_of(am_of(am_type("+s", ""), am_type("f", "")), am_type("l", "b")),
         BATCH("{\"name\":\"\",\"dtype\":\"F64\",\"shape\":[1],\"arrow\":\"float\"},"
               "{\"name\":\"b\",\"dtype\":\"F64\",\"shape\":[],\"arrow\":\"int64\"}"),
         "batch_size=1", "shapes={\"\":[1]}", "dtype=F64");
    REFUSED(table(), SFT_COLUMN_UNKNOWN, "option dtype: expected one of the columns",
            "batch_size=1", "columns=n", "dtype={\"\":\"F64\"}");
    REFUSED(am_of(am_type("+s", ""), am_type("d:9,2", "d")), SFT_COLUMN_TYPE,
            "column \"d\": text, bytes, decimals, structs", "batch_size=1", "dtype=F32");
    REFUSED(am_of(am_type("+s", ""), am_type("d:9,2,64", "d")), SFT_COLUMN_TYPE,
            "column \"d\": text, bytes, decimals, structs", "batch_size=1", "dtype=F32");
    REFUSED(am_of(am_type("+s", ""), am_type("d:9,2,32", "d")), SFT_COLUMN_TYPE,
            "column \"d\": text, bytes, decimals, structs", "batch_size=1", "shapes={\"d\":[1]}");
    REFUSED(am_of(am_type("+s", ""), am_list("+l", "d", am_type("d:9,2,64", "item"))),
            SFT_COLUMN_TYPE, "column \"d\": text, bytes, decimals, structs", "batch_size=1",
            "dtype={\"d\":\"F64\"}");
    REFUSED(am_of(am_of(am_type("+s", ""), am_type("u", "id")),
                  am_list("+l", "x", am_type("u", "item"))), SFT_COLUMN_TYPE,
            "column \"x\" (list<string>): lists of text or bytes have no dtype", "name_col=id");
    REFUSED(am_of(am_type("+s", ""), am_type("b", "flag")), SFT_COLUMN_TYPE,
            "column \"flag\": option compat: expected F16, BF16, F32, F64, or integers of 8 to 64 "
            "bits, found BOOL", "batch_size=1", "compat=upstream");
    static const char *const shapes[][2] = {
        { "[1,6]", "[1,6]" }, { "[6]", "[6]" }, { "[2,3]", "[2,3]" }, { "[3,2]", "[3,2]" },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char asked[40], told[300];
        struct ArrowSchema *w = am_list("+w:3", "w", am_list("+w:2", "item", am_type("g", "item")));
        (void)snprintf(asked, sizeof asked, "shapes={\"w\":%s}", shapes[i][0]);
        (void)snprintf(told, sizeof told,
                       BATCH("{\"name\":\"w\",\"dtype\":\"F64\",\"shape\":%s,\"arrow\":"
                             "\"fixed_size_list<fixed_size_list<double>[2]>[3]\"}"), shapes[i][1]);
        TOLD(am_of(am_type("+s", ""), w), told, "batch_size=1", asked);
    }
    TOLD(table(), BATCH("{\"name\":\"v\",\"dtype\":\"F32\",\"shape\":[2],\"arrow\":"
                        "\"list<float>\"}"), "batch_size=2", "columns=v", "shapes={\"v\":[2]}");
    /* The last of the names that fit is told whole. */
    static const char names[4][61] = {
        "a23456789012345678901234567890123456789012345678901234567890",
        "b23456789012345678901234567890123456789012345678901234567890",
        "c23456789012345678901234567890123456789012345678901234567890",
        "d23456789012345678901234567890123456789012345678901234567890" };
    struct ArrowSchema *wide = am_type("+s", "");
    for (int i = 0; i < 4; i++) am_of(wide, am_type("l", names[i]));
    REFUSED(wide, SFT_COLUMN_UNKNOWN, names[3], "batch_size=1", "columns=x");
    assert_null(strstr(err.message, "\xe2\x80\xa6"));
}

/* Three hundred columns: the message names those that fit. */
static void test_many(void **unused) {
    static struct ArrowSchema *children[300];
    static char names[300][8];
    struct ArrowSchema *schema = am_type("+s", "");
    (void)unused;
    for (int i = 0; i < 300; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%d", 299 - i);
        children[i] = am_type("l", names[i]);
    }
    schema->children = children;
    schema->n_children = 300;
    REFUSED(schema, SFT_COLUMN_UNKNOWN, "(c299, c298, ", "batch_size=1", "columns=c300");
    assert_non_null(strstr(err.message, ", …), found \"c300\""));
    TOLD(schema, BATCH("{\"name\":\"c299\",\"dtype\":\"I64\",\"shape\":[],\"arrow\":\"int64\"},"
                       "{\"name\":\"c0\",\"dtype\":\"I64\",\"shape\":[],\"arrow\":\"int64\"}"),
         "batch_size=1", "columns=c0,c299");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_which, set_up),
        cmocka_unit_test_setup(test_keys, set_up),
        cmocka_unit_test_setup(test_options_of_columns, set_up),
        cmocka_unit_test_setup(test_fixed_shape, set_up),
        cmocka_unit_test_setup(test_bad_schemas, set_up),
        cmocka_unit_test_setup(test_broken_schemas, set_up),
        cmocka_unit_test_setup(test_asked, set_up),
        cmocka_unit_test_setup(test_many, set_up),
    };
    return cmocka_run_group_tests_name("dataset_columns", tests, NULL, NULL);
}
