/* Adapters read under the names of one program, for stack. Tests: tests/adapter/factors.py,
 * test_adapter_factors.c. */
#include "adapter/factored.h"

#include "base/error.h"
#include "set/image.h"

static void close_renamed(void *owner) { sft_adapter_conversion_free(owner); }

static uint32_t no_mode(const void *owner) {
    (void)owner;
    return 0;
}

static sft_code convert_input(sft_adapter_factors *f, sfti_merge_input *input,
                              const char *architecture, sft_adapter_conversion **out,
                              sft_error *err) {
    sft_adapter_conversion_options options = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
    options.to = f->options.names;
    options.architecture = architecture;
    options.config = input->config;
    options.alloc = &f->alloc;
    sft_code code = sft_adapter_conversion_new(input->set, &options, out, err);
    size_t left = code ? 0 : sft_adapter_conversion_unmatched(*out);
    if (left == 0) return code;
    code = sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET,
                            sft_adapter_conversion_unmatched_at(*out, 0), "expected modules whose "
                            "names in the other layout are known, found %zu others", left);
    sft_adapter_conversion_free(*out);
    return code;
}

/* What the adapter becomes is read as if it were in a file. */
static sft_code read_converted(sft_adapter_factors *f, sft_adapter_conversion *conversion,
                               sfti_merge_input *input, sft_error *err) {
    sft_plan_options plan = sfti_lora_plan(&f->alloc);
    sft_span config = sft_adapter_conversion_config(conversion);
    size_t count, pairs;
    sfti_image_of of = { .plan = &plan, .arena = &f->arena, .owner = conversion,
                         .close = close_renamed, .mode = no_mode, .serial = true };
    of.parts = sft_adapter_conversion_parts(conversion, &count);
    of.metadata = sft_adapter_conversion_pairs(conversion, &pairs);
    of.count = count, of.metadata_count = pairs;
    sft_code code = sfti_image_set(&of, NULL, &input->renamed, err);
    if (code) return code;
    sfti_lora_close(&input->lora);
    input->lora = (sfti_lora){ .arena.alloc = f->alloc };
    code = sfti_lora_open(input->renamed, config, &input->lora, err);
    if (!code) return SFT_OK;
    sft_set_close(input->renamed); /* so that another attempt begins anew */
    input->renamed = NULL;
    return code;
}

sft_code sfti_factored_rename(sft_adapter_factors *f, sft_error *err) {
    const char *architecture = f->options.architecture;
    sft_adapter_conversion *conversion;
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < f->input_count; k++) {
        f->blames = k;
        if (f->inputs[k]->renamed) continue;
        code = convert_input(f, f->inputs[k], architecture, &conversion, err);
        if (code) return code;
        if (!architecture) { /* the first one's is that of all */
            sft_span id = sft_span_cstr(sft_adapter_conversion_told(conversion)->architecture);
            architecture = sfti_arena_copy(&f->arena, id.data, id.len);
            if (!architecture) code = sfti_fail_memory(err, id.len);
        }
        if (code) sft_adapter_conversion_free(conversion);
        else code = read_converted(f, conversion, f->inputs[k], err);
    }
    return code;
}
