/* The file of masks of a new version (read/masks.h). */
#ifndef SFTI_DATASET_MASKS_MAKE_H
#define SFTI_DATASET_MASKS_MAKE_H

#include "dataset/read/masks.h"

/* Make the file of these masks, each of which has a bit set, by the names of their shards. Without
 * any, out is what no deletion is. commit: of this attempt alone. `bytes` is the caller's, with an
 * allocator, and filled anew. */
sft_code sfti_ds_masks_make(const sfti_ds_mask *mask, size_t count, const char *commit,
                            const sft_allocator *alloc, sft_buffer *bytes, sfti_ds_masks *out,
                            sft_error *err);
/* Write it under its name; nothing where no row is deleted. */
sft_code sfti_ds_masks_put(const sfti_ds_masks *masks, const sft_storage *storage,
                           const sft_buffer *bytes, sft_error *err);
/* Remove it again, as far as possible. */
void sfti_ds_masks_remove(const sfti_ds_masks *masks, const sft_storage *storage);

#endif
