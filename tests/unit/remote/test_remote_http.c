/* Exchanges over a transport that plays a script: what is sent, retries, redirects, secrets,
 * whole answers. */
#include "unit/http_case.h"

/* ── Redirects ── */

typedef struct redirect_row {
    const char *name, *url;
    bool public_only;
    step steps[8];
    sft_code code;
    const char *message, *final_url;
} redirect_row;

#define TO(where) 0, 302, "Location: " where, 0, 0, "moved"
#define FOUND NULL, 0, 206, "Content-Range: bytes 0-9/10", 0, 10, NULL

static const redirect_row redirect_rows[] = {
    { "to another host", URL, false,
      { { URL, NULL, TO("https://b.example/g?sig=1") }, { "https://b.example/g?sig=1", FOUND } },
      SFT_OK, NULL, "https://b.example/g?sig=1" },
    { "five, relative", URL, false,
      { { URL, NULL, TO("/1") }, { "https://a.example/1", NULL, TO("2") },
        { "https://a.example/2", NULL, TO("x/3") }, { "https://a.example/x/3", NULL, TO("../4") },
        { "https://a.example/4", NULL, TO("?5") }, { "https://a.example/4?5", FOUND } },
      SFT_OK, NULL, "https://a.example/4?5" },
    { "six", URL, false,
      { { URL, NULL, TO("/1") }, { NULL, NULL, TO("/2") }, { NULL, NULL, TO("/3") },
        { NULL, NULL, TO("/4") }, { NULL, NULL, TO("/5") }, { NULL, NULL, TO("/6") } },
      SFT_REMOTE_REDIRECT, "at most 5 redirects", NULL },
    { "in a circle", URL, false,
      { { URL, NULL, TO("/1") }, { NULL, NULL, TO("/f") } },
      SFT_REMOTE_REDIRECT, "circle", NULL },
    { "to itself", URL, false, { { URL, NULL, TO("/f") } }, SFT_REMOTE_REDIRECT, "circle", NULL },
    { "to http", URL, false, { { URL, NULL, TO("http://a.example/f") } },
      SFT_REMOTE_REDIRECT, "expected https", NULL },
    { "from http to http", "http://a.example/f", false,
      { { "http://a.example/f", NULL, TO("http://b.example/") }, { "http://b.example/", FOUND } },
      SFT_OK, NULL, "http://b.example/" },
    { "to file", URL, false, { { URL, NULL, TO("file:///etc/passwd") } },
      SFT_REMOTE_REDIRECT, "expected a URL of http", NULL },
    { "to gopher", URL, false, { { URL, NULL, TO("gopher://a.example/") } },
      SFT_REMOTE_REDIRECT, "expected a URL of http", NULL },
    { "to a user", URL, false, { { URL, NULL, TO("https://SECRET:SECRET@a.example/") } },
      SFT_REMOTE_REDIRECT, "without a user", NULL },
    { "to nonsense", URL, false, { { URL, NULL, TO("https://SECRET@@/?SECRET") } },
      SFT_REMOTE_REDIRECT, "expected a URL of http", NULL },
    { "to a private host", URL, true, { { URL, NULL, TO("https://127.0.0.1/") } },
      SFT_REMOTE_PRIVATE, "found \"127.0.0.1\"", NULL },
    { "a private host", "http://[::1]/", true, { { 0 } }, SFT_REMOTE_PRIVATE, "found \"[::1]\"",
      NULL },
    { "a user", "https://SECRET@a.example/", false, { { 0 } }, SFT_REMOTE_URL, "without a user",
      NULL },
    { "307 and 308", URL, false,
      { { URL, NULL, 0, 307, "Location: /1", 0, 0, NULL },
        { NULL, NULL, 0, 308, "Location: /2", 0, 0, NULL }, { NULL, FOUND } },
      SFT_OK, NULL, "https://a.example/2" },
    { "with a body that is cut", URL, false,
      { { URL, NULL, SFT_REMOTE_NETWORK, 301, "Location: /1", 0, 0, "x" }, { NULL, FOUND } },
      SFT_OK, NULL, "https://a.example/1" },
    { "with a body without end", URL, false,
      { { URL, NULL, 0, 303, "Location: /1", 0, 1000000, NULL }, { NULL, FOUND } },
      SFT_OK, NULL, "https://a.example/1" },
};

