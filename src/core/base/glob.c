/* Globs. Tests: tests/cli (--match). */
#include "base/glob.h"

#include <stdint.h>

static bool set_holds(sft_span pattern, size_t at, size_t end, unsigned char c) {
    size_t i = at + 1;
    bool negated = pattern.data[i] == '!' || pattern.data[i] == '^', found = false;
    for (i += negated; i < end - 1; i++) {
        unsigned char low = (unsigned char)pattern.data[i], high = low;
        if (i + 2 < end - 1 && pattern.data[i + 1] == '-') {
            high = (unsigned char)pattern.data[i + 2];
            i += 2;
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
        if (!set_holds(pattern, *p, end, (unsigned char)text.data[*t])) return false;
        *p = end;
    } else {
        if (c != text.data[*t]) return false;
        *p += 1;
    }
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
