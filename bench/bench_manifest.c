/* Manifests of many shards: bench_manifest [DIR [SHARDS...]]
 *
 * For each number of shards (10,000, 100,000 and 1,000,000) and both forms of the manifest, in a
 * folder that is made and removed: commits so many receipts, appends one shard at a time, opens the
 * dataset, looks up rows, runs gc. There are no shards: the storage answers for them, so that the
 * times are the manifest's. Prints processor time, elapsed time in brackets, and the most memory of
 * each step, which is a process of its own. */
#define _GNU_SOURCE
#include "safetensors_dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UUID "01234567-89ab-4def-8123-%012" PRIx64
#define SHARD_BYTES 1000000
#define HEADER_BYTES 200
#define ROWS 100
#define RECEIPTS 1000 /* in one call */
#define LOOKUPS 1000000

static sft_error err;

static void need(sft_code code, const char *what) {
    if (!code) return;
    fprintf(stderr, "bench_manifest: %s: %s\n", what, err.message);
    exit(1);
}

/* ── A storage that answers for shards ── */

static sft_storage local;

static bool is_shard(const char *name) {
    const char *slash = strrchr(name, '/');
    return strncmp(slash ? slash + 1 : name, "part-", 5) == 0;
}

static sft_code shard_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *e) {
    (void)ctx, (void)e;
    memset(into, 0, len);
    if (offset == 0 && len) ((unsigned char *)into)[0] = HEADER_BYTES;
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable shard_vtable = {
    sizeof(sft_source_vtable), shard_read, NULL, NULL, NULL
};

static sft_code bench_open(void *ctx, const char *name, sft_source *out, sft_error *e) {
    if (!is_shard(name)) return local.vtable->open(ctx, name, out, e);
    *out = (sft_source){ NULL, &shard_vtable, SHARD_BYTES, NULL, false };
    return SFT_OK;
}

static sft_code bench_move(void *ctx, const char *from, const char *to, sft_error *e) {
    return is_shard(from) ? SFT_OK : local.vtable->move(ctx, from, to, e);
}

static sft_storage storage_begin(const char *folder) {
    static sft_storage_vtable table;
    need(sft_storage_local(folder, false, NULL, &local, &err), folder);
    table = *local.vtable;
    table.open = bench_open;
    table.move = bench_move;
    return (sft_storage){ local.ctx, &table, false };
}

/* ── Steps ── */

typedef struct bench_step {
    const char *folder, *form;
    uint64_t shards;  /* that there are, or that are committed */
    uint64_t appends; /* calls of the step */
} bench_step;

static void add_receipts(sft_commit *commit, uint64_t begin, uint64_t count, uint64_t id) {
    static char text[RECEIPTS * 800];
    const char *folder = sft_commit_job_folder(commit), *job = sft_commit_job(commit).data;
    uint64_t first = strtoull(strchr(job, ':') + 1, NULL, 10);
    size_t used = 1;
    text[0] = '[';
    for (uint64_t i = begin; i < begin + count; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "%s{\"job\":\"%s\",\"name\":\"part-%05" PRIu64 "-0000-" UUID ".safetensors\","
            "\"stored\":\"%s/part-%05" PRIu64 "-0000-" UUID ".safetensors\",\"partition\":%" PRIu64
            ",\"shard\":0,\"bytes\":%d,\"header_bytes\":%d,\"samples\":%d,\"valid_samples\":%d,"
            "\"tensors\":2,\"dropped\":0,\"sha256\":\"%064" PRIx64 "\",\"columns\":[{\"name\":"
            "\"x\",\"dtype\":\"F32\",\"shape\":[3]},{\"name\":\"y\",\"dtype\":\"I64\","
            "\"shape\":[]}]}", i > begin ? "," : "", job, first + i, id + i, folder, first + i,
            id + i, i, SHARD_BYTES, HEADER_BYTES, ROWS, ROWS, i + 1);
    text[used++] = ']';
    need(sft_commit_add(commit, (sft_span){ text, used }, &err), "receipts");
}

static void commit_once(const bench_step *step, const sft_storage *storage, sft_commit_mode mode,
                        uint64_t shards, uint64_t id) {
    sft_pair pairs[] = { { sft_span_cstr("batch_size"), sft_span_cstr("100") },
                         { sft_span_cstr("manifest"), sft_span_cstr(step->form) } };
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_dataset_options *options = NULL;
    sft_commit *commit = NULL;
    how.mode = mode;
    need(sft_dataset_options_new(pairs, 2, NULL, &options, &err), "options");
    need(sft_commit_open(options, storage, NULL, &how, &commit, &err), "begin");
    for (uint64_t i = 0; i < shards; i += RECEIPTS)
        add_receipts(commit, i, shards - i < RECEIPTS ? shards - i : RECEIPTS, id);
    need(sft_commit_prepare(commit, NULL, &err), "prepare");
    need(sft_commit_publish(commit, NULL, NULL, NULL, NULL, &err), "publish");
    sft_commit_close(commit);
    sft_dataset_options_free(options);
}

static void run_commit(const bench_step *step, const sft_storage *storage) {
    commit_once(step, storage, SFT_COMMIT_NEW, step->shards, 0);
}

static void run_append(const bench_step *step, const sft_storage *storage) {
    for (uint64_t i = 0; i < step->appends; i++)
        commit_once(step, storage, SFT_COMMIT_APPEND, 1, step->shards + i);
}

static sft_dataset *open_once(const sft_storage *storage) {
    sft_dataset *dataset = NULL;
    need(sft_dataset_open(storage, NULL, NULL, NULL, &dataset, &err), "open");
    return dataset;
}

static void run_open(const bench_step *step, const sft_storage *storage) {
    for (uint64_t i = 0; i < step->appends; i++) sft_dataset_close(open_once(storage));
}

/* The shard of a row, by halves. */
static size_t find_row(const sft_dataset *dataset, uint64_t row) {
    size_t low = 0, high = sft_dataset_shard_count(dataset);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (sft_dataset_shard_at(dataset, middle)->first_sample <= row) low = middle;
        else high = middle;
    }
    return low;
}

