/* Asking a CivitAI server. */
#include "commands/info/civitai.h"

#include "os/os.h"
#include "remote/http/url.h"
#include "support/hints.h"
#include "support/raw.h"
#include "support/remote.h"
#include "support/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_MOST ((uint64_t)64 << 20)
#define VERSION_MOST ((uint64_t)16 << 20) /* one file's */
#define PICTURE_MOST ((uint64_t)32 << 20)
#define KEPT_MOST ((uint64_t)256 << 20) /* of all answers about one batch of files */
#define FAILURES_MOST 3

/* ── Options ── */

/* Nothing of the environment is used: what is sent here tells what files there are. */
static sft_code open_remote(cli_civitai *site, uint64_t connect, uint64_t retries,
                            sft_error *err) {
    cli *c = site->c;
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    options.alloc = &c->alloc;
    options.transport = &site->transport;
    options.proxy = c->set.proxy ? c->set.proxy : "";
    options.connect_ms = connect * 1000;
    options.stall_ms = site->total_ms;
    options.retries = retries ? (uint32_t)retries : UINT32_MAX;
    if (c->set.log_requests) options.on_exchange = cli_remote_log;
    sft_code code = sft_transport_curl(&c->alloc, &site->transport, err);
    return code ? code : sft_remote_open(&options, &site->remote, err);
}

bool cli_civitai_open(cli_civitai *site, cli *c, bool only_count) {
    uint64_t connect = 10, total = 60, retries = 3;
    const cli_settings *set = &c->set;
    sft_error err = SFT_ERROR_INIT;
    memset(site, 0, sizeof *site);
    site->c = c;
    site->arena.alloc = c->alloc;
    sft_code code = cli_read_number("connect-timeout", set->connect_timeout, 1, CLI_SECONDS_MOST,
                                    &connect, &err);
    if (!code) code = cli_read_number("timeout", set->timeout, 1, CLI_SECONDS_MOST, &total, &err);
    if (!code) code = cli_read_number("retries", set->retries, 0, CLI_RETRIES_MOST, &retries, &err);
    const char *url = set->civitai_url ? set->civitai_url : CLI_CIVITAI_URL;
    sfti_url parts;
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/') len--;
    if (!code && (!sfti_url_parse(url, &parts) || parts.user.data
                  || len >= CLI_CIVITAI_URL_SIZE / 2 || strpbrk(url, "?#")))
        code = cli_usage_error(&err, "expected an http or https URL without a user for "
                                     "--civitai-url, found \"%s\"", url);
    char *copy = code ? NULL : sfti_take(&c->alloc, CLI_CIVITAI_URL_SIZE);
    if (!code && !copy) code = sfti_fail_memory(&err, CLI_CIVITAI_URL_SIZE);
    if (copy) memcpy(copy, url, len);
    if (copy) copy[len] = 0;
    site->url = copy;
    site->total_ms = total * 1000;
    if (!code && !only_count) code = open_remote(site, connect, retries, &err);
    if (code) cli_complain(c, NULL, &err);
    return !code;
}

void cli_civitai_forget(cli_civitai *site) {
    sft_allocator alloc = site->arena.alloc;
    sfti_arena_free(&site->arena);
    site->arena = (sfti_arena){ .alloc = alloc };
    site->kept = 0;
}

static char *keep_copy(cli_civitai *site, sft_span text, sft_error *err) {
    if (text.len > KEPT_MOST - site->kept) {
        sfti_fail(err, SFT_FILE_TOO_LARGE,
                  "expected at most %" PRIu64 " bytes in all answers about %d files, found more",
                  KEPT_MOST, CLI_CIVITAI_HASHES);
        return NULL;
    }
    char *copy = sfti_arena_copy(&site->arena, text.data, text.len);
    if (copy) site->kept += text.len;
    else sfti_fail_memory(err, text.len);
    return copy;
}

void cli_civitai_close(cli_civitai *site) {
    cli_civitai_forget(site);
    if (site->remote) cli_remote_add(site->c, sft_remote_sums_of(site->remote));
    sft_remote_close(site->remote);
    if (site->transport.vtable) site->transport.vtable->close(site->transport.ctx);
    sfti_release(&site->c->alloc, (char *)site->url, CLI_CIVITAI_URL_SIZE);
}

/* ── Requests ── */

static void tell_failure(cli_civitai *site, const char *url, int status, sft_error *err) {
    site->failures++;
    if (status == 0 || site->failures == FAILURES_MOST) site->is_over = true;
    if (err->code == SFT_CANCELLED) return;
    cli_hint(err, site->is_over ? CLI_HINT_ONLINE_OVER : SFT_HINT_NONE);
    if (sfti_os_terminal_escapes(2)) cli_text(&site->c->err, "\r\x1b[K");
    cli_complain(site->c, url, err);
}

