/* Writes a file past the page cache, a block on a thread while the next is filled. Tests:
 * test_direct.c. */
#include "bytes/direct.h"

#include <errno.h>
#include <string.h>

#define DIRECT_UNIT ((size_t)4096)
#define DIRECT_SIZE ((size_t)8 << 20)

/* ── Blocks ── */

static bool block_new(const sfti_direct *d, sfti_direct_block *block) {
    block->memory = sfti_take(&d->alloc, DIRECT_SIZE + DIRECT_UNIT);
    if (!block->memory) return false;
    size_t past = (uintptr_t)block->memory % DIRECT_UNIT;
    block->at = block->memory + (DIRECT_UNIT - past) % DIRECT_UNIT;
    return true;
}

static int direct_plain(sfti_direct *d) {
    d->plain = true;
    return sfti_os_set_direct(d->fd, false);
}

/* Bytes [from, to) of the block. Where the system refuses one, or takes a part only, the rest of
 * the file goes on plainly from that byte. */
static int block_put(sfti_direct *d, const sfti_direct_block *block, size_t from, size_t to) {
    for (size_t done = from; done < to;) {
        size_t put = 0;
        int error = sfti_os_pwrite(d->fd, block->at + done, to - done, block->begin + done, &put);
        if (!error && put == 0) error = EIO;
        d->failed_at = block->begin + done;
        if (error && (error != EINVAL || d->plain)) return error;
        done += put;
        if (!d->plain && (error || done < to)) error = direct_plain(d);
        if (error && error != EINVAL) return error;
    }
    return 0;
}

/* ── The thread ── */

static void direct_work(void *ctx) {
    sfti_direct *d = ctx;
    sfti_direct_block *block = &d->blocks[!d->turn];
    block->error = block_put(d, block, 0, block->used);
}

/* Waits for the block that is being written. A child of fork() writes its copy of it again. */
static int direct_settle(sfti_direct *d) {
    if (d->writing && d->process == sfti_os_process()) sfti_os_thread_join(&d->thread);
    else if (d->writing) direct_work(d);
    d->writing = false;
    if (!d->error) d->error = d->blocks[!d->turn].error;
    return d->error;
}

/* Begins to write the block that is full, and turns to the other one; or writes it, if there is
 * no other one or no thread. */
static int direct_turn(sfti_direct *d) {
    sfti_direct_block *full = &d->blocks[d->turn], *next = &d->blocks[!d->turn];
    uint64_t end = full->begin + full->used;
    if (direct_settle(d)) return d->error;
    if (!next->memory && !d->alone) d->alone = !block_new(d, next);
    if (!next->memory) {
        d->error = block_put(d, full, 0, full->used);
        next = full;
    } else {
        d->turn = !d->turn;
        d->process = sfti_os_process();
        d->writing = sfti_os_thread_start(&d->thread, direct_work, d) == 0;
        if (!d->writing) direct_work(d);
    }
    next->begin = end;
    next->used = 0;
    return d->error;
}

/* ── Bytes in order ── */

bool sfti_direct_begin(sfti_direct *d, int fd, const sft_allocator *alloc) {
    memset(d, 0, sizeof *d);
    if (sfti_os_set_direct(fd, true)) return false;
    d->alloc = *alloc;
    d->fd = fd;
    d->in_use = block_new(d, &d->blocks[0]);
    if (!d->in_use) (void)sfti_os_set_direct(fd, false);
    return d->in_use;
}

void sfti_direct_free(sfti_direct *d) {
    if (d->writing && d->process == sfti_os_process()) sfti_os_thread_join(&d->thread);
    for (int i = 0; i < 2; i++)
        sfti_release(&d->alloc, d->blocks[i].memory, DIRECT_SIZE + DIRECT_UNIT);
    memset(d, 0, sizeof *d);
}

int sfti_direct_write(sfti_direct *d, const void *bytes, size_t len) {
    for (size_t done = 0; done < len && !d->error;) {
        sfti_direct_block *block = &d->blocks[d->turn];
        size_t left = DIRECT_SIZE - block->used, piece = len - done < left ? len - done : left;
        memcpy(block->at + block->used, (const char *)bytes + done, piece);
        block->used += piece;
        done += piece;
        if (block->used == DIRECT_SIZE) (void)direct_turn(d);
    }
    return d->error;
}

int sfti_direct_end(sfti_direct *d) {
    sfti_direct_block *last = &d->blocks[d->turn];
    size_t whole = last->used - last->used % DIRECT_UNIT;
    if (direct_settle(d)) return d->error;
    d->error = block_put(d, last, 0, whole);
    if (!d->error && !d->plain) d->error = direct_plain(d);
    if (!d->error) d->error = block_put(d, last, whole, last->used);
    return d->error;
}
