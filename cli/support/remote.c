/* URLs as operands: options, names, the remote that they are read through. Tests:
 * tests/cli/general, tests/remote. */
#include "support/remote.h"

#include "base/error.h"
#include "base/files.h"
#include "base/mem.h"
#include "os/os.h"
#include "remote/http/url.h"
#include "support/hints.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>


typedef struct bad_url {
    struct bad_url *next;
    const char *name;
    sft_error err;
} bad_url;

typedef struct cli_bad_urls {
    sfti_arena arena;
    bad_url *first;
    const sft_files *files; /* of all others */
    sft_files these;
} cli_bad_urls;

static const bad_url *bad_url_called(const cli_bad_urls *all, const char *path) {
    const bad_url *url = all->first;
    while (url && strcmp(url->name, path) != 0) url = url->next;
    return url;
}

static sft_code bad_url_fail(const bad_url *url, sft_error *err) {
    if (err) *err = url->err;
    return url->err.code;
}

/* ── As files ── */

static bool bad_claims(void *ctx, const char *path) {
    const cli_bad_urls *all = ctx;
    return bad_url_called(all, path) || sfti_files_claim(all->files, path, NULL);
}

static sft_code bad_open(void *ctx, const char *path, const char *beneath, sft_source *out,
                         sft_error *err) {
    const cli_bad_urls *all = ctx;
    const bad_url *url = bad_url_called(all, path);
    if (url) return bad_url_fail(url, err);
    return all->files->vtable->open(all->files->ctx, path, beneath, out, err);
}

static void bad_expect(void *ctx, const char *const *paths, size_t count, const char *beneath) {
    const cli_bad_urls *all = ctx;
    for (size_t i = 0; i < count; i++)
        if (bad_url_called(all, paths[i])) return; /* a hint that is not worth a list */
    sfti_files_expect(all->files, paths, count, beneath);
}

static sft_code bad_list(void *ctx, const char *folder, sft_listed_fn each, void *each_ctx,
                         sft_error *err) {
    const cli_bad_urls *all = ctx;
    const bad_url *url = bad_url_called(all, folder);
    return url ? bad_url_fail(url, err)
               : sfti_files_list(all->files, folder, each, each_ctx, err);
}

static const sft_files_vtable bad_files_vtable = { sizeof(sft_files_vtable), bad_claims, bad_open,
                                                   bad_expect, bad_list };

/* ── All ── */

/* Keeps what is wrong with a URL. *name is what may be shown of it, and what it is opened by. *err
 * is as it was without an error when this succeeds. */
static sft_code bad_url_add(cli *c, const char *url, sft_error *err, const char **name) {
    char shown[CLI_SHOWN_SIZE];
    sfti_url_show(url, shown, sizeof shown);
    cli_bad_urls *all = c->bad_urls ? c->bad_urls : sfti_take(&c->alloc, sizeof *all);
    if (all && !c->bad_urls) {
        memset(all, 0, sizeof *all);
        all->arena.alloc = c->alloc;
        all->these = (sft_files){ all, &bad_files_vtable };
        c->bad_urls = all;
    }
    bad_url *added = all ? sfti_arena_take(&all->arena, sizeof *added) : NULL;
    *name = added ? sfti_arena_copy(&all->arena, shown, strlen(shown)) : NULL;
    if (!*name) return sfti_fail_memory(err, strlen(shown));
    *added = (bad_url){ all->first, *name, *err };
    all->first = added;
    *err = (sft_error)SFT_ERROR_INIT;
    return SFT_OK;
}

#define CONNECTIONS_MOST 64
#define OWNER_MOST 96 /* bytes, of the Hub */

