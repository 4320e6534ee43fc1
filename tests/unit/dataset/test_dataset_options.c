/* Options of a write: each row of the table, its default, its limits, and what is refused. */
#include "dataset/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static sft_error err;

static sft_code make(sft_dataset_options **out, size_t count, const char *const *words) {
    sft_pair pairs[8];
    for (size_t i = 0; i < count; i++)
        pairs[i] = (sft_pair){ sft_span_cstr(words[2 * i]), sft_span_cstr(words[2 * i + 1]) };
    *out = (sft_dataset_options *)(uintptr_t)1;
    return sft_dataset_options_new(pairs, count, NULL, out, &err);
}

#define MAKE(out, ...) \
    make(out, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *) / 2, \
         (const char *const[]){ __VA_ARGS__ })

static sft_dataset_options *good(const char *mode, const char *value, const char *name,
                                 const char *text) {
    sft_dataset_options *o;
    sft_code code = name ? MAKE(&o, mode, value, name, text) : MAKE(&o, mode, value);
    if (code) fail_msg("%s=%s: %s", name ? name : "mode", name ? text : value, err.message);
    return o;
}

static void bad(sft_code code, const char *message, const char *mode, const char *value,
                const char *name, const char *text) {
    sft_dataset_options *o;
    assert_int_equal(MAKE(&o, mode, value, name, text), code);
    assert_null(o);
    assert_string_equal(err.message, message);
}

static bool span_is(sft_span span, const char *text) {
    return sft_span_equal(span, sft_span_cstr(text));
}

/* ── The table itself ── */

static void the_table(void **state) {
    static const struct {
        const char *name, *by_default;
        uint32_t modes;
    } rows[] = {
        { "batch_size", NULL, 2 },         { "name_col", NULL, 4 },
        { "dtype", NULL, 6 },              { "columns", NULL, 6 },
        { "shapes", NULL, 6 },             { "duplicatesStrategy", "fail", 4 },
        { "generate_index", "false", 6 },  { "target_shard_size_mb", "300", 4 },
        { "kv_separator", "__", 4 },       { "tail_strategy", "write", 2 },
        { "rounding", "nearest", 6 },      { "keep_old", "all", 6 },
        { "manifest", "whole", 6 },        { "batch_id", NULL, 6 },
        { "single_writer", "false", 6 },   { "merge_schema", "false", 2 },
        { "compat", NULL, 6 },
    };
    size_t count = sizeof rows / sizeof *rows;
    (void)state;
    for (size_t i = 0; i < count; i++) {
        const sft_dataset_option *o = sft_dataset_option_at(i);
        assert_non_null(o);
        assert_string_equal(o->name, rows[i].name);
        assert_int_equal(o->modes, rows[i].modes);
        if (rows[i].by_default) assert_string_equal(o->by_default, rows[i].by_default);
        else assert_null(o->by_default);
        assert_true(o->values && *o->values && o->sentence && *o->sentence);
    }
    assert_null(sft_dataset_option_at(count));
    assert_null(sft_dataset_option_at(SIZE_MAX));
}

/* docs/dataset.md prints the table, a row a line. */
static void the_manual(void **state) {
    static const char *const modes[] = { "", "", "batch", "", "KV", "", "both" };
    static char text[1 << 16];
    FILE *file = fopen("docs/dataset.md", "rb");
    (void)state;
    if (!file) skip();
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; sft_dataset_option_at(i); i++) {
        const sft_dataset_option *o = sft_dataset_option_at(i);
        char row[512];
        const char *quote = o->by_default ? "`" : "";
        (void)snprintf(row, sizeof row, "\n| `%s` | %s | %s%s%s | %s | %s |\n", o->name,
                       o->values, quote, o->by_default ? o->by_default : "\xe2\x80\x93", quote,
                       modes[o->modes], o->sentence);
        if (!strstr(text, row)) fail_msg("docs/dataset.md lacks the row%s", row);
    }
}

