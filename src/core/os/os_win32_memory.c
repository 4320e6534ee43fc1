/* os.h on Windows: memory. */
#include "os/os_win32.h"

#include <stdlib.h>
#include <string.h>

/* Nothing is promised here that there is no memory for: each block is committed as it is asked
 * for. Large ones go to the system, so that they go back to it at once, and reserve addresses
 * behind their end, so that they keep their place when they grow. */
#define LARGE_BLOCK ((size_t)3 << 19)
#define PAGES ((size_t)64 << 10)

/* Bytes of a large block, in whole pages; 0: it is none. */
static size_t large_length(size_t size) {
    return size < LARGE_BLOCK || size > SIZE_MAX / 4 ? 0 : (size + PAGES - 1) / PAGES * PAGES;
}

static void *large_take(size_t len) {
    size_t room = sizeof(void *) > 4 ? len + len / 2 : len;
    char *at = VirtualAlloc(NULL, room, MEM_RESERVE, PAGE_READWRITE);
    if (!at && room > len) at = VirtualAlloc(NULL, len, MEM_RESERVE, PAGE_READWRITE);
    if (!at) return NULL;
    if (VirtualAlloc(at, len, MEM_COMMIT, PAGE_READWRITE)) return at;
    (void)VirtualFree(at, 0, MEM_RELEASE);
    return NULL;
}

/* A large block keeps its place when it shrinks, or grows within what was reserved: there it
 * commits pages, which fails where other memory begins. */
static bool large_adapt(char *ptr, size_t have, size_t want) {
    MEMORY_BASIC_INFORMATION behind;
    if (want < have) (void)VirtualFree(ptr + want, have - want, MEM_DECOMMIT);
    if (want <= have) return true;
    if (!VirtualQuery(ptr + have, &behind, sizeof behind)) return false;
    bool room = behind.State == MEM_RESERVE && behind.AllocationBase == ptr &&
                behind.RegionSize >= want - have;
    return room && VirtualAlloc(ptr + have, want - have, MEM_COMMIT, PAGE_READWRITE);
}

void *sfti_os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    size_t have = ptr ? large_length(old_size) : 0, want = large_length(new_size);
    if (!have && !want && new_size > 0) return realloc(ptr, new_size);
    if (have && want && large_adapt(ptr, have, want)) return ptr;
    void *fresh = want ? large_take(want) : new_size > 0 ? malloc(new_size) : NULL;
    if (!ptr || (!fresh && new_size > 0)) return fresh;
    if (fresh) memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    if (have) (void)VirtualFree(ptr, 0, MEM_RELEASE);
    else free(ptr);
    return fresh;
}

/* Its large pages are for programs with a privilege. */
bool sfti_os_huge_ask(char *at, size_t len) {
    (void)at, (void)len;
    return false;
}

bool sfti_os_huge_quick(char *at) {
    (void)at;
    return false;
}
