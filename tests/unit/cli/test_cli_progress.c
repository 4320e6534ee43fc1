/* Progress: what a terminal shows, and what a program reads. Linux: terminals of POSIX. */
#define _GNU_SOURCE
#include "unit/command_case.h"
#include "os/os.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define WIPE "\r\x1b[K"

static int master, kept;

/* The standard error becomes a terminal of the test's own. */
static int set_up(void **state) {
    (void)state;
    begin_command();
    unsetenv("LIBSAFETENSORS_PROGRESS");
    setenv("TERM", "xterm", 1);
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) return -1;
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    kept = dup(2);
    if (slave < 0 || kept < 0 || dup2(slave, 2) < 0) return -1;
    return close(slave);
}

static int tear_down(void **state) {
    (void)state;
    unsetenv("LIBSAFETENSORS_PROGRESS");
    dup2(kept, 2);
    close(kept);
    close(master);
    end_command();
    return 0;
}

/* Begun `seconds` ago. */
static sft_job begun(cli_progress *p, uint64_t seconds) {
    sft_job job = cli_progress_begin(p, &command, "neon.safetensors");
    p->started -= seconds * SECOND;
    return job;
}

static void expect(const char *begin, const char *has, const char *end) {
    const char *found = text_of(&command.err);
    size_t len = strlen(found), tail = strlen(end);
    if (strncmp(found, begin, strlen(begin)) != 0 || !strstr(found, has) || len < tail
        || strcmp(found + len - tail, end) != 0) {
        printf("expected \"%s...%s...%s\", found \"%s\"\n", begin, has, end, found);
        fail();
    }
}

static void on_a_terminal(void **state) {
    cli_progress p;
    (void)state;
    sft_job job = begun(&p, 0); /* nothing in the first second */
    assert_true(job.tick(job.ctx, 1000, 4000));
    cli_progress_end(&p);
    assert_string_equal(text_of(&command.err), "");
    job = begun(&p, 2);
    assert_true(job.tick(job.ctx, UINT64_C(2000000000), UINT64_C(8000000000)));
    expect(WIPE "neon.safetensors: 2.00 GB of 8.00 GB, ", "B/s, ", " s left");
    assert_true(job.tick(job.ctx, UINT64_C(2000000001), UINT64_C(8000000000)));
    assert_string_equal(text_of(&command.err), ""); /* not that soon again */
    cli_progress_end(&p);
    assert_string_equal(text_of(&command.err), WIPE);
    job = begun(&p, 2);
    assert_true(job.tick(job.ctx, 2000000, SFT_SIZE_UNKNOWN));
    expect(WIPE "neon.safetensors: 2.00 MB, ", "B/s", "B/s");
    job = begun(&p, 2); /* too slow to say when it ends */
    assert_true(job.tick(job.ctx, 5, 4000));
    expect(WIPE "neon.safetensors: 5 B of 4.00 KB, ", "0 B/s", "0 B/s");
    job = begun(&p, 2); /* a file that grows */
    assert_true(job.tick(job.ctx, 5000000, 4000));
    expect(WIPE "neon.safetensors: 5.00 MB of 4.00 KB, ", "MB/s", "B/s");
    job = begun(&p, 2); /* of several jobs */
    p.before = 1000000;
    p.all = 9000000;
    assert_true(job.tick(job.ctx, 1000000, 4000));
    expect(WIPE "neon.safetensors: 2.00 MB of 9.00 MB, ", "B/s, ", " s left");
    begun(&p, 2);
    cli_progress_count(&p, 7, 0);
    assert_string_equal(text_of(&command.err), WIPE "7 models");
    cli_progress_count(&p, 8, 0);
    assert_string_equal(text_of(&command.err), "");
    begun(&p, 2);
    cli_progress_count(&p, 7, 9);
    assert_string_equal(text_of(&command.err), WIPE "7 of 9 models");
}

static bool holds_until_the_end(void *ctx, bool last) {
    (void)ctx;
    return !last;
}

static void for_a_program(void **state) {
    cli_progress p;
    (void)state;
    setenv("LIBSAFETENSORS_PROGRESS", "lines", 1);
    sft_job job = begun(&p, 1);
    assert_true(job.tick(job.ctx, 1000, 4000));
    assert_string_equal(text_of(&command.err), "progress: 1000 4000\n");
    job = begun(&p, 1);
    assert_true(job.tick(job.ctx, 1000, SFT_SIZE_UNKNOWN));
    assert_string_equal(text_of(&command.err), "progress: 1000 -\n");
    begun(&p, 1);
    cli_progress_count(&p, 7, 0);
    assert_string_equal(text_of(&command.err), "progress: 7 -\n");
    begun(&p, 1);
    cli_progress_count(&p, 7, 9);
    assert_string_equal(text_of(&command.err), "progress: 7 9\n");
    cli_progress_end(&p);
    assert_string_equal(text_of(&command.err), ""); /* nothing to wipe */
    job = begun(&p, 1);
    p.holds = holds_until_the_end;
    assert_true(job.tick(job.ctx, 1000, 4000));
    assert_false(job.tick(job.ctx, 4000, 4000));
    setenv("LIBSAFETENSORS_PROGRESS", "no", 1);
    begun(&p, 0);
    cli_progress_count(&p, 7, 9);
    assert_string_equal(text_of(&command.err), "progress: 1000 4000\n");
}

/* Whether text is coloured: forced, or a terminal that can, and nobody says no. */
static void colours(void **state) {
    static const struct { const char *force, *none, *term; bool colored; } cases[] = {
        { NULL, NULL, "xterm", true }, { NULL, NULL, "dumb", false }, { "1", NULL, "dumb", true },
        { "0", NULL, "dumb", false }, { "", NULL, "dumb", false }, { "1", "1", "xterm", false },
        { NULL, "", "xterm", true }, { NULL, "1", "xterm", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].force) setenv("CLICOLOR_FORCE", cases[i].force, 1);
        else unsetenv("CLICOLOR_FORCE");
        if (cases[i].none) setenv("NO_COLOR", cases[i].none, 1);
        else unsetenv("NO_COLOR");
        setenv("TERM", cases[i].term, 1);
        command.err.color = 0;
        cli_styled(&command.err, CLI_BOLD, "x");
        assert_string_equal(text_of(&command.err), cases[i].colored ? "\x1b[1mx\x1b[0m" : "x");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(on_a_terminal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(for_a_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(colours, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("progress and colours", tests, NULL, NULL);
}
