/* Names of URLs: what is shown, and what stands for the URL wherever paths do.
 * Tests: test_remote_names.c. */
#include "base/names.h"
#include "os/io.h"
#include "remote/http/text.h"
#include "remote/hub/hub_state.h"

#include <stdio.h>
#include <string.h>

/* A URL and its name, both of the remote's arena. The name of one with secrets has "[N]@" before
 * the host, N - 1 being its place in the table: no user is spelled so, and what is joined to the
 * name or to its folder keeps it. */
typedef struct named_url {
    const char *name, *url;
} named_url;

struct sfti_named {
    named_url *at;
    size_t count, cap, room; /* room: of the tables */
    uint64_t seed[2];
    sfti_names by_name, by_url; /* of one URL the first that was named */
};

static sft_span named_name(const void *all, uint32_t entry) {
    return sft_span_cstr(((const struct sfti_named *)all)->at[entry].name);
}

static sft_span named_url_text(const void *all, uint32_t entry) {
    return sft_span_cstr(((const struct sfti_named *)all)->at[entry].url);
}

sft_code sfti_named_new(sft_remote *remote, sft_error *err) {
    remote->named = sfti_arena_take(&remote->arena, sizeof *remote->named);
    if (!remote->named) return sfti_fail_memory(err, sizeof *remote->named);
    memset(remote->named, 0, sizeof *remote->named);
    sfti_seed_draw(remote, remote->named->seed);
    return SFT_OK;
}

/* ── The table; with the mutex held ── */

static const named_url *named_by_name(const sft_remote *remote, const char *name) {
    uint32_t entry = sfti_names_find(&remote->named->by_name, sft_span_cstr(name));
    return entry == SFTI_NO_NAME ? NULL : &remote->named->at[entry];
}

static const named_url *named_by_url(const sft_remote *remote, const char *url) {
    uint32_t entry = sfti_names_find(&remote->named->by_url, sft_span_cstr(url));
    return entry == SFTI_NO_NAME ? NULL : &remote->named->at[entry];
}

static void named_put(struct sfti_named *all, sfti_names *names, const char *text, size_t entry) {
    sft_span span = sft_span_cstr(text);
    (void)sfti_names_put(names, span, sfti_names_hash(span, all->seed), (uint32_t)entry);
}

/* Tables with room for one more; those before stay the arena's. */
static bool named_reserve(sft_remote *remote) {
    struct sfti_named *all = remote->named;
    sfti_names by_name, by_url;
    size_t room = all->room ? all->room * 2 : 64;
    if (all->count < all->room) return true;
    if (!sfti_names_begin(&by_name, room, all->seed, named_name, all, &remote->arena)
        || !sfti_names_begin(&by_url, room, all->seed, named_url_text, all, &remote->arena))
        return false;
    for (size_t i = 0; i < all->count; i++) {
        named_put(all, &by_name, all->at[i].name, i);
        named_put(all, &by_url, all->at[i].url, i);
    }
    all->by_name = by_name;
    all->by_url = by_url;
    all->room = room;
    return true;
}

static const named_url *named_add(sft_remote *remote, const char *name, const char *url) {
    struct sfti_named *all = remote->named;
    named_url *at = sfti_arena_grow(&remote->arena, all->at, all->count, 1, &all->cap, sizeof *at);
    if (!at) return NULL;
    all->at = at;
    at += all->count;
    at->name = sfti_arena_copy(&remote->arena, name, strlen(name));
    at->url = sfti_arena_copy(&remote->arena, url, strlen(url));
    if (!at->name || !at->url || !named_reserve(remote)) return NULL;
    named_put(all, &all->by_name, at->name, all->count);
    named_put(all, &all->by_url, at->url, all->count);
    all->count++;
    return at;
}

/* ── From URLs to names ── */

bool sft_remote_is_url(const char *text) {
    sfti_scheme_id id;
    return text && sfti_scheme_of(text, &id);
}

static sft_code name_refuse(sft_error *err, const char *found) {
    return sfti_fail(err, SFT_REMOTE_URL, "expected a URL of https, http, hf, s3 or gs, found %s",
                     found);
}

static size_t scheme_len(const char *url) {
    return (size_t)(strstr(url, "://") + 3 - url);
}

