/* A file into memory by several threads: bench_read FILE THREADS [cold]. Modes, one a line:
 *   pread      plain preads of 8 MiB into one block
 *   direct     the same with O_DIRECT
 *   run        sft_read_plan_run, every tensor to a multiple of 512
 *   run-direct, run-cached   the same past the page cache, and through it
 *   slots      the same block by sft_reader, copied from slots by one thread
 *   discard    sft_reader without the copies
 * and each with -fresh: into memory that was never touched. With `cold` the file leaves the page
 * cache before each run. */
#include "worker.h" /* first: it asks for POSIX */

#include "safetensors_read.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define PIECE ((size_t)8 << 20)
#define SLOTS 16

typedef struct read_bench {
    sft_file *file;
    sft_read_part *parts;
    size_t count, next;
    sft_read_block block;
    pthread_mutex_t mutex;
    uint32_t threads;
    int fd, fd_direct;
    bool cold;
    char *warm, *fresh, *slots[SLOTS];
    size_t fresh_bytes;
} read_bench;

/* ── Plain reads ── */

typedef struct plain_thread {
    read_bench *r;
    char *bounce; /* of direct reads */
    pthread_t thread;
} plain_thread;

static void read_all(int fd, char *into, size_t len, uint64_t offset) {
    for (size_t at = 0; at < len;) {
        ssize_t got = pread(fd, into + at, len - at, (off_t)(offset + at));
        if (got <= 0) bench_die("pread", "failed");
        at += (size_t)got;
    }
}

static void *plain_run(void *ctx) {
    const plain_thread *t = ctx;
    read_bench *r = t->r;
    size_t size = (size_t)sft_file_size(r->file);
    for (;;) {
        pthread_mutex_lock(&r->mutex);
        size_t at = r->next++ * PIECE;
        pthread_mutex_unlock(&r->mutex);
        if (at >= size) return NULL;
        size_t len = size - at < PIECE ? size - at : PIECE;
        if (!t->bounce) {
            read_all(r->fd, (char *)r->block.base + at, len, at);
            continue;
        }
        size_t whole = (len + 4095) / 4096 * 4096;
        ssize_t got = pread(r->fd_direct, (char *)r->block.base + at, whole, (off_t)at);
        if (got < (ssize_t)len) bench_die("pread", "direct failed");
    }
}

static uint64_t plain(read_bench *r, bool direct) {
    plain_thread threads[64];
    r->next = 0;
    for (uint32_t i = 0; i < r->threads; i++) {
        threads[i] = (plain_thread){ .r = r, .bounce = direct ? r->slots[0] : NULL };
        if (pthread_create(&threads[i].thread, NULL, plain_run, &threads[i]))
            bench_die("thread", "failed");
    }
    for (uint32_t i = 0; i < r->threads; i++) pthread_join(threads[i].thread, NULL);
    return 0;
}

static uint64_t run_plain(void *ctx) {
    return plain(ctx, false);
}

static uint64_t run_direct(void *ctx) {
    return plain(ctx, true);
}

/* ── Plans ── */

static sft_read_plan *plan_new(const read_bench *r, sft_read_direct direct, bool slots) {
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    sft_read_block block = r->block;
    sft_read_plan *plan;
    sft_error err = SFT_ERROR_INIT;
    options.direct = direct;
    if (slots) block.base = NULL;
    if (sft_read_plan_new(r->parts, r->count, &block, 1, &options, &plan, &err))
        bench_die("plan", err.message);
    return plan;
}

static uint64_t planned(read_bench *r, sft_read_direct direct) {
    sft_read_plan *plan = plan_new(r, direct, false);
    sft_job job = SFT_JOB_INIT;
    sft_error err = SFT_ERROR_INIT;
    job.threads = r->threads;
    if (sft_read_plan_run(plan, &job, &err)) bench_die("run", err.message);
    sft_read_plan_free(plan);
    return 0;
}

static uint64_t run_planned(void *ctx) {
    return planned(ctx, SFT_READ_DIRECT_AUTO);
}

static uint64_t run_planned_direct(void *ctx) {
    return planned(ctx, SFT_READ_DIRECT_ALWAYS);
}

static uint64_t run_planned_cached(void *ctx) {
    return planned(ctx, SFT_READ_DIRECT_NEVER);
}

