/* The state of a commit, shared by its steps. */
#ifndef SFTI_DATASET_COMMIT_H
#define SFTI_DATASET_COMMIT_H

#include "dataset/commit/addressed.h"
#include "dataset/commit/swap.h"
#include "dataset/read/merge.h"

typedef enum commit_state {
    COMMIT_BEGUN,
    COMMIT_PREPARED,
    COMMIT_REPEATED, /* its batch is in the dataset: nothing is to be published */
    COMMIT_PUBLISHED,
    COMMIT_FAILED, /* nothing was published */
    COMMIT_UNKNOWN /* whether it was published is unknown */
} commit_state;

/* One shard of the new dataset: of the existing one, or of a receipt. */
typedef struct commit_shard {
    const char *stored; /* where it lies now */
    sfti_ds_shard shard;
    const sfti_ds_receipt *receipt; /* NULL: of the existing dataset */
    uint64_t shadowed_before;
} commit_shard;

/* A task that dropped all its rows. */
typedef struct commit_drop {
    struct commit_drop *next;
    uint64_t partition, rows;
} commit_drop;

struct sft_commit {
    sft_allocator alloc;
    const sft_dataset_options *options;
    const sft_storage *storage;
    sft_commit_options how;
    sft_open_options open; /* how.open, taken */
    commit_state state;
    sfti_ds_swap swap;
    /* from the beginning on */
    sfti_arena arena;
    sfti_ds_job job;
    sft_buffer job_text;
    char job_folder[SFTI_JOB_FOLDER]; /* "" where names cannot be moved */
    bool began_with;     /* a manifest was there */
    sft_span began_text;
    uint64_t began_version;
    sfti_ds_columns columns; /* of the schema; count 0 without one */
    sfti_ds_receipt *receipts; /* in the arena */
    size_t receipt_count, receipt_cap;
    commit_drop *drops;
    /* set by each prepare */
    sfti_arena work;
    bool has_base;
    sft_span base_text; /* the manifest in force, damaged or not */
    sfti_ds_manifest base;
    bool extends; /* rows are put behind those of a dataset whose columns are known */
    commit_shard *shards; /* in order of precedence */
    size_t shard_count;
    sfti_ds_source *sources; /* the same, for the merge */
    sfti_ds_merge *merge; /* of them, for the index; NULL: none, or the index has taken it */
    bool indexed, shadowing, wide; /* wide: a dimension needs 64 bits */
    bool apart; /* the existing shards stay in their segments: `shards` has the new ones only */
    size_t keep; /* segments of the base that are also the next manifest's */
    sfti_ds_segments segments; /* the others of the next manifest */
    char attempt[37]; /* of this writer: another one may continue the same job */
    sfti_ds_manifest next;
    sft_buffer places; /* of the next manifest, if they are not the base's */
    sft_buffer text; /* the manifest to be published */
};

/* File numbers of the shards in the folder, named by a manifest or not. */
typedef struct commit_numbers {
    uint64_t first; /* the highest, plus one */
    bool any;
} commit_numbers;

/* agree.c */
sft_code sfti_commit_agree(const sft_commit *c, const sfti_ds_manifest *base,
                           const sfti_ds_column *columns, size_t count, sft_error *err);
/* Columns that rows must fit, as far as the manifest of a dataset tells; in the commit's arena. */
sft_code sfti_commit_known(sft_commit *c, const sfti_ds_manifest *base,
                           const sfti_ds_column **out, size_t *count, sft_error *err);
/* Column of a tensor by its key; NULL when there is none. */
sfti_ds_column *sfti_commit_column(const sft_commit *c, sfti_ds_column *columns, size_t count,
                                   sft_span key);
/* columns.c: the columns of the next manifest, and those that its shards lack. */
sft_code sfti_commit_columns(sft_commit *c, sft_error *err);
/* As sfti_ds_keys_apart, of columns that the commit brings or whose rows it replaces. */
sft_code sfti_commit_keys(const sft_commit *c, const sfti_ds_manifest *base,
                          const sfti_ds_column *columns, size_t count, sft_error *err);
/* Whether the receipts have columns that the base lacks. */
bool sfti_commit_widens(const sft_commit *c);
sft_code sfti_commit_places(sft_commit *c, sft_error *err);
/* check.c */
sft_code sfti_commit_numbers(const sft_commit *c, commit_numbers *out, sft_error *err);
/* The highest file number in the manifest or the folder, plus one. */
sft_code sfti_commit_first(const sft_commit *c, const sfti_ds_manifest *base, uint64_t *first,
                           sft_error *err);
sft_code sfti_commit_gather(sft_commit *c, sft_error *err);
/* manifest.c: shadowed tensors, totals, schema, segments, text. */
sft_code sfti_commit_count(sft_commit *c, const sft_job *job, sft_error *err);
sft_code sfti_commit_render(sft_commit *c, sft_error *err);

#endif
