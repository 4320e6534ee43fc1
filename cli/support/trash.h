/* The trash: models go there with everything that is their own, and desktops bring them back. */
#ifndef CLI_TRASH_H
#define CLI_TRASH_H

#include "support/companions.h"
#include "support/moves.h"

/* All of a unit to the trash of its file system, or none of it: by the Trash specification of
 * freedesktop.org (its home folder, else $topdir/.Trash/UID or .Trash-UID), or the system's own
 * bin. `also`, or NULL, is moved with it, or stays with it; after it if the system has a bin.
 * *blame is the path that a failure is about. */
sft_code cli_trash_unit(cli *c, const cli_unit *unit, const cli_moves *also, const char **blame,
                        sft_error *err);

#endif
