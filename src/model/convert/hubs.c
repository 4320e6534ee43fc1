/* Stages from and to the 64-bit hubs: F64, integers, BOOL. Tests: test_convert.c. */
#include "base/endian.h"
#include "convert/convert.h"

#include <string.h>

/* F64, integers and BOOL by way of the 64-bit hubs, rounded once. */

#define F64_SIGN (UINT64_C(1) << 63)
#define F64_INF (UINT64_C(0x7ff) << 52)

/* ── Rounding ── */

/* whole >> drop (at least 1), rounded to nearest with ties to even, or to odd. */
static uint64_t round_shift(uint64_t whole, uint32_t drop, bool odd) {
    if (drop > 64) return odd && whole;
    uint64_t kept = drop < 64 ? whole >> drop : 0;
    uint64_t rest = drop < 64 ? whole & ((UINT64_C(1) << drop) - 1) : whole;
    uint64_t half = UINT64_C(1) << (drop - 1);
    if (odd) return kept | (rest != 0);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* whole has its highest bit set; the value is 1.xxx * 2^exponent. */
static uint32_t f32_magnitude(uint64_t whole, int32_t exponent, bool odd, bool saturate) {
    uint32_t below = exponent < -126 ? (uint32_t)(-126 - exponent) : 0, bits;
    uint32_t over = odd || saturate ? UINT32_C(0x7f7fffff) : UINT32_C(0x7f800000);
    if (exponent > 127) return over;
    bits = (uint32_t)round_shift(whole, 40 + below, odd);
    if (below == 0) bits += (uint32_t)(exponent + 126) << 23;
    return bits >= UINT32_C(0x7f800000) ? over : bits;
}

static uint32_t lead_zeros(uint64_t value) {
#if defined(__GNUC__)
    return (uint32_t)__builtin_clzll(value);
#else
    uint32_t zeros = 0;
    for (; !(value >> 63); value <<= 1) zeros++;
    return zeros;
#endif
}

static uint32_t f32_of_rest(uint64_t bits, bool odd, bool saturate) {
    uint32_t sign = (uint32_t)(bits >> 32) & UINT32_C(0x80000000);
    uint64_t magnitude = bits & ~F64_SIGN, mantissa = bits & ((UINT64_C(1) << 52) - 1);
    int32_t exponent = (int32_t)(magnitude >> 52) - 1023;
    if (magnitude > F64_INF)
        return sign | UINT32_C(0x7fc00000) | (uint32_t)(mantissa >> 29);
    if (magnitude == F64_INF) return sign | UINT32_C(0x7f800000);
    if (magnitude == 0) return sign;
    /* Subnormals are below half of the least F32: that they are not zero is all that matters. */
    return sign | f32_magnitude(F64_SIGN | mantissa << 11, exponent, odd, saturate);
}

static inline uint32_t f32_of_f64(uint64_t bits, bool odd, bool saturate) {
    uint64_t shifted = (bits & ~F64_SIGN) - (UINT64_C(896) << 52);
    uint32_t over = saturate ? UINT32_C(0x7f7fffff) : UINT32_C(0x7f800000);
    if (shifted - (UINT64_C(1) << 52) >= UINT64_C(254) << 52)
        return f32_of_rest(bits, odd, saturate);
    /* In the range of normal F32s; a carry runs into the exponent. */
    uint32_t code = (uint32_t)(shifted >> 29) | ((shifted & 0x1fffffff) != 0);
    if (!odd) code = (uint32_t)((shifted + 0xfffffff + (shifted >> 29 & 1)) >> 29);
    if (!odd && code >= UINT32_C(0x7f800000)) code = over;
    return ((uint32_t)(bits >> 32) & UINT32_C(0x80000000)) | code;
}

static uint32_t f32_of_magnitude(uint64_t value, bool odd) {
    if (value == 0) return 0;
    uint32_t zeros = lead_zeros(value);
    return f32_magnitude(value << zeros, 63 - (int32_t)zeros, odd, false);
}

static uint64_t f64_of_magnitude(uint64_t value) {
    if (value == 0) return 0;
    uint32_t zeros = lead_zeros(value);
    return round_shift(value << zeros, 11, false) + ((uint64_t)(1085 - zeros) << 52);
}

static uint64_t distance_to_zero(uint64_t bits) {
    return bits >> 63 ? 0 - bits : bits;
}

static uint32_t f32_of_i64(uint64_t bits, bool odd) {
    return (uint32_t)(bits >> 63) << 31 | f32_of_magnitude(distance_to_zero(bits), odd);
}

/* ── Hub to hub ── */

size_t sfti_f64_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        sfti_put_u32(out + 4 * i, f32_of_f64(sfti_get_u64(in + 8 * i), false, cast->saturate));
    return n;
}

size_t sfti_f64_to_odd(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++)
        sfti_put_u32(out + 4 * i, f32_of_f64(sfti_get_u64(in + 8 * i), true, false));
    return n;
}

