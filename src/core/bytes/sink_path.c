/* The sink of a path: a file that appears whole or not at all. Tests: test_sink.c. */
#include "base/mem.h"
#include "base/options.h"
#include "base/utf8.h"
#include "base/watch.h"
#include "bytes/direct.h"
#include "bytes/source.h"
#include "os/path.h"

#include <errno.h>
#include <string.h>

/* A file that appears whole. Each step, and what a crash after it leaves:
 *  1  a temporary file is created in the target's folder, unnamed where the system can: the old
 *     target. One that has a name (temp) stays until sft_sweep removes it
 *  2  bytes are written to it, then length, time and mode are set, and it is synced: as after 1
 *  3  it takes the target's name, by a link if that is free, else by a rename: the old target or
 *     the new one, each whole
 *  4  the folder is synced: the new target. Before this a power failure may bring the old one back
 * With in_place_unsafe, where the file system cannot rename:
 *  3' the old target is removed and its name written anew: no target, or part of one, and the
 *     whole new file as temp
 *
 *   target   the path as given, or where its link leads
 *   folder   what the target stands in, "." if it names none
 *   temp     folder/.NAME.sft-XXXXXX, once there is such a file
 * All three lie behind the struct, in one allocation. */
typedef struct path_sink {
    sft_allocator alloc;
    size_t bytes;
    sft_path_options options;
    char *target, *folder, *temp;
    size_t temp_stem; /* length of temp before XXXXXX */
    int fd, folder_fd; /* the folder is opened at step 1, so that step 4 cannot lack a descriptor */
    bool named;    /* temp exists */
    bool replaces; /* there was an old file when we began */
    bool failed;   /* bytes are missing: never publish */
    uint32_t limit; /* bits that the file may have: what limit_path left of 0777 */
    uint64_t preallocated, end;
    uint64_t fresh, fresh_end; /* written, and the disk has not been told to begin with it */
    sfti_direct direct;
} path_sink;

#define NO_MODE UINT32_MAX /* of a file that is not there */
#define TEMP_TRIES 64
#define TEMP_LETTERS 6
#define TEMP_NAME_MOST 200 /* of NAME in the temporary's name */
#define WRITE_BACK ((uint64_t)8 << 20)

/* ── Names ── */

/* Make a file of the temporary's name by opening one (mode) or by giving the unnamed
 * one its name; until a free name is found. */
static int temp_make(path_sink *s, bool link, uint32_t mode) {
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
    int error = EEXIST;
    for (int tries = 0; tries < TEMP_TRIES && error == EEXIST; tries++) {
        unsigned char bits[TEMP_LETTERS];
        error = sfti_os_random(bits, sizeof bits);
        if (error) return error;
        for (size_t i = 0; i < TEMP_LETTERS; i++)
            s->temp[s->temp_stem + i] = letters[bits[i] % 32];
        error = link ? sfti_os_link_unnamed(s->fd, s->temp)
                     : sfti_os_open_new(s->temp, mode, &s->fd);
    }
    s->named = error == 0;
    return error;
}

/* ── Ends ── */

static void path_sink_free(path_sink *s) {
    sft_allocator alloc = s->alloc;
    if (s->direct.in_use) sfti_direct_free(&s->direct);
    if (s->fd >= 0) (void)sfti_os_close(s->fd);
    if (s->folder_fd >= 0) (void)sfti_os_close(s->folder_fd);
    if (s->named) (void)sfti_os_unlink(s->temp);
    sfti_release(&alloc, s, s->bytes);
}

static void abandon_path(void *ctx) {
    path_sink_free(ctx);
}

static sft_code limit_path(void *ctx, uint32_t mode, sft_error *err) {
    path_sink *s = ctx;
    uint32_t limit = s->limit & (mode | 0700);
    os_info info;
    if (limit == s->limit) return SFT_OK;
    int error = sfti_os_info_fd(s->fd, &info);
    if (!error && (info.mode & 0777 & ~limit)) {
        error = sfti_os_set_mode(s->fd, info.mode & limit);
        /* A file system without modes says so, or gives what we made an owner of its own choice,
         * as a memory card's does that is mounted for everyone. */
        if (error == ENOSYS || error == EOPNOTSUPP ||
            (error == EPERM && info.owner != sfti_os_user()))
            error = 0;
    }
    if (error) {
        s->failed = true;
        return sfti_io_fail(err, SFT_IO_WRITE, error, "set the mode of the file");
    }
    s->limit = limit;
    return SFT_OK;
}