/* The name of a URL that has a user or a query. */
static const named_url *name_secret(sft_remote *remote, const char *url, const sfti_url *parts) {
    sft_buffer name = { .alloc = remote->alloc };
    const named_url *named = NULL;
    char mark[32];
    const char *host = parts->host.data;
    int digits = snprintf(mark, sizeof mark, "[%zu]@", remote->named->count + 1);
    if (sfti_buffer_put(&name, url, scheme_len(url))
        && sfti_buffer_put(&name, mark, (size_t)digits)
        && sfti_buffer_put(&name, host, strcspn(host, "?#")) && sfti_buffer_put(&name, "", 1))
        named = named_add(remote, name.data, url);
    sft_buffer_free(&name);
    return named;
}

/* *name: a page of the Hub as hf://, or NULL if it is none. */
static sft_code name_hub_page(sft_remote *remote, const char *url, const char **name,
                              sft_error *err) {
    sfti_arena arena = { .alloc = remote->alloc };
    const char *found = NULL;
    sft_code code = sfti_hub_from_web(sfti_hub_of(remote)->endpoint, url, &arena, &found, err);
    if (!code && found) {
        sfti_os_mutex_lock(&remote->mutex);
        const named_url *named = named_by_name(remote, found);
        if (!named) named = named_add(remote, found, found);
        sfti_os_mutex_unlock(&remote->mutex);
        if (named) *name = named->name;
        else code = sfti_fail_memory(err, strlen(found) + 1);
    }
    sfti_arena_free(&arena);
    return code;
}

/* URLs of hf, s3 and gs have no secrets, or are refused. */
static sft_code name_check_plain(sfti_scheme_id id, const char *url, sft_error *err) {
    const char *rest = strstr(url, "://") + 3;
    size_t first = strcspn(rest, "/");
    bool user = id != SFTI_SCHEME_HUB && memchr(rest, '@', first);
    if (user || (memchr(rest, ':', first) && strchr(rest, '@'))) /* a password may have a slash */
        return name_refuse(err, "one with a user: credentials are read from the environment");
    if (sfti_text_has_control(sft_span_cstr(rest)))
        return name_refuse(err, "one with a control character");
    return SFT_OK;
}

/* The name of a URL without a fragment. A text that only looks like a name is none. */
static sft_code name_find_or_add(sft_remote *remote, sfti_scheme_id id, const char *url,
                                 const char **name, sft_error *err) {
    sfti_url parts;
    char shown[300];
    bool web = id == SFTI_SCHEME_WEB;
    sfti_os_mutex_lock(&remote->mutex);
    const named_url *named = named_by_url(remote, url);
    sfti_os_mutex_unlock(&remote->mutex);
    if (named) *name = named->name;
    if (named) return SFT_OK;
    if (web && !sfti_url_parse(url, &parts)) {
        sfti_url_show(url, shown, sizeof shown);
        return sfti_fail(err, SFT_REMOTE_URL, "expected a URL with a host, a port from 1 to 65535 "
                         "or none, no blanks, and no bracket in the user, found %s", shown);
    }
    sft_code code = web ? name_hub_page(remote, url, name, err) : SFT_OK;
    if (code || *name) return code;
    sfti_os_mutex_lock(&remote->mutex);
    named = named_by_url(remote, url);
    if (!named && web && (parts.user.data || parts.query.data))
        named = name_secret(remote, url, &parts);
    else if (!named && !(named = named_by_name(remote, url))) /* one without secrets */
        named = named_add(remote, url, url);
    sfti_os_mutex_unlock(&remote->mutex);
    if (!named) return sfti_fail_memory(err, strlen(url));
    *name = named->name;
    return SFT_OK;
}

