/* What the values of a field are: what they can be compared with, and which of them there are. */
#ifndef CLI_FIELD_TYPES_H
#define CLI_FIELD_TYPES_H

#include "support/cli.h"

typedef enum cli_field_type {
    CLI_FIELD_TEXT = 0,
    CLI_FIELD_NUMBER,
    CLI_FIELD_BYTES,
    CLI_FIELD_DATE, /* ISO 8601 */
    CLI_FIELD_BOOL,
    CLI_FIELD_ANY   /* each value says what it is: metadata */
} cli_field_type;

cli_field_type cli_field_type_of(sft_span field);
/* Whether its values are words joined by '+'. */
bool cli_field_is_joined(sft_span field);

/* SFT_BAD_ARGUMENT for a value that the field never has. If the field has other values than those
 * that are known, a note on a likely misspelling is all. */
sft_code cli_field_check(cli *c, sft_span field, sft_span value, sft_error *err);

#endif
