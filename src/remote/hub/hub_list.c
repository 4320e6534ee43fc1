/* Lists a repository of the Hub. Tests: test_remote_hub_exchange.c. */
#include "remote/hub/hub_state.h"

#include "base/json.h"
#include "base/order.h"
#include "base/utf8.h"
#include "remote/http/http.h"
#include "remote/http/text.h"

#include <string.h>

#define HUB_PAGES_MOST 100
#define HUB_BYTES_MOST ((uint64_t)64 << 20)  /* of all pages of a listing */
#define HUB_COMMIT_MOST ((uint64_t)16 << 20) /* of an answer that tells a commit */

/* ── JSON ── */

/* The value of a key, if it is a string without NULs, else data NULL; of the arena. False: no
 * memory. */
static bool take_string(sfti_json *json, sfti_arena *arena, sft_span *out) {
    *out = (sft_span){ NULL, 0 };
    if (sfti_json_next(json) != SFTI_JSON_STRING) {
        if (json->type == SFTI_JSON_OBJECT || json->type == SFTI_JSON_ARRAY) sfti_json_skip(json);
        return true;
    }
    sft_span text = sfti_json_string(json, arena);
    if (!text.data) return false;
    out->data = sfti_arena_copy(arena, text.data, text.len);
    out->len = text.len;
    if (!out->data) return false;
    if (strlen(out->data) < out->len) *out = (sft_span){ NULL, 0 };
    return true;
}

static void take_size(sfti_json *json, uint64_t *out) {
    if (sfti_json_next(json) == SFTI_JSON_UINT) *out = json->value;
    else if (json->type == SFTI_JSON_OBJECT || json->type == SFTI_JSON_ARRAY) sfti_json_skip(json);
}

static sft_code fail_answer(const sfti_json *json, sft_error *err) {
    return sfti_fail(err, SFT_REMOTE_STATUS,
                     "expected the Hub's list of files, found JSON without %s at byte %llu",
                     json->why ? json->why : "a list of objects",
                     (unsigned long long)json->error_at);
}

/* ── Entries ── */

typedef struct hub_pages {
    sfti_hub_listing listing;
    size_t cap;
    uint64_t bytes;
} hub_pages;

/* "lfs": {"oid": SHA-256, "size": bytes}. False: no memory. */
static bool take_lfs(sfti_json *json, sfti_arena *arena, sfti_hub_entry *entry) {
    sft_span oid;
    if (sfti_json_next(json) != SFTI_JSON_OBJECT) {
        if (json->type == SFTI_JSON_ARRAY) sfti_json_skip(json);
        return true;
    }
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        if (sfti_json_is(json, "oid")) {
            if (!take_string(json, arena, &oid)) return false;
            if (oid.data && sfti_hub_is_hex(oid.data, 64)) entry->sha256 = oid.data;
        } else if (sfti_json_is(json, "size")) {
            take_size(json, &entry->bytes);
        } else {
            sfti_json_skip(json);
        }
    }
    return true;
}

/* An entry, up to the end of its object; path NULL: it is no file. False: no memory. */
static bool take_file(sfti_json *json, sfti_arena *arena, sfti_hub_entry *entry) {
    sft_span type = { NULL, 0 }, path = { NULL, 0 };
    bool fits = true;
    *entry = (sfti_hub_entry){ NULL, SFT_SIZE_UNKNOWN, NULL };
    while (fits && sfti_json_next(json) == SFTI_JSON_KEY) {
        if (sfti_json_is(json, "type")) fits = take_string(json, arena, &type);
        else if (sfti_json_is(json, "path")) fits = take_string(json, arena, &path);
        else if (sfti_json_is(json, "lfs")) fits = take_lfs(json, arena, entry);
        else if (sfti_json_is(json, "size")) take_size(json, &entry->bytes);
        else sfti_json_skip(json);
    }
    bool file = type.data && path.data && sft_span_equal(type, sft_span_cstr("file"));
    if (file && sfti_hub_is_path(path)) entry->path = path.data;
    return fits;
}

