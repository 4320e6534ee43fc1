#include_next <stdio.h>

#ifndef SHIM_STDIO
#define SHIM_STDIO

#define RENAME_EXCL 4

int renamex_np(const char *from, const char *to, unsigned flags);

#endif
