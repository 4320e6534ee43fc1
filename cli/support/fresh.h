/* A model with an index, changed where it is:
 *
 * 1. Changed shards are written under fresh names (model-00001-of-00003-<8 hex>.safetensors) and
 *    synced. A crash here leaves the old model, and new files that no index names.
 * 2. The index that names them replaces the old one by rename. A crash after it leaves the new
 *    model, and old shards that no index names.
 * 3. The old shards are removed, unless another index in the folder names them. */
#ifndef CLI_FRESH_H
#define CLI_FRESH_H

#include "support/cli.h"
#include "support/renamed.h"

typedef struct cli_fresh {
    cli *c;
    const char *index, *folder; /* that of the index, with its slash */
    sfti_arena arena;
    sft_pair *names;  /* of shards, as the index has them: before and after; after.data NULL: it
                         goes without another in its place */
    size_t count, most;
    char **written;   /* paths */
    size_t written_count;
    struct fresh_folder *made; /* the last first */
    int held; /* the folder of the shard that is being written, if it */
    bool holds;
} cli_fresh;

/* At most so many shards are written or go. */
sft_code cli_fresh_begin(cli_fresh *fresh, cli *c, const char *index, size_t most,
                         sft_error *err);
void cli_fresh_end(cli_fresh *fresh);

/* Before it begins: SFT_IS_LINK for a link to an index in another folder, whatever --follow says.
 * Shards would be written beside the link, and the index would name files that are not there. */
sft_code cli_fresh_own_index(const char *index, sft_error *err);

/* Path of a shard as the index has it: beneath the index's folder. */
const char *cli_fresh_name(const cli_fresh *fresh, const char *shard_path);
/* Before folder/name is written, name being that of a shard: the folders in it, which are on the
 * disk then and go by cli_fresh_undo. */
sft_code cli_fresh_folders(cli_fresh *fresh, const char *folder, const char *name,
                           sft_error *err);
/* Before it is written: what lies above it in the index's folder is no link. *at is where to write
 * it, whatever becomes of that folder's name meanwhile; good until the next. */
sft_code cli_fresh_check(cli_fresh *fresh, const char *path, const char **at, sft_error *err);
/* The next to be written, in place of that shard: its path, or NULL when out of memory. */
char *cli_fresh_next(cli_fresh *fresh, const char *name);
/* It is there, or may be: after writing, failed or not (but for SFT_EXISTS). */
void cli_fresh_written(cli_fresh *fresh, char *path);
/* How to write it: as the old shard's mode and, with --keep-mtime, time are. */
sft_code cli_fresh_options(const cli_fresh *fresh, const char *old, sft_path_options *out,
                           sft_error *err);

/* Before the index is written, whose lock is held: a shard that goes is locked until the set is
 * closed, so that nobody edits what is removed (bytes/hold.h, step 5). */
sft_code cli_fresh_hold(const sft_set *set, size_t shard, sft_error *err);
/* After the index was written, or could not be (code): remove the old or the new shards. What
 * cannot be removed is complained of; the model is as it should be whatever happens here. */
void cli_fresh_settle(cli_fresh *fresh, sft_code code);
void cli_fresh_undo(const cli_fresh *fresh);

/* A folder that is new or empty. */
sft_code cli_make_folder(const cli *c, const char *path, bool *made, sft_error *err);
/* When all is in it: wait until the disk knows a folder that was made. */
sft_code cli_settle_folder(const cli *c, const char *path, bool made, sft_error *err);

typedef struct cli_rewrite {
    const bool *touched; /* by shard */
    /* Writes a shard and ends the sink; NULL: its parts and metadata are written. */
    sft_code (*save)(void *ctx, size_t shard, sft_sink sink, const sft_job *job, sft_error *err);
    void *ctx;
    const cli_changed_pair *gone; /* metadata that are left out, in the order of files */
    size_t gone_count;
    bool same_elements; /* the index's total_parameters still holds */
    uint32_t dtype;     /* of convert, with the two below: see cli_written */
    uint64_t cast, bytes_before;
    void (*more)(void *ctx, sfti_json_writer *w); /* of cli_written, or NULL; ctx as above */
} cli_rewrite;

#define CLI_REWRITE_INIT { .dtype = SFT_DTYPE_COUNT }

/* Write the model of parts, which has an index, back to where it is: its shards in `touched`
 * anew, each of the parts it has now, or not at all if there are none. With --dry-run tell. */
sft_code cli_rewrite_set(cli *c, cli_parts *parts, const cli_rewrite *how, sft_error *err);

#endif
