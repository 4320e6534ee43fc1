/* Configurations of adapters: adapter_config.json of PEFT, and the same in metadata. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "keys/adapter_told.h"
#include "os/io.h"
#include "text/text.h"

#include <string.h>

#define PATTERNS_MOST (1u << 28) /* that are compared with names of modules */
#define ALPHA 8 /* of PEFT's LoRA, LoHa and LoKr where a configuration has none; their r, too */

static sfti_lora_config *config_for(sfti_lora *lora, sft_span prefix, bool beside) {
    for (size_t i = 0; i < lora->config_count; i++)
        if (sft_span_equal(lora->configs[i].prefix, prefix) && lora->configs[i].beside == beside)
            return &lora->configs[i];
    if (lora->config_count == SFTI_LORA_CONFIGS) return NULL;
    sfti_lora_config *config = &lora->configs[lora->config_count++];
    *config = (sfti_lora_config){ .prefix = prefix, .beside = beside, .terms = 5,
                                  .type = SFTI_ADAPTER_TYPES };
    return config;
}

/* A member that is no such value says nothing that can be relied on. */
static sft_code expect(bool is, sft_span key, const char *what, sft_error *err) {
    if (is) return SFT_OK;
    return sfti_fail(err, SFT_CAST_DTYPE,
                     "expected %s as \"%.*s\" of the adapter's configuration, found something else",
                     what, SFTI_CLIP(key, 200));
}

static sft_code config_number(const sfti_json *json, sft_span key, double *out, sft_error *err) {
    *out = (double)json->value;
    if (json->type == SFTI_JSON_UINT) return SFT_OK;
    bool is = json->type == SFTI_JSON_NUMBER && sfti_parse_double(json->text, out);
    return expect(is, key, "a number", err);
}

static bool is_off(const sfti_json *json) {
    return json->type == SFTI_JSON_FALSE || json->type == SFTI_JSON_NULL;
}

static sft_code config_bool(const sfti_json *json, sft_span key, bool *out, sft_error *err) {
    *out = json->type == SFTI_JSON_TRUE;
    return expect(*out || is_off(json), key, "true or false", err);
}

/* A name, or its end from a dot on; with '^' the whole name. PEFT takes it for a regular
 * expression: one that is more than a name is not read. */
static bool is_plain(sft_span key) {
    for (size_t i = 0; i < key.len; i++)
        if (strchr("*+?()[]{}|\\$", key.data[i]) || (key.data[i] == '^' && i > 0)) return false;
    return key.len > 0 && key.len <= SFTI_LORA_NAME;
}

static sft_code take_patterns(sfti_lora *lora, sfti_lora_config *config, sfti_json *json,
                              sft_error *err) {
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        sfti_lora_pattern one = { sfti_json_string(json, &lora->arena), 0 };
        if (!one.name.data) return sfti_fail_memory(err, json->text.len);
        if (sfti_json_next(json) == SFTI_JSON_ERROR) return SFT_OK; /* told by who reads on */
        if (!is_plain(one.name))
            return sfti_fail(err, SFT_CAST_DTYPE,
                             "expected names of layers in \"alpha_pattern\", found \"%.*s\": "
                             "regular expressions are not read", SFTI_CLIP(one.name, 200));
        sft_code code = config_number(json, one.name, &one.alpha, err);
        if (code) return code;
        sfti_lora_pattern *grown = sfti_arena_grow(&lora->arena, config->patterns,
                                                   config->pattern_count, 1,
                                                   &config->pattern_capacity, sizeof *grown);
        if (!grown) return sfti_fail_memory(err, sizeof *grown);
        config->patterns = grown;
        grown[config->pattern_count++] = one;
    }
    return SFT_OK;
}

/* "feedforward_modules": a list of ends of names, or a regular expression, which is not read. */
static sft_code take_inputs(sfti_lora *lora, sfti_lora_config *config, sfti_json *json,
                            sft_error *err) {
    config->tells_inputs = json->type == SFTI_JSON_ARRAY;
    config->input_count = 0;
    while (config->tells_inputs && sfti_json_next(json) == SFTI_JSON_STRING) {
        sft_span end = sfti_json_string(json, &lora->arena);
        sft_span *grown = sfti_arena_grow(&lora->arena, config->inputs, config->input_count, 1,
                                          &config->input_capacity, sizeof *grown);
        if (grown) config->inputs = grown;
        if (!grown || !end.data) return sfti_fail_memory(err, sizeof *grown);
        grown[config->input_count++] = end;
    }
    return SFT_OK;
}

static sft_span pattern_name(const void *ctx, uint32_t i) {
    return ((const sfti_lora_config *)ctx)->patterns[i].name;
}

