/* Writes a tree of results as JSON. Tests: test_tree.c. */
#include "base/json.h"
#include "safetensors_tree.h"

static void tree_put(sfti_json_writer *w, const sft_node *node, bool member) {
    if (member) sfti_json_key_span(w, node->key);
    switch (node->type) {
    case SFT_NODE_NULL: sfti_json_null(w); break;
    case SFT_NODE_BOOL:
    case SFT_NODE_NUMBER: sfti_json_raw(w, node->text); break;
    case SFT_NODE_TEXT: sfti_json_span(w, node->text); break;
    case SFT_NODE_LIST: sfti_json_open(w, '['); break;
    case SFT_NODE_OBJECT: sfti_json_open(w, '{'); break;
    }
}

/* Without recursion: down into what is kept, else on to the next, else up. */
sft_code sft_node_json(const sft_node *root, sft_node_keep (*keep)(void *, const sft_node *),
                       void *ctx, sft_sink *sink, uint64_t offset, uint64_t *end,
                       sft_error *err) {
    const sft_node *whole = NULL; /* the node in hand is in this one, of which all is kept */
    sfti_json_writer w;
    sfti_json_write(&w, sink, offset, err);
    for (const sft_node *node = root; node && !w.code;) {
        sft_node_keep kept = whole || !keep ? SFT_NODE_ALL : keep(ctx, node);
        bool container = node->type == SFT_NODE_LIST || node->type == SFT_NODE_OBJECT;
        if (kept != SFT_NODE_DROP)
            tree_put(&w, node, node != root && node->parent->type == SFT_NODE_OBJECT);
        if (kept == SFT_NODE_ALL && !whole) whole = node;
        if (kept != SFT_NODE_DROP && container && node->first) {
            node = node->first;
            continue;
        }
        if (kept != SFT_NODE_DROP && container)
            sfti_json_close(&w, node->type == SFT_NODE_OBJECT ? '}' : ']');
        for (;; node = node->parent) {
            if (node == whole) whole = NULL;
            if (node == root || node->next) break;
            sfti_json_close(&w, node->parent->type == SFT_NODE_OBJECT ? '}' : ']');
        }
        node = node == root ? NULL : node->next;
    }
    if (end) *end = w.offset + w.used;
    return sfti_json_done(&w);
}
