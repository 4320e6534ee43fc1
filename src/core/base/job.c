/* Progress and cancelling of long calls. Tests: test_job.c. */
#include "base/job.h"

#include "base/error.h"

sft_code sfti_job_tick(const sft_job *job, uint64_t done, uint64_t total, sft_error *err) {
    if (!job || !job->tick || job->tick(job->ctx, done, total)) return SFT_OK;
    return sfti_fail_cancelled(err);
}

static bool stages_tick(void *ctx, uint64_t done, uint64_t total) {
    const sfti_stages *s = ctx;
    (void)total;
    return s->outer.tick(s->outer.ctx, s->done + done, s->total);
}

void sfti_stages_begin(sfti_stages *stages, const sft_job *outer, uint64_t total) {
    *stages = (sfti_stages){ .job = SFT_JOB_INIT, .outer = SFT_JOB_INIT, .total = total };
    if (outer) stages->outer = *outer;
    if (!stages->outer.tick) return;
    stages->job.tick = stages_tick;
    stages->job.ctx = stages;
}
