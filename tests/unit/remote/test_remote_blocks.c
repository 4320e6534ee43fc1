/* Blocks ahead, pages and large reads over a file that is a function of its offsets: what is
 * fetched for which reads, with delays, failures, threads and little memory. */
#include "os/os.h"
#include "remote/read/blocks.h"
#include "safetensors_codes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/* ── The file ── */

/* Of 2^16 + 1 bytes again and again: no two blocks of a file are equal. */
#define PERIOD 65537
static unsigned char pattern[PERIOD];

static void pattern_make(void) {
    for (uint64_t i = 0; i < PERIOD; i++)
        pattern[i] = (unsigned char)((i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void fill_bytes(unsigned char *into, uint64_t begin, uint64_t end) {
    while (begin < end) {
        uint64_t from = begin % PERIOD;
        uint64_t len = end - begin < PERIOD - from ? end - begin : PERIOD - from;
        memcpy(into, pattern + from, (size_t)len);
        into += len;
        begin += len;
    }
}

static bool are_bytes(const unsigned char *at, uint64_t begin, size_t len) {
    unsigned char expected[4096];
    for (size_t done = 0; done < len;) {
        size_t piece = len - done < sizeof expected ? len - done : sizeof expected;
        fill_bytes(expected, begin + done, begin + done + piece);
        if (memcmp(at + done, expected, piece) != 0) return false;
        done += piece;
    }
    return true;
}

#define ASKED_MOST 65536

typedef struct server {
    sft_allocator alloc;
    sfti_pool *pool;
    sfti_blocks *blocks;
    os_mutex mutex;
    size_t asked, at_once, at_once_most;
    uint64_t bytes, held_most;
    sfti_extent requests[ASKED_MOST];
    const void *intos[ASKED_MOST];
    size_t fail_at; /* this request fails, from 1 */
    bool forever;   /* and all later ones */
    sft_code fail_code;
    uint32_t delay_ms;
    bool stuck; /* requests end only when go_on says so */
} server;

static size_t note_request(server *s, uint64_t begin, uint64_t end, const void *into) {
    sfti_os_mutex_lock(&s->pool->mutex);
    uint64_t held = s->blocks->bytes;
    sfti_os_mutex_unlock(&s->pool->mutex);
    sfti_os_mutex_lock(&s->mutex);
    size_t nth = ++s->asked;
    if (held > s->held_most) s->held_most = held;
    if (nth <= ASKED_MOST) {
        s->requests[nth - 1] = (sfti_extent){ begin, end, 0 };
        s->intos[nth - 1] = into;
    }
    s->bytes += end - begin;
    if (++s->at_once > s->at_once_most) s->at_once_most = s->at_once;
    sfti_os_mutex_unlock(&s->mutex);
    return nth;
}

static sft_code serve(void *ctx, uint64_t begin, uint64_t end, void *into,
                      bool (*go_on)(void *ctx), void *go_on_ctx, sft_error *err) {
    server *s = ctx;
    sft_code code = SFT_OK;
    size_t nth = note_request(s, begin, end, into);
    if (s->delay_ms) sfti_os_sleep_ms(s->delay_ms);
    while (s->stuck && (!go_on || go_on(go_on_ctx)) && !sfti_os_wait_over()) sfti_os_sleep_ms(5);
    if (s->stuck || (go_on && !go_on(go_on_ctx))) code = SFT_CANCELLED;
    else if (s->fail_at && (nth == s->fail_at || (s->forever && nth > s->fail_at)))
        code = s->fail_code;
    else fill_bytes(into, begin, end);
    if (code) (void)sft_error_set(err, code, 0, "the request fails");
    sfti_os_mutex_lock(&s->mutex);
    s->at_once--;
    sfti_os_mutex_unlock(&s->mutex);
    return code;
}

static server *server_new(uint32_t connections) {
    server *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->alloc = sfti_allocator(NULL);
    s->fail_code = SFT_REMOTE_NETWORK;
    assert_int_equal(sfti_os_mutex_init(&s->mutex), 0);
    assert_int_equal(sfti_pool_new(&s->alloc, connections, &s->pool, NULL), SFT_OK);
    assert_int_equal(sfti_blocks_new(&s->alloc, s->pool, &s->blocks, NULL), SFT_OK);
    return s;
}

/* Nothing is left of what was read. */
static void server_end(server *s) {
    assert_int_equal(s->blocks->bytes, 0);
    assert_int_equal(s->blocks->pages, 0);
    assert_int_equal(s->blocks->under_way, 0);
    assert_null(s->blocks->first);
    assert_null(s->blocks->planned);
    assert_int_equal(s->pool->queued, 0);
    assert_int_equal(s->at_once, 0);
    sfti_pool_free(s->pool);
    sfti_blocks_free(s->blocks);
    sfti_os_mutex_free(&s->mutex);
    free(s);
}

/* Until a count has been reached, two seconds at most. */
static void wait_for(server *s, const size_t *count, size_t least) {
    bool reached = false;
    for (int i = 0; i < 2000 && !reached; i++) {
        sfti_os_mutex_lock(&s->mutex);
        reached = *count >= least;
        sfti_os_mutex_unlock(&s->mutex);
        if (!reached) sfti_os_sleep_ms(1);
    }
    assert_true(reached);
}

static void stream_open(sfti_stream *stream, server *s, uint64_t begin, uint64_t end) {
    sfti_stream_begin(stream, s->blocks, begin, end, serve, s);
}

static void read_checked(sfti_stream *stream, uint64_t offset, size_t len) {
    unsigned char *bytes = malloc(len + 1);
    assert_non_null(bytes);
    assert_int_equal(sfti_stream_read(stream, offset, bytes, len, NULL), SFT_OK);
    assert_true(are_bytes(bytes, offset, len));
    free(bytes);
}

/* ── What is fetched ── */

static void test_pages(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    (void)state;
    stream_open(&stream, s, 128 * KIB, 10 * MIB + 5);
    for (uint64_t i = 0; i < 100; i++) read_checked(&stream, MIB + 700 * (i * 37 % 90), 9);
    assert_int_equal(s->asked, 1);
    assert_int_equal(s->requests[0].begin, MIB);
    assert_int_equal(s->requests[0].end, MIB + 64 * KIB);
    read_checked(&stream, 2 * MIB + 64 * KIB - 10, 20); /* both pages at once */
    assert_int_equal(s->asked, 2);
    assert_int_equal(s->bytes, 192 * KIB);
    read_checked(&stream, 10 * MIB, 5); /* the last one is shorter */
    assert_int_equal(s->asked, 3);
    assert_int_equal(s->requests[2].end, 10 * MIB + 5);
    sfti_stream_end(&stream);
    server_end(s);
}

/* The rest of a header is one request of exactly its bytes. */
static void test_rest_of_header(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    (void)state;
    stream_open(&stream, s, 128 * KIB, 10 * MIB);
    read_checked(&stream, 128 * KIB, 1000);
    assert_int_equal(s->asked, 1);
    assert_int_equal(s->bytes, 1000);
    sfti_stream_end(&stream);
    server_end(s);
}

static void test_exact(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    (void)state;
    stream_open(&stream, s, 128 * KIB, 100 * MIB);
    read_checked(&stream, 3 * MIB + 77, 64 * KIB);
    read_checked(&stream, 50 * MIB + 1, 5 * MIB);
    assert_int_equal(s->asked, 2);
    assert_int_equal(s->bytes, 64 * KIB + 5 * MIB);
    sfti_stream_end(&stream);
    server_end(s);
}

/* A large read arrives in the reader's memory, over several connections, once. */
static void test_large(void **state) {
    server *s = server_new(4);
    sfti_stream stream;
    size_t len = 61 * MIB + 13;
    unsigned char *bytes = malloc(len);
    (void)state;
    s->delay_ms = 10;
    stream_open(&stream, s, 128 * KIB, 100 * MIB);
    assert_int_equal(sfti_stream_read(&stream, MIB, bytes, len, NULL), SFT_OK);
    assert_true(are_bytes(bytes, MIB, len));
    assert_int_equal(s->bytes, len);
    assert_int_equal(s->asked, 8);
    assert_in_range(s->at_once_most, 2, 4);
    for (size_t i = 0; i < s->asked; i++) {
        const unsigned char *into = s->intos[i];
        assert_true(into >= bytes && into < bytes + len);
        assert_true(s->requests[i].end - s->requests[i].begin <= 8 * MIB);
    }
    assert_int_equal(s->blocks->bytes, 0);
    sfti_stream_end(&stream);
    server_end(s);
    free(bytes);
}

/* Announced bytes are fetched once, in blocks, before they are read. */
static void test_announced(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    sft_run run = { MIB, 100 * MIB };
    (void)state;
    stream_open(&stream, s, 128 * KIB, 200 * MIB);
    s->delay_ms = 2;
    sfti_stream_expect(&stream, &run, 1);
    for (uint64_t at = 0; at < run.len; at += 256 * KIB)
        read_checked(&stream, run.offset + at, 256 * KIB);
    assert_int_equal(s->bytes, run.len);
    assert_in_range(s->asked, 17, 30);
    assert_in_range(s->at_once_most, 4, 9);
    assert_true(s->held_most <= SFTI_BLOCKS_MOST);
    sfti_stream_end(&stream);
    server_end(s);
}

/* Runs with gaps: one request for those near one another, none for what is far. */
static void test_runs(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    sft_run runs[] = { { 10 * MIB, 1000 }, { 10 * MIB + 20000, 1000 }, { 40 * MIB, 500 },
                       { 39 * MIB, 500 } };
    (void)state;
    stream_open(&stream, s, 128 * KIB, 200 * MIB);
    sfti_stream_expect(&stream, runs, 4);
    for (size_t i = 0; i < 4; i++) read_checked(&stream, runs[i].offset, runs[i].len);
    assert_int_equal(s->asked, 3);
    assert_int_equal(s->bytes, 21000 + 1000);
    sfti_stream_end(&stream);
    server_end(s);
}

/* Large announced reads, one after another: nothing is fetched twice. */
static void test_announced_large(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    sft_run runs[4];
    (void)state;
    stream_open(&stream, s, 128 * KIB, 200 * MIB);
    s->delay_ms = 1;
    for (uint64_t i = 0; i < 4; i++) runs[i] = (sft_run){ MIB + i * 40 * MIB, 35 * MIB };
    sfti_stream_expect(&stream, runs, 4);
    for (size_t i = 0; i < 4; i++) read_checked(&stream, runs[i].offset, runs[i].len);
    assert_int_equal(s->bytes, 4 * 35 * MIB);
    sfti_stream_end(&stream);
    server_end(s);
}

/* All is announced, and then each piece of it again before it is read. */
static void test_announced_twice(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    sft_run run = { MIB, 100 * MIB };
    (void)state;
    s->delay_ms = 2;
    stream_open(&stream, s, 128 * KIB, 200 * MIB);
    sfti_stream_expect(&stream, &run, 1);
    for (uint64_t at = MIB; at < 101 * MIB; at += 4 * MIB) {
        sft_run piece = { at, 4 * MIB };
        sfti_stream_expect(&stream, &piece, 1);
        read_checked(&stream, at, 4 * MIB);
    }
    sfti_stream_end(&stream);
    assert_int_equal(s->bytes, 100 * MIB);
    assert_in_range(s->at_once_most, 4, 9);
    server_end(s);
}

/* 72 files, all announced, share one budget; they are read in order, each byte fetched once. */
static void test_many_streams(void **state) {
    static sfti_stream streams[72];
    server *s = server_new(8);
    sft_run run = { MIB, 8 * MIB };
    (void)state;
    for (size_t i = 0; i < 72; i++) {
        stream_open(&streams[i], s, 128 * KIB, 20 * MIB);
        sfti_stream_expect(&streams[i], &run, 1);
    }
    for (size_t i = 0; i < 72; i++)
        for (uint64_t at = 0; at < run.len; at += MIB) read_checked(&streams[i], MIB + at, MIB);
    assert_int_equal(s->bytes, 72 * run.len);
    assert_true(s->held_most <= SFTI_BLOCKS_MOST);
    for (size_t i = 0; i < 72; i++) sfti_stream_end(&streams[i]);
    server_end(s);
}

/* The budget is full of what nobody reads: it makes way for a stream that is read. */
static void test_idle_streams_give_way(void **state) {
    sfti_stream idle, busy;
    server *s = server_new(8);
    sft_run run = { MIB, 80 * MIB };
    (void)state;
    stream_open(&idle, s, 128 * KIB, 100 * MIB);
    stream_open(&busy, s, 128 * KIB, 100 * MIB);
    sfti_stream_expect(&idle, &run, 1);
    wait_for(s, &s->asked, 16);
    sfti_stream_expect(&busy, &run, 1);
    for (uint64_t at = 0; at < run.len; at += 64 * KIB) read_checked(&busy, MIB + at, 64 * KIB);
    for (uint64_t at = 0; at < run.len; at += MIB) read_checked(&idle, MIB + at, MIB);
    sfti_stream_end(&idle);
    sfti_stream_end(&busy);
    assert_in_range(s->asked, 40, 90);
    assert_true(s->held_most <= SFTI_BLOCKS_MOST);
    server_end(s);
}

/* Reads in a row that nobody announced. */
static void test_sequence(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    (void)state;
    stream_open(&stream, s, 128 * KIB, 100 * MIB);
    for (uint64_t at = MIB; at < 65 * MIB; at += 64 * KIB) read_checked(&stream, at, 64 * KIB);
    sfti_stream_end(&stream);
    assert_true(s->asked < 60); /* of 1024 reads */
    assert_true(s->bytes <= 100 * MIB);
    server_end(s);
}

/* Two reads in a row are no sequence. */
static void test_no_sequence(void **state) {
    server *s = server_new(8);
    sfti_stream stream;
    (void)state;
    stream_open(&stream, s, 128 * KIB, 100 * MIB);
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t at = MIB + (i * 13 % 20) * 4 * MIB;
        read_checked(&stream, at, 100 * KIB);
        read_checked(&stream, at + 100 * KIB, 100 * KIB);
    }
    assert_int_equal(s->bytes, 40 * 100 * KIB);
    sfti_stream_end(&stream);
    server_end(s);
}

/* ── Spans ── */

static void test_spans(void **state) {
    sfti_spans spans = { .alloc = sfti_allocator(NULL) };
    sft_run runs[] = { { 0, 100 }, { 200 * KIB, 100 * KIB }, { 900 * KIB, 700 * KIB },
                       { 2 * MIB + 500 * KIB, 10 }, { 100, 50 } };
    (void)state;
    sfti_spans_add(&spans, runs, 5, 50, 3 * MIB);
    assert_int_equal(spans.count, 4);
    assert_int_equal(spans.at[0].begin, 50);
    assert_int_equal(spans.at[0].end, 100);
    assert_int_equal(spans.at[1].end, 1600 * KIB); /* the gap does not double the bytes */
    assert_int_equal(spans.at[3].begin, 100);
    assert_int_equal(sfti_spans_reach(&spans, 500 * KIB), 1600 * KIB);
    assert_int_equal(sfti_spans_reach(&spans, 10), 10);
    sfti_spans_remove(&spans, 0, 60);
    assert_int_equal(spans.at[spans.first].begin, 60);
    sfti_spans_remove(&spans, 300 * KIB, 400 * KIB); /* out of the middle */
    assert_int_equal(sfti_spans_reach(&spans, 250 * KIB), 300 * KIB);
    assert_int_equal(sfti_spans_reach(&spans, 400 * KIB), 1600 * KIB);
    assert_int_equal(spans.count - spans.first, 5);
    sfti_spans_put_back(&spans, 5, 7);
    assert_int_equal(spans.at[spans.first].begin, 5);
    sfti_spans_remove(&spans, 0, 3 * MIB);
    assert_false(sfti_spans_any(&spans));
    sfti_spans_clear(&spans);
}

/* Random operations beside an array of what is planned. */
static void test_spans_random(void **state) {
    sfti_spans spans = { .alloc = sfti_allocator(NULL) };
    static bool planned[4096];
    uint64_t seed = 7;
    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t begin = (seed >> 33) % 4096, end = begin + (seed >> 50) % 300;
        if (end > 4096) end = 4096;
        if (begin == end) continue;
        if (turn % 3 == 0 && !spans.count) {
            sft_run run = { begin, end - begin };
            sfti_spans_add(&spans, &run, 1, 0, 4096);
            memset(planned + begin, 1, end - begin);
        } else if (turn % 3 == 1) {
            sfti_spans_remove(&spans, begin, begin);
            sfti_spans_put_back(&spans, begin, end);
            memset(planned + begin, 1, end - begin);
        } else {
            sfti_spans_remove(&spans, begin, end);
            memset(planned + begin, 0, end - begin);
        }
        if (turn % 16) continue;
        for (uint64_t at = 0; at < 4096; at++)
            assert_int_equal(sfti_spans_reach(&spans, at) > at, planned[at]);
    }
    sfti_spans_clear(&spans);
}

static void test_too_many_spans(void **state) {
    sfti_spans spans = { .alloc = sfti_allocator(NULL) };
    static sft_run runs[SFTI_SPANS_MOST + 1];
    (void)state;
    for (size_t i = 0; i <= SFTI_SPANS_MOST; i++) runs[i] = (sft_run){ i * 4 * MIB, 100 };
    sfti_spans_add(&spans, runs, SFTI_SPANS_MOST, 0, UINT64_MAX);
    assert_int_equal(spans.count, SFTI_SPANS_MOST);
    sfti_spans_clear(&spans);
    sfti_spans_add(&spans, runs, SFTI_SPANS_MOST + 1, 0, UINT64_MAX);
    assert_int_equal(spans.count, 1);
    assert_int_equal(spans.at[0].end, SFTI_SPANS_MOST * 4 * MIB + 100);
    sfti_spans_clear(&spans);
}

/* ── Failures ── */

static const sft_run failing_runs[] = { { MIB, 20 * MIB }, { 30 * MIB, 100 }, { 35 * MIB, MIB } };

/* Reads of all kinds; how many failed. Every other is right. */
static size_t read_mixed(sfti_stream *stream, sft_code expected) {
    static unsigned char bytes[13 * MIB];
    static const sft_run reads[] = {
        { 128 * KIB, 5000 }, { MIB, 256 * KIB }, { MIB + 256 * KIB, 100 },
        { 2 * MIB, 12 * MIB }, { 14 * MIB, 7 * MIB }, { 30 * MIB, 100 }, { 35 * MIB, MIB },
        { 50 * MIB, 13 * MIB }, { 70 * MIB, 5 }, { 70 * MIB + 5, 5 }, { 70 * MIB + 10, 5 },
        { 70 * MIB + 15, 900 * KIB },
    };
    size_t failed = 0;
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_code code = sfti_stream_read(stream, reads[i].offset, bytes, reads[i].len, &err);
        if (code) {
            assert_int_equal(code, expected);
            assert_int_equal(err.code, expected);
            assert_true(err.message[0]);
            failed++;
        } else {
            assert_true(are_bytes(bytes, reads[i].offset, reads[i].len));
        }
    }
    return failed;
}

