/* Rounding up or down by chance, which a counter decides. Tests: tests/adapter/options.py. */
#include "adapter/adapter.h"

#include "base/number.h"
#include "convert/convert.h"

#include <string.h>

/* The finaliser of SplitMix64. */
static uint64_t stirred(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

#define COUNTER_STEP UINT64_C(0x9E3779B97F4A7C15)

bool sfti_stochastic_begin(sfti_stochastic *how, uint64_t seed, sft_span tensor,
                           sft_dtype dtype) {
    uint64_t name = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (size_t i = 0; i < tensor.len; i++)
        name = (name ^ (uint8_t)tensor.data[i]) * UINT64_C(0x100000001B3);
    how->key = stirred(stirred(seed + COUNTER_STEP) ^ name);
    const sfti_float_form *form = sfti_float_form_of(dtype);
    const sfti_float *small = sfti_float_of(dtype);
    how->mantissa = form->mantissa;
    how->least = 1 - form->bias;
    how->greatest = 0;
    if (small) how->greatest = (float)sfti_float_value(form, small->greatest);
    if (dtype == SFT_I8) how->mantissa = how->least = 7; /* steps of 1 */
    if (dtype == SFT_I8) how->greatest = 127;
    return how->greatest > 0;
}

/* 2^power, of a power from -149 to 127. */
static float power_of_2(int power) {
    uint32_t bits = power < -126 ? UINT32_C(1) << (power + 149) : (uint32_t)(power + 127) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void sfti_stochastic_round(const sfti_stochastic *how, uint64_t first, float *values,
                           size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        int exponent = (int)(bits >> 23 & 0xff);
        uint32_t whole = (bits & 0x7fffff) | (exponent > 0 ? UINT32_C(0x800000) : 0);
        if (exponent == 0xff || whole == 0) continue;
        exponent = (exponent > 0 ? exponent : 1) - 127;
        /* |value| = whole * 2^(exponent - 23) = (whole / 2^shift) * step */
        int grid = exponent > how->least ? exponent : how->least;
        int shift = 23 - exponent + grid - how->mantissa;
        uint32_t chance = 0, steps = shift < 32 ? whole >> shift : 0;
        if (shift < 32) chance = (uint32_t)((uint64_t)whole << (32 - shift));
        else if (shift < 56) chance = whole >> (shift - 32);
        uint64_t counter = how->key + (first + i + 1) * COUNTER_STEP;
        if ((uint32_t)(stirred(counter) >> 32) < chance) steps++;
        float rounded = (float)steps * power_of_2(grid - how->mantissa);
        float size = values[i] < 0 ? -values[i] : values[i];
        if (size > how->greatest) continue; /* by nearest: the greatest, or too large */
        if (rounded > how->greatest) rounded = how->greatest;
        values[i] = bits >> 31 ? -rounded : rounded;
    }
}
