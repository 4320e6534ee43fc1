/* What the parts of a dataset say to one another. */
#ifndef SFTI_DATASET_H
#define SFTI_DATASET_H

#include "base/mem.h"
#include "base/vtable.h"
#include "safetensors_dataset.h"

#define SFTI_DATASET_MANIFEST "dataset_manifest.json"
#define SFTI_DATASET_GENERATOR "libsafetensors " SFT_VERSION_STRING
#define SFTI_DATASET_INDEX "_tensor_index.parquet"
/* Key of __metadata__ by which a shard is known to be ours; its value is "1". */
#define SFTI_DATASET_MARK "libsafetensors.dataset"
#define SFTI_DATASET_NAME 96 /* room for a shard's name, its NUL counted */
#define SFTI_SCHEMA_MOST 10000 /* keys that the manifest's schema lists */

/* ── options.c ── */

typedef enum sfti_tail { SFTI_TAIL_WRITE, SFTI_TAIL_DROP, SFTI_TAIL_PAD } sfti_tail;

/* A column's wish: its dtype, or its shape per sample. */
typedef struct sfti_ds_wish {
    sft_span column; /* empty: of all columns */
    bool has_dtype, has_shape;
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
} sfti_ds_wish;

struct sft_dataset_options {
    sft_allocator alloc;
    sfti_arena arena;
    sft_dataset_mode mode;
    uint64_t batch_size;
    sft_span name_col, separator;
    const sft_span *columns; /* as listed; none: all */
    size_t column_count;
    const sfti_ds_wish *wishes;
    size_t wish_count;
    bool last_win, index, truncate, single;
    uint64_t shard_bytes; /* target, of data and header */
    sfti_tail tail;
    uint64_t keep_old_s;
};

/* ── columns.c: options and an Arrow schema, settled ── */

/* What an Arrow type gives for each row. */
typedef enum sfti_ds_form {
    SFTI_FORM_PLAIN,  /* one number or boolean */
    SFTI_FORM_ARRAY,  /* a list of them, nested or not */
    SFTI_FORM_TENSOR  /* struct<data, shape, dtype> */
} sfti_ds_form;

typedef struct sfti_ds_column {
    sft_span name;
    size_t child; /* of the batch's struct */
    sfti_ds_form form;
    bool has_dtype, has_shape;
    sft_dtype from; /* elements as Arrow has them; not of TENSOR */
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape; /* per sample */
} sfti_ds_column;

typedef struct sfti_ds_columns {
    sft_dataset_mode mode;
    size_t count;
    sfti_ds_column *column; /* in the order of the batch's struct */
    size_t name_child;      /* KV: the key column */
} sfti_ds_columns;

/* Errors as sft_dataset_check_schema. All from the arena. */
sft_code sfti_ds_columns_settle(const sft_dataset_options *options,
                                const struct ArrowSchema *schema, sfti_arena *arena,
                                sfti_ds_columns *out, sft_error *err);

/* ── names.c ── */

/* "part-00003-0001-<uuid>.safetensors"; uuid: 36 characters. */
void sfti_ds_shard_name(uint64_t file, uint64_t shard, const char *uuid,
                        char out[SFTI_DATASET_NAME]);
/* Whether a name is of that pattern, and its numbers. */
bool sfti_ds_shard_parse(sft_span name, uint64_t *file, uint64_t *shard);
/* "_job-<uuid>" */
bool sfti_ds_is_job(sft_span name);
/* The index of a job's dataset, moved aside: "_job-<uuid>-index" */
#define SFTI_JOB_INDEX "-index"
/* The index that a commit replaces, in its job's folder until the commit is done. */
#define SFTI_JOB_REPLACED "replaced-index"
/* Random uuid of version 4, with NUL. */
sft_code sfti_ds_uuid(char out[37], sft_error *err);

/* Of the text that sft_commit_job gives: uuid and first number of files. */
typedef struct sfti_ds_job {
    char uuid[37];
    uint64_t first;
} sfti_ds_job;
sft_code sfti_ds_job_parse(sft_span text, sfti_ds_job *out, sft_error *err);

/* ── receipt.c ── */

/* One shard that a task wrote; or, of a task that wrote none, what it dropped: then `name` and
 * `stored` are NULL. */
typedef struct sfti_ds_receipt {
    sft_span name;   /* final name, bare */
    sft_span stored; /* where it is now: "_job-<uuid>/" and name, or name */
    uint64_t partition, shard;
    uint64_t bytes, header_bytes, samples, valid_samples, tensors;
    uint64_t dropped; /* rows of the task that its tail dropped; in its last receipt */
    char sha256[65];
    size_t column_count;
    const sfti_ds_column *columns; /* name, dtype, shape as far as they are one for all rows */
} sfti_ds_receipt;

sft_code sfti_ds_receipt_write(const sfti_ds_receipt *receipt, sft_span job,
                               sft_buffer *out, sft_error *err); /* one object, appended */
