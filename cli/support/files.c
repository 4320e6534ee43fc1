/* Paths in parts, names that any file system takes, and small files read whole. */
#include "support/files.h"

#include "base/files.h"
#include "base/portable.h"
#include "base/sink.h"
#include "base/utf8.h"
#include "os/io.h"
#include "support/hints.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

/* ── Paths ── */

sft_span cli_folder_of(const char *path) {
    size_t len = sfti_folder_len(path), root = sfti_root_len(path);
    /* "/" is written as "", and that of a drive as it is. */
    return (sft_span){ path, len > root || len == 1 ? len - 1 : len };
}

sft_span cli_name_of(const char *path) {
    return sfti_path_name(sft_span_cstr(path));
}

static bool folder_info(sfti_arena *arena, const char *path, os_info *out) {
    size_t len = sfti_folder_len(path);
    const char *folder = len > 0 ? sfti_arena_copy(arena, path, len) : ".";
    return folder && !sfti_os_info_path(folder, true, out);
}

bool cli_in_one_folder(const cli *c, const char *a, const char *b) {
    sfti_arena arena = { .alloc = c->alloc };
    os_info x, y;
    bool one = folder_info(&arena, a, &x) && folder_info(&arena, b, &y) && x.device == y.device
            && x.inode == y.inode;
    sfti_arena_free(&arena);
    return one;
}

char *cli_join_path(sfti_arena *arena, sft_span dir, const char *name) {
    size_t len = strlen(name);
    char joint = sfti_path_joint(dir);
    char *path = sfti_arena_take(arena, dir.len + 1 + len + 1);
    if (!path) return NULL;
    if (dir.len) memcpy(path, dir.data, dir.len);
    if (joint) path[dir.len] = joint;
    memcpy(path + dir.len + (joint != 0), name, len + 1);
    return path;
}

char *cli_absolute(sfti_arena *arena, const char *path, int *error) {
    char folder[4096], real[4096];
    sft_span name = cli_name_of(path);
    *error = 0;
    if (!sfti_folder_copy(path, folder, sizeof folder)) *error = ENAMETOOLONG;
    if (!*error) *error = sfti_os_real_path(folder, real, sizeof real);
    return *error ? NULL : cli_join_path(arena, sft_span_cstr(real), name.data);
}

/* ── Safe names ── */

void cli_safe_name(sft_span name, size_t most, char *buffer) {
    size_t len = cli_cut(name, most).len;
    for (size_t i = 0, step; i < len; i += step) {
        /* A character of more than one byte stays if it can be shown as it is. */
        char shown[16], ch = name.data[i];
        uint32_t code;
        const uint8_t *p = (const uint8_t *)name.data + i;
        size_t used = 0;
        step = sfti_utf8_decode(p, p + (len - i), &code);
        bool stays = step > 1
                  && sfti_escape(name.data + i, step, shown, sizeof shown, &used) == step
                  && memcmp(shown, name.data + i, step) == 0;
        bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
                  || (ch >= '0' && ch <= '9') || (ch && strchr("-_.+ ()", ch));
        if (!stays) step = 1;
        if (stays) memcpy(buffer + i, name.data + i, step);
        else buffer[i] = plain ? ch : '_';
    }
    if (len == 0 || buffer[0] == '.' || buffer[0] == '-' || buffer[0] == ' ') {
        memmove(buffer + 1, buffer, len < most ? len : --len);
        buffer[0] = '_';
        len++;
    }
    if (buffer[len - 1] == '.' || buffer[len - 1] == ' ') buffer[len - 1] = '_';
    const char *why;
    if (!sfti_name_portable((sft_span){ buffer, len }, &why)) buffer[0] = '_'; /* a device */
    buffer[len] = 0;
}

/* ── Whole files ── */

int cli_open_beside(const char *path, int *fd) {
    char folder[4096] = "";
    const char *name = cli_name_of(path).data;
    if (name > path && !sfti_folder_copy(path, folder, sizeof folder)) return ENAMETOOLONG;
    return sfti_os_open_beneath(folder, name, OS_BENEATH_READ, fd);
}

