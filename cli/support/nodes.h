/* Trees of facts, as commands walk them. */
#ifndef CLI_NODES_H
#define CLI_NODES_H

#include "safetensors_tree.h"

/* The first item of the list or object at a path; NULL when there is none. */
static inline const sft_node *cli_first(const sft_node *root, const char *path) {
    const sft_node *node = sft_node_find(root, path);
    return node ? node->first : NULL;
}

/* Bytes of the files that the model is in, in whatever format. */
static inline bool cli_model_bytes(const sft_node *root, uint64_t *out) {
    return sft_node_uint(root, "import.input_bytes", out) || sft_node_uint(root, "file.bytes", out);
}

#endif