static sft_code expect_path(void *ctx, uint64_t total, sft_error *err) {
    path_sink *s = ctx;
    int error = sfti_os_preallocate(s->fd, total);
    if (error == EOPNOTSUPP) return SFT_OK;
    if (error) {
        s->failed = true;
        return sfti_io_fail(err, SFT_IO_WRITE, error, "allocate space for the file");
    }
    s->preallocated = total;
    return SFT_OK;
}

/* Start write-back as we go, so that the sync at the end has little left to do. */
static void path_written(path_sink *s, uint64_t offset, uint64_t len) {
    uint64_t end = offset + len;
    if (end > s->end) s->end = end;
    if (s->options.no_sync) return;
    if (offset != s->fresh_end) s->fresh = offset;
    s->fresh_end = end;
    if (end - s->fresh < WRITE_BACK && end != s->preallocated) return;
    sfti_os_write_back(s->fd, s->fresh, end - s->fresh);
    s->fresh = end;
}

static sft_code write_path(void *ctx, uint64_t offset, const void *bytes, size_t len,
                           sft_error *err) {
    path_sink *s = ctx;
    for (size_t done = 0; done < len;) {
        size_t put = 0;
        int error = sfti_os_pwrite(s->fd, (const char *)bytes + done, len - done, offset + done,
                                   &put);
        if (!error && put == 0) error = EIO;
        if (error) {
            s->failed = true;
            sft_code code = sfti_io_fail(err, SFT_IO_WRITE, error, "write");
            if (err) err->offset = offset + done;
            return code;
        }
        path_written(s, offset + done, put);
        done += put;
    }
    return SFT_OK;
}

static sft_code direct_failed(path_sink *s, int error, sft_error *err) {
    s->failed = true;
    sft_code code = sfti_io_fail(err, SFT_IO_WRITE, error, "write");
    if (err) err->offset = s->direct.failed_at;
    return code;
}

static sft_code write_direct(void *ctx, uint64_t offset, const void *bytes, size_t len,
                             sft_error *err) {
    path_sink *s = ctx;
    if (offset != s->end) {
        s->failed = true;
        return sfti_fail_byte(err, SFT_OUT_OF_ORDER, offset, "expected bytes for offset %llu next, "
                              "for they go to the disk in order", (unsigned long long)s->end);
    }
    int error = sfti_direct_write(&s->direct, bytes, len);
    s->end += len;
    return error ? direct_failed(s, error, err) : SFT_OK;
}

/* ── Publishing ── */

static sft_code publish_failed(int error, sft_error *err) {
    sft_code code;
    if (error == EEXIST) {
        code = sfti_fail(err, SFT_EXISTS, "already exists");
    } else if (!sfti_no_renaming(error)) {
        return sfti_io_fail(err, SFT_IO_PUBLISH, error, "publish the file");
    } else {
        char buffer[128];
        code = sfti_fail(err, SFT_IO_PUBLISH, "expected a file system that lets a file take "
                         "another's name, found one that does not: %s",
                         sfti_os_error_text(error, buffer, sizeof buffer));
        sfti_hint(err, SFT_HINT_OBJECT_STORE);
    }
    if (err) err->os_errno = error;
    return code;
}

/* Whether the temporary can take a third name: then it is the target that is protected, not the
 * file system that cannot rename. It keeps that name. */
static bool renames_else(path_sink *s) {
    char other[4608];
    size_t len = strlen(s->temp);
    int error = EEXIST;
    if (len >= sizeof other) return false;
    memcpy(other, s->temp, len + 1);
    for (char letter = 'a'; letter < 'e' && error == EEXIST; letter++) {
        other[len - 1] = letter;
        if (letter != s->temp[len - 1]) error = sfti_rename_new(s->temp, other);
    }
    if (!error) memcpy(s->temp, other, len);
    return !error;
}

