/* What of a file will be read soon. Tests: test_remote_blocks.c. */
#include "remote/read/blocks.h"

#include "base/checked.h"

#include <string.h>

#define SPANS_NEAR ((uint64_t)64 << 10)
#define SPANS_FAR ((uint64_t)1 << 20)

static bool spans_reserve(sfti_spans *spans) {
    if (spans->first > 0) {
        size_t left = spans->count - spans->first;
        memmove(spans->at, spans->at + spans->first, left * sizeof *spans->at);
        spans->first = 0;
        spans->count = left;
    }
    void *all = sfti_grow(&spans->alloc, spans->at, spans->count, 1, &spans->cap,
                          sizeof *spans->at);
    if (all) spans->at = all;
    return all != NULL;
}

static bool spans_push(sfti_spans *spans, sfti_extent span) {
    if (spans->count == spans->cap && !spans_reserve(spans)) return false;
    spans->at[spans->count++] = span;
    return true;
}

/* Whether `next`, which does not begin before `span` does, is to be read along with it. */
static bool spans_join(const sfti_extent *span, const sfti_extent *next, bool any_gap) {
    uint64_t gap = next->begin > span->end ? next->begin - span->end : 0;
    uint64_t end = next->end > span->end ? next->end : span->end;
    uint64_t wanted = span->wanted + next->wanted;
    if (next->begin < span->begin) return false;
    if (any_gap || gap <= SPANS_NEAR) return true;
    return gap <= SPANS_FAR && (end - span->begin) / 2 <= wanted;
}

/* False: there would be too many, unless any gap is read through. */
static bool spans_merge(sfti_spans *spans, const sft_run *runs, size_t count, sfti_extent bounds,
                        bool any_gap) {
    size_t added = 0;
    for (size_t i = 0; i < count; i++) {
        sfti_extent *last = sfti_spans_any(spans) ? &spans->at[spans->count - 1] : NULL;
        sfti_extent next = bounds;
        uint64_t end;
        if (runs[i].offset > next.begin) next.begin = runs[i].offset;
        if (sfti_add(runs[i].offset, runs[i].len, &end) && end < next.end) next.end = end;
        if (next.begin >= next.end) continue;
        next.wanted = next.end - next.begin;
        if (last && spans_join(last, &next, any_gap)) {
            if (next.end > last->end) last->end = next.end;
            last->wanted += next.wanted;
            continue;
        }
        if (!any_gap && ++added > SFTI_SPANS_MOST) return false;
        if (!spans_push(spans, next)) break;
    }
    return true;
}

void sfti_spans_add(sfti_spans *spans, const sft_run *runs, size_t count, uint64_t begin,
                    uint64_t end) {
    sfti_extent bounds = { begin, end, 0 };
    size_t left = spans->count - spans->first;
    sfti_extent last = { 0, 0, 0 };
    if (left > 0) last = spans->at[spans->count - 1];
    if (spans_merge(spans, runs, count, bounds, false)) return;
    spans->count = spans->first + left;
    if (left > 0) spans->at[spans->count - 1] = last;
    (void)spans_merge(spans, runs, count, bounds, true);
}

void sfti_spans_put_back(sfti_spans *spans, uint64_t begin, uint64_t end) {
    sfti_extent span = { begin, end, end - begin };
    if (spans->first > 0) {
        spans->at[--spans->first] = span;
        return;
    }
    if (!spans_push(spans, span)) return;
    memmove(spans->at + 1, spans->at, (spans->count - 1) * sizeof *spans->at);
    spans->at[0] = span;
}

/* The part of span i behind `end` becomes a span of its own, if there is memory. */
static void spans_split(sfti_spans *spans, size_t i, uint64_t end) {
    sfti_extent rest = { end, spans->at[i].end, spans->at[i].end - end };
    size_t place = i - spans->first;
    if (!spans_push(spans, rest)) return;
    i = spans->first + place;
    memmove(spans->at + i + 2, spans->at + i + 1,
            (spans->count - i - 2) * sizeof *spans->at);
    spans->at[i + 1] = rest;
}

void sfti_spans_remove(sfti_spans *spans, uint64_t begin, uint64_t end) {
    for (size_t i = spans->first; i < spans->count;) {
        sfti_extent *span = &spans->at[i];
        if (span->end <= begin || span->begin >= end) {
            i++;
            continue;
        }
        if (span->begin >= begin && span->end <= end) {
            if (i == spans->first) {
                i = ++spans->first;
            } else {
                memmove(span, span + 1, (spans->count - i - 1) * sizeof *span);
                spans->count--;
            }
            if (spans->first == spans->count) i = spans->first = spans->count = 0;
            continue;
        }
        if (span->begin >= begin) {
            span->begin = end;
        } else {
            size_t place = i - spans->first;
            if (span->end > end) spans_split(spans, i, end);
            i = spans->first + place;
            span = &spans->at[i];
            span->end = begin;
        }
        span->wanted = span->end - span->begin;
        i++;
    }
}

uint64_t sfti_spans_reach(const sfti_spans *spans, uint64_t at) {
    for (size_t i = spans->first; i < spans->count; i++)
        if (spans->at[i].begin <= at && at < spans->at[i].end) return spans->at[i].end;
    return at;
}

void sfti_spans_clear(sfti_spans *spans) {
    sfti_release(&spans->alloc, spans->at, spans->cap * sizeof *spans->at);
    spans->at = NULL;
    spans->first = spans->count = spans->cap = 0;
}
