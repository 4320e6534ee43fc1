/* --where: conditions on the fields of a result. */
#ifndef CLI_WHERE_H
#define CLI_WHERE_H

#include "safetensors_tree.h"
#include "support/cli.h"
#include "support/fields.h"

typedef enum cli_where_op {
    CLI_WHERE_EQUAL,
    CLI_WHERE_OTHER, /* not EQUAL */
    CLI_WHERE_HAS,   /* contained */
    CLI_WHERE_LESS,
    CLI_WHERE_MORE,
    CLI_WHERE_MOST,  /* LESS or EQUAL */
    CLI_WHERE_LEAST  /* MORE or EQUAL */
} cli_where_op;

typedef struct cli_where {
    sft_span field, value;
    bool joined; /* values are words with '+' between */
    cli_where_op op;
    cli_field_type type; /* of the value; never ANY */
    double number, half; /* a number, and what rounding to its digits may have changed */
} cli_where;

typedef struct cli_wheres {
    cli_where items[CLI_WORDS_MOST];
    size_t count;
} cli_wheres;

/* All of --where. SFT_BAD_ARGUMENT for what is no condition, of no known field, of a value that
 * the field never has, or of a comparison that makes no sense. Tells c when metadata is asked
 * for. */
sft_code cli_where_read(cli *c, cli_wheres *out, sft_error *err);
/* Whether one of the field's values fits. */
bool cli_where_fits(cli *c, const cli_where *where, const sft_node *root);
/* Whether all conditions hold. */
bool cli_wheres_fit(cli *c, const cli_wheres *wheres, const sft_node *root);
/* Whether text contains word, letters of any case. */
bool cli_text_has(sft_span text, sft_span word);

/* For tables of options; and a paragraph that tells all this. */
#define CLI_WHERE_HELP "only models that match; also != ~ (contains) < <= > >=, in quotes"
#define CLI_WHERE_ABOUT \
    "--where FIELD=VALUE keeps the models whose field has that value, ignoring case of ASCII " \
    "letters; in a list, one matching item is enough. != keeps the others, including those " \
    "without a value; " \
    "FIELD= keeps those without a value, FIELD!= those with one. ~ means contains. < <= > >= " \
    "compare numbers and dates; quote them, or the shell treats < and > as redirections. " \
    "Numbers may have units: K, M, B and T, for sizes KB, MB, GB and TB (powers of 1000) or " \
    "KiB, MiB, GiB and TiB (of 1024). A number with a unit equals what rounds to it, as sizes " \
    "are shown: parameters=7B also means 6.74 billion, and so does >=7B. A date may be " \
    "shortened: date=2024-05 is all of May 2024. Several conditions must all hold."

#endif