static void test_redirects(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(redirect_rows); i++) {
        const redirect_row *row = &redirect_rows[i];
        world *w = new_world(row->steps);
        sft_error err;
        sfti_fetch fetch = { .begin = 0, .end = 10 };
        w->target.url = row->url;
        w->remote.options.public_only = row->public_only;
        sft_code code = fetch_range(w, &fetch, &err);
        if (code != row->code || (row->message && !strstr(err.message, row->message)))
            fail_msg("%s: %d, %s", row->name, code, err.message);
        if (strstr(err.message, "SECRET")) fail_msg("%s: %s", row->name, err.message);
        if (!code) assert_string_equal(fetch.final_url, row->final_url);
        if (w->script.sent != w->script.count) fail_msg("%s: %zu sent", row->name, w->script.sent);
        sfti_fetch_free(&fetch);
        free_world(w);
    }
}

/* ── Schemes ── */

static sft_code add_token(sfti_target *target, const char *url, sfti_headers *headers,
                          sft_error *err) {
    if (!sfti_url_same_origin(url, target->url)) return SFT_OK;
    return sfti_headers_add(headers, "authorization", "Bearer hf_SECRETTOKEN")
               ? SFT_OK : sfti_fail_memory(err, 0);
}

static char learnt[512];

static bool note_answer(sfti_target *target, const char *url, const sfti_answer *answer) {
    size_t len = strlen(learnt);
    (void)target;
    snprintf(learnt + len, sizeof learnt - len, "%s %d;", url, answer->status);
    return false;
}

static bool find_local(sfti_target *target, const char *url, const sfti_answer *answer) {
    (void)url;
    if (answer->status == 302) target->local = "/cache/blob";
    return answer->status == 302;
}

static unsigned explained;

static bool explain_403(sfti_target *target, const char *url, const sfti_answer *answer,
                        bool *again, sft_error *err) {
    (void)url;
    explained++;
    if (answer->status == 429)
        sft_error_set(err, SFT_REMOTE_BUSY, 0, "the limit of this scheme");
    if (answer->status != 403) return answer->status == 429;
    *again = explained < 9;
    target->url = "https://region.example/f";
    sfti_fail(err, SFT_REMOTE_DENIED, "gated: %s", answer->line);
    return true;
}

/* The token goes where it belongs, and nowhere else. */
static void test_authorization(void **state) {
    (void)state;
    static const step steps[] = {
        { URL, NULL, TO("/g") }, { "https://a.example/g", NULL, TO("https://a.example:444/g") },
        { NULL, NULL, TO("https://a.example/h") }, { "https://a.example/h", FOUND }, { 0 },
    };
    static const bool has_token[] = { true, true, false, true };
    world *w = new_world(steps);
    sft_error err;
    sfti_fetch fetch = { .begin = 0, .end = 10 };
    w->scheme.authorize = add_token;
    w->scheme.learn = note_answer;
    learnt[0] = '\0';
    assert_int_equal(fetch_range(w, &fetch, &err), SFT_OK);
    for (size_t i = 0; i < COUNT(has_token); i++)
        assert_int_equal(strstr(w->script.headers[i], "hf_SECRETTOKEN") != NULL, has_token[i]);
    assert_string_equal(learnt, "https://a.example/f 302;https://a.example/g 302;"
                        "https://a.example:444/g 302;https://a.example/h 206;");
    sfti_fetch_free(&fetch);
    free_world(w);
}

static void test_local(void **state) {
    (void)state;
    static const step steps[] = { { URL, NULL, TO("/g") }, { 0 } };
    world *w = new_world(steps);
    sft_error err;
    sfti_fetch fetch = { .begin = 0, .end = 10 };
    w->scheme.learn = find_local;
    assert_int_equal(fetch_range(w, &fetch, &err), SFT_OK);
    assert_string_equal(w->target.local, "/cache/blob");
    assert_int_equal(fetch.got, 0);
    assert_int_equal(w->script.sent, 1);
    sfti_fetch_free(&fetch);
    free_world(w);
}

