/* Lines that fit the terminal. */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include "support/cli.h"

/* Columns of the terminal that the output goes to; 0 if it goes anywhere else, which gets lines as
 * long as they are. */
size_t cli_columns(cli_out *out);

typedef struct cli_fit {
    cli *c;
    sft_buffer text;
    size_t columns, indent;
} cli_fit;

/* What is printed to c->out from here to cli_fit_end is broken at spaces where a line would be
 * wider than the terminal, and continues after `indent` spaces. A word that is wider itself is cut
 * in the middle, with an ellipsis. */
void cli_fit_begin(cli_fit *fit, cli *c, size_t indent);
void cli_fit_end(cli_fit *fit);

#endif
