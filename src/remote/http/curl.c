/* The transport over libcurl: easy handles that keep their connections, one for each request at
 * a time. Tests: test_remote_curl.c. */
#include "remote/http/curl.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/os.h"
#include "remote/http/text.h"
#include "remote/http/url.h"

#include <string.h>

#define HEADERS_MOST ((size_t)256 << 10) /* bytes: some versions of libcurl keep all of them */
#define BUFFER_BYTES (128L << 10) /* more leaves the cache between the copies */
#define STALL_BYTES_A_SECOND 64 /* slower than that is stalled */
#define ORIGINS 4
#define CURL_TOO_LARGE 100 /* CURLE_TOO_LARGE, of 8.6 and later */
#define CURL_NATIVE_CA 16L /* CURLSSLOPT_NATIVE_CA, of 7.71 and later */

/* ── Sessions ── */

typedef struct curl_session {
    struct curl_session *next;
    void *easy;
    uint64_t origins[ORIGINS]; /* hashes of the last ones, to which connections may be open */
    bool public_only;          /* its connections were checked, or were not */
} curl_session;

typedef struct curl_pool {
    const sfti_curl *lib;
    sft_allocator alloc;
    os_mutex mutex;       /* of idle and process */
    curl_session *idle;
    uint64_t process;
} curl_pool;

/* ── One exchange ── */

typedef struct curl_exchange {
    const sfti_curl *lib;
    void *easy;
    const sft_http_request *request;
    const sft_http_receiver *receiver;
    sft_buffer lines;      /* of the head that is arriving, ends of lines as '\n' */
    size_t line_count;
    size_t header_bytes;   /* of all heads, those of 1xx too */
    int status;            /* of that head */
    uint64_t received;     /* bytes of the body */
    uint64_t arrived;      /* of heads and body since the window began */
    uint64_t window_ns;    /* when it began */
    bool skip_tunnel;      /* the first head is the proxy's */
    bool has_head, connected, stalled, cancelled;
    bool unwanted, too_large, no_memory, private;
} curl_exchange;

