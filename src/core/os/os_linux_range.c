/* What only some file systems can: copies without bytes passing through here, shared blocks,
 * ranges inside a file, leases. */
#include "os/os_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ── Out of a map ── */

#define PIPE_BYTES ((size_t)64 << 10) /* what a pipe holds as a rule */
#define PIPE_RUNS 256

/* Into an empty pipe, and out of it again. */
static int gather_some(const int ends[2], const char *map, const uint64_t *offsets, size_t count,
                       size_t len, char *into, size_t *got) {
    struct iovec runs[PIPE_RUNS];
    size_t first = *got / len, within = *got % len;
    int n = 0;
    for (size_t bytes = 0; first + (size_t)n < count && n < PIPE_RUNS && bytes < PIPE_BYTES; n++) {
        runs[n].iov_base = (void *)(uintptr_t)(map + offsets[first + (size_t)n]);
        runs[n].iov_len = len;
        bytes += len;
    }
    runs[0].iov_base = (char *)runs[0].iov_base + within;
    runs[0].iov_len -= within;
    ssize_t put = writev(ends[1], runs, n);
    if (put < 0) return errno;
    for (ssize_t taken; put > 0; put -= taken) {
        taken = read(ends[0], into + *got, (size_t)put);
        if (taken < 0) return errno;
        *got += (size_t)taken;
    }
    return 0;
}

/* Calls that copy several pieces of memory at once, which every sandbox allows: to a pipe. */
int sfti_os_gather(const void *map, const uint64_t *offsets, size_t count, size_t len, void *into,
                   size_t *got) {
    int ends[2], error = 0;
    *got = 0;
    if (len == 0 || count > SIZE_MAX / len) return EINVAL;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return errno;
    while (error == 0 && *got < count * len)
        error = gather_some(ends, map, offsets, count, len, into, got);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return error;
}

/* ── Between files and inside them ── */

/* What tells that the system copies not these two files, rather than a failure. */
static bool is_no_copy(int error) {
    return error == ENOSYS || error == EXDEV || error == EINVAL || error == EOPNOTSUPP ||
           error == EPERM || error == EBADF;
}

