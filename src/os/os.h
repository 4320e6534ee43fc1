/* The platform, declared once. os_posix.c is one host, tests/faults/os_fake.c (all in
 * memory, every call can be made to fail) another. Nothing outside src/os and the
 * command knows an operating system.
 *
 * Every function that can fail returns 0 or an errno value (positive). Paths are
 * NUL-terminated bytes. Interrupted calls are restarted inside; only os_read and os_write
 * end with EINTR once a signal that os_watch_signals asked for has come.
 */
#ifndef SFTI_OS_H
#define SFTI_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum os_kind { OS_FILE, OS_DIR, OS_LINK, OS_PIPE, OS_OTHER } os_kind;

typedef struct os_info {
    os_kind kind;
    uint64_t size;
    uint32_t mode; /* permission bits */
    uint32_t links;
    uint64_t device, inode;
    int64_t mtime_ns;
} os_info;

/* ── Reading ── */
/* Never blocks on a FIFO: what is not a regular file is still opened, see os_info. */
int os_open_read(const char *path, int *fd);
int os_close(int fd);
int os_info_fd(int fd, os_info *out);
int os_info_path(const char *path, bool follow_link, os_info *out);
/* One read; *got 0 is the end. May return fewer bytes than asked. */
int os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got);
int os_read(int fd, void *into, size_t len, size_t *got);
int os_map(int fd, uint64_t len, bool writable_private, void **out);
void os_unmap(void *at, uint64_t len);
/* Real path of a link or file, into out[room]; ENAMETOOLONG if it does not fit. */
int os_real_path(const char *path, char *out, size_t room);

/* ── Folders ── */
/* Calls each(ctx, name, kind) for every entry but "." and ".."; stops early, and
 * returns that value, when each returns non-zero. Order is the system's. */
int os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
            void *ctx);

/* ── Writing ── */
/* Unnamed file in the folder of `path` (O_TMPFILE). EOPNOTSUPP where there is none. */
int os_open_unnamed(const char *folder, uint32_t mode, int *fd);
/* Exclusive creation, never through a link. */
int os_open_new(const char *path, uint32_t mode, int *fd);
/* Give an unnamed file a name; EEXIST if it is taken. */
int os_link_unnamed(int fd, const char *path);
int os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put);
int os_write(int fd, const void *from, size_t len, size_t *put);
int os_preallocate(int fd, uint64_t len); /* EOPNOTSUPP is for the caller to ignore */
int os_truncate(int fd, uint64_t len);
int os_set_mode(int fd, uint32_t mode);
int os_sync(int fd);
int os_sync_folder(const char *folder);
int os_rename(const char *from, const char *to, bool no_clobber);
int os_unlink(const char *path);
bool os_is_append(int fd);

/* ── The rest ── */
int os_random(void *into, size_t len);
uint64_t os_now_ns(void); /* monotonic */
uint64_t os_time_s(void); /* of the calendar, since 1970 */
void os_sleep_ms(uint32_t ms); /* a signal may end it */
uint32_t os_cpu_count(void);
const char *os_error_text(int error, char *room, size_t len); /* "No such file …" */
bool os_is_terminal(int fd);
uint32_t os_terminal_columns(int fd); /* 0 when unknown */
const char *os_env(const char *name);

/* Memory with the contract of sft_allocator.resize; large blocks come in huge pages
 * where the system has them, for fresh 4 KiB pages cost more than parsing. */
void *os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size);

/* Threads: started with all signals blocked. */
typedef struct os_thread { void *handle[2]; } os_thread;
typedef struct os_mutex { uint64_t room[8]; } os_mutex;
int os_thread_start(os_thread *thread, void (*run)(void *ctx), void *ctx);
void os_thread_join(os_thread *thread);
int os_mutex_init(os_mutex *mutex);
void os_mutex_lock(os_mutex *mutex);
void os_mutex_unlock(os_mutex *mutex);
void os_mutex_free(os_mutex *mutex);

/* Ask to be told of INT, TERM, HUP instead of dying: os_stop_signal() then returns the
 * signal's number, 0 before. The library never calls this; the command does. */
void os_watch_signals(void);
int os_stop_signal(void);
/* Die of that signal after cleaning up (default action restored, raised). */
void os_raise(int signal);
void os_ignore_broken_pipe(void);

#endif
