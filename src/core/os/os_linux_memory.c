/* os.h on Linux: memory. */
#include "os/os_posix.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* A smaller one would fill less than three quarters of a huge page. */
#define LARGE_BLOCK ((size_t)3 << 19)

/* Bytes mapped for a large block: whole huge pages if the last is at least half full,
 * else small pages at the end; 0: it is none. Depends on the size alone, for resizing knows no
 * more. */
static size_t large_length(size_t size) {
    if (size < LARGE_BLOCK || size > SIZE_MAX / 2) return 0;
    size_t tail = size % OS_HUGE_PAGE;
    size_t unit = tail >= OS_HUGE_PAGE / 2 ? OS_HUGE_PAGE : 4096 * 16;
    return (size + unit - 1) / unit * unit;
}

/* ── Blocks that were given back ──
 * A fresh page is cleared by the system before it is written, which for a header of 12 MB costs
 * more than parsing. So the last two blocks are kept for the next file; the system may take their
 * pages meanwhile (MADV_FREE). Who finds the flag set does without them. */

#define KEPT_BLOCKS 2
#define KEPT_LONGEST ((size_t)16 << 20)

typedef struct kept_block {
    char *at; /* NULL: none */
    size_t len;
} kept_block;

static kept_block kept[KEPT_BLOCKS];
static atomic_flag kept_busy = ATOMIC_FLAG_INIT;

/* The shortest that is long enough, if less than half of it is too much. If there is none, NULL,
 * and no block is kept any more. */
static char *kept_take(size_t len) {
    kept_block out[KEPT_BLOCKS] = { { NULL, 0 } };
    size_t best = KEPT_BLOCKS, have = len > SIZE_MAX / 2 ? SIZE_MAX : 2 * len;
    if (atomic_flag_test_and_set(&kept_busy)) return NULL;
    for (size_t i = 0; i < KEPT_BLOCKS; i++) {
        if (!kept[i].at || kept[i].len < len || kept[i].len >= have) continue;
        best = i;
        have = kept[i].len;
    }
    char *at = best < KEPT_BLOCKS ? kept[best].at : NULL;
    for (size_t i = 0; i < KEPT_BLOCKS; i++) {
        if (at && i != best) continue;
        out[i] = kept[i];
        kept[i].at = NULL;
    }
    atomic_flag_clear(&kept_busy);
    for (size_t i = 0; i < KEPT_BLOCKS && !at; i++)
        if (out[i].at) (void)munmap(out[i].at, out[i].len);
    if (at && have > len) (void)munmap(at + len, have - len);
    return at;
}

/* In place of the shorter one if there are two. */
static void kept_put(char *at, size_t len) {
    size_t out = 0;
#ifdef MADV_FREE
    if (len <= KEPT_LONGEST && madvise(at, len, MADV_FREE) == 0 &&
        !atomic_flag_test_and_set(&kept_busy)) {
        for (size_t i = 1; i < KEPT_BLOCKS; i++)
            if (kept[out].at && (!kept[i].at || kept[i].len < kept[out].len)) out = i;
        char *before = kept[out].at;
        size_t before_len = kept[out].len;
        kept[out].at = at;
        kept[out].len = len;
        atomic_flag_clear(&kept_busy);
        at = before;
        len = before_len;
    }
#endif
    if (at) (void)munmap(at, len);
}

bool sfti_os_huge_ask(char *at, size_t len) {
#ifdef MADV_HUGEPAGE
    return madvise(at, len, MADV_HUGEPAGE) == 0;
#else
    (void)at, (void)len;
    return false;
#endif
}

static uint64_t thread_ns(void) {
    struct timespec now = { 0, 0 };
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* When the system has memory at hand, 2 MiB of it cost 0.25 ms as a huge page and 1.1 ms as small
 * ones. A host that took the system's free memory back (free page reporting) has to find it again:
 * then a huge page costs 6 ms, while small ones still come from memory that is at hand. */
#define HUGE_SLOW_NS 1500000

bool sfti_os_huge_quick(char *at) {
    if (!sfti_os_huge_ask(at, OS_HUGE_PAGE)) return false;
    uint64_t begin = thread_ns();
    *(volatile char *)at = 0;
    return thread_ns() - begin < HUGE_SLOW_NS;
}

static void *large_take(size_t len) {
    char *again = kept_take(len);
    if (again) return again;
    size_t cap = len + OS_HUGE_PAGE;
    char *at = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    size_t before = (OS_HUGE_PAGE - (uintptr_t)at % OS_HUGE_PAGE) % OS_HUGE_PAGE;
    size_t after = cap - before - len;
    if (before > 0) (void)munmap(at, before);
    if (after > 0) (void)munmap(at + before + len, after);
    if (len > OS_HUGE_PAGE && sfti_os_huge_quick(at + before))
        (void)sfti_os_huge_ask(at + before + OS_HUGE_PAGE, len - OS_HUGE_PAGE);
    else if (len <= OS_HUGE_PAGE) (void)sfti_os_huge_ask(at + before, len);
    return at + before;
}

void *sfti_os_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    if (!ptr) old_size = 0;
    if (old_size < LARGE_BLOCK && new_size < LARGE_BLOCK) {
        if (new_size > 0) return realloc(ptr, new_size);
        free(ptr);
        return NULL;
    }
    size_t have = large_length(old_size), want = large_length(new_size);
    if (have && want) {
        /* A large block keeps its place when it shrinks within its map's length or gives up its
         * end. */
        if (want < have) (void)munmap((char *)ptr + want, have - want);
        if (want <= have) return ptr;
    }
    void *fresh = want ? large_take(want) : new_size > 0 ? malloc(new_size) : NULL;
    if (!ptr || (!fresh && new_size > 0)) return fresh;
    if (fresh) memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    if (have) kept_put(ptr, have);
    else free(ptr);
    return fresh;
}

/* ── Programs ──
 * A program that goes through a folder takes and frees as much for each file: glibc would give it
 * back to the system each time, and every page would be cleared again. */

#define PROGRAM_KEEPS (3 << 20)
#define PROGRAM_MAPS (1 << 19) /* blocks from this size on are never kept */

int sfti_os_program_begin(int *argc, char ***argv) {
    (void)argc, (void)argv;
#ifdef M_TRIM_THRESHOLD
    (void)mallopt(M_TRIM_THRESHOLD, PROGRAM_KEEPS);
    (void)mallopt(M_MMAP_THRESHOLD, PROGRAM_MAPS);
#endif
    return 0;
}
