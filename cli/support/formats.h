/* Models in other formats (import.h), as a folder shows them: by their names, then contents. */
#ifndef CLI_FORMATS_H
#define CLI_FORMATS_H

#include "safetensors.h"

/* Ends of their files' names. A single array (.npy) is no model, unless it is named. */
#define CLI_OTHER_FORMATS 14
extern const char *const cli_other_formats[CLI_OTHER_FORMATS];

/* The row of a file's name, or CLI_OTHER_FORMATS. */
size_t cli_other_format(sft_span name);
/* Whether a file of such a name is a model, or was to be one: what only models are called is told
 * by its name, however broken, unless it is a sound file of another kind (a pickle or an archive
 * without tensors); any other name by the contents. open: for its files and limits. */
bool cli_is_other_model(const char *path, const sft_open_options *open);
/* Whether the name is one that only models have. */
bool cli_is_model_name(sft_span name);
/* A part of a GGUF model after the first, which stands for all where it is there. */
bool cli_is_later_part(const char *path, const sft_files *files);

#endif
