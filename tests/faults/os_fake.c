#include "os_fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file's contents, with or without a name. Freed when neither name nor descriptor
 * holds it. */
typedef struct fake_node {
    os_kind kind;
    char *data; /* a link's: its target, NUL-terminated */
    size_t len;
    uint32_t mode, names, opens;
    uint64_t inode;
    int64_t mtime;
    int locked_by; /* descriptor, or 0 */
} fake_node;

typedef struct fake_name {
    char *path; /* absolute, without "." and ".." */
    fake_node *node;
} fake_name;

typedef struct fake_fd {
    fake_node *node; /* NULL: free */
    size_t at;
    bool direct;
} fake_fd;

typedef struct fake_map {
    void *at;
    uint64_t len;
} fake_map;

/* Which calls a failure counts. */
typedef enum fake_which { FAKE_ANY, FAKE_NAMED, FAKE_MEMORY, FAKE_SYSTEM } fake_which;

typedef struct fake_failure {
    fake_which which;
    const char *name; /* of FAKE_NAMED */
    size_t nth;
    int error;
    bool forever;
} fake_failure;

#define FAKE_FDS 256
#define FAKE_MAPS 256
#define FAKE_PATH 4096
#define FAKE_LOG 65536
#define FAKE_ENV 16

static struct {
    fake_name *names;
    size_t name_count;
    fake_fd fds[FAKE_FDS];
    fake_map maps[FAKE_MAPS];
    fake_failure failure;
    size_t calls, allocations, failed, log_count;
    const char *log[FAKE_LOG];
    size_t short_reads, short_writes, disk_room, direct_unit;
    bool no_unnamed, can_clone, can_insert, can_direct;
    int no_rename; /* errno */
    void (*watch)(const os_fake_op *op);
    size_t stop_at;
    int stop_signal, raised;
    size_t blocks, mutexes, syncs, reads;
    uint32_t columns[3];
    const char *env[FAKE_ENV][2];
    uint64_t inodes, clock, random;
} fake;

static void *sure(void *memory) {
    if (!memory) abort();
    return memory;
}

/* ── Failing ── */

static bool is_counted(const fake_failure *f, const char *name, bool memory) {
    switch (f->which) {
    case FAKE_NAMED: return strcmp(f->name, name) == 0;
    case FAKE_MEMORY: return memory;
    case FAKE_SYSTEM: return !memory;
    case FAKE_ANY: break;
    }
    return true;
}

static int fake_count(const char *name, bool memory) {
    fake_failure *f = &fake.failure;
    fake.calls++;
    fake.allocations += memory;
    if (fake.log_count < FAKE_LOG) fake.log[fake.log_count++] = name;
    if (f->nth == 0 || !is_counted(f, name, memory)) return 0;
    if (f->nth > 1) {
        f->nth--;
        return 0;
    }
    if (!f->forever) f->nth = 0;
    fake.failed++;
    return f->error;
}

/* Count a call; the errno it is to fail with, or 0. */
static int fake_call(const char *name) {
    return fake_count(name, false);
}

#define FAKE_CALL() \
    do { \
        int fake_error = fake_call(__func__); \
        if (fake_error) return fake_error; \
    } while (0)

static void fail_from(fake_failure failure) {
    fake.failure = failure;
    fake.calls = fake.allocations = fake.failed = 0;
    fake.log_count = 0;
}

void os_fake_fail(size_t nth, int error, bool forever) {
    fail_from((fake_failure){ FAKE_ANY, NULL, nth, error, forever });
}

void os_fake_heal(void) { fake.failure.nth = 0; }

void os_fake_fail_call(const char *name, size_t nth, int error, bool forever) {
    fail_from((fake_failure){ FAKE_NAMED, name, nth, error, forever });
}

void os_fake_fail_memory(size_t nth, bool forever) {
    fail_from((fake_failure){ FAKE_MEMORY, NULL, nth, ENOMEM, forever });
}

void os_fake_fail_system(size_t nth, int error, bool forever) {
    fail_from((fake_failure){ FAKE_SYSTEM, NULL, nth, error, forever });
}

bool os_fake_allocate(const char *name) { return fake_count(name, true) == 0; }

size_t os_fake_calls(void) { return fake.calls; }
size_t os_fake_allocations(void) { return fake.allocations; }
size_t os_fake_failed(void) { return fake.failed; }

