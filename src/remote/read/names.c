/* Names of URLs: what is shown, and what stands for the URL wherever paths do. */
#include "remote/hub/hub.h"
#include "remote/remote.h"

#include <stdio.h>
#include <string.h>

/* A URL and its name, both of the remote's arena. */
typedef struct named_url {
    const char *name, *url;
    uint64_t name_hash, url_hash;
} named_url;

struct sfti_named {
    named_url *at;
    size_t count, cap;
};

static uint64_t name_hash(const char *text) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return hash;
}

sft_code sfti_named_new(sft_remote *remote, sft_error *err) {
    remote->named = sfti_arena_take(&remote->arena, sizeof *remote->named);
    if (!remote->named) return sfti_fail_memory(err, sizeof *remote->named);
    memset(remote->named, 0, sizeof *remote->named);
    return SFT_OK;
}

/* ── The table; with the mutex held ── */

static const named_url *named_by_name(const sft_remote *remote, const char *name) {
    uint64_t hash = name_hash(name);
    for (size_t i = 0; i < remote->named->count; i++) {
        const named_url *named = &remote->named->at[i];
        if (named->name_hash == hash && strcmp(named->name, name) == 0) return named;
    }
    return NULL;
}

static const named_url *named_by_url(const sft_remote *remote, const char *url) {
    uint64_t hash = name_hash(url);
    for (size_t i = 0; i < remote->named->count; i++) {
        const named_url *named = &remote->named->at[i];
        if (named->url_hash == hash && strcmp(named->url, url) == 0) return named;
    }
    return NULL;
}

static const named_url *named_add(sft_remote *remote, const char *name, const char *url) {
    struct sfti_named *all = remote->named;
    named_url *at = sfti_arena_grow(&remote->arena, all->at, all->count, 1, &all->cap, sizeof *at);
    if (!at) return NULL;
    all->at = at;
    at += all->count;
    at->name = sfti_arena_copy(&remote->arena, name, strlen(name));
    at->url = sfti_arena_copy(&remote->arena, url, strlen(url));
    if (!at->name || !at->url) return NULL;
    at->name_hash = name_hash(name);
    at->url_hash = name_hash(url);
    all->count++;
    return at;
}

/* ── From URLs to names ── */

bool sft_remote_is_url(const char *text) {
    sfti_scheme_id id;
    return text && sfti_scheme_of(text, &id);
}

static sft_code name_refuse(sft_error *err, const char *found) {
    return sfti_fail(err, SFT_REMOTE_URL, SFT_NO_OFFSET,
                     "expected a URL of https, http, hf, s3 or gs, found %s", found);
}

static sft_code name_refuse_scheme(const char *url, sft_error *err) {
    char found[48];
    const char *end = strstr(url, "://");
    if (!end) return name_refuse(err, "a path");
    if (end - url > 32) return name_refuse(err, "one of another scheme");
    snprintf(found, sizeof found, "\"%.*s\"", (int)(end + 3 - url), url);
    return name_refuse(err, found);
}

static sft_code name_refuse_web(const char *url, sft_error *err) {
    char shown[300];
    sfti_url_show(url, shown, sizeof shown);
    return sfti_fail(err, SFT_REMOTE_URL, SFT_NO_OFFSET,
                     "expected a URL with a host, a port from 1 to 65535 or none, and no blanks, "
                     "found %s", shown);
}

/* The URL without user, query and fragment, and its name with the number `nth` if it has a query or
 * the name is taken. */
static bool name_write(const char *url, const sfti_url *parts, unsigned nth, sft_buffer *out) {
    char number[16];
    const char *host = parts->host.data;
    size_t len = (size_t)(host - url) + strcspn(host, "?#");
    out->len = 0;
    if (!sfti_buffer_put(out, url, parts->https ? 8 : 7)) return false;
    if (!sfti_buffer_put(out, host, len - (size_t)(host - url))) return false;
    if (nth > 0) {
        int digits = snprintf(number, sizeof number, "?[%u]", nth);
        if (!sfti_buffer_put(out, number, (size_t)digits)) return false;
    }
    return sfti_buffer_put(out, "", 1);
}

