/* One model with the names of another. Tests: test_layout_like.c. */
#include "layout/layout.h"

#include "base/error.h"
#include "safetensors_io.h"
#include "safetensors_report.h"
#include "set/image.h"

#include <string.h>

/* Tensors of sets, and the components that they are. */
typedef struct like_side {
    const sft_set *const *sets;
    size_t count;
    sft_source **sources; /* of each set's shards */
    sfti_layout_input *inputs;
    sfti_layout_groups groups;
    sfti_names *names; /* of each group's parts */
} like_side;

typedef struct like_owner {
    sfti_arena arena;
    sfti_layout_out out;
    sft_set **sets;
    size_t count;
} like_owner;

typedef struct like_run {
    like_owner *owner;
    sfti_layout_text layouts;
    like_side model, other;
    sft_error *err;
} like_run;

static void close_like(void *ctx) {
    like_owner *owner = ctx, own = *owner;
    for (size_t i = 0; i < own.count; i++) sft_set_close(own.sets[i]);
    sfti_layout_out_free(&owner->out);
    sfti_arena_free(&own.arena); /* which holds the owner */
}

static uint32_t like_mode(const void *ctx) {
    const like_owner *owner = ctx;
    return sft_set_output_mode(owner->sets[0], NULL);
}

static sft_code list_side(like_run *run, like_side *side, sft_error *err) {
    sfti_arena *arena = &run->owner->arena;
    side->sources = sfti_arena_array(arena, side->count, sizeof *side->sources);
    side->inputs = sfti_arena_array(arena, side->count, sizeof *side->inputs);
    if (!side->sources || !side->inputs) return sfti_fail_memory(err, side->count);
    for (size_t i = 0; i < side->count; i++) {
        sft_code code = sfti_layout_input_of(side->sets[i], arena, &side->sources[i],
                                             &side->inputs[i], err);
        if (code) return code;
        side->inputs[i].part = (sft_span){ "", 0 };
    }
    sft_code code = sfti_layout_split(&run->layouts, side->inputs, side->count, arena,
                                      &side->groups, err);
    side->names = sfti_arena_array(arena, side->groups.count, sizeof *side->names);
    if (!code && !side->names) code = sfti_fail_memory(err, side->groups.count);
    for (size_t i = 0; !code && i < side->groups.count; i++)
        if (!sfti_layout_names(side->groups.items[i].parts, side->groups.items[i].count, arena,
                               &side->names[i]))
            code = sfti_fail_memory(err, side->groups.items[i].count);
    return code;
}

/* How many of these parts a group of the reference has, under the same names. */
static size_t count_common(const sft_part *parts, size_t count, const sfti_names *names) {
    size_t common = 0;
    for (size_t i = 0; i < count; i++)
        common += sfti_names_find(names, parts[i].spec.name) != SFTI_NO_NAME;
    return common;
}

/* Which part, and which group of the reference, a group is: that of the most common names. */
typedef struct like_choice {
    const sfti_naming_part *part; /* NULL: the names are the same but for the prefix */
    sfti_side from, to;
    size_t group, common; /* 0 common: it has nothing in common with any */
} like_choice;

static sft_code try_part(like_run *run, const sfti_layout_group *one, const sfti_naming_part *part,
                         sfti_side from, size_t k, like_choice *best) {
    sfti_layout_out out;
    sft_error err = SFT_ERROR_INIT;
    sfti_layout_out_begin(&out, &run->owner->arena.alloc);
    sfti_side to = from == SFTI_ORIGINAL ? SFTI_DIFFUSERS : SFTI_ORIGINAL;
    sft_code code = sfti_layout_apply(&run->layouts, part, from, to, one->parts, one->count,
                                      (sft_span){ "", 0 }, &out, one->unmatched, &err);
    size_t common = code ? 0 : count_common(out.parts, out.count, &run->other.names[k]);
    if (common > best->common) *best = (like_choice){ part, from, to, k, common };
    sfti_layout_out_free(&out);
    return code == SFT_OUT_OF_MEMORY ? sfti_fail_memory(run->err, one->count) : SFT_OK;
}

static sft_code choose_group(like_run *run, size_t i, const bool *taken, like_choice *best) {
    const sfti_layout_group *one = &run->model.groups.items[i];
    sft_code code = SFT_OK;
    *best = (like_choice){ .common = 0 };
    for (size_t k = 0; k < run->other.groups.count; k++) {
        size_t common = taken[k] ? 0 : count_common(one->parts, one->count, &run->other.names[k]);
        if (common > best->common) *best = (like_choice){ NULL, 0, 0, k, common };
    }
    if (best->common == one->count) return SFT_OK;
    for (size_t p = 0; !code && p < run->layouts.part_count; p++) {
        const sfti_naming_part *part = &run->layouts.parts[p];
        for (int side = SFTI_ORIGINAL; side <= SFTI_DIFFUSERS; side++) {
            if (!sfti_layout_has_marks(part, (sfti_side)side, &run->model.names[i], one->parts))
                continue;
            for (size_t k = 0; !code && k < run->other.groups.count; k++)
                if (!taken[k]
                    && sfti_layout_has_marks(part, side ? SFTI_ORIGINAL : SFTI_DIFFUSERS,
                                             &run->other.names[k],
                                             run->other.groups.items[k].parts))
                    code = try_part(run, one, part, (sfti_side)side, k, best);
        }
    }
    return code;
}

