/* Which components a model has: its tensors by how their names begin, and what part each group is.
 * Tests: test_layout.c, tests/cli/layout. */
#include "layout/layout.h"

#include "base/error.h"
#include "os/path.h"

#include <string.h>

sft_code sfti_layout_input_of(const sft_set *set, sfti_arena *arena, sft_source **sources,
                              sfti_layout_input *out, sft_error *err) {
    size_t count = sft_set_tensor_count(set), shards = sft_set_shard_count(set);
    sft_part *parts = sfti_arena_array(arena, count, sizeof *parts);
    uint32_t *order = sfti_arena_array(arena, count, sizeof *order);
    const char *path = sft_set_shard_path(set, 0);
    *sources = sfti_arena_array(arena, shards, sizeof **sources);
    if (!parts || !order || !*sources) return sfti_fail_memory(err, count * sizeof *parts);
    sft_code code = sft_set_order(set, SFT_ORDER_NATURAL, order, err);
    for (size_t s = 0; s < shards; s++)
        (*sources)[s] = sft_file_source(sft_set_shard_at(set, s));
    for (size_t k = 0; !code && k < count; k++)
        parts[k] = sft_part_of(sft_set_tensor_at(set, order[k]),
                               &(*sources)[sft_set_tensor_shard(set, order[k])]);
    sft_span folder = sfti_path_name(sfti_path_above(sft_span_cstr(path ? path : "")));
    *out = (sfti_layout_input){ parts, count, folder, { "", 0 } };
    if (shards > 0)
        (void)sft_file_metadata_get(sft_set_shard_at(set, 0),
                                    sft_span_cstr(SFTI_LAYOUT_PART_KEY), &out->part);
    return code;
}

sft_span sfti_layout_prefix_of(const sfti_layout_text *layouts, sft_span name) {
    for (size_t i = 0; i < layouts->prefix_count; i++) {
        sft_span prefix = layouts->prefixes[i];
        if (name.len > prefix.len && memcmp(name.data, prefix.data, prefix.len) == 0) return prefix;
    }
    return (sft_span){ "", 0 };
}

static bool is_layout_marker(const sfti_layout_text *layouts, sft_span name) {
    sft_span word;
    for (sft_span rest = layouts->markers; sfti_layout_next(&rest, &word);)
        if (sft_span_equal(word, name)) return true;
    return false;
}

static sfti_layout_group *group_of(sfti_layout_groups *groups, size_t input, sft_span prefix) {
    for (size_t i = 0; i < groups->count; i++) {
        sfti_layout_group *one = &groups->items[i];
        if (one->input == input && sft_span_equal(one->prefix, prefix)) return one;
    }
    if (groups->count == SFTI_LAYOUT_GROUPS) return NULL;
    sfti_layout_group *one = &groups->items[groups->count++];
    *one = (sfti_layout_group){ .input = input, .prefix = prefix };
    return one;
}

sft_code sfti_layout_split(const sfti_layout_text *layouts, const sfti_layout_input *inputs,
                           size_t count, sfti_arena *arena, sfti_layout_groups *out,
                           sft_error *err) {
    *out = (sfti_layout_groups){ .count = 0 };
    for (int pass = 0; pass < 2; pass++) { /* counts, then fills */
        for (size_t i = 0; i < out->count; i++) out->items[i].count = 0;
        out->stray = out->marker_count = 0;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < inputs[i].count; k++) {
                const sft_part *part = &inputs[i].parts[k];
                sft_span name = part->spec.name, prefix = sfti_layout_prefix_of(layouts, name);
                if (sfti_layout_is_stray(layouts, name)) {
                    out->stray++;
                    continue;
                }
                if (is_layout_marker(layouts, name)) {
                    if (pass == 1) out->markers[out->marker_count] = part;
                    out->marker_count++;
                    continue;
                }
                sfti_layout_group *one = group_of(out, i, prefix);
                if (!one)
                    return sfti_fail(err, SFT_BAD_ARGUMENT, "expected the components of one "
                                     "pipeline, found more than %d", SFTI_LAYOUT_GROUPS);
                if (pass == 1) {
                    one->parts[one->count] = *part;
                    one->parts[one->count].spec.name =
                        (sft_span){ name.data + prefix.len, name.len - prefix.len };
                }
                one->count++;
            }
        if (pass == 1) break;
        out->markers = sfti_arena_array(arena, out->marker_count, sizeof *out->markers);
        if (!out->markers) return sfti_fail_memory(err, out->marker_count);
        for (size_t i = 0; i < out->count; i++) {
            sfti_layout_group *one = &out->items[i];
            one->parts = sfti_arena_array(arena, one->count, sizeof *one->parts);
            one->unmatched = sfti_arena_array(arena, one->count, sizeof *one->unmatched);
            if (!one->parts || !one->unmatched)
                return sfti_fail_memory(err, one->count * sizeof *one->parts);
            memset(one->unmatched, 0, one->count * sizeof *one->unmatched);
        }
    }
    return SFT_OK;
}

