/* Datasets: a folder of shards with a manifest, written by any number of tasks and committed at
 * once. docs/dataset.md describes the layout, the options and the commit.
 *
 * There are two halves. A shard writer runs anywhere (a thread, a Spark task, a Ray worker): it
 * takes rows as Arrow batches and returns receipts, which are plain JSON text. A commit runs
 * once: it takes the receipts, checks what only the whole can show, and publishes
 * dataset_manifest.json last. Until then nobody sees the new files; after it nothing fails.
 *
 * All files are accessed through a table of functions (sft_storage); local folders are one
 * implementation. Names are relative to the dataset's folder, in UTF-8, with '/' between parts.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_DATASET
 * is defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_DATASET_H
#define SFT_SAFETENSORS_DATASET_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_codes.h"
#include "safetensors_set.h"
#include "safetensors_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_DATASET 1

/* ── Arrow C Data Interface (https://arrow.apache.org/docs/format/CDataInterface.html) ── */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/* ── Storage ─────────────────────────────────────────────────────────────── */

/* One object of a listing. Allocated by the library or a storage, valid during the call.
 * @since 0.1 */
typedef struct sft_stored {
    const char *name; /* last part only; valid during the call */
    uint64_t bytes;   /* 0 of a folder */
    int64_t mtime_s;  /* since 1970, or 0 when unknown */
    bool folder;
    int64_t changed_s; /* when it got its name, since 1970, or 0 when unknown */
} sft_stored;

/* False ends the listing. */
typedef bool (*sft_stored_fn)(void *ctx, const sft_stored *object);

#define SFT_STORED_TAG 256 /* room for what names a state of an object, its NUL counted */

/* The functions of a storage; see sft_source_vtable for tables. create, open, list and remove
 * are required. An absent object is SFT_NOT_FOUND. They are called from several threads only if
 * writers and commits are used from several. @since 0.2 */
typedef struct sft_storage_vtable {
    size_t size; /* sizeof(sft_storage_vtable) */
    /* A sink for a new object; folders on the way are made. It need not be there before
     * sft_sink_finish. Refuses to replace (SFT_EXISTS) unless replace. */
    sft_code (*create)(void *ctx, const char *name, bool replace, sft_sink *out,
                       sft_error *err);
    /* Its bytes, read by position; size known. */
    sft_code (*open)(void *ctx, const char *name, sft_source *out, sft_error *err);
    /* What lies directly in a folder ("" = the dataset's); one that is not there is empty. */
    sft_code (*list)(void *ctx, const char *folder, sft_stored_fn each, void *each_ctx,
                     sft_error *err);
    /* Rename, replacing. Not of object stores: tasks then write under final names. */
    sft_code (*move)(void *ctx, const char *from, const char *to, sft_error *err);
    /* All names in the folder so far are safe from a power cut. */
    sft_code (*sync_folder)(void *ctx, const char *folder, sft_error *err);
    /* One object; absent is fine. A folder with all in it when folder is true. */
    sft_code (*remove)(void *ctx, const char *name, bool folder, sft_error *err);
    /* Hold out other commits, waiting for them at most wait_ms (then SFT_DATASET_BUSY).
     * SFT_DATASET_UNGUARDED where the file system has no locks, and nothing is held. */
    sft_code (*lock)(void *ctx, uint64_t wait_ms, sft_error *err);
    void (*unlock)(void *ctx);
    void (*close)(void *ctx);

    /* What keeps two commits apart without a lock: one of move_new and the pair of fetch and
     * put_if. A storage without any is refused (SFT_DATASET_UNGUARDED), unless single_writer. */

    /* Rename in one step that never replaces (SFT_EXISTS). */
    sft_code (*move_new)(void *ctx, const char *from, const char *to, sft_error *err);
    /* All bytes of an object, at most `most` (SFT_FILE_TOO_LARGE), appended to bytes; and what
     * names this state of it (an ETag), with NUL. SFT_NOT_FOUND; SFT_DATASET_UNGUARDED where
     * put_if would not look at its tag. Commits alone ask. */
    sft_code (*fetch)(void *ctx, const char *name, uint64_t most, sft_buffer *bytes,
                      char tag[SFT_STORED_TAG], sft_error *err);
    /* Put an object in one step if it is still in the state of tag ("": absent), else
     * SFT_DATASET_CHANGED. */
    sft_code (*put_if)(void *ctx, const char *name, const char *tag, sft_span bytes,
                       sft_error *err);
} sft_storage_vtable;

