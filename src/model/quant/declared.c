/* Quantised layers as ComfyUI declares them. Tests: test_convert.c. */
#include "quant/declared.h"

#include "keys/digest_keys.h"
#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "os/io.h"

#include <string.h>

#define MARKER ".comfy_quant"
#define MARKER_MOST 65536 /* bytes */

/* ── A format ── */

static bool is_declared_word(sft_span text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sft_span_equal(text, sft_span_cstr(words[i]))) return true;
    return false;
}

/* What stands in ComfyUI's objects and does not change how values are computed. */
static const char *const idle_keys[] = { "full_precision_matrix_mult", "full_precision_mm",
                                         "orig_dtype", "format_version", "linear_dtype",
                                         "quant_group_size" };

/* A size as an integer, or the two of [rows, columns]; false: it is another value, or another than
 * was told before. */
static bool read_declared_sizes(sfti_json json, uint64_t *sizes, size_t count) {
    if (count > 1 && json.type != SFTI_JSON_ARRAY) return false;
    for (size_t i = 0; i < count; i++) {
        if ((count > 1 ? sfti_json_next(&json) : json.type) != SFTI_JSON_UINT || json.value == 0
            || (sizes[i] && sizes[i] != json.value))
            return false;
        sizes[i] = json.value;
    }
    return count == 1 || sfti_json_next(&json) == SFTI_JSON_ARRAY_END;
}

/* Text, or an object, in which "params" may hold the rest. False: neither, or no JSON. */
static bool read_format(sft_span text, sfti_arena *arena, sfti_declared_format *out) {
    sfti_json json;
    bool inside = false, named = false;
    *out = (sfti_declared_format){ .name = { "", 0 }, .unknown = { "", 0 } };
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) == SFTI_JSON_STRING) {
        out->name = sfti_json_string(&json, arena);
        return out->name.data && sfti_json_next(&json) == SFTI_JSON_END;
    }
    if (json.type != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(&json) == SFTI_JSON_KEY || json.type == SFTI_JSON_OBJECT_END) {
        if (json.type == SFTI_JSON_OBJECT_END) continue;
        sft_span key = sfti_json_string(&json, arena);
        if (!key.data) return false;
        sfti_json_type type = sfti_json_next(&json);
        bool is_bool = type == SFTI_JSON_TRUE || type == SFTI_JSON_FALSE;
        if (type == SFTI_JSON_OBJECT && !inside && sft_span_equal(key, sft_span_cstr("params"))) {
            inside = true;
            continue;
        }
        if (type == SFTI_JSON_STRING && sft_span_equal(key, sft_span_cstr("format"))) {
            sft_span name = sfti_json_string(&json, arena);
            if (!name.data) return false;
            if (named && !sft_span_equal(name, out->name)) out->unknown = name.len ? name : key;
            else out->name = name;
            named = true;
        } else if (is_bool && sft_span_equal(key, sft_span_cstr("convrot"))) {
            if (type == SFTI_JSON_TRUE) out->rotates = true;
            else out->rotates_not = true;
            if (out->rotates && out->rotates_not) out->unknown = key;
        } else if (is_bool && sft_span_equal(key, sft_span_cstr("per_row"))) {
            out->shares |= type == SFTI_JSON_TRUE ? SFTI_SHARE_ROW : SFTI_SHARE_ALL;
        } else if (sft_span_equal(key, sft_span_cstr("convrot_groupsize"))) {
            if (!read_declared_sizes(json, &out->rotated, 1)) out->unknown = key;
        } else if (sft_span_equal(key, sft_span_cstr("group_size"))) {
            if (!read_declared_sizes(json, &out->group, 1)) out->unknown = key;
        } else if (sft_span_equal(key, sft_span_cstr("orig_shape"))) {
            if (!read_declared_sizes(json, out->shape, 2)) out->unknown = key;
        } else if (!is_declared_word(key, idle_keys, sizeof idle_keys / sizeof *idle_keys)) {
            out->unknown = key;
        }
        if (sfti_json_skip(&json) == SFTI_JSON_ERROR) return false;
    }
    if (out->rotated && !out->rotates_not) out->rotates = true;
    return json.type == SFTI_JSON_END;
}

static bool same_format(const sfti_declared_format *a, const sfti_declared_format *b) {
    return sft_span_equal(a->name, b->name) && sft_span_equal(a->unknown, b->unknown)
        && a->group == b->group && a->rotates == b->rotates && a->rotated == b->rotated
        && (a->shares == b->shares || !a->shares || !b->shares)
        && a->shape[0] == b->shape[0] && a->shape[1] == b->shape[1];
}

