/* sfti_os_open_beneath by openat2 and, with that forbidden, part by part: the same answers. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os/beneath.h"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ── A tree: f is the folder; all targets are relative to it ── */

static void put_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "bytes", 5), 5);
    close(fd);
}

static void plant_links(void) {
    static const char *const links[][2] = {
        { "f/out", "../home" },      { "f/out_deep", "a/../../home" }, { "f/in", "a/b" },
        { "f/up_and_in", "a/../a" },
        { "f/file_in", "a/b/x" },         { "f/file_out", "../home/x" },
        { "f/none", "nowhere" },     { "f/loop", "loop" },             { "f/ping", "pong" },
        { "f/pong", "ping" },        { "f/chain", "out" },             { "f/a/back", "../a/b/x" },
        { "f/a/climb", "../../home/x" },
        { "f/root", "/" },           { "f/dot", "." },
        { "f/a/b/slashes", "..//.//b//x" },
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        assert_int_equal(symlink(links[i][1], links[i][0]), 0);
}

static void plant_hub(void) {
    assert_int_equal(mkdir("hub", 0700), 0);
    assert_int_equal(mkdir("hub/blobs", 0700), 0);
    assert_int_equal(mkdir("hub/blobs/ab", 0700), 0);
    put_file("hub/blobs/ab/shared");
    put_file("hub/x");
    static const char *const repos[] = { "hub/models--o--n", "hub/models--o--m" };
    for (size_t i = 0; i < 2; i++) {
        static const char *const inner[] = { "", "/blobs", "/snapshots", "/snapshots/r",
                                             "/snapshots/r/u" };
        char path[128];
        for (size_t k = 0; k < sizeof inner / sizeof *inner; k++) {
            snprintf(path, sizeof path, "%s%s", repos[i], inner[k]);
            assert_int_equal(mkdir(path, 0700), 0);
        }
        snprintf(path, sizeof path, "%s/blobs/etag", repos[i]);
        put_file(path);
    }
    static const char *const links[][2] = {
        { "blobs/via", "../../blobs/ab/shared" }, { "blobs/evil", "../../x" },
        { "blobs/twice", "via" },                 { "snapshots/r/file", "../../blobs/etag" },
        { "snapshots/r/u/file", "../../../blobs/etag" }, { "snapshots/r/via", "../../blobs/via" },
        { "snapshots/r/evil", "../../blobs/evil" },
        { "snapshots/r/twice", "../../blobs/twice" },
        { "snapshots/r/sibling", "../../../models--o--m/blobs/etag" },
        { "snapshots/r/direct", "../../../blobs/ab/shared" },
        { "snapshots/r/blobs", "../../blobs" },
        { "snapshots/r/refs", "../../refs/main" },
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        char path[128];
        snprintf(path, sizeof path, "hub/models--o--n/%s", links[i][0]);
        assert_int_equal(symlink(links[i][1], path), 0);
    }
}

static void plant(void) {
    static const char *const folders[] = { "f", "f/a", "f/a/b", "home" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(folders[i], 0700), 0);
    put_file("home/x");
    put_file("f/a/b/x");
    put_file("f/own");
    assert_int_equal(mkfifo("f/pipe", 0600), 0);
    plant_links();
    plant_hub();
}

/* ── What each name gives ── */

typedef struct name_row {
    const char *folder, *name;
    os_beneath how;
    int error;
} name_row;

#define R OS_BENEATH_READ
#define O OS_BENEATH_OWN
#define W OS_BENEATH_WRITE
#define F OS_BENEATH_FOLDER
static const char snapshot[] = "hub/models--o--n/snapshots/r";

static const name_row rows[] = {
    { "f", "own", R, 0 },           { "f", "own", O, 0 },          { "f", "own", W, 0 },
    { "f", "a/b/x", R, 0 },         { "f", "a/b/x", W, 0 },        { "f", "a/b", F, 0 },
    { "f/", "own", R, 0 },          { "f", "pipe", R, 0 },         { "f", "nothing", R, ENOENT },
    { "f", "out/x", R, EXDEV },     { "f", "out/x", O, ELOOP },    { "f", "out/x", W, ELOOP },
    { "f", "out", F, ELOOP },       { "f", "out_deep/x", R, EXDEV }, { "f", "chain/x", R, EXDEV },
    { "f", "in/x", R, 0 },          { "f", "in/x", O, ELOOP },     { "f", "in", F, ELOOP },
    { "f", "up_and_in/b/x", R, 0 }, { "f", "file_in", R, 0 },      { "f", "file_in", W, ELOOP },
    { "f", "file_out", R, EXDEV },  { "f", "file_out", O, ELOOP }, { "f", "none", R, ENOENT },
    { "f", "loop", R, ELOOP },      { "f", "ping/x", R, ELOOP },   { "f", "a/back", R, 0 },
    { "f", "a/climb", R, EXDEV },   { "f", "root/etc/passwd", R, EXDEV }, { "f", "dot/own", R, 0 },
    { "f", "a/b/slashes", R, 0 },   { "f", "../home/x", R, EXDEV },
    { "f", "/etc/passwd", R, EXDEV },
    { "f", "own/x", R, ENOTDIR },   { "f", "own", F, ENOTDIR },    { "f", "a", W, EISDIR },
    { "f", "", F, 0 },              { "none", "", F, ENOENT },     { "f/own", "", F, ENOTDIR },
    { "none", "x", R, ENOENT },     { "f/out", "x", R, 0 },        { "", "f/own", R, 0 },
    { snapshot, "file", R, 0 },     { snapshot, "u/file", R, 0 },  { snapshot, "via", R, 0 },
    { snapshot, "file", O, ELOOP }, { snapshot, "file", W, ELOOP }, { snapshot, "evil", R, EXDEV },
    { snapshot, "twice", R, EXDEV }, { snapshot, "sibling", R, EXDEV },
    { snapshot, "direct", R, EXDEV }, { snapshot, "blobs", R, EXDEV },
    { snapshot, "refs", R, EXDEV }, { snapshot, "blobs/etag", R, EXDEV },
    { "hub/models--o--n/snapshots", "r/file", R, 0 },
    { "hub/models--o--n", "snapshots/r/file", R, 0 },
};

static void check_rows(const char *by) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd, error = sfti_os_open_beneath(rows[i].folder, rows[i].name, rows[i].how, &fd);
        if (error != rows[i].error)
            fail_msg("%s: %s in %s, %d: expected %d, found %d", by, rows[i].name, rows[i].folder,
                     (int)rows[i].how, rows[i].error, error);
        if (error) assert_int_equal(fd, -1);
        else assert_int_equal(sfti_os_close(fd), 0);
    }
}

