/* One request, and what becomes of its answer. Tests: test_remote_http.c. */
#include "remote/http/exchange.h"

#include "base/error.h"
#include "os/io.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define USER_AGENT "libsafetensors/" SFT_VERSION_STRING
#define FAILURE_KEPT 4096               /* bytes of a failure's body */
#define BODY_DRAINED ((uint64_t)64 << 10) /* read on so that the connection can be used again */
#define SHOWN_SIZE 256
#define CONNECT_MS 10000
#define STALL_MS 30000

/* ── What arrives ── */

static bool take_head(void *ctx, int status, const sft_pair *headers, size_t count) {
    sfti_exchange *x = ctx;
    sfti_target *target = x->target;
    x->bytes = 0;
    x->failure.len = 0;
    x->no_memory = !sfti_answer_read(x->answer, status, headers, count);
    if (x->no_memory) return false;
    bool here = target && target->scheme && target->scheme->learn
             && target->scheme->learn(target, x->at, x->answer);
    if (target && target->known && strcmp(target->known, x->answer->linked_etag) == 0)
        here = target->is_known = true;
    if (here) {
        x->local = true;
        return false;
    }
    if (x->answer->location && (status == 301 || status == 302 || status == 303 || status == 307
                                || status == 308)) {
        x->use = SFTI_BODY_REDIRECT;
        return true;
    }
    bool accepted = false, wanted = x->taker.head(x->taker.ctx, x->answer, &accepted);
    x->use = accepted ? SFTI_BODY_TAKEN : SFTI_BODY_FAILURE;
    return wanted || !accepted;
}

static bool take_bytes(void *ctx, const void *bytes, size_t len) {
    sfti_exchange *x = ctx;
    x->bytes += len;
    if (x->use == SFTI_BODY_TAKEN) return x->taker.body(x->taker.ctx, bytes, len);
    size_t left = FAILURE_KEPT - x->failure.len, kept = len < left ? len : left;
    if (x->use == SFTI_BODY_FAILURE && kept > 0)
        x->no_memory = !sfti_buffer_put(&x->failure, bytes, kept);
    return !x->no_memory && x->bytes < BODY_DRAINED;
}

/* ── One request ── */

uint64_t sfti_exchange_left_ms(const sfti_exchange *x) {
    uint64_t spent = (sfti_os_now_ns() - x->began_ns) / 1000000;
    if (x->total_ms == 0) return UINT64_MAX;
    return spent < x->total_ms ? x->total_ms - spent : 0;
}

/* For the transport, on any thread. */
static bool hop_goes_on(void *ctx) {
    const sfti_exchange *x = ctx;
    return !sfti_wait_over(x->remote->options.wait) && (!x->go_on || x->go_on(x->go_on_ctx));
}

static sft_code send_request(sfti_exchange *x, const sfti_url *url, const sfti_headers *headers,
                             sft_error *err) {
    sft_remote *remote = x->remote;
    const sft_remote_options *options = &remote->options;
    const uint64_t began = sfti_os_now_ns(), left = sfti_exchange_left_ms(x);
    const char *proxy = url->https ? remote->https_proxy : remote->http_proxy;
    char shown[SHOWN_SIZE * 4];
    sft_code code = SFT_OK;
    /* The transport that was given, or libcurl from now on. */
    sfti_os_mutex_lock(&remote->mutex);
    if (!remote->transport.vtable) {
        code = sft_transport_curl(&remote->alloc, &remote->transport, err);
        remote->own_transport = !code;
    }
    const sft_transport transport = remote->transport;
    sfti_os_mutex_unlock(&remote->mutex);
    if (code) return code;
    if (proxy && (!*proxy || sfti_no_proxy(remote->no_proxy, url->host, url->port)))
        proxy = NULL;
    sft_http_request request = {
        .method = x->post.data ? "POST" : "GET", .url = x->at, .headers = headers->at,
        .header_count = headers->count, .body = x->post, .proxy = proxy,
        .ca_file = remote->ca_file, .public_only = options->public_only,
        .connect_ms = options->connect_ms ? options->connect_ms : CONNECT_MS,
        .stall_ms = options->stall_ms ? options->stall_ms : STALL_MS,
        .total_ms = left == UINT64_MAX ? 0 : left + (left == 0),
        .go_on = hop_goes_on, .go_on_ctx = x,
    };
    sft_http_receiver receiver = { x, take_head, take_bytes };
    sft_exchange told = { .method = request.method, .begin = x->begin, .end = x->end };
    told.code = transport.vtable->send(transport.ctx, &request, &receiver, err);
    told.ms = (sfti_os_now_ns() - began) / 1000000;
    /* Accounts: the sums, and whoever wants to hear of each exchange. */
    sfti_os_mutex_lock(&remote->mutex);
    remote->sums.requests++;
    remote->sums.bytes += x->bytes;
    remote->sums.retries += x->is_retry;
    sfti_os_mutex_unlock(&remote->mutex);
    if (!options->on_exchange) return told.code;
    sfti_exchange_show(x, x->at, x->hop_count > 0, shown, sizeof shown);
    told.url = shown;
    told.status = x->answer->status;
    told.bytes = x->bytes;
    told.attempt = x->tries + 1;
    sfti_os_mutex_lock(&remote->log);
    options->on_exchange(options->exchange_ctx, &told);
    sfti_os_mutex_unlock(&remote->log);
    return told.code;
}

