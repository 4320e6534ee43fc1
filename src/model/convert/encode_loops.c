/* What encoding does with every value of a row. Tests: test_encode.c. */
#include "convert/encode_loops.h"

#include "base/cpu.h"
#include "convert/convert.h"

#include <string.h>

#define SUMS 64
#define SIXTEENS 32
#define F4_CODES 64

#if defined(__GNUC__)
#define BODY static inline __attribute__((always_inline))
#else
#define BODY static inline
#endif

BODY uint32_t greatest_of(const float *values, size_t count) {
    int32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits &= 0x7fffffff;
        if (bits > most) most = bits;
    }
    return (uint32_t)most;
}

BODY void raise_of(const float *values, size_t len, float *number) {
    uint32_t bits = greatest_of(values, len), before;
    memcpy(&before, number, sizeof before);
    bits = bits > before ? bits : before;
    memcpy(number, &bits, sizeof bits);
}

/* The greater ones of pairs of `count` numbers. */
BODY void greater_of(const int32_t *restrict pairs, size_t count, int32_t *restrict out) {
    for (size_t i = 0; i < count / 2; i++)
        out[i] = pairs[2 * i] > pairs[2 * i + 1] ? pairs[2 * i] : pairs[2 * i + 1];
}

/* Raises eight numbers by `len` values each, a multiple of 16: lane by lane, then across lanes. */
BODY void raise_eight_of(const float *restrict values, size_t len, float *restrict numbers) {
    int32_t lanes[64], fours[32], twos[16], most[8], before[8];
    for (size_t b = 0; b < 8; b++, values += len)
        for (size_t k = 0; k < 8; k++) {
            lanes[8 * b + k] = 0;
            for (size_t i = k; i < len; i += 8) {
                int32_t bits;
                memcpy(&bits, &values[i], sizeof bits);
                bits &= 0x7fffffff;
                lanes[8 * b + k] = bits > lanes[8 * b + k] ? bits : lanes[8 * b + k];
            }
        }
    greater_of(lanes, 64, fours);
    greater_of(fours, 32, twos);
    greater_of(twos, 16, most);
    memcpy(before, numbers, sizeof before);
    for (size_t b = 0; b < 8; b++) most[b] = most[b] > before[b] ? most[b] : before[b];
    memcpy(numbers, most, sizeof most);
}

/* Blocks of 16 and 32 values are known to the compiler, which then unrolls them. */
BODY void magnitudes_of(const float *values, size_t count, size_t block, float *numbers) {
    size_t at = 0, b = 0;
    for (; block == 16 && at + 128 <= count; at += 128, b += 8)
        raise_eight_of(values + at, 16, &numbers[b]);
    for (; block == 32 && at + 256 <= count; at += 256, b += 8)
        raise_eight_of(values + at, 32, &numbers[b]);
    for (; at < count; at += block)
        raise_of(values + at, count - at < block ? count - at : block, &numbers[b++]);
}

BODY void scale_values(const float *restrict values, size_t len, float factor, bool reciprocal,
                       float *restrict out) {
    float by = 1 / (factor > 0 ? factor : 1);
    if (factor == 0) memset(out, 0, len * sizeof *out);
    else if (reciprocal) for (size_t i = 0; i < len; i++) out[i] = values[i] * by;
    else for (size_t i = 0; i < len; i++) out[i] = values[i] / factor;
}

BODY void scales_of(const float *values, size_t count, size_t block, const float *factors,
                    bool reciprocal, float *out) {
    size_t at = 0, b = 0;
    for (; block == 16 && at + 16 <= count; at += 16)
        scale_values(values + at, 16, factors[b++], reciprocal, out + at);
    for (; at < count; at += block)
        scale_values(values + at, count - at < block ? count - at : block, factors[b++],
                     reciprocal, out + at);
}

