/* Type and size of an image, of its first bytes or a data URL. Tests: test_images.c. */
#include "text/formats.h"
#include "text/text.h"

#include <string.h>

/* Big- and little-endian numbers inside images; the caller knows the bytes are there. */
static uint32_t image_be(const uint8_t *p, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++) value = value << 8 | p[i];
    return value;
}

static uint32_t image_le(const uint8_t *p, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | p[i];
    return value;
}

typedef struct image_size { uint32_t width, height; } image_size;

/* ── One format each: the size, 0 where it is not told ── */

static image_size png_size(const uint8_t *p, size_t len) {
    image_size size = { 0, 0 };
    if (len >= 24 && memcmp(p + 12, "IHDR", 4) == 0)
        size = (image_size){ image_be(p + 16, 4), image_be(p + 20, 4) };
    return size;
}

static image_size gif_size(const uint8_t *p, size_t len) {
    image_size size = { 0, 0 };
    if (len >= 10) size = (image_size){ image_le(p + 6, 2), image_le(p + 8, 2) };
    return size;
}

static image_size bmp_size(const uint8_t *p, size_t len) {
    image_size size = { 0, 0 };
    if (len < 26) return size;
    int64_t height = (int32_t)image_le(p + 22, 4); /* negative: top row first */
    size.width = image_le(p + 18, 4);
    size.height = (uint32_t)(height < 0 ? -height : height);
    return size;
}

/* Segments up to the first frame. */
static image_size jpeg_size(const uint8_t *p, size_t len) {
    image_size size = { 0, 0 };
    size_t at = 2;
    while (len - at >= 4 && p[at] == 0xFF) {
        uint8_t marker = p[at + 1];
        if (marker == 0xFF) {
            at++;
            continue;
        }
        size_t segment = image_be(p + at + 2, 2);
        bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8
                  && marker != 0xCC;
        if (frame) {
            if (len - at >= 9)
                size = (image_size){ image_be(p + at + 7, 2), image_be(p + at + 5, 2) };
            return size;
        }
        if (segment < 2 || segment + 2 > len - at) return size;
        at += segment + 2;
    }
    return size;
}

