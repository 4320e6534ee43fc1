/* Pictures decoded by gdk-pixbuf, which desktops have: loaded when the first is, never linked.
 * Tests: tests/cli/thumbnail, tests/desktop. */
#include "commands/commands.h"
#include "commands/thumbnail/thumbnail.h"
#include "os/io.h"
#include "safetensors_info.h"

#include <string.h>

#define PIECE ((size_t)64 << 10)
#define BILINEAR 2 /* GdkInterpType */

typedef void (*any_fn)(void);

typedef struct pixbuf_library {
    void *(*loader_new)(const char *type, void **error);
    void (*set_size)(void *loader, int width, int height);
    int (*write)(void *loader, const uint8_t *bytes, size_t len, void **error);
    int (*close)(void *loader, void **error);
    void *(*picture)(void *loader);
    void *(*upright)(void *pixbuf);
    void *(*scaled)(const void *pixbuf, int width, int height, int how);
    int (*width)(const void *pixbuf);
    int (*height)(const void *pixbuf);
    int (*channels)(const void *pixbuf);
    int (*stride)(const void *pixbuf);
    const uint8_t *(*pixels)(const void *pixbuf);
    unsigned long (*connect)(void *object, const char *signal, any_fn call, void *data, any_fn end,
                             int flags);
    void (*unref)(void *object);
    const char *const *version; /* no function */
} pixbuf_library;

static const sfti_symbol symbols[] = {
    { "gdk_pixbuf_loader_new_with_mime_type", offsetof(pixbuf_library, loader_new) },
    { "gdk_pixbuf_loader_set_size", offsetof(pixbuf_library, set_size) },
    { "gdk_pixbuf_loader_write", offsetof(pixbuf_library, write) },
    { "gdk_pixbuf_loader_close", offsetof(pixbuf_library, close) },
    { "gdk_pixbuf_loader_get_pixbuf", offsetof(pixbuf_library, picture) },
    { "gdk_pixbuf_apply_embedded_orientation", offsetof(pixbuf_library, upright) },
    { "gdk_pixbuf_scale_simple", offsetof(pixbuf_library, scaled) },
    { "gdk_pixbuf_get_width", offsetof(pixbuf_library, width) },
    { "gdk_pixbuf_get_height", offsetof(pixbuf_library, height) },
    { "gdk_pixbuf_get_n_channels", offsetof(pixbuf_library, channels) },
    { "gdk_pixbuf_get_rowstride", offsetof(pixbuf_library, stride) },
    { "gdk_pixbuf_read_pixels", offsetof(pixbuf_library, pixels) },
    { "g_signal_connect_data", offsetof(pixbuf_library, connect) },
    { "g_object_unref", offsetof(pixbuf_library, unref) },
    { "gdk_pixbuf_version", offsetof(pixbuf_library, version) },
};

/* Symbols of GObject are found behind those of the library that needs it: not on Windows. */
static bool load(pixbuf_library *lib) {
    static const char *const names[] = { "libgdk_pixbuf-2.0.so.0",
                                         "/opt/homebrew/lib/libgdk_pixbuf-2.0.0.dylib",
                                         "/usr/local/lib/libgdk_pixbuf-2.0.0.dylib" };
    bool found = false;
    for (size_t i = 0; SFTI_OS_PATHS == SFTI_PATHS_POSIX && i < 3 && !found; i++)
        found = sfti_library_load(names[i], symbols, sizeof symbols / sizeof *symbols, lib);
    return found;
}

const char *cli_thumbnail_library(void) {
    pixbuf_library lib;
    return load(&lib) ? *lib.version : NULL;
}

/* ── Decoding ── */

typedef struct pixbuf_size {
    const pixbuf_library *lib;
    uint32_t most;
    bool refused;
} pixbuf_size;

