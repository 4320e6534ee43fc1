/* The reads of one remote file: from blocks, pages, and what is read ahead of reads in a row.
 * Tests: test_remote_blocks.c. */
#include "remote/read/blocks.h"

#include "base/checked.h"

#include <string.h>

#define STREAM_PIECES ((uint64_t)8 << 20)    /* reads of so much are fetched in pieces */
#define STREAM_DIRECT ((uint64_t)1 << 20) /* announced reads of so much need no block */
#define TAIL_READS 3                      /* reads in a row after which more is expected */
#define TAIL_WINDOW ((uint64_t)256 << 10) /* bytes read ahead, at least and at most */
#define TAIL_WINDOW_MOST ((uint64_t)32 << 20)

void sfti_stream_begin(sfti_stream *stream, sfti_blocks *blocks, uint64_t begin, uint64_t end,
                       sfti_stream_fn fetch, void *ctx) {
    memset(stream, 0, sizeof *stream);
    stream->blocks = blocks;
    stream->begin = begin;
    stream->end = end;
    stream->fetch = fetch;
    stream->ctx = ctx;
    stream->plan.alloc = blocks->alloc;
}

void sfti_stream_expect(sfti_stream *stream, const sft_run *runs, size_t count) {
    sfti_pool *pool = stream->blocks->pool;
    sfti_os_mutex_lock(&pool->mutex);
    sfti_spans_add(&stream->plan, runs, count, stream->begin, stream->end);
    sfti_stream_plan(stream);
    sfti_ahead_schedule(stream->blocks);
    sfti_os_mutex_unlock(&pool->mutex);
    sfti_pool_start(pool);
}

void sfti_stream_end(sfti_stream *stream) {
    sfti_blocks *blocks = stream->blocks;
    sfti_pool *pool = blocks->pool;
    sfti_os_mutex_lock(&pool->mutex);
    stream->closing = true;
    sfti_stream_unplan(stream, 0, UINT64_MAX);
    sfti_spans_clear(&stream->plan);
    while (stream->first) {
        sfti_block *block = stream->first;
        if (sfti_pool_take_back(pool, &block->task)) blocks->under_way--;
        else if (block->state == SFTI_BLOCK_PENDING) {
            sfti_os_cond_wait_for(&pool->done, &pool->mutex, 100);
            continue;
        }
        sfti_block_drop(block);
    }
    sfti_ahead_schedule(blocks);
    sfti_os_mutex_unlock(&pool->mutex);
    sfti_pool_start(pool);
}

/* ── Reads in a row ── */

/* With the mutex held, before [begin, end) is read: plan what will probably be read next. */
static void tail_follow(sfti_stream *stream, uint64_t begin, uint64_t end) {
    sfti_tail *tail = stream->tails, *oldest = tail, *behind = tail + SFTI_TAILS;
    uint64_t len = end - begin;
    for (; tail < behind && (tail->reads == 0 || tail->end != begin); tail++)
        if (tail->used < oldest->used) oldest = tail;
    if (tail == behind) {
        tail = oldest;
        memset(tail, 0, sizeof *tail);
    }
    tail->end = end;
    tail->used = stream->blocks->tick;
    if (++tail->reads < TAIL_READS || len >= STREAM_PIECES) return;
    if (tail->ahead == 0) { /* what was announced needs no guess */
        if (sfti_spans_reach(&stream->plan, begin) > begin) return;
        if (sfti_block_find(stream, end - 1, NULL, NULL)) return;
        tail->window = 4 * len > TAIL_WINDOW ? 4 * len : TAIL_WINDOW;
    } else if (tail->ahead > end && tail->ahead - end > tail->window / 2) {
        return;
    } else {
        tail->window *= 2;
    }
    if (tail->window > TAIL_WINDOW_MOST) tail->window = TAIL_WINDOW_MOST;
    uint64_t from = tail->ahead > begin ? tail->ahead : begin;
    uint64_t to = stream->end - end > tail->window ? end + tail->window : stream->end;
    if (from >= to) return;
    sft_run run = { from, to - from };
    sfti_spans_add(&stream->plan, &run, 1, stream->begin, stream->end);
    sfti_stream_plan(stream);
    tail->ahead = to;
}

/* ── Reading ── */