static void test_explain(void **state) {
    (void)state;
    static const step once[] = {
        { URL, NULL, 0, 403, "", 0, 0, "no" }, { "https://region.example/f", FOUND }, { 0 },
    };
    static const step twice[] = {
        { URL, NULL, 0, 403, "", 0, 0, "no" },
        { "https://region.example/f", NULL, 0, 403, "", 0, 0, "still no" }, { 0 },
    };
    static const step limit[] = { { URL, NULL, 0, 429, "Retry-After: 999", 0, 0, "no" }, { 0 } };
    static const step other[] = { { URL, NULL, 0, 404, "", 0, 0, "no" }, { 0 } };
    const struct { const step *steps; sft_code code; const char *message; } rows[] = {
        { once, SFT_OK, "" }, { twice, SFT_REMOTE_DENIED, "gated: still no" },
        { other, SFT_NOT_FOUND, "status 404" }, { limit, SFT_REMOTE_BUSY, "limit of this scheme" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        world *w = new_world(rows[i].steps);
        sft_error err;
        sfti_fetch fetch = { .begin = 0, .end = 10 };
        w->scheme.explain = explain_403;
        explained = 0;
        assert_int_equal(fetch_range(w, &fetch, &err), rows[i].code);
        assert_non_null(strstr(err.message, rows[i].message));
        assert_int_equal(w->script.sent, w->script.count);
        sfti_fetch_free(&fetch);
        free_world(w);
    }
}

/* A signed URL that was learnt earlier and has expired: resolved again, once. */
static void test_expired(void **state) {
    (void)state;
    static const char *const old = "https://cdn.example/f?sig=OLDSECRET";
    static const step steps[] = {
        { "https://cdn.example/f?sig=OLDSECRET", NULL, 0, 403, "", 0, 0, "expired OLDSECRET" },
        { URL, NULL, TO("https://cdn.example/f?sig=new") },
        { "https://cdn.example/f?sig=new", FOUND }, { 0 },
    };
    static const step for_ever[] = {
        { "https://cdn.example/f?sig=OLDSECRET", NULL, 0, 403, "", 0, 0, "expired OLDSECRET" },
        { URL, NULL, TO("https://cdn.example/f?sig=NEWSECRET%2F1") },
        { NULL, NULL, 0, 403, "", 0, 0, "not NEWSECRET/1 and not NEWSECRET%2F1" }, { 0 },
    };
    for (int i = 0; i < 2; i++) {
        world *w = new_world(i ? for_ever : steps);
        sft_error err;
        sfti_fetch fetch = { .url = old, .begin = 0, .end = 10 };
        assert_int_equal(fetch_range(w, &fetch, &err), i ? SFT_REMOTE_DENIED : SFT_OK);
        assert_int_equal(w->script.sent, 3);
        if (!i) assert_string_equal(fetch.final_url, "https://cdn.example/f?sig=new");
        else assert_string_equal(err.message, "cdn.example: status 403, not allowed: not "
                                 "[...] and not [...]");
        if (i) assert_int_equal(err.hint, SFT_HINT_REMOTE_SIGNED);
        sfti_fetch_free(&fetch);
        free_world(w);
    }
}

static void test_if_match(void **state) {
    (void)state;
    static const step steps[] = {
        { URL, NULL, SFT_REMOTE_NETWORK, 206, R("0-9", "10"), 0, 5, NULL },
        { URL, "5-9", 0, 206, R("5-9", "10"), 5, 10, NULL }, { 0 },
    };
    for (int i = 0; i < 3; i++) {
        world *w = new_world(steps);
        sft_error err;
        sfti_answer same = answer_with(i == 1 ? "ETag: W/\"x\"\nContent-Range: bytes 0-1/10"
                                              : R("0-1", "10"));
        sfti_fetch fetch = { .begin = 0, .end = 10, .same = i == 2 ? &same : NULL };
        w->scheme.if_match = i > 0;
        assert_int_equal(fetch_range(w, &fetch, &err), SFT_OK);
        assert_int_equal(strstr(w->script.headers[0], "if-match: \"x\"") != NULL, i == 2);
        assert_int_equal(strstr(w->script.headers[1], "if-match: \"x\"") != NULL, i > 0);
        sfti_fetch_free(&fetch);
        sfti_answer_free(&same);
        free_world(w);
    }
}

/* ── Secrets ── */

/* Servers repeat what they were sent. */
static void test_secrets(void **state) {
    (void)state;
    static const char body[] = "no hf_SECRETTOKEN, no Bearer hf_SECRETTOKEN, no SECRETSIG1 here";
    static const step steps[] = {
        { NULL, NULL, 0, 401, "X-Error-Message: bad hf_SECRETTOKEN", 0, 0, body }, { 0 },
    };
    static const step cut[] = {
        { NULL, NULL, 0, 401,
          "X-Error-Message: 23456789012345678901234567890123456789012345678901234567890123456789"
          "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"
          "78901234567890123456789012345678901 hf_SECRETTOKEN", 0, 0, body }, { 0 },
    };
    for (int i = 0; i < 3; i++) {
        world *w = new_world(i == 1 ? cut : steps);
        sft_error err;
        sfti_fetch fetch = { .begin = 0, .end = 10 };
        w->target.url = "https://a.example/f?X-Amz-Signature=SECRETSIG1&x=SECRETSIG2";
        w->scheme.authorize = add_token;
        if (i == 2) w->scheme.explain = explain_403;
        assert_int_equal(fetch_range(w, &fetch, &err), SFT_REMOTE_DENIED);
        assert_null(strstr(err.message, "SECRET"));
        assert_null(strstr(err.message, "hf_"));
        assert_null(strstr(fetch.answer.line, "SECRET"));
        assert_null(strstr(fetch.answer.error_message, "hf_"));
        assert_string_equal(fetch.answer.line, "no [...], no [...], no [...] here");
        assert_int_equal(err.hint, SFT_HINT_REMOTE_BAD_TOKEN);
        sfti_fetch_free(&fetch);
        free_world(w);
    }
}

/* ── What is sent ── */

static void test_request(void **state) {
    (void)state;
    static const step steps[] = { { URL, FOUND }, { 0 } };
    world *w = new_world(steps);
    sft_error err;
    sfti_fetch fetch = { .begin = 0, .end = 10 };
    w->remote.https_proxy = "http://proxy:1";
    w->remote.http_proxy = "http://other:1";
    w->remote.ca_file = "/ca.pem";
    w->remote.options.stall_ms = 7;
    assert_int_equal(fetch_range(w, &fetch, &err), SFT_OK);
    assert_string_equal(w->script.headers[0], "user-agent: libsafetensors/" SFT_VERSION_STRING
                        "\naccept-encoding: identity\nrange: bytes=0-9\n");
    assert_string_equal(w->script.methods[0], "GET");
    assert_string_equal(w->script.proxies[0], "http://proxy:1");
    assert_string_equal(w->script.last.ca_file, "/ca.pem");
    assert_int_equal(w->script.last.connect_ms, 10000);
    assert_int_equal(w->script.last.stall_ms, 7);
    assert_int_equal(w->script.last.total_ms, 0);
    assert_false(w->script.last.public_only);
    sfti_fetch_free(&fetch);
    w->script.sent = 0;
    w->remote.no_proxy = "example";
    assert_int_equal(fetch_range(w, &fetch, &err), SFT_OK);
    assert_string_equal(w->script.proxies[0], "");
    sfti_fetch_free(&fetch);
    w->remote.options.offline = true;
    assert_int_equal(fetch_range(w, &fetch, &err), SFT_REMOTE_OFFLINE);
    assert_int_equal(w->script.sent, 1);
    sfti_fetch_free(&fetch);
    free_world(w);
}

static sft_exchange told[STEPS];
static char told_urls[STEPS][128];
static size_t told_count;

static void take_told(void *ctx, const sft_exchange *exchange) {
    assert_ptr_equal(ctx, told);
    assert_true(told_count < STEPS);
    snprintf(told_urls[told_count], sizeof told_urls[0], "%s", exchange->url);
    told[told_count++] = *exchange;
}

static void test_accounts(void **state) {
    (void)state;
    static const step steps[] = {
        { NULL, NULL, 0, 503, "Retry-After: 0", 0, 0, "busy" },
        { NULL, "0-9", SFT_REMOTE_NETWORK, 206, "Content-Range: bytes 0-9/10", 0, 4, NULL },
        { NULL, "4-9", 0, 206, "Content-Range: bytes 4-9/10", 4, 10, NULL }, { 0 },
    };
    world *w = new_world(steps);
    sft_error err;
    sfti_fetch fetch = { .begin = 0, .end = 10 };
    w->target.url = "https://a.example/f?SECRET";
    w->remote.options.retries = 2;
    w->remote.options.on_exchange = take_told;
    w->remote.options.exchange_ctx = told;
    told_count = 0;
    assert_int_equal(fetch_range(w, &fetch, &err), SFT_OK);
    assert_int_equal(told_count, 3);
    static const struct { int status; sft_code code; uint64_t begin, bytes; } rows[] = {
        { 503, SFT_OK, 0, 4 }, { 206, SFT_REMOTE_NETWORK, 0, 4 }, { 206, SFT_OK, 4, 6 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_string_equal(told_urls[i], "https://a.example/f?[...]");
        assert_string_equal(told[i].method, "GET");
        assert_int_equal(told[i].status, rows[i].status);
        assert_int_equal(told[i].code, rows[i].code);
        assert_int_equal(told[i].begin, rows[i].begin);
        assert_int_equal(told[i].end, 10);
        assert_int_equal(told[i].bytes, rows[i].bytes);
        assert_int_equal(told[i].attempt, i + 1);
    }
    assert_int_equal(w->remote.sums.requests, 3);
    assert_int_equal(w->remote.sums.retries, 2);
    assert_int_equal(w->remote.sums.bytes, 14);
    sfti_fetch_free(&fetch);
    free_world(w);
}

/* No retries at all; and a wait ends when the process is told to stop. */
static bool no_further(void *ctx) { (void)ctx; return false; }

static void test_no_retries(void **state) {
    (void)state;
    static const step lost[] = { { URL, NULL, SFT_REMOTE_NETWORK, 0, NULL, 0, 0, NULL }, { 0 } };
    static const step busy[] = { { URL, NULL, 0, 429, "Retry-After: 50", 0, 0, NULL }, { 0 } };
    sft_error err;
    sfti_fetch fetch = { .begin = 0, .end = 10 };
    world *w = new_world(lost);
    w->remote.options.retries = UINT32_MAX;
    assert_int_equal(fetch_range(w, &fetch, &err), SFT_REMOTE_NETWORK);
    assert_string_equal(err.message, "lost");
    sfti_fetch_free(&fetch);
    free_world(w);
    w = new_world(busy);
    sfti_os_on_wait(no_further, NULL);
    assert_int_equal(fetch_range(w, &fetch, &err), SFT_CANCELLED);
    sfti_os_on_wait(NULL, NULL);
    sfti_fetch_free(&fetch);
    free_world(w);
}

/* Whichever send fails for good: its code, nothing of it, no leak. */
static void test_each_send_fails(void **state) {
    (void)state;
    static const step steps[] = {
        { URL, NULL, 0, 503, "Retry-After: 0", 0, 0, "busy" },
        { URL, NULL, TO("/1") }, { NULL, NULL, TO("https://b.example/2?s=1") },
        { NULL, NULL, SFT_REMOTE_NETWORK, 206, R("0-9", "10"), 0, 4, NULL },
        { NULL, "4-9", 0, 206, R("4-6", "10"), 4, 7, NULL },
        { NULL, "7-9", 0, 206, R("7-9", "10"), 7, 10, NULL }, { 0 },
    };
    for (size_t n = 0; n <= 6; n++) {
        world *w = new_world(steps);
        sft_error err;
        sfti_fetch fetch = { .begin = 0, .end = 10 };
        w->script.fail_at = n;
        w->remote.options.retries = 3;
        assert_int_equal(fetch_range(w, &fetch, &err), n < 6 ? SFT_REMOTE_TRANSPORT : SFT_OK);
        assert_int_equal(w->script.sent, n < 6 ? n + 1 : 6);
        if (n < 6) assert_string_equal(err.message, "the script says so");
        if (n < 6) assert_null(fetch.final_url);
        sfti_fetch_free(&fetch);
        free_world(w);
    }
}

/* ── Whole answers ── */

typedef struct ask_row {
    const char *name;
    bool post, same_host, missing_ok;
    uint64_t most;
    step steps[4];
    sft_code code;
    const char *message, *body;
} ask_row;

static const ask_row ask_rows[] = {
    { "200", false, false, false, 5, { { URL, NULL, 0, 200, "", 0, 0, "abcde" } }, SFT_OK, NULL,
      "abcde" },
    { "201", true, false, false, 5, { { URL, NULL, 0, 201, "", 0, 0, "abc" } }, SFT_OK, NULL,
      "abc" },
    { "too much", false, false, false, 4, { { URL, NULL, 0, 200, "", 0, 0, "abcde" } },
      SFT_FILE_TOO_LARGE, "at most 4 bytes", "" },
    { "too much, told", false, false, false, 4,
      { { URL, NULL, 0, 200, "Content-Length: 5", 0, 0, "abcde" } },
      SFT_FILE_TOO_LARGE, "at most 4 bytes", "" },
    { "404", false, false, true, 5, { { URL, NULL, 0, 404, "", 0, 0, "no" } }, SFT_OK, NULL, "no" },
    { "404, a failure", false, false, false, 5, { { URL, NULL, 0, 404, "", 0, 0, "no" } },
      SFT_NOT_FOUND, "no", "" },
    { "cut", false, false, false, 9,
      { { URL, NULL, SFT_REMOTE_NETWORK, 200, "", 0, 0, "abc" },
        { URL, NULL, 0, 200, "", 0, 0, "abcde" } }, SFT_OK, NULL, "abcde" },
    { "short, twice", false, false, false, 9,
      { { URL, NULL, 0, 200, "Content-Length: 5", 0, 0, "abc" },
        { URL, NULL, 0, 200, "Content-Length: 5", 0, 0, "abc" } },
      SFT_REMOTE_NETWORK, "cut off after 3 of 5", "" },
    { "gzip", false, false, false, 9,
      { { URL, NULL, 0, 200, "Content-Encoding: gzip", 0, 0, "abc" } },
      SFT_REMOTE_STATUS, "\"gzip\"", "" },
    { "to the same host", true, true, false, 9,
      { { URL, NULL, 0, 307, "Location: /x", 0, 0, "" },
        { "https://a.example/x", NULL, 0, 200, "", 0, 0, "abc" } }, SFT_OK, NULL, "abc" },
    { "to another one", false, true, false, 9,
      { { URL, NULL, 0, 302, "Location: https://b.example/?SECRET", 0, 0, "" } },
      SFT_REMOTE_REDIRECT, "redirected to https://b.example/?[...]: expected the same host", "" },
};

static void test_asks(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(ask_rows); i++) {
        const ask_row *row = &ask_rows[i];
        world *w = new_world(row->steps);
        sft_buffer body = { .alloc = w->remote.alloc };
        sfti_answer answer;
        sft_error err = SFT_ERROR_INIT;
        sfti_ask ask = { .accept = "application/json", .most = row->most, .total_ms = 9000,
                         .same_host = row->same_host, .missing_ok = row->missing_ok };
        if (row->post) ask.body = sft_span_cstr("[1]");
        sft_code code = sfti_http_ask(&w->target, &ask, &body, &answer, &err);
        if (code != row->code || (row->message && !strstr(err.message, row->message)))
            fail_msg("%s: %d, %s", row->name, code, err.message);
        assert_int_equal(body.len, strlen(row->body));
        assert_memory_equal(body.data, row->body, body.len);
        assert_int_equal(w->script.sent, w->script.count);
        assert_true(w->script.last.total_ms > 5000 && w->script.last.total_ms <= 9000);
        size_t last = w->script.sent - 1;
        assert_string_equal(w->script.methods[last], row->post ? "POST" : "GET");
        assert_string_equal(w->script.posts[last], row->post ? "[1]" : "");
        assert_non_null(strstr(w->script.headers[last], "accept: application/json\n"));
        bool typed = strstr(w->script.headers[last], "content-type: application/json\n") != NULL;
        assert_int_equal(typed, row->post);
        assert_null(strstr(w->script.headers[last], "range:"));
        sfti_answer_free(&answer);
        sft_buffer_free(&body);
        free_world(w);
    }
}

/* A wait that ends after total_ms is not begun. */
static void test_wait_beyond_total(void **state) {
    (void)state;
    static const step busy[] = { { URL, NULL, 0, 503, "Retry-After: 50", 0, 0, NULL }, { 0 } };
    world *w = new_world(busy);
    sft_buffer body = { .alloc = w->remote.alloc };
    sfti_ask ask = { .most = 9, .total_ms = 2000 };
    sfti_answer answer;
    sft_error err = SFT_ERROR_INIT;
    const uint64_t begin = sfti_os_now_ns();
    assert_int_equal(sfti_http_ask(&w->target, &ask, &body, &answer, &err), SFT_REMOTE_BUSY);
    assert_true(sfti_os_now_ns() - begin < UINT64_C(1000000000));
    assert_int_equal(w->script.sent, 1);
    sfti_answer_free(&answer);
    sft_buffer_free(&body);
    free_world(w);
}

/* 303 makes a GET of a POST. */
static void test_post_to_get(void **state) {
    (void)state;
    static const step steps[] = {
        { URL, NULL, 0, 303, "Location: /x", 0, 0, "" },
        { NULL, NULL, 0, 200, "", 0, 0, "a" }, { 0 },
    };
    world *w = new_world(steps);
    sft_buffer body = { .alloc = w->remote.alloc };
    sft_error err = SFT_ERROR_INIT;
    int status;
    sft_remote_request request = SFT_REMOTE_REQUEST_INIT;
    request.url = URL;
    request.body = sft_span_cstr("[1]");
    assert_int_equal(sft_remote_fetch(&w->remote, &request, &status, &body, &err), SFT_OK);
    assert_int_equal(status, 200);
    assert_string_equal(w->script.methods[0], "POST");
    assert_string_equal(w->script.methods[1], "GET");
    assert_string_equal(w->script.posts[1], "");
    sft_buffer_free(&body);
    free_world(w);
}

static void test_fetch(void **state) {
    (void)state;
    static const step missing[] = { { URL, NULL, 0, 404, "", 0, 0, "none" }, { 0 } };
    static const step denied[] = { { URL, NULL, 0, 403, "", 0, 0, "no" }, { 0 } };
    sft_error err = SFT_ERROR_INIT;
    sft_remote_request request = SFT_REMOTE_REQUEST_INIT;
    int status = -1;
    request.url = URL;
    world *w = new_world(missing);
    sft_buffer body = { .alloc = w->remote.alloc };
    assert_int_equal(sft_remote_fetch(&w->remote, &request, &status, &body, &err), SFT_OK);
    assert_int_equal(status, 404);
    assert_int_equal(body.len, 4);
    free_world(w);
    w = new_world(denied);
    assert_int_equal(sft_remote_fetch(&w->remote, &request, &status, &body, &err),
                     SFT_REMOTE_DENIED);
    assert_int_equal(status, 403);
    request.accept = "text/plain\r\nx-more: 1";
    assert_int_equal(sft_remote_fetch(&w->remote, &request, &status, &body, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(w->script.sent, 1);
    request.accept = NULL;
    request.size = 1;
    assert_int_equal(sft_remote_fetch(&w->remote, &request, &status, &body, &err),
                     SFT_BAD_ARGUMENT);
    sft_buffer_free(&body);
    free_world(w);
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
    static const step steps[] = {
        { NULL, NULL, 0, 503, "Retry-After: 0", 0, 0, "busy hf_SECRETTOKEN" },
        { NULL, NULL, TO("/1?a=%41SECRET") }, { NULL, NULL, 0, 401, "", 0, 0, "ASECRET" }, { 0 },
    };
    for (size_t n = 0;; n++) {
        assert_true(n < 100);
        world *w = new_world(steps);
        failing memory = { n };
        sft_error err;
        sfti_fetch fetch = { .begin = 0, .end = 10 };
        w->remote.alloc = (sft_allocator){ resize_until, &memory };
        w->scheme.authorize = add_token;
        sft_code code = fetch_range(w, &fetch, &err);
        assert_null(strstr(err.message, "SECRET"));
        sfti_fetch_free(&fetch);
        free_world(w);
        if (code == SFT_REMOTE_DENIED) break;
        assert_true(code == SFT_OUT_OF_MEMORY || code == SFT_REMOTE_REDIRECT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redirects), cmocka_unit_test(test_authorization),
        cmocka_unit_test(test_local), cmocka_unit_test(test_explain),
        cmocka_unit_test(test_expired), cmocka_unit_test(test_if_match),
        cmocka_unit_test(test_secrets), cmocka_unit_test(test_request),
        cmocka_unit_test(test_accounts), cmocka_unit_test(test_no_retries),
        cmocka_unit_test(test_each_send_fails), cmocka_unit_test(test_asks),
        cmocka_unit_test(test_wait_beyond_total), cmocka_unit_test(test_post_to_get),
        cmocka_unit_test(test_fetch), cmocka_unit_test(test_no_memory),
    };
    fill_content();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
