/* The functions of safetensors_layout.h: what becomes of a model's tensors and metadata, one file.
 * Tests: test_layout_public.c, tests/cli/layout. */
#include "layout/conversion.h"

#include "base/error.h"
#include "base/options.h"
#include "keys/digest_keys.h"
#include "keys/listed.h"
#include "os/io.h"
#include "set/aliases.h"
#include "text/text.h"

#include <string.h>

#define PAIRS_MORE 3

/* ── Metadata ── */

static sft_span key_of_pair(const void *pairs, uint32_t i) {
    return ((const sft_pair *)pairs)[i].key;
}

static bool is_renamed(const sft_layout_conversion *run) {
    for (size_t i = 0; i < run->groups.count; i++)
        if (run->groups.items[i].part && run->groups.items[i].side != run->to) return true;
    return false;
}

/* ── Other names of tensors ── */

/* How the names of a component begin in a single file. */
static sft_span prefix_for(const sft_layout_conversion *run, const sfti_layout_group *one) {
    sft_span told = { "", 0 };
    size_t known = 0;
    const sft_file *file = sft_set_shard_at(run->sets[one->input], 0);
    if (run->options.to != SFT_LAYOUT_SINGLE) return told;
    if (sft_file_metadata_get(file, sft_span_cstr(SFTI_LAYOUT_PREFIX_KEY), &told))
        for (size_t k = 0; k < run->layouts.prefix_count; k++)
            if (sft_span_equal(run->layouts.prefixes[k], told)) return told;
    for (size_t i = 0; i < run->groups.count; i++) known += run->groups.items[i].part != NULL;
    return known > 1 ? one->target : one->prefix;
}

static sft_span key_of_alias(const void *aliases, uint32_t i) {
    return ((const sfti_layout_alias *)aliases)[i].pair.key;
}

/* What is made of one component, and its aliases: several may have the same names. */
typedef struct component_names {
    sfti_names made, aliases;
    bool drawn;
} component_names;

static bool draw_names(sft_layout_conversion *run, const sfti_layout_group *one,
                       component_names *names) {
    if (!names->drawn)
        names->drawn = sfti_layout_names(run->out.parts + one->first, one->made, &run->arena,
                                         &names->made)
                    && sfti_names_draw(&names->aliases, run->alias_most, key_of_alias,
                                       run->aliases, &run->arena);
    return names->drawn;
}

/* The component whose names begin as this one; NULL: none is known. */
static const sfti_layout_group *group_of_name(const sft_layout_conversion *run, sft_span name,
                                              sft_span *prefix) {
    *prefix = sfti_layout_prefix_of(&run->layouts, name);
    for (size_t i = 0; i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        if (one->part && one->input == run->blames && sft_span_equal(one->prefix, *prefix))
            return one;
    }
    return NULL;
}

/* The name behind another prefix; data NULL: out of memory. */
static sft_span renamed_alias(sft_layout_conversion *run, sft_span prefix, sft_span name,
                              size_t before) {
    sft_span rest = sfti_from(name, before);
    return (sft_span){ sfti_arena_join(&run->arena, prefix, rest), prefix.len + rest.len };
}

/* Both names as a component's names change, if they do so only in how they begin: nothing tells
 * what a rule would make of a tensor that is not there. */
