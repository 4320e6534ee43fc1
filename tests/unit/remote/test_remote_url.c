/* URLs: strict parts, redirects, what is shown, percent coding, public hosts, no_proxy. */
#include "remote/http/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void assert_span(sft_span span, const char *text) {
    assert_int_equal(span.len, strlen(text));
    assert_memory_equal(span.data, text, span.len);
}

/* ── Parts ── */

static void test_parts(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool https;
        const char *user, *host;
        uint32_t port;
        const char *origin, *path, *query;
    } rows[] = {
        { "https://a.example/b/c?d=e#f", true, NULL, "a.example", 443, "https://a.example", "/b/c",
          "d=e" },
        { "http://A.example:8080", false, NULL, "A.example", 8080, "http://A.example:8080", "",
          NULL },
        { "HTTPS://a?", true, NULL, "a", 443, "HTTPS://a", "", "" },
        { "http://[::1]:1/", false, NULL, "[::1]", 1, "http://[::1]:1", "/", NULL },
        { "http://127.0.0.1:65535/#x?y", false, NULL, "127.0.0.1", 65535,
          "http://127.0.0.1:65535", "/", NULL },
        { "https://u:p@a-b_c.d/x@y", true, "u:p", "a-b_c.d", 443, NULL, "/x@y", NULL },
        { "https://@a/", true, "", "a", 443, NULL, "/", NULL },
        { "https://a/x?q=u@v:1/", true, NULL, "a", 443, "https://a", "/x", "q=u@v:1/" },
        { "https://a//../%2e%2e/\xc3\xa4", true, NULL, "a", 443, "https://a",
          "//../%2e%2e/\xc3\xa4", NULL },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_url url;
        assert_true(sfti_url_parse(rows[i].url, &url));
        assert_int_equal(url.https, rows[i].https);
        assert_int_equal(url.port, rows[i].port);
        assert_span(url.host, rows[i].host);
        assert_span(url.path, rows[i].path);
        assert_int_equal(url.user.data != NULL, rows[i].user != NULL);
        if (rows[i].user) assert_span(url.user, rows[i].user);
        if (rows[i].origin) assert_span(url.origin, rows[i].origin);
        assert_int_equal(url.query.data != NULL, rows[i].query != NULL);
        if (rows[i].query) assert_span(url.query, rows[i].query);
    }
}

static void test_no_urls(void **state) {
    (void)state;
    static const char *const rows[] = {
        "", "a", "/a", "http:", "http:/a", "http//a", "http://", "http:///a", "http://:80/",
        "https://?a", "ftp://a/", "file:///etc/passwd", "gopher://a/", "hf://a/b", "httpsx://a",
        " http://a/", "http://a /", "http://a/b c", "http://a/\n", "http://a/\x7f", "http://a\\b/",
        "http://a/\\b", "http://a:/", "http://a:0/", "http://a:65536/", "http://a:000080/",
        "http://a:80x/", "http://a:8 0/", "http://a:-1/", "http://u@v@a/", "http://a%2eb/",
        "http://[::1/", "http://[]/", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://a]/",
        "http://\xc3\xa4.example/", "http://a,b/", "http://a*b/", "http://u@/", "http://a;b/",
    };
    sfti_url url;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (sfti_url_parse(rows[i], &url)) fail_msg("taken: %s", rows[i]);
    assert_false(sfti_url_parse(NULL, &url));
    char *text = malloc(SFTI_URL_MOST + 2);
    assert_non_null(text);
    memset(text, 'a', SFTI_URL_MOST + 1);
    memcpy(text, "http://a/", 9);
    text[SFTI_URL_MOST] = '\0';
    assert_true(sfti_url_parse(text, &url));
    text[SFTI_URL_MOST] = 'a';
    text[SFTI_URL_MOST + 1] = '\0';
    assert_false(sfti_url_parse(text, &url));
    memset(text + 7, 'a', 256);
    text[7 + 256] = '/';
    text[7 + 257] = '\0';
    assert_false(sfti_url_parse(text, &url)); /* a host of 256 */
    memmove(text + 7, text + 8, 257);
    assert_true(sfti_url_parse(text, &url));
    free(text);
}

