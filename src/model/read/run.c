/* Reading a plan into memory: threads take its tasks in order, the caller's among them. */
#include "base/error.h"
#include "base/options.h"
#include "os/workers.h"
#include "read/read.h"

#define RUN_DIRECT_THREADS 4 /* at least, past the cache: they wait for the disk */

typedef struct plan_run {
    sfti_read_access access;
    sfti_read_scratch scratch;
    sfti_read_fresh fresh;
    size_t next; /* task */
} plan_run;

static bool run_step(sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err) {
    plan_run *run = workers->ctx;
    const sft_read_plan *plan = run->access.plan;
    size_t task = 0;
    sfti_workers_lock(workers);
    bool some = !workers->error.code && run->next < plan->task_count;
    if (some) task = run->next++;
    sfti_workers_unlock(workers);
    if (!some) return false;
    sfti_read_fresh_task(&run->fresh, plan, task);
    char *scratch = sfti_read_scratch_of(&run->scratch, thread);
    err->code = sfti_read_task(&run->access, task, NULL, scratch, err);
    if (err->code) return true;
    sfti_read_walk walk = sfti_read_walk_begin(plan, task);
    sfti_read_piece piece;
    while (sfti_read_walk_next(&walk, &piece)) *done += piece.len;
    return true;
}

sft_code sft_read_plan_run(const sft_read_plan *plan, const sft_job *job, sft_error *err) {
    plan_run run = { .next = 0 };
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (code) return code;
    if (!plan || !plan->in_memory)
        return sfti_misuse(err, "expected a plan of blocks with a base, found %s",
                           plan ? "one without" : "NULL");
    if (plan->task_count == 0) return SFT_OK;
    const sft_allocator *alloc = &plan->arena.alloc;
    code = sfti_read_access_begin(&run.access, plan, err);
    if (code) return code;
    bool direct = sfti_read_access_is_direct(&run.access);
    size_t threads = sfti_workers_count(&own, plan->forward ? 1 : SFTI_WORKERS_MOST,
                                        plan->task_count);
    if (direct && !own.threads && !plan->forward && threads < RUN_DIRECT_THREADS)
        threads = plan->task_count < RUN_DIRECT_THREADS ? plan->task_count : RUN_DIRECT_THREADS;
    if (sfti_read_scratch_take(alloc, threads, &run.scratch)) {
        sfti_workers workers = { .step = run_step, .ctx = &run, .job = &own,
                                 .total = plan->wanted };
        sfti_read_announce(plan);
        code = sfti_workers_run(&workers, threads, err);
    } else {
        code = sfti_fail_memory(err, run.scratch.bytes);
    }
    sfti_read_scratch_free(alloc, &run.scratch);
    sfti_read_access_end(&run.access);
    return code;
}