static sft_code keep_alias(sft_layout_conversion *run, component_names *all, sft_pair pair,
                           sft_error *err) {
    size_t shard;
    sft_span prefix, other;
    const sft_set *set = run->sets[run->blames];
    const sft_tensor *tensor = sft_set_find(set, pair.value, &shard);
    const sfti_layout_group *one = group_of_name(run, pair.value, &prefix);
    if (!one) return SFT_OK; /* nor is the tensor written */
    sft_span to = prefix_for(run, one);
    sfti_layout_alias *alias = &run->aliases[run->alias_count];
    *alias = (sfti_layout_alias){ { renamed_alias(run, to, pair.key, prefix.len),
                                    renamed_alias(run, to, pair.value, prefix.len) }, one };
    component_names *names = &all[one - run->groups.items];
    if (!alias->pair.key.data || !alias->pair.value.data || !draw_names(run, one, names))
        return sfti_fail_memory(err, to.len);
    uint32_t at = sfti_names_find(&names->made, alias->pair.value);
    const sft_part *part = at == SFTI_NO_NAME ? NULL : &run->out.parts[one->first + at];
    bool same = group_of_name(run, pair.key, &other) == one && part && part->source
             && part->source->ctx == sft_file_source(sft_set_shard_at(set, shard)).ctx
             && part->begin == tensor->offset
             && sfti_names_find(&names->made, alias->pair.key) == SFTI_NO_NAME;
    if (!same && run->options.ignore_unmatched) return SFT_OK;
    if (!same) {
        sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, pair.key,
                         "expected names whose places in the other layout are known, found one "
                         "that only metadata have, for \"%.*s\": remove that record first",
                         SFTI_CLIP(pair.value, 200));
        sfti_hint(err, SFT_HINT_NONE);
        return SFT_TENSOR_NOT_FOUND;
    }
    if (sfti_names_add(&names->aliases, alias->pair.key, (uint32_t)run->alias_count)
        == run->alias_count)
        run->alias_count++;
    return SFT_OK;
}

/* ── All metadata ── */

/* torchao's lists of all files as one; the first where another is no list. */
static sft_code join_listed(sft_layout_conversion *run, sft_span *value, sft_error *err) {
    size_t most = 0, count = 0;
    sft_span joined;
    for (size_t i = 0; i < run->set_count; i++) most += sft_set_shard_count(run->sets[i]);
    sft_span *lists = sfti_arena_array(&run->arena, most, sizeof *lists);
    if (!lists) return sfti_fail_memory(err, most * sizeof *lists);
    for (size_t i = 0; i < run->set_count; i++)
        for (size_t s = 0; s < sft_set_shard_count(run->sets[i]); s++)
            count += sft_file_metadata_get(sft_set_shard_at(run->sets[i], s),
                                           sft_span_cstr(SFTI_LISTED_KEY), &lists[count]);
    if (!sfti_lists_joined(lists, count, &run->arena, &joined))
        return sfti_fail_memory(err, value->len);
    if (joined.data) *value = joined;
    return SFT_OK;
}

/* Those of all files, and `format` for transformers. */
static sft_code keep_pair(sft_layout_conversion *run, sfti_names *names, sft_pair pair,
                          sft_error *err) {
    bool declares = sfti_is(pair.key, SFTI_DECLARED_KEY);
    if (sfti_digest_key_of(pair.key) & SFTI_DIGESTS_OF_DATA) return SFT_OK;
    if (sfti_is(pair.key, SFTI_LAYOUT_PREFIX_KEY) || sfti_is(pair.key, SFTI_LAYOUT_PART_KEY))
        return SFT_OK;
    if (declares && is_renamed(run))
        return sfti_fail(err, SFT_SIZE_MISMATCH, "expected a model that is not quantised, found "
                         "%.*s, which names layers as they were: dequantise it first",
                         SFTI_CLIP(pair.key, 40));
    uint32_t before = sfti_names_find(names, pair.key);
    if (before == SFTI_NO_NAME) {
        if (sfti_is(pair.key, SFTI_LISTED_KEY)) {
            sft_code code = join_listed(run, &pair.value, err);
            if (code) return code;
        }
        run->pairs[run->pair_count] = pair;
        (void)sfti_names_add(names, pair.key, (uint32_t)run->pair_count++);
    } else if (sfti_is_reading_key(pair.key)
               && !sft_span_equal(run->pairs[before].value, pair.value)) {
        return sfti_fail(err, SFT_CAST_DTYPE, "expected one %.*s, which says how tensors are read, "
                         "in all files, found different ones", SFTI_CLIP(pair.key, 40));
    }
    return SFT_OK;
}