/* One page: a list of objects. Names that cannot be asked for are left out. */
static sft_code take_page(hub_pages *pages, sft_span text, sft_error *err) {
    sfti_json json;
    sfti_hub_entry entry, *entries;
    sfti_hub_listing *listing = &pages->listing;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_utf8_check(text.data, text.len) != text.len) return fail_answer(&json, err);
    if (sfti_json_next(&json) != SFTI_JSON_ARRAY) return fail_answer(&json, err);
    while (sfti_json_next(&json) == SFTI_JSON_OBJECT) {
        if (!take_file(&json, &listing->arena, &entry)) return sfti_fail_memory(err, sizeof entry);
        if (!entry.path) continue;
        entries = sfti_arena_grow(&listing->arena, listing->entries, listing->count, 1,
                                  &pages->cap, sizeof *entries);
        if (!entries) return sfti_fail_memory(err, sizeof entry);
        listing->entries = entries;
        entries[listing->count++] = entry;
    }
    bool whole = json.type == SFTI_JSON_ARRAY_END && sfti_json_next(&json) == SFTI_JSON_END;
    return whole ? SFT_OK : fail_answer(&json, err);
}

static int compare_entries_by_path(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_hub_entry *entries = ctx;
    return strcmp(entries[a].path, entries[b].path);
}

/* Sort, each path once. */
static bool sort_listing(sfti_hub_listing *listing) {
    sfti_arena *arena = &listing->arena;
    uint32_t *order = sfti_arena_sorted(arena, listing->count, compare_entries_by_path,
                                        listing->entries);
    sfti_hub_entry *sorted = sfti_arena_array(arena, listing->count, sizeof *sorted);
    size_t count = 0;
    if (!order || !sorted) return false;
    for (size_t i = 0; i < listing->count; i++) {
        const sfti_hub_entry *entry = &listing->entries[order[i]];
        if (count == 0 || strcmp(sorted[count - 1].path, entry->path) != 0)
            sorted[count++] = *entry;
    }
    listing->entries = sorted;
    listing->count = count;
    return true;
}

/* ── Requests ── */

/* "ENDPOINT/api/TYPE/OWNER/NAME/what[/REVISION]query", set as the target's. */
static sft_code set_url(sfti_target *target, const sfti_hub_repo *repo, const char *what,
                        const char *revision, const char *query, sft_error *err) {
    sfti_arena *arena = &target->arena;
    bool bucket = repo->name.type == SFTI_HUB_BUCKET;
    const char *id = sfti_hub_encode(arena, repo->name.id, "/");
    const char *encoded = sfti_hub_encode(arena, bucket ? "" : revision, "");
    target->url = id && encoded ? SFTI_JOIN(arena, sfti_hub_of(target->remote)->endpoint, "/api/",
                                            sfti_hub_type_text(repo->name.type), "/", id, "/", what,
                                            bucket ? "" : "/", encoded, query) : NULL;
    return target->url ? SFT_OK : sfti_fail_memory(err, SFTI_URL_MOST);
}

/* The "sha" of an object; empty if it has none that is a commit. */
static bool take_sha(sft_span text, sfti_arena *arena, char out[65]) {
    sfti_json json;
    sft_span sha = { NULL, 0 };
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return true;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        if (!sfti_json_is(&json, "sha")) sfti_json_skip(&json);
        else if (!take_string(&json, arena, &sha)) return false;
    }
    if (sha.data && sfti_hub_is_commit(sha.data)) memcpy(out, sha.data, sha.len + 1);
    return true;
}

/* Ask which commit a revision is, so that the files are listed and read at the same one. A Hub
 * that does not answer that is listed as it is. */
