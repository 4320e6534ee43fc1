/* What a POSIX host leaves to its system, on macOS. Files are cloned there only whole and into new
 * names, and the kernel copies no ranges, inserts none and grants no leases: callers read and write
 * instead. */
#include "os/os.h"
#include "os/os_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ENOTSUP is not EOPNOTSUPP there, and drivers of file systems answer either, or that they know no
 * such call. */
static bool is_missing(int error) {
    return error == ENOTSUP || error == EOPNOTSUPP || error == EINVAL || error == ENOTTY ||
           error == ENOSYS;
}

/* ── Files ── */

/* There are none: a file gets its temporary name when it is made. */
int sfti_os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
    (void)folder, (void)mode;
    *fd = -1;
    return EOPNOTSUPP;
}

int sfti_os_link_unnamed(int fd, const char *path) {
    (void)fd, (void)path;
    return EOPNOTSUPP;
}

/* Blocks for len more bytes behind those that the file has: in one piece, or in as many as it
 * takes. */
static int reserve_blocks(int fd, off_t len) {
    static const unsigned how[] = { F_ALLOCATECONTIG | F_ALLOCATEALL, F_ALLOCATEALL };
    int error = 0;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        fstore_t blocks = { how[i], F_PEOFPOSMODE, 0, len, 0 };
        int rc;
        do {
            rc = fcntl(fd, F_PREALLOCATE, &blocks);
        } while (rc != 0 && errno == EINTR);
        if (rc == 0) return 0;
        error = errno;
    }
    return is_missing(error) ? EOPNOTSUPP : error;
}

