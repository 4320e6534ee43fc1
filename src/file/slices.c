/* Slices of tensors, copied: from memory or a map, or read. */
#include "base/announce.h"
#include "file/file.h"

#include <string.h>

#define WINDOW_MOST ((uint64_t)256 << 10) /* bytes of one read that covers several runs */
#define GAP_MOST 4096 /* a gap between runs that costs less than another read */

#define GATHER(width)                                                          \
    for (size_t i = 0; i < count; i++)                                         \
        memcpy(dst + i * (width), src + (ptrdiff_t)i * stride, (width))

/* count runs of `run` bytes from src, src + stride, … packed into dst. */
static void gather(char *restrict dst, const char *restrict src, ptrdiff_t stride,
                   size_t count, size_t run) {
    switch (run) {
    case 1: GATHER(1); return;
    case 2: GATHER(2); return;
    case 4: GATHER(4); return;
    case 8: GATHER(8); return;
    case 16: GATHER(16); return;
    default: GATHER(run); return;
    }
}

typedef struct slice_copy {
    const sft_file *file;
    const sft_tensor *tensor;
    sft_runs runs;
    sft_runs ahead;   /* of what is not announced yet */
    size_t announced; /* windows that are announced, and not read yet */
    char *dst;
    char *window; /* scratch, allocated on first use */
    size_t window_size;
} slice_copy;

static void copy_row(slice_copy *c, const char *tensor_at_zero, const sfti_row *row,
                     uint64_t first) {
    size_t run = (size_t)c->runs.run_bytes, count = (size_t)row->count;
    gather(c->dst, tensor_at_zero + (ptrdiff_t)(row->offset - first), (ptrdiff_t)row->stride,
           count, run);
    c->dst += run * count;
}

static void slice_from_memory(slice_copy *c, const char *tensor) {
    sfti_row row;
    while (sfti_runs_row(&c->runs, UINT64_MAX, &row)) copy_row(c, tensor, &row, 0);
}

/* Bytes of the tensor, [low, high), that hold the next `runs` runs. */
typedef struct slice_window {
    uint64_t low, high, runs;
} slice_window;

static uint64_t distance(uint64_t a, uint64_t b) {
    return a < b ? b - a : a - b;
}

/* Whether reading the gap between two runs costs less than another read. */
static bool runs_near(uint64_t a, uint64_t b, uint64_t run) {
    uint64_t gap = distance(a, b) - run;
    return gap <= GAP_MOST || gap / 7 < run;
}

/* How many runs of a row fit one window; 1 if they are not near each other. */
static uint64_t row_fits(const sft_runs *runs) {
    int64_t stride = runs->rank ? runs->stride[0] : 0;
    uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
    if (step == 0 || runs->run_bytes > WINDOW_MOST || !runs_near(0, step, runs->run_bytes))
        return 1;
    return (WINDOW_MOST - runs->run_bytes) / step + 1;
}

/* Adds a row unless the window would exceed WINDOW_MOST; *last: where its last run begins. */
static bool window_add(slice_window *w, const sfti_row *row, uint64_t run, uint64_t *last) {
    *last = row->offset + (uint64_t)row->stride * (row->count - 1);
    uint64_t low = row->offset < *last ? row->offset : *last;
    uint64_t high = (row->offset < *last ? *last : row->offset) + run;
    if (w->runs > 0 && w->low < low) low = w->low;
    if (w->runs > 0 && w->high > high) high = w->high;
    if (w->runs > 0 && high - low > WINDOW_MOST) return false;
    *w = (slice_window){ low, high, w->runs + row->count };
    return true;
}

/* The window of the next runs that are near each other. */
static slice_window window_plan(sft_runs ahead) {
    slice_window w = { 0, 0, 0 };
    uint64_t run = ahead.run_bytes, last = 0, most = row_fits(&ahead);
    sfti_row row;
    while (ahead.left > 0 && (w.runs == 0 || runs_near(last, ahead.position, run))) {
        (void)sfti_runs_row(&ahead, most, &row);
        if (!window_add(&w, &row, run, &last)) break;
    }
    return w;
}

