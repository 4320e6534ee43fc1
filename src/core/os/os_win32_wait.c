/* os.h on Windows: time, signals, waiting and trying again. */
#include "os/os_win32.h"

/* ── Time ── */

uint64_t sfti_os_now_ns(void) {
    LARGE_INTEGER now, hertz;
    (void)QueryPerformanceCounter(&now);
    (void)QueryPerformanceFrequency(&hertz);
    uint64_t t = (uint64_t)now.QuadPart, f = (uint64_t)hertz.QuadPart;
    return t / f * 1000000000u + t % f * 1000000000u / f;
}

int32_t sfti_os_zone_s(uint64_t time_s) {
    (void)time_s; /* asked for by bins of files alone */
    return 0;
}

uint64_t sfti_os_time_s(void) {
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    uint64_t ticks = (uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime;
    return ticks / 10000000 - UINT64_C(11644473600);
}

/* ── Signals ── */

/* As POSIX numbers them: of Ctrl-C, and of a window, session or system that is closed. */
#define NUMBER_INT 2
#define NUMBER_HUP 1
#define NUMBER_TERM 15

static volatile LONG stop_number;
static volatile LONG stop_watched;
static HANDLE stop_event; /* set for good once one has come */

static BOOL WINAPI remember_event(DWORD event) {
    LONG number = event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT ? NUMBER_INT
                  : event == CTRL_CLOSE_EVENT                        ? NUMBER_HUP
                                                                     : NUMBER_TERM;
    (void)InterlockedExchange(&stop_number, number);
    (void)SetEvent(stop_event);
    /* After this returns the process is ended; the system gives it some seconds until then. */
    if (number != NUMBER_INT) Sleep(INFINITE);
    return TRUE;
}

void sfti_os_watch_signals(void) {
    if (InterlockedExchange(&stop_watched, 1)) return;
    stop_event = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (stop_event) (void)SetConsoleCtrlHandler(remember_event, TRUE);
}

int sfti_os_stop_signal(void) {
    return (int)InterlockedCompareExchange(&stop_number, 0, 0);
}

void sfti_os_sleep_ms(uint32_t ms) {
    if (stop_event) (void)WaitForSingleObject(stop_event, ms);
    else Sleep(ms);
}

/* ── Waiting ── */

static SRWLOCK wait_lock = SRWLOCK_INIT;
static bool (*wait_go_on)(void *ctx);
static void *wait_ctx;

void sfti_os_on_wait(bool (*go_on)(void *ctx), void *ctx) {
    AcquireSRWLockExclusive(&wait_lock);
    wait_go_on = go_on;
    wait_ctx = ctx;
    ReleaseSRWLockExclusive(&wait_lock);
}

/* Not _Thread_local, for which gcc needs a DLL of its own. */
static bool own_ready;
static DWORD own_slot;

static void make_own_slot(void) {
    own_slot = TlsAlloc();
}

/* The value of the slot; of a slot that there is not, NULL. */
static const sft_wait *wait_own(void) {
    DWORD error = GetLastError();
    sfti_os_once(&own_ready, make_own_slot);
    const sft_wait *own = TlsGetValue(own_slot);
    SetLastError(error);
    return own;
}

const sft_wait *sfti_os_wait_as(const sft_wait *wait) {
    const sft_wait *before = wait_own(), *next = wait && wait->go_on ? wait : NULL;
    if (next != before) (void)TlsSetValue(own_slot, (void *)(uintptr_t)next);
    return before;
}

bool sfti_os_wait_over(void) {
    const sft_wait *own = wait_own();
    if (sfti_os_stop_signal()) return true;
    if (own) return !own->go_on(own->ctx);
    AcquireSRWLockExclusive(&wait_lock);
    bool (*go_on)(void *ctx) = wait_go_on;
    void *ctx = wait_ctx;
    ReleaseSRWLockExclusive(&wait_lock);
    return go_on && !go_on(ctx);
}

#define TRY_MOST_MS 20

bool sfti_os_wait_more(uint32_t *ms) {
    if (sfti_os_wait_over()) return false;
    *ms = *ms == 0 ? 1 : *ms < TRY_MOST_MS / 2 ? 2 * *ms : TRY_MOST_MS;
    sfti_os_sleep_ms(*ms);
    return !sfti_os_wait_over();
}

/* ── Trying again ── */

#define RETRY_MOST_MS 64

static volatile LONG64 retry_count;

uint64_t sfti_os_win_retries(void) {
    return (uint64_t)InterlockedCompareExchange64(&retry_count, 0, 0);
}

bool sfti_os_win_try_again(os_win_retry *retry) {
    uint64_t now = sfti_os_now_ns();
    if (retry->until_ns == 0) retry->until_ns = now + (uint64_t)WIN_RETRY_MS * 1000000;
    if (now >= retry->until_ns) return false;
    retry->ms = retry->ms == 0 ? 1 : retry->ms < RETRY_MOST_MS ? 2 * retry->ms : RETRY_MOST_MS;
    retry->over = sfti_os_wait_over();
    if (retry->over) return false;
    sfti_os_sleep_ms(retry->ms);
    retry->over = sfti_os_wait_over();
    if (!retry->over) (void)InterlockedIncrement64(&retry_count);
    return !retry->over;
}
