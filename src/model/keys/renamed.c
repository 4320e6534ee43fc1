/* What metadata that name tensors become if these get other names. Tests: test_renamed.c. */
#include "keys/renamed.h"

#include "base/error.h"
#include "base/order.h"
#include "base/splice.h"
#include "keys/digest_keys.h"
#include "keys/listed.h"
#include "safetensors_codes.h"

#include <string.h>

#define MOST_STEPS (1u << 26)

/* ── Texts ── */

static bool has_begin(sft_span text, sft_span begin) {
    return text.len >= begin.len && memcmp(text.data, begin.data, begin.len) == 0;
}

static size_t after_last_dot(sft_span text) {
    size_t at = text.len;
    while (at > 0 && text.data[at - 1] != '.') at--;
    return at;
}

static bool has_end(sft_span text, sft_span end) {
    return text.len >= end.len && memcmp(text.data + text.len - end.len, end.data, end.len) == 0;
}

/* Three texts behind one another; data NULL when out of memory. */
static sft_span joined_texts(sfti_arena *arena, sft_span a, const char *b, sft_span c) {
    sft_span middle = sft_span_cstr(b), half = { sfti_arena_join(arena, a, middle), 0 };
    half.len = a.len + middle.len;
    char *text = half.data ? sfti_arena_join(arena, half, c) : NULL;
    return (sft_span){ text, half.len + c.len };
}

/* Bytes [begin, end) of a JSON text give way to this string. */
static bool cut_string(sfti_cuts *cuts, size_t begin, size_t end, sft_span text) {
    char *spelled = text.data ? sfti_arena_array(cuts->arena, sfti_spell(text, NULL), 1) : NULL;
    if (!spelled) return false;
    size_t len = (size_t)sfti_spell(text, spelled);
    return sfti_cuts_put(cuts, begin, end, (sft_span){ spelled, len });
}

static sft_code cut_text(const sfti_cuts *cuts, sft_span text, sft_span *out, sft_error *err) {
    uint64_t len = sfti_cuts_length(cuts, text.len);
    if (!cuts->first) return SFT_OK;
    char *made = sfti_arena_array(cuts->arena, len, 1);
    if (!made) return sfti_fail_memory(err, len);
    sfti_cuts_apply(cuts, text, made);
    *out = (sft_span){ made, (size_t)len };
    return SFT_OK;
}

/* ── Names ── */

static int compare_old_names(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *names = ctx;
    return sfti_bytes_compare(names[a].key, names[b].key);
}

static int compare_new_names(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *names = ctx;
    return sfti_bytes_compare(names[a].value, names[b].value);
}

bool sfti_renamed_begin(sfti_renamed *out, const sft_pair *names, size_t count,
                        const sft_pair *aliases, size_t alias_count, sfti_arena *arena) {
    *out = (sfti_renamed){ .arena = arena, .names = names, .count = count, .aliases = aliases,
                           .alias_count = alias_count };
    out->old = sfti_arena_sorted(arena, count, compare_old_names, names);
    out->now = sfti_arena_sorted(arena, count, compare_new_names, names);
    out->old_aliases = sfti_arena_sorted(arena, alias_count, compare_old_names, aliases);
    out->steps = sfti_arena_take(arena, sizeof *out->steps);
    if (out->steps) *out->steps = 0;
    return out->old && out->now && out->old_aliases && out->steps;
}

