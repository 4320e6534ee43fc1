/* The shapes of the tensors of a layout. Tests: test_quant.c. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/number.h"
#include "quant/fit.h"

#include <string.h>

#define CUT_BLOCK 128 /* DeepSeek's, where the last block of a dimension may be cut */

/* The number of the tensor of one of the names, or NONE. */
uint32_t sfti_quant_named(const sfti_quant_search *search, sft_span names, sft_span stem) {
    char buffer[SFTI_PART_NAME];
    sft_span pattern;
    while (sfti_layout_word(&names, '|', &pattern)) {
        sft_span name = sfti_layout_name(pattern, stem, buffer);
        uint32_t found = name.len ? sfti_names_find(&search->names, name) : NONE;
        if (found != NONE) return found;
    }
    return NONE;
}

/* ── Failures ── */

static void dimensions_text(const uint64_t *shape, uint32_t rank, char out[96]) {
    size_t len = 0;
    uint32_t d = 0;
    out[len++] = '[';
    for (; d < rank && len < 64; d++) {
        char digits[SFTI_UINT_SIZE];
        size_t more = sfti_uint_text(shape[d], 0, digits);
        if (d > 0) out[len++] = ',';
        memcpy(out + len, digits, more);
        len += more;
    }
    if (d < rank) memcpy(out + len, ",...", 4), len += 4;
    out[len++] = ']';
    out[len] = 0;
}

sft_code sfti_fit_shape(const sft_tensor *tensor, const uint64_t *expected, uint32_t rank,
                           sft_error *err) {
    char wanted[96], found[96];
    dimensions_text(expected, rank, wanted);
    dimensions_text(tensor->shape, tensor->rank, found);
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                            "expected the shape %s, found %s", wanted, found);
}

sft_code sfti_fit_fail(const sft_tensor *tensor, const char *expected, const char *found,
                           sft_error *err) {
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                            "expected %s, found %s", expected, found);
}

/* ── Shapes ── */

const sft_tensor *sfti_fit_tensor(const sfti_quant_fit *f, size_t k) {
    uint32_t at = f->match->at[k];
    return at == NONE ? NULL : sft_set_tensor_at(f->search->set, at);
}

const sft_file *sfti_fit_file(const sfti_quant_fit *f, size_t k) {
    return sft_set_shard_at(f->search->set,
                            sft_set_tensor_shard(f->search->set, f->match->at[k]));
}

/* The first part of that role, or NULL. */
const sft_tensor *sfti_fit_role(const sfti_quant_fit *f, uint8_t role, const sft_file **file) {
    for (size_t k = 0; k < f->match->layout->count; k++)
        if (f->match->layout->parts[k].role == role && sfti_fit_tensor(f, k)) {
            if (file) *file = sfti_fit_file(f, k);
            return sfti_fit_tensor(f, k);
        }
    return NULL;
}

/* How many elements of a dimension share a number if there are `numbers`; 0: no such layout, or
 * blocks of equal size and those of a power of two, the last one cut, have as many. cut: the
 * latter are meant. */
static uint64_t block_of(uint64_t dimension, uint64_t numbers, uint64_t told, bool strict,
                         bool cut) {
    if (told && sfti_divide_up(dimension, told) == numbers) return told;
    if (told && strict) return 0;
    if (numbers == dimension || numbers == 0) return numbers > 0;
    if (numbers == 1) return dimension;
    if ((dimension - 1) / CUT_BLOCK + 1 == numbers && (cut || dimension % numbers))
        return CUT_BLOCK;
    uint64_t block = dimension / numbers, power = 1;
    while (power < block) power *= 2;
    bool alone = power == block || (dimension - 1) / power + 1 != numbers;
    return dimension % numbers == 0 && alone ? block : 0;
}

/* Two integers of I64 or I32, as compressed-tensors stores a shape. */
sft_code sfti_fit_told_shape(const sfti_quant_fit *f, uint64_t shape[2], sft_error *err) {
    const sft_file *file;
    const sft_tensor *tensor = sfti_fit_role(f, SFTI_PART_SHAPE, &file);
    uint8_t bytes[16];
    if (tensor->rank != 1 || tensor->shape[0] != 2
        || (tensor->dtype != SFT_I64 && tensor->dtype != SFT_I32))
        return sfti_fit_fail(tensor, "two integers for a shape", "another tensor", err);
    size_t size = sfti_tensor_bits(tensor) / 8;
    sft_code code = sft_read_bytes(file, tensor->offset, bytes, 2 * size, err);
    for (size_t i = 0; !code && i < 2; i++)
        shape[i] = size == 8 ? sfti_get_u64(bytes + 8 * i) : sfti_get_u32(bytes + 4 * i);
    return code;
}

