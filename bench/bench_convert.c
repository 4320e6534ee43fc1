/* Casts: bench_convert MODE FILE DTYPE [OUT]. FILE has one tensor.
 *   cast      sft_cast of its bytes in memory, the result summed once before the clock runs
 *   copy      memcpy of as many bytes in and out, what the machine can do
 *   convert   sft_conversion_save to OUT, without fsync; convert-2 with two threads */
#include "worker.h" /* first: it asks for POSIX */

#include "safetensors_convert.h"

#include <unistd.h>

typedef struct casting {
    sft_set *set;
    const sft_tensor *tensor;
    sft_dtype to;
    uint64_t count, in_bytes, out_bytes;
    char *in, *out;
    const char *path;
    uint32_t threads;
} casting;

static uint64_t run_cast(void *ctx) {
    casting *c = ctx;
    if (sft_cast(c->tensor->dtype, c->in, c->to, c->out, c->count, NULL, NULL, NULL))
        bench_die("cast", "failed");
    return c->out_bytes;
}

static uint64_t run_copy(void *ctx) {
    casting *c = ctx;
    const uint64_t piece = 1 << 16;
    uint64_t at = 0;
    for (; at + piece <= c->in_bytes && at + piece <= c->out_bytes; at += piece)
        memcpy(c->out + at, c->in + at, piece);
    for (uint64_t rest = at; rest + piece <= c->in_bytes; rest += piece)
        memcpy(c->out + rest % piece, c->in + rest, piece);
    for (uint64_t rest = at; rest + piece <= c->out_bytes; rest += piece)
        memcpy(c->out + rest, c->in + rest % piece, piece);
    return c->out_bytes;
}

static uint64_t run_convert(void *ctx) {
    casting *c = ctx;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_conversion *conversion;
    sft_error err = SFT_ERROR_INIT;
    sft_job job = SFT_JOB_INIT;
    sft_sink sink;
    options.no_sync = true;
    job.threads = c->threads;
    if (sft_conversion_new(c->set, c->to, NULL, &conversion, &err)
        || sft_sink_path(c->path, &options, &sink, &err)
        || sft_conversion_save(conversion, sink, &job, &err))
        bench_die(c->path, err.message);
    sft_conversion_free(conversion);
    return c->out_bytes;
}

static const struct mode {
    const char *name;
    bench_run run;
    uint32_t threads;
} modes[] = {
    { "cast", run_cast, 1 }, { "copy", run_copy, 1 }, { "convert", run_convert, 1 },
    { "convert-2", run_convert, 2 },
};

static void prepare(casting *c, const char *path, const char *dtype) {
    sft_error err = SFT_ERROR_INIT;
    if (!sft_dtype_parse(sft_span_cstr(dtype), &c->to)) bench_die(dtype, "is no dtype");
    if (sft_set_open(path, NULL, &c->set, &err)) bench_die(path, err.message);
    c->tensor = sft_set_tensor_at(c->set, 0);
    c->in_bytes = c->tensor->end - c->tensor->begin;
    if (sft_shape_size(c->to, c->tensor->shape, c->tensor->rank, &c->count, &c->out_bytes, &err))
        bench_die(path, err.message);
    c->in = bench_buffer(c->in_bytes);
    c->out = bench_buffer(c->out_bytes + (1 << 16));
    if (sft_read_into(sft_set_shard_at(c->set, 0), c->tensor, c->in, (size_t)c->in_bytes, &err))
        bench_die(path, err.message);
}

int main(int argc, char **argv) {
    if (argc < 4) bench_die("usage", "bench_convert MODE FILE DTYPE [OUT]");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].name)) continue;
        casting c = { .threads = modes[i].threads, .path = argc > 4 ? argv[4] : "" };
        prepare(&c, argv[2], argv[3]);
        bench_serve(modes[i].run, &c);
        sft_set_close(c.set);
        free(c.in);
        free(c.out);
        if (argc > 4) (void)unlink(argv[4]);
        return 0;
    }
    bench_die(argv[1], "unknown mode");
}
