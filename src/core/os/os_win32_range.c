/* os.h on Windows: what only some file systems can, leases and locks. */
#include "os/os_win32.h"

#include <errno.h>
#include <string.h>

int sfti_os_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len,
                       uint64_t *done) {
    (void)from, (void)from_at, (void)to, (void)to_at, (void)len;
    *done = 0;
    return EOPNOTSUPP;
}

int sfti_os_gather(const void *map, const uint64_t *offsets, size_t count, size_t len, void *into,
                   size_t *got) {
    (void)map, (void)offsets, (void)count, (void)len, (void)into;
    *got = 0;
    return EOPNOTSUPP;
}

int sfti_os_insert_range(int fd, uint64_t at, uint64_t len) {
    (void)fd, (void)at, (void)len;
    return EOPNOTSUPP;
}

int sfti_os_collapse_range(int fd, uint64_t at, uint64_t len) {
    (void)fd, (void)at, (void)len;
    return EOPNOTSUPP;
}

/* ── Shared blocks ── */

/* As in <winioctl.h>, which older ones lack. ReFS can. */
#define DUPLICATE_EXTENTS 0x98344u
#define CLONE_AT_ONCE ((uint64_t)1 << 30)

typedef struct duplicate_extents {
    HANDLE from;
    LARGE_INTEGER from_at, to_at, len;
} duplicate_extents;

static uint64_t file_size(HANDLE handle) {
    FILE_STANDARD_INFO now;
    bool known = GetFileInformationByHandleEx(handle, FileStandardInfo, &now, sizeof now);
    return known ? (uint64_t)now.EndOfFile.QuadPart : 0;
}

static int clone_pieces(HANDLE from, uint64_t from_at, HANDLE to, uint64_t to_at, uint64_t len) {
    for (uint64_t done = 0; done < len; done += CLONE_AT_ONCE) {
        uint64_t piece = len - done < CLONE_AT_ONCE ? len - done : CLONE_AT_ONCE;
        duplicate_extents range = { .from = from,
                                    .from_at.QuadPart = (LONGLONG)(from_at + done),
                                    .to_at.QuadPart = (LONGLONG)(to_at + done),
                                    .len.QuadPart = (LONGLONG)piece };
        DWORD none;
        DWORD code =
            sfti_os_win_control(to, DUPLICATE_EXTENTS, &range, sizeof range, NULL, 0, &none);
        if (code != ERROR_SUCCESS)
            return code == ERROR_DISK_FULL || code == ERROR_IO_DEVICE ? sfti_os_win_errno(code)
                                                                      : EOPNOTSUPP;
    }
    return 0;
}

/* The target has its length first, and the last block of `from` goes over as a whole one. */
int sfti_os_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t len) {
    HANDLE source = sfti_os_win_handle(from), target = sfti_os_win_handle(to);
    FILE_END_OF_FILE_INFO end = { .EndOfFile.QuadPart = (LONGLONG)(to_at + len) };
    uint64_t size = file_size(target);
    os_info info;
    if (to_at > INT64_MAX - len || from_at > INT64_MAX - len) return EFBIG;
    if (sfti_os_win_info(source, &info) || info.block == 0) return EOPNOTSUPP;
    if (from_at % info.block || to_at % info.block) return EOPNOTSUPP;
    if (len % info.block && from_at + len != info.size) return EOPNOTSUPP;
    bool longer = size < to_at + len;
    if (longer && !SetFileInformationByHandle(target, FileEndOfFileInfo, &end, sizeof end))
        return sfti_os_win_last();
    uint64_t whole = (len + info.block - 1) / info.block * info.block;
    int error = clone_pieces(source, from_at, target, to_at, whole);
    if (!error || !longer) return error;
    end.EndOfFile.QuadPart = (LONGLONG)size;
    (void)SetFileInformationByHandle(target, FileEndOfFileInfo, &end, sizeof end);
    return error;
}

/* ── Holes ── */

/* Ranges that are there, in order, from `at` on: the first byte that none of them covers. */
int sfti_os_find_hole(int fd, uint64_t at, uint64_t *out) {
    HANDLE handle = sfti_os_win_handle(fd);
    FILE_ALLOCATED_RANGE_BUFFER ask, found[16];
    uint64_t size = file_size(handle);
    while (at < size) {
        DWORD bytes;
        ask.FileOffset.QuadPart = (LONGLONG)at;
        ask.Length.QuadPart = (LONGLONG)(size - at);
        DWORD code =
            sfti_os_win_control(handle, FSCTL_QUERY_ALLOCATED_RANGES, &ask, sizeof ask, found,
                                sizeof found, &bytes);
        if (code != ERROR_SUCCESS && code != ERROR_MORE_DATA)
            return sfti_os_win_is_unsupported(code) ? EOPNOTSUPP : sfti_os_win_errno(code);
        uint64_t before = at;
        for (size_t i = 0; i < bytes / sizeof *found; i++) {
            uint64_t begin = (uint64_t)found[i].FileOffset.QuadPart;
            if (begin > at) break;
            at = begin + (uint64_t)found[i].Length.QuadPart;
        }
        if (at == before || code == ERROR_SUCCESS) break;
    }
    *out = at < size ? at : size;
    return 0;
}

