/* Help texts, made of the tables of options; commands by the names that other programs use. */
#include "support/manual.h"

#include "os/os.h"

#include <string.h>

#define HELP_COLUMNS 79
#define HELP_LEAST 40

const cli_command *cli_command_named(const cli_command *const *commands, const char *name) {
    while (*commands && strcmp((*commands)->name, name) != 0) commands++;
    return *commands;
}

/* Words for a command elsewhere: it runs, or is asked about where several are meant. */
static const struct {
    const char *word, *command, *question;
} synonyms[] = {
    { "show", "info", NULL },
    { "stat", "info", NULL },
    { "list", "ls", NULL },
    { "verify", "check", NULL },
    { "validate", "check", NULL },
    { "metadata", "meta", NULL },
    { "compare", "diff", NULL },
    { "search", "find", NULL },
    { "dump", NULL,
      ": did you mean \"ls\" (tensors), \"cat\" (values) or \"meta header\" (the header)?" },
    { "header", NULL, ": did you mean \"meta header\"?" },
    { "extract", NULL, ": did you mean \"select\" (tensors) or \"info --export-preview\"?" },
    { "edit", NULL, ": did you mean \"meta set\" or \"rename\"?" },
    { "rm", NULL, ": did you mean \"rm-tensor\" or \"meta rm\"?" },
};
#define SYNONYMS (sizeof synonyms / sizeof *synonyms)

const cli_command *cli_command_called(const cli_command *const *commands, const char *name) {
    for (size_t i = 0; i < SYNONYMS; i++)
        if (synonyms[i].command && strcmp(synonyms[i].word, name) == 0)
            return cli_command_named(commands, synonyms[i].command);
    return cli_command_named(commands, name);
}

const char *cli_command_guess(const cli_command *const *commands, const char *name,
                              cli_guess *guess) {
    for (size_t i = 0; i < SYNONYMS; i++)
        if (synonyms[i].question && strcmp(synonyms[i].word, name) == 0)
            return synonyms[i].question;
    *guess = cli_guess_begin(sft_span_cstr(name));
    for (; *commands; commands++) cli_guess_try(guess, sft_span_cstr((*commands)->name));
    return cli_guess_text(guess, "\"", "\"");
}

/* Words of text from column `indent` on; the cursor stands at column `at`. */
static void wrap_text(cli_out *out, const char *text, size_t at, size_t indent) {
    size_t seen = sfti_os_is_terminal(out->fd) ? sfti_os_terminal_columns(out->fd) : 0;
    size_t column = at, columns = seen == 0 || seen > HELP_COLUMNS ? HELP_COLUMNS
                                : seen < HELP_LEAST                ? HELP_LEAST
                                                                   : seen;
    bool first = true;
    while (*text) {
        size_t len = strcspn(text, " ");
        if (!first && column + 1 + len > columns) {
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
    bool maybe = row->kind == CLI_MAYBE;
    const char *parts[6] = { "    ", "--", row->name, !row->value ? "" : maybe ? "[=" : " ",
                             row->value ? row->value : "", maybe ? "]" : "" };
    char letter[5] = { '-', row->letter, ',', ' ', 0 };
    if (row->letter) parts[0] = letter;
    for (size_t i = 0; i < 6; i++) {
        size_t len = strlen(parts[i]);
        if (len > 79 - used) len = 79 - used;
        memcpy(buffer + used, parts[i], len);
        used += len;
    }
    return used;
}

void cli_command_help(cli_out *out, const cli_command *command) {
    const cli_option *row;
    char buffer[80];
    size_t len = strlen(command->name);
    cli_printf(out, "safetensors %s: ", command->name);
    wrap_text(out, command->summary, 14 + len, 2);
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
    heading(out, "Options:");
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++)
        two_columns(out, buffer, option_left(row, buffer), row->help, 28);
    heading(out, "Exit status:");
    for (int i = 0; i < 3; i++) {
        char status = (char)('0' + i);
        if (command->exits[i]) two_columns(out, &status, 1, command->exits[i], 4);
    }
}

const char cli_overview_summary[] =
    "inspect, check, edit and convert .safetensors models without loading them";

static const cli_example overview_examples[] = {
    { "safetensors model.safetensors", "what is this model? (the same as info)" },
    { "safetensors ls model.safetensors", "its tensors" },
    { "safetensors check -r ~/models", "find invalid files in a tree" },
    { "safetensors cat model.safetensors x.weight[0]", "one row of a tensor" },
    { NULL, NULL },
};

/* The overview says in a line what these do together. */
static const struct {
    const char *first, *names, *summary;
} short_rows[] = {
    { "add", "add, put, rm-tensor", "add, replace and remove single tensors" },
    { "put", NULL, NULL },
    { "rm-tensor", NULL, NULL },
};

static void group_text(cli_out *out, const cli_group *group, bool all) {
    if (all) heading(out, group->title);
    for (size_t i = 0; group->commands[i]; i++) {
        const cli_command *command = group->commands[i];
        const char *names = command->name, *summary = command->summary;
        for (size_t k = 0; !all && k < sizeof short_rows / sizeof *short_rows; k++) {
            if (strcmp(short_rows[k].first, command->name) != 0) continue;
            names = short_rows[k].names; /* NULL: the command is in another's row */
            summary = short_rows[k].summary;
        }
        if (all) {
            two_columns(out, command->name, strlen(command->name), command->summary, 11);
        } else if (names) {
            const char *title = i ? "" : group->title;
            size_t len = strlen(names);
            cli_styled(out, CLI_BOLD, title);
            cli_pad(out, 10 - strlen(title));
            cli_text(out, names);
            size_t at = 10 + (len < 9 ? 9 : len + 2);
            cli_pad(out, at - 10 - len);
            wrap_text(out, summary, at, 19);
        }
    }
}

#define CLOSING_WORDS(more)                                                                  \
    "safetensors help COMMAND explains one" more ". PATH is a file, a folder, an index "       \
    "(model.safetensors.index.json), a URL (https://HOST/FILE, hf://OWNER/NAME, "            \
    "s3://BUCKET/KEY) or - for standard input."

void cli_overview(cli_out *out, const cli_group *groups, bool all) {
    cli_text(out, "safetensors: ");
    wrap_text(out, cli_overview_summary, 13, 2);
    if (all) examples_text(out, overview_examples);
    else cli_text(out, "\n");
    for (; groups->title; groups++) group_text(out, groups, all);
    if (all) {
        heading(out, "Options:");
        two_columns(out, "-h, --help", 10, "show the short overview", 15);
        two_columns(out, "-V, --version", 13, "library, build options and limits", 15);
    }
    cli_text(out, "\n");
    wrap_text(out, all ? CLOSING_WORDS(" command") : CLOSING_WORDS(", help -a lists all"), 0, 0);
}