/* The place of a dataset, passed by value. Never grows; its table does. @since 0.2 */
typedef struct sft_storage {
    void *ctx;
    const sft_storage_vtable *vtable;
    bool single_writer; /* the caller vouches that nobody else commits meanwhile */
} sft_storage;

/* Close a storage and zero it. A zeroed one, and NULL, are ignored. @since 0.2 */
SFT_API void sft_storage_close(sft_storage *storage);

/* A local folder, created when something is first written. no_sync as in sft_path_options.
 * Symbolic links inside are not followed when removing. The lock is a file `.dataset.lock`,
 * which stays. Close with sft_storage_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_storage_local(const char *folder, bool no_sync,
                                                 const sft_allocator *alloc, sft_storage *out,
                                                 sft_error *err);

/* ── Options ─────────────────────────────────────────────────────────────── */

typedef enum sft_dataset_mode {
    SFT_DATASET_BATCH = 1, /* one file every batch_size rows, one tensor a column */
    SFT_DATASET_KV = 2     /* each row gives one tensor a column, named by a key column */
} sft_dataset_mode;

/* A row of the table of options, from which documents, Python and Spark print theirs. Allocated
 * by the library only. @since 0.1 */
typedef struct sft_dataset_option {
    const char *name;
    const char *values;     /* "fail, lastWin", for people */
    const char *by_default; /* as text; NULL when there is none */
    const char *sentence;
    uint32_t modes;         /* bits 1 << sft_dataset_mode */
} sft_dataset_option;
/* The rows by position; NULL past the last. Static. @since 0.1 */
SFT_API const sft_dataset_option *sft_dataset_option_at(size_t i);

/* How a dataset's list of shards is stored. @since 0.2 */
typedef enum sft_manifest_form {
    SFT_FORM_SAME = 0,    /* as it is; of a new dataset: whole */
    SFT_FORM_WHOLE = 1,   /* in dataset_manifest.json, which a commit rewrites */
    SFT_FORM_SEGMENTS = 2 /* in files of their own, to which an append adds one */
} sft_manifest_form;

/* Validated options of a write. Immutable; threads may share them. @since 0.1 */
typedef struct sft_dataset_options sft_dataset_options;

/* Validate options given as names (in any case) and texts, as engines pass them.
 * SFT_OPTION_UNKNOWN suggests the closest name, SFT_OPTION_VALUE says what is allowed. Free with
 * sft_dataset_options_free. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_dataset_options_new(const sft_pair *pairs, size_t count,
                                                       const sft_allocator *alloc,
                                                       sft_dataset_options **out,
                                                       sft_error *err);
SFT_API void sft_dataset_options_free(sft_dataset_options *options);
SFT_API sft_dataset_mode sft_dataset_options_mode(const sft_dataset_options *options);
SFT_API bool sft_dataset_options_indexed(const sft_dataset_options *options);

/* Check, before anything is written, that rows of this schema can be written with these options:
 * every column exists, has a supported type, and can be cast to its dtype. Writes
 * {"mode":…,"name_col":…,"columns":[{"name","dtype" or null,"shape" or null,"arrow"}]}, in the
 * order of the files, to the sink, which the caller finishes; sink may be NULL. The schema stays
 * the caller's. SFT_COLUMN_UNKNOWN, SFT_COLUMN_TYPE. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_dataset_check_schema(const sft_dataset_options *options,
                                                        const struct ArrowSchema *schema,
                                                        sft_sink *sink, sft_error *err);

/* ── Writing shards ──────────────────────────────────────────────────────── */

