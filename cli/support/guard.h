/* That no change of another process is lost or read half: what is replaced is locked, and what was
 * read is looked at again before anything is published. The steps are in bytes/hold.h. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "support/cli.h"

/* For one command; from here on it is asked. */
void cli_guard_begin(cli *c);
void cli_guard_end(cli *c);

/* Step 1, of what is changed in place, or replaced by -o (cli_output_begin); until
 * cli_guard_forget. After an interrupted edit was recovered, which takes the lock for itself. A
 * file that is locked already, or is not there, is none. Nothing in a dry run, and nothing with
 * --in-place-unsafe, which is for storages that cannot remove what is open. */
sft_code cli_guard_lock(cli *c, const char *path, sft_error *err);
/* Step 3: what is opened between the two is an input. They nest. */
void cli_guard_watch(cli *c);
void cli_guard_watched(cli *c);
/* One model of several is done: its locks end. */
void cli_guard_forget(cli *c);

#endif
