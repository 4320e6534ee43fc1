#include "support/http.h"

#include "base/error.h"
#include "os/os.h"
#include "support/words.h"

#include <string.h>

#define HTTP_REDIRECTS 3
#define HTTP_WAIT_MOST 60000   /* ms: a server that asks for more is a failure */
#define HTTP_WAIT_FIRST 500
#define HTTP_PAUSE 100

/* ── Addresses ── */

typedef struct url_parts {
    sft_span scheme, host, port; /* port with its colon, or empty */
} url_parts;

static bool is_url_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_host_byte(char c) {
    return (c >= '0' && c <= '9') || is_url_letter(c) || c == '-' || c == '.' || c == '_';
}

static bool is_address_byte(char c) {
    return (c >= '0' && c <= ':') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '.';
}

static size_t host_length(const char *at) {
    size_t len = 0;
    if (*at != '[') {
        while (is_host_byte(at[len])) len++;
        return len;
    }
    for (len = 1; is_address_byte(at[len]);) len++;
    return at[len] == ']' ? len + 1 : 0;
}

static bool split_url(const char *url, url_parts *out) {
    size_t scheme = strcspn(url, ":");
    out->scheme = (sft_span){ url, scheme };
    if (!cli_same_letters(out->scheme, sft_span_cstr("https"))
        && !cli_same_letters(out->scheme, sft_span_cstr("http")))
        return false;
    if (strncmp(url + scheme, "://", 3) != 0) return false;
    const char *at = url + scheme + 3, *p = at + host_length(at);
    out->host = (sft_span){ at, (size_t)(p - at) };
    out->port = (sft_span){ p, 0 };
    if (*p == ':')
        for (p++; *p >= '0' && *p <= '9';) p++;
    out->port.len = (size_t)(p - out->port.data);
    for (const char *c = p; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f) return false;
    return out->host.len > 0 && (!*p || *p == '/' || *p == '?' || *p == '#');
}

bool cli_url_is_http(const char *url) {
    url_parts parts;
    return split_url(url, &parts);
}

bool cli_url_same_host(const char *a, const char *b) {
    url_parts x, y;
    return split_url(a, &x) && split_url(b, &y) && cli_same_letters(x.scheme, y.scheme)
        && cli_same_letters(x.host, y.host) && sft_span_equal(x.port, y.port);
}

/* The last two words of a host that has letters at its end; else empty. */
static sft_span domain_of(sft_span host) {
    size_t at = host.len, dots = 0;
    if (host.len == 0 || !is_url_letter(host.data[host.len - 1])) return (sft_span){ "", 0 };
    while (at > 0 && dots < 2) dots += host.data[--at] == '.';
    if (dots == 2) at++;
    return dots ? (sft_span){ host.data + at, host.len - at } : (sft_span){ "", 0 };
}

bool cli_url_same_site(const char *site, const char *url) {
    url_parts x, y;
    if (cli_url_same_host(site, url)) return true;
    if (!split_url(site, &x) || !split_url(url, &y) || y.port.len > 0) return false;
    sft_span domain = domain_of(x.host);
    return domain.len > 0 && cli_same_letters(y.scheme, sft_span_cstr("https"))
        && cli_same_letters(domain, domain_of(y.host));
}

/* ── Retries ── */

/* Ends early when a signal came. */
static void pause_ms(uint64_t ms) {
    while (!os_stop_signal() && ms > 0) {
        uint32_t piece = ms < HTTP_PAUSE ? (uint32_t)ms : HTTP_PAUSE;
        os_sleep_ms(piece);
        ms -= piece;
    }
}

/* Twice as long each time, and up to half of it more by chance: many that were turned away
 * together do not come back together. */
static uint64_t back_off(unsigned tries, long retry_after) {
    uint64_t wait = (uint64_t)HTTP_WAIT_FIRST << (tries < 7 ? tries : 7);
    uint32_t chance = 0;
    if (retry_after >= 0) return (uint64_t)retry_after * 1000;
    if (os_random(&chance, sizeof chance)) chance = 0;
    wait += wait / 2 * (chance & 0xffff) / 0xffff;
    return wait < HTTP_WAIT_MOST ? wait : HTTP_WAIT_MOST;
}

/* ── Fetching ── */

static bool is_busy(long status) {
    return status == 429 || status >= 500;
}

static sft_code http_fail(sft_error *err, sft_code code, const char *format, long status) {
    return sfti_fail(err, code, SFT_NO_OFFSET, format, status);
}

static sft_code send_with_retries(const cli_http *http, cli_http_policy *policy,
                               const cli_http_request *request, cli_http_reply *reply,
                               sft_error *err) {
    for (unsigned tries = 0;; tries++) {
        policy->requests++;
        sft_code code = http->send(http->ctx, request, reply, err);
        if (code || !is_busy(reply->status)) return code;
        if (tries == policy->retries)
            return http_fail(err, SFT_IO_READ, "expected an answer, found status %ld on every try",
                             reply->status);
        uint64_t wait = back_off(tries, reply->retry_after);
        if (wait > HTTP_WAIT_MOST)
            return http_fail(err, SFT_IO_READ,
                             "expected an answer, found a request to wait %ld seconds",
                             reply->retry_after);
        pause_ms(wait);
        if (os_stop_signal()) return http_fail(err, SFT_CANCELLED, "interrupted", 0);
    }
}

static bool is_redirect(long status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

sft_code cli_http_fetch(const cli_http *http, cli_http_policy *policy,
                        const cli_http_request *request, cli_http_reply *reply,
                        sft_error *err) {
    cli_http_request now = *request;
    char url[CLI_URL_SIZE];
    now.proxy = policy->proxy;
    now.connect_ms = policy->connect_ms;
    now.total_ms = policy->total_ms;
    for (int hops = 0;; hops++) {
        sft_code code = send_with_retries(http, policy, &now, reply, err);
        if (code) return code;
        if (!is_redirect(reply->status)) break;
        if (hops == HTTP_REDIRECTS)
            return http_fail(err, SFT_IO_READ, "expected an answer, found too many redirects "
                             "(status %ld)", reply->status);
        if (!cli_url_same_host(request->url, reply->location)) {
            return sfti_fail(err, SFT_IO_READ, SFT_NO_OFFSET,
                             "expected an answer, found a redirect to another host: \"%s\"",
                             reply->location);
        }
        memcpy(url, reply->location, strlen(reply->location) + 1);
        now.url = url;
        if (reply->status == 303) now.body = (sft_span){ NULL, 0 };
    }
    if (reply->status == 404 || (reply->status >= 200 && reply->status < 300)) return SFT_OK;
    return http_fail(err, SFT_IO_READ, "expected an answer, found status %ld", reply->status);
}