/* All bytes of a descriptor into *out; at most `most`. */
static sft_code read_fd(cli *c, int fd, uint64_t most, sft_buffer *out, sft_error *err) {
    sft_source source;
    sft_code code = sft_source_fd(fd, &c->alloc, &source, err);
    if (code) return code;
    bool sized = source.size != SFT_SIZE_UNKNOWN, longer = sized && source.size > most;
    out->len = 0;
    /* Without a size no more than shows that it is too long: a device has no end. */
    char piece[8192];
    for (size_t got = 1; !sized && !code && got > 0 && out->len <= most;) {
        code = sft_source_read(&source, out->len, piece, sizeof piece, &got, err);
        if (!code && !sfti_buffer_put(out, piece, got))
            code = sfti_fail_memory(err, out->len + got);
    }
    if (sized && !longer)
        code = sft_copy(&source, 0, SFT_SIZE_UNKNOWN, sft_sink_memory(out), NULL, err);
    if (!code && (longer || out->len > most))
        code = sfti_fail(err, SFT_FILE_TOO_LARGE, "expected at most %llu bytes, found more",
                         (unsigned long long)most);
    sft_source_close(&source);
    return code;
}

sft_code cli_read_beside(cli *c, int fd, uint64_t most, sft_buffer *out, sft_error *err) {
    os_info info;
    int error = sfti_os_info_fd(fd, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (info.kind == OS_FILE) return read_fd(c, fd, most, out, err);
    return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found %s",
                     info.kind == OS_DIR    ? "a folder"
                     : info.kind == OS_PIPE ? "a pipe"
                                            : "a device or socket");
}

sft_code cli_read_file(cli *c, const char *path, uint64_t most, sft_buffer *out,
                       sft_error *err) {
    int fd;
    os_info info;
    bool is_stdin = strcmp(path, "-") == 0;
    *out = (sft_buffer){ NULL, 0, 0, c->alloc };
    int error = is_stdin ? 0 : sfti_os_open_read(path, &fd);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (is_stdin) fd = 0;
    if (!sfti_os_info_fd(fd, &info) && info.kind == OS_FILE)
        sfti_mode_common(&c->read_mode, info.mode & 0777 ? info.mode : 0600);
    if (is_stdin) return read_fd(c, fd, most, out, err);
    sft_code code = read_fd(c, fd, most, out, err);
    (void)sfti_os_close(fd);
    return code;
}

sft_code cli_write_bytes(cli *c, const char *path, sft_path_options options, sft_span bytes,
                        sft_error *err) {
    sft_sink sink;
    options.alloc = &c->alloc;
    sft_code code = sft_sink_path(path, &options, &sink, err);
    return code ? code : sfti_sink_fill(&sink, bytes, err);
}

sft_span cli_read_text(const sft_buffer *bytes) {
    sft_span text = { bytes->data ? bytes->data : "", bytes->len };
    if (text.len < 3 || memcmp(text.data, "\xEF\xBB\xBF", 3) != 0) return text;
    return (sft_span){ text.data + 3, text.len - 3 };
}

/* ── Locks ── */

#define BUSY_MOST_NS (UINT64_C(10) * 1000 * 1000 * 1000)
#define LOCK_NAME ".own.sft-lock"

/* Open a lock file, made if need be: EAGAIN while one of that name is going, which Windows denies
 * until all have closed it. What is denied where there is none may have gone meanwhile: a folder
 * that nobody may write to denies it again. */
