/* Which layer of its model a module of an adapter is, and what other programs call it. Tests:
 * tests/layout/run.py. */
#include "adapter/convert_names.h"

#include "base/error.h"

#include <string.h>

/* ── Which layer ── */

static bool has_dot(sft_span text) {
    return memchr(text.data, '.', text.len) != NULL;
}

/* own: by the rules of adapters alone, which an encoder's are before those of its tensors. */
static bool find_rule_of(const sfti_convert_run *run, sft_span path, bool own,
                         sfti_convert_layer *layer) {
    const sfti_naming_part *part = layer->component->part;
    const sfti_layout_rule *rule;
    char name[SFTI_LAYOUT_NAME];
    bool flat = !has_dot(path);
    size_t at = 0;
    while ((rule = sfti_layout_next_rule(run->layouts, &part, &at))) {
        if (own && !rule->adapters) continue;
        bool original = sfti_layout_matches(rule->original, path, flat, &layer->match)
                     && layer->match.rest.len == 0;
        unsigned k = 0;
        bool other = false;
        while (!original && !other && k < rule->count) {
            const sft_span names[] = { rule->pieces[k], sfti_layout_layer(rule, k) };
            for (size_t n = 0; !other && n < SFTI_COUNT(names); n++)
                other = sfti_layout_matches(names[n], path, flat, &layer->match)
                     && layer->match.rest.len == 0 && !sfti_is(names[n], "-");
            k += !other;
        }
        if (!original && !other) continue;
        bool encoder = layer->component->part->adapters.len > 0;
        if (rule->adapters && !encoder) { /* a third name of the original layer */
            if (original || rule->count > 1) continue;
            size_t len = sfti_layout_make(rule->original, &layer->match, name, sizeof name);
            char *kept = sfti_arena_copy(&run->out->out.arena, name, len);
            const sfti_naming_part *same = layer->component->part;
            size_t from = 0;
            while (kept && (rule = sfti_layout_next_rule(run->layouts, &same, &from)))
                if (!rule->adapters
                    && sfti_layout_matches(rule->original, (sft_span){ kept, len }, false,
                                           &layer->match) && layer->match.rest.len == 0)
                    break;
            if (!kept || !rule) return false;
            original = true;
        }
        layer->rule = rule;
        layer->side = original ? SFTI_ORIGINAL : SFTI_DIFFUSERS;
        layer->piece = original ? 0 : k;
        return true;
    }
    return false;
}

static bool find_rule(const sfti_convert_run *run, sft_span path, sfti_convert_layer *layer) {
    bool encoder = layer->component->part->adapters.len > 0;
    return (encoder && find_rule_of(run, path, true, layer))
        || find_rule_of(run, path, false, layer);
}

static const sfti_layout_component *component_of(const sfti_convert_run *run, sfti_part part) {
    const sfti_layout_model *model = run->model;
    const sfti_layout_component *last = NULL;
    unsigned encoders = 0;
    for (unsigned i = 0; i < model->count; i++) {
        const sfti_layout_component *one = &model->components[i];
        bool encoder = one->part->adapters.len > 0, t5 = sfti_is(one->part->key, "t5xxl");
        if (part == SFTI_PART_MAIN && !encoder && sfti_is(one->part->comfy, "diffusion_models"))
            return one;
        if (part == SFTI_PART_MAIN || !encoder) continue;
        encoders++;
        if (part == SFTI_PART_TE3 && t5) return one;
        if ((part == SFTI_PART_TE || part == SFTI_PART_TE1) && encoders == 1) last = one;
        if (part == SFTI_PART_TE2 && (encoders == 2 || sfti_is(one->name, "text_encoder_2")))
            last = one;
    }
    return last;
}

/* Names in a layer's path that say nothing. */
static sft_span without_processor(sfti_convert_run *run, sft_span path) {
    static const char *const words[] = { ".processor.", "_processor_" };
    for (size_t w = 0; w < 2; w++)
        for (size_t i = 0; i + 11 < path.len; i++) {
            if (memcmp(path.data + i, words[w], 11) != 0) continue;
            sft_span begin = { path.data, i };
            return (sft_span){ sfti_arena_join(&run->out->out.arena, begin,
                                               sfti_from(path, i + 10)), path.len - 10 };
        }
    return path;
}

/* Names of PEFT do not tell the component: finds the layer in the only text encoder with it. */
static bool find_encoder(const sfti_convert_run *run, sft_span path, sfti_convert_layer *layer) {
    sfti_convert_layer found = *layer;
    unsigned count = 0;
    for (unsigned i = 0; i < run->model->count; i++) {
        layer->component = &run->model->components[i];
        if (layer->component->part->adapters.len == 0 || !find_rule(run, path, layer)) continue;
        found = *layer;
        count++;
    }
    *layer = found;
    return count == 1;
}

