/* Factors of another rank: options, inputs, layers, the threads that compute them. Tests:
 * tests/adapter/factors.py, test_adapter_factors.c. */
#include "adapter/factored.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "os/workers.h"
#include "safetensors_cast.h"

#include <string.h>

#define RANK_LIMIT UINT64_C(65536)
#define RULE_MOST 128 /* where a rule has no rank, of what has no rank of its own */

/* How many inputs a verb takes, and how many of them are adapters. */
static const struct factored_verb {
    size_t least, most, adapters;
    bool needs_rule, may_be_exact;
    sft_code (*plan)(sft_adapter_factors *f, sft_error *err);
} verbs[] = {
    [SFT_ADAPTER_RESIZE] = { 1, 1, 1, true, false, sfti_plan_resize },
    [SFT_ADAPTER_STACK] = { 1, SIZE_MAX, SIZE_MAX, false, true, sfti_plan_stack },
    [SFT_ADAPTER_EXTRACT] = { 2, 2, 0, true, false, sfti_plan_extract },
    [SFT_ADAPTER_SIMPLIFY] = { 1, 2, 1, true, true, sfti_plan_simplify },
};

static SFTI_OPTIONS_TAKE(factors_take, sft_adapter_factors_options,
                         SFT_ADAPTER_FACTORS_OPTIONS_INIT, alloc)

/* ── Options ── */

static sft_code check_factors(const sft_adapter_factors *f, sft_error *err) {
    const sft_adapter_factors_options *o = &f->options;
    bool valued = o->rule != SFT_ADAPTER_RANK && o->rule != SFT_ADAPTER_EXACT;
    double most = o->rule == SFT_ADAPTER_RATIO ? 1e30 : 1;
    bool stacks = f->verb == SFT_ADAPTER_STACK;
    if (o->rule > SFT_ADAPTER_EXACT || o->names > (stacks ? SFT_ADAPTER_DIFFUSERS
                                                          : SFT_ADAPTER_COMFY))
        return sfti_misuse(err, "expected a rule and names that are known, found another number");
    if (o->rank > RANK_LIMIT || o->conv_rank > RANK_LIMIT)
        return sfti_misuse(err, "expected ranks of at most %llu, found a higher one",
                           (unsigned long long)RANK_LIMIT);
    if (valued && !(o->value > 0 && o->value <= most))
        return sfti_misuse(err, "expected a number above 0 and up to %g for the rule, found %g",
                           most, o->value);
    if (o->dtype != SFT_DTYPE_COUNT && o->dtype != SFT_F32 && o->dtype != SFT_F16
        && o->dtype != SFT_BF16)
        return sfti_misuse(err, "expected factors in F32, F16 or BF16, found another dtype");
    if (!(o->min_diff >= 0) || !(o->clamp_quantile >= 0 && o->clamp_quantile <= 1))
        return sfti_misuse(err, "expected a least difference and a quantile of numbers from 0 on, "
                           "found others");
    if (o->rule == SFT_ADAPTER_EXACT && !verbs[f->verb].may_be_exact)
        return sfti_misuse(err, "expected a rank or a rule, found exact");
    if (verbs[f->verb].needs_rule && !f->has_rule)
        return sfti_misuse(err, "expected a rank or a rule, found none");
    return SFT_OK;
}

