/* Text chunks of a PNG. Tests: test_images.c. */
#include "text/formats.h"
#include "text/text.h"

#include "base/utf8.h"

#include <string.h>
#if defined(SFTI_FOUND_ZLIB)
#include <zlib.h>
#endif

#define PNG_TEXT_MOST ((size_t)4 << 20) /* of one inflated text */

static uint32_t png_be32(const char *at) {
    const uint8_t *p = (const uint8_t *)at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

#if defined(SFTI_FOUND_ZLIB)
/* At most PNG_TEXT_MOST bytes; what is longer is none. */
static bool png_inflate(sfti_arena *arena, sft_span packed, sft_span *out, sft_code *code) {
    z_stream stream;
    uint64_t cap = packed.len >= PNG_TEXT_MOST / 64 ? PNG_TEXT_MOST : packed.len * 32 + 65536;
    memset(&stream, 0, sizeof stream);
    if (packed.len > PNG_TEXT_MOST || inflateInit(&stream) != Z_OK) return false;
    char *bytes = sfti_arena_take(arena, (size_t)cap);
    int result = Z_MEM_ERROR;
    if (bytes) {
        stream.next_in = (Bytef *)(uintptr_t)packed.data;
        stream.avail_in = (uInt)packed.len;
        stream.next_out = (Bytef *)bytes;
        stream.avail_out = (uInt)cap;
        result = inflate(&stream, Z_FINISH);
        *out = (sft_span){ bytes, (size_t)stream.total_out };
    }
    inflateEnd(&stream);
    if (!bytes) *code = SFT_OUT_OF_MEMORY;
    return result == Z_STREAM_END;
}
#else
static bool png_inflate(sfti_arena *arena, sft_span packed, sft_span *out, sft_code *code) {
    (void)arena, (void)packed, (void)out, (void)code;
    return false;
}
#endif

/* Latin-1, as tEXt is by its standard, unless it is UTF-8 already. */
static sft_span png_utf8(sfti_arena *arena, sft_span text, sft_code *code) {
    sft_span none = { "", 0 };
    if (sfti_utf8_check(text.data, text.len) == text.len) return text;
    char *out = text.len > PNG_TEXT_MOST ? NULL : sfti_arena_take(arena, text.len * 2);
    size_t len = 0;
    if (!out && text.len <= PNG_TEXT_MOST) *code = SFT_OUT_OF_MEMORY;
    if (!out) return none;
    for (size_t i = 0; i < text.len; i++)
        len += sfti_utf8_encode((uint8_t)text.data[i], out + len);
    return (sft_span){ out, len };
}

/* Cut off up to a NUL; false when there is none. */
static bool png_field(sft_span *rest, sft_span *field) {
    const char *end = rest->len > 0 ? memchr(rest->data, '\0', rest->len) : NULL;
    if (!end) return false;
    *field = (sft_span){ rest->data, (size_t)(end - rest->data) };
    *rest = sfti_from(*rest, field->len + 1);
    return true;
}

/* A chunk's keyword and text as UTF-8. */
static void read_text_chunk(sfti_arena *arena, const char *type, sft_span chunk, sft_span *keyword,
                            sft_span *text, sft_code *code) {
    sft_span skipped;
    bool packed = memcmp(type, "zTXt", 4) == 0;
    if (!png_field(&chunk, keyword)) return;
    if (memcmp(type, "iTXt", 4) == 0) {
        if (chunk.len < 2) return;
        packed = chunk.data[0] == 1;
        chunk = sfti_from(chunk, 2);
        if (!png_field(&chunk, &skipped) || !png_field(&chunk, &skipped)) return;
    } else if (packed) {
        if (chunk.len < 1) return;
        chunk = sfti_from(chunk, 1);
    }
    if (packed && !png_inflate(arena, chunk, &chunk, code)) return;
    *text = png_utf8(arena, chunk, code);
}

bool sfti_png_text(sfti_arena *arena, sft_span png, size_t *at, sft_span *keyword, sft_span *text,
                   sft_code *code) {
    *keyword = *text = (sft_span){ "", 0 };
    if (*at == 0) *at = 8;
    if (png.len < 8 || memcmp(png.data, "\x89PNG\r\n\x1A\n", 8) != 0) return false;
    while (png.len - *at >= 12) {
        size_t len = png_be32(png.data + *at);
        const char *type = png.data + *at + 4;
        if (len > png.len - *at - 12 || memcmp(type, "IEND", 4) == 0) return false;
        *at += len + 12;
        bool is_text = memcmp(type, "tEXt", 4) == 0 || memcmp(type, "zTXt", 4) == 0
                    || memcmp(type, "iTXt", 4) == 0;
        if (!is_text) continue;
        read_text_chunk(arena, type, (sft_span){ type + 4, len }, keyword, text, code);
        return true;
    }
    return false;
}
