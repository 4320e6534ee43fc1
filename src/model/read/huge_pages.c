/* Huge pages for blocks of fresh memory, as long as they are quick.
 *
 * Whether the next one is quick changes within one load (sfti_os_huge_quick). So a task tries one
 * before it asks for the rest of its own, and after a slow one some tasks go without: 4, then 8 and
 * so on. */
#include "os/os.h"
#include "read/read.h"

#define FRESH_FEWEST 4u
#define FRESH_MOST 64u

/* Bytes [low, high) of a block, in memory: the task's own, for sfti_os_huge_quick writes to one. */
typedef struct fresh_span {
    uintptr_t low, high, end; /* end: of the block */
} fresh_span;

/* Whole huge pages that begin in the span; the last one may reach beyond it, but not beyond its
 * block. False when they are slow. */
static bool fresh_ask(sfti_read_fresh *fresh, const fresh_span *span, bool *tried) {
    const uintptr_t page = OS_HUGE_PAGE;
    uintptr_t up = (page - span->low % page) % page, past = span->high % page;
    if (span->high - span->low <= up) return true;
    uintptr_t begin = span->low + up, end = span->high - past;
    if (past > 0 && span->end - end >= page) end += page;
    if (end == begin) return true;
    if (!*tried) {
        bool quick = sfti_os_huge_quick((char *)begin);
        *tried = true;
        unsigned last = atomic_load(&fresh->last);
        unsigned rest = last == 0 ? FRESH_FEWEST : last * 2 < FRESH_MOST ? last * 2 : FRESH_MOST;
        atomic_store(&fresh->last, quick ? 0 : rest);
        if (!quick) atomic_store(&fresh->rest, rest);
        if (!quick) return false;
        begin += page;
    }
    return begin == end || sfti_os_huge_ask((char *)begin, end - begin);
}

void sfti_read_fresh_task(sfti_read_fresh *fresh, const sft_read_plan *plan, size_t task) {
    sfti_read_walk walk = sfti_read_walk_begin(plan, task);
    sfti_read_piece piece;
    fresh_span span = { 0, 0, 0 };
    bool tried = false, more = true;
    if (!plan->options.fresh) return;
    unsigned rest = atomic_load(&fresh->rest); /* whether this is one of the tasks without */
    while (rest > 0)
        if (atomic_compare_exchange_weak(&fresh->rest, &rest, rest - 1)) return;
    while (more && sfti_read_walk_next(&walk, &piece)) {
        const sft_read_block *block = &plan->blocks[piece.item->block];
        uintptr_t base = (uintptr_t)block->base; /* in memory: its sizes are size_t */
        uintptr_t low = base + (uintptr_t)(piece.item->at + piece.within);
        if (low != span.high || low == base) {
            more = fresh_ask(fresh, &span, &tried);
            span = (fresh_span){ low, low, base + (uintptr_t)block->bytes };
        }
        span.high = low + (uintptr_t)piece.len;
    }
    if (more) (void)fresh_ask(fresh, &span, &tried);
}
