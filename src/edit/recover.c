#include "edit/edit.h"

#include <errno.h>

/* ── Recovery ── */

/* A file being mended. */
typedef struct mending {
    const char *path;
    sfti_journal_file journal;
    int fd;
    os_info info;
    bool force, no_sync;
    bool gone; /* somebody else has ended the edit meanwhile */
} mending;

static sft_code mend_refuse(const char *what, sft_error *err) {
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
              "expected the file that the journal of an interrupted edit tells of, found %s; "
              "both are left alone", what);
    sfti_journal_hint(err);
    return SFT_EDIT_INTERRUPTED;
}

static sft_code mend_half(const mending *m, sft_error *err) {
    uint64_t size = m->journal.word[SFTI_JW_SIZE], grown = m->journal.word[SFTI_JW_GROWN];
    uint64_t hole = size;
    (void)os_find_hole(m->fd, 0, &hole);
    if (hole > size) hole = size;
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
              "expected %llu bytes to have come in before the header, found it in its place "
              "and a hole at byte %llu: \"fallocate --collapse-range --offset %llu --length "
              "%llu FILE\" (or, at the end, \"truncate --size %llu FILE\") takes it out",
              (unsigned long long)grown, (unsigned long long)hole, (unsigned long long)hole,
              (unsigned long long)grown, (unsigned long long)size);
    if (err) err->hint = "keep a copy of file and journal; then \"safetensors meta recover "
                         "FILE\"";
    return SFT_EDIT_INTERRUPTED;
}

static sft_code mend_write(const mending *m, sft_error *err) {
    int error = sfti_journal_play_head(&m->journal, m->fd);
    if (!error) error = sfti_journal_play_data(&m->journal, m->fd, false);
    if (error) return sfti_io_fail(err, SFT_IO_WRITE, error, "finish an interrupted edit");
    return SFT_OK;
}

static sft_code mend_known(const mending *m, sft_edit_found *found, sft_error *err) {
    static const sft_span own = { NULL, 0 };
    const uint64_t *w = m->journal.word;
    sfti_journal_verdict v;
    int error = sfti_journal_compare(&m->journal, m->fd, m->info.size, own, &v);
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read what an edit changes");
    if (!v.came_in && m->info.size != w[SFTI_JW_SIZE])
        return mend_refuse("one of another length", err);
    if (!v.came_in && v.is_old) {
        *found = SFT_EDIT_OLD;
        return SFT_OK;
    }
    bool shorter = !v.came_in && w[SFTI_JW_GROWN] > 0; /* nothing came in, yet bytes changed */
    if (!shorter && v.is_either) {
        *found = SFT_EDIT_NEW;
        return v.is_new ? SFT_OK : mend_write(m, err);
    }
    if (v.came_in && v.is_old) return mend_half(m, err);
    return mend_refuse("bytes that are neither the old nor the new ones", err);
}

static sft_code mend_identity(const mending *m, sft_error *err) {
    const uint64_t *w = m->journal.word;
    if (m->info.kind != OS_FILE) return mend_refuse("something that is no file", err);
    bool inode = m->info.inode == w[SFTI_JW_INODE], device = m->info.device == w[SFTI_JW_DEVICE];
    if ((inode && device) || m->force) return SFT_OK;
    mend_refuse(inode ? "the same on another device" : "another file", err);
    if (err && m->info.size == w[SFTI_JW_SIZE])
        err->hint = "--force mends it all the same, where every byte fits (a copy of the file); "
                    "or remove the .NAME.sft-journal beside it, when the model is as it should be";
    return SFT_EDIT_INTERRUPTED;
}

static sft_code mend_lock(mending *m, sft_error *err) {
    int error = os_lock(m->fd);
    m->gone = error != EAGAIN && sfti_journal_is_gone(&m->journal);
    if (error != EAGAIN) return SFT_OK;
    sfti_fail(err, SFT_EDIT_BUSY, SFT_NO_OFFSET,
              "expected no other program to change the file, found one");
    if (err) err->os_errno = error;
    return SFT_EDIT_BUSY;
}

static sft_code mend_open_file(mending *m, sft_edit_found *found, sft_error *err) {
    sft_code code = mend_identity(m, err);
    if (code == SFT_OK) code = mend_lock(m, err);
    if (code != SFT_OK || m->gone) return code;
    int error = os_info_fd(m->fd, &m->info); /* of now, that it is locked */
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the file");
    code = sfti_journal_verify(&m->journal, true, err);
    if (code != SFT_OK) return code;
    if (m->journal.state != SFTI_JOURNAL_SOUND) return sfti_journal_refuse(&m->journal, err);
    code = mend_known(m, found, err);
    if (code != SFT_OK) return code;
    error = m->no_sync ? 0 : os_sync(m->fd);
    return error ? sfti_io_fail(err, SFT_IO_SYNC, error, "sync the file") : SFT_OK;
}

static sft_code mend_journal(mending *m, sft_edit_found *found, sft_error *err) {
    const sfti_journal_file *j = &m->journal;
    if (j->state == SFTI_JOURNAL_NONE) return SFT_OK;
    if (j->foreign || j->state != SFTI_JOURNAL_SOUND) return sfti_journal_refuse(j, err);
    sft_code code = mend_open_file(m, found, err);
    int error = code == SFT_OK && !m->gone ? sfti_journal_remove(m->path) : 0;
    if (error && error != ENOENT)
        return sfti_io_fail(err, SFT_IO_PUBLISH, error, "remove the journal of the edit");
    return code;
}

/* Nothing that a journal says is written unless
 *  1  the file is no link, and what is open is what its name led to (sfti_edit_open_file)
 *  2  the journal, open too, belongs to this user or to the owner of the open file, has one name,
 *     and nobody else may write to it (sfti_journal_open)
 *  3  it tells of this device and inode, or --force was given (mend_identity)
 *  4  checksum, ranges and both heads are right, and whatever is read of it from then on are the
 *     bytes of which that was found (sfti_journal_verify)
 *  5  the file's bytes are all the old or the new ones (mend_known) */
sft_code sfti_journal_recover(const char *path, const char *beneath, bool force, bool no_sync,
                              const sft_allocator *alloc, sft_edit_found *found,
                              sft_error *err) {
    sft_edit_found state = SFT_EDIT_CLEAN;
    os_info there;
    mending m = { .path = path, .fd = -1, .force = force, .no_sync = no_sync };
    int error = sfti_journal_there(path, &there);
    if (error && error != ENOENT)
        return sfti_io_fail(err, SFT_IO_READ, error, "look for the journal of an edit");
    if (found) *found = state;
    if (error) return SFT_OK;
    sft_code code = sfti_edit_open_file(path, beneath, true, &m.fd, &m.info, err);
    if (code != SFT_OK) return code;
    code = sfti_journal_open(path, &m.info, alloc, &m.journal, err);
    if (code == SFT_OK) code = mend_journal(&m, &state, err);
    (void)os_close(m.fd);
    sfti_journal_close(&m.journal);
    if (code == SFT_OK && found) *found = state;
    return code;
}
