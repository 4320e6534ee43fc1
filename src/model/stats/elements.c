/* Adding elements of each dtype to sums. Tests: test_stats.c. */
#include "base/endian.h"
#include "base/number.h"
#include "stats/stats.h"

#include <string.h>

/* F32 and F64: mantissas and their squares are summed by sign and exponent, those of F32 even and
 * odd elements apart, so that an addition need not wait for the one before it. No sum overflows
 * within a block of STATS_BLOCK. F16, BF16 and elements of at most 8 bits are counted by their
 * bits. */

#define STATS_BLOCK 65536

typedef struct float_layout {
    sft_dtype dtype;
    unsigned bits, mantissa;
    int bias;
} float_layout;

static const float_layout layout_f16 = { SFT_F16, 16, 10, 15 },
                          layout_bf16 = { SFT_BF16, 16, 7, 127 },
                          layout_f32 = { SFT_F32, 32, 23, 127 },
                          layout_f64 = { SFT_F64, 64, 52, 1023 };

static void note_extremes(sfti_sums *sums, uint64_t least, uint64_t greatest) {
    if (least < sums->least) sums->least = least;
    if (greatest > sums->greatest) sums->greatest = greatest;
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

static void f32_bins(uint64_t *bins, const uint8_t *in, size_t count) {
    const uint32_t one = UINT32_C(1) << 23;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = sfti_get_u32(in + 4 * i);
        uint32_t whole = (bits & (one - 1)) | ((bits & 0x7FFFFFFF) >= one ? one : 0);
        uint64_t *bin = bins + 4 * (size_t)(bits >> 23) + 2 * (i & 1);
        bin[0] += whole;
        bin[1] += (uint64_t)whole * whole;
    }
}

/* Least and greatest of the finite values, as bits, and how many are zero. */
typedef struct float_found {
    bool any;
    uint32_t least, greatest;
    uint64_t zeros;
} float_found;

/* A loop without branches, which compilers vectorise. Bits with those of a negative number turned
 * over compare as signed integers; so they are turned back. */
static float_found f32_extremes(const uint8_t *in, size_t count) {
    const uint32_t all = 0x7FFFFFFF, top = 0x7F800000;
    int32_t least = INT32_MAX, greatest = INT32_MIN;
    uint32_t any = 0, zeros = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = sfti_get_u32(in + 4 * i), size = bits & all;
        uint32_t minus = 0 - (bits >> 31), finite = 0 - (uint32_t)(size < top);
        uint32_t key = bits ^ minus >> 1;
        int32_t low = (int32_t)((key & finite) | (all & ~finite));
        int32_t high = (int32_t)((key & finite) | (~all & ~finite));
        least = low < least ? low : least;
        greatest = high > greatest ? high : greatest;
        any |= finite;
        zeros += size == 0;
    }
    uint32_t low = (uint32_t)least, high = (uint32_t)greatest;
    return (float_found){ any != 0, low >> 31 ? low ^ all : low, high >> 31 ? high ^ all : high,
                          zeros };
}

static void count_specials(sfti_sums *sums, const float_layout *layout, const uint8_t *in,
                           size_t count) {
    uint64_t magnitudes = UINT64_MAX >> (65 - layout->bits);
    uint64_t infinity = magnitudes >> layout->mantissa << layout->mantissa;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = sfti_element_bits(layout->dtype, in, i) & magnitudes;
        sums->nan += bits > infinity;
        sums->inf += bits == infinity;
    }
}

/* Empties the bins into the sums. */
static void bins_take(sfti_sums *sums, uint64_t *bins, const float_layout *layout) {
    unsigned entries = 1u << (layout->bits - layout->mantissa);
    for (unsigned at = 0; at < entries; at++) {
        uint64_t *bin = bins + 4 * at;
        uint64_t sum[2] = { bin[0] + bin[2], 0 }, square[2] = { bin[1] + bin[3], 0 };
        square[1] = square[0] < bin[1];
        bin_take(sums, layout, at, sum, square);
    }
    memset(bins, 0, 4 * (size_t)entries * sizeof *bins);
}

