/* The shard writer: writer.c hands rows to batch.c or kv.c, which read them from Arrow
 * (row_values.c), gather them (gather.c) as pieces of Arrow's memory (pieces.c) and write them to
 * files (shard_file.c), cast if needed (cast.c), through a sink that hashes (sink.c). */
#ifndef SFTI_DATASET_SHARD_WRITER_H
#define SFTI_DATASET_SHARD_WRITER_H

#include "base/names.h"
#include "dataset/arrow/arrow.h"
#include "dataset/dataset.h"
#include "dataset/write/sink.h"

/* ── pieces.c: Arrow's memory by reference ── */

/* A batch that is kept until its rows are written. */
typedef struct shard_held {
    struct shard_held *next;
    struct ArrowArray array;
    uint64_t live;    /* KV: its tensors that are still to be written */
    sft_buffer loose; /* elements that are not packed in Arrow's memory */
} shard_held;

typedef struct shard_piece {
    const shard_held *held; /* NULL: zeros */
    const char *bytes;      /* NULL: at `at` of held->loose */
    size_t at;
    uint64_t len;
} shard_piece;

typedef struct shard_pieces {
    shard_piece *items;
    size_t count, cap;
} shard_pieces;

/* The current address of a piece's bytes. */
const char *sfti_piece_bytes(const shard_piece *piece);
/* Append a piece; one that continues the last piece extends it. False when out of memory. */
bool sfti_pieces_put(shard_pieces *pieces, shard_piece piece, const sft_allocator *alloc);
void sfti_pieces_free(shard_pieces *pieces, const sft_allocator *alloc);

/* ── cast.c ── */

/* As sft_cast, but a value that is lost is SFT_CAST_VALUE: a fraction in an integer, anything but 0
 * and 1 in BOOL, a finite number too large for a float, an infinity in a float without one.
 * truncate: round to F16 and BF16 as the connector does (through F32, towards zero, F16 subnormals
 * to zero, too large to an infinity). */
sft_code sfti_ds_cast(sft_dtype from, const void *in, sft_dtype to, void *out, uint64_t count,
                      bool truncate, uint64_t *element, sft_error *err);

/* ── The writer ── */

/* Rows of an array; null: rows that it has no place for, because what is around them is null. */
typedef struct shard_range {
    uint64_t begin, count;
    bool null;
} shard_range;

/* A node of the columns: sfti_ds_columns.node of the same number. */
typedef struct shard_column {
    const sfti_ds_node *node;
    const sfti_ds_column *asked;
    const sfti_ds_column *was; /* of the dataset that is appended to; NULL: none or unknown */
    sfti_arrow_type type;     /* PLAIN, ARRAY, BYTES */
    sfti_arrow_tensor tensor; /* TENSOR */
    uint64_t elements;        /* of the shape asked for */
    uint64_t ask;             /* rows to request at once: many where rows are contiguous */
    const struct ArrowArray *array; /* of the current batch */
    shard_range *ranges;            /* of it, that are still to be gathered */
    size_t range_count, range_cap;
    /* of the next file; unused in KV mode */
    bool begun;
    sft_dtype from, dtype;
    uint32_t rank;
    uint64_t shape[SFT_MAX_RANK + 1]; /* rows, then that of a sample */
    uint64_t row_elements, row_bytes; /* as they come */
    shard_pieces pieces;
    bool listed;      /* text, bytes, or lists whose lengths the type leaves open */
    bool runs;        /* and many of them are read at once: sfti_arrow_run */
    bool varying;     /* listed, and not all rows so far have one length */
    bool padded;      /* rows of padding are rows of it */
    bool chained;     /* an ARRAY whose numbers are gathered in the nodes of its chain */
    uint64_t rows;    /* so far */
    sft_buffer ends;  /* listed: rows + 1 numbers of 64 bits, as <name>.offsets */
    sft_buffer valid; /* a byte a row, as <name>.valid; empty until a row is null */
} shard_column;

/* One or more rows of a column. */
typedef struct shard_value {
    sft_dtype from;
    uint64_t rows, elements, len; /* elements of one row, bytes of all */
    uint64_t bytes;               /* KV: in the file */
    uint32_t rank;
    const uint64_t *shape; /* per sample */
    shard_piece piece;
    sfti_arrow_rows buffer;
} shard_value;

typedef struct kv_entry {
    sft_spec spec; /* name and shape from kv.arena */
    shard_piece piece;
    shard_held *held;
    uint64_t bytes; /* in the file */
    sft_dtype from;
    bool dead; /* a later row has its name */
} kv_entry;

typedef struct shard_kv {
    sfti_arrow_type key;
    sfti_arena arena; /* of the file to come */
    kv_entry *entries; /* row by row, one entry a column */
    size_t count, cap;
    sfti_arena names_arena;
    sfti_names names;
    size_t names_cap;
    uint64_t seed[2];
    const uint64_t **shapes; /* the last shape of each column, shared by most rows */
    uint32_t *ranks;
    shard_value *values; /* of the row at hand */
    uint64_t first_row;
    uint64_t tensors, samples, data; /* that live */
    uint64_t text;                   /* of their header entries, without the offsets' digits */
    uint64_t weight;                 /* bytes of all entries, dead ones included */
} shard_kv;