static void defaults(void **state) {
    (void)state;
    sft_dataset_options *o = good("batch_size", "32", NULL, NULL);
    assert_int_equal(sft_dataset_options_mode(o), SFT_DATASET_BATCH);
    assert_false(sft_dataset_options_indexed(o));
    assert_int_equal(o->batch_size, 32);
    assert_int_equal(o->tail, SFTI_TAIL_WRITE);
    assert_int_equal(o->column_count, 0);
    assert_int_equal(o->override_count, 0);
    assert_false(o->truncate);
    assert_int_equal(o->keep_old_s, 0);
    sft_dataset_options_free(o);
    o = good("name_col", "id", NULL, NULL);
    assert_int_equal(sft_dataset_options_mode(o), SFT_DATASET_KV);
    assert_true(span_is(o->name_col, "id"));
    assert_true(span_is(o->separator, "__"));
    assert_int_equal(o->shard_bytes, 300u << 20);
    assert_false(o->last_win);
    sft_dataset_options_free(o);
}

/* ── The mode ── */

static void the_mode(void **state) {
    sft_dataset_options *o;
    (void)state;
    assert_int_equal(sft_dataset_options_new(NULL, 0, NULL, &o, &err), SFT_OPTION_VALUE);
    assert_string_equal(err.message,
                        "expected one of the options batch_size and name_col, found neither");
    assert_null(o);
    bad(SFT_OPTION_VALUE, "expected one of the options batch_size and name_col, found both",
        "batch_size", "3", "name_col", "id");
    /* Empty is not given, as with the connector. */
    o = good("batch_size", "3", "name_col", "");
    assert_int_equal(sft_dataset_options_mode(o), SFT_DATASET_BATCH);
    sft_dataset_options_free(o);
    assert_int_equal(sft_dataset_options_new(NULL, 0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    sft_dataset_options_free(NULL);
}

static void batch_size(void **state) {
    static const char *const words[] = { "0",  "-1",  "1.5", "1e3", "x", "9223372036854775808",
                                         "0x10", " 1", "99999999999999999999" };
    sft_dataset_options *o;
    char message[200];
    (void)state;
    o = good("Batch_Size", "9223372036854775807", NULL, NULL);
    assert_int_equal(o->batch_size, INT64_MAX);
    sft_dataset_options_free(o);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(MAKE(&o, "batch_size", words[i]), SFT_OPTION_VALUE);
        (void)snprintf(message, sizeof message,
                       "option batch_size: expected a number of rows from 1 on, found \"%s\"",
                       words[i]);
        assert_string_equal(err.message, message);
        assert_null(o);
    }
}

/* ── Names ── */

static void unknown_names(void **state) {
    (void)state;
    bad(SFT_OPTION_UNKNOWN, "there is no option \"batchsize\"; did you mean \"batch_size\"?",
        "batch_size", "1", "batchsize", "1");
    bad(SFT_OPTION_UNKNOWN,
        "there is no option \"DuplicateStrategy\"; did you mean \"duplicatesStrategy\"?",
        "name_col", "a", "DuplicateStrategy", "fail");
    bad(SFT_OPTION_UNKNOWN, "there is no option \"kv_seperator\"; did you mean \"kv_separator\"?",
        "name_col", "a", "kv_seperator", "-");
    bad(SFT_OPTION_UNKNOWN, "there is no option \"compression\"", "name_col", "a", "compression",
        "zstd");
    bad(SFT_OPTION_UNKNOWN, "there is no option \"\"", "name_col", "a", "", "1");
    /* Before that the mode is missing. */
    bad(SFT_OPTION_UNKNOWN, "there is no option \"name_cols\"; did you mean \"name_col\"?",
        "name_cols", "a", "columns", "b");
    bad(SFT_OPTION_VALUE,
        "option Batch_size: expected the option once (case does not matter), found \"2\"",
        "batch_size", "1", "Batch_size", "2");
    bad(SFT_OPTION_VALUE, "option name_col: expected UTF-8, found \"\\xff\"", "name_col", "\xff",
        "columns", "a");
}

static void long_names(void **state) {
    char name[400];
    sft_dataset_options *o;
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(MAKE(&o, "name_col", "a", name, "1"), SFT_OPTION_UNKNOWN);
    assert_int_equal(strlen(err.message), strlen("there is no option \"\"") + 100);
}

/* ── Values ── */

static void words_of(const char *mode, const char *name, const char *const *words, size_t count,
                     const char *expected) {
    char message[200];
    for (size_t i = 0; i < count; i++)
        sft_dataset_options_free(good(mode, "1", name, words[i]));
    (void)snprintf(message, sizeof message, "option %s: expected %s, found \"none\"", name,
                   expected);
    bad(SFT_OPTION_VALUE, message, mode, "1", name, "none");
    (void)snprintf(message, sizeof message, "option %s: expected %s, found \"\"", name, expected);
    bad(SFT_OPTION_VALUE, message, mode, "1", name, "");
}

static void enumerations(void **state) {
    (void)state;
    words_of("name_col", "duplicatesStrategy",
             (const char *const[]){ "fail", "lastWin", "LASTWIN" }, 3, "fail or lastWin");
    words_of("name_col", "generate_index", (const char *const[]){ "true", "FALSE" }, 2,
             "true or false");
    words_of("batch_size", "generate_index", (const char *const[]){ "True", "false" }, 2,
             "true or false");
    words_of("batch_size", "tail_strategy", (const char *const[]){ "write", "DROP", "Pad" }, 3,
             "write, drop or pad");
    words_of("batch_size", "rounding", (const char *const[]){ "nearest", "Truncate" }, 2,
             "nearest or truncate");
    sft_dataset_options *o = good("name_col", "a", "duplicatesStrategy", "lastwin");
    assert_true(o->last_win);
    sft_dataset_options_free(o);
    o = good("batch_size", "1", "tail_strategy", "pad");
    assert_int_equal(o->tail, SFTI_TAIL_PAD);
    sft_dataset_options_free(o);
    o = good("batch_size", "1", "tail_strategy", "drop");
    assert_int_equal(o->tail, SFTI_TAIL_DROP);
    sft_dataset_options_free(o);
    o = good("batch_size", "1", "generate_index", "TRUE");
    assert_true(sft_dataset_options_indexed(o));
    sft_dataset_options_free(o);
    o = good("batch_size", "1", "rounding", "truncate");
    assert_true(o->truncate);
    sft_dataset_options_free(o);
}

static void shard_size(void **state) {
    static const char *const wrong[] = { "49", "1001", "0", "-50", "50.0", "", "x" };
    char message[200];
    sft_dataset_options *o;
    (void)state;
    o = good("name_col", "a", "target_shard_size_mb", "50");
    assert_int_equal(o->shard_bytes, 50u << 20);
    sft_dataset_options_free(o);
    o = good("name_col", "a", "target_shard_size_mb", "1000");
    assert_int_equal(o->shard_bytes, 1000u << 20);
    sft_dataset_options_free(o);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)snprintf(message, sizeof message,
                       "option target_shard_size_mb: expected MiB from 50 to 1000, found \"%s\"",
                       wrong[i]);
        bad(SFT_OPTION_VALUE, message, "name_col", "a", "target_shard_size_mb", wrong[i]);
    }
    /* Ignored in batch mode; so is a tail in KV mode. */
    sft_dataset_options_free(good("batch_size", "1", "target_shard_size_mb", "1"));
    sft_dataset_options_free(good("batch_size", "1", "duplicatesStrategy", "x"));
    sft_dataset_options_free(good("name_col", "a", "tail_strategy", "x"));
}

