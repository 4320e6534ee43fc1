/* thumbnail: pictures for file managers: decoded by the system's library (pixbuf.c) or drawn
 * (draw.c), written as PNG (png.c). */
#ifndef CLI_THUMBNAIL_H
#define CLI_THUMBNAIL_H

#include "support/cli.h"

#define THUMB_LEAST 16
#define THUMB_MOST 2048
/* What is not decoded: a picture may be made to fill the memory. */
#define THUMB_BYTES_MOST ((uint64_t)64 << 20)
#define THUMB_PIXELS_MOST UINT64_C(40000000)

/* Rows of RGBA, one after the other. */
typedef struct thumb_image {
    uint8_t *pixels;
    size_t bytes;
    uint32_t width, height;
} thumb_image;

/* A transparent one of these sides; false when out of memory. */
bool thumb_image_begin(thumb_image *image, uint32_t width, uint32_t height,
                       const sft_allocator *alloc);
void thumb_image_free(thumb_image *image, const sft_allocator *alloc);

/* All of it: what the model is called, what it is for, what it is. Control characters and what has
 * no glyph are boxes. */
void thumb_card(thumb_image *image, sft_span name, sft_span base, sft_span kind);
/* What it is in a corner, where there is room for that. */
void thumb_badge(thumb_image *image, sft_span kind);

sft_code thumb_png(const thumb_image *image, const sft_allocator *alloc, sft_buffer *out,
                   sft_error *err);
/* Whether thumb_png has written it. */
bool thumb_is_ours(sft_span picture);

/* A picture whose longer side is at most `size`; NULL, or why there is none. What out has is freed
 * by thumb_image_free. */
const char *thumb_decode(sft_span bytes, uint32_t size, const sft_allocator *alloc,
                         thumb_image *out);

#endif