/* ── Without renaming ── */

#define OVER_BLOCK ((size_t)1 << 20)

static int over_bytes(const path_sink *s, int from, int to, char *buffer) {
    size_t got = OVER_BLOCK;
    uint64_t at = 0;
    for (; got == OVER_BLOCK; at += got) {
        int error = sfti_read_all(from, buffer, OVER_BLOCK, at, &got);
        if (!error) error = sfti_write_all(to, buffer, got, at);
        if (error) return error;
    }
    return at == s->end ? 0 : EIO;
}

/* Step 3'. Object stores take whole new files only, so the old one is removed first. *gone: it is
 * no longer there. */
static int over_target(path_sink *s, bool *gone) {
    os_info info;
    int from = -1, to = -1, error = sfti_os_open_read(s->temp, &from);
    bool old = s->replaces && !s->options.no_clobber;
    char *buffer = sfti_take(&s->alloc, OVER_BLOCK);
    if (!error && !buffer) error = ENOMEM;
    if (!error) error = sfti_os_info_fd(from, &info);
    if (!error && old) error = sfti_os_unlink(s->target);
    *gone = old && !error;
    if (!error) error = sfti_os_open_new(s->target, info.mode & 0600, &to);
    if (error) goto done;

    error = over_bytes(s, from, to, buffer);
    if (!error) { /* a mode that cannot be set leaves the file less accessible, never more */
        error = sfti_os_set_mode(to, info.mode & 0777);
        if (sfti_no_renaming(error)) error = 0;
    }
    if (!error && s->options.has_mtime) error = sfti_os_set_mtime(to, s->options.mtime_ns);
    if (!error && !s->options.no_sync) error = sfti_os_sync(to);
    int closed = sfti_os_close(to);
    if (!error) error = closed;
    if (error && sfti_os_unlink(s->target)) *gone = true;
done:
    sfti_release(&s->alloc, buffer, OVER_BLOCK);
    if (from >= 0) (void)sfti_os_close(from);
    return error;
}

static sft_code publish_over(path_sink *s, sft_error *err) {
    char text[128];
    bool gone = false;
    int error = over_target(s, &gone);
    if (!error) return SFT_OK;
    if (error == ENOMEM && !gone) return sfti_fail_memory(err, OVER_BLOCK);
    if (error == EEXIST && !gone) return publish_failed(error, err);
    if (!gone) return sfti_io_fail(err, SFT_IO_PUBLISH, error, "overwrite the file");
    s->named = false; /* it stays */
    sfti_fail(err, SFT_IO_PUBLISH,
              "cannot overwrite the file: %s; the complete new contents are in %s beside it",
              sfti_os_error_text(error, text, sizeof text), s->temp + sfti_folder_len(s->temp));
    if (err) err->os_errno = error;
    return SFT_IO_PUBLISH;
}

