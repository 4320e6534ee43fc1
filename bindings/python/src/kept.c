/* Memory that the system hands out anew costs more than reading a file into it. So blocks that no
 * tensor needs any more are kept for the next load. Tests: test_kept.py.
 *
 * There is no lock: a child of fork() could not release what another thread of its parent held.
 *   1. A slot's block belongs to whoever exchanged it for nothing, or for another.
 *   2. kept_bytes counts a block from before it is put into a slot until after it was taken out.
 *      It is put there only by who then saw at most KEPT_ALL, so there are never more. */
#include "host.h"

#include <stdatomic.h>
#include <stdint.h>

#define KEPT_SLOTS ((size_t)64)
#define KEPT_ALL ((size_t)128 << 20)
#define KEPT_LEAST ((size_t)1 << 20) /* of a block: the allocator keeps small ones */
#define KEPT_MOST ((size_t)32 << 20)
#define KEPT_UNIT ((size_t)64 << 10) /* of lengths: a page, whatever the machine's size is */
#define ALIGNMENT ((size_t)2 << 20)
/* The system makes 65,530 maps for a process, and a block may take two. */
#define MAPPED_MOST ((size_t)8192)

/* Address and length in units in one number, for blocks begin at a multiple of 2 MiB. 0: none. */
typedef uintptr_t kept_block;

static _Atomic(kept_block) kept[KEPT_SLOTS];
static atomic_size_t mapped; /* blocks, kept or in use */
static atomic_size_t kept_bytes;
static atomic_size_t kept_next; /* slot of the next block: most often, the oldest one's */

static kept_block block_of(char *at, size_t len) {
    return (uintptr_t)at | len / KEPT_UNIT;
}

static size_t block_length(kept_block block) {
    return block % ALIGNMENT * KEPT_UNIT;
}

static char *block_start(kept_block block) {
    return (char *)(block - block % ALIGNMENT);
}

static void block_free(kept_block block) {
    if (!block) return;
    pysft_host_unmap(block_start(block), block_length(block));
    atomic_fetch_sub(&mapped, 1);
}

static kept_block slot_take(size_t slot) {
    kept_block block = atomic_exchange(&kept[slot], 0);
    atomic_fetch_sub(&kept_bytes, block_length(block));
    return block;
}

size_t pysft_kept_length(size_t bytes) {
    if (!pysft_host_lends || bytes < KEPT_LEAST || bytes > KEPT_MOST) return 0;
    return (bytes + KEPT_UNIT - 1) / KEPT_UNIT * KEPT_UNIT;
}

/* Slot of the shortest block that is long enough and at most a quarter too long, or KEPT_SLOTS. */
static size_t best_slot(size_t len) {
    size_t best = KEPT_SLOTS, most = len + len / 4 + 1;
    for (size_t i = 0; i < KEPT_SLOTS && most > len; i++) {
        size_t found = block_length(atomic_load(&kept[i]));
        if (found < len || found >= most) continue;
        best = i;
        most = found;
    }
    return best;
}

char *pysft_kept_take(size_t len, bool *again) {
    size_t slot = best_slot(len);
    kept_block block = slot < KEPT_SLOTS ? slot_take(slot) : 0;
    size_t found = block_length(block);
    *again = found >= len && found > 0;
    if (*again && found > len) pysft_host_unmap(block_start(block) + len, found - len);
    if (*again) return block_start(block);
    block_free(block); /* another thread's, put there since */
    bool few = atomic_fetch_add(&mapped, 1) < MAPPED_MOST;
    char *at = few ? pysft_host_map(len) : NULL;
    if (few && !at && pysft_kept_release() > 0) at = pysft_host_map(len);
    if (!at) atomic_fetch_sub(&mapped, 1);
    return at;
}

void pysft_kept_give(char *at, size_t len) {
    if (!pysft_host_lend(at, len)) {
        block_free(block_of(at, len));
        return;
    }
    size_t all = atomic_fetch_add(&kept_bytes, len) + len;
    size_t slot = atomic_fetch_add(&kept_next, 1) % KEPT_SLOTS;
    for (size_t i = 0; i < KEPT_SLOTS && all > KEPT_ALL; i++) {
        block_free(slot_take((slot + i) % KEPT_SLOTS));
        all = atomic_load(&kept_bytes);
    }
    kept_block block = block_of(at, len);
    if (all <= KEPT_ALL) block = atomic_exchange(&kept[slot], block);
    if (!block) return;
    atomic_fetch_sub(&kept_bytes, block_length(block));
    block_free(block);
}

size_t pysft_kept_release(void) {
    size_t bytes = 0;
    for (size_t i = 0; i < KEPT_SLOTS; i++) {
        kept_block block = slot_take(i);
        bytes += block_length(block);
        block_free(block);
    }
    return bytes;
}
