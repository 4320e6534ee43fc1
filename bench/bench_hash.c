/* SHA-256 of sixteen streams in memory, by one kernel: bench_hash one|two|four|eight|sixteen, or
 * chosen, as a trial chooses. worker.py sha256 does the same by OpenSSL. */
#include "worker.h" /* first: it asks for POSIX */

#include "hash/hash.h"

#define STREAMS SFTI_SHA_LANES
#define PIECE ((size_t)64 << 10) /* all of them fit a core's cache */
#define PIECES 16

typedef struct hashing {
    sfti_hash_impl impl;
    uint8_t *data;
} hashing;

static uint64_t run_hash(void *ctx) {
    hashing *h = ctx;
    sfti_sha256 sums[STREAMS];
    sfti_sha_job jobs[STREAMS];
    uint8_t digest[32];
    uint64_t total = 0;
    for (size_t i = 0; i < STREAMS; i++) sfti_sha256_begin(&sums[i]);
    for (size_t n = 0; n < PIECES; n++) {
        for (size_t i = 0; i < STREAMS; i++)
            jobs[i] = (sfti_sha_job){ &sums[i], h->data + i * PIECE, PIECE };
        sfti_sha256_run(&h->impl, jobs, STREAMS);
    }
    for (size_t i = 0; i < STREAMS; i++) {
        sfti_sha256_end(&h->impl, &sums[i], digest);
        total += digest[0] + i * digest[31];
    }
    return total;
}

static void choose(sfti_hash_impl *impl, const char *name) {
    static const char *const names[] = { "one", "two", "four", "eight", "sixteen" };
    if (!strcmp(name, "chosen")) {
        sfti_sha_trial(impl);
        return;
    }
    for (size_t i = 0; i < SFTI_SHA_KERNELS; i++) {
        impl->sha[i].cost = strcmp(names[i], name) ? UINT32_MAX : 1;
        if (!strcmp(names[i], name) && !impl->sha[i].blocks)
            bench_die(name, "not on this processor");
    }
    sfti_sha_choose(impl);
}

int main(int argc, char **argv) {
    static hashing h;
    if (argc != 2) bench_die("usage", "bench_hash one|two|four|eight|sixteen|chosen");
    sfti_hash_impl_fill(&h.impl, 0);
    choose(&h.impl, argv[1]);
    h.data = (uint8_t *)bench_buffer(STREAMS * PIECE);
    bench_serve(run_hash, &h);
    free(h.data);
    return 0;
}
