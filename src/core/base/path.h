/* Paths of a system, as text. A rule says how it takes them apart; os/path.h has these functions by
 * that of the host. Names that come from files have '/' alone on every system. */
#ifndef SFTI_PATH_H
#define SFTI_PATH_H

#include "safetensors.h"

#include <string.h>

typedef enum sfti_path_rule {
    SFTI_PATHS_POSIX,
    SFTI_PATHS_WINDOWS /* '\\' separates as '/' does; C: and \\server\share begin paths */
} sfti_path_rule;

static inline bool sfti_rule_separates(sfti_path_rule rule, char c) {
    return c == '/' || (c == '\\' && rule == SFTI_PATHS_WINDOWS);
}

/* Bytes of what no ".." leaves: "/", "C:/", "C:" of a path relative to the current folder of that
 * drive, "//server/share/", "//?/C:/". 0: there is none. */
size_t sfti_rule_root(sfti_path_rule rule, sft_span path);
/* Bytes of the folder that a path names, with the separator behind it; 0: it names none. The
 * file's name follows them. */
size_t sfti_rule_folder(sfti_path_rule rule, sft_span path);
/* Bytes without separators at the end, but for those of the root. */
size_t sfti_rule_trimmed(sfti_path_rule rule, sft_span path);
/* What is put between a folder and a name: '\\' if that is how the folder is spelled, else '/'; 0
 * where nothing is to be. */
char sfti_rule_joint(sfti_path_rule rule, sft_span folder);

#endif
