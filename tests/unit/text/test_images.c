/* Images by their first bytes, base64, texts of a PNG. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "safetensors_info.h"
#include "text/formats.h"

static sfti_arena arena;

static sft_span s(const char *text) { return sft_span_cstr(text); }

#define SAME(span, text) do { \
        sft_span got_ = (span); \
        if (!sft_span_equal(got_, s(text))) \
            fail_msg("line %d: expected \"%s\", got \"%.*s\"", __LINE__, text, \
                     (int)got_.len, got_.data ? got_.data : ""); \
    } while (0)

/* ── Types and sizes ── */

#define IMAGE(bytes, type, width, height) { bytes, sizeof bytes - 1, type, width, height }
static const struct { const char *bytes; size_t len; const char *type; uint32_t width, height; }
images[] = {
    IMAGE("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\1\0\0\0\2\0", "image/png", 256, 512),
    IMAGE("\x89PNG\r\n\x1A\n\0\0\0\x0D", "image/png", 0, 0),
    IMAGE("\xFF\xD8\xFF\xE0\0\x04JF\xFF\xC2\0\x11\x08\0\x20\0\x10", "image/jpeg", 16, 32),
    IMAGE("\xFF\xD8\xFF\xE0\0\x04JF\xFF\xC4\0\x11\x08\0\x20\0\x10", "image/jpeg", 0, 0),
    IMAGE("\xFF\xD8\xFF\xE0\0\0", "image/jpeg", 0, 0),
    IMAGE("\xFF\xD8\xFF", "image/jpeg", 0, 0),
    IMAGE("RIFF....WEBPVP8X........\x3F\x01\0\xFF\0\0", "image/webp", 320, 256),
    IMAGE("RIFF....WEBPVP8 .......\x9D\x01\x2A\x40\x01\xF0\0", "image/webp", 320, 240),
    IMAGE("RIFF....WEBPVP8L....\x2F\x3F\x41\x03\0.....", "image/webp", 320, 14),
    IMAGE("RIFF....WAVEfmt ", NULL, 0, 0),
    IMAGE("GIF89a\x03\0\x05\0", "image/gif", 3, 5),
    IMAGE("BM............\x28\0\0\0\x07\0\0\0\xF7\xFF\xFF\xFF", "image/bmp", 7, 9),
    IMAGE("BMW drivers of the world, unite", NULL, 0, 0),
    IMAGE("\0\0\0\x20" "ftypavif........ispe\0\0\0\0\0\0\1\0\0\0\2\0", "image/avif", 256, 512),
    IMAGE("\0\0\0\x20" "ftypisom", "video/mp4", 0, 0),
    IMAGE("\x1A\x45\xDF\xA3", "video/webm", 0, 0),
    IMAGE("\0\0\0\x0CJXL \r\n\x87\n", "image/jxl", 0, 0),
    IMAGE("\x89PNG\r\n\x1A\n\0\0\0\x0DIDAT\0\0\1\0\0\0\2\0", "image/png", 0, 0),
    IMAGE("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\1\0\0\0\0\0", "image/png", 0, 0),
    IMAGE("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\0\0\0\0\2\0", "image/png", 0, 0),
    IMAGE("\xFF\xD8\xFF\xFF\xFE\0\x02\xFF\xC1\0\x11\x08\0\x20\0\x10", "image/jpeg", 16, 32),
    IMAGE("\xFF\xD8\xFF\xC8\0\x02\xFF\xCC\0\x02\xFF\xCF\0\x11\x08\0\x20\0\x10",
          "image/jpeg", 16, 32),
    IMAGE("\xFF\xD8\xFF\xE0\0\x02\xFE\xC0\0\x11\x08\0\x20\0\x10", "image/jpeg", 0, 0),
    IMAGE("\xFF\xD8\xFF\xC0\0\x11\x08\0\x20\0", "image/jpeg", 0, 0),
    IMAGE("\xFF\xD8\xFF\xDA\0\1\0\0\0\0\0", "image/jpeg", 0, 0),
    IMAGE("RIFF....WEBPVP8X........\x3F\x01\0\xFF\0", "image/webp", 0, 0),
    IMAGE("RIFF....WEBPVP8L....\x2E\x3F\x41\x03\0.....", "image/webp", 0, 0),
    IMAGE("RIFF....WEBPVP8 .......\x9D\x01\x2B\x40\x01\xF0\0", "image/webp", 0, 0),
    IMAGE("RIFF....WEBPALPH..................", "image/webp", 0, 0),
    IMAGE("RIFF....", NULL, 0, 0), IMAGE("GIF87a\x03\0\x05", "image/gif", 0, 0),
    IMAGE("\0\0\0\x20" "ftypheic................", "image/heic", 0, 0),
    IMAGE("\0\0\0\x20" "ftypheix................", "image/heic", 0, 0),
    IMAGE("\0\0\0\x1c" "ftypmif1\0\0\0\0mif1heic", "image/heic", 0, 0),
    IMAGE("\0\0\0\x1c" "ftypmif1\0\0\0\0mif1miafavif", "image/avif", 0, 0),
    IMAGE("\0\0\0\x14" "ftypmif1\0\0\0\0mif1avif", "image/heic", 0, 0),
    IMAGE("\0\0\0\x20" "ftypqt  ", "video/quicktime", 0, 0),
    IMAGE("BN............\x28\0\0\0\7\0\0\0\7\0\0\0", NULL, 0, 0),
    IMAGE("CM............\x28\0\0\0\7\0\0\0\7\0\0\0", NULL, 0, 0),
    IMAGE("BM............\x27\0\0\0\7\0\0\0\7\0\0\0", NULL, 0, 0),
    IMAGE("BM............\x7D\0\0\0\7\0\0\0\7\0\0\0", NULL, 0, 0),
    IMAGE("BM............\x28\0\0\0\7\0\0\0\7\0\0", NULL, 0, 0),
    IMAGE("BM............\x7C\0\0\0\7\0\0\0\5\0\0\0", "image/bmp", 7, 5),
    IMAGE("<html>", NULL, 0, 0), IMAGE("", NULL, 0, 0), IMAGE("\x89PNG\r\n", NULL, 0, 0),
};

