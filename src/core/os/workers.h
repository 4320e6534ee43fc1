/* Threads that share the pieces of one call's work, the calling thread among them. */
#ifndef SFTI_WORKERS_H
#define SFTI_WORKERS_H

#include "os/os.h"
#include "safetensors.h"

#define SFTI_WORKERS_MOST 64

typedef struct sfti_workers {
    /* Takes the next piece of ctx's work, with the lock held where threads share something, and
     * does it. thread: 0, 1, ... of those that run. *done: how much that was, for the progress.
     * *err is clear, and gets why it failed; its code is to be set to what the work returned, for
     * a source may fail without a word in it. False: no piece was left. */
    bool (*step)(struct sfti_workers *workers, size_t thread, uint64_t *done, sft_error *err);
    void *ctx;
    const sft_job *job; /* ticked by the calling thread alone, of total; NULL: none */
    uint64_t total;
    bool shared; /* the mutex is in use; it guards what follows, and what ctx says */
    os_mutex mutex;
    size_t entered;
    uint64_t done;
    sft_error error; /* the first one: no piece is to be taken after it */
} sfti_workers;

/* How many threads are of use: what the job asks for, by default one per processor, at most `most`
 * and one per piece. */
size_t sfti_workers_count(const sft_job *job, size_t most, uint64_t pieces);
/* Work with that many threads, or with fewer if one cannot be started, until no piece is left or
 * one failed; sets all but the first four members. Returns the error's code, *err the error. */
sft_code sfti_workers_run(sfti_workers *workers, size_t threads, sft_error *err);

static inline void sfti_workers_lock(sfti_workers *workers) {
    if (workers->shared) sfti_os_mutex_lock(&workers->mutex);
}

static inline void sfti_workers_unlock(sfti_workers *workers) {
    if (workers->shared) sfti_os_mutex_unlock(&workers->mutex);
}

#endif
