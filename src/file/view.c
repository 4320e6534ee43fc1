/* Tensor bytes: borrowed, copied, copied for many tensors at once, copied in slices. */
#include "base/announce.h"
#include "base/checked.h"
#include "base/job.h"
#include "base/never.h"
#include "base/options.h"
#include "base/order.h"
#include "file/file.h"

#include <string.h>

/* ── One tensor ──────────────────────────────────────────────────────────── */

static sft_code view_bad_call(sft_error *err) {
    return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                     "expected a file, a tensor and a place for the result, found NULL");
}

static uint64_t tensor_bytes(const sft_tensor *tensor) {
    return tensor->end - tensor->begin;
}

static sft_code view_absent(const sft_file *file, const sft_tensor *tensor, uint64_t offset,
                            uint64_t len, sft_error *err) {
    return sfti_fail_tensor(err, SFT_DATA_TRUNCATED, offset, tensor->name,
                            "expected %llu bytes at offset %llu, found the end of the file "
                            "at %llu",
                            (unsigned long long)len, (unsigned long long)offset,
                            (unsigned long long)file->source.size);
}

/* A file opened with header_only may be shorter than its header says. */
static bool view_is_there(const sft_file *file, uint64_t offset, uint64_t len) {
    uint64_t size = file->source.size;
    return file->complete || size == SFT_SIZE_UNKNOWN || (offset <= size && len <= size - offset);
}

static sft_code view_checked(const sft_file *file, const sft_tensor *tensor, bool mapped,
                             sft_error *err) {
    uint64_t len = tensor_bytes(tensor);
    if (!mapped)
        return sfti_fail_tensor(err, SFT_NOT_MAPPED, tensor->offset, tensor->name,
                                "expected a file that is mapped in this way, found one that "
                                "is not");
    if (len && !view_is_there(file, tensor->offset, len))
        return view_absent(file, tensor, tensor->offset, len, err);
    return SFT_OK;
}

static char *view_address(const sft_file *file, const sft_tensor *tensor) {
    uint64_t at = tensor_bytes(tensor) ? tensor->offset : 0;
    return (char *)(uintptr_t)file->source.base + (size_t)at;
}

sft_code sft_view(const sft_file *file, const sft_tensor *tensor, const void **out,
                  sft_error *err) {
    if (!file || !tensor || !out) return view_bad_call(err);
    *out = NULL;
    sft_code code = view_checked(file, tensor, file->source.base != NULL, err);
    if (code == SFT_OK) *out = view_address(file, tensor);
    return code;
}

sft_code sft_view_writable(const sft_file *file, const sft_tensor *tensor, void **out,
                           sft_error *err) {
    if (!file || !tensor || !out) return view_bad_call(err);
    *out = NULL;
    sft_code code = view_checked(file, tensor, file->writable, err);
    if (code == SFT_OK) *out = view_address(file, tensor);
    return code;
}

/* tensor: the one an error is about, or NULL. */
static sft_code read_exactly(const sft_file *file, const sft_tensor *tensor, uint64_t offset,
                             void *into, size_t len, sft_error *err) {
    if (len == 0) return SFT_OK;
    if (tensor && !view_is_there(file, offset, len))
        return view_absent(file, tensor, offset, len, err);
    sft_code code = sfti_source_all(&file->source, offset, into, len, err);
    if (code == SFT_IO_SHRUNK && !file->complete) code = SFT_DATA_TRUNCATED;
    if (code == SFT_DATA_TRUNCATED && err) {
        err->code = code;
        err->hint = sft_code_describe(code)->hint;
    }
    if (code != SFT_OK && err && tensor && err->tensor_len == SFT_NO_TENSOR)
        sfti_error_tensor(err, tensor->name);
    return code;
}

static sft_code borrow_copy(const sft_file *file, const sft_tensor *tensor, sft_loan *out,
                            sft_error *err) {
    void *copy = sfti_take(&file->alloc, out->len);
    if (!copy) return sfti_fail_memory(err, out->len);
    sft_code code = read_exactly(file, tensor, tensor->offset, copy, out->len, err);
    if (code != SFT_OK) {
        sfti_release(&file->alloc, copy, out->len);
        return code;
    }
    out->data = out->owned = copy;
    return SFT_OK;
}

