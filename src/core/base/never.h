/* What cannot be, and is checked all the same, for memory hangs on it. */
#ifndef SFTI_NEVER_H
#define SFTI_NEVER_H

#include <stdbool.h>

/* The condition itself; the line before a use says why it never holds. In a coverage
 * build it is false and no branch, and the program stops where it does hold. */
#if defined(SFT_COVERAGE)
static inline void sfti_never_holds(bool condition) {
    if (condition) __builtin_trap(); /* unreachable */
}
#define sfti_never(condition) (sfti_never_holds(condition), false)
#else
#define sfti_never(condition) (condition)
#endif

#endif
