#include "commands/commands.h"
#include "support/hints.h"
#include "support/manual.h"

static void run_help(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    if (count == 0) {
        cli_overview(&c->out, c->commands);
        return;
    }
    const cli_command *command = cli_command_named(c->commands, operands[0]);
    if (command) {
        cli_command_help(&c->out, command);
        return;
    }
    cli_guess guess = cli_command_guess(c->commands, operands[0]);
    const char *near = cli_guess_text(&guess, "\"", "\"");
    cli_usage_error(&err, "expected a command, found \"%s\"%s", operands[0], near);
    if (!*near) cli_hint(&err, CLI_HINT_HELP);
    cli_fail_usage(c, &err);
}

static const cli_example help_examples[] = {
    { "safetensors help", "all commands" },
    { "safetensors help ls", "one command: examples, options, exit status" },
    { NULL, NULL },
};

const cli_command cli_help_command = {
    "help", "[COMMAND]", "explain the commands",
    "Without a command, lists all of them. Prints the same text as COMMAND --help.",
    help_examples,
    { cli_common_options, NULL },
    { "the text was printed", NULL, "there is no such command" },
    0, 1, run_help,
};
