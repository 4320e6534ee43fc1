#include "journal/check.h"

#include "base/error.h"
#include "base/mem.h"
#include "journal/journal.h"

#include <errno.h>

/* A file that was just opened, and a journal beside it. */
typedef struct looking {
    const char *path;
    const os_info *info;
    sft_span header; /* data NULL: the file's own */
    bool is_broken;  /* it could not be read as a model */
    bool *foreign;   /* NULL, or where a journal that is no evidence is told of */
    sfti_journal_file journal;
} looking;

static sft_code look_tell(const looking *l, bool ours, sft_error *err) {
    if (l->journal.foreign) return sfti_journal_refuse(&l->journal, err);
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

/* Nobody else can have edited the file whose journal is foreign, but root and those who may
 * write to it: that of others is no evidence. */
static bool is_no_evidence(const looking *l) {
    const sfti_journal_file *j = &l->journal;
    bool own = j->owner == os_user() || j->owner == l->info->owner || j->owner == 0;
    return j->foreign && !own && (l->info->mode & 022) == 0;
}

/* Another file's journal counts only if this is a copy that was torn: its length and all its
 * bytes fit. */
static sft_code look_at(looking *l, sft_error *err) {
    sfti_journal_file *j = &l->journal;
    if (is_no_evidence(l)) {
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
    return ours || l->is_broken ? sfti_journal_refuse(j, err) : SFT_OK;
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
    int error = sfti_journal_there(path, &there);
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
