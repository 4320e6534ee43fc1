/* Globs. Tests: test_glob.c, tests/cli (--match). */
#include "base/glob.h"
#include "base/utf8.h"

#include <stdint.h>

/* The character there, and its end; a byte that is no text is one beyond all characters. */
static uint32_t char_at(sft_span text, size_t *at) {
    const uint8_t *p = (const uint8_t *)text.data + *at;
    uint32_t code;
    size_t len = sfti_utf8_decode(p, (const uint8_t *)text.data + text.len, &code);
    *at += len ? len : 1;
    return len ? code : UINT32_C(0x110000) + *p;
}

/* at, end: of the set in its pattern. */
static bool set_holds(sft_span pattern, size_t at, size_t end, uint32_t c) {
    size_t i = at + 1;
    bool negated = pattern.data[i] == '!' || pattern.data[i] == '^', found = false;
    for (i += negated; i < end - 1;) {
        uint32_t low = char_at(pattern, &i), high = low;
        if (i + 1 < end - 1 && pattern.data[i] == '-') {
            i++;
            high = char_at(pattern, &i);
        }
        found |= c >= low && c <= high;
    }
    return found != negated;
}

/* One step of the pattern that is not `*`; moves both cursors when it fits. */
static bool glob_step(sft_span pattern, size_t *p, sft_span text, size_t *t) {
    if (*p >= pattern.len || *t >= text.len) return false;
    char c = pattern.data[*p];
    size_t end = c == '[' ? *p + 1 : 0;
    if (c == '?') {
        for (++*t; *t < text.len && ((unsigned char)text.data[*t] & 0xC0) == 0x80;) ++*t;
        *p += 1;
        return true;
    }
    if (end) { /* behind the `]` of the set, or 0 if none closes it */
        if (end < pattern.len && (pattern.data[end] == '!' || pattern.data[end] == '^')) end++;
        if (end < pattern.len && pattern.data[end] == ']') end++;
        while (end < pattern.len && pattern.data[end] != ']') end++;
        end = end < pattern.len ? end + 1 : 0;
    }
    if (end) {
        /* A star may have ended within a character. */
        if (((unsigned char)text.data[*t] & 0xC0) == 0x80) return false;
        if (!set_holds(pattern, *p, end, char_at(text, t))) return false;
        *p = end;
        return true;
    }
    if (c != text.data[*t]) return false;
    *p += 1;
    *t += 1;
    return true;
}

/* Only the last star ever needs to take more: an earlier one can't help. */
bool sfti_glob_match(sft_span pattern, sft_span text) {
    size_t p = 0, t = 0, star = SIZE_MAX, taken = 0;
    for (;;) {
        if (p < pattern.len && pattern.data[p] == '*') {
            star = ++p;
            taken = t;
        } else if (p == pattern.len && t == text.len) {
            return true;
        } else if (!glob_step(pattern, &p, text, &t)) {
            if (star == SIZE_MAX || taken >= text.len) return false;
            t = ++taken;
            p = star;
        }
    }
}
