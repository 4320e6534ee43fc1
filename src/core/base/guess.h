/* "did you mean": the known word that a mistyped one is meant to be. */
#ifndef SFTI_GUESS_H
#define SFTI_GUESS_H

#include "safetensors.h"

/* Which of the known words a mistyped one is meant to be: the one that the fewest edits (insert,
 * delete, replace, swap neighbours) lead to. */
typedef struct sfti_guess {
    sft_span word, best;
    size_t edits; /* from word to best */
    char text[160];
} sfti_guess;

sfti_guess sfti_guess_begin(sft_span word);
void sfti_guess_try(sfti_guess *guess, sft_span known);
/* ": did you mean \"BEST\"?", with `before` and `after` around it; "" when none is near. */
const char *sfti_guess_text(sfti_guess *guess, const char *before, const char *after);

#endif
