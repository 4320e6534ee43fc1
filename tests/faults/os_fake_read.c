/* os.h of os_fake: reading, folders, and all that does not write. */
#include "fake_state.h"

#include "os/cpu.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── os.h: reading ── */

static void info_of_node(const fake_node *node, os_info *out) {
    memset(out, 0, sizeof *out);
    out->kind = node->kind;
    out->size = node->kind == OS_PIPE ? 0 : node->len;
    out->mode = node->mode;
    out->links = node->names;
    out->device = 1;
    out->inode = node->inode;
    out->owner = node->owner;
    out->mtime_ns = node->mtime;
    out->ctime_ns = node->ctime;
    out->block = fake.can_clone || fake.can_insert ? 64 : 4096;
}

int sfti_os_open_read(const char *path, int *fd) {
    fake_node *node;
    *fd = -1;
    FAKE_CALL();
    int error = fake_path_find(path, true, &node);
    if (error) return error;
    return fake_fd_new(node, fd);
}

/* As two calls: each can fail. */
int sfti_os_open_look(const char *path, int *fd, os_info *info) {
    int error = sfti_os_open_read(path, fd);
    if (!error) error = sfti_os_info_fd(*fd, info);
    if (error && *fd >= 0) (void)sfti_os_close(*fd);
    if (error) *fd = -1;
    return error;
}

int sfti_os_open_no_link(const char *path, bool writable, int *fd) {
    fake_node *node;
    *fd = -1;
    FAKE_CALL();
    int error = fake_path_find(path, false, &node);
    if (!error && node->kind == OS_LINK) error = ELOOP;
    if (!error && writable && node->kind == OS_DIR) error = EISDIR;
    return error ? error : fake_fd_new(node, fd);
}

int sfti_os_open_folder(const char *folder, int *fd) {
    fake_node *node;
    *fd = -1;
    FAKE_CALL();
    int error = fake_path_find(folder, true, &node);
    if (!error && node->kind != OS_DIR) error = ENOTDIR;
    return error ? error : fake_fd_new(node, fd);
}

int sfti_os_open_write(const char *path, int *fd) {
    fake_node *node;
    *fd = -1;
    FAKE_CALL();
    int error = fake_path_find(path, true, &node);
    if (!error && node->kind == OS_DIR) error = EISDIR;
    return error ? error : fake_fd_new(node, fd);
}

/* ── os.h: beneath a folder ── */

/* base becomes the folder's real path, full that of the name in it. */
static int beneath_paths(const char *folder, const char *name, char *base, char *full) {
    size_t len = strlen(name);
    fake_node *node;
    int error = fake_path_find(*folder ? folder : ".", true, &node);
    if (error) return error;
    if (node->kind != OS_DIR) return ENOTDIR;
    (void)fake_path_resolve(*folder ? folder : ".", true, base);
    size_t have = strlen(base);
    if (have + len + 2 > FAKE_PATH) return ENAMETOOLONG;
    memcpy(full, base, have);
    full[have] = '\0';
    if (len == 0) return 0;
    full[have] = '/';
    memcpy(full + have + 1, name, len + 1);
    return 0;
}

/* ELOOP if a part of full behind its first `from` bytes is a link; the last counts too if
 * `last`. */
static int beneath_no_links(const char *full, size_t from, bool last) {
    char part[FAKE_PATH];
    for (const char *slash = strchr(full + from, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - full);
        memcpy(part, full, len);
        part[len] = '\0';
        const fake_name *name = len > from ? fake_name_find(part) : NULL;
        if (name && name->node->kind == OS_LINK) return ELOOP;
    }
    const fake_name *name = fake_name_find(full);
    return last && name && name->node->kind == OS_LINK ? ELOOP : 0;
}

/* Two hops of a Hub cache at most; *node becomes what they lead to. */
static int beneath_hub(const char *full, size_t from, fake_node **node) {
    char link[FAKE_PATH], out[FAKE_PATH];
    size_t rest;
    int error = beneath_no_links(full, from, false);
    memcpy(link, full, strlen(full) + 1);
    for (int hops = 0; !error && hops < 2; hops++) {
        const fake_name *name = fake_name_find(link);
        if (!name || name->node->kind != OS_LINK) break;
        if (!sfti_hook_link(link, name->node->data, out, sizeof out, &rest)) return EXDEV;
        out[rest - 1] = '/';
        memcpy(link, out, strlen(out) + 1);
    }
    const fake_name *name = error ? NULL : fake_name_find(link);
    if (error || (name && name->node->kind == OS_LINK)) return EXDEV;
    *node = name ? name->node : NULL;
    return name ? 0 : ENOENT;
}