/* Integers that F32 rounds to, which are the low bits of the sum: magnitudes are below 2^22. */
BODY void to_int8_of(const float *restrict values, size_t count, uint8_t *restrict out) {
    for (size_t i = 0; i < count; i++) {
        float shifted = values[i] + 0x1.8p23f;
        int32_t number;
        memcpy(&number, &shifted, sizeof number);
        number -= 0x4b400000;
        number = number > 127 ? 127 : number;
        number = number < -128 ? -128 : number;
        out[i] = (uint8_t)number;
    }
}

/* A float of a sign, `shift` bits below those of F32, and an exponent that `up` corrects. */
BODY float float_of(uint32_t code, uint32_t sign, uint32_t shift, float up) {
    uint32_t bits = (code & (sign - 1)) << shift | (code & sign) * (0x80000000u / sign);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value * up;
}

/* The high half of a float, the lowest bit telling of all below: order to numbers that have no such
 * bits is kept. */
BODY uint16_t high_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits | ((bits & 0xffff) + 0xffff)) >> 16);
}

/* How many of the magnitudes half-way between two codes lie below; the even code has such a one:
 * 0.25, 0.75, 1.25, 1.75, 2.5, 3.5 and 5. */
BODY uint8_t f4_of(uint16_t high) {
    int16_t most = high & 0x7fff;
    return (uint8_t)(((most > 0x3e80) + (most >= 0x3f40) + (most > 0x3fa0) + (most >= 0x3fe0)
                      + (most > 0x4020) + (most >= 0x4060) + (most > 0x40a0))
                     | (high >> 12 & 8));
}

/* The high half of the float of a code; the low one is 0. */
BODY uint16_t high_of_f4(uint8_t code) {
    uint16_t most = code & 7;
    most = (uint16_t)(most < 2 ? most * 0x3f00 : (most << 6) + 0x3f00);
    return (uint16_t)(most | (code & 8) << 12);
}

BODY float float_of_high(uint16_t high) {
    uint32_t bits = (uint32_t)high << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

BODY void to_f4_of(const float *restrict values, size_t count, uint8_t *restrict out) {
    uint16_t high[F4_CODES];
    uint8_t codes[F4_CODES];
    size_t i = 0;
    for (; i + F4_CODES <= count; i += F4_CODES) {
        for (size_t k = 0; k < F4_CODES; k++) high[k] = high_of(values[i + k]);
        for (size_t k = 0; k < F4_CODES; k++) codes[k] = f4_of(high[k]);
        for (size_t k = 0; k < F4_CODES / 2; k++)
            out[i / 2 + k] = (uint8_t)(codes[2 * k] | codes[2 * k + 1] << 4);
    }
    for (; i + 2 <= count; i += 2)
        out[i / 2] = (uint8_t)(f4_of(high_of(values[i])) | f4_of(high_of(values[i + 1])) << 4);
}

BODY void decode_f4_of(const uint8_t *restrict codes, size_t count, float *restrict out) {
    uint8_t bytes[F4_CODES];
    uint16_t high[F4_CODES];
    size_t i = 0;
    for (; i + F4_CODES <= count; i += F4_CODES) {
        for (size_t k = 0; k < F4_CODES / 2; k++) {
            bytes[2 * k] = codes[i / 2 + k] & 15;
            bytes[2 * k + 1] = codes[i / 2 + k] >> 4;
        }
        for (size_t k = 0; k < F4_CODES; k++) high[k] = high_of_f4(bytes[k]);
        for (size_t k = 0; k < F4_CODES; k++) out[i + k] = float_of_high(high[k]);
    }
    for (; i < count; i++)
        out[i] = float_of_high(high_of_f4(codes[i / 2] >> (i % 2 * 4) & 15));
}

BODY void decode_of(sft_dtype dtype, const uint8_t *restrict codes, size_t count,
                    float *restrict out) {
    if (dtype == SFT_F4) {
        decode_f4_of(codes, count, out);
        return;
    }
    if (dtype == SFT_I8) {
        for (size_t i = 0; i < count; i++) out[i] = (float)(int8_t)codes[i];
        return;
    }
    const sfti_float *form = sfti_float_of(dtype);
    uint32_t shift = 23 - form->mantissa, bits = (254 - form->bias) << 23;
    float up;
    memcpy(&up, &bits, sizeof up);
    for (size_t i = 0; i < count; i++) out[i] = float_of(codes[i], 0x80, shift, up);
}

/* To F8_E4M3: the bits rounded to 3 of the mantissa, of 2^-6 and less multiples of 2^-9. */
BODY uint32_t e4m3_of(float scale) {
    float small = scale + 0x1.8p14f;
    uint32_t bits, steps, is_small;
    memcpy(&bits, &scale, sizeof bits);
    memcpy(&steps, &small, sizeof steps);
    is_small = 0u - (bits < 0x3c800000);
    uint32_t code = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - (120u << 3);
    code = code > 0x7e ? 0x7e : code;
    return ((steps - 0x46c00000) & is_small) | (code & ~is_small);
}

/* `times` and `over`: what the scales of blocks are multiplied and divided by, one of them 1. */
BODY void pairs_of(const float *restrict numbers, size_t count, float limit, float times,
                   float over, uint8_t *restrict codes, float *restrict factors) {
    for (size_t i = 0; i < count; i++) {
        uint32_t code = e4m3_of(numbers[i] / limit * times / over);
        codes[i] = (uint8_t)code;
        factors[i] = float_of(code, 0x80, 20, 0x1p120f) / times * over;
    }
}

/* The sum of SUMS numbers, in halves. */
BODY float sum_of(float *sums) {
    for (size_t k = 0; k < 32; k++) sums[k] += sums[k + 32];
    for (size_t k = 0; k < 16; k++) sums[k] += sums[k + 16];
    for (size_t k = 0; k < 8; k++) sums[k] += sums[k + 8];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6])
                                                         + (sums[3] + sums[7]));
}

