/* The command: its table of commands, and the one that is called. */
#include "commands/commands.h"
#include "os/os.h"
#include "safetensors_remote.h"
#include "support/cli.h"
#include "support/guard.h"
#include "support/hints.h"
#include "support/manual.h"
#include "support/paths_from.h"
#include "support/records.h"
#include "support/remote.h"

#include <errno.h>
#include <string.h>

#define CLI_ROW(name) &cli_##name##_command,
static const cli_command *const all_commands[] = { CLI_COMMANDS(CLI_ROW) NULL };
static const cli_command *const inspecting[] = { CLI_INSPECT(CLI_ROW) NULL };
static const cli_command *const editing[] = { CLI_EDIT(CLI_ROW) NULL };
static const cli_command *const converting[] = { CLI_CONVERT(CLI_ROW) NULL };
static const cli_command *const collecting[] = { CLI_COLLECT(CLI_ROW) NULL };
static const cli_command *const of_datasets[] = { CLI_DATASETS(CLI_ROW) NULL };
static const cli_group all_groups[] = {
    { "Inspect", inspecting },
    { "Edit", editing },
    { "Convert", converting },
    { "Collect", collecting },
    { "Datasets", of_datasets },
    { NULL, NULL },
};

/* ── One command ── */

static void show_version(cli *c) {
    cli_printf(&c->out, "safetensors %s\n", sft_version());
    char buffer[32];
    cli_text(&c->out, sft_build_info());
    const char *curl = sft_transport_curl_version(buffer);
    cli_printf(&c->out, "libcurl: %s (loaded for URLs and --online only)\n",
               curl ? curl : "not found");
    const char *pixbuf = cli_thumbnail_library();
    cli_printf(&c->out, "gdk-pixbuf: %s (loaded for thumbnail only)\n",
               pixbuf ? pixbuf : "not found");
}

/* Help as programs of Windows are asked for it; no file there has such a name. */
static bool asks_for_help(char **words, size_t count) {
    return count == 1 && SFTI_OS_PATHS == SFTI_PATHS_WINDOWS && strcmp(words[0], "/?") == 0;
}

/* listed: for the operands of --files-from. */
static void run_command(cli *c, const cli_command *command, int argc, char **argv,
                        sfti_arena *listed) {
    static const char *const paths[] = { "PATH...", "IN...", "A B" };
    sft_error err = SFT_ERROR_INIT;
    size_t count = 0, inputs = 0;
    c->command = command;
    sft_code code = cli_parse_options(command, argc, argv, &c->set, &count, &err);
    if (c->set.output && strcmp(c->set.output, "-") == 0) {
        c->out.fd = 2; /* standard output takes the model alone */
        c->set.copy = 1;
    }
    c->out.color = c->err.color = c->set.color;
    if (!code && (c->set.help || asks_for_help(argv, count))) {
        cli_command_help(&c->out, command);
        return;
    }
    if (!code && c->set.version) {
        show_version(c);
        return;
    }
    const char *list = code ? NULL : c->set.files_from;
    if (list && (code = cli_paths_from(c, &argv, &count, listed, &err)) != SFT_OK) {
        c->no_results = true;
        cli_complain(c, list, &err);
        return;
    }
    inputs = list && strcmp(list, "-") == 0;
    if (!code && count == 0 && command->least > 0)
        code = cli_usage_error(&err, "expected %s, found none", command->operands);
    else if (!code && (count < command->least || count > command->most))
        code = cli_usage_error(&err, "expected %s, found %zu operand%s", command->operands, count,
                               count == 1 ? "" : "s");
    /* where every operand is a path, standard input is one of them: it can be read once */
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strncmp(command->operands, paths[i], strlen(paths[i])) == 0)
            for (size_t k = 0; k < count; k++) inputs += strcmp(argv[k], "-") == 0;
    if (!code && inputs > 1)
        code = cli_usage_error(&err, "expected - (standard input) once, found it %zu times",
                               inputs);
    if (!code && c->set.csv_safe && c->set.format != CLI_TSV)
        code = cli_usage_error(&err, "expected --tsv with --csv-safe, found none");
    if (code) {
        cli_refuse_usage(c, &err);
        return;
    }
    c->open.level = (sft_level)c->set.level;
    c->open.legacy = c->set.legacy != 0;
    c->open.alloc = &c->alloc;
    c->edit_open = c->open;
    bool first = command->urls == CLI_URLS_FIRST || command->urls == CLI_URLS_COPY_FIRST;
    if (c->set.output && cli_is_url(c->set.output))
        code = cli_usage_hint(&err, CLI_HINT_URL_UPLOAD, "expected a path for -o, found a URL");
    else if (command->urls != CLI_URLS_OWN)
        code = cli_remote_take(c, argv, first ? count > 0 : count, command->urls, command->name,
                               &err);
    if (code) {
        cli_fail_usage(c, &err);
        return;
    }
    cli_guard_begin(c);
    if (cli_records_begin(c)) command->run(c, argv, count);
    else c->no_results = true;
    cli_guard_end(c);
    if (c->records) cli_records_end(c);
    if (c->unread) cli_tell_unread(c);
    if (c->set.format == CLI_JSON && !c->no_results) cli_results_end(c);
}

