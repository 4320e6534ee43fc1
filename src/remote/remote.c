/* Remotes: their options, opening and closing, and the functions that open paths of URLs.
 * Tests: test_remote_web.c. */
#include "remote/remote.h"

#include "base/options.h"
#include "remote/read/blocks.h"
#include "remote/read/files.h"

#include <string.h>

#define DEFAULT_CONNECTIONS 8
#define DEFAULT_CONNECT_MS 10000
#define DEFAULT_STALL_MS 30000

static SFTI_OPTIONS_TAKE(remote_take_options, sft_remote_options, SFT_REMOTE_OPTIONS_INIT,
                         exchange_ctx)

static const sfti_scheme *const all_schemes[SFTI_SCHEME_COUNT] = {
    [SFTI_SCHEME_WEB] = &sfti_web_scheme,
    [SFTI_SCHEME_HUB] = &sfti_hub_scheme,
    [SFTI_SCHEME_S3] = &sfti_s3_scheme,
    [SFTI_SCHEME_GS] = &sfti_gs_scheme,
};

/* ── Options ── */

static sft_code options_check(sft_remote_options *options, sft_error *err) {
    const sft_transport *transport = options->transport;
    if (options->connections > SFTI_CONNECTIONS_MOST)
        return sfti_misuse(err, "expected at most %u connections, found %u",
                           (unsigned)SFTI_CONNECTIONS_MOST, (unsigned)options->connections);
    if (options->public_only && options->proxy && *options->proxy)
        return sfti_misuse(err, "expected no proxy where only public addresses are allowed, found "
                           "one");
    if (transport && !SFTI_CAN(transport, sft_transport_vtable, send))
        return sfti_misuse(err, "expected a transport with send, found none");
    if (options->connections == 0) options->connections = DEFAULT_CONNECTIONS;
    if (options->connect_ms == 0) options->connect_ms = DEFAULT_CONNECT_MS;
    if (options->stall_ms == 0) options->stall_ms = DEFAULT_STALL_MS;
    return SFT_OK;
}

/* A copy of the arena, if there is a text; false when out of memory. */
static bool keep_text(sft_remote *remote, const char *text, const char **out) {
    *out = NULL;
    if (!text || !*text) return true;
    *out = sfti_arena_copy(&remote->arena, text, strlen(text));
    return *out != NULL;
}

/* The first of some variables that is set. */
static bool keep_variable(sft_remote *remote, const char *const *names, const char **out) {
    const char *value = NULL;
    while (!value && *names) value = sfti_remote_environment(remote, *names++);
    return keep_text(remote, value, out);
}

/* HTTP_PROXY in upper case is what a web server passes on of a client's header: not used, as in
 * curl. */
static bool take_proxies(sft_remote *remote) {
    static const char *const http[] = { "http_proxy", "all_proxy", "ALL_PROXY", NULL };
    static const char *const https[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                                         NULL };
    static const char *const none[] = { "no_proxy", "NO_PROXY", NULL };
    const char *proxy = remote->options.proxy;
    if (remote->options.public_only) return true;
    if (proxy) {
        bool kept = keep_text(remote, proxy, &remote->http_proxy);
        remote->https_proxy = remote->http_proxy;
        return kept;
    }
    return keep_variable(remote, http, &remote->http_proxy)
           && keep_variable(remote, https, &remote->https_proxy)
           && keep_variable(remote, none, &remote->no_proxy);
}

/* ── Opening and closing ── */

static bool files_claims(void *ctx, const char *path) {
    (void)ctx;
    return sft_remote_is_url(path);
}

static sft_code files_open(void *ctx, const char *path, const char *beneath, sft_source *out,
                           sft_error *err) {
    sft_code code = sfti_remote_check_process(ctx, err);
    return code ? code : sfti_opened_open(ctx, path, beneath, out, err);
}

static void files_expect(void *ctx, const char *const *paths, size_t count, const char *beneath) {
    if (!sfti_remote_check_process(ctx, NULL)) sfti_opened_expect(ctx, paths, count, beneath);
}

static sft_code files_list(void *ctx, const char *folder, sft_listed_fn each, void *each_ctx,
                           sft_error *err) {
    sft_remote *remote = ctx;
    sfti_scheme_id id;
    sft_code code = sfti_remote_check_process(remote, err);
    if (code) return code;
    if (!sfti_scheme_of(folder, &id))
        return sfti_fail(err, SFT_REMOTE_URL, "expected a URL, found another path");
    const sfti_scheme *scheme = remote->schemes[id];
    if (scheme->list) return scheme->list(remote, folder, each, each_ctx, err);
    return sfti_fail(err, SFT_NOT_FOUND,
                     "expected a folder, found a URL of a server that lists none");
}