const cli_option cli_remote_options[] = {
    CLI_ON(0, "offline", offline,
      "of URLs: send nothing; read only the cache of the Hub and --header-cache"),
    CLI_TAKES(0, "connections", "N", connections,
      "of URLs: use up to N connections at once, 1 to 64; default 8"),
    CLI_TAKES(0, "header-cache", "DIR", header_cache,
      "of URLs: keep headers in this folder, by URL and ETag, so that a file that did not change "
      "is not fetched again"),
    CLI_ON(0, "public-only", public_only,
      "of URLs: refuse loopback, private and link-local addresses, also after redirects"),
    CLI_ON(0, "no-sign-request", no_sign_request,
      "of URLs: send no token and no signature, as for public files"),
    CLI_ON(0, "whole", whole,
      "of URLs: read files whole from servers that cannot send parts of them"),
    CLI_ON(0, "log-requests", log_requests,
      "print each HTTP request to standard error; of URLs also a summary at the end"),
    CLI_OPTIONS_END,
};

const cli_option cli_network_options[] = {
    CLI_TAKES(0, "timeout", "SECONDS", timeout,
      "give up on a server that sends nothing for so long (default: 30)"),
    CLI_TAKES(0, "connect-timeout", "SECONDS", connect_timeout,
      "maximum time to connect (default: 10)"),
    CLI_TAKES(0, "retries", "N", retries,
      "how often a request that failed is sent again (default: 4)"),
    CLI_TAKES(0, "proxy", "URL", proxy,
      "use this proxy instead of that of the environment; \"\" for none"),
    CLI_OPTIONS_END,
};

/* ── Which words are URLs ── */

bool cli_is_url(const char *word) {
    os_info info;
    const char *at = word;
    if (sft_remote_is_url(word)) return true;
    if ((*at | 32) < 'a' || (*at | 32) > 'z') return false;
    /* "word://", as RFC 3986 has schemes. */
    while (((*at | 32) >= 'a' && (*at | 32) <= 'z') || (*at >= '0' && *at <= '9')
           || (*at && strchr("+-.", *at)))
        at++;
    return strncmp(at, "://", 3) == 0 && sfti_os_info_path(word, false, &info) != 0;
}

const char *cli_path_shown(const char *path, char out[CLI_SHOWN_SIZE]) {
    if (!path || !cli_is_url(path)) return path;
    const char *site = strstr(path, "://");
    site = site ? site + 3 : path;
    const char *at = memchr(site, '@', strcspn(site, "/?#"));
    if (!strpbrk(path, "?#") && (!at || *site == '[')) return path; /* "[1]@": a name */
    sfti_url_show(path, out, CLI_SHOWN_SIZE);
    return out;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* "owner/name" where there is no folder "owner" and the name is not one of a file. */
static bool is_repository(const char *path) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_.";
    static const char *const files[] = { ".safetensors", ".sft", ".json", ".npy", ".txt" };
    char owner[OWNER_MOST + 1];
    os_info info;
    size_t len = strspn(path, letters);
    const char *name = path + len + 1;
    if (len == 0 || len > OWNER_MOST || path[len] != '/' || *path == '.' || *name == '.')
        return false;
    bool file = !*name || name[strspn(name, letters)];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        file |= cli_ends_with(sft_span_cstr(name), files[i]);
    file |= cli_other_format(sft_span_cstr(name)) < CLI_OTHER_FORMATS;
    memcpy(owner, path, len);
    owner[len] = '\0';
    return !file && sfti_os_info_path(owner, true, &info) != 0;
}

void cli_remote_guess(const char *path, sft_error *err) {
    os_info info;
    if (!path || sfti_os_info_path(path, false, &info) == 0) return;
    bool web = begins(path, "www.") || begins(path, "huggingface.co/") || begins(path, "hf.co/");
    bool hub = begins(path, "hf:") && !begins(path, "hf://");
    if (web) cli_hint(err, CLI_HINT_WEB_URL);
    else if (hub || is_repository(path)) cli_hint(err, CLI_HINT_HUB_URL);
}

bool cli_is_remote(const cli *c, const char *path) {
    return sfti_files_claim(c->open.files, path, NULL);
}

bool cli_is_remote_folder(const cli *c, const char *path) {
    return cli_is_remote(c, path) && cli_is_folder_url(path);
}