const char *os_fake_call_name(size_t n) {
    return n >= 1 && n <= fake.log_count ? fake.log[n - 1] : NULL;
}

void os_fake_short_reads(size_t k) { fake.short_reads = k; }
void os_fake_short_writes(size_t k) { fake.short_writes = k; }
void os_fake_no_unnamed(bool none) { fake.no_unnamed = none; }
void os_fake_no_rename(int error) { fake.no_rename = error; }
void os_fake_disk_room(size_t room) { fake.disk_room = room; }

void os_fake_can(bool clone, bool insert) {
    fake.can_clone = clone;
    fake.can_insert = insert;
}

void os_fake_can_direct(bool can) { fake.can_direct = can; }
void os_fake_direct_unit(size_t unit) { fake.direct_unit = unit; }

void os_fake_watch(void (*watch)(const os_fake_op *op)) { fake.watch = watch; }

static void did(os_fake_did what, uint64_t inode, uint64_t at, const void *bytes, size_t len,
                const char *path, const char *to) {
    os_fake_op op = { what, inode, at, bytes, len, path, to };
    if (fake.watch) fake.watch(&op);
}

void os_fake_stop_at(size_t nth, int signal) {
    fake.stop_at = nth;
    fake.stop_signal = signal;
}

size_t os_fake_blocks(void) { return fake.blocks; }
size_t os_fake_mutexes(void) { return fake.mutexes; }
int os_fake_raised(void) { return fake.raised; }
size_t os_fake_syncs(void) { return fake.syncs; }
size_t os_fake_reads(void) { return fake.reads; }

/* ── Nodes and names ── */

static fake_node *node_new(os_kind kind, const void *bytes, size_t len) {
    fake_node *node = sure(calloc(1, sizeof *node));
    node->kind = kind;
    node->data = sure(calloc(1, len + 1));
    if (len > 0) memcpy(node->data, bytes, len);
    node->len = len;
    node->mode = kind == OS_DIR ? 0755 : 0644;
    node->inode = ++fake.inodes;
    node->mtime = (int64_t)++fake.clock;
    return node;
}

static void node_drop(fake_node *node) {
    if (node->names > 0 || node->opens > 0) return;
    free(node->data);
    free(node);
}

/* Room for a file's contents; every byte beyond them is zero. */
static int node_resize(fake_node *node, size_t len) {
    if (len > node->len) {
        if (len - node->len > fake.disk_room) return ENOSPC;
        fake.disk_room -= fake.disk_room == SIZE_MAX ? 0 : len - node->len;
        node->data = sure(realloc(node->data, len + 1));
        memset(node->data + node->len, 0, len + 1 - node->len);
    } else {
        memset(node->data + len, 0, node->len - len);
    }
    node->len = len;
    node->mtime = (int64_t)++fake.clock;
    return 0;
}

static fake_name *name_find(const char *path) {
    for (size_t i = 0; i < fake.name_count; i++) {
        if (strcmp(fake.names[i].path, path) == 0) return &fake.names[i];
    }
    return NULL;
}

static void name_add(const char *path, fake_node *node) {
    size_t bytes = (fake.name_count + 1) * sizeof *fake.names;
    fake.names = sure(realloc(fake.names, bytes));
    fake_name *name = &fake.names[fake.name_count++];
    name->path = sure(malloc(strlen(path) + 1));
    memcpy(name->path, path, strlen(path) + 1);
    name->node = node;
    node->names++;
}

static void name_remove(fake_name *name) {
    fake_node *node = name->node;
    free(name->path);
    *name = fake.names[--fake.name_count];
    node->names--;
    node_drop(node);
}

/* ── Paths ── */

/* Append one component to an absolute path ("" is the root). */
static int path_step(char *at, const char *part, size_t len) {
    size_t have = strlen(at);
    if (len == 0 || (len == 1 && part[0] == '.')) return 0;
    if (len == 2 && part[0] == '.' && part[1] == '.') {
        char *slash = strrchr(at, '/');
        if (slash) *slash = '\0';
        return 0;
    }
    if (len > 255 || have + len + 2 > FAKE_PATH) return ENAMETOOLONG;
    at[have] = '/';
    memcpy(at + have + 1, part, len);
    at[have + 1 + len] = '\0';
    return 0;
}

/* Start again at a link's target, with what was still to be walked (and the slash before
 * it) behind. */
