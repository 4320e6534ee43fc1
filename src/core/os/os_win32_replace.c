/* sfti_os_rename on Windows, where a file that is open or mapped resists.
 *
 * Steps; each is taken where the one before is refused, and what a crash leaves:
 *  1  the new file takes the name at once, as POSIX has it: whoever has the old one open keeps it.
 *     The old file or the new one
 *  2  where the file system cannot, it is moved over the old one, if nobody has that open: as 1
 *  3  otherwise the new file is opened, so that nobody can hold it back any more, and the old file
 *     steps out of the way:
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

#define OLD_ENDING L".sft-XXXXXXXX.old"
#define OLD_NAME_MOST ((size_t)255) /* of file systems, in UTF-16 */

/* Flags of FileRenameInfoEx, as in <winbase.h>, which older ones lack. */
#define RENAME_REPLACE 0x01u
#define RENAME_POSIX 0x02u
#define RENAME_READONLY 0x40u

static const os_win_open to_rename = {
    DELETE | FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES | SYNCHRONIZE, WIN_SHARE_ALL,
    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, 0
};

/* ── One rename ── */

static HANDLE open_to_rename(const wchar_t *path) {
    return CreateFileW(path, to_rename.access, to_rename.share, NULL, to_rename.creation,
                       to_rename.flags, NULL);
}

/* Step 1. */
static DWORD replace_at_once(const wchar_t *from, const wchar_t *to) {
    HANDLE handle = open_to_rename(from);
    if (handle == INVALID_HANDLE_VALUE) return GetLastError();
    DWORD flags = RENAME_REPLACE | RENAME_POSIX;
    DWORD code = sfti_os_win_rename(handle, to, true, flags | RENAME_READONLY);
    if (sfti_os_win_is_unsupported(code)) code = sfti_os_win_rename(handle, to, true, flags);
    (void)CloseHandle(handle);
    return code;
}

static DWORD move(const wchar_t *from, const wchar_t *to, DWORD flags) {
    return MoveFileExW(from, to, flags | MOVEFILE_WRITE_THROUGH) ? ERROR_SUCCESS : GetLastError();
}

static bool is_refused(DWORD code) {
    return code == ERROR_ACCESS_DENIED || code == ERROR_USER_MAPPED_FILE ||
           sfti_os_win_is_held(code);
}

/* ── The old file out of the way ── */

static void hide(HANDLE handle) {
    FILE_BASIC_INFO now;
    if (!GetFileInformationByHandleEx(handle, FileBasicInfo, &now, sizeof now)) return;
    FILE_BASIC_INFO basic = { .FileAttributes = now.FileAttributes | FILE_ATTRIBUTE_HIDDEN };
    (void)SetFileInformationByHandle(handle, FileBasicInfo, &basic, sizeof basic);
}

/* Step 3c of earlier replacements of this name, whose old files somebody had open then. */
static void delete_left(const wchar_t *path) {
    WIN32_FIND_DATAW found;
    wchar_t *letters, *old = sfti_os_win_sibling(path, OLD_ENDING, &letters);
    if (!old) return;
    wchar_t *name = (wchar_t *)(uintptr_t)sfti_os_win_name_of(old);
    size_t len = wcslen(name), stem = (size_t)(letters - name);
    for (size_t i = 0; i < WIN_SIBLING_LETTERS; i++) letters[i] = L'?';
    HANDLE find = FindFirstFileExW(old, FindExInfoBasic, &found, FindExSearchNameMatch, NULL, 0);
    for (bool more = find != INVALID_HANDLE_VALUE; more; more = FindNextFileW(find, &found)) {
        if (wcslen(found.cFileName) != len || wcsncmp(found.cFileName, name, stem) != 0) continue;
        memcpy(name, found.cFileName, len * sizeof *name);
        HANDLE handle = open_to_rename(old);
        if (handle == INVALID_HANDLE_VALUE) continue;
        if (sfti_os_win_delete(handle)) hide(handle);
        (void)CloseHandle(handle);
    }
    if (find != INVALID_HANDLE_VALUE) (void)FindClose(find);
    free(old);
}

/* Steps 3a to 3c. */
static DWORD take_turns(HANDLE fresh, HANDLE handle, const wchar_t *to) {
    size_t len = 1 + wcslen(sfti_os_win_name_of(to)) + wcslen(OLD_ENDING);
    if (len > OLD_NAME_MOST) return ERROR_FILENAME_EXCED_RANGE;
    wchar_t *letters, *old = sfti_os_win_sibling(to, OLD_ENDING, &letters);
    if (!old) return ERROR_NOT_ENOUGH_MEMORY;
    DWORD code = sfti_os_win_step_out(handle, old, letters);
    free(old);
    if (code != ERROR_SUCCESS) return code;
    code = sfti_os_win_rename(fresh, to, false, 0);
    bool taken = code == ERROR_ALREADY_EXISTS; /* by another program: the old one is obsolete */
    if (code != ERROR_SUCCESS && !taken) (void)sfti_os_win_rename(handle, to, false, 0);
    else if (sfti_os_win_delete(handle)) hide(handle);
    return code;
}

