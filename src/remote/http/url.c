/* URLs: parts, redirects, what may be shown, percent coding. Tests: test_remote_url.c. */
#include "remote/http/url.h"

#include "remote/http/text.h"

#include <string.h>

#define HOST_MOST 255

/* ── Parts ── */

static size_t host_len(const char *at) {
    if (*at != '[')
        return strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._");
    size_t len = 1 + strspn(at + 1, "0123456789ABCDEFabcdef:.");
    return at[len] == ']' && len > 1 ? len + 1 : 0;
}

bool sfti_url_parse(const char *url, sfti_url *out) {
    uint64_t port;
    *out = (sfti_url){ .port = 80 };
    if (!url || strpbrk(url, " \\")) return false;
    sft_span text = sft_span_cstr(url);
    if (text.len > SFTI_URL_MOST || sfti_text_has_control(text)) return false;
    out->https = sfti_text_begins(text, "https://");
    if (!out->https && !sfti_text_begins(text, "http://")) return false;
    if (out->https) out->port = 443;
    const char *at = url + (out->https ? 8 : 7);
    size_t user = strcspn(at, "@/?#");
    if (at[user] == '@') {
        out->user = (sft_span){ at, user };
        if (memchr(at, '[', user)) return false; /* names have such a mark: url_names.c */
        at += user + 1;
    }
    out->host = (sft_span){ at, host_len(at) };
    at += out->host.len;
    if (out->host.len == 0 || out->host.len > HOST_MOST) return false;
    if (*at == ':') {
        sft_span digits = { at + 1, strspn(at + 1, "0123456789") };
        if (digits.len > 5 || !sfti_text_uint(digits, &port)) return false;
        if (port < 1 || port > UINT16_MAX) return false;
        out->port = (uint32_t)port;
        at += 1 + digits.len;
    }
    if (*at && !strchr("/?#", *at)) return false;
    if (!out->user.data) out->origin = (sft_span){ url, (size_t)(at - url) };
    out->path = (sft_span){ at, strcspn(at, "?#") };
    at += out->path.len;
    if (*at == '?') out->query = (sft_span){ at + 1, strcspn(at + 1, "#") };
    return true;
}

bool sfti_url_same_origin(const char *a, const char *b) {
    sfti_url x, y;
    return sfti_url_parse(a, &x) && sfti_url_parse(b, &y) && x.https == y.https
        && x.port == y.port && sfti_text_same(x.host, y.host);
}

/* The last two labels of a host that ends with a letter; else empty. */
static sft_span domain_of(sft_span host) {
    size_t at = host.len, dots = 0;
    if (!sfti_is_letter(host.data[host.len - 1])) return (sft_span){ "", 0 };
    while (at > 0 && dots < 2) dots += host.data[--at] == '.';
    if (dots == 2) at++;
    return dots ? sfti_span_from(host, at) : (sft_span){ "", 0 };
}

bool sfti_url_same_site(const char *site, const char *url) {
    sfti_url x, y;
    if (sfti_url_same_origin(site, url)) return true;
    if (!sfti_url_parse(site, &x) || !sfti_url_parse(url, &y)) return false;
    sft_span domain = domain_of(x.host);
    return y.https && y.port == 443 && domain.len > 0 && sfti_text_same(domain, domain_of(y.host));
}

/* ── Redirects ── */

/* A URL that is being put together; what does not fit makes it none. */
typedef struct joined_url {
    char *text;
    size_t len, cap;
    bool full;
} joined_url;

static void joined_put(joined_url *to, sft_span text) {
    if (text.len > to->cap - to->len) to->full = true;
    if (to->full || text.len == 0) return;
    memcpy(to->text + to->len, text.data, text.len);
    to->len += text.len;
}

/* A reference as it is sent: what servers leave unquoted though they should not is quoted. */
static void joined_put_quoted(joined_url *to, sft_span text) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len && text.data[i] != '#'; i++) {
        unsigned char c = (unsigned char)text.data[i];
        char quoted[3] = { '%', digits[c >> 4], digits[c & 15] };
        if (c == ' ' || c >= 0x80) joined_put(to, (sft_span){ quoted, 3 });
        else if (c < ' ') to->full = true; /* a NUL above all */
        else joined_put(to, (sft_span){ text.data + i, 1 });
    }
}

/* Resolve "." and ".." of the path that begins at `root`, a slash: RFC 3986, 5.2.4. */
static void joined_resolve_dots(joined_url *to, size_t root) {
    char *text = to->text;
    size_t put = root, at = root, end = root;
    while (end < to->len && text[end] != '?') end++;
    while (at < end) {
        size_t next = at + 1;
        while (next < end && text[next] != '/') next++;
        sft_span part = { text + at + 1, next - at - 1 };
        bool up = sft_span_equal(part, sft_span_cstr(".."));
        if (up || sft_span_equal(part, sft_span_cstr("."))) {
            while (up && put > root && text[--put] != '/') continue;
            if (next == end) text[put++] = '/';
        } else {
            memmove(text + put, text + at, next - at);
            put += next - at;
        }
        at = next;
    }
    memmove(text + put, text + end, to->len - end);
    to->len -= end - put;
}

