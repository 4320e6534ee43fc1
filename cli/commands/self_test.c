/* self-test: the calls of os.h that systems differ in, tried in a folder that the user names.
 * Hidden: it is for reports of systems that the tests do not run on (docs/platforms.md). */
#include "commands/commands.h"

#include "os/io.h"
#include "support/print.h"

#include <errno.h>
#include <string.h>

#define NAME "safetensors-self-test"
#define PATH_MOST 2048

typedef struct trial {
    cli *c;
    const char *folder;
    char path[3][PATH_MOST];
} trial;

/* A path in the folder; three are kept. */
static const char *trial_path(trial *t, int which, const char *name) {
    size_t len = strlen(t->folder), more = strlen(name);
    if (len + 1 + more >= PATH_MOST) return "";
    memcpy(t->path[which], t->folder, len);
    t->path[which][len] = '/';
    memcpy(t->path[which] + len + 1, name, more + 1);
    return t->path[which];
}

/* A new file of eight equal bytes. */
static int trial_write(const char *path, char byte) {
    char bytes[8];
    int fd, error = sfti_os_open_new(path, 0644, &fd);
    if (error) return error;
    memset(bytes, byte, sizeof bytes);
    error = sfti_write_all(fd, bytes, sizeof bytes, 0);
    if (!error) error = sfti_os_sync(fd);
    int closing = sfti_os_close(fd);
    return error ? error : closing;
}

/* That file of 'o' as path 0, opened. */
static int trial_begin(trial *t, bool writes, int *fd) {
    int error = trial_write(trial_path(t, 0, "file"), 'o');
    if (error) return error;
    return writes ? sfti_os_open_write(t->path[0], fd) : sfti_os_open_read(t->path[0], fd);
}

static int trial_expect(int fd, char byte) {
    char bytes[8] = { 0 };
    size_t got = 0;
    int error = sfti_os_pread(fd, bytes, sizeof bytes, 0, &got);
    return error ? error : got == sizeof bytes && bytes[0] == byte && bytes[7] == byte ? 0 : EIO;
}

/* Another file takes the name; what is open goes on, what is opened now is the new one. */
static int replaces(trial *t, int fd, const char *path) {
    int again, error = trial_write(trial_path(t, 1, "new"), 'n');
    if (!error) error = sfti_os_rename(trial_path(t, 1, "new"), path, false);
    if (!error && fd >= 0) error = trial_expect(fd, 'o');
    if (!error) error = sfti_os_open_read(path, &again);
    if (error) return error;
    error = trial_expect(again, 'n');
    (void)sfti_os_close(again);
    return error;
}

/* ── The trials: 0, EOPNOTSUPP or what failed ── */

static int trial_names(trial *t) {
    int error = trial_write(trial_path(t, 0, "na\xc3\xafve \xf0\x9f\xa6\x8a"), 'o');
    if (!error) error = sfti_os_sync_folder(t->folder);
    if (!error) error = sfti_os_unlink(t->path[0]);
    return error;
}

static int trial_long(trial *t) {
    char name[400];
    size_t len = 0;
    int error = 0;
    while (!error && len < sizeof name - 50) {
        if (len > 0) name[len++] = '/';
        memset(name + len, 'l', 40);
        name[len += 40] = '\0';
        error = sfti_os_make_folder(trial_path(t, 0, name), 0755);
    }
    memcpy(name + len, "/file", 6);
    if (!error) error = trial_write(trial_path(t, 0, name), 'o');
    if (!error) error = sfti_os_unlink(t->path[0]);
    for (char *cut = name + len; cut; cut = strrchr(name, '/')) {
        *cut = '\0';
        int removed = sfti_os_remove_folder(trial_path(t, 0, name));
        error = error ? error : removed;
    }
    return error;
}

static int trial_open(trial *t) {
    int fd, error = trial_begin(t, false, &fd);
    if (error) return error;
    error = replaces(t, fd, t->path[0]);
    (void)sfti_os_close(fd);
    return error;
}

static int trial_mapped(trial *t) {
    void *map = NULL;
    int fd, error = trial_begin(t, false, &fd);
    if (error) return error;
    error = sfti_os_map(fd, 8, false, &map);
    if (!error) error = replaces(t, fd, t->path[0]);
    if (!error && memcmp(map, "oooooooo", 8) != 0) error = EIO;
    if (map) sfti_os_unmap(map, 8);
    (void)sfti_os_close(fd);
    return error;
}

