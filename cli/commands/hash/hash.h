/* hash: digests as lines of text.
 *
 * Lines are as sha256sum and its kin write and read them:
 *
 *   HEX  PATH               one algorithm
 *   ALGO (PATH) = HEX       several
 *
 * A line whose path has characters to be escaped begins with a backslash: \\ \n \r \t, and of
 * ours \xHH and \u{HHHH}. Lines may end in CR LF, the file may begin with a byte order mark.
 */
#ifndef CLI_COMMANDS_HASH_H
#define CLI_COMMANDS_HASH_H

#include "safetensors_hash.h"
#include "support/cli.h"

/* Whether it is one algorithm at most. */
static inline bool cli_is_one_algo(uint32_t algos) {
    return (algos & (algos - 1)) == 0;
}

/* named: with the algorithm. */
void cli_sum_line(cli *c, const char *path, sft_hash_algo algo, const char *hex, bool named);

/* What the lines of a file say of one path: one behind the other. */
typedef struct cli_sums_of {
    sft_hash_request ask;
    size_t first, count; /* claims */
    bool is_text;        /* the path is an index, and they are of that file, not of its model */
} cli_sums_of;

#define CLI_SUMS_TOLD 8

typedef struct cli_sums {
    sft_buffer text;
    sfti_arena arena;
    sft_hash_claim *claims;
    cli_sums_of *paths;
    size_t claim_count, path_count;
    size_t line_count, bad_count; /* lines that are not empty; of these, those that say nothing */
    size_t bad_lines[CLI_SUMS_TOLD]; /* numbers of the first, from 1 */
    sft_span bad; /* text of the first */
    bool is_algo_known; /* a HEX alone was of some algorithm */
} cli_sums;

/* Read a file of such lines; empty ones and those that begin with # are passed over. A HEX
 * alone is of `algo`, or, if algo is SFT_HASH_COUNT, of what its length says: 64 digits
 * sha256, 12 autov3, 10 autov2. Lines that say nothing are counted; it fails when there is no
 * other. Free with cli_sums_free, also after a failure. */
sft_code cli_sums_read(cli *c, const char *path, unsigned algo, cli_sums *out, sft_error *err);
/* Tell of the lines that say nothing, of which there is one. */
sft_code cli_sums_bad(const cli_sums *sums, sft_error *err);
void cli_sums_free(cli_sums *sums);

#endif
