/* quantization_config: the method that transformers would read a model with. */
#include "convert/declared.h"

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "convert/dequant.h"
#include "os/path.h"

#include <string.h>

#define CONFIG_MOST (UINT64_C(16) << 20) /* bytes */

#define METHOD_STORES(kind) (1u << SFTI_QUANT_##kind)

/* Methods whose values can be computed. Of several layouts `key` tells which, and the others are
 * of another method here. */
static const struct quant_method {
    const char *name;
    unsigned kinds;
    const char *key, *values[6];
} quant_methods[] = {
    { "fp8", METHOD_STORES(SCALED), NULL, { NULL } },
    { "fbgemm_fp8", METHOD_STORES(SCALED), NULL, { NULL } },
    { "compressed-tensors", METHOD_STORES(SCALED), "format",
      { "float-quantized", "int-quantized", "naive-quantized", "mxfp8-quantized", "dense" } },
    { "compressed_tensors", METHOD_STORES(SCALED), "format",
      { "float-quantized", "int-quantized", "naive-quantized", "mxfp8-quantized", "dense" } },
    { "modelopt", METHOD_STORES(SCALED), "quant_algo",
      { "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO" } },
    { "gptq", METHOD_STORES(GPTQ), "checkpoint_format", { "gptq" } },
    { "awq", METHOD_STORES(AWQ), "version", { "gemm", "GEMM" } },
    { "mxfp4", METHOD_STORES(MXFP4), NULL, { NULL } },
};

/* Members of the object; text of those that are no strings as it is spelled. */
static const char *const config_keys[] = { "quant_method", "method", "format", "quant_algo",
                                           "checkpoint_format", "version", "transform_config",
                                           "sparsity_config" };
#define CONFIG_KEYS (sizeof config_keys / sizeof *config_keys)
#define CONFIG_TRANSFORM 6
#define CONFIG_SPARSITY 7

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
        if (type == SFTI_JSON_OBJECT)
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

/* needs: a method must be told. */
static sft_code take_method(sfti_declared *d, const quant_object *object, const char *where,
                            bool needs, sfti_arena *arena, sft_error *err) {
    sft_span name = object->values[0].data ? object->values[0] : object->values[1];
    const struct quant_method *method = NULL;
    if (!name.data && !needs) name = sft_span_cstr("gptq");
    if (!name.data) return fail_config(where, "quant_method", sft_span_cstr("none"), err);
    for (size_t i = 0; i < sizeof quant_methods / sizeof *quant_methods; i++)
        if (sft_span_equal(name, sft_span_cstr(quant_methods[i].name))) method = &quant_methods[i];
    if (!method) return fail_config(where, "quant_method", name, err);
    for (size_t k = 0; method->key && k < CONFIG_KEYS; k++) {
        sft_span value = object->values[k];
        bool known = strcmp(config_keys[k], method->key) != 0 || !value.data;
        for (size_t i = 0; !known && i < 6 && method->values[i]; i++)
            known = sft_span_equal(value, sft_span_cstr(method->values[i]));
        if (!known) return fail_config(where, method->key, value, err);
    }
    for (size_t k = CONFIG_TRANSFORM; k <= CONFIG_SPARSITY; k++)
        if (!is_idle(object->values[k], arena))
            return fail_config(where, config_keys[k], object->values[k], err);
    if (d->method && (d->kinds != method->kinds))
        return fail_config(where, "single quant_method", name, err);
    d->method = method->name;
    d->kinds = method->kinds;
    return SFT_OK;
}

/* whole: the text is the object, which otherwise is its member. */
static sft_code take_text(sfti_declared *d, sft_span text, const char *where, bool whole,
                          bool needs, sfti_arena *arena, sft_error *err) {
    sfti_json json;
    quant_object object;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return fail_json(where, err);
    if (whole)
        return read_method(&json, arena, &object)
                   ? take_method(d, &object, where, needs, arena, err)
                   : fail_json(where, err);
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&json, arena);
        if (!key.data) return sfti_fail_memory(err, text.len);
        sfti_json_type type = sfti_json_next(&json);
        bool ours = sft_span_equal(key, sft_span_cstr("quantization_config"));
        if (ours && type == SFTI_JSON_OBJECT) {
            sft_code code = read_method(&json, arena, &object)
                                ? take_method(d, &object, where, needs, arena, err)
                                : fail_json(where, err);
            if (code) return code;
        } else if ((ours && type != SFTI_JSON_NULL) || sfti_json_skip(&json) == SFTI_JSON_ERROR) {
            return fail_json(where, err);
        }
    }
    return json.type == SFTI_JSON_OBJECT_END ? SFT_OK : fail_json(where, err);
}

/* A file beside the model; *out without data: there is none. */
static sft_code read_beside(const char *folder, const char *name, const sft_files *files,
                            sfti_arena *arena, sft_span *out, sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    size_t got = 0;
    sft_source source;
    char *path = sfti_arena_join(arena, sft_span_cstr(folder), sft_span_cstr(name));
    *out = (sft_span){ NULL, 0 };
    if (!path) return sfti_fail_memory(err, strlen(folder));
    how.beneath = folder;
    how.files = files;
    how.alloc = &arena->alloc;
    sft_code code = sft_source_path(path, &how, &source, NULL);
    if (code == SFT_NOT_FOUND || code == SFT_IO_NOT_FILE) return SFT_OK;
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

sft_code sfti_declared_config(const sft_set *set, const sft_files *files, sfti_arena *arena,
                              sfti_declared *out, sft_error *err) {
    static const struct { const char *name; bool whole; } beside[] = {
        { "config.json", false }, { "quantize_config.json", true },
    };
    const char *path = sft_set_index_path(set) ? sft_set_index_path(set)
                                               : sft_set_shard_path(set, 0);
    const char *folder = path ? sfti_arena_copy(arena, path, sfti_folder_len(path)) : NULL;
    sft_code code = path && !folder ? sfti_fail_memory(err, strlen(path)) : SFT_OK;
    sft_span text;
    for (size_t i = 0; folder && !code && i < sizeof beside / sizeof *beside; i++) {
        code = read_beside(folder, beside[i].name, files, arena, &text, err);
        if (!code && text.data)
            code = take_text(out, text, beside[i].name, beside[i].whole, !beside[i].whole, arena,
                             err);
    }
    for (size_t s = 0; !code && s < sft_set_shard_count(set); s++)
        if (sft_file_metadata_get(sft_set_shard_at(set, s), sft_span_cstr("quantization_config"),
                                  &text))
            code = take_text(out, text, "the metadata", true, true, arena, err);
    return code;
}
