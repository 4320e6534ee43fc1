/* What unit tests take from POSIX and Windows lacks: included before every one of them there.
 * What Windows has no form of (fork, FIFOs, limits) skips the test that asks; see skips.tsv. */
#ifndef TESTS_WINDOWS_POSIX_H
#define TESTS_WINDOWS_POSIX_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ── Files ── */

struct posix_stat {
    uint64_t st_dev, st_ino;
    mode_t st_mode;
    uint32_t st_nlink, st_uid;
    int64_t st_size, st_blocks;
    struct timespec st_atim, st_mtim, st_ctim;
};
int posix_stat(const char *path, struct posix_stat *out);
int posix_lstat(const char *path, struct posix_stat *out);
int posix_fstat(int fd, struct posix_stat *out);
#undef stat
#undef fstat
#define stat posix_stat
#define lstat posix_lstat
#define fstat posix_fstat
#undef st_atime
#undef st_mtime
#undef st_ctime
#define st_atime st_atim.tv_sec
#define st_mtime st_mtim.tv_sec
#define st_ctime st_ctim.tv_sec
#ifndef S_IFLNK
#define S_IFLNK 0120000
#define S_ISLNK(mode) (((mode) & S_IFMT) == S_IFLNK)
#endif

/* Paths as the library takes them: UTF-8, long ones too. */
int posix_open(const char *path, int flags, ...);
FILE *posix_fopen(const char *path, const char *mode);
int posix_mkdir(const char *path, mode_t mode);
int posix_unlink(const char *path);
int posix_remove(const char *path);
int posix_rename(const char *from, const char *to);
int posix_truncate(const char *path, int64_t len);
int posix_chmod(const char *path, mode_t mode);
char *mkdtemp(char *pattern);
int symlink(const char *says, const char *path);
int link(const char *from, const char *to);
int mkfifo(const char *path, mode_t mode);
int pipe(int ends[2]);
char *realpath(const char *path, char *out);
#define open posix_open
#define fopen posix_fopen
#define mkdir posix_mkdir
#define unlink posix_unlink
#define remove posix_remove
#define rename posix_rename
#define chmod posix_chmod
#define truncate posix_truncate
#undef off_t
#define off_t int64_t
#define fsync _commit
#define O_CLOEXEC 0
#define O_NOFOLLOW 0
#define O_DIRECTORY 0
#define O_NONBLOCK 0
#define PATH_MAX_OF_TESTS 4096
#undef PATH_MAX
#define PATH_MAX PATH_MAX_OF_TESTS

#define AT_FDCWD (-100)
#define UTIME_OMIT ((long)-2)
int utimensat(int folder, const char *path, const struct timespec times[2], int flags);
int utimes(const char *path, const struct timeval times[2]);
int futimens(int fd, const struct timespec times[2]);
ssize_t pread(int fd, void *into, size_t len, int64_t offset);
ssize_t pwrite(int fd, const void *from, size_t len, int64_t offset);
int fcntl(int fd, int request, ...);
int flock(int fd, int how);
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8
#define F_GETFD 1
#define F_GETFL 3
#define F_SETFL 4
#define FD_CLOEXEC 1

struct FTW { int base, level; };
#define FTW_DEPTH 1
#define FTW_PHYS 2
int nftw(const char *path, int (*each)(const char *, const struct posix_stat *, int, struct FTW *),
         int depth, int flags);

/* ── Users, processes and limits ── */

typedef uint32_t uid_t, gid_t;
uid_t getuid(void);
uid_t geteuid(void); /* never the superuser: what only that may do is skipped */
int seteuid(uid_t user);
int chown(const char *path, uid_t user, gid_t group);
pid_t fork(void);
pid_t waitpid(pid_t child, int *status, int flags);
pid_t wait(int *status);
int pause(void);
int kill(pid_t process, int number);
unsigned alarm(unsigned seconds);
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
#define WNOHANG 1
#define WIFEXITED(status) ((status) >= 0)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) ((status) < 0)
#define WTERMSIG(status) (-(status))
#define SIGKILL 9
#define SIGPIPE 13
#define SIGHUP 1
#define SIGALRM 14
#define SIGXFSZ 25
#define SIGIO 29

typedef uint64_t rlim_t;
struct rlimit { rlim_t rlim_cur, rlim_max; };
#define RLIMIT_NOFILE 7
#define RLIMIT_FSIZE 1
#define RLIMIT_AS 9
int getrlimit(int what, struct rlimit *out);
int setrlimit(int what, const struct rlimit *limit);

/* ── Memory, threads and time ── */

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 32
#define MAP_FAILED ((void *)-1)
#define _SC_PAGESIZE 30
void *mmap(void *at, size_t len, int access, int flags, int fd, int64_t offset);
int mprotect(void *at, size_t len, int access);
int munmap(void *at, size_t len);
long sysconf(int name);
void *memmem(const void *in, size_t in_len, const void *what, size_t len);
char *strndup(const char *text, size_t len);

typedef struct posix_thread *pthread_t;
typedef struct pthread_attr_t { size_t stack; } pthread_attr_t;
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *ctx);
int pthread_join(pthread_t thread, void **result);
int pthread_attr_init(pthread_attr_t *how);
int pthread_attr_setstacksize(pthread_attr_t *how, size_t stack);
int pthread_attr_destroy(pthread_attr_t *how);
typedef struct pthread_mutex_t { void *lock; } pthread_mutex_t;
#define PTHREAD_MUTEX_INITIALIZER { NULL }
int pthread_mutex_init(pthread_mutex_t *mutex, const void *how);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int sched_yield(void);
int nanosleep(const struct timespec *wanted, struct timespec *left);

/* Numbers of errors that the C runtime has no name for. */
#ifndef EDQUOT
#define EDQUOT 122
#endif
#ifndef ESTALE
#define ESTALE 116
#endif

#endif
