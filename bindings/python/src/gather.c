/* A sink that gathers small writes into large ones for another sink. */
#include "specs.h"

#include <stdlib.h>
#include <string.h>

#define GATHER_CAPACITY ((size_t)256 << 10) /* fits the processor's cache */
#define GATHER_LIMIT ((size_t)64 << 10)  /* larger pieces are passed on directly */

typedef struct gather_sink {
    sft_sink to;
    uint64_t at; /* offset of the first byte in buffer */
    size_t used;
    char buffer[GATHER_CAPACITY];
} gather_sink;

static sft_code expect_all(void *ctx, uint64_t total, sft_error *err) {
    const gather_sink *sink = ctx;
    return sft_sink_expect(&sink->to, total, err);
}

static sft_code flush(gather_sink *sink, sft_error *err) {
    size_t len = sink->used;
    sink->used = 0;
    return len > 0 ? sft_sink_write(&sink->to, sink->at, sink->buffer, len, err) : SFT_OK;
}

static sft_code gather(void *ctx, uint64_t offset, const void *bytes, size_t len,
                       sft_error *err) {
    gather_sink *sink = ctx;
    bool fits = len <= GATHER_CAPACITY - sink->used && offset == sink->at + sink->used;
    if (!fits || len > GATHER_LIMIT) {
        sft_code code = flush(sink, err);
        if (code) return code;
        sink->at = offset;
    }
    if (len > GATHER_LIMIT) return sft_sink_write(&sink->to, offset, bytes, len, err);
    if (len > 0) memcpy(sink->buffer + sink->used, bytes, len);
    sink->used += len;
    return SFT_OK;
}

static sft_code finish_gather(void *ctx, sft_error *err) {
    gather_sink *sink = ctx;
    sft_code code = flush(sink, err);
    if (code == SFT_OK) code = sft_sink_finish(&sink->to, err);
    else sft_sink_abandon(&sink->to);
    free(sink);
    return code;
}

static void abandon_gather(void *ctx) {
    gather_sink *sink = ctx;
    sft_sink_abandon(&sink->to);
    free(sink);
}

static sft_code limit_gathered(void *ctx, uint32_t mode, sft_error *err) {
    gather_sink *sink = ctx;
    return sft_sink_limit_mode(&sink->to, mode, err);
}

static const sft_sink_vtable gather_sink_vtable = {
    sizeof(sft_sink_vtable), expect_all, gather, finish_gather, abandon_gather, limit_gathered
};

sft_sink pysft_sink_gather(sft_sink to) {
    gather_sink *sink = malloc(sizeof *sink);
    if (!sink) return to;
    sink->to = to;
    sink->at = 0;
    sink->used = 0;
    return (sft_sink){ sink, &gather_sink_vtable, to.seekable };
}