/* False, after a complaint, without an answer; *status 404: the server knows nothing of it. */
static bool exchange(cli_civitai *site, sft_remote_request *request, int *status,
                     sft_buffer *answer) {
    sft_error err = SFT_ERROR_INIT;
    *status = 0;
    if (site->is_over || sfti_os_stop_signal()) return false;
    request->total_ms = site->total_ms;
    request->same_host = true;
    if (!sft_remote_fetch(site->remote, request, status, answer, &err)) return true;
    tell_failure(site, request->url, *status, &err);
    return false;
}

/* A copy of the answer if it begins with that bracket and is JSON; *text is empty where the
 * server knows nothing of it (404). False, after a complaint, without an answer. */
static bool ask_json(cli_civitai *site, const char *url, sft_span body, char bracket,
                     uint64_t most, sft_span *text) {
    sft_error err = SFT_ERROR_INIT;
    sft_remote_request request = SFT_REMOTE_REQUEST_INIT;
    sft_buffer answer = { .alloc = site->c->alloc };
    int status;
    request.url = url;
    request.accept = "application/json";
    request.body = body;
    request.most = most;
    bool done = exchange(site, &request, &status, &answer);
    *text = (sft_span){ "", 0 };
    sft_span found = { answer.data, answer.len };
    while (found.len > 0 && strchr(" \t\r\n", *found.data) && *found.data) {
        found.data++;
        found.len--;
    }
    if (done && status != 404) {
        char *copy = NULL;
        done = found.len > 0 && *found.data == bracket && cli_raw_check(found);
        if (!done)
            sfti_fail(&err, SFT_IO_READ,
                      "expected a JSON answer that begins with %c, found something else", bracket);
        else
            done = (copy = keep_copy(site, found, &err)) != NULL;
        if (done) *text = (sft_span){ copy, found.len };
        else tell_failure(site, url, status, &err);
    }
    if (done) site->failures = 0;
    sft_buffer_free(&answer);
    return done;
}

/* ── By hash ── */

static bool is_hex(sft_span text) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return text.len > 0;
}

/* Hashes go out in capitals, as the server keeps them. */
static char *put_hash(char *at, sft_span hash) {
    for (size_t i = 0; i < hash.len; i++)
        *at++ = hash.data[i] >= 'a' ? (char)(hash.data[i] - 'a' + 'A') : hash.data[i];
    return at;
}

static void take_version(cli_ask *ask, sft_span version) {
    uint64_t id;
    if (version.len > VERSION_MOST || !cli_raw_uint(version, "id", &id) || id == 0) return;
    ask->state = CLI_ASK_KNOWN;
    ask->version = version;
    ask->model_id = 0;
    ask->version_id = id;
    (void)cli_raw_uint(version, "modelId", &ask->model_id);
}

/* Give a version to the files one of whose SHA-256 it has. */
static void assign_version(sft_span version, cli_ask *const *asks, size_t count) {
    sft_span files, hashes, sha256;
    cli_raw file;
    if (!cli_raw_member(version, "files", &files)) return;
    for (cli_raw_begin(&file, files); cli_raw_next(&file);) {
        if (!cli_raw_member(file.value, "hashes", &hashes)
            || !cli_raw_string(hashes, "SHA256", &sha256))
            continue;
        for (size_t i = 0; i < count; i++)
            if (asks[i]->state != CLI_ASK_KNOWN && sha256.len > 0
                && cli_same_letters(asks[i]->sha256, sha256))
                take_version(asks[i], version);
    }
}

static void ask_hashes(cli_civitai *site, cli_ask *const *asks, size_t count) {
    char url[CLI_CIVITAI_URL_SIZE], body[CLI_CIVITAI_HASHES * 68 + 2];
    sft_span text;
    cli_raw version;
    snprintf(url, sizeof url, "%s/api/v1/model-versions/by-hash", site->url);
    char *at = body;
    for (size_t i = 0; i < count; i++) {
        bool before = false;
        for (size_t j = 0; j < i && !before; j++)
            before = sft_span_equal(asks[j]->sha256, asks[i]->sha256);
        if (before) continue;
        *at = at == body ? '[' : ',';
        *++at = '"';
        at++;
        at = put_hash(at, asks[i]->sha256);
        *at++ = '"';
    }
    *at++ = ']';
    sft_span sent = { body, (size_t)(at - body) };
    if (!ask_json(site, url, sent, '[', ANSWER_MOST, &text)) return;
    for (size_t i = 0; i < count; i++) asks[i]->state = CLI_ASK_UNKNOWN;
    if (text.len == 0) return;
    for (cli_raw_begin(&version, text); cli_raw_next(&version);)
        assign_version(version.value, asks, count);
}

