/* os.h on POSIX hosts: files, folders, clocks, terminals. Tests: test_os.c, test_os_files.c. */
#include "os/os_posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ── Looking ── */

static void info_of_stat(const struct stat *st, os_info *out) {
    memset(out, 0, sizeof *out);
    out->kind = S_ISREG(st->st_mode)    ? OS_FILE
                : S_ISDIR(st->st_mode)  ? OS_DIR
                : S_ISLNK(st->st_mode)  ? OS_LINK
                : S_ISFIFO(st->st_mode) ? OS_PIPE
                                        : OS_OTHER;
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

int sfti_os_info_fd(int fd, os_info *out) {
    struct stat st;
    if (fstat(fd, &st) != 0) return errno;
    info_of_stat(&st, out);
    return 0;
}

int sfti_os_info_path(const char *path, bool follow_link, os_info *out) {
    struct stat st;
    int rc = follow_link ? stat(path, &st) : lstat(path, &st);
    if (rc != 0) return errno;
    info_of_stat(&st, out);
    return 0;
}

int sfti_os_real_path(const char *path, char *out, size_t cap) {
    char *real = realpath(path, NULL);
    if (!real) return errno;
    size_t len = strlen(real);
    int error = len < cap ? 0 : ENAMETOOLONG;
    if (!error) memcpy(out, real, len + 1);
    free(real);
    return error;
}

int sfti_os_read_link(const char *path, char *out, size_t cap) {
    ssize_t n = readlink(path, out, cap);
    if (n < 0) return errno;
    if ((size_t)n >= cap) return ENAMETOOLONG;
    out[n] = '\0';
    return 0;
}

/* ── Opening and reading ── */

int sfti_os_posix_open(int at, const char *path, int flags, uint32_t mode, int *fd) {
    do {
        *fd = openat(at, path, flags | O_CLOEXEC, (mode_t)mode);
    } while (*fd < 0 && errno == EINTR && !sfti_os_stop_signal());
    return *fd < 0 ? errno : 0;
}

/* O_NONBLOCK so that a FIFO without a writer, or a device, does not hold up the open: not even
 * one that takes a leased file's name while we wait for that. info, if given, becomes what was
 * opened, whose reads then wait. */
static int open_unheld(const char *path, int flags, int *fd, os_info *info) {
    uint32_t ms = 0;
    struct stat st;
    int error;
    for (;;) {
        error = sfti_os_posix_open(AT_FDCWD, path, flags | O_NONBLOCK | O_NOCTTY, 0, fd);
        if (error != EWOULDBLOCK && error != EAGAIN) break;
        /* What O_NONBLOCK tells of a regular file is a lease, which the open has asked its holder
         * to give back (the kernel sees to it after a while). */
        if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return error;
        if (!sfti_os_wait_more(&ms)) return EINTR;
    }
    if (error || !info) return error;
    error = sfti_os_info_fd(*fd, info);
    if (!error && info->kind != OS_FILE) {
        int now = fcntl(*fd, F_GETFL);
        if (now >= 0) (void)fcntl(*fd, F_SETFL, now & ~O_NONBLOCK);
    }
    if (error) (void)close(*fd);
    if (error) *fd = -1;
    return error;
}

int sfti_os_open_look(const char *path, int *fd, os_info *info) {
    int error = open_unheld(path, O_RDONLY | O_NOFOLLOW, fd, info);
    info->is_no_link = !error;
    return error == ELOOP ? open_unheld(path, O_RDONLY, fd, info) : error;
}

int sfti_os_open_read(const char *path, int *fd) {
    os_info info;
    return open_unheld(path, O_RDONLY, fd, &info);
}

int sfti_os_open_no_link(const char *path, bool writable, int *fd) {
    os_info info;
    return open_unheld(path, (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW, fd,
                       writable ? NULL : &info);
}

/* Linux has freed the descriptor even when it was interrupted. */
int sfti_os_close(int fd) {
    return close(fd) == 0 || errno == EINTR ? 0 : errno;
}

int sfti_os_positioned(int fd) {
    return fd;
}

int sfti_os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    ssize_t n;
    *got = 0;
    if (len > SFTI_POSIX_AT_ONCE) len = SFTI_POSIX_AT_ONCE;
    if (offset > (uint64_t)INT64_MAX - len) return EOVERFLOW;
    do {
        n = pread(fd, into, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno;
    *got = (size_t)n;
    return 0;
}

int sfti_os_map(int fd, uint64_t len, bool writable_private, void **out) {
    int access_kind = writable_private ? PROT_READ | PROT_WRITE : PROT_READ;
    int flags = writable_private ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
    *out = NULL;
    if (len > SIZE_MAX >> 1) return ENOMEM;
    void *at = mmap(NULL, (size_t)len, access_kind, flags, fd, 0);
    if (at == MAP_FAILED) return errno;
    *out = at;
    return 0;
}

void sfti_os_unmap(void *at, uint64_t len) {
    if (at) (void)munmap(at, (size_t)len);
}

/* ── Folders ── */

int sfti_os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
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
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        struct stat st;
        os_info info = { .kind = OS_OTHER };
        switch (entry->d_type) {
        case DT_REG: info.kind = OS_FILE; break;
        case DT_DIR: info.kind = OS_DIR; break;
        case DT_LNK: info.kind = OS_LINK; break;
        case DT_FIFO: info.kind = OS_PIPE; break;
        case DT_UNKNOWN:
            if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                info_of_stat(&st, &info);
        }
        result = each(ctx, entry->d_name, info.kind);
    }
    (void)closedir(folder);
    return result;
}

/* ── Writing ── */

int sfti_os_open_new(const char *path, uint32_t mode, int *fd) {
    return sfti_os_posix_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode, fd);
}

