/* Models put together of layers of others, as mergekit's "slices" say. Tensors before layers are
 * those of the first slice's sources, those behind of the last one's, and layers are numbered as
 * they follow one another. Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define NO_TENSOR UINT32_MAX
#define LAYERS_MOST ((uint64_t)1 << 16)
#define ROWS_MOST ((uint64_t)1 << 22)

/* The tensors of one model by layers, each list in the order of the model. */
typedef struct slice_model {
    sft_span stack;
    uint64_t layers;
    uint32_t *first, *next; /* of each layer, after each tensor */
    size_t *counts;         /* of each layer */
    size_t outside[2];      /* tensors before the layers, and behind them */
} slice_model;

static bool slice_name_has(sft_span name, const char *word) {
    for (size_t i = 0, len = strlen(word); i + len <= name.len; i++)
        if (memcmp(name.data + i, word, len) == 0) return true;
    return false;
}

/* Words of names that stand behind the layers. The norm of embeddings (BLOOM) does not. */
static bool stands_behind(sft_span name) {
    static const char *const parts[] = { "lm_head", "ln_f", "embed_out", "output", "score",
                                         "classifier", "head" };
    for (size_t p = 0; p < SFTI_COUNT(parts); p++)
        if (slice_name_has(name, parts[p])) return true;
    return slice_name_has(name, "norm") && !slice_name_has(name, "emb");
}

static sft_code find_slice_layers(const sft_set *set, sfti_arena *arena, slice_model *out,
                            sft_error *err) {
    size_t count = sft_set_tensor_count(set);
    sft_span stack;
    uint64_t layer;
    *out = (slice_model){ .layers = 0 };
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        if (!sfti_merge_layer(tensor->name, &stack, &layer)) {
            out->outside[stands_behind(tensor->name)]++;
            continue;
        }
        if (out->layers == 0) out->stack = stack;
        if (!sft_span_equal(stack, out->stack) || layer >= LAYERS_MOST)
            return sfti_fail_tensor(err, SFT_BAD_ARGUMENT, tensor->offset, tensor->name,
                                    "expected one stack of at most 65536 layers to be cut into "
                                    "slices, found another beside \"%.*s\"",
                                    SFTI_CLIP(out->stack, 100));
        if (layer >= out->layers) out->layers = layer + 1;
    }
    out->first = sfti_arena_array(arena, out->layers, sizeof *out->first);
    out->counts = sfti_arena_array(arena, out->layers, sizeof *out->counts);
    out->next = sfti_arena_array(arena, count, sizeof *out->next);
    if (!out->first || !out->counts || !out->next)
        return sfti_fail_memory(err, count * sizeof *out->next);
    for (uint64_t i = 0; i < out->layers; i++) out->first[i] = NO_TENSOR, out->counts[i] = 0;
    for (size_t i = count; i-- > 0;) {
        if (!sfti_merge_layer(sft_set_tensor_at(set, i)->name, &stack, &layer)) continue;
        out->next[i] = out->first[layer];
        out->first[layer] = (uint32_t)i;
        out->counts[layer]++;
    }
    return SFT_OK;
}

typedef struct slice_run {
    const sfti_merge_plan *plan;
    sfti_arena *arena;
    slice_model *models;
    sfti_merge_row *rows; /* NULL: they are counted only */
    size_t count;
    size_t *blame;
} slice_run;

static sft_code add_slice_row(slice_run *run, size_t slice, uint64_t offset, uint64_t layer,
                              uint32_t tensor, bool in_layer, sft_error *err) {
    const sfti_merge_slice *s = &run->plan->slices[slice];
    if (run->count == ROWS_MOST)
        return sfti_fail(err, SFT_TOO_MANY_TENSORS, "expected at most %llu tensors, found more",
                         (unsigned long long)ROWS_MOST);
    if (!run->rows) {
        run->count++;
        return SFT_OK;
    }
    sfti_merge_row *row = &run->rows[run->count++];
    *row = (sfti_merge_row){ .tensor = tensor, .from = s->sources[0].model,
                             .slice = (uint32_t)slice + 1, .offset = offset };
    const sft_tensor *ref = sft_set_tensor_at(run->plan->models[row->from].set, tensor);
    row->spec.name = ref->name;
    if (!in_layer) return SFT_OK;
    char *name = sfti_arena_array(run->arena, ref->name.len + SFTI_UINT_SIZE, 1);
    if (!name) return sfti_fail_memory(err, ref->name.len);
    row->spec.name = (sft_span){ name, sfti_merge_layer_name(ref->name, layer, name,
                                                             ref->name.len + SFTI_UINT_SIZE) };
    row->layer = offset;
    row->layers = s->layers;
    return SFT_OK;
}

