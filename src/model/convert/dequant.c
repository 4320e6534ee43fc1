/* Values of quantised tensors as F32. Tests: test_convert.c. */
#include "convert/dequant.h"

#include "base/endian.h"
#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define DEQUANT_PANEL ((uint64_t)4 << 20)
#define DEQUANT_STEP 512 /* elements converted at once */

/* Place of the n-th element of eight in a word of AWQ. */
static const uint8_t awq_place[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };

/* ── Memory ── */

/* An array of at least `bytes` bytes; its old contents are lost. */
static sft_code dequant_room(sfti_dequant *d, void *array, size_t *size, uint64_t bytes,
                             sft_error *err) {
    void **at = array;
    if (bytes <= *size) return SFT_OK;
    sfti_release(&d->alloc, *at, *size);
    *size = 0;
    *at = bytes <= SIZE_MAX / 2 ? sfti_take(&d->alloc, (size_t)bytes) : NULL;
    if (!*at) return sfti_fail_memory(err, bytes);
    *size = (size_t)bytes;
    return SFT_OK;
}

void sfti_dequant_begin(sfti_dequant *d, const sfti_quant *quant) {
    d->quant = quant;
    d->matrix = UINT64_MAX;
    d->panel_units = 0;
}

void sfti_dequant_end(sfti_dequant *d) {
    sft_allocator alloc = d->alloc;
    sfti_release(&alloc, d->scales, d->scales_size);
    sfti_release(&alloc, d->zeros, d->zeros_size);
    sfti_release(&alloc, d->group_of, d->group_of_size);
    sfti_release(&alloc, d->panel, d->panel_size);
    memset(d, 0, sizeof *d);
    d->alloc = alloc;
}

/* ── Scales and zero points ── */

/* count elements of a part from element `from` on, a multiple of 8 or of whole bytes, as F32. */
static sft_code part_floats(const sfti_quant_part *part, uint64_t from, uint64_t count, float *out,
                            sft_error *err) {
    uint8_t bytes[8 * DEQUANT_STEP];
    double values[DEQUANT_STEP];
    uint32_t bits = sft_dtype_describe(part->tensor->dtype)->bits;
    for (uint64_t done = 0; done < count; done += DEQUANT_STEP) {
        size_t step = count - done < DEQUANT_STEP ? (size_t)(count - done) : DEQUANT_STEP;
        uint64_t at = part->tensor->offset + (from + done) * bits / 8;
        sft_code code = sft_read_bytes(part->file, at, bytes, step * bits / 8, err);
        if (code) return code;
        sfti_to_doubles(part->tensor->dtype, bytes, 0, step, values);
        for (size_t i = 0; i < step; i++) out[done + i] = (float)values[i];
    }
    return SFT_OK;
}

/* MXFP4: of the next matrix. The bytes are powers of two. */
static sft_code load_powers(sfti_dequant *d, uint64_t matrix, sft_error *err) {
    const sfti_quant *q = d->quant;
    uint64_t count = q->groups * q->columns;
    sft_code code = dequant_room(d, &d->scales, &d->scales_size, count * sizeof(float), err);
    if (!code) code = part_floats(&q->scales, matrix * count, count, d->scales, err);
    for (uint64_t i = 0; !code && i < count; i++)
        d->scales[i] = (float)sfti_float_value(sfti_float_form_of(SFT_F8_E8M0),
                                               (uint64_t)d->scales[i]);
    return code;
}

/* Words [from, from + count) of a tensor of I32; count is at most DEQUANT_STEP. */
static sft_code part_words(const sfti_quant_part *part, uint64_t from, size_t count,
                           uint32_t *out, sft_error *err) {
    uint8_t bytes[4 * DEQUANT_STEP];
    sft_code code = sft_read_bytes(part->file, part->tensor->offset + 4 * from, bytes, 4 * count,
                                   err);
    for (size_t i = 0; !code && i < count; i++) out[i] = sfti_get_u32(bytes + 4 * i);
    return code;
}

