/* os.h on Windows: writing, names that come and go. */
#include "os/os_win32.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ── Opening ── */

int os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
    (void)folder, (void)mode;
    *fd = -1;
    return EOPNOTSUPP;
}

int os_link_unnamed(int fd, const char *path) {
    (void)fd, (void)path;
    return EOPNOTSUPP;
}

int os_open_new(const char *path, uint32_t mode, int *fd) {
    os_win_open how = { GENERIC_READ | GENERIC_WRITE, WIN_SHARE_ALL, CREATE_NEW,
                     FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_OVERLAPPED,
                     mode & 0200 ? FILE_ATTRIBUTE_NORMAL : FILE_ATTRIBUTE_READONLY };
    wchar_t *wide;
    HANDLE handle;
    *fd = -1;
    int error = os_win_path(path, &wide);
    if (error) return error;
    error = os_win_open_path(wide, &how, &handle);
    /* A folder of that name is access denied. */
    if (error == EACCES && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES) error = EEXIST;
    free(wide);
    return error ? error : os_win_fd_new(handle, false, fd);
}

/* ── Bytes ── */

int os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put) {
    int error = os_win_transfer(fd, true, (void *)(uintptr_t)from, len, offset, put);
    return !error && *put == 0 && len > 0 ? ENOSPC : error;
}

static int set_end(HANDLE handle, uint64_t len) {
    FILE_END_OF_FILE_INFO end = { .EndOfFile.QuadPart = (LONGLONG)len };
    if (SetFileInformationByHandle(handle, FileEndOfFileInfo, &end, sizeof end)) return 0;
    return os_win_last();
}

/* Space that is allocated is not written: a write far behind all others fills what is between with
 * zeros, within that call. */
int os_preallocate(int fd, uint64_t len) {
    HANDLE handle = os_win_handle(fd);
    FILE_ALLOCATION_INFO space = { .AllocationSize.QuadPart = (LONGLONG)len };
    FILE_STANDARD_INFO now;
    if (len == 0) return 0;
    if (len > INT64_MAX) return EFBIG;
    if (!GetFileInformationByHandleEx(handle, FileStandardInfo, &now, sizeof now))
        return os_win_last();
    if ((uint64_t)now.EndOfFile.QuadPart >= len) return 0;
    if (!SetFileInformationByHandle(handle, FileAllocationInfo, &space, sizeof space))
        return os_win_is_unsupported(GetLastError()) ? EOPNOTSUPP : os_win_last();
    return set_end(handle, len);
}

int os_truncate(int fd, uint64_t len) {
    return len > INT64_MAX ? EFBIG : set_end(os_win_handle(fd), len);
}

/* ── Attributes ── */

static int set_basic(HANDLE handle, const FILE_BASIC_INFO *basic) {
    FILE_BASIC_INFO own = *basic; /* what is 0 stays */
    return SetFileInformationByHandle(handle, FileBasicInfo, &own, sizeof own) ? 0 : os_win_last();
}

int os_set_mode(int fd, uint32_t mode) {
    HANDLE handle = os_win_handle(fd);
    FILE_BASIC_INFO now, basic = { .FileAttributes = 0 };
    if (!GetFileInformationByHandleEx(handle, FileBasicInfo, &now, sizeof now))
        return os_win_last();
    DWORD wanted = now.FileAttributes & ~(DWORD)FILE_ATTRIBUTE_READONLY;
    if (!(mode & 0222)) wanted |= FILE_ATTRIBUTE_READONLY;
    if (wanted == now.FileAttributes) return 0;
    basic.FileAttributes = wanted ? wanted : FILE_ATTRIBUTE_NORMAL;
    return set_basic(handle, &basic);
}

int os_set_mtime(int fd, int64_t mtime_ns) {
    int64_t ticks = mtime_ns / 100 - (mtime_ns % 100 < 0);
    FILE_BASIC_INFO basic = { .LastWriteTime.QuadPart = ticks + INT64_C(116444736000000000) };
    if (basic.LastWriteTime.QuadPart <= 0) return EINVAL;
    return set_basic(os_win_handle(fd), &basic);
}

/* ── To the disk ── */

int os_sync(int fd) {
    const os_win_file *file = os_win_file_of(fd);
    if (FlushFileBuffers(os_win_handle(fd))) return 0;
    DWORD code = GetLastError();
    bool refused = code == ERROR_ACCESS_DENIED || os_win_is_unsupported(code);
    bool none = file && file->folder && refused;
    return none ? EOPNOTSUPP : os_win_errno(code);
}

/* A folder is flushed by who may write to it. */
int os_open_folder(const char *folder, int *fd) {
    os_win_open how = { GENERIC_WRITE, WIN_SHARE_ALL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS,
                        0 };
    FILE_BASIC_INFO basic;
    wchar_t *wide;
    HANDLE handle;
    *fd = -1;
    int error = os_win_path(folder, &wide);
    if (error) return error;
    error = os_win_open_path(wide, &how, &handle);
    how.access = WIN_READ_INFO;
    if (error == EACCES) error = os_win_open_path(wide, &how, &handle);
    free(wide);
    if (error) return error;
    if (GetFileInformationByHandleEx(handle, FileBasicInfo, &basic, sizeof basic) &&
        (basic.FileAttributes & FILE_ATTRIBUTE_DIRECTORY))
        return os_win_fd_new(handle, true, fd);
    (void)CloseHandle(handle);
    return ENOTDIR;
}

int os_sync_folder(const char *folder) {
    int fd;
    int error = os_open_folder(folder, &fd);
    if (error) return error;
    error = os_sync(fd);
    (void)os_close(fd);
    return error;
}

int os_make_folder(const char *path, uint32_t mode) {
    wchar_t *wide;
    (void)mode;
    int error = os_win_path(path, &wide);
    if (error) return error;
    if (!CreateDirectoryW(wide, NULL)) error = os_win_last();
    free(wide);
    return error;
}

/* ── Names that go ── */

static int remove_name(const char *path, bool folder) {
    os_win_open how = { DELETE | FILE_WRITE_ATTRIBUTES | WIN_READ_INFO, WIN_SHARE_ALL,
                        OPEN_EXISTING,
                        FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, 0 };
    wchar_t *wide;
    HANDLE handle;
    int error = os_win_path(path, &wide);
    if (error) return error;
    error = os_win_open_path(wide, &how, &handle);
    free(wide);
    if (error) return error;
    bool link = os_win_tag_is_link(os_win_tag(handle));
    bool is_folder = !link && os_win_is_folder(handle);
    if (folder != is_folder) error = folder ? ENOTDIR : EISDIR;
    if (!error) error = folder ? os_win_delete(handle) : os_win_unlink(handle);
    (void)CloseHandle(handle);
    return error;
}

int os_unlink(const char *path) {
    return remove_name(path, false);
}

int os_remove_folder(const char *path) {
    return remove_name(path, true);
}
