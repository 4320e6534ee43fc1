/* New segments of a manifest, from shards to files. */
#ifndef SFTI_DATASET_SEGMENTS_H
#define SFTI_DATASET_SEGMENTS_H

#include "dataset/read/segment.h"

/* Zeroed except alloc, commit and attempt. */
typedef struct sfti_ds_segments {
    sft_allocator alloc;
    const char *commit;
    const char *attempt; /* a new UUID: the files are this writer's, which may remove them */
    size_t count;
    sfti_ds_segment *segment;
    sft_buffer *bytes; /* of each */
} sfti_ds_segments;

/* How many of the old segments, which come first, stay when `fresh` shards follow them: those
 * before the first that has fewer shards than all after it. So each shard that is written again
 * is in a segment at least twice as large as before, which happens log2(SFTI_SEGMENT_SHARDS) times
 * at most, and the segments that are not full are as few. A full segment always stays. */
size_t sfti_ds_segments_keep(const sfti_ds_segment *old, size_t count, uint64_t fresh);
/* Make the segments of these shards, which are in the order of samples. */
sft_code sfti_ds_segments_make(sfti_ds_segments *segments, const sfti_ds_shard *shards,
                               size_t count, sfti_arena *arena, sft_error *err);
/* Write them under their names; folder: of the job, "" where names cannot be moved. */
sft_code sfti_ds_segments_put(const sfti_ds_segments *segments, const sft_storage *storage,
                              const char *folder, sft_error *err);
/* Remove them again, as far as possible. */
void sfti_ds_segments_remove(const sfti_ds_segments *segments, const sft_storage *storage);
void sfti_ds_segments_free(sfti_ds_segments *segments);

#endif