/* Zero points, a byte each. */
static sft_code load_zeros(sfti_dequant *d, sft_error *err) {
    const sfti_quant *q = d->quant;
    uint64_t count = q->groups * (q->rows / q->per_word);
    uint32_t words[DEQUANT_STEP], mask = (UINT32_C(1) << q->bits) - 1;
    sft_code code = dequant_room(d, &d->zeros, &d->zeros_size, q->groups * q->rows, err);
    for (uint64_t done = 0; !code && done < count; done += DEQUANT_STEP) {
        size_t step = count - done < DEQUANT_STEP ? (size_t)(count - done) : DEQUANT_STEP;
        code = part_words(&q->zeros, done, step, words, err);
        for (size_t i = 0; !code && i < step * q->per_word; i++) {
            size_t k = i % q->per_word, place = q->kind == SFTI_QUANT_AWQ ? awq_place[k] : k;
            d->zeros[done * q->per_word + i] =
                (uint8_t)(words[i / q->per_word] >> (place * q->bits) & mask);
        }
    }
    return code;
}

/* g_idx: the group of each column. */
static sft_code load_order(sfti_dequant *d, sft_error *err) {
    const sfti_quant *q = d->quant;
    if (!q->order.tensor) return SFT_OK;
    sft_code code = dequant_room(d, &d->group_of, &d->group_of_size,
                                 q->columns * sizeof *d->group_of, err);
    for (uint64_t done = 0; !code && done < q->columns; done += DEQUANT_STEP) {
        uint64_t left = q->columns - done;
        size_t step = left < DEQUANT_STEP ? (size_t)left : DEQUANT_STEP;
        code = part_words(&q->order, done, step, d->group_of + done, err);
        for (size_t i = 0; !code && i < step; i++)
            if (d->group_of[done + i] >= q->groups)
                code = sfti_fail_tensor(err, SFT_CAST_DTYPE,
                                        q->order.tensor->offset + 4 * (done + i),
                                        q->order.tensor->name,
                                        "expected a group below %llu, found %lu",
                                        (unsigned long long)q->groups,
                                        (unsigned long)d->group_of[done + i]);
    }
    return code;
}

static sft_code load_matrix(sfti_dequant *d, uint64_t matrix, sft_error *err) {
    const sfti_quant *q = d->quant;
    sft_code code;
    if (d->matrix == matrix) return SFT_OK;
    d->panel_units = 0;
    if (q->kind == SFTI_QUANT_MXFP4) {
        code = load_powers(d, matrix, err);
    } else {
        const sft_tensor *s = q->scales.tensor;
        uint64_t count = 1;
        for (uint32_t k = 0; k < s->rank; k++) count *= s->shape[k];
        code = dequant_room(d, &d->scales, &d->scales_size, count * sizeof(float), err);
        if (!code) code = part_floats(&q->scales, 0, count, d->scales, err);
        if (!code && q->kind != SFTI_QUANT_SCALED) code = load_zeros(d, err);
        if (!code && q->kind != SFTI_QUANT_SCALED) code = load_order(d, err);
    }
    if (!code) d->matrix = matrix;
    return code;
}

/* ── Panels ── */

/* Brings in the units from `unit` on, as many as the panel holds. */
static sft_code load_panel(sfti_dequant *d, uint64_t unit, sft_error *err) {
    const sfti_quant *q = d->quant;
    uint64_t column = q->stored_rows * q->unit_bytes, units = DEQUANT_PANEL / (column + 1) + 1;
    if (d->panel_units && unit >= d->unit && unit - d->unit < d->panel_units) return SFT_OK;
    if (units > q->units - unit) units = q->units - unit;
    sft_code code = dequant_room(d, &d->panel, &d->panel_size, column * units, err);
    uint64_t run = units * q->unit_bytes, row = q->units * q->unit_bytes, runs = q->stored_rows;
    uint64_t at = q->packed.tensor->offset + d->matrix * q->stored_rows * row
                  + unit * q->unit_bytes;
    if (run == row) {
        run *= runs;
        runs = runs > 0;
    }
    d->panel_units = 0;
    for (uint64_t i = 0; !code && i < runs; i++)
        code = sft_read_bytes(q->packed.file, at + i * row, d->panel + i * run, (size_t)run, err);
    d->unit = unit;
    if (!code) d->panel_units = units;
    return code;
}

/* ── Values ── */

static void put_float(uint8_t *out, size_t i, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    sfti_put_u32(out + 4 * i, bits);
}

