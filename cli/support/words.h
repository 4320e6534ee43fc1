/* Small things about words: order by parts, globs, the nearest spelling. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "safetensors.h"

/* Natural order (base/order.h) part by part between dots: names that share their first
 * parts stay together. */
int cli_dotted_compare(sft_span a, sft_span b);

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
