/* Remote files over a transport in memory: what is sent for what is read, and what becomes of it
 * when requests fail, signed URLs expire, files change, and folders of headers are strangers'. */
#define _GNU_SOURCE
#include "unit/remote_web.h"
#include "safetensors_io.h"
#include "safetensors_remote.h"
#include "unit/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define FILE_BYTES (40 * MIB + 123)
#define URL "https://files.test/model.bin"

static unsigned char *file_bytes;
static unsigned char *buffer;

static int make_bytes(void **state) {
    (void)state;
    file_bytes = web_make_bytes(FILE_BYTES);
    buffer = malloc(FILE_BYTES);
    return buffer ? 0 : -1;
}

static int free_bytes(void **state) {
    (void)state;
    free(file_bytes);
    free(buffer);
    return 0;
}

static web *web_new(uint64_t size) {
    web *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->bytes = file_bytes;
    w->size = size;
    w->etag = "\"one\"";
    assert_int_equal(sfti_os_mutex_init(&w->mutex), 0);
    return w;
}

static void web_free(web *w) {
    assert_int_equal(w->at_once, 0);
    sfti_os_mutex_free(&w->mutex);
    free(w);
}

static sft_remote *remote_with(web *w, const sft_remote_options *given) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_transport transport = { w, &web_transport_vtable };
    sft_remote *remote = NULL;
    if (given) options = *given;
    options.transport = &transport;
    if (options.retries == 0) options.retries = UINT32_MAX;
    assert_int_equal(sft_remote_open(&options, &remote, NULL), SFT_OK);
    return remote;
}

static sft_code open_source(sft_remote *remote, const char *name, sft_source *out,
                            sft_error *err) {
    const sft_files *files = sft_remote_files(remote);
    return files->vtable->open(files->ctx, name, NULL, out, err);
}

static sft_code read_source(const sft_source *source, uint64_t offset, size_t len,
                            sft_error *err) {
    size_t got = 0;
    sft_code code = sft_source_read(source, offset, buffer, len, &got, err);
    if (code) return code;
    uint64_t left = offset < source->size ? source->size - offset : 0;
    assert_int_equal(got, len < left ? len : left);
    assert_true(web_is_right(buffer, offset, got));
    return SFT_OK;
}

static void read_right(const sft_source *source, uint64_t offset, size_t len) {
    sft_error err = SFT_ERROR_INIT;
    sft_code code = read_source(source, offset, len, &err);
    if (code) print_message("%s\n", err.message);
    assert_int_equal(code, SFT_OK);
}

/* ── What is sent ── */

static void test_open(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_remote *remote = remote_with(w, NULL);
    sft_remote_claim claim;
    sft_source source;
    (void)state;
    assert_false(sft_remote_claims(remote, URL, &claim));
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    assert_int_equal(source.size, FILE_BYTES);
    assert_int_equal(w->requests, 1);
    assert_string_equal(w->log[0].range, "bytes=0-131071");
    read_right(&source, 0, 131072);
    read_right(&source, 77, 1000);
    assert_int_equal(w->requests, 1);
    read_right(&source, 8, 131072 + 5000); /* the rest of a longer header */
    assert_int_equal(w->requests, 2);
    assert_string_equal(w->log[1].range, "bytes=131072-136079");
    read_right(&source, FILE_BYTES - 10, 1000);
    read_right(&source, FILE_BYTES, 10);
    assert_true(sft_remote_claims(remote, URL, &claim));
    assert_int_equal(claim.bytes, FILE_BYTES);
    assert_string_equal(claim.etag, "\"one\"");
    assert_false(claim.local);
    sft_source_close(&source);
    assert_int_equal(sft_remote_sums_of(remote).requests, 3);
    sft_remote_close(remote);
    web_free(w);
}

static void test_sizes(void **state) {
    static const uint64_t sizes[] = { 0, 1, 1000, 131071, 131072, 131073, 200000 };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int ranges = 0; ranges < 2; ranges++) {
            web *w = web_new(sizes[i]);
            w->no_ranges = !ranges;
            sft_remote *remote = remote_with(w, NULL);
            sft_source source;
            assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
            assert_int_equal(source.size, sizes[i]);
            read_right(&source, 0, 300000);
            read_right(&source, sizes[i] / 2, 300000);
            assert_true(w->requests <= 3);
            sft_source_close(&source);
            sft_remote_close(remote);
            web_free(w);
        }
    }
}

