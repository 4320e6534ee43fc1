/* Merging adapters into a model, plain or quantised. Tests: tests/adapter, test_adapter.c. */
#include "adapter/merge.h"

#include "base/error.h"
#include "base/files.h"
#include "base/options.h"
#include "os/io.h"
#include "os/os.h"
#include "os/path.h"
#include "safetensors_report.h"

#include <string.h>

static SFTI_OPTIONS_TAKE(merge_take, sft_adapter_merge_options, SFT_ADAPTER_MERGE_OPTIONS_INIT,
                         alloc)
static SFTI_OPTIONS_TAKE(use_take, sft_adapter_use, SFT_ADAPTER_USE_INIT, name)
static SFTI_OPTIONS_TAKE(merged_take, sft_save_set_options, SFT_SAVE_SET_OPTIONS_INIT, plan)

/* ── A model ── */

/* The model by its values, if any of them is quantised. Those that cannot be computed are no error
 * unless an adapter changes them. */
static sft_code begin_values(sft_adapter_merge *m, sft_error *err) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *c;
    options.dequantize = options.partial = true;
    options.files = m->options.files;
    options.alloc = &m->alloc;
    sft_code code = sft_conversion_new(m->model, SFT_F32, &options, &c, err);
    if (code) return code;
    if (sft_conversion_count(c, SFT_CONVERT_DEQUANTIZE) == 0
        && sft_conversion_count(c, SFT_CONVERT_REFUSED) == 0) {
        sft_conversion_free(c);
        return SFT_OK;
    }
    code = sft_conversion_set(c, NULL, NULL, &m->owned, err);
    if (code) return code;
    m->conversion = c;
    m->values = m->owned;
    return SFT_OK;
}

sft_code sft_adapter_merge_new(const sft_set *model, const sft_adapter_merge_options *options,
                               sft_adapter_merge **out, sft_error *err) {
    sft_adapter_merge_options own;
    if (out) *out = NULL;
    if (!model || !out)
        return sfti_misuse(err, "expected a model and a place for the merge, found NULL");
    sft_code code = merge_take(options, &own, err);
    if (code) return code;
    if (own.dora > SFT_ADAPTER_DORA_COMFY)
        return sfti_misuse(err, "expected a norm of DoRA, found another number");
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_adapter_merge *m = sfti_take(&alloc, sizeof *m);
    if (!m) return sfti_fail_memory(err, sizeof *m);
    memset(m, 0, sizeof *m);
    m->alloc = m->arena.alloc = m->encoder.alloc = m->recipe.alloc = m->names.alloc = alloc;
    m->options = own;
    m->model = m->values = model;
    m->blames = SIZE_MAX;
    code = begin_values(m, err);
    if (code) sft_adapter_merge_free(m);
    else *out = m;
    return code;
}

void sft_adapter_merge_free(sft_adapter_merge *m) {
    if (!m) return;
    sft_allocator alloc = m->alloc;
    sfti_encoder_end(&m->encoder);
    sfti_patched_free(m->patched);
    for (size_t i = 0; i < m->count; i++) sfti_merge_input_close(m->inputs[i]);
    sft_set_close(m->owned);
    sft_buffer_free(&m->recipe);
    sft_buffer_free(&m->names);
    sfti_arena_free(&m->arena);
    sfti_release(&alloc, m, sizeof *m);
}

/* ── Adapters ── */

/* In the arena; NULL is none. */
static bool hold_text(sfti_arena *arena, sft_span text, sft_span *out) {
    char *copy = text.data ? sfti_arena_copy(arena, text.data, text.len) : NULL;
    *out = (sft_span){ copy, copy ? text.len : 0 };
    return copy || !text.data;
}

static sft_span file_name(const sft_set *set) {
    const char *path = sft_set_index_path(set);
    if (!path) path = sft_set_shard_path(set, 0);
    return path ? sfti_path_name(sft_span_cstr(path)) : (sft_span){ "", 0 };
}

sft_code sfti_merge_use(const sft_adapter_use *use, sft_adapter_use *out, sft_error *err) {
    sft_code code = use_take(use, out, err);
    if (!code && out->strength - out->strength != 0)
        code = sfti_misuse(err, "expected a strength that is finite, found another");
    return code;
}

