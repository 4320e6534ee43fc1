/* Names of URLs, and the URLs that names stand for; options and environment of remotes. */
#include "remote/remote.h"
#include "unit/remote_web.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static web server;

static sft_remote *remote_new(void) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_transport transport = { &server, &web_transport_vtable };
    sft_remote *remote = NULL;
    options.transport = &transport;
    assert_int_equal(sft_remote_open(&options, &remote, NULL), SFT_OK);
    return remote;
}

static const char *name_of(sft_remote *remote, const char *url) {
    const char *name = NULL;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = sft_remote_name(remote, url, &name, &err);
    if (code) print_message("%s\n", err.message);
    assert_int_equal(code, SFT_OK);
    return name;
}

static void test_is_url(void **state) {
    static const char *const urls[] = { "https://a/b", "http://a", "hf://a/b", "s3://a/b",
                                        "gs://a/b" };
    static const char *const others[] = { "", "a", "/a/b", "https:/a", "https", "hf:/a/b",
                                          "ftp://a", "file:///a", "xhttps://a", "c:\\a",
                                          "./https://a" };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) assert_true(sft_remote_is_url(urls[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(sft_remote_is_url(others[i]));
    assert_false(sft_remote_is_url(NULL));
}

/* What has no secrets is its own name. */
static void test_plain(void **state) {
    static const char *const plain[] = { "https://h.test/a/b.safetensors", "http://h.test:81/x",
                                         "hf://ns/m", "s3://bucket/key?with=this", "gs://b/k#l",
                                         "https://h.test/" };
    sft_remote *remote = remote_new();
    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        assert_string_equal(name_of(remote, plain[i]), plain[i]);
        assert_string_equal(sfti_remote_url(remote, plain[i]), plain[i]);
    }
    assert_string_equal(name_of(remote, "https://h.test/a#part"), "https://h.test/a");
    /* the folder that it lies in is on its host */
    assert_string_equal(name_of(remote, "https://h.test"), "https://h.test/");
    assert_string_equal(name_of(remote, "https://h.test#part"), "https://h.test/");
    assert_string_equal(name_of(remote, "https://h.test?k=1"), "https://[8]@h.test/");
    sft_remote_close(remote);
}

static void test_secrets(void **state) {
    sft_remote *remote = remote_new();
    (void)state;
    const char *a = name_of(remote, "https://h.test/m?sig=1"), *b, *c, *name;
    assert_string_equal(a, "https://[1]@h.test/m");
    b = name_of(remote, "https://h.test/m?sig=2#x");
    assert_string_equal(b, "https://[2]@h.test/m");
    c = name_of(remote, "https://me:pass@h.test/m");
    assert_string_equal(c, "https://[3]@h.test/m");
    assert_string_equal(name_of(remote, "https://h.test/m"), "https://h.test/m");
    assert_ptr_equal(name_of(remote, "https://h.test/m?sig=1"), a); /* once */
    assert_ptr_equal(name_of(remote, a), a);                        /* names are kept */
    assert_string_equal(sfti_remote_url(remote, a), "https://h.test/m?sig=1");
    assert_string_equal(sfti_remote_url(remote, b), "https://h.test/m?sig=2");
    assert_string_equal(sfti_remote_url(remote, c), "https://me:pass@h.test/m");
    assert_string_equal(sfti_remote_url(remote, "https://h.test/m"), "https://h.test/m");
    /* who knows a name only gets nothing by it */
    assert_int_equal(sft_remote_name(remote, "https://[3]@h.test/m", &name, NULL), SFT_REMOTE_URL);
    assert_int_equal(sft_remote_name(remote, "https://[3]@h.test/n", &name, NULL), SFT_REMOTE_URL);
    name = name_of(remote, "https://h.test/m?[1]");
    assert_string_equal(sfti_remote_url(remote, name), "https://h.test/m?[1]");
    sft_remote_close(remote);
}

/* What is joined to a name has its user and query. */
static void test_joined(void **state) {
    static const struct {
        const char *url, *joined, *leads;
    } rows[] = {
        { "https://u:p@h.test/m/", "https://[1]@h.test/m/a/b.bin",
          "https://u:p@h.test/m/a/b.bin" },
        { "https://h.test/m?k=1", "https://[1]@h.test/m/b", "https://h.test/m/b?k=1" },
        { "https://h.test/m?k=1", "https://[1]@h.test/m/", "https://h.test/m/?k=1" },
        { "https://h.test/m/i.json?k=1", "https://[1]@h.test/m/b c.bin",
          "https://h.test/m/b%20c.bin?k=1" },
        { "https://h.test/\xc3\xbc/i.json?k=1", "https://[1]@h.test/\xc3\xbc/\xc3\xbc.bin",
          "https://h.test/\xc3\xbc/%C3%BC.bin?k=1" },
        { "https://u@h.test/m/i.json?k=1", "https://[1]@h.test/m/x/b",
          "https://u@h.test/m/x/b?k=1" },
        { "https://h.test:81?k=1", "https://[1]@h.test:81/b", "https://h.test:81/b?k=1" },
        { "https://h.test?k=1", "https://[1]@h.test/", "https://h.test/?k=1" },
        { "http://u:p@h.test/m?k=1", "http://[1]@h.test/m/b", "http://u:p@h.test/m/b?k=1" },
        { "https://h.test/m/i.json?k=1", "https://h.test/m/b", "https://h.test/m/b" },
        { "https://h.test/m/i.json", "https://h.test/m/b", "https://h.test/m/b" },
        /* no base: nothing of the secrets goes there */
        { "https://h.test/m/i.json?k=1", "https://[1]@h.test.evil/m/b",
          "https://[1]@h.test.evil/m/b" },
        { "https://h.test?k=1", "https://[1]@h.test.evil/b", "https://[1]@h.test.evil/b" },
        { "https://h.test/m?k=1", "http://[1]@h.test/m", "http://[1]@h.test/m" },
        { "https://h.test/m?k=1", "https://[2]@h.test/m", "https://[2]@h.test/m" },
        { "https://h.test/m?k=1", "https://[01x]@h.test/m", "https://[01x]@h.test/m" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_remote *remote = remote_new();
        (void)name_of(remote, rows[i].url);
        assert_string_equal(sfti_remote_url(remote, rows[i].joined), rows[i].leads);
        sft_remote_close(remote);
    }
}

/* Many names are found by tables: to look through all of these takes minutes. */
static void test_many(void **state) {
    enum { MANY = 100000 };
    sft_remote *remote = remote_new();
    char name[40], url[64];
    (void)state;
    (void)name_of(remote, "https://h.test/m/i.json?k=1");
    (void)name_of(remote, "https://h.test/m/n/i.json?k=2");
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < MANY; i++) {
            const char *folder = i % 2 ? "n/" : "";
            snprintf(name, sizeof name, "https://[%d]@h.test/m/%s%d", i % 2 + 1, folder, i);
            snprintf(url, sizeof url, "https://h.test/m/%s%d?k=%d", folder, i, i % 2 + 1);
            assert_string_equal(sfti_remote_url(remote, name), url);
            assert_string_equal(name_of(remote, url), name);
        }
    sft_remote_close(remote);
}

static void test_refused(void **state) {
    static const char *const bad[] = { "ftp://h/x", "file:///etc/passwd", "/etc/passwd", "",
                                       "https://", "https:///x", "https://a b/c", "https://h:0/x",
                                       "https://h\\x", "s3://KEY:secret@bucket/x",
                                       "gs://me@bucket/x", "s3://b/\x01", "http://h/\x7f",
                                       "https://u:secret@h:99999/?secret", "https://h:secret/x",
                                       "https://u:secret x@h/x", "s3://KEY:se/secret@b/x",
                                       "hf://u:secret@ns/m", "a234567890123456789012345678901://h",
                                       "a2345678901234567890123456789012345://h", "http:secret",
                                       "https://[1]@h/x",
                                       "https://a[:secret@h/x" };
    sft_remote *remote = remote_new();
    const char *name = "";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(sft_remote_name(remote, bad[i], &name, &err), SFT_REMOTE_URL);
        assert_null(name);
        assert_true(err.message[0]);
        assert_null(strstr(err.message, "secret"));
        assert_int_equal(err.hint, SFT_HINT_REMOTE_NAME);
    }
    assert_int_equal(sft_remote_name(remote, NULL, &name, NULL), SFT_REMOTE_URL);
    sft_remote_close(remote);
}