static void separator(void **state) {
    (void)state;
    sft_dataset_options *o = good("name_col", "a", "kv_separator", "");
    assert_int_equal(o->separator.len, 0);
    assert_non_null(o->separator.data);
    sft_dataset_options_free(o);
    o = good("name_col", "a", "kv_separator", " / ");
    assert_true(span_is(o->separator, " / "));
    sft_dataset_options_free(o);
}

static void seconds(void **state) {
    (void)state;
    sft_dataset_options *o = good("batch_size", "1", "keep_old", "3600");
    assert_int_equal(o->keep_old_s, 3600);
    assert_false(o->keep_versions);
    sft_dataset_options_free(o);
    o = good("batch_size", "1", "keep_old", "all");
    assert_true(o->keep_versions);
    sft_dataset_options_free(o);
    bad(SFT_OPTION_VALUE, "option keep_old: expected all or seconds, found \"-1\"", "batch_size",
        "1", "keep_old", "-1");
    bad(SFT_OPTION_VALUE, "option keep_old: expected all or seconds, found \"1h\"", "batch_size",
        "1", "keep_old", "1h");
}

static void batch_ids(void **state) {
    (void)state;
    sft_dataset_options *o = good("batch_size", "1", "batch_id", "a:b:41");
    assert_true(span_is(o->stream, "a:b"));
    assert_int_equal(o->batch, 41);
    sft_dataset_options_free(o);
    static const char *const wrong[] = { "41", ":41", "a:", "a:-1", "a:4 1",
                                         "a:18446744073709551616" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "option batch_id: expected the name of a stream and the "
                       "number of its batch, such as clicks:41, found \"%s\"", wrong[i]);
        bad(SFT_OPTION_VALUE, text, "batch_size", "1", "batch_id", wrong[i]);
    }
}