static size_t play_failure(size_t nth, bool forever, size_t *asked) {
    server *s = server_new(4);
    sfti_stream stream;
    s->fail_at = nth;
    s->forever = forever;
    stream_open(&stream, s, 128 * KIB, 80 * MIB);
    sfti_stream_expect(&stream, failing_runs, 3);
    size_t failed = read_mixed(&stream, SFT_REMOTE_NETWORK);
    sfti_stream_end(&stream);
    *asked = s->asked;
    server_end(s);
    return failed;
}

static void test_nth_fails(void **state) {
    size_t asked, all;
    (void)state;
    assert_int_equal(play_failure(0, false, &all), 0);
    for (size_t nth = 1; nth <= all; nth++) assert_true(play_failure(nth, false, &asked) <= 1);
    assert_int_equal(play_failure(1, true, &asked), 12);
}

typedef struct scarce {
    size_t taken, fail_at;
} scarce;

static void *scarce_resize(void *ctx, void *at, size_t old_size, size_t new_size) {
    scarce *left = ctx;
    (void)old_size;
    if (new_size == 0) {
        free(at);
        return NULL;
    }
    size_t nth = __atomic_add_fetch(&left->taken, 1, __ATOMIC_RELAXED);
    return left->fail_at && nth >= left->fail_at ? NULL : realloc(at, new_size);
}

