/* Ranges over a transport that plays a script: what each answer to one means. */
#include "unit/http_case.h"

/* ── A remote and a target ── */

static void assert_got(const sfti_fetch *fetch) {
    assert_memory_equal(into, content + fetch->begin, fetch->got);
    for (size_t i = fetch->got; i < fetch->got + 64 && i < FILE_SIZE; i++)
        assert_int_equal(into[i], 0x55);
}

/* ── What each answer to a range means ── */

typedef struct range_row {
    const char *name;
    uint64_t begin, end;
    bool first, whole;
    const char *same; /* headers, or NULL */
    step steps[5];
    sft_code code;
    const char *message; /* in it */
    size_t got;
    uint64_t total;
    bool no_ranges;
    size_t unwanted;
} range_row;

static const range_row range_rows[] = {
    { "206 as asked", 100, 200, false, false, R("0-9", "1000"),
      { { URL, "100-199", 0, 206, R("100-199", "1000") "\nContent-Length: 100", 100, 200, 0 } },
      SFT_OK, NULL, 100, 1000, false, 0 },
    { "206 of the end", 900, 1100, true, false, NULL,
      { { URL, "900-1099", 0, 206, R("900-999", "1000"), 900, 1000, 0 } },
      SFT_OK, NULL, 100, 1000, false, 0 },
    { "206 that begins before", 100, 200, false, false, NULL,
      { { URL, "100-199", 0, 206, R("50-199", "1000"), 50, 200, 0 } },
      SFT_OK, NULL, 100, 1000, false, 0 },
    { "206 of more, aligned", 4100, 4200, false, false, NULL,
      { { URL, "4100-4199", 0, 206, R("4096-8191", "10000"), 4096, 8192, 0 } },
      SFT_OK, NULL, 100, 10000, false, 0 },
    { "206 of much more is stopped", 0, 100, false, false, NULL,
      { { URL, "0-99", 0, 206, R("0-999999", "1000000"), 0, 1000000, 0 } },
      SFT_OK, NULL, 100, 1000000, false, 1 },
    { "206 of less is asked for again", 0, 300, false, false, NULL,
      { { URL, "0-299", 0, 206, R("0-99", "1000"), 0, 100, 0 },
        { URL, "100-299", 0, 206, R("100-249", "1000"), 100, 250, 0 },
        { URL, "250-299", 0, 206, R("250-299", "1000"), 250, 300, 0 } },
      SFT_OK, NULL, 300, 1000, false, 0 },
    { "206 of less, then another file", 0, 300, false, false, R("0-9", "1000"),
      { { URL, "0-299", 0, 206, R("0-99", "1000"), 0, 100, 0 },
        { URL, "100-299", 0, 206, "ETag:\"y\"\nContent-Range: bytes 100-299/1000", 100, 300, 0 } },
      SFT_REMOTE_CHANGED, "changed", 0, 0, false, 1 },
    { "206 that begins after", 100, 200, false, false, NULL,
      { { URL, "100-199", 0, 206, R("101-199", "1000"), 101, 200, 0 } },
      SFT_REMOTE_RANGE, "found bytes 101-199", 0, 0, false, 1 },
    { "206 that ends before", 100, 200, false, false, NULL,
      { { URL, "100-199", 0, 206, R("0-99", "1000"), 0, 100, 0 } },
      SFT_REMOTE_RANGE, "found bytes 0-99", 0, 0, false, 1 },
    { "206 with another total", 100, 200, false, false, R("0-9", "1000"),
      { { URL, NULL, 0, 206, R("100-199", "1001"), 100, 200, 0 } },
      SFT_REMOTE_CHANGED, "changed", 0, 0, false, 1 },
    { "206 without Content-Range", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 206, X "Content-Length: 100", 100, 200, 0 } },
      SFT_REMOTE_RANGE, "206 without Content-Range", 0, 0, false, 1 },
    { "206 with a bad Content-Range", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 206, X "Content-Range: bytes 199-100/1000", 100, 200, 0 } },
      SFT_REMOTE_RANGE, "without sense", 0, 0, false, 1 },
    { "206 with two of them", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 206, R("100-199", "1000") "\nContent-Range: bytes 0-99/1000", 100, 200,
          0 } },
      SFT_REMOTE_RANGE, "without sense", 0, 0, false, 1 },
    { "206 of another length", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 206, R("100-199", "1000") "\nContent-Length: 99", 100, 199, 0 } },
      SFT_REMOTE_RANGE, "contradicts", 0, 0, false, 1 },
    { "206 with too many bytes", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 206, R("100-199", "1000"), 100, 2000, 0 } },
      SFT_REMOTE_RANGE, "more bytes", 0, 0, false, 1 },
    { "206 multipart", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 206, X "Content-Type: multipart/byteranges; boundary=x", 0, 0, "--x" } },
      SFT_REMOTE_RANGE, "multipart", 0, 0, false, 1 },
    { "206 of unknown total", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 206, R("100-199", "*"), 100, 200, 0 } },
      SFT_OK, NULL, 100, NONE, false, 0 },
    { "206 of unknown total to the end", 100, 200, true, false, NULL,
      { { URL, "100-199", 0, 206, R("100-149", "*"), 100, 150, 0 },
        { URL, "150-199", 0, 416, "Content-Range: bytes */150", 0, 0, 0 } },
      SFT_OK, NULL, 50, 150, false, 1 },
    { "200 with Content-Range", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 200, R("100-199", "1000"), 100, 200, 0 } },
      SFT_OK, NULL, 100, 1000, false, 0 },
    { "200 with another Content-Range", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 200, R("0-999", "3000000"), 0, 1000, 0 } },
      SFT_OK, NULL, 100, 3000000, false, 0 },
    { "200, the first bytes", 0, 1000, true, false, NULL,
      { { URL, "0-999", 0, 200, X "Content-Length: 3000000", 0, 3000000, 0 } },
      SFT_OK, NULL, 1000, 3000000, true, 1 },
    { "200, the first bytes of a small file", 0, 1000, true, false, NULL,
      { { URL, NULL, 0, 200, X "Content-Length: 10", 0, 10, 0 } },
      SFT_OK, NULL, 10, 10, true, 0 },
    { "200, an empty file", 0, 1000, true, false, NULL,
      { { URL, NULL, 0, 200, X "Content-Length: 0", 0, 0, 0 } },
      SFT_OK, NULL, 0, 0, true, 0 },
    { "200 without a length", 0, 1000, true, false, NULL,
      { { URL, NULL, 0, 200, "Transfer-Encoding: chunked", 0, 300, 0 } },
      SFT_OK, NULL, 300, 300, true, 0 },
    { "200 without a length, much more", 0, 1000, true, false, NULL,
      { { URL, NULL, 0, 200, "Transfer-Encoding: chunked", 0, 300000, 0 } },
      SFT_OK, NULL, 1000, NONE, true, 1 },
    { "200, of 1 MiB", 500000, 500100, false, false, NULL,
      { { URL, NULL, 0, 200, X "Content-Length: 1048576", 0, 1048576, 0 } },
      SFT_OK, NULL, 100, 1048576, true, 1 },
    { "200, of more", 500000, 500100, false, false, NULL,
      { { URL, NULL, 0, 200, X "Content-Length: 1048577", 0, 1048577, 0 } },
      SFT_REMOTE_RANGE, "gives no ranges", 0, 0, false, 1 },
    { "200, of more, though that will do", 500000, 500100, false, true, NULL,
      { { URL, NULL, 0, 200, X "Content-Length: 1048577", 0, 1048577, 0 } },
      SFT_OK, NULL, 100, 1048577, true, 1 },
    { "200 without a length, not the first bytes", 500, 600, false, false, NULL,
      { { URL, NULL, 0, 200, "Transfer-Encoding: chunked", 0, 1000, 0 } },
      SFT_REMOTE_RANGE, "gives no ranges", 0, 0, false, 1 },
    { "200 of a file that was known to be small", 500, 600, false, false, "Content-Range: bytes "
      "0-9/1000", { { URL, NULL, 0, 200, "Transfer-Encoding: chunked", 0, 1000, 0 } },
      SFT_OK, NULL, 100, 1000, true, 1 },
    { "200 of another file", 0, 100, false, false, R("0-9", "1000"),
      { { URL, NULL, 0, 200, X "Content-Length: 1001", 0, 1001, 0 } },
      SFT_REMOTE_CHANGED, "changed", 0, 0, false, 1 },
    { "gzip", 0, 100, true, false, NULL,
      { { URL, NULL, 0, 206, R("0-99", "1000") "\nContent-Encoding: gzip", 0, 100, 0 } },
      SFT_REMOTE_RANGE, "Content-Encoding \"gzip\"", 0, 0, false, 1 },
    { "gzip, 200", 0, 100, true, false, NULL,
      { { URL, NULL, 0, 200, "Content-Encoding: br", 0, 100, 0 } },
      SFT_REMOTE_RANGE, "Content-Encoding \"br\"", 0, 0, false, 1 },
    { "stored as gzip", 0, 100, true, false, NULL,
      { { URL, NULL, 0, 206, R("0-99", "1000") "\nX-Goog-Stored-Content-Encoding: gzip", 0, 100,
          0 } },
      SFT_REMOTE_RANGE, "Content-Encoding \"gzip\"", 0, 0, false, 1 },
    { "another ETag", 100, 200, false, false, R("0-9", "1000"),
      { { URL, NULL, 0, 206, "ETag:\"y\"\nContent-Range: bytes 100-199/1000", 100, 200, 0 } },
      SFT_REMOTE_CHANGED, "changed", 0, 0, false, 1 },
    { "412", 100, 200, false, false, R("0-9", "1000"),
      { { URL, NULL, 0, 412, "", 0, 0, "no" } },
      SFT_REMOTE_CHANGED, "changed", 0, 0, false, 0 },
    { "416 at the end", 1000, 1100, false, false, R("0-9", "1000"),
      { { URL, NULL, 0, 416, "Content-Range: bytes */1000", 0, 0, "no" } },
      SFT_OK, NULL, 0, 1000, false, 1 },
    { "416 of an empty file", 0, 100, true, false, NULL,
      { { URL, NULL, 0, 416, "Content-Range: bytes */0", 0, 0, "no" } },
      SFT_OK, NULL, 0, 0, false, 1 },
    { "416 of a file that has shrunk", 900, 1000, false, false, R("0-9", "1000"),
      { { URL, NULL, 0, 416, "Content-Range: bytes */500", 0, 0, "no" } },
      SFT_REMOTE_CHANGED, "changed", 0, 0, false, 1 },
    { "416 inside the file", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 416, "Content-Range: bytes */500", 0, 0, "no" } },
      SFT_REMOTE_RANGE, "status 416", 0, 0, false, 1 },
    { "416 that tells nothing", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 416, "", 0, 0, "no\nmore" } },
      SFT_REMOTE_STATUS, "status 416: no", 0, 0, false, 0 },
    { "204", 100, 200, false, false, NULL, { { URL, NULL, 0, 204, "", 0, 0, 0 } },
      SFT_REMOTE_STATUS, "status 204", 0, 0, false, 0 },
    { "304", 100, 200, false, false, NULL, { { URL, NULL, 0, 304, "", 0, 0, 0 } },
      SFT_REMOTE_STATUS, "status 304", 0, 0, false, 0 },
    { "302 to nowhere", 100, 200, false, false, NULL, { { URL, NULL, 0, 302, "", 0, 0, 0 } },
      SFT_REMOTE_STATUS, "status 302", 0, 0, false, 0 },
    { "401", 100, 200, false, false, NULL, { { URL, NULL, 0, 401, "", 0, 0, "who?" } },
      SFT_REMOTE_DENIED, "status 401, not without authorization: who?", 0, 0, false, 0 },
    { "403", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 403, "", 0, 0, "<Error><Code>AccessDenied</Code></Error>" } },
      SFT_REMOTE_DENIED, "status 403, not allowed: AccessDenied", 0, 0, false, 0 },
    { "404", 100, 200, false, false, NULL, { { URL, NULL, 0, 404, "", 0, 0, "" } },
      SFT_NOT_FOUND, "status 404, not there", 0, 0, false, 0 },
    { "410", 100, 200, false, false, NULL, { { URL, NULL, 0, 410, "", 0, 0, "" } },
      SFT_NOT_FOUND, "status 410", 0, 0, false, 0 },
    { "407", 100, 200, false, false, NULL, { { URL, NULL, 0, 407, "", 0, 0, "" } },
      SFT_REMOTE_STATUS, "the proxy", 0, 0, false, 0 },
    { "418", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 418, "X-Error-Message: a teapot", 0, 0, "x" } },
      SFT_REMOTE_STATUS, "status 418: a teapot", 0, 0, false, 0 },
    { "503, then well", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 503, "Retry-After: 0", 0, 0, "busy" },
        { URL, "100-199", 0, 206, R("100-199", "1000"), 100, 200, 0 } },
      SFT_OK, NULL, 100, 1000, false, 0 },
    { "503, twice", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 503, "Retry-After: 0", 0, 0, "busy" },
        { URL, NULL, 0, 503, "Retry-After: 0", 0, 0, "busy" } },
      SFT_REMOTE_BUSY, "status 503, the server is busy: busy (2 tries)", 0, 0, false, 0 },
    { "500, twice", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 500, "Retry-After: 0", 0, 0, "" },
        { URL, NULL, 0, 502, "Retry-After: 0", 0, 0, "" } },
      SFT_REMOTE_STATUS, "status 502 (2 tries)", 0, 0, false, 0 },
    { "429 for long", 100, 200, false, false, NULL,
      { { URL, NULL, 0, 429, "RateLimit: \"resolvers\";r=0;t=3900", 0, 0, "" } },
      SFT_REMOTE_BUSY, "in 66 minutes", 0, 0, false, 0 },
    { "cut, then on from there", 100, 3100, false, false, NULL,
      { { URL, "100-3099", SFT_REMOTE_NETWORK, 206, R("100-3099", "5000"), 100, 1700, 0 },
        { URL, "1700-3099", 0, 206, R("1700-3099", "5000"), 1700, 3100, 0 } },
      SFT_OK, NULL, 3000, 5000, false, 0 },
    { "too short, then on from there", 100, 3100, false, false, NULL,
      { { URL, "100-3099", 0, 206, R("100-3099", "5000"), 100, 1700, 0 },
        { URL, "1700-3099", 0, 206, R("1700-3099", "5000"), 1700, 3100, 0 } },
      SFT_OK, NULL, 3000, 5000, false, 0 },
    { "cut before a byte of it, twice", 100, 3100, false, false, NULL,
      { { URL, "100-3099", SFT_REMOTE_NETWORK, 206, R("100-3099", "5000"), 0, 0, 0 },
        { URL, "100-3099", SFT_REMOTE_NETWORK, 0, NULL, 0, 0, 0 } },
      SFT_REMOTE_NETWORK, "lost (2 tries)", 0, 0, false, 0 },
    { "too short, twice", 100, 200, false, false, NULL,
      { { URL, "100-199", 0, 206, R("100-199", "5000"), 100, 150, 0 },
        { URL, "150-199", 0, 206, R("150-199", "5000"), 150, 160, 0 } },
      SFT_REMOTE_NETWORK, "cut off at byte 160, before byte 200", 0, 0, false, 0 },
    { "cut after much, again and again", 0, 300000, false, false, NULL,
      { { URL, "0-299999", SFT_REMOTE_NETWORK, 206, R("0-299999", "300000"), 0, 80000, 0 },
        { URL, "80000-299999", SFT_REMOTE_NETWORK, 206, R("80000-299999", "300000"), 80000,
          160000, 0 },
        { URL, "160000-299999", SFT_REMOTE_NETWORK, 206, R("160000-299999", "300000"), 160000,
          240000, 0 },
        { URL, "240000-299999", 0, 206, R("240000-299999", "300000"), 240000, 300000, 0 } },
      SFT_OK, NULL, 300000, 300000, false, 0 },
    { "cut, then another file: begun again", 100, 3100, false, false, NULL,
      { { URL, "100-3099", SFT_REMOTE_NETWORK, 206, "ETag:\"old\"\nContent-Range: bytes "
          "100-3099/5000", 100, 1700, 0 },
        { URL, "1700-3099", 0, 206, R("1700-3099", "5000"), 1700, 3100, 0 },
        { URL, "100-3099", 0, 206, R("100-3099", "5000"), 100, 3100, 0 } },
      SFT_OK, NULL, 3000, 5000, false, 1 },
    { "cut, then another file, and another", 100, 3100, false, false, NULL,
      { { URL, "100-3099", SFT_REMOTE_NETWORK, 206, "ETag:\"1\"\nContent-Range: bytes "
          "100-3099/5000", 100, 1700, 0 },
        { URL, "1700-3099", 0, 206, "ETag:\"2\"\nContent-Range: bytes 1700-3099/5000", 1700, 3100,
          0 },
        { URL, "100-3099", SFT_REMOTE_NETWORK, 206, "ETag:\"3\"\nContent-Range: bytes "
          "100-3099/5000", 100, 1700, 0 },
        { URL, "1700-3099", 0, 206, "ETag:\"4\"\nContent-Range: bytes 1700-3099/5000", 1700, 3100,
          0 } },
      SFT_REMOTE_CHANGED, "changed", 0, 0, false, 2 },
    { "cut, then another file, of which parts were given out", 100, 3100, false, false,
      R("0-9", "5000"),
      { { URL, "100-3099", SFT_REMOTE_NETWORK, 206, R("100-3099", "5000"), 100, 1700, 0 },
        { URL, "1700-3099", 0, 206, "ETag:\"y\"\nContent-Range: bytes 1700-3099/5000", 1700, 3100,
          0 } },
      SFT_REMOTE_CHANGED, "changed", 0, 0, false, 1 },
    { "200, cut, then on from there", 0, 3000, true, false, NULL,
      { { URL, "0-2999", SFT_REMOTE_NETWORK, 200, X "Content-Length: 5000", 0, 1700, 0 },
        { URL, "1700-2999", 0, 200, X "Content-Length: 5000", 0, 5000, 0 } },
      SFT_OK, NULL, 3000, 5000, true, 0 },
    { "a failure whose body is cut", 0, 100, true, false, NULL,
      { { URL, NULL, SFT_REMOTE_NETWORK, 404, "Content-Length: 99", 0, 0, "no such" } },
      SFT_NOT_FOUND, "no such", 0, 0, false, 0 },
    { "another failure is not tried again", 0, 100, true, false, NULL,
      { { URL, NULL, SFT_REMOTE_TLS, 0, NULL, 0, 0, NULL } },
      SFT_REMOTE_TLS, "lost", 0, 0, false, 0 },
};