static void f32_block(sfti_sums *sums, sfti_bins *bins, const uint8_t *in, size_t count) {
    float_found found = f32_extremes(in, count);
    const uint64_t *plus = bins->bin + 4 * 0xFF, *minus = bins->bin + 4 * 0x1FF;
    const sfti_float_form *form = sfti_float_form_of(SFT_F32);
    f32_bins(bins->bin, in, count);
    if (plus[0] | plus[2] | minus[0] | minus[2]) count_specials(sums, &layout_f32, in, count);
    bins_take(sums, bins->bin, &layout_f32);
    sums->zeros += found.zeros;
    if (found.any)
        note_extremes(sums, sfti_double_key(sfti_float_value(form, found.least)),
                      sfti_double_key(sfti_float_value(form, found.greatest)));
}

/* ── F16 and BF16: counted by their bits ── */

#define WORDS_FEW 4096 /* fewer are not worth a walk over all counts */
#define WORDS_STEP 512

/* As F32, which has their values. */
static void few_words(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype, const uint8_t *in,
                      size_t count) {
    double values[WORDS_STEP];
    uint8_t floats[4 * WORDS_STEP];
    for (size_t at = 0; at < count; at += WORDS_STEP) {
        size_t part = count - at < WORDS_STEP ? count - at : WORDS_STEP;
        sfti_to_doubles(dtype, in, at, part, values);
        for (size_t i = 0; i < part; i++) {
            float value = (float)values[i];
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            sfti_put_u32(floats + 4 * i, bits);
        }
        f32_block(sums, bins, floats, part);
    }
}

static void word_counts_take(sfti_sums *sums, sfti_bins *bins, const float_layout *layout) {
    const sfti_float_form *form = sfti_float_form_of(layout->dtype);
    uint32_t one = UINT32_C(1) << layout->mantissa, infinity = 0x7FFF & ~(one - 1);
    if (!bins->counted) return;
    for (uint32_t code = 0; code < SFTI_WORDS; code++) {
        uint64_t count = bins->words[code];
        uint32_t size = code & 0x7FFF, whole = (size & (one - 1)) | (size >= one ? one : 0);
        uint64_t *bin = bins->bin + 4 * (size_t)(code >> layout->mantissa);
        if (count == 0) continue;
        if (size > infinity) sums->nan += count;
        if (size == infinity) sums->inf += count;
        if (size >= infinity) continue;
        if (size == 0) sums->zeros += count;
        bin[0] += count * whole;
        bin[1] += count * whole * whole;
        uint64_t key = sfti_double_key(sfti_float_value(form, code));
        note_extremes(sums, key, key);
    }
    bins_take(sums, bins->bin, layout);
    memset(bins->words, 0, sizeof bins->words);
    bins->counted = false;
}

/* ── F64: sums of two words ── */

static void add_two(uint64_t to[2], uint64_t low, uint64_t high) {
    to[0] += low;
    to[1] += high + (to[0] < low);
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
        uint64_t key = bits >> 63 ? ~bits : bits ^ SFTI_SUMS_SIGN;
        note_extremes(sums, key, key);
        uint64_t high = whole >> 32, low = whole & UINT32_MAX, cross = high * low;
        square[0] = low * low;
        square[1] = high * high;
        add_two(square, cross << 33, cross >> 31);
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
    uint64_t bits, key = sfti_double_key(value);
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
                       : (value < 0 ? ~whole + 1 : whole) ^ SFTI_SUMS_SIGN;
        note_extremes(sums, key, key);
        sfti_wide_add(value < 0 ? &sums->minus : &sums->plus, SFTI_WIDE_POINT, whole * count);
        sfti_wide_add(&sums->squares, 2 * SFTI_WIDE_POINT, whole * whole * count);
        if (whole == 0) sums->zeros += count;
    } else if (value == 0) {
        sums->zeros += count;
        note_extremes(sums, SFTI_SUMS_SIGN, SFTI_SUMS_SIGN);
    } else {
        add_equal(sums, value, count);
    }
}

