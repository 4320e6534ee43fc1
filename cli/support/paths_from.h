/* --files-from: operands that stand in a list. */
#ifndef CLI_PATHS_FROM_H
#define CLI_PATHS_FROM_H

#include "support/cli.h"

/* The operands with the paths of the list of --files-from where the option stood; what they point
 * to is kept in the arena. SFT_BAD_ARGUMENT tells what in the list is no path, SFT_FILE_TOO_LARGE
 * a list beyond the bounds. */
sft_code cli_paths_from(cli *c, char ***operands, size_t *count, sfti_arena *arena,
                        sft_error *err);

#endif