static int path_through_link(char *at, const char *target, const char *rest, char *todo) {
    char joined[FAKE_PATH];
    int n = snprintf(joined, sizeof joined, "%s%s", target, rest);
    if (n < 0 || (size_t)n >= sizeof joined) return ENAMETOOLONG;
    memcpy(todo, joined, (size_t)n + 1);
    if (target[0] == '/') {
        at[0] = '\0';
    } else {
        *strrchr(at, '/') = '\0';
    }
    return 0;
}

/* The absolute path behind `path`, every folder of which must be there. The last name
 * need not be. "" is the root. */
static int path_resolve(const char *path, bool follow, char *out) {
    char todo[FAKE_PATH];
    const char *p = todo;
    int links = 0;
    out[0] = '\0';
    if (!*path) return ENOENT;
    if (strlen(path) >= sizeof todo) return ENAMETOOLONG;
    memcpy(todo, path, strlen(path) + 1);
    while (*p) {
        while (*p == '/') p++;
        size_t len = strcspn(p, "/");
        const char *rest = p + len + strspn(p + len, "/");
        bool last = !*rest;
        int error = path_step(out, p, len);
        if (error) return error;
        const fake_name *name = name_find(out);
        bool folder_wanted = !last || p[len] == '/';
        if (name && name->node->kind == OS_LINK && (folder_wanted || follow)) {
            if (++links > 40) return ELOOP;
            error = path_through_link(out, name->node->data, p + len, todo);
            if (error) return error;
            p = todo;
            continue;
        }
        if (!last && out[0] && !name) return ENOENT;
        if (folder_wanted && name && name->node->kind != OS_DIR) return ENOTDIR;
        p = rest;
    }
    return 0;
}

static int path_find(const char *path, bool follow, fake_node **out) {
    static fake_node root = { OS_DIR, NULL, 0, 0755, 1, 0, 0, 0, 0 };
    char full[FAKE_PATH];
    int error = path_resolve(path, follow, full);
    *out = NULL;
    if (error) return error;
    const fake_name *name = name_find(full);
    *out = full[0] ? name ? name->node : NULL : &root;
    return *out ? 0 : ENOENT;
}

/* ── What is there ── */

static void place(const char *path, fake_node *node) {
    char full[FAKE_PATH];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char parent[FAKE_PATH];
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
        if (!os_fake_exists(parent)) os_fake_add_dir(parent);
    }
    if (path_resolve(path, false, full) != 0) abort();
    fake_name *old = name_find(full);
    if (old) name_remove(old);
    name_add(full, node);
}

void os_fake_add_file(const char *path, const void *bytes, size_t len) {
    place(path, node_new(OS_FILE, bytes, len));
}

void os_fake_add_dir(const char *path) {
    place(path, node_new(OS_DIR, NULL, 0));
}

void os_fake_add_link(const char *path, const char *target) {
    place(path, node_new(OS_LINK, target, strlen(target)));
}

void os_fake_add_pipe(const char *path, const void *bytes, size_t len) {
    place(path, node_new(OS_PIPE, bytes, len));
}

static fake_node *node_numbered(uint64_t inode) {
    for (size_t i = 0; i < fake.name_count; i++)
        if (fake.names[i].node->kind == OS_FILE && fake.names[i].node->inode == inode)
            return fake.names[i].node;
    return NULL;
}

#define FAKE_INODES_OF_ITS_OWN 1000000 /* past those that are given */

void os_fake_add_inode(const char *path, uint64_t inode, const void *bytes, size_t len) {
    if (fake.inodes < FAKE_INODES_OF_ITS_OWN) fake.inodes = FAKE_INODES_OF_ITS_OWN;
    fake_node *node = node_numbered(inode);
    if (!node) {
        node = node_new(OS_FILE, bytes, len);
        node->inode = inode;
    }
    place(path, node);
}

void os_fake_each(void (*each)(void *ctx, const char *path, uint64_t inode), void *ctx) {
    for (size_t i = 0; i < fake.name_count; i++)
        if (fake.names[i].node->kind == OS_FILE)
            each(ctx, fake.names[i].path, fake.names[i].node->inode);
}

void os_fake_each_folder(void (*each)(void *ctx, const char *path), void *ctx) {
    for (size_t i = 0; i < fake.name_count; i++)
        if (fake.names[i].node->kind == OS_DIR) each(ctx, fake.names[i].path);
}

