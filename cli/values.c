#include "values.h"

#include "base/endian.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── Floats of any width to double ── */

typedef enum float_specials {
    WITH_INF,   /* IEEE: the highest exponent is infinity or NaN */
    NAN_ONLY,   /* fn: all ones is NaN, no infinity */
    NAN_IS_NEG0, /* fnuz: minus zero is NaN */
    NONE        /* every pattern is a number */
} float_specials;

typedef struct float_form {
    uint8_t exponent, mantissa;
    int16_t bias;
    float_specials specials;
} float_form;

static const float_form *float_form_of(sft_dtype dtype) {
    static const float_form f4 = { 2, 1, 1, NONE }, e2m3 = { 2, 3, 1, NONE },
                            e3m2 = { 3, 2, 3, NONE }, e5m2 = { 5, 2, 15, WITH_INF },
                            e4m3 = { 4, 3, 7, NAN_ONLY }, e4m3z = { 4, 3, 8, NAN_IS_NEG0 },
                            e5m2z = { 5, 2, 16, NAN_IS_NEG0 }, f16 = { 5, 10, 15, WITH_INF },
                            bf16 = { 8, 7, 127, WITH_INF }, f32 = { 8, 23, 127, WITH_INF };
    switch (dtype) {
    case SFT_F4: return &f4;
    case SFT_F6_E2M3: return &e2m3;
    case SFT_F6_E3M2: return &e3m2;
    case SFT_F8_E5M2: return &e5m2;
    case SFT_F8_E4M3: return &e4m3;
    case SFT_F8_E4M3FNUZ: return &e4m3z;
    case SFT_F8_E5M2FNUZ: return &e5m2z;
    case SFT_F16: return &f16;
    case SFT_BF16: return &bf16;
    case SFT_F32:
    case SFT_C64: return &f32;
    default: return NULL;
    }
}

static double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double power_of_two(int exponent) {
    return double_of_bits((uint64_t)(exponent + 1023) << 52);
}

static bool is_special(const float_form *f, uint32_t exponent, uint32_t mantissa, bool minus) {
    uint32_t top = (1u << f->exponent) - 1, full = (1u << f->mantissa) - 1;
    switch (f->specials) {
    case WITH_INF: return exponent == top;
    case NAN_ONLY: return exponent == top && mantissa == full;
    case NAN_IS_NEG0: return minus && exponent == 0 && mantissa == 0;
    case NONE: break;
    }
    return false;
}

static double small_float(const float_form *f, uint32_t bits) {
    uint32_t mantissa = bits & ((1u << f->mantissa) - 1);
    uint32_t exponent = bits >> f->mantissa & ((1u << f->exponent) - 1);
    bool minus = bits >> (f->mantissa + f->exponent) & 1;
    double value;
    if (is_special(f, exponent, mantissa, minus)) {
        bool infinite = f->specials == WITH_INF && mantissa == 0;
        value = double_of_bits(infinite ? UINT64_C(0x7FF) << 52 : UINT64_C(0x7FF8) << 48);
    } else if (exponent == 0) {
        value = mantissa * power_of_two(1 - f->bias - f->mantissa);
    } else {
        value = (mantissa + (1u << f->mantissa)) *
                power_of_two((int)exponent - f->bias - f->mantissa);
    }
    return minus ? -value : value;
}

/* ── Numbers to text ── */

static size_t special_text(double value, bool json, char *room) {
    const char *text = value != value ? "nan" : value > 0 ? "inf" : "-inf";
    if (json) {
        text = value != value ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    }
    return (size_t)snprintf(room, CLI_VALUE_ROOM, "%s", text);
}

static bool is_finite(double value) {
    return value - value == 0;
}

static size_t float_text(double value, bool single, bool json, char *room) {
    double least = single ? power_of_two(-126) : power_of_two(-1022);
    bool subnormal = value < least && value > -least;
    int digits = subnormal ? 1 : single ? 6 : 15, most = single ? 9 : 17;
    if (!is_finite(value)) return special_text(value, json, room);
    for (;; digits++) {
        int len = snprintf(room, CLI_VALUE_ROOM / 2, "%.*g", digits, value);
        bool same = single ? (double)strtof(room, NULL) == value : strtod(room, NULL) == value;
        if (same || digits == most) return (size_t)len;
    }
}

