/* What libcurl's failures mean. Its own texts may hold URLs and are not handed on. */
#include "base/error.h"
#include "os/os.h"
#include "remote/http/curl.h"
#include "remote/http/text.h"
#include "remote/http/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SERVER_PLACE_SIZE 320

/* "host" or "host:port". */
static const char *server_place(const char *url, char out[SERVER_PLACE_SIZE]) {
    sfti_url parts;
    if (!sfti_url_parse(url, &parts)) {
        sfti_url_show(url, out, SERVER_PLACE_SIZE);
        return out;
    }
    size_t len = (size_t)(parts.path.data - parts.host.data);
    if (len >= SERVER_PLACE_SIZE) len = SERVER_PLACE_SIZE - 1;
    memcpy(out, parts.host.data, len);
    out[len] = '\0';
    return out;
}

/* ── Certificates ── */

/* X509_V_ERR_... of OpenSSL, or a word of what a library says; 0 and NULL end the table. */
static const struct tls_row {
    long verified;
    const char *word;
    const char *meaning;
} tls_rows[] = {
    { 62, "subject name", "is for another host" },
    { 0, "does not match", "is for another host" },
    { 10, "expir", "has expired" },
    { 9, "not yet valid", "is not valid yet" },
    { 0, "not yet activated", "is not valid yet" },
    { 23, "revoked", "was revoked" },
    { 18, "self-signed", "comes from an unknown authority (self-signed)" },
    { 19, "self signed", "comes from an unknown authority (self-signed)" },
    { 20, "issuer", "comes from an unknown authority" },
    { 21, "verify the first certificate", "comes from an unknown authority" },
    { 0, "verification failed", "comes from an unknown authority" },
};

static bool curl_says(const char *text, const char *word) {
    sft_span rest = sft_span_cstr(text);
    for (; rest.len > 0; rest = sfti_span_from(rest, 1))
        if (sfti_text_begins(rest, word)) return true;
    return false;
}

static sft_code fail_tls(const sfti_curl_failure *f, const char *place, sft_error *err) {
    if (f->code == CURLE_SSL_CACERT_BADFILE)
        return sfti_fail(err, SFT_REMOTE_TLS,
                         "expected certificate authorities in \"%s\", found none that can be read",
                         f->request->ca_file ? f->request->ca_file : "the system's file");
    if (f->code == CURLE_SSL_CONNECT_ERROR || f->code == CURLE_SSL_CIPHER
        || f->code == CURLE_SSL_CERTPROBLEM) {
        sfti_fail(err, SFT_REMOTE_TLS, "no agreement on TLS with %s%s", place,
                  curl_says(f->text, "wrong version") || curl_says(f->text, "unexpected tls packet")
                      ? " (expected https there, found something else)" : "");
        sfti_hint(err, SFT_HINT_NONE);
        return SFT_REMOTE_TLS;
    }
    const char *problem = NULL;
    const size_t count = sizeof tls_rows / sizeof *tls_rows;
    for (size_t i = 0; !problem && f->verified != 0 && i < count; i++)
        if (tls_rows[i].verified == f->verified) problem = tls_rows[i].meaning;
    for (size_t i = 0; !problem && i < count; i++)
        if (curl_says(f->text, tls_rows[i].word)) problem = tls_rows[i].meaning;
    return sfti_fail(err, SFT_REMOTE_TLS, "the certificate of %s %s", place,
                     problem ? problem : "is not accepted");
}

static bool is_tls(const sfti_curl_failure *f) {
    static const int codes[] = {
        CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
        CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE,
        CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
    };
    /* A handshake may also just be cut off. */
    static const char *const cut[] = { "SYSCALL", "reset", "unexpected eof", "closed", "broken",
                                       "not properly terminated", "premature" };
    for (size_t i = 0; f->code == CURLE_SSL_CONNECT_ERROR && i < sizeof cut / sizeof *cut; i++)
        if (curl_says(f->text, cut[i])) return false;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (f->code == codes[i]) return true;
    return false;
}

