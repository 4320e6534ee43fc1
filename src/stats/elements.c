#include "base/endian.h"
#include "base/number.h"
#include "stats/stats.h"

#include <string.h>

/* Floats of 16 bits and more: mantissas and their squares are summed by sign and exponent, even
 * and odd elements apart, so that an addition need not wait for the one before it. Elements of at
 * most 8 bits are counted by their bits. No sum overflows within a block of STATS_BLOCK. */

#define STATS_BLOCK 65536
#define STATS_SIGN (UINT64_C(1) << 63)

typedef struct float_layout {
    unsigned bits, mantissa;
    int bias;
} float_layout;

static const float_layout layout_f16 = { 16, 10, 15 }, layout_bf16 = { 16, 7, 127 },
                          layout_f32 = { 32, 23, 127 }, layout_f64 = { 64, 52, 1023 };

static void note_extremes(sfti_sums *sums, uint64_t least, uint64_t greatest) {
    if (least < sums->least) sums->least = least;
    if (greatest > sums->greatest) sums->greatest = greatest;
}

/* The key of a finite double. */
static uint64_t key_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits ^ STATS_SIGN;
}

/* ── Floats ── */

/* Where units of the bins of that exponent stand in a wide sum. */
static unsigned bin_place(const float_layout *layout, unsigned exponent) {
    int power = (int)(exponent ? exponent : 1) - layout->bias - (int)layout->mantissa;
    return (unsigned)(power + SFTI_WIDE_POINT);
}

/* Adds two words, the low one first, at that bit. */
static void wide_add_two(sfti_wide *to, unsigned bit, const uint64_t words[2]) {
    if (words[0]) sfti_wide_add(to, bit, words[0]);
    if (words[1]) sfti_wide_add(to, bit + 64, words[1]);
}

/* A bin of one sign and exponent. Of the highest exponent, which NaN and infinities have, nothing
 * is added. */
static void bin_take(sfti_sums *sums, const float_layout *layout, unsigned at,
                     const uint64_t sum[2], const uint64_t square[2]) {
    unsigned exponents = 1u << (layout->bits - 1 - layout->mantissa);
    unsigned exponent = at % exponents, place = bin_place(layout, exponent);
    if (exponent == exponents - 1 || !(sum[0] | sum[1])) return;
    wide_add_two(at >= exponents ? &sums->minus : &sums->plus, place, sum);
    wide_add_two(&sums->squares, 2 * place, square);
}

/* The bits of element i. Loops over it are compiled for each layout. */
static inline uint64_t float_bits(const float_layout *layout, const uint8_t *in, size_t i) {
    return layout->bits == 16 ? sfti_get_u16(in + 2 * i) : sfti_get_u32(in + 4 * i);
}

static inline void float_bins(const float_layout *layout, uint64_t *bins, const uint8_t *in,
                              size_t count) {
    uint32_t one = UINT32_C(1) << layout->mantissa, sign = UINT32_C(1) << (layout->bits - 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)float_bits(layout, in, i);
        uint32_t whole = (bits & (one - 1)) | ((bits & (sign - 1)) >= one ? one : 0);
        uint64_t *bin = bins + 4 * (size_t)(bits >> layout->mantissa) + 2 * (i & 1);
        bin[0] += whole;
        bin[1] += (uint64_t)whole * whole;
    }
}

/* Keys in 32 bits: those of F16 and BF16 too are mapped to unsigned numbers of their order. */
static inline void float_extremes(const float_layout *layout, const uint8_t *in, size_t count,
                                  uint32_t *least, uint32_t *greatest, uint32_t *zeros) {
    uint32_t sign = UINT32_C(1) << (layout->bits - 1), all = (sign - 1) | sign;
    uint32_t top = (sign - 1) >> layout->mantissa << layout->mantissa;
    uint32_t low = all, high = 0, none = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)float_bits(layout, in, i);
        uint32_t key = bits & sign ? ~bits & all : bits | sign;
        bool special = (bits & top) == top;
        uint32_t for_low = special ? all : key, for_high = special ? 0 : key;
        low = for_low < low ? for_low : low;
        high = for_high > high ? for_high : high;
        none += (bits & (sign - 1)) == 0;
    }
    *least = low;
    *greatest = high;
    *zeros = none;
}

static void count_specials(sfti_sums *sums, const float_layout *layout, const uint8_t *in,
                           size_t count) {
    uint64_t magnitudes = UINT64_MAX >> (65 - layout->bits);
    uint64_t infinity = magnitudes >> layout->mantissa << layout->mantissa;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = layout->bits == 64 ? sfti_get_u64(in + 8 * i) : float_bits(layout, in, i);
        sums->nan += (bits & magnitudes) > infinity;
        sums->inf += (bits & magnitudes) == infinity;
    }
}

