/* Files of a remote that were opened, or will be next. Tests: test_remote_source.c. */
#include "remote/read/files.h"

#include "remote/read/pool.h"

#include <string.h>

#define OPENED_SLOTS 1024
#define OPENED_AHEAD 256 /* sources that were opened ahead, and not taken */
#define KEPT_NS UINT64_C(1000000000)

typedef enum ahead_state {
    AHEAD_NONE,
    AHEAD_LATER,   /* in the list of those to be opened when others have been taken */
    AHEAD_PENDING, /* given to the pool */
    AHEAD_READY,
    AHEAD_FAILED
} ahead_state;

/* A name; guarded by the pool's mutex, but for what the pending task fills. */
typedef struct opened_file {
    struct sfti_opened *opened;
    struct opened_file *next;        /* of the slot */
    struct opened_file *next_later;
    sft_remote_claim claim;
    bool known; /* the claim is filled */
    ahead_state ahead;
    sfti_task task;
    sft_source source; /* of READY */
    sft_error *error;  /* of FAILED; NULL: there was no memory for it */
    sft_code code;
    size_t name_size;
    char name[];
} opened_file;

struct sfti_opened {
    sft_remote *remote;
    opened_file *slots[OPENED_SLOTS];
    opened_file *later, *later_last;
    size_t ahead; /* files pending, ready or failed */
    opened_file *kept; /* the one whose source was closed last, as if it had been opened ahead: what
                          turns out to be no model is opened again at once, to tell what it is */
    uint64_t kept_ns;
    bool closing;
};

static os_mutex *opened_mutex(const struct sfti_opened *opened) {
    return &opened->remote->pool->mutex;
}

sft_code sfti_opened_new(sft_remote *remote, sft_error *err) {
    struct sfti_opened *opened = sfti_take(&remote->alloc, sizeof *opened);
    if (!opened) return sfti_fail_memory(err, sizeof *opened);
    memset(opened, 0, sizeof *opened);
    opened->remote = remote;
    remote->opened = opened;
    return SFT_OK;
}

/* ── Names ── */

static opened_file **opened_slot(struct sfti_opened *opened, const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
    return &opened->slots[(hash ^ hash >> 16) % OPENED_SLOTS];
}

static opened_file *opened_find(struct sfti_opened *opened, const char *name) {
    opened_file *file = *opened_slot(opened, name);
    while (file && strcmp(file->name, name)) file = file->next;
    return file;
}

static opened_file *opened_find_or_add(struct sfti_opened *opened, const char *name) {
    opened_file *file = opened_find(opened, name);
    size_t size = strlen(name) + 1;
    if (file) return file;
    file = sfti_take(&opened->remote->alloc, sizeof *file + size);
    if (!file) return NULL;
    memset(file, 0, sizeof *file);
    memcpy(file->name, name, size);
    file->name_size = size;
    file->opened = opened;
    opened_file **slot = opened_slot(opened, name);
    file->next = *slot;
    *slot = file;
    return file;
}

/* What a file in a folder may be called there: a server must not lead elsewhere by it. */
static sft_code opened_check_beneath(const char *name, const char *beneath, sft_error *err) {
    size_t len = strlen(beneath);
    const char *rest = name + len;
    bool bad = strncmp(name, beneath, len) != 0;
    if (bad) rest = name;
    rest += strspn(rest, "/");
    bad = bad || !*rest || strpbrk(rest, "?#%\\") || strstr(rest, "://");
    for (const char *at = rest; !bad && *at; at += strcspn(at, "/"), at += *at == '/') {
        size_t part = strcspn(at, "/");
        bad = part == 0 || (part == 1 && at[0] == '.') || (part == 2 && !strncmp(at, "..", 2));
    }
    for (const char *at = rest; !bad && *at; at++) bad = (unsigned char)*at < ' ';
    if (!bad) return SFT_OK;
    return sfti_fail(err, SFT_INDEX_PATH,
                     "expected the plain name of a file in the same folder, found another");
}

/* ── Ahead ── */

static bool is_opened_wanted(void *ctx) {
    struct sfti_opened *opened = ctx;
    sfti_os_mutex_lock(opened_mutex(opened));
    bool wanted = !opened->closing;
    sfti_os_mutex_unlock(opened_mutex(opened));
    return wanted;
}