/* The last alpha of a repeated name counts, in the place of the first. */
static sft_code index_patterns(sfti_lora *lora, sfti_lora_config *config, sft_error *err) {
    if (config->pattern_count == 0) return SFT_OK;
    if (!sfti_names_draw(&config->names, config->pattern_count, pattern_name, config,
                         &lora->arena))
        return sfti_fail_memory(err, config->pattern_count * sizeof *config->names.slots);
    config->dotted = 0;
    for (uint32_t i = 0; i < config->pattern_count; i++) {
        config->dotted += memchr(config->patterns[i].name.data, '.',
                                 config->patterns[i].name.len) != NULL;
        uint32_t at = sfti_names_add(&config->names, config->patterns[i].name, i);
        config->patterns[at].alpha = config->patterns[i].alpha;
    }
    return SFT_OK;
}

static sfti_adapter_type peft_type_of(sft_span peft_type) {
    static const sfti_adapter_type types[] = { SFTI_TYPE_LORA, SFTI_TYPE_LOHA, SFTI_TYPE_LOKR,
                                               SFTI_TYPE_OFT, SFTI_TYPE_IA3 };
    int at = sfti_number_among("LORA LOHA LOKR OFT IA3", peft_type);
    return at < 0 ? SFTI_ADAPTER_TYPES : types[at];
}

/* What changes the result of factors that look like those of LoRA, unless it is off. PiSSA and
 * the like take their first factors out of the model's weights when they are loaded. */
static bool is_unlike(sft_span key, const sfti_json *json, sft_span said) {
    static const char *const keys[] = { "use_qalora", "alora_invocation_tokens", "coft",
                                        "kasa_config", "use_bdlora", "arrow_config",
                                        "monteclora_config", "layer_replication" };
    static const char *const first[] = { "pissa", "corda", "olora", "loftq", "lora_ga" };
    bool text = json->type == SFTI_JSON_STRING;
    if (sfti_is(key, "init_lora_weights"))
        return text && SFTI_ONE_OF(said, first, sfti_starts_with);
    if (sfti_is(key, "peft_type")) return text && peft_type_of(said) == SFTI_ADAPTER_TYPES;
    return SFTI_ONE_OF(key, keys, sfti_is) && !is_off(json);
}

/* The value of a key is the reader's last event; of a repeated one the last counts. */
static sft_code take_member(sfti_lora *lora, sfti_lora_config *config, sft_span key,
                            sfti_json *json, sft_error *err) {
    sft_code code = SFT_OK;
    bool alpha = sfti_is(key, "alpha"), named = alpha || sfti_is(key, "lora_alpha");
    bool text = json->type == SFTI_JSON_STRING;
    bool none = json->type == SFTI_JSON_NULL;
    if (named) config->alphas[alpha] = (sfti_lora_alpha){ .told = !none, .none = none };
    sft_span said = sfti_json_string(json, &lora->arena);
    if (!said.data) return sfti_fail_memory(err, json->text.len);
    if (is_unlike(key, json, said)) config->unlike = key;
    if (sfti_is(key, "peft_type") && text) config->type = peft_type_of(said);
    if (sfti_is(key, "r")) config->has_rank = true;
    if (sfti_is(key, "r")) config->rank = json->type == SFTI_JSON_UINT ? json->value : 0;
    if (named && !none) {
        code = config_number(json, key, &config->alphas[alpha].value, err);
    } else if (sfti_is(key, "use_rslora")) {
        code = config_bool(json, key, &config->rslora, err);
    } else if (sfti_is(key, "fan_in_fan_out")) {
        code = config_bool(json, key, &config->fan_in_fan_out, err);
    } else if (sfti_is(key, "use_dora")) {
        code = config_bool(json, key, &config->dora, err);
    } else if (sfti_is(key, "rank_pattern")) {
        bool object = json->type == SFTI_JSON_OBJECT;
        config->ranks = false;
        while (object && sfti_json_next(json) == SFTI_JSON_KEY) {
            config->ranks = true;
            if (sfti_json_next(json) == SFTI_JSON_ERROR) break; /* told by who reads on */
            sfti_json_skip(json);
        }
    } else if (sfti_is(key, "use_cayley_neumann")) {
        code = config_bool(json, key, &config->cayley, err);
        config->cayley = !config->cayley;
    } else if (sfti_is(key, "num_cayley_neumann_terms")) {
        code = expect(json->type == SFTI_JSON_UINT, key, "a whole number", err);
        config->terms = json->value;
        if (config->terms > 64) config->unlike = key;
    } else if (sfti_is(key, "feedforward_modules")) {
        code = take_inputs(lora, config, json, err);
        if (config->tells_inputs && json->type != SFTI_JSON_ARRAY_END && !code)
            code = expect(json->type == SFTI_JSON_ERROR, key, "a list of names", err);
    } else if (sfti_is(key, "alpha_pattern")) {
        code = expect(none || json->type == SFTI_JSON_OBJECT, key, "an object", err);
        config->pattern_count = 0;
        if (!code && !none) code = take_patterns(lora, config, json, err);
    }
    if (!code && (json->type == SFTI_JSON_OBJECT || json->type == SFTI_JSON_ARRAY))
        sfti_json_skip(json);
    return code;
}

