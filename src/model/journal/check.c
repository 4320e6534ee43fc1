/* The judgement of a file beside which a journal lies. Tests: test_edit_journal.c, test_torn.c. */
#include "base/error.h"
#include "journal/journal.h"

#include <errno.h>

/* Was an edit of this file interrupted?
 *  1  A journal whose owner cannot have edited the file is no evidence.
 *  2  A journal of another inode counts only if size and bytes match: the file is then a copy made
 *     during an edit.
 *  3  A file whose bytes are all old or all new is valid, whether or not the editor finished. */
typedef struct journal_query {
    const char *path;
    const os_info *info;
    sft_span header; /* data NULL: the file's own */
    bool is_broken;  /* it could not be read as a model */
    bool *foreign;   /* set to true for a stranger's journal; may be NULL */
    sfti_journal_file journal;
} journal_query;

static sft_code report_interrupted(const journal_query *q, bool ours, sft_error *err) {
    if (q->journal.foreign) return sfti_journal_refuse(&q->journal, err);
    sfti_fail(err, SFT_EDIT_INTERRUPTED,
              ours ? "expected a file as before or after a change of it, found an edit that was "
                     "interrupted and has left its journal"
                   : "expected a file as before or after a change of it, found the copy of one "
                     "in the middle of an edit, with its journal");
    if (!ours) sfti_hint(err, SFT_HINT_RECOVER_COPY);
    return SFT_EDIT_INTERRUPTED;
}

/* Compares with the file's current bytes, through a descriptor of our own because the caller's may
 * be closed. *same false: the path leads to another file by now, so the opened file can no longer
 * be edited. */
static sft_code compare_with_file(journal_query *q, sfti_journal_verdict *v, bool *same,
                                  sft_error *err) {
    os_info now;
    int fd, error = sfti_os_open_read(q->path, &fd);
    *same = false;
    if (error == ENOENT) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    error = sfti_os_info_fd(fd, &now);
    *same = !error && now.inode == q->info->inode && now.device == q->info->device;
    if (*same) error = sfti_journal_compare(&q->journal, fd, q->info->size, q->header, v);
    (void)sfti_os_close(fd);
    return error ? sfti_io_fail(err, SFT_IO_READ, error, "read what an edit changes") : SFT_OK;
}

static sft_code check_sound(journal_query *q, bool ours, sft_error *err) {
    sfti_journal_verdict v;
    bool same;
    sft_code code = compare_with_file(q, &v, &same, err);
    if (code || !same) return code;
    bool whole = v.came_in || q->journal.word[SFTI_JW_GROWN] == 0 ? v.is_new : false;
    if (!v.came_in) whole = whole || v.is_old;
    if (whole || (!ours && !v.is_either)) return SFT_OK;
    return report_interrupted(q, ours, err);
}

static sft_code check_journal(journal_query *q, sft_error *err) {
    sfti_journal_file *j = &q->journal;
    if (j->stranger) {
        if (q->foreign) *q->foreign = true;
        return SFT_OK;
    }
    uint64_t size = j->word[SFTI_JW_SIZE], now = q->info->size;
    bool known = j->state == SFTI_JOURNAL_ODD || j->state == SFTI_JOURNAL_SOUND;
    bool ours = known && j->word[SFTI_JW_INODE] == q->info->inode;
    bool fits = now == size || now - size == j->word[SFTI_JW_GROWN];
    if (j->state == SFTI_JOURNAL_SOUND && !ours && !fits) return SFT_OK;
    sft_code code = sfti_journal_verify(j, false, err);
    if (code) return code;
    if (j->state == SFTI_JOURNAL_SOUND) return check_sound(q, ours, err);
    return ours || q->is_broken ? sfti_journal_refuse(j, err) : SFT_OK;
}

static sft_code judge_journal(const char *path, const os_info *fd_info, sft_span header,
                              bool is_broken, const sft_allocator *alloc, bool *foreign,
                              sft_error *err) {
    journal_query q = { .path = path, .info = fd_info, .header = header, .is_broken = is_broken,
                        .foreign = foreign };
    sft_code code = sfti_journal_open(path, fd_info, alloc, &q.journal, err);
    if (!code && q.journal.state != SFTI_JOURNAL_NONE) code = check_journal(&q, err);
    sfti_journal_close(&q.journal);
    return code;
}

sfti_journal_judge *const sfti_hook_journal = judge_journal;
