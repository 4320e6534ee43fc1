/* Which values a field has. */
#ifndef CLI_FIELD_VALUES_H
#define CLI_FIELD_VALUES_H

#include "support/cli.h"
#include "support/field_table.h"

/* SFT_BAD_ARGUMENT for a value that the field never has. If the field has other values than those
 * that are known, a note on a likely misspelling is all. */
sft_code cli_field_check(cli *c, const cli_field_place *place, sft_span value, sft_error *err);

#endif
