/* One contestant: a process that runs one operation each time it is told to by a line on
 * stdin, and answers with the nanoseconds of one run and a checksum of what it read. So
 * that compare.py can let contestants take turns. */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Runs once and returns the checksum. */
typedef uint64_t (*bench_run)(void *ctx);

/* Wall time, or with BENCH_CPU in the environment this process' processor time. */
static inline uint64_t bench_now(void) {
    struct timespec t;
    clock_gettime(getenv("BENCH_CPU") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void bench_die(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(2);
}

/* High-water mark of resident memory in KiB, 0 where the system does not say. */
static inline long bench_peak_rss(void) {
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (!strncmp(line, "VmHWM:", 6)) kib = strtol(line + 6, NULL, 10);
    }
    if (f) fclose(f);
    return kib;
}

/* Wrapping sum of the bytes as 64-bit words (the rest as bytes): reads all of them. */
static inline uint64_t bench_sum(const void *bytes, size_t len) {
    const char *at = bytes;
    uint64_t lane[8] = { 0 }, sum = 0;
    size_t i = 0;
    for (; i + 64 <= len; i += 64) {
        uint64_t word[8];
        memcpy(word, at + i, sizeof word);
        for (int k = 0; k < 8; k++) lane[k] += word[k];
    }
    for (; i + 8 <= len; i += 8) {
        uint64_t word;
        memcpy(&word, at + i, 8);
        sum += word;
    }
    for (; i < len; i++) sum += (unsigned char)at[i];
    for (int k = 0; k < 8; k++) sum += lane[k];
    return sum;
}

/* A whole header's worth of a file: skips the 8 length bytes. The caller frees. */
static inline char *bench_header(const char *path, size_t *len) {
    uint8_t prefix[8];
    uint64_t n = 0;
    FILE *f = fopen(path, "rb");
    if (!f || fread(prefix, 1, 8, f) != 8) bench_die(path, "cannot read");
    for (int i = 0; i < 8; i++) n |= (uint64_t)prefix[i] << 8 * i;
    char *text = malloc((size_t)n + 1);
    if (!text || fread(text, 1, (size_t)n, f) != n) bench_die(path, "cannot read the header");
    text[n] = '\0';
    fclose(f);
    *len = (size_t)n;
    return text;
}

/* Short operations are repeated within a sample until it lasts some 10 ms. */
static inline void bench_serve(bench_run run, void *ctx) {
    char line[64];
    long before = bench_peak_rss();
    uint64_t start = bench_now(), sum = run(ctx), once = bench_now() - start;
    printf("memory %ld %ld\n", before, bench_peak_rss());
    uint64_t loops = once >= 10000000 ? 1 : 10000000 / (once + 1) + 1;
    if (loops > 1000) loops = 1000;
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        start = bench_now();
        for (uint64_t i = 0; i < loops; i++) sum = run(ctx);
        printf("%.1f %" PRIu64 "\n", (double)(bench_now() - start) / (double)loops, sum);
        fflush(stdout);
    }
}

/* Contestants that share memory or a file are modes of one process: a line names the mode that
 * runs once. `prepare` (may be NULL) comes before the clock starts. */
typedef struct bench_mode {
    const char *name;
    bench_run prepare, run;
} bench_mode;

static inline const bench_mode *bench_mode_of(const bench_mode *modes, size_t count,
                                              char *line) {
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(modes[i].name, line)) return &modes[i];
    }
    bench_die(line, "unknown mode");
    return NULL;
}

static inline void bench_serve_modes(const bench_mode *modes, size_t count, void *ctx) {
    char line[64];
    printf("memory 0 0\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const bench_mode *mode = bench_mode_of(modes, count, line);
        if (mode->prepare) (void)mode->prepare(ctx);
        uint64_t start = bench_now(), sum = mode->run(ctx);
        printf("%.1f %" PRIu64 "\n", (double)(bench_now() - start), sum);
        fflush(stdout);
    }
}

/* Memory in large pages where the system has them, as numpy and torch have it. */
static inline char *bench_buffer(uint64_t bytes) {
    const size_t page = (size_t)2 << 20;
    size_t whole = ((size_t)bytes + page) / page * page;
    char *at = aligned_alloc(page, whole);
    if (!at) bench_die("bench", "out of memory");
#ifdef MADV_HUGEPAGE
    (void)madvise(at, whole, MADV_HUGEPAGE);
#endif
    memset(at, 1, whole);
    return at;
}

#endif
