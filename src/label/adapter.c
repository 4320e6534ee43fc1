/* Whether a model is an adapter, for the conversion of models. Tests: test_convert.c. */
#include "convert/adapter.h"
#include "safetensors_info.h"

static sft_code tell_whether_adapter(const sft_set *set, const sft_allocator *alloc,
                                     bool *is_adapter, sft_error *err) {
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    sft_info *info;
    sft_span kind;
    options.header_only = true;
    options.alloc = alloc;
    sft_code code = sft_info_open(set, NULL, NULL, &options, &info, err);
    if (code) return code;
    *is_adapter = sft_info_fact(info, SFT_FACT_KIND, &kind, NULL, NULL)
                  && (sft_span_equal(kind, sft_span_cstr("adapter"))
                      || sft_span_equal(kind, sft_span_cstr("control_lora")));
    sft_info_close(info);
    return SFT_OK;
}

sfti_adapter_test *const sfti_hook_adapter = tell_whether_adapter;
