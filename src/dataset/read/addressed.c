/* Files that manifests name by their SHA-256. Tests: test_dataset_delete.c, test_dataset_add.c. */
#include "base/error.h"
#include "dataset/read/manifest.h"

#include <stdio.h>
#include <string.h>

static sft_code addressed_wrong(const char *name, const char *expected, const char *found,
                                sft_error *err) {
    return sfti_fail(err, SFT_DATASET_SHARD, "%s: expected %s, found %s", name, expected, found);
}

sft_code sfti_ds_addressed_open(const sft_storage *storage, const char *name, const char *sha256,
                                uint64_t size, const char *what, sfti_arena *arena,
                                sft_span *bytes, sft_file **out, sft_error *err) {
    char digest[65], named[64];
    sft_error why = SFT_ERROR_INIT;
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    (void)snprintf(named, sizeof named, "the %s that the manifest names", what);
    sft_code code = sfti_ds_read_all(storage, name, size, arena, bytes, &why);
    if (code == SFT_NOT_FOUND) return addressed_wrong(name, named, "none", err);
    if (code && code != SFT_FILE_TOO_LARGE) return sfti_fail_as(err, code, &why);
    if (code || bytes->len != size) return addressed_wrong(name, named, "another size", err);
    code = sfti_ds_digest(*bytes, &arena->alloc, digest, err);
    if (code) return code;
    if (memcmp(digest, sha256, 64) != 0) return addressed_wrong(name, named, "another digest", err);
    options.alloc = &arena->alloc;
    code = sft_open_memory(bytes->data, bytes->len, &options, out, &why);
    if (code == SFT_OUT_OF_MEMORY) return sfti_fail_as(err, code, &why);
    return code ? addressed_wrong(name, "a safetensors file", why.message, err) : SFT_OK;
}

const sft_tensor *sfti_ds_addressed_tensor(const sft_file *file, const char *name, sft_dtype dtype,
                                           uint32_t rank) {
    const sft_tensor *t = sft_file_find_cstr(file, name);
    return t && t->dtype == dtype && t->rank == rank ? t : NULL;
}
