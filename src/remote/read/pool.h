/* Threads that fetch: at most as many as the remote has connections, started when there is work,
 * ended when there was none for a second. What waits for their results takes back what they did
 * not begin, so nothing depends on them. */
#ifndef SFTI_REMOTE_POOL_H
#define SFTI_REMOTE_POOL_H

#include "base/error.h"
#include "base/mem.h"
#include "os/os.h"

#define SFTI_CONNECTIONS_MOST 64

/* Work that may be begun once. */
typedef struct sfti_task {
    void (*run)(void *ctx); /* with no mutex held */
    void *ctx;
    struct sfti_task *next;
    bool queued;
} sfti_task;

struct sfti_pool;

typedef struct sfti_pool_thread {
    struct sfti_pool *pool;
    os_thread thread;
    enum { SFTI_THREAD_NONE, SFTI_THREAD_STARTS, SFTI_THREAD_STARTED } state; /* by the starter */
    bool ended; /* by itself */
} sfti_pool_thread;

typedef struct sfti_pool {
    sft_allocator alloc;
    os_mutex mutex; /* of all below, and of everything that tasks change */
    os_cond work;   /* for threads: a task was put */
    os_cond done;   /* for readers: something was fetched, a connection is free */
    sfti_task *first, *last;
    size_t queued;
    uint32_t connections;
    const sft_wait *wait; /* who is asked in waits, or NULL */
    uint32_t used;  /* connections */
    uint32_t idle;  /* threads that wait for work */
    uint32_t fresh; /* threads that were started and did not look for work yet */
    uint32_t running;
    bool closing;
    sfti_pool_thread threads[SFTI_CONNECTIONS_MOST];
} sfti_pool;

sft_code sfti_pool_new(const sft_allocator *alloc, uint32_t connections, sfti_pool **out,
                       sft_error *err);
/* All tasks have been taken back or have ended. NULL is ignored. */
void sfti_pool_free(sfti_pool *pool);

/* With the mutex held: put a task behind the others; take back one that was not begun (false: it
 * was). */
void sfti_pool_put(sfti_pool *pool, sfti_task *task);
bool sfti_pool_take_back(sfti_pool *pool, sfti_task *task);
/* With no mutex held: start threads for the tasks that were put. */
void sfti_pool_start(sfti_pool *pool);

/* With the mutex held, wait until `done` is woken, or a tenth of a second. False: the process was
 * told to stop. */
bool sfti_pool_wait(sfti_pool *pool);
/* With no mutex held: wait for a connection and use it. SFT_CANCELLED. */
sft_code sfti_pool_connect(sfti_pool *pool, sft_error *err);
void sfti_pool_disconnect(sfti_pool *pool);

#endif