/* Sides that fit, of a picture of these. */
static void fit(uint32_t most, int *width, int *height) {
    int64_t w = *width, h = *height, longer = w > h ? w : h;
    if (longer <= most) return;
    *width = (int)((w * most + longer / 2) / longer);
    *height = (int)((h * most + longer / 2) / longer);
    if (*width < 1) *width = 1;
    if (*height < 1) *height = 1;
}

/* What the decoder found, before it takes memory for it; sides of 0 end it. */
static void on_size(void *loader, int width, int height, void *ctx) {
    pixbuf_size *size = ctx;
    if (width < 1 || height < 1 || (uint64_t)width * (uint64_t)height > THUMB_PIXELS_MOST) {
        size->refused = true;
        width = height = 0;
    } else {
        fit(size->most, &width, &height);
    }
    size->lib->set_size(loader, width, height);
}

static bool copy_pixels(const pixbuf_library *lib, void *pixbuf, const sft_allocator *alloc,
                        thumb_image *out) {
    uint32_t width = (uint32_t)lib->width(pixbuf), height = (uint32_t)lib->height(pixbuf);
    size_t channels = (size_t)lib->channels(pixbuf), stride = (size_t)lib->stride(pixbuf);
    if (!thumb_image_begin(out, width, height, alloc)) return false;
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t *from = lib->pixels(pixbuf) + y * stride;
        uint8_t *to = out->pixels + (size_t)y * width * 4;
        for (uint32_t x = 0; x < width; x++, from += channels, to += 4) {
            memcpy(to, from, 3);
            to[3] = channels == 4 ? from[3] : 255;
        }
    }
    return true;
}

/* The first picture of a film of pictures. */
static const char *take_picture(const pixbuf_library *lib, void *loader, uint32_t size,
                                const sft_allocator *alloc, thumb_image *out) {
    void *first = lib->picture(loader);
    void *upright = first ? lib->upright(first) : NULL, *small = NULL;
    bool fine = false;
    if (upright) {
        int width = lib->width(upright), height = lib->height(upright);
        fit(size, &width, &height);
        bool fits = width == lib->width(upright) && height == lib->height(upright);
        if (!fits) small = lib->scaled(upright, width, height, BILINEAR);
        if (fits || small) fine = copy_pixels(lib, small ? small : upright, alloc, out);
    }
    if (small) lib->unref(small);
    if (upright) lib->unref(upright);
    return fine ? NULL : upright ? "there is no memory for it" : "it cannot be decoded";
}

const char *thumb_decode(sft_span bytes, uint32_t size, const sft_allocator *alloc,
                         thumb_image *out) {
    pixbuf_library lib;
    pixbuf_size limit = { &lib, size, false };
    uint32_t width = 0, height = 0;
    void (*sized)(void *, int, int, void *) = on_size;
    any_fn call;
    const char *type = sft_info_image_type(bytes, &width, &height), *why;
    if (!type || strncmp(type, "image/", 6) != 0) return "it is no picture";
    if ((uint64_t)width * height > THUMB_PIXELS_MOST) return "it is too large";
    if (!load(&lib)) return "there is no gdk-pixbuf";
    void *loader = lib.loader_new(type, NULL);
    if (!loader) return "gdk-pixbuf does not know its format";
    memcpy(&call, &sized, sizeof call);
    (void)lib.connect(loader, "size-prepared", call, &limit, NULL, 0);
    bool fine = true;
    for (size_t at = 0; fine && !limit.refused && at < bytes.len; at += PIECE) {
        size_t len = bytes.len - at < PIECE ? bytes.len - at : PIECE;
        fine = lib.write(loader, (const uint8_t *)bytes.data + at, len, NULL) != 0;
    }
    fine = lib.close(loader, NULL) != 0 && fine;
    if (limit.refused) why = "it is too large";
    else if (!fine) why = "it cannot be decoded";
    else why = take_picture(&lib, loader, size, alloc, out);
    lib.unref(loader);
    return why;
}
