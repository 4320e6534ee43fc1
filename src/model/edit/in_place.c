/* Overwriting a file in place under a journal. Tests: test_edit.c, test_edit_put.c. */
#include "edit/edit.h"

#include <errno.h>

/* An overwrite in place. Each step, and what a crash after it leaves:
 *  1  The journal is written, synced and renamed to its name (sfti_journal_write). A crash leaves
 *     the old file; recovery removes the journal.
 *  2  The journal is opened again and must be ours; the file must still be the one that was opened
 *     (place_open). A crash leaves what a crash after 1 leaves.
 *  3  Only for a longer header: whole blocks are inserted before it and synced (place_insert). A
 *     crash leaves zeros before the old header; recovery writes the new header over both.
 *  4  The new bytes are written (place_bytes). A crash leaves any mix of old and new bytes;
 *     recovery writes all new bytes.
 *  5  The modification time is restored if asked for, the file is synced. A crash leaves the new
 *     file; recovery removes the journal.
 *  6  The journal is removed. The removal is not synced: a journal next to the finished file is
 *     harmless.
 * After a failure in 3 to 5 the old bytes are written back and synced before the journal is removed
 * (place_undo); if that fails too, the journal stays for recovery. */
typedef struct overwrite {
    const sft_edit *edit;
    const sfti_target *target;
    const sfti_new_head *head;
    sfti_journal_file journal; /* open for the patches' bytes, if there are any */
    bool may_undo; /* the old bytes can be restored */
    bool torn;     /* they could not: the journal stays */
    uint64_t inserted; /* bytes before them, which are then taken out again */
} overwrite;

static int place_sync(const overwrite *p) {
    return p->edit->options.no_sync ? 0 : sfti_os_sync(p->target->fd);
}

/* The bytes that differ, of the old head or the new, and of the data. */
static int place_bytes(const overwrite *p, bool old) {
    size_t first = p->head->grown ? 0 : p->head->first;
    size_t last = p->head->grown ? p->head->len : p->head->last;
    const char *from = old ? p->target->old_head : p->head->data;
    int error = 0;
    if (first < last) error = sfti_write_all(p->target->fd, from + first, last - first, first);
    if (error || p->edit->patch_count == 0) return error;
    return sfti_journal_apply_data(&p->journal, p->target->fd, old);
}

/* Whether the file still has all its old bytes: they could not be written back, but no new byte was
 * written either, as when the disk refuses every write. */
static bool is_untouched(const overwrite *p) {
    static const sft_span own = { NULL, 0 };
    sfti_journal_verdict v;
    if (p->edit->patch_count == 0 || p->journal.state != SFTI_JOURNAL_SOUND) return false;
    return sfti_journal_compare(&p->journal, p->target->fd, p->edit->info.size, own, &v) == 0 &&
           v.is_old;
}

/* After a failure: the journal is removed only once the disk has the old bytes again. */
static void place_undo(overwrite *p, sft_error *err) {
    int fd = p->target->fd;
    bool old = false;
    if (p->may_undo && p->inserted == 0)
        old = (place_bytes(p, true) == 0 && place_sync(p) == 0) || is_untouched(p);
    else if (p->may_undo)
        old = sfti_write_all(fd, p->target->old_head, p->target->old_len, p->inserted) == 0 &&
              place_sync(p) == 0 && sfti_os_collapse_range(fd, 0, p->inserted) == 0 &&
              place_sync(p) == 0;
    if (old) {
        if (p->edit->options.keep_mtime) (void)sfti_os_set_mtime(fd, p->edit->info.mtime_ns);
        (void)sfti_journal_remove(p->edit->path);
    } else {
        p->torn = true;
        sfti_hint(err, SFT_HINT_RECOVER);
    }
}

/* Step 3. *unable: the file system inserts no blocks; the file is unchanged, the journal removed,
 * and the caller may replace the file instead. */