static sft_code finish_path(void *ctx, sft_error *err) {
    path_sink *s = ctx;
    sft_code code = SFT_OK;
    int error = 0;
    const char *what = NULL;
    if (s->failed) {
        code = sfti_fail(err, SFT_WRITER_FAILED,
                         "expected all bytes to be written, found that a write had failed");
        goto done;
    }
    /* The end of step 2. */
    if (s->direct.in_use) error = sfti_direct_end(&s->direct);
    if (error) {
        code = direct_failed(s, error, err);
        goto done;
    }
    if (s->preallocated > s->end && (error = sfti_os_truncate(s->fd, s->end)) != 0)
        what = "cut the file to its length";
    if (!error && s->options.has_mtime
        && (error = sfti_os_set_mtime(s->fd, s->options.mtime_ns)) != 0)
        what = "set the time of the last change";
    if (what) code = sfti_io_fail(err, SFT_IO_WRITE, error, what);
    if (!code && !s->options.no_sync && (error = sfti_os_sync(s->fd)) != 0)
        code = sfti_io_fail(err, SFT_IO_SYNC, error, "sync the file");
    if (!code && sfti_hook_watch) code = sfti_hook_watch->publishes(s->target, err);
    if (code) goto done;

    /* Step 3. An unnamed file can take a free name but replace nothing; for that it takes a
     * temporary name first and is then renamed. */
    const bool no_clobber = s->options.no_clobber;
    if (!s->named) {
        error = !s->replaces || no_clobber ? sfti_os_link_unnamed(s->fd, s->target) : EEXIST;
        if (error == EEXIST && !no_clobber) error = temp_make(s, true, 0);
    } else {
        error = sfti_os_close(s->fd);
        s->fd = -1;
    }
    if (!error && s->named) {
        error = no_clobber ? sfti_rename_new(s->temp, s->target)
                           : sfti_os_rename(s->temp, s->target, false);
        if (!error) s->named = false;
    }
    if (s->options.in_place_unsafe && sfti_no_renaming(error)) {
        code = publish_over(s, err);
        error = 0;
    }
    if (error == EPERM && s->named && s->replaces && !no_clobber && renames_else(s)) {
        code = sfti_fail(err, SFT_IO_PUBLISH, "expected a file that may be replaced, found one "
                         "that is immutable, or another user's in a sticky folder");
        if (err) err->os_errno = error;
    } else if (error) {
        code = publish_failed(error, err);
    }
    if (code) goto done;

    /* Step 4. If it fails, a file that took a free name is removed again. One that has replaced
     * another stays and is whole, so that this is no failure. */
    error = s->folder_fd >= 0 ? sfti_os_sync(s->folder_fd) : 0;
    bool fresh = !s->replaces || no_clobber;
    if (error && !sfti_no_folder_sync(error) && fresh && sfti_os_unlink(s->target) == 0)
        code = sfti_io_fail(err, SFT_IO_SYNC, error, "sync the folder of the published file");
done:
    path_sink_free(s);
    return code;
}

/* ── Beginning ── */

static const sft_sink_vtable direct_sink_vtable = {
    sizeof(sft_sink_vtable), expect_path, write_direct, finish_path, abandon_path, limit_path, NULL
};

static const sft_sink_vtable path_sink_vtable = {
    sizeof(sft_sink_vtable), expect_path, write_path, finish_path, abandon_path, limit_path, NULL
};

bool sfti_path_pass(const sft_sink *sink, uint64_t at, int from, uint64_t begin, uint64_t len,
                    uint64_t *put) {
    *put = 0;
    if (sink->vtable != &path_sink_vtable) return false;
    path_sink *s = sink->ctx;
    if (sfti_os_copy_range(from, begin, s->fd, at, len, put) || *put == 0) return false;
    path_written(s, at, *put);
    return true;
}

bool sfti_path_clone(const sft_sink *sink, uint64_t at, int from, uint64_t begin, uint64_t len) {
    path_sink *s = sink->ctx;
    if (sink->vtable != &path_sink_vtable) return false;
    if (sfti_os_clone_range(from, begin, s->fd, at, len)) return false;
    if (at + len > s->end) s->end = at + len;
    return true;
}

