/* What of a file will be read soon, in the order of reading: announced runs, merged where one
 * request for both is better than two. */
#ifndef SFTI_REMOTE_SPANS_H
#define SFTI_REMOTE_SPANS_H

#include "base/mem.h"
#include "safetensors.h"

typedef struct sfti_extent {
    uint64_t begin, end;
    uint64_t wanted; /* bytes of it that were announced */
} sfti_extent;

/* Zeroed but for alloc, there are none. */
typedef struct sfti_spans {
    sft_allocator alloc;
    sfti_extent *at; /* [first, count) are left */
    size_t first, count, cap;
} sfti_spans;

static inline bool sfti_spans_any(const sfti_spans *spans) {
    return spans->first < spans->count;
}

/* Add runs behind the others, clipped to [begin, end). Gaps up to 64 KiB are read through, and up
 * to 1 MiB where that does not double the bytes; all gaps if more than SFTI_SPANS_MOST spans would
 * result. What does not fit in memory is left out: a read does not depend on it. */
#define SFTI_SPANS_MOST 10000
void sfti_spans_add(sfti_spans *spans, const sft_run *runs, size_t count, uint64_t begin,
                    uint64_t end);
/* Put one before the others. */
void sfti_spans_put_back(sfti_spans *spans, uint64_t begin, uint64_t end);
/* Take what lies in [begin, end) out of all of them. */
void sfti_spans_remove(sfti_spans *spans, uint64_t begin, uint64_t end);
/* The end of the span that holds the byte at `at`, or `at` if none does. */
uint64_t sfti_spans_reach(const sfti_spans *spans, uint64_t at);
void sfti_spans_clear(sfti_spans *spans);

#endif