/* The number of bits of codes, where the layout does not say it. */
static sft_code find_bits(sfti_quant_fit *f, const uint64_t *told, uint32_t *bits, sft_error *err) {
    const sft_tensor *t = sfti_fit_tensor(f, 0), *zeros = sfti_fit_role(f, SFTI_PART_ZERO, NULL);
    const sfti_layout_part *how = &f->match->layout->parts[0];
    uint64_t width = 0;
    if (told) {
        uint32_t fitting = 0, widths = f->search->declared->widths;
        for (uint32_t b = 1; b <= 8; b++)
            if ((!widths || widths >> b & 1) && told[1] <= UINT64_MAX / 8
                && sfti_divide_up(told[1] * b, 32) == f->inner)
                fitting |= 1u << b;
        if (fitting == 0 || (fitting & (fitting - 1)) != 0)
            return sfti_fit_fail(t, "a number of bits that its shape and a quantization_config "
                                 "tell", fitting ? "several" : "none", err);
        while (fitting >>= 1) width++;
    } else if (how->words) {
        bool fits = zeros && zeros->rank == 2 && f->inner > 0
                 && sfti_mul(zeros->shape[1], 32, &width) && width % f->inner == 0;
        width = fits ? width / f->inner : 0;
    } else {
        sft_span layer = t->name;
        while (layer.len > 0 && layer.data[layer.len - 1] != '.') layer.len--;
        if (layer.len > 0) layer.len--;
        const char *why = sfti_declared_mlx(f->search->declared, layer, f->search->arena, &width,
                                            &f->group);
        if (why) return sfti_fit_fail(t, "affine codes of 1 to 8 bits, as a configuration tells "
                                      "of its layer", why, err);
        uint64_t columns = f->inner <= UINT64_MAX / 32 && width ? f->inner * 32 / width : 0;
        if (f->group && (columns * width != f->inner * 32 || columns % f->group != 0))
            return sfti_fit_fail(t, "whole groups of columns, as MLX has them", "others", err);
        f->strict = true;
    }
    if (width < 1 || width > 8)
        return sfti_fit_fail(t, "1 to 8 bits a code", "another number", err);
    *bits = (uint32_t)width;
    return SFT_OK;
}

/* Whether rows are of 6 bits: the scales of groups of a known size are for as many. */
static bool is_split(const sfti_quant_fit *f) {
    const sfti_quant_layout *layout = f->match->layout;
    uint64_t values;
    if (!layout->parts[0].split || f->group % 16 != 0
        || sfti_fit_role(f, SFTI_PART_BOOK, NULL) || sfti_fit_role(f, SFTI_PART_ADD, NULL))
        return false;
    for (size_t k = 1; k < layout->count; k++) {
        const sft_tensor *t = sfti_fit_tensor(f, k);
        if (t && layout->parts[k].columns == SFTI_BLOCK_ANY)
            return t->rank == 2 && sfti_mul(t->shape[1], f->group, &values) && values > 0
                && values % 32 == 0 && f->inner == values / 4 * 3;
    }
    return false;
}

