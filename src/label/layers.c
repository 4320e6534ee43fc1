/* Layers of an adapter beside those of the model that it is for, where both have the same names, or
 * the adapter has them with '_' for dots. Tests: test_info_fits.c. */
#include "label/fits.h"
#include "label/tensors/adapters.h"

#include <string.h>

/* What stands before the names of a model's layers. */
static const char *const model_prefixes[] = {
    "", "model.", "model.diffusion_model.", "diffusion_model.", "language_model.model.",
    "model.language_model.", "transformer.",
};

/* One way to come from a name of the adapter to one of the model: what is cut off, and put before
 * the rest. */
typedef struct layer_way {
    const char *cut, *put;
    uint64_t found;
} layer_way;

typedef struct both_layers {
    sfti_arena arena;
    sfti_layers model; /* of the set at hand: its weights */
    sfti_module *adapter;
    size_t count;
} both_layers;

static const sft_tensor *layer_weight(const both_layers *both, const layer_way *way,
                                      sft_span name) {
    if (!sfti_begins(name, way->cut)) return NULL;
    const sfti_layer *found = sfti_layers_find(&both->model, sft_span_cstr(way->put),
                                               sfti_from(name, strlen(way->cut)));
    return found ? found->tensor : NULL;
}

static bool list_adapter(both_layers *both, const sft_info *adapter) {
    const sfti_view view = { .info = (sft_info *)adapter }; /* which is only read */
    size_t count = sft_set_tensor_count(adapter->set);
    sfti_suffixes suffixes;
    sfti_adapter_suffixes(&suffixes);
    both->adapter = sfti_arena_array(&both->arena, count + 1, sizeof *both->adapter);
    for (size_t i = 0; both->adapter && i < count; i++)
        both->count += sfti_adapter_layer(&view, &suffixes, sft_set_tensor_at(adapter->set, i),
                                          &both->adapter[both->count]);
    return both->count > 0;
}

static bool list_model(both_layers *both, const sft_set *set) {
    size_t count = sft_set_tensor_count(set);
    if (!sfti_layers_open(&both->model, &both->arena, count)) return false;
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        sfti_layer layer = { .name = tensor->name, .tensor = tensor };
        if (!sfti_ends(layer.name, ".weight")) continue;
        layer.name.len -= strlen(".weight");
        if (!sfti_layers_put(&both->model, &layer)) return false;
    }
    return true;
}

/* The way by which most layers are found. */
static layer_way best_way(const both_layers *both) {
    const char *cuts[] = { "", "", "base_model.model.model." };
    layer_way best = { .found = 0 };
    for (size_t i = 0; i < both->count && !*cuts[1]; i++)
        cuts[1] = sfti_layout_cut(both->adapter[i].name);
    for (size_t i = 0; i < SFTI_COUNT(cuts); i++)
        for (size_t j = 0; j < SFTI_COUNT(model_prefixes); j++) {
            layer_way way = { cuts[i], model_prefixes[j], 0 };
            for (size_t k = 0; k < both->count; k++)
                way.found += layer_weight(both, &way, both->adapter[k].name) != NULL;
            if (way.found > best.found) best = way;
        }
    return best;
}

static bool same_size(uint64_t have, uint64_t want) {
    return want == 0 || have == want;
}

/* Either way round: some layers are stored transposed. */
static void compare_layer(sfti_layer_match *match, const sft_set *set, const sfti_module *layer,
                          const sft_tensor *weight) {
    uint64_t out = sfti_size_of(set, weight, 0), in = sfti_size_of(set, weight, 1);
    if (weight->rank < 2 || in == 0 || out == 0 || layer->in + layer->out == 0) return;
    for (uint32_t i = 2; i < weight->rank && layer->folded; i++) in *= weight->shape[i];
    if ((same_size(in, layer->in) && same_size(out, layer->out))
        || (same_size(out, layer->in) && same_size(in, layer->out))) {
        match->same++;
    } else if (match->other.len == 0) {
        match->other = layer->name;
        match->in = layer->in, match->out = layer->out;
        match->model_in = in, match->model_out = out;
    }
}

sfti_layer_match sfti_match_layers(const sft_info *model, const sft_info *adapter) {
    sfti_layer_match match = { .same = 0 };
    both_layers both = { .arena = { .alloc = model->arena.alloc } };
    bool ready = adapter->set && list_adapter(&both, adapter), done = false;
    for (size_t p = 0; ready && !done && p <= model->part_count; p++) {
        const sft_set *set = p == 0 ? model->set : model->parts[p - 1].set;
        if (!set || !list_model(&both, set)) continue;
        layer_way way = best_way(&both);
        done = way.found > 0;
        for (size_t i = 0; done && i < both.count; i++) {
            const sfti_module *layer = &both.adapter[i];
            const sft_tensor *weight = layer_weight(&both, &way, layer->name);
            bool meant = sfti_begins(layer->name, way.cut) /* and of no text encoder */
                      && (!*way.cut || *sfti_layout_cut(layer->name));
            if (weight) compare_layer(&match, set, layer, weight);
            else match.missing += model->shard_of == 0 && meant;
        }
    }
    sfti_arena_free(&both.arena);
    return match;
}
