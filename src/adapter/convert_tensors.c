/* Tensors of a module under the names of another format. Tests: tests/layout/run.py. */
#include "adapter/convert_names.h"

#include "base/error.h"
#include "safetensors_cast.h"

#include <string.h>

#define PEFT_ENDS \
    { ".lora_B.weight", ".lora_A.weight", NULL, NULL, ".lora_magnitude_vector", ".lora_B.bias" }

static const char *const ends_of[][6] = { /* by format: up, down, mid, alpha, magnitude, bias */
    [SFT_ADAPTER_KOHYA] = { ".lora_up.weight", ".lora_down.weight", ".lora_mid.weight", ".alpha",
                            ".dora_scale", NULL },
    [SFT_ADAPTER_PEFT] = PEFT_ENDS,
    [SFT_ADAPTER_DIFFUSERS] = PEFT_ENDS,
    [SFT_ADAPTER_COMFY] = { ".lora_B.weight", ".lora_A.weight", NULL, ".alpha", ".dora_scale",
                            NULL },
};

const char *sfti_convert_ending(const sfti_convert_run *run, sfti_convert_end_kind kind) {
    return ends_of[run->to][kind];
}

/* ── Tensors ── */

bool sfti_convert_is_peft(const sfti_convert_run *run) {
    return run->to == SFT_ADAPTER_PEFT || run->to == SFT_ADAPTER_DIFFUSERS;
}

sft_code sfti_convert_refuse(const sfti_convert_run *run, const sfti_lora_module *m,
                             const char *what) {
    size_t i = 1;
    while (i < SFTI_SLOTS - 1 && !m->slot[i]) i++;
    const sft_tensor *first = sfti_lora_tensor(run->lora, m, (sfti_adapter_slot)i);
    return sfti_fail_tensor(run->err, SFT_CAST_DTYPE, SFT_NO_OFFSET, first ? first->name : m->name,
                            "expected %s", what);
}

sft_part sfti_convert_part(const sfti_convert_run *run, uint32_t slot) {
    const sft_tensor *tensor = sft_set_tensor_at(run->lora->set, slot - 1);
    size_t shard = sft_set_tensor_shard(run->lora->set, slot - 1);
    return sft_part_of(tensor, &run->out->sources[shard]);
}

sft_code sfti_convert_add(sfti_convert_run *run, sft_span module, const char *end,
                          const sft_part *from,
                          bool composed, uint32_t rank, const uint64_t *shape) {
    sft_spec spec = from->spec;
    if (!end) return sfti_fail_memory(run->err, 1);
    spec.rank = rank, spec.shape = shape;
    return sfti_layout_out_add(&run->out->out, module, sft_span_cstr(end), &spec,
                               composed ? NULL : from, run->err);
}

/* A scalar; like: an alpha of the input, whose dtype it has if that holds the value. */
static sft_code add_alpha(sfti_convert_run *run, sft_span module, double value,
                          const sft_part *like) {
    uint8_t bytes[8], again[8];
    float wide = (float)value, back = 0;
    sft_spec spec = { .dtype = SFT_F32, .rank = 0 };
    uint64_t one[1] = { 1 };
    const char *end = ends_of[run->to][SFTI_END_ALPHA];
    sft_dtype dtype = like ? like->spec.dtype : SFT_F32;
    sft_span word = run->alpha_form;
    for (int i = 0; !like && i < SFT_DTYPE_COUNT; i++) {
        const char *name = sft_dtype_describe((sft_dtype)i)->name;
        if (word.len == strlen(name) + 2 && memcmp(word.data, name, word.len - 2) == 0)
            dtype = (sft_dtype)i;
    }
    if (!end) return SFT_OK;
    spec.rank = like ? like->spec.rank : word.len > 0 && word.data[word.len - 1] == '1';
    if (spec.rank > 1) spec.rank = 0;
    spec.shape = one;
    sfti_floats_turn(&wide, 1);
    memcpy(bytes, &wide, 4);
    if (dtype != SFT_F32 && sft_dtype_describe(dtype)->kind == SFT_KIND_FLOAT
        && !sft_cast(SFT_F32, &wide, dtype, again, 1, NULL, NULL, NULL)
        && !sft_cast(dtype, again, SFT_F32, &back, 1, NULL, NULL, NULL)
        && memcmp(&back, &wide, 4) == 0) {
        spec.dtype = dtype;
        memcpy(bytes, again, 8);
    }
    char *kept = sfti_arena_copy(&run->out->out.arena, (const char *)bytes, 8);
    sft_source *source = sfti_arena_take(&run->out->out.arena, sizeof *source);
    if (!kept || !source) return sfti_fail_memory(run->err, sizeof *source);
    *source = sft_source_memory(kept, 8);
    sft_part part = { spec, source, 0 };
    return sfti_layout_out_add(&run->out->out, module, sft_span_cstr(end), &spec, &part, run->err);
}

