/* Batches of Arrow that are kept, and pieces of their memory. */
#include "base/error.h"
#include "dataset/write/writer.h"

#include <string.h>

/* ── Batches ── */

sft_code sfti_shard_hold(sft_shard_writer *w, struct ArrowArray *batch, shard_held **out,
                         sft_error *err) {
    shard_held *held = sfti_take(&w->alloc, sizeof *held);
    if (!held) return sfti_fail_memory(err, sizeof *held);
    memset(held, 0, sizeof *held);
    held->array = *batch;
    held->loose.alloc = w->alloc;
    batch->release = NULL;
    *w->held_end = held;
    w->held_end = &held->next;
    *out = held;
    return SFT_OK;
}

void sfti_shard_release_one(shard_held *held) {
    if (held->array.release) held->array.release(&held->array);
    held->array.release = NULL;
    sft_buffer_free(&held->loose);
}

/* `but` is always the last one. */
void sfti_shard_release(sft_shard_writer *w, const shard_held *but) {
    while (w->held && w->held != but) {
        shard_held *held = w->held;
        w->held = held->next;
        sfti_shard_release_one(held);
        sfti_release(&w->alloc, held, sizeof *held);
    }
    if (!w->held) w->held_end = &w->held;
}

/* ── Pieces of them ── */

const char *sfti_piece_bytes(const shard_piece *piece) {
    if (piece->bytes || !piece->held) return piece->bytes;
    return piece->held->loose.data + piece->at;
}

static bool piece_continues(const shard_piece *last, const shard_piece *next) {
    if (!last->held || !next->held) return !last->held && !next->held;
    if (last->bytes && next->bytes) return last->bytes + last->len == next->bytes;
    return last->held == next->held && !last->bytes && !next->bytes &&
           last->at + last->len == next->at;
}

bool sfti_pieces_put(shard_pieces *pieces, shard_piece piece, const sft_allocator *alloc) {
    shard_piece *last = pieces->count ? &pieces->items[pieces->count - 1] : NULL;
    if (piece.len == 0) return true;
    if (last && piece_continues(last, &piece)) {
        last->len += piece.len;
        return true;
    }
    shard_piece *items =
        sfti_grow(alloc, pieces->items, pieces->count, 1, &pieces->cap, sizeof *items);
    if (!items) return false;
    pieces->items = items;
    items[pieces->count++] = piece;
    return true;
}

void sfti_pieces_free(shard_pieces *pieces, const sft_allocator *alloc) {
    sfti_release(alloc, pieces->items, pieces->cap * sizeof *pieces->items);
    memset(pieces, 0, sizeof *pieces);
}
