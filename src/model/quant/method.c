/* quantization_config: the method that transformers would read a model with. */
#include "quant/declared.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "keys/digest_keys.h"
#include "os/io.h"
#include "os/path.h"

#include <string.h>

#define CONFIG_MOST (UINT64_C(16) << 20) /* bytes */

/* Members of the object; text of those that are no strings as it is spelled. */
static const char *const config_keys[] = { "quant_method", "method", "format", "quant_algo",
                                           "checkpoint_format", "version", "mode",
                                           "transform_config", "sparsity_config", "config_groups",
                                           "bits", "group_size", "weight_block_size", "desc_act",
                                           "dynamic", "fmt", "ignore", "exclude_modules",
                                           "modules_to_not_convert" };
#define CONFIG_KEYS (sizeof config_keys / sizeof *config_keys)
#define CONFIG_TRANSFORM 7
#define CONFIG_SPARSITY 8
#define CONFIG_GROUPS 9
#define CONFIG_BITS 10
#define CONFIG_GROUP_SIZE 11
#define CONFIG_BLOCK 12
#define CONFIG_ORDER 13
#define CONFIG_DYNAMIC 14
#define CONFIG_PLAIN 16 /* and all that follow */

typedef struct quant_object {
    sft_span values[CONFIG_KEYS];
} quant_object;

static sft_code fail_config(const char *where, const char *key, sft_span found, sft_error *err) {
    return sfti_fail(err, SFT_CAST_DTYPE,
                     "expected a %s that is known in the quantization_config of %s, found \"%.*s\"",
                     key, where, SFTI_CLIP(found, 200));
}

static sft_code fail_json(const char *where, sft_error *err) {
    return sfti_fail(err, SFT_CAST_DTYPE,
                     "expected a quantization_config in JSON in %s, found another text", where);
}

/* After OBJECT: its members; false when it is no JSON, or memory is out. */
static bool read_method(sfti_json *json, sfti_arena *arena, quant_object *out) {
    *out = (quant_object){ { { NULL, 0 } } };
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        size_t k = 0;
        sft_span key = sfti_json_string(json, arena);
        if (!key.data) return false;
        while (k < CONFIG_KEYS && !sft_span_equal(key, sft_span_cstr(config_keys[k]))) k++;
        sfti_json_type type = sfti_json_next(json);
        size_t start = json->start;
        sft_span value = json->text;
        if (type == SFTI_JSON_STRING) value = sfti_json_string(json, arena);
        if (sfti_json_skip(json) == SFTI_JSON_ERROR || !value.data) return false;
        if (type == SFTI_JSON_OBJECT || type == SFTI_JSON_ARRAY)
            value = (sft_span){ json->begin + start, (size_t)(json->at - json->begin) - start };
        if (k < CONFIG_KEYS && type != SFTI_JSON_NULL) out->values[k] = value;
    }
    return json->type == SFTI_JSON_OBJECT_END;
}

