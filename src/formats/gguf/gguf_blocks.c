/* Blocks of GGUF unpacked in portable C. Tests: test_import_blocks.c. */
#include "base/endian.h"
#include "formats/gguf/gguf.h"

#include <string.h>

/* ── Scales ── */

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float sfti_gguf_half(const uint8_t *at) {
    uint32_t half = sfti_get_u16(at), sign = (half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest >= 0x7c00) return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400) return float_of((sign | rest << 13) + 0x38000000);
    float value = (float)rest * (1.0f / 16777216);
    return sign ? -value : value;
}

/* Half of 2^(code - 127). Of 255, too, which is a NaN elsewhere. */
float sfti_gguf_e8m0(uint8_t code) {
    return float_of(code < 2 ? UINT32_C(0x200000) << code : (uint32_t)(code - 1) << 23);
}

/* Half of a float of 4 bits of exponent and 3 of mantissa; the highest bit does not count. */
float sfti_gguf_ue4m3(uint8_t code) {
    uint32_t exponent = code >> 3 & 15, mantissa = code & 7;
    if (code == 0x7f) return 0;
    if (exponent == 0) return (float)mantissa * (1.0f / 1024);
    return float_of((exponent + 119) << 23 | mantissa << 20);
}

const int8_t sfti_gguf_e2m1[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
const int8_t sfti_gguf_iq4[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113 };

void sfti_gguf_scale_k4(const uint8_t *packed, unsigned j, uint8_t *scale, uint8_t *minimum) {
    if (j < 4) {
        *scale = packed[j] & 63;
        *minimum = packed[j + 4] & 63;
    } else {
        *scale = (uint8_t)((packed[j + 4] & 15) | packed[j - 4] >> 6 << 4);
        *minimum = (uint8_t)(packed[j + 4] >> 4 | packed[j] >> 6 << 4);
    }
}

void sfti_gguf_scales_q3_k(const uint8_t *packed, int8_t scales[16]) {
    for (unsigned j = 0; j < 16; j++) {
        unsigned low = packed[j % 8] >> (j / 8 * 4) & 15;
        unsigned high = packed[8 + j % 4] >> (j / 4 * 2) & 3;
        scales[j] = (int8_t)((int)(low | high << 4) - 32);
    }
}

/* ── Blocks of 32, 64 and 128 ── */

void sfti_gguf_q1_0(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 18, out += 128) {
        float d = sfti_gguf_half(in);
        for (unsigned j = 0; j < 128; j++) out[j] = in[2 + j / 8] >> (j % 8) & 1 ? d : -d;
    }
}

void sfti_gguf_q2_0(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 18, out += 64) {
        float d = sfti_gguf_half(in);
        for (unsigned j = 0; j < 64; j++)
            out[j] = d * (float)((in[2 + j / 4] >> (j % 4 * 2) & 3) - 1);
    }
}

void sfti_gguf_q4_0(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 18, out += 32) {
        float d = sfti_gguf_half(in);
        for (unsigned j = 0; j < 16; j++) {
            out[j] = d * (float)((in[2 + j] & 15) - 8);
            out[j + 16] = d * (float)((in[2 + j] >> 4) - 8);
        }
    }
}

void sfti_gguf_q4_1(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 20, out += 32) {
        float d = sfti_gguf_half(in), m = sfti_gguf_half(in + 2);
        for (unsigned j = 0; j < 16; j++) {
            out[j] = d * (float)(in[4 + j] & 15) + m;
            out[j + 16] = d * (float)(in[4 + j] >> 4) + m;
        }
    }
}

void sfti_gguf_q5_0(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 22, out += 32) {
        float d = sfti_gguf_half(in);
        uint32_t high = sfti_get_u32(in + 2);
        for (unsigned j = 0; j < 16; j++) {
            unsigned first = (in[6 + j] & 15u) | (high >> j & 1) << 4;
            unsigned second = in[6 + j] >> 4 | (high >> (j + 16) & 1) << 4;
            out[j] = d * (float)((int)first - 16);
            out[j + 16] = d * (float)((int)second - 16);
        }
    }
}

void sfti_gguf_q5_1(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 24, out += 32) {
        float d = sfti_gguf_half(in), m = sfti_gguf_half(in + 2);
        uint32_t high = sfti_get_u32(in + 4);
        for (unsigned j = 0; j < 16; j++) {
            out[j] = d * (float)((in[8 + j] & 15u) | (high >> j & 1) << 4) + m;
            out[j + 16] = d * (float)(in[8 + j] >> 4 | (high >> (j + 16) & 1) << 4) + m;
        }
    }
}

void sfti_gguf_q8_0(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 34, out += 32) {
        float d = sfti_gguf_half(in);
        for (unsigned j = 0; j < 32; j++) out[j] = d * (float)(int8_t)in[2 + j];
    }
}

/* 2 * half nibbles, each an index into the values: the low ones first. */
static void unpack_nibbles(const uint8_t *in, float *out, unsigned half, float d,
                           const int8_t values[16]) {
    for (unsigned j = 0; j < half; j++) {
        out[j] = d * (float)values[in[j] & 15];
        out[j + half] = d * (float)values[in[j] >> 4];
    }
}

void sfti_gguf_mxfp4(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 17, out += 32)
        unpack_nibbles(in + 1, out, 16, sfti_gguf_e8m0(in[0]), sfti_gguf_e2m1);
}

void sfti_gguf_nvfp4(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 36, out += 64)
        for (unsigned g = 0; g < 4; g++)
            unpack_nibbles(in + 4 + 8 * g, out + 16 * g, 8, sfti_gguf_ue4m3(in[g]),
                           sfti_gguf_e2m1);
}

