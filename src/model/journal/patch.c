/* The bytes of a patch, from its source. Tests: test_edit_put.c. */
#include "journal/journal.h"

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
    return code || got == 0 ? code : patch_size(patch, "more than ", patch->len, err);
}

sft_code sfti_patch_write(const sfti_patch *patch, const sft_sink *sink, uint64_t at,
                          const sft_allocator *alloc, const sft_job *job, sft_error *err) {
    sft_error own = SFT_ERROR_INIT;
    sft_code code =
        sfti_copy_into(&patch->source, 0, patch->len, sink, at, alloc, job, &own);
    if (code == SFT_IO_SHRUNK) return patch_size(patch, "", own.offset, err);
    if (!code) return patch_end(patch, err);
    if (err) *err = own;
    return code;
}

sft_code sfti_patch_check(const sfti_patch *patch, sft_error *err) {
    uint64_t size = patch->source.size;
    if (size != SFT_SIZE_UNKNOWN && size != patch->len) return patch_size(patch, "", size, err);
    return patch->len == 0 ? patch_end(patch, err) : SFT_OK;
}
