/* The reader and writer of JSON: the grammar as a table, positions, depth, round trips. */
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/sink.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── Helpers ── */

/* Read all; the code of the failure or SFT_OK, the position in *at. */
static sft_code read_all(const char *text, size_t len, size_t *at, size_t *events) {
    sfti_json json;
    *events = 0;
    sfti_json_begin(&json, text, len);
    while (sfti_json_next(&json) != SFTI_JSON_END) {
        if (json.type == SFTI_JSON_ERROR) {
            *at = json.error_at;
            assert_int_equal(sfti_json_next(&json), SFTI_JSON_ERROR); /* and says so again */
            return json.code;
        }
        ++*events;
        assert_true(*events <= len + 1);
    }
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_END);
    return SFT_OK;
}

/* The same verdict by skipping: the value whole, then what follows it. */
static sft_code skip_all(const char *text, size_t len, size_t *at) {
    sfti_json json;
    sfti_json_begin(&json, text, len);
    sfti_json_next(&json);
    if (sfti_json_skip(&json) != SFTI_JSON_ERROR) sfti_json_next(&json);
    if (json.type == SFTI_JSON_END) return SFT_OK;
    assert_int_equal(json.type, SFTI_JSON_ERROR);
    *at = json.error_at;
    return json.code;
}

typedef struct row {
    const char *text;
    sft_code code;
    size_t at;
} row;

/* The text lies in memory of exactly its length, so that a sanitizer sees any overrun. */
static void check_row(const row *r) {
    size_t len = strlen(r->text), at = 0, events;
    char *exact = malloc(len + !len);
    memcpy(exact, r->text, len);
    sft_code code = read_all(exact, len, &at, &events);
    if (code != r->code || (code && at != r->at))
        fail_msg("%s: expected code %d at %zu, found %d at %zu", r->text, r->code, r->at, code,
                 at);
    code = skip_all(exact, len, &at);
    if (code != r->code || (code && at != r->at))
        fail_msg("%s: expected code %d at %zu, skipping found %d at %zu", r->text, r->code,
                 r->at, code, at);
    free(exact);
}

static void check_rows(const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) check_row(&rows[i]);
}

/* ── Grammar ── */

