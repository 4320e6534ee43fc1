/* os.h on Windows: threads, mutexes and conditions. */
#include "os/os_win32.h"

#include <errno.h>
#include <process.h>
#include <stdlib.h>

typedef struct thread_start {
    HANDLE thread;
    void (*run)(void *ctx);
    void *ctx;
} thread_start;

static unsigned __stdcall thread_main(void *at) {
    thread_start *start = at;
    start->run(start->ctx);
    return 0;
}

int sfti_os_thread_start(os_thread *thread, void (*run)(void *ctx), void *ctx) {
    thread->handle[0] = NULL;
    thread_start *start = malloc(sizeof *start);
    if (!start) return ENOMEM;
    start->run = run;
    start->ctx = ctx;
    start->thread = (HANDLE)_beginthreadex(NULL, (unsigned)OS_THREAD_STACK, thread_main, start,
                                           STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (!start->thread) {
        free(start);
        return EAGAIN;
    }
    thread->handle[0] = start;
    return 0;
}

void sfti_os_thread_join(os_thread *thread) {
    thread_start *start = thread->handle[0];
    if (!start) return;
    (void)WaitForSingleObject(start->thread, INFINITE);
    (void)CloseHandle(start->thread);
    free(start);
    thread->handle[0] = NULL;
}

_Static_assert(sizeof(SRWLOCK) <= sizeof(os_mutex), "os_mutex holds it");

static SRWLOCK *lock_of(os_mutex *mutex) {
    return (SRWLOCK *)(void *)mutex;
}

int sfti_os_mutex_init(os_mutex *mutex) {
    InitializeSRWLock(lock_of(mutex));
    return 0;
}

void sfti_os_mutex_lock(os_mutex *mutex) {
    AcquireSRWLockExclusive(lock_of(mutex));
}

void sfti_os_mutex_unlock(os_mutex *mutex) {
    ReleaseSRWLockExclusive(lock_of(mutex));
}

void sfti_os_mutex_free(os_mutex *mutex) {
    (void)mutex;
}

void sfti_os_once(bool *done, void (*run)(void)) {
    static SRWLOCK one_of_all = SRWLOCK_INIT;
    AcquireSRWLockExclusive(&one_of_all);
    if (!*done) run();
    *done = true;
    ReleaseSRWLockExclusive(&one_of_all);
}

_Static_assert(sizeof(CONDITION_VARIABLE) <= sizeof(os_cond), "os_cond holds it");

static CONDITION_VARIABLE *variable_of(os_cond *cond) {
    return (CONDITION_VARIABLE *)(void *)cond;
}

int sfti_os_cond_init(os_cond *cond) {
    InitializeConditionVariable(variable_of(cond));
    return 0;
}

void sfti_os_cond_wait(os_cond *cond, os_mutex *mutex) {
    (void)SleepConditionVariableSRW(variable_of(cond), lock_of(mutex), INFINITE, 0);
}

void sfti_os_cond_wait_for(os_cond *cond, os_mutex *mutex, uint32_t ms) {
    (void)SleepConditionVariableSRW(variable_of(cond), lock_of(mutex), ms, 0);
}

void sfti_os_cond_wake(os_cond *cond) {
    WakeAllConditionVariable(variable_of(cond));
}

void sfti_os_cond_free(os_cond *cond) {
    (void)cond;
}
