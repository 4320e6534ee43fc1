/* Thumbnails that are drawn: cards, and the kind in a corner. Tests: tests/cli/thumbnail. */
#include "base/checked.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "commands/thumbnail/thumbnail.h"

#include <string.h>

#define DOTS_WIDE 6 /* of a glyph, with the gap behind it */
#define DOTS_HIGH 8
#define SAMPLES 4   /* of a pixel, in each direction */
#define LETTERS_MOST 96
#define LINES_MOST 5

bool thumb_image_begin(thumb_image *image, uint32_t width, uint32_t height,
                       const sft_allocator *alloc) {
    uint64_t bytes;
    *image = (thumb_image){ NULL, 0, width, height };
    if (!sfti_mul((uint64_t)width * height, 4, &bytes) || bytes > THUMB_PIXELS_MOST * 4)
        return false;
    image->bytes = (size_t)bytes;
    image->pixels = sfti_take(alloc, image->bytes);
    if (image->pixels) memset(image->pixels, 0, image->bytes);
    return image->pixels != NULL;
}

void thumb_image_free(thumb_image *image, const sft_allocator *alloc) {
    if (image->pixels) sfti_release(alloc, image->pixels, image->bytes);
    image->pixels = NULL;
}

/* ── Letters ── */

/* Dots of the glyphs from ' ' to '~': five columns, the highest dot in the lowest bit. */
static const char glyph_columns[] =
    "\x00\x00\x00\x00\x00" "\x00\x00\x5f\x00\x00" "\x00\x07\x00\x07\x00" "\x14\x7f\x14\x7f\x14"
    "\x24\x2a\x7f\x2a\x12" "\x23\x13\x08\x64\x62" "\x36\x49\x55\x22\x50" "\x00\x04\x03\x00\x00"
    "\x00\x1c\x22\x41\x00" "\x00\x41\x22\x1c\x00" "\x14\x08\x3e\x08\x14" "\x08\x08\x3e\x08\x08"
    "\x00\xa0\x60\x00\x00" "\x00\x08\x08\x08\x00" "\x00\x60\x60\x00\x00" "\x60\x10\x08\x04\x03"
    "\x3e\x51\x49\x45\x3e" "\x00\x42\x7f\x40\x00" "\x42\x61\x51\x49\x46" "\x21\x41\x45\x4b\x31"
    "\x18\x14\x12\x7f\x10" "\x27\x45\x45\x45\x39" "\x3c\x4a\x49\x49\x30" "\x01\x71\x09\x05\x03"
    "\x36\x49\x49\x49\x36" "\x06\x49\x49\x29\x1e" "\x00\x36\x36\x00\x00" "\x00\x56\x36\x00\x00"
    "\x08\x14\x22\x41\x00" "\x14\x14\x14\x14\x14" "\x00\x41\x22\x14\x08" "\x02\x01\x51\x09\x06"
    "\x32\x49\x79\x41\x3e" "\x7e\x11\x11\x11\x7e" "\x7f\x49\x49\x49\x36" "\x3e\x41\x41\x41\x22"
    "\x7f\x41\x41\x22\x1c" "\x7f\x49\x49\x49\x41" "\x7f\x09\x09\x09\x01" "\x3e\x41\x49\x49\x7a"
    "\x7f\x08\x08\x08\x7f" "\x00\x41\x7f\x41\x00" "\x20\x40\x41\x3f\x01" "\x7f\x08\x14\x22\x41"
    "\x7f\x40\x40\x40\x40" "\x7f\x02\x0c\x02\x7f" "\x7f\x04\x08\x10\x7f" "\x3e\x41\x41\x41\x3e"
    "\x7f\x09\x09\x09\x06" "\x3e\x41\x51\x21\x5e" "\x7f\x09\x19\x29\x46" "\x46\x49\x49\x49\x31"
    "\x01\x01\x7f\x01\x01" "\x3f\x40\x40\x40\x3f" "\x1f\x20\x40\x20\x1f" "\x3f\x40\x38\x40\x3f"
    "\x63\x14\x08\x14\x63" "\x07\x08\x70\x08\x07" "\x61\x51\x49\x45\x43" "\x00\x7f\x41\x41\x00"
    "\x03\x04\x08\x10\x60" "\x00\x41\x41\x7f\x00" "\x04\x02\x01\x02\x04" "\x80\x80\x80\x80\x80"
    "\x00\x01\x02\x04\x00" "\x20\x54\x54\x54\x78" "\x7f\x48\x44\x44\x38" "\x38\x44\x44\x44\x20"
    "\x38\x44\x44\x48\x7f" "\x38\x54\x54\x54\x18" "\x08\x7e\x09\x01\x02" "\x18\xa4\xa4\xa4\x7c"
    "\x7f\x08\x04\x04\x78" "\x00\x44\x7d\x40\x00" "\x40\x80\x84\x7d\x00" "\x7f\x10\x28\x44\x00"
    "\x00\x41\x7f\x40\x00" "\x7c\x04\x18\x04\x78" "\x7c\x08\x04\x04\x78" "\x38\x44\x44\x44\x38"
    "\xfc\x24\x24\x24\x18" "\x18\x24\x24\x24\xfc" "\x7c\x08\x04\x04\x08" "\x48\x54\x54\x54\x20"
    "\x04\x3f\x44\x40\x20" "\x3c\x40\x40\x20\x7c" "\x1c\x20\x40\x20\x1c" "\x3c\x40\x30\x40\x3c"
    "\x44\x28\x10\x28\x44" "\x1c\xa0\xa0\xa0\x7c" "\x44\x64\x54\x4c\x44" "\x00\x08\x36\x41\x00"
    "\x00\x00\x7f\x00\x00" "\x00\x41\x36\x08\x00" "\x08\x04\x08\x10\x08";

