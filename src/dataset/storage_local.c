/* A folder of this computer as storage. Tests: test_dataset_whole.c. */
#include "base/error.h"
#include "base/portable.h"
#include "bytes/source.h"
#include "dataset/dataset.h"
#include "file/edited.h"
#include "os/path.h"
#include "safetensors_io.h"

#include <errno.h>
#include <string.h>

#define LOCK_NAME ".dataset.lock"
#define LOCK_PAUSE_MS 20
#define NS_A_SECOND INT64_C(1000000000)

typedef struct local_store {
    sft_allocator alloc;
    size_t cap; /* of this struct, with the folder's path */
    bool no_sync;
    int lock_fd; /* -1: not held */
    uint64_t locked_by; /* the process: a forked child has the descriptor, not the lock */
    char folder[];
} local_store;

/* ── Paths ── */

static sft_code local_fail(sft_error *err, sft_code code, int failed, const char *what) {
    if (failed == ENOMEM) code = SFT_OUT_OF_MEMORY;
    if (failed == ENOENT) code = SFT_NOT_FOUND;
    if (failed == EEXIST) code = SFT_EXISTS;
    return sfti_io_fail(err, code, failed, what);
}

static void local_path_free(const local_store *s, char *path) {
    if (path) sfti_release(&s->alloc, path, strlen(path) + 1);
}

/* For failures of sfti_os_open_beneath and sfti_os_unlink_beneath. */
static sft_code local_beneath_fail(sft_error *err, sft_code code, int failed, const char *what) {
    if (failed != EXDEV && failed != ELOOP) return local_fail(err, code, failed, what);
    code = failed == EXDEV ? SFT_INDEX_PATH : SFT_IS_LINK;
    sfti_fail(err, code, "expected a file of the dataset's folder, found %s",
              failed == EXDEV ? "a link that leads out of it" : "a symbolic link in its path");
    if (err) err->os_errno = failed;
    sfti_hint(err, SFT_HINT_DATASET_LINKS);
    return code;
}

/* "<folder>/<name>", or the folder alone where the name is "". */
static char *local_join(const local_store *s, const char *folder, const char *name) {
    size_t above = strlen(folder), len = strlen(name);
    char joint = len ? sfti_path_joint(sft_span_cstr(folder)) : 0;
    size_t cap = above + (joint != 0) + len + 1;
    char *path = sfti_take(&s->alloc, cap);
    if (!path) return NULL;
    memcpy(path, folder, above);
    if (joint) path[above++] = joint;
    memcpy(path + above, name, len);
    path[cap - 1] = '\0';
    return path;
}

/* "" is the folder itself. No part is empty, "." or "..": a name never leaves the folder. None of
 * the folders in it is a link, nor its last part if that is meant to be a folder; they need not
 * exist. */
