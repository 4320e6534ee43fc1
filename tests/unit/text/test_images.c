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
                                         "[]", "not base64!", "====" };
    sft_span out;
    (void)state;
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    assert_true(decode(s("aGVsbG8gd29ybGQ="), 100, &out));
    SAME(out, "hello world");
    assert_true(decode(s(" data:text/plain;base64,aGVs\nbG8"), 100, &out));
    SAME(out, "hello");
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types), cmocka_unit_test(base64), cmocka_unit_test(png_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