static size_t take_header(char *bytes, size_t size, size_t items, void *ctx) {
    curl_exchange *x = ctx;
    sft_span line = { bytes, size * items };
    const size_t all = line.len;
    x->arrived += all;
    if (all > HEADERS_MOST - x->header_bytes) {
        x->too_large = true;
        return 0;
    }
    x->header_bytes += all;
    if (x->has_head) return all; /* a trailer */
    while (line.len > 0 && (line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r'))
        line.len--;
    if (sfti_text_begins(line, "HTTP/")) { /* "HTTP/1.1 206 Partial Content" */
        uint64_t status;
        line = sfti_text_trim(sfti_span_from(line, sfti_text_find(line, ' ')));
        line.len = sfti_text_find(line, ' ');
        x->status = line.len == 3 && sfti_text_uint(line, &status) ? (int)status : 0;
        x->lines.len = x->line_count = 0;
        return all;
    }
    if (line.len > 0) {
        x->line_count++;
        x->no_memory = !sfti_buffer_put(&x->lines, line.data, line.len)
                    || !sfti_buffer_put(&x->lines, "\n", 1);
        return x->no_memory ? 0 : all;
    }
    /* The end of a head. */
    if (x->status < 200 && x->status != 101) return all; /* more is to come */
    if (x->skip_tunnel) {
        x->skip_tunnel = false;
        return all;
    }
    x->has_head = true;
    /* The receiver gets the name and value of each line; one that continues another is left out. */
    sft_buffer pairs = { .alloc = x->lines.alloc };
    size_t count = 0;
    x->no_memory = !sfti_buffer_reserve(&pairs, x->line_count * sizeof(sft_pair));
    sft_pair *at = (sft_pair *)(void *)pairs.data;
    sft_span rest = { x->lines.data, x->no_memory ? 0 : x->lines.len };
    while (rest.len > 0 && count < x->line_count) {
        line = (sft_span){ rest.data, sfti_text_find(rest, '\n') };
        size_t colon = sfti_text_find(line, ':');
        rest = sfti_span_from(rest, line.len + (line.len < rest.len));
        if (colon == line.len || colon == 0 || *line.data == ' ' || *line.data == '\t') continue;
        at[count++] = (sft_pair){ { line.data, colon },
                                  sfti_text_trim(sfti_span_from(line, colon + 1)) };
    }
    x->unwanted = !x->no_memory && !x->receiver->head(x->receiver->ctx, x->status, at, count);
    sft_buffer_free(&pairs);
    return x->no_memory || x->unwanted ? 0 : all;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *ctx) {
    curl_exchange *x = ctx;
    const size_t len = size * count;
    if (len == 0) return 0;
    if (!x->has_head) return len + 1; /* HTTP/0.9: a write error, and none of ours */
    x->arrived += len;
    x->received += len;
    x->unwanted = !x->receiver->body(x->receiver->ctx, bytes, len);
    return x->unwanted ? len + 1 : len;
}

static long as_milliseconds(uint64_t ms) {
    return ms > INT32_MAX ? INT32_MAX : (long)ms;
}

/* Called about once a second, and whenever something arrives. */
static int take_progress(void *ctx, int64_t a, int64_t b, int64_t c, int64_t sent) {
    curl_exchange *x = ctx;
    const uint64_t stall_ms = (uint64_t)as_milliseconds(x->request->stall_ms);
    (void)a, (void)b, (void)c, (void)sent;
    x->cancelled = sfti_os_wait_over()
                || (x->request->go_on && !x->request->go_on(x->request->go_on_ctx));
    if (x->cancelled) return 1;
    /* libcurl's own limit is for the time before there is a connection. */
    double seconds = 0;
    uint64_t now = sfti_os_now_ns();
    if (!x->connected)
        (void)x->lib->easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME, &seconds);
    x->connected = x->connected || seconds > 0;
    if (!x->connected || x->window_ns == 0) {
        x->window_ns = now;
        x->arrived = 0;
    } else if (now - x->window_ns >= stall_ms * 1000000) {
        x->stalled = stall_ms > 0 && x->arrived < stall_ms * STALL_BYTES_A_SECOND / 1000 + 1;
        x->window_ns = now;
        x->arrived = 0;
    }
    return x->stalled;
}

/* As libcurl declares it; sockaddr has len bytes. */
typedef struct curl_address {
    int family, type, protocol;
    unsigned len;
    char sockaddr[];
} curl_address;

static int open_public_socket(void *ctx, int purpose, const curl_address *to) {
    curl_exchange *x = ctx;
    uint8_t address[16];
    int fd;
    (void)purpose;
    size_t len = sfti_os_socket_address(to->sockaddr, to->len, address);
    if (!sfti_address_is_public(address, len)) {
        x->private = true;
        return -1;
    }
    return sfti_os_socket_open(to->family, to->type, to->protocol, &fd) ? -1 : fd;
}

/* Nothing is taken from the environment or from files but the system's authorities: an empty proxy
 * and an empty no_proxy are none, and .netrc and cookies are off unless asked for. */
static void set_options(curl_exchange *x, void *headers, char *text) {
    const sfti_curl *lib = x->lib;
    const sft_http_request *request = x->request;
    void *easy = x->easy;
    const char *proxy = request->proxy ? request->proxy : "";
    lib->easy_setopt(easy, CURLOPT_ERRORBUFFER, text);
    lib->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    lib->easy_setopt(easy, CURLOPT_WRITEDATA, (void *)x);
    lib->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    lib->easy_setopt(easy, CURLOPT_HEADERDATA, (void *)x);
    lib->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, take_progress);
    lib->easy_setopt(easy, CURLOPT_XFERINFODATA, (void *)x);
    lib->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    if (request->public_only) {
        lib->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_public_socket);
        lib->easy_setopt(easy, CURLOPT_OPENSOCKETDATA, (void *)x);
    }
    lib->easy_setopt(easy, CURLOPT_URL, request->url);
    lib->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    lib->easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    lib->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    lib->easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    lib->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    lib->easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    lib->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, as_milliseconds(request->connect_ms));
    lib->easy_setopt(easy, CURLOPT_TIMEOUT_MS, as_milliseconds(request->total_ms));
    lib->easy_setopt(easy, CURLOPT_PROXY, proxy);
    lib->easy_setopt(easy, CURLOPT_NOPROXY, "");
    if (lib->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L))
        x->skip_tunnel = *proxy && sfti_text_begins(sft_span_cstr(request->url), "https:");
    if (request->ca_file) {
        lib->easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
        lib->easy_setopt(easy, CURLOPT_CAPATH, (const char *)NULL);
    } else if (SFTI_OS_PATHS == SFTI_PATHS_WINDOWS) { /* OpenSSL has no file there */
        lib->easy_setopt(easy, CURLOPT_SSL_OPTIONS, CURL_NATIVE_CA);
    }
    if (strcmp(request->method, "POST") == 0) {
        lib->easy_setopt(easy, CURLOPT_POST, 1L);
        lib->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)request->body.len);
        lib->easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.len ? request->body.data : "");
    }
}