static void opened_run(void *ctx) {
    opened_file *file = ctx;
    struct sfti_opened *opened = file->opened;
    sft_remote *remote = opened->remote;
    sft_error error = SFT_ERROR_INIT;
    sft_remote_claim claim;
    sft_source source;
    sft_code code = sfti_remote_source(remote, file->name, is_opened_wanted, opened, &source,
                                       &claim, &error);
    sfti_os_mutex_lock(opened_mutex(opened));
    file->ahead = code ? AHEAD_FAILED : AHEAD_READY;
    file->code = code;
    if (!code) {
        file->source = source;
        file->claim = claim;
        file->known = true;
    } else if ((file->error = sfti_take(&remote->alloc, sizeof error))) {
        *file->error = error;
    }
    sfti_os_cond_wake(&remote->pool->done);
    sfti_os_mutex_unlock(opened_mutex(opened));
}

/* With the mutex held: give the pool as many as may be open at once. */
static void opened_schedule(struct sfti_opened *opened) {
    while (opened->later && opened->ahead < OPENED_AHEAD) {
        opened_file *file = opened->later;
        opened->later = file->next_later;
        file->ahead = AHEAD_PENDING;
        file->task = (sfti_task){ opened_run, file, NULL, false };
        opened->ahead++;
        sfti_pool_put(opened->remote->pool, &file->task);
    }
}

void sfti_opened_expect(sft_remote *remote, const char *const *names, size_t count,
                        const char *beneath) {
    struct sfti_opened *opened = remote->opened;
    sfti_os_mutex_lock(opened_mutex(opened));
    for (size_t i = 0; i < count; i++) {
        if (beneath && opened_check_beneath(names[i], beneath, NULL)) continue;
        opened_file *file = opened_find_or_add(opened, names[i]);
        if (!file || file->ahead != AHEAD_NONE) continue;
        file->ahead = AHEAD_LATER;
        file->next_later = NULL;
        if (opened->later) opened->later_last->next_later = file;
        else opened->later = file;
        opened->later_last = file;
    }
    opened_schedule(opened);
    sfti_os_mutex_unlock(opened_mutex(opened));
    sfti_pool_start(remote->pool);
}

/* With the mutex held: what was opened ahead. *taken: source or failure are the caller's; false: he
 * has to open it. What failed because it was cancelled failed for others. */
static sft_code opened_take(opened_file *file, bool *taken, sft_source *out, sft_error *err) {
    struct sfti_opened *opened = file->opened;
    sfti_pool *pool = opened->remote->pool;
    *taken = false;
    if (file->ahead == AHEAD_LATER) {
        opened_file *before = NULL;
        for (opened_file *at = opened->later; at != file; at = at->next_later) before = at;
        if (before) before->next_later = file->next_later;
        else opened->later = file->next_later;
        if (opened->later_last == file) opened->later_last = before;
        file->ahead = AHEAD_NONE;
    }
    while (file->ahead == AHEAD_PENDING && !sfti_pool_take_back(pool, &file->task))
        if (!sfti_pool_wait(pool)) return sfti_fail_cancelled(err);
    ahead_state state = file->ahead;
    sft_code code = file->code;
    if (file == opened->kept) opened->kept = NULL;
    if (state == AHEAD_NONE) return SFT_OK;
    file->ahead = AHEAD_NONE;
    opened->ahead--;
    *taken = state == AHEAD_READY || (state == AHEAD_FAILED && code != SFT_CANCELLED);
    if (state == AHEAD_READY) *out = file->source;
    else if (*taken && file->error) (void)sfti_fail_as(err, code, file->error);
    else if (*taken) (void)sfti_fail_memory(err, sizeof *file->error);
    if (*taken && state == AHEAD_FAILED && !file->error) code = SFT_OUT_OF_MEMORY;
    sfti_release(&opened->remote->alloc, file->error, sizeof *file->error);
    file->error = NULL;
    opened_schedule(opened);
    return *taken && state == AHEAD_FAILED ? code : SFT_OK;
}

/* ── Closing ── */