static fake_node *node_of(const char *path) {
    fake_node *node;
    return path_find(path, false, &node) == 0 ? node : NULL;
}

uint64_t os_fake_inode(const char *path) {
    const fake_node *node = node_of(path);
    return node ? node->inode : 0;
}

void os_fake_set_mode(const char *path, uint32_t mode) {
    ((fake_node *)sure(node_of(path)))->mode = mode;
}

void os_fake_set_size(const char *path, size_t len) {
    if (node_resize(sure(node_of(path)), len) != 0) abort();
}

const void *os_fake_file(const char *path, size_t *len) {
    const fake_node *node = node_of(path);
    bool file = node && node->kind == OS_FILE;
    if (len) *len = file ? node->len : 0;
    return file ? node->data : NULL;
}

bool os_fake_exists(const char *path) {
    return node_of(path) != NULL;
}

size_t os_fake_count_files(void) {
    size_t count = 0;
    for (size_t i = 0; i < fake.name_count; i++) {
        count += fake.names[i].node->kind != OS_DIR;
    }
    return count;
}

/* ── Descriptors ── */

static int fd_new(fake_node *node, int *fd) {
    for (int i = 3; i < FAKE_FDS; i++) {
        if (fake.fds[i].node) continue;
        fake_fd fresh = { node, 0, false };
        fake.fds[i] = fresh;
        node->opens++;
        *fd = i;
        return 0;
    }
    node_drop(node);
    return EMFILE;
}

static fake_fd *fd_find(int fd) {
    return fd >= 0 && fd < FAKE_FDS && fake.fds[fd].node ? &fake.fds[fd] : NULL;
}

static void fd_drop(fake_fd *fd) {
    fake_node *node = fd->node;
    fd->node = NULL;
    node->opens--;
    node_drop(node);
}

size_t os_fake_open_fds(void) {
    size_t count = 0;
    for (int i = 3; i < FAKE_FDS; i++) count += fake.fds[i].node != NULL;
    return count;
}

static void set_stream(int fd, fake_node *node) {
    if (fake.fds[fd].node) fd_drop(&fake.fds[fd]);
    fake.fds[fd].node = node;
    fake.fds[fd].at = 0;
    node->opens++;
}

void os_fake_set_input(os_kind kind, const void *bytes, size_t len) {
    set_stream(0, node_new(kind, bytes, len));
}

const void *os_fake_output(int fd, size_t *len) {
    const fake_fd *stream = sure(fd_find(fd));
    if (len) *len = stream->node->len;
    return stream->node->data;
}

void os_fake_set_terminal(int fd, uint32_t columns) {
    fake.columns[fd] = columns;
}

void os_fake_set_env(const char *name, const char *value) {
    for (size_t i = 0; i < FAKE_ENV; i++) {
        if (fake.env[i][0] && strcmp(fake.env[i][0], name) != 0) continue;
        fake.env[i][0] = name;
        fake.env[i][1] = value;
        return;
    }
    abort();
}

void os_fake_reset(void) {
    for (int i = 0; i < FAKE_FDS; i++) {
        if (fake.fds[i].node) fd_drop(&fake.fds[i]);
    }
    while (fake.name_count > 0) name_remove(&fake.names[fake.name_count - 1]);
    free(fake.names);
    for (size_t i = 0; i < FAKE_MAPS; i++) free(fake.maps[i].at);
    memset(&fake, 0, sizeof fake);
    fake.disk_room = SIZE_MAX;
    for (int i = 0; i < 3; i++) set_stream(i, node_new(OS_PIPE, NULL, 0));
}

/* ── os.h: reading ── */

static void info_of_node(const fake_node *node, os_info *out) {
    memset(out, 0, sizeof *out);
    out->kind = node->kind;
    out->size = node->kind == OS_PIPE ? 0 : node->len;
    out->mode = node->mode;
    out->links = node->names;
    out->device = 1;
    out->inode = node->inode;
    out->mtime_ns = node->mtime;
    out->block = fake.can_clone || fake.can_insert ? 64 : 4096;
}

int os_open_read(const char *path, int *fd) {
    fake_node *node;
    *fd = -1;
    FAKE_CALL();
    int error = path_find(path, true, &node);
    if (error) return error;
    return fd_new(node, fd);
}

