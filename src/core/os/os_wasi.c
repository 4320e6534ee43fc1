/* os.h for WebAssembly with WASI: what the core asks. One thread, no maps, no modes, no locks, no
 * unnamed files; links in the names of beneath are refused. */
#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WASI_AT_ONCE ((size_t)1 << 30) /* bytes of one call */

/* ── Looking ── */

static void wasi_info(const struct stat *st, os_info *out) {
    memset(out, 0, sizeof *out);
    out->kind = S_ISREG(st->st_mode)    ? OS_FILE
                : S_ISDIR(st->st_mode)  ? OS_DIR
                : S_ISLNK(st->st_mode)  ? OS_LINK
                : S_ISFIFO(st->st_mode) ? OS_PIPE
                                        : OS_OTHER;
    out->size = (uint64_t)st->st_size;
    out->links = (uint32_t)st->st_nlink;
    out->device = (uint64_t)st->st_dev;
    out->inode = (uint64_t)st->st_ino;
    out->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    out->ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

int sfti_os_info_fd(int fd, os_info *out) {
    struct stat st;
    if (fstat(fd, &st) != 0) return errno;
    wasi_info(&st, out);
    return 0;
}

int sfti_os_info_path(const char *path, bool follow_link, os_info *out) {
    struct stat st;
    if ((follow_link ? stat(path, &st) : lstat(path, &st)) != 0) return errno;
    wasi_info(&st, out);
    return 0;
}

int sfti_os_real_path(const char *path, char *out, size_t cap) {
    struct stat st;
    size_t len = strlen(path);
    if (lstat(path, &st) != 0) return errno;
    if (S_ISLNK(st.st_mode)) return EOPNOTSUPP;
    if (len >= cap) return ENAMETOOLONG;
    memcpy(out, path, len + 1);
    return 0;
}

int sfti_os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
                 void *ctx) {
    int result = 0;
    DIR *folder = opendir(path);
    if (!folder) return errno;
    for (const struct dirent *entry;
         !result && (errno = 0, (entry = readdir(folder)) != NULL);) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        result = each(ctx, entry->d_name, entry->d_type == DT_REG   ? OS_FILE
                                          : entry->d_type == DT_DIR ? OS_DIR
                                          : entry->d_type == DT_LNK ? OS_LINK
                                                                    : OS_OTHER);
    }
    if (!result) result = errno;
    (void)closedir(folder);
    return result;
}

/* ── Opening and reading ── */

static int wasi_open(int at, const char *path, int flags, int *fd) {
    *fd = openat(at, path, flags, 0666);
    return *fd < 0 ? errno : 0;
}

int sfti_os_open_read(const char *path, int *fd) {
    return wasi_open(AT_FDCWD, path, O_RDONLY, fd);
}

int sfti_os_open_no_link(const char *path, bool writable, int *fd) {
    return wasi_open(AT_FDCWD, path, (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW, fd);
}

int sfti_os_open_look(const char *path, int *fd, os_info *info) {
    int error = sfti_os_open_no_link(path, false, fd);
    bool no_link = !error;
    if (error == ELOOP) error = sfti_os_open_read(path, fd);
    if (error) return error;
    error = sfti_os_info_fd(*fd, info);
    info->is_no_link = no_link;
    if (error) {
        (void)close(*fd);
        *fd = -1;
    }
    return error;
}

/* Part by part, each of which must be no link. */
int sfti_os_open_beneath(const char *folder, const char *name, os_beneath how, int *fd) {
    char part[256];
    int at, flags = how == OS_BENEATH_WRITE ? O_RDWR : O_RDONLY;
    int error = wasi_open(AT_FDCWD, *folder ? folder : ".", O_RDONLY | O_DIRECTORY, &at);
    if (*name == '/') error = error ? error : EXDEV;
    while (!error) {
        size_t len = strcspn(name, "/");
        bool last = name[len] == '\0';
        if (len >= sizeof part) error = ENAMETOOLONG;
        if (error) break;
        memcpy(part, len > 0 ? name : ".", len > 0 ? len : 1);
        part[len > 0 ? len : 1] = '\0';
        if (strcmp(part, "..") == 0) {
            error = EXDEV;
            break;
        }
        bool is_folder = !last || how == OS_BENEATH_FOLDER;
        error = wasi_open(at, part, (is_folder ? O_RDONLY | O_DIRECTORY : flags) | O_NOFOLLOW, fd);
        (void)close(at);
        at = -1;
        if (error || last) break;
        at = *fd;
        name += len + 1;
    }
    if (at >= 0) (void)close(at);
    if (error) *fd = -1;
    return error == ELOOP && how == OS_BENEATH_READ ? EXDEV : error;
}

int sfti_os_close(int fd) {
    return close(fd) == 0 ? 0 : errno;
}

int sfti_os_positioned(int fd) {
    return fd;
}

int sfti_os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    *got = 0;
    if (len > WASI_AT_ONCE) len = WASI_AT_ONCE;
    if (offset > (uint64_t)INT64_MAX - len) return EOVERFLOW;
    ssize_t n = pread(fd, into, len, (off_t)offset);
    if (n < 0) return errno;
    *got = (size_t)n;
    return 0;
}