static sft_code local_path(const local_store *s, const char *name, bool is_folder, char **out,
                           sft_error *err) {
    const char *why, *slash;
    bool good = SFTI_OS_PATHS != SFTI_PATHS_WINDOWS || !*name ||
                sfti_name_portable(sft_span_cstr(name), &why);
    for (const char *at = name; good && *name; at = slash + 1) {
        slash = strchr(at, '/');
        size_t len = slash ? (size_t)(slash - at) : strlen(at);
        good = len > 0 && !(at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.')));
        if (!slash) break;
    }
    if (!good)
        return sfti_misuse(err, "expected a name inside the dataset's folder, found \"%s\"", name);
    slash = strrchr(name, '/');
    size_t len = is_folder ? strlen(name) : slash ? (size_t)(slash - name) : 0;
    if (len > 0) {
        int fd = -1;
        char *above = sfti_take(&s->alloc, len + 1);
        if (!above) return sfti_fail_memory(err, len + 1);
        memcpy(above, name, len);
        above[len] = '\0';
        int failed = sfti_os_open_beneath(s->folder, above, OS_BENEATH_FOLDER, &fd);
        if (failed == 0) sfti_os_close(fd);
        sfti_release(&s->alloc, above, len + 1);
        if (failed && failed != ENOENT)
            return local_beneath_fail(err, SFT_IO_OPEN, failed, "open a folder");
    }
    *out = local_join(s, s->folder, name);
    return *out ? SFT_OK : sfti_fail_memory(err, strlen(name));
}

/* Creates the missing folders above the path's last part. Their names must survive a power failure,
 * too. */
static int local_make_folders(const local_store *s, char *path) {
    for (char *at = path + sfti_root_len(path); *at; at++) {
        char c = *at;
        os_info info;
        if (!sfti_is_separator(c)) continue;
        *at = '\0';
        int failed = sfti_os_info_path(path, true, &info);
        if (failed == ENOENT) {
            failed = sfti_os_make_folder(path, 0777);
            if (failed == 0 && !s->no_sync) failed = sfti_sync_parent(path);
            else if (failed == EEXIST) failed = 0;
        }
        *at = c;
        if (failed) return failed;
    }
    return 0;
}

/* ── Objects ── */

static sft_code local_create(void *ctx, const char *name, bool replace, sft_sink *out,
                             sft_error *err) {
    const local_store *s = ctx;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    char *path = NULL;
    options.no_sync = s->no_sync;
    options.no_clobber = !replace;
    /* A name in a job's folder need not be durable: the commit syncs the final one. */
    options.no_sync_folder = strchr(name, '/') != NULL;
    options.alloc = &s->alloc;
    sft_code code = local_path(s, name, false, &path, err);
    if (code) return code;
    int failed = local_make_folders(s, path);
    if (failed) code = local_fail(err, SFT_IO_WRITE, failed, "make the dataset's folder");
    if (!code) code = sft_sink_path(path, &options, out, err);
    local_path_free(s, path);
    if (code || sfti_ds_ends(sft_span_cstr(name), ".safetensors")) return code;

    /* What tells of the dataset is for no more people than its manifest. */
    os_info manifest;
    path = local_join(s, s->folder, SFTI_DATASET_MANIFEST);
    if (!path) code = sfti_fail_memory(err, strlen(s->folder));
    else if (sfti_os_info_path(path, true, &manifest) == 0)
        code = sft_sink_limit_mode(out, manifest.mode & 0777, err);
    local_path_free(s, path);
    if (code) sft_sink_abandon(out);
    return code;
}

static sft_code local_open(void *ctx, const char *name, sft_source *out, sft_error *err) {
    const local_store *s = ctx;
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    os_info info, folder, manifest;
    uint64_t number;
    char *path = NULL;
    sft_code code = local_path(s, name, false, &path, err);
    if (code) return code;
    how.alloc = &s->alloc;
    how.beneath = s->folder;
    code = sfti_source_open(path, &how, out, NULL, &info, err);
    if (code) goto done;

    /* In a sticky folder everyone may create files, but not replace another user's. There a commit
     * file, which acts as a new manifest, or a version (both are hidden) counts only if its owner
     * is the current user or the owner of the folder or of the manifest. */
    sft_span history, whole = sft_span_cstr(name);
    bool foreign = *name == '.' &&
                   (sfti_ds_is_commit_file(whole, &number) ||
                    sfti_ds_is_version(whole, &number, &history)) &&
                   info.owner != sfti_os_user() &&
                   !sfti_os_info_path(s->folder, true, &folder) &&
                   (folder.mode & OS_MODE_STICKY) && info.owner != folder.owner;
    if (foreign) {
        int fd = -1, failed = sfti_os_open_beneath(s->folder, SFTI_DATASET_MANIFEST,
                                                   OS_BENEATH_READ, &fd);
        if (failed == 0) failed = sfti_os_info_fd(fd, &manifest);
        if (fd >= 0) sfti_os_close(fd);
        foreign = failed || info.owner != manifest.owner;
    }
    if (foreign)
        code = sfti_fail(err, SFT_NOT_FOUND,
                         "expected a commit of the dataset's owner, found another user's");
    else if (sfti_ds_ends(sft_span_cstr(path), ".safetensors")) /* no interrupted edit */
        code = sfti_file_edited(path, &info, (sft_span){ NULL, 0 }, false, &s->alloc, NULL, err);
    if (code) sft_source_close(out);
done:
    local_path_free(s, path);
    return code;
}

static sft_code local_rename(const local_store *s, const char *from, const char *to,
                             bool no_clobber, int *failed, sft_error *err) {
    char *old = NULL, *new = NULL;
    sft_code code = local_path(s, from, false, &old, err);
    if (!code) code = local_path(s, to, false, &new, err);
    *failed = !code ? sfti_os_rename(old, new, no_clobber) : 0;
    local_path_free(s, old);
    local_path_free(s, new);
    if (*failed) code = local_fail(err, SFT_IO_PUBLISH, *failed, "move the file into place");
    return code;
}

static sft_code local_move(void *ctx, const char *from, const char *to, sft_error *err) {
    int failed;
    return local_rename(ctx, from, to, false, &failed, err);
}

static sft_code local_move_new(void *ctx, const char *from, const char *to, sft_error *err) {
    int failed;
    sft_code code = local_rename(ctx, from, to, true, &failed, err);
    if (failed != EPERM && failed != ENOSYS && failed != EOPNOTSUPP && failed != EINVAL &&
        failed != ENOTSUP)
        return code;
    return sfti_fail(err, SFT_DATASET_UNGUARDED, "expected a file system with locks, or with "
                     "renaming that never replaces, found one with neither");
}

static sft_code local_settle(void *ctx, const char *folder, sft_error *err) {
    const local_store *s = ctx;
    char *path = NULL;
    if (s->no_sync) return SFT_OK;
    sft_code code = local_path(s, folder, false, &path, err);
    if (code) return code;
    int failed = sfti_os_sync_folder(path);
    local_path_free(s, path);
    return failed && !sfti_no_folder_sync(failed)
               ? local_fail(err, SFT_IO_SYNC, failed, "sync the dataset's folder")
               : SFT_OK;
}

/* ── Listing ── */

typedef struct local_list_call {
    const local_store *store;
    char *folder;
    sft_stored_fn each;
    void *ctx;
    sft_code code;
    sft_error *err;
} local_list_call;

static int local_each(void *ctx, const char *name, os_kind kind) {
    local_list_call *l = ctx;
    os_info info;
    (void)kind;
    char *path = local_join(l->store, l->folder, name);
    if (!path) {
        l->code = sfti_fail_memory(l->err, strlen(name));
        return ENOMEM;
    }
    int failed = sfti_os_info_path(path, false, &info);
    local_path_free(l->store, path);
    if (failed) return failed == ENOENT ? 0 : failed; /* it may go meanwhile */
    sft_stored found = { name, info.kind == OS_DIR ? 0 : info.size,
                         info.mtime_ns / NS_A_SECOND, info.kind == OS_DIR,
                         info.ctime_ns / NS_A_SECOND };
    return l->each(l->ctx, &found) ? 0 : ECANCELED;
}

static sft_code local_list(void *ctx, const char *folder, sft_stored_fn each, void *each_ctx,
                           sft_error *err) {
    local_list_call l = { ctx, NULL, each, each_ctx, SFT_OK, err };
    sft_code code = local_path(ctx, folder, true, &l.folder, err);
    if (code) return code;
    int failed = sfti_os_list(l.folder, local_each, &l);
    local_path_free(ctx, l.folder);
    if (l.code) return l.code;
    if (failed == 0 || failed == ENOENT || failed == ECANCELED) return SFT_OK;
    return local_fail(err, SFT_IO_READ, failed, "list the dataset's folder");
}

/* ── Removing ── */

typedef struct local_files {
    const char *folder;
    sfti_ds_listing files;
    bool nested;
} local_files;

static int local_file_each(void *ctx, const char *name, os_kind kind) {
    local_files *f = ctx;
    f->nested = f->nested || kind == OS_DIR;
    return sfti_ds_listing_put(&f->files, f->folder, name, 0) ? 0 : ENOMEM;
}

/* Our folders hold files only; one with folders in it is left unchanged. */
static sft_code local_remove(void *ctx, const char *name, bool folder, sft_error *err) {
    const local_store *s = ctx;
    local_files f = { .folder = name, .files = { .arena = { .alloc = s->alloc } } };
    os_info info;
    char *path = NULL;
    sft_code code = local_path(s, name, false, &path, err);
    if (code) return code;
    int failed = sfti_os_info_path(path, false, &info);
    if (failed == 0 && !(folder && info.kind == OS_DIR)) {
        failed = sfti_os_unlink_beneath(s->folder, name);
    } else if (failed == 0) {
        failed = sfti_os_list(path, local_file_each, &f);
        if (failed == 0 && f.nested) failed = ENOTEMPTY;
        for (const sfti_ds_listed *one = f.files.first; one && failed == 0; one = one->next) {
            failed = sfti_os_unlink_beneath(s->folder, one->name);
            if (failed == ENOENT) failed = 0;
        }
        sfti_arena_free(&f.files.arena);
        if (failed == 0) failed = sfti_os_remove_folder(path);
    }
    local_path_free(s, path);
    if (failed == 0 || failed == ENOENT) return SFT_OK;
    return local_beneath_fail(err, SFT_IO_WRITE, failed, "remove the file");
}

/* ── Lock ── */

static sft_code local_lock(void *ctx, uint64_t wait_ms, sft_error *err) {
    local_store *s = ctx;
    os_info info;
    int fd = -1;
    char *path = NULL;
    sft_code code = local_path(s, LOCK_NAME, false, &path, err);
    if (code) return code;
    int failed = local_make_folders(s, path);
    if (failed == 0) failed = sfti_os_open_beneath(s->folder, LOCK_NAME, OS_BENEATH_WRITE, &fd);
    if (failed == ENOENT) {
        failed = sfti_os_open_new(path, 0666, &fd);
        if (failed == EEXIST)
            failed = sfti_os_open_beneath(s->folder, LOCK_NAME, OS_BENEATH_WRITE, &fd);
    }
    local_path_free(s, path);
    if (failed) return local_beneath_fail(err, SFT_IO_OPEN, failed, "open the dataset's lock");
    failed = sfti_os_info_fd(fd, &info);
    if (failed || info.kind != OS_FILE) {
        sfti_os_close(fd);
        if (failed) return local_fail(err, SFT_IO_OPEN, failed, "look at the dataset's lock");
        return sfti_fail(err, SFT_IO_NOT_FILE,
                         "expected the dataset's lock to be a file, found something else");
    }

    failed = sfti_os_lock(fd);
    for (uint64_t waited = 0; failed == EAGAIN && waited < wait_ms; waited += LOCK_PAUSE_MS) {
        sfti_os_sleep_ms(LOCK_PAUSE_MS);
        failed = sfti_os_lock(fd);
    }
    if (failed == 0) {
        s->lock_fd = fd;
        s->locked_by = sfti_os_process();
        return SFT_OK;
    }
    sfti_os_close(fd);
    if (failed == EOPNOTSUPP || failed == ENOLCK)
        return sfti_fail(err, SFT_DATASET_UNGUARDED,
                         "expected a file system with locks, found one without");
    if (failed != EAGAIN) return local_fail(err, SFT_IO_OPEN, failed, "lock the dataset");
    return sfti_fail(err, SFT_DATASET_BUSY,
                     "another commit to the dataset has been in progress for %llu s",
                     (unsigned long long)(wait_ms / 1000));
}

static void local_unlock(void *ctx) {
    local_store *s = ctx;
    int fd = s->lock_fd;
    s->lock_fd = -1; /* before unlocking: a waiting thread may take it at once */
    if (fd >= 0 && s->locked_by == sfti_os_process()) sfti_os_unlock(fd);
    if (fd >= 0) sfti_os_close(fd);
}

/* ── The store ── */

static void local_close(void *ctx) {
    local_store *s = ctx;
    sft_allocator alloc = s->alloc;
    local_unlock(s);
    sfti_release(&alloc, s, s->cap);
}

static const sft_storage_vtable local_vtable = {
    sizeof(sft_storage_vtable), local_create, local_open, local_list, local_move, local_settle,
    local_remove, local_lock, local_unlock, local_close, local_move_new, NULL, NULL
};

void sft_storage_close(sft_storage *storage) {
    if (!storage) return;
    if (SFTI_CAN(storage, sft_storage_vtable, close)) storage->vtable->close(storage->ctx);
    memset(storage, 0, sizeof *storage);
}

sft_code sft_storage_local(const char *folder, bool no_sync, const sft_allocator *alloc,
                           sft_storage *out, sft_error *err) {
    if (!folder || !*folder || !out)
        return sfti_misuse(err, "expected a folder and a place for the storage, found none");
    sft_allocator own = sfti_allocator(alloc);
    size_t len = sfti_path_trimmed(sft_span_cstr(folder)).len;
    size_t cap = sizeof(local_store) + len + 1;
    local_store *s = sfti_take(&own, cap);
    if (!s) return sfti_fail_memory(err, cap);
    *s = (local_store){ own, cap, no_sync, -1, 0 };
    memcpy(s->folder, folder, len);
    s->folder[len] = '\0';
    *out = (sft_storage){ s, &local_vtable, false };
    return SFT_OK;
}
