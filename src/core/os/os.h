/* The platform, declared once. os_posix*.c with os_linux*.c are one host, os_posix*.c with
 * os_macos*.c another, os_win32*.c a third, os_wasi.c one for the core alone, and
 * tests/faults/os_fake.c (all in memory, every call can be made to fail) the last. Nothing outside
 * src/core/os and the command knows an operating system.
 *
 * Every function that can fail returns 0 or an errno value (positive). Paths are
 * NUL-terminated bytes. Interrupted calls are restarted inside; only sfti_os_read and sfti_os_write
 * end with EINTR, on every thread, once a signal that sfti_os_watch_signals asked for has come or
 * what sfti_os_on_wait was given says so.
 */
#ifndef SFTI_OS_H
#define SFTI_OS_H

#include "base/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How paths are taken apart. What this host itself makes of them, as in sfti_os_real_path, has '/'
 * on every system. */
#if defined(_WIN32)
#define SFTI_OS_PATHS SFTI_PATHS_WINDOWS
#else
#define SFTI_OS_PATHS SFTI_PATHS_POSIX
#endif

typedef enum os_kind { OS_FILE, OS_DIR, OS_LINK, OS_PIPE, OS_OTHER } os_kind;

#define OS_MODE_STICKY 01000u /* of a folder: only its owner replaces or removes a file */

typedef struct os_info {
    os_kind kind;
    uint64_t size;
    uint32_t mode; /* permission bits, and OS_MODE_STICKY */
    uint32_t links;
    uint64_t device, inode;
    uint32_t owner;  /* user id */
    int64_t mtime_ns; /* last change of the bytes, which anyone who may write can set back */
    int64_t ctime_ns; /* last change of bytes, name or attributes, set by the system alone */
    uint32_t block; /* bytes of a block of its file system, for whole ones; 0 unknown */
    bool is_no_link; /* sfti_os_open_look found it under its path itself; false: unknown */
} os_info;

/* ── Reading ── */
/* Never blocks on a FIFO: what is not a regular file is still opened, see os_info. Waits for
 * who has a lease on a regular file. */
int sfti_os_open_read(const char *path, int *fd);
/* The same with sfti_os_info_fd, for less than both cost. On failure nothing is open. */
int sfti_os_open_look(const char *path, int *fd, os_info *info);
/* The same, or sfti_os_open_write, but never through a link at the end of the path: ELOOP. */
int sfti_os_open_no_link(const char *path, bool writable, int *fd);
int sfti_os_close(int fd);
/* A descriptor of a caller's, for reads by position: itself, or where such reads move its own
 * offset a new one of the same file, to be closed. */
int sfti_os_positioned(int fd);
int sfti_os_info_fd(int fd, os_info *out);
int sfti_os_info_path(const char *path, bool follow_link, os_info *out);
/* One read; *got 0 is the end. May return fewer bytes than asked. */
int sfti_os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got);
int sfti_os_read(int fd, void *into, size_t len, size_t *got);
/* A descriptor of the same file for sfti_os_pread past the page cache: offset and length then in
 * whole units of 4096, and memory, too, but for disks that take other addresses; else EINVAL.
 * Fewer bytes only at the end of the file. EOPNOTSUPP where the file system does not. */
int sfti_os_open_direct(int fd, int *out);
/* How many bytes of [offset, offset + len) the page cache has. EOPNOTSUPP where nobody knows. */
int sfti_os_cached(int fd, uint64_t offset, uint64_t len, uint64_t *bytes);
/* Reads of this open file are small and lie apart, and the system brings in nothing besides; false:
 * what follows a read is likely to be read, as at first. A hint. */
void sfti_os_read_apart(int fd, bool apart);
/* Let the system begin to bring in bytes, and do not wait. A hint. */
void sfti_os_read_soon(int fd, uint64_t offset, uint64_t len);
int sfti_os_map(int fd, uint64_t len, bool writable_private, void **out);
void sfti_os_unmap(void *at, uint64_t len);
/* Copy count runs of len bytes, which lie at those offsets of a map, packed into `into`, by the
 * system: a page that the file no longer has ends it with EFAULT and without a signal. *got: the
 * bytes that were copied. EOPNOTSUPP where the system cannot, or not for less than a read each. */
