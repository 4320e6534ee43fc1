/* hf:// as a scheme. Tests: test_remote_hub_exchange.c. */
#include "remote/http/text.h"
#include "remote/hub/hub_state.h"

#include <string.h>

/* What a target owns. */
typedef struct hub_target {
    sfti_hub_name name;
    sfti_hub_repo *repo; /* NULL: offline */
    bool listing; /* it is no file */
    bool learnt;  /* guarded by remote->mutex: the cache was looked at, after a first answer */
} hub_target;

/* ── Resolving ── */

/* "ENDPOINT/[TYPE/]OWNER/NAME/resolve/[REVISION/]PATH"; NULL when out of memory. */
static const char *resolve_url(const sfti_hub *hub, const sfti_hub_name *name,
                               const char *revision, sfti_arena *arena) {
    bool model = name->type == SFTI_HUB_MODEL, bucket = name->type == SFTI_HUB_BUCKET;
    const char *id = sfti_hub_encode(arena, name->id, "/");
    const char *encoded = sfti_hub_encode(arena, bucket ? "" : revision, "");
    const char *path = sfti_hub_encode(arena, name->path, "/");
    return id && encoded && path ? SFTI_JOIN(arena, hub->endpoint, "/",
                                             model ? "" : sfti_hub_type_text(name->type),
                                             model ? "" : "/", id, "/resolve/", encoded,
                                             bucket ? "" : "/", path) : NULL;
}

static void take_cached(sfti_target *target, const sfti_hub_cached *cached) {
    target->local = cached->path;
    target->local_size = cached->bytes;
    if (cached->sha256[0]) memcpy(target->sha256, cached->sha256, sizeof cached->sha256);
    if (cached->commit[0]) memcpy(target->commit, cached->commit, sizeof cached->commit);
}

/* What a listing at the commit says of a file: its digest, or that there is none. */
static sft_code ask_listing(sfti_target *target, const sfti_hub_listing *listing,
                            const char *path, sft_error *err) {
    const sfti_hub_entry *entry = sfti_hub_find(listing, path);
    if (entry && entry->sha256) memcpy(target->sha256, entry->sha256, sizeof target->sha256);
    if (entry) return SFT_OK;
    if (sfti_hub_has_folder(listing, path))
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a folder");
    return sfti_fail(err, SFT_NOT_FOUND, "the repository has no file \"%.200s\"", path);
}

/* Read the target's name into what it owns. */
static sft_code own_name(sfti_target *target, hub_target **out, sft_error *err) {
    sft_remote *remote = target->remote;
    const sfti_hub *hub = sfti_hub_of(remote);
    hub_target *own = sfti_arena_take(&target->arena, sizeof *own);
    if (!own) return sfti_fail_memory(err, sizeof *own);
    target->own = *out = own;
    *own = (hub_target){ .repo = NULL };
    sft_code code = sfti_hub_read_name(target->name, &target->arena, &own->name, err);
    if (code || hub->offline) return code;
    if (!hub->endpoint)
        return sfti_fail(err, SFT_REMOTE_URL,
                         "expected a URL in HF_ENDPOINT, http or https, without user and query");
    own->repo = sfti_hub_repo_of(remote, &own->name);
    return own->repo ? SFT_OK : sfti_fail_memory(err, sizeof *own->repo);
}

static sft_code hub_resolve(sfti_target *target, sft_error *err) {
    sft_remote *remote = target->remote;
    const sfti_hub *hub = sfti_hub_of(remote);
    hub_target *own = NULL;
    sfti_hub_cached cached;
    char commit[65];
    sft_code code = own_name(target, &own, err);
    if (code) return code;
    if (!*own->name.path)
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a repository");
    if (hub->offline) {
        code = sfti_hub_cached_file(hub, &own->name, &target->arena, &cached, err);
        if (!code) take_cached(target, &cached);
        return code;
    }
    bool pinned = sfti_hub_pinned(remote, own->repo, commit);
    const sfti_hub_listing *listing = sfti_hub_listed(remote, own->repo);
    if (listing && pinned && strcmp(listing->commit, commit) == 0)
        code = ask_listing(target, listing, own->name.path, err);
    if (code) return code;
    if (pinned) memcpy(target->commit, commit, sizeof commit);
    if (pinned && sfti_hub_cached_at(hub, &own->name, commit, &target->arena, &cached))
        take_cached(target, &cached);
    target->url = resolve_url(hub, &own->name, pinned ? commit : own->repo->name.revision,
                              &target->arena);
    return target->url ? SFT_OK : sfti_fail_memory(err, SFTI_URL_MOST);
}

