/* Images beside a model: their type and size. */
#include "label/sidecars/sidecars.h"
#include "text/formats.h"

#include <string.h>

/* The first bytes that tell type and size, and more of a PNG, for its text chunks. */
#define PREVIEW_HEAD ((uint64_t)64 << 10)
#define PREVIEW_PNG ((uint64_t)4 << 20)
#define PREVIEWS_NAMED 10

static const char *const preview_suffixes[] = {
    ".preview.png", ".preview.jpg", ".preview.jpeg", ".preview.webp", ".preview.gif",
    ".preview.avif", ".preview.jxl", ".preview.mp4", ".preview.webm",
    ".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".jxl", ".mp4", ".webm",
    ".thumb.jpg", ".thumb.png", ".thumb.jpeg", ".thumb.webp",
    ".example.0.jpeg", ".example.0.jpg", ".example.0.png",
};

static void preview_fail(sft_info *info, sft_span path, sft_span error) {
    sfti_sidecar *record = sfti_sidecar_new(info, path, "preview");
    if (record) record->error = error;
}

static void read_preview(sft_info *info, sft_span path, sft_span name) {
    uint32_t width = 0, height = 0;
    sft_span bytes, error = { "", 0 };
    uint64_t size;
    if (!sfti_sidecar_file(info, path, name, PREVIEW_HEAD, &bytes, &size, &error)) {
        preview_fail(info, path, error);
        return;
    }
    const char *type = sfti_image_type(bytes, &width, &height);
    bool png = type && strcmp(type, "image/png") == 0;
    if (type && size > bytes.len && (png || width == 0))
        (void)sfti_sidecar_file(info, path, name, PREVIEW_PNG, &bytes, &size, &error);
    if (type) type = sfti_image_type(bytes, &width, &height);
    if (!type) {
        preview_fail(info, path, sft_span_cstr("expected an image or a film, found neither"));
        return;
    }
    sft_span source = sfti_info_join(info, "sidecar:", name);
    SFTI_PUSH(info, &info->previews, sfti_preview, .path = path, .source = source,
              .media_type = type, .bytes = size, .width = width, .height = height,
              .data = { "", 0 });
    if (png) sfti_info_png_text(info, bytes, source);
}

/* A path within the folder; what is not there was not downloaded. */
void sfti_info_preview_at(sft_info *info, sft_span folder_path, sft_span name) {
    sft_span path = sfti_sidecar_path(info, folder_path, name), top = { name.data, 0 };
    while (top.len < name.len && name.data[top.len] != '/') top.len++;
    if (info->code || !info->listed || !sfti_folder_at(info->listed, top)) return;
    for (const sfti_preview *one = info->previews.first; one; one = one->next)
        if (sft_span_equal(one->path, path)) return;
    if (info->previews.count < PREVIEWS_NAMED) read_preview(info, path, name);
}

void sfti_info_previews(sft_info *info, const sft_info_folder *folder, sft_span folder_path,
                        sft_span stem, uint64_t *found) {
    for (size_t i = 0; i < SFTI_COUNT(preview_suffixes); i++) {
        const sfti_entry *entry = NULL;
        if (!(*found >> i & 1)) entry = sfti_folder_find(folder, stem, preview_suffixes[i]);
        if (!entry || info->code) continue;
        *found |= UINT64_C(1) << i;
        sft_span path = sfti_sidecar_path(info, folder_path, entry->name);
        if (!info->code) read_preview(info, path, entry->name);
    }
}
