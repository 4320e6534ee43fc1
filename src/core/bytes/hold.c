/* The lock on a file that is replaced. Tests: test_hold.c. */
#include "bytes/hold.h"
#include "bytes/source.h"

#include <errno.h>

#define HOLD_TRIES 8

sft_code sfti_fail_held(sft_error *err) {
    sft_code code = sfti_fail(err, SFT_EDIT_BUSY, "expected the file as it was opened, found "
                              "another program that changes it");
    if (err) err->os_errno = EAGAIN;
    return code;
}

sft_code sfti_fail_changed(sft_error *err) {
    return sfti_fail(err, SFT_EDIT_BUSY,
                     "expected the file as it was opened, found that it was changed since");
}

bool sfti_is_same_file(const os_info *then, const os_info *now) {
    return now->inode == then->inode && now->device == then->device && now->size == then->size
        && now->mtime_ns == then->mtime_ns && now->ctime_ns == then->ctime_ns;
}

/* Where a lock of flock() is one that keeps every other descriptor from reading (SMB on Linux),
 * this very command could not read what it holds. */
static bool locks_out_readers(const char *path) {
    int fd;
    char byte;
    size_t got;
    if (sfti_os_open_read(path, &fd)) return false;
    int error = sfti_read_all(fd, &byte, 1, 0, &got);
    (void)sfti_os_close(fd);
    return error == EACCES || error == EAGAIN;
}

/* For reading: to open for writing makes some file systems copy the file. Those that lock only
 * what may be written (NFS) get it so. */
static int lock_path(const char *path, sfti_file_lock *out) {
    int error = sfti_os_open_read(path, &out->fd);
    if (error) out->fd = -1;
    if (!error) error = sfti_os_info_fd(out->fd, &out->info);
    if (!error && out->info.kind == OS_FILE) error = sfti_os_lock(out->fd);
    if (error != EOPNOTSUPP) return error;
    (void)sfti_os_close(out->fd);
    error = sfti_os_open_write(path, &out->fd);
    if (error) out->fd = -1;
    if (!error) error = sfti_os_info_fd(out->fd, &out->info);
    return error ? error : sfti_os_lock(out->fd);
}

sft_code sfti_hold_take(const char *path, sfti_file_lock *out, sft_error *err) {
    os_info now;
    for (int tries = 0; tries < HOLD_TRIES; tries++) {
        int error = lock_path(path, out);
        if (!error && locks_out_readers(path)) error = EPERM;
        if (!error) error = sfti_os_info_path(path, true, &now);
        if (!error && now.inode == out->info.inode && now.device == out->info.device)
            return SFT_OK;
        sfti_hold_end(out);
        if (error == EAGAIN) return sfti_fail_held(err);
        /* Nobody edits what is not there or cannot be opened, and there may be no locks: what is
         * compared before publishing remains. */
        bool lockless = error == ENOENT || error == EACCES || error == EPERM || error == EROFS
                     || error == ELOOP || error == ENOTDIR || error == EOPNOTSUPP;
        if (lockless) return SFT_OK;
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "lock the file");
    }
    return sfti_fail_changed(err);
}

void sfti_hold_end(sfti_file_lock *hold) {
    if (hold->fd < 0) return;
    sfti_os_unlock(hold->fd);
    (void)sfti_os_close(hold->fd);
    hold->fd = -1;
}

sft_code sfti_hold_source(const sft_source *source, sft_error *err) {
    int fd = sfti_source_descriptor(source);
    return fd >= 0 && sfti_os_lock(fd) == EAGAIN ? sfti_fail_held(err) : SFT_OK;
}