static int trial_remove_mapped(trial *t) {
    os_info info;
    void *map = NULL;
    int fd, error = trial_begin(t, false, &fd);
    if (error) return error;
    error = sfti_os_map(fd, 8, false, &map);
    if (!error) error = sfti_os_unlink(t->path[0]);
    if (!error && sfti_os_info_path(t->path[0], false, &info) != ENOENT) error = EEXIST;
    if (map) sfti_os_unmap(map, 8);
    (void)sfti_os_close(fd);
    return error;
}

static int trial_read_only(trial *t) {
    int fd, error = trial_begin(t, true, &fd);
    if (error) return error;
    error = sfti_os_set_mode(fd, 0444);
    (void)sfti_os_close(fd);
    return error ? error : replaces(t, -1, t->path[0]);
}

static int trial_no_clobber(trial *t) {
    int error = trial_write(trial_path(t, 0, "file"), 'o');
    if (!error) error = trial_write(trial_path(t, 1, "new"), 'n');
    if (error) return error;
    error = sfti_os_rename(t->path[1], t->path[0], true);
    (void)sfti_os_unlink(t->path[1]);
    return error == EEXIST ? 0 : error ? error : EIO;
}

static int trial_unnamed(trial *t) {
    int fd, error = sfti_os_open_unnamed(t->folder, 0644, &fd);
    if (error) return error;
    error = sfti_os_link_unnamed(fd, trial_path(t, 0, "file"));
    (void)sfti_os_close(fd);
    return error;
}

/* With a second descriptor of the same file, and the file in one block of zeros. */
static int with_two(trial *t, int (*run)(int one, int two)) {
    int one = -1, two = -1, error = trial_begin(t, true, &one);
    if (!error) error = sfti_os_open_write(t->path[0], &two);
    if (!error) error = run(one, two);
    if (two >= 0) (void)sfti_os_close(two);
    if (one >= 0) (void)sfti_os_close(one);
    return error;
}

static int lease_is_refused(int one, int two) {
    (void)two;
    int error = sfti_os_lease(one, true);
    return error == EAGAIN ? 0 : error ? error : EIO;
}

static int lock_is_refused(int one, int two) {
    int error = sfti_os_lock(one);
    if (error) return error;
    error = sfti_os_lock(two);
    sfti_os_unlock(one);
    return error == EAGAIN ? 0 : error ? error : EIO;
}

static int mtime_is_kept(int one, int two) {
    os_info info;
    int error = sfti_os_set_mtime(one, INT64_C(1234567890123456700));
    if (!error) error = sfti_os_info_fd(two, &info);
    return error ? error : info.mtime_ns == INT64_C(1234567890123456700) ? 0 : EIO;
}

static int space_is_reserved(int one, int two) {
    os_info info;
    int error = sfti_os_preallocate(one, 1 << 20);
    if (!error) error = sfti_os_info_fd(two, &info);
    return error ? error : info.size == 1 << 20 ? 0 : EIO;
}

static int direct_is_there(int one, int two) {
    (void)two;
    int error = sfti_os_set_direct(one, true);
    return error ? error : sfti_os_set_direct(one, false);
}

static int holes_are_found(int one, int two) {
    uint64_t hole;
    int error = sfti_os_truncate(one, 4 << 20);
    if (!error) error = sfti_os_find_hole(two, 0, &hole);
    return error ? error : hole < 4 << 20 ? 0 : EOPNOTSUPP;
}

static int beyond_4_gb(int one, int two) {
    char bytes[8] = { 0 };
    size_t got = 0;
    const uint64_t at = (UINT64_C(1) << 32) + 5;
    int error = sfti_os_truncate(one, at);
    if (!error) error = sfti_write_all(one, "far away", 8, at);
    if (!error) error = sfti_os_pread(two, bytes, 8, at, &got);
    if (!error && (got != 8 || memcmp(bytes, "far away", 8) != 0)) error = EIO;
    int cut = sfti_os_truncate(one, 0);
    return error ? error : cut;
}

static int blocks_are_shared(int one, int two) {
    int error = sfti_os_truncate(one, 1 << 20);
    if (!error) error = sfti_os_truncate(two, 2 << 20);
    return error ? error : sfti_os_clone_range(one, 0, two, 1 << 20, 1 << 20);
}