int os_open_write(const char *path, int *fd) {
    fake_node *node;
    *fd = -1;
    FAKE_CALL();
    int error = path_find(path, true, &node);
    if (!error && node->kind == OS_DIR) error = EISDIR;
    return error ? error : fd_new(node, fd);
}

int os_close(int fd) {
    int error = fake_call(__func__);
    fake_fd *open = fd_find(fd);
    if (!open) abort();
    if (open->node->locked_by == fd) open->node->locked_by = 0;
    fd_drop(open);
    return error;
}

int os_info_fd(int fd, os_info *out) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    info_of_node(open->node, out);
    return 0;
}

int os_info_path(const char *path, bool follow_link, os_info *out) {
    fake_node *node;
    FAKE_CALL();
    int error = path_find(path, follow_link, &node);
    if (!error) info_of_node(node, out);
    return error;
}

static size_t shortened(size_t len, size_t most) {
    return most > 0 && len > most ? most : len;
}

static void node_read(const fake_node *node, uint64_t offset, void *into, size_t len,
                      size_t *got) {
    size_t left = offset < node->len ? node->len - (size_t)offset : 0;
    *got = shortened(len < left ? len : left, fake.short_reads);
    if (*got > 0) memcpy(into, node->data + offset, *got);
    fake.reads++;
}

int os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    *got = 0;
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    if (open->node->kind == OS_DIR) return EISDIR;
    if (open->node->kind != OS_FILE) return ESPIPE;
    node_read(open->node, offset, into, len, got);
    return 0;
}

int os_read(int fd, void *into, size_t len, size_t *got) {
    *got = 0;
    FAKE_CALL();
    fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    if (open->node->kind == OS_DIR) return EISDIR;
    if (os_stop_signal()) return EINTR;
    node_read(open->node, open->at, into, len, got);
    open->at += *got;
    return 0;
}

int os_map(int fd, uint64_t len, bool writable_private, void **out) {
    (void)writable_private;
    *out = NULL;
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    if (open->node->kind != OS_FILE) return ENODEV;
    if (len == 0) return EINVAL;
    for (size_t i = 0; i < FAKE_MAPS; i++) {
        if (fake.maps[i].at) continue;
        size_t have = open->node->len < len ? open->node->len : (size_t)len;
        fake.maps[i].at = sure(calloc(1, (size_t)len));
        fake.maps[i].len = len;
        if (have > 0) memcpy(fake.maps[i].at, open->node->data, have);
        *out = fake.maps[i].at;
        return 0;
    }
    return ENOMEM;
}

void os_unmap(void *at, uint64_t len) {
    if (!at) return;
    for (size_t i = 0; i < FAKE_MAPS; i++) {
        if (fake.maps[i].at != at || fake.maps[i].len != len) continue;
        free(at);
        fake.maps[i].at = NULL;
        return;
    }
    abort();
}

size_t os_fake_maps(void) {
    size_t count = 0;
    for (size_t i = 0; i < FAKE_MAPS; i++) count += fake.maps[i].at != NULL;
    return count;
}

int os_real_path(const char *path, char *out, size_t room) {
    char full[FAKE_PATH];
    fake_node *node;
    FAKE_CALL();
    int error = path_find(path, true, &node);
    if (error) return error;
    (void)path_resolve(path, true, full);
    size_t len = strlen(full);
    if (len == 0) full[len++] = '/';
    if (len >= room) return ENAMETOOLONG;
    memcpy(out, full, len);
    out[len] = '\0';
    return 0;
}

/* ── os.h: folders ── */

int os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
            void *ctx) {
    char full[FAKE_PATH];
    fake_node *node;
    FAKE_CALL();
    int error = path_find(path, true, &node);
    if (error) return error;
    if (node->kind != OS_DIR) return ENOTDIR;
    (void)path_resolve(path, true, full);
    size_t len = strlen(full);
    int result = 0;
    for (size_t i = 0; i < fake.name_count && result == 0; i++) {
        const char *name = fake.names[i].path;
        if (strncmp(name, full, len) != 0 || name[len] != '/') continue;
        if (strchr(name + len + 1, '/')) continue;
        result = each(ctx, name + len + 1, fake.names[i].node->kind);
    }
    return result;
}

/* ── os.h: writing ── */

/* Where a new name would go: its folder must be there and the name free. */
static int path_free(const char *path, char *full) {
    int error = path_resolve(path, false, full);
    if (error) return error;
    if (!full[0] || name_find(full)) return EEXIST;
    return 0;
}