/* Without memory for blocks everything can still be read. */
static void test_no_memory(void **state) {
    (void)state;
    for (size_t nth = 0; nth < 12; nth++) {
        server *s = server_new(4);
        sfti_stream stream;
        scarce left = { 0, nth };
        s->blocks->alloc = (sft_allocator){ scarce_resize, &left };
        stream_open(&stream, s, 128 * KIB, 80 * MIB);
        sfti_stream_expect(&stream, failing_runs, 3);
        assert_int_equal(read_mixed(&stream, SFT_OUT_OF_MEMORY), 0);
        sfti_stream_end(&stream);
        s->blocks->alloc = s->alloc;
        server_end(s);
    }
}

/* ── Stops ── */

static uint64_t stop_at;

static bool go_on_until(void *ctx) {
    (void)ctx;
    return sfti_os_now_ns() < stop_at;
}

/* Who waits for a block that does not come is told to stop, and the end waits for nothing. */
static void test_stop(void **state) {
    static unsigned char bytes[20 * MIB];
    static const size_t lens[] = { 1000, 20 * MIB };
    sft_run run = { MIB, 20 * MIB };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        server *s = server_new(4);
        sfti_stream stream;
        sft_error err = SFT_ERROR_INIT;
        s->stuck = true;
        stream_open(&stream, s, 128 * KIB, 80 * MIB);
        uint64_t begin = sfti_os_now_ns();
        stop_at = begin + 100000000;
        sfti_os_on_wait(go_on_until, NULL);
        sfti_stream_expect(&stream, &run, 1);
        assert_int_equal(sfti_stream_read(&stream, MIB, bytes, lens[i], &err), SFT_CANCELLED);
        assert_int_equal(err.code, SFT_CANCELLED);
        sfti_stream_end(&stream);
        sfti_os_on_wait(NULL, NULL);
        assert_true(sfti_os_now_ns() - begin < UINT64_C(2000000000));
        server_end(s);
    }
}