static void small_counts_take(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype) {
    unsigned bits = sft_dtype_describe(dtype)->bits;
    uint8_t codes[256];
    double values[256];
    for (unsigned i = 0; i < 256; i++) codes[i] = (uint8_t)i;
    sfti_to_doubles(bits == 8 ? dtype : SFT_U8, codes, 0, 256, values);
    for (unsigned i = 0; bits < 8 && i < 1u << bits; i++)
        values[i] = sfti_float_value(sfti_float_form_of(dtype), i);
    /* Counts of bytes as those of codes, in the first row: a byte may hold two of them. */
    uint32_t (*counts)[256] = bins->count;
    for (size_t i = 0; i < 256; i++) counts[0][i] += counts[1][i] + counts[2][i] + counts[3][i];
    if (bits == 4) {
        memset(counts[1], 0, sizeof counts[1]);
        for (size_t i = 0; i < 256; i++) {
            counts[1][i & 15] += counts[0][i];
            counts[1][i >> 4] += counts[0][i];
        }
        memcpy(counts[0], counts[1], sizeof counts[0]);
    }
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

static inline void int_block(sfti_sums *sums, sft_dtype dtype, uint64_t turn, const uint8_t *in,
                             size_t count) {
    int64_t least = INT64_MAX, greatest = INT64_MIN, plus = 0, all = 0;
    uint64_t zeros = 0;
    half_sums squares = { 0, 0 };
    for (size_t i = 0; i < count; i++) {
        int64_t value = dtype == SFT_I16   ? (int16_t)sfti_get_u16(in + 2 * i)
                        : dtype == SFT_U16 ? sfti_get_u16(in + 2 * i)
                                           : (int32_t)sfti_get_u32(in + 4 * i);
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

/* Elements of at most 8 bits are counted by the bytes that hold them, of six bits by their own. */
static void tally_small(sfti_bins *bins, sft_dtype dtype, const uint8_t *in, size_t count) {
    uint32_t (*counts)[256] = bins->count;
    unsigned bits = sft_dtype_describe(dtype)->bits;
    size_t bytes = bits == 6 ? 0 : count * bits / 8, i = 0;
    for (; i + 4 <= bytes; i += 4)
        for (size_t k = 0; k < 4; k++) counts[k][in[i + k]]++;
    for (; i < bytes; i++) counts[0][in[i]]++;
    for (i = 0; bits == 6 && i < count; i++) counts[0][sfti_element_bits(dtype, in, i)]++;
}

static void stats_block(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype, const uint8_t *in,
                        size_t count) {
    switch (dtype) {
    case SFT_F16:
    case SFT_BF16:
        if (count < WORDS_FEW) {
            few_words(sums, bins, dtype, in, count);
            break;
        }
        for (size_t i = 0; i < count; i++) bins->words[sfti_get_u16(in + 2 * i)]++;
        bins->counted = true;
        break;
    case SFT_F32: case SFT_C64: f32_block(sums, bins, in, count); break;
    case SFT_F64: f64_block(sums, bins, in, count); break;
    case SFT_I16: int_block(sums, SFT_I16, SFTI_SUMS_SIGN, in, count); break;
    case SFT_U16: int_block(sums, SFT_U16, 0, in, count); break;
    case SFT_I32: int_block(sums, SFT_I32, SFTI_SUMS_SIGN, in, count); break;
    case SFT_U32: u32_block(sums, in, count); break;
    case SFT_I64: i64_block(sums, SFTI_SUMS_SIGN, in, count); break;
    case SFT_U64: i64_block(sums, 0, in, count); break;
    default: tally_small(bins, dtype, in, count); break;
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

void sfti_sums_end(sfti_sums *sums, sfti_bins *bins, sft_dtype dtype) {
    if (dtype == SFT_F16) word_counts_take(sums, bins, &layout_f16);
    else if (dtype == SFT_BF16) word_counts_take(sums, bins, &layout_bf16);
    else if (sft_dtype_describe(dtype)->bits <= 8) small_counts_take(sums, bins, dtype);
}