/* Whether a group is that part, in one of the layouts; where it might be both, in the one that is
 * not asked for. */
static bool group_is_part(const sfti_naming_part *part, const sfti_layout_group *one,
                    const sfti_names *names, sfti_side to, sfti_side *side) {
    bool original = sfti_layout_has_marks(part, SFTI_ORIGINAL, names, one->parts);
    bool diffusers = sfti_layout_has_marks(part, SFTI_DIFFUSERS, names, one->parts);
    *side = original && diffusers ? (to == SFTI_ORIGINAL ? SFTI_DIFFUSERS : SFTI_ORIGINAL)
          : original ? SFTI_ORIGINAL : SFTI_DIFFUSERS;
    return original || diffusers;
}

static bool is_taken(const sfti_layout_groups *groups, sft_span name) {
    for (size_t i = 0; i < groups->count; i++)
        if (groups->items[i].part && sft_span_equal(groups->items[i].name, name)) return true;
    return false;
}

static bool is_placed(const sfti_layout_group *one, sft_span folder,
                      const sfti_layout_component *at) {
    return one->prefix.len > 0 ? sft_span_equal(one->prefix, at->prefix)
                               : sft_span_equal(folder, at->name);
}

bool sfti_layout_is_variant(const sfti_layout_text *layouts, const sfti_naming_part *part) {
    for (size_t i = 0; part->class.len > 0 && &layouts->parts[i] != part; i++)
        if (sft_span_equal(layouts->parts[i].class, part->class)) return true;
    return false;
}

static sft_code settle_group(const sfti_layout_text *layouts, const sfti_layout_model *model,
                             sfti_side to, const sfti_layout_input *input, sfti_arena *arena,
                             const sfti_layout_groups *groups, sfti_layout_group *one,
                             sft_error *err) {
    const sfti_naming_part *told = sfti_layout_part_named(layouts, input->part);
    sft_span folder = input->folder;
    sfti_names names;
    sfti_side side;
    if (!sfti_layout_names(one->parts, one->count, arena, &names))
        return sfti_fail_memory(err, one->count);
    /* of the model: by its place, then by what it is */
    for (int pass = 0; model && !one->part && pass < 2; pass++)
        for (unsigned i = 0; i < model->count && !one->part; i++) {
            const sfti_layout_component *at = &model->components[i];
            const sfti_naming_part *part = at->part;
            if (told && sft_span_equal(told->class, part->class)) part = told;
            if ((pass == 0 && !is_placed(one, folder, at)) || is_taken(groups, at->name)
                || !group_is_part(part, one, &names, to, &side))
                continue;
            one->part = part, one->side = side, one->name = at->name;
            one->target = at->prefix;
        }
    for (size_t i = 0; i < layouts->part_count && !one->part; i++) {
        const sfti_naming_part *part = &layouts->parts[i];
        sfti_side other;
        if (told && sft_span_equal(told->class, part->class)) part = told;
        if (!group_is_part(part, one, &names, to, &side)) continue;
        for (size_t k = i + 1; side == SFTI_ORIGINAL && k < layouts->part_count; k++)
            if (group_is_part(&layouts->parts[k], one, &names, to, &other) && other == side)
                return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected the tensors of one layout, "
                                 "found those of %.*s or %.*s: the architecture would tell",
                                 SFTI_CLIP(part->id, 64), SFTI_CLIP(layouts->parts[k].id, 64));
        one->part = part, one->side = side, one->target = one->prefix;
        one->name = part->folder;
        for (unsigned k = 0; model && k < model->count; k++) {
            const sfti_layout_component *at = &model->components[k];
            if (!is_placed(one, folder, at)) continue;
            one->name = at->name, one->target = at->prefix;
            break;
        }
    }
    for (size_t i = 0; one->part && i < groups->count; i++)
        if (&groups->items[i] != one && groups->items[i].part
            && sft_span_equal(groups->items[i].name, one->name))
            return sfti_fail(err, SFT_TENSOR_DUPLICATE, "expected one %.*s, found two",
                             SFTI_CLIP(one->name, 64));
    return SFT_OK;
}

sft_code sfti_layout_settle(const sfti_layout_text *layouts, const sfti_layout_input *inputs,
                            const sfti_layout_model *model, sfti_side to, sfti_arena *arena,
                            sfti_layout_groups *groups, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < groups->count; i++) {
        sfti_layout_group *one = &groups->items[i];
        code = settle_group(layouts, model, to, &inputs[one->input], arena, groups, one, err);
    }
    return code;
}
