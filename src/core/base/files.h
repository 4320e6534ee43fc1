/* Calls of sft_files, which may be NULL or have an older table: what it lacks does nothing. */
#ifndef SFTI_FILES_H
#define SFTI_FILES_H

#include "safetensors.h"
#include "safetensors_io.h"

/* Restricts permission bits (0: not known) to those that another file has, too (0: not known);
 * 0600 if none are left. */
static inline void sfti_mode_common(uint32_t *mode, uint32_t other) {
    if (other == 0) return;
    *mode = *mode ? *mode & other & 0777 : other & 0777;
    if (*mode == 0) *mode = 0600;
}

/* Whether a path is theirs rather than the system's. beneath: the folder that it begins with, if
 * a file names the rest; beneath the current folder ("") none is theirs, for a name in a file does
 * not choose where it is opened. */
bool sfti_files_claim(const sft_files *files, const char *path, const char *beneath);

/* Whether a name that a file gave may be joined to a folder that they claim: in a URL it must not
 * end the path, be an escape, or begin with a scheme. */
bool sfti_files_name_fits(sft_span name);

/* Announce those of the paths that they claim. */
void sfti_files_expect(const sft_files *files, const char *const *paths, size_t count,
                       const char *beneath);
bool sfti_files_can_list(const sft_files *files);
sft_code sfti_files_list(const sft_files *files, const char *folder, sft_listed_fn each,
                         void *ctx, sft_error *err);

#endif
