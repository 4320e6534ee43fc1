/* A dataset among models. */
#ifndef CLI_SUPPORT_DATASET_H
#define CLI_SUPPORT_DATASET_H

#include "support/cli.h"
#include "safetensors_tree.h"

/* The result object of the dataset in a folder (docs/json-info.md, info). */
sft_code cli_dataset_tree(cli *c, const char *folder, sft_tree **out, sft_error *err);

#endif
