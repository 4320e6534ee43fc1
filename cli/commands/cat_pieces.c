#include "commands/cat_pieces.h"

#include "base/checked.h"
#include "base/mem.h"

#define PIECE_BYTES (UINT64_C(1) << 19)
#define ANNOUNCED_MOST 512 /* runs */

/* The selection is cut along dimension `cut` into stretches of `step` places; the
 * dimensions outside of it are counted through, those inside are whole. */
typedef struct piece_walk {
    sft_slice now;
    const sft_slice *all;
    uint32_t cut;
    uint64_t step;
    uint64_t at[SFT_MAX_RANK]; /* place in each dimension up to cut */
} piece_walk;

/* Elements of the largest piece: as many inner dimensions as fit, and part of the next. A
 * dtype under 8 bits is not cut, for pieces might end inside a byte. */
static void choose_cut(piece_walk *k, uint64_t budget, bool whole) {
    uint64_t inner = 1;
    k->cut = k->all->rank ? k->all->rank - 1 : 0;
    k->step = 1;
    if (whole) {
        k->cut = 0;
        k->step = k->all->rank ? k->all->range[0].count : 1;
        return;
    }
    for (uint32_t d = k->all->rank; d-- > 0;) {
        uint64_t next;
        k->cut = d;
        k->step = budget / inner;
        if (!sfti_mul(inner, k->all->range[d].count, &next) || next > budget) break;
        k->step = k->all->range[d].count;
        inner = next;
    }
    if (k->step == 0) k->step = 1;
}

static sft_range part_of(const sft_range *all, uint64_t from, uint64_t count) {
    uint64_t start = all->start + from * (uint64_t)all->step;
    return (sft_range){ start, count, all->step };
}

static void place_piece(piece_walk *k) {
    if (!k->all->rank) return;
    for (uint32_t d = 0; d < k->cut; d++) {
        k->now.range[d] = part_of(&k->all->range[d], k->at[d], 1);
    }
    const sft_range *range = &k->all->range[k->cut];
    uint64_t left = range->count - k->at[k->cut];
    k->now.range[k->cut] = part_of(range, k->at[k->cut], left < k->step ? left : k->step);
}

/* On to the next piece; false behind the last. */
static bool next_piece(piece_walk *k) {
    if (!k->all->rank) return false;
    k->at[k->cut] += k->step;
    for (uint32_t d = k->cut; k->at[d] >= k->all->range[d].count; d--) {
        if (d == 0) return false;
        k->at[d] = 0;
        k->at[d - 1]++;
    }
    return true;
}

static sft_code walk_pieces(const sft_file *file, const sft_tensor *tensor, piece_walk *k,
                            char *buffer, cli_piece_fn piece, void *ctx, sft_error *err) {
    do {
        uint64_t elements, bytes;
        place_piece(k);
        sft_code code = sft_slice_size(&k->now, tensor->dtype, &elements, &bytes, err);
        if (!code) {
            code = sft_slice_read(file, tensor, &k->now, buffer, (size_t)bytes, err);
        }
        if (!code) code = piece(ctx, buffer, (size_t)bytes, elements, err);
        if (code) return code;
    } while (next_piece(k));
    return SFT_OK;
}

/* Tell the source what all pieces will read: it may be far away. Slices of very many runs are
 * announced piece by piece. */
static void announce_pieces(const sft_file *file, const sft_tensor *tensor,
                            const sft_slice *slice) {
    sft_source source = sft_file_source(file);
    sft_run ahead[ANNOUNCED_MOST];
    sft_runs runs;
    size_t count = 0;
    if (sft_runs_begin(tensor, slice, &runs, NULL) || runs.left > ANNOUNCED_MOST) return;
    while (count < ANNOUNCED_MOST && sft_runs_next(&runs, &ahead[count]))
        ahead[count++].offset += tensor->offset;
    sft_source_expect(&source, ahead, count);
}

sft_code cli_read_pieces(cli *c, const sft_file *file, const sft_tensor *tensor,
                         const sft_slice *slice, cli_piece_fn piece, void *ctx,
                         sft_error *err) {
    piece_walk k = { .now = *slice, .all = slice };
    uint32_t bits = sft_dtype_describe(tensor->dtype)->bits;
    uint64_t elements, bytes, buffer_size;
    sft_code code = sft_slice_size(slice, tensor->dtype, &elements, &bytes, err);
    if (code || elements == 0) return code;
    choose_cut(&k, PIECE_BYTES * 8 / bits, bits < 8);
    buffer_size = bits < 8 || bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
    char *buffer = sfti_fits_size(buffer_size) ? sfti_take(&c->alloc, (size_t)buffer_size) : NULL;
    if (!buffer) return sfti_fail_memory(err, buffer_size);
    if (bytes > buffer_size) announce_pieces(file, tensor, slice);
    code = walk_pieces(file, tensor, &k, buffer, piece, ctx, err);
    sfti_release(&c->alloc, buffer, (size_t)buffer_size);
    return code;
}