static uint64_t slotted(read_bench *r, bool copy) {
    sft_read_plan *plan = plan_new(r, SFT_READ_DIRECT_AUTO, true);
    sft_error err = SFT_ERROR_INIT;
    sft_reader *reader;
    sft_filled filled;
    size_t added = 0;
    if (sft_reader_start(plan, r->threads, &reader, &err)) bench_die("start", err.message);
    for (;;) {
        if (added < SLOTS && sft_reader_starved(reader)
            && sft_reader_add(reader, r->slots[added++], &err))
            bench_die("slot", err.message);
        if (sft_reader_next(reader, -1, &filled, &err)) bench_die("next", err.message);
        if (filled.slot == SFT_SLOT_END) break;
        if (filled.slot == SFT_SLOT_NONE) continue;
        for (size_t i = 0; copy && i < filled.copy_count; i++)
            memcpy((char *)r->block.base + filled.copies[i].at,
                   (char *)filled.memory + filled.copies[i].from, filled.copies[i].len);
        sft_reader_give_back(reader, filled.slot);
    }
    sft_reader_close(reader);
    sft_read_plan_free(plan);
    return 0;
}

static uint64_t run_slots(void *ctx) {
    return slotted(ctx, true);
}

static uint64_t run_discard(void *ctx) {
    return slotted(ctx, false);
}

/* ── Setting up ── */

static uint64_t begin(void *ctx) {
    read_bench *r = ctx;
    if (r->fresh) munmap(r->fresh, r->fresh_bytes);
    r->fresh = NULL;
    r->block.base = r->warm;
    if (r->cold && posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED))
        bench_die("fadvise", "failed");
    return 0;
}

static uint64_t begin_fresh(void *ctx) {
    const size_t page = (size_t)2 << 20;
    read_bench *r = ctx;
    (void)begin(r);
    r->fresh_bytes = ((size_t)r->block.bytes / page + 2) * page;
    r->fresh = mmap(NULL, r->fresh_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (r->fresh == MAP_FAILED) bench_die("map", "failed");
    (void)madvise(r->fresh, r->fresh_bytes, MADV_HUGEPAGE);
    r->block.base = r->fresh + (page - (uintptr_t)r->fresh % page) % page;
    return 0;
}

#define BOTH(name, run) { name, begin, run }, { name "-fresh", begin_fresh, run }

static const bench_mode modes[] = {
    BOTH("pread", run_plain),          BOTH("direct", run_direct),
    BOTH("run", run_planned),          BOTH("run-direct", run_planned_direct),
    BOTH("run-cached", run_planned_cached), BOTH("slots", run_slots),
    BOTH("discard", run_discard),
};

int main(int argc, char **argv) {
    read_bench r = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    sft_error err = SFT_ERROR_INIT;
    if (argc < 3) bench_die("usage", "bench_read FILE THREADS [cold]");
    if (sft_open(argv[1], NULL, &r.file, &err)) bench_die(argv[1], err.message);
    r.threads = (uint32_t)strtoul(argv[2], NULL, 10);
    if (r.threads < 1 || r.threads > 64) bench_die(argv[2], "expected 1 to 64 threads");
    r.cold = argc > 3;
    r.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    r.fd_direct = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
    r.count = sft_file_tensor_count(r.file);
    r.parts = calloc(r.count + 1, sizeof *r.parts);
    if (!r.parts || r.fd < 0) bench_die(argv[1], "cannot begin");
    for (size_t i = 0; i < r.count; i++) {
        const sft_tensor *tensor = sft_file_tensor_at(r.file, i);
        r.parts[i] = (sft_read_part){ r.file, tensor, NULL, 0, r.block.bytes };
        r.block.bytes = (r.block.bytes + tensor->end - tensor->begin + 511) / 512 * 512;
    }
    uint64_t most = sft_file_size(r.file) + 4096;
    if (r.block.bytes < most) r.block.bytes = most;
    r.warm = bench_buffer(r.block.bytes);
    for (size_t i = 0; i < SLOTS; i++) r.slots[i] = bench_buffer(PIECE);
    bench_serve_modes(modes, sizeof modes / sizeof *modes, &r);
    return 0;
}
