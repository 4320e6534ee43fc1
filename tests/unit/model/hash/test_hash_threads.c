/* Digests by many threads: progress, stopping, no memory, small stacks. */
#define _GNU_SOURCE
#include "unit/hash_case.h"

/* ── Threads, progress, stopping ── */

typedef struct ticking {
    unsigned ticks, stop_at;
    uint64_t last, total;
} ticking;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticking *t = ctx;
    assert_true(done >= t->last);
    t->last = done;
    t->total = total;
    return ++t->ticks != t->stop_at;
}

static void one_large_file_by_many_threads(void **state) {
    const char *path = vector_file("large", OTHER_KEYS, 20000000, 8);
    sft_hashes alone = hash_one(path, SFT_HASH_ALL, 1);
    (void)state;
    assert_int_equal(sft_hashes_known(&alone), SFT_HASH_ALL);
    for (uint32_t threads = 2; threads <= 6; threads++) {
        sft_hashes found = hash_one(path, SFT_HASH_ALL, threads);
        assert_memory_equal(&found, &alone, sizeof found);
    }
}

static void many_files_by_many_threads(void **state) {
    sft_hash_request asks[8];
    seen alone = { 0 };
    (void)state;
    for (int i = 0; i < 8; i++)
        asks[i] = (sft_hash_request){ nth_vector(i % 4), SFT_HASH_BIT(SFT_HASH_SHA256) };
    assert_int_equal(sft_hash_paths(asks, 8, NULL, keep, &alone, NULL, NULL), SFT_OK);
    for (uint32_t threads = 0; threads <= 5; threads++) {
        ticking t = { 0 };
        sft_job job = { sizeof job, tick, &t, threads };
        seen s = { 0 };
        assert_int_equal(sft_hash_paths(asks, 8, NULL, keep, &s, &job, NULL), SFT_OK);
        assert_int_equal(s.count, 8);
        for (int i = 0; i < 8; i++) assert_string_equal(s.text[i], vectors[i % 4][0]);
        assert_int_equal(t.last, t.total);
        assert_int_equal(t.total, 2 * (1072 + 1152 + 1100160 + 2200160));
    }
}

static void ticks_come_often(void **state) {
    const char *path = vector_file("large", "", 40000000, 8);
    ticking t = { 0 };
    sft_job job = { sizeof job, tick, &t, 1 };
    sft_hashes found;
    (void)state;
    assert_int_equal(sft_hash_path(path, SFT_HASH_BIT(SFT_HASH_BLAKE3), NULL, &found, &job, NULL),
                     SFT_OK);
    assert_true(t.ticks >= 5);
    assert_int_equal(t.last, t.total);
}

static void a_tick_stops(void **state) {
    const char *path = vector_file("large", "", 20000000, 8);
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        ticking t = { .stop_at = 3 };
        sft_job job = { sizeof job, tick, &t, threads };
        sft_hashes found;
        assert_int_equal(sft_hash_path(path, SFT_HASH_ALL, NULL, &found, &job, NULL),
                         SFT_CANCELLED);
        assert_int_equal(sft_hashes_known(&found), 0);
        assert_int_equal(t.ticks, 3);
    }
}

static void an_answer_stops(void **state) {
    sft_hash_request asks[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        asks[i] = (sft_hash_request){ nth_vector(i), SFT_HASH_BIT(SFT_HASH_SHA256) };
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sft_job job = SFT_JOB_INIT;
        seen s = { .stop_at = 2 };
        job.threads = threads;
        assert_int_equal(sft_hash_paths(asks, 4, NULL, keep, &s, &job, NULL), SFT_CANCELLED);
        assert_int_equal(s.count, 2);
    }
}

/* Memory that runs out anywhere is told, and nothing stays. */
static void memory_runs_out(void **state) {
    const char *paths[] = { nth_vector(1), make_set() };
    (void)state;
    for (int p = 0; p < 2; p++) {
        sft_code code = SFT_OUT_OF_MEMORY;
        for (size_t n = 1; code != SFT_OK; n++) {
            test_memory memory = { .fail_on = n };
            sft_allocator alloc = { resize_test_memory, &memory };
            sft_hash_options options = SFT_HASH_OPTIONS_INIT;
            sft_open_options open = SFT_OPEN_OPTIONS_INIT;
            sft_hashes found;
            options.open = &open;
            open.alloc = &alloc;
            code = sft_hash_path(paths[p], SFT_HASH_ALL, &options, &found, NULL, NULL);
            assert_true(code == SFT_OK || code == SFT_OUT_OF_MEMORY);
            assert_int_equal(memory.held, 0);
            assert_true(n < 200);
        }
    }
}

/* ── Small stacks ── */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__) \
    || !defined(__OPTIMIZE__)
#define SMALL_STACK ((size_t)1 << 20) /* sanitizers widen frames, and so does -O0 */
#else
#define SMALL_STACK ((size_t)72 << 10)
#endif

static void *hash_on_small_stack(void *ctx) {
    sft_hashes *out = ctx;
    sft_job job = SFT_JOB_INIT;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        job.threads = threads;
        if (sft_hash_path(nth_vector(3), SFT_HASH_ALL, NULL, &out[threads > 1], &job, NULL))
            return NULL;
    }
    return ctx;
}

static void a_small_stack_does(void **state) {
    static sft_hashes found[2];
    pthread_attr_t attr;
    pthread_t thread;
    void *done = NULL;
    (void)state;
    assert_int_equal(pthread_attr_init(&attr), 0);
    if (pthread_attr_setstacksize(&attr, SMALL_STACK)) /* the system's least is more, on ARM */
        assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)128 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attr, hash_on_small_stack, found), 0);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_int_equal(pthread_attr_destroy(&attr), 0);
    assert_non_null(done);
    for (int i = 0; i < 2; i++) assert_hashes(&found[i], v4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_large_file_by_many_threads, begin, end),
        cmocka_unit_test_setup_teardown(many_files_by_many_threads, begin, end),
        cmocka_unit_test_setup_teardown(ticks_come_often, begin, end),
        cmocka_unit_test_setup_teardown(a_tick_stops, begin, end),
        cmocka_unit_test_setup_teardown(an_answer_stops, begin, end),
        cmocka_unit_test_setup_teardown(memory_runs_out, begin, end),
        cmocka_unit_test_setup_teardown(a_small_stack_does, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
