#include "support/manual.h"

#include <string.h>

#define HELP_COLUMNS 79

const cli_command *cli_command_named(const cli_command *const *commands, const char *name) {
    while (*commands && strcmp((*commands)->name, name) != 0) commands++;
    return *commands;
}

cli_guess cli_command_guess(const cli_command *const *commands, const char *name) {
    cli_guess guess = cli_guess_begin(sft_span_cstr(name));
    for (; *commands; commands++) cli_guess_try(&guess, sft_span_cstr((*commands)->name));
    return guess;
}

/* Words of text from column `indent` on; the cursor stands at column `at`. */
static void wrap_text(cli_out *out, const char *text, size_t at, size_t indent) {
    size_t column = at;
    bool first = true;
    while (*text) {
        size_t len = strcspn(text, " ");
        if (!first && column + 1 + len > HELP_COLUMNS) {
            cli_text(out, "\n");
            cli_pad(out, indent);
            column = indent;
        } else if (!first) {
            cli_text(out, " ");
            column++;
        }
        cli_put(out, text, len);
        column += len;
        first = false;
        text += len;
        text += strspn(text, " ");
    }
    cli_text(out, "\n");
}

static void two_columns(cli_out *out, const char *left, size_t left_len, const char *right,
                        size_t width) {
    size_t at = 2 + left_len;
    cli_text(out, "  ");
    cli_put(out, left, left_len);
    if (left_len + 2 > width) {
        cli_text(out, "\n");
        at = 0;
    }
    cli_pad(out, 2 + width - at);
    wrap_text(out, right, 2 + width, 2 + width);
}

static void heading(cli_out *out, const char *text) {
    cli_text(out, "\n");
    cli_styled(out, CLI_BOLD, text);
    cli_text(out, "\n");
}

static void examples_text(cli_out *out, const cli_example *examples) {
    heading(out, "Examples:");
    for (; examples->line; examples++) {
        cli_printf(out, "  %s\n      ", examples->line);
        wrap_text(out, examples->says, 6, 6);
    }
}

/* "-r, --recursive", "    --level compat|default|strict" */
static size_t option_left(const cli_option *row, char buffer[80]) {
    size_t used = 0;
    const char *parts[4] = { "    ", "--", row->name, row->value ? " " : "" };
    char letter[5] = { '-', row->letter, ',', ' ', 0 };
    if (row->letter) parts[0] = letter;
    for (size_t i = 0; i < 5; i++) {
        const char *part = i < 4 ? parts[i] : row->value ? row->value : "";
        size_t len = strlen(part);
        if (len > 79 - used) len = 79 - used;
        memcpy(buffer + used, part, len);
        used += len;
    }
    return used;
}

static void options_text(cli_out *out, const cli_command *command) {
    const cli_option *row;
    char buffer[80];
    heading(out, "Options:");
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        two_columns(out, buffer, option_left(row, buffer), row->help, 28);
    }
}

static void exits_text(cli_out *out, const cli_command *command) {
    char status[1];
    heading(out, "Exit status:");
    for (int i = 0; i < 3; i++) {
        if (!command->exits[i]) continue;
        status[0] = (char)('0' + i);
        two_columns(out, status, 1, command->exits[i], 4);
    }
}

void cli_command_help(cli_out *out, const cli_command *command) {
    cli_printf(out, "safetensors %s: %s\n", command->name, command->summary);
    examples_text(out, command->examples);
    heading(out, "Usage:");
    cli_printf(out, "  safetensors %s [OPTION]... %s\n", command->name, command->operands);
    for (const char *at = command->about; *at;) {
        char paragraph[1024];
        size_t len = strcspn(at, "\n"), kept = len < sizeof paragraph ? len : 1023;
        memcpy(paragraph, at, kept);
        paragraph[kept] = 0;
        cli_text(out, "\n");
        wrap_text(out, paragraph, 0, 0);
        at += len + (at[len] != 0);
    }
    options_text(out, command);
    exits_text(out, command);
}

const char cli_overview_summary[] =
    "inspect, check and edit .safetensors models without loading them";

static const cli_example overview_examples[] = {
    { "safetensors model.safetensors", "what is this model? (the same as info)" },
    { "safetensors ls model.safetensors", "its tensors" },
    { "safetensors check -r ~/models", "find invalid files in a tree" },
    { "safetensors cat model.safetensors x.weight[0]", "one row of a tensor" },
    { NULL, NULL },
};

void cli_overview(cli_out *out, const cli_command *const *commands) {
    cli_printf(out, "safetensors: %s\n", cli_overview_summary);
    examples_text(out, overview_examples);
    heading(out, "Commands:");
    for (; *commands; commands++)
        two_columns(out, (*commands)->name, strlen((*commands)->name), (*commands)->summary, 11);
    heading(out, "Options:");
    two_columns(out, "--help", 6, "show this overview", 11);
    two_columns(out, "--version", 9, "library, build options and limits", 11);
    cli_text(out, "\nsafetensors help COMMAND explains one command. PATH is a file, a folder, "
                  "an\nindex (model.safetensors.index.json) or - for standard input.\n");
}
