/* os.h on Windows: opening beneath a folder, part by part from handle to handle: each
 * part is opened itself, were it a link, and what it is is asked of what was opened. */
#include "os/os_win32.h"
#include "os/beneath.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ── One part ── */

static bool is_whole_path(const char *path) {
    return path[0] == '/' || (path[0] && path[1] == ':');
}

static const os_win_open as_folder = { FILE_TRAVERSE | WIN_READ_INFO, WIN_SHARE_ALL, 0, 0, 0 };
/* As long as it is open nobody renames it, or a folder above it. */
static const os_win_open as_held = { FILE_LIST_DIRECTORY | FILE_TRAVERSE | WIN_READ_INFO,
                                  FILE_SHARE_READ | FILE_SHARE_WRITE, 0, 0, 0 };
static const os_win_open as_read = { GENERIC_READ, WIN_SHARE_ALL, 0, 0, 0 };
static const os_win_open as_write = { GENERIC_READ | GENERIC_WRITE, WIN_SHARE_ALL, 0, 0, 0 };
static const os_win_open as_gone = { DELETE | FILE_WRITE_ATTRIBUTES | WIN_READ_INFO, WIN_SHARE_ALL,
                                  0, 0, 0 };

static NTSTATUS part_once(HANDLE at, UNICODE_STRING *name, const os_win_open *how, HANDLE *out) {
    const ULONG options = FILE_OPEN_REPARSE_POINT | FILE_OPEN_FOR_BACKUP_INTENT;
    OBJECT_ATTRIBUTES what;
    IO_STATUS_BLOCK io;
    InitializeObjectAttributes(&what, name, OBJ_CASE_INSENSITIVE, at, NULL);
    return NtCreateFile(out, how->access | SYNCHRONIZE, &what, &io, NULL, 0, how->share,
                        FILE_OPEN, options, NULL, 0);
}

/* Whether it is denied for a moment only. */
static bool part_may_pass(HANDLE at, UNICODE_STRING *name, DWORD access) {
    static const os_win_open look = { FILE_READ_ATTRIBUTES, WIN_SHARE_ALL, 0, 0, 0 };
    FILE_BASIC_INFO basic;
    HANDLE part;
    if (!sfti_os_win_is_denied_a_while(access, 0)) return false;
    if (part_once(at, name, &look, &part) < 0) return false;
    BOOL ok = GetFileInformationByHandleEx(part, FileBasicInfo, &basic, sizeof basic);
    (void)CloseHandle(part);
    return ok && sfti_os_win_is_denied_a_while(access, basic.FileAttributes);
}

/* EINVAL: no plain name. */
static int open_part(HANDLE at, const char *part, const os_win_open *how, HANDLE *out) {
    os_win_retry retry = { 0 };
    wchar_t *wide;
    *out = NULL;
    int error = sfti_os_win_wide(part, &wide);
    if (error) return error;
    size_t count = wcslen(wide);
    error = !sfti_os_win_name_is_plain(wide, count) ? EINVAL : count > 255 ? ENAMETOOLONG : 0;
    UNICODE_STRING name = { (USHORT)(count * sizeof *wide), (USHORT)(count * sizeof *wide), wide };
    while (!error) {
        NTSTATUS status = part_once(at, &name, how, out);
        if (status >= 0) break;
        error = status == WIN_STATUS_DELETED ? ENOENT : sfti_os_win_errno_status(status);
        bool passes = error == EBUSY || (error == EACCES && part_may_pass(at, &name, how->access));
        if (!passes) break;
        if (sfti_os_win_try_again(&retry)) error = 0;
        else if (retry.over) error = EINTR;
    }
    free(wide);
    if (error) *out = NULL;
    return error;
}

/* ── The walk ── */

#define WALK_AGAIN (-1) /* it was a link, and text has become another */

/* The part is open: if it is a link, that is followed as text. */
static int walk_link(sfti_walk *w, HANDLE part, const char *rest, bool links) {
    char target[SFTI_WALK_PATH];
    DWORD tag = sfti_os_win_tag(part);
    if (tag == 0 || !sfti_os_win_tag_is_link(tag)) return 0;
    int error = links ? sfti_os_win_link_text(part, target, sizeof target) : ELOOP;
    if (!error) error = is_whole_path(target) ? EXDEV : sfti_walk_splice(w, target, rest);
    return error ? error : WALK_AGAIN;
}

