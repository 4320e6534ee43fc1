/* Manual pages in roff, made of the tables of options. */
#include "support/manual.h"

#include <string.h>

/* The day of the pages' last change; man/safetensors.5 has it too. */
#define MANUAL_DATE "2026-11-21"
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

static void roff_option(cli_out *out, const cli_option *row) {
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
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) roff_option(out, row);
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

const char cli_overview_about[] =
    "Inspects .safetensors models: what they hold, whether they are valid, and the values of "
    "their tensors; edits, converts, splits and merges them. Reads only the header and the bytes "
    "asked for; nothing in a file is ever executed.\n"
    "PATH is a file; a folder, which stands for the models in it (with -r also those of its "
    "folders); an index (model.safetensors.index.json), which stands for one model with all its "
    "shards; a URL (https://HOST/FILE, hf://OWNER/NAME, s3://BUCKET/KEY, gs://BUCKET/OBJECT), of "
    "which only the bytes that are needed are fetched; or - for standard input. Several "
    "paths are processed in turn, those of a folder in natural order (2 before 10), and a bad one "
    "does not stop the rest. Of a folder, info, ls, find, dup, catalog and meta list only count, "
    "in one line, the models that cannot be read (-v lists them, check says why), and the exit "
    "status "
    "tells what was found; it is 2 if none could be read, or one that was named.\n"
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
    roff_title(out, "safetensors", cli_overview_summary);
    cli_text(out, ".SH SYNOPSIS\n.B safetensors\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... "
                  "[\\fIPATH\\fR]...\n.br\n.B safetensors\n\\fIPATH\\fR\n");
    cli_text(out, ".SH DESCRIPTION\n");
    roff_paragraphs(out, cli_overview_about);
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
    if (strncmp(name, "safetensors-", 12) == 0)
        command = cli_command_named(commands, name + 12);
    if (command) command_page(out, command);
    return command != NULL;
}
