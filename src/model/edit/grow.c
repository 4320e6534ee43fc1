/* A longer header: a new file, or blocks inserted before the data. Tests: test_edit.c. */
#include "base/checked.h"
#include "base/job.h"
#include "edit/edit.h"
#include "safetensors_io.h"

/* ── A new file ── */

/* A new file being filled from the old one. */
typedef struct file_copy {
    sft_edit *edit;
    const sft_sink *sink;
    const sft_source *source;
    uint64_t grown;  /* bytes that everything moves up by */
    uint64_t shared; /* from here on the blocks are there already */
    sfti_stages stages;
} file_copy;

/* Bytes [at, end) of the old file, as far as they are not shared. */
static sft_code copy_old(file_copy *f, uint64_t at, uint64_t end, sft_error *err) {
    if (end > f->shared) end = f->shared;
    if (at >= end) return SFT_OK;
    sft_code code = sfti_copy_into(f->source, at, end, f->sink, at + f->grown, &f->edit->alloc,
                                   &f->stages.job, err);
    f->stages.done += end - at;
    return code;
}

/* Behind the head: patches, and old bytes between them. */
static sft_code copy_data(file_copy *f, const sft_job *job, sft_error *err) {
    const sft_edit *edit = f->edit;
    uint64_t at = sft_file_data_offset(edit->file), size = edit->info.size;
    sft_code code = SFT_OK;
    sfti_stages_begin(&f->stages, job, f->shared - at + (f->shared < size ? edit->patch_bytes : 0));
    for (size_t i = 0; i < edit->patch_count && !code; i++) {
        const sfti_patch *patch = &edit->patches[i];
        code = copy_old(f, at, patch->at, err);
        if (!code)
            code = sfti_patch_write(patch, f->sink, patch->at + f->grown, &f->edit->alloc,
                                    &f->stages.job, err);
        f->stages.done += patch->len;
        at = patch->at + patch->len;
    }
    return code ? code : copy_old(f, at, size, err);
}

typedef struct replacement {
    const char *path;
    const sft_path_options *options;
    int fd;
    const sfti_new_head *head;
    bool insert;    /* leave that to others where blocks cannot be shared */
    bool is_target; /* the new file takes the name of the edited one */
} replacement;

static sft_code fill_new_file(sft_edit *edit, const replacement *r, const sft_sink *sink,
                              const sft_job *job, sft_edit_method *method, sft_error *err) {
    sft_source source;
    uint64_t data = sft_file_data_offset(edit->file), size = edit->info.size;
    uint64_t shared; /* from the first whole block of the data on, if there is one */
    if (!sfti_align_up(data, sfti_edit_block(edit), &shared) || shared > size) shared = size;
    bool clones = shared < size && sfti_path_clone(sink, shared + r->head->grown, r->fd, shared,
                                                   size - shared);
    *method = clones ? SFT_EDIT_REFLINK : r->insert ? SFT_EDIT_INSERT : SFT_EDIT_COPY;
    if (*method == SFT_EDIT_INSERT) return SFT_OK;
    sft_code code = clones ? SFT_OK : sft_sink_expect(sink, size + r->head->grown, err);
    if (!code) code = sft_source_fd(r->fd, &edit->alloc, &source, err);
    if (code) return code;
    file_copy f = { .edit = edit, .sink = sink, .source = &source, .grown = r->head->grown,
                  .shared = clones ? shared : size };
    code = sft_sink_write(sink, 0, r->head->data, r->head->len, err);
    if (!code) code = copy_data(&f, job, err);
    sft_source_close(&source);
    return code;
}

static sft_code replace_file(sft_edit *edit, const replacement *r, const sft_job *job,
                      sft_edit_method *method, sft_error *err) {
    sft_sink sink;
    sft_path_options options = *r->options;
    options.alloc = &edit->alloc;
    if (edit->options.keep_mtime && !options.has_mtime) {
        options.has_mtime = true;
        options.mtime_ns = edit->info.mtime_ns;
    }
    sft_code code = sft_sink_path(r->path, &options, &sink, err);
    if (code) return code;
    code = sft_sink_limit_mode(&sink, edit->limit, err);
    if (!code) code = fill_new_file(edit, r, &sink, job, method, err);
    if (!code && *method != SFT_EDIT_INSERT)
        code = sfti_edit_same(edit, r->is_target ? -1 : r->fd, err);
    if (!code && !r->is_target)
        code = sfti_file_edited(edit->path, &edit->info, sft_file_header(edit->file), false,
                                &edit->alloc, NULL, err);
    if (!code && *method != SFT_EDIT_INSERT) return sft_sink_finish(&sink, err);
    sft_sink_abandon(&sink);
    return code;
}

sft_code sfti_edit_new_file(sft_edit *edit, const char *path, const sft_path_options *options,
                            int fd, const sfti_new_head *head, const sft_job *job,
                            sft_edit_method *method, sft_error *err) {
    replacement r = { path, options, fd, head, false, false };
    return replace_file(edit, &r, job, method, err);
}

/* ── Blocks that come in ── */

sft_code sfti_edit_grow(sft_edit *edit, const sfti_target *target, const sfti_new_head *head,
                        const sft_job *job, sft_edit_method *method, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    bool unable = false;
    options.no_sync = edit->options.no_sync;
    options.in_place_unsafe = edit->options.in_place_unsafe;
    replacement r = { edit->path, &options, target->fd, head, false, true };
    r.insert = head->grown > 0 && sfti_edit_inserts(edit);
    sft_code code = replace_file(edit, &r, job, method, err);
    if (code || *method != SFT_EDIT_INSERT) return code;
    /* Only while nobody else has the file open: for those who do, all offsets would move. */
    if (edit->fd >= 0) (void)sfti_os_close(edit->fd);
    edit->fd = -1;
    unable = sfti_os_lease(target->fd, true) != 0;
    if (!unable) {
        code = sfti_edit_journalled(edit, target, head, NULL, &unable, err);
        (void)sfti_os_lease(target->fd, false);
    }
    if (!unable) return code;
    if (err) sfti_error_clear(err);
    r.insert = false;
    return replace_file(edit, &r, job, method, err);
}
