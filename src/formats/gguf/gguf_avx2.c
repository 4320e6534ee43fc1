/* Blocks of GGUF unpacked by AVX2. Tests: test_import_blocks.c. */
#include "base/cpu.h"
#include "formats/gguf/gguf.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "base/endian.h"

#include <immintrin.h>

/* Codes are taken apart 16 bytes at a time and become floats eight at a time, by the operations of
 * the portable code in their order. Bytes have no shift: they are shifted as 16 bits, and what
 * came from their neighbour is masked. */
#define A256 __attribute__((target("avx2,f16c")))

A256 static inline __m128i bytes_at(const uint8_t *at) {
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

A256 static inline __m128i masked(__m128i bytes, int mask) {
    return _mm_and_si128(bytes, _mm_set1_epi8((char)mask));
}

/* Bits [shift, shift + width of mask) of each byte. */
A256 static inline __m128i field(__m128i bytes, unsigned shift, int mask) {
    return masked(_mm_srl_epi16(bytes, _mm_cvtsi32_si128((int)shift)), mask);
}

A256 static inline float half_at(const uint8_t *at) {
    return _cvtsh_ss(sfti_get_u16(at));
}

/* out = scale * q of the low 8 of signed bytes. */
A256 static inline __m256 times8(__m256 scale, __m128i q) {
    return _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)));
}

A256 static inline void times16(float *out, float scale, __m128i q) {
    __m256 s = _mm256_set1_ps(scale);
    _mm256_storeu_ps(out, times8(s, q));
    _mm256_storeu_ps(out + 8, times8(s, _mm_srli_si128(q, 8)));
}

/* out = scale * q + more of 16 bytes. */
A256 static inline void line16(float *out, float scale, float more, __m128i q) {
    __m256 s = _mm256_set1_ps(scale), m = _mm256_set1_ps(more);
    _mm256_storeu_ps(out, _mm256_add_ps(times8(s, q), m));
    _mm256_storeu_ps(out + 8, _mm256_add_ps(times8(s, _mm_srli_si128(q, 8)), m));
}

/* 16 where bit `first` + j of the 32 is set, else 0, for byte j. */
A256 static inline __m128i fifth_bits(uint32_t bits, unsigned first) {
    const __m128i spread = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m128i each = _mm_set1_epi64x((long long)0x8040201008040201u);
    __m128i mine = _mm_shuffle_epi8(_mm_cvtsi32_si128((int)(bits >> first)), spread);
    return masked(_mm_cmpeq_epi8(_mm_and_si128(mine, each), each), 16);
}

A256 static void a256_q4_0(const uint8_t *in, float *out, size_t count) {
    const __m128i eight = _mm_set1_epi8(8);
    for (; count; count--, in += 18, out += 32) {
        float d = half_at(in);
        __m128i q = bytes_at(in + 2);
        times16(out, d, _mm_sub_epi8(masked(q, 15), eight));
        times16(out + 16, d, _mm_sub_epi8(field(q, 4, 15), eight));
    }
}

A256 static void a256_q4_1(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 20, out += 32) {
        float d = half_at(in), m = half_at(in + 2);
        __m128i q = bytes_at(in + 4);
        line16(out, d, m, masked(q, 15));
        line16(out + 16, d, m, field(q, 4, 15));
    }
}

A256 static void a256_q5_0(const uint8_t *in, float *out, size_t count) {
    const __m128i sixteen = _mm_set1_epi8(16);
    for (; count; count--, in += 22, out += 32) {
        float d = half_at(in);
        uint32_t high = sfti_get_u32(in + 2);
        __m128i q = bytes_at(in + 6);
        __m128i first = _mm_or_si128(masked(q, 15), fifth_bits(high, 0));
        __m128i second = _mm_or_si128(field(q, 4, 15), fifth_bits(high, 16));
        times16(out, d, _mm_sub_epi8(first, sixteen));
        times16(out + 16, d, _mm_sub_epi8(second, sixteen));
    }
}

A256 static void a256_q5_1(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 24, out += 32) {
        float d = half_at(in), m = half_at(in + 2);
        uint32_t high = sfti_get_u32(in + 4);
        __m128i q = bytes_at(in + 8);
        line16(out, d, m, _mm_or_si128(masked(q, 15), fifth_bits(high, 0)));
        line16(out + 16, d, m, _mm_or_si128(field(q, 4, 15), fifth_bits(high, 16)));
    }
}

A256 static void a256_q8_0(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 34, out += 32) {
        float d = half_at(in);
        times16(out, d, bytes_at(in + 2));
        times16(out + 16, d, bytes_at(in + 18));
    }
}

/* 2 * 16 nibbles, each an index into the values. */
A256 static inline void nibbles32(float *out, float d, __m128i q, __m128i values) {
    times16(out, d, _mm_shuffle_epi8(values, masked(q, 15)));
    times16(out + 16, d, _mm_shuffle_epi8(values, field(q, 4, 15)));
}