/* The page around bytes that no block holds, or both pages that they lie in, clipped to the gap. */
static sfti_block *stream_add_page(sfti_stream *stream, uint64_t at, uint64_t end) {
    sfti_blocks *blocks = stream->blocks;
    uint64_t gap_begin, gap_end, begin = at - at % SFTI_PAGE;
    (void)sfti_block_find(stream, at, &gap_begin, &gap_end);
    if (!sfti_align_up(end, SFTI_PAGE, &end)) end = gap_end;
    if (begin < gap_begin) begin = gap_begin;
    if (end > gap_end) end = gap_end;
    if (blocks->pages >= SFTI_PAGES_MOST) { /* the oldest is forgotten */
        sfti_block *oldest = NULL;
        for (sfti_block *page = blocks->first; page; page = page->after) {
            if (!page->page || page->refs > 0 || page->state != SFTI_BLOCK_READY) continue;
            if (!oldest || page->used < oldest->used) oldest = page;
        }
        if (oldest) sfti_block_drop(oldest);
    }
    sfti_block *block = sfti_block_add(stream, begin, end, true);
    if (!block) return NULL;
    block->page = true;
    blocks->pages++;
    return block;
}

/* A block of the announced span [at, reach). */
static sfti_block *stream_add_cut(sfti_stream *stream, uint64_t at, uint64_t reach) {
    uint64_t gap_end, most = stream->blocks->block_bytes;
    (void)sfti_block_find(stream, at, NULL, &gap_end);
    if (reach > gap_end) reach = gap_end;
    if (reach - at > most + most / 2) reach = at + most;
    sfti_block *block = sfti_block_add(stream, at, reach, true);
    if (!block) return NULL;
    sfti_stream_unplan(stream, at, reach);
    return block;
}

/* Copy from a block what it has of [*at, end). A failure is that of the fetch, unless its thread
 * was told to stop, and not this one: then *at stays, and the block is forgotten. */
static sft_code stream_read_block(sfti_block *block, uint64_t *at, uint64_t end, char *into,
                                  sft_error *err) {
    sft_code code = sfti_block_await(block, err);
    if (!code && block->state == SFTI_BLOCK_FAILED) {
        if (block->error.code != SFT_CANCELLED)
            code = sfti_fail_as(err, block->error.code, &block->error);
        if (!block->gone) sfti_block_drop(block);
    } else if (!code) {
        uint64_t to = block->end < end ? block->end : end;
        sfti_block_copy(block, *at, to, into);
        *at = to;
    }
    return code;
}

static sft_code stream_step(sfti_stream *stream, uint64_t *at, uint64_t end, char *into,
                            sft_error *err) {
    sfti_pool *pool = stream->blocks->pool;
    uint64_t gap_end;
    if (end - *at > STREAM_PIECES) return sfti_pieces_read(stream, at, end, into, err);
    sfti_block *block = sfti_block_find(stream, *at, NULL, &gap_end);
    bool added = !block;
    if (added) { /* one, if it serves better than fetching just these bytes */
        uint64_t reach = sfti_spans_reach(&stream->plan, *at);
        if (reach > end && end - *at < STREAM_DIRECT) block = stream_add_cut(stream, *at, reach);
        /* Whoever reads on from the head knows how long the rest of a header is. */
        else if (reach <= *at && *at != stream->begin && end - *at < SFTI_PAGE)
            block = stream_add_page(stream, *at, end);
    }
    if (!block) { /* no block holds any of them: straight into the reader's memory */
        if (end > gap_end) end = gap_end;
        sfti_stream_unplan(stream, *at, end);
        sfti_os_mutex_unlock(&pool->mutex);
        sft_code failed = stream->fetch(stream->ctx, *at, end, into, NULL, NULL, err);
        sfti_os_mutex_lock(&pool->mutex);
        if (!failed) *at = end;
        return failed;
    }
    block->refs++;
    /* Threads are started for what was put, before this one waits. */
    sfti_ahead_schedule(stream->blocks);
    if (pool->queued > pool->idle) {
        sfti_os_mutex_unlock(&pool->mutex);
        sfti_pool_start(pool);
        sfti_os_mutex_lock(&pool->mutex);
    }
    if (added) sfti_block_fetch(block, NULL, NULL);
    bool cancelled = added && block->error.code == SFT_CANCELLED;
    sft_code code = stream_read_block(block, at, end, into, err);
    sfti_block_unref(block);
    return cancelled && !code ? sfti_fail_cancelled(err) : code;
}

sft_code sfti_stream_read(sfti_stream *stream, uint64_t offset, void *into, size_t len,
                          sft_error *err) {
    sfti_blocks *blocks = stream->blocks;
    uint64_t at = offset, end = offset + len;
    sft_code code = SFT_OK;
    if (len == 0) return SFT_OK;
    sfti_os_mutex_lock(&blocks->pool->mutex);
    stream->used = ++blocks->tick;
    tail_follow(stream, offset, end);
    while (!code && at < end)
        code = stream_step(stream, &at, end, (char *)into + (at - offset), err);
    sfti_ahead_schedule(blocks);
    bool start = blocks->pool->queued > 0;
    sfti_os_mutex_unlock(&blocks->pool->mutex);
    if (start) sfti_pool_start(blocks->pool);
    return code;
}