static int trial_lease_alone(trial *t) {
    int fd, error = trial_begin(t, true, &fd);
    if (error) return error;
    error = sfti_os_lease(fd, true);
    if (!error) error = sfti_os_lease(fd, false);
    (void)sfti_os_close(fd);
    return error;
}

static const struct {
    const char *says;
    int (*run)(trial *t); /* or NULL */
    int (*run_two)(int one, int two); /* then with two descriptors */
} trials[] = {
    { "names of any script", trial_names, NULL },
    { "paths of 400 characters", trial_long, NULL },
    { "replace a file that is open", trial_open, NULL },
    { "replace a file that is mapped", trial_mapped, NULL },
    { "remove a file that is mapped", trial_remove_mapped, NULL },
    { "replace a read-only file", trial_read_only, NULL },
    { "no replacing unless asked", trial_no_clobber, NULL },
    { "files without a name", trial_unnamed, NULL },
    { "lease refused, others have it", NULL, lease_is_refused },
    { "lease of an unused file", trial_lease_alone, NULL },
    { "lock refused, another has it", NULL, lock_is_refused },
    { "modification time, 100 ns", NULL, mtime_is_kept },
    { "space reserved in advance", NULL, space_is_reserved },
    { "offsets beyond 4 GB", NULL, beyond_4_gb },
    { "writing past the page cache", NULL, direct_is_there },
    { "holes found", NULL, holes_are_found },
    { "blocks shared by copies", NULL, blocks_are_shared },
};

/* ── The report ── */

static int remove_entry(void *ctx, const char *name, os_kind kind) {
    trial *t = ctx;
    (void)kind;
    return sfti_os_unlink(trial_path(t, 2, name));
}

static int count_entry(void *ctx, const char *name, os_kind kind) {
    (void)name, (void)kind;
    ++*(unsigned *)ctx;
    return 0;
}

static void report(cli *c, const char *says, int error, const char *more) {
    char text[128];
    if (error == 0) cli_printf(&c->out, "%-32s ok%s\n", says, more);
    else if (error == EOPNOTSUPP) cli_printf(&c->out, "%-32s not supported here\n", says);
    else cli_printf(&c->out, "%-32s FAILED: %s%s\n", says,
                    sfti_os_error_text(error, text, sizeof text), more);
    if (error && error != EOPNOTSUPP) cli_status(c, CLI_NO);
}

void cli_self_test(cli *c, const char *folder) {
    static trial t;
    char text[128], made[PATH_MOST - 512];
    size_t len = strlen(folder);
    if (len + sizeof "/" NAME > sizeof made) {
        cli_status(c, CLI_FAILED);
        return;
    }
    memcpy(made, folder, len);
    memcpy(made + len, "/" NAME, sizeof "/" NAME);
    int error = sfti_os_make_folder(made, 0755);
    if (error) {
        cli_printf(&c->err, "safetensors: %s: cannot make the folder: %s\n", made,
                   sfti_os_error_text(error, text, sizeof text));
        cli_status(c, CLI_FAILED);
        return;
    }
    t.c = c;
    t.folder = made;
    cli_printf(&c->out, "safetensors self-test, to be sent as it is\nversion: %s\n", sft_version());
    cli_text(&c->out, sft_build_info());
    cli_text(&c->out, "\n");
    /* every trial may leave the file it worked on; another one beside it is told */
    for (size_t i = 0; i < sizeof trials / sizeof *trials && !sfti_os_stop_signal(); i++) {
        unsigned left = 0;
        error = trials[i].run ? trials[i].run(&t) : with_two(&t, trials[i].run_two);
        (void)sfti_os_list(t.folder, count_entry, &left);
        report(c, trials[i].says, error, left > 1 ? " (a file was left beside it)" : "");
        (void)sfti_os_list(t.folder, remove_entry, &t);
    }
    cli_printf(&c->out, "%-32s %s, %u columns; %u processors\n", "standard output",
               sfti_os_is_terminal(1) ? "a terminal" : "no terminal",
               (unsigned)sfti_os_terminal_columns(1), (unsigned)sfti_os_cpu_count());
    report(c, "the folder removed again", sfti_os_remove_folder(made), "");
}
