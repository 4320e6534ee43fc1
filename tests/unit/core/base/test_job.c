/* Progress and cancelling, sums and the two endings of a sink. */
#include "base/crc32.h"
#include "base/job.h"
#include "base/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

typedef struct seen {
    uint64_t done, total;
    bool go_on;
} seen;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    seen *s = ctx;
    s->done = done;
    s->total = total;
    return s->go_on;
}

static void asks_the_owner(void **state) {
    seen s = { .go_on = true };
    sft_error err = SFT_ERROR_INIT;
    sft_job job = SFT_JOB_INIT;
    (void)state;
    assert_int_equal(sfti_job_tick(NULL, 1, 2, &err), SFT_OK);
    assert_int_equal(sfti_job_tick(&job, 1, 2, &err), SFT_OK);
    job.tick = tick;
    job.ctx = &s;
    assert_int_equal(sfti_job_tick(&job, 1, 2, &err), SFT_OK);
    assert_int_equal(s.done, 1);
    assert_int_equal(s.total, 2);
    s.go_on = false;
    assert_int_equal(sfti_job_tick(&job, 2, 2, &err), SFT_CANCELLED);
    assert_string_equal(err.message, "cancelled by the caller");
}

static void stages_are_one_job(void **state) {
    seen s = { .go_on = true };
    sft_job outer = SFT_JOB_INIT;
    sfti_stages stages;
    (void)state;
    sfti_stages_begin(&stages, NULL, 9);
    assert_null(stages.job.tick);
    outer.tick = tick;
    outer.ctx = &s;
    sfti_stages_begin(&stages, &outer, 9);
    stages.done = 4;
    assert_int_equal(sfti_job_tick(&stages.job, 3, 5, NULL), SFT_OK);
    assert_int_equal(s.done, 7);
    assert_int_equal(s.total, 9);
}

static void sums_add_up(void **state) {
    static const char text[] = "123456789 and some more bytes";
    sfti_crc32_table table;
    (void)state;
    sfti_crc32_begin(&table, false);
    assert_int_equal(sfti_crc32_add(&table, 0, text, 9), 0xcbf43926);
    assert_int_equal(sfti_crc32_add(&table, 0, text, 0), 0);
    uint32_t whole = sfti_crc32_add(&table, 0, text, sizeof text);
    for (size_t i = 0; i <= sizeof text; i++) {
        uint32_t part = sfti_crc32_add(&table, 0, text, i);
        assert_int_equal(sfti_crc32_add(&table, part, text + i, sizeof text - i), whole);
    }
}

typedef struct ending {
    sft_code fails;
    int expected, finished, abandoned;
    size_t len;
} ending;

static sft_code end_expect(void *ctx, uint64_t bytes, sft_error *err) {
    (void)err;
    ((ending *)ctx)->expected = (int)bytes;
    return SFT_OK;
}

static sft_code end_write(void *ctx, uint64_t at, const void *bytes, size_t len, sft_error *err) {
    (void)at;
    (void)bytes;
    (void)err;
    ((ending *)ctx)->len = len;
    return ((ending *)ctx)->fails;
}

static sft_code end_finish(void *ctx, sft_error *err) {
    (void)err;
    ((ending *)ctx)->finished++;
    return SFT_OK;
}

static void end_abandon(void *ctx) {
    ((ending *)ctx)->abandoned++;
}

static void sinks_end_once(void **state) {
    ending e = { .fails = SFT_OK };
    sft_sink_vtable table = { sizeof table, end_expect, end_write, end_finish, end_abandon, NULL,
                              NULL };
    sft_sink sink = { &e, &table, false };
    (void)state;
    assert_int_equal(sfti_sink_fill(&sink, (sft_span){ "abc", 3 }, NULL), SFT_OK);
    assert_int_equal(e.expected, 3);
    assert_int_equal(e.len, 3);
    assert_int_equal(e.finished, 1);
    assert_int_equal(e.abandoned, 0);
    e.fails = SFT_IO_WRITE;
    assert_int_equal(sfti_sink_fill(&sink, (sft_span){ "abc", 3 }, NULL), SFT_IO_WRITE);
    assert_int_equal(e.finished, 1);
    assert_int_equal(e.abandoned, 1);
    table.expect = NULL;
    e.len = 0;
    assert_int_equal(sfti_sink_fill(&sink, (sft_span){ NULL, 0 }, NULL), SFT_OK);
    assert_int_equal(e.len, 0);
    assert_int_equal(e.finished, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_the_owner), cmocka_unit_test(stages_are_one_job),
        cmocka_unit_test(sums_add_up), cmocka_unit_test(sinks_end_once),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
