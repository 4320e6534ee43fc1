/* Windows of slices against their definition, run by run. */
#include "format/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static uint64_t random_state = 7;

static uint64_t random_below(uint64_t limit) {
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (random_state >> 33) % limit;
}

static bool near_12(uint64_t gap, uint64_t run) {
    return gap + run <= 12;
}

static bool never_near(uint64_t gap, uint64_t run) {
    (void)gap, (void)run;
    return false;
}

static sft_tensor random_tensor(uint64_t *shape, uint32_t rank) {
    sft_tensor t = { 0 };
    uint64_t bytes = 1;
    for (uint32_t d = 0; d < rank; d++) bytes *= shape[d] = 1 + random_below(9);
    t.dtype = SFT_U8;
    t.rank = rank;
    t.shape = shape;
    t.end = bytes;
    return t;
}

static sft_runs random_runs(uint64_t *shape) {
    sft_slice slice = { .rank = 1 + (uint32_t)random_below(4) };
    sft_tensor t = random_tensor(shape, slice.rank);
    sft_runs runs;
    for (uint32_t d = 0; d < slice.rank; d++) {
        uint64_t step = 1 + random_below(3), count = 1 + random_below((shape[d] + step - 1) / step);
        uint64_t reach = (count - 1) * step, start = random_below(shape[d] - reach);
        bool back = random_below(2) == 0;
        slice.range[d] = (sft_range){ back ? start + reach : start, count,
                                      back ? -(int64_t)step : (int64_t)step };
    }
    assert_int_equal(sft_runs_begin(&t, &slice, &runs, NULL), SFT_OK);
    return runs;
}

/* What `count` runs cover, by taking them one by one, and whether each is near the one before. */
static sfti_window cover(sft_runs *runs, uint64_t count, const sfti_window_rule *rule,
                         bool *joined) {
    sfti_window w = { UINT64_MAX, 0, count };
    uint64_t before = 0;
    sfti_row row;
    *joined = true;
    for (uint64_t i = 0; i < count; i++, before = row.offset) {
        assert_true(sfti_runs_row(runs, 1, &row));
        uint64_t apart = row.offset < before ? before - row.offset : row.offset - before;
        if (i > 0 && rule->joins && !rule->joins(apart - runs->run_bytes, runs->run_bytes))
            *joined = false;
        if (row.offset < w.low) w.low = row.offset;
        if (row.offset + runs->run_bytes > w.high) w.high = row.offset + runs->run_bytes;
    }
    return w;
}

/* It ends where one more piece of a row would break the rule. */
static void check_end(sft_runs runs, sfti_window w, const sfti_window_rule *rule, uint64_t most) {
    sft_runs after = runs;
    sfti_row row;
    bool joined;
    (void)cover(&after, w.runs, rule, &joined);
    if (after.left == 0 || w.runs == most) return;
    uint64_t piece = sfti_window_row(&runs, rule), left = most - w.runs;
    assert_true(sfti_runs_row(&after, piece < left ? piece : left, &row));
    sfti_window more = cover(&runs, w.runs + row.count, rule, &joined);
    assert_true(!joined || more.high - more.low > rule->span);
}

static void windows_cover_their_runs(void **state) {
    static const struct { bool (*joins)(uint64_t, uint64_t); } rules[] = { { NULL }, { near_12 },
                                                                          { never_near } };
    (void)state;
    for (int round = 0; round < 30000; round++) {
        uint64_t shape[4], most = random_below(3) ? UINT64_MAX : 1 + random_below(6);
        sfti_window_rule rule = { 1 + random_below(200), rules[random_below(3)].joins };
        sft_runs runs = random_runs(shape);
        while (runs.left > 0) {
            bool joined;
            sfti_window w = sfti_window_next(&runs, &rule, most);
            check_end(runs, w, &rule, most);
            sfti_window all = cover(&runs, w.runs, &rule, &joined);
            assert_true(w.runs >= 1 && w.runs <= most);
            assert_memory_equal(&w, &all, sizeof w);
            assert_true(joined);
            assert_true(w.runs == 1 || w.high - w.low <= rule.span);
        }
        assert_int_equal(sfti_window_next(&runs, &rule, most).runs, 0);
    }
}

/* Rows of the innermost loop: [2, ::-3] of [4, 100]. */
static void rows_fill_a_window(void **state) {
    (void)state;
    static const struct { sfti_window_rule rule; uint64_t row; } cases[] = {
        { { 1, NULL }, 1 },     { { 3, NULL }, 1 },        { { 4, NULL }, 2 },
        { { 10, near_12 }, 4 }, { { 10, never_near }, 1 }, { { 1000, NULL }, 334 },
    };
    uint64_t shape[] = { 4, 100 };
    sft_tensor t = { .dtype = SFT_U8, .rank = 2, .shape = shape, .end = 400 };
    const sft_slice slice = { 2, 1, { { 2, 1, 1 }, { 99, 34, -3 } } };
    sft_runs runs;
    assert_int_equal(sft_runs_begin(&t, &slice, &runs, NULL), SFT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(sfti_window_row(&runs, &cases[i].rule), cases[i].row);
        sfti_window w = sfti_window_next(&runs, &cases[i].rule, UINT64_MAX);
        assert_int_equal(w.runs, cases[i].row < 34 ? cases[i].row : 34);
        assert_int_equal(w.high, 300);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_cover_their_runs),
        cmocka_unit_test(rows_fill_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