static sft_code fail_declared(const sfti_declared_layer *layer, const char *expected,
                              sft_span found, sft_error *err) {
    sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET,
                     layer->weight ? layer->weight->name : layer->name,
                     "expected %s, found \"%.*s\"", expected, SFTI_CLIP(found, 200));
    sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
    return SFT_CAST_DTYPE;
}

sft_code sfti_declared_find(const sfti_declared *declared, const sfti_declared_layer *layer,
                            sfti_arena *arena, sfti_declared_format *out,
                            const sfti_quant_layout **layout, sft_error *err) {
    const sft_tensor *m = layer->marker;
    *out = layer->format;
    *layout = NULL;
    if (layer->twice)
        return fail_declared(layer, "one declared format", sft_span_cstr("two"), err);
    if (m) {
        uint64_t size = m->end - m->begin;
        char *text = size <= MARKER_MOST ? sfti_arena_take(arena, (size_t)size) : NULL;
        if (size <= MARKER_MOST && !text) return sfti_fail_memory(err, size);
        sft_code code = text ? sft_read_bytes(layer->file, m->offset, text, (size_t)size, err)
                             : SFT_OK;
        if (code) return code;
        if (!text || sfti_utf8_check(text, (size_t)size) < size
            || !read_format((sft_span){ text, (size_t)size }, arena, out))
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, m->offset, m->name,
                                    "expected a format in JSON, found other bytes");
        if (layer->told && !same_format(out, &layer->format))
            return fail_declared(layer, "the same format in the tensor and in the metadata",
                                 layer->format.name, err);
    }
    for (size_t i = 1; i < declared->layouts.count; i++)
        if (out->name.len > 0 && sft_span_equal(out->name, declared->layouts.rows[i].comfy))
            *layout = &declared->layouts.rows[i];
    if (!*layout) return fail_declared(layer, "a declared format that is known", out->name, err);
    if (out->rotates && !(*layout)->rotate) out->unknown = sft_span_cstr("convrot");
    if (out->rotates_not && (*layout)->rotate && !(*layout)->rotate_if_told)
        out->unknown = sft_span_cstr("convrot");
    bool grouped = out->group == 0;
    for (size_t k = 0; k < (*layout)->count; k++) {
        uint32_t columns = (*layout)->parts[k].columns;
        grouped = grouped || columns == SFTI_BLOCK_ANY || columns == out->group;
    }
    if (!grouped) out->unknown = sft_span_cstr("group_size");
    if (out->unknown.len == 0) return SFT_OK;
    sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET,
                     layer->weight ? layer->weight->name : layer->name,
                     "expected \"%.*s\" and nothing that changes values, found \"%.*s\" declared "
                     "too", SFTI_CLIP(out->name, 100), SFTI_CLIP(out->unknown, 100));
    sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
    return SFT_CAST_DTYPE;
}

/* ── Layers ── */

static sft_span name_of_layer(const void *ctx, uint32_t entry) {
    return ((const sfti_declared *)ctx)->layers[entry].name;
}

/* The layer of that name, which may be new; it has room. */
static sfti_declared_layer *put_layer(sfti_declared *d, sft_span name) {
    uint32_t at = (uint32_t)d->count;
    d->layers[at] = (sfti_declared_layer){ .name = name };
    uint32_t found = sfti_names_add(&d->names, name, at);
    d->count += found == at;
    return &d->layers[found];
}

sfti_declared_layer *sfti_declared_of(const sfti_declared *declared, sft_span tensor,
                                      sft_span *leaf) {
    size_t dot = tensor.len;
    if (declared->count == 0) return NULL;
    while (dot > 0 && tensor.data[dot - 1] != '.') dot--;
    if (dot == 0) return NULL;
    uint32_t found = sfti_names_find(&declared->names, (sft_span){ tensor.data, dot - 1 });
    if (found == SFTI_NO_NAME) return NULL;
    if (leaf) *leaf = (sft_span){ tensor.data + dot, tensor.len - dot };
    return &declared->layers[found];
}

static bool marks_layer(sft_span name) {
    return name.len > strlen(MARKER) && sfti_name_ends(name, MARKER);
}

/* Each member of "layers" of the metadata's value: the bytes of the member, the name and the
 * value. False at the end, or when it is no such JSON, which json->type tells; or memory is out. */
typedef struct layer_walk {
    sfti_json json;
    bool inside, starved;
    size_t open, close; /* what stands between the braces of "layers" */
    size_t begin, end;
    sft_span name, value;
} layer_walk;

