/* Elements as numbers, and numbers as text. Tests: test_stats.c. */
#include "base/number.h"

#include "base/endian.h"

#include <stdio.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* ── How floats are made ── */

static const sfti_float_form float_forms[SFT_DTYPE_COUNT] = {
    [SFT_F4] = { 1, 2, 1, SFTI_NO_SPECIALS, 1 },
    [SFT_F6_E2M3] = { 1, 2, 3, SFTI_NO_SPECIALS, 1 },
    [SFT_F6_E3M2] = { 1, 3, 2, SFTI_NO_SPECIALS, 3 },
    [SFT_F8_E5M2] = { 1, 5, 2, SFTI_WITH_INF, 15 },
    [SFT_F8_E4M3] = { 1, 4, 3, SFTI_NAN_ONLY, 7 },
    [SFT_F8_E8M0] = { 0, 8, 0, SFTI_NAN_ONLY, 127 },
    [SFT_F8_E4M3FNUZ] = { 1, 4, 3, SFTI_NAN_IS_NEG0, 8 },
    [SFT_F8_E5M2FNUZ] = { 1, 5, 2, SFTI_NAN_IS_NEG0, 16 },
    [SFT_F16] = { 1, 5, 10, SFTI_WITH_INF, 15 },
    [SFT_BF16] = { 1, 8, 7, SFTI_WITH_INF, 127 },
    [SFT_F32] = { 1, 8, 23, SFTI_WITH_INF, 127 },
    [SFT_C64] = { 1, 8, 23, SFTI_WITH_INF, 127 },
    [SFT_F64] = { 1, 11, 52, SFTI_WITH_INF, 1023 },
};

const sfti_float_form *sfti_float_form_of(sft_dtype dtype) {
    return &float_forms[dtype];
}

static double number_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define NUMBER_INF (UINT64_C(0x7FF) << 52)
#define NUMBER_NAN (UINT64_C(0x7FF8) << 48)

static double number_power(int exponent) {
    return number_of_bits((uint64_t)(exponent + 1023) << 52);
}

static bool number_is_special(const sfti_float_form *f, uint64_t exponent, uint64_t mantissa,
                              bool minus) {
    uint64_t top = (UINT64_C(1) << f->exponent) - 1, full = (UINT64_C(1) << f->mantissa) - 1;
    switch ((sfti_specials)f->specials) {
    case SFTI_WITH_INF: return exponent == top;
    case SFTI_NAN_ONLY: return exponent == top && mantissa == full;
    case SFTI_NAN_IS_NEG0: return minus && exponent == 0 && mantissa == 0;
    case SFTI_NO_SPECIALS: break;
    }
    return false;
}

/* E8M0 has no sign, no mantissa and no zero: its lowest pattern is a power as the others. */
double sfti_float_value(const sfti_float_form *f, uint64_t bits) {
    uint64_t mantissa = bits & ((UINT64_C(1) << f->mantissa) - 1);
    uint64_t exponent = bits >> f->mantissa & ((UINT64_C(1) << f->exponent) - 1);
    bool minus = f->sign && bits >> (f->mantissa + f->exponent) & 1;
    double value;
    if (f->mantissa == 52) return number_of_bits(bits);
    if (number_is_special(f, exponent, mantissa, minus)) {
        bool infinite = f->specials == SFTI_WITH_INF && mantissa == 0;
        value = number_of_bits(infinite ? NUMBER_INF : NUMBER_NAN);
    } else if (exponent == 0 && f->sign) {
        value = (double)mantissa * number_power(1 - f->bias - f->mantissa);
    } else {
        value = (double)(mantissa + (UINT64_C(1) << f->mantissa)) *
                number_power((int)exponent - f->bias - f->mantissa);
    }
    return minus ? -value : value;
}

/* ── One element ── */

/* Six bits from bit 6 * i on; those that lie in two bytes take from both. */
static uint32_t number_six(const uint8_t *at, uint64_t i) {
    unsigned shift = (unsigned)(6 * (i % 4));
    at += i / 4 * 3 + shift / 8;
    shift %= 8;
    uint32_t high = shift > 2 ? (uint32_t)at[1] << 8 : 0;
    return ((uint32_t)at[0] | high) >> shift & 63;
}

uint64_t sfti_element_bits(sft_dtype dtype, const void *bytes, uint64_t i) {
    const uint8_t *at = bytes;
    switch (sft_dtype_describe(dtype)->bits) {
    case 4: return (uint32_t)at[i / 2] >> (i % 2 ? 4 : 0) & 15u;
    case 6: return number_six(at, i);
    case 8: return at[i];
    case 16: return sfti_get_u16(at + 2 * i);
    case 32: return sfti_get_u32(at + 4 * i);
    default: return sfti_get_u64(at + 8 * i);
    }
}

/* ── Many elements ── */

static double double_of_f32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static void f32_to_doubles(const uint8_t *at, size_t count, double *out) {
    for (size_t i = 0; i < count; i++) out[i] = double_of_f32(sfti_get_u32(at + 4 * i));
}

/* Exponent and mantissa moved to where F32 has them, then brought to F32's bias by a product,
 * which is exact for subnormals too; what had the highest exponent is infinity or NaN. */
static void f16_to_doubles(const uint8_t *at, size_t count, double *out) {
    for (size_t i = 0; i < count; i++) {
        uint32_t half = sfti_get_u16(at + 2 * i);
        double value = double_of_f32((half & 0x7FFF) << 13) * 0x1p112;
        if ((half & 0x7C00) == 0x7C00)
            value = number_of_bits(half & 0x3FF ? NUMBER_NAN : NUMBER_INF);
        out[i] = half & 0x8000 ? -value : value;
    }
}