/* A writer of one task's rows into shards. One thread at a time. @since 0.1 */
typedef struct sft_shard_writer sft_shard_writer;

/* Begin to write shards. storage and options must outlive the writer. job is what sft_commit_job
 * returned for the commit that will take the receipts. partition is the number of this task's
 * part of the rows, and orders the dataset; on append it is counted from the end of what is
 * there. schema is a struct of the columns and stays the caller's. Each attempt of a task uses
 * file names of its own. End with sft_shard_writer_finish or sft_shard_writer_abandon.
 * @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_shard_writer_begin(const sft_dataset_options *options,
                                                      const sft_storage *storage, sft_span job,
                                                      uint64_t partition,
                                                      const struct ArrowSchema *schema,
                                                      const sft_allocator *alloc,
                                                      sft_shard_writer **out, sft_error *err);
/* Append a batch of rows, a struct array of the schema. The batch is moved: its release is NULL
 * afterwards, on failure, too. It is kept by reference until its rows are in a file, for at most
 * one shard. After a failure the writer can only be abandoned. SFT_ROW_VALUE, SFT_ROW_SHAPE,
 * SFT_ROW_NULL and SFT_ROW_KEY name column and row, counted from this writer's first.
 * SFT_DATASET_DISAGREES: a dtype or shape is not the one of the dataset that is appended to. Ticks
 * the job while files are written. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_shard_writer_append(sft_shard_writer *writer,
                                                       struct ArrowArray *batch,
                                                       const sft_job *job, sft_error *err);
/* Write the remaining rows and free the writer, which is freed on failure, too, and then leaves
 * nothing behind. *receipts becomes the receipts, a JSON array without the names of tensors;
 * free it with sft_buffer_free. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_shard_writer_finish(sft_shard_writer *writer,
                                                       sft_buffer *receipts, const sft_job *job,
                                                       sft_error *err);
/* Remove what was written, as far as possible, and free the writer. NULL is ignored. @since 0.1 */
SFT_API void sft_shard_writer_abandon(sft_shard_writer *writer);

/* ── Committing ──────────────────────────────────────────────────────────── */

typedef enum sft_commit_mode {
    SFT_COMMIT_NEW = 0,      /* SFT_EXISTS where a dataset (or any shard) is */
    /* To the dataset that is there, or a new one; SFT_MANIFEST_MISSING where shards are and no
     * manifest (with sft_storage.move: else they may be another job's at work). */
    SFT_COMMIT_APPEND = 1,
    SFT_COMMIT_OVERWRITE = 2 /* in place of it; its shards go after the commit */
} sft_commit_mode;

/* @since 0.1 */
typedef struct sft_commit_options {
    size_t size;
    sft_commit_mode mode;
    bool adopt_listing;    /* append: shards that a connector's manifest forgot come in, too */
    uint64_t lock_wait_ms; /* 0 = 60,000 */
    sft_span job;          /* goes on with a job begun elsewhere; empty: a new one */
    const sft_open_options *open; /* for the shards; NULL = defaults */
} sft_commit_options;
#define SFT_COMMIT_OPTIONS_INIT \
    { sizeof(sft_commit_options), SFT_COMMIT_NEW, false, 0, { NULL, 0 }, NULL }

typedef struct sft_commit sft_commit;

