/* hash of URLs: what servers claim. */
#ifndef CLI_HASH_CLAIMS_H
#define CLI_HASH_CLAIMS_H

#include "safetensors_hash.h"
#include "support/cli.h"

/* Show the digests among algos that the server of a remote file, or of the shards of an index,
 * claims. Reads no data. is_all: what it does not claim is not missed. */
void cli_hash_claims(cli *c, const cli_input *input, uint32_t algos, bool is_all);

#endif
