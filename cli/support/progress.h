/* How far a long job is, on stderr when that is a terminal and a second has gone by; and
 * the way a signal stops it. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "support/cli.h"

typedef struct cli_progress {
    cli *c;
    const char *path;
    uint64_t started, shown; /* sfti_os_now_ns; shown 0 = nothing on the screen yet */
    /* Of a work of several jobs: bytes of those that are done, and of all; 0 = one job. */
    uint64_t before, all;
} cli_progress;

/* A job that ticks p; p must outlive it. */
sft_job cli_progress_begin(cli_progress *p, cli *c, const char *path);
/* So many of so many models are done (of: 0 = unknown); no tick is needed. */
void cli_progress_count(cli_progress *p, size_t count, size_t of);
/* Wipe the line, if there is one. */
void cli_progress_end(cli_progress *p);

#endif
