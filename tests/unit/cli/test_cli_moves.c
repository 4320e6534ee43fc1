/* Files that move together and back: what is made, what is refused, and that a refusal leaves all
 * as it was. Systems that fail, and other file systems, are in tests/faults and tests/move. */
#define _GNU_SOURCE
#include "unit/command_case.h"
#include "unit/temp_dir.h"
#include "support/moves.h"

#include <sys/stat.h>

static char here[512];

/* The test's folder is the current one. */
static int set_up(void **state) {
    begin_command();
    return !getcwd(here, sizeof here) || temp_dir_make(state) || chdir(temp_dir);
}

static int tear_down(void **state) {
    end_command();
    (void)rmdir("made/in");
    return chdir(here) || temp_dir_remove(state);
}

static void write_file(const char *name, const char *text) { temp_write(name, text, strlen(text)); }

/* Text NULL: it is not there. */
static void expect_file(const char *name, const char *text) {
    char found[4096];
    long len = temp_read(name, found, sizeof found - 1);
    if (!text) {
        if (len >= 0) fail_msg("%s is there", name);
        return;
    }
    if (len < 0) fail_msg("%s is not there", name);
    found[len] = '\0';
    if (strcmp(found, text) != 0)
        fail_msg("%s: expected \"%s\", found \"%s\"", name, text, found);
}

static sft_code make(cli_move *items, size_t count, cli_move_how how, sft_error *err,
                     const char **blame, bool *torn) {
    cli_moves moves = { .path = items[0].from, .items = items, .count = count };
    *err = (sft_error)SFT_ERROR_INIT;
    sft_code code = cli_moves_make(&command, &moves, how, blame, err);
    *torn = moves.is_torn;
    return code;
}

static size_t undo(cli_move *items, size_t count, size_t *left) {
    cli_moves moves = { .path = items[0].from, .items = items, .count = count };
    *left = 0;
    return cli_moves_undo(&command, &moves, left);
}

/* ── There ── */

static const cli_move_edit edits[] = { { 1, { "a", 1 }, { "bee", 3 } }, { 3, { "c", 1 }, { "",
      0 } } };
static const cli_move_edit wrong[] = { { 1, { "z", 1 }, { "y", 1 } } };
static const cli_move_edit crossed[] = { { 1, { "a,", 2 }, { "b", 1 } }, { 2, { ",", 1 }, { "",
      0 } } };
static const cli_move_edit beyond[] = { { 9, { "a", 1 }, { "b", 1 } } };
static const cli_move_edit past_end[] = { { 5, { "e#", 2 }, { "b", 1 } } };

static void files_move(void **state) {
    static const cli_move_how hows[] = { CLI_MOVE, CLI_MOVE_COPY, CLI_MOVE_LINK };
    sft_error err;
    const char *blame;
    bool torn;
    struct stat from, to;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        command.set.no_sync = i == 1;
        cli_move items[] = { { .from = "m", .to = "made/in/m" },
                             { .from = "s", .to = "s2", .edits = edits, .edit_count = 2 },
                             { .from = "t", .to = "t2", .stays = true } };
        write_file("m", "model");
        write_file("s", "\"a,c,e");
        write_file("t", "shared");
        assert_int_equal(chmod("s", 0640), 0);
        assert_int_equal(make(items, 3, hows[i], &err, &blame, &torn), SFT_OK);
        expect_file("m", hows[i] == CLI_MOVE ? NULL : "model");
        expect_file("made/in/m", "model");
        expect_file("s", hows[i] == CLI_MOVE ? NULL : "\"a,c,e");
        expect_file("s2", "\"bee,,e");
        assert_int_equal(temp_mode("s2"), 0640);
        expect_file("t", "shared");
        expect_file("t2", "shared");
        assert_int_equal(stat("t", &from) | stat("t2", &to), 0);
        assert_int_equal(from.st_ino == to.st_ino, hows[i] != CLI_MOVE_COPY);
        size_t left;
        command.set.no_sync = false;
        assert_int_equal(undo(items, 3, &left), 3);
        assert_int_equal(left, 0);
        expect_file("m", "model");
        expect_file("made/in/m", NULL);
        expect_file("s", "\"a,c,e");
        expect_file("s2", NULL);
        expect_file("t2", NULL);
        assert_string_equal(text_of(&command.err), "");
        (void)rmdir("made/in");
        assert_int_equal(rmdir("made"), 0);
    }
}

