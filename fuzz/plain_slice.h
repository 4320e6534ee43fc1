/* Slicing as numpy's documentation has it, spelled out for small tensors with no thought of
 * speed: what the library's slices are compared with. */
#ifndef SFT_PLAIN_SLICE_H
#define SFT_PLAIN_SLICE_H

#include "safetensors.h"

#define PLAIN_RANK 4

/* What slice(start, stop, step).indices(len) gives in Python, as start and count. */
static inline sft_range plain_range(const sft_slice_part *p, int64_t len) {
    int64_t step = p->has_step ? p->step : 1, low = step < 0 ? -1 : 0, high = len + low;
    int64_t edge[2] = { p->start, p->stop };
    for (int i = 0; i < 2; i++) {
        if (edge[i] < 0) edge[i] += len;
        edge[i] = edge[i] < low ? low : edge[i] > high ? high : edge[i];
    }
    if (!p->has_start) edge[0] = step < 0 ? high : low;
    if (!p->has_stop) edge[1] = step < 0 ? low : high;
    uint64_t stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    int64_t span = step < 0 ? edge[0] - edge[1] : edge[1] - edge[0];
    uint64_t count = span > 0 ? ((uint64_t)span - 1) / stride + 1 : 0;
    return (sft_range){ (uint64_t)edge[0], count, step };
}

/* The slice, element by element and bit by bit, packed into zeroed bytes at `to`. */
static inline void plain_copy(const sft_slice *s, const uint64_t *shape, uint32_t bits,
                              const uint8_t *from, uint8_t *to) {
    uint64_t at[PLAIN_RANK] = { 0 }, total = 1, put = 0;
    for (uint32_t d = 0; d < s->rank; d++) total *= s->range[d].count;
    for (uint64_t n = 0; n < total; n++) {
        uint64_t element = 0;
        for (uint32_t d = 0; d < s->rank; d++)
            element = element * shape[d] + s->range[d].start + at[d] * (uint64_t)s->range[d].step;
        for (uint64_t b = element * bits; b < (element + 1) * bits; b++, put++)
            to[put / 8] |= (uint8_t)((from[b / 8] >> b % 8 & 1) << put % 8);
        for (uint32_t d = s->rank; d-- && ++at[d] == s->range[d].count;) at[d] = 0;
    }
}

#endif
