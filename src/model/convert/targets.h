/* What models are quantised to: lines "write" of data/quantised.layouts. */
#ifndef SFTI_TARGETS_H
#define SFTI_TARGETS_H

#include "convert/encode.h"
#include "convert/quantise.h"

/* "write LAYOUT FORMAT SCALE CODES SCALES FLAGS". Flags:
 *   rows=N columns=N   values that share a scale; else all
 *   rotate=N           columns that are rotated together
 *   reciprocal, listed, flat   as in sfti_encoding */
struct sfti_quant_target {
    sft_span layout, format, scale;
    sfti_encoding how;
    sft_span members; /* lines that follow, from the first to the last; empty: none */
};

/* Line by line; *lines begins as the lines of a layout. False: there are no more, or *good became
 * false, for one that is wrong. */
bool sfti_quant_target_next(const sfti_quant_layout *layout, sft_span *lines,
                            sfti_quant_target *out, bool *good);

#endif