sft_code sft_borrow(const sft_file *file, const sft_tensor *tensor, sft_loan *out,
                    sft_error *err) {
    if (!file || !tensor || !out) return view_bad_call(err);
    memset(out, 0, sizeof *out);
    uint64_t len = tensor_bytes(tensor);
    /* A tensor has under 2^64 bits, so under 2^61 bytes: this fails on 32-bit hosts only. */
    if (sfti_never(!sfti_fits_size(len)))
        return sfti_fail_tensor(err, SFT_ADDRESS_SPACE, tensor->offset, tensor->name,
                                "expected a tensor this host can hold, found %llu bytes",
                                (unsigned long long)len);
    out->len = (size_t)len;
    sft_code code = SFT_OK;
    if (len == 0) out->data = file; /* any address but NULL: nothing is read from it */
    else if (file->source.base) code = sft_view(file, tensor, &out->data, err);
    else code = borrow_copy(file, tensor, out, err);
    if (code != SFT_OK) memset(out, 0, sizeof *out);
    return code;
}

void sft_return(const sft_file *file, sft_loan *loan) {
    if (!file || !loan) return;
    sfti_release(&file->alloc, loan->owned, loan->len);
    memset(loan, 0, sizeof *loan);
}

static sft_code buffer_mismatch(const sft_tensor *tensor, uint64_t want, size_t len,
                                sft_error *err) {
    return sfti_fail_tensor(err, SFT_BUFFER_SIZE, SFT_NO_OFFSET, tensor->name,
                            "expected a buffer of %llu bytes, found %zu",
                            (unsigned long long)want, len);
}

static sft_code read_usable(const sft_tensor *tensor, const void *dst, size_t len,
                            sft_error *err) {
    if (!tensor || (!dst && len)) return view_bad_call(err);
    if (len == tensor_bytes(tensor)) return SFT_OK;
    return buffer_mismatch(tensor, tensor_bytes(tensor), len, err);
}

sft_code sft_read_into(const sft_file *file, const sft_tensor *tensor, void *dst, size_t len,
                       sft_error *err) {
    if (!file) return view_bad_call(err);
    sft_code code = read_usable(tensor, dst, len, err);
    return code == SFT_OK ? read_exactly(file, tensor, tensor->offset, dst, len, err) : code;
}

sft_code sft_read_bytes(const sft_file *file, uint64_t offset, void *dst, size_t len,
                     sft_error *err) {
    uint64_t end;
    if (!file || (!dst && len)) return view_bad_call(err);
    if (!sfti_add(offset, len, &end))
        return sfti_fail(err, SFT_BAD_ARGUMENT, offset,
                         "expected an end of at most 2^64 - 1, found more");
    if (file->source.size != SFT_SIZE_UNKNOWN && end > file->source.size)
        return sfti_fail(err, SFT_IO_SHRUNK, file->source.size,
                         "expected %zu bytes at offset %llu, found the end of the file at %llu",
                         len, (unsigned long long)offset,
                         (unsigned long long)file->source.size);
    return read_exactly(file, NULL, offset, dst, len, err);
}

/* ── Many tensors ────────────────────────────────────────────────────────── */

#define PIECE_MOST ((uint64_t)8 << 20) /* bytes between two ticks, of all threads */
#define PIECE_LEAST ((uint64_t)128 << 10)
#define THREADS_MOST 64

/* Reads in file order, taken in pieces by several threads. The mutex guards the fields after
 * it while threads run. */
typedef struct read_queue {
    const sft_file *file;
    const sft_read *reads;
    const uint32_t *order;
    size_t count;
    uint64_t piece; /* most bytes of one */
    bool shared;    /* the mutex is in use */
    os_mutex mutex;
    size_t next;     /* position in order */
    uint64_t within; /* bytes of that read already handed out */
    uint64_t done;
    bool stop;
    sft_code code;
    sft_error error;
} read_queue;

typedef struct read_piece {
    const sft_tensor *tensor;
    uint64_t offset;
    char *dst;
    size_t len;
} read_piece;

