/* http:// and https:// as they are, and CivitAI's downloads, for which it has a token.
 * Tests: test_remote_web.c. */
#include "base/error.h"
#include "remote/remote.h"
#include "remote/http/text.h"

#include <string.h>

/* Hosts with CivitAI's pages; its token goes to the first alone. */
static const char *const civitai_hosts[] = { "civitai.com", "www.civitai.com", "civitai.red",
                                             "civitai.green" };
#define CIVITAI_ORIGIN "https://civitai.com"
#define CIVITAI_DOWNLOAD "/api/download/models/"

/* What proves who asks. */
typedef struct web_state {
    const char *civitai; /* header of CivitAI's token; NULL: none */
} web_state;

typedef struct web_target {
    const char *basic; /* header of the URL's user; NULL: none */
    bool civitai;      /* a download of CivitAI's */
    bool has_token;    /* in its query */
} web_target;

/* ── Texts ── */

/* base64 of bytes, in the arena; NULL: no memory. */
static const char *base64_text(sfti_arena *arena, sft_span bytes) {
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = sfti_arena_take(arena, (bytes.len + 2) / 3 * 4 + 1), *to = out;
    for (size_t at = 0; to && at < bytes.len; at += 3) {
        uint32_t group = 0;
        for (size_t i = 0; i < 3; i++)
            group = group << 8 | (at + i < bytes.len ? (uint8_t)bytes.data[at + i] : 0u);
        for (size_t i = 0; i < 4; i++)
            *to++ = at + i <= bytes.len ? digits[group >> (18 - 6 * i) & 63] : '=';
    }
    if (to) *to = '\0';
    return out;
}

/* The value of a query's parameter, as spelt; data NULL if there is none. */
static sft_span parameter(sft_span query, const char *name) {
    sft_span part;
    while (sfti_text_split(&query, '&', &part)) {
        size_t equals = sfti_text_find(part, '=');
        if (equals < part.len && sfti_text_is((sft_span){ part.data, equals }, name))
            return sfti_span_from(part, equals + 1);
    }
    return (sft_span){ NULL, 0 };
}

static bool is_number(sft_span text) {
    uint64_t ignored;
    return sfti_text_uint(text, &ignored);
}

/* ── CivitAI ── */

/* The page of a model, /models/NUMBER[/WORDS], perhaps behind a language (/de/models/...). */
static bool is_civitai_page(sft_span path) {
    if (path.len > 4 && path.data[0] == '/' && path.data[3] == '/') path = sfti_span_from(path, 3);
    if (!sfti_text_begins(path, "/models/")) return false;
    path = sfti_span_from(path, strlen("/models/"));
    return is_number((sft_span){ path.data, sfti_text_find(path, '/') });
}

static sft_code resolve_civitai(sfti_target *target, const sfti_url *url, sft_error *err) {
    web_target *own = target->own;
    own->civitai = sfti_text_begins(url->path, CIVITAI_DOWNLOAD);
    own->has_token = parameter(url->query, "token").data != NULL;
    if (!is_civitai_page(url->path)) return SFT_OK;
    sft_span version = parameter(url->query, "modelVersionId");
    if (!is_number(version))
        return sfti_fail(err, SFT_REMOTE_URL,
                         "the page of a model, which may have several versions: expected "
                         CIVITAI_ORIGIN CIVITAI_DOWNLOAD "VERSION, or the page of a version "
                         "(?modelVersionId=VERSION)");
    const char *number = sfti_arena_copy(&target->arena, version.data, version.len);
    target->url = number ? SFTI_JOIN(&target->arena, CIVITAI_ORIGIN CIVITAI_DOWNLOAD, number)
                         : NULL;
    own->civitai = true;
    return target->url ? SFT_OK : sfti_fail_memory(err, version.len);
}

/* ── The scheme ── */

static sft_code web_open(sft_remote *remote, sft_error *err) {
    static const char *const names[] = { "CIVITAI_API_TOKEN", "CIVITAI_TOKEN", "CIVITAI_API_KEY" };
    const char *token = NULL;
    web_state *state = sfti_arena_take(&remote->arena, sizeof *state);
    if (!state) return sfti_fail_memory(err, sizeof *state);
    *state = (web_state){ .civitai = NULL };
    remote->state[SFTI_SCHEME_WEB] = state;
    for (size_t i = 0; !token && i < sizeof names / sizeof *names; i++)
        token = sfti_remote_environment(remote, names[i]);
    if (!token || remote->options.anonymous) return SFT_OK;
    token += strspn(token, " \t\r\n");
    token = sfti_arena_copy(&remote->arena, token, strcspn(token, " \t\r\n"));
    state->civitai = token ? SFTI_JOIN(&remote->arena, "Bearer ", token) : NULL;
    return state->civitai ? SFT_OK : sfti_fail_memory(err, sizeof *state);
}