static int open_lock(cli_lock *lock) {
    bool windows = SFTI_OS_PATHS == SFTI_PATHS_WINDOWS, is_going = false;
    os_info info;
    int error;
    for (int tries = windows ? 5 : 1; tries > 0; tries--) {
        error = sfti_os_open_new(lock->path, 0666, &lock->fd);
        is_going = windows && error == EACCES
                && sfti_os_info_path(lock->path, false, &info) != ENOENT;
        if (error != EACCES || is_going) break;
    }
    bool was_there = error == EEXIST;
    if (was_there) error = sfti_os_open_no_link(lock->path, true, &lock->fd);
    if (error) lock->fd = -1;
    is_going |= was_there && (error == ENOENT || (windows && error == EACCES));
    return is_going ? EAGAIN : error;
}

/* A lock on a file counts only while the file has its name: who had it may have removed it. */
static int lock_file(cli_lock *lock) {
    os_info own, there;
    int error = open_lock(lock);
    if (error) return error;
    error = sfti_os_lock(lock->fd);
    if (!error
        && (sfti_os_info_fd(lock->fd, &own) || sfti_os_info_path(lock->path, false, &there)
            || own.inode != there.inode || own.device != there.device))
        error = EAGAIN;
    if (!error) return 0;
    if (error != EAGAIN) (void)sfti_os_unlink(lock->path);
    (void)sfti_os_close(lock->fd);
    lock->fd = -1;
    return error;
}

static int lock_once(const char *path, size_t len, cli_lock *lock) {
    static const char name[] = LOCK_NAME;
    memcpy(lock->path, len ? path : ".", len ? len : 2);
    if (len) lock->path[len] = '\0';
    int error = sfti_os_open_folder(lock->path, &lock->fd);
    if (!error) {
        error = sfti_os_lock(lock->fd);
        if (error) (void)sfti_os_close(lock->fd);
    }
    if (error) lock->fd = -1;
    if (!error || error == EAGAIN) {
        lock->path[0] = '\0';
        return error;
    }
    memcpy(lock->path + len, name, sizeof name);
    return lock_file(lock);
}

sft_code cli_lock_beside(const char *path, cli_lock *lock, sft_error *err) {
    size_t len = sfti_folder_len(path);
    uint64_t begin = sfti_os_now_ns();
    uint32_t ms = 0;
    lock->fd = -1;
    if (len + sizeof LOCK_NAME > sizeof lock->path) return SFT_OK;
    while (lock_once(path, len, lock) == EAGAIN)
        if (sfti_os_now_ns() - begin > BUSY_MOST_NS || !sfti_os_wait_more(&ms))
            return sfti_fail(err, SFT_EDIT_BUSY, "expected a folder in which nobody else writes a "
                                                 "note, found one that is busy");
    return SFT_OK;
}

void cli_lock_end(const cli_lock *lock) {
    if (lock->fd < 0) return;
    if (*lock->path) (void)sfti_os_unlink(lock->path);
    (void)sfti_os_close(lock->fd);
}

/* ── Folders ── */

static int any_entry(void *ctx, const char *name, os_kind kind) {
    (void)name, (void)kind;
    *(bool *)ctx = true;
    return 1;
}

sft_code cli_check_above(const char *path, const char *what, sft_error *err) {
    char folder[4096];
    os_info info;
    sft_span above = sfti_path_above(sfti_path_trimmed(sft_span_cstr(path)));
    if (above.len == 0 || above.len >= sizeof folder) return SFT_OK;
    memcpy(folder, above.data, above.len);
    folder[above.len] = '\0';
    int error = sfti_os_info_path(folder, true, &info);
    if (!error && info.kind != OS_DIR) error = ENOTDIR;
    return error ? sfti_io_fail(err, SFT_IO_OPEN, error, what) : SFT_OK;
}

sft_code cli_check_folder(const cli *c, const char *path, sft_error *err) {
    bool taken = false;
    int error = sfti_os_list(path, any_entry, &taken);
    if (error == ENOENT && !c->folder_unmade) return cli_check_above(path, "make the folder", err);
    if (!taken && error != ENOTDIR) return SFT_OK;
    return cli_fail_hint(err, SFT_EXISTS, SFT_HINT_NEW_FOLDER,
                         "expected a new or empty folder, found %s",
                         taken ? "files in it" : "a file");
}
