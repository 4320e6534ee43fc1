/* Commands that write take many models: each is a result of its own, atomic, and a failure does
 * not stop the rest. */
#ifndef CLI_MANY_H
#define CLI_MANY_H

#include "support/cli.h"

typedef void (*cli_write_fn)(cli *c, const char *path, void *ctx);

/* Calls `each` for the operand or, for several operands and with -r, for every model that they
 * stand for, then prints how many were changed. -o DIR/, or a folder that exists, takes the place
 * of -o FILE: the results have the names of their inputs (c->set.output is the path of each while
 * `each` runs). DIR is made if it is not there. A usage error, before anything is written, if
 * several models would have one name, or -o names a file for several. */
void cli_write_each(cli *c, char **operands, size_t count, cli_write_fn each, void *ctx);

#endif
