/* How weights are packed, from the tensors that accompany them. */
#include "label/tensors/signatures.h"

#include "base/checked.h"

#include <string.h>

enum {
    MARK_NF4 = 1u << 0,
    MARK_FP4 = 1u << 1,
    MARK_SCB = 1u << 2,
    MARK_QWEIGHT = 1u << 3,
    MARK_QZEROS = 1u << 4,
    MARK_G_IDX = 1u << 5,
    MARK_WEIGHT_PACKED = 1u << 6,
    MARK_SCALE_INV = 1u << 7,
    MARK_SCALED_FP8 = 1u << 8,
    MARK_SCALE_2 = 1u << 9,
    MARK_SCALE = 1u << 10,
    MARK_SCALE_BYTES = 1u << 11, /* weight_scale as exponents: U8 or F8_E8M0 */
    MARK_WSCALES = 1u << 12,
    MARK_WTSCALE = 1u << 13,
    MARK_SCALES = 1u << 14,
    MARK_BIASES = 1u << 15,
    MARK_F8 = 1u << 16,
    MARK_I8 = 1u << 17,
    MARK_U32 = 1u << 18,
    MARK_U8 = 1u << 19,
    MARK_MX_BLOCKS = 1u << 20,
    MARK_MX_SCALES = 1u << 21,
    MARK_F4 = 1u << 22,
    MARK_OTHER = 1u << 23 /* belongs to a quantisation, decides none */
};

#define QUANT_END(text) { text, sizeof(text) - 1 }

/* Tensors that accompany packed weights, by the end of their names; none is a parameter of the
 * model. */
static const struct quant_suffix {
    sft_span end;
    uint32_t mark;
} quant_suffixes[] = {
    { QUANT_END(".quant_state.bitsandbytes__nf4"), MARK_NF4 },
    { QUANT_END(".quant_state.bitsandbytes__fp4"), MARK_FP4 },
    { QUANT_END(".absmax"), MARK_OTHER }, { QUANT_END(".quant_map"), MARK_OTHER },
    { QUANT_END(".nested_absmax"), MARK_OTHER }, { QUANT_END(".nested_quant_map"), MARK_OTHER },
    { QUANT_END(".SCB"), MARK_SCB }, { QUANT_END(".weight_format"), MARK_OTHER },
    { QUANT_END(".qzeros"), MARK_QZEROS }, { QUANT_END(".g_idx"), MARK_G_IDX },
    { QUANT_END(".scales"), MARK_SCALES }, { QUANT_END(".biases"), MARK_BIASES },
    { QUANT_END(".weight_scale_inv"), MARK_SCALE_INV },
    { QUANT_END(".scale_weight"), MARK_SCALED_FP8 }, { QUANT_END(".scale_input"), MARK_OTHER },
    { QUANT_END(".scale_inv"), MARK_OTHER }, { QUANT_END("scaled_fp8"), MARK_SCALED_FP8 },
    { QUANT_END(".weight_scale_2"), MARK_SCALE_2 },
    { QUANT_END(".weight_global_scale"), MARK_OTHER },
    { QUANT_END(".input_global_scale"), MARK_OTHER }, { QUANT_END(".weight_scale"), MARK_SCALE },
    { QUANT_END(".weight_zero_point"), MARK_OTHER }, { QUANT_END(".weight_shape"), MARK_OTHER },
    { QUANT_END(".weight_g_idx"), MARK_OTHER }, { QUANT_END(".input_scale"), MARK_OTHER },
    { QUANT_END(".k_scale"), MARK_OTHER }, { QUANT_END(".v_scale"), MARK_OTHER },
    { QUANT_END(".comfy_quant"), MARK_OTHER }, { QUANT_END(".wscales"), MARK_WSCALES },
    { QUANT_END(".wcscales"), MARK_OTHER }, { QUANT_END(".wzeros"), MARK_OTHER },
    { QUANT_END(".wtscale"), MARK_WTSCALE }, { QUANT_END(".smooth_factor"), MARK_OTHER },
    { QUANT_END(".smooth_factor_orig"), MARK_OTHER }, { QUANT_END(".smooth"), MARK_OTHER },
    { QUANT_END(".smooth_orig"), MARK_OTHER }, { QUANT_END("_proj_scales"), MARK_MX_SCALES },
};

static bool is_f8(sft_dtype dtype) {
    return dtype == SFT_F8_E4M3 || dtype == SFT_F8_E5M2 || dtype == SFT_F8_E4M3FNUZ
        || dtype == SFT_F8_E5M2FNUZ;
}