static image_size webp_size(const uint8_t *p, size_t len) {
    image_size size = { 0, 0 };
    if (len < 30) return size;
    if (memcmp(p + 12, "VP8X", 4) == 0) {
        size = (image_size){ image_le(p + 24, 3) + 1, image_le(p + 27, 3) + 1 };
    } else if (memcmp(p + 12, "VP8L", 4) == 0 && p[20] == 0x2F) {
        uint32_t bits = image_le(p + 21, 4);
        size = (image_size){ (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1 };
    } else if (memcmp(p + 12, "VP8 ", 4) == 0 && memcmp(p + 23, "\x9D\x01\x2A", 3) == 0) {
        size = (image_size){ image_le(p + 26, 2) & 0x3FFF, image_le(p + 28, 2) & 0x3FFF };
    }
    return size;
}

/* The box that tells an AVIF's size stands near its beginning. */
static image_size avif_size(const uint8_t *p, size_t len) {
    image_size size = { 0, 0 };
    size_t most = len < 4096 ? len : 4096;
    for (size_t i = 12; i + 16 <= most; i++)
        if (memcmp(p + i, "ispe", 4) == 0) {
            size = (image_size){ image_be(p + i + 8, 4), image_be(p + i + 12, 4) };
            break;
        }
    return size;
}

static image_size no_size(const uint8_t *p, size_t len) {
    (void)p, (void)len;
    return (image_size){ 0, 0 };
}

/* ── By magic ── */

static const struct image_magic {
    size_t at, len;
    const char *bytes;
    size_t also_at; /* 0: nothing more */
    const char *also;
    const char *type;
    image_size (*size)(const uint8_t *p, size_t len);
} image_magics[] = {
    { 0, 8, "\x89PNG\r\n\x1A\n", 0, NULL, "image/png", png_size },
    { 0, 3, "\xFF\xD8\xFF", 0, NULL, "image/jpeg", jpeg_size },
    { 0, 4, "RIFF", 8, "WEBP", "image/webp", webp_size },
    { 0, 6, "GIF87a", 0, NULL, "image/gif", gif_size },
    { 0, 6, "GIF89a", 0, NULL, "image/gif", gif_size },
    { 4, 4, "ftyp", 8, "avif", "image/avif", avif_size },
    { 4, 4, "ftyp", 8, "avis", "image/avif", avif_size },
    { 4, 4, "ftyp", 8, "heic", "image/heic", avif_size },
    { 4, 4, "ftyp", 8, "heix", "image/heic", avif_size },
    { 4, 4, "ftyp", 8, "mif1", "image/heic", avif_size }, /* or AVIF: is_avif */
    { 4, 4, "ftyp", 8, "qt  ", "video/quicktime", no_size },
    { 4, 4, "ftyp", 0, NULL, "video/mp4", no_size },
    { 0, 4, "\x1A\x45\xDF\xA3", 0, NULL, "video/webm", no_size },
    { 0, 12, "\0\0\0\x0CJXL \r\n\x87\n", 0, NULL, "image/jxl", no_size },
    { 0, 2, "\xFF\x0A", 0, NULL, "image/jxl", no_size },
    { 0, 4, "II*\0", 0, NULL, "image/tiff", no_size },
    { 0, 4, "MM\0*", 0, NULL, "image/tiff", no_size },
};

/* "BM" alone is too little: the header's own length must be one there is. */
static bool is_bmp(const uint8_t *p, size_t len) {
    uint32_t header = len >= 26 ? image_le(p + 14, 4) : 0;
    return len >= 26 && p[0] == 'B' && p[1] == 'M' && header >= 40 && header <= 124;
}

/* Whether a file whose own brand is that of pictures in general says among its others that it is
 * AVIF. */
static bool is_avif(const uint8_t *p, size_t len) {
    size_t end = image_be(p, 4);
    for (size_t i = 16; i + 4 <= len && i + 4 <= end; i += 4)
        if (memcmp(p + i, "avif", 4) == 0) return true;
    return false;
}

static bool magic_fits(const struct image_magic *magic, const uint8_t *p, size_t len) {
    size_t need = magic->at + magic->len;
    if (magic->also && need < magic->also_at + 4) need = magic->also_at + 4;
    return len >= need && memcmp(p + magic->at, magic->bytes, magic->len) == 0
        && (!magic->also || memcmp(p + magic->also_at, magic->also, 4) == 0);
}

const char *sfti_image_type(sft_span bytes, uint32_t *width, uint32_t *height) {
    const uint8_t *p = (const uint8_t *)bytes.data;
    image_size size = { 0, 0 };
    const char *type = NULL;
    for (size_t i = 0; !type && i < SFTI_COUNT(image_magics); i++) {
        if (!magic_fits(&image_magics[i], p, bytes.len)) continue;
        type = image_magics[i].type;
        size = image_magics[i].size(p, bytes.len);
        if (image_magics[i].size == avif_size && is_avif(p, bytes.len)) type = "image/avif";
    }
    if (!type && is_bmp(p, bytes.len)) {
        type = "image/bmp";
        size = bmp_size(p, bytes.len);
    }
    *width = size.width && size.height ? size.width : 0;
    *height = size.width && size.height ? size.height : 0;
    return type;
}

/* ── base64 ── */

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+' || c == '-') return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

static sft_span after_data_url(sft_span text) {
    text = sfti_trim(text);
    if (!sfti_starts_with(text, "data:")) return text;
    sft_span comma = sfti_find_byte(text, ',');
    sft_span head = { text.data, text.len - comma.len };
    if (!comma.data || !sfti_ends_with(head, ";base64")) return (sft_span){ text.data, 0 };
    return (sft_span){ comma.data + 1, comma.len - 1 };
}

/* Decoded bytes; SIZE_MAX when there is something that is no base64. */
static size_t base64_decode(sft_span text, uint8_t *out) {
    uint32_t bits = 0;
    unsigned count = 0;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        int value = base64_value(c);
        if (c == '=') break;
        if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
        if (value < 0) return SIZE_MAX;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out[len++] = (uint8_t)(bits >> count);
    }
    return count < 6 ? len : SIZE_MAX; /* 6 left over: a lone digit */
}

bool sfti_base64(sfti_arena *arena, sft_span text, uint64_t most, sft_span *out, sft_code *code) {
    text = after_data_url(text);
    if (*code || text.len < 2 || text.len / 4 * 3 > most) return false;
    uint8_t *bytes = sfti_arena_take(arena, text.len / 4 * 3 + 3);
    if (!bytes) *code = SFT_OUT_OF_MEMORY;
    size_t len = bytes ? base64_decode(text, bytes) : 0;
    if (len == SIZE_MAX || len == 0 || len > most) return false;
    *out = (sft_span){ (const char *)bytes, len };
    return true;
}
