/* Masks: which rows of a dataset are deleted. The one place where that is known: whoever reads,
 * counts, compares, merges or rewrites shards asks it.
 *
 * All masks of a version are one safetensors file, named by its SHA-256 (SFTI_MASKS_FILE), which
 * never changes:
 *
 *   bits, deleted   U64 [shards]: length of each mask, and how many of its bits are set
 *   masks   U8 [bytes]: each mask from a whole byte on, the lowest bit first; 1: deleted
 *   names   U8 [bytes]: of the shards, ascending, each with a NUL after it
 *
 * A bit is a row, with those of padding, which are never set; in KV mode a tensor, by name. Its
 * metadata is that of a segment, with mode "masks". Only tensors that no later shard has again are
 * deleted; if one has it again later, the tensor counts as deleted, not as shadowed. So a row of
 * that name may be appended, and what it had replaced does not come back. */
#ifndef SFTI_DATASET_MASKS_H
#define SFTI_DATASET_MASKS_H

#include "dataset/read/manifest.h"

/* NULL: none of the shard's rows is deleted, or masks were not loaded. */
const sfti_ds_mask *sfti_ds_mask_find(const sfti_ds_masks *masks, const char *shard);
/* mask may be NULL. */
static inline bool sfti_ds_mask_has(const sfti_ds_mask *mask, uint64_t bit) {
    return mask && bit < mask->bits && (mask->at[bit / 8] >> bit % 8 & 1);
}
/* The first bit from `bit` on that is not set, at most `end`. mask may be NULL. */
uint64_t sfti_ds_mask_next(const sfti_ds_mask *mask, uint64_t bit, uint64_t end);
/* The first run of bits from `at` on that are not set: *begin, and its end, at most `end`.
 * mask may be NULL. */
uint64_t sfti_ds_mask_run(const sfti_ds_mask *mask, uint64_t at, uint64_t end, uint64_t *begin);
/* Bytes of a mask. */
static inline uint64_t sfti_ds_mask_bytes(uint64_t bits) { return bits / 8 + (bits % 8 != 0); }

/* Read the file that the manifest names, if it names one. SFT_DATASET_SHARD: it is missing, not
 * that file, or no masks. */
sft_code sfti_ds_masks_read(const sft_storage *storage, sfti_arena *arena, sfti_ds_masks *masks,
                            sft_error *err);
/* SFT_DATASET_SHARD unless a mask can be of this shard. */
sft_code sfti_ds_mask_check(const sfti_ds_mask *mask, const sft_dataset_shard *shard,
                            sft_dataset_mode mode, sft_error *err);
/* Read them, and tell each of the manifest's shards, which are there, how many of its rows are
 * deleted. */
sft_code sfti_ds_masks_load(const sft_storage *storage, sfti_arena *arena, sfti_ds_manifest *m,
                            sft_error *err);

#endif
