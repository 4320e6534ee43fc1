/* Segments of a manifest: files that list shards and never change.
 *
 * A segment is a safetensors file named by its SHA-256 (SFTI_SEGMENT_FILE), with a tensor for each
 * fact of its shards, in the order of samples:
 *
 *   bytes, samples, valid_samples, first_sample, tensors, shadowed   U64 [shards]
 *   sha256   U8 [shards, 32]; zeros: unknown
 *   names    U8 [bytes], each with a NUL after it
 *
 * Its metadata has SFTI_DATASET_MARK, mode "segment", the commit that wrote it and a UUID of the
 * attempt: no two writers write the same file, even of one job, so each may remove its own.
 * SFTI_DATASET_MANIFEST names the segments with their digests; a
 * segment names no other. */
#ifndef SFTI_DATASET_SEGMENT_H
#define SFTI_DATASET_SEGMENT_H

#include "dataset/read/manifest.h"

#define SFTI_SEGMENT_SHARDS 65536 /* at most, in one segment */
#define SFTI_SEGMENT_NAME 1024    /* bytes of a shard's name, at most */
#define SFTI_SEGMENT_DIGEST 32
/* Bytes of a segment, at most. */
#define SFTI_SEGMENT_MOST (UINT64_C(65536) * (6 * 8 + SFTI_SEGMENT_DIGEST + 1025 + 1))

typedef struct sfti_segment_column {
    const char *name;
    size_t offset; /* of the fact in sft_dataset_shard */
} sfti_segment_column;
#define SFTI_SEGMENT_NUMBERS 6
extern const sfti_segment_column sfti_segment_numbers[SFTI_SEGMENT_NUMBERS];

/* The shards of a segment, as many as it says. Texts are from `texts`, the array from `array`.
 * SFT_DATASET_SHARD: it is missing, or not the file that the manifest names. */
sft_code sfti_ds_segment_read(const sft_storage *storage, const sfti_ds_segment *segment,
                              sfti_arena *texts, sfti_arena *array, sfti_ds_shard **out,
                              sft_error *err);
/* Give a manifest the shards of its segments and the masks of its shards, if it has any. */
sft_code sfti_ds_manifest_load(const sft_storage *storage, sfti_arena *arena,
                               sfti_ds_manifest *m, sft_error *err);

#endif