A256 static void a256_mxfp4(const uint8_t *in, float *out, size_t count) {
    const __m128i values = bytes_at((const uint8_t *)sfti_gguf_e2m1);
    for (; count; count--, in += 17, out += 32)
        nibbles32(out, sfti_gguf_e8m0(in[0]), bytes_at(in + 1), values);
}

A256 static void a256_nvfp4(const uint8_t *in, float *out, size_t count) {
    const __m128i values = bytes_at((const uint8_t *)sfti_gguf_e2m1);
    for (; count; count--, in += 36, out += 64)
        for (unsigned g = 0; g < 4; g++) {
            __m128i q = _mm_loadl_epi64((const __m128i *)(const void *)(in + 4 + 8 * g));
            q = _mm_unpacklo_epi64(masked(q, 15), field(q, 4, 15));
            times16(out + 16 * g, sfti_gguf_ue4m3(in[g]), _mm_shuffle_epi8(values, q));
        }
}

A256 static void a256_iq4_nl(const uint8_t *in, float *out, size_t count) {
    const __m128i values = bytes_at((const uint8_t *)sfti_gguf_iq4);
    for (; count; count--, in += 18, out += 32)
        nibbles32(out, half_at(in), bytes_at(in + 2), values);
}

A256 static void a256_iq4_xs(const uint8_t *in, float *out, size_t count) {
    const __m128i values = bytes_at((const uint8_t *)sfti_gguf_iq4);
    for (; count; count--, in += 136, out += 256) {
        float d = half_at(in);
        uint32_t high = sfti_get_u16(in + 2), low = sfti_get_u32(in + 4);
        for (unsigned g = 0; g < 8; g++) {
            uint32_t scale = (low >> (4 * g) & 15) | (high >> (2 * g) & 3) << 4;
            nibbles32(out + 32 * g, d * (float)((int)scale - 32), bytes_at(in + 8 + 16 * g),
                      values);
        }
    }
}

A256 static void a256_q2_k(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 84, out += 256) {
        float d = half_at(in + 80), minus = -half_at(in + 82);
        for (unsigned g = 0; g < 16; g++) {
            __m128i q = bytes_at(in + 16 + g / 8 * 32 + g % 2 * 16);
            line16(out + 16 * g, d * (float)(in[g] & 15), minus * (float)(in[g] >> 4),
                   field(q, g % 8 / 2 * 2, 3));
        }
    }
}

A256 static void a256_q3_k(const uint8_t *in, float *out, size_t count) {
    int8_t scales[16];
    for (; count; count--, in += 110, out += 256) {
        float d = half_at(in + 108);
        sfti_gguf_scales_q3_k(in + 96, scales);
        for (unsigned g = 0; g < 16; g++) {
            __m128i q = field(bytes_at(in + 32 + g / 8 * 32 + g % 2 * 16), g % 8 / 2 * 2, 3);
            __m128i high = field(bytes_at(in + g % 2 * 16), g / 2, 1);
            high = _mm_cmpeq_epi8(high, _mm_setzero_si128());
            times16(out + 16 * g, d * (float)scales[g], _mm_sub_epi8(q, masked(high, 4)));
        }
    }
}

A256 static void a256_q4_k(const uint8_t *in, float *out, size_t count) {
    uint8_t scale, minimum;
    for (; count; count--, in += 144, out += 256) {
        float d = half_at(in), minus = -half_at(in + 2);
        for (unsigned g = 0; g < 8; g++) {
            const uint8_t *q = in + 16 + g / 2 * 32;
            sfti_gguf_scale_k4(in + 4, g, &scale, &minimum);
            float s = d * (float)scale, m = minus * (float)minimum;
            line16(out + 32 * g, s, m, field(bytes_at(q), g % 2 * 4, 15));
            line16(out + 32 * g + 16, s, m, field(bytes_at(q + 16), g % 2 * 4, 15));
        }
    }
}

A256 static void a256_q5_k(const uint8_t *in, float *out, size_t count) {
    uint8_t scale, minimum;
    for (; count; count--, in += 176, out += 256) {
        float d = half_at(in), minus = -half_at(in + 2);
        for (unsigned i = 0; i < 16; i++) {
            unsigned g = i / 2, at = i % 2 * 16;
            __m128i q = field(bytes_at(in + 48 + g / 2 * 32 + at), g % 2 * 4, 15);
            __m128i high = _mm_slli_epi16(field(bytes_at(in + 16 + at), g, 1), 4);
            sfti_gguf_scale_k4(in + 4, g, &scale, &minimum);
            line16(out + 16 * i, d * (float)scale, minus * (float)minimum, _mm_or_si128(q, high));
        }
    }
}

