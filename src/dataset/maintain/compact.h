/* Compacting: shards are written anew, in groups of neighbours, as one more commit. compact.c
 * has KV datasets and the commit, compact_batch.c rows that are put into batches again,
 * compact_order.c the order of rows in a shard that takes the place of several. */
#ifndef SFTI_DATASET_COMPACT_H
#define SFTI_DATASET_COMPACT_H

#include "dataset/dataset.h"
#include "safetensors_hash.h"

/* Keys of one shard that a later one has again, in ascending order. */
typedef struct compact_lost {
    sft_span *keys;
    size_t count, room;
} compact_lost;

/* Shards [first, end) in the order of samples are written anew. */
typedef struct compact_group {
    size_t first, end;
    uint64_t rows; /* batch mode: without padding */
} compact_group;

typedef struct compacting {
    const sft_storage *storage;
    const sft_job *job;
    sft_allocator alloc;
    sfti_arena arena;
    sft_dataset *dataset;
    sfti_ds_swap swap;
    sfti_ds_manifest next;
    sfti_ds_shard *shards; /* of the next manifest, in the order of samples */
    size_t count;
    compact_lost *lost; /* by shard, in the order of samples */
    compact_group *groups;
    size_t group_count;
    const char *why; /* batch mode: nothing, or not all, could be put together */
    sft_warn_fn warn;
    void *warn_ctx;
    bool unknown; /* whether it was published could not be told */
    char uuid[37], folder[48];
    uint64_t dropped, rewritten, before;
    sft_error *err;
} compacting;

/* A sink that hashes and counts what it forwards. */
typedef struct compact_sum {
    sft_hasher *hasher;
    uint64_t bytes;
} compact_sum;

/* ── compact.c ── */

#define COMPACT_STORED 160

/* A shard to be written, with the numbers of one that it replaces: its name, and where it lies
 * until the commit. */
sft_code sfti_compact_name(compacting *c, const sft_dataset_shard *first, char **name,
                           char stored[COMPACT_STORED]);
/* Write the parts there; sum->hasher is the caller's to free. valid != samples: rows of padding are
 * told. order: the value of SFTI_DATASET_ORDER; empty: none. */
sft_code sfti_compact_save(compacting *c, const sft_part *parts, size_t count, const char *mode,
                           uint64_t samples, uint64_t valid, sft_span order, const char *stored,
                           compact_sum *sum);
/* The next shard of the manifest. */
sft_code sfti_compact_facts(compacting *c, char *name, size_t tensors, uint64_t samples,
                            uint64_t valid, const compact_sum *sum);

/* ── compact_order.c ── */

/* Key of __metadata__: for each row of the shard, by name, which of the shards before it came
 * from, as hexadecimal digits of one width. Rows are in the order of these numbers, then names;
 * without the key in that of names. */
#define SFTI_DATASET_ORDER "libsafetensors.row_order"

typedef struct compact_row {
    sft_span name; /* borrowed from a file that stays open */
    uint32_t number;
} compact_row;

/* Zeroed but for alloc, suffix and err. */
typedef struct compact_order {
    sft_allocator alloc;
    sft_span suffix; /* of one tensor of each row */
    compact_row *rows;
    uint32_t count, room, next; /* next: number of the next shard's first */
    sft_buffer text;
    sft_error *err;
} compact_order;

/* The rows of the next shard of a group, but for lost ones. SFT_DATASET_SHARD when what it
 * tells of its order cannot be. */
sft_code sfti_compact_order_add(compact_order *order, const sft_file *file,
                                bool (*lost)(const void *ctx, sft_span key), const void *ctx);
/* order->text is what SFTI_DATASET_ORDER says of the whole group; empty when the rows are in
 * the order of names. */
sft_code sfti_compact_order_end(compact_order *order);
void sfti_compact_order_free(compact_order *order);

/* ── compact_batch.c ── */

/* Groups of shards whose rows are put into batches again; c->why when there are none. */
sft_code sfti_compact_batch_plan(compacting *c, uint64_t target);
/* Fewer shards than the group has. */
sft_code sfti_compact_batch_write(compacting *c, const compact_group *g);
/* The manifest's schema tells the shape of the largest batch. */
sft_code sfti_compact_batch_schema(compacting *c);

#endif
