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
    uint32_t threads;
    const struct sfti_quant_target *target; /* of --quantize, or NULL */
    const char *input;
} convert_run;

/* ── Results (results.c) ── */

/* Names the worst of the tensors that lost more than a hundredth of their values, if there are
 * any; not with --dry-run. */
void convert_warn_lost(const convert_run *run);
/* Members of a result: what was lost, if anything was cast, and the import. */
void convert_put_more(void *run, sfti_json_writer *w);
/* The result that is one file of these tensors. */
void convert_say_file(convert_run *run, const char *path, const sft_part *parts, size_t count);

/* ── --quantize (quantise.c) ── */

/* Whether what the options say of --quantize can be done, and run->target; else a usage error. */
bool convert_quantise_asked(convert_run *run, bool exports, sft_error *err);
/* Writes the model quantised, and tells what that cost. */
sft_code convert_quantise(convert_run *run, sft_error *err);

/* ── --layout diffusers|single|comfy (layout.c) ── */

/* The operands are the files or folders of one model. */
void convert_layouts(cli *c, char **operands, size_t count);

/* ── Models in other formats (import.c) ── */

/* Write what was imported, without casts, where -o says: a file, or of a model in shards a
 * folder. On a failure run->parts.path is what it is about. */
sft_code convert_import(convert_run *run, sft_error *err);
/* The answer to --list. */
void convert_list_branches(const convert_run *run);

#endif
