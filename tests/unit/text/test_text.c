/* Words and numbers, HTML, YAML and dates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/formats.h"
#include "text/text.h"

static sft_span s(const char *text) { return sft_span_cstr(text); }

static sfti_arena arena;

static int fresh(void **state) {
    (void)state;
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    return 0;
}

static int done(void **state) {
    (void)state;
    sfti_arena_free(&arena);
    return 0;
}

#define SAME(span, text) do { \
        sft_span got_ = (span); \
        if (!sft_span_equal(got_, s(text))) \
            fail_msg("expected \"%s\", got \"%.*s\"", text, (int)got_.len, got_.data); \
    } while (0)

/* ── Text ── */

static void pieces_and_letters(void **state) {
    sft_span rest = s("a,,b,"), piece;
    (void)state;
    SAME(sfti_trim(s(" \t a b\r\n")), "a b");
    assert_true(sfti_next_piece(&rest, ',', &piece));
    SAME(piece, "a");
    assert_true(sfti_next_piece(&rest, ',', &piece));
    SAME(piece, "");
    assert_true(sfti_next_piece(&rest, ',', &piece));
    SAME(piece, "b");
    assert_false(sfti_next_piece(&rest, ',', &piece));
    assert_true(sfti_same_letters(s("SdXL"), "sdxl"));
    assert_false(sfti_same_letters(s("sdxl1"), "sdxl"));
    assert_true(sfti_contains(s("the ILLUStrious one"), "illustrious"));
    assert_false(sfti_contains(s("illustriou"), "illustrious"));
    assert_true(sfti_starts_with(s("Flux.1"), "flux"));
    assert_true(sfti_ends_with(s("a.SafeTensors"), ".safetensors"));
    assert_false(sfti_ends_with(s("tensors"), ".safetensors"));
}

static void numbers(void **state) {
    uint64_t n = 7;
    double d = 7;
    (void)state;
    assert_true(sfti_parse_uint(s(" 18446744073709551615 "), &n) && n == UINT64_MAX);
    assert_false(sfti_parse_uint(s("18446744073709551616"), &n));
    assert_false(sfti_parse_uint(s("-1"), &n) || sfti_parse_uint(s(""), &n));
    assert_true(sfti_parse_double(s("5e-05"), &d) && d == 5e-05);
    assert_true(sfti_parse_double(s("1690000000.123456"), &d) && d == 1690000000.123456);
    assert_true(sfti_parse_double(s("-0.5"), &d) && d == -0.5);
    assert_true(sfti_parse_double(s("1."), &d) && d == 1);
    assert_true(sfti_parse_double(s(".25"), &d) && d == 0.25);
    assert_true(sfti_parse_double(s("1e-400"), &d) && d == 0);
    assert_true(sfti_parse_double(s("3e-310"), &d) && d > 0 && d < 1e-300);
    assert_false(sfti_parse_double(s("inf"), &d) || sfti_parse_double(s("nan"), &d));
    assert_false(sfti_parse_double(s("1e999"), &d) || sfti_parse_double(s("."), &d));
    assert_false(sfti_parse_double(s("1 2"), &d));
    assert_true(sfti_is_number(s("-1.5e3")) && sfti_is_number(s("0")));
    assert_false(sfti_is_number(s("01")) || sfti_is_number(s("1.")) || sfti_is_number(s("")));
}

/* ── HTML ── */

static const struct { const char *html, *plain; } pages[] = {
    { "", "" },
    { "plain\ntext <3 & more\n\n\n\nend", "plain\ntext <3 & more\n\nend" },
    { "a &amp; b &lt;c&gt; &#65;&#x42; &eacute;&hellip; &bogus; &", "a & b <c> AB é… &bogus; &" },
    { "<p>First</p><p>Second</p>", "First\n\nSecond" },
    { "<p>First</p>\n\n  <p>Second\nline</p>", "First\n\nSecond line" },
    { "a<br>b<br/>c<br><br><br><br>d", "a\nb\nc\n\nd" },
    { "<ul><li>one</li><li>two</li></ul>x", "- one\n- two\nx" },
    { "<p>see</p><ul><li><p>one</p></li></ul>", "see\n- one" },
    { "<a href=\"https://x.org/?a=1&amp;b=2\">here</a>!", "here (https://x.org/?a=1&b=2)!" },
    { "<a href='https://x.org'>https://x.org</a>", "https://x.org" },
    { "<a href=\"https://x.org/?a&amp;b\">https://x.org/?a&amp;b</a>", "https://x.org/?a&b" },
    { "<a name=x>no</a> <a href=\"#top\">up</a>", "no up" },
    { "a<script>alert('<p>x</p>')</script>b<style>p{}</style>c", "abc" },
    { "a<script>never ends", "a" },
    { "<b>bold</b> <i>x</i><img src=\"a>b\">y", "bold xy" },
    { "a<!-- <p>no</p> -->b", "ab" },
    { "1 < 2 <b>and</b> 3 > 2", "1 < 2 and 3 > 2" },
    { "<p>open <a href=\"https://x.org", "open <a href=\"https://x.org" },
    { "&#0;&#xD800;&#99999999;", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
    { "<div>a</div><div>b</div>", "a\nb" },
    { "<h1>T</h1><p>x&nbsp;y</p>", "T\n\nx y" },
};

static sft_span plain_of(sft_span page) {
    sft_span plain;
    assert_true(sfti_html_text(&arena, page, &plain));
    return plain;
}

static void html(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        SAME(plain_of(s(pages[i].html)), pages[i].plain);
    }
}

