/* Large blocks of memory, kept for the next load when they are free (kept.c). Any thread, without
 * the GIL. */
#ifndef PYSFT_KEPT_H
#define PYSFT_KEPT_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the block for so many bytes: 1 to 32 MiB; 0: allocate them as others do. */
size_t pysft_kept_length(size_t bytes);
/* A block of that length, which begins at a multiple of 2 MiB; NULL: no memory, or there are
 * many such blocks. *again: it was another's, and its bytes are unspecified; otherwise they are
 * fresh from the system. */
char *pysft_kept_take(size_t len, bool *again);
/* Keeps a block, or frees it: kept are at most 128 MiB, mostly the newest. The system may take
 * the pages of a kept block. */
void pysft_kept_give(char *at, size_t len);
/* Frees all; their bytes. */
size_t pysft_kept_release(void);

#endif