size_t sfti_i64_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++)
        sfti_put_u32(out + 4 * i, f32_of_i64(sfti_get_u64(in + 8 * i), false));
    return n;
}

size_t sfti_i64_to_odd(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++)
        sfti_put_u32(out + 4 * i, f32_of_i64(sfti_get_u64(in + 8 * i), true));
    return n;
}

size_t sfti_u64_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++)
        sfti_put_u32(out + 4 * i, f32_of_magnitude(sfti_get_u64(in + 8 * i), false));
    return n;
}

size_t sfti_u64_to_odd(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++)
        sfti_put_u32(out + 4 * i, f32_of_magnitude(sfti_get_u64(in + 8 * i), true));
    return n;
}

size_t sfti_i64_to_f64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = sfti_get_u64(in + 8 * i);
        sfti_put_u64(out + 8 * i,
                     (bits & F64_SIGN) | f64_of_magnitude(distance_to_zero(bits)));
    }
    return n;
}

size_t sfti_u64_to_f64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++)
        sfti_put_u64(out + 8 * i, f64_of_magnitude(sfti_get_u64(in + 8 * i)));
    return n;
}

/* ── Integers ── */

size_t sfti_int_to_i64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    const sft_dtype_info *info = sft_dtype_describe(cast->from);
    size_t bytes = info->bits / 8;
    uint64_t sign = UINT64_C(1) << (info->bits - 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = in[i * bytes];
        if (bytes == 2) bits = sfti_get_u16(in + 2 * i);
        if (bytes == 4) bits = sfti_get_u32(in + 4 * i);
        if (info->kind == SFT_KIND_BOOL) bits = bits != 0;
        if (info->kind == SFT_KIND_INT) bits = (bits ^ sign) - sign;
        sfti_put_u64(out + 8 * i, bits);
    }
    return n;
}

/* Greatest magnitudes the target can represent, below and above zero. */
typedef struct int_limits {
    uint64_t below, above;
    size_t bytes;
    bool saturate;
} int_limits;

static int_limits limits_of(const sfti_cast *cast) {
    const sft_dtype_info *info = sft_dtype_describe(cast->to);
    uint64_t all = UINT64_MAX >> (64 - info->bits);
    int_limits limits = { 0, all, info->bits / 8, cast->saturate };
    if (info->kind == SFT_KIND_INT) limits = (int_limits){ (all >> 1) + 1, all >> 1,
                                                           info->bits / 8, cast->saturate };
    return limits;
}

/* False if the target cannot represent the value. */
static inline bool put_int(const int_limits *limits, bool negative, uint64_t magnitude,
                           uint8_t *at) {
    uint64_t most = negative ? limits->below : limits->above;
    if (magnitude > most && !limits->saturate) return false;
    if (magnitude > most) magnitude = most;
    uint64_t bits = negative ? 0 - magnitude : magnitude;
    for (size_t b = 0; b < limits->bytes; b++) at[b] = (uint8_t)(bits >> (8 * b));
    return true;
}

size_t sfti_i64_to_int(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    int_limits limits = limits_of(cast);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = sfti_get_u64(in + 8 * i);
        if (!put_int(&limits, bits >> 63, distance_to_zero(bits), out + i * limits.bytes))
            return i;
    }
    return n;
}

size_t sfti_u64_to_int(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    int_limits limits = limits_of(cast);
    for (size_t i = 0; i < n; i++)
        if (!put_int(&limits, false, sfti_get_u64(in + 8 * i), out + i * limits.bytes))
            return i;
    return n;
}

size_t sfti_f64_to_int(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    int_limits limits = limits_of(cast);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = sfti_get_u64(in + 8 * i), magnitude = bits & ~F64_SIGN;
        uint32_t exponent = (uint32_t)(magnitude >> 52);
        uint64_t whole = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
        if (exponent < 1023) whole = 0;
        else if (exponent > 1086) whole = UINT64_MAX;
        else whole = exponent < 1075 ? whole >> (1075 - exponent) : whole << (exponent - 1075);
        if (magnitude >= UINT64_C(1087) << 52 && !limits.saturate) return i;
        if (magnitude > F64_INF) whole = 0;
        if (!put_int(&limits, bits >> 63, whole, out + i * limits.bytes)) return i;
    }
    return n;
}

/* ── BOOL ── */

size_t sfti_f32_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++) out[i] = (sfti_get_u32(in + 4 * i) & 0x7fffffff) != 0;
    return n;
}

size_t sfti_f64_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++) out[i] = (sfti_get_u64(in + 8 * i) & ~F64_SIGN) != 0;
    return n;
}

size_t sfti_i64_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    (void)cast;
    for (size_t i = 0; i < n; i++) out[i] = sfti_get_u64(in + 8 * i) != 0;
    return n;
}
