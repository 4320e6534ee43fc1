/* Large reads: straight into the reader's memory, in pieces over several connections.
 * Tests: test_remote_blocks.c. */
#include "remote/read/blocks.h"

#include <string.h>

#define FAN_LEAST ((uint64_t)4 << 20) /* bytes of a piece, at least and at most */
#define FAN_MOST ((uint64_t)8 << 20)
#define FAN_GAPS 16
#define FAN_BLOCKS 16

/* Guarded by the mutex while the tasks run. */
typedef struct fan_read {
    sfti_stream *stream;
    char *into; /* of the byte at `base` */
    uint64_t base;
    sfti_extent gaps[FAN_GAPS]; /* what no block holds; what is left of them */
    size_t gap_count, gap;
    uint64_t piece;
    sfti_block *blocks[FAN_BLOCKS];
    size_t block_count;
    sfti_task tasks[SFTI_CONNECTIONS_MOST];
    size_t task_count, ended;
    sft_code code; /* the first failure, after which no piece is begun */
    sft_error error;
} fan_read;

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
    sfti_spans_remove(&block->stream->plan, begin, end);
}

/* ── Pieces ── */

static bool fan_goes_on(void *ctx) {
    const fan_read *fan = ctx;
    os_mutex *mutex = &fan->stream->blocks->pool->mutex;
    sfti_os_mutex_lock(mutex);
    bool on = !fan->code;
    sfti_os_mutex_unlock(mutex);
    return on;
}

/* With the mutex held, the next piece; false: none is left, or one failed. */
static bool fan_claim(fan_read *fan, uint64_t *begin, uint64_t *end) {
    if (fan->code || fan->gap == fan->gap_count) return false;
    sfti_extent *gap = &fan->gaps[fan->gap];
    uint64_t left = gap->end - gap->begin;
    *begin = gap->begin;
    *end = left > fan->piece ? gap->begin + fan->piece : gap->end;
    gap->begin = *end;
    if (gap->begin == gap->end) fan->gap++;
    return true;
}

static void fan_work(fan_read *fan) {
    sfti_stream *stream = fan->stream;
    os_mutex *mutex = &stream->blocks->pool->mutex;
    sft_error error = SFT_ERROR_INIT;
    uint64_t begin, end;
    while (fan_claim(fan, &begin, &end)) {
        sfti_os_mutex_unlock(mutex);
        sft_code code = stream->fetch(stream->ctx, begin, end, fan->into + (begin - fan->base),
                                      fan_goes_on, fan, &error);
        sfti_os_mutex_lock(mutex);
        if (!code || fan->code) continue;
        fan->code = code;
        fan->error = error;
    }
}

static void fan_task(void *ctx) {
    fan_read *fan = ctx;
    sfti_pool *pool = fan->stream->blocks->pool;
    sfti_os_mutex_lock(&pool->mutex);
    fan_work(fan);
    fan->ended++;
    sfti_os_cond_wake(&pool->done);
    sfti_os_mutex_unlock(&pool->mutex);
}

/* ── The read ── */

/* Note what blocks hold of [at, end), and what they do not; where it stopped. A block that nobody
 * began to fetch makes way. */
static uint64_t fan_divide(fan_read *fan, uint64_t at, uint64_t end) {
    sfti_stream *stream = fan->stream;
    sfti_blocks *blocks = stream->blocks;
    while (at < end && fan->gap_count < FAN_GAPS && fan->block_count < FAN_BLOCKS) {
        uint64_t gap_end;
        sfti_block *block = sfti_block_find(stream, at, NULL, &gap_end);
        if (block && sfti_pool_take_back(blocks->pool, &block->task)) {
            blocks->under_way--;
            sfti_block_drop(block);
            continue;
        }
        if (block) {
            block->refs++;
            fan->blocks[fan->block_count++] = block;
            at = block->end;
            continue;
        }
        if (gap_end > end) gap_end = end;
        sfti_extent *last = fan->gap_count ? &fan->gaps[fan->gap_count - 1] : NULL;
        if (last && last->end == at) last->end = gap_end;
        else fan->gaps[fan->gap_count++] = (sfti_extent){ at, gap_end, 0 };
        at = gap_end;
    }
    return at < end ? at : end;
}

