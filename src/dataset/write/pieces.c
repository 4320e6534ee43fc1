#include "base/checked.h"
#include "dataset/write/writer.h"

#include <string.h>

const char *sfti_piece_bytes(const shard_piece *piece) {
    if (piece->bytes || !piece->held) return piece->bytes;
    return piece->held->loose.data + piece->at;
}

static bool piece_melts(const shard_piece *last, const shard_piece *next) {
    if (!last->held || !next->held) return !last->held && !next->held;
    if (last->bytes && next->bytes) return last->bytes + last->len == next->bytes;
    return last->held == next->held && !last->bytes && !next->bytes &&
           last->at + last->len == next->at;
}

static bool pieces_grow(shard_pieces *p, const sft_allocator *alloc) {
    size_t room = p->room ? 2 * p->room : 16;
    if (!sfti_fits_size(room * (uint64_t)sizeof *p->items)) return false;
    shard_piece *items = alloc->resize(alloc->ctx, p->items, p->room * sizeof *items,
                                       room * sizeof *items);
    if (!items) return false;
    p->items = items;
    p->room = room;
    return true;
}

bool sfti_pieces_put(shard_pieces *pieces, shard_piece piece, const sft_allocator *alloc) {
    shard_piece *last = pieces->count ? &pieces->items[pieces->count - 1] : NULL;
    if (piece.len == 0) return true;
    if (last && piece_melts(last, &piece)) {
        last->len += piece.len;
        return true;
    }
    if (pieces->count == pieces->room && !pieces_grow(pieces, alloc)) return false;
    pieces->items[pieces->count++] = piece;
    return true;
}

void sfti_pieces_free(shard_pieces *pieces, const sft_allocator *alloc) {
    sfti_release(alloc, pieces->items, pieces->room * sizeof *pieces->items);
    memset(pieces, 0, sizeof *pieces);
}
