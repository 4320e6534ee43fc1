/* Reading the pieces of a task, through the sources of files or past the page cache. */
#include "base/error.h"
#include "bytes/source.h"
#include "format/format.h"
#include "os/os.h"
#include "read/read.h"

#include <errno.h>
#include <string.h>

typedef struct read_work {
    const sfti_read_access *access;
    char *slot; /* NULL: the blocks' memory */
    char *scratch;
    sft_error *err;
} read_work;

/* ── Bytes of a file ─────────────────────────────────────────────────────── */

static const sfti_read_file *work_file(const read_work *w, uint32_t file) {
    return &w->access->plan->files[file];
}

static bool work_is_direct(const read_work *w, uint32_t file) {
    return w->access->direct && atomic_load(&w->access->direct[file].on);
}

/* A disk writes past the processor, which older systems do not count as use of memory that its
 * owner had given up (MADV_FREE): they would take it with the bytes that were read. So each page
 * is written to before. */
static void touch_pages(char *at, size_t len) {
    for (size_t i = 0; i < len; i += SFTI_READ_PAGE) *(volatile char *)(at + i) = 0;
    if (len > 0) *(volatile char *)(at + len - 1) = 0;
}

/* Whole units around [offset, offset + len) into scratch memory; *at: where `offset` is there.
 * False: read it through the source, which also tells what is wrong. */
static bool read_direct(const read_work *w, uint32_t file, uint64_t offset, size_t len,
                        const char **at) {
    const uint64_t unit = SFTI_READ_PAGE;
    sfti_read_direct *direct = &w->access->direct[file];
    size_t before = (size_t)(offset % unit), need = before + len, got = 0, more = 1;
    size_t whole = (need + (size_t)unit - 1) & ~((size_t)unit - 1);
    int error = 0;
    touch_pages(w->scratch, whole);
    while (got < need && more > 0 && got % unit == 0 && !error) {
        error = sfti_os_pread(direct->fd, w->scratch + got, whole - got, offset - before + got,
                              &more);
        if (!error) got += more;
    }
    if (error == EINVAL || error == EOPNOTSUPP) atomic_store(&direct->on, false);
    *at = w->scratch + before;
    return got >= need;
}

/* At most SFTI_READ_SPAN bytes by way of scratch memory. */
static sft_code read_scratch(const read_work *w, uint32_t file, uint64_t offset, size_t len,
                             const char **at) {
    if (work_is_direct(w, file) && read_direct(w, file, offset, len, at)) return SFT_OK;
    *at = w->scratch;
    return sft_read_bytes(work_file(w, file)->file, offset, w->scratch, len, w->err);
}

#define IN_PLACE_LEAST ((size_t)256 << 10)

/* Whole pages of the file, from the beginning of one on, to where they belong; for disks that
 * write to the beginning of a page of memory only, to the next one, and moved from there. How many
 * bytes; 0: by way of scratch memory. */
static size_t read_in_place(const read_work *w, uint32_t file, uint64_t offset, char *into,
                            size_t len) {
    const size_t page = SFTI_READ_PAGE;
    sfti_read_direct *direct = &w->access->direct[file];
    size_t past = (uintptr_t)into % page, got = 0;
    size_t moved = past && !atomic_load(&direct->anywhere) ? page - past : 0;
    size_t whole = (len - moved) & ~(page - 1);
    touch_pages(into + moved, whole);
    int error = sfti_os_pread(direct->fd, into + moved, whole, offset, &got);
    if (error == EINVAL && past && !moved) atomic_store(&direct->anywhere, false);
    got &= ~(page - 1);
    if (error) return 0;
    if (moved) memmove(into, into + moved, got);
    return got;
}

/* One read past the cache, of at most len bytes; *piece: how many. */
static sft_code read_past(const read_work *w, uint32_t file, uint64_t offset, char *into,
                          size_t len, size_t *piece) {
    size_t past = (size_t)(offset % SFTI_READ_PAGE), most = SFTI_READ_SPAN - past;
    size_t head = past ? SFTI_READ_PAGE - past : 0;
    const char *at;
    *piece = 0;
    if (len >= head + IN_PLACE_LEAST) {
        if (head == 0) *piece = read_in_place(w, file, offset, into, len);
        else most = head;
    }
    if (*piece > 0) return SFT_OK;
    *piece = len < most ? len : most;
    sft_code code = read_scratch(w, file, offset, *piece, &at);
    if (!code) memcpy(into, at, *piece);
    return code;
}

#define STREAM_ALL ((uint64_t)32 << 20) /* of a plan: what most caches hold is less */
#define STREAM_LEAST ((size_t)16 << 10)

static sft_code read_straight(const read_work *w, uint32_t file, uint64_t offset, char *into,
                              size_t len) {
    while (len > 0 && work_is_direct(w, file)) {
        size_t piece;
        sft_code code = read_past(w, file, offset, into, len, &piece);
        if (code) return code;
        offset += piece;
        into += piece;
        len -= piece;
    }
    if (len == 0) return SFT_OK;
    const sft_file *from = work_file(w, file)->file;
    bool large = w->access->plan->wanted >= STREAM_ALL && len >= STREAM_LEAST && !w->slot;
    if (large) {
        sft_source source = sft_file_source(from);
        if (sfti_source_stream(&source, offset, into, len)) return SFT_OK;
    }
    return sft_read_bytes(from, offset, into, len, w->err);
}

