/* Patterns of names. */
#ifndef SFTI_GLOB_H
#define SFTI_GLOB_H

#include "safetensors.h"

/* `*` any bytes, `?` one character, `[a-z]` and `[!a-z]` a set of bytes; anything else is
 * itself, and so is a `[` that nothing closes. Never recurses; costs at most
 * pattern * text steps. */
bool sfti_glob_match(sft_span pattern, sft_span text);

#endif
