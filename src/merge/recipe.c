/* Recipes of merges: mergekit's YAML, the same as JSON, and the JSON that a result's header has.
 * Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "text/formats.h"

#include <stdio.h>
#include <string.h>

#define NODES_MOST 8192

typedef enum node_type { NODE_SCALAR, NODE_MAP, NODE_LIST } node_type;

typedef struct recipe_node {
    struct recipe_node *parent, *first, *last, *next;
    sft_span key, text;
    size_t line, count; /* count: of children */
    node_type type;
} recipe_node;

typedef struct recipe_text {
    sfti_arena *arena;
    sft_span text;
    recipe_node *root;
    size_t nodes;
    size_t line;
    const char *counted; /* lines up to here are in `line` */
    sft_error *err;
    sfti_merge_recipe *out;
    uint32_t slice; /* whose parameters are read, + 1 */
} recipe_text;

/* ── Values of a text ── */

static sft_code refuse_line(const recipe_text *r, size_t line, const char *expected) {
    return sfti_fail(r->err, SFT_BAD_ARGUMENT, "line %zu of the recipe: expected %s", line,
                     expected);
}

static recipe_node *add_node(recipe_text *r, recipe_node *parent, sft_span key, node_type type) {
    recipe_node *node = r->nodes < NODES_MOST ? sfti_arena_take(r->arena, sizeof *node) : NULL;
    char *copy = sfti_arena_copy(r->arena, key.data, key.len);
    if (!node || !copy) return NULL;
    *node = (recipe_node){ .parent = parent, .key = { copy, key.len }, .type = type,
                           .line = r->line };
    r->nodes++;
    if (!parent) return node;
    if (parent->last) parent->last->next = node;
    else parent->first = node;
    parent->last = node;
    parent->count++;
    return node;
}

static sft_code refuse_null(const recipe_text *r) {
    return refuse_line(r, r->line, "text without the character NUL");
}

static sft_code too_many(const recipe_text *r) {
    return refuse_line(r, r->line, "at most 8192 values, or more memory");
}

static recipe_node *child_of(const recipe_node *node, sft_span key) {
    recipe_node *at = node && node->type == NODE_MAP ? node->first : NULL;
    while (at && !sft_span_equal(at->key, key)) at = at->next;
    return at;
}

/* A scalar of YAML at its place: parts that are not there yet come into being. */
static sft_code recipe_scalar(void *ctx, const sfti_yaml_value *value) {
    recipe_text *r = ctx;
    recipe_node *node = r->root;
    sft_span rest = sft_span_cstr(value->place), part;
    uint64_t number;
    rest = sfti_from(rest, rest.len > 0);
    r->line = value->line;
    while (sfti_next_piece(&rest, '/', &part)) {
        bool is_index = sfti_text_uint(part, &number), is_end = rest.len == 0;
        node_type type = is_index ? NODE_LIST : NODE_MAP;
        if (!node->first) node->type = type;
        recipe_node *next = node->last;
        if (is_index && number > node->count)
            return refuse_line(r, value->line, "a value for each item of a list");
        if (node->type != type || (node != r->root && node->text.data))
            return refuse_line(r, value->line, "one value for each key");
        if (!next || !sft_span_equal(next->key, part)) {
            if (type == NODE_MAP && child_of(node, part))
                return refuse_line(r, value->line, "each key once");
            next = add_node(r, node, part, NODE_SCALAR);
            if (!next) return too_many(r);
        } else if (is_end) {
            return refuse_line(r, value->line, "each key once");
        }
        node = next;
    }
    if (memchr(value->text.data, 0, value->text.len)) return refuse_null(r);
    char *copy = sfti_arena_copy(r->arena, value->text.data, value->text.len);
    node->text = (sft_span){ copy, value->text.len };
    return copy ? SFT_OK : SFT_OUT_OF_MEMORY;
}

