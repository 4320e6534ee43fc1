/* A sink that hashes what it forwards, and sinks that are finished later. */
#ifndef SFTI_DATASET_SINK_H
#define SFTI_DATASET_SINK_H

#include "dataset/dataset.h"

/* Sinks that have all their bytes and are finished later, oldest first, while other files are
 * written: most of their bytes have reached the disk by then. */
#define SFTI_UNFINISHED 8
typedef struct sfti_finish_queue {
    sft_sink sink[SFTI_UNFINISHED];
    size_t count, most; /* most 0: each is finished at once */
} sfti_finish_queue;

/* Finish the oldest sinks until `most` are left; abandons all when one fails. */
sft_code sfti_finish_queue_run(sfti_finish_queue *queue, size_t most, sft_error *err);
void sfti_finish_queue_abandon(sfti_finish_queue *queue);

/* Digest and size of a whole file. */
typedef struct sfti_shard_sum {
    char sha256[65];
    uint64_t bytes;
} sfti_shard_sum;

/* A sink that buffers small writes and hashes what it forwards to inner. Owns inner, also on
 * failure. Its finish fills *sum and gives inner to the queue (NULL: finishes inner). threads: of
 * a job; with more than one, large writes are hashed beside writing. */
sft_code sfti_sum_sink(sft_sink inner, sfti_shard_sum *sum, sfti_finish_queue *queue,
                       uint32_t threads, const sft_allocator *alloc, sft_sink *out,
                       sft_error *err);

#endif
