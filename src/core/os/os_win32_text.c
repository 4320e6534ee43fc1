/* os.h on Windows: errors, text, paths. */
#include "os/os_win32.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── Errors ── */

typedef struct error_pair {
    DWORD code;
    int error;
} error_pair;

static const error_pair error_pairs[] = {
    { ERROR_INVALID_FUNCTION, EOPNOTSUPP },
    { ERROR_FILE_NOT_FOUND, ENOENT },
    { ERROR_PATH_NOT_FOUND, ENOENT },
    { ERROR_TOO_MANY_OPEN_FILES, EMFILE },
    { ERROR_ACCESS_DENIED, EACCES },
    { ERROR_INVALID_HANDLE, EBADF },
    { ERROR_NOT_ENOUGH_MEMORY, ENOMEM },
    { ERROR_OUTOFMEMORY, ENOMEM },
    { ERROR_INVALID_DRIVE, ENOENT },
    { ERROR_NOT_SAME_DEVICE, EXDEV },
    { ERROR_WRITE_PROTECT, EROFS },
    { ERROR_CRC, EIO },
    { ERROR_SHARING_VIOLATION, EBUSY },
    { ERROR_LOCK_VIOLATION, EBUSY },
    { ERROR_HANDLE_DISK_FULL, ENOSPC },
    { ERROR_NOT_SUPPORTED, EOPNOTSUPP },
    { ERROR_BAD_NETPATH, ENOENT },
    { ERROR_BAD_NET_NAME, ENOENT },
    { ERROR_FILE_EXISTS, EEXIST },
    { ERROR_INVALID_PARAMETER, EINVAL },
    { ERROR_DRIVE_LOCKED, EBUSY },
    { ERROR_BROKEN_PIPE, EPIPE },
    { ERROR_BUFFER_OVERFLOW, ENAMETOOLONG },
    { ERROR_DISK_FULL, ENOSPC },
    { ERROR_CALL_NOT_IMPLEMENTED, EOPNOTSUPP },
    { ERROR_INVALID_NAME, ENOENT },
    { ERROR_INVALID_LEVEL, EOPNOTSUPP },
    { ERROR_MOD_NOT_FOUND, ENOENT },
    { ERROR_DIR_NOT_EMPTY, ENOTEMPTY },
    { ERROR_BAD_PATHNAME, ENOENT },
    { ERROR_BUSY, EBUSY },
    { ERROR_ALREADY_EXISTS, EEXIST },
    { ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG },
    { ERROR_FILE_TOO_LARGE, EFBIG },
    { ERROR_NO_DATA, EPIPE },
    { ERROR_PIPE_NOT_CONNECTED, EPIPE },
    { ERROR_DIRECTORY, ENOTDIR },
    { ERROR_DELETE_PENDING, ENOENT },
    { ERROR_NOACCESS, EFAULT },
    { ERROR_OPERATION_ABORTED, EINTR },
    { ERROR_IO_DEVICE, EIO },
    { ERROR_USER_MAPPED_FILE, ETXTBSY },
    { 1295, ENOSPC }, /* a quota */
    { ERROR_PRIVILEGE_NOT_HELD, EPERM },
    { ERROR_FILE_CORRUPT, EIO },
    { ERROR_NO_SYSTEM_RESOURCES, ENOMEM },
    { ERROR_WORKING_SET_QUOTA, ENOMEM },
    { ERROR_PAGEFILE_QUOTA, ENOMEM },
    { ERROR_COMMITMENT_LIMIT, ENOMEM },
    { ERROR_CANT_ACCESS_FILE, ELOOP },
    { ERROR_CANT_RESOLVE_FILENAME, ELOOP },
    { ERROR_NOT_A_REPARSE_POINT, EINVAL },
};

int sfti_os_win_errno(DWORD code) {
    for (size_t i = 0; i < sizeof error_pairs / sizeof *error_pairs; i++)
        if (error_pairs[i].code == code) return error_pairs[i].error;
    return code == 0 ? EIO : WIN_ERROR_BASE + (int)(code & 0xffff);
}

int sfti_os_win_errno_status(NTSTATUS status) {
    return sfti_os_win_errno(RtlNtStatusToDosError(status));
}

int sfti_os_win_last(void) {
    return sfti_os_win_errno(GetLastError());
}

bool sfti_os_win_is_unsupported(DWORD code) {
    return code == ERROR_INVALID_FUNCTION || code == ERROR_NOT_SUPPORTED ||
           code == ERROR_INVALID_PARAMETER || code == ERROR_CALL_NOT_IMPLEMENTED ||
           code == ERROR_INVALID_LEVEL;
}

bool sfti_os_win_is_held(DWORD code) {
    return code == ERROR_SHARING_VIOLATION || code == ERROR_LOCK_VIOLATION;
}

typedef struct error_text {
    int error;
    const char *text;
} error_text;

