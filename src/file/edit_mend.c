#include "base/error.h"
#include "file/file.h"
#include "file/journal.h"

#include <errno.h>

/* What a person can do about a journal that we leave alone. */
static void hint_by_hand(sft_error *err) {
    if (err)
        err->hint = "look at the file .NAME.sft-journal beside it; remove that when the model "
                    "is as it should be";
}

/* It says nothing that is followed; only its owner knows whether it is one. */
static sft_code journal_foreign(const sfti_journal_file *j, sft_error *err) {
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
              "expected a journal of an edit by this user or the file's owner, found %s (user "
              "%u); it is left alone", j->foreign, (unsigned)j->owner);
    if (err)
        err->hint = "nothing is written by its word: ask whose file .NAME.sft-journal is, and "
                    "have it removed if it is not the trace of an edit; -o OUT writes a changed "
                    "copy";
    return SFT_EDIT_INTERRUPTED;
}

static sft_code journal_bad(const sfti_journal_file *j, sft_error *err) {
    if (j->foreign) return journal_foreign(j, err);
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET, "expected the journal of an edit, "
              "found %s; it is left alone", j->wrong);
    hint_by_hand(err);
    return SFT_EDIT_INTERRUPTED;
}

/* ── Looking ── */

/* What stands where the journal would; the errno. */
static int journal_there(const char *path, os_info *there) {
    char name[SFTI_JOURNAL_PATH];
    return sfti_journal_path(path, name) ? os_info_path(name, false, there) : ENOENT;
}

/* A file that was just opened, and a journal beside it. */
typedef struct looking {
    const char *path;
    const os_info *info;
    sft_span header; /* data NULL: the file's own */
    bool is_broken;  /* it could not be read as a model */
    bool *foreign;   /* NULL, or where a stranger's journal is told of */
    sfti_journal_file journal;
} looking;

static sft_code look_tell(const looking *l, bool ours, sft_error *err) {
    if (l->journal.foreign) return journal_foreign(&l->journal, err);
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
              ours ? "expected a file as before or after a change of it, found an edit that was "
                     "interrupted and has left its journal"
                   : "expected a file as before or after a change of it, found the copy of one "
                     "in the middle of an edit, with its journal");
    if (err && !ours)
        err->hint = "\"safetensors meta recover --force FILE\" mends a copy";
    return SFT_EDIT_INTERRUPTED;
}

/* Held against the bytes that are there now, by another descriptor: the one it was opened with
 * may be closed. Another file by now: what was opened is out of an editor's reach. */
static sft_code look_compare(looking *l, sfti_journal_verdict *v, bool *same, sft_error *err) {
    os_info now;
    int fd, error = os_open_read(l->path, &fd);
    *same = false;
    if (error == ENOENT) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    error = os_info_fd(fd, &now);
    *same = !error && now.inode == l->info->inode && now.device == l->info->device;
    if (*same) error = sfti_journal_compare(&l->journal, fd, l->info->size, l->header, v);
    (void)os_close(fd);
    return error ? sfti_io_fail(err, SFT_IO_READ, error, "read what an edit changes") : SFT_OK;
}

static sft_code look_sound(looking *l, bool ours, sft_error *err) {
    sfti_journal_verdict v;
    bool same;
    sft_code code = look_compare(l, &v, &same, err);
    if (code != SFT_OK || !same) return code;
    bool whole = v.came_in || l->journal.word[SFTI_JW_GROWN] == 0 ? v.is_new : false;
    if (!v.came_in) whole = whole || v.is_old;
    if (whole || (!ours && !v.is_either)) return SFT_OK;
    return look_tell(l, ours, err);
}

/* Another file's journal counts only if this is a copy that was torn: its length and all its
 * bytes fit. */