static void accepts(void **state) {
    static const char *const texts[] = {
        "{}", "[]", "null", "true", "false", "\"\"", "0", "-0", "-1", "18446744073709551615",
        "18446744073709551616", "1.5", "1e5", "1E+5", "1e-5", "-0.0e-0", "1e308", "1e-999",
        "0e999", "0.0e999", " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n", "[[],{},[[]]]",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uD834\\udd1e\"", "\"\\ud7ff\\ue000\"",
        "{\"a\":1,\"a\":2}", "{\"\":null}", "[true,false,null]", "\"\x7f\"", "\"\xc3\xa9\"",
        "1.7976931348623157e308", "[0,1.5,1e5,-0,0.5]", "[123456789012345678]",
        "0.123456789012345678901234567890", "[1E2]", "[1234567890123456789]",
        "[12345678901234567890123456789]", "{\"a\":7}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_row(&(row){ texts[i], SFT_OK, 0 });
}

static void refuses_syntax(void **state) {
    static const row rows[] = {
        { "", SFT_JSON_SYNTAX, 0 },          { " ", SFT_JSON_SYNTAX, 1 },
        { "{", SFT_JSON_SYNTAX, 1 },         { "[", SFT_JSON_SYNTAX, 1 },
        { "}", SFT_JSON_SYNTAX, 0 },         { "]", SFT_JSON_SYNTAX, 0 },
        { "{]", SFT_JSON_SYNTAX, 1 },        { "[}", SFT_JSON_SYNTAX, 1 },
        { "{,}", SFT_JSON_SYNTAX, 1 },       { "[,]", SFT_JSON_SYNTAX, 1 },
        { "[1,]", SFT_JSON_SYNTAX, 3 },      { "[1 2]", SFT_JSON_SYNTAX, 3 },
        { "{\"a\"}", SFT_JSON_SYNTAX, 4 },   { "{\"a\":}", SFT_JSON_SYNTAX, 5 },
        { "{\"a\":1,}", SFT_JSON_SYNTAX, 7 }, { "{\"a\":1 \"b\":2}", SFT_JSON_SYNTAX, 7 },
        { "{a:1}", SFT_JSON_SYNTAX, 1 },     { "{1:1}", SFT_JSON_SYNTAX, 1 },
        { "{'a':1}", SFT_JSON_SYNTAX, 1 },   { "{\"a\" 1}", SFT_JSON_SYNTAX, 5 },
        { "{\"a\"::1}", SFT_JSON_SYNTAX, 5 }, { "[1}", SFT_JSON_SYNTAX, 2 },
        { "{\"a\":1]", SFT_JSON_SYNTAX, 6 }, { "tru", SFT_JSON_SYNTAX, 0 },
        { "nul", SFT_JSON_SYNTAX, 0 },       { "True", SFT_JSON_SYNTAX, 0 },
        { "NaN", SFT_JSON_SYNTAX, 0 },       { "Infinity", SFT_JSON_SYNTAX, 0 },
        { "\xef\xbb\xbf{}", SFT_JSON_SYNTAX, 0 }, { "/**/1", SFT_JSON_SYNTAX, 0 },
        { "\v1", SFT_JSON_SYNTAX, 0 },       { "{\"a\":", SFT_JSON_SYNTAX, 5 },
        { "{\"a\"", SFT_JSON_SYNTAX, 4 },    { "[1", SFT_JSON_SYNTAX, 2 },
        { "\"abc", SFT_JSON_SYNTAX, 4 },     { "\"abc\\", SFT_JSON_SYNTAX, 4 },
        { "+1", SFT_JSON_SYNTAX, 0 },        { ".5", SFT_JSON_SYNTAX, 0 },
    };
    (void)state;
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void refuses_what_follows(void **state) {
    static const row rows[] = {
        { "{}{}", SFT_JSON_TRAILING, 2 },  { "{} x", SFT_JSON_TRAILING, 3 },
        { "[]]", SFT_JSON_TRAILING, 2 },   { "1 2", SFT_JSON_TRAILING, 2 },
        { "null,", SFT_JSON_TRAILING, 4 }, { "truex", SFT_JSON_TRAILING, 4 },
    };
    size_t at = 0, events;
    (void)state;
    check_rows(rows, sizeof rows / sizeof *rows);
    assert_int_equal(read_all("{}\0", 3, &at, &events), SFT_JSON_TRAILING);
    assert_int_equal(at, 2);
}

static void refuses_strings(void **state) {
    static const row rows[] = {
        { "\"\\x\"", SFT_JSON_STRING, 1 },     { "\"\\u12\"", SFT_JSON_STRING, 1 },
        { "\"\\u123g\"", SFT_JSON_STRING, 1 }, { "\"\\ud800\"", SFT_JSON_STRING, 1 },
        { "\"\\udc00\"", SFT_JSON_STRING, 1 }, { "\"a\\ud800\\u0041\"", SFT_JSON_STRING, 2 },
        { "\"\\ud800\\ud800\"", SFT_JSON_STRING, 1 }, { "\"\\udbff\\n\"", SFT_JSON_STRING, 1 },
        { "\"a\nb\"", SFT_JSON_STRING, 2 },    { "\"\x1f\"", SFT_JSON_STRING, 1 },
        { "{\"\t\":1}", SFT_JSON_STRING, 2 },  { "\"\\U0041\"", SFT_JSON_STRING, 1 },
        { "\"0123456789\x01\"", SFT_JSON_STRING, 11 },
        { "\"\\u12:4\"", SFT_JSON_STRING, 1 },  { "\"\\ud800\\ue000\"", SFT_JSON_STRING, 1 },
        { "\"\\ud800\\n12345\"", SFT_JSON_STRING, 1 },
    };
    (void)state;
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void refuses_numbers(void **state) {
    static const row rows[] = {
        { "01", SFT_JSON_NUMBER, 0 },    { "-", SFT_JSON_NUMBER, 1 },
        { "-01", SFT_JSON_NUMBER, 1 },   { "1.", SFT_JSON_NUMBER, 2 },
        { "1.e5", SFT_JSON_NUMBER, 2 },  { "1e", SFT_JSON_NUMBER, 2 },
        { "1e+", SFT_JSON_NUMBER, 3 },   { "[1ex]", SFT_JSON_NUMBER, 3 },
        { "1e999", SFT_JSON_NUMBER, 0 }, { "-1e999", SFT_JSON_NUMBER, 0 },
        { "1e309", SFT_JSON_NUMBER, 0 }, { "[1,1e99999999999999999999]", SFT_JSON_NUMBER, 3 },
        { "[01]", SFT_JSON_NUMBER, 1 },  { "[0,00]", SFT_JSON_NUMBER, 3 },
        { "[1.]", SFT_JSON_NUMBER, 3 },  { "{\"a\":7e}", SFT_JSON_NUMBER, 7 },
        { "--1", SFT_JSON_NUMBER, 1 },   { "-a", SFT_JSON_NUMBER, 1 },
    };
    (void)state;
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void numbers_keep_their_kind(void **state) {
    static const struct {
        const char *text;
        sfti_json_type type;
        uint64_t value;
    } rows[] = {
        { "0", SFTI_JSON_UINT, 0 },
        { "18446744073709551615", SFTI_JSON_UINT, UINT64_MAX },
        { "18446744073709551616", SFTI_JSON_NUMBER, 0 },
        { "-0", SFTI_JSON_NUMBER, 0 },
        { "1.0", SFTI_JSON_NUMBER, 0 },
        { "1e0", SFTI_JSON_NUMBER, 0 },
        { "-7", SFTI_JSON_NUMBER, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sfti_json json;
        sfti_json_begin(&json, rows[i].text, strlen(rows[i].text));
        assert_int_equal(sfti_json_next(&json), rows[i].type);
        assert_true(json.value == rows[i].value);
        assert_true(sft_span_equal(json.text, sft_span_cstr(rows[i].text)));
    }
}

/* ── Depth ── */

static size_t nest(char *out, size_t depth, bool objects) {
    size_t n = 0;
    for (size_t i = 0; i < depth; i++) {
        if (objects) n += (size_t)sprintf(out + n, "{\"\":");
        else out[n++] = '[';
    }
    if (objects) out[n++] = '0';
    memset(out + n, objects ? '}' : ']', depth);
    return n + depth;
}

static void depth_ends_at_127(void **state) {
    char text[1024];
    (void)state;
    for (int objects = 0; objects <= 1; objects++) {
        size_t at = 0, events, len = nest(text, 127, objects);
        assert_int_equal(read_all(text, len, &at, &events), SFT_OK);
        len = nest(text, 128, objects);
        assert_int_equal(read_all(text, len, &at, &events), SFT_JSON_DEPTH);
        assert_int_equal(at, objects ? 127 * 4 : 127);
        at = 0;
        assert_int_equal(skip_all(text, len, &at), SFT_JSON_DEPTH);
        assert_int_equal(at, objects ? 127 * 4 : 127);
        len = nest(text, 127, objects);
        assert_int_equal(skip_all(text, len, &at), SFT_OK);
    }
}

/* Integers in runs stand at the begin of an array and nowhere else. */
static void integers_in_runs(void **state) {
    static const char text[] = "{\"a\":[1,22,333,4,5,6,7,8,9,10,11,12]}";
    sfti_json json;
    uint64_t found[2] = { 0, 0 };
    (void)state;
    sfti_json_begin(&json, text, sizeof text - 1);
    assert_int_equal(sfti_json_uints(&json, found, 2), 0);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_OBJECT);
    assert_int_equal(sfti_json_uints(&json, found, 2), 0);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_KEY);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_ARRAY);
    uint64_t count = sfti_json_uints(&json, found, 2);
    assert_true(count >= 2 && count < 12);
    assert_int_equal(found[0], 1);
    assert_int_equal(found[1], 22);
    for (; sfti_json_next(&json) == SFTI_JSON_UINT; count++) continue;
    assert_int_equal(count, 12);
    assert_int_equal(json.type, SFTI_JSON_ARRAY_END);
}

static void depth_is_told(void **state) {
    const char *text = "{\"a\":[1,{}]}";
    static const struct { sfti_json_type type; uint32_t depth; size_t start; } want[] = {
        { SFTI_JSON_OBJECT, 1, 0 }, { SFTI_JSON_KEY, 1, 1 }, { SFTI_JSON_ARRAY, 2, 5 },
        { SFTI_JSON_UINT, 2, 6 }, { SFTI_JSON_OBJECT, 3, 8 }, { SFTI_JSON_OBJECT_END, 2, 9 },
        { SFTI_JSON_ARRAY_END, 1, 10 }, { SFTI_JSON_OBJECT_END, 0, 11 },
        { SFTI_JSON_END, 0, 12 },
    };
    sfti_json json;
    (void)state;
    sfti_json_begin(&json, text, strlen(text));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_int_equal(sfti_json_next(&json), want[i].type);
        assert_int_equal(json.depth, want[i].depth);
        assert_int_equal(json.start, want[i].start);
    }
}

/* ── Skipping and strings ── */

static void skips_values(void **state) {
    const char *text = "{\"a\":[1,{\"x\":[2]},3],\"b\":7,\"c\":{}}";
    sfti_json json;
    (void)state;
    sfti_json_begin(&json, text, strlen(text));
    assert_int_equal(sfti_json_skip(&json), SFTI_JSON_NULL); /* nothing yet */
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_OBJECT);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_KEY);
    assert_int_equal(sfti_json_skip(&json), SFTI_JSON_ARRAY_END);
    assert_int_equal(sfti_json_skip(&json), SFTI_JSON_ARRAY_END);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_KEY);
    assert_int_equal(sfti_json_skip(&json), SFTI_JSON_UINT);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_KEY);
    assert_true(sft_span_equal(json.text, sft_span_cstr("c")));
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_OBJECT);
    assert_int_equal(sfti_json_skip(&json), SFTI_JSON_OBJECT_END);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_OBJECT_END);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_END);
}