/* Open a commit, on the driver and before any task. Reads the existing manifest, and for an
 * append checks that mode, columns, dtypes, shapes, name_col and separator agree
 * (SFT_DATASET_DISAGREES); if schema is NULL, the receipts are checked instead. Nothing is
 * written. storage and options must outlive the commit. Close with sft_commit_close. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_commit_open(const sft_dataset_options *options,
                                               const sft_storage *storage,
                                               const struct ArrowSchema *schema,
                                               const sft_commit_options *how, sft_commit **out,
                                               sft_error *err);
/* Text that tasks need for sft_shard_writer_begin: the job's uuid and, on append, the number of
 * its first file and the dataset's columns, with which a task compares its first rows. UTF-8,
 * with a NUL after it; lives as long as the commit. @since 0.1 */
SFT_API sft_span sft_commit_job(const sft_commit *commit);
/* Add the receipts of a finished task: a JSON array from sft_shard_writer_finish. Adding the
 * same one twice counts once. SFT_DATASET_RECEIPT: not of this job. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_commit_add(sft_commit *commit, sft_span receipts,
                                              sft_error *err);
/* Prepare the commit: lock out other commits; read the manifest again (an append is rebased on
 * what was added meanwhile; an overwrite of another version than at the start is
 * SFT_DATASET_CHANGED; a job that was committed before is SFT_EXISTS); open every shard named by
 * a receipt (SFT_DATASET_SHARD says how many are missing, and the first); and merge all sorted
 * headers for duplicates (SFT_DATASET_DUPLICATE, or shadowed tensors), totals and schema.
 * A batch (option batch_id) that the dataset has already is prepared as well, and publishing it
 * changes nothing. Nothing visible changes. Ticks the job with bytes of headers. Memory: a few MiB
 * and about 64 KiB a shard (of many shards less: 256 MiB or 4 KiB a shard, whichever is more),
 * whatever the number of keys. In batch mode without an index, an append to a manifest of segments
 * takes memory for the new shards and those of merged segments only.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_commit_prepare(sft_commit *commit, const sft_job *job,
                                                  sft_error *err);
/* After sft_commit_prepare: whether an index is to be written, because it was requested, existed
 * before, or is needed for shadowed tensors. @since 0.1 */
SFT_API bool sft_commit_indexed(const sft_commit *commit);
/* After sft_commit_prepare, any number of times: the rows of the index, sorted by tensor_key and
 * then file_name, as a stream of Arrow batches of at most 65,536 rows: tensor_key, file_name,
 * shape (list of int32, or int64 if a dimension needs it), dtype, begin, end and, if any tensor
 * is, shadowed. Release the stream before closing the commit. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_commit_index(sft_commit *commit,
                                                struct ArrowArrayStream *out, sft_error *err);
/* The manifest as it would be published, valid until the next call on the commit. An index must
 * contain its `commit`. @since 0.1 */
SFT_API sft_span sft_commit_manifest(const sft_commit *commit);
/* Called with what goes wrong after the manifest is published, when nothing can fail any more.
 * May be NULL. @since 0.1 */
typedef void (*sft_warn_fn)(void *ctx, const sft_error *what);
/* Move shards and index into place, publish the manifest in one step, then remove what was
 * replaced and the job's folder. index is the name of the index file in the job's folder
 * (sft_commit_job_folder), or NULL: then the manifest names none, and an old one is removed.
 * (Garbage collection recognises the index of a dead job by the name _tensor_index.parquet
 * alone.) If this fails before the manifest is published, the old dataset is intact, and the
 * commit can only be closed or aborted, except that an append overtaken by another commit
 * (SFT_DATASET_CHANGED) can be prepared and published again, with a new index. On storages that
 * cannot move, the caller puts the index in place afterwards. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_commit_publish(sft_commit *commit, const char *index,
                                                  sft_warn_fn warn, void *warn_ctx,
                                                  const sft_job *job, sft_error *err);
/* "_job-<uuid>", or "" on storages that cannot move. @since 0.1 */
SFT_API const char *sft_commit_job_folder(const sft_commit *commit);
/* Remove the files of this job that the current manifest does not name, or nothing if it is not
 * known whether the manifest was published. Receipts that were added are enough; if there is a
 * job folder, everything in it goes. Does nothing after a successful sft_commit_publish.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_commit_abort(sft_commit *commit, sft_error *err);
/* Unlock and free a commit; removes nothing. NULL is ignored. @since 0.1 */
SFT_API void sft_commit_close(sft_commit *commit);
/* Say that a job (the text of sft_commit_job) is still under way, so that gc keeps its files
 * although they are older than its grace period: writes the small file `.alive` in the job's
 * folder, anew, on any storage. To be called every few minutes by each process that works for the
 * job, from any thread with a storage of its own, until its work is done; not needed while a job
 * is younger than the grace period. sft_commit_publish and sft_commit_abort remove the file with
 * the job's folder; on storages that cannot move, gc does once it is old. SFT_BAD_ARGUMENT;
 * failures may be ignored, and the next call tries again. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_commit_renew(const sft_storage *storage, sft_span job,
                                                sft_error *err);

/* ── Reading ─────────────────────────────────────────────────────────────── */

