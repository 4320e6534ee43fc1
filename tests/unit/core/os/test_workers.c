/* Threads that share work: every piece once, the first error, cancelling, progress. */
#include "os/workers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define PIECES 1000

typedef struct pieces {
    size_t next, bad; /* bad: the piece that fails */
    unsigned char met[PIECES];
    size_t highest; /* thread */
} pieces;

static bool step(sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err) {
    pieces *p = workers->ctx;
    sfti_workers_lock(workers);
    bool some = !workers->error.code && p->next < PIECES;
    size_t i = some ? p->next++ : 0;
    if (thread > p->highest) p->highest = thread;
    sfti_workers_unlock(workers);
    if (!some) return false;
    if (i == p->bad) err->code = SFT_IO_READ;
    p->met[i]++;
    *done = 2;
    return true;
}

typedef struct ticks {
    uint64_t last, stop; /* stop: at which count false is answered */
} ticks;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticks *t = ctx;
    assert_true(done >= t->last);
    assert_int_equal(total, 2 * PIECES);
    t->last = done;
    return done < t->stop;
}

static sft_code run(pieces *p, ticks *t, size_t threads, sft_error *err) {
    sft_job job = SFT_JOB_INIT;
    job.tick = tick;
    job.ctx = t;
    sfti_workers workers = { .step = step, .ctx = p, .job = &job, .total = 2 * PIECES };
    return sfti_workers_run(&workers, threads, err);
}

static void do_each_piece_once(void **state) {
    (void)state;
    for (size_t threads = 1; threads <= 8; threads *= 2) {
        pieces p = { .bad = SIZE_MAX };
        ticks t = { 0, UINT64_MAX };
        assert_int_equal(run(&p, &t, threads, NULL), SFT_OK);
        for (size_t i = 0; i < PIECES; i++) assert_int_equal(p.met[i], 1);
        assert_int_equal(t.last, 2 * PIECES);
        assert_true(p.highest < threads);
    }
}

static void stop_at_the_first_error(void **state) {
    (void)state;
    for (size_t threads = 1; threads <= 4; threads++) {
        pieces p = { .bad = 10 };
        ticks t = { 0, UINT64_MAX };
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(run(&p, &t, threads, &err), SFT_IO_READ);
        assert_int_equal(err.code, SFT_IO_READ);
        if (threads == 1) assert_int_equal(p.next, 11);
    }
}

static void stop_when_told(void **state) {
    (void)state;
    for (size_t threads = 1; threads <= 4; threads++) {
        pieces p = { .bad = SIZE_MAX };
        ticks t = { 0, 0 };
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(run(&p, &t, threads, &err), SFT_CANCELLED);
        if (threads == 1) assert_int_equal(p.next, 0);
    }
}

static void counts_threads_of_use(void **state) {
    sft_job job = SFT_JOB_INIT;
    (void)state;
    job.threads = 9;
    assert_int_equal(sfti_workers_count(&job, 64, 100), 9);
    assert_int_equal(sfti_workers_count(&job, 4, 100), 4);
    assert_int_equal(sfti_workers_count(&job, 64, 2), 2);
    job.threads = 0;
    assert_true(sfti_workers_count(&job, 64, UINT64_MAX) >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(do_each_piece_once),
        cmocka_unit_test(stop_at_the_first_error),
        cmocka_unit_test(stop_when_told),
        cmocka_unit_test(counts_threads_of_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