sft_code sfti_merge_input_new(sfti_arena *arena, const sft_set *set, const sft_adapter_use *use,
                              bool adapter, sfti_merge_input **out, sft_error *err) {
    sfti_merge_input *input = sfti_arena_take(arena, sizeof *input);
    sft_span name = use->name ? sft_span_cstr(use->name) : file_name(set);
    sft_span blocks = use->blocks ? sft_span_cstr(use->blocks) : (sft_span){ NULL, 0 };
    if (!input) return sfti_fail_memory(err, sizeof *input);
    memset(input, 0, sizeof *input);
    input->set = input->stored = set;
    input->strength = use->strength;
    input->lora.arena.alloc = arena->alloc;
    *out = input;
    if (!hold_text(arena, name, &input->name) || !hold_text(arena, blocks, &input->blocks)
        || !hold_text(arena, use->config, &input->config))
        return sfti_fail_memory(err, name.len + use->config.len);
    if (!adapter) return SFT_OK;
    sft_code code = sfti_lora_open(set, input->config, &input->lora, err);
    input->set = input->lora.set;
    input->named = input->lora.named; /* which outlives a lora of other names */
    input->lora.named = NULL;
    if (!code && input->lora.count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected an adapter (LoRA and the like), found none of its tensors");
    if (code) sfti_merge_input_close(input);
    return code;
}

void sfti_merge_input_close(sfti_merge_input *input) {
    sfti_lora_close(&input->lora);
    sft_set_close(input->renamed);
    sft_set_close(input->named);
}

sft_code sft_adapter_merge_add(sft_adapter_merge *m, const sft_set *adapter,
                               const sft_adapter_use *use, sft_error *err) {
    sft_adapter_use own;
    sfti_merge_input *input;
    if (!m || !adapter) return sfti_misuse(err, "expected a merge and an adapter, found NULL");
    sft_code code = sfti_merge_use(use, &own, err);
    if (code) return code;
    if (m->patched) return sfti_misuse(err, "expected a merge that is not planned, found one");
    sfti_merge_input **grown = sfti_arena_grow(&m->arena, m->inputs, m->count, 1, &m->capacity,
                                               sizeof *grown);
    if (!grown) return sfti_fail_memory(err, sizeof *grown);
    m->inputs = grown;
    m->blames = m->count;
    code = sfti_merge_input_new(&m->arena, adapter, &own, true, &input, err);
    if (code) return sfti_lora_told(code, err);
    code = sfti_lora_map_model(&input->lora, m->values, &input->map, err);
    if (!code && input->blocks.data)
        code = sfti_lora_blocks(&input->lora, &input->map, m->values, input->blocks,
                                own.strength, &input->strengths, err);
    m->blames = code ? m->count : SIZE_MAX;
    if (code) sfti_merge_input_close(input);
    else m->inputs[m->count++] = input;
    return sfti_lora_told(code, err);
}

static const sfti_merge_input *input_at(const sft_adapter_merge *m, size_t k) {
    return k < m->count ? m->inputs[k] : NULL;
}

size_t sft_adapter_merge_modules(const sft_adapter_merge *m, size_t k) {
    const sfti_merge_input *input = input_at(m, k);
    return input ? input->lora.count : 0;
}

size_t sft_adapter_merge_matched(const sft_adapter_merge *m, size_t k) {
    const sfti_merge_input *input = input_at(m, k);
    return input ? input->map.matched : 0;
}

size_t sft_adapter_merge_unmatched(const sft_adapter_merge *m, size_t k) {
    const sfti_merge_input *input = input_at(m, k);
    return input ? input->lora.count - input->map.matched + input->lora.unread_count : 0;
}

sft_span sft_adapter_merge_unmatched_at(const sft_adapter_merge *m, size_t k, size_t i) {
    const sfti_merge_input *input = input_at(m, k);
    if (i >= sft_adapter_merge_unmatched(m, k)) return (sft_span){ "", 0 };
    size_t other = input->lora.count - input->map.matched; /* modules come first */
    if (i >= other) return sft_set_tensor_at(input->set, input->lora.unread[i - other])->name;
    size_t at = 0;
    for (;; at++)
        if (!input->lora.modules[at].targets && i-- == 0) return input->lora.modules[at].name;
}

/* ── What changes ── */

static void round_again(const void *ctx, uint64_t first, float *values, size_t count) {
    sfti_stochastic_round(&((const sfti_merge_again *)ctx)->stochastic, first, values, count);
}

static sft_code read_again(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    const sfti_merge_output *output = ctx;
    sfti_merge_again *of = output->of;
    sft_adapter_merge *m = of->of;
    *got = len;
    if (m->encoder.matrix != &of->again.matrix) {
        sfti_encoder_begin(&m->encoder, &of->again.how, &of->again.matrix, of->name,
                           sfti_patched_source(m->patched), of->begin);
        if (of->rounds) m->encoder.round = round_again;
        m->encoder.round_ctx = of;
    }
    return sfti_encoder_read(&m->encoder, output->part, offset, into, len, err);
}

static uint32_t again_mode(void *ctx) {
    const sft_adapter_merge *m = ((const sfti_merge_output *)ctx)->of->of;
    uint32_t mode = sft_set_output_mode(m->model, NULL);
    sfti_mode_common(&mode, sft_source_mode(sfti_patched_source(m->patched)));
    return mode;
}

static const sft_source_vtable again_vtable = {
    sizeof(sft_source_vtable), read_again, NULL, NULL, again_mode
};

static sft_span layer_at(const void *ctx, uint32_t i) {
    return sfti_lora_layer(sft_set_tensor_at(ctx, i)->name);
}

/* Modules of layers whose values cannot be computed: why, of the first. */
static sft_code check_readable(const sft_adapter_merge *m, sft_error *err) {
    size_t count = sft_set_tensor_count(m->model);
    sfti_arena work = { .alloc = m->alloc };
    sfti_names layers;
    sft_code code = SFT_OK;
    if (!m->conversion || sft_conversion_count(m->conversion, SFT_CONVERT_REFUSED) == 0)
        return SFT_OK;
    if (!sfti_names_draw(&layers, count, layer_at, m->model, &work))
        code = sfti_fail_memory(err, count * sizeof *layers.slots);
    for (uint32_t i = 0; !code && i < count; i++)
        if (sft_conversion_action(m->conversion, i, NULL) == SFT_CONVERT_REFUSED)
            (void)sfti_names_add(&layers, layer_at(m->model, i), i);
    for (size_t k = 0; !code && k < m->count; k++) {
        const sfti_lora *lora = &m->inputs[k]->lora;
        for (size_t i = 0; !code && i < lora->count; i++) {
            const sfti_lora_module *module = &lora->modules[i];
            if (module->targets || !module->codes) continue;
            uint32_t at = sfti_names_find(&layers, layer_at(m->values, module->codes - 1));
            if (at != SFTI_NO_NAME) code = sft_conversion_refusal(m->conversion, at, NULL, err);
        }
    }
    sfti_arena_free(&work);
    return code;
}

static sft_code check_matched(sft_adapter_merge *m, sft_error *err) {
    for (size_t k = 0; k < m->count; k++) {
        size_t left = sft_adapter_merge_unmatched(m, k);
        m->blames = k;
        if (m->inputs[k]->map.matched == 0)
            return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                             "expected modules of this model's layers, found none among %zu",
                             m->inputs[k]->lora.count);
        if (left > 0 && !m->options.ignore_unmatched)
            return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                             "expected tensors of the model for every module, found none for %zu "
                             "of its modules and tensors", left);
    }
    m->blames = SIZE_MAX;
    return SFT_OK;
}

