/* os.h on Windows: descriptors, looking, opening, reading. */
#include "os/os_win32.h"

#include <errno.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

NTSYSAPI NTSTATUS NTAPI RtlGetLastNtStatus(void);

/* ── Descriptors ── */

#define TABLE_PART 256
#define TABLE_PARTS 256

/* A part never moves: who has a descriptor looks at it without the lock. */
static SRWLOCK table_lock = SRWLOCK_INIT;
static win_file *table[TABLE_PARTS];
static size_t table_first; /* all before it are taken */

static win_file *table_at(size_t i) {
    return &table[i / TABLE_PART][i % TABLE_PART];
}

static int table_take(HANDLE handle, bool folder, int *fd) {
    for (size_t i = table_first; i < (size_t)TABLE_PART * TABLE_PARTS; i++) {
        win_file **part = &table[i / TABLE_PART];
        if (!*part) *part = calloc(TABLE_PART, sizeof **part);
        if (!*part) return ENOMEM;
        win_file *file = table_at(i);
        if (file->handle) continue;
        *file = (win_file){ .handle = handle, .folder = folder };
        table_first = i + 1;
        *fd = WIN_FIRST_FD + (int)i;
        return 0;
    }
    return EMFILE;
}

int win_fd_new(HANDLE handle, bool folder, int *fd) {
    *fd = -1;
    AcquireSRWLockExclusive(&table_lock);
    int error = table_take(handle, folder, fd);
    ReleaseSRWLockExclusive(&table_lock);
    if (error) (void)CloseHandle(handle);
    return error;
}

win_file *win_file_of(int fd) {
    size_t i = (size_t)fd - WIN_FIRST_FD;
    if (fd < WIN_FIRST_FD || i >= (size_t)TABLE_PART * TABLE_PARTS) return NULL;
    win_file *part = table[i / TABLE_PART];
    return part && part[i % TABLE_PART].handle ? &part[i % TABLE_PART] : NULL;
}

HANDLE win_handle(int fd) {
    const win_file *file = win_file_of(fd);
    if (file) return file->handle;
    if (fd < 0 || fd >= WIN_FIRST_FD) return INVALID_HANDLE_VALUE;
    intptr_t handle = _get_osfhandle(fd);
    return handle == -2 ? INVALID_HANDLE_VALUE : (HANDLE)handle; /* -2: a program without streams */
}

int os_close(int fd) {
    win_file *file = win_file_of(fd);
    if (!file) return fd >= 0 && fd < WIN_FIRST_FD && _close(fd) == 0 ? 0 : EBADF;
    win_file own = *file;
    if (own.locked) os_unlock(fd);
    AcquireSRWLockExclusive(&table_lock);
    memset(file, 0, sizeof *file);
    if ((size_t)fd - WIN_FIRST_FD < table_first) table_first = (size_t)fd - WIN_FIRST_FD;
    ReleaseSRWLockExclusive(&table_lock);
    if (own.direct) (void)CloseHandle(own.direct);
    return CloseHandle(own.handle) ? 0 : win_last();
}

/* ── Calls that may go on after they return ── */

#define EVENTS 16

static PVOID volatile events[EVENTS];

HANDLE win_event_take(void) {
    for (size_t i = 0; i < EVENTS; i++) {
        HANDLE event = events[i] ? InterlockedExchangePointer(&events[i], NULL) : NULL;
        if (event) return event;
    }
    return CreateEventW(NULL, TRUE, FALSE, NULL);
}

void win_event_give(HANDLE event) {
    for (size_t i = 0; i < EVENTS; i++)
        if (!InterlockedCompareExchangePointer(&events[i], event, NULL)) return;
    (void)CloseHandle(event);
}

DWORD win_io_end(HANDLE handle, OVERLAPPED *o, BOOL ok, DWORD *count) {
    if (!ok && GetLastError() != ERROR_IO_PENDING) return GetLastError();
    return GetOverlappedResult(handle, o, count, TRUE) ? ERROR_SUCCESS : GetLastError();
}

DWORD win_control(HANDLE handle, DWORD code, const void *in, DWORD in_len, void *out,
                  DWORD out_len, DWORD *count) {
    OVERLAPPED o = { .hEvent = win_event_take() };
    *count = 0;
    if (!o.hEvent) return ERROR_NOT_ENOUGH_MEMORY;
    BOOL ok = DeviceIoControl(handle, code, (void *)(uintptr_t)in, in_len, out, out_len, count,
                              &o);
    DWORD error = win_io_end(handle, &o, ok, count);
    win_event_give(o.hEvent);
    return error;
}

/* ── Opening ── */

int win_open_path(const wchar_t *path, const win_open *how, HANDLE *out) {
    win_retry retry = { 0 };
    for (;;) {
        *out = CreateFileW(path, how->access, how->share, NULL, how->creation,
                           how->flags | how->attributes, NULL);
        if (*out != INVALID_HANDLE_VALUE) return 0;
        DWORD code = GetLastError();
        bool dying = code == ERROR_ACCESS_DENIED && RtlGetLastNtStatus() == WIN_STATUS_DELETED;
        if (dying && how->creation == OPEN_EXISTING) return ENOENT;
        if (!dying && !win_is_held(code)) return win_errno(code);
        if (!win_try_again(&retry)) return retry.over ? EINTR : EBUSY;
    }
}