/* Sums in F32 of at most 16 values each, which are then added in F64. */
BODY void squares_of(const float *restrict scaled, const float *restrict decoded, size_t len,
                     double factor, double sums[2]) {
    float error[SUMS] = { 0 }, power[SUMS] = { 0 };
    size_t i = 0;
    for (; i + SUMS <= len; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) {
            float off = decoded[i + k] - scaled[i + k];
            error[k] += off * off;
            power[k] += scaled[i + k] * scaled[i + k];
        }
    for (size_t k = 0; i < len; i++, k++) {
        float off = decoded[i] - scaled[i];
        error[k] += off * off;
        power[k] += scaled[i] * scaled[i];
    }
    sums[0] += (double)sum_of(error) * (factor * factor);
    sums[1] += (double)sum_of(power) * (factor * factor);
}

/* The same of at most SIXTEENS times 16 values, each `per` of those with a factor: all are added in
 * F32, weighed by their factors over the greatest. */
BODY void sixteens_squares_of(const float *restrict scaled, const float *restrict decoded,
                              size_t count, size_t per, const float *restrict factors,
                              double sums[2]) {
    float error[8 * SIXTEENS], power[8 * SIXTEENS], weights[SIXTEENS], most = 0x1p-149f;
    for (size_t b = 0; b < count / per; b++) most = factors[b] > most ? factors[b] : most;
    for (size_t b = 0; b < count / per; b++) weights[b] = factors[b] / most;
    memset(error, 0, sizeof error);
    memset(power, 0, sizeof power);
    for (size_t b = 0; b < count; b++, scaled += 16, decoded += 16) {
        float weight = weights[b / per] * weights[b / per];
        for (size_t k = 0; weight > 0 && k < 8; k++) {
            float one = decoded[k] - scaled[k], other = decoded[k + 8] - scaled[k + 8];
            error[8 * b + k] = (one * one + other * other) * weight;
            power[8 * b + k] = (scaled[k] * scaled[k] + scaled[k + 8] * scaled[k + 8]) * weight;
        }
    }
    for (size_t n = 4 * SIXTEENS; n >= 8; n /= 2)
        for (size_t k = 0; k < n; k++) {
            error[k] += error[k + n];
            power[k] += power[k + n];
        }
    for (size_t k = 0; k < 8; k++) {
        sums[0] += (double)error[k] * ((double)most * (double)most);
        sums[1] += (double)power[k] * ((double)most * (double)most);
    }
}

