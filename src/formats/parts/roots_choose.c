/* Which branch of a tree of values is the model's. */
#include "formats/parts/roots_sum.h"

#include "base/number.h"

#include <string.h>

/* What trainers call the model's branch, the likeliest first. again: looked for within the
 * branch, too. */
static const struct { const char *key; bool again; } model_keys[] = {
    { "state_dict", true }, { "model", false }, { "module", false },
    { "model_state_dict", true }, { "net", false }, { "params_ema", false },
    { "params", false }, { "ema", false }, { "generator", false }, { "g_ema", false },
    { "weights", false },
};
#define MODEL_KEYS (sizeof model_keys / sizeof *model_keys)

/* Parts of the names of what else a checkpoint holds. */
static const char *const other_keys[] = {
    "optim", "lr_sched", "scheduler", "rng_state", "random_state", "grad_scaler",
};

bool sfti_child_key(const sfti_child *child, char digits[SFTI_KEY_DIGITS], sft_span *out) {
    const sfti_value *key = child->key;
    int64_t number = key && key->kind == SFTI_VALUE_INT ? key->u.integer : child->index;
    if (key && key->kind == SFTI_VALUE_TEXT && key->u.text) {
        *out = (sft_span){ key->u.text, key->count };
        return true;
    }
    if (key && key->kind != SFTI_VALUE_INT) return false;
    digits[0] = '-';
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    *out = (sft_span){ digits, sfti_uint_text(size, 1, digits + (number < 0)) + (number < 0) };
    return true;
}

bool sfti_branch_is_other(const sfti_child *child) {
    char digits[SFTI_KEY_DIGITS];
    sft_span key;
    if (!child->key || !sfti_child_key(child, digits, &key)) return false;
    if (key.len >= 3 && memcmp(key.data, "ema", 3) == 0) return true;
    for (size_t i = 0; i < sizeof other_keys / sizeof *other_keys; i++)
        for (size_t at = 0, len = strlen(other_keys[i]); at + len <= key.len; at++)
            if (memcmp(key.data + at, other_keys[i], len) == 0) return true;
    return false;
}

static sft_code choice_enter(sfti_subtrees *sums, sfti_choice *choice, const sfti_child *child) {
    char digits[SFTI_KEY_DIGITS];
    sft_span key = { "", 0 };
    (void)sfti_child_key(child, digits, &key);
    size_t len = choice->path.len;
    char *path = sfti_arena_array(&sums->im->arena, len + key.len + 1, 1);
    sfti_value **above = sfti_arena_grow(&sums->im->arena, choice->above, choice->depth, 1,
                                         &choice->cap, sizeof *above);
    if (above) choice->above = above;
    if (!path || !above) return sfti_fail_memory(sums->im->err, len + key.len);
    if (len > 0) memcpy(path, choice->path.data, len);
    if (len > 0) path[len++] = '.';
    memcpy(path + len, key.data, key.len);
    choice->path = (sft_span){ path, len + key.len };
    above[choice->depth++] = choice->root;
    choice->root = child->value;
    choice->key = child->key;
    return SFT_OK;
}

/* ── The model's branch ── */

static bool holds(const sfti_subtrees *sums, const sfti_value *from, const sfti_child *child) {
    return child->value->sum != 0 && sfti_subtree_enters(sums, from, child->value) &&
           sfti_subtree_of(sums, child->value).tensors > 0;
}

/* The child of a map under one of the model's keys, the likeliest. */
static bool find_model(const sfti_subtrees *sums, const sfti_value *from, bool again,
                       sfti_child *out) {
    size_t best = MODEL_KEYS;
    sfti_child child;
    if (from->kind != SFTI_VALUE_MAP) return false;
    for (uint64_t i = 0; sfti_value_child(from, i, &child); i++) {
        char digits[SFTI_KEY_DIGITS];
        sft_span key;
        if (!holds(sums, from, &child) || !sfti_child_key(&child, digits, &key)) continue;
        for (size_t k = 0; k < best; k++) {
            if (!sft_span_equal(key, sft_span_cstr(model_keys[k].key))) continue;
            if (again && !model_keys[k].again) continue;
            best = k;
            *out = child;
        }
    }
    return best < MODEL_KEYS;
}

