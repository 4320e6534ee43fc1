/* Paths, as text. */
#ifndef SFTI_PATH_H
#define SFTI_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes of the folder that a path names, its last slash counted; 0: it names none. The file's name
 * follows them. */
static inline size_t sfti_folder_len(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* That folder, "." if it names none, with a NUL; false if it does not fit. */
static inline bool sfti_folder_copy(const char *path, char *out, size_t cap) {
    size_t len = sfti_folder_len(path);
    if (len == 0) path = ".", len = 1;
    if (len >= cap) return false;
    memcpy(out, path, len);
    out[len] = '\0';
    return true;
}

#endif
