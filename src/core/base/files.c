/* Calls of the files that a program hands in with the open options. Tests: test_files.c. */
#include "base/files.h"

#include "base/options.h"

#include <string.h>

bool sfti_files_claim(const sft_files *files, const char *path, const char *beneath) {
    return files && !(beneath && !*beneath) && SFTI_CAN(files, sft_files_vtable, claims)
           && files->vtable->claims(files->ctx, path);
}

bool sfti_files_name_fits(sft_span name) {
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (c < 0x20 || c == 0x7f || memchr("?#%", c, 3)) return false;
    }
    const char *colon = memchr(name.data, ':', name.len);
    return !colon || memchr(name.data, '/', (size_t)(colon - name.data));
}

void sfti_files_expect(const sft_files *files, const char *const *paths, size_t count,
                       const char *beneath) {
    size_t begin = 0;
    if (!files || !SFTI_CAN(files, sft_files_vtable, expect)) return;
    for (size_t i = 0; i <= count; i++) {
        if (i < count && sfti_files_claim(files, paths[i], beneath)) continue;
        if (i > begin) files->vtable->expect(files->ctx, paths + begin, i - begin, beneath);
        begin = i + 1;
    }
}

bool sfti_files_can_list(const sft_files *files) {
    return files && SFTI_CAN(files, sft_files_vtable, list);
}

sft_code sfti_files_list(const sft_files *files, const char *folder, sft_listed_fn each,
                         void *ctx, sft_error *err) {
    return files->vtable->list(files->ctx, folder, each, ctx, err);
}
