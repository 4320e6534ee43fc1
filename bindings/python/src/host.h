/* What differs between operating systems: host_posix.c or host_win32.c. None needs the GIL. */
#ifndef PYSFT_HOST_H
#define PYSFT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the whole of a private map counts as used memory when it is made, so that a large one
 * may be refused, or take memory that other programs then lack. */
extern const bool pysft_host_commits_maps;

/* Asks for large pages; at and bytes are multiples of one. */
void pysft_host_ask_huge_pages(char *at, size_t bytes);
/* Whether the next three do anything. */
extern const bool pysft_host_lends;
/* Fresh memory from a multiple of 2 MiB on, of a multiple of 64 KiB; NULL: there is none. */
char *pysft_host_map(size_t bytes);
/* Part of such memory. */
void pysft_host_unmap(char *at, size_t bytes);
/* Lets the system take pages of such memory until they are written to; false: it cannot. */
bool pysft_host_lend(char *at, size_t bytes);
/* Whether a path is of a pipe or a device, which can be read only once. */
bool pysft_host_is_stream(const char *path);
/* The last part of a path or a URL. */
const char *pysft_host_base_name(const char *path);
/* Number of this process; a child made by fork() has another. */
uint64_t pysft_host_process(void);
/* Seconds since some moment, never set back. */
double pysft_host_seconds(void);

/* ── Large blocks of memory, kept for the next load when they are free (kept.c); for any thread,
 * without the GIL ── */

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