/* The shape of the values, and the matrices that they form. */
static sft_code fit_codes(sfti_quant_fit *f, sft_error *err) {
    const sfti_quant_layout *layout = f->match->layout;
    const sfti_layout_part *how = &layout->parts[0];
    const sft_tensor *t = sfti_fit_tensor(f, 0);
    sfti_quant *q = f->q;
    sfti_quant_part *codes = &q->parts[0];
    uint32_t rank = t->rank, unit = sfti_tensor_bits(t), bits = how->bits ? how->bits : 0;
    uint64_t told[2];
    bool has_shape = sfti_fit_role(f, SFTI_PART_SHAPE, NULL) != NULL;
    sft_code code = SFT_OK;
    if (rank > 0) memcpy(f->shape, t->shape, rank * sizeof *f->shape);
    if (how->joined) {
        if (rank < 3 || !sfti_mul(f->shape[rank - 2], f->shape[rank - 1], &f->shape[rank - 2]))
            return sfti_fit_fail(t, "at least three dimensions, below 2^64", "another shape", err);
        rank--;
    }
    if ((how->words || how->across || layout->rotate) && rank < 2)
        return sfti_fit_fail(t, "a matrix", "fewer dimensions", err);
    if ((layout->pad || has_shape || how->words) && rank != 2)
        return sfti_fit_fail(t, "a matrix", "another number of dimensions", err);
    f->outer = rank > 1 ? f->shape[rank - 2] : 1;
    f->inner = rank > 0 ? f->shape[rank - 1] : 1;
    if (has_shape) code = sfti_fit_told_shape(f, told, err);
    if (is_split(f)) bits = 6;
    if (!code && !bits && how->code == SFTI_CODE_DTYPE) bits = unit;
    if (!code && !bits) code = find_bits(f, has_shape ? told : NULL, &bits, err);
    if (code) return code;
    if (rank == 0 && bits != unit)
        return sfti_fit_fail(t, "at least one dimension for codes of fewer bits", "none", err);
    uint64_t packed = how->words ? f->outer : f->inner, all;
    if (!sfti_mul(packed, unit, &all))
        return sfti_fit_fail(t, "a shape below 2^64", "another", err);
    all /= bits;
    codes->bits = bits;
    codes->row_block = codes->column_block = 1;
    codes->lines = how->words ? f->inner : f->outer;
    codes->line_bytes = f->inner * unit / 8; /* which was opened */
    q->rows = how->words ? f->inner : how->across ? all : f->outer;
    q->columns = how->words || !how->across ? all : f->outer;
    codes->rows = q->rows;
    codes->columns = q->columns;
    if (has_shape) {
        if (told[0] != q->rows || told[1] > q->columns)
            return sfti_fit_shape(
                t, (uint64_t[]){ told[0], sfti_divide_up(told[1] * bits, unit) }, 2, err);
        q->columns = told[1];
    }
    if (rank > 1) f->shape[rank - 2] = q->rows;
    if (rank > 0) f->shape[rank - 1] = q->columns;
    q->matrices = 1;
    for (uint32_t d = 0; d + 2 < rank; d++) /* the header's product of more has no overflow */
        if (sfti_never(!sfti_mul(q->matrices, f->shape[d], &q->matrices)))
            return sfti_fit_fail(t, "a shape below 2^64", "another", err);
    codes->matrix_bytes = q->matrices > 1 ? (t->end - t->begin) / q->matrices : 0;
    q->spec.rank = rank;
    q->spec.shape = f->shape;
    return SFT_OK;
}

/* Rows and columns before they were padded: as they are declared, or as a bias has rows. */
static sft_code fit_padding(sfti_quant_fit *f, sft_error *err) {
    sfti_quant *q = f->q;
    uint32_t pad = f->match->layout->pad;
    const sft_tensor *t = sfti_fit_tensor(f, 0);
    uint32_t bias = sfti_quant_named(f->search, sft_span_cstr(".bias"), f->match->stem);
    uint64_t rows = q->rows, columns = q->columns, up;
    bool told = f->format && f->format->shape[0];
    if (told) {
        rows = f->format->shape[0];
        columns = f->format->shape[1];
        if (!pad && (q->spec.rank != 2 || rows != q->rows || columns != q->columns))
            return sfti_fit_shape(t, f->format->shape, 2, err);
    }
    if (!pad) return SFT_OK;
    if (bias != NONE) {
        const sft_tensor *b = sft_set_tensor_at(f->search->set, bias);
        if (told && (b->rank != 1 || b->shape[0] != rows)) return sfti_fit_shape(b, &rows, 1, err);
        if (b->rank == 1) rows = b->shape[0];
    }
    if (!sfti_align_up(rows, pad, &up) || (rows != q->rows && up != q->rows)
        || !sfti_align_up(columns, pad, &up) || (columns != q->columns && up != q->columns))
        return sfti_fit_shape(t, (uint64_t[]){ rows, columns }, 2, err);
    f->shape[q->spec.rank - 2] = q->rows = rows;
    f->shape[q->spec.rank - 1] = q->columns = columns;
    return SFT_OK;
}

