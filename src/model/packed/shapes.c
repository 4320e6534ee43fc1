/* Shapes of tensors as the model has them: what packing makes of a linear layer is undone as far as
 * the tensors beside it prove it. Tests: test_shapes.c. */
#include "packed/shapes.h"

#include "base/checked.h"
#include "text/text.h"

#include <string.h>

#define MOST_BITS 8 /* of a packed value */

typedef struct packed_tensor {
    const sft_set *set;
    const sft_tensor *tensor;
    sft_span stem; /* of the names beside it */
    sfti_shape *out;
} packed_tensor;

const sft_tensor *sfti_set_sibling(const sft_set *set, sft_span begin, const char *end) {
    char buffer[600];
    size_t len = strlen(end);
    if (begin.len + len > sizeof buffer) return NULL;
    memcpy(buffer, begin.data, begin.len);
    memcpy(buffer + begin.len, end, len);
    return sft_set_find(set, (sft_span){ buffer, begin.len + len }, NULL);
}

/* The tensor beside it; of another rank it is as good as none. */
static const sft_tensor *beside(const packed_tensor *p, const char *end, uint32_t rank) {
    const sft_tensor *found = sfti_set_sibling(p->set, p->stem, end);
    return found && found->rank == rank ? found : NULL;
}

/* The last size, and those before it as they are stored; true. */
static bool set_last(packed_tensor *p, uint64_t least, uint64_t most) {
    sfti_shape *out = p->out;
    out->rank = p->tensor->rank;
    for (uint32_t i = 0; i < out->rank; i++)
        out->least[i] = out->most[i] = p->tensor->shape[i];
    out->least[out->rank - 1] = least;
    out->most[out->rank - 1] = most;
    return true;
}

static bool set_matrix(packed_tensor *p, uint64_t rows, uint64_t columns) {
    p->out->rank = 2;
    p->out->least[0] = p->out->most[0] = rows;
    p->out->least[1] = p->out->most[1] = columns;
    return true;
}

/* All sizes are as they are stored or less, by less than a multiple of this. */
static bool set_padded(packed_tensor *p, uint64_t multiple) {
    sfti_shape *out = p->out;
    for (uint32_t i = out->rank - 2; i < out->rank; i++)
        out->least[i] = out->most[i] < multiple ? 1 : out->most[i] - (multiple - 1);
    out->padded = true;
    return true;
}

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return sfti_mul(a, b, &product) ? product : UINT64_MAX;
}

static uint64_t rounded_up(uint64_t size, uint64_t multiple) {
    uint64_t up;
    return sfti_align_up(size, multiple, &up) ? up : UINT64_MAX;
}

/* Bits of values that 32-bit words hold without a rest, or 0. */
static uint64_t bits_of_words(uint64_t words, uint64_t values) {
    uint64_t bits = values ? times(words, 32) / values : 0;
    return bits <= MOST_BITS && times(values, bits) == times(words, 32) ? bits : 0;
}

/* ── By how it is packed: false where that is not proved ── */

typedef enum block_scales { SCALES_NO = 0, SCALES_PLAIN, SCALES_TILED } block_scales;

/* Whether a scale stands for each block of a row, plain or in tiles of 128 rows and 4 columns. */
static block_scales scales_of(const sft_tensor *scale, uint64_t rows, uint64_t width,
                              uint64_t block) {
    uint64_t blocks = rounded_up(width, block) / block;
    uint64_t has_rows = scale->shape[scale->rank - 2], has = scale->shape[scale->rank - 1];
    if (has_rows == rows && has == blocks) return SCALES_PLAIN;
    bool tiled = has_rows == rounded_up(rows, 128) && has == rounded_up(blocks, 4);
    return tiled ? SCALES_TILED : SCALES_NO;
}

static bool are_exponents(const sft_tensor *scale) {
    return scale && (scale->dtype == SFT_U8 || scale->dtype == SFT_F8_E8M0);
}

