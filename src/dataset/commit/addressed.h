/* Files of a new version that its manifest names by their SHA-256: masks (read/masks.h) and places
 * (read/places.h) are made and put. */
#ifndef SFTI_DATASET_ADDRESSED_H
#define SFTI_DATASET_ADDRESSED_H

#include "dataset/read/masks.h"
#include "dataset/read/places.h"

/* Make the file of these masks, in any order, each of which has a bit set. Without
 * any, out is what no deletion is. commit: of this attempt alone. `bytes` is the caller's, with an
 * allocator, and filled anew. */
sft_code sfti_ds_masks_make(const sfti_ds_mask *mask, size_t count, const char *commit,
                            const sft_allocator *alloc, sft_buffer *bytes, sfti_ds_masks *out,
                            sft_error *err);
/* The same with places, in any order. */
sft_code sfti_ds_places_make(const sfti_ds_place *place, size_t count, const char *commit,
                             const sft_allocator *alloc, sft_buffer *bytes, sfti_ds_places *out,
                             sft_error *err);

/* Write a file under the name that it has by its kind (SFTI_MASKS_FILE, ...) and digest; nothing
 * where bytes is empty. */
sft_code sfti_ds_addressed_put(const sft_storage *storage, const char *kind, const char *sha256,
                               const sft_buffer *bytes, sft_error *err);
/* Remove it again, as far as possible, where bytes is not empty. */
void sfti_ds_addressed_remove(const sft_storage *storage, const char *kind, const char *sha256,
                              const sft_buffer *bytes);

/* Remove the masks and the places of a manifest that was replaced by another, unless that has them,
 * too. */
void sfti_ds_removal_addressed(sfti_ds_removal *r, const sfti_ds_manifest *old,
                               const sfti_ds_manifest *next);
/* Remove the files of its columns of a shard. */
void sfti_ds_removal_columns(sfti_ds_removal *r, const sfti_ds_manifest *old, const char *shard);

#endif
