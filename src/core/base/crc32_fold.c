/* CRC-32 by carry-less multiplication on x86-64. Tests: test_job.c. */
#include "base/crc32.h"

#include <string.h>

/* ── Folding by carry-less multiplication ── */

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define CLMUL_TARGET __attribute__((target("pclmul,sse4.1")))

/* x moved by as many bits as by's powers of x say, plus y. */
CLMUL_TARGET static inline __m128i crc_fold(__m128i x, __m128i by, __m128i y) {
    __m128i low = _mm_clmulepi64_si128(x, by, 0x00), high = _mm_clmulepi64_si128(x, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), y);
}

/* Powers of x modulo the polynomial, bits reversed: x^(544), x^(480); x^(160), x^(96). */
CLMUL_TARGET void sfti_crc32_fold(uint32_t crc, const uint8_t *data, size_t len,
                                  uint8_t out[16]) {
    const __m128i by64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const __m128i *at = (const __m128i *)(const void *)data;
    __m128i x[4];
    for (int i = 0; i < 4; i++) x[i] = _mm_loadu_si128(at + i);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
    for (len -= 64, at += 4; len > 0; len -= 64, at += 4)
        for (int i = 0; i < 4; i++) x[i] = crc_fold(x[i], by64, _mm_loadu_si128(at + i));
    for (int i = 1; i < 4; i++) x[i] = crc_fold(x[i - 1], by16, x[i]);
    _mm_storeu_si128((__m128i *)(void *)out, x[3]);
}

#else

void sfti_crc32_fold(uint32_t crc, const uint8_t *data, size_t len, uint8_t out[16]) {
    (void)crc;
    (void)data;
    (void)len;
    memset(out, 0, 16);
}

#endif
