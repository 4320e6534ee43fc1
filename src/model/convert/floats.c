/* Stages between F32 and narrower floats, in portable C. Tests: test_convert.c. */
#include "base/endian.h"
#include "convert/convert.h"

#include <string.h>

#define F32_INF UINT32_C(0x7f800000)
#define F32_SIGN UINT32_C(0x80000000)
#define F32_QUIET UINT32_C(0x400000)

/* ── Formats ── */

static const sfti_float float_rows[SFT_DTYPE_COUNT] = {
    [SFT_F4] = { 4, 1, 1, 0x7, 0x7, 0x7, 0, false },
    [SFT_F6_E2M3] = { 6, 3, 1, 0x1f, 0x1f, 0x1f, 0, false },
    [SFT_F6_E3M2] = { 6, 2, 3, 0x1f, 0x1f, 0x1f, 0, false },
    [SFT_F8_E5M2] = { 8, 2, 15, 0x7b, 0x7c, 0x7c, 0x7e, false },
    [SFT_F8_E4M3] = { 8, 3, 7, 0x7e, 0x7f, 0x7f, 0x7f, false },
    [SFT_F8_E4M3FNUZ] = { 8, 3, 8, 0x7f, 0x80, 0x80, 0x80, true },
    [SFT_F8_E5M2FNUZ] = { 8, 2, 16, 0x7f, 0x80, 0x80, 0x80, true },
    [SFT_F16] = { 16, 10, 15, 0x7bff, 0x7c00, 0x7c00, 0x7e00, false },
    [SFT_BF16] = { 16, 7, 127, 0x7f7f, 0x7f80, 0x7f80, 0x7fc0, false },
};

const sfti_float *sfti_float_of(sft_dtype dtype) {
    return float_rows[dtype].bits ? &float_rows[dtype] : NULL;
}

static void put_16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put_32(uint8_t *at, uint32_t value) {
    put_16(at, value);
    put_16(at + 2, value >> 16);
}

/* ── To F32 ── */

static uint32_t f16_value(uint32_t half) {
    uint32_t exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    uint32_t magnitude = ((exponent + 112) << 23) | mantissa << 13;
    if (exponent == 0) { /* exact, so the rounding mode does not matter */
        float value = (float)(int32_t)mantissa * (1.0f / 16777216.0f);
        memcpy(&magnitude, &value, sizeof magnitude);
    }
    if (exponent == 0x1f) magnitude = F32_INF | mantissa << 13 | (mantissa ? F32_QUIET : 0);
    return magnitude | (half & 0x8000) << 16;
}

size_t sfti_f16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++) put_32(out + 4 * i, f16_value(sfti_get_u16(in + 2 * i)));
    return n;
}

size_t sfti_bf16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)sfti_get_u16(in + 2 * i) << 16;
        bits |= (bits & ~F32_SIGN) > F32_INF ? F32_QUIET : 0;
        put_32(out + 4 * i, bits);
    }
    return n;
}

static uint32_t small_magnitude(const sfti_float *row, uint32_t code) {
    uint32_t mantissa = code & ((1u << row->mantissa) - 1), exponent = code >> row->mantissa;
    bool has_infinity = row->infinity > row->greatest && row->infinity < row->nan;
    if (code == 0) return 0;
    if (has_infinity && code == row->infinity) return 0x7f80;
    if (has_infinity && code > row->infinity) return 0x7fc0 | mantissa << (7 - row->mantissa);
    if (row->nan && code > row->greatest) return 0x7fc0;
    if (exponent == 0) {
        exponent = 128 - row->bias;
        for (; !(mantissa >> row->mantissa); mantissa <<= 1) exponent--;
        mantissa -= UINT32_C(1) << row->mantissa;
        return exponent << 7 | mantissa << (7 - row->mantissa);
    }
    return (exponent + 127 - row->bias) << 7 | mantissa << (7 - row->mantissa);
}

uint16_t sfti_code_to_bf16(sft_dtype dtype, uint8_t code) {
    const sfti_float *row = &float_rows[dtype];
    if (dtype == SFT_F8_E8M0)
        return (uint16_t)(code == 0xff ? 0x7fc0 : code == 0 ? 0x40 : code << 7);
    uint32_t sign = code >> (row->bits - 1) & 1;
    uint32_t magnitude = code & ((1u << (row->bits - 1)) - 1);
    if (row->is_fnuz && sign && magnitude == 0) return 0xffc0;
    return (uint16_t)(sign << 15 | small_magnitude(row, magnitude));
}

/* ── From F32 ── */

/* magnitude is finite. The leading one and the mantissa are shifted as one integer, so a carry
 * runs into the exponent; from s = 25 on the result is 0. */
static uint32_t narrow_magnitude(const sfti_float *to, uint32_t magnitude) {
    uint32_t least = 128 - to->bias, exponent = magnitude >> 23;
    uint32_t below = exponent < least ? least - exponent : 0;
    uint32_t above = exponent > least ? exponent - least : 0;
    uint32_t whole = (magnitude & 0x7fffff) | 0x800000;
    uint32_t s = 23 - to->mantissa + below;
    if (s > 31) s = 31;
    whole = (whole + ((UINT32_C(1) << (s - 1)) - 1) + (whole >> s & 1)) >> s;
    return whole + (above << to->mantissa);
}

