/* What all parts of a dataset share: options, columns, names, receipts, the storage. Above it are
 * arrow/ (Arrow's types and rows), write/ (rows into shards), read/ (manifest, headers, index),
 * commit/ (receipts into a manifest) and, above those, maintain/ (verify, gc, compact). */
#ifndef SFTI_DATASET_H
#define SFTI_DATASET_H

#include "base/json.h"
#include "base/mem.h"
#include "base/options.h"
#include "safetensors_dataset.h"

#define SFTI_DATASET_MANIFEST "dataset_manifest.json"
#define SFTI_DATASET_GENERATOR "libsafetensors " SFT_VERSION_STRING
#define SFTI_DATASET_INDEX "_tensor_index.parquet"
/* Key of __metadata__ that marks a shard as ours; its value is "1". */
#define SFTI_DATASET_MARK "libsafetensors.dataset"
#define SFTI_DATASET_NAME 96 /* bytes of a shard's name, with its NUL */
#define SFTI_SCHEMA_MOST 10000 /* keys in the manifest's schema */

/* ── options.c ── */

typedef enum sfti_tail { SFTI_TAIL_WRITE, SFTI_TAIL_DROP, SFTI_TAIL_PAD } sfti_tail;

/* A dtype or a shape per sample that the options set for a column. */
typedef struct sfti_ds_override {
    sft_span column; /* empty: of all columns */
    bool has_dtype, has_shape;
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape;
} sfti_ds_override;

struct sft_dataset_options {
    sft_allocator alloc;
    sfti_arena arena;
    sft_dataset_mode mode;
    uint64_t batch_size;
    sft_span name_col, separator;
    const sft_span *columns; /* as listed; none: all */
    size_t column_count;
    const sfti_ds_override *overrides;
    size_t override_count;
    bool last_win, index, truncate, single;
    bool upstream; /* compat: nothing that the readers of others cannot read */
    bool merges; /* an append may lack columns, or bring new ones */
    uint64_t shard_bytes; /* target, of data and header */
    sfti_tail tail;
    bool keep_versions; /* until gc; else what is replaced stays for keep_old_s */
    uint64_t keep_old_s;
    sft_manifest_form form;
    sft_span stream; /* batch_id: the stream; data NULL: none */
    uint64_t batch;  /* and the number of its batch */
};

/* ── columns.c: options and an Arrow schema, settled ── */

/* What a row of an Arrow type holds. */
typedef enum sfti_ds_form {
    SFTI_FORM_PLAIN,  /* one number or boolean */
    SFTI_FORM_ARRAY,  /* a list of numbers, nested or not */
    SFTI_FORM_TENSOR, /* struct<data, shape, dtype> */
    /* of batches only: */
    SFTI_FORM_BYTES,  /* text or bytes */
    SFTI_FORM_LIST,   /* a list of anything but numbers */
    SFTI_FORM_STRUCT
} sfti_ds_form;

/* How a column of a batch is stored. LIST, BINARY, UTF8: the values of a file's rows end to end in
 * the tensor <name>, and where they end in <name>.offsets (I64, rows + 1, from 0). LIST: rows of a
 * file may also all have one length, stacked as FIXED. NESTED, as the type says: of a struct each
 * field is a column <name>.<field>; a list has <name>.offsets, and its elements are the column
 * <name>.item. Of NESTED lists of numbers a file may also have what LIST and FIXED have. */
typedef enum sfti_ds_encoding {
    SFTI_ENCODING_FIXED, /* a row a first index */
    SFTI_ENCODING_LIST,  /* numbers */
    SFTI_ENCODING_NESTED,
    SFTI_ENCODING_BINARY,
    SFTI_ENCODING_UTF8
} sfti_ds_encoding;

typedef struct sfti_ds_column {
    sft_span name;
    sfti_ds_encoding encoding;
    bool nullable; /* some rows are null: files may have <name>.valid (BOOL, a row each) */
    bool optional; /* it was added: rows that are appended may lack it */
    size_t child; /* of the batch's struct */
    sfti_ds_form form;
    bool has_dtype, has_shape;
    bool opaque; /* a value is a row of U8 */
    sft_span type; /* Arrow's, as text; data NULL: what dtype, shape and encoding say */
    sft_dtype from; /* Arrow's elements; not of TENSOR, LIST, STRUCT */
    sft_dtype dtype;
    uint32_t rank;
    const uint64_t *shape; /* per sample */
} sfti_ds_column;

