/* os.h on Windows: reading and writing streams, which wait for others and end when a signal
 * comes. */
#include "os/os_win32.h"

#include <errno.h>

#define WAIT_SLICE_MS 100

static DWORD most_of_call(size_t len) {
    const size_t most = (size_t)1 << 30;
    return (DWORD)(len < most ? len : most);
}

/* When Ctrl-C ends a read of a console, that succeeds without bytes, as the end of a file does. */
static DWORD read_once(HANDLE handle, void *into, DWORD len, DWORD *count) {
    SetLastError(ERROR_SUCCESS);
    bool ok = ReadFile(handle, into, len, count, NULL);
    DWORD code = GetLastError();
    return ok && (*count > 0 || code != ERROR_OPERATION_ABORTED) ? ERROR_SUCCESS : code;
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
    DWORD code = read_once(handle, into, len, count);
    if (timer) (void)DeleteTimerQueueTimer(NULL, timer, INVALID_HANDLE_VALUE);
    (void)CloseHandle(thread);
    return code;
}

/* Reads a descriptor of the C library. What is there already is read without a timer. */
static int read_stream(HANDLE handle, void *into, DWORD len, size_t *got) {
    for (;;) {
        DWORD ready = 0, count = 0, code;
        if (sfti_os_wait_over()) return EINTR;
        bool pipe = GetFileType(handle) == FILE_TYPE_PIPE;
        bool there = !pipe || (PeekNamedPipe(handle, NULL, 0, NULL, &ready, NULL) && ready > 0);
        code = there ? read_once(handle, into, len, &count)
                     : read_sliced(handle, into, len, &count);
        *got = count;
        if (code == ERROR_SUCCESS || code == ERROR_HANDLE_EOF || code == ERROR_BROKEN_PIPE)
            return 0;
        if (code != ERROR_OPERATION_ABORTED) return sfti_os_win_errno(code);
        /* Ctrl-C ends a read of a console before the thread that is told of it has run. */
        if (!pipe) sfti_os_sleep_ms(WAIT_SLICE_MS);
    }
}

static DWORD stream_call(os_win_file *file, void *bytes, DWORD len, bool writing, DWORD *count) {
    OVERLAPPED o = { .Offset = (DWORD)file->at, .OffsetHigh = (DWORD)(file->at >> 32),
                     .hEvent = sfti_os_win_event_take() };
    if (!o.hEvent) return ERROR_NOT_ENOUGH_MEMORY;
    BOOL ok = writing ? WriteFile(file->handle, bytes, len, count, &o)
                      : ReadFile(file->handle, bytes, len, count, &o);
    DWORD code = ok ? ERROR_SUCCESS : GetLastError();
    if (ok || code == ERROR_IO_PENDING) {
        /* One of ours goes on by itself after the call. */
        bool over = false;
        while (!over && WaitForSingleObject(o.hEvent, WAIT_SLICE_MS) == WAIT_TIMEOUT)
            over = sfti_os_wait_over();
        if (over) (void)CancelIoEx(file->handle, &o);
        bool done = GetOverlappedResult(file->handle, &o, count, TRUE);
        code = done ? ERROR_SUCCESS : GetLastError();
    }
    sfti_os_win_event_give(o.hEvent);
    file->at += *count;
    return code;
}

int sfti_os_read(int fd, void *into, size_t len, size_t *got) {
    os_win_file *file = sfti_os_win_file_of(fd);
    DWORD count = 0;
    *got = 0;
    if (sfti_os_wait_over()) return EINTR;
    if (!file) return read_stream(sfti_os_win_handle(fd), into, most_of_call(len), got);
    if (file->folder) return EISDIR;
    DWORD code = stream_call(file, into, most_of_call(len), false, &count);
    *got = count;
    bool end = code == ERROR_HANDLE_EOF || code == ERROR_BROKEN_PIPE;
    return code == ERROR_SUCCESS || end ? 0 : sfti_os_win_errno(code);
}

int sfti_os_write(int fd, const void *from, size_t len, size_t *put) {
    os_win_file *file = sfti_os_win_file_of(fd);
    DWORD count = 0, code = ERROR_SUCCESS;
    void *bytes = (void *)(uintptr_t)from;
    *put = 0;
    if (file) code = stream_call(file, bytes, most_of_call(len), true, &count);
    else if (!WriteFile(sfti_os_win_handle(fd), bytes, most_of_call(len), &count, NULL))
        code = GetLastError();
    *put = count;
    if (code != ERROR_SUCCESS) return sfti_os_win_errno(code);
    return count == 0 && len > 0 ? ENOSPC : 0;
}

/* ── Appending ── */

#define QUERY_POSITION 14
#define QUERY_ACCESS 8

/* Opened for that, or standing behind its first byte, as a shell's ">>" leaves it. */
bool sfti_os_is_append(int fd) {
    IO_STATUS_BLOCK io;
    ACCESS_MASK access = 0;
    LARGE_INTEGER at = { .QuadPart = 0 };
    HANDLE handle = sfti_os_win_handle(fd);
    NTSTATUS status = NtQueryInformationFile(handle, &io, &access, sizeof access,
                                             (FILE_INFORMATION_CLASS)QUERY_ACCESS);
    if (status >= 0 && (access & FILE_APPEND_DATA) && !(access & FILE_WRITE_DATA)) return true;
    if (sfti_os_win_file_of(fd)) return false;
    status = NtQueryInformationFile(handle, &io, &at, sizeof at,
                                    (FILE_INFORMATION_CLASS)QUERY_POSITION);
    return status >= 0 && at.QuadPart > 0;
}