int sfti_os_read(int fd, void *into, size_t len, size_t *got) {
    *got = 0;
    ssize_t n = read(fd, into, len < WASI_AT_ONCE ? len : WASI_AT_ONCE);
    if (n < 0) return errno;
    *got = (size_t)n;
    return 0;
}

int sfti_os_cached(int fd, uint64_t offset, uint64_t len, uint64_t *bytes) {
    (void)fd, (void)offset, (void)len, (void)bytes;
    return EOPNOTSUPP;
}

void sfti_os_read_apart(int fd, bool apart) {
    (void)fd, (void)apart;
}

void sfti_os_read_soon(int fd, uint64_t offset, uint64_t len) {
    (void)fd, (void)offset, (void)len;
}

int sfti_os_map(int fd, uint64_t len, bool writable_private, void **out) {
    (void)fd, (void)len, (void)writable_private;
    *out = NULL;
    return EOPNOTSUPP;
}

void sfti_os_unmap(void *at, uint64_t len) {
    (void)at, (void)len;
}

int sfti_os_gather(const void *map, const uint64_t *offsets, size_t count, size_t len, void *into,
                   size_t *got) {
    (void)map, (void)offsets, (void)count, (void)len, (void)into;
    *got = 0;
    return EOPNOTSUPP;
}

/* ── Writing ── */

int sfti_os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
    (void)folder, (void)mode;
    *fd = -1;
    return EOPNOTSUPP;
}

int sfti_os_link_unnamed(int fd, const char *path) {
    (void)fd, (void)path;
    return EOPNOTSUPP;
}

int sfti_os_link(const char *from, const char *to) {
    (void)from, (void)to;
    return EOPNOTSUPP;
}

int sfti_os_open_new(const char *path, uint32_t mode, int *fd) {
    (void)mode;
    return wasi_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, fd);
}

int sfti_os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put) {
    *put = 0;
    if (len > WASI_AT_ONCE) len = WASI_AT_ONCE;
    if (offset > (uint64_t)INT64_MAX - len) return EFBIG;
    ssize_t n = pwrite(fd, from, len, (off_t)offset);
    if (n < 0) return errno;
    if (n == 0 && len > 0) return ENOSPC;
    *put = (size_t)n;
    return 0;
}

int sfti_os_write(int fd, const void *from, size_t len, size_t *put) {
    *put = 0;
    ssize_t n = write(fd, from, len < WASI_AT_ONCE ? len : WASI_AT_ONCE);
    if (n < 0) return errno;
    *put = (size_t)n;
    return 0;
}

int sfti_os_preallocate(int fd, uint64_t len) {
    (void)fd, (void)len;
    return EOPNOTSUPP;
}

int sfti_os_truncate(int fd, uint64_t len) {
    if (len > INT64_MAX) return EFBIG;
    return ftruncate(fd, (off_t)len) == 0 ? 0 : errno;
}

int sfti_os_set_mode(int fd, uint32_t mode) {
    (void)fd, (void)mode;
    return 0;
}