/* Those of POSIX in the words of other systems; the C library here has others, or none. */
static const error_text error_texts[] = {
    { EPERM, "Operation not permitted" },
    { ENOENT, "No such file or directory" },
    { EINTR, "Interrupted system call" },
    { EIO, "Input/output error" },
    { EBADF, "Bad file descriptor" },
    { EAGAIN, "Resource temporarily unavailable" },
    { ENOMEM, "Cannot allocate memory" },
    { EACCES, "Permission denied" },
    { EFAULT, "Bad address" },
    { EBUSY, "In use by another program" },
    { EEXIST, "File exists" },
    { EXDEV, "Invalid cross-device link" },
    { ENODEV, "No such device" },
    { ENOTDIR, "Not a directory" },
    { EISDIR, "Is a directory" },
    { EINVAL, "Invalid argument" },
    { EMFILE, "Too many open files" },
    { EFBIG, "File too large" },
    { ENOSPC, "No space left on device" },
    { EROFS, "Read-only file system" },
    { EPIPE, "Broken pipe" },
    { ENAMETOOLONG, "File name too long" },
    { ENOTEMPTY, "Directory not empty" },
    { EILSEQ, "Invalid or incomplete multibyte or wide character" },
    { ELOOP, "Too many levels of symbolic links" },
    { EOPNOTSUPP, "Operation not supported" },
    { EOVERFLOW, "Value too large for defined data type" },
    { ETXTBSY, "Mapped into memory by a program" },
    /* of sockets, as libcurl has them from winsock2.h */
    { 10013, "Permission denied" },
    { 10049, "Cannot assign requested address" },
    { 10050, "Network is down" },
    { 10051, "Network is unreachable" },
    { 10053, "Connection aborted" },
    { 10054, "Connection reset by peer" },
    { 10055, "No buffer space available" },
    { 10060, "Connection timed out" },
    { 10061, "Connection refused" },
    { 10065, "No route to host" },
};

static const char *system_text(DWORD code, char *buffer, size_t len) {
    wchar_t wide[200];
    DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
                  FORMAT_MESSAGE_MAX_WIDTH_MASK;
    DWORD count = FormatMessageW(flags, NULL, code, 0, wide, 200, NULL);
    while (count > 0 && (wide[count - 1] == L' ' || wide[count - 1] == L'.')) count--;
    size_t bytes = count > 0 ? sfti_os_win_narrow(wide, count, buffer, len) : 0;
    if (bytes == 0 || bytes >= len) (void)snprintf(buffer, len, "system error %u", (unsigned)code);
    return buffer;
}

const char *sfti_os_error_text(int error, char *buffer, size_t len) {
    if (len == 0) return "";
    if (error >= WIN_ERROR_BASE) return system_text((DWORD)(error - WIN_ERROR_BASE), buffer, len);
    for (size_t i = 0; i < sizeof error_texts / sizeof *error_texts; i++)
        if (error_texts[i].error == error) return error_texts[i].text;
    (void)snprintf(buffer, len, "Unknown error %d", error);
    return buffer;
}

/* ── Text ── */

/* One character of *at, and *at behind it; UINT32_MAX: these bytes are none. */
static uint32_t text_next(const unsigned char **at) {
    const unsigned char *p = *at;
    uint32_t lead = p[0];
    size_t more = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    uint32_t c = more == 0 ? lead : lead & (0x3fu >> more);
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4) return UINT32_MAX;
    for (size_t i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) return UINT32_MAX;
        c = c << 6 | (p[i] & 0x3fu);
    }
    bool longer = (more == 2 && c < 0x800) || (more == 3 && (c < 0x10000 || c > 0x10ffff));
    *at = p + 1 + more;
    return longer ? UINT32_MAX : c;
}

int sfti_os_win_wide(const char *text, wchar_t **out) {
    const unsigned char *at = (const unsigned char *)text;
    size_t count = 0;
    wchar_t *wide = malloc((strlen(text) + 1) * sizeof *wide);
    *out = NULL;
    if (!wide) return ENOMEM;
    while (*at) {
        uint32_t c = text_next(&at);
        if (c == UINT32_MAX) {
            free(wide);
            return EILSEQ;
        }
        if (c >= 0x10000) {
            wide[count++] = (wchar_t)(0xd7c0 + (c >> 10));
            c = 0xdc00 | (c & 0x3ff);
        }
        wide[count++] = (wchar_t)c;
    }
    wide[count] = 0;
    *out = wide;
    return 0;
}

static size_t put_character(uint32_t c, char *out, size_t at, size_t cap) {
    unsigned char bytes[4];
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = len; i-- > 1; c >>= 6) bytes[i] = (unsigned char)(0x80 | (c & 0x3f));
    bytes[0] = (unsigned char)(lead[len] | c);
    for (size_t i = 0; i < len; i++)
        if (at + i < cap) out[at + i] = (char)bytes[i];
    return len;
}

