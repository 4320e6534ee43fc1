/* The largest of a tensor's numbers, exactly, without sorting. A sample of a large tensor tells
 * about where the limit is; one pass counts each number near it, and those above. Where the sample
 * does not tell, or was wrong, there are two: a histogram of the upper bits, and one of the lower
 * bits where the limit is. Of equal ones the first count. Tests: test_merge.c, tests/merge. */
#include "merge/work.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define LOW_BITS 15
#define LOW_SPAN (UINT32_C(1) << LOW_BITS)
#define UPPER (UINT32_C(1) << 16)
#define NEAR_BUCKETS 4 /* of the upper bits, each number of which is counted */
#define NEAR (NEAR_BUCKETS * LOW_SPAN)
#define SAMPLED_FROM ((uint64_t)1 << 22) /* elements */
#define MARGIN 4 /* standard deviations between the limit and the end of what is near */

/* The counters of a stream: of zeros, of those above; then, of the upper bits, or of the lower ones
 * of its two cuts, or of what is near. */
#define ZEROS 0
#define ABOVE 1
#define PLACES 8

static uint64_t *counters_of(const sfti_merge_op *op, const sfti_merge_work *work, size_t stream) {
    return work->counts + (stream - op->group) * SFTI_SELECT_COUNTERS;
}

static sft_code count_upper(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    (void)err;
    for (size_t s = op->group; s < op->group_end; s++) {
        uint64_t *counts = counters_of(op, work, s);
        op->keys(op, s, work, work->keys);
        for (uint64_t i = 0; i < work->count; i++) counts[PLACES + (work->keys[i] >> LOW_BITS)]++;
        counts[ZEROS] +=
            sfti_merge_loops_best()->within(work->keys, (size_t)work->count, 0, 1);
    }
    return SFT_OK;
}

/* Numbers of a stream from `least` on, one by one. */
static void count_picked(sfti_merge_work *work, uint32_t least, uint32_t span, uint64_t *counts) {
    size_t n = sfti_merge_loops_best()->pick(work->keys, (size_t)work->count, least, span,
                                             work->spare);
    for (size_t i = 0; i < n; i++) counts[work->spare[i]]++;
}

static sft_code count_lower(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    (void)err;
    for (size_t s = op->group; s < op->group_end; s++) {
        const sfti_merge_cut *cuts = &op->cuts[2 * s];
        uint64_t *counts = counters_of(op, work, s);
        op->keys(op, s, work, work->keys);
        for (size_t c = 0; c < 2; c++)
            if (!cuts[c].none && !cuts[c].all)
                count_picked(work, cuts[c].key, LOW_SPAN, counts + PLACES + c * LOW_SPAN);
    }
    return SFT_OK;
}

static sft_code count_near(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    const sfti_merge_loops *loops = sfti_merge_loops_best();
    (void)err;
    for (size_t s = op->group; s < op->group_end; s++) {
        uint64_t *counts = counters_of(op, work, s);
        uint32_t least = op->cuts[2 * s].key, above = least + NEAR;
        size_t n = (size_t)work->count;
        op->keys(op, s, work, work->keys);
        count_picked(work, least, NEAR, counts + PLACES);
        counts[ZEROS] += loops->within(work->keys, n, 0, 1);
        counts[ABOVE] += loops->within(work->keys, n, above, UINT32_MAX - above);
    }
    return SFT_OK;
}

/* Counts in a pass of all threads, and adds up what they have in the first one's counters. */
static sft_code count_all(sfti_merge_op *op, sfti_merge_step *step, uint32_t places,
                          sft_error *err) {
    for (size_t t = 0; t < op->threads; t++)
        for (size_t s = op->group; s < op->group_end; s++)
            memset(counters_of(op, &op->works[t], s), 0, (PLACES + places) * sizeof(uint64_t));
    sft_code code = sfti_merge_pass(op, 0, op->chunks, step, false, err);
    for (size_t t = 1; t < op->threads; t++)
        for (size_t s = op->group; s < op->group_end; s++) {
            uint64_t *sums = counters_of(op, &op->works[0], s);
            const uint64_t *more = counters_of(op, &op->works[t], s);
            for (size_t i = 0; i < PLACES + places; i++) sums[i] += more[i];
        }
    return code;
}

/* From the greatest down to where `top` of them are passed; *rest: how many are still to come. */
static uint32_t find_place(const uint64_t *counts, uint32_t size, uint64_t top, uint64_t *rest) {
    uint32_t at = size;
    *rest = top;
    while (at-- > 0 && *rest > counts[at]) *rest -= counts[at];
    return at;
}

