/* What commands that write a model print when it is done, or with --dry-run would be: a line, or a
 * result object. */
#ifndef CLI_WRITTEN_H
#define CLI_WRITTEN_H

#include "support/parts.h"

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

/* Of parts; where shard_of is not NULL of those only that stand in `shard`. */
cli_written_file cli_written_parts(const char *path, const sft_part *parts, size_t count,
                                   const uint32_t *shard_of, uint32_t shard);
void cli_say_written(cli *c, const cli_written *written);

/* To c->dropped: the stale digests that a file records. */
void cli_find_dropped(cli *c, const sft_file *file, unsigned stale);
/* Of c->dropped: the member "dropped" of a result, and a line on stderr. */
void cli_put_dropped(const cli *c, sfti_json_writer *w);
void cli_say_dropped(cli *c, const char *path);

#endif