static bool is_column(const sft_tensor *tensor) {
    for (uint32_t d = 1; d < tensor->rank; d++)
        if (tensor->shape[d] != 1) return false;
    return true;
}

/* One number a row of a tensor of more than two dimensions: its rows are those of the first. */
static void fit_first_rows(sfti_quant_fit *f, const sft_tensor *scale) {
    sfti_quant *q = f->q;
    const sft_tensor *t = sfti_fit_tensor(f, 0);
    bool rows = t->rank > 2 && scale->rank > 0 && scale->shape[0] == t->shape[0]
             && q->columns == t->shape[t->rank - 1] && is_column(scale);
    if (!rows || t->shape[0] == 0) return;
    sfti_quant_part *codes = &q->parts[0];
    q->columns *= q->matrices / t->shape[0] * q->rows;
    q->rows = t->shape[0];
    q->matrices = 1;
    f->first_rows = true;
    codes->matrix_bytes = 0;
    codes->rows = codes->lines = q->rows;
    codes->columns = q->columns;
    codes->line_bytes = (t->end - t->begin) / q->rows;
}

/* Whether one dimension has DeepSeek's blocks, and the other has not. */
static bool mixes_blocks(const sfti_quant_fit *f, const sft_tensor *t, const uint64_t numbers[2],
                         const uint64_t blocks[2]) {
    const uint64_t sizes[2] = { f->q->rows, f->q->columns };
    bool fits[2], tells = false;
    if (!sfti_name_ends(t->name, "_scale_inv") || f->search->declared->blocks[0]) return false;
    for (size_t d = 0; d < 2; d++) {
        fits[d] = numbers[d] == sfti_divide_up(sizes[d], CUT_BLOCK)
               && (blocks[d] == CUT_BLOCK || numbers[d] == 1);
        tells = tells || (fits[d] && numbers[d] > 1);
    }
    return tells && fits[0] != fits[1];
}

bool sfti_fit_width(const sfti_quant_part *codes, uint32_t widths) {
    uint32_t fitting = codes->how->wider ? (2u << codes->bits) - 1 : 1u << codes->bits;
    return !widths || (widths & fitting) != 0;
}

/* Whether codes have the kind and the bits that are declared. */
static sft_code check_told_codes(const sfti_quant_fit *f, sft_error *err) {
    const sfti_declared *d = f->search->declared;
    const sfti_quant_part *codes = &f->q->parts[0];
    if (!f->match->told || f->match->result.len) return SFT_OK;
    sft_dtype dtype = codes->how->as < SFT_DTYPE_COUNT ? (sft_dtype)codes->how->as
                                                       : codes->tensor->dtype;
    bool whole = codes->how->code != SFTI_CODE_DTYPE
              || sft_dtype_describe(dtype)->kind != SFT_KIND_FLOAT;
    if (d->kinds && !(d->kinds >> (whole ? SFT_KIND_INT : SFT_KIND_FLOAT) & 1))
        return sfti_fit_fail(codes->tensor, "codes of the type that the quantization_config tells",
                             whole ? "integers" : "floats", err);
    if (sfti_fit_width(codes, d->widths)) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, codes->tensor->name,
                            "expected codes of as many bits as the quantization_config tells, "
                            "found %u", codes->bits);
}

/* Whether there is a scale for each of what is declared to share one. */
static sft_code check_told_scale(const sfti_quant_fit *f, sft_error *err) {
    const sfti_declared *d = f->search->declared;
    const sfti_quant *q = f->q;
    const sfti_quant_part *scale = &q->parts[1];
    uint32_t shares = f->format && f->format->shares ? f->format->shares : d->shares;
    bool open = q->count > 1 && (f->format || scale->how->columns != SFTI_BLOCK_ALL
                                 || scale->how->rows == SFTI_BLOCK_ANY);
    if (!f->match->told || f->match->result.len || !open || !shares) return SFT_OK;
    const uint64_t blocks[][2] = { { q->rows, q->columns }, { 1, q->columns }, { 1, d->group },
                                   { d->blocks[0], d->blocks[1] } };
    uint64_t e[2] = { 0, 0 };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (!(shares >> i & 1)) continue;
        if (!blocks[i][0] || !blocks[i][1]) return SFT_OK; /* not told, or several */
        e[0] = sfti_divide_up(q->rows, blocks[i][0]);
        e[1] = sfti_divide_up(q->columns, blocks[i][1]);
        if (scale->rows == e[0] && scale->columns == e[1]) return SFT_OK;
    }
    bool swapped = scale->how->across != scale->how->words;
    return sfti_fit_shape(scale->tensor, (uint64_t[]){ e[swapped], e[!swapped] }, 2, err);
}

