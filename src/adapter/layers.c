/* Layers of factors, what is kept beside them, and models they are taken from. Tests:
 * tests/adapter/factors.py, test_adapter_factors.c. */
#include "adapter/factored.h"

#include "base/error.h"

/* ── Layers ── */

sfti_factor *sfti_factor_add(sft_adapter_factors *f) {
    sfti_factor *grown = sfti_arena_grow(&f->arena, f->layers, f->count, 1, &f->capacity,
                                        sizeof *grown);
    if (!grown) return NULL;
    f->layers = grown;
    grown[f->count] = (sfti_factor){ .dtype = SFT_F32, .alpha_dtype = SFT_F32, .scale = 1 };
    return &grown[f->count++];
}

sft_code sfti_factored_keep_part(sft_adapter_factors *f, sft_part part, sft_error *err) {
    sft_part *grown = sfti_arena_grow(&f->arena, f->kept, f->kept_count, 1, &f->kept_capacity,
                                      sizeof *grown);
    if (!grown) return sfti_fail_memory(err, sizeof *grown);
    f->kept = grown;
    grown[f->kept_count++] = part;
    return SFT_OK;
}

sft_code sfti_factored_keep(sft_adapter_factors *f, size_t input, size_t i, sft_error *err) {
    const sft_set *set = f->inputs[input]->set;
    sft_source *source = &f->sources[input][sft_set_tensor_shard(set, i)];
    return sfti_factored_keep_part(f, sft_part_of(sft_set_tensor_at(set, i), source), err);
}

sft_code sfti_factored_unmatched(sft_adapter_factors *f, sft_span name, sft_error *err) {
    sft_span *grown = sfti_arena_grow(&f->arena, f->unmatched, f->unmatched_count, 1,
                                      &f->unmatched_capacity, sizeof *grown);
    if (!grown) return sfti_fail_memory(err, sizeof *grown);
    f->unmatched = grown;
    grown[f->unmatched_count++] = name;
    return SFT_OK;
}

sft_code sfti_factored_refuse(const sfti_lora *lora, const sfti_lora_module *m, const char *what,
                              sft_error *err) {
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, m->name, "expected %s, found %s%s",
                            what, sfti_lora_method(lora, m),
                            m->slot[SFTI_SLOT_MAGNITUDE] ? " with DoRA's magnitudes" : "");
}

sft_dtype sfti_factored_dtype(const sft_adapter_factors *f, sft_dtype of) {
    if (f->options.dtype != SFT_DTYPE_COUNT) return (sft_dtype)f->options.dtype;
    if (of == SFT_F32 || of == SFT_F16 || of == SFT_BF16) return of;
    return of == SFT_F64 ? SFT_F32 : SFT_BF16;
}

static const char *copy(sft_adapter_factors *f, sft_span text) {
    return sfti_arena_copy(&f->arena, text.data, text.len);
}

sft_code sfti_factor_like(sft_adapter_factors *f, sfti_factor *layer, const sfti_lora *lora,
                         const sfti_lora_module *m, sft_error *err) {
    const sft_tensor *up = sfti_lora_tensor(lora, m, SFTI_SLOT_UP);
    const sft_tensor *down = sfti_lora_tensor(lora, m, SFTI_SLOT_DOWN);
    const sft_tensor *mid = sfti_lora_tensor(lora, m, SFTI_SLOT_MID);
    const sft_tensor *alpha = sfti_lora_tensor(lora, m, SFTI_SLOT_ALPHA);
    const sft_tensor *kernel = m->tucker ? mid : down; /* [rank, in, kernel...] */
    layer->told.name = m->name;
    layer->up = copy(f, up->name);
    layer->down = copy(f, down->name);
    layer->alpha = alpha ? copy(f, alpha->name) : NULL;
    if (!layer->up || !layer->down || (alpha && !layer->alpha))
        return sfti_fail_memory(err, up->name.len + down->name.len);
    layer->turned = sfti_ends(up->name, ".lora_embedding_A")
                 || sfti_ends(up->name, ".lora_embedding_B");
    layer->up_dims = up->rank > 2 ? up->rank : 2;
    layer->down_dims = kernel->rank;
    if (layer->up_dims > SFTI_FACTORED_DIMS || layer->down_dims > SFTI_FACTORED_DIMS
        || layer->down_dims < 2)
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, up->offset, up->name,
                                "expected factors of 2 to %d dimensions, found others",
                                SFTI_FACTORED_DIMS);
    for (uint32_t i = 0; i < layer->up_dims; i++) layer->up_shape[i] = 1;
    layer->up_shape[layer->turned ? 1 : 0] = m->out;
    for (uint32_t i = 0; i < layer->down_dims; i++) layer->down_shape[i] = kernel->shape[i];
    uint64_t rank = 0;
    if (m->tucker) (void)sfti_lora_shape(down, &rank, &layer->down_shape[1]); /* it may be flat */
    layer->conv = m->kernel > 1;
    layer->scale = m->scale;
    layer->told.rank_before = m->rank;
    layer->dtype = sfti_factored_dtype(f, up->dtype);
    if (alpha && (alpha->dtype == SFT_F16 || alpha->dtype == SFT_BF16))
        layer->alpha_dtype = alpha->dtype;
    return SFT_OK;
}

bool sfti_factor_named(sft_adapter_factors *f, sfti_factor *layer, sft_span name, bool peft,
                       uint64_t out, uint64_t in, const uint64_t *kernel, uint32_t dims) {
    sfti_arena *arena = &f->arena;
    layer->told.name = name;
    layer->up = sfti_arena_join(arena, name,
                                sft_span_cstr(peft ? ".lora_B.weight" : ".lora_up.weight"));
    layer->down = sfti_arena_join(arena, name,
                                  sft_span_cstr(peft ? ".lora_A.weight" : ".lora_down.weight"));
    layer->alpha = peft ? NULL : sfti_arena_join(arena, name, sft_span_cstr(".alpha"));
    if (dims > SFTI_FACTORED_DIMS - 2) dims = 0;
    layer->up_dims = layer->down_dims = 2 + dims;
    layer->up_shape[0] = out;
    layer->down_shape[1] = in;
    for (uint32_t i = 0; i < dims; i++) {
        layer->up_shape[2 + i] = 1;
        layer->down_shape[2 + i] = kernel[i];
        if (kernel[i] > 1) layer->conv = true;
    }
    return layer->up && layer->down && (peft || layer->alpha);
}

/* ── Models ── */

sft_code sfti_factored_scales(sft_adapter_factors *f, size_t number, const sft_set *model,
                              sft_error *err) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    options.alloc = &f->alloc;
    sft_conversion_free(f->scales[number]);
    f->scales[number] = NULL;
    return sft_conversion_new(model, SFT_F32, &options, &f->scales[number], err);
}

bool sfti_factored_readable(const sft_adapter_factors *f, size_t number, const sft_set *model,
                            size_t i) {
    static const sft_dtype floats[] = { SFT_F64, SFT_F32, SFT_F16, SFT_BF16, SFT_F8_E4M3,
                                        SFT_F8_E5M2 };
    sft_convert_action action = sft_conversion_action(f->scales[number], i, NULL);
    if (action == SFT_CONVERT_SCALED || action == SFT_CONVERT_SCALE) return false;
    for (size_t k = 0; k < SFTI_COUNT(floats); k++)
        if (sft_set_tensor_at(model, i)->dtype == floats[k]) return true;
    return false;
}

sft_code sfti_factored_not_readable(const sft_tensor *tensor, sft_error *err) {
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                            "expected a tensor of floats without a scale, found a quantised one");
}