sft_code sft_adapter_factors_new(sft_adapter_verb verb, const sft_adapter_factors_options *options,
                                 sft_adapter_factors **out, sft_error *err) {
    sft_adapter_factors_options own;
    if (out) *out = NULL;
    if (!out) return sfti_misuse(err, "expected a place for the factors, found NULL");
    sft_code code = factors_take(options, &own, err);
    if (code) return code;
    if ((unsigned)verb >= SFTI_COUNT(verbs))
        return sfti_misuse(err, "expected a verb that is known, found another number");
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_adapter_factors *f = sfti_take(&alloc, sizeof *f);
    if (!f) return sfti_fail_memory(err, sizeof *f);
    memset(f, 0, sizeof *f);
    f->alloc = f->arena.alloc = f->memory.alloc = f->recipe.alloc = f->args.alloc = alloc;
    f->verb = verb;
    f->options = own;
    f->options.alloc = &f->alloc;
    f->fd = -1;
    f->blames = SIZE_MAX;
    if (own.rule == SFT_ADAPTER_EXACT)
        f->rule = (sfti_rank_rule){ .by = SFTI_RANK_ERROR, .value = 1e-6 };
    else
        f->rule = (sfti_rank_rule){ .by = (sfti_rank_by)own.rule, .value = own.value,
                                    .most = own.rank, .most_conv = own.conv_rank };
    f->rule.kohya = own.kohya;
    f->has_rule = own.rule != SFT_ADAPTER_RANK || own.rank || own.conv_rank;
    if (verb == SFT_ADAPTER_STACK && own.rule == SFT_ADAPTER_EXACT) f->has_rule = false;
    if (own.scratch) {
        f->options.scratch = sfti_arena_copy(&f->arena, own.scratch, strlen(own.scratch));
        if (!f->options.scratch) code = sfti_fail_memory(err, strlen(own.scratch));
    }
    if (!code && own.architecture) {
        f->options.architecture = sfti_arena_copy(&f->arena, own.architecture,
                                                  strlen(own.architecture));
        if (!f->options.architecture) code = sfti_fail_memory(err, strlen(own.architecture));
    }
    if (!code) code = check_factors(f, err);
    if (code) sft_adapter_factors_free(f);
    else *out = f;
    return code;
}

void sft_adapter_factors_free(sft_adapter_factors *f) {
    if (!f) return;
    sft_allocator alloc = f->alloc;
    sfti_factored_close_store(f);
    sft_buffer_free(&f->recipe);
    sft_buffer_free(&f->args);
    for (size_t i = 0; i < f->input_count; i++) sfti_merge_input_close(f->inputs[i]);
    sft_conversion_free(f->scales[0]);
    sft_conversion_free(f->scales[1]);
    sfti_arena_free(&f->arena);
    sfti_release(&alloc, f, sizeof *f);
}

/* ── Inputs ── */

sft_code sft_adapter_factors_add(sft_adapter_factors *f, const sft_set *set,
                                 const sft_adapter_use *use, sft_error *err) {
    sft_adapter_use own;
    sfti_merge_input *input;
    if (!f || !set) return sfti_misuse(err, "expected factors and an input, found NULL");
    sft_code code = sfti_merge_use(use, &own, err);
    if (code) return code;
    if (f->planned || f->input_count == verbs[f->verb].most || own.blocks)
        return sfti_misuse(err, "expected %s", f->planned ? "factors that are not planned, found "
                           "planned ones" : own.blocks ? "an input without blocks, found some"
                           : "fewer inputs for this verb, found one more");
    bool adapter = f->input_count < verbs[f->verb].adapters;
    sfti_merge_input **grown = sfti_arena_grow(&f->arena, f->inputs, f->input_count, 1,
                                               &f->input_capacity, sizeof *grown);
    if (grown) f->inputs = grown;
    sft_source **sources = sfti_arena_array(&f->arena, f->input_capacity, sizeof *sources);
    size_t shards = sft_set_shard_count(set);
    sft_source *own_sources = sfti_arena_array(&f->arena, shards, sizeof *own_sources);
    if (!grown || !sources || !own_sources) return sfti_fail_memory(err, shards * sizeof *sources);
    if (f->input_count) memcpy(sources, f->sources, f->input_count * sizeof *sources);
    sources[f->input_count] = own_sources;
    f->sources = sources;
    f->blames = f->input_count;
    code = sfti_merge_input_new(&f->arena, set, &own, adapter, &input, err);
    if (code) return sfti_lora_told(code, err);
    for (size_t s = 0; s < sft_set_shard_count(input->set); s++) /* those of `set`, or one */
        own_sources[s] = sft_file_source(sft_set_shard_at(input->set, s));
    f->blames = SIZE_MAX;
    f->adapters += adapter;
    f->inputs[f->input_count++] = input;
    return SFT_OK;
}

