/* Which inputs are one model: shards without an index, components of a pipeline, shards of a
 * dataset. */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include "support/models.h"

typedef struct cli_models {
    sfti_arena arena;
    cli_model *items;
    size_t count, capacity;
} cli_models;

/* Append the models of one operand's inputs; found: by looking into a folder, so that
 * shards and components belong together. A folder without models may be an empty
 * dataset. False when memory ran out. */
bool cli_group_inputs(cli_models *models, const cli_inputs *inputs, bool found);
/* Shards of a model that are not there, by name; false when memory ran out. */
bool cli_find_missing(cli_model *model, const sft_set_options *options, sfti_arena *arena);
/* Of model-00002-of-00003.safetensors 2, 3 and "model" with its folder. */
bool cli_shard_of(const char *path, uint64_t *shard, uint64_t *of, sft_span *base);

#endif
