/* What a pickle's objects mean: tensors, arrays and plain values, without calling anything. */
#ifndef SFTI_REBUILD_H
#define SFTI_REBUILD_H

#include "formats/pickle/pickle.h"
#include "formats/objects/storages.h"
#include "formats/parts/value.h"

typedef struct sfti_rebuild {
    sfti_import *im;
    const sft_source *source; /* of the pickle, where its bytes are */
    sfti_storages *storages;  /* NULL: it has none */
    uint64_t copied, most;    /* values and bytes that were copied, and may be */
    uint64_t dense;           /* bytes of sparse tensors that were made dense */
    sfti_value states;        /* a list: attributes, which no name leads to */
    size_t states_cap;
} sfti_rebuild;

/* Give every object of a pickle that has a meaning the value that it stands for, and report all
 * globals that have none. Items and what they point to are in the import's arena, other values need
 * not be. Attributes of what became more than an object are in r->states. What cannot be carried
 * becomes SFTI_VALUE_REFUSED, and fails only where it is wanted; a pickle that contradicts itself
 * fails at once. Cost: linear. */
sft_code sfti_rebuild_all(sfti_rebuild *r, sfti_pickle *pickle);

/* ── paddle.c: arrays that Paddle cuts into slices ── */

/* Put the slices of a map of arrays together, if it says that it has some. SFT_FOREIGN_SYNTAX: what
 * it says does not fit its arrays. */
sft_code sfti_paddle_join(sfti_import *im, sfti_value *root);

#endif
