#include "fake_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fake_state fake;

void *fake_sure(void *memory) {
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

int fake_call(const char *name) {
    return fake_count(name, false);
}

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
bool os_fake_failed_memory(void) { return fake.failed && fake.failure.which == FAKE_MEMORY; }

const char *os_fake_call_name(size_t n) {
    return n >= 1 && n <= fake.log_count ? fake.log[n - 1] : NULL;
}

void os_fake_short_reads(size_t k) { fake.short_reads = k; }
void os_fake_short_writes(size_t k) { fake.short_writes = k; }
void os_fake_no_unnamed(bool none) { fake.no_unnamed = none; }
void os_fake_one_name(bool one) { fake.one_name = fake.no_unnamed = one; }
void os_fake_no_rename(int error) { fake.no_rename = error; }
void os_fake_disk_space(size_t cap) { fake.disk_space = cap; }

void os_fake_can(bool clone, bool insert) {
    fake.can_clone = clone;
    fake.can_insert = insert;
}

void os_fake_folds_case(bool folds) { fake.folds_case = folds; }
void os_fake_can_direct(bool can) { fake.can_direct = can; }
void os_fake_huge(bool quick) { fake.huge_quick = quick; }
size_t os_fake_huge_bytes(void) { return fake.huge_bytes; }
void os_fake_direct_anywhere(bool any) { fake.direct_anywhere = any; }
void os_fake_cold(bool cold) { fake.is_cold = cold; }
void os_fake_direct_unit(size_t unit) { fake.direct_unit = unit; }

void os_fake_watch(void (*watch)(const os_fake_op *op)) { fake.watch = watch; }

void fake_did(os_fake_did what, uint64_t inode, uint64_t at, const void *bytes, size_t len,
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

fake_node *fake_node_new(os_kind kind, const void *bytes, size_t len) {
    fake_node *node = fake_sure(calloc(1, sizeof *node));
    node->kind = kind;
    node->data = fake_sure(calloc(1, len + 1));
    if (len > 0) memcpy(node->data, bytes, len);
    node->len = len;
    node->mode = kind == OS_DIR ? 0755 : 0644;
    node->inode = ++fake.inodes;
    node->owner = fake.user;
    node->mtime = node->ctime = (int64_t)++fake.clock;
    return node;
}

void fake_node_drop(fake_node *node) {
    if (node->names > 0 || node->opens > 0) return;
    free(node->data);
    free(node);
}

int fake_node_resize(fake_node *node, size_t len) {
    if (len > node->len) {
        if (len - node->len > fake.disk_space) return ENOSPC;
        fake.disk_space -= fake.disk_space == SIZE_MAX ? 0 : len - node->len;
        node->data = fake_sure(realloc(node->data, len + 1));
        memset(node->data + node->len, 0, len + 1 - node->len);
    } else {
        memset(node->data + len, 0, node->len - len);
    }
    node->len = len;
    node->mtime = node->ctime = (int64_t)++fake.clock;
    return 0;
}

/* The next letter of a name, 0 at its end. */
static int name_letter(const char **at) {
    static const char *const composed[] = { "\xC3\xA9", "e\xCC\x81" };
    for (size_t i = 0; fake.folds_case && i < 2; i++) {
        size_t len = strlen(composed[i]);
        if (strncmp(*at, composed[i], len) != 0) continue;
        *at += len;
        return 0x301;
    }
    char c = **at;
    if (c) ++*at;
    return fake.folds_case && c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : (unsigned char)c;
}

static bool is_same_name(const char *a, const char *b) {
    int letter;
    do {
        letter = name_letter(&a);
        if (letter != name_letter(&b)) return false;
    } while (letter);
    return true;
}

/* Of a path's letters in either case, without those that may be composed. */
static unsigned name_sum(const char *path) {
    unsigned sum = 0;
    for (; *path; path++)
        if ((*path & 0x5F) != 'E' && (unsigned char)*path < 0x80)
            sum = sum * 31 + (*path & 0x5Fu);
    return sum;
}

fake_name *fake_name_find(const char *path) {
    unsigned sum = name_sum(path);
    for (size_t i = 0; i < fake.name_count; i++) {
        fake_name *name = &fake.names[i];
        if (name->sum == sum && is_same_name(name->path, path)) return name;
    }
    return NULL;
}

void fake_name_add(const char *path, fake_node *node) {
    size_t bytes = (fake.name_count + 1) * sizeof *fake.names;
    fake.names = fake_sure(realloc(fake.names, bytes));
    fake_name *name = &fake.names[fake.name_count++];
    name->path = fake_sure(malloc(strlen(path) + 1));
    memcpy(name->path, path, strlen(path) + 1);
    name->node = node;
    name->sum = name_sum(path);
    node->names++;
}

void fake_name_remove(fake_name *name) {
    fake_node *node = name->node;
    free(name->path);
    *name = fake.names[--fake.name_count];
    node->names--;
    fake_node_drop(node);
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

int fake_path_resolve(const char *path, bool follow, char *out) {
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
        const fake_name *name = fake_name_find(out);
        if (name) memcpy(out, name->path, strlen(name->path) + 1);
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

int fake_path_find(const char *path, bool follow, fake_node **out) {
    static fake_node root = { .kind = OS_DIR, .mode = 0755, .names = 1 };
    char full[FAKE_PATH];
    int error = fake_path_resolve(path, follow, full);
    *out = NULL;
    if (error) return error;
    const fake_name *name = fake_name_find(full);
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
    if (fake_path_resolve(path, false, full) != 0) abort();
    fake_name *old = fake_name_find(full);
    if (old) fake_name_remove(old);
    fake_name_add(full, node);
}

void os_fake_add_file(const char *path, const void *bytes, size_t len) {
    place(path, fake_node_new(OS_FILE, bytes, len));
}

void os_fake_add_dir(const char *path) {
    place(path, fake_node_new(OS_DIR, NULL, 0));
}

void os_fake_add_link(const char *path, const char *target) {
    place(path, fake_node_new(OS_LINK, target, strlen(target)));
}

void os_fake_add_pipe(const char *path, const void *bytes, size_t len) {
    place(path, fake_node_new(OS_PIPE, bytes, len));
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
        node = fake_node_new(OS_FILE, bytes, len);
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
    return fake_path_find(path, false, &node) == 0 ? node : NULL;
}

uint64_t os_fake_inode(const char *path) {
    const fake_node *node = node_of(path);
    return node ? node->inode : 0;
}

void os_fake_set_mode(const char *path, uint32_t mode) {
    ((fake_node *)fake_sure(node_of(path)))->mode = mode;
}

void os_fake_set_owner(const char *path, uint32_t user) {
    ((fake_node *)fake_sure(node_of(path)))->owner = user;
}

void os_fake_set_user(uint32_t user) { fake.user = user; }

void os_fake_set_size(const char *path, size_t len) {
    if (fake_node_resize(fake_sure(node_of(path)), len) != 0) abort();
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

int fake_fd_new(fake_node *node, int *fd) {
    for (int i = 3; i < FAKE_FDS; i++) {
        if (fake.fds[i].node) continue;
        fake_fd fresh = { node, 0, false };
        fake.fds[i] = fresh;
        node->opens++;
        *fd = i;
        return 0;
    }
    fake_node_drop(node);
    return EMFILE;
}

fake_fd *fake_fd_find(int fd) {
    return fd >= 0 && fd < FAKE_FDS && fake.fds[fd].node ? &fake.fds[fd] : NULL;
}

void fake_fd_drop(fake_fd *fd) {
    fake_node *node = fd->node;
    fd->node = NULL;
    node->opens--;
    fake_node_drop(node);
}

size_t os_fake_open_fds(void) {
    size_t count = 0;
    for (int i = 3; i < FAKE_FDS; i++) count += fake.fds[i].node != NULL;
    return count;
}

static void set_stream(int fd, fake_node *node) {
    if (fake.fds[fd].node) fake_fd_drop(&fake.fds[fd]);
    fake.fds[fd].node = node;
    fake.fds[fd].at = 0;
    node->opens++;
}

void os_fake_set_input(os_kind kind, const void *bytes, size_t len) {
    set_stream(0, fake_node_new(kind, bytes, len));
}

const void *os_fake_output(int fd, size_t *len) {
    const fake_fd *stream = fake_sure(fake_fd_find(fd));
    if (len) *len = stream->node->len;
    return stream->node->data;
}

void os_fake_set_terminal(int fd, uint32_t columns) {
    fake.columns[fd] = columns;
}

void os_fake_set_library(os_function function) { fake.library_function = function; }

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
        if (fake.fds[i].node) fake_fd_drop(&fake.fds[i]);
    }
    while (fake.name_count > 0) fake_name_remove(&fake.names[fake.name_count - 1]);
    free(fake.names);
    for (size_t i = 0; i < FAKE_MAPS; i++) free(fake.maps[i].at);
    memset(&fake, 0, sizeof fake);
    fake.disk_space = SIZE_MAX;
    fake.user = 1000;
    for (int i = 0; i < 3; i++) set_stream(i, fake_node_new(OS_PIPE, NULL, 0));
}