int sfti_os_open_write(const char *path, int *fd) {
    return open_unheld(path, O_RDWR, fd, NULL);
}

int sfti_os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put) {
    ssize_t n;
    *put = 0;
    if (len > SFTI_POSIX_AT_ONCE) len = SFTI_POSIX_AT_ONCE;
    if (offset > (uint64_t)INT64_MAX - len) return EFBIG;
    do {
        n = pwrite(fd, from, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno;
    if (n == 0 && len > 0) return ENOSPC;
    *put = (size_t)n;
    return 0;
}

int sfti_os_truncate(int fd, uint64_t len) {
    int rc;
    if (len > INT64_MAX) return EFBIG;
    do {
        rc = ftruncate(fd, (off_t)len);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

int sfti_os_set_mode(int fd, uint32_t mode) {
    return fchmod(fd, (mode_t)(mode & 07777)) == 0 ? 0 : errno;
}

int sfti_os_set_mtime(int fd, int64_t mtime_ns) {
    int64_t seconds = mtime_ns / 1000000000, rest = mtime_ns % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) return errno;
    /* Not UTIME_OMIT, for which file systems by FUSE 2 (exFAT) set no time, and say nothing. */
    struct timespec times[2] = { st.st_atim, { (time_t)seconds, (long)rest } };
    return futimens(fd, times) == 0 ? 0 : errno;
}

int sfti_os_lock(int fd) {
    int rc;
    do {
        rc = flock(fd, LOCK_EX | LOCK_NB);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    return errno == EWOULDBLOCK ? EAGAIN : EOPNOTSUPP;
}

void sfti_os_unlock(int fd) { (void)flock(fd, LOCK_UN); }

int sfti_os_open_folder(const char *folder, int *fd) {
    return sfti_os_posix_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0, fd);
}

int sfti_os_sync_folder(const char *folder) {
    int fd;
    int error = sfti_os_open_folder(folder, &fd);
    if (error) return error;
    error = sfti_os_sync(fd);
    (void)close(fd);
    return error;
}

int sfti_os_make_folder(const char *path, uint32_t mode) {
    return mkdir(path, (mode_t)mode) == 0 ? 0 : errno;
}

int sfti_os_remove_folder(const char *path) {
    return rmdir(path) == 0 ? 0 : errno;
}

int sfti_os_rename(const char *from, const char *to, bool no_clobber) {
    if (!no_clobber) return rename(from, to) == 0 ? 0 : errno;
    int error = sfti_os_kernel_rename_new(from, to);
    if (error != EOPNOTSUPP) return error;
    /* For file systems without RENAME_NOREPLACE: a second name is as atomic. */
    if (link(from, to) != 0) return errno == ENOTSUP ? EOPNOTSUPP : errno;
    return unlink(from) == 0 ? 0 : errno;
}

int sfti_os_link(const char *from, const char *to) {
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, 0) == 0) return 0;
    return errno == ENOTSUP || errno == ENOSYS ? EOPNOTSUPP : errno;
}

int sfti_os_unlink(const char *path) {
    return unlink(path) == 0 ? 0 : errno;
}

bool sfti_os_is_append(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_APPEND) != 0;
}

/* ── The rest ── */

uint64_t sfti_os_now_ns(void) {
    struct timespec now = { 0, 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sfti_os_time_s(void) {
    time_t now = time(NULL);
    return now > 0 ? (uint64_t)now : 0;
}

int32_t sfti_os_zone_s(uint64_t time_s) {
    time_t at = (time_t)time_s;
    struct tm there;
    return localtime_r(&at, &there) ? (int32_t)there.tm_gmtoff : 0;
}

uint64_t sfti_os_process(void) { return (uint64_t)getpid(); }

uint32_t sfti_os_user(void) {
    return (uint32_t)geteuid();
}

const char *sfti_os_error_text(int error, char *buffer, size_t len) {
    if (len == 0) return "";
    buffer[0] = 0;
    /* strerror_r is one of two functions, by libc. */
    return _Generic(strerror_r(error, buffer, len), char *: strerror_r(error, buffer, len),
                    int: strerror_r(error, buffer, len) == 0 ? buffer : "unknown error");
}

bool sfti_os_is_terminal(int fd) {
    return isatty(fd) == 1;
}

bool sfti_os_terminal_escapes(int fd) {
    return sfti_os_is_terminal(fd);
}

uint32_t sfti_os_terminal_columns(int fd) {
    struct winsize size;
    memset(&size, 0, sizeof size);
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

const char *sfti_os_env(const char *name) {
    return getenv(name);
}
