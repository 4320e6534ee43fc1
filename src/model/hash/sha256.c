/* SHA-256 of many streams, in plain C, and their queue. Tests: test_hash_sums.c. */
#include "hash/hash.h"

#include <string.h>

/* ── One block, in plain C ── */

const uint32_t sfti_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
};

static inline uint32_t sha_rotate(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

static inline uint32_t sha_word(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Word i of the message; only the last sixteen are kept. */
#define SHA_LOAD(i) (w[i] = sha_word(block + 4 * (i)))
#define SHA_NEXT(i)                                                                        \
    (w[(i) & 15] += w[((i) + 9) & 15] + sha_low(w[((i) + 1) & 15]) + sha_high(w[((i) + 14) & 15]))

static inline uint32_t sha_low(uint32_t x) {
    return sha_rotate(x, 7) ^ sha_rotate(x, 18) ^ x >> 3;
}

static inline uint32_t sha_high(uint32_t x) {
    return sha_rotate(x, 17) ^ sha_rotate(x, 19) ^ x >> 10;
}

/* Round i; the eight words rotate by renaming, not by moving. */
#define SHA_ROUND(a, b, c, d, e, f, g, h, word, i)                                       \
    h += (sha_rotate(e, 6) ^ sha_rotate(e, 11) ^ sha_rotate(e, 25)) + (g ^ (e & (f ^ g))) \
         + k[i] + word(i);                                                                \
    d += h;                                                                               \
    h += (sha_rotate(a, 2) ^ sha_rotate(a, 13) ^ sha_rotate(a, 22))                       \
         + ((a & b) | (c & (a | b)));
#define SHA_EIGHT(word, i)                              \
    SHA_ROUND(a, b, c, d, e, f, g, h, word, (i) + 0)    \
    SHA_ROUND(h, a, b, c, d, e, f, g, word, (i) + 1)    \
    SHA_ROUND(g, h, a, b, c, d, e, f, word, (i) + 2)    \
    SHA_ROUND(f, g, h, a, b, c, d, e, word, (i) + 3)    \
    SHA_ROUND(e, f, g, h, a, b, c, d, word, (i) + 4)    \
    SHA_ROUND(d, e, f, g, h, a, b, c, word, (i) + 5)    \
    SHA_ROUND(c, d, e, f, g, h, a, b, word, (i) + 6)    \
    SHA_ROUND(b, c, d, e, f, g, h, a, word, (i) + 7)

static void sha_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[16];
    const uint32_t *k = sfti_sha256_k;
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    SHA_EIGHT(SHA_LOAD, 0)
    SHA_EIGHT(SHA_LOAD, 8)
    for (int i = 16; i < 64; i += 16) {
        k += 16;
        SHA_EIGHT(SHA_NEXT, 0)
        SHA_EIGHT(SHA_NEXT, 8)
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void sfti_sha_blocks_plain(const sfti_hash_impl *impl, uint32_t *const *states,
                           const uint8_t *const *data, size_t blocks, size_t count) {
    (void)impl;
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < blocks; b++) sha_block(states[i], data[i] + 64 * b);
}

/* ── Streams ── */

void sfti_sha256_begin(sfti_sha256 *sum) {
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(sum->state, start, sizeof start);
    sum->bytes = 0;
}

static void sha_one(const sfti_hash_impl *impl, uint32_t *state, const uint8_t *data,
                    size_t blocks) {
    impl->sha_blocks(impl, &state, &data, blocks, 1);
}

/* Fills the partial block; the rest of the job then begins at a block boundary. */
static void sha_fill_tail(const sfti_hash_impl *impl, sfti_sha_job *job) {
    sfti_sha256 *sum = job->sum;
    size_t used = (size_t)(sum->bytes % 64), part = 64 - used;
    sum->bytes += job->len;
    if (used == 0 || job->len == 0) return;
    if (part > job->len) part = job->len;
    memcpy(sum->tail + used, job->data, part);
    job->data += part;
    job->len -= part;
    if (used + part == 64) sha_one(impl, sum->state, sum->tail, 1);
}

typedef struct sha_lanes {
    sfti_sha_job *job[SFTI_SHA_LANES];
    size_t count;
} sha_lanes;

/* Hashes as many blocks as the shortest has of the lanes that one kernel takes; then removes those
 * that are done. */
static void sha_step(const sfti_hash_impl *impl, sha_lanes *lanes) {
    const sfti_sha_kernel *kernel = &impl->sha[impl->sha_for[lanes->count]];
    size_t taken = lanes->count < kernel->streams ? lanes->count : kernel->streams;
    uint32_t *states[SFTI_SHA_LANES] = { NULL };
    const uint8_t *data[SFTI_SHA_LANES] = { NULL };
    size_t blocks = SIZE_MAX, kept = 0;
    for (size_t i = 0; i < taken; i++) {
        sfti_sha_job *job = lanes->job[i];
        states[i] = job->sum->state;
        data[i] = job->data;
        if (job->len / 64 < blocks) blocks = job->len / 64;
    }
    kernel->blocks(impl, states, data, blocks, taken);
    for (size_t i = 0; i < lanes->count; i++) {
        sfti_sha_job *job = lanes->job[i];
        if (i < taken) {
            job->data += 64 * blocks;
            job->len -= 64 * blocks;
        }
        if (job->len >= 64) lanes->job[kept++] = job;
    }
    lanes->count = kept;
}

void sfti_sha256_run(const sfti_hash_impl *impl, sfti_sha_job *jobs, size_t count) {
    sha_lanes lanes = { .count = 0 };
    size_t next = 0;
    for (size_t i = 0; i < count; i++) sha_fill_tail(impl, &jobs[i]);
    do {
        for (; lanes.count < SFTI_SHA_LANES && next < count; next++)
            if (jobs[next].len >= 64) lanes.job[lanes.count++] = &jobs[next];
        if (lanes.count > 0) sha_step(impl, &lanes);
    } while (lanes.count > 0 || next < count);
    /* The rest, less than a block, goes to the tail, which is empty if there is any rest. */
    for (size_t i = 0; i < count; i++)
        if (jobs[i].len > 0) memcpy(jobs[i].sum->tail, jobs[i].data, jobs[i].len);
}

void sfti_sha256_update(const sfti_hash_impl *impl, sfti_sha256 *sum, const void *data,
                        size_t len) {
    sfti_sha_job job = { sum, data, len };
    sfti_sha256_run(impl, &job, 1);
}

void sfti_sha256_end(const sfti_hash_impl *impl, const sfti_sha256 *sum, uint8_t out[32]) {
    uint32_t state[8];
    uint8_t block[128] = { 0 };
    size_t used = (size_t)(sum->bytes % 64), blocks = used < 56 ? 1 : 2;
    memcpy(state, sum->state, sizeof state);
    memcpy(block, sum->tail, used);
    block[used] = 0x80;
    for (size_t i = 0; i < 8; i++)
        block[64 * blocks - 1 - i] = (uint8_t)(sum->bytes << 3 >> (8 * i));
    sha_one(impl, state, block, blocks);
    for (size_t i = 0; i < 32; i++) out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ── The queue ── */

void sfti_queue_put(sfti_sha_queue *queue, sfti_sha256 *sum, const uint8_t *data, size_t len,
                    uint8_t *end) {
    if (queue->count == SFTI_QUEUE_MOST) sfti_queue_run(queue);
    size_t i = queue->count++;
    if (!sum) {
        sum = &queue->own[i];
        sfti_sha256_begin(sum);
    }
    queue->jobs[i] = (sfti_sha_job){ sum, data, len };
    queue->sums[i] = sum;
    queue->ends[i] = end;
}

void sfti_queue_run(sfti_sha_queue *queue) {
    sfti_sha256_run(queue->impl, queue->jobs, queue->count);
    for (size_t i = 0; i < queue->count; i++)
        if (queue->ends[i]) sfti_sha256_end(queue->impl, queue->sums[i], queue->ends[i]);
    queue->count = 0;
}
