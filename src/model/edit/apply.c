/* Applying, saving and planning an edit. Tests: test_edit.c. */
#include "base/options.h"
#include "edit/edit.h"
#include "os/path.h"

/* ── Applying ── */

/* NONE if nothing changes; PLACE if the change fits; else COPY, or what is better than that. */
static sft_edit_method method_of(const sft_edit *edit, const sfti_new_head *head) {
    uint64_t asked = edit->options.max_place_bytes, most = asked ? asked : SFTI_EDIT_PLACE_MOST;
    if (head->grown == 0 && head->first >= head->last && edit->patch_count == 0)
        return SFT_EDIT_NONE;
    if (head->grown > 0 || edit->options.safe || edit->is_link) return SFT_EDIT_COPY;
    bool fits = edit->patch_bytes <= most && edit->patch_count <= SFTI_JOURNAL_RANGES;
    return fits ? SFT_EDIT_PLACE : SFT_EDIT_COPY;
}

static sft_code begin_apply(sft_edit *edit, sft_error *err) {
    if (edit->applied)
        return sfti_misuse(err, "expected an edit that was not applied yet, found one that was");
    if (edit->info.links > 1 && !edit->options.force && !edit->is_link)
        return sfti_fail(err, SFT_HARD_LINKS, "expected a file with one name, found %u hard links",
                         (unsigned)edit->info.links);
    return SFT_OK;
}

sft_code sft_edit_apply(sft_edit *edit, const sft_job *job, sft_edit_report *report,
                        sft_error *err) {
    sfti_new_head head;
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (!code) code = begin_apply(edit, err);
    if (!code) code = sfti_edit_head(edit, &head, err);
    if (code) return code;
    sft_edit_method method = method_of(edit, &head);
    if (method != SFT_EDIT_NONE) {
        sfti_target target;
        bool unable;
        edit->applied = true;
        code = sfti_target_open(edit, &target, err);
        if (!code && method == SFT_EDIT_PLACE) {
            code = sfti_edit_journalled(edit, &target, &head, &own, &unable, err);
        } else if (!code) {
            code = sfti_edit_grow(edit, &target, &head, &own, &method, err);
        }
        if (target.fd >= 0) {
            sfti_os_unlock(target.fd);
            (void)sfti_os_close(target.fd);
        }
        sfti_release(&edit->alloc, target.old_head, target.old_len);
    }
    if (!code) sfti_edit_tell(edit, &head, method, report);
    sfti_edit_head_free(edit, &head);
    return code;
}

sft_code sft_edit_save(sft_edit *edit, const char *path, const sft_path_options *options,
                       const sft_job *job, sft_edit_report *report, sft_error *err) {
    sfti_new_head head;
    sft_edit_method method = SFT_EDIT_COPY;
    sft_path_options own;
    sft_job own_job;
    if (edit->applied || edit->fd < 0 || !path)
        return sfti_misuse(err, "expected a path, and an edit that was not applied yet");
    sft_code code = sfti_take_path(options, &own, err);
    if (!code) code = sfti_take_job(job, &own_job, err);
    if (code) return code;
    if (own.mode == 0) {
        /* The permission bits that both the file and the one it replaces have. */
        os_info there;
        own.mode = edit->info.mode & 0777;
        if (sfti_os_info_path(path, true, &there) == 0 && there.kind == OS_FILE)
            own.mode &= there.mode;
        if (own.mode == 0) own.mode = 0600;
    }
    code = sfti_edit_head(edit, &head, err);
    if (code) return code;
    code = sfti_edit_new_file(edit, path, &own, edit->fd, &head, &own_job, &method, err);
    if (!code) sfti_edit_tell(edit, &head, method, report);
    sfti_edit_head_free(edit, &head);
    return code;
}

/* ── Planning ── */

/* Tries the methods on an unnamed file in the same folder, which vanishes when it is closed. */
static sft_edit_method probe_methods(const sft_edit *edit) {
    char folder[4096];
    uint64_t block = sfti_edit_block(edit);
    sft_edit_method method = SFT_EDIT_COPY;
    int fd;
    if (!sfti_folder_copy(edit->path, folder, sizeof folder) ||
        sfti_os_open_unnamed(folder, 0600, &fd))
        return SFT_EDIT_COPY;
    if (edit->info.size >= block && sfti_os_clone_range(edit->fd, 0, fd, 0, block) == 0)
        method = SFT_EDIT_REFLINK;
    else if (edit->fd >= 0 && sfti_edit_inserts(edit) && sfti_os_preallocate(fd, 2 * block) == 0 &&
             sfti_os_insert_range(fd, 0, block) == 0)
        method = SFT_EDIT_INSERT;
    (void)sfti_os_close(fd);
    return method;
}

sft_code sft_edit_plan(sft_edit *edit, sft_edit_report *out, sft_error *err) {
    sfti_new_head head;
    sft_code code = begin_apply(edit, err);
    if (!code) code = sfti_edit_head(edit, &head, err);
    if (code) return code;
    sft_edit_method method = method_of(edit, &head);
    if (method == SFT_EDIT_COPY) method = probe_methods(edit);
    sfti_edit_tell(edit, &head, method, out);
    sfti_edit_head_free(edit, &head);
    return SFT_OK;
}
