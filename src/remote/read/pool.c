#include "remote/read/pool.h"

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
    if (os_mutex_init(&pool->mutex)) goto no_mutex;
    if (os_cond_init(&pool->work)) goto no_work;
    if (os_cond_init(&pool->done)) goto no_done;
    *out = pool;
    return SFT_OK;
no_done:
    os_cond_free(&pool->work);
no_work:
    os_mutex_free(&pool->mutex);
no_mutex:
    sfti_release(alloc, pool, sizeof *pool);
    return sfti_fail_memory(err, sizeof *pool);
}

void sfti_pool_free(sfti_pool *pool) {
    if (!pool) return;
    os_mutex_lock(&pool->mutex);
    pool->closing = true;
    os_cond_wake(&pool->work);
    os_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < SFTI_CONNECTIONS_MOST; i++)
        if (pool->threads[i].state != SFTI_THREAD_NONE) os_thread_join(&pool->threads[i].thread);
    os_cond_free(&pool->done);
    os_cond_free(&pool->work);
    os_mutex_free(&pool->mutex);
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
    os_cond_wake(&pool->work);
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
    os_mutex_lock(&pool->mutex);
    pool->fresh--;
    /* What was put while the last wait ended counts on this thread, which was idle then. */
    for (unsigned waits = 0; !pool->closing && (pool->first || waits < POOL_WAITS);) {
        sfti_task *task = pool->first;
        if (task) {
            (void)sfti_pool_take_back(pool, task);
            os_mutex_unlock(&pool->mutex);
            task->run(task->ctx);
            os_mutex_lock(&pool->mutex);
            waits = 0;
            continue;
        }
        pool->idle++;
        os_cond_wait_for(&pool->work, &pool->mutex, POOL_WAIT_MS);
        pool->idle--;
        waits++;
    }
    pool->running--;
    thread->ended = true;
    os_mutex_unlock(&pool->mutex);
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
    os_mutex_lock(&pool->mutex);
    while ((thread = pool_next_thread(pool))) {
        bool ended = thread->state == SFTI_THREAD_STARTED;
        thread->state = SFTI_THREAD_STARTS;
        thread->ended = false;
        thread->pool = pool;
        pool->running++;
        pool->fresh++;
        os_mutex_unlock(&pool->mutex);
        if (ended) os_thread_join(&thread->thread);
        int error = os_thread_start(&thread->thread, pool_thread_run, thread);
        os_mutex_lock(&pool->mutex);
        thread->state = error ? SFTI_THREAD_NONE : SFTI_THREAD_STARTED;
        if (!error) continue;
        pool->running--;
        pool->fresh--;
        break;
    }
    os_mutex_unlock(&pool->mutex);
}

/* ── Waits ── */

bool sfti_pool_wait(sfti_pool *pool) {
    os_cond_wait_for(&pool->done, &pool->mutex, POOL_WAIT_MS);
    os_mutex_unlock(&pool->mutex);
    bool over = os_wait_over();
    os_mutex_lock(&pool->mutex);
    return !over;
}

sft_code sfti_pool_connect(sfti_pool *pool, sft_error *err) {
    sft_code code = SFT_OK;
    os_mutex_lock(&pool->mutex);
    while (!code && pool->used >= pool->connections)
        if (!sfti_pool_wait(pool)) code = sfti_fail_cancelled(err);
    if (!code) pool->used++;
    os_mutex_unlock(&pool->mutex);
    return code;
}

void sfti_pool_disconnect(sfti_pool *pool) {
    os_mutex_lock(&pool->mutex);
    pool->used--;
    os_cond_wake(&pool->done);
    os_mutex_unlock(&pool->mutex);
}