/* ── Opening ── */

sft_code cli_read_number(const char *option, const char *text, uint64_t least, uint64_t most,
                         uint64_t *out, sft_error *err) {
    if (!text) return SFT_OK;
    if (cli_parse_number(text, most, out) && *out >= least) return SFT_OK;
    return cli_usage_error(err, "expected a number from %" PRIu64 " to %" PRIu64 " for --%s, "
                           "found \"%s\"", least, most, option, text);
}

static sft_code read_numbers(const cli_settings *set, sft_remote_options *out, sft_error *err) {
    uint64_t connections = 0, stall = 0, connect = 0, retries = 0;
    const struct { const char *option, *text; uint64_t least, most, *out; } rows[] = {
        { "connections", set->connections, 1, CONNECTIONS_MOST, &connections },
        { "timeout", set->timeout, 1, CLI_SECONDS_MOST, &stall },
        { "connect-timeout", set->connect_timeout, 1, CLI_SECONDS_MOST, &connect },
        { "retries", set->retries, 0, CLI_RETRIES_MOST, &retries },
    };
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < sizeof rows / sizeof *rows; i++)
        code = cli_read_number(rows[i].option, rows[i].text, rows[i].least, rows[i].most,
                               rows[i].out, err);
    out->connections = (uint32_t)connections;
    out->stall_ms = stall * 1000;
    out->connect_ms = connect * 1000;
    out->retries = set->retries && retries == 0 ? UINT32_MAX : (uint32_t)retries;
    return code;
}

static const char *environment(void *ctx, const char *name) {
    (void)ctx;
    return sfti_os_env(name);
}

/* On any thread: a line is written at once, and c->err is left alone. */
void cli_remote_log(void *ctx, const sft_exchange *e) {
    cli_out out;
    (void)ctx;
    cli_out_begin(&out, 2);
    cli_printf(&out, "safetensors: %s ", e->method);
    cli_escaped(&out, sft_span_cstr(e->url));
    if (e->end) cli_printf(&out, " bytes %" PRIu64 "-%" PRIu64, e->begin, e->end - 1);
    if (e->status) cli_printf(&out, ": %d", e->status);
    else cli_printf(&out, ": %s", e->code ? sft_code_describe(e->code)->sentence : "no answer");
    cli_printf(&out, ", %" PRIu64 " bytes in %" PRIu64 " ms", e->bytes, e->ms);
    if (e->attempt > 1) cli_printf(&out, " (attempt %u)", e->attempt);
    cli_text(&out, "\n");
    (void)cli_flush(&out);
}

/* Opens c->remote by the settings, unless it is. SFT_BAD_ARGUMENT. */
static sft_code open_remote(cli *c, sft_error *err) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    if (c->remote) return SFT_OK;
    sft_code code = read_numbers(&c->set, &options, err);
    if (code) return code;
    options.alloc = &c->alloc;
    options.offline = c->set.offline != 0;
    options.public_only = c->set.public_only != 0;
    options.anonymous = c->set.no_sign_request != 0;
    options.whole = c->set.whole != 0;
    options.cache = c->set.header_cache;
    options.proxy = c->set.proxy;
    options.environment = environment;
    if (c->set.log_requests) options.on_exchange = cli_remote_log;
    return sft_remote_open(&options, &c->remote, err);
}

void cli_remote_add(cli *c, sft_remote_sums sums) {
    c->other_requests.requests += sums.requests;
    c->other_requests.bytes += sums.bytes;
    c->other_requests.retries += sums.retries;
}

