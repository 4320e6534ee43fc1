/* A batch of models whose digests are computed by several threads. */
#ifndef SFTI_HASH_BATCH_H
#define SFTI_HASH_BATCH_H

#include "hash/model.h"
#include "os/os.h"

#define BATCH_BUFFER ((size_t)2 << 20)
#define BATCH_BLOCK (BATCH_BUFFER / 8) /* a piece, at most */
#define BATCH_UNIT ((size_t)4 << 10)
#define BATCH_THREADS 32
#define BATCH_SLOTS SFTI_SHA_LANES
#define BATCH_SLOTS_LEAST 4
#define BATCH_TRIAL_BYTES (UINT64_C(64) << 20) /* hashed before a trial of kernels */
#define BATCH_SHARES 8 /* threads that can work on one file */
#define BATCH_OPENED 64 /* files opened in one go, whose results are then delivered */

/* One file being read. */
typedef struct batch_slot {
    sfti_hash_model *model; /* NULL: free */
    sfti_hash_unit *unit;
    sfti_pass pass;
    uint64_t got; /* bytes of this round */
    bool ended;
    sft_error error;
} batch_slot;

struct batch;

typedef struct batch_worker {
    struct batch *batch;
    batch_slot slots[BATCH_SLOTS];
    uint8_t *buffer;
    sfti_hash_impl impl; /* the queue's; other kernels than the batch's once is_tried */
    bool is_tried;
    sfti_sha_queue queue;
    size_t busy;
    os_thread thread;
} batch_worker;

typedef struct batch {
    sft_allocator alloc; /* the caller's: on the calling thread only */
    sft_allocator work;  /* for models: libc's if there are threads */
    sft_hash_options options;
    sft_open_options open;
    sft_job job;
    sfti_hash_impl impl;
    sfti_hash_how how;
    const sft_hash_request *requests;
    size_t count;
    sft_hash_each_fn each;
    void *ctx;
    bool shared;    /* there are threads, and mutexes */
    os_mutex claim; /* guards next_request and waiting; held while a model is opened */
    os_mutex state; /* guards what follows, models' results and the cache */
    os_cond round;  /* signalled when a thread has read a round or has finished */
    uint64_t rounds;
    size_t running; /* threads */
    size_t next_request;
    sfti_hash_model *waiting; /* open models with unclaimed units */
    size_t unclaimed;         /* units of those models */
    size_t active;            /* units in slots */
    size_t opened, most_opened; /* models; the latter once descriptors have run out */
    sfti_hash_model **models; /* one per request; NULL: not open yet, or delivered */
    size_t delivered;
    uint64_t done, total;
    bool stop;
    sft_code code;
    sft_error *err;
    size_t threads, worker_count; /* threads that have memory, and those that run */
    batch_worker *workers; /* the first is the calling thread's */
    uint8_t *buffers;
} batch;

static inline void batch_lock(batch *b, os_mutex *mutex) {
    if (b->shared) sfti_os_mutex_lock(mutex);
}

static inline void batch_unlock(batch *b, os_mutex *mutex) {
    if (b->shared) sfti_os_mutex_unlock(mutex);
}

static inline uint64_t batch_unit_cost(const sfti_hash_unit *unit) {
    return unit->size == SFT_SIZE_UNKNOWN || unit->is_uncounted ? 0 : unit->end - unit->begin;
}

/* ── Claiming: models are opened, and threads take units of them ─────────── */

/* Once all of a model's units are read. */
void sfti_batch_close(batch *b, sfti_hash_model *model);
/* Lets threads claim the model's units. */
void sfti_batch_publish(batch *b, sfti_hash_model *model);
bool sfti_batch_is_over(batch *b);
/* With b->claim held: whether there is a request to open. */
bool sfti_batch_has_more(batch *b);
/* Whether another model may be opened before one is closed. */
bool sfti_batch_may_open(batch *b);
/* Whether a worker with `busy` files should take one more, so that all workers get their share. */
bool sfti_batch_wants_more(batch *b, size_t busy);
/* The next unit, of a model that is opened for it if needed; NULL: none now. With b->claim
 * held. */
sfti_hash_unit *sfti_batch_take_unit(batch *b, sfti_hash_model **model);

#endif
