/* Adapters of a lower rank, and sums of adapters. Tests: tests/adapter/factors.py,
 * test_adapter_factors.c. */
#include "adapter/factored.h"

#include "base/checked.h"
#include "base/error.h"
#include "os/io.h"

#include <string.h>

/* ── Resize ── */

static sft_code resize_layer(sft_adapter_factors *f, sfti_factor *layer, const sfti_rank_rule *rule,
                             sfti_arena *arena, sfti_lowrank *out, sft_error *err) {
    const sfti_lora *lora = &f->inputs[0]->lora;
    sfti_matrix up, down;
    sft_code code = sfti_lora_factors(lora, &lora->modules[layer->number], arena, &up, &down, err);
    return code ? code : sfti_lowrank_of_product(&up, &down, rule, arena, out, err);
}

/* Refuses tensors of a LoRA module that nothing here knows: they may be of its rank, or change what
 * its factors mean. */
static sft_code check_unread(sft_adapter_factors *f, const sfti_lora *lora, sft_error *err) {
    sfti_names names;
    if (lora->unread_count == 0) return SFT_OK;
    sft_code code = sfti_lora_names(lora, &f->arena, &names, err);
    for (size_t k = 0; !code && k < lora->unread_count; k++) {
        const sft_tensor *tensor = sft_set_tensor_at(lora->set, lora->unread[k]);
        for (size_t end = tensor->name.len; end > 0; end--) {
            if (end == tensor->name.len || tensor->name.data[end] != '.') continue;
            uint32_t at = sfti_names_find(&names, (sft_span){ tensor->name.data, end });
            if (at == SFTI_NO_NAME || lora->modules[at].type != SFTI_TYPE_LORA) continue;
            code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                    "expected factors, alphas, biases and magnitudes in a LoRA "
                                    "module, found another tensor, which may be of its rank");
            return sfti_lora_hint(code, SFT_HINT_ADAPTER_TENSOR, err);
        }
    }
    return code;
}

/* What is written as it is: all but the factors and alphas of LoRA modules. */
static sft_code keep_others(sft_adapter_factors *f, const sfti_lora *lora, sft_error *err) {
    static const sfti_adapter_slot replaced[] = { SFTI_SLOT_UP, SFTI_SLOT_DOWN, SFTI_SLOT_MID,
                                                  SFTI_SLOT_ALPHA };
    size_t count = sft_set_tensor_count(lora->set);
    bool *gone = sfti_arena_array(&f->arena, count, sizeof *gone);
    sft_code code = SFT_OK;
    if (!gone) return sfti_fail_memory(err, count);
    memset(gone, 0, count);
    for (size_t i = 0; i < lora->count; i++)
        for (size_t k = 0; k < SFTI_COUNT(replaced); k++) {
            uint32_t slot = lora->modules[i].slot[replaced[k]];
            if (slot && lora->modules[i].type == SFTI_TYPE_LORA) gone[slot - 1] = true;
        }
    for (size_t i = 0; !code && i < count; i++)
        if (!gone[i]) code = sfti_factored_keep(f, 0, i, err);
    return code;
}

sft_code sfti_plan_resize(sft_adapter_factors *f, sft_error *err) {
    const sfti_lora *lora = &f->inputs[0]->lora;
    sft_code code = SFT_OK;
    f->keeps_metadata = true;
    f->compute = resize_layer;
    for (size_t i = 0; !code && i < lora->count; i++) {
        const sfti_lora_module *m = &lora->modules[i];
        if (m->type == SFTI_TYPE_FULL || m->type == SFTI_TYPE_IA3) {
            f->notes[SFT_ADAPTER_KEPT_WHOLE]++;
            continue;
        }
        if (m->type != SFTI_TYPE_LORA)
            return sfti_factored_refuse(lora, m, "LoRA modules (simplify makes them)", err);
        const sft_tensor *bias = sfti_lora_tensor(lora, m, SFTI_SLOT_BIAS);
        sfti_factor *layer = sfti_factor_add(f);
        if (!layer) return sfti_fail_memory(err, sizeof *layer);
        code = sfti_factor_like(f, layer, lora, m, err);
        layer->number = i;
        bool plain = !(m->scale < 1) && !(m->scale > 1);
        f->notes[SFT_ADAPTER_FOLDED] += !layer->alpha && !plain;
        f->notes[SFT_ADAPTER_UNTOLD] += !m->has_alpha && sfti_begins(m->name, "base_model.");
        f->notes[SFT_ADAPTER_KEPT_DORA] += m->slot[SFTI_SLOT_MAGNITUDE] != 0;
        if (!code && bias && !plain)
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, bias->offset, bias->name,
                                    "expected factors without a bias, or a scale of 1, found a "
                                    "bias that is scaled with them");
    }
    if (!code && f->count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected LoRA modules, found none");
    if (!code) code = check_unread(f, lora, err);
    return code ? code : keep_others(f, lora, err);
}

/* ── Stack ── */