static double element_value(sft_dtype dtype, uint64_t bits) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    uint64_t sign = UINT64_C(1) << (info->bits - 1);
    if (float_forms[dtype].exponent) return sfti_float_value(&float_forms[dtype], bits);
    if (info->kind == SFT_KIND_BOOL) return bits ? 1 : 0;
    if (info->kind == SFT_KIND_UINT || !(bits & sign)) return (double)bits;
    return -(double)((~bits & (sign - 1)) + 1);
}

#define NUMBER_TABLE 256

void sfti_to_doubles(sft_dtype dtype, const void *bytes, size_t first, size_t count,
                     double *out) {
    const uint8_t *at = bytes;
    switch (dtype) {
    case SFT_F32: f32_to_doubles(at + 4 * first, count, out); return;
    case SFT_C64: f32_to_doubles(at + 8 * first, 2 * count, out); return;
    case SFT_BF16:
        for (size_t i = 0; i < count; i++)
            out[i] = double_of_f32((uint32_t)sfti_get_u16(at + 2 * (first + i)) << 16);
        return;
    case SFT_F16: f16_to_doubles(at + 2 * first, count, out); return;
    default: break;
    }
    if (sft_dtype_describe(dtype)->bits <= 8 && count >= NUMBER_TABLE) {
        /* By a table of all values, where there are few of them and many elements. */
        double values[NUMBER_TABLE];
        size_t patterns = (size_t)1 << sft_dtype_describe(dtype)->bits;
        for (size_t i = 0; i < patterns; i++) values[i] = element_value(dtype, i);
        for (size_t i = 0; i < count; i++)
            out[i] = values[sfti_element_bits(dtype, bytes, first + i) % NUMBER_TABLE];
        return;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = element_value(dtype, sfti_element_bits(dtype, bytes, first + i));
}

/* ── Square roots ── */

/* By Newton's method on a value between 1 and 4, whose power is even; then the integer r that is
 * nearest to the root of x = mantissa * 2^52 or 2^53 is found exactly: r^2 - r < x <= r^2 + r. As
 * x - r^2 is small, it is right modulo 2^64. */
double sfti_root_portable(double value) {
    uint64_t bits;
    int scale = 0;
    if (!(value > 0) || value - value != 0) return value;
    if (value < 0x1p-1000) {
        value *= 0x1p108;
        scale = -54;
    }
    memcpy(&bits, &value, sizeof bits);
    int power = (int)(bits >> 52) - 1023, half = (power - (power & 1)) / 2;
    double near = value * number_power(-half) * number_power(-half), root = (1 + near) / 2;
    for (int i = 0; i < 6; i++) root = (root + near / root) / 2;
    uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    uint64_t r = (uint64_t)(root * 0x1p52), x = mantissa << (power & 1 ? 53 : 52);
    int64_t left = (int64_t)(x - r * r);
    while (left > (int64_t)r) {
        left -= (int64_t)(2 * r + 1);
        r++;
    }
    while (left <= -(int64_t)r) {
        left += (int64_t)(2 * r - 1);
        r--;
    }
    return (double)r * 0x1p-52 * number_power(half + scale);
}

double sfti_root(double value) {
    if (!(value > 0) || value - value != 0) return value;
#if defined(__SSE2__)
    return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(value)));
#elif defined(__aarch64__) && defined(__ARM_NEON)
    return vget_lane_f64(vsqrt_f64(vdup_n_f64(value)), 0);
#else
    return sfti_root_portable(value);
#endif
}

/* ── Text ── */

size_t sfti_uint_text(uint64_t value, size_t width, char buffer[SFTI_UINT_SIZE]) {
    size_t len = 1;
    for (uint64_t rest = value; rest >= 10; rest /= 10) len++;
    if (len < width) len = width < SFTI_UINT_SIZE ? width : SFTI_UINT_SIZE;
    for (size_t at = len; at > 0; value /= 10) buffer[--at] = (char)('0' + value % 10);
    return len;
}

bool sfti_text_digits(sft_span *text, size_t least, uint64_t *out) {
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text->len && text->data[i] >= '0' && text->data[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(text->data[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    if (i < least) return false;
    *out = value;
    *text = (sft_span){ text->data + i, text->len - i };
    return true;
}

bool sfti_text_uint(sft_span text, uint64_t *out) {
    uint64_t value;
    if (!sfti_text_digits(&text, 1, &value) || text.len > 0) return false;
    *out = value;
    return true;
}

void sfti_hex_text(uint64_t value, size_t digits, char *out) {
    for (; digits > 0; value >>= 4) out[--digits] = "0123456789abcdef"[value & 15];
}

size_t sfti_double_text(double value, char buffer[SFTI_DOUBLE_SIZE]) {
    if (value - value != 0) {
        const char *text = value != value ? "\"NaN\""
                           : value > 0    ? "\"Infinity\"" : "\"-Infinity\"";
        size_t len = strlen(text);
        memcpy(buffer, text, len + 1);
        return len;
    }
    int len = snprintf(buffer, SFTI_DOUBLE_SIZE, "%.17g", value);
    /* The point of a locale may be another character. */
    for (int i = 0; i < len; i++)
        if (!strchr("0123456789+-e", buffer[i])) buffer[i] = '.';
    return (size_t)len;
}