/* ── Which command ── */

static bool looks_like_path(const char *word) {
    os_info info;
    return word[0] == '-' || strpbrk(word, "./\\") || sfti_os_info_path(word, true, &info) == 0
           || cli_lacks_extension(word);
}

static void unknown_command(cli *c, const char *word) {
    sft_error err = SFT_ERROR_INIT;
    sfti_guess guess;
    if (strcmp(word, "self-test") == 0)
        cli_usage_error(&err, "self-test: expected one FOLDER, in which it may write");
    else
        cli_usage_error(&err, "expected a command or a file, found \"%s\"%s", word,
                        cli_command_guess(c->commands, word, &guess));
    cli_refuse_usage(c, &err);
}

/* For the build: pages and completion scripts from the tables; a report of the system. False:
 * what is none of these. */
static bool generate(cli *c, const char *what, const char *name) {
    bool done = true;
    if (strcmp(what, "__man") == 0) done = cli_man_page(&c->out, c->commands, name);
    else if (strcmp(what, "__completion") == 0) done = cli_completion(&c->out, c->commands, name);
    else if (strcmp(what, "__reference") == 0) cli_reference(&c->out, c->groups);
    else if (strcmp(what, "self-test") == 0) cli_self_test(c, name);
    else return false;
    if (!done) unknown_command(c, name);
    return true;
}

int sft_cli_main(int argc, char **argv) {
    static char result[64 << 10]; /* what models tell in few writes */
    static const cli fresh = { .commands = all_commands, .groups = all_groups,
                               .set = CLI_SETTINGS_INIT, .open = SFT_OPEN_OPTIONS_INIT,
                               .alloc = { sfti_os_resize, NULL } };
    static cli c; /* too large for a stack */
    c = fresh;
    sfti_os_watch_signals();
    cli_out_begin(&c.out, 1);
    c.out.bytes = result;
    c.out.size = sizeof result;
    cli_out_begin(&c.err, 2);
    const char *word = argc < 2 ? "" : argv[1];
    const cli_command *command = NULL;
    sfti_arena listed = { .alloc = c.alloc };
    /* The command stands behind options of its own at most, which then follow it. */
    for (int i = 1; !command && i < argc; i++) {
        command = cli_command_called(c.commands, argv[i]);
        if (i == 1 || !command) continue;
        if (cli_leading_options(command, argc - 1, argv + 1) != i - 1) command = NULL;
        for (int at = i; command && at > 1; at--) argv[at] = argv[at - 1];
    }
    if (argc < 2) {
        cli_overview(&c.err, c.groups, false);
        cli_status(&c, CLI_FAILED);
    } else if (command) {
        run_command(&c, command, argc - 2, argv + 2, &listed);
    } else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        show_version(&c);
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0
               || asks_for_help(argv + 1, (size_t)argc - 1)) {
        cli_overview(&c.out, c.groups, false);
    } else if (argc != 3 || !generate(&c, word, argv[2])) {
        if (looks_like_path(word)) run_command(&c, &cli_info_command, argc - 1, argv + 1, &listed);
        else unknown_command(&c, word);
    }
    if (c.remote) cli_remote_close(&c);
    sfti_arena_free(&listed);
    /* was everything said? */
    char buffer[128];
    int error = cli_flush(&c.out);
    if (error && error != EPIPE) {
        c.out.error = 0;
        cli_printf(&c.err, "safetensors: cannot write the result: %s\n",
                   sfti_os_error_text(error, buffer, sizeof buffer));
        cli_status(&c, CLI_FAILED);
    }
    cli_flush(&c.err);
    return sfti_os_stop_signal() ? 128 + sfti_os_stop_signal() : c.status;
}
