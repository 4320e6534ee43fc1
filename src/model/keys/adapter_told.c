/* What PEFT's configuration of an adapter tells of its values. Tests: tests/cli/lora/beside.txt,
 * tests/cli/merge/told.txt, tests/cli/mv/adapters.txt. */
#include "keys/adapter_told.h"

#include "base/json.h"

#include <string.h>

#define MEMBERS_MOST 128 /* that tell something; of more, bytes are compared */

static bool has_text(sft_span text, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sft_span_equal(text, sft_span_cstr(list[i]))) return true;
    return false;
}

#define HAS_TEXT(text, list) has_text(text, list, sizeof list / sizeof *list)

bool sfti_adapter_tells(sft_span key) {
    static const char *const keys[] = {
        "peft_type", "r", "lora_alpha", "alpha", "alpha_pattern", "rank_pattern", "use_rslora",
        "use_dora", "fan_in_fan_out", "use_cayley_neumann", "num_cayley_neumann_terms",
        "feedforward_modules", "init_lora_weights", "use_qalora", "alora_invocation_tokens", "coft",
        "eps", "kasa_config", "use_bdlora", "arrow_config", "monteclora_config",
        "layer_replication",
    };
    return HAS_TEXT(key, keys);
}

/* A member that tells something, and the JSON text of its value. */
typedef struct told_member {
    sft_span key, name, value; /* name: the key without its component */
    sfti_json_type type;
} told_member;

typedef struct members {
    told_member all[MEMBERS_MOST];
    size_t count;
    bool known; /* those are all of an object's, each given once */
} members;

/* The text of a value, whose key is the reader's last event. */
static sft_span told_value(sfti_json *json) {
    sfti_json_next(json);
    size_t start = json->start;
    if (json->type == SFTI_JSON_OBJECT || json->type == SFTI_JSON_ARRAY) sfti_json_skip(json);
    return (sft_span){ json->begin + start, (size_t)(json->at - json->begin) - start };
}

/* Whether a value tells more than a missing one. */
static bool says(const told_member *one) {
    static const char *const null_says[] = { "lora_alpha", "alpha", "r", "use_cayley_neumann",
                                             "num_cayley_neumann_terms" };
    static const char *const patterns[] = { "alpha_pattern", "rank_pattern" };
    sfti_json json;
    sfti_json_begin(&json, one->value.data, one->value.len);
    sfti_json_next(&json);
    if (json.type == SFTI_JSON_NULL || json.type == SFTI_JSON_FALSE)
        return HAS_TEXT(one->name, null_says);
    if (sft_span_equal(one->name, sft_span_cstr("init_lora_weights")))
        return json.type == SFTI_JSON_STRING && !sfti_json_is(&json, "gaussian");
    if (sft_span_equal(one->name, sft_span_cstr("use_cayley_neumann"))) /* PEFT's defaults */
        return json.type != SFTI_JSON_TRUE;
    if (sft_span_equal(one->name, sft_span_cstr("num_cayley_neumann_terms")))
        return json.type != SFTI_JSON_UINT || json.value != 5;
    return !HAS_TEXT(one->name, patterns) || sfti_json_next(&json) != SFTI_JSON_OBJECT_END;
}

static void take_members(sft_span text, members *out) {
    sfti_json json;
    out->count = 0;
    out->known = false;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        told_member one = { .key = json.text, .name = json.text };
        bool escaped = json.escaped;
        for (size_t i = 0; i < one.key.len; i++)
            if (one.key.data[i] == '.')
                one.name = (sft_span){ one.key.data + i + 1, one.key.len - i - 1 };
        one.value = told_value(&json);
        one.type = json.type;
        if (escaped || json.type == SFTI_JSON_ERROR) return;
        if (!sfti_adapter_tells(one.name)) continue;
        for (size_t i = 0; i < out->count; i++)
            if (sft_span_equal(out->all[i].key, one.key)) return;
        if (out->count == MEMBERS_MOST) return;
        out->all[out->count++] = one;
    }
    out->known = json.type == SFTI_JSON_OBJECT_END && sfti_json_next(&json) == SFTI_JSON_END;
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        if (says(&out->all[i])) out->all[kept++] = out->all[i];
    out->count = kept;
}

static const told_member *find_member(const members *of, sft_span key) {
    for (size_t i = 0; i < of->count; i++)
        if (sft_span_equal(of->all[i].key, key)) return &of->all[i];
    return NULL;
}

/* Whether a member's value is one of these strings. */
static bool is_type(const told_member *type, const char *const *list, size_t count) {
    sft_span text = type->value;
    if (type->type != SFTI_JSON_STRING || text.len < 2) return false;
    return has_text((sft_span){ text.data + 1, text.len - 2 }, list, count);
}

/* Whether the members are all that tells of an adapter's values: other methods have more. */
static bool tells_all(const members *of) {
    static const char *const types[] = { "LORA", "LOHA", "LOKR", "OFT", "IA3" };
    for (size_t i = 0; of->known && i < of->count; i++)
        if (sft_span_equal(of->all[i].name, sft_span_cstr("peft_type"))
            && !is_type(&of->all[i], types, sizeof types / sizeof *types))
            return false;
    return of->known;
}

bool sfti_adapter_told_alike(sft_span a, sft_span b) {
    members x, y;
    if (sft_span_equal(a, b)) return true;
    take_members(a, &x);
    take_members(b, &y);
    if (!tells_all(&x) || !tells_all(&y) || x.count != y.count) return false;
    for (size_t i = 0; i < x.count; i++) {
        const told_member *other = find_member(&y, x.all[i].key);
        if (!other || !sfti_json_alike(x.all[i].value, other->value)) return false;
    }
    return true;
}

sfti_adapter_told sfti_adapter_told_of(sft_span text) {
    static const char *const by_default[] = { "LORA", "LOHA", "LOKR" };
    static const char *const without[] = { "IA3", "LN_TUNING", "BOFT", "FOURIERFT", "VERA", "HRA" };
    static const char *const rotation[] = { "OFT" };
    static const char *const plain[] = { "peft_type", "r", "lora_alpha", "alpha", "use_dora" };
    members all;
    sfti_adapter_told told = { true, true };
    if (text.len == 0) return (sfti_adapter_told){ false, false };
    take_members(text, &all);
    if (!all.known) return told;
    const told_member *type = find_member(&all, sft_span_cstr("peft_type"));
    bool own = type && is_type(type, by_default + 1, 2); /* their alpha is called so */
    const told_member *alpha = find_member(&all, sft_span_cstr(own ? "alpha" : "lora_alpha"));
    const told_member *rank = find_member(&all, sft_span_cstr("r"));
    if (!alpha && !type) alpha = find_member(&all, sft_span_cstr("alpha"));
    told.alpha = (alpha && alpha->type != SFTI_JSON_NULL)
              || find_member(&all, sft_span_cstr("alpha_pattern"))
              || (!alpha && type && is_type(type, by_default, 3));
    told.counts = all.count > 0;
    if (type && is_type(type, without, sizeof without / sizeof *without))
        told.counts = find_member(&all, sft_span_cstr("fan_in_fan_out")) != NULL;
    bool turns = type && is_type(type, rotation, 1);
    bool factors = (!type || is_type(type, by_default, 2)) && alpha && rank
                && sfti_json_alike(alpha->value, rank->value);
    if (!turns && !factors) return told;
    told.counts = false; /* alpha is the rank, as where nothing tells it; or there is none */
    for (size_t i = 0; i < all.count; i++) told.counts |= !HAS_TEXT(all.all[i].name, plain);
    return told;
}
