/* Configurations of adapters: adapter_config.json of PEFT, and the same in metadata. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "label/info.h"

#include <string.h>

#define PATTERNS_MOST 65536

static sfti_lora_config *config_for(sfti_lora *lora, sft_span prefix) {
    for (size_t i = 0; i < lora->config_count; i++)
        if (sft_span_equal(lora->configs[i].prefix, prefix)) return &lora->configs[i];
    if (lora->config_count == SFTI_LORA_CONFIGS) return NULL;
    sfti_lora_config *config = &lora->configs[lora->config_count++];
    *config = (sfti_lora_config){ .prefix = prefix, .terms = 5 };
    return config;
}

static double config_number(const sfti_json *json) {
    double value = 0;
    if (json->type == SFTI_JSON_UINT) return (double)json->value;
    return json->type == SFTI_JSON_NUMBER && sfti_parse_double(json->text, &value) ? value : 0;
}

/* A name, or its end from a dot on; with '^' the whole name. PEFT takes it for a regular
 * expression: one that is more than a name is not read. */
static bool is_plain(sft_span key) {
    for (size_t i = 0; i < key.len; i++)
        if (strchr("*+?()[]{}|\\$", key.data[i]) || (key.data[i] == '^' && i > 0)) return false;
    return key.len > 0;
}

static sft_code take_patterns(sfti_lora *lora, sfti_lora_config *config, sfti_json *json,
                              sft_error *err) {
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(json, &lora->arena);
        if (!key.data) return sfti_fail_memory(err, json->text.len);
        sfti_json_next(json);
        if (!is_plain(key))
            return sfti_fail(err, SFT_CAST_DTYPE,
                             "expected names of layers in \"alpha_pattern\", found \"%.*s\": "
                             "regular expressions are not read", SFTI_CLIP(key, 200));
        if (config->pattern_count == PATTERNS_MOST) /* each module is compared with each */
            return sfti_fail(err, SFT_CAST_DTYPE, "expected at most %d entries in "
                             "\"alpha_pattern\", found more", PATTERNS_MOST);
        sfti_lora_pattern *grown = sfti_arena_grow(&lora->arena, config->patterns,
                                                   config->pattern_count, 1,
                                                   &config->pattern_capacity, sizeof *grown);
        if (!grown) return sfti_fail_memory(err, sizeof *grown);
        config->patterns = grown;
        grown[config->pattern_count++] = (sfti_lora_pattern){ key, config_number(json) };
    }
    return SFT_OK;
}

/* The value of a key is the reader's last event. */
static sft_code take_member(sfti_lora *lora, sfti_lora_config *config, sft_span key,
                            sfti_json *json, sft_error *err) {
    bool is_true = json->type == SFTI_JSON_TRUE;
    if (sfti_is(key, "lora_alpha") || (sfti_is(key, "alpha") && !config->has_alpha)) {
        config->alpha = config_number(json);
        config->has_alpha = json->type == SFTI_JSON_UINT || json->type == SFTI_JSON_NUMBER;
    } else if (sfti_is(key, "use_rslora")) {
        config->rslora = is_true;
    } else if (sfti_is(key, "fan_in_fan_out")) {
        config->fan_in_fan_out = is_true;
    } else if (sfti_is(key, "use_cayley_neumann")) {
        config->cayley = json->type == SFTI_JSON_FALSE;
    } else if (sfti_is(key, "num_cayley_neumann_terms")) {
        config->terms = json->type == SFTI_JSON_UINT ? json->value : 5;
        config->unlike = config->unlike || config->terms > 64;
    } else if (sfti_is(key, "peft_type") && json->type == SFTI_JSON_STRING) {
        config->type = sfti_json_string(json, &lora->arena);
    } else if (sfti_is(key, "use_qalora") || sfti_is(key, "alora_invocation_tokens")
               || sfti_is(key, "coft")) {
        bool off = json->type == SFTI_JSON_FALSE || json->type == SFTI_JSON_NULL;
        if (!off) config->unlike = true;
    } else if (sfti_is(key, "alpha_pattern") && json->type == SFTI_JSON_OBJECT) {
        sft_code code = take_patterns(lora, config, json, err);
        if (code) return code;
    }
    if (json->type == SFTI_JSON_OBJECT || json->type == SFTI_JSON_ARRAY) sfti_json_skip(json);
    return SFT_OK;
}

static size_t last_dot(sft_span key) {
    size_t at = key.len;
    while (at > 0 && key.data[at - 1] != '.') at--;
    return at;
}

sft_code sfti_lora_config_read(sfti_lora *lora, sft_span text, bool by_component,
                               sft_error *err) {
    sfti_json json;
    if (text.len == 0) return SFT_OK;
    if (sfti_utf8_check(text.data, text.len) != text.len)
        return sfti_fail(err, SFT_HEADER_UTF8, "expected UTF-8 in the adapter's configuration, "
                                               "found other bytes");
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT)
        return sfti_fail(err, SFT_HEADER_NOT_OBJECT, "expected a JSON object as the adapter's "
                                                     "configuration, found something else");
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&json, &lora->arena);
        if (!key.data) return sfti_fail_memory(err, json.text.len);
        size_t cut = by_component ? last_dot(key) : 0;
        sft_span prefix = { key.data, cut > 0 ? cut - 1 : 0 };
        sfti_lora_config *config = config_for(lora, prefix);
        sfti_json_next(&json);
        sft_code code = config ? take_member(lora, config, sfti_from(key, cut), &json, err)
                               : SFT_OK;
        if (code) return code;
        if (!config) sfti_json_skip(&json);
    }
    if (json.type != SFTI_JSON_ERROR) return SFT_OK;
    return sfti_fail(err, json.code, "expected %s at byte %zu of the adapter's configuration "
                                     "(adapter_config.json or metadata), found other text",
                     json.why, json.error_at);
}

const sfti_lora_config *sfti_lora_config_of(const sfti_lora *lora, sft_span module) {
    const sfti_lora_config *all = NULL;
    for (size_t i = 0; i < lora->config_count; i++) {
        const sfti_lora_config *config = &lora->configs[i];
        sft_span prefix = config->prefix;
        if (prefix.len == 0) all = config;
        else if (sfti_begins_with(module, prefix) && module.len > prefix.len
                 && module.data[prefix.len] == '.')
            return config;
    }
    return all;
}

bool sfti_lora_config_alpha(const sfti_lora_config *config, sft_span module, double *out) {
    for (size_t i = 0; i < config->pattern_count; i++) {
        sft_span key = config->patterns[i].name;
        bool whole = *key.data == '^';
        if (whole) key = sfti_from(key, 1);
        if (module.len < key.len) continue;
        size_t at = module.len - key.len;
        bool fits = memcmp(module.data + at, key.data, key.len) == 0;
        if (!fits || (at > 0 && (whole || module.data[at - 1] != '.'))) continue;
        *out = config->patterns[i].alpha;
        return true;
    }
    *out = config->alpha;
    return config->has_alpha;
}
