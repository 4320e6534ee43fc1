/* Layers of an adapter beside those of the model that it is for, where both have the same names. */
#include "label/fits.h"
#include "label/tensors/adapters.h"

#include <string.h>

#define LAYER_NAME 512
#define LAYER_TRIES 64 /* layers at most that are looked up in every way */

/* What stands before the names of a model's layers. */
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
    const char *const cuts[] = { "", sfti_layout_cut(name), "base_model.model.model." };
    bool meant;
    way->set = set;
    for (size_t i = 0; i < SFTI_COUNT(cuts); i++)
        for (size_t j = 0; j < SFTI_COUNT(model_prefixes); j++) {
            way->cut = cuts[i];
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

/* kohya writes '_' for the dots of a name: see below. */
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

/* ── Names with '_' for dots ── */

#define FOLDED_ENDS 8

/* An adapter whose names are folded: those of the model are, too, and looked up in it. */
typedef struct folded_names {
    const sfti_view *view;
    sfti_suffixes suffixes;
    const char *cut;             /* what stands before its names, or NULL */
    sft_span ends[FOLDED_ENDS];  /* of the tensors that are the first of a layer */
    size_t end_count;
    uint64_t layers;
} folded_names;

static void open_folded(folded_names *folded, const sfti_view *view) {
    *folded = (folded_names){ .view = view };
    sfti_adapter_suffixes(&folded->suffixes);
    for (size_t i = 0; i < sft_set_tensor_count(view->info->set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(view->info->set, i);
        const char *prefix = sfti_layout_cut(tensor->name);
        sfti_module layer;
        if (!sfti_ends(sft_span_cstr(prefix), "_") || (folded->cut && folded->cut != prefix)
            || !sfti_adapter_layer(view, &folded->suffixes, tensor, &layer)
            || has_dots(layer.name))
            continue;
        folded->cut = prefix;
        folded->layers++;
        sft_span end = sfti_from(tensor->name, layer.name.len);
        size_t k = 0;
        while (k < folded->end_count && !sft_span_equal(folded->ends[k], end)) k++;
        if (k == folded->end_count && k < FOLDED_ENDS) folded->ends[folded->end_count++] = end;
    }
}

/* The adapter's layer of a model's weight, whose name begins with the prefix. */
static bool folded_layer(const folded_names *folded, const sft_tensor *weight, const char *prefix,
                         sfti_module *out) {
    char buffer[LAYER_NAME];
    sft_span name = weight->name;
    size_t cut = strlen(folded->cut), put = strlen(prefix), end = strlen(".weight");
    if (!sfti_ends(name, ".weight") || !sfti_begins(name, prefix) || name.len <= put + end
        || cut + name.len > sizeof buffer)
        return false;
    memcpy(buffer, folded->cut, cut);
    size_t len = cut;
    for (size_t i = put; i < name.len - end; i++)
        buffer[len++] = name.data[i] == '.' ? '_' : name.data[i];
    for (size_t i = 0; i < folded->end_count; i++) {
        sft_span last = folded->ends[i];
        if (len + last.len > sizeof buffer) continue;
        memcpy(buffer + len, last.data, last.len);
        const sft_tensor *tensor = sft_set_find(folded->view->info->set,
                                                (sft_span){ buffer, len + last.len }, NULL);
        if (tensor && sfti_adapter_layer(folded->view, &folded->suffixes, tensor, out)) return true;
    }
    return false;
}

/* The prefix of the model's names by which most layers are found, or NULL. */
static const char *folded_way(const folded_names *folded, const sft_set *set) {
    uint64_t found[SFTI_COUNT(model_prefixes)] = { 0 };
    sfti_module layer;
    size_t best = 0;
    for (size_t i = 0; i < sft_set_tensor_count(set); i++)
        for (size_t k = 0; k < SFTI_COUNT(model_prefixes); k++)
            found[k] += folded_layer(folded, sft_set_tensor_at(set, i), model_prefixes[k], &layer);
    for (size_t k = 1; k < SFTI_COUNT(model_prefixes); k++)
        if (found[k] > found[best]) best = k;
    return found[best] > 0 ? model_prefixes[best] : NULL;
}

static sfti_layer_match match_folded(const sft_info *model, const sfti_view *view) {
    sfti_layer_match match = { .same = 0 };
    folded_names folded;
    const sft_set *set = model->set;
    open_folded(&folded, view);
    if (!folded.cut) return match;
    const char *prefix = set ? folded_way(&folded, set) : NULL;
    for (size_t i = 0; i < model->part_count && !prefix; i++) {
        set = model->parts[i].set;
        prefix = folded_way(&folded, set);
    }
    uint64_t found = 0;
    for (size_t i = 0; prefix && i < sft_set_tensor_count(set); i++) {
        const sft_tensor *weight = sft_set_tensor_at(set, i);
        sfti_module layer;
        if (!folded_layer(&folded, weight, prefix, &layer)) continue;
        compare_layer(&match, set, &layer, weight);
        found++;
    }
    if (found > 0 && found < folded.layers && model->shard_of == 0)
        match.missing = folded.layers - found;
    return match;
}

/* ── All ── */

sfti_layer_match sfti_match_layers(const sft_info *model, const sft_info *adapter) {
    sfti_layer_match match = { .same = 0 };
    const sfti_view view = { .info = (sft_info *)adapter }; /* which is only read */
    sfti_suffixes suffixes;
    layer_way way;
    bool whole = model->shard_of == 0, meant;
    if (!adapter->set) return match;
    if (!find_any(model, &view, &way)) return match_folded(model, &view);
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
