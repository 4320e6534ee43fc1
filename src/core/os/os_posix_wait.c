/* Signals, and the calls that wait for others and end when one of ours arrives. */
#include "os/os_posix.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* ── Signals ── */

static atomic_int stop_signal_seen; /* lock-free: a handler writes it, threads read it */

static void remember_signal(int signal_number) {
    stop_signal_seen = signal_number;
}

void sfti_os_watch_signals(void) {
    static const int watched[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction act, old;
    memset(&act, 0, sizeof act);
    act.sa_handler = remember_signal;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        /* What was ignored by whoever started us (nohup) stays ignored. */
        if (sigaction(watched[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue;
        (void)sigaction(watched[i], &act, NULL);
    }
    /* A broken pipe and a file over the size limit are an errno and no signal. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

int sfti_os_stop_signal(void) {
    return stop_signal_seen;
}

void sfti_os_raise(int signal_number) {
    sigset_t set;
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void sfti_os_sleep_ms(uint32_t ms) {
    struct timespec span = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    (void)nanosleep(&span, NULL);
}

/* ── Waiting ── */

#define WAIT_SLICE_MS 100

/* Threads of the library's own ask while a program sets another callback. */
static pthread_mutex_t wait_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool (*wait_go_on)(void *ctx);
static void *wait_ctx;

void sfti_os_on_wait(bool (*go_on)(void *ctx), void *ctx) {
    (void)pthread_mutex_lock(&wait_mutex);
    wait_go_on = go_on;
    wait_ctx = ctx;
    (void)pthread_mutex_unlock(&wait_mutex);
}

static _Thread_local const sft_wait *wait_own;

const sft_wait *sfti_os_wait_as(const sft_wait *wait) {
    const sft_wait *before = wait_own;
    wait_own = wait && wait->go_on ? wait : NULL;
    return before;
}

bool sfti_os_wait_over(void) {
    if (stop_signal_seen) return true;
    if (wait_own) return !wait_own->go_on(wait_own->ctx);
    (void)pthread_mutex_lock(&wait_mutex);
    bool (*go_on)(void *ctx) = wait_go_on;
    void *ctx = wait_ctx;
    (void)pthread_mutex_unlock(&wait_mutex);
    return go_on && !go_on(ctx);
}

#define TRY_MOST_MS 20

bool sfti_os_wait_more(uint32_t *ms) {
    if (sfti_os_wait_over()) return false;
    *ms = *ms == 0 ? 1 : *ms < TRY_MOST_MS / 2 ? 2 * *ms : TRY_MOST_MS;
    sfti_os_sleep_ms(*ms);
    return !sfti_os_wait_over();
}

/* Sleep until fd is ready. Before a read it also waits for the first writer of a FIFO,
 * which read itself would take for the end. In slices: a signal that comes between the test
 * and the sleep, or that another thread takes, is seen at the end of one at the latest. */
static int wait_ready(int fd, short events) {
    struct pollfd wait = { fd, events, 0 };
    if (stop_signal_seen) return EINTR;
    for (;;) {
        int ready = poll(&wait, 1, WAIT_SLICE_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR)) return 0;
        if (sfti_os_wait_over()) return EINTR;
    }
}

int sfti_os_read(int fd, void *into, size_t len, size_t *got) {
    *got = 0;
    if (len > SFTI_POSIX_AT_ONCE) len = SFTI_POSIX_AT_ONCE;
    for (;;) {
        int error = wait_ready(fd, POLLIN);
        if (error) return error;
        ssize_t n = read(fd, into, len);
        if (n >= 0) {
            *got = (size_t)n;
            return 0;
        }
        error = errno;
        if (error != EAGAIN && error != EINTR) return error;
        if (error == EINTR && sfti_os_wait_over()) return EINTR;
    }
}

int sfti_os_write(int fd, const void *from, size_t len, size_t *put) {
    *put = 0;
    if (len > SFTI_POSIX_AT_ONCE) len = SFTI_POSIX_AT_ONCE;
    for (;;) {
        ssize_t n = write(fd, from, len);
        if (n >= 0) {
            *put = (size_t)n;
            return n == 0 && len > 0 ? ENOSPC : 0;
        }
        int error = errno;
        if (error == EAGAIN) {
            error = wait_ready(fd, POLLOUT);
            if (error) return error;
        } else if (error != EINTR || stop_signal_seen) {
            return error;
        }
    }
}