/* An array of them; all of the given job, else SFT_DATASET_RECEIPT. */
sft_code sfti_ds_receipts_read(sft_span text, sft_span job, sfti_arena *arena,
                               sfti_ds_receipt **out, size_t *count, sft_error *err);

/* ── manifest.c ── */

typedef struct sfti_ds_shard {
    sft_dataset_shard facts; /* strings with NUL, from the arena */
    bool known;              /* the manifest tells more than the connector's three fields */
} sfti_ds_shard;

typedef struct sfti_ds_entry { /* one key of `schema` */
    sft_span key;
    sft_span dtype; /* as spelled: a connector may know others */
    uint32_t rank;
    const uint64_t *shape;
} sfti_ds_entry;

typedef struct sfti_ds_manifest {
    sft_span text;
    size_t ahead; /* commits that SFTI_DATASET_MANIFEST does not have yet */
    bool ours; /* has a generator that is libsafetensors */
    sft_span generator;
    char commit[37]; /* empty when there is none */
    char row_order[37]; /* after compactions: the commit whose rows these are, in its order */
    uint64_t version;
    sft_dataset_mode mode; /* 0: not told */
    uint64_t batch_size;
    sft_span name_col, separator, tail;
    sft_span index; /* file name; data NULL: null or absent */
    uint64_t total_samples, total_valid, total_bytes;
    uint64_t keep_until; /* seconds since 1970: gc leaves replaced shards till then; 0: none */
    uint64_t dropped;    /* rows that tails were, with tail_strategy=drop */
    size_t shard_count;
    sfti_ds_shard *shards; /* sorted by name */
    bool has_schema;
    size_t entry_count;
    sfti_ds_entry *entries;
    size_t column_count;
    sfti_ds_column *columns; /* name, has_dtype, dtype, has_shape, rank, shape */
} sfti_ds_manifest;

/* SFT_MANIFEST_TYPE names the field; a shard_path with a separator or ".." is refused. */
sft_code sfti_ds_manifest_parse(sft_span text, sfti_arena *arena, sfti_ds_manifest *out,
                                sft_error *err);
sft_code sfti_ds_manifest_write(const sfti_ds_manifest *manifest, sft_sink *sink,
                                sft_error *err);

/* Whether a shard of this name is among the manifest's, by halving. */
bool sfti_ds_manifest_names(const sfti_ds_manifest *manifest, const char *name);
/* For sfti_sort over an array of sfti_ds_shard. */
int sfti_ds_by_name(const void *shards, uint32_t a, uint32_t b);
int sfti_ds_by_sample(const void *shards, uint32_t a, uint32_t b);

/* ── dataset.c ── */

const sfti_ds_manifest *sfti_ds_manifest_of(const sft_dataset *dataset);
const sft_storage *sfti_ds_storage_of(const sft_dataset *dataset);

/* ── store.c: small conveniences over sft_storage ── */

#define sfti_can(storage, member) SFTI_CAN(storage, sft_storage_vtable, member)
/* A member that is there. */
#define sfti_call(storage, member, ...) \
    ((storage)->vtable->member((storage)->ctx, __VA_ARGS__))

/* Whether what every storage must have is there; NULL has nothing. First of all public calls. */
sft_code sfti_ds_storage_check(const sft_storage *storage, sft_error *err);

sft_code sfti_ds_read_all(const sft_storage *storage, const char *name, uint64_t most,
                          sfti_arena *arena, sft_span *out, sft_error *err);
/* Whole, in one step, durable. */
sft_code sfti_ds_put(const sft_storage *storage, const char *name, sft_span bytes,
                     sft_error *err);
/* What its first eight bytes say. */
sft_code sfti_ds_header_bytes(const sft_source *source, uint64_t *out, sft_error *err);
sft_code sfti_ds_open_shard(const sft_storage *storage, const char *name,
                            const sft_open_options *options, sft_file **out, sft_error *err);

/* ── manifest_latest.c ── */

#define SFTI_MANIFEST_MOST (UINT64_C(1) << 31) /* bytes; a shard takes about 200 */
#define SFTI_COMMIT_FILE ".dataset_manifest.commit-"
#define SFTI_COMMIT_FILE_NAME 64
#define SFTI_COMMIT_FILE_S 3600 /* a commit file stays at least this long */

/* The manifest that is in force. SFT_MANIFEST_MISSING. */
sft_code sfti_ds_manifest_read(const sft_storage *storage, sfti_arena *arena,
                               sfti_ds_manifest *out, sft_error *err);
/* The same; *seen: whether the manifest of this commit is among those that were followed. */
sft_code sfti_ds_manifest_seek(const sft_storage *storage, sfti_arena *arena,
                               const char *commit, sfti_ds_manifest *out, bool *seen,
                               sft_error *err);
/* Of one commit file. SFT_NOT_FOUND. */
sft_code sfti_ds_commit_read(const sft_storage *storage, const char *file, sfti_arena *arena,
                             sfti_ds_manifest *out, sft_error *err);
/* Name of the file by which one commit alone can follow a manifest of these bytes (data NULL:
 * none) and version. */
