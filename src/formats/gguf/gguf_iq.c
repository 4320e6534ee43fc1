/* Blocks of GGUF with grids, unpacked in portable C. Tests: test_import_blocks.c. */
#include "base/endian.h"
#include "formats/gguf/gguf.h"

const int8_t sfti_gguf_iq1_values[8] = { -1, 0, 1 };
const int8_t sfti_gguf_iq2_values[8] = { 8, 25, 43 };
const int8_t sfti_gguf_iq3_xxs_values[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };
const int8_t sfti_gguf_iq3_s_values[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };

uint8_t sfti_gguf_signs(uint32_t code) {
    uint32_t odd = code & 127;
    odd ^= odd >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return (uint8_t)((code & 127) | (odd & 1) << 7);
}

float sfti_gguf_scale_iq1_m(const uint8_t *scales) {
    uint8_t half[2] = { (uint8_t)(scales[1] >> 4 | (scales[3] & 0xf0)),
                        (uint8_t)(scales[5] >> 4 | (scales[7] & 0xf0)) };
    return sfti_gguf_half(half);
}

/* Without a branch: signs are as good as random. */
static float with_sign(int value, unsigned negative) {
    int sign = -(int)(negative & 1);
    return (float)((value ^ sign) - sign);
}

/* Eight values of a row, or four each of two, with signs. No value is 0. */
static void unpack_row(float *out, uint32_t row, float d, unsigned signs) {
    for (unsigned i = 0; i < 8; i++)
        out[i] = d * with_sign(sfti_gguf_iq2_values[row >> (2 * i) & 3], signs >> i);
}

static void unpack_rows(float *out, uint32_t first, uint32_t second, const int8_t values[8],
                        float d, unsigned signs) {
    uint32_t rows = first | second << 16;
    for (unsigned i = 0; i < 8; i++)
        out[i] = d * with_sign(values[rows >> (4 * i) & 7], signs >> i);
}

static void unpack_shifted(float *out, uint32_t row, float d, float shift) {
    for (unsigned i = 0; i < 8; i++)
        out[i] = d * ((float)sfti_gguf_iq1_values[row >> (2 * i) & 3] + shift);
}

/* Sixteen scales of four bits. */
static float nibble_scale(const uint8_t *scales, unsigned i) {
    return (float)(scales[i / 2] >> (i % 2 * 4) & 15);
}

void sfti_gguf_iq2_xxs(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 66, out += 256) {
        float d = sfti_gguf_half(in);
        for (unsigned i = 0; i < 32; i++) {
            const uint8_t *group = in + 2 + i / 4 * 8;
            uint32_t rest = sfti_get_u32(group + 4);
            float scale = d * (0.5f + (float)(rest >> 28)) * 0.25f;
            unpack_row(out + 8 * i, sfti_gguf_iq2_xxs_grid[group[i % 4]], scale,
                       sfti_gguf_signs(rest >> (i % 4 * 7)));
        }
    }
}

void sfti_gguf_iq2_xs(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 74, out += 256) {
        float d = sfti_gguf_half(in);
        for (unsigned i = 0; i < 32; i++) {
            uint32_t code = sfti_get_u16(in + 2 + 2 * i);
            float scale = d * (0.5f + nibble_scale(in + 66, i / 2)) * 0.25f;
            unpack_row(out + 8 * i, sfti_gguf_iq2_xs_grid[code & 511], scale,
                       sfti_gguf_signs(code >> 9));
        }
    }
}

void sfti_gguf_iq2_s(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 82, out += 256) {
        float d = sfti_gguf_half(in);
        for (unsigned i = 0; i < 32; i++) {
            uint32_t row = in[2 + i] | (in[66 + i / 4] >> (i % 4 * 2) & 3u) << 8;
            float scale = d * (0.5f + nibble_scale(in + 74, i / 2)) * 0.25f;
            unpack_row(out + 8 * i, sfti_gguf_iq2_s_grid[row], scale, in[34 + i]);
        }
    }
}

void sfti_gguf_iq3_xxs(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 98, out += 256) {
        float d = sfti_gguf_half(in);
        for (unsigned i = 0; i < 32; i++) {
            const uint8_t *q = in + 2 + 2 * i;
            uint32_t rest = sfti_get_u32(in + 66 + i / 4 * 4);
            float scale = d * (0.5f + (float)(rest >> 28)) * 0.5f;
            unpack_rows(out + 8 * i, sfti_gguf_iq3_xxs_grid[q[0]], sfti_gguf_iq3_xxs_grid[q[1]],
                        sfti_gguf_iq3_xxs_values, scale, sfti_gguf_signs(rest >> (i % 4 * 7)));
        }
    }
}

void sfti_gguf_iq3_s(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 110, out += 256) {
        float d = sfti_gguf_half(in);
        for (unsigned i = 0; i < 32; i++) {
            const uint8_t *q = in + 2 + 2 * i;
            unsigned high = in[66 + i / 4] >> (i % 4 * 2);
            float scale = d * (1 + 2 * nibble_scale(in + 106, i / 4));
            unpack_rows(out + 8 * i, sfti_gguf_iq3_s_grid[q[0] | (high & 1) << 8],
                        sfti_gguf_iq3_s_grid[q[1] | (high & 2) << 7], sfti_gguf_iq3_s_values,
                        scale, in[74 + i]);
        }
    }
}

void sfti_gguf_iq1_s(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 50, out += 256) {
        float d = sfti_gguf_half(in);
        for (unsigned i = 0; i < 32; i++) {
            uint32_t rest = sfti_get_u16(in + 34 + i / 4 * 2);
            uint32_t row = in[2 + i] | (rest >> (i % 4 * 3) & 7) << 8;
            unpack_shifted(out + 8 * i, sfti_gguf_iq1_grid[row],
                           d * (float)(2 * (rest >> 12 & 7) + 1),
                           rest & 0x8000 ? -0.125f : 0.125f);
        }
    }
}

void sfti_gguf_iq1_m(const uint8_t *in, float *out, size_t count) {
    for (; count; count--, in += 56, out += 256) {
        float d = sfti_gguf_scale_iq1_m(in + 48);
        for (unsigned i = 0; i < 32; i++) {
            uint32_t scales = sfti_get_u16(in + 48 + i / 8 * 2);
            unsigned rest = in[32 + i / 2] >> (i % 2 * 4);
            unpack_shifted(out + 8 * i, sfti_gguf_iq1_grid[in[i] | (rest & 7) << 8],
                           d * (float)(2 * (scales >> (i % 8 / 2 * 3) & 7) + 1),
                           rest & 8 ? -0.125f : 0.125f);
        }
    }
}