/* Numbers of tensors by their names. */
typedef struct merge_numbers {
    const sft_set *set;
    sfti_names names;
} merge_numbers;

static sft_span number_name(const void *ctx, uint32_t i) {
    return sft_set_tensor_at(((const merge_numbers *)ctx)->set, i)->name;
}

static sft_code find_numbers(const sft_set *set, merge_numbers *out, sfti_arena *arena,
                             sft_error *err) {
    size_t count = sft_set_tensor_count(set);
    out->set = set;
    if (!sfti_names_draw(&out->names, count, number_name, out, arena))
        return sfti_fail_memory(err, count * sizeof *out->names.slots);
    for (uint32_t i = 0; i < count; i++)
        (void)sfti_names_add(&out->names, number_name(out, i), i);
    return SFT_OK;
}

/* The parts of quantised tensor i, of which the values are number v of those. */
static sft_code add_again(sft_adapter_merge *m, size_t i, uint64_t begin,
                          const merge_numbers *numbers, size_t *used, sft_error *err) {
    sfti_merge_again *again = &m->agains[*used];
    sfti_again *how = &again->again;
    *again = (sfti_merge_again){ .of = m, .begin = begin };
    again->name = sft_conversion_part(m->conversion, i).spec.name;
    sft_code code = sfti_quantise_again(m->conversion, i, how, err);
    if (code) return code;
    for (size_t k = 0; k < how->count; k++) {
        sfti_merge_output *output = &m->outputs[*used * SFTI_ENCODE_PARTS + k];
        const sft_tensor *tensor = how->parts[k];
        uint32_t number = sfti_names_find(&numbers->names, tensor->name);
        *output = (sfti_merge_output){ .of = again, .part = k };
        output->source = (sft_source){ output, &again_vtable, tensor->end - tensor->begin, NULL,
                                       true };
        m->parts[number].source = &output->source;
        m->parts[number].begin = 0;
    }
    again->rounds = m->options.stochastic
                 && sfti_stochastic_begin(&again->stochastic, m->options.seed, again->name,
                                          how->codes);
    ++*used;
    return SFT_OK;
}

