/* Saving: bench_save OUT BYTES, tensors of 32 MiB in memory. Modes:
 *   return    sft_save_parts to sft_sink_path without fsync
 *   durable   the same with it: when it returns the disk has file and name
 *   direct    durable, past the page cache; direct-return: without fsync
 *   put       durable, by sft_writer_put of whole tensors
 *   plain     the same bytes by write(2), 8 MiB each, and fsync; plain-return: without
 * OUT is not there when the clock starts. */
#include "worker.h" /* first: it asks for POSIX */

#include "safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#define TENSOR_BYTES ((uint64_t)32 << 20)
#define MOST_TENSORS 256

typedef struct saving {
    const char *path;
    char *bytes;
    size_t count;
    uint64_t shape[1];
    char names[MOST_TENSORS][32];
    sft_source sources[MOST_TENSORS];
    sft_part parts[MOST_TENSORS];
    sft_path_options options;
} saving;

static uint64_t write_plain(const saving *s, bool durable) {
    const uint64_t total = s->count * TENSOR_BYTES, piece = (uint64_t)8 << 20;
    int fd = open(s->path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0) bench_die(s->path, "cannot write");
    for (uint64_t at = 0; at < total; at += piece) {
        if (write(fd, s->bytes + at, piece) != (ssize_t)piece) bench_die(s->path, "cut short");
    }
    if ((durable && fsync(fd)) || close(fd)) bench_die(s->path, "cannot sync");
    return s->count;
}

/* A virtual machine's host takes back memory that lies idle, and it costs seconds to have it
 * again: so the page cache is filled once and emptied. */
static uint64_t remove_old(void *ctx) {
    saving *s = ctx;
    (void)unlink(s->path);
    sync();
    (void)write_plain(s, false);
    (void)unlink(s->path);
    s->options = (sft_path_options)SFT_PATH_OPTIONS_INIT;
    return 0;
}

static uint64_t run_parts(saving *s) {
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    if (sft_sink_path(s->path, &s->options, &sink, &err)
        || sft_save_parts(s->parts, s->count, NULL, 0, NULL, sink, NULL, &err))
        bench_die(s->path, err.message);
    return s->count;
}

static uint64_t run_durable(void *ctx) {
    return run_parts(ctx);
}

static uint64_t run_return(void *ctx) {
    saving *s = ctx;
    s->options.no_sync = true;
    return run_parts(s);
}

static uint64_t run_direct(void *ctx) {
    saving *s = ctx;
    s->options.direct = true;
    return run_parts(s);
}

static uint64_t run_direct_return(void *ctx) {
    saving *s = ctx;
    s->options.no_sync = true;
    return run_direct(s);
}

static void put_all(const saving *s, sft_writer *writer, sft_error *err) {
    for (size_t i = 0; i < s->count; i++) {
        if (sft_writer_put(writer, i, s->parts[i].source->base, TENSOR_BYTES, err))
            bench_die(s->path, err->message);
    }
}

static uint64_t run_put(void *ctx) {
    saving *s = ctx;
    sft_error err = SFT_ERROR_INIT;
    sft_spec specs[MOST_TENSORS];
    sft_plan *plan;
    sft_sink sink;
    sft_writer *writer = NULL;
    for (size_t i = 0; i < s->count; i++) specs[i] = s->parts[i].spec;
    if (sft_plan_new(specs, s->count, NULL, 0, NULL, &plan, &err)
        || sft_sink_path(s->path, &s->options, &sink, &err)
        || sft_writer_begin(plan, sink, &writer, &err))
        bench_die(s->path, err.message);
    put_all(s, writer, &err);
    if (sft_writer_finish(writer, &err)) bench_die(s->path, err.message);
    sft_plan_free(plan);
    return s->count;
}

static uint64_t run_plain(void *ctx) {
    return write_plain(ctx, true);
}

static uint64_t run_plain_return(void *ctx) {
    return write_plain(ctx, false);
}

static void fill(saving *s, uint64_t bytes) {
    uint64_t seed = 1;
    s->bytes = bench_buffer(bytes);
    for (uint64_t at = 0; at + 8 <= bytes; at += 8) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(s->bytes + at, &seed, 8);
    }
}

static void make_parts(saving *s) {
    s->shape[0] = TENSOR_BYTES / 4;
    for (size_t i = 0; i < s->count; i++) {
        (void)snprintf(s->names[i], sizeof s->names[i], "layer.%03zu.weight", i);
        s->sources[i] = sft_source_memory(s->bytes + i * TENSOR_BYTES, (size_t)TENSOR_BYTES);
        sft_spec spec = { sft_span_cstr(s->names[i]), SFT_F32, 1, s->shape };
        s->parts[i] = (sft_part){ spec, &s->sources[i], 0 };
    }
}

int main(int argc, char **argv) {
    static const bench_mode modes[] = {
        { "return", remove_old, run_return }, { "durable", remove_old, run_durable },
        { "direct", remove_old, run_direct },
        { "direct-return", remove_old, run_direct_return }, { "put", remove_old, run_put },
        { "plain", remove_old, run_plain }, { "plain-return", remove_old, run_plain_return },
    };
    static saving s;
    if (argc < 3) bench_die("usage", "bench_save OUT BYTES");
    uint64_t bytes = strtoull(argv[2], NULL, 10) / TENSOR_BYTES * TENSOR_BYTES;
    s.path = argv[1];
    s.count = (size_t)(bytes / TENSOR_BYTES);
    if (!s.count || s.count > MOST_TENSORS) bench_die(argv[2], "expected 32 MiB to 8 GiB");
    fill(&s, bytes);
    make_parts(&s);
    bench_serve_modes(modes, sizeof modes / sizeof *modes, &s);
    (void)unlink(s.path);
    free(s.bytes);
    return 0;
}
