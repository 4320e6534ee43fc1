/* Casts with AVX2, eight elements at a time. Tests: test_convert.c. */
#include "base/cpu.h"
#include "convert/convert.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* Eight elements at a time; the rest is cast in portable C. Magnitudes and codes are below
 * 2^31, so signed comparison is correct. */
#define A256 __attribute__((target("avx2,f16c")))
#define A256_ALL(value) _mm256_set1_epi32((int)(value))
#define A256_AT(at) ((const __m256i *)(const void *)(at))

A256 static inline __m256i a256_load(const uint8_t *at) {
    return _mm256_loadu_si256(A256_AT(at));
}

A256 static inline __m256i a256_where(__m256i mask, __m256i then, __m256i otherwise) {
    return _mm256_blendv_epi8(otherwise, then, mask);
}

/* The low halves of 32 bits, in order. */
A256 static inline __m128i a256_halves(__m256i v) {
    __m256i packed = _mm256_packus_epi32(v, v);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

A256 static size_t a256_bf16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                    size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i));
        __m256i v = _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
        __m256i a = _mm256_and_si256(v, A256_ALL(0x7fffffff));
        __m256i nan = _mm256_cmpgt_epi32(a, A256_ALL(0x7f800000));
        v = _mm256_or_si256(v, _mm256_and_si256(nan, A256_ALL(0x400000)));
        _mm256_storeu_si256((__m256i *)(void *)(out + 4 * i), v);
    }
    return i + sfti_bf16_to_f32(cast, in + 2 * i, out + 4 * i, n - i);
}

A256 static size_t a256_f16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                   size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i));
        _mm256_storeu_si256((__m256i *)(void *)(out + 4 * i),
                            _mm256_castps_si256(_mm256_cvtph_ps(half)));
    }
    return i + sfti_f16_to_f32(cast, in + 2 * i, out + 4 * i, n - i);
}

A256 static size_t a256_f32_to_bf16(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                    size_t n) {
    const __m256i infinity = A256_ALL(0x7f800000), round = A256_ALL(0x7fff);
    const __m256i over = A256_ALL(cast->saturate ? 0x7f7f : 0x7f80);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i v = a256_load(in + 4 * i), a = _mm256_and_si256(v, A256_ALL(0x7fffffff));
        __m256i high = _mm256_srli_epi32(a, 16);
        __m256i up = _mm256_add_epi32(round, _mm256_and_si256(high, A256_ALL(1)));
        __m256i code = _mm256_srli_epi32(_mm256_add_epi32(a, up), 16);
        __m256i finite = _mm256_cmpgt_epi32(infinity, a);
        __m256i beyond = _mm256_and_si256(finite, _mm256_cmpeq_epi32(code, A256_ALL(0x7f80)));
        code = a256_where(beyond, over, code);
        code = a256_where(_mm256_cmpgt_epi32(a, infinity),
                          _mm256_or_si256(high, A256_ALL(0x40)), code);
        code = _mm256_or_si256(
            code, _mm256_and_si256(_mm256_srli_epi32(v, 16), A256_ALL(0x8000)));
        _mm_storeu_si128((__m128i *)(void *)(out + 2 * i), a256_halves(code));
    }
    return i + sfti_f32_to_bf16(cast, in + 4 * i, out + 2 * i, n - i);
}

A256 static size_t a256_f32_to_f16(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                   size_t n) {
    const __m128i most = _mm_set1_epi16(0x7bff), top = _mm_set1_epi16(0x7fff);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i v = a256_load(in + 4 * i);
        __m128i code = _mm256_cvtps_ph(_mm256_castsi256_ps(v), _MM_FROUND_TO_NEAREST_INT);
        if (cast->saturate) {
            __m256i a = _mm256_and_si256(v, A256_ALL(0x7fffffff));
            __m256i finite = _mm256_cmpgt_epi32(A256_ALL(0x7f800000), a);
            __m128i beyond = _mm_cmpeq_epi16(_mm_and_si128(code, top), _mm_set1_epi16(0x7c00));
            finite = _mm256_packs_epi32(finite, finite);
            beyond = _mm_and_si128(beyond, _mm256_castsi256_si128(
                                               _mm256_permute4x64_epi64(finite, 0x08)));
            __m128i limit = _mm_or_si128(_mm_andnot_si128(top, code), most);
            code = _mm_blendv_epi8(code, limit, beyond);
        }
        _mm_storeu_si128((__m128i *)(void *)(out + 2 * i), code);
    }
    return i + sfti_f32_to_f16(cast, in + 4 * i, out + 2 * i, n - i);
}

