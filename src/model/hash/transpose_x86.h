/* Words of several inputs as vectors: word w of all of them is one vector, of eight or sixteen
 * lanes. */
#ifndef SFTI_HASH_TRANSPOSE_X86_H
#define SFTI_HASH_TRANSPOSE_X86_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_AVX2 __attribute__((target("avx2")))
#define VECTOR_AVX512 __attribute__((target("avx512f")))
#if defined(__clang__)
#define VECTOR_UNROLL _Pragma("unroll")
#else
#define VECTOR_UNROLL _Pragma("GCC unroll 16")
#endif

/* The sum so far, as a value that is not added up in another order: gcc reorders sums so that
 * more of them wait at once than there are registers. */
#define VECTOR_KEEP(x) __asm__("" : "+v"(x))

VECTOR_AVX2 static inline __m256i vector_load8(const void *at) {
    return _mm256_loadu_si256((const __m256i *)at);
}

/* 32 bytes of each of eight inputs into eight words. */
VECTOR_AVX2 static inline void transpose8(const uint8_t *const in[8], size_t at, __m256i m[8]) {
    __m256i a[8], b[8];
    VECTOR_UNROLL for (int i = 0; i < 8; i += 2) {
        __m256i even = vector_load8(in[i] + at), odd = vector_load8(in[i + 1] + at);
        a[i] = _mm256_unpacklo_epi32(even, odd);
        a[i + 1] = _mm256_unpackhi_epi32(even, odd);
    }
    VECTOR_UNROLL for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    VECTOR_UNROLL for (int i = 0; i < 4; i++) {
        m[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        m[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

/* 64 bytes of each of sixteen inputs into sixteen words. */
VECTOR_AVX512 static inline void transpose16(const uint8_t *const in[16], size_t at,
                                             __m512i m[16]) {
    __m512i a[16], b[16];
    VECTOR_UNROLL for (int i = 0; i < 16; i += 2) {
        __m512i even = _mm512_loadu_si512(in[i] + at), odd = _mm512_loadu_si512(in[i + 1] + at);
        a[i] = _mm512_unpacklo_epi32(even, odd);
        a[i + 1] = _mm512_unpackhi_epi32(even, odd);
    }
    /* b[4g + w]: words w, w + 4, w + 8, w + 12 of lanes 4g to 4g + 3, a quarter each */
    VECTOR_UNROLL for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    VECTOR_UNROLL for (int w = 0; w < 4; w++) {
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

#endif
#endif
