/* os.h on Windows: opening, looking, reading. */
#include "os/os_win32.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ── Opening ── */

static int open_file(const char *path, bool writable, DWORD flags, int *fd) {
    os_win_open how = { GENERIC_READ | (writable ? GENERIC_WRITE : 0), WIN_SHARE_ALL, OPEN_EXISTING,
                     FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OVERLAPPED | flags, 0 };
    wchar_t *wide;
    HANDLE handle;
    *fd = -1;
    int error = sfti_os_win_path(path, &wide);
    if (error) return error;
    error = sfti_os_win_open_path(wide, &how, &handle);
    free(wide);
    if (error) return error;
    bool unfollowed = (flags & FILE_FLAG_OPEN_REPARSE_POINT) != 0;
    if (unfollowed && sfti_os_win_tag_is_link(sfti_os_win_tag(handle))) error = ELOOP;
    else if (unfollowed) error = sfti_os_win_open_through(&how, &handle);
    bool folder = !error && sfti_os_win_is_folder(handle);
    if (folder && writable) error = EISDIR;
    if (!error) return sfti_os_win_fd_new(handle, folder, fd);
    (void)CloseHandle(handle);
    return error;
}

int sfti_os_open_read(const char *path, int *fd) {
    return open_file(path, false, 0, fd);
}

int sfti_os_open_look(const char *path, int *fd, os_info *info) {
    int error = sfti_os_open_read(path, fd);
    if (error) return error;
    error = sfti_os_info_fd(*fd, info);
    if (error) (void)sfti_os_close(*fd);
    if (error) *fd = -1;
    return error;
}

int sfti_os_open_write(const char *path, int *fd) {
    return open_file(path, true, 0, fd);
}

int sfti_os_open_no_link(const char *path, bool writable, int *fd) {
    return open_file(path, writable, FILE_FLAG_OPEN_REPARSE_POINT, fd);
}

/* ── Looking ── */

#define TICKS_TO_1970 INT64_C(116444736000000000) /* of 100 ns, since 1601 */

static int64_t unix_ns(LARGE_INTEGER ticks) {
    const int64_t most = INT64_MAX / 100 - 1;
    int64_t since = ticks.QuadPart - TICKS_TO_1970;
    if (ticks.QuadPart <= 0) return 0;
    return (since > most ? most : since < -most ? -most : since) * 100;
}

