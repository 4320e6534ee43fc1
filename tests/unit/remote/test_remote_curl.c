/* The transport over libcurl, against a server of the test's own that sends what each case says,
 * byte for byte. Without libcurl there is nothing to test. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "os/os.h"
#include "safetensors_remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ── The server: one connection after another ── */

typedef struct server {
    int fd, port;
    os_thread thread;
    const char *answer;  /* to each request; "" closes without one */
    size_t repeat;       /* the answer is followed by so many 'x' */
    uint32_t pause_ms;   /* before the answer; then the connection is held */
    bool hold;           /* the connection is not closed, so that it can be used again */
    os_mutex mutex;      /* of all below */
    bool stop;
    unsigned connections, requests;
    char request[8192];  /* the last one */
} server;

static bool is_stopped(server *s) {
    sfti_os_mutex_lock(&s->mutex);
    bool stop = s->stop;
    sfti_os_mutex_unlock(&s->mutex);
    return stop;
}

static bool is_readable(server *s, int fd) {
    struct pollfd wait = { fd, POLLIN, 0 };
    while (!is_stopped(s))
        if (poll(&wait, 1, 20) > 0) return true;
    return false;
}

static void send_all(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0) return;
        bytes += n;
        len -= (size_t)n;
    }
}

static void note_request(server *s, const char *request) {
    sfti_os_mutex_lock(&s->mutex);
    s->requests++;
    snprintf(s->request, sizeof s->request, "%s", request);
    sfti_os_mutex_unlock(&s->mutex);
}

/* A head, and the body whose length it tells. */
static bool take_request(server *s, int fd) {
    char request[sizeof s->request];
    size_t len = 0;
    while (len + 1 < sizeof request && is_readable(s, fd)) {
        ssize_t n = recv(fd, request + len, sizeof request - 1 - len, 0);
        if (n <= 0) return false;
        len += (size_t)n;
        request[len] = '\0';
        const char *end = strstr(request, "\r\n\r\n");
        const char *told = strcasestr(request, "\r\ncontent-length:");
        size_t body = told ? strtoul(told + 17, NULL, 10) : 0;
        if (!end || len < (size_t)(end + 4 - request) + body) continue;
        note_request(s, request);
        return true;
    }
    return false;
}

static void serve_connection(server *s, int fd) {
    static char xs[1 << 16];
    memset(xs, 'x', sizeof xs);
    while (take_request(s, fd)) {
        for (uint32_t waited = 0; waited < s->pause_ms && !is_stopped(s); waited += 10)
            sfti_os_sleep_ms(10);
        send_all(fd, s->answer, strlen(s->answer));
        for (size_t left = s->repeat; left > 0 && !is_stopped(s);) {
            size_t piece = left < sizeof xs ? left : sizeof xs;
            send_all(fd, xs, piece);
            left -= piece;
        }
        if (!s->hold) break;
    }
    close(fd);
}

static void serve(void *ctx) {
    server *s = ctx;
    while (is_readable(s, s->fd)) {
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0) break;
        sfti_os_mutex_lock(&s->mutex);
        s->connections++;
        sfti_os_mutex_unlock(&s->mutex);
        serve_connection(s, fd);
    }
}

static void start_server(server *s) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    assert_int_equal(sfti_os_mutex_init(&s->mutex), 0);
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(sfti_os_thread_start(&s->thread, serve, s), 0);
}

/* The mutex stays: what was asked for is looked at afterwards, too. */
static void stop_server(server *s) {
    sfti_os_mutex_lock(&s->mutex);
    s->stop = true;
    sfti_os_mutex_unlock(&s->mutex);
    sfti_os_thread_join(&s->thread);
    close(s->fd);
}

/* The last request. */
static const char *request_of(server *s) {
    static char request[sizeof s->request];
    sfti_os_mutex_lock(&s->mutex);
    memcpy(request, s->request, sizeof request);
    sfti_os_mutex_unlock(&s->mutex);
    return request;
}

static unsigned count_of(server *s, const unsigned *count) {
    sfti_os_mutex_lock(&s->mutex);
    unsigned n = *count;
    sfti_os_mutex_unlock(&s->mutex);
    return n;
}

/* ── The receiver ── */

typedef struct taken {
    int status;
    char headers[2048];
    char body[4096];
    size_t len, heads;
    size_t most; /* bytes of the body that are wanted; 0: all */
    bool no_head; /* the head is enough */
} taken;

static bool take_head(void *ctx, int status, const sft_pair *headers, size_t count) {
    taken *t = ctx;
    char *to = t->headers, *end = t->headers + sizeof t->headers;
    t->status = status;
    t->heads++;
    for (size_t i = 0; i < count; i++)
        to += snprintf(to, (size_t)(end - to), "%.*s=%.*s\n", (int)headers[i].key.len,
                       headers[i].key.data, (int)headers[i].value.len, headers[i].value.data);
    return !t->no_head;
}