/* ── Who asks ── */

static sft_code hub_authorize(sfti_target *target, const char *url, sfti_headers *headers,
                              sft_error *err) {
    const sfti_hub *hub = sfti_hub_of(target->remote);
    if (!hub->token || !sfti_hub_is_origin(hub, url)) return SFT_OK;
    const char *bad = hub->token; /* a header holds no blanks, controls and other letters of it */
    while (*bad > ' ' && *bad <= '~') bad++;
    if (*bad) {
        sfti_fail(err, SFT_REMOTE_DENIED,
                  "expected a token of printable characters in %.300s, found others",
                  hub->token_at);
        sfti_hint(err, SFT_HINT_REMOTE_BAD_TOKEN);
        return SFT_REMOTE_DENIED;
    }
    const char *value = SFTI_JOIN(headers->arena, "Bearer ", hub->token);
    if (value && sfti_headers_add(headers, "authorization", value)) return SFT_OK;
    return sfti_fail_memory(err, strlen(hub->token));
}

/* ── Answers ── */

/* Read the file at this commit from now on, also if it is asked for once more. Called with the
 * mutex held: the text is the remote's, for the target may be a copy that ends earlier. */
static void learn_commit(sfti_target *target, const hub_target *own, const char *commit) {
    sft_remote *remote = target->remote;
    sfti_arena scratch = { .alloc = remote->alloc };
    if (strcmp(target->commit, commit) == 0) return;
    const char *url = resolve_url(sfti_hub_of(remote), &own->name, commit, &scratch);
    if (url) url = sfti_arena_copy(&remote->arena, url, strlen(url));
    if (url) target->url = url;
    sfti_arena_free(&scratch);
    memcpy(target->commit, commit, strlen(commit) + 1);
}

/* The SHA-256 of an entity tag without its quotes; NULL: it is something else. */
static const char *tag_digest(const char *tag) {
    if (strncmp(tag, "W/", 2) == 0) tag += 2;
    return sfti_hub_is_hex(tag, 64) ? tag : NULL;
}

/* Whether the cache has the very file that an answer speaks of. Texts are copied to the remote. */
static bool take_learnt(sfti_target *target, const hub_target *own, const sfti_answer *answer) {
    sft_remote *remote = target->remote;
    const sfti_hub *hub = sfti_hub_of(remote);
    const char *digest = tag_digest(answer->linked_etag);
    sfti_arena scratch = { .alloc = remote->alloc };
    sfti_hub_cached cached;
    bool found = sfti_hub_cached_at(hub, &own->name, answer->commit, &scratch, &cached);
    bool size = answer->linked_size == SFT_SIZE_UNKNOWN || answer->linked_size == cached.bytes;
    bool same = size && (!digest || !cached.sha256[0] || strcmp(digest, cached.sha256) == 0);
    const char *path = NULL;
    if (found && same) {
        sfti_os_mutex_lock(&remote->mutex);
        path = sfti_arena_copy(&remote->arena, cached.path, strlen(cached.path));
        sfti_os_mutex_unlock(&remote->mutex);
    }
    sfti_arena_free(&scratch);
    cached.path = path;
    if (path) take_cached(target, &cached);
    return path != NULL;
}

/* In the first answer with a commit the cache is looked at: a file that is being read is not
 * exchanged for another one. */
