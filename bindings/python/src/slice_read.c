/* Reads a slice in parts, so that signals are checked in between. Tests: test_signals.py. */
#include "piece.h"

#define PIECE_BYTES (UINT64_C(8) << 20) /* of the result */
#define PIECE_SPAN (UINT64_C(64) << 20) /* of the tensor, from first to last */

/* The slice is cut along dimension `cut` into parts of `step` indices; outer dimensions are
 * counted through, inner ones are whole. */
typedef struct pieces {
    const sft_slice *all;
    sft_slice now;
    uint32_t cut;
    uint64_t step;
    uint64_t at[SFT_MAX_RANK]; /* index in each dimension up to cut */
} pieces;

/* How many indices of dimension d make a part: each is `inner` elements of the result, and `far`
 * elements of the tensor from the next. */
static uint64_t places_of(const sft_range *range, uint64_t inner, uint64_t far, uint32_t bits) {
    uint64_t apart = range->step < 0 ? 0 - (uint64_t)range->step : (uint64_t)range->step;
    uint64_t most = PIECE_BYTES * 8 / bits / inner;
    uint64_t span = range->count > 1 ? PIECE_SPAN * 8 / bits / far / apart : most;
    uint64_t places = most < span ? most : span;
    return places > 0 ? places : 1;
}

/* Takes as many inner dimensions as fit, and part of the next. No count is 0. For elements under
 * a byte a part is a multiple of eight, and only a whole dimension is cut. */
static void cut_slice(pieces *p, const uint64_t *shape, uint32_t bits) {
    uint64_t inner = 1, far = 1;
    p->now = *p->all;
    for (uint32_t d = p->all->rank; d-- > 0;) {
        const sft_range *range = &p->all->range[d];
        p->cut = d;
        p->step = places_of(range, inner, far, bits);
        if (bits < 8) p->step = (p->step + 7) / 8 * 8;
        bool whole = bits >= 8 || d == 0 || range->count % 8 == 0 || inner % 8 == 0;
        if (whole && range->count > p->step) return;
        p->step = range->count;
        inner *= range->count;
        far *= shape[d];
    }
}

static sft_range part_of(const sft_range *all, uint64_t from, uint64_t count) {
    return (sft_range){ all->start + from * (uint64_t)all->step, count, all->step };
}

/* Advances to the next part; false after the last. */
static bool next_piece(pieces *p) {
    p->at[p->cut] += p->step;
    for (uint32_t d = p->cut; p->at[d] >= p->all->range[d].count; d--) {
        if (d == 0) return false;
        p->at[d] = 0;
        p->at[d - 1]++;
    }
    return true;
}

sft_code pysft_slice_read(pysft_slice_fn read, const sft_file *file, const sft_tensor *facts,
                          const sft_slice *slice, void *into, size_t len, const sft_job *job,
                          sft_error *err) {
    uint32_t bits = sft_dtype_describe(facts->dtype)->bits;
    pieces p = { .all = slice };
    size_t done = 0;
    if (len == 0 || slice->rank == 0)
        return read(file, facts, slice, into, len, err);
    cut_slice(&p, facts->shape, bits);
    do {
        const sft_range *range = &slice->range[p.cut];
        const uint64_t left = range->count - p.at[p.cut];
        uint64_t bytes;
        for (uint32_t d = 0; d < p.cut; d++) p.now.range[d] = part_of(&slice->range[d], p.at[d], 1);
        p.now.range[p.cut] = part_of(range, p.at[p.cut], left < p.step ? left : p.step);
        sft_code code = sft_slice_size(&p.now, facts->dtype, NULL, &bytes, err);
        if (!code && bytes > len - done)
            code = sft_error_set(err, SFT_BUFFER_SIZE, 0, "expected a buffer of the slice's bytes");
        if (!code)
            code = read(file, facts, &p.now, (char *)into + done, (size_t)bytes, err);
        if (code) return code;
        done += (size_t)bytes;
        if (!job->tick(job->ctx, done, len))
            return sft_error_set(err, SFT_CANCELLED, 0, "the reading was ended");
    } while (next_piece(&p));
    return SFT_OK;
}
