/* Large reads: straight into the reader's memory, in pieces over several connections.
 * Tests: test_remote_blocks.c. */
#include "remote/read/blocks.h"

#include <string.h>

#define PIECES_LEAST ((uint64_t)4 << 20) /* bytes of a piece, at least and at most */
#define PIECES_MOST ((uint64_t)8 << 20)
#define PIECES_GAPS 16
#define PIECES_BLOCKS 16

/* Guarded by the mutex while the tasks run. */
typedef struct piece_read {
    sfti_stream *stream;
    char *into; /* of the byte at `base` */
    uint64_t base;
    sfti_extent gaps[PIECES_GAPS]; /* what no block holds; what is left of them */
    size_t gap_count, gap;
    uint64_t piece;
    sfti_block *blocks[PIECES_BLOCKS];
    size_t block_count;
    sfti_task tasks[SFTI_CONNECTIONS_MOST];
    size_t task_count, ended;
    sft_code code; /* the first failure, after which no piece is begun */
    sft_error error;
} piece_read;

/* ── Blocks ── */

sft_code sfti_block_await(sfti_block *block, sft_error *err) {
    sfti_blocks *blocks = block->stream->blocks;
    sfti_pool *pool = blocks->pool;
    while (block->state == SFTI_BLOCK_PENDING) {
        if (sfti_pool_take_back(pool, &block->task)) {
            blocks->under_way--;
            sfti_block_fetch(block, NULL, NULL);
        } else if (!sfti_pool_wait(pool)) {
            return sfti_fail_cancelled(err);
        }
    }
    return SFT_OK;
}

void sfti_block_copy(sfti_block *block, uint64_t begin, uint64_t end, char *into) {
    os_mutex *mutex = &block->stream->blocks->pool->mutex;
    sfti_os_mutex_unlock(mutex);
    memcpy(into, block->data + (begin - block->begin), (size_t)(end - begin));
    sfti_os_mutex_lock(mutex);
    block->used = block->stream->blocks->tick;
    if (end == block->end && !block->page) block->spent = true;
    /* It may have been announced more than once, and is read once. */
    sfti_stream_unplan(block->stream, begin, end);
}

/* ── Pieces ── */

static bool pieces_wanted(void *ctx) {
    const piece_read *all = ctx;
    os_mutex *mutex = &all->stream->blocks->pool->mutex;
    sfti_os_mutex_lock(mutex);
    bool on = !all->code;
    sfti_os_mutex_unlock(mutex);
    return on;
}

/* With the mutex held, the next piece; false: none is left, or one failed. */
static bool pieces_claim(piece_read *all, uint64_t *begin, uint64_t *end) {
    if (all->code || all->gap == all->gap_count) return false;
    sfti_extent *gap = &all->gaps[all->gap];
    uint64_t left = gap->end - gap->begin;
    *begin = gap->begin;
    *end = left > all->piece ? gap->begin + all->piece : gap->end;
    gap->begin = *end;
    if (gap->begin == gap->end) all->gap++;
    return true;
}

static void pieces_work(piece_read *all) {
    sfti_stream *stream = all->stream;
    os_mutex *mutex = &stream->blocks->pool->mutex;
    sft_error error = SFT_ERROR_INIT;
    uint64_t begin, end;
    while (pieces_claim(all, &begin, &end)) {
        sfti_os_mutex_unlock(mutex);
        sft_code code = stream->fetch(stream->ctx, begin, end, all->into + (begin - all->base),
                                      pieces_wanted, all, &error);
        sfti_os_mutex_lock(mutex);
        if (!code || all->code) continue;
        all->code = code;
        all->error = error;
    }
}

static void pieces_task(void *ctx) {
    piece_read *all = ctx;
    sfti_pool *pool = all->stream->blocks->pool;
    sfti_os_mutex_lock(&pool->mutex);
    pieces_work(all);
    all->ended++;
    sfti_os_cond_wake(&pool->done);
    sfti_os_mutex_unlock(&pool->mutex);
}

/* ── The read ── */

/* Note what blocks hold of [at, end), and what they do not; where it stopped. A block that nobody
 * began to fetch makes way. */