static void test_origins(void **state) {
    (void)state;
    assert_true(sfti_url_same_origin("https://a/x", "HTTPS://A:443/y?z"));
    assert_true(sfti_url_same_origin("http://a", "http://u@a:80/"));
    assert_false(sfti_url_same_origin("http://a:443/", "https://a/"));
    assert_false(sfti_url_same_origin("https://a/", "https://a:444/"));
    assert_false(sfti_url_same_origin("https://huggingface.co/", "https://huggingface.co.evil/"));
    assert_false(sfti_url_same_origin("https://huggingface.co/", "https://e/?huggingface.co"));
    assert_false(sfti_url_same_origin("https://huggingface.co/", "https://huggingface.co@e/"));
    assert_false(sfti_url_same_origin("a", "a"));
    assert_true(sfti_url_same_site("https://civitai.com/", "https://image.civitai.com/x"));
    assert_true(sfti_url_same_site("http://civitai.com/", "https://image.civitai.com/x"));
    assert_true(sfti_url_same_site("http://127.0.0.1:1/", "http://127.0.0.1:1/x"));
    assert_false(sfti_url_same_site("http://civitai.com/", "http://image.civitai.com/x"));
    assert_false(sfti_url_same_site("https://civitai.com/", "https://image.civitai.com:8/x"));
    assert_false(sfti_url_same_site("https://civitai.com/", "https://notcivitai.com/x"));
    assert_false(sfti_url_same_site("https://1.2.3.4/", "https://9.9.3.4/"));
    assert_false(sfti_url_same_site("https://localhost/", "https://b/"));
    assert_false(sfti_url_same_site("https://civitai.com/", "civitai.com"));
    assert_false(sfti_url_same_site("civitai.com", "https://civitai.com/"));
}

/* ── Redirects ── */

static void test_join(void **state) {
    (void)state;
    static const struct { const char *base, *location, *url; } rows[] = {
        { "https://a/b/c?d", "https://x/y?z=%2F", "https://x/y?z=%2F" },
        { "https://a:8/b/c?d", "/y/../z?q", "https://a:8/y/../z?q" },
        { "https://u:p@a:8/b", "/y", "https://a:8/y" },
        { "http://a/b", "//x:9/y", "http://x:9/y" },
        { "https://a/b/c?d", "e", "https://a/b/e" },
        { "https://a/b/c?d", "../e?f", "https://a/e?f" },
        { "https://a/b/c?d", "../../../e", "https://a/e" },
        { "https://a/b/c?d", "./e/./f/..", "https://a/b/e/" },
        { "https://a/b/c?d", ".", "https://a/b/" },
        { "https://a/b/c?d", "..", "https://a/" },
        { "https://a/b/c?d", "?e/../f", "https://a/b/c?e/../f" },
        { "https://a", "e", "https://a/e" },
        { "https://a?x", "?e", "https://a/?e" },
        { "https://a/b", "c d#e", "https://a/c%20d" },
        { "https://a/b", " \xc3\xa4 ", "https://a/%C3%A4" },
        { "https://a/b", "x:y/z", NULL }, /* a scheme, by the grammar */
        { "https://a/b", "./x:y", "https://a/x:y" },
        { "https://a/b", "", NULL }, { "https://a/b", "#x", NULL },
        { "https://a/b", "file:///etc/passwd", NULL }, { "https://a/b", "gopher://x/", NULL },
        { "https://a/b", "http:/x", NULL }, { "https://a/b", "http:x", NULL },
        { "https://a/b", "//", NULL }, { "https://a/b", "//x y/", NULL },
        { "https://a/b", "/x\\y", NULL }, { "https://a/b", "/x\ny", NULL },
        { "https://a/b", "https://x:0/", NULL }, { "ftp://a/b", "/x", NULL },
        { "https://a/b", "https://u:p@x/y", "https://u:p@x/y" }, /* refused by who follows it */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        const char *url = sfti_url_join(&arena, rows[i].base, sft_span_cstr(rows[i].location));
        if (rows[i].url) assert_string_equal(url, rows[i].url);
        else if (url) fail_msg("%s at %s gives %s", rows[i].location, rows[i].base, url);
        sfti_arena_free(&arena);
    }
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    char *text = malloc(SFTI_URL_MOST);
    assert_non_null(text);
    memset(text, '/', SFTI_URL_MOST);
    assert_null(sfti_url_join(&arena, "https://a/", (sft_span){ text, SFTI_URL_MOST }));
    assert_null(sfti_url_join(&arena, "https://a/", (sft_span){ "/a\0b", 4 }));
    free(text);
    sfti_arena_free(&arena);
}