static sft_dataset *looked;

static void run_lookup(const bench_step *step, const sft_storage *storage) {
    uint64_t rows = sft_dataset_samples(looked), at = 1;
    (void)step, (void)storage;
    for (size_t i = 0; i < LOOKUPS; i++) {
        at = at * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t found = find_row(looked, (at >> 16) % rows);
        if (found != (at >> 16) % rows / ROWS) {
            fprintf(stderr, "bench_manifest: another shard\n");
            exit(1);
        }
    }
}

static void run_gc(const bench_step *step, const sft_storage *storage) {
    sft_buffer text = { NULL, 0, 0, { NULL, NULL } };
    sft_sink sink = sft_sink_memory(&text);
    (void)step;
    sft_gc_options how = SFT_GC_OPTIONS_INIT;
    how.grace_s = 0;
    need(sft_dataset_gc_json(storage, &how, "d", &sink, &err), "gc");
    sft_sink_abandon(&sink);
}

/* ── Measuring ── */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double processor(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* In a process of its own, which prints. */
static void measure(const char *name, const bench_step *step,
                    void (*run)(const bench_step *, const sft_storage *), bool opens, double per) {
    fflush(stdout);
    pid_t child = fork();
    int status = 1;
    if (child == 0) {
        struct rusage usage;
        sft_storage storage = storage_begin(step->folder);
        if (opens) looked = open_once(&storage);
        double before = processor(), began = seconds();
        run(step, &storage);
        double used = processor() - before, took = seconds() - began;
        getrusage(RUSAGE_SELF, &usage);
        printf("| %s | %s | %" PRIu64 " | %.3g ms (%.3g) | %.0f MiB |\n", name, step->form,
               step->shards, 1e3 * used / per, 1e3 * took / per, (double)usage.ru_maxrss / 1024);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "bench_manifest: %s failed\n", name);
        exit(1);
    }
}

static void bench(const char *folder, const char *form, uint64_t shards) {
    bool whole = strcmp(form, "whole") == 0;
    uint64_t appends = !whole ? 256 : shards > 100000 ? 3 : shards > 10000 ? 16 : 64;
    bench_step step = { folder, form, shards, 1 };
    char command[600];
    measure("commit", &step, run_commit, false, 1);
    step.appends = appends;
    measure("append of 1", &step, run_append, false, (double)appends);
    step.appends = 3;
    measure("open", &step, run_open, false, 3);
    measure("row to shard", &step, run_lookup, true, LOOKUPS);
    measure("gc", &step, run_gc, false, 1);
    (void)snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
    if (system(command) != 0) fprintf(stderr, "bench_manifest: %s is left\n", folder);
}

int main(int argc, char **argv) {
    static const uint64_t sizes[] = { 10000, 100000, 1000000 };
    const char *folder = argc > 1 ? argv[1] : "bench_manifest.tmp";
    size_t count = argc > 2 ? (size_t)argc - 2 : 3;
    printf("| step | manifest | shards | processor time of one (elapsed) | memory |\n"
           "|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        uint64_t shards = argc > 2 ? strtoull(argv[i + 2], NULL, 10) : sizes[i];
        bench(folder, "whole", shards);
        bench(folder, "segments", shards);
    }
    return 0;
}