BODY void all_squares_of(const float *scaled, const float *decoded, size_t count, size_t block,
                         const float *factors, double sums[2]) {
    size_t at = 0, some = 16 * SIXTEENS;
    for (; block == 16 && at + block <= count; at += some) {
        if (some > count - at) some = (count - at) / block * block;
        sixteens_squares_of(scaled + at, decoded + at, some / 16, 1, factors + at / block, sums);
    }
    for (; block == 32 && at + block <= count; at += some) {
        if (some > count - at) some = (count - at) / block * block;
        sixteens_squares_of(scaled + at, decoded + at, some / 16, 2, factors + at / block, sums);
    }
    for (; at < count; at += block)
        squares_of(scaled + at, decoded + at, count - at < block ? count - at : block,
                   (double)factors[at / block], sums);
}

/* The functions of a table, from the bodies above. */
#define LOOPS(NAME, TARGET)                                                                     \
    TARGET static uint32_t NAME##_greatest(const float *values, size_t count) {                 \
        return greatest_of(values, count);                                                      \
    }                                                                                           \
    TARGET static void NAME##_magnitudes(const float *values, size_t count, size_t block,       \
                                         float *numbers) {                                      \
        magnitudes_of(values, count, block, numbers);                                           \
    }                                                                                           \
    TARGET static void NAME##_scale(const float *values, size_t count, size_t block,            \
                                    const float *factors, bool reciprocal, float *out) {        \
        scales_of(values, count, block, factors, reciprocal, out);                              \
    }                                                                                           \
    TARGET static void NAME##_to_int8(const float *values, size_t count, uint8_t *out) {        \
        to_int8_of(values, count, out);                                                         \
    }                                                                                           \
    TARGET static void NAME##_to_f4(const float *values, size_t count, uint8_t *out) {          \
        to_f4_of(values, count, out);                                                           \
    }                                                                                           \
    TARGET static void NAME##_decode(sft_dtype dtype, const uint8_t *codes, size_t count,       \
                                     float *out) {                                              \
        decode_of(dtype, codes, count, out);                                                    \
    }                                                                                           \
    TARGET static void NAME##_pairs(const float *numbers, size_t count, float limit,            \
                                    float whole, bool divides, uint8_t *codes,                  \
                                    float *factors) {                                           \
        pairs_of(numbers, count, limit, divides ? whole : 1, divides ? 1 : whole, codes,        \
                 factors);                                                                      \
    }                                                                                           \
    TARGET static void NAME##_squares(const float *scaled, const float *decoded, size_t count,  \
                                      size_t block, const float *factors, double sums[2]) {     \
        all_squares_of(scaled, decoded, count, block, factors, sums);                           \
    }

#define LOOPS_TABLE(NAME) \
    { NAME##_greatest, NAME##_magnitudes, NAME##_scale, NAME##_to_int8, NAME##_to_f4, \
      NAME##_decode, NAME##_pairs, NAME##_squares }

LOOPS(portable, )
const sfti_encode_loops sfti_encode_portable = LOOPS_TABLE(portable);

#if defined(__x86_64__) && defined(__GNUC__)
LOOPS(avx2, __attribute__((target("avx2"))))

const sfti_encode_loops *sfti_encode_loops_best(void) {
    static const sfti_encode_loops with_avx2 = LOOPS_TABLE(avx2);
    return sfti_cpu_has(SFTI_CPU_AVX2) ? &with_avx2 : &sfti_encode_portable;
}
#else
const sfti_encode_loops *sfti_encode_loops_best(void) { return &sfti_encode_portable; }
#endif
