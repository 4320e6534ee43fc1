/* Sparse tensors in coordinates, dense where they are read. */
#include "formats/objects/rebuild_parts.h"

#include "formats/parts/state.h"

#include <string.h>

#define PIECE ((size_t)8192)

/* Values of rows that follow one another are read in pieces. */
static sft_code read_sparse(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    const sfti_sparse *s = ctx;
    uint8_t piece[PIECE];
    uint64_t have = 0, had = 0, size = s->row_bytes, all = s->rows * size;
    uint64_t row = size ? 0 : s->rows; /* becomes the first one that ends behind the byte */
    for (uint64_t high = s->rows; row < high;) {
        uint64_t middle = row + (high - row) / 2;
        if (s->places[middle] < offset / size) row = middle + 1;
        else high = middle;
    }
    memset(into, 0, len);
    *got = 0;
    for (; row < s->rows; row++) {
        uint64_t at = s->places[row] * size, skip = at < offset ? offset - at : 0;
        if (at >= offset + len) break;
        while (skip < size && at + skip < offset + len) {
            uint64_t from = row * size + skip, some = size - skip;
            if (from < have || from >= had) {
                have = from;
                had = all - from < PIECE ? all : from + PIECE;
                sft_code code = sfti_import_exact(s->from, s->begin + have, piece,
                                                  (size_t)(had - have), err);
                if (code) return code;
            }
            if (some > had - from) some = had - from;
            if (some > offset + len - at - skip) some = offset + len - at - skip;
            memcpy((char *)into + (at + skip - offset), piece + (from - have), (size_t)some);
            skip += some;
        }
    }
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable sparse_source_vtable = {
    sizeof(sft_source_vtable), read_sparse, NULL, NULL, sfti_mode_inner
};

sft_code sfti_sparse_source(sfti_import *im, const sfti_sparse *sparse, uint64_t bytes,
                            const sft_source **out) {
    sfti_sparse *kept = sfti_arena_take(&im->arena, sizeof *kept);
    if (!kept) return sfti_fail_memory(im->err, sizeof *kept);
    *kept = *sparse;
    sft_source source = { kept, &sparse_source_vtable, bytes, NULL, false };
    return sfti_import_own(im, &source, out);
}
