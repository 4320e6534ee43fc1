/* os_rename on Windows, where a file that is open or mapped resists.
 *
 * Steps; each is taken where the one before is refused, and what a crash leaves:
 *  1  the new file takes the name at once, as POSIX has it: whoever has the old one open keeps it.
 *     The old file or the new one
 *  2  where the file system cannot, it is moved over the old one, if nobody has that open: as 1
 *  3  otherwise the old file steps out of the way:
 *     3a the old file is renamed to .NAME.sft-XXXXXXXX.old in its folder: only that, and the new
 *        file under the name it had. `safetensors meta recover` gives it its name back
 *     3b the new file takes the name: the new file, and the old one as .NAME.sft-XXXXXXXX.old
 *     3c the old file is deleted, which lasts until nobody has it open: the new file
 *     If 3b fails the old file gets its name back. If 3c fails it stays, hidden, until the next
 *     replacement of NAME
 *  4  all of it again while somebody holds one of the two files, for WIN_RETRY_MS at most */
#include "os/os_win32.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As in <winbase.h>, which older ones lack. */
#define RENAME_EX ((FILE_INFO_BY_HANDLE_CLASS)22)
#define RENAME_REPLACE 0x01u
#define RENAME_POSIX 0x02u
#define RENAME_READONLY 0x40u

#define OLD_LETTERS 8
#define OLD_TRIES 16

static const os_win_open to_rename = {
    DELETE | FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES | SYNCHRONIZE, WIN_SHARE_ALL,
    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, 0
};

/* ── One rename ── */

