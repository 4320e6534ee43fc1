/* Replaces one manifest by another, if it is still the one that was read. */
#ifndef SFTI_DATASET_SWAP_H
#define SFTI_DATASET_SWAP_H

#include "dataset/read/manifest.h"
#include "dataset/read/segment.h"

/* What keeps other commits out between reading a manifest and replacing it. */
typedef enum sfti_ds_guard {
    SFTI_GUARD_NOTHING, /* the caller guarantees a single writer */
    SFTI_GUARD_LOCK,
    SFTI_GUARD_NUMBER, /* numbered commit files */
    SFTI_GUARD_PUT_IF
} sfti_ds_guard;

typedef struct sfti_ds_swap {
    const sft_storage *storage;
    sft_allocator alloc;
    bool single, locked;
    sfti_ds_guard guard;
    char tag[SFT_STORED_TAG]; /* PUT_IF: the state that was read */
    char file[SFTI_COMMIT_FILE_NAME]; /* NUMBER */
    /* set by the caller before the claim */
    sft_span old; /* the manifest that was read; data NULL: none */
    uint64_t old_version;
    sft_span text;      /* of the new one */
    const char *commit; /* its commit */
    const char *shard;  /* name of one of its new shards, or NULL */
    const char *folder; /* of the job; "" where names cannot be moved */
    const char *history; /* the old manifest is kept there as a version; NULL: it is not */
    bool first;          /* as the first one of a new history */
} sfti_ds_swap;

typedef enum sfti_ds_outcome {
    SFTI_SWAP_FAILED, /* the old manifest, or another commit's, is in force */
    SFTI_SWAP_DONE,
    SFTI_SWAP_UNKNOWN
} sfti_ds_outcome;

/* SFT_DATASET_UNGUARDED if the storage cannot keep commits apart: the check before anything is
 * written. */
sft_code sfti_ds_guard_check(const sft_storage *storage, bool single, sft_error *err);
/* What the manifest of a commit after `old` says of the commit, its time and history, and what the
 * swap does about it. keeps: the old version stays readable. */
void sfti_ds_swap_begin(sfti_ds_swap *swap, const sfti_ds_manifest *old, bool keeps,
                        const char *commit, sfti_ds_manifest *next);
/* Take the lock, or choose another guard. To be called before the manifest is read. */
sft_code sfti_ds_guard_take(sfti_ds_swap *swap, uint64_t wait_ms, sft_error *err);
/* With the manifest that was read then (NULL: none): with a lock, whether other writers use commit
 * files. A manifest of segments says it; else the folder is listed. */
sft_code sfti_ds_guard_settle(sfti_ds_swap *swap, const sfti_ds_manifest *manifest,
                              sft_error *err);
void sfti_ds_guard_drop(sfti_ds_swap *swap);
/* Read the manifest again: SFT_DATASET_CHANGED if it is not the old one. NUMBER: and make the
 * commit file, which is the commit point. *outcome as for sfti_ds_swap_run. */
sft_code sfti_ds_swap_claim(sfti_ds_swap *swap, sfti_ds_outcome *outcome, sft_error *err);

/* What a commit does around the replacement of the manifest. */
typedef struct sfti_ds_steps {
    void *ctx;
    /* Between claim and replacement; NULL: nothing. committed: the claim was the commit point, and
     * a failure is only a warning. */
    sft_code (*before)(void *ctx, bool committed, sft_error *err);
    void (*after)(void *ctx); /* after the replacement: clean up, nothing fails */
    sft_warn_fn warn;         /* may be NULL */
    void *warn_ctx;
} sfti_ds_steps;

/* Claim, before, replace, after. SFT_OK once it is published, whatever fails then. Otherwise
 * *outcome says whether nothing was published, or that it is unknown. */
sft_code sfti_ds_swap_run(sfti_ds_swap *swap, const sfti_ds_steps *steps,
                          sfti_ds_outcome *outcome, sft_error *err);
/* What is in force now. */
sfti_ds_outcome sfti_ds_swap_check(const sfti_ds_swap *swap, sft_code failed);
/* Whether a commit that failed before its commit point, and had been tried so many times before, is
 * worth another try: another one came first, and `old` is in force no more. Waits before that. */
bool sfti_ds_swap_again(const sfti_ds_swap *swap, sft_code failed, sft_span old, unsigned tried);
/* Whether no other commit has followed: then an index that is there is not another's. */
bool sfti_ds_swap_is_last(const sfti_ds_swap *swap);

/* ── segments.c: new segments of a manifest, from shards to files ── */

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