/* `count` values of a row of the result from `column` on, which the panel holds. */
static void mxfp4_row(const sfti_dequant *d, uint64_t row, uint64_t column, size_t count,
                      uint8_t *out) {
    const sfti_quant *q = d->quant;
    const sfti_float_form *form = sfti_float_form_of(SFT_F4);
    float values[16];
    for (unsigned i = 0; i < 16; i++) values[i] = (float)sfti_float_value(form, i);
    for (size_t i = 0; i < count; i++) {
        uint64_t k = column + i;
        uint8_t byte = d->panel[k * d->panel_units + (row / 2 - d->unit)];
        float scale = d->scales[k * q->groups + row / 32];
        put_float(out, i, values[byte >> (row % 2 * 4) & 15] * scale);
    }
}

static void words_row(const sfti_dequant *d, uint64_t row, uint64_t column, size_t count,
                      uint8_t *out) {
    const sfti_quant *q = d->quant;
    bool gptq = q->kind == SFTI_QUANT_GPTQ;
    uint64_t unit = (gptq ? row : row / 8) - d->unit, group_size = q->columns / q->groups;
    uint32_t mask = (UINT32_C(1) << q->bits) - 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t k = column + i, stored = gptq ? k / q->per_word : k;
        uint64_t group = q->order.tensor ? d->group_of[k] : k / group_size;
        uint64_t place = gptq ? k % q->per_word : awq_place[row % 8];
        uint32_t word = sfti_get_u32(d->panel + 4 * (stored * d->panel_units + unit));
        int32_t level = (int32_t)(word >> (place * q->bits) & mask);
        int32_t zero = (int32_t)d->zeros[group * q->rows + row] + gptq; /* stored less one */
        put_float(out, i, (float)(level - zero) * d->scales[group * q->rows + row]);
    }
}

/* row: over all matrices. */
static sft_code scaled_row(const sfti_dequant *d, uint64_t row, uint64_t column, size_t count,
                           uint8_t *out, sft_error *err) {
    const sfti_quant *q = d->quant;
    float values[DEQUANT_STEP];
    uint32_t rank = q->spec.rank;
    uint64_t place = 0, of = row, block = rank ? q->block[rank - 1] : 1; /* a row's first factor */
    uint64_t stride = rank ? (q->shape[rank - 1] + block - 1) / block : 1;
    for (uint32_t k = rank; k > 1; k--) {
        uint64_t dimension = q->shape[k - 2], shared = q->block[k - 2];
        place += of % dimension / shared * stride;
        of /= dimension;
        stride *= (dimension + shared - 1) / shared;
    }
    for (size_t done = 0; done < count; done += DEQUANT_STEP) {
        size_t step = count - done < DEQUANT_STEP ? count - done : DEQUANT_STEP;
        sft_code code = part_floats(&q->packed, row * q->columns + column + done, step, values,
                                    err);
        if (code) return code;
        for (size_t i = 0; i < step; i++)
            put_float(out, done + i, values[i] * d->scales[place + (column + done + i) / block]);
    }
    return SFT_OK;
}

sft_code sfti_dequant_read(sfti_dequant *d, uint64_t first, size_t count, uint8_t *out,
                           sft_error *err) {
    const sfti_quant *q = d->quant;
    for (size_t done = 0; done < count;) {
        uint64_t row = (first + done) / q->columns, column = (first + done) % q->columns;
        uint64_t left = q->columns - column;
        size_t part = count - done < left ? count - done : (size_t)left;
        bool scaled = q->kind == SFTI_QUANT_SCALED;
        sft_code code = load_matrix(d, scaled ? 0 : row / q->rows, err);
        if (scaled) {
            if (!code) code = scaled_row(d, row, column, part, out + 4 * done, err);
        } else if (!code) {
            uint64_t per_unit = q->kind == SFTI_QUANT_GPTQ ? 1 : q->kind == SFTI_QUANT_AWQ ? 8 : 2;
            row %= q->rows;
            code = load_panel(d, row / per_unit, err);
            if (!code && q->kind == SFTI_QUANT_MXFP4)
                mxfp4_row(d, row, column, part, out + 4 * done);
            else if (!code) words_row(d, row, column, part, out + 4 * done);
        }
        if (code) {
            if (err && err->tensor_len == SFT_NO_TENSOR)
                sfti_error_tensor(err, q->packed.tensor->name);
            return code;
        }
        done += part;
    }
    return SFT_OK;
}
