/* Compaction rewrites groups of neighbouring shards and is a commit itself. compact.c runs it;
 * compact_kv.c and compact_batch.c plan and write the groups of a KV or batch dataset, using
 * compact_shard.c (one new shard), compact_order.c (the order of names in it), compact_nodes.c and
 * compact_rows.c (rows of a batch). */
#ifndef SFTI_DATASET_COMPACT_H
#define SFTI_DATASET_COMPACT_H

#include "dataset/commit/swap.h"
#include "dataset/write/sink.h"

/* Keys of one shard that a later one shadows, in ascending order. */
typedef struct compact_keys {
    sft_span *key;
    size_t count, cap;
} compact_keys;

/* Shards [first, end) in the order of samples are rewritten. */
typedef struct compact_group {
    size_t first, end;
    uint64_t into; /* by as many */
    uint64_t rows; /* batch mode: without padding and deleted ones */
    uint64_t held; /* batch mode: with padding */
} compact_group;

typedef struct compaction {
    const sft_storage *storage;
    const sft_job *job;
    sft_compact_options options;
    sft_open_options open;
    sft_allocator alloc;
    sfti_arena arena;
    sft_dataset *dataset;
    sfti_ds_swap swap;
    sfti_ds_manifest next;
    sfti_ds_segments segments; /* all of the next manifest */
    bool reform;               /* the manifest changes even if no shard does */
    sft_buffer masks;          /* of rows that stay deleted */
    sft_buffer places;         /* of columns that stay in other files */
    sfti_ds_shard *shards; /* of the next manifest, in the order of samples */
    size_t count;
    compact_keys *shadowed; /* by shard, in the order of samples */
    compact_group *groups;
    size_t group_count;
    uint64_t batch;  /* batch mode: rows of a batch */
    const char *why; /* batch mode: why nothing was merged */
    char uuid[37], folder[SFTI_JOB_FOLDER]; /* "" where names cannot be moved */
    uint64_t dropped, rewritten, after; /* after: shards */
    sft_error *err;
} compaction;

/* ── compact_shard.c ── */

/* SFT_DATASET_SHARD unless a file that is to be rewritten has this digest (NULL: unknown): what was
 * damaged would get a new one. */
sft_code sfti_compact_intact(const compaction *c, const char *name, const char *sha256);

/* Names of a new shard that replaces `first`: the final one, and the one until the commit. */
sft_code sfti_compact_name(compaction *c, const sft_dataset_shard *first, char **name,
                           char stored[SFTI_STORED_NAME]);
/* Write the parts as `stored`. valid != samples: the metadata says how many rows are padding.
 * order: the value of SFTI_DATASET_ORDER; empty: none. */
sft_code sfti_compact_save(compaction *c, const sft_part *parts, size_t count, const char *mode,
                           uint64_t samples, uint64_t valid, sft_span order, const char *stored,
                           sfti_shard_sum *sum);
/* Add it to the shards of the next manifest. */
sft_code sfti_compact_facts(compaction *c, char *name, size_t tensors, uint64_t samples,
                            uint64_t valid, const sfti_shard_sum *sum);

/* ── compact_order.c ── */

/* Key of __metadata__: for each row in the order of names, the number of the original shard that it
 * came from, as hexadecimal digits of fixed width. Rows are ordered by these numbers, then names;
 * without the key by names. */
#define SFTI_DATASET_ORDER "libsafetensors.row_order"

typedef struct compact_row {
    sft_span name; /* borrowed from a file that stays open */
    uint32_t number;
} compact_row;

/* Zeroed except alloc, suffix and err. */
typedef struct compact_order {
    sft_allocator alloc;
    sft_span suffix; /* of one tensor of each row */
    compact_row *rows;
    uint32_t count, next; /* next: number of the next original shard */
    size_t cap;
    sft_buffer text;
    sft_error *err;
} compact_order;

/* Add the rows of a group's next shard, except shadowed ones. SFT_DATASET_SHARD when its own
 * SFTI_DATASET_ORDER is invalid. */
sft_code sfti_compact_order_add(compact_order *order, const sft_file *file,
                                bool (*shadowed)(const void *ctx, sft_span key), const void *ctx);
/* order->text becomes the group's SFTI_DATASET_ORDER; empty when the rows are in the order of
 * names. */
sft_code sfti_compact_order_end(compact_order *order);
void sfti_compact_order_free(compact_order *order);

/* ── compact_kv.c ── */

/* Groups of shards that have shadowed tensors or are small enough to be merged. */
sft_code sfti_compact_kv_plan(compaction *c);
/* Replaces the group by one shard, or by none if all its tensors are shadowed. */
sft_code sfti_compact_kv_write(compaction *c, const compact_group *g);

/* ── compact_nodes.c and compact_rows.c: rows of a group in batch mode ── */

typedef struct sfti_compact_rows sfti_compact_rows;

/* Open the shards of a group and compare them with these columns of the manifest. Memory is from
 * the arena, errors go to c->err. Close before the arena is freed. */
sft_code sfti_compact_rows_open(compaction *c, const compact_group *g,
                                const sfti_ds_column *columns, size_t count, sfti_arena *arena,
                                sfti_compact_rows **out);
/* The tensors of a new shard of `samples` rows: `valid` rows of the group from the first on, and
 * padding. They, and their sources, live as long as the arena and the rows. */
sft_code sfti_compact_rows_take(sfti_compact_rows *rows, uint64_t first, uint64_t valid,
                                uint64_t samples, sfti_arena *work, sft_part **parts,
                                size_t *count);
/* The same of all rows of a shard of another dataset, of which the next ones of the group are those
 * that the mask lets through, from *next on, which ascends; the others are zeros, not null. */
sft_code sfti_compact_rows_spread(sfti_compact_rows *rows, const sft_dataset_shard *shard,
                                  const sfti_ds_mask *mask, uint64_t *next, sfti_arena *work,
                                  sft_part **parts, size_t *count);
/* NULL is ignored. */
void sfti_compact_rows_close(sfti_compact_rows *rows);

/* ── compact_batch.c ── */

/* Groups of shards whose rows are divided into new batches; c->why when there are none. */
sft_code sfti_compact_batch_plan(compaction *c);
/* Replaces the group by fewer shards. */
sft_code sfti_compact_batch_write(compaction *c, const compact_group *g);
/* Gives the manifest's schema the shape of the largest batch. */
sft_code sfti_compact_batch_schema(compaction *c);

#endif
