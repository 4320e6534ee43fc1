#include "base/error.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

static void version_is_that_of_the_header(void **state) {
    (void)state;
    assert_string_equal(sft_version(), SFT_VERSION_STRING);
}

static void codes_are_described_once(void **state) {
    (void)state;
    for (size_t i = 0; sft_code_at(i); i++) {
        const sft_code_info *row = sft_code_at(i);
        assert_ptr_equal(sft_code_describe(row->code), row);
        assert_true(strlen(row->name) > 0 && strlen(row->sentence) > 0);
        if (i > 0) assert_true(row->code > sft_code_at(i - 1)->code);
        if (row->code >= 100) assert_true(row->cls != SFT_CLASS_NONE);
    }
    assert_string_equal(sft_code_describe((sft_code)99999)->name, "unknown");
    assert_string_equal(sft_code_describe(SFT_DATA_TRUNCATED)->rule, "R38");
    assert_int_equal(sft_code_describe(SFT_TENSOR_DUPLICATE)->level, SFT_LEVEL_DEFAULT);
}

static void text_is_escaped_and_cut(void **state) {
    (void)state;
    sft_error err = SFT_ERROR_INIT;
    char text[2000];
    memset(text, '\x1b', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(sft_error_set(&err, SFT_IO_READ, 5, text), SFT_IO_READ);
    assert_int_equal(err.os_errno, 5);
    assert_true(strlen(err.message) < sizeof err.message);
    assert_memory_equal(err.message, "\\x1b\\x1b", 8);
    for (const char *p = err.message; *p; p++) assert_true(*p >= ' ');
    assert_int_equal(sft_error_set(NULL, SFT_IO_READ, 5, text), SFT_IO_READ);
    (void)sft_error_set(&err, SFT_CANCELLED, 0, NULL);
    assert_string_equal(err.message, "cancelled by the caller");
}

static void tensor_is_cut_between_characters(void **state) {
    (void)state;
    sft_error err = SFT_ERROR_INIT;
    char name[300];
    sft_span span = { name, sizeof name };
    memset(name, 'a', sizeof name);
    memcpy(name + 254, "\xe2\x82\xac", 3); /* the euro sign would pass the 256th byte */
    sfti_error_tensor(&err, span);
    assert_int_equal(err.tensor_len, 254);
    span.len = 0;
    sfti_error_tensor(&err, span);
    assert_int_equal(err.tensor_len, 0);
    memset(name, 0x80, sizeof name); /* no character begins here */
    span.len = sizeof name;
    sfti_error_tensor(&err, span);
    assert_int_equal(err.tensor_len, 0);
}

static void no_error_is_no_error(void **state) {
    (void)state;
    sft_error err = SFT_ERROR_INIT;
    sfti_error_clear(NULL);
    sfti_error_tensor(NULL, sft_span_cstr("t"));
    sfti_error_text(NULL, "%d", 1);
    assert_int_equal(sfti_fail_cancelled(NULL), SFT_CANCELLED);
    assert_int_equal(sft_span_cstr(NULL).len, 0);
    assert_null(sft_span_cstr(NULL).data);
    /* What cannot be formatted leaves no text. */
    sfti_error_text(&err, "%lc", (wint_t)0x7FFFFFFF);
    assert_string_equal(err.message, "");
}

static void place_shows_one_token(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t at;
        const char *message;
    } rows[] = {
        { "{\"a\":12,\"b\":1}", 5, "expected X, found 12" },
        { "{\"a\":12,\"b\":1}", 8, "expected X, found \"b\"" },
        { "{\"a\":[1]}", 5, "expected X, found an array" },
        { "{\"a\":{}}", 5, "expected X, found an object" },
        { "{}", 2, "expected X, found the end of the text" },
        { "\x01", 0, "expected X, found \\x01" },
        { "}}", 0, "expected X, found }" },
        { " 1", 0, "expected X, found white space" },
        { "\t1", 0, "expected X, found white space" },
        { "\r1", 0, "expected X, found white space" },
        { "\n1", 0, "expected X, found white space" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_span text = sft_span_cstr(rows[i].text);
        assert_int_equal(sfti_fail_at(&err, SFT_JSON_SYNTAX, 8, text, rows[i].at, "X"),
                         SFT_JSON_SYNTAX);
        assert_string_equal(err.message, rows[i].message);
        assert_int_equal(err.offset, 8 + rows[i].at);
    }
}

static void escape_is_for_human_eyes(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        { "plain", "plain" },
        { "\xc3\xa9", "\xc3\xa9" },
        { "a\\b", "a\\\\b" },
        { "\n\t\r", "\\n\\t\\r" },
        { "\x1b[31m", "\\x1b[31m" },
        { "\x7f", "\\x7f" },
        { "\xc2\x9b" "2J", "\\u{009b}2J" },
        { "\xe2\x80\xae", "\\u{202e}" },
        { "\xe2\x81\xa6", "\\u{2066}" },
        { "\xe2\x80\xa8", "\\u{2028}" },
        { "soft\xc2\xadhyphen", "soft\\u{00ad}hyphen" },
        { "zero\xe2\x80\x8bwidth", "zero\\u{200b}width" },
        { "word\xe2\x81\xa0joiner", "word\\u{2060}joiner" },
        { "\xef\xb8\x8f", "\\u{fe0f}" },
        { "\xf3\xa0\x81\x81", "\\u{e0041}" },
        { "\xf3\xa0\x84\x80", "\\u{e0100}" },
        { "\xff\xfe", "\\xff\\xfe" },
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[64];
        size_t used, len = strlen(rows[i][0]);
        size_t n = sfti_escape(rows[i][0], len, out, sizeof out, &used);
        assert_int_equal(used, len);
        assert_int_equal(n, strlen(rows[i][1]));
        assert_memory_equal(out, rows[i][1], n);
    }
    char small[3];
    size_t used;
    assert_int_equal(sfti_escape("ab\x1b", 3, small, sizeof small, &used), 2);
    assert_int_equal(used, 2);
}

