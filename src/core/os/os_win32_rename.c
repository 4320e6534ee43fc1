/* What os.h on Windows does to names by handle: renaming, names nobody has, deletion. */
#include "os/os_win32.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As in <winbase.h>, which older ones lack. */
#define DISPOSITION_EX ((FILE_INFO_BY_HANDLE_CLASS)21)
#define DISPOSITION_DELETE 0x01u
#define DISPOSITION_POSIX 0x02u    /* the name is free at once, were the file open elsewhere */
#define DISPOSITION_READONLY 0x10u /* does not hinder */
#define RENAME_EX ((FILE_INFO_BY_HANDLE_CLASS)22)

/* ── Renaming ── */

/* By handle: the path is whole, for a relative one would be looked up elsewhere. */
DWORD sfti_os_win_rename(HANDLE handle, const wchar_t *to, bool posix, DWORD flags) {
    DWORD count = GetFullPathNameW(to, 0, NULL, NULL);
    size_t bytes = sizeof(FILE_RENAME_INFO) + count * sizeof(wchar_t);
    FILE_RENAME_INFO *info = calloc(1, bytes);
    if (!info) return ERROR_NOT_ENOUGH_MEMORY;
    DWORD got = GetFullPathNameW(to, count, info->FileName, NULL);
    memcpy(info, &flags, posix ? sizeof flags : 0); /* the union's Flags; else ReplaceIfExists */
    info->FileNameLength = got * (DWORD)sizeof(wchar_t);
    BOOL ok = SetFileInformationByHandle(handle, posix ? RENAME_EX : FileRenameInfo, info,
                                         (DWORD)bytes);
    DWORD code = ok ? ERROR_SUCCESS : GetLastError();
    free(info);
    return code;
}

/* ── Names nobody has ── */

const wchar_t *sfti_os_win_name_of(const wchar_t *path) {
    const wchar_t *slash = wcsrchr(path, L'\\'), *drive = wcsrchr(path, L':');
    return slash ? slash + 1 : drive ? drive + 1 : path;
}

wchar_t *sfti_os_win_sibling(const wchar_t *path, const wchar_t *ending, wchar_t **letters) {
    size_t folder = (size_t)(sfti_os_win_name_of(path) - path), name = wcslen(path) - folder;
    size_t rest = wcslen(ending) + 1;
    wchar_t *made = malloc((folder + 1 + name + rest) * sizeof *made);
    if (!made) return NULL;
    memcpy(made, path, folder * sizeof *made);
    made[folder] = L'.';
    memcpy(made + folder + 1, path + folder, name * sizeof *made);
    memcpy(made + folder + 1 + name, ending, rest * sizeof *made);
    *letters = wcschr(made + folder + 1 + name, L'X');
    return made;
}

#define SIBLING_TRIES 16

DWORD sfti_os_win_step_out(HANDLE handle, wchar_t *sibling, wchar_t *letters) {
    static const char known[] = "0123456789abcdefghijklmnopqrstuv";
    unsigned char bits[WIN_SIBLING_LETTERS];
    size_t count = wcsspn(letters, L"X");
    DWORD code = ERROR_ALREADY_EXISTS;
    for (int i = 0; i < SIBLING_TRIES && code == ERROR_ALREADY_EXISTS; i++) {
        if (sfti_os_random(bits, sizeof bits)) return ERROR_NO_SYSTEM_RESOURCES;
        for (size_t k = 0; k < count && k < sizeof bits; k++)
            letters[k] = (wchar_t)known[bits[k] % 32];
        code = sfti_os_win_rename(handle, sibling, false, 0);
    }
    return code;
}

/* ── Deletion ── */

static void clear_readonly(HANDLE handle) {
    FILE_BASIC_INFO now, basic = { .FileAttributes = 0 };
    if (!GetFileInformationByHandleEx(handle, FileBasicInfo, &now, sizeof now)) return;
    if (!(now.FileAttributes & FILE_ATTRIBUTE_READONLY)) return;
    basic.FileAttributes = now.FileAttributes & ~(DWORD)FILE_ATTRIBUTE_READONLY;
    if (!basic.FileAttributes) basic.FileAttributes = FILE_ATTRIBUTE_NORMAL;
    (void)SetFileInformationByHandle(handle, FileBasicInfo, &basic, sizeof basic);
}

