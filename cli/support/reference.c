/* docs/cli.md, from the tables that help and manual pages are made of. */
#include "support/manual.h"

#include <string.h>

/* Text for Markdown: what it would take for marks is escaped. */
static void plain(cli_out *out, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (strchr("*_[]<>|`", text[i])) cli_text(out, "\\");
        cli_put(out, text + i, 1);
    }
}

static void cell(cli_out *out, const char *text) { plain(out, text, strlen(text)); }

static void paragraphs(cli_out *out, const char *text) {
    while (*text) {
        size_t len = strcspn(text, "\n");
        cli_text(out, "\n");
        plain(out, text, len);
        cli_text(out, "\n");
        text += len + (text[len] != 0);
    }
}

static void option_row(cli_out *out, const cli_option *row) {
    cli_text(out, "| ");
    if (row->letter) cli_printf(out, "`-%c` ", row->letter);
    bool maybe = row->kind == CLI_MAYBE;
    cli_printf(out, "`--%s%s", row->name, !row->value ? "" : maybe ? "[=" : " ");
    for (const char *at = row->value ? row->value : ""; *at; at++) {
        if (*at == '|') cli_text(out, "\\"); /* bars are escaped inside a row of a table */
        cli_put(out, at, 1);
    }
    cli_text(out, maybe ? "]` | " : "` | ");
    cell(out, row->help);
    cli_text(out, " |\n");
}

static void command_section(cli_out *out, const cli_command *command) {
    const cli_option *row;
    cli_printf(out, "\n### safetensors %s\n\n", command->name);
    cli_printf(out, "`safetensors %s [OPTION]... %s`: %s.\n", command->name, command->operands,
               command->summary);
    paragraphs(out, command->about);
    cli_text(out, "\n```sh\n");
    for (const cli_example *one = command->examples; one->line; one++)
        cli_printf(out, "%s    # %s\n", one->line, one->says);
    cli_text(out, "```\n\n| option | meaning |\n| --- | --- |\n");
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        /* Options that every command has stand once, at the end of the page. */
        bool common = false;
        for (const cli_option *one = cli_common_options; one->name; one++)
            common = common || one == row;
        if (!common) option_row(out, row);
    }
    cli_text(out, "\nExit status:");
    for (int i = 0, told = 0; i < 3; i++) {
        if (!command->exits[i]) continue;
        cli_printf(out, "%s %d: ", told++ ? ";" : "", i);
        cell(out, command->exits[i]);
    }
    cli_text(out, ".\n");
}

void cli_reference(cli_out *out, const cli_group *groups) {
    cli_text(out, "# The command\n\n<!-- Made by `safetensors __reference cli`; tests/docs.py "
                  "compares. -->\n\nFor users of the command: every command, its options, examples "
                  "and exit statuses. [cookbook.md](cookbook.md) is organised by task.\n");
    paragraphs(out, cli_overview_about);
    cli_text(out, "\n| for | commands |\n| --- | --- |\n");
    for (const cli_group *group = groups; group->title; group++) {
        cli_printf(out, "| %s |", group->title);
        for (size_t i = 0; group->commands[i]; i++)
            cli_printf(out, " [`%s`](#safetensors-%s)", group->commands[i]->name,
                       group->commands[i]->name);
        cli_text(out, " |\n");
    }
    for (const cli_group *group = groups; group->title; group++) {
        cli_printf(out, "\n## %s\n", group->title);
        for (size_t i = 0; group->commands[i]; i++) command_section(out, group->commands[i]);
    }
    cli_text(out, "\n## Options of every command\n\n| option | meaning |\n| --- | --- |\n");
    for (const cli_option *row = cli_common_options; row->name; row++) option_row(out, row);
}
