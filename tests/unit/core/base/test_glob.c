#include "base/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void sets_hold_characters(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = {
        { "[é]x", "éx", true },   { "[é]x", "üx", false }, { "[à-ü]", "é", true },
        { "*[à-ü]", "本", false }, { "[日-本]*", "é", false }, { "[日-本]*", "日", true },
        { "[!a]x", "éx", true },  { "[^é]", "本", true },   { "*[!é]", "é", false },
        { "*[!é]", "aé本", true }, { "[]é]", "]", true },   { "[a-]", "-", true },
        { "[a-é]", "b", true },   { "[é", "[é", true },    { "?[é]", "日é", true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sfti_glob_match(sft_span_cstr(rows[i].pattern), sft_span_cstr(rows[i].text))
            != rows[i].fits)
            fail_msg("%s %s", rows[i].pattern, rows[i].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_hold_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