/* LoHa and LoKr have "alpha", LoRA "lora_alpha"; where no method is told, either. */
static const sfti_lora_alpha *alpha_of(const sfti_lora_config *config) {
    bool own = config->type == SFTI_TYPE_LOHA || config->type == SFTI_TYPE_LOKR;
    bool either = config->type != SFTI_TYPE_LORA && !config->alphas[0].told;
    return &config->alphas[own || either];
}

sft_code sfti_lora_config_work(const sfti_lora *lora, size_t count, sft_error *err) {
    for (size_t i = 0; i < lora->config_count; i++) {
        const sfti_lora_config *config = &lora->configs[i];
        size_t each = config->dotted + config->input_count;
        if (each > 0 && count > PATTERNS_MOST / each)
            return sfti_fail(err, SFT_CAST_DTYPE,
                             "expected at most %u names with dots in \"alpha_pattern\" and in "
                             "\"feedforward_modules\" times modules, found more", PATTERNS_MOST);
    }
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
        sfti_lora_config *config = config_for(lora, prefix, !by_component);
        if (sfti_json_next(&json) == SFTI_JSON_ERROR) break;
        if (!config)
            return sfti_fail(err, SFT_CAST_DTYPE, "expected at most %d components in the "
                             "adapter's configuration, found more", SFTI_LORA_CONFIGS);
        if (!sfti_adapter_tells(sfti_from(key, cut))) {
            sfti_json_skip(&json);
            continue;
        }
        sft_code code = take_member(lora, config, sfti_from(key, cut), &json, err);
        if (code) return code;
    }
    if (json.type == SFTI_JSON_OBJECT_END) sfti_json_next(&json);
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < lora->config_count; i++)
        code = index_patterns(lora, &lora->configs[i], err);
    for (size_t i = 0; i < lora->config_count; i++) {
        sfti_lora_config *config = &lora->configs[i];
        if (config->type == SFTI_TYPE_LOKR && !config->has_rank) config->rank = ALPHA;
        if (config->type != SFTI_TYPE_LORA && config->type != SFTI_ADAPTER_TYPES)
            config->rslora = false; /* which others do not know */
    }
    if (code || json.type != SFTI_JSON_ERROR) return code;
    return sfti_fail(err, json.code, "expected %s at byte %zu of the adapter's configuration "
                                     "(adapter_config.json or metadata), found other text",
                     json.why, json.error_at);
}

bool sfti_lora_config_covers(const sfti_lora_config *config, sft_span module) {
    sft_span prefix = config->prefix;
    return prefix.len == 0
        || (sfti_begins_with(module, prefix) && module.len > prefix.len
            && module.data[prefix.len] == '.');
}

const sfti_lora_config *sfti_lora_config_of(const sfti_lora *lora, sft_span module) {
    const sfti_lora_config *all = NULL;
    for (size_t i = 0; i < lora->config_count; i++) {
        const sfti_lora_config *config = &lora->configs[i];
        if (!sfti_lora_config_covers(config, module)) continue;
        if (config->beside || config->prefix.len > 0) return config;
        all = config;
    }
    return all;
}

/* Whether a module without a tensor of alpha would be read otherwise with a configuration. */
static bool changes(const sfti_lora_config *config, const sfti_lora_module *m) {
    double alpha;
    bool scaled = m->rank > 0 || m->type == SFTI_TYPE_LOKR;
    if (m->slot[SFTI_SLOT_ALPHA] > 0 || m->type == SFTI_TYPE_FULL) return false;
    return config->pattern_count > 0 || config->rslora || config->fan_in_fan_out
        || config->unlike.len > 0
        || (scaled && sfti_lora_config_alpha(config, m->name, &alpha)
            && (alpha < (double)m->rank || alpha > (double)m->rank));
}

/* Metadata that are about no module at all are about these modules under other names, which counts
 * only where they would be read otherwise. */
