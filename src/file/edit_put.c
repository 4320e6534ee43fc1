#include "base/checked.h"
#include "base/order.h"
#include "file/edit.h"

#include <string.h>

/* ── Bytes of one tensor ── */

static sft_code patch_size(const sfti_patch *patch, const char *found, uint64_t bytes,
                           sft_error *err) {
    return sfti_fail_tensor(err, SFT_BUFFER_SIZE, SFT_NO_OFFSET, patch->tensor,
                            "expected %llu bytes for the tensor, found %s%llu",
                            (unsigned long long)patch->len, found, (unsigned long long)bytes);
}

/* A source of unknown length ends where the tensor does. */
static sft_code patch_end(const sfti_patch *patch, sft_error *err) {
    char more;
    size_t got = 0;
    if (patch->source.size != SFT_SIZE_UNKNOWN) return SFT_OK;
    sft_code code = sft_source_read(&patch->source, patch->len, &more, 1, &got, err);
    return code != SFT_OK || got == 0 ? code : patch_size(patch, "more than ", patch->len, err);
}

sft_code sfti_patch_write(const sfti_patch *patch, const sft_sink *sink, uint64_t at,
                          const sft_allocator *alloc, const sft_job *job, sft_error *err) {
    sft_error own = SFT_ERROR_INIT;
    sft_code code =
        sfti_copy_into(&patch->source, 0, patch->len, sink, at, alloc, job, &own);
    if (code == SFT_IO_SHRUNK) return patch_size(patch, "", own.offset, err);
    if (code == SFT_OK) return patch_end(patch, err);
    if (err) *err = own;
    return code;
}

/* ── Stages ── */

static bool stages_tick(void *ctx, uint64_t done, uint64_t total) {
    const sfti_stages *s = ctx;
    (void)total;
    return s->outer.tick(s->outer.ctx, s->done + done, s->total);
}

void sfti_stages_begin(sfti_stages *stages, const sft_job *outer, uint64_t total) {
    memset(stages, 0, sizeof *stages);
    stages->job = (sft_job)SFT_JOB_INIT;
    stages->outer = outer ? *outer : stages->job;
    stages->total = total;
    if (!stages->outer.tick) return;
    stages->job.tick = stages_tick;
    stages->job.ctx = stages;
}

/* ── Asking ── */

static sft_code put_check(const sfti_patch *patch, sft_error *err) {
    uint64_t size = patch->source.size;
    if (size != SFT_SIZE_UNKNOWN && size != patch->len) return patch_size(patch, "", size, err);
    return patch->len == 0 ? patch_end(patch, err) : SFT_OK;
}

sft_code sft_edit_put(sft_edit *edit, sft_span tensor, const sft_source *source,
                      sft_error *err) {
    if (!source || !sfti_source_usable(source))
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                         "expected a source with read_at, found NULL");
    const sft_tensor *t = sft_file_find(edit->file, tensor);
    if (!t)
        return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, tensor,
                                "expected a tensor of this name, found none");
    sfti_patch patch = { t->offset, t->end - t->begin, *source, t->name };
    sft_code code = put_check(&patch, err);
    if (code != SFT_OK || patch.len == 0) return code;
    sfti_put *put = sfti_arena_take(&edit->arena, sizeof *put);
    if (!put || edit->put_count == UINT32_MAX) return sfti_fail_memory(err, sizeof *put);
    *put = (sfti_put){ edit->puts, patch };
    edit->puts = put;
    edit->put_count++;
    return SFT_OK;
}

/* ── Settling ── */

static int compare_patches(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_patch *patches = ctx;
    return (patches[a].at > patches[b].at) - (patches[a].at < patches[b].at);
}

/* The puts stand last first, so that of each tensor the first one counts. */
static void patches_gather(sft_edit *edit, sfti_patch *all, uint32_t *order, uint32_t *scratch) {
    uint32_t count = 0;
    for (const sfti_put *put = edit->puts; put; put = put->next) {
        order[count] = count;
        all[count++] = put->patch;
    }
    sfti_sort(order, scratch, count, compare_patches, all);
    edit->patch_count = 0;
    edit->patch_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const sfti_patch *patch = &all[order[i]];
        if (i > 0 && patch->at == all[order[i - 1]].at) continue;
        edit->patches[edit->patch_count++] = *patch;
        edit->patch_bytes += patch->len;
    }
}

sft_code sfti_edit_patches(sft_edit *edit, sft_error *err) {
    size_t count = edit->put_count;
    if (edit->patches_of == count) return SFT_OK;
    edit->patches = sfti_arena_array(&edit->arena, 2 * (uint64_t)count, sizeof *edit->patches);
    uint32_t *order = sfti_arena_array(&edit->arena, 2 * (uint64_t)count, sizeof *order);
    if (!edit->patches || !order) return sfti_fail_memory(err, count * sizeof *edit->patches);
    patches_gather(edit, edit->patches + count, order, order + count);
    edit->patches_of = count;
    return SFT_OK;
}