static void skips_whole_and_bad(void **state) {
    sfti_json json;
    (void)state;
    sfti_json_begin(&json, "[[1],2]", 7);
    sfti_json_next(&json);
    assert_int_equal(sfti_json_skip(&json), SFTI_JSON_ARRAY_END);
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_END);
    sfti_json_begin(&json, "[[1],x]", 7);
    sfti_json_next(&json);
    assert_int_equal(sfti_json_skip(&json), SFTI_JSON_ERROR);
    assert_int_equal(json.error_at, 5);
}

static void decodes_strings(void **state) {
    const char *text = "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\u20aC\\uD834\\uDD1Ez\"";
    const char want[] = "a\"\\/\b\f\n\r\t\0\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9ez";
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_json json;
    (void)state;
    sfti_json_begin(&json, text, strlen(text));
    assert_int_equal(sfti_json_next(&json), SFTI_JSON_STRING);
    assert_true(json.escaped);
    sft_span got = sfti_json_string(&json, &arena);
    assert_int_equal(got.len, sizeof want - 1);
    assert_memory_equal(got.data, want, got.len);
    sfti_arena_free(&arena);
    sfti_json_begin(&json, "\"plain\"", 7);
    sfti_json_next(&json);
    assert_false(json.escaped);
    assert_ptr_equal(sfti_json_string(&json, &arena).data, json.begin + 1);
}