const char *sfti_url_join(sfti_arena *arena, const char *base, sft_span location) {
    sfti_url from, made;
    location = sfti_text_trim(location);
    if (!sfti_url_parse(base, &from) || location.len == 0 || location.data[0] == '#') return NULL;
    joined_url to = { NULL, 0, SFTI_URL_MOST, false };
    to.text = sfti_arena_take(arena, SFTI_URL_MOST + 1);
    if (!to.text) return NULL;
    size_t scheme = 0; /* letters and a colon before the first slash */
    while (scheme < location.len && !strchr(":/?#", location.data[scheme])) scheme++;
    bool absolute = scheme < location.len && location.data[scheme] == ':';
    bool other_host = sfti_text_begins(location, "//");
    if (!absolute) joined_put(&to, sft_span_cstr(from.https ? "https:" : "http:"));
    if (!absolute && !other_host) {
        joined_put(&to, sft_span_cstr("//"));
        joined_put(&to, (sft_span){ from.host.data, (size_t)(from.path.data - from.host.data) });
    }
    size_t root = to.len;
    bool relative = !absolute && location.data[0] != '/', query = location.data[0] == '?';
    if (relative) {
        while (!query && from.path.len > 0 && from.path.data[from.path.len - 1] != '/')
            from.path.len--;
        joined_put(&to, from.path.len > 0 ? from.path : sft_span_cstr("/"));
    }
    joined_put_quoted(&to, location);
    if (to.full) return NULL;
    if (relative) joined_resolve_dots(&to, root);
    to.text[to.len] = '\0';
    return sfti_url_parse(to.text, &made) ? to.text : NULL;
}

/* ── To show ── */

/* Where the part that may hold a user begins: behind "scheme://". */
static size_t show_authority(sft_span text) {
    size_t at = sfti_text_find(text, ':');
    bool slashes = text.len - at > 2 && text.data[at + 1] == '/' && text.data[at + 2] == '/';
    return slashes && sfti_text_find(text, '/') > at ? at + 3 : 0;
}

static size_t show_put(char *out, size_t cap, size_t at, sft_span text) {
    size_t len = text.len < cap - at ? text.len : cap - at;
    while (len > 0 && len < text.len && ((unsigned char)text.data[len] & 0xc0) == 0x80) len--;
    if (len > 0) memcpy(out + at, text.data, len);
    return at + len;
}

/* A malformed URL may hold secrets anywhere: the scheme and the host, if no user can be in
 * it. */
static size_t show_malformed(const char *url, char *out, size_t cap) {
    size_t from = show_authority(sft_span_cstr(url));
    size_t host = from > 0 && !strpbrk(url, "@%") ? host_len(url + from) : 0;
    if (host == 0 || host > HOST_MOST)
        return show_put(out, cap, 0, sft_span_cstr("a URL that cannot be shown"));
    size_t len = show_put(out, cap, 0, (sft_span){ url, from + host });
    return show_put(out, cap, len, sft_span_cstr("[...]"));
}

void sfti_url_show(const char *url, char *out, size_t cap) {
    sfti_url parts;
    sft_span text = sft_span_cstr(url);
    if (cap-- == 0) return;
    size_t from = show_authority(text), len;
    bool web = sfti_text_begins(text, "http:") || sfti_text_begins(text, "https:");
    const char *authority = url + from;
    size_t host = strcspn(authority, "@/\\?#");
    /* A colon before the first slash and an @ behind it: a password with a slash, perhaps. */
    bool unclear = authority[host] != '@' && memchr(authority, ':', host) && strchr(authority, '@');
    if (web ? !sfti_url_parse(url, &parts) : unclear) {
        len = show_malformed(url, out, cap);
    } else {
        sft_span shown = { url, strcspn(url, "?#") };
        if (from > shown.len) from = 0;
        size_t user = from; /* the end of a user with its @ */
        for (size_t at = from; at < shown.len && !strchr("/\\", url[at]); at++)
            if (url[at] == '@') user = at + 1;
        len = show_put(out, cap, 0, (sft_span){ url, from });
        len = show_put(out, cap, len, sfti_span_from(shown, user));
        if (url[shown.len] == '?') len = show_put(out, cap, len, sft_span_cstr("?[...]"));
    }
    out[len] = '\0';
}

/* ── Percent coding ── */

bool sfti_url_encode(sft_buffer *out, sft_span text, const char *keep) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        unsigned char byte = (unsigned char)c;
        char quoted[3] = { '%', digits[byte >> 4], digits[byte & 15] };
        bool kept = sfti_is_letter(c) || sfti_is_digit(c) || (c && strchr("-_.~", c))
                 || (c && strchr(keep, c));
        if (!(kept ? sfti_buffer_put(out, &c, 1) : sfti_buffer_put(out, quoted, 3))) return false;
    }
    return true;
}

bool sfti_url_decode(sft_buffer *out, sft_span text) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '%') {
            int byte = sfti_percent_byte(text, i);
            if (byte < 0) return false;
            c = (char)byte;
            i += 2;
        }
        if (!sfti_buffer_put(out, &c, 1)) return false;
    }
    return true;
}
