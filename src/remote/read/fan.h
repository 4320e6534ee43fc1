/* A large read: straight into the reader's memory, in pieces over several connections. */
#ifndef SFTI_REMOTE_FAN_H
#define SFTI_REMOTE_FAN_H

#include "remote/read/blocks.h"

/* With the mutex held (it is given up meanwhile): read [*at, end) into `into`, of which the byte at
 * *at is the first. What blocks hold is copied from them, the rest fetched. *at becomes where it
 * stopped, which is before `end` if there are many blocks between. */
sft_code sfti_fan_read(sfti_stream *stream, uint64_t *at, uint64_t end, char *into,
                       sft_error *err);

/* With the mutex held: wait until a block is no longer pending, or fetch it if no thread began to.
 * SFT_CANCELLED. The caller has a reference. */
sft_code sfti_block_await(sfti_block *block, sft_error *err);
/* With the mutex held: copy from a ready block, and remember that. The caller has a reference. */
void sfti_block_copy(sfti_block *block, uint64_t begin, uint64_t end, char *into);

#endif
