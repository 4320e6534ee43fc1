/* Casts that lose no value unnoticed. Tests: test_dataset_shards.c. */
#include "base/endian.h"
#include "base/error.h"
#include "dataset/write/writer.h"
#include "safetensors_convert.h"

#include <stdio.h>
#include <string.h>

#define CAST_BLOCK 512

/* ── Rounding as the Scala connector has it ── */

/* Truncates towards zero: below the least normal number to zero, above the greatest exponent to an
 * infinity; NaN keeps only its sign. */
static uint16_t truncate_f16(uint32_t f32) {
    uint16_t sign = (uint16_t)(f32 >> 16 & 0x8000);
    uint32_t exponent = f32 >> 23 & 0xff, mantissa = f32 & 0x7fffff;
    if (exponent == 0xff) return (uint16_t)(sign | (mantissa ? 0x7e00 : 0x7c00));
    if (exponent < 127 - 14) return sign;
    if (exponent > 127 + 15) return (uint16_t)(sign | 0x7c00);
    return (uint16_t)(sign | (exponent - (127 - 15)) << 10 | mantissa >> 13);
}

static void truncate_all(const uint8_t *f32, sft_dtype to, uint8_t *out, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = sfti_get_u32(f32 + 4 * i);
        uint16_t half = to == SFT_F16 ? truncate_f16(bits) : (uint16_t)(bits >> 16);
        out[2 * i] = (uint8_t)half;
        out[2 * i + 1] = (uint8_t)(half >> 8);
    }
}

/* The connector reads elements as F64, converts to F32 and truncates; F32 it reads directly. */
static sft_code truncate_block(sft_dtype from, const void *in, sft_dtype to, uint8_t *out,
                               uint64_t count, uint64_t *element, sft_error *err) {
    uint8_t wide[8 * CAST_BLOCK], f32[4 * CAST_BLOCK];
    sft_code code = SFT_OK;
    if (from == SFT_F32) {
        truncate_all(in, to, out, count);
        return SFT_OK;
    }
    code = sft_cast(from, in, SFT_F64, wide, count, NULL, element, err);
    if (!code) code = sft_cast(SFT_F64, wide, SFT_F32, f32, count, NULL, element, err);
    if (!code) truncate_all(f32, to, out, count);
    return code;
}

