/* Times in struct stat by their names in POSIX; macOS has names of its own for them. */
#ifndef STAT_TIMES_H
#define STAT_TIMES_H

#include <sys/stat.h>

#ifdef __APPLE__
#define st_atim st_atimespec
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

#endif