/* A manifest that was read and validated, ours or the connector's. Immutable. @since 0.1 */
typedef struct sft_dataset sft_dataset;

typedef struct sft_dataset_shard {
    const char *name;
    uint64_t bytes, samples, valid_samples, first_sample, tensors, shadowed;
    const char *sha256; /* hex, or NULL */
    uint64_t deleted; /* of its rows; in KV mode of its tensors */
} sft_dataset_shard;

/* Open a dataset. storage must outlive it. SFT_MANIFEST_MISSING, SFT_MANIFEST_TYPE;
 * SFT_DATASET_SHARD: a segment of the manifest is missing or damaged. Memory: about 340 bytes a
 * shard, 530 if the manifest is whole. warn is called with files that a connector's manifest does
 * not name. Close with sft_dataset_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_dataset_open(const sft_storage *storage,
                                                const sft_allocator *alloc, sft_warn_fn warn,
                                                void *warn_ctx, sft_dataset **out,
                                                sft_error *err);
/* The same with an earlier version, which commits keep until gc removes it: that of this number, or
 * the last one committed by asof_s (seconds since 1970). 0 and 0: the one in force. Its shards stay
 * while it is kept. SFT_MANIFEST_MISSING: it is not kept, or one that is not kept may have been in
 * force at asof_s. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_dataset_open_version(const sft_storage *storage,
                                                        uint64_t version, uint64_t asof_s,
                                                        const sft_allocator *alloc,
                                                        sft_warn_fn warn, void *warn_ctx,
                                                        sft_dataset **out, sft_error *err);
SFT_API void sft_dataset_close(sft_dataset *dataset);
/* The text of dataset_manifest.json, as it is stored: without shards if they are in segments.
 * @since 0.1 */
SFT_API sft_span sft_dataset_manifest(const sft_dataset *dataset);
/* The mode; 0 if the manifest does not say (a connector's). @since 0.2 */
SFT_API sft_dataset_mode sft_dataset_get_mode(const sft_dataset *dataset);
/* Rows, without deleted and replaced ones, with those of padding. @since 0.1 */
SFT_API uint64_t sft_dataset_samples(const sft_dataset *dataset);
SFT_API size_t sft_dataset_shard_count(const sft_dataset *dataset);
/* In the order of samples; NULL if i is out of range. @since 0.1 */
SFT_API const sft_dataset_shard *sft_dataset_shard_at(const sft_dataset *dataset, size_t i);
/* Open a shard, read by position. SFT_DATASET_SHARD: it is missing, or its size or number of rows
 * is not the manifest's; SFT_DATASET_CHANGED if that is because the manifest has changed. Close
 * with sft_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_dataset_shard_open(const sft_dataset *dataset, size_t i,
                                                      const sft_open_options *options,
                                                      sft_file **out, sft_error *err);

/* Which rows of a shard are deleted: a bit for each row, with those of padding, the lowest bit of a
 * byte first; in KV mode for each of its tensors, by name. Empty: none. Lives as long as the
 * dataset. @since 0.3 */
