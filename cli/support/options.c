/* Options: the tables that commands share, and parsing by them. Tests: tests/cli/general. */
#include "support/options.h"

#include "base/error.h"
#include "base/glob.h"
#include "support/words.h"

#include <string.h>

#define AT(member) offsetof(cli_settings, member)

static bool has_verb(const char *verbs, const char *verb) {
    sft_span rest = sft_span_cstr(verbs), one;
    while (cli_next_part(&rest, ' ', &one))
        if (cli_is(one, verb)) return true;
    return false;
}

sft_code cli_verb_options(const cli_verb_option *rows, size_t count, const char *verb,
                          sft_error *err) {
    for (size_t i = 0; i < count; i++)
        if (rows[i].given && !has_verb(rows[i].verbs, verb))
            return cli_usage_error(err, "expected --%s with %s only, found %s", rows[i].option,
                                   rows[i].verbs, verb);
    return SFT_OK;
}

const cli_option cli_common_options[] = {
    CLI_ON('h', "help", help, "show this help"),
    CLI_ON('V', "version", version, "show the version, build options and limits"),
    { 0, "color", "auto|always|never", CLI_CHOICE, 0, AT(color),
      "when to use colour; auto: only on a terminal" },
    CLI_OPTIONS_END,
};

const cli_option cli_reading_options[] = {
    { 0, "level", "compat|default|strict", CLI_CHOICE, 0, AT(level),
      "what to accept: what the official package does, that without ambiguous headers, or only "
      "what the specification allows" },
    CLI_ON(0, "legacy", legacy, "also read the 2022 layout (offsets, float16)"),
    CLI_OPTIONS_END,
};

const cli_option cli_unread_options[] = {
    CLI_ON('v', "verbose", verbose, "list models in folders that cannot be read"),
    CLI_OPTIONS_END,
};

const cli_option cli_input_options[] = {
    CLI_ON('r', "recursive", recursive, "search folders recursively"),
    CLI_FILES_FROM,
    CLI_OPTIONS_END,
};

const cli_option cli_json_options[] = {
    { 0, "json", NULL, CLI_FLAG, CLI_JSON, AT(format), "one JSON object with all results" },
    { 0, "jsonl", NULL, CLI_FLAG, CLI_JSONL, AT(format),
      "one JSON object per model, each on a line" },
    CLI_OPTIONS_END,
};

const cli_option cli_table_options[] = {
    { 0, "tsv", NULL, CLI_FLAG, CLI_TSV, AT(format), "a table, values separated by tabs" },
    CLI_ON(0, "csv-safe", csv_safe, CLI_CSV_SAFE_HELP),
    CLI_OPTIONS_END,
};

const cli_option cli_output_options[] = {
    CLI_TAKES('o', "output", "OUT", output,
      "write the result to OUT; - is standard output, and what is reported then goes to stderr"),
    CLI_ON(0, "to-terminal", terminal, "with -o -: write even to a terminal"),
    CLI_OPTIONS_END,
};

const cli_option cli_output_path_options[] = {
    CLI_TAKES('o', "output", "OUT", output, "write the result to the path OUT"),
    CLI_OPTIONS_END,
};

const cli_option cli_writing_options[] = {
    CLI_ON(0, "force", force, "overwrite an existing file, even one with several hard links"),
    CLI_ON(0, "follow", follow, "replace the target of a symbolic link"),
    CLI_ON(0, "dry-run", dry_run, "print what would be done; write nothing"),
    CLI_ON(0, "no-sync", no_sync, "do not fsync; a power failure may then lose the result"),
    CLI_ON(0, "keep-mtime", keep_mtime, "give the result the modification time of its input"),
    CLI_ON(0, "in-place-unsafe", in_place_unsafe,
      "for file systems that cannot rename (mounted object stores): remove the old file, then "
      "write the new one; after a crash in between the only whole copy is a hidden temporary "
      "file"),
    CLI_OPTIONS_END,
};

