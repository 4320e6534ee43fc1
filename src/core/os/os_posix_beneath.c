/* Opening beneath a folder: the kernel's openat2 where there is one, else part by part. */
#include "os/os_posix.h"
#include "os/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BENEATH_TRIES 16

#ifdef O_PATH
#define FOLDER_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)
#define LOOK_FLAGS (O_PATH | O_CLOEXEC)
#else
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define LOOK_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#endif

static bool is_link_at(int at, const char *name) {
    struct stat st;
    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static int read_link_at(int at, const char *name, char *out, size_t cap) {
    ssize_t n = readlinkat(at, name, out, cap);
    if (n < 0) return errno;
    if ((size_t)n >= cap) return ENAMETOOLONG;
    out[n] = '\0';
    return 0;
}

/* ── Part by part ── */

#define WALK_AGAIN (-1) /* it was a link, and text has become another */

/* One folder more. */
static int walk_step(sfti_walk *w, int *at, char *slash, bool links) {
    char target[SFTI_WALK_PATH];
    int next, error;
    *slash = '\0';
    error = sfti_os_posix_open(*at, w->at, FOLDER_FLAGS | O_NOFOLLOW, 0, &next);
    if (error && is_link_at(*at, w->at)) {
        error = links ? read_link_at(*at, w->at, target, sizeof target) : ELOOP;
        if (!error) error = sfti_walk_splice(w, target, slash + 1);
        return error ? error : WALK_AGAIN;
    }
    *slash = '/';
    if (error) return error;
    (void)close(*at);
    *at = next;
    w->at = slash + 1;
    return 0;
}

static int walk_last(sfti_walk *w, int at, int flags, bool links, int *fd) {
    char target[SFTI_WALK_PATH];
    int error = sfti_os_posix_open(at, w->at, flags | O_NOFOLLOW, 0, fd);
    bool link = is_link_at(at, w->at); /* O_PATH opens a link itself */
    if (!link) return error;
    if (!error) (void)close(*fd);
    *fd = -1;
    error = links ? read_link_at(at, w->at, target, sizeof target) : ELOOP;
    if (!error) error = sfti_walk_splice(w, target, "");
    return error ? error : WALK_AGAIN;
}

/* ── By the kernel, or part by part ── */

/* Sandboxes answer EPERM for calls that they do not know. */
static int open_once(int root, const char *name, int flags, bool links, int *fd) {
    int error = sfti_os_kernel_beneath(root, name, flags, links, fd);
    if (error != ENOSYS && error != EPERM && error != EOPNOTSUPP) return error;
    sfti_walk w;
    *fd = -1;
    error = sfti_walk_begin(&w, name);
    if (error) return error;
    do {
        int at;
        error = sfti_os_posix_open(root, ".", FOLDER_FLAGS, 0, &at);
        if (error) return error;
        w.at = w.text;
        while (!error && strchr(w.at, '/'))
            error = walk_step(&w, &at, strchr(w.at, '/'), links);
        if (!error) error = walk_last(&w, at, flags, links, fd);
        (void)close(at);
    } while (error == WALK_AGAIN);
    return error;
}

/* EAGAIN is of a folder that is being renamed, which passes, or of a regular file under a
 * lease, which is waited for; never in an open itself, for a FIFO may take the name. */
static int open_in(int root, const char *name, int flags, bool links, int *fd) {
    uint32_t ms = 0;
    struct stat st;
    int look, tries = 0, error = open_once(root, name, flags, links, fd);
    while (error == EAGAIN) {
        bool seen = open_once(root, name, LOOK_FLAGS, links, &look) == 0;
        bool leased = seen && fstat(look, &st) == 0 && S_ISREG(st.st_mode);
        if (seen) (void)close(look);
        if (!leased && ++tries > BENEATH_TRIES) return error;
        if (leased && !sfti_os_wait_more(&ms)) return EINTR;
        error = open_once(root, name, flags, links, fd);
    }
    return error;
}

/* ── The whole ── */

/* The folder that the last part of name lies in, no part of which is a link: *at is to be
 * closed, *last points into name. */
static int open_parent(int root, const char *name, int *at, const char **last) {
    char above[SFTI_WALK_PATH];
    const char *slash = strrchr(name, '/');
    *last = slash ? slash + 1 : name;
    if (!slash) return sfti_os_posix_open(root, ".", FOLDER_FLAGS, 0, at);
    if ((size_t)(slash - name) >= sizeof above) return ENAMETOOLONG;
    memcpy(above, name, (size_t)(slash - name));
    above[slash - name] = '\0';
    return open_in(root, above, FOLDER_FLAGS, false, at);
}

/* What the link `last` in the folder at, whose real path is `link`, says of a Hub cache: *root
 * is the folder opened that out + *name lies in. link becomes the path of the link. */
static int follow_hub(int at, const char *last, char link[SFTI_WALK_PATH], char out[SFTI_WALK_PATH],
                      size_t *name, int *root) {
    char target[SFTI_WALK_PATH];
    size_t len = strlen(link), rest = strlen(last) + 1;
    int error = read_link_at(at, last, target, sizeof target);
    if (error) return error;
    if (rest >= SFTI_WALK_PATH - len) return ENAMETOOLONG;
    link[len] = '/';
    memcpy(link + len + 1, last, rest);
    if (!sfti_hook_link || !sfti_hook_link(link, target, out, SFTI_WALK_PATH, name)) return EXDEV;
    return sfti_os_posix_open(AT_FDCWD, out, FOLDER_FLAGS | O_NOFOLLOW, 0, root);
}

/* The real path of the folder that name lies in. */
static int real_parent(const char *folder, const char *name, char *real, size_t cap) {
    char path[SFTI_WALK_PATH];
    const char *slash = strrchr(name, '/');
    size_t len = slash ? (size_t)(slash - name) : 0;
    int error = sfti_walk_join(folder, strlen(folder), name, path, sizeof path);
    if (error) return error;
    path[strlen(folder) + 1 + len] = '\0';
    return sfti_os_real_path(path, real, cap);
}

/* A link that leads out of the folder: from a snapshot to a blob of the same cache, which may
 * in turn be a link to one that all repositories share. */
static int open_hub(int root, const char *folder, const char *name, int flags, int *fd) {
    char real[SFTI_WALK_PATH], out[SFTI_WALK_PATH];
    const char *last;
    size_t rest;
    int at, cache, error = real_parent(folder, name, real, sizeof real);
    if (!error) error = open_parent(root, name, &at, &last);
    for (int hops = 0; !error; hops++) {
        error = follow_hub(at, last, real, out, &rest, &cache);
        (void)close(at);
        if (error) break;
        error = open_in(cache, out + rest, flags, false, fd);
        bool again = error == ELOOP && hops == 0;
        if (again) error = open_parent(cache, out + rest, &at, &last);
        (void)close(cache);
        if (!again) return error;
        error = sfti_walk_join(out, strlen(out), "blobs", real, sizeof real);
    }
    return EXDEV;
}

int sfti_os_open_beneath(const char *folder, const char *name, os_beneath how, int *fd) {
    int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    bool reads = how == OS_BENEATH_READ || how == OS_BENEATH_OWN;
    *fd = -1;
    /* A name in the folder itself, which is no link, lies beneath it. */
    if (reads && *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
        char path[SFTI_WALK_PATH];
        bool fits = !*folder
                    || !sfti_walk_join(folder, strlen(folder), name, path, sizeof path);
        const char *plain = *folder ? path : name;
        flags |= O_RDONLY | O_NOFOLLOW;
        if (fits && sfti_os_posix_open(AT_FDCWD, plain, flags, 0, fd) == 0) return 0;
        flags &= ~O_NOFOLLOW;
    }
    if (!*folder) folder = ".";
    int root, error = sfti_os_posix_open(AT_FDCWD, folder, FOLDER_FLAGS, 0, &root);
    if (error) return error;
    if (how == OS_BENEATH_FOLDER && !*name) {
        *fd = root;
        return 0;
    }
    flags = how == OS_BENEATH_FOLDER ? FOLDER_FLAGS
                                     : flags | (how == OS_BENEATH_WRITE ? O_RDWR : O_RDONLY);
    error = open_in(root, name, flags, how == OS_BENEATH_READ, fd);
    if (error == EXDEV && how == OS_BENEATH_READ) error = open_hub(root, folder, name, flags, fd);
    (void)close(root);
    return error;
}

int sfti_os_unlink_beneath(const char *folder, const char *name) {
    const char *last;
    int root, at;
    int error = sfti_os_posix_open(AT_FDCWD, *folder ? folder : ".", FOLDER_FLAGS, 0, &root);
    if (error) return error;
    error = open_parent(root, name, &at, &last);
    (void)close(root);
    if (error) return error;
    error = unlinkat(at, last, 0) == 0 ? 0 : errno;
    (void)close(at);
    return error;
}
