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
    { "a\r\nb\t\vc", "a\nb  c" }, { "&nbsp;x", "x" }, { "a&ensp;b", "a b" },
    { "&#; &; &#12a; &#xZ; &amp", "&#; &; &#12a; &#xZ; &amp" },
    { "&abcdefghijklm; &#xFF21;&#999999999;", "&abcdefghijklm; \xEF\xBC\xA1\xEF\xBF\xBD" },
    { "<a href=https://x.org class=y>z</a> <a rel=b\nhref=https://y.org\nid=c>w</a>",
      "z (https://x.org) w (https://y.org)" },
    { "<a href>x</a> <a hrefs=\"y\">y</a> <a href= >z</a> <a href=\"\">w</a>", "x y z w" },
    { "<a href=\"x>y</a>", "y" }, { "<a href=\"JavaScript:x()\">y</a>", "y" },
    { "<a href=\"https://x.org\"></a>", "(https://x.org)" },
    { "x<br><a href=\"https://x.org\"></a>", "x\n(https://x.org)" },
    { "<b>a</b> <{x> <", "a <{x> <" }, { "<!DOCTYPE html><b{>x", "x" },
    { "<p>x</p><b y <b z", "x\n<b y <b z" }, { "<img alt='a>b' title=x\"y>z", "z" },
    { "a<script>x</script", "a" }, { "a</script>b</style>", "ab" },
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
    memset(big, 'x', 65536 + 3);
    memcpy(big + 65536, "\ny", 2);
    assert_int_equal(plain_of((sft_span){ big, 65536 + 3 }).len, 65536 + 3);
    assert_int_equal(plain_of((sft_span){ big, 32760 }).len, 32760);
    memcpy(big + 60000, "<a href=\"https://", 17);
    memset(big + 60017, '/', 20000);
    memcpy(big + 80017, "\">x</a>", 7);
    assert_int_equal(plain_of((sft_span){ big, 80024 }).len, 65536 + 3);
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
    { "# all\na: b#c\n  # no\n  d\n", "/a=b#c d;" }, { "a/b:\n  c: d\ne: f\n", "/e=f;" },
    { "a: |\n    x\n   y\n\n  z\nb: 1\n", "/a=x\ny\n\nz;/b=1;" },
    { "a: |\r\n  x\r\n  y\r\n", "/a=x\ny;" },
    { "a: \"x  \r\n\n  y\" # no\nb: 'c\n  d'\n", "/a=x y;/b=c d;" },
    { "a: \"x\\\n  \\ y\\\n   z\"\n", "/a=x yz;" }, /* as PyYAML breaks lines */
    { "a: \"\\t\\r\\0|\\_|\\q\\\"\\\\\\/\"\n", "/a=\t\r | |q\"\\/;" },
    { "a: \"caf\\xE9 \\u4E2D \\U0001F600 \\ud83d\\ude00\"\n",
      "/a=caf\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80 \xF0\x9F\x98\x80;" },
    { "a: \"\\xZ1 \\U00110000 \\U7FFFFFFF1 \\U0000D83D \\UFFFFFFFF \\ud83d \\u12 \\x4\"\n",
      "/a=xZ1 U00110000 U7FFFFFFF1 U0000D83D UFFFFFFFF ud83d u12 x4;" },
    { "a: [\"x\nb: c\n", "" }, { "a: [\"x\" \"y]\n", "" }, { "a: [x,\t\"b]\n", "/a/0=x;" },
    { "a: [x, 'y, z', ]\n", "/a/0=x;/a/1=y, z;" }, { "a: [x,\n  y] # no\nb: 1\n",
      "/a/0=x;/a/1=y;/b=1;" },
    { "a: []\nb: [[c], {d: e}, f, \"}]\"]\n", "/b/2=f;/b/3=}];" }, { "a: b}\nc: d\n",
      "/a=b};/c=d;" },
    { "'a b': c\n\"d\":\n  e: f\n\"g: h\n\"i\"\n\"j\"k\n: l\nm:n\n", "/a b=c;/d/e=f;" },
    { "a:\n  b c\nd: e\nf g\n...\n", "/a=b c;/d=e;" }, { "a b\n", "" },
    { "a: \"x\\\r\n   z\"\r\n", "/a=xz;" },
    { "-\n  a: b\n- - c\n  - d\n-e\n", "/0/a=b;/1/0=c;/1/1=d;" },
    { "a:\n- b\n- c\nd: e\n", "/a/0=b;/a/1=c;/d=e;" }, { "a : b\nc:\td\n", "/a=b;/c=d;" },
    /* nobody's values, with what they open */
    { "{\na: b,\n}\n[a,\nb: c]\n\"\nf: g\"\nd: e\n", "/d=e;" },
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

