/* What select does, by names. */
#ifndef CLI_SELECT_H
#define CLI_SELECT_H

#include "support/cli.h"

/* The model operands[0] without the tensors the others name: where it is, or to -o. */
void cli_select_without(cli *c, char **operands, size_t count);

#endif