static void types(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        uint32_t width = 9, height = 9;
        char *exact = malloc(images[i].len + 1); /* so that a sanitizer sees reads past it */
        memcpy(exact, images[i].bytes, images[i].len);
        char *fit = realloc(exact, images[i].len ? images[i].len : 1);
        const char *type = sfti_image_type((sft_span){ fit, images[i].len }, &width, &height);
        if ((type == NULL) != (images[i].type == NULL)
            || (type && strcmp(type, images[i].type) != 0) || width != images[i].width
            || height != images[i].height)
            fail_msg("image %zu: %s %u x %u", i, type ? type : "(none)", width, height);
        assert_ptr_equal(sft_info_image_type((sft_span){ fit, images[i].len }, NULL, NULL), type);
        free(fit);
    }
}

/* ── base64 ── */

static bool decode(sft_span text, uint64_t most, sft_span *out) {
    sft_code code = SFT_OK;
    bool right = sfti_base64(&arena, text, most, out, &code);
    assert_int_equal(code, SFT_OK);
    return right;
}

static void base64(void **state) {
    static const char *const wrong[] = { "", "A", "AAAAA", "data:image/png,AAAA", "data:,",
                                         "[]", "not base64!", "====", "data:image/png;base64",
                                         "AB{}", "AB\x7F/", " \n " };
    sft_span out;
    (void)state;
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    assert_true(decode(s("aGVsbG8gd29ybGQ="), 100, &out));
    SAME(out, "hello world");
    assert_true(decode(s(" data:text/plain;base64,aGVs\nbG8"), 100, &out));
    SAME(out, "hello");
    assert_true(decode(s("a\tG V\rs"), 100, &out));
    SAME(out, "hel");
    assert_false(decode(s("aGVsbG8"), 3, &out));
    assert_true(decode(s("+/+/"), 100, &out));
    assert_memory_equal(out.data, "\xFB\xFF\xBF", 3);
    sft_code code = SFT_CANCELLED;
    assert_false(sfti_base64(&arena, s("aGVs"), 3, &out, &code));
    assert_int_equal(code, SFT_CANCELLED);
    assert_true(decode(s("-_-_"), 100, &out));
    assert_memory_equal(out.data, "\xFB\xFF\xBF", 3);
    assert_true(decode(s("aGVs"), 3, &out));
    assert_false(decode(s("aGVsbG8="), 3, &out));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (decode(s(wrong[i]), 100, &out)) fail_msg("%s", wrong[i]);
    sfti_arena_free(&arena);
}

/* ── Texts of a PNG ── */