int sfti_os_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len,
                       uint64_t *done) {
    *done = 0;
    len = len < (uint64_t)1 << 30 ? len : (uint64_t)1 << 30;
    if (from_at > INT64_MAX - len || to_at > INT64_MAX - len) return EFBIG;
#ifdef SYS_copy_file_range
    int64_t at[2] = { (int64_t)from_at, (int64_t)to_at };
    long n;
    do {
        n = syscall(SYS_copy_file_range, from, &at[0], to, &at[1], (size_t)len, 0u);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return is_no_copy(errno) ? EOPNOTSUPP : errno;
    *done = (uint64_t)n;
    return 0;
#else
    (void)from, (void)to, (void)is_no_copy;
    return EOPNOTSUPP;
#endif
}

int sfti_os_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len) {
#ifdef FICLONERANGE
    struct file_clone_range range = { from, from_at, len, to_at };
    int rc;
    do {
        rc = ioctl(to, FICLONERANGE, &range);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    return is_no_copy(errno) || errno == ENOTTY ? EOPNOTSUPP : errno;
#else
    (void)from, (void)from_at, (void)to, (void)to_at, (void)len;
    return EOPNOTSUPP;
#endif
}

#if defined(FALLOC_FL_INSERT_RANGE) && defined(FALLOC_FL_COLLAPSE_RANGE)
static int shift_blocks(int fd, int how, uint64_t at, uint64_t len) {
    int rc;
    if (at > INT64_MAX || len > INT64_MAX) return EFBIG;
    do {
        rc = fallocate(fd, how, (off_t)at, (off_t)len);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    return is_no_copy(errno) ? EOPNOTSUPP : errno;
}

int sfti_os_insert_range(int fd, uint64_t at, uint64_t len) {
    return shift_blocks(fd, FALLOC_FL_INSERT_RANGE, at, len);
}

int sfti_os_collapse_range(int fd, uint64_t at, uint64_t len) {
    return shift_blocks(fd, FALLOC_FL_COLLAPSE_RANGE, at, len);
}
#else
int sfti_os_insert_range(int fd, uint64_t at, uint64_t len) {
    (void)fd, (void)at, (void)len;
    return EOPNOTSUPP;
}

int sfti_os_collapse_range(int fd, uint64_t at, uint64_t len) {
    (void)fd, (void)at, (void)len;
    return EOPNOTSUPP;
}
#endif

int sfti_os_find_hole(int fd, uint64_t at, uint64_t *out) {
#ifdef SEEK_HOLE
    off_t hole = at <= INT64_MAX ? lseek(fd, (off_t)at, SEEK_HOLE) : -1;
    if (hole < 0) return errno == EINVAL ? EOPNOTSUPP : errno;
    *out = (uint64_t)hole;
    return 0;
#else
    (void)fd, (void)at, (void)out;
    return EOPNOTSUPP;
#endif
}

/* The signal that tells the holder of somebody waiting is made one that does nothing. */
int sfti_os_lease(int fd, bool hold) {
#ifdef F_SETLEASE
    if (hold && fcntl(fd, F_SETSIG, SIGURG) != 0) return EOPNOTSUPP;
    if (fcntl(fd, F_SETLEASE, hold ? F_WRLCK : F_UNLCK) == 0) return 0;
    return errno == EAGAIN || errno == EBUSY ? EAGAIN : EOPNOTSUPP;
#else
    (void)fd, (void)hold;
    return EOPNOTSUPP;
#endif
}

int sfti_os_set_direct(int fd, bool direct) {
#ifdef O_DIRECT
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) return errno;
    flags = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
    if (fcntl(fd, F_SETFL, flags) == 0) return 0;
    return errno == EINVAL ? EOPNOTSUPP : errno;
#else
    (void)fd;
    return direct ? EOPNOTSUPP : 0;
#endif
}

int sfti_os_open_direct(int fd, int *out) {
    *out = -1;
#ifdef O_DIRECT
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int error = sfti_os_posix_open(AT_FDCWD, path, O_RDONLY | O_DIRECT, 0, out);
    return error == EINVAL || error == ENOENT ? EOPNOTSUPP : error;
#else
    (void)fd;
    return EOPNOTSUPP;
#endif
}

/* Since Linux 6.5; the number is that of all architectures but one. */
#if !defined(SYS_cachestat) && !defined(__alpha__)
#define SYS_cachestat 451
#endif

/* Only of files that the caller owns or may write: of others the system tells nothing. */
int sfti_os_cached(int fd, uint64_t offset, uint64_t len, uint64_t *bytes) {
    struct { uint64_t offset, len; } range = { offset, len };
    struct { uint64_t cached, dirty, written, evicted, lately; } found;
    *bytes = 0;
    if (len == 0) return 0; /* which would mean: to the end */
    if (syscall(SYS_cachestat, fd, &range, &found, 0u) != 0) return EOPNOTSUPP;
    uint64_t cached = found.cached * (uint64_t)sysconf(_SC_PAGESIZE);
    *bytes = cached < len ? cached : len;
    return 0;
}

void sfti_os_read_apart(int fd, bool apart) {
    (void)posix_fadvise(fd, 0, 0, apart ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
}

void sfti_os_read_soon(int fd, uint64_t offset, uint64_t len) {
    if (offset > INT64_MAX || len > INT64_MAX - offset) return;
    (void)posix_fadvise(fd, (off_t)offset, (off_t)len, POSIX_FADV_WILLNEED);
}

void sfti_os_write_back(int fd, uint64_t offset, uint64_t len) {
#ifdef SYNC_FILE_RANGE_WRITE
    if (offset > INT64_MAX || len > INT64_MAX - offset) return;
    (void)sync_file_range(fd, (off_t)offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd, (void)offset, (void)len;
#endif
}