static bool hub_learn(sfti_target *target, const char *url, const sfti_answer *answer) {
    sft_remote *remote = target->remote;
    hub_target *own = target->own;
    if (own->listing || answer->status >= 400) return false;
    if (!sfti_hub_is_origin(sfti_hub_of(remote), url)) return false;
    const char *digest = tag_digest(answer->linked_etag);
    if (digest) memcpy(target->sha256, digest, sizeof target->sha256);
    if (!sfti_hub_is_commit(answer->commit)) return false;
    sfti_hub_pin(remote, own->repo, answer->commit);
    sfti_os_mutex_lock(&remote->mutex);
    bool first = !own->learnt;
    own->learnt = true;
    learn_commit(target, own, answer->commit);
    sfti_os_mutex_unlock(&remote->mutex);
    return first && take_learnt(target, own, answer);
}

/* ── Failures ── */

typedef enum hub_failure {
    HUB_NO_FAILURE = 0,
    HUB_NO_REPO,
    HUB_NO_REVISION,
    HUB_NO_FILE,
    HUB_GATED,
    HUB_DISABLED,
    HUB_BAD_TOKEN,
    HUB_NO_RIGHT,
    HUB_BUSY
} hub_failure;

/* By X-Error-Code or words of X-Error-Message, else by the status. */
static hub_failure failure_of(const sfti_answer *answer) {
    static const struct {
        const char *code, *words;
        hub_failure failure;
    } rows[] = {
        { "RevisionNotFound", NULL, HUB_NO_REVISION },
        { "EntryNotFound", NULL, HUB_NO_FILE },
        { "GatedRepo", NULL, HUB_GATED },
        { NULL, "Access to this resource is disabled", HUB_DISABLED },
        { NULL, "Invalid credentials in Authorization header", HUB_BAD_TOKEN },
        { "RepoNotFound", NULL, HUB_NO_REPO },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].code && strcmp(answer->error_code, rows[i].code) == 0) return rows[i].failure;
        if (rows[i].words && strstr(answer->error_message, rows[i].words)) return rows[i].failure;
    }
    switch (answer->status) {
    case 401: return HUB_NO_REPO; /* of what is private as of what is not there */
    case 403: return HUB_NO_RIGHT;
    case 404: return HUB_NO_FILE;
    case 429: return answer->wait_s >= 0 ? HUB_BUSY : HUB_NO_FAILURE;
    default: return HUB_NO_FAILURE;
    }
}

static void fail_denied(const sfti_target *target, const char *repo, hub_failure failure,
                        const sfti_answer *answer, sft_error *err) {
    const sfti_hub *hub = sfti_hub_of(target->remote);
    const char *why = answer->error_message[0] ? answer->error_message : answer->line;
    sft_hint hint = SFT_HINT_REMOTE_TOKEN;
    if (failure == HUB_GATED) {
        hint = SFT_HINT_REMOTE_GATED;
        sfti_fail(err, SFT_REMOTE_DENIED, "the repository \"%.200s\" is open only to those who "
                  "accepted its terms, at %.150s/%.200s", repo, hub->endpoint, repo);
    } else if (failure == HUB_DISABLED) {
        hint = SFT_HINT_NONE;
        sfti_fail(err, SFT_REMOTE_DENIED,
                  "the Hub has disabled access to the repository \"%.200s\"", repo);
    } else if (failure == HUB_BAD_TOKEN && hub->token) {
        hint = SFT_HINT_REMOTE_BAD_TOKEN;
        sfti_fail(err, SFT_REMOTE_DENIED, "the Hub does not accept the token of %.300s",
                  hub->token_at);
    } else {
        sfti_fail(err, SFT_REMOTE_DENIED,
                  "the Hub does not let \"%.200s\" be read %s%.100s: %.150s", repo,
                  hub->token ? "with the token of " : "without a token",
                  hub->token ? hub->token_at : "", *why ? why : "it does not say why");
    }
    sfti_hint(err, hint);
}