/* ── Destinations, errors ────────────────────────────────────────────────── */

static char *piece_into(const read_work *w, const sfti_read_piece *piece) {
    const sfti_read_item *item = piece->item;
    if (w->slot) return w->slot + piece->to;
    const sft_read_block *block = &w->access->plan->blocks[item->block];
    return (char *)block->base + (size_t)(item->at + piece->within);
}

/* Names the piece that the error's byte belongs to, or the one before it. */
static void op_blame(const read_work *w, const sfti_read_op *op) {
    sfti_read_walk walk = op->first;
    sfti_read_piece piece = { 0 };
    const sft_tensor *tensor = NULL;
    if (!w->err) return;
    if (w->err->offset == SFT_NO_OFFSET) w->err->offset = op->offset;
    for (size_t i = 0; i < op->pieces; i++) {
        (void)sfti_read_walk_next(&walk, &piece);
        if (tensor && piece.item->offset + piece.within > w->err->offset) break;
        tensor = piece.item->tensor;
    }
    if (tensor && w->err->tensor_len == SFT_NO_TENSOR) sfti_error_tensor(w->err, tensor->name);
}

/* ── Slices ──────────────────────────────────────────────────────────────── */

typedef struct slice_read {
    const sfti_read_item *item;
    sft_runs runs;
    sfti_window_rule rule;
    uint64_t chunk; /* runs that are left of this chunk */
    char *into;
} slice_read;

static sft_code window_read(const read_work *w, slice_read *s, const sfti_window *window) {
    uint64_t offset = s->item->tensor->offset + window->low;
    size_t len = (size_t)(window->high - window->low);
    uint32_t file = s->item->file;
    sft_code code;
    if (window->runs == 1) {
        sfti_row row;
        (void)sfti_runs_row(&s->runs, 1, &row);
        code = read_straight(w, file, offset, s->into, len);
    } else {
        const char *at;
        code = read_scratch(w, file, offset, len, &at);
        if (!code) sfti_runs_pick(&s->runs, window->runs, at, window->low, s->into);
    }
    s->into += window->runs * s->runs.run_bytes;
    return code;
}

/* Part of a run, from its byte `skip` on. */
static sft_code run_part(const read_work *w, slice_read *s, uint64_t skip, uint64_t len) {
    uint64_t offset = s->item->tensor->offset + s->runs.position + skip;
    sft_code code = read_straight(w, s->item->file, offset, s->into, (size_t)len);
    s->into += len;
    return code;
}

static sft_code read_slice_piece(const read_work *w, const sfti_read_piece *piece) {
    const sfti_read_slice *slice = piece->item->slice;
    uint64_t first = piece->within / slice->run, skip = piece->within % slice->run;
    uint64_t left = piece->len, span = work_is_direct(w, piece->item->file) ? 1 : 4;
    slice_read s = { .item = piece->item, .rule = { SFTI_READ_SPAN / span, NULL } };
    sft_code code = SFT_OK;
    s.into = piece_into(w, piece);
    sfti_read_slice_runs(slice, first, &s.runs);
    if (skip > 0) {
        uint64_t part = slice->run - skip < left ? slice->run - skip : left;
        code = run_part(w, &s, skip, part);
        left -= part;
        sfti_read_slice_runs(slice, ++first, &s.runs);
    }
    s.chunk = slice->chunk - first % slice->chunk;
    while (!code && left >= slice->run) {
        uint64_t runs = left / slice->run;
        if (s.chunk == 0) s.chunk = slice->chunk;
        sfti_window window = sfti_window_next(&s.runs, &s.rule, runs < s.chunk ? runs : s.chunk);
        s.chunk -= window.runs;
        code = window_read(w, &s, &window);
        left -= window.runs * slice->run;
    }
    return !code && left > 0 ? run_part(w, &s, 0, left) : code;
}

/* ── Tasks ───────────────────────────────────────────────────────────────── */

static sft_code read_gathered(const read_work *w, const sfti_read_op *op) {
    sfti_read_walk walk = op->first;
    sfti_read_piece piece;
    const char *at;
    uint32_t file = w->access->plan->items[walk.item].file;
    sft_code code = read_scratch(w, file, op->offset, (size_t)op->len, &at);
    for (size_t i = 0; !code && i < op->pieces; i++) {
        (void)sfti_read_walk_next(&walk, &piece);
        uint64_t from = piece.item->offset + piece.within - op->offset;
        memcpy(piece_into(w, &piece), at + from, (size_t)piece.len);
    }
    return code;
}

sft_code sfti_read_task(const sfti_read_access *access, size_t task, char *slot, char *scratch,
                        sft_error *err) {
    read_work w = { access, slot, scratch, err };
    sfti_read_walk walk = sfti_read_walk_begin(access->plan, task);
    sfti_read_op op;
    while (sfti_read_next_op(&walk, access->direct, &op)) {
        sft_code code;
        sfti_read_walk at = op.first;
        sfti_read_piece piece;
        if (op.kind == SFTI_READ_GATHERED) {
            code = read_gathered(&w, &op);
        } else {
            (void)sfti_read_walk_next(&at, &piece);
            code = op.kind == SFTI_READ_SLICED
                       ? read_slice_piece(&w, &piece)
                       : read_straight(&w, piece.item->file, op.offset, piece_into(&w, &piece),
                                       (size_t)op.len);
        }
        if (!code) continue;
        op_blame(&w, &op);
        return code;
    }
    return SFT_OK;
}
