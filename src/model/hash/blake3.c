/* BLAKE3: its tree, and segments for several threads. Tests: test_hash_sums.c. */
#include "base/endian.h"
#include "hash/hash.h"

#include <string.h>

/* Chunks of 1 KiB are leaves of a binary tree; every full subtree to the left is kept as
 * one chaining value on the stack, the largest at the bottom. */

#define B3_BLOCK 64
#define B3_CHUNK SFTI_BLAKE3_CHUNK
#define B3_SUBTREE 256 /* chunks hashed at once at most; a power of two */

enum { B3_CHUNK_START = 1, B3_CHUNK_END = 2, B3_PARENT = 4, B3_ROOT = 8 };

static const uint32_t b3_iv[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

static const uint8_t b3_words[7][16] = {
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    { 2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8 },
    { 3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1 },
    { 10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6 },
    { 12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4 },
    { 9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7 },
    { 11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13 },
};

/* ── One block ── */

static inline uint32_t b3_rotate(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

static inline void b3_mix(uint32_t *v, int a, int b, int c, int d, uint32_t x, uint32_t y) {
    v[a] += v[b] + x;
    v[d] = b3_rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = b3_rotate(v[b] ^ v[c], 12);
    v[a] += v[b] + y;
    v[d] = b3_rotate(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = b3_rotate(v[b] ^ v[c], 7);
}

static void b3_round(uint32_t v[16], const uint32_t m[16], const uint8_t w[16]) {
    b3_mix(v, 0, 4, 8, 12, m[w[0]], m[w[1]]);
    b3_mix(v, 1, 5, 9, 13, m[w[2]], m[w[3]]);
    b3_mix(v, 2, 6, 10, 14, m[w[4]], m[w[5]]);
    b3_mix(v, 3, 7, 11, 15, m[w[6]], m[w[7]]);
    b3_mix(v, 0, 5, 10, 15, m[w[8]], m[w[9]]);
    b3_mix(v, 1, 6, 11, 12, m[w[10]], m[w[11]]);
    b3_mix(v, 2, 7, 8, 13, m[w[12]], m[w[13]]);
    b3_mix(v, 3, 4, 9, 14, m[w[14]], m[w[15]]);
}

static void b3_compress(uint32_t cv[8], const uint8_t block[64], uint32_t len, uint64_t counter,
                        uint32_t flags) {
    uint32_t m[16], v[16];
    for (int i = 0; i < 16; i++) m[i] = sfti_get_u32(block + 4 * i);
    memcpy(v, cv, 32);
    memcpy(v + 8, b3_iv, 16);
    v[12] = (uint32_t)counter;
    v[13] = (uint32_t)(counter >> 32);
    v[14] = len;
    v[15] = flags;
    for (int r = 0; r < 7; r++) b3_round(v, m, b3_words[r]);
    for (int i = 0; i < 8; i++) cv[i] = v[i] ^ v[i + 8];
}

static void b3_store(const uint32_t cv[8], uint8_t out[32]) {
    for (size_t i = 0; i < 32; i++) out[i] = (uint8_t)(cv[i / 4] >> (8 * (i % 4)));
}

void sfti_blake3_lanes_plain(const sfti_blake3_call *call) {
    for (size_t i = 0; i < call->count; i++) {
        uint32_t cv[8];
        memcpy(cv, b3_iv, sizeof cv);
        for (size_t b = 0; b < call->blocks; b++) {
            uint32_t flags = call->flags | (b == 0 ? call->first : 0)
                             | (b + 1 == call->blocks ? call->last : 0);
            b3_compress(cv, call->in + i * call->stride + b * B3_BLOCK, B3_BLOCK,
                        call->counter + i * call->step, flags);
        }
        b3_store(cv, call->out + 32 * i);
    }
}

static void b3_lanes(const sfti_hash_impl *impl, sfti_blake3_call call, size_t count) {
    while (count > 0) {
        call.count = count < impl->lanes ? count : impl->lanes;
        impl->blake3_lanes(&call);
        count -= call.count;
        call.in += call.count * call.stride;
        call.out += call.count * 32;
        call.counter += call.count * call.step;
    }
}

/* ── The stack ── */

static void b3_parent(const uint8_t children[64], uint32_t flags, uint8_t out[32]) {
    uint32_t cv[8];
    memcpy(cv, b3_iv, sizeof cv);
    b3_compress(cv, children, B3_BLOCK, 0, B3_PARENT | flags);
    b3_store(cv, out);
}

/* Called once more input follows the first `chunks` chunks: only then are equal subtrees joined,
 * because the last parent made is the root and is finished differently. */
static void b3_merge(sfti_blake3 *sum, uint64_t chunks) {
    uint32_t depth = 0; /* of so many chunks: a subtree for each bit of their number */
    for (uint64_t bits = chunks - sum->begin; bits; bits &= bits - 1) depth++;
    for (; sum->depth > depth; sum->depth--)
        b3_parent(sum->stack[sum->depth - 2], 0, sum->stack[sum->depth - 2]);
}

static void b3_push(sfti_blake3 *sum, const uint8_t cv[32], uint64_t chunks) {
    b3_merge(sum, chunks);
    memcpy(sum->stack[sum->depth++], cv, 32);
}

/* ── Chunks ── */

static void b3_chunk_begin(sfti_blake3 *sum) {
    memcpy(sum->cv, b3_iv, sizeof sum->cv);
    sum->block_len = sum->blocks = 0;
}

void sfti_blake3_begin(sfti_blake3 *sum, uint64_t chunk) {
    sum->begin = sum->chunks = chunk;
    sum->depth = 0;
    b3_chunk_begin(sum);
}

static uint32_t b3_chunk_flags(const sfti_blake3 *sum) {
    return sum->blocks == 0 ? B3_CHUNK_START : 0;
}

static size_t b3_chunk_len(const sfti_blake3 *sum) {
    return (size_t)sum->blocks * B3_BLOCK + sum->block_len;
}

/* Feeds the chunk to its end; holds its last block back, as it may be the last of the input. */
static size_t b3_chunk_put(sfti_blake3 *sum, const uint8_t *data, size_t len) {
    size_t cap = B3_CHUNK - b3_chunk_len(sum), taken = len < cap ? len : cap;
    for (size_t left = taken; left > 0;) {
        if (sum->block_len == B3_BLOCK) {
            b3_compress(sum->cv, sum->block, B3_BLOCK, sum->chunks, b3_chunk_flags(sum));
            sum->blocks++;
            sum->block_len = 0;
        }
        size_t part = B3_BLOCK - sum->block_len;
        if (part > left) part = left;
        memcpy(sum->block + sum->block_len, data, part);
        sum->block_len += (uint32_t)part;
        data += part;
        left -= part;
    }
    return taken;
}

static void b3_chunk_last(const sfti_blake3 *sum, uint32_t flags, uint8_t out[32]) {
    uint32_t cv[8];
    uint8_t block[B3_BLOCK] = { 0 };
    memcpy(cv, sum->cv, sizeof cv);
    memcpy(block, sum->block, sum->block_len);
    b3_compress(cv, block, sum->block_len, sum->chunks,
                b3_chunk_flags(sum) | B3_CHUNK_END | flags);
    b3_store(cv, out);
}

/* ── Subtrees ── */

/* The two halves of a full subtree of count chunks (a power of two, at least 2). */
static void b3_subtree(const sfti_hash_impl *impl, const uint8_t *data, size_t count,
                       uint64_t chunks, uint8_t halves[64]) {
    uint8_t low[B3_SUBTREE * 32], high[B3_SUBTREE * 16]; /* a level, and the next one up */
    uint8_t *now = low, *next = high;
    sfti_blake3_call leaves = { .in = data, .stride = B3_CHUNK, .blocks = B3_CHUNK / B3_BLOCK,
                                .counter = chunks, .step = 1, .first = B3_CHUNK_START,
                                .last = B3_CHUNK_END, .out = low };
    b3_lanes(impl, leaves, count);
    for (; count > 2; count /= 2) {
        sfti_blake3_call parents = { .in = now, .stride = 64, .blocks = 1,
                                     .flags = B3_PARENT, .out = next };
        b3_lanes(impl, parents, count / 2);
        now = next;
        next = now == low ? high : low;
    }
    memcpy(halves, now, 64);
}

void sfti_blake3_update(const sfti_hash_impl *impl, sfti_blake3 *sum, const uint8_t *data,
                        size_t len) {
    uint8_t halves[64];
    while (len > 0) {
        size_t begun = b3_chunk_len(sum);
        if (begun == B3_CHUNK) {
            b3_chunk_last(sum, 0, halves);
            b3_push(sum, halves, sum->chunks++);
            b3_chunk_begin(sum);
            begun = 0;
        }
        /* Chunks of the largest full subtree that begins here; 1 when it has to be one chunk. */
        size_t count = begun == 0 ? B3_SUBTREE : 1;
        while (count > 1 && (count * B3_CHUNK > len || sum->chunks % count)) count /= 2;
        size_t taken = count * B3_CHUNK;
        if (count > 1) {
            b3_subtree(impl, data, count, sum->chunks, halves);
            b3_push(sum, halves, sum->chunks);
            b3_push(sum, halves + 32, sum->chunks + count / 2);
            sum->chunks += count;
        } else {
            b3_merge(sum, sum->chunks);
            taken = b3_chunk_put(sum, data, len);
        }
        data += taken;
        len -= taken;
    }
}

/* Joins what is on the stack from its top down, as if no more input followed. */
static void b3_join(const sfti_blake3 *sum, uint32_t root, uint8_t out[32]) {
    uint8_t pair[64];
    uint32_t depth = sum->depth;
    if (depth == 0) {
        b3_chunk_last(sum, root, out);
        return;
    }
    if (b3_chunk_len(sum) > 0) b3_chunk_last(sum, 0, pair + 32);
    else memcpy(pair + 32, sum->stack[--depth], 32);
    while (depth-- > 0) {
        memcpy(pair, sum->stack[depth], 32);
        b3_parent(pair, depth == 0 ? root : 0, pair + 32);
    }
    memcpy(out, pair + 32, 32);
}

void sfti_blake3_end(const sfti_blake3 *sum, uint8_t out[32]) {
    b3_join(sum, B3_ROOT, out);
}

/* ── Segments ── */

void sfti_segments_feed(sfti_blake3_segments *segments, const sfti_hash_impl *impl,
                        sfti_blake3 *sum, uint64_t at, const uint8_t *data, size_t len) {
    while (len > 0) {
        uint64_t left = segments->bytes - at % segments->bytes;
        size_t part = len < left ? len : (size_t)left;
        sfti_blake3_update(impl, sum, data, part);
        at += part;
        data += part;
        len -= part;
        if (part < left) return;
        b3_join(sum, 0, segments->values[at / segments->bytes - 1]);
        sfti_blake3_begin(sum, at / B3_CHUNK);
    }
}

void sfti_segments_end(const sfti_blake3_segments *segments, uint8_t out[32]) {
    const sfti_blake3 *rest = &segments->rest;
    sfti_blake3 all = *rest;
    all.begin = 0;
    all.depth = 0;
    for (size_t i = 0; i < segments->count; i++) b3_push(&all, segments->values[i], i);
    if (rest->depth > 0 || b3_chunk_len(rest) > 0) b3_merge(&all, segments->count);
    memcpy(all.stack[all.depth], rest->stack, sizeof *rest->stack * rest->depth);
    all.depth += rest->depth;
    sfti_blake3_end(&all, out);
}