/* Latin letters from U+00C0 on, without their marks. */
static const char plain_letters[] = "AAAAAAACEEEEIIIIDNOOOOOxOUUUUYPs"
                                    "aaaaaaaceeeeiiiidnooooo/ouuuuypy";

typedef struct letters {
    uint8_t items[LETTERS_MOST]; /* glyphs from 0 on; NO_GLYPH: a box */
    size_t count;
} letters;

#define NO_GLYPH 0xFFu

static letters letters_of(sft_span text) {
    letters out = { .count = 0 };
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.len;
    while (at < end && out.count < LETTERS_MOST) {
        uint32_t code = 0;
        size_t len = sfti_utf8_decode(at, end, &code);
        at += len ? len : 1;
        if (len && code >= 0xC0 && code < 0xC0 + sizeof plain_letters - 1)
            code = (unsigned char)plain_letters[code - 0xC0];
        bool known = len && code >= ' ' && code <= '~';
        out.items[out.count++] = known ? (uint8_t)(code - ' ') : NO_GLYPH;
    }
    return out;
}

static bool is_dot(uint8_t glyph, uint32_t x, uint32_t y) {
    if (x >= DOTS_WIDE - 1 || y >= DOTS_HIGH) return false;
    if (glyph == NO_GLYPH) return y < 7 && (x == 0 || x == 4 || y == 0 || y == 6);
    return (unsigned char)glyph_columns[(size_t)glyph * 5 + x] >> y & 1;
}

/* ── Drawing ── */

static void put(thumb_image *image, uint32_t x, uint32_t y, uint32_t color, uint32_t part,
                uint32_t of) {
    if (x >= image->width || y >= image->height || part == 0) return;
    uint8_t *pixel = image->pixels + ((size_t)y * image->width + x) * 4;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t is = pixel[i] * (pixel[3] ? 1u : 0u), becomes = color >> (16 - 8 * i) & 255;
        pixel[i] = (uint8_t)((is * (of - part) + becomes * part) / of);
    }
    pixel[3] = 255;
}

static void fill(thumb_image *image, uint32_t x, uint32_t y, uint32_t wide, uint32_t high,
                 uint32_t color, uint32_t part, uint32_t of) {
    for (uint32_t row = y; row < y + high; row++)
        for (uint32_t at = x; at < x + wide; at++) put(image, at, row, color, part, of);
}

/* Some of the letters, `dot` sixteenths of a pixel to a dot; a pixel has the part of the colour
 * that dots have of it. */