static sft_code recipe_yaml(recipe_text *r) {
    sfti_yaml_fault fault = { 0, NULL };
    sft_code code = sfti_yaml_read_all(r->arena, r->text, recipe_scalar, r, &fault);
    if (code == SFT_OUT_OF_MEMORY) return sfti_fail_memory(r->err, r->text.len);
    return fault.expected ? refuse_line(r, fault.line, fault.expected) : code;
}

static sft_code read_json(recipe_text *r) {
    sfti_json json;
    recipe_node *at = NULL;
    sft_span key = { "", 0 };
    sfti_json_begin(&json, r->text.data, r->text.len);
    for (;;) {
        sfti_json_type type = sfti_json_next(&json);
        if (type == SFTI_JSON_ERROR) return sfti_json_fail(&json, 0, r->err);
        if (type == SFTI_JSON_END) return SFT_OK;
        while (r->counted < r->text.data + json.start) r->line += *r->counted++ == '\n';
        if (type == SFTI_JSON_KEY) {
            key = sfti_json_string(&json, r->arena);
            if (!key.data) return sfti_fail_memory(r->err, json.text.len);
            if (child_of(at, key)) return refuse_line(r, r->line, "each key once");
            continue;
        }
        if (type == SFTI_JSON_OBJECT_END || type == SFTI_JSON_ARRAY_END) {
            at = at->parent;
            continue;
        }
        if (type == SFTI_JSON_NULL && at && at->type == NODE_LIST)
            return refuse_line(r, r->line, "a value for each item of a list");
        if (type == SFTI_JSON_NULL) continue;
        if (at && at->type == NODE_LIST) key = (sft_span){ "", 0 };
        bool opens = type == SFTI_JSON_OBJECT || type == SFTI_JSON_ARRAY;
        recipe_node *node = add_node(r, at, key, type == SFTI_JSON_OBJECT ? NODE_MAP
                                              : opens ? NODE_LIST : NODE_SCALAR);
        if (!node) return too_many(r);
        if (!at) r->root = node;
        if (opens) at = node;
        else node->text = type == SFTI_JSON_STRING ? sfti_json_string(&json, r->arena) : json.text;
        if (!opens && !node->text.data) return sfti_fail_memory(r->err, json.text.len);
        if (!opens && memchr(node->text.data, 0, node->text.len)) return refuse_null(r);
    }
}

/* ── Parameters ── */

static sft_code add_setting(recipe_text *r, const recipe_node *value,
                            sfti_merge_setting setting) {
    size_t count = value->count;
    if (value->type == NODE_MAP || (value->type == NODE_LIST && count == 0)
        || count > SFTI_MERGE_VALUES)
        return refuse_line(r, value->line, "a number, true or false, or a list of them");
    double *values = sfti_arena_array(r->arena, count + 1, sizeof *values);
    if (!values) return sfti_fail_memory(r->err, count * sizeof *values);
    setting.values = values;
    setting.count = 0;
    for (const recipe_node *n = value->type == NODE_LIST ? value->first : value; n;
         n = value->type == NODE_LIST ? n->next : NULL) {
        if (n->type != NODE_SCALAR
            || !sfti_merge_param_value(setting.param, n->text, &values[setting.count++]))
            return refuse_line(r, n->line, sfti_merge_param_is_switch(setting.param)
                                          ? "true or false" : "a number");
    }
    return sfti_merge_setting_add(&r->out->settings, r->arena, &setting, r->err);
}

