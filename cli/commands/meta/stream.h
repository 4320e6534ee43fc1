/* meta set, rm and scrub with -o -: a changed copy on standard output. */
#ifndef CLI_META_STREAM_H
#define CLI_META_STREAM_H

#include "support/cli.h"

/* Pairs to set; those of data NULL are keys, or globs of keys, to be removed. */
typedef struct meta_request {
    const sft_pair *pairs;
    size_t count;
    bool is_scrub, is_rm;
} meta_request;

/* The operand is one model, which may come from standard input; what was done is told. */
void meta_stream(cli *c, const char *operand, const meta_request *ask);

#endif
