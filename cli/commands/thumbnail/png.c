/* PNG: one chunk of rows, each byte less the one to its left; packed by zlib where the system has
 * it, else stored. Tests: tests/cli/thumbnail. */
#include "base/crc32.h"
#include "base/endian.h"
#include "base/mem.h"
#include "commands/thumbnail/thumbnail.h"
#include "os/os.h"

#include <string.h>

static const char says[] = "Software\0safetensors thumbnail"; /* a tEXt chunk, the last but one */
#define SAYS_LEN (sizeof says - 1)

typedef int (*compress_fn)(uint8_t *to, unsigned long *len, const uint8_t *from,
                           unsigned long from_len, int level);

static compress_fn find_zlib(void) {
    static const char *const libraries[] = { "/usr/lib/libz.1.dylib", "libz.so.1" };
    os_function found = NULL;
    compress_fn compress = NULL;
    for (size_t i = 0; SFTI_OS_PATHS == SFTI_PATHS_POSIX && i < 2 && !found; i++)
        found = sfti_os_library_function(libraries[i], "compress2");
    if (found) memcpy(&compress, &found, sizeof compress);
    return compress;
}

static void put_big(uint8_t out[4], uint32_t value) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> (24 - 8 * i));
}

static bool put_chunk(sft_buffer *out, const sfti_crc32_table *table, const char *name,
                      const uint8_t *data, size_t len) {
    uint8_t head[8], end[4];
    put_big(head, (uint32_t)len);
    memcpy(head + 4, name, 4);
    put_big(end, sfti_crc32_add(table, sfti_crc32_add(table, 0, name, 4), data, len));
    return sfti_buffer_put(out, head, 8) && sfti_buffer_put(out, data, len)
        && sfti_buffer_put(out, end, 4);
}

/* Blocks of at most 65,535 bytes as they are, and Adler-32. Returns the length. */
static size_t store(uint8_t *to, const uint8_t *from, size_t len) {
    uint32_t a = 1, b = 0;
    size_t used = 2;
    memcpy(to, "\x78\x01", 2);
    for (size_t at = 0; at < len;) {
        size_t part = len - at < 65535 ? len - at : 65535;
        uint16_t size = (uint16_t)part, other = (uint16_t)~size;
        uint8_t head[5] = { at + part == len, (uint8_t)size, (uint8_t)(size >> 8),
                            (uint8_t)other, (uint8_t)(other >> 8) };
        memcpy(to + used, head, 5);
        memcpy(to + used + 5, from + at, part);
        used += 5 + part;
        at += part;
    }
    for (size_t i = 0; i < len; i++) {
        a = (a + from[i]) % 65521;
        b = (b + a) % 65521;
    }
    put_big(to + used, b << 16 | a);
    return used + 4;
}

sft_code thumb_png(const thumb_image *image, const sft_allocator *alloc, sft_buffer *out,
                   sft_error *err) {
    size_t row = (size_t)image->width * 4, rows = (row + 1) * image->height;
    size_t room = rows + rows / 1000 + 1024;
    uint8_t head[13] = { 0 }, *plain = sfti_take(alloc, rows), *packed = sfti_take(alloc, room);
    unsigned long len = (unsigned long)room;
    compress_fn compress = find_zlib();
    sfti_crc32_table table;
    bool fine = plain && packed;
    sfti_crc32_begin(&table, false);
    for (uint32_t y = 0; fine && y < image->height; y++) {
        const uint8_t *from = image->pixels + y * row;
        uint8_t *to = plain + y * (row + 1);
        to[0] = 1; /* Sub */
        for (size_t i = 0; i < row; i++) to[i + 1] = (uint8_t)(from[i] - (i < 4 ? 0 : from[i - 4]));
    }
    bool packs = fine && compress && compress(packed, &len, plain, (unsigned long)rows, 6) == 0;
    if (fine && !packs) len = (unsigned long)store(packed, plain, rows);
    put_big(head, image->width);
    put_big(head + 4, image->height);
    head[8] = 8, head[9] = 6; /* bits; RGBA */
    fine = fine && sfti_buffer_put(out, "\x89PNG\r\n\x1a\n", 8)
        && put_chunk(out, &table, "IHDR", head, sizeof head)
        && put_chunk(out, &table, "IDAT", packed, (size_t)len)
        && put_chunk(out, &table, "tEXt", (const uint8_t *)says, SAYS_LEN)
        && put_chunk(out, &table, "IEND", head, 0);
    if (plain) sfti_release(alloc, plain, rows);
    if (packed) sfti_release(alloc, packed, room);
    return fine ? SFT_OK : sfti_fail_memory(err, room);
}

bool thumb_is_ours(sft_span picture) {
    size_t end = SAYS_LEN + 4 + 12; /* its sum, IEND */
    return picture.len > end && memcmp(picture.data + picture.len - end, says, SAYS_LEN) == 0;
}