/* Give pieces beyond the first to the pool's threads. */
static void fan_share(fan_read *fan) {
    sfti_pool *pool = fan->stream->blocks->pool;
    uint64_t bytes = 0, pieces = 0;
    for (size_t i = 0; i < fan->gap_count; i++) bytes += fan->gaps[i].end - fan->gaps[i].begin;
    fan->piece = bytes / pool->connections + 1;
    if (fan->piece < FAN_LEAST) fan->piece = FAN_LEAST;
    if (fan->piece > FAN_MOST) fan->piece = FAN_MOST;
    if (bytes <= FAN_MOST) fan->piece = FAN_MOST;
    for (size_t i = 0; i < fan->gap_count; i++)
        pieces += (fan->gaps[i].end - fan->gaps[i].begin + fan->piece - 1) / fan->piece;
    while (pieces > fan->task_count + 1 && fan->task_count + 1 < pool->connections) {
        sfti_task *task = &fan->tasks[fan->task_count++];
        *task = (sfti_task){ fan_task, fan, NULL, false };
        sfti_pool_put(pool, task);
    }
}

/* What a block has of [fan->base, end). If its fetch was cancelled, that was not for this reader,
 * who fetches the bytes himself. */
static sft_code fan_copy_block(fan_read *fan, sfti_block *block, uint64_t end, sft_error *err) {
    sfti_stream *stream = fan->stream;
    os_mutex *mutex = &stream->blocks->pool->mutex;
    uint64_t from = block->begin > fan->base ? block->begin : fan->base;
    uint64_t to = block->end < end ? block->end : end;
    char *into = fan->into + (from - fan->base);
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
    code = stream->fetch(stream->ctx, from, to, into, fan_goes_on, fan, err);
    sfti_os_mutex_lock(mutex);
    return code;
}

static void fan_copy(fan_read *fan, uint64_t end) {
    sft_error error = SFT_ERROR_INIT;
    for (size_t i = 0; i < fan->block_count; i++) {
        sft_code code = fan->code ? SFT_OK : fan_copy_block(fan, fan->blocks[i], end, &error);
        if (code && !fan->code) {
            fan->code = code;
            fan->error = error;
        }
        sfti_block_unref(fan->blocks[i]);
    }
}

/* 1. What no block holds is divided into pieces, which this thread and those of the pool claim.
 * 2. Then blocks are copied, some of which may have been on their way. 3. Tasks that no thread
 * began are taken back; those that were begun write into the reader's memory, so it waits for them
 * whatever happened. */
sft_code sfti_pieces_read(sfti_stream *stream, uint64_t *at, uint64_t end, char *into,
                       sft_error *err) {
    sfti_pool *pool = stream->blocks->pool;
    fan_read fan;
    memset(&fan, 0, offsetof(fan_read, tasks));
    fan.task_count = fan.ended = 0;
    fan.code = SFT_OK;
    fan.stream = stream;
    fan.into = into;
    fan.base = *at;
    end = fan_divide(&fan, *at, end);
    sfti_spans_remove(&stream->plan, *at, end);
    if (!sfti_spans_any(&stream->plan)) sfti_stream_unplan(stream);
    fan_share(&fan);
    if (fan.task_count > 0) {
        sfti_os_mutex_unlock(&pool->mutex);
        sfti_pool_start(pool);
        sfti_os_mutex_lock(&pool->mutex);
    }
    fan_work(&fan);
    fan_copy(&fan, end);
    for (size_t i = 0; i < fan.task_count; i++)
        if (sfti_pool_take_back(pool, &fan.tasks[i])) fan.ended++;
    while (fan.ended < fan.task_count)
        if (!sfti_pool_wait(pool) && !fan.code) fan.code = sfti_fail_cancelled(&fan.error);
    if (fan.code) return sfti_fail_as(err, fan.code, &fan.error);
    *at = end;
    return SFT_OK;
}