/* One layer of the sum: which module of each adapter. */
typedef struct stack {
    uint32_t *modules; /* of layer i in adapter k: + 1, at i * adapters + k */
} stack;

static double stack_weight(const sft_adapter_factors *f, size_t k, const sfti_lora_module *m) {
    return m->scale * f->inputs[k]->strength;
}

static sft_code stack_layer(sft_adapter_factors *f, sfti_factor *layer, const sfti_rank_rule *rule,
                            sfti_arena *arena, sfti_lowrank *out, sft_error *err) {
    const uint32_t *modules = ((const stack *)f->ctx)->modules + layer->number * f->input_count;
    sfti_matrix ups, downs, up, down;
    uint64_t at = 0, rank = layer->told.rank_before, rows = 0, cols = 0;
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < f->input_count; k++) {
        if (!modules[k]) continue;
        const sfti_lora *lora = &f->inputs[k]->lora;
        const sfti_lora_module *m = &lora->modules[modules[k] - 1];
        layer->blames = k;
        code = sfti_lora_factors(lora, m, arena, &up, &down, err);
        if (!code && at == 0) {
            rows = up.rows, cols = down.cols;
            code = sfti_matrix_new(arena, rows, rank, &ups, err);
            if (!code) code = sfti_matrix_new(arena, rank, cols, &downs, err);
        }
        if (code) return code;
        /* the first one's factors stay as they are */
        double by = stack_weight(f, k, m) / layer->scale;
        for (uint64_t i = 0; i < rows; i++)
            for (uint64_t j = 0; j < up.cols; j++)
                ups.at[i * rank + at + j] = (float)(by * (double)up.at[i * up.cols + j]);
        memcpy(downs.at + at * cols, down.at, (size_t)(down.rows * cols) * sizeof(float));
        at += up.cols;
    }
    if (rule) return sfti_lowrank_of_product(&ups, &downs, rule, arena, out, err);
    out->up = ups;
    out->down = downs;
    return SFT_OK;
}

static sft_span ending_of(const sfti_lora *lora, const sfti_lora_module *m) {
    const sft_tensor *up = sfti_lora_tensor(lora, m, SFTI_SLOT_UP);
    return (sft_span){ up->name.data + m->name.len, up->name.len - m->name.len };
}

static sft_span layer_name(const void *ctx, uint32_t entry) {
    return ((const sft_adapter_factors *)ctx)->layers[entry].told.name;
}

/* If a part of the model is in earlier adapters and in this one, but no layer of it in both, their
 * names may be two for the same layers. */
static sft_code check_names(const sft_adapter_factors *f, const uint32_t *modules, size_t k,
                            sft_error *err) {
    struct { bool before, both; uint32_t first; } parts[SFTI_ADAPTER_PARTS];
    memset(parts, 0, sizeof parts);
    for (size_t n = 0; n < f->count; n++) {
        sfti_part part = sfti_lora_part(f->layers[n].told.name);
        uint32_t own = modules[n * f->input_count + k];
        bool other = false;
        for (size_t j = 0; j < k; j++) other = other || modules[n * f->input_count + j];
        parts[part].before = parts[part].before || other;
        parts[part].both = parts[part].both || (other && own);
        if (parts[part].first == 0) parts[part].first = own;
    }
    for (size_t i = 0; i < SFTI_ADAPTER_PARTS; i++)
        if (parts[i].first && parts[i].before && !parts[i].both)
            return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET,
                                    f->inputs[k]->lora.modules[parts[i].first - 1].name,
                                    "expected names of layers as the other adapters have, found "
                                    "none of theirs");
    return SFT_OK;
}

/* Kernels of 1 x 3 and 3 x 1 have as many elements. */
static bool same_kernel(const sfti_factor *layer, const sfti_lora *lora,
                        const sfti_lora_module *m) {
    const sft_tensor *kernel = sfti_lora_tensor(lora, m, m->tucker ? SFTI_SLOT_MID
                                                                   : SFTI_SLOT_DOWN);
    if (m->kernel <= 1) return true;
    return kernel->rank == layer->down_dims
        && memcmp(kernel->shape + 2, layer->down_shape + 2,
                  (kernel->rank - 2) * sizeof *kernel->shape) == 0;
}