/* Whether an object of compressed-tensors says that values are as they are stored. */
static bool is_idle(sft_span object, sfti_arena *arena) {
    sfti_json json;
    quant_object sparsity;
    if (!object.data) return true;
    sfti_json_begin(&json, object.data, object.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    if (sfti_json_next(&json) == SFTI_JSON_OBJECT_END) return true;
    sfti_json_begin(&json, object.data, object.len);
    (void)sfti_json_next(&json);
    return read_method(&json, arena, &sparsity)
        && sft_span_equal(sparsity.values[2], sft_span_cstr("dense"));
}

/* Methods are spelled with either line. */
static bool is_method(sft_span a, sft_span b) {
    for (size_t i = 0; a.len == b.len && i < a.len; i++)
        if (a.data[i] != b.data[i] && !(a.data[i] == '_' && b.data[i] == '-')) return false;
    return a.len == b.len;
}

/* Whether the object has one of the values of "KEY=A|B"; *key, *found: those that it has. */
static bool has_value(const quant_object *object, sft_span condition, const char **key,
                      sft_span *found) {
    const char *equals = memchr(condition.data, '=', condition.len);
    sft_span name = { condition.data, equals ? (size_t)(equals - condition.data) : 0 }, word;
    sft_span values = { equals ? equals + 1 : "", equals ? condition.len - name.len - 1 : 0 };
    for (size_t k = 0; k < CONFIG_KEYS; k++) {
        if (!sft_span_equal(name, sft_span_cstr(config_keys[k]))) continue;
        *key = config_keys[k];
        *found = object->values[k];
        if (!found->data) return values.len > 0 && *values.data == '|';
        while (sfti_layout_word(&values, '|', &word))
            if (sft_span_equal(word, *found)) return true;
    }
    return false;
}

/* Two numbers of an array; another pair than before leaves none. False: they are others. */
static bool read_block_size(sfti_json *json, uint64_t blocks[2], bool *several) {
    uint64_t two[2] = { 0, 0 };
    for (size_t i = 0; i < 2; i++) {
        if (sfti_json_next(json) != SFTI_JSON_UINT || json->value == 0) return false;
        two[i] = json->value;
    }
    *several = *several || (blocks[0] && memcmp(blocks, two, sizeof two) != 0);
    memcpy(blocks, two, sizeof two);
    return sfti_json_next(json) == SFTI_JSON_ARRAY_END;
}

/* What "weights" in config_groups tell: numbers of bits, and sizes of groups and of blocks if they
 * are the only ones. False: blocks are no such pair. */
static bool read_weights(sfti_declared *d, sft_span groups, sfti_arena *arena) {
    sfti_json json;
    uint32_t depth = 0;
    static const struct { const char *name; uint32_t shares; } strategies[] = {
        { "tensor", SFTI_SHARE_ALL }, { "channel", SFTI_SHARE_ROW }, { "group", SFTI_SHARE_GROUP },
        { "tensor_group", SFTI_SHARE_GROUP }, { "block", SFTI_SHARE_BLOCK },
    };
    bool several = false, differ = false, told[2] = { false, false };
    size_t weights = 0, shared = 0, typed = 0; /* how many there are, and tell of both */
    if (!groups.data) return true;
    sfti_json_begin(&json, groups.data, groups.len);
    while (sfti_json_next(&json) != SFTI_JSON_END && json.type != SFTI_JSON_ERROR) {
        if (json.depth < depth) depth = 0;
        if (json.type != SFTI_JSON_KEY) continue;
        sft_span key = sfti_json_string(&json, arena);
        sfti_json_type type = sfti_json_next(&json);
        if (type == SFTI_JSON_OBJECT && sft_span_equal(key, sft_span_cstr("weights")))
            depth = json.depth, weights++;
        if (depth && json.depth == depth + 1 && type == SFTI_JSON_ARRAY
            && sft_span_equal(key, sft_span_cstr("block_structure"))
            && !read_block_size(&json, d->blocks, &differ))
            return false;
        if (!depth || json.depth != depth) continue;
        if (sft_span_equal(key, sft_span_cstr("actorder")))
            d->disordered = d->disordered || type == SFTI_JSON_TRUE
                         || sfti_json_is(&json, "group")
                         || sfti_json_is(&json, "dynamic");
        if (sft_span_equal(key, sft_span_cstr("symmetric")))
            told[type == SFTI_JSON_TRUE] = true;
        for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
            if (sft_span_equal(key, sft_span_cstr("strategy"))
                && sfti_json_is(&json, strategies[i].name))
                d->shares |= strategies[i].shares, shared++;
        if (sft_span_equal(key, sft_span_cstr("type"))) {
            bool is_int = sfti_json_is(&json, "int");
            if (is_int || sfti_json_is(&json, "float")) typed++;
            d->kinds |= 1u << (is_int ? SFT_KIND_INT : SFT_KIND_FLOAT);
        }
        if (type != SFTI_JSON_UINT) continue;
        if (sft_span_equal(key, sft_span_cstr("num_bits")) && json.value <= 8)
            d->widths |= 1u << json.value;
        if (!sft_span_equal(key, sft_span_cstr("group_size"))) continue;
        several = several || (d->group && d->group != json.value);
        d->group = json.value;
    }
    if (several) d->group = 0;
    if (shared < weights) d->shares = weights == 1 && d->group ? SFTI_SHARE_GROUP : 0;
    if (typed < weights) d->kinds = 0;
    d->asymmetric = told[0] && !told[1];
    if (differ) memset(d->blocks, 0, sizeof d->blocks);
    return true;
}

static sft_span plain_at(const void *ctx, uint32_t entry) { return ((const sft_span *)ctx)[entry]; }

/* Strings of an array. False: memory is out. */
static bool read_plain(sfti_declared *d, sft_span array, sfti_arena *arena) {
    uint32_t count = 0, most = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        sfti_json json;
        sfti_json_begin(&json, array.data, array.len);
        if (sfti_json_next(&json) != SFTI_JSON_ARRAY) return true;
        while (sfti_json_next(&json) != SFTI_JSON_END && json.type != SFTI_JSON_ERROR) {
            if (json.type != SFTI_JSON_STRING) continue;
            if (pass == 0) {
                most++;
                continue;
            }
            if (count == most) break;
            d->plain[count] = sfti_json_string(&json, arena);
            if (!d->plain[count].data) return false;
            (void)sfti_names_add(&d->plain_names, d->plain[count], count);
            count++;
        }
        if (pass > 0 || most == 0) continue;
        d->plain_count = most;
        d->plain = sfti_arena_array(arena, most, sizeof *d->plain);
        if (!d->plain || !sfti_names_draw(&d->plain_names, most, plain_at, d->plain, arena))
            return false;
    }
    return true;
}

