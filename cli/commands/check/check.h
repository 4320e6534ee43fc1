/* The parts of check: what it says to people, values, models with an index. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "support/cli.h"

/* "PATH: byte N: expected ..., found ...; hint". */
extern const char *const cli_level_names[]; /* by sft_level */
void cli_verdict_line(cli *c, const char *path, const sft_error *err);
/* --explain: verdict, every finding with its rule, every note. */
void cli_explain(cli *c, const char *path, const sft_scan *scan);
/* The rule a code breaks, in the words of docs/format.md. */
void cli_explain_rule(cli *c, const sft_error *err);
/* First sentence of a rule ("R22") in docs/format.md, without its full stop, or NULL. */
const char *cli_rule_sentence(const char *rule);
/* NaN and infinities: a line if there are any (or verbose). */
void cli_deep_line(cli *c, const char *path, const sft_set *set, const sft_deep_counts *deep,
                   bool always);

/* Look at every value of an open model; the status becomes 1 when there are NaN or
 * infinities. */
sft_code cli_check_values(cli *c, const char *path, const sft_set *set, sft_deep_counts *deep,
                          sft_error *err);

/* Check a model in another format; false, and nothing is printed, if it is in none that is read. */
bool cli_check_import(cli *c, const char *path);

/* Check a model with an index: each shard, then how they fit together. */
void cli_check_set(cli *c, const cli_input *input);

#endif
