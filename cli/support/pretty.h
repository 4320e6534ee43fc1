/* JSON on indented lines. */
#ifndef CLI_PRETTY_H
#define CLI_PRETTY_H

#include "support/print.h"

/* Write a JSON text as it is spelled but for white space: members and elements on lines of their
 * own, `indent` spaces before the first level; escaped for a terminal. text must be valid
 * (cli_raw_check). */
void cli_pretty(cli_out *out, sft_span text, size_t indent);
/* Whether a text is an object or array worth that. */
bool cli_is_pretty(sft_span text);

#endif