/* The end of a stream cancels what is fetched ahead of it, and takes back what was not begun. */
static void test_end_under_way(void **state) {
    server *s = server_new(4);
    sfti_stream stuck, other;
    sft_run run = { MIB, 20 * MIB };
    (void)state;
    s->stuck = true;
    stream_open(&stuck, s, 128 * KIB, 80 * MIB);
    stream_open(&other, s, 128 * KIB, 80 * MIB);
    sfti_stream_expect(&stuck, &run, 1);
    sfti_stream_expect(&other, &run, 1);
    wait_for(s, &s->at_once, 4);
    sfti_stream_end(&other);
    sfti_stream_end(&stuck);
    server_end(s);
}

/* A block of a stream that is being closed makes way, and is not planned again: the fetch that the
 * close waits for reads another stream, for which there is no other memory. */
typedef struct last_fetch {
    server *server;
    sfti_stream *other;
    unsigned char bytes[100];
    sft_code code;
} last_fetch;

static sft_code fetch_last(void *ctx, uint64_t begin, uint64_t end, void *into,
                           bool (*go_on)(void *ctx), void *go_on_ctx, sft_error *err) {
    last_fetch *last = ctx;
    if (begin > MIB) return serve(last->server, begin, end, into, go_on, go_on_ctx, err);
    while (go_on(go_on_ctx)) sfti_os_sleep_ms(1);
    last->code = sfti_stream_read(last->other, 40 * MIB, last->bytes, 100, NULL);
    return sft_error_set(err, SFT_CANCELLED, 0, "cancelled");
}

