/* A model for people: the label. */
#ifndef CLI_INFO_LABEL_H
#define CLI_INFO_LABEL_H

#include "support/models.h"
#include "support/titles.h"

#define CLI_LABEL_COLUMNS 18 /* of a key with the space around it */
/* "  name            ", dim. */
void cli_label_key(cli *c, const char *text);
/* The label of a result object (docs/json-info.md). with_path: several models are shown. */
void cli_label(cli *c, const cli_model *model, const sft_node *root, bool with_path);
/* Digests that were computed (in a list only if asked for), and what does not agree with them. */
void cli_label_digests(cli *c, const sft_node *root, bool in_list);
/* Whether a recorded digest is wrong, without a known cause. */
bool cli_has_mismatch(const sft_node *root);
/* What the headers hold: sizes, dtypes, shards; metadata (header.c). */
void cli_header_lines(cli *c, const sft_set *set, const sft_node *root);
void cli_metadata_lines(cli *c, const sft_set *set);

/* ── What its lines are made of: lines.c ── */

#define CLI_TEXT_COLUMNS 82 /* of a value */

/* Words that are wrapped; with -v all of them, else a few lines. */
typedef struct cli_flow {
    cli *c;
    size_t column, lines;
    bool cut;
} cli_flow;
void cli_flow_word(cli_flow *flow, sft_span word, const char *before);
void cli_flow_text(cli_flow *flow, sft_span text);
void cli_flow_end(cli_flow *flow);

/* Parts with commas between after a key; nothing without parts. */
typedef struct cli_phrase {
    cli *c;
    const char *key;
    size_t count;
} cli_phrase;
cli_out *cli_phrase_next(cli_phrase *phrase);
void cli_phrase_part(cli_phrase *phrase, const char *before, sft_span text, const char *after);
void cli_phrase_end(cli_phrase *phrase);

/* A text after its key, wrapped; or on one line, which is cut without -v. Nothing for "". */
void cli_line_text(cli *c, const char *key, sft_span text);
void cli_line_one(cli *c, const char *key, sft_span text);
/* A line for each item of a list: two of its members. */
void cli_line_list(cli *c, const sft_node *list, const char *key, const char *text,
                   const char *more);
/* "  [tensors, trust 100]", and " (by file name)" for a fact that is hardly trusted. */
void cli_line_trust(cli *c, const sft_node *fact);
void cli_line_guess(cli *c, const sft_node *fact);
bool cli_is_guess(const sft_node *fact);

/* Lines that the label and -v share. */
void cli_line_civitai(cli *c, const sft_node *root);
void cli_line_merge(cli *c, const sft_node *root);
void cli_line_file(cli *c, const sft_node *root);
void cli_line_conflicts(cli *c, const sft_node *root);

/* With -v: every fact and setting, in groups (verbose.c). */
void cli_label_groups(cli *c, const cli_model *model, const sft_node *root);

#endif