static uint64_t wide_key(const float_layout *layout, sft_dtype dtype, uint32_t key) {
    uint32_t sign = UINT32_C(1) << (layout->bits - 1), all = (sign - 1) | sign;
    return key_of_double(sfti_float_value(sfti_float_form_of(dtype),
                                          key & sign ? key ^ sign : ~key & all));
}

static inline void float_block(sfti_sums *sums, uint64_t *bins, const float_layout *layout,
                               sft_dtype dtype, const uint8_t *in, size_t count) {
    uint32_t least, greatest, zeros;
    unsigned entries = 1u << (layout->bits - layout->mantissa);
    float_bins(layout, bins, in, count);
    float_extremes(layout, in, count, &least, &greatest, &zeros);
    sums->zeros += zeros;
    if (least <= greatest)
        note_extremes(sums, wide_key(layout, dtype, least), wide_key(layout, dtype, greatest));
    if (bins[4 * (entries / 2 - 1)] | bins[4 * (entries - 1)] | bins[4 * (entries / 2 - 1) + 2] |
        bins[4 * (entries - 1) + 2])
        count_specials(sums, layout, in, count);
    for (unsigned at = 0; at < entries; at++) {
        uint64_t *bin = bins + 4 * at;
        uint64_t sum[2] = { bin[0] + bin[2], 0 }, square[2] = { bin[1] + bin[3], 0 };
        square[1] = square[0] < bin[1];
        bin_take(sums, layout, at, sum, square);
    }
    memset(bins, 0, 4 * (size_t)entries * sizeof *bins);
}

static void f16_block(sfti_sums *sums, sfti_bins *bins, const uint8_t *in, size_t count) {
    float_block(sums, bins->bin, &layout_f16, SFT_F16, in, count);
}

static void bf16_block(sfti_sums *sums, sfti_bins *bins, const uint8_t *in, size_t count) {
    float_block(sums, bins->bin, &layout_bf16, SFT_BF16, in, count);
}

static void f32_block(sfti_sums *sums, sfti_bins *bins, const uint8_t *in, size_t count) {
    float_block(sums, bins->bin, &layout_f32, SFT_F32, in, count);
}

/* ── F64: sums of two words ── */

static void add_two(uint64_t to[2], uint64_t low, uint64_t high) {
    to[0] += low;
    to[1] += high + (to[0] < low);
}

/* a * a. */
static void square_of(uint64_t a, uint64_t out[2]) {
    uint64_t high = a >> 32, low = a & UINT32_MAX, cross = high * low;
    out[0] = low * low;
    out[1] = high * high;
    add_two(out, cross << 33, cross >> 31);
}

static void f64_block(sfti_sums *sums, sfti_bins *bins, const uint8_t *in, size_t count) {
    bool special = false;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = sfti_get_u64(in + 8 * i), exponent = bits >> 52 & 0x7FF, square[2];
        uint64_t whole = (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(exponent != 0) << 52;
        uint64_t *bin = bins->bin + 4 * (bits >> 52);
        sums->zeros += whole == 0;
        if (exponent == 0x7FF) {
            special = true;
            continue;
        }
        uint64_t key = bits >> 63 ? ~bits : bits ^ STATS_SIGN;
        note_extremes(sums, key, key);
        square_of(whole, square);
        add_two(bin, whole, 0);
        add_two(bin + 2, square[0], square[1]);
    }
    if (special) count_specials(sums, &layout_f64, in, count);
    for (unsigned at = 0; at < SFTI_BIN_SIGNS_AND_EXPONENTS; at++)
        bin_take(sums, &layout_f64, at, bins->bin + 4 * at, bins->bin + 4 * at + 2);
    memset(bins->bin, 0, sizeof bins->bin);
}

/* ── Elements of at most 8 bits ── */

/* count values that are equal; as doubles they have few bits. */
static void add_equal(sfti_sums *sums, double value, uint64_t count) {
    uint64_t bits, key = key_of_double(value);
    memcpy(&bits, &value, sizeof bits);
    unsigned exponent = (unsigned)(bits >> 52 & 0x7FF), drop = 0;
    uint64_t whole = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    for (; !(whole & 1); whole >>= 1) drop++;
    unsigned place = bin_place(&layout_f64, exponent) + drop;
    note_extremes(sums, key, key);
    sfti_wide_add(bits >> 63 ? &sums->minus : &sums->plus, place, whole * count);
    sfti_wide_add(&sums->squares, 2 * place, whole * whole * count);
}

