#include "base/cpu.h"
#include "base/endian.h"
#include "hash/hash.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#include <string.h>

/* Eight or sixteen inputs side by side: word w of all of them is one vector. The macros are
 * the same for both; V_... is what the width in hand calls it. */

#define B3X_MIX(a, b, c, d, x, y)                  \
    v[a] = V_ADD(V_ADD(v[a], v[b]), m[x]);         \
    v[d] = V_ROTATE16(V_XOR(v[d], v[a]));          \
    v[c] = V_ADD(v[c], v[d]);                      \
    v[b] = V_ROTATE(V_XOR(v[b], v[c]), 12);        \
    v[a] = V_ADD(V_ADD(v[a], v[b]), m[y]);         \
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
static void b3x_inputs(const sfti_blake3_call *call, size_t lanes, const uint8_t **in) {
    for (size_t i = 0; i < lanes; i++)
        in[i] = call->in + (i < call->count ? i * call->stride : 0);
}

static void b3x_counters(const sfti_blake3_call *call, size_t lanes, uint32_t *low,
                         uint32_t *high) {
    for (size_t i = 0; i < lanes; i++) {
        uint64_t counter = call->counter + i * call->step;
        low[i] = (uint32_t)counter;
        high[i] = (uint32_t)(counter >> 32);
    }
}

/* words[w * lanes + i] is word w of lane i; this host is little-endian. */
static void b3x_store(const sfti_blake3_call *call, size_t lanes, const uint32_t *words) {
    for (size_t i = 0; i < call->count; i++)
        for (size_t w = 0; w < 8; w++)
            memcpy(call->out + 32 * i + 4 * w, &words[w * lanes + i], 4);
}

static int b3x_flags(const sfti_blake3_call *call, size_t block) {
    return (int)(call->flags | (block == 0 ? call->first : 0)
                 | (block + 1 == call->blocks ? call->last : 0));
}

/* ── Eight ── */

#define B3X_AVX2 __attribute__((target("avx2")))
#define V_ADD _mm256_add_epi32
#define V_XOR _mm256_xor_si256
#define V_ROTATE(x, n) _mm256_or_si256(_mm256_srli_epi32(x, n), _mm256_slli_epi32(x, 32 - (n)))
#define V_ROTATE16(x) _mm256_shuffle_epi8(x, by16)
#define V_ROTATE8(x) _mm256_shuffle_epi8(x, by8)

