/* The POSIX host against real files. */
#define _GNU_SOURCE
#include "os/io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

static void test_kinds(void **state) {
    os_info info;
    int fd = -1;
    (void)state;
    temp_write("file", "hello", 5);
    assert_int_equal(chmod(temp_path("file"), 0640), 0);
    assert_int_equal(mkdir(temp_path("dir"), 0755), 0);
    assert_int_equal(symlink("file", temp_path("link")), 0);
    assert_int_equal(mkfifo(temp_path("pipe"), 0600), 0);

    assert_int_equal(sfti_os_info_path(temp_path("file"), false, &info), 0);
    assert_int_equal(info.kind, OS_FILE);
    assert_int_equal(info.size, 5);
    assert_int_equal(info.mode, 0640);
    assert_int_equal(info.links, 1);
    assert_true(info.mtime_ns > INT64_C(1000000000000000000));
    assert_int_equal(sfti_os_info_path(temp_path("link"), false, &info), 0);
    assert_int_equal(info.kind, OS_LINK);
    assert_int_equal(sfti_os_info_path(temp_path("link"), true, &info), 0);
    assert_int_equal(info.kind, OS_FILE);
    assert_int_equal(sfti_os_info_path(temp_path("pipe"), true, &info), 0);
    assert_int_equal(info.kind, OS_PIPE);
    assert_int_equal(sfti_os_info_path(temp_path("none"), true, &info), ENOENT);

    assert_int_equal(sfti_os_open_read(temp_path("dir"), &fd), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.kind, OS_DIR);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), EBADF);
    assert_int_equal(sfti_os_open_read("/dev/null", &fd), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.kind, OS_OTHER);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void test_read(void **state) {
    char buffer[16];
    size_t got;
    int fd = -1;
    (void)state;
    temp_write("file", "0123456789", 10);
    assert_int_equal(sfti_os_open_read(temp_path("none"), &fd), ENOENT);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_os_pread(fd, buffer, 4, 3, &got), 0);
    assert_int_equal(got, 4);
    assert_memory_equal(buffer, "3456", 4);
    assert_int_equal(sfti_os_pread(fd, buffer, sizeof buffer, 8, &got), 0);
    assert_int_equal(got, 2);
    assert_int_equal(sfti_os_pread(fd, buffer, 1, 10, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(sfti_os_pread(fd, buffer, 1, UINT64_MAX, &got), EOVERFLOW);
    assert_int_equal(sfti_os_read(fd, buffer, sizeof buffer, &got), 0);
    assert_int_equal(got, 10);
    assert_int_equal(sfti_os_read(fd, buffer, sizeof buffer, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void *write_late(void *path) {
    struct timespec wait = { 0, 50000000 };
    nanosleep(&wait, NULL);
    int fd = open(path, O_WRONLY);
    nanosleep(&wait, NULL);
    ssize_t n = write(fd, "late", 4);
    close(fd);
    return n == 4 ? path : NULL;
}

/* Opening does not wait for a writer; reading waits for one, and for its bytes. */
static void test_fifo(void **state) {
    char buffer[8], path[512];
    size_t got;
    int fd = -1;
    pthread_t writer;
    void *written = NULL;
    (void)state;
    (void)snprintf(path, sizeof path, "%s", temp_path("fifo"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(sfti_os_open_read(path, &fd), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_late, path), 0);
    assert_int_equal(sfti_os_read(fd, buffer, sizeof buffer, &got), 0);
    assert_int_equal(got, 4);
    assert_memory_equal(buffer, "late", 4);
    assert_int_equal(sfti_os_read(fd, buffer, sizeof buffer, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(pthread_join(writer, &written), 0);
    assert_non_null(written);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* Who opens a file that is leased waits until it is given back, and gets it. */
static void child_leases(const char *path, int ready) {
    struct timespec hold = { 0, 150000000 };
    int fd;
    if (sfti_os_open_write(path, &fd)) _exit(2);
    int error = sfti_os_lease(fd, true);
    if (write(ready, error ? "n" : "y", 1) != 1) _exit(2);
    while (nanosleep(&hold, &hold) != 0) continue;
    _exit(error ? 0 : sfti_os_lease(fd, false));
}

static void test_lease(void **state) {
    (void)state;
    temp_write("file", "hello", 5);
    for (int way = 0; way < 4; way++) {
        char held = 0;
        int ready[2], fd = -1, status;
        const char *path = temp_path("file");
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) child_leases(path, ready[1]);
        assert_int_equal(read(ready[0], &held, 1), 1);
        uint64_t begin = sfti_os_now_ns();
        int error = way == 0   ? sfti_os_open_read(path, &fd)
                    : way == 1 ? sfti_os_open_write(path, &fd)
                               : sfti_os_open_no_link(path, way == 3, &fd);
        assert_int_equal(error, 0);
        if (held == 'y') assert_true(sfti_os_now_ns() - begin > 50000000);
        assert_int_equal(sfti_os_close(fd), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        close(ready[0]);
        close(ready[1]);
        if (held != 'y') skip(); /* no leases here */
    }
}

static void test_no_link(void **state) {
    int fd = -1;
    (void)state;
    temp_write("file", "hello", 5);
    assert_int_equal(symlink("file", temp_path("link")), 0);
    assert_int_equal(mkfifo(temp_path("pipe"), 0600), 0);
    for (int writable = 0; writable < 2; writable++) {
        assert_int_equal(sfti_os_open_no_link(temp_path("link"), writable, &fd), ELOOP);
        assert_int_equal(sfti_os_open_no_link(temp_path("none"), writable, &fd), ENOENT);
        assert_int_equal(sfti_os_open_no_link(temp_path("file"), writable, &fd), 0);
        assert_int_equal(sfti_os_close(fd), 0);
        assert_int_equal(sfti_os_open_no_link(temp_path("pipe"), writable, &fd), 0); /* at once */
        assert_int_equal(sfti_os_close(fd), 0);
    }
    assert_int_equal(sfti_os_open_folder(temp_path("file"), &fd), ENOTDIR);
    assert_int_equal(sfti_os_open_folder(temp_dir, &fd), 0);
    assert_int_equal(sfti_os_sync(fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void test_map(void **state) {
    int fd = -1;
    void *at = NULL;
    char buffer[8];
    (void)state;
    temp_write("file", "abcdef", 6);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_os_map(fd, 6, false, &at), 0);
    assert_memory_equal(at, "abcdef", 6);
    sfti_os_unmap(at, 6);
    assert_int_equal(sfti_os_map(fd, 6, true, &at), 0);
    ((char *)at)[0] = 'X';
    sfti_os_unmap(at, 6);
    assert_int_equal(temp_read("file", buffer, sizeof buffer), 6);
    assert_memory_equal(buffer, "abcdef", 6);
    assert_int_equal(sfti_os_map(fd, 0, false, &at), EINVAL);
    assert_null(at);
    assert_int_equal(sfti_os_map(fd, UINT64_MAX, false, &at), ENOMEM);
    assert_int_equal(sfti_os_close(fd), 0);
    sfti_os_unmap(NULL, 0);
}

typedef struct seen {
    int files, dirs, links, others, stop_after;
} seen;

static int see(void *ctx, const char *name, os_kind kind) {
    seen *s = ctx;
    assert_true(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    s->files += kind == OS_FILE;
    s->dirs += kind == OS_DIR;
    s->links += kind == OS_LINK;
    s->others += kind != OS_FILE && kind != OS_DIR && kind != OS_LINK;
    return s->stop_after > 0 && --s->stop_after == 0 ? 77 : 0;
}

static void test_list(void **state) {
    seen all = { 0, 0, 0, 0, 0 }, some = { 0, 0, 0, 0, 2 };
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    (void)state;
    temp_write("..c", "", 0);
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", temp_path("s"));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof name), 0);
    close(fd);
    temp_write("a", "", 0);
    temp_write(".hidden", "", 0);
    assert_int_equal(mkdir(temp_path("d"), 0755), 0);
    assert_int_equal(symlink("a", temp_path("l")), 0);
    assert_int_equal(mkfifo(temp_path("p"), 0600), 0);
    assert_int_equal(sfti_os_list(temp_dir, see, &all), 0);
    assert_int_equal(all.files, 3);
    assert_int_equal(all.dirs, 1);
    assert_int_equal(all.links, 1);
    assert_int_equal(all.others, 2);
    assert_int_equal(sfti_os_list(temp_dir, see, &some), 77);
    assert_int_equal(some.files + some.dirs + some.links + some.others, 2);
    assert_int_equal(sfti_os_list(temp_path("a"), see, &all), ENOTDIR);
    assert_int_equal(sfti_os_list(temp_path("none"), see, &all), ENOENT);
}

static void test_write(void **state) {
    char buffer[32];
    size_t put;
    int fd = -1;
    (void)state;
    assert_int_equal(sfti_os_open_new(temp_path("new"), 0644, &fd), 0);
    assert_int_equal(sfti_os_pwrite(fd, "world", 5, 5, &put), 0);
    assert_int_equal(put, 5);
    assert_int_equal(sfti_os_write(fd, "hello", 5, &put), 0);
    assert_int_equal(put, 5);
    assert_int_equal(sfti_os_pwrite(fd, "x", 1, UINT64_MAX - 1, &put), EFBIG);
    assert_int_equal(sfti_os_truncate(fd, 8), 0);
    assert_int_equal(sfti_os_truncate(fd, UINT64_MAX), EFBIG);
    assert_int_equal(sfti_os_preallocate(fd, UINT64_MAX), EFBIG);
    assert_int_equal(sfti_os_preallocate(fd, 0), 0);
    assert_int_equal(sfti_os_set_mode(fd, 0600), 0);
    assert_false(sfti_os_is_append(fd));
    assert_int_equal(sfti_os_sync(fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_sync_folder(temp_dir), 0);
    assert_int_equal(temp_read("new", buffer, sizeof buffer), 8);
    assert_memory_equal(buffer, "hellowor", 8);
    assert_int_equal(temp_mode("new"), 0600);
    assert_int_equal(sfti_os_open_new(temp_path("new"), 0644, &fd), EEXIST);
    assert_int_equal(symlink("elsewhere", temp_path("link")), 0);
    assert_int_equal(sfti_os_open_new(temp_path("link"), 0644, &fd), EEXIST);
    assert_int_equal(sfti_os_sync_folder(temp_path("new")), ENOTDIR);
    fd = open(temp_path("new"), O_WRONLY | O_APPEND);
    assert_true(sfti_os_is_append(fd));
    assert_int_equal(sfti_os_close(fd), 0);
}

/* Every call tells the errno of a descriptor that is no longer open. */
static void test_closed(void **state) {
    char buffer[4];
    size_t n = 9;
    void *at;
    os_info info;
    int fd = -1, pipes[2];
    (void)state;
    assert_int_equal(sfti_os_open_read("/dev/null", &fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_close(fd), EBADF);
    assert_int_equal(sfti_os_info_fd(fd, &info), EBADF);
    assert_int_equal(sfti_os_pread(fd, buffer, 4, 0, &n), EBADF);
    assert_int_equal(n, 0);
    assert_int_equal(sfti_os_read(fd, buffer, 4, &n), EBADF);
    assert_int_equal(sfti_os_pwrite(fd, buffer, 4, 0, &n), EBADF);
    assert_int_equal(sfti_os_write(fd, buffer, 4, &n), EBADF);
    assert_int_equal(sfti_os_map(fd, 4, false, &at), EBADF);
    assert_int_equal(sfti_os_truncate(fd, 4), EBADF);
    assert_int_equal(sfti_os_preallocate(fd, 4), EBADF);
    assert_int_equal(sfti_os_set_mode(fd, 0600), EBADF);
    assert_int_equal(sfti_os_sync(fd), EBADF);
    assert_false(sfti_os_is_append(fd));
    assert_false(sfti_os_is_terminal(fd));
    assert_int_equal(sfti_os_terminal_columns(fd), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(sfti_os_pread(pipes[0], buffer, 4, 0, &n), ESPIPE);
    assert_int_equal(sfti_os_pwrite(pipes[1], buffer, 4, 0, &n), ESPIPE);
    assert_int_equal(sfti_os_write(pipes[1], buffer, 0, &n), 0);
    assert_int_equal(sfti_os_pwrite(pipes[1], buffer, 0, UINT64_MAX, &n), EFBIG);
    close(pipes[0]);
    close(pipes[1]);
    temp_write("file", "", 0);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_os_pwrite(fd, buffer, 0, 0, &n), EBADF); /* for reading alone */
    assert_int_equal(sfti_os_close(fd), 0);
    fd = open(temp_path("file"), O_RDWR);
    assert_int_equal(sfti_os_pwrite(fd, buffer, 0, 0, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* A pipe that is full, and does not block, is waited for. */
static void *drain_late(void *fd) {
    struct timespec wait = { 0, 30000000 };
    char buffer[4096];
    nanosleep(&wait, NULL);
    while (read(*(int *)fd, buffer, sizeof buffer) > 0) continue;
    return NULL;
}

static void test_full_pipe(void **state) {
    static char bytes[1 << 20];
    pthread_t reader;
    size_t put, all = 0;
    int pipes[2];
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(fcntl(pipes[1], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&reader, NULL, drain_late, &pipes[0]), 0);
    while (all < sizeof bytes) {
        assert_int_equal(sfti_os_write(pipes[1], bytes + all, sizeof bytes - all, &put), 0);
        all += put;
    }
    close(pipes[1]);
    assert_int_equal(pthread_join(reader, NULL), 0);
    close(pipes[0]);
}

static int interrupted_pipe[2];
static volatile sig_atomic_t interruptions;

static void interrupt(int signal_number) {
    (void)signal_number;
    if (++interruptions == 3 && write(interrupted_pipe[1], "x", 1) != 1) interruptions = 99;
}

/* A signal that nobody watches does not end a read. */
static void test_interrupted(void **state) {
    const struct itimerval every = { { 0, 10000 }, { 0, 10000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction act, old;
    char byte = 0;
    size_t got;
    (void)state;
    memset(&act, 0, sizeof act);
    act.sa_handler = interrupt;
    assert_int_equal(pipe(interrupted_pipe), 0);
    assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
    assert_int_equal(sfti_os_read(interrupted_pipe[0], &byte, 1, &got), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
    assert_int_equal(byte, 'x');
    assert_true(interruptions >= 3);
    close(interrupted_pipe[0]);
    close(interrupted_pipe[1]);
}

static void test_terminal(void **state) {
    struct winsize size = { 24, 132, 0, 0 };
    (void)state;
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (fd < 0) skip();
    assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
    assert_true(sfti_os_is_terminal(fd));
    assert_int_equal(sfti_os_terminal_columns(fd), 132);
    close(fd);
}

/* Raised with its default action, whatever was blocked; this one's is to do nothing. */
static void test_raise(void **state) {
    sigset_t set, old;
    (void)state;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
    sfti_os_raise(SIGURG);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
    assert_int_equal(sigismember(&set, SIGURG), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}

static void test_unnamed(void **state) {
    int fd = -1;
    size_t put;
    (void)state;
    int error = sfti_os_open_unnamed(temp_path("none"), 0644, &fd);
    if (error == EOPNOTSUPP) skip();
    assert_int_equal(error, ENOENT);
    error = sfti_os_open_unnamed(temp_dir, 0644, &fd);
    if (error == EOPNOTSUPP) skip();
    assert_int_equal(error, 0);
    assert_int_equal(sfti_os_pwrite(fd, "abc", 3, 0, &put), 0);
    assert_int_equal(temp_dir_count(), 0);
    assert_int_equal(sfti_os_link_unnamed(fd, temp_path("named")), 0);
    assert_int_equal(sfti_os_link_unnamed(fd, temp_path("named")), EEXIST);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(temp_dir_count(), 1);
}

static void test_rename(void **state) {
    char buffer[8];
    (void)state;
    temp_write("a", "A", 1);
    temp_write("b", "B", 1);
    assert_int_equal(sfti_os_rename(temp_path("a"), temp_path("b"), true), EEXIST);
    assert_int_equal(sfti_os_rename(temp_path("a"), temp_path("c"), true), 0);
    assert_int_equal(sfti_os_rename(temp_path("c"), temp_path("b"), false), 0);
    assert_int_equal(temp_dir_count(), 1);
    assert_int_equal(temp_read("b", buffer, sizeof buffer), 1);
    assert_int_equal(buffer[0], 'A');
    assert_int_equal(sfti_os_rename(temp_path("a"), temp_path("b"), false), ENOENT);
    assert_int_equal(sfti_os_rename(temp_path("a"), temp_path("d"), true), ENOENT);
    /* The system calls it invalid, and a folder has no second name. */
    assert_int_equal(mkdir(temp_path("dir"), 0755), 0);
    assert_int_equal(sfti_os_rename(temp_path("dir"), temp_path("dir/in"), true), EPERM);
    assert_int_equal(rmdir(temp_path("dir")), 0);
    assert_int_equal(sfti_os_unlink(temp_path("b")), 0);
    assert_int_equal(sfti_os_unlink(temp_path("b")), ENOENT);
}

static void test_real_path(void **state) {
    char buffer[4096], here[4096];
    (void)state;
    temp_write("file", "", 0);
    assert_int_equal(symlink("file", temp_path("link")), 0);
    assert_int_equal(sfti_os_real_path(temp_path("link"), buffer, sizeof buffer), 0);
    assert_non_null(realpath(temp_path("file"), here));
    assert_string_equal(buffer, here);
    assert_int_equal(sfti_os_real_path(temp_path("link"), buffer, 5), ENAMETOOLONG);
    assert_int_equal(sfti_os_real_path(temp_path("none"), buffer, sizeof buffer), ENOENT);
    assert_int_equal(sfti_os_read_link(temp_path("link"), buffer, sizeof buffer), 0);
    assert_string_equal(buffer, "file");
    assert_int_equal(sfti_os_read_link(temp_path("link"), buffer, 2), ENAMETOOLONG);
    assert_int_equal(sfti_os_read_link(temp_dir, buffer, sizeof buffer), EINVAL);
    assert_int_equal(sfti_os_read_link(temp_path("none"), buffer, sizeof buffer), ENOENT);
}

static void test_rest(void **state) {
    unsigned char a[600] = { 0 }, b[600] = { 0 };
    char buffer[128];
    (void)state;
    assert_int_equal(sfti_os_random(a, sizeof a), 0);
    assert_int_equal(sfti_os_random(b, sizeof b), 0);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a + 560, b + 560, 40);
    uint64_t now = sfti_os_now_ns();
    assert_true(now > 0 && sfti_os_now_ns() >= now);
    assert_true(sfti_os_cpu_count() >= 1);
    assert_string_equal(sfti_os_error_text(ENOENT, buffer, sizeof buffer),
                        "No such file or directory");
    assert_string_equal(sfti_os_error_text(ENOSPC, buffer, sizeof buffer),
                        "No space left on device");
    assert_true(strlen(sfti_os_error_text(99999, buffer, sizeof buffer)) > 0);
    assert_string_equal(sfti_os_error_text(ENOENT, buffer, 0), "");
    assert_int_equal(setenv("SFT_TEST_OS", "yes", 1), 0);
    assert_string_equal(sfti_os_env("SFT_TEST_OS"), "yes");
    assert_null(sfti_os_env("SFT_TEST_NONE"));
    int fd = -1;
    assert_int_equal(sfti_os_open_read("/dev/null", &fd), 0);
    assert_false(sfti_os_is_terminal(fd));
    assert_int_equal(sfti_os_terminal_columns(fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void fill(unsigned char *at, size_t len) {
    for (size_t i = 0; i < len; i += 997) at[i] = (unsigned char)(i * 7 + 1);
}

static bool is_filled(const unsigned char *at, size_t len) {
    for (size_t i = 0; i < len; i += 997) {
        if (at[i] != (unsigned char)(i * 7 + 1)) return false;
    }
    return true;
}

/* Every way over the threshold keeps the bytes both sizes have. */
static void test_resize(void **state) {
    static const size_t sizes[] = { 1, 100, 1572863, 1572864, 1572865, 4194304, 5242880,
                                    6291456, 6300000, 9437184, 20000000 };
    size_t count = sizeof sizes / sizeof *sizes;
    (void)state;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            size_t both = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
            unsigned char *at = sfti_os_resize(NULL, NULL, 0, sizes[i]);
            assert_non_null(at);
            fill(at, sizes[i]);
            at = sfti_os_resize(NULL, at, sizes[i], sizes[k]);
            assert_non_null(at);
            assert_true(is_filled(at, both));
            fill(at, sizes[k]);
            assert_null(sfti_os_resize(NULL, at, sizes[k], 0));
        }
    }
    assert_null(sfti_os_resize(NULL, NULL, 0, 0));
    assert_null(sfti_os_resize(NULL, NULL, 0, (size_t)1 << 50));
    unsigned char *kept = sfti_os_resize(NULL, NULL, 0, 5000000);
    fill(kept, 5000000);
    assert_null(sfti_os_resize(NULL, kept, 5000000, (size_t)1 << 50));
    assert_true(is_filled(kept, 5000000));
    assert_null(sfti_os_resize(NULL, kept, 5000000, 0));
}

typedef struct shared {
    os_mutex mutex;
    int count;
    bool blocked;
} shared;

static void count_up(void *ctx) {
    shared *s = ctx;
    sigset_t set;
    for (int i = 0; i < 10000; i++) {
        sfti_os_mutex_lock(&s->mutex);
        s->count++;
        sfti_os_mutex_unlock(&s->mutex);
    }
    (void)pthread_sigmask(SIG_SETMASK, NULL, &set);
    sfti_os_mutex_lock(&s->mutex);
    s->blocked = s->blocked && sigismember(&set, SIGTERM) == 1 && sigismember(&set, SIGINT) == 1;
    sfti_os_mutex_unlock(&s->mutex);
}

static void test_threads(void **state) {
    os_thread threads[4];
    shared s;
    sigset_t set;
    (void)state;
    s.count = 0;
    s.blocked = true;
    assert_int_equal(sfti_os_mutex_init(&s.mutex), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sfti_os_thread_start(&threads[i], count_up, &s), 0);
    for (int i = 0; i < 4; i++) sfti_os_thread_join(&threads[i]);
    sfti_os_thread_join(&threads[0]);
    sfti_os_mutex_free(&s.mutex);
    assert_int_equal(s.count, 40000);
    assert_true(s.blocked);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &set);
    assert_int_equal(sigismember(&set, SIGTERM), 0);
}

typedef struct ping {
    os_mutex mutex;
    os_cond cond;
    int turns; /* even: this thread's */
} ping;

static void ping_until(ping *p, int end, int mine) {
    sfti_os_mutex_lock(&p->mutex);
    while (p->turns < end) {
        while (p->turns < end && p->turns % 2 != mine) sfti_os_cond_wait(&p->cond, &p->mutex);
        if (p->turns < end) p->turns++;
        sfti_os_cond_wake(&p->cond);
    }
    sfti_os_mutex_unlock(&p->mutex);
}

static void ping_other(void *ctx) {
    ping_until(ctx, 1000, 1);
}

static void test_condition(void **state) {
    os_thread thread;
    ping p = { .turns = 0 };
    (void)state;
    assert_int_equal(sfti_os_mutex_init(&p.mutex), 0);
    assert_int_equal(sfti_os_cond_init(&p.cond), 0);
    assert_int_equal(sfti_os_thread_start(&thread, ping_other, &p), 0);
    ping_until(&p, 1000, 0);
    sfti_os_thread_join(&thread);
    sfti_os_cond_free(&p.cond);
    sfti_os_mutex_free(&p.mutex);
    assert_int_equal(p.turns, 1000);
}

/* A wait that nobody ends takes its time, and no more than that. */
static void test_condition_time(void **state) {
    os_mutex mutex;
    os_cond cond;
    (void)state;
    assert_int_equal(sfti_os_mutex_init(&mutex), 0);
    assert_int_equal(sfti_os_cond_init(&cond), 0);
    sfti_os_mutex_lock(&mutex);
    uint64_t begin = sfti_os_now_ns();
    sfti_os_cond_wait_for(&cond, &mutex, 30);
    uint64_t took = sfti_os_now_ns() - begin;
    sfti_os_mutex_unlock(&mutex);
    assert_in_range(took, 20000000, UINT64_C(5000000000));
    sfti_os_cond_free(&cond);
    sfti_os_mutex_free(&mutex);
}

static bool never_go_on(void *ctx) {
    (void)ctx;
    return false;
}

static void test_wait_over(void **state) {
    (void)state;
    assert_false(sfti_os_wait_over());
    sfti_os_on_wait(never_go_on, NULL);
    assert_true(sfti_os_wait_over());
    sfti_os_on_wait(NULL, NULL);
    assert_false(sfti_os_wait_over());
}

/* ── What stands on it (os/io.h) ── */

static void test_all(void **state) {
    char buffer[16];
    size_t got;
    int fd = -1;
    (void)state;
    temp_write("file", "hello", 5);
    assert_int_equal(sfti_os_open_write(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_read_all(fd, buffer, 3, 1, &got), 0);
    assert_int_equal(got, 3);
    assert_memory_equal(buffer, "ell", 3);
    assert_int_equal(sfti_read_all(fd, buffer, sizeof buffer, 2, &got), 0);
    assert_int_equal(got, 3);
    assert_int_equal(sfti_write_all(fd, "HEAP", 4, 3), 0);
    assert_int_equal(sfti_read_all(fd, buffer, sizeof buffer, 0, &got), 0);
    assert_int_equal(got, 7);
    assert_memory_equal(buffer, "helHEAP", 7);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_read_all(fd, buffer, 1, 0, &got), EBADF);
    assert_int_equal(got, 0);
    assert_int_equal(sfti_write_all(fd, "x", 1, 0), EBADF);
}

static void test_told(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sfti_io_fail(&err, SFT_IO_OPEN, ENOENT, "open"), SFT_NOT_FOUND);
    assert_int_equal(err.code, SFT_NOT_FOUND);
    assert_int_equal(err.os_errno, ENOENT);
    assert_string_equal(err.message, "cannot open: No such file or directory");
    assert_int_equal(sfti_io_fail(&err, SFT_IO_READ, ENOENT, "read"), SFT_IO_READ);
    assert_int_equal(sfti_io_fail(NULL, SFT_IO_WRITE, EIO, "write"), SFT_IO_WRITE);
}

#ifdef SFT_COVERAGE
extern void __gcov_dump(void);
#endif

/* In a child: a watched signal ends a blocked read, is told, and is died of. */
static void child_waits(int ready) {
    int pipes[2];
    char byte;
    size_t got;
    (void)signal(SIGHUP, SIG_IGN);
    sfti_os_watch_signals();
    if (raise(SIGHUP) != 0 || sfti_os_stop_signal() != 0 || pipe(pipes) != 0) _exit(1);
    if (write(ready, "r", 1) != 1) _exit(2);
    if (sfti_os_read(pipes[0], &byte, 1, &got) != EINTR) _exit(3);
    if (sfti_os_stop_signal() != SIGTERM) _exit(4);
    if (sfti_os_read(pipes[0], &byte, 1, &got) != EINTR) _exit(5);
#ifdef SFT_COVERAGE
    __gcov_dump(); /* who dies of a signal leaves no counts */
#endif
    sfti_os_raise(SIGTERM);
    _exit(6);
}

static void test_signals(void **state) {
    int ready[2], status = 0;
    char byte;
    struct timespec wait = { 0, 50000000 };
    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) child_waits(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    nanosleep(&wait, NULL);
    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ready[0]);
    close(ready[1]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void test_broken_pipe(void **state) {
    int pipes[2];
    size_t put;
    (void)state;
    sfti_os_watch_signals();
    assert_int_equal(pipe(pipes), 0);
    close(pipes[0]);
    assert_int_equal(sfti_os_write(pipes[1], "x", 1, &put), EPIPE);
    assert_int_equal(put, 0);
    close(pipes[1]);
}

static unsigned once_runs;

static void count_run(void) {
    once_runs++;
}

static void run_once(void *ctx) {
    sfti_os_once(ctx, count_run);
}

static void test_once(void **state) {
    bool done = false;
    os_thread threads[4];
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(sfti_os_thread_start(&threads[i], run_once, &done), 0);
    for (size_t i = 0; i < 4; i++) sfti_os_thread_join(&threads[i]);
    sfti_os_once(&done, count_run);
    assert_int_equal(once_runs, 1);
    assert_true(done);
}

static void test_sockets(void **state) {
    static const uint8_t loopback[16] = { [15] = 1 };
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    struct sockaddr_un local = { .sun_family = AF_UNIX };
    uint8_t address[16];
    int fd;
    (void)state;
    memcpy(&v4.sin_addr, "\x7f\0\0\1", 4);
    memcpy(&v6.sin6_addr, loopback, 16);
    assert_int_equal(sfti_os_socket_address(&v4, sizeof v4, address), 4);
    assert_memory_equal(address, "\x7f\0\0\1", 4);
    assert_int_equal(sfti_os_socket_address(&v6, sizeof v6, address), 16);
    assert_memory_equal(address, loopback, 16);
    assert_int_equal(sfti_os_socket_address(&local, sizeof local, address), 0);
    assert_int_equal(sfti_os_socket_address(&v6, sizeof v6 - 1, address), 0);
    assert_int_equal(sfti_os_socket_address(&v4, 1, address), 0);
    assert_int_equal(sfti_os_socket_address(&v4, 0, address), 0);
    assert_int_equal(sfti_os_socket_open(AF_INET, SOCK_STREAM, 0, &fd), 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
    assert_int_equal(sfti_os_socket_open(-1, SOCK_STREAM, 0, &fd), EAFNOSUPPORT);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once), cmocka_unit_test(test_sockets),
        IN_DIR(test_kinds), IN_DIR(test_read), IN_DIR(test_fifo), IN_DIR(test_map),
        IN_DIR(test_lease), IN_DIR(test_no_link),
        IN_DIR(test_list), IN_DIR(test_write), IN_DIR(test_unnamed), IN_DIR(test_rename),
        IN_DIR(test_real_path), cmocka_unit_test(test_rest), cmocka_unit_test(test_resize),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_condition),
        cmocka_unit_test(test_condition_time), cmocka_unit_test(test_wait_over),
        IN_DIR(test_all), cmocka_unit_test(test_told),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_broken_pipe), IN_DIR(test_closed),
        cmocka_unit_test(test_full_pipe), cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_terminal), cmocka_unit_test(test_raise),
    };
    return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