/* What is handed out where nothing may be passed over, or the line and what was expected there. */
static const struct { const char *yaml, *told; } strict[] = {
    { "---\na: 1\n", "/a=1;" }, { "a:\n  b: 1\n---\n", "3: a key and a colon, or a dash" },
    { "a: 1\na: 2\n", "2: each key once" }, { "- a\n-\n", "2: a value behind the dash" },
    { "a: 1\n-b\n", "2: a key and a colon, or a dash" }, { "- a\n- # b\n",
      "2: a value behind the dash" }, { "a\n", "1: a key and a colon, or a dash" },
    { "a:\n\tb: 1\n", "2: blanks, no tab, before a line" },
    { "a: 'b' c\n", "1: nothing behind a quote or bracket that ends" },
    { "a: 'b\n  c' d\n", "1: nothing behind a quote or bracket that ends" },
    { "a: 'b\n  c' # d\ne: f\n", "/a=b c;/e=f;" },
    { "a: 'b", "1: the end of what a quote or bracket begins" },
    { "a: 'b\nc", "1: the end of what a quote or bracket begins" },
    { "a: &b c\n", "1: a plain value (anchors, tags, braces and lists in lists are not read)" },
    { "{\na: b,\n}\nc: d\n", "1: a key and a colon, or a dash" },
    { "a: {b: c}\n", "1: a map with a line for each key (braces are not read)" },
    { "a: [b}\n", "1: ] at the end of a list" }, { "a: [b, ~]\n",
      "1: a value for each item of a list" },
    { "- null\n", "1: a value for each item of a list" }, { "a: Null\nb: 1\n", "/b=1;" },
    { "a/b: c\n", "1: a shorter key, without a slash" },
    { "- - - - - - - - - - - - - - - - a\n", "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0=a;" },
    { "- - - - - - - - - - - - - - - - - a\n", "1: at most 16 levels" },
    { "- - - - - - - - - - - - - - - - a: b\n", "1: at most 16 levels" },
};

static void yaml_to_the_letter(void **state) {
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(strict); i++) {
        char out[256] = "";
        sfti_yaml_fault fault = { 0, NULL };
        sft_code code = sfti_yaml_read_all(&arena, s(strict[i].yaml), write_value, out, &fault);
        if (code) snprintf(out, sizeof out, "%zu: %s", fault.line, fault.expected);
        assert_int_equal(code, fault.expected ? SFT_BAD_ARGUMENT : SFT_OK);
        SAME(s(out), strict[i].told);
    }
    char key[400], out[256] = "";
    snprintf(key, sizeof key, "%0300d:\n  a: b\nc: d\n", 0);
    assert_int_equal(sfti_yaml_read(&arena, s(key), write_value, out), SFT_OK);
    SAME(s(out), "/c=d;");
}

/* ── Dates and sizes ── */

