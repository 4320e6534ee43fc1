/* Bytes of remote files in memory: blocks that are fetched before they are read, and pages around
 * small reads. All are guarded by the pool's mutex, and share one budget.
 *
 * A block is pending from when it is added until somebody has fetched it: a thread of the pool to
 * which its task was given, or a reader, who takes the task back if no thread began it. Therefore
 * no reader waits for a block that nobody fetches. */
#ifndef SFTI_REMOTE_BLOCKS_H
#define SFTI_REMOTE_BLOCKS_H

#include "remote/read/pool.h"

/* ── spans.c: what of a file will be read soon, in the order of reading. Announced runs, merged
 * where one request for both is better than two ── */

typedef struct sfti_extent {
    uint64_t begin, end;
    uint64_t wanted; /* bytes of it that were announced */
} sfti_extent;

/* Zeroed but for alloc, there are none. */
typedef struct sfti_spans {
    sft_allocator alloc;
    sfti_extent *at; /* [first, count) are left */
    size_t first, count, cap;
} sfti_spans;

static inline bool sfti_spans_any(const sfti_spans *spans) {
    return spans->first < spans->count;
}

/* Add runs behind the others, clipped to [begin, end). Gaps up to 64 KiB are read through, and up
 * to 1 MiB where that does not double the bytes; all gaps if more than SFTI_SPANS_MOST spans would
 * result. What does not fit in memory is left out: a read does not depend on it. */
#define SFTI_SPANS_MOST 10000
void sfti_spans_add(sfti_spans *spans, const sft_run *runs, size_t count, uint64_t begin,
                    uint64_t end);
/* Put one before the others. */
void sfti_spans_put_back(sfti_spans *spans, uint64_t begin, uint64_t end);
/* Take what lies in [begin, end) out of all of them. */
void sfti_spans_remove(sfti_spans *spans, uint64_t begin, uint64_t end);
/* The end of the span that holds the byte at `at`, or `at` if none does. */
uint64_t sfti_spans_reach(const sfti_spans *spans, uint64_t at);
void sfti_spans_clear(sfti_spans *spans);

/* ── Blocks ── */

#define SFTI_BLOCKS_MOST ((uint64_t)64 << 20) /* the budget, in bytes */
#define SFTI_PAGE ((uint64_t)64 << 10)
#define SFTI_PAGES_MOST 128
#define SFTI_TAILS 4

typedef enum sfti_block_state {
    SFTI_BLOCK_PENDING,
    SFTI_BLOCK_READY,
    SFTI_BLOCK_FAILED
} sfti_block_state;

struct sfti_stream;

typedef struct sfti_block {
    struct sfti_stream *stream;
    struct sfti_block *next;           /* of the stream, by begin */
    struct sfti_block *before, *after; /* of all */
    uint64_t begin, end;
    char *data;
    sfti_block_state state;
    bool page;  /* may be read again */
    bool spent; /* read to its end, and no page */
    bool gone;  /* in no list any more: freed when refs is 0 */
    uint32_t refs;
    uint64_t used; /* tick of the last read */
    sfti_task task;
    sft_error error; /* of FAILED */
} sfti_block;

typedef struct sfti_blocks {
    sft_allocator alloc;
    sfti_pool *pool;
    uint64_t most, bytes; /* bytes: of all blocks, at least a page for each */
    uint64_t block_bytes; /* of those fetched ahead */
    uint64_t tick;        /* reads so far */
    size_t under_way;     /* blocks whose tasks wait or run in the pool */
    size_t pages;
    sfti_block *first, *last;
    struct sfti_stream *planned, *planned_last; /* streams with spans to fetch, as announced */
} sfti_blocks;

/* Fetch bytes [begin, end); go_on: see sfti_fetch. Called by several threads. */
typedef sft_code (*sfti_stream_fn)(void *ctx, uint64_t begin, uint64_t end, void *into,
                                   bool (*go_on)(void *ctx), void *go_on_ctx, sft_error *err);