const cli_option cli_in_place_options[] = {
    CLI_ON(0, "in-place", in_place, "replace IN itself instead of writing OUT"),
    CLI_OPTIONS_END,
};

const cli_option cli_match_options[] = {
    CLI_TAKES_MANY(0, "match", "GLOB", match,
      "only tensors whose whole name matches GLOB, or one of several: * any text, ? one "
      "character, [a-z] [!a-z]"),
    CLI_TAKES_MANY(0, "exclude", "GLOB", exclude, "no tensors whose whole name matches GLOB"),
    CLI_OPTIONS_END,
};

bool cli_matches_any(const cli_words *globs, sft_span name) {
    for (size_t i = 0; i < globs->count; i++)
        if (sfti_glob_match(sft_span_cstr(globs->items[i]), name)) return true;
    return false;
}

bool cli_is_matched(const cli_settings *settings, sft_span name) {
    if (settings->match.count > 0 && !cli_matches_any(&settings->match, name)) return false;
    return !cli_matches_any(&settings->exclude, name);
}

bool cli_is_matching(const cli_settings *settings) {
    return settings->match.count > 0 || settings->exclude.count > 0;
}

sft_code cli_no_match(const cli_settings *settings, sft_error *err) {
    const char *match = settings->match.count == 1 ? settings->match.items[0] : NULL;
    if (match && settings->exclude.count == 0)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected tensors that match \"%s\", found none", match);
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                     "expected tensors that match --match and not --exclude, found none");
}

const cli_option *cli_option_at(const cli_command *command, size_t i) {
    for (size_t t = 0; t < CLI_TABLES_MOST && command->tables[t]; t++) {
        for (const cli_option *row = command->tables[t]; row->name; row++) {
            if (i-- == 0) return row;
        }
    }
    return NULL;
}

/* Words of a CHOICE: the i-th into *word; false past the last. */
static bool choice_at(const cli_option *option, size_t i, sft_span *word) {
    const char *at = option->value;
    for (;;) {
        const char *bar = strchr(at, '|');
        *word = (sft_span){ at, bar ? (size_t)(bar - at) : strlen(at) };
        if (i-- == 0) return true;
        if (!bar) return false;
        at = bar + 1;
    }
}

/* ── Parsing ── */

typedef struct parse {
    const cli_command *command;
    int argc;
    char **argv;
    int at; /* the argument being read */
    cli_settings *settings;
    const size_t *operands; /* so far */
    sft_error *err;
} parse;

static sft_code parse_fail(parse *p, const char *text, sft_span word, const char *rest) {
    return cli_usage_error(p->err, "%s%.*s%s", text, (int)word.len, word.data, rest);
}

static const cli_option *option_named(const cli_command *command, sft_span name) {
    const cli_option *row;
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        if (cli_is(name, row->name)) return row;
    }
    return NULL;
}

static const cli_option *option_lettered(const cli_command *command, char letter) {
    const cli_option *row;
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        if (row->letter == letter) return row;
    }
    return NULL;
}

static int *int_field(cli_settings *settings, const cli_option *row) {
    return (int *)(void *)((char *)settings + row->field);
}

static sft_code store_word(parse *p, const cli_option *row, const char *value) {
    const char **field = (void *)((char *)p->settings + row->field);
    if (*field && strcmp(*field, value) != 0)
        return cli_usage_error(p->err, "expected --%s once, found \"%s\" and \"%s\"",
                               row->name, *field, value);
    *field = value;
    if (row->field == AT(files_from)) p->settings->files_at = *p->operands;
    return SFT_OK;
}

