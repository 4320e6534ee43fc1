/* Casts with AVX-512, sixteen elements at a time. Tests: test_convert.c. */
#include "base/cpu.h"
#include "convert/convert.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* Sixteen elements at a time; the rest is cast in portable C. */
#define A512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define A512_VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")))
#define A512_ALL(value) _mm512_set1_epi32((int)(value))

A512 static size_t a512_bf16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                    size_t n) {
    const __m512i quiet = A512_ALL(0x400000), magnitude = A512_ALL(0x7fffffff);
    const __m512i infinity = A512_ALL(0x7f800000);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)(in + 2 * i));
        __m512i v = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
        __mmask16 nan = _mm512_cmpgt_epi32_mask(_mm512_and_si512(v, magnitude), infinity);
        _mm512_storeu_si512(out + 4 * i, _mm512_mask_or_epi32(v, nan, v, quiet));
    }
    return i + sfti_bf16_to_f32(cast, in + 2 * i, out + 4 * i, n - i);
}

A512 static size_t a512_f16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                   size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)(in + 2 * i));
        _mm512_storeu_ps(out + 4 * i, _mm512_cvt_roundph_ps(half, _MM_FROUND_NO_EXC));
    }
    return i + sfti_f16_to_f32(cast, in + 2 * i, out + 4 * i, n - i);
}

A512 static size_t a512_f32_to_bf16(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                    size_t n) {
    const __m512i infinity = A512_ALL(0x7f800000), round = A512_ALL(0x7fff);
    const __m512i one = A512_ALL(1), over = A512_ALL(cast->saturate ? 0x7f7f : 0x7f80);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i v = _mm512_loadu_si512(in + 4 * i);
        __m512i a = _mm512_and_si512(v, A512_ALL(0x7fffffff)), high = _mm512_srli_epi32(a, 16);
        __m512i up = _mm512_add_epi32(round, _mm512_and_si512(high, one));
        __m512i code = _mm512_srli_epi32(_mm512_add_epi32(a, up), 16);
        __mmask16 finite = _mm512_cmplt_epi32_mask(a, infinity);
        __mmask16 nan = _mm512_cmpgt_epi32_mask(a, infinity);
        __mmask16 beyond = _mm512_mask_cmpeq_epi32_mask(finite, code, A512_ALL(0x7f80));
        code = _mm512_mask_mov_epi32(code, beyond, over);
        code = _mm512_mask_or_epi32(code, nan, high, A512_ALL(0x40));
        code = _mm512_or_si512(
            code, _mm512_and_si512(_mm512_srli_epi32(v, 16), A512_ALL(0x8000)));
        _mm256_storeu_si256((__m256i *)(void *)(out + 2 * i), _mm512_cvtepi32_epi16(code));
    }
    return i + sfti_f32_to_bf16(cast, in + 4 * i, out + 2 * i, n - i);
}

A512 static size_t a512_f32_to_f16(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                   size_t n) {
    const __m256i most = _mm256_set1_epi16(0x7bff), top = _mm256_set1_epi16(0x7fff);
    const __m256i infinite = _mm256_set1_epi16(0x7c00);
    const __m512i infinity = A512_ALL(0x7f800000);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i v = _mm512_loadu_si512(in + 4 * i);
        /* with a mask of all: gcc's macro without one converts -1 to it */
        __m256i code = _mm512_maskz_cvt_roundps_ph((__mmask16)0xFFFF, _mm512_castsi512_ps(v),
                                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        if (cast->saturate) {
            __m512i a = _mm512_and_si512(v, A512_ALL(0x7fffffff));
            __mmask16 beyond = _mm512_cmplt_epi32_mask(a, infinity);
            beyond = _mm256_mask_cmpeq_epi16_mask(beyond, _mm256_and_si256(code, top),
                                                  infinite);
            __m256i sign = _mm256_andnot_si256(top, code);
            code = _mm256_mask_mov_epi16(code, beyond, _mm256_or_si256(sign, most));
        }
        _mm256_storeu_si256((__m256i *)(void *)(out + 2 * i), code);
    }
    return i + sfti_f32_to_f16(cast, in + 4 * i, out + 2 * i, n - i);
}

/* See narrow_magnitude in floats.c. */
A512 static inline __m512i a512_narrow(const sfti_float *to, __m512i a) {
    const __m512i zero = _mm512_setzero_si512(), one = A512_ALL(1);
    const __m512i least = A512_ALL(128 - to->bias);
    __m512i exponent = _mm512_srli_epi32(a, 23);
    __m512i below = _mm512_max_epi32(_mm512_sub_epi32(least, exponent), zero);
    __m512i above = _mm512_max_epi32(_mm512_sub_epi32(exponent, least), zero);
    __m512i whole = _mm512_or_si512(_mm512_and_si512(a, A512_ALL(0x7fffff)), A512_ALL(0x800000));
    __m512i s = _mm512_min_epi32(_mm512_add_epi32(below, A512_ALL(23 - to->mantissa)),
                                 A512_ALL(31));
    __m512i half = _mm512_sllv_epi32(one, _mm512_sub_epi32(s, one));
    __m512i odd = _mm512_and_si512(_mm512_srlv_epi32(whole, s), one);
    whole = _mm512_add_epi32(whole, _mm512_add_epi32(_mm512_sub_epi32(half, one), odd));
    above = _mm512_sll_epi32(above, _mm_cvtsi32_si128((int)to->mantissa));
    return _mm512_add_epi32(_mm512_srlv_epi32(whole, s), above);
}