static const sft_files_vtable remote_files_vtable = {
    sizeof(sft_files_vtable), files_claims, files_open, files_expect, files_list
};

static sft_code remote_begin(sft_remote *remote, sft_error *err) {
    static const char *const ca[] = { "CURL_CA_BUNDLE", "SSL_CERT_FILE", "AWS_CA_BUNDLE", NULL };
    sft_remote_options *options = &remote->options;
    sft_code code = options_check(options, err);
    if (code) return code;
    if (!take_proxies(remote) || !keep_variable(remote, ca, &remote->ca_file)
        || !keep_text(remote, options->cache, &options->cache))
        code = sfti_fail_memory(err, 1);
    options->proxy = remote->https_proxy;
    if (!code)
        code = sfti_pool_new(&remote->alloc, options->connections, &remote->pool, err);
    if (!code) remote->pool->wait = options->wait;
    if (!code) code = sfti_blocks_new(&remote->alloc, remote->pool, &remote->blocks, err);
    if (!code) code = sfti_opened_new(remote, err);
    if (!code) code = sfti_named_new(remote, err);
    if (!code && options->cache) code = sfti_header_cache_open(options->cache, err);
    for (size_t i = 0; !code && i < SFTI_SCHEME_COUNT; i++) {
        const sfti_scheme *scheme = all_schemes[i];
        if (scheme->open) code = scheme->open(remote, err);
        if (!code) remote->schemes[i] = scheme;
    }
    return code;
}

sft_code sft_remote_open(const sft_remote_options *options, sft_remote **out, sft_error *err) {
    sft_remote_options taken;
    if (!out)
        return sfti_misuse(err, "expected a place for the remote, found NULL");
    *out = NULL;
    sft_code code = remote_take_options(options, &taken, err);
    if (code) return code;
    sft_allocator alloc = sfti_allocator(taken.alloc);
    sft_remote *remote = sfti_take(&alloc, sizeof *remote);
    if (!remote) return sfti_fail_memory(err, sizeof *remote);
    memset(remote, 0, sizeof *remote);
    remote->alloc = remote->arena.alloc = alloc;
    remote->process = sfti_os_process();
    remote->options = taken;
    if (taken.transport) remote->transport = *taken.transport;
    remote->files = (sft_files){ remote, &remote_files_vtable };
    if (sfti_os_mutex_init(&remote->mutex)) goto no_mutex;
    if (sfti_os_mutex_init(&remote->log)) goto no_log;
    code = remote_begin(remote, err);
    if (code) sft_remote_close(remote);
    else *out = remote;
    return code;
no_log:
    sfti_os_mutex_free(&remote->mutex);
no_mutex:
    sfti_release(&alloc, remote, sizeof *remote);
    return sfti_fail_memory(err, sizeof *remote);
}

void sft_remote_close(sft_remote *remote) {
    if (!remote) return;
    sft_allocator alloc = remote->alloc;
    sfti_opened_free(remote->opened);
    sfti_pool_free(remote->pool);
    sfti_blocks_free(remote->blocks);
    for (size_t i = SFTI_SCHEME_COUNT; i-- > 0;) {
        const sfti_scheme *scheme = remote->schemes[i];
        if (scheme && scheme->close) scheme->close(remote);
    }
    if (remote->own_transport && SFTI_CAN(&remote->transport, sft_transport_vtable, close))
        remote->transport.vtable->close(remote->transport.ctx);
    sfti_os_mutex_free(&remote->log);
    sfti_os_mutex_free(&remote->mutex);
    sfti_arena_free(&remote->arena);
    sfti_release(&alloc, remote, sizeof *remote);
}

/* ── What it tells ── */

const sft_files *sft_remote_files(sft_remote *remote) {
    return &remote->files;
}

bool sft_remote_is_folder(const char *name) {
    sfti_scheme_id id;
    if (!name || !sfti_scheme_of(name, &id)) return false;
    return all_schemes[id]->is_folder && all_schemes[id]->is_folder(name);
}

sft_remote_sums sft_remote_sums_of(sft_remote *remote) {
    sfti_os_mutex_lock(&remote->mutex);
    sft_remote_sums sums = remote->sums;
    sfti_os_mutex_unlock(&remote->mutex);
    return sums;
}
