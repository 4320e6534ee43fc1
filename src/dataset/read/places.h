/* Places: where columns are that a shard lacks. The one place where that is known: whoever reads,
 * compares, merges or rewrites columns asks it.
 *
 * A column that is added to shards is in files beside them, of as many rows; one that rows lacked
 * when they were appended is nowhere, and null there. All places of a version are one safetensors
 * file, named by its SHA-256 (SFTI_PLACES_FILE), which never changes:
 *
 *   bytes    U64 [places]: size of the file; 0 of nowhere
 *   sha256   U8 [places, 32]: its digest; zeros of nowhere
 *   names    U8 [bytes]: of each the shard, the column and the file (nowhere: empty), ascending by
 *            shard and column, each with a NUL after it
 *
 * Its metadata is that of a segment, with mode "columns". What it says comes before what a shard
 * has. In batch mode only. */
#ifndef SFTI_DATASET_PLACES_H
#define SFTI_DATASET_PLACES_H

#include "dataset/read/manifest.h"

#include <string.h>

#define SFTI_PLACES_DIGEST 32 /* bytes of a SHA-256 */

/* Those of a shard, by column; *count may be 0. */
const sfti_ds_place *sfti_ds_places_of(const sfti_ds_places *places, const char *shard,
                                       size_t *count);
/* NULL: the column is in the shard, or places were not loaded. */
const sfti_ds_place *sfti_ds_place_find(const sfti_ds_places *places, const char *shard,
                                        sft_span column);

/* Whether a column is in this file. */
static inline bool sfti_ds_place_is(const sfti_ds_place *place, const char *file) {
    return place->file && strcmp(place->file, file) == 0;
}
/* Whether place i of a shard has a file that none of those before it has. */
bool sfti_ds_place_first(const sfti_ds_place *of, size_t i);

/* Read the file that the manifest names, if it names one. SFT_DATASET_SHARD: it is missing, not
 * that file, or no places. */
sft_code sfti_ds_places_read(const sft_storage *storage, sfti_arena *arena, sfti_ds_places *places,
                             sft_error *err);
/* SFT_DATASET_SHARD unless a place can be one of the manifest's columns. */
sft_code sfti_ds_place_check(const sfti_ds_place *place, const sfti_ds_manifest *m,
                             sft_error *err);
/* Read them, and compare them with the manifest's shards, which are there. */
sft_code sfti_ds_places_load(const sft_storage *storage, sfti_arena *arena, sfti_ds_manifest *m,
                             sft_error *err);
/* dataset.c: open a column's file. Errors as sft_dataset_shard_open. */
sft_code sfti_ds_place_open(const sft_storage *storage, const sfti_ds_manifest *m,
                            const sfti_ds_place *place, const sft_open_options *options,
                            sft_file **out, sft_error *err);

#endif