int sfti_os_gather(const void *map, const uint64_t *offsets, size_t count, size_t len, void *into,
                   size_t *got);
/* Real path of a link or file, into out[cap]; ENAMETOOLONG if it does not fit. */
int sfti_os_real_path(const char *path, char *out, size_t cap);
/* What a link says, into out[cap]; EINVAL: it is no link. */
int sfti_os_read_link(const char *path, char *out, size_t cap);

/* ── Beneath a folder ──
 * For names that a file gave: of an index, a manifest, a folder that anyone may have packed.
 * The folder is trusted, links in its path included; "" is the current one. Whatever is done
 * to its contents meanwhile, what is opened lies beneath it. A FIFO blocks no more than in
 * sfti_os_open_read. EXDEV: a link leads out of the folder. */
typedef enum os_beneath {
    OS_BENEATH_READ,  /* links are followed that stay beneath the folder, and, as the last part,
                         those that sfti_hook_link knows */
    OS_BENEATH_OWN,   /* for reading; ELOOP if any part of the name is a link */
    OS_BENEATH_WRITE, /* for reading and writing; ELOOP likewise */
    OS_BENEATH_FOLDER /* a folder, "" the one itself, for sfti_os_path_in; ELOOP likewise */
} os_beneath;
int sfti_os_open_beneath(const char *folder, const char *name, os_beneath how, int *fd);
/* Whether a link at `link` (absolute, no part of it a link, "." or "..") that says `target` may be
 * followed out of its folder. Then out is the folder to open, and out + *name what lies beneath
 * it, of plain parts. The rule is of src/remote/ (caches of the Hub), or NULL where the library
 * was built without (src/without/remote.c): then no link leads out. */
typedef bool os_link_rule(const char *link, const char *target, char *out, size_t cap,
                          size_t *name);
extern os_link_rule *const sfti_hook_link;
/* Remove a name, were it a link's; ELOOP if a part above it is a link. */
int sfti_os_unlink_beneath(const char *folder, const char *name);
/* A path to a name in an open folder, which leads there whatever becomes of the folder's own
 * name. EOPNOTSUPP where the system has no such paths. */
int sfti_os_path_in(int folder, const char *name, char *out, size_t cap);

/* ── Folders ── */
/* Calls each(ctx, name, kind) for every entry but "." and ".."; stops early, and
 * returns that value, when each returns non-zero. Order is the system's. */
int sfti_os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
                 void *ctx);

/* ── Writing ── */
/* Unnamed file in the folder of `path` (O_TMPFILE). EOPNOTSUPP where there is none. */
int sfti_os_open_unnamed(const char *folder, uint32_t mode, int *fd);
/* Exclusive creation, never through a link. */
int sfti_os_open_new(const char *path, uint32_t mode, int *fd);
/* For reading and writing, a file that is there. Blocks and waits as sfti_os_open_read does. */
int sfti_os_open_write(const char *path, int *fd);
/* Give an unnamed file a name; EEXIST if it is taken. */
int sfti_os_link_unnamed(int fd, const char *path);
int sfti_os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put);
int sfti_os_write(int fd, const void *from, size_t len, size_t *put);
int sfti_os_preallocate(int fd, uint64_t len); /* EOPNOTSUPP is for the caller to ignore */
int sfti_os_truncate(int fd, uint64_t len);
int sfti_os_set_mode(int fd, uint32_t mode);
int sfti_os_sync(int fd);
/* For sfti_os_sync alone: what is done to the folder's names meanwhile. */
int sfti_os_open_folder(const char *folder, int *fd);
int sfti_os_sync_folder(const char *folder);
/* Copy inside the system, at most len bytes; *done of them, 0 at the end of `from`.
 * EOPNOTSUPP where these two files do not allow it: then read and write. */
