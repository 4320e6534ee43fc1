/* The indexes of a folder, whatever they are called: what one of them names is a model's. */
#ifndef CLI_INDEXES_H
#define CLI_INDEXES_H

#include "support/cli.h"

typedef struct cli_indexes {
    cli *c;
    sft_span folder; /* a path with its slash, or empty */
    bool by_name;    /* only files that are called as an index is; else also all others of at most
                        64 MiB that begin with '{' and have a "weight_map": x.json, a backup */
    bool strict;     /* an error: one that is called so and is none, and what cannot be read */
    bool (*counts)(void *ctx, const char *path); /* NULL: all count */
    /* Each text, none of which looks like a shard's name and is not meant. False: out of memory. */
    bool (*each)(void *ctx, const char *index, sft_span text);
    void *ctx; /* of both */
} cli_indexes;

sft_code cli_indexes_each(const cli_indexes *look, sft_error *err);

#endif