static sft_code store_value(parse *p, const cli_option *row, char *value) {
    sft_span word, given = sft_span_cstr(value);
    void *field = (char *)p->settings + row->field;
    if (row->kind == CLI_WORD) return store_word(p, row, value);
    if (row->kind == CLI_MANY) {
        cli_words *words = field;
        if (words->count == CLI_WORDS_MOST)
            return parse_fail(p, "expected --", sft_span_cstr(row->name), " at most 64 times");
        words->items[words->count++] = value;
        return SFT_OK;
    }
    for (size_t i = 0; choice_at(row, i, &word); i++) {
        if (!sft_span_equal(word, given)) continue;
        *int_field(p->settings, row) = row->set + (int)i;
        return SFT_OK;
    }
    return cli_usage_error(p->err, "expected --%s %s, found \"%.*s\"", row->name, row->value,
                           (int)given.len, given.data);
}

/* The value stands behind `=` (or the letter), or is the next argument. */
static sft_code take_value(parse *p, const cli_option *row, char *attached) {
    if (attached) return store_value(p, row, attached);
    if (p->at + 1 >= p->argc) {
        return parse_fail(p, "expected a value after --", sft_span_cstr(row->name),
                          ", found none");
    }
    return store_value(p, row, p->argv[++p->at]);
}

static sft_code parse_long(parse *p, char *text) {
    char *equals = strchr(text, '=');
    sft_span name = { text, equals ? (size_t)(equals - text) : strlen(text) };
    const cli_option *row = option_named(p->command, name);
    sfti_guess guess = sfti_guess_begin(name);
    const cli_option *known;
    for (size_t i = 0; !row && (known = cli_option_at(p->command, i)) != NULL; i++)
        sfti_guess_try(&guess, sft_span_cstr(known->name));
    if (!row)
        return cli_usage_error(p->err, "unknown option --%.*s%s", (int)name.len, name.data,
                               sfti_guess_text(&guess, "--", ""));
    if (cli_wants_value(row)) return take_value(p, row, equals ? equals + 1 : NULL);
    if (row->kind == CLI_MAYBE) return store_word(p, row, equals ? equals + 1 : "");
    if (equals) return parse_fail(p, "expected no value after --", name, "");
    *int_field(p->settings, row) = row->set;
    return SFT_OK;
}

sft_code cli_parse_options(const cli_command *command, int argc, char **argv,
                           cli_settings *settings, size_t *operands, sft_error *err) {
    parse p = { command, argc, argv, 0, settings, operands, err };
    bool only_operands = false;
    *operands = 0;
    for (; p.at < argc; p.at++) {
        char *arg = argv[p.at];
        sft_code code = SFT_OK;
        bool letters = !only_operands && arg[0] == '-' && arg[1] && arg[1] != '-';
        if (only_operands || arg[0] != '-' || arg[1] == 0) {
            argv[(*operands)++] = arg;
        } else if (strcmp(arg, "--") == 0) {
            only_operands = true;
        } else if (arg[1] == '-') {
            code = parse_long(&p, arg + 2);
        }
        for (char *at = arg + 1; letters && !code && *at; at++) {
            const cli_option *row = option_lettered(command, *at);
            if (!row) return parse_fail(&p, "unknown option -", (sft_span){ at, 1 }, "");
            if (cli_wants_value(row)) {
                code = take_value(&p, row, at[1] ? at + 1 : NULL);
                break;
            }
            *int_field(settings, row) = row->set;
        }
        if (code) return code;
    }
    return SFT_OK;
}

/* The row of the option in a word, whose value is in the next one if it is not attached. */
static const cli_option *option_in(const cli_command *command, const char *word, bool *value_next) {
    const cli_option *row = NULL;
    *value_next = false;
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        row = option_named(command, (sft_span){ word + 2, len });
        *value_next = row && cli_wants_value(row) && word[2 + len] == 0;
        return row;
    }
    for (size_t i = 1; word[i]; i++) {
        row = option_lettered(command, word[i]);
        if (!row || cli_wants_value(row)) {
            *value_next = row && word[i + 1] == 0;
            break;
        }
    }
    return row;
}

int cli_leading_options(const cli_command *command, int argc, char **argv) {
    int at = 0;
    bool value_next;
    while (at < argc && argv[at][0] == '-' && option_in(command, argv[at], &value_next))
        at += 1 + value_next;
    return at < argc ? at : argc;
}