SFT_API sft_span sft_dataset_shard_mask(const sft_dataset *dataset, size_t i);

/* A column that a shard lacks: it is in a file beside the shard, which has as many rows, or
 * nowhere, and null there. Never grows. @since 0.3 */
typedef struct sft_dataset_place {
    const char *shard, *column;
    const char *file; /* NULL: nowhere */
    uint64_t bytes;   /* of the file */
    const char *sha256; /* of the file, hex; NULL of nowhere */
} sft_dataset_place;

/* Those of shard i, by column; several may be in one file. They come before what the shard has.
 * *count may be 0. They live as long as the dataset. @since 0.3 */
SFT_API const sft_dataset_place *sft_dataset_shard_places(const sft_dataset *dataset, size_t i,
                                                          size_t *count);
/* Open the file of a place, as sft_dataset_shard_open does; SFT_BAD_ARGUMENT if there is none.
 * @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_dataset_place_open(const sft_dataset *dataset,
                                                      const sft_dataset_place *place,
                                                      const sft_open_options *options,
                                                      sft_file **out, sft_error *err);

/* Which tensors of a dataset a later shard has again, or in KV mode are deleted. Immutable.
 * @since 0.2 */
typedef struct sft_dataset_replaced sft_dataset_replaced;

/* Find them; if the manifest says that there are any, by reading the headers of all shards, opened
 * with `open` (NULL = defaults). Memory: that of the names. Free with sft_dataset_replaced_free.
 * @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_dataset_find_replaced(const sft_dataset *dataset,
                                                         const sft_open_options *open,
                                                         sft_dataset_replaced **out,
                                                         sft_error *err);
/* Whether a tensor, by its number in the file of shard i, is replaced. @since 0.2 */
SFT_API bool sft_dataset_is_replaced(const sft_dataset_replaced *replaced, size_t shard,
                                     size_t tensor);
/* Whether it is of a deleted row; then it does not count as replaced. False in batch mode.
 * @since 0.3 */
SFT_API bool sft_dataset_is_deleted(const sft_dataset_replaced *replaced, size_t shard,
                                    size_t tensor);
/* NULL is ignored. @since 0.2 */
SFT_API void sft_dataset_replaced_free(sft_dataset_replaced *replaced);

/* ── Maintaining ─────────────────────────────────────────────────────────── */

/* Each of these fills an empty tree (safetensors_tree.h) with one result object (docs/json.md);
 * after a failure the tree can only be freed. The _json forms write the same to a sink, which
 * the caller finishes. path is shown as by sft_set_ls_json. */

