/* Checks, decodes and cuts UTF-8. Tests: test_utf8.c. */
#include "base/utf8.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static bool is_tail(uint8_t b) { return (b & 0xC0) == 0x80; }

/* Lengths by lead byte; the ranges of Unicode's table 3-7 for the second byte. */
size_t sfti_utf8_decode(const uint8_t *p, const uint8_t *end, uint32_t *out) {
    size_t cap = (size_t)(end - p);
    if (cap == 0) return 0;
    uint8_t b = p[0];
    if (b < 0x80) {
        *out = b;
        return 1;
    }
    if (b >= 0xC2 && b <= 0xDF && cap >= 2 && is_tail(p[1])) {
        *out = (uint32_t)(b & 0x1F) << 6 | (p[1] & 0x3F);
        return 2;
    }
    if (b >= 0xE0 && b <= 0xEF && cap >= 3 && is_tail(p[1]) && is_tail(p[2])) {
        if ((b == 0xE0 && p[1] < 0xA0) || (b == 0xED && p[1] > 0x9F)) return 0;
        *out = (uint32_t)(b & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return 3;
    }
    if (b < 0xF0 || b > 0xF4 || cap < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3]))
        return 0;
    if ((b == 0xF0 && p[1] < 0x90) || (b == 0xF4 && p[1] > 0x8F)) return 0;
    *out = (uint32_t)(b & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12
           | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    return 4;
}

size_t sfti_utf8_encode(uint32_t code, char *out) {
    static const uint8_t lead[5] = { 0, 0x00, 0xC0, 0xE0, 0xF0 };
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)(lead[n] | code);
    return n;
}

size_t sfti_utf8_check(const char *text, size_t len) {
    size_t i = 0;
    while (i < len) {
        uint32_t code;
        /* ASCII, 64 bytes at a time. */
        for (; len - i >= 64; i += 64) {
#if defined(__SSE2__)
            const __m128i *v = (const __m128i *)(const void *)(text + i);
            __m128i low = _mm_or_si128(_mm_loadu_si128(v), _mm_loadu_si128(v + 1));
            __m128i high = _mm_or_si128(_mm_loadu_si128(v + 2), _mm_loadu_si128(v + 3));
            if (_mm_movemask_epi8(_mm_or_si128(low, high)) != 0) break;
#else
            uint64_t word[8], any = 0;
            memcpy(word, text + i, sizeof word);
            for (int k = 0; k < 8; k++) any |= word[k];
            if (any & UINT64_C(0x8080808080808080)) break;
#endif
        }
        while (i < len && (uint8_t)text[i] < 0x80) i++;
        if (i == len) return len;
        const uint8_t *p = (const uint8_t *)text + i;
        size_t n = sfti_utf8_decode(p, (const uint8_t *)text + len, &code);
        if (n == 0) return i;
        i += n;
    }
    return len;
}

size_t sfti_utf8_cut(sft_span text, size_t most) {
    size_t len = text.len < most ? text.len : most;
    while (len > 0 && len < text.len && is_tail((uint8_t)text.data[len])) len--;
    return len;
}

/* ── Characters that are not shown ── */

/* C1 is 0xC2 and a byte under 0xA0. */
bool sfti_utf8_has_control(sft_span text) {
    uint8_t before = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t b = (uint8_t)text.data[i];
        if (b < 0x20 || b == 0x7F || (before == 0xC2 && b < 0xA0)) return true;
        before = b;
    }
    return false;
}

/* Cc, Cf, Zl, Zp and Default_Ignorable_Code_Point of Unicode, sorted. */
static const uint32_t unsafe_ranges[][2] = {
    { 0x0, 0x1F },         { 0x7F, 0x9F },       { 0xAD, 0xAD },       { 0x34F, 0x34F },
    { 0x600, 0x605 },      { 0x61C, 0x61C },     { 0x6DD, 0x6DD },     { 0x70F, 0x70F },
    { 0x890, 0x891 },      { 0x8E2, 0x8E2 },     { 0x115F, 0x1160 },   { 0x17B4, 0x17B5 },
    { 0x180B, 0x180F },    { 0x200B, 0x200F },   { 0x2028, 0x202E },   { 0x2060, 0x206F },
    { 0x3164, 0x3164 },    { 0xFE00, 0xFE0F },   { 0xFEFF, 0xFEFF },   { 0xFFA0, 0xFFA0 },
    { 0xFFF0, 0xFFFB },    { 0x110BD, 0x110BD }, { 0x110CD, 0x110CD }, { 0x13430, 0x1343F },
    { 0x1BCA0, 0x1BCA3 },  { 0x1D173, 0x1D17A }, { 0xE0000, 0xE0FFF },
};

bool sfti_utf8_unsafe(uint32_t code) {
    size_t low = 0, high = sizeof unsafe_ranges / sizeof *unsafe_ranges;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code > unsafe_ranges[middle][1]) low = middle + 1;
        else high = middle;
    }
    return low < sizeof unsafe_ranges / sizeof *unsafe_ranges && code >= unsafe_ranges[low][0];
}

bool sfti_utf8_mark(sft_span text) {
    static const char marks[][2] = { { '\xE2', '\x80' }, { '\xE3', '\x80' }, { '\xEF', '\xBC' } };
    for (size_t i = 0; text.len > 2 && i < sizeof marks / sizeof *marks; i++)
        if (memcmp(text.data, marks[i], 2) == 0) return true;
    return false;
}
