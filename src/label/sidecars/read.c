/* Reads files next to a model. */
#include "label/sidecars/sidecars.h"

#include "base/files.h"
#include "base/utf8.h"

#include <string.h>

#define SIDECAR_MOST ((uint64_t)64 << 20)

sft_span sfti_sidecar_path(sft_info *info, sft_span folder_path, sft_span name) {
    if (folder_path.len == 0 || sft_span_equal(folder_path, sft_span_cstr(".")))
        return sfti_info_text(info, "%.*s", (int)name.len, name.data);
    const char joint[2] = { sfti_path_joint(folder_path), '\0' };
    return sfti_info_text(info, "%.*s%s%.*s", (int)folder_path.len, folder_path.data, joint,
                          (int)name.len, name.data);
}

bool sfti_sidecar_failed(sft_info *info, int error, const char *what, sft_span *out) {
    char text[128];
    *out = sfti_info_text(info, "cannot %s: %s", what,
                          sfti_os_error_text(error, text, sizeof text));
    return false;
}

static bool read_source(sft_info *info, const sft_source *source, uint64_t most, sft_span *out,
                        sft_error *err) {
    size_t len = (size_t)(source->size < most ? source->size : most), used = 0;
    char *buffer = sfti_info_take(info, len + 1);
    if (!buffer || sft_source_read(source, 0, buffer, len, &used, err)) return false;
    buffer[used] = '\0';
    *out = (sft_span){ buffer, used };
    return true;
}

bool sfti_sidecar_file(sft_info *info, sft_span path, sft_span name, uint64_t most, sft_span *out,
                      uint64_t *size, sft_span *error) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_error failed = SFT_ERROR_INIT;
    sft_source source;
    sft_span folder = sfti_info_text(info, "%.*s", (int)(path.len - name.len), path.data);
    if (info->code) return false;
    how.alloc = info->options.alloc;
    how.files = info->options.files;
    how.beneath = folder.data;
    sft_code code = sft_source_path(path.data, &how, &source, &failed);
    if (!code) { /* beneath a folder all are regular files */
        *size = source.size;
        sfti_mode_common(&info->mode, sft_source_mode(&source));
        (void)read_source(info, &source, most, out, &failed);
        sft_source_close(&source);
    }
    if (failed.code == SFT_OUT_OF_MEMORY) info->code = failed.code;
    if (failed.code == SFT_INDEX_PATH)
        *error = sft_span_cstr("expected a file in the model's folder, found a link that leads out "
                               "of it");
    else if (failed.code) *error = sfti_info_text(info, "%s", failed.message);
    return !failed.code && !info->code;
}

bool sfti_sidecar_text(sft_info *info, sft_span path, sft_span name, sft_span *out,
                      sft_span *error) {
    uint64_t size, most = info->options.max_file_bytes;
    if (most == 0) most = SIDECAR_MOST;
    if (most > SIZE_MAX / 4) most = SIZE_MAX / 4;
    if (!sfti_sidecar_file(info, path, name, most, out, &size, error)) return false;
    if (size > most) {
        *error = sfti_info_text(info, "expected at most %llu bytes, found %llu",
                                (unsigned long long)most, (unsigned long long)size);
        return false;
    }
    size_t good = sfti_utf8_check(out->data, out->len);
    if (good < out->len) {
        *error = sfti_info_text(info, "expected UTF-8, found another byte at %zu", good);
        return false;
    }
    if (out->len >= 3 && memcmp(out->data, "\xEF\xBB\xBF", 3) == 0)
        *out = (sft_span){ out->data + 3, out->len - 3 };
    return true;
}
