/* Sorted tables of LevelDB, as TensorFlow keeps the names of a checkpoint in. The layout:
 * github.com/google/leveldb, doc/table_format.md. */
#ifndef SFTI_TABLE_H
#define SFTI_TABLE_H

#include "formats/parts/state.h"

/* Called for each entry, in the order of keys; both spans live as long as the call. at: byte of
 * the file where the value is. */
typedef sft_code (*sfti_table_fn)(void *ctx, sft_span key, sft_span value, uint64_t at);

/* Whether the source ends as such a table does. */
bool sfti_is_table(sfti_import *im);
/* All entries. SFT_FOREIGN_SYNTAX, _CHECKSUM of a block, _AMBIGUOUS for keys out of order, _KIND
 * for compressed blocks, _TABLE for a block of more than 64 MiB. */
sft_code sfti_table_read(sfti_import *im, sfti_table_fn each, void *ctx);

#endif
