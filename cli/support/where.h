/* --where FIELD=VALUE: which models are meant. */
#ifndef CLI_WHERE_H
#define CLI_WHERE_H

#include "cli.h"
#include "safetensors_tree.h"

typedef struct cli_where {
    sft_span field, value;
    char op; /* = equal, ~ contained, < >; letters of any case */
} cli_where;

/* SFT_BAD_ARGUMENT when it is no condition, or of no known field. */
sft_code cli_where_parse(const char *text, cli_where *out, sft_error *err);
/* Whether one of the field's values fits. Numbers compare as numbers. */
bool cli_where_fits(cli *c, const cli_where *where, const sft_node *root);
/* Whether text contains word, letters of any case. */
bool cli_text_has(sft_span text, sft_span word);

#endif