/* Tensors outside of layers, of the first or the last slice. */
static sft_code add_outside(slice_run *run, bool behind, sft_error *err) {
    size_t slice = behind ? run->plan->slice_count - 1 : 0;
    const sfti_merge_slice *s = &run->plan->slices[slice];
    const sft_set *set = run->plan->models[s->sources[0].model].set;
    size_t most = run->models[s->sources[0].model].outside[behind];
    sft_code code = SFT_OK;
    sft_span stack;
    uint64_t layer;
    for (size_t k = 1; k < s->count && !run->plan->ignore_missing; k++) {
        if (run->models[s->sources[k].model].outside[behind] <= most) continue;
        *run->blame = s->sources[k].model;
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected as many tensors %s the layers as the "
                         "first source of the slice has (%zu), found more",
                         behind ? "behind" : "before", most);
    }
    for (size_t i = 0; !code && i < sft_set_tensor_count(set); i++) {
        sft_span name = sft_set_tensor_at(set, i)->name;
        if (sfti_merge_layer(name, &stack, &layer) || stands_behind(name) != behind) continue;
        code = add_slice_row(run, slice, 0, 0, (uint32_t)i, false, err);
    }
    return code;
}

/* The layer has the same tensors in all sources: those that only another has would be lost. */
static sft_code check_slice_layer(const slice_run *run, const sfti_merge_slice *s, uint64_t offset,
                            sft_error *err) {
    size_t most = run->models[s->sources[0].model].counts[s->sources[0].first + offset];
    for (size_t k = 1; k < s->count && !run->plan->ignore_missing; k++) {
        uint64_t layer = s->sources[k].first + offset;
        if (run->models[s->sources[k].model].counts[layer] <= most) continue;
        *run->blame = s->sources[k].model;
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected as many tensors in layer %llu as the "
                         "other sources of its slice have in theirs (%zu), found more",
                         (unsigned long long)layer, most);
    }
    return SFT_OK;
}

static sft_code add_slices(slice_run *run, sft_error *err) {
    const sfti_merge_plan *plan = run->plan;
    uint64_t layer = 0;
    run->count = 0;
    sft_code code = add_outside(run, false, err);
    for (size_t n = 0; !code && n < plan->slice_count; n++) {
        const sfti_merge_slice *s = &plan->slices[n];
        for (uint64_t k = 0; !code && k < s->layers; k++, layer++) {
            const slice_model *m = &run->models[s->sources[0].model];
            code = check_slice_layer(run, s, k, err);
            for (uint32_t i = m->first[s->sources[0].first + k]; !code && i != NO_TENSOR;
                 i = m->next[i])
                code = add_slice_row(run, n, k, layer, i, true, err);
        }
    }
    return code ? code : add_outside(run, true, err);
}

sft_code sfti_merge_slices_list(const sfti_merge_plan *plan, sfti_arena *arena,
                                sfti_merge_row **rows, size_t *count, size_t *blame,
                                sft_error *err) {
    slice_run run = { .plan = plan, .arena = arena, .blame = blame };
    run.models = sfti_arena_array(arena, plan->count, sizeof *run.models);
    sft_code code = run.models ? SFT_OK : sfti_fail_memory(err, plan->count * sizeof *run.models);
    for (size_t m = 0; !code && m < plan->count; m++) {
        *blame = m;
        code = find_slice_layers(plan->models[m].set, arena, &run.models[m], err);
    }
    for (size_t n = 0; !code && n < plan->slice_count; n++)
        for (size_t k = 0; !code && k < plan->slices[n].count; k++) {
            const sfti_slice_source *source = &plan->slices[n].sources[k];
            uint64_t end = source->first + plan->slices[n].layers;
            *blame = source->model;
            if (end > run.models[source->model].layers)
                code = sfti_fail(err, SFT_SIZE_MISMATCH, "expected a layer_range within the %llu "
                                 "layers of the model, found one up to %llu",
                                 (unsigned long long)run.models[source->model].layers,
                                 (unsigned long long)end);
        }
    if (!code) code = add_slices(&run, err);
    if (code) return code;
    *rows = run.rows = sfti_arena_array(arena, run.count, sizeof **rows);
    if (!run.rows) return sfti_fail_memory(err, run.count * sizeof **rows);
    code = add_slices(&run, err);
    *count = run.count;
    return code;
}