static void columns(void **state) {
    (void)state;
    sft_dataset_options *o = good("batch_size", "1", "columns", " a ,b,, c d ,\t");
    assert_int_equal(o->column_count, 3);
    assert_true(span_is(o->columns[0], "a"));
    assert_true(span_is(o->columns[1], "b"));
    assert_true(span_is(o->columns[2], "c d"));
    sft_dataset_options_free(o);
    bad(SFT_OPTION_VALUE,
        "option columns: expected names of columns separated by commas, or a JSON list, "
        "found \" , ,\"",
        "batch_size", "1", "columns", " , ,");
    bad(SFT_OPTION_VALUE,
        "option columns: expected names of columns separated by commas, or a JSON list, "
        "found \"\"",
        "batch_size", "1", "columns", "");
}

/* Names with commas, spaces, quotes and brackets of their own. */
static void columns_in_json(void **state) {
    (void)state;
    sft_dataset_options *o =
        good("batch_size", "1", "columns", " [\"a,b\", \" c\",\"\\u00fc\\\"\", \"[d]\"] ");
    assert_int_equal(o->column_count, 4);
    assert_true(span_is(o->columns[0], "a,b"));
    assert_true(span_is(o->columns[1], " c"));
    assert_true(span_is(o->columns[2], "\xc3\xbc\""));
    assert_true(span_is(o->columns[3], "[d]"));
    sft_dataset_options_free(o);
    static const char *const wrong[] = { "[]", "[1]", "[\"a\"", "[\"a\",]", "[\"a\" \"b\"]",
                                         "[\"a\"] b", "[[\"a\"]]", "[a]", "[\"a\", null]" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "option columns: expected names of columns separated by commas, or a JSON "
                 "list, found \"%s\"",
                 wrong[i]);
        bad(SFT_OPTION_VALUE, text, "batch_size", "1", "columns", wrong[i]);
    }
}

static void dtypes(void **state) {
    (void)state;
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) {
        const char *name = sft_dtype_describe((sft_dtype)i)->name;
        sft_dataset_options *o = good("batch_size", "1", "dtype", name);
        assert_int_equal(o->override_count, 1);
        assert_int_equal(o->overrides[0].column.len, 0);
        assert_true(o->overrides[0].has_dtype);
        assert_int_equal(o->overrides[0].dtype, i);
        sft_dataset_options_free(o);
    }
    sft_dataset_options *o = good("batch_size", "1", "dtype", " bf16 ");
    assert_int_equal(o->overrides[0].dtype, SFT_BF16);
    sft_dataset_options_free(o);
    o = good("batch_size", "1", "dtype",
             "{\"a\": \"f16\", \"\\u00e9\": \"I64\", \"a\": \"U8\"}");
    assert_int_equal(o->override_count, 2);
    assert_true(span_is(o->overrides[0].column, "a"));
    assert_int_equal(o->overrides[0].dtype, SFT_U8);
    assert_true(span_is(o->overrides[1].column, "\xc3\xa9"));
    assert_int_equal(o->overrides[1].dtype, SFT_I64);
    sft_dataset_options_free(o);
    sft_dataset_options_free(good("batch_size", "1", "dtype", "{}"));
}

