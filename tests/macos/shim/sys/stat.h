#include_next <sys/stat.h>

#ifndef SHIM_STAT
#define SHIM_STAT

int shim_stat(const char *path, struct stat *out);
#define stat(path, out) shim_stat(path, out)

#endif
