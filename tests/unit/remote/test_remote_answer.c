/* Headers of answers: every form, contradictions, and texts that do not fit. */
#include "remote/http/answer.h"
#include "remote/scheme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define NONE SFT_SIZE_UNKNOWN

/* Headers as lines: "name: value\nname: value". */
static sfti_answer answer_of(int status, const char *lines) {
    sft_pair pairs[16];
    size_t count = 0;
    while (*lines) {
        size_t end = strcspn(lines, "\n"), colon = strcspn(lines, ":");
        assert_true(colon < end && count < COUNT(pairs));
        pairs[count++] = (sft_pair){ { lines, colon }, { lines + colon + 1, end - colon - 1 } };
        lines += end + (lines[end] == '\n');
    }
    sfti_answer answer;
    sfti_answer_begin(&answer, NULL);
    assert_true(sfti_answer_read(&answer, status, pairs, count));
    return answer;
}

static void test_ranges(void **state) {
    (void)state;
    static const struct {
        const char *lines;
        bool has, bad;
        uint64_t begin, end, total, length;
    } rows[] = {
        { "", false, false, 0, 0, NONE, NONE },
        { "Content-Range: bytes 0-9/100\nContent-Length: 10", true, false, 0, 10, 100, 10 },
        { "content-range:bytes 5-5/6", true, false, 5, 6, 6, NONE },
        { "content-range: Bytes  5 - 5 / * ", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes\t5-5/*", true, false, 5, 6, NONE, NONE },
        { "content-range: bytes */1234", false, false, 0, 0, 1234, NONE },
        { "content-range: bytes */*", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 9-0/100", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-100/100", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-9/18446744073709551615", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-18446744073709551615/*", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-18446744073709551614/*", true, false, 0, UINT64_MAX, NONE,
          NONE },
        { "content-range: bytes 0-9/18446744073709551616", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes=0-9/100", false, true, 0, 0, NONE, NONE },
        { "content-range: items 0-9/100", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-9", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 09/100", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes -9/100", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-/100", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes +0-9/100", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-9/100, bytes 0-9/100", false, true, 0, 0, NONE, NONE },
        { "content-range: ", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-9/100\ncontent-range: bytes 0-9/100", true, false, 0, 10, 100,
          NONE },
        { "content-range: bytes 0-9/100\ncontent-range: bytes 0-9/101", true, true, 0, 10, 101,
          NONE },
        { "content-range: bytes 0-9/100\ncontent-range: x", false, true, 0, 0, NONE, NONE },
        { "content-length: 5\ncontent-length: 5", false, false, 0, 0, NONE, 5 },
        { "content-length: 5, 5", false, false, 0, 0, NONE, 5 },
        { "content-length: 5\ncontent-length: 6", false, true, 0, 0, NONE, 5 },
        { "content-length: 5, 6", false, true, 0, 0, NONE, 5 },
        { "content-length: -1", false, true, 0, 0, NONE, NONE },
        { "content-length: 0x10", false, true, 0, 0, NONE, NONE },
        { "content-length: 18446744073709551616", false, true, 0, 0, NONE, NONE },
        { "content-length: 18446744073709551615", false, true, 0, 0, NONE, NONE },
        { "content-range: bytes 0-9/100\ncontent-range: bytes 0-8/100", true, true, 0, 9, 100,
          NONE },
        { "content-range: bytes 0-9/100\ncontent-range: bytes 1-9/100", true, true, 1, 10, 100,
          NONE },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_answer a = answer_of(206, rows[i].lines);
        if (a.has_range != rows[i].has || a.bad_range != rows[i].bad || a.begin != rows[i].begin
            || a.end != rows[i].end || a.total != rows[i].total || a.length != rows[i].length)
            fail_msg("%s", rows[i].lines);
        sfti_answer_free(&a);
    }
}

static void test_texts(void **state) {
    (void)state;
    sfti_answer a = answer_of(302,
        "ETag: W/\"x\"\nLast-Modified: Sat, 21 Nov 2026 12:00:00 GMT\n"
        "Content-Type: Text/HTML; charset=utf-8\nLocation: /a b\nLocation: /c\n"
        "X-Repo-Commit: 0123456789ABCDEF0123456789abcdef01234567\n"
        "X-Linked-Etag: \"00ff\"\nX-Linked-Size: 548105171\nX-Error-Code: GatedRepo\n"
        "X-Error-Message:  no\tway\x1b \nx-amz-bucket-region: eu-west-1\n"
        "Content-Encoding: gzip");
    assert_int_equal(a.status, 302);
    assert_string_equal(a.etag, "W/\"x\"");
    assert_string_equal(a.modified, "Sat, 21 Nov 2026 12:00:00 GMT");
    assert_string_equal(a.type, "text/html");
    assert_string_equal(a.location, "/a b");
    assert_string_equal(a.commit, "0123456789abcdef0123456789abcdef01234567");
    assert_string_equal(a.linked_etag, "00ff");
    assert_int_equal(a.linked_size, 548105171);
    assert_string_equal(a.error_code, "GatedRepo");
    assert_string_equal(a.error_message, "no way ");
    assert_string_equal(a.region, "eu-west-1");
    assert_string_equal(a.encoding, "gzip");
    assert_false(a.multipart);
    /* What was known before is forgotten. */
    assert_true(sfti_answer_read(&a, 200, NULL, 0));
    assert_null(a.location);
    assert_int_equal(a.linked_size, NONE);
    assert_int_equal(a.wait_s, -1);
    assert_string_equal(a.etag, "");
    sfti_answer_free(&a);

    a = answer_of(206, "Content-Type: multipart/ByteRanges; boundary=x\n"
                       "Content-Encoding: Identity\nX-Goog-Stored-Content-Encoding: gzip\n"
                       "X-Repo-Commit: ../etc\nETag: \"a\tb\"\nX-Linked-Etag: W/\"q\"");
    assert_true(a.multipart);
    assert_string_equal(a.encoding, "gzip");
    assert_string_equal(a.commit, "");
    assert_int_equal(*a.etag, '#');
    assert_int_equal(strlen(a.etag), 33);
    assert_string_equal(a.linked_etag, "q");
    sfti_answer_free(&a);

    static char location[SFTI_URL_MOST + 32] = "Location: ";
    memset(location + 10, 'x', SFTI_URL_MOST + 1);
    a = answer_of(302, location);
    assert_null(a.location);
    sfti_answer_free(&a);
    location[10 + SFTI_URL_MOST] = '\0';
    a = answer_of(302, location);
    assert_int_equal(strlen(a.location), SFTI_URL_MOST);
    sfti_answer_free(&a);
    a = answer_of(302, "Location: \nContent-Encoding: \nX-Linked-Size: 5\nX-Linked-Size: 5x\n"
                       "X-Linked-Etag: \"\nX-Error-Message: a\x7f" "b");
    assert_null(a.location);
    assert_string_equal(a.encoding, "");
    assert_int_equal(a.linked_size, NONE);
    assert_string_equal(a.linked_etag, "\"");
    assert_string_equal(a.error_message, "a b");
    sfti_answer_free(&a);
    a = answer_of(200, "X-Linked-Etag: \"a");
    assert_string_equal(a.linked_etag, "\"a");
    sfti_answer_free(&a);
}

/* What is compared or sent is taken whole or as a digest; what is shown is cut. */
static void test_long_texts(void **state) {
    (void)state;
    char text[2048] = "ETag: ";
    memset(text + 6, 'e', 129);
    sfti_answer a = answer_of(200, text);
    assert_int_equal(strlen(a.etag), 129);
    sfti_answer_free(&a);
    text[6 + 129] = 'e';
    a = answer_of(200, text);
    assert_int_equal(*a.etag, '#');
    sfti_answer_free(&a);
    memset(text, 'm', 1000);
    memcpy(text, "X-Error-Message: ", 17);
    a = answer_of(200, text);
    assert_int_equal(strlen(a.error_message), sizeof a.error_message - 1);
    sfti_answer_free(&a);
    memset(text, 'l', 1500);
    memcpy(text, "Link: <", 7);
    memcpy(text + 1400, ">;rel=next", 11);
    a = answer_of(200, text);
    assert_string_equal(a.next, "");
    sfti_answer_free(&a);
}

static void test_waits(void **state) {
    (void)state;
    static const struct { const char *lines; int64_t wait; } rows[] = {
        { "", -1 }, { "Retry-After: 7", 7 }, { "Retry-After: 0", 0 }, { "Retry-After: -1", -1 },
        { "Retry-After: soon", -1 }, { "Retry-After: 1.5", -1 },
        { "Retry-After: 99999999999", 1000000000 },
        { "Date: Sun, 06 Nov 1994 08:49:37 GMT\nRetry-After: Sun, 06 Nov 1994 08:51:37 GMT", 120 },
        { "Retry-After: Sun, 06 Nov 1994 08:51:37 GMT\nDate: Sun, 06 Nov 1994 08:49:37 GMT", 120 },
        { "Date: Sun, 06 Nov 1994 08:49:37 GMT\nRetry-After: Sun, 06 Nov 1994 08:00:00 GMT", 0 },
        { "Retry-After: Sun, 06 Nov 1994 08:51:37 GMT", 0 }, /* by this machine's clock */
        { "RateLimit: \"resolvers\";r=0;t=55", 56 },
        { "RateLimit: \"resolvers\";r=2999;t=300", -1 },
        { "RateLimit: \"resolvers\" ; t=55 ; r=0", 56 },
        { "RateLimit: \"a\";r=1;t=9, \"b\";r=0;t=3", 4 },
        { "RateLimit: \"a\";r=0;t=9, \"b\";r=0;t=3", 10 },
        { "RateLimit: \"a,;r=0\";r=5;t=9", -1 }, { "RateLimit: \"a\";r=0", -1 },
        { "RateLimit: \"a\";r=0;t=", -1 }, { "RateLimit: \"a\\\";r=0;t=9", -1 },
        { "RateLimit: \"a\";r=00;t=18446744073709551616", -1 },
        { "RateLimit: \"a\";r=0;t=18446744073709551614", 1000000001 },
        { "RateLimit: limit=10, remaining=0, reset=5", 6 },
        { "RateLimit: limit=10, remaining=1, reset=5", -1 },
        { "RateLimit-Remaining: 0\nRateLimit-Reset: 5", 6 },
        { "X-RateLimit-Reset: 5\nX-RateLimit-Remaining: 0", 6 },
        { "RateLimit-Remaining: 0\nRateLimit-Remaining: x\nRateLimit-Reset: 5", -1 },
        { "RateLimit-Remaining: 0\nRateLimit-Reset: 5\nRateLimit-Reset: -5", -1 },
        { "X-RateLimit-Reset: 5", -1 }, { "X-RateLimit-Remaining: 0", -1 },
        { "Date: Sat, 21 Nov 2026 12:00:00 GMT\nX-RateLimit-Remaining: 0\n"
          "X-RateLimit-Reset: 1795262460", 61 },
        { "Retry-After: 7\nRateLimit: \"resolvers\";r=0;t=55", 56 },
        { "Retry-After: 70\nRateLimit: \"resolvers\";r=0;t=55", 70 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_answer a = answer_of(429, rows[i].lines);
        if (a.wait_s != rows[i].wait) fail_msg("%s gives %lld", rows[i].lines, (long long)a.wait_s);
        sfti_answer_free(&a);
    }
}

static void test_dates(void **state) {
    (void)state;
    static const struct { const char *text; int64_t value; } rows[] = {
        { "Sun, 06 Nov 1994 08:49:37 GMT", 784111777 },
        { "Sunday, 06-Nov-94 08:49:37 GMT", 784111777 },
        { "Sun Nov  6 08:49:37 1994", 784111777 },
        { "Sun Nov 16 08:49:37 1994", 784975777 },
        { "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
        { "Sat, 21 Nov 2026 12:00:00 GMT", 1795262400 },
        { "Thu, 29 Feb 2024 23:59:60 GMT", 1709251200 },
        { "Friday, 01-Mar-69 00:00:00 GMT", 3129321600 },
        { "Mon, 01 Mar 2100 00:00:00 GMT", 4107542400 },
        { "Fri, 31 Dec 9999 23:59:59 GMT", 253402300799 },
    };
    static const char *const bad[] = {
        "", "0", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 1994 08:49:37 GMTx", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 06 Nov 1969 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Thu, 29 Feb 2023 00:00:00 GMT", "Mon, 29 Feb 2100 00:00:00 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT", "06 Nov 1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
        "Sun, 06 Nov +994 08:49:37 GMT",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t value = -1;
        assert_true(sfti_http_date(sft_span_cstr(rows[i].text), &value));
        assert_int_equal(value, rows[i].value);
    }
    int64_t value = -1;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (sfti_http_date(sft_span_cstr(bad[i]), &value)) fail_msg("%s", bad[i]);
    assert_int_equal(value, -1);
}

static void test_links(void **state) {
    (void)state;
    static const struct { const char *line, *next; } rows[] = {
        { "Link: <https://a/?cursor=x>; rel=\"next\"", "https://a/?cursor=x" },
        { "Link: <a>; rel=next", "a" }, { "Link: <a>;title=\"x, <b>\"; REL=Next", "a" },
        { "Link: <a>; rel=\"xet-auth\", <b>; rel=\"next\"", "b" },
        { "Link: <a;b,c>; rel=\"prev next\"", "a;b,c" }, { "Link: <a>; rel=\"prev\"", "" },
        { "Link: <a>; rel=\"nexts\"", "" }, { "Link: <a>, b; rel=next", "" },
        { "Link: <>; rel=next", "" }, { "Link: <a; rel=next", "" }, { "Link: a; rel=next", "" },
        { "Link: <a>; rel=\"next last next\"", "a" }, { "Link: <a>; x=\"\\", "" },
        { "Link: <a>; rel=\"next", "" }, { "Link: <a>; x=\"next\"", "" }, { "Link: ", "" },
        { "Link: <a>; rel=prev\nLink: <b>; rel=next\nLink: <c>; rel=next", "b" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_answer a = answer_of(200, rows[i].line);
        if (strcmp(a.next, rows[i].next) != 0) fail_msg("%s gives %s", rows[i].line, a.next);
        sfti_answer_free(&a);
    }
}

static void test_file_names(void **state) {
    (void)state;
    static const struct { const char *value, *name; } rows[] = {
        { "attachment; filename=\"a b;c.safetensors\"", "a b;c.safetensors" },
        { "attachment; filename=a.bin", "a.bin" }, { "attachment; FileName = a.bin", "a.bin" },
        { "attachment; filename=\"/etc/passwd\"", "passwd" },
        { "attachment; filename=\"C:\\x\\y.bin\"", "y.bin" },
        { "attachment; filename=\"a\\\"b\"", "a\"b" },
        { "attachment; filename=a; filename*=UTF-8''%c3%a4%20b.bin", "\xc3\xa4 b.bin" },
        { "attachment; filename*=utf-8'en'x.bin; filename=a", "x.bin" },
        { "attachment; filename=a; filename*=latin1''x", "a" },
        { "attachment; filename*=UTF-8''%2e%2e%2fx", "x" },
        { "attachment; filename*=UTF-8''%2e%2e", "" }, { "attachment; filename=..", "" },
        { "attachment; filename=\"a/\"", "" }, { "attachment; filename=\"\"", "" },
        { "attachment; filename*=UTF-8''a%00b", "" }, { "attachment; filename*=UTF-8''%zz", "" },
        { "attachment; filename*=UTF-8''%e4", "" }, { "attachment; filename*=UTF-8'x", "" },
        { "attachment; filename=\"a\\\\b\"", "b" }, { "attachment; filename=\"a\\b\"", "b" },
        { "attachment; filename=\"a\\\"", "" }, { "attachment; filename=a\\\"b", "\"b" },
        { "attachment; filename=a; filename=b", "a" }, { "attachment; filename=; filename=b", "b" },
        { "attachment; filename*=UTF-8", "" }, { "attachment; filename*=UTF-8''.", "" },
        { "attachment; filename*=x; filename=a", "a" }, { "attachment; filename=\"", "\"" },
        { "attachment; filename=\"a\x01\"", "" }, { "attachment", "" }, { "inline; x=y", "" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char line[128] = "Content-Disposition: ";
        memcpy(line + strlen(line), rows[i].value, strlen(rows[i].value) + 1);
        sfti_answer a = answer_of(200, line);
        if (strcmp(a.file_name, rows[i].name) != 0) fail_msg("%s gives %s", line, a.file_name);
        sfti_answer_free(&a);
    }
    char line[400] = "Content-Disposition: attachment; filename=\"";
    size_t len = strlen(line);
    memset(line + len, 'n', 256);
    line[len + 256] = '"';
    sfti_answer a = answer_of(200, line);
    assert_string_equal(a.file_name, "");
    sfti_answer_free(&a);
    line[len + 200] = '/';
    a = answer_of(200, line);
    assert_int_equal(strlen(a.file_name), 55);
    sfti_answer_free(&a);
}

#define X32 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X128 X32 X32 X32 X32

static void test_same(void **state) {
    (void)state;
    static const struct { const char *a, *b; bool same; } rows[] = {
        { "ETag: \"x\"", "ETag: \"x\"", true }, { "ETag: \"x\"", "ETag: \"y\"", false },
        { "ETag: \"x\"\nLast-Modified: 1", "ETag: \"x\"\nLast-Modified: 2", true },
        { "ETag: \"x\"\nContent-Range: bytes 0-1/5", "ETag: \"x\"\nContent-Range: bytes 2-3/6",
          false },
        { "ETag: \"x\"\nContent-Range: bytes 0-1/5", "ETag: \"x\"\nContent-Range: bytes 2-3/*",
          true },
        { "ETag: W/\"x\"\nLast-Modified: 1", "ETag: W/\"y\"\nLast-Modified: 1", false },
        { "ETag: W/\"x\"\nLast-Modified: 1", "ETag: W/\"x\"\nLast-Modified: 1", true },
        { "ETag: \"a\tb\"", "ETag: \"a\tc\"", false }, { "ETag: \"a\tb\"", "ETag: \"a\tb\"", true },
        { "ETag: \"" X128 "a\"", "ETag: \"" X128 "b\"", false },
        { "ETag: W/\"" X128 "a\"", "ETag: \"" X128 "a\"", true },
        { "Last-Modified: " X128, "Last-Modified: 1" X128, false },
        { "ETag: W/\"x\"\nLast-Modified: 1", "ETag: W/\"x\"\nLast-Modified: 2", false },
        { "ETag: W/\"x\"", "ETag: W/\"y\"", false }, { "ETag: W/\"x\"", "ETag: \"x\"", true },
        { "ETag: \"x\"\nLast-Modified: 1", "Last-Modified: 1", true },
        { "ETag: \"x\"\nLast-Modified: 1", "Last-Modified: 2", false },
        { "Last-Modified: 1", "", false }, { "", "", true }, { "ETag: W/\"x\"", "", true },
        { "ETag: W/\"x\"\nLast-Modified: 1", "ETag: W/\"x\"", false },
        { "ETag: \"x\"", "ETag: W/\"y\"", false },
        { "Content-Range: bytes 0-1/5", "Content-Range: bytes 2-3/5", true },
        { "Content-Range: bytes 0-1/5", "Content-Range: bytes 2-3/6", false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_answer a = answer_of(206, rows[i].a), b = answer_of(206, rows[i].b);
        if (sfti_answer_same(&a, &b) != rows[i].same || sfti_answer_same(&b, &a) != rows[i].same)
            fail_msg("%s / %s", rows[i].a, rows[i].b);
        sfti_answer_free(&a);
        sfti_answer_free(&b);
    }
}

static void test_bodies(void **state) {
    (void)state;
    static const struct { const char *body, *line; } rows[] = {
        { "", "" }, { "\r\n \n", "" }, { "no such file\nmore", "no such file" },
        { "a\x7f" "b \r\n", "a b" }, { "a  b", "a b" },
        { "  tabs\tand\x1b[31m colours\r\n", "tabs and [31m colours" },
        { "{\"error\":\"x\"}", "{\"error\":\"x\"}" },
        { "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code><Message>Access\n Denied"
          "</Message><Key>SECRET</Key></Error>", "AccessDenied: Access Denied" },
        { "<Error><Code>SlowDown</Code></Error>", "SlowDown" },
        { "<Error><Message>m</Message></Error>", "m" }, { "<Error><Code>x", "" },
        { "<html><head><title>403 Forbidden</title>", "403 Forbidden" }, { "<html>SECRET", "" },
    };
    sfti_answer a;
    sfti_answer_begin(&a, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_answer_body(&a, sft_span_cstr(rows[i].body));
        assert_string_equal(a.line, rows[i].line);
    }
    static char large[10000];
    memset(large, 'x', sizeof large);
    sfti_answer_body(&a, (sft_span){ large, sizeof large });
    assert_int_equal(strlen(a.line), sizeof a.line - 1);
    memset(large, ' ', sizeof large);
    large[4096] = 'x';
    sfti_answer_body(&a, (sft_span){ large, sizeof large });
    assert_string_equal(a.line, "");
    sfti_answer_body(&a, (sft_span){ NULL, 0 });
    sfti_answer_free(&a);
}

static void *no_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx, (void)ptr, (void)old_size, (void)new_size;
    return NULL;
}

static void test_no_memory(void **state) {
    (void)state;
    sft_allocator alloc = { no_resize, NULL };
    sft_pair pair = { sft_span_cstr("location"), sft_span_cstr("/x") };
    sfti_answer a;
    sfti_answer_begin(&a, &alloc);
    assert_false(sfti_answer_read(&a, 302, &pair, 1));
    assert_true(sfti_answer_read(&a, 302, NULL, 0));
    sfti_answer_free(&a);
}

static void test_headers(void **state) {
    (void)state;
    sfti_headers headers = { .arena = NULL };
    static const char *const bad[] = { "a\nb", "a\rb", "\x01", "\x7f", "a\tb" };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(sfti_headers_add(&headers, "range", bad[i]));
    for (size_t i = 0; i < SFTI_HEADERS_MOST; i++)
        assert_true(sfti_headers_add(&headers, "range", "bytes=0-1"));
    assert_false(sfti_headers_add(&headers, "range", "bytes=0-1"));
    assert_int_equal(headers.count, SFTI_HEADERS_MOST);
    assert_string_equal(headers.at[3].key.data, "range");
    assert_string_equal(headers.at[3].value.data, "bytes=0-1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_long_texts), cmocka_unit_test(test_waits),
        cmocka_unit_test(test_dates), cmocka_unit_test(test_links),
        cmocka_unit_test(test_file_names), cmocka_unit_test(test_same),
        cmocka_unit_test(test_bodies), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
