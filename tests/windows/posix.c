#include "posix.h"

#undef open
#undef fopen
#undef mkdir
#undef unlink
#undef remove
#undef rename
#undef chmod
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <direct.h>
#include <windows.h>

#include "os/os.h"

enum { WIDE_PATH = 4096 };

static const wchar_t *wide(const char *path, wchar_t *out) {
    if (!MultiByteToWideChar(CP_UTF8, 0, path, -1, out, WIDE_PATH)) abort();
    return out;
}

static int fails(int error) {
    errno = error;
    return -1;
}

/* The test that asked ends here, skipped. */
static int lacks(const char *what) {
    print_message("Windows, or wine, has no %s\n", what);
    skip();
    return fails(ENOSYS);
}

static int answer(int error) { return error ? fails(error) : 0; }

/* ── Files ── */

static struct timespec time_of(int64_t ns) {
    return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = (long)(ns % 1000000000) };
}

static void fill(struct posix_stat *out, const os_info *info) {
    static const mode_t kinds[] = { S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFCHR };
    *out = (struct posix_stat){ .st_dev = info->device, .st_ino = info->inode,
                                .st_mode = (mode_t)(kinds[info->kind] | info->mode),
                                .st_nlink = info->links, .st_uid = info->owner,
                                .st_size = (int64_t)info->size,
                                .st_blocks = (int64_t)(info->size + 511) / 512,
                                .st_atim = time_of(info->mtime_ns),
                                .st_mtim = time_of(info->mtime_ns),
                                .st_ctim = time_of(info->ctime_ns) };
}

static int info_of(const char *path, bool follow, struct posix_stat *out) {
    os_info info;
    int error = sfti_os_info_path(path, follow, &info);
    if (!error) fill(out, &info);
    return answer(error);
}

int posix_stat(const char *path, struct posix_stat *out) { return info_of(path, true, out); }
int posix_lstat(const char *path, struct posix_stat *out) { return info_of(path, false, out); }

int posix_fstat(int fd, struct posix_stat *out) {
    struct _stati64 st;
    if (_fstati64(fd, &st) != 0) return -1;
    *out = (struct posix_stat){ .st_mode = (mode_t)st.st_mode, .st_size = st.st_size };
    return 0;
}