/* The first of pairs, in the order of old (or new) names, that is not before this text. */
static size_t first_from(const sft_pair *pairs, const uint32_t *order, size_t count, bool now,
                         sft_span text) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sft_pair *pair = &pairs[order[middle]];
        if (sfti_bytes_compare(now ? pair->value : pair->key, text) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static size_t first_tensor_from(const sfti_renamed *r, sft_span text) {
    return first_from(r->names, r->old, r->count, false, text);
}

/* The tensor of this old name, or NULL. */
static const sft_pair *find_old(const sfti_renamed *r, sft_span name) {
    size_t at = first_tensor_from(r, name);
    bool found = at < r->count && sft_span_equal(r->names[r->old[at]].key, name);
    return found ? &r->names[r->old[at]] : NULL;
}

/* The tensor of this new name, or NULL. */
static const sft_pair *find_new(const sfti_renamed *r, sft_span name) {
    size_t at = first_from(r->names, r->now, r->count, true, name);
    bool found = at < r->count && sft_span_equal(r->names[r->now[at]].value, name);
    return found ? &r->names[r->now[at]] : NULL;
}

static bool has_names(const sfti_renamed *r, sft_span begin) {
    size_t at = first_tensor_from(r, begin);
    return at < r->count && has_begin(r->names[r->old[at]].key, begin);
}

/* The first `len` bytes of all old names that begin with `begin`, which is longer, become *to: one
 * text for all, before the rest as it was, or before nothing of it but its dot. False: *torn is a
 * name of which that is not so. */
static bool unit_moves(const sfti_renamed *r, sft_span begin, size_t len, sft_span *to,
                       sft_pair *torn) {
    bool any = false;
    *to = (sft_span){ begin.data, len };
    for (size_t i = first_tensor_from(r, begin); i < r->count; i++) {
        const sft_pair *pair = &r->names[r->old[i]];
        if (!has_begin(pair->key, begin)) break;
        sft_span tail = { pair->key.data + len, pair->key.len - len }, head = pair->value;
        sft_span bare = { tail.data + 1, tail.len - 1 };
        bool same = tail.data[0] == '.' && sft_span_equal(head, bare);
        if (same) head.len = 0;
        else if ((same = head.len > tail.len && has_end(head, tail))) head.len -= tail.len;
        same = same && (!any || sft_span_equal(head, *to));
        *torn = *pair;
        if (!same || ++*r->steps > MOST_STEPS) return false;
        any = true;
        *to = head;
    }
    return true;
}

static sft_code fail_names(const sfti_renamed *r, sft_pair torn, const char *key, sft_span what,
                           sft_hint hint, sft_error *err) {
    if (*r->steps > MOST_STEPS)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected names in the metadata's %s that have at "
                         "most %u tensors, each as often as it stands there, found more", key,
                         MOST_STEPS);
    sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, torn.key,
                     "expected a new name that \"%.*s\" in the metadata's %s can follow: another "
                     "beginning in its place, the same for all of its tensors; found \"%.*s\"",
                     SFTI_CLIP(what, 100), key, SFTI_CLIP(torn.value, 150));
    sfti_hint(err, hint);
    return SFT_BAD_ARGUMENT;
}

/* ── diffusers' configuration of adapters ── */

#define COMPONENTS 8 /* more are not read */

typedef struct lora_component {
    sft_span old, now; /* how names begin, without a dot; empty: those of no other component */
    bool patterned;    /* names of modules tell their alpha or rank */
    bool empty;        /* no name begins so */
} lora_component;

/* The component that a name is of, or COMPONENTS. */
static size_t config_component(const lora_component *all, size_t count, sft_span name, bool now) {
    size_t rest = COMPONENTS;
    for (size_t i = 0; i < count; i++) {
        sft_span begin = now ? all[i].now : all[i].old;
        if (begin.len == 0) rest = i;
        else if (has_begin(name, begin) && name.len > begin.len && name.data[begin.len] == '.')
            return i;
    }
    return rest;
}

/* Tensors stay in their components, and where names tell alphas, they do not change. */
static sft_code check_components(const sfti_renamed *r, const lora_component *all, size_t count,
                                 sft_error *err) {
    for (size_t i = 0; i < r->count; i++) {
        sft_pair pair = r->names[i];
        size_t old = config_component(all, count, pair.key, false);
        bool same = sft_span_equal(pair.key, pair.value);
        bool bound = old < count && all[old].old.len == 0 && all[old].patterned;
        size_t now = config_component(all, count, pair.value, true);
        if (now == old && (same || !bound)) continue;
        sft_span what = now < count ? all[now].now : all[old].old;
        return fail_names(r, pair, SFTI_LORA_CONFIG_KEY, what, SFT_HINT_LORA_NAMES, err);
    }
    return SFT_OK;
}

static bool covers(sft_span component, sft_span other) {
    return component.len == 0
        || (has_begin(other, component)
            && (other.len == component.len || other.data[component.len] == '.'));
}

