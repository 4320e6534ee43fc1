/* A model with each other name of a tensor (an alias), which only metadata record, as a tensor of
 * its own. */
#ifndef SFTI_NAMED_H
#define SFTI_NAMED_H

#include "base/mem.h"
#include "safetensors_set.h"

/* The model so, without the records and digests; *out NULL: it has no aliases. owned, which may be
 * NULL, is closed with it; the model outlives it. If there is an owned one, for which the result
 * stands in, shards that say different things of how tensors are read are refused. */
sft_code sfti_set_named(const sft_set *set, sft_set *owned, const sft_allocator *alloc,
                        sft_set **out, sft_error *err);
/* torchao's lists of all shards as one; data NULL: they do not have two. False when out of
 * memory. */
bool sfti_set_listed(const sft_set *set, sfti_arena *arena, sft_span *out);

#endif
