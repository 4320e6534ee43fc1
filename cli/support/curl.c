/* libcurl, by its binary interface: the numbers below have not changed since 7.32, which has
 * the last of them. */
#include "base/error.h"
#include "base/mem.h"
#include "os/os.h"
#include "support/hints.h"
#include "support/http.h"

#include <dlfcn.h>
#include <string.h>

#define CURL_AGENT "safetensors/" SFT_VERSION_STRING

/* What we use of <curl/curl.h>, for a build without it; with it the numbers are compared. */
#define CURL_NUMBERS(X)                                                                           \
    X(CURLOPT_NOPROGRESS, 43)                                                                     \
    X(CURLOPT_POSTFIELDSIZE, 60)                                                                  \
    X(CURLOPT_NOSIGNAL, 99)                                                                       \
    X(CURLOPT_TIMEOUT_MS, 155)                                                                    \
    X(CURLOPT_CONNECTTIMEOUT_MS, 156)                                                             \
    X(CURLOPT_PROTOCOLS, 181)                                                                     \
    X(CURLOPT_WRITEDATA, 10001)                                                                   \
    X(CURLOPT_URL, 10002)                                                                         \
    X(CURLOPT_PROXY, 10004)                                                                       \
    X(CURLOPT_ERRORBUFFER, 10010)                                                                 \
    X(CURLOPT_POSTFIELDS, 10015)                                                                  \
    X(CURLOPT_USERAGENT, 10018)                                                                   \
    X(CURLOPT_HTTPHEADER, 10023)                                                                  \
    X(CURLOPT_HEADERDATA, 10029)                                                                  \
    X(CURLOPT_ACCEPT_ENCODING, 10102)                                                             \
    X(CURLOPT_WRITEFUNCTION, 20011)                                                               \
    X(CURLOPT_HEADERFUNCTION, 20079)                                                              \
    X(CURLOPT_XFERINFOFUNCTION, 20219)                                                            \
    X(CURLINFO_RESPONSE_CODE, 0x200002)                                                           \
    X(CURLINFO_REDIRECT_URL, 0x10001f)                                                            \
    X(CURLPROTO_HTTP, 1)                                                                          \
    X(CURLPROTO_HTTPS, 2)                                                                         \
    X(CURL_GLOBAL_ALL, 3)                                                                         \
    X(CURL_ERROR_SIZE, 256)                                                                       \
    X(CURLE_OK, 0)

#ifdef SFT_CURL_HEADER
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#define CURL_COMPARE(name, number) _Static_assert((int)(name) == (number), #name);
CURL_NUMBERS(CURL_COMPARE)
#else
#define CURL_DEFINE(name, number) name = number,
enum { CURL_NUMBERS(CURL_DEFINE) };
#endif

typedef struct curl_library {
    int (*global_init)(long flags);
    const char *(*version)(void);
    void *(*easy_init)(void);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_perform)(void *easy);
    int (*easy_getinfo)(void *easy, int what, ...);
    void (*easy_reset)(void *easy);
    void (*easy_cleanup)(void *easy);
    const char *(*easy_strerror)(int code);
    void *(*slist_append)(void *list, const char *text);
    void (*slist_free_all)(void *list);
} curl_library;

static const struct curl_symbol { const char *name; size_t at; } curl_symbols[] = {
    { "curl_global_init", offsetof(curl_library, global_init) },
    { "curl_version", offsetof(curl_library, version) },
    { "curl_easy_init", offsetof(curl_library, easy_init) },
    { "curl_easy_setopt", offsetof(curl_library, easy_setopt) },
    { "curl_easy_perform", offsetof(curl_library, easy_perform) },
    { "curl_easy_getinfo", offsetof(curl_library, easy_getinfo) },
    { "curl_easy_reset", offsetof(curl_library, easy_reset) },
    { "curl_easy_cleanup", offsetof(curl_library, easy_cleanup) },
    { "curl_easy_strerror", offsetof(curl_library, easy_strerror) },
    { "curl_slist_append", offsetof(curl_library, slist_append) },
    { "curl_slist_free_all", offsetof(curl_library, slist_free_all) },
};