static void add_code(sfti_sums *sums, sft_dtype dtype, double value, uint64_t count) {
    sft_kind kind = sft_dtype_describe(dtype)->kind;
    if (count == 0) return;
    if (value != value) {
        sums->nan += count;
    } else if (value - value != 0) {
        sums->inf += count;
    } else if (kind != SFT_KIND_FLOAT) {
        uint64_t whole = (uint64_t)(value < 0 ? -value : value);
        uint64_t key = kind != SFT_KIND_INT ? whole
                       : (value < 0 ? ~whole + 1 : whole) ^ STATS_SIGN;
        note_extremes(sums, key, key);
        sfti_wide_add(value < 0 ? &sums->minus : &sums->plus, SFTI_WIDE_POINT, whole * count);
        sfti_wide_add(&sums->squares, 2 * SFTI_WIDE_POINT, whole * whole * count);
        if (whole == 0) sums->zeros += count;
    } else if (value == 0) {
        sums->zeros += count;
        note_extremes(sums, STATS_SIGN, STATS_SIGN);
    } else {
        add_equal(sums, value, count);
    }
}

static void count_bytes(uint32_t counts[4][256], const uint8_t *in, size_t bytes) {
    size_t i = 0;
    for (; i + 4 <= bytes; i += 4)
        for (size_t k = 0; k < 4; k++) counts[k][in[i + k]]++;
    for (; i < bytes; i++) counts[0][in[i]]++;
}

/* Into counts[0], of bytes that are elements, two of 4 bits, or a third of four of 6 bits. */
static void count_codes(uint32_t counts[4][256], sft_dtype dtype, const uint8_t *in,
                        size_t count) {
    unsigned bits = sft_dtype_describe(dtype)->bits;
    if (bits == 6) {
        for (size_t i = 0; i < count; i++) counts[0][sfti_element_bits(dtype, in, i)]++;
        return;
    }
    count_bytes(counts, in, count * bits / 8);
    for (size_t i = 0; i < 256; i++) counts[0][i] += counts[1][i] + counts[2][i] + counts[3][i];
    if (bits == 8) return;
    memset(counts[1], 0, sizeof counts[1]);
    for (size_t i = 0; i < 256; i++) {
        counts[1][i & 15] += counts[0][i];
        counts[1][i >> 4] += counts[0][i];
    }
    memcpy(counts[0], counts[1], sizeof counts[0]);
}

static void small_block(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype, const uint8_t *in,
                        size_t count) {
    unsigned bits = sft_dtype_describe(dtype)->bits;
    sft_dtype alone = bits == 8 ? dtype : SFT_U8;
    uint8_t codes[256];
    double values[256];
    for (unsigned i = 0; i < 256; i++) codes[i] = (uint8_t)i;
    sfti_to_doubles(alone, codes, 0, 256, values);
    for (unsigned i = 0; bits < 8 && i < 1u << bits; i++)
        values[i] = sfti_float_value(sfti_float_form_of(dtype), i);
    count_codes(bins->count, dtype, in, count);
    for (unsigned i = 0; i < 1u << bits; i++)
        add_code(sums, dtype, values[i], bins->count[0][i]);
    memset(bins->count, 0, sizeof bins->count);
}

/* ── Integers ── */

/* Products of up to 64 bits, summed up by halves. */
typedef struct half_sums {
    uint64_t low, high;
} half_sums;

static inline void half_add(half_sums *sums, uint64_t value) {
    sums->low += value & UINT32_MAX;
    sums->high += value >> 32;
}

static void wide_add_halves(sfti_wide *to, unsigned bit, const half_sums *sums) {
    sfti_wide_add(to, bit, sums->low);
    sfti_wide_add(to, bit + 32, sums->high);
}

static inline int64_t int_value(sft_dtype dtype, const uint8_t *in, size_t i) {
    switch (dtype) {
    case SFT_I16: return (int16_t)sfti_get_u16(in + 2 * i);
    case SFT_U16: return sfti_get_u16(in + 2 * i);
    case SFT_I32: return (int32_t)sfti_get_u32(in + 4 * i);
    default: return sfti_get_u32(in + 4 * i);
    }
}

static inline void int_block(sfti_sums *sums, sft_dtype dtype, uint64_t turn, const uint8_t *in,
                             size_t count) {
    int64_t least = INT64_MAX, greatest = INT64_MIN, plus = 0, all = 0;
    uint64_t zeros = 0;
    half_sums squares = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        int64_t value = int_value(dtype, in, i);
        least = value < least ? value : least;
        greatest = value > greatest ? value : greatest;
        all += value;
        plus += value > 0 ? value : 0;
        zeros += value == 0;
        half_add(&squares, (uint64_t)(value * value));
    }
    sums->zeros += zeros;
    if (count > 0) note_extremes(sums, (uint64_t)least ^ turn, (uint64_t)greatest ^ turn);
    sfti_wide_add(&sums->plus, SFTI_WIDE_POINT, (uint64_t)plus);
    sfti_wide_add(&sums->minus, SFTI_WIDE_POINT, (uint64_t)(plus - all));
    wide_add_halves(&sums->squares, 2 * SFTI_WIDE_POINT, &squares);
}

