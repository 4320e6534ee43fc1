/* Two spellings of one word have the same key. */
#include "label/words/triggers.h"

#include "base/utf8.h"

#include <string.h>

/* Lower case of two-byte letters: Latin-1, Greek, Cyrillic. */
static const struct lower_range { uint32_t first, last, add; } lower_ranges[] = {
    { 0xC0, 0xD6, 32 }, { 0xD8, 0xDE, 32 }, { 0x391, 0x3A9, 32 },
    { 0x400, 0x40F, 80 }, { 0x410, 0x42F, 32 },
};

static size_t put_lower(sft_span at, char *out) {
    uint32_t code;
    const uint8_t *p = (const uint8_t *)at.data;
    size_t size = sfti_utf8_decode(p, p + at.len, &code);
    if (size != 2) {
        memcpy(out, at.data, size ? size : 1);
        return size ? size : 1;
    }
    for (size_t i = 0; i < SFTI_COUNT(lower_ranges); i++)
        if (code >= lower_ranges[i].first && code <= lower_ranges[i].last)
            return sfti_utf8_encode(code + lower_ranges[i].add, out);
    memcpy(out, at.data, 2);
    return 2;
}

bool sfti_frees_bracket(sft_span text, size_t i) {
    return text.data[i] == '\\' && i + 1 < text.len && strchr("()[]\\", text.data[i + 1])
        && text.data[i + 1];
}

size_t sfti_word_key(sft_span text, char *out) {
    size_t len = 0;
    for (size_t i = 0; i < text.len;) {
        char c = text.data[i];
        if (sfti_frees_bracket(text, i)) c = text.data[++i];
        if ((unsigned char)c < 0x80) {
            out[len++] = c == '_' ? ' ' : c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
            i++;
        } else {
            size_t size = put_lower((sft_span){ text.data + i, text.len - i }, out + len);
            len += size;
            i += size;
        }
    }
    return len;
}

bool sfti_same_word(sft_span a, sft_span b) {
    char key_a[SFTI_WORD_MOST], key_b[SFTI_WORD_MOST];
    if (a.len > SFTI_WORD_MOST || b.len > SFTI_WORD_MOST) return sft_span_equal(a, b);
    size_t len = sfti_word_key(a, key_a);
    return len == sfti_word_key(b, key_b) && memcmp(key_a, key_b, len) == 0;
}
