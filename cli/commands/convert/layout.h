/* What the files of convert --layout, ls --parts and select --part share. */
#ifndef CLI_LAYOUT_H
#define CLI_LAYOUT_H

#include "layout/conversion.h"
#include "support/output.h"
#include "support/parts.h"

typedef struct layout_run {
    cli *c;
    cli_parts parts;
    sft_layout_conversion *conversion;
    const char *blame; /* path that an error is about */
} layout_run;

/* Opens the operands, the files or folders of one model, and finds their components; plans: and
 * what becomes of them. To be closed after a failure, too. */
sft_code layout_open(layout_run *run, char **operands, size_t count, bool plans,
                     sft_layout_options options, sft_error *err);
void layout_close(layout_run *run);
/* The same of what is open. */
sft_code layout_find(layout_run *run, const cli_parts *parts, bool plans,
                     sft_layout_options options, sft_error *err);
/* The layout of --architecture, which is given. */
sft_code layout_model_asked(const cli *c, const sfti_layout_text *layouts,
                            const sfti_layout_model **out, sft_error *err);

/* ls --parts. */
void layout_list(cli *c, char **operands, size_t count);
/* For select: keep[i] becomes false for what --part or --prune leaves out of the parts. */
sft_code layout_keep(cli *c, const cli_parts *parts, bool *keep, sft_error *err);

#endif