/* NVFP4 and MXFP4: two values a byte; MXFP8. ComfyUI pads both sizes. */
static bool unpack_blocks(packed_tensor *p) {
    const uint32_t rank = p->tensor->rank;
    const sft_tensor *scale = rank > 1 ? beside(p, "weight_scale", rank) : NULL;
    if (!scale && rank > 1 && are_exponents(beside(p, "scale", rank)))
        scale = beside(p, "scale", rank);
    if (!scale) return false;
    bool exponents = are_exponents(scale);
    uint64_t rows = p->tensor->shape[rank - 2], bytes = p->tensor->shape[rank - 1];
    uint64_t block = exponents ? 32 : 16, width = times(bytes, 2);
    block_scales wide = scales_of(scale, rows, width, block);
    bool packed = sfti_ends(p->tensor->name, "_packed"); /* into fewer than 8 bits */
    if (packed && exponents && times(bytes, 4) == times(scale->shape[rank - 1], 96)
        && scale->shape[rank - 2] == rows) /* MXFP6 */
        return set_last(p, times(bytes, 4) / 3, times(bytes, 4) / 3);
    block_scales narrow = exponents && !packed ? scales_of(scale, rows, bytes, block) : SCALES_NO;
    if (p->tensor->dtype != SFT_U8 && p->tensor->dtype != SFT_I8) wide = SCALES_NO;
    if ((!exponents && scale->dtype != SFT_F8_E4M3) || !wide == !narrow) return false;
    (void)set_last(p, wide ? width : bytes, wide ? width : bytes);
    return (wide ? wide : narrow) == SCALES_TILED ? set_padded(p, block) : true;
}

/* bitsandbytes in 4 bits: a column of bytes, in whatever dtype. */
static bool unpack_column(packed_tensor *p) {
    if (!beside(p, "weight.absmax", 1)) return false;
    const sft_tensor *bias = beside(p, "bias", 1);
    uint64_t rows = bias ? bias->shape[0] : 0;
    p->out->elements = times(p->tensor->end - p->tensor->begin, 2);
    bool whole = rows > 0 && p->out->elements % rows == 0;
    return whole ? set_matrix(p, rows, p->out->elements / rows) : true;
}

/* compressed-tensors: codes of 1 to 8 bits along a row, but in tiles for Marlin. */
static bool unpack_dense(packed_tensor *p) {
    uint64_t rows = p->tensor->shape[0], words = p->tensor->shape[1], bits = 0;
    const sft_tensor *order = beside(p, "weight_g_idx", 1), *scale = beside(p, "weight_scale", 2);
    const sft_tensor *zeros = beside(p, "weight_zero_point", 2);
    if (!sfti_ends(p->tensor->name, "_packed") || words == 0) return false;
    if (sfti_set_sibling(p->set, p->stem, "scale_packed") || beside(p, "meta", 2)
        || (scale && scale->shape[0] != rows))
        return false;
    if (order) return set_matrix(p, rows, order->shape[0]);
    if (zeros) bits = bits_of_words(zeros->shape[0], rows);
    (void)set_last(p, times(words - 1, 32) / (bits ? bits : MOST_BITS) + 1,
                   times(words, 32) / (bits ? bits : 1));
    p->out->padded = bits > 0;
    return true;
}

/* GPTQ packs the rows of [in, out], AWQ its columns; nunchaku packs four of [out, in] in one. */
static bool unpack_words(packed_tensor *p) {
    const sft_tensor *order = beside(p, "g_idx", 1), *scales = beside(p, "scales", 2);
    const sft_tensor *zeros = beside(p, "qzeros", 2), *fours = beside(p, "wscales", 2);
    uint64_t rows = p->tensor->shape[0], columns = p->tensor->shape[1];
    uint64_t in = times(columns, 2); /* of nunchaku */
    if (order && bits_of_words(rows, order->shape[0]))
        return set_matrix(p, columns, order->shape[0]);
    if (fours && times(rows, 4) == fours->shape[1] && in == times(fours->shape[0], 64))
        return set_matrix(p, fours->shape[1], in);
    if (!scales) return unpack_dense(p);
    uint64_t out = scales->shape[1];
    if (columns != out) return bits_of_words(columns, out) && set_matrix(p, out, rows);
    uint64_t bits = zeros ? bits_of_words(zeros->shape[1], out) : 0;
    return bits && times(rows, 32) % bits == 0 && set_matrix(p, out, times(rows, 32) / bits);
}

/* MLX: of 2 to 8 bits, in groups of 32 to 128; of microscaling in those of its format. */
static bool unpack_mlx(packed_tensor *p) {
    const uint32_t rank = p->tensor->rank;
    const sft_tensor *scales = beside(p, "scales", rank);
    if (!scales) return false;
    uint64_t words = p->tensor->shape[rank - 1], groups = scales->shape[rank - 1];
    if (scales->dtype == SFT_U8) {
        bool fp4 = times(words, 8) == times(groups, 32) || times(words, 8) == times(groups, 16);
        if (!fp4 && times(words, 4) != times(groups, 32)) return false;
        return set_last(p, times(words, fp4 ? 8 : 4), times(words, fp4 ? 8 : 4));
    }
    uint64_t least = times(groups, 32), most = times(groups, 128);
    while (least < times(words, 4)) least = times(least, 2);
    while (most > times(words, 16)) most /= 2;
    p->out->twofold = true;
    return least <= most && set_last(p, least, most);
}