/* The mark of a tensor that accompanies weights, or 0. */
static uint32_t mark_scale(const sfti_quant *quant, const sft_tensor *tensor) {
    size_t row = sfti_suffixes_find(&quant->suffixes, tensor->name, 0);
    uint32_t mark = row ? quant_suffixes[row - 1].mark : 0;
    bool bytes = tensor->dtype == SFT_U8 || tensor->dtype == SFT_F8_E8M0;
    return mark == MARK_SCALE && bytes ? mark | MARK_SCALE_BYTES : mark;
}

/* The mark of weights themselves. */
static uint32_t mark_weight(const sft_tensor *tensor) {
    static const uint32_t of_dtype[SFT_DTYPE_COUNT] = {
        [SFT_F8_E4M3] = MARK_F8, [SFT_F8_E5M2] = MARK_F8, [SFT_F8_E4M3FNUZ] = MARK_F8,
        [SFT_F8_E5M2FNUZ] = MARK_F8, [SFT_F4] = MARK_F4, [SFT_I8] = MARK_I8,
        [SFT_U32] = MARK_U32, [SFT_U8] = MARK_U8,
    };
    sft_span name = tensor->name;
    if (sfti_ends(name, ".qweight")) return MARK_QWEIGHT;
    if (sfti_ends(name, ".weight_packed")) return MARK_WEIGHT_PACKED;
    if (!of_dtype[tensor->dtype]) return 0;
    if (tensor->dtype == SFT_U8 && sfti_ends(name, "_blocks") && tensor->rank >= 3)
        return MARK_MX_BLOCKS;
    if (tensor->rank < 2 || (!sfti_ends(name, "weight") && !sfti_ends(name, "_proj"))) return 0;
    return of_dtype[tensor->dtype];
}

/* ── What the marks mean together: the first row whose marks are all there ── */

static const struct quant_row {
    uint32_t all, none;
    const char *id; /* with %u: the bits */
    uint32_t bits;  /* 0: to be found out */
} quant_rows[] = {
    { MARK_WTSCALE, 0, "svdquant-fp4", 4 },
    { MARK_QWEIGHT | MARK_WSCALES, 0, "svdquant-int4", 4 },
    { MARK_NF4, 0, "bnb-nf4", 4 },
    { MARK_FP4, 0, "bnb-fp4", 4 },
    { MARK_SCB, 0, "bnb-int8", 8 },
    { MARK_QWEIGHT | MARK_G_IDX, 0, "gptq-%ubit", 0 },
    { MARK_QWEIGHT | MARK_QZEROS, MARK_G_IDX, "awq-%ubit", 0 },
    { MARK_SCALE_2 | MARK_U8, 0, "nvfp4", 4 },
    { MARK_SCALE_2 | MARK_F4, 0, "nvfp4", 4 },
    { MARK_WEIGHT_PACKED, 0, "compressed-tensors", 4 },
    { MARK_MX_BLOCKS | MARK_MX_SCALES, 0, "mxfp4", 4 },
    { MARK_SCALE_INV | MARK_F8, 0, "fp8-block", 8 },
    { MARK_SCALED_FP8 | MARK_F8, 0, "fp8-scaled", 8 },
    { MARK_SCALE | MARK_SCALE_BYTES | MARK_F8, 0, "mxfp8", 8 },
    { MARK_SCALE | MARK_F8, 0, "fp8-scaled", 8 },
    { MARK_SCALE | MARK_I8, 0, "int8", 8 },
    { MARK_SCALES | MARK_BIASES | MARK_U32, 0, "mlx-%ubit", 0 },
};

/* Bits of a packed weight, from the tensor that tells its unpacked size. */
static uint32_t bits_of(const sft_tensor *packed, uint64_t packed_size, uint64_t whole) {
    uint64_t bits;
    if (packed->rank < 2 || whole == 0 || !sfti_mul(packed_size, 32, &bits)) return 0;
    bits /= whole;
    return bits >= 1 && bits <= 8 ? (uint32_t)bits : 0;
}

/* The tensor of the same layer whose name has another last part. */
static const sft_tensor *layer_tensor(const sfti_view *view, const sft_tensor *tensor,
                                      const char *last) {
    sft_span layer = tensor->name;
    while (layer.len > 0 && layer.data[layer.len - 1] != '.') layer.len--;
    return layer.len > 0 ? sfti_view_sibling(view, layer, last) : NULL;
}

static uint32_t bits_gptq(const sfti_view *view, const sft_tensor *packed) {
    const sft_tensor *group = layer_tensor(view, packed, "g_idx");
    if (packed->rank < 2 || !group || group->rank != 1) return 0;
    return bits_of(packed, packed->shape[0], group->shape[0]);
}