A256 static void a256_q6_k(const uint8_t *in, float *out, size_t count) {
    const __m128i most = _mm_set1_epi8(32);
    for (; count; count--, in += 210, out += 256) {
        float d = half_at(in + 208);
        for (unsigned g = 0; g < 16; g++) {
            unsigned half = g / 8, k = g % 8 / 2, at = g % 2 * 16;
            __m128i low = field(bytes_at(in + 64 * half + k % 2 * 32 + at), k / 2 * 4, 15);
            __m128i high = field(bytes_at(in + 128 + 32 * half + at), 2 * k, 3);
            __m128i q = _mm_or_si128(low, _mm_slli_epi16(high, 4));
            times16(out + 16 * g, d * (float)(int8_t)in[192 + g], _mm_sub_epi8(q, most));
        }
    }
}

A256 static void a256_tq2_0(const uint8_t *in, float *out, size_t count) {
    const __m128i one = _mm_set1_epi8(1);
    for (; count; count--, in += 66, out += 256) {
        float d = half_at(in + 64);
        for (unsigned g = 0; g < 16; g++) {
            __m128i q = field(bytes_at(in + g / 8 * 32 + g % 2 * 16), g % 8 / 2 * 2, 3);
            times16(out + 16 * g, d, _mm_sub_epi8(q, one));
        }
    }
}

/* ── Grids ── */

A256 static inline __m256 values_at(const int8_t values[8]) {
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)values);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

/* Eight fields of width bits, the lowest first, as indexes; only their low three bits count. */
A256 static inline __m256 pick8(__m256 values, uint32_t fields, int width) {
    const __m256i each = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i shifts = _mm256_mullo_epi32(each, _mm256_set1_epi32(width));
    __m256i index = _mm256_srlv_epi32(_mm256_set1_epi32((int)fields), shifts);
    index = _mm256_and_si256(index, _mm256_set1_epi32((1 << width) - 1));
    return _mm256_permutevar8x32_ps(values, index);
}

A256 static inline void signed8(float *out, float d, __m256 values, uint32_t signs) {
    const __m256i shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i highest = _mm256_set1_epi32(INT32_MIN);
    __m256i sign = _mm256_sllv_epi32(_mm256_set1_epi32((int)signs), shifts);
    sign = _mm256_and_si256(sign, highest);
    __m256 product = _mm256_mul_ps(_mm256_set1_ps(d), values);
    _mm256_storeu_ps(out, _mm256_xor_ps(product, _mm256_castsi256_ps(sign)));
}

A256 static inline float nibble_at(const uint8_t *scales, unsigned i) {
    return (float)(scales[i / 2] >> (i % 2 * 4) & 15);
}

A256 static void a256_iq2_xxs(const uint8_t *in, float *out, size_t count) {
    const __m256 values = values_at(sfti_gguf_iq2_values);
    for (; count; count--, in += 66, out += 256) {
        float d = half_at(in);
        for (unsigned i = 0; i < 32; i++) {
            const uint8_t *group = in + 2 + i / 4 * 8;
            uint32_t rest = sfti_get_u32(group + 4);
            signed8(out + 8 * i, d * (0.5f + (float)(rest >> 28)) * 0.25f,
                    pick8(values, sfti_gguf_iq2_xxs_grid[group[i % 4]], 2),
                    sfti_gguf_signs(rest >> (i % 4 * 7)));
        }
    }
}

A256 static void a256_iq2_xs(const uint8_t *in, float *out, size_t count) {
    const __m256 values = values_at(sfti_gguf_iq2_values);
    for (; count; count--, in += 74, out += 256) {
        float d = half_at(in);
        for (unsigned i = 0; i < 32; i++) {
            uint32_t code = sfti_get_u16(in + 2 + 2 * i);
            signed8(out + 8 * i, d * (0.5f + nibble_at(in + 66, i / 2)) * 0.25f,
                    pick8(values, sfti_gguf_iq2_xs_grid[code & 511], 2),
                    sfti_gguf_signs(code >> 9));
        }
    }
}

A256 static void a256_iq2_s(const uint8_t *in, float *out, size_t count) {
    const __m256 values = values_at(sfti_gguf_iq2_values);
    for (; count; count--, in += 82, out += 256) {
        float d = half_at(in);
        for (unsigned i = 0; i < 32; i++) {
            uint32_t row = in[2 + i] | (in[66 + i / 4] >> (i % 4 * 2) & 3u) << 8;
            signed8(out + 8 * i, d * (0.5f + nibble_at(in + 74, i / 2)) * 0.25f,
                    pick8(values, sfti_gguf_iq2_s_grid[row], 2), in[34 + i]);
        }
    }
}