static sft_code window_take(slice_copy *c, sft_error *err) {
    uint64_t all = sfti_tensor_bytes(c->tensor);
    if (c->window) return SFT_OK;
    c->window_size = (size_t)(all < WINDOW_MOST ? all : WINDOW_MOST);
    c->window = sfti_take(&c->file->alloc, c->window_size);
    return c->window ? SFT_OK : sfti_fail_memory(err, c->window_size);
}

static sft_code slice_bytes(const slice_copy *c, uint64_t at, void *into, size_t len,
                            sft_error *err) {
    return sfti_file_read(c->file, c->tensor, c->tensor->offset + at, into, len, err);
}

#define SLICE_AHEAD 1024 /* windows that are announced at once */
#define SLICE_APART 10000 /* runs: if more are far apart, all between them is read, too */

/* So many windows would be as many requests: one run, from the first to the last. */
static bool slice_announce_whole(slice_copy *c) {
    sfti_announcement all = { .count = 0 };
    uint64_t low = UINT64_MAX, high = 0;
    sft_run run;
    if (c->ahead.left <= SLICE_APART || window_plan(c->ahead).runs > 1) return false;
    while (sft_runs_next(&c->ahead, &run)) {
        if (run.offset < low) low = run.offset;
        if (run.offset + run.len > high) high = run.offset + run.len;
    }
    sfti_announce(&all, &c->file->source, c->tensor->offset + low, high - low);
    sfti_announce_end(&all);
    return true;
}

/* The next windows, when half of those that are announced have been read. */
static void slice_announce(slice_copy *c) {
    sfti_announcement next = { .count = 0 };
    sfti_row row;
    if (c->announced > SLICE_AHEAD / 2 || slice_announce_whole(c)) return;
    for (; c->announced < SLICE_AHEAD && c->ahead.left > 0; c->announced++) {
        slice_window w = window_plan(c->ahead);
        sfti_announce(&next, &c->file->source, c->tensor->offset + w.low, w.high - w.low);
        for (; w.runs > 0; w.runs -= row.count) (void)sfti_runs_row(&c->ahead, w.runs, &row);
    }
    sfti_announce_end(&next);
}

/* A single run is read straight into dst, several by way of the window. */
static sft_code slice_step(slice_copy *c, sft_error *err) {
    if (sfti_source_expects(&c->file->source)) slice_announce(c);
    if (c->announced > 0) c->announced--;
    slice_window w = window_plan(c->runs);
    size_t len = (size_t)(w.high - w.low);
    sfti_row row;
    if (w.runs == 1) {
        (void)sfti_runs_row(&c->runs, 1, &row);
        sft_code alone = slice_bytes(c, row.offset, c->dst, len, err);
        c->dst += len;
        return alone;
    }
    sft_code code = window_take(c, err);
    if (code == SFT_OK) code = slice_bytes(c, w.low, c->window, len, err);
    while (code == SFT_OK && w.runs > 0) { /* the slice has at least as many left */
        (void)sfti_runs_row(&c->runs, w.runs, &row);
        copy_row(c, c->window, &row, w.low);
        w.runs -= row.count;
    }
    return code;
}

static sft_code slice_from_source(slice_copy *c, sft_error *err) {
    sft_code code = SFT_OK;
    while (code == SFT_OK && c->runs.left > 0) code = slice_step(c, err);
    sfti_release(&c->file->alloc, c->window, c->window_size);
    return code;
}

sft_code sft_slice_read(const sft_file *file, const sft_tensor *tensor, const sft_slice *slice,
                        void *dst, size_t len, sft_error *err) {
    slice_copy c = { 0 };
    uint64_t bytes;
    if (!file || !tensor || !slice || (!dst && len)) return sfti_view_bad_call(err);
    sft_code code = sft_runs_begin(tensor, slice, &c.runs, err);
    if (code == SFT_OK) code = sft_slice_size(slice, tensor->dtype, NULL, &bytes, err);
    if (code != SFT_OK) return code;
    if (bytes != len) return sfti_buffer_mismatch(tensor, bytes, len, err);
    c.ahead = c.runs;
    c.file = file;
    c.tensor = tensor;
    c.dst = dst;
    if (!file->source.base || bytes == 0) return slice_from_source(&c, err);
    const void *view;
    code = sft_view(file, tensor, &view, err);
    if (code == SFT_OK) slice_from_memory(&c, view);
    return code;
}