static uint32_t narrow_finite(const sfti_float *to, uint32_t magnitude) {
    uint32_t code = narrow_magnitude(to, magnitude);
    return code > to->greatest ? to->over : code;
}

size_t sfti_f32_to_f16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    const sfti_float *to = &cast->small;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = sfti_get_u32(in + 4 * i), magnitude = bits & ~F32_SIGN;
        uint32_t code = magnitude >= F32_INF ? to->infinity : narrow_finite(to, magnitude);
        if (magnitude > F32_INF) code = to->nan | (magnitude >> 13 & 0x3ff);
        put_16(out + 2 * i, code | (bits & F32_SIGN) >> 16);
    }
    return n;
}

size_t sfti_f32_to_bf16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    uint32_t over = cast->saturate ? 0x7f7f : 0x7f80;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = sfti_get_u32(in + 4 * i), magnitude = bits & ~F32_SIGN;
        uint32_t code = (magnitude + 0x7fff + (magnitude >> 16 & 1)) >> 16;
        if (code == 0x7f80 && magnitude < F32_INF) code = over;
        if (magnitude > F32_INF) code = magnitude >> 16 | 0x40;
        put_16(out + 2 * i, code | (bits & F32_SIGN) >> 16);
    }
    return n;
}

size_t sfti_f32_to_small(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    const sfti_float *to = &cast->small;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = sfti_get_u32(in + 4 * i), magnitude = bits & ~F32_SIGN;
        uint32_t code = magnitude >= F32_INF ? to->infinity : narrow_finite(to, magnitude);
        uint32_t sign = bits >> 31 << (to->bits - 1);
        if (magnitude > F32_INF) code = to->nan;
        if (magnitude > F32_INF && code == 0) return i;
        out[i] = (uint8_t)(code | (to->is_fnuz && code == 0 ? 0 : sign));
    }
    return n;
}

/* The significand has one bit: half-way between two powers, the upper one is even. Values above
 * 2^-127, the least, up to 2^-126 become 2^-126, as in other implementations. */
size_t sfti_f32_to_e8m0(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    uint32_t over = cast->saturate ? 0xfe : 0xff;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = sfti_get_u32(in + 4 * i), code = (bits + 0x400000) >> 23;
        if (bits < 0x800000) code = bits > 0x400000;
        if (code >= 0xff) code = over;
        if (bits == 0 || bits > F32_INF) code = 0xff; /* also whatever has a sign */
        out[i] = (uint8_t)code;
    }
    return n;
}

uint16_t sfti_cast_code(const sfti_cast *cast, uint32_t f32) {
    uint8_t in[4], out[2] = { 0, 0 };
    sfti_put_u32(in, f32);
    if (cast->to == SFT_F16) (void)sfti_f32_to_f16(cast, in, out, 1);
    else if (cast->to == SFT_BF16) (void)sfti_f32_to_bf16(cast, in, out, 1);
    else if (cast->to == SFT_F8_E8M0) (void)sfti_f32_to_e8m0(cast, in, out, 1);
    else (void)sfti_f32_to_small(cast, in, out, 1);
    return sfti_get_u16(out);
}

static uint64_t f64_of_f32(uint32_t bits) {
    uint64_t sign = (uint64_t)(bits & F32_SIGN) << 32, mantissa = bits & 0x7fffff, out;
    uint32_t exponent = bits >> 23 & 0xff;
    if (exponent == 0) { /* exact */
        double value = (double)(int32_t)mantissa * (1.0 / 4294967296.0 / 4294967296.0)
                       * (1.0 / 4294967296.0 / 4294967296.0 / 2097152.0);
        memcpy(&out, &value, sizeof out);
        return sign | out;
    }
    if (exponent == 0xff)
        return sign | UINT64_C(0x7ff) << 52 | mantissa << 29
               | (mantissa ? UINT64_C(1) << 51 : 0);
    return sign | (uint64_t)(exponent + 896) << 52 | mantissa << 29;
}

size_t sfti_f32_to_f64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++)
        sfti_put_u64(out + 8 * i, f64_of_f32(sfti_get_u32(in + 4 * i)));
    return n;
}

/* ── Bytes ── */

size_t sfti_look_8(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)cast->table[in[i]];
    return n;
}

size_t sfti_look_16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) put_16(out + 2 * i, cast->table[in[i]]);
    return n;
}

size_t sfti_look_32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) put_32(out + 4 * i, (uint32_t)cast->table[in[i]] << 16);
    return n;
}

size_t sfti_unpack_4(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++) out[i] = in[i / 2] >> (i % 2 ? 4 : 0) & 15;
    return n;
}

size_t sfti_pack_4(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i + 1 < n; i += 2) out[i / 2] = (uint8_t)(in[i] | in[i + 1] << 4);
    return n;
}

/* Four elements in three bytes. */
size_t sfti_unpack_6(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i + 3 < n; i += 4, in += 3) {
        uint32_t bits = (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16;
        for (unsigned k = 0; k < 4; k++) out[i + k] = bits >> (6 * k) & 63;
    }
    return n;
}

size_t sfti_pack_6(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i + 3 < n; i += 4, out += 3) {
        uint32_t bits = 0;
        for (unsigned k = 0; k < 4; k++) bits |= (uint32_t)in[i + k] << (6 * k);
        put_16(out, bits);
        out[2] = (uint8_t)(bits >> 16);
    }
    return n;
}
