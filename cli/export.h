/* Writing previews and workflows out of models, under names that cannot leave the folder. */
#ifndef CLI_EXPORT_H
#define CLI_EXPORT_H

#include "models.h"

/* The pictures of a model into a folder: "<stem>.png", "<stem>.2.png", … Complains about
 * what cannot be written. Returns how many it wrote. */
size_t cli_export_previews(cli *c, const cli_model *model, const char *folder);
/* The model's workflow (else its prompt graph) to a file; false, after a complaint, when
 * there is none or it cannot be written. */
bool cli_export_workflow(cli *c, const cli_model *model, const char *path);

#endif