/* ── To show ── */

#define UNSHOWN "a URL that cannot be shown"

static void test_show(void **state) {
    (void)state;
    static const struct { const char *url, *shown; } rows[] = {
        { "https://a/b", "https://a/b" },
        { "https://a/b?", "https://a/b?[...]" },
        { "https://a/b?X-Amz-Signature=SECRET", "https://a/b?[...]" },
        { "https://a/b#SECRET", "https://a/b" },
        { "https://a/b#x?SECRET", "https://a/b" },
        { "https://SECRET@a:8/b@c", "https://a:8/b@c" },
        { "https://u:SECRET@a", "https://a" },
        { "https://a?SECRET@b", "https://a?[...]" },
        { "https://u:SEC/RET@a/b", UNSHOWN }, { "https://u:SEC?RET@a/b", UNSHOWN },
        { "https://SEC@RET@a/b", UNSHOWN }, { "https:SECRET@a/b", UNSHOWN },
        { "http:/SECRET@a/b?c", UNSHOWN }, { "https:\\\\SECRET@a\\b", UNSHOWN },
        { "https://SECRET:pa ss@h/x", UNSHOWN }, { "https://SECRET:pass%40h/x", UNSHOWN },
        { "https://", UNSHOWN }, { "https:SECRET", UNSHOWN }, { "https:///SECRET", UNSHOWN },
        { "https://host:SECRET/x", "https://host[...]" },
        { "https://host:SECRET", "https://host[...]" },
        { "https://host:99999/SECRET?x", "https://host[...]" },
        { "https://host/SEC RET", "https://host[...]" },
        { "http://[::1]:SECRET/x", "http://[::1][...]" },
        { "SECRET:word@proxy:80", "proxy:80" }, { "SECRET:wo/rd@proxy:80", UNSHOWN },
        { "socks5://SECRET:wo/rd@proxy", UNSHOWN }, { "s3://KEY:SEC/RET@b/c", UNSHOWN },
        { "s3://KEY:SECRET@bucket/a@b?c", "s3://bucket/a@b?[...]" },
        { "hf://models/a/b@main/c.bin", "hf://models/a/b@main/c.bin" },
        { "SECRET@host/x", "host/x" },
        { "dir/model@1.safetensors", "dir/model@1.safetensors" },
        { "model.bin", "model.bin" }, { "", "" }, { "?SECRET", "?[...]" }, { "@", "" },
    };
    char out[64];
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_url_show(rows[i].url, out, sizeof out);
        assert_string_equal(out, rows[i].shown);
    }
    sfti_url_show("https://a/\xc3\xa4", out, 12);
    assert_string_equal(out, "https://a/");
    for (size_t cap = 1; cap < 30; cap++) {
        memset(out, 'x', sizeof out);
        sfti_url_show("https://u@a/bcd?e", out, cap);
        assert_true(strlen(out) < cap);
        assert_int_equal(out[cap], 'x');
        assert_memory_equal(out, "https://a/bcd?[...]", strlen(out));
    }
    sfti_url_show("https://a/", out, 0);
    char longest[400] = "https://", shown[400];
    memset(longest + 8, 'h', 260); /* no host is as long */
    memcpy(longest + 268, ":x/", 4);
    sfti_url_show(longest, shown, sizeof shown);
    assert_string_equal(shown, UNSHOWN);
    memcpy(longest + 8 + 255, ":x/", 4);
    sfti_url_show(longest, shown, sizeof shown);
    assert_int_equal(strlen(shown), 8 + 255 + strlen("[...]"));
}

