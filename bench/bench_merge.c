/* A commit of many keys: bench_merge [DIR [SHARDS [KEYS]]]
 *
 * Writes SHARDS files with KEYS tensors together (64 and 10,000,000), of four bytes each, then
 * commits them as one dataset in KV mode: looks for duplicates, streams the index, publishes.
 * Prints seconds of each part, and the most memory that the commit had (the files are written
 * by another process). DIR is made, and removed afterwards. */
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

#define UUID "01234567-89ab-4def-8123-%012x"

static sft_error err;

static void need(sft_code code, const char *what) {
    if (!code) return;
    fprintf(stderr, "bench_merge: %s: %s\n", what, err.message);
    exit(1);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double most_memory(void) { /* MiB */
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* ── Shards ── */

static sft_code zeros(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                      sft_error *e) {
    (void)ctx, (void)offset, (void)e;
    memset(into, 0, len);
    *got = len;
    return SFT_OK;
}

static void shard_name(char out[160], const char *folder, unsigned shard) {
    (void)snprintf(out, 160, "%s/part-%05u-0000-" UUID ".safetensors", folder, shard, shard);
}

static const sft_source_vtable zeros_source_vtable = {
    sizeof(sft_source_vtable), zeros, NULL, NULL, NULL
};

/* Keys of all shards lie among one another: a number times something odd, modulo 2^32. */
static void write_shard(const sft_storage *storage, const char *folder, unsigned shard,
                        uint32_t first, uint32_t count) {
    static const uint64_t one[] = { 1 };
    const sft_source source = { NULL, &zeros_source_vtable, UINT64_MAX / 2, NULL, false };
    const sft_pair metadata[] = {
        { sft_span_cstr("libsafetensors.dataset"), sft_span_cstr("1") },
        { sft_span_cstr("mode"), sft_span_cstr("kv") },
    };
    char(*keys)[24] = malloc(count * sizeof *keys), name[160];
    sft_part *parts = calloc(count, sizeof *parts);
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_sink sink;
    if (!keys || !parts) abort();
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(keys[i], sizeof keys[0], "user_%010" PRIu32 "__v",
                       (first + i) * UINT32_C(2654435761));
        parts[i].spec.name = sft_span_cstr(keys[i]);
        parts[i].spec.dtype = SFT_F32;
        parts[i].spec.rank = 1;
        parts[i].spec.shape = one;
        parts[i].source = &source;
    }
    shard_name(name, folder, shard);
    need(storage->vtable->create(storage->ctx, name, true, &sink, &err), name);
    need(sft_save_parts(parts, count, metadata, 2, &options, sink, NULL, &err), name);
    free(parts);
    free(keys);
}

static void write_shards(const sft_storage *storage, const char *folder, unsigned shards,
                         uint32_t keys) {
    pid_t child = fork();
    int status = 1;
    if (child == 0) {
        for (unsigned i = 0; i < shards; i++) {
            uint32_t first = (uint32_t)((uint64_t)keys * i / shards);
            write_shard(storage, folder, i, first,
                        (uint32_t)((uint64_t)keys * (i + 1) / shards) - first);
        }
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "bench_merge: the shards could not be written\n");
        exit(1);
    }
}

/* What a task would send to the committer: plain JSON text. */
static void add_receipt(sft_commit *commit, const sft_storage *storage, unsigned shard,
                        uint32_t keys) {
    char stored[160], text[1200];
    unsigned char header[8];
    sft_source source;
    uint64_t header_bytes = 0;
    size_t got = 0;
    shard_name(stored, sft_commit_job_folder(commit), shard);
    need(storage->vtable->open(storage->ctx, stored, &source, &err), stored);
    need(sft_source_read(&source, 0, header, 8, &got, &err), stored);
    for (int i = 7; i >= 0; i--) header_bytes = header_bytes << 8 | header[i];
    (void)snprintf(text, sizeof text,
                   "[{\"job\":\"%s\",\"name\":\"%s\",\"stored\":\"%s\",\"partition\":%u,"
                   "\"shard\":0,\"bytes\":%" PRIu64 ",\"header_bytes\":%" PRIu64 ","
                   "\"samples\":%" PRIu32 ",\"valid_samples\":%" PRIu32 ",\"tensors\":%" PRIu32
                   ",\"dropped\":0,\"sha256\":\"%064d\",\"columns\":[{\"name\":\"v\","
                   "\"dtype\":\"F32\",\"shape\":[1]}]}]",
                   sft_commit_job(commit).data, strchr(stored, '/') + 1, stored, shard,
                   source.size, header_bytes, keys, keys, keys, 0);
    sft_source_close(&source);
    need(sft_commit_add(commit, sft_span_cstr(text), &err), "receipt");
}

static uint64_t stream_index(sft_commit *commit) {
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    uint64_t rows = 0;
    need(sft_commit_index(commit, &stream, &err), "index");
    while (stream.get_next(&stream, &batch) == 0 && batch.release) {
        rows += (uint64_t)batch.length;
        batch.release(&batch);
    }
    if (stream.get_last_error(&stream)) {
        fprintf(stderr, "bench_merge: %s\n", stream.get_last_error(&stream));
        exit(1);
    }
    stream.release(&stream);
    return rows;
}

static void clear_folder(const char *folder) {
    char command[600];
    (void)snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
    if (system(command) != 0) fprintf(stderr, "bench_merge: %s is left\n", folder);
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "bench_merge.tmp";
    unsigned shards = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 64;
    uint32_t keys = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 10000000;
    const sft_pair pair = { sft_span_cstr("name_col"), sft_span_cstr("user") };
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_dataset_options *options;
    sft_storage storage;
    sft_commit *commit;
    if (shards == 0 || keys < shards) return 1;
    need(sft_dataset_options_new(&pair, 1, NULL, &options, &err), "options");
    need(sft_storage_local(folder, true, NULL, &storage, &err), folder);
    need(sft_commit_open(options, &storage, NULL, &how, &commit, &err), "begin");
    double began = seconds();
    write_shards(&storage, sft_commit_job_folder(commit), shards, keys);
    printf("write    %7.2f s  %u shards, %" PRIu32 " keys\n", seconds() - began, shards, keys);
    for (unsigned i = 0; i < shards; i++)
        add_receipt(commit, &storage, i,
                    (uint32_t)((uint64_t)keys * (i + 1) / shards) -
                        (uint32_t)((uint64_t)keys * i / shards));
    began = seconds();
    need(sft_commit_prepare(commit, NULL, &err), "prepare");
    printf("prepare  %7.2f s  most memory %.0f MiB\n", seconds() - began, most_memory());
    began = seconds();
    uint64_t rows = stream_index(commit);
    printf("index    %7.2f s  %" PRIu64 " rows, most memory %.0f MiB\n", seconds() - began, rows,
           most_memory());
    began = seconds();
    need(sft_commit_publish(commit, NULL, NULL, NULL, NULL, &err), "publish");
    printf("publish  %7.2f s\n", seconds() - began);
    sft_commit_close(commit);
    sft_storage_close(&storage);
    sft_dataset_options_free(options);
    clear_folder(folder);
    return rows == keys ? 0 : 1;
}