bool sfti_declared_plain(const sfti_declared *declared, sft_span weight) {
    if (!declared->plain || !sfti_name_ends(weight, ".weight")) return false;
    weight.len -= strlen(".weight");
    return sfti_names_find(&declared->plain_names, weight) != SFTI_NO_NAME;
}

/* Whatever tells of some modules alone. False: memory is out. */
static bool take_scopes(sfti_declared *d, const quant_object *object, uint64_t bits,
                        uint64_t group, sfti_arena *arena) {
    bool rows = sft_span_equal(object->values[CONFIG_GROUP_SIZE], sft_span_cstr("-1"));
    const sfti_declared_scope all = { .widths = bits > 0 && bits <= 8 ? 1u << bits : 0,
                                      .disordered = sft_span_equal(object->values[CONFIG_ORDER],
                                                                   sft_span_cstr("true")),
                                      .group = group, .shares = group > 0 ? SFTI_SHARE_GROUP
                                                              : rows ? SFTI_SHARE_ROW : 0 };
    return sfti_scopes_groups(d, object->values[CONFIG_GROUPS], arena)
        && sfti_scopes_dynamic(d, object->values[CONFIG_DYNAMIC], &all, arena);
}

/* ── MLX ── */

static bool is_layer(sfti_json_type type) {
    return type == SFTI_JSON_OBJECT || type == SFTI_JSON_FALSE || type == SFTI_JSON_TRUE
        || type == SFTI_JSON_NULL;
}

/* Sizes of all layers and, with a table, of single ones in an object that the reader is inside of.
 * NULL, or why there are none. */