int sfti_os_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len,
                       uint64_t *done);
/* The same by sharing blocks, all of len or nothing: whole blocks, but for the last of
 * `from`. EOPNOTSUPP where the file system does not share. */
int sfti_os_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len);
/* Insert whole blocks of zeros at offset `at`; what was there moves up.
 * EOPNOTSUPP where the file system cannot. */
int sfti_os_insert_range(int fd, uint64_t at, uint64_t len);
/* Take whole blocks out again: what is behind them moves down. */
int sfti_os_collapse_range(int fd, uint64_t at, uint64_t len);
/* First byte at or after `at` that no block holds; the file's length when there is none.
 * EOPNOTSUPP where nobody knows. */
int sfti_os_find_hole(int fd, uint64_t at, uint64_t *out);
/* Until given back or closed nobody else has the file open: who opens it waits. EAGAIN when
 * somebody has it open or mapped now; EOPNOTSUPP where there is no such thing. */
int sfti_os_lease(int fd, bool hold);
/* Lock among those who ask for it, until closed. EAGAIN when somebody holds it; EOPNOTSUPP
 * where the file system has no locks. */
int sfti_os_lock(int fd);
/* Let go of it at once: a process that was forked meanwhile has the file open, too. */
void sfti_os_unlock(int fd);
/* Number of this process: another one in a process that it forks. */
uint64_t sfti_os_process(void);
/* Bytes to the disk past the page cache: offset, length and memory then in whole units.
 * EOPNOTSUPP where the file system does not. */
int sfti_os_set_direct(int fd, bool direct);
/* Let the disk begin with bytes that were written, and do not wait: a hint to a later sfti_os_sync,
 * which alone tells of failures. */
void sfti_os_write_back(int fd, uint64_t offset, uint64_t len);
int sfti_os_set_mtime(int fd, int64_t mtime_ns);
int sfti_os_make_folder(const char *path, uint32_t mode);
int sfti_os_remove_folder(const char *path); /* an empty one */
int sfti_os_rename(const char *from, const char *to, bool no_clobber);
/* A second name of a file, which is new: EEXIST if it is taken. EXDEV: the folder is on another
 * file system; EOPNOTSUPP or EPERM: this one gives a file one name. A link is linked itself. */
int sfti_os_link(const char *from, const char *to);
int sfti_os_unlink(const char *path);
/* To the bin of the system, where the user finds it again. EOPNOTSUPP where the bin is a folder of
 * files that programs keep themselves (the Trash specification of freedesktop.org). */
int sfti_os_trash(const char *path);
bool sfti_os_is_append(int fd);

/* ── The rest ── */
int sfti_os_random(void *into, size_t len);
uint64_t sfti_os_now_ns(void); /* monotonic */
uint64_t sfti_os_time_s(void); /* of the calendar, since 1970 */
int32_t sfti_os_zone_s(uint64_t time_s); /* what the user's clock shows more than UTC then */
void sfti_os_sleep_ms(uint32_t ms); /* a signal may end it */
uint32_t sfti_os_user(void);        /* effective user id; 0 is the superuser */
uint32_t sfti_os_cpu_count(void);
/* A function of a shared library, which is loaded for it and stays; NULL if there is none. */
typedef void (*os_function)(void);
os_function sfti_os_library_function(const char *library, const char *name);
/* For a library that connects by itself: a new socket, and the bytes of the address in a struct
 * sockaddr of len bytes, in network order: 4, 16, or 0 if it is neither IPv4 nor IPv6. */
int sfti_os_socket_open(int family, int type, int protocol, int *fd);
size_t sfti_os_socket_address(const void *sockaddr, size_t len, uint8_t out[16]);
const char *sfti_os_error_text(int error, char *buffer, size_t len); /* "No such file …" */
/* At the start of a program: its words become UTF-8, and patterns of file names among them what
 * they match, where shells leave that to programs; the terminal takes UTF-8; memory that is freed
 * is kept for what comes next. */