/* A value, or one with the "filter" (part of a name) or "glob" (pattern) that it is for. */
static sft_code read_condition(recipe_text *r, const recipe_node *node,
                               sfti_merge_setting setting) {
    const recipe_node *value = NULL;
    for (const recipe_node *n = node->first; n; n = n->next) {
        bool glob = sfti_is(n->key, "glob");
        if (sfti_is(n->key, "value")) value = n;
        else if ((!glob && !sfti_is(n->key, "filter")) || n->type != NODE_SCALAR)
            return refuse_line(r, n->line, "filter, glob or value");
        else if (setting.filter != SFTI_FILTER_NONE)
            return refuse_line(r, n->line, "filter or glob, not both");
        else if (!sfti_is(n->text, "*")) {
            setting.filter = glob ? SFTI_FILTER_GLOB : SFTI_FILTER_PART;
            setting.text = n->text;
        }
    }
    if (!value) return refuse_line(r, node->line, "a value beside the filter");
    return add_setting(r, value, setting);
}

static sft_code read_params(recipe_text *r, const recipe_node *params, uint32_t model) {
    sft_code code = SFT_OK;
    if (params && params->type != NODE_MAP)
        return refuse_line(r, params->line, "parameters by names");
    for (const recipe_node *n = params ? params->first : NULL; !code && n; n = n->next) {
        sfti_merge_setting setting = { .param = sfti_merge_param_of(n->key), .model = model,
                                       .slice = r->slice };
        if (setting.param == SFTI_MERGE_PARAMS)
            return sfti_fail(r->err, SFT_BAD_ARGUMENT,
                             "line %zu of the recipe: expected a parameter of mergekit's, or "
                             "alpha, found \"%.*s\"", n->line, SFTI_CLIP(n->key, 40));
        if (model != SFTI_MERGE_ALL && setting.param >= SFTI_MERGE_EACH)
            return refuse_line(r, n->line, "this parameter for all models, not for one");
        bool listed = n->type == NODE_LIST && n->first && n->first->type == NODE_MAP;
        if (n->type == NODE_MAP) code = read_condition(r, n, setting);
        else if (!listed) code = add_setting(r, n, setting);
        for (const recipe_node *c = listed ? n->first : NULL; !code && c; c = c->next)
            code = c->type == NODE_MAP ? read_condition(r, c, setting)
                                       : refuse_line(r, c->line, "filter and value");
    }
    return code;
}

/* ── Models ── */

static sft_code recipe_model_add(recipe_text *r, const recipe_node *node, uint32_t *number) {
    sfti_merge_recipe *out = r->out;
    sft_span name = node->type == NODE_SCALAR ? node->text : (sft_span){ NULL, 0 };
    sft_span content = { "", 0 }, sha256 = { "", 0 }, values = { "", 0 };
    for (const recipe_node *n = node->type == NODE_MAP ? node->first : NULL; n; n = n->next) {
        bool text = n->type == NODE_SCALAR;
        if (sfti_is(n->key, "model") && text) name = n->text;
        else if (sfti_is(n->key, "content") && text) content = n->text;
        else if (sfti_is(n->key, "sha256") && text) sha256 = n->text;
        else if (sfti_is(n->key, "values") && text) values = n->text;
        else if (!sfti_is(n->key, "parameters") && !sfti_is(n->key, "layer_range"))
            return refuse_line(r, n->line, "model, parameters or layer_range");
    }
    if (!name.data || name.len == 0) return refuse_line(r, node->line, "the name of a model");
    if (content.len > 0 && content.len != 64)
        return refuse_line(r, node->line, "a digest of 64 digits");
    for (*number = 0; *number < out->count; ++*number)
        if (sft_span_equal(out->models[*number], name)) return SFT_OK;
    if (out->count == SFTI_MERGE_MODELS) return refuse_line(r, node->line, "at most 32 models");
    out->models[out->count] = name;
    out->content[out->count] = content;
    out->values[out->count] = values;
    out->sha256[out->count++] = sha256;
    return SFT_OK;
}

static sft_code read_models(recipe_text *r, const recipe_node *list) {
    sft_code code = SFT_OK;
    if (!list || list->type != NODE_LIST)
        return refuse_line(r, list ? list->line : 1, "a list of models");
    for (const recipe_node *n = list->first; !code && n; n = n->next) {
        uint32_t number, before = (uint32_t)r->out->count;
        code = recipe_model_add(r, n, &number);
        if (!code && number < before) code = refuse_line(r, n->line, "each model once");
        if (!code) code = read_params(r, child_of(n, sft_span_cstr("parameters")), number);
    }
    return code;
}