static void *no_memory(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    (void)ptr;
    (void)old_size;
    (void)new_size;
    return NULL;
}

static void decoding_may_lack_memory(void **state) {
    sfti_arena arena = { .alloc = { no_memory, NULL } };
    sfti_json json;
    (void)state;
    sfti_json_begin(&json, "\"\\n\"", 4);
    sfti_json_next(&json);
    assert_null(sfti_json_string(&json, &arena).data);
}

static void failures_are_told(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sfti_json json;
    (void)state;
    sfti_json_begin(&json, "[1;2]", 5);
    while (sfti_json_next(&json) != SFTI_JSON_ERROR) {}
    assert_int_equal(sfti_json_fail(&json, 8, &err), SFT_JSON_SYNTAX);
    assert_int_equal(err.offset, 10);
    assert_string_equal(err.message, "expected ',' or ']', found ;2");
    sfti_json_begin(&json, "[1", 2);
    while (sfti_json_next(&json) != SFTI_JSON_ERROR) {}
    assert_int_equal(sfti_json_fail(&json, 0, &err), SFT_JSON_SYNTAX);
    assert_string_equal(err.message, "expected ',' or ']', found the end of the text");
    sfti_json_begin(&json, "[\xc3\xa9]", 4);
    while (sfti_json_next(&json) != SFTI_JSON_ERROR) {}
    sfti_json_fail(&json, 0, &err);
    assert_string_equal(err.message, "expected a JSON value, found \xc3\xa9");
}

