/* Words, pieces and numbers of texts that people and other programs write. Letters are compared
 * without regard to ASCII case where that is said; nothing here needs memory. Tests:
 * test_text.c. */
#ifndef SFTI_TEXT_H
#define SFTI_TEXT_H

#include "safetensors.h"

#include <string.h>

#define SFTI_COUNT(table) (sizeof(table) / sizeof *(table))

/* ── Letters ── */

char sfti_lower_case(char c);
/* A letter, a digit or part of a character beyond ASCII. */
bool sfti_word_byte(char c);
/* Without blanks and ends of lines around it. */
sft_span sfti_trim(sft_span text);
/* Equal, in any case. */
bool sfti_same_letters(sft_span a, const char *b);
bool sfti_same_text(sft_span a, sft_span b);
/* In any case; lower_case is in that. */
bool sfti_contains(sft_span text, const char *lower_case);
bool sfti_starts_with(sft_span text, const char *prefix);
bool sfti_ends_with(sft_span text, const char *suffix);
/* The rest of text from the first such place on, in any case; data NULL when there is none. */
sft_span sfti_find_letters(sft_span text, const char *lower_case);
/* The same byte for byte. Mostly the first letter decides. */
static inline bool sfti_is(sft_span text, const char *other) {
    if (text.len == 0 || *text.data != *other) return text.len == 0 && *other == 0;
    return strlen(other) == text.len && memcmp(text.data, other, text.len) == 0;
}

static inline bool sfti_begins(sft_span text, const char *prefix) {
    if (*prefix == 0) return true;
    if (text.len == 0 || *text.data != *prefix) return false;
    size_t len = strlen(prefix);
    return text.len >= len && memcmp(text.data, prefix, len) == 0;
}

static inline bool sfti_begins_with(sft_span text, sft_span begin) {
    return text.len >= begin.len && memcmp(text.data, begin.data, begin.len) == 0;
}

static inline bool sfti_ends(sft_span text, const char *suffix) {
    size_t len = strlen(suffix);
    return text.len >= len && (len == 0 || text.data[text.len - len] == *suffix)
        && memcmp(text.data + text.len - len, suffix, len) == 0;
}
sft_span sfti_find_byte(sft_span text, char byte);
/* Whether one of a list fits the text. */
typedef bool sfti_text_fits(sft_span text, const char *word);
bool sfti_one_of(sft_span text, const char *const *list, size_t count, sfti_text_fits *fits);
#define SFTI_ONE_OF(text, list, fits) sfti_one_of(text, list, SFTI_COUNT(list), fits)

/* ── Pieces ── */

/* The text from byte n on, which it has; cut off a prefix, in any case, if it is there. */
sft_span sfti_from(sft_span text, size_t n);
bool sfti_skip(sft_span *text, const char *prefix);
/* The next piece of a list up to a separator; false at the end. */
bool sfti_next_piece(sft_span *rest, char separator, sft_span *piece);
/* The next run of such bytes. */
bool sfti_next_word(sft_span *rest, sft_span *word, bool (*in_word)(char c));
/* Puts a word among others in order of bytes; false if it is one of them, or there are `most`. */
bool sfti_put_sorted(sft_span *words, size_t *count, size_t most, sft_span word);
/* The number of a word among those between blanks, or -1. */
int sfti_number_among(const char *words, sft_span word);
/* The last part of a path, after either slash ("a/b.safetensors"). */
sft_span sfti_leaf_name(sft_span text);

/* ── Numbers ── */

bool sfti_parse_uint(sft_span text, uint64_t *out);
bool sfti_parse_double(sft_span text, double *out); /* Python's float, no inf or nan */
bool sfti_is_number(sft_span text); /* as JSON spells numbers */
/* At most six decimals, no trailing zeros; 0 for what is 1e12 or larger, or no number. */
#define SFTI_DECIMALS_SIZE 48
size_t sfti_decimals(double value, char buffer[SFTI_DECIMALS_SIZE]);

#endif