int sfti_os_set_mtime(int fd, int64_t mtime_ns) {
    int64_t seconds = mtime_ns / 1000000000, rest = mtime_ns % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    struct timespec times[2] = { { 0, UTIME_OMIT }, { (time_t)seconds, (long)rest } };
    return futimens(fd, times) == 0 ? 0 : errno;
}

int sfti_os_sync(int fd) {
    return fsync(fd) == 0 ? 0 : errno;
}

int sfti_os_open_folder(const char *folder, int *fd) {
    return wasi_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, fd);
}

int sfti_os_sync_folder(const char *folder) {
    (void)folder;
    return EOPNOTSUPP;
}

int sfti_os_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len,
                       uint64_t *done) {
    (void)from, (void)from_at, (void)to, (void)to_at, (void)len;
    *done = 0;
    return EOPNOTSUPP;
}

int sfti_os_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len) {
    (void)from, (void)from_at, (void)to, (void)to_at, (void)len;
    return EOPNOTSUPP;
}

int sfti_os_set_direct(int fd, bool direct) {
    (void)fd;
    return direct ? EOPNOTSUPP : 0;
}

void sfti_os_write_back(int fd, uint64_t offset, uint64_t len) {
    (void)fd, (void)offset, (void)len;
}

int sfti_os_rename(const char *from, const char *to, bool no_clobber) {
    if (!no_clobber) return rename(from, to) == 0 ? 0 : errno;
    if (link(from, to) != 0) return errno;
    if (unlink(from) == 0) return 0;
    int error = errno;
    (void)unlink(to); /* told as a failure, nothing stays at the target */
    return error;
}

int sfti_os_unlink(const char *path) {
    return unlink(path) == 0 ? 0 : errno;
}

/* There are no locks, so that nothing need be opened for one. */
int sfti_os_lock(int fd) {
    (void)fd;
    return EOPNOTSUPP;
}

void sfti_os_unlock(int fd) { (void)fd; }

int sfti_os_open_write(const char *path, int *fd) {
    (void)path, (void)fd;
    return EOPNOTSUPP;
}

bool sfti_os_is_append(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_APPEND) != 0;
}

/* ── The rest ── */

int sfti_os_random(void *into, size_t len) {
    return getentropy(into, len) == 0 ? 0 : errno;
}

uint64_t sfti_os_now_ns(void) {
    struct timespec now = { 0, 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sfti_os_process(void) { return 1; }

uint32_t sfti_os_user(void) { return 0; }

uint32_t sfti_os_cpu_count(void) { return 1; }

const char *sfti_os_error_text(int error, char *buffer, size_t len) {
    if (strerror_r(error, buffer, len) != 0) return "unknown error";
    return buffer;
}

void *sfti_os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx, (void)old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static bool (*wasi_go_on)(void *ctx);
static void *wasi_go_on_ctx;

/* No call waits so that it could ask. */
void sfti_os_on_wait(bool (*go_on)(void *ctx), void *ctx) {
    wasi_go_on = go_on;
    wasi_go_on_ctx = ctx;
}

static const sft_wait *wasi_own;

const sft_wait *sfti_os_wait_as(const sft_wait *wait) {
    const sft_wait *before = wasi_own;
    wasi_own = wait && wait->go_on ? wait : NULL;
    return before;
}

bool sfti_os_wait_over(void) {
    if (wasi_own) return !wasi_own->go_on(wasi_own->ctx);
    return wasi_go_on && !wasi_go_on(wasi_go_on_ctx);
}

/* ── One thread ── */

int sfti_os_thread_start(os_thread *thread, void (*run)(void *ctx), void *ctx) {
    (void)run, (void)ctx;
    thread->handle[0] = NULL;
    return EAGAIN;
}

void sfti_os_thread_join(os_thread *thread) {
    (void)thread;
}

int sfti_os_mutex_init(os_mutex *mutex) {
    (void)mutex;
    return 0;
}

void sfti_os_mutex_lock(os_mutex *mutex) {
    (void)mutex;
}

void sfti_os_mutex_unlock(os_mutex *mutex) {
    (void)mutex;
}

void sfti_os_mutex_free(os_mutex *mutex) {
    (void)mutex;
}