static void folders_move(void **state) {
    const char *emptied[] = { "f/sub", "f" }, *blame;
    sft_error err = SFT_ERROR_INIT;
    cli_move one = { .from = "f/sub/m", .to = "g" }, whole = { .from = "d", .to = "made/in/d",
                                                               .is_folder = true };
    size_t left;
    bool torn;
    (void)state;
    assert_int_equal(mkdir("f", 0777) | mkdir("f/sub", 0777) | mkdir("d", 0777), 0);
    write_file("f/sub/m", "x");
    cli_moves moves = { .path = "f/sub", .items = &one, .count = 1, .emptied = emptied,
                        .emptied_count = 2 };
    assert_int_equal(cli_moves_make(&command, &moves, CLI_MOVE, &blame, &err), SFT_OK);
    expect_file("g", "x");
    assert_int_not_equal(access("f", F_OK), 0);
    write_file("d/m", "y");
    assert_int_equal(make(&whole, 1, CLI_MOVE, &err, &blame, &torn), SFT_OK);
    expect_file("made/in/d/m", "y");
    assert_int_equal(mkdir("d", 0777), 0); /* meanwhile */
    assert_int_equal(undo(&whole, 1, &left), 0);
    assert_int_equal(left, 1);
    assert_string_equal(text_of(&command.err), "safetensors: d: already exists\n");
    assert_int_equal(rmdir("d"), 0);
    assert_int_equal(undo(&whole, 1, &left), 1);
    expect_file("d/m", "y");
    assert_int_equal(unlink("d/m") | rmdir("made/in") | rmdir("made"), 0);
}

/* ── Refused: all is as it was ── */

static void refused_moves(void **state) {
    static char long_name[300];
    memset(long_name, 'n', sizeof long_name - 1);
    static const struct { cli_move last; sft_code code; const char *blame, *says; } cases[] = {
        { { .from = "s", .to = "taken" }, SFT_EXISTS, "taken", "already exists" },
        { { .from = "gone", .to = "x" }, SFT_IO_PUBLISH, "gone", "cannot open" },
        { { .from = "s", .to = "taken/x" }, SFT_IO_PUBLISH, "taken/x", "cannot make the folder" },
        { { .from = "s", .to = "taken/x/y" }, SFT_IO_PUBLISH, "taken/x/y", "make the folder" },
        { { .from = "s", .to = long_name }, SFT_IO_PUBLISH, long_name,
          "cannot check whether it exists" },
        { { .from = "s", .to = "x", .edits = wrong, .edit_count = 1 }, SFT_BAD_ARGUMENT, "s",
          "expected the text that was there when the move was planned" },
        { { .from = "s", .to = "x", .edits = crossed, .edit_count = 2 }, SFT_BAD_ARGUMENT, "s",
          "expected the text" },
        { { .from = "s", .to = "x", .edits = beyond, .edit_count = 1 }, SFT_BAD_ARGUMENT, "s",
          "expected the text" },
        { { .from = "s", .to = "x", .edits = past_end, .edit_count = 1 }, SFT_BAD_ARGUMENT, "s",
          "expected the text" },
        /* its old name goes with the first */
        { { .from = "m", .to = "x" }, SFT_IO_PUBLISH, "m", "cannot remove" },
    };
    (void)state;
    write_file("m", "model");
    write_file("s", "\"a,c,e");
    write_file("taken", "mine");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_error err;
        const char *blame;
        bool torn;
        cli_move items[] = { { .from = "m", .to = "made/in/m" }, cases[i].last };
        sft_code code = make(items, 2, CLI_MOVE, &err, &blame, &torn);
        if (code != cases[i].code || strcmp(blame, cases[i].blame) != 0
            || !strstr(err.message, cases[i].says))
            fail_msg("%s -> %s: found %d, %s: %s", items[1].from, items[1].to, code, blame,
                     err.message);
        assert_false(torn);
        expect_file("m", "model");
        expect_file("s", "\"a,c,e");
        expect_file("taken", "mine");
        expect_file("x", NULL);
        assert_int_equal(temp_dir_count(), 3); /* no folder is left */
    }
    /* What was edited goes back as it was. */
    sft_error err;
    const char *blame;
    bool torn;
    cli_move items[] = { { .from = "s", .to = "s2", .edits = edits, .edit_count = 2 },
                         { .from = "s", .to = "x" } };
    assert_int_equal(make(items, 2, CLI_MOVE, &err, &blame, &torn), SFT_IO_PUBLISH);
    assert_false(torn);
    expect_file("s", "\"a,c,e");
    assert_int_equal(temp_dir_count(), 3);
}

/* ── Back ── */

typedef struct back_case {
    const char *old, *new; /* texts, or NULL: not there */
    bool edited, stays;
    size_t back, left;
    const char *old_after, *new_after, *says;
} back_case;