typedef struct curl_session {
    curl_library lib;
    void *easy;
    sft_allocator alloc;
} curl_session;

/* ── Loading ── */

/* It stays loaded: what it has loaded itself does not like to be unloaded. */
static bool load_curl(curl_library *lib) {
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so",
                                         "libcurl.4.dylib" };
    void *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; found && i < sizeof curl_symbols / sizeof *curl_symbols; i++) {
        void *symbol = dlsym(found, curl_symbols[i].name);
        if (!symbol) return false;
        memcpy((char *)lib + curl_symbols[i].at, &symbol, sizeof symbol);
    }
    return found != NULL;
}

const char *cli_http_version(char buffer[32]) {
    curl_library lib;
    size_t len = 0;
    if (!load_curl(&lib)) return NULL;
    const char *text = lib.version(); /* "libcurl/7.88.1 OpenSSL/3.0.9 ..." */
    const char *slash = strchr(text, '/');
    if (slash) text = slash + 1;
    while (len < 31 && text[len] && text[len] != ' ') len++;
    memcpy(buffer, text, len);
    buffer[len] = 0;
    return buffer;
}

/* ── One exchange ── */

#define HEADERS_MOST (256 << 10) /* bytes: some versions of libcurl keep all of them */

typedef struct curl_exchange {
    const cli_http_request *request;
    cli_http_reply *reply;
    size_t headers; /* bytes so far, of 1xx answers too */
    bool too_much, no_memory;
} curl_exchange;

static size_t take_body(char *bytes, size_t size, size_t count, void *ctx) {
    curl_exchange *x = ctx;
    size_t len = size * count;
    if (len > x->request->most - x->reply->body.len) x->too_much = true;
    else if (!sfti_buffer_put(&x->reply->body, bytes, len)) x->no_memory = true;
    else return len;
    return len ? 0 : 1;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *ctx) {
    static const char name[] = "retry-after:";
    curl_exchange *x = ctx;
    size_t len = size * count, at = sizeof name - 1;
    long seconds = 0;
    if (len > HEADERS_MOST - x->headers) {
        x->headers = HEADERS_MOST + 1;
        return 0;
    }
    x->headers += len;
    for (size_t i = 0; i < at; i++)
        if (i >= len || (bytes[i] | 0x20) != (name[i] | 0x20)) return len;
    while (at < len && (bytes[at] == ' ' || bytes[at] == '\t')) at++;
    if (at == len || bytes[at] < '0' || bytes[at] > '9') return len; /* a date */
    while (at < len && bytes[at] >= '0' && bytes[at] <= '9' && seconds < 100000000)
        seconds = seconds * 10 + (bytes[at++] - '0');
    x->reply->retry_after = seconds;
    return len;
}

static int curl_goes_on(void *ctx, int64_t a, int64_t b, int64_t c, int64_t d) {
    (void)ctx, (void)a, (void)b, (void)c, (void)d;
    return os_stop_signal() != 0;
}

static long as_milliseconds(uint64_t ms) {
    return ms > INT32_MAX ? INT32_MAX : (long)ms;
}

static void set_request(const curl_session *s, curl_exchange *x, void *headers, char *text) {
    const cli_http_request *request = x->request;
    const curl_library *lib = &s->lib;
    void *easy = s->easy;
    lib->easy_setopt(easy, CURLOPT_URL, request->url);
    lib->easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    lib->easy_setopt(easy, CURLOPT_PROXY, request->proxy ? request->proxy : "");
    lib->easy_setopt(easy, CURLOPT_USERAGENT, CURL_AGENT);
    lib->easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    lib->easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    lib->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    lib->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, as_milliseconds(request->connect_ms));
    lib->easy_setopt(easy, CURLOPT_TIMEOUT_MS, as_milliseconds(request->total_ms));
    lib->easy_setopt(easy, CURLOPT_ERRORBUFFER, text);
    lib->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    lib->easy_setopt(easy, CURLOPT_WRITEDATA, (void *)x);
    lib->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    lib->easy_setopt(easy, CURLOPT_HEADERDATA, (void *)x);
    lib->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, curl_goes_on);
    lib->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    if (!request->body.data) return;
    lib->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)request->body.len);
    lib->easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.data);
}

