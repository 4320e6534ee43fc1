/* The words of a program where the system hands it one line and shells expand no patterns: on
 * Windows. Pure but for sfti_args_expand, which lists folders by os.h. */
#ifndef SFTI_ARGS_H
#define SFTI_ARGS_H

#include "base/mem.h"

#include <stdbool.h>

typedef struct sfti_args {
    char **words; /* NULL behind the last */
    bool *patterns; /* of each: it holds * or ? outside quotes */
    size_t count, cap;
    sfti_arena *arena;
} sfti_args;

/* The line's words, by the rules of Microsoft's C library: blanks separate, " quotes, "" in quotes
 * is one, a backslash counts before a " alone. False: out of memory. */
bool sfti_args_split(sfti_args *args, const char *line);

/* Replaces each pattern behind the first word by the files that it matches, in the order of their
 * names; one that matches none stays, and so does what begins with '-'. * and ? match within a
 * part, no hidden name unless they stand behind a dot. */
bool sfti_args_expand(sfti_args *args);

#endif