static void test_large(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_remote *remote = remote_with(w, NULL);
    sft_source source;
    (void)state;
    w->delay_ms = 5;
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    read_right(&source, 0, FILE_BYTES);
    assert_int_equal(w->sent, FILE_BYTES);
    assert_in_range(w->requests, 6, 12);
    assert_in_range(w->at_once_most, 2, 8);
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

static void test_announced(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_remote *remote = remote_with(w, NULL);
    sft_source source;
    sft_run run = { 0, FILE_BYTES };
    (void)state;
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    sft_source_expect(&source, &run, 1);
    for (size_t at = 0; at < FILE_BYTES; at += 200 * KIB) read_right(&source, at, 200 * KIB);
    assert_int_equal(w->sent, FILE_BYTES);
    assert_in_range(w->requests, 8, 16);
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

/* No more requests at once than connections, whoever reads. */
typedef struct random_reader {
    const sft_source *source;
    uint64_t seed;
    size_t wrong;
} random_reader;

static void read_at_random(void *ctx) {
    random_reader *r = ctx;
    unsigned char *bytes = malloc(12 * MIB);
    for (int turn = 0; turn < 40; turn++) {
        r->seed = r->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t offset = (r->seed >> 20) % FILE_BYTES;
        size_t len = (size_t)(r->seed >> 40) % (turn % 4 ? 90000 : 12 * MIB), got = 0;
        sft_run run = { offset, len };
        if (turn % 3 == 0) sft_source_expect(r->source, &run, 1);
        if (sft_source_read(r->source, offset, bytes, len, &got, NULL)
            || !web_is_right(bytes, offset, got))
            r->wrong++;
    }
    free(bytes);
}

static void test_threads(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_source source;
    os_thread threads[6];
    random_reader readers[6];
    (void)state;
    options.connections = 3;
    w->redirects = true;
    w->expires_after = 4;
    w->delay_ms = 1;
    sft_remote *remote = remote_with(w, &options);
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    for (size_t i = 0; i < 6; i++) {
        readers[i] = (random_reader){ &source, i + 1, 0 };
        assert_int_equal(sfti_os_thread_start(&threads[i], read_at_random, &readers[i]), 0);
    }
    for (size_t i = 0; i < 6; i++) sfti_os_thread_join(&threads[i]);
    for (size_t i = 0; i < 6; i++) assert_int_equal(readers[i].wrong, 0);
    assert_true(w->at_once_most <= 3);
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

/* ── Signed URLs ── */

static void test_signed(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_remote *remote = remote_with(w, NULL);
    sft_source source;
    (void)state;
    w->redirects = true;
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    for (size_t at = MIB; at < 10 * MIB; at += 2 * MIB) read_right(&source, at, 100 * KIB);
    assert_int_equal(w->resolved, 1); /* ranges go where the first one was found */
    w->expires_after = 1;
    for (size_t i = 0; i < 3; i++) read_right(&source, 20 * MIB, 100 * KIB);
    assert_int_equal(w->resolved, 3);
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

static void test_denied(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_remote *remote = remote_with(w, NULL);
    sft_source source;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    w->redirects = true;
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    size_t before = w->requests;
    w->status = 403;
    assert_int_equal(read_source(&source, 20 * MIB, 100 * KIB, &err), SFT_REMOTE_DENIED);
    assert_null(strstr(err.message, "sig="));
    assert_true(w->requests - before <= 2);
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

/* ── Files that change ── */

static void test_changed(void **state) {
    (void)state;
    for (int step = 0; step < 3; step++) {
        web *w = web_new(FILE_BYTES);
        sft_remote *remote = remote_with(w, NULL);
        sft_source source;
        sft_error err = SFT_ERROR_INIT;
        sft_run run = { MIB, 20 * MIB };
        w->change_at = 2;
        assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
        if (step == 1) sft_source_expect(&source, &run, 1);
        size_t len = step == 2 ? 20 * MIB : 100;
        assert_int_equal(read_source(&source, MIB, len, &err), SFT_REMOTE_CHANGED);
        assert_int_equal(err.code, SFT_REMOTE_CHANGED);
        assert_true(err.message[0]);
        read_right(&source, 0, 1000); /* what was read before stays */
        sft_source_close(&source);
        sft_remote_close(remote);
        web_free(w);
    }
}

static void test_shrunk(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_remote *remote = remote_with(w, NULL);
    sft_source source;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    w->size = 30 * MIB;
    assert_int_equal(read_source(&source, 29 * MIB + 900 * KIB, 200 * KIB, &err),
                     SFT_REMOTE_CHANGED);
    assert_int_equal(read_source(&source, 35 * MIB, 10, &err), SFT_REMOTE_CHANGED);
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

/* ── Servers without ranges ── */

static void play_no_ranges(uint64_t size, bool whole, sft_code expected) {
    web *w = web_new(size);
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_source source;
    sft_error err = SFT_ERROR_INIT;
    options.whole = whole;
    w->no_ranges = true;
    sft_remote *remote = remote_with(w, &options);
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    assert_int_equal(source.size, size);
    assert_true(w->sent <= 320 * KIB); /* it does not wait for what it does not need */
    read_right(&source, 0, 128 * KIB);
    assert_int_equal(w->requests, 1);
    assert_int_equal(read_source(&source, size - 100, 100, &err), expected);
    if (expected) assert_int_equal(err.hint, SFT_HINT_REMOTE_DOWNLOAD);
    else read_right(&source, 0, size);
    assert_int_equal(w->requests, expected ? 1 : 2);
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

static void test_no_ranges(void **state) {
    (void)state;
    play_no_ranges(900 * KIB, false, SFT_OK);
    play_no_ranges(2 * MIB, false, SFT_REMOTE_RANGE);
    play_no_ranges(2 * MIB, true, SFT_OK);
}

/* ── Failures ── */

/* Each read is right or a clean failure, whichever request fails; afterwards all can be read. */
static size_t play_failure(size_t fail_at, size_t cut_at, bool forever, size_t *requests) {
    web *w = web_new(FILE_BYTES);
    sft_remote *remote = remote_with(w, NULL);
    static const sft_run runs[] = { { MIB, 9 * MIB }, { 12 * MIB, 70 }, { 20 * MIB, 12 * MIB },
                                    { 131072, 300 }, { 39 * MIB, 65 * KIB } };
    sft_source source = { 0 };
    size_t failed = 0;
    w->redirects = true;
    w->fail_at = fail_at;
    w->cut_at = cut_at;
    w->forever = forever;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = open_source(remote, URL, &source, &err);
    if (!code) sft_source_expect(&source, runs, 3);
    for (size_t i = 0; !code && i < 5; i++) {
        sft_error found = SFT_ERROR_INIT;
        sft_code one = read_source(&source, runs[i].offset, (size_t)runs[i].len, &found);
        if (!one) continue;
        assert_int_equal(one, SFT_REMOTE_NETWORK);
        assert_int_equal(found.code, one);
        assert_true(found.message[0]);
        failed++;
    }
    if (code) {
        assert_int_equal(code, SFT_REMOTE_NETWORK);
        assert_null(source.vtable);
        failed++;
    }
    if (!forever) {
        w->fail_at = w->cut_at = 0;
        if (code) assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
        for (size_t i = 0; i < 5; i++) read_right(&source, runs[i].offset, (size_t)runs[i].len);
    }
    sft_source_close(&source);
    sft_remote_close(remote);
    *requests = w->requests;
    web_free(w);
    return failed;
}

static void test_nth_fails(void **state) {
    size_t all, requests;
    (void)state;
    assert_int_equal(play_failure(0, 0, false, &all), 0);
    for (size_t nth = 1; nth <= all; nth++) {
        assert_true(play_failure(nth, 0, false, &requests) <= 1);
        assert_true(play_failure(nth, 0, true, &requests) >= 1 || nth > 6);
        assert_true(play_failure(0, nth, false, &requests) <= 1);
    }
}

/* With a retry nobody notices. */
static void test_retried(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_source source;
    (void)state;
    options.retries = 1;
    w->cut_at = 2;
    sft_remote *remote = remote_with(w, &options);
    assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
    read_right(&source, MIB, 3 * MIB);
    assert_string_equal(w->log[2].range, "bytes=2621440-4194303"); /* from where it was cut */
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

/* ── Stops ── */

static uint64_t stop_at;

static bool go_on_until(void *ctx) {
    (void)ctx;
    return sfti_os_now_ns() < stop_at;
}

static void test_stop(void **state) {
    static const size_t lens[] = { 100, 20 * MIB, 100, 20 * MIB };
    static const sft_wait until = { go_on_until, NULL };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
        web *w = web_new(FILE_BYTES);
        options.wait = i < 2 ? NULL : &until;
        sft_remote *remote = remote_with(w, &options);
        sft_source source;
        sft_error err = SFT_ERROR_INIT;
        sft_run run = { MIB, 20 * MIB };
        const char *more[] = { "https://files.test/2", "https://files.test/3" };
        const sft_files *files = sft_remote_files(remote);
        stop_at = UINT64_MAX;
        assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
        w->stuck = true;
        uint64_t begin = sfti_os_now_ns();
        stop_at = begin + 100000000;
        if (i < 2) sfti_os_on_wait(go_on_until, NULL);
        sft_source_expect(&source, &run, 1);
        files->vtable->expect(files->ctx, more, 2, NULL);
        assert_int_equal(read_source(&source, MIB, lens[i], &err), SFT_CANCELLED);
        sft_source_close(&source);
        sft_remote_close(remote);
        sfti_os_on_wait(NULL, NULL);
        assert_true(sfti_os_now_ns() - begin < UINT64_C(2000000000));
        web_free(w);
    }
}

/* ── Several files ── */

static void test_expect(void **state) {
    enum { FILES = 400 };
    static char names[FILES][64];
    static const char *paths[FILES];
    web *w = web_new(1000);
    sft_remote *remote = remote_with(w, NULL);
    const sft_files *files = sft_remote_files(remote);
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        (void)snprintf(names[i], sizeof names[i], "https://files.test/m-%zu", i);
        paths[i] = names[i];
    }
    w->delay_ms = 2;
    files->vtable->expect(files->ctx, paths, FILES, NULL);
    for (size_t i = 0; i < FILES; i++) {
        sft_source source;
        sft_remote_claim claim;
        assert_int_equal(open_source(remote, paths[i], &source, NULL), SFT_OK);
        read_right(&source, 0, 1000);
        assert_true(sft_remote_claims(remote, paths[i], &claim));
        sft_source_close(&source);
    }
    assert_int_equal(w->requests, FILES);
    assert_in_range(w->at_once_most, 2, 8);
    sft_remote_close(remote);
    web_free(w);
}

/* A failure is told once, to whoever opens; what nobody opens is closed with the remote. */
static void test_expect_fails(void **state) {
    web *w = web_new(1000);
    sft_remote *remote = remote_with(w, NULL);
    const sft_files *files = sft_remote_files(remote);
    const char *paths[] = { "https://files.test/a", "https://files.test/b" };
    sft_source source;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    w->fail_at = 1;
    files->vtable->expect(files->ctx, paths, 1, NULL);
    web_wait(w, 1);
    assert_int_equal(open_source(remote, paths[0], &source, &err), SFT_REMOTE_NETWORK);
    assert_true(err.message[0]);
    assert_int_equal(open_source(remote, paths[0], &source, &err), SFT_OK);
    sft_source_close(&source);
    files->vtable->expect(files->ctx, paths, 2, NULL);
    sft_remote_close(remote);
    web_free(w);
}

static void test_beneath(void **state) {
    static const char *const bad[] = {
        "https://files.test/m/../x", "https://files.test/m/x?y", "https://files.test/m/x#y",
        "https://files.test/m/%2e%2e/x", "https://files.test/m/./x", "https://files.test/m/a//b",
        "https://files.test/n/x", "https://files.test/m/http://evil/x", "https://files.test/m/a\\b",
        "https://files.test/m/",
    };
    web *w = web_new(1000);
    sft_remote *remote = remote_with(w, NULL);
    const sft_files *files = sft_remote_files(remote);
    sft_source source;
    (void)state;
    files->vtable->expect(files->ctx, bad, sizeof bad / sizeof *bad, "https://files.test/m");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(files->vtable->open(files->ctx, bad[i], "https://files.test/m", &source,
                                             &err), SFT_INDEX_PATH);
    }
    assert_int_equal(w->requests, 0);
    assert_int_equal(files->vtable->open(files->ctx, "https://files.test/m/a b/c",
                                         "https://files.test/m", &source, NULL), SFT_OK);
    assert_string_equal(w->log[0].url, "https://files.test/m/a%20b/c");
    sft_source_close(&source);
    sft_remote_close(remote);
    web_free(w);
}

/* ── Cached headers ── */

static sft_remote *remote_cached(web *w, bool offline) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    options.cache = temp_path("cache");
    options.offline = offline;
    return remote_with(w, &options);
}

static void cached_remove(void) {
    char command[600];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", temp_path("cache"));
    assert_int_equal(system(command), 0);
}

/* Open and read the header; the requests and bytes that took. */
static size_t open_cached(web *w, const char *url, size_t header, bool offline) {
    sft_remote *remote = remote_cached(w, offline);
    const char *name;
    sft_source source;
    size_t before = w->requests;
    w->sent = 0;
    assert_int_equal(sft_remote_name(remote, url, &name, NULL), SFT_OK);
    assert_int_equal(open_source(remote, name, &source, NULL), SFT_OK);
    assert_int_equal(source.size, w->size);
    read_right(&source, 0, header < 131072 ? header : 131072);
    if (header > 131072) read_right(&source, 131072, header - 131072);
    sft_source_close(&source);
    sft_remote_close(remote);
    return w->requests - before;
}

static void test_cache(void **state) {
    web *w = web_new(FILE_BYTES);
    unsigned char first[8];
    struct stat info;
    (void)state;
    memcpy(first, file_bytes, 8);
    assert_int_equal(open_cached(w, URL, 5000, false), 1);
    assert_int_equal(w->sent, 131072);
    assert_int_equal(stat(temp_path("cache"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(open_cached(w, URL, 5000, false), 1);
    assert_int_equal(w->sent, 1);
    assert_int_equal(open_cached(w, URL "?X-Amz-Signature=secret&sig=x", 5000, false), 1);
    assert_int_equal(w->sent, 1); /* the same file, however it is signed */
    assert_int_equal(open_cached(w, URL "?v=2", 5000, false), 1);
    assert_int_equal(w->sent, 131072); /* another one */
    assert_int_equal(open_cached(w, URL, 5000, true), 0);
    w->etag = "\"two\"";
    assert_int_equal(open_cached(w, URL, 5000, false), 2);
    assert_int_equal(w->sent, 131073);
    assert_int_equal(open_cached(w, URL, 5000, false), 1);
    assert_memory_equal(first, file_bytes, 8);
    cached_remove();
    web_free(w);
}

/* A header beyond the first request is kept once it was read. */
static void test_cache_long(void **state) {
    web *w = web_new(FILE_BYTES);
    unsigned char first[8], *own = malloc(FILE_BYTES);
    static const unsigned char len[8] = { 0x60, 0xe3, 0x16 }; /* 1,500,000 */
    sft_source source;
    size_t got;
    (void)state;
    memcpy(first, file_bytes, 8);
    memcpy(file_bytes, len, 8);
    for (int turn = 0; turn < 2; turn++) {
        sft_remote *remote = remote_cached(w, false);
        w->requests = 0;
        assert_int_equal(open_source(remote, URL, &source, NULL), SFT_OK);
        assert_int_equal(sft_source_read(&source, 131072, own, 1500008 - 131072, &got, NULL),
                         SFT_OK);
        assert_memory_equal(own, file_bytes + 131072, got);
        assert_int_equal(w->requests, turn == 0 ? 2 : 1);
        sft_source_close(&source);
        sft_remote_close(remote);
    }
    assert_string_equal(w->log[0].range, "bytes=0-0");
    memcpy(file_bytes, first, 8);
    cached_remove();
    free(own);
    web_free(w);
}

static void test_cache_offline(void **state) {
    web *w = web_new(FILE_BYTES);
    sft_source source;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    sft_remote *remote = remote_cached(w, true);
    assert_int_equal(open_source(remote, URL, &source, &err), SFT_REMOTE_OFFLINE);
    sft_remote_close(remote);
    assert_int_equal(open_cached(w, URL, 5000, false), 1);
    remote = remote_cached(w, true);
    assert_int_equal(open_source(remote, URL, &source, &err), SFT_OK);
    assert_int_equal(read_source(&source, 20 * MIB, 10, &err), SFT_REMOTE_OFFLINE);
    sft_source_close(&source);
    sft_remote_close(remote);
    assert_int_equal(w->requests, 1);
    cached_remove();
    web_free(w);
}

static const char *hub_offline(void *ctx, const char *name) {
    (void)ctx;
    return strcmp(name, "HF_HUB_OFFLINE") == 0 ? "1" : NULL;
}

/* The Hub's own switch is obeyed, and what is cached serves as with options.offline. */
static void test_cache_hub_offline(void **state) {
    static const char name[] = "hf://owner/name/model.bin";
    web *w = web_new(FILE_BYTES);
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_source source;
    sft_run run = { 20 * MIB, 10 };
    (void)state;
    options.cache = temp_path("cache");
    options.environment = hub_offline;
    sft_remote *remote = remote_with(w, &options);
    assert_int_equal(open_source(remote, name, &source, NULL), SFT_REMOTE_OFFLINE);
    sft_remote_close(remote);
    assert_int_equal(open_cached(w, name, 5000, false), 1);
    remote = remote_with(w, &options);
    assert_int_equal(open_source(remote, name, &source, NULL), SFT_OK);
    assert_int_equal(source.size, FILE_BYTES);
    read_right(&source, 0, 5000);
    sft_source_expect(&source, &run, 1);
    assert_int_equal(read_source(&source, 20 * MIB, 10, NULL), SFT_REMOTE_OFFLINE);
    sft_source_close(&source);
    sft_remote_close(remote);
    assert_int_equal(w->requests, 1);
    cached_remove();
    web_free(w);
}

/* The one file in the folder of headers. */
static const char *cached_file(void) {
    static char path[1024];
    const char *folder = temp_path("cache");
    const struct dirent *entry;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    closedir(dir);
    return path;
}

/* Damaged files, links and those that others may write are not used. */
static void test_cache_strangers(void **state) {
    web *w = web_new(FILE_BYTES);
    (void)state;
    assert_int_equal(open_cached(w, URL, 5000, false), 1);
    const char *path = cached_file();
    assert_null(strstr(path, "model"));
    assert_int_equal(chmod(path, 0666), 0);
    open_cached(w, URL, 5000, false);
    assert_int_equal(w->sent, 131072);
    assert_int_equal(chmod(path, 0600), 0);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 5000, SEEK_SET), 0);
    assert_int_equal(fputc('x', file), 'x');
    assert_int_equal(fclose(file), 0);
    open_cached(w, URL, 5000, false);
    assert_int_equal(w->sent, 131072);
    open_cached(w, URL, 5000, false); /* it was replaced */
    assert_int_equal(w->sent, 1);
    assert_int_equal(rename(path, temp_path("real")), 0);
    assert_int_equal(symlink(temp_path("real"), path), 0);
    open_cached(w, URL, 5000, false);
    assert_int_equal(w->sent, 131072);
    cached_remove();
    web_free(w);
}

static void test_cache_folder(void **state) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_remote *remote;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    options.cache = temp_path("cache");
    temp_write("cache", "x", 1);
    assert_int_equal(sft_remote_open(&options, &remote, &err), SFT_IO_OPEN);
    assert_int_equal(unlink(temp_path("cache")), 0);
    assert_int_equal(mkdir(temp_path("cache"), 0700), 0);
    assert_int_equal(chmod(temp_path("cache"), 0777), 0);
    assert_int_equal(sft_remote_open(&options, &remote, &err), SFT_IO_OPEN);
    assert_int_equal(chmod(temp_path("cache"), 0700), 0);
    assert_int_equal(symlink("cache", temp_path("link")), 0);
    options.cache = temp_path("link");
    assert_int_equal(sft_remote_open(&options, &remote, &err), SFT_IO_OPEN);
    options.cache = temp_path("none/none");
    assert_int_equal(sft_remote_open(&options, &remote, &err), SFT_IO_WRITE);
    cached_remove();
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open), cmocka_unit_test(test_sizes), cmocka_unit_test(test_large),
        cmocka_unit_test(test_announced), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_signed), cmocka_unit_test(test_denied),
        cmocka_unit_test(test_changed), cmocka_unit_test(test_shrunk),
        cmocka_unit_test(test_no_ranges), cmocka_unit_test(test_nth_fails),
        cmocka_unit_test(test_retried), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_expect), cmocka_unit_test(test_expect_fails),
        cmocka_unit_test(test_beneath),
        IN_DIR(test_cache), IN_DIR(test_cache_long), IN_DIR(test_cache_offline),
        IN_DIR(test_cache_hub_offline),
        IN_DIR(test_cache_strangers), IN_DIR(test_cache_folder),
    };
    return cmocka_run_group_tests_name("remote_source", tests, make_bytes, free_bytes);
}
