/* Paths of the host, as text. */
#ifndef SFTI_OS_PATH_H
#define SFTI_OS_PATH_H

#include "base/path.h"
#include "os/os.h"

#define sfti_is_separator(c) sfti_rule_separates(SFTI_OS_PATHS, c)
#define sfti_root_len(path) sfti_rule_root(SFTI_OS_PATHS, sft_span_cstr(path))

/* Bytes of the folder that a path names, with the separator behind it; 0: it names none. The
 * file's name follows them. */
#define sfti_folder_len(path) sfti_rule_folder(SFTI_OS_PATHS, sft_span_cstr(path))

/* That folder, "." if it names none, with a NUL; false if it does not fit. */
static inline bool sfti_folder_copy(const char *path, char *out, size_t cap) {
    size_t len = sfti_folder_len(path);
    if (len == 0) path = ".", len = 1;
    if (len >= cap) return false;
    memcpy(out, path, len);
    out[len] = '\0';
    return true;
}

/* The last part; empty behind a separator. */
static inline sft_span sfti_path_name(sft_span path) {
    size_t folder = sfti_rule_folder(SFTI_OS_PATHS, path);
    if (folder == 0) return path; /* which may be NULL */
    return (sft_span){ path.data + folder, path.len - folder };
}

/* Without the separators at its end, the root's but for. */
static inline sft_span sfti_path_trimmed(sft_span path) {
    return (sft_span){ path.data, sfti_rule_trimmed(SFTI_OS_PATHS, path) };
}

/* The folder that a path lies in, without the separator behind it: "" of "a", "a" of "a/b", "/" of
 * "/a". */
static inline sft_span sfti_path_above(sft_span path) {
    path.len = sfti_rule_folder(SFTI_OS_PATHS, path);
    return sfti_path_trimmed(path);
}

/* What is put between a folder and a name; 0: nothing. */
#define sfti_path_joint(folder) sfti_rule_joint(SFTI_OS_PATHS, folder)

/* Whether a path is folder/…; *rest is what is behind the separator. */
static inline bool sfti_path_below(sft_span path, sft_span folder, sft_span *rest) {
    size_t at = folder.len;
    if (path.len < at || memcmp(path.data, folder.data, at) != 0) return false;
    if (at == 0 && sfti_rule_root(SFTI_OS_PATHS, path) > 0) return false;
    bool apart = sfti_path_joint(folder) != 0;
    if (apart && (at == path.len || !sfti_is_separator(path.data[at]))) return false;
    while (at < path.len && sfti_is_separator(path.data[at])) at++;
    *rest = (sft_span){ path.data + at, path.len - at };
    return true;
}

/* sfti_escape of a path: on Windows, where it separates the parts, a backslash stays as it is. */
size_t sfti_path_escape(sft_span path, char *into, size_t cap, size_t *used);

#endif
