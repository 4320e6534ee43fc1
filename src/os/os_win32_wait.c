/* os.h on Windows: time, signals, and the calls that wait for others and end when one arrives. */
#include "os/os_win32.h"

#include <errno.h>
#include <string.h>

/* ── Time ── */

uint64_t os_now_ns(void) {
    LARGE_INTEGER now, hertz;
    (void)QueryPerformanceCounter(&now);
    (void)QueryPerformanceFrequency(&hertz);
    uint64_t t = (uint64_t)now.QuadPart, f = (uint64_t)hertz.QuadPart;
    return t / f * 1000000000u + t % f * 1000000000u / f;
}

uint64_t os_time_s(void) {
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

void os_watch_signals(void) {
    if (InterlockedExchange(&stop_watched, 1)) return;
    stop_event = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (stop_event) (void)SetConsoleCtrlHandler(remember_event, TRUE);
}

int os_stop_signal(void) {
    return (int)InterlockedCompareExchange(&stop_number, 0, 0);
}

/* What shells know as ended by Ctrl-C. */
void os_raise(int signal_number) {
    (void)signal_number;
    ExitProcess(0xC000013Au);
}

/* A write to a pipe that is closed is an error here, and no signal. */
void os_ignore_broken_pipe(void) {}

void os_sleep_ms(uint32_t ms) {
    if (stop_event) (void)WaitForSingleObject(stop_event, ms);
    else Sleep(ms);
}

/* ── Waiting ── */

#define WAIT_SLICE_MS 100

static SRWLOCK wait_lock = SRWLOCK_INIT;
static bool (*wait_go_on)(void *ctx);
static void *wait_ctx;

void os_on_wait(bool (*go_on)(void *ctx), void *ctx) {
    AcquireSRWLockExclusive(&wait_lock);
    wait_go_on = go_on;
    wait_ctx = ctx;
    ReleaseSRWLockExclusive(&wait_lock);
}

bool os_wait_over(void) {
    if (os_stop_signal()) return true;
    AcquireSRWLockExclusive(&wait_lock);
    bool (*go_on)(void *ctx) = wait_go_on;
    void *ctx = wait_ctx;
    ReleaseSRWLockExclusive(&wait_lock);
    return go_on && !go_on(ctx);
}

#define TRY_MOST_MS 20

bool os_wait_more(uint32_t *ms) {
    if (os_wait_over()) return false;
    *ms = *ms == 0 ? 1 : *ms < TRY_MOST_MS / 2 ? 2 * *ms : TRY_MOST_MS;
    os_sleep_ms(*ms);
    return !os_wait_over();
}

/* ── Streams ── */

static DWORD most_of_call(size_t len) {
    const size_t most = (size_t)1 << 30;
    return (DWORD)(len < most ? len : most);
}

static VOID CALLBACK end_read(PVOID thread, BOOLEAN fired) {
    (void)fired;
    (void)CancelSynchronousIo(thread);
}

/* A timer ends the call each slice, so that this thread looks whether to go on: what was not read
 * by then is still there. Before this returns the timer is gone, and ends no other call. */
static DWORD read_sliced(HANDLE handle, void *into, DWORD len, DWORD *count) {
    HANDLE thread, timer = NULL, process = GetCurrentProcess();
    if (!DuplicateHandle(process, GetCurrentThread(), process, &thread, 0, FALSE,
                         DUPLICATE_SAME_ACCESS))
        return GetLastError();
    (void)CreateTimerQueueTimer(&timer, NULL, end_read, thread, WAIT_SLICE_MS, WAIT_SLICE_MS,
                                WT_EXECUTEINTIMERTHREAD);
    DWORD code = ReadFile(handle, into, len, count, NULL) ? ERROR_SUCCESS : GetLastError();
    if (timer) (void)DeleteTimerQueueTimer(NULL, timer, INVALID_HANDLE_VALUE);
    (void)CloseHandle(thread);
    return code;
}

/* Of the C library's descriptors. What is there already is read without a timer. */
static int read_stream(HANDLE handle, void *into, DWORD len, size_t *got) {
    for (;;) {
        DWORD ready = 0, count = 0, code;
        if (os_wait_over()) return EINTR;
        bool pipe = GetFileType(handle) == FILE_TYPE_PIPE;
        bool there = !pipe || (PeekNamedPipe(handle, NULL, 0, NULL, &ready, NULL) && ready > 0);
        if (there) code = ReadFile(handle, into, len, &count, NULL) ? 0 : GetLastError();
        else code = read_sliced(handle, into, len, &count);
        *got = count;
        if (code == ERROR_SUCCESS || code == ERROR_HANDLE_EOF || code == ERROR_BROKEN_PIPE)
            return 0;
        if (code != ERROR_OPERATION_ABORTED) return win_errno(code);
    }
}

/* One of ours goes on by itself after the call. */
static DWORD wait_io(HANDLE handle, OVERLAPPED *o, DWORD *count) {
    bool over = false;
    while (!over && WaitForSingleObject(o->hEvent, WAIT_SLICE_MS) == WAIT_TIMEOUT)
        over = os_wait_over();
    if (over) (void)CancelIoEx(handle, o);
    return GetOverlappedResult(handle, o, count, TRUE) ? ERROR_SUCCESS : GetLastError();
}

static DWORD stream_call(win_file *file, void *bytes, DWORD len, bool writing, DWORD *count) {
    OVERLAPPED o = { .Offset = (DWORD)file->at, .OffsetHigh = (DWORD)(file->at >> 32),
                     .hEvent = win_event_take() };
    if (!o.hEvent) return ERROR_NOT_ENOUGH_MEMORY;
    BOOL ok = writing ? WriteFile(file->handle, bytes, len, count, &o)
                      : ReadFile(file->handle, bytes, len, count, &o);
    DWORD code = ok ? ERROR_SUCCESS : GetLastError();
    if (ok || code == ERROR_IO_PENDING) code = wait_io(file->handle, &o, count);
    win_event_give(o.hEvent);
    file->at += *count;
    return code;
}

int os_read(int fd, void *into, size_t len, size_t *got) {
    win_file *file = win_file_of(fd);
    DWORD count = 0;
    *got = 0;
    if (os_wait_over()) return EINTR;
    if (!file) return read_stream(win_handle(fd), into, most_of_call(len), got);
    if (file->folder) return EISDIR;
    DWORD code = stream_call(file, into, most_of_call(len), false, &count);
    *got = count;
    bool end = code == ERROR_HANDLE_EOF || code == ERROR_BROKEN_PIPE;
    return code == ERROR_SUCCESS || end ? 0 : win_errno(code);
}

int os_write(int fd, const void *from, size_t len, size_t *put) {
    win_file *file = win_file_of(fd);
    DWORD count = 0, code = ERROR_SUCCESS;
    void *bytes = (void *)(uintptr_t)from;
    *put = 0;
    if (file) code = stream_call(file, bytes, most_of_call(len), true, &count);
    else if (!WriteFile(win_handle(fd), bytes, most_of_call(len), &count, NULL))
        code = GetLastError();
    *put = count;
    if (code != ERROR_SUCCESS) return win_errno(code);
    return count == 0 && len > 0 ? ENOSPC : 0;
}