static void draw(thumb_image *image, const letters *text, size_t begin, size_t end, uint32_t left,
                 uint32_t top, uint32_t dot, uint32_t color) {
    uint32_t wide = (uint32_t)(end - begin) * DOTS_WIDE * dot / 16, high = DOTS_HIGH * dot / 16;
    for (uint32_t y = 0; y <= high; y++) {
        for (uint32_t x = 0; x <= wide; x++) {
            uint32_t hits = 0;
            for (uint32_t i = 0; i < SAMPLES * SAMPLES; i++) {
                uint32_t sx = (x * 16 + i % SAMPLES * 16 / SAMPLES + 2) / dot;
                uint32_t sy = (y * 16 + i / SAMPLES * 16 / SAMPLES + 2) / dot;
                size_t letter = begin + sx / DOTS_WIDE;
                hits += letter < end && is_dot(text->items[letter], sx % DOTS_WIDE, sy);
            }
            put(image, left + x, top + y, color, hits, SAMPLES * SAMPLES);
        }
    }
}

static uint32_t side_of(const thumb_image *image) {
    return image->width < image->height ? image->width : image->height;
}

void thumb_badge(thumb_image *image, sft_span kind) {
    uint32_t side = image->width > image->height ? image->width : image->height;
    uint32_t dot = side / 10 < 16 ? 16 : side / 10, gap = dot * 2 / 16; /* 10 dots: 1/16 of it */
    letters text = letters_of(kind);
    uint32_t wide = (uint32_t)text.count * DOTS_WIDE * dot / 16 + gap * 2;
    uint32_t high = DOTS_HIGH * dot / 16 + gap * 2, margin = side_of(image) / 32;
    if (text.count == 0 || wide + margin * 2 > image->width || high * 3 > image->height) return;
    fill(image, margin, margin, wide, high, 0x101418, 4, 5);
    draw(image, &text, 0, text.count, margin + gap, margin + gap + dot / 32, dot, 0xFFFFFF);
}

/* ── Cards ── */

/* Letters of a line: to the last blank or joint that fits, or as many as fit. */
static size_t line_end(const letters *text, size_t begin, size_t most) {
    if (text->count - begin <= most) return text->count;
    for (size_t end = begin + most; end > begin + most / 2; end--)
        if (text->items[end - 1] != NO_GLYPH && memchr(" _-.", text->items[end - 1] + ' ', 4))
            return end;
    return begin + most;
}

/* A colour that differs between base models, dark enough for white letters. */
static uint32_t color_of(sft_span base) {
    static const uint32_t colors[] = { 0x27496D, 0x5B3A73, 0x2E5E4E, 0x7A4A1E,
                                       0x6B2F45, 0x2F5A78, 0x4A5320, 0x4D4D58 };
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < base.len; i++) hash = (hash ^ (unsigned char)base.data[i]) * 16777619u;
    return base.len ? colors[hash % 7] : colors[7];
}

void thumb_card(thumb_image *image, sft_span name, sft_span base, sft_span kind) {
    uint32_t side = side_of(image), dot = side * 16 / 84, edge = side / 16;
    letters text = letters_of(name), below = letters_of(base);
    size_t most = (size_t)(image->width - edge * 2) * 16 / (DOTS_WIDE * dot), at = 0;
    uint32_t top = side / 4, step = DOTS_HIGH * dot / 16 * 5 / 4 + 1;
    if (text.count > most * 3) { /* smaller, for a long one */
        dot = dot * 2 / 3;
        most = most * 3 / 2;
        step = step * 2 / 3 + 1;
    }
    fill(image, 0, 0, image->width, image->height, color_of(base), 1, 1);
    fill(image, 0, image->height - side / 5, image->width, side / 5, 0x000000, 2, 5);
    for (size_t line = 0; line < LINES_MOST && at < text.count && most > 0; line++) {
        size_t end = line_end(&text, at, most);
        if (top + step > image->height - side / 5) break;
        draw(image, &text, at, end, edge, top, dot, 0xFFFFFF);
        top += step;
        at = end;
    }
    uint32_t small = side * 16 / 128;
    size_t fits = small ? (size_t)(image->width - edge * 2) * 16 / (DOTS_WIDE * small) : 0;
    if (small >= 8)
        draw(image, &below, 0, below.count < fits ? below.count : fits, edge,
             image->height - side / 5 + (side / 5 - DOTS_HIGH * small / 16) / 2, small, 0xE8E8E8);
    thumb_badge(image, kind);
}
