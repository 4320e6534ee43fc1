/* Building the trees of safetensors_tree.h: a json_writer whose target is a tree. */
#ifndef SFTI_TREE_H
#define SFTI_TREE_H

#include "base/json.h"
#include "safetensors_tree.h"

struct sft_tree {
    sfti_arena arena; /* holds everything but the tree itself */
    sft_node *root;
    sft_node *open; /* the container that is filled; NULL before the root and after its end */
    sft_node *last; /* the newest value of `open` */
    sft_span key;   /* of the next value */
};

/* Go on in the container that was closed last: what follows becomes more members of it. */
void sfti_tree_reopen(sft_tree *tree);

/* What the writer hands on; false when out of memory. Texts are copied. */
bool sfti_tree_open(sft_tree *tree, bool object);
void sfti_tree_close(sft_tree *tree);
bool sfti_tree_key(sft_tree *tree, sft_span key);
/* A text, or a number, true or false as JSON spells it; of null the text does not count. */
bool sfti_tree_put(sft_tree *tree, sft_node_type type, sft_span text);
/* Any JSON text: becomes as many nodes as it has values. */
bool sfti_tree_raw(sft_tree *tree, sft_span json);

#endif