DWORD win_tag(HANDLE handle) {
    FILE_ATTRIBUTE_TAG_INFO tag;
    if (!GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag)) return 0;
    return tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT ? tag.ReparseTag : 0;
}

/* Those that stand for another name: symbolic links, junctions. A file that is kept elsewhere (in
 * a cloud, compressed) is a file. */
bool win_tag_is_link(DWORD tag) {
    return (tag & 0x20000000u) != 0;
}

bool win_is_folder(HANDLE handle) {
    FILE_BASIC_INFO basic;
    return GetFileInformationByHandleEx(handle, FileBasicInfo, &basic, sizeof basic) &&
           (basic.FileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

int win_open_through(const win_open *how, HANDLE *handle) {
    const DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OVERLAPPED;
    if (win_tag(*handle) == 0) return 0;
    HANDLE whole = ReOpenFile(*handle, how->access, how->share, flags);
    if (whole == INVALID_HANDLE_VALUE) return win_last();
    (void)CloseHandle(*handle);
    *handle = whole;
    return 0;
}

static int open_file(const char *path, bool writable, DWORD flags, int *fd) {
    win_open how = { GENERIC_READ | (writable ? GENERIC_WRITE : 0), WIN_SHARE_ALL, OPEN_EXISTING,
                     FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OVERLAPPED | flags, 0 };
    wchar_t *wide;
    HANDLE handle;
    *fd = -1;
    int error = win_path(path, &wide);
    if (error) return error;
    error = win_open_path(wide, &how, &handle);
    free(wide);
    if (error) return error;
    bool unfollowed = (flags & FILE_FLAG_OPEN_REPARSE_POINT) != 0;
    if (unfollowed && win_tag_is_link(win_tag(handle))) error = ELOOP;
    else if (unfollowed) error = win_open_through(&how, &handle);
    bool folder = !error && win_is_folder(handle);
    if (folder && writable) error = EISDIR;
    if (!error) return win_fd_new(handle, folder, fd);
    (void)CloseHandle(handle);
    return error;
}

int os_open_read(const char *path, int *fd) {
    return open_file(path, false, 0, fd);
}

int os_open_write(const char *path, int *fd) {
    return open_file(path, true, 0, fd);
}

int os_open_no_link(const char *path, bool writable, int *fd) {
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
    if (reparse && win_tag_is_link(tag)) return OS_LINK;
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

static uint32_t info_block(HANDLE handle) {
    IO_STATUS_BLOCK io;
    volume_size size;
    NTSTATUS status = NtQueryVolumeInformationFile(handle, &io, &size, sizeof size,
                                                   (FS_INFORMATION_CLASS)QUERY_VOLUME_SIZE);
    return status >= 0 ? size.sectors * size.sector_bytes : 0;
}

int win_info(HANDLE handle, os_info *out) {
    FILE_BASIC_INFO basic;
    FILE_STANDARD_INFO standard;
    memset(out, 0, sizeof *out);
    SetLastError(ERROR_SUCCESS);
    DWORD type = GetFileType(handle);
    if (type == FILE_TYPE_UNKNOWN && GetLastError() != ERROR_SUCCESS) return win_last();
    out->kind = type == FILE_TYPE_PIPE ? OS_PIPE : OS_OTHER;
    out->mode = 0600;
    out->links = 1;
    out->owner = os_user();
    if (type != FILE_TYPE_DISK) return 0;
    if (!GetFileInformationByHandleEx(handle, FileBasicInfo, &basic, sizeof basic) ||
        !GetFileInformationByHandleEx(handle, FileStandardInfo, &standard, sizeof standard))
        return win_last();
    bool reparse = (basic.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
    out->kind = kind_of(basic.FileAttributes, reparse ? win_tag(handle) : 0);
    out->size = out->kind == OS_DIR ? 0 : (uint64_t)standard.EndOfFile.QuadPart;
    out->mode = out->kind == OS_DIR ? 0755 : 0644;
    if (out->kind == OS_FILE && (basic.FileAttributes & FILE_ATTRIBUTE_READONLY)) out->mode = 0444;
    out->links = standard.DeletePending ? 0 : standard.NumberOfLinks;
    out->mtime_ns = unix_ns(basic.LastWriteTime);
    out->ctime_ns = unix_ns(basic.ChangeTime);
    info_identity(handle, out);
    win_info_owner(handle, out);
    if (out->kind == OS_FILE) out->block = info_block(handle);
    return 0;
}

int os_info_fd(int fd, os_info *out) {
    HANDLE handle = win_handle(fd);
    return handle == INVALID_HANDLE_VALUE ? EBADF : win_info(handle, out);
}

/* Opened to look only, which no sharing forbids. */
static int open_to_look(const char *path, bool follow, HANDLE *out) {
    DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
    win_open how = { WIN_READ_INFO, WIN_SHARE_ALL, OPEN_EXISTING, flags, 0 };
    wchar_t *wide;
    int error = win_path(path, &wide);
    if (error) return error;
    error = win_open_path(wide, &how, out);
    how.access = FILE_READ_ATTRIBUTES;
    if (error == EACCES) error = win_open_path(wide, &how, out);
    free(wide);
    return error;
}

int os_info_path(const char *path, bool follow_link, os_info *out) {
    HANDLE handle;
    int error = open_to_look(path, follow_link, &handle);
    if (error) return error;
    error = win_info(handle, out);
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
        int error = fits ? win_path_text(wide, count, out, cap) : count == 0 ? win_last() : 0;
        free(wide);
        if (fits || error) return error;
        room = count + 1;
    }
}

int os_real_path(const char *path, char *out, size_t cap) {
    HANDLE handle;
    int error = open_to_look(path, true, &handle);
    if (error) return error;
    error = final_path(handle, out, cap);
    (void)CloseHandle(handle);
    return error;
}

int os_path_in(int folder, const char *name, char *out, size_t cap) {
    const win_file *file = win_file_of(folder);
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

int os_read_link(const char *path, char *out, size_t cap) {
    HANDLE handle;
    int error = open_to_look(path, false, &handle);
    if (error) return error;
    error = win_link_text(handle, out, cap);
    (void)CloseHandle(handle);
    return error;
}

/* ── Folders ── */

static bool dot_name(const wchar_t *name) {
    return name[0] == L'.' && (!name[1] || (name[1] == L'.' && !name[2]));
}

static int list_all(const wchar_t *pattern, int (*each)(void *ctx, const char *name, os_kind kind),
                    void *ctx) {
    char name[4 * MAX_PATH];
    WIN32_FIND_DATAW found;
    int result = 0;
    HANDLE find = FindFirstFileExW(pattern, FindExInfoBasic, &found, FindExSearchNameMatch, NULL,
                                   FIND_FIRST_EX_LARGE_FETCH);
    if (find == INVALID_HANDLE_VALUE) /* a drive's topmost folder has no "." */
        return GetLastError() == ERROR_FILE_NOT_FOUND ? 0 : win_last();
    do {
        if (dot_name(found.cFileName)) continue;
        (void)win_narrow(found.cFileName, wcslen(found.cFileName), name, sizeof name);
        result = each(ctx, name, kind_of(found.dwFileAttributes, found.dwReserved0));
    } while (result == 0 && FindNextFileW(find, &found));
    if (result == 0 && GetLastError() != ERROR_NO_MORE_FILES) result = win_last();
    (void)FindClose(find);
    return result;
}

int os_list(const char *path, int (*each)(void *ctx, const char *name, os_kind kind),
            void *ctx) {
    size_t len = strlen(path);
    wchar_t *pattern;
    if (len == 0) return ENOENT;
    char *all = malloc(len + 3);
    if (!all) return ENOMEM;
    memcpy(all, path, len);
    if (path[len - 1] != '/' && path[len - 1] != '\\') all[len++] = '/';
    memcpy(all + len, "*", 2);
    int error = win_path(all, &pattern);
    free(all);
    if (error) return error;
    error = list_all(pattern, each, ctx);
    free(pattern);
    return error;
}

/* ── Reading ── */

static size_t most_at_once(size_t len) {
    const size_t most = (size_t)1 << 30;
    return len < most ? len : most;
}

int os_pread(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    const win_file *file = win_file_of(fd);
    HANDLE handle = file && file->direct ? file->direct : win_handle(fd);
    DWORD count = 0;
    *got = 0;
    len = most_at_once(len);
    if (file && file->folder) return EISDIR;
    if (offset > (uint64_t)INT64_MAX - len) return EOVERFLOW;
    OVERLAPPED o = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32),
                     .hEvent = win_event_take() };
    if (!o.hEvent) return ENOMEM;
    BOOL ok = ReadFile(handle, into, (DWORD)len, &count, &o);
    DWORD code = win_io_end(handle, &o, ok, &count);
    win_event_give(o.hEvent);
    *got = count;
    return code == ERROR_SUCCESS || code == ERROR_HANDLE_EOF ? 0 : win_errno(code);
}

int os_map(int fd, uint64_t len, bool writable_private, void **out) {
    HANDLE file = win_handle(fd);
    *out = NULL;
    if (len > SIZE_MAX >> 1) return ENOMEM;
    if (len == 0) return EINVAL;
    if (GetFileType(file) != FILE_TYPE_DISK) return ENODEV;
    HANDLE section = CreateFileMappingW(file, NULL,
                                        writable_private ? PAGE_WRITECOPY : PAGE_READONLY, 0, 0,
                                        NULL);
    if (!section) return win_last();
    *out = MapViewOfFile(section, writable_private ? FILE_MAP_COPY : FILE_MAP_READ, 0, 0,
                         (size_t)len);
    int error = *out ? 0 : win_last();
    (void)CloseHandle(section); /* the view holds it */
    return error;
}

void os_unmap(void *at, uint64_t len) {
    (void)len;
    if (at) (void)UnmapViewOfFile(at);
}