static size_t complex_text(double real, double imaginary, bool json, char *room) {
    size_t n = 0;
    if (json) room[n++] = '[';
    n += float_text(real, true, json, room + n);
    if (json) room[n++] = ',';
    char *sign = room + n;
    n += float_text(imaginary, true, json, room + n);
    if (!json && *sign != '-') {
        memmove(sign + 1, sign, n - (size_t)(sign - room));
        *sign = '+';
        n++;
    }
    room[n++] = json ? ']' : 'j';
    return n;
}

/* Six bits from bit 6 * i on; those that lie in two bytes take from both. */
static uint32_t six_bits(const uint8_t *at, uint64_t i) {
    unsigned shift = (unsigned)(6 * (i % 4));
    at += i / 4 * 3 + shift / 8;
    shift %= 8;
    uint32_t high = shift > 2 ? (uint32_t)at[1] << 8 : 0;
    return ((uint32_t)at[0] | high) >> shift & 63;
}

static uint32_t element_bits(sft_dtype dtype, const uint8_t *at, uint64_t i) {
    switch (sft_dtype_describe(dtype)->bits) {
    case 4: return (uint32_t)at[i / 2] >> (i % 2 ? 4 : 0) & 15u;
    case 6: return six_bits(at, i);
    case 8: return at[i];
    case 16: return sfti_get_u16(at + 2 * i);
    default: return sfti_get_u32(at + 4 * i);
    }
}

static uint64_t sign_extended(uint64_t value, uint32_t bits) {
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return (value ^ sign) - sign;
}

static size_t integer_text(const sft_dtype_info *info, uint64_t value, char *room) {
    if (info->kind == SFT_KIND_UINT) {
        return (size_t)snprintf(room, CLI_VALUE_ROOM, "%" PRIu64, value);
    }
    value = sign_extended(value, info->bits);
    bool minus = value >> 63;
    return (size_t)snprintf(room, CLI_VALUE_ROOM, "%s%" PRIu64, minus ? "-" : "",
                            minus ? 0 - value : value);
}

size_t cli_value_text(sft_dtype dtype, const void *bytes, uint64_t i, bool json,
                      char room[CLI_VALUE_ROOM]) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    const uint8_t *at = bytes;
    uint64_t wide = info->bits == 64 ? sfti_get_u64(at + 8 * i) : 0;
    if (dtype == SFT_C64) {
        const float_form *f = float_form_of(dtype);
        return complex_text(small_float(f, (uint32_t)wide), small_float(f, (uint32_t)(wide >> 32)),
                            json, room);
    }
    uint32_t narrow = info->bits < 64 ? element_bits(dtype, at, i) : 0;
    if (dtype == SFT_F64) return float_text(double_of_bits(wide), false, json, room);
    if (dtype == SFT_F8_E8M0) {
        double value = narrow == 255 ? double_of_bits(UINT64_C(0x7FF8) << 48)
                                     : power_of_two((int)narrow - 127);
        return float_text(value, true, json, room);
    }
    if (info->kind == SFT_KIND_FLOAT) {
        return float_text(small_float(float_form_of(dtype), narrow), true, json, room);
    }
    if (info->kind == SFT_KIND_BOOL) {
        return (size_t)snprintf(room, CLI_VALUE_ROOM, "%s", narrow ? "true" : "false");
    }
    return integer_text(info, info->bits == 64 ? wide : narrow, room);
}

const char *cli_numpy_code(sft_dtype dtype) {
    switch (dtype) {
    case SFT_BOOL: return "|b1";
    case SFT_U8: return "|u1";
    case SFT_I8: return "|i1";
    case SFT_I16: return "<i2";
    case SFT_U16: return "<u2";
    case SFT_F16: return "<f2";
    case SFT_I32: return "<i4";
    case SFT_U32: return "<u4";
    case SFT_F32: return "<f4";
    case SFT_C64: return "<c8";
    case SFT_F64: return "<f8";
    case SFT_I64: return "<i8";
    case SFT_U64: return "<u8";
    default: return NULL;
    }
}
