/* Slices in plans: their loops in little memory, and which gaps are read along. */
#include "base/checked.h"
#include "base/error.h"
#include "read/read.h"

bool sfti_read_along(const sft_read_plan *plan, uint64_t gap, uint64_t span, uint64_t wanted) {
    uint64_t read, most;
    if (gap <= SFTI_READ_PAGE) return true;
    if (gap > plan->options.max_gap) return false;
    return sfti_mul(span, 100, &read) && sfti_mul(wanted, plan->options.max_over_read, &most)
           && read <= most;
}

static uint64_t loop_step(const sfti_read_loop *loop) {
    return loop->stride < 0 ? 0 - (uint64_t)loop->stride : (uint64_t)loop->stride;
}

/* From the innermost loop outwards, as long as what lies between is read along. All of a slice
 * lies inside its tensor, so no sum or product overflows. */
static uint64_t choose_chunk(const sft_read_plan *plan, sfti_read_slice *slice) {
    uint64_t span = slice->run, wanted = slice->run;
    slice->chunk = 1;
    for (uint32_t d = 0; d < slice->rank; d++) {
        const sfti_read_loop *loop = &slice->loops[d];
        uint64_t step = loop_step(loop), gap = step > span ? step - span : 0;
        uint64_t spanned = (loop->count - 1) * step + span;
        if (!sfti_read_along(plan, gap, spanned, wanted * loop->count)) break;
        span = spanned;
        wanted *= loop->count;
        slice->chunk *= loop->count;
    }
    return slice->runs / slice->chunk * span;
}

sft_code sfti_read_slice_new(sft_read_plan *plan, const sft_runs *runs,
                             const sfti_read_slice **out, uint64_t *total, sft_error *err) {
    size_t bytes = sizeof(sfti_read_slice) + runs->rank * sizeof(sfti_read_loop);
    sfti_read_slice *slice = sfti_arena_take(&plan->arena, bytes);
    if (!slice) return sfti_fail_memory(err, bytes);
    *slice = (sfti_read_slice){ runs->run_bytes, runs->left, runs->position, 1, runs->rank };
    for (uint32_t d = 0; d < runs->rank; d++)
        slice->loops[d] = (sfti_read_loop){ runs->count[d], runs->stride[d] };
    *total = choose_chunk(plan, slice);
    *out = slice;
    return SFT_OK;
}

void sfti_read_slice_extent(const sfti_read_slice *slice, uint32_t rank, uint64_t *low,
                             uint64_t *high) {
    *low = slice->position;
    *high = slice->position + slice->run;
    for (uint32_t d = 0; d < rank; d++) {
        const sfti_read_loop *loop = &slice->loops[d];
        uint64_t reach = (loop->count - 1) * loop_step(loop);
        if (loop->stride < 0) *low -= reach;
        else *high += reach;
    }
}

void sfti_read_slice_runs(const sfti_read_slice *slice, uint64_t first, sft_runs *out) {
    out->rank = slice->rank;
    out->run_bytes = slice->run;
    out->left = slice->runs - first;
    out->position = slice->position;
    for (uint32_t d = 0; d < slice->rank; d++) {
        const sfti_read_loop *loop = &slice->loops[d];
        out->count[d] = loop->count;
        out->stride[d] = loop->stride;
        out->at[d] = first % loop->count;
        out->position += (uint64_t)loop->stride * out->at[d]; /* modulo 2^64 */
        first /= loop->count;
    }
}