static sft_code stack_module(sft_adapter_factors *f, stack *all, sfti_names *names, size_t k,
                             size_t i, sft_error *err) {
    const sfti_lora *lora = &f->inputs[k]->lora;
    const sfti_lora_module *m = &lora->modules[i];
    if (m->type != SFTI_TYPE_LORA || m->slot[SFTI_SLOT_MAGNITUDE] || m->slot[SFTI_SLOT_BIAS]
        || m->slot[SFTI_SLOT_DIFF_BIAS])
        return sfti_factored_refuse(lora, m, "plain LoRA modules (simplify makes them)", err);
    uint32_t found = sfti_names_find(names, m->name);
    double weight = stack_weight(f, k, m);
    if (found == SFTI_NO_NAME) {
        sfti_factor *layer = sfti_factor_add(f);
        if (!layer) return sfti_fail_memory(err, sizeof *layer);
        found = (uint32_t)f->count - 1;
        layer->number = found;
        sft_code code = sfti_factor_like(f, layer, lora, m, err);
        if (code) return code;
        bool peft = sfti_begins(m->name, "base_model.") && !layer->alpha;
        f->notes[SFT_ADAPTER_FOLDED] += peft && m->has_alpha;
        f->notes[SFT_ADAPTER_UNTOLD] += peft && !m->has_alpha;
        layer->told.rank_before = 0;
        layer->scale = weight;
        (void)sfti_names_add(names, m->name, found);
    }
    sfti_factor *layer = &f->layers[found];
    const sft_tensor *up = sfti_lora_tensor(lora, m, SFTI_SLOT_UP);
    if (layer->dtype != sfti_factored_dtype(f, up->dtype))
        layer->dtype = sfti_factored_dtype(f, SFT_F32);
    for (size_t j = 0; j < k; j++) {
        uint32_t other = all->modules[found * f->input_count + j];
        const sfti_lora *before = &f->inputs[j]->lora;
        if (!other) continue;
        const sfti_lora_module *o = &before->modules[other - 1];
        if (o->out != m->out || o->in != m->in || o->kernel != m->kernel)
            return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, up->offset, up->name,
                                    "expected a layer of %llu x %llu as in the other adapter, "
                                    "found %llu x %llu", (unsigned long long)o->out,
                                    (unsigned long long)o->in, (unsigned long long)m->out,
                                    (unsigned long long)m->in);
        if (!same_kernel(layer, lora, m))
            return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, up->offset, up->name,
                                    "expected a kernel as in the other adapter, found another");
        if (!sft_span_equal(ending_of(before, o), ending_of(lora, m)))
            return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, up->offset, up->name,
                                    "expected a name as the other adapter has, found another "
                                    "layout of names");
    }
    bool none = !(layer->scale < 0) && !(layer->scale > 0);
    if (none) layer->scale = weight;
    layer->told.rank_before += m->rank;
    all->modules[found * f->input_count + k] = (uint32_t)i + 1;
    return SFT_OK;
}

/* Those of the base model are not added up, and have to be of one. */
static sft_code check_bases(sft_adapter_factors *f, size_t k, sft_error *err) {
    const sfti_lora *lora = &f->inputs[k]->lora;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < lora->base_count; i++) {
        bool has = false;
        for (size_t j = 0; !code && j < k && !has; j++)
            code = sfti_lora_same_bases(lora, &f->inputs[j]->lora, i, &has, err);
        f->notes[SFT_ADAPTER_LEFT_BASES] += !has;
    }
    return code;
}

sft_code sfti_plan_stack(sft_adapter_factors *f, sft_error *err) {
    stack *all = sfti_arena_array(&f->arena, 1, sizeof *all);
    sfti_names names;
    uint64_t modules = 0, cells = 0;
    sft_code code = SFT_OK;
    if (!all) return sfti_fail_memory(err, sizeof *all);
    for (size_t k = 0; !code && k < f->input_count; k++) {
        f->blames = k;
        code = check_bases(f, k, err);
    }
    if (!code && f->options.names) code = sfti_factored_rename(f, err);
    if (code) return code;
    for (size_t k = 0; k < f->input_count; k++) {
        const sfti_lora *lora = &f->inputs[k]->lora;
        f->blames = k;
        if (lora->unread_count)
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET,
                                    sft_set_tensor_at(lora->set, lora->unread[0])->name,
                                    "expected tensors of LoRA modules alone, found another one");
        modules += lora->count;
    }
    f->keeps_metadata = f->input_count == 1 && !f->options.names;
    if (!sfti_mul(modules, f->input_count, &cells)) return sfti_fail_memory(err, UINT64_MAX);
    all->modules = sfti_arena_array(&f->arena, cells, sizeof *all->modules);
    if (!all->modules || !sfti_names_draw(&names, modules, layer_name, f, &f->arena))
        return sfti_fail_memory(err, cells * sizeof *all->modules);
    memset(all->modules, 0, (size_t)cells * sizeof *all->modules);
    for (size_t k = 0; !code && k < f->input_count; k++) {
        f->blames = k;
        for (size_t i = 0; !code && i < f->inputs[k]->lora.count; i++)
            code = stack_module(f, all, &names, k, i, err);
        if (!code && k > 0 && !f->options.names) code = check_names(f, all->modules, k, err);
    }
    for (size_t i = 0; !code && i < f->count; i++) {
        bool none = !(f->layers[i].scale < 0) && !(f->layers[i].scale > 0);
        f->layers[i].told.left_out = none; /* no effect at all */
        if (none) f->layers[i].scale = 1;
    }
    f->ctx = all;
    f->compute = stack_layer;
    return code;
}