static void html_is_bounded(void **state) {
    size_t len = (size_t)8 << 20;
    char *big = malloc(len);
    (void)state;
    assert_non_null(big);
    for (size_t i = 0; i < len; i++) big[i] = "\xC3\xA9"[i % 2];
    sft_span plain = plain_of((sft_span){ big, len });
    assert_int_equal(plain.len, 65536 + 3);
    assert_memory_equal(plain.data + 65536, "\xE2\x80\xA6", 3);
    for (size_t i = 0; i < len; i++) big[i] = "<a"[i % 2];
    assert_int_equal(plain_of((sft_span){ big, len }).len, 65536 + 3);
    big[len - 1] = '>';
    plain_of((sft_span){ big, len });
    for (size_t i = 0; i < len; i++) big[i] = "<b=\"\">"[i % 6];
    SAME(plain_of((sft_span){ big, (size_t)3 << 20 }), "");
    free(big);
}

/* ── YAML ── */

static const struct { const char *yaml, *values; } cards[] = {
    { "a: 1\nb: two # no\n", "/a=1;/b=two;" },
    { "a:\n- x\n- 'y ''z'\n", "/a/0=x;/a/1=y 'z;" },
    { "a: [x, \"y\\n\", 3]\n", "/a/0=x;/a/1=y\n;/a/2=3;" },
    { "a:\n  b:\n    c: d\n  e: f\n", "/a/b/c=d;/a/e=f;" },
    { "a: |\n  one\n  two\nb: >\n  one\n  two\n", "/a=one\ntwo;/b=one two;" },
    { "a: one\n  two\n", "/a=one two;" },
    { "a: {b: c}\nd: &x e\nf: null\ng: ~\n", "" },
    { "- a: b\n  c: d\n- e\n", "/0/a=b;/0/c=d;/1=e;" },
    { "a: \"never ends\n", "" }, { "a/b: c\n", "" }, { "", "" },
};

static sft_code write_value(void *ctx, const sfti_yaml_value *value) {
    char *out = ctx;
    size_t len = strlen(out);
    (void)snprintf(out + len, 256 - len, "%s=%.*s;", value->place, (int)value->text.len,
                   value->text.data);
    return SFT_OK;
}

static void yaml(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        char out[256] = "";
        assert_int_equal(sfti_yaml_read(&arena, s(cards[i].yaml), write_value, out), SFT_OK);
        SAME(s(out), cards[i].values);
    }
}

static sft_code stop(void *ctx, const sfti_yaml_value *value) {
    (void)value;
    ++*(int *)ctx;
    return SFT_CANCELLED;
}

static void yaml_ends_when_told(void **state) {
    int times_taken = 0;
    (void)state;
    assert_int_equal(sfti_yaml_read(&arena, s("a: 1\nb: 2\n"), stop, &times_taken), SFT_CANCELLED);
    assert_int_equal(times_taken, 1);
}

/* ── Dates and sizes ── */

static const struct { const char *text, *date; } dates[] = {
    { "2023-07-16", "2023-07-16" }, { "2023-07-16T18:13:38Z", "2023-07-16T18:13:38Z" },
    { "2023-07-16 18:13", "2023-07-16T18:13:00" },
    { "2023-12-31T23:30:00.123456-01:00", "2024-01-01T00:30:00Z" },
    { "2024-02-29T12:00:00+0530", "2024-02-29T06:30:00Z" },
    { "2023-13-01", "" }, { "2023-07-16T25:00:00Z", "" }, { "16.07.2023", "" },
    { "2023-07-16T18:13:38Zulu", "" }, { "", "" },
};

static sft_span date_of(const char *text) {
    static char date[SFTI_DATE_SIZE];
    return (sft_span){ date, sfti_iso_date(s(text), date) };
}

static sft_span epoch(double seconds) {
    static char date[SFTI_DATE_SIZE];
    return (sft_span){ date, sfti_iso_of_epoch(seconds, date) };
}

static sft_span size_of(const char *text) {
    static char size[SFTI_DATE_SIZE];
    return (sft_span){ size, sfti_resolution(s(text), size) };
}

static void times(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++)
        SAME(date_of(dates[i].text), dates[i].date);
    SAME(epoch(951782400), "2000-02-29T00:00:00Z");
    SAME(epoch(4102444799.9), "2099-12-31T23:59:59Z");
    SAME(epoch(1e30), "");
    SAME(size_of("(512, 768)"), "512x768");
    SAME(size_of("1024"), "1024x1024");
    SAME(size_of("[512,768,9]"), "");
    SAME(size_of("0x5"), "");
    SAME(size_of("99999999999999999999x5"), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_and_letters), cmocka_unit_test(numbers), cmocka_unit_test(times),
        cmocka_unit_test_setup_teardown(html, fresh, done),
        cmocka_unit_test_setup_teardown(html_is_bounded, fresh, done),
        cmocka_unit_test_setup_teardown(yaml, fresh, done),
        cmocka_unit_test_setup_teardown(yaml_ends_when_told, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