static void upstream(void **state) {
    (void)state;
    sft_dataset_options *o = good("batch_size", "1", "compat", "Upstream");
    assert_true(o->upstream && !o->keep_versions && o->keep_old_s == 0);
    assert_int_equal(o->form, SFT_FORM_WHOLE);
    sft_dataset_options_free(o);
    bad(SFT_OPTION_VALUE, "option compat: expected upstream, found \"\"", "batch_size", "1",
        "compat", "");
    assert_int_equal(MAKE(&o, "batch_size", "1", "keep_old", "0", "compat", "upstream"), SFT_OK);
    sft_dataset_options_free(o);
    assert_int_equal(MAKE(&o, "batch_size", "1", "keep_old", "all", "compat", "upstream"),
                     SFT_OPTION_VALUE);
    assert_string_equal(err.message, "option keep_old: expected 0 with the option compat, whose "
                                     "readers read all files, found \"all\"");
    assert_int_equal(MAKE(&o, "batch_size", "1", "compat", "upstream", "keep_old", "5"),
                     SFT_OPTION_VALUE);
    assert_int_equal(MAKE(&o, "name_col", "k", "compat", "upstream", "manifest", "segments"),
                     SFT_OPTION_VALUE);
    assert_string_equal(err.message, "option manifest: expected whole with the option compat, "
                                     "found \"segments\"");
}

static void upstream_forms(void **state) {
    static const char *const all[][3] = {
        { "manifest", "segments", "option manifest: expected whole with the option compat" },
        { "merge_schema", "true", "option merge_schema: expected false with the option compat" },
        { "manifest", "whole", NULL }, { "merge_schema", "false", NULL },
    };
    sft_dataset_options *o;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sft_code code = MAKE(&o, "batch_size", "1", "compat", "upstream", all[i][0], all[i][1]);
        assert_int_equal(code, all[i][2] ? SFT_OPTION_VALUE : SFT_OK);
        if (all[i][2]) assert_int_equal(strncmp(err.message, all[i][2], strlen(all[i][2])), 0);
        sft_dataset_options_free(o);
    }
    /* An option without a value does not choose the mode. */
    assert_int_equal(MAKE(&o, "batch_size", "", "name_col", "id"), SFT_OK);
    assert_int_equal(sft_dataset_options_mode(o), SFT_DATASET_KV);
    sft_dataset_options_free(o);
    assert_int_equal(MAKE(&o, "batch_size", "2", "name_col", ""), SFT_OK);
    assert_int_equal(sft_dataset_options_mode(o), SFT_DATASET_BATCH);
    sft_dataset_options_free(o);
}

/* More columns than an option takes. */
static void many_dtypes(void **state) {
    static char text[65537 * 12 + 3];
    sft_dataset_options *o;
    (void)state;
    size_t at = 0;
    text[at++] = '{';
    for (int i = 0; i < 65537; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%x\":\"F4\"", i ? "," : "", i);
    text[at++] = '}';
    assert_int_equal(MAKE(&o, "batch_size", "1", "dtype", text), SFT_OPTION_VALUE);
    assert_int_equal(strncmp(err.message, "option dtype: expected fewer columns", 36), 0);
}

static void bad_dtypes(void **state) {
    static const char *const single[] = { "F33", "float32", "", "F16,F32", "\"F32\"" };
    static const char *const object[] = { "{", "{}x", "{\"a\"}", "{\"a\":\"F32\"",
                                          "{\"a\" \"F32\"}" };
    static const char *const value[] = { "{\"a\":32}", "{\"a\":\"float\"}", "{\"a\":null}",
                                         "{\"a\":[\"F32\"]}" };
    char message[300];
    (void)state;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        (void)snprintf(message, sizeof message,
                       "option dtype: expected a dtype (F32, BF16, I64, …), or "
                       "{\"column\": \"F32\"}, found \"%s\"", single[i]);
        bad(SFT_OPTION_VALUE, message, "batch_size", "1", "dtype", single[i]);
    }
    for (size_t i = 0; i < sizeof object / sizeof *object; i++) {
        sft_dataset_options *o;
        assert_int_equal(MAKE(&o, "batch_size", "1", "dtype", object[i]), SFT_OPTION_VALUE);
        assert_null(o);
    }
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        (void)snprintf(message, sizeof message,
                       "option dtype: expected names of dtypes, as {\"column\": \"F32\"}, "
                       "found \"%s\"", value[i]);
        bad(SFT_OPTION_VALUE, message, "batch_size", "1", "dtype", value[i]);
    }
}

