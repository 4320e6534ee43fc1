/* The fields of a result of `info` (docs/json-info.md), by the names that -f and --where take. */
#ifndef CLI_FIELD_TABLE_H
#define CLI_FIELD_TABLE_H

#include "support/words.h"

/* What the values of a field are, and so what they can be compared with. */
typedef enum cli_field_type {
    CLI_FIELD_TEXT = 0,
    CLI_FIELD_NUMBER,
    CLI_FIELD_BYTES,
    CLI_FIELD_DATE, /* ISO 8601 */
    CLI_FIELD_BOOL,
    CLI_FIELD_ANY   /* each value says what it is: metadata */
} cli_field_type;

/* A field: its path from the result, or from `model` of the result. */
typedef struct cli_field_place {
    bool in_model;
    sft_span path;
    cli_field_type type;
    size_t fact; /* whose value it is; SFT_FACT_COUNT: none */
} cli_field_place;

/* "rank" is adapter.rank.mode, "name" model.name; a longer name is the path itself. Keys of free
 * objects (metadata) are not checked. False if no result can have such a field. */
bool cli_field_place_of(sft_span name, cli_field_place *out);
/* ": did you mean \"NAME\"?" for an unknown name, or ""; text is in the guess. */
const char *cli_field_guess(cli_guess *guess, sft_span name);
/* Names to choose from: facts, short names, and paths down to the third member. */
typedef void (*cli_field_fn)(void *ctx, const char *name);
void cli_field_each(cli_field_fn take, void *ctx);

#endif