/* ── Connections ── */

static uint64_t seconds_of(uint64_t ms) {
    return (ms + 999) / 1000;
}

static sft_code fail_timeout(const sfti_curl_failure *f, const char *place, sft_error *err) {
    const sft_http_request *request = f->request;
    if (f->stalled)
        return sfti_fail(err, SFT_REMOTE_NETWORK,
                         "the connection to %s stalled for %" PRIu64 " s, after %" PRIu64 " bytes",
                         place, seconds_of(request->stall_ms), f->received);
    if (!f->connected)
        return sfti_fail(err, SFT_REMOTE_NETWORK, "no connection to %s within %" PRIu64 " s", place,
                         seconds_of(request->connect_ms));
    return sfti_fail(err, SFT_REMOTE_NETWORK,
                     "no complete answer of %s within %" PRIu64 " s, but %" PRIu64 " bytes", place,
                     seconds_of(request->total_ms), f->received);
}

/* A status by which a proxy refuses a tunnel. */
static sft_code fail_tunnel(const sfti_curl_failure *f, sft_error *err) {
    char proxy[SERVER_PLACE_SIZE];
    sft_code code = f->connect_status >= 500 ? SFT_REMOTE_NETWORK : SFT_REMOTE_STATUS;
    sfti_url_show(f->request->proxy, proxy, sizeof proxy);
    sfti_fail(err, code, "the proxy %s refused the connection with status %ld%s", proxy,
              f->connect_status,
              f->connect_status == 407 ? " (it wants a user and a password)" : "");
    sfti_hint(err, SFT_HINT_REMOTE_PROXY);
    return code;
}

/* ── All ── */

sft_code sfti_curl_fail(const sfti_curl_failure *f, sft_error *err) {
    char place[SERVER_PLACE_SIZE], proxy[SERVER_PLACE_SIZE] = "", text[128];
    const sft_http_request *request = f->request;
    const char *reason = "";
    server_place(request->url, place);
    if (request->proxy) sfti_url_show(request->proxy, proxy, sizeof proxy);
    if (f->code == CURLE_OUT_OF_MEMORY) return sfti_fail_memory(err, 0);
    if (f->stalled || f->code == CURLE_OPERATION_TIMEDOUT) return fail_timeout(f, place, err);
    if (request->proxy && f->connect_status >= 300) return fail_tunnel(f, err);
    if (is_tls(f)) return fail_tls(f, place, err);
    switch (f->code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
        return sfti_fail(err, SFT_REMOTE_NETWORK, "the name of the proxy %s is not known", proxy);
    case CURLE_COULDNT_RESOLVE_HOST:
        return sfti_fail(err, SFT_REMOTE_NETWORK, "the name of the host %s is not known", place);
    case CURLE_COULDNT_CONNECT:
        if (f->os_error > 0) reason = sfti_os_error_text((int)f->os_error, text, sizeof text);
        sfti_fail(err, SFT_REMOTE_NETWORK, "no connection to %s%s%s%s%.125s", place,
                  *proxy ? " by the proxy " : "", proxy, *reason ? ": " : "", reason);
        if (err && f->os_error > 0) err->os_errno = (int32_t)f->os_error;
        return SFT_REMOTE_NETWORK;
    case CURLE_URL_MALFORMAT:
        return sfti_fail(err, SFT_REMOTE_URL, "libcurl does not take the URL of %s", place);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return sfti_fail(err, SFT_REMOTE_STATUS,
                         "expected an answer of HTTP from %s, found something else", place);
    case CURLE_GOT_NOTHING:
        return sfti_fail(err, SFT_REMOTE_NETWORK, "%s closed the connection without an answer",
                         place);
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR: /* cut off */
        return sfti_fail(err, SFT_REMOTE_NETWORK,
                         "the connection to %s was lost after %" PRIu64 " bytes", place,
                         f->received);
    default:
        return sfti_fail(err, SFT_REMOTE_NETWORK, "no answer of %s: %s (libcurl %d)", place,
                         f->strerror, f->code);
    }
}
