/* What a POSIX host leaves to its system, on Linux. */
#include "os/os_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ── Files ── */

int sfti_os_preallocate(int fd, uint64_t len) {
    if (len == 0) return 0;
    if (len > INT64_MAX) return EFBIG;
    int rc;
    do {
        rc = fallocate(fd, 0, 0, (off_t)len);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0) return 0;
    return errno == ENOSYS ? EOPNOTSUPP : errno;
}

int sfti_os_sync(int fd) {
    int rc;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

int sfti_os_trash(const char *path) {
    (void)path;
    return EOPNOTSUPP;
}

int sfti_os_kernel_rename_new(const char *from, const char *to) {
#ifdef SYS_renameat2
    const unsigned no_replace = 1;
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, no_replace) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
#else
    (void)from, (void)to;
#endif
    return EOPNOTSUPP;
}

#ifdef SYS_openat2
/* As in <linux/openat2.h>, which older systems lack. */
typedef struct kernel_how {
    uint64_t flags, mode, resolve;
} kernel_how;

int sfti_os_kernel_beneath(int root, const char *name, int flags, bool links, int *fd) {
    const uint64_t no_magic = 0x02, no_links = 0x04, beneath = 0x08;
    kernel_how how = { (uint64_t)flags, 0, no_magic | beneath | (links ? 0 : no_links) };
    long n;
    do {
        n = syscall(SYS_openat2, root, name, &how, sizeof how);
    } while (n < 0 && errno == EINTR && !sfti_os_stop_signal());
    *fd = n < 0 ? -1 : (int)n;
    return n < 0 ? errno : 0;
}
#else
int sfti_os_kernel_beneath(int root, const char *name, int flags, bool links, int *fd) {
    (void)root, (void)name, (void)flags, (void)links;
    *fd = -1;
    return ENOSYS;
}
#endif

/* ── The rest ── */

int sfti_os_random(void *into, size_t len) {
    char *at = into;
    memset(into, 0, len); /* MemorySanitizer does not see what the call writes */
    while (len > 0) {
        size_t piece = len < 256 ? len : 256;
        /* glibc before 2.25 has no getrandom(). */
        ssize_t n = syscall(SYS_getrandom, at, piece, 0u);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

uint32_t sfti_os_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

int sfti_os_cond_init(os_cond *cond) {
    pthread_condattr_t attr;
    int error = pthread_condattr_init(&attr);
    if (error) return error;
    error = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (!error) error = pthread_cond_init((pthread_cond_t *)(void *)cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return error;
}

void sfti_os_cond_wait_for(os_cond *cond, os_mutex *mutex, uint32_t ms) {
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)(ms / 1000);
    end.tv_nsec += (long)(ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    (void)pthread_cond_timedwait((pthread_cond_t *)(void *)cond,
                                 (pthread_mutex_t *)(void *)mutex, &end);
}