static void queue_lock(read_queue *q) {
    if (q->shared) os_mutex_lock(&q->mutex);
}

static void queue_unlock(read_queue *q) {
    if (q->shared) os_mutex_unlock(&q->mutex);
}

/* Extends the piece by what is left of the next read if that continues the piece, in the file and
 * in memory. False: it does not, or the piece is full. */
static bool piece_extend(read_queue *q, read_piece *piece) {
    const sft_read *read = &q->reads[q->order[q->next]];
    uint64_t left = read->len - q->within, cap = q->piece - piece->len;
    uint64_t offset = read->tensor->offset + q->within;
    char *dst = (char *)read->dst + q->within;
    if (left == 0) {
        q->next++;
        q->within = 0;
        return true;
    }
    if (cap == 0) return false;
    if (piece->len == 0)
        *piece = (read_piece){ read->tensor, offset, dst, 0 };
    else if (offset != piece->offset + piece->len || dst != piece->dst + piece->len)
        return false;
    uint64_t more = left < cap ? left : cap;
    piece->len += (size_t)more;
    q->within += more;
    return true;
}

static bool queue_take(read_queue *q, read_piece *piece) {
    memset(piece, 0, sizeof *piece);
    queue_lock(q);
    while (!q->stop && q->next < q->count && piece_extend(q, piece)) continue;
    bool some = !q->stop && piece->len > 0;
    queue_unlock(q);
    return some;
}

/* Counts a finished piece or keeps the first error. Returns the bytes done by all threads. */
static uint64_t queue_report(read_queue *q, const read_piece *piece, sft_code code,
                             const sft_error *error) {
    queue_lock(q);
    if (code == SFT_OK) q->done += piece->len;
    if (code != SFT_OK && q->code == SFT_OK) {
        q->code = code;
        q->error = *error;
    }
    if (code != SFT_OK) q->stop = true;
    uint64_t done = q->done;
    queue_unlock(q);
    return done;
}

static uint64_t queue_step(read_queue *q, const read_piece *piece) {
    sft_error error = SFT_ERROR_INIT;
    sft_code code =
        read_exactly(q->file, piece->tensor, piece->offset, piece->dst, piece->len, &error);
    return queue_report(q, piece, code, &error);
}

static void queue_work(void *ctx) {
    read_queue *q = ctx;
    read_piece piece;
    while (queue_take(q, &piece)) (void)queue_step(q, &piece);
}

static bool queue_ask(read_queue *q, const sft_job *job, uint64_t done, uint64_t total) {
    sft_error error = SFT_ERROR_INIT;
    read_piece none = { 0 };
    if (sfti_job_tick(job, done, total, &error) == SFT_OK) return true;
    (void)queue_report(q, &none, SFT_CANCELLED, &error);
    return false;
}

/* The calling thread reads pieces as the workers do; only it calls the job's tick. */
static void queue_work_asking(read_queue *q, const sft_job *job, uint64_t total) {
    read_piece piece;
    if (!queue_ask(q, job, 0, total)) return;
    while (queue_take(q, &piece)) {
        uint64_t done = queue_step(q, &piece);
        if (!queue_ask(q, job, done, total)) return;
    }
}

static uint32_t queue_threads(const read_queue *q, const sft_job *job, uint64_t total) {
    uint32_t threads = job->threads ? job->threads : os_cpu_count();
    uint64_t pieces = total / PIECE_LEAST + 1;
    if (q->file->source.size == SFT_SIZE_UNKNOWN) return 1; /* read forward only */
    if (threads > THREADS_MOST) threads = THREADS_MOST;
    return threads < pieces ? threads : (uint32_t)pieces;
}

/* Goes on with fewer threads if one cannot be started. */
static void queue_run(read_queue *q, const sft_job *job, uint64_t total) {
    os_thread threads[THREADS_MOST];
    uint32_t wanted = queue_threads(q, job, total), started = 0;
    q->shared = wanted > 1 && os_mutex_init(&q->mutex) == 0;
    uint64_t share = q->shared ? PIECE_MOST / wanted : PIECE_MOST;
    q->piece = share > PIECE_LEAST ? share : PIECE_LEAST;
    while (q->shared && started + 1 < wanted &&
           os_thread_start(&threads[started], queue_work, q) == 0)
        started++;
    queue_work_asking(q, job, total);
    while (started > 0) os_thread_join(&threads[--started]);
    if (q->shared) os_mutex_free(&q->mutex);
    q->shared = false;
    if (wanted > 1 && q->code == SFT_OK) (void)queue_ask(q, job, q->done, total);
}

