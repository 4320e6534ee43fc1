/* The cache of huggingface_hub, which is only read. Tests: test_remote_hub_exchange.c. */
#include "remote/hub/hub_state.h"

#include "base/order.h"
#include "os/io.h"
#include "remote/http/text.h"

#include <errno.h>
#include <string.h>

#define CACHE_PATH_MOST 4096 /* of the system */

/* ── Paths in the cache ── */

/* "CACHE/models--OWNER--NAME". */
static const char *repo_folder(const sfti_hub *hub, const sfti_hub_name *name,
                               sfti_arena *arena) {
    const char *slash = strchr(name->id, '/');
    const char *owner = sfti_arena_copy(arena, name->id, (size_t)(slash - name->id));
    return owner ? SFTI_JOIN(arena, hub->cache, "/", sfti_hub_type_text(name->type), "--", owner,
                             "--", slash + 1) : NULL;
}

static bool is_kind(const char *path, os_kind kind) {
    os_info info;
    return sfti_os_info_path(path, true, &info) == 0 && info.kind == kind;
}

/* ── Files ── */

/* Find the bytes of a file of a snapshot: sfti_os_open_beneath says whether they may be read, and
 * the real path is believed to name the same file only if it does. An errno. */
static int find_blob(const char *snapshot, const char *path, sfti_arena *arena,
                     sfti_hub_cached *out) {
    char real[CACHE_PATH_MOST];
    os_info info, there;
    const char *link = SFTI_JOIN(arena, snapshot, "/", path);
    int fd, error = link ? sfti_os_open_beneath(snapshot, path, OS_BENEATH_READ, &fd) : ENOMEM;
    if (error) return error;
    error = sfti_os_info_fd(fd, &info);
    (void)sfti_os_close(fd);
    if (!error && info.kind != OS_FILE) error = EISDIR;
    if (!error) error = sfti_os_real_path(link, real, sizeof real);
    if (!error) error = sfti_os_info_path(real, false, &there);
    if (!error && (there.device != info.device || there.inode != info.inode)) error = EXDEV;
    if (error) return error;
    out->path = sfti_arena_copy(arena, real, strlen(real));
    out->bytes = info.size;
    /* The blob that the link names, if that is a SHA-256. */
    if (!sfti_os_read_link(link, real, sizeof real)) {
        static const char blobs[] = "blobs/";
        const char *slash = strrchr(real, '/');
        size_t len = slash ? (size_t)(slash + 1 - real) : 0, n = sizeof blobs - 1;
        if (len >= n && !memcmp(slash + 1 - n, blobs, n) && sfti_hub_is_hex(slash + 1, 64))
            memcpy(out->sha256, slash + 1, 65);
    }
    return out->path ? 0 : ENOMEM;
}

static const char *snapshot_folder(const char *repo, const char *commit, sfti_arena *arena) {
    return SFTI_JOIN(arena, repo, "/snapshots/", commit);
}

/* A folder of the repository's own: links in it are judged by where it lies, so none may lead to
 * it. The repository's folder may be a link. */
static bool is_snapshot(const char *repo, const char *snapshot) {
    os_info info;
    char parent[CACHE_PATH_MOST];
    size_t len = strlen(repo) + strlen("/snapshots");
    if (len >= sizeof parent) return false;
    memcpy(parent, snapshot, len);
    parent[len] = '\0';
    return sfti_os_info_path(parent, false, &info) == 0 && info.kind == OS_DIR
        && sfti_os_info_path(snapshot, false, &info) == 0 && info.kind == OS_DIR;
}

bool sfti_hub_cached_at(const sfti_hub *hub, const sfti_hub_name *name, const char *commit,
                        sfti_arena *arena, sfti_hub_cached *out) {
    *out = (sfti_hub_cached){ .path = NULL };
    if (!hub->cache || name->type == SFTI_HUB_BUCKET) return false;
    const char *repo = repo_folder(hub, name, arena);
    const char *snapshot = repo ? snapshot_folder(repo, commit, arena) : NULL;
    if (!snapshot || !is_snapshot(repo, snapshot)) return false;
    if (find_blob(snapshot, name->path, arena, out)) return false;
    memcpy(out->commit, commit, strlen(commit) + 1);
    return true;
}

/* ── Without the network ── */

static const char no_revision[] = "there is no such revision";

static sft_code fail_uncached(sft_error *err, const sfti_hub_name *name, const char *why) {
    return sfti_fail(err, SFT_REMOTE_OFFLINE,
                     "%.100s%s%.100s%s%.150s is not in the Hub's cache: %s", name->id,
                     name->revision ? "@" : "", name->revision ? name->revision : "",
                     *name->path ? "/" : "", name->path, why);
}

/* A repository of the cache, and the commit that it has for a revision. */
typedef struct cached_repo {
    const char *folder;
    const char *commit;   /* or whatever the snapshot's folder is called */
    const char *snapshot;
} cached_repo;

/* The commit that refs/REVISION holds, or the revision itself. Needs no snapshot. */
static sft_code find_cached_repo(const sfti_hub *hub, const sfti_hub_name *name,
                                 sfti_arena *arena, cached_repo *out, sft_error *err) {
    if (name->type == SFTI_HUB_BUCKET) return fail_uncached(err, name, "buckets are not cached");
    if (!hub->cache) return fail_uncached(err, name, "HF_HOME and HOME are not set");
    const char *revision = name->revision ? name->revision : "main";
    out->folder = repo_folder(hub, name, arena);
    const char *ref = out->folder ? SFTI_JOIN(arena, out->folder, "/refs/", revision) : NULL;
    if (!ref) return sfti_fail_memory(err, strlen(name->id));
    if (!is_kind(out->folder, OS_DIR))
        return fail_uncached(err, name, "there is nothing of this repository");
    sft_span text = sfti_remote_small_file(arena, ref, 64);
    out->commit = text.data ? text.data : revision;
    if (text.data ? !sfti_hub_is_commit(text.data) : strchr(revision, '/') != NULL)
        return fail_uncached(err, name, no_revision);
    out->snapshot = snapshot_folder(out->folder, out->commit, arena);
    return out->snapshot ? SFT_OK : sfti_fail_memory(err, strlen(out->folder));
}