/* What is told of one component is about no tensor of another, unless it was. */
static sft_code check_apart(const lora_component *all, size_t count, sft_error *err) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            const lora_component *one = &all[i], *other = &all[k];
            if (i == k || !covers(one->now, other->now) || covers(one->old, other->old)
                || (other->empty && !sft_span_equal(one->now, other->now)))
                continue;
            sfti_fail(err, SFT_BAD_ARGUMENT,
                      "expected a beginning of names for each component that the metadata's "
                      SFTI_LORA_CONFIG_KEY " tells of, apart from those of others, found \"%.*s\" "
                      "for \"%.*s\" beside \"%.*s\"", SFTI_CLIP(one->now, 80),
                      SFTI_CLIP(one->old, 80), SFTI_CLIP(other->now, 80));
            sfti_hint(err, SFT_HINT_LORA_NAMES);
            return SFT_BAD_ARGUMENT;
        }
    return SFT_OK;
}

/* The value of a key is next: whether it is an object with members. */
static bool skip_members(sfti_json *json) {
    bool any = false;
    if (sfti_json_next(json) == SFTI_JSON_OBJECT)
        for (; sfti_json_next(json) == SFTI_JSON_KEY; any = true) (void)sfti_json_skip(json);
    else if (json->type == SFTI_JSON_ARRAY) (void)sfti_json_skip(json);
    return any;
}

static sft_code follow_config(const sfti_renamed *r, sft_span text, sft_span *out,
                              sft_error *err) {
    sfti_cuts cuts = { .arena = r->arena };
    lora_component all[COMPONENTS];
    size_t count = 0;
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return SFT_OK; /* nobody reads it */
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        size_t begin = json.start, end = (size_t)(json.at - json.begin), at = 0;
        sft_span key = sfti_json_string(&json, r->arena);
        if (!key.data) return sfti_fail_memory(err, text.len);
        size_t cut = after_last_dot(key);
        sft_span prefix = { key.data, cut > 0 ? cut - 1 : 0 };
        sft_span member = { key.data + cut, key.len - cut };
        while (at < count && !sft_span_equal(all[at].old, prefix)) at++;
        if (at == COMPONENTS) return SFT_OK;
        lora_component *one = &all[at];
        if (at == count) {
            sft_pair torn;
            all[count++] = (lora_component){ .old = prefix, .now = prefix };
            sft_span names = joined_texts(r->arena, prefix, ".", (sft_span){ "", 0 });
            if (!names.data) return sfti_fail_memory(err, prefix.len);
            one->empty = prefix.len > 0 && !has_names(r, names);
            if (prefix.len > 0 && !unit_moves(r, names, prefix.len, &one->now, &torn))
                return fail_names(r, torn, SFTI_LORA_CONFIG_KEY, prefix, SFT_HINT_LORA_NAMES, err);
        }
        bool named = sft_span_equal(member, sft_span_cstr("alpha_pattern"))
                  || sft_span_equal(member, sft_span_cstr("rank_pattern"));
        if (skip_members(&json) && named) one->patterned = true;
        if (sft_span_equal(one->old, one->now)) continue;
        sft_span now = joined_texts(r->arena, one->now, one->now.len > 0 ? "." : "", member);
        if (!cut_string(&cuts, begin, end, now)) return sfti_fail_memory(err, key.len);
    }
    if (json.type == SFTI_JSON_ERROR) return SFT_OK;
    sft_code code = check_components(r, all, count, err);
    if (!code) code = check_apart(all, count, err);
    return code ? code : cut_text(&cuts, text, out, err);
}

/* ── ComfyUI's declaration of quantised layers ── */

/* A key of "layers" is the last event. */
static sft_code follow_layer(const sfti_renamed *r, sfti_json *json, sfti_cuts *cuts,
                             sft_error *err) {
    static const sft_span none = { "", 0 };
    size_t begin = json->start, end = (size_t)(json->at - json->begin);
    sft_span layer = sfti_json_string(json, r->arena), unit = { NULL, 0 }, to, now;
    sft_pair torn;
    if (!layer.data) return sfti_fail_memory(err, end - begin);
    for (size_t i = 0; !unit.data && sfti_declared_prefix(i); i++) {
        sft_span prefix = sft_span_cstr(sfti_declared_prefix(i));
        sft_span weight = joined_texts(r->arena, prefix, "", layer);
        if (weight.data) weight = joined_texts(r->arena, weight, ".weight", none);
        if (!weight.data) return sfti_fail_memory(err, layer.len);
        if (!find_old(r, weight)) continue;
        unit = (sft_span){ weight.data, prefix.len + layer.len + 1 };
    }
    if (!unit.data) unit = joined_texts(r->arena, layer, ".", none);
    if (!unit.data) return sfti_fail_memory(err, layer.len);
    bool moves = unit_moves(r, unit, unit.len - 1, &to, &torn);
    if (!moves || to.len == 0)
        return fail_names(r, torn, SFTI_DECLARED_KEY, layer, SFT_HINT_DECLARED_NAMES, err);
    now = (sft_span){ unit.data, unit.len - 1 };
    if (sft_span_equal(to, now) || sft_span_equal(to, layer)) return SFT_OK;
    return cut_string(cuts, begin, end, to) ? SFT_OK : sfti_fail_memory(err, to.len);
}