static const char *read_mlx(sfti_json *json, sfti_mlx *table, sfti_arena *arena,
                            uint64_t sizes[2]) {
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(json, arena);
        if (!key.data) return "no memory for it";
        sfti_json_type type = sfti_json_next(json);
        size_t k = sft_span_equal(key, sft_span_cstr("bits")) ? 0
                 : sft_span_equal(key, sft_span_cstr("group_size")) ? 1 : 2;
        if (k < 2) {
            if (sizes[k]) return "two";
            if (type != SFTI_JSON_UINT || json->value == 0) return "no number";
            sizes[k] = json->value;
        } else if (!table && sft_span_equal(key, sft_span_cstr("mode"))) {
            sft_span mode = type == SFTI_JSON_STRING ? sfti_json_string(json, arena) : key;
            if (!sft_span_equal(mode, sft_span_cstr("affine"))) return "another mode";
        } else if (table && is_layer(type)) {
            sfti_json inside = *json;
            sfti_mlx_layer *layer = &table->layers[table->count];
            *layer = (sfti_mlx_layer){ .name = key };
            if (type != SFTI_JSON_OBJECT) layer->why = type == SFTI_JSON_TRUE ? NULL : "false";
            else layer->why = read_mlx(&inside, NULL, arena, layer->sizes);
            uint32_t at = sfti_names_add(&table->names, key, (uint32_t)table->count);
            if (at != table->count++) table->layers[at].why = "two";
        }
        (void)sfti_json_skip(json);
    }
    return NULL;
}

static sft_span mlx_name(const void *ctx, uint32_t entry) {
    return ((const sfti_mlx_layer *)ctx)[entry].name;
}

/* False when out of memory. */
static bool take_mlx(sfti_declared *d, sft_span object, sfti_arena *arena) {
    sfti_json json;
    sfti_mlx *mlx = &d->mlx;
    uint32_t most = 0;
    sfti_json_begin(&json, object.data, object.len);
    (void)sfti_json_next(&json);
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        most += is_layer(sfti_json_next(&json));
        (void)sfti_json_skip(&json);
    }
    mlx->layers = sfti_arena_array(arena, most, sizeof *mlx->layers);
    if (!mlx->layers || !sfti_names_draw(&mlx->names, most, mlx_name, mlx->layers, arena))
        return false;
    sfti_json_begin(&json, object.data, object.len);
    (void)sfti_json_next(&json);
    mlx->why = read_mlx(&json, mlx, arena, mlx->sizes);
    d->object = object;
    return true;
}

const char *sfti_declared_mlx(const sfti_declared *d, sft_span layer, sfti_arena *arena,
                              uint64_t *bits, uint64_t *group) {
    static const sfti_mlx_layer none = { .why = NULL };
    if (!d->object.data) return "no configuration";
    uint32_t at = sfti_names_find(&d->mlx.names, layer);
    const sfti_mlx_layer *own = at == SFTI_NO_NAME ? &none : &d->mlx.layers[at];
    const char *why = d->mlx.why ? d->mlx.why : own->why;
    if (!why && !own->sizes[0] && !own->sizes[1] && d->stray.len > 0) {
        why = sfti_arena_join(arena, sft_span_cstr("sizes of a layer that there is not: "),
                              d->stray);
        if (!why) why = "sizes of a layer that there is not";
    }
    *bits = own->sizes[0] ? own->sizes[0] : d->mlx.sizes[0];
    *group = own->sizes[1] ? own->sizes[1] : d->mlx.sizes[1];
    return why ? why : *bits < 1 || *bits > 8 ? "another number" : NULL;
}

/* ── The method ── */