sft_code sft_adapter_factors_plan(sft_adapter_factors *f, sft_error *err) {
    if (!f) return sfti_misuse(err, "expected factors, found NULL");
    if (f->planned) return SFT_OK;
    if (f->input_count < verbs[f->verb].least)
        return sfti_misuse(err, "expected %zu inputs for this verb, found %zu",
                           verbs[f->verb].least, f->input_count);
    f->count = f->kept_count = f->unmatched_count = 0;
    memset(f->notes, 0, sizeof f->notes);
    f->blames = 0;
    sft_code code = verbs[f->verb].plan(f, err);
    for (size_t i = 0; i < f->count; i++) {
        f->layers[i].told.has_alpha = f->layers[i].alpha != NULL;
        f->layers[i].told.norm = -1;
    }
    f->planned = !code;
    if (!code) f->blames = SIZE_MAX;
    return sfti_lora_told(code, err);
}

size_t sft_adapter_factors_count(const sft_adapter_factors *f) {
    return f->planned ? f->count : 0;
}

const sft_adapter_factor *sft_adapter_factors_at(const sft_adapter_factors *f, size_t i) {
    return f->planned && i < f->count ? &f->layers[i].told : NULL;
}

size_t sft_adapter_factors_note(const sft_adapter_factors *f, sft_adapter_note note) {
    return (unsigned)note < SFTI_COUNT(f->notes) ? f->notes[note] : 0;
}

size_t sft_adapter_factors_unmatched(const sft_adapter_factors *f) {
    return f->planned ? f->unmatched_count : 0;
}

sft_span sft_adapter_factors_unmatched_at(const sft_adapter_factors *f, size_t i) {
    return i < sft_adapter_factors_unmatched(f) ? f->unmatched[i] : (sft_span){ "", 0 };
}

size_t sft_adapter_factors_blames(const sft_adapter_factors *f) { return f->blames; }

/* ── Computing ── */

/* Into the dtype, times a factor; else what it cannot hold. */
static const char *store_factor(float *values, uint64_t count, double factor, sft_dtype dtype,
                                void *bytes, sft_error *err) {
    static const char larger[] = "larger ones";
    uint8_t code_of[4];
    if (factor < 1 || factor > 1)
        for (uint64_t i = 0; i < count; i++) values[i] = (float)((double)values[i] * factor);
    uint32_t bits = sfti_floats_greatest(values, count);
    float most, told = 0;
    memcpy(&most, &bits, sizeof most);
    sfti_floats_turn(&most, 1);
    if (bits >= 0x7f800000 || sft_cast(SFT_F32, &most, dtype, code_of, 1, NULL, NULL, err)
        || sft_cast(dtype, code_of, SFT_F32, &told, 1, NULL, NULL, err))
        return larger;
    sfti_floats_turn(&told, 1);
    if (bits > 0 && !(told > 0)) return "only smaller ones, which would all become 0";
    sfti_floats_turn(values, count);
    bool held = told - told <= 0
             && !sft_cast(SFT_F32, values, dtype, bytes, count, NULL, NULL, err);
    return held ? NULL : larger;
}

static void turn_factor(const sfti_matrix *m, float *into) {
    for (uint64_t i = 0; i < m->rows; i++)
        for (uint64_t j = 0; j < m->cols; j++) into[j * m->rows + i] = m->at[i * m->cols + j];
}

/* Alpha so that alpha / rank is the scale, or 1 if its dtype does not hold that; what is left of
 * the scale goes into the up matrix. */
