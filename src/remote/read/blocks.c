/* Blocks of remote files in memory, and the budget that they share. Tests: test_remote_blocks.c. */
#include "remote/read/blocks.h"

#include <string.h>

#define BLOCKS_LEAST ((uint64_t)1 << 20) /* bytes of a block fetched ahead, at least and at most */
#define BLOCKS_LARGEST ((uint64_t)4 << 20)
#define BLOCKS_OLD 16    /* reads since a block was read to its end, until its memory is reused */
#define BLOCKS_ACTIVE 64 /* reads since a stream was read, of an active one */

sft_code sfti_blocks_new(const sft_allocator *alloc, sfti_pool *pool, sfti_blocks **out,
                         sft_error *err) {
    sfti_blocks *blocks = sfti_take(alloc, sizeof *blocks);
    *out = blocks;
    if (!blocks) return sfti_fail_memory(err, sizeof *blocks);
    memset(blocks, 0, sizeof *blocks);
    blocks->alloc = *alloc;
    blocks->pool = pool;
    blocks->most = SFTI_BLOCKS_MOST;
    /* Twice as many blocks as connections: half of them are read while half arrive. */
    uint64_t each = SFTI_BLOCKS_MOST / (2 * (uint64_t)pool->connections);
    blocks->block_bytes = each < BLOCKS_LEAST ? BLOCKS_LEAST : each;
    if (each > BLOCKS_LARGEST) blocks->block_bytes = BLOCKS_LARGEST;
    return SFT_OK;
}

void sfti_blocks_free(sfti_blocks *blocks) {
    if (!blocks) return;
    sft_allocator alloc = blocks->alloc;
    sfti_release(&alloc, blocks, sizeof *blocks);
}

/* ── Streams with spans to fetch ── */

void sfti_stream_plan(sfti_stream *stream) {
    sfti_blocks *blocks = stream->blocks;
    if (stream->is_planned || !sfti_spans_any(&stream->plan)) return;
    stream->is_planned = true;
    stream->next_planned = NULL;
    if (blocks->planned) blocks->planned_last->next_planned = stream;
    else blocks->planned = stream;
    blocks->planned_last = stream;
}

void sfti_stream_unplan(sfti_stream *stream, uint64_t begin, uint64_t end) {
    sfti_blocks *blocks = stream->blocks;
    sfti_stream *before = NULL;
    if (!stream->is_planned) return; /* there is nothing to fetch */
    sfti_spans_remove(&stream->plan, begin, end);
    if (sfti_spans_any(&stream->plan)) return;
    for (sfti_stream *at = blocks->planned; at != stream; at = at->next_planned) before = at;
    if (before) before->next_planned = stream->next_planned;
    else blocks->planned = stream->next_planned;
    if (blocks->planned_last == stream) blocks->planned_last = before;
    stream->is_planned = false;
}

bool sfti_stream_is_active(const sfti_stream *stream) {
    return stream->used > 0 && stream->blocks->tick - stream->used <= BLOCKS_ACTIVE;
}

/* ── Lists ── */

sfti_block *sfti_block_find(const sfti_stream *stream, uint64_t at, uint64_t *gap_begin,
                            uint64_t *gap_end) {
    uint64_t begin = stream->begin, end = stream->end;
    sfti_block *found = NULL;
    for (sfti_block *block = stream->first; block; block = block->next) {
        if (block->begin > at) {
            end = block->begin;
            break;
        }
        if (block->end > at) {
            found = block;
            break;
        }
        begin = block->end;
    }
    if (gap_begin) *gap_begin = begin;
    if (gap_end) *gap_end = end;
    return found;
}

static uint64_t block_cost(const sfti_block *block) {
    uint64_t bytes = block->end - block->begin;
    return bytes < SFTI_PAGE ? SFTI_PAGE : bytes;
}

static void block_link(sfti_block *block) {
    sfti_blocks *blocks = block->stream->blocks;
    sfti_block **at = &block->stream->first;
    while (*at && (*at)->begin < block->begin) at = &(*at)->next;
    block->next = *at;
    *at = block;
    block->before = blocks->last;
    if (blocks->last) blocks->last->after = block;
    else blocks->first = block;
    blocks->last = block;
    blocks->bytes += block_cost(block);
    block->stream->held += block_cost(block);
}

static void block_unlink(sfti_block *block) {
    sfti_blocks *blocks = block->stream->blocks;
    sfti_block **at = &block->stream->first;
    while (*at != block) at = &(*at)->next;
    *at = block->next;
    if (block->before) block->before->after = block->after;
    else blocks->first = block->after;
    if (block->after) block->after->before = block->before;
    else blocks->last = block->before;
    blocks->bytes -= block_cost(block);
    blocks->pages -= block->page;
    block->stream->held -= block_cost(block);
}

static void block_free(sfti_block *block) {
    const sft_allocator *alloc = &block->stream->blocks->alloc;
    sfti_release(alloc, block->data, (size_t)(block->end - block->begin));
    sfti_release(alloc, block, sizeof *block);
}

