/* What the files of os.h on Windows share: handles, paths, errors, retries. */
#ifndef SFTI_OS_WIN32_H
#define SFTI_OS_WIN32_H

#ifndef UNICODE
#define UNICODE
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00

#include <windows.h>
#include <winioctl.h>
#include <winternl.h>
/* Words of 16-bit Windows, which are names elsewhere in the two-file bundle. */
#undef far
#undef near

#include "os/os.h"

/* ── Errors ── */

/* An error of the system as an errno; what has none is WIN_ERROR_BASE more than it was. */
#define WIN_ERROR_BASE 0x10000
int sfti_os_win_errno(DWORD code);
int sfti_os_win_errno_status(NTSTATUS status);
int sfti_os_win_last(void);
/* The system does not know such a call, or not for this file. */
bool sfti_os_win_is_unsupported(DWORD code);

/* Scanners of viruses and indexers hold files for a moment: who finds one held tries again, for
 * WIN_RETRY_MS in all. */
#define WIN_RETRY_MS 2000
typedef struct os_win_retry {
    uint64_t until_ns;
    uint32_t ms;
    bool over; /* a signal came: EINTR */
} os_win_retry;
bool sfti_os_win_is_held(DWORD code); /* shared or locked otherwise */
/* Whether ERROR_ACCESS_DENIED may pass. A scanner causes it for a moment where a plain file is
 * opened to be written or removed; of a folder or a read-only file it is final. */
bool sfti_os_win_is_denied_a_while(DWORD access, DWORD attributes);
/* Sleep before one more try; false when there is to be none. */
bool sfti_os_win_try_again(os_win_retry *retry);
/* How often that was true since the process began; for tests. */
uint64_t sfti_os_win_retries(void);

/* ── Text and paths ── */

/* UTF-8 in which surrogates may stand alone, as they may in names of files. */
int sfti_os_win_wide(const char *text, wchar_t **out); /* to be freed; EILSEQ */
/* Bytes of it without the NUL; out holds it if that is less than cap. */
size_t sfti_os_win_narrow(const wchar_t *wide, size_t count, char *out, size_t cap);
/* A path for the system: with backslashes, and with \\?\ where it is long. To be freed. */
int sfti_os_win_path(const char *path, wchar_t **out);
/* The same the other way: without \\?\, with slashes. */
int sfti_os_win_path_text(const wchar_t *wide, size_t count, char *out, size_t cap);
/* A name that cannot stand for another one: no device, no stream, no ending that is dropped. */
bool sfti_os_win_name_is_plain(const wchar_t *name, size_t count);

/* ── Descriptors ── */

/* Those of the C library are below this (it has 8192 at most), ours begin here. */
#define WIN_FIRST_FD 8192

#define WIN_SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)
#define WIN_READ_INFO (FILE_READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE)

typedef struct os_win_file {
    HANDLE handle;
    HANDLE direct; /* the same file past the cache, or NULL */
    uint64_t at;   /* of sfti_os_read and sfti_os_write */
    bool folder, locked;
} os_win_file;

/* Takes the handle, which is closed if there is no room: EMFILE, ENOMEM. */
int sfti_os_win_fd_new(HANDLE handle, bool folder, int *fd);
os_win_file *sfti_os_win_file_of(int fd); /* NULL: none of ours */
HANDLE sfti_os_win_handle(int fd);     /* INVALID_HANDLE_VALUE: there is none */

/* Locks forbid others to read what is locked: a byte far behind all data. */
#define WIN_LOCK_AT ((uint64_t)1 << 62)
void sfti_os_win_unlock(HANDLE handle);

typedef struct os_win_open {
    DWORD access, share, creation, flags, attributes;
} os_win_open;
/* What ERROR_ACCESS_DENIED may stand for. */
NTSYSAPI NTSTATUS NTAPI RtlGetLastNtStatus(void);
#define WIN_STATUS_DELETED ((NTSTATUS)0xC0000056) /* once the last handle is closed */
#define WIN_STATUS_IN_USE ((NTSTATUS)0xC0000121)  /* STATUS_CANNOT_DELETE: it is mapped */
#define WIN_STATUS_GONE ((NTSTATUS)0xC0000123)    /* STATUS_FILE_DELETED: by another program */
/* With retries. */
int sfti_os_win_transfer(int fd, bool put, void *bytes, size_t len, uint64_t offset, size_t *done);
int sfti_os_win_open_path(const wchar_t *path, const os_win_open *how, HANDLE *out);

/* An event for one call, from a few that are kept. */
HANDLE sfti_os_win_event_take(void);
void sfti_os_win_event_give(HANDLE event);

/* What a call on a handle that may be one of an asynchronous file has told. */
DWORD sfti_os_win_io_end(HANDLE handle, OVERLAPPED *o, BOOL ok, DWORD *count);
DWORD sfti_os_win_control(HANDLE handle, DWORD code, const void *in, DWORD in_len, void *out,
                  DWORD out_len, DWORD *count);

int sfti_os_win_info(HANDLE handle, os_info *out);
/* Owner and who else may write: out->owner and the write bits of out->mode. */
void sfti_os_win_info_owner(HANDLE handle, os_info *out);
/* Whose files are the system's: its own, its administrators', its installer's. */
bool sfti_os_win_is_system(PSID sid);
bool sfti_os_win_is_folder(HANDLE handle);
DWORD sfti_os_win_tag(HANDLE handle); /* 0: opened is no reparse point */
bool sfti_os_win_tag_is_link(DWORD tag);
/* Opened as it stands in its folder, but no link: opened again if its bytes are elsewhere, which
 * only such an open fetches. */
int sfti_os_win_open_through(const os_win_open *how, HANDLE *handle);
/* What the link says that is open here; EINVAL: it is none. */
int sfti_os_win_link_text(HANDLE handle, char *out, size_t cap);

/* ── Names ── */

/* The handles have DELETE and FILE_WRITE_ATTRIBUTES. */
int sfti_os_win_delete(HANDLE handle);
/* The same with retries, and the name is free at once. */
int sfti_os_win_unlink(HANDLE handle);
/* posix: flags are those of FileRenameInfoEx; else nothing is replaced. */
DWORD sfti_os_win_rename(HANDLE handle, const wchar_t *to, bool posix, DWORD flags);
/* The last part of a path with backslashes. */
const wchar_t *sfti_os_win_name_of(const wchar_t *path);
/* FOLDER\.NAME and the ending, which has up to WIN_SIBLING_LETTERS X from *letters on; to be freed,
 * or NULL. */
#define WIN_SIBLING_LETTERS 8
wchar_t *sfti_os_win_sibling(const wchar_t *path, const wchar_t *ending, wchar_t **letters);
/* Rename to a sibling that is not there, with other letters. */
DWORD sfti_os_win_step_out(HANDLE handle, wchar_t *sibling, wchar_t *letters);

#endif
