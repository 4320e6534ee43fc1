/* Options: one table per command, spliced from shared tables and its own. Parsing, help,
 * man page and completions all walk the same rows. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/error.h"

typedef enum cli_format { CLI_HUMAN = 0, CLI_JSON, CLI_JSONL, CLI_TSV, CLI_MARKDOWN } cli_format;
typedef enum cli_sort_key { CLI_SORT_OFFSET = 0, CLI_SORT_NAME, CLI_SORT_SIZE } cli_sort_key;
typedef enum cli_as { CLI_AS_TEXT = 0, CLI_AS_RAW, CLI_AS_NPY, CLI_AS_JSON } cli_as;

/* The values of an option that may be given again and again. */
#define CLI_WORDS_MOST 64
typedef struct cli_words {
    size_t count;
    const char *items[CLI_WORDS_MOST];
} cli_words;

/* What the options said; all zero but level is the default. */
typedef struct cli_settings {
    int help, version, color, verbose;
    int level, legacy, recursive, format;
    int sort, reverse, group_by, tree, csv_safe;
    /* of ls */
    int fold, stats, histogram, dequantize;
    const char *limit, *depth;
    int deep, explain;
    int as, force, replace, cast_scaled, lossy, terminal;
    int quiet, status_only; /* of hash -c */
    int pretty, copy;
    int full, longer, paths_only, nul, all;
    const char *fields, *fits, *preview_folder, *workflow_file;
    cli_words where, match, exclude;
    cli_words algo;
    const char *cache, *sums, *threads;
    const char *dtype;
    int saturate, values;
    /* of convert --quantize */
    const char *quantize, *layout, *scale, *architecture, *part, *as_what;
    int parts, prune, clip;
    cli_words only, spare;
    int from_quantised;
    /* of convert, of other formats */
    int list_branches, shared, skip, quantised, sparse, scalars, opaque;
    const char *root, *separator, *max_output;
    cli_words as_dtypes;
    /* of commands that write, see cli_writing_options */
    int no_sync, keep_mtime, follow, in_place, in_place_unsafe;
    const char *output;
    cli_words keep, drop;
    const char *max_size, *count, *stem, *atol, *rtol, *clean;
    int header_only, no_metadata;
    int online, dry_run, save, save_as, updates, same_base;
    const char *min_trust;
    const char *civitai_url, *proxy, *timeout, *connect_timeout, *retries;
    const char *hash;
    int verify, compute;
    cli_words records;
    int no_user_records;
    /* of catalog */
    const char *title, *embed, *model;
    /* of meta and rename */
    int safe, each_shard, to_json;
    const char *from_json, *thumbnail, *side, *strip_prefix, *add_prefix, *map_file;
    cli_words map, regex;
    /* of URLs */
    int offline, public_only, no_sign_request, whole, log_requests, read;
    const char *connections, *header_cache;
    /* of lora */
    int ignore_unmatched, dora;
    const char *rank, *conv_rank, *sv_ratio, *sv_fro, *sv_cumulative, *error;
    const char *min_diff, *clamp_quantile;
    int compat, to, norms, spectrum;
    const char *stochastic;
    cli_words blocks;
    /* of merge --method, and of diff --merge-of */
    const char *method, *base, *seed, *recipe, *replay;
    cli_words params;
    int ignore_missing, merge_of;
    /* of mv */
    const char *place, *unknown;
    int number, link, undo, yes;
    /* of dup */
    int reflink, by_weights, erase, adopt, forget, save_for;
    const char *keep_which;
    /* of commands whose operands are files; files_at: operands before the option */
    const char *files_from;
    size_t files_at;
    /* of dataset */
    int remove, drop_old;
    const char *grace, *target, *manifest, *at, *keep_last, *older, *rows, *numbers;
    const char *values_from;
    cli_words keys, columns;
} cli_settings;

#define CLI_SETTINGS_INIT { .level = SFT_LEVEL_DEFAULT }

typedef enum cli_option_kind {
    CLI_FLAG,   /* sets the int at `field` to `set` */
    CLI_CHOICE, /* the int becomes `set` and the place of the word in `value`, "a|b|c" */
    CLI_WORD,   /* the const char * becomes the word; `value` names it */
    CLI_MANY,   /* the cli_words gets one word more */
    CLI_MAYBE   /* as WORD, but the word stands behind `=` or is left out: then it is "" */
} cli_option_kind;

typedef struct cli_option {
    char letter;       /* -x, or 0 */
    const char *name;  /* --name; NULL ends a table */
    const char *value; /* see kind; NULL for flags */
    cli_option_kind kind;
    int set;
    size_t field; /* offset in cli_settings */
    const char *help;
} cli_option;

/* Rows: a flag; a word; a word again and again; the end of a table. */
#define CLI_ON(letter, name, field, help)                                                        \
    { letter, name, NULL, CLI_FLAG, 1, offsetof(cli_settings, field), help }
#define CLI_TAKES(letter, name, value, field, help)                                              \
    { letter, name, value, CLI_WORD, 0, offsetof(cli_settings, field), help }
#define CLI_TAKES_MANY(letter, name, value, field, help)                                         \
    { letter, name, value, CLI_MANY, 0, offsetof(cli_settings, field), help }
/* --values, of commands that open models by cli_open_model, and what their page says of it. */
#define CLI_VALUES                                                                               \
    CLI_ON(0, "values", values,                                                                  \
      "read quantised tensors as the values that they stand for, in F32")