static os_kind kind_of(DWORD attributes, DWORD tag) {
    bool reparse = (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
    if (reparse && sfti_os_win_tag_is_link(tag)) return OS_LINK;
    if (reparse && (tag == 0x80000023 || (tag >= 0x80000024 && tag <= 0x80000026)))
        return OS_OTHER; /* a socket, FIFO or device of the Linux subsystem */
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? OS_DIR : OS_FILE;
}

/* 128 bits on some file systems; on NTFS the upper half is 0. */
static void info_identity(HANDLE handle, os_info *out) {
    FILE_ID_INFO id;
    BY_HANDLE_FILE_INFORMATION old;
    uint64_t half[2];
    if (GetFileInformationByHandleEx(handle, FileIdInfo, &id, sizeof id)) {
        memcpy(half, &id.FileId, sizeof half);
        out->device = id.VolumeSerialNumber;
        out->inode = half[0] ^ half[1] * UINT64_C(0x9E3779B97F4A7C15);
    } else if (GetFileInformationByHandle(handle, &old)) {
        out->device = old.dwVolumeSerialNumber;
        out->inode = (uint64_t)old.nFileIndexHigh << 32 | old.nFileIndexLow;
    }
}

typedef struct volume_size {
    LARGE_INTEGER clusters, left;
    ULONG sectors, sector_bytes; /* of a cluster */
} volume_size;

#define QUERY_VOLUME_SIZE 3

int sfti_os_win_info(HANDLE handle, os_info *out) {
    FILE_BASIC_INFO basic;
    FILE_STANDARD_INFO standard;
    memset(out, 0, sizeof *out);
    SetLastError(ERROR_SUCCESS);
    DWORD type = GetFileType(handle);
    if (type == FILE_TYPE_UNKNOWN && GetLastError() != ERROR_SUCCESS) return sfti_os_win_last();
    out->kind = type == FILE_TYPE_PIPE ? OS_PIPE : OS_OTHER;
    out->mode = 0600;
    out->links = 1;
    out->owner = sfti_os_user();
    if (type != FILE_TYPE_DISK) return 0;
    if (!GetFileInformationByHandleEx(handle, FileBasicInfo, &basic, sizeof basic) ||
        !GetFileInformationByHandleEx(handle, FileStandardInfo, &standard, sizeof standard))
        return sfti_os_win_last();
    bool reparse = (basic.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
    out->kind = kind_of(basic.FileAttributes, reparse ? sfti_os_win_tag(handle) : 0);
    out->size = out->kind == OS_DIR ? 0 : (uint64_t)standard.EndOfFile.QuadPart;
    out->mode = out->kind == OS_DIR ? 0755 : 0644;
    if (out->kind == OS_FILE && (basic.FileAttributes & FILE_ATTRIBUTE_READONLY)) out->mode = 0444;
    out->links = standard.DeletePending ? 0 : standard.NumberOfLinks;
    out->mtime_ns = unix_ns(basic.LastWriteTime);
    out->ctime_ns = unix_ns(basic.ChangeTime);
    info_identity(handle, out);
    sfti_os_win_info_owner(handle, out);
    IO_STATUS_BLOCK io;
    volume_size volume;
    if (out->kind == OS_FILE
        && NtQueryVolumeInformationFile(handle, &io, &volume, sizeof volume,
                                        (FS_INFORMATION_CLASS)QUERY_VOLUME_SIZE) >= 0)
        out->block = volume.sectors * volume.sector_bytes;
    return 0;
}

int sfti_os_info_fd(int fd, os_info *out) {
    HANDLE handle = sfti_os_win_handle(fd);
    return handle == INVALID_HANDLE_VALUE ? EBADF : sfti_os_win_info(handle, out);
}

/* Opened to look only, which no sharing forbids. */
static int open_to_look(const char *path, bool follow, HANDLE *out) {
    DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
    os_win_open how = { WIN_READ_INFO, WIN_SHARE_ALL, OPEN_EXISTING, flags, 0 };
    wchar_t *wide;
    int error = sfti_os_win_path(path, &wide);
    if (error) return error;
    error = sfti_os_win_open_path(wide, &how, out);
    how.access = FILE_READ_ATTRIBUTES;
    if (error == EACCES) error = sfti_os_win_open_path(wide, &how, out);
    free(wide);
    return error;
}

int sfti_os_info_path(const char *path, bool follow_link, os_info *out) {
    HANDLE handle;
    int error = open_to_look(path, follow_link, &handle);
    if (error) return error;
    error = sfti_os_win_info(handle, out);
    (void)CloseHandle(handle);
    return error;
}

static int final_path(HANDLE handle, char *out, size_t cap) {
    DWORD room = 512;
    for (;;) {
        wchar_t *wide = malloc(room * sizeof *wide);
        if (!wide) return ENOMEM;
        DWORD count = GetFinalPathNameByHandleW(handle, wide, room, VOLUME_NAME_DOS);
        bool fits = count > 0 && count < room;
        int error = fits ? sfti_os_win_path_text(wide, count, out, cap)
                    : count == 0 ? sfti_os_win_last() : 0;
        free(wide);
        if (fits || error) return error;
        room = count + 1;
    }
}

/* The name on its volume behind the drive of the path as it was given, if that leads to the same
 * file: for drives that the system knows no path of (and for wine, whose buffer is short). */
static int path_on_drive(const wchar_t *whole, HANDLE handle, char *out, size_t cap) {
    enum { ROOM = 4096 };
    os_info here, there;
    FILE_NAME_INFO *name = calloc(1, sizeof *name + ROOM * sizeof(wchar_t));
    if (!name) return ENOMEM;
    const wchar_t *drive = wcsncmp(whole, L"\\\\?\\", 4) == 0 ? whole + 4 : whole;
    int error = !drive[0] || drive[1] != L':' ? EOPNOTSUPP : 0;
    if (!error && !GetFileInformationByHandleEx(handle, FileNameInfo, name,
                                                (DWORD)(ROOM * sizeof(wchar_t))))
        error = sfti_os_win_last();
    size_t count = name->FileNameLength / sizeof(wchar_t);
    if (!error && cap < 3) error = ENAMETOOLONG;
    if (!error) error = sfti_os_win_path_text(name->FileName, count, out + 2, cap - 2);
    if (!error) {
        out[0] = (char)drive[0];
        out[1] = ':';
        error = sfti_os_win_info(handle, &here);
    }
    free(name);
    if (!error) error = sfti_os_info_path(out, true, &there);
    bool same = !error && here.device == there.device && here.inode == there.inode;
    return error || same ? error : EOPNOTSUPP;
}

static int path_by_drive(const char *path, HANDLE handle, char *out, size_t cap) {
    wchar_t *wide, *whole = NULL;
    int error = sfti_os_win_path(path, &wide);
    if (error) return error;
    DWORD room = GetFullPathNameW(wide, 0, NULL, NULL);
    if (room > 0) whole = malloc(room * sizeof *whole);
    DWORD got = whole ? GetFullPathNameW(wide, room, whole, NULL) : 0;
    error = got > 0 && got < room ? path_on_drive(whole, handle, out, cap) : ENOMEM;
    free(whole);
    free(wide);
    return error;
}

int sfti_os_real_path(const char *path, char *out, size_t cap) {
    HANDLE handle;
    int error = open_to_look(path, true, &handle);
    if (error) return error;
    error = final_path(handle, out, cap);
    if (error && error != ENAMETOOLONG && error != ENOMEM)
        error = path_by_drive(path, handle, out, cap) ? error : 0;
    (void)CloseHandle(handle);
    return error;
}

int sfti_os_path_in(int folder, const char *name, char *out, size_t cap) {
    const os_win_file *file = sfti_os_win_file_of(folder);
    if (!file || !file->folder) return EBADF;
    int error = final_path(file->handle, out, cap);
    if (error) return error;
    size_t len = strlen(out), rest = strlen(name) + 1;
    bool slash = len > 0 && out[len - 1] == '/';
    if (rest >= cap - len) return ENAMETOOLONG;
    if (!slash) out[len++] = '/';
    memcpy(out + len, name, rest);
    return 0;
}

int sfti_os_read_link(const char *path, char *out, size_t cap) {
    HANDLE handle;
    int error = open_to_look(path, false, &handle);
    if (error) return error;
    error = sfti_os_win_link_text(handle, out, cap);
    (void)CloseHandle(handle);
    return error;
}

/* ── Folders ── */

static int list_found(const wchar_t *pattern,
                      int (*each)(void *ctx, const char *name, os_kind kind), void *ctx) {
    char name[4 * MAX_PATH];
    WIN32_FIND_DATAW found;
    int result = 0;
    HANDLE find = FindFirstFileExW(pattern, FindExInfoBasic, &found, FindExSearchNameMatch, NULL,
                                   FIND_FIRST_EX_LARGE_FETCH);
    if (find == INVALID_HANDLE_VALUE) /* a drive's topmost folder has no "." */
        return GetLastError() == ERROR_FILE_NOT_FOUND ? 0 : sfti_os_win_last();
    do {
        const wchar_t *entry = found.cFileName;
        if (wcscmp(entry, L".") == 0 || wcscmp(entry, L"..") == 0) continue;
        (void)sfti_os_win_narrow(entry, wcslen(entry), name, sizeof name);
        result = each(ctx, name, kind_of(found.dwFileAttributes, found.dwReserved0));
    } while (result == 0 && FindNextFileW(find, &found));
    if (result == 0 && GetLastError() != ERROR_NO_MORE_FILES) result = sfti_os_win_last();
    (void)FindClose(find);
    return result;
}

int sfti_os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
                 void *ctx) {
    size_t len = strlen(path);
    wchar_t *pattern;
    if (len == 0) return ENOENT;
    char *all = malloc(len + 3);
    if (!all) return ENOMEM;
    memcpy(all, path, len);
    if (path[len - 1] != '/' && path[len - 1] != '\\') all[len++] = '/';
    memcpy(all + len, "*", 2);
    int error = sfti_os_win_path(all, &pattern);
    free(all);
    if (error) return error;
    error = list_found(pattern, each, ctx);
    free(pattern);
    os_info info;
    bool gone = error == ENOENT || error == ENOTDIR;
    return gone && sfti_os_info_path(path, true, &info) == 0 ? ENOTDIR : error;
}

/* ── Reading ── */

int sfti_os_positioned(int fd) {
    HANDLE handle = sfti_os_win_handle(fd);
    int own;
    if (sfti_os_win_file_of(fd) || GetFileType(handle) != FILE_TYPE_DISK) return fd;
    HANDLE again = ReOpenFile(handle, GENERIC_READ, WIN_SHARE_ALL, FILE_FLAG_OVERLAPPED);
    if (again == INVALID_HANDLE_VALUE) return fd;
    return sfti_os_win_fd_new(again, false, &own) ? fd : own;
}

int sfti_os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    const os_win_file *file = sfti_os_win_file_of(fd);
    *got = 0;
    if (file && file->folder) return EISDIR;
    return sfti_os_win_transfer(fd, false, into, len, offset, got);
}

/* What the disk cannot read later is an exception of the system's in whoever reads the view
 * (EXCEPTION_IN_PAGE_ERROR), as a signal is elsewhere. */
int sfti_os_map(int fd, uint64_t len, bool writable_private, void **out) {
    HANDLE file = sfti_os_win_handle(fd);
    *out = NULL;
    if (len > SIZE_MAX >> 1) return ENOMEM;
    if (len == 0) return EINVAL;
    if (file == INVALID_HANDLE_VALUE) return EBADF;
    if (GetFileType(file) != FILE_TYPE_DISK) return ENODEV;
    HANDLE section = CreateFileMappingW(file, NULL,
                                        writable_private ? PAGE_WRITECOPY : PAGE_READONLY, 0, 0,
                                        NULL);
    if (!section) return sfti_os_win_last();
    *out = MapViewOfFile(section, writable_private ? FILE_MAP_COPY : FILE_MAP_READ, 0, 0,
                         (size_t)len);
    int error = *out ? 0 : sfti_os_win_last();
    (void)CloseHandle(section); /* the view holds it */
    return error;
}

void sfti_os_unmap(void *at, uint64_t len) {
    (void)len;
    if (at) (void)UnmapViewOfFile(at);
}
