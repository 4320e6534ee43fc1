/* What the verbs of `dataset` say to people, from the results of the library. */
#ifndef CLI_DATASET_H
#define CLI_DATASET_H

#include "safetensors_dataset.h"
#include "support/cli.h"

/* The facts of a dataset alone; and as a result, with a blank line between results. */
void dataset_label(cli *c, const char *path, const sft_node *result);
void dataset_print_info(cli *c, const char *path, const sft_node *result);
void dataset_print_verify(cli *c, const char *path, const sft_node *result);
void dataset_print_gc(cli *c, const char *path, const sft_node *result);
void dataset_print_compact(cli *c, const char *path, const sft_node *result);
/* Which tensors a later shard has again, by their number over all shards. */
typedef struct dataset_replaced {
    sfti_arena arena;
    bool *is; /* NULL: none */
    size_t count;
} dataset_replaced;

/* Reads the headers of all shards, if the manifest says that there are any. Free the arena. */
sft_code dataset_find_replaced(cli *c, const sft_dataset *dataset, dataset_replaced *out,
                               sft_error *err);

/* One of the shards whose tensors are listed. */
typedef struct dataset_listed {
    const char *path, *name; /* of the dataset, of the shard */
    const sft_file *file;
    const dataset_replaced *replaced;
    size_t first;            /* number of its first tensor */
} dataset_listed;

/* The tensors of one shard that --match takes, a line each; the first is preceded by a header. */
void dataset_print_shard(cli *c, const dataset_listed *shard);

#endif