A256 static void a256_iq3_xxs(const uint8_t *in, float *out, size_t count) {
    const __m256 values = values_at(sfti_gguf_iq3_xxs_values);
    for (; count; count--, in += 98, out += 256) {
        float d = half_at(in);
        for (unsigned i = 0; i < 32; i++) {
            const uint8_t *q = in + 2 + 2 * i;
            uint32_t rest = sfti_get_u32(in + 66 + i / 4 * 4);
            uint32_t first = sfti_gguf_iq3_xxs_grid[q[0]], second = sfti_gguf_iq3_xxs_grid[q[1]];
            signed8(out + 8 * i, d * (0.5f + (float)(rest >> 28)) * 0.5f,
                    pick8(values, first | second << 16, 4),
                    sfti_gguf_signs(rest >> (i % 4 * 7)));
        }
    }
}

A256 static void a256_iq3_s(const uint8_t *in, float *out, size_t count) {
    const __m256 values = values_at(sfti_gguf_iq3_s_values);
    for (; count; count--, in += 110, out += 256) {
        float d = half_at(in);
        for (unsigned i = 0; i < 32; i++) {
            const uint8_t *q = in + 2 + 2 * i;
            uint32_t high = (uint32_t)in[66 + i / 4] >> (i % 4 * 2);
            uint32_t first = sfti_gguf_iq3_s_grid[q[0] | (high & 1) << 8];
            uint32_t second = sfti_gguf_iq3_s_grid[q[1] | (high & 2) << 7];
            signed8(out + 8 * i, d * (1 + 2 * nibble_at(in + 106, i / 4)),
                    pick8(values, first | second << 16, 4), in[74 + i]);
        }
    }
}

/* out = d * (values + shift), the shift 0.125 or -0.125. */
A256 static inline void shifted8(float *out, float d, __m256 values, bool less) {
    __m256 sum = _mm256_add_ps(values, _mm256_set1_ps(less ? -0.125f : 0.125f));
    _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_set1_ps(d), sum));
}

A256 static void a256_iq1_s(const uint8_t *in, float *out, size_t count) {
    const __m256 values = values_at(sfti_gguf_iq1_values);
    for (; count; count--, in += 50, out += 256) {
        float d = half_at(in);
        for (unsigned i = 0; i < 32; i++) {
            uint32_t rest = sfti_get_u16(in + 34 + i / 4 * 2);
            uint32_t row = in[2 + i] | (rest >> (i % 4 * 3) & 7) << 8;
            shifted8(out + 8 * i, d * (float)(2 * (rest >> 12 & 7) + 1),
                     pick8(values, sfti_gguf_iq1_grid[row], 2), rest >> 15);
        }
    }
}

A256 static void a256_iq1_m(const uint8_t *in, float *out, size_t count) {
    const __m256 values = values_at(sfti_gguf_iq1_values);
    for (; count; count--, in += 56, out += 256) {
        float d = sfti_gguf_scale_iq1_m(in + 48);
        for (unsigned i = 0; i < 32; i++) {
            uint32_t scales = sfti_get_u16(in + 48 + i / 8 * 2);
            unsigned rest = (unsigned)in[32 + i / 2] >> (i % 2 * 4);
            uint32_t row = sfti_gguf_iq1_grid[in[i] | (rest & 7) << 8];
            shifted8(out + 8 * i, d * (float)(2 * (scales >> (i % 8 / 2 * 3) & 7) + 1),
                     pick8(values, row, 2), rest >> 3 & 1);
        }
    }
}

#undef A256

static const sfti_gguf_unpack avx2_variants[] = {
    [2] = a256_q4_0,     [3] = a256_q4_1,     [6] = a256_q5_0,    [7] = a256_q5_1,
    [8] = a256_q8_0,     [10] = a256_q2_k,    [11] = a256_q3_k,   [12] = a256_q4_k,
    [13] = a256_q5_k,    [14] = a256_q6_k,    [16] = a256_iq2_xxs, [17] = a256_iq2_xs,
    [18] = a256_iq3_xxs, [19] = a256_iq1_s,   [20] = a256_iq4_nl, [21] = a256_iq3_s,
    [22] = a256_iq2_s,   [23] = a256_iq4_xs,  [29] = a256_iq1_m,  [35] = a256_tq2_0,
    [39] = a256_mxfp4,   [40] = a256_nvfp4,
};

sfti_gguf_unpack sfti_gguf_avx2(uint32_t number) {
    if (number >= sizeof avx2_variants / sizeof *avx2_variants) return NULL;
    /* All processors with FMA have F16C. */
    if (!sfti_cpu_has(SFTI_CPU_AVX2 | SFTI_CPU_FMA)) return NULL;
    return avx2_variants[number];
}

#else

sfti_gguf_unpack sfti_gguf_avx2(uint32_t number) {
    (void)number;
    return NULL;
}

#endif
