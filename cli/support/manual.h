/* Help, man pages and completions: all walk the tables of options.h. */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include "support/cli.h"
#include "support/words.h"

/* The command of that name, or the one that other programs call so: `list` is ls. Tables of
 * commands end with NULL. */
const cli_command *cli_command_called(const cli_command *const *commands, const char *name);
/* The likely meaning of a mistyped name: ": did you mean ...?", or "". The text is in guess, or
 * static. */
const char *cli_command_guess(const cli_command *const *commands, const char *name,
                              sfti_guess *guess);

/* The overview of the commands by group, of 24 lines; all: with examples and every command. */
void cli_overview(cli_out *out, const cli_group *groups, bool all);
/* The help of one. */
void cli_command_help(cli_out *out, const cli_command *command);

/* roff of safetensors(1) (name "safetensors") or of safetensors-CMD(1); false when there
 * is no such page. */
bool cli_man_page(cli_out *out, const cli_command *const *commands, const char *name);
/* docs/cli.md: every command in Markdown. */
void cli_reference(cli_out *out, const cli_group *groups);
/* Script for "bash", "zsh" or "fish"; false for another shell. */
bool cli_completion(cli_out *out, const cli_command *const *commands, const char *shell);

#endif
