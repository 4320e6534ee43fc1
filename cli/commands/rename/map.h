/* rename: --map and --map-file, old names and new ones. */
#ifndef CLI_RENAME_MAP_H
#define CLI_RENAME_MAP_H

#include "base/mem.h"
#include "support/cli.h"

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

#endif