static fake_node *file_new(uint32_t mode) {
    fake_node *node = node_new(OS_FILE, NULL, 0);
    node->mode = mode & ~(uint32_t)022;
    return node;
}

int os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
    fake_node *node;
    *fd = -1;
    FAKE_CALL();
    int error = path_find(folder, true, &node);
    if (error) return error;
    if (node->kind != OS_DIR) return ENOTDIR;
    if (fake.no_unnamed) return EOPNOTSUPP;
    return fd_new(file_new(mode), fd);
}

int os_open_new(const char *path, uint32_t mode, int *fd) {
    char full[FAKE_PATH];
    *fd = -1;
    FAKE_CALL();
    int error = path_free(path, full);
    if (error) return error;
    fake_node *node = file_new(mode);
    error = fd_new(node, fd);
    if (error) return error;
    name_add(full, node);
    did(OS_DID_NAME, node->inode, 0, NULL, 0, full, NULL);
    return 0;
}

int os_link_unnamed(int fd, const char *path) {
    char full[FAKE_PATH];
    FAKE_CALL();
    if (fake.no_rename) return fake.no_rename;
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    int error = path_free(path, full);
    if (error) return error;
    name_add(full, open->node);
    did(OS_DID_NAME, open->node->inode, 0, NULL, 0, full, NULL);
    return 0;
}

static int node_write(fake_node *node, uint64_t offset, const void *from, size_t len,
                      size_t *put) {
    len = shortened(len, fake.short_writes);
    if (offset > SIZE_MAX / 4 || len > SIZE_MAX / 4) return EFBIG;
    size_t end = (size_t)offset + len;
    if (end > node->len) {
        int error = node_resize(node, end);
        if (error) return error;
    }
    if (len > 0) memcpy(node->data + offset, from, len);
    node->mtime = (int64_t)++fake.clock;
    *put = len;
    did(OS_DID_WRITE, node->inode, offset, from, len, NULL, NULL);
    return 0;
}

static int node_set_size(fake_node *node, size_t len) {
    int error = node_resize(node, len);
    if (!error) did(OS_DID_RESIZE, node->inode, 0, NULL, len, NULL, NULL);
    return error;
}

int os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put) {
    *put = 0;
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    if (open->node->kind != OS_FILE) return ESPIPE;
    size_t unit = fake.direct_unit ? fake.direct_unit : 4096;
    if (open->direct && (offset % unit || len % unit || (uintptr_t)from % 4096)) return EINVAL;
    return node_write(open->node, offset, from, len, put);
}

int os_write(int fd, const void *from, size_t len, size_t *put) {
    *put = 0;
    FAKE_CALL();
    fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    int error = node_write(open->node, open->at, from, len, put);
    open->at += *put;
    return error;
}

int os_preallocate(int fd, uint64_t len) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    if (len > SIZE_MAX / 4) return EFBIG;
    return len > open->node->len ? node_set_size(open->node, (size_t)len) : 0;
}

int os_truncate(int fd, uint64_t len) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    if (len > SIZE_MAX / 4) return EFBIG;
    return node_set_size(open->node, (size_t)len);
}

/* Whole blocks, or up to the end of what is shared. */
static bool is_whole_blocks(const fake_node *node, uint64_t from, uint64_t to, uint64_t len) {
    bool ends = from + len == node->len || len % 64 == 0;
    return from % 64 == 0 && to % 64 == 0 && ends && from + len <= node->len;
}

int os_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len) {
    size_t put = 0, short_writes = fake.short_writes;
    FAKE_CALL();
    const fake_fd *in = fd_find(from), *out = fd_find(to);
    if (!in || !out) return EBADF;
    if (!fake.can_clone || !is_whole_blocks(in->node, from_at, to_at, len)) return EOPNOTSUPP;
    fake.short_writes = 0;
    int error = node_write(out->node, to_at, in->node->data + from_at, (size_t)len, &put);
    fake.short_writes = short_writes;
    return error;
}

