/* SHA-256 with the instructions of x86. Tests: test_hash_sums.c. */
#include "base/cpu.h"
#include "hash/hash.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define SHANI_TARGET __attribute__((target("sha,sse4.1,ssse3")))
#if defined(__clang__)
#define SHANI_UNROLL _Pragma("unroll")
#else
#define SHANI_UNROLL _Pragma("GCC unroll 4")
#endif
#define SHANI_STREAMS 4
/* The same step for every stream: a round depends only on its own stream's last one, so the
 * processor runs the streams in parallel. */
#define SHANI_EACH SHANI_UNROLL for (size_t i = 0; i < count; i++)

/* Words of the message for rounds 4g to 4g + 3 (m[g % 4]), then these rounds. */
#define SHANI_LOAD(g)                                                                        \
    SHANI_EACH m[g][i] = _mm_shuffle_epi8(                                                   \
        _mm_loadu_si128((const __m128i *)(const void *)(data[i] + at + 16 * (g))), order);
#define SHANI_SCHEDULE(g)                                                                    \
    SHANI_EACH m[(g) & 3][i] = _mm_sha256msg2_epu32(                                         \
        _mm_add_epi32(_mm_sha256msg1_epu32(m[(g) & 3][i], m[((g) + 1) & 3][i]),              \
                      _mm_alignr_epi8(m[((g) + 3) & 3][i], m[((g) + 2) & 3][i], 4)),         \
        m[((g) + 3) & 3][i]);
#define SHANI_ROUNDS(g)                                                                      \
    {                                                                                        \
        __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(constants + 4 * (g)));   \
        SHANI_EACH {                                                                         \
            __m128i w = _mm_add_epi32(m[(g) & 3][i], k);                                     \
            cdgh[i] = _mm_sha256rnds2_epu32(cdgh[i], abef[i], w);                            \
            abef[i] = _mm_sha256rnds2_epu32(abef[i], cdgh[i], _mm_shuffle_epi32(w, 0x0E));   \
        }                                                                                    \
    }
#define SHANI_FIRST(g) SHANI_LOAD(g) SHANI_ROUNDS(g)
#define SHANI_NEXT(g) SHANI_SCHEDULE(g) SHANI_ROUNDS(g)
#ifdef __OPTIMIZE_SIZE__ /* half the size, and up to a twentieth slower */
#define SHANI_REST                                                                           \
    for (constants += 16; constants < sfti_sha256_k + 64; constants += 16) {                 \
        SHANI_NEXT(0) SHANI_NEXT(1) SHANI_NEXT(2) SHANI_NEXT(3)                              \
    }
#else
#define SHANI_REST                                                                           \
    SHANI_NEXT(4) SHANI_NEXT(5) SHANI_NEXT(6) SHANI_NEXT(7)                                  \
    SHANI_NEXT(8) SHANI_NEXT(9) SHANI_NEXT(10) SHANI_NEXT(11)                                \
    SHANI_NEXT(12) SHANI_NEXT(13) SHANI_NEXT(14) SHANI_NEXT(15)
#endif

/* count is a constant wherever this is inlined. */
SHANI_TARGET static inline __attribute__((always_inline)) void
shani_streams(uint32_t *const *states, const uint8_t *const *data, size_t blocks,
              const size_t count) {
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i abef[SHANI_STREAMS], cdgh[SHANI_STREAMS], m[4][SHANI_STREAMS];
    __m128i abef_before[SHANI_STREAMS], cdgh_before[SHANI_STREAMS];
    SHANI_EACH {
        const __m128i *at = (const __m128i *)(const void *)states[i];
        __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(at), 0xB1);
        __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(at + 1), 0x1B);
        abef[i] = _mm_alignr_epi8(low, high, 8);
        cdgh[i] = _mm_blend_epi16(high, low, 0xF0);
    }
    for (size_t at = 0; at < 64 * blocks; at += 64) {
        const uint32_t *constants = sfti_sha256_k;
        SHANI_EACH {
            abef_before[i] = abef[i];
            cdgh_before[i] = cdgh[i];
        }
        SHANI_FIRST(0) SHANI_FIRST(1) SHANI_FIRST(2) SHANI_FIRST(3)
        SHANI_REST
        SHANI_EACH {
            abef[i] = _mm_add_epi32(abef[i], abef_before[i]);
            cdgh[i] = _mm_add_epi32(cdgh[i], cdgh_before[i]);
        }
    }
    SHANI_EACH {
        __m128i *at = (__m128i *)(void *)states[i];
        __m128i low = _mm_shuffle_epi32(abef[i], 0x1B);
        __m128i high = _mm_shuffle_epi32(cdgh[i], 0xB1);
        _mm_storeu_si128(at, _mm_blend_epi16(low, high, 0xF0));
        _mm_storeu_si128(at + 1, _mm_alignr_epi8(high, low, 8));
    }
}

SHANI_TARGET static void shani_blocks(const sfti_hash_impl *impl, uint32_t *const *states,
                                      const uint8_t *const *data, size_t blocks,
                                      size_t count) {
    (void)impl;
    switch (count) {
    case 1: shani_streams(states, data, blocks, 1); return;
    case 2: shani_streams(states, data, blocks, 2); return;
    case 3: shani_streams(states, data, blocks, 3); return;
    default: shani_streams(states, data, blocks, 4); return;
    }
}

sfti_sha_blocks_fn sfti_sha_blocks_x86(void) {
    return sfti_cpu_has(SFTI_CPU_SHA | SFTI_CPU_SSSE3 | SFTI_CPU_SSE41) ? shani_blocks : NULL;
}

#else

sfti_sha_blocks_fn sfti_sha_blocks_x86(void) {
    return NULL;
}

#endif
