/* Slices of tensors, copied: from memory or a map, or read. Tests: test_slice_file.c. */
#include "base/announce.h"
#include "file/file.h"
#include "safetensors_io.h"

#include <string.h>

#define WINDOW_MOST ((uint64_t)256 << 10) /* bytes of one read that covers several runs */
#define GAP_MOST 4096 /* a gap between runs that costs less than another read */

/* What a file of the system in the page cache costs, in nanoseconds: a read; bytes of a gap that
 * is read along, and of a run picked out of the window, which a nanosecond takes; a run that is
 * gathered, and bytes of it. */
#define COST_READ 340
#define GAP_RATE 28
#define PICK_RATE 32
#define COST_GATHERED 30
#define GATHER_RATE 5
#define GATHER_LEAST 32  /* runs for which a pipe is worth while */
#define GATHER_MOST 512

typedef struct slice_copy {
    const sft_file *file;
    const sft_tensor *tensor;
    sft_runs runs;
    bool local;       /* a file of the system */
    bool gathers;     /* which may copy runs out of a map */
    sft_runs ahead;   /* of what is not announced yet */
    size_t announced; /* windows that are announced, and not read yet */
    char *dst;
    char *window; /* scratch, allocated on first use */
    size_t window_size;
} slice_copy;

/* Whether reading the gap between two runs costs less than another read. */
static bool near_locally(uint64_t gap, uint64_t run) {
    return gap <= WINDOW_MOST && gap / GAP_RATE + run / PICK_RATE <= COST_READ;
}

/* The same of a server, where the other read is a request: a gap is read that is short, or below
 * seven times the run's own bytes. */
static bool near_remotely(uint64_t gap, uint64_t run) {
    return gap <= GAP_MOST || gap / 7 < run;
}

static const sfti_window_rule local_rule = { WINDOW_MOST, near_locally };
static const sfti_window_rule remote_rule = { WINDOW_MOST, near_remotely };

static sfti_window window_plan(const slice_copy *c, const sft_runs *runs) {
    return sfti_window_next(runs, c->local ? &local_rule : &remote_rule, UINT64_MAX);
}

#define SLICE_AHEAD 1024 /* windows that are announced at once */
#define SLICE_APART 10000 /* runs: if more are far apart, all between them is read, too */

/* So many windows would be as many requests: one run, from the first to the last. */
static bool slice_announce_whole(slice_copy *c) {
    sfti_announcement all = { .count = 0 };
    uint64_t low = UINT64_MAX, high = 0;
    sft_run run;
    if (c->ahead.left <= SLICE_APART || window_plan(c, &c->ahead).runs > 1) return false;
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
        sfti_window w = window_plan(c, &c->ahead);
        sfti_announce(&next, &c->file->source, c->tensor->offset + w.low, w.high - w.low);
        for (; w.runs > 0; w.runs -= row.count) (void)sfti_runs_row(&c->ahead, w.runs, &row);
    }
    sfti_announce_end(&next);
}

static bool gather_pays(const slice_copy *c, const sfti_window *w) {
    return c->gathers && w->runs * (COST_GATHERED + c->runs.run_bytes / GATHER_RATE) <
                             COST_READ + (w->high - w->low) / GAP_RATE;
}

/* Takes the runs that cost less when the kernel copies them one by one: those of the window w,
 * then of whole windows or, where a run has no other near it, whole rows. */
static size_t gather_plan(slice_copy *c, sfti_window w, uint64_t *offsets) {
    bool alone = sfti_window_row(&c->runs, &local_rule) == 1;
    size_t count = 0;
    sfti_row row;
    while (count < GATHER_MOST && c->runs.left > 0 && gather_pays(c, &w)) {
        uint64_t most = alone || w.runs > GATHER_MOST - count ? GATHER_MOST - count : w.runs;
        do {
            (void)sfti_runs_row(&c->runs, most, &row);
            for (uint64_t i = 0; i < row.count; i++)
                offsets[count++] = c->tensor->offset + row.offset + (uint64_t)row.stride * i;
            most -= row.count;
        } while (most > 0 && !alone);
        w = window_plan(c, &c->runs);
    }
    return count;
}

