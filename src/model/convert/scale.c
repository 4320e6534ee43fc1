/* Names of scales, and the tensors that they belong with. Tests: test_convert.c. */
#include "base/error.h"
#include "convert/convert.h"
#include "quant/quant.h"

#include <string.h>

/* A tensor whose name ends with `of` has a scale if the set has a tensor of the same name with
 * `scale` in its place. */
typedef struct scale_row {
    const char *of, *scale;
    bool narrow; /* only for integers and dtypes of at most 8 bits */
} scale_row;

static const scale_row scale_rows[] = {
    { "", "_scale_inv", false },         /* DeepSeek's F8 blocks */
    { "", "_scale", false },             /* compressed-tensors, ModelOpt */
    { "", "_scales", false },
    { ".weight", ".scale_weight", false }, /* ComfyUI */
    { "_packed", "_scale", false },      /* compressed-tensors, packed */
    { "_blocks", "_scales", false },     /* MXFP4 as gpt-oss has it */
    { "_qdata", "_scale", true },        /* torchao */
    { "._data", "._scale", true },       /* quanto */
    { ".W_q", ".scale", true },          /* HQQ */
    { "", ".absmax", false },            /* bitsandbytes, 4 bits */
    { "", "_s_rel", true },              /* ComfyUI, codes of 4 bits */
    { ".weight", ".SCB", true },         /* bitsandbytes, 8 bits */
    { ".qweight", ".scales", true },     /* GPTQ, AWQ */
    { ".weight", ".scales", true },      /* MLX */
    { ".weight", ".scale", true },
};

/* Other tensors that accompany a tensor with a scale. */
static const scale_row companion_rows[] = {
    { "", "_scale_2", false },
    { "", "_global_scale", false },
    { "", "_s_channel", false },
    { "", "_codebook", false },
    { "", "_correction", false },
    { "", "_zeros", false },
    { ".weight", ".pre_quant_scale", false },
    { ".weight", ".input_scale", false },
    { ".weight", ".scale_input", false },
    { ".weight", ".output_scale", false },
    { ".weight", ".biases", false },
    { ".qweight", ".qzeros", false },
    { ".qweight", ".g_idx", false },
    { "_packed", "_global_scale", false },
    { ".weight_packed", ".input_global_scale", false },
    { "_qdata", "_zero_point", false },
    { "_qdata", "_per_tensor_scale", false },
    { ".W_q", ".zero", false },
    { "", ".quant_map", false },
    { "", ".nested_absmax", false },
    { "", ".nested_quant_map", false },
};

#define SCALE_NAME 1024 /* a longer name has no scale */

const sft_tensor *sfti_scale_named(const sft_set *set, sft_span name, const char *end,
                                   const char *instead, size_t *shard) {
    char buffer[SCALE_NAME];
    size_t len = strlen(end), more = strlen(instead), stem = name.len - len;
    if (!sfti_name_ends(name, end) || name.len + more > sizeof buffer || stem + more == 0)
        return NULL;
    if (stem > 0) memcpy(buffer, name.data, stem);
    memcpy(buffer + stem, instead, more);
    return sft_set_find(set, (sft_span){ buffer, stem + more }, shard);
}

static bool has_narrow_dtype(const sft_tensor *tensor) {
    const sft_dtype_info *info = sft_dtype_describe(tensor->dtype);
    return info->bits <= 8 || info->kind == SFT_KIND_INT || info->kind == SFT_KIND_UINT;
}

static const sft_tensor *scale_of(const sft_set *set, const sft_tensor *tensor) {
    for (size_t i = 0; i < sizeof scale_rows / sizeof *scale_rows; i++) {
        const scale_row *row = &scale_rows[i];
        if (row->narrow && !has_narrow_dtype(tensor)) continue;
        const sft_tensor *scale = sfti_scale_named(set, tensor->name, row->of, row->scale, NULL);
        if (scale) return scale;
    }
    return NULL;
}

/* The tensor that this one scales or accompanies. */
static const sft_tensor *owner_of(const sft_set *set, const sft_tensor *tensor) {
    for (size_t i = 0; i < sizeof scale_rows / sizeof *scale_rows; i++) {
        const scale_row *row = &scale_rows[i];
        const sft_tensor *owner = sfti_scale_named(set, tensor->name, row->scale, row->of, NULL);
        if (owner && (!row->narrow || has_narrow_dtype(owner))) return owner;
    }
    for (size_t i = 0; i < sizeof companion_rows / sizeof *companion_rows; i++) {
        const scale_row *row = &companion_rows[i];
        const sft_tensor *owner = sfti_scale_named(set, tensor->name, row->scale, row->of, NULL);
        if (owner && scale_of(set, owner)) return owner;
    }
    return NULL;
}

/* In a layer that is declared to be quantised, and is, all but the bias belongs to the weight. */
static const sft_tensor *declared_scale(const sft_set *set, const sfti_declared *declared,
                                        const sft_tensor *tensor, sft_convert_action *action) {
    sft_span leaf;
    const sfti_declared_layer *layer = sfti_declared_of(declared, tensor->name, &leaf);
    if (!layer || !layer->weight || !sfti_quant_has(layer->weight)
        || sft_span_equal(leaf, sft_span_cstr("bias")))
        return NULL;
    *action = tensor == layer->weight ? SFT_CONVERT_SCALED : SFT_CONVERT_SCALE;
    if (tensor != layer->weight) return layer->weight;
    const sft_tensor *scale = scale_of(set, tensor);
    return scale ? scale : layer->marker ? layer->marker : tensor;
}

const sft_tensor *sfti_scale_find(const sft_set *set, const sfti_declared *declared,
                                  const sft_tensor *tensor, sft_convert_action *action) {
    const sft_tensor *found = declared_scale(set, declared, tensor, action);
    if (found) return found;
    found = scale_of(set, tensor);
    if (found) {
        *action = SFT_CONVERT_SCALED;
        return found;
    }
    found = owner_of(set, tensor);
    if (found) *action = SFT_CONVERT_SCALE;
    return found;
}
