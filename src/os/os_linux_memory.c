/* os.h on Linux: memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "os/os.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A smaller one would fill less than three quarters of a huge page. */
#define LARGE_BLOCK ((size_t)3 << 19)
#define HUGE_PAGE ((size_t)2 << 20)

static bool is_large(size_t size) {
    return size >= LARGE_BLOCK && size <= SIZE_MAX / 2;
}

/* Bytes mapped for a large block: whole huge pages if the last is at least half full,
 * else small pages at the end. Depends on the size alone, for resizing knows no more. */
static size_t large_length(size_t size) {
    size_t tail = size % HUGE_PAGE;
    size_t unit = tail >= HUGE_PAGE / 2 ? HUGE_PAGE : 4096 * 16;
    return (size + unit - 1) / unit * unit;
}

static void *large_take(size_t size) {
    size_t len = large_length(size);
    size_t cap = len + HUGE_PAGE;
    char *at = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)at % HUGE_PAGE) % HUGE_PAGE;
    size_t after = cap - before - len;
    if (before > 0) (void)munmap(at, before);
    if (after > 0) (void)munmap(at + before + len, after);
#ifdef MADV_HUGEPAGE
    (void)madvise(at + before, len, MADV_HUGEPAGE);
#endif
    return at + before;
}

static void block_release(void *ptr, size_t size) {
    if (is_large(size)) {
        (void)munmap(ptr, large_length(size));
    } else {
        free(ptr);
    }
}

/* A large block keeps its place when it shrinks within its map's length or gives up its
 * end. */
static bool large_shrink(void *ptr, size_t old_size, size_t new_size) {
    size_t have = large_length(old_size), want = large_length(new_size);
    if (want > have) return false;
    if (want < have) (void)munmap((char *)ptr + want, have - want);
    return true;
}

void *os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    bool was_large = ptr && is_large(old_size), large = is_large(new_size);
    if (new_size == 0) {
        if (ptr) block_release(ptr, old_size);
        return NULL;
    }
    if (!was_large && !large) return realloc(ptr, new_size);
    if (was_large && large && large_shrink(ptr, old_size, new_size)) return ptr;
    void *fresh = large ? large_take(new_size) : malloc(new_size);
    if (!fresh || !ptr) return fresh;
    memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    block_release(ptr, old_size);
    return fresh;
}
