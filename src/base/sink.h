/* The two endings of a sink. */
#ifndef SFTI_SINK_H
#define SFTI_SINK_H

#include "safetensors.h"

/* Finish it if all went well so far, else abandon it: the first failure. */
static inline sft_code sfti_sink_end(sft_sink *sink, sft_code code, sft_error *err) {
    if (code == SFT_OK) return sink->finish(sink->ctx, err);
    sink->abandon(sink->ctx);
    return code;
}

/* These bytes, all that it is to hold, and its end. */
static inline sft_code sfti_sink_fill(sft_sink *sink, sft_span bytes, sft_error *err) {
    sft_code code = sink->expect ? sink->expect(sink->ctx, bytes.len, err) : SFT_OK;
    if (code == SFT_OK && bytes.len > 0)
        code = sink->write_at(sink->ctx, 0, bytes.data, bytes.len, err);
    return sfti_sink_end(sink, code, err);
}

#endif
