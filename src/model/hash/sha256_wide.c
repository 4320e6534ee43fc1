/* SHA-256 of eight or sixteen streams at once: word w of all of them is one vector. */
#include "base/cpu.h"
#include "hash/hash.h"
#include "hash/transpose_x86.h"

#if defined(__x86_64__) && defined(__GNUC__)

/* W_... is what the width in hand calls it. */

#define SHAW_SIGMA(x, p, q, r) W_XOR3(W_ROTATE(x, p), W_ROTATE(x, q), W_ROTATE(x, r))
#define SHAW_SMALL(x, p, q, r) W_XOR3(W_ROTATE(x, p), W_ROTATE(x, q), W_SHIFT(x, r))
#define SHAW_WORD(i) (m[i])
#define SHAW_NEXT(i)                                                                         \
    (m[i] = W_ADD(W_ADD(m[i], SHAW_SMALL(m[((i) + 1) & 15], 7, 18, 3)),                      \
                  W_ADD(m[((i) + 9) & 15], SHAW_SMALL(m[((i) + 14) & 15], 17, 19, 10))))
/* e is known last: what depends on it is added last. */
#define SHAW_ROUND(a, b, c, d, e, f, g, h, word, i)                                          \
    {                                                                                        \
        W_VECTOR sum = W_ADD(h, W_ADD(word(i), W_SET(k[i])));                                \
        VECTOR_KEEP(sum);                                                                      \
        sum = W_ADD(sum, W_CHOOSE(e, f, g));                                                 \
        VECTOR_KEEP(sum);                                                                      \
        sum = W_ADD(sum, SHAW_SIGMA(e, 6, 11, 25));                                          \
        VECTOR_KEEP(sum);                                                                      \
        d = W_ADD(d, sum);                                                                   \
        h = W_ADD(sum, W_ADD(SHAW_SIGMA(a, 2, 13, 22), W_MAJORITY(a, b, c)));                \
    }
#define SHAW_EIGHT(word, i)                              \
    SHAW_ROUND(a, b, c, d, e, f, g, h, word, (i) + 0)    \
    SHAW_ROUND(h, a, b, c, d, e, f, g, word, (i) + 1)    \
    SHAW_ROUND(g, h, a, b, c, d, e, f, word, (i) + 2)    \
    SHAW_ROUND(f, g, h, a, b, c, d, e, word, (i) + 3)    \
    SHAW_ROUND(e, f, g, h, a, b, c, d, word, (i) + 4)    \
    SHAW_ROUND(d, e, f, g, h, a, b, c, word, (i) + 5)    \
    SHAW_ROUND(c, d, e, f, g, h, a, b, word, (i) + 6)    \
    SHAW_ROUND(b, c, d, e, f, g, h, a, word, (i) + 7)
#define SHAW_BLOCK                                                                           \
    {                                                                                        \
        const uint32_t *k = sfti_sha256_k;                                                   \
        W_VECTOR a = s[0], b = s[1], c = s[2], d = s[3];                                     \
        W_VECTOR e = s[4], f = s[5], g = s[6], h = s[7];                                     \
        SHAW_EIGHT(SHAW_WORD, 0)                                                             \
        SHAW_EIGHT(SHAW_WORD, 8)                                                             \
        for (int i = 16; i < 64; i += 16) {                                                  \
            k += 16;                                                                         \
            SHAW_EIGHT(SHAW_NEXT, 0)                                                         \
            SHAW_EIGHT(SHAW_NEXT, 8)                                                         \
        }                                                                                    \
        s[0] = W_ADD(s[0], a);                                                               \
        s[1] = W_ADD(s[1], b);                                                               \
        s[2] = W_ADD(s[2], c);                                                               \
        s[3] = W_ADD(s[3], d);                                                               \
        s[4] = W_ADD(s[4], e);                                                               \
        s[5] = W_ADD(s[5], f);                                                               \
        s[6] = W_ADD(s[6], g);                                                               \
        s[7] = W_ADD(s[7], h);                                                               \
    }

/* words[w * lanes + i] is word w of stream i. Lanes without a stream of their own hash the first
 * once more, and nothing is made of it. */
static inline void shaw_begin(uint32_t *const *states, const uint8_t *const *data, size_t count,
                              size_t lanes, uint32_t *words, const uint8_t **in) {
    for (size_t i = 0; i < lanes; i++) {
        size_t from = i < count ? i : 0;
        in[i] = data[from];
        for (size_t w = 0; w < 8; w++) words[w * lanes + i] = states[from][w];
    }
}

static inline void shaw_end(uint32_t *const *states, size_t count, size_t lanes,
                            const uint32_t *words) {
    for (size_t i = 0; i < count; i++)
        for (size_t w = 0; w < 8; w++) states[i][w] = words[w * lanes + i];
}