/* The bytes of the file, without checks for lost values. */
static sft_code cast_plain(sft_dtype from, const void *in, sft_dtype to, void *out, uint64_t count,
                           bool truncate, uint64_t *element, sft_error *err) {
    uint64_t at = 0, bits = sft_dtype_describe(from)->bits;
    if (!truncate) return sft_cast(from, in, to, out, count, NULL, element, err);
    for (; at < count; at += CAST_BLOCK) {
        uint64_t block = count - at < CAST_BLOCK ? count - at : CAST_BLOCK;
        sft_code code = truncate_block(from, (const char *)in + at * bits / 8, to,
                                       (uint8_t *)out + 2 * at, block, element, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* ── Values that have no place in the target ── */

#define FITS_SIGN (UINT64_C(1) << 63)
#define FITS_INFINITE UINT64_C(0x7ff0000000000000)

/* Compares bits of F64, so that the state of the floating-point unit does not matter. Integers and
 * BOOL must be exact; floats may round, but finite stays finite and infinite stays infinite. */
static bool value_fits(uint64_t in, uint64_t out, const sft_dtype_info *to, uint64_t below) {
    if (to->kind != SFT_KIND_FLOAT) return in == out || ((in | out) & ~FITS_SIGN) == 0;
    in &= ~FITS_SIGN;
    out &= ~FITS_SIGN;
    if (in > FITS_INFINITE) return out > FITS_INFINITE;
    return in == FITS_INFINITE ? out == in : in < below && out < FITS_INFINITE;
}

/* Whether any of these floats is an infinity or NaN. If none is, no value was too large. */
static bool any_special(const uint8_t *out, size_t count, size_t each, uint32_t exponent) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = each == 2 ? sfti_get_u16(out + 2 * i) : sfti_get_u32(out + 4 * i);
        any |= (bits & exponent) == exponent;
    }
    return any;
}

static sft_code fits_fail(uint64_t bits, sft_dtype from, const sft_dtype_info *to,
                          uint64_t element, sft_error *err) {
    const sft_dtype_info *of = sft_dtype_describe(from);
    bool wide = of->kind != SFT_KIND_FLOAT || from == SFT_F64;
    char text[40];
    double number;
    memcpy(&number, &bits, sizeof number);
    (void)snprintf(text, sizeof text, "%.*g", wide ? 15 : 9, number);
    const char *what = to->kind == SFT_KIND_BOOL    ? "0 or 1"
                       : to->kind == SFT_KIND_FLOAT ? "numbers within its range"
                                                    : "whole numbers";
    return sfti_fail(err, SFT_CAST_VALUE, "expected %s to convert to %s, found %s in element %llu",
                     what, to->name, text, (unsigned long long)element);
}

static sft_code block_fits(sft_dtype from, const void *in, sft_dtype to, const void *out,
                           size_t count, uint64_t *element, sft_error *err) {
    uint8_t was[8 * CAST_BLOCK], is[8 * CAST_BLOCK];
    const sft_dtype_info *info = sft_dtype_describe(to);
    /* F4 and F6 have no infinity: the least value that is too large for them is 7, 7.75 or 30. */
    uint64_t below = to == SFT_F4        ? UINT64_C(0x401c000000000000)
                     : to == SFT_F6_E2M3 ? UINT64_C(0x401f000000000000)
                     : to == SFT_F6_E3M2 ? UINT64_C(0x403e000000000000)
                                         : FITS_INFINITE;
    sft_code code = sft_cast(from, in, SFT_F64, was, count, NULL, NULL, err);
    if (!code) code = sft_cast(to, out, SFT_F64, is, count, NULL, NULL, err);
    for (size_t i = 0; !code && i < count; i++) {
        uint64_t bits = sfti_get_u64(was + 8 * i);
        if (value_fits(bits, sfti_get_u64(is + 8 * i), info, below)) continue;
        *element += i;
        return fits_fail(bits, from, info, *element, err);
    }
    return code;
}

/* sft_cast fails outside an integer's range, but truncates fractions, turns numbers too large for a
 * float into infinities (or what it has instead), and any non-zero value into true. */
sft_code sfti_ds_cast(sft_dtype from, const void *in, sft_dtype to, void *out, uint64_t count,
                      bool truncate, uint64_t *element, sft_error *err) {
    uint64_t in_bits = sft_dtype_describe(from)->bits, out_bits = sft_dtype_describe(to)->bits;
    bool halves = truncate && from != to && (to == SFT_F16 || to == SFT_BF16);
    sft_code code = cast_plain(from, in, to, out, count, halves, element, err);
    sft_kind kind = sft_dtype_describe(to)->kind, of = sft_dtype_describe(from)->kind;
    if (halves || from == to || to == SFT_F64) return code;
    if (kind != SFT_KIND_FLOAT && kind != SFT_KIND_BOOL && of != SFT_KIND_FLOAT) return code;
    for (uint64_t at = 0; !code && at < count; at += CAST_BLOCK) {
        size_t block = count - at < CAST_BLOCK ? (size_t)(count - at) : CAST_BLOCK;
        const uint8_t *made = (const uint8_t *)out + at * out_bits / 8;
        if ((to == SFT_F16 && !any_special(made, block, 2, 0x7c00)) ||
            (to == SFT_BF16 && !any_special(made, block, 2, 0x7f80)) ||
            (to == SFT_F32 && !any_special(made, block, 4, 0x7f800000)))
            continue;
        *element = at;
        code = block_fits(from, (const uint8_t *)in + at * in_bits / 8, to, made, block, element,
                          err);
    }
    return code;
}