void sfti_block_drop(sfti_block *block) {
    if (!block->gone) block_unlink(block);
    block->gone = true;
    if (block->refs == 0) block_free(block);
}

void sfti_block_unref(sfti_block *block) {
    block->refs--;
    if (block->gone && block->refs == 0) block_free(block);
}

/* ── Budget ── */

/* Who has to go first: what was read already or failed, then pages (the least recently read), then
 * what was fetched for streams that nobody reads any more, then what is read last of the stream
 * that holds most. */
typedef enum block_rank {
    BLOCK_SPENT,
    BLOCK_PAGE,
    BLOCK_IDLE,
    BLOCK_AHEAD,
    BLOCK_KEPT
} block_rank;

static block_rank block_rank_for(const sfti_block *block, const sfti_stream *stream,
                                 bool reader) {
    bool idle = !sfti_stream_is_active(block->stream);
    if (block->state == SFTI_BLOCK_PENDING || block->refs > 0) return BLOCK_KEPT;
    if (block->spent || block->state == SFTI_BLOCK_FAILED) return BLOCK_SPENT;
    if (block->page) return BLOCK_PAGE;
    if (idle && block->stream != stream && (reader || sfti_stream_is_active(stream)))
        return BLOCK_IDLE;
    if (reader && block->stream->held >= stream->held) return BLOCK_AHEAD;
    return BLOCK_KEPT;
}

/* Whether a goes before b of the same rank, which was added earlier. */
static bool block_goes_before(const sfti_block *a, const sfti_block *b, block_rank rank) {
    if (rank <= BLOCK_PAGE) return a->used < b->used;
    if (rank == BLOCK_AHEAD && a->stream != b->stream) return a->stream->held > b->stream->held;
    return true;
}

static sfti_block *block_victim(const sfti_stream *stream, bool reader) {
    sfti_block *victim = NULL;
    block_rank best = BLOCK_KEPT;
    for (sfti_block *block = stream->blocks->first; block; block = block->after) {
        block_rank rank = block_rank_for(block, stream, reader);
        if (rank == BLOCK_KEPT || rank > best) continue;
        if (rank == best && !block_goes_before(block, victim, rank)) continue;
        victim = block;
        best = rank;
    }
    return victim;
}

static bool block_make_way(sfti_stream *stream, uint64_t cost, bool reader) {
    sfti_blocks *blocks = stream->blocks;
    while (blocks->bytes + cost > blocks->most) {
        sfti_block *victim = block_victim(stream, reader);
        if (!victim) return false;
        /* A stream that is being closed waits for its blocks, but nothing is planned for it. */
        if (victim->state == SFTI_BLOCK_READY && !victim->spent && !victim->page
            && !victim->stream->closing) {
            sfti_spans_put_back(&victim->stream->plan, victim->begin, victim->end);
            sfti_stream_plan(victim->stream);
        }
        sfti_block_drop(victim);
    }
    return true;
}

/* Memory of a block that was read some time ago: new pages of the system cost more than copying. */
static char *block_reuse(sfti_blocks *blocks, uint64_t len) {
    if (len < BLOCKS_LEAST) return NULL;
    for (sfti_block *block = blocks->first; block; block = block->after) {
        bool old = block->spent && blocks->tick - block->used >= BLOCKS_OLD;
        if (!old || block->refs > 0 || block->end - block->begin != len) continue;
        char *data = block->data;
        block->data = NULL;
        sfti_block_drop(block);
        return data;
    }
    return NULL;
}

sfti_block *sfti_block_add(sfti_stream *stream, uint64_t begin, uint64_t end, bool reader) {
    sfti_blocks *blocks = stream->blocks;
    sfti_block *block = sfti_take(&blocks->alloc, sizeof *block);
    if (!block) return NULL;
    memset(block, 0, sizeof *block);
    block->stream = stream;
    block->begin = begin;
    block->end = end;
    block->used = blocks->tick;
    block->data = block_reuse(blocks, end - begin);
    if (!block->data && block_make_way(stream, block_cost(block), reader))
        block->data = sfti_take(&blocks->alloc, (size_t)(end - begin));
    if (!block->data) {
        sfti_release(&blocks->alloc, block, sizeof *block);
        return NULL;
    }
    block_link(block);
    return block;
}

void sfti_block_fetch(sfti_block *block, bool (*go_on)(void *ctx), void *go_on_ctx) {
    static const sft_error none = SFT_ERROR_INIT;
    sfti_stream *stream = block->stream;
    sfti_pool *pool = stream->blocks->pool;
    block->error = none;
    sfti_os_mutex_unlock(&pool->mutex);
    sft_code code = stream->fetch(stream->ctx, block->begin, block->end, block->data, go_on,
                                  go_on_ctx, &block->error);
    sfti_os_mutex_lock(&pool->mutex);
    block->state = code ? SFTI_BLOCK_FAILED : SFTI_BLOCK_READY;
    block->error.code = code;
    sfti_os_cond_wake(&pool->done);
}