/* How many each cut of a stream is to have. */
static void count_tops(sfti_merge_op *op, size_t stream, uint64_t zeros) {
    sfti_merge_cut *cuts = &op->cuts[2 * stream];
    cuts[0].top = cuts[1].top = 0;
    op->tops(op, stream, zeros);
    for (size_t c = 0; c < 2; c++) {
        cuts[c].none = cuts[c].top == 0;
        cuts[c].all = cuts[c].top >= op->row->elements;
    }
}

/* Where the numbers begin among which the outer limit is most likely; false: that is not sure. */
static bool guess_near(sfti_merge_op *op, size_t s) {
    const uint64_t *all = counters_of(op, &op->works[0], s), *counts = all + PLACES;
    sfti_merge_cut *cut = &op->cuts[2 * s];
    uint64_t seen = 0, rest;
    for (size_t i = 0; i < UPPER; i++) seen += counts[i];
    double share = (double)seen / (double)op->row->elements;
    count_tops(op, s, (uint64_t)((double)all[ZEROS] / share));
    cut->key = 0;
    if (!cut[1].none) return false;
    if (cut->none || cut->all) return true;
    uint64_t top = (uint64_t)((double)cut->top * share);
    double part = (double)top / (double)seen;
    double sure = MARGIN * sfti_root(part * (1 - part) * (double)seen) + 1;
    uint32_t at = find_place(counts, UPPER, top, &rest);
    uint32_t first = 2 * rest > counts[at] ? NEAR_BUCKETS / 2 : NEAR_BUCKETS / 2 - 1;
    first = at < first ? 0 : at - first;
    double above = (double)rest, below = (double)(counts[at] - rest);
    for (uint32_t i = first; i < at; i++) below += (double)counts[i];
    for (uint32_t i = at + 1; i < first + NEAR_BUCKETS && i < UPPER; i++)
        above += (double)counts[i];
    cut->key = first << LOW_BITS;
    return above >= sure && (below >= sure || first == 0);
}

/* The limit is this number, and so many of those equal to it count. */
static sft_code set_limit(sfti_merge_op *op, sfti_merge_cut *cut, uint32_t key, uint64_t equal,
                          sft_error *err) {
    cut->key = key;
    if (cut->ties == equal) return SFT_OK;
    cut->before = sfti_arena_array(op->arena, op->window + 1, sizeof *cut->before);
    return cut->before ? SFT_OK : sfti_fail_memory(err, (op->window + 1) * sizeof *cut->before);
}

/* By a sample and one pass. *found: whether the limits are where the sample said. */
static sft_code select_near(sfti_merge_op *op, bool *found, sft_error *err) {
    *found = op->row->elements >= SAMPLED_FROM;
    if (!*found) return SFT_OK;
    op->sampled = true;
    sft_code code = count_all(op, count_upper, UPPER, err);
    op->sampled = false;
    for (size_t s = op->group; !code && *found && s < op->group_end; s++)
        *found = guess_near(op, s);
    if (code || !*found) return code;
    code = count_all(op, count_near, NEAR, err);
    for (size_t s = op->group; !code && *found && s < op->group_end; s++) {
        const uint64_t *all = counters_of(op, &op->works[0], s), *counts = all + PLACES;
        sfti_merge_cut *cut = &op->cuts[2 * s];
        count_tops(op, s, all[ZEROS]);
        if (cut->none || cut->all) continue;
        uint32_t low = UINT32_MAX;
        if (cut->top > all[ABOVE])
            low = find_place(counts, NEAR, cut->top - all[ABOVE], &cut->ties);
        *found = low != UINT32_MAX;
        if (*found) code = set_limit(op, cut, cut->key + low, counts[low], err);
    }
    return code;
}

static sft_code select_twice(sfti_merge_op *op, sft_error *err) {
    sft_code code = count_all(op, count_upper, UPPER, err);
    for (size_t s = op->group; !code && s < op->group_end; s++) {
        const uint64_t *counts = counters_of(op, &op->works[0], s);
        count_tops(op, s, counts[ZEROS]);
        for (size_t c = 0; c < 2; c++) {
            sfti_merge_cut *cut = &op->cuts[2 * s + c];
            if (cut->none || cut->all) continue;
            cut->key = find_place(counts + PLACES, UPPER, cut->top, &cut->ties) << LOW_BITS;
        }
    }
    if (!code) code = count_all(op, count_lower, 2 * LOW_SPAN, err);
    for (size_t k = 2 * op->group; !code && k < 2 * op->group_end; k++) {
        sfti_merge_cut *cut = &op->cuts[k];
        const uint64_t *counts = counters_of(op, &op->works[0], k / 2) + PLACES + k % 2 * LOW_SPAN;
        if (cut->none || cut->all) continue;
        uint32_t low = find_place(counts, LOW_SPAN, cut->ties, &cut->ties);
        code = set_limit(op, cut, cut->key + low, counts[low], err);
    }
    return code;
}

