/* What hash and dup share: all models of the command line, the options of hashing. */
#ifndef CLI_HASH_H
#define CLI_HASH_H

#include "safetensors_hash.h"
#include "support/cli.h"
#include "support/progress.h"

/* Every input that the operands name, in order. */
typedef struct cli_gathered {
    cli_inputs *expanded; /* of each operand */
    size_t expanded_count;
    const cli_input **items;
    size_t count;
    sfti_arena arena;
} cli_gathered;

/* Fails only when memory runs out. Free with cli_gathered_free, also after a failure. */
sft_code cli_gather(cli *c, char **operands, size_t count, cli_gathered *out, sft_error *err);
void cli_gathered_free(cli_gathered *gathered);

/* A run of hashing: --cache and --threads are read; the status says if they are wrong. */
typedef struct cli_hashing {
    cli *c;
    sft_hash_options options; /* its cache is NULL where files are verified: they are read */
    sft_hash_cache *cache;    /* --cache, or NULL */
    cli_progress progress;
    sft_job job;
    bool usable;
} cli_hashing;

void cli_hashing_begin(cli_hashing *h, cli *c, const char *path);
/* Before something is printed. */
void cli_hashing_quiet(cli_hashing *h);
/* Save the cache. */
void cli_hashing_end(cli_hashing *h);

/* --threads, 0 when there is none; false when it is no number, which has been told. */
bool cli_parse_threads(cli *c, uint32_t *out);

/* The algorithm of that name, in letters of any case; SFT_HASH_COUNT for another word. */
unsigned cli_algo_named(sft_span name);

extern const cli_option cli_hashing_options[]; /* --cache --threads */

#endif
