/* Other names of a model's tensors (aliases), which only its metadata record. */
#ifndef SFTI_SET_ALIASES_H
#define SFTI_SET_ALIASES_H

#include "safetensors_set.h"

/* Whether a pair of the metadata records one (sfti_may_be_alias). */
bool sfti_set_is_alias(const sft_set *set, sft_pair pair);
/* The name of the tensor that a name is an alias of; data NULL: it is none. */
sft_span sfti_set_alias_of(const sft_set *set, sft_span name);

#endif
