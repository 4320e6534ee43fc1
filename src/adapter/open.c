/* Adapters for programs: what they hold. Tests: test_adapter.c. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "base/options.h"
#include "safetensors_adapter.h"

#include <string.h>

sft_plan_options sfti_lora_plan(const sft_allocator *alloc) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    plan.has_metadata = true;
    plan.level = SFT_LEVEL_COMPAT;
    plan.alloc = alloc;
    return plan;
}

sft_code sfti_lora_save(const sft_part *parts, size_t count, const sft_pair *pairs,
                        size_t pair_count, const sft_allocator *alloc, sft_sink sink,
                        const sft_job *job, sft_error *err) {
    sft_plan_options plan = sfti_lora_plan(alloc);
    return sft_save_parts(parts, count, pairs, pair_count, &plan, sink, job, err);
}

struct sft_adapter {
    sft_allocator alloc;
    sfti_lora lora;
    sft_adapter_module *modules;
};

static SFTI_OPTIONS_TAKE(adapter_take, sft_adapter_options, SFT_ADAPTER_OPTIONS_INIT, alloc)

sft_code sft_adapter_open(const sft_set *set, const sft_adapter_options *options,
                          sft_adapter **out, sft_error *err) {
    sft_adapter_options own;
    if (out) *out = NULL;
    if (!set || !out)
        return sfti_misuse(err, "expected an adapter and a place for it, found NULL");
    sft_code code = adapter_take(options, &own, err);
    if (code) return code;
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_adapter *a = sfti_take(&alloc, sizeof *a);
    if (!a) return sfti_fail_memory(err, sizeof *a);
    memset(a, 0, sizeof *a);
    a->alloc = a->lora.arena.alloc = alloc;
    code = sfti_lora_open(set, own.config, &a->lora, err);
    if (!code && a->lora.count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected an adapter (LoRA and the like), found none of its tensors");
    if (!code) {
        a->modules = sfti_arena_array(&a->lora.arena, a->lora.count, sizeof *a->modules);
        if (!a->modules) code = sfti_fail_memory(err, a->lora.count * sizeof *a->modules);
    }
    for (size_t i = 0; !code && i < a->lora.count; i++) {
        const sfti_lora_module *m = &a->lora.modules[i];
        a->modules[i] = (sft_adapter_module){
            m->name, sfti_lora_method(&a->lora, m), m->slot[SFTI_SLOT_MAGNITUDE] != 0,
            m->has_alpha, m->has_alpha ? m->alpha : 0, m->scale, m->rank, m->out, m->in
        };
    }
    if (code) sft_adapter_close(a);
    else *out = a;
    return sfti_lora_told(code, err);
}

void sft_adapter_close(sft_adapter *adapter) {
    if (!adapter) return;
    sft_allocator alloc = adapter->alloc;
    sfti_lora_close(&adapter->lora);
    sfti_release(&alloc, adapter, sizeof *adapter);
}

size_t sft_adapter_module_count(const sft_adapter *adapter) { return adapter->lora.count; }

const sft_adapter_module *sft_adapter_module_at(const sft_adapter *adapter, size_t i) {
    return i < adapter->lora.count ? &adapter->modules[i] : NULL;
}

sft_code sft_adapter_module_norm(const sft_adapter *adapter, size_t i, double *out,
                                 sft_error *err) {
    if (!adapter || !out || i >= adapter->lora.count)
        return sfti_misuse(err, "expected a module of the adapter and a place for its norm, found "
                           "%s", adapter && out ? "a higher number" : "NULL");
    const sfti_lora_module *m = &adapter->lora.modules[i];
    return sfti_lora_told(sfti_lora_norm(&adapter->lora, m, out, err), err);
}

size_t sft_adapter_other_count(const sft_adapter *adapter) { return adapter->lora.unread_count; }

sft_span sft_adapter_other_at(const sft_adapter *adapter, size_t i) {
    if (i >= adapter->lora.unread_count) return (sft_span){ "", 0 };
    return sft_set_tensor_at(adapter->lora.set, adapter->lora.unread[i])->name;
}
