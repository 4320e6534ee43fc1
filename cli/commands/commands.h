/* One of these per file cmd_<name>.c. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "support/options.h"

extern const cli_command cli_add_command;
extern const cli_command cli_cat_command;
extern const cli_command cli_check_command;
extern const cli_command cli_convert_command;
extern const cli_command cli_dataset_command;
extern const cli_command cli_diff_command;
extern const cli_command cli_dup_command;
extern const cli_command cli_find_command;
extern const cli_command cli_hash_command;
extern const cli_command cli_help_command;
extern const cli_command cli_info_command;
extern const cli_command cli_ls_command;
extern const cli_command cli_merge_command;
extern const cli_command cli_meta_command;
extern const cli_command cli_put_command;
extern const cli_command cli_rename_command;
extern const cli_command cli_repair_command;
extern const cli_command cli_rm_tensor_command;
extern const cli_command cli_select_command;
extern const cli_command cli_split_command;

#endif