/* The blocks of a part, and that it has as many numbers as there are blocks. */
static sft_code fit_part(sfti_quant_fit *f, size_t k, sfti_quant_part *part, sft_error *err) {
    const sfti_quant *q = f->q;
    const sfti_layout_part *how = part->how;
    const sft_tensor *t = sfti_fit_tensor(f, k);
    uint32_t unit = sfti_tensor_bits(t), rank = t->rank;
    part->bits = how->bits ? how->bits
               : how->code != SFTI_CODE_DTYPE ? q->parts[0].bits : unit;
    uint64_t outer = rank > 1 ? t->shape[rank - 2] : 1, inner = rank > 0 ? t->shape[rank - 1] : 1;
    if (rank == 1 && (how->across || how->columns == SFTI_BLOCK_ALL
                      || (how->rows == SFTI_BLOCK_ANY && inner == q->rows)))
        outer = inner, inner = 1; /* a column */
    if (rank > 2 && q->matrices == 1 && t->shape[0] == q->rows && is_column(t))
        outer = t->shape[0], inner = 1;
    bool swapped = how->across != how->words; /* a stored row is for a column */
    if (rank == 1 && how->rows == SFTI_BLOCK_ANY && how->columns == SFTI_BLOCK_ANY && inner != 1
        && inner != q->columns)
        return sfti_fit_shape(t, &q->rows, 1, err);
    uint64_t numbers[2] = { swapped ? inner : outer, swapped ? outer : inner };
    uint64_t sizes[2] = { q->rows, q->columns }, blocks[2];
    uint32_t wanted[2] = { how->rows, how->columns };
    bool any = how->rows == SFTI_BLOCK_ANY
            || (how->columns == SFTI_BLOCK_ANY && !f->strict); /* not ComfyUI's of a row, MLX's */
    bool single_number = any && part->bits == unit && is_column(t)
                      && (t->rank == 0 || t->shape[0] == 1);
    for (size_t d = 0; d < 2; d++) {
        bool grouped = d == 1 && q->group.tensor;
        blocks[d] = wanted[d];
        if (wanted[d] == SFTI_BLOCK_ALL || single_number) blocks[d] = sizes[d];
        else if (wanted[d] == SFTI_BLOCK_ANY && wanted[1] == SFTI_BLOCK_ALL)
            blocks[d] = numbers[d] == sizes[d]; /* rows are not put together */
        else if (wanted[d] == SFTI_BLOCK_ANY) {
            uint64_t told = d == 1 ? f->group : 0;
            if (d == 1 && f->scoped && !told)
                told = sfti_scopes_group(f->search->declared, sizes[1], numbers[1]);
            if (!told && wanted[0] == wanted[1]) told = f->search->declared->blocks[d];
            blocks[d] = block_of(sizes[d], numbers[d], told, f->strict,
                                 !told && sfti_name_ends(t->name, "_scale_inv"));
        }
        if (grouped && blocks[d] == 0) blocks[d] = sizes[d]; /* the tensor has to tell */
        if (blocks[d] == 0 && sizes[d] > 0) {
            char values[96], found[96];
            dimensions_text(sizes, 2, values);
            dimensions_text(t->shape, t->rank, found);
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                    "expected a factor for all, each row or each block of values "
                                    "of the shape %s, found the shape %s", values, found);
        }
        bool one = wanted[d] == SFTI_BLOCK_ALL || single_number;
        if (one || blocks[d] == 0) sizes[d] = blocks[d] = blocks[d] ? blocks[d] : 1;
    }
    bool odd = how->rows == SFTI_BLOCK_ANY && wanted[1] == SFTI_BLOCK_ANY && !f->match->told
            && blocks[0] > 1 && blocks[0] < q->rows && blocks[0] != blocks[1];
    if (odd)
        return sfti_fit_fail(t, "a factor for all, each row, each column, each group of a row or "
                             "each square, or a declaration of another block", "another shape",
                             err);
    if (mixes_blocks(f, t, numbers, blocks))
        return sfti_fit_fail(t, "a factor for each block of 128 x 128, or another size in both "
                             "dimensions", "one of both", err);
    part->row_block = blocks[0];
    part->column_block = blocks[1];
    part->rows = sfti_divide_up(sizes[0], blocks[0]);
    part->columns = sfti_divide_up(sizes[1], blocks[1]);
    if (q->group.tensor && how->columns == SFTI_BLOCK_ANY) part->columns = numbers[1];
    uint64_t e[2] = { part->rows, part->columns };
    if (swapped) e[0] = part->columns, e[1] = part->rows;
    if (how->tiled) {
        e[0] = sfti_divide_up(part->rows, 128) * 128;
        e[1] = sfti_divide_up(part->columns, 4) * 4;
    } else {
        uint64_t *packed = &e[how->words ? 0 : 1];
        if (!sfti_mul(*packed, part->bits, packed))
            return sfti_fit_fail(t, "a shape below 2^64", "another", err);
        *packed = sfti_divide_up(*packed, unit);
    }
    /* As a matrix, for each matrix or for all; as a row or column. */
    uint64_t single, all, count = 1, lead = 1;
    bool leads = rank == q->spec.rank; /* with the dimensions of the codes */
    for (uint32_t d = 0; d < rank; d++) {
        /* the header's product has no overflow */
        if (sfti_never(!sfti_mul(count, t->shape[d], &count))) return sfti_fit_shape(t, e, 2, err);
        if (d + 2 < rank) lead *= t->shape[d];
        leads = leads && (d + 2 >= rank || t->shape[d] == f->shape[d]);
    }
    if (!sfti_mul(e[0], e[1], &single) || !sfti_mul(single, q->matrices, &all))
        return sfti_fit_shape(t, e, 2, err);
    bool is_matrix = rank >= 2 && t->shape[rank - 2] == e[0] && t->shape[rank - 1] == e[1]
                  && (lead == 1 || leads) && (rank == 2 || !f->first_rows);
    bool is_line = (e[0] == 1 || e[1] == 1) && rank == 1 && count == single;
    is_line = is_line || (how->tiled && count == single); /* torchao: rows of 16 */
    bool column = e[1] == 1 && rank >= 1 && t->shape[0] == e[0] && count == e[0];
    bool each = single == 1 && rank >= 1 && t->shape[0] == q->matrices && count == q->matrices
             && (leads || q->spec.rank == 3);
    bool one = single == 1 && count == 1
            && (q->matrices == 1 || single_number || how->columns == SFTI_BLOCK_ALL);
    if (!(is_matrix || is_line || column || each || one)
        || (count != single && count != all))
        return sfti_fit_shape(t, e, 2, err);
    if (q->matrices > 1 && count == single && count != 1)
        return sfti_fit_fail(t, "as many dimensions as the codes have, or a factor for each "
                             "matrix", "factors that may be shared by all or not", err);
    part->matrix_bytes = count == single ? 0 : (t->end - t->begin) / q->matrices;
    part->lines = how->words ? e[1] : e[0];
    part->line_bytes = e[1] * unit / 8;
    return SFT_OK;
}

sft_code sfti_fit_parts(sfti_quant_fit *f, sft_error *err) {
    sfti_quant *q = f->q;
    sft_code code = fit_codes(f, err);
    if (!code) code = fit_padding(f, err);
    if (!code && q->count > 1 && (f->format || q->parts[1].how->rows != SFTI_BLOCK_ALL))
        fit_first_rows(f, q->parts[1].tensor);
    for (size_t k = 1, p = 1; !code && k < q->layout->count && p < q->count; k++)
        if (sfti_fit_tensor(f, k) == q->parts[p].tensor) code = fit_part(f, k, &q->parts[p++], err);
    const sfti_quant_part *first = &q->parts[1], *part = &q->parts[2];
    for (; !code && part < q->parts + q->count; part++)
        if (part->how->columns == SFTI_BLOCK_ANY && first->how->columns == SFTI_BLOCK_ANY
            && (part->columns != first->columns || part->rows != first->rows))
            code = sfti_fit_fail(part->tensor, "numbers for as many groups as there are scales",
                                 "another shape", err);
    if (!code) code = check_told_codes(f, err);
    return code ? code : check_told_scale(f, err);
}
