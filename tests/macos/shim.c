#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

shim_state shim;

static int answer(int error) {
    if (shim.interrupts > 0) {
        shim.interrupts--;
        error = EINTR;
    }
    errno = error;
    return error ? -1 : 0;
}

/* ── Files: as struct fstore and the commands are in <fcntl.h> of macOS ── */

typedef struct fstore {
    unsigned flags;
    int position;
    off_t offset, length, allocated;
} fstore;

enum { PREALLOCATE = 42, READ_ADVISE = 44, READ_AHEAD = 45, NO_CACHE = 48, FULL_SYNC = 51,
       CONTIGUOUS = 2, ALL = 4, FROM_END = 3 };

/* Blocks behind those that the file has; its size stays. */
static int reserve(int fd, const fstore *blocks) {
    struct stat st;
    bool contiguous = (blocks->flags & CONTIGUOUS) != 0;
    if (contiguous) shim.contiguous_tries++;
    shim.preallocate_tries++;
    if (blocks->position != FROM_END || blocks->offset != 0 || !(blocks->flags & ALL)) abort();
    if (answer(contiguous && shim.contiguous ? shim.contiguous : shim.preallocate)) return -1;
    if (fstat(fd, &st) != 0) return -1;
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)st.st_blocks * 512, blocks->length);
}

int shim_fcntl(int fd, int command, ...);
int shim_fcntl(int fd, int command, ...) {
    va_list rest;
    va_start(rest, command);
    const fstore *blocks = command == PREALLOCATE ? va_arg(rest, const fstore *) : NULL;
    const int64_t *part = command == READ_ADVISE ? va_arg(rest, const int64_t *) : NULL;
    bool alone = command == FULL_SYNC || command == F_GETFL;
    int value = blocks || part || alone ? 0 : va_arg(rest, int);
    va_end(rest);
    if (blocks) return reserve(fd, blocks);
    if (part) shim.advised = *part;
    if (command == READ_AHEAD) shim.read_ahead_now = value;
    if (part || command == READ_AHEAD) return 0;
    if (command == FULL_SYNC) {
        shim.full_syncs++;
        return answer(shim.full_sync) ? -1 : fsync(fd);
    }
    if (command != NO_CACHE) return fcntl(fd, command, value);
    if (answer(shim.no_cache)) return -1;
    shim.no_cache_now = value;
    return 0;
}

int shim_fsync(int fd);
int shim_fsync(int fd) {
    shim.syncs++;
    return answer(0) ? -1 : fsync(fd);
}

off_t shim_lseek(int fd, off_t at, int whence);
off_t shim_lseek(int fd, off_t at, int whence) {
    if (whence == SEEK_HOLE && answer(shim.seek_hole)) return -1;
    return lseek(fd, at, whence);
}

int renamex_np(const char *from, const char *to, unsigned flags);
int renamex_np(const char *from, const char *to, unsigned flags) {
    const unsigned exclusive = 4, no_replace = 1;
    if (flags != exclusive) abort();
    if (answer(shim.rename_new)) return -1;
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, no_replace);
}

/* /.vol/DEVICE/NUMBER is the folder of this process that has these numbers. */
int shim_stat(const char *path, struct stat *out);
int shim_stat(const char *path, struct stat *out) {
    unsigned long long device, number;
    char open_one[40];
    if (strncmp(path, "/.vol/", 6) != 0) return stat(path, out);
    char *end;
    device = strtoull(path + 6, &end, 10);
    number = *end == '/' ? strtoull(end + 1, &end, 10) : 0;
    for (int fd = 3; shim.volumes && *end == '\0' && fd < 64; fd++) {
        (void)snprintf(open_one, sizeof open_one, "/proc/self/fd/%d", fd);
        if (stat(open_one, out) == 0 && out->st_dev == device && out->st_ino == number) return 0;
    }
    errno = ENOENT;
    return -1;
}

/* ── The rest ── */

int shim_getentropy(void *into, size_t len);
int shim_getentropy(void *into, size_t len) {
    if ((int)len > shim.longest_random) shim.longest_random = (int)len;
    return getentropy(into, len);
}

int pthread_cond_timedwait_relative_np(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                       const struct timespec *span);
int pthread_cond_timedwait_relative_np(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                       const struct timespec *span) {
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += span->tv_sec;
    end.tv_nsec += span->tv_nsec;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    return pthread_cond_timedwait(cond, mutex, &end);
}
