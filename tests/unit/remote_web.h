/* A web server without a network: a transport that serves one file from memory, with faults. */
#ifndef REMOTE_WEB_H
#define REMOTE_WEB_H

#include "os/os.h"
#include "safetensors_remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEB_LOG 4096
#define WEB_SIGNS 4096

/* Guarded by the mutex: what is counted. */
typedef struct web {
    const unsigned char *bytes;
    uint64_t size;
    const char *etag;         /* NULL: none */
    bool no_ranges;           /* always the whole file */
    bool redirects;           /* to a signed URL of another host */
    unsigned expires_after;   /* uses of a signed URL; 0: never */
    size_t fail_at;           /* this request gets no answer, from 1 */
    bool forever;             /* nor do all later ones */
    size_t change_at;         /* from this request on the file is another one */
    size_t cut_at;            /* this answer ends in its middle */
    int status;               /* of all answers, instead of the file */
    uint32_t delay_ms;
    bool stuck;               /* no answer, until it is to end */
    os_mutex mutex;
    size_t requests, resolved, at_once, at_once_most;
    unsigned uses[WEB_SIGNS];
    uint64_t sent;
    struct { char url[160], range[64]; } log[WEB_LOG];
} web;

static inline const char *web_header(const sft_http_request *request, const char *name) {
    for (size_t i = 0; i < request->header_count; i++)
        if (sft_span_equal(request->headers[i].key, sft_span_cstr(name)))
            return request->headers[i].value.data;
    return NULL;
}

static inline sft_pair web_pair(const char *key, const char *value) {
    return (sft_pair){ sft_span_cstr(key), sft_span_cstr(value) };
}

/* What is decided about a request with the mutex held. */
typedef struct web_answer {
    size_t nth;
    int status;
    char location[160];
    bool fails, cut, changed;
} web_answer;

static inline web_answer web_decide(web *w, const sft_http_request *request) {
    const char *range = web_header(request, "range"), *sign = strstr(request->url, "?sig=");
    sfti_os_mutex_lock(&w->mutex);
    web_answer a = { .nth = ++w->requests, .status = w->status };
    if (a.nth <= WEB_LOG) {
        (void)snprintf(w->log[a.nth - 1].url, sizeof w->log[0].url, "%s", request->url);
        (void)snprintf(w->log[a.nth - 1].range, sizeof w->log[0].range, "%.*s",
                       range ? (int)strcspn(range, "\r\n") : 0, range ? range : "");
    }
    a.fails = w->fail_at && (a.nth == w->fail_at || (w->forever && a.nth > w->fail_at));
    a.cut = a.nth == w->cut_at;
    a.changed = w->change_at && a.nth >= w->change_at;
    if (++w->at_once > w->at_once_most) w->at_once_most = w->at_once;
    if (w->redirects && !sign && !a.status) {
        a.status = 302;
        (void)snprintf(a.location, sizeof a.location, "https://cdn.test/file?sig=%zu",
                       w->resolved++ % WEB_SIGNS);
    } else if (sign && w->expires_after) {
        if (++w->uses[strtoul(sign + 5, NULL, 10) % WEB_SIGNS] > w->expires_after) a.status = 403;
    }
    sfti_os_mutex_unlock(&w->mutex);
    return a;
}

static inline sft_code web_body(web *w, const sft_http_request *request,
                                const sft_http_receiver *receiver, const unsigned char *bytes,
                                uint64_t len, bool cut, sft_error *err) {
    const uint64_t end = cut ? len / 2 : len;
    for (uint64_t at = 0; at < end;) {
        size_t piece = end - at < 65536 ? (size_t)(end - at) : 65536;
        if (request->go_on && !request->go_on(request->go_on_ctx))
            return sft_error_set(err, SFT_CANCELLED, 0, "cancelled");
        sfti_os_mutex_lock(&w->mutex);
        w->sent += piece;
        sfti_os_mutex_unlock(&w->mutex);
        if (!receiver->body(receiver->ctx, bytes + at, piece)) return SFT_OK;
        at += piece;
    }
    return cut ? sft_error_set(err, SFT_REMOTE_NETWORK, 0, "the connection was cut") : SFT_OK;
}

