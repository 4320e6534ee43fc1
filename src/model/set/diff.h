/* Comparing two models: types shared by the walk over names, the comparison of values and the
 * result. */
#ifndef SFTI_SET_DIFF_H
#define SFTI_SET_DIFF_H

#include "base/mem.h"
#include "safetensors_diff.h"
#include "safetensors_set.h"

/* A pair that differs: its number among those of all shards, on each side. */
#define SFTI_NO_PAIR UINT32_MAX
typedef struct sfti_diff_pair {
    uint32_t a, b;
} sfti_diff_pair;

/* The pairs of all shards of a set, numbered through. */
typedef struct sfti_diff_side {
    const sft_set *set;
    uint32_t *first; /* of each shard, and behind the last */
} sfti_diff_side;

struct sft_diff {
    sfti_arena arena; /* holds everything below, and the result itself is from its allocator */
    sft_diff_options options;
    sft_diff_tensor *tensors;
    size_t count;
    sfti_diff_side sides[2];
    sfti_diff_pair *pairs;
    size_t pair_count;
    uint64_t equal, close, changed, removed, added;
    double elements, apart; /* of all tensors, and of those that differ */
    double max_abs, max_rel;
};

/* Sums over the values of two tensors that are finite: of squares, of products, of squares of
 * distances. */
typedef struct sfti_diff_sums {
    double aa, bb, ab, dd;
    uint64_t count;
} sfti_diff_sums;

/* A comparison under way: windows over two tensors, and the job's progress. */
typedef struct sfti_diff_run {
    const sft_set *sets[2];
    const sft_diff_options *options;
    const sft_job *job;
    uint8_t *window[2]; /* SFTI_DIFF_WINDOW each */
    double *values[4];  /* of both tensors, then both distances: SFTI_DIFF_VALUES each */
    sfti_diff_sums sums; /* of the tensors that are compared now */
    uint64_t done, total;
} sfti_diff_run;

#define SFTI_DIFF_WINDOW ((size_t)1 << 20)
#define SFTI_DIFF_VALUES 2048

/* Compares the data of two tensors of the same shape into out, whose counts are zero. *same:
 * whether they have the same dtype and bytes. files: the files that hold them. */
sft_code sfti_diff_data(sfti_diff_run *run, const sft_file *const files[2],
                        const sft_tensor *a, const sft_tensor *b, sft_diff_tensor *out,
                        bool *same, sft_error *err);

#endif
