/* The command: what its files share. One `cli` lives for one call of sft_cli_main; there
 * are no globals but the records in force (records.h). Memory comes from sfti_os_resize, output
 * goes through print.h. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/json.h"
#include "safetensors_remote.h"
#include "safetensors_report.h"
#include "support/input.h"
#include "support/options.h"
#include "support/print.h"

enum { CLI_OK = 0, CLI_NO = 1, CLI_FAILED = 2 };

/* What a result lacks, or is read by, told with it (cli_say_beside). NULL: nothing. */
typedef struct cli_beside {
    const char *left;   /* a model whose adapter_config.json does not go with it */
    const char *bare;   /* the same of what declares its quantised layers */
    const char *forced; /* the result, which is read by the file forced_by beside it */
    const char *forced_by;
} cli_beside;

typedef struct cli {
    const cli_command *const *commands; /* all there are, NULL after the last */
    const cli_group *groups;            /* the same but help; a row without title ends them */
    const cli_command *command;         /* this one */
    cli_settings set;
    sft_open_options open; /* by the settings */
    sft_allocator alloc;
    cli_out out, err;
    int status;     /* the worst so far */
    size_t results;  /* results begun */
    bool wrapped;    /* the beginning of --json is printed */
    bool no_results; /* and its end will not be: wrong usage, or the command prints its own */
    uint64_t matched; /* tensors that ls listed */
    bool several;    /* results are told apart by their paths */
    bool folder_unmade; /* that of -o, which is made but in a dry run */
    unsigned dropped; /* digests (keys/digest_keys.h) that the result does not record */
    cli_beside beside; /* of the result at hand */
    bool same; /* of the edit with -o: what is written is as it was */
    size_t passed[CLI_OTHER_FORMATS]; /* files of other formats in the folders so far */
    size_t changed, unchanged; /* models that were, or would be, written, and that need not be */
    bool counts_unread; /* models in folders that cannot be read are counted rather than told */
    size_t tried, unread; /* models so far, and those of them */
    sft_error unread_err; /* the first's */
    char *unread_path;    /* with its path; NULL: there is none, or it was told */
    int others; /* whether folders are looked through for other formats: CLI_AND_OTHERS … */
    bool joins_shards; /* numbered shards without an index are one model: CLI_JOIN_SHARDS */
    const struct cli_input *joined; /* while one is at hand, of many: all of its shards; or NULL */
    bool imports; /* the settings say how other formats are imported */
    bool as_matched; /* --as named a tensor of the last one */
    bool enters_pipelines; /* folders of pipelines stand for their components */
    bool imports_exact; /* blocks of other formats are F32, as they are computed; else F16, which
                           --values and the settings of convert change */
    bool imports_whole; /* what cannot be carried is an error: the command writes it, or compares */
    bool no_imports; /* a model in another format is refused: the command changes what is there */
    struct cli_guard *guard; /* locks and inputs (guard.h), or NULL */
    struct sft_records *records; /* in force (records.h), or NULL: those of the library */
    struct sft_import *import; /* of the model that was opened last, or NULL (models.h) */
    struct sft_conversion *values; /* with --values: what computes those of the model that was
                                      opened last, of so many tensors, and lives as long */
    size_t values_count;
    sft_span values_within; /* only of tensors whose names begin so */
    sft_remote *remote; /* of URLs; NULL until there is one */
    struct cli_bad_urls *bad_urls;  /* operands that no remote reads, or NULL */
    sft_remote_sums other_requests; /* of other remotes, which are closed */
    bool in_result;     /* a result was begun, of a path that may be remote */
    bool held;          /* its last brace is written by cli_result_end */
    void (*more)(void *ctx, sfti_json_writer *w); /* its last members; NULL: none */
    void *more_ctx;
    bool tells_reading; /* results of URLs say whether their data were read */
    uint32_t read_mode; /* common to the files that options and operands named for what they say
                           (cli_read_file); 0: not known */
    const char *blame; /* what the failure of an edit is about, if not its input; or NULL */
    bool wants_metadata; /* trees of facts have the pairs of the header too */
    sft_open_options edit_open; /* the same for edits; beneath: folder of the index whose shards
                                   are changed now, or NULL */
} cli;

/* The whole command. Returns the exit status; never exits. argv is permuted. */
int sft_cli_main(int argc, char **argv);

/* Keep the worse of the status so far and this one. */
void cli_status(cli *c, int status);

/* ── Messages ── */

/* "safetensors: PATH: ...": one line on stderr, after what stdout has waiting. path may be
 * NULL. */
