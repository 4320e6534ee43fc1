/* os.h of os_fake: writing. */
#include "fake_state.h"

#include <errno.h>
#include <string.h>

/* ── os.h: writing ── */

/* Where a new name would go: its folder must be there and the name free. */
static int path_free(const char *path, char *full) {
    int error = fake_path_resolve(path, false, full);
    if (error) return error;
    if (!full[0] || fake_name_find(full)) return EEXIST;
    return 0;
}

static fake_node *file_new(uint32_t mode) {
    fake_node *node = fake_node_new(OS_FILE, NULL, 0);
    node->mode = mode & ~(uint32_t)022;
    return node;
}

int sfti_os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
    fake_node *node;
    *fd = -1;
    FAKE_CALL();
    int error = fake_path_find(folder, true, &node);
    if (error) return error;
    if (node->kind != OS_DIR) return ENOTDIR;
    if (fake.no_unnamed) return EOPNOTSUPP;
    return fake_fd_new(file_new(mode), fd);
}

int sfti_os_open_new(const char *path, uint32_t mode, int *fd) {
    char full[FAKE_PATH];
    *fd = -1;
    FAKE_CALL();
    int error = path_free(path, full);
    if (error) return error;
    fake_node *node = file_new(mode);
    error = fake_fd_new(node, fd);
    if (error) return error;
    fake_name_add(full, node);
    fake_did(OS_DID_NAME, node->inode, 0, NULL, 0, full, NULL);
    return 0;
}

int sfti_os_link_unnamed(int fd, const char *path) {
    char full[FAKE_PATH];
    FAKE_CALL();
    if (fake.no_rename) return fake.no_rename;
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    int error = path_free(path, full);
    if (error) return error;
    fake_name_add(full, open->node);
    fake_did(OS_DID_NAME, open->node->inode, 0, NULL, 0, full, NULL);
    return 0;
}

static int node_write(fake_node *node, uint64_t offset, const void *from, size_t len,
                      size_t *put) {
    len = fake_shortened(len, fake.short_writes);
    if (offset > SIZE_MAX / 4 || len > SIZE_MAX / 4) return EFBIG;
    size_t end = (size_t)offset + len;
    if (end > node->len) {
        int error = fake_node_resize(node, end);
        if (error) return error;
    }
    if (len > 0) memcpy(node->data + offset, from, len);
    node->mtime = node->ctime = (int64_t)++fake.clock;
    *put = len;
    fake_did(OS_DID_WRITE, node->inode, offset, from, len, NULL, NULL);
    return 0;
}

static int node_set_size(fake_node *node, size_t len) {
    int error = fake_node_resize(node, len);
    if (!error) fake_did(OS_DID_RESIZE, node->inode, 0, NULL, len, NULL, NULL);
    return error;
}

int sfti_os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put) {
    *put = 0;
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (open->node->kind != OS_FILE) return ESPIPE;
    size_t unit = fake.direct_unit ? fake.direct_unit : 4096;
    if (open->direct && (offset % unit || len % unit || (uintptr_t)from % 4096)) return EINVAL;
    return node_write(open->node, offset, from, len, put);
}

int sfti_os_write(int fd, const void *from, size_t len, size_t *put) {
    *put = 0;
    FAKE_CALL();
    fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    int error = node_write(open->node, open->at, from, len, put);
    open->at += *put;
    return error;
}

int sfti_os_preallocate(int fd, uint64_t len) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (len > SIZE_MAX / 4) return EFBIG;
    return len > open->node->len ? node_set_size(open->node, (size_t)len) : 0;
}

int sfti_os_truncate(int fd, uint64_t len) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (len > SIZE_MAX / 4) return EFBIG;
    return node_set_size(open->node, (size_t)len);
}

/* Whole blocks, or up to the end of what is shared. */
static bool is_whole_blocks(const fake_node *node, uint64_t from, uint64_t to, uint64_t len) {
    bool ends = from + len == node->len || len % 64 == 0;
    return from % 64 == 0 && to % 64 == 0 && ends && from + len <= node->len;
}

int sfti_os_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len) {
    size_t put = 0, short_writes = fake.short_writes;
    FAKE_CALL();
    const fake_fd *in = fake_fd_find(from), *out = fake_fd_find(to);
    if (!in || !out) return EBADF;
    if (!fake.can_clone || !is_whole_blocks(in->node, from_at, to_at, len)) return EOPNOTSUPP;
    fake.short_writes = 0;
    int error = node_write(out->node, to_at, in->node->data + from_at, (size_t)len, &put);
    fake.short_writes = short_writes;
    return error;
}

