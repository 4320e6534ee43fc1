/* HTTP: one request at a time, over libcurl, which is loaded when it is first needed and never
 * linked. Only --online calls this. */
#ifndef CLI_HTTP_H
#define CLI_HTTP_H

#include "safetensors.h"

/* One exchange; redirects are not followed. */
typedef struct cli_http_request {
    const char *url;
    sft_span body;      /* JSON to POST; data NULL: GET */
    const char *accept; /* media type */
    const char *proxy;  /* NULL: none, whatever the environment says */
    uint64_t most;      /* bytes of the answer, unpacked */
    uint64_t connect_ms, total_ms;
} cli_http_request;

#define CLI_URL_SIZE 4096

typedef struct cli_http_reply {
    long status;
    sft_buffer body;         /* its alloc is set by the caller */
    long retry_after;        /* seconds; negative: not given */
    char location[CLI_URL_SIZE]; /* of a redirect, absolute; or empty */
} cli_http_reply;

/* The transport. */
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
/* "7.88.1", or NULL when it is not installed; in buffer. */
const char *cli_http_version(char buffer[32]);

/* ── Retries and redirects ── */

typedef struct cli_http_policy {
    const char *proxy;
    uint64_t connect_ms, total_ms;
    unsigned retries; /* after 429 and 5xx */
    uint64_t requests; /* sent so far, retries included */
} cli_http_policy;

/* Send, retry after a delay while the server is busy (429, 5xx), and follow redirects to the
 * same host. A status of 2xx or 404 is an answer; any other is
 * SFT_IO_READ with the status in reply->status. */
sft_code cli_http_fetch(const cli_http *http, cli_http_policy *policy,
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