/* ── Headers that are sent ── */

/* libcurl adds some of its own unless they are given without a value. */
static void *make_headers(const sfti_curl *lib, const sft_http_request *request,
                          const sft_allocator *alloc) {
    static const sft_pair expect = { { "expect", 6 }, { "", 0 } };
    static const sft_pair any = { { "accept", 6 }, { "", 0 } };
    sft_buffer line = { .alloc = *alloc };
    void *list = NULL;
    bool accept = false, ok = true;
    for (size_t i = 0; ok && i < request->header_count + 2 - accept; i++) {
        bool given = i > 0 && i <= request->header_count;
        sft_pair header = given ? request->headers[i - 1] : i > 0 ? any : expect;
        const char *between = header.value.len > 0 ? ": " : given ? ";" : ":";
        accept = accept || (given && sfti_text_is(header.key, "accept"));
        line.len = 0;
        ok = sfti_buffer_put(&line, header.key.data, header.key.len)
          && sfti_buffer_put(&line, between, strlen(between))
          && sfti_buffer_put(&line, header.value.data, header.value.len)
          && sfti_buffer_put(&line, "", 1);
        void *more = ok ? lib->slist_append(list, line.data) : NULL;
        ok = more != NULL;
        if (ok) list = more;
    }
    sft_buffer_free(&line);
    if (!ok && list) lib->slist_free_all(list);
    return ok ? list : NULL;
}

/* ── Sending ── */

static sft_code transfer_failed(curl_exchange *x, int code, const char *text, sft_error *err) {
    if (x->cancelled || sfti_os_wait_over()) return sfti_fail_cancelled(err);
    if (x->no_memory) return sfti_fail_memory(err, x->lines.len);
    /* libcurl has a limit for one line, too, and calls it memory at first (then "too large"). */
    if (x->too_large || (x->status && !x->has_head
                         && (code == CURLE_OUT_OF_MEMORY || code == CURL_TOO_LARGE)))
        return sfti_fail(err, SFT_REMOTE_STATUS,
                         "expected HTTP headers of at most %zu bytes, found more", HEADERS_MOST);
    if (x->private && code == CURLE_COULDNT_CONNECT) {
        sfti_url url = { .host = { "", 0 } };
        (void)sfti_url_parse(x->request->url, &url);
        return sfti_fail(err, SFT_REMOTE_PRIVATE, "%.*s has an address that is not public",
                         SFTI_CLIP(url.host, 255));
    }
    double seconds = 0;
    (void)x->lib->easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME, &seconds);
    sfti_curl_failure failure = { .request = x->request, .code = code, .text = text,
                                  .strerror = x->lib->easy_strerror(code),
                                  .received = x->received,
                                  .connected = x->connected || seconds > 0,
                                  .stalled = x->stalled };
    (void)x->lib->easy_getinfo(x->easy, CURLINFO_SSL_VERIFYRESULT, &failure.verified);
    (void)x->lib->easy_getinfo(x->easy, CURLINFO_HTTP_CONNECTCODE, &failure.connect_status);
    (void)x->lib->easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &failure.os_error);
    return sfti_curl_fail(&failure, err);
}

