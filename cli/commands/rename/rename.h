/* rename: of a model in several files. */
#ifndef CLI_RENAME_H
#define CLI_RENAME_H

#include "support/cli.h"

/* Give tensors of a model with an index other names (from, to): the shards that have them are
 * written under fresh names, then the index, then the old shards go. With -o DIR all of the
 * model is written to a new folder. */
sft_code rename_set(cli *c, const char *index, const sft_set *set, const sft_pair *names,
                    size_t count, sft_error *err);

#endif
