/* Names of the Hub: hf://, and its web pages. Tests: test_remote_hub.c. */
#include "remote/hub/hub.h"

#include "base/error.h"
#include "base/utf8.h"
#include "remote/http/text.h"
#include "remote/http/url.h"
#include "safetensors_codes.h"

#include <string.h>

static const char hub_scheme[] = "hf://";

/* ── Texts ── */

const char *sfti_hub_encode(sfti_arena *arena, const char *text, const char *keep) {
    sft_buffer out = { .alloc = arena->alloc };
    const char *copy = NULL;
    if (sfti_url_encode(&out, sft_span_cstr(text), keep))
        copy = sfti_arena_copy(arena, out.data, out.len);
    sft_buffer_free(&out);
    return copy;
}

/* ── Types ── */

static const char *const hub_types[] = { "models", "datasets", "spaces", "kernels", "buckets" };
#define HUB_TYPES (sizeof hub_types / sizeof *hub_types)

const char *sfti_hub_type_text(sfti_hub_type type) {
    return hub_types[type];
}

/* Which type a word is, or with less the word that lacks its last letter; HUB_TYPES: none. */
static size_t hub_type_of(sft_span word, size_t less) {
    size_t i = 0;
    while (i < HUB_TYPES) {
        sft_span type = { hub_types[i], strlen(hub_types[i]) - less };
        if (sft_span_equal(word, type)) return i;
        i++;
    }
    return i;
}

/* ── Pieces of text ── */

/* The bytes before the first `mark`, or all. */
static sft_span span_until(sft_span text, char mark) {
    return (sft_span){ text.data, sfti_text_find(text, mark) };
}

/* What Python's unquote does: %XX undone, anything else left as it is. out holds text.len bytes. */
static size_t undo_percent(sft_span text, char *out) {
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int byte = sfti_percent_byte(text, i);
        out[len++] = byte < 0 ? text.data[i] : (char)byte;
        if (byte >= 0) i += 2;
    }
    return len;
}

/* ── What a name may hold ── */

static bool is_word(char c) {
    return sfti_is_letter(c) || sfti_is_digit(c) || c == '_';
}

/* One part of an id: [\w.-]{1,96} that begins and ends with a letter, digit or underscore. */
static bool is_id_part(sft_span part) {
    if (part.len == 0 || part.len > 96) return false;
    if (!is_word(part.data[0]) || !is_word(part.data[part.len - 1])) return false;
    for (size_t i = 0; i < part.len; i++) {
        char c = part.data[i];
        if (is_word(c)) continue;
        if ((c != '-' && c != '.') || part.data[i - 1] == c) return false;
    }
    return true;
}

/* Parts that are not empty, "." or "..", whatever is taken for a separator. */
static bool has_plain_parts(sft_span text) {
    size_t dots = 0, len = 0;
    for (size_t i = 0; i <= text.len; i++) {
        char c = i < text.len ? text.data[i] : '/';
        if (c != '/' && c != '\\') {
            dots += c == '.';
            len++;
            continue;
        }
        if (c == '/' && len == 0) return false;
        if (len == dots && (len == 1 || len == 2)) return false;
        dots = len = 0;
    }
    return true;
}

static sft_code hub_refuse(sft_error *err, const char *expected, sft_span found) {
    return sfti_fail(err, SFT_REMOTE_URL, "expected %s, found \"%.*s\"", expected,
                     SFTI_CLIP(found, 200));
}

static sft_code check_hub_text(sft_span text, sft_error *err) {
    if (sfti_text_has_control(text) || sfti_utf8_check(text.data, text.len) != text.len)
        return hub_refuse(err, "UTF-8 without control characters", text);
    return SFT_OK;
}

static sft_code check_hub_path(sft_span path, sft_error *err) {
    static const char marks[] = { '?', '#' };
    for (size_t i = 0; i < sizeof marks; i++)
        if (span_until(path, marks[i]).len < path.len)
            return hub_refuse(err, "a path without '?' and '#'", path);
    if (path.len > 0 && !has_plain_parts(path))
        return hub_refuse(err, "a path without empty, \".\" and \"..\" parts", path);
    return check_hub_text(path, err);
}

bool sfti_hub_is_path(sft_span path) {
    return path.len > 0 && !check_hub_path(path, NULL);
}

static sft_code check_hub_id(sfti_hub_type type, sft_span id, sft_error *err) {
    static const char git[] = ".git";
    sft_span owner = span_until(id, '/');
    bool two = owner.len < id.len;
    sft_span name = sfti_span_from(id, owner.len + two);
    if (!two || span_until(name, '/').len < name.len)
        return hub_refuse(err, "OWNER/NAME", id);
    if (type == SFTI_HUB_BUCKET) {
        if (span_until(id, '@').len < id.len)
            return hub_refuse(err, "OWNER/NAME, for buckets have no revisions", id);
        return check_hub_path(id, err);
    }
    size_t end = sizeof git - 1;
    bool is_git = name.len >= end && memcmp(name.data + name.len - end, git, end) == 0;
    if (is_id_part(owner) && is_id_part(name) && !is_git) return SFT_OK;
    return hub_refuse(err,
                      "OWNER/NAME of letters, digits, '-', '_' and '.', without \"--\", \"..\" and "
                      "\".git\"", id);
}