static bool take_body(void *ctx, const void *bytes, size_t len) {
    taken *t = ctx;
    size_t room = sizeof t->body - (t->len < sizeof t->body ? t->len : sizeof t->body);
    memcpy(t->body + t->len - (room ? 0 : t->len), bytes, len < room ? len : room);
    t->len += len;
    return t->most == 0 || t->len < t->most;
}

static sft_transport transport;

static sft_code ask(server *s, const char *path, sft_http_request *request, taken *t,
                    sft_error *err) {
    char url[256];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", s->port, path);
    sft_http_receiver receiver = { t, take_head, take_body };
    request->method = request->body.data ? "POST" : "GET";
    request->url = url;
    if (!request->connect_ms) request->connect_ms = 2000;
    if (!request->stall_ms) request->stall_ms = 5000;
    *err = (sft_error)SFT_ERROR_INIT;
    return transport.vtable->send(transport.ctx, request, &receiver, err);
}

/* ── Answers ── */

typedef struct answer_row {
    const char *name, *answer;
    size_t repeat;
    sft_code code;
    const char *message;
    int status;
    const char *headers;
    const char *body;
    size_t len, most;
    bool no_head;
} answer_row;

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static const answer_row answer_rows[] = {
    { "plain", OK_HEAD "A: b\r\nC:  d \r\nEmpty:\r\nContent-Length: 3\r\n\r\nabc", 0, SFT_OK, NULL,
      200, "A=b\nC=d\nEmpty=\nContent-Length=3\n", "abc", 3, 0, false },
    { "1xx before it", "HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 103 Early Hints\r\nZ: y\r\n"
      "\r\n" OK_HEAD "Content-Length: 1\r\n\r\na", 0, SFT_OK, NULL, 200, "Content-Length=1\n", "a",
      1, 0, false },
    { "chunked with a trailer", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
      "Content-Range: bytes 0-9/10\r\n\r\n", 0, SFT_OK, NULL, 200, "Transfer-Encoding=chunked\n",
      "abc", 3, 0, false },
    { "HTTP/1.0 to the end", "HTTP/1.0 404 No\r\n\r\nabc", 0, SFT_OK, NULL, 404, "", "abc", 3, 0,
      false },
    { "no redirect is followed", "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
      0, SFT_OK, NULL, 302, "Location=/x\nContent-Length=0\n", "", 0, 0, false },
    { "no encoding is undone", OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab", 0,
      SFT_OK, NULL, 200, "Content-Encoding=gzip\nContent-Length=2\n", "ab", 2, 0, false },
    { "cut off", OK_HEAD "Content-Length: 9\r\n\r\nabc", 0, SFT_REMOTE_NETWORK,
      "lost after 3 bytes", 200, "Content-Length=9\n", "abc", 3, 0, false },
    { "cut off in a chunk", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n9\r\nabc", 0,
      SFT_REMOTE_NETWORK, "lost", 200, "Transfer-Encoding=chunked\n", "abc", 3, 0, false },
    { "nothing at all", "", 0, SFT_REMOTE_NETWORK, "without an answer", 0, "", "", 0, 0, false },
    { "no HTTP", "SSH-2.0-OpenSSH\r\n", 0, SFT_REMOTE_STATUS, "something else", 0, "", "", 0, 0,
      false },
    { "a head without end", OK_HEAD "X: ", 300 << 10, SFT_REMOTE_STATUS, "at most 262144 bytes", 0,
      "", "", 0, 0, false },
    { "no more is wanted", OK_HEAD "Content-Length: 100000000\r\n\r\n", 100000000, SFT_OK, NULL,
      200, "Content-Length=100000000\n", "xxx", 0, 3, false },
    { "no body is wanted", OK_HEAD "Content-Length: 100000000\r\n\r\n", 100000000, SFT_OK, NULL,
      200, "Content-Length=100000000\n", "", 0, 0, true },
};

static void test_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(answer_rows); i++) {
        const answer_row *row = &answer_rows[i];
        server s = { .answer = row->answer, .repeat = row->repeat };
        taken t = { .most = row->most, .no_head = row->no_head };
        sft_http_request request = { 0 };
        sft_error err;
        start_server(&s);
        sft_code code = ask(&s, "/f", &request, &t, &err);
        stop_server(&s);
        if (code != row->code || (row->message && !strstr(err.message, row->message)))
            fail_msg("%s: %d, %s", row->name, code, err.message);
        if (t.status != row->status || strcmp(t.headers, row->headers) != 0)
            fail_msg("%s: %d, %s", row->name, t.status, t.headers);
        assert_int_equal(t.heads, row->status != 0);
        if (!row->most) assert_int_equal(t.len, row->len);
        assert_memory_equal(t.body, row->body, strlen(row->body));
        assert_null(strstr(err.message, "http://"));
    }
}

