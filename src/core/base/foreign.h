/* What parts that do not know the formats ask of an import they are given: every sft_import begins
 * with it. */
#ifndef SFTI_FOREIGN_H
#define SFTI_FOREIGN_H

#include "safetensors.h"

struct sft_import;

typedef struct sfti_foreign {
    /* sft_import_json. */
    sft_code (*report)(const struct sft_import *import, const char *path, sft_sink *sink,
                       sft_error *err);
    /* How many files were opened beside its own, and their names from its folder on; names may be
     * NULL. */
    size_t (*files)(const struct sft_import *import, sft_span *names);
} sfti_foreign;

#endif