static sft_code list_metadata_pairs(sft_layout_conversion *run, sft_error *err) {
    uint64_t most = PAIRS_MORE;
    sfti_names names;
    component_names components[SFTI_LAYOUT_GROUPS] = { { .drawn = false } };
    for (size_t i = 0; i < run->set_count; i++)
        for (size_t s = 0; s < sft_set_shard_count(run->sets[i]); s++)
            most += sft_file_metadata_count(sft_set_shard_at(run->sets[i], s));
    run->alias_most = most;
    run->pairs = sfti_arena_array(&run->arena, most, sizeof *run->pairs);
    run->aliases = sfti_arena_array(&run->arena, most, sizeof *run->aliases);
    if (!run->pairs || !run->aliases
        || !sfti_names_draw(&names, most, key_of_pair, run->pairs, &run->arena))
        return sfti_fail_memory(err, most * sizeof *run->pairs);
    for (size_t i = 0; i < run->set_count; i++)
        for (size_t s = 0; s < sft_set_shard_count(run->sets[i]); s++) {
            const sft_file *file = sft_set_shard_at(run->sets[i], s);
            for (size_t k = 0; k < sft_file_metadata_count(file); k++) {
                run->blames = i;
                sft_pair pair = sft_file_metadata_at(file, k);
                sft_code code = sfti_set_is_alias(run->sets[i], pair)
                              ? keep_alias(run, components, pair, err)
                              : keep_pair(run, &names, pair, err);
                if (code) return code;
            }
        }
    if (run->options.to != SFT_LAYOUT_SINGLE
        && sfti_names_find(&names, sft_span_cstr("format")) == SFTI_NO_NAME)
        run->pairs[run->pair_count++] = (sft_pair){ sft_span_cstr("format"),
                                                    sft_span_cstr("pt") };
    for (size_t i = 0; run->options.to == SFT_LAYOUT_SINGLE && i < run->alias_count; i++)
        run->pairs[run->pair_count++] = run->aliases[i].pair;
    return SFT_OK;
}

/* ── Its tensors ── */

/* Whether a denoiser is among several whose model is not known. */
static sft_code check_model(const sft_layout_conversion *run, sft_error *err) {
    for (size_t i = 0; !run->model && run->groups.count > 1 && i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        if (one->part && sfti_is(one->part->comfy, "diffusion_models"))
            return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected a model whose pipeline is known, "
                             "found none by its tensors; its architecture would tell");
    }
    return SFT_OK;
}

static sft_code apply_group(sft_layout_conversion *run, sfti_layout_group *one, size_t *markers,
                            sft_error *err) {
    run->blames = one->input;
    one->first = run->out.count;
    size_t kept = run->out.kept;
    sfti_side to = one->part->old ? SFTI_DIFFUSERS : run->to;
    sft_code code = sfti_layout_apply(&run->layouts, one->part, one->side, to, one->parts,
                                      one->count, prefix_for(run, one), &run->out,
                                      one->unmatched, err);
    bool denoiser = sfti_is(one->part->comfy, "diffusion_models");
    for (size_t k = 0; !code && denoiser && k < run->groups.marker_count; k++) {
        const sft_part *marker = run->groups.markers[k];
        code = sfti_layout_out_add(&run->out, (sft_span){ "", 0 }, marker->spec.name,
                                   &marker->spec, marker, err);
        ++*markers;
    }
    if (!code && denoiser && run->to == SFTI_ORIGINAL) code = sfti_layout_tell(run, one, err);
    one->made = run->out.count - one->first;
    one->kept = run->out.kept - kept;
    return code;
}

static sft_code list_unmatched(sft_layout_conversion *run, sft_error *err) {
    for (int pass = 0; pass < 2; pass++) { /* counts, then fills */
        size_t at = 0;
        for (size_t i = 0; i < run->groups.count; i++) {
            const sfti_layout_group *one = &run->groups.items[i];
            for (size_t k = 0; k < one->count; k++) {
                sft_span name = one->parts[k].spec.name;
                if (one->part && !one->unmatched[k]) continue;
                if (pass == 1)
                    run->unmatched[at] = (sfti_layout_unmatched){
                        { name.data - one->prefix.len, name.len + one->prefix.len }, one->input };
                at++;
            }
        }
        run->told.unmatched = at;
        if (pass == 0) run->unmatched = sfti_arena_array(&run->arena, at, sizeof *run->unmatched);
        if (!run->unmatched) return sfti_fail_memory(err, at * sizeof *run->unmatched);
    }
    return SFT_OK;
}