static sft_code place_insert(overwrite *p, bool *unable, sft_error *err) {
    os_info now;
    int error = sfti_os_insert_range(p->target->fd, 0, p->head->grown);
    p->may_undo = false;
    if (!error) {
        error = place_sync(p);
        p->inserted = p->head->grown;
        p->may_undo = !error && p->edit->patch_count == 0;
        if (!error) return SFT_OK;
        sft_code code = sfti_io_fail(err, SFT_IO_SYNC, error, "sync the file");
        place_undo(p, err);
        return code;
    }
    sft_code code = sfti_io_fail(err, SFT_IO_WRITE, error, "insert space before the data");
    if (error != EOPNOTSUPP && (sfti_os_info_fd(p->target->fd, &now) != 0 ||
                                now.size != p->edit->info.size)) {
        place_undo(p, err);
        return code;
    }
    /* Synced, for the file that is to replace this one must not meet its journal. */
    int kept = sfti_journal_remove(p->edit->path);
    if (!kept && !p->edit->options.no_sync) kept = sfti_sync_parent(p->edit->path);
    *unable = error == EOPNOTSUPP && !kept;
    if (kept && error == EOPNOTSUPP)
        code = sfti_io_fail(err, SFT_IO_PUBLISH, kept, "remove the journal of the edit");
    return code;
}

/* Step 2, of patches. Their bytes are taken from the journal, for a source is read only once.
 * Reading it may have taken long, so the file is checked again before its first byte changes. */
static sft_code place_open(overwrite *p, sft_error *err) {
    sft_code code = sfti_edit_same(p->edit, -1, err);
    if (!code)
        code = sfti_journal_open(p->edit->path, &p->edit->info, &p->edit->alloc, &p->journal, err);
    if (!code && p->journal.foreign)
        code = sfti_fail(err, SFT_EDIT_BUSY, "expected the journal that was just written, found %s",
                         p->journal.foreign);
    if (!code && p->journal.state != SFTI_JOURNAL_SOUND)
        code = sfti_io_fail(err, SFT_IO_READ, p->journal.state == SFTI_JOURNAL_NONE ? ENOENT : EIO,
                            "read the journal that was just written");
    if (code) (void)sfti_journal_remove(p->edit->path);
    return code;
}

sft_code sfti_edit_journalled(sft_edit *edit, const sfti_target *target,
                              const sfti_new_head *head, const sft_job *job, bool *unable,
                              sft_error *err) {
    overwrite p = { .edit = edit, .target = target, .head = head, .may_undo = true };
    sfti_journal journal = { (uint32_t)(head->grown ? SFT_EDIT_INSERT : SFT_EDIT_PLACE),
                             edit->info.device, edit->info.inode, edit->info.size, head->grown,
                             { target->old_head, target->old_len }, { head->data, head->len },
                             edit->patches, edit->patch_count, edit->patch_bytes, target->fd };
    uint32_t mode = edit->info.mode & 0777 & (edit->limit ? edit->limit | 0700 : 0777);
    *unable = false;
    p.journal.fd = -1;
    int error = mode == (edit->info.mode & 0777) ? 0 : sfti_os_set_mode(target->fd, mode);
    if (error)
        return sfti_io_fail(err, SFT_IO_WRITE, error, "make the file as private as what it gets");
    sft_code code = sfti_journal_write(edit->path, &journal, mode, edit->options.no_sync,
                                       &edit->alloc, job, err);
    if (!code && edit->patch_count > 0) code = place_open(&p, err);
    if (!code && head->grown) code = place_insert(&p, unable, err);
    if (!code) { /* steps 4 to 6 */
        sft_code failed = SFT_IO_WRITE;
        const char *what = edit->patch_count > 0 ? "write the tensor" : "write the header";
        error = place_bytes(&p, false);
        if (!error && edit->options.keep_mtime
            && (error = sfti_os_set_mtime(target->fd, edit->info.mtime_ns)) != 0)
            what = "keep the time of the last change";
        if (!error && (error = place_sync(&p)) != 0) {
            failed = SFT_IO_SYNC;
            what = "sync the file";
        }
        if (error) {
            code = sfti_io_fail(err, failed, error, what);
            place_undo(&p, err);
        } else {
            (void)sfti_journal_remove(edit->path);
        }
    }
    if (edit->patch_count > 0) sfti_journal_close(&p.journal);
    /* What has its old bytes again has its old mode again. */
    if (code && !p.torn && mode != (edit->info.mode & 0777))
        (void)sfti_os_set_mode(target->fd, edit->info.mode);
    return code;
}
