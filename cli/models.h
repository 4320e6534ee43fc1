/* Models as info and find see them: each with its facts, read by several threads, handed
 * on in the order of the inputs. */
#ifndef CLI_MODELS_H
#define CLI_MODELS_H

#include "cli.h"
#include "safetensors_info.h"

typedef struct cli_member {
    const char *path, *name; /* name: of the component's folder */
    sft_set *set;
    sft_info *info;
} cli_member;

/* One result to be. */
typedef struct cli_model {
    const cli_input *input; /* the first, of several */
    const char *path;       /* as it is shown */
    const cli_input *const *inputs; /* shards without an index, or components */
    size_t count;
    bool is_pipeline;
    const sft_info_folder *folder;  /* NULL: standard input */
    /* filled while it is at hand: */
    sft_set *set;           /* NULL of a pipeline */
    sft_info *info;
    cli_member *members;    /* of a pipeline, count of them */
    sft_info_part *parts;
    sft_buffer json;        /* its result object */
    sft_error err;          /* code not 0: what went wrong */
    const char *const *missing; /* shards that are not there */
    size_t missing_count;
} cli_model;

/* Call each() for every model the operands name; those that cannot be read too (err says
 * why). count is told before the first: how many models there are. Wraps nothing. */
typedef void (*cli_model_fn)(void *ctx, cli_model *model);
void cli_each_model(cli *c, char **operands, size_t operand_count, size_t *count,
                    cli_model_fn each, void *ctx);

/* The result object of a model that could not be read, after a complaint. */
void cli_fail_model(cli *c, const cli_model *model);

#endif