/* text: the object; fallback: the method where none is told, or NULL. */
static sft_code take_method(sfti_declared *d, sft_span text, const char *fallback,
                            const char *where, sfti_arena *arena, sft_error *err) {
    sfti_json json;
    quant_object object;
    sfti_json_begin(&json, text.data, text.len);
    bool is_mlx = fallback && strcmp(fallback, "mlx") == 0;
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT || !read_method(&json, arena, &object))
        return is_mlx ? SFT_OK : fail_json(where, err);
    sft_span name = object.values[0].data ? object.values[0] : object.values[1];
    bool mlx = object.values[CONFIG_BITS].data && object.values[CONFIG_GROUP_SIZE].data;
    if (is_mlx && !mlx) return SFT_OK; /* another's */
    if (!name.data && !fallback && mlx) fallback = "mlx";
    if (!name.data && fallback) name = sft_span_cstr(fallback);
    if (!name.data) return fail_config(where, "quant_method", sft_span_cstr("none"), err);
    uint64_t allowed = 0;
    const char *key = NULL, *wrong = NULL;
    sft_span found = { NULL, 0 };
    for (size_t i = 1; i < d->layouts.count; i++) {
        sft_span configs = d->layouts.rows[i].configs, method, keys, condition;
        while (sfti_layout_line(&configs, "config", &method, &keys)) {
            bool fits = is_method(name, method);
            if (!fits) continue;
            if (!wrong) wrong = "quant_method";
            while (sfti_layout_word(&keys, ' ', &condition)) {
                sft_span value = { NULL, 0 };
                bool has = has_value(&object, condition, &key, &value);
                if (!has) wrong = key, found = value;
                fits = fits && has;
            }
            if (fits) allowed |= UINT64_C(1) << i;
        }
    }
    if (!wrong) return fail_config(where, "quant_method", name, err);
    if (!allowed) return fail_config(where, wrong, found, err);
    for (size_t k = CONFIG_TRANSFORM; k <= CONFIG_SPARSITY; k++)
        if (!is_idle(object.values[k], arena))
            return fail_config(where, config_keys[k], object.values[k], err);
    if (d->method.len > 0 && d->allowed != allowed)
        return fail_config(where, "single quant_method", name, err);
    uint64_t bits = 0, group = 0, before = d->group;
    uint32_t widths = d->widths;
    bool own = object.values[CONFIG_DYNAMIC].data; /* layers have sizes of their own */
    mlx = mlx && sft_span_equal(name, sft_span_cstr("mlx"));
    if (mlx && d->object.data && !sft_span_equal(d->object, text))
        return fail_config(where, "single bits and group_size", text, err);
    if (mlx && !d->object.data && !take_mlx(d, text, arena))
        return sfti_fail_memory(err, text.len);
    (void)sfti_text_uint(object.values[CONFIG_BITS], &bits);
    if (!mlx && !own && bits > 0 && bits <= 8) d->widths = 1u << bits;
    if (widths && d->widths != widths)
        return fail_config(where, "single number of bits", object.values[CONFIG_BITS], err);
    sft_span size = object.values[CONFIG_GROUP_SIZE];
    if (sfti_text_uint(size, &group) && !own) d->group = group;
    if (!mlx && !own && d->group) d->shares |= SFTI_SHARE_GROUP;
    if (!own && sft_span_equal(size, sft_span_cstr("-1"))) d->shares |= SFTI_SHARE_ROW;
    if (before && d->group != before)
        return fail_config(where, "single group_size", size, err);
    if (!read_weights(d, object.values[CONFIG_GROUPS], arena))
        return fail_config(where, "block_structure", object.values[CONFIG_GROUPS], err);
    if (!take_scopes(d, &object, bits, group, arena)) return sfti_fail_memory(err, text.len);
    if (object.values[CONFIG_BLOCK].data) {
        sft_span block = object.values[CONFIG_BLOCK];
        sfti_json_begin(&json, block.data, block.len);
        bool several = false;
        if (sfti_json_next(&json) != SFTI_JSON_ARRAY
            || !read_block_size(&json, d->blocks, &several))
            return fail_config(where, "weight_block_size", block, err);
        if (several) return fail_config(where, "single weight_block_size", block, err);
        d->shares |= SFTI_SHARE_BLOCK;
    }
    for (size_t k = CONFIG_PLAIN; k < CONFIG_KEYS; k++)
        if (object.values[k].data && !read_plain(d, object.values[k], arena))
            return sfti_fail_memory(err, object.values[k].len);
    d->method = name;
    d->allowed = allowed;
    d->disordered = d->disordered
                 || sft_span_equal(object.values[CONFIG_ORDER], sft_span_cstr("true"));
    return SFT_OK;
}

