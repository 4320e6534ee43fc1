/* Speaking HTTP: one request after another, over libcurl, which is loaded when it is first
 * needed and never linked. Nothing here is called but for --online. */
#ifndef CLI_HTTP_H
#define CLI_HTTP_H

#include "safetensors.h"

/* One exchange, without following where it is sent on. */
typedef struct cli_http_request {
    const char *url;
    sft_span body;      /* JSON to POST; data NULL: GET */
    const char *accept; /* media type */
    const char *proxy;  /* NULL: none, whatever the environment says */
    uint64_t most;      /* bytes of the answer, unpacked */
    uint64_t connect_ms, total_ms;
} cli_http_request;

#define CLI_URL_ROOM 4096

typedef struct cli_http_reply {
    long status;
    sft_buffer body;         /* its alloc is set by the caller */
    long retry_after;        /* seconds; negative: not told */
    char location[CLI_URL_ROOM]; /* where it sends on, absolute; or empty */
} cli_http_reply;

/* A way to exchange, so that another may be put in its place. */
typedef struct cli_http {
    void *ctx;
    /* SFT_OK whatever the status. SFT_CANCELLED after a signal, SFT_FILE_TOO_LARGE for more
     * than `most` bytes, SFT_IO_READ for all else. */
    sft_code (*send)(void *ctx, const cli_http_request *request, cli_http_reply *reply,
                     sft_error *err);
    void (*close)(void *ctx);
} cli_http;

/* Through libcurl. SFT_NOT_FOUND when it is not installed. */
sft_code cli_http_open(const sft_allocator *alloc, cli_http *out, sft_error *err);
/* "7.88.1", or NULL when it is not installed; in room. */
const char *cli_http_version(char room[32]);

/* ── Manners ── */

typedef struct cli_http_manners {
    const char *proxy;
    uint64_t connect_ms, total_ms;
    unsigned retries; /* after 429 and 5xx */
    uint64_t requests; /* sent so far, those again too */
} cli_http_manners;

/* Send, and again after a while where the server is busy (429, 5xx), and go where it sends
 * on as long as that is allowed. A status of 2xx or 404 is an answer; any other is
 * SFT_IO_READ with the status in reply->status. */
sft_code cli_http_fetch(const cli_http *http, cli_http_manners *manners,
                        const cli_http_request *request, cli_http_reply *reply,
                        sft_error *err);

/* ── Addresses ── */

/* Whether this is an http or https URL with a host and without a user. */
bool cli_url_is_http(const char *url);
/* Whether two URLs have the same scheme, host and port. */
bool cli_url_same_host(const char *a, const char *b);
/* Whether a site at `site` may have its pictures at `url`: on the same host, or by https on
 * another host of the same domain. */
bool cli_url_same_site(const char *site, const char *url);

#endif
