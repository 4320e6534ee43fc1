/* Shards by their numbers: "model-00002-of-00003.safetensors", where no index names them. */
#ifndef CLI_SHARDS_H
#define CLI_SHARDS_H

#include "support/input.h"

typedef struct cli_shard_name {
    sft_span base; /* with the folder: all before "-00001-of-00003" */
    sft_span end;  /* all after it */
    uint64_t shard, of;
    int digits;
} cli_shard_name;

bool cli_parse_shard(const char *path, cli_shard_name *out);
/* Takes model-00002-of-00003.safetensors apart: 2, 3 and "model" with its folder. */
bool cli_shard_of(const char *path, uint64_t *shard, uint64_t *of, sft_span *base);

/* Shards of the model that input i is one of, from i on, in order; list can hold all
 * that follow. Names that only begin alike may lie between. The first part of a GGUF model stands
 * for all, which reading it finds (cli_is_later_part). */
size_t cli_shards_from(const cli_inputs *inputs, size_t i, bool *taken, const cli_input **list);
/* Names of the numbered shards that are missing from the list, which has at least one; false when
 * memory ran out. */
bool cli_shards_missing(const cli_input *const *list, size_t count, const char **names,
                        size_t *missing, sfti_arena *arena);
/* Fails for a model of which so many shards are there and these are not. */
sft_code cli_fail_missing(size_t have, const char *const *missing, size_t count, sft_error *err);
/* Join numbered shards (CLI_JOIN_SHARDS), or only tell what is missing; false when memory ran
 * out. */
bool cli_join_shards(cli_inputs *inputs, bool join);

#endif
