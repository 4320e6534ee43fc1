/* The largest of a tensor's numbers, exactly, without sorting: a histogram of the upper bits, and
 * one of the lower bits where the limit is. Of equal ones the first count. Tests: test_merge.c. */
#include "merge/work.h"

#include "base/error.h"

#include <string.h>

#define LOW_BITS 15
#define LOW_MASK ((UINT32_C(1) << LOW_BITS) - 1)
#define ZEROS ((size_t)1 << 16) /* the counter of zeros, behind those of the upper bits */

static uint64_t *counters_of(const sfti_merge_op *op, sfti_merge_work *work, size_t stream) {
    return work->counts + (stream - op->group) * SFTI_SELECT_COUNTERS;
}

static sft_code count_upper(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    (void)err;
    for (size_t s = op->group; s < op->group_end; s++) {
        uint64_t *counts = counters_of(op, work, s), zeros = 0;
        op->keys(op, s, work, work->keys);
        for (uint64_t i = 0; i < work->count; i++) {
            counts[work->keys[i] >> LOW_BITS]++;
            zeros += work->keys[i] == 0;
        }
        counts[ZEROS] += zeros;
    }
    return SFT_OK;
}

static sft_code count_lower(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    (void)err;
    for (size_t s = op->group; s < op->group_end; s++) {
        const sfti_merge_cut *cuts = &op->cuts[2 * s];
        uint64_t *counts = counters_of(op, work, s);
        op->keys(op, s, work, work->keys);
        for (int c = 0; c < 2; c++) {
            uint32_t upper = cuts[c].key >> LOW_BITS;
            if (cuts[c].none || cuts[c].all) continue;
            size_t n = sfti_merge_loops_best()->pick(work->keys, (size_t)work->count, LOW_BITS,
                                                     upper, work->spare);
            for (size_t i = 0; i < n; i++)
                counts[(size_t)c << LOW_BITS | (work->spare[i] & LOW_MASK)]++;
        }
    }
    return SFT_OK;
}

/* Counts in a pass of all threads, and adds up what they have in the first one's counters. */
static sft_code count_all(sfti_merge_op *op, sfti_merge_step *step, sft_error *err) {
    size_t all = (op->group_end - op->group) * SFTI_SELECT_COUNTERS;
    for (size_t t = 0; t < op->threads; t++)
        memset(op->works[t].counts, 0, all * sizeof *op->works[t].counts);
    sft_code code = sfti_merge_pass(op, 0, op->chunks, step, false, err);
    for (size_t t = 1; t < op->threads; t++)
        for (size_t i = 0; i < all; i++) op->works[0].counts[i] += op->works[t].counts[i];
    return code;
}

/* From the greatest down to where `top` of them are passed; *rest: how many are still to come. */
static uint32_t find_place(const uint64_t *counts, uint32_t size, uint64_t top, uint64_t *rest) {
    uint32_t at = size;
    *rest = top;
    while (at-- > 0 && *rest > counts[at]) *rest -= counts[at];
    return at;
}

sft_code sfti_select(sfti_merge_op *op, sfti_cut_keys *keys,
                     void (*tops)(sfti_merge_op *op, size_t stream, uint64_t zeros),
                     sft_error *err) {
    sft_code code = SFT_OK;
    op->cuts = sfti_arena_array(op->arena, op->streams * 2, sizeof *op->cuts);
    if (!op->cuts) return sfti_fail_memory(err, op->streams * 2 * sizeof *op->cuts);
    memset(op->cuts, 0, op->streams * 2 * sizeof *op->cuts);
    op->keys = keys;
    op->seen_at = 0;
    for (op->group = 0; !code && op->group < op->streams; op->group = op->group_end) {
        op->group_end = op->group + SFTI_SELECT_STREAMS;
        if (op->group_end > op->streams) op->group_end = op->streams;
        code = count_all(op, count_upper, err);
        for (size_t s = op->group; !code && s < op->group_end; s++) {
            const uint64_t *counts = counters_of(op, &op->works[0], s);
            tops(op, s, counts[ZEROS]);
            for (int c = 0; c < 2; c++) {
                sfti_merge_cut *cut = &op->cuts[2 * s + (size_t)c];
                cut->none = cut->top == 0;
                cut->all = cut->top >= op->row->elements;
                if (cut->none || cut->all) continue;
                cut->key = find_place(counts, 1u << 16, cut->top, &cut->ties) << LOW_BITS;
            }
        }
        if (!code) code = count_all(op, count_lower, err);
        for (size_t s = op->group; !code && s < op->group_end; s++)
            for (int c = 0; c < 2; c++) {
                sfti_merge_cut *cut = &op->cuts[2 * s + (size_t)c];
                const uint64_t *counts = counters_of(op, &op->works[0], s)
                                       + ((size_t)c << LOW_BITS);
                if (cut->none || cut->all) continue;
                uint32_t low = find_place(counts, 1u << LOW_BITS, cut->ties, &cut->ties);
                cut->key |= low;
                cut->equal = counts[low];
                if (cut->ties == cut->equal) continue;
                cut->before = sfti_arena_array(op->arena, op->window, sizeof *cut->before);
                if (!cut->before) code = sfti_fail_memory(err, op->window * sizeof *cut->before);
            }
    }
    return code;
}

static sft_code count_equal(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err) {
    (void)err;
    for (size_t k = 0; k < op->streams * 2; k++) {
        const sfti_merge_cut *cut = &op->cuts[k];
        if (!cut->before) continue;
        op->keys(op, k / 2, work, work->keys);
        cut->before[work->chunk - op->window_at] =
            sfti_merge_loops_best()->equal(work->keys, (size_t)work->count, cut->key);
    }
    return SFT_OK;
}

sft_code sfti_select_window(sfti_merge_op *op, uint64_t first, uint64_t count, sft_error *err) {
    bool any = false;
    sft_code code = SFT_OK;
    for (size_t k = 0; op->cuts && k < op->streams * 2; k++) {
        any = any || op->cuts[k].before;
        if (first < op->seen_at) op->cuts[k].seen = 0;
    }
    if (first < op->seen_at) op->seen_at = 0;
    while (any && !code && op->seen_at < first + count) {
        uint64_t n = op->seen_at < first ? first - op->seen_at : count;
        if (n > op->window) n = op->window;
        op->window_at = op->seen_at;
        code = sfti_merge_pass(op, op->seen_at, n, count_equal, false, err);
        for (size_t k = 0; !code && k < op->streams * 2; k++) {
            sfti_merge_cut *cut = &op->cuts[k];
            for (uint64_t i = 0; cut->before && i < n; i++) {
                uint64_t here = cut->before[i];
                cut->before[i] = cut->seen;
                cut->seen += here;
            }
        }
        op->seen_at += n;
    }
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
        uint64_t seen = cut->before ? cut->before[work->chunk - op->window_at] : 0;
        if (cut->before)
            loops->mark_ties(keys, (size_t)work->count, cut->key, seen, cut->ties, out);
    }
    for (uint64_t i = 0; i < work->count; i++) kept[i] = kept[i] && !inner[i];
}