sft_code sfti_ds_commit_file(sft_span text, uint64_t version, const sft_allocator *alloc,
                             char out[SFTI_COMMIT_FILE_NAME], sft_error *err);
/* Whether a name is one of those, and its number. */
bool sfti_ds_is_commit_file(sft_span name, uint64_t *number);

/* ── manifest_swap.c: one manifest in place of another, on condition ── */

/* What keeps another commit from coming between reading a manifest and replacing it. */
typedef enum sfti_ds_guard {
    SFTI_GUARD_NOTHING, /* the caller vouches that there is one writer */
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
    /* given by the caller before the claim */
    sft_span old; /* bytes of the manifest that was read; data NULL: there was none */
    uint64_t old_version;
    sft_span text;      /* of the new one */
    const char *commit; /* its commit */
    const char *shard;  /* name of one of its new shards, or NULL */
    const char *folder; /* of the job; "" where nothing is moved */
} sfti_ds_swap;

typedef enum sfti_ds_outcome {
    SFTI_SWAP_FAILED, /* the old manifest, or another's */
    SFTI_SWAP_DONE,
    SFTI_SWAP_UNKNOWN
} sfti_ds_outcome;

/* Whether the storage can keep commits apart at all: SFT_DATASET_UNGUARDED, before anything is
 * written. */
sft_code sfti_ds_guard_check(const sft_storage *storage, bool single, sft_error *err);
/* Before the manifest is read: take the lock, or see what there is instead. */
sft_code sfti_ds_guard_take(sfti_ds_swap *swap, uint64_t wait_ms, sft_error *err);
void sfti_ds_guard_drop(sfti_ds_swap *swap);
/* Read the manifest again: SFT_DATASET_CHANGED if it is not the old one. NUMBER: and make the
 * commit file, which is the commit point. *outcome as for the put. */
sft_code sfti_ds_swap_claim(sfti_ds_swap *swap, sfti_ds_outcome *outcome, sft_error *err);
/* Put the new manifest. A put that fails may have been done all the same: see *outcome. */
sft_code sfti_ds_swap_put(sfti_ds_swap *swap, sfti_ds_outcome *outcome, sft_error *err);
/* What is in force now. */
sfti_ds_outcome sfti_ds_swap_look(const sfti_ds_swap *swap, sft_code failed);
/* Whether no other commit has followed: then an index that is there is not another's. */
bool sfti_ds_swap_last(const sfti_ds_swap *swap);
/* Remove commit files that are out of date. */
sft_code sfti_ds_swap_clean(const sfti_ds_swap *swap, uint64_t version, sft_error *err);

/* ── job_folder.c ── */

/* Remove what is ours in a job's folder, then the folder unless something is left: *kept counts
 * the others' files. NULL: not asked. */
sft_code sfti_ds_job_remove(const sft_storage *storage, const char *folder, uint64_t *kept,
                            sft_error *err);
/* Whether a file in such a folder is ours. */
bool sfti_ds_job_owns(const char *folder, const char *name);

/* ── index_look.c: what an index tells of itself ── */

#define SFTI_INDEX_COLUMNS 15u /* tensor_key, file_name, shape, dtype */

typedef struct sfti_ds_index {
    bool has_rows;
    uint64_t rows;
    unsigned columns;     /* bits: those of the four that are there */
    sft_span commit;      /* data NULL: it tells none */
    sft_span first, last; /* least and greatest file_name; data NULL: not told */
} sfti_ds_index;

/* Of a Parquet file, by its footer. SFT_DATASET_SHARD when it is none. Texts from the arena. */
sft_code sfti_ds_index_look(const sft_storage *storage, const char *name, sfti_arena *arena,
                            sfti_ds_index *out, sft_error *err);

/* ── merge.c: all headers as one sorted list ── */

typedef struct sfti_ds_row {
    sft_span key;     /* valid until the next row */
    uint32_t source;  /* number of the shard given */
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
    uint64_t begin, end; /* absolute in the file */
    bool shadowed;       /* a later source, in the order given, has the same key */
    uint32_t winner;     /* the last source with this key */
} sfti_ds_row;

typedef struct sfti_ds_source {
    const char *stored; /* name in the storage */
    const char *name;   /* final name, by which rows of one key are sorted */
} sfti_ds_source;

typedef struct sfti_ds_merge sfti_ds_merge;

/* Sources in ascending order of precedence. Reads headers piece by piece: a shard whose keys
 * stand in ascending order within each dtype (as ours do) costs a buffer of 64 KiB for each
 * such stretch; another one its header in memory. Rows by key, then name. */
sft_code sfti_ds_merge_open(const sft_storage *storage, const sfti_ds_source *sources,
                            size_t count, const sft_allocator *alloc, const sft_job *job,
                            sfti_ds_merge **out, sft_error *err);
/* *row NULL at the end. */
sft_code sfti_ds_merge_next(sfti_ds_merge *merge, const sfti_ds_row **row, sft_error *err);
void sfti_ds_merge_close(sfti_ds_merge *merge);

#endif