static void check_range(const range_row *row) {
    world *w = new_world(row->steps);
    sfti_answer same;
    sft_error err;
    sfti_fetch fetch = { .begin = row->begin, .end = row->end, .first = row->first };
    w->remote.options.whole = row->whole;
    if (row->same) {
        same = answer_with(row->same);
        fetch.same = &same;
    }
    sft_code code = fetch_range(w, &fetch, &err);
    if (code != row->code || (row->message && !strstr(err.message, row->message)))
        fail_msg("%s: %d, %s", row->name, code, err.message);
    if (!code) {
        if (fetch.got != row->got || fetch.total != row->total || fetch.no_ranges != row->no_ranges)
            fail_msg("%s: got %zu of %llu", row->name, fetch.got, (unsigned long long)fetch.total);
        assert_string_equal(fetch.final_url, URL);
        assert_got(&fetch);
    }
    if (w->script.unwanted != row->unwanted || w->script.sent != w->script.count)
        fail_msg("%s: %zu unwanted, %zu of %zu sent", row->name, w->script.unwanted,
                 w->script.sent, w->script.count);
    assert_int_equal(w->remote.sums.requests, w->script.sent);
    sfti_fetch_free(&fetch);
    if (row->same) sfti_answer_free(&same);
    free_world(w);
}

