/* Other bytes for tensors of an edit. Tests: test_edit_put.c. */
#include "base/files.h"
#include "base/order.h"
#include "edit/edit.h"

/* ── Asking ── */

sft_code sft_edit_put(sft_edit *edit, sft_span tensor, const sft_source *source,
                      sft_error *err) {
    if (!source || !sfti_source_usable(source))
        return sfti_misuse(err, "expected a source with read, found NULL");
    const sft_tensor *t = sft_file_find(edit->file, tensor);
    if (!t)
        return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, tensor,
                                "expected a tensor of this name, found none");
    sfti_patch patch = { t->offset, t->end - t->begin, *source, t->name };
    sft_code code = sfti_patch_check(&patch, err);
    if (code || patch.len == 0) return code;
    sfti_put *put = sfti_arena_take(&edit->arena, sizeof *put);
    if (!put || edit->put_count == UINT32_MAX) return sfti_fail_memory(err, sizeof *put);
    *put = (sfti_put){ edit->puts, patch };
    edit->puts = put;
    edit->put_count++;
    sft_edit_limit_mode(edit, sft_source_mode(source));
    return SFT_OK;
}

void sft_edit_limit_mode(sft_edit *edit, uint32_t mode) {
    sfti_mode_common(&edit->limit, mode);
}

/* ── Settling ── */

static int compare_patches(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_patch *patches = ctx;
    return (patches[a].at > patches[b].at) - (patches[a].at < patches[b].at);
}

sft_code sfti_edit_patches(sft_edit *edit, sft_error *err) {
    size_t count = edit->put_count, i = 0;
    edit->patches = sfti_arena_array(&edit->arena, 2 * (uint64_t)count, sizeof *edit->patches);
    if (!edit->patches) return sfti_fail_memory(err, count * sizeof *edit->patches);
    /* The puts stand last first, so that of each tensor the first one counts. */
    sfti_patch *all = edit->patches + count;
    for (const sfti_put *put = edit->puts; put; put = put->next) all[i++] = put->patch;
    const uint32_t *order = sfti_arena_sorted(&edit->arena, count, compare_patches, all);
    if (!order) return sfti_fail_memory(err, count * sizeof *edit->patches);
    edit->patch_count = 0;
    edit->patch_bytes = 0;
    for (i = 0; i < count; i++) {
        const sfti_patch *patch = &all[order[i]];
        if (i > 0 && patch->at == all[order[i - 1]].at) continue;
        edit->patches[edit->patch_count++] = *patch;
        edit->patch_bytes += patch->len;
    }
    edit->patches_of = count;
    return SFT_OK;
}