static int beneath_read(const char *full, size_t base, fake_node **node) {
    char real[FAKE_PATH];
    int error = fake_path_find(full, true, node);
    if (error && error != ENOENT) return error;
    if (fake_path_resolve(full, true, real)) return ENOENT;
    if (strncmp(real, full, base) == 0 && real[base] == '/') return error;
    return beneath_hub(full, base, node);
}

int sfti_os_open_beneath(const char *folder, const char *name, os_beneath how, int *fd) {
    char base[FAKE_PATH], full[FAKE_PATH];
    fake_node *node = NULL;
    *fd = -1;
    FAKE_CALL();
    int error = beneath_paths(folder, name, base, full);
    if (error) return error;
    if (how == OS_BENEATH_READ) {
        error = beneath_read(full, strlen(base), &node);
    } else {
        error = beneath_no_links(full, strlen(base), true);
        if (!error) error = fake_path_find(full, false, &node);
    }
    if (!error && how == OS_BENEATH_WRITE && node->kind == OS_DIR) error = EISDIR;
    if (!error && how == OS_BENEATH_FOLDER && node->kind != OS_DIR) error = ENOTDIR;
    return error ? error : fake_fd_new(node, fd);
}

int sfti_os_unlink_beneath(const char *folder, const char *name) {
    char base[FAKE_PATH], full[FAKE_PATH];
    FAKE_CALL();
    int error = beneath_paths(folder, name, base, full);
    if (!error) error = beneath_no_links(full, strlen(base), false);
    return error ? error : fake_unlink(full);
}

static const sft_wait *fake_own; /* one for all: threads run in their starter's */

const sft_wait *sfti_os_wait_as(const sft_wait *wait) {
    const sft_wait *before = fake_own;
    fake_own = wait && wait->go_on ? wait : NULL;
    return before;
}

bool sfti_os_wait_over(void) {
    if (fake_own) return sfti_os_stop_signal() || !fake_own->go_on(fake_own->ctx);
    return sfti_os_stop_signal() || (fake.go_on && !fake.go_on(fake.go_on_ctx));
}

static uint64_t fake_waited_ns; /* what waits for nothing ends by the clock */

bool sfti_os_wait_more(uint32_t *ms) {
    *ms += 1;
    fake_waited_ns += 20 * 1000 * 1000;
    return !sfti_os_wait_over();
}

/* There is no network. */
int sfti_os_socket_open(int family, int type, int protocol, int *fd) {
    (void)family, (void)type, (void)protocol;
    *fd = -1;
    return EAFNOSUPPORT;
}

size_t sfti_os_socket_address(const void *sockaddr, size_t len, uint8_t out[16]) {
    (void)sockaddr, (void)len, (void)out;
    return 0;
}

int sfti_os_path_in(int folder, const char *name, char *out, size_t cap) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(folder);
    const char *path = "";
    if (!open || open->node->kind != OS_DIR) return EBADF;
    for (size_t i = 0; i < fake.name_count; i++)
        if (fake.names[i].node == open->node) path = fake.names[i].path;
    int len = snprintf(out, cap, "%s/%s", path, name);
    return len > 0 && (size_t)len < cap ? 0 : ENAMETOOLONG;
}

int sfti_os_close(int fd) {
    int error = fake_call(__func__);
    fake_fd *open = fake_fd_find(fd);
    if (!open) abort();
    if (open->node->locked_by == fd) open->node->locked_by = 0;
    fake_fd_drop(open);
    return error;
}

int sfti_os_info_fd(int fd, os_info *out) {
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    info_of_node(open->node, out);
    return 0;
}

int sfti_os_info_path(const char *path, bool follow_link, os_info *out) {
    fake_node *node;
    FAKE_CALL();
    int error = fake_path_find(path, follow_link, &node);
    if (!error) info_of_node(node, out);
    return error;
}

int sfti_os_positioned(int fd) { return fd; }

static void node_read(const fake_node *node, uint64_t offset, void *into, size_t len,
                      size_t *got) {
    size_t left = offset < node->len ? node->len - (size_t)offset : 0;
    *got = fake_shortened(len < left ? len : left, fake.short_reads);
    if (*got > 0) memcpy(into, node->data + offset, *got);
    fake.reads++;
}

