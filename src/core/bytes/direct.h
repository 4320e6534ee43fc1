/* Bytes to a file past the page cache: gathered in a block of aligned memory and written in
 * whole units, front to back. The rest at the end is written plainly, and so is everything
 * from the byte on where the system does not want it otherwise. A full block is written by a
 * thread of its own while the next one is filled; small files have neither that thread nor the
 * second block. Only on request: docs/measured.md, Saving, compares it with the page cache and
 * early write-back. */
#ifndef SFTI_DIRECT_H
#define SFTI_DIRECT_H

#include "base/mem.h"
#include "os/os.h"

typedef struct sfti_direct_block {
    char *memory; /* NULL: there is none */
    char *at;     /* in memory, aligned */
    size_t used;
    uint64_t begin; /* in the file, of at[0] */
    int error;      /* of writing it */
} sfti_direct_block;

/* While a thread writes blocks[!turn], that block, plain and failed_at are the thread's. */
typedef struct sfti_direct {
    sft_allocator alloc;
    int fd;
    bool in_use;
    bool plain; /* the system had enough of it */
    bool alone; /* there is no second block */
    int turn;   /* the block that is being filled */
    sfti_direct_block blocks[2];
    bool writing; /* thread has been started and not been joined */
    os_thread thread;
    uint64_t process; /* that started it: a child of fork() lacks the thread */
    int error;        /* the first one; nothing is written after it */
    uint64_t failed_at; /* where, in the file */
} sfti_direct;

/* False where the file system has no such thing, or memory ran out: write plainly then. *d must
 * stay where it is. */
bool sfti_direct_begin(sfti_direct *d, int fd, const sft_allocator *alloc);
/* The next bytes; the errno, which may be that of bytes given before. */
int sfti_direct_write(sfti_direct *d, const void *bytes, size_t len);
/* All that is left to the file; the errno. */
int sfti_direct_end(sfti_direct *d);
/* Waits for the thread. */
void sfti_direct_free(sfti_direct *d);

#endif
