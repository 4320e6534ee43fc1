/* The nearest spelling of a mistyped word. Tests: test_records_own.c. */
#include "base/guess.h"

#include <stdio.h>

#define SPELLING_MOST 63

/* SIZE_MAX where either is longer than SPELLING_MOST bytes. */
static size_t edit_distance(sft_span a, sft_span b) {
    size_t row[3][SPELLING_MOST + 1];
    if (a.len > SPELLING_MOST || b.len > SPELLING_MOST) return SIZE_MAX;
    for (size_t j = 0; j <= b.len; j++) row[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t differs = a.data[i - 1] != b.data[j - 1];
            now[j] = before[j - 1] + differs;
            if (before[j] + 1 < now[j]) now[j] = before[j] + 1;
            if (now[j - 1] + 1 < now[j]) now[j] = now[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
                           a.data[i - 2] == b.data[j - 1];
            if (swapped && earlier[j - 2] + 1 < now[j]) now[j] = earlier[j - 2] + 1;
        }
    }
    return row[a.len % 3][b.len];
}

sfti_guess sfti_guess_begin(sft_span word) {
    return (sfti_guess){ .word = word, .edits = SIZE_MAX };
}

void sfti_guess_try(sfti_guess *guess, sft_span known) {
    size_t edits = edit_distance(known, guess->word);
    if (edits >= guess->edits) return;
    guess->edits = edits;
    guess->best = known;
}

const char *sfti_guess_text(sfti_guess *guess, const char *before, const char *after) {
    size_t len = guess->word.len;
    if (guess->edits > (len < 3 ? 1 : len < 8 ? 2 : len / 3)) return "";
    snprintf(guess->text, sizeof guess->text, ": did you mean %s%.*s%s?", before,
             (int)guess->best.len, guess->best.data, after);
    return guess->text;
}
