/* What the files of rename share. */
#ifndef CLI_RENAME_H
#define CLI_RENAME_H

#include "support/cli.h"

/* Names that change, old and new: of tensors, in the model's order, then of aliases. */
typedef struct cli_rename_names {
    sft_pair *pairs;
    size_t tensors, aliases;
    sft_pair *coded; /* of tensors that may be codes of quantised layers, which change or not */
    size_t coded_count;
} cli_rename_names;

/* Gives tensors of a model with an index other names: the shards that have them, or metadata that
 * name them, are written under fresh names, then the index, then the old shards go. With -o DIR all
 * of the model is written to a new folder. */
sft_code cli_rename_set(cli *c, const char *index, const sft_set *set,
                        const cli_rename_names *names, sft_error *err);
/* Refuses new names of which what lies beside the model would tell something else, or nothing. */
sft_code cli_rename_beside(cli *c, const char *path, const cli_rename_names *names,
                           sft_error *err);

#endif