int sfti_os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    *got = 0;
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (open->node->kind == OS_DIR) return EISDIR;
    if (open->node->kind != OS_FILE) return ESPIPE;
    size_t unit = fake.direct_anywhere ? 1 : 4096;
    if (open->direct && ((uintptr_t)into % unit || len % 4096 || offset % 4096)) return EINVAL;
    node_read(open->node, offset, into, len, got);
    return 0;
}

int sfti_os_open_direct(int fd, int *out) {
    *out = -1;
    FAKE_CALL();
    fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (!fake.can_direct) return EOPNOTSUPP;
    int error = fake_fd_new(open->node, out);
    if (!error) fake_fd_find(*out)->direct = true;
    return error;
}

/* All or nothing. */
int sfti_os_cached(int fd, uint64_t offset, uint64_t len, uint64_t *bytes) {
    (void)offset;
    *bytes = 0;
    FAKE_CALL();
    if (!fake_fd_find(fd)) return EBADF;
    *bytes = fake.is_cold ? 0 : len;
    return 0;
}

int sfti_os_read(int fd, void *into, size_t len, size_t *got) {
    *got = 0;
    FAKE_CALL();
    fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (open->node->kind == OS_DIR) return EISDIR;
    if (sfti_os_wait_over()) return EINTR;
    node_read(open->node, open->at, into, len, got);
    open->at += *got;
    return 0;
}

int sfti_os_map(int fd, uint64_t len, bool writable_private, void **out) {
    (void)writable_private;
    *out = NULL;
    FAKE_CALL();
    const fake_fd *open = fake_fd_find(fd);
    if (!open) return EBADF;
    if (open->node->kind != OS_FILE) return ENODEV;
    if (len == 0) return EINVAL;
    for (size_t i = 0; i < FAKE_MAPS; i++) {
        if (fake.maps[i].at) continue;
        size_t have = open->node->len < len ? open->node->len : (size_t)len;
        fake.maps[i].at = fake_sure(calloc(1, (size_t)len));
        fake.maps[i].len = len;
        if (have > 0) memcpy(fake.maps[i].at, open->node->data, have);
        *out = fake.maps[i].at;
        return 0;
    }
    return ENOMEM;
}

int sfti_os_gather(const void *map, const uint64_t *offsets, size_t count, size_t len, void *into,
                   size_t *got) {
    *got = 0;
    FAKE_CALL();
    for (size_t i = 0; i < count; i++, *got += len)
        memcpy((char *)into + *got, (const char *)map + offsets[i], len);
    return 0;
}