/* A file that is mapped is refused by ERROR_USER_MAPPED_FILE. */
static DWORD set_disposition(HANDLE handle, DWORD how) {
    if (SetFileInformationByHandle(handle, DISPOSITION_EX, &how, sizeof how)) return ERROR_SUCCESS;
    DWORD code = GetLastError();
    NTSTATUS status = code == ERROR_ACCESS_DENIED ? RtlGetLastNtStatus() : 0;
    if (status == WIN_STATUS_IN_USE) return ERROR_USER_MAPPED_FILE;
    return status == WIN_STATUS_GONE ? ERROR_FILE_NOT_FOUND : code;
}

static DWORD delete_at_once(HANDLE handle) {
    DWORD how = DISPOSITION_DELETE | DISPOSITION_POSIX;
    DWORD code = set_disposition(handle, how | DISPOSITION_READONLY);
    if (!sfti_os_win_is_unsupported(code)) return code;
    clear_readonly(handle);
    return set_disposition(handle, how);
}

static bool is_for_later(DWORD code) {
    return sfti_os_win_is_unsupported(code) || code == ERROR_USER_MAPPED_FILE;
}

/* Once all have closed it. A mapped file resists, but not if it is to go as it is closed. */
static DWORD delete_later(HANDLE handle) {
    FILE_DISPOSITION_INFO old = { .DeleteFile = TRUE };
    clear_readonly(handle);
    if (SetFileInformationByHandle(handle, FileDispositionInfo, &old, sizeof old))
        return ERROR_SUCCESS;
    DWORD code = GetLastError();
    HANDLE again = ReOpenFile(handle, DELETE, WIN_SHARE_ALL,
                              FILE_FLAG_DELETE_ON_CLOSE | FILE_FLAG_OPEN_REPARSE_POINT);
    if (again == INVALID_HANDLE_VALUE) return code;
    (void)CloseHandle(again);
    return ERROR_SUCCESS;
}

int sfti_os_win_delete(HANDLE handle) {
    DWORD code = delete_at_once(handle);
    if (is_for_later(code)) code = delete_later(handle);
    return code == ERROR_SUCCESS ? 0 : sfti_os_win_errno(code);
}

#define GONE L".gone.sft-"

/* Its name is free while it waits to be deleted under another one, of a temporary: sft_sweep ends
 * what a crash interrupts here. The path that it had, to be freed; NULL: it has it still. */
static wchar_t *free_name(HANDLE handle) {
    DWORD room = GetFinalPathNameByHandleW(handle, NULL, 0, VOLUME_NAME_DOS);
    wchar_t *letters, *gone = NULL, *path = room ? malloc(room * sizeof *path) : NULL;
    DWORD got = path ? GetFinalPathNameByHandleW(handle, path, room, VOLUME_NAME_DOS) : 0;
    if (got > 0 && got < room) {
        wchar_t *name = path + (sfti_os_win_name_of(path) - path), first = name[0];
        bool has_it = wcsncmp(name, GONE, wcslen(GONE)) == 0;
        name[0] = L'\0';
        if (!has_it) gone = sfti_os_win_sibling(path, &(GONE L"XXXXXX")[1], &letters);
        name[0] = first;
    }
    bool moved = gone && sfti_os_win_step_out(handle, gone, letters) == ERROR_SUCCESS;
    free(gone);
    if (moved) return path;
    free(path);
    return NULL;
}

static DWORD unlink_once(HANDLE handle) {
    DWORD code = delete_at_once(handle);
    if (!is_for_later(code)) return code;
    wchar_t *had = free_name(handle);
    code = delete_later(handle);
    if (had && code != ERROR_SUCCESS) (void)sfti_os_win_rename(handle, had, false, 0);
    free(had);
    return code;
}

int sfti_os_win_unlink(HANDLE handle) {
    os_win_retry retry = { 0 };
    for (;;) {
        DWORD code = unlink_once(handle);
        if (code == ERROR_SUCCESS) return 0;
        if (code != ERROR_ACCESS_DENIED && !sfti_os_win_is_held(code))
            return sfti_os_win_errno(code);
        if (!sfti_os_win_try_again(&retry)) return retry.over ? EINTR : sfti_os_win_errno(code);
    }
}
