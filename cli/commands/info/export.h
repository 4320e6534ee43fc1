/* Writing previews and workflows out of models, under names that cannot leave the folder. */
#ifndef CLI_INFO_EXPORT_H
#define CLI_INFO_EXPORT_H

#include "support/models.h"

/* The pictures of a model into a folder: "<stem>.png", "<stem>.2.png", … Complains about
 * what cannot be written. Returns how many it wrote. */
size_t cli_export_previews(cli *c, const cli_model *model, const char *folder);
/* Bytes to a file, whole or not at all; one that is there only if it may be replaced, for which
 * cli_write_file takes --force. It is readable
 * by those who may read the model, and the file beside it that the bytes come from (or NULL).
 * cli_write_file complains, and returns false, when it fails. */
sft_code cli_write_beside(cli *c, const cli_model *model, const char *beside, const char *path,
                          sft_span bytes, bool replace, sft_error *err);
bool cli_write_file(cli *c, const cli_model *model, const char *beside, const char *path,
                    sft_span bytes);
/* "png" of "image/png"; NULL for a type that is no picture's or film's. */
const char *cli_picture_suffix(const char *media_type);
/* The model's workflow (else its prompt graph) to a file; false, after a complaint, when
 * there is none or it cannot be written. */
bool cli_export_workflow(cli *c, const cli_model *model, const char *path);

#endif