void cli_civitai_by_sha256(cli_civitai *site, cli_ask *asks, size_t count) {
    cli_ask *batch[CLI_CIVITAI_HASHES];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool wanted = asks[i].state == CLI_ASK_OPEN && asks[i].sha256.len == 64
                   && is_hex(asks[i].sha256);
        if (wanted) batch[n++] = &asks[i];
        if (n == 0 || (n < CLI_CIVITAI_HASHES && i + 1 < count)) continue;
        ask_hashes(site, batch, n);
        n = 0;
    }
}

void cli_civitai_by_hash(cli_civitai *site, cli_ask *ask, sft_span hash) {
    char url[CLI_CIVITAI_URL_SIZE], hex[80];
    sft_span text;
    if (hash.len >= sizeof hex || !is_hex(hash)) return;
    *put_hash(hex, hash) = 0;
    snprintf(url, sizeof url, "%s/api/v1/model-versions/by-hash/%s", site->url, hex);
    ask->state = CLI_ASK_OPEN;
    if (!ask_json(site, url, (sft_span){ NULL, 0 }, '{', VERSION_MOST, &text)) return;
    if (text.len == 0) ask->state = CLI_ASK_UNKNOWN;
    else take_version(ask, text);
}

/* ── What the model says ── */

static const char *const model_keys[] = {
    "name", "type", "nsfw", "poi", "description", "tags", "allowNoCredit",
    "allowCommercialUse", "allowDerivatives", "allowDifferentLicense",
};

/* The version with the model's words in its "model", and its "creator". */
static void compose(cli_civitai *site, cli_ask *ask, sft_span model) {
    sft_buffer text = { .alloc = site->c->alloc };
    sft_sink sink = sft_sink_memory(&text);
    sft_error err = SFT_ERROR_INIT;
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, &err);
    sft_span own = { "", 0 }, key = { "model", 5 }, version = ask->version, value;
    cli_raw member;
    bool is_object = cli_raw_member(version, "model", &own) && *own.data == '{';
    if (!is_object) own.len = 0;
    sfti_json_open(&w, '{');
    for (cli_raw_begin(&member, version); cli_raw_next(&member);)
        if (!sft_span_equal(member.key, key)) cli_raw_write(&w, member.key, member.value);
    sfti_json_put_open(&w, "model", '{');
    for (cli_raw_begin(&member, own); own.len > 0 && cli_raw_next(&member);)
        cli_raw_write(&w, member.key, member.value);
    for (size_t i = 0; i < sizeof model_keys / sizeof *model_keys; i++)
        if (!cli_raw_member(own, model_keys[i], &value)
            && cli_raw_member(model, model_keys[i], &value))
            cli_raw_write(&w, sft_span_cstr(model_keys[i]), value);
    sfti_json_close(&w, '}');
    if (!cli_raw_member(version, "creator", &value) && cli_raw_member(model, "creator", &value))
        cli_raw_write(&w, sft_span_cstr("creator"), value);
    sfti_json_close(&w, '}');
    sft_code code = sfti_json_done(&w);
    bool fits = !code && text.len <= VERSION_MOST;
    char *copy = fits ? keep_copy(site, (sft_span){ text.data, text.len }, &err) : NULL;
    if (copy) ask->answer = (sft_span){ copy, text.len };
    else if (code || fits) cli_complain(site->c, site->url, &err);
    sft_buffer_free(&text);
}

/* ── Models ── */

static void ask_models(cli_civitai *site, const uint64_t *ids, size_t count, cli_ask *asks,
                       size_t ask_count) {
    char url[CLI_CIVITAI_URL_SIZE];
    sft_span text, items = { "", 0 };
    cli_raw item;
    uint64_t id;
    size_t len = (size_t)snprintf(url, sizeof url, "%s/api/v1/models?nsfw=true&limit=100&ids=",
                                  site->url);
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(url + len, sizeof url - len, "%s%" PRIu64, i ? "," : "", ids[i]);
    sft_span get = { NULL, 0 };
    if (!ask_json(site, url, get, '{', ANSWER_MOST, &text) || text.len == 0) return;
    if (!cli_raw_member(text, "items", &items)) return;
    for (cli_raw_begin(&item, items); cli_raw_next(&item);)
        for (size_t i = 0; cli_raw_uint(item.value, "id", &id) && i < ask_count; i++)
            if (asks[i].state == CLI_ASK_KNOWN && asks[i].model_id == id && asks[i].model.len == 0)
                asks[i].model = item.value;
    for (size_t i = 0; i < ask_count; i++)
        for (size_t j = 0; j < count; j++)
            if (asks[i].state == CLI_ASK_KNOWN && asks[i].model_id == ids[j])
                asks[i].is_answered = true;
}

