#include "base/path.h"
#include "os/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define POSIX SFTI_PATHS_POSIX
#define WINDOWS SFTI_PATHS_WINDOWS

/* A path, its parts under a rule: bytes of the root, of the folder, without separators at the end,
 * and what joins a name to it. */
typedef struct path_row {
    sfti_path_rule rule;
    const char *path;
    size_t root, folder, trimmed;
    char joint;
} path_row;

static const path_row path_rows[] = {
    { POSIX, "", 0, 0, 0, 0 },
    { POSIX, "a", 0, 0, 1, '/' },
    { POSIX, "a/b", 0, 2, 3, '/' },
    { POSIX, "a/b//", 0, 5, 3, 0 },
    { POSIX, "/", 1, 1, 1, 0 },
    { POSIX, "/a", 1, 1, 2, '/' },
    { POSIX, "//a", 1, 2, 3, '/' },
    { POSIX, "a\\b", 0, 0, 3, '/' },
    { POSIX, "C:\\a", 0, 0, 4, '/' },
    { POSIX, "C:a", 0, 0, 3, '/' },
    { WINDOWS, "", 0, 0, 0, 0 },
    { WINDOWS, "a", 0, 0, 1, '/' },
    { WINDOWS, "a/b", 0, 2, 3, '/' },
    { WINDOWS, "a\\b", 0, 2, 3, '\\' },
    { WINDOWS, "a\\b/c", 0, 4, 5, '/' },
    { WINDOWS, "a/b\\", 0, 4, 3, 0 },
    { WINDOWS, "\\a", 1, 1, 2, '\\' },
    { WINDOWS, "/a", 1, 1, 2, '/' },
    { WINDOWS, "C:", 2, 2, 2, 0 },
    { WINDOWS, "C:foo", 2, 2, 5, '/' },
    { WINDOWS, "c:foo\\x", 2, 6, 7, '\\' },
    { WINDOWS, "C:\\", 3, 3, 3, 0 },
    { WINDOWS, "C:/", 3, 3, 3, 0 },
    { WINDOWS, "C:\\a", 3, 3, 4, '\\' },
    { WINDOWS, "C:\\a\\\\", 3, 6, 4, 0 },
    { WINDOWS, "1:\\a", 0, 3, 4, '\\' },
    { WINDOWS, "a:b", 2, 2, 3, '/' },
    { WINDOWS, "\\\\server\\share", 14, 14, 14, '\\' },
    { WINDOWS, "\\\\server\\share\\", 15, 15, 15, 0 },
    { WINDOWS, "\\\\server\\share\\a", 15, 15, 16, '\\' },
    { WINDOWS, "//server/share/a/b", 15, 17, 18, '/' },
    { WINDOWS, "\\\\?\\C:\\a", 7, 7, 8, '\\' },
    { WINDOWS, "\\\\?\\UNC\\server\\share\\a", 21, 21, 22, '\\' },
    { WINDOWS, "\\\\.\\pipe\\a", 9, 9, 10, '\\' },
    { WINDOWS, "\\\\?\\UNC", 7, 7, 7, '\\' },
    { WINDOWS, "\\\\?\\UNCx\\a", 9, 9, 10, '\\' },
    { WINDOWS, "\\\\.\\UNC\\s\\a", 8, 10, 11, '\\' },
    { WINDOWS, "\\\\s\\UNC\\s\\a", 8, 10, 11, '\\' },
};

static void paths_come_apart(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof path_rows / sizeof *path_rows; i++) {
        const path_row *row = &path_rows[i];
        sft_span path = sft_span_cstr(row->path);
        size_t root = sfti_rule_root(row->rule, path), folder = sfti_rule_folder(row->rule, path);
        size_t trimmed = sfti_rule_trimmed(row->rule, path);
        char joint = sfti_rule_joint(row->rule, path);
        if (root != row->root || folder != row->folder || trimmed != row->trimmed
            || joint != row->joint)
            fail_msg("%s by rule %d: root %zu, folder %zu, trimmed %zu, joint %d", row->path,
                     (int)row->rule, root, folder, trimmed, joint);
    }
}

static void is_span(sft_span found, const char *wanted) {
    if (!sft_span_equal(found, sft_span_cstr(wanted)))
        fail_msg("expected \"%s\", found \"%.*s\"", wanted, (int)found.len, found.data);
}

static void host_paths(void **state) {
    char folder[8];
    (void)state;
    is_span(sfti_path_name(sft_span_cstr("a/b")), "b");
    is_span(sfti_path_name(sft_span_cstr("a/")), "");
    is_span(sfti_path_above(sft_span_cstr("a/b/c")), "a/b");
    is_span(sfti_path_above(sft_span_cstr("a")), "");
    is_span(sfti_path_above(sft_span_cstr("/a")), "/");
    is_span(sfti_path_trimmed(sft_span_cstr("a//")), "a");
    assert_true(sfti_folder_copy("a/b", folder, sizeof folder));
    assert_string_equal(folder, "a/");
    assert_true(sfti_folder_copy("b", folder, sizeof folder));
    assert_string_equal(folder, ".");
    assert_false(sfti_folder_copy("1234567/b", folder, sizeof folder));
}

static void what_is_below(void **state) {
    static const struct {
        const char *path, *folder, *rest; /* NULL: not below */
    } rows[] = {
        { "a/b", "a", "b" },     { "a//b", "a", "b" },  { "a/b", "a/", "b" },  { "ab", "a", NULL },
        { "a", "a", NULL },      { "/a", "/", "a" },    { "/a", "", NULL },    { "a/b", "", "a/b" },
        { "/x/y", "/x", "y" },   { "/xy", "/x", NULL }, { "a", "a/b", NULL },  { "a/", "a", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_span rest = { NULL, 0 };
        bool below = sfti_path_below(sft_span_cstr(rows[i].path), sft_span_cstr(rows[i].folder),
                                     &rest);
        if (below != (rows[i].rest != NULL)) fail_msg("%s in %s", rows[i].path, rows[i].folder);
        if (below) is_span(rest, rows[i].rest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_come_apart),
        cmocka_unit_test(host_paths),
        cmocka_unit_test(what_is_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