size_t sfti_os_win_narrow(const wchar_t *wide, size_t count, char *out, size_t cap) {
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t c = wide[i];
        bool pair = c >= 0xd800 && c < 0xdc00 && i + 1 < count && wide[i + 1] >= 0xdc00 &&
                    wide[i + 1] < 0xe000;
        if (pair) c = 0x10000 + ((c & 0x3ff) << 10) + (wide[++i] & 0x3ffu);
        len += put_character(c, out, len, cap);
    }
    if (len < cap) out[len] = '\0';
    return len;
}

/* ── Paths ── */

/* Where the system's own limits for short paths begin: of a folder, with a name of 8.3 in it. */
#define LONG_FROM 248

static const wchar_t long_prefix[] = L"\\\\?\\", long_unc[] = L"\\\\?\\UNC\\";

static bool begins_with(const wchar_t *path, const wchar_t *prefix) {
    return wcsncmp(path, prefix, wcslen(prefix)) == 0;
}

/* The whole path, for the system makes none of a long one. */
static int path_long(const wchar_t *path, DWORD count, wchar_t **out) {
    bool unc = begins_with(path, L"\\\\");
    const wchar_t *prefix = unc ? long_unc : long_prefix;
    size_t before = wcslen(prefix) - (unc ? 2 : 0);
    wchar_t *whole = malloc((before + count + 1) * sizeof *whole);
    if (!whole) return ENOMEM;
    DWORD got = GetFullPathNameW(path, count, whole + before, NULL);
    if (got == 0 || got >= count) {
        free(whole);
        return got == 0 ? sfti_os_win_last() : ENAMETOOLONG;
    }
    /* A relative path in a folder of a share has become one of that share. */
    bool shared = begins_with(whole + before, L"\\\\");
    if (shared && !unc) {
        wchar_t *again = NULL;
        int error = path_long(whole + before, count, &again);
        free(whole);
        *out = again;
        return error;
    }
    memcpy(whole, prefix, wcslen(prefix) * sizeof *whole);
    *out = whole;
    return 0;
}

int sfti_os_win_path(const char *path, wchar_t **out) {
    wchar_t *wide;
    *out = NULL;
    if (!*path) return ENOENT;
    int error = sfti_os_win_wide(path, &wide);
    if (error) return error;
    for (wchar_t *c = wide; *c; c++)
        if (*c == L'/') *c = L'\\';
    *out = wide;
    if (begins_with(wide, long_prefix) || begins_with(wide, L"\\\\.\\")) return 0;
    DWORD count = GetFullPathNameW(wide, 0, NULL, NULL); /* with the NUL */
    if (count <= LONG_FROM) return 0;
    error = path_long(wide, count, out);
    free(wide);
    return error;
}

int sfti_os_win_path_text(const wchar_t *wide, size_t count, char *out, size_t cap) {
    size_t skip = 0, len;
    bool unc = count >= 8 && wcsncmp(wide, long_unc, 8) == 0;
    if (unc) skip = 6;
    else if (count >= 6 && wcsncmp(wide, long_prefix, 4) == 0 && wide[5] == L':') skip = 4;
    len = sfti_os_win_narrow(wide + skip, count - skip, out, cap);
    if (len >= cap) return ENAMETOOLONG;
    if (unc) out[0] = '/';
    for (size_t i = 0; i < len; i++)
        if (out[i] == '\\') out[i] = '/';
    return 0;
}

/* ── Names ── */

static wchar_t upper(wchar_t c) {
    return c >= L'a' && c <= L'z' ? (wchar_t)(c - L'a' + L'A') : c;
}

static bool is_name(const wchar_t *name, size_t count, const char *want) {
    size_t i = 0;
    for (; i < count && want[i]; i++)
        if (upper(name[i]) != (wchar_t)want[i]) return false;
    return i == count && !want[i];
}

/* With any extension, in any folder. Some digits are also written as superscripts. */
static bool is_device(const wchar_t *name, size_t count) {
    static const char *const devices[] = { "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$" };
    size_t stem = 0;
    while (stem < count && name[stem] != L'.') stem++;
    while (stem > 0 && name[stem - 1] == L' ') stem--;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (is_name(name, stem, devices[i])) return true;
    if (stem != 4) return false;
    wchar_t d = name[3];
    bool digit = (d >= L'0' && d <= L'9') || d == 0xb9 || d == 0xb2 || d == 0xb3;
    return digit && (is_name(name, 3, "COM") || is_name(name, 3, "LPT"));
}

bool sfti_os_win_name_is_plain(const wchar_t *name, size_t count) {
    if (count == 0 || name[count - 1] == L'.' || name[count - 1] == L' ') return false;
    for (size_t i = 0; i < count; i++)
        if (name[i] < 32 || wcschr(L"\\/:*?\"<>|", name[i])) return false;
    return !is_device(name, count);
}