sft_code sfti_select(sfti_merge_op *op, sfti_cut_keys *keys, sfti_cut_tops *tops, sft_error *err) {
    sft_code code = SFT_OK;
    op->cuts = sfti_arena_array(op->arena, op->streams * 2, sizeof *op->cuts);
    if (!op->cuts) return sfti_fail_memory(err, op->streams * 2 * sizeof *op->cuts);
    memset(op->cuts, 0, op->streams * 2 * sizeof *op->cuts);
    op->keys = keys;
    op->tops = tops;
    op->seen_at = 0;
    for (op->group = 0; !code && op->group < op->streams; op->group = op->group_end) {
        bool found;
        op->group_end = op->group + SFTI_SELECT_STREAMS;
        if (op->group_end > op->streams) op->group_end = op->streams;
        code = select_near(op, &found, err);
        if (!code && !found) {
            memset(&op->cuts[2 * op->group], 0, 2 * (op->group_end - op->group) * sizeof *op->cuts);
            code = select_twice(op, err);
        }
    }
    return code;
}

/* ── Equal numbers: a chunk waits until those before it are counted ── */

static uint64_t equal_before(const sfti_merge_op *op, const sfti_merge_cut *cut,
                             const sfti_merge_work *work, const uint32_t *keys) {
    uint64_t *before = cut->before + (work->chunk - op->window_at);
    uint64_t here = sfti_merge_loops_best()->within(keys, (size_t)work->count, cut->key, 1);
    return sfti_merge_pass_chain(work, before, here);
}

static sft_code count_equal(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    (void)err;
    for (size_t k = 0; k < op->streams * 2; k++) {
        if (!op->cuts[k].before) continue;
        op->keys(op, k / 2, work, work->keys);
        (void)equal_before(op, &op->cuts[k], work, work->keys);
    }
    return SFT_OK;
}

static void begin_window(sfti_merge_op *op, uint64_t first, uint64_t count) {
    uint64_t last = first > 0 ? op->seen_at - op->window_at : 0;
    for (size_t k = 0; k < op->streams * 2; k++) {
        sfti_merge_cut *cut = &op->cuts[k];
        if (!cut->before) continue;
        cut->before[0] = first > 0 ? cut->before[last] : 0;
        for (uint64_t i = 1; i <= count; i++) cut->before[i] = SFTI_NOT_COUNTED;
    }
    op->window_at = first;
    op->seen_at = first + count;
}

sft_code sfti_select_window(sfti_merge_op *op, uint64_t first, uint64_t count, sft_error *err) {
    bool any = false;
    sft_code code = SFT_OK;
    for (size_t k = 0; op->cuts && k < op->streams * 2; k++) any = any || op->cuts[k].before;
    if (!any || first < op->seen_at) op->seen_at = 0;
    while (any && !code && op->seen_at < first) {
        uint64_t n = first - op->seen_at < op->window ? first - op->seen_at : op->window;
        begin_window(op, op->seen_at, n);
        code = sfti_merge_pass(op, op->window_at, n, count_equal, false, err);
    }
    if (any && !code) begin_window(op, first, count);
    op->window_at = first;
    return code;
}

void sfti_select_mark(const sfti_merge_op *op, size_t stream, const sfti_merge_work *work,
                      const uint32_t *keys, uint8_t *kept) {
    const sfti_merge_loops *loops = sfti_merge_loops_best();
    uint8_t *inner = (uint8_t *)work->spare;
    for (size_t c = 0; c < 2; c++) {
        const sfti_merge_cut *cut = &op->cuts[2 * stream + c];
        uint8_t *out = c == 0 ? kept : inner;
        if (c > 0 && cut->none) return;
        if (cut->all || cut->none) {
            memset(out, cut->all, (size_t)work->count);
            continue;
        }
        loops->mark(keys, (size_t)work->count, cut->key, out);
        if (cut->before)
            loops->mark_ties(keys, (size_t)work->count, cut->key,
                             equal_before(op, cut, work, keys), cut->ties, out);
    }
    for (uint64_t i = 0; i < work->count; i++) kept[i] = kept[i] && !inner[i];
}
