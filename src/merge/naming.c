/* Models in other layouts than the one whose names the result has: components of which both layouts
 * are known (src/layout) are renamed, cut and joined as they are read. Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"
#include "layout/layout.h"
#include "safetensors_report.h"
#include "set/image.h"

#include <string.h>

#define COMPONENTS_MOST 16

/* Tensors of a model whose names begin alike, without that beginning. */
typedef struct naming_component {
    sft_span prefix;
    sft_part *parts;
    bool *unmatched;
    size_t count;
    sfti_names names;
} naming_component;

typedef struct naming_model {
    const sft_set *set;
    naming_component components[COMPONENTS_MOST];
    size_t count;
} naming_model;

/* What one component becomes. */
typedef struct naming_choice {
    const sfti_naming_part *part;
    const naming_component *like; /* of the reference */
    sfti_side from;
    size_t hits;
    sfti_layout_out out;
} naming_choice;

/* Of the set with other names. */
typedef struct naming_owner {
    sfti_arena arena;
    sft_source *sources;
    naming_choice choices[COMPONENTS_MOST];
    size_t count;
    sft_set *set;
} naming_owner;

static sft_span naming_part_name(const void *parts, uint32_t i) {
    return ((const sft_part *)parts)[i].spec.name;
}

static sft_span naming_prefix(const sfti_layout_text *layouts, sft_span name) {
    for (size_t i = 0; i < layouts->prefix_count; i++)
        if (name.len > layouts->prefixes[i].len && sfti_begins_with(name, layouts->prefixes[i]))
            return layouts->prefixes[i];
    return (sft_span){ name.data, 0 };
}

static naming_component *component_named(naming_model *m, sft_span prefix) {
    for (size_t i = 0; i < m->count; i++)
        if (sft_span_equal(m->components[i].prefix, prefix)) return &m->components[i];
    if (m->count == COMPONENTS_MOST) return NULL;
    m->components[m->count] = (naming_component){ .prefix = prefix };
    return &m->components[m->count++];
}

/* False: more beginnings than any pipeline has. */
static sft_code divide(naming_model *m, const sfti_layout_text *layouts, const sft_source *sources,
                       sfti_arena *arena, bool *fits, sft_error *err) {
    size_t count = sft_set_tensor_count(m->set);
    *fits = true;
    for (int pass = 0; pass < 2; pass++) { /* counts, then fills */
        for (size_t i = 0; i < m->count; i++) {
            naming_component *c = &m->components[i];
            c->parts = sfti_arena_array(arena, c->count, sizeof *c->parts);
            c->unmatched = sfti_arena_array(arena, c->count, sizeof *c->unmatched);
            if (!c->parts || !c->unmatched
                || !sfti_names_draw(&c->names, c->count, naming_part_name, c->parts, arena))
                return sfti_fail_memory(err, c->count * sizeof *c->parts);
            memset(c->unmatched, 0, c->count * sizeof *c->unmatched);
            c->count = 0;
        }
        for (size_t i = 0; i < count; i++) {
            const sft_tensor *tensor = sft_set_tensor_at(m->set, i);
            sft_span prefix = naming_prefix(layouts, tensor->name);
            naming_component *c = component_named(m, prefix);
            if (!c) *fits = false;
            if (!c) return SFT_OK;
            if (pass > 0) {
                size_t shard = sft_set_tensor_shard(m->set, i);
                sft_part *part = &c->parts[c->count];
                *part = sft_part_of(tensor, sources ? &sources[shard] : NULL);
                part->spec.name.data += prefix.len;
                part->spec.name.len -= prefix.len;
                (void)sfti_names_add(&c->names, part->spec.name, (uint32_t)c->count);
            }
            c->count++;
        }
    }
    return SFT_OK;
}

/* Tensors that the reference has under the same name. */
static size_t count_hits(const sft_set *reference, const sfti_layout_out *out) {
    size_t hits = 0;
    for (size_t i = 0; i < out->count; i++)
        hits += sft_set_find(reference, out->parts[i].spec.name, NULL) != NULL;
    return hits;
}

/* How a component is renamed so that it fits one of the reference's, if it has another layout. */
static sft_code choose_part(const sfti_layout_text *layouts, const naming_model *reference,
                            naming_component *c, naming_choice *best, const sft_allocator *alloc,
                            sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t r = 0; !code && r < reference->count; r++)
        for (size_t p = 0; !code && p < layouts->part_count * 2; p++) {
            const naming_component *like = &reference->components[r];
            const sfti_naming_part *part = &layouts->parts[p / 2];
            sfti_side to = p % 2 ? SFTI_DIFFUSERS : SFTI_ORIGINAL;
            sfti_side from = p % 2 ? SFTI_ORIGINAL : SFTI_DIFFUSERS;
            if (!sfti_layout_has_marks(part, to, &like->names, like->parts)
                || sfti_layout_has_marks(part, to, &c->names, c->parts)
                || !sfti_layout_has_marks(part, from, &c->names, c->parts))
                continue;
            naming_choice one = { .part = part, .like = like, .from = from };
            sfti_layout_out_begin(&one.out, alloc);
            code = sfti_layout_apply(layouts, part, from, to, c->parts, c->count, like->prefix,
                                     &one.out, c->unmatched, err);
            if (!code) one.hits = count_hits(reference->set, &one.out);
            if (!code && one.hits > 0 && one.hits == best->hits && part->like != best->part
                && best->part->like != part)
                code = sfti_fail(err, SFT_BAD_ARGUMENT, "expected tensors of one layout, found "
                                 "that they may be %.*s or %.*s: convert --layout with "
                                 "--architecture makes the layouts the same",
                                 SFTI_CLIP(best->part->id, 64), SFTI_CLIP(part->id, 64));
            if (code || one.hits <= best->hits) {
                sfti_layout_out_free(&one.out);
                continue;
            }
            if (best->part) sfti_layout_out_free(&best->out);
            *best = one;
            best->out.source.ctx = &best->out;
        }
    if (code || !best->part) return code;
    sfti_layout_out_free(&best->out); /* once more, where it stays: parts point to its source */
    sfti_layout_out_begin(&best->out, alloc);
    return sfti_layout_apply(layouts, best->part, best->from,
                             best->from == SFTI_ORIGINAL ? SFTI_DIFFUSERS : SFTI_ORIGINAL,
                             c->parts, c->count, best->like->prefix, &best->out, c->unmatched, err);
}

