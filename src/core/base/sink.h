/* The two endings of a sink. */
#ifndef SFTI_SINK_H
#define SFTI_SINK_H

#include "safetensors.h"

/* Finish it if all went well so far, else abandon it: the first failure. */
static inline sft_code sfti_sink_end(sft_sink *sink, sft_code code, sft_error *err) {
    if (!code) return sft_sink_finish(sink, err);
    sft_sink_abandon(sink);
    return code;
}

/* These bytes, all that it is to hold, and its end. */
static inline sft_code sfti_sink_fill(sft_sink *sink, sft_span bytes, sft_error *err) {
    sft_code code = sft_sink_expect(sink, bytes.len, err);
    if (!code && bytes.len > 0)
        code = sft_sink_write(sink, 0, bytes.data, bytes.len, err);
    return sfti_sink_end(sink, code, err);
}

#endif
