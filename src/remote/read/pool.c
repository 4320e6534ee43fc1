/* Threads that fetch, and connections in use. Tests: test_remote_blocks.c. */
#include "remote/read/pool.h"

#include "os/io.h"

#include <string.h>

#define POOL_WAIT_MS 100
#define POOL_WAITS 10 /* of an idle thread, before it ends */

sft_code sfti_pool_new(const sft_allocator *alloc, uint32_t connections, sfti_pool **out,
                       sft_error *err) {
    sfti_pool *pool = sfti_take(alloc, sizeof *pool);
    *out = NULL;
    if (!pool) return sfti_fail_memory(err, sizeof *pool);
    memset(pool, 0, sizeof *pool);
    pool->alloc = *alloc;
    pool->connections = connections;
    if (sfti_os_mutex_init(&pool->mutex)) goto no_mutex;
    if (sfti_os_cond_init(&pool->work)) goto no_work;
    if (sfti_os_cond_init(&pool->done)) goto no_done;
    *out = pool;
    return SFT_OK;
no_done:
    sfti_os_cond_free(&pool->work);
no_work:
    sfti_os_mutex_free(&pool->mutex);
no_mutex:
    sfti_release(alloc, pool, sizeof *pool);
    return sfti_fail_memory(err, sizeof *pool);
}

void sfti_pool_free(sfti_pool *pool) {
    if (!pool) return;
    sfti_os_mutex_lock(&pool->mutex);
    pool->closing = true;
    sfti_os_cond_wake(&pool->work);
    sfti_os_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < SFTI_CONNECTIONS_MOST; i++)
        if (pool->threads[i].state != SFTI_THREAD_NONE)
            sfti_os_thread_join(&pool->threads[i].thread);
    sfti_os_cond_free(&pool->done);
    sfti_os_cond_free(&pool->work);
    sfti_os_mutex_free(&pool->mutex);
    sft_allocator alloc = pool->alloc;
    sfti_release(&alloc, pool, sizeof *pool);
}

/* ── Tasks ── */

void sfti_pool_put(sfti_pool *pool, sfti_task *task) {
    task->next = NULL;
    task->queued = true;
    if (pool->first) pool->last->next = task;
    else pool->first = task;
    pool->last = task;
    pool->queued++;
    sfti_os_cond_wake(&pool->work);
}

bool sfti_pool_take_back(sfti_pool *pool, sfti_task *task) {
    sfti_task *before = NULL;
    if (!task->queued) return false;
    for (sfti_task *at = pool->first; at != task; at = at->next) before = at;
    if (before) before->next = task->next;
    else pool->first = task->next;
    if (pool->last == task) pool->last = before;
    task->queued = false;
    pool->queued--;
    return true;
}

/* ── Threads ── */

static void pool_thread_run(void *ctx) {
    sfti_pool_thread *thread = ctx;
    sfti_pool *pool = thread->pool;
    sfti_os_mutex_lock(&pool->mutex);
    pool->fresh--;
    /* What was put while the last wait ended counts on this thread, which was idle then. */
    for (unsigned waits = 0; !pool->closing && (pool->first || waits < POOL_WAITS);) {
        sfti_task *task = pool->first;
        if (task) {
            (void)sfti_pool_take_back(pool, task);
            sfti_os_mutex_unlock(&pool->mutex);
            task->run(task->ctx);
            sfti_os_mutex_lock(&pool->mutex);
            waits = 0;
            continue;
        }
        pool->idle++;
        sfti_os_cond_wait_for(&pool->work, &pool->mutex, POOL_WAIT_MS);
        pool->idle--;
        waits++;
    }
    pool->running--;
    thread->ended = true;
    sfti_os_mutex_unlock(&pool->mutex);
}

/* With the mutex held, a place for one more thread; NULL if none is needed, or none is free. */
static sfti_pool_thread *pool_next_thread(sfti_pool *pool) {
    if (pool->closing || pool->running >= pool->connections) return NULL;
    if (pool->queued <= (size_t)pool->idle + pool->fresh) return NULL;
    for (size_t i = 0; i < SFTI_CONNECTIONS_MOST; i++) {
        sfti_pool_thread *thread = &pool->threads[i];
        bool ended = thread->state == SFTI_THREAD_STARTED && thread->ended;
        if (ended || thread->state == SFTI_THREAD_NONE) return thread;
    }
    return NULL;
}

void sfti_pool_start(sfti_pool *pool) {
    sfti_pool_thread *thread;
    sfti_os_mutex_lock(&pool->mutex);
    while ((thread = pool_next_thread(pool))) {
        bool ended = thread->state == SFTI_THREAD_STARTED;
        thread->state = SFTI_THREAD_STARTS;
        thread->ended = false;
        thread->pool = pool;
        pool->running++;
        pool->fresh++;
        sfti_os_mutex_unlock(&pool->mutex);
        if (ended) sfti_os_thread_join(&thread->thread);
        int error = sfti_os_thread_start(&thread->thread, pool_thread_run, thread);
        sfti_os_mutex_lock(&pool->mutex);
        thread->state = error ? SFTI_THREAD_NONE : SFTI_THREAD_STARTED;
        if (!error) continue;
        pool->running--;
        pool->fresh--;
        break;
    }
    sfti_os_mutex_unlock(&pool->mutex);
}

/* ── Waits ── */

bool sfti_pool_wait(sfti_pool *pool) {
    sfti_os_cond_wait_for(&pool->done, &pool->mutex, POOL_WAIT_MS);
    sfti_os_mutex_unlock(&pool->mutex);
    bool over = sfti_wait_over(pool->wait);
    sfti_os_mutex_lock(&pool->mutex);
    return !over;
}

sft_code sfti_pool_connect(sfti_pool *pool, sft_error *err) {
    sft_code code = SFT_OK;
    sfti_os_mutex_lock(&pool->mutex);
    while (!code && pool->used >= pool->connections)
        if (!sfti_pool_wait(pool)) code = sfti_fail_cancelled(err);
    if (!code) pool->used++;
    sfti_os_mutex_unlock(&pool->mutex);
    return code;
}

void sfti_pool_disconnect(sfti_pool *pool) {
    sfti_os_mutex_lock(&pool->mutex);
    pool->used--;
    sfti_os_cond_wake(&pool->done);
    sfti_os_mutex_unlock(&pool->mutex);
}
