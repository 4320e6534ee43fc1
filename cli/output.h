/* Where the result of a command that writes goes, by the rules they share: -o OUT or the
 * input itself, --force, --follow, --dry-run, --no-sync, --keep-mtime; mode kept, links and
 * files of several names (hard links) not touched unasked. Their options are
 * cli_writing_options. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli.h"

typedef enum cli_target {
    CLI_TARGET_NEW,  /* -o must be given */
    CLI_TARGET_EDIT  /* the input itself, unless -o is given */
} cli_target;

#define CLI_REAL_ROOM 4096

typedef struct cli_output {
    const char *path;  /* as given: to be shown */
    const char *blame; /* of a failed beginning: the path it is about */
    bool in_place;    /* no -o: the input is replaced */
    sft_path_options options; /* for sft_sink_path(path): all the rules above */
} cli_output;

/* Decide, and refuse before anything is read. input: path of the file whose mode and time
 * the result takes, NULL or "-" when there is none. */
sft_code cli_output_begin(cli_output *out, cli *c, const char *input, cli_target target,
                          sft_error *err);
/* The sink; nothing is there until it is finished. */
sft_code cli_output_sink(const cli_output *out, sft_sink *sink, sft_error *err);

/* Write parts there, with progress; nothing with --dry-run. */
sft_code cli_output_parts(const cli_output *out, cli *c, const sft_part *parts, size_t count,
                          const sft_pair *metadata, size_t metadata_count, bool has_metadata,
                          sft_error *err);

/* Write parts as the shards of one model to the folder -o names, which is new or empty; with
 * --dry-run tell the files. Their names begin with --name. */
sft_code cli_output_set(cli *c, const sft_part *parts, const uint32_t *shard_of, size_t count,
                        uint32_t shards, const sft_pair *metadata, size_t metadata_count,
                        bool has_metadata, sft_error *err);

/* "5GB", "512 MiB", "1000": bytes, K M G T as powers of 1000, Ki Mi Gi Ti of 1024. */
sft_code cli_parse_size(const char *text, uint64_t *out, sft_error *err);
/* Digits only. what: "shards", for the message. */
sft_code cli_parse_count(const char *text, const char *what, uint32_t *out, sft_error *err);

#endif