A512 static size_t a512_f32_to_small(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                     size_t n) {
    const sfti_float to = cast->small;
    const __m128i sign_at = _mm_cvtsi32_si128((int)to.bits - 1);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i v = _mm512_loadu_si512(in + 4 * i);
        __m512i a = _mm512_and_si512(v, A512_ALL(0x7fffffff));
        __m512i code = a512_narrow(&to, a);
        __m512i sign = _mm512_sll_epi32(_mm512_srli_epi32(v, 31), sign_at);
        __mmask16 nan = _mm512_cmpgt_epi32_mask(a, A512_ALL(0x7f800000));
        __mmask16 infinite = _mm512_cmpeq_epi32_mask(a, A512_ALL(0x7f800000));
        __mmask16 beyond = _mm512_cmpgt_epi32_mask(code, A512_ALL(to.greatest));
        if (to.nan == 0 && nan) break;
        code = _mm512_mask_mov_epi32(code, beyond, A512_ALL(to.over));
        code = _mm512_mask_mov_epi32(code, infinite, A512_ALL(to.infinity));
        code = _mm512_mask_mov_epi32(code, nan, A512_ALL(to.nan));
        __mmask16 with_sign = to.is_fnuz ? _mm512_test_epi32_mask(code, code) : 0xffff;
        code = _mm512_mask_or_epi32(code, with_sign, code, sign);
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm512_cvtepi32_epi8(code));
    }
    return i + sfti_f32_to_small(cast, in + 4 * i, out + i, n - i);
}

/* ── Table lookup, 64 bytes at a time ── */

typedef struct a512_table {
    __m512i part[4];
} a512_table;

/* The low or high bytes of the table. */
A512_VBMI static inline a512_table a512_bytes(const sfti_cast *cast, unsigned shift) {
    a512_table table;
    for (size_t p = 0; p < 4; p++) {
        __m512i a = _mm512_loadu_si512(cast->table + 64 * p);
        __m512i b = _mm512_loadu_si512(cast->table + 64 * p + 32);
        __m256i low = _mm512_cvtepi16_epi8(_mm512_srl_epi16(a, _mm_cvtsi32_si128((int)shift)));
        __m256i high = _mm512_cvtepi16_epi8(_mm512_srl_epi16(b, _mm_cvtsi32_si128((int)shift)));
        table.part[p] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    return table;
}

A512_VBMI static inline __m512i a512_look(const a512_table *table, __m512i at) {
    __m512i low = _mm512_permutex2var_epi8(table->part[0], at, table->part[1]);
    __m512i high = _mm512_permutex2var_epi8(table->part[2], at, table->part[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(at), high);
}

/* 64 results of two bytes, in order. */
A512_VBMI static inline void a512_look_pairs(const a512_table *low, const a512_table *high,
                                             const uint8_t *in, __m512i out[2]) {
    const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    __m512i at = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(in));
    __m512i l = a512_look(low, at), h = a512_look(high, at);
    out[0] = _mm512_unpacklo_epi8(l, h);
    out[1] = _mm512_unpackhi_epi8(l, h);
}

A512_VBMI static size_t a512_look_8(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                    size_t n) {
    a512_table low = a512_bytes(cast, 0);
    size_t i = 0;
    for (; i + 64 <= n; i += 64)
        _mm512_storeu_si512(out + i, a512_look(&low, _mm512_loadu_si512(in + i)));
    return i + sfti_look_8(cast, in + i, out + i, n - i);
}

A512_VBMI static size_t a512_look_16(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                     size_t n) {
    a512_table low = a512_bytes(cast, 0), high = a512_bytes(cast, 8);
    __m512i pairs[2];
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        a512_look_pairs(&low, &high, in + i, pairs);
        _mm512_storeu_si512(out + 2 * i, pairs[0]);
        _mm512_storeu_si512(out + 2 * i + 64, pairs[1]);
    }
    return i + sfti_look_16(cast, in + i, out + 2 * i, n - i);
}

A512_VBMI static size_t a512_look_32(const sfti_cast *cast, const uint8_t *in, uint8_t *out,
                                     size_t n) {
    a512_table low = a512_bytes(cast, 0), high = a512_bytes(cast, 8);
    __m512i pairs[2];
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        a512_look_pairs(&low, &high, in + i, pairs);
        for (size_t p = 0; p < 2; p++) {
            __m256i first = _mm512_castsi512_si256(pairs[p]);
            __m256i second = _mm512_extracti64x4_epi64(pairs[p], 1);
            uint8_t *to = out + 4 * i + 128 * p;
            _mm512_storeu_si512(to, _mm512_slli_epi32(_mm512_cvtepu16_epi32(first), 16));
            _mm512_storeu_si512(to + 64, _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
        }
    }
    return i + sfti_look_32(cast, in + i, out + 4 * i, n - i);
}

#undef A512
#undef A512_VBMI
#undef A512_ALL

bool sfti_cast_kernels_avx512(sfti_cast_kernels *kernels, bool vbmi) {
    if (!sfti_cpu_has(SFTI_CPU_AVX512BW | SFTI_CPU_AVX512VL | SFTI_CPU_AVX512DQ)) return false;
    kernels->bf16_to_f32 = a512_bf16_to_f32;
    kernels->f16_to_f32 = a512_f16_to_f32;
    kernels->f32_to_bf16 = a512_f32_to_bf16;
    kernels->f32_to_f16 = a512_f32_to_f16;
    kernels->f32_to_small = a512_f32_to_small;
    if (!vbmi || !sfti_cpu_has(SFTI_CPU_AVX512VBMI)) return true;
    kernels->look_8 = a512_look_8;
    kernels->look_16 = a512_look_16;
    kernels->look_32 = a512_look_32;
    return true;
}

#else

bool sfti_cast_kernels_avx512(sfti_cast_kernels *kernels, bool vbmi) {
    (void)kernels;
    (void)vbmi;
    return false;
}

#endif
