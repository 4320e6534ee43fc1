/* Small things about words: order by parts and globs. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "base/guess.h"
#include "safetensors.h"

/* Natural order (base/order.h) part by part between dots: names that share their first
 * parts stay together. */
int cli_dotted_compare(sft_span a, sft_span b);

static inline bool cli_is(sft_span text, const char *word) {
    return sft_span_equal(text, sft_span_cstr(word));
}

/* The next part of a text with separators between; false at the end, where rest->data is NULL. */
bool cli_next_part(sft_span *rest, char separator, sft_span *part);
/* At most `most` bytes of a text in UTF-8, no character cut in two. */
sft_span cli_cut(sft_span text, size_t most);

/* ASCII letters: the small one and the capital, equality and suffixes without regard to case. */
char cli_lower(char c);
char cli_upper(char c);
bool cli_same_letters(sft_span a, sft_span b);
bool cli_ends_with(sft_span text, const char *suffix);

/* Digits alone, of a number up to `most`. */
bool cli_parse_number(const char *text, uint64_t most, uint64_t *out);

/* Whether text contains word (not empty), letters of any case; blanks, '-', '_' and '.' are alike,
 * and may be left out unless digits stand on both sides. */
bool cli_loose_has(sft_span text, sft_span word);

#endif
