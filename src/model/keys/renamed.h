/* Metadata that name tensors of their model, and what they become if tensors get other names: names
 * of one tensor (aliases), diffusers' configuration of adapters, declarations of quantised layers,
 * torchao's classes, a quantization_config.
 * What cannot follow the new names is refused: it would be read as if it were not there. */
#ifndef SFTI_RENAMED_H
#define SFTI_RENAMED_H

#include "base/mem.h"
#include "base/names.h"
#include "safetensors.h"

typedef struct sfti_renamed {
    sfti_arena *arena;
    const sft_pair *names; /* of all tensors of the model: old and new */
    const uint32_t *old, *now; /* their numbers by old names, by new ones */
    size_t count;
    const sft_pair *aliases; /* that get other names: old and new */
    const uint32_t *old_aliases;
    size_t alias_count;
    uint64_t *steps; /* tensors looked at for names that metadata tell */
} sfti_renamed;

/* All is used as long as *out. False when out of memory. */
bool sfti_renamed_begin(sfti_renamed *out, const sft_pair *names, size_t count,
                        const sft_pair *aliases, size_t alias_count, sfti_arena *arena);
/* What a pair of the metadata becomes; *out is the pair itself if it stays, and its key has data
 * NULL if it goes. SFT_BAD_ARGUMENT names a tensor whose new name a declaration cannot follow.
 * SFT_TENSOR_DUPLICATE: an alias would have the name of another tensor. */
sft_code sfti_renamed_pair(const sfti_renamed *renamed, sft_pair pair, sft_pair *out,
                           sft_error *err);

#endif
