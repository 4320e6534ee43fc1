/* An error as a line: all that is known, in order; escaped; cut anywhere. */
#include "safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static sft_error an_error(const char *tensor, size_t len) {
    sft_error err = SFT_ERROR_INIT;
    (void)sft_error_set(&err, SFT_SIZE_MISMATCH, 0, "expected 24 bytes, found 20");
    err.hint = SFT_HINT_NONE;
    if (tensor) {
        memcpy(err.tensor, tensor, len);
        err.tensor_len = (uint32_t)len;
    }
    return err;
}

static void expect(const sft_error *err, const char *path, const char *wanted) {
    char line[4096];
    size_t len = strlen(wanted);
    memset(line, 'x', sizeof line);
    assert_int_equal(sft_error_text(err, path, line, sizeof line), len);
    assert_string_equal(line, wanted);
    assert_int_equal(sft_error_text(err, path, NULL, 0), len);
    for (size_t cap = 1; cap <= len + 1; cap++) {
        memset(line, 'x', sizeof line);
        assert_int_equal(sft_error_text(err, path, line, cap), len);
        assert_true(strlen(line) < cap);
        assert_memory_equal(line, wanted, strlen(line));
        assert_true(cap - 1 - strlen(line) < 4); /* no more is lost than part of a character */
        assert_int_equal(line[cap], 'x');
    }
}

static void test_parts(void **state) {
    (void)state;
    sft_error err = an_error(NULL, 0);
    expect(&err, NULL, "expected 24 bytes, found 20");
    expect(&err, "a.safetensors", "a.safetensors: expected 24 bytes, found 20");
    err = an_error("fc.weight", 9);
    expect(&err, "a", "a: tensor \"fc.weight\": expected 24 bytes, found 20");
    err.offset = 17;
    expect(&err, "a", "a: byte 17: tensor \"fc.weight\": expected 24 bytes, found 20");
    err.hint = SFT_HINT_DOWNLOAD_AGAIN;
    expect(&err, NULL, "byte 17: tensor \"fc.weight\": expected 24 bytes, found 20; download the "
                       "file again");
    err = an_error("", 0);
    expect(&err, NULL, "tensor \"\": expected 24 bytes, found 20");
}

static void test_escaped(void **state) {
    (void)state;
    sft_error err = an_error("a\x1b[2J\0\xff", 7);
    expect(&err, "\x1b]0;t\a", "\\x1b]0;t\\x07: tensor \"a\\x1b[2J\\x00\\xff\": expected 24 bytes, "
                               "found 20");
    err = an_error("\xc3\xa9\xe2\x80\xae", 5); /* é, and an override of the direction */
    expect(&err, "m\xc3\xa9", "m\xc3\xa9: tensor \"\xc3\xa9\\u{202e}\": expected 24 bytes, "
                               "found 20");
}

/* What a program filled by hand. */
static void test_odd(void **state) {
    char wanted[300];
    (void)state;
    sft_error err = SFT_ERROR_INIT;
    err.code = SFT_NOT_FOUND;
    expect(&err, NULL, sft_code_describe(SFT_NOT_FOUND)->sentence);
    err.tensor_len = 100000; /* more than the struct holds */
    memset(err.tensor, 'n', sizeof err.tensor);
    (void)snprintf(wanted, sizeof wanted, "tensor \"%.*s\": %s", (int)sizeof err.tensor, err.tensor,
                   sft_code_describe(SFT_NOT_FOUND)->sentence);
    expect(&err, NULL, wanted);
}

/* Of a shard: its path before the byte in it. */
static void test_other_path(void **state) {
    (void)state;
    sft_error err = an_error("w", 1);
    (void)snprintf(err.message, sizeof err.message, "a\\x1b: b: expected 24 bytes, found 20");
    err.path_len = 8;
    err.offset = 17;
    expect(&err, "i.json", "i.json: a\\x1b: b: byte 17: tensor \"w\": expected 24 bytes, found 20");
    expect(&err, NULL, "a\\x1b: b: byte 17: tensor \"w\": expected 24 bytes, found 20");
    static const uint64_t odd[] = { 7, 35, 400, 512, UINT64_MAX }; /* no path ends there */
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        err.path_len = odd[i];
        expect(&err, "p", "p: byte 17: tensor \"w\": a\\x1b: b: expected 24 bytes, found 20");
    }
}

static const char *some_words(sft_hint hint) {
    return hint == SFT_HINT_REPLACE ? "press R" : hint == SFT_HINT_PROGRAM ? "press H" : NULL;
}

static const char *other_words(sft_hint hint) {
    return hint == SFT_HINT_REPLACE ? "write R" : NULL;
}

/* Two users of one process, and one that gives no words. */
static void test_words(void **state) {
    static const struct row {
        int hint;
        sft_words_fn words;
        const char *text;
    } rows[] = {
        { SFT_HINT_REPLACE, some_words, "; press R" },
        { SFT_HINT_REPLACE, other_words, "; write R" },
        { SFT_HINT_REPLACE, NULL, "; the options can allow replacing it" },
        { SFT_HINT_PROGRAM, some_words, "; press H" },
        { SFT_HINT_PROGRAM, other_words, "" },
        { SFT_HINT_TRY_LATER, some_words, "; try again when it is done" },
        { SFT_HINT_NONE, some_words, "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[200], wanted[200];
        sft_error err = an_error(NULL, 0);
        err.hint = (sft_hint)rows[i].hint;
        size_t len = sft_error_text_as(&err, "p", rows[i].words, line, sizeof line);
        (void)snprintf(wanted, sizeof wanted, "p: expected 24 bytes, found 20%s", rows[i].text);
        assert_string_equal(line, wanted);
        assert_int_equal(len, strlen(wanted));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_escaped),
        cmocka_unit_test(test_odd),
        cmocka_unit_test(test_other_path),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
