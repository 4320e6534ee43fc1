/* convert: what its parts share. */
#ifndef CLI_CONVERT_H
#define CLI_CONVERT_H

#include "safetensors_convert.h"
#include "support/output.h"
#include "support/parts.h"

typedef struct convert_run {
    cli *c;
    cli_parts parts;
    sft_conversion *conversion; /* NULL: nothing is cast */
    sft_dtype to;
    size_t matched;
    bool casts; /* --dtype or --dequantize was given */
    bool into_folder; /* a model in several files stays one */
    uint32_t *shard_of; /* then of an import: which file each tensor of its set was in */
    const bool *computed; /* of each tensor of the set: whether its values were computed from codes
                             of another format and are cast or quantised; NULL: none */
    uint32_t threads;
    const struct sfti_quant_target *target; /* of --quantize, or NULL */
    const char *input;
} convert_run;

/* An option that was given and changes nothing, because the models are safetensors; NULL: none. */
const char *convert_import_option(const cli_settings *set);
#define CLI_NO_IMPORT "expected a model in another format for %s, found safetensors"
#define CLI_NO_AS "expected tensors that match --as, found none"

/* ── Results (results.c) ── */

/* Names the worst of the tensors that lost more than a hundredth of their values, if there are
 * any; not with --dry-run. */
void convert_warn_lost(const convert_run *run);
/* Tensors that are cast, also while another format is read, or whose values are computed. */
uint64_t convert_count_made(const convert_run *run);
/* A note about matched tensors that keep their dtype, or where that is why nothing is cast. */
void convert_note_kept(const convert_run *run);
/* Members of a result: what was lost, if anything was cast, and the import. */
void convert_put_more(void *run, sfti_json_writer *w);
/* The result that is one file of these tensors. */
void convert_say_file(convert_run *run, const char *path, const sft_part *parts, size_t count);

/* The result of a conversion: a file or a folder of shards. */
sft_code convert_say(convert_run *run, bool folder, const char *path, sft_error *err);

/* ── --quantize (quantise.c) ── */

/* Whether what the options say of --quantize can be done, and run->target; else a usage error. */
bool convert_quantise_asked(convert_run *run, bool exports, sft_error *err);
/* Writes the model quantised, and tells what that cost. */
sft_code convert_quantise(convert_run *run, sft_error *err);

/* ── --layout diffusers|single|comfy (layout.c) ── */

/* For --max-shard-size; the argument is the layout found instead. */
#define CLI_NO_SHARDS \
    "expected --layout diffusers with --max-shard-size, found %s; \"safetensors split\" divides " \
    "a model"

/* The operands are the files or folders of one model. */
void convert_layouts(cli *c, char **operands, size_t count);

/* ── Models in other formats (results.c) ── */

/* The number of files that hold the model. */
size_t convert_shard_count(const convert_run *run);
/* Fills run->shard_of. */
sft_code convert_import_shards(convert_run *run, sft_error *err);
/* Fills run->computed. */
sft_code convert_find_computed(convert_run *run, sft_error *err);
/* With --keep-mtime: times for as many shards and the index, all that of the import. */
sft_code convert_import_mtimes(convert_run *run, size_t shards, const int64_t **out,
                               sft_error *err);
/* Write what was imported, without casts, where -o says: a file, or of a model in shards a
 * folder. On a failure run->parts.path is what it is about. */
sft_code convert_import(convert_run *run, sft_error *err);
/* The same, with casts, into a folder. */
sft_code convert_save_import(convert_run *run, const sft_job *job, sft_error *err);
/* The answer to --list. */
void convert_list_branches(const convert_run *run);

#endif