static void test_end_makes_way(void **state) {
    server *s = server_new(2);
    last_fetch last = { .server = s, .code = SFT_BAD_ARGUMENT };
    sfti_stream closed, other;
    sft_run run = { MIB, 8 * MIB };
    bool ready = false;
    (void)state;
    s->blocks->most = 8 * MIB;
    stream_open(&other, s, 128 * KIB, 80 * MIB);
    sfti_stream_begin(&closed, s->blocks, 128 * KIB, 80 * MIB, fetch_last, &last);
    last.other = &other;
    sfti_stream_expect(&closed, &run, 1);
    for (int i = 0; i < 2000 && !ready; i++) {
        sfti_os_sleep_ms(1);
        sfti_os_mutex_lock(&s->pool->mutex);
        ready = closed.first && closed.first->next
             && closed.first->next->state == SFTI_BLOCK_READY;
        sfti_os_mutex_unlock(&s->pool->mutex);
    }
    assert_true(ready);
    sfti_stream_end(&closed);
    assert_null(closed.plan.at);
    assert_int_equal(last.code, SFT_OK);
    assert_true(are_bytes(last.bytes, 40 * MIB, 100));
    assert_int_equal(s->blocks->pages, 1);
    sfti_stream_end(&other);
    server_end(s);
}

