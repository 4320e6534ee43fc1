/* os.h on Windows: writing, names that come and go. */
#include "os/os_win32.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ── Opening ── */

int sfti_os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
    (void)folder, (void)mode;
    *fd = -1;
    return EOPNOTSUPP;
}

int sfti_os_link_unnamed(int fd, const char *path) {
    (void)fd, (void)path;
    return EOPNOTSUPP;
}

int sfti_os_open_new(const char *path, uint32_t mode, int *fd) {
    os_win_open how = { GENERIC_READ | GENERIC_WRITE, WIN_SHARE_ALL, CREATE_NEW,
                     FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_OVERLAPPED,
                     mode & 0200 ? FILE_ATTRIBUTE_NORMAL : FILE_ATTRIBUTE_READONLY };
    wchar_t *wide;
    HANDLE handle;
    *fd = -1;
    int error = sfti_os_win_path(path, &wide);
    if (error) return error;
    error = sfti_os_win_open_path(wide, &how, &handle);
    /* A folder of that name is access denied. */
    if (error == EACCES && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES) error = EEXIST;
    free(wide);
    return error ? error : sfti_os_win_fd_new(handle, false, fd);
}

/* ── Bytes ── */

int sfti_os_pwrite(int fd, const void *from, size_t len, uint64_t offset, size_t *put) {
    int error = sfti_os_win_transfer(fd, true, (void *)(uintptr_t)from, len, offset, put);
    return !error && *put == 0 && len > 0 ? ENOSPC : error;
}

static int set_end(HANDLE handle, uint64_t len) {
    FILE_END_OF_FILE_INFO end = { .EndOfFile.QuadPart = (LONGLONG)len };
    if (SetFileInformationByHandle(handle, FileEndOfFileInfo, &end, sizeof end)) return 0;
    return sfti_os_win_last();
}

/* Space that is allocated is not written: a write far behind all others fills what is between with
 * zeros, within that call. */
int sfti_os_preallocate(int fd, uint64_t len) {
    HANDLE handle = sfti_os_win_handle(fd);
    FILE_ALLOCATION_INFO space = { .AllocationSize.QuadPart = (LONGLONG)len };
    FILE_STANDARD_INFO now;
    if (len == 0) return 0;
    if (len > INT64_MAX) return EFBIG;
    if (!GetFileInformationByHandleEx(handle, FileStandardInfo, &now, sizeof now))
        return sfti_os_win_last();
    if ((uint64_t)now.EndOfFile.QuadPart >= len) return 0;
    if (!SetFileInformationByHandle(handle, FileAllocationInfo, &space, sizeof space))
        return sfti_os_win_is_unsupported(GetLastError()) ? EOPNOTSUPP : sfti_os_win_last();
    return set_end(handle, len);
}

int sfti_os_truncate(int fd, uint64_t len) {
    return len > INT64_MAX ? EFBIG : set_end(sfti_os_win_handle(fd), len);
}

/* ── Attributes ── */

static int set_basic(HANDLE handle, const FILE_BASIC_INFO *basic) {
    FILE_BASIC_INFO own = *basic; /* what is 0 stays */
    return SetFileInformationByHandle(handle, FileBasicInfo, &own, sizeof own) ? 0
                                                                             : sfti_os_win_last();
}

int sfti_os_set_mode(int fd, uint32_t mode) {
    HANDLE handle = sfti_os_win_handle(fd);
    FILE_BASIC_INFO now, basic = { .FileAttributes = 0 };
    if (!GetFileInformationByHandleEx(handle, FileBasicInfo, &now, sizeof now))
        return sfti_os_win_last();
    DWORD wanted = now.FileAttributes & ~(DWORD)FILE_ATTRIBUTE_READONLY;
    if (!(mode & 0222)) wanted |= FILE_ATTRIBUTE_READONLY;
    if (wanted == now.FileAttributes) return 0;
    basic.FileAttributes = wanted ? wanted : FILE_ATTRIBUTE_NORMAL;
    return set_basic(handle, &basic);
}

int sfti_os_set_mtime(int fd, int64_t mtime_ns) {
    int64_t ticks = mtime_ns / 100 - (mtime_ns % 100 < 0);
    FILE_BASIC_INFO basic = { .LastWriteTime.QuadPart = ticks + INT64_C(116444736000000000) };
    if (basic.LastWriteTime.QuadPart <= 0) return EINVAL;
    return set_basic(sfti_os_win_handle(fd), &basic);
}

/* ── To the disk ── */

int sfti_os_sync(int fd) {
    const os_win_file *file = sfti_os_win_file_of(fd);
    if (FlushFileBuffers(sfti_os_win_handle(fd))) return 0;
    DWORD code = GetLastError();
    bool refused = code == ERROR_ACCESS_DENIED || sfti_os_win_is_unsupported(code);
    bool none = file && file->folder && refused;
    return none ? EOPNOTSUPP : sfti_os_win_errno(code);
}

/* A folder is flushed by who may write to it. */
int sfti_os_open_folder(const char *folder, int *fd) {
    os_win_open how = { GENERIC_WRITE, WIN_SHARE_ALL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS,
                        0 };
    FILE_BASIC_INFO basic;
    wchar_t *wide;
    HANDLE handle;
    *fd = -1;
    int error = sfti_os_win_path(folder, &wide);
    if (error) return error;
    error = sfti_os_win_open_path(wide, &how, &handle);
    how.access = WIN_READ_INFO;
    if (error == EACCES) error = sfti_os_win_open_path(wide, &how, &handle);
    free(wide);
    if (error) return error;
    if (GetFileInformationByHandleEx(handle, FileBasicInfo, &basic, sizeof basic) &&
        (basic.FileAttributes & FILE_ATTRIBUTE_DIRECTORY))
        return sfti_os_win_fd_new(handle, true, fd);
    (void)CloseHandle(handle);
    return ENOTDIR;
}

int sfti_os_sync_folder(const char *folder) {
    int fd;
    int error = sfti_os_open_folder(folder, &fd);
    if (error) return error;
    error = sfti_os_sync(fd);
    (void)sfti_os_close(fd);
    return error;
}

int sfti_os_make_folder(const char *path, uint32_t mode) {
    wchar_t *wide;
    (void)mode;
    int error = sfti_os_win_path(path, &wide);
    if (error) return error;
    if (!CreateDirectoryW(wide, NULL)) error = sfti_os_win_last();
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
    int error = sfti_os_win_path(path, &wide);
    if (error) return error;
    error = sfti_os_win_open_path(wide, &how, &handle);
    free(wide);
    if (error) return error;
    bool link = sfti_os_win_tag_is_link(sfti_os_win_tag(handle));
    bool is_folder = !link && sfti_os_win_is_folder(handle);
    if (folder != is_folder) error = folder ? ENOTDIR : EISDIR;
    if (!error) error = folder ? sfti_os_win_delete(handle) : sfti_os_win_unlink(handle);
    (void)CloseHandle(handle);
    return error;
}

int sfti_os_unlink(const char *path) {
    return remove_name(path, false);
}

int sfti_os_remove_folder(const char *path) {
    return remove_name(path, true);
}
