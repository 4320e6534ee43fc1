/* Small things about words: order by parts, globs, the nearest spelling. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "safetensors.h"

/* Natural order (base/order.h) part by part between dots: names that share their first
 * parts stay together. */
int cli_dotted_compare(sft_span a, sft_span b);

/* ASCII letters: the small one, equality and suffixes without regard to case. */
char cli_lower(char c);
bool cli_same_letters(sft_span a, sft_span b);
bool cli_ends_with(sft_span text, const char *suffix);

/* Digits alone, of a number up to `most`. */
bool cli_parse_number(const char *text, uint64_t most, uint64_t *out);

/* `*` any bytes, `?` one character, `[a-z]` and `[!a-z]` a set of bytes; anything else is
 * itself, and so is a `[` that nothing closes. Never recurses; costs at most
 * pattern * text steps. */
bool cli_glob_match(sft_span pattern, sft_span text);

/* Edits (insert, delete, replace, swap neighbours) from a to b; SIZE_MAX when either is
 * longer than 63 bytes. */
size_t cli_distance(sft_span a, sft_span b);
/* Whether that many edits of a word of len bytes are a likely slip. */
bool cli_is_near(size_t distance, size_t len);

#endif
