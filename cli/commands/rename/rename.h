/* rename: what its parts share. */
#ifndef CLI_RENAME_H
#define CLI_RENAME_H

#include "base/mem.h"
#include "support/cli.h"

/* --map and --map-file: old names and new ones. */
typedef struct rename_maps {
    sft_pair *items; /* old, new */
    bool *used;
    uint32_t *order; /* by old name */
    size_t count;
} rename_maps;

/* By the options; memory from the arena. *blame: the file that is at fault, or NULL. */
sft_code rename_maps_read(cli *c, sfti_arena *arena, rename_maps *out, const char **blame,
                          sft_error *err);
/* The pair of a name, which is used from now on, or NULL. */
const sft_pair *rename_maps_find(rename_maps *maps, sft_span name);

/* Give tensors of a model with an index other names (from, to): the shards that have them are
 * written under fresh names, then the index, then the old shards go. With -o DIR all of the
 * model is written to a new folder. */
sft_code rename_set(cli *c, const char *index, const sft_set *set, const sft_pair *names,
                    size_t count, sft_error *err);

#endif