static uint32_t bits_awq(const sfti_view *view, const sft_tensor *packed) {
    const sft_tensor *scales = layer_tensor(view, packed, "scales");
    if (packed->rank < 2 || !scales || scales->rank != 2) return 0;
    return bits_of(packed, packed->shape[1], scales->shape[1]);
}

/* MLX: exactly where the final norm tells the hidden size, else by its default group of 64. */
static uint32_t bits_mlx(const sfti_view *view, const sft_tensor *packed) {
    const sft_tensor *scales = layer_tensor(view, packed, "scales");
    const sft_tensor *embed = sfti_view_find(view, "model.embed_tokens.weight");
    const sft_tensor *norm = sfti_view_find(view, "model.norm.weight");
    if (embed && norm && embed->dtype == SFT_U32 && embed->rank == 2 && norm->rank == 1)
        return bits_of(embed, embed->shape[1], norm->shape[0]);
    if (packed->rank < 2 || !scales || scales->rank < 2) return 0;
    uint64_t whole;
    if (!sfti_mul(scales->shape[scales->rank - 1], 64, &whole)) return 0;
    return bits_of(packed, packed->shape[packed->rank - 1], whole);
}

static void quant_found(sfti_quant *quant, const struct quant_row *row, const sfti_view *view,
                        const sft_tensor *packed) {
    quant->bits = row->bits;
    quant->id = row->id;
    if (row->bits) return;
    if (!packed) quant->bits = 4;
    else if (row->all & MARK_G_IDX) quant->bits = bits_gptq(view, packed);
    else if (row->all & MARK_QZEROS) quant->bits = bits_awq(view, packed);
    else quant->bits = bits_mlx(view, packed);
    if (quant->bits == 0) quant->bits = 4;
    int method = (int)strcspn(row->id, "-");
    sft_span text = sfti_info_text(view->info, "%.*s-%ubit", method, row->id, quant->bits);
    quant->id = text.len ? text.data : NULL;
}

/* fp8 without scales: most bytes of the matrices. */
static bool mostly_f8(const sfti_view *view) {
    const sfti_quant none = { .id = NULL };
    uint64_t f8 = 0, all = 0;
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = sfti_view_at(view, i);
        uint64_t elements = sfti_quant_parameters(&none, tensor);
        if (tensor->rank < 2) continue;
        all += elements / 2;
        if (is_f8(tensor->dtype)) f8 += elements / 2;
    }
    return f8 > 0 && f8 >= all / 2;
}

/* In order of offset. */
static const sft_tensor *first_packed(const sfti_view *view) {
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(view->info->set, i);
        if (mark_weight(tensor) & (MARK_QWEIGHT | MARK_U32)) return tensor;
    }
    return NULL;
}

sfti_quant sfti_quantisation(const sfti_view *view) {
    sfti_quant quant = { .id = NULL };
    const sft_tensor *packed = NULL;
    sfti_suffixes_open(&quant.suffixes, &quant_suffixes[0].end, sizeof quant_suffixes[0],
                   SFTI_COUNT(quant_suffixes));
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = sfti_view_at(view, i);
        quant.marks |= mark_scale(&quant, tensor) | mark_weight(tensor);
    }
    if (quant.marks & (MARK_QWEIGHT | MARK_U32)) packed = first_packed(view);
    for (size_t i = 0; i < SFTI_COUNT(quant_rows) && !quant.id; i++)
        if ((quant.marks & quant_rows[i].all) == quant_rows[i].all
            && !(quant.marks & quant_rows[i].none))
            quant_found(&quant, &quant_rows[i], view, packed);
    if (!quant.id && quant.marks & MARK_F8 && mostly_f8(view)) quant.id = "fp8";
    return quant;
}

/* ── Sizes ── */

uint64_t sfti_quant_parameters(const sfti_quant *quant, const sft_tensor *tensor) {
    uint64_t elements = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!sfti_mul(elements, tensor->shape[i], &elements)) return 0;
    if (!quant->id) return elements;
    if (mark_scale(quant, tensor)) return 0;
    uint32_t width = sft_dtype_describe(tensor->dtype)->bits, weight = mark_weight(tensor);
    bool packed = weight & (MARK_QWEIGHT | MARK_WEIGHT_PACKED | MARK_U32 | MARK_U8
                            | MARK_MX_BLOCKS);
    uint64_t bits;
    if (!packed || quant->bits == 0 || quant->bits >= width
        || !sfti_mul(elements, width, &bits))
        return elements;
    return bits / quant->bits;
}

