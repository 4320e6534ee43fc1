/* Tensor bytes: borrowed, copied, copied for many tensors at once. Tests: test_view.c. */
#include "base/announce.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/order.h"
#include "file/file.h"
#include "os/workers.h"

#include <string.h>

/* ── One tensor ──────────────────────────────────────────────────────────── */

sft_code sfti_view_bad_call(sft_error *err) {
    return sfti_misuse(err, "expected a file, a tensor and a place for the result, found NULL");
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

/* The address of a tensor's bytes in the map; writable: in a private one. */
static sft_code view_find(const sft_file *file, const sft_tensor *tensor, bool writable,
                          void **out, sft_error *err) {
    if (!file || !tensor || !out) return sfti_view_bad_call(err);
    *out = NULL;
    if (!sfti_file_holds(file, tensor)) return sfti_tensor_foreign(tensor, err);
    uint64_t len = sfti_tensor_bytes(tensor);
    if (writable ? !file->writable : !file->source.base)
        return sfti_fail_tensor(err, SFT_NOT_MAPPED, tensor->offset, tensor->name,
                                "expected a file that is mapped in this way, found one that "
                                "is not");
    if (len && !view_is_there(file, tensor->offset, len))
        return view_absent(file, tensor, tensor->offset, len, err);
    *out = (char *)(uintptr_t)file->source.base + (len ? (size_t)tensor->offset : 0);
    return SFT_OK;
}

sft_code sft_view(const sft_file *file, const sft_tensor *tensor, const void **out,
                  sft_error *err) {
    void *at = NULL;
    sft_code code = view_find(file, tensor, false, out ? &at : NULL, err);
    if (out && file && tensor) *out = at;
    return code;
}

sft_code sft_view_writable(const sft_file *file, const sft_tensor *tensor, void **out,
                           sft_error *err) {
    return view_find(file, tensor, true, out, err);
}

sft_code sfti_file_read(const sft_file *file, const sft_tensor *tensor, uint64_t offset,
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
    if (code && err && tensor && err->tensor_len == SFT_NO_TENSOR)
        sfti_error_tensor(err, tensor->name);
    return code;
}

sft_code sft_borrow(const sft_file *file, const sft_tensor *tensor, sft_loan *out,
                    sft_error *err) {
    if (!file || !tensor || !out) return sfti_view_bad_call(err);
    memset(out, 0, sizeof *out);
    if (!sfti_file_holds(file, tensor)) return sfti_tensor_foreign(tensor, err);
    uint64_t len = sfti_tensor_bytes(tensor);
    /* A tensor has under 2^64 bits, so under 2^61 bytes: this fails on 32-bit hosts only. */
    if (sfti_never(!sfti_fits_size(len)))
        return sfti_fail_tensor(err, SFT_ADDRESS_SPACE, tensor->offset, tensor->name,
                                "expected a tensor this host can hold, found %llu bytes",
                                (unsigned long long)len);
    out->len = (size_t)len;
    sft_code code = SFT_OK;
    if (len == 0) {
        out->data = file; /* any address but NULL: nothing is read from it */
    } else if (file->source.base && !view_is_there(file, tensor->offset, len)) {
        code = view_absent(file, tensor, tensor->offset, len, err);
    } else if (file->source.base) {
        out->data = (const char *)file->source.base + tensor->offset;
    } else {
        out->data = out->owned = sfti_take(&file->alloc, out->len);
        code = out->owned ? sfti_file_read(file, tensor, tensor->offset, out->owned, out->len, err)
                          : sfti_fail_memory(err, out->len);
        if (code) sfti_release(&file->alloc, out->owned, out->len);
    }
    if (code) memset(out, 0, sizeof *out);
    return code;
}

void sft_return(const sft_file *file, sft_loan *loan) {
    if (!file || !loan) return;
    sfti_release(&file->alloc, loan->owned, loan->len);
    memset(loan, 0, sizeof *loan);
}

sft_code sfti_buffer_mismatch(const sft_tensor *tensor, uint64_t want, size_t len,
                              sft_error *err) {
    return sfti_fail_tensor(err, SFT_BUFFER_SIZE, SFT_NO_OFFSET, tensor->name,
                            "expected a buffer of %llu bytes, found %zu",
                            (unsigned long long)want, len);
}

static sft_code read_usable(const sft_file *file, const sft_tensor *tensor, const void *dst,
                            size_t len, sft_error *err) {
    if (!file || !tensor || (!dst && len)) return sfti_view_bad_call(err);
    if (!sfti_file_holds(file, tensor)) return sfti_tensor_foreign(tensor, err);
    if (len == sfti_tensor_bytes(tensor)) return SFT_OK;
    return sfti_buffer_mismatch(tensor, sfti_tensor_bytes(tensor), len, err);
}

sft_code sft_read_into(const sft_file *file, const sft_tensor *tensor, void *dst, size_t len,
                       sft_error *err) {
    sft_code code = read_usable(file, tensor, dst, len, err);
    return code ? code : sfti_file_read(file, tensor, tensor->offset, dst, len, err);
}

sft_code sft_read_bytes(const sft_file *file, uint64_t offset, void *dst, size_t len,
                     sft_error *err) {
    uint64_t end;
    if (!file || (!dst && len)) return sfti_view_bad_call(err);
    if (!sfti_add(offset, len, &end))
        return sfti_fail_byte(err, SFT_BAD_ARGUMENT, offset,
                              "expected an end of at most 2^64 - 1, found more");
    sft_code shrunk = sfti_source_is_memory(&file->source) ? SFT_BAD_ARGUMENT : SFT_IO_SHRUNK;
    if (file->source.size != SFT_SIZE_UNKNOWN && end > file->source.size)
        return sfti_fail_byte(err, shrunk, file->source.size, "expected %zu bytes at offset "
                              "%llu, found the end of the file at %llu", len,
                              (unsigned long long)offset, (unsigned long long)file->source.size);
    return sfti_file_read(file, NULL, offset, dst, len, err);
}

/* ── Many tensors ────────────────────────────────────────────────────────── */

#define PIECE_MOST ((uint64_t)8 << 20) /* bytes between two ticks, of all threads */
#define PIECE_LEAST ((uint64_t)128 << 10)

/* Reads in file order, taken in pieces by several threads. */
typedef struct read_queue {
    const sft_file *file;
    const sft_read *reads;
    const uint32_t *order;
    size_t count;
    uint64_t piece;  /* most bytes of one */
    size_t next;     /* position in order */
    uint64_t within; /* bytes of that read already handed out */
} read_queue;

typedef struct read_piece {
    const sft_tensor *tensor;
    uint64_t offset;
    char *dst;
    size_t len;
} read_piece;

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

static bool read_step(sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err) {
    read_queue *q = workers->ctx;
    read_piece piece = { 0 };
    (void)thread;
    sfti_workers_lock(workers);
    while (!workers->error.code && q->next < q->count && piece_extend(q, &piece)) continue;
    sfti_workers_unlock(workers);
    *done = piece.len;
    if (piece.len > 0)
        err->code =
            sfti_file_read(q->file, piece.tensor, piece.offset, piece.dst, piece.len, err);
    return piece.len > 0;
}

static int compare_read_offsets(const void *ctx, uint32_t a, uint32_t b) {
    const sft_read *reads = ctx;
    uint64_t left = reads[a].tensor->offset, right = reads[b].tensor->offset;
    return (left > right) - (left < right);
}

sft_code sft_read_many(const sft_file *file, const sft_read *reads, size_t count,
                       const sft_job *job, sft_error *err) {
    sft_job settled;
    uint64_t total = 0;
    if (!file || (!reads && count)) return sfti_view_bad_call(err);
    sft_code code = sfti_take_job(job, &settled, err);
    if (code) return code;
    if (count > UINT32_MAX)
        return sfti_misuse(err, "expected at most 2^32 - 1 reads, found %zu", count);
    for (size_t i = 0; i < count; i++) {
        code = read_usable(file, reads[i].tensor, reads[i].dst, reads[i].len, err);
        if (code) return code;
        if (!sfti_add(total, reads[i].len, &total))
            return sfti_fail(err, SFT_SIZE_OVERFLOW,
                             "expected at most 2^64 - 1 bytes in all reads, found more");
    }
    if (count == 0) return SFT_OK;
    uint64_t bytes = (uint64_t)count * 2 * sizeof(uint32_t);
    /* count is under 2^32: this fails on 32-bit hosts only. */
    if (sfti_never(!sfti_fits_size(bytes))) return sfti_fail_memory(err, bytes);
    uint32_t *order = sfti_take(&file->alloc, (size_t)bytes);
    if (!order) return sfti_fail_memory(err, bytes);

    read_queue q = { .file = file, .reads = reads, .order = order, .count = count };
    sfti_workers workers = { .step = read_step, .ctx = &q, .job = &settled, .total = total };
    sfti_announcement all = { .count = 0 };
    bool forward = file->source.size == SFT_SIZE_UNKNOWN;
    size_t most = forward ? 1 : SFTI_WORKERS_MOST;
    size_t threads = sfti_workers_count(&settled, most, total / PIECE_LEAST + 1);
    uint64_t share = PIECE_MOST / threads;
    q.piece = share > PIECE_LEAST ? share : PIECE_LEAST;
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + count, count, compare_read_offsets, reads);
    for (size_t i = 0; i < count; i++)
        sfti_announce(&all, &file->source, reads[order[i]].tensor->offset, reads[order[i]].len);
    sfti_announce_end(&all);
    code = sfti_workers_run(&workers, threads, err);
    sfti_release(&file->alloc, order, (size_t)bytes);
    return code;
}
