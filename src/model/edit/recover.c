/* Recovery of edits and replacements that were interrupted. Tests: test_edit_journal.c. */
#include "edit/edit.h"

#include "bytes/replaced.h"
#include "os/path.h"

#include <errno.h>
#include <string.h>

/* ── Recovery ── */

/* A file and the journal of an edit that was interrupted. */
typedef struct recovery {
    const char *path;
    sfti_journal_file journal;
    int fd;
    os_info info;
    bool force, no_sync;
    bool gone; /* another program has completed the edit meanwhile */
} recovery;

static sft_code recovery_refuse(const char *what, sft_error *err) {
    sfti_fail(err, SFT_EDIT_INTERRUPTED, "expected the file that the journal of an interrupted "
              "edit tells of, found %s; both are left alone", what);
    sfti_hint(err, SFT_HINT_JOURNAL_REMOVE);
    return SFT_EDIT_INTERRUPTED;
}

static sft_code refuse_half_inserted(const recovery *m, sft_error *err) {
    uint64_t size = m->journal.word[SFTI_JW_SIZE], grown = m->journal.word[SFTI_JW_GROWN];
    uint64_t hole = size;
    (void)sfti_os_find_hole(m->fd, 0, &hole);
    if (hole > size) hole = size;
    sfti_fail(err, SFT_EDIT_INTERRUPTED, "expected %llu bytes inserted before the header, found "
              "the header in its place and a hole of %llu bytes at byte %llu of a file of %llu "
              "bytes", (unsigned long long)grown, (unsigned long long)grown,
              (unsigned long long)hole, (unsigned long long)size);
    sfti_hint(err, SFT_HINT_RECOVER_HOLE);
    return SFT_EDIT_INTERRUPTED;
}

static sft_code recovery_complete(const recovery *m, sft_edit_found *found, sft_error *err) {
    static const sft_span own = { NULL, 0 };
    const uint64_t *w = m->journal.word;
    sfti_journal_verdict v;
    int error = sfti_journal_compare(&m->journal, m->fd, m->info.size, own, &v);
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read what an edit changes");
    if (!v.came_in && m->info.size != w[SFTI_JW_SIZE])
        return recovery_refuse("one of another length", err);
    if (!v.came_in && v.is_old) {
        *found = SFT_EDIT_OLD;
        return SFT_OK;
    }
    bool shorter = !v.came_in && w[SFTI_JW_GROWN] > 0; /* nothing was inserted, yet bytes changed */
    if (!shorter && v.is_either) {
        *found = SFT_EDIT_NEW;
        if (v.is_new) return SFT_OK;
        error = sfti_journal_apply_head(&m->journal, m->fd);
        if (!error) error = sfti_journal_apply_data(&m->journal, m->fd, false);
        return error ? sfti_io_fail(err, SFT_IO_WRITE, error, "finish an interrupted edit")
                     : SFT_OK;
    }
    if (v.came_in && v.is_old) return refuse_half_inserted(m, err);
    return recovery_refuse("bytes that are neither the old nor the new ones", err);
}

static sft_code check_identity(const recovery *m, sft_error *err) {
    const uint64_t *w = m->journal.word;
    if (m->info.kind != OS_FILE) return recovery_refuse("something that is no file", err);
    bool inode = m->info.inode == w[SFTI_JW_INODE], device = m->info.device == w[SFTI_JW_DEVICE];
    if ((inode && device) || m->force) return SFT_OK;
    recovery_refuse(inode ? "the same on another device" : "another file", err);
    if (m->info.size == w[SFTI_JW_SIZE]) sfti_hint(err, SFT_HINT_RECOVER_OR_REMOVE);
    return SFT_EDIT_INTERRUPTED;
}

/* Without locks nobody can tell an interrupted edit from one that goes on. */
static sft_code recovery_lock(recovery *m, sft_error *err) {
    int error = sfti_os_lock(m->fd);
    bool held = error == EAGAIN;
    m->gone = !held && sfti_journal_is_gone(&m->journal);
    if (error == 0 || m->gone || (!held && m->force)) return SFT_OK;
    sfti_fail(err, SFT_EDIT_BUSY,
              held ? "expected no other program to change the file, found one"
                   : "expected an interrupted edit, found the journal of one that may go on: the "
                     "file system has no locks to tell");
    if (err) err->os_errno = error;
    if (!held) sfti_hint(err, SFT_HINT_RECOVER_UNLOCKED);
    return SFT_EDIT_BUSY;
}

static sft_code recover_file(recovery *m, sft_edit_found *found, sft_error *err) {
    sft_code code = check_identity(m, err);
    if (!code) code = recovery_lock(m, err);
    if (code || m->gone) return code;
    int error = sfti_os_info_fd(m->fd, &m->info); /* of now, that it is locked */
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the file");
    code = sfti_journal_verify(&m->journal, true, err);
    if (code) return code;
    if (m->journal.state != SFTI_JOURNAL_SOUND) return sfti_journal_refuse(&m->journal, err);
    code = recovery_complete(m, found, err);
    if (code) return code;
    error = m->no_sync ? 0 : sfti_os_sync(m->fd);
    return error ? sfti_io_fail(err, SFT_IO_SYNC, error, "sync the file") : SFT_OK;
}

