/* Threads, mutexes and conditions. */
#include "os/os_posix.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

typedef struct thread_start {
    pthread_t thread;
    void (*run)(void *ctx);
    void *ctx;
} thread_start;

static void *thread_main(void *at) {
    thread_start *start = at;
    start->run(start->ctx);
    return NULL;
}

int sfti_os_thread_start(os_thread *thread, void (*run)(void *ctx), void *ctx) {
    sigset_t all, old;
    thread->handle[0] = NULL;
    thread_start *start = malloc(sizeof *start);
    if (!start) return ENOMEM;
    start->run = run;
    start->ctx = ctx;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (!error) {
        error = pthread_attr_setstacksize(&attr, OS_THREAD_STACK);
        if (!error) error = pthread_create(&start->thread, &attr, thread_main, start);
        (void)pthread_attr_destroy(&attr);
        if (error == EINVAL) error = pthread_create(&start->thread, NULL, thread_main, start);
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error) {
        free(start);
        return error;
    }
    thread->handle[0] = start;
    return 0;
}

void sfti_os_thread_join(os_thread *thread) {
    thread_start *start = thread->handle[0];
    if (!start) return;
    (void)pthread_join(start->thread, NULL);
    free(start);
    thread->handle[0] = NULL;
}

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(os_mutex), "os_mutex holds it");

int sfti_os_mutex_init(os_mutex *mutex) {
    return pthread_mutex_init((pthread_mutex_t *)(void *)mutex, NULL);
}

void sfti_os_mutex_lock(os_mutex *mutex) {
    (void)pthread_mutex_lock((pthread_mutex_t *)(void *)mutex);
}

void sfti_os_mutex_unlock(os_mutex *mutex) {
    (void)pthread_mutex_unlock((pthread_mutex_t *)(void *)mutex);
}

void sfti_os_mutex_free(os_mutex *mutex) {
    (void)pthread_mutex_destroy((pthread_mutex_t *)(void *)mutex);
}

void sfti_os_once(bool *done, void (*run)(void)) {
    static pthread_mutex_t one_of_all = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&one_of_all);
    if (!*done) run();
    *done = true;
    (void)pthread_mutex_unlock(&one_of_all);
}

_Static_assert(sizeof(pthread_cond_t) <= sizeof(os_cond), "os_cond holds it");

void sfti_os_cond_wait(os_cond *cond, os_mutex *mutex) {
    (void)pthread_cond_wait((pthread_cond_t *)(void *)cond, (pthread_mutex_t *)(void *)mutex);
}

void sfti_os_cond_wake(os_cond *cond) {
    (void)pthread_cond_broadcast((pthread_cond_t *)(void *)cond);
}

void sfti_os_cond_free(os_cond *cond) {
    (void)pthread_cond_destroy((pthread_cond_t *)(void *)cond);
}
