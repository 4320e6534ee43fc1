/* Bytes to a file past the page cache: gathered in a block of aligned memory and written in
 * whole units, front to back. The rest at the end is written plainly, and so is everything
 * from the byte on where the system does not want it otherwise. Only on request: it was measured
 * to be slower than the page cache with early write-back (docs/measured.md, Saving). */
#ifndef SFTI_DIRECT_H
#define SFTI_DIRECT_H

#include "base/mem.h"
#include "os/os.h"

typedef struct sfti_direct {
    sft_allocator alloc;
    int fd;
    char *buffer; /* NULL: not in use */
    char *at;     /* in buffer, aligned */
    size_t used;
    uint64_t begin; /* in the file, of at[0] */
    bool plain;     /* the system had enough of it */
} sfti_direct;

/* False where the file system has no such thing, or memory ran out: write plainly then. */
bool sfti_direct_begin(sfti_direct *d, int fd, const sft_allocator *alloc);
/* The next bytes; the errno. */
int sfti_direct_write(sfti_direct *d, const void *bytes, size_t len);
/* All that is left to the file; the errno. */
int sfti_direct_end(sfti_direct *d);
void sfti_direct_free(sfti_direct *d);

#endif