/* With FILE_SHARE_DELETE, so that what is open here can be replaced as elsewhere. */
int posix_open(const char *path, int flags, ...) {
    wchar_t name[WIDE_PATH];
    DWORD access = flags & O_RDWR ? GENERIC_READ | GENERIC_WRITE
                   : flags & O_WRONLY ? GENERIC_WRITE : GENERIC_READ;
    DWORD how = flags & O_CREAT ? (flags & O_EXCL ? CREATE_NEW : OPEN_ALWAYS) : OPEN_EXISTING;
    if (flags & O_TRUNC) how = flags & O_CREAT ? CREATE_ALWAYS : TRUNCATE_EXISTING;
    HANDLE file = CreateFileW(wide(path, name), access,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, how,
                              FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return fails(GetLastError() == 5 ? EACCES : ENOENT);
    return _open_osfhandle((intptr_t)file, (flags & (O_APPEND | O_RDWR | O_WRONLY)) | _O_BINARY);
}

FILE *posix_fopen(const char *path, const char *mode) {
    wchar_t name[WIDE_PATH], how[WIDE_PATH];
    char binary[16];
    if (strpbrk(path + (path[0] && path[1] == ':' ? 2 : 0), ":*?\"<>|\n\x01\x1b"))
        (void)lacks("such names");
    (void)snprintf(binary, sizeof binary, "%s%s", mode, strchr(mode, 'b') ? "" : "b");
    return _wfopen(wide(path, name), wide(binary, how));
}

int posix_mkdir(const char *path, mode_t mode) {
    wchar_t name[WIDE_PATH];
    (void)mode;
    return _wmkdir(wide(path, name));
}

/* Files that may not be written can be removed elsewhere. */
int posix_unlink(const char *path) {
    wchar_t name[WIDE_PATH];
    (void)_wchmod(wide(path, name), _S_IREAD | _S_IWRITE);
    return _wunlink(name);
}

int posix_remove(const char *path) {
    wchar_t name[WIDE_PATH];
    return posix_unlink(path) == 0 ? 0 : _wrmdir(wide(path, name));
}

int posix_rename(const char *from, const char *to) {
    wchar_t old[WIDE_PATH], name[WIDE_PATH];
    return MoveFileExW(wide(from, old), wide(to, name), MOVEFILE_REPLACE_EXISTING) ? 0
                                                                                   : fails(EACCES);
}

int posix_chmod(const char *path, mode_t mode) {
    wchar_t name[WIDE_PATH];
    return _wchmod(wide(path, name), _S_IREAD | (mode & 0200 ? _S_IWRITE : 0));
}

int posix_truncate(const char *path, int64_t len) {
    int fd = posix_open(path, O_RDWR);
    if (fd < 0) return -1;
    int result = answer((int)_chsize_s(fd, len));
    (void)_close(fd);
    return result;
}

char *mkdtemp(char *pattern) {
    uint32_t digits;
    char *at = pattern + strlen(pattern) - 6;
    for (int tries = 0; tries < 100; tries++) {
        if (sfti_os_random(&digits, sizeof digits)) return NULL;
        (void)snprintf(at, 7, "%06x", (unsigned)(digits & 0xffffff));
        if (posix_mkdir(pattern, 0700) == 0) return pattern;
    }
    return NULL;
}

int symlink(const char *says, const char *path) {
    wchar_t to[WIDE_PATH], name[WIDE_PATH];
    bool made = CreateSymbolicLinkW(wide(path, name), wide(says, to), 0);
    /* wine 8 says so without making one. */
    return made && GetFileAttributesW(name) != INVALID_FILE_ATTRIBUTES ? 0 : lacks("links");
}

int link(const char *from, const char *to) {
    wchar_t old[WIDE_PATH], name[WIDE_PATH];
    return CreateHardLinkW(wide(to, name), wide(from, old), NULL) ? 0 : fails(EACCES);
}

int mkfifo(const char *path, mode_t mode) { (void)path, (void)mode; return lacks("FIFOs"); }

int pipe(int ends[2]) { return _pipe(ends, 65536, _O_BINARY | _O_NOINHERIT); }

char *realpath(const char *path, char *out) {
    char *into = out ? out : malloc(PATH_MAX);
    int error = into ? sfti_os_real_path(path, into, PATH_MAX) : ENOMEM;
    if (!error) return into;
    if (!out) free(into);
    errno = error;
    return NULL;
}

static int set_mtime(HANDLE file, const struct timespec *time) {
    int64_t ticks = ((int64_t)time->tv_sec + 11644473600) * 10000000 + time->tv_nsec / 100;
    FILETIME at = { (DWORD)ticks, (DWORD)(ticks >> 32) };
    return SetFileTime(file, NULL, NULL, &at) ? 0 : fails(EACCES);
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
    wchar_t name[WIDE_PATH];
    (void)folder, (void)flags;
    HANDLE file = CreateFileW(wide(path, name), FILE_WRITE_ATTRIBUTES, 7, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return fails(ENOENT);
    int result = set_mtime(file, &times[1]);
    CloseHandle(file);
    return result;
}

int utimes(const char *path, const struct timeval times[2]) {
    struct timespec both[2];
    for (int i = 0; i < 2; i++)
        both[i] = (struct timespec){ times[i].tv_sec, times[i].tv_usec * 1000 };
    return utimensat(AT_FDCWD, path, both, 0);
}

int futimens(int fd, const struct timespec times[2]) {
    return set_mtime((HANDLE)_get_osfhandle(fd), &times[1]);
}

static OVERLAPPED place(int64_t offset) {
    return (OVERLAPPED){ .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
}

ssize_t pread(int fd, void *into, size_t len, int64_t offset) {
    DWORD got = 0;
    OVERLAPPED at = place(offset);
    if (ReadFile((HANDLE)_get_osfhandle(fd), into, (DWORD)len, &got, &at)) return got;
    return GetLastError() == ERROR_HANDLE_EOF ? 0 : fails(EIO);
}

ssize_t pwrite(int fd, const void *from, size_t len, int64_t offset) {
    DWORD put = 0;
    OVERLAPPED at = place(offset);
    if (!WriteFile((HANDLE)_get_osfhandle(fd), from, (DWORD)len, &put, &at)) return fails(EIO);
    return put;
}

/* Where the library locks. */
int flock(int fd, int how) {
    OVERLAPPED at = { .OffsetHigh = 0x40000000 };
    HANDLE file = (HANDLE)_get_osfhandle(fd);
    DWORD flags = (how & LOCK_EX ? LOCKFILE_EXCLUSIVE_LOCK : 0u)
                  | (how & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0u);
    if (how & LOCK_UN) return UnlockFileEx(file, 0, 1, 0, &at) ? 0 : fails(EINVAL);
    return LockFileEx(file, flags, 0, 1, 0, &at) ? 0 : fails(EAGAIN);
}

int fcntl(int fd, int request, ...) {
    (void)request;
    return _get_osfhandle(fd) == -1 ? fails(EBADF) : 0;
}

/* ── A tree of folders, leaves first ── */

typedef struct leaves {
    const char *folder;
    char (*names)[512];
    size_t count;
} leaves;

static int keep_name(void *ctx, const char *name, os_kind kind) {
    leaves *all = ctx;
    (void)kind;
    all->names = realloc(all->names, (all->count + 1) * sizeof *all->names);
    if (!all->names) abort();
    (void)snprintf(all->names[all->count++], sizeof *all->names, "%s/%s", all->folder, name);
    return 0;
}

int nftw(const char *path, int (*each)(const char *, const struct posix_stat *, int, struct FTW *),
         int depth, int flags) {
    leaves all = { .folder = path };
    struct posix_stat st;
    struct FTW at = { 0, 0 };
    int result = posix_lstat(path, &st);
    if (result == 0 && S_ISDIR(st.st_mode)) (void)sfti_os_list(path, keep_name, &all);
    for (size_t i = 0; result == 0 && i < all.count; i++)
        result = nftw(all.names[i], each, depth, flags);
    free(all.names);
    return result ? result : each(path, &st, 0, &at);
}

/* ── Users, processes and limits ── */

uid_t getuid(void) { return 1; }
uid_t geteuid(void) { return 1; }
int seteuid(uid_t user) { (void)user; return fails(ENOSYS); }
int chown(const char *path, uid_t user, gid_t group) {
    (void)path, (void)user, (void)group;
    return lacks("owners that are numbers");
}
pid_t fork(void) { return lacks("fork"); }
pid_t waitpid(pid_t child, int *status, int flags) {
    (void)child, (void)status, (void)flags;
    return fails(ENOSYS);
}
pid_t wait(int *status) { (void)status; return fails(ENOSYS); }
int pause(void) { return fails(ENOSYS); }
int kill(pid_t process, int number) { (void)process, (void)number; return fails(ENOSYS); }
unsigned alarm(unsigned seconds) { (void)seconds; return 0; }
int setenv(const char *name, const char *value, int replace) {
    return !replace && getenv(name) ? 0 : _putenv_s(name, value);
}
int unsetenv(const char *name) { return _putenv_s(name, ""); }
int getrlimit(int what, struct rlimit *out) { (void)what, (void)out; return lacks("limits"); }
int setrlimit(int what, const struct rlimit *limit) {
    (void)what, (void)limit;
    return fails(ENOSYS);
}

/* ── Memory, threads and time ── */

static DWORD protection(int access) {
    return access == PROT_NONE ? PAGE_NOACCESS : access & PROT_WRITE ? PAGE_READWRITE
                                                                     : PAGE_READONLY;
}

void *mmap(void *at, size_t len, int access, int flags, int fd, int64_t offset) {
    (void)flags, (void)fd, (void)offset;
    void *found = VirtualAlloc(at, len, MEM_RESERVE | MEM_COMMIT, protection(access));
    return found ? found : MAP_FAILED;
}

int mprotect(void *at, size_t len, int access) {
    DWORD before;
    return VirtualProtect(at, len, protection(access), &before) ? 0 : fails(EINVAL);
}

int munmap(void *at, size_t len) {
    (void)len;
    return VirtualFree(at, 0, MEM_RELEASE) ? 0 : fails(EINVAL);
}

long sysconf(int name) { (void)name; return 4096; }

void *memmem(const void *in, size_t in_len, const void *what, size_t len) {
    const char *at = in;
    for (; in_len >= len; at++, in_len--)
        if (memcmp(at, what, len) == 0) return (void *)(uintptr_t)at;
    return NULL;
}

char *strndup(const char *text, size_t len) {
    size_t used = strnlen(text, len);
    char *copy = calloc(used + 1, 1);
    return copy ? memcpy(copy, text, used) : NULL;
}

struct posix_thread {
    HANDLE handle;
    void *(*run)(void *);
    void *ctx, *result;
};

static unsigned __stdcall run_thread(void *ctx) {
    struct posix_thread *one = ctx;
    one->result = one->run(one->ctx);
    return 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *ctx) {
    struct posix_thread *one = calloc(1, sizeof *one);
    if (!one) return ENOMEM;
    one->run = run;
    one->ctx = ctx;
    one->handle = (HANDLE)_beginthreadex(NULL, how ? (unsigned)how->stack : 0, run_thread, one,
                                         STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    *thread = one;
    return one->handle ? 0 : EAGAIN;
}

int pthread_join(pthread_t thread, void **result) {
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
    if (result) *result = thread->result;
    free(thread);
    return 0;
}

int pthread_attr_init(pthread_attr_t *how) { how->stack = 0; return 0; }
int pthread_attr_setstacksize(pthread_attr_t *how, size_t stack) { how->stack = stack; return 0; }
int pthread_attr_destroy(pthread_attr_t *how) { (void)how; return 0; }

int pthread_mutex_init(pthread_mutex_t *mutex, const void *how) {
    (void)how;
    mutex->lock = NULL;
    return 0;
}
int pthread_mutex_lock(pthread_mutex_t *mutex) {
    AcquireSRWLockExclusive((SRWLOCK *)&mutex->lock);
    return 0;
}
int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    ReleaseSRWLockExclusive((SRWLOCK *)&mutex->lock);
    return 0;
}
int pthread_mutex_destroy(pthread_mutex_t *mutex) { (void)mutex; return 0; }

int sched_yield(void) {
    (void)SwitchToThread();
    return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left) {
    (void)left;
    Sleep((DWORD)(wanted->tv_sec * 1000 + (wanted->tv_nsec + 999999) / 1000000));
    return 0;
}
