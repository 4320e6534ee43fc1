/* What a module of an adapter has, and how its failures are told. Tests: test_adapter.c. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "os/io.h"
#include "safetensors_codes.h"

const sft_tensor *sfti_lora_tensor(const sfti_lora *lora, const sfti_lora_module *module,
                                   sfti_adapter_slot slot) {
    uint32_t number = module->slot[slot];
    return number ? sft_set_tensor_at(lora->set, number - 1) : NULL;
}

const sft_tensor *sfti_lora_first(const sfti_lora *lora, const sfti_lora_module *m) {
    const sft_tensor *first = NULL;
    for (int i = 1; i < SFTI_SLOTS && !first; i++)
        if (i != SFTI_SLOT_ALPHA) first = sfti_lora_tensor(lora, m, (sfti_adapter_slot)i);
    return first;
}

sft_code sfti_lora_told(sft_code code, sft_error *err) {
    bool file = code == SFT_SIZE_MISMATCH || code == SFT_CAST_DTYPE || code == SFT_CAST_VALUE
             || code == SFT_INCOMPLETE || code == SFT_TENSOR_DUPLICATE
             || code == SFT_TENSOR_NOT_FOUND;
    if (file && err && err->hint == sft_code_describe(code)->hint) err->hint = SFT_HINT_NONE;
    return code;
}

const char *sfti_lora_method(const sfti_lora *lora, const sfti_lora_module *module) {
    static const char *const names[SFTI_ADAPTER_TYPES] = {
        "lora", "loha", "lokr", "glora", "ia3", "oft", "boft", "full", "other"
    };
    (void)lora;
    bool conv = module->type == SFTI_TYPE_LORA && module->kernel > 1;
    return conv ? "locon" : names[module->type];
}

sft_code sfti_lora_hint(sft_code code, sft_hint hint, sft_error *err) {
    sfti_hint(err, hint);
    return code;
}

static sft_span module_name(const void *ctx, uint32_t entry) {
    return ((const sfti_lora *)ctx)->modules[entry].name;
}

sft_code sfti_lora_names(const sfti_lora *lora, sfti_arena *arena, sfti_names *out,
                         sft_error *err) {
    if (!sfti_names_draw(out, lora->count, module_name, lora, arena))
        return sfti_fail_memory(err, lora->count * sizeof *out->slots);
    for (uint32_t i = 0; i < lora->count; i++)
        (void)sfti_names_add(out, lora->modules[i].name, i);
    return SFT_OK;
}
