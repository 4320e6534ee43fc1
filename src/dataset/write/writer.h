/* A shard writer, between its parts, from above: writer.c gives rows to batch.c or kv.c, which
 * read them from Arrow (value.c), gather them as pieces of Arrow's memory (pieces.c) and write
 * them as files (file.c), cast on the way (cast.c), through a sink that hashes (sink.c). */
#ifndef SFTI_DATASET_SHARD_WRITER_H
#define SFTI_DATASET_SHARD_WRITER_H

#include "base/names.h"
#include "dataset/arrow/arrow.h"
#include "dataset/dataset.h"
#include "dataset/write/sink.h"

/* ── pieces.c: Arrow's memory by reference ── */

/* A batch that is kept until its rows are in a file. */
typedef struct shard_held {
    struct shard_held *next;
    struct ArrowArray array;
    uint64_t live;    /* KV: its tensors that are to be written */
    sft_buffer loose; /* elements that do not lie packed in Arrow's memory */
} shard_held;

typedef struct shard_piece {
    const shard_held *held; /* NULL: zeros */
    const char *bytes;      /* NULL: at this place of what is loose */
    size_t at;
    uint64_t len;
} shard_piece;

typedef struct shard_pieces {
    shard_piece *items;
    size_t count, cap;
} shard_pieces;

/* Where a piece's bytes are now. */
const char *sfti_piece_bytes(const shard_piece *piece);
/* One that begins where the last one ends only lengthens it. False when out of memory. */
bool sfti_pieces_put(shard_pieces *pieces, shard_piece piece, const sft_allocator *alloc);
void sfti_pieces_free(shard_pieces *pieces, const sft_allocator *alloc);

/* ── cast.c ── */

/* As sft_cast, but what does not fit is SFT_CAST_VALUE: a fraction in an integer, anything but 0
 * and 1 in BOOL, a finite number that is too large for a float, an infinity that it has not.
 * truncate: to F16 and BF16 as the connector rounds (through F32, towards zero, F16 subnormals to
 * zero, what is too large to an infinity). */
sft_code sfti_ds_cast(sft_dtype from, const void *in, sft_dtype to, void *out, uint64_t count,
                      bool truncate, uint64_t *element, sft_error *err);

/* ── The writer ── */

typedef struct shard_column {
    const sfti_ds_column *asked;
    sfti_arrow_type type;     /* PLAIN, ARRAY */
    sfti_arrow_tensor tensor; /* TENSOR */
    uint64_t elements;        /* of the shape asked for */
    uint64_t ask;             /* rows to ask for at once: many where rows lie together */
    /* of the file to come; in KV mode none of it */
    bool begun;
    sft_dtype from, dtype;
    uint32_t rank;
    uint64_t shape[SFT_MAX_RANK + 1]; /* rows, then that of a sample */
    uint64_t row_elements, row_bytes; /* as they come */
    shard_pieces pieces;
} shard_column;

/* Some rows of a column, or one. */
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
    kv_entry *entries; /* a row's beside one another, a column each */
    size_t count, cap;
    sfti_arena names_arena;
    sfti_names names;
    size_t names_cap;
    uint64_t seed[2];
    const uint64_t **shapes; /* by column: the last, which most rows share */
    uint32_t *ranks;
    shard_value *values; /* of the row at hand */
    uint64_t first_row;
    uint64_t tensors, samples, data; /* that live */
    uint64_t text;                   /* of their entries, without the offsets' digits */
    uint64_t weight;                 /* bytes of all, the dead ones counted */
} shard_kv;

struct sft_shard_writer {
    sft_allocator alloc;
    const sft_dataset_options *options;
    const sft_storage *storage;
    sfti_arena arena;
    sfti_ds_columns columns;
    size_t children; /* of a batch */
    shard_column *column;
    sft_span job_text;
    sfti_ds_job job;
    char uuid[37]; /* of this attempt */
    uint64_t partition, file;
    sft_code failed; /* only abandon is left */
    uint64_t rows;   /* of the batches before the one at hand */
    uint64_t gathered, file_row; /* batch mode: rows of the file to come, number of the first */
    uint64_t dropped;
    shard_held *held, **held_end;
    shard_kv kv;
    sfti_ds_receipt *receipts;
    size_t receipt_count, receipt_cap;
    const char *pending; /* a file that may be there and has no receipt */
    sfti_finish_queue unfinished; /* files with a receipt that may not be there yet */
    sft_buffer scratch; /* of a tensor's shape */
    char *cast_buffer; /* of both sides of a cast; NULL until needed */
    uint64_t done, ticked;
};

/* ── pieces.c, for the writer ── */

/* Take a batch over into the list. */
sft_code sfti_shard_hold(sft_shard_writer *w, struct ArrowArray *batch, shard_held **out,
                         sft_error *err);
/* Release all batches but one (NULL: all). */
void sfti_shard_release(sft_shard_writer *w, const shard_held *but);
/* Release the memory of one batch of which nothing is to be written; it stays in the list. */
void sfti_shard_release_one(shard_held *held);

/* ── value.c ── */

/* "column "x", row 3: " and what inner says. */
sft_code sfti_shard_row_fail(sft_error *err, sft_code code, sft_span column, uint64_t row,
                             const sft_error *inner);
/* A cast's message names an element; make it this one. */
void sfti_shard_element(sft_error *inner, uint64_t element);

/* Rows of column k, from row `row` of the batch on: at most `most`, as sfti_arrow_elements. */
sft_code sfti_shard_values(sft_shard_writer *w, size_t k, shard_held *held, uint64_t row,
                           uint64_t most, shard_value *out, sft_error *err);
/* Before the first row of a batch is read. */
sft_code sfti_shard_check(sft_shard_writer *w, const struct ArrowArray *batch, sft_error *err);

/* ── file.c ── */

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

/* A file of these tensors; tensors are put by their number in the plan, in that order. */
sft_code sfti_shard_file_begin(sft_shard_writer *w, const sft_spec *specs, size_t count,
                               uint64_t samples, uint64_t valid, const sft_job *job,
                               shard_file *file, sft_error *err);
/* The next pieces of tensor i, cast on the way. SFT_CAST_VALUE: *element (of the tensor) has no
 * place in the dtype. */
sft_code sfti_shard_file_put(shard_file *file, size_t i, const shard_piece *pieces, size_t count,
                             sft_dtype from, uint64_t *element, sft_error *err);
/* Publish it and keep its receipt; columns are copied. */
sft_code sfti_shard_file_end(shard_file *file, const sfti_ds_column *columns, sft_error *err);
void sfti_shard_file_abandon(shard_file *file);

/* ── batch.c, kv.c ── */

sft_code sfti_batch_append(sft_shard_writer *w, shard_held *held, const sft_job *job,
                           sft_error *err);
/* Write the tail as the options say. */
sft_code sfti_batch_end(sft_shard_writer *w, const sft_job *job, sft_error *err);

sft_code sfti_kv_begin(sft_shard_writer *w, const struct ArrowSchema *schema, sft_error *err);
sft_code sfti_kv_append(sft_shard_writer *w, shard_held *held, const sft_job *job,
                        sft_error *err);
sft_code sfti_kv_end(sft_shard_writer *w, const sft_job *job, sft_error *err);
void sfti_kv_free(sft_shard_writer *w);

#endif
