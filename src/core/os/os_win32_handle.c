/* What the files of os.h on Windows do with handles: descriptors, calls, links, deletion. */
#include "os/os_win32.h"

#include <errno.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

/* ── Descriptors ── */

#define TABLE_PART 256
#define TABLE_PARTS 256

/* A part never moves: who has a descriptor looks at it without the lock. */
static SRWLOCK table_lock = SRWLOCK_INIT;
static os_win_file *fd_table[TABLE_PARTS];
static size_t table_first; /* all before it are taken */

int sfti_os_win_fd_new(HANDLE handle, bool folder, int *fd) {
    int error = EMFILE;
    *fd = -1;
    AcquireSRWLockExclusive(&table_lock);
    for (size_t i = table_first; *fd < 0 && i < (size_t)TABLE_PART * TABLE_PARTS; i++) {
        os_win_file **part = &fd_table[i / TABLE_PART];
        if (!*part) *part = calloc(TABLE_PART, sizeof **part);
        error = *part ? EMFILE : ENOMEM;
        if (!*part) break;
        os_win_file *file = &(*part)[i % TABLE_PART];
        if (file->handle) continue;
        *file = (os_win_file){ .handle = handle, .folder = folder };
        table_first = i + 1;
        *fd = WIN_FIRST_FD + (int)i;
    }
    ReleaseSRWLockExclusive(&table_lock);
    if (*fd >= 0) return 0;
    (void)CloseHandle(handle);
    return error;
}

os_win_file *sfti_os_win_file_of(int fd) {
    size_t i = (size_t)fd - WIN_FIRST_FD;
    if (fd < WIN_FIRST_FD || i >= (size_t)TABLE_PART * TABLE_PARTS) return NULL;
    os_win_file *part = fd_table[i / TABLE_PART];
    return part && part[i % TABLE_PART].handle ? &part[i % TABLE_PART] : NULL;
}

/* The Universal C Runtime ends a program that passes what is no descriptor, unless its thread has
 * said otherwise. */
#ifdef _UCRT
_invalid_parameter_handler __cdecl _set_thread_local_invalid_parameter_handler(
    _invalid_parameter_handler handler);

static void __cdecl pass_by(const wchar_t *what, const wchar_t *function, const wchar_t *file,
                            unsigned line, uintptr_t unused) {
    (void)what, (void)function, (void)file, (void)line, (void)unused;
}

static intptr_t crt_handle(int fd) {
    _invalid_parameter_handler before = _set_thread_local_invalid_parameter_handler(pass_by);
    intptr_t handle = _get_osfhandle(fd);
    (void)_set_thread_local_invalid_parameter_handler(before);
    return handle;
}
#else
static intptr_t crt_handle(int fd) {
    return _get_osfhandle(fd);
}
#endif

HANDLE sfti_os_win_handle(int fd) {
    const os_win_file *file = sfti_os_win_file_of(fd);
    if (file) return file->handle;
    if (fd < 0 || fd >= WIN_FIRST_FD) return INVALID_HANDLE_VALUE;
    intptr_t handle = crt_handle(fd);
    return handle == -2 ? INVALID_HANDLE_VALUE : (HANDLE)handle; /* -2: a program without streams */
}

void sfti_os_win_unlock(HANDLE handle) {
    OVERLAPPED o = { .Offset = (DWORD)WIN_LOCK_AT, .OffsetHigh = (DWORD)(WIN_LOCK_AT >> 32) };
    (void)UnlockFileEx(handle, 0, 1, 0, &o);
}

int sfti_os_close(int fd) {
    os_win_file *file = sfti_os_win_file_of(fd);
    if (!file) return sfti_os_win_handle(fd) != INVALID_HANDLE_VALUE && _close(fd) == 0 ? 0 : EBADF;
    os_win_file own = *file;
    if (own.locked) sfti_os_win_unlock(own.handle);
    AcquireSRWLockExclusive(&table_lock);
    memset(file, 0, sizeof *file);
    if ((size_t)fd - WIN_FIRST_FD < table_first) table_first = (size_t)fd - WIN_FIRST_FD;
    ReleaseSRWLockExclusive(&table_lock);
    if (own.direct) (void)CloseHandle(own.direct);
    return CloseHandle(own.handle) ? 0 : sfti_os_win_last();
}

