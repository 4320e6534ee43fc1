#ifndef CLI_WIDTHS_H
#define CLI_WIDTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns of a terminal that a character takes: 0, 1 or 2. */
size_t cli_code_width(uint32_t code);

#endif