static sft_code ask_commit(sfti_target *target, sfti_hub_repo *repo, sft_error *err) {
    sft_buffer body = { .alloc = target->remote->alloc };
    sfti_ask ask = { .most = HUB_COMMIT_MOST, .missing_ok = true };
    sfti_answer answer;
    char commit[65] = "";
    sft_code code = set_url(target, repo, "revision", repo->name.revision, "?expand%5B%5D=sha",
                            err);
    if (code) return code;
    code = sfti_http_ask(target, &ask, &body, &answer, err);
    sft_span text = { (const char *)body.data, body.len };
    if (!code && answer.status != 404 && !take_sha(text, &target->arena, commit))
        code = sfti_fail_memory(err, body.len);
    if (!code && commit[0]) sfti_hub_pin(target->remote, repo, commit);
    sfti_answer_free(&answer);
    sft_buffer_free(&body);
    return code;
}

/* One page, at target->url; then that of the next one, or NULL. */
static sft_code ask_page(sfti_target *target, sfti_hub_repo *repo, hub_pages *pages,
                         sft_error *err) {
    sft_buffer body = { .alloc = target->remote->alloc };
    sfti_ask ask = { .most = HUB_BYTES_MOST - pages->bytes };
    sfti_answer answer;
    sft_code code = sfti_http_ask(target, &ask, &body, &answer, err);
    if (code) goto done;
    pages->bytes += body.len;
    sfti_hub_pin(target->remote, repo, answer.commit);
    code = take_page(pages, (sft_span){ (const char *)body.data, body.len }, err);
    if (code) goto done;
    const char *base = target->url;
    target->url = NULL;
    if (!answer.next[0]) goto done;
    bool cut = strlen(answer.next) == sizeof answer.next - 1;
    bool room = sfti_arena_reserve(&target->arena, SFTI_URL_MOST + 8);
    if (room && !cut)
        target->url = sfti_url_join(&target->arena, base, sft_span_cstr(answer.next));
    if (!room)
        code = sfti_fail_memory(err, SFTI_URL_MOST);
    else if (!target->url)
        code = sfti_fail(err, SFT_REMOTE_STATUS,
                         "expected the URL of the next page of files, found another Link");
    else if (!sfti_hub_is_origin(sfti_hub_of(target->remote), target->url))
        code = sfti_fail(err, SFT_REMOTE_REDIRECT,
                         "expected the next page of files on the Hub, found another server");
done:
    sfti_answer_free(&answer);
    sft_buffer_free(&body);
    return code;
}

sft_code sfti_hub_list(sfti_target *target, sfti_hub_repo *repo, const sfti_hub_listing **out,
                       sft_error *err) {
    sft_remote *remote = target->remote;
    hub_pages pages = { .listing = { .arena = { .alloc = remote->alloc } } };
    char commit[65] = "";
    sft_code code = SFT_OK;
    *out = NULL;
    bool pinned = sfti_hub_pinned(remote, repo, commit);
    if (!pinned && repo->name.type != SFTI_HUB_BUCKET) code = ask_commit(target, repo, err);
    if (!code && !pinned) pinned = sfti_hub_pinned(remote, repo, commit);
    if (!code) code = set_url(target, repo, "tree", pinned ? commit : repo->name.revision,
                              "?recursive=true", err);
    for (size_t n = 0; !code && target->url && n < HUB_PAGES_MOST; n++)
        code = ask_page(target, repo, &pages, err);
    if (!code && target->url)
        code = sfti_fail(err, SFT_FILE_TOO_LARGE,
                         "expected at most %d pages and %llu MiB of file names, found more",
                         HUB_PAGES_MOST, (unsigned long long)(HUB_BYTES_MOST >> 20));
    if (pinned) memcpy(pages.listing.commit, commit, sizeof commit);
    if (!code && sort_listing(&pages.listing)) *out = sfti_hub_keep(remote, repo, &pages.listing);
    else sfti_arena_free(&pages.listing.arena);
    return code || *out ? code : sfti_fail_memory(err, sizeof pages);
}
