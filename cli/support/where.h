/* --where FIELD=VALUE: which models are meant. */
#ifndef CLI_WHERE_H
#define CLI_WHERE_H

#include "cli.h"
#include "safetensors_tree.h"

typedef struct cli_where {
    sft_span field, value;
    char op; /* = equal, ~ contained, < >; letters of any case */
} cli_where;

typedef struct cli_wheres {
    cli_where items[CLI_WORDS_MOST];
    size_t count;
} cli_wheres;

/* All of --where. SFT_BAD_ARGUMENT for what is no condition, or of no known field. Tells c when
 * metadata is asked for. */
sft_code cli_where_read(cli *c, cli_wheres *out, sft_error *err);
/* Whether one of the field's values fits. Numbers compare as numbers. */
bool cli_where_fits(cli *c, const cli_where *where, const sft_node *root);
/* Whether all conditions hold. */
bool cli_wheres_fit(cli *c, const cli_wheres *wheres, const sft_node *root);
/* Whether text contains word, letters of any case. */
bool cli_text_has(sft_span text, sft_span word);

#endif
