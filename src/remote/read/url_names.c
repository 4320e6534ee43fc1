/* Names of URLs: what is shown, and what stands for the URL wherever paths do.
 * Tests: test_remote_names.c. */
#include "base/names.h"
#include "os/io.h"
#include "remote/http/text.h"
#include "remote/hub/hub_state.h"

#include <stdio.h>
#include <string.h>

/* A URL and its name, both of the remote's arena. */
typedef struct named_url {
    const char *name, *url;
    size_t folder; /* bytes of the name up to the folder it lies in; 0: it has no secrets */
} named_url;

struct sfti_named {
    named_url *at;
    size_t count, cap, room; /* room: of the tables */
    uint64_t seed[2];
    sfti_names by_name, by_url; /* of one URL the first that was named */
    sfti_names by_folder;       /* of one folder the last */
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

static sft_span named_folder(const void *all, uint32_t entry) {
    const named_url *named = &((const struct sfti_named *)all)->at[entry];
    return (sft_span){ named->name, named->folder };
}

static void named_put_folder(const struct sfti_named *all, sfti_names *names, size_t entry) {
    sft_span folder = named_folder(all, (uint32_t)entry);
    if (folder.len == 0) return;
    uint64_t hash = sfti_names_hash(folder, all->seed);
    if (sfti_names_put(names, folder, hash, (uint32_t)entry) != entry)
        sfti_names_replace(names, folder, (uint32_t)entry);
}

static void named_put(struct sfti_named *all, sfti_names *names, const char *text, size_t entry) {
    sft_span span = sft_span_cstr(text);
    (void)sfti_names_put(names, span, sfti_names_hash(span, all->seed), (uint32_t)entry);
}

/* Tables with room for one more; those before stay the arena's. */
static bool named_reserve(sft_remote *remote) {
    struct sfti_named *all = remote->named;
    sfti_names by_name, by_url, by_folder;
    size_t room = all->room ? all->room * 2 : 64;
    if (all->count < all->room) return true;
    if (!sfti_names_begin(&by_name, room, all->seed, named_name, all, &remote->arena)
        || !sfti_names_begin(&by_url, room, all->seed, named_url_text, all, &remote->arena)
        || !sfti_names_begin(&by_folder, room, all->seed, named_folder, all, &remote->arena))
        return false;
    for (size_t i = 0; i < all->count; i++) {
        named_put(all, &by_name, all->at[i].name, i);
        named_put(all, &by_url, all->at[i].url, i);
        named_put_folder(all, &by_folder, i);
    }
    all->by_name = by_name;
    all->by_url = by_url;
    all->by_folder = by_folder;
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
    size_t folder = strcmp(name, url) ? strcspn(name, "?") : 0;
    while (folder > 0 && name[folder - 1] != '/') folder--;
    at->folder = folder > 8 ? folder : 0;
    named_put(all, &all->by_name, at->name, all->count);
    named_put(all, &all->by_url, at->url, all->count);
    named_put_folder(all, &all->by_folder, all->count);
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

/* The name of a URL without a fragment. */
static sft_code name_find_or_add(sft_remote *remote, sfti_scheme_id id, const char *url,
                                 const char **name, sft_error *err) {
    sfti_url parts;
    char shown[300];
    bool web = id == SFTI_SCHEME_WEB;
    sfti_os_mutex_lock(&remote->mutex);
    const named_url *named = named_by_name(remote, url); /* it may have been named before */
    if (!named) named = named_by_url(remote, url);
    sfti_os_mutex_unlock(&remote->mutex);
    if (named) *name = named->name;
    if (named) return SFT_OK;
    if (web && !sfti_url_parse(url, &parts)) {
        sfti_url_show(url, shown, sizeof shown);
        return sfti_fail(err, SFT_REMOTE_URL, "expected a URL with a host, a port from 1 to 65535 "
                         "or none, and no blanks, found %s", shown);
    }
    sft_code code = web ? name_hub_page(remote, url, name, err) : SFT_OK;
    if (code || *name) return code;
    sfti_os_mutex_lock(&remote->mutex);
    named = named_by_url(remote, url);
    if (!named && web) named = name_web(remote, url, &parts);
    else if (!named) named = named_add(remote, url, url);
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
    size_t len = strcspn(url, "#");
    const char *whole = sfti_arena_copy(&arena, url, len);
    sft_code code = whole ? name_find_or_add(remote, id, whole, name, err)
                          : sfti_fail_memory(err, len + 1);
    sfti_arena_free(&arena);
    return code;
}

/* ── From names to URLs ── */

/* What a name begins with, if files were joined to it: the whole name and a slash ("?[1]/file"), or
 * else the folder that a named file lies in. *rest is what follows. */
static const named_url *named_base(const sft_remote *remote, const char *name, size_t *folder) {
    const struct sfti_named *all = remote->named;
    uint32_t marked = SFTI_NO_NAME, found = SFTI_NO_NAME;
    size_t len = strlen(name);
    *folder = 0;
    for (size_t at = 1; at < len; at++) {
        if (name[at - 1] != ']') continue;
        uint32_t entry = sfti_names_find(&all->by_name, (sft_span){ name, at });
        if (entry == SFTI_NO_NAME || (marked != SFTI_NO_NAME && entry < marked)) continue;
        marked = entry; /* the last that was named */
        *folder = at;
    }
    if (marked != SFTI_NO_NAME) return &all->at[marked];
    for (; len > 0 && found == SFTI_NO_NAME; len--) {
        if (name[len - 1] != '/') continue;
        found = sfti_names_find(&all->by_folder, (sft_span){ name, len });
        if (found != SFTI_NO_NAME) *folder = len;
    }
    return found == SFTI_NO_NAME ? NULL : &all->at[found];
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
    sfti_os_mutex_lock(&remote->mutex);
    const named_url *named = named_by_name(remote, name);
    if (!named && !web) named = named_add(remote, name, name);
    if (!named && web) {
        const named_url *base = named_base(remote, name, &folder);
        if (base) ok = url_join_named(base, name, folder, &url);
        else ok = sfti_url_encode(&url, sft_span_cstr(name), keep) && sfti_buffer_put(&url, "", 1);
        if (ok) named = named_add(remote, name, url.data);
    }
    sfti_os_mutex_unlock(&remote->mutex);
    sft_buffer_free(&url);
    return named ? named->url : NULL;
}