/* 010 is none: it is 8 in YAML of version 1.1. */
static bool recipe_uint(sft_span text, uint64_t *out) {
    return (text.len == 1 || !sfti_begins(text, "0")) && sfti_text_uint(text, out);
}

/* Layers of one model, with its parameters there. */
static sft_code read_slice_source(recipe_text *r, const recipe_node *n, sfti_merge_slice *slice) {
    const recipe_node *range = child_of(n, sft_span_cstr("layer_range"));
    const recipe_node *from = range && range->type == NODE_LIST ? range->first : NULL;
    const recipe_node *to = from ? from->next : NULL;
    uint64_t first = 0, last = 0;
    uint32_t model;
    bool fine = to && !to->next && recipe_uint(from->text, &first)
             && recipe_uint(to->text, &last) && first < last && last < UINT32_MAX;
    if (!fine)
        return refuse_line(r, range ? range->line : n->line,
                           "layer_range: [first layer, one behind the last]");
    if (slice->count > 0 && last - first != slice->layers)
        return refuse_line(r, range->line, "as many layers of each source of a slice");
    sft_code code = recipe_model_add(r, n, &model);
    for (size_t k = 0; !code && k < slice->count; k++)
        if (slice->sources[k].model == model)
            code = refuse_line(r, n->line, "each model once in a slice");
    if (code) return code;
    slice->layers = last - first;
    slice->sources[slice->count++] = (sfti_slice_source){ model, first };
    return read_params(r, child_of(n, sft_span_cstr("parameters")), model);
}

static sft_code read_slices(recipe_text *r, const recipe_node *list) {
    sfti_merge_recipe *out = r->out;
    size_t room = list->type == NODE_LIST ? list->count : 0;
    sft_code code = SFT_OK;
    if (room == 0 || room > SFTI_MERGE_SLICES)
        return refuse_line(r, list->line, "a list of 1 to 1024 slices");
    out->slices = sfti_arena_array(r->arena, room, sizeof *out->slices);
    if (!out->slices) return sfti_fail_memory(r->err, room * sizeof *out->slices);
    for (const recipe_node *one = list->first; !code && one; one = one->next) {
        const recipe_node *sources = child_of(one, sft_span_cstr("sources"));
        sfti_merge_slice *slice = &out->slices[out->slice_count];
        for (const recipe_node *n = one->first; n; n = n->next)
            if (n != sources && !sfti_is(n->key, "parameters"))
                return refuse_line(r, n->line, "sources and parameters");
        if (!sources || sources->type != NODE_LIST || !sources->first)
            return refuse_line(r, one->line, "sources: a list of models with a layer_range");
        *slice = (sfti_merge_slice){
            .sources = sfti_arena_array(r->arena, sources->count, sizeof *slice->sources) };
        if (!slice->sources) return sfti_fail_memory(r->err, sources->count * 16);
        r->slice = (uint32_t)++out->slice_count;
        for (const recipe_node *n = sources->first; !code && n; n = n->next)
            code = read_slice_source(r, n, slice);
        if (!code)
            code = read_params(r, child_of(one, sft_span_cstr("parameters")), SFTI_MERGE_ALL);
        r->slice = 0;
    }
    return code;
}

static sft_code settle_count(const sfti_merge_method *method, bool beside, size_t others,
                             sft_error *err) {
    if (others >= method->least && (!method->most || others <= method->most)) return SFT_OK;
    return sfti_fail(err, SFT_BAD_ARGUMENT, "expected %s%u model%s%s for %s, found %zu",
                     method->most ? "" : "at least ", method->least, method->least == 1 ? "" : "s",
                     beside ? " beside the base" : "", method->name, others);
}