sft_code sfti_convert_layer_of(sfti_convert_run *run, const sfti_lora_module *m,
                               sfti_convert_layer *layer) {
    sft_span name = m->name;
    sfti_part part = SFTI_PART_MAIN;
    bool peft = false;
    *layer = (sfti_convert_layer){ .module = m };
    for (int i = 0; i < 4 && name.len > 0; i++) {
        layer->component = component_of(run, part);
        sft_span path = without_processor(run, name);
        if (!path.data) return sfti_fail_memory(run->err, name.len);
        if (layer->component && find_rule(run, path, layer)) return SFT_OK;
        if (layer->component && sfti_ends(path, "to_out")) {
            sft_span more = sft_span_cstr(has_dot(path) ? ".0" : "_0");
            const char *text = sfti_arena_join(&run->out->out.arena, path, more);
            if (!text) return sfti_fail_memory(run->err, path.len);
            if (find_rule(run, (sft_span){ text, path.len + 2 }, layer)) return SFT_OK;
        }
        const sfti_name_layout *layout = sfti_layout_of(name);
        if (!layout || layout->own) break;
        if (layout->part != SFTI_PART_MAIN) part = layout->part;
        peft = layout->format == SFTI_FORMAT_PEFT;
        name = sfti_from(name, strlen(layout->prefix));
    }
    if (part == SFTI_PART_MAIN && (peft || sfti_begins(name, "text_model"))
        && find_encoder(run, name, layer))
        return SFT_OK;
    layer->rule = NULL;
    return SFT_OK;
}

/* ── Which model ── */

static bool is_of_encoder(sft_span name) {
    for (int i = 0; i < 4; i++) {
        const sfti_name_layout *layout = sfti_layout_of(name);
        if (sfti_begins(name, "text_model")) return true;
        if (!layout || layout->own) return false;
        if (layout->part != SFTI_PART_MAIN) return true;
        name = sfti_from(name, strlen(layout->prefix));
    }
    return false;
}

bool sfti_convert_is_of_encoders(const sft_set *adapter) {
    size_t count = sft_set_tensor_count(adapter), encoders = 0;
    while (encoders < count && is_of_encoder(sft_set_tensor_at(adapter, encoders)->name))
        encoders++;
    return count > 0 && encoders == count;
}

sft_code sfti_lora_no_model(const sft_set *adapter, const char *more, sft_error *err) {
    bool encoders = adapter && sfti_convert_is_of_encoders(adapter);
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected an adapter that tells its model, or a "
                     "model whose layouts are known, found %s%s",
                     encoders ? "an adapter of text encoders alone, which several models share"
                              : "neither", more);
}

/* ── Names that are written ── */

sfti_side sfti_convert_side(const sfti_convert_run *run, const sfti_convert_layer *layer) {
    if (layer->component->part->adapters.len > 0) return SFTI_DIFFUSERS; /* of transformers */
    if (run->to == SFT_ADAPTER_COMFY) return SFTI_ORIGINAL;
    if (run->to == SFT_ADAPTER_KOHYA && !sfti_is(run->model->kohya, "diffusers"))
        return SFTI_ORIGINAL;
    return SFTI_DIFFUSERS;
}

static unsigned encoder_count(const sfti_layout_model *model) {
    unsigned count = 0;
    for (unsigned i = 0; i < model->count; i++)
        count += model->components[i].part->adapters.len > 0;
    return count;
}

/* What stands before a layer; at most 64 bytes. */
sft_span sfti_convert_prefix(const sfti_convert_run *run, const sfti_convert_layer *layer,
                             char *text) {
    const sfti_layout_component *of = layer->component;
    bool encoder = of->part->adapters.len > 0;
    const char *const kohya[] = { "lora_te_", "lora_te1_", "lora_te2_", "lora_te3_" };
    if (run->to == SFT_ADAPTER_KOHYA && encoder) {
        bool t5 = sfti_is(of->part->key, "t5xxl"), second = sfti_is(of->name, "text_encoder_2");
        return sft_span_cstr(kohya[encoder_count(run->model) < 2 ? 0 : t5 ? 3 : second ? 2 : 1]);
    }
    if (run->to == SFT_ADAPTER_KOHYA) return sft_span_cstr("lora_unet_");
    if (run->to == SFT_ADAPTER_PEFT) return sft_span_cstr("base_model.model.");
    if (run->to == SFT_ADAPTER_COMFY && !encoder) return sft_span_cstr("diffusion_model.");
    size_t len = 0;
    if (run->to == SFT_ADAPTER_COMFY) {
        memcpy(text, "text_encoders.", 14);
        memcpy(text + 14, of->part->key.data, of->part->key.len);
        memcpy(text + 14 + of->part->key.len, ".transformer.", 13);
        len = 27 + of->part->key.len;
    } else {
        memcpy(text, of->name.data, of->name.len);
        text[of->name.len] = '.';
        len = of->name.len + 1;
    }
    return (sft_span){ text, len };
}

/* The module's name; empty when out of memory or too long. */
sft_span sfti_convert_name(sfti_convert_run *run, const sfti_convert_layer *layer,
                           sft_span pattern) {
    char name[SFTI_LAYOUT_NAME], text[64 + 32];
    size_t len = sfti_layout_make(pattern, &layer->match, name, sizeof name);
    for (size_t i = 0; run->to == SFT_ADAPTER_KOHYA && i < len; i++)
        if (name[i] == '.') name[i] = '_';
    sft_span prefix = sfti_convert_prefix(run, layer, text);
    char *joined = len ? sfti_arena_join(&run->out->out.arena, prefix, (sft_span){ name, len })
                       : NULL;
    return (sft_span){ joined, joined ? prefix.len + len : 0 };
}