/* What the system has not copied, if any, is read: that tells what is wrong. */
static sft_code slice_gather(slice_copy *c, sfti_window w, sft_error *err) {
    uint64_t offsets[GATHER_MOST];
    size_t run = (size_t)c->runs.run_bytes;
    sft_runs before = c->runs;
    size_t count = gather_plan(c, w, offsets);
    size_t done = sfti_source_gather(&c->file->source, offsets, count, run, c->dst);
    if (done == 0) {
        c->gathers = false;
        c->runs = before;
        return SFT_OK;
    }
    sft_code code = SFT_OK;
    for (; !code && done < count; done++)
        code = sfti_file_read(c->file, c->tensor, offsets[done], c->dst + done * run, run, err);
    c->dst += count * run;
    return code;
}

/* A single run is read straight into dst, several by way of the window. */
static sft_code slice_step(slice_copy *c, sft_error *err) {
    if (sfti_source_expects(&c->file->source)) slice_announce(c);
    if (c->announced > 0) c->announced--;
    sfti_window w = window_plan(c, &c->runs);
    if (gather_pays(c, &w)) return slice_gather(c, w, err);
    if (w.runs != 1 && !c->window) {
        uint64_t all = sfti_tensor_bytes(c->tensor);
        c->window_size = (size_t)(all < WINDOW_MOST ? all : WINDOW_MOST);
        c->window = sfti_take(&c->file->alloc, c->window_size);
        if (!c->window) return sfti_fail_memory(err, c->window_size);
    }
    sft_code code = sfti_file_read(c->file, c->tensor, c->tensor->offset + w.low,
                                   w.runs == 1 ? c->dst : c->window, (size_t)(w.high - w.low),
                                   err);
    if (code) return code;
    size_t bytes = (size_t)(w.runs * c->runs.run_bytes);
    sfti_row row;
    if (w.runs == 1) (void)sfti_runs_row(&c->runs, 1, &row);
    else sfti_runs_pick(&c->runs, w.runs, c->window, w.low, c->dst);
    c->dst += bytes;
    return SFT_OK;
}

static sft_code slice_copied(const sft_file *file, const sft_tensor *tensor,
                             const sft_slice *slice, void *dst, size_t len, bool mapped,
                             sft_error *err) {
    slice_copy c = { 0 };
    uint64_t bytes;
    if (!file || !tensor || !slice || (!dst && len)) return sfti_view_bad_call(err);
    if (!sfti_file_holds(file, tensor)) return sfti_tensor_foreign(tensor, err);
    sft_code code = sft_runs_begin(tensor, slice, &c.runs, err);
    if (!code) code = sft_slice_size(slice, tensor->dtype, NULL, &bytes, err);
    if (code) return code;
    if (bytes != len) return sfti_buffer_mismatch(tensor, bytes, len, err);
    c.ahead = c.runs;
    c.file = file;
    c.tensor = tensor;
    c.dst = dst;
    c.local = sfti_source_descriptor(&file->source) >= 0;
    c.gathers = c.local && c.runs.left >= GATHER_LEAST;
    const char *whole = NULL;
    if (mapped && !file->source.base && c.runs.left > 1)
        whole = sfti_source_mapped(&file->source,
                                   tensor->offset + sfti_tensor_bytes(tensor));
    if (whole) {
        sfti_runs_pick(&c.runs, c.runs.left, whole + tensor->offset, 0, dst);
        return SFT_OK;
    }
    if (!file->source.base || bytes == 0) {
        while (!code && c.runs.left > 0) code = slice_step(&c, err);
        sfti_release(&file->alloc, c.window, c.window_size);
        return code;
    }
    const void *view;
    code = sft_view(file, tensor, &view, err);
    if (!code) sfti_runs_pick(&c.runs, c.runs.left, view, 0, dst);
    return code;
}

sft_code sft_slice_read(const sft_file *file, const sft_tensor *tensor, const sft_slice *slice,
                        void *dst, size_t len, sft_error *err) {
    return slice_copied(file, tensor, slice, dst, len, false, err);
}

sft_code sft_slice_read_mapped(const sft_file *file, const sft_tensor *tensor,
                               const sft_slice *slice, void *dst, size_t len, sft_error *err) {
    return slice_copied(file, tensor, slice, dst, len, true, err);
}
