/* What is computed and asked while models go by: --hash, --verify and --online. */
#ifndef CLI_INFO_COMPUTE_H
#define CLI_INFO_COMPUTE_H

#include "commands/info/online.h"
#include "support/where.h"

/* Zeroed, it computes nothing. */
typedef struct cli_compute {
    cli *c;
    cli_wheres where; /* the caller's: only models that may match are hashed and looked up */
    uint32_t algos;   /* of --hash */
    cli_digests digests;
    cli_online online;
} cli_compute;

/* Read --hash and see what else is wanted. */
sft_code cli_compute_read(cli_compute *run, cli *c, sft_error *err);
/* Open the cache and the server; path is for the progress. False, after a complaint, if that
 * fails; end it all the same. */
bool cli_compute_begin(cli_compute *run, const char *path);
/* Whether a model that is delivered has its result object, with what was learned since; else its
 * err says why not. */
bool cli_compute_has_tree(const cli_compute *run, cli_model *model);
void cli_compute_end(cli_compute *run);
/* Whether nothing is computed or asked, only counted: --online --dry-run. */
bool cli_compute_only_counts(const cli *c);

#endif