static const struct { const char *text, *date; } dates[] = {
    { "2023-02-31", "" }, { "2024-02-29T01:00Z", "2024-02-29T01:00:00Z" },
    { "2023-02-29T01:00Z", "" }, { "9999-12-31T23:59:59-01:00", "" },
    { "0000-01-01T00:00+01:00", "" },
    { "2023-07-16", "2023-07-16" }, { "2023-07-16T18:13:38Z", "2023-07-16T18:13:38Z" },
    { "2023-07-16 18:13", "2023-07-16T18:13:00" },
    { "2023-12-31T23:30:00.123456-01:00", "2024-01-01T00:30:00Z" },
    { "2024-02-29T12:00:00+0530", "2024-02-29T06:30:00Z" },
    { "2023-13-01", "" }, { "2023-07-16T25:00:00Z", "" }, { "16.07.2023", "" },
    { "2023-07-16T18:13:38Zulu", "" }, { "", "" },
    { "2023/07/16", "2023-07-16" }, { "1969-12-31T23:00:00Z", "1969-12-31T23:00:00Z" },
    { "2023-07-16t18:13:38,25 +01:00", "2023-07-16T17:13:38Z" },
    { "2023-07-16T18:13+01", "2023-07-16T17:13:00Z" }, { "2023-07-16T18:13z",
      "2023-07-16T18:13:00Z" },
    { "202", "" }, { "2023", "" }, { "2023.07", "" }, { "2023-7-16", "" }, { "2023-07", "" },
    { "2023-07.16", "" }, { "2023-07-1x", "" }, { "2023-00-10", "" }, { "2023-07-00", "" },
    { "2023-07-32", "" }, { "2023-07-16x18:13", "" }, { "2023-07-16T1", "" },
    { "2023-07-16T18", "" }, { "2023-07-16T18:1", "" }, { "2023-07-16T24:13", "" },
    { "2023-07-16T18:60", "" }, { "2023-07-16T18:13:61", "" }, { "2023-07-16T18:13:x", "" },
    { "2023-07-16T18:13:60", "2023-07-16T18:13:60" }, { "2023-07-16T18:13+1", "" },
    { "2023-07-16T18:13 UTC", "" }, { "2023-07-16T18:13+01:", "2023-07-16T17:13:00Z" },
    { "2023-07-16T18:13+01:0", "" }, { "2023-07-16T18:13+01:60", "" },
    { "2023-07-16T18:13-24:00", "" }, { "2023-07-16T18:13+01:001", "" },
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
    SAME(epoch(0.5), "");
    SAME(size_of("(512, 768)"), "512x768");
    SAME(size_of("1024"), "1024x1024");
    SAME(size_of("[512,768,9]"), "");
    SAME(size_of("0x5"), "");
    SAME(size_of("512X768"), "512x768");
    SAME(size_of("512*768 "), "512x768");
    SAME(size_of("512:768"), "");
    SAME(size_of(" x "), "");
    SAME(size_of("5x0"), "");
    SAME(size_of("5x1000000"), "");
    SAME(size_of("1000000"), "");
    SAME(size_of("999999"), "999999x999999");
    assert_int_equal(size_of("").len, 0);
    assert_int_equal(sfti_resolution((sft_span){ "5\0x6", 4 }, (char[SFTI_DATE_SIZE]){ 0 }), 0);
    assert_int_equal(sfti_iso_date((sft_span){ "2023-07-16\0", 11 }, (char[SFTI_DATE_SIZE]){ 0 }),
                     0);
    SAME(size_of("99999999999999999999x5"), "");
}

/* ── Markdown, settings of pictures, paths ── */

static void markdown(void **state) {
    static const struct { const char *text, *front, *body; } fronts[] = {
        { "---\r\na: 1\r\n---  \nx", "a: 1\r\n", "x" }, { "---\na\n--- b\n", "",
          "---\na\n--- b\n" },
        { "", "", "" }, { "--\n", "", "--\n" }, { "----\na\n---\n", "", "----\na\n---\n" },
        { "---", "", "---" }, { "abc\n---\n", "", "abc\n---\n" },
    };
    static const char *const names[] = { "usage", "trigger words" };
    static const struct { const char *text, *section; } sections[] = {
        { "# Usage ##\na\n## Next\nb", "a\n" }, { "x\n## Trigger Words:\na\nb", "a\nb" },
        { "Usage\na", "" }, { "#usage\na", "" }, { "#######  usage\na", "" }, { "#\n# ::\na", "" },
        { "# other\na\n# USAGE\n#\nb\n", "#\nb\n" }, { "", "" }, { "# usage", "" },
    };
    static const struct { const char *line, *item; } items[] = {
        { "- a b", "a b" }, { " * c", "c" }, { "+ d\r", "d" }, { "-d", "" }, { "- ", "" },
          { "1. e", "" },
        { "a b", "" },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(fronts); i++) {
        sft_span body, front = sfti_front_matter(s(fronts[i].text), &body);
        SAME(front, fronts[i].front);
        SAME(body, fronts[i].body);
    }
    for (size_t i = 0; i < SFTI_COUNT(sections); i++)
        SAME(sfti_markdown_section(s(sections[i].text), names, 2), sections[i].section);
    for (size_t i = 0; i < SFTI_COUNT(items); i++) {
        sft_span item = { "", 0 };
        assert_int_equal(sfti_list_item(s(items[i].line), &item), *items[i].item != '\0');
        SAME(item, items[i].item);
    }
}