/* Each slice is a merge of its own: with the base, if there is one, among its sources. */
static sft_code settle_slices(sfti_merge_recipe *recipe, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t n = 0; !code && n < recipe->slice_count; n++) {
        const sfti_merge_slice *slice = &recipe->slices[n];
        size_t base = 0;
        for (size_t k = 0; k < slice->count; k++) base += slice->sources[k].model == recipe->base;
        if (recipe->base != SIZE_MAX && base == 0)
            return sfti_fail(err, SFT_BAD_ARGUMENT, "expected the base among the sources of each "
                             "slice, found none in slice %zu", n + 1);
        code = settle_count(recipe->method, base > 0, slice->count - base, err);
    }
    recipe->reference = recipe->slices[0].sources[0].model;
    if (recipe->method->kind == SFTI_MERGE_ADD)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a method of mergekit for slices, "
                         "found %s", recipe->method->name);
    return code;
}

sft_code sfti_merge_recipe_settle(sfti_merge_recipe *recipe, sft_error *err) {
    const sfti_merge_method *method = recipe->method;
    size_t named = recipe->base;
    if (method->base == SFTI_BASE_FIRST && named == SIZE_MAX) recipe->base = named = 0;
    if (method->base == SFTI_BASE_NONE) recipe->base = SIZE_MAX;
    if (method->base == SFTI_BASE_MUST && named == SIZE_MAX)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a base for %s, found none",
                         method->name);
    recipe->dtype_of = named == SIZE_MAX ? 0 : named;
    recipe->reference = recipe->dtype_of;
    if (recipe->slice_count > 0) return settle_slices(recipe, err);
    if (method->kind == SFTI_MERGE_ADD) recipe->reference = recipe->base == 0;
    return settle_count(method, recipe->base != SIZE_MAX,
                        recipe->count - (recipe->base != SIZE_MAX), err);
}

/* ── Reading it ── */

static sft_code read_top(recipe_text *r) {
    sfti_merge_recipe *out = r->out;
    const recipe_node *base = NULL, *params = NULL, *models = NULL, *slices = NULL;
    sft_code code = SFT_OK;
    for (const recipe_node *n = r->root->first; !code && n; n = n->next) {
        bool text = n->type == NODE_SCALAR;
        if (sfti_is(n->key, "merge_method") && text) {
            out->method = sfti_merge_method_of(n->text);
            if (!out->method)
                code = sfti_fail(r->err, SFT_BAD_ARGUMENT, "line %zu of the recipe: expected a "
                                 "method that is known, found \"%.*s\"", n->line,
                                 SFTI_CLIP(n->text, 40));
        } else if (sfti_is(n->key, "base_model")) base = n;
        else if (sfti_is(n->key, "models")) models = n;
        else if (sfti_is(n->key, "slices")) slices = n;
        else if (sfti_is(n->key, "parameters")) params = n;
        else if (sfti_is(n->key, "seed")) {
            if (!text || !recipe_uint(n->text, &out->seed))
                code = refuse_line(r, n->line, "a seed of 0 to 18446744073709551615");
        } else if (sfti_is(n->key, "out_dtype") && text) out->dtype = n->text;
        else if (sfti_is(n->key, "dtype") && text) {
            if (out->dtype.len == 0) out->dtype = n->text;
        } else if (sfti_is(n->key, "ignore_missing") && text) {
            out->ignore_missing = sfti_same_letters(n->text, "true");
            if (!out->ignore_missing && !sfti_same_letters(n->text, "false"))
                code = refuse_line(r, n->line, "true or false");
        } else if (sfti_is(n->key, "version")) {
            if (!sfti_is(n->text, "1")) code = refuse_line(r, n->line, "version 1");
        } else {
            code = sfti_fail(r->err, SFT_BAD_ARGUMENT, "line %zu of the recipe: expected "
                             "merge_method, base_model, models, slices, parameters, dtype, "
                             "out_dtype, seed or ignore_missing, found \"%.*s\"", n->line,
                             SFTI_CLIP(n->key, 40));
        }
    }
    if (code) return code;
    if (!out->method) return refuse_line(r, 1, "a merge_method");
    if (slices && models) return refuse_line(r, slices->line, "models or slices, not both");
    code = slices ? read_slices(r, slices) : read_models(r, models);
    uint32_t number = 0;
    size_t listed = out->count;
    if (!code && base) code = recipe_model_add(r, base, &number);
    if (!code && base && number >= listed && out->method->base == SFTI_BASE_NONE)
        code = refuse_line(r, base->line, "a base_model that is one of the models (this method "
                                          "has none)");
    if (!code && base) out->base = number;
    if (!code) code = read_params(r, params, SFTI_MERGE_ALL);
    return code ? code : sfti_merge_recipe_settle(out, r->err);
}