static bool next_layer(layer_walk *walk, sfti_arena *arena) {
    sfti_json *json = &walk->json;
    while (sfti_json_next(json) == SFTI_JSON_OBJECT || json->type == SFTI_JSON_KEY
           || json->type == SFTI_JSON_OBJECT_END) {
        if (json->type == SFTI_JSON_OBJECT_END && walk->inside) {
            walk->inside = false;
            walk->close = json->start;
        }
        if (json->type != SFTI_JSON_KEY) continue;
        walk->begin = json->start;
        walk->name = sfti_json_string(json, arena);
        walk->starved = !walk->name.data;
        if (walk->starved) return false;
        bool layers = !walk->inside && sft_span_equal(walk->name, sft_span_cstr("layers"));
        sfti_json_type type = sfti_json_next(json);
        if (layers && (walk->open || type != SFTI_JSON_OBJECT)) return false;
        if (layers) {
            walk->inside = true;
            walk->open = (size_t)(json->at - json->begin);
            continue;
        }
        size_t start = json->start;
        if (sfti_json_skip(json) == SFTI_JSON_ERROR) return false;
        walk->end = (size_t)(json->at - json->begin);
        walk->value = (sft_span){ json->begin + start, walk->end - start };
        if (walk->inside) return true;
    }
    return false;
}

/* The weight of a layer as the metadata name it, which may leave the usual prefix out. */
static sft_code find_weight(const sft_set *set, sft_span layer, sfti_arena *arena, sft_span *name,
                            const sft_tensor **weight, sft_error *err) {
    const char *begin;
    *weight = NULL;
    for (size_t i = 0; !*weight && (begin = sfti_declared_prefix(i)) != NULL; i++) {
        size_t prefix = strlen(begin), whole = prefix + layer.len;
        char *text = sfti_arena_take(arena, whole + strlen(".weight"));
        if (!text) return sfti_fail_memory(err, whole);
        memcpy(text, begin, prefix);
        if (layer.len > 0) memcpy(text + prefix, layer.data, layer.len);
        memcpy(text + whole, ".weight", strlen(".weight"));
        *name = (sft_span){ text, whole };
        *weight = sft_set_find(set, (sft_span){ text, whole + strlen(".weight") }, NULL);
    }
    if (!*weight) *name = layer;
    return SFT_OK;
}

/* Layers of one value of SFTI_DECLARED_KEY. */
static sft_code read_layers(sfti_declared *d, const sft_set *set, sft_span value, bool values,
                            sfti_arena *arena, sft_error *err) {
    layer_walk walk = { .inside = false };
    sfti_declared_format format;
    sfti_json_begin(&walk.json, value.data, value.len);
    while (next_layer(&walk, arena)) {
        const sft_tensor *weight;
        sft_span name;
        bool good = read_format(walk.value, arena, &format);
        sft_code code = find_weight(set, walk.name, arena, &name, &weight, err);
        if (code) return code;
        sfti_declared_layer *layer = put_layer(d, name);
        layer->weight = weight;
        if (!good) format.unknown = sft_span_cstr("no format");
        if (layer->told && !same_format(&layer->format, &format)) layer->twice = true;
        layer->told = true;
        layer->format = format;
    }
    if (walk.starved) return sfti_fail_memory(err, value.len);
    if ((walk.json.type == SFTI_JSON_END && walk.open) || !values) return SFT_OK;
    return sfti_fail(err, SFT_CAST_DTYPE,
                     "expected layers in JSON in the metadata's " SFTI_DECLARED_KEY
                     ", found another text");
}

/* Tensors of the layers. */
static void look_at_tensors(sfti_declared *d, const sft_set *set) {
    for (size_t i = 0; d->count > 0 && i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        sft_span leaf;
        sfti_declared_layer *layer = sfti_declared_of(d, tensor->name, &leaf);
        if (!layer) continue;
        layer->tensors++;
        if (sft_span_equal(leaf, sft_span_cstr("weight"))) layer->weight = tensor;
    }
}

static bool declared_value(const sft_set *set, size_t shard, sft_span *value) {
    return sft_file_metadata_get(sft_set_shard_at(set, shard), sft_span_cstr(SFTI_DECLARED_KEY),
                                 value);
}

bool sfti_may_hold_codes(sft_dtype dtype) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    bool whole = info->kind == SFT_KIND_INT || info->kind == SFT_KIND_UINT;
    return whole ? info->bits <= 32 : info->kind == SFT_KIND_FLOAT && info->bits <= 8;
}