static void shapes(void **state) {
    (void)state;
    sft_dataset_options *o =
        good("batch_size", "1", "shapes", "{\"a\": [3, 224, 224], \"b\": [], \"c\": [0]}");
    assert_int_equal(o->override_count, 3);
    assert_true(o->overrides[0].has_shape && !o->overrides[0].has_dtype);
    assert_int_equal(o->overrides[0].rank, 3);
    assert_int_equal(o->overrides[0].shape[2], 224);
    assert_int_equal(o->overrides[1].rank, 0);
    assert_int_equal(o->overrides[2].shape[0], 0);
    sft_dataset_options_free(o);
    bad(SFT_OPTION_VALUE,
        "option shapes: expected a JSON object of column and shape per sample, found \"[3]\"",
        "batch_size", "1", "shapes", "[3]");
    bad(SFT_OPTION_VALUE,
        "option shapes: expected shapes per sample, as {\"column\": [3, 224, 224]}, found "
        "\"{\"a\":[-1]}\"", "batch_size", "1", "shapes", "{\"a\":[-1]}");
    bad(SFT_OPTION_VALUE,
        "option shapes: expected shapes per sample, as {\"column\": [3, 224, 224]}, found "
        "\"{\"a\":3}\"", "batch_size", "1", "shapes", "{\"a\":3}");
    bad(SFT_OPTION_VALUE,
        "option shapes: expected shapes per sample, as {\"column\": [3, 224, 224]}, found "
        "\"{\"a\":[1.5]}\"", "batch_size", "1", "shapes", "{\"a\":[1.5]}");
}

/* Both options speak of one column. */
static void shape_and_dtype(void **state) {
    sft_dataset_options *o;
    (void)state;
    assert_int_equal(MAKE(&o, "batch_size", "1", "shapes", "{\"a\":[2],\"b\":[1]}", "dtype",
                          "{\"b\":\"F16\",\"c\":\"F32\"}"), SFT_OK);
    assert_int_equal(o->override_count, 3);
    assert_true(o->overrides[1].has_shape && o->overrides[1].has_dtype);
    assert_int_equal(o->overrides[1].dtype, SFT_F16);
    assert_false(o->overrides[2].has_shape);
    sft_dataset_options_free(o);
}

static void deep_shapes(void **state) {
    char text[600] = "{\"a\":[1";
    (void)state;
    for (int i = 1; i < SFT_MAX_RANK - 1; i++) strcat(text, ",1");
    strcat(text, "]}");
    sft_dataset_options *o = good("batch_size", "1", "shapes", text);
    assert_int_equal(o->overrides[0].rank, SFT_MAX_RANK - 1);
    sft_dataset_options_free(o);
    text[strlen(text) - 2] = '\0';
    strcat(text, ",1]}");
    assert_int_equal(MAKE(&o, "batch_size", "1", "shapes", text), SFT_OPTION_VALUE);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table),     cmocka_unit_test(the_manual),
        cmocka_unit_test(defaults),
        cmocka_unit_test(the_mode),      cmocka_unit_test(batch_size),
        cmocka_unit_test(unknown_names), cmocka_unit_test(long_names),
        cmocka_unit_test(enumerations),  cmocka_unit_test(shard_size),
        cmocka_unit_test(separator),     cmocka_unit_test(seconds), cmocka_unit_test(batch_ids),
        cmocka_unit_test(columns),
        cmocka_unit_test(columns_in_json),       cmocka_unit_test(dtypes),
        cmocka_unit_test(upstream_forms), cmocka_unit_test(many_dtypes),
        cmocka_unit_test(upstream), cmocka_unit_test(bad_dtypes),    cmocka_unit_test(shapes),
        cmocka_unit_test(shape_and_dtype), cmocka_unit_test(deep_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