static void check_unlinking(void) {
    put_file("f/a/b/gone");
    assert_int_equal(sfti_os_unlink_beneath("f", "a/b/gone"), 0);
    assert_int_equal(access("f/a/b/gone", F_OK), -1);
    assert_int_equal(sfti_os_unlink_beneath("f", "out/x"), ELOOP);
    assert_int_equal(sfti_os_unlink_beneath("f", "in/x"), ELOOP);
    assert_int_equal(sfti_os_unlink_beneath("f", "a/b/gone"), ENOENT);
    assert_int_equal(symlink("../home/x", "f/link"), 0);
    assert_int_equal(sfti_os_unlink_beneath("f", "link"), 0); /* the link itself */
    assert_int_equal(access("home/x", F_OK), 0);
}

/* Whatever its folder is called. */
static void check_path_in(void) {
    char path[64], cut[8];
    int folder, fd;
    assert_int_equal(sfti_os_open_beneath("f", "a/b", OS_BENEATH_FOLDER, &folder), 0);
    assert_int_equal(sfti_os_path_in(folder, "x", path, sizeof path), 0);
    assert_int_equal(sfti_os_path_in(folder, "x", cut, sizeof cut), ENAMETOOLONG);
    assert_int_equal(rename("f/a/b", "elsewhere"), 0);
    assert_int_equal(symlink("../../home", "f/a/b"), 0);
    assert_int_equal(sfti_os_open_no_link(path, false, &fd), 0);
    struct stat here, there;
    assert_int_equal(fstat(fd, &here), 0);
    assert_int_equal(stat("elsewhere/x", &there), 0);
    assert_int_equal(here.st_ino, there.st_ino);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(unlink("f/a/b"), 0);
    assert_int_equal(rename("elsewhere", "f/a/b"), 0);
    assert_int_equal(sfti_os_close(folder), 0);
    assert_int_equal(sfti_os_path_in(folder, "x", path, sizeof path), EBADF);
}

/* ── A leased file ── */

#define WAITS_MOST 50
static int waits, waits_until_pipe;

/* A FIFO takes the name of the leased file. */
static bool while_waiting(void *ctx) {
    (void)ctx;
    if (++waits == waits_until_pipe) {
        assert_int_equal(mkfifo("f/taker", 0600), 0);
        assert_int_equal(rename("f/taker", "f/leased"), 0);
    }
    return waits < WAITS_MOST;
}