static bool hub_explain(sfti_target *target, const char *url, const sfti_answer *answer,
                        bool *again, sft_error *err) {
    const hub_target *own = target->own;
    hub_failure failure = failure_of(answer);
    *again = false;
    if (failure == HUB_NO_FILE && own->listing) failure = HUB_NO_REPO;
    if (failure == HUB_NO_FAILURE || !sfti_hub_is_origin(sfti_hub_of(target->remote), url))
        return false;
    const sfti_hub_name repo = { own->name.type, own->name.id, NULL, "" };
    const char *shown = sfti_hub_write_name(&repo, &target->arena);
    shown = shown ? shown + strlen("hf://") : own->name.id;
    const char *revision = own->repo->name.revision;
    const uint64_t minutes = answer->wait_s > 0 ? ((uint64_t)answer->wait_s + 59) / 60 : 0;
    const sfti_hub *hub = sfti_hub_of(target->remote);
    switch (failure) {
    case HUB_NO_REPO:
        sfti_fail(err, answer->status == 404 ? SFT_NOT_FOUND : SFT_REMOTE_DENIED,
                  "the Hub has no repository \"%.200s\", or none that may be read %s%.150s", shown,
                  hub->token ? "with the token of " : "without a token",
                  hub->token ? hub->token_at : "");
        sfti_hint(err, SFT_HINT_REMOTE_TOKEN);
        break;
    case HUB_NO_REVISION:
        sfti_fail(err, SFT_NOT_FOUND, "the repository \"%.200s\" has no revision \"%.200s\"", shown,
                  revision);
        break;
    case HUB_NO_FILE:
        sfti_fail(err, SFT_NOT_FOUND, "the repository \"%.150s\" has no \"%.150s\" at \"%.100s\"",
                  shown, own->name.path, revision);
        break;
    case HUB_BUSY:
        sfti_fail(err, SFT_REMOTE_BUSY,
                  "the limit of requests to the Hub is reached, for %llu %s more",
                  (unsigned long long)minutes, minutes == 1 ? "minute" : "minutes");
        sfti_hint(err, SFT_HINT_REMOTE_LIMIT);
        break;
    default: fail_denied(target, shown, failure, answer, err);
    }
    return true;
}

/* ── Folders ── */

static sft_code tell_files(sfti_target *target, sft_listed_fn each, void *each_ctx,
                           sft_error *err) {
    sft_remote *remote = target->remote;
    const sfti_hub *hub = sfti_hub_of(remote);
    hub_target *own = NULL;
    sft_code code = own_name(target, &own, err);
    if (code) return code;
    own->listing = true;
    if (hub->offline)
        return sfti_hub_cached_list(hub, &own->name, &target->arena, each, each_ctx, err);
    const sfti_hub_listing *listing = sfti_hub_listed(remote, own->repo);
    if (!listing) code = sfti_hub_list(target, own->repo, &listing, err);
    return code ? code : sfti_hub_tell(listing, own->name.path, each, each_ctx, err);
}

static sft_code hub_list(sft_remote *remote, const char *folder, sft_listed_fn each,
                         void *each_ctx, sft_error *err) {
    sfti_target target = { .remote = remote, .scheme = &sfti_hub_scheme, .name = folder,
                           .arena = { .alloc = remote->alloc } };
    sft_code code = tell_files(&target, each, each_ctx, err);
    sfti_arena_free(&target.arena);
    return code;
}

/* A repository, or what ends in a slash. */
static bool hub_is_folder(const char *name) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_hub_name read;
    size_t len = strlen(name);
    bool folder = len > 0 && name[len - 1] == '/';
    if (!folder) folder = !sfti_hub_read_name(name, &arena, &read, NULL) && !*read.path;
    sfti_arena_free(&arena);
    return folder;
}

const sfti_scheme sfti_hub_scheme = {
    .id = SFTI_SCHEME_HUB,
    .name = "hf",
    .open = sfti_hub_open,
    .close = sfti_hub_close,
    .resolve = hub_resolve,
    .authorize = hub_authorize,
    .learn = hub_learn,
    .explain = hub_explain,
    .list = hub_list,
    .is_folder = hub_is_folder,
};
