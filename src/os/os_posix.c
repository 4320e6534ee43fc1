#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif

#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/random.h>
#include <sys/syscall.h>
#endif

/* ── Signals: first, for blocking calls end when one of ours arrives ── */

static volatile sig_atomic_t stop_signal_seen;

static void remember_signal(int signal_number) {
    stop_signal_seen = signal_number;
}

/* Whether an interrupted call is to be made again. */
static bool try_again(int error) {
    return error == EINTR && !stop_signal_seen;
}

void os_watch_signals(void) {
    static const int watched[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction act, old;
    memset(&act, 0, sizeof act);
    act.sa_handler = remember_signal;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        /* What was ignored by whoever started us (nohup) stays ignored. */
        if (sigaction(watched[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue;
        (void)sigaction(watched[i], &act, NULL);
    }
}

int os_stop_signal(void) {
    return (int)stop_signal_seen;
}

void os_raise(int signal_number) {
    sigset_t set;
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* A file over the size limit is, like a broken pipe, an errno and no signal. */
void os_ignore_broken_pipe(void) {
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* ── Looking ── */

static os_kind kind_of_mode(mode_t mode) {
    if (S_ISREG(mode)) return OS_FILE;
    if (S_ISDIR(mode)) return OS_DIR;
    if (S_ISLNK(mode)) return OS_LINK;
    if (S_ISFIFO(mode)) return OS_PIPE;
    return OS_OTHER;
}

static void info_of_stat(const struct stat *st, os_info *out) {
    memset(out, 0, sizeof *out);
    out->kind = kind_of_mode(st->st_mode);
    out->size = (uint64_t)st->st_size;
    out->mode = (uint32_t)(st->st_mode & 07777);
    out->links = (uint32_t)st->st_nlink;
    out->device = (uint64_t)st->st_dev;
    out->inode = (uint64_t)st->st_ino;
    out->owner = (uint32_t)st->st_uid;
    out->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    out->ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
    out->block = st->st_blksize > 0 ? (uint32_t)st->st_blksize : 0;
}

int os_info_fd(int fd, os_info *out) {
    struct stat st;
    if (fstat(fd, &st) != 0) return errno;
    info_of_stat(&st, out);
    return 0;
}

int os_info_path(const char *path, bool follow_link, os_info *out) {
    struct stat st;
    int rc = follow_link ? stat(path, &st) : lstat(path, &st);
    if (rc != 0) return errno;
    info_of_stat(&st, out);
    return 0;
}

int os_real_path(const char *path, char *out, size_t room) {
    char *real = realpath(path, NULL);
    if (!real) return errno;
    size_t len = strlen(real);
    int error = len < room ? 0 : ENAMETOOLONG;
    if (!error) memcpy(out, real, len + 1);
    free(real);
    return error;
}

/* ── Opening and reading ── */

static int open_restarted(const char *path, int flags, mode_t mode, int *fd) {
    do {
        *fd = open(path, flags | O_CLOEXEC, mode);
    } while (*fd < 0 && try_again(errno));
    return *fd < 0 ? errno : 0;
}

/* O_NONBLOCK so that a FIFO without a writer, or a device, does not hold up the open. */
int os_open_read(const char *path, int *fd) {
    struct stat st;
    int error = open_restarted(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, fd);
    if (error) return error;
    if (fstat(*fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        int flags = fcntl(*fd, F_GETFL);
        if (flags >= 0) (void)fcntl(*fd, F_SETFL, flags & ~O_NONBLOCK);
    }
    return 0;
}

/* Linux has freed the descriptor even when it was interrupted. */
int os_close(int fd) {
    return close(fd) == 0 || errno == EINTR ? 0 : errno;
}

static size_t most_at_once(size_t len) {
    const size_t most = (size_t)1 << 30;
    return len < most ? len : most;
}

static bool beyond_offsets(size_t len, uint64_t offset) {
    return offset > (uint64_t)INT64_MAX - len;
}

int os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    ssize_t n;
    *got = 0;
    len = most_at_once(len);
    if (beyond_offsets(len, offset)) return EOVERFLOW;
    do {
        n = pread(fd, into, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno;
    *got = (size_t)n;
    return 0;
}

/* Sleep until fd is ready. Before a read it also waits for the first writer of a FIFO,
 * which read itself would take for the end. */
static int wait_ready(int fd, short events) {
    struct pollfd wait = { fd, events, 0 };
    if (stop_signal_seen) return EINTR;
    while (poll(&wait, 1, -1) < 0) {
        if (errno != EINTR) return 0;
        if (stop_signal_seen) return EINTR;
    }
    return 0;
}

int os_read(int fd, void *into, size_t len, size_t *got) {
    *got = 0;
    for (;;) {
        int error = wait_ready(fd, POLLIN);
        if (error) return error;
        ssize_t n = read(fd, into, most_at_once(len));
        if (n >= 0) {
            *got = (size_t)n;
            return 0;
        }
        if (errno != EAGAIN && !try_again(errno)) return errno;
    }
}

int os_map(int fd, uint64_t len, bool writable_private, void **out) {
    int access_kind = writable_private ? PROT_READ | PROT_WRITE : PROT_READ;
    int flags = writable_private ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
    *out = NULL;
    if (len > SIZE_MAX >> 1) return ENOMEM;
    void *at = mmap(NULL, (size_t)len, access_kind, flags, fd, 0);
    if (at == MAP_FAILED) return errno;
    *out = at;
    return 0;
}

void os_unmap(void *at, uint64_t len) {
    if (at) (void)munmap(at, (size_t)len);
}

/* ── Folders ── */

static os_kind kind_of_entry(DIR *folder, const struct dirent *entry) {
    struct stat st;
    switch (entry->d_type) {
    case DT_REG: return OS_FILE;
    case DT_DIR: return OS_DIR;
    case DT_LNK: return OS_LINK;
    case DT_FIFO: return OS_PIPE;
    case DT_UNKNOWN: break;
    default: return OS_OTHER;
    }
    if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) return OS_OTHER;
    return kind_of_mode(st.st_mode);
}

static bool dot_name(const char *name) {
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

int os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
            void *ctx) {
    int result = 0;
    DIR *folder = opendir(path);
    if (!folder) return errno;
    while (result == 0) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry) {
            result = errno;
            break;
        }
        if (dot_name(entry->d_name)) continue;
        result = each(ctx, entry->d_name, kind_of_entry(folder, entry));
    }
    (void)closedir(folder);
    return result;
}

/* ── Writing ── */

static void proc_name(int fd, char *out, size_t room) {
    (void)snprintf(out, room, "/proc/self/fd/%d", fd);
}

/* Without /proc an unnamed file could never get its name, so there is none then. */
int os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
#ifdef O_TMPFILE
    char name[40];
    int error = open_restarted(folder, O_TMPFILE | O_RDWR, (mode_t)mode, fd);
    if (error == EISDIR || error == ENOSYS || error == EINVAL) return EOPNOTSUPP;
    if (error) return error;
    proc_name(*fd, name, sizeof name);
    if (access(name, F_OK) == 0) return 0;
    (void)close(*fd);
#else
    (void)folder;
    (void)mode;
#endif
    *fd = -1;
    return EOPNOTSUPP;
}

int os_open_new(const char *path, uint32_t mode, int *fd) {
    return open_restarted(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, (mode_t)mode, fd);
}

int os_open_write(const char *path, int *fd) {
    return open_restarted(path, O_RDWR | O_NONBLOCK | O_NOCTTY, 0, fd);
}

int os_link_unnamed(int fd, const char *path) {
    char name[40];
    proc_name(fd, name, sizeof name);
    return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

int os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put) {
    ssize_t n;
    *put = 0;
    len = most_at_once(len);
    if (beyond_offsets(len, offset)) return EFBIG;
    do {
        n = pwrite(fd, from, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno;
    if (n == 0 && len > 0) return ENOSPC;
    *put = (size_t)n;
    return 0;
}

int os_write(int fd, const void *from, size_t len, size_t *put) {
    *put = 0;
    for (;;) {
        ssize_t n = write(fd, from, most_at_once(len));
        if (n >= 0) {
            *put = (size_t)n;
            return n == 0 && len > 0 ? ENOSPC : 0;
        }
        int error = errno;
        if (error == EAGAIN) {
            error = wait_ready(fd, POLLOUT);
            if (error) return error;
        } else if (!try_again(error)) {
            return error;
        }
    }
}

int os_preallocate(int fd, uint64_t len) {
    if (len == 0) return 0;
    if (len > INT64_MAX) return EFBIG;
#ifdef __linux__
    int rc;
    do {
        rc = fallocate(fd, 0, 0, (off_t)len);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    return errno == ENOSYS ? EOPNOTSUPP : errno;
#else
    (void)fd;
    return EOPNOTSUPP;
#endif
}

int os_truncate(int fd, uint64_t len) {
    int rc;
    if (len > INT64_MAX) return EFBIG;
    do {
        rc = ftruncate(fd, (off_t)len);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

int os_set_mode(int fd, uint32_t mode) {
    return fchmod(fd, (mode_t)(mode & 07777)) == 0 ? 0 : errno;
}

int os_sync(int fd) {
    int rc;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

int os_sync_folder(const char *folder) {
    int fd;
    int error = open_restarted(folder, O_RDONLY | O_DIRECTORY, 0, &fd);
    if (error) return error;
    error = os_sync(fd);
    (void)close(fd);
    return error;
}

/* For file systems without RENAME_NOREPLACE: a second name is as atomic. */
static int rename_by_link(const char *from, const char *to) {
    if (link(from, to) != 0) return errno;
    return unlink(from) == 0 ? 0 : errno;
}

int os_rename(const char *from, const char *to, bool no_clobber) {
    if (!no_clobber) return rename(from, to) == 0 ? 0 : errno;
#ifdef SYS_renameat2
    const unsigned no_replace = 1;
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, no_replace) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
#endif
    return rename_by_link(from, to);
}

int os_unlink(const char *path) {
    return unlink(path) == 0 ? 0 : errno;
}

bool os_is_append(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_APPEND) != 0;
}

/* ── The rest ── */

int os_random(void *into, size_t len) {
    char *at = into;
    while (len > 0) {
        size_t piece = len < 256 ? len : 256;
#ifdef __linux__
        ssize_t n = getrandom(at, piece, 0);
#else
        ssize_t n = getentropy(at, piece) == 0 ? (ssize_t)piece : -1;
#endif
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

uint64_t os_now_ns(void) {
    struct timespec now = { 0, 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t os_time_s(void) {
    time_t now = time(NULL);
    return now > 0 ? (uint64_t)now : 0;
}

void os_sleep_ms(uint32_t ms) {
    struct timespec span = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    (void)nanosleep(&span, NULL);
}

uint32_t os_user(void) {
    return (uint32_t)geteuid();
}

uint32_t os_cpu_count(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        return (uint32_t)CPU_COUNT(&set);
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

/* strerror_r is one of two functions, by libc. */
static const char *error_text_int(int rc, char *room, size_t len) {
    (void)len;
    return rc == 0 ? room : "unknown error";
}

static const char *error_text_pointer(const char *text, char *room, size_t len) {
    (void)room;
    (void)len;
    return text;
}

const char *os_error_text(int error, char *room, size_t len) {
    if (len == 0) return "";
    room[0] = 0;
    return _Generic(strerror_r(error, room, len), int: error_text_int,
                    char *: error_text_pointer)(strerror_r(error, room, len), room, len);
}

bool os_is_terminal(int fd) {
    return isatty(fd) == 1;
}

uint32_t os_terminal_columns(int fd) {
    struct winsize size;
    memset(&size, 0, sizeof size);
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

const char *os_env(const char *name) {
    return getenv(name);
}

/* ── Memory ── */

#define LARGE_BLOCK ((size_t)4 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

static bool is_large(size_t size) {
    return size >= LARGE_BLOCK && size <= SIZE_MAX / 2;
}

/* Bytes mapped for a large block: whole huge pages if the last is at least half full,
 * else small pages at the end. Depends on the size alone, for resizing knows no more. */
static size_t large_length(size_t size) {
    size_t tail = size % HUGE_PAGE;
    size_t unit = tail >= HUGE_PAGE / 2 ? HUGE_PAGE : 4096 * 16;
    return (size + unit - 1) / unit * unit;
}

static void *large_take(size_t size) {
    size_t len = large_length(size);
    size_t room = len + HUGE_PAGE;
    char *at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)at % HUGE_PAGE) % HUGE_PAGE;
    size_t after = room - before - len;
    if (before > 0) (void)munmap(at, before);
    if (after > 0) (void)munmap(at + before + len, after);
#ifdef MADV_HUGEPAGE
    (void)madvise(at + before, len, MADV_HUGEPAGE);
#endif
    return at + before;
}

static void block_release(void *ptr, size_t size) {
    if (is_large(size)) {
        (void)munmap(ptr, large_length(size));
    } else {
        free(ptr);
    }
}

/* A large block keeps its place when it shrinks within its map's length or gives up its
 * end. */
static bool large_shrink(void *ptr, size_t old_size, size_t new_size) {
    size_t have = large_length(old_size), want = large_length(new_size);
    if (want > have) return false;
    if (want < have) (void)munmap((char *)ptr + want, have - want);
    return true;
}

void *os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    bool was_large = ptr && is_large(old_size), large = is_large(new_size);
    if (new_size == 0) {
        if (ptr) block_release(ptr, old_size);
        return NULL;
    }
    if (!was_large && !large) return realloc(ptr, new_size);
    if (was_large && large && large_shrink(ptr, old_size, new_size)) return ptr;
    void *fresh = large ? large_take(new_size) : malloc(new_size);
    if (!fresh || !ptr) return fresh;
    memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    block_release(ptr, old_size);
    return fresh;
}