static sft_code list_merged(sft_adapter_merge *m, sft_error *err) {
    size_t count = sft_set_tensor_count(m->model), shards = sft_set_shard_count(m->model);
    size_t most = m->conversion ? sfti_patched_count(m->patched) : 0, used = 0;
    merge_numbers model, values;
    m->files = sfti_arena_array(&m->arena, shards, sizeof *m->files);
    m->parts = sfti_arena_array(&m->arena, count, sizeof *m->parts);
    m->agains = sfti_arena_array(&m->arena, most, sizeof *m->agains);
    m->outputs = sfti_arena_array(&m->arena, most * SFTI_ENCODE_PARTS, sizeof *m->outputs);
    if (!m->files || !m->parts || !m->agains || !m->outputs)
        return sfti_fail_memory(err, count * sizeof *m->parts);
    for (size_t s = 0; s < shards; s++)
        m->files[s] = sft_file_source(sft_set_shard_at(m->model, s));
    for (size_t i = 0; i < count; i++)
        m->parts[i] = sft_part_of(sft_set_tensor_at(m->model, i),
                                  &m->files[sft_set_tensor_shard(m->model, i)]);
    sft_code code = SFT_OK;
    if (m->conversion) code = find_numbers(m->model, &model, &m->arena, err);
    if (m->conversion && !code) code = find_numbers(m->values, &values, &m->arena, err);
    for (size_t i = 0; !code && i < count; i++) {
        sft_convert_action action = SFT_CONVERT_OTHER;
        size_t number = i;
        uint64_t begin;
        if (m->conversion) {
            action = sft_conversion_action(m->conversion, i, NULL);
            if (action == SFT_CONVERT_DROP) continue;
            sft_span name = sft_conversion_part(m->conversion, i).spec.name;
            number = sfti_names_find(&values.names, name);
        }
        if (!sfti_patched_changes(m->patched, number, &begin)) continue;
        if (action == SFT_CONVERT_REFUSED) {
            code = sft_conversion_refusal(m->conversion, i, NULL, err);
        } else if (action == SFT_CONVERT_DEQUANTIZE) {
            code = add_again(m, i, begin, &model, &used, err);
        } else {
            m->parts[i].source = sfti_patched_source(m->patched);
            m->parts[i].begin = begin;
        }
    }
    return code;
}

sft_code sft_adapter_merge_plan(sft_adapter_merge *m, sft_error *err) {
    if (!m) return sfti_misuse(err, "expected a merge, found NULL");
    if (m->parts) return SFT_OK;
    if (m->count == 0) return sfti_misuse(err, "expected adapters, found none");
    sft_code code = check_readable(m, err);
    if (!code) code = check_matched(m, err);
    sfti_patched_input *inputs = sfti_arena_array(&m->arena, m->count, sizeof *inputs);
    if (!code && !inputs) code = sfti_fail_memory(err, m->count * sizeof *inputs);
    if (code) return code;
    for (size_t k = 0; !code && k < m->count; k++) {
        m->blames = k;
        code = sfti_lora_check_bases(&m->inputs[k]->lora, &m->inputs[k]->map, m->values, err);
    }
    if (code) return sfti_lora_told(code, err);
    m->blames = SIZE_MAX;
    for (size_t k = 0; k < m->count; k++)
        inputs[k] = (sfti_patched_input){ &m->inputs[k]->lora, &m->inputs[k]->map,
                                          m->inputs[k]->strength, m->inputs[k]->strengths };
    sfti_patched_options options = { (sfti_dora)m->options.dora, m->options.stochastic,
                                     m->options.seed, m->options.threads, m->alloc };
    if (options.threads == 0) options.threads = (uint32_t)sfti_os_cpu_count();
    if (m->conversion) options.threads = 1; /* values of quantised tensors have one reader */
    sfti_patched_free(m->patched); /* of a plan that failed */
    m->patched = NULL;
    code = sfti_patched_new(m->values, inputs, m->count, &options, &m->patched, err);
    if (!code) code = list_merged(m, err);
    if (code) m->parts = NULL;
    return sfti_lora_told(code, err);
}

