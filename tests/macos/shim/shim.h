/* What macOS has and Linux has not, so that src/core/os/os_macos.c runs on Linux: its calls do what
 * macOS documents, or fail as the test asks, and are counted. shim/ comes before the system's
 * headers; each header there adds its part to the system's own. */
#ifndef SHIM_H
#define SHIM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shim_state {
    /* errno values of macOS that these calls fail with; 0: they work */
    int full_sync, contiguous, preallocate, no_cache, rename_new, seek_hole;
    int interrupts; /* EINTR, so many times before anything else */
    bool volumes;   /* whether /.vol/DEVICE/NUMBER leads to folders */
    /* calls so far */
    int full_syncs, syncs, contiguous_tries, preallocate_tries, no_cache_now, read_ahead_now,
        longest_random;
    int64_t advised; /* the offset */
} shim_state;

extern shim_state shim;

#endif