static void test_ranges(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(range_rows); i++) check_range(&range_rows[i]);
}

/* Whatever is asked, a byte of it. */
static sft_code play_a_byte(void *ctx, const sft_http_request *request,
                            const sft_http_receiver *receiver, sft_error *err) {
    size_t *sent = ctx, at = (*sent)++;
    char range[64];
    (void)request, (void)err;
    snprintf(range, sizeof range, "bytes %zu-%zu/1000000", at, at);
    sft_pair pair = { sft_span_cstr("content-range"), sft_span_cstr(range) };
    if (receiver->head(receiver->ctx, 206, &pair, 1))
        (void)receiver->body(receiver->ctx, content + at, 1);
    return SFT_OK;
}

static void test_little_by_little(void **state) {
    (void)state;
    static const step none[] = { { 0 } };
    static const sft_transport_vtable table = { sizeof table, play_a_byte, close_nothing };
    const struct { uint64_t end; sft_code code; size_t sent; } rows[] = {
        { 10, SFT_OK, 10 }, { 1000, SFT_REMOTE_RANGE, 17 }, { 200000, SFT_REMOTE_RANGE, 20 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t sent = 0;
        world *w = new_world(none);
        sft_error err;
        sfti_fetch fetch = { .begin = 0, .end = rows[i].end };
        w->remote.transport = (sft_transport){ &sent, &table };
        assert_int_equal(fetch_range(w, &fetch, &err), rows[i].code);
        assert_int_equal(sent, rows[i].sent);
        assert_got(&fetch);
        sfti_fetch_free(&fetch);
        free_world(w);
    }
}

/* Cut after each number of bytes. */
static void test_cut_everywhere(void **state) {
    (void)state;
    for (size_t k = 0; k < 100; k += 7) {
        char range[32], lines[64];
        snprintf(range, sizeof range, "%zu-109", 10 + k);
        snprintf(lines, sizeof lines, "Content-Range: bytes %zu-109/500", 10 + k);
        step steps[] = {
            { URL, "10-109", SFT_REMOTE_NETWORK, 206, "Content-Range: bytes 10-109/500", 10,
              10 + k, NULL },
            { URL, range, 0, 206, lines, 10 + k, 110, NULL }, { 0 },
        };
        world *w = new_world(steps);
        sft_error err;
        sfti_fetch fetch = { .begin = 10, .end = 110 };
        assert_int_equal(fetch_range(w, &fetch, &err), SFT_OK);
        assert_int_equal(fetch.got, 100);
        assert_got(&fetch);
        assert_int_equal(w->remote.sums.retries, 1);
        sfti_fetch_free(&fetch);
        free_world(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges), cmocka_unit_test(test_little_by_little),
        cmocka_unit_test(test_cut_everywhere),
    };
    fill_content();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
