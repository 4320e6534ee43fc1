/* The manifest: its contents, the one in force, and the index it names. */
#ifndef SFTI_DATASET_MANIFEST_H
#define SFTI_DATASET_MANIFEST_H

#include "dataset/dataset.h"

/* ── manifest_read.c, and ../commit/manifest_write.c ── */

typedef struct sfti_ds_shard {
    sft_dataset_shard facts; /* strings with NUL, from the arena */
    bool known;              /* it has more than the connector's three fields */
    uint32_t segment;        /* of the manifest's: the one that lists it */
} sfti_ds_shard;

/* A file that lists shards (segment.h). Its digest gives its name. */
typedef struct sfti_ds_segment {
    char sha256[65];
    uint64_t bytes, shards;
} sfti_ds_segment;

/* Sums over all shards. */
typedef struct sfti_ds_sums {
    uint64_t shards, bytes;
    uint64_t rows, padding; /* rows: of all shards, with replaced ones and padding */
    uint64_t tensors, shadowed;
    uint64_t largest;   /* rows of the largest shard */
    uint64_t next_file; /* the highest number of a file, plus one */
} sfti_ds_sums;

/* Which rows of a shard are deleted (masks.h). */
typedef struct sfti_ds_mask {
    const char *shard;
    uint64_t bits, deleted;
    const uint8_t *at; /* from the lowest bit on */
} sfti_ds_mask;

/* The file of all masks, as the manifest names it. */
typedef struct sfti_ds_masks {
    char sha256[65]; /* empty: no row is deleted */
    uint64_t bytes, shards;
    uint64_t deleted; /* rows; in KV mode tensors */
    const sfti_ds_mask *mask; /* by the names of shards; NULL until they are loaded */
} sfti_ds_masks;

/* Where a column of a shard is, if not in the shard (places.h). */
typedef sft_dataset_place sfti_ds_place;

/* The file of all places, as the manifest names it. */
typedef struct sfti_ds_places {
    char sha256[65]; /* empty: all columns are in their shards */
    uint64_t bytes, count;
    const sfti_ds_place *place; /* by the names of shards, then of columns; NULL until loaded */
} sfti_ds_places;

/* The last batch of a stream that was committed. */
typedef struct sfti_ds_batch {
    sft_span stream;
    uint64_t number;
} sfti_ds_batch;

typedef struct sfti_ds_manifest {
    sft_span text;
    size_t ahead; /* commits that SFTI_DATASET_MANIFEST is behind */
    bool ours; /* has a generator that is libsafetensors */
    sft_span generator;
    char commit[37]; /* empty when there is none */
    char row_order[37]; /* after compactions: the commit whose row order this is */
    uint64_t version;
    uint64_t committed; /* Unix time, never less than before; 0: unknown */
    char history[37]; /* of the files of versions (versions.c); empty: none are kept */
    sft_dataset_mode mode; /* 0: unknown */
    uint64_t batch_size;
    sft_span name_col, separator, tail;
    sft_span index; /* file name; data NULL: null or absent */
    char index_commit[37]; /* whose it is, if not this commit's */
    char index_sha256[65]; /* or empty: not known */
    uint64_t total_samples, total_valid, total_bytes;
    uint64_t keep_until; /* Unix time until which gc keeps replaced shards, or 0 */
    uint64_t dropped;    /* rows dropped by tail_strategy=drop */
    size_t batch_count;
    sfti_ds_batch *batches;
    sfti_ds_sums sums;
    sfti_ds_masks masks;
    sfti_ds_places places;
    unsigned format; /* major number of format_version, as read */
    bool segmented; /* the shards are in segments */
    bool numbered;  /* segmented: commits are numbered files (commit/swap.c) */
    size_t segment_count;
    const sfti_ds_segment *segments; /* in the order of samples */
    size_t shard_count; /* 0 if they are in segments that were not loaded */
    sfti_ds_shard *shards; /* sorted by name */
    bool has_schema;
    size_t entry_count;
    sfti_ds_entry *entries;
    size_t column_count;
    sfti_ds_column *columns; /* name, has_dtype, dtype, has_shape, rank, shape */
} sfti_ds_manifest;

