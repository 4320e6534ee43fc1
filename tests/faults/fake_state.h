/* What os_fake is made of: its state (os_fake.c), and os.h over it (os_fake_read.c,
 * os_fake_write.c). */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include "os_fake.h"

/* A file's contents, with or without a name. Freed when neither name nor descriptor
 * holds it. */
typedef struct fake_node {
    os_kind kind;
    char *data; /* a link's: its target, NUL-terminated */
    size_t len;
    uint32_t mode, names, opens;
    uint64_t inode;
    uint32_t owner;
    int64_t mtime, ctime;
    int locked_by; /* descriptor, or 0 */
} fake_node;

typedef struct fake_name {
    char *path; /* absolute, without "." and ".." */
    fake_node *node;
    unsigned sum; /* name_sum of the path: equal for names that are the same on some disk */
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

typedef struct fake_state {
    fake_name *names;
    size_t name_count;
    fake_fd fds[FAKE_FDS];
    fake_map maps[FAKE_MAPS];
    fake_failure failure;
    size_t calls, allocations, failed, log_count;
    const char *log[FAKE_LOG];
    size_t short_reads, short_writes, disk_space, direct_unit;
    bool huge_quick;
    size_t huge_bytes;
    bool no_unnamed, can_clone, can_insert, can_direct, direct_anywhere, is_cold, folds_case,
        one_name;
    int no_rename; /* errno */
    void (*watch)(const os_fake_op *op);
    size_t stop_at;
    int stop_signal, raised;
    size_t blocks, mutexes, syncs, reads;
    uint32_t columns[3];
    const char *env[FAKE_ENV][2];
    uint64_t inodes, clock, random;
    uint32_t user;
    os_function library_function;
    bool (*go_on)(void *ctx);
    void *go_on_ctx;
} fake_state;
extern fake_state fake;

void *fake_sure(void *memory);
static inline size_t fake_shortened(size_t len, size_t most) {
    return most > 0 && len > most ? most : len;
}

/* Count a call; the errno it is to fail with, or 0. */
int fake_call(const char *name);
#define FAKE_CALL() \
    do { \
        int fake_error = fake_call(__func__); \
        if (fake_error) return fake_error; \
    } while (0)

void fake_did(os_fake_did what, uint64_t inode, uint64_t at, const void *bytes, size_t len,
              const char *path, const char *to);

fake_node *fake_node_new(os_kind kind, const void *bytes, size_t len);
void fake_node_drop(fake_node *node);
/* Room for a file's contents; every byte beyond them is zero. */
int fake_node_resize(fake_node *node, size_t len);

fake_name *fake_name_find(const char *path);
void fake_name_add(const char *path, fake_node *node);
void fake_name_remove(fake_name *name);
/* sfti_os_unlink of a path as fake_path_resolve gives it, not counted. */
int fake_unlink(const char *full);

/* The absolute path behind `path`, every folder of which must be there. The last name
 * need not be. "" is the root. */
int fake_path_resolve(const char *path, bool follow, char *out);
int fake_path_find(const char *path, bool follow, fake_node **out);

int fake_fd_new(fake_node *node, int *fd);
fake_fd *fake_fd_find(int fd);
void fake_fd_drop(fake_fd *fd);

#endif