static double settle_alpha(sfti_factor *layer, void *bytes, sft_error *err) {
    double wanted = layer->scale * (double)layer->told.rank;
    float value = (float)wanted;
    bool none = !(wanted < 0) && !(wanted > 0), held = false;
    if (!layer->alpha) return layer->scale;
    for (int k = 0; !held && k < 2; k++) {
        if (k > 0) value = 1;
        sfti_floats_turn(&value, 1);
        if (sft_cast(SFT_F32, &value, layer->alpha_dtype, bytes, 1, NULL, NULL, err)
            || sft_cast(layer->alpha_dtype, bytes, SFT_F32, &value, 1, NULL, NULL, err))
            continue;
        sfti_floats_turn(&value, 1);
        held = value - value <= 0 && (none || value < 0 || value > 0);
    }
    layer->told.alpha = (double)value;
    return none ? 1 : wanted / layer->told.alpha;
}

/* Whether the dimensions but that of the rank make up so many rows, or columns. */
static bool has_size(const uint64_t *shape, uint32_t dims, uint32_t rank_at, uint64_t count) {
    uint64_t all = 1;
    for (uint32_t k = 0; k < dims; k++)
        if (k != rank_at && !sfti_mul(all, shape[k], &all)) return false;
    return all == count;
}

static sft_code store_layer(sft_adapter_factors *f, sfti_workers *w, sfti_factor *layer,
                            sfti_lowrank *found, sfti_arena *arena, sft_error *err) {
    uint64_t ups = found->up.rows * found->up.cols, downs = found->down.rows * found->down.cols;
    uint64_t width = sft_dtype_describe(layer->dtype)->bits / 8, size = 4 + (ups + downs) * width;
    if (!has_size(layer->up_shape, layer->up_dims, layer->turned ? 0 : 1, found->up.rows)
        || !has_size(layer->down_shape, layer->down_dims, layer->turned ? 1 : 0, found->down.cols))
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, SFT_NO_OFFSET, layer->told.name,
                                "expected factors of 2 to %d dimensions, found others",
                                SFTI_FACTORED_DIMS);
    uint8_t *bytes = sfti_arena_array(arena, size, 1);
    if (!bytes) return sfti_fail_memory(err, size);
    memset(bytes, 0, 4); /* its alpha */
    layer->told.rank = found->up.cols;
    double size_of_scale = layer->scale < 0 ? -layer->scale : layer->scale;
    layer->told.norm = found->spectrum.count ? found->spectrum.norm * size_of_scale : -1;
    layer->told.lost = found->lost * size_of_scale;
    double factor = settle_alpha(layer, bytes, err);
    if (layer->turned) {
        float *other = sfti_arena_array(arena, ups + downs, sizeof *other);
        if (!other) return sfti_fail_memory(err, (ups + downs) * sizeof *other);
        turn_factor(&found->up, other);
        turn_factor(&found->down, other + ups);
        found->up.at = other, found->down.at = other + ups;
    }
    const char *why = store_factor(found->up.at, ups, factor, layer->dtype, bytes + 4, err);
    if (!why)
        why = store_factor(found->down.at, downs, 1, layer->dtype, bytes + 4 + ups * width, err);
    if (why)
        return sfti_fail_tensor(err, SFT_CAST_VALUE, SFT_NO_OFFSET, layer->told.name,
                                "expected factors that %s can hold, found %s",
                                sft_dtype_describe(layer->dtype)->name, why);
    sfti_workers_lock(w);
    layer->begin = f->size;
    f->size += size;
    sft_code code = sfti_factored_store(f, layer->begin, bytes, size, err);
    sfti_workers_unlock(w);
    return code;
}

