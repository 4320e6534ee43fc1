/* dup: what becomes of duplicates that are found. */
#ifndef CLI_DUP_H
#define CLI_DUP_H

#include "base/mem.h"
#include "support/cli.h"

typedef enum dup_how { DUP_ONLY_LIST = 0, DUP_REMOVE, DUP_LINK, DUP_REFLINK } dup_how;

/* Whether the options agree. */
sft_code dup_end_check(const cli *c, sft_error *err);
/* Models that were found to be the same file, or else to have the same weights: one stays. With
 * --yes; else it is told what would be done, by w as members of the group (NULL: to people). False
 * when out of memory. */
bool dup_end(cli *c, const char *const *paths, size_t count, bool same_file, sfti_arena *arena,
             sfti_json_writer *w);

#endif