static sft_code apply_layout(sft_layout_conversion *run, sft_error *err) {
    sft_code code = check_model(run, err);
    size_t known = 0, markers = 0, tensors = 0;
    for (size_t i = 0; i < run->groups.count; i++) known += run->groups.items[i].part != NULL;
    for (size_t i = 0; i < run->set_count; i++) tensors += run->inputs[i].count;
    if (!code && known == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected a model whose layouts are known, "
                         "found none by its %zu tensor%s", tensors, tensors == 1 ? "" : "s");
    for (size_t i = 0; !code && i < run->groups.count; i++)
        if (run->groups.items[i].part)
            code = apply_group(run, &run->groups.items[i], &markers, err);
    if (!code && markers != run->groups.marker_count)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected the denoiser that %zu markers (v_pred, "
                         "ztsnr) are about, found none or two", run->groups.marker_count);
    for (size_t i = 0; !code && run->to == SFTI_ORIGINAL && i < run->groups.count; i++) {
        const sfti_layout_group *one = &run->groups.items[i];
        if (one->part && !sfti_is(one->part->comfy, "diffusion_models"))
            code = sfti_layout_tell(run, one, err);
    }
    return code ? code : list_unmatched(run, err);
}

/* ── What is told ── */

static sft_code tell_needed(sft_layout_conversion *run, sft_error *err) {
    sft_code code = SFT_OK;
    if (run->to != SFTI_DIFFUSERS) return SFT_OK;
    for (size_t i = 0; !code && i < run->groups.marker_count; i++) {
        const sft_span words[] = {
            sft_span_cstr("the scheduler's configuration has to say what the marker "),
            run->groups.markers[i]->spec.name, sft_span_cstr(" says") };
        code = sfti_layout_note_add(run, false, words, 3, err);
    }
    const sft_span no_index = sft_span_cstr("no model_index.json: the pipeline of this model is "
                                            "not known");
    if (!code && run->told.pipeline.len == 0)
        code = sfti_layout_note_add(run, false, &no_index, 1, err);
    if (!code && run->told.pipeline.len > 0 && run->exact->alike.len > 0) {
        const sft_span words[] = { sft_span_cstr("model_index.json names "), run->told.pipeline,
                                   sft_span_cstr("; "), run->exact->alike };
        code = sfti_layout_note_add(run, false, words, 4, err);
    }
    if (!code && run->model && run->model->lacks.len > 0) {
        const sft_span words[] = { sft_span_cstr("a pipeline also needs "), run->model->lacks };
        code = sfti_layout_note_add(run, false, words, 2, err);
    }
    return code;
}

static sft_code list_components(sft_layout_conversion *run, sft_error *err) {
    size_t count = run->groups.count;
    run->components = sfti_arena_array(&run->arena, count, sizeof *run->components);
    run->component_groups = sfti_arena_array(&run->arena, count, sizeof *run->component_groups);
    run->configs = sfti_arena_array(&run->arena, count, sizeof *run->configs);
    if (!run->components || !run->component_groups || !run->configs)
        return sfti_fail_memory(err, count * sizeof *run->components);
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        sfti_layout_group *one = &run->groups.items[i];
        if (!one->part) continue;
        sft_buffer *config = &run->configs[run->component_count];
        *config = (sft_buffer){ .alloc = run->alloc };
        if (run->to == SFTI_DIFFUSERS)
            code = sfti_layout_config(&run->layouts, run->exact, one, &run->out, config,
                                      &one->has_config, err);
        run->component_groups[run->component_count] = one;
        run->components[run->component_count++] = (sft_layout_component){
            one->name, one->part->id, one->side == SFTI_DIFFUSERS, one->input, one->count,
            one->made, one->kept, { config->data, one->has_config ? config->len : 0 } };
    }
    run->told.left_out = run->groups.stray;
    if (run->model) run->told.architecture = run->model->id;
    bool proved = false;
    if (!code && run->exact)
        code = sfti_layout_proves_pipeline(&run->layouts, run->exact, &run->groups, run->to,
                                           &run->out, &proved, err);
    if (!code && proved) run->told.pipeline = run->exact->pipeline;
    if (code || run->to != SFTI_DIFFUSERS || !proved) return code;
    code = sfti_layout_index(&run->layouts, run->exact, &run->groups, &run->out, &run->index,
                             err);
    run->told.index = (sft_span){ run->index.data, run->index.len };
    return code;
}