/* "bytes=FIRST-LAST"; without sscanf, for that of mingw's C library ends the program where memory
 * ends. */
static inline bool web_range(const char *text, uint64_t *first, uint64_t *last) {
    char *at;
    if (strncmp(text, "bytes=", 6) != 0) return false;
    *first = strtoull(text + 6, &at, 10);
    if (at == text + 6 || *at != '-') return false;
    text = at + 1;
    *last = strtoull(text, &at, 10);
    return at != text;
}

static inline sft_code web_file(web *w, const sft_http_request *request,
                                const sft_http_receiver *receiver, const web_answer *a,
                                sft_error *err) {
    const char *range = web_header(request, "range");
    uint64_t begin = 0, end = w->size;
    char length[32], content[96];
    sft_pair headers[4];
    size_t count = 0;
    int status = 200;
    if (range && !w->no_ranges && web_range(range, &begin, &end)) {
        end = end + 1 < w->size ? end + 1 : w->size;
        status = begin < w->size ? 206 : 416;
        if (status == 206)
            (void)snprintf(content, sizeof content, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                           begin, end - 1, w->size);
        else (void)snprintf(content, sizeof content, "bytes */%" PRIu64, w->size);
        headers[count++] = web_pair("content-range", content);
        if (status == 416) begin = end = 0;
    }
    (void)snprintf(length, sizeof length, "%" PRIu64, end - begin);
    headers[count++] = web_pair("content-length", length);
    if (w->etag) headers[count++] = web_pair("etag", a->changed ? "\"another\"" : w->etag);
    headers[count++] = web_pair("last-modified", "Sat, 21 Nov 2026 12:00:00 GMT");
    if (!receiver->head(receiver->ctx, status, headers, count)) return SFT_OK;
    return web_body(w, request, receiver, w->bytes + begin, end - begin, a->cut, err);
}

static inline sft_code web_send(void *ctx, const sft_http_request *request,
                                const sft_http_receiver *receiver, sft_error *err) {
    web *w = ctx;
    web_answer a = web_decide(w, request);
    sft_pair headers[2] = { web_pair("content-length", "0"), web_pair("location", a.location) };
    sft_code code = SFT_OK;
    if (w->delay_ms) sfti_os_sleep_ms(w->delay_ms);
    while (w->stuck && !code) {
        sfti_os_sleep_ms(5);
        bool on = !sfti_os_wait_over() && (!request->go_on || request->go_on(request->go_on_ctx));
        if (!on) code = sft_error_set(err, SFT_CANCELLED, 0, "cancelled");
    }
    if (code) goto done;
    if (a.fails) code = sft_error_set(err, SFT_REMOTE_NETWORK, 0, "no answer");
    else if (a.status)
        (void)receiver->head(receiver->ctx, a.status, headers, a.status == 302 ? 2 : 1);
    else code = web_file(w, request, receiver, &a, err);
done:
    sfti_os_mutex_lock(&w->mutex);
    w->at_once--;
    sfti_os_mutex_unlock(&w->mutex);
    return code;
}

/* Until so many requests were sent, two seconds at most. */
static inline void web_wait(web *w, size_t least) {
    bool reached = false;
    for (int i = 0; i < 2000 && !reached; i++) {
        sfti_os_mutex_lock(&w->mutex);
        reached = w->requests >= least;
        sfti_os_mutex_unlock(&w->mutex);
        if (!reached) sfti_os_sleep_ms(1);
    }
}

static const sft_transport_vtable web_transport_vtable = {
    sizeof(sft_transport_vtable), web_send, NULL
};

/* Bytes that tell where they are. */
static inline unsigned char web_byte(uint64_t offset) {
    return (unsigned char)((offset * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static inline bool web_is_right(const unsigned char *at, uint64_t begin, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (at[i] != web_byte(begin + i)) return false;
    return true;
}

static inline unsigned char *web_make_bytes(size_t len) {
    unsigned char *bytes = malloc(len + 1);
    if (!bytes) abort();
    for (size_t i = 0; i < len; i++) bytes[i] = web_byte(i);
    return bytes;
}

#endif