/* A name that stands for no other URL. */
static const named_url *name_web(sft_remote *remote, const char *url, const sfti_url *parts) {
    sft_buffer name = { .alloc = remote->alloc };
    const named_url *named = NULL;
    unsigned nth = parts->query.data != NULL;
    while (name_write(url, parts, nth, &name)) {
        if (!named_by_name(remote, name.data)) {
            named = named_add(remote, name.data, url);
            break;
        }
        nth++;
    }
    sft_buffer_free(&name);
    return named;
}

/* *name: a page of the Hub as hf://, or NULL if it is none. */
static sft_code name_hub_page(sft_remote *remote, const char *url, const char **name,
                              sft_error *err) {
    sfti_arena arena = { .alloc = remote->alloc };
    const char *found = NULL;
    sft_code code = sfti_hub_from_web(sfti_hub_endpoint(remote), url, &arena, &found, err);
    if (!code && found) {
        os_mutex_lock(&remote->mutex);
        const named_url *named = named_by_name(remote, found);
        if (!named) named = named_add(remote, found, found);
        os_mutex_unlock(&remote->mutex);
        if (named) *name = named->name;
        else code = sfti_fail_memory(err, strlen(found) + 1);
    }
    sfti_arena_free(&arena);
    return code;
}

/* Of hf, s3 and gs: nothing in it is secret, or it is refused. */
static sft_code name_check_plain(sfti_scheme_id id, const char *url, sft_error *err) {
    const char *rest = strstr(url, "://") + 3;
    size_t first = strcspn(rest, "/");
    bool user = id != SFTI_SCHEME_HUB && memchr(rest, '@', first);
    if (user || (memchr(rest, ':', first) && strchr(rest, '@'))) /* a password may have a slash */
        return name_refuse(err, "one with a user: credentials are read from the environment");
    for (; *rest; rest++)
        if ((unsigned char)*rest < 0x20 || *rest == 0x7f)
            return name_refuse(err, "one with a control character");
    return SFT_OK;
}

/* The name of a URL without a fragment. */
static sft_code name_find_or_add(sft_remote *remote, sfti_scheme_id id, const char *url,
                                 const char **name, sft_error *err) {
    sfti_url parts;
    bool web = id == SFTI_SCHEME_WEB;
    os_mutex_lock(&remote->mutex);
    const named_url *named = named_by_name(remote, url); /* it may have been named before */
    if (!named) named = named_by_url(remote, url);
    os_mutex_unlock(&remote->mutex);
    if (named) *name = named->name;
    if (named) return SFT_OK;
    if (web && !sfti_url_parse(url, &parts)) return name_refuse_web(url, err);
    sft_code code = web ? name_hub_page(remote, url, name, err) : SFT_OK;
    if (code || *name) return code;
    os_mutex_lock(&remote->mutex);
    named = named_by_url(remote, url);
    if (!named && web) named = name_web(remote, url, &parts);
    else if (!named) named = named_add(remote, url, url);
    os_mutex_unlock(&remote->mutex);
    if (!named) return sfti_fail_memory(err, strlen(url));
    *name = named->name;
    return SFT_OK;
}

sft_code sft_remote_name(sft_remote *remote, const char *url, const char **name, sft_error *err) {
    sfti_arena arena = { .alloc = remote->alloc };
    sfti_scheme_id id;
    *name = NULL;
    if (!url) return name_refuse(err, "NULL");
    if (!sfti_scheme_of(url, &id)) return name_refuse_scheme(url, err);
    if (id != SFTI_SCHEME_WEB) {
        sft_code code = name_check_plain(id, url, err);
        return code ? code : name_find_or_add(remote, id, url, name, err);
    }
    size_t len = strcspn(url, "#");
    const char *whole = sfti_arena_copy(&arena, url, len);
    sft_code code = whole ? name_find_or_add(remote, id, whole, name, err)
                          : sfti_fail_memory(err, len + 1);
    sfti_arena_free(&arena);
    return code;
}

