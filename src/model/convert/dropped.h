/* Metadata that sft_conversion_save and _save_set write, and which stale digests
 * (keys/digest_keys.h) they leave out, for those who tell. */
#ifndef SFTI_CONVERT_DROPPED_H
#define SFTI_CONVERT_DROPPED_H

#include "safetensors_convert.h"

unsigned sfti_conversion_dropped(const sft_conversion *conversion);
/* Their number, and pair i; conversion is a sft_conversion. */
size_t sfti_conversion_pairs(const sft_conversion *conversion);
sft_pair sfti_conversion_pair(const void *conversion, size_t i);

#endif