/* ── Reading ── */

/* Bytes of refs/pr/NUMBER or refs/convert/WORD at the beginning of a text; 0: neither. */
static size_t special_revision(sft_span text) {
    static const char pr[] = "refs/pr/", convert[] = "refs/convert/";
    size_t begin = 0, end;
    if (text.len > sizeof pr - 1 && memcmp(text.data, pr, sizeof pr - 1) == 0) {
        begin = end = sizeof pr - 1;
        while (end < text.len && sfti_is_digit(text.data[end])) end++;
        return end > begin ? end : 0;
    }
    if (text.len <= sizeof convert - 1 || memcmp(text.data, convert, sizeof convert - 1) != 0)
        return 0;
    for (begin = end = sizeof convert - 1; end < text.len; end++) {
        char c = text.data[end];
        if (!is_word(c) && c != '.' && c != '-' && (unsigned char)c < 0x80) break;
    }
    return end > begin ? end : 0;
}

/* "REVISION[/PATH]". */
static sft_code read_revision(sft_span text, sfti_arena *arena, sfti_hub_name *out,
                              sft_span *path, sft_error *err) {
    size_t len = special_revision(text);
    sft_span spelt = len ? (sft_span){ text.data, len } : span_until(text, '/');
    char *revision = sfti_arena_take(arena, spelt.len + 1);
    if (!revision) return sfti_fail_memory(err, spelt.len + 1);
    *path = sfti_span_from(text, spelt.len);
    if (path->len > 0 && path->data[0] == '/') *path = sfti_span_from(*path, 1);
    sft_span decoded = { revision, undo_percent(spelt, revision) };
    revision[decoded.len] = '\0';
    if (!has_plain_parts(decoded))
        return hub_refuse(err, "a revision without empty, \".\" and \"..\" parts after '@'",
                          decoded);
    out->revision = revision;
    return check_hub_text(decoded, err);
}

/* "OWNER/NAME[@REVISION][/PATH]". An @ counts right after the id only. */
static sft_code read_repo(sft_span text, sfti_arena *arena, sfti_hub_name *out,
                              sft_error *err) {
    sft_span owner = span_until(text, '/'), at = span_until(text, '@'), path = { "", 0 };
    size_t name = owner.len + (owner.len < text.len);
    sft_span id = { text.data, name + span_until(sfti_span_from(text, name), '/').len };
    if (at.len < id.len && out->type != SFTI_HUB_BUCKET) {
        id = at;
        sft_code code = read_revision(sfti_span_from(text, at.len + 1), arena, out, &path, err);
        if (code) return code;
    } else if (id.len < text.len) {
        path = sfti_span_from(text, id.len + 1);
    }
    sft_code code = check_hub_id(out->type, id, err);
    if (!code) code = check_hub_path(path, err);
    if (code) return code;
    out->id = sfti_arena_copy(arena, id.data, id.len);
    out->path = sfti_arena_copy(arena, path.data, path.len);
    return out->id && out->path ? SFT_OK : sfti_fail_memory(err, text.len);
}

/* What follows "hf://". */
static sft_code read_hub_body(sft_span body, sfti_arena *arena, sfti_hub_name *out,
                              sft_error *err) {
    sft_span first = span_until(body, '/');
    size_t type = hub_type_of(first, 0), singular = hub_type_of(first, 1);
    if (singular < HUB_TYPES)
        return sfti_fail(err, SFT_REMOTE_URL, "expected \"%s/\", found \"%.*s/\"",
                         hub_types[singular], SFTI_CLIP(first, 200));
    *out = (sfti_hub_name){ .type = SFTI_HUB_MODEL };
    if (type < HUB_TYPES) {
        out->type = (sfti_hub_type)type;
        body = sfti_span_from(body, first.len + (first.len < body.len));
    }
    while (body.len > 0 && body.data[0] == '/') body = sfti_span_from(body, 1);
    while (body.len > 0 && body.data[body.len - 1] == '/') body.len--;
    return read_repo(body, arena, out, err);
}

sft_code sfti_hub_read_name(const char *text, sfti_arena *arena, sfti_hub_name *out,
                            sft_error *err) {
    sft_span whole = sft_span_cstr(text);
    size_t scheme = sizeof hub_scheme - 1;
    if (whole.len < scheme || memcmp(text, hub_scheme, scheme) != 0)
        return hub_refuse(err, "\"hf://\"", whole);
    sft_span body = sfti_span_from(whole, scheme);
    if (whole.len > SFTI_URL_MOST) return hub_refuse(err, "a shorter name", whole);
    if (strpbrk(body.data, "?#")) return hub_refuse(err, "a name without '?' and '#'", body);
    return read_hub_body(body, arena, out, err);
}