/* ── From names to URLs ── */

/* How much of a name that was given is that of the folder it lies in; 0: it has no secrets. */
static size_t named_folder(const named_url *named, const char *name) {
    if (strcmp(named->name, named->url) == 0) return 0;
    size_t len = strcspn(named->name, "?");
    while (len > 0 && named->name[len - 1] != '/') len--;
    return len > 8 && strncmp(named->name, name, len) == 0 ? len : 0;
}

/* What a name begins with, if files were joined to it: the whole name and a slash ("?[1]/file"), or
 * else the folder that a named file lies in. *rest is what follows. */
static const named_url *named_base(const sft_remote *remote, const char *name, size_t *folder) {
    const named_url *best = NULL;
    *folder = 0;
    for (size_t i = remote->named->count; i-- > 0;) {
        const named_url *named = &remote->named->at[i];
        size_t len = strlen(named->name);
        bool marked = len > 0 && named->name[len - 1] == ']';
        if (marked && strncmp(named->name, name, len) == 0 && name[len]) {
            *folder = len;
            return named;
        }
        len = named_folder(named, name);
        if (len <= *folder) continue;
        *folder = len;
        best = named;
    }
    return best;
}

/* The URL of a file that was joined to a name: user and query are that name's. */
static bool url_join_named(const named_url *base, const char *name, size_t folder,
                           sft_buffer *out) {
    static const char keep[] = "-._~:/?#[]@!$&'()*+,;=%";
    sfti_url parts;
    if (!sfti_url_parse(base->url, &parts)) return false;
    size_t scheme = parts.https ? 8 : 7;
    bool marked = name[folder - 1] == ']';
    sft_span before = { name + scheme, folder - scheme };
    if (marked) before.len = strcspn(before.data, "?");
    sft_span rest = { name + folder, strlen(name + folder) };
    bool ok = sfti_buffer_put(out, base->url, scheme);
    if (parts.user.data)
        ok = ok && sfti_buffer_put(out, parts.user.data, parts.user.len)
             && sfti_buffer_put(out, "@", 1);
    ok = ok && sfti_buffer_put(out, before.data, before.len);
    bool slash = before.len > 0 && before.data[before.len - 1] == '/';
    if (slash && rest.len > 0 && rest.data[0] == '/') rest.data++, rest.len--;
    else if (!slash && rest.len > 0 && rest.data[0] != '/') ok = ok && sfti_buffer_put(out, "/", 1);
    ok = ok && sfti_url_encode(out, rest, keep);
    if (parts.query.data)
        ok = ok && sfti_buffer_put(out, "?", 1)
             && sfti_buffer_put(out, parts.query.data, parts.query.len);
    return ok && sfti_buffer_put(out, "", 1);
}

const char *sfti_remote_url(sft_remote *remote, const char *name) {
    static const char keep[] = "-._~:/?#[]@!$&'()*+,;=%";
    sft_buffer url = { .alloc = remote->alloc };
    sfti_scheme_id id;
    size_t folder = 0;
    bool web = sfti_scheme_of(name, &id) && id == SFTI_SCHEME_WEB, ok = true;
    os_mutex_lock(&remote->mutex);
    const named_url *named = named_by_name(remote, name);
    if (!named && !web) named = named_add(remote, name, name);
    if (!named && web) {
        const named_url *base = named_base(remote, name, &folder);
        if (base) ok = url_join_named(base, name, folder, &url);
        else ok = sfti_url_encode(&url, sft_span_cstr(name), keep) && sfti_buffer_put(&url, "", 1);
        if (ok) named = named_add(remote, name, url.data);
    }
    os_mutex_unlock(&remote->mutex);
    sft_buffer_free(&url);
    return named ? named->url : NULL;
}
