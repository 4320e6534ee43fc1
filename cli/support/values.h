/* Elements as text: what cat --as text and --as json show. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "safetensors.h"

#define CLI_VALUE_SIZE 80

/* Element i of packed little-endian bytes into buffer; returns the length. Floats have the
 * fewest digits that give the same value back. json: NaN and infinities are strings, a
 * complex number is a pair. Elements under 8 bits are packed from
 * the low bits of a byte up. */
size_t cli_value_text(sft_dtype dtype, const void *bytes, uint64_t i, bool json,
                      char buffer[CLI_VALUE_SIZE]);

#endif
