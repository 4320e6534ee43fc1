/* What was learnt of the Hub's repositories: the commits they are read at, and their files. */
#include "remote/hub/hub_state.h"

#include <string.h>

/* ── Commits ── */

bool sfti_hub_is_hex(const char *text, size_t digits) {
    return strspn(text, "0123456789abcdef") == digits && text[digits] == '\0';
}

bool sfti_hub_is_commit(const char *text) {
    return sfti_hub_is_hex(text, 40) || sfti_hub_is_hex(text, 64);
}

static sfti_hub_repo *new_repo(sft_remote *remote, const sfti_hub_name *name,
                               const char *revision) {
    sfti_arena *arena = &remote->arena;
    sfti_hub_repo *repo = sfti_arena_take(arena, sizeof *repo);
    if (!repo) return NULL;
    *repo = (sfti_hub_repo){ .name = { name->type, NULL, NULL, "" } };
    repo->name.id = sfti_arena_copy(arena, name->id, strlen(name->id));
    repo->name.revision = sfti_arena_copy(arena, revision, strlen(revision));
    if (!repo->name.id || !repo->name.revision) return NULL;
    if (sfti_hub_is_commit(revision)) memcpy(repo->commit, revision, strlen(revision) + 1);
    return repo;
}

sfti_hub_repo *sfti_hub_repo_of(sft_remote *remote, const sfti_hub_name *name) {
    sfti_hub *hub = sfti_hub_of(remote);
    const char *revision = name->revision ? name->revision : "main";
    sfti_os_mutex_lock(&remote->mutex);
    sfti_hub_repo *repo = hub->repos;
    while (repo && (repo->name.type != name->type || strcmp(repo->name.id, name->id) != 0 ||
                    strcmp(repo->name.revision, revision) != 0))
        repo = repo->next;
    if (!repo && (repo = new_repo(remote, name, revision)) != NULL) {
        repo->next = hub->repos;
        hub->repos = repo;
    }
    sfti_os_mutex_unlock(&remote->mutex);
    return repo;
}

bool sfti_hub_pinned(sft_remote *remote, const sfti_hub_repo *repo, char out[65]) {
    sfti_os_mutex_lock(&remote->mutex);
    memcpy(out, repo->commit, sizeof repo->commit);
    sfti_os_mutex_unlock(&remote->mutex);
    return out[0] != '\0';
}

void sfti_hub_pin(sft_remote *remote, sfti_hub_repo *repo, const char *commit) {
    sfti_os_mutex_lock(&remote->mutex);
    if (!repo->commit[0] && sfti_hub_is_commit(commit))
        memcpy(repo->commit, commit, strlen(commit) + 1);
    sfti_os_mutex_unlock(&remote->mutex);
}

/* ── Listings ── */

const sfti_hub_listing *sfti_hub_listed(sft_remote *remote, const sfti_hub_repo *repo) {
    sfti_os_mutex_lock(&remote->mutex);
    const sfti_hub_listing *listing = repo->listing;
    sfti_os_mutex_unlock(&remote->mutex);
    return listing;
}

const sfti_hub_listing *sfti_hub_keep(sft_remote *remote, sfti_hub_repo *repo,
                                      sfti_hub_listing *listing) {
    sfti_os_mutex_lock(&remote->mutex);
    sfti_hub_listing *kept = repo->listing;
    if (!kept && (kept = sfti_arena_take(&remote->arena, sizeof *kept)) != NULL) {
        *kept = *listing;
        *listing = (sfti_hub_listing){ .arena = { .alloc = remote->alloc } };
        repo->listing = kept;
    }
    sfti_os_mutex_unlock(&remote->mutex);
    sfti_arena_free(&listing->arena);
    return kept;
}

void sfti_hub_close(sft_remote *remote) {
    const sfti_hub *hub = sfti_hub_of(remote);
    for (sfti_hub_repo *repo = hub ? hub->repos : NULL; repo; repo = repo->next)
        if (repo->listing) sfti_arena_free(&repo->listing->arena);
}

/* How a path compares with a text and `end` after it: 0 also if more follows a slash. */
static int compare_path(const char *path, sft_span text, char end) {
    int sign = strncmp(path, text.data, text.len);
    return sign ? sign : (unsigned char)path[text.len] - (unsigned char)end;
}

/* The first entry that is not less. */
static size_t seek_path(const sfti_hub_listing *listing, sft_span text, char end) {
    size_t low = 0, high = listing->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_path(listing->entries[middle].path, text, end) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

const sfti_hub_entry *sfti_hub_find(const sfti_hub_listing *listing, const char *path) {
    sft_span text = sft_span_cstr(path);
    size_t at = seek_path(listing, text, '\0');
    bool there = at < listing->count && !compare_path(listing->entries[at].path, text, '\0');
    return there ? &listing->entries[at] : NULL;
}

static bool is_beneath(const sfti_hub_listing *listing, size_t at, sft_span folder) {
    return at < listing->count &&
           (folder.len == 0 || !compare_path(listing->entries[at].path, folder, '/'));
}

bool sfti_hub_has_folder(const sfti_hub_listing *listing, const char *path) {
    sft_span folder = sft_span_cstr(path);
    return is_beneath(listing, seek_path(listing, folder, '/'), folder);
}

sft_code sfti_hub_tell(const sfti_hub_listing *listing, const char *folder, sft_listed_fn each,
                       void *each_ctx, sft_error *err) {
    sft_span base = sft_span_cstr(folder);
    size_t at = base.len ? seek_path(listing, base, '/') : 0, skip = base.len + (base.len > 0);
    sfti_arena names = { .alloc = listing->arena.alloc };
    if (base.len > 0 && sfti_hub_find(listing, folder))
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a folder, found a file");
    if (base.len > 0 && !is_beneath(listing, at, base))
        return sfti_fail(err, SFT_NOT_FOUND, "the repository has no folder \"%.*s\"",
                         SFTI_CLIP(base, 200));
    sft_code code = SFT_OK;
    for (bool more = true; more && is_beneath(listing, at, base);) {
        const sfti_hub_entry *entry = &listing->entries[at];
        sft_span name = { entry->path, skip + strcspn(entry->path + skip, "/") };
        sft_listed listed = { entry->path + skip, entry->path[name.len] == '/', entry->bytes };
        at++;
        if (listed.folder) {
            while (is_beneath(listing, at, name)) at++;
            listed.bytes = SFT_SIZE_UNKNOWN;
            listed.name = sfti_arena_copy(&names, name.data + skip, name.len - skip);
        }
        if (!listed.name) code = sfti_fail_memory(err, name.len);
        more = listed.name && each(each_ctx, &listed);
    }
    sfti_arena_free(&names);
    return code;
}