/* ── Writer ── */

typedef struct written {
    sft_buffer buffer;
    sft_sink sink;
    sfti_json_writer w;
} written;

static void write_begin(written *out) {
    memset(&out->buffer, 0, sizeof out->buffer);
    out->sink = sft_sink_memory(&out->buffer);
    sfti_json_write(&out->w, &out->sink, 0, NULL);
}

static void write_end(written *out) {
    assert_int_equal(sfti_json_done(&out->w), SFT_OK);
    assert_int_equal(sft_sink_finish(&out->sink, NULL), SFT_OK);
}

static void assert_written(written *out, const char *want) {
    write_end(out);
    assert_int_equal(out->buffer.len, strlen(want));
    assert_memory_equal(out->buffer.data, want, out->buffer.len);
    sft_buffer_free(&out->buffer);
}

static void writes_shapes(void **state) {
    written out;
    (void)state;
    write_begin(&out);
    sfti_json_open(&out.w, '{');
    sfti_json_key(&out.w, "a");
    sfti_json_open(&out.w, '[');
    sfti_json_uint(&out.w, 0);
    sfti_json_uint(&out.w, UINT64_MAX);
    sfti_json_close(&out.w, ']');
    sfti_json_key(&out.w, "b");
    sfti_json_open(&out.w, '{');
    sfti_json_close(&out.w, '}');
    sfti_json_put_bool(&out.w, "c", true);
    sfti_json_key_span(&out.w, (sft_span){ "d\0e", 3 });
    sfti_json_raw(&out.w, sft_span_cstr("false"));
    sfti_json_key(&out.w, "f");
    sfti_json_cstr(&out.w, NULL);
    sfti_json_key(&out.w, "g");
    sfti_json_raw(&out.w, sft_span_cstr("1.50"));
    sfti_json_key(&out.w, "h");
    sfti_json_cstr(&out.w, "");
    sfti_json_close(&out.w, '}');
    assert_int_equal(out.w.depth, 0);
    assert_written(&out, "{\"a\":[0,18446744073709551615],\"b\":{},\"c\":true,"
                         "\"d\\u0000e\":false,\"f\":null,\"g\":1.50,\"h\":\"\"}");
}

static void writes_escapes(void **state) {
    static const struct { const char *text, *want; } rows[] = {
        { "a\"b\\c/", "\"a\\\"b\\\\c/\"" },
        { "\b\t\n\f\r\x01\x1f", "\"\\b\\t\\n\\f\\r\\u0001\\u001f\"" },
        { "\x7f\xc2\x80\xc2\x9f\xc2\xa0", "\"\\u007f\\u0080\\u009f\xc2\xa0\"" },
        { "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae\xe2\x81\xa6", "\"\\u2028\\u2029\\u202e\\u2066\"" },
        { "\xff\xc3", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xf0\x9d\x84\x9e", "\"\xf0\x9d\x84\x9e\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        written out;
        write_begin(&out);
        sfti_json_cstr(&out.w, rows[i].text);
        assert_written(&out, rows[i].want);
    }
}

/* What is escaped for human eyes is escaped in JSON too, and nothing else is. */
static void escapes_the_same_set(void **state) {
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        char text[4], human[16];
        written out;
        size_t used, len = sfti_utf8_encode(c, text);
        size_t put = sfti_escape(text, len, human, sizeof human, &used);
        bool plain = put == len && memcmp(human, text, len) == 0;
        write_begin(&out);
        sfti_json_span(&out.w, (sft_span){ text, len });
        bool json_plain = out.w.used == len + 2;
        if (plain != (json_plain || c == '"')) fail_msg("U+%04X differs", c);
    }
}

