#include "host.h"

#include <windows.h>

#include <string.h>

/* Views for copy-on-write count in full against the commit limit (MapViewOfFile). */
const bool pysft_host_commits_maps = true;

/* Large pages need a privilege that few users have. */
void pysft_host_ask_huge_pages(char *at, size_t bytes) {
    (void)at, (void)bytes;
}

/* Pipes and devices have paths of their own. */
bool pysft_host_is_stream(const char *path) {
    return strncmp(path, "\\\\.\\", 4) == 0;
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
