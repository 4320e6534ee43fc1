/* What the extension asks of Windows. */
#include "host.h"

#include <windows.h>

#include <string.h>

/* Views for copy-on-write count in full against the commit limit (MapViewOfFile). */
const bool pysft_host_commits_maps = true;

/* Large pages need a privilege that few users have. */
void pysft_host_ask_huge_pages(char *at, size_t bytes) {
    (void)at, (void)bytes;
}

/* What the system could be lent (MEM_RESET) would still count against the commit limit. */
const bool pysft_host_lends = false;

char *pysft_host_map(size_t bytes) {
    (void)bytes;
    return NULL;
}

void pysft_host_unmap(char *at, size_t bytes) {
    (void)at, (void)bytes;
}

bool pysft_host_lend(char *at, size_t bytes) {
    (void)at, (void)bytes;
    return false;
}

/* Pipes and devices have paths of their own: \\.\, which may be written with slashes. */
bool pysft_host_is_stream(const char *path) {
    static const char form[] = "//./";
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (path[i] != form[i] && !(form[i] == '/' && path[i] == '\\')) return false;
    return true;
}

const char *pysft_host_base_name(const char *path) {
    const char *name = path;
    for (const char *at = path; *at; at++)
        if (strchr("/\\:", *at)) name = at + 1;
    return name;
}

uint64_t pysft_host_process(void) {
    return GetCurrentProcessId();
}

double pysft_host_seconds(void) {
    return 1e-3 * (double)GetTickCount64();
}