static void check_lease(int until_pipe, int expected) {
    int fd, leased;
    for (int how = 0; how < 2; how++) {
        (void)unlink("f/leased");
        put_file("f/leased");
        leased = open("f/leased", O_RDWR | O_CLOEXEC);
        assert_true(leased >= 0);
        if (fcntl(leased, F_SETLEASE, F_WRLCK) != 0) skip();
        waits = 0;
        waits_until_pipe = until_pipe;
        sfti_os_on_wait(while_waiting, NULL);
        int error = how ? sfti_os_open_read("f/leased", &fd)
                        : sfti_os_open_beneath("f", "leased", OS_BENEATH_READ, &fd);
        sfti_os_on_wait(NULL, NULL);
        assert_int_equal(error, expected);
        if (!error) assert_int_equal(sfti_os_close(fd), 0);
        assert_true(waits > 0);
        close(leased);
    }
    assert_int_equal(unlink("f/leased"), 0);
}

/* It is waited for, as long as the caller goes on; and in no call that a FIFO would hold up. */
static void check_leases(void) {
    assert_true(signal(SIGIO, SIG_IGN) != SIG_ERR);
    alarm(20);
    check_lease(0, EINTR);
    check_lease(3, 0);
    alarm(0);
}

/* ── openat2 as on a system without it ── */

static bool forbid_openat2(void) {
#ifdef SYS_openat2
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
           && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
    return true;
#endif
}

static void both_ways_agree(void **state) {
    (void)state;
    plant();
    check_rows("openat2");
    check_unlinking();
    check_path_in();
    check_leases();
    if (!forbid_openat2()) skip();
    check_rows("part by part");
    check_unlinking();
    check_path_in();
    check_leases();
}

/* ── The shape of a Hub cache ── */

static void hub_shapes(void **state) {
    static const struct hub_row {
        const char *link, *target, *folder, *name; /* folder NULL: none */
    } shapes[] = {
        { "/c/models--a--b/snapshots/r/x", "../../blobs/h", "/c/models--a--b", "blobs/h" },
        { "/c/datasets--a--b/snapshots/r/x", "../../blobs/h", "/c/datasets--a--b", "blobs/h" },
        { "/c/kernels--a--b/snapshots/r/x", "../../blobs/h", "/c/kernels--a--b", "blobs/h" },
        { "/c/models--a--b/snapshots/r/u/v/x", "../../../../blobs/h", "/c/models--a--b",
          "blobs/h" },
        { "/c/models--a--b/snapshots/r/x", "/c/models--a--b/blobs/h", "/c/models--a--b",
          "blobs/h" },
        { "/c/models--a--b/blobs/h", "../../blobs/ab/d", "/c", "blobs/ab/d" },
        { "/c/models--a--b/snapshots/r/x", "../../blobs/h/i", NULL, NULL },
        { "/c/models--a--b/snapshots/x", "../blobs/h", NULL, NULL },
        { "/c/models--a--b/snapshots/r/x", "../../blobs/..", NULL, NULL },
        { "/c/models--a--b/snapshots/r/x", "../../blobs", NULL, NULL },
        { "/c/models--a--b/snapshots/r/x", "../../../../../../../../etc/passwd", NULL, NULL },
        { "/c/models--a--b/snapshots/r/x", "/etc/passwd", NULL, NULL },
        { "/c/models--a--b/snapshots/r/x", "../../blobsx/h", NULL, NULL },
        { "/c/models--/snapshots/r/x", "../../blobs/h", NULL, NULL },
        { "/c/other--a--b/snapshots/r/x", "../../blobs/h", NULL, NULL },
        { "/c/models--a--b/blobs/h", "../../blobs/d", NULL, NULL },
        { "/c/models--a--b/blobs/h", "../../../blobs/ab/d", NULL, NULL },
        { "/c/models--a--b/blobs/u/h", "../../../blobs/ab/d", NULL, NULL },
        { "/models--a--b/blobs/h", "/blobs/ab/d", NULL, NULL },
        { "/c/models--a--b/snapshots/r/x", "", NULL, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char out[256];
        size_t name = 0;
        bool fits = sfti_hook_link(shapes[i].link, shapes[i].target, out, sizeof out, &name);
        if (fits != (shapes[i].folder != NULL))
            fail_msg("%s -> %s: %s", shapes[i].link, shapes[i].target, fits ? out : "none");
        if (!fits) continue;
        assert_string_equal(out, shapes[i].folder);
        assert_string_equal(out + name, shapes[i].name);
    }
    char small[16];
    size_t name;
    assert_false(sfti_hook_link(shapes[0].link, shapes[0].target, small, sizeof small, &name));
}

/* A name as it is walked, and how a link's target goes in front of what is left of it. */
static void names_walked(void **state) {
    static const struct {
        const char *name;
        int error;
        const char *text;
    } rows[] = {
        { "", ENOENT, NULL },        { "/a", EXDEV, NULL },        { "..", EXDEV, NULL },
        { ".", EISDIR, NULL },       { "a/..", EISDIR, NULL },     { "a/b/../../..", EXDEV, NULL },
        { "a", 0, "a" },             { "a/./b//c/", 0, "a/b/c" },
        { ".a/..b/c./.c.", 0, ".a/..b/c./.c." },
        { "ab/cd/../e", 0, "ab/e" }, { "ab/../cd", 0, "cd" },      { "./a/.b", 0, "a/.b" },
    };
    static char text[SFTI_WALK_PATH + 8], out[SFTI_WALK_PATH];
    sfti_walk w;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (sfti_walk_begin(&w, rows[i].name) != rows[i].error) fail_msg("%s", rows[i].name);
        if (rows[i].text) assert_string_equal(w.text, rows[i].text);
    }
    memset(text, 'a', sizeof text - 1);
    assert_int_equal(sfti_walk_begin(&w, text), ENAMETOOLONG);
    text[SFTI_WALK_PATH - 1] = '\0';
    assert_int_equal(sfti_walk_begin(&w, text), ENAMETOOLONG);
    text[SFTI_WALK_PATH - 2] = '\0';
    assert_int_equal(sfti_walk_begin(&w, text), 0);
    size_t len = strlen(text);
    assert_int_equal(sfti_walk_join(text, len, "", out, sizeof out), 0);
    assert_int_equal(sfti_walk_join(text, len, "b", out, sizeof out), ENAMETOOLONG);
    assert_int_equal(sfti_walk_join(text, sizeof out, "", out, sizeof out), ENAMETOOLONG);
    assert_int_equal(sfti_walk_join("a/b", 1, "c/d", out, sizeof out), 0);
    assert_string_equal(out, "a/c/d");
    assert_int_equal(sfti_walk_begin(&w, "a/b"), 0);
    assert_int_equal(sfti_walk_splice(&w, text, "b"), ENAMETOOLONG);
    assert_int_equal(sfti_walk_splice(&w, "/c", "b"), EXDEV);
    for (int i = 0; i < SFTI_WALK_LINKS; i++) assert_int_equal(sfti_walk_splice(&w, "c/d", "b"), 0);
    assert_string_equal(w.text, "c/d/b");
    assert_int_equal(sfti_walk_splice(&w, "c", "b"), ELOOP);
}