sft_code sfti_lora_check_components(const sfti_lora *lora, sft_error *err) {
    char told[160];
    size_t len = 0;
    bool any = false;
    for (size_t i = 0; i < lora->config_count; i++)
        for (size_t k = 0; k < lora->count && !any && !lora->configs[i].beside; k++)
            any = changes(&lora->configs[i], &lora->modules[k]);
    if (!any) return SFT_OK;
    for (size_t i = 0; i < lora->config_count; i++) {
        const sfti_lora_config *config = &lora->configs[i];
        size_t clipped = config->prefix.len < 40 ? config->prefix.len : 40;
        if (config->beside) continue;
        for (size_t k = 0; k < lora->count; k++)
            if (sfti_lora_config_covers(config, lora->modules[k].name)) return SFT_OK;
        if (len + clipped + 2 > sizeof told) continue;
        if (len > 0) memcpy(told + len, ", ", 2), len += 2;
        memcpy(told + len, config->prefix.data, clipped);
        len += clipped;
    }
    if (len == 0) return SFT_OK;
    sft_span name = lora->modules[0].name;
    const char *dot = memchr(name.data, '.', name.len);
    sft_span first = { name.data, dot ? (size_t)(dot - name.data) : name.len };
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, name,
                            "expected modules of the components that " SFTI_LORA_CONFIG_KEY
                            " tells of (%.*s), found ones that begin with \"%.*s\": rename "
                            "them so that they are its own, or remove the key (meta rm) if it is "
                            "of other names", (int)len, told, SFTI_CLIP(first, 80));
}

/* Whether a module's name without what PEFT puts before it is matched by a pattern, or its end from
 * a dot on. A dot of the pattern is any character. */
static bool matches_end(sft_span name, sft_span pattern) {
    size_t at = name.len;
    bool whole = pattern.len > 0 && pattern.data[0] == '^';
    if (whole) pattern = sfti_from(pattern, 1);
    for (size_t i = pattern.len; i-- > 0; ) {
        if (at == 0) return false;
        at--;
        if (pattern.data[i] == '.')
            while (at > 0 && ((unsigned char)name.data[at] & 0xc0) == 0x80) at--;
        else if (name.data[at] != pattern.data[i]) return false;
    }
    return at == 0 || (!whole && name.data[at - 1] == '.');
}

int sfti_lora_on_inputs(const sfti_lora *lora, sft_span module) {
    static const char base[] = "base_model.model.";
    const sfti_lora_config *config = sfti_lora_config_of(lora, module);
    if (!config || !config->tells_inputs) return -1;
    sft_span name = sfti_from(module, sfti_begins(module, base) ? sizeof base - 1 : 0);
    bool any = false;
    for (size_t i = 0; i < config->input_count && !any; i++) {
        sft_span end = config->inputs[i];
        any = end.len <= name.len
           && sft_span_equal(sfti_from(name, name.len - end.len), end);
    }
    return any;
}

bool sfti_lora_config_alpha(const sfti_lora_config *config, sft_span module, double *out) {
    static const char base[] = "base_model.model.";
    char whole[SFTI_LORA_NAME];
    uint32_t first = SFTI_NO_NAME;
    size_t cut = config->prefix.len ? config->prefix.len + 1
               : sfti_begins(module, base) ? sizeof base - 1 : 0;
    size_t least = module.len > SFTI_LORA_NAME ? module.len - SFTI_LORA_NAME : 0;
    if (least < cut) least = cut; /* what is before is no part of PEFT's own name */
    for (size_t i = config->pattern_count ? module.len : 0; i-- > least;) {
        if (i > 0 && module.data[i - 1] != '.') continue;
        uint32_t at = sfti_names_find(&config->names, sfti_from(module, i));
        if (at < first) first = at;
    }
    sft_span name = sfti_from(module, cut);
    if (config->pattern_count && name.len < sizeof whole) {
        whole[0] = '^';
        memcpy(whole + 1, name.data, name.len);
        uint32_t at = sfti_names_find(&config->names, (sft_span){ whole, name.len + 1 });
        if (at < first) first = at;
    }
    uint32_t last = first == SFTI_NO_NAME ? (uint32_t)config->pattern_count : first;
    for (uint32_t i = 0; config->dotted > 0 && i < last; i++) {
        if (!memchr(config->patterns[i].name.data, '.', config->patterns[i].name.len)
            || !matches_end(name, config->patterns[i].name))
            continue;
        first = sfti_names_find(&config->names, config->patterns[i].name);
        last = 0;
    }
    const sfti_lora_alpha *alpha = alpha_of(config);
    bool usual = !alpha->told && !alpha->none
              && (config->type == SFTI_TYPE_LORA || config->type == SFTI_TYPE_LOHA
                  || config->type == SFTI_TYPE_LOKR);
    *out = first != SFTI_NO_NAME ? config->patterns[first].alpha : usual ? ALPHA : alpha->value;
    return alpha->told || usual || first != SFTI_NO_NAME;
}
