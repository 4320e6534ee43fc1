#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_scalar_goes_round(void **state) {
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        char text[4];
        uint32_t back = UINT32_MAX;
        if (c == 0xD800) c = 0xE000;
        size_t n = sfti_utf8_encode(c, text);
        const uint8_t *p = (const uint8_t *)text;
        if (sfti_utf8_decode(p, p + n, &back) != n || back != c) fail_msg("code %x", c);
        if (n > 1 && sfti_utf8_decode(p, p + n - 1, &back) != 0) fail_msg("cut %x", c);
    }
}

static void ill_formed_is_found(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t bad;
    } rows[] = {
        { "abc", 3 },          { "ab\x80", 2 },           { "\xc0\x80", 0 },
        { "\xc1\xbf", 0 },     { "\xe0\x9f\xbf", 0 },     { "\xed\xa0\x80", 0 },
        { "\xed\x9f\xbf", 3 }, { "\xf0\x8f\xbf\xbf", 0 }, { "\xf4\x90\x80\x80", 0 },
        { "\xf5\x80\x80\x80", 0 }, { "\xf4\x8f\xbf\xbf", 4 }, { "x\xe2\x82", 1 },
        { "\xff", 0 },         { "\xc3\xa9\xc3", 2 },     { "\xe2\x28\xa1", 0 },
        { "\xc3\x28", 0 },     { "\xe2\x82\x28", 0 },     { "\xf0\x28\x8c\xbc", 0 },
        { "\xf0\x90\x28\xbc", 0 }, { "\xf0\x90\x8c\x28", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(sfti_utf8_check(rows[i].text, strlen(rows[i].text)), rows[i].bad);
}

/* The quick way over ASCII must not step over a bad byte at any place. */
static void long_text_is_looked_at(void **state) {
    (void)state;
    char text[300];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = '\x80';
        assert_int_equal(sfti_utf8_check(text, sizeof text), i);
        text[i] = 'a';
    }
    assert_int_equal(sfti_utf8_check(text, sizeof text), sizeof text);
    assert_int_equal(sfti_utf8_check(NULL, 0), 0);
    uint32_t code = 7;
    assert_int_equal(sfti_utf8_decode((const uint8_t *)text, (const uint8_t *)text, &code), 0);
    assert_int_equal(code, 7);
}

/* Each range of the table by its ends, and the neighbours that are letters, marks or signs. */
static void what_is_not_shown(void **state) {
    (void)state;
    static const uint32_t hidden[] = {
        0, 0x1F, 0x7F, 0x9F, 0xAD, 0x34F, 0x61C, 0x70F, 0x115F, 0x1160, 0x17B5, 0x180E, 0x200B,
        0x200F, 0x2028, 0x2029, 0x202A, 0x202E, 0x2060, 0x2064, 0x2066, 0x2069, 0x206F, 0x3164,
        0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFB, 0x110BD, 0x1343F, 0x1BCA3, 0x1D17A,
        0xE0000, 0xE0001, 0xE007F, 0xE0100, 0xE01EF, 0xE0FFF,
    };
    static const uint32_t shown[] = {
        ' ', '~', 0xA0, 0xAC, 0xAE, 0xE9, 0x301, 0x34E, 0x350, 0x61B, 0x61D, 0x1161, 0x200A,
        0x2010, 0x2027, 0x202F, 0x205F, 0x2070, 0x3042, 0x3165, 0xFDFF, 0xFE10, 0xFF01, 0xFFFC,
        0xFFFD, 0x1F600, 0xDFFFF, 0xE1000, 0x10FFFF,
    };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (!sfti_utf8_unsafe(hidden[i])) fail_msg("U+%04X is shown", (unsigned)hidden[i]);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (sfti_utf8_unsafe(shown[i])) fail_msg("U+%04X is hidden", (unsigned)shown[i]);
}

static void whole_characters_are_kept(void **state) {
    static const char text[] = "a\xC3\xA4\xE2\x82\xAC!";
    static const size_t kept[] = { 0, 1, 1, 3, 3, 3, 6, 7 };
    (void)state;
    for (size_t most = 0; most < 8; most++)
        assert_int_equal(sfti_utf8_cut(sft_span_cstr(text), most), kept[most]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scalar_goes_round),
        cmocka_unit_test(ill_formed_is_found),
        cmocka_unit_test(what_is_not_shown),
        cmocka_unit_test(long_text_is_looked_at),
        cmocka_unit_test(whole_characters_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