static bool factor_step(sfti_workers *w, size_t thread, uint64_t *done, sft_error *err) {
    sft_adapter_factors *f = w->ctx;
    sfti_arena arena = { .alloc = f->alloc };
    sfti_lowrank found;
    (void)thread;
    sfti_workers_lock(w);
    sfti_factor *layer = f->next < f->count && !w->error.code ? &f->layers[f->next++] : NULL;
    sfti_workers_unlock(w);
    if (!layer) return false;
    memset(&found, 0, sizeof found);
    sfti_rank_rule rule = f->rule;
    rule.narrow = layer->dtype != SFT_F32;
    if (layer->conv && rule.most_conv) rule.most = rule.most_conv;
    if (f->options.rule != SFT_ADAPTER_EXACT && !rule.most && !layer->told.rank_before)
        rule.most = RULE_MOST;
    layer->blames = 0;
    err->code = f->compute(f, layer, f->has_rule ? &rule : NULL, &arena, &found, err);
    if (!err->code) layer->blames = 0;
    if (!err->code && !layer->told.left_out)
        err->code = store_layer(f, w, layer, &found, &arena, err);
    if (err->code && err->tensor_len == SFT_NO_TENSOR) sfti_error_tensor(err, layer->told.name);
    if (err->code) {
        sfti_workers_lock(w);
        bool stores = err->code == SFT_IO_WRITE; /* of no input */
        if (!w->error.code) f->blames = stores ? SIZE_MAX : layer->blames;
        sfti_workers_unlock(w);
    }
    *done = layer->up_shape[0] * layer->down_shape[1];
    sfti_arena_free(&arena);
    return true;
}

sft_code sft_adapter_factors_compute(sft_adapter_factors *f, const sft_job *job, sft_error *err) {
    sft_job own;
    sfti_workers w = { .step = factor_step, .ctx = f, .job = &own };
    sft_code code = sfti_take_job(job, &own, err);
    if (!code) code = sft_adapter_factors_plan(f, err);
    if (code || f->computed) return code;
    if (f->unmatched_count && !f->options.ignore_unmatched) {
        f->blames = 0;
        return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, f->unmatched[0],
                                f->verb == SFT_ADAPTER_EXTRACT
                                ? "expected tensors of the base for every layer, found none for %zu"
                                : "expected tensors of methods that are known, found %zu others",
                                f->unmatched_count);
    }
    sfti_factored_close_store(f); /* of an attempt that failed */
    sfti_factored_open_store(f);
    f->next = 0;
    for (size_t i = 0; i < f->count; i++)
        w.total += f->layers[i].up_shape[0] * f->layers[i].down_shape[1];
    f->blames = SIZE_MAX;
    code = sfti_workers_run(&w, sfti_workers_count(&own, SFTI_WORKERS_MOST, f->count), err);
    bool any = f->kept_count > 0;
    for (size_t i = 0; i < f->count; i++) any = any || !f->layers[i].told.left_out;
    if (!code && !any)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected layers with a change, found none "
                         "among %zu", f->count);
    if (code && code != SFT_IO_WRITE && f->blames == SIZE_MAX && f->input_count == 1) f->blames = 0;
    if (!code) code = sfti_factored_finish(f, err);
    f->computed = !code;
    return sfti_lora_told(code, err);
}

/* ── The new adapter ── */

const sft_part *sft_adapter_factors_parts(const sft_adapter_factors *f, size_t *count) {
    bool has = f->computed;
    if (count) *count = has ? f->part_count : 0;
    return has ? f->parts : NULL;
}

const sft_pair *sft_adapter_factors_pairs(const sft_adapter_factors *f, size_t *count) {
    bool has = f->computed;
    if (count) *count = has ? f->pair_count : 0;
    return has ? f->pairs : NULL;
}

sft_code sft_adapter_factors_save(sft_adapter_factors *f, sft_sink sink, const sft_job *job,
                                  sft_error *err) {
    sft_code code = f ? sft_adapter_factors_compute(f, job, err)
                      : sfti_misuse(err, "expected factors, found NULL");
    if (!code && f->options.measure)
        code = sfti_misuse(err, "expected factors that are kept, found ones that are measured");
    if (code) {
        sft_sink_abandon(&sink);
        return code;
    }
    return sfti_lora_save(f->parts, f->part_count, f->pairs, f->pair_count, &f->alloc, sink, job,
                          err);
}