int os_insert_range(int fd, uint64_t at, uint64_t len) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    fake_node *node = open->node;
    if (!fake.can_insert || at % 64 || len % 64 || at >= node->len) return EOPNOTSUPP;
    size_t old = node->len;
    int error = node_resize(node, old + (size_t)len);
    if (error) return error;
    memmove(node->data + at + len, node->data + at, old - (size_t)at);
    memset(node->data + at, 0, (size_t)len);
    did(OS_DID_INSERT, node->inode, at, NULL, (size_t)len, NULL, NULL);
    return 0;
}

int os_collapse_range(int fd, uint64_t at, uint64_t len) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    fake_node *node = open->node;
    if (!fake.can_insert || at % 64 || len % 64 || at + len >= node->len) return EOPNOTSUPP;
    size_t left = node->len - (size_t)(at + len);
    memmove(node->data + at, node->data + at + len, left);
    int error = node_resize(node, (size_t)at + left);
    did(OS_DID_COLLAPSE, node->inode, at, NULL, (size_t)len, NULL, NULL);
    return error;
}

int os_find_hole(int fd, uint64_t at, uint64_t *out) {
    FAKE_CALL();
    (void)fd, (void)at, (void)out;
    return EOPNOTSUPP;
}

int os_lease(int fd, bool hold) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    return hold && open->node->opens > 1 ? EAGAIN : 0;
}

int os_lock(int fd) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    if (open->node->locked_by && open->node->locked_by != fd) return EAGAIN;
    open->node->locked_by = fd;
    return 0;
}

void os_write_back(int fd, uint64_t offset, uint64_t len) {
    (void)fd, (void)offset, (void)len;
}

int os_set_direct(int fd, bool direct) {
    FAKE_CALL();
    fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    if (direct && !fake.can_direct) return EOPNOTSUPP;
    open->direct = direct;
    return 0;
}

int os_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len,
                  uint64_t *done) {
    size_t put = 0;
    *done = 0;
    FAKE_CALL();
    const fake_fd *in = fd_find(from), *out = fd_find(to);
    if (!in || !out) return EBADF;
    if (in->node->kind != OS_FILE || out->node->kind != OS_FILE) return EOPNOTSUPP;
    uint64_t left = from_at < in->node->len ? in->node->len - from_at : 0;
    size_t piece = (size_t)(len < left ? len : left);
    if (piece == 0) return 0;
    int error = node_write(out->node, to_at, in->node->data + from_at, piece, &put);
    *done = put;
    return error;
}

int os_set_mtime(int fd, int64_t mtime_ns) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    open->node->mtime = mtime_ns;
    return 0;
}

int os_make_folder(const char *path, uint32_t mode) {
    char full[FAKE_PATH];
    FAKE_CALL();
    int error = path_free(path, full);
    if (error) return error;
    fake_node *node = node_new(OS_DIR, NULL, 0);
    node->mode = mode & ~(uint32_t)022;
    name_add(full, node);
    did(OS_DID_FOLDER, 0, 0, NULL, 0, full, NULL);
    return 0;
}

int os_remove_folder(const char *path) {
    char full[FAKE_PATH];
    FAKE_CALL();
    int error = path_resolve(path, false, full);
    if (error) return error;
    fake_name *name = name_find(full);
    if (!name) return ENOENT;
    if (name->node->kind != OS_DIR) return ENOTDIR;
    size_t len = strlen(full);
    for (size_t i = 0; i < fake.name_count; i++) {
        const char *at = fake.names[i].path;
        if (strncmp(at, full, len) == 0 && at[len] == '/') return ENOTEMPTY;
    }
    name_remove(name);
    did(OS_DID_UNFOLDER, 0, 0, NULL, 0, full, NULL);
    return 0;
}

int os_set_mode(int fd, uint32_t mode) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    open->node->mode = mode;
    did(OS_DID_MODE, open->node->inode, mode, NULL, 0, NULL, NULL);
    return 0;
}

int os_sync(int fd) {
    FAKE_CALL();
    const fake_fd *open = fd_find(fd);
    if (!open) return EBADF;
    fake.syncs++;
    did(OS_DID_SYNC, open->node->inode, 0, NULL, 0, NULL, NULL);
    return 0;
}

int os_sync_folder(const char *folder) {
    fake_node *node;
    FAKE_CALL();
    int error = path_find(folder, true, &node);
    if (error) return error;
    if (node->kind != OS_DIR) return ENOTDIR;
    fake.syncs++;
    char full[FAKE_PATH];
    (void)path_resolve(folder, true, full);
    did(OS_DID_SYNC_FOLDER, 0, 0, NULL, 0, full, NULL);
    return 0;
}