typedef struct sfti_ds_columns {
    sft_dataset_mode mode;
    size_t count;
    sfti_ds_column *column; /* in the order of the batch's struct */
    size_t name_child;      /* KV: the key column */
    struct sfti_ds_node *node; /* the columns, and behind each the columns in it */
    size_t node_count;
} sfti_ds_columns;

typedef struct sfti_ds_entry { /* one key of `schema` */
    sft_span key;
    sft_span dtype; /* as spelled: a connector may have others */
    uint32_t rank;
    const uint64_t *shape;
    sft_span encoding, type; /* of a column; data NULL: FIXED, none */
    bool nullable, optional;
    bool whole; /* dtype and shape are both there, null or not */
} sfti_ds_entry;

/* Errors as sft_dataset_check_schema. Memory is from the arena. */
sft_code sfti_ds_columns_resolve(const sft_dataset_options *options,
                                const struct ArrowSchema *schema, sfti_arena *arena,
                                sfti_ds_columns *out, sft_error *err);

/* Whether the Scala connector knows a dtype; the official package knows these, too. */
bool sfti_ds_upstream_knows(sft_dtype dtype);
#define SFTI_UPSTREAM_DTYPES "F16, BF16, F32, F64, or integers of 8 to 64 bits"

/* ── column.c ── */

/* "[3, 4]", cut to fit. For messages. */
#define SFTI_SHAPE_TEXT 80
void sfti_ds_shape_text(const uint64_t *shape, uint32_t rank, char buffer[SFTI_SHAPE_TEXT]);
bool sfti_ds_shape_same(const uint64_t *a, uint32_t a_rank, const uint64_t *b, uint32_t b_rank);

/* NULL when there is none of that name. */
const sfti_ds_column *sfti_ds_column_find(const sfti_ds_column *columns, size_t count,
                                          sft_span name);
/* Whether dtypes and shapes are the same, known or not. */
bool sfti_ds_columns_same(const sfti_ds_column *a, const sfti_ds_column *b, size_t count);
/* Dtype and shape stay known only where both columns agree. */
void sfti_ds_column_join(sfti_ds_column *to, const sfti_ds_column *other, sft_dataset_mode mode);
/* Whether a tensor, whose first dimension is samples, has the column's dtype and shape. */
bool sfti_ds_column_holds(const sfti_ds_column *c, const sft_tensor *t);
/* Whether nothing is known of its lists but their type, because there were no rows. */
bool sfti_ds_column_open(const sfti_ds_column *c);
/* SFT_DATASET_DISAGREES where dtypes or shapes, both known, differ. was: of the dataset. */
sft_code sfti_ds_column_agrees(const sfti_ds_column *is, const sfti_ds_column *was,
                               sft_error *err);
/* The same for all columns, which must have the same names, but that optional ones may be missing.
 * merges: others, too, and there may be new ones. */
sft_code sfti_ds_columns_agree(const sfti_ds_column *base, size_t base_count,
                               const sfti_ds_column *columns, size_t count, bool merges,
                               sft_error *err);
/* SFT_DATASET_DISAGREES unless a column can be null in shards that lack it. */
sft_code sfti_ds_column_absent(const sfti_ds_column *column, sft_error *err);
/* SFT_DATASET_DISAGREES: tensors of the columns from `fresh` on, which are new, may have names that
 * those of other columns have. */
sft_code sfti_ds_columns_apart(const sfti_ds_column *columns, size_t count, size_t fresh,
                               sft_error *err);
/* KV mode: whether a tensor of column `longer` may have the name of one of `shorter`, which then is
 * that of another row: the row's own name, then the first bytes of sep and longer. */
bool sfti_ds_keys_meet(sft_span sep, sft_span longer, sft_span shorter);
/* SFT_OPTION_VALUE names two columns, and the separator, where that is so. */
sft_code sfti_ds_keys_apart(const sfti_ds_column *columns, size_t count, sft_span sep,
                            sft_error *err);
/* Fails: only the dataset (there), or only the rows have this column. */
sft_code sfti_ds_column_alone(sft_error *err, sft_span name, bool there);
/* Whether a task's column is of the schema's type. */
bool sfti_ds_column_asked(const sfti_ds_column *asked, const sfti_ds_column *is);
/* Whether two tasks' columns of one name can be one column. */
bool sfti_ds_column_kin(const sfti_ds_column *a, const sfti_ds_column *b);

