/* Threads that share the pieces of one call's work. Tests: test_workers.c. */
#include "os/workers.h"

#include "base/job.h"

size_t sfti_workers_count(const sft_job *job, size_t most, uint64_t pieces) {
    size_t threads = job->threads ? job->threads : sfti_os_cpu_count();
    if (threads > most) threads = most;
    return threads < pieces ? threads : (size_t)pieces;
}

/* Counts what was done, or keeps the first error; returns what all threads have done. */
static uint64_t workers_report(sfti_workers *w, uint64_t done, const sft_error *error) {
    sfti_workers_lock(w);
    if (!error->code) w->done += done;
    else if (!w->error.code) w->error = *error;
    done = w->done;
    sfti_workers_unlock(w);
    return done;
}

static bool workers_tick(sfti_workers *w, uint64_t done) {
    sft_error error = SFT_ERROR_INIT;
    if (!sfti_job_tick(w->job, done, w->total, &error)) return true;
    (void)workers_report(w, 0, &error);
    return false;
}

static void workers_loop(sfti_workers *w, bool ticks) {
    static const sft_error none = SFT_ERROR_INIT;
    sft_error error = none;
    sfti_workers_lock(w);
    size_t thread = w->entered++;
    sfti_workers_unlock(w);
    bool more = !ticks || workers_tick(w, 0);
    for (uint64_t done = 0; more && w->step(w, thread, &done, &error); done = 0) {
        if (error.code && !error.message[0])
            (void)sft_error_set(&error, error.code, error.os_errno, NULL);
        uint64_t all = workers_report(w, done, &error);
        more = !ticks || workers_tick(w, all);
        error = none;
    }
}

static void workers_work(void *ctx) {
    workers_loop(ctx, false);
}

sft_code sfti_workers_run(sfti_workers *w, size_t threads, sft_error *err) {
    os_thread started[SFTI_WORKERS_MOST];
    size_t count = 0;
    w->entered = 0;
    w->done = 0;
    w->error = (sft_error)SFT_ERROR_INIT;
    w->shared = threads > 1 && sfti_os_mutex_init(&w->mutex) == 0;
    while (w->shared && count + 1 < threads
           && sfti_os_thread_start(&started[count], workers_work, w) == 0)
        count++;
    workers_loop(w, true);
    while (count > 0) sfti_os_thread_join(&started[--count]);
    if (w->shared) sfti_os_mutex_free(&w->mutex);
    w->shared = false;
    if (threads > 1 && !w->error.code) (void)workers_tick(w, w->done);
    if (w->error.code && err) *err = w->error;
    return w->error.code;
}
