/* Numbered shards of a model in another format, where no index names them. */
#ifndef SFTI_IMPORT_SHARDS_H
#define SFTI_IMPORT_SHARDS_H

#include "safetensors_import.h"

/* Opens the files, all in one folder, as one model: each is a shard of it, in that order. What
 * holds of them all, its format for one, is that of the first. */
sft_code sfti_import_open_list(const char *const *paths, size_t count,
                               const sft_import_options *options, sft_import **out, sft_error *err);

#endif