/* Take the user out of a URL, as "Basic ...". */
static sft_code take_user(sfti_target *target, const sfti_url *url, sft_error *err) {
    web_target *own = target->own;
    sft_buffer plain = { .alloc = target->arena.alloc };
    sft_code code = SFT_OK;
    if (!sfti_buffer_reserve(&plain, url->user.len + 1)) {
        code = sfti_fail_memory(err, url->user.len);
        goto done;
    }
    if (!sfti_url_decode(&plain, url->user)) {
        code = sfti_fail(err, SFT_REMOTE_URL,
                         "expected USER:PASSWORD before the @ of the URL, encoded as %%XX");
        goto done;
    }
    if (sfti_text_find(url->user, ':') == url->user.len) plain.data[plain.len++] = ':';
    const char *text = base64_text(&target->arena, (sft_span){ plain.data, plain.len });
    own->basic = text ? SFTI_JOIN(&target->arena, "Basic ", text) : NULL;
    target->url = SFTI_JOIN(&target->arena, url->https ? "https://" : "http://", url->host.data);
    if (!own->basic || !target->url) code = sfti_fail_memory(err, plain.len);
done:
    sft_buffer_free(&plain);
    return code;
}

static sft_code web_resolve(sfti_target *target, sft_error *err) {
    sfti_url url;
    const char *text = sfti_remote_url(target->remote, target->name);
    web_target *own = sfti_arena_take(&target->arena, sizeof *own);
    if (!text || !own) return sfti_fail_memory(err, sizeof *own);
    *own = (web_target){ .basic = NULL };
    target->own = own;
    target->url = text;
    if (!sfti_url_parse(text, &url))
        return sfti_fail(err, SFT_REMOTE_URL, "expected https://HOST/FILE");
    sft_code code = url.user.data ? take_user(target, &url, err) : SFT_OK;
    if (code) return code;
    for (size_t i = 0; i < sizeof civitai_hosts / sizeof *civitai_hosts; i++)
        if (sfti_text_is(url.host, civitai_hosts[i])) return resolve_civitai(target, &url, err);
    return SFT_OK;
}

static sft_code web_authorize(sfti_target *target, const char *url, sfti_headers *headers,
                              sft_error *err) {
    const web_target *own = target->own;
    const web_state *state = target->remote->state[SFTI_SCHEME_WEB];
    const char *value = NULL;
    if (own->basic && sfti_url_same_origin(url, target->url)) value = own->basic;
    else if (own->civitai && !own->has_token && sfti_url_same_origin(url, CIVITAI_ORIGIN))
        value = state->civitai;
    if (value && !sfti_headers_add(headers, "authorization", value))
        return sfti_misuse(err, "the token cannot be sent: expected plain text");
    return SFT_OK;
}

static sft_code say(sft_error *err, sft_code code, sft_hint hint, const char *text) {
    (void)sfti_fail(err, code, "%s", text);
    sfti_hint(err, hint);
    return code;
}

/* What CivitAI's own answer means; false: no more than its status says. */
static bool explain_civitai(const web_target *own, const web_state *state, const char *url,
                            int status, sft_error *err) {
    bool home = sfti_url_same_origin(url, CIVITAI_ORIGIN);
    bool asked = own->has_token || (home && state->civitai);
    if (status == 401 && asked)
        say(err, SFT_REMOTE_DENIED, SFT_HINT_REMOTE_BAD_TOKEN,
            "CivitAI does not accept the token (status 401)");
    else if (status == 401 && state->civitai)
        say(err, SFT_REMOTE_DENIED, SFT_HINT_NONE,
            "this file needs a token, which is sent to " CIVITAI_ORIGIN " alone: use its URL "
            "(status 401)");
    else if (status == 401)
        say(err, SFT_REMOTE_DENIED, SFT_HINT_REMOTE_TOKEN,
            "CivitAI requires a token for this file (status 401)");
    else if (status == 403)
        say(err, SFT_REMOTE_DENIED, asked ? SFT_HINT_NONE : SFT_HINT_REMOTE_TOKEN,
            "CivitAI denies access to this file (status 403): it may be in early "
            "access, or its creator does not allow downloads");
    else if (status == 404)
        say(err, SFT_NOT_FOUND, SFT_HINT_NONE,
            "no such version at CivitAI: the number is that of a version, not of a model");
    return status == 401 || status == 403 || status == 404;
}

static bool web_explain(sfti_target *target, const char *url, const sfti_answer *answer,
                        bool *again, sft_error *err) {
    const web_target *own = target->own;
    (void)again;
    if (!sfti_url_same_origin(url, target->url)) return false;
    if (own->civitai)
        return explain_civitai(own, target->remote->state[SFTI_SCHEME_WEB], url, answer->status,
                               err);
    if (!own->basic || answer->status != 401) return false;
    say(err, SFT_REMOTE_DENIED, SFT_HINT_NONE,
        "the server does not accept the URL's user and password (status 401)");
    return true;
}

const sfti_scheme sfti_web_scheme = {
    .id = SFTI_SCHEME_WEB,
    .name = "web",
    .open = web_open,
    .resolve = web_resolve,
    .authorize = web_authorize,
    .explain = web_explain,
};