/* Pages of the Hub are repositories and files. */
static void test_hub_pages(void **state) {
    static const struct {
        const char *url, *name;
    } rows[] = {
        { "https://huggingface.co/ns/m/blob/main/a.safetensors", "hf://ns/m@main/a.safetensors" },
        { "https://huggingface.co/ns/m/resolve/main/a.safetensors?download=true",
          "hf://ns/m@main/a.safetensors" },
    };
    sft_remote *remote = remote_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(name_of(remote, rows[i].url), rows[i].name);
    sft_remote_close(remote);
}

static void test_folders(void **state) {
    (void)state;
    assert_true(sft_remote_is_folder("hf://ns/m"));
    assert_false(sft_remote_is_folder("hf://ns/m/a.safetensors"));
    assert_false(sft_remote_is_folder("https://h.test/m.safetensors"));
    assert_false(sft_remote_is_folder("/tmp"));
    assert_false(sft_remote_is_folder(NULL));
}

/* ── Options ── */

static const char *const *variables; /* names and values, in turn */

static const char *environment(void *ctx, const char *name) {
    (void)ctx;
    for (const char *const *at = variables; *at; at += 2)
        if (strcmp(at[0], name) == 0) return at[1];
    return NULL;
}

static sft_remote *remote_in(const char *const *env, sft_remote_options options) {
    sft_remote *remote = NULL;
    variables = env;
    options.environment = environment;
    assert_int_equal(sft_remote_open(&options, &remote, NULL), SFT_OK);
    return remote;
}

