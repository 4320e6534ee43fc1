/* Builds and reads trees of results. Tests: test_tree.c. */
#include "base/tree.h"

#include "base/error.h"

#include <string.h>

/* ── Building ── */

sft_code sft_tree_new(const sft_allocator *alloc, sft_tree **out, sft_error *err) {
    sft_allocator own = sfti_allocator(alloc);
    sft_tree *tree = *out = sfti_take(&own, sizeof *tree);
    if (!tree) return sfti_fail_memory(err, sizeof *tree);
    *tree = (sft_tree){ .arena = { .alloc = own } };
    return SFT_OK;
}

void sft_tree_free(sft_tree *tree) {
    if (!tree) return;
    sft_allocator alloc = tree->arena.alloc;
    sfti_arena_free(&tree->arena);
    sfti_release(&alloc, tree, sizeof *tree);
}

const sft_node *sft_tree_root(const sft_tree *tree) {
    return tree->root;
}

void sfti_tree_reopen(sft_tree *tree) {
    sft_node *newest = NULL;
    tree->open = tree->last;
    for (const sft_node *one = tree->open->first; one; one = one->next) newest = (sft_node *)one;
    tree->last = newest;
}

static bool tree_copy(sft_tree *tree, sft_span text, sft_span *out) {
    char *at = sfti_arena_take(&tree->arena, text.len);
    if (!at) return false;
    if (text.len > 0) memcpy(at, text.data, text.len);
    *out = (sft_span){ at, text.len };
    return true;
}

static sft_node *tree_add(sft_tree *tree, sft_node_type type, sft_span text) {
    sft_node *node = sfti_arena_take(&tree->arena, sizeof *node);
    if (!node) return NULL;
    *node = (sft_node){ tree->open, NULL, NULL, type, tree->key, text };
    if (tree->last) tree->last->next = node;
    else if (tree->open) tree->open->first = node;
    else tree->root = node;
    tree->last = node;
    tree->key = (sft_span){ "", 0 };
    return node;
}

bool sfti_tree_open(sft_tree *tree, bool object) {
    sft_node *node = tree_add(tree, object ? SFT_NODE_OBJECT : SFT_NODE_LIST,
                              (sft_span){ "", 0 });
    if (!node) return false;
    tree->open = node;
    tree->last = NULL;
    return true;
}

void sfti_tree_close(sft_tree *tree) {
    tree->last = tree->open;
    tree->open = (sft_node *)tree->open->parent;
}

bool sfti_tree_key(sft_tree *tree, sft_span key) {
    return tree_copy(tree, key, &tree->key);
}

bool sfti_tree_put(sft_tree *tree, sft_node_type type, sft_span text) {
    if (type == SFT_NODE_NULL) return tree_add(tree, type, (sft_span){ "", 0 });
    return tree_copy(tree, text, &text) && tree_add(tree, type, text);
}

/* One event of a JSON text. */
static bool tree_event(sft_tree *tree, const sfti_json *json) {
    switch (json->type) {
    case SFTI_JSON_OBJECT: return sfti_tree_open(tree, true);
    case SFTI_JSON_ARRAY: return sfti_tree_open(tree, false);
    case SFTI_JSON_OBJECT_END:
    case SFTI_JSON_ARRAY_END: sfti_tree_close(tree); return true;
    case SFTI_JSON_KEY:
        tree->key = sfti_json_string(json, &tree->arena);
        return tree->key.data && tree_copy(tree, tree->key, &tree->key);
    case SFTI_JSON_STRING: {
        sft_span text = sfti_json_string(json, &tree->arena);
        return text.data && sfti_tree_put(tree, SFT_NODE_TEXT, text);
    }
    case SFTI_JSON_UINT:
    case SFTI_JSON_NUMBER: return sfti_tree_put(tree, SFT_NODE_NUMBER, json->text);
    case SFTI_JSON_TRUE:
    case SFTI_JSON_FALSE: return sfti_tree_put(tree, SFT_NODE_BOOL, json->text);
    default: return sfti_tree_put(tree, SFT_NODE_NULL, json->text);
    }
}

bool sfti_tree_raw(sft_tree *tree, sft_span text) {
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    while (sfti_json_next(&json) != SFTI_JSON_END && json.type != SFTI_JSON_ERROR)
        if (!tree_event(tree, &json)) return false;
    return true;
}

/* ── Asking ── */

static const sft_node *tree_member(const sft_node *node, sft_span key) {
    if (!node || node->type != SFT_NODE_OBJECT) return NULL;
    for (node = node->first; node; node = node->next)
        if (sft_span_equal(node->key, key)) return node;
    return NULL;
}

const sft_node *sft_node_get(const sft_node *node, const char *key) {
    return tree_member(node, sft_span_cstr(key));
}

const sft_node *sft_node_find(const sft_node *node, const char *path) {
    while (node && *path) {
        size_t len = strcspn(path, ".");
        node = tree_member(node, (sft_span){ path, len });
        path += len + (path[len] == '.');
    }
    return node;
}

static const sft_node *tree_value(const sft_node *node, const char *path) {
    node = sft_node_find(node, path);
    const sft_node *value = sft_node_get(node, "value");
    return value ? value : node;
}

sft_span sft_node_text(const sft_node *node, const char *path) {
    node = tree_value(node, path);
    return node ? node->text : (sft_span){ "", 0 };
}

bool sft_node_uint(const sft_node *node, const char *path, uint64_t *out) {
    sft_span text = sft_node_text(node, path);
    *out = 0;
    if (text.len == 0 || text.len > 19) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *out = value;
    return true;
}

bool sft_node_true(const sft_node *node, const char *path) {
    node = tree_value(node, path);
    return node && node->type == SFT_NODE_BOOL && node->text.len == 4;
}

size_t sft_node_count(const sft_node *node) {
    size_t count = 0;
    for (node = node ? node->first : NULL; node; node = node->next) count++;
    return count;
}
