/* All headers of a dataset as one sorted list. */
#ifndef SFTI_DATASET_MERGE_H
#define SFTI_DATASET_MERGE_H

#include "dataset/read/masks.h"

typedef struct sfti_ds_row {
    sft_span key;     /* valid until the next row */
    uint32_t source;  /* index into the sources */
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
    uint64_t begin, end; /* absolute in the file */
    uint64_t number;     /* of the source's tensors, by name */
    bool deleted;        /* by the source's mask */
    bool shadowed;       /* a later source has the same key, and it is not deleted */
    uint32_t winner;     /* the last source with this key */
} sfti_ds_row;

typedef struct sfti_ds_source {
    const char *stored; /* name in the storage */
    const char *name;   /* final name; sorts rows of one key */
    const sfti_ds_mask *mask; /* NULL: none of its tensors is deleted */
} sfti_ds_source;

typedef struct sfti_ds_merge sfti_ds_merge;

/* Sources are in ascending order of precedence; rows come by key, then name. Headers are read in
 * windows: a shard whose keys ascend within each dtype (as ours do) takes 64 KiB for each such run,
 * any other shard its header in memory. open, for the shards, outlives the merge; NULL: the
 * defaults. */
sft_code sfti_ds_merge_open(const sft_storage *storage, const sfti_ds_source *sources,
                            size_t count, const sft_open_options *open,
                            const sft_allocator *alloc, const sft_job *job, sfti_ds_merge **out,
                            sft_error *err);
/* *row NULL at the end. */
sft_code sfti_ds_merge_next(sfti_ds_merge *merge, const sfti_ds_row **row, sft_error *err);
/* Begin again with the first row; headers are not looked at before, as opening does. */
sft_code sfti_ds_merge_rewind(sfti_ds_merge *merge, sft_error *err);
/* The next source that has the key of the row that the last call gave; UINT32_MAX: none. */
uint32_t sfti_ds_merge_after(const sfti_ds_merge *merge, const sfti_ds_row *row);
void sfti_ds_merge_close(sfti_ds_merge *merge);

#endif
