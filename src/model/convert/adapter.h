/* What a conversion asks of the label: whether a model is an adapter, as info calls it. */
#ifndef SFTI_CONVERT_ADAPTER_H
#define SFTI_CONVERT_ADAPTER_H

#include "safetensors_set.h"

/* The answer is of src/label/, or NULL where the library was built without (src/without/label.c):
 * then every model is treated as one. */
typedef sft_code sfti_adapter_test(const sft_set *set, const sft_allocator *alloc,
                                   bool *is_adapter, sft_error *err);
extern sfti_adapter_test *const sfti_hook_adapter;

#endif