static void png_texts(void **state) {
    static const char png[] = "\x89PNG\r\n\x1A\n"
        "\0\0\0\4IDATxxxxCCCC" "\0\0\0\5tEXtk\0caf" "CCCC" "\0\0\0\3tEXtabcCCCC"
        "\0\0\0\4tEXtk\0\xE9!CCCC" "\0\0\0\0IENDCCCC" "\0\0\0\4tEXtk\0noCCCC";
    sft_span whole = { png, sizeof png - 1 }, keyword, text;
    sft_code code = SFT_OK;
    size_t at = 0;
    (void)state;
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    assert_true(sfti_png_text(&arena, whole, &at, &keyword, &text, &code));
    SAME(keyword, "k");
    SAME(text, "caf");
    assert_true(sfti_png_text(&arena, whole, &at, &keyword, &text, &code));
    assert_int_equal(text.len, 0); /* no keyword */
    assert_true(sfti_png_text(&arena, whole, &at, &keyword, &text, &code));
    SAME(text, "\xC3\xA9!"); /* Latin-1 */
    assert_false(sfti_png_text(&arena, whole, &at, &keyword, &text, &code));
    at = 0;
    assert_false(sfti_png_text(&arena, s("GIF89a..."), &at, &keyword, &text, &code));
    assert_int_equal(code, SFT_OK);
    sfti_arena_free(&arena);
}

/* Compressed and international texts, and those that are none: their chunks count all the same. */
static void png_chunks(void **state) {
#define STORED(text) "x\1\1\2\0\xFD\xFF" text "\1\x3B\0\xD2" /* the checksum is "hi"'s */
#define CHUNK(type, bytes, keyword, text) { type, bytes, sizeof bytes - 1, keyword, text }
    static const struct { const char *type, *bytes; size_t len; const char *keyword,
        *text; } rows[] = {
        CHUNK("zTXt", "k\0\0" STORED("hi"), "k", "hi"), CHUNK("zTXt", "k\0", "k", ""),
        CHUNK("zTXt", "k\0\0" STORED("ho"), "k", ""), CHUNK("zTXt", "k\0\0", "k", ""),
        CHUNK("iTXt", "k\0\0\0en\0kk\0h\xC3\xA9", "k", "h\xC3\xA9"),
        CHUNK("iTXt", "k\0\1\0\0\0" STORED("hi"), "k", "hi"), CHUNK("iTXt", "k\0\1", "k", ""),
        CHUNK("iTXt", "k\0\0\0en", "k", ""), CHUNK("iTXt", "k\0\0\0en\0kk", "k", ""),
        CHUNK("iTXt", "", "", ""), CHUNK("tEXt", "k\0", "k", ""),
    };
    const bool inflates = !strstr(sft_build_info(), "zlib: no");
    sft_span keyword, text;
    sft_code code = SFT_OK;
    (void)state;
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char png[128] = "\x89PNG\r\n\x1A\n\0\0\0";
        size_t at = 0, size = rows[i].len + 20;
        png[11] = (char)rows[i].len;
        memcpy(png + 12, rows[i].type, 4);
        memcpy(png + 16, rows[i].bytes, rows[i].len);
        assert_true(sfti_png_text(&arena, (sft_span){ png, size }, &at, &keyword, &text, &code));
        SAME(keyword, rows[i].keyword);
        SAME(text, inflates || strcmp(rows[i].text, "hi") != 0 ? rows[i].text : "");
        assert_int_equal(at, size);
        at = 0;
        assert_false(sfti_png_text(&arena, (sft_span){ png, size - 1 }, &at, &keyword, &text,
                                   &code));
        assert_int_equal(code, SFT_OK);
    }
    /* Larger than any text that is read. */
    size_t size = ((size_t)4 << 20) + 28;
    char *big = calloc(1, size);
    for (int packed = 0; packed < 2; packed++) {
        size_t at = 0;
        memcpy(big, "\x89PNG\r\n\x1A\n\0\x40\0\x08tEXtk\0\xE9", 19);
        if (packed) memcpy(big + 12, "zTXt", 4);
        assert_true(sfti_png_text(&arena, (sft_span){ big, size }, &at, &keyword, &text, &code));
        SAME(keyword, "k");
        SAME(text, "");
        assert_int_equal(code, SFT_OK);
    }
    free(big);
    sfti_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types), cmocka_unit_test(base64), cmocka_unit_test(png_texts),
        cmocka_unit_test(png_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
