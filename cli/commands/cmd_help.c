/* help: explain the commands. Tests: tests/cli/help. */
#include "commands/commands.h"
#include "support/hints.h"
#include "support/manual.h"
#include "support/values.h"

#include <string.h>

static void run_help(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    if (count == 0) {
        cli_overview(&c->out, c->groups, c->set.longer != 0);
        return;
    }
    if (strcmp(operands[0], "dtypes") == 0) {
        cli_dtypes_print(&c->out);
        return;
    }
    const cli_command *command = cli_command_called(c->commands, operands[0]);
    if (command && (count == 1 || strstr(command->operands, operands[1]))) {
        cli_command_help(&c->out, command);
        return;
    }
    if (command) {
        cli_usage_error(&err, "expected a verb of \"%s\", found \"%s\"", operands[0], operands[1]);
        cli_fail_usage(c, &err);
        return;
    }
    sfti_guess guess;
    const char *near = cli_command_guess(c->commands, operands[0], &guess);
    cli_usage_error(&err, "expected a command, found \"%s\"%s", operands[0], near);
    if (!*near) cli_hint(&err, CLI_HINT_HELP);
    cli_fail_usage(c, &err);
}

const cli_command cli_help_command = {
    "help", "[COMMAND [VERB]|dtypes]", "explain the commands",
    "Without a command, lists them. Prints the same text as COMMAND --help. help dtypes lists what "
    "--dtype takes.",
    CLI_EXAMPLES(
        { "safetensors help", "the commands, by what they are for" },
        { "safetensors help ls", "one command: examples, options, exit status" },
        { "safetensors help dtypes", "the dtypes, and what other tools call them" }),
    { cli_common_options,
      CLI_OPTIONS(CLI_ON('a', "all", longer, "list every command, with examples")) },
    { "the text was printed", NULL, "there is no such command" },
    0, 2, run_help, CLI_URLS_OWN,
};