void sfti_sum(sfti_sums *sums, const sfti_quant *quant, const sft_tensor *tensor) {
    uint64_t parameters = sfti_quant_parameters(quant, tensor);
    uint64_t bytes = tensor->end - tensor->begin;
    sums->tensors++;
    if (!sfti_add(sums->parameters, parameters, &sums->parameters))
        sums->parameters = UINT64_MAX;
    sums->bytes += bytes;
    sums->by_dtype[tensor->dtype] += bytes;
}

void sfti_sum_all(sfti_sums *sums, const sfti_sums *more) {
    sums->tensors += more->tensors;
    if (!sfti_add(sums->parameters, more->parameters, &sums->parameters))
        sums->parameters = UINT64_MAX;
    sums->bytes += more->bytes;
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) sums->by_dtype[i] += more->by_dtype[i];
}

/* The dtype that holds nine tenths of the bytes, or SFT_DTYPE_COUNT. */
static int main_dtype(const sfti_sums *sums) {
    for (int i = 0; i < SFT_DTYPE_COUNT; i++)
        if (sums->by_dtype[i] > 0 && sums->by_dtype[i] >= sums->bytes - sums->bytes / 10) return i;
    return SFT_DTYPE_COUNT;
}

static const char *const precision_names[SFT_DTYPE_COUNT] = {
    [SFT_BOOL] = "bool", [SFT_F4] = "fp4", [SFT_F6_E2M3] = "fp6", [SFT_F6_E3M2] = "fp6",
    [SFT_U8] = "uint8", [SFT_I8] = "int8", [SFT_F8_E5M2] = "fp8", [SFT_F8_E4M3] = "fp8",
    [SFT_F8_E8M0] = "fp8", [SFT_F8_E4M3FNUZ] = "fp8", [SFT_F8_E5M2FNUZ] = "fp8",
    [SFT_I16] = "int16", [SFT_U16] = "uint16", [SFT_F16] = "fp16", [SFT_BF16] = "bf16",
    [SFT_I32] = "int32", [SFT_U32] = "uint32", [SFT_F32] = "fp32", [SFT_C64] = "complex64",
    [SFT_F64] = "fp64", [SFT_I64] = "int64", [SFT_U64] = "uint64",
};

/* The precision of schemes whose dtype says nothing. */
static const char *const precision_rows[][2] = {
    { "bnb-nf4", "nf4" },       { "bnb-fp4", "fp4" },       { "bnb-int8", "int8" },
    { "svdquant-int4", "int4" }, { "svdquant-fp4", "fp4" }, { "nvfp4", "fp4" },
    { "mxfp4", "fp4" },         { "mxfp8", "fp8" },         { "fp8", "fp8" },
    { "fp8-scaled", "fp8" },    { "fp8-block", "fp8" },     { "int8", "int8" },
};

const char *sfti_precision(const sfti_sums *sums, const sfti_quant *quant) {
    static const char *const by_bits[9] = { "mixed", "int1", "int2", "int3", "int4",
                                            "int5", "int6", "int7", "int8" };
    if (sums->bytes == 0) return NULL;
    const char *named = quant->id ? SFTI_MAPPED(sft_span_cstr(quant->id), precision_rows, sfti_is)
                                  : NULL;
    if (named) return named;
    if (quant->id && quant->bits <= 8) return by_bits[quant->bits];
    int dtype = main_dtype(sums);
    return dtype == SFT_DTYPE_COUNT ? "mixed" : precision_names[dtype];
}

/* ── Components ── */

void sfti_add_component(sft_info *info, sfti_list *list, const char *part,
                        const char *architecture, const sfti_sums *sums) {
    if (sums->tensors == 0) return;
    int dtype = main_dtype(sums);
    const char *name = dtype == SFT_DTYPE_COUNT ? "mixed"
                                                : sft_dtype_describe((sft_dtype)dtype)->name;
    SFTI_PUSH(info, list, sfti_component, .part = part, .architecture = architecture,
              .dtype = name, .bytes = sums->bytes, .parameters = sums->parameters);
}

const char *sfti_denoiser_part(const sft_info *info, const char *architecture) {
    sft_span id = sft_span_cstr(architecture ? architecture : "");
    const sfti_record *of = sfti_record_find(info->records, SFTI_MODEL, id);
    bool unet = of && sfti_record_row_of(info->records, of, SFTI_DENOISER_PART, NULL);
    return unet ? "unet" : "transformer";
}
