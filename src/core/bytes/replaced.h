/* What is left where a replacement was interrupted and the old file had to step out of the way
 * first, as sfti_os_rename has it on Windows: .NAME.sft-XXXXXXXX.old, and no NAME. */
#ifndef SFTI_REPLACED_H
#define SFTI_REPLACED_H

#include "base/error.h"

#include <stdbool.h>

#define SFTI_OLD_PATH 4608

/* Whether this is such a name; *of is NAME. */
bool sfti_old_name(sft_span name, sft_span *of);

/* Whether it is .NAME.sft-XXXXXX, as files are called until they are whole. */
bool sfti_temporary_name(sft_span name, sft_span *of);

/* How many such files there are of the one at path, 0 if that is there itself or its folder cannot
 * be listed; out is the path of one of them. Lists the folder: not to be asked for each of many
 * names that a file gives. */
size_t sfti_old_find(const char *path, char out[SFTI_OLD_PATH]);

/* If there is one, SFT_NOT_FOUND that says so; false: there is none. */
bool sfti_old_fail(const char *path, sft_error *err);

#endif
