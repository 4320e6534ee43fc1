/* The fields of a result of `info` (docs/json-info.md), by the names that -f and --where take: the
 * table of them, their known values, and the values that a result has. */
#ifndef CLI_FIELDS_H
#define CLI_FIELDS_H

#include "safetensors_tree.h"
#include "support/cli.h"
#include "support/words.h"

/* ── The table ── */

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
const char *cli_field_guess(sfti_guess *guess, sft_span name);
/* Names to choose from: facts, short names, and paths down to the third member. */
typedef void (*cli_field_fn)(void *ctx, const char *name);
void cli_field_each(cli_field_fn take, void *ctx);

/* ── Known values ── */

/* SFT_BAD_ARGUMENT for a value that the field never has. If the field has other values than those
 * that are known, a note on a likely misspelling is all. */
sft_code cli_field_check(cli *c, const cli_field_place *place, sft_span value, sft_error *err);

/* ── Values of a result ── */

#define CLI_FIELDS_MOST 64

typedef struct cli_fields {
    sft_span names[CLI_FIELDS_MOST];
    size_t count;
} cli_fields;

extern const char cli_default_columns[];

/* Names between commas; SFT_BAD_ARGUMENT for one that no result has. */
sft_code cli_fields_parse(const char *list, cli_fields *out, sft_error *err);
/* Fails because of a name that no result has. */
sft_code cli_field_unknown(sft_span name, sft_error *err);

/* Whether it is metadata, or one pair of it. */
bool cli_field_is_metadata(sft_span name);

/* Calls take for each value of a field: items of lists one by one, facts as their value,
 * null not at all. False ends it. */
typedef bool (*cli_value_fn)(void *ctx, sft_span text);
void cli_field_values(cli *c, const sft_node *root, sft_span name, cli_value_fn take, void *ctx);

/* The values with tabs between; lists join with " | "; csv_safe: guarded by cli_cell_guard.
 * Returns how many were not null. */
size_t cli_fields_line(cli *c, const sft_node *root, const cli_fields *fields,
                       bool csv_safe);
/* What is for a prompt: backslashes as they are, for they escape brackets there; what moves a
 * cursor is escaped. */
void cli_pasted(cli_out *out, sft_span text);
void cli_fields_header(cli_out *out, const cli_fields *fields);
/* Tab, line end and backslash as \t \n \r \\, the rest of what moves a cursor as \xHH. */
void cli_field_text(cli_out *out, sft_span text);
/* The result object with what the fields name, and path, ok and error. How many fields were
 * not null. */
size_t cli_fields_json(cli *c, const sft_node *root, const cli_fields *fields);
/* Text of a scalar; of a list or object its JSON, kept in buffer, which the caller frees.
 * Complains when memory runs out. */
sft_span cli_node_words(cli *c, const sft_node *node, sft_buffer *buffer);

#endif