static sft_code send_by_curl(void *ctx, const sft_http_request *request,
                             const sft_http_receiver *receiver, sft_error *err) {
    curl_pool *pool = ctx;
    char text[CURL_ERROR_SIZE] = "";
    curl_session **found = NULL;
    sfti_url url;
    uint64_t origin = 0;
    bool known = false; /* that origin, to the one that was found */
    if (sfti_url_parse(request->url, &url)) {
        origin = UINT64_C(14695981039346656037);
        for (size_t i = 0; i < url.host.len; i++)
            origin = (origin ^ (unsigned char)sfti_lower(url.host.data[i])) *
                     UINT64_C(1099511628211);
        origin = (origin ^ url.port ^ (uint64_t)url.https << 32) | 1;
    }
    /* An idle session, if possible one that has been at the request's origin; else a new one. */
    sfti_os_mutex_lock(&pool->mutex);
    /* A child of fork() must not touch the connections of its parent, not even to close them. */
    if (pool->process != sfti_os_process()) pool->idle = NULL;
    pool->process = sfti_os_process();
    for (curl_session **at = &pool->idle; *at && !known; at = &(*at)->next) {
        if ((*at)->public_only != request->public_only) continue;
        for (size_t i = 0; i < ORIGINS && !known; i++) known = (*at)->origins[i] == origin;
        if (known || !found) found = at;
    }
    curl_session *session = found ? *found : NULL;
    if (found) *found = session->next;
    sfti_os_mutex_unlock(&pool->mutex);
    if (!session) {
        session = sfti_take(&pool->alloc, sizeof *session);
        if (session)
            *session = (curl_session){ .public_only = request->public_only,
                                       .easy = pool->lib->easy_init() };
        if (!session || !session->easy) {
            sfti_release(&pool->alloc, session, sizeof *session);
            return sfti_fail_memory(err, sizeof *session);
        }
    }
    if (!known) {
        memmove(session->origins + 1, session->origins, (ORIGINS - 1) * sizeof *session->origins);
        session->origins[0] = origin;
    }

    curl_exchange x = { .lib = pool->lib, .easy = session->easy, .request = request,
                        .receiver = receiver, .lines = { .alloc = pool->alloc } };
    void *headers = make_headers(pool->lib, request, &pool->alloc);
    sft_code code = SFT_OUT_OF_MEMORY;
    if (headers) {
        set_options(&x, headers, text);
        int ended = pool->lib->easy_perform(session->easy);
        code = ended == CURLE_OK || x.unwanted ? SFT_OK : transfer_failed(&x, ended, text, err);
        pool->lib->slist_free_all(headers);
    } else {
        sfti_fail_memory(err, sizeof text);
    }
    sft_buffer_free(&x.lines);
    pool->lib->easy_reset(session->easy); /* the connections stay */
    sfti_os_mutex_lock(&pool->mutex);
    session->next = pool->idle;
    pool->idle = session;
    sfti_os_mutex_unlock(&pool->mutex);
    return code;
}

/* ── The transport ── */

static void close_curl(void *ctx) {
    curl_pool *pool = ctx;
    sft_allocator alloc = pool->alloc;
    bool ours = pool->process == sfti_os_process();
    for (curl_session *session = pool->idle, *next; session; session = next) {
        next = session->next;
        if (ours) pool->lib->easy_cleanup(session->easy);
        sfti_release(&alloc, session, sizeof *session);
    }
    sfti_os_mutex_free(&pool->mutex);
    sfti_release(&alloc, pool, sizeof *pool);
}

sft_code sft_transport_curl(const sft_allocator *given, sft_transport *out, sft_error *err) {
    static const sft_transport_vtable table = { sizeof table, send_by_curl, close_curl };
    sft_allocator alloc = sfti_allocator(given);
    const sfti_curl *lib = sfti_curl_load();
    *out = (sft_transport){ NULL, NULL };
    if (!lib)
        return sfti_fail(err, SFT_REMOTE_TRANSPORT,
                         "expected libcurl for requests, found none that works on this machine");
    curl_pool *pool = sfti_take(&alloc, sizeof *pool);
    if (!pool) return sfti_fail_memory(err, sizeof *pool);
    *pool = (curl_pool){ .lib = lib, .alloc = alloc, .process = sfti_os_process() };
    if (sfti_os_mutex_init(&pool->mutex)) {
        sfti_release(&alloc, pool, sizeof *pool);
        return sfti_fail_memory(err, sizeof pool->mutex);
    }
    *out = (sft_transport){ pool, &table };
    return SFT_OK;
}
