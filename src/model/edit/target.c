/* The file that an edit changes, locked and as it was opened. Tests: test_edit_odd.c. */
#include "base/endian.h"
#include "bytes/hold.h"
#include "edit/edit.h"

#include <errno.h>
#include <string.h>

static sft_code open_swapped(const char *found, sft_error *err) {
    return sfti_fail(err, SFT_EDIT_BUSY,
                     "expected the file that the path led to a moment ago, found %s", found);
}

sft_code sfti_edit_open_file(const char *path, const char *beneath, bool writable, int *fd,
                             os_info *info, sft_error *err) {
    os_info seen;
    *fd = -1;
    int error = sfti_os_info_path(path, false, &seen);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the file");
    if (seen.kind == OS_LINK) return open_swapped("a symbolic link", err);
    os_beneath how = writable ? OS_BENEATH_WRITE : OS_BENEATH_OWN;
    sft_code code = sfti_open_beneath(path, beneath, how, fd, NULL, err);
    if (!code && (error = sfti_os_info_fd(*fd, info)) != 0)
        code = sfti_io_fail(err, SFT_IO_OPEN, error, "look at the file");
    if (!code && (seen.inode != info->inode || seen.device != info->device))
        code = open_swapped("another", err);
    if (!code) return SFT_OK;
    if (*fd >= 0) (void)sfti_os_close(*fd);
    *fd = -1;
    return code;
}

/* ── The file to be changed ── */

sft_code sfti_edit_same(const sft_edit *edit, int fd, sft_error *err) {
    const os_info *then = &edit->info;
    for (int look = fd < 0; look < 2; look++) { /* at what is open, and at what has the name */
        os_info now;
        int error = look ? sfti_os_info_path(edit->path, edit->is_link, &now)
                         : sfti_os_info_fd(fd, &now);
        if (error)
            return sfti_io_fail(err, SFT_IO_OPEN, error,
                                look ? "look at the file again" : "look at the file");
        if (now.inode != then->inode || now.device != then->device || now.size != then->size ||
            now.mtime_ns != then->mtime_ns)
            return sfti_fail_changed(err);
    }
    return SFT_OK;
}

sft_code sfti_target_open(sft_edit *edit, sfti_target *target, sft_error *err) {
    char piece[4096];
    sft_span header = sft_file_header(edit->file);
    target->old_len = SFTI_PREFIX + header.len;
    target->fd = -1;
    target->old_head = sfti_take(&edit->alloc, target->old_len);
    if (!target->old_head) return sfti_fail_memory(err, target->old_len);
    sfti_put_u64(target->old_head, header.len);
    memcpy(target->old_head + SFTI_PREFIX, header.data, header.len);
    os_info now;
    int error;
    if (edit->is_link) { /* nothing is written through it: the new file takes its place */
        error = sfti_os_open_write(edit->path, &target->fd);
        if (error) target->fd = -1;
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open the file for writing");
    } else {
        sft_code code = sfti_edit_open_file(edit->path, edit->beneath, true, &target->fd, &now,
                                            err);
        if (code) return code;
    }
    error = sfti_os_lock(target->fd);
    if (error == EAGAIN) return sfti_fail_held(err);
    sft_code code = sfti_edit_same(edit, target->fd, err);
    if (code) return code;
    /* the header that was read is still there */
    for (size_t at = 0; at < target->old_len;) {
        size_t got = 0, left = target->old_len - at;
        size_t want = left < sizeof piece ? left : sizeof piece;
        error = sfti_os_pread(target->fd, piece, want, at, &got);
        if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read the header again");
        if (got == 0 || memcmp(piece, target->old_head + at, got) != 0)
            return sfti_fail(err, SFT_EDIT_BUSY,
                             "expected the file as it was opened, found another header");
        at += got;
    }
    return SFT_OK;
}