/* ── Calls that may go on after they return ── */

#define EVENTS 16

static PVOID volatile events[EVENTS];

HANDLE sfti_os_win_event_take(void) {
    for (size_t i = 0; i < EVENTS; i++) {
        HANDLE event = events[i] ? InterlockedExchangePointer(&events[i], NULL) : NULL;
        if (event) return event;
    }
    return CreateEventW(NULL, TRUE, FALSE, NULL);
}

void sfti_os_win_event_give(HANDLE event) {
    for (size_t i = 0; i < EVENTS; i++)
        if (!InterlockedCompareExchangePointer(&events[i], event, NULL)) return;
    (void)CloseHandle(event);
}

DWORD sfti_os_win_io_end(HANDLE handle, OVERLAPPED *o, BOOL ok, DWORD *count) {
    if (!ok && GetLastError() != ERROR_IO_PENDING) return GetLastError();
    return GetOverlappedResult(handle, o, count, TRUE) ? ERROR_SUCCESS : GetLastError();
}

DWORD sfti_os_win_control(HANDLE handle, DWORD code, const void *in, DWORD in_len, void *out,
                  DWORD out_len, DWORD *count) {
    OVERLAPPED o = { .hEvent = sfti_os_win_event_take() };
    *count = 0;
    if (!o.hEvent) return ERROR_NOT_ENOUGH_MEMORY;
    BOOL ok = DeviceIoControl(handle, code, (void *)(uintptr_t)in, in_len, out, out_len, count,
                              &o);
    DWORD error = sfti_os_win_io_end(handle, &o, ok, count);
    sfti_os_win_event_give(o.hEvent);
    return error;
}

/* ── Bytes at an offset ── */

static DWORD transfer_once(HANDLE handle, bool put, void *bytes, DWORD len, uint64_t offset,
                           DWORD *count) {
    OVERLAPPED o = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32),
                     .hEvent = sfti_os_win_event_take() };
    *count = 0;
    if (!o.hEvent) return ERROR_NOT_ENOUGH_MEMORY;
    BOOL ok = put ? WriteFile(handle, bytes, len, count, &o)
                  : ReadFile(handle, bytes, len, count, &o);
    DWORD code = sfti_os_win_io_end(handle, &o, ok, count);
    sfti_os_win_event_give(o.hEvent);
    return code;
}

int sfti_os_win_transfer(int fd, bool put, void *bytes, size_t len, uint64_t offset, size_t *done) {
    const size_t most = (size_t)1 << 30;
    const os_win_file *file = sfti_os_win_file_of(fd);
    HANDLE handle = file && file->direct ? file->direct : sfti_os_win_handle(fd);
    os_win_retry retry = { 0 };
    *done = 0;
    if (len > most) len = most;
    if (offset > (uint64_t)INT64_MAX - len) return put ? EFBIG : EOVERFLOW;
    for (;;) {
        DWORD count;
        DWORD code = transfer_once(handle, put, bytes, (DWORD)len, offset, &count);
        *done = count;
        if (code == ERROR_SUCCESS || (code == ERROR_HANDLE_EOF && !put)) return 0;
        if (code != ERROR_LOCK_VIOLATION) return sfti_os_win_errno(code);
        if (!sfti_os_win_try_again(&retry)) return retry.over ? EINTR : sfti_os_win_errno(code);
    }
}

/* ── Opening ── */

bool sfti_os_win_is_denied_a_while(DWORD access, DWORD attributes) {
    const DWORD never = FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_READONLY;
    return (access & (GENERIC_WRITE | DELETE)) && !(attributes & never);
}