/* With the mutex held: what was kept longer than a second is no longer. */
static sft_source opened_drop_kept(struct sfti_opened *opened, bool all) {
    sft_source old = { NULL, NULL, 0, NULL, false };
    opened_file *file = opened->kept;
    if (!file || (!all && sfti_os_now_ns() - opened->kept_ns < KEPT_NS)) return old;
    old = file->source;
    file->ahead = AHEAD_NONE;
    opened->kept = NULL;
    opened->ahead--;
    return old;
}

/* A source that its user closes, for who opens the file again. The file lives as long as the
 * remote. */
static bool opened_keep(void *ctx, sft_source source) {
    opened_file *file = ctx;
    struct sfti_opened *opened = file->opened;
    sft_source old = { NULL, NULL, 0, NULL, false };
    bool kept = false;
    sfti_os_mutex_lock(opened_mutex(opened));
    if (!opened->closing) {
        old = opened_drop_kept(opened, true);
        kept = file->ahead == AHEAD_NONE;
    }
    if (kept) {
        file->ahead = AHEAD_READY;
        file->source = source;
        opened->kept = file;
        opened->kept_ns = sfti_os_now_ns();
        opened->ahead++;
    }
    sfti_os_mutex_unlock(opened_mutex(opened));
    sft_source_close(&old);
    return kept;
}

/* ── Opening ── */

sft_code sfti_opened_open(sft_remote *remote, const char *name, const char *beneath,
                          sft_source *out, sft_error *err) {
    struct sfti_opened *opened = remote->opened;
    sft_remote_claim claim;
    bool taken = false;
    memset(out, 0, sizeof *out);
    sft_code code = beneath ? opened_check_beneath(name, beneath, err) : SFT_OK;
    if (code) return code;
    sfti_os_mutex_lock(opened_mutex(opened));
    sft_source old = opened_drop_kept(opened, false);
    opened_file *file = opened_find_or_add(opened, name);
    code = file ? opened_take(file, &taken, out, err) : sfti_fail_memory(err, sizeof *file);
    sfti_os_mutex_unlock(opened_mutex(opened));
    sft_source_close(&old);
    sfti_pool_start(remote->pool);
    if (code) return code;
    if (!taken) {
        code = sfti_remote_source(remote, name, NULL, NULL, out, &claim, err);
        if (code) return code;
        sfti_os_mutex_lock(opened_mutex(opened));
        file->claim = claim;
        file->known = true;
        sfti_os_mutex_unlock(opened_mutex(opened));
    }
    if (!file->claim.local) sfti_source_on_close(out, opened_keep, file);
    return SFT_OK;
}

bool sft_remote_claims(sft_remote *remote, const char *name, sft_remote_claim *out) {
    struct sfti_opened *opened = remote->opened;
    sfti_os_mutex_lock(opened_mutex(opened));
    const opened_file *file = opened_find(opened, name);
    bool known = file && file->known;
    if (known) *out = file->claim;
    sfti_os_mutex_unlock(opened_mutex(opened));
    return known;
}

/* ── The end ── */

static void opened_file_free(opened_file *file) {
    struct sfti_opened *opened = file->opened;
    sfti_pool *pool = opened->remote->pool;
    sfti_os_mutex_lock(&pool->mutex);
    while (file->ahead == AHEAD_PENDING && !sfti_pool_take_back(pool, &file->task))
        sfti_os_cond_wait_for(&pool->done, &pool->mutex, 100);
    sfti_os_mutex_unlock(&pool->mutex);
    if (file->ahead == AHEAD_READY) sft_source_close(&file->source);
    sfti_release(&opened->remote->alloc, file->error, sizeof *file->error);
    sfti_release(&opened->remote->alloc, file, sizeof *file + file->name_size);
}

void sfti_opened_free(struct sfti_opened *opened) {
    if (!opened) return;
    sft_allocator alloc = opened->remote->alloc;
    sfti_os_mutex_lock(opened_mutex(opened));
    opened->closing = true;
    opened->later = NULL;
    sfti_os_mutex_unlock(opened_mutex(opened));
    for (size_t i = 0; i < OPENED_SLOTS; i++) {
        while (opened->slots[i]) {
            opened_file *file = opened->slots[i];
            opened->slots[i] = file->next;
            opened_file_free(file);
        }
    }
    sfti_release(&alloc, opened, sizeof *opened);
}
