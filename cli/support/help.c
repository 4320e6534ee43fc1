/* Help texts, manual pages in roff and docs/cli.md, made of the tables of options; commands by the
 * names that other programs use. Tests: tests/cli/help, tests/docs.py. */
#include "support/manual.h"

#include "os/os.h"

#include <string.h>

#define HELP_COLUMNS 79
#define HELP_LEAST 40

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
            name = synonyms[i].command;
    while (*commands && strcmp((*commands)->name, name) != 0) commands++;
    return *commands;
}

const char *cli_command_guess(const cli_command *const *commands, const char *name,
                              sfti_guess *guess) {
    for (size_t i = 0; i < SYNONYMS; i++)
        if (synonyms[i].question && strcmp(synonyms[i].word, name) == 0)
            return synonyms[i].question;
    *guess = sfti_guess_begin(sft_span_cstr(name));
    for (; *commands; commands++) sfti_guess_try(guess, sft_span_cstr((*commands)->name));
    return sfti_guess_text(guess, "\"", "\"");
}

/* Words of a line of text from column `indent` on; the cursor stands at column `at`. Returns the
 * end of that line. */
static const char *wrap_text(cli_out *out, const char *text, size_t at, size_t indent) {
    size_t seen = sfti_os_is_terminal(out->fd) ? sfti_os_terminal_columns(out->fd) : 0;
    size_t column = at, columns = seen == 0 || seen > HELP_COLUMNS ? HELP_COLUMNS
                                : seen < HELP_LEAST                ? HELP_LEAST
                                                                   : seen;
    bool first = true;
    while (*text && *text != '\n') {
        size_t len = strcspn(text, " \n");
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
    return text;
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
    for (const char *at = command->about; *at; at += *at == '\n') {
        cli_text(out, "\n");
        at = wrap_text(out, at, 0, 0);
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

static const char overview_summary[] =
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
    wrap_text(out, overview_summary, 13, 2);
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

/* ── Manual pages ── */

/* The day of the pages' last change; man/safetensors.5 has it too. */
#define MANUAL_DATE "2026-11-25"
#define ROFF_COLUMNS 79

/* ── roff ── */

/* Text for roff: a backslash and a hyphen are spelled out, a line never begins with a
 * control character. Returns the columns written. */
static size_t roff_put(cli_out *out, const char *text, size_t len, bool line_begins) {
    size_t columns = len;
    bool guarded = line_begins && len > 0 && (*text == '.' || *text == '\'');
    if (guarded) cli_text(out, "\\&");
    for (size_t i = 0; i < len; i++) {
        const char *escape = text[i] == '\\' ? "\\e" : text[i] == '-' ? "\\-" : NULL;
        if (escape) cli_text(out, escape);
        else cli_put(out, text + i, 1);
        columns += escape != NULL;
    }
    return columns + (guarded ? 2 : 0);
}

static void roff(cli_out *out, const char *text) {
    (void)roff_put(out, text, strlen(text), true);
}

/* A paragraph, broken between words. */
static void roff_words(cli_out *out, const char *text, size_t len) {
    size_t column = 0, next;
    for (size_t at = 0; at < len; at += next) {
        const char *space = memchr(text + at, ' ', len - at);
        size_t word = space ? (size_t)(space - text) - at : len - at;
        next = word + (space != NULL);
        size_t width = word + 2; /* the columns that it takes */
        for (size_t i = at; i < at + word; i++) width += text[i] == '\\' || text[i] == '-';
        if (column && column + 1 + width > ROFF_COLUMNS) {
            cli_text(out, "\n");
            column = 0;
        } else if (column) {
            cli_text(out, " ");
            column++;
        }
        column += roff_put(out, text + at, word, column == 0);
    }
    cli_text(out, "\n");
}

static void roff_line(cli_out *out, const char *text) {
    roff_words(out, text, strlen(text));
}

static void roff_title(cli_out *out, const char *name, const char *summary) {
    cli_text(out, ".TH \"");
    for (const char *at = name; *at; at++) {
        char upper = cli_upper(*at);
        cli_put(out, &upper, 1);
    }
    cli_printf(out, "\" \"1\" \"" MANUAL_DATE "\" \"safetensors %s\" \"User Commands\"\n",
               sft_version());
    cli_text(out, ".SH NAME\n");
    roff(out, name);
    cli_text(out, " \\- ");
    roff_line(out, summary);
}

static void roff_environment(cli_out *out, const cli_command *command) {
    static const char *const of_urls[] = {
        "HF_TOKEN, HF_ENDPOINT, HF_HUB_CACHE, HF_HUB_OFFLINE",
        "as huggingface_hub has them, of hf:// URLs.",
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_S3",
        "of s3:// URLs, as other programs have them.",
        "https_proxy, http_proxy, no_proxy, CURL_CA_BUNDLE, SSL_CERT_FILE",
        "proxies and certificate authorities for all URLs. docs/remote.md lists every variable.",
    };
    const cli_option *row;
    bool reads_urls = false; /* has the options of commands that do */
    for (size_t i = 0; command && !reads_urls && (row = cli_option_at(command, i)) != NULL; i++)
        reads_urls = strcmp(row->name, "no-sign-request") == 0;
    cli_text(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; reads_urls && i < sizeof of_urls / sizeof *of_urls; i += 2) {
        cli_printf(out, ".TP\n.B %s\n", of_urls[i]);
        roff_line(out, of_urls[i + 1]);
    }
    cli_text(out, ".TP\n.B NO_COLOR\nnot empty: no colour.\n");
    cli_text(out, ".TP\n.B CLICOLOR_FORCE\nnot empty and not 0: colour even without a "
                  "terminal.\n");
    cli_text(out, ".TP\n.B TERM\n\"dumb\": no colour.\n");
}

static void roff_paragraphs(cli_out *out, const char *text) {
    for (bool first = true; *text; first = false) {
        size_t len = strcspn(text, "\n");
        if (!first) cli_text(out, ".PP\n");
        roff_words(out, text, len);
        text += len + (text[len] != 0);
    }
}

static void command_page(cli_out *out, const cli_command *command) {
    const cli_option *row;
    char name[32] = "safetensors-";
    size_t len = strlen(command->name);
    memcpy(name + 12, command->name, len + 1);
    roff_title(out, name, command->summary);
    cli_text(out, ".SH SYNOPSIS\n.B safetensors ");
    roff(out, command->name);
    cli_text(out, "\n[\\fIOPTION\\fR]... ");
    roff_line(out, command->operands);
    cli_text(out, ".SH DESCRIPTION\n");
    roff_paragraphs(out, command->about);
    cli_text(out, ".SH EXAMPLES\n");
    for (const cli_example *one = command->examples; one->line; one++) {
        cli_text(out, ".TP\n.B ");
        roff(out, one->line);
        cli_text(out, "\n");
        roff_line(out, one->says);
    }
    cli_text(out, ".SH OPTIONS\n");
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        cli_text(out, ".TP\n");
        if (row->letter) cli_printf(out, "\\fB\\-%c\\fR, ", row->letter);
        cli_text(out, "\\fB\\-\\-");
        roff(out, row->name);
        cli_text(out, "\\fR");
        if (row->value) {
            cli_text(out, row->kind == CLI_MAYBE ? "[=\\fI" : " \\fI");
            roff(out, row->value);
            cli_text(out, row->kind == CLI_MAYBE ? "\\fR]" : "\\fR");
        }
        cli_text(out, "\n");
        roff_line(out, row->help);
    }
    cli_text(out, ".SH EXIT STATUS\n");
    for (int i = 0; i < 3; i++) {
        if (!command->exits[i]) continue;
        cli_printf(out, ".TP\n.B %d\n", i);
        roff_line(out, command->exits[i]);
    }
    cli_text(out, ".TP\n.B 128+\\fIn\\fR\nsignal\n.I n\nended the command.\n");
    roff_environment(out, command);
    cli_text(out, ".SH SEE ALSO\n.BR safetensors (1),\n.BR safetensors (5)\n");
}

/* Paragraphs, each a line. */
static const char overview_about[] =
    "Inspects .safetensors models: what they hold, whether they are valid, and the values of their "
    "tensors; edits, converts, splits and merges them. Reads only the header and the bytes asked "
    "for; nothing in a file is ever executed.\n"
    "PATH is a file; a folder, which stands for the models in it (with -r also those of its "
    "folders); an index (model.safetensors.index.json), which stands for one model with all its "
    "shards; a URL (https://HOST/FILE, hf://OWNER/NAME, s3://BUCKET/KEY, gs://BUCKET/OBJECT), of "
    "which only the bytes that are needed are fetched; or - for standard input. Several paths are "
    "processed in turn, those of a folder in natural order (2 before 10), and a bad one does not "
    "stop the rest. Of a folder, info, ls, find, dup, catalog, meta list, mv, note and trash only "
    "count, in one line, the models that cannot be read (-v lists them, check says why), and the "
    "exit status tells what was found; it is 2 if none could be read, or one that was named.\n"
    "Results go to standard output, messages to standard error. Text from files is escaped "
    "wherever people read it.\n"
    "Options of a command may stand before it. A first word that is not a command but names a file "
    "is passed to info; some names that other programs use are understood: list is ls, show and "
    "stat are info, verify and validate are check, metadata is meta, compare is diff, search is "
    "find.";

static const cli_example overview_exits[] = {
    { "0", "fine" },
    { "1", "the answer is no: invalid, not found, findings" },
    { "2", "an error: usage, unreadable, failed for some of many" },
    { NULL, NULL },
};

static void overview_page(cli_out *out, const cli_command *const *commands) {
    roff_title(out, "safetensors", overview_summary);
    cli_text(out, ".SH SYNOPSIS\n.B safetensors\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... "
                  "[\\fIPATH\\fR]...\n.br\n.B safetensors\n\\fIPATH\\fR\n");
    cli_text(out, ".SH DESCRIPTION\n");
    roff_paragraphs(out, overview_about);
    cli_text(out, ".SH COMMANDS\n");
    for (; *commands; commands++) {
        cli_text(out, ".TP\n.BR safetensors\\-");
        cli_printf(out, "%s (1)\n", (*commands)->name);
        roff_line(out, (*commands)->summary);
    }
    cli_text(out, ".SH OPTIONS\n");
    cli_text(out, ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow an overview\n");
    cli_text(out, ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nlibrary, build options and limits\n");
    cli_text(out, ".SH EXIT STATUS\n");
    for (const cli_example *e = overview_exits; e->line; e++) {
        cli_printf(out, ".TP\n.B %s\n", e->line);
        roff_line(out, e->says);
    }
    roff_environment(out, NULL);
    cli_text(out, ".SH SEE ALSO\n.BR safetensors (5)\n");
}

bool cli_man_page(cli_out *out, const cli_command *const *commands, const char *name) {
    const cli_command *command = NULL;
    if (strcmp(name, "safetensors") == 0) {
        overview_page(out, commands);
        return true;
    }
    bool fits = strncmp(name, "safetensors-", 12) == 0;
    for (; fits && !command && *commands; commands++)
        if (strcmp((*commands)->name, name + 12) == 0) command = *commands;
    if (command) command_page(out, command);
    return command != NULL;
}

/* ── docs/cli.md ── */

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
    paragraphs(out, overview_about);
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
