/* What the verbs of `dataset` say to people, from the results of the library. */
#ifndef CLI_DATASET_H
#define CLI_DATASET_H

#include "safetensors_dataset.h"
#include "support/cli.h"

/* The facts of a dataset alone; and as a result, with a blank line between results. */
void dataset_label(cli *c, const char *path, const sft_node *result);
void dataset_print_info(cli *c, const char *path, const sft_node *result);
void dataset_print_verify(cli *c, const char *path, const sft_node *result);
void dataset_print_versions(cli *c, const char *path, const sft_node *result);
void dataset_print_gc(cli *c, const char *path, const sft_node *result);
void dataset_print_compact(cli *c, const char *path, const sft_node *result);
void dataset_print_delete(cli *c, const char *path, const sft_node *result);
void dataset_print_add(cli *c, const char *path, const sft_node *result);

/* One of the shards whose tensors are listed. */
typedef struct dataset_listed {
    const char *path, *name; /* of the dataset, of the shard */
    const sft_file *file;
    const sft_dataset_replaced *replaced;
    size_t shard; /* its number */
    uint64_t deleted; /* of its rows in batch mode, which are rows of each tensor */
} dataset_listed;

/* The tensors of one shard that --match takes, a line each; the first is preceded by a header. */
void dataset_print_shard(cli *c, const dataset_listed *shard);

#endif