static int compare_read_offsets(const void *ctx, uint32_t a, uint32_t b) {
    const sft_read *reads = ctx;
    uint64_t left = reads[a].tensor->offset, right = reads[b].tensor->offset;
    return (left > right) - (left < right);
}

static sft_code reads_check(const sft_read *reads, size_t count, uint64_t *total,
                            sft_error *err) {
    *total = 0;
    if (count > UINT32_MAX)
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                         "expected at most 2^32 - 1 reads, found %zu", count);
    for (size_t i = 0; i < count; i++) {
        sft_code code = read_usable(reads[i].tensor, reads[i].dst, reads[i].len, err);
        if (code != SFT_OK) return code;
        if (!sfti_add(*total, reads[i].len, total))
            return sfti_fail(err, SFT_SIZE_OVERFLOW, SFT_NO_OFFSET,
                             "expected at most 2^64 - 1 bytes in all reads, found more");
    }
    return SFT_OK;
}

static sft_code reads_run(const sft_file *file, const sft_read *reads, size_t count,
                          uint32_t *order, const sft_job *job, uint64_t total,
                          sft_error *err) {
    read_queue q = { 0 };
    sfti_announcement all = { .count = 0 };
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + count, count, compare_read_offsets, reads);
    for (size_t i = 0; i < count; i++)
        sfti_announce(&all, &file->source, reads[order[i]].tensor->offset, reads[order[i]].len);
    sfti_announce_end(&all);
    q.file = file;
    q.reads = reads;
    q.order = order;
    q.count = count;
    queue_run(&q, job, total);
    if (q.code != SFT_OK && err) *err = q.error;
    return q.code;
}

sft_code sft_read_many(const sft_file *file, const sft_read *reads, size_t count,
                       const sft_job *job, sft_error *err) {
    sft_job settled;
    uint64_t total;
    if (!file || (!reads && count)) return view_bad_call(err);
    sft_code code = sfti_take_job(job, &settled, err);
    if (code == SFT_OK) code = reads_check(reads, count, &total, err);
    if (code != SFT_OK || count == 0) return code;
    uint64_t bytes = (uint64_t)count * 2 * sizeof(uint32_t);
    /* count is under 2^32: this fails on 32-bit hosts only. */
    if (sfti_never(!sfti_fits_size(bytes))) return sfti_fail_memory(err, bytes);
    uint32_t *order = sfti_take(&file->alloc, (size_t)bytes);
    if (!order) return sfti_fail_memory(err, bytes);
    code = reads_run(file, reads, count, order, &settled, total, err);
    sfti_release(&file->alloc, order, (size_t)bytes);
    return code;
}

/* ── Slices ──────────────────────────────────────────────────────────────── */

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
    uint64_t all = tensor_bytes(c->tensor);
    if (c->window) return SFT_OK;
    c->window_size = (size_t)(all < WINDOW_MOST ? all : WINDOW_MOST);
    c->window = sfti_take(&c->file->alloc, c->window_size);
    return c->window ? SFT_OK : sfti_fail_memory(err, c->window_size);
}

static sft_code slice_bytes(const slice_copy *c, uint64_t at, void *into, size_t len,
                            sft_error *err) {
    return read_exactly(c->file, c->tensor, c->tensor->offset + at, into, len, err);
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
    if (!file || !tensor || !slice || (!dst && len)) return view_bad_call(err);
    sft_code code = sft_runs_begin(tensor, slice, &c.runs, err);
    if (code == SFT_OK) code = sft_slice_size(slice, tensor->dtype, NULL, &bytes, err);
    if (code != SFT_OK) return code;
    if (bytes != len) return buffer_mismatch(tensor, bytes, len, err);
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