/* Copy one document event by event. */
static void copy_event(sfti_json_writer *w, const sfti_json *json, sfti_arena *arena) {
    switch (json->type) {
    case SFTI_JSON_OBJECT: sfti_json_open(w, '{'); break;
    case SFTI_JSON_OBJECT_END: sfti_json_close(w, '}'); break;
    case SFTI_JSON_ARRAY: sfti_json_open(w, '['); break;
    case SFTI_JSON_ARRAY_END: sfti_json_close(w, ']'); break;
    case SFTI_JSON_KEY: sfti_json_key_span(w, sfti_json_string(json, arena)); break;
    case SFTI_JSON_STRING: sfti_json_span(w, sfti_json_string(json, arena)); break;
    case SFTI_JSON_UINT: sfti_json_uint(w, json->value); break;
    default: sfti_json_raw(w, json->text); break;
    }
}

static void assert_round_trip(const char *text, const char *want) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    written out;
    sfti_json json;
    sfti_json_begin(&json, text, strlen(text));
    write_begin(&out);
    while (sfti_json_next(&json) != SFTI_JSON_END) {
        assert_int_not_equal(json.type, SFTI_JSON_ERROR);
        copy_event(&out.w, &json, &arena);
    }
    assert_written(&out, want);
    sfti_arena_free(&arena);
}

static void round_trips(void **state) {
    (void)state;
    assert_round_trip(" [ ] ", "[]");
    assert_round_trip("{ \"a\" : [ 1 , -2.50e1 , true , null , { } ] , \"\\u0041\" : \"\\n\" }",
                      "{\"a\":[1,-2.50e1,true,null,{}],\"A\":\"\\n\"}");
    assert_round_trip("[[[],[]],[{\"\":{\"x\":false}}]]", "[[[],[]],[{\"\":{\"x\":false}}]]");
    assert_round_trip("\"\\uD834\\uDD1E\\u0000\\u2028\"", "\"\xf0\x9d\x84\x9e\\u0000\\u2028\"");
}

/* ── Writer: pieces and failures ── */

typedef struct counted {
    size_t calls, bytes, largest, fail_at;
} counted;

static sft_code count_write(void *ctx, uint64_t offset, const void *bytes, size_t len,
                            sft_error *err) {
    counted *c = ctx;
    (void)bytes;
    assert_int_equal(offset, 5 + c->bytes);
    if (++c->calls == c->fail_at) return sft_error_set(err, SFT_IO_WRITE, 28, "disk full");
    c->bytes += len;
    if (len > c->largest) c->largest = len;
    return SFT_OK;
}

static const sft_sink_vtable count_vtable = { .size = sizeof(sft_sink_vtable),
                                              .write = count_write };

static void write_long(sfti_json_writer *w) {
    static const char text[1000] = { 'x' };
    sfti_json_open(w, '[');
    for (int i = 0; i < 50; i++) sfti_json_span(w, (sft_span){ text, sizeof text });
    sfti_json_close(w, ']');
}

static void buffers_its_4096_bytes_only(void **state) {
    counted c = { 0 };
    sft_sink sink = { .ctx = &c, .vtable = &count_vtable };
    sfti_json_writer w;
    (void)state;
    sfti_json_write(&w, &sink, 5, NULL);
    write_long(&w);
    assert_int_equal(sfti_json_done(&w), SFT_OK);
    assert_int_equal(c.bytes, 50 * (2 + 1 + 999 * 6) + 49 + 2);
    assert_int_equal(c.largest, 4096);
    assert_int_equal(w.offset, 5 + c.bytes);
}