static DWORD replace_by_turns(const wchar_t *from, const wchar_t *to) {
    HANDLE fresh = open_to_rename(from);
    if (fresh == INVALID_HANDLE_VALUE) return GetLastError();
    HANDLE handle = open_to_rename(to);
    DWORD code = handle == INVALID_HANDLE_VALUE ? GetLastError() : take_turns(fresh, handle, to);
    if (handle != INVALID_HANDLE_VALUE) (void)CloseHandle(handle);
    (void)CloseHandle(fresh);
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
    if (sfti_os_win_is_unsupported(code) || is_refused(code)) {
        code = move(from, to, MOVEFILE_REPLACE_EXISTING);
        if (is_refused(code)) code = replace_by_turns(from, to);
    }
    if (code == ERROR_SUCCESS) delete_left(to);
    return code;
}

static int rename_wide(const wchar_t *from, const wchar_t *to, bool no_clobber) {
    os_win_retry retry = { 0 };
    if (!no_clobber && is_folder_at(to) && !is_folder_at(from)) return EISDIR;
    for (;;) {
        DWORD code = no_clobber ? move(from, to, 0) : replace_once(from, to);
        bool again = is_refused(code) || (code == ERROR_ALREADY_EXISTS && !no_clobber);
        if (code == ERROR_SUCCESS) return 0;
        if (!again) return sfti_os_win_errno(code);
        if (!sfti_os_win_try_again(&retry)) return retry.over ? EINTR : sfti_os_win_errno(code);
    }
}

int sfti_os_rename(const char *from, const char *to, bool no_clobber) {
    wchar_t *wide_from, *wide_to;
    int error = sfti_os_win_path(from, &wide_from);
    if (error) return error;
    error = sfti_os_win_path(to, &wide_to);
    if (!error) {
        error = rename_wide(wide_from, wide_to, no_clobber);
        free(wide_to);
    }
    free(wide_from);
    return error;
}

int sfti_os_link(const char *from, const char *to) {
    wchar_t *wide_from, *wide_to;
    int error = sfti_os_win_path(from, &wide_from);
    if (error) return error;
    error = sfti_os_win_path(to, &wide_to);
    if (!error) {
        DWORD code = CreateHardLinkW(wide_to, wide_from, NULL) ? ERROR_SUCCESS : GetLastError();
        error = code == ERROR_SUCCESS             ? 0
              : code == ERROR_NOT_SAME_DEVICE     ? EXDEV
              : code == ERROR_INVALID_FUNCTION    ? EOPNOTSUPP
              : code == ERROR_NOT_SUPPORTED       ? EOPNOTSUPP
                                                  : sfti_os_win_errno(code);
        free(wide_to);
    }
    free(wide_from);
    return error;
}

/* As the Explorer does it: to the recycle bin, without a question; what has no bin there stays. */
int sfti_os_trash(const char *path) {
    typedef struct shell_operation { /* SHFILEOPSTRUCTW, of 64-bit systems */
        HWND window;
        UINT function;
        const wchar_t *from, *to;
        WORD flags;
        BOOL aborted;
        void *mappings;
        const wchar_t *title;
    } shell_operation;
    typedef int (WINAPI *operate_fn)(shell_operation *);
    enum { DELETE_THEM = 3, QUIET = 0x0004 | 0x0010 | 0x0400, TO_BIN = 0x0040,
           WARN_IF_NONE = 0x4000 };
    os_function found = sfti_os_library_function("shell32.dll", "SHFileOperationW");
    operate_fn operate;
    wchar_t *wide, *full;
    if (!found) return EOPNOTSUPP;
    memcpy(&operate, &found, sizeof operate);
    int error = sfti_os_win_path(path, &wide);
    if (error) return error;
    DWORD count = GetFullPathNameW(wide, 0, NULL, NULL);
    full = calloc((size_t)count + 2, sizeof *full); /* a list of one, which an empty one ends */
    if (!full) error = ENOMEM;
    else if (!GetFullPathNameW(wide, count, full, NULL)) error = ENOENT;
    shell_operation what = { .function = DELETE_THEM, .from = full,
                             .flags = QUIET | TO_BIN | WARN_IF_NONE };
    if (!error && (operate(&what) || what.aborted)) error = EACCES;
    free(full);
    free(wide);
    return error;
}