/* Adds the tensors of one group as the reference names them. */
static sft_code add_group(like_run *run, size_t i, bool *taken, bool *changed) {
    sfti_layout_group *one = &run->model.groups.items[i];
    sfti_layout_out *out = &run->owner->out;
    like_choice choice;
    sft_code code = choose_group(run, i, taken, &choice);
    if (code) return code;
    sft_span prefix = one->prefix;
    if (choice.common > 0) {
        prefix = run->other.groups.items[choice.group].prefix;
        taken[choice.group] = true;
    }
    *changed = *changed || choice.part || !sft_span_equal(prefix, one->prefix);
    memset(one->unmatched, 0, one->count * sizeof *one->unmatched);
    if (choice.part)
        code = sfti_layout_apply(&run->layouts, choice.part, choice.from, choice.to, one->parts,
                                 one->count, prefix, out, one->unmatched, run->err);
    for (size_t k = 0; !code && k < one->count; k++)
        if (!choice.part || one->unmatched[k])
            code = sfti_layout_out_add(out, prefix, one->parts[k].spec.name, &one->parts[k].spec,
                                       &one->parts[k], run->err);
    return code;
}

/* As all-in-one files have them. */
static sft_code add_as_single(like_run *run, bool *changed) {
    sfti_layout_groups *groups = &run->model.groups;
    const sfti_layout_model *model = NULL;
    size_t best = 0;
    /* the pipeline that has a part and a place for most of them */
    for (size_t m = 0; m < run->layouts.model_count; m++) {
        sfti_layout_groups tried = *groups;
        size_t fits = 0;
        sft_error err = SFT_ERROR_INIT;
        if (sfti_layout_settle(&run->layouts, run->model.inputs, &run->layouts.models[m],
                               SFTI_ORIGINAL, &run->owner->arena, &tried, &err))
            continue;
        for (size_t i = 0; i < tried.count; i++) {
            const sfti_layout_group *one = &tried.items[i];
            for (unsigned c = 0; one->part && c < run->layouts.models[m].count; c++)
                fits += run->layouts.models[m].components[c].part == one->part
                     && sft_span_equal(run->layouts.models[m].components[c].name, one->name);
        }
        if (fits > best) best = fits, model = &run->layouts.models[m];
    }
    sft_code code = sfti_layout_settle(&run->layouts, run->model.inputs, model, SFTI_ORIGINAL,
                                       &run->owner->arena, groups, run->err);
    for (size_t i = 0; !code && i < groups->count; i++) {
        sfti_layout_group *one = &groups->items[i];
        sft_span prefix = one->part && groups->count > 1 ? one->target : one->prefix;
        *changed = *changed || (one->part && one->side != SFTI_ORIGINAL)
                || !sft_span_equal(prefix, one->prefix);
        if (one->part && !one->part->old)
            code = sfti_layout_apply(&run->layouts, one->part, one->side, SFTI_ORIGINAL, one->parts,
                                     one->count, prefix, &run->owner->out, one->unmatched,
                                     run->err);
        for (size_t k = 0; !code && k < one->count; k++)
            if (!one->part || one->part->old || one->unmatched[k])
                code = sfti_layout_out_add(&run->owner->out, prefix, one->parts[k].spec.name,
                                           &one->parts[k].spec, &one->parts[k], run->err);
    }
    return code;
}

/* What is in no group: markers, and what only training needs. */
static sft_code add_others(like_run *run) {
    sft_code code = SFT_OK;
    for (size_t i = 0; i < run->model.count; i++)
        for (size_t k = 0; !code && k < run->model.inputs[i].count; k++) {
            const sft_part *part = &run->model.inputs[i].parts[k];
            bool other = sfti_layout_is_stray(&run->layouts, part->spec.name);
            for (size_t m = 0; !other && m < run->model.groups.marker_count; m++)
                other = run->model.groups.markers[m] == part;
            if (other)
                code = sfti_layout_out_add(&run->owner->out, (sft_span){ "", 0 }, part->spec.name,
                                           &part->spec, part, run->err);
        }
    return code;
}

/* ── Where they come from ── */

