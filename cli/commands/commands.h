/* The commands by group, in the order of the help: NAME is cmd_NAME.c, which defines
 * cli_NAME_command. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "support/cli.h"
#include "safetensors_report.h"

#define CLI_INSPECT(X) \
    X(info) X(ls) X(find) X(check) X(cat) X(hash) X(dup) X(diff) X(catalog) \
    X(records)
#define CLI_EDIT(X) X(meta) X(rename) X(repair) X(add) X(put) X(rm_tensor)
#define CLI_CONVERT(X) X(convert) X(split) X(merge) X(select) X(lora)
#define CLI_COLLECT(X) X(mv) X(note) X(trash) X(thumbnail)
#define CLI_DATASETS(X) X(dataset)
#define CLI_COMMANDS(X)                                                                          \
    CLI_INSPECT(X) CLI_EDIT(X) CLI_CONVERT(X) CLI_COLLECT(X) CLI_DATASETS(X) X(help)

#define CLI_DECLARE(name) extern const cli_command cli_##name##_command;
CLI_COMMANDS(CLI_DECLARE)

/* select, by names: the model operands[0] without the tensors the others name: where it is, or to
 * -o. */
void cli_select_without(cli *c, char **operands, size_t count);
/* check --deep: looks at every value of an open model; the status becomes 1 if there are NaN or
 * infinities. */
sft_code cli_check_values(cli *c, const char *path, const sft_set *set, sft_deep_counts *deep,
                          sft_error *err);
/* What it found, if anything, or with --explain. */
void cli_deep_line(cli *c, const char *path, const sft_set *set, const sft_deep_counts *deep);
/* diff --merge-of. */
void cli_diff_mixture(cli *c, char **operands, size_t count);
/* The version of what thumbnail decodes pictures with; NULL: the system has none. */
const char *cli_thumbnail_library(void);
/* safetensors self-test FOLDER: what this system does with files, as a report to be sent. All of it
 * happens in a new folder of this one, which is removed again. */
void cli_self_test(cli *c, const char *folder);

#endif
