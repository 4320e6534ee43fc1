/* Texts of protocols: ASCII, whatever the locale. */
#ifndef SFTI_REMOTE_TEXT_H
#define SFTI_REMOTE_TEXT_H

#include "base/mem.h"
#include "base/number.h"

static inline bool sfti_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline char sfti_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static inline bool sfti_is_letter(char c) {
    return sfti_lower(c) >= 'a' && sfti_lower(c) <= 'z';
}

/* Value of a hexadecimal digit, or -1. */
static inline int sfti_hex_digit(char c) {
    char lower = sfti_lower(c);
    if (sfti_is_digit(c)) return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The byte that "%XX" at a place of a text stands for, or -1 if that is none. */
static inline int sfti_percent_byte(sft_span text, size_t at) {
    bool here = text.len - at > 2 && text.data[at] == '%';
    int high = here ? sfti_hex_digit(text.data[at + 1]) : -1;
    int low = high >= 0 ? sfti_hex_digit(text.data[at + 2]) : -1;
    return low < 0 ? -1 : high * 16 + low;
}

/* The text from `at` on; at most its length. */
static inline sft_span sfti_span_from(sft_span text, size_t at) {
    return (sft_span){ at ? text.data + at : text.data, text.len - at };
}

/* Whether two texts differ in case at most. */
bool sfti_text_same(sft_span a, sft_span b);
bool sfti_text_is(sft_span text, const char *word);
bool sfti_text_begins(sft_span text, const char *word);
/* Whether it holds bytes below 0x20, or 0x7f. */
bool sfti_text_has_control(sft_span text);
/* Without blanks (spaces, tabs) at both ends. */
sft_span sfti_text_trim(sft_span text);
/* Position of c, or the length. */
size_t sfti_text_find(sft_span text, char c);
/* Take the text before the next `by`, trimmed, off the front of *rest; false: *rest is used up
 * (its data is NULL then). */
bool sfti_text_split(sft_span *rest, char by, sft_span *out);

/* The texts one after another, up to NULL; NULL when out of memory. */
char *sfti_text_join(sfti_arena *arena, const char *const *texts);
#define SFTI_JOIN(arena, ...) sfti_text_join(arena, (const char *const[]){ __VA_ARGS__, NULL })
/* Append a text without its NUL. False: no memory. */
bool sfti_put_word(sft_buffer *out, const char *word);

#endif