/* The last tensor of the file that begins at or before the byte. */
static void find_origin(const like_side *side, size_t s, const sft_source *source, uint64_t begin,
                        sfti_layout_origin *out) {
    const sft_set *set = side->sets[s];
    size_t first = 0;
    for (size_t k = 0; k < sft_set_shard_count(set); k++) {
        size_t count = sft_file_tensor_count(sft_set_shard_at(set, k)), low = 0, high = count;
        while (source == &side->sources[s][k] && high - low > 1) {
            size_t mid = low + (high - low) / 2;
            if (sft_set_tensor_at(set, first + mid)->offset <= begin) low = mid;
            else high = mid;
        }
        if (source == &side->sources[s][k] && count > 0)
            *out = (sfti_layout_origin){ s, (uint32_t)(first + low) };
        first += count;
    }
}

static sft_code find_origins(const like_run *run, const sft_set *set, sfti_arena *work,
                             sfti_layout_origin **origins) {
    const sfti_layout_out *out = &run->owner->out;
    size_t count = sft_set_tensor_count(set);
    sfti_layout_origin *all = sfti_arena_array(work, count, sizeof *all);
    if (!all) return sfti_fail_memory(run->err, count * sizeof *all);
    sfti_names names;
    if (!sfti_layout_names(out->parts, out->count, work, &names))
        return sfti_fail_memory(run->err, out->count);
    for (size_t i = 0; i < count; i++) {
        uint32_t at = sfti_names_find(&names, sft_set_tensor_at(set, i)->name);
        all[i] = (sfti_layout_origin){ SIZE_MAX, 0 };
        const sft_part *part = &out->parts[at];
        const sft_source *source = part->source;
        uint64_t begin = part->begin;
        if (source == &out->source) {
            const sfti_layout_segment *segment = sfti_layout_segment_at(out, begin);
            if (!segment || !segment->source) continue;
            source = segment->source, begin = segment->begin;
        }
        for (size_t s = 0; s < run->model.count; s++)
            find_origin(&run->model, s, source, begin, &all[i]);
    }
    *origins = all;
    return SFT_OK;
}

sft_code sfti_layout_like(const sft_set *reference, sft_set *const *sets, size_t count,
                          const sft_allocator *alloc, sfti_arena *work,
                          sfti_layout_origin **origins, sft_set **out, sft_error *err) {
    sfti_arena arena = { .alloc = sfti_allocator(alloc) };
    like_owner *owner = sfti_arena_take(&arena, sizeof *owner);
    like_run *run = sfti_arena_take(&arena, sizeof *run);
    sft_set **kept = sfti_arena_array(&arena, count, sizeof(sft_set *));
    bool changed = count > 1;
    *out = NULL;
    if (!owner || !run || !kept || count == 0) {
        for (size_t i = 0; i < count; i++) sft_set_close(sets[i]);
        sfti_arena_free(&arena);
        return count ? sfti_fail_memory(err, sizeof *owner)
                     : sfti_fail(err, SFT_BAD_ARGUMENT, "expected a model, found none");
    }
    memcpy(kept, sets, count * sizeof *kept);
    *owner = (like_owner){ .sets = kept, .count = count };
    sfti_layout_out_begin(&owner->out, alloc);
    owner->arena = arena;
    *run = (like_run){ .owner = owner, .err = err,
                       .model = { .sets = (const sft_set *const *)kept, .count = count },
                       .other = { .sets = &reference, .count = reference != NULL } };
    bool taken[SFTI_LAYOUT_GROUPS] = { false };
    sft_code code = sfti_layouts_built_in(&owner->arena, &run->layouts, err);
    if (!code) code = list_side(run, &run->model, err);
    if (!code) code = list_side(run, &run->other, err);
    if (!code && !reference) code = add_as_single(run, &changed);
    for (size_t i = 0; !code && reference && i < run->model.groups.count; i++)
        code = add_group(run, i, taken, &changed);
    if (!code && !changed) { /* it is as the reference is */
        *out = kept[0];
        owner->count = 0;
        if (origins) *origins = NULL;
        close_like(owner);
        return SFT_OK;
    }
    if (!code) code = add_others(run);
    if (code) {
        close_like(owner);
        return code;
    }
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    const sft_file *first = sft_set_shard_at(kept[0], 0);
    size_t pairs = sft_file_metadata_count(first);
    sft_pair *metadata = sfti_arena_array(&owner->arena, pairs, sizeof *metadata);
    if (!metadata) {
        close_like(owner);
        return sfti_fail_memory(err, pairs * sizeof *metadata);
    }
    for (size_t i = 0; i < pairs; i++) metadata[i] = sft_file_metadata_at(first, i);
    plan.alloc = &owner->arena.alloc;
    sfti_image_of of = { .parts = owner->out.parts, .count = owner->out.count,
                         .metadata = metadata, .metadata_count = pairs,
                         .plan = &plan, .arena = &owner->arena, .owner = owner,
                         .close = close_like, .mode = like_mode, .serial = true };
    code = sfti_image_set(&of, sft_set_shard_path(kept[0], 0), out, err);
    if (!code && origins) {
        code = find_origins(run, *out, work, origins);
        if (code) sft_set_close(*out);
        if (code) *out = NULL;
    }
    return code;
}
