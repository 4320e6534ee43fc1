/* Reading models where they are: on web servers, the Hugging Face Hub, S3, Google Cloud Storage and
 * CivitAI. A URL becomes a source, of which only the ranges are fetched that are read:
 *
 *     sft_remote *remote;
 *     sft_open_options how = SFT_OPEN_OPTIONS_INIT;
 *     if (!sft_remote_open(NULL, &remote, &err)) {
 *         how.files = sft_remote_files(remote);
 *         code = sft_open("hf://owner/name/model.safetensors", &how, &file, &err);
 *     }
 *
 * The library itself uses the network through this header only, and only for paths that are URLs.
 * docs/remote.md has the schemes, and what is sent to whom.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_REMOTE is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. A remote and its files may be used by any number of threads, but
 * not by a child of fork(), which opens a remote of its own and leaves its parent's as it is:
 * opening and reading through that one are SFT_BAD_ARGUMENT there. */
#ifndef SFT_SAFETENSORS_REMOTE_H
#define SFT_SAFETENSORS_REMOTE_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_REMOTE 1

/* ── Transport: one exchange over HTTP ───────────────────────────────────── */

/* A request. Allocated by the library only, valid during the call. @since 0.2 */
typedef struct sft_http_request {
    const char *method;      /* "GET" or "POST" */
    const char *url;         /* http or https, without a user; to be sent as it is spelt */
    const sft_pair *headers; /* names in lower case; all that are sent but Host, Content-Length */
    size_t header_count;
    sft_span body;           /* of a POST */
    const char *proxy;       /* URL of a proxy; NULL: none */
    const char *ca_file;     /* certificate authorities (PEM); NULL: the system's */
    bool public_only;        /* refuse to connect to an address that is not public, whatever names
                                resolve to: SFT_REMOTE_PRIVATE */
    uint64_t connect_ms;     /* for a connection to be made */
    uint64_t stall_ms;       /* without a byte that arrives */
    uint64_t total_ms;       /* for all of it; 0: no limit */
    bool (*go_on)(void *ctx); /* asked whenever something arrives, and now and then while nothing
                                 does: false ends it with SFT_CANCELLED. May be NULL */
    void *go_on_ctx;
} sft_http_request;

/* Who takes the answer, on the calling thread. @since 0.2 */
typedef struct sft_http_receiver {
    void *ctx;
    /* The final status (not 1xx) and all header lines, before the first byte of the body. False:
     * the body is not wanted. */
    bool (*head)(void *ctx, int status, const sft_pair *headers, size_t count);
    /* Bytes of the body, as they were sent (no encoding undone). False: no more of it is wanted. */
    bool (*body)(void *ctx, const void *bytes, size_t len);
} sft_http_receiver;

/* The functions of a transport; see sft_source_vtable for tables. @since 0.2 */
typedef struct sft_transport_vtable {
    size_t size; /* sizeof(sft_transport_vtable) */
    /* Send a request and hand over its answer. Follows no redirect, keeps no cookies, adds no
     * credentials of its own, and keeps connections for the next request. SFT_OK when the answer
     * ended as its headers promised, whatever the status, or when the receiver wanted no more of
     * it. SFT_REMOTE_NETWORK: worth another try (no connection, lost, stalled, cut short);
     * SFT_REMOTE_TLS; SFT_REMOTE_PRIVATE; SFT_CANCELLED; SFT_REMOTE_TRANSPORT. Called by several
     * threads at once. Required. */
    sft_code (*send)(void *ctx, const sft_http_request *request,
                     const sft_http_receiver *receiver, sft_error *err);
    void (*close)(void *ctx);
} sft_transport_vtable;

/* A transport, passed by value. Never grows; its table does. @since 0.2 */
typedef struct sft_transport {
    void *ctx;
    const sft_transport_vtable *vtable;
} sft_transport;

/* libcurl, which is loaded here and never linked. SFT_REMOTE_TRANSPORT if there is none. Close it
 * through its table. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_transport_curl(const sft_allocator *alloc, sft_transport *out,
                                                  sft_error *err);
/* "7.88.1", or NULL if there is no libcurl; written to buffer. @since 0.2 */
SFT_API const char *sft_transport_curl_version(char buffer[32]);

/* ── Remotes ─────────────────────────────────────────────────────────────── */

/* An exchange that ended, for logs. Allocated by the library only, valid during the call; nothing
 * in it is secret. @since 0.2 */
typedef struct sft_exchange {
    const char *method;
    const char *url;      /* without user and query: "https://host/path?[...]" */
    uint64_t begin, end;  /* the range asked for; end 0: no range */
    int status;           /* 0 if there was no answer */
    sft_code code;        /* of the transport */
    uint64_t bytes;       /* of the body that arrived */
    uint64_t ms;
    unsigned attempt;     /* from 1 */
} sft_exchange;

