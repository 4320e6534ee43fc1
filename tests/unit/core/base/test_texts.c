/* Small parts that judge texts and numbers: globs, dates, numbered objects, spellings, names for
 * files of programs, and reads that are announced. */
#include "base/announce.h"
#include "base/calendar.h"
#include "base/files.h"
#include "base/glob.h"
#include "base/guess.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static sft_span s(const char *text) { return sft_span_cstr(text); }

static void globs(void **state) {
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = {
        { "", "", true },           { "", "a", false },         { "a", "", false },
        { "a?c", "abc", true },     { "a?c", "a\xc3\xa9" "c", true }, { "a?", "a", false },
        { "?", "\xc3\xa9", true },  { "??", "\xc3\xa9", false }, { "a?", "ab\xc3", false },
        { "[abc]", "b", true },     { "[abc]", "d", false },    { "[!abc]", "d", true },
        { "[^abc]", "b", false },   { "[a-c]x", "bx", true },   { "[a-c]", "d", false },
        { "[c-a]", "b", false },    { "[a-]", "-", true },      { "[a-]", "b", false },
        { "[-a]", "-", true },      { "[]]", "]", true },       { "[]a]", "a", true },
        { "[!]]", "]", false },     { "[!]]", "a", true },      { "[", "[", true },
        { "[a", "[a", true },       { "[!", "[!", true },       { "[]", "[]", true },
        { "[^]", "[^]", true },     { "[a", "a", false },       { "[a]", "", false },
        { "*[", "a[", true },       { "*.[wb]*", "x.weight", true }, { "*.[wb]*", "x.norm", false },
        { "**", "", true },         { "*a*b*", "xxaxxb", true }, { "*a*b", "ab0", false },
        { "*?", "", false },        { "*ab", "aab", true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sfti_glob_match(s(rows[i].pattern), s(rows[i].text)) != rows[i].fits)
            fail_msg("%s on %s", rows[i].pattern, rows[i].text);
}

static void dates(void **state) {
    static const struct {
        int64_t days, year;
        unsigned month, day;
    } rows[] = {
        { 0, 1970, 1, 1 },         { -1, 1969, 12, 31 },     { 11016, 2000, 2, 29 },
        { 47540, 2100, 2, 28 },    { 47541, 2100, 3, 1 },    { -719468, 0, 3, 1 },
        { -719469, 0, 2, 29 },     { -719529, -1, 12, 31 },  { -719162, 1, 1, 1 },
        { -865565, -400, 3, 1 },   { -865566, -400, 2, 29 }, { -1011662, -800, 3, 1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t year;
        unsigned month, day;
        sfti_date_of_days(rows[i].days, &year, &month, &day);
        assert_int_equal(year, rows[i].year);
        assert_int_equal(month, rows[i].month);
        assert_int_equal(day, rows[i].day);
        assert_int_equal(sfti_days_of_date(year, month, day), rows[i].days);
    }
}

static void numbered(void **state) {
    static const struct {
        const char *text;
        bool is;
    } rows[] = {
        { "{}", true },           { "{\"1\":0,\"2\":{\"x\":[]}}", true }, { "[]", false },
        { "{\"1\":0,\"3\":0}", false }, { "{\"2\":0}", false }, { "{\"0\":0}", false },
        { "{\"a\":0}", false },   { "{\"1:\":0}", false },  { "{\"/\":0}", false },
        { "{\"1000000001\":0}", false }, { "{\"1\":0", false }, { "{\"1\":0} x", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sfti_json_is_numbered(s(rows[i].text)) != rows[i].is) fail_msg("%s", rows[i].text);
}

static void spellings(void **state) {
    char word[80];
    (void)state;
    memset(word, 'a', sizeof word);
    for (size_t len = 62; len <= 66; len++) {
        sfti_guess guess = sfti_guess_begin((sft_span){ word, len });
        sfti_guess_try(&guess, s("a"));
        sfti_guess_try(&guess, (sft_span){ word, 63 });
        sfti_guess_try(&guess, (sft_span){ word, 64 });
        assert_int_equal(guess.best.len, len <= 63 ? 63 : 0); /* nothing is like a longer one */
    }
}

static void names_of_programs_files(void **state) {
    static const struct {
        const char *name;
        bool fits;
    } rows[] = {
        { "a.safetensors", true }, { "d/a:b", true }, { "a:b/c", false }, { "hf://a", false },
        { ":", false }, { "a?b", false }, { "a#b", false }, { "a%b", false }, { "a\tb", false },
        { "a\x7f", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sfti_files_name_fits(s(rows[i].name)) != rows[i].fits) fail_msg("%s", rows[i].name);
    sft_files_vtable short_one = { .size = offsetof(sft_files_vtable, claims) };
    sft_files_vtable empty = { .size = sizeof empty };
    const sft_files files[] = { { NULL, NULL }, { NULL, &short_one }, { NULL, &empty } };
    assert_false(sfti_files_claim(NULL, "a", NULL));
    assert_false(sfti_files_can_list(NULL));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_false(sfti_files_claim(&files[i], "a", NULL));
        assert_false(sfti_files_can_list(&files[i]));
        sfti_files_expect(&files[i], (const char *const[]){ "a" }, 1, NULL); /* nobody is told */
    }
}

typedef struct heard {
    char text[256];
} heard;

static void hear(void *ctx, const sft_run *runs, size_t count) {
    heard *to = ctx;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(to->text);
        (void)snprintf(to->text + len, sizeof to->text - len, " %llu+%llu",
                       (unsigned long long)runs[i].offset, (unsigned long long)runs[i].len);
    }
    (void)strcat(to->text, ";");
}

/* Runs that adjoin are one; another source, though of the same context, is told apart. */
static void announced(void **state) {
    sft_source_vtable vtable = { .size = sizeof vtable }, other, mute = { .size = sizeof mute };
    heard to = { "" };
    sfti_announcement all = { .count = 0 };
    (void)state;
    vtable.expect = hear;
    other = vtable;
    sft_source a = { &to, &vtable, 100, NULL, false }, b = { &to, &other, 100, NULL, false };
    sft_source none = { &to, NULL, 100, NULL, false }, dumb = { &to, &mute, 100, NULL, false };
    assert_true(sfti_source_expects(&a));
    assert_false(sfti_source_expects(&none));
    assert_false(sfti_source_expects(&dumb));
    sfti_announce(&all, &none, 0, 10);
    sfti_announce(&all, &dumb, 0, 10);
    sfti_announce(&all, &a, 0, 10);
    sfti_announce(&all, &a, 10, 0);
    sfti_announce(&all, &a, 10, 5);
    sfti_announce(&all, &a, 20, 5);
    sfti_announce(&all, &a, 100, 5);
    sfti_announce(&all, &b, 25, 5);
    sfti_announce(&all, &b, 90, UINT64_MAX);
    sfti_announce_end(&all);
    sfti_announce_end(&all);
    assert_string_equal(to.text, " 0+15 20+5; 25+5 90+10;");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs),     cmocka_unit_test(dates),
        cmocka_unit_test(numbered),  cmocka_unit_test(spellings),
        cmocka_unit_test(announced), cmocka_unit_test(names_of_programs_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
