/* Which stale digests (keys/digest_keys.h) sft_conversion_save and _save_set leave out, for those
 * who tell. */
#ifndef SFTI_CONVERT_DROPPED_H
#define SFTI_CONVERT_DROPPED_H

#include "safetensors_convert.h"

unsigned sfti_conversion_dropped(const sft_conversion *conversion);

#endif
