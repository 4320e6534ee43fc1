/* What the extension asks of Linux and macOS. */
#define _GNU_SOURCE
#include "host.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const bool pysft_host_commits_maps = false;

void pysft_host_ask_huge_pages(char *at, size_t bytes) {
#ifdef MADV_HUGEPAGE
    (void)madvise(at, bytes, MADV_HUGEPAGE);
#else
    (void)at, (void)bytes;
#endif
}

#define MAP_ALIGNMENT ((size_t)2 << 20)

char *pysft_host_map(size_t bytes) {
    size_t all = bytes + MAP_ALIGNMENT;
    if (bytes > SIZE_MAX - MAP_ALIGNMENT) return NULL;
    char *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    size_t before = (MAP_ALIGNMENT - (uintptr_t)at % MAP_ALIGNMENT) % MAP_ALIGNMENT;
    if (before > 0) pysft_host_unmap(at, before);
    pysft_host_unmap(at + before + bytes, all - before - bytes);
    return at + before;
}

void pysft_host_unmap(char *at, size_t bytes) {
    (void)munmap(at, bytes);
}

#ifdef MADV_FREE
const bool pysft_host_lends = true;

bool pysft_host_lend(char *at, size_t bytes) {
    return madvise(at, bytes, MADV_FREE) == 0;
}
#else
const bool pysft_host_lends = false;

bool pysft_host_lend(char *at, size_t bytes) {
    (void)at, (void)bytes;
    return false;
}
#endif

bool pysft_host_is_stream(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

const char *pysft_host_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

uint64_t pysft_host_process(void) {
    return (uint64_t)getpid();
}

double pysft_host_seconds(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