bool sfti_declared_may(const sft_set *set) {
    for (size_t i = 0; i < sft_set_tensor_count(set); i++)
        if (sfti_may_hold_codes(sft_set_tensor_at(set, i)->dtype)) return true;
    return false;
}

/* Whether each tensor that may hold codes is in a layer that is declared and there: then none is
 * that of another layer under another name. */
static bool are_codes_declared(const sfti_declared *d, const sft_set *set) {
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        if (!sfti_may_hold_codes(tensor->dtype)) continue;
        const sfti_declared_layer *layer = sfti_declared_of(d, tensor->name, NULL);
        if (!layer || !layer->weight) return false;
    }
    return true;
}

sft_code sfti_declared_read(const sft_set *set, bool values, const sft_files *files,
                            sfti_arena *arena, sfti_declared *out, sft_error *err) {
    size_t most = 0, tensors = sft_set_tensor_count(set);
    sft_span value;
    sft_code code = SFT_OK;
    memset(out, 0, sizeof *out);
    if (!sfti_layouts_read(arena, &out->layouts)) return sfti_fail_memory(err, 0);
    for (size_t i = 0; i < tensors; i++) most += marks_layer(sft_set_tensor_at(set, i)->name);
    for (size_t s = 0; s < sft_set_shard_count(set); s++)
        if (declared_value(set, s, &value)) {
            layer_walk walk = { .inside = false };
            sfti_json_begin(&walk.json, value.data, value.len);
            while (next_layer(&walk, arena)) most++;
            if (walk.starved) return sfti_fail_memory(err, value.len);
        }
    out->layers = sfti_arena_array(arena, (uint64_t)most + 1, sizeof *out->layers);
    if (!out->layers || !sfti_names_draw(&out->names, most, name_of_layer, out, arena))
        return sfti_fail_memory(err, most * sizeof *out->layers);
    for (size_t i = 0; i < tensors; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        if (!marks_layer(tensor->name)) continue;
        sft_span name = { tensor->name.data, tensor->name.len - strlen(MARKER) };
        sfti_declared_layer *layer = put_layer(out, name);
        layer->marker = tensor;
        layer->file = sft_set_shard_at(set, sft_set_tensor_shard(set, i));
    }
    for (size_t s = 0; !code && s < sft_set_shard_count(set); s++)
        if (declared_value(set, s, &value))
            code = read_layers(out, set, value, values, arena, err);
    if (!code) look_at_tensors(out, set);
    bool all = !code && values && are_codes_declared(out, set);
    for (size_t i = 0; !code && values && !all && i < out->count; i++) {
        const sfti_declared_layer *layer = &out->layers[i];
        sfti_declared_format format;
        const sfti_quant_layout *layout;
        if (layer->weight) continue;
        /* Tensors of another name may be meant, which would be read without the declaration. */
        code = sfti_declared_find(out, layer, arena, &format, &layout, err);
        if (!code && (format.rotates || layout->parts[1].tiled || layout->parts[0].bits % 8))
            code = fail_declared(layer, "a weight of the layer", layout->id, err);
    }
    /* A folder's config.json may belong to another model. */
    if (!code && values && sfti_declared_may(set))
        code = sfti_declared_config(set, files, arena, out, err);
    return code;
}

bool sfti_declared_rest(const sfti_declared *declared, const sft_set *set, sft_span value,
                        bool lost, sfti_arena *arena, sft_span *out) {
    layer_walk walk = { .inside = false };
    char *text = sfti_arena_take(arena, value.len);
    size_t used = 0, taken = 0;
    *out = value;
    if (!text) return false;
    sfti_json_begin(&walk.json, value.data, value.len);
    while (next_layer(&walk, arena)) {
        const sft_tensor *weight;
        sft_span name;
        if (find_weight(set, walk.name, arena, &name, &weight, NULL)) return false;
        uint32_t found = sfti_names_find(&declared->names, name);
        bool known = weight && found != SFTI_NO_NAME;
        if (known ? declared->layers[found].taken : !lost) {
            taken += weight != NULL;
            continue;
        }
        if (used == 0) memcpy(text, value.data, used = walk.open);
        else text[used++] = ',';
        memcpy(text + used, value.data + walk.begin, walk.end - walk.begin);
        used += walk.end - walk.begin;
    }
    if (walk.starved || taken == 0) return !walk.starved;
    if (used > 0) memcpy(text + used, value.data + walk.close, value.len - walk.close);
    *out = (sft_span){ text, used > 0 ? used + value.len - walk.close : 0 };
    return true;
}