static void keeps_the_first_failure(void **state) {
    counted c = { .fail_at = 2 };
    sft_sink sink = { .ctx = &c, .vtable = &count_vtable };
    sft_error err = SFT_ERROR_INIT;
    sfti_json_writer w;
    (void)state;
    sfti_json_write(&w, &sink, 5, &err);
    write_long(&w);
    assert_int_equal(sfti_json_done(&w), SFT_IO_WRITE);
    assert_int_equal(sfti_json_done(&w), SFT_IO_WRITE);
    assert_int_equal(c.calls, 2);
    assert_int_equal(err.os_errno, 28);
    assert_string_equal(err.message, "disk full");
}

static void keys_and_values(void **state) {
    static const uint64_t shape[] = { 2, 3 };
    sft_buffer buffer = { 0 };
    sft_sink sink = sft_sink_memory(&buffer);
    sfti_json_writer w;
    (void)state;
    sfti_json_write(&w, &sink, 0, NULL);
    sfti_json_open(&w, '{');
    sfti_json_put_uint(&w, "u", UINT64_MAX);
    sfti_json_put_known(&w, "k", UINT64_MAX);
    sfti_json_put_known(&w, "l", 7);
    sfti_json_put_text(&w, "s", (sft_span){ "a\0b", 3 });
    sfti_json_put_text(&w, "t", (sft_span){ NULL, 0 });
    sfti_json_put_cstr(&w, "c", NULL);
    sfti_json_put_double(&w, "d", 0.5);
    sfti_json_put_bool(&w, "b", false);
    sfti_json_put_null(&w, "n");
    sfti_json_put_shape(&w, "shape", shape, 2);
    sfti_json_close(&w, '}');
    assert_int_equal(sfti_sink_end(&sink, sfti_json_done(&w), NULL), SFT_OK);
    static const char expected[] =
        "{\"u\":18446744073709551615,\"k\":null,\"l\":7,"
        "\"s\":\"a\\u0000b\",\"t\":null,\"c\":null,\"d\":0.5,\"b\":false,\"n\":null,"
        "\"shape\":[2,3]}";
    assert_int_equal(buffer.len, sizeof expected - 1);
    assert_memory_equal(buffer.data, expected, buffer.len);
    sft_buffer_free(&buffer);
}

/* Decimal numbers with and without zeros before them. */
static void writes_numbers(void **state) {
    static const struct { uint64_t value; size_t width; const char *text; } rows[] = {
        { 0, 0, "0" }, { 7, 1, "7" }, { 10, 0, "10" }, { 42, 5, "00042" },
        { 123456, 5, "123456" }, { UINT64_MAX, 0, "18446744073709551615" },
        { 1, 99, "00000000000000000001" },
    };
    char buffer[SFTI_UINT_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = sfti_uint_text(rows[i].value, rows[i].width, buffer);
        assert_int_equal(len, strlen(rows[i].text));
        assert_memory_equal(buffer, rows[i].text, len);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts),
        cmocka_unit_test(refuses_syntax),
        cmocka_unit_test(refuses_what_follows),
        cmocka_unit_test(refuses_strings),
        cmocka_unit_test(refuses_numbers),
        cmocka_unit_test(numbers_keep_their_kind),
        cmocka_unit_test(depth_ends_at_127),
        cmocka_unit_test(integers_in_runs), cmocka_unit_test(depth_is_told),
        cmocka_unit_test(skips_values),
        cmocka_unit_test(skips_whole_and_bad),
        cmocka_unit_test(decodes_strings),
        cmocka_unit_test(decoding_may_lack_memory),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(writes_shapes),
        cmocka_unit_test(writes_escapes),
        cmocka_unit_test(escapes_the_same_set),
        cmocka_unit_test(buffers_its_4096_bytes_only),
        cmocka_unit_test(keeps_the_first_failure),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(keys_and_values), cmocka_unit_test(writes_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
