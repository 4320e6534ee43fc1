/* repair of one file, and of a model in several. */
#ifndef CLI_REPAIR_H
#define CLI_REPAIR_H

#include "support/output.h"
#include "safetensors_edit.h"

/* Print each finding; returns how many there were. */
size_t cli_print_fixes(cli *c, const char *path, const sft_repair *repair);
/* The same as objects into an array. */
void cli_put_fixes(sfti_json_writer *w, const char *path, const sft_repair *repair);
cli_written_file cli_repaired_file(const char *path, const sft_repair *repair);

#define CLI_REPAIR_SKIPPED ", not written (--copy writes it all the same)"

/* Whether it is a model in several files: an index, or a folder. */
bool cli_repairs_set(const char *operand);
/* The file in the arena, if a folder has only one, which is no shard; else NULL. */
const char *cli_repairs_one(const cli *c, const char *folder, sfti_arena *arena);
/* Rewrite each of its files into the folder that -o names, and then the index, with every tensor in
 * the shard it is in and the right total_size. *path: what a failure is about; it may be the
 * arena's. */
sft_code cli_repair_set(cli *c, const char *operand, sfti_arena *arena, const char **path,
                        sft_error *err);

/* --clip: the position ids of CLIP in a model. */
void repair_clip(cli *c, const char *input);

#endif
