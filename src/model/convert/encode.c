/* Matrices into quantised parts, in units of some rows. Scales come from the greatest magnitude of
 * the values that share them, codes from values and scales. Tests: test_encode.c. */
#include "convert/encode.h"

#include "base/endian.h"
#include "base/error.h"
#include "quant/quant.h"

#include <string.h>

#define UNIT_VALUES ((uint64_t)32 << 10)
#define TILE_ROWS 128
#define CHUNK 512 /* a multiple of all blocks but those of whole rows */
#define F32_TOO_GREAT UINT32_C(0x7d000000) /* 2^123, 16 of which a rotation may add */
#define LEAST_SCALE 0x1p-126f  /* of which the reciprocal is finite */
#define LEAST_INT_SCALE 1e-30f /* comfy-kitchen's */

/* ── Shapes ── */

/* The scales of values that form blocks, and the factor that all of them share. */
static const sfti_layout_part *scale_part(const sfti_encoding *how, size_t k) {
    for (size_t i = 1; i < how->layout->count; i++)
        if (how->layout->parts[i].role == SFTI_PART_SCALE && k-- == 1)
            return &how->layout->parts[i];
    return NULL;
}

size_t sfti_encoded_parts(const sfti_encoding *how) { return scale_part(how, 2) ? 3 : 2; }

static uint32_t code_bits(const sfti_encoding *how) {
    const sfti_layout_part *codes = &how->layout->parts[0];
    return codes->bits ? codes->bits : sft_dtype_describe(how->codes)->bits;
}

static sft_dtype code_dtype(const sfti_encoding *how) {
    uint8_t as = how->layout->parts[0].as;
    return as < SFT_DTYPE_COUNT ? (sft_dtype)as : how->codes;
}

const char *sfti_encoded_begin(const sfti_encoding *how, uint64_t rows, uint64_t columns,
                               sfti_encoded *out) {
    uint64_t pad = how->layout->pad ? how->layout->pad : 1;
    *out = (sfti_encoded){ .rows = rows, .columns = columns };
    if (rows == 0 || columns == 0) return "without values";
    if (columns > SFTI_ENCODE_COLUMNS) return "of more than 524288 columns";
    if (rows > UINT64_MAX / SFTI_ENCODE_COLUMNS / 8) return "of too many rows";
    for (out->rotate = how->rotate; out->rotate > 0 && columns % out->rotate != 0;)
        out->rotate /= 4;
    if (how->rotate > 0 && out->rotate < 16) return "of columns that are no multiple of 16";
    if (pad == 1 && how->columns > 0 && how->columns < 128 && columns % how->columns != 0)
        return "of columns that are no multiple of a block";
    out->all_rows = (rows + pad - 1) / pad * pad;
    out->all_columns = (columns + pad - 1) / pad * pad;
    out->row_block = how->rows ? how->rows : out->all_rows;
    out->column_block = how->columns ? how->columns : out->all_columns;
    out->scale_rows = (out->all_rows + out->row_block - 1) / out->row_block;
    out->scale_columns = (out->all_columns + out->column_block - 1) / out->column_block;
    return NULL;
}

