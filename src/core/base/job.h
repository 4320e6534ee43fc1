/* Progress and cancelling of long calls. */
#ifndef SFTI_JOB_H
#define SFTI_JOB_H

#include "safetensors.h"

/* Tell the job's owner of done of total; SFT_CANCELLED if he says stop. job may be NULL. */
sft_code sfti_job_tick(const sft_job *job, uint64_t done, uint64_t total, sft_error *err);

/* Several pieces of work as one for a job: give &job to each, and add its size to done after
 * it. */
typedef struct sfti_stages {
    sft_job job, outer;
    uint64_t done, total;
} sfti_stages;
void sfti_stages_begin(sfti_stages *stages, const sft_job *outer, uint64_t total);

#endif
