/* Digests as lines of text, as sha256sum and its kin write and read them:
 *
 *   HEX  PATH               one algorithm
 *   ALGO (PATH) = HEX       several
 *
 * A line whose path has characters to be escaped begins with a backslash.
 */
#ifndef CLI_SUMS_H
#define CLI_SUMS_H

#include "cli.h"
#include "safetensors_hash.h"

/* named: with the algorithm. */
void cli_sum_line(cli *c, const char *path, sft_hash_algo algo, const char *hex, bool named);

/* What the lines of a file say of one path: one behind the other. */
typedef struct cli_sums_of {
    sft_hash_ask ask;
    size_t first, count; /* claims */
} cli_sums_of;

typedef struct cli_sums {
    sfti_arena arena;
    sft_hash_claim *claims;
    cli_sums_of *paths;
    size_t claim_count, path_count;
} cli_sums;

/* Read a file of such lines; empty ones and those that begin with # are passed over. A HEX
 * alone is of `algo`, or, if algo is SFT_HASH_COUNT, of what its length says: 64 digits
 * sha256, 12 autov3, 10 autov2. Fails on the first line that says nothing, err names it. Free
 * with cli_sums_free, also after a failure. */
sft_code cli_sums_read(const char *path, unsigned algo, const sft_allocator *alloc,
                       cli_sums *out, sft_error *err);
void cli_sums_free(cli_sums *sums);

#endif