/* Folders that are not there, and names that are too long. */
static void names_refused(void **state) {
    static char name[2 * SFTI_WALK_PATH];
    int fd;
    (void)state;
    for (size_t i = 0; i < sizeof name - 1; i++) name[i] = i % 2 ? '/' : 'a';
    const os_beneath ways[] = { OS_BENEATH_READ, OS_BENEATH_OWN, OS_BENEATH_WRITE,
                                OS_BENEATH_FOLDER };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(sfti_os_open_beneath(".", name, ways[i], &fd), ENAMETOOLONG);
        assert_int_equal(sfti_os_open_beneath("nowhere", "a/b", ways[i], &fd), ENOENT);
        assert_int_equal(sfti_os_open_beneath("nowhere", "a", ways[i], &fd), ENOENT);
        assert_int_equal(sfti_os_open_beneath("", "a", ways[i], &fd), ENOENT);
        assert_int_equal(fd, -1);
    }
    assert_int_equal(sfti_os_unlink_beneath(".", name), ENAMETOOLONG);
    assert_int_equal(sfti_os_unlink_beneath("nowhere", "a"), ENOENT);
    assert_int_equal(sfti_os_unlink_beneath("", "a/b"), ENOENT);
    assert_int_equal(sfti_os_open_beneath("", "", OS_BENEATH_FOLDER, &fd), 0);
    close(fd);
    put_file("plain");
    assert_int_equal(sfti_os_open_beneath("", "plain", OS_BENEATH_READ, &fd), 0);
    close(fd);
    assert_int_equal(sfti_os_unlink_beneath("", "plain"), 0);
}

static int enter(void **state) {
    static const char pattern[] = "/tmp/sft-beneath-XXXXXX";
    static char folder[sizeof pattern];
    *state = memcpy(folder, pattern, sizeof pattern);
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", (const char *)*state);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hub_shapes), cmocka_unit_test(names_walked),
        cmocka_unit_test_setup_teardown(names_refused, enter, leave),
        cmocka_unit_test_setup_teardown(both_ways_agree, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
