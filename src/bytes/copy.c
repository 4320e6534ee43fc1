#include "base/mem.h"
#include "bytes/source.h"

#include <string.h>

#define COPY_PIECE ((size_t)1 << 20)

typedef struct copy_run {
    const sft_source *from;
    uint64_t begin, end; /* end SFT_SIZE_UNKNOWN: to the end of the source */
    uint64_t done;
    sft_sink *to;
    sft_job job;
    char *room; /* NULL when the source lends its bytes */
} copy_run;

static sft_code copy_tick(const copy_run *run, sft_error *err) {
    bool known = run->end != SFT_SIZE_UNKNOWN;
    uint64_t total = known ? run->end - run->begin : SFT_SIZE_UNKNOWN;
    if (!run->job.tick || run->job.tick(run->job.ctx, run->done, total)) return SFT_OK;
    return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "cancelled after %llu bytes",
                     (unsigned long long)run->done);
}

/* One piece; *got 0 is the end. */
static sft_code copy_piece(copy_run *run, size_t *got, sft_error *err) {
    uint64_t at = run->begin + run->done;
    uint64_t left = run->end - at;
    size_t piece = left < COPY_PIECE ? (size_t)left : COPY_PIECE;
    const char *bytes = run->room;
    sft_code code = SFT_OK;
    *got = piece;
    if (!bytes) {
        bytes = (const char *)run->from->base + at;
    } else if (run->end == SFT_SIZE_UNKNOWN) {
        code = sfti_source_some(run->from, at, run->room, piece, got, err);
    } else {
        code = sfti_source_read(run->from, at, run->room, piece, err);
    }
    if (code != SFT_OK || *got == 0) return code;
    code = run->to->write_at(run->to->ctx, run->done, bytes, *got, err);
    run->done += *got;
    return code;
}

static sft_code copy_pieces(copy_run *run, sft_error *err) {
    size_t got = 1;
    sft_code code = SFT_OK;
    if (run->end != SFT_SIZE_UNKNOWN && run->to->expect) {
        code = run->to->expect(run->to->ctx, run->end - run->begin, err);
    }
    while (code == SFT_OK && got > 0) {
        code = copy_tick(run, err);
        if (code == SFT_OK) code = copy_piece(run, &got, err);
    }
    return code;
}

static sft_code copy_check(copy_run *run, sft_error *err) {
    uint64_t size = run->from->size;
    bool to_end = run->end == SFT_SIZE_UNKNOWN;
    if (to_end) run->end = size;
    if (run->begin > run->end) {
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                         "expected a range that does not end before it begins, found "
                         "%llu to %llu",
                         (unsigned long long)run->begin, (unsigned long long)run->end);
    }
    if (size == SFT_SIZE_UNKNOWN || run->end <= size) return SFT_OK;
    return sfti_fail(err, SFT_IO_SHRUNK, size, "expected bytes up to offset %llu, found %llu",
                     (unsigned long long)run->end, (unsigned long long)size);
}

static sft_code copy_all(copy_run *run, sft_error *err) {
    sft_allocator alloc = sfti_allocator(NULL);
    sft_code code = copy_check(run, err);
    if (code != SFT_OK) return code;
    if (run->from->base && run->from->size != SFT_SIZE_UNKNOWN) return copy_pieces(run, err);
    run->room = sfti_take(&alloc, COPY_PIECE);
    if (!run->room) return sfti_fail_memory(err, COPY_PIECE);
    code = copy_pieces(run, err);
    sfti_release(&alloc, run->room, COPY_PIECE);
    return code;
}

sft_code sft_copy(const sft_source *from, uint64_t begin, uint64_t end, sft_sink to,
                  const sft_job *job, sft_error *err) {
    copy_run run = { from, begin, end, 0, &to, SFT_JOB_INIT, NULL };
    sfti_options_copy(&run.job, sizeof run.job, job);
    sft_code code = copy_all(&run, err);
    if (code == SFT_OK) return to.finish(to.ctx, err);
    to.abandon(to.ctx);
    return code;
}