/* ── Percent coding ── */

static void test_percent(void **state) {
    (void)state;
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    assert_true(sfti_url_encode(&out, (sft_span){ "aZ09-_.~/ +%\xc3\xa4\0", 15 }, "/"));
    assert_span((sft_span){ out.data, out.len }, "aZ09-_.~/%20%2B%25%C3%A4%00");
    out.len = 0;
    assert_true(sfti_url_encode(&out, sft_span_cstr("a/b:c"), ""));
    assert_span((sft_span){ out.data, out.len }, "a%2Fb%3Ac");
    out.len = 0;
    assert_true(sfti_url_decode(&out, sft_span_cstr("a%2fb%C3%a4+%25")));
    assert_span((sft_span){ out.data, out.len }, "a/b\xc3\xa4+%");
    static const char *const bad[] = { "%", "a%", "%4", "a%4", "%4g", "%g4", "%%41" };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(sfti_url_decode(&out, sft_span_cstr(bad[i])));
    sft_buffer_free(&out);
}

/* ── Hosts ── */

static void test_public(void **state) {
    (void)state;
    static const char *const public[] = {
        "huggingface.co", "1.1.1.1", "8.8.8.8", "0x8.8.8.8", "134744072", "8.8.2056",
        "100.63.255.255", "100.128.0.0", "169.253.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1",
        "192.167.0.1", "192.169.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "11.0.0.1",
        "[2606:4700::1111]", "[::ffff:8.8.8.8]", "[64:ff9b::8.8.8.8]", "[2a00:1450:4001::]",
        "local.example", "localhost.example", "a-local", "10.example", "1e100.net", "0x.example",
        "example.com.", "[2001:4860:4860::8888]",
    };
    static const char *const private[] = {
        "localhost", "LOCALHOST.", "a.localhost", "printer.local", "metadata.google.internal",
        "internal", "127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001",
        "0177.0.0.1", "127.0.0.1.", "0", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255",
        "100.64.0.1", "100.127.255.255", "169.254.169.254", "0xa9.0xfe.0xa9.0xfe", "2852039166",
        "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "192.88.99.1", "[::1]", "[::]", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:ffff:10.0.0.1]", "[64:ff9b::10.0.0.1]",
        "[64:ff9b::7f00:1]", "[64:ff9b:1::8.8.8.8]", "[fe80::1]", "[febf::1]", "[fec0::1]",
        "[fc00::1]", "[fd12:3456::1]", "[ff02::1]", "[2001:db8::1]", "[2001::1]",
        "[2002:7f00:1::]", "[3fff::1]", "[100::1]", "[4000::1]", "[::g]", "[1:2]", "[::1::]",
        "[1:2:3:4:5:6:7:8:9]", "[1.2.3.4]x", "127.0.0.256", "1.2.3.4.5", "08.8.8.8.8", "999",
        "4294967296", "", ".", "..", "x.0x7f", "127.0.0.0x1", "[", "[1:]", "[::1:2:3:4:5:6:7:8]",
        "[1:2:3:4:5:6:7:8::]", "[1:2:3:4:5:6:7::8]x", "[::1;2]", "[1::2::3]", "[:]", "[:1:2]",
    };
    for (size_t i = 0; i < COUNT(public); i++)
        if (!sfti_host_is_public(sft_span_cstr(public[i]))) fail_msg("%s", public[i]);
    for (size_t i = 0; i < COUNT(private); i++)
        if (sfti_host_is_public(sft_span_cstr(private[i]))) fail_msg("%s", private[i]);
    static const uint8_t loopback[4] = { 127, 0, 0, 1 }, some[4] = { 1, 2, 3, 4 };
    assert_false(sfti_address_is_public(loopback, 4));
    assert_true(sfti_address_is_public(some, 4));
    assert_false(sfti_address_is_public(some, 3));
    assert_false(sfti_address_is_public(some, 0));
}