/* Whether the path is that of one of several shards, whose layers may be in others. */
static bool is_shard(const char *path) {
    const char *of = path ? strstr(path + sfti_folder_len(path), "-of-") : NULL;
    return of && of[4] >= '0' && of[4] <= '9';
}

/* The first layer that has no tensors, and by MLX's object sizes of its own with which a tensor has
 * the same shapes as with those of all: under another name its codes would be read with these. */
static sft_code find_stray(const sft_set *set, sfti_arena *arena, sfti_declared *d,
                           sft_error *err) {
    uint64_t all[2] = { 0, 0 }, product;
    if (!sft_set_index_path(set) && is_shard(sft_set_shard_path(set, 0))) return SFT_OK;
    if (sfti_declared_mlx(d, sft_span_cstr(""), arena, &all[0], &all[1])
        || !sfti_mul(all[0], all[1], &product))
        return SFT_OK; /* which each layer tells */
    for (size_t i = 0; d->stray.len == 0 && i < d->mlx.count; i++) {
        const sfti_mlx_layer *layer = &d->mlx.layers[i];
        sft_span key = layer->name;
        uint64_t own[2], same;
        if (layer->why || !memchr(key.data, '.', key.len)) continue; /* not affine */
        for (size_t k = 0; k < 2; k++) own[k] = layer->sizes[k] ? layer->sizes[k] : all[k];
        if (own[0] == all[0] || !sfti_mul(own[0], own[1], &same) || same != product) continue;
        char *name = sfti_arena_join(arena, key, sft_span_cstr(".scales"));
        if (!name) return sfti_fail_memory(err, key.len);
        if (!sft_set_find(set, (sft_span){ name, key.len + strlen(".scales") }, NULL))
            d->stray = key;
    }
    return SFT_OK;
}

/* What a file beside the model has as its member of that name (NULL: all of it), and in its
 * text_config, where vLLM looks, too; of a repeated key the last counts. */
static sft_code take_beside(sfti_declared *d, sft_span text, const char *member,
                          const char *fallback, const char *where, sfti_arena *arena,
                          sft_error *err) {
    sfti_json json;
    bool inside = false;
    sft_span objects[2] = { { NULL, 0 }, { NULL, 0 } };
    sfti_json_begin(&json, text.data, text.len);
    if (!member) objects[0] = text;
    else if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return fail_json(where, err);
    while (member && (sfti_json_next(&json) == SFTI_JSON_KEY
                      || (inside && json.type == SFTI_JSON_OBJECT_END))) {
        if (json.type == SFTI_JSON_OBJECT_END) {
            inside = false;
            continue;
        }
        sft_span key = sfti_json_string(&json, arena);
        if (!key.data) return sfti_fail_memory(err, text.len);
        sfti_json_type type = sfti_json_next(&json);
        size_t start = json.start;
        bool texts = !inside && sft_span_equal(key, sft_span_cstr("text_config"));
        bool ours = sft_span_equal(key, sft_span_cstr(member));
        if (texts) objects[1] = (sft_span){ NULL, 0 };
        if (texts && type == SFTI_JSON_OBJECT) {
            inside = true;
            continue;
        }
        if (sfti_json_skip(&json) == SFTI_JSON_ERROR) return fail_json(where, err);
        sft_span value = { json.begin + start, (size_t)(json.at - json.begin) - start };
        if (ours) objects[inside] = type == SFTI_JSON_NULL ? (sft_span){ NULL, 0 } : value;
    }
    if (member && (json.type != SFTI_JSON_OBJECT_END || sfti_json_next(&json) != SFTI_JSON_END))
        return fail_json(where, err);
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < 2; i++) {
        if (!objects[i].data) continue;
        d->told = d->told.len == 0 ? objects[i] : (sft_span){
            sfti_arena_join(arena, d->told, objects[i]), d->told.len + objects[i].len };
        if (!d->told.data) return sfti_fail_memory(err, d->told.len);
        code = take_method(d, objects[i], fallback, where, arena, err);
    }
    return code;
}