/* Whether the whole holds tensors in other branches than those that are left out. */
static bool has_more_than_others(const sfti_subtrees *sums, const sfti_value *whole) {
    sfti_child child;
    for (uint64_t i = 0; sfti_value_child(whole, i, &child); i++) {
        if (child.value->sum != 0 && (!holds(sums, whole, &child) || sfti_branch_is_other(&child)))
            continue;
        if (sfti_subtree_of(sums, child.value).tensors > 0) return true;
    }
    return false;
}

/* ── A branch by its path ── */

/* The child whose key begins the path, the longest of several; *rest is what follows it and its
 * dot, NULL if nothing does. */
static bool find_step(const sfti_value *from, sft_span path, sfti_child *out, sft_span *rest) {
    sfti_child child;
    size_t best = 0;
    bool found = false;
    for (uint64_t i = 0; sfti_value_child(from, i, &child); i++) {
        char digits[SFTI_KEY_DIGITS];
        sft_span key;
        if (!sfti_child_key(&child, digits, &key) || key.len > path.len) continue;
        if (key.len > 0 && memcmp(key.data, path.data, key.len) != 0) continue;
        if (key.len < path.len && path.data[key.len] != '.') continue;
        if (found && key.len < best) continue;
        found = true;
        best = key.len;
        *out = child;
    }
    *rest = (sft_span){ NULL, 0 };
    if (best < path.len) *rest = (sft_span){ path.data + best + 1, path.len - best - 1 };
    return found;
}

static sft_code choose_named(sfti_subtrees *sums, const char *name, sfti_choice *out) {
    sft_span rest = sft_span_cstr(name);
    sft_code code = SFT_OK;
    if (rest.len == 0) return SFT_OK;
    while (rest.data && !code) {
        sfti_child child;
        bool found = find_step(out->root, rest, &child, &rest);
        if (!found || !sfti_subtree_enters(sums, out->root, child.value) ||
            sfti_subtree_of(sums, child.value).tensors == 0)
            return sfti_fail(sums->im->err, SFT_FOREIGN_BRANCH,
                             "expected a branch with tensors, found none at \"%.*s\"",
                             SFTI_CLIP(sft_span_cstr(name), 200));
        code = choice_enter(sums, out, &child);
    }
    return code;
}

sft_code sfti_roots_choose(sfti_subtrees *sums, sfti_value *whole, sfti_choice *out) {
    const sft_import_options *options = &sums->im->options;
    *out = (sfti_choice){ .root = whole, .path = { "", 0 } };
    if (options->root) return choose_named(sums, options->root, out);
    if (options->all) return SFT_OK;

    sfti_child child;
    uint64_t direct = 0; /* bytes of the tensors that the whole holds itself */
    sft_code code;
    for (uint64_t i = 0; sfti_value_child(out->root, i, &child); i++)
        if (child.value->sum == 0)
            sfti_total_add(&direct, sfti_subtree_of(sums, child.value).bytes);
    if (!find_model(sums, out->root, false, &child) ||
        sfti_subtree_of(sums, child.value).bytes < direct) {
        out->only_model = out->root->kind == SFTI_VALUE_MAP &&
                          has_more_than_others(sums, out->root);
        return SFT_OK;
    }
    code = choice_enter(sums, out, &child);
    while (!code && out->depth < 4 && find_model(sums, out->root, true, &child) &&
           sfti_subtree_of(sums, child.value).tensors == sfti_subtree_of(sums, out->root).tensors)
        code = choice_enter(sums, out, &child);
    return code;
}