static sft_code follow_layers(const sfti_renamed *r, sft_span text, sft_span *out,
                              sft_error *err) {
    sfti_cuts cuts = { .arena = r->arena };
    sft_code code = SFT_OK;
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return SFT_OK;
    while (!code && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&json, r->arena);
        if (!key.data) return sfti_fail_memory(err, text.len);
        if (!sft_span_equal(key, sft_span_cstr("layers"))) {
            (void)sfti_json_skip(&json);
            continue;
        }
        bool layers = sfti_json_next(&json) == SFTI_JSON_OBJECT;
        if (!layers) (void)sfti_json_skip(&json);
        while (!code && layers && sfti_json_next(&json) == SFTI_JSON_KEY) {
            code = follow_layer(r, &json, &cuts, err);
            (void)sfti_json_skip(&json);
        }
    }
    return code || json.type == SFTI_JSON_ERROR ? code : cut_text(&cuts, text, out, err);
}

/* ── torchao's classes: "M.weight" is stored as "M._weight_qdata" and others ── */

static sft_code follow_class(const sfti_renamed *r, sft_span name, sft_span *out, sft_error *err) {
    static const sft_span none = { "", 0 };
    size_t cut = after_last_dot(name);
    sft_span leaf = { name.data + cut, name.len - cut }, to;
    sft_pair torn;
    const sft_pair *whole = find_old(r, name);
    *out = whole ? whole->value : name;
    if (whole || cut == 0) return SFT_OK;
    sft_span begin = joined_texts(r->arena, (sft_span){ name.data, cut }, "_", leaf);
    if (begin.data) begin = joined_texts(r->arena, begin, "_", none);
    if (!begin.data) return sfti_fail_memory(err, name.len);
    if (!has_names(r, begin)) return SFT_OK;
    if (!unit_moves(r, begin, cut - 1, &to, &torn))
        return fail_names(r, torn, "torchao classes", name, SFT_HINT_DECLARED_NAMES, err);
    *out = joined_texts(r->arena, to, to.len > 0 ? "." : "", leaf);
    return out->data ? SFT_OK : sfti_fail_memory(err, name.len);
}

static sft_code follow_list(const sfti_renamed *r, sft_span text, sft_span *out, sft_error *err) {
    sfti_cuts cuts = { .arena = r->arena };
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_ARRAY) return SFT_OK;
    while (sfti_json_next(&json) == SFTI_JSON_STRING) {
        size_t begin = json.start, end = (size_t)(json.at - json.begin);
        sft_span name = sfti_json_string(&json, r->arena), now;
        if (!name.data) return sfti_fail_memory(err, text.len);
        sft_code code = follow_class(r, name, &now, err);
        if (code) return code;
        if (!sft_span_equal(name, now) && !cut_string(&cuts, begin, end, now))
            return sfti_fail_memory(err, now.len);
    }
    return json.type == SFTI_JSON_ARRAY_END ? cut_text(&cuts, text, out, err) : SFT_OK;
}

/* ── quantization_config: its keys and texts may name layers, or be patterns of names ── */

static bool is_pattern(sft_span text) {
    for (size_t i = 0; i < text.len; i++)
        if (strchr("*^$?[(|\\+", text.data[i]) && text.data[i]) return true;
    return has_begin(text, sft_span_cstr("re:")) || has_begin(text, sft_span_cstr("-:"));
}

/* Members that say who quantised, or how, and name no layers. */
static bool is_told_of_others(sft_span key) {
    static const char *const members[] = { "meta", "quantizer", "producer", "version" };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (sft_span_equal(key, sft_span_cstr(members[i]))) return true;
    return false;
}