void sfti_os_unmap(void *at, uint64_t len) {
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

int sfti_os_real_path(const char *path, char *out, size_t cap) {
    char full[FAKE_PATH];
    fake_node *node;
    FAKE_CALL();
    int error = fake_path_find(path, true, &node);
    if (error) return error;
    (void)fake_path_resolve(path, true, full);
    size_t len = strlen(full);
    if (len == 0) full[len++] = '/';
    if (len >= cap) return ENAMETOOLONG;
    memcpy(out, full, len);
    out[len] = '\0';
    return 0;
}

int sfti_os_read_link(const char *path, char *out, size_t cap) {
    fake_node *node;
    FAKE_CALL();
    int error = fake_path_find(path, false, &node);
    if (error) return error;
    if (node->kind != OS_LINK) return EINVAL;
    if (node->len >= cap) return ENAMETOOLONG;
    memcpy(out, node->data, node->len + 1);
    return 0;
}

/* ── os.h: folders ── */

int sfti_os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
                 void *ctx) {
    char full[FAKE_PATH];
    fake_node *node;
    FAKE_CALL();
    int error = fake_path_find(path, true, &node);
    if (error) return error;
    if (node->kind != OS_DIR) return ENOTDIR;
    (void)fake_path_resolve(path, true, full);
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

/* ── os.h: the rest ── */

int sfti_os_random(void *into, size_t len) {
    FAKE_CALL();
    for (size_t i = 0; i < len; i++) {
        fake.random = fake.random * 6364136223846793005u + 1442695040888963407u;
        ((unsigned char *)into)[i] = (unsigned char)(fake.random >> 56);
    }
    return 0;
}

uint64_t sfti_os_now_ns(void) { return ++fake.clock + fake_waited_ns; }
int32_t sfti_os_zone_s(uint64_t time_s) {
    (void)time_s;
    return 0;
}

uint64_t sfti_os_time_s(void) { return UINT64_C(1700000000) + ++fake.clock; }
void sfti_os_sleep_ms(uint32_t ms) { fake.clock += ms; }
uint32_t sfti_os_user(void) { return fake.user; }

uint32_t sfti_os_cpu_count(void) { return 4; }

unsigned sfti_os_arm_instructions(void) { return 0; }

os_function sfti_os_library_function(const char *library, const char *name) {
    (void)library;
    (void)name;
    return fake.library_function;
}

const char *sfti_os_error_text(int error, char *buffer, size_t len) {
    (void)snprintf(buffer, len, "error %d", error);
    return buffer;
}

bool sfti_os_is_terminal(int fd) {
    return fd >= 0 && fd < 3 && fake.columns[fd] > 0;
}

bool sfti_os_terminal_escapes(int fd) {
    return sfti_os_is_terminal(fd);
}

uint32_t sfti_os_terminal_columns(int fd) {
    return fd >= 0 && fd < 3 ? fake.columns[fd] : 0;
}

const char *sfti_os_env(const char *name) {
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

void *sfti_os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    fake_block *block = ptr ? (fake_block *)ptr - 1 : NULL;
    (void)ctx;
    if ((block ? block->size : 0) != old_size) abort();
    if (new_size == 0) {
        fake.blocks -= block != NULL;
        free(block);
        return NULL;
    }
    if (!os_fake_allocate(__func__)) return NULL;
    block = fake_sure(realloc(block, sizeof *block + new_size));
    fake.blocks += ptr == NULL;
    block->size = new_size;
    return block + 1;
}

bool sfti_os_huge_ask(char *at, size_t len) {
    if ((uintptr_t)at % OS_HUGE_PAGE || len % OS_HUGE_PAGE) abort();
    fake.huge_bytes += len;
    return true;
}

bool sfti_os_huge_quick(char *at) {
    (void)sfti_os_huge_ask(at, OS_HUGE_PAGE);
    *at = 0;
    return fake.huge_quick;
}

int sfti_os_thread_start(os_thread *thread, void (*run)(void *ctx), void *ctx) {
    (void)thread;
    FAKE_CALL();
    run(ctx);
    return 0;
}

void sfti_os_thread_join(os_thread *thread) {
    (void)thread;
}

int sfti_os_mutex_init(os_mutex *mutex) {
    FAKE_CALL();
    memset(mutex, 0, sizeof *mutex);
    fake.mutexes++;
    return 0;
}

void sfti_os_mutex_lock(os_mutex *mutex) {
    if (mutex->buffer[0]++ != 0) abort();
}

void sfti_os_mutex_unlock(os_mutex *mutex) {
    if (mutex->buffer[0]-- != 1) abort();
}

void sfti_os_mutex_free(os_mutex *mutex) {
    (void)mutex;
    fake.mutexes--;
}

void sfti_os_once(bool *done, void (*run)(void)) {
    if (!*done) run();
    *done = true;
}

int sfti_os_cond_init(os_cond *cond) {
    FAKE_CALL();
    memset(cond, 0, sizeof *cond);
    fake.mutexes++;
    return 0;
}

/* With one thread nobody could ever end the waiting. */
void sfti_os_cond_wait(os_cond *cond, os_mutex *mutex) {
    (void)cond;
    (void)mutex;
    abort();
}

/* It ends at once, as if the time were over. */
void sfti_os_cond_wait_for(os_cond *cond, os_mutex *mutex, uint32_t ms) {
    (void)cond;
    (void)mutex;
    (void)ms;
}

void sfti_os_cond_wake(os_cond *cond) {
    (void)cond;
}

void sfti_os_cond_free(os_cond *cond) {
    (void)cond;
    fake.mutexes--;
}

void sfti_os_watch_signals(void) {}

void sfti_os_on_wait(bool (*go_on)(void *ctx), void *ctx) {
    fake.go_on = go_on;
    fake.go_on_ctx = ctx;
}

int sfti_os_stop_signal(void) {
    return fake.stop_at > 0 && fake.calls >= fake.stop_at ? fake.stop_signal : 0;
}

void sfti_os_raise(int signal) {
    fake.raised = signal;
}