sft_code sft_remote_name(sft_remote *remote, const char *url, const char **name, sft_error *err) {
    sfti_arena arena = { .alloc = remote->alloc };
    sfti_scheme_id id;
    *name = NULL;
    if (!url) return name_refuse(err, "NULL");
    sfti_os_mutex_lock(&remote->mutex);
    const named_url *named = named_by_name(remote, url);
    bool is_name = named && named->name == url; /* what this function gave, not a text like it */
    sfti_os_mutex_unlock(&remote->mutex);
    if (is_name) *name = url;
    if (is_name) return SFT_OK;
    if (!sfti_scheme_of(url, &id)) {
        char found[48];
        const char *end = strstr(url, "://");
        if (!end) return name_refuse(err, "a path");
        if (end - url > 32) return name_refuse(err, "one of another scheme");
        snprintf(found, sizeof found, "\"%.*s\"", (int)(end + 3 - url), url);
        return name_refuse(err, found);
    }
    if (id != SFTI_SCHEME_WEB) {
        sft_code code = name_check_plain(id, url, err);
        return code ? code : name_find_or_add(remote, id, url, name, err);
    }
    /* A path always: what is joined to the folder of a name is on its host. */
    size_t len = strcspn(url, "#"), host = scheme_len(url);
    size_t end = host + strcspn(url + host, "/?#");
    const char *root = end > host && url[end] != '/' ? "/" : "";
    const char *before = sfti_arena_copy(&arena, url, end);
    const char *behind = sfti_arena_copy(&arena, url + end, len - end);
    const char *whole = before && behind ? SFTI_JOIN(&arena, before, root, behind) : NULL;
    sft_code code = whole ? name_find_or_add(remote, id, whole, name, err)
                          : sfti_fail_memory(err, len + 1);
    sfti_arena_free(&arena);
    return code;
}

/* ── From names to URLs ── */

/* The URL with secrets to whose name, or to whose folder, a file was joined; or NULL. */
static const named_url *named_base(const sft_remote *remote, const char *name) {
    const struct sfti_named *all = remote->named;
    const char *mark = name + scheme_len(name), *end = strstr(mark, "]@");
    uint64_t nth = 0;
    if (*mark != '[' || !end) return NULL;
    sft_span digits = { mark + 1, (size_t)(end - mark) - 1 };
    if (!sfti_text_uint(digits, &nth) || nth == 0 || nth > all->count) return NULL;
    const named_url *base = &all->at[nth - 1];
    size_t host = (size_t)(end + 2 - name);
    host += strcspn(name + host, "/");
    return strncmp(base->name, name, host) == 0 && base->name[host] == '/' ? base : NULL;
}

/* The URL of a file that was joined to a name: user and query are that name's. What the name shares
 * with that name is spelled as it was in the URL. */
static bool url_join_named(const named_url *base, const char *name, sft_buffer *out) {
    static const char keep[] = "-._~:/?#[]@!$&'()*+,;=%";
    sfti_url parts;
    size_t same = 0, scheme = scheme_len(name);
    const char *host = strstr(name, "]@") + 2;
    if (!sfti_url_parse(base->url, &parts)) return false;
    while (name[same] && name[same] == base->name[same]) same++;
    while (name + same > host && name[same - 1] != '/') same--; /* not within a letter */
    bool ok = sfti_buffer_put(out, name, scheme);
    if (parts.user.data)
        ok = ok && sfti_buffer_put(out, parts.user.data, parts.user.len)
             && sfti_buffer_put(out, "@", 1);
    ok = ok && sfti_buffer_put(out, host, same - (size_t)(host - name))
      && sfti_url_encode(out, sft_span_cstr(name + same), keep);
    if (parts.query.data)
        ok = ok && sfti_buffer_put(out, "?", 1)
             && sfti_buffer_put(out, parts.query.data, parts.query.len);
    return ok && sfti_buffer_put(out, "", 1);
}

const char *sfti_remote_url(sft_remote *remote, const char *name) {
    static const char keep[] = "-._~:/?#[]@!$&'()*+,;=%";
    sft_buffer url = { .alloc = remote->alloc };
    sfti_scheme_id id;
    bool web = sfti_scheme_of(name, &id) && id == SFTI_SCHEME_WEB, ok = true;
    sfti_os_mutex_lock(&remote->mutex);
    const named_url *named = named_by_name(remote, name);
    if (!named && !web) named = named_add(remote, name, name);
    if (!named && web) {
        const named_url *base = named_base(remote, name);
        if (base) ok = url_join_named(base, name, &url);
        else ok = sfti_url_encode(&url, sft_span_cstr(name), keep) && sfti_buffer_put(&url, "", 1);
        if (ok) named = named_add(remote, name, url.data);
    }
    sfti_os_mutex_unlock(&remote->mutex);
    sft_buffer_free(&url);
    return named ? named->url : NULL;
}
