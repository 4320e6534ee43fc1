/* Copies bytes of a source into a sink, by the kernel where it can. Tests: test_sink.c. */
#include "base/job.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/sink.h"
#include "bytes/source.h"
#include "safetensors_io.h"

#include <string.h>

#define COPY_PIECE ((size_t)256 << 10) /* fits a processor's cache */
#define COPY_BORROWED ((size_t)8 << 20) /* a source in memory is written in large pieces */
#define COPY_PAGE 4096
#define COPY_PASS ((uint64_t)8 << 20)

typedef struct copy_run {
    const sft_source *from;
    uint64_t begin, end; /* end SFT_SIZE_UNKNOWN: to the end of the source */
    uint64_t done;
    const sft_sink *to;
    uint64_t at; /* in the sink, of begin */
    sft_job job;
    int fd;     /* the source's, while the kernel copies; else -1 */
    char *buffer; /* NULL until needed */
    size_t buffer_size;
    const sft_allocator *alloc;
} copy_run;

static bool is_borrowed(const copy_run *run) {
    return run->from->base && run->from->size != SFT_SIZE_UNKNOWN;
}

/* Lets the kernel copy some bytes; false, for good, once it cannot. */
static bool copy_pass(copy_run *run) {
    uint64_t left = run->end - run->begin - run->done, put = 0;
    uint64_t len = left < COPY_PASS ? left : COPY_PASS, at = run->begin + run->done;
    if (run->fd < 0 || left == 0) return false;
    if (sfti_path_pass(run->to, run->at + run->done, run->fd, at, len, &put) ||
        sfti_fd_pass(run->to, run->at + run->done, run->fd, at, len, &put)) {
        run->done += put;
        return true;
    }
    run->fd = -1;
    return false;
}

/* Copies one piece; *got is 0 at the end. */
static sft_code copy_piece(copy_run *run, size_t *got, sft_error *err) {
    uint64_t at = run->begin + run->done;
    uint64_t left = run->end - at;
    size_t most = is_borrowed(run) ? COPY_BORROWED : COPY_PIECE;
    size_t piece = left < most ? (size_t)left : most;
    *got = piece;
    if (piece == 0) return SFT_OK;
    if (!run->buffer && !is_borrowed(run)) {
        run->buffer_size = left < COPY_PIECE ? (size_t)left : COPY_PIECE;
        run->buffer = sfti_take(run->alloc, run->buffer_size);
        if (!run->buffer) return sfti_fail_memory(err, run->buffer_size);
    }
    sft_code code = SFT_OK;
    const char *bytes = run->buffer;
    if (!bytes) {
        bytes = (const char *)run->from->base + at;
    } else if (run->end == SFT_SIZE_UNKNOWN) {
        code = sft_source_read(run->from, at, run->buffer, piece, got, err);
    } else {
        code = sfti_source_all(run->from, at, run->buffer, piece, err);
    }
    if (code || *got == 0) return code;
    code = sft_sink_write(run->to, run->at + run->done, bytes, *got, err);
    run->done += *got;
    return code;
}

static sft_code copy_check(const sft_source *from, uint64_t begin, uint64_t *end,
                           sft_error *err) {
    uint64_t size = from->size;
    if (*end == SFT_SIZE_UNKNOWN) *end = size;
    if (begin > *end)
        return sfti_misuse(err, "expected a range that does not end before it begins, found "
                           "%llu to %llu", (unsigned long long)begin, (unsigned long long)*end);
    if (size == SFT_SIZE_UNKNOWN || *end <= size) return SFT_OK;
    /* Memory does not shrink: the caller has told less of it than he wants to be copied. */
    sft_code code = sfti_source_is_memory(from) ? SFT_BUFFER_SIZE : SFT_IO_SHRUNK;
    return sfti_fail_byte(err, code, size, "expected bytes up to offset %llu, found %llu",
                          (unsigned long long)*end, (unsigned long long)size);
}

sft_code sfti_copy_into(const sft_source *from, uint64_t begin, uint64_t end,
                        const sft_sink *to, uint64_t at, const sft_allocator *alloc,
                        const sft_job *job, sft_error *err) {
    copy_run run = { .from = from, .begin = begin, .to = to, .at = at, .job = *job,
                     .fd = -1, .alloc = alloc };
    /* If the offsets differ within a page, the kernel's copy takes 1.5 times as long as ours. */
    if ((begin ^ at) % COPY_PAGE == 0) run.fd = sfti_source_streamed(from);
    sft_code code = copy_check(from, begin, &end, err);
    run.end = end;
    if (!code) code = sft_sink_limit_mode(to, sft_source_mode(from), err);
    uint64_t total = end != SFT_SIZE_UNKNOWN ? end - begin : SFT_SIZE_UNKNOWN;
    for (size_t got = 1; !code && got > 0;) {
        code = sfti_job_tick(&run.job, run.done, total, err);
        if (!code && !copy_pass(&run)) code = copy_piece(&run, &got, err);
    }
    sfti_release(alloc, run.buffer, run.buffer_size);
    return code;
}

sft_code sft_copy(const sft_source *from, uint64_t begin, uint64_t end, sft_sink to,
                  const sft_job *job, sft_error *err) {
    sft_allocator alloc = sfti_allocator(NULL);
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (!code) code = copy_check(from, begin, &end, err);
    if (!code && end != SFT_SIZE_UNKNOWN) {
        sft_run run = { begin, end - begin };
        sft_source_expect(from, &run, run.len > 0);
        code = sft_sink_expect(&to, run.len, err);
    }
    if (!code) code = sfti_copy_into(from, begin, end, &to, 0, &alloc, &own, err);
    return sfti_sink_end(&to, code, err);
}