static void test_no_proxy(void **state) {
    (void)state;
    static const struct { const char *list, *host; uint32_t port; bool covers; } rows[] = {
        { NULL, "a", 80, false }, { "", "a", 80, false }, { "*", "a", 80, true },
        { "b, *", "a", 80, true }, { "a", "A", 80, true },
        { "example.com", "example.com", 1, true },
        { "example.com", "x.example.com", 1, true }, { ".example.com", "x.example.com", 1, true },
        { ".example.com", "example.com", 1, true }, { "example.com.", "example.com", 1, true },
        { "example.com", "example.com.", 1, true }, { "example.com", "badexample.com", 1, false },
        { "ple.com", "example.com", 1, false }, { "x.example.com", "example.com", 1, false },
        { "a b,c\td", "d", 1, true }, { "a,,b", "b", 1, true }, { ",", "a", 1, false },
        { ".", "a", 1, false }, { "example.com:8080", "example.com", 8080, true },
        { "example.com:8080", "example.com", 80, false }, { "127.0.0.1", "127.0.0.1", 1, true },
        { "127.0.0.1", "127.0.0.2", 1, false }, { "10.0.0.0/8", "10.9.8.7", 1, true },
        { "10.0.0.0/8", "11.0.0.1", 1, false }, { "10.0.0.0/33", "10.0.0.0", 1, false },
        { "10.0.0.0/x", "10.0.0.0", 1, false }, { "192.168.3.64/26", "192.168.3.127", 1, true },
        { "192.168.3.64/26", "192.168.3.128", 1, false }, { "0.0.0.0/0", "1.2.3.4", 1, true },
        { "10.0.0.0/8", "a10.0.0.1x", 1, false }, { "0.1", "10.0.0.1", 1, false },
        { "::1", "[::1]", 1, true }, { "[::1]", "[::1]", 1, true },
        { "fd00::/8", "[fd12::1]", 1, true },
        { "fd00::/8", "[fe12::1]", 1, false }, { "[::1]:80", "[::1]", 80, true },
        { "[::1]:80", "[::1]", 81, false }, { "localhost", "127.0.0.1", 1, false },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (sfti_no_proxy(rows[i].list, sft_span_cstr(rows[i].host), rows[i].port)
            != rows[i].covers)
            fail_msg("%s", rows[i].host);
}

/* ── No memory ── */

typedef struct { size_t left; } failing;

static void *resize_until(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    failing *f = ctx;
    (void)old_size;
    if (new_size == 0) return free(ptr), NULL;
    if (f->left == 0) return NULL;
    f->left--;
    return realloc(ptr, new_size);
}

static void test_no_memory(void **state) {
    (void)state;
    failing none = { 0 };
    sft_allocator alloc = { resize_until, &none };
    sfti_arena arena = { .alloc = alloc };
    sft_buffer out = { .alloc = alloc };
    assert_null(sfti_url_join(&arena, "https://a/", sft_span_cstr("/b")));
    assert_false(sfti_url_encode(&out, sft_span_cstr("a"), ""));
    assert_false(sfti_url_decode(&out, sft_span_cstr("a")));
    sfti_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts), cmocka_unit_test(test_no_urls),
        cmocka_unit_test(test_origins), cmocka_unit_test(test_join), cmocka_unit_test(test_show),
        cmocka_unit_test(test_percent), cmocka_unit_test(test_public),
        cmocka_unit_test(test_no_proxy), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