sft_code sfti_merge_recipe_read(sft_span text, sfti_arena *arena, sfti_merge_recipe *out,
                                sft_error *err) {
    recipe_text r = { .arena = arena, .text = text, .err = err, .out = out, .line = 1,
                      .counted = text.data };
    bool (*glob)(sft_span, sft_span) = out->settings.glob;
    *out = (sfti_merge_recipe){ .base = SIZE_MAX, .weights_required = true };
    out->settings.glob = glob;
    if (text.len > SFTI_MERGE_RECIPE_MOST)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a recipe of at most 1 MiB, found more");
    if (memchr(text.data, 0, text.len) || sfti_utf8_check(text.data, text.len) != text.len)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a recipe in UTF-8, found other bytes");
    bool json = *sfti_trim(text).data == '{';
    if (!json) r.root = add_node(&r, NULL, (sft_span){ "", 0 }, NODE_MAP);
    if (!json && !r.root) return sfti_fail_memory(err, sizeof *r.root);
    sft_code code = json ? read_json(&r) : recipe_yaml(&r);
    return code ? code : read_top(&r);
}

/* ── Writing it ── */

/* The fewest digits that give the number again. */
static void write_number(double value, sfti_json_writer *w) {
    char text[SFTI_DOUBLE_SIZE];
    double again = 0;
    for (int digits = 1; digits < 17; digits++) {
        int len = snprintf(text, sizeof text, "%.*g", digits, value);
        char *point = strchr(text, '.') ? NULL : text + strspn(text, "-0123456789");
        if (point && *point && *point != 'e') *point = '.'; /* a locale has another */
        if (sfti_parse_double((sft_span){ text, (size_t)len }, &again)
            && !(again < value || again > value)) {
            sfti_json_raw(w, (sft_span){ text, (size_t)len });
            return;
        }
    }
    sfti_json_raw(w, (sft_span){ text, sfti_double_text(value, text) });
}

static void write_values(const sfti_merge_setting *s, sfti_json_writer *w) {
    if (s->count > 1) sfti_json_open(w, '[');
    for (size_t k = 0; k < s->count; k++)
        if (!sfti_merge_param_is_switch(s->param)) write_number(s->values[k], w);
        else sfti_json_raw(w, sft_span_cstr(s->values[k] > 0 ? "true" : "false"));
    if (s->count > 1) sfti_json_close(w, ']');
}

