/* Order of rows in a shard that takes the place of several. */
#ifndef SFTI_DATASET_COMPACT_H
#define SFTI_DATASET_COMPACT_H

#include "dataset/dataset.h"

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

#endif
