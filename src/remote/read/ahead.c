/* Blocks that are fetched before anybody reads them. Tests: test_remote_blocks.c. */
#include "remote/read/blocks.h"

static bool is_stream_open(void *ctx) {
    const sfti_stream *stream = ctx;
    os_mutex *mutex = &stream->blocks->pool->mutex;
    sfti_os_mutex_lock(mutex);
    bool open = !stream->closing;
    sfti_os_mutex_unlock(mutex);
    return open;
}

/* A task of the pool. After a failure nothing more is fetched ahead of this stream: who reads on
 * learns the reason from the block, then from reads of his own. */
static void ahead_run(void *ctx) {
    sfti_block *block = ctx;
    sfti_stream *stream = block->stream;
    sfti_blocks *blocks = stream->blocks;
    sfti_pool *pool = blocks->pool;
    sfti_os_mutex_lock(&pool->mutex);
    block->refs++;
    sfti_block_fetch(block, is_stream_open, stream);
    blocks->under_way--;
    if (block->state == SFTI_BLOCK_FAILED) {
        sfti_stream_unplan(stream, 0, UINT64_MAX);
        sfti_spans_clear(&stream->plan);
    }
    sfti_block_unref(block);
    sfti_ahead_schedule(blocks);
    sfti_os_mutex_unlock(&pool->mutex);
    sfti_pool_start(pool);
}

/* The next bytes of its plan that no block holds; false: there are none. */
static bool ahead_cut(sfti_stream *stream, uint64_t *begin, uint64_t *end) {
    while (sfti_spans_any(&stream->plan)) {
        sfti_extent span = stream->plan.at[stream->plan.first];
        uint64_t most = stream->blocks->block_bytes, gap_end;
        sfti_block *block = sfti_block_find(stream, span.begin, NULL, &gap_end);
        if (block) {
            block->spent = false;
            sfti_stream_unplan(stream, block->begin, block->end);
            continue;
        }
        if (span.end > gap_end) span.end = gap_end;
        *begin = span.begin;
        *end = span.end - span.begin > most + most / 2 ? span.begin + most : span.end;
        return true;
    }
    return false;
}

static bool ahead_add(sfti_stream *stream) {
    sfti_blocks *blocks = stream->blocks;
    uint64_t begin, end;
    if (!ahead_cut(stream, &begin, &end)) return true;
    sfti_block *block = sfti_block_add(stream, begin, end, false);
    if (!block) return false;
    sfti_stream_unplan(stream, begin, end);
    block->task.run = ahead_run;
    block->task.ctx = block;
    blocks->under_way++;
    sfti_pool_put(blocks->pool, &block->task);
    return true;
}

void sfti_ahead_schedule(sfti_blocks *blocks) {
    bool added = true;
    while (added && blocks->planned && blocks->under_way < blocks->pool->connections) {
        /* For the stream that holds least of those that are being read, else for the one that was
         * announced first. */
        sfti_stream *best = NULL;
        for (sfti_stream *stream = blocks->planned; stream; stream = stream->next_planned)
            if (sfti_stream_is_active(stream) && (!best || stream->held < best->held))
                best = stream;
        added = ahead_add(best ? best : blocks->planned);
    }
}