int sfti_os_preallocate(int fd, uint64_t len) {
    struct stat st;
    if (len == 0) return 0;
    if (len > INT64_MAX) return EFBIG;
    if (fstat(fd, &st) != 0) return errno;
    off_t missing = (off_t)len - (off_t)st.st_blocks * 512;
    int rc, error = missing > 0 ? reserve_blocks(fd, missing) : 0;
    if (error || st.st_size >= (off_t)len) return error;
    do {
        rc = ftruncate(fd, (off_t)len);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

/* fsync leaves bytes in the cache of the drive; F_FULLFSYNC does not, but some file systems, those
 * of networks above all, have fsync alone. */
int sfti_os_sync(int fd) {
    int rc;
    do {
        rc = fcntl(fd, F_FULLFSYNC);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    if (!is_missing(errno)) return errno;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    return is_missing(errno) ? EOPNOTSUPP : errno;
}

int sfti_os_kernel_rename_new(const char *from, const char *to) {
    if (renamex_np(from, to, RENAME_EXCL) == 0) return 0;
    return is_missing(errno) ? EOPNOTSUPP : errno;
}

/* O_NOFOLLOW_ANY and O_RESOLVE_BENEATH would serve, but systems that lack them ignore them. */
int sfti_os_kernel_beneath(int root, const char *name, int flags, bool links, int *fd) {
    (void)root, (void)name, (void)flags, (void)links;
    *fd = -1;
    return ENOSYS;
}

/* Folders have a second path, of their volume and number, on volumes that keep numbers. */
int sfti_os_path_in(int folder, const char *name, char *out, size_t cap) {
    struct stat open_one, there;
    char numbers[64];
    if (fstat(folder, &open_one) != 0) return errno;
    (void)snprintf(numbers, sizeof numbers, "/.vol/%lld/%llu", (long long)open_one.st_dev,
                   (unsigned long long)open_one.st_ino);
    int len = snprintf(out, cap, "%s/%s", numbers, name);
    if (len < 0 || (size_t)len >= cap) return ENAMETOOLONG;
    bool same = stat(numbers, &there) == 0 && there.st_dev == open_one.st_dev &&
                there.st_ino == open_one.st_ino;
    return same ? 0 : EOPNOTSUPP;
}

/* To ~/.Trash, under a number where the name is taken; other volumes have bins of their own. */
int sfti_os_trash(const char *path) {
    const char *home = getenv("HOME"), *slash = strrchr(path, '/');
    char to[4096];
    int error = EOPNOTSUPP;
    int folder = home && *home ? snprintf(to, sizeof to, "%s/.Trash", home) : -1;
    if (folder > 0 && (size_t)folder < sizeof to) (void)mkdir(to, 0700); /* mostly there */
    for (unsigned n = 0; home && *home && n < 1000 && (n == 0 || error == EEXIST); n++) {
        char number[16] = "";
        if (n) (void)snprintf(number, sizeof number, " %u", n + 1);
        int len = snprintf(to, sizeof to, "%s/.Trash/%s%s", home, slash ? slash + 1 : path, number);
        if (len < 0 || (size_t)len >= sizeof to) return ENAMETOOLONG;
        error = sfti_os_kernel_rename_new(path, to);
    }
    return error == EXDEV ? EOPNOTSUPP : error;
}

/* ── Ranges ── */

int sfti_os_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len,
                       uint64_t *done) {
    (void)from, (void)to;
    *done = 0;
    return from_at > INT64_MAX - len || to_at > INT64_MAX - len ? EFBIG : EOPNOTSUPP;
}

int sfti_os_gather(const void *map, const uint64_t *offsets, size_t count, size_t len, void *into,
                   size_t *got) {
    (void)map, (void)offsets, (void)count, (void)len, (void)into;
    *got = 0;
    return EOPNOTSUPP;
}

int sfti_os_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len) {
    (void)from, (void)from_at, (void)to, (void)to_at, (void)len;
    return EOPNOTSUPP;
}

int sfti_os_insert_range(int fd, uint64_t at, uint64_t len) {
    (void)fd, (void)at, (void)len;
    return EOPNOTSUPP;
}

int sfti_os_collapse_range(int fd, uint64_t at, uint64_t len) {
    (void)fd, (void)at, (void)len;
    return EOPNOTSUPP;
}

int sfti_os_find_hole(int fd, uint64_t at, uint64_t *out) {
    off_t hole = at <= INT64_MAX ? lseek(fd, (off_t)at, SEEK_HOLE) : -1;
    if (hole < 0) return is_missing(errno) ? EOPNOTSUPP : errno;
    *out = (uint64_t)hole;
    return 0;
}

int sfti_os_lease(int fd, bool hold) {
    (void)fd, (void)hold;
    return EOPNOTSUPP;
}

int sfti_os_set_direct(int fd, bool direct) {
    if (fcntl(fd, F_NOCACHE, direct ? 1 : 0) == 0) return 0;
    return is_missing(errno) ? EOPNOTSUPP : errno;
}

/* By its number: a second open of its own, for the flag is shared by what was duplicated. */
int sfti_os_open_direct(int fd, int *out) {
    struct stat now, there;
    char path[64];
    *out = -1;
    if (fstat(fd, &now) != 0) return errno;
    (void)snprintf(path, sizeof path, "/.vol/%lld/%llu", (long long)now.st_dev,
                   (unsigned long long)now.st_ino);
    *out = open(path, O_RDONLY | O_CLOEXEC);
    if (*out < 0) return EOPNOTSUPP;
    bool same = fstat(*out, &there) == 0 && there.st_dev == now.st_dev
                && there.st_ino == now.st_ino;
    if (same && sfti_os_set_direct(*out, true) == 0) return 0;
    (void)close(*out);
    *out = -1;
    return EOPNOTSUPP;
}

/* mincore() would have to map the file, and tells of maps alone. */
int sfti_os_cached(int fd, uint64_t offset, uint64_t len, uint64_t *bytes) {
    (void)fd, (void)offset, (void)len;
    *bytes = 0;
    return EOPNOTSUPP;
}

void sfti_os_read_apart(int fd, bool apart) {
    (void)fcntl(fd, F_RDAHEAD, apart ? 0 : 1);
}

void sfti_os_read_soon(int fd, uint64_t offset, uint64_t len) {
    if (offset > INT64_MAX || len > INT_MAX) return;
    struct radvisory part = { (off_t)offset, (int)len };
    (void)fcntl(fd, F_RDADVISE, &part);
}

/* The system has no call for it. */
void sfti_os_write_back(int fd, uint64_t offset, uint64_t len) {
    (void)fd, (void)offset, (void)len;
}

/* ── The rest ── */

int sfti_os_random(void *into, size_t len) {
    char *at = into;
    while (len > 0) {
        size_t piece = len < 256 ? len : 256; /* the most that it gives */
        if (getentropy(at, piece) != 0) return errno;
        at += piece;
        len -= piece;
    }
    return 0;
}

uint32_t sfti_os_cpu_count(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

/* Its malloc takes large blocks from the system by itself; there are no huge pages to ask for. */
void *sfti_os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx, (void)old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

bool sfti_os_huge_ask(char *at, size_t len) {
    (void)at, (void)len;
    return false;
}

bool sfti_os_huge_quick(char *at) {
    (void)at;
    return false;
}

int sfti_os_cond_init(os_cond *cond) {
    return pthread_cond_init((pthread_cond_t *)(void *)cond, NULL);
}

/* Relative, for its conditions know the calendar's clock alone, which may be set. */
void sfti_os_cond_wait_for(os_cond *cond, os_mutex *mutex, uint32_t ms) {
    struct timespec span = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    (void)pthread_cond_timedwait_relative_np((pthread_cond_t *)(void *)cond,
                                             (pthread_mutex_t *)(void *)mutex, &span);
}

/* ── Programs ── */

int sfti_os_program_begin(int *argc, char ***argv) {
    (void)argc, (void)argv;
    return 0;
}