/* What could not be fetched ahead keeps no memory from other streams. */
static void test_failures_make_way(void **state) {
    server *s = server_new(2);
    sfti_stream failed, other;
    sft_run run = { MIB, 8 * MIB };
    unsigned char bytes[100];
    bool ended = false;
    (void)state;
    s->blocks->most = 8 * MIB;
    s->fail_at = 1;
    s->forever = true;
    stream_open(&failed, s, 128 * KIB, 80 * MIB);
    stream_open(&other, s, 128 * KIB, 80 * MIB);
    sfti_stream_expect(&failed, &run, 1);
    for (int i = 0; i < 2000 && !ended; i++) {
        sfti_os_sleep_ms(1);
        sfti_os_mutex_lock(&s->pool->mutex);
        ended = s->blocks->under_way == 0;
        sfti_os_mutex_unlock(&s->pool->mutex);
    }
    assert_true(ended);
    s->fail_at = 0;
    assert_int_equal(sfti_stream_read(&other, MIB, bytes, 100, NULL), SFT_OK);
    assert_true(are_bytes(bytes, MIB, 100));
    assert_int_equal(s->blocks->pages, 1);
    assert_null(failed.plan.at);
    sfti_stream_end(&failed);
    sfti_stream_end(&other);
    server_end(s);
}