static void settings_of_pictures(void **state) {
    static const struct { const char *text, *positive, *negative, *seed, *steps, *sampler, *cfg; }
    rows[] = {
        { "a fox\nNegative prompt: dog\nSteps: 20, Sampler: Euler a, CFG scale: 7, Seed: 5",
          "a fox", "dog", "5", "20", "Euler a", "7" },
        { "a\nNegative prompt: b\nNegative prompt: c", "a", "b\nNegative prompt: c", "", "", "",
          "" },
        { "Steps: 20, Seeds: 4, Seed, Seed size: 3, Seed: 6", "", "", "6", "20", "", "" },
        { "a\nNegative prompt:\nSteps: 3", "a", "", "", "3", "", "" },
        { "a\nSteps: 9\nNegative prompt: b", "a", "", "", "9\nNegative prompt: b", "", "" },
        { "a\nsome Steps: 4", NULL, "", "", "", "", "" }, { "", NULL, "", "", "", "", "" },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        sfti_parameters out;
        assert_int_equal(sfti_parameters_read(s(rows[i].text), &out), rows[i].positive != NULL);
        if (!rows[i].positive) continue;
        SAME(out.positive, rows[i].positive);
        SAME(out.negative, rows[i].negative);
        SAME(out.seed, rows[i].seed);
        SAME(out.steps, rows[i].steps);
        SAME(out.sampler, rows[i].sampler);
        SAME(out.cfg, rows[i].cfg);
    }
}

static void private_paths(void **state) {
    static const struct { const char *text; bool path, user; } rows[] = {
        { "/home/ann/x", true, true }, { "see '/Users/Bob'", true, true }, { "/home/user/x", true,
          false },
        { "/home//", true, false }, { "/home/Public", true, false }, { "/mnt/ann/x", true, false },
        { "a/home/ann", false, false }, { "/usr/bin", false, false }, { "/xy", false, false },
        { "C:\\Users\\Ann\\x", true, true }, { "d:\\\\users\\\\ann", true, true },
        { "D:\\models\\x", true, false }, { "d:/users/ann", true, true }, { "d://models", false,
          false },
        { "d:/models", true, false }, { "1:\\x\\y", false, false }, { "{:\\x\\y", false, false },
        { "x:yz", false, false }, { "http://x.org/a", false, false }, { "a b:\\", false, false },
        { "/tmp/a, C:\\Users\\shared, c:\\users\\", true, false }, { "", false, false },
        { "\xEF\xBC\x9A/home/ann", true, true }, { "\xE5\x9C\xA8" "C:/Users/ann", true, true },
        { "\"\\uff1a/home/ann", true, true }, { "\"a\\n/data/x", true, false },
        { "a\\nC:\\\\Users\\\\ann", true, true }, { "caf\xC3\xA9/data/x", false, false },
        { "**/home/ann**", true, true }, { "(a)/data/x", false, false },
        { "n/data/x", false, false }, { "xabcde/home/ann", false, false },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(rows); i++) {
        bool user, path = sfti_private_path(s(rows[i].text), &user);
        if (path != rows[i].path || user != rows[i].user)
            fail_msg("%s: path %d, user %d", rows[i].text, path, user);
    }
    bool user;
    assert_true(sfti_private_path((sft_span){ "a\0/home/ann", 11 }, &user) && user);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_and_letters), cmocka_unit_test(numbers), cmocka_unit_test(times),
        cmocka_unit_test(markdown), cmocka_unit_test(settings_of_pictures),
        cmocka_unit_test(private_paths),
        cmocka_unit_test_setup_teardown(html, fresh, done),
        cmocka_unit_test_setup_teardown(html_is_bounded, fresh, done),
        cmocka_unit_test_setup_teardown(yaml, fresh, done),
        cmocka_unit_test_setup_teardown(yaml_to_the_letter, fresh, done),
        cmocka_unit_test_setup_teardown(yaml_ends_when_told, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