/* @since 0.2 */
typedef struct sft_remote_options {
    size_t size;
    const sft_allocator *alloc;     /* NULL = libc; must be thread-safe */
    const sft_transport *transport; /* NULL: libcurl, when first needed. Not closed by the remote */
    uint32_t connections;  /* used at once; 0 = 8; at most 64 */
    bool offline;          /* nothing is sent: only caches are read (SFT_REMOTE_OFFLINE) */
    bool public_only;      /* for services that open strangers' URLs: no loopback, private or
                              link-local address, checked again after each redirect and for what
                              a name resolves to; no proxy (SFT_BAD_ARGUMENT with one) */
    bool anonymous;        /* no tokens, no signatures */
    bool whole;            /* read files whole from servers that give no ranges */
    const char *cache;     /* folder of headers by URL and ETag, made if missing; NULL: none */
    const char *proxy;     /* URL; NULL: what the environment says; "": none */
    uint64_t connect_ms;   /* 0 = 10,000 */
    uint64_t stall_ms;     /* 0 = 30,000 */
    uint32_t retries;      /* of one exchange; 0 = 4; UINT32_MAX: none */
    /* The environment, whose variables docs/remote.md lists; NULL: there is none. What it returns
     * must stay until its next call on the same thread. Called in sft_remote_open only. */
    const char *(*environment)(void *ctx, const char *name);
    void *environment_ctx;
    /* Called after each exchange, by whichever thread made it, one at a time. It must not read
     * through the remote; sft_remote_sums_of is allowed. May be NULL. */
    void (*on_exchange)(void *ctx, const sft_exchange *exchange);
    void *exchange_ctx;
    /* NULL, or who is asked while anything of the remote waits for a server, also by the remote's
     * threads; when it says no, what waited fails with SFT_CANCELLED. Must outlive the remote. */
    const sft_wait *wait;
} sft_remote_options;

#define SFT_REMOTE_OPTIONS_INIT                                                            \
    { sizeof(sft_remote_options), NULL, NULL, 0, false, false, false, false, NULL, NULL,   \
      0, 0, 0, NULL, NULL, NULL, NULL, NULL }

typedef struct sft_remote sft_remote;

/* Connections, credentials and what servers told so far, the commits of branches among it: what one
 * stands for is asked once. Sends nothing. Tokens are read here.
 * Close it with sft_remote_close after everything that was opened through it. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_remote_open(const sft_remote_options *options, sft_remote **out,
                                               sft_error *err);
SFT_API void sft_remote_close(sft_remote *remote);

/* Whether text begins with a scheme that is read here: http, https, hf, s3 or gs, and "://". Other
 * "word://" are no paths either, see sft_remote_name. @since 0.2 */
SFT_API bool sft_remote_is_url(const char *text);

/* The name by which this remote opens a URL, and which may be shown: without user and query, for
 * which a number stands before the host ("https://[1]@host/path"), web pages of files of the Hub as
 * hf://. The remote keeps the rest, and the name, until it is closed. A URL without secrets is its
 * own name; a text that only looks like another's name is refused. Files whose names an index or a
 * folder gives are asked for with the user and the query of that URL, and of no other.
 * SFT_REMOTE_URL says what is wrong with it, also for "word://" of other schemes. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_remote_name(sft_remote *remote, const char *url,
                                               const char **name, sft_error *err);

/* The functions for sft_open_options.files: paths are names of sft_remote_name, or what they and
 * names of files in them are joined to. Valid until sft_remote_close. @since 0.2 */
SFT_API const sft_files *sft_remote_files(sft_remote *remote);

/* Whether a name is that of a folder, as far as it tells without a request: a repository of the
 * Hub or a folder in it, a prefix of objects that ends in a slash. @since 0.2 */
SFT_API bool sft_remote_is_folder(const char *name);

/* What servers claim about a file that was opened: nothing of it was computed. Texts are empty if
 * they are not told. Never grows. @since 0.2 */
typedef struct sft_remote_claim {
    uint64_t bytes;     /* SFT_SIZE_UNKNOWN */
    char sha256[65];    /* of the whole file, lower-case hexadecimal */
    char commit[65];    /* of the repository */
    char etag[129];
    bool local;         /* it was found in the Hub's cache on this machine, and read there */
} sft_remote_claim;
/* False if the name was not opened yet. Sends nothing. @since 0.2 */
SFT_API bool sft_remote_claims(sft_remote *remote, const char *name, sft_remote_claim *out);

/* Sums so far. Never grows. @since 0.2 */
typedef struct sft_remote_sums {
    uint64_t requests; /* sent, redirects and retries included */
    uint64_t bytes;    /* of bodies that arrived */
    uint64_t retries;
} sft_remote_sums;
SFT_API sft_remote_sums sft_remote_sums_of(sft_remote *remote);

/* One whole answer from a server, for interfaces other than files. @since 0.2 */
typedef struct sft_remote_request {
    size_t size;
    const char *url;    /* http or https */
    const char *accept; /* media type; NULL: any */
    sft_span body;      /* JSON to POST; data NULL: GET */
    uint64_t most;      /* bytes of the answer; 0 = 64 MiB (SFT_FILE_TOO_LARGE) */
    uint64_t total_ms;  /* 0 = no limit */
    bool same_host;     /* follow redirects to the same scheme, host and port only */
} sft_remote_request;
#define SFT_REMOTE_REQUEST_INIT { sizeof(sft_remote_request), NULL, NULL, { NULL, 0 }, 0, 0, false }
/* Send it, with retries and redirects as for files, without any token. SFT_OK with *status 2xx or
 * 404 and the body in answer, whose alloc the caller has set; any other status is an error.
 * @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_remote_fetch(sft_remote *remote,
                                                const sft_remote_request *request, int *status,
                                                sft_buffer *answer, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