static sft_code look_at(looking *l, sft_error *err) {
    sfti_journal_file *j = &l->journal;
    if (j->stranger) {
        if (l->foreign) *l->foreign = true;
        return SFT_OK;
    }
    uint64_t size = j->word[SFTI_JW_SIZE], now = l->info->size;
    bool known = j->state == SFTI_JOURNAL_ODD || j->state == SFTI_JOURNAL_SOUND;
    bool ours = known && j->word[SFTI_JW_INODE] == l->info->inode;
    bool fits = now == size || now - size == j->word[SFTI_JW_GROWN];
    if (j->state == SFTI_JOURNAL_SOUND && !ours && !fits) return SFT_OK;
    sft_code code = sfti_journal_verify(j, false, err);
    if (code != SFT_OK) return code;
    if (j->state == SFTI_JOURNAL_SOUND) return look_sound(l, ours, err);
    return ours || l->is_broken ? journal_bad(j, err) : SFT_OK;
}

/* Who may not look, may not open it either; and where its name is too long, nobody could make
 * it. */
static bool is_none(int error) {
    static const int errors[] = { ENOENT, ENOTDIR, ENAMETOOLONG, EACCES, EPERM };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (error == errors[i]) return true;
    return false;
}

static sft_code look_beside(looking l, const char *path, const sft_allocator *alloc,
                            sft_error *err) {
    os_info there;
    l.path = path;
    int error = journal_there(path, &there);
    if (error && is_none(error)) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "look for the journal of an edit");
    sft_code code = sfti_journal_open(path, l.info, alloc, &l.journal, err);
    if (code == SFT_OK && l.journal.state != SFTI_JOURNAL_NONE) code = look_at(&l, err);
    sfti_journal_close(&l.journal);
    return code;
}

static sft_code look_for_journal(const looking *l, const sft_allocator *alloc, sft_error *err) {
    char real[4096];
    os_info name;
    sft_code code = look_beside(*l, l->path, alloc, err);
    if (code != SFT_OK || os_info_path(l->path, false, &name) || name.kind != OS_LINK)
        return code;
    if (os_real_path(l->path, real, sizeof real)) return SFT_OK;
    return look_beside(*l, real, alloc, err);
}

sft_code sfti_journal_check(const char *path, const os_info *fd_info, sft_span header,
                            const sft_allocator *alloc, bool *foreign, sft_error *err) {
    looking l = { .path = path, .info = fd_info, .header = header, .is_broken = !header.data,
                  .foreign = foreign };
    return look_for_journal(&l, alloc, err);
}

sft_code sft_edit_check(const char *path, const sft_allocator *alloc, sft_error *err) {
    sft_allocator own = sfti_allocator(alloc);
    os_info info;
    looking l = { .path = path, .info = &info };
    if (!path)
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, "expected a path, found NULL");
    int error = os_info_path(path, true, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the file");
    return info.kind == OS_FILE ? look_for_journal(&l, &own, err) : SFT_OK;
}

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
    hint_by_hand(err);
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

/* The journal may be of an edit that goes on; without locks nobody can tell. */
static sft_code mend_lock(mending *m, sft_error *err) {
    int error = os_lock(m->fd);
    bool held = error == EAGAIN;
    m->gone = !held && sfti_journal_is_gone(&m->journal);
    if (error == 0 || m->gone || (!held && m->force)) return SFT_OK;
    sfti_fail(err, SFT_EDIT_BUSY, SFT_NO_OFFSET,
              held ? "expected no other program to change the file, found one"
                   : "expected an interrupted edit, found the journal of one that may go on: the "
                     "file system has no locks to tell");
    if (err) err->os_errno = error;
    if (err && !held)
        err->hint = "when no other program changes the file, \"safetensors meta recover --force "
                    "FILE\"";
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
    if (m->journal.state != SFTI_JOURNAL_SOUND) return journal_bad(&m->journal, err);
    code = mend_known(m, found, err);
    if (code != SFT_OK) return code;
    error = m->no_sync ? 0 : os_sync(m->fd);
    return error ? sfti_io_fail(err, SFT_IO_SYNC, error, "sync the file") : SFT_OK;
}

static sft_code mend_journal(mending *m, sft_edit_found *found, sft_error *err) {
    const sfti_journal_file *j = &m->journal;
    if (j->state == SFTI_JOURNAL_NONE) return SFT_OK;
    if (j->foreign || j->state != SFTI_JOURNAL_SOUND) return journal_bad(j, err);
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
    int error = journal_there(path, &there);
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