/* Remember what a request is authorized by; of many, the last ones. */
static void keep_secret(sfti_headers *kept, sft_pair header) {
    for (size_t i = 0; i < kept->count; i++)
        if (sft_span_equal(kept->at[i].value, header.value)) return;
    if (kept->count == SFTI_HEADERS_MOST)
        memmove(kept->at, kept->at + 1, --kept->count * sizeof *kept->at);
    kept->at[kept->count++] = header;
}

sft_code sfti_exchange_hop(sfti_exchange *x, sft_error *err) {
    const sft_remote_options *options = &x->remote->options;
    sfti_target *target = x->target;
    sfti_headers headers = { .arena = &x->arena };
    char shown[SHOWN_SIZE], range[64];
    sft_code code = SFT_OK;
    sfti_url url;
    x->use = SFTI_BODY_NONE;
    x->bytes = 0;
    x->authorized = x->no_memory = false;
    (void)sfti_answer_read(x->answer, 0, NULL, 0);

    if (options->offline)
        return sfti_fail(err, SFT_REMOTE_OFFLINE, "not fetched: the network is not to be used");
    if (!sfti_url_parse(x->at, &url) || url.user.data) {
        sfti_url_show(x->at, shown, sizeof shown);
        return sfti_fail(err, SFT_REMOTE_URL,
                         "expected a URL of http or https without a user, found \"%s\"", shown);
    }
    if (options->public_only && !sfti_host_is_public(url.host))
        return sfti_fail(err, SFT_REMOTE_PRIVATE, "expected a public host, found \"%.*s\"",
                         SFTI_CLIP(url.host, 255));

    (void)snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, x->begin, x->end - 1);
    /* A weak tag is no condition. */
    bool condition = target && target->scheme && target->scheme->if_match && x->same
                  && x->same->etag[0] == '"';
    if (!sfti_headers_add(&headers, "user-agent", USER_AGENT)
        || !sfti_headers_add(&headers, "accept-encoding", "identity")
        || (x->accept && !sfti_headers_add(&headers, "accept", x->accept))
        || (x->post.data && !sfti_headers_add(&headers, "content-type", "application/json"))
        || (x->end && !sfti_headers_add(&headers, "range", range))
        || (condition && !sfti_headers_add(&headers, "if-match", x->same->etag)))
        return sfti_fail_memory(err, 0);
    const size_t before = headers.count;
    if (target && target->scheme && target->scheme->authorize)
        code = target->scheme->authorize(target, x->at, &headers, err);
    x->authorized = headers.count > before;
    for (size_t i = before; i < headers.count; i++) keep_secret(&x->secrets, headers.at[i]);
    if (code) return code;
    code = send_request(x, &url, &headers, err);
    x->is_retry = false;
    if (x->no_memory) {
        code = sfti_fail_memory(err, 0);
    } else if (code == SFT_REMOTE_NETWORK && x->use > SFTI_BODY_TAKEN) {
        code = SFT_OK; /* the head said enough */
    } else if (!code && x->use == SFTI_BODY_TAKEN && !x->local) {
        code = x->taker.end(x->taker.ctx, err);
    }
    if (!code && x->use == SFTI_BODY_FAILURE) { /* what it says, without what was sent to get it */
        char *said = x->answer->error_message;
        said[sfti_redact(x, said, strlen(said))] = '\0';
        x->failure.len = sfti_redact(x, x->failure.data, x->failure.len);
        sfti_answer_body(x->answer, (sft_span){ x->failure.data, x->failure.len });
    }
    sft_buffer_free(&x->failure);
    return code;
}