int sfti_os_program_begin(int *argc, char ***argv);
bool sfti_os_is_terminal(int fd);
bool sfti_os_terminal_escapes(int fd); /* one that follows escape sequences: colours, lines */
uint32_t sfti_os_terminal_columns(int fd); /* 0 when unknown */
const char *sfti_os_env(const char *name);

/* Memory with the contract of sft_allocator.resize; large blocks come in huge pages
 * where the system has them, for fresh 4 KiB pages cost more than parsing. */
void *sfti_os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size);

/* Huge pages, for memory that is about to be filled for the first time. sfti_os_huge_ask wants
 * them for [at, at + len), whole ones; sfti_os_huge_quick makes the one at `at` and tells whether
 * that was quicker than small ones are. False where the system has none. */
#define OS_HUGE_PAGE ((size_t)2 << 20)
bool sfti_os_huge_ask(char *at, size_t len);
bool sfti_os_huge_quick(char *at);

/* Threads: started with all signals blocked, on a stack of OS_THREAD_STACK bytes, whatever the
 * limit of the process is (the system's default where the program's own thread-local variables
 * leave no room in that). What runs on one keeps its buffers elsewhere. */
#define OS_THREAD_STACK ((size_t)512 << 10)
typedef struct os_thread { void *handle[2]; } os_thread;
typedef struct os_mutex { uint64_t buffer[8]; } os_mutex;
int sfti_os_thread_start(os_thread *thread, void (*run)(void *ctx), void *ctx);
void sfti_os_thread_join(os_thread *thread);
int sfti_os_mutex_init(os_mutex *mutex);
void sfti_os_mutex_lock(os_mutex *mutex);
void sfti_os_mutex_unlock(os_mutex *mutex);
void sfti_os_mutex_free(os_mutex *mutex);
/* Run it if *done is false, and set that: once, were it called by several threads. */
void sfti_os_once(bool *done, void (*run)(void));
/* A condition over what a mutex guards. Who waits holds the mutex, gives it up while waiting, and
 * looks again after every wake. */
typedef struct os_cond { uint64_t buffer[8]; } os_cond;
int sfti_os_cond_init(os_cond *cond);
void sfti_os_cond_wait(os_cond *cond, os_mutex *mutex);
void sfti_os_cond_wait_for(os_cond *cond, os_mutex *mutex, uint32_t ms); /* at most */
void sfti_os_cond_wake(os_cond *cond); /* all who wait */
void sfti_os_cond_free(os_cond *cond);

/* Ask to be told of INT, TERM, HUP instead of dying: sfti_os_stop_signal() then returns the
 * signal's number, 0 before. A broken pipe and a file over the size limit become errors of their
 * writes. The library never calls this; the command does. */
void sfti_os_watch_signals(void);
int sfti_os_stop_signal(void);
/* Called while sfti_os_read, or an open of a leased file, waits: every tenth of a second at
 * least, and when a signal came, on the thread that waits; false ends that with EINTR. One for the
 * process, where the thread has none of its own; NULL: none. */
void sfti_os_on_wait(bool (*go_on)(void *ctx), void *ctx);
/* Whom this thread is to ask in place of that one, from options; NULL, or without go_on: none.
 * Returns who was asked before, to be put back before the caller returns. */
const sft_wait *sfti_os_wait_as(const sft_wait *wait);
/* Sleep before one more try: a millisecond at first (*ms 0), 20 at most. False, and at once, when
 * there is to be none. */
bool sfti_os_wait_more(uint32_t *ms);
/* Whether who waits is to end that: a signal came, or what sfti_os_on_wait was given says so, which
 * may wait for other threads: call it with no mutex held. */
bool sfti_os_wait_over(void);
/* Die of that signal after cleaning up (default action restored, raised). */
void sfti_os_raise(int signal);

#endif