void cli_warn(cli *c, const char *path, const sft_error *err);
/* The same, and the status becomes 2. */
void cli_complain(cli *c, const char *path, const sft_error *err);
/* The same: memory for so many bytes is lacking. */
void cli_complain_memory(cli *c, uint64_t bytes);
/* The same, with status 1: the answer is no. */
void cli_refuse(cli *c, const char *path, const sft_error *err);
/* Complain, and the result object of a model that could not be read. */
void cli_fail_input(cli *c, const char *path, const sft_error *err);
/* The same of an input; where unread ones are counted (c->counts_unread) one that a folder was
 * found to hold is told with -v only, and is no failure of the command. What the file is not to
 * blame for is: network, memory, an edit that was interrupted. */
void cli_fail_found(cli *c, const cli_input *input, const char *path, const sft_error *err);
/* Without the result object. */
void cli_complain_found(cli *c, const cli_input *input, const char *path, const sft_error *err);
/* At the end, if there were any, in a line: how many, of one its error. The status becomes 2 if no
 * model could be read. */
void cli_tell_unread(cli *c);
/* Whether a file has this name with .safetensors at its end. */
bool cli_lacks_extension(const char *path);
/* The same for a result that was begun and of which nothing is written yet. */
void cli_fail_result(cli *c, const char *path, const sft_error *err);

/* Complain about the usage: no result is printed. With how to get help. */
void cli_fail_usage(cli *c, const sft_error *err);
void cli_refuse_usage(cli *c, const sft_error *err);

/* ── Results as JSON ── */

bool cli_is_json(const cli *c);
/* Before the first result, nothing when the format is not JSON; and after the last one of JSON. The
 * first result begins them and main.c ends them, so that commands need not. */
void cli_results_begin(cli *c);
void cli_results_end(cli *c);

/* Begin one result. Returns where it goes, from offset 0 and opening brace on; with --jsonl
 * "schema" and "command" come first in it. */
sft_sink cli_result_begin(cli *c);
/* Where the result that was begun goes. */
sft_sink cli_result_sink(cli *c);
/* End it; complain when writing it failed. */
void cli_result_end(cli *c, const char *path, sft_code code, const sft_error *err);

/* A result object that the command writes member by member. */
typedef struct cli_object {
    cli *c;
    const char *path;
    sft_sink sink;
    sft_error err;
    sfti_json_writer w;
} cli_object;

/* Up to "ok":true. Returns the writer. */
sfti_json_writer *cli_object_begin(cli_object *object, cli *c, const char *path);
/* Up to the error, of one that failed. */
sfti_json_writer *cli_failed_begin(cli_object *object, cli *c, const char *path,
                                   const sft_error *err);
void cli_object_end(cli_object *object);

/* ── Tables of tabs ── */

/* A cell, escaped, with the apostrophe of --csv-safe. */
void cli_cell(cli *c, sft_span text);

/* ── Inputs ── */

/* Their shards are opened with c->open, which they point to. */
sft_set_options cli_set_options(const cli *c);

/* Open what an input names; standard input is read no further than its header. On a
 * failure that the first bytes explain (another format, a cut download) err says so. */
sft_code cli_open_model(cli *c, const cli_input *input, sft_set **out, sft_error *err);

/* Call each() for every model the operands name, in order; those that cannot be are
 * reported. Stops when output is lost or a signal came. */
typedef void (*cli_each_fn)(cli *c, const cli_input *input);
void cli_each_input(cli *c, char **operands, size_t count, cli_each_fn each);

/* What there is to say of an input that is no model: CLI_EMPTY, CLI_BLOCKED. */
void cli_report_input(cli *c, const cli_input *input);

/* Count the files that the folders of an operand have in other formats; and a line that says how
 * many there were, if any. */
void cli_count_passed(cli *c, const cli_inputs *inputs);
void cli_passed_line(const cli *c, cli_out *out);

/* Whether there is no point in going on. */
bool cli_is_over(const cli *c);

/* ── Progress ── */

typedef struct cli_progress {
    cli *c;
    const char *path;
    /* sfti_os_now_ns; told: the time was looked at last; shown 0 = nothing on the screen yet */
    uint64_t started, told, shown;
    /* Where the work has several jobs: bytes of those that are done, and of all; 0 = one job. */
    uint64_t before, all;
    bool (*holds)(void *ctx, bool last); /* asked at each tick: false cancels the job. Or NULL */
    void *ctx;
} cli_progress;

/* A job that ticks p; p must outlive it. */
sft_job cli_progress_begin(cli_progress *p, cli *c, const char *path);
/* So many of so many models are done (of: 0 = unknown); no tick is needed. */
void cli_progress_count(cli_progress *p, size_t count, size_t of);
/* Wipe the line, if there is one. */
void cli_progress_end(cli_progress *p);

#endif