/* The tensors of a column in a batch's file. */
typedef enum sfti_ds_part {
    SFTI_PART_VALUES,
    SFTI_PART_OFFSETS,
    SFTI_PART_VALID,
    SFTI_PART_INNER /* of a column in a NESTED one */
} sfti_ds_part;
/* ".offsets", ".valid", or "" of VALUES */
const char *sfti_ds_part_suffix(sfti_ds_part part);
/* The column to which a tensor belongs, and as what; NULL: to none. A column of that very name
 * comes first. */
const sfti_ds_column *sfti_ds_column_part(const sfti_ds_column *columns, size_t count,
                                          sft_span tensor, sfti_ds_part *part);
/* Arrow's name of a dtype: "int32", "float"; of one that Arrow lacks, its own (arrow/type.c). */
const char *sfti_ds_type_name(sft_dtype dtype);
/* "utf8", "binary", "list", "nested"; NULL for FIXED. */
const char *sfti_ds_encoding_name(sfti_ds_encoding encoding);

/* "dtype" and "shape" of a column, each null where rows differ; its encoding and whether it has
 * nulls, where there is something to say. */
void sfti_ds_put_column(sfti_json_writer *w, const sfti_ds_column *column);
/* "columns": an object with one of these for each. */
void sfti_ds_put_columns(sfti_json_writer *w, const sfti_ds_column *columns, size_t count);

/* ── type.c: the types of NESTED columns ── */

/* A type in a column's type, in preorder: that of the column <name> of its own. */
typedef struct sfti_ds_inner {
    sfti_ds_form form; /* PLAIN, BYTES, LIST, STRUCT */
    sft_span name;
    size_t parent;   /* SIZE_MAX of the first */
    sft_dtype dtype; /* PLAIN */
    uint64_t width;  /* PLAIN: bytes of a value that is a row of U8, else 0 */
    bool text;       /* BYTES: UTF-8 */
    bool fixed;      /* LIST: of `size` elements each */
    uint64_t size;
} sfti_ds_inner;

/* SFT_BAD_ARGUMENT for a text that is not a type of a column, but for "fixed_shape_tensor". */
sft_code sfti_ds_type_parse(sft_span column, sft_span type, sfti_arena *arena,
                            sfti_ds_inner **out, size_t *count, sft_error *err);

/* ── file_names.c ── */

/* "part-00003-0001-<uuid>.safetensors"; uuid: 36 characters. */
void sfti_ds_shard_name(uint64_t file, uint64_t shard, const char *uuid,
                        char out[SFTI_DATASET_NAME]);
bool sfti_ds_ends(sft_span name, const char *with);
/* "kv", "batch", or NULL for 0. */
const char *sfti_ds_mode_name(sft_dataset_mode mode);
/* "_job-<uuid>" of a uuid of 36 characters */
#define SFTI_JOB_FOLDER 48
void sfti_ds_job_folder(const char *uuid, char out[SFTI_JOB_FOLDER]);
/* In a job's folder, on any storage: as old as the last sft_commit_renew. */
#define SFTI_JOB_ALIVE ".alive"
/* "<folder>/<name>", or the name alone where folder is "" */
#define SFTI_STORED_NAME (SFTI_DATASET_NAME + 1 + SFTI_JOB_FOLDER)
void sfti_ds_stored_name(const char *folder, const char *name, char out[SFTI_STORED_NAME]);
/* Whether a name has that pattern, and its numbers. */
bool sfti_ds_shard_parse(sft_span name, uint64_t *file, uint64_t *shard);
#define SFTI_COMMIT_FILE ".dataset_manifest.commit-"
#define SFTI_COMMIT_FILE_NAME 64
#define SFTI_COMMIT_DIGITS 16 /* of the digest in a commit file's name */
/* Whether a name is a commit file's, and its number. */
bool sfti_ds_is_commit_file(sft_span name, uint64_t *number);
/* Kinds of files that manifests name by their SHA-256, which follows in the name. */
#define SFTI_SEGMENT_FILE ".dataset_segment-"
#define SFTI_MASKS_FILE ".dataset_masks-"
#define SFTI_PLACES_FILE ".dataset_columns-"
#define SFTI_SEGMENT_FILE_NAME 96
void sfti_ds_addressed_name(const char *kind, const char *sha256,
                            char out[SFTI_SEGMENT_FILE_NAME]);