struct sft_shard_writer {
    sft_allocator alloc;
    const sft_dataset_options *options;
    const sft_storage *storage;
    sfti_arena arena;
    sfti_ds_columns columns;
    size_t children; /* of a batch */
    shard_column *column; /* columns.node_count; in KV mode these are the columns */
    sft_span job_text;
    sfti_ds_job job;
    char uuid[37]; /* of this attempt */
    uint64_t partition, file;
    sft_code failed; /* only abandon is left */
    uint64_t rows;   /* of the batches before the current one */
    uint64_t gathered, file_row; /* batch mode: rows of the next file, number of the first */
    uint64_t dropped;
    shard_held *held, **held_end;
    shard_kv kv;
    sfti_ds_receipt *receipts;
    size_t receipt_count, receipt_cap;
    const char *pending; /* a file that may exist without a receipt */
    sfti_finish_queue unfinished; /* files with a receipt that may not exist yet */
    sft_buffer scratch; /* of a tensor's shape */
    char *cast_buffer; /* input and output of a cast; NULL until needed */
    uint64_t done, ticked;
};

/* ── pieces.c, for the writer ── */

/* Move a batch into the list. */
sft_code sfti_shard_hold(sft_shard_writer *w, struct ArrowArray *batch, shard_held **out,
                         sft_error *err);
/* Release all batches but one (NULL: all). */
void sfti_shard_release(sft_shard_writer *w, const shard_held *but);
/* Release the memory of a batch with nothing left to write; it stays in the list. */
void sfti_shard_release_one(shard_held *held);

/* ── row_values.c ── */

/* "column "x", row 3: " and the inner message. */
sft_code sfti_shard_row_fail(sft_error *err, sft_code code, sft_span column, uint64_t row,
                             const sft_error *inner);
/* Replace the element that a cast's message names. */
void sfti_shard_element(sft_error *inner, uint64_t element);

/* At most `most` rows of node k from row i of its array on, as sfti_arrow_elements. */
sft_code sfti_shard_values(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i,
                           uint64_t most, shard_value *out, sft_error *err);
/* Whether rows with this dtype in the file fit the dataset that is appended to. */
sft_code sfti_shard_agrees(const shard_column *c, sft_dtype dtype, uint32_t rank,
                           const uint64_t *shape, sft_error *err);
/* As many of `most` rows from row i on, none of them null, as sfti_arrow_run takes; of text, as are
 * UTF-8. */
sft_code sfti_shard_run(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i, uint64_t most,
                        uint64_t from, sft_buffer *ends, shard_piece *out, uint64_t *rows,
                        sft_error *err);
/* Row i of text or bytes, which must not be null. The message names no column and row yet. */
sft_code sfti_shard_bytes(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i,
                          shard_piece *out, sft_error *err);
/* Check a batch before its first row is read, and find the nodes' arrays. */
sft_code sfti_shard_check(sft_shard_writer *w, const struct ArrowArray *batch, sft_error *err);

/* ── shard_file.c ── */

#define SHARD_CAST_CHUNK 16384 /* elements; a multiple of 8, so that any dtype ends with a byte */
#define SHARD_CAST_BYTES ((size_t)2 * 8 * SHARD_CAST_CHUNK)

typedef struct shard_file {
    sft_shard_writer *w;
    sft_job job;
    sft_plan *plan;
    sft_writer *out;
    sfti_ds_receipt receipt;
    sfti_shard_sum sum;
} shard_file;

/* Begin a file of these tensors, which are put in the order of the plan. */
sft_code sfti_shard_file_begin(sft_shard_writer *w, const sft_spec *specs, size_t count,
                               uint64_t samples, uint64_t valid, const sft_job *job,
                               shard_file *file, sft_error *err);
/* Write the next pieces of tensor i, cast to its dtype. SFT_CAST_VALUE: *element of the tensor does
 * not fit the dtype. */
sft_code sfti_shard_file_put(shard_file *file, size_t i, const shard_piece *pieces, size_t count,
                             sft_dtype from, uint64_t *element, sft_error *err);
/* Finish the file and keep its receipt; columns are copied. */
sft_code sfti_shard_file_end(shard_file *file, const sfti_ds_column *columns, sft_error *err);
void sfti_shard_file_abandon(shard_file *file);

/* ── gather.c: rows into the file to come ── */

/* Rows of all columns. */
sft_code sfti_gather_rows(sft_shard_writer *w, shard_held *held, uint64_t row, uint64_t count,
                          sft_error *err);
/* Rows of padding. */
sft_code sfti_gather_padding(sft_shard_writer *w, uint64_t rows, sft_error *err);
/* Give nodes without rows what their type says of them. */
sft_code sfti_gather_end(sft_shard_writer *w, sft_error *err);
/* Number of elements before row `row` of a node with offsets. */
uint64_t sfti_gather_end_of(const shard_column *c, uint64_t row);
/* The row of the batch's struct, in the file, in which row `row` of a node is. */
uint64_t sfti_gather_row_of(const sft_shard_writer *w, size_t k, uint64_t row);
/* Whether a node has tensors in the file: not that of a chain which is not in use. */
bool sfti_gather_used(const sft_shard_writer *w, size_t k);

/* ── batch.c, kv.c ── */

sft_code sfti_batch_append(sft_shard_writer *w, shard_held *held, const sft_job *job,
                           sft_error *err);
/* Handle the last rows as the options say. */
sft_code sfti_batch_end(sft_shard_writer *w, const sft_job *job, sft_error *err);

sft_code sfti_kv_begin(sft_shard_writer *w, const struct ArrowSchema *schema, sft_error *err);
sft_code sfti_kv_append(sft_shard_writer *w, shard_held *held, const sft_job *job,
                        sft_error *err);
sft_code sfti_kv_end(sft_shard_writer *w, const sft_job *job, sft_error *err);
void sfti_kv_free(sft_shard_writer *w);

#endif
