#include_next <pthread.h>

#ifndef SHIM_PTHREAD
#define SHIM_PTHREAD

int pthread_cond_timedwait_relative_np(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                       const struct timespec *span);
/* macOS has no such call. */
#define pthread_condattr_setclock shim_has_no_condattr_setclock

#endif