static const char *words(sft_hint hint) {
    return hint == SFT_HINT_REPLACE ? "press R" : hint == SFT_HINT_PROGRAM ? "press H" : NULL;
}

static void hints_in_the_words_of_the_program(void **state) {
    (void)state;
    assert_null(sft_hint_text(SFT_HINT_NONE));
    assert_null(sft_hint_text(SFT_HINT_PROGRAM));
    sft_on_hint(words);
    assert_string_equal(sft_hint_text(SFT_HINT_REPLACE), "press R");
    assert_string_equal(sft_hint_text(SFT_HINT_PROGRAM), "press H");
    assert_string_equal(sft_hint_text(SFT_HINT_TRY_LATER), "try again when it is done");
    sft_on_hint(NULL);
    assert_string_equal(sft_hint_text(SFT_HINT_REPLACE), "the options can allow replacing it");
}

/* A rule broken at no byte of a file: nobody else's writer is at fault. */
static void hints_of_files_need_a_file(void **state) {
    (void)state;
    static const sft_code codes[] = { SFT_SIZE_PARTIAL_BYTE, SFT_TENSOR_DUPLICATE,
                                      SFT_HEADER_TOO_LARGE, SFT_DTYPE_UNKNOWN };
    sft_error err;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        (void)sfti_fail(&err, codes[i], "expected x, found y");
        assert_int_equal(err.hint, SFT_HINT_NONE);
        (void)sfti_fail_byte(&err, codes[i], 8, "expected x, found y");
        assert_int_not_equal(err.hint, SFT_HINT_NONE);
        assert_int_equal(err.hint, sft_code_describe(codes[i])->hint);
    }
    (void)sfti_fail(&err, SFT_EXISTS, "already exists");
    assert_int_equal(err.hint, SFT_HINT_REPLACE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_is_that_of_the_header),
        cmocka_unit_test(codes_are_described_once),
        cmocka_unit_test(text_is_escaped_and_cut),
        cmocka_unit_test(tensor_is_cut_between_characters),
        cmocka_unit_test(no_error_is_no_error),
        cmocka_unit_test(place_shows_one_token),
        cmocka_unit_test(escape_is_for_human_eyes),
        cmocka_unit_test(hints_in_the_words_of_the_program),
        cmocka_unit_test(hints_of_files_need_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
