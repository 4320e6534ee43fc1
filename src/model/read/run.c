/* Reading a plan into memory: threads take its tasks in order, the caller's among them. */
#include "base/error.h"
#include "base/job.h"
#include "base/options.h"
#include "os/os.h"
#include "read/read.h"

#define RUN_THREADS 64
#define RUN_DIRECT_THREADS 4 /* at least, past the cache: they wait for the disk */

/* The mutex guards the fields after it while threads run. */
typedef struct plan_run {
    sfti_read_access access;
    sfti_read_scratch scratch;
    sfti_read_fresh fresh;
    bool shared; /* the mutex is in use */
    os_mutex mutex;
    size_t next; /* task */
    size_t entered; /* threads */
    uint64_t done;
    sft_code code;
    sft_error error;
} plan_run;

static void run_lock(plan_run *run) {
    if (run->shared) sfti_os_mutex_lock(&run->mutex);
}

static void run_unlock(plan_run *run) {
    if (run->shared) sfti_os_mutex_unlock(&run->mutex);
}

static bool run_take(plan_run *run, size_t *task) {
    run_lock(run);
    bool some = !run->code && run->next < run->access.plan->task_count;
    if (some) *task = run->next++;
    run_unlock(run);
    return some;
}

static uint64_t task_wanted(const sft_read_plan *plan, size_t task) {
    sfti_read_walk walk = sfti_read_walk_begin(plan, task);
    sfti_read_piece piece;
    uint64_t wanted = 0;
    while (sfti_read_walk_next(&walk, &piece)) wanted += piece.len;
    return wanted;
}

/* Counts what was read or keeps the first error. Returns the bytes of all threads. */
static uint64_t run_report(plan_run *run, uint64_t bytes, sft_code code, const sft_error *error) {
    run_lock(run);
    run->done += bytes;
    if (code && !run->code) {
        run->code = code;
        run->error = *error;
    }
    uint64_t done = run->done;
    run_unlock(run);
    return done;
}

static uint64_t run_step(plan_run *run, size_t task, char *scratch) {
    sft_error error = SFT_ERROR_INIT;
    sfti_read_fresh_task(&run->fresh, run->access.plan, task);
    sft_code code = sfti_read_task(&run->access, task, NULL, scratch, &error);
    uint64_t bytes = code ? 0 : task_wanted(run->access.plan, task);
    return run_report(run, bytes, code, &error);
}

static char *run_scratch(plan_run *run) {
    run_lock(run);
    char *scratch = sfti_read_scratch_of(&run->scratch, run->entered++);
    run_unlock(run);
    return scratch;
}

static void run_work(void *ctx) {
    plan_run *run = ctx;
    char *scratch = run_scratch(run);
    for (size_t task; run_take(run, &task);) (void)run_step(run, task, scratch);
}

static bool run_ask(plan_run *run, const sft_job *job, uint64_t done) {
    sft_error error = SFT_ERROR_INIT;
    sft_code code = sfti_job_tick(job, done, run->access.plan->wanted, &error);
    if (code) (void)run_report(run, 0, code, &error);
    return !code;
}

/* Only the calling thread calls the job's tick. */
static void run_work_asking(plan_run *run, const sft_job *job) {
    char *scratch = run_scratch(run);
    bool more = run_ask(run, job, 0);
    for (size_t task; more && run_take(run, &task);)
        more = run_ask(run, job, run_step(run, task, scratch));
}

static size_t run_threads(const plan_run *run, const sft_job *job) {
    const sft_read_plan *plan = run->access.plan;
    size_t threads = job->threads ? job->threads : sfti_os_cpu_count();
    if (plan->forward) return 1;
    if (!job->threads && threads < RUN_DIRECT_THREADS && sfti_read_access_is_direct(&run->access))
        threads = RUN_DIRECT_THREADS;
    if (threads > RUN_THREADS) threads = RUN_THREADS;
    return threads < plan->task_count ? threads : plan->task_count;
}

/* Goes on with fewer threads if one cannot be started. */
static void run_go(plan_run *run, const sft_job *job, size_t wanted) {
    os_thread threads[RUN_THREADS];
    size_t started = 0;
    run->shared = wanted > 1 && sfti_os_mutex_init(&run->mutex) == 0;
    while (run->shared && started + 1 < wanted
           && sfti_os_thread_start(&threads[started], run_work, run) == 0)
        started++;
    run_work_asking(run, job);
    while (started > 0) sfti_os_thread_join(&threads[--started]);
    if (run->shared) sfti_os_mutex_free(&run->mutex);
    run->shared = false;
    if (wanted > 1 && !run->code) (void)run_ask(run, job, run->done);
}

sft_code sft_read_plan_run(const sft_read_plan *plan, const sft_job *job, sft_error *err) {
    plan_run run = { .next = 0 };
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (code) return code;
    if (!plan || !plan->in_memory)
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                         "expected a plan of blocks with a base, found %s",
                         plan ? "one without" : "NULL");
    if (plan->task_count == 0) return SFT_OK;
    const sft_allocator *alloc = &plan->arena.alloc;
    code = sfti_read_access_begin(&run.access, plan, err);
    if (code) return code;
    size_t threads = run_threads(&run, &own);
    if (sfti_read_scratch_take(alloc, threads, &run.scratch)) {
        sfti_read_announce(plan);
        run_go(&run, &own, threads);
        code = run.code;
        if (code && err) *err = run.error;
    } else {
        code = sfti_fail_memory(err, run.scratch.bytes);
    }
    sfti_read_scratch_free(alloc, &run.scratch);
    sfti_read_access_end(&run.access);
    return code;
}