sft_code sft_sink_path(const char *path, const sft_path_options *options, sft_sink *out,
                       sft_error *err) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789+-.";
    char real[4096];
    const char *target = path;
    os_info old;
    sft_path_options own;
    if (out) memset(out, 0, sizeof *out);
    sft_code code = sfti_take_path(options, &own, err);
    if (code) return code;
    if (!out || !path)
        return sfti_misuse(err, "expected a path and a place for the sink, found NULL");
    if ((unsigned)own.link > SFT_LINK_REFUSE || own.mode > 0777)
        return sfti_misuse(err, "expected a link policy up to 2 and a mode up to 0777, found %d "
                           "and 0%o", (int)own.link, (unsigned)own.mode);
    /* "word://": no folder of the system is meant. */
    size_t word = strspn(path, letters);
    if (word > 1 && strncmp(path + word, "://", 3) == 0)
        return sfti_misuse(err,
                           "expected the path of a file, found a URL: what is there is only read");
    if (!path[sfti_folder_len(path)])
        return sfti_misuse(err, "expected the path of a file, found \"%s\"", path);
    int error = sfti_os_info_path(path, false, &old);
    bool follows = own.link != SFT_LINK_REPLACE;
    if (follows && !error && old.kind == OS_LINK) {
        /* The bytes are to appear where the link leads. */
        error = sfti_os_real_path(path, real, sizeof real);
        if (own.link == SFT_LINK_REFUSE)
            return sfti_fail(err, SFT_IS_LINK, "expected a file, found a symbolic link to %s",
                             error ? "what cannot be reached" : real);
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "follow the symbolic link");
        target = real;
        error = sfti_os_info_path(target, false, &old);
    }
    bool replaces = !error;
    if (!error && old.kind == OS_LINK) error = sfti_os_info_path(target, true, &old);
    if (error && error != ENOENT && (error != ELOOP || follows))
        return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the file to be replaced");
    if (!error && old.kind != OS_FILE)
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file or nothing at the path, found %s",
                         old.kind == OS_DIR ? "a folder" : "something that is no regular file");

    sft_allocator alloc = sfti_allocator(own.alloc);
    /* The names lie behind the struct. folder keeps its slash at the end, which every call takes,
     * and is "." without one. */
    size_t whole = strlen(target), folder = sfti_folder_len(target);
    size_t name = whole - folder;
    if (name > TEMP_NAME_MOST) name = sfti_utf8_cut(sft_span_cstr(target + folder), TEMP_NAME_MOST);
    size_t temp = folder + name + sizeof "/..sft-" + TEMP_LETTERS;
    size_t bytes = sizeof(path_sink) + (whole + 1) + (folder + 2) + temp;
    path_sink *s = sfti_take(&alloc, bytes);
    if (!s) return sfti_fail_memory(err, sizeof *s + 3 * (uint64_t)whole);
    memset(s, 0, bytes);
    s->alloc = alloc;
    s->bytes = bytes;
    s->target = (char *)(s + 1);
    s->folder = s->target + whole + 1;
    s->temp = s->folder + folder + 2;
    memcpy(s->target, target, whole);
    memcpy(s->folder, folder > 0 ? target : ".", folder > 0 ? folder : 1);
    memcpy(s->temp, target, folder);
    s->temp[folder] = '.';
    memcpy(s->temp + folder + 1, target + folder, name);
    memcpy(s->temp + folder + 1 + name, ".sft-", 5);
    s->temp_stem = folder + 1 + name + 5;
    s->fd = s->folder_fd = -1;
    s->options = own;
    s->replaces = replaces;
    s->limit = 0777;

    /* Step 1. At no time may more people open the new file than could open the old one. */
    uint32_t mode = own.mode != 0 ? own.mode : error ? NO_MODE : old.mode & 0777;
    uint32_t first = mode != NO_MODE ? mode & 0600 : 0666;
    error = EOPNOTSUPP;
    if (!own.in_place_unsafe) error = sfti_os_open_unnamed(s->folder, first, &s->fd);
    if (error == EOPNOTSUPP) error = temp_make(s, false, first);
    if (!error && mode != NO_MODE) error = sfti_os_set_mode(s->fd, mode);
    if (error) {
        path_sink_free(s);
        return sfti_io_fail(err, SFT_IO_OPEN, error, "create a file in that folder");
    }
    if (!own.no_sync && !own.no_sync_folder) {
        error = sfti_os_open_folder(s->folder, &s->folder_fd);
        if (error) s->folder_fd = -1;
    }
    if (error && !sfti_no_folder_sync(error)) {
        path_sink_free(s);
        return sfti_io_fail(err, SFT_IO_OPEN, error, "open the folder, to sync it later");
    }
    bool direct = own.direct && sfti_direct_begin(&s->direct, s->fd, &alloc);
    sft_sink sink = { s, direct ? &direct_sink_vtable : &path_sink_vtable, !direct };
    *out = sink;
    return SFT_OK;
}