/* ── Writing ── */

const char *sfti_hub_write_name(const sfti_hub_name *name, sfti_arena *arena) {
    sft_span owner = span_until(sft_span_cstr(name->id), '/');
    bool model = name->type == SFTI_HUB_MODEL && hub_type_of(owner, 0) == HUB_TYPES &&
                 hub_type_of(owner, 1) == HUB_TYPES;
    const char *revision = name->revision ? name->revision : ""; /* to be read again as it is */
    sft_span spelt = sft_span_cstr(revision);
    if (spelt.len == 0 || special_revision(spelt) != spelt.len)
        revision = sfti_hub_encode(arena, revision, "");
    return revision ? SFTI_JOIN(arena, hub_scheme, model ? "" : hub_types[name->type],
                                model ? "" : "/", name->id, name->revision ? "@" : "", revision,
                                *name->path ? "/" : "", name->path) : NULL;
}

/* ── Web pages ── */

/* The parts of a path that are not empty, one after another; len 0 at the end. */
static sft_span next_part(sft_span *path) {
    while (path->len > 0 && path->data[0] == '/') *path = sfti_span_from(*path, 1);
    sft_span part = span_until(*path, '/');
    *path = sfti_span_from(*path, part.len);
    return part;
}

/* The path of a URL on the Hub, without that of the endpoint; data NULL: it is elsewhere. */
static sft_span path_on_hub(const char *endpoint, const char *url) {
    sfti_url parsed, base;
    if (!sfti_url_parse(url, &parsed)) return (sft_span){ NULL, 0 };
    bool usual = parsed.port == (parsed.https ? 443u : 80u);
    if (usual && (sfti_text_is(parsed.host, "huggingface.co") ||
                  sfti_text_is(parsed.host, "hf.co")))
        return parsed.path;
    if (!endpoint || !sfti_url_parse(endpoint, &base) || !sfti_url_same_origin(endpoint, url))
        return (sft_span){ NULL, 0 };
    sft_span path = parsed.path, prefix = base.path;
    while (prefix.len > 0 && prefix.data[prefix.len - 1] == '/') prefix.len--;
    bool inside = path.len >= prefix.len && memcmp(path.data, prefix.data, prefix.len) == 0 &&
                  (path.len == prefix.len || path.data[prefix.len] == '/');
    return inside ? sfti_span_from(path, prefix.len) : path;
}

sft_code sfti_hub_from_web(const char *endpoint, const char *url, sfti_arena *arena,
                           const char **name, sft_error *err) {
    static const char *const routes[] = { "resolve", "tree", "blob", "raw", "blame" };
    sft_span path = path_on_hub(endpoint, url), first = next_part(&path);
    size_t type = hub_type_of(first, 0);
    sft_span owner = type < HUB_TYPES ? next_part(&path) : first;
    sft_span repo = next_part(&path), route = next_part(&path);
    bool bucket = type == SFTI_HUB_BUCKET;
    /* Files are shown at a revision and a path, those of buckets at a path. */
    size_t shown = 0, most = bucket ? 2 : sizeof routes / sizeof *routes;
    while (shown < most && !sft_span_equal(route, sft_span_cstr(routes[shown]))) shown++;
    *name = NULL;
    if (repo.len == 0 || (route.len > 0 && shown == most)) return SFT_OK;
    sft_buffer body = { .alloc = arena->alloc };
    bool fits = type == HUB_TYPES ||
                (sfti_put_word(&body, hub_types[type]) && sfti_put_word(&body, "/"));
    fits = fits && sfti_buffer_put(&body, owner.data, owner.len) && sfti_put_word(&body, "/") &&
           sfti_buffer_put(&body, repo.data, repo.len);
    const char *mark = bucket ? "/" : "@";
    for (sft_span part = next_part(&path); fits && part.len > 0; part = next_part(&path)) {
        /* Its %XX are undone, but those of slashes. */
        char *plain = sfti_arena_take(arena, part.len);
        size_t len = plain ? undo_percent(part, plain) : 0;
        fits = plain && sfti_put_word(&body, mark);
        for (size_t i = 0; fits && i < len; i++)
            fits = plain[i] == '/' ? sfti_put_word(&body, "%2F")
                                   : sfti_buffer_put(&body, plain + i, 1);
        mark = "/";
    }
    sfti_hub_name read;
    sft_span text = { (const char *)body.data, body.len };
    sft_code code = fits ? read_hub_body(text, arena, &read, route.len > 0 ? err : NULL)
                         : sfti_fail_memory(err, body.len);
    sft_buffer_free(&body);
    if (code) return code == SFT_REMOTE_URL && route.len == 0 ? SFT_OK : code;
    *name = sfti_hub_write_name(&read, arena);
    return *name ? SFT_OK : sfti_fail_memory(err, text.len);
}
