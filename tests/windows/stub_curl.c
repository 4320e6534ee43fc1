/* A libcurl that sends nothing: it answers with bytes of the file "answer" of the current folder,
 * a range of them if asked for, and appends what it is asked to "asked". */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __declspec(dllexport)

EXPORT int curl_global_init(long flags);
EXPORT const char *curl_version(void);
EXPORT void *curl_easy_init(void);
EXPORT int curl_easy_setopt(void *easy, int option, ...);
EXPORT int curl_easy_perform(void *easy);
EXPORT int curl_easy_getinfo(void *easy, int what, ...);
EXPORT void curl_easy_reset(void *easy);
EXPORT void curl_easy_cleanup(void *easy);
EXPORT const char *curl_easy_strerror(int code);
EXPORT void *curl_slist_append(void *list, const char *text);
EXPORT void curl_slist_free_all(void *list);

/* As <curl/curl.h> has them. */
enum {
    OPT_SSL_OPTIONS = 216, OPT_WRITEDATA = 10001, OPT_URL = 10002, OPT_HTTPHEADER = 10023,
    OPT_HEADERDATA = 10029, OPT_CAINFO = 10065, OPT_WRITEFUNCTION = 20011,
    OPT_HEADERFUNCTION = 20079, INFO_DOUBLE = 0x300000, INFO_KINDS = 0xf00000,
    FAILED_INIT = 2, WRITE_ERROR = 23
};

typedef size_t (*take_fn)(char *bytes, size_t size, size_t count, void *ctx);

typedef struct text_list {
    struct text_list *next;
    char text[];
} text_list;

typedef struct handle {
    const char *url, *ca_file;
    long ssl_options;
    const text_list *headers;
    take_fn head, body;
    void *head_ctx, *body_ctx;
} handle;

int curl_global_init(long flags) {
    (void)flags;
    return 0;
}

const char *curl_version(void) {
    return "libcurl/0.0.1 stub";
}

void *curl_easy_init(void) {
    return calloc(1, sizeof(handle));
}

void curl_easy_reset(void *easy) {
    memset(easy, 0, sizeof(handle));
}

void curl_easy_cleanup(void *easy) {
    free(easy);
}

const char *curl_easy_strerror(int code) {
    return code == WRITE_ERROR ? "refused by the caller" : "no file \"answer\"";
}

void *curl_slist_append(void *list, const char *text) {
    size_t len = strlen(text) + 1;
    text_list *made = malloc(sizeof *made + len), *last = list;
    if (!made) return NULL;
    made->next = NULL;
    memcpy(made->text, text, len);
    while (last && last->next) last = last->next;
    if (last) last->next = made;
    return list ? list : made;
}

void curl_slist_free_all(void *list) {
    for (text_list *at = list, *next; at; at = next) {
        next = at->next;
        free(at);
    }
}

int curl_easy_setopt(void *easy, int option, ...) {
    handle *h = easy;
    va_list args;
    va_start(args, option);
    switch (option) {
    case OPT_SSL_OPTIONS: h->ssl_options = va_arg(args, long); break;
    case OPT_URL: h->url = va_arg(args, const char *); break;
    case OPT_CAINFO: h->ca_file = va_arg(args, const char *); break;
    case OPT_HTTPHEADER: h->headers = va_arg(args, const text_list *); break;
    case OPT_HEADERFUNCTION: h->head = va_arg(args, take_fn); break;
    case OPT_HEADERDATA: h->head_ctx = va_arg(args, void *); break;
    case OPT_WRITEFUNCTION: h->body = va_arg(args, take_fn); break;
    case OPT_WRITEDATA: h->body_ctx = va_arg(args, void *); break;
    default: break;
    }
    va_end(args);
    return 0;
}

int curl_easy_getinfo(void *easy, int what, ...) {
    va_list args;
    (void)easy;
    va_start(args, what);
    if ((what & INFO_KINDS) == INFO_DOUBLE) *va_arg(args, double *) = 0.5;
    else *va_arg(args, long *) = 0;
    va_end(args);
    return 0;
}

/* ── A request ── */

static void note(const handle *h) {
    FILE *asked = fopen("asked", "ab");
    if (!asked) return;
    fprintf(asked, "url %s\nssl_options %ld\nca_file %s\n", h->url, h->ssl_options,
            h->ca_file ? h->ca_file : "none");
    for (const text_list *line = h->headers; line; line = line->next)
        fprintf(asked, "header %s\n", line->text);
    (void)fclose(asked);
}

static bool find_range(const handle *h, long *first, long *last) {
    static const char name[] = "range: bytes=";
    for (const text_list *line = h->headers; line; line = line->next) {
        if (_strnicmp(line->text, name, sizeof name - 1) != 0) continue;
        return sscanf(line->text + sizeof name - 1, "%ld-%ld", first, last) > 0;
    }
    return false;
}

static bool send_line(const handle *h, const char *format, long a, long b, long c) {
    char line[128];
    int len = snprintf(line, sizeof line, format, a, b, c);
    return h->head(line, 1, (size_t)len, h->head_ctx) == (size_t)len;
}

static bool send_all(const handle *h, char *bytes, long size) {
    long first = 0, last = size - 1;
    bool part = find_range(h, &first, &last);
    if (last >= size) last = size - 1;
    size_t len = first <= last ? (size_t)(last - first + 1) : 0;
    if (!send_line(h, "HTTP/1.1 %ld Stub\r\n", part ? 206 : 200, 0, 0)) return false;
    if (part && !send_line(h, "Content-Range: bytes %ld-%ld/%ld\r\n", first, last, size))
        return false;
    return send_line(h, "Content-Length: %ld\r\n", (long)len, 0, 0)
        && send_line(h, "ETag: \"stub\"\r\n", 0, 0, 0) && send_line(h, "\r\n", 0, 0, 0)
        && h->body(bytes + first, 1, len, h->body_ctx) == len;
}

int curl_easy_perform(void *easy) {
    static char bytes[1 << 16];
    FILE *answer = fopen("answer", "rb");
    note(easy);
    if (!answer) return FAILED_INIT;
    long size = (long)fread(bytes, 1, sizeof bytes, answer);
    (void)fclose(answer);
    return send_all(easy, bytes, size) ? 0 : WRITE_ERROR;
}