/* Whether a name is that of a segment of the manifest. */
bool sfti_ds_is_segment(sft_span name);
/* ".<name of a shard>": columns of a shard. Its numbers are those of the shard. Hidden from readers
 * that list a folder, for whom it would be more rows. */
#define SFTI_COLUMNS_NAME (SFTI_DATASET_NAME + 1)
bool sfti_ds_is_columns(sft_span name);
/* Whether a name is that of a shard, or of columns of one. */
bool sfti_ds_is_part(sft_span name);
/* Whether a name is that of such a file. */
bool sfti_ds_is_addressed(sft_span name);
/* A replaced manifest: ".dataset_version-<version>-<history>" */
#define SFTI_VERSION_FILE ".dataset_version-"
#define SFTI_VERSION_FILE_NAME 96
void sfti_ds_version_name(uint64_t version, const char *history,
                          char out[SFTI_VERSION_FILE_NAME]);
/* Whether a name is one of these, and its numbers; history: 36 characters. */
bool sfti_ds_is_version(sft_span name, uint64_t *version, sft_span *history);
/* Whether a name is one of a file in the dataset's folder itself. */
bool sfti_ds_is_bare(sft_span name);
/* "_job-<uuid>" */
bool sfti_ds_is_job(sft_span name);
/* Suffix of the folder to which a commit moves an old index that is a folder. */
#define SFTI_JOB_INDEX "-index"
/* A random uuid (version 4), with NUL. */
sft_code sfti_ds_uuid(char out[37], sft_error *err);

/* The text of sft_commit_job, parsed. */
typedef struct sfti_ds_job {
    char uuid[37], folder[SFTI_JOB_FOLDER];
    uint64_t first;   /* file number */
    sft_span id;      /* the text before the columns, which receipts repeat */
    sft_span columns; /* of the dataset that is appended to, as in a receipt; empty: none */
} sfti_ds_job;
sft_code sfti_ds_job_parse(sft_span text, sfti_ds_job *out, sft_error *err);

/* ── receipt.c ── */

/* One shard that a task wrote. For a task that wrote none: the rows it dropped; `name` and `stored`
 * are NULL then. */
typedef struct sfti_ds_receipt {
    sft_span name;   /* final name, bare */
    sft_span stored; /* its current name: "_job-<uuid>/<name>" or name */
    uint64_t partition, shard;
    uint64_t bytes, header_bytes, samples, valid_samples, tensors;
    uint64_t dropped; /* rows that the task's tail dropped; in its last receipt */
    char sha256[65];
    size_t column_count;
    const sfti_ds_column *columns; /* name; dtype and shape where all rows have the same */
} sfti_ds_receipt;

sft_code sfti_ds_receipt_write(const sfti_ds_receipt *receipt, sft_span job,
                               sft_buffer *out, sft_error *err); /* one object, appended */
/* "columns" of a receipt as a text of their own, appended. */
sft_code sfti_ds_columns_write(const sfti_ds_column *columns, size_t count, sft_buffer *out,
                               sft_error *err);
sft_code sfti_ds_columns_read(sft_span text, sfti_arena *arena, const sfti_ds_column **out,
                              size_t *count, sft_error *err);
/* An array of receipts, put after the `*count` that *all has, which grows in the arena;
 * SFT_DATASET_RECEIPT unless all are of the given job. */
sft_code sfti_ds_receipts_read(sft_span text, const sfti_ds_job *job, sfti_arena *arena,
                               sfti_ds_receipt **all, size_t *count, size_t *cap,
                               sft_error *err);

/* ── store.c: small conveniences over sft_storage ── */

/* Whether a storage that sfti_ds_storage_check accepted has a member: what comes before `remove`,
 * which is required, has its place in every table. */
#define sfti_can(storage, member)                                                              \
    ((offsetof(sft_storage_vtable, member) < offsetof(sft_storage_vtable, remove)              \
      || (storage)->vtable->size >=                                                            \
             offsetof(sft_storage_vtable, member) + sizeof(storage)->vtable->member)           \
     && (storage)->vtable->member)
/* A member that is there. */
#define sfti_call(storage, member, ...) \
    ((storage)->vtable->member((storage)->ctx, __VA_ARGS__))