/* ── Eight ── */

#define W_VECTOR __m256i
#define W_ADD _mm256_add_epi32
#define W_SET(x) _mm256_set1_epi32((int)(x))
#define W_SHIFT _mm256_srli_epi32
#define W_ROTATE(x, n) shaw_either8(_mm256_srli_epi32(x, n), _mm256_slli_epi32(x, 32 - (n)))
#define W_XOR3(x, y, z) _mm256_xor_si256(_mm256_xor_si256(x, y), z)
#define W_CHOOSE(x, y, z) \
    _mm256_xor_si256(z, _mm256_and_si256(x, _mm256_xor_si256(y, z)))
#define W_MAJORITY(x, y, z) \
    _mm256_or_si256(_mm256_and_si256(x, y), _mm256_and_si256(z, _mm256_or_si256(x, y)))

VECTOR_AVX2 static inline __m256i shaw_either8(__m256i x, __m256i y) {
    __m256i both = _mm256_or_si256(x, y);
    VECTOR_KEEP(both);
    return both;
}

VECTOR_AVX2 static void shaw_blocks8(const sfti_hash_impl *impl, uint32_t *const *states,
                                   const uint8_t *const *data, size_t blocks, size_t count) {
    const __m256i order = _mm256_set_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203,
                                           0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    const uint8_t *in[8];
    uint32_t words[64];
    __m256i s[8], m[16];
    (void)impl;
    shaw_begin(states, data, count, 8, words, in);
    VECTOR_UNROLL for (int w = 0; w < 8; w++) s[w] = vector_load8(words + 8 * w);
    for (size_t block = 0; block < blocks; block++) {
        transpose8(in, 64 * block, m);
        transpose8(in, 64 * block + 32, m + 8);
        VECTOR_UNROLL for (int w = 0; w < 16; w++) m[w] = _mm256_shuffle_epi8(m[w], order);
        SHAW_BLOCK
    }
    VECTOR_UNROLL for (int w = 0; w < 8; w++)
        _mm256_storeu_si256((__m256i *)(void *)(words + 8 * w), s[w]);
    shaw_end(states, count, 8, words);
}

#undef W_VECTOR
#undef W_ADD
#undef W_SET
#undef W_SHIFT
#undef W_ROTATE
#undef W_XOR3
#undef W_CHOOSE
#undef W_MAJORITY

/* ── Sixteen ── */

#define W_VECTOR __m512i
#define W_ADD _mm512_add_epi32
#define W_SET(x) _mm512_set1_epi32((int)(x))
#define W_SHIFT _mm512_srli_epi32
#define W_ROTATE _mm512_ror_epi32
#define W_XOR3(x, y, z) _mm512_ternarylogic_epi32(x, y, z, 0x96)
#define W_CHOOSE(x, y, z) _mm512_ternarylogic_epi32(x, y, z, 0xca)
#define W_MAJORITY(x, y, z) _mm512_ternarylogic_epi32(x, y, z, 0xe8)

__attribute__((target("avx512f,avx512bw"))) static void
shaw_blocks16(const sfti_hash_impl *impl, uint32_t *const *states, const uint8_t *const *data,
              size_t blocks, size_t count) {
    const __m512i order = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    const uint8_t *in[16];
    uint32_t words[128];
    __m512i s[8], m[16];
    (void)impl;
    shaw_begin(states, data, count, 16, words, in);
    VECTOR_UNROLL for (int w = 0; w < 8; w++) s[w] = _mm512_loadu_si512(words + 16 * w);
    for (size_t block = 0; block < blocks; block++) {
        transpose16(in, 64 * block, m);
        VECTOR_UNROLL for (int w = 0; w < 16; w++) m[w] = _mm512_shuffle_epi8(m[w], order);
        SHAW_BLOCK
    }
    VECTOR_UNROLL for (int w = 0; w < 8; w++) _mm512_storeu_si512(words + 16 * w, s[w]);
    shaw_end(states, count, 16, words);
}

#undef W_VECTOR
#undef W_ADD
#undef W_SET
#undef W_SHIFT
#undef W_ROTATE
#undef W_XOR3
#undef W_CHOOSE
#undef W_MAJORITY

sfti_sha_blocks_fn sfti_sha_blocks_wide(size_t lanes) {
    if (lanes == 8) return sfti_cpu_has(SFTI_CPU_AVX2) ? shaw_blocks8 : NULL;
    return sfti_cpu_has(SFTI_CPU_AVX512F | SFTI_CPU_AVX512BW) ? shaw_blocks16 : NULL;
}

#else

sfti_sha_blocks_fn sfti_sha_blocks_wide(size_t lanes) {
    (void)lanes;
    return NULL;
}

#endif