/* What the manifest says. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_dataset_info_tree(const sft_dataset *dataset,
                                                     const char *path, sft_tree *tree,
                                                     sft_error *err);
/* @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_dataset_info_json(const sft_dataset *dataset,
                                                     const char *path, sft_sink *sink,
                                                     sft_error *err);
/* The version in force and those before it that are kept. Reads their manifests. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_dataset_versions_tree(const sft_storage *storage,
                                                         const char *path, sft_tree *tree,
                                                         sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_dataset_versions_json(const sft_storage *storage,
                                                         const char *path, sft_sink *sink,
                                                         sft_error *err);
/* List every tensor of every shard, shard by shard, or those that match accepts, and whether a
 * later shard replaces it. Shards are opened with `open`, NULL = defaults. A shard that cannot be
 * read ends the list: the object is complete, with "ok": false and "error", "replaced" is null
 * where it is not known, and the code is returned. Written while it is read, so there is no tree
 * of it. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_dataset_ls_json(const sft_dataset *dataset,
                                                   const sft_open_options *open,
                                                   const char *path, sft_match_fn match,
                                                   void *ctx, sft_sink *sink, sft_error *err);
/* Compare the manifest with the files: sizes, headers, samples, totals, columns, duplicates,
 * orphans; deep: digests, too. Shards are opened with `open`, NULL = defaults. If anything is
 * wrong, *whole and "ok" are false, and "findings"
 * lists [{"code","shard","message"}]. Of the index the Parquet footer is read: its commit (a
 * connector's has none), columns, number of rows, and the files it names. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_dataset_verify_tree(const sft_storage *storage, bool deep,
                                                       const sft_open_options *open,
                                                       const char *path, sft_tree *tree,
                                                       bool *whole, const sft_job *job,
                                                       sft_error *err);
/* @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_dataset_verify_json(const sft_storage *storage, bool deep,
                                                       const sft_open_options *open,
                                                       const char *path, sft_sink *sink,
                                                       bool *whole, const sft_job *job,
                                                       sft_error *err);
/* @since 0.3 */
typedef struct sft_gc_options {
    size_t size;
    uint64_t grace_s; /* what is younger stays */
    bool remove;      /* else only list */
    uint64_t keep;    /* versions, with the one in force, that stay; 0: all */
    uint64_t older_s; /* versions replaced since less than this stay; 0: all */
} sft_gc_options;
#define SFT_GC_OPTIONS_INIT { sizeof(sft_gc_options), 24 * 60 * 60, false, 0, 0 }

/* List what is ours, named by no manifest in force or kept, and older than grace_s seconds (what
 * has no time is not, unless grace_s is 0): folders of dead jobs, replaced and orphaned shards. The
 * files of a job under way stay, see sft_commit_renew. With keep or older_s also versions, and what
 * only they name; with both those that neither lets stay. With remove,
 * remove it, but never a file that is not ours, nor a folder that holds one. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_dataset_gc_tree(const sft_storage *storage,
                                                   const sft_gc_options *options,
                                                   const char *path, sft_tree *tree,
                                                   sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_dataset_gc_json(const sft_storage *storage,
                                                   const sft_gc_options *options,
                                                   const char *path, sft_sink *sink,
                                                   sft_error *err);
/* @since 0.2 */
typedef struct sft_compact_options {
    size_t size;
    uint64_t target_bytes; /* smaller shards are merged; 0: none are */
    uint64_t batch_size;   /* batch mode: all batches get so many rows; 0: as target_bytes says */
    bool drop_old; /* do not keep the version before; if none is kept its shards go at once */
    bool dry_run;          /* plan only: write nothing, "bytes_after" is null */
    sft_warn_fn warn;      /* as for sft_commit_publish */
    void *warn_ctx;
    const sft_open_options *open; /* for the shards; NULL = defaults */
    sft_manifest_form form;       /* of the new manifest */
} sft_compact_options;
#define SFT_COMPACT_OPTIONS_INIT \
    { sizeof(sft_compact_options), 0, 0, false, false, NULL, NULL, NULL, SFT_FORM_SAME }

/* Rewrite shards that hold shadowed tensors, or are smaller than target_bytes,
 * without those tensors and combined, as another commit; in batch mode small ones become batches
 * of batch_size rows, or "left" says why not. With batch_size in the options all rows from the
 * first batch of another size on are divided anew (SFT_BAD_ARGUMENT in KV mode).
 * SFT_DATASET_CHANGED: another commit came first. The index is omitted: "index": null. Segments of
 * the manifest are merged, and one of another form is converted, even if no shard is rewritten.
 * @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_dataset_compact_tree(const sft_storage *storage,
                                                        const sft_compact_options *options,
                                                        const char *path, sft_tree *tree,
                                                        const sft_job *job, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_dataset_compact_json(const sft_storage *storage,
                                                        const sft_compact_options *options,
                                                        const char *path, sft_sink *sink,
                                                        const sft_job *job, sft_error *err);

/* Rows from first on, before end. Never grows. @since 0.3 */
typedef struct sft_row_range {
    uint64_t first, end;
} sft_row_range;

