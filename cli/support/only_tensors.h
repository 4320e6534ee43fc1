/* What a model holds beyond the tensors that a content digest covers. */
#ifndef CLI_ONLY_TENSORS_H
#define CLI_ONLY_TENSORS_H

#include "safetensors_import.h"
#include "support/cli.h"

/* What the file has that the import lacks: *tensors: other tensors, so that only a part of
 * it is compared; *more: anything else, which nothing compares. */
void cli_find_left(const sft_import *import, bool *tensors, bool *more);
/* Whether a digest of the tensors covers the model: they have no other names, no metadata say how
 * they are read, and the file of another format (import not NULL) holds nothing else. */
bool cli_is_only_tensors(const cli *c, const sft_set *set, const sft_import *import);

/* Values of the metadata that say how tensors are read: each with its key, in the order of keys and
 * shards, none twice in a row. False: there is no i-th. */
bool cli_reading_at(const sft_set *set, size_t i, sft_pair *out);

#endif