static void same_text(const char *a, const char *b) {
    if (!b) assert_null(a);
    else assert_string_equal(a, b);
}

static void test_environment(void **state) {
    static const char *const upper[] = { "HTTP_PROXY", "http://evil", "HTTPS_PROXY", "http://s",
                                         "NO_PROXY", "x", "SSL_CERT_FILE", "/ca", NULL };
    static const char *const lower[] = { "http_proxy", "http://a", "https_proxy", "http://b",
                                         "HTTPS_PROXY", "http://c", "ALL_PROXY", "http://d",
                                         "no_proxy", "y", "CURL_CA_BUNDLE", "/curl",
                                         "SSL_CERT_FILE", "/ssl", NULL };
    static const char *const all[] = { "ALL_PROXY", "http://d", "AWS_CA_BUNDLE", "/aws", NULL };
    static const char *const empty[] = { "https_proxy", "", "CURL_CA_BUNDLE", "", NULL };
    static const struct {
        const char *const *env;
        const char *http, *https, *none, *ca;
    } rows[] = {
        { upper, NULL, "http://s", "x", "/ca" },
        { lower, "http://a", "http://b", "y", "/curl" },
        { all, "http://d", "http://d", NULL, "/aws" },
        { empty, NULL, NULL, NULL, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
        sft_remote *remote = remote_in(rows[i].env, options);
        same_text(remote->http_proxy, rows[i].http);
        same_text(remote->https_proxy, rows[i].https);
        same_text(remote->no_proxy, rows[i].none);
        same_text(remote->ca_file, rows[i].ca);
        sft_remote_close(remote);
    }
}

static void test_proxy_option(void **state) {
    static const char *const env[] = { "https_proxy", "http://b", "no_proxy", "y", NULL };
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_remote *remote;
    (void)state;
    options.proxy = "http://mine";
    remote = remote_in(env, options);
    assert_string_equal(remote->http_proxy, "http://mine");
    assert_string_equal(remote->https_proxy, "http://mine");
    assert_null(remote->no_proxy);
    sft_remote_close(remote);
    options.proxy = "";
    remote = remote_in(env, options);
    assert_null(remote->https_proxy);
    sft_remote_close(remote);
    options.proxy = NULL;
    options.public_only = true;
    remote = remote_in(env, options);
    assert_null(remote->https_proxy);
    sft_remote_close(remote);
    options.proxy = "http://mine";
    assert_int_equal(sft_remote_open(&options, &remote, NULL), SFT_BAD_ARGUMENT);
    assert_null(remote);
}

static void test_options(void **state) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    static const sft_transport_vtable none = { sizeof(sft_transport_vtable), NULL, NULL };
    sft_transport transport = { NULL, &none };
    sft_remote *remote = NULL;
    (void)state;
    assert_int_equal(sft_remote_open(&options, NULL, NULL), SFT_BAD_ARGUMENT);
    options.connections = 65;
    assert_int_equal(sft_remote_open(&options, &remote, NULL), SFT_BAD_ARGUMENT);
    options.connections = 0;
    options.transport = &transport;
    assert_int_equal(sft_remote_open(&options, &remote, NULL), SFT_BAD_ARGUMENT);
    options.transport = NULL;
    options.size = 8;
    assert_int_equal(sft_remote_open(&options, &remote, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_remote_open(NULL, &remote, NULL), SFT_OK);
    assert_int_equal(remote->options.connections, 8);
    assert_int_equal(sft_remote_sums_of(remote).requests, 0);
    sft_remote_close(remote);
    sft_remote_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_url), cmocka_unit_test(test_plain),
        cmocka_unit_test(test_secrets), cmocka_unit_test(test_joined),
        cmocka_unit_test(test_many), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hub_pages),
        cmocka_unit_test(test_folders), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_proxy_option), cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests_name("remote_names", tests, NULL, NULL);
}
