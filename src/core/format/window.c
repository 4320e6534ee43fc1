/* Slices: which runs one read takes together. Tests: test_window.c. */
#include "format/format.h"

static bool runs_near(const sfti_window_rule *rule, uint64_t a, uint64_t b, uint64_t run) {
    return !rule->joins || rule->joins((a < b ? b - a : a - b) - run, run);
}

uint64_t sfti_window_row(const sft_runs *runs, const sfti_window_rule *rule) {
    int64_t stride = runs->rank ? runs->stride[0] : 0;
    uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
    if (step == 0 || runs->run_bytes >= rule->span) return 1;
    if (!runs_near(rule, 0, step, runs->run_bytes)) return 1;
    return (rule->span - runs->run_bytes) / step + 1;
}

/* Adds a row unless the window would exceed the span; *last: where its last run begins. */
static bool window_add(sfti_window *w, const sfti_row *row, uint64_t run, uint64_t span,
                       uint64_t *last) {
    *last = row->offset + (uint64_t)row->stride * (row->count - 1);
    uint64_t low = row->offset < *last ? row->offset : *last;
    uint64_t high = (row->offset < *last ? *last : row->offset) + run;
    if (w->runs > 0 && w->low < low) low = w->low;
    if (w->runs > 0 && w->high > high) high = w->high;
    if (w->runs > 0 && high - low > span) return false;
    *w = (sfti_window){ low, high, w->runs + row->count };
    return true;
}

sfti_window sfti_window_next(const sft_runs *runs, const sfti_window_rule *rule, uint64_t most) {
    sfti_window w = { 0, 0, 0 };
    sft_runs ahead = *runs;
    uint64_t run = ahead.run_bytes, last = 0, row_most = sfti_window_row(&ahead, rule);
    sfti_row row;
    if (most > ahead.left) most = ahead.left;
    while (w.runs < most && (w.runs == 0 || runs_near(rule, last, ahead.position, run))) {
        uint64_t left = most - w.runs;
        (void)sfti_runs_row(&ahead, left < row_most ? left : row_most, &row);
        if (!window_add(&w, &row, run, rule->span, &last)) break;
    }
    return w;
}