/* A file beside the model; *out without data: there is none. */
static sft_code read_beside(const char *folder, const char *name, const sft_files *files,
                            sfti_arena *arena, sft_span *out, sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    size_t got = 0;
    sft_source source;
    sft_error own = SFT_ERROR_INIT;
    char *path = sfti_arena_join(arena, sft_span_cstr(folder), sft_span_cstr(name));
    *out = (sft_span){ NULL, 0 };
    if (!path) return sfti_fail_memory(err, strlen(folder));
    how.beneath = folder;
    how.files = files;
    how.alloc = &arena->alloc;
    sft_code code = sft_source_path(path, &how, &source, &own);
    if (code == SFT_NOT_FOUND) return SFT_OK;
    if (code && code != SFT_INDEX_PATH && code != SFT_IO_NOT_FILE)
        return sfti_fail_as(err, code, &own);
    if (code)
        return sfti_fail(err, code, "expected to read %s beside the model, which may say how it is "
                         "quantised, found a file that cannot be", name);
    char *text = NULL;
    if (source.size > CONFIG_MOST)
        code = sfti_fail(err, SFT_CAST_DTYPE, "expected %s of at most %llu bytes, found more", name,
                         (unsigned long long)CONFIG_MOST);
    else if (!(text = sfti_arena_take(arena, (size_t)source.size)))
        code = sfti_fail_memory(err, source.size);
    else code = sft_source_read(&source, 0, text, (size_t)source.size, &got, err);
    sft_source_close(&source);
    if (code) return code;
    if (got >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3, got -= 3;
    if (sfti_utf8_check(text, got) < got) return fail_json(name, err);
    *out = (sft_span){ text, got };
    return SFT_OK;
}

sft_code sfti_declared_files(const char *path, const sft_files *files, sfti_arena *arena,
                             sfti_declared *out, sft_error *err) {
    static const struct { const char *name, *member, *fallback; } beside[] = {
        { "config.json", SFTI_QUANTISER_KEY, NULL },
        { "config.json", "quantization", "mlx" },
        { "quantize_config.json", NULL, "gptq" },
        { "hf_quant_config.json", "quantization", "modelopt" },
    };
    const char *folder = sfti_arena_copy(arena, path, sfti_folder_len(path));
    sft_code code = folder ? SFT_OK : sfti_fail_memory(err, strlen(path));
    sft_span text;
    for (size_t i = 0; !code && i < sizeof beside / sizeof *beside; i++) {
        code = read_beside(folder, beside[i].name, files, arena, &text, err);
        if (!code && text.data)
            code = take_beside(out, text, beside[i].member, beside[i].fallback, beside[i].name,
                             arena, err);
    }
    return code;
}

sft_code sfti_declared_config(const sft_set *set, const sft_files *files, sfti_arena *arena,
                              sfti_declared *out, sft_error *err) {
    const char *path = sft_set_index_path(set) ? sft_set_index_path(set)
                                               : sft_set_shard_path(set, 0);
    sft_code code = path ? sfti_declared_files(path, files, arena, out, err) : SFT_OK;
    sft_span text, last = { NULL, 0 };
    for (size_t s = 0; !code && s < sft_set_shard_count(set); s++) {
        bool has = sft_file_metadata_get(sft_set_shard_at(set, s),
                                         sft_span_cstr(SFTI_QUANTISER_KEY), &text);
        if (!has || (last.data && sft_span_equal(text, last))) continue;
        code = take_method(out, text, NULL, "the metadata", arena, err);
        last = text;
    }
    if (!code && out->object.data) code = find_stray(set, arena, out, err);
    return code;
}