/* Why a file of a snapshot cannot be read. */
static sft_code fail_blob(const sfti_hub_name *name, const char *snapshot, int error,
                          sfti_arena *arena, sft_error *err) {
    const char *link = SFTI_JOIN(arena, snapshot, "/", name->path);
    os_info info;
    if (error == ENOMEM || !link) return sfti_fail_memory(err, CACHE_PATH_MOST);
    if (error == EXDEV || error == ELOOP)
        return fail_uncached(err, name, "its link leads elsewhere");
    if (error == EISDIR)
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a folder");
    if (error != ENOENT && error != ENOTDIR) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    bool broken = sfti_os_info_path(link, false, &info) == 0 && info.kind == OS_LINK;
    return fail_uncached(err, name, broken ? "its blob is missing"
                                           : "there is no such file of this revision");
}

sft_code sfti_hub_cached_file(const sfti_hub *hub, const sfti_hub_name *name, sfti_arena *arena,
                              sfti_hub_cached *out, sft_error *err) {
    cached_repo repo;
    *out = (sfti_hub_cached){ .path = NULL };
    sft_code code = find_cached_repo(hub, name, arena, &repo, err);
    if (code) return code;
    const char *absent = SFTI_JOIN(arena, repo.folder, "/.no_exist/", repo.commit, "/", name->path);
    if (!absent) return sfti_fail_memory(err, strlen(repo.folder));
    if (is_kind(absent, OS_FILE))
        return sfti_fail(err, SFT_NOT_FOUND,
                         "the repository has no such file, as the Hub's cache recorded");
    if (!is_snapshot(repo.folder, repo.snapshot)) return fail_uncached(err, name, no_revision);
    int error = find_blob(repo.snapshot, name->path, arena, out);
    if (error) return fail_blob(name, repo.snapshot, error, arena, err);
    if (sfti_hub_is_commit(repo.commit)) memcpy(out->commit, repo.commit, strlen(repo.commit) + 1);
    return SFT_OK;
}

/* ── Folders ── */

typedef struct cached_folder {
    sfti_arena *arena;
    const char *snapshot, *path; /* "": all of the snapshot */
    sft_listed *entries;
    size_t count, cap;
} cached_folder;

/* Folders, and files that can be opened: sfti_os_list's function, an errno. */
static int take_entry(void *ctx, const char *name, os_kind kind) {
    cached_folder *folder = ctx;
    const char *path = SFTI_JOIN(folder->arena, folder->path, *folder->path ? "/" : "", name);
    sfti_hub_cached file = { .bytes = SFT_SIZE_UNKNOWN };
    int error = path ? 0 : ENOMEM;
    if (!error && kind != OS_DIR) error = find_blob(folder->snapshot, path, folder->arena, &file);
    if (error) return error == ENOMEM ? error : 0;
    sft_listed *entries = sfti_arena_grow(folder->arena, folder->entries, folder->count, 1,
                                          &folder->cap, sizeof *entries);
    if (!entries) return ENOMEM;
    folder->entries = entries;
    entries[folder->count++] = (sft_listed){ path + strlen(path) - strlen(name), kind == OS_DIR,
                                             file.bytes };
    return 0;
}

static int compare_cached(const void *ctx, uint32_t a, uint32_t b) {
    const sft_listed *entries = ctx;
    return strcmp(entries[a].name, entries[b].name);
}

static sft_code tell_folder(cached_folder *folder, const char *path, sft_listed_fn each,
                            void *each_ctx, sft_error *err) {
    int error = sfti_os_list(path, take_entry, folder);
    if (error == ENOMEM) return sfti_fail_memory(err, CACHE_PATH_MOST);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "list the folder");
    uint32_t *order = sfti_arena_sorted(folder->arena, folder->count, compare_cached,
                                        folder->entries);
    if (!order) return sfti_fail_memory(err, folder->count * sizeof *order);
    for (size_t i = 0; i < folder->count; i++)
        if (!each(each_ctx, &folder->entries[order[i]])) break;
    return SFT_OK;
}

sft_code sfti_hub_cached_list(const sfti_hub *hub, const sfti_hub_name *name, sfti_arena *arena,
                              sft_listed_fn each, void *each_ctx, sft_error *err) {
    cached_repo repo;
    int fd;
    sft_code code = find_cached_repo(hub, name, arena, &repo, err);
    if (code) return code;
    if (!is_snapshot(repo.folder, repo.snapshot)) return fail_uncached(err, name, no_revision);
    const char *path = SFTI_JOIN(arena, repo.snapshot, *name->path ? "/" : "", name->path);
    if (!path) return sfti_fail_memory(err, strlen(repo.snapshot));
    if (is_kind(path, OS_FILE))
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a folder, found a file");
    if (sfti_os_open_beneath(repo.snapshot, name->path, OS_BENEATH_FOLDER, &fd))
        return fail_uncached(err, name, "there is no such folder of this revision");
    (void)sfti_os_close(fd);
    cached_folder folder = { .arena = arena, .snapshot = repo.snapshot, .path = name->path };
    return tell_folder(&folder, path, each, each_ctx, err);
}