/* One folder more. */
static int walk_step(sfti_walk *w, HANDLE *at, char *slash, bool links) {
    HANDLE next;
    *slash = '\0';
    int error = open_part(*at, w->at, &as_folder, &next);
    if (!error) error = walk_link(w, next, slash + 1, links);
    if (error == WALK_AGAIN) {
        (void)CloseHandle(next);
        return error;
    }
    *slash = '/';
    if (!error && !sfti_os_win_is_folder(next)) error = ENOTDIR;
    if (error && next) (void)CloseHandle(next);
    if (error) return error;
    (void)CloseHandle(*at);
    *at = next;
    w->at = slash + 1;
    return 0;
}

static int walk_last(sfti_walk *w, HANDLE at, const os_win_open *how, bool links, HANDLE *out) {
    int error = open_part(at, w->at, how, out);
    if (error) return error;
    if (how != &as_gone) error = walk_link(w, *out, "", links);
    if (!error && how != &as_gone) error = sfti_os_win_open_through(how, out);
    bool folder = !error && sfti_os_win_is_folder(*out);
    if (!error && !folder && (how == &as_folder || how == &as_held)) error = ENOTDIR;
    if (folder && (how == &as_write || how == &as_gone)) error = EISDIR;
    if (error) (void)CloseHandle(*out);
    if (error) *out = NULL;
    return error;
}

static int walk_once(sfti_walk *w, HANDLE root, const os_win_open *how, bool links, HANDLE *out) {
    HANDLE at, process = GetCurrentProcess();
    int error = 0;
    if (!DuplicateHandle(process, root, process, &at, 0, FALSE, DUPLICATE_SAME_ACCESS))
        return sfti_os_win_last();
    w->at = w->text;
    while (!error && strchr(w->at, '/')) error = walk_step(w, &at, strchr(w->at, '/'), links);
    if (!error) error = walk_last(w, at, how, links, out);
    (void)CloseHandle(at);
    return error;
}

static int open_in(HANDLE root, const char *name, const os_win_open *how, bool links, HANDLE *out) {
    sfti_walk w;
    *out = NULL;
    int error = is_whole_path(name) ? EXDEV : sfti_walk_begin(&w, name);
    if (error) return error;
    do {
        error = walk_once(&w, root, how, links, out);
    } while (error == WALK_AGAIN);
    return error;
}

/* ── The whole ── */

/* A trusted path, links in it included. */
static int open_root(const char *folder, const os_win_open *how, HANDLE *out) {
    os_win_open own = *how;
    wchar_t *wide;
    int error = sfti_os_win_path(*folder ? folder : ".", &wide);
    if (error) return error;
    own.creation = OPEN_EXISTING;
    own.flags = FILE_FLAG_BACKUP_SEMANTICS;
    error = sfti_os_win_open_path(wide, &own, out);
    free(wide);
    if (error || sfti_os_win_is_folder(*out)) return error;
    (void)CloseHandle(*out);
    return ENOTDIR;
}

/* The folder that the last part of name lies in, no part of which is a link: *at is to be
 * closed, *last points into name. */
static int open_parent(HANDLE root, const char *name, HANDLE *at, const char **last) {
    char above[SFTI_WALK_PATH];
    HANDLE process = GetCurrentProcess();
    const char *slash = strrchr(name, '/');
    *last = slash ? slash + 1 : name;
    if (!slash)
        return DuplicateHandle(process, root, process, at, 0, FALSE, DUPLICATE_SAME_ACCESS)
                   ? 0 : sfti_os_win_last();
    if ((size_t)(slash - name) >= sizeof above) return ENAMETOOLONG;
    memcpy(above, name, (size_t)(slash - name));
    above[slash - name] = '\0';
    return open_in(root, above, &as_folder, false, at);
}