/* ── What is sent ── */

static void test_request(void **state) {
    (void)state;
    static const sft_pair headers[] = {
        { { "user-agent", 10 }, { "test/1", 6 } }, { { "range", 5 }, { "bytes=0-9", 9 } },
        { { "x-empty", 7 }, { "", 0 } },
    };
    server s = { .answer = OK_HEAD "Set-Cookie: a=b\r\nContent-Length: 0\r\n\r\n", .hold = true };
    taken t = { 0 };
    sft_error err;
    sft_http_request request = { .headers = headers, .header_count = COUNT(headers) };
    char wanted[512];
    start_server(&s);
    setenv("http_proxy", "http://127.0.0.1:9", 1);
    setenv("all_proxy", "http://127.0.0.1:9", 1);
    assert_int_equal(ask(&s, "/a/../b//./c%2f?d=%41", &request, &t, &err), SFT_OK);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    snprintf(wanted, sizeof wanted, "GET /a/../b//./c%%2f?d=%%41 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
             "user-agent: test/1\r\nrange: bytes=0-9\r\nx-empty:\r\n\r\n", s.port);
    assert_string_equal(request_of(&s), wanted);
    request.body = sft_span_cstr("[1,2]");
    assert_int_equal(ask(&s, "/p", &request, &t, &err), SFT_OK);
    assert_non_null(strstr(request_of(&s), "POST /p HTTP/1.1\r\n"));
    assert_non_null(strstr(request_of(&s), "\r\nContent-Length: 5\r\n"));
    assert_non_null(strstr(request_of(&s), "\r\n\r\n[1,2]"));
    assert_null(strcasestr(request_of(&s), "cookie"));
    assert_int_equal(count_of(&s, &s.connections), 1); /* kept for the next one */
    stop_server(&s);
}

/* A proxy is used when the request names one, whatever no_proxy says. */
static void test_proxy(void **state) {
    (void)state;
    server s = { .answer = "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n" };
    taken t = { 0 };
    sft_error err;
    char proxy[64];
    start_server(&s);
    snprintf(proxy, sizeof proxy, "http://user:SECRET@127.0.0.1:%d", s.port);
    sft_http_request request = { .method = "GET", .url = "http://a.example/f", .proxy = proxy,
                                 .connect_ms = 2000, .stall_ms = 2000 };
    sft_http_receiver receiver = { &t, take_head, take_body };
    setenv("no_proxy", "*", 1);
    err = (sft_error)SFT_ERROR_INIT;
    assert_int_equal(transport.vtable->send(transport.ctx, &request, &receiver, &err), SFT_OK);
    assert_int_equal(t.status, 403);
    assert_non_null(strstr(request_of(&s), "GET http://a.example/f HTTP/1.1\r\n"));
    request.url = "https://a.example/f";
    t = (taken){ 0 };
    assert_int_equal(transport.vtable->send(transport.ctx, &request, &receiver, &err),
                     SFT_REMOTE_STATUS);
    unsetenv("no_proxy");
    stop_server(&s);
    assert_non_null(strstr(request_of(&s), "CONNECT a.example:443 HTTP/1.1\r\n"));
    assert_int_equal(t.heads, 0);
    assert_non_null(strstr(err.message, "refused the connection with status 403"));
    assert_null(strstr(err.message, "SECRET"));
    assert_int_equal(err.hint, SFT_HINT_REMOTE_PROXY);
}

/* ── No answer ── */

static void test_nobody(void **state) {
    (void)state;
    server s = { .answer = "" };
    taken t = { 0 };
    sft_error err;
    sft_http_request request = { 0 };
    start_server(&s);
    stop_server(&s);
    assert_int_equal(ask(&s, "/f?SECRET", &request, &t, &err), SFT_REMOTE_NETWORK);
    assert_non_null(strstr(err.message, "no connection to 127.0.0.1:"));
    assert_non_null(strstr(err.message, "Connection refused"));
    assert_null(strstr(err.message, "SECRET"));
}

static void test_stalled(void **state) {
    (void)state;
    server s = { .answer = OK_HEAD "Content-Length: 9\r\n\r\nabc", .hold = true };
    taken t = { 0 };
    sft_error err;
    sft_http_request request = { .stall_ms = 300 };
    start_server(&s);
    uint64_t began = sfti_os_now_ns();
    assert_int_equal(ask(&s, "/f", &request, &t, &err), SFT_REMOTE_NETWORK);
    assert_true(sfti_os_now_ns() - began < UINT64_C(4000000000));
    stop_server(&s);
    assert_non_null(strstr(err.message, "stalled for 1 s, after 3 bytes"));
}