/* See narrow_magnitude in floats.c. */
A256 static inline __m256i a256_narrow(const sfti_float *to, __m256i a) {
    const __m256i zero = _mm256_setzero_si256(), one = A256_ALL(1);
    const __m256i least = A256_ALL(128 - to->bias);
    __m256i exponent = _mm256_srli_epi32(a, 23);
    __m256i below = _mm256_max_epi32(_mm256_sub_epi32(least, exponent), zero);
    __m256i above = _mm256_max_epi32(_mm256_sub_epi32(exponent, least), zero);
    __m256i whole = _mm256_or_si256(_mm256_and_si256(a, A256_ALL(0x7fffff)), A256_ALL(0x800000));
    __m256i s = _mm256_min_epi32(_mm256_add_epi32(below, A256_ALL(23 - to->mantissa)),
                                 A256_ALL(31));
    __m256i half = _mm256_sllv_epi32(one, _mm256_sub_epi32(s, one));
    __m256i odd = _mm256_and_si256(_mm256_srlv_epi32(whole, s), one);
    whole = _mm256_add_epi32(whole, _mm256_add_epi32(_mm256_sub_epi32(half, one), odd));
    above = _mm256_sll_epi32(above, _mm_cvtsi32_si128((int)to->mantissa));
    return _mm256_add_epi32(_mm256_srlv_epi32(whole, s), above);
}

A256 static size_t a256_f32_to_small(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                     size_t n) {
    const sfti_float to = cast->small;
    const __m128i sign_at = _mm_cvtsi32_si128((int)to.bits - 1);
    const __m256i infinity = A256_ALL(0x7f800000), zero = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i v = a256_load(in + 4 * i), a = _mm256_and_si256(v, A256_ALL(0x7fffffff));
        __m256i code = a256_narrow(&to, a), nan = _mm256_cmpgt_epi32(a, infinity);
        __m256i sign = _mm256_sll_epi32(_mm256_srli_epi32(v, 31), sign_at);
        __m256i beyond = _mm256_cmpgt_epi32(code, A256_ALL(to.greatest));
        if (to.nan == 0 && _mm256_movemask_epi8(nan)) break;
        code = a256_where(beyond, A256_ALL(to.over), code);
        code = a256_where(_mm256_cmpeq_epi32(a, infinity), A256_ALL(to.infinity), code);
        code = a256_where(nan, A256_ALL(to.nan), code);
        if (to.is_fnuz) sign = _mm256_andnot_si256(_mm256_cmpeq_epi32(code, zero), sign);
        __m128i halves = a256_halves(_mm256_or_si256(code, sign));
        _mm_storel_epi64((__m128i *)(void *)(out + i), _mm_packus_epi16(halves, halves));
    }
    return i + sfti_f32_to_small(cast, in + 4 * i, out + i, n - i);
}

A256 static void a256_f32_bounds(const uint8_t *in, size_t n, uint32_t tiny, uint32_t over,
                                 uint32_t counts[3]) {
    const __m256i zero = _mm256_setzero_si256(), above = A256_ALL(tiny), below = A256_ALL(over);
    __m256i zeros = zero, large = zero, small = zero; /* as negative counts */
    uint32_t lanes[3][8], all = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8, all += 8) {
        __m256i a = _mm256_and_si256(a256_load(in + 4 * i), A256_ALL(0x7fffffff));
        zeros = _mm256_add_epi32(zeros, _mm256_cmpeq_epi32(a, zero));
        large = _mm256_add_epi32(large, _mm256_cmpgt_epi32(a, above));
        small = _mm256_add_epi32(small, _mm256_cmpgt_epi32(below, a));
    }
    _mm256_storeu_si256((__m256i *)(void *)lanes[0], zeros);
    _mm256_storeu_si256((__m256i *)(void *)lanes[1], large);
    _mm256_storeu_si256((__m256i *)(void *)lanes[2], small);
    sfti_f32_bounds(in + 4 * i, n - i, tiny, over, counts);
    for (size_t k = 0; k < 8; k++) {
        counts[0] -= lanes[0][k];
        counts[1] += lanes[1][k];
        counts[2] += lanes[2][k];
    }
    counts[1] += all;
    counts[2] += all;
}

#undef A256
#undef A256_ALL
#undef A256_AT

bool sfti_cast_kernels_avx2(sfti_cast_kernels *kernels) {
    /* All processors with FMA have F16C. */
    if (!sfti_cpu_has(SFTI_CPU_AVX2 | SFTI_CPU_FMA)) return false;
    kernels->bf16_to_f32 = a256_bf16_to_f32;
    kernels->f16_to_f32 = a256_f16_to_f32;
    kernels->f32_to_bf16 = a256_f32_to_bf16;
    kernels->f32_to_f16 = a256_f32_to_f16;
    kernels->f32_to_small = a256_f32_to_small;
    kernels->f32_bounds = a256_f32_bounds;
    return true;
}

#else

bool sfti_cast_kernels_avx2(sfti_cast_kernels *kernels) {
    (void)kernels;
    return false;
}

#endif
