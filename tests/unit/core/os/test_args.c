#define _GNU_SOURCE
#include "os/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/temp_model.h"

#include <unistd.h>

static sfti_arena arena;
static temp_folder temp;

static int set_up(void **state) {
    (void)state;
    arena.alloc = sfti_allocator(NULL);
    temp_begin(&temp);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    sfti_arena_free(&arena);
    temp_end(&temp);
    return 0;
}

/* Words with | between them. */
static void has_words(const sfti_args *args, const char *wanted) {
    char text[1024] = "";
    size_t len = 0;
    for (size_t i = 0; i < args->count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? "|" : "",
                                args->words[i]);
    assert_string_equal(text, wanted);
    assert_null(args->words[args->count]);
}

static void lines_split(void **state) {
    /* Those of Microsoft's documentation of argc and argv, and some more. */
    static const char *const rows[][2] = {
        { "x \"abc\" d e", "x|abc|d|e" },
        { "x a\\\\b d\"e f\"g h", "x|a\\\\b|de fg|h" },
        { "x a\\\\\\\"b c d", "x|a\\\"b|c|d" },
        { "x a\\\\\\\\\"b c\" d e", "x|a\\\\b c|d|e" },
        { "x a\"b\"\" c d", "x|ab\" c d" },
        { "\"C:\\Program Files\\x.exe\" a", "C:\\Program Files\\x.exe|a" },
        { "C:\\dir\\\"my x\".exe \\\"", "C:\\dir\\my x.exe|\"" },
        { "x C:\\a\\ b\\", "x|C:\\a\\|b\\" },
        { "x \"C:\\a\\\\\" b", "x|C:\\a\\|b" },
        { "x \"\" \t ''", "x||''" },
        { "x  ", "x" },
        { "x\ta\tb", "x|a|b" },
        { "\"x\ty\"\t\"a\tb\"", "x\ty|a\tb" },
        { "", "" },
        { "x \xc3\xa9 \"\xe2\x82\xac \"", "x|\xc3\xa9|\xe2\x82\xac " },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sfti_args args = { .arena = &arena };
        assert_true(sfti_args_split(&args, rows[i][0]));
        has_words(&args, rows[i][1]);
    }
}

/* Patterns of files a.st, b.st, c.txt, .h.st, d/a.st, e/a.st, e/x.st, é.st, and of some that begin
 * as options do. */
static void patterns_expand(void **state) {
    static const char *const rows[][2] = {
        { "x *.st", "x|a.st|b.st|\xc3\xa9.st" },
        { "x ?.st c.txt", "x|a.st|b.st|\xc3\xa9.st|c.txt" },
        { "x \"*.st\"", "x|*.st" },
        { "x a.\"*\"", "x|a.*" },
        { "x nosuch*", "x|nosuch*" },
        { "x --match=*", "x|--match=*" },
        { "x .*.st", "x|.h.st" },
        { "x */a.st", "x|d/a.st|e/a.st" },
        { "x nosuch/*", "x|nosuch/*" },
        { "x d*/nosuch", "x|d*/nosuch" },
        { "x e/*t", "x|e/a.st|e/x.st" },
        { "x ?/*x*", "x|e/x.st" },
        { "x ./b*", "x|./b.st" },
        { "x *b*.*s*t*", "x|b.st" },
        { "x *a", "x|*a" },
        { "x d*/", "x|d/" },
        { "?.st", "?.st" },
        { "x *.q", "x|./-o.q" },
        { "x ./*.q */*.q", "x|./-o.q|e/-o.q" },
        { "x ?d/*", "x|./-d/x" },
    };
    static const char *const files[] = { "a.st", "b.st", "c.txt", ".h.st", "d/a.st", "e/a.st",
                                         "e/x.st", "\xc3\xa9.st", "-o.q", "e/-o.q", "-d/x" };
    (void)state;
    (void)temp_subfolder(&temp, "d");
    (void)temp_subfolder(&temp, "e");
    (void)temp_subfolder(&temp, "-d");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) (void)temp_text(&temp, files[i], "x");
    temp_must(chdir(temp.path) == 0, "chdir");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sfti_args args = { .arena = &arena };
        assert_true(sfti_args_split(&args, rows[i][0]));
        assert_true(sfti_args_expand(&args));
        has_words(&args, rows[i][1]);
    }
    temp_must(chdir("/") == 0, "chdir");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_split, set_up, tear_down),
        cmocka_unit_test_setup_teardown(patterns_expand, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
