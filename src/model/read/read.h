/* Plans for reading, and what runs in memory and readers share.
 *
 * A plan holds its parts in the order of their files and offsets (items). Tasks cut that order
 * into stretches, each of which fills one slot, or a stretch of the blocks' memory. A task is
 * only the place where it begins: a walk from there lays out pieces of items until the slot is
 * full, and always in the same way, so whoever walks learns what a task holds. */
#ifndef SFTI_READ_H
#define SFTI_READ_H

#include "base/mem.h"
#include "bytes/source.h"
#include "safetensors_read.h"

#include <stdatomic.h>

#define SFTI_READ_NONE UINT32_MAX
#define SFTI_READ_PAGE 4096             /* gaps up to this are always read along */
#define SFTI_READ_SPAN ((size_t)1 << 20) /* most bytes of a read by way of scratch memory */
#define SFTI_READ_SCRATCH (SFTI_READ_SPAN + 2 * (size_t)SFTI_READ_PAGE)

/* ── Plans ───────────────────────────────────────────────────────────────── */

typedef struct sfti_read_loop {
    uint64_t count;
    int64_t stride; /* bytes */
} sfti_read_loop;

/* A slice of several runs, as loops over equal runs, the innermost first. */
typedef struct sfti_read_slice {
    uint64_t run;      /* bytes */
    uint64_t runs;     /* in all */
    uint64_t position; /* of the first run, in the tensor */
    uint64_t chunk;    /* runs that follow one another with gaps that are read along */
    uint32_t rank;
    sfti_read_loop loops[];
} sfti_read_slice;

/* A part that is not empty. */
typedef struct sfti_read_item {
    const sft_tensor *tensor;
    const sfti_read_slice *slice; /* NULL: bytes [offset, offset + len) of the file */
    uint64_t offset;              /* of its lowest byte in the file */
    uint64_t len;
    uint64_t at;
    uint32_t block, file;
    uint32_t next; /* the item that follows in its block, or SFTI_READ_NONE */
} sfti_read_item;

typedef struct sfti_read_file {
    const sft_file *file;
    sft_source source; /* borrowed */
    uint64_t wanted;     /* bytes */
    size_t first, count; /* its items */
} sfti_read_file;

typedef struct sfti_read_start {
    uint64_t within; /* bytes of the item that are before it */
    uint32_t item;
} sfti_read_start;

struct sft_read_plan {
    sfti_arena arena; /* of all that follows */
    sft_read_plan_options options;
    sfti_read_file *files;
    size_t file_count;
    sfti_read_item *items;
    size_t item_count;
    sft_read_block *blocks;
    size_t block_count, based; /* of which so many have a base */
    sfti_read_start *tasks;
    size_t task_count, task_cap;
    size_t most_copies; /* of a task */
    uint64_t task_bytes;
    uint64_t wanted, total;
    bool in_memory; /* all blocks have a base */
    bool forward;   /* a source is read forward: by one thread */
};

/* The slice's loops, chunk included; *total: bytes that reading it takes. */
sft_code sfti_read_slice_new(sft_read_plan *plan, const sft_runs *runs,
                             const sfti_read_slice **out, uint64_t *total, sft_error *err);
/* Lowest byte and end, in the tensor, of what the innermost `rank` loops take from the first run
 * on. */
void sfti_read_slice_extent(const sfti_read_slice *slice, uint32_t rank, uint64_t *low,
                            uint64_t *high);
/* Runs from number `first` on. */
void sfti_read_slice_runs(const sfti_read_slice *slice, uint64_t first, sft_runs *out);

/* Whether a gap is read along, so that `span` bytes are read for `wanted`. */
bool sfti_read_along(const sft_read_plan *plan, uint64_t gap, uint64_t span, uint64_t wanted);

/* ── Walks ───────────────────────────────────────────────────────────────── */

typedef struct sfti_read_walk {
    const sft_read_plan *plan;
    uint64_t within; /* next byte of the item */
    uint64_t used;   /* bytes of the slot up to the end of the last piece */
    uint32_t item, last; /* the next one, and that of the last piece */
} sfti_read_walk;

/* Part of an item that lies in one task. */
typedef struct sfti_read_piece {
    const sfti_read_item *item;
    uint64_t within, len;
    uint64_t to; /* in the slot */
    bool joined; /* at the same distance from the piece before it, in slot and block */
} sfti_read_piece;

sfti_read_walk sfti_read_walk_begin(const sft_read_plan *plan, size_t task);
/* The next piece; false at the end of the task. */
bool sfti_read_walk_next(sfti_read_walk *walk, sfti_read_piece *out);

typedef enum sfti_read_kind {
    SFTI_READ_STRAIGHT, /* one stretch of file and destination alike */
    SFTI_READ_GATHERED, /* read into scratch memory, from where the pieces are copied */
    SFTI_READ_SLICED    /* a piece of a slice */
} sfti_read_kind;

/* Pieces that are read together. */
typedef struct sfti_read_op {
    sfti_read_walk first; /* gives its pieces again */
    size_t pieces;
    sfti_read_kind kind;
    uint64_t offset, len; /* in the file; not of SLICED */
} sfti_read_op;

/* The next pieces. direct: which files are read past the cache, or NULL. */
typedef struct sfti_read_direct {
    int fd; /* of its own, or -1 */
    atomic_bool on;
    atomic_bool anywhere; /* the disk has not refused memory that begins inside a page */
} sfti_read_direct;
bool sfti_read_next_op(sfti_read_walk *walk, const sfti_read_direct *direct, sfti_read_op *out);

/* What a filled slot holds; at most plan->most_copies. */
size_t sfti_read_copies(const sft_read_plan *plan, size_t task, sft_read_copy *out);

/* ── Reading ─────────────────────────────────────────────────────────────── */

/* How the files of a plan are read now: shared by the threads of one run or reader. */
typedef struct sfti_read_access {
    const sft_read_plan *plan;
    sfti_read_direct *direct; /* one per file, or NULL: none past the cache */
} sfti_read_access;

sft_code sfti_read_access_begin(sfti_read_access *access, const sft_read_plan *plan,
                                sft_error *err);
void sfti_read_access_end(sfti_read_access *access);
/* Tell sources that have expect what will be read. */
void sfti_read_announce(const sft_read_plan *plan);
bool sfti_read_access_is_direct(const sfti_read_access *access);

/* Fill the slot, or the blocks' memory if it is NULL. scratch: SFTI_READ_SCRATCH bytes at a
 * multiple of SFTI_READ_PAGE. */
sft_code sfti_read_task(const sfti_read_access *access, size_t task, char *slot, char *scratch,
                        sft_error *err);

/* How quick huge pages of fresh memory are, for all threads of a run. */
typedef struct sfti_read_fresh {
    atomic_uint rest; /* tasks that go without */
    atomic_uint last; /* how many went without after the last one that was slow; 0: it was not */
} sfti_read_fresh;
/* Asks for those that the task will fill, if the plan's blocks are fresh. */
void sfti_read_fresh_task(sfti_read_fresh *fresh, const sft_read_plan *plan, size_t task);

/* Scratch memory for some threads. */
typedef struct sfti_read_scratch {
    char *memory, *aligned;
    size_t bytes;
} sfti_read_scratch;
bool sfti_read_scratch_take(const sft_allocator *alloc, size_t threads, sfti_read_scratch *out);
void sfti_read_scratch_free(const sft_allocator *alloc, sfti_read_scratch *scratch);
static inline char *sfti_read_scratch_of(const sfti_read_scratch *scratch, size_t thread) {
    return scratch->aligned + thread * SFTI_READ_SCRATCH;
}

#endif
