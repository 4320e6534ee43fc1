/* What the environment says of the Hub, read as huggingface_hub reads it. */
#include "os/path.h"
#include "remote/hub/hub_state.h"

#include "remote/http/text.h"

#include <string.h>

#define HUB_TOKEN_MOST ((size_t)4096)

static const char hub_site[] = "https://huggingface.co";

/* ── Paths: "~" and variables in them ── */

/* The variable that begins at a dollar sign, as $NAME or ${NAME}; its bytes, 0: none. */
static size_t variable_at(sft_span text, sft_span *name) {
    bool braces = text.len > 1 && text.data[1] == '{';
    size_t at = braces ? 2 : 1, begin = at;
    while (at < text.len && (sfti_is_letter(text.data[at]) || sfti_is_digit(text.data[at]) ||
                             text.data[at] == '_'))
        at++;
    *name = (sft_span){ text.data + begin, at - begin };
    if (name->len == 0) return 0;
    if (!braces) return at;
    return at < text.len && text.data[at] == '}' ? at + 1 : 0;
}

/* Append a path's text with the variables in it put in; those that are not set stay. */
static bool put_expanded(sft_remote *remote, sft_buffer *out, sft_span text) {
    while (text.len > 0) {
        sft_span name;
        size_t plain = sfti_text_find(text, '$');
        if (!sfti_buffer_put(out, text.data, plain)) return false;
        text = sfti_span_from(text, plain);
        if (text.len == 0) break;
        size_t len = variable_at(text, &name);
        char *key = len ? sfti_arena_copy(&remote->arena, name.data, name.len) : NULL;
        if (len && !key) return false;
        const char *value = key ? sfti_remote_environment(remote, key) : NULL;
        if (len == 0) len = 1;
        if (!sfti_buffer_put(out, value ? value : text.data, value ? strlen(value) : len))
            return false;
        text = sfti_span_from(text, len);
    }
    return true;
}

/* "folder/name", or folder alone, expanded. *out NULL: it is beneath a home that is not known. */
static sft_code expand_path(sft_remote *remote, const char *folder, const char *name,
                            const char **out, sft_error *err) {
    sft_buffer path = { .alloc = remote->alloc };
    *out = NULL;
    if (!folder) return SFT_OK;
    bool home = folder[0] == '~' && (sfti_is_separator(folder[1]) || !folder[1]), fits = true;
    if (home) {
        const char *value = sfti_remote_environment(remote, "HOME");
        if (!value) return SFT_OK;
        fits = sfti_buffer_put(&path, value, strlen(value));
        folder++;
    }
    fits = fits && put_expanded(remote, &path, sft_span_cstr(folder));
    if (name) fits = fits && sfti_buffer_put(&path, "/", 1) &&
                     sfti_buffer_put(&path, name, strlen(name));
    if (fits) *out = sfti_arena_copy(&remote->arena, path.data, path.len);
    sft_buffer_free(&path);
    return *out ? SFT_OK : sfti_fail_memory(err, path.len);
}

/* A path that a variable gives, or else `name` in a folder. */
static sft_code path_of(sft_remote *remote, const char *variable, const char *folder,
                        const char *name, const char **out, sft_error *err) {
    const char *given = sfti_remote_environment(remote, variable);
    return expand_path(remote, given ? given : folder, given ? NULL : name, out, err);
}

static sft_code read_paths(sft_remote *remote, sfti_hub *hub, const char **token, sft_error *err) {
    const char *user = NULL, *home = NULL;
    sft_code code = path_of(remote, "XDG_CACHE_HOME", "~/.cache", NULL, &user, err);
    if (!code) code = path_of(remote, "HF_HOME", user, "huggingface", &home, err);
    if (!code) code = path_of(remote, "HF_TOKEN_PATH", home, "token", token, err);
    const char *cache = sfti_remote_environment(remote, "HF_HUB_CACHE") ? "HF_HUB_CACHE"
                                                                        : "HUGGINGFACE_HUB_CACHE";
    if (!code) code = path_of(remote, cache, home, "hub", &hub->cache, err);
    return code;
}

/* ── Token ── */

/* Take a token without line breaks and blanks around it, unless there is nothing else. */
static sft_code take_token(sft_remote *remote, sfti_hub *hub, sft_span text, const char *from,
                           sft_error *err) {
    char *token = text.len ? sfti_arena_copy(&remote->arena, text.data, text.len) : NULL;
    if (!token) return text.len ? sfti_fail_memory(err, text.len + 1) : SFT_OK;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] != '\n' && text.data[i] != '\r') token[len++] = text.data[i];
    sft_span trimmed = sfti_text_trim((sft_span){ token, len });
    if (trimmed.len == 0) return SFT_OK;
    token[(size_t)(trimmed.data - token) + trimmed.len] = '\0';
    hub->token = trimmed.data;
    hub->token_at = sfti_arena_copy(&remote->arena, from, strlen(from));
    return hub->token_at ? SFT_OK : sfti_fail_memory(err, strlen(from) + 1);
}

static sft_code read_token(sft_remote *remote, sfti_hub *hub, const char *path, sft_error *err) {
    if (remote->options.anonymous) return SFT_OK;
    if (sfti_remote_environment_is(remote, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) return SFT_OK;
    const char *name = "HF_TOKEN";
    if (!sfti_remote_environment(remote, name)) name = "HUGGING_FACE_HUB_TOKEN";
    sft_span value = sft_span_cstr(sfti_remote_environment(remote, name));
    sft_code code = take_token(remote, hub, value, name, err);
    if (code || hub->token || !path) return code;
    return take_token(remote, hub, sfti_remote_small_file(&remote->arena, path, HUB_TOKEN_MOST),
                      path, err);
}

/* ── The whole ── */

/* Without slashes at its end. */
static sft_code read_endpoint(sft_remote *remote, sfti_hub *hub, sft_error *err) {
    const char *value = sfti_remote_environment(remote, "HF_ENDPOINT");
    sft_span text = sft_span_cstr(value ? value : hub_site);
    while (text.len > 0 && text.data[text.len - 1] == '/') text.len--;
    const char *endpoint = sfti_arena_copy(&remote->arena, text.data, text.len);
    sfti_url parsed;
    if (!endpoint) return sfti_fail_memory(err, text.len + 1);
    bool plain = sfti_url_parse(endpoint, &parsed) && !parsed.user.data && !parsed.query.data;
    if (plain) hub->endpoint = endpoint;
    return SFT_OK;
}

sft_code sfti_hub_open(sft_remote *remote, sft_error *err) {
    const char *token = NULL;
    sfti_hub *hub = sfti_arena_take(&remote->arena, sizeof *hub);
    if (!hub) return sfti_fail_memory(err, sizeof *hub);
    *hub = (sfti_hub){ .endpoint = NULL };
    remote->state[SFTI_SCHEME_HUB] = hub;
    bool named = sfti_remote_environment(remote, "HF_HUB_OFFLINE") != NULL;
    hub->offline = remote->options.offline ||
                   sfti_remote_environment_is(remote, named ? "HF_HUB_OFFLINE"
                                                            : "TRANSFORMERS_OFFLINE");
    sft_code code = read_endpoint(remote, hub, err);
    if (!code) code = read_paths(remote, hub, &token, err);
    if (!code) code = read_token(remote, hub, token, err);
    return code;
}

bool sfti_hub_is_origin(const sfti_hub *hub, const char *url) {
    const char *const origins[] = { hub->endpoint, hub_site, "https://hf.co" };
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        if (origins[i] && sfti_url_same_origin(origins[i], url)) return true;
    return false;
}