static void *make_headers(const curl_library *lib, const cli_http_request *request) {
    char accept[96] = "Accept: ";
    size_t len = strlen(request->accept);
    if (len > sizeof accept - 9) return NULL;
    memcpy(accept + 8, request->accept, len + 1);
    void *list = lib->slist_append(NULL, accept);
    if (!list || !request->body.data) return list;
    void *more = lib->slist_append(list, "Content-Type: application/json");
    if (!more) lib->slist_free_all(list);
    return more;
}

static sft_code exchange_failed(const curl_session *s, const curl_exchange *x, int found,
                                const char *text, sft_error *err) {
    if (os_stop_signal()) return sfti_fail_cancelled(err);
    if (x->no_memory) return sfti_fail_memory(err, x->reply->body.len);
    if (x->headers > HEADERS_MOST)
        return sfti_fail(err, SFT_FILE_TOO_LARGE, SFT_NO_OFFSET,
                         "expected HTTP headers of at most %d bytes, found more", HEADERS_MOST);
    if (x->too_much)
        return sfti_fail(err, SFT_FILE_TOO_LARGE, SFT_NO_OFFSET,
                         "expected an answer of at most %llu bytes, found more",
                         (unsigned long long)x->request->most);
    return sfti_fail(err, SFT_IO_READ, SFT_NO_OFFSET, "%s",
                     *text ? text : s->lib.easy_strerror(found));
}

static void take_location(const curl_session *s, cli_http_reply *reply) {
    const char *location = NULL;
    if (s->lib.easy_getinfo(s->easy, CURLINFO_REDIRECT_URL, &location) || !location) return;
    if (strlen(location) < sizeof reply->location)
        memcpy(reply->location, location, strlen(location) + 1);
}

static sft_code send_by_curl(void *ctx, const cli_http_request *request, cli_http_reply *reply,
                             sft_error *err) {
    curl_session *s = ctx;
    char text[CURL_ERROR_SIZE] = "";
    curl_exchange x = { .request = request, .reply = reply };
    reply->status = 0;
    reply->retry_after = -1;
    reply->location[0] = 0;
    reply->body.len = 0;
    void *headers = make_headers(&s->lib, request);
    if (!headers) return sfti_fail_memory(err, sizeof text);
    s->lib.easy_reset(s->easy);
    set_request(s, &x, headers, text);
    int found = s->lib.easy_perform(s->easy);
    s->lib.slist_free_all(headers);
    sft_code code = found == CURLE_OK ? SFT_OK : exchange_failed(s, &x, found, text, err);
    if (code) return code;
    s->lib.easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &reply->status);
    take_location(s, reply);
    return SFT_OK;
}

static void close_curl(void *ctx) {
    curl_session *s = ctx;
    sft_allocator alloc = s->alloc;
    s->lib.easy_cleanup(s->easy);
    sfti_release(&alloc, s, sizeof *s);
}

sft_code cli_http_open(const sft_allocator *alloc, cli_http *out, sft_error *err) {
    curl_session *s = sfti_take(alloc, sizeof *s);
    if (!s) return sfti_fail_memory(err, sizeof *s);
    memset(s, 0, sizeof *s);
    s->alloc = *alloc;
    bool loaded = load_curl(&s->lib);
    if (loaded && s->lib.global_init(CURL_GLOBAL_ALL) == CURLE_OK) s->easy = s->lib.easy_init();
    if (s->easy) {
        *out = (cli_http){ s, send_by_curl, close_curl };
        return SFT_OK;
    }
    sfti_release(alloc, s, sizeof *s);
    sfti_fail(err, SFT_NOT_FOUND, SFT_NO_OFFSET, "expected libcurl for --online, found %s",
              loaded ? "one that does not work" : "none on this machine");
    cli_hint(err, CLI_HINT_INSTALL_CURL);
    return SFT_NOT_FOUND;
}
