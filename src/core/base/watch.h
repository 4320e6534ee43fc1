/* Who is told of the files that are opened by their paths, and asked before one is published: the
 * command (cli/support/guard.c); in every other program nobody. */
#ifndef SFTI_WATCH_H
#define SFTI_WATCH_H

#include "safetensors.h"

struct os_info;

typedef struct sfti_file_watch {
    /* info: what was opened, before anything of it was read. */
    void (*opened)(const char *path, const struct os_info *info);
    /* All is written and synced; the next step gives it the path. A failure: it is abandoned. */
    sft_code (*publishes)(const char *path, sft_error *err);
} sfti_file_watch;

/* NULL where nobody watches. */
extern const sfti_file_watch *const sfti_hook_watch;

#endif
