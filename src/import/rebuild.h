/* What a pickle's objects mean: tensors, arrays and plain values, without calling anything. */
#ifndef SFTI_REBUILD_H
#define SFTI_REBUILD_H

#include "import/pickle.h"
#include "import/storages.h"

typedef struct sfti_rebuild {
    sfti_import *im;
    const sft_source *source; /* of the pickle, where its bytes are */
    sfti_storages *storages;  /* NULL: it has none */
    uint64_t copied, most;    /* values and bytes that were copied, and may be */
    uint64_t dense;           /* bytes of sparse tensors that were made dense */
} sfti_rebuild;

/* Give every global of a pickle its meaning. */
void sfti_rebuild_globals(sfti_pickle *pickle);

/* Give every object of a pickle that has a meaning the value that it stands for, and report all
 * globals that have none. Items and what they point to are in the import's arena, other values need
 * not be. What cannot be carried becomes SFTI_VALUE_REFUSED, and fails only where
 * it is wanted; a pickle that contradicts itself fails at once. Cost: linear. */
sft_code sfti_rebuild_all(sfti_rebuild *r, sfti_pickle *pickle);

#endif