/* ── Threads ── */

typedef struct reader {
    sfti_stream *stream;
    uint64_t seed;
    bool announces, fails;
    size_t wrong;
} reader;

static uint64_t reader_random(reader *r) {
    r->seed = r->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return r->seed >> 33;
}

/* cmocka's assertions belong to the main thread: count instead. */
static void read_at_random(void *ctx) {
    static const size_t most[] = { 100, 5000, 70000, 900000, 5000000, 20000000 };
    reader *r = ctx;
    unsigned char *bytes = malloc(20000000);
    for (int turn = 0; turn < 25; turn++) {
        size_t len = 1 + reader_random(r) % most[reader_random(r) % 6];
        uint64_t offset = 128 * KIB + reader_random(r) % (70 * MIB);
        sft_run runs[3] = { { offset, len }, { offset + len, len }, { offset + 5 * len, len } };
        if (r->announces && turn % 3) sfti_stream_expect(r->stream, runs, 3);
        for (size_t i = 0; i < 3; i++) {
            if (runs[i].offset + len > 80 * MIB) continue;
            sft_code code = sfti_stream_read(r->stream, runs[i].offset, bytes, len, NULL);
            if (code ? !r->fails : !are_bytes(bytes, runs[i].offset, len)) r->wrong++;
        }
    }
    free(bytes);
}

static void play_threads(uint32_t connections, bool announces, bool fails) {
    server *s = server_new(connections);
    sfti_stream streams[2];
    os_thread threads[6];
    reader readers[6];
    s->fail_at = fails ? 5 : 0;
    s->delay_ms = 1;
    for (size_t i = 0; i < 2; i++) stream_open(&streams[i], s, 128 * KIB, 80 * MIB);
    for (size_t i = 0; i < 6; i++) {
        readers[i] = (reader){ &streams[i % 2], i + 1, announces, fails, 0 };
        assert_int_equal(sfti_os_thread_start(&threads[i], read_at_random, &readers[i]), 0);
    }
    for (size_t i = 0; i < 6; i++) sfti_os_thread_join(&threads[i]);
    for (size_t i = 0; i < 6; i++) assert_int_equal(readers[i].wrong, 0);
    assert_true(s->held_most <= SFTI_BLOCKS_MOST);
    for (size_t i = 0; i < 2; i++) sfti_stream_end(&streams[i]);
    server_end(s);
}

static void test_threads(void **state) {
    (void)state;
    play_threads(1, true, false);
    play_threads(8, false, false);
    play_threads(8, true, false);
    play_threads(64, true, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages), cmocka_unit_test(test_rest_of_header),
        cmocka_unit_test(test_exact), cmocka_unit_test(test_large),
        cmocka_unit_test(test_announced), cmocka_unit_test(test_runs),
        cmocka_unit_test(test_announced_large), cmocka_unit_test(test_announced_twice),
        cmocka_unit_test(test_many_streams),
        cmocka_unit_test(test_idle_streams_give_way), cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_no_sequence), cmocka_unit_test(test_spans),
        cmocka_unit_test(test_spans_random), cmocka_unit_test(test_too_many_spans),
        cmocka_unit_test(test_nth_fails), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_stop), cmocka_unit_test(test_end_under_way),
        cmocka_unit_test(test_end_makes_way), cmocka_unit_test(test_failures_make_way),
        cmocka_unit_test(test_threads),
    };
    pattern_make();
    return cmocka_run_group_tests_name("remote_blocks", tests, NULL, NULL);
}