/* Sync the dataset's folder, on storages that need it. */
#define sfti_ds_settle(storage, err) \
    (sfti_can(storage, sync_folder) ? sfti_call(storage, sync_folder, "", err) : SFT_OK)

/* Whether a storage has the required members (NULL has none): the first check of every public
 * call. */
sft_code sfti_ds_storage_check(const sft_storage *storage, sft_error *err);

/* SFT_SIZE_OVERFLOW: "expected <what> within 64 bits, found more". */
sft_code sfti_ds_overflow(const char *what, sft_error *err);
sft_code sfti_ds_read_all(const sft_storage *storage, const char *name, uint64_t most,
                          sfti_arena *arena, sft_span *out, sft_error *err);
/* Atomic and durable. */
sft_code sfti_ds_put(const sft_storage *storage, const char *name, sft_span bytes,
                     sft_error *err);
/* SHA-256, as hexadecimal digits. */
sft_code sfti_ds_digest(sft_span bytes, const sft_allocator *alloc, char out[65],
                        sft_error *err);
/* The same of a file; tick, which may be NULL, hears of the bytes that were read. */
typedef sft_code (*sfti_ds_tick_fn)(void *ctx, uint64_t bytes, sft_error *err);
sft_code sfti_ds_digest_file(const sft_storage *storage, const char *name,
                             const sft_allocator *alloc, sfti_ds_tick_fn tick, void *ctx,
                             char out[65], sft_error *err);
/* The length of the header: the first eight bytes. */
sft_code sfti_ds_header_bytes(const sft_source *source, uint64_t *out, sft_error *err);
sft_code sfti_ds_open_shard(const sft_storage *storage, const char *name,
                            const sft_open_options *options, sft_file **out, sft_error *err);

/* Names from a listing, in its order, kept until it has ended. */
typedef struct sfti_ds_listed {
    struct sfti_ds_listed *next;
    int64_t mtime_s;
    char name[];
} sfti_ds_listed;

/* Empty when zeroed, but for the arena's allocator. Freeing the arena frees it. */
typedef struct sfti_ds_listing {
    sfti_arena arena;
    sfti_ds_listed *first, *last;
    bool full; /* out of memory */
} sfti_ds_listing;

/* "<folder>/<name>", or the name alone where folder is "". False when out of memory. */
bool sfti_ds_listing_put(sfti_ds_listing *listing, const char *folder, const char *name,
                         int64_t mtime_s);
/* List a folder; `each` returns the result of sfti_ds_listing_put for names to keep, else true. */
sft_code sfti_ds_listing_fill(sfti_ds_listing *listing, const sft_storage *storage,
                              const char *folder, sft_stored_fn each, void *ctx, sft_error *err);

/* ── removal.c ── */

/* Whether a file is a shard or a segment that we wrote, by its name and by its __metadata__. */
bool sfti_ds_is_ours(const sft_storage *storage, const char *name);

/* Removes what a replaced manifest named, where that is ours; errors are warnings. Zeroed except
 * storage, warn (may be NULL) and warn_ctx. */
typedef struct sfti_ds_removal {
    const sft_storage *storage;
    sft_warn_fn warn;
    void *warn_ctx;
    size_t kept; /* files that are not ours */
    char first[SFTI_SEGMENT_FILE_NAME];
} sfti_ds_removal;
void sfti_ds_removal_of(sfti_ds_removal *r, const char *name); /* a shard or a segment */
/* An index: a file, or a folder as which Spark writes it, with what is Spark's in it. */
void sfti_ds_removal_index(const sfti_ds_removal *r, const char *name);
/* Removes the caller's own job's folder with all in it ("": none), and warns of files that stay. */
void sfti_ds_removal_end(const sfti_ds_removal *r, const char *folder);

/* Remove our files from a job's folder, then the folder if it is empty. *kept (if not NULL) counts
 * files that are not ours. */
sft_code sfti_ds_job_remove(const sft_storage *storage, const char *folder, uint64_t *kept,
                            sft_error *err);
/* Whether a name is a temporary file of the manifest or of a segment. */
bool sfti_ds_is_temporary(sft_span name);
/* Whether a file in a job's folder, or in an index that is a folder, is ours. */
bool sfti_ds_job_owns(const char *folder, const char *name);

#endif
