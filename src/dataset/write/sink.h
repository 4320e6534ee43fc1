/* A sink that hashes what it forwards, and sinks that are finished later. */
#ifndef SFTI_DATASET_SINK_H
#define SFTI_DATASET_SINK_H

#include "dataset/dataset.h"

/* Sinks that have all their bytes and are finished while later files are written, oldest first:
 * by then the disk, which was told to begin, has little left to do. */
#define SFTI_UNFINISHED 8
typedef struct sfti_finish_queue {
    sft_sink sink[SFTI_UNFINISHED];
    size_t count, most; /* 0: each is finished at once */
} sfti_finish_queue;

/* Finish the oldest until `most` are left; abandons all when one fails. */
sft_code sfti_finish_queue_run(sfti_finish_queue *queue, size_t most, sft_error *err);
void sfti_finish_queue_abandon(sfti_finish_queue *queue);

/* Of a whole file. */
typedef struct sfti_shard_sum {
    char sha256[65];
    uint64_t bytes;
} sfti_shard_sum;

/* A sink over inner that gathers small writes and hashes what it forwards. Owns inner, also on
 * failure; its finish fills *sum and hands inner to the queue (NULL: finishes inner). */
sft_code sfti_sum_sink(sft_sink inner, sfti_shard_sum *sum, sfti_finish_queue *queue,
                       const sft_allocator *alloc, sft_sink *out, sft_error *err);

#endif
