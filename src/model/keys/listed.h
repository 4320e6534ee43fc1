/* torchao's metadata: for each tensor that it rebuilds a key, whose value is an object that names
 * its class, and a list of those keys. */
#ifndef SFTI_LISTED_H
#define SFTI_LISTED_H

#include "base/mem.h"
#include "safetensors.h"

#define SFTI_LISTED_KEY "tensor_names"

/* Whether a value is an object that names a class. */
bool sfti_names_class(sft_span value);
/* The lists of several files as one that has each name once, in their order; *out has data NULL if
 * there are none, or one is no list of texts. False when out of memory. */
bool sfti_lists_joined(const sft_span *lists, size_t count, sfti_arena *arena, sft_span *out);

#endif