/* What the link `last` in the folder at, whose real path is link + 1, behind a slash, says of a Hub
 * cache: *root is the folder opened that out + *name lies in. link becomes the path of the link. */
static int follow_hub(HANDLE at, const char *last, char link[SFTI_WALK_PATH],
                      char out[SFTI_WALK_PATH], size_t *name, HANDLE *root) {
    char target[SFTI_WALK_PATH];
    HANDLE part;
    target[0] = '/'; /* for a whole path, which begins with a drive */
    int error = open_part(at, last, &as_folder, &part);
    if (error) return error;
    error = sfti_os_win_link_text(part, target + 1, sizeof target - 1);
    (void)CloseHandle(part);
    if (!error) error = sfti_walk_join(link, strlen(link), last, link, SFTI_WALK_PATH);
    if (error) return error;
    const char *says = is_whole_path(target + 1) ? target : target + 1;
    if (!sfti_hook_link || !sfti_hook_link(link, says, out, SFTI_WALK_PATH, name)) return EXDEV;
    return open_root(out + 1, &as_folder, root);
}

/* The real path of the folder that name lies in, behind a slash. */
static int real_parent(const char *folder, const char *name, char *real, size_t cap) {
    char path[SFTI_WALK_PATH];
    const char *slash = strrchr(name, '/');
    size_t len = slash ? (size_t)(slash - name) : 0;
    if (!*folder) folder = ".";
    int error = sfti_walk_join(folder, strlen(folder), name, path, sizeof path);
    if (error) return error;
    path[strlen(folder) + 1 + len] = '\0';
    real[0] = '/';
    return sfti_os_real_path(path, real + 1, cap - 1);
}

/* A link that leads out of the folder: from a snapshot to a blob of the same cache, which may
 * in turn be a link to one that all repositories share. */
static int open_hub(HANDLE root, const char *folder, const char *name, HANDLE *out) {
    char real[SFTI_WALK_PATH], blobs[SFTI_WALK_PATH];
    const char *last;
    size_t rest;
    HANDLE at, cache;
    int error = real_parent(folder, name, real, sizeof real);
    if (!error) error = open_parent(root, name, &at, &last);
    for (int hops = 0; !error; hops++) {
        error = follow_hub(at, last, real, blobs, &rest, &cache);
        (void)CloseHandle(at);
        if (error) break;
        error = open_in(cache, blobs + rest, &as_read, false, out);
        bool again = error == ELOOP && hops == 0;
        if (again) error = open_parent(cache, blobs + rest, &at, &last);
        (void)CloseHandle(cache);
        if (!again) return error;
        error = sfti_walk_join(blobs, strlen(blobs), "blobs", real, sizeof real);
    }
    return EXDEV;
}

int sfti_os_open_beneath(const char *folder, const char *name, os_beneath how, int *fd) {
    const os_win_open *as = how == OS_BENEATH_FOLDER  ? &as_held
                         : how == OS_BENEATH_WRITE ? &as_write
                                                   : &as_read;
    HANDLE root, found;
    bool itself = how == OS_BENEATH_FOLDER && !*name;
    *fd = -1;
    int error = open_root(folder, itself ? &as_held : &as_folder, &root);
    if (error) return error;
    if (itself) return sfti_os_win_fd_new(root, true, fd);
    error = open_in(root, name, as, how == OS_BENEATH_READ, &found);
    if (error == EXDEV && how == OS_BENEATH_READ) error = open_hub(root, folder, name, &found);
    (void)CloseHandle(root);
    return error ? error : sfti_os_win_fd_new(found, sfti_os_win_is_folder(found), fd);
}

int sfti_os_unlink_beneath(const char *folder, const char *name) {
    const char *last;
    HANDLE root, at, found;
    int error = open_root(folder, &as_folder, &root);
    if (error) return error;
    error = open_parent(root, name, &at, &last);
    (void)CloseHandle(root);
    if (error) return error;
    error = open_in(at, last, &as_gone, false, &found);
    (void)CloseHandle(at);
    if (error) return error;
    error = sfti_os_win_unlink(found);
    (void)CloseHandle(found);
    return error;
}
