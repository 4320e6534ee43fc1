/* convert: models in other formats. */
#ifndef CONVERT_IMPORT_H
#define CONVERT_IMPORT_H

#include "support/import.h"
#include "support/parts.h"

/* Write what was imported, without casts, where -o says: a file, or of a model in shards a
 * folder. parts: of the import's set, for the mode and time of the result. On a failure
 * parts->path is what it is about. */
sft_code convert_import(cli *c, const sft_import *import, cli_parts *parts, sft_error *err);

/* The answer to --list. */
void convert_list_branches(cli *c, const char *path, const sft_import *import);

#endif
