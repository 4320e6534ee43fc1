/* -f LIST: facts by name, for every format. */
#ifndef CLI_FIELDS_H
#define CLI_FIELDS_H

#include "safetensors_tree.h"
#include "support/cli.h"

#define CLI_FIELDS_MOST 64

typedef struct cli_fields {
    sft_span names[CLI_FIELDS_MOST];
    size_t count;
} cli_fields;

extern const char cli_default_columns[];

/* Names between commas; SFT_BAD_ARGUMENT for one that no result has. */
sft_code cli_fields_parse(const char *list, cli_fields *out, sft_error *err);
/* Whether some result can have a field of that name. */
bool cli_field_known(sft_span name);
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
