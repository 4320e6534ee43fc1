/* Metadata that name tensors (keys/renamed.h), in all files of a model. */
#ifndef CLI_RENAMED_H
#define CLI_RENAMED_H

#include "support/parts.h"

/* A pair of a file of a model, and what it becomes; now.key.data NULL: it goes. */
typedef struct cli_changed_pair {
    uint32_t shard;
    sft_pair old, now;
} cli_changed_pair;

/* The records of aliases in a model's files, in their order: key and value of each, and the file
 * it is in. */
typedef struct cli_aliases {
    sft_pair *pairs;
    uint32_t *shard;
    size_t count;
} cli_aliases;

sft_code cli_aliases_of(const sft_set *set, sfti_arena *arena, cli_aliases *out, sft_error *err);
/* The same of one file. */
sft_code cli_aliases_of_file(const sft_file *file, sfti_arena *arena, cli_aliases *out,
                             sft_error *err);

/* In the order of keys, each once: the first counts. */
sft_code cli_aliases_once(cli_aliases *aliases, sfti_arena *arena, sft_error *err);
/* Parts and, behind them, their other names. */
sft_code cli_aliases_add(const cli_aliases *aliases, sfti_arena *arena, const sft_part **parts,
                         size_t *count, sft_error *err);

/* Those that change if tensors and aliases get these names (old and new, tensors in the set's
 * order). Errors as of sfti_renamed_pair. */
sft_code cli_renamed_pairs(const sft_set *set, const sft_pair *names, size_t count,
                           const sft_pair *aliases, size_t alias_count, sfti_arena *arena,
                           cli_changed_pair **out, size_t *out_count, sft_error *err);
/* The metadata of parts from here on, without digests that do not hold any more. */
sft_code cli_parts_change(cli *c, cli_parts *parts, bool one_file, const cli_changed_pair *changed,
                          size_t count, sft_error *err);

#endif
