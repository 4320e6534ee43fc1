/* BLAKE3 of eight or sixteen inputs at once. Tests: test_hash_sums.c. */
#include "base/cpu.h"
#include "hash/blake3_lanes.h"
#include "hash/transpose_x86.h"

#if defined(__x86_64__) && defined(__GNUC__)

/* ── Eight ── */

#define V_ADD _mm256_add_epi32
#define V_KEEP VECTOR_KEEP
#define V_XOR _mm256_xor_si256
#define V_ROTATE(x, n) _mm256_or_si256(_mm256_srli_epi32(x, n), _mm256_slli_epi32(x, 32 - (n)))
#define V_ROTATE16(x) _mm256_shuffle_epi8(x, by16)
#define V_ROTATE8(x) _mm256_shuffle_epi8(x, by8)

VECTOR_AVX2 static void b3x_lanes8(const sfti_blake3_call *call) {
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
        transpose8(in, 64 * block, m);
        transpose8(in, 64 * block + 32, m + 8);
        for (int w = 0; w < 8; w++) v[w] = h[w];
        for (int w = 0; w < 4; w++) v[8 + w] = _mm256_set1_epi32((int)b3x_iv[w]);
        v[12] = vector_load8(low);
        v[13] = vector_load8(high);
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
#undef V_KEEP
#undef V_XOR
#undef V_ROTATE
#undef V_ROTATE16
#undef V_ROTATE8

/* ── Sixteen ── */

#define V_ADD _mm512_add_epi32
#define V_KEEP VECTOR_KEEP
#define V_XOR _mm512_xor_si512
#define V_ROTATE(x, n) _mm512_ror_epi32(x, n)
#define V_ROTATE16(x) _mm512_ror_epi32(x, 16)
#define V_ROTATE8(x) _mm512_ror_epi32(x, 8)

VECTOR_AVX512 static void b3x_lanes16(const sfti_blake3_call *call) {
    const uint8_t *in[16];
    uint32_t low[16], high[16], words[128];
    __m512i h[8], v[16], m[16];
    b3x_inputs(call, 16, in);
    b3x_counters(call, 16, low, high);
    for (int w = 0; w < 8; w++) h[w] = _mm512_set1_epi32((int)b3x_iv[w]);
    for (size_t block = 0; block < call->blocks; block++) {
        transpose16(in, 64 * block, m);
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
#undef V_KEEP
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