/* ── Public ── */

sft_code sft_layout_conversion_new(const sft_set *const *sets, size_t count,
                                   const sft_layout_options *options, sft_layout_conversion **out,
                                   size_t *blames, sft_error *err) {
    sft_layout_conversion *run;
    if (!out) return sfti_misuse(err, "expected a place for the conversion, found NULL");
    sft_code code = sfti_layout_components(sets, count, options, out, blames, err);
    if (code) return code;
    run = *out;
    code = apply_layout(run, err);
    if (!code) code = list_metadata_pairs(run, err);
    if (!code) code = list_components(run, err);
    if (!code) code = tell_needed(run, err);
    if (!code && run->options.to != SFT_LAYOUT_SINGLE) code = sfti_layout_list_files(run, err);
    if (!code) return SFT_OK;
    if (blames) *blames = run->blames;
    *out = NULL;
    sft_layout_conversion_free(run);
    return code;
}

const sft_layout_facts *sft_layout_conversion_told(const sft_layout_conversion *run) {
    return run ? &run->told : NULL;
}

sft_span sft_layout_conversion_unmatched_at(const sft_layout_conversion *run, size_t i,
                                            size_t *set) {
    if (set) *set = SIZE_MAX;
    if (!run || i >= run->told.unmatched) return (sft_span){ "", 0 };
    if (set) *set = run->unmatched[i].set;
    return run->unmatched[i].name;
}

size_t sft_layout_conversion_components(const sft_layout_conversion *run) {
    return run ? run->component_count : 0;
}

const sft_layout_component *sft_layout_conversion_component_at(const sft_layout_conversion *run,
                                                               size_t i) {
    return run && i < run->component_count ? &run->components[i] : NULL;
}

sft_span sft_layout_conversion_note_at(const sft_layout_conversion *run, size_t i, bool *lost) {
    bool there = run && i < run->note_count;
    if (lost) *lost = there && run->notes[i].lost;
    return there ? run->notes[i].text : (sft_span){ "", 0 };
}

const sft_layout_file *sft_layout_conversion_file_at(const sft_layout_conversion *run, size_t i) {
    return run && i < run->file_count ? &run->files[i] : NULL;
}

const sft_part *sft_layout_conversion_parts(const sft_layout_conversion *run, size_t *count) {
    if (count) *count = run ? run->out.count : 0;
    return run ? run->out.parts : NULL;
}

const sft_pair *sft_layout_conversion_pairs(const sft_layout_conversion *run, size_t *count) {
    if (count) *count = run ? run->pair_count : 0;
    return run ? run->pairs : NULL;
}

sft_code sft_layout_conversion_save(sft_layout_conversion *run, sft_sink sink, const sft_job *job,
                                    sft_error *err) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (!code && !run) code = sfti_misuse(err, "expected a conversion, found NULL");
    if (!code && run->options.to != SFT_LAYOUT_SINGLE)
        code = sfti_misuse(err, "expected the layout of a single file, found one of folders");
    if (!code) code = sfti_layout_check_matched(run, err);
    if (code) {
        sft_sink_abandon(&sink);
        return code;
    }
    plan.alloc = &run->alloc;
    return sft_save_parts(run->out.parts, run->out.count, run->pairs, run->pair_count, &plan, sink,
                          &own, err);
}