/* SFT_MANIFEST_TYPE names the field; a shard_path with a separator or ".." is an error. Does not
 * load segments. */
sft_code sfti_ds_manifest_parse(sft_span text, sfti_arena *arena, sfti_ds_manifest *out,
                                sft_error *err);
/* The text replaces what is in the buffer; freed on failure. */
sft_code sfti_ds_manifest_write(const sfti_ds_manifest *manifest, sft_buffer *text,
                                sft_error *err);

/* Give the manifest these shards, sorted by name: the array itself if it is sorted. */
sft_code sfti_ds_manifest_sort(sfti_ds_manifest *m, sfti_ds_shard *shards, size_t n,
                               sfti_arena *arena, sft_error *err);
/* The same with shards that were read: checks that each is there once and that sums fit, which
 * become the manifest's. */
sft_code sfti_ds_manifest_take(sfti_ds_manifest *m, sfti_ds_shard *shards, size_t n,
                               sfti_arena *arena, sft_error *err);
/* Add a shard to sums; false if they exceed 64 bits. */
bool sfti_ds_sums_add(sfti_ds_sums *sums, const sft_dataset_shard *shard);
/* The same with what is wrong, also with the shard itself. */
sft_code sfti_ds_shard_check(sfti_ds_sums *sums, const sft_dataset_shard *shard, sft_error *err);
/* SFT_MANIFEST_TYPE unless the sums over segments are as the manifest says. */
sft_code sfti_ds_sums_check(const sfti_ds_sums *found, const sfti_ds_sums *told, sft_error *err);
sft_code sfti_ds_order_fail(const char *name, sft_error *err);
/* totals of the manifest by its sums: rows that nobody sees because a later one of their name
 * replaces them, or they are deleted, do not count. */
void sfti_ds_manifest_total(sfti_ds_manifest *m);
/* SFT_MANIFEST_TYPE unless the totals are those: else a shard may have been lost from the list, of
 * which the next manifest would not tell. */
sft_code sfti_ds_manifest_totalled(const sfti_ds_manifest *m, sft_error *err);
/* Whether a shard of this name is among the manifest's: a binary search. */
bool sfti_ds_manifest_names(const sfti_ds_manifest *manifest, const char *name);
/* Whether a segment, the masks, or the places, of this file name are the manifest's. */
bool sfti_ds_manifest_addresses(const sfti_ds_manifest *manifest, const char *name);
/* The commit whose index it is. */
const char *sfti_ds_manifest_index(const sfti_ds_manifest *m);
/* For sfti_sort over an array of sfti_ds_shard. */
int sfti_ds_by_name(const void *shards, uint32_t a, uint32_t b);
int sfti_ds_by_sample(const void *shards, uint32_t a, uint32_t b);

/* ── addressed.c ── */

/* Read the file of this name, which must have that size and digest and be safetensors. what: its
 * name in messages. *bytes is from the arena, *out is to be closed. SFT_DATASET_SHARD: it is
 * missing, or not that file. */
sft_code sfti_ds_addressed_open(const sft_storage *storage, const char *name, const char *sha256,
                                uint64_t size, const char *what, sfti_arena *arena,
                                sft_span *bytes, sft_file **out, sft_error *err);
/* NULL unless it has this dtype and rank. */
const sft_tensor *sfti_ds_addressed_tensor(const sft_file *file, const char *name, sft_dtype dtype,
                                           uint32_t rank);

/* ── dataset.c ── */

/* As sft_dataset_shard_open, but without a look at the shard's own numbers of rows. */
sft_code sfti_ds_shard_open(const sft_storage *storage, const sfti_ds_manifest *manifest,
                            const sft_dataset_shard *shard, const sft_open_options *options,
                            sft_file **out, sft_error *err);
/* Whether the metadata of a file of a shard of so many samples has this number as "samples" or
 * "valid_samples"; true of files that are not ours. */
bool sfti_ds_shard_marked(const sft_file *file, const sfti_ds_manifest *manifest, const char *key,
                          uint64_t samples, uint64_t number);