void cli_remote_close(cli *c) {
    cli_remote_add(c, sft_remote_sums_of(c->remote));
    sft_remote_sums sums = c->other_requests;
    char buffer[CLI_NUMBER_SIZE];
    if (c->set.verbose || c->set.log_requests) {
        cli_flush(&c->out);
        cli_printf(&c->err, "safetensors: %" PRIu64 " request%s, %s received (%" PRIu64 " bytes)",
                   sums.requests, sums.requests == 1 ? "" : "s",
                   cli_size_text(sums.bytes, buffer), sums.bytes);
        if (sums.retries)
            cli_printf(&c->err, ", %" PRIu64 " sent again", sums.retries);
        cli_text(&c->err, "\n");
    }
    sft_remote_close(c->remote);
    c->remote = NULL;
    c->open.files = c->edit_open.files = NULL;
    if (!c->bad_urls) return;
    sfti_arena_free(&c->bad_urls->arena);
    sfti_release(&c->alloc, c->bad_urls, sizeof *c->bad_urls);
    c->bad_urls = NULL;
}

/* ── Operands ── */

sft_code cli_remote_take(cli *c, char **operands, size_t count, cli_urls urls, const char *what,
                         sft_error *err) {
    bool copies = (c->set.output && !c->set.in_place) || c->set.list_branches;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        const char *name;
        if (!cli_is_url(operands[i])) continue;
        if (urls == CLI_URLS_NONE)
            return cli_usage_hint(err, CLI_HINT_URL_READ_ONLY,
                                  "expected a file of this machine for %s, found a URL", what);
        if (urls >= CLI_URLS_COPY && !copies)
            return cli_usage_hint(err, CLI_HINT_URL_COPY,
                                  "expected -o OUT for %s of a URL, found %s", what,
                                  c->set.in_place ? "--in-place" : "none");
        code = open_remote(c, err);
        if (!code) code = sft_remote_name(c->remote, operands[i], &name, err);
        if (code == SFT_REMOTE_URL) code = bad_url_add(c, operands[i], err, &name);
        if (code) break;
        operands[i] = (char *)(uintptr_t)name;
        const sft_files *files = sft_remote_files(c->remote);
        if (c->bad_urls) c->bad_urls->files = files; /* these, and the URLs that were added */
        c->open.files = c->edit_open.files = c->bad_urls ? &c->bad_urls->these : files;
    }
    return code;
}

/* ── Failures ── */

bool cli_is_remote_error(sft_code code) {
    return code >= SFT_REMOTE_NETWORK && code <= SFT_REMOTE_TRANSPORT;
}

/* ── Claims ── */

bool cli_remote_claim(const cli *c, const char *path, sft_remote_claim *out) {
    return c->remote && path && cli_is_remote(c, path)
        && sft_remote_claims(c->remote, path, out);
}

void cli_put_remote(const cli *c, sfti_json_writer *w, const char *path) {
    sft_remote_claim claim;
    if (!cli_remote_claim(c, path, &claim)) return;
    sfti_json_put_open(w, "remote", '{');
    sfti_json_put_cstr(w, "url", path);
    sfti_json_put_known(w, "bytes", claim.bytes);
    sfti_json_put_cstr(w, "sha256", *claim.sha256 ? claim.sha256 : NULL);
    sfti_json_put_cstr(w, "commit", *claim.commit ? claim.commit : NULL);
    sfti_json_put_cstr(w, "etag", *claim.etag ? claim.etag : NULL);
    sfti_json_put_bool(w, "local", claim.local);
    if (c->tells_reading) sfti_json_put_bool(w, "data_read", c->set.deep != 0);
    sfti_json_close(w, '}');
}

/* ── Whole files ── */

sft_code cli_remote_read(const cli *c, const char *path, uint64_t most, sft_buffer *out,
                         sft_error *err) {
    sft_source source;
    out->len = 0;
    sft_code code = sft_source_path(path, &c->open, &source, err);
    if (code) return code;
    if (source.size > most)
        code = sfti_fail(err, SFT_FILE_TOO_LARGE,
                         "expected at most %" PRIu64 " bytes, found %" PRIu64, most, source.size);
    else code = sft_copy(&source, 0, SFT_SIZE_UNKNOWN, sft_sink_memory(out), NULL, err);
    sft_source_close(&source);
    return code;
}