/* ── Leases and locks ── */

/* The system has nothing that makes others wait. What comes near it, to open a file and share it
 * with nobody, is refused while this process has it open itself, as a locked file is; and what a
 * lease is for, blocks put in between others, no file system here can do. */
int sfti_os_lease(int fd, bool hold) {
    (void)fd, (void)hold;
    return EOPNOTSUPP;
}

int sfti_os_lock(int fd) {
    os_win_file *file = sfti_os_win_file_of(fd);
    HANDLE handle = sfti_os_win_handle(fd);
    DWORD none;
    OVERLAPPED o = { .Offset = (DWORD)WIN_LOCK_AT, .OffsetHigh = (DWORD)(WIN_LOCK_AT >> 32),
                     .hEvent = sfti_os_win_event_take() };
    if (file && file->locked) {
        if (o.hEvent) sfti_os_win_event_give(o.hEvent);
        return 0;
    }
    if (!o.hEvent) return ENOMEM;
    BOOL ok = LockFileEx(handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &o);
    DWORD code = sfti_os_win_io_end(handle, &o, ok, &none);
    sfti_os_win_event_give(o.hEvent);
    if (file) file->locked = code == ERROR_SUCCESS;
    if (code == ERROR_SUCCESS) return 0;
    return code == ERROR_LOCK_VIOLATION || code == ERROR_IO_PENDING ? EAGAIN : EOPNOTSUPP;
}

void sfti_os_unlock(int fd) {
    os_win_file *file = sfti_os_win_file_of(fd);
    sfti_os_win_unlock(sfti_os_win_handle(fd));
    if (file) file->locked = false;
}

uint64_t sfti_os_process(void) {
    return GetCurrentProcessId();
}

/* ── Past the cache ── */

int sfti_os_set_direct(int fd, bool direct) {
    os_win_file *file = sfti_os_win_file_of(fd);
    if (!file || file->folder) return direct ? EOPNOTSUPP : 0;
    if (direct == (file->direct != NULL)) return 0;
    if (!direct) {
        (void)CloseHandle(file->direct);
        file->direct = NULL;
        return 0;
    }
    HANDLE past = ReOpenFile(file->handle, GENERIC_READ | GENERIC_WRITE, WIN_SHARE_ALL,
                             FILE_FLAG_NO_BUFFERING | FILE_FLAG_OVERLAPPED);
    if (past == INVALID_HANDLE_VALUE)
        return sfti_os_win_is_unsupported(GetLastError()) ? EOPNOTSUPP : sfti_os_win_last();
    file->direct = past;
    return 0;
}

int sfti_os_open_direct(int fd, int *out) {
    HANDLE handle = sfti_os_win_handle(fd);
    *out = -1;
    if (handle == INVALID_HANDLE_VALUE || GetFileType(handle) != FILE_TYPE_DISK)
        return EOPNOTSUPP;
    HANDLE past = ReOpenFile(handle, GENERIC_READ, WIN_SHARE_ALL,
                             FILE_FLAG_NO_BUFFERING | FILE_FLAG_OVERLAPPED);
    if (past == INVALID_HANDLE_VALUE)
        return sfti_os_win_is_unsupported(GetLastError()) ? EOPNOTSUPP : sfti_os_win_last();
    return sfti_os_win_fd_new(past, false, out);
}

/* The system does not tell. */
int sfti_os_cached(int fd, uint64_t offset, uint64_t len, uint64_t *bytes) {
    (void)fd, (void)offset, (void)len;
    *bytes = 0;
    return EOPNOTSUPP;
}

/* It asks for that when a file is opened, and for good. */
void sfti_os_read_apart(int fd, bool apart) {
    (void)fd, (void)apart;
}

void sfti_os_read_soon(int fd, uint64_t offset, uint64_t len) {
    (void)fd, (void)offset, (void)len;
}

/* The system writes back by itself, and has no hint for it. */
void sfti_os_write_back(int fd, uint64_t offset, uint64_t len) {
    (void)fd, (void)offset, (void)len;
}