int sfti_os_win_open_path(const wchar_t *path, const os_win_open *how, HANDLE *out) {
    os_win_retry retry = { 0 };
    for (;;) {
        *out = CreateFileW(path, how->access, how->share, NULL, how->creation,
                           how->flags | how->attributes, NULL);
        if (*out != INVALID_HANDLE_VALUE) return 0;
        DWORD code = GetLastError();
        bool denied = code == ERROR_ACCESS_DENIED;
        bool dying = denied && RtlGetLastNtStatus() == WIN_STATUS_DELETED;
        if (dying && how->creation == OPEN_EXISTING) return ENOENT;
        bool passes = dying || sfti_os_win_is_held(code);
        if (denied && !dying) /* what is not there has all attributes */
            passes = sfti_os_win_is_denied_a_while(how->access, GetFileAttributesW(path));
        if (!passes) return sfti_os_win_errno(code);
        if (!sfti_os_win_try_again(&retry))
            return retry.over ? EINTR : dying ? EBUSY : sfti_os_win_errno(code);
    }
}

DWORD sfti_os_win_tag(HANDLE handle) {
    FILE_ATTRIBUTE_TAG_INFO tag;
    if (!GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag)) return 0;
    return tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT ? tag.ReparseTag : 0;
}

/* Those that stand for another name: symbolic links, junctions. A file that is kept elsewhere (in
 * a cloud, compressed) is a file. */
bool sfti_os_win_tag_is_link(DWORD tag) {
    return (tag & 0x20000000u) != 0;
}

bool sfti_os_win_is_folder(HANDLE handle) {
    FILE_BASIC_INFO basic;
    return GetFileInformationByHandleEx(handle, FileBasicInfo, &basic, sizeof basic) &&
           (basic.FileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

int sfti_os_win_open_through(const os_win_open *how, HANDLE *handle) {
    const DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OVERLAPPED;
    if (sfti_os_win_tag(*handle) == 0) return 0;
    HANDLE whole = ReOpenFile(*handle, how->access, how->share, flags);
    if (whole == INVALID_HANDLE_VALUE) return sfti_os_win_last();
    (void)CloseHandle(*handle);
    *handle = whole;
    return 0;
}

/* ── Links ── */

/* As in <ntifs.h>, which comes with no compiler for programs. */
typedef struct reparse_data {
    ULONG tag;
    USHORT len, unused;
    USHORT to_at, to_len, shown_at, shown_len; /* in bytes, from text on */
    union {
        struct {
            ULONG relative;
            wchar_t text[1];
        } symlink;
        wchar_t junction[1];
    } at;
} reparse_data;

static int link_target(const reparse_data *data, size_t bytes, char *out, size_t cap) {
    bool symlink = data->tag == IO_REPARSE_TAG_SYMLINK;
    if (!symlink && data->tag != IO_REPARSE_TAG_MOUNT_POINT) return EOPNOTSUPP;
    const char *text = symlink ? (const char *)data->at.symlink.text
                               : (const char *)data->at.junction;
    size_t at = data->to_at, len = data->to_len, before = (size_t)(text - (const char *)data);
    if (bytes < before || at > bytes - before || len > bytes - before - at || at % 2) return EIO;
    const wchar_t *wide = (const wchar_t *)(const void *)(text + at);
    size_t count = len / sizeof *wide;
    if (count >= 4 && wcsncmp(wide, L"\\??\\", 4) == 0) {
        wchar_t *path = malloc(count * sizeof *path);
        if (!path) return ENOMEM;
        memcpy(path, wide, count * sizeof *path);
        path[1] = L'\\';
        int error = sfti_os_win_path_text(path, count, out, cap);
        free(path);
        return error;
    }
    return sfti_os_win_path_text(wide, count, out, cap);
}

int sfti_os_win_link_text(HANDLE handle, char *out, size_t cap) {
    DWORD got;
    reparse_data *data = malloc(MAXIMUM_REPARSE_DATA_BUFFER_SIZE);
    if (!data) return ENOMEM;
    DWORD code = sfti_os_win_control(handle, FSCTL_GET_REPARSE_POINT, NULL, 0, data,
                             MAXIMUM_REPARSE_DATA_BUFFER_SIZE, &got);
    int error = EINVAL;
    if (code != ERROR_SUCCESS)
        error = sfti_os_win_is_unsupported(code) ? EINVAL : sfti_os_win_errno(code);
    else if (sfti_os_win_tag_is_link(data->tag)) error = link_target(data, got, out, cap);
    free(data);
    return error;
}
