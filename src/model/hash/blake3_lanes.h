/* BLAKE3 of several inputs side by side: word w of all of them is one vector, of four, eight or
 * sixteen lanes. */
#ifndef SFTI_HASH_BLAKE3_LANES_H
#define SFTI_HASH_BLAKE3_LANES_H

#include "base/cpu.h"
#include "hash/hash.h"

#if defined(SFTI_ARM) || (defined(__x86_64__) && defined(__GNUC__))
#include <string.h>

/* V_... is what the width in hand calls it. V_KEEP: v[b] is known last and is added last. */

#define B3X_MIX(a, b, c, d, x, y)                  \
    v[a] = V_ADD(v[a], m[x]);                      \
    V_KEEP(v[a]);                                  \
    v[a] = V_ADD(v[a], v[b]);                      \
    v[d] = V_ROTATE16(V_XOR(v[d], v[a]));          \
    v[c] = V_ADD(v[c], v[d]);                      \
    v[b] = V_ROTATE(V_XOR(v[b], v[c]), 12);        \
    v[a] = V_ADD(v[a], m[y]);                      \
    V_KEEP(v[a]);                                  \
    v[a] = V_ADD(v[a], v[b]);                      \
    v[d] = V_ROTATE8(V_XOR(v[d], v[a]));           \
    v[c] = V_ADD(v[c], v[d]);                      \
    v[b] = V_ROTATE(V_XOR(v[b], v[c]), 7);
#define B3X_ROUND(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q)   \
    B3X_MIX(0, 4, 8, 12, a, b) B3X_MIX(1, 5, 9, 13, c, d)           \
    B3X_MIX(2, 6, 10, 14, e, f) B3X_MIX(3, 7, 11, 15, g, h)         \
    B3X_MIX(0, 5, 10, 15, i, j) B3X_MIX(1, 6, 11, 12, k, l)         \
    B3X_MIX(2, 7, 8, 13, n, o) B3X_MIX(3, 4, 9, 14, p, q)
#define B3X_ROUNDS                                                  \
    B3X_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) \
    B3X_ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8) \
    B3X_ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1) \
    B3X_ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6) \
    B3X_ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4) \
    B3X_ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7) \
    B3X_ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13)

static const uint32_t b3x_iv[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

/* Where each lane reads; lanes without an input of their own read the first's. */
static inline void b3x_inputs(const sfti_blake3_call *call, size_t lanes, const uint8_t **in) {
    for (size_t i = 0; i < lanes; i++)
        in[i] = call->in + (i < call->count ? i * call->stride : 0);
}

static inline void b3x_counters(const sfti_blake3_call *call, size_t lanes, uint32_t *low,
                                uint32_t *high) {
    for (size_t i = 0; i < lanes; i++) {
        uint64_t counter = call->counter + i * call->step;
        low[i] = (uint32_t)counter;
        high[i] = (uint32_t)(counter >> 32);
    }
}

/* words[w * lanes + i] is word w of lane i; this host is little-endian. */
static inline void b3x_store(const sfti_blake3_call *call, size_t lanes, const uint32_t *words) {
    for (size_t i = 0; i < call->count; i++)
        for (size_t w = 0; w < 8; w++)
            memcpy(call->out + 32 * i + 4 * w, &words[w * lanes + i], 4);
}

static inline int b3x_flags(const sfti_blake3_call *call, size_t block) {
    return (int)(call->flags | (block == 0 ? call->first : 0)
                 | (block + 1 == call->blocks ? call->last : 0));
}

#endif
#endif