/* Steps; nothing is written before 6, and only if all before it holds:
 *  1  the file is opened; it is not a link, and it is what its name led to (sfti_edit_open_file)
 *  2  the journal is opened; it belongs to this user or to the owner of the open file, has one
 *     name, and nobody else may write to it (sfti_journal_open)
 *  3  it names this device and inode, or force is set (check_identity)
 *  4  the file is locked, or force is set where there are no locks: no editor is at work, and the
 *     journal is still there (recovery_lock)
 *  5  its checksum, ranges and both heads are right, what is read of it from here on is what was
 *     verified, and each byte of the file is the old or the new one (sfti_journal_verify,
 *     recovery_complete)
 *  6  the new bytes are written, unless all are the old ones: a crash leaves a mix and the
 *     journal, as it was found
 *  7  the file is synced: a crash leaves the old or the new file, and the journal
 *  8  the journal is removed */
sft_code sfti_journal_recover(const char *path, const char *beneath, bool force, bool no_sync,
                              const sft_allocator *alloc, sft_edit_found *found,
                              sft_error *err) {
    sft_edit_found state = SFT_EDIT_CLEAN;
    os_info there;
    recovery m = { .path = path, .fd = -1, .force = force, .no_sync = no_sync };
    char name[SFTI_JOURNAL_PATH];
    int error = sfti_journal_path(path, name) ? sfti_os_info_path(name, false, &there) : ENOENT;
    if (error && error != ENOENT)
        return sfti_io_fail(err, SFT_IO_READ, error, "look for the journal of an edit");
    if (found) *found = state;
    if (error) return SFT_OK;
    sft_code code = sfti_edit_open_file(path, beneath, true, &m.fd, &m.info, err);
    if (code) return code;
    const sfti_journal_file *j = &m.journal;
    code = sfti_journal_open(path, &m.info, alloc, &m.journal, err);
    if (!code && j->state != SFTI_JOURNAL_NONE) {
        bool sound = !j->foreign && j->state == SFTI_JOURNAL_SOUND;
        code = sound ? recover_file(&m, &state, err) : sfti_journal_refuse(j, err);
        error = !code && !m.gone ? sfti_journal_remove(path) : 0;
        if (error && error != ENOENT)
            code = sfti_io_fail(err, SFT_IO_PUBLISH, error, "remove the journal of the edit");
    }
    sfti_os_unlock(m.fd);
    (void)sfti_os_close(m.fd);
    sfti_journal_close(&m.journal);
    if (!code && found) *found = state;
    return code;
}

/* ── A replacement that was interrupted ── */

static sft_code replaced_refuse(const char *old, const char *found, sft_error *err) {
    sfti_fail(err, SFT_EDIT_INTERRUPTED, "expected one file of yours that an interrupted "
              "replacement left, found %s; %s is left alone", found, old + sfti_folder_len(old));
    sfti_hint(err, SFT_HINT_NONE);
    return SFT_EDIT_INTERRUPTED;
}

static sft_code replaced_check(const char *path, const char *old, size_t count, sft_error *err) {
    char folder[4096];
    os_info info, above;
    if (count > 1) return replaced_refuse(old, "several", err);
    int error = sfti_folder_copy(path, folder, sizeof folder) ? 0 : ENAMETOOLONG;
    if (!error) error = sfti_os_info_path(folder, true, &above);
    if (!error) error = sfti_os_info_path(old, false, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at a file that was replaced");
    /* What was planted must not take the name: a link, another's file, one with further names. */
    bool own = info.owner == sfti_os_user() || info.owner == above.owner;
    if (info.kind != OS_FILE) return replaced_refuse(old, "something that is no file", err);
    if (!own) return replaced_refuse(old, "a file of another user", err);
    return info.links > 1 ? replaced_refuse(old, "a file with several names", err) : SFT_OK;
}

/* Steps:
 *  1  nothing is at path, and beside it is one file that stepped out of the way of a new one: it is
 *     no link, belongs to this user or to the folder's owner, and has one name
 *  2  it gets its name back, unless that is taken by now: a crash leaves one or the other
 *  3  the folder is synced */
sft_code sfti_replaced_recover(const char *path, bool no_sync, sft_edit_found *found,
                               sft_error *err) {
    char old[SFTI_OLD_PATH];
    size_t count = sfti_old_find(path, old);
    if (count == 0) return SFT_OK;
    sft_code code = replaced_check(path, old, count, err);
    if (code) return code;
    int error = sfti_rename_new(old, path);
    if (error == EEXIST) return SFT_OK;
    if (!error) *found = SFT_EDIT_OLD;
    if (!error && !no_sync) error = sfti_sync_parent(path);
    return error ? sfti_io_fail(err, SFT_IO_PUBLISH, error, "give a file its name back") : SFT_OK;
}