/* Reads that follow one another without being announced. */
typedef struct sfti_tail {
    uint64_t end;    /* of the last read */
    uint64_t ahead;  /* read ahead up to here; 0: not yet */
    uint64_t window; /* bytes to read ahead */
    uint64_t used;   /* tick */
    uint32_t reads;
} sfti_tail;

/* The bytes [begin, end) of one file. */
typedef struct sfti_stream {
    sfti_blocks *blocks;
    uint64_t begin, end;
    sfti_stream_fn fetch;
    void *ctx;
    /* private */
    sfti_block *first;
    sfti_spans plan;
    bool is_planned; /* in the list */
    struct sfti_stream *next_planned;
    uint64_t held; /* bytes of blocks */
    uint64_t used; /* tick of the last read; 0: none yet */
    bool closing;
    sfti_tail tails[SFTI_TAILS];
} sfti_stream;

/* ── blocks.c; all with the mutex held, but the first two ── */

sft_code sfti_blocks_new(const sft_allocator *alloc, sfti_pool *pool, sfti_blocks **out,
                         sft_error *err);
void sfti_blocks_free(sfti_blocks *blocks); /* all streams have ended */

/* The block that holds a byte, or NULL; then *gap_end is where the next one or the stream's end
 * is, and *gap_begin where the last one or the stream's beginning is. Either may be NULL. */
sfti_block *sfti_block_find(const sfti_stream *stream, uint64_t at, uint64_t *gap_begin,
                            uint64_t *gap_end);
/* A pending block where there is none. reader: somebody waits for it, so that others may have to
 * go. NULL: neither budget nor memory is left. */
sfti_block *sfti_block_add(sfti_stream *stream, uint64_t begin, uint64_t end, bool reader);
/* Take it out of all lists; freed now or when the last reader let go of it. */
void sfti_block_drop(sfti_block *block);
void sfti_block_unref(sfti_block *block);
/* Fetch it on this thread, with the mutex given up meanwhile. */
void sfti_block_fetch(sfti_block *block, bool (*go_on)(void *ctx), void *go_on_ctx);
/* Put a stream to whose plan spans were added into the list of those with spans to fetch; take what
 * lies in [begin, end) out of its plan, and if nothing is left, out of that list. */
void sfti_stream_plan(sfti_stream *stream);
void sfti_stream_unplan(sfti_stream *stream, uint64_t begin, uint64_t end);
/* Whether it was read lately. */
bool sfti_stream_is_active(const sfti_stream *stream);

/* ── ahead.c ── */

/* With the mutex held: give blocks of announced spans to the pool, as far as budget and connections
 * go. Threads are started by sfti_pool_start. */
void sfti_ahead_schedule(sfti_blocks *blocks);

/* ── pieces.c ── */

/* With the mutex held (it is given up meanwhile): read [*at, end) into `into`, of which the byte at
 * *at is the first. What blocks hold is copied from them, the rest fetched. *at becomes where it
 * stopped, which is before `end` if there are many blocks between. */
sft_code sfti_pieces_read(sfti_stream *stream, uint64_t *at, uint64_t end, char *into,
                       sft_error *err);

/* With the mutex held: wait until a block is no longer pending, or fetch it if no thread began to.
 * SFT_CANCELLED. The caller has a reference. */
sft_code sfti_block_await(sfti_block *block, sft_error *err);
/* With the mutex held: copy from a ready block, and remember that. The caller has a reference. */
void sfti_block_copy(sfti_block *block, uint64_t begin, uint64_t end, char *into);

/* ── stream.c; with no mutex held ── */

void sfti_stream_begin(sfti_stream *stream, sfti_blocks *blocks, uint64_t begin, uint64_t end,
                       sfti_stream_fn fetch, void *ctx);
void sfti_stream_expect(sfti_stream *stream, const sft_run *runs, size_t count);
/* All of [offset, offset + len), which lies in the stream. By any number of threads. */
sft_code sfti_stream_read(sfti_stream *stream, uint64_t offset, void *into, size_t len,
                          sft_error *err);
/* Nobody reads any more: ends what is under way, and waits for it. */
void sfti_stream_end(sfti_stream *stream);

#endif
