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
/* Digests that were computed (in a list only if asked for), and what does not agree with them
 * (digests.c). */
void cli_label_digests(cli *c, const sft_node *root, bool in_list);
/* ", not hashed (...)", or "" where there is something to show. */
const char *cli_not_hashed(const cli *c, const sft_node *root);
/* Whether a recorded digest is wrong, without a known cause. */
bool cli_has_mismatch(const sft_node *root);
/* "header:sshs_model_hash" is "sshs_model_hash", "sidecar:x.json:/id" is "x.json". */
void cli_source_words(cli_out *out, sft_span source);
/* What the headers hold: sizes, dtypes, shards; metadata (header.c). */
void cli_header_lines(cli *c, const sft_set *set, const sft_node *root);
void cli_metadata_lines(cli *c, const sft_set *set);
/* "kohya sd-scripts", or NULL where the id is the name. */
const char *cli_tool_words(sft_span tool);

#endif