void sfti_gguf_iq4_nl(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 18, out += 32)
        unpack_nibbles(in + 2, out, 16, sfti_gguf_half(in), sfti_gguf_iq4);
}

/* ── Blocks of 256 ── */

void sfti_gguf_iq4_xs(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 136, out += 256) {
        float d = sfti_gguf_half(in);
        uint32_t high = sfti_get_u16(in + 2);
        for (unsigned g = 0; g < 8; g++) {
            unsigned low = in[4 + g / 2] >> (g % 2 * 4) & 15;
            int scale = (int)(low | (high >> (2 * g) & 3) << 4) - 32;
            unpack_nibbles(in + 8 + 16 * g, out + 32 * g, 16, d * (float)scale, sfti_gguf_iq4);
        }
    }
}

void sfti_gguf_q2_k(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 84, out += 256) {
        float d = sfti_gguf_half(in + 80), dmin = sfti_gguf_half(in + 82);
        for (unsigned g = 0; g < 16; g++) {
            const uint8_t *q = in + 16 + g / 8 * 32 + g % 2 * 16;
            float scale = d * (float)(in[g] & 15), minimum = dmin * (float)(in[g] >> 4);
            for (unsigned l = 0; l < 16; l++)
                out[16 * g + l] = scale * (float)(q[l] >> (g % 8 / 2 * 2) & 3) - minimum;
        }
    }
}

void sfti_gguf_q3_k(const uint8_t *in, float *out, size_t count) {
    int8_t scales[16];
    for (; count; count--, in += 110, out += 256) {
        float d = sfti_gguf_half(in + 108);
        sfti_gguf_scales_q3_k(in + 96, scales);
        for (unsigned g = 0; g < 16; g++) {
            const uint8_t *q = in + 32 + g / 8 * 32 + g % 2 * 16, *high = in + g % 2 * 16;
            float scale = d * (float)scales[g];
            for (unsigned l = 0; l < 16; l++) {
                int value = q[l] >> (g % 8 / 2 * 2) & 3;
                out[16 * g + l] = scale * (float)(high[l] >> (g / 2) & 1 ? value : value - 4);
            }
        }
    }
}

void sfti_gguf_q4_k(const uint8_t *in, float *out, size_t count) {
    uint8_t scale, minimum;
    for (; count; count--, in += 144, out += 256) {
        float d = sfti_gguf_half(in), dmin = sfti_gguf_half(in + 2);
        for (unsigned g = 0; g < 8; g++) {
            const uint8_t *q = in + 16 + g / 2 * 32;
            sfti_gguf_scale_k4(in + 4, g, &scale, &minimum);
            float s = d * (float)scale, m = dmin * (float)minimum;
            for (unsigned l = 0; l < 32; l++)
                out[32 * g + l] = s * (float)(q[l] >> (g % 2 * 4) & 15) - m;
        }
    }
}

void sfti_gguf_q5_k(const uint8_t *in, float *out, size_t count) {
    uint8_t scale, minimum;
    for (; count; count--, in += 176, out += 256) {
        float d = sfti_gguf_half(in), dmin = sfti_gguf_half(in + 2);
        for (unsigned g = 0; g < 8; g++) {
            const uint8_t *q = in + 48 + g / 2 * 32, *high = in + 16;
            sfti_gguf_scale_k4(in + 4, g, &scale, &minimum);
            float s = d * (float)scale, m = dmin * (float)minimum;
            for (unsigned l = 0; l < 32; l++) {
                unsigned value = (q[l] >> (g % 2 * 4) & 15u) | (high[l] >> g & 1u) << 4;
                out[32 * g + l] = s * (float)value - m;
            }
        }
    }
}

void sfti_gguf_q6_k(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 210, out += 256) {
        float d = sfti_gguf_half(in + 208);
        for (unsigned g = 0; g < 16; g++) {
            unsigned half = g / 8, k = g % 8 / 2, i = g % 2;
            const uint8_t *low = in + 64 * half + k % 2 * 32 + 16 * i;
            const uint8_t *high = in + 128 + 32 * half + 16 * i;
            float scale = d * (float)(int8_t)in[192 + g];
            for (unsigned l = 0; l < 16; l++) {
                unsigned value = (low[l] >> (k / 2 * 4) & 15u) | (high[l] >> (2 * k) & 3u) << 4;
                out[16 * g + l] = scale * (float)((int)value - 32);
            }
        }
    }
}

/* Digits of base 3, highest first: a byte is a fraction of 256, rounded up. */
static float *unpack_digits(const uint8_t *in, size_t bytes, unsigned digits, float d,
                            float *out) {
    uint8_t power = 1;
    for (unsigned n = 0; n < digits; n++, power = (uint8_t)(power * 3))
        for (size_t m = 0; m < bytes; m++) {
            uint8_t rest = (uint8_t)(in[m] * power);
            *out++ = d * (float)((rest * 3 >> 8) - 1);
        }
    return out;
}

void sfti_gguf_tq1_0(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 54) {
        float d = sfti_gguf_half(in + 52);
        out = unpack_digits(in, 32, 5, d, out);
        out = unpack_digits(in + 32, 16, 5, d, out);
        out = unpack_digits(in + 48, 4, 4, d, out);
    }
}

void sfti_gguf_tq2_0(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 66, out += 256) {
        float d = sfti_gguf_half(in + 64);
        for (unsigned j = 0; j < 256; j++)
            out[j] = d * (float)((in[j / 128 * 32 + j % 32] >> (j % 128 / 32 * 2) & 3) - 1);
    }
}