sft_code sfti_convert_take_name(sfti_convert_run *run, const sfti_convert_layer *layer,
                                sft_span pattern, sft_span *out) {
    *out = sfti_convert_name(run, layer, pattern);
    if (out->len == 0) return sfti_fail_memory(run->err, SFTI_LAYOUT_NAME);
    uint32_t number = run->written_count;
    run->written[number] = *out;
    if (sfti_names_add(&run->names, *out, number) != number) {
        bool several = run->to == SFT_ADAPTER_PEFT && run->out->count > 0
                    && !sft_span_equal(run->out->modules[0].component, layer->component->name);
        return sfti_convert_refuse(run, layer->module, several
            ? "modules of one component for PEFT, found several, which diffusers' format has a "
              "place for"
            : "one module for each layer of the other layout, found another for this one");
    }
    run->written_count++;
    return SFT_OK;
}

static sft_code note_module(sfti_convert_run *run, sft_span name, const sfti_convert_layer *layer,
                            uint64_t rank, double alpha) {
    sfti_lora_converted *out = run->out;
    sfti_lora_written *grown = sfti_arena_grow(&out->out.arena, out->modules, out->count, 1,
                                               &out->room, sizeof *grown);
    char text[96];
    if (!grown) return sfti_fail_memory(run->err, sizeof *grown);
    out->modules = grown;
    sft_span prefix = sfti_convert_prefix(run, layer, text);
    const sfti_lora_module *m = layer->module;
    bool bias = m->type == SFTI_TYPE_LORA && m->slot[SFTI_SLOT_BIAS];
    grown[out->count++] = (sfti_lora_written){ sfti_from(name, prefix.len), layer->component->name,
                                               rank, alpha, m->slot[SFTI_SLOT_MAGNITUDE] != 0,
                                               bias };
    return SFT_OK;
}

sft_code sfti_convert_add_scale(sfti_convert_run *run, sft_span name,
                                const sfti_convert_layer *layer,
                                uint64_t rank, double alpha) {
    const sfti_lora_module *m = layer->module;
    sft_part like = { .source = NULL };
    bool tensor = m->slot[SFTI_SLOT_ALPHA] != 0;
    run->out->resized = run->out->resized || rank != m->rank
                     || alpha != m->scale * (double)m->rank;
    if (tensor) like = sfti_convert_part(run, m->slot[SFTI_SLOT_ALPHA]);
    bool writes = tensor || (m->has_alpha && !sfti_is(run->alpha_form, "none"))
               || alpha != (double)rank;
    sft_code code = writes ? add_alpha(run, name, alpha, tensor ? &like : NULL) : SFT_OK;
    return code ? code : note_module(run, name, layer, rank, alpha);
}

const char *sfti_convert_leaf(const sfti_convert_run *run, const sfti_lora_module *m,
                              sfti_adapter_slot slot) {
    const sft_tensor *tensor = sfti_lora_tensor(run->lora, m, slot);
    bool lora = m->type == SFTI_TYPE_LORA;
    sft_span own = sfti_from(tensor->name, m->name.len);
    if (lora && slot == SFTI_SLOT_UP) return ends_of[run->to][SFTI_END_UP];
    if (lora && slot == SFTI_SLOT_DOWN) return ends_of[run->to][SFTI_END_DOWN];
    if (lora && slot == SFTI_SLOT_MID) return ends_of[run->to][SFTI_END_MID];
    if (slot == SFTI_SLOT_MAGNITUDE) return ends_of[run->to][SFTI_END_MAGNITUDE];
    if (!sfti_convert_is_peft(run)) return sfti_arena_copy(&run->out->out.arena, own.data, own.len);
    return lora && slot == SFTI_SLOT_BIAS ? ends_of[run->to][SFTI_END_BIAS] : NULL;
}