static uint64_t pieces_divide(piece_read *all, uint64_t at, uint64_t end) {
    sfti_stream *stream = all->stream;
    sfti_blocks *blocks = stream->blocks;
    while (at < end && all->gap_count < PIECES_GAPS && all->block_count < PIECES_BLOCKS) {
        uint64_t gap_end;
        sfti_block *block = sfti_block_find(stream, at, NULL, &gap_end);
        if (block && sfti_pool_take_back(blocks->pool, &block->task)) {
            blocks->under_way--;
            sfti_block_drop(block);
            continue;
        }
        if (block) {
            block->refs++;
            all->blocks[all->block_count++] = block;
            at = block->end;
            continue;
        }
        if (gap_end > end) gap_end = end;
        sfti_extent *last = all->gap_count ? &all->gaps[all->gap_count - 1] : NULL;
        if (last && last->end == at) last->end = gap_end;
        else all->gaps[all->gap_count++] = (sfti_extent){ at, gap_end, 0 };
        at = gap_end;
    }
    return at < end ? at : end;
}

/* Give pieces beyond the first to the pool's threads. */
static void pieces_share(piece_read *all) {
    sfti_pool *pool = all->stream->blocks->pool;
    uint64_t bytes = 0, pieces = 0;
    for (size_t i = 0; i < all->gap_count; i++) bytes += all->gaps[i].end - all->gaps[i].begin;
    all->piece = bytes / pool->connections + 1;
    if (all->piece < PIECES_LEAST) all->piece = PIECES_LEAST;
    if (all->piece > PIECES_MOST) all->piece = PIECES_MOST;
    if (bytes <= PIECES_MOST) all->piece = PIECES_MOST;
    for (size_t i = 0; i < all->gap_count; i++)
        pieces += (all->gaps[i].end - all->gaps[i].begin + all->piece - 1) / all->piece;
    while (pieces > all->task_count + 1 && all->task_count + 1 < pool->connections) {
        sfti_task *task = &all->tasks[all->task_count++];
        *task = (sfti_task){ pieces_task, all, NULL, false };
        sfti_pool_put(pool, task);
    }
}

/* What a block has of [all->base, end). If its fetch was cancelled, that was not for this reader,
 * who fetches the bytes himself. */
static sft_code pieces_copy_block(piece_read *all, sfti_block *block, uint64_t end,
                                  sft_error *err) {
    sfti_stream *stream = all->stream;
    os_mutex *mutex = &stream->blocks->pool->mutex;
    uint64_t from = block->begin > all->base ? block->begin : all->base;
    uint64_t to = block->end < end ? block->end : end;
    char *into = all->into + (from - all->base);
    sft_code code = sfti_block_await(block, err);
    if (code) return code;
    if (block->state == SFTI_BLOCK_READY) {
        sfti_block_copy(block, from, to, into);
        return SFT_OK;
    }
    if (!block->gone) sfti_block_drop(block);
    if (block->error.code != SFT_CANCELLED)
        return sfti_fail_as(err, block->error.code, &block->error);
    sfti_os_mutex_unlock(mutex);
    code = stream->fetch(stream->ctx, from, to, into, pieces_wanted, all, err);
    sfti_os_mutex_lock(mutex);
    return code;
}

static void pieces_copy(piece_read *all, uint64_t end) {
    sft_error error = SFT_ERROR_INIT;
    for (size_t i = 0; i < all->block_count; i++) {
        sft_code code = all->code ? SFT_OK : pieces_copy_block(all, all->blocks[i], end, &error);
        if (code && !all->code) {
            all->code = code;
            all->error = error;
        }
        sfti_block_unref(all->blocks[i]);
    }
}

/* 1. What no block holds is divided into pieces, which this thread and those of the pool claim.
 * 2. Then blocks are copied, some of which may have been on their way. 3. Tasks that no thread
 * began are taken back; those that were begun write into the reader's memory, so it waits for them
 * whatever happened. */
sft_code sfti_pieces_read(sfti_stream *stream, uint64_t *at, uint64_t end, char *into,
                       sft_error *err) {
    sfti_pool *pool = stream->blocks->pool;
    piece_read all;
    memset(&all, 0, offsetof(piece_read, tasks));
    all.task_count = all.ended = 0;
    all.code = SFT_OK;
    all.stream = stream;
    all.into = into;
    all.base = *at;
    end = pieces_divide(&all, *at, end);
    sfti_stream_unplan(stream, *at, end);
    pieces_share(&all);
    if (all.task_count > 0) {
        sfti_os_mutex_unlock(&pool->mutex);
        sfti_pool_start(pool);
        sfti_os_mutex_lock(&pool->mutex);
    }
    pieces_work(&all);
    pieces_copy(&all, end);
    for (size_t i = 0; i < all.task_count; i++)
        if (sfti_pool_take_back(pool, &all.tasks[i])) all.ended++;
    while (all.ended < all.task_count)
        if (!sfti_pool_wait(pool) && !all.code) all.code = sfti_fail_cancelled(&all.error);
    if (all.code) return sfti_fail_as(err, all.code, &all.error);
    *at = end;
    return SFT_OK;
}