size_t sft_adapter_merge_changed(const sft_adapter_merge *m) {
    return m->parts ? sfti_patched_count(m->patched) : 0;
}

sft_part sft_adapter_merge_part(sft_adapter_merge *m, size_t i) {
    bool has = m->parts && i < sft_set_tensor_count(m->model);
    return has ? m->parts[i] : (sft_part){ .begin = 0 };
}

bool sfti_merge_computes(const sft_adapter_merge *m, size_t i) {
    return m->parts[i].source != &m->files[sft_set_tensor_shard(m->model, i)];
}

void sft_adapter_merge_lost(const sft_adapter_merge *m, uint64_t *changed, uint64_t *lost) {
    *changed = *lost = 0;
    if (m->parts) sfti_patched_lost(m->patched, changed, lost);
}

size_t sft_adapter_merge_blames(const sft_adapter_merge *m) {
    return m->parts && m->blames == SIZE_MAX ? sfti_patched_blames(m->patched) : m->blames;
}

/* ── Saving ── */

/* Pairs of all shards, without what has become stale, and the recipe. */
static sft_code gather_pairs(sft_adapter_merge *m, sfti_arena *work, sft_pair **out, size_t *count,
                             sft_error *err) {
    sft_code code = sfti_recipe_pairs(m->model, work, NULL, 0, SFTI_DROPS_ALL, out, count, err);
    if (!code) code = sfti_adapter_recipe(m, file_name(m->model), true, err);
    if (code) return code;
    (*out)[(*count)++] = (sft_pair){ sft_span_cstr(SFTI_MERGE_NAMES),
                                     { m->names.data, m->names.len } };
    (*out)[(*count)++] = (sft_pair){ sft_span_cstr(SFTI_MERGE_RECIPE),
                                     { m->recipe.data, m->recipe.len } };
    return SFT_OK;
}

sft_code sft_adapter_merge_save(sft_adapter_merge *m, sft_sink sink, const sft_job *job,
                                sft_error *err) {
    sft_code code = sft_adapter_merge_plan(m, err);
    sfti_arena work = { .alloc = sfti_allocator(m ? &m->alloc : NULL) };
    sft_pair *pairs = NULL;
    size_t count = 0;
    if (!code) code = gather_pairs(m, &work, &pairs, &count, err);
    if (code) {
        sft_sink_abandon(&sink);
    } else {
        code = sfti_lora_save(m->parts, sft_set_tensor_count(m->model), pairs, count, &m->alloc,
                              sink, job, err);
    }
    sfti_arena_free(&work);
    return code;
}

sft_code sft_adapter_merge_save_set(sft_adapter_merge *m, const char *folder,
                                    const sft_save_set_options *options, const sft_job *job,
                                    sft_error *err) {
    sft_save_set_options own;
    sft_code code = merged_take(options, &own, err);
    if (!code) code = sft_adapter_merge_plan(m, err);
    if (code) return code;
    sfti_arena work = { .alloc = m->alloc };
    sft_plan_options plan = sfti_lora_plan(&m->alloc);
    size_t count = 0, all = sft_set_tensor_count(m->model);
    sft_pair *pairs = NULL;
    uint32_t *shard_of = sfti_arena_array(&work, all, sizeof *shard_of), shards = 0;
    own.plan = &plan;
    if (own.mode == 0) own.mode = sft_set_output_mode(m->model, NULL);
    if (!shard_of) code = sfti_fail_memory(err, all * sizeof *shard_of);
    if (!code) code = gather_pairs(m, &work, &pairs, &count, err);
    for (size_t i = 0; !code && i < all; i++) { /* without those that have no tensors */
        size_t shard = sft_set_tensor_shard(m->model, i);
        shards += i == 0 || shard != sft_set_tensor_shard(m->model, i - 1);
        shard_of[i] = shards - 1;
    }
    if (!code)
        code = sft_save_set(folder, m->parts, shard_of, all, shards ? shards : 1, pairs, count,
                            &own, job, err);
    sfti_arena_free(&work);
    return code;
}
