/* Extended regular expressions in linear time: no pattern and no text takes longer than the length
 * of the one times that of the other.
 *
 * What POSIX has, over UTF-8: . [] [^] with ranges and classes ([:alpha:]), * + ? {m} {m,} {m,n},
 * |, (), ^ and $ of the whole text; besides \w \W \s \S of ASCII, and \b \B \< \> at words. A
 * backslash before what is no letter or digit makes it a plain character. Bytes that are no UTF-8
 * are characters of their own. Not: references to groups inside the pattern, [.a.], [=a=].
 *
 * Of the matches, the leftmost; of these, the longest, as in POSIX; what the groups took of it is
 * decided by the order in the pattern: alternatives from the left, and * + ? {} as many times as
 * fits. */
#ifndef SFTI_REGEX_H
#define SFTI_REGEX_H

#include "safetensors.h"

#define SFTI_REGEX_GROUPS 10   /* the match and \1 to \9; further groups only group */
#define SFTI_REGEX_STEPS 4096  /* a program has at most; {m,n} counts as what it repeats */
#define SFTI_REGEX_TIMES 1000  /* the largest m and n */
#define SFTI_REGEX_DEPTH 64    /* groups within groups */

typedef struct sfti_regex sfti_regex;
/* Bytes of the text; both SIZE_MAX for a group that took no part. */
typedef struct sfti_regex_group { size_t begin, end; } sfti_regex_group;

/* SFT_BAD_ARGUMENT: it is no pattern, and the text says why. */
sft_code sfti_regex_new(sft_span pattern, const sft_allocator *alloc, sfti_regex **out,
                        sft_error *err);
void sfti_regex_free(sfti_regex *regex);

/* The first match that begins at `from` or behind it; false: none. What is before `from` still
 * counts for ^ and words. One thread at a time. */
bool sfti_regex_find(sfti_regex *regex, sft_span text, size_t from,
                     sfti_regex_group groups[SFTI_REGEX_GROUPS]);
/* Whether a match begins where the text does. */
bool sfti_regex_begins(sfti_regex *regex, sft_span text);

#endif
