/* Blocks of another format, whose values are computed while they are read, and the dtype
 * that they become. */
#ifndef SFTI_IMPORT_BLOCKS_H
#define SFTI_IMPORT_BLOCKS_H

#include "safetensors_import.h"

/* Whether the values of tensor i of the import are computed from codes: of blocks, or as
 * SFT_IMPORT_SPECIAL_VALUES says. */
bool sfti_import_is_computed(const sft_import *import, size_t i);
/* sft_import_note of the latter. */
#define SFTI_NOTE_VALUES "dequantised"
/* Values of blocks become F16, BF16 or F32 rather than options.dequantised; a tensor that is not
 * stored in blocks stays as it is. Before sft_import_set. */
sft_code sfti_import_blocks_to(sft_import *import, size_t i, sft_dtype to, sft_error *err);

#endif
