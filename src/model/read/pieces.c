/* What a task holds: pieces of items laid out in a slot, and which of them are read together. */
#include "read/read.h"

#define WALK_ALIGN 64 /* of copies: from and at are equal modulo this */
#define WALK_LEAST ((uint64_t)64 << 10) /* of a piece that ends a slot */
#define OP_STRAIGHT ((uint64_t)64 << 10) /* worth a read of its own */
#define OP_SPAN ((uint64_t)256 << 10)    /* scratch memory that stays in the cache of a core */

sfti_read_walk sfti_read_walk_begin(const sft_read_plan *plan, size_t task) {
    const sfti_read_start *start = &plan->tasks[task];
    return (sfti_read_walk){ plan, start->within, 0, start->item, SFTI_READ_NONE };
}

/* How much of what is left of the item goes into `space` bytes: all, or a piece that ends where
 * the next can be read without reading bytes twice; 0: it begins in the next slot. */
static uint64_t walk_cut(const sfti_read_walk *walk, const sfti_read_item *item, uint64_t space) {
    uint64_t left = item->len - walk->within;
    bool empty = walk->last == SFTI_READ_NONE;
    if (left <= space) return left;
    if (!empty && (space < WALK_LEAST || left <= walk->plan->task_bytes / 8)) return 0;
    uint64_t unit = item->slice ? item->slice->run : SFTI_READ_PAGE;
    uint64_t end = (item->slice ? walk->within : item->offset + walk->within) + space;
    uint64_t extra = end % unit;
    return extra <= space / 2 ? space - extra : space;
}

bool sfti_read_walk_next(sfti_read_walk *walk, sfti_read_piece *out) {
    const sft_read_plan *plan = walk->plan;
    if (walk->item == plan->item_count) return false;
    const sfti_read_item *item = &plan->items[walk->item];
    const sfti_read_item *last = walk->last == SFTI_READ_NONE ? NULL : &plan->items[walk->last];
    /* It continues the last piece's copy if it follows in the block, and what lies between is no
     * other part's. */
    bool joined = last && walk->within == 0 && last->next == walk->item
                  && item->at - (last->at + last->len) <= SFTI_READ_PAGE;
    uint64_t to = walk->used;
    if (!plan->in_memory && joined) {
        to += item->at - (last->at + last->len);
    } else if (!plan->in_memory) {
        to = (to + WALK_ALIGN - 1) & ~(uint64_t)(WALK_ALIGN - 1);
        to += (item->at + walk->within) % WALK_ALIGN;
    }
    uint64_t len = to < plan->task_bytes ? walk_cut(walk, item, plan->task_bytes - to) : 0;
    if (len == 0) return false;
    *out = (sfti_read_piece){ item, walk->within, len, to, joined };
    walk->used = to + len;
    walk->last = walk->item;
    walk->within += len;
    if (walk->within < item->len) return true;
    walk->within = 0;
    walk->item++;
    return true;
}

/* ── Reads ───────────────────────────────────────────────────────────────── */

/* An op that grows: its last piece, and the bytes that are wanted of it. */
typedef struct op_growth {
    const sft_read_plan *plan;
    sfti_read_piece last;
    uint64_t wanted, straight, span;
} op_growth;

static bool op_extend(sfti_read_op *op, op_growth *g, const sfti_read_piece *piece) {
    const sfti_read_item *item = piece->item;
    uint64_t begin = item->offset + piece->within, end = op->offset + op->len;
    if (item->slice || item->file != g->last.item->file || begin < op->offset) return false;
    const sfti_read_piece *last = &g->last;
    bool next = g->plan->in_memory
                    ? item->block == last->item->block
                          && item->at + piece->within == last->item->at + last->within + last->len
                    : piece->to == last->to + last->len;
    bool touches = begin == end && next;
    if (op->kind == SFTI_READ_STRAIGHT && touches) {
        op->len += piece->len;
        return true;
    }
    if (op->kind == SFTI_READ_STRAIGHT && op->len >= g->straight) return false;
    if (piece->len >= g->straight) return false;
    uint64_t high = begin + piece->len > end ? begin + piece->len : end;
    uint64_t span = high - op->offset, gap = begin > end ? begin - end : 0;
    if (span > g->span) return false;
    if (!sfti_read_along(g->plan, gap, span, g->wanted + piece->len)) return false;
    op->kind = SFTI_READ_GATHERED;
    op->len = span;
    return true;
}

bool sfti_read_next_op(sfti_read_walk *walk, const sfti_read_direct *direct, sfti_read_op *out) {
    sfti_read_piece piece;
    *out = (sfti_read_op){ *walk, 1, SFTI_READ_STRAIGHT, 0, 0 };
    if (!sfti_read_walk_next(walk, &piece)) return false;
    if (piece.item->slice) {
        out->kind = SFTI_READ_SLICED;
        return true;
    }
    out->offset = piece.item->offset + piece.within;
    out->len = piece.len;
    bool past = direct && atomic_load(&direct[piece.item->file].on);
    op_growth g = { walk->plan, piece, piece.len, past ? SFTI_READ_SPAN : OP_STRAIGHT,
                    past ? SFTI_READ_SPAN : OP_SPAN };
    for (sfti_read_walk ahead = *walk; sfti_read_walk_next(&ahead, &piece); *walk = ahead) {
        if (!op_extend(out, &g, &piece)) break;
        g.last = piece;
        g.wanted += piece.len;
        out->pieces++;
    }
    return true;
}

size_t sfti_read_copies(const sft_read_plan *plan, size_t task, sft_read_copy *out) {
    sfti_read_walk walk = sfti_read_walk_begin(plan, task);
    sfti_read_piece piece;
    size_t count = 0;
    while (sfti_read_walk_next(&walk, &piece)) {
        if (piece.joined) {
            out[count - 1].len = (size_t)(piece.to + piece.len) - out[count - 1].from;
            continue;
        }
        out[count++] = (sft_read_copy){ piece.item->block, piece.item->at + piece.within,
                                        (size_t)piece.to, (size_t)piece.len };
    }
    return count;
}