#define CLI_VALUES_TEXT                                                                          \
    "With --values, models are read as convert --dequantize --dtype F32 would write them: a "    \
    "quantised tensor has its values, in its original shape and by its original name, and what " \
    "these are computed from is not there. One whose values cannot be computed is an error as "  \
    "soon as it is read, which says why."
/* --files-from, of commands whose operands are files (paths_from.h). */
#define CLI_FILES_FROM                                                                           \
    CLI_TAKES(0, "files-from", "LIST", files_from,                                               \
      "take paths from LIST, one a line or each ended by a NUL byte, as if they stood here; - is " \
      "standard input")
#define CLI_OPTIONS_END { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL }
/* A table of rows where the command names it. */
#define CLI_OPTIONS(...) (const cli_option[]){ __VA_ARGS__, CLI_OPTIONS_END }

#define CLI_TABLES_MOST 13

typedef struct cli_example {
    const char *line, *says; /* line NULL ends a table */
} cli_example;

#define CLI_EXAMPLES(...) (const cli_example[]){ __VA_ARGS__, { NULL, NULL } }

struct cli;

/* Which operands may be URLs. */
typedef enum cli_urls {
    CLI_URLS_NONE = 0,  /* none: they are refused */
    CLI_URLS_ALL,
    CLI_URLS_FIRST,
    CLI_URLS_OWN,       /* the command takes them itself */
    CLI_URLS_COPY,      /* all, if the result is written with -o */
    CLI_URLS_COPY_FIRST /* the first, if so */
} cli_urls;

typedef struct cli_command {
    const char *name;     /* "ls" */
    const char *operands; /* "PATH..." */
    const char *summary;  /* no full stop */
    const char *about;    /* paragraphs, each one line, for the man page */
    const cli_example *examples;
    const cli_option *tables[CLI_TABLES_MOST]; /* NULL ends */
    const char *exits[3];        /* when the status is 0, 1, 2; NULL: never */
    size_t least, most;          /* operands */
    void (*run)(struct cli *cli, char **operands, size_t count);
    cli_urls urls;
} cli_command;

/* Commands that are listed together. */
typedef struct cli_group {
    const char *title;
    const cli_command *const *commands; /* NULL ends */
} cli_group;

/* Fail because of how the command was called: a format and its arguments. */
#define cli_usage_error(err, ...) sfti_fail(err, SFT_BAD_ARGUMENT, __VA_ARGS__)

/* An option, whether it was given, and the verbs of the command that have it, blanks between. */
typedef struct cli_verb_option {
    bool given;
    const char *option, *verbs;
} cli_verb_option;

/* Fails for the first option given that the verb lacks. */
sft_code cli_verb_options(const cli_verb_option *rows, size_t count, const char *verb,
                          sft_error *err);

/* Fail with a hint (hints.h); because of how the command was called. */
#define cli_fail_hint(err, code, hint, ...)                                                      \
    (sfti_fail(err, code, __VA_ARGS__), cli_hint(err, hint), code)
#define cli_usage_hint(err, hint, ...) cli_fail_hint(err, SFT_BAD_ARGUMENT, hint, __VA_ARGS__)

#define CLI_CSV_SAFE_HELP                                                                   \
    "with --tsv: put an apostrophe before values that a spreadsheet would run as formulas (those " \
    "that begin with = + - @ or a double quote)"

/* When the status of a command that counts unread models (cli.h) is 2. */
#define CLI_UNREAD_STATUS                                                                      \
    "a folder holds no model, a model that was named, or every one in the folders, could not be " \
    "read"

/* Shared tables, each ended by a row without name. */
extern const cli_option cli_common_options[];  /* --help --version --color */
extern const cli_option cli_reading_options[]; /* --level --legacy */
extern const cli_option cli_input_options[];   /* -r */
extern const cli_option cli_unread_options[];  /* -v, for them */
extern const cli_option cli_json_options[];    /* --json --jsonl */
extern const cli_option cli_table_options[];   /* --tsv --csv-safe */
extern const cli_option cli_output_options[];  /* -o, also to standard output: output.h */
extern const cli_option cli_output_path_options[]; /* -o, only to a path */
extern const cli_option cli_writing_options[]; /* --force --dry-run --no-sync ... */
extern const cli_option cli_in_place_options[]; /* --in-place */

/* --match and --exclude, and whether a name passes both: any of --match, if there is one, and none
 * of --exclude. */
extern const cli_option cli_match_options[];
bool cli_is_matched(const cli_settings *settings, sft_span name);
/* Whether one of them was given. */
bool cli_is_matching(const cli_settings *settings);
/* Fail, for they leave none of the tensors. */
sft_code cli_no_match(const cli_settings *settings, sft_error *err);
/* Whether one of the globs matches. */
bool cli_matches_any(const cli_words *globs, sft_span name);

/* Whether the option wants a value, in the next word if it is not attached. */
static inline bool cli_wants_value(const cli_option *option) {
    return option->kind != CLI_FLAG && option->kind != CLI_MAYBE;
}

/* Row i over all tables of a command; NULL past the last. */
const cli_option *cli_option_at(const cli_command *command, size_t i);

/* Read argv into settings; operands are moved to the front of argv and counted. On a
 * mistake SFT_BAD_ARGUMENT with a message that names the nearest option. */
sft_code cli_parse_options(const cli_command *command, int argc, char **argv,
                           cli_settings *settings, size_t *operands, sft_error *err);

/* Options may stand before the command (`--json ls FILE`): how many words of argv do, when each is
 * an option of the command, or the value of one. */
int cli_leading_options(const cli_command *command, int argc, char **argv);

#endif