/* Those of a model, or of all: a value, or a list of conditions. */
static void write_params(const sfti_merge_recipe *recipe, uint32_t model, uint32_t slice,
                         sfti_json_writer *w) {
    const sfti_merge_settings *all = &recipe->settings;
    sfti_json_put_open(w, "parameters", '{');
    for (int p = 0; p < SFTI_MERGE_PARAMS; p++) {
        size_t count = 0, filters = 0;
        for (size_t i = 0; i < all->count; i++) {
            if ((int)all->items[i].param != p || all->items[i].model != model
                || all->items[i].slice != slice)
                continue;
            count++;
            filters += all->items[i].filter != SFTI_FILTER_NONE;
        }
        if (count == 0) continue;
        bool listed = count > 1 || filters > 0;
        sfti_json_key(w, sfti_merge_param_name((sfti_merge_param)p));
        if (listed) sfti_json_open(w, '[');
        for (size_t i = 0; i < all->count; i++) {
            const sfti_merge_setting *s = &all->items[i];
            if ((int)s->param != p || s->model != model || s->slice != slice) continue;
            if (listed) sfti_json_open(w, '{');
            if (s->filter)
                sfti_json_put_text(w, s->filter == SFTI_FILTER_GLOB ? "glob" : "filter", s->text);
            if (listed) sfti_json_key(w, "value");
            write_values(s, w);
            if (listed) sfti_json_close(w, '}');
        }
        if (listed) sfti_json_close(w, ']');
    }
    sfti_json_close(w, '}');
}

static void write_model(const sfti_merge_recipe *recipe, const sft_span *names, size_t i,
                        sfti_json_writer *w) {
    sfti_json_open(w, '{');
    sfti_json_put_text(w, "model", names[i]);
    if (recipe->content[i].len) sfti_json_put_text(w, "content", recipe->content[i]);
    if (recipe->sha256[i].len) sfti_json_put_text(w, "sha256", recipe->sha256[i]);
    if (recipe->values[i].len) sfti_json_put_text(w, "values", recipe->values[i]);
}

static void write_slices(const sfti_merge_recipe *recipe, const sft_span *names,
                         sfti_json_writer *w) {
    sfti_json_put_open(w, "slices", '[');
    for (size_t n = 0; n < recipe->slice_count; n++) {
        const sfti_merge_slice *slice = &recipe->slices[n];
        sfti_json_open(w, '{');
        sfti_json_put_open(w, "sources", '[');
        for (size_t k = 0; k < slice->count; k++) {
            const sfti_slice_source *source = &slice->sources[k];
            write_model(recipe, names, source->model, w);
            sfti_json_put_open(w, "layer_range", '[');
            sfti_json_uint(w, source->first);
            sfti_json_uint(w, source->first + slice->layers);
            sfti_json_close(w, ']');
            write_params(recipe, source->model, (uint32_t)n + 1, w);
            sfti_json_close(w, '}');
        }
        sfti_json_close(w, ']');
        write_params(recipe, SFTI_MERGE_ALL, (uint32_t)n + 1, w);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

void sfti_merge_recipe_write(const sfti_merge_recipe *recipe, const sft_span *names,
                             sfti_json_writer *w) {
    size_t base = recipe->method->base == SFTI_BASE_NONE ? recipe->dtype_of : recipe->base;
    sfti_json_open(w, '{');
    sfti_json_put_uint(w, "version", 1);
    sfti_json_put_cstr(w, "merge_method", recipe->method->name);
    if (base != SIZE_MAX) {
        sfti_json_key(w, "base_model");
        write_model(recipe, names, base, w);
        sfti_json_close(w, '}');
    }
    if (recipe->slice_count > 0) write_slices(recipe, names, w);
    else sfti_json_put_open(w, "models", '[');
    for (size_t i = 0; recipe->slice_count == 0 && i < recipe->count; i++) {
        write_model(recipe, names, i, w);
        write_params(recipe, (uint32_t)i, 0, w);
        sfti_json_close(w, '}');
    }
    if (recipe->slice_count == 0) sfti_json_close(w, ']');
    write_params(recipe, SFTI_MERGE_ALL, 0, w);
    sfti_json_put_uint(w, "seed", recipe->seed);
    if (recipe->dtype.len) sfti_json_put_text(w, "dtype", recipe->dtype);
    if (recipe->ignore_missing) sfti_json_put_bool(w, "ignore_missing", true);
    sfti_json_close(w, '}');
}