static void close_naming(void *ctx) {
    naming_owner *owner = ctx;
    sft_set *set = owner->set;
    sfti_arena arena = owner->arena; /* which holds the owner */
    for (size_t i = 0; i < owner->count; i++)
        if (owner->choices[i].part) sfti_layout_out_free(&owner->choices[i].out);
    sfti_arena_free(&arena);
    sft_set_close(set);
}

static uint32_t naming_mode(const void *owner) {
    return sft_set_output_mode(((const naming_owner *)owner)->set, NULL);
}

/* The set with the names that were chosen; it takes over the other. On failure nothing is closed. */
static sft_code make_renamed(naming_owner **from, naming_model *m, sft_set **set, const char *path,
                             sft_error *err) {
    naming_owner *owner = *from;
    size_t room = 0, count = 0;
    bool serial = false;
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    const sft_allocator alloc = owner->arena.alloc;
    plan.alloc = &alloc;
    for (size_t i = 0; i < m->count; i++) {
        const sfti_layout_out *out = &owner->choices[i].out;
        room += m->components[i].count + (owner->choices[i].part ? out->count : 0);
        for (size_t k = 0; k < out->segment_count; k++)
            serial = serial || out->segments[k].rows > 0;
    }
    sft_part *parts = sfti_arena_array(&owner->arena, room, sizeof *parts);
    if (!parts) return sfti_fail_memory(err, room * sizeof *parts);
    for (size_t i = 0; i < m->count; i++) {
        const naming_component *c = &m->components[i];
        const naming_choice *choice = &owner->choices[i];
        for (size_t k = 0; choice->part && k < choice->out.count; k++)
            parts[count++] = choice->out.parts[k];
        for (size_t k = 0; k < c->count; k++) {
            if (choice->part && !c->unmatched[k]) continue;
            parts[count] = c->parts[k];
            parts[count].spec.name.data -= c->prefix.len;
            parts[count++].spec.name.len += c->prefix.len;
        }
    }
    owner->set = *set;
    *set = NULL;
    *from = NULL;
    sfti_image_of of = { .parts = parts, .count = count, .plan = &plan, .arena = &owner->arena,
                         .owner = owner, .close = close_naming, .mode = naming_mode,
                         .serial = serial };
    return sfti_image_set(&of, path, set, err);
}

/* Whether all its names are those of the reference already, or none of what is renamed. */
static bool has_same_names(const sft_set *set, const sft_set *reference) {
    size_t i = 0, count = sft_set_tensor_count(set);
    while (i < count && sft_set_find(reference, sft_set_tensor_at(set, i)->name, NULL)) i++;
    return i == count;
}

sft_code sfti_merge_model_rename(sft_set **set, const char *path, const sft_set *reference,
                                 sfti_arena *arena, sfti_merge_model *model, sft_error *err) {
    sfti_layout_text layouts;
    bool fits = true, other = false, computed = model->computed != NULL;
    if (has_same_names(*set, reference)) return SFT_OK;
    sfti_arena own = { .alloc = arena->alloc }, work = { .alloc = arena->alloc };
    naming_owner *owner = sfti_arena_take(&own, sizeof *owner);
    naming_model *models = sfti_arena_array(&work, 2, sizeof *models);
    size_t shards = sft_set_shard_count(*set);
    sft_source *sources = sfti_arena_array(&own, shards, sizeof *sources);
    sft_code code = owner && models && sources ? SFT_OK : sfti_fail_memory(err, sizeof *models);
    if (code) {
        sfti_arena_free(&own);
        sfti_arena_free(&work);
        return code;
    }
    memset(owner, 0, sizeof *owner);
    owner->arena = own;
    for (size_t s = 0; s < shards; s++)
        sources[s] = sft_file_source(sft_set_shard_at(*set, s));
    models[0] = (naming_model){ .set = *set };
    models[1] = (naming_model){ .set = reference };
    code = sfti_layouts_built_in(&owner->arena, &layouts, err);
    if (!code) code = divide(&models[0], &layouts, sources, &owner->arena, &fits, err);
    if (!code && fits) code = divide(&models[1], &layouts, NULL, &work, &fits, err);
    owner->count = models[0].count;
    for (size_t i = 0; !code && fits && i < models[0].count; i++) {
        code = choose_part(&layouts, &models[1], &models[0].components[i], &owner->choices[i],
                           &arena->alloc, err);
        other = other || owner->choices[i].part;
    }
    if (!code && other) code = make_renamed(&owner, &models[0], set, path, err);
    if (owner) {
        owner->set = NULL;
        close_naming(owner);
    }
    sfti_arena_free(&work);
    if (code || !other) return code;
    size_t count = sft_set_tensor_count(*set);
    uint8_t *marks = computed ? sfti_arena_array(arena, count, 1) : NULL;
    if (computed && !marks) return sfti_fail_memory(err, count);
    if (computed) memset(marks, 1, count);
    model->set = *set;
    model->computed = marks;
    return SFT_OK;
}
