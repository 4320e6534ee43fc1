/* Where the result of a command that writes goes, by the rules they share: -o OUT or the
 * input itself, --force, --follow, --dry-run, --no-sync, --keep-mtime; mode kept, links and
 * files of several names (hard links) not touched unasked. Their options are
 * cli_writing_options. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "support/models.h"
#include "support/parts.h"
#include "support/values.h"

typedef enum cli_target {
    CLI_TARGET_NEW,    /* -o must be given */
    CLI_TARGET_OTHER,  /* the same, of what is written in another format than safetensors */
    CLI_TARGET_EITHER, /* or --in-place */
    CLI_TARGET_EDIT    /* the input itself, unless -o is given */
} cli_target;

#define CLI_REAL_SIZE 4096

typedef struct cli_output {
    const char *path;  /* as given: to be shown */
    const char *input; /* likewise; NULL: several */
    const char *blame; /* of a failed beginning: the path it is about */
    bool in_place;     /* no -o: the input is replaced */
    bool stream;       /* -o -: one stream to standard output, not atomic */
    const cli *c;
    sft_path_options options; /* for sft_sink_path(path): all the rules above */
} cli_output;

/* Decide, and refuse before anything is read. input: path of the file whose mode and time
 * the result takes, NULL or "-" when there is none. A file that is replaced with --force keeps
 * of its own mode what the input has as well. */
sft_code cli_output_begin(cli_output *out, cli *c, const char *input, cli_target target,
                          sft_error *err);
/* Whether -o is written although nothing changes: with --copy, and of a URL, whose copy is then the
 * only one here. */
bool cli_output_copies(const cli *c, const char *input);
/* -o and --in-place are not given both, nor -o - and --keep-mtime; cli_output_begin sees to that
 * itself. */
sft_code cli_output_agrees(const cli *c, sft_error *err);
/* -o -: standard output. c->out then leads to stderr, for nothing else may be in the stream. */
bool cli_output_is_stream(const cli *c);
/* Fail for -o -, of a command that writes files by their names. */
sft_code cli_output_no_stream(const cli *c, sft_error *err);
/* Fail for -o - and the name of a file, of a command that writes a folder. */
sft_code cli_output_is_folder(const cli *c, sft_error *err);
/* The sink; nothing is there until it is finished, unless it is a stream. */
sft_code cli_output_sink(const cli_output *out, sft_sink *sink, sft_error *err);
/* Whether a failure, once all inputs are open, is about the output. */
bool cli_output_failed(sft_code code);

/* Write parts there, with progress, and say so; with --dry-run only that. */
sft_code cli_output_parts(const cli_output *out, cli *c, cli_parts *parts, sft_error *err);

/* Write parts, by parts->shard, as the shards of one model to the folder -o names, which is new
 * or empty; with --dry-run tell the files. Their names begin with --name. An index keeps the
 * metadata of the one that the parts came from. */
sft_code cli_output_set(cli *c, cli_parts *parts, uint32_t shards, sft_error *err);

/* -o names a file, of whatever format, by how it ends, or standard output, and no folder for the
 * shards of a model. */
bool cli_output_is_file(const cli *c);
/* With --keep-mtime *out becomes the time of the last change of that file. */
sft_code cli_output_mtime(const cli *c, const char *path, int64_t *out, sft_error *err);
/* The result, unless it replaces the input, is readable and writable by those who may read and
 * write all files that the models are in; with --keep-mtime it gets the time of the youngest. What
 * tells their alphas must hold there (cli_check_adapter_config). */
sft_code cli_output_sources(cli *c, const cli_parts *parts, cli_output *out,
                            sft_error *err);
/* Permission bits of a file, for sfti_mode_common; 0 when path is none, or NULL. */
uint32_t cli_output_mode_of(const char *path);
/* Those common to all files that were read for what is known of a model, readable or not. */
uint32_t cli_output_mode_of_model(const cli_model *model);
/* How the name of an index begins, by its path; or NULL. */
#define CLI_STEM_SIZE 256
const char *cli_index_stem(const char *index, char buffer[CLI_STEM_SIZE]);
/* Path of one of the shards in a folder, in the arena; NULL when out of memory. */
char *cli_output_shard(sfti_arena *arena, const char *folder, const char *stem, uint32_t shard,
                       uint32_t count);

/* ── What is printed when it is done ── */

typedef struct cli_written_file {
    const char *path;
    size_t tensors;
    uint64_t bytes; /* of its tensors */
} cli_written_file;

typedef struct cli_written {
    const char *input;  /* NULL: several models */
    const char *output; /* what is or would be written: a file, a folder, an index */
    const cli_written_file *files;
    size_t file_count;
    bool is_set;        /* in several files, and an index */
    bool fresh;         /* of a model that is there the files that change, under fresh names */
    uint32_t dtype;     /* of convert: SFT_DTYPE_COUNT = of another command */
    uint64_t cast, bytes_before;
    void (*more)(void *ctx, sfti_json_writer *w); /* further members, or NULL */
    void *ctx;
} cli_written;

#define CLI_WRITTEN_INIT { .dtype = SFT_DTYPE_COUNT }

/* Sums up parts; where shard_of is not NULL those only that stand in `shard`. */
cli_written_file cli_written_parts(const char *path, const sft_part *parts, size_t count,
                                   const uint32_t *shard_of, uint32_t shard);
void cli_say_written(cli *c, const cli_written *written);
/* The parts in one file; `written` tells the rest of it. */
void cli_say_parts(cli *c, const cli_parts *parts, const char *output, cli_written written);

/* The same of parts in the shards of a model, by parts->shard, in the folder of -o, whose names
 * begin with stem; the rest of it is told by `written`. */
sft_code cli_say_shards(cli *c, cli_parts *parts, uint32_t shards, const char *stem,
                        cli_written written, sft_error *err);

/* What c->dropped holds: as the member "dropped" of a result, and as a line on stderr. */
void cli_put_dropped(const cli *c, sfti_json_writer *w);
void cli_say_dropped(cli *c, const char *path);

/* How many finite values were not 0, and how many of these became what (losses.c). */
typedef struct cli_loss {
    uint64_t values, zero, infinite, saturated;
} cli_loss;

typedef struct cli_losses {
    size_t count;                                /* tensors */
    cli_loss (*at)(const void *ctx, size_t i);   /* of tensor i, or of all for SIZE_MAX */
    sft_span (*name)(const void *ctx, size_t i);
    const void *ctx;
    bool as_nan; /* the dtype has no infinity: `infinite` counts values that became NaN */
} cli_losses;

/* Names the worst of the tensors that lost more than a hundredth of their values in the dtype, if
 * there are any; not with --dry-run. */
void cli_warn_lost(cli *c, const char *path, const char *dtype, const cli_losses *losses);
/* The member "lost" of a result. */
void cli_put_lost(const cli_losses *losses, sfti_json_writer *w);

/* ── Many models ── */

typedef void (*cli_write_fn)(cli *c, const char *path, void *ctx);

/* Calls `each` for the operand or, for several operands and with -r, for every model that they
 * stand for, then prints how many were changed. -o DIR/, or a folder that exists, takes the place
 * of -o FILE: the results have the names of their inputs (c->set.output is the path of each while
 * `each` runs). DIR is made if it is not there. A usage error, before anything is written, if
 * several models would have one name, or -o names a file for several. */
void cli_write_each(cli *c, char **operands, size_t count, cli_write_fn each, void *ctx);

#endif