/* By handle: the path is whole, for a relative one would be looked up elsewhere. */
static DWORD rename_handle(HANDLE handle, const wchar_t *to, bool posix, DWORD flags) {
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

/* Step 1. */
static DWORD replace_at_once(const wchar_t *from, const wchar_t *to) {
    HANDLE handle = CreateFileW(from, to_rename.access, to_rename.share, NULL, OPEN_EXISTING,
                                to_rename.flags, NULL);
    if (handle == INVALID_HANDLE_VALUE) return GetLastError();
    DWORD flags = RENAME_REPLACE | RENAME_POSIX;
    DWORD code = rename_handle(handle, to, true, flags | RENAME_READONLY);
    if (os_win_is_unsupported(code)) code = rename_handle(handle, to, true, flags);
    (void)CloseHandle(handle);
    return code;
}

static DWORD move(const wchar_t *from, const wchar_t *to, DWORD flags) {
    return MoveFileExW(from, to, flags | MOVEFILE_WRITE_THROUGH) ? ERROR_SUCCESS : GetLastError();
}

static bool is_refused(DWORD code) {
    return code == ERROR_ACCESS_DENIED || code == ERROR_USER_MAPPED_FILE || os_win_is_held(code);
}

/* ── The old file out of the way ── */

static const wchar_t *name_of(const wchar_t *path) {
    const wchar_t *slash = wcsrchr(path, L'\\'), *drive = wcsrchr(path, L':');
    return slash ? slash + 1 : drive ? drive + 1 : path;
}

/* Where the letters go in *letters; to be freed. */
static wchar_t *old_name(const wchar_t *path, wchar_t **letters) {
    static const wchar_t ending[] = L".sft-XXXXXXXX.old";
    size_t folder = (size_t)(name_of(path) - path), name = wcslen(path) - folder;
    wchar_t *old = malloc((folder + 1 + name) * sizeof *old + sizeof ending);
    if (!old) return NULL;
    memcpy(old, path, folder * sizeof *old);
    old[folder] = L'.';
    memcpy(old + folder + 1, path + folder, name * sizeof *old);
    memcpy(old + folder + 1 + name, ending, sizeof ending);
    *letters = old + folder + 1 + name + 5;
    return old;
}

static int draw_letters(wchar_t *letters) {
    static const char known[] = "0123456789abcdefghijklmnopqrstuv";
    unsigned char bits[OLD_LETTERS];
    int error = os_random(bits, sizeof bits);
    for (size_t i = 0; !error && i < OLD_LETTERS; i++) letters[i] = (wchar_t)known[bits[i] % 32];
    return error;
}

/* Step 3a. */
static DWORD step_out(HANDLE handle, wchar_t *old, wchar_t *letters) {
    DWORD code = ERROR_ALREADY_EXISTS;
    for (int i = 0; i < OLD_TRIES && code == ERROR_ALREADY_EXISTS; i++) {
        if (draw_letters(letters)) return ERROR_NO_SYSTEM_RESOURCES;
        code = rename_handle(handle, old, false, 0);
    }
    return code;
}

static void hide(HANDLE handle) {
    FILE_BASIC_INFO now;
    if (!GetFileInformationByHandleEx(handle, FileBasicInfo, &now, sizeof now)) return;
    FILE_BASIC_INFO basic = { .FileAttributes = now.FileAttributes | FILE_ATTRIBUTE_HIDDEN };
    (void)SetFileInformationByHandle(handle, FileBasicInfo, &basic, sizeof basic);
}

/* Step 3c, of what an earlier replacement of this name has left. */
static void delete_left(const wchar_t *old, const wchar_t *letters) {
    WIN32_FIND_DATAW found;
    size_t folder = (size_t)(name_of(old) - old), stem = (size_t)(letters - old) - folder;
    size_t len = wcslen(old) - folder;
    wchar_t *pattern = malloc((folder + MAX_PATH + 1) * sizeof *pattern);
    if (!pattern || len >= MAX_PATH) {
        free(pattern);
        return;
    }
    memcpy(pattern, old, (folder + len + 1) * sizeof *pattern);
    for (size_t i = 0; i < OLD_LETTERS; i++) pattern[folder + stem + i] = L'?';
    HANDLE find = FindFirstFileExW(pattern, FindExInfoBasic, &found, FindExSearchNameMatch, NULL,
                                   0);
    bool more = find != INVALID_HANDLE_VALUE;
    while (more) {
        bool same = wcslen(found.cFileName) == len &&
                    wcsncmp(found.cFileName, old + folder, stem) == 0;
        memcpy(pattern + folder, found.cFileName, (same ? len + 1 : 0) * sizeof *pattern);
        HANDLE handle = same ? CreateFileW(pattern, to_rename.access, to_rename.share, NULL,
                                           OPEN_EXISTING, to_rename.flags, NULL)
                             : INVALID_HANDLE_VALUE;
        if (handle != INVALID_HANDLE_VALUE) {
            if (os_win_delete(handle)) hide(handle);
            (void)CloseHandle(handle);
        }
        more = FindNextFileW(find, &found);
    }
    if (find != INVALID_HANDLE_VALUE) (void)FindClose(find);
    free(pattern);
}

/* Step 3; what is refused at 3a is told. */
static DWORD replace_by_turns(const wchar_t *from, const wchar_t *to) {
    wchar_t *letters, *old = old_name(to, &letters);
    if (!old) return ERROR_NOT_ENOUGH_MEMORY;
    HANDLE handle = CreateFileW(to, to_rename.access, to_rename.share, NULL, OPEN_EXISTING,
                                to_rename.flags, NULL);
    DWORD code = handle == INVALID_HANDLE_VALUE ? GetLastError() : step_out(handle, old, letters);
    if (code == ERROR_SUCCESS) {
        code = move(from, to, 0);
        bool taken = code == ERROR_ALREADY_EXISTS; /* by another program: the old one is obsolete */
        if (code != ERROR_SUCCESS && !taken) (void)rename_handle(handle, to, false, 0);
        else if (os_win_delete(handle)) hide(handle);
    }
    if (handle != INVALID_HANDLE_VALUE) (void)CloseHandle(handle);
    if (code == ERROR_SUCCESS) delete_left(old, letters);
    free(old);
    return code;
}

/* ── All steps ── */

static bool is_folder_at(const wchar_t *path) {
    DWORD attributes = GetFileAttributesW(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) &&
           !(attributes & FILE_ATTRIBUTE_REPARSE_POINT);
}

static DWORD replace_once(const wchar_t *from, const wchar_t *to) {
    DWORD code = replace_at_once(from, to);
    if (code == ERROR_SUCCESS || !(os_win_is_unsupported(code) || is_refused(code))) return code;
    code = move(from, to, MOVEFILE_REPLACE_EXISTING);
    return is_refused(code) ? replace_by_turns(from, to) : code;
}

static int rename_wide(const wchar_t *from, const wchar_t *to, bool no_clobber) {
    os_win_retry retry = { 0 };
    if (!no_clobber && is_folder_at(to) && !is_folder_at(from)) return EISDIR;
    for (;;) {
        DWORD code = no_clobber ? move(from, to, 0) : replace_once(from, to);
        bool again = is_refused(code) || (code == ERROR_ALREADY_EXISTS && !no_clobber);
        if (code == ERROR_SUCCESS) return 0;
        if (!again) return os_win_errno(code);
        if (!os_win_try_again(&retry)) return retry.over ? EINTR : os_win_errno(code);
    }
}

int os_rename(const char *from, const char *to, bool no_clobber) {
    wchar_t *wide_from, *wide_to;
    int error = os_win_path(from, &wide_from);
    if (error) return error;
    error = os_win_path(to, &wide_to);
    if (!error) {
        error = rename_wide(wide_from, wide_to, no_clobber);
        free(wide_to);
    }
    free(wide_from);
    return error;
}