int sfti_os_insert_range(int fd, uint64_t at, uint64_t len) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    fake_node *node = open->node;
    if (!fake.can_insert || at % 64 || len % 64 || at >= node->len) return EOPNOTSUPP;
    size_t old = node->len;
    int error = fake_node_resize(node, old + (size_t)len);
    if (error) return error;
    memmove(node->data + at + len, node->data + at, old - (size_t)at);
    memset(node->data + at, 0, (size_t)len);
    fake_did(OS_DID_INSERT, node->inode, at, NULL, (size_t)len, NULL, NULL);
    return 0;
}

int sfti_os_collapse_range(int fd, uint64_t at, uint64_t len) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    fake_node *node = open->node;
    if (!fake.can_insert || at % 64 || len % 64 || at + len >= node->len) return EOPNOTSUPP;
    size_t left = node->len - (size_t)(at + len);
    memmove(node->data + at, node->data + at + len, left);
    int error = fake_node_resize(node, (size_t)at + left);
    fake_did(OS_DID_COLLAPSE, node->inode, at, NULL, (size_t)len, NULL, NULL);
    return error;
}

int sfti_os_find_hole(int fd, uint64_t at, uint64_t *out) {
    FAKE_CALL();
    (void)fd, (void)at, (void)out;
    return EOPNOTSUPP;
}

int sfti_os_lease(int fd, bool hold) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    return hold && open->node->opens > 1 ? EAGAIN : 0;
}

int sfti_os_lock(int fd) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (open->node->locked_by && open->node->locked_by != fd) return EAGAIN;
    open->node->locked_by = fd;
    return 0;
}

void sfti_os_unlock(int fd) {
    const fake_fd *open = fake_fd_find(fd);
    if (open && open->node->locked_by == fd) open->node->locked_by = 0;
}

uint64_t sfti_os_process(void) { return 1; }

void sfti_os_read_apart(int fd, bool apart) {
    (void)fd, (void)apart;
}

void sfti_os_read_soon(int fd, uint64_t offset, uint64_t len) {
    (void)fd, (void)offset, (void)len;
}

void sfti_os_write_back(int fd, uint64_t offset, uint64_t len) {
    (void)fd, (void)offset, (void)len;
}

int sfti_os_set_direct(int fd, bool direct) {
    FAKE_CALL();
    fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (direct && !fake.can_direct) return EOPNOTSUPP;
    open->direct = direct;
    return 0;
}

int sfti_os_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len,
                       uint64_t *done) {
    size_t put = 0;
    *done = 0;
    FAKE_CALL();
    const fake_fd *in = fake_fd_find(from), *out = fake_fd_find(to);
    if (!in || !out) return EBADF;
    if (in->node->kind != OS_FILE || out->node->kind != OS_FILE) return EOPNOTSUPP;
    uint64_t left = from_at < in->node->len ? in->node->len - from_at : 0;
    size_t piece = (size_t)(len < left ? len : left);
    if (piece == 0) return 0;
    int error = node_write(out->node, to_at, in->node->data + from_at, piece, &put);
    *done = put;
    return error;
}

int sfti_os_set_mtime(int fd, int64_t mtime_ns) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    open->node->mtime = mtime_ns;
    open->node->ctime = (int64_t)++fake.clock;
    return 0;
}

int sfti_os_make_folder(const char *path, uint32_t mode) {
    char full[FAKE_PATH];
    FAKE_CALL();
    int error = path_free(path, full);
    if (error) return error;
    fake_node *node = fake_node_new(OS_DIR, NULL, 0);
    node->mode = mode & ~(uint32_t)022;
    fake_name_add(full, node);
    fake_did(OS_DID_FOLDER, 0, 0, NULL, 0, full, NULL);
    return 0;
}

int sfti_os_remove_folder(const char *path) {
    char full[FAKE_PATH];
    FAKE_CALL();
    int error = fake_path_resolve(path, false, full);
    if (error) return error;
    fake_name *name = fake_name_find(full);
    if (!name) return ENOENT;
    if (name->node->kind != OS_DIR) return ENOTDIR;
    size_t len = strlen(full);
    for (size_t i = 0; i < fake.name_count; i++) {
        const char *at = fake.names[i].path;
        if (strncmp(at, full, len) == 0 && at[len] == '/') return ENOTEMPTY;
    }
    fake_name_remove(name);
    fake_did(OS_DID_UNFOLDER, 0, 0, NULL, 0, full, NULL);
    return 0;
}

