/* What hash and dup share: all models of the command line, the options of hashing. */
#ifndef CLI_HASH_H
#define CLI_HASH_H

#include "safetensors_hash.h"
#include "support/cli.h"

/* Every input that the operands name, in order. */
typedef struct cli_input_list {
    cli_inputs *expanded; /* of each operand */
    size_t expanded_count;
    const cli_input **items;
    size_t count;
    sfti_arena arena;
} cli_input_list;

/* Fails only when memory runs out. Free with cli_gathered_free, also after a failure. */
sft_code cli_list_inputs(cli *c, char **operands, size_t count, cli_input_list *out,
                         sft_error *err);
void cli_input_list_free(cli_input_list *list);

/* A run of hashing: --cache and --threads are read; the status says if they are wrong. */
typedef struct cli_hash_run {
    cli *c;
    sft_hash_options options; /* its cache is NULL where files are verified: they are read */
    sft_hash_cache *cache;    /* --cache, or NULL */
    cli_progress progress;
    sft_job job;
    bool usable;
} cli_hash_run;

void cli_hash_run_begin(cli_hash_run *h, cli *c, const char *path);
/* Before something is printed. */
void cli_hash_run_quiet(cli_hash_run *h);
/* Save the cache. */
void cli_hash_run_end(cli_hash_run *h);

/* --threads, 0 without it; false, after a complaint, when it is not a number. */
bool cli_parse_threads(cli *c, uint32_t *out);

/* The algorithm of that name, in letters of any case; SFT_HASH_COUNT for another word. */
unsigned cli_algo_named(sft_span name);

extern const cli_option cli_hash_run_options[]; /* --cache --threads */

#endif