const sfti_ds_manifest *sfti_ds_manifest_of(const sft_dataset *dataset);
/* SFT_MANIFEST_TYPE: another program wrote it, so that it cannot be changed here. */
sft_code sfti_ds_manifest_ours(const sfti_ds_manifest *manifest, sft_error *err);

/* ── manifest_latest.c ── */

#define SFTI_MANIFEST_MOST (UINT64_C(1) << 31) /* bytes; a shard takes about 200 */
#define SFTI_COMMIT_FILE_S 3600 /* a commit file is kept at least this long */

/* The manifest that is in force, without the shards of segments. SFT_MANIFEST_MISSING. */
sft_code sfti_ds_manifest_read(const sft_storage *storage, sfti_arena *arena,
                               sfti_ds_manifest *out, sft_error *err);
/* Whether another manifest than this text is in force by now. */
bool sfti_ds_manifest_changed(const sft_storage *storage, const sft_allocator *alloc,
                              sft_span text);
/* The manifest in force with all shards. SFT_DATASET_SHARD: a segment is missing or damaged. */
sft_code sfti_ds_manifest_read_all(const sft_storage *storage, sfti_arena *arena,
                                   sfti_ds_manifest *out, sft_error *err);
/* What sfti_ds_manifest_read does, for whom SFT_MANIFEST_MISSING is an answer: *err is not filled
 * with it. *seen: whether the manifest of this commit was followed on the way; both may be NULL. */
sft_code sfti_ds_manifest_seek(const sft_storage *storage, sfti_arena *arena,
                               const char *commit, sfti_ds_manifest *out, bool *seen,
                               sft_error *err);
/* The manifest in one file: SFTI_DATASET_MANIFEST or a commit file. SFT_NOT_FOUND is an answer, of
 * which *err says nothing. */
sft_code sfti_ds_commit_read(const sft_storage *storage, const char *file, sfti_arena *arena,
                             sfti_ds_manifest *out, sft_error *err);
/* Name of the only commit file that can follow a manifest of these bytes (data NULL: none) and this
 * version. */
sft_code sfti_ds_commit_file(sft_span text, uint64_t version, const sft_allocator *alloc,
                             char out[SFTI_COMMIT_FILE_NAME], sft_error *err);

/* ── versions.c: the manifests before, which commits keep ── */

typedef struct sfti_ds_version {
    uint64_t version;
    char name[SFTI_VERSION_FILE_NAME];
} sfti_ds_version;

/* Those before the manifest in force, the oldest first. */
sft_code sfti_ds_versions_list(const sft_storage *storage, const sfti_ds_manifest *now,
                               sfti_arena *arena, sfti_ds_version **out, size_t *count,
                               sft_error *err);
/* One of them, without the shards of segments. */
sft_code sfti_ds_version_read(const sft_storage *storage, const sfti_ds_version *version,
                              sfti_arena *arena, sfti_ds_manifest *out, sft_error *err);
/* The manifest of this version (0: any) or, if asof_s is not 0, the last one that was committed by
 * then, with all shards. SFT_MANIFEST_MISSING: it is not kept, or there is no dataset. */
sft_code sfti_ds_manifest_at(const sft_storage *storage, uint64_t version, uint64_t asof_s,
                             sfti_arena *arena, sfti_ds_manifest *out, sft_error *err);

/* ── index_footer.c: what an index says about itself ── */

#define SFTI_INDEX_COLUMNS 15u /* tensor_key, file_name, shape, dtype */

typedef struct sfti_ds_index {
    bool has_rows;
    uint64_t rows;
    unsigned columns;     /* bits: which of the four exist */
    sft_span commit;      /* data NULL: unknown */
    sft_span first, last; /* least and greatest file_name; data NULL: unknown */
} sfti_ds_index;

/* From the footer of a Parquet file. SFT_DATASET_SHARD for any other file. Texts from the arena. */
sft_code sfti_ds_index_read(const sft_storage *storage, const char *name, sfti_arena *arena,
                            sfti_ds_index *out, sft_error *err);

#endif
