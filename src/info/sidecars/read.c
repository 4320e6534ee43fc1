/* Reads files next to a model. */
#include "info/sidecars/sidecars.h"

#include "base/utf8.h"

#include <errno.h>
#include <string.h>

#define SIDECAR_MOST ((uint64_t)64 << 20)

sft_span sfti_sidecar_path(sft_info *info, sft_span folder_path, sft_span name) {
    if (folder_path.len == 0 || sft_span_equal(folder_path, sft_span_cstr(".")))
        return sfti_info_text(info, "%.*s", (int)name.len, name.data);
    const char *slash = folder_path.data[folder_path.len - 1] == '/' ? "" : "/";
    return sfti_info_text(info, "%.*s%s%.*s", (int)folder_path.len, folder_path.data, slash,
                          (int)name.len, name.data);
}

bool sfti_sidecar_failed(sft_info *info, int error, const char *what, sft_span *out) {
    char text[128];
    *out = sfti_info_text(info, "cannot %s: %s", what,
                          os_error_text(error, text, sizeof text));
    return false;
}

static bool read_bytes(sft_info *info, int fd, char *into, size_t len, size_t *used,
                       sft_span *error) {
    size_t got = 1;
    *used = 0;
    while (*used < len && got > 0) {
        int failed = os_pread(fd, into + *used, len - *used, *used, &got);
        if (failed) return sfti_sidecar_failed(info, failed, "read", error);
        *used += got;
    }
    return true;
}

static bool read_open(sft_info *info, int fd, uint64_t most, sft_span *out, uint64_t *size,
                      sft_span *error) {
    os_info about;
    size_t used;
    int failed = os_info_fd(fd, &about);
    if (failed) return sfti_sidecar_failed(info, failed, "read", error);
    if (about.kind != OS_FILE) {
        *error = sft_span_cstr("expected a regular file, found something else");
        return false;
    }
    size_t len = (size_t)(about.size < most ? about.size : most);
    char *buffer = sfti_info_take(info, len + 1);
    if (!buffer || !read_bytes(info, fd, buffer, len, &used, error)) return false;
    buffer[used] = '\0';
    *out = (sft_span){ buffer, used };
    *size = about.size;
    return true;
}

bool sfti_sidecar_file(sft_info *info, sft_span path, sft_span name, uint64_t most, sft_span *out,
                      uint64_t *size, sft_span *error) {
    int fd;
    sft_span folder = sfti_info_text(info, "%.*s", (int)(path.len - name.len), path.data);
    if (info->code) return false;
    int failed = os_open_beneath(folder.data, path.data + folder.len, OS_BENEATH_READ, &fd);
    if (failed == EXDEV) {
        *error = sft_span_cstr("expected a file in the model's folder, found a link that leads out "
                               "of it");
        return false;
    }
    if (failed) return sfti_sidecar_failed(info, failed, "open", error);
    bool read = read_open(info, fd, most, out, size, error);
    (void)os_close(fd);
    return read;
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
