#include "base/portable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const taken[] = {
    "a.safetensors", "sub/one.safetensors", "a b.safetensors", ".hidden", "a..b", "nullable.txt",
    "console", "com.txt", "comx", "com10", "lpt", "auxiliary.safetensors", "-a", "(1)", "a'b",
    "\xc3\xa9.safetensors", "\xe2\x82\xac/\xf0\x9f\x98\x80", "conin", "prn-1", "x/.cache",
};

static const struct {
    const char *name, *why;
} refused[] = {
    { "nul", "device" }, { "NUL.safetensors", "device" }, { "sub/con", "device" },
    { "aux.tar.gz/x", "device" }, { "PrN", "device" }, { "com1", "device" },
    { "COM9.safetensors", "device" }, { "lpt0.x", "device" }, { "com\xc2\xb9", "device" },
    { "LPT\xc2\xb3.txt", "device" }, { "conin$", "device" }, { "CONOUT$.x", "device" },
    { "nul .txt", "device" },
    { "ab:stream", "one of" }, { "x.safetensors:$DATA", "one of" }, { "a*", "one of" },
    { "a?", "one of" }, { "a\"b", "one of" }, { "<a>", "one of" }, { "a|b", "one of" },
    { "a.", "ends with" }, { "a ", "ends with" }, { "sub. /x", "ends with" },
    { "sub./x", "ends with" }, { "...", "ends with" },
    { "a\nb", "control" }, { "a\x1f", "control" }, { "a\x7f", "control" },
    { "\xff", "UTF-8" },
    { "", "leads out" }, { ".", "leads out" }, { "..", "leads out" }, { "a/../b", "leads out" },
    { "./a", "leads out" }, { "/a", "leads out" }, { "a//b", "leads out" }, { "a/", "leads out" },
    { "a\\b", "leads out" }, { "C:x", "leads out" }, { "a:b", "leads out" },
    { "\\\\s\\x", "leads out" },
};

static void names_that_every_system_takes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const char *why;
        if (!sfti_name_portable(sft_span_cstr(taken[i]), &why)) fail_msg("%s: %s", taken[i], why);
        assert_null(why);
    }
}

static void names_that_some_do_not_take(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *why = NULL;
        sft_span name = sft_span_cstr(refused[i].name);
        if (sfti_name_portable(name, &why)) fail_msg("%s", refused[i].name);
        if (!strstr(why, refused[i].why)) fail_msg("%s: %s", refused[i].name, why);
        bool inside = sfti_name_inside(name);
        if (inside != !strstr(why, "leads out")) fail_msg("inside: %s", refused[i].name);
    }
}

static void lengths_and_nul(void **state) {
    char name[300];
    const char *why;
    (void)state;
    memset(name, 'a', sizeof name);
    assert_true(sfti_name_portable((sft_span){ name, 255 }, &why));
    assert_false(sfti_name_portable((sft_span){ name, 256 }, &why));
    name[200] = '/';
    assert_true(sfti_name_portable((sft_span){ name, 300 }, &why));
    assert_false(sfti_name_inside((sft_span){ "a\0b", 3 }));
    assert_false(sfti_name_inside((sft_span){ NULL, 0 }));
}

/* No byte behind a name is read: the sanitizers tell. */
static void names_without_nul(void **state) {
    static const char *const outside[] = { ".", "..", "a/.", "a/.." };
    (void)state;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        size_t len = strlen(outside[i]);
        char *exact = malloc(len);
        assert_non_null(exact);
        memcpy(exact, outside[i], len);
        assert_false(sfti_name_inside((sft_span){ exact, len }));
        free(exact);
    }
}

static void case_folded(void **state) {
    (void)state;
    assert_int_equal(sfti_name_compare_folded(sft_span_cstr("Ab/C"), sft_span_cstr("aB/c")), 0);
    assert_true(sfti_name_compare_folded(sft_span_cstr("a"), sft_span_cstr("B")) < 0);
    assert_true(sfti_name_compare_folded(sft_span_cstr("ab"), sft_span_cstr("A")) > 0);
    assert_true(sfti_name_compare_folded(sft_span_cstr("[a"), sft_span_cstr("{a")) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_every_system_takes),
        cmocka_unit_test(names_that_some_do_not_take),
        cmocka_unit_test(lengths_and_nul),
        cmocka_unit_test(names_without_nul),
        cmocka_unit_test(case_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
