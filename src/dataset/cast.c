#include "base/endian.h"
#include "dataset/shard_writer.h"
#include "safetensors_convert.h"

#define TRUNCATE_BLOCK 512

/* ── Rounding as the Scala connector has it ── */

/* Sign and magnitude cut off, what is below the least normal number is zero, what is above the
 * greatest exponent an infinity, every NaN the same but for its sign. */
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

/* Through F64, as it reads every element, to F32 and then down; F32 is taken as it is. */
static sft_code truncate_block(sft_dtype from, const void *in, sft_dtype to, uint8_t *out,
                               uint64_t count, uint64_t *element, sft_error *err) {
    uint8_t wide[8 * TRUNCATE_BLOCK], f32[4 * TRUNCATE_BLOCK];
    sft_code code = SFT_OK;
    if (from == SFT_F32) {
        truncate_all(in, to, out, count);
        return SFT_OK;
    }
    code = sft_cast(from, in, SFT_F64, wide, count, NULL, element, err);
    if (code == SFT_OK) code = sft_cast(SFT_F64, wide, SFT_F32, f32, count, NULL, element, err);
    if (code == SFT_OK) truncate_all(f32, to, out, count);
    return code;
}

sft_code sfti_ds_cast(sft_dtype from, const void *in, sft_dtype to, void *out, uint64_t count,
                      bool truncate, uint64_t *element, sft_error *err) {
    uint64_t at = 0, bits = sft_dtype_describe(from)->bits;
    if (!truncate || from == to || (to != SFT_F16 && to != SFT_BF16))
        return sft_cast(from, in, to, out, count, NULL, element, err);
    for (; at < count; at += TRUNCATE_BLOCK) {
        uint64_t block = count - at < TRUNCATE_BLOCK ? count - at : TRUNCATE_BLOCK;
        sft_code code = truncate_block(from, (const char *)in + at * bits / 8, to,
                                       (uint8_t *)out + 2 * at, block, element, err);
        if (code) return code;
    }
    return SFT_OK;
}
