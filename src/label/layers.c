/* Layers of an adapter beside those of the model that it is for, where both have the same names. */
#include "label/fits.h"
#include "label/tensors/adapters.h"

#include <string.h>

#define LAYER_NAME 512
#define LAYER_TRIES 64 /* layers at most that are looked up in every way */

/* What stands before the names of an adapter's layers, and before those of a model's. */
static const char *const adapter_prefixes[] = {
    "", "base_model.model.", "base_model.model.model.", "diffusion_model.", "transformer.", "unet.",
};
static const char *const model_prefixes[] = {
    "", "model.", "model.diffusion_model.", "diffusion_model.", "language_model.model.",
    "model.language_model.", "transformer.",
};

/* One way to come from a name of the adapter to one of the model. */
typedef struct layer_way {
    const sft_set *set;
    const char *cut, *put;
} layer_way;

/* The model's weight of a layer; NULL: it has none. *meant: whether the name begins as it must. */
static const sft_tensor *layer_weight(const layer_way *way, sft_span name, bool *meant) {
    char buffer[LAYER_NAME];
    static const char end[] = ".weight";
    size_t cut = strlen(way->cut), put = strlen(way->put);
    *meant = sfti_begins(name, way->cut);
    if (!*meant || put + name.len - cut + sizeof end > sizeof buffer) return NULL;
    sft_span rest = sfti_from(name, cut);
    memcpy(buffer, way->put, put);
    if (rest.len) memcpy(buffer + put, rest.data, rest.len);
    memcpy(buffer + put + rest.len, end, sizeof end);
    return sft_set_find(way->set, (sft_span){ buffer, put + rest.len + sizeof end - 1 }, NULL);
}

static bool find_way_in(const sft_set *set, sft_span name, layer_way *way) {
    bool meant;
    way->set = set;
    for (size_t i = 0; i < SFTI_COUNT(adapter_prefixes); i++)
        for (size_t j = 0; j < SFTI_COUNT(model_prefixes); j++) {
            way->cut = adapter_prefixes[i];
            way->put = model_prefixes[j];
            if (layer_weight(way, name, &meant)) return true;
        }
    return false;
}

static bool find_way(const sft_info *model, sft_span name, layer_way *way) {
    if (model->set && find_way_in(model->set, name, way)) return true;
    for (size_t i = 0; i < model->part_count; i++)
        if (find_way_in(model->parts[i].set, name, way)) return true;
    return false;
}

/* kohya writes '_' for the dots of a name: which are which cannot be told. */
static bool has_dots(sft_span name) {
    return sfti_find_byte(name, '.').data != NULL;
}

/* The first layer, of some from all over the adapter, that the model has. */
static bool find_any(const sft_info *model, const sfti_view *view, layer_way *way) {
    size_t count = sft_set_tensor_count(view->info->set), seen = 0;
    size_t step = count / LAYER_TRIES + 1;
    sfti_suffixes suffixes;
    sfti_module layer;
    sfti_adapter_suffixes(&suffixes);
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(view->info->set, i);
        if (!sfti_adapter_layer(view, &suffixes, tensor, &layer) || !has_dots(layer.name)) continue;
        if (seen++ % step == 0 && find_way(model, layer.name, way)) return true;
    }
    return false;
}

static bool same_size(uint64_t have, uint64_t want) {
    return want == 0 || have == want;
}

/* Either way round: some layers are stored transposed. */
static void compare_layer(sfti_layer_match *match, const sft_set *set, const sfti_module *layer,
                          const sft_tensor *weight) {
    uint64_t out = sfti_size_of(set, weight, 0), in = sfti_size_of(set, weight, 1);
    if (weight->rank < 2 || in == 0 || out == 0 || layer->in + layer->out == 0) return;
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
    const sfti_view view = { .info = (sft_info *)adapter }; /* which is only read */
    sfti_suffixes suffixes;
    layer_way way;
    bool whole = model->shard_of == 0, meant;
    if (!adapter->set || !find_any(model, &view, &way)) return match;
    sfti_adapter_suffixes(&suffixes);
    for (size_t i = 0; i < sft_set_tensor_count(adapter->set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(adapter->set, i);
        sfti_module layer;
        if (!sfti_adapter_layer(&view, &suffixes, tensor, &layer)) continue;
        const sft_tensor *weight = layer_weight(&way, layer.name, &meant);
        if (weight) compare_layer(&match, way.set, &layer, weight);
        else match.missing += meant && whole;
    }
    return match;
}