static void moves_back(void **state) {
    static const back_case cases[] = {
        { NULL, "m", false, false, 1, 0, "m", NULL, "" },
        { "m", NULL, false, false, 0, 0, "m", NULL, "" }, /* it is where it was */
        { NULL, NULL, false, false, 0, 1, NULL, NULL, "to: cannot open: No such file" },
        { "m", "m", false, false, 1, 0, "m", NULL, "" }, /* the copy goes */
        { "m", "n", false, false, 0, 1, "m", "n", "from: already exists" },
        { "m", "longer", false, false, 0, 1, "m", "longer", "from: already exists" },
        { "m", "n", false, true, 0, 1, "m", "n", "to: expected what mv put there, found another" },
        { NULL, "\"bee,,e", true, false, 1, 0, "\"a,c,e", NULL, "" },
        { NULL, "mine", true, false, 1, 0, "mine", NULL, "to: expected the text that was there" },
        { "\"a,c,e", "\"bee,,e", true, false, 1, 0, "\"a,c,e", NULL, "" },
        { "\"a,c,e", "\"bee,,f", true, false, 0, 1, "\"a,c,e", "\"bee,,f", "from: already exists" },
        { "\"a,c,e", "\"bee,,e ", true, false, 0, 1, "\"a,c,e", "\"bee,,e ", "already exists" },
        { "mine", "\"bee,,e", true, false, 0, 1, "mine", "\"bee,,e", "from: expected the text" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const back_case *one = &cases[i];
        cli_move item = { .from = "from", .to = "to", .stays = one->stays,
                          .edits = one->edited ? edits : NULL, .edit_count = one->edited ? 2 : 0 };
        size_t left;
        if (one->old) write_file("from", one->old);
        if (one->new) write_file("to", one->new);
        size_t back = undo(&item, 1, &left);
        const char *says = text_of(&command.err);
        if (back != one->back || left != one->left || !strstr(says, one->says)
            || (!*one->says && *says))
            fail_msg("case %zu: %zu back, %zu left, \"%s\"", i, back, left, says);
        expect_file("from", one->old_after);
        expect_file("to", one->new_after);
        (void)unlink("from");
        (void)unlink("to");
    }
    /* Places that cannot be looked at, or never changed. */
    size_t left;
    write_file("file", "x");
    cli_move items[] = { { .from = "file", .to = "file" }, { .from = "file", .to = "file/x" },
                         { .from = "file/x", .to = "file" } };
    assert_int_equal(undo(items, 3, &left), 0);
    assert_int_equal(left, 2);
    const char *says = text_of(&command.err);
    assert_non_null(strstr(says, "safetensors: file/x: cannot open: Not a directory\n"));
    expect_file("file", "x");
}

/* ── Names and bytes ── */

static void names_by_case(void **state) {
    char long_one[5000], long_two[5000];
    (void)state;
    write_file("a", "1");
    write_file("A", "2");
    memset(long_one, 'x', sizeof long_one);
    strcpy(long_one + 4990, "/a");
    strcpy(memcpy(long_two, long_one, 4990), long_one);
    strcpy(long_two + 4990, "/A");
    assert_false(cli_is_one_name("a", "a"));
    assert_false(cli_is_one_name("a", "b"));
    assert_false(cli_is_one_name("b", "B"));
    assert_false(cli_is_one_name("a", "A")); /* the folder has both */
    assert_int_equal(unlink("A"), 0);
    assert_false(cli_is_one_name("a", "A"));
    assert_false(cli_is_one_name("A", "a"));
    assert_false(cli_is_one_name(long_one, long_two));
}

static void bytes_are_compared(void **state) {
    static char big[600000], other[600000];
    static const struct { const char *name; bool same; sft_code code; } cases[] = {
        { "twin", true, SFT_OK }, { "last", false, SFT_OK }, { "short", false, SFT_OK },
        { "none", false, SFT_NOT_FOUND },
    };
    (void)state;
    temp_write("big", big, sizeof big);
    temp_write("twin", big, sizeof big);
    temp_write("short", big, sizeof big - 1);
    other[sizeof other - 1] = 1;
    temp_write("last", other, sizeof other);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_error err = SFT_ERROR_INIT;
        bool same = !cases[i].same;
        assert_int_equal(cli_same_bytes(&command, "big", cases[i].name, &same, &err),
                         cases[i].code);
        assert_int_equal(same, cases[i].same);
        assert_int_equal(cli_same_bytes(&command, cases[i].name, "big", &same, &err),
                         cases[i].code);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(files_move), TEST(folders_move),  TEST(refused_moves),
        TEST(moves_back), TEST(names_by_case), TEST(bytes_are_compared),
    };
    return cmocka_run_group_tests_name("files that move together", tests, NULL, NULL);
}
