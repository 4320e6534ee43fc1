/* Who is told of the files that are opened by their paths, and asked before one is published: the
 * command (cli/support/guard.c). One for the process; NULL: nobody. The library never sets it. */
#ifndef SFTI_WATCH_H
#define SFTI_WATCH_H

#include "safetensors.h"

struct os_info;

typedef struct sfti_file_watch {
    /* info: what was opened, before anything of it was read. */
    void (*opened)(void *ctx, const char *path, const struct os_info *info);
    /* All is written and synced; the next step gives it the path. A failure: it is abandoned. */
    sft_code (*publishes)(void *ctx, const char *path, sft_error *err);
    void *ctx;
} sfti_file_watch;

extern const sfti_file_watch *sfti_watching;

#endif