/* Which rows to delete: by numbers in batch mode, by names in KV mode. @since 0.3 */
typedef struct sft_delete_options {
    size_t size;
    const sft_row_range *rows; /* in any order; borrowed, as keys are */
    size_t row_count;
    uint64_t version; /* whose numbers they are; 0: of the one in force. With names: which is */
    const sft_span *keys;
    size_t key_count;
    bool dry_run;     /* write nothing */
    sft_warn_fn warn; /* as for sft_commit_publish */
    void *warn_ctx;
    const sft_open_options *open; /* for the shards, in KV mode; NULL = defaults */
} sft_delete_options;
#define SFT_DELETE_OPTIONS_INIT \
    { sizeof(sft_delete_options), NULL, 0, 0, NULL, 0, false, NULL, NULL, NULL }

/* Delete rows, as another commit: readers no longer see them, and count and number the others
 * without them. The shards stay as they are; which rows are deleted is in a file of masks, of one
 * bit for each row of the shards that have some, until sft_dataset_compact_tree removes the rows.
 * The version before is kept, until sft_dataset_gc_tree forgets it. Versions of this library
 * without deletion refuse such a dataset. Commits that come first are no obstacle (names are looked
 * up in what is then in force), unless they replaced the shards of numbered rows:
 * SFT_DATASET_CHANGED. SFT_TENSOR_NOT_FOUND: there is no row of a name; SFT_BAD_ARGUMENT: of a
 * number. Nothing is deleted then. Cost: in KV mode the headers of all shards are read. If no row
 * is given, nothing is written. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_dataset_delete_tree(const sft_storage *storage,
                                                       const sft_delete_options *options,
                                                       const char *path, sft_tree *tree,
                                                       const sft_job *job, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_dataset_delete_json(const sft_storage *storage,
                                                       const sft_delete_options *options,
                                                       const char *path, sft_sink *sink,
                                                       const sft_job *job, sft_error *err);

/* Which columns to add. @since 0.3 */
typedef struct sft_add_options {
    size_t size;
    const sft_span *columns; /* those of the values; none: all */
    size_t column_count;
    uint64_t version; /* whose rows they are; 0: of the one in force */
    bool dry_run;     /* write nothing */
    sft_warn_fn warn; /* as for sft_commit_publish */
    void *warn_ctx;
    const sft_open_options *open; /* for the shards; NULL = defaults */
} sft_add_options;
#define SFT_ADD_OPTIONS_INIT \
    { sizeof(sft_add_options), NULL, 0, 0, false, NULL, NULL, NULL }

/* Add columns to a dataset in batch mode, as another commit: those of `values`, another dataset in
 * batch mode, which has as many rows as this one shows, in the same order. No shard is written:
 * each gets a file beside it with the columns' rows, until sft_dataset_compact_tree merges both.
 * Rows that are appended without such a column are null. The version before is kept, until
 * sft_dataset_gc_tree forgets it; versions of this library without this refuse such a dataset; an
 * index is removed. Commits that come first are no obstacle: in shards of other appends the columns
 * are null. SFT_DATASET_CHANGED: one replaced shards. SFT_DATASET_DISAGREES: a column is there
 * already, has a dtype or shape that varies, or a name that tensors of another have; or the values
 * have another number of rows. SFT_COLUMN_UNKNOWN: the values lack one. Cost: the values are read
 * once and written once. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_dataset_add_tree(const sft_storage *storage,
                                                    const sft_storage *values,
                                                    const sft_add_options *options,
                                                    const char *path, sft_tree *tree,
                                                    const sft_job *job, sft_error *err);
SFT_API SFT_NODISCARD sft_code sft_dataset_add_json(const sft_storage *storage,
                                                    const sft_storage *values,
                                                    const sft_add_options *options,
                                                    const char *path, sft_sink *sink,
                                                    const sft_job *job, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