/* Bytes of [out, in] beside scales that are known, one code each; or two, as ComfyUI's rotated
 * codes have them, where a scale is a factor a row in one dimension or an exponent. By others
 * nobody can tell which they are, nor which side is out. */
static void unpack_bytes(packed_tensor *p) {
    static const char *const whole[] = { "SCB", "weight_scale", "weight_scale_inv",
                                         "scale_weight" };
    uint64_t rows = p->tensor->shape[0], bytes = p->tensor->shape[1];
    const sft_tensor *scale = NULL;
    for (size_t i = 0; i < SFTI_COUNT(whole) && !scale; i++)
        scale = sfti_set_sibling(p->set, p->stem, whole[i]);
    bool one = scale && sft_tensor_elements(scale) == 1;
    p->out->twofold = true;
    if (!scale || (!one && scale->rank == 1 && scale->shape[0] != rows)) return;
    bool factors = !one && scale->rank == 1 && sfti_ends(scale->name, "weight_scale");
    p->out->twofold = false;
    (void)set_last(p, bytes, factors || are_exponents(scale) ? times(bytes, 2) : bytes);
}

/* ComfyUI's codes of 4 bits, and nunchaku's; else whole bytes. */
static void unpack_codes(packed_tensor *p) {
    const sft_tensor *scales = beside(p, "wscales", 2), *relative = beside(p, "weight_s_rel", 2);
    const sft_tensor *zeros = beside(p, "weight_zeros", 2);
    uint64_t bytes = p->tensor->shape[1], width = times(bytes, 2);
    if (relative) {
        uint64_t in = times(relative->shape[1], 16);
        if (in == width || times(bytes, 4) == times(in, 3)) (void)set_last(p, in, in);
    } else if (zeros) {
        if (width == times(zeros->shape[0], 64)) (void)set_last(p, width, width);
    } else if (scales || sfti_ends(p->tensor->name, ".qweight")) {
        uint64_t groups = scales ? scales->shape[0] : 0;
        if (width == times(groups, 64) || width == times(groups, 16))
            (void)set_last(p, width, width);
    } else {
        unpack_bytes(p);
    }
}

/* What stands before the names of the tensors beside it. */
static sft_span stem_of_weight(sft_span name) {
    static const char *const ends[] = { "weight_packed", "qweight", "weight" };
    for (size_t i = 0; i < SFTI_COUNT(ends); i++)
        if (sfti_ends(name, ends[i])) return (sft_span){ name.data, name.len - strlen(ends[i]) };
    return (sft_span){ name.data, 0 };
}

bool sfti_shape_of(const sft_set *set, const sft_tensor *tensor, sfti_shape *out) {
    const sft_dtype dtype = tensor->dtype;
    const uint32_t rank = tensor->rank;
    bool column = rank == 2 && tensor->shape[1] == 1;
    if (!sfti_may_be_packed(tensor)) return false;
    packed_tensor p = { set, tensor, stem_of_weight(tensor->name), out };
    bool named = p.stem.len > 0 && rank > 1 && rank <= SFTI_SHAPE_RANK;
    *out = (sfti_shape){ .rank = SFTI_SHAPE_HIDDEN };
    if (named && column && unpack_column(&p)) return true;
    switch ((int)dtype) {
    case SFT_U8:
        if (named) (void)unpack_blocks(&p);
        return true;
    case SFT_U32:
        if (named) (void)unpack_mlx(&p);
        return true;
    case SFT_I32:
        if (named && rank == 2) (void)unpack_words(&p);
        return true;
    case SFT_I16:
    case SFT_U16:
    case SFT_I64:
    case SFT_U64: return named;
    case SFT_I8:
        if (named && unpack_blocks(&p)) return true;
        if (named && rank == 2) unpack_codes(&p);
        return named && rank == 2;
    default: return named && unpack_blocks(&p);
    }
}

uint64_t sfti_size_of(const sft_set *set, const sft_tensor *tensor, uint32_t axis) {
    sfti_shape shape;
    if (!sfti_may_be_packed(tensor) || !sfti_shape_of(set, tensor, &shape))
        return axis < tensor->rank ? tensor->shape[axis] : 0;
    bool seen = axis < shape.rank && shape.rank != SFTI_SHAPE_HIDDEN
             && (shape.padded || shape.least[axis] == shape.most[axis]);
    return seen ? shape.most[axis] : 0;
}
