/* os.h on Windows: memory. */
#include "os/os_win32.h"

#include <stdlib.h>
#include <string.h>

/* Nothing is promised here that there is no memory for: each block is committed as it is asked
 * for. Large ones go to the system, so that they go back to it at once, and reserve addresses
 * behind their end, so that they keep their place when they grow. */
#define LARGE_BLOCK ((size_t)3 << 19)
#define PAGES ((size_t)64 << 10)

static bool is_large(size_t size) {
    return size >= LARGE_BLOCK && size <= SIZE_MAX / 4;
}

static size_t whole_pages(size_t size) {
    return (size + PAGES - 1) / PAGES * PAGES;
}

static void *large_take(size_t size) {
    size_t len = whole_pages(size);
    size_t room = sizeof(void *) > 4 ? len + len / 2 : len;
    char *at = VirtualAlloc(NULL, room, MEM_RESERVE, PAGE_READWRITE);
    if (!at && room > len) at = VirtualAlloc(NULL, len, MEM_RESERVE, PAGE_READWRITE);
    if (!at) return NULL;
    if (VirtualAlloc(at, len, MEM_COMMIT, PAGE_READWRITE)) return at;
    (void)VirtualFree(at, 0, MEM_RELEASE);
    return NULL;
}

static void block_release(void *ptr, size_t size) {
    if (is_large(size)) (void)VirtualFree(ptr, 0, MEM_RELEASE);
    else free(ptr);
}

/* A large block keeps its place when it shrinks, or grows within what was reserved: there it
 * commits pages, which fails where other memory begins. */
static bool large_adapt(char *ptr, size_t old_size, size_t new_size) {
    size_t have = whole_pages(old_size), want = whole_pages(new_size);
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
    bool was_large = ptr && is_large(old_size), large = is_large(new_size);
    if (new_size == 0) {
        if (ptr) block_release(ptr, old_size);
        return NULL;
    }
    if (!was_large && !large) return realloc(ptr, new_size);
    if (was_large && large && large_adapt(ptr, old_size, new_size)) return ptr;
    void *fresh = large ? large_take(new_size) : malloc(new_size);
    if (!fresh || !ptr) return fresh;
    memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    block_release(ptr, old_size);
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