/* A key or a text is the last event; first: a tensor that gets another name. */
static sft_code follow_config_name(const sfti_renamed *r, sfti_json *json,
                                   const sft_pair *first, sfti_cuts *cuts, sft_error *err) {
    size_t begin = json->start, end = (size_t)(json->at - json->begin);
    sft_span name = sfti_json_string(json, r->arena), to;
    sft_pair torn = *first;
    if (!name.data) return sfti_fail_memory(err, end - begin);
    if (json->type == SFTI_JSON_KEY && is_told_of_others(name)) {
        (void)sfti_json_skip(json);
        return SFT_OK;
    }
    if (is_pattern(name))
        return fail_names(r, torn, SFTI_QUANTISER_KEY, name, SFT_HINT_DECLARED_NAMES, err);
    const sft_pair *whole = find_old(r, name);
    sft_span unit = joined_texts(r->arena, name, ".", (sft_span){ "", 0 });
    if (!unit.data) return sfti_fail_memory(err, name.len);
    bool layer = name.len > 0 && has_names(r, unit);
    if (!whole && !layer) return SFT_OK;
    if (layer && (!unit_moves(r, unit, name.len, &to, &torn) || to.len == 0
                  || (whole && !sft_span_equal(to, whole->value))))
        return fail_names(r, torn, SFTI_QUANTISER_KEY, name, SFT_HINT_DECLARED_NAMES, err);
    if (!layer) to = whole->value;
    if (sft_span_equal(to, name)) return SFT_OK;
    return cut_string(cuts, begin, end, to) ? SFT_OK : sfti_fail_memory(err, to.len);
}

static sft_code follow_config_names(const sfti_renamed *r, sft_span text, sft_span *out,
                                    sft_error *err) {
    sfti_cuts cuts = { .arena = r->arena };
    const sft_pair *first = NULL;
    sft_code code = SFT_OK;
    sfti_json json;
    for (size_t i = 0; !first && i < r->count; i++)
        if (!sft_span_equal(r->names[i].key, r->names[i].value)) first = &r->names[i];
    sfti_json_begin(&json, text.data, text.len);
    while (first && !code && sfti_json_next(&json) != SFTI_JSON_END
           && json.type != SFTI_JSON_ERROR)
        if (json.type == SFTI_JSON_KEY || json.type == SFTI_JSON_STRING)
            code = follow_config_name(r, &json, first, &cuts, err);
    return code || json.type == SFTI_JSON_ERROR ? code : cut_text(&cuts, text, out, err);
}

/* ── Aliases ── */

static sft_code follow_alias(const sfti_renamed *r, sft_pair pair, sft_pair *out,
                             sft_error *err) {
    const sft_pair *kept = find_old(r, pair.value);
    if (!sfti_may_be_alias(pair) || !kept || find_old(r, pair.key)) return SFT_OK;
    out->value = kept->value;
    size_t at = first_from(r->aliases, r->old_aliases, r->alias_count, false, pair.key);
    const sft_pair *alias = at < r->alias_count ? &r->aliases[r->old_aliases[at]] : NULL;
    if (alias && sft_span_equal(alias->key, pair.key)) out->key = alias->value;
    const sft_pair *taken = find_new(r, out->key);
    if (taken == kept) out->key = (sft_span){ NULL, 0 };
    if (!taken || taken == kept) return SFT_OK;
    return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, out->key,
                            "expected a free name, found that it is another name of \"%.*s\" by "
                            "the metadata, too", SFTI_CLIP(pair.value, 200));
}

sft_code sfti_renamed_pair(const sfti_renamed *r, sft_pair pair, sft_pair *out, sft_error *err) {
    static const char class_begin[] = "{\"_type\"";
    *out = pair;
    if (sft_span_equal(pair.key, sft_span_cstr(SFTI_LORA_CONFIG_KEY)))
        return follow_config(r, pair.value, &out->value, err);
    if (sft_span_equal(pair.key, sft_span_cstr(SFTI_DECLARED_KEY)))
        return follow_layers(r, pair.value, &out->value, err);
    if (sft_span_equal(pair.key, sft_span_cstr(SFTI_LISTED_KEY)))
        return follow_list(r, pair.value, &out->value, err);
    if (sft_span_equal(pair.key, sft_span_cstr(SFTI_QUANTISER_KEY)))
        return follow_config_names(r, pair.value, &out->value, err);
    if (has_begin(pair.value, sft_span_cstr(class_begin)))
        return follow_class(r, pair.key, &out->key, err);
    return follow_alias(r, pair, out, err);
}
