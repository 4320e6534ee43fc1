/* What the files of convert --layout share. */
#ifndef CLI_LAYOUT_H
#define CLI_LAYOUT_H

#include "layout/layout.h"
#include "support/output.h"
#include "support/parts.h"

typedef struct layout_run {
    cli *c;
    cli_parts parts;
    sfti_layout_text layouts;
    sfti_layout_out out;
    sfti_layout_input *inputs;
    sfti_layout_groups groups;
    size_t unmatched;
    const sfti_layout_model *model; /* or NULL */
    const sfti_layout_model *exact; /* the same, if it is not that of a parent; or NULL */
    sfti_side to;
    bool folder, single, comfy;
    uint64_t max_bytes;
    const char *blame; /* path that an error is about */
    sft_pair *pairs;
    size_t pair_count;
} layout_run;

/* Opens the operands, the files or folders of one model, and finds their components; counts what
 * only training needs. To be freed after a failure, too. */
sft_code layout_open(layout_run *run, char **operands, size_t count, sft_error *err);
/* The layout of an architecture or the nearest of its parents that has one; NULL: none has. */
const sfti_layout_model *layout_model_of(const sfti_layout_text *layouts, sft_span architecture);
/* That of --architecture, which is given. */
sft_code layout_model_asked(const cli *c, const sfti_layout_text *layouts,
                            const sfti_layout_model **out, sft_error *err);
/* That of a model or adapter, by its header; or NULL. *exact, which may be NULL, becomes the same
 * or, for that of a parent, NULL. */
const sfti_layout_model *layout_model_by(const cli *c, const sfti_layout_text *layouts,
                                         const sft_set *set, const sfti_layout_model **exact);
/* Metadata of one of the files to be written, of that group or of all (NULL): run->pairs. */
sft_code layout_metadata(layout_run *run, const sfti_layout_group *one, sft_error *err);
/* Adds to a denoiser from a folder of diffusers the markers of what the scheduler beside it says,
 * or notes what is lost. */
sft_code layout_tell_prediction(layout_run *run, const sfti_layout_group *one, sft_error *err);
/* Notes what a single file has no place for of the configurations of VAEs. */
void layout_tell_factors(layout_run *run);
/* Writes the folder -o names, all of it or nothing; its files become those of *written. */
sft_code layout_write(layout_run *run, cli_written *written, sft_error *err);

/* ls --parts. */
void layout_list(cli *c, char **operands, size_t count);
/* For select: keep[i] becomes false for what --part or --prune leaves out of the parts. */
sft_code layout_keep(cli *c, const char *operand, const cli_parts *parts, bool *keep,
                     sft_error *err);

#endif
