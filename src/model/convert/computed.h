/* Conversions of models in which the reader of another format has computed values of codes. */
#ifndef SFTI_CONVERT_COMPUTED_H
#define SFTI_CONVERT_COMPUTED_H

#include "safetensors_convert.h"

/* sft_conversion_new. computed: of each tensor of the set, whether its elements are such values,
 * which options.dequantize casts as it does those that it computes itself; the array
 * outlives the conversion. NULL: of none. */
sft_code sfti_conversion_new(const sft_set *set, sft_dtype to, const sft_convert_options *options,
                             const bool *computed, sft_conversion **out, sft_error *err);

#endif