static void test_total_time(void **state) {
    (void)state;
    server s = { .answer = OK_HEAD "\r\n", .pause_ms = 3000 };
    taken t = { 0 };
    sft_error err;
    sft_http_request request = { .total_ms = 300 };
    start_server(&s);
    assert_int_equal(ask(&s, "/f", &request, &t, &err), SFT_REMOTE_NETWORK);
    stop_server(&s);
    assert_non_null(strstr(err.message, "no complete answer of 127.0.0.1:"));
}

static bool never_on(void *ctx) {
    (void)ctx;
    return false;
}

static void test_cancelled(void **state) {
    (void)state;
    server s = { .answer = OK_HEAD "\r\n", .pause_ms = 5000 };
    taken t = { 0 };
    sft_error err;
    sft_http_request request = { 0 };
    start_server(&s);
    sfti_os_on_wait(never_on, NULL);
    assert_int_equal(ask(&s, "/f", &request, &t, &err), SFT_CANCELLED);
    sfti_os_on_wait(NULL, NULL);
    request.go_on = never_on;
    assert_int_equal(ask(&s, "/f", &request, &t, &err), SFT_CANCELLED);
    stop_server(&s);
}

/* Not even over a connection that was made when it was allowed. */
static void test_public_only(void **state) {
    (void)state;
    server s = { .answer = OK_HEAD "Content-Length: 0\r\n\r\n", .hold = true };
    taken t = { 0 };
    sft_error err;
    sft_http_request request = { 0 };
    start_server(&s);
    assert_int_equal(ask(&s, "/f", &request, &t, &err), SFT_OK);
    request.public_only = true;
    assert_int_equal(ask(&s, "/f", &request, &t, &err), SFT_REMOTE_PRIVATE);
    assert_string_equal(err.message, "127.0.0.1 has an address that is not public");
    assert_int_equal(count_of(&s, &s.requests), 1);
    stop_server(&s);
}

/* The message names the file of authorities. */
static void test_no_authorities(void **state) {
    (void)state;
    server s = { .answer = "" };
    taken t = { 0 };
    sft_error err = SFT_ERROR_INIT;
    char url[64];
    start_server(&s);
    snprintf(url, sizeof url, "https://127.0.0.1:%d/?SECRET", s.port);
    sft_http_request request = { .method = "GET", .url = url, .connect_ms = 2000,
                                 .stall_ms = 2000 };
    sft_http_receiver receiver = { &t, take_head, take_body };
    request.ca_file = "/nowhere/ca.pem";
    assert_int_equal(transport.vtable->send(transport.ctx, &request, &receiver, &err),
                     SFT_REMOTE_TLS);
    assert_non_null(strstr(err.message, "/nowhere/ca.pem"));
    assert_null(strstr(err.message, "SECRET"));
    stop_server(&s);
}

/* ── A child of fork ── */

/* It makes a connection of its own, and does not end its parent's. */
static void test_fork(void **state) {
    (void)state;
    server s = { .answer = OK_HEAD "Content-Length: 0\r\n\r\n", .hold = true };
    taken t = { 0 };
    sft_error err;
    sft_http_request request = { 0 };
    start_server(&s);
    assert_int_equal(ask(&s, "/1", &request, &t, &err), SFT_OK);
    assert_int_equal(ask(&s, "/2", &request, &t, &err), SFT_OK);
    assert_int_equal(count_of(&s, &s.connections), 1);
    pid_t child = fork();
    if (child == 0) {
        transport.vtable->close(transport.ctx);
        _exit(0);
    }
    sfti_os_sleep_ms(100);
    assert_int_equal(ask(&s, "/3", &request, &t, &err), SFT_OK);
    assert_int_equal(count_of(&s, &s.connections), 1);
    stop_server(&s);
}

static int open_transport(void **state) {
    (void)state;
    sft_error err = SFT_ERROR_INIT;
    char version[32];
    const char *found = sft_transport_curl_version(version);
    sft_code code = sft_transport_curl(NULL, &transport, &err);
    if (!found && code == SFT_REMOTE_TRANSPORT && err.hint == SFT_HINT_REMOTE_CURL) exit(0);
    return code || !found || strspn(found, "0123456789.") < 3;
}

static int close_transport(void **state) {
    (void)state;
    transport.vtable->close(transport.ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_request),
        cmocka_unit_test(test_proxy), cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_stalled), cmocka_unit_test(test_total_time),
        cmocka_unit_test(test_cancelled), cmocka_unit_test(test_public_only),
        cmocka_unit_test(test_no_authorities), cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, open_transport, close_transport);
}
