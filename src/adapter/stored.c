/* Whether a layer of a model is stored with a row for each output, or for each input. Tests:
 * tests/adapter. */
#include "adapter/adapter.h"

sft_span sfti_lora_layer(sft_span name) {
    size_t len = name.len;
    while (len > 0 && name.data[len - 1] != '.') len--;
    return (sft_span){ name.data, len > 0 ? len - 1 : 0 };
}

/* The matrix called begin + end, or NULL. */
static const sft_tensor *matrix_called(const sft_set *model, sft_span begin, const char *end) {
    const sft_tensor *weight = sfti_set_sibling(model, begin, end);
    return weight && weight->rank == 2 ? weight : NULL;
}

bool sfti_lora_is_conv1d(sft_span last_part) {
    return sfti_number_among("c_attn c_proj c_fc q_attn", last_part) >= 0;
}

sfti_stored sfti_lora_stored(const sft_set *model, const sft_tensor *tensor) {
    static const char *const inputs[] = { ".attn.c_attn.weight", ".mlp.c_fc.weight" };
    if (tensor->rank != 2 || !sfti_ends(tensor->name, ".weight")) return SFTI_STORED_PLAIN;
    sft_span layer = sfti_lora_layer(tensor->name), above = sfti_lora_layer(layer);
    sft_span block = sfti_lora_layer(above), last = sfti_from(layer, above.len + (above.len > 0));
    uint64_t rows = tensor->shape[0], cols = tensor->shape[1];
    if (!sfti_lora_is_conv1d(last)) return SFTI_STORED_PLAIN;
    if (rows != cols) { /* a bias has one for each output */
        const sft_tensor *bias = sfti_set_sibling(model, layer, ".bias");
        return bias && bias->rank == 1 && bias->shape[0] == cols ? SFTI_STORED_TURNED
                                                                  : SFTI_STORED_PLAIN;
    }
    for (size_t i = 0; i <= SFTI_COUNT(inputs); i++) { /* layers that have as many inputs */
        const sft_tensor *other = i == 0 ? matrix_called(model, above, ".c_attn.weight")
                                         : matrix_called(model, block, inputs[i - 1]);
        if (other && other->shape[0] != other->shape[1]
            && (other->shape[0] == rows || other->shape[1] == rows))
            return other->shape[0] == rows ? SFTI_STORED_TURNED : SFTI_STORED_PLAIN;
    }
    return SFTI_STORED_UNKNOWN;
}