void cli_civitai_models(cli_civitai *site, cli_ask *asks, size_t count) {
    uint64_t ids[CLI_CIVITAI_MODELS];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool wanted = asks[i].state == CLI_ASK_KNOWN && asks[i].model_id > 0;
        for (size_t j = 0; j < i && wanted; j++)
            wanted = asks[j].state != CLI_ASK_KNOWN || asks[j].model_id != asks[i].model_id;
        if (wanted) ids[n++] = asks[i].model_id;
        if (n == 0 || (n < CLI_CIVITAI_MODELS && i + 1 < count)) continue;
        ask_models(site, ids, n, asks, count);
        n = 0;
    }
}

void cli_civitai_complete(cli_civitai *site, cli_ask *asks, size_t count) {
    cli_civitai_models(site, asks, count);
    for (size_t i = 0; i < count; i++) {
        if (asks[i].state != CLI_ASK_KNOWN) continue;
        if (asks[i].model.len > 0) compose(site, &asks[i], asks[i].model);
        if (asks[i].answer.len == 0) asks[i].answer = asks[i].version;
    }
}

/* ── What became of a version ── */

bool cli_civitai_version_of(sft_span model, uint64_t version_id, sft_span *version) {
    sft_span versions;
    cli_raw one;
    uint64_t id;
    if (!cli_raw_member(model, "modelVersions", &versions)) return false;
    for (cli_raw_begin(&one, versions); cli_raw_next(&one);) {
        if (!cli_raw_uint(one.value, "id", &id) || id != version_id) continue;
        *version = one.value;
        return true;
    }
    return false;
}

/* The answer about one id; empty, and *is_gone, where the server does not know it. */
static bool ask_one(cli_civitai *site, const char *what, uint64_t id, sft_span *text,
                    bool *is_gone) {
    char url[CLI_CIVITAI_URL_SIZE];
    sft_span get = { NULL, 0 };
    snprintf(url, sizeof url, "%s/api/v1/%s/%" PRIu64, site->url, what, id);
    if (!ask_json(site, url, get, '{', VERSION_MOST, text)) return false;
    *is_gone = text->len == 0;
    return true;
}

void cli_civitai_confirm(cli_civitai *site, cli_ask *asks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        cli_ask *ask = &asks[i];
        const cli_ask *model = NULL, *version = NULL;
        if (ask->state != CLI_ASK_KNOWN || !ask->is_answered) continue;
        for (size_t j = 0; j < i; j++) {
            if (asks[j].state != CLI_ASK_KNOWN || asks[j].model_id != ask->model_id) continue;
            model = &asks[j];
            if (asks[j].version_id == ask->version_id) version = &asks[j];
        }
        if (model && ask->model.len == 0) {
            ask->model = model->model;
            ask->is_model_gone = model->is_model_gone;
            ask->is_answered = model->is_answered;
        } else if (ask->model.len == 0) {
            sft_span text;
            uint64_t id;
            ask->is_answered = ask_one(site, "models", ask->model_id, &text, &ask->is_model_gone);
            if (ask->is_answered && !ask->is_model_gone) {
                ask->is_answered = cli_raw_uint(text, "id", &id) && id == ask->model_id;
                if (ask->is_answered) ask->model = text;
            }
        }
        if (!ask->is_answered || ask->is_model_gone) continue;
        sft_span text;
        if (version) {
            ask->is_version_gone = version->is_version_gone;
            ask->is_answered = version->is_answered;
        } else if (!cli_civitai_version_of(ask->model, ask->version_id, &text)) {
            ask->is_answered = ask_one(site, "model-versions", ask->version_id, &text,
                                       &ask->is_version_gone);
        }
    }
}

/* ── Pictures ── */

bool cli_civitai_picture(cli_civitai *site, const char *url, sft_buffer *out) {
    sft_error err = SFT_ERROR_INIT;
    sft_remote_request request = SFT_REMOTE_REQUEST_INIT;
    sft_buffer answer = { .alloc = site->c->alloc };
    int status;
    request.url = url;
    request.accept = "image/*";
    request.most = PICTURE_MOST;
    if (!sfti_url_same_site(site->url, url)) {
        sfti_fail(&err, SFT_IO_READ,
                  "expected an image on the site's hosts, found another host: not fetched");
        cli_complain(site->c, url, &err);
        return false;
    }
    bool done = exchange(site, &request, &status, &answer) && status != 404 && answer.len > 0;
    if (done) *out = answer;
    else sft_buffer_free(&answer);
    return done;
}
