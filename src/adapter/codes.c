/* Factors that are codes of floats: their values are not computed here, so such adapters are
 * refused. Tests: tests/cli/lora/codes.txt, tests/quant/near.py. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "convert/named.h"
#include "safetensors_codes.h"
#include "safetensors_convert.h"

/* The tensor, which nothing is computed from, that changes the values of this one; or NULL. */
static const sft_tensor *companion_of(const sfti_lora *lora, const sft_conversion *values,
                                      size_t i) {
    const sft_tensor *scale;
    if (sft_conversion_action(values, i, &scale) != SFT_CONVERT_SCALED) return NULL;
    size_t k = 0;
    while (k < lora->unread_count && sft_set_tensor_at(lora->set, lora->unread[k]) != scale) k++;
    return k < lora->unread_count ? scale : NULL;
}

sft_code sfti_lora_check_codes(const sfti_lora *lora, sft_error *err) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *values = NULL;
    sft_code code = SFT_OK;
    options.alloc = &lora->arena.alloc;
    if (lora->unread_count > 0)
        code = sft_conversion_new(lora->set, SFT_F32, &options, &values, err);
    for (size_t i = 0; !code && i < lora->count; i++)
        for (int slot = 1; !code && slot < SFTI_SLOTS; slot++) {
            const sfti_lora_module *m = &lora->modules[i];
            const sft_tensor *tensor = sfti_lora_tensor(lora, m, (sfti_adapter_slot)slot);
            const sft_tensor *scale = NULL;
            bool number = slot == SFTI_SLOT_ALPHA
                       || (m->type == SFTI_TYPE_IA3 && slot == SFTI_SLOT_IA3_ON_INPUT);
            if (!tensor) continue;
            /* Integers are codes of floats, whose scale nothing here tells. */
            if (!number && sft_dtype_describe(tensor->dtype)->kind != SFT_KIND_FLOAT) {
                code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                        "expected floats, found %s: codes of an adapter that is "
                                        "quantised, whose scale is not known here",
                                        sft_dtype_describe(tensor->dtype)->name);
                code = sfti_lora_hint(code, SFT_HINT_ADAPTER_PROGRAM, err);
            } else if (values && (scale = companion_of(lora, values, m->slot[slot] - 1)) != NULL) {
                code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                        "expected floats, found codes of an adapter that is "
                                        "quantised, beside which is \"%.*s\"",
                                        SFTI_CLIP(scale->name, 200));
                code = sfti_lora_hint(code, SFT_HINT_DECLARED_NAMES, err);
            }
        }
    sft_conversion_free(values);
    return code;
}
