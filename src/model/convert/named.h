/* A model with each other name of a tensor (an alias), which only metadata record, as a tensor of
 * its own. */
#ifndef SFTI_NAMED_H
#define SFTI_NAMED_H

#include "base/mem.h"
#include "safetensors_set.h"

/* The model so, without the records and digests; *out NULL: it has no aliases. owned, which may be
 * NULL, is closed with it; the model outlives it. */
sft_code sfti_set_named(const sft_set *set, sft_set *owned, const sft_allocator *alloc,
                        sft_set **out, sft_error *err);

#endif