void sfti_encoded_spec(const sfti_encoding *how, const sfti_encoded *m, size_t k, sft_dtype *dtype,
                       uint64_t *shape, uint32_t *rank) {
    const sfti_layout_part *part = scale_part(how, k);
    *dtype = k == 0 ? how->codes : k == 1 ? how->scale : SFT_F32;
    *rank = 2;
    shape[0] = k == 0 ? m->all_rows : m->scale_rows;
    shape[1] = m->scale_columns;
    if (k == 0) shape[1] = m->all_columns * code_bits(how) / sft_dtype_describe(how->codes)->bits;
    if (k == 1 && part->tiled) {
        shape[0] = (m->scale_rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
        shape[1] = (m->scale_columns + 3) / 4 * 4;
    }
    bool single = k == 2 || (k == 1 && how->rows == 0 && how->columns == 0);
    if (single) shape[0] = 1;
    if (single) *rank = how->listed;
    if (k == 1 && how->columns == 0 && how->rows == 1 && how->flat) *rank = 1;
}

/* ── Memory ── */

void sfti_encoder_begin(sfti_encoder *e, const sfti_encoding *how, sfti_encoded *matrix,
                        sft_span name, const sft_source *source, uint64_t begin) {
    sfti_cast_kernels kernels;
    e->loops = sfti_encode_loops_best();
    if (e->how != how) {
        sft_dtype codes = code_dtype(how);
        sfti_cast_kernels_fill(&kernels, 0);
        if (codes != SFT_I8) sfti_cast_begin(&e->cast, &kernels, SFT_F32, codes, true);
    }
    e->how = how;
    e->matrix = matrix;
    e->name = name;
    e->source = source;
    e->begin = begin;
    e->round = NULL;
    e->has_unit = e->has_numbers = false;
}

static sft_code encoder_room(sfti_encoder *e, void *array, size_t *size, uint64_t bytes,
                             sft_error *err) {
    void **at = array;
    if (bytes <= *size) return SFT_OK;
    sfti_release(&e->alloc, *at, *size);
    *size = 0;
    *at = bytes <= SIZE_MAX / 2 ? sfti_take(&e->alloc, (size_t)bytes) : NULL;
    if (!*at) return sfti_fail_memory(err, bytes);
    *size = (size_t)bytes;
    return SFT_OK;
}

void sfti_encoder_end(sfti_encoder *e) {
    sft_allocator alloc = e->alloc;
    sfti_release(&alloc, e->values, e->values_size);
    sfti_release(&alloc, e->numbers, e->numbers_size);
    sfti_release(&alloc, e->line, e->line_size);
    sfti_release(&alloc, e->out, e->out_size);
    memset(e, 0, sizeof *e);
    e->alloc = alloc;
}

/* ── Values ── */

static float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* About the first value that cannot be quantised of rows that are in memory. */
static sft_code refuse_value(const sfti_encoder *e, uint64_t row, sft_error *err) {
    size_t columns = (size_t)e->matrix->columns, all = (size_t)e->matrix->all_columns, i = 0;
    while (e->loops->greatest(e->values + i / columns * all + i % columns, 1) < F32_TOO_GREAT) i++;
    float value = e->values[i / columns * all + i % columns];
    sfti_fail_tensor(err, SFT_CAST_VALUE, SFT_NO_OFFSET, e->name,
                     "expected magnitudes below 2^123 to quantise, found %s in element %llu",
                     value != value ? "NaN" : value - value != 0 ? "an infinity" : "a greater one",
                     (unsigned long long)(row * columns + i));
    sfti_hint(err, SFT_HINT_NONE);
    return SFT_CAST_VALUE;
}

sft_code sfti_encoded_lost(sft_span name, sft_error *err) {
    sfti_fail_tensor(err, SFT_CAST_VALUE, SFT_NO_OFFSET, name,
                     "expected magnitudes that the codes can tell from 0, found only smaller ones");
    sfti_hint(err, SFT_HINT_NONE);
    return SFT_CAST_VALUE;
}

/* Brings in `count` rows from `row` on, padded. */
static sft_code read_rows(sfti_encoder *e, uint64_t row, uint64_t count, sft_error *err) {
    const sfti_encoded *m = e->matrix;
    size_t columns = (size_t)m->columns, all = (size_t)m->all_columns;
    uint64_t have = row >= m->rows ? 0 : m->rows - row < count ? m->rows - row : count;
    sft_code code = encoder_room(e, &e->values, &e->values_size, count * all * sizeof(float), err);
    if (code) return code;
    for (uint64_t i = 0; i < have;) {
        uint64_t rows = columns == all ? have : 1;
        size_t bytes = (size_t)rows * columns * 4, got = 0;
        uint8_t *at = (uint8_t *)(e->values + (size_t)i * all);
        uint64_t from = e->begin + (row + i) * columns * 4;
        for (size_t done = 0; done < bytes; done += got) {
            code = sft_source_read(e->source, from + done, at + done, bytes - done, &got, err);
            if (code) return code;
            if (got == 0)
                return sfti_fail_tensor(err, SFT_IO_SHRUNK, SFT_NO_OFFSET, e->name,
                                        "expected all bytes of a tensor, found its end");
        }
        for (size_t k = 0; k < bytes / 4 && !sfti_is_little(); k++) {
            float value = as_float(sfti_get_u32(at + 4 * k));
            memcpy(at + 4 * k, &value, sizeof value);
        }
        for (size_t k = columns; k < all; k++) e->values[(size_t)i * all + k] = 0;
        i += rows;
    }
    memset(e->values + (size_t)have * all, 0, (size_t)(count - have) * all * sizeof(float));
    return SFT_OK;
}

/* The same, none of them too great, and rotated. */
static sft_code load_rows(sfti_encoder *e, uint64_t row, uint64_t count, sft_error *err) {
    sfti_encoded *m = e->matrix;
    size_t values = (size_t)(count * m->all_columns);
    sft_code code = read_rows(e, row, count, err);
    if (code) return code;
    if (row + count > m->checked && e->loops->greatest(e->values, values) >= F32_TOO_GREAT)
        return refuse_value(e, row, err);
    if (row <= m->checked && row + count > m->checked) m->checked = row + count;
    if (m->rotate) sfti_quant_rotate(e->values, values, m->rotate);
    return SFT_OK;
}

/* Rows of a unit of codes: of one row of blocks only. */
static uint64_t unit_rows(const sfti_encoder *e) {
    uint64_t rows = UNIT_VALUES / e->matrix->all_columns, power = 1;
    if (e->how->rows <= 1) return rows ? rows : 1;
    while (power * 2 <= rows && power < e->how->rows) power *= 2;
    return power;
}

/* Raises the numbers of blocks to the greatest magnitudes that a row has there. */
static void raise_numbers(sfti_encoder *e, const float *values) {
    e->loops->magnitudes(values, (size_t)e->matrix->all_columns, (size_t)e->matrix->column_block,
                         e->numbers);
}

static void clear_numbers(sfti_encoder *e) {
    for (size_t b = 0; b < (size_t)e->matrix->scale_columns; b++) e->numbers[b] = 0;
}

/* The greatest magnitude of all. */
static sft_code find_most(sfti_encoder *e, sft_error *err) {
    sfti_encoded *m = e->matrix;
    uint64_t some = unit_rows(e);
    uint32_t most = 0;
    sft_code code = SFT_OK;
    if (m->measured) return SFT_OK;
    for (uint64_t row = 0; !code && row < m->rows; row += some) {
        code = read_rows(e, row, some, err);
        uint32_t one = code ? 0 : e->loops->greatest(e->values, (size_t)(some * m->all_columns));
        if (one >= F32_TOO_GREAT) code = refuse_value(e, row, err);
        if (one > most) most = one;
    }
    if (code) return code;
    m->most = as_float(most);
    m->measured = true;
    m->checked = m->all_rows;
    return SFT_OK;
}

/* The greatest magnitudes in a row of blocks. */
static sft_code load_magnitudes(sfti_encoder *e, uint64_t block_row, sft_error *err) {
    const sfti_encoded *m = e->matrix;
    uint64_t row = block_row * m->row_block, end = row + m->row_block, some = unit_rows(e);
    sft_code code = SFT_OK;
    if (e->has_numbers && e->block_row == block_row) return SFT_OK;
    e->has_numbers = false;
    if (m->scale_rows == 1 && m->scale_columns == 1) {
        code = find_most(e, err);
        e->numbers[0] = m->most;
    } else {
        clear_numbers(e);
        if (end > m->rows) end = m->rows;
        for (; !code && row < end; row += some) {
            if (some > end - row) some = end - row;
            code = load_rows(e, row, some, err);
            for (size_t i = 0; !code && i < (size_t)some; i++)
                raise_numbers(e, e->values + i * (size_t)m->all_columns);
        }
    }
    e->block_row = block_row;
    e->has_numbers = !code;
    return code;
}

/* ── Scales ── */

/* Whether scales are powers of two. */
static bool has_exponents(const sfti_encoding *how) {
    uint8_t as = scale_part(how, 1)->as;
    return (as < SFT_DTYPE_COUNT ? (sft_dtype)as : how->scale) == SFT_F8_E8M0;
}

static float greatest_code(const sfti_encoding *how) {
    sft_dtype codes = code_dtype(how);
    return codes == SFT_I8 ? 127 : codes == SFT_F4 ? 6 : codes == SFT_F8_E5M2 ? 57344 : 448;
}

/* The exponent of the least power of two that is no less, plus 127, as the logarithm rounded to F32
 * tells it. A power of two that is greater by rounding's error alone counts as such. */
static uint32_t exponent_of(float value) {
    uint32_t bits, steps = 0;
    memcpy(&bits, &value, sizeof bits);
    uint32_t exponent = bits >> 23, rest = bits & 0x7fffff;
    uint32_t log = exponent > 127 ? exponent - 127 : 127 - exponent;
    uint32_t below = exponent < 127 && log > 0 ? log - 1 : log; /* where the logarithm lies */
    while (below >> (steps + 1)) steps++;
    /* Half a step of F32 there is 2^(steps - 24), and log2(1 + r) nearly r / ln 2. */
    double near = log == 0 ? 0 : 0.6931471805599453 * (double)(1u << steps) / 2;
    return exponent + ((double)rest > near);
}

/* The factor that all values share, beside those of blocks. */
static float whole_factor(const sfti_encoding *how, float most) {
    float limit = 448.0f * greatest_code(how);
    if (most == 0) return 1;
    if (scale_part(how, 2)->divides) {
        float factor = limit / most;
        return factor < 0x1p126f ? factor : 0x1p126f;
    }
    float factor = most / limit;
    return factor > LEAST_SCALE ? factor : LEAST_SCALE;
}

/* For each block, in e->numbers, the factor that its codes are multiplied by, 0 if they are all
 * zero; stored (or NULL): the numbers as they are stored. */
static void find_factors(sfti_encoder *e, uint8_t *stored) {
    const sfti_encoding *how = e->how;
    float limit = greatest_code(how);
    bool paired = scale_part(how, 2) != NULL, divides = paired && scale_part(how, 2)->divides;
    float whole = paired ? whole_factor(how, e->matrix->most) : 1;
    size_t count = (size_t)e->matrix->scale_columns, len;
    for (size_t b = 0; paired && b < count; b += len) {
        uint8_t codes[CHUNK];
        len = count - b < CHUNK ? count - b : CHUNK;
        e->loops->pairs(e->numbers + b, len, limit, whole, divides, codes, e->factors + b);
        if (stored) memcpy(stored + b, codes, len);
    }
    for (size_t b = 0; !paired && b < count; b++) {
        float most = e->numbers[b], scale = most / limit;
        if (has_exponents(how)) {
            uint32_t exponent = most == 0 ? 0 : exponent_of(scale);
            if (most > 0 && exponent == 0) exponent = 1; /* 0 is zero for some readers */
            e->factors[b] = most == 0 ? 0 : as_float(exponent << 23);
            if (stored) stored[b] = (uint8_t)exponent;
        } else {
            uint32_t bits;
            if (code_dtype(how) == SFT_I8) scale = scale > LEAST_INT_SCALE ? scale
                                                                         : LEAST_INT_SCALE;
            else if (most == 0) scale = 1;
            else if (scale < LEAST_SCALE) scale = LEAST_SCALE;
            e->factors[b] = scale;
            memcpy(&bits, &scale, sizeof bits);
            if (stored) sfti_put_u32(stored + 4 * b, bits);
        }
    }
}

/* ── Codes ── */

/* Codes of a row whose factors are known, a chunk at a time that stays in a core's cache. */
static void encode_row(sfti_encoder *e, uint64_t row, const float *values, uint8_t *out) {
    const sfti_encoding *how = e->how;
    sfti_encoded *m = e->matrix;
    sft_dtype dtype = code_dtype(how);
    uint32_t bits = code_bits(how);
    size_t all = (size_t)m->all_columns, block = (size_t)m->column_block, len;
    float scaled[CHUNK], decoded[CHUNK];
    bool counts = row == m->counted && !e->round;
    m->counted += counts;
    for (size_t at = 0; at < all; at += len) {
        size_t first = at / block, left = (first + 1) * block - at; /* of a block */
        len = all - at < CHUNK ? all - at : CHUNK;
        if (CHUNK % block != 0 && left < len) len = left;
        size_t blocks = (len + block - 1) / block;
        uint8_t *codes = out + at * bits / 8, bytes[4 * CHUNK];
        const uint8_t *in = (const uint8_t *)scaled;
        e->loops->scale(values + at, len, block, e->factors + first, how->reciprocal, scaled);
        if (e->round) e->round(e->round_ctx, row * all + at, scaled, len);
        for (size_t i = 0; dtype != SFT_I8 && i < len && !sfti_is_little(); i++) {
            uint32_t word; /* which casts take in little-endian order */
            memcpy(&word, &scaled[i], sizeof word);
            sfti_put_u32(bytes + 4 * i, word);
            in = bytes;
        }
        if (dtype == SFT_I8) e->loops->to_int8(scaled, len, codes);
        else if (dtype == SFT_F4) e->loops->to_f4(scaled, len, codes);
        else (void)sfti_cast_run(&e->cast, in, codes, len, NULL); /* all are finite */
        if (!counts) continue;
        const float *factors = e->factors + first;
        float own[CHUNK];
        e->loops->decode(dtype, codes, len, decoded);
        for (size_t b = 0; b < blocks; b++) {
            own[b] = factors[b];
            if (own[b] != 0 || e->numbers[first + b] == 0) continue;
            own[b] = e->numbers[first + b]; /* of values that no code is left for */
            size_t end = (b + 1) * block < len ? (b + 1) * block : len;
            for (size_t i = b * block; i < end; i++) scaled[i] = values[at + i] / own[b];
        }
        double sums[2] = { 0, 0 }; /* of at most CHUNK values */
        e->loops->squares(scaled, decoded, len, block, own, sums);
        m->error += sums[0];
        m->power += sums[1];
    }
    bool swaps = bits == 4 && how->layout->parts[0].high;
    for (size_t i = 0; swaps && i < all / 2; i++) out[i] = (uint8_t)(out[i] << 4 | out[i] >> 4);
}

/* ── Units ── */

/* Rows of codes from `row` on. */
static sft_code make_codes(sfti_encoder *e, uint64_t row, uint64_t count, sft_error *err) {
    sfti_encoded *m = e->matrix;
    size_t all = (size_t)m->all_columns, line = all * code_bits(e->how) / 8;
    bool own = e->how->rows == 1; /* factors, which come from the same values */
    sft_code code = own ? SFT_OK : load_magnitudes(e, row / m->row_block, err);
    if (!code && !own) find_factors(e, NULL);
    if (!code) code = load_rows(e, row, count, err);
    for (size_t i = 0; !code && i < (size_t)count; i++) {
        const float *values = e->values + i * all;
        if (own) {
            clear_numbers(e);
            raise_numbers(e, values);
            find_factors(e, NULL);
        }
        encode_row(e, row + i, values, e->out + i * line);
    }
    bool lost = m->counted == m->all_rows && m->power > 0 && m->error >= m->power;
    return !code && lost ? sfti_encoded_lost(e->name, err) : code;
}

/* Scales of rows from `row` on, each of which has its own, in rows or in tiles of 128 rows: row
 * 32 a + b of a tile has its four at 16 b + 4 a. */
static sft_code make_scales(sfti_encoder *e, uint64_t row, uint64_t count, bool tiled,
                            sft_error *err) {
    const sfti_encoded *m = e->matrix;
    size_t all = (size_t)m->all_columns, numbers = (size_t)m->scale_columns;
    size_t size = sft_dtype_describe(e->how->scale)->bits / 8;
    uint8_t *stored = e->line;
    uint64_t some = unit_rows(e);
    sft_code code = SFT_OK;
    for (uint64_t done = 0; !code && done < count; done += some) {
        if (some > count - done) some = count - done;
        code = load_rows(e, row + done, some, err);
        for (size_t i = 0; !code && i < (size_t)some; i++) {
            size_t at = (size_t)done + i;
            clear_numbers(e);
            raise_numbers(e, e->values + i * all);
            find_factors(e, tiled ? stored : e->out + at * numbers * size);
            for (size_t c = 0; tiled && c < numbers; c++)
                e->out[c / 4 * 512 + at % 32 * 16 + at / 32 * 4 + c % 4] = stored[c];
        }
    }
    return code;
}

/* Rows of a unit of part k. */
static uint64_t rows_of_unit(const sfti_encoder *e, size_t k) {
    if (k == 0) return unit_rows(e);
    if (k == 2 || e->how->rows != 1) return k == 2 ? e->matrix->all_rows : e->matrix->row_block;
    return scale_part(e->how, 1)->tiled ? TILE_ROWS : unit_rows(e);
}

/* Bytes of a unit of that many rows of part k. */
static uint64_t bytes_of_unit(const sfti_encoder *e, size_t k, uint64_t rows) {
    const sfti_encoded *m = e->matrix;
    uint64_t numbers = m->scale_columns * (sft_dtype_describe(e->how->scale)->bits / 8);
    if (k == 0) return rows * (m->all_columns * code_bits(e->how) / 8);
    if (k == 2 || e->how->rows != 1) return k == 2 ? 4 : numbers;
    return scale_part(e->how, 1)->tiled ? (m->scale_columns + 3) / 4 * 512 : rows * numbers;
}

static sft_code make_unit(sfti_encoder *e, size_t k, uint64_t unit, sft_error *err) {
    const sfti_encoding *how = e->how;
    const sfti_encoded *m = e->matrix;
    uint64_t rows = rows_of_unit(e, k), row = unit * rows;
    if (rows > m->all_rows - row) rows = m->all_rows - row;
    e->has_unit = false;
    e->unit_bytes = bytes_of_unit(e, k, rows);
    sft_code code = encoder_room(e, &e->out, &e->out_size, e->unit_bytes, err);
    if (!code)
        code = encoder_room(e, &e->line, &e->line_size, m->scale_columns * sizeof(float), err);
    if (!code)
        code = encoder_room(e, &e->numbers, &e->numbers_size,
                            2 * m->scale_columns * sizeof(float), err);
    if (!code) e->factors = e->numbers + m->scale_columns;
    if (!code && sfti_encoded_parts(how) == 3) code = find_most(e, err);
    if (code) return code;
    if (k == 0) {
        code = make_codes(e, row, rows, err);
    } else if (k == 2) {
        uint32_t bits;
        float factor = whole_factor(how, m->most);
        memcpy(&bits, &factor, sizeof bits);
        sfti_put_u32(e->out, bits);
    } else if (how->rows != 1) {
        code = load_magnitudes(e, unit, err);
        if (!code) find_factors(e, e->out);
    } else {
        if (scale_part(how, 1)->tiled) memset(e->out, 0, (size_t)e->unit_bytes);
        code = make_scales(e, row, rows, scale_part(how, 1)->tiled, err);
    }
    e->part = k;
    e->unit = unit;
    e->has_unit = !code;
    return code;
}

sft_code sfti_encoder_read(sfti_encoder *e, size_t k, uint64_t offset, uint8_t *into, size_t len,
                           sft_error *err) {
    uint64_t whole = bytes_of_unit(e, k, rows_of_unit(e, k));
    for (size_t done = 0; done < len;) {
        uint64_t unit = (offset + done) / whole, skip = (offset + done) % whole;
        if (!e->has_unit || e->part != k || e->unit != unit) {
            sft_code code = make_unit(e, k, unit, err);
            if (code) return code;
        }
        uint64_t left = e->unit_bytes - skip;
        size_t some = len - done < left ? len - done : (size_t)left;
        memcpy(into + done, e->out + skip, some);
        done += some;
    }
    return SFT_OK;
}