int sfti_os_set_mode(int fd, uint32_t mode) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    open->node->mode = mode;
    open->node->ctime = (int64_t)++fake.clock;
    fake_did(OS_DID_MODE, open->node->inode, mode, NULL, 0, NULL, NULL);
    return 0;
}

/* The root has no name. */
static const char *path_of_node(const fake_node *node) {
    for (size_t i = 0; i < fake.name_count; i++)
        if (fake.names[i].node == node) return fake.names[i].path;
    return "";
}

int sfti_os_sync(int fd) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    fake.syncs++;
    if (open->node->kind == OS_DIR)
        fake_did(OS_DID_SYNC_FOLDER, 0, 0, NULL, 0, path_of_node(open->node), NULL);
    else
        fake_did(OS_DID_SYNC, open->node->inode, 0, NULL, 0, NULL, NULL);
    return 0;
}

int sfti_os_sync_folder(const char *folder) {
    fake_node *node;
    FAKE_CALL();
    int error = fake_path_find(folder, true, &node);
    if (error) return error;
    if (node->kind != OS_DIR) return ENOTDIR;
    fake.syncs++;
    char full[FAKE_PATH];
    (void)fake_path_resolve(folder, true, full);
    fake_did(OS_DID_SYNC_FOLDER, 0, 0, NULL, 0, full, NULL);
    return 0;
}

int sfti_os_rename(const char *from, const char *to, bool no_clobber) {
    char source[FAKE_PATH], target[FAKE_PATH];
    FAKE_CALL();
    if (fake.no_rename) return fake.no_rename;
    if (fake.one_name && no_clobber) return EPERM;
    int error = fake_path_resolve(from, false, source);
    if (!error) error = fake_path_resolve(to, false, target);
    if (error) return error;
    fake_name *name = fake_name_find(source);
    if (!name) return ENOENT;
    fake_name *old = fake_name_find(target);
    if (old == name) {
        const char *slash = strrchr(to, '/');
        char *tail = strrchr(name->path, '/');
        if (!slash || strlen(slash) != strlen(tail) || strcmp(slash, tail) == 0) return 0;
        if (no_clobber) return EEXIST; /* as Linux says */
        memcpy(tail, slash, strlen(slash));
        return 0;
    }
    if (old && no_clobber) return EEXIST;
    if (old && old->node->kind == OS_DIR) return EISDIR;
    if (old) fake_name_remove(old);
    fake_name_add(target, fake_name_find(source)->node);
    fake_name_remove(fake_name_find(source));
    fake_did(OS_DID_RENAME, fake_name_find(target)->node->inode, 0, NULL, 0, source, target);
    return 0;
}

int sfti_os_link(const char *from, const char *to) {
    char source[FAKE_PATH], target[FAKE_PATH];
    FAKE_CALL();
    int error = fake_path_resolve(from, false, source);
    if (!error) error = fake_path_resolve(to, false, target);
    if (error) return error;
    fake_name *name = fake_name_find(source);
    if (!name) return ENOENT;
    if (name->node->kind == OS_DIR || fake.one_name) return EPERM;
    if (fake_name_find(target)) return EEXIST;
    fake_node *node = name->node;
    fake_name_add(target, node);
    fake_did(OS_DID_NAME, node->inode, 0, NULL, 0, target, NULL);
    return 0;
}

int sfti_os_trash(const char *path) {
    (void)path;
    return EOPNOTSUPP;
}

int fake_unlink(const char *full) {
    fake_name *name = fake_name_find(full);
    if (!name) return ENOENT;
    if (name->node->kind == OS_DIR) return EISDIR;
    fake_name_remove(name);
    fake_did(OS_DID_UNNAME, 0, 0, NULL, 0, full, NULL);
    return 0;
}

int sfti_os_unlink(const char *path) {
    char full[FAKE_PATH];
    FAKE_CALL();
    int error = fake_path_resolve(path, false, full);
    return error ? error : fake_unlink(full);
}

bool sfti_os_is_append(int fd) {
    (void)fd;
    return false;
}