int os_rename(const char *from, const char *to, bool no_clobber) {
    char source[FAKE_PATH], target[FAKE_PATH];
    FAKE_CALL();
    if (fake.no_rename) return fake.no_rename;
    int error = path_resolve(from, false, source);
    if (!error) error = path_resolve(to, false, target);
    if (error) return error;
    fake_name *name = name_find(source);
    if (!name) return ENOENT;
    fake_name *old = name_find(target);
    if (old == name) return 0;
    if (old && no_clobber) return EEXIST;
    if (old && old->node->kind == OS_DIR) return EISDIR;
    if (old) name_remove(old);
    name_add(target, name_find(source)->node);
    name_remove(name_find(source));
    did(OS_DID_RENAME, name_find(target)->node->inode, 0, NULL, 0, source, target);
    return 0;
}

int os_unlink(const char *path) {
    char full[FAKE_PATH];
    FAKE_CALL();
    int error = path_resolve(path, false, full);
    if (error) return error;
    fake_name *name = name_find(full);
    if (!name) return ENOENT;
    if (name->node->kind == OS_DIR) return EISDIR;
    name_remove(name);
    did(OS_DID_UNNAME, 0, 0, NULL, 0, full, NULL);
    return 0;
}

bool os_is_append(int fd) {
    (void)fd;
    return false;
}

/* ── os.h: the rest ── */

int os_random(void *into, size_t len) {
    FAKE_CALL();
    for (size_t i = 0; i < len; i++) {
        fake.random = fake.random * 6364136223846793005u + 1442695040888963407u;
        ((unsigned char *)into)[i] = (unsigned char)(fake.random >> 56);
    }
    return 0;
}

uint64_t os_now_ns(void) { return ++fake.clock; }
uint64_t os_time_s(void) { return UINT64_C(1700000000) + ++fake.clock; }
void os_sleep_ms(uint32_t ms) { fake.clock += ms; }
uint32_t os_cpu_count(void) { return 4; }

const char *os_error_text(int error, char *room, size_t len) {
    (void)snprintf(room, len, "error %d", error);
    return room;
}

bool os_is_terminal(int fd) {
    return fd >= 0 && fd < 3 && fake.columns[fd] > 0;
}

uint32_t os_terminal_columns(int fd) {
    return fd >= 0 && fd < 3 ? fake.columns[fd] : 0;
}

const char *os_env(const char *name) {
    for (size_t i = 0; i < FAKE_ENV && fake.env[i][0]; i++) {
        if (strcmp(fake.env[i][0], name) == 0) return fake.env[i][1];
    }
    return NULL;
}

/* Each block remembers its size, to hold the caller to what he says it was. */
typedef union fake_block {
    size_t size;
    max_align_t align;
} fake_block;

void *os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    fake_block *block = ptr ? (fake_block *)ptr - 1 : NULL;
    (void)ctx;
    if ((block ? block->size : 0) != old_size) abort();
    if (new_size == 0) {
        fake.blocks -= block != NULL;
        free(block);
        return NULL;
    }
    if (!os_fake_allocate(__func__)) return NULL;
    block = sure(realloc(block, sizeof *block + new_size));
    fake.blocks += ptr == NULL;
    block->size = new_size;
    return block + 1;
}

int os_thread_start(os_thread *thread, void (*run)(void *ctx), void *ctx) {
    (void)thread;
    FAKE_CALL();
    run(ctx);
    return 0;
}

void os_thread_join(os_thread *thread) {
    (void)thread;
}

int os_mutex_init(os_mutex *mutex) {
    FAKE_CALL();
    memset(mutex, 0, sizeof *mutex);
    fake.mutexes++;
    return 0;
}

void os_mutex_lock(os_mutex *mutex) {
    if (mutex->room[0]++ != 0) abort();
}

void os_mutex_unlock(os_mutex *mutex) {
    if (mutex->room[0]-- != 1) abort();
}

void os_mutex_free(os_mutex *mutex) {
    (void)mutex;
    fake.mutexes--;
}

void os_watch_signals(void) {}

int os_stop_signal(void) {
    return fake.stop_at > 0 && fake.calls >= fake.stop_at ? fake.stop_signal : 0;
}

void os_raise(int signal) {
    fake.raised = signal;
}

void os_ignore_broken_pipe(void) {}
