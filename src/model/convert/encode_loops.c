/* What encoding does with every value of a row. Tests: test_encode.c. */
#include "convert/encode_loops.h"

#include "base/cpu.h"
#include "convert/convert.h"

#include <string.h>

#define SUMS 64

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
    if (bits > before) memcpy(number, &bits, sizeof bits);
}

/* Blocks of 16 and 32 values are known to the compiler, which then unrolls them. */
BODY void magnitudes_of(const float *values, size_t count, size_t block, float *numbers) {
    size_t at = 0, b = 0;
    for (; block == 16 && at + 16 <= count; at += 16) raise_of(values + at, 16, &numbers[b++]);
    for (; block == 32 && at + 32 <= count; at += 32) raise_of(values + at, 32, &numbers[b++]);
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

BODY void decode_of(sft_dtype dtype, const uint8_t *restrict codes, size_t count,
                    float *restrict out) {
    if (dtype == SFT_I8) {
        for (size_t i = 0; i < count; i++) out[i] = (float)(int8_t)codes[i];
        return;
    }
    const sfti_float *form = sfti_float_of(dtype);
    uint32_t shift = 23 - form->mantissa, bits = (254 - form->bias) << 23;
    float up;
    memcpy(&up, &bits, sizeof up);
    if (dtype != SFT_F4)
        for (size_t i = 0; i < count; i++) out[i] = float_of(codes[i], 0x80, shift, up);
    else
        for (size_t i = 0; i < count / 2; i++) {
            out[2 * i] = float_of(codes[i] & 15u, 8, shift, up);
            out[2 * i + 1] = float_of((uint32_t)codes[i] >> 4, 8, shift, up);
        }
}

/* To F8_E4M3: the bits rounded to 3 of the mantissa, of 2^-6 and less multiples of 2^-9. */
BODY void pairs_of(const float *restrict numbers, size_t count, float limit, float whole,
                   bool divides, uint8_t *restrict codes, float *restrict factors) {
    for (size_t i = 0; i < count; i++) {
        float scale = numbers[i] / limit, small;
        uint32_t bits, steps;
        scale = divides ? scale * whole : scale / whole;
        small = scale + 0x1.8p14f;
        memcpy(&bits, &scale, sizeof bits);
        memcpy(&steps, &small, sizeof steps);
        steps -= 0x46c00000;
        uint32_t code = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - (120u << 3);
        code = code > 0x7e ? 0x7e : code;
        code = bits < 0x3c800000 ? steps : code;
        codes[i] = (uint8_t)code;
        scale = float_of(code, 0x80, 20, 0x1p120f);
        factors[i] = divides ? scale / whole : scale * whole;
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

/* The same of 16 values. */
BODY void sixteen_squares_of(const float *restrict scaled, const float *restrict decoded,
                             double factor, double sums[2]) {
    float error[8], power[8];
    for (size_t k = 0; k < 8; k++) {
        float a = decoded[k] - scaled[k], b = decoded[k + 8] - scaled[k + 8];
        error[k] = a * a + b * b;
        power[k] = scaled[k] * scaled[k] + scaled[k + 8] * scaled[k + 8];
    }
    float e = ((error[0] + error[4]) + (error[1] + error[5])) + ((error[2] + error[6])
                                                                + (error[3] + error[7]));
    float p = ((power[0] + power[4]) + (power[1] + power[5])) + ((power[2] + power[6])
                                                                + (power[3] + power[7]));
    sums[0] += (double)e * (factor * factor);
    sums[1] += (double)p * (factor * factor);
}

BODY void all_squares_of(const float *scaled, const float *decoded, size_t count, size_t block,
                         const float *factors, double sums[2]) {
    size_t at = 0, b = 0;
    for (; block == 16 && at + 16 <= count; at += 16)
        sixteen_squares_of(scaled + at, decoded + at, (double)factors[b++], sums);
    for (; block == 32 && at + 32 <= count; at += 32, b++) {
        sixteen_squares_of(scaled + at, decoded + at, (double)factors[b], sums);
        sixteen_squares_of(scaled + at + 16, decoded + at + 16, (double)factors[b], sums);
    }
    for (; at < count; at += block)
        squares_of(scaled + at, decoded + at, count - at < block ? count - at : block,
                   (double)factors[b++], sums);
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
    TARGET static void NAME##_decode(sft_dtype dtype, const uint8_t *codes, size_t count,       \
                                     float *out) {                                              \
        decode_of(dtype, codes, count, out);                                                    \
    }                                                                                           \
    TARGET static void NAME##_pairs(const float *numbers, size_t count, float limit,            \
                                    float whole, bool divides, uint8_t *codes,                  \
                                    float *factors) {                                           \
        pairs_of(numbers, count, limit, whole, divides, codes, factors);                        \
    }                                                                                           \
    TARGET static void NAME##_squares(const float *scaled, const float *decoded, size_t count,  \
                                      size_t block, const float *factors, double sums[2]) {     \
        all_squares_of(scaled, decoded, count, block, factors, sums);                           \
    }

#define LOOPS_TABLE(NAME) \
    { NAME##_greatest, NAME##_magnitudes, NAME##_scale, NAME##_to_int8, NAME##_decode, \
      NAME##_pairs, NAME##_squares }

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