B3X_AVX2 static inline __m256i b3x_load8(const uint8_t *at) {
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

/* Half a block of eight lanes into eight words. */
B3X_AVX2 static inline void b3x_turn8(const uint8_t *const in[8], size_t at, __m256i m[8]) {
    __m256i a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        __m256i even = b3x_load8(in[i] + at), odd = b3x_load8(in[i + 1] + at);
        a[i] = _mm256_unpacklo_epi32(even, odd);
        a[i + 1] = _mm256_unpackhi_epi32(even, odd);
    }
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        m[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        m[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

B3X_AVX2 static void b3x_lanes8(const sfti_blake3_call *call) {
    const __m256i by16 = _mm256_set_epi8(
        13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2, 13, 12, 15, 14, 9, 8, 11, 10, 5,
        4, 7, 6, 1, 0, 3, 2);
    const __m256i by8 = _mm256_set_epi8(
        12, 15, 14, 13, 8, 11, 10, 9, 4, 7, 6, 5, 0, 3, 2, 1, 12, 15, 14, 13, 8, 11, 10, 9, 4,
        7, 6, 5, 0, 3, 2, 1);
    const uint8_t *in[8];
    uint32_t low[8], high[8], words[64];
    __m256i h[8], v[16], m[16];
    b3x_inputs(call, 8, in);
    b3x_counters(call, 8, low, high);
    for (int w = 0; w < 8; w++) h[w] = _mm256_set1_epi32((int)b3x_iv[w]);
    for (size_t block = 0; block < call->blocks; block++) {
        b3x_turn8(in, 64 * block, m);
        b3x_turn8(in, 64 * block + 32, m + 8);
        for (int w = 0; w < 8; w++) v[w] = h[w];
        for (int w = 0; w < 4; w++) v[8 + w] = _mm256_set1_epi32((int)b3x_iv[w]);
        v[12] = b3x_load8((const uint8_t *)low);
        v[13] = b3x_load8((const uint8_t *)high);
        v[14] = _mm256_set1_epi32(64);
        v[15] = _mm256_set1_epi32(b3x_flags(call, block));
        B3X_ROUNDS
        for (int w = 0; w < 8; w++) h[w] = V_XOR(v[w], v[w + 8]);
    }
    for (int w = 0; w < 8; w++)
        _mm256_storeu_si256((__m256i *)(void *)(words + 8 * w), h[w]);
    b3x_store(call, 8, words);
}

#undef V_ADD
#undef V_XOR
#undef V_ROTATE
#undef V_ROTATE16
#undef V_ROTATE8

/* ── Sixteen ── */

#define B3X_AVX512 __attribute__((target("avx512f")))
#define V_ADD _mm512_add_epi32
#define V_XOR _mm512_xor_si512
#define V_ROTATE(x, n) _mm512_ror_epi32(x, n)
#define V_ROTATE16(x) _mm512_ror_epi32(x, 16)
#define V_ROTATE8(x) _mm512_ror_epi32(x, 8)

/* A block of sixteen lanes into sixteen words. */
B3X_AVX512 static inline void b3x_turn16(const uint8_t *const in[16], size_t at,
                                         __m512i m[16]) {
    __m512i a[16], b[16];
    for (int i = 0; i < 16; i += 2) {
        __m512i even = _mm512_loadu_si512(in[i] + at), odd = _mm512_loadu_si512(in[i + 1] + at);
        a[i] = _mm512_unpacklo_epi32(even, odd);
        a[i + 1] = _mm512_unpackhi_epi32(even, odd);
    }
    /* b[4g + w]: words w, w + 4, w + 8, w + 12 of lanes 4g to 4g + 3, a quarter each */
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    for (int w = 0; w < 4; w++) {
        __m512i low = _mm512_shuffle_i32x4(b[w], b[w + 4], 0x88);
        __m512i high = _mm512_shuffle_i32x4(b[w + 8], b[w + 12], 0x88);
        __m512i low_odd = _mm512_shuffle_i32x4(b[w], b[w + 4], 0xdd);
        __m512i high_odd = _mm512_shuffle_i32x4(b[w + 8], b[w + 12], 0xdd);
        m[w] = _mm512_shuffle_i32x4(low, high, 0x88);
        m[w + 8] = _mm512_shuffle_i32x4(low, high, 0xdd);
        m[w + 4] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
        m[w + 12] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
    }
}

B3X_AVX512 static void b3x_lanes16(const sfti_blake3_call *call) {
    const uint8_t *in[16];
    uint32_t low[16], high[16], words[128];
    __m512i h[8], v[16], m[16];
    b3x_inputs(call, 16, in);
    b3x_counters(call, 16, low, high);
    for (int w = 0; w < 8; w++) h[w] = _mm512_set1_epi32((int)b3x_iv[w]);
    for (size_t block = 0; block < call->blocks; block++) {
        b3x_turn16(in, 64 * block, m);
        for (int w = 0; w < 8; w++) v[w] = h[w];
        for (int w = 0; w < 4; w++) v[8 + w] = _mm512_set1_epi32((int)b3x_iv[w]);
        v[12] = _mm512_loadu_si512(low);
        v[13] = _mm512_loadu_si512(high);
        v[14] = _mm512_set1_epi32(64);
        v[15] = _mm512_set1_epi32(b3x_flags(call, block));
        B3X_ROUNDS
        for (int w = 0; w < 8; w++) h[w] = V_XOR(v[w], v[w + 8]);
    }
    for (int w = 0; w < 8; w++) _mm512_storeu_si512(words + 16 * w, h[w]);
    b3x_store(call, 16, words);
}

#undef V_ADD
#undef V_XOR
#undef V_ROTATE
#undef V_ROTATE16
#undef V_ROTATE8

sfti_blake3_lanes_fn sfti_blake3_lanes_x86(bool wide, size_t *lanes) {
    *lanes = 16;
    if (wide && sfti_cpu_has(SFTI_CPU_AVX512F)) return b3x_lanes16;
    *lanes = 8;
    return sfti_cpu_has(SFTI_CPU_AVX2) ? b3x_lanes8 : NULL;
}

#else

sfti_blake3_lanes_fn sfti_blake3_lanes_x86(bool wide, size_t *lanes) {
    (void)wide;
    (void)lanes;
    return NULL;
}

#endif
