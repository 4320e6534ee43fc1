/* Paths in parts, and small files read whole. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "os/path.h"
#include "support/cli.h"

/* Folder of a path without its slash, empty for none. */
sft_span cli_folder_of(const char *path);
sft_span cli_name_of(const char *path);
/* Whether two paths of this system lie in the same folder, however they are written. */
bool cli_in_one_folder(const cli *c, const char *a, const char *b);
/* dir/name in the arena; NULL when memory ran out. */
char *cli_join_path(sfti_arena *arena, sft_span dir, const char *name);
/* A path from the root on, all links in its folder resolved. NULL when out of memory or, with
 * *error, if its folder cannot be found. */
char *cli_absolute(sfti_arena *arena, const char *path, int *error);

/* A name of at most `most` bytes, and a NUL, that any file system takes: letters, digits and what
 * is harmless everywhere; anything else becomes '_', and it begins with no dot, '-' or blank. */
void cli_safe_name(sft_span name, size_t most, char *buffer);

/* Open for reading what lies beside a model: through no link that leaves the path's folder, but
 * to the blobs of a Hub cache. An errno. */
int cli_open_beside(const char *path, int *fd);
/* All bytes of what was so opened, if it is a file: a pipe would be waited for. */
sft_code cli_read_beside(cli *c, int fd, uint64_t most, sft_buffer *out, sft_error *err);
/* All bytes of a file, at most `most`; "-": of standard input. *out need not be set before. */
sft_code cli_read_file(cli *c, const char *path, uint64_t most, sft_buffer *out,
                       sft_error *err);
/* All bytes of a file, whole or not at all. options without its allocator. */
sft_code cli_write_bytes(cli *c, const char *path, sft_path_options options, sft_span bytes,
                        sft_error *err);
/* What was read, as text: without a byte order mark. */
sft_span cli_read_text(const sft_buffer *bytes);

/* One process at a time writes a note in the folder of a path, or takes files out of it, where
 * there are locks: on the folder, else on a file in it, which goes with the lock. */
typedef struct cli_lock {
    int fd;          /* -1: none */
    char path[4096]; /* of the file; "": the folder is locked */
} cli_lock;
sft_code cli_lock_beside(const char *path, cli_lock *lock, sft_error *err);
void cli_lock_end(const cli_lock *lock); /* in any case */

/* Whether the parent folder of a path exists; `what` names what fails without it. */
sft_code cli_check_above(const char *path, const char *what, sft_error *err);
/* Whether nothing is there, or an empty folder: what a dry run asks, too. */
sft_code cli_check_folder(const cli *c, const char *path, sft_error *err);

#endif
