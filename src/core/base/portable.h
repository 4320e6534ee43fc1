/* Names of files that a file gives: of an index, a manifest, a model of several files. They have
 * '/' between their parts on every system. */
#ifndef SFTI_PORTABLE_H
#define SFTI_PORTABLE_H

#include "safetensors.h"

/* Whether a name is a path beneath a folder: relative, no part empty, "." or "..", no backslash,
 * no drive. What does not hold is refused everywhere. */
bool sfti_name_inside(sft_span name);

/* Whether every system takes such a name as what it is. *why, if not: static words for it. Refused
 * when written on any system, and when read at level strict or on Windows, which opens a device
 * for "nul.txt", a stream of "a" for "a:b" and "a" for "a. ". */
bool sfti_name_portable(sft_span name, const char **why);

/* Order in which names that differ by the case of ASCII letters alone are equal: one file on
 * Windows and macOS. */
int sfti_name_compare_folded(sft_span a, sft_span b);

#endif