/* U32 squares need all 64 bits. */
static void u32_block(sfti_sums *sums, const uint8_t *in, size_t count) {
    uint64_t least = UINT32_MAX, greatest = 0, all = 0, zeros = 0;
    half_sums squares = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        uint64_t value = sfti_get_u32(in + 4 * i);
        least = value < least ? value : least;
        greatest = value > greatest ? value : greatest;
        all += value;
        zeros += value == 0;
        half_add(&squares, value * value);
    }
    sums->zeros += zeros;
    if (count > 0) note_extremes(sums, least, greatest);
    sfti_wide_add(&sums->plus, SFTI_WIDE_POINT, all);
    wide_add_halves(&sums->squares, 2 * SFTI_WIDE_POINT, &squares);
}

/* (2^32 h + l)^2 by its three products. */
static void i64_block(sfti_sums *sums, uint64_t turn, const uint8_t *in, size_t count) {
    half_sums plus = { 0, 0 }, minus = { 0, 0 }, hh = { 0, 0 }, hl = { 0, 0 }, ll = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = sfti_get_u64(in + 8 * i);
        bool negative = (bits & turn) != 0;
        uint64_t size = negative ? ~bits + 1 : bits, high = size >> 32, low = size & UINT32_MAX;
        note_extremes(sums, bits ^ turn, bits ^ turn);
        sums->zeros += size == 0;
        half_add(negative ? &minus : &plus, size);
        half_add(&hh, high * high);
        half_add(&hl, high * low);
        half_add(&ll, low * low);
    }
    wide_add_halves(&sums->plus, SFTI_WIDE_POINT, &plus);
    wide_add_halves(&sums->minus, SFTI_WIDE_POINT, &minus);
    wide_add_halves(&sums->squares, 2 * SFTI_WIDE_POINT, &ll);
    wide_add_halves(&sums->squares, 2 * SFTI_WIDE_POINT + 33, &hl);
    wide_add_halves(&sums->squares, 2 * SFTI_WIDE_POINT + 64, &hh);
}

/* ── All dtypes ── */

static void stats_block(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype, const uint8_t *in,
                        size_t count) {
    switch (dtype) {
    case SFT_F16: f16_block(sums, bins, in, count); break;
    case SFT_BF16: bf16_block(sums, bins, in, count); break;
    case SFT_F32: case SFT_C64: f32_block(sums, bins, in, count); break;
    case SFT_F64: f64_block(sums, bins, in, count); break;
    case SFT_I16: int_block(sums, SFT_I16, STATS_SIGN, in, count); break;
    case SFT_U16: int_block(sums, SFT_U16, 0, in, count); break;
    case SFT_I32: int_block(sums, SFT_I32, STATS_SIGN, in, count); break;
    case SFT_U32: u32_block(sums, in, count); break;
    case SFT_I64: i64_block(sums, STATS_SIGN, in, count); break;
    case SFT_U64: i64_block(sums, 0, in, count); break;
    default: small_block(sums, bins, dtype, in, count); break;
    }
    sums->values += count;
}

/* By the exponent of the double. */
static void add_to_histogram(sft_histogram *to, sft_dtype dtype, const uint8_t *in,
                             size_t count) {
    double values[256];
    size_t most = dtype == SFT_C64 ? 128 : 256, each = dtype == SFT_C64 ? 2 : 1;
    for (size_t at = 0; at < count; at += most) {
        size_t part = count - at < most ? count - at : most;
        sfti_to_doubles(dtype, in, at, part, values);
        for (size_t i = 0; i < part * each; i++) {
            uint64_t bits;
            memcpy(&bits, &values[i], sizeof bits);
            int exponent = (int)(bits >> 52 & 0x7FF), bin = exponent - 1023 + 64;
            if (exponent == 0x7FF || bits << 1 == 0) continue;
            if (bin < 0) bin = 0;
            if (bin >= SFT_HISTOGRAM_BINS) bin = SFT_HISTOGRAM_BINS - 1;
            (bits >> 63 ? to->negative : to->positive)[bin]++;
        }
    }
}

void sfti_sums_elements(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype, const uint8_t *in,
                        size_t count) {
    unsigned bits = sft_dtype_describe(dtype)->bits;
    size_t halves = dtype == SFT_C64 ? 2 * count : count;
    if (sums->histogram) add_to_histogram(sums->histogram, dtype, in, count);
    if (dtype == SFT_C64) bits = 32;
    for (size_t at = 0; at < halves; at += STATS_BLOCK) {
        size_t part = halves - at < STATS_BLOCK ? halves - at : STATS_BLOCK;
        stats_block(sums, bins, dtype, in + at / 8 * bits, part);
    }
}
